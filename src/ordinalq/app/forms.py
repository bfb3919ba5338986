"""Form fields of the web app: parsing and suggested values."""

import math
import re
from collections.abc import Mapping, Sequence

from ordinalq.app.uploads import RequestError
from ordinalq.app.work import MAX_COMPARED, Choices, PredictOptions
from ordinalq.classifiers.stacking import BUDGETS
from ordinalq.inference.options import ESTIMANDS
from ordinalq.quantifiers.catalog import catalog
from ordinalq.samples.keys import PERIODS, with_period
from ordinalq.tables.preview import NESTED, ColumnPreview, TablePreview

Fields = Mapping[str, Sequence[str]]

# Uses of a column other than the detected one.
OUT = "out"
FORCED = ("text", "category")
# Further columns have their detected use.
MAX_SHOWN = 200
ENCODINGS = ("utf-8", "cp1252", "latin-1", "utf-16")
QUOTING = {"auto": "detect", "minimal": "quotes enclose cells", "none": "quotes are ordinary characters"}
LEVELS = (0.8, 0.9, 0.95, 0.99)
# Names that columns of labels, and of groups, often have.
LIKE_TARGET = re.compile(r"stars?|rating|overall|score|label|target|class|grade|level|satisf|happ", re.IGNORECASE)


def one(fields: Fields, name: str, default: str = "") -> str:
    """Return the value of a field that occurs once."""
    values = fields.get(name, [default])
    if len(values) != 1:
        raise RequestError(f"the field {name!r} must have one value, got {len(values)}.")
    return values[0]


def choice(fields: Fields, name: str, allowed: Sequence[str], default: str) -> str:
    """Return the value of a field with a list of choices."""
    value = one(fields, name, default)
    if value not in allowed:
        raise RequestError(f"{name!r} must be one of the choices, got {value[:60]!r}.")
    return value


def number(fields: Fields, name: str, default: float) -> float:
    """Return the value of a field that is a positive number."""
    text = one(fields, name, f"{default:g}")
    try:
        value = float(text)
    except ValueError as error:
        raise RequestError(f"{name!r} must be a number, got {text[:60]!r}.") from error
    if not 0 < value < math.inf:
        raise RequestError(f"{name!r} must be a number above 0, got {text[:60]!r}.")
    return value


def columns_of(preview: TablePreview) -> list[str]:
    """Return the names of the columns."""
    return [column.name for column in preview.columns]


def likely_target(preview: TablePreview) -> str:
    """Return the column that probably holds the labels, "" if none may."""
    able = [column for column in preview.columns if column.may_be_target]
    named = [column for column in able if LIKE_TARGET.search(column.name)]
    numbers = [column for column in able if column.is_numeric]
    return next((column.name for column in (*named, *reversed(numbers), *reversed(able))), "")


def likely_weight(preview: TablePreview) -> str:
    """Return the column that probably holds weights, "" if there is none."""
    return next((column.name for column in preview.columns if column.reason == "a weight"), "")


def possible_uses(column: ColumnPreview) -> list[str]:
    """Return the possible uses of a column, the detected one first."""
    if column.kind == NESTED:
        return [OUT]
    found = column.kind or OUT
    return list(dict.fromkeys([OUT if column.reason else found, found, *FORCED, OUT]))


def current_use(column: ColumnPreview, last: Choices | None) -> str:
    """Return the last use of a column, or the detected one."""
    if last is None or not (last.text or last.features):
        return possible_uses(column)[0]
    if column.name in last.text:
        return "text"
    if column.name in last.categories:
        return "category"
    return column.kind if column.name in last.features else OUT


def read_choices(fields: Fields, preview: TablePreview) -> Choices:
    """Return the options for fitting a model.

    If all columns have their detected use, none is named, as on the command line.
    """
    target = choice(fields, "target", columns_of(preview), "")
    by, weight = (choice(fields, name, ["", *columns_of(preview)], "") or None for name in ("by", "weight"))
    wanted = {
        column.name: choice(fields, f"use.{i}", possible_uses(column), possible_uses(column)[0])
        for i, column in enumerate(preview.columns)
        if column.name not in (target, by, weight)
    }
    kinds = {column.name: column.kind or OUT for column in preview.columns}
    usual = {column.name: possible_uses(column)[0] for column in preview.columns}
    text: tuple[str, ...] = ()
    features: tuple[str, ...] = ()
    categories: tuple[str, ...] = ()
    if any(use != usual[name] for name, use in wanted.items()):
        text = tuple(name for name, use in wanted.items() if use == "text")
        features = tuple(name for name, use in wanted.items() if use not in ("text", OUT))
        categories = tuple(name for name, use in wanted.items() if use == "category" and kinds[name] != use)
        if not text and not features:
            raise RequestError("all columns are left out. Choose a use for at least one column.")
    method = choice(fields, "method", ["", *(entry.name for entry in catalog())], "") or None
    budget = choice(fields, "budget", ["", *BUDGETS], "") or None
    if budget is not None and method is not None:
        raise RequestError("only the default method has a budget. Choose the default method, or the default budget.")
    return Choices(
        target,
        by,
        weight,
        text,
        features,
        categories,
        _classes(fields, preview.column(target)),
        method,
        budget,
        skip_unlabelled=bool(one(fields, "skip")),
        tidy_groups=bool(one(fields, "tidy")),
    )


def _classes(fields: Fields, column: ColumnPreview | None) -> tuple[str, ...]:
    """Return the classes in the chosen order; none for numbers in ascending order."""
    known = [] if column is None else [word for word, _ in column.words]
    given = [known[int(text)] for text in fields.get("class", []) if text.isdigit() and int(text) < len(known)]
    if not given and column is not None and column.is_numeric:
        return ()
    if sorted(given) != sorted(known):
        raise RequestError("the classes do not match the target column. Choose the target again.")
    return () if column is not None and column.is_numeric and given == known else tuple(given)


def periods_of(preview: TablePreview) -> list[tuple[str, list[tuple[str, str]]]]:
    """Return the columns of dates, each with its periods and their names in `by`."""
    found = []
    for column in preview.columns:
        kind, _, style = column.kind.partition(":")
        if kind == "date":
            end = f":{style}" if style else ""
            found.append((column.name, [(f"{column.name}:{period}{end}", period) for period in PERIODS]))
    return found


def read_options(fields: Fields, preview: TablePreview) -> PredictOptions:
    """Return the options for estimates."""
    groups = [*columns_of(preview), *(by for _, names in periods_of(preview) for by, _ in names)]
    by = tuple(filter(None, (choice(fields, name, ["", *groups], "") for name in ("by", "and"))))
    if len({with_period(one)[0] for one in by}) < len(by):
        raise RequestError("both columns of groups are the same. Choose two different columns, or one.")
    labels, weight = (choice(fields, name, ["", *columns_of(preview)], "") or None for name in ("labels", "weight"))
    level = float(choice(fields, "level", [f"{level:g}" for level in LEVELS], "0.95"))
    estimand = choice(fields, "estimand", ("", *ESTIMANDS), "")
    return PredictOptions(by, labels, weight, level, estimand, bool(one(fields, "tidy")))


def rows_of(fields: Fields, n_rows: int) -> list[int]:
    """Return the rows of groups to compare."""
    rows = [int(text) for text in fields.get("group", []) if text.isdigit() and len(text) < 10]
    rows = list(dict.fromkeys(row for row in rows if row < n_rows))
    if not 2 <= len(rows) <= MAX_COMPARED:
        raise RequestError(
            f"a comparison must have 2 to {MAX_COMPARED} groups, got {len(rows)}. Select the groups in the table."
        )
    return rows
