"""Keys of groups, in the types and the order of the user, and periods of time."""

import datetime as dt
import hashlib
import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pandas as pd

from ordinalq._utils.validation import Array, Counts, Index, Mask

# How people are shown the group of the items that name none.
MISSING = "(missing)"
# The default name of the column of groups.
UNNAMED = "group"
# Between the values of several columns, as people read them.
AND = ", "
# Units of time that polars has.
UNITS = ("D", "ms", "us", "ns")


@dataclass(frozen=True, eq=False)
class Column:
    """One value for each of B groups."""

    index: "pd.Index[Any]"  # (B,) values of the type of the user's column
    name: str = UNNAMED  # that of the user's column
    native: Any = None  # NumPy or polars type that it had before pandas took it; None where pandas has it

    def take(self, rows: Any) -> "Column":
        """Return the values of some rows.

        Parameters
        ----------
        rows : ndarray
            Positions or mask.

        Returns
        -------
        column : Column
            Values of these rows.
        """
        return replace(self, index=self.index[rows])

    def tolist(self) -> list[Any]:
        """Return the values as plain objects, None where missing."""
        missing = self.index.isna()
        return [None if absent else value for absent, value in zip(missing, self.index.tolist(), strict=True)]

    def labels(self) -> list[str]:
        """Return the values as people read them."""
        return [MISSING if value is None else _text(value) for value in self.tolist()]

    def whole_labels(self) -> list[str]:
        """Return the labels, with whole floats as integers.

        pandas turns integers into floats if some are missing.
        """
        values = self.tolist()
        whole = [str(int(one)) if isinstance(one, float) and one.is_integer() else None for one in values]
        return [label if one is None else one for one, label in zip(whole, self.labels(), strict=True)]

    def to_numpy(self) -> Array:
        """Return the values as an array.

        The type is the original one if that was a type of NumPy.
        """
        return self.index.to_numpy(dtype=self.native if isinstance(self.native, np.dtype) else None)

    def polars(self) -> Any:
        """Return the values as a polars series.

        The type is the original one if that was a type of polars.
        """
        import polars as pl

        if self.native is not None and not isinstance(self.native, np.dtype):
            return pl.Series(self.name, self.tolist()).cast(self.native)
        if self.index.dtype.kind != "M":
            return pl.Series(self.name, self.tolist())
        if self.native is None:
            return pl.from_pandas(self.index).rename(self.name)
        array = self.to_numpy()
        # Polars has no other units.
        return pl.Series(self.name, array if np.datetime_data(array.dtype)[0] in UNITS else array.astype("M8[us]"))

    def matches(self, value: Any) -> Mask:
        """Return which rows have a value, (B,).

        Parameters
        ----------
        value : object
            Value to find.

        Returns
        -------
        mask : ndarray (B,)
            True for equal values.
        """
        if value is None:  # not every type finds it by this name
            return np.asarray(self.index.isna())
        found = np.zeros(len(self.index), dtype=bool)
        found[self.index.get_loc(value)] = True
        return found


class Keys:
    """B distinct groups, sorted.

    Groups are distinguished by the values of several columns together, and sorted by the first column first. Ordered
    categories keep their order. A missing value comes last.
    """

    def __init__(self, columns: Sequence[Column]) -> None:
        self.columns = tuple(columns)

    @classmethod
    def of(cls, groups: Any) -> tuple["Keys", Index]:
        """Return the distinct groups of N items, and the group position of each item.

        The values are array-like or a series (N,), or several in a frame or dict (N, k). Missing values such as None
        and NaN are a separate value.

        Parameters
        ----------
        groups : array-like (N,), frame or dict (N, k)
            Group of each item.

        Returns
        -------
        keys, codes : Keys, ndarray (N,)
            Distinct groups in sorted order, and the position of each item's group.

        Examples
        --------
        >>> keys, codes = Keys.of(["pen", "ink", "pen"])
        >>> keys.tolist(), codes.tolist()
        (['ink', 'pen'], [1, 0, 1])
        >>> keys, codes = Keys.of({"ware": ["pen", "ink", "pen"], "year": [2024, 2025, 2023]})
        >>> keys.tolist(), codes.tolist()
        ([('ink', 2025), ('pen', 2023), ('pen', 2024)], [2, 0, 1])
        """
        if groups is None or isinstance(groups, str):
            raise TypeError(
                f"groups must be one value per item, got {groups!r:.60}; give the column itself, not its name."
            )
        parts = [_distinct(column, name) for name, column in _columns(groups).items()]
        if len({len(codes) for _, codes in parts}) > 1:
            raise ValueError(f"groups must have columns of one length, got {[len(codes) for _, codes in parts]}.")
        codes = parts[0][1]
        if len(parts) == 1:
            return cls([parts[0][0]]), codes
        # Numbers of pairs of the groups so far and the values of the next column, in their order; made dense again
        # each time, they are no larger than the square of the number of items.
        for column, values in parts[1:]:
            _, codes = np.unique(codes * len(column.index) + values, return_inverse=True)
        _, first = np.unique(codes, return_index=True)
        return cls([column.take(values[first]) for column, values in parts]), codes

    @classmethod
    def merged(cls, parts: Sequence["Keys"]) -> tuple["Keys", list[Index]]:
        """Return the union of several sets of keys, and the positions of each set.

        Parameters
        ----------
        parts : list of Keys
            Keys with the same columns.

        Returns
        -------
        keys, positions : Keys, list of ndarray
            All groups, and the positions of those of each part.
        """
        first = parts[0]
        if all(first.same(part) for part in parts[1:]):
            return first, [np.arange(len(first))] * len(parts)
        together = {}
        for j, column in enumerate(first.columns):
            values = column.index
            for part in parts[1:]:
                _check_kinds(column.index, part.columns[j].index)
                values = values.append(part.columns[j].index)
            together[column.name] = values
        try:
            keys, codes = cls.of(together)
        except TypeError as error:
            raise TypeError("groups must be of one kind in all chunks; make them strings.") from error
        ends = np.cumsum([len(part) for part in parts])
        native = [
            column.native if all(part.columns[j].native == column.native for part in parts) else None
            for j, column in enumerate(first.columns)
        ]
        columns = [replace(column, native=kind) for column, kind in zip(keys.columns, native, strict=True)]
        return cls(columns), np.split(codes, ends[:-1])

    def same(self, other: "Keys") -> bool:
        """Return whether other keys are these, of the same types.

        Parameters
        ----------
        other : Keys
            Other keys.

        Returns
        -------
        found : bool
            True if values and types are equal.
        """
        pairs = [(a.index, b.index) for a, b in zip(self.columns, other.columns, strict=True)]
        return all(a.equals(b) and a.dtype == b.dtype for a, b in pairs)

    def __len__(self) -> int:
        return len(self.columns[0].index)

    def __getitem__(self, rows: Any) -> "Keys":
        """Return the keys of some rows."""
        return Keys([column.take(rows) for column in self.columns])

    def __contains__(self, group: Any) -> bool:
        try:
            self.position(group)
        except (KeyError, TypeError):
            return False
        return True

    @property
    def names(self) -> list[str]:
        """Name of each column."""
        return [column.name for column in self.columns]

    @property
    def name(self) -> str:
        """The names of all columns, as people read them."""
        return AND.join(self.names)

    @property
    def missing(self) -> Mask:
        """Groups that have a missing value, (B,)."""
        return np.asarray(np.any([column.index.isna() for column in self.columns], axis=0))

    def position(self, group: Any) -> int:
        """Return the row of a group.

        The group is a value, or a tuple of one value of each column. The error for an unknown group lists some groups.

        Parameters
        ----------
        group : object or tuple
            Value of the group; a tuple for several columns.

        Returns
        -------
        row : int
            Position.
        """
        parts = group if isinstance(group, tuple) and len(self.columns) > 1 else (group,)
        if len(parts) != len(self.columns):
            raise KeyError(f"a group of {self.name} must be a tuple of {len(self.columns)} values, got {group!r}")
        try:
            found = [column.matches(value) for column, value in zip(self.columns, parts, strict=True)]
            rows = np.flatnonzero(np.all(found, axis=0))
        except (KeyError, TypeError, ValueError):
            rows = np.zeros(0, dtype=np.intp)
        if len(rows) == 0:
            shown = ", ".join(map(repr, self[:5].tolist()))
            raise KeyError(
                f"{self.name} {group!r} is not among the {len(self)} groups {shown}{', ...' * (len(self) > 5)}"
            )
        if len(rows) > 1:
            raise TypeError(f"a group must be one value, got {group!r}.")
        return int(rows[0])

    def positions(self, some: "Keys") -> Index:
        """Return the rows of some of these groups, (k,).

        Parameters
        ----------
        some : Keys
            Groups that are among these.

        Returns
        -------
        rows : ndarray (k,)
            Positions.
        """
        _, (of_all, of_some) = Keys.merged([self, some])
        rows = np.empty(len(self), dtype=np.intp)
        rows[of_all] = np.arange(len(self))
        return np.asarray(rows[of_some])

    def to_numpy(self) -> Array:
        """Return the values as an array, shape (B,).

        See :meth:`Column.to_numpy`. For several columns the values are tuples.
        """
        if len(self.columns) == 1:
            return self.columns[0].to_numpy()
        tuples = np.empty(len(self), dtype=object)
        tuples[:] = self.tolist()
        return tuples

    def tolist(self) -> list[Any]:
        """Return the values as plain objects, None if missing.

        For several columns the values are tuples.
        """
        lists = [column.tolist() for column in self.columns]
        return lists[0] if len(lists) == 1 else list(zip(*lists, strict=True))

    def labels(self) -> list[str]:
        """Return the groups as people read them."""
        words = zip(*(column.labels() for column in self.columns), strict=True)
        return [AND.join(filter(None, parts)) if len(parts) > 1 else parts[0] for parts in words]

    def hashes(self, names: Sequence[str]) -> npt.NDArray[np.uint64]:
        """Return hashes of the values of some columns as text, shape (B,).

        They are the same on all machines.

        Parameters
        ----------
        names : list of str
            Columns.

        Returns
        -------
        hashes : ndarray (B,)
            Unsigned integers of 64 bits.
        """
        columns = {column.name: column.whole_labels() for column in self.columns}
        words = zip(*(columns[name] for name in names), strict=True)
        digests = [hashlib.blake2b(json.dumps(row).encode(), digest_size=8).digest() for row in words]
        return np.frombuffer(b"".join(digests), dtype="<u8").astype(np.uint64)

    def frame(self, prefix: str = "") -> dict[str, "pd.Index[Any]"]:
        """Return the columns for a frame of pandas, by their names.

        Parameters
        ----------
        prefix : str, default=""
            Prefix of the names of the columns.

        Returns
        -------
        columns : dict of str to pandas.Index
            One entry per column.
        """
        return {prefix + column.name: column.index for column in self.columns}


def is_polars(value: Any) -> bool:
    """Return whether a frame or a series is one of polars."""
    return type(value).__module__.partition(".")[0] == "polars"


def _columns(groups: Any) -> Mapping[str, Any]:
    """Return the columns of groups by their names."""
    if len(getattr(groups, "shape", ())) == 2 and hasattr(groups, "columns"):
        columns = {str(name): groups[name] for name in groups.columns}
        if len(columns) < len(groups.columns):
            raise ValueError("groups must have columns of different names.")
    elif isinstance(groups, Mapping):
        columns = {str(name): column for name, column in groups.items()}
    else:
        given = getattr(groups, "name", None)
        return {str(given) if given is not None and str(given) else UNNAMED: groups}
    if not columns:
        raise ValueError("groups must have at least one column, got none.")
    return columns


def _distinct(groups: Any, name: str) -> tuple[Column, Index]:
    """Return the distinct values of a column (N,), sorted, and the items' positions.

    The position of an item is that of its value.
    """
    try:
        column, native = _column(groups)
        codes, values = _factorized(column)
        if values.dtype == object:
            for value in values:
                _check_text(value)
    except UnicodeError as error:
        raise _not_text(groups, name) from error
    values, rank = _sorted(pd.Index(values))
    missing = codes < 0
    if missing.any():
        values = values.append(pd.Index([None], dtype=_nullable(values.dtype)))
        codes = np.where(missing, len(rank), codes)
        rank = np.append(rank, len(rank))
    return Column(values, name, native), rank[codes]


def _factorized(column: "pd.Index[Any]") -> tuple[Index, "pd.Index[Any]"]:
    """Return the code of each value, -1 if missing, and the distinct values.

    The distinct values of unordered categories are the categories that occur. Their order has no meaning: the values
    are sorted later.
    """
    if not isinstance(column, pd.CategoricalIndex) or column.ordered:
        codes, values = pd.factorize(column)
        return codes, pd.Index(values)
    present = np.unique(column.codes[column.codes >= 0])
    position = np.full(len(column.categories) + 1, -1)
    position[present] = np.arange(len(present))
    return position[column.codes], column.categories[present]


def _check_text(value: Any) -> None:
    """Raise UnicodeError if a string has half of a character, or bytes are not UTF-8."""
    if isinstance(value, str):
        value.encode()
    elif isinstance(value, bytes):
        value.decode()


def _not_text(groups: Any, name: str) -> ValueError:
    """Return the error that names the first group that is not Unicode text."""
    for row, value in enumerate(groups):
        try:
            _check_text(value)
        except UnicodeError:
            shown = ascii(bytes(value) if isinstance(value, bytes) else value)[:60]
            return ValueError(f"groups must be Unicode text, got {shown} in row {row} of {name!r}.")
    return ValueError(f"groups must be Unicode text in {name!r}.")


def _column(groups: Any) -> tuple["pd.Index[Any]", Any]:
    """Return a column as a pandas index, and its original type if different."""
    native = None
    if is_polars(groups):
        native = groups.dtype
        if type(native).__name__ == "Enum":
            kind = pd.CategoricalDtype(native.categories.to_list(), ordered=True)
            return pd.Index(groups.to_list(), dtype=kind), native
        groups = groups.to_numpy()
    if not hasattr(groups, "dtype"):
        # As objects: NumPy would turn numbers and missing values among words into words.
        words = any(isinstance(value, str) for value in groups)
        groups = np.asarray(groups, dtype=object if words else None)
    if np.ndim(groups) != 1 or len(groups) == 0:
        raise ValueError(
            "groups must be a one-dimensional array with items, or a frame of several columns, "
            f"got shape {np.shape(groups)}."
        )
    if isinstance(groups, np.ndarray):
        native = groups.dtype if native is None and groups.dtype.kind in "UMm" else native
        if groups.dtype.kind == "S":
            groups = np.strings.decode(groups, "utf-8")
        # pandas knows only native bytes.
        return pd.Index(groups.astype(groups.dtype.newbyteorder("="))), native
    return groups if isinstance(groups, pd.Index) else pd.Index(groups), native


def _sorted(values: "pd.Index[Any]") -> tuple["pd.Index[Any]", Index]:
    """Return distinct values sorted, and the new position of each."""
    keys = values.codes if hasattr(values, "codes") else np.asarray(values)
    try:
        order = np.argsort(keys, kind="stable")
    except TypeError as error:
        raise TypeError(
            "groups must be values that can be sorted, got a mixture of types; make them strings."
        ) from error
    rank = np.empty(len(order), dtype=np.intp)
    rank[order] = np.arange(len(order))
    return values[order], rank


def _nullable(dtype: Any) -> Any:
    """Return a type that can also hold a missing value."""
    if isinstance(dtype, np.dtype) and dtype.kind in "iub":
        return pd.array(np.zeros(0, dtype)).dtype
    return dtype


def _check_kinds(old: "pd.Index[Any]", new: "pd.Index[Any]") -> None:
    """Raise TypeError if merged keys would lose their order or type."""
    ordered = [hasattr(values, "codes") for values in (old, new)]
    if any(ordered) and not (all(ordered) and old.dtype == new.dtype):
        raise TypeError("groups must have the same ordered categories in all chunks, or none.")
    kinds = {values.inferred_type for values in (old.dropna(), new.dropna()) if len(values)}
    numbers = {"integer", "floating", "mixed-integer-float"}
    if len(kinds) > 1 and not kinds <= numbers:
        raise TypeError(f"groups must be of one kind in all chunks, got {new.dtype} after {old.dtype}.")


def _text(value: Any) -> str:
    """Return a value as people write it: dates without the hours of midnight."""
    return value.isoformat().removesuffix("T00:00:00") if hasattr(value, "isoformat") else str(value)


# Periods of time that are groups: their names, and which follows which.


# Names of periods, which sort as the periods follow one another; a week is that of ISO 8601.
PERIODS = {"year": "%Y", "quarter": "%Y-Q", "month": "%Y-%m", "week": "%G-W%V", "day": "%Y-%m-%d"}

ASKED = re.compile(rf"(.+?):({'|'.join(PERIODS)})(?::(.+))?", re.DOTALL)
NAMES = {
    "year": re.compile(r"(1[5-9]\d\d|2\d{3})"),
    "quarter": re.compile(r"(\d{4})-Q([1-4])"),
    "month": re.compile(r"(\d{4})-(0[1-9]|1[0-2])"),
    "week": re.compile(r"(\d{4})-W(0[1-9]|[1-4]\d|5[0-3])"),
    "day": re.compile(r"(\d{4})-(\d{2})-(\d{2})"),
}


class ColumnRequest(NamedTuple):
    """Column of groups, its period and the format of its dates.

    The period is None if none is requested. The format "" is the usual one.
    """

    column: str
    period: str | None
    style: str


def with_period(by: str) -> ColumnRequest:
    """Return a column and the period that is asked for, if any.

    Parameters
    ----------
    by : str
        Column, or column, period and format such as "date:day:%m/%d/%Y".

    Returns
    -------
    asked : ColumnRequest
        Column, period or None, and format.

    Examples
    --------
    >>> [tuple(with_period(by)) for by in ("date:month", "date:day:%m/%d/%Y", "date", "a:b")]
    [('date', 'month', ''), ('date', 'day', '%m/%d/%Y'), ('date', None, ''), ('a:b', None, '')]
    """
    found = ASKED.fullmatch(by)
    return ColumnRequest(by, None, "") if found is None else ColumnRequest(found[1], found[2], found[3] or "")


def numbered(names: Sequence[str]) -> tuple[str, Counts] | None:
    """Return the period of all names, and the number (T,) of each.

    The numbers count all periods in order. The result is None for other names.

    >>> numbered(["2023-12", "2024-03"]), numbered(["red", "blue"])
    (('month', array([24287, 24290])), None)
    """
    for period, pattern in NAMES.items():
        found = [pattern.fullmatch(name) for name in names]
        if names and all(found):
            try:
                numbers = [_number(period, *map(int, match.groups())) for match in found if match is not None]
            except ValueError:  # no such day or week
                return None
            return period, np.array(numbers, dtype=np.int64)
    return None


def _number(period: str, year: int, part: int = 1, day: int = 1) -> int:
    if period in ("week", "day"):
        date = dt.date.fromisocalendar(year, part, 1) if period == "week" else dt.date(year, part, day)
        return date.toordinal() // (7 if period == "week" else 1)
    return year * {"year": 1, "quarter": 4, "month": 12}[period] + part - 1


def named(period: str, first: int, n: int) -> list[str]:
    """Return the names of n periods, one after the other.

    >>> named("quarter", 4 * 2023 + 3, 2), named("day", numbered(["2024-02-28"])[1][0], 2)
    (['2023-Q4', '2024-Q1'], ['2024-02-28', '2024-02-29'])
    """
    numbers = range(first, first + n)
    if period == "day":
        return [dt.date.fromordinal(number).isoformat() for number in numbers]
    if period == "week":
        weeks = [dt.date.fromordinal(7 * number + 1).isocalendar() for number in numbers]
        return [f"{week.year}-W{week.week:02d}" for week in weeks]
    parts = [divmod(number, {"year": 1, "quarter": 4, "month": 12}[period]) for number in numbers]
    forms = {"year": "{}", "quarter": "{}-Q{}", "month": "{}-{:02d}"}
    return [forms[period].format(year, part + 1) for year, part in parts]
