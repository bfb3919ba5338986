"""Terminal output: tables, bars and progress."""

import sys
import textwrap
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import numpy as np

from ordinalq._utils.text import (
    GAP,
    MAX_ROWS,
    MIN_WIDTH,
    Bold,
    counted,
    cut,
    first_of,
    percent,
    plain,
    screen,
    shortened,
    table,
)
from ordinalq.cli.options import QUIET, print_lines, with_option_names

if TYPE_CHECKING:
    import pandas as pd

    from ordinalq.inference.estimates import Estimates
    from ordinalq.inference.model import Smoothing
    from ordinalq.model_selection.compare import MethodComparison
    from ordinalq.quantifiers.base import Quantifier
    from ordinalq.samples.keys import Keys

# More bar charts than this say less than a file does.
MAX_CHARTS = 6

# Beside the number of items of a group that has one.
SINGLE = " *"

# Columns of a kind that `fit` names; --json has all.
COLUMNS = 10
# Characters of a word before what it announces.
WORD = 11
# Reasons of columns that have another use.
ROLES = ("the target", "the group", "the weight")
# Seconds after which progress is shown.
PATIENCE = 2.0
# Characters of what is being done next to a bar.
DESCRIPTION = 30


def prevalences(estimates: "Estimates") -> None:
    """Print one row per group, in percent, as wide as the terminal allows.

    Only names of groups are cut.
    """
    shown = estimates.take(slice(MAX_ROWS))
    bounds, marks = shown.bounds, _marks(estimates)
    groups = key_columns(shown.keys, len(shown))
    # Energies of thousands need no digits after the point.
    digits = 2 if (largest := np.abs(shown.mean).max(initial=0.0)) < 100 else 1 if largest < 1000 else 0
    means = [f"{mean:.{digits}f}" for mean in shown.mean]
    if bounds is not None:
        ends = zip(means, bounds.mean_lower, bounds.mean_upper, strict=True)
        means = [f"{mean} ({low:.{digits}f} to {high:.{digits}f})" for mean, low, high in ends]
    items = {"items": [f"{n:,}{SINGLE if n == 1 else ''}" for n in shown.n_items]}
    last = {estimates.scale.name: means, **({"fit": marks[: len(shown)]} if marks else {})}
    others = [*list(groups.items())[1:], *items.items(), *last.items()]
    # What is left next to 8 characters of the first name and all other columns.
    room = screen().width - MIN_WIDTH - sum(GAP + max(map(len, [name, *cells])) for name, cells in others)
    classes, sign, legend = _class_columns(estimates, shown.prevalences, room)
    apart = sum(GAP + max(map(len, [name, *cells])) for name, cells in classes.items()) > room
    how: dict[str, Any] = {"left": len(groups), "total": len(estimates)}
    how["hint"] = "; --out writes all, --top 20 shows the largest"
    if apart:
        _print({**groups, **items, **last}, **how)
        print_lines("")
        for part in _parts(classes, screen().width - len(groups) * (MIN_WIDTH + GAP)):
            _print({**groups, **part}, **how)
    else:
        _print({**groups, **items, **classes, **last}, **how)
    _print_level(estimates)
    if legend:
        sentences(f"classes: {legend}")
    if not sign:
        print_lines("class prevalences in percent")
    if estimates.keys is not None and (shown.n_items == 1).any():
        print_lines(f"{SINGLE.strip()} a single item: its estimate is very uncertain")


def _print_level(estimates: "Estimates") -> None:
    """Print the level of the intervals, and their estimand if it is the population."""
    provenance = estimates.provenance
    population = provenance is not None and provenance.estimand == "population"
    if provenance is not None and provenance.level is not None and estimates.bounds is not None:
        whose = " for the population of each group, not only for these rows" if population else ""
        print_lines(f"{percent(provenance.level)} intervals{whose}")
    elif population:
        print_lines("estimates of the population of each group, not only of these rows")


def _print(columns: Mapping[str, Sequence[str]], **how: Any) -> None:
    table([*columns], [*zip(*columns.values(), strict=True)], **how)


def _class_columns(estimates: "Estimates", P: Any, room: int) -> tuple[dict[str, list[str]], str, str]:
    """Return the widest columns of prevalences (B, n) that fit, and a legend.

    Signs give way first, then the distance between classes, then their names, which a legend explains. If nothing fits
    the narrowest columns are returned.
    """
    names = [plain(str(label)) for label in estimates.classes]
    numbers = [str(i) for i in range(1, len(names) + 1)]
    legend = ", ".join(map(" = ".join, zip(numbers, names, strict=True)))
    kinds = [(names, "%", False), (names, "", False), (names, "", True), (numbers, "", False), (numbers, "", True)]
    if max(map(len, names)) <= max(map(len, numbers)):
        kinds = kinds[:3]
    for heads, sign, tight in kinds:
        cells = [[f"{100 * p:.0f}{sign}" for p in column] for column in P.T]
        columns = dict(zip(heads, cells, strict=True))
        if tight:
            width = max(map(len, [*heads, *(cell for column in cells for cell in column)]))
            lines = [" ".join(cell.rjust(width) for cell in line) for line in (heads, *zip(*cells, strict=True))]
            columns = {lines[0]: lines[1:]}
        if sum(GAP + max(map(len, [head, *column])) for head, column in columns.items()) <= room:
            break
    else:
        columns = dict(zip(heads, cells, strict=True))
    return columns, sign, legend if heads is numbers else ""


def _parts(columns: Mapping[str, list[str]], room: int) -> Iterator[dict[str, list[str]]]:
    """Yield columns in parts that fit."""
    part: dict[str, list[str]] = {}
    used = 0
    for name, cells in columns.items():
        width = GAP + max(map(len, [name, *cells]))
        if part and used + width > room:
            yield part
            part, used = {}, 0
        part[name], used = cells, used + width
    yield part


def sentences(text: str) -> None:
    """Print sentences, broken at words where the terminal ends."""
    for line in text.split("\n"):
        # Lines go on where their text began; an empty line stays one.
        margin = " " * (len(line) - len(line.lstrip()))
        how: dict[str, Any] = {"break_on_hyphens": False, "subsequent_indent": margin and margin + "  "}
        for part in textwrap.wrap(plain(line), screen().width, **how) or [""]:
            print_lines(part)


def labelled(word: str, text: str) -> None:
    """Print a word and the text that it announces, broken at words next to it."""
    width = max(20, screen().width - WORD)
    for i, line in enumerate(textwrap.wrap(plain(text), width, break_on_hyphens=False) or [""]):
        print_lines(f"{'' if i else word + ':':<{WORD}}{line}")


def next_step(text: str) -> None:
    """Print the next step in one line, so that a command can be copied."""
    print_lines(f"{'next:':<{WORD}}{plain(text)}")


def columns(used: Mapping[str, str], unused: Mapping[str, str]) -> None:
    """Print the used columns by kind, and the unused columns by reason."""
    roles: dict[str, list[str]] = {}
    for name, kind in used.items():
        roles.setdefault(kind.partition(":")[0], []).append(name)
    if not unused:
        labelled("columns", "; ".join(f"{first_of(names, COLUMNS)} ({kind})" for kind, names in roles.items()))
        return
    for name, reason in unused.items():
        text = with_option_names(reason, {"by": "--by"})
        roles.setdefault(text if reason in ROLES else f"not used: {text}", []).append(name)
    table(
        ("columns", "used as"), [(first_of(names, COLUMNS), role) for role, names in roles.items()], left=2, wrap=True
    )


def print_other_groups(estimates: "Estimates", n_groups: int) -> None:
    """State how many of all groups are in the last row, if these are."""
    from ordinalq.inference.predict import OTHER

    if n_groups > len(estimates) or _labels(estimates)[-1:] == [OTHER]:
        rest = n_groups - len(estimates) + 1
        print_lines(f"{OTHER}: {rest:,} more group{'s' * (rest != 1)}, {estimates.n_items[-1]:,} items, as one")


def assumption(estimates: "Estimates") -> None:
    """Print the assumption about groups that differ from the training groups."""
    from ordinalq.inference.provenance import ASSUMED, PARTS

    groups = "" if estimates.provenance is None else estimates.provenance.groups
    if PARTS in groups or ASSUMED in groups:
        sentences(groups)


def basis(estimates: "Estimates") -> None:
    """State what estimates with labels rest on."""
    if estimates.basis is None or estimates.n_labelled is None:
        return
    if all_labelled(estimates):
        sentences(
            "every row has a label, so the labels are counted. To estimate the rows from which they were drawn, pass "
            "the table of all these rows."
        )
        return
    alone, some = int((estimates.basis == "labels").sum()), int((estimates.n_labelled > 0).sum())
    known = counted(int(estimates.n_labelled.sum()), "item")
    text = f"labels of {known} in {some:,} of {counted(len(estimates), 'group')}"
    if alone:
        text += f"; {_rest(alone)} on the labels alone, valid even if the model is wrong"
    if some > alone:
        text += f"; {_rest(some - alone)} on the model"
        text += " (--basis labels: on the labels alone, if there are ten)"
    sentences(text)


def all_labelled(estimates: "Estimates") -> bool:
    """Return whether every item has a label."""
    return estimates.n_labelled is not None and bool((estimates.n_labelled == estimates.n_items).all())


def _rest(n: int) -> str:
    return f"{counted(n, 'estimate')} {'rests' if n == 1 else 'rest'}"


def verdict(estimates: "Estimates") -> None:
    """State whether all groups together differ from the training groups."""
    if estimates.verdict:
        sentences(estimates.verdict)


def evaluation(errors: "pd.DataFrame", protocol: str, n_classes: int, unit: str, *, verbose: bool) -> None:
    """Print the errors on samples that were drawn, and their meaning.

    With `verbose` also NMD, RNOD and the names of methods.
    """
    drawn = f"{errors.attrs['n_samples']:,} samples from {errors.attrs['n_items']:,} items"
    print_lines(f"errors (mean ± standard deviation) on {drawn}, protocol {protocol}")
    records = errors.to_dict("records")
    measures = ("nmd", "rnod") if verbose else ()
    rows = []
    for name, row in zip(_estimate_names(records, verbose=verbose), records, strict=True):
        off, spread = (n_classes - 1) * row["nmd"], (n_classes - 1) * row["nmd_std"]
        cells = [f"{row[measure]:.4f} ± {row[f'{measure}_std']:.4f}" for measure in measures]
        rows.append((name, f"{off:.2f} ± {spread:.2f}", *cells))
    table(("estimate", f"distance\n({unit})", *(measure.upper() for measure in measures)), rows)
    distance(records[0], n_classes, unit)


def _estimate_names(records: Sequence[Mapping[Any, Any]], *, verbose: bool) -> list[str]:
    """Return the names of estimates: of methods if `verbose`, else words."""
    from ordinalq.tables.evaluate import NOTHING_CHANGED, WORDS

    names: list[str] = [row["estimate"] for row in records]
    words = WORDS | {NOTHING_CHANGED: NOTHING_CHANGED}
    return names if verbose else ["this model", *(words[name] for name in names[1:])]


def distance(row: Mapping[Any, Any], n_classes: int, unit: str) -> None:
    """Print the error of the model as a distance in classes."""
    sentences(
        f"Items must be moved by {(n_classes - 1) * row['nmd']:.2f} {unit} on average to make the estimate of this "
        "model exact."
    )


def expected(errors: Mapping[Any, float], n_classes: int, unit: str) -> None:
    """State what the errors to expect (NMD) mean."""
    known = {size: (n_classes - 1) * error for size, error in errors.items() if np.isfinite(error)}
    of = [f"in {size if isinstance(size, str) else f'samples of {size}'}" for size in known]
    if known:
        first, *others = [f"{off:.2f}" for off in known.values()]
        said = [f"{first} {unit} per item {of[0]}", *map(" ".join, zip(others, of[1:], strict=True))]
        labelled("expected", f"off by {', '.join(said)}")


def evaluation_of_groups(errors: "pd.DataFrame", by: str, n_classes: int, unit: str, *, verbose: bool) -> None:
    """Print the errors on groups, how often intervals hold, and the verdict.

    With `verbose` also NMD and the names of methods.
    """
    facts, records = errors.attrs, errors.to_dict("records")
    single = f", {facts['n_single']:,} of a single item" if facts["n_single"] else ""
    groups = counted(facts["n_samples"], "group")
    print_lines(f"mean errors on {groups} of {counted(facts['n_items'], 'item')}, by {by}{single}")
    rows = []
    for name, row in zip(_estimate_names(records, verbose=verbose), records, strict=True):
        cells = [f"{(n_classes - 1) * row[key]:.2f}" for key in ("nmd", "nmd_by_items")]
        cells += [f"{row[key]:.2f}" for key in ("mean_class", "mean_class_by_items")]
        rows.append((name, *cells, *([f"{row['nmd']:.4f}"] if verbose else [])))
    # Values of classes that are not one apart are in no unit that is known.
    mean, steps = facts["mean_name"], unit if facts["steps_of_one"] else ""
    headers = ["estimate", f"distance\n({unit})", "by items", f"{mean}\n({steps})" if steps else mean, "by items"]
    table([*headers, *(["NMD"] if verbose else [])], rows)
    model = records[0]
    sentences(
        f"{percent(facts['level'])} intervals of this model contain {percent(model['covered'], 0)} of the "
        f"true prevalences, with a mean width of {model['width']:.3f}, and {percent(model['mean_class_covered'], 0)} "
        "of the true means"
    )
    print_lines(f"the {mean} is off by {model['mean_class']:.2f}{steps and f' {steps}'} on average")
    sentences(facts["verdict"])


def methods(compared: "MethodComparison", unit: str) -> None:
    """Print the errors of several methods, the best first."""
    print_lines(f"mean errors on {compared.samples}, on the scores of the model's classifier")
    rows = []
    for row in compared.rows():
        p = "" if row["method"] == compared.best else "< 0.001" if row["p_value"] < 0.001 else f"{row['p_value']:.3f}"
        distance = f"{(compared.n_classes - 1) * row['mean']:.2f}"
        name = Bold(row["method"]) if row["as_good"] else row["method"]
        rows.append((name, f"{row['mean']:.4f} ± {row['std']:.4f}", distance, f"{row['ratio']:.2f}", p))
    headers = ("method", compared.measure.upper(), f"distance\n({unit})", "times the\nbest", "p against\nthe best")
    table(headers, rows)
    sentences(compared.sentence())


def charts(estimates: "Estimates") -> None:
    """Print a bar chart of each group, if there are few."""
    if len(estimates) > MAX_CHARTS:
        return
    titles = shortened([plain(f"{_name(estimates)} {label}") for label in _labels(estimates)], screen().width - 16)
    for b, (title, n) in enumerate(zip(titles, estimates.n_items, strict=True)):
        title += " (a single item)" if n == 1 else ""
        bars(title if len(estimates) > 1 else "", estimates.take([b]))


def bars(title: str, estimate: "Estimates") -> None:
    """Print one bar per class of a single estimate, with intervals if present."""
    console = screen()
    if title:
        console.print(f"\n{plain(title)}", overflow="ellipsis", no_wrap=True)
    else:
        console.print()
    names = [plain(str(label)) for label in estimate.classes]
    width = min(24, max(map(len, names)))
    room = max(10, min(50, console.width - width - 28))
    p = estimate.prevalences[0]
    for i, name in enumerate(shortened(names, width)):
        line = f"  {name:>{width}}  {_bar(float(p[i]), room)} {100 * p[i]:3.0f}%"
        if estimate.bounds is not None:
            line += f"  ({100 * estimate.lower[0, i]:.0f} to {100 * estimate.upper[0, i]:.0f})"
        console.print(line, overflow="crop", no_wrap=True)


def _marks(estimates: "Estimates") -> list[str]:
    """Return the fit of each sample in doubt, else a blank; [] if all are good."""
    found = estimates.fit
    if found is None or (usual := np.isin(found, ["good", "too few items"])).all():
        return []
    marks: list[str] = np.where(usual, "", found).tolist()
    return marks


def fit(estimates: "Estimates", *, has_groups: bool, only_misfits: bool = False) -> bool:
    """Print the number of samples with a bad fit, and advice.

    Return whether there are any. With `only_misfits`, nothing is printed if there are none.
    """
    tested = 0 if estimates.fit is None else int((estimates.fit != "too few items").sum())
    if estimates.fit is None or not tested:
        return False
    marked = tested - int((estimates.fit == "good").sum())
    like = "the training groups" if has_groups else "a mixture of the training classes"
    groups = f"{counted(tested, 'group')} with enough items"
    if len(estimates) == 1:
        who = "the table"
    else:
        who = f"{marked:,} of {groups}" if marked else f"{'all ' * (tested > 1)}{groups}"
    single = len(estimates) == 1 or (marked or tested) == 1
    if not marked and only_misfits:
        return False
    if not marked:
        caveat = "" if has_groups or estimates.basis is not None else " (no proof: see fit --by)"
        sentences(f"fit: {who} look{'s' * single} like {like}{caveat}")
        return False
    remedy = "label some of their items" if has_groups else "train with --by COLUMN, or label some of their items"
    sentences(f"fit: {who} {'does' if single else 'do'} not look like {like}: {remedy}")
    return True


def smoothing_of(quantifier: "Quantifier") -> "Smoothing | None":
    """Return the strength of smoothing, or None."""
    found = quantifier.smoothing()
    return None if found is None or found.value == 0 else found


def smoothing(quantifier: "Quantifier") -> None:
    """Note that a method smooths."""
    if smoothing_of(quantifier) is not None:
        print_lines(
            "note: this method smooths: it prefers distributions without jumps between classes; its intervals "
            "include the bias on held-out samples",
            err=True,
        )


def key_columns(keys: "Keys | None", n_groups: int) -> dict[str, list[str]]:
    """Return the columns of groups by name; without groups, one blank column."""
    if keys is None:
        return {"": [""] * n_groups}
    return {column.name: column.labels() for column in keys.columns}


def _labels(estimates: "Estimates") -> list[str]:
    return [""] * len(estimates) if estimates.keys is None else estimates.keys.labels()


def _name(estimates: "Estimates") -> str:
    return "" if estimates.keys is None else estimates.keys.name


def _bar(part: float, room: int) -> str:
    """Draw a bar of `part` of the room, in eighths of a character.

    >>> _bar(0.5, 4) + "|"
    '██  |'
    """
    eighths = round(8 * room * min(max(part, 0.0), 1.0))
    full, rest = divmod(eighths, 8)
    return ("█" * full + (" ▏▎▍▌▋▊▉"[rest] if rest else "")).ljust(room)


@contextmanager
def working(what: str) -> Iterator[None]:
    """Show progress on the terminal after two seconds."""
    if not _is_interactive():
        yield
        return
    from rich.console import Console
    from rich.progress import (
        BarColumn,
        Progress,
        ProgressColumn,
        SpinnerColumn,
        TextColumn,
        TimeElapsedColumn,
        TimeRemainingColumn,
    )
    from rich.text import Text

    from ordinalq._utils.progress import ProgressHandler

    progress = ProgressHandler()

    class StepColumn(ProgressColumn):
        def render(self, task: Any) -> Text:
            """Return the current step as text, for each refresh of the screen."""
            display.update(task.id, completed=progress.part)
            return Text(f"{progress.part:4.0%} {progress.what}", no_wrap=True, overflow="ellipsis")

    names = (SpinnerColumn(), TextColumn("{task.description}", markup=False), BarColumn(12))
    times = (TimeElapsedColumn(), TimeRemainingColumn())
    display = Progress(*names, *times, StepColumn(), console=Console(stderr=True), transient=True)
    display.add_task(cut(plain(what), DESCRIPTION), total=1.0)
    timer = threading.Timer(PATIENCE, display.start)
    timer.start()
    try:
        with progress:
            yield
    finally:
        timer.cancel()
        timer.join()
        display.stop()


def _is_interactive() -> bool:
    """Return whether the output is a terminal and --quiet was not given."""
    return sys.stderr.isatty() and not QUIET.get()


def percentages(p: Any, classes: Sequence[Any]) -> str:
    """Return a distribution as one line.

    >>> percentages([0.25, 0.5, 0.25], [1, 2, 3])
    '1: 25%, 2: 50%, 3: 25%'
    """
    return ", ".join(f"{label}: {100 * x:.0f}%" for label, x in zip(classes, np.asarray(p), strict=True))
