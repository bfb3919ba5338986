"""What the worker processes do: the steps of the command line, by the same functions of the library."""

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from ordinalq import plot
from ordinalq._utils.progress import tell
from ordinalq._utils.validation import Floats
from ordinalq.inference.comparison import Comparison
from ordinalq.inference.estimate import estimate
from ordinalq.inference.estimates import Estimates, check_names
from ordinalq.inference.label_plan import LabelsNeeded
from ordinalq.inference.options import Plan
from ordinalq.inference.trend import Trend
from ordinalq.io.table import Table as Read
from ordinalq.io.table import open_table
from ordinalq.io.writing import save_picture, write_table
from ordinalq.quantifiers.auto import Training
from ordinalq.quantifiers.base import Quantifier
from ordinalq.samples.keys import with_period
from ordinalq.samples.samples import class_means
from ordinalq.samples.summary import Summary
from ordinalq.tables.fit import build_quantifier, fit_table
from ordinalq.tables.grouping import names_of
from ordinalq.tables.inner import fitted_quantifier
from ordinalq.tables.label_plan import plan_labels, rows_to_label
from ordinalq.tables.model import sentences, unit
from ordinalq.tables.model_file import ModelInfo, load_model_and_info, read_info, save_model
from ordinalq.tables.predict import chosen, diagnoses_of, summarize_table
from ordinalq.tables.preview import ReturnedLabels, TablePreview, preview_table

# Groups of one comparison: all pairs of more say nothing.
MAX_COMPARED = 12


class Table(NamedTuple):
    """A table that was sent: where it is, what the user calls it, and how it is read.

    The name is shown and never used as a path. Models that were sent come in the same way. Labels of some rows may have
    come back, in tables of their own with a column of this name.
    """

    path: Path
    shown: str
    encoding: str = "utf-8"
    quoting: str = "auto"
    returned: "tuple[tuple[Table, str], ...]" = ()

    def open(self) -> Read:
        """Open it; errors call it as the user does."""
        table = open_table(self.path, None, self.encoding, self.quoting)
        table.name = table.files[0].name = self.shown
        for labels, target in self.returned:
            table.files[0].fill(ReturnedLabels(labels.open(), target))
        return table


class Choices(NamedTuple):
    """What a model is fitted on, as the options of the command line say it."""

    target: str
    by: str | None = None
    weight: str | None = None
    text: tuple[str, ...] = ()
    features: tuple[str, ...] = ()
    categories: tuple[str, ...] = ()
    classes: tuple[str, ...] = ()
    method: str | None = None
    budget: str | None = None
    skip_unlabelled: bool = False


class Asked(NamedTuple):
    """What is asked of a table: groups, and how intervals are made; `of` is "" for what suits the groups."""

    by: tuple[str, ...] = ()
    labels: str | None = None
    weight: str | None = None
    level: float = 0.95
    of: str = ""

    @property
    def in_time(self) -> bool:
        """Whether the groups, or those of each other column, are periods of time."""
        return bool(self.by) and with_period(self.by[-1])[1] is not None

    @property
    def plan(self) -> Plan:
        """How intervals are made, as on the command line: a change over time is one of the rows to come, too."""
        return Plan(of=self.of or ("population" if self.in_time else "sample"))


class Fitted(NamedTuple):
    """A model, and what is known of it.

    `quality` has what is said of the classifier, a word and a sentence each, as on the command line; `errors` (n, n)
    has the part of each class (column) that is taken for each; `training` is what the default says of itself.
    """

    info: ModelInfo
    n_items: int
    n_skipped: int
    n_groups: int | None
    quality: tuple[tuple[str, str], ...]
    errors: Floats | None
    training: Training | None


class Answer(NamedTuple):
    """Estimates of a table, and what can be said of it as a whole."""

    estimates: Estimates
    info: ModelInfo
    trend: Trend | None
    diagnosis: str
    knows_groups: bool
    smoothed: bool


class Planned(NamedTuple):
    """How many rows of each group to label; `n_rows` of them have been written."""

    needed: LabelsNeeded
    n_rows: int


class Compared(NamedTuple):
    """Some groups beside each other."""

    estimates: Estimates
    comparison: Comparison


def warm() -> None:
    """Do nothing: the process has imported what others need."""


def preview(table: Table, whole: bool) -> TablePreview:
    """Look at a table."""
    return preview_table(table.open(), whole=whole)


def fit(table: Table, choices: Choices, folder: Path) -> tuple[Path, Fitted]:
    """Fit a model, and write it and the picture of its errors."""
    how = choices._asdict() | {"classes": choices.classes or None}
    method, budget = how.pop("method"), how.pop("budget")
    parameters = {} if budget is None else {"budget": budget}
    quantifier = build_quantifier(method, parameters, groups=choices.by is not None, n_jobs=1)
    model = fit_table(table.open(), quantifier=quantifier, **how)
    out = folder / "model.oq"
    return out, _looked(model, save_model(model, out, overwrite=True), folder / "errors.svg")


def look(model: Path, picture: Path) -> Fitted:
    """Load a model that was saved, as the command line does, and draw its errors."""
    return _looked(*load_model_and_info(model), picture)


def _looked(model: Any, info: ModelInfo, picture: Path) -> Fitted:
    """Return what is known of a model, and draw its errors."""
    quantifier, known = fitted_quantifier(model), vars(model)
    errors = _errors(quantifier)
    if errors is not None:
        _save(plot.response_matrix(errors, [str(label) for label in info.classes]), picture, "svg")
    return Fitted(
        info,
        known.get("n_items_", info.n_held_out or 0),
        known.get("n_skipped_", 0),
        known.get("n_groups_"),
        tuple(sentences(known.get("quality_"), info.classes, unit(info.target, info.classes))),
        errors,
        getattr(quantifier, "training_", None),
    )


def _errors(quantifier: Quantifier) -> Floats | None:
    """Return the part of the held-out items of each class (column) that are taken for each class (row)."""
    if quantifier.on != "scores" or not hasattr(quantifier, "held_out_"):
        return None
    V, codes = quantifier.held_out_
    return class_means(np.eye(V.shape[1])[V.argmax(axis=1)], codes)


def predict(model: Path, table: Table, asked: Asked, folder: Path) -> Answer:
    """Estimate a table, or each group of its rows, and write the result as tables."""
    loaded, info = load_model_and_info(model)
    quantifier = fitted_quantifier(loaded)
    by = asked.by or None
    check_names(quantifier.classes_, names_of(by))
    tell("", 0, 10, 8)
    summary = summarize_table(loaded, table.open(), by=by, labels=asked.labels, weight=asked.weight)
    tell("estimating, with intervals", 8, 10, 2)
    estimates = estimate(quantifier, summary, asked.level, asked.plan)
    # Last, so that work that fails or is cancelled leaves what was found before.
    summary.save(folder / "summary.npz")
    for kind in ("csv", "parquet"):
        write_table(estimates.frame(), folder / f"estimates.{kind}", kind)
    smoothing = quantifier.smoothing()
    return Answer(
        estimates,
        info,
        estimates.trend() if asked.in_time and estimates.own is not None else None,
        str(diagnoses_of(quantifier, summary, groups=False).whole),
        quantifier.knows_groups,
        smoothing is not None and smoothing.value != 0,
    )


def compare(model: Path, groups: Sequence[str], level: float, of: str, folder: Path) -> Compared:
    """Compare groups of the table that was estimated last, and write the result as a table."""
    loaded, _ = load_model_and_info(model)
    summary = chosen(Summary.load(folder / "summary.npz"), groups)
    estimates = estimate(fitted_quantifier(loaded), summary, level, Plan(of=of))
    assert estimates.keys is not None
    found = estimates.compare(*estimates.keys.tolist())
    write_table(found.frame(), folder / "comparison.csv", "csv")
    return Compared(estimates, found)


def plan(model: Path, table: Table, asked: Asked, width: float, quantity: str, folder: Path) -> Planned:
    """Work out how many rows to label, draw them, and write them as a table."""
    if asked.weight is not None:
        raise ValueError("how many rows to label is known only for rows without weights.")
    file = table.open()
    loaded, info = load_model_and_info(model)
    tell("", 0, 2)
    found = plan_labels(
        loaded,
        file,
        by=asked.by or None,
        labels=asked.labels,
        width=width,
        quantity=quantity,
        level=asked.level,
        plan=asked.plan,
    )
    tell("drawing the rows", 1, 2)
    rows = rows_to_label(file, found, asked.labels or info.target)
    write_table(rows, folder / "to_label.csv", "csv")
    return Planned(found.needed, len(rows))


def label(model: Path, table: Table, asked: Asked, returned: Table, folder: Path) -> tuple[Table, Asked, Answer]:
    """Estimate a table again, with labels that have come back."""
    target = asked.labels or read_info(model).target
    if target is None:
        raise ValueError("the model does not know the name of the column of the labels.")
    labelled = table._replace(returned=(*table.returned, (returned, target)))
    now = asked._replace(labels=target)
    return labelled, now, predict(model, labelled, now, folder)


def draw(what: Estimates | Comparison, target: str | None, path: Path, kind: str, in_time: bool = False) -> None:
    """Write the picture of estimates, side by side or in time, or of a comparison."""
    if in_time and isinstance(what, Estimates):
        _save(plot.trend(what, xlabel=target or ""), path, kind)
    elif isinstance(what, Comparison):
        _save(plot.comparison(what, xlabel=target or ""), path, kind)
    else:
        _save(what.plot(xlabel=target or ""), path, kind)


def _save(axes: Any, path: Path, kind: str) -> None:
    """Write a picture that nobody else on this machine may read."""
    save_picture(axes, path, kind)
    os.chmod(path, 0o600)
