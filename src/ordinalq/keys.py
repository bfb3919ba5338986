"""The values that groups stand for, in the user's own type and order."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

if TYPE_CHECKING:
    import pandas as pd

Index = npt.NDArray[np.intp]

# How people are shown the group of the items that name none.
MISSING = "(missing)"
# The name of the column of groups where nobody gave one.
UNNAMED = "group"
# Units of time that polars has.
UNITS = ("D", "ms", "us", "ns")


class Keys:
    """B distinct values, sorted; ordered categories are in their own order, a missing value comes last.

    Parameters
    ----------
    index : pandas.Index (B,)
        Distinct and sorted, of whatever type the user's column has.
    name : str, default="group"
        Name of the user's column.
    native : NumPy or polars type, default=None
        What the column had before pandas took it; None where pandas has it.
    """

    def __init__(self, index: "pd.Index[Any]", name: str = UNNAMED, native: Any = None) -> None:
        self.index = index
        self.name = name
        self.native = native

    @classmethod
    def of(cls, groups: Any) -> tuple["Keys", Index]:
        """Return the distinct values of a column (N,), and the position of each item's value among them.

        Parameters
        ----------
        groups : array-like, series of pandas or polars (N,)
            One value per item; None, NaN and the like are a value of their own.

        Examples
        --------
        >>> keys, codes = Keys.of(["pen", "ink", "pen"])
        >>> keys.tolist(), codes.tolist()
        (['ink', 'pen'], [1, 0, 1])
        """
        import pandas as pd

        if groups is None or isinstance(groups, str):
            raise TypeError(
                f"groups must be one value per item, got {groups!r:.60}; give the column itself, not its name."
            )
        column, native = _column(groups)
        given = getattr(groups, "name", None)
        name = str(given) if given is not None and str(given) else UNNAMED
        codes, values = pd.factorize(column)
        values, rank = _sorted(pd.Index(values))
        missing = codes < 0
        if missing.any():
            values = values.append(pd.Index([None], dtype=_nullable(values.dtype)))
            codes = np.where(missing, len(rank), codes)
            rank = np.append(rank, len(rank))
        return cls(values, name, native), rank[codes]

    @classmethod
    def merged(cls, parts: Sequence["Keys"]) -> tuple["Keys", list[Index]]:
        """Return all values of several sets of keys, and the positions of the values of each among them."""
        first = parts[0]
        if all(part.index.equals(first.index) and part.index.dtype == first.index.dtype for part in parts[1:]):
            return first, [np.arange(len(first))] * len(parts)
        values = first.index
        for part in parts[1:]:
            _check_kinds(first.index, part.index)
            values = values.append(part.index)
        try:
            keys, codes = cls.of(values)
        except TypeError as error:
            raise TypeError("groups must be of one kind in all portions; make them strings.") from error
        ends = np.cumsum([len(part) for part in parts])
        native = first.native if all(part.native == first.native for part in parts) else None
        return cls(keys.index, first.name, native), np.split(codes, ends[:-1])

    def __len__(self) -> int:
        return len(self.index)

    def __getitem__(self, rows: Any) -> "Keys":
        """Return the keys of some rows."""
        return Keys(self.index[rows], self.name, self.native)

    @property
    def has_missing(self) -> bool:
        """Whether the last value is a missing one."""
        return len(self) > 0 and bool(self.index.isna()[-1])

    def position(self, value: Any) -> int:
        """Return the row of a value; the error names near ones."""
        missing = np.flatnonzero(self.index.isna())
        if value is None and len(missing):  # not every type finds it by the name None
            return int(missing[0])
        try:
            row = self.index.get_loc(value)
        except (KeyError, TypeError, ValueError) as error:
            shown = ", ".join(map(repr, self.tolist()[:5]))
            raise KeyError(
                f"{self.name} {value!r} is not among the {len(self)} groups {shown}{', ...' * (len(self) > 5)}"
            ) from error
        if not isinstance(row, int | np.integer):
            raise TypeError(f"a group must be one value, got {value!r}.")
        return int(row)

    def to_numpy(self) -> npt.NDArray[Any]:
        """Return the values as an array, of the type that they came in if that was one of NumPy."""
        return self.index.to_numpy(dtype=self.native if isinstance(self.native, np.dtype) else None)

    def tolist(self) -> list[Any]:
        """Return the values as plain objects, None where missing."""
        missing = self.index.isna()
        return [None if gap else value for gap, value in zip(missing, self.index.tolist(), strict=True)]

    def labels(self) -> list[str]:
        """Return the values as people read them."""
        return [MISSING if value is None else _text(value) for value in self.tolist()]

    def polars(self) -> Any:
        """Return the values as a series of polars, of the type that they came in if that was one of polars."""
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


def is_polars(value: Any) -> bool:
    """Say whether a frame or a series is one of polars."""
    return type(value).__module__.partition(".")[0] == "polars"


def _column(groups: Any) -> tuple["pd.Index[Any]", Any]:
    """Return a column as pandas has it, and the type that it had before, where that was another."""
    import pandas as pd

    native = None
    if is_polars(groups):
        native = groups.dtype
        if type(native).__name__ == "Enum":
            kind = pd.CategoricalDtype(native.categories.to_list(), ordered=True)
            return pd.Index(groups.to_list(), dtype=kind), native
        groups = groups.to_numpy()
    if not hasattr(groups, "dtype"):
        # As objects: NumPy would make words of numbers and gaps that stand beside words.
        words = any(isinstance(value, str) for value in groups)
        groups = np.asarray(groups, dtype=object if words else None)
    if np.ndim(groups) != 1 or len(groups) == 0:
        raise ValueError(f"groups must be a one-dimensional array with items, got shape {np.shape(groups)}.")
    if isinstance(groups, np.ndarray):
        native = groups.dtype if native is None and groups.dtype.kind in "UMm" else native
        if groups.dtype.kind == "S":
            groups = groups.astype(str)
        return pd.Index(groups), native
    index = groups if isinstance(groups, pd.Index) else pd.Index(groups)
    if isinstance(index.dtype, pd.CategoricalDtype) and not index.dtype.ordered:
        # Their order means nothing: the values themselves are sorted.
        index = index.astype(index.dtype.categories.dtype)
    return index, native


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
    import pandas as pd

    if isinstance(dtype, np.dtype) and dtype.kind in "iub":
        return pd.array(np.zeros(0, dtype)).dtype
    return dtype


def _check_kinds(old: "pd.Index[Any]", new: "pd.Index[Any]") -> None:
    """Refuse to unite what would lose its order or its type."""
    ordered = [hasattr(values, "codes") for values in (old, new)]
    if any(ordered) and not (all(ordered) and old.dtype == new.dtype):
        raise TypeError("groups must have the same ordered categories in all portions, or none.")
    kinds = {values.inferred_type for values in (old.dropna(), new.dropna()) if len(values)}
    numbers = {"integer", "floating", "mixed-integer-float"}
    if len(kinds) > 1 and not kinds <= numbers:
        raise TypeError(f"groups must be of one kind in all portions, got {new.dtype} after {old.dtype}.")


def _text(value: Any) -> str:
    """Return a value as people write it: dates without the hours of midnight."""
    return value.isoformat().removesuffix("T00:00:00") if hasattr(value, "isoformat") else str(value)
