"""Examples that the docstrings leave out; they are run when the site is made, and their output printed.

Every method is used in the same way, so one example stands for all of them.
"""

import contextlib
import io

import ordinalq as oq

LINES = """\
import numpy as np
import ordinalq as oq
rng = np.random.default_rng(0)
y = rng.integers(1, 6, size=2000)
X = y[:, None] + rng.normal(size=(2000, 3))
q = oq.{name}().fit(X, y)
y_new = rng.integers(2, 5, size=1000)
q.predict(y_new[:, None] + rng.normal(size=(1000, 3))).round(2)
"""
REVIEWS = """\
import numpy as np
import ordinalq as oq
rng = np.random.default_rng(0)
y = rng.integers(1, 6, size=1000)
X = y[:, None] + rng.normal(size=(1000, 3))
"""
OTHERS = {
    "Estimates": REVIEWS
    + """\
estimates = oq.PACC().fit(X, y).predict_groups(X, np.where(y > 2, "good", "bad"), level=0.95)
estimates.groups
estimates.frame().columns[:4].tolist()
""",
    "Quantifier": """\
import ordinalq as oq
q = oq.OPACC(tau=0.01)
isinstance(q, oq.Quantifier), q.traits.adjusts, q.traits.uses_sample_means
""",
    "AutoQuantifier": REVIEWS
    + """\
q = oq.AutoQuantifier(budget="fast").fit(X, y)
q.predict(X[y > 2]).round(1)
""",
    "Samples": """\
import ordinalq as oq
samples = oq.Samples.from_groups(["kettle", "lamp", "kettle", "kettle"])
samples
samples.groups_
""",
}
METHODS = frozenset(entry.name for entry in oq.catalog(beyond=True))


def example(name: str) -> list[str]:
    """Run the example of a name; return it with its output, as in an interactive session."""
    names: dict[str, object] = {}
    session = []
    for line in OTHERS.get(name, LINES.format(name=name)).splitlines():
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed):
            exec(compile(line, "example", "single"), names)  # noqa: S102 - our own lines, above
        session += [f">>> {line}", *printed.getvalue().splitlines()]
    return session


def add_example(app: object, what: str, name: str, thing: object, options: object, lines: list[str]) -> None:
    """Add the example to a docstring without one."""
    short = name.rpartition(".")[2]
    if what in {"class", "function"} and short in {*METHODS, *OTHERS} and not any(">>>" in line for line in lines):
        lines += ["", ".. rubric:: Examples", "", *example(short), ""]


def setup(app: object) -> dict[str, bool]:
    """Connect to Sphinx."""
    app.setup_extension("sphinx.ext.autodoc")  # type: ignore[attr-defined]
    # After numpydoc, which has read its sections by then.
    app.connect("autodoc-process-docstring", add_example, priority=900)  # type: ignore[attr-defined]
    return {"parallel_read_safe": True}
