"""What is in a table, before anything is done with it: first rows, kinds of columns, their values."""

from collections import Counter
from typing import Any, NamedTuple

import numpy as np

from ordinalq.io.columns import MISSING_WORDS, UNNAMED, as_words, column_kinds, is_words
from ordinalq.io.table import Table
from ordinalq.samples.labels import MAX_LABELS, MIN_CLASSES

# Rows and characters of a cell that are shown.
SHOWN_ROWS = 20
SHOWN_CELL = 200
NESTED = "nested"
# Rows and characters by which the kind of a column is guessed.
KIND_ROWS, KIND_CELL = 5000, 1000
# A column with more different values has no classes; gaps, and numbers written in two ways, are not counted yet.
ENOUGH = 2 * MAX_LABELS


class ColumnPreview(NamedTuple):
    """A column of a table.

    Its kind is one of :mod:`ordinalq.io.columns`, "" for a column of no use, such as identifiers, "nested" for one
    of lists. The words are its values with how often each occurs, in the order of numbers if all are, else of their
    appearance; none where they are too many for classes. They are of the whole table if it was read as a whole.
    """

    name: str
    kind: str
    words: tuple[tuple[str, int], ...]
    n_missing: int  # cells without a value, or with a word such as NA

    @property
    def is_numeric(self) -> bool:
        """Whether the values are numbers, whose order is known."""
        return all(_number(word) is not None for word, _ in self.words)

    @property
    def may_be_target(self) -> bool:
        """Whether the values may be classes."""
        return MIN_CLASSES <= len(self.words) <= MAX_LABELS


class TablePreview(NamedTuple):
    """The first rows of a table as text, its columns, and its number of rows (None: only the first were read)."""

    columns: tuple[ColumnPreview, ...]
    rows: tuple[tuple[str, ...], ...]
    n_rows: int | None

    def column(self, name: str) -> ColumnPreview | None:
        """Return a column by its name."""
        return next((column for column in self.columns if column.name == name), None)


def preview_table(file: Table, *, whole: bool = False) -> TablePreview:
    """Look at a table; all of it, to know the values of columns that may hold the labels, or only the first portion."""
    counters: dict[str, Counter[str | None] | None] = {}
    kinds: dict[str, str] = {}
    rows: tuple[tuple[str, ...], ...] = ()
    names: list[str] = []
    n_rows = 0
    for frame in file.portions(nested=True):
        if not n_rows:
            names = [str(name) for name in frame.columns if name not in UNNAMED]
            kinds = {name: _kind(frame, name) for name in names}
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
    columns = tuple(_column(name, kinds[name], counters[name]) for name in names)
    return TablePreview(columns, rows, n_rows if whole else None)


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
    """Return how often each word occurs, None for a gap; nothing where they are too many, or lists and the like."""
    try:
        counts = column.value_counts(dropna=False, sort=False)
        if len(counts) > ENOUGH:
            return None
        words = as_words(counts.index)
    except (TypeError, ValueError):
        return None
    found: Counter[str | None] = Counter()
    for word, count in zip(words, counts.tolist(), strict=True):
        found[word if word and word not in MISSING_WORDS else None] += count
    return found


def _column(name: str, kind: str, counter: "Counter[str | None] | None") -> ColumnPreview:
    if counter is None:
        return ColumnPreview(name, kind, (), 0)
    missing = counter.pop(None, 0)
    values = [(word, count) for word, count in counter.items() if word is not None]
    if all(_number(word) is not None for word, _ in values):
        values.sort(key=lambda pair: float(pair[0]))
    return ColumnPreview(name, kind, tuple(values) if len(values) <= MAX_LABELS else (), missing)


def _number(word: str) -> float | None:
    try:
        return float(word)
    except ValueError:
        return None


def _shown(value: Any) -> str:
    """Return a cell as text, cut where it is long.

    >>> _shown(None), _shown(float("nan")), _shown(1.0), _shown("x" * 300)[-3:]
    ('', '', '1.0', 'xx…')
    """
    if value is None or (isinstance(value, float) and value != value):
        return ""
    text = str(value)
    return text if len(text) <= SHOWN_CELL else f"{text[: SHOWN_CELL - 1]}…"
