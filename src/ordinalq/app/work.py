"""Jobs of the web app, by the functions of the command line, and examples."""

import csv
import os
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from ordinalq import plot
from ordinalq._utils.progress import report_step
from ordinalq._utils.validation import Floats
from ordinalq.inference.comparison import Comparison
from ordinalq.inference.estimates import Estimates, check_names
from ordinalq.inference.label_plan import LabelsNeeded
from ordinalq.inference.model import has_held_out, learned_groups
from ordinalq.inference.options import IntervalOptions
from ordinalq.inference.predict import drift_of, estimate, estimate_some
from ordinalq.inference.trend import Trend
from ordinalq.io.table import Table as Read
from ordinalq.io.table import open_table
from ordinalq.io.writing import save_figure, write_table
from ordinalq.quantifiers.auto import Training
from ordinalq.quantifiers.base import Quantifier
from ordinalq.samples.keys import with_period
from ordinalq.samples.samples import class_means
from ordinalq.samples.summary import Summary
from ordinalq.tables.fit import build_quantifier, fit_table
from ordinalq.tables.grouping import names_of
from ordinalq.tables.inner import fitted_quantifier, model_for
from ordinalq.tables.label_plan import plan_labels, rows_to_label
from ordinalq.tables.model import row_counts, sentences, unit
from ordinalq.tables.model_file import ModelInfo, load_model_and_info, read_info, save_model
from ordinalq.tables.predict import chosen, diagnoses_of, summarize_table
from ordinalq.tables.preview import ReturnedLabels, TablePreview, preview_table

# Maximum number of groups in one comparison.
MAX_COMPARED = 12


class Table(NamedTuple):
    """Uploaded table: path, name for display, and settings for reading.

    The name is never used as a path. Uploaded models have the same record. `returned` are tables with labels of some
    rows, each with the name of the label column.
    """

    path: Path
    shown: str
    encoding: str = "utf-8"
    quoting: str = "auto"
    sheet: str | None = None
    returned: "tuple[tuple[Table, str], ...]" = ()

    def open(self) -> Read:
        """Open the table; error messages use the name of the uploaded file."""
        table = open_table(self.path, None, self.encoding, self.quoting, sheet=self.sheet)
        table.name = table.files[0].name = self.shown
        for labels, target in self.returned:
            table.files[0].fill(ReturnedLabels(labels.open(), target))
        return table


class Choices(NamedTuple):
    """Options for fitting a model, named as on the command line."""

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
    tidy_groups: bool = False
    class_values: tuple[float, ...] = ()


class PredictOptions(NamedTuple):
    """Options for estimates: groups and intervals; `estimand` may be "" (automatic)."""

    by: tuple[str, ...] = ()
    labels: str | None = None
    weight: str | None = None
    level: float = 0.95
    estimand: str = ""
    tidy_groups: bool = False

    @property
    def has_periods(self) -> bool:
        """Whether the last column of groups has periods of time."""
        return bool(self.by) and with_period(self.by[-1])[1] is not None

    @property
    def group_names(self) -> str:
        """Columns of groups in words, such as "shop, month of day"."""
        asked = [with_period(one) for one in self.by]
        return ", ".join(column if period is None else f"{period} of {column}" for column, period, _ in asked)

    @property
    def interval_options(self) -> IntervalOptions:
        """Options for intervals: of the population if groups are periods of time."""
        return IntervalOptions(estimand=self.estimand or ("population" if self.has_periods else "sample"))


class Fitted(NamedTuple):
    """Fitted model with its description.

    `quality` has pairs of a term and a sentence about the classifier. `errors` (n, n) is its confusion matrix: the part
    of each true class (column) that is classified as each class (row). `training` describes the default method,
    `unused` has the reason for each unused column, `rows` the counts of unusual rows.
    """

    info: ModelInfo
    n_items: int
    n_skipped: int
    n_groups: int | None
    quality: tuple[tuple[str, str], ...]
    errors: Floats | None
    training: Training | None
    unused: dict[str, str]
    rows: str


class Answer(NamedTuple):
    """Estimates of a table, with trend and diagnosis."""

    estimates: Estimates
    info: ModelInfo
    trend: Trend | None
    diagnosis: str
    has_groups: bool
    smoothed: bool


class Planned(NamedTuple):
    """Numbers of rows to label in each group; `n_rows` of them were written."""

    needed: LabelsNeeded
    n_rows: int


class Compared(NamedTuple):
    """Comparison of some groups."""

    estimates: Estimates
    comparison: Comparison


def preload() -> None:
    """Do nothing; starting the process imports the modules."""


def preview(table: Table, whole: bool) -> TablePreview:
    """Return a preview of a table."""
    return preview_table(table.open(), whole=whole)


def fit(table: Table, choices: Choices, folder: Path) -> tuple[Path, Fitted]:
    """Fit a model, and write it and the figure of its errors."""
    how = choices._asdict() | {"classes": choices.classes or None, "class_values": choices.class_values or None}
    method, budget = how.pop("method"), how.pop("budget")
    parameters = {} if budget is None else {"budget": budget}
    quantifier = build_quantifier(method, parameters, groups=choices.by is not None, n_jobs=1)
    model = fit_table(table.open(), quantifier=quantifier, **how)
    out = folder / "model.oq"
    return out, _describe(model, save_model(model, out, overwrite=True), folder / "errors.svg")


def load_fitted(model: Path, figure: Path) -> Fitted:
    """Load a saved model, and draw its errors."""
    return _describe(*load_model_and_info(model), figure)


def _describe(model: Any, info: ModelInfo, figure: Path) -> Fitted:
    """Return the description of a model, and draw its errors."""
    quantifier, known = fitted_quantifier(model), vars(model)
    errors = _errors(quantifier)
    if errors is not None:
        axes = plot.response_matrix(errors, [str(label) for label in info.classes])
        axes.set_ylabel("class of the classifier")
        _save(axes, figure, "svg")
    return Fitted(
        info,
        known.get("n_items_", info.n_held_out or 0),
        known.get("n_skipped_", 0),
        known.get("n_groups_"),
        tuple(sentences(known.get("quality_"), info.classes, unit(info.target, info.classes))),
        errors,
        getattr(quantifier, "training_", None),
        known.get("unused_", {}),
        row_counts(model) if "n_empty_" in known else "",
    )


def _errors(quantifier: Quantifier) -> Floats | None:
    """Return the confusion matrix of the held-out items, true classes in columns."""
    if quantifier.traits.input_kind != "scores" or not has_held_out(quantifier):
        return None
    S = quantifier.held_out_.S
    return class_means(np.eye(S.shape[1])[S.argmax(axis=1)], quantifier.held_out_.codes)


def predict(model: Path, table: Table, options: PredictOptions, folder: Path) -> Answer:
    """Estimate a table, or each group of its rows, and write the result as tables."""
    loaded, info = load_model_and_info(model)
    by = options.by or None
    loaded = model_for(loaded, by)
    quantifier = fitted_quantifier(loaded)
    check_names(quantifier.classes_, names_of(by))
    report_step("", 0, 10, 8)
    how: dict[str, Any] = {"labels": options.labels, "weight": options.weight, "tidy_groups": options.tidy_groups}
    summary = summarize_table(loaded, table.open(), by=by, **how)
    report_step("estimating, with intervals", 8, 10, 2)
    estimates = estimate(quantifier, summary, options.level, options.interval_options)
    # Last, so that work that fails or is cancelled leaves what was found before.
    summary.save(folder / "summary.npz")
    for kind, ending in (("csv", "csv"), ("parquet", "parquet"), ("excel", "xlsx")):
        shown: dict[str, Any] = {"csv_safe": True, "percent": estimates.prevalence_columns}
        write_table(estimates.frame(), folder / f"estimates.{ending}", kind, **shown)
    smoothing = quantifier.smoothing()
    return Answer(
        estimates,
        info,
        estimates.trend() if options.has_periods and estimates.own is not None else None,
        str(diagnoses_of(quantifier, summary, groups=False).whole),
        learned_groups(quantifier),
        smoothing is not None and smoothing.value != 0,
    )


def compare(model: Path, groups: Sequence[str], level: float, estimand: str, folder: Path) -> Compared:
    """Compare groups of the last estimated table, and write the result as a table."""
    loaded, _ = load_model_and_info(model)
    summary = Summary.load(folder / "summary.npz")
    quantifier = fitted_quantifier(loaded).for_groups()
    # All groups of the table determine their common offset.
    drift = drift_of(quantifier, summary)
    some = chosen(summary, groups)
    assert summary.keys is not None
    assert some.keys is not None
    rows, options = summary.keys.positions(some.keys), IntervalOptions(estimand=estimand)
    estimates = estimate_some(quantifier, summary, some, rows, level, options, drift)
    assert estimates.keys is not None
    found = estimates.compare(*estimates.keys.tolist())
    write_table(found.frame(), folder / "comparison.csv", "csv", csv_safe=True)
    return Compared(estimates, found)


def plan(model: Path, table: Table, options: PredictOptions, width: float, quantity: str, folder: Path) -> Planned:
    """Work out how many rows to label, draw them, and write them as a table."""
    if options.weight is not None:
        raise ValueError(
            "numbers of rows to label are not available with weights. Estimate without a column of weights."
        )
    file = table.open()
    loaded, info = load_model_and_info(model)
    report_step("", 0, 2)
    found = plan_labels(
        model_for(loaded, options.by or None),
        file,
        by=options.by or None,
        labels=options.labels,
        width=width,
        quantity=quantity,
        level=options.level,
        options=options.interval_options,
        tidy_groups=options.tidy_groups,
    )
    report_step("drawing the rows", 1, 2)
    rows = rows_to_label(file, found, options.labels or info.target)
    write_table(rows, folder / "to_label.csv", "csv")
    return Planned(found.needed, len(rows))


def label(
    model: Path, table: Table, options: PredictOptions, returned: Table, folder: Path
) -> tuple[Table, PredictOptions, Answer]:
    """Estimate a table again with returned labels."""
    target = options.labels or read_info(model).target
    if target is None:
        raise ValueError("the model has no name of the label column. Choose the column with labels in step 3.")
    labelled = table._replace(returned=(*table.returned, (returned, target)))
    now = options._replace(labels=target)
    return labelled, now, predict(model, labelled, now, folder)


def draw(what: Estimates | Comparison, target: str | None, path: Path, kind: str, in_time: bool = False) -> None:
    """Write the figure of estimates, of a trend, or of a comparison."""
    if in_time and isinstance(what, Estimates):
        _save(plot.trend(what, xlabel=target or ""), path, kind)
    elif isinstance(what, Comparison):
        _save(plot.comparison(what, xlabel=target or ""), path, kind)
    else:
        _save(what.plot(xlabel=target or ""), path, kind)


def _save(axes: Any, path: Path, kind: str) -> None:
    """Write a figure that only this user can read."""
    save_figure(axes, path, kind)
    os.chmod(path, 0o600)


# Two synthetic examples: reviews with stars, and events of a telescope. Always the same tables.


SEED = 20_240_229

# Sentences of reviews, from one star to five; many occur with neighbouring stars too.
SAID = (
    ("broken on arrival", "money thrown away", "went straight back", "never again", "the worst I have had"),
    ("weak motor", "flimsy plastic", "gave up after a month", "louder than promised", "not worth the price"),
    ("does what it should", "average at best", "fine for the money", "neither good nor bad", "a few quirks"),
    ("happy with it", "sturdy enough", "good for everyday use", "pleasant and quick", "better than the last one"),
    ("could not be happier", "a delight every morning", "superb in every way", "flawless", "everybody wants one"),
)
# Sentences that do not depend on the stars: products differ in more than their class prevalences.
PARTS = ("lid", "switch", "cable", "handle", "filter", "timer", "base", "spout", "display", "blade", "tray", "dial")
KINDS = ("kettle", "toaster", "blender", "grinder", "mixer", "juicer", "steamer", "grill")
MONTHS = 12

# Lower edges of the bins of energy, in GeV, and the tables of events.
EDGES = (500, 800, 1250, 2000, 3200, 5000, 8000, 12500)
N_SIMULATED = 4000
N_NIGHTS, PER_NIGHT = 6, 1200


def make_example(name: str, folder: Path) -> tuple[Table, TablePreview, Choices, dict[str, Table], PredictOptions]:
    """Write the tables of an example into a folder, and look at the labelled one.

    Return the labelled table, its preview, the choices, both tables, and the options for estimates.
    """
    labelled, new = folder / "example-labelled.csv", folder / "example-new.csv"
    write = {"reviews": _reviews, "spectrum": _spectrum}[name]
    choices, by = write(labelled, new, np.random.default_rng(SEED))
    ready = {"labelled": Table(labelled, f"{name}-labelled.csv"), "new": Table(new, f"{name}-new.csv")}
    return ready["labelled"], preview(ready["labelled"], whole=True), choices, ready, PredictOptions((by,))


def _reviews(labelled: Path, new: Path, rng: np.random.Generator) -> tuple[Choices, str]:
    """Return reviews of 24 products with stars, and of eight others without."""
    rows: list[Sequence[Any]] = []
    for number in range(24):
        product = f"{KINDS[number % len(KINDS)]} {number // len(KINDS) + 1}00"
        p = rng.dirichlet((1.5, 1.5, 2.5, 4.0, 5.0))
        rows += _make_reviews(product, p, 110, rng, lambda stars: [stars])
    _write(labelled, ("product", "date", "review", "stars"), rows, rng)
    rows = []
    for number, kind in enumerate(KINDS):
        for month in range(MONTHS):
            # One gets better over the year, one worse, the others stay as they are.
            better = {0: 0.09, 3: -0.09}.get(number, 0.0) * (month - MONTHS / 2)
            p = _distribution_around(3.4 + 0.2 * (number % 4 - 1.5) + 3 * better)
            rows += _make_reviews(f"{kind} X", p, int(rng.integers(35, 65)), rng, lambda _: [], month)
    _write(new, ("product", "date", "review"), rows, rng)
    return Choices("stars", "product", text=("review",)), "product"


def _distribution_around(mean: float) -> Floats:
    """Return a smooth distribution of stars about a mean."""
    weights = np.exp(-0.35 * (np.arange(1, 6) - mean) ** 2)
    return np.asarray(weights / weights.sum())


def _make_reviews(
    product: str, p: Floats, n: int, rng: np.random.Generator, known: Any, month: int | None = None
) -> list[Sequence[Any]]:
    """Return n rows about a product: its name, a day, a review, and the stars."""
    favourite = rng.choice(PARTS, size=3, replace=False)
    rows: list[Sequence[Any]] = []
    for stars in rng.choice(5, size=n, p=p):
        near = np.clip(stars + rng.choice([-1, 0, 0, 1], size=int(rng.integers(2, 5))), 0, 4)
        said = [SAID[i][rng.integers(5)] for i in near]
        part = favourite[rng.integers(3)] if rng.random() < 0.7 else PARTS[rng.integers(len(PARTS))]
        day = f"2024-{1 + (int(rng.integers(MONTHS)) if month is None else month):02d}-{rng.integers(1, 29):02d}"
        text = f"{product.split()[0].capitalize()} with a {part}: {', '.join(said)}."
        rows.append([product, day, text, *known(int(stars) + 1)])
    return rows


def _spectrum(labelled: Path, new: Path, rng: np.random.Generator) -> tuple[Choices, str]:
    """Return simulated events with energy bins, and observed ones without."""
    n = len(EDGES)
    columns = ("size", "width", "length", "distance", "time")
    bins = rng.integers(n, size=N_SIMULATED)
    rows = [[*row, EDGES[i]] for row, i in zip(_observed(bins, rng), bins, strict=True)]
    _write(labelled, (*columns, "energy"), rows, rng)
    found: list[Sequence[Any]] = []
    for night in range(N_NIGHTS):
        p = np.exp(-(0.45 + 0.05 * night) * np.arange(n))
        seen = rng.choice(n, size=PER_NIGHT, p=p / p.sum())
        found += [[f"2024-03-{10 + night}", *row] for row in _observed(seen, rng)]
    _write(new, ("night", *columns), found, rng)
    # The mean of a bin is near the geometric mean of its edges.
    upper = (*EDGES[1:], 20_000)
    means = tuple(round((low * high) ** 0.5) for low, high in zip(EDGES, upper, strict=True))
    return Choices("energy", class_values=tuple(map(float, means))), "night:day"


def _observed(bins: Any, rng: np.random.Generator) -> list[list[str]]:
    """Return what a telescope sees of events in bins of energy, five numbers each."""
    energy = bins + rng.random(len(bins))
    distance = rng.uniform(0.2, 1.4, size=len(bins))
    size = 4 + 0.35 * energy - 0.3 * distance**2 + rng.normal(0, 0.25, len(bins))
    width = 0.05 + 0.006 * energy + rng.normal(0, 0.008, len(bins))
    length = 0.15 + 0.012 * energy + 0.05 * distance + rng.normal(0, 0.02, len(bins))
    time = 2 + 0.2 * energy + rng.normal(0, 1.0, len(bins))
    return [[f"{value:.4f}" for value in row] for row in zip(size, width, length, distance, time, strict=True)]


def _write(path: Path, header: Sequence[str], rows: Iterable[Sequence[Any]], rng: np.random.Generator) -> None:
    """Write rows in random order."""
    rows = list(rows)
    with path.open("w", encoding="utf-8", newline="") as stream:
        writer = csv.writer(stream, lineterminator="\n")
        writer.writerow(header)
        writer.writerows(rows[i] for i in rng.permutation(len(rows)))
