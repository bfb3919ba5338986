"""The code of the documentation runs, block after block."""

import hashlib
import json
import re
import sys
import warnings
from pathlib import Path

import numpy as np
import pytest
from outcomes import make_outcome

import ordinalq as oq
from ordinalq.datasets.published import results
from ordinalq.paper.experiments.config import load_config

ROOT = Path(__file__).parents[1]
GUIDE = (
    "methods",
    "start",
    "weights",
    "scores",
    "default",
    "diagnostics",
    "groups",
    "model-files",
    "tuning",
    "uncertainty",
)
PAGES = [*sorted((ROOT / "docs" / "extend").glob("*.md")), *(ROOT / "docs" / f"{name}.md" for name in GUIDE)]
# What a page takes for granted.
GIVEN = {"table.md": lambda: {"outcome": make_outcome(n_samples=20, n_classes=5, paper=None)}}


def blocks(path):
    """Return the blocks of Python on a page, each with its output or None.

    Empty lines precede the code, so that errors name the right line.
    """
    text = path.read_text(encoding="utf-8")
    return [
        ("\n" * text[: found.start(1)].count("\n") + found[1], found[2])
        for found in re.finditer(r"```python\n(.*?)```(?:\n+```text\n(.*?)```)?", text, re.DOTALL)
    ]


@pytest.mark.parametrize("path", PAGES, ids=lambda path: path.name)
def test_code_of_the_page_runs(path, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    given = GIVEN.get(path.name, dict)()
    assert blocks(path)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        # Short examples are fitted without groups.
        warnings.simplefilter("ignore", oq.inference.NoTrainingGroupsWarning)
        for code, output in blocks(path):
            exec(compile(code, str(path), "exec"), given)
            printed = capsys.readouterr().out
            assert output is None or printed == output


def test_there_is_a_page_for_each_part_of_the_package():
    assert {path.stem for path in PAGES} >= {"loss", "representation", "method", "dataset", "table"}


def run_table(path):
    """Return the rows of the table of data sets of the paper that were run."""
    text = path.read_text(encoding="utf-8")
    part = text.partition("<!-- data sets of the paper -->")[2].partition("<!-- end of data sets -->")[0]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in part.splitlines() if "`" in line]


def test_docs_list_the_data_sets_of_the_paper_that_were_run():
    table = run_table(ROOT / "docs" / "experiments.md")
    rows = {row[0].strip("`"): row for row in table}
    assert set(load_config("paper").members) == set(rows)
    for name, (_, tested, run, here, printed) in rows.items():
        assert tested, name
        # Figures stand where the experiment was run in full, and nowhere else.
        assert run.startswith("yes") == (here != "-"), name
        means = {
            f"{cell[protocol]['NMD']['mean']:.4f}"[1:]
            for method in results().values()
            for protocol, cell in [(p, method[load_config(name).dataset["paper"]]) for p in ("APP", "APP-OQ")]
        }
        assert all(number in means for number in re.findall(r"\.\d{4}", printed)), name


def test_both_settings_stand_side_by_side_with_their_figures():
    text = (ROOT / "docs" / "validation" / "published.md").read_text(encoding="utf-8").partition("## Both settings")[2]
    rows = dict(re.findall(r"^\| (\S+) \| (\.\d{4} \| .*) \|$", text, re.MULTILINE))
    assert set(rows) == set(results())
    for name, cells in rows.items():
        printed = [results()[name]["OpenMl-fried-OQ"][protocol]["NMD"]["mean"] for protocol in ("APP", "APP-OQ")]
        numbers = [float(cell) for cell in cells.split(" | ")]
        assert [numbers[1], numbers[4]] == printed


@pytest.fixture(scope="module")
def drawings():
    sys.path.insert(0, str(ROOT / "docs"))
    try:
        import make_figures
    finally:
        sys.path.remove(str(ROOT / "docs"))
    return make_figures


@pytest.mark.printed
def test_committed_figures_agree_with_the_code(drawings):
    kept = json.loads(drawings.STORED.read_text(encoding="utf-8"))
    figures = drawings.figures()
    assert kept.keys() == figures.keys()
    stale = []
    for name, figure in figures.items():
        now, then = drawings.shown(figure), kept[name]
        # Axes choose their ticks, and classifiers differ by rounding errors, from version to version.
        # Two percent of the items: percentage points in the figure of a comparison, prevalences elsewhere.
        near = {"rtol": 0.01, "atol": 2.0 if name == "reviews_compare.svg" else 0.02}
        same = len(now["numbers"]) == len(then["numbers"]) and np.allclose(now["numbers"], then["numbers"], **near)
        if not same or re.findall("[a-z]{3,}", str(now["words"])) != re.findall("[a-z]{3,}", str(then["words"])):
            stale.append(name)
        assert hashlib.sha256((ROOT / "docs" / name).read_bytes()).hexdigest() == then["sha256"], f"{name}: edited"
    assert not stale, f"call make docs: {stale}"


def test_every_figure_has_a_known_source(drawings):
    kept = json.loads(drawings.STORED.read_text(encoding="utf-8"))
    files = [path for end in ("png", "svg") for path in (ROOT / "docs").glob(f"*.{end}")]
    unknown = [path.name for path in files if path.name not in kept and not any(map(path.match, drawings.OTHERS))]
    assert not unknown
