"""Draw the figures of the documentation that need no data set: ``python docs/make_figures.py``.

Two of them show figures of long measurements; they are drawn from the numbers of the documentation.

``figures.json`` has the numbers and text of each figure, and a hash of its file. A test draws them again
and compares what they show: so it states which are stale, with any version of matplotlib and its fonts.
"""

import hashlib
import json
import re
import sys
import tempfile
from pathlib import Path

import matplotlib as mpl
import numpy as np
import pandas as pd
from matplotlib.patches import Rectangle
from matplotlib.text import Text

import ordinalq as oq
from ordinalq.plot.style import FILE_STYLE

DOCS = Path(__file__).parent
STORED = DOCS / "figures.json"
# All others, and what makes them.
OTHERS = {
    "app_*.png": "make screenshots",
    "groups_width.svg": "benchmarks/group_figures.py, with real data",
}

sys.path[:0] = [str(DOCS), str(DOCS.parent / "examples"), str(DOCS.parent / "benchmarks")]


def few_groups():
    """Draw the table of docs/validation/groups.md about few labelled groups."""
    import group_figures

    table = re.search(
        r"\| labelled groups \|.*\n\|-.*\n((?:\|.*\n)+)",
        (DOCS / "validation" / "groups.md").read_text(encoding="utf-8"),
    )
    lines = []
    for row in table[1].splitlines():
        number, *cells = map(float, re.findall(r"[\d.]+", row))
        for name, (nmd, mean, worst, _) in (("flights", cells[:4]), ("IMDB", cells[4:])):
            lines.append((name, int(number), nmd, mean / 100, worst / 100))
    return group_figures.draw_few(lines)


def growth():
    """Draw the seconds of docs/validation/scale.md against ten million rows and parts of them."""
    import scale

    text = " ".join((DOCS / "validation" / "scale.md").read_text(encoding="utf-8").split())
    seconds = re.search(r"\*\*Growth\*\*: the dots in the figure are ([\d., and]+) s", text)[1]
    sizes = [10_000_000 // part for part in (100, 32, 10, 3, 1)]
    return scale.draw(sizes, {"parquet": [float(number) for number in re.findall(r"[\d.]+", seconds)]})


def figures():
    """Return the figures by the names of their files."""
    import make_readme_figure
    import make_reviews

    with tempfile.TemporaryDirectory() as folder:
        make_reviews.main(Path(folder))
        train, new = (pd.read_csv(Path(folder) / f"{name}.csv") for name in ("train", "new"))
    model = oq.TableModel(oq.PACC(oq.classifiers.CrossFitted(cv=5, random_state=0)), text=["review"]).fit(
        train, target="stars", by="product"
    )
    how = {"level": 0.95, "options": oq.inference.IntervalOptions("population", random_state=0)}
    products, months = (model.predict_groups(new, by=by, **how) for by in ("product", "date:month"))
    drawn = {
        "reviews_groups.svg": oq.plot.groups(products, xlabel="stars"),
        "reviews_trend.svg": oq.plot.trend(months, xlabel="stars"),
        "reviews_compare.svg": [oq.plot.comparison(products.compare("lamp", "fan"), xlabel="stars")],
    }
    figures = {name: axes[0].figure for name, axes in drawn.items()}
    others = {
        "ordinal_quantification.svg": make_readme_figure.draw(),
        "groups_few.svg": few_groups(),
        "scale.svg": growth(),
    }
    return others | figures


def shown(figure):
    """Return the words of a figure, and the places of its lines and bars."""
    figure.draw_without_rendering()
    # What is drawn in the axes: ticks depend on the fonts.
    lines = [line.get_xydata() for ax in figure.axes for line in ax.lines]
    bars = [bar.get_bbox().bounds for ax in figure.axes for bar in ax.patches if isinstance(bar, Rectangle)]
    numbers = [np.ravel(values) for values in (*lines, *bars)]
    words = [text.get_text() for text in figure.findobj(Text) if text.get_text() and text.get_visible()]
    return {"words": words, "numbers": np.concatenate(numbers).astype(float).round(4).tolist()}


def main():
    """Write the figures and their content."""
    kept = {}
    with mpl.rc_context(FILE_STYLE):
        for name, figure in figures().items():
            figure.savefig(DOCS / name, metadata={"Date": None, "Creator": None})
            digest = hashlib.sha256((DOCS / name).read_bytes()).hexdigest()
            kept[name] = {"sha256": digest, **shown(figure)}
    STORED.write_text(json.dumps(kept, ensure_ascii=False) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
