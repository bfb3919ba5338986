"""Groups that a column of a file names, in their own type and order, however the file is read."""

import datetime as dt
import re
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from ordinalq.contract.summary import Summary
from ordinalq.files.cells import as_words, dates, is_words, where
from ordinalq.files.names import MISSING_WORDS
from ordinalq.keys import Keys
from ordinalq.samples import Samples

if TYPE_CHECKING:
    import pandas as pd

# A longer name is that of a wrong column.
MAX_NAME = 100_000

WHOLE_NUMBER = re.compile(r"-?(?:0|[1-9]\d{0,17})")
NUMBER = re.compile(r"-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?")
ISO_DAY = re.compile(r"\d{4}-\d{2}-\d{2}")

# Names of periods of time, which sort as the periods follow one another; a week is that of ISO 8601.
PERIODS = {"year": "%Y", "quarter": "%Y-Q", "month": "%Y-%m", "week": "%G-W%V", "day": "%Y-%m-%d"}


class GroupColumn:
    """The groups of rows that come in portions.

    In a text file a value is a word, and what kind of words they are is known at the end: the samples of a portion have
    words for keys, and `typed` makes them whole numbers, numbers, dates or true and false where all are. Parquet
    columns have a type of their own.

    Parameters
    ----------
    by : str
        The column, or a column of dates and a period, such as "date:month".
    format : str
        Format of the file.
    """

    def __init__(self, by: str, format: str) -> None:  # noqa: A002
        column, _, period = by.rpartition(":")
        is_period = bool(column) and period in PERIODS
        self.name = column if is_period else by
        self.period = period if is_period else None
        self._native = format == "parquet" and not is_period
        # JSON tells strings from numbers; in the other files all cells are words, and so are periods.
        self._tells_strings = format == "jsonl" and not is_period
        self._has_strings = False

    def samples(self, frame: "pd.DataFrame", y: Any = None, classes: Any = None) -> Samples:
        """Return the groups of the rows of a portion; with labels y (N,), samples with prevalences."""
        import pandas as pd

        if self.period is not None:
            column = pd.Series(_periods(frame, self.name, self.period), dtype=object, name=self.name)
            return Samples.from_groups(column, y, classes=classes, missing=True)
        column = frame[self.name]
        if not self._native or (is_words(column) and _are_strings(column)):
            values = as_words(column)
            self._has_strings |= any(isinstance(value, str) for value in column.dropna().unique())
            column = pd.Series([_known(word) for word in values], dtype=object, name=self.name)
            longest = max((len(word) for word in column.dropna().unique()), default=0)
            if longest > MAX_NAME:
                raise ValueError(
                    f"{where(frame)}: expected names of groups in column {self.name!r}, got one of {longest:,} "
                    "characters; is it the right column?"
                )
        return Samples.from_groups(column, y, classes=classes, missing=True)

    def typed(self, summary: Summary) -> Summary:
        """Return the summary of all portions with keys of the type that all words have, in the order of that type."""
        if summary.keys is None:
            return summary
        order, keys = self.order(summary.keys)
        return summary.regrouped(np.argsort(order), keys)

    def order(self, keys: Keys) -> tuple[npt.NDArray[np.intp], Keys]:
        """Return the order (B,) of keys by the type that all words have, and the keys of that type in that order."""
        as_they_are = np.arange(len(keys)), keys
        if self._native or (self._tells_strings and self._has_strings):
            return as_they_are
        values = _values([word for word in keys.tolist() if word is not None])
        if values is None:
            return as_they_are
        order = np.append(np.argsort(values, kind="stable"), [len(values)] * keys.has_missing).astype(np.intp)
        return order, _keys(values, keys)


def _periods(frame: "pd.DataFrame", name: str, period: str) -> list[str | None]:
    """Return the period that each row's date is in, as words (N,); times count in UTC."""
    times = dates(frame, name).dt
    words = times.strftime(PERIODS[period]).astype("string")
    if period == "quarter":
        words += times.quarter.astype("Int64").astype("string")
    return [word if known else None for word, known in zip(words, words.notna(), strict=True)]


def _are_strings(column: "pd.Series[Any]") -> bool:
    """Say whether all values are strings; a column of objects may also hold dates."""
    return all(isinstance(value, str) for value in column.dropna().unique())


def _keys(values: Any, old: Keys) -> Keys:
    """Return sorted values as keys, with a missing one at the end if there was one."""
    import pandas as pd

    column = pd.Series([*values.tolist(), None] if old.has_missing else values, name=old.name)
    if old.has_missing and values.dtype.kind in "ib":
        column = column.astype("Int64" if values.dtype.kind == "i" else "boolean")
    keys, _ = Keys.of(column)
    return keys


def _known(word: str | None) -> str | None:
    """Return a word, None where it stands for a missing value: an empty cell, or "NA" and the like."""
    return None if not word or word in MISSING_WORDS else word


def _values(words: Iterable[str]) -> Any:
    """Return words as an array of the type that all of them have; None where they are just words.

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
