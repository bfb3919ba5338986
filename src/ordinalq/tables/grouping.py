"""Groups and labels in the columns of a table."""

import datetime as dt
import re
import warnings
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd

from ordinalq._utils.text import first_of, nearest
from ordinalq._utils.validation import Array, Index
from ordinalq.io.columns import (
    MISSING_WORDS,
    as_pandas,
    as_words,
    coded_words,
    date_style,
    dates,
    is_missing,
    is_words,
    place,
    short,
    source_name,
)
from ordinalq.samples.keys import PERIODS, UNNAMED, Column, Keys, with_period
from ordinalq.samples.labels import MAX_LABELS, check_label_count
from ordinalq.samples.samples import Samples
from ordinalq.samples.summary import Summary
from ordinalq.tables.scales import known_order

# The key of all rows as one group.
WHOLE = "all"
# The format of a frame in memory.
FRAME = "frame"
# Names of more groups are not compared unless they are to be merged, which takes a second for a million.
MOST_CHECKED = 100_000
# Labels are questioned if their rows are one, or at most this part of those of the largest class, which has this many.
FEW, MANY = 0.01, 20
# Common labels that make a scale.
MIN_SCALE = 3
# A longer name is that of a wrong column.
MAX_NAME = 100_000

WHOLE_NUMBER = re.compile(r"-?(?:0|[1-9]\d{0,17})")
NUMBER = re.compile(r"-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?")
ISO_DAY = re.compile(r"\d{4}-\d{2}-\d{2}")


By = str | Sequence[str]


class GroupColumn:
    """One of the columns that name the groups of rows, which come in chunks.

    In a text file a value is a word, and what kind of words they are is known at the end: the samples of a chunk have
    words for keys, and `typed` makes them whole numbers, numbers, dates or true and false where all are. Parquet
    columns keep their type, and so do those of a frame in memory. `by` is the column, or a
    column of dates and a period, such as "date:month", and a format, as "date:month:%m/%d/%Y".
    """

    def __init__(self, by: str, format: str) -> None:  # noqa: A002
        self.name, self.period, self.style = with_period(by)
        self._as_is = format == FRAME and self.period is None
        self._native = format == "parquet" and self.period is None
        # JSON tells strings from numbers; in the other files all cells are words, and so are periods.
        self._tells_strings = format == "jsonl" and self.period is None
        self.has_strings = False

    def read(self, frame: pd.DataFrame) -> "pd.Series[Any]":
        """Return the values of the rows of a chunk, (N,)."""
        if self.period is not None:
            return periods(as_pandas(frame), self.name, self.period, self.style)
        column = frame[self.name]
        if self._as_is or (self._native and not (is_words(column) and _are_strings(column))):
            return column
        codes, words = coded_words(column)
        known = [None if is_missing(word) else word for word in words]
        longest = max((len(word) for word in known if word is not None), default=0)
        if longest > MAX_NAME:
            raise ValueError(
                f"{source_name(frame)}: expected names of groups in column {self.name!r}, got one of {longest:,} "
                "characters; is it the right column?"
            )
        # Words that were different may be equal without spaces, and so may whole numbers as programs write them.
        place, distinct = pd.factorize(np.array(known, dtype=object))
        values = pd.Categorical.from_codes(np.append(place, -1)[codes], pd.Index(distinct, dtype=object))
        return pd.Series(values, name=self.name)

    def strings(self, frame: pd.DataFrame) -> bool:
        """Return whether the column has strings in some rows of a chunk."""
        return self._tells_strings and any(isinstance(value, str) for value in frame[self.name].dropna().unique())

    def typed(self, words: Column) -> Any:
        """Return the values of all groups (B,), of the type that all words have."""
        if self._native or self._as_is or (self._tells_strings and self.has_strings):
            return words.index
        codes, distinct = pd.factorize(words.index)
        values = _values(distinct.tolist())
        if values is None:
            return words.index
        # A type that can represent a missing value, if there is one.
        kind = {"i": "Int64", "b": "boolean", "f": "float64"}.get(values.dtype.kind, "object")
        column = pd.Series(values[codes], dtype=kind) if (codes < 0).any() else pd.Series(values[codes])
        column[codes < 0] = None
        return column


class Grouping:
    """Groups of rows that arrive in chunks, by one column or several.

    Without columns, all rows are one group.
    """

    def __init__(self, by: By | None, format: str = FRAME) -> None:  # noqa: A002
        self.columns = [] if by is None else [GroupColumn(one, format) for one in as_list(by)]
        # Those whose type the file has.
        self.native = [column.name for column in self.columns] if format == "parquet" else []

    @property
    def names(self) -> list[str]:
        """The columns to read."""
        return [column.name for column in self.columns]

    def strings(self, frame: pd.DataFrame) -> tuple[bool, ...]:
        """Return for each column whether it has strings in some rows of a chunk."""
        return tuple(column.strings(frame) for column in self.columns)

    def record_strings(self, strings: Sequence[bool]) -> None:
        """Take note of the strings that a chunk had."""
        for column, had in zip(self.columns, strings, strict=True):
            column.has_strings |= had

    def values(self, frame: pd.DataFrame) -> dict[str, Any]:
        """Return the values of each column in the rows of a chunk, by its name."""
        if not self.columns:
            return {UNNAMED: np.full(len(frame), WHOLE, dtype=object)}
        return {column.name: column.read(frame) for column in self.columns}

    def samples(self, frame: pd.DataFrame, y: Any = None, classes: Any = None) -> Samples:
        """Return the groups of the rows of a chunk.

        With labels y (N,), the samples have prevalences.
        """
        return Samples.from_groups(self.values(frame), y, classes=classes, missing=True)

    def typed(self, summary: Summary) -> Summary:
        """Return the summary of all chunks with typed keys, in their order.

        The type is that of all words.
        """
        assert summary.keys is not None
        order, keys = self.order(summary.keys)
        return summary.regrouped(np.argsort(order), keys)

    def order(self, keys: Keys) -> tuple[Index, Keys]:
        """Return the order (B,) of keys by their common type, and the typed keys.

        The typed keys are in this order.
        """
        if not self.columns:
            return np.arange(len(keys)), keys
        pairs = zip(self.columns, keys.columns, strict=True)
        found, codes = Keys.of({words.name: column.typed(words) for column, words in pairs})
        native = [old.native for old in keys.columns]
        columns = [replace(new, native=kind) for new, kind in zip(found.columns, native, strict=True)]
        return np.argsort(codes), Keys(columns)


def spellings(keys: Keys, n_items: Any) -> Index:
    """Return the position of the largest group of equal name for each, (B,).

    Names are equal if they differ only in case and blanks. Groups by several columns are the same if their names in
    each column are.
    """
    largest: dict[tuple[str, ...], int] = {}
    names = zip(*(column.labels() for column in keys.columns), strict=True)
    folded = [tuple(" ".join(label.casefold().split()) for label in name) for name in names]
    for b, name in enumerate(folded):
        if name not in largest or n_items[b] > n_items[largest[name]]:
            largest[name] = b
    return np.array([largest[name] for name in folded], dtype=np.intp)


def merge_spellings(keys: Keys, n_items: Any, tidy_groups: bool) -> tuple[Index, Index]:
    """Return the new number of each group (B,), and the kept old numbers.

    Groups whose names differ only in case and blanks are merged into the largest of them. Without `tidy_groups` every
    group keeps its number, and a warning counts the groups that would be merged.
    """
    all_groups = np.arange(len(keys))
    if len(keys) > MOST_CHECKED and not tidy_groups:
        return all_groups, all_groups
    target = spellings(keys, n_items)
    kept = np.unique(target)
    if tidy_groups:
        return np.searchsorted(kept, target), kept
    if len(kept) < len(target):
        labels, b = keys.labels(), int(np.flatnonzero(target != all_groups)[0])
        warnings.warn(
            f"the {len(target):,} groups of {keys.name!r} are {len(kept):,} if case and blanks do not count, such as "
            f"{labels[target[b]]!r} and {labels[b]!r}. Use tidy_groups=True to merge them.",
            UserWarning,
            stacklevel=3,
        )
    return all_groups, all_groups


def merge_groups_by_spelling(summary: Summary, tidy_groups: bool) -> Summary:
    """Return the summary of merged groups, see :func:`merge_spellings`.

    They have the name of the largest of them.
    """
    assert summary.keys is not None
    rows, kept = merge_spellings(summary.keys, summary.n_items, tidy_groups)
    return summary if len(kept) == len(rows) else summary.regrouped(rows, summary.keys[kept])


def merge_samples_by_spelling(samples: Samples, tidy_groups: bool) -> Samples:
    """Return the samples of merged groups, see :func:`merge_spellings`."""
    assert samples.keys is not None
    rows, kept = merge_spellings(samples.keys, samples.sizes, tidy_groups)
    if len(kept) == len(rows):
        return samples
    codes = np.empty(samples.n_items, dtype=np.intp)
    codes[samples.items] = np.repeat(rows, samples.sizes)
    merged = Samples.from_groups(codes)
    merged.keys = samples.keys[kept]
    return merged


def as_list(by: By) -> list[str]:
    """Return the columns of groups; no two may be the same."""
    found = [by] if isinstance(by, str) else list(by)
    names = [with_period(one)[0] for one in found]
    if not found or len(set(names)) < len(names):
        raise ValueError(f"by must name one column, or several that differ, got {found}.")
    return found


def names_of(by: By | None) -> list[str]:
    """Return the names of the columns of groups."""
    return [] if by is None else [with_period(one)[0] for one in as_list(by)]


def periods(frame: pd.DataFrame, name: str, period: str, style: str = "") -> "pd.Series[Any]":
    """Return the period of each row's date, as words (N,).

    Times are in UTC. Without a style, the position of the day before or after the month is determined from the rows of
    the frame, as in training.
    """
    times = dates(frame, name, style or date_style(frame, name, f"{name}:{period}:%m/%d/%Y")).dt
    words = times.strftime(PERIODS[period]).astype("string")
    if period == "quarter":
        words += times.quarter.astype("Int64").astype("string")
    known = [word if there else None for word, there in zip(words, words.notna(), strict=True)]
    return pd.Series(known, dtype=object, name=name)


def _are_strings(column: "pd.Series[Any]") -> bool:
    """Return whether all values are strings; a column of objects may also hold dates."""
    if isinstance(column.dtype, pd.StringDtype):
        return True
    return all(isinstance(value, str) for value in column.dropna().unique())


def _values(words: Iterable[str]) -> Any:
    """Return words as an array of their common type, or None if they are text.

    >>> _values(["10", "9"]), _values(["2024-01-31"]), _values(["true", "false"]), _values(["007", "8"])
    (array([10,  9]), array([datetime.date(2024, 1, 31)], dtype=object), array([ True, False]), None)
    """
    words = list(words)
    if not words:
        return None
    if all(WHOLE_NUMBER.fullmatch(word) for word in words):
        return np.array([int(word) for word in words], dtype=np.int64)
    if all(NUMBER.fullmatch(word) for word in words):
        numbers = np.array([float(word) for word in words])
        return numbers if np.isfinite(numbers).all() and len(np.unique(numbers)) == len(words) else None
    if {word.lower() for word in words} <= {"true", "false"} and len({word.istitle() for word in words}) == 1:
        return np.array([word.lower() == "true" for word in words])
    if all(ISO_DAY.fullmatch(word) for word in words):
        try:
            return np.array([dt.date.fromisoformat(word) for word in words], dtype=object)
        except ValueError:  # no such day
            return None
    return None


# Labels in a column of a table: as numbers or words, in the order of their classes.


# More numbers among the labels than this, and the words are mistakes.
MOSTLY = 0.5


def check_by(by: Sequence[str], target: str) -> None:
    """Raise an error if a column of groups contains the labels.

    Each group would have a single class.
    """
    if target in by:
        raise ValueError(f"by must name the column of the groups, got that of the labels, {target!r}.")


def labelled_rows(
    frame: pd.DataFrame, target: str, classes: Sequence[Any] | None, skip_unlabelled: bool
) -> tuple[pd.DataFrame, Array, int, Sequence[Any] | None]:
    """Return the rows that have a label, with labels and classes.

    The result has the rows, their labels as numbers or words, the number of rows without a label, and the classes.
    Labels are in the column `target`. Rows without a label are an error, or skipped. The classes are in ascending
    order. Numbers and words of common scales need none.
    """
    words = as_words(frame[target])
    absent = {None, "", *MISSING_WORDS} - set(as_words(classes or ()))
    missing = np.array([word in absent for word in words])
    if missing.all():
        raise ValueError(f"{source_name(frame)}: column {target!r} has no labels at all.")
    if missing.any() and not skip_unlabelled:
        at = int(missing.argmax())
        got = repr(words[at]) if words[at] else "nothing"
        raise ValueError(
            f"{place(frame, frame.index[at])}: expected a label in column {target!r}, got {got} "
            f"({missing.sum():,} of {len(frame):,} rows); fill it, or use "
            f"skip_unlabelled=True{', or name it in classes=[...]' if words[at] else ''}."
        )
    rows = frame[~missing]
    rows.attrs |= frame.attrs
    kept = np.array([word for word in words if word not in absent], dtype=object)
    if classes is None and len(distinct := set(kept.tolist())) <= MAX_LABELS:
        classes = known_order(distinct)
        _check_unusual_labels(rows, target, kept, classes)
    y = _label_values(rows, target, classes, kept)
    if classes is not None:
        known = set(parsed_classes(classes, y).tolist())
        strange = np.array([label not in known for label in y.tolist()])
        if strange.any():
            at = int(strange.argmax())
            raise _unknown_label(rows, at, target, classes, kept[at])
    return rows, y, int(missing.sum()), classes


def _check_unusual_labels(rows: pd.DataFrame, target: str, words: Array, order: Sequence[str] | None) -> None:
    """Raise ValueError if a rare label does not fit the scale of the others.

    Such a label occurs in very few rows.
    """
    if order is not None:
        return
    counts = Counter(words.tolist())
    most = max(counts.values())
    if most < MANY:
        return
    rare = [word for word, count in counts.items() if count <= max(1, FEW * most)]
    common = [word for word in counts if word not in rare]
    strange = [word for word in rare if not _fits(word, common)]
    if len(common) < MIN_SCALE or not strange:
        return
    at = int(np.isin(words, strange).argmax())
    found = ", ".join(f"{short(word)} ({counts[word]:,})" for word in strange[:5])
    raise ValueError(
        f"{place(rows, rows.index[at])}: column {target!r} has labels of very few rows that do not fit the others: "
        f"{found}, of {len(words):,} rows. Correct them, or give all classes in order, classes=[...]."
    )


def _fits(word: str, common: Sequence[str]) -> bool:
    """Return whether a rare label can belong to the scale of the common labels.

    Words must be of the same known scale. Numbers fit equal steps if they are at a step between the others or next to
    them, or whole numbers from 0 to 10. Labels fit if the common ones are not of a known scale.

    >>> numbers = ["1", "2", "3", "4", "5"]
    >>> [_fits(word, numbers) for word in ("55", "0", "6", "10", "4.5", "fvie")]
    [False, True, True, True, False, False]
    >>> _fits("hapy", ["unhappy", "neutral", "happy"]), _fits("blue", ["red", "green", "grey"])
    (False, True)
    """
    numbers = pd.to_numeric(pd.Series([word, *common]), errors="coerce").to_numpy(dtype=np.float64)
    value, others = numbers[0], np.unique(numbers[1:])
    if np.isnan(others).any():
        return known_order(common) is None or known_order([*common, word]) is not None
    steps = np.diff(others)
    if not len(steps) or not np.allclose(steps, steps[0]):
        return True
    place_of = (value - others[0]) / steps[0]
    is_step = np.isclose(place_of, np.round(place_of))
    return bool(is_step and (-1.01 < place_of < len(others) + 0.01 or (steps[0] == 1 and 0 <= value <= 10)))


def known_labels(frame: pd.DataFrame, column: str, classes: Array) -> Array:
    """Return the labels in a column of a chunk as classes of the model (N,).

    Rows without a label have None.
    """
    known = dict(zip(as_words(classes), classes.tolist(), strict=True))
    words = as_words(frame[column])
    absent = {None, "", *MISSING_WORDS} - set(known)
    strange = next((i for i, word in enumerate(words) if word not in absent and word not in known), None)
    if strange is not None:
        raise _unknown_label(frame, strange, column, classes, words[strange])
    return np.array([known.get(word) for word in words], dtype=object)


def _unknown_label(frame: pd.DataFrame, at: int, column: str, classes: Iterable[Any], label: Any) -> ValueError:
    """Return the error for a label of a row that is not a class."""
    names = [str(one) for one in classes]
    return ValueError(
        f"{place(frame, frame.index[at])}: column {column!r} has a label that is not among the classes "
        f"{', '.join(names)}: {short(label)}{nearest(str(label), names) or '.'}"
    )


def _label_values(rows: pd.DataFrame, target: str, classes: Sequence[Any] | None, words: Array) -> Array:
    """Return labels as numbers where all of them are such, else as words."""
    numbers = pd.to_numeric(pd.Series(words), errors="coerce").to_numpy(dtype=np.float64)
    unreadable = ~np.isfinite(numbers)
    if not unreadable.any():
        y: Array = numbers.astype(np.int64) if (numbers == np.round(numbers)).all() else numbers
        if classes is None:
            advice = f"make at most {MAX_LABELS} classes of it first"
            check_label_count(f"{source_name(rows)}: column {target!r}", len(np.unique(y)), advice)
        return y
    if classes is None and (~unreadable).mean() > MOSTLY:
        at = int(unreadable.argmax())
        raise ValueError(
            f"{place(rows, rows.index[at])}: expected a number in column {target!r}, as in most "
            f"rows, got {short(words[at])}; correct it, or give all classes in order, classes=[...]."
        )
    if classes is None:
        distinct = sorted(set(words.tolist()))
        if len(distinct) == 1:
            raise ValueError(
                f"{source_name(rows)}: column {target!r} must have at least 2 classes, got {short(distinct[0])} in all "
                "rows."
            )
        if len(distinct) > MAX_LABELS:
            raise ValueError(
                f"{source_name(rows)}: column {target!r} has {len(distinct):,} different values, too many for classes. "
                "Use the column of the labels."
            )
        some = first_of([word[:40] for word in distinct])
        raise ValueError(
            f"{source_name(rows)}: column {target!r} has labels without an order ({some}): "
            "give all of them in ascending order, classes=[...]."
        )
    return words.astype(str)


def parsed_classes(classes: Any, y: Array) -> Any:
    """Return the given classes as labels of the type of `y`, or None.

    The result is None if no classes are given.
    """
    if classes is None:
        return None
    words = as_words(classes)
    if y.dtype.kind == "U":
        return np.array(words, dtype=str)
    try:
        numbers = np.array([float(word or "nan") for word in words])
    except ValueError:
        return np.array(words, dtype=str)  # then no label is among them, which the caller says
    return numbers.astype(np.int64) if y.dtype.kind == "i" and (numbers == np.round(numbers)).all() else numbers
