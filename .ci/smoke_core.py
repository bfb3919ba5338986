"""Check that ordinalq works without extras: estimates, unfolding, frames; features of extras name the extra.

`make release` runs this script in an environment without extras. tests/test_core.py runs it with all other packages
blocked.
"""

import contextlib
import io
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

import ordinalq as oq
from ordinalq.__main__ import script

for name in oq.__all__:
    assert getattr(oq, name) is not None, name

rng = np.random.default_rng(0)
stars = rng.choice([1, 2, 3, 4, 5], size=600)
X = stars[:, None] - 3 + rng.normal(size=(600, 3))
months = np.array(["2024-01", "2024-02", "2024-03"])[np.arange(600) % 3]

# Estimates, intervals, comparisons and trends.
quantifier = oq.OPACC(tau=0.01).fit(X, stars)
assert np.isclose(quantifier.predict(X).sum(), 1)
estimates = quantifier.predict_groups(X, months, level=0.9)
assert estimates.frame().shape[0] == 3
assert (estimates.lower <= estimates.upper).all()
assert "2024-01" in str(estimates.compare("2024-01", "2024-02"))
assert "3 groups" in str(estimates.trend())
diagnosis = quantifier.diagnose(X)
assert "600 items" in str(diagnosis)
auto = oq.AutoQuantifier(budget="fast").fit(X, stars)
assert auto.predict(X).shape == (5,)

# Unfolding.
M = [[0.9, 0.1, 0.0], [0.1, 0.8, 0.1], [0.0, 0.1, 0.9]]
spectrum = oq.unfold([480, 320, 210], M, acceptance=[0.5, 0.8, 0.8])
assert spectrum.counts.shape == spectrum.error.shape == (3,)
assert np.isclose(oq.solve([480, 320, 210], M).sum(), 1)

# Frames, with numbers as strings and categories.
frame = pd.DataFrame(X, columns=["a", "b", "c"]).assign(stars=stars, month=months, shop=np.where(X[:, 0] > 0, "x", "y"))
frame["a"] = frame["a"].map(str)
model = oq.TableModel(quantifier=oq.PACC()).fit(frame.drop(columns="month"), target="stars")
assert model.predict_groups(frame, "month", level=0.9).frame().shape[0] == 3
assert oq.datasets.make_dataset(frame.drop(columns="a"), "stars").train.X.shape[0] > 0


def message(call: Callable[..., Any], *arguments: Any, **options: Any) -> str:
    """Return the message of the ImportError that a call raises."""
    try:
        call(*arguments, **options)
    except ImportError as error:
        return str(error)
    raise AssertionError(f"{call} works without its extra")


def install(extra: str) -> str:
    """Return the end of the message that names an extra."""
    return f'Install it with: pip install "ordinalq[{extra}]"'


# Features of extras: one line that names the extra.
with tempfile.TemporaryDirectory() as folder:
    path = Path(folder) / "rows.csv"
    frame.to_csv(path, index=False)
    table = f"reading tables needs pyarrow. {install('tables')}"
    assert message(oq.datasets.load_dataset, "fried-openml", data=path) == table
    saved = message(oq.save_model, quantifier, Path(folder) / "stars.oq")
    assert saved == f"saving a model needs skops. {install('tables')}"
    assert message(oq.load_model, path) == f"loading a model needs skops. {install('tables')}"
    fetched = message(oq.datasets.download.fetch, "https://localhost/a.csv", "a.csv")
    assert fetched == f"downloading data sets needs requests. {install('paper')}"
plots = [
    estimates.plot,
    estimates.take(slice(1)).plot,
    spectrum.plot,
    spectrum.plot_scan,
    diagnosis.plot,
    lambda: oq.plot.comparison(estimates.compare("2024-01", "2024-02")),
    lambda: oq.plot.trend(estimates),
    lambda: oq.plot.estimate_against_truth(estimates.prevalences, estimates.prevalences),
    lambda: oq.plot.tau_path([0.1, 1.0], [0.02, 0.01]),
]
for plot in plots:
    assert message(plot) == f"plotting needs matplotlib. {install('plot')}", plot

# The command line.
printed = io.StringIO()
with contextlib.redirect_stderr(printed), contextlib.suppress(SystemExit):
    script()
assert printed.getvalue() == f"ordinalq: the command line needs typer. {install('cli')}\n", printed.getvalue()
print(f"ordinalq {oq.__version__} works without extras, installed in {Path(oq.__file__).parent}")
