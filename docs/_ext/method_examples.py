"""Every method is used in the same way, so one example stands for all; it is run for each, and its output printed."""

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
y_new = rng.choice([1, 2, 3, 4, 5], p=[0.1, 0.2, 0.4, 0.2, 0.1], size=1000)
q.predict(y_new[:, None] + rng.normal(size=(1000, 3))).round(2)
"""
METHODS = frozenset(entry.name for entry in oq.catalog(beyond=True))


def example(name: str) -> list[str]:
    """Run the example with a method; return it with its output, as in an interactive session."""
    printed = io.StringIO()
    names: dict[str, object] = {}
    lines = LINES.format(name=name).splitlines()
    with contextlib.redirect_stdout(printed):
        for line in lines:
            exec(compile(line, "example", "single"), names)  # noqa: S102 - our own lines, above
    return [*(f">>> {line}" for line in lines), *printed.getvalue().splitlines()]


def add_example(app: object, what: str, name: str, thing: object, options: object, lines: list[str]) -> None:
    """Add it to the docstring of a method that has no example of its own."""
    short = name.rpartition(".")[2]
    if what == "class" and short in METHODS and not any(">>>" in line for line in lines):
        lines += ["", ".. rubric:: Examples", "", *example(short), ""]


def setup(app: object) -> dict[str, bool]:
    """Tell Sphinx."""
    # After numpydoc, which has read its sections by then.
    app.connect("autodoc-process-docstring", add_example, priority=900)  # type: ignore[attr-defined]
    return {"parallel_read_safe": True}
