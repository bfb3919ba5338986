"""Preview of a table, and labels that users return."""

from collections import Counter
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from ordinalq.io.columns import UNNAMED, as_words, column_kinds, is_missing, is_words, require_columns, short
from ordinalq.io.table import Table
from ordinalq.samples.labels import MAX_LABELS, MIN_CLASSES
from ordinalq.tables.predictors import is_like_group, unused_reason
from ordinalq.tables.scales import known_order

# Rows and characters of a cell that are shown.
SHOWN_ROWS = 20
SHOWN_CELL = 200
NESTED = "nested"
# Rows and characters by which the kind of a column is guessed.
KIND_ROWS, KIND_CELL = 5000, 1000
# A column with more different values has no classes; missing values and equal numbers are not yet removed.
ENOUGH = 2 * MAX_LABELS


class ColumnPreview(NamedTuple):
    """A column of a table.

    Its kind is one of :mod:`ordinalq.io.columns`, "" for a column of no use, such as identifiers, "nested" for one
    of lists. `reason` states why it is not learned from by default, "" if it is. The words are its values with how
    often each occurs, in the order of numbers or of a common scale if all are, else of their appearance; none where
    they are too many for classes. They are of the whole table if it was read as a whole.
    """

    name: str
    kind: str
    words: tuple[tuple[str, int], ...]
    n_missing: int  # cells without a value, or with a word such as NA
    reason: str = ""

    @property
    def is_numeric(self) -> bool:
        """Whether the values are numbers, whose order is known."""
        return all(_number(word) is not None for word, _ in self.words)

    @property
    def has_order(self) -> bool:
        """Whether the values have an order: numbers, or words of a common scale."""
        return self.is_numeric or known_order([word for word, _ in self.words]) is not None

    @property
    def may_be_target(self) -> bool:
        """Whether the values may be classes."""
        return MIN_CLASSES <= len(self.words) <= MAX_LABELS


class TablePreview(NamedTuple):
    """First rows of a table as text, its columns, and its number of rows.

    The number is None if only the first rows were read. `sheets` are the names of the sheets of a workbook.
    """

    columns: tuple[ColumnPreview, ...]
    rows: tuple[tuple[str, ...], ...]
    n_rows: int | None
    sheets: tuple[str, ...] = ()

    def column(self, name: str) -> ColumnPreview | None:
        """Return a column by its name."""
        return next((column for column in self.columns if column.name == name), None)


def likely_group(preview: TablePreview, target: str = "") -> str:
    """Return the column whose name suggests groups, or ""."""
    kinds = ("category", "text", "number")
    able = [column for column in preview.columns if column.kind in kinds and column.name != target]
    return next((column.name for column in able if is_like_group(column.name)), "")


def preview_table(file: Table, *, whole: bool = False) -> TablePreview:
    """Preview a table.

    With `whole`, the whole table is read to find the values of columns that may contain the labels. Otherwise only the
    first chunk is read.
    """
    counters: dict[str, Counter[str | None] | None] = {}
    kinds: dict[str, str] = {}
    reasons: dict[str, str] = {}
    rows: tuple[tuple[str, ...], ...] = ()
    names: list[str] = []
    n_rows = 0
    for frame in file.chunks(nested=True):
        if not n_rows:
            names = [str(name) for name in frame.columns if name not in UNNAMED]
            kinds = {name: _kind(frame, name) for name in names}
            reasons = {name: unused_reason(name, kinds[name], frame[name]) for name in names}
            rows = tuple(
                tuple(_shown(value) for value in row) for row in frame[names].head(SHOWN_ROWS).to_numpy(object)
            )
        n_rows += len(frame)
        for name in names:
            counter = counters.setdefault(name, Counter())
            if counter is not None and name in frame.columns:
                more = _counted(frame[name])
                counters[name] = None if more is None or len(both := counter + more) > ENOUGH else both
        if not whole:
            break
    columns = tuple(_column(name, kinds[name], counters[name])._replace(reason=reasons[name]) for name in names)
    return TablePreview(columns, rows, n_rows if whole else None, tuple(file.files[0].sheets()))


def _kind(frame: Any, name: str) -> str:
    """Return the kind of a column by its first values; "" where it cannot be told."""
    if any(hasattr(value, "__len__") and not isinstance(value, str) for value in frame[name].head(SHOWN_ROWS)):
        return NESTED
    first = frame[[name]].head(KIND_ROWS).copy()
    if is_words(first[name]):
        cut = [value[:KIND_CELL] if isinstance(value, str) else value for value in first[name].tolist()]
        first[name] = np.array(cut, dtype=object)
    try:
        return column_kinds(first, [name]).get(name, "")
    except ValueError:  # mistakes in it: to be told when it is used
        return ""


def _counted(column: Any) -> Counter[str | None] | None:
    """Return the count of each word, with None for a missing value.

    The result is None if there are too many words, or if cells are lists or objects.
    """
    try:
        counts = column.value_counts(dropna=False, sort=False)
        if len(counts) > ENOUGH:
            return None
        words = as_words(counts.index)
    except (TypeError, ValueError):
        return None
    found: Counter[str | None] = Counter()
    for word, count in zip(words, counts.tolist(), strict=True):
        found[None if is_missing(word) else word] += count
    return found


def _column(name: str, kind: str, counter: "Counter[str | None] | None") -> ColumnPreview:
    if counter is None:
        return ColumnPreview(name, kind, (), 0)
    missing = counter.pop(None, 0)
    values = [(word, count) for word, count in counter.items() if word is not None]
    if all(_number(word) is not None for word, _ in values):
        values.sort(key=lambda pair: float(pair[0]))
    elif len(values) <= MAX_LABELS and (order := known_order([word for word, _ in values])) is not None:
        values.sort(key=lambda pair: order.index(pair[0]))
    return ColumnPreview(name, kind, tuple(values) if len(values) <= MAX_LABELS else (), missing)


def _number(word: str) -> float | None:
    try:
        return float(word)
    except ValueError:
        return None


def _shown(value: Any) -> str:
    """Return a cell as text, shortened if it is long.

    >>> _shown(None), _shown(float("nan")), _shown(1.0), _shown("x" * 300)[-3:]
    ('', '', '1.0', 'xx…')
    """
    if value is None or (isinstance(value, float) and value != value):
        return ""
    text = str(value)
    return text if len(text) <= SHOWN_CELL else f"{text[: SHOWN_CELL - 1]}…"


# Labels that come back: rows that were drawn and labelled, joined to the table that they are from.


# Names that `rows_to_label` gives the column of places, which is the first one.
PLACES = ("line", "row", "line of the file", "row of the file")
# Rows are those of the table if at least this share of their common cells agrees; spreadsheet programs write some
# numbers and dates in another way.
AGREE = 0.5


class ReturnedLabels:
    """Labels of rows of a table, by the line (or row, in Parquet) that they are in.

    They are in the column `target` of what :func:`ordinalq.tables.label_plan.rows_to_label` gave; rows without one are
    left out. A file is read with them if it is filled in by them, see :class:`ordinalq.io.table.TableFile`.
    """

    def __init__(self, file: Table, target: str) -> None:
        frame = file.read()
        require_columns(frame.columns, [target], file.name)
        place = str(frame.columns[0])
        if place not in PLACES:
            raise ValueError(
                f"{file.name}: expected the rows that were drawn, whose first column is 'line' or 'row', got {place!r}."
            )
        self.name = file.name
        self.target = target
        words = as_words(frame[target])
        self.labels: dict[int, str] = {}
        for number, word in zip(as_words(frame[place]), words, strict=True):
            if number is None or not number.isdecimal():
                raise ValueError(f"{file.name}: expected a number in column {place!r}, got {short(number)}.")
            if word and not is_missing(word):
                self.labels[int(number)] = word
        if not self.labels:
            raise ValueError(f"{file.name}: column {target!r} has no labels: fill it first.")
        others = frame.drop(columns=[place, target])
        others.index = [int(number) for number in as_words(frame[place]) if number is not None]
        self._rows = others
        self._seen: set[int] = set()
        self._same = self._compared = 0

    def values(self, frame: pd.DataFrame) -> list[str | None]:
        """Return the column of labels of a chunk (N,), new and existing ones."""
        here = [label for label in frame.index.tolist() if label in self.labels]
        self._seen.update(here)
        shared = [name for name in self._rows.columns if name in frame.columns]
        if here and shared:
            for name in shared:
                ours, theirs = frame.loc[here, name], self._rows.loc[here, name]
                if ours.dtype.kind == "f":  # read as numbers, which are written in many ways
                    theirs = pd.to_numeric(theirs, errors="coerce").astype(ours.dtype)
                pairs = zip(as_words(ours), as_words(theirs), strict=True)
                self._same += sum((a or "") == (b or "") for a, b in pairs)
                self._compared += len(here)
        known = as_words(frame[self.target]) if self.target in frame.columns else [None] * len(frame)
        return [self.labels.get(label, old) for label, old in zip(frame.index.tolist(), known, strict=True)]

    def check(self) -> None:
        """Raise an error if labels belong to another table.

        The method is called when all chunks have been read.
        """
        if self._same < AGREE * self._compared:
            raise ValueError(f"{self.name}: its rows are not those of the table: draw the rows to label again.")
        lost = self.labels.keys() - self._seen
        if lost:
            raise ValueError(f"{self.name}: {len(lost):,} of its rows are not in the table, such as {min(lost)}.")
