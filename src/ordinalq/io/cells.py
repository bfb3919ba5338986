"""Cells of a table as numbers, dates and words; an error names the row that cannot be read so."""

from collections.abc import Iterable
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
from pyarrow import compute

from ordinalq._utils.validation import Array, Floats, Index, Mask
from ordinalq.io.names import MISSING_WORDS, require_columns

# What a frame must be where a model reads it.
FRAME = "a pandas or polars frame, because the model knows its columns"


def as_pandas(frame: Any, expected: str = FRAME) -> pd.DataFrame:
    """Return a pandas or polars frame as one of pandas; the error says what was `expected`."""
    if not isinstance(frame, pd.DataFrame):
        if not hasattr(frame, "to_pandas"):
            raise TypeError(f"frame must be {expected}, got {type(frame).__name__}.")
        frame = frame.to_pandas()
    found: pd.DataFrame = frame
    return found


def where(frame: pd.DataFrame) -> str:
    """Name the file that a frame was read from."""
    return str(frame.attrs.get("where", "the table"))


def place(frame: pd.DataFrame, label: Any) -> str:
    """Name a row of the file that a frame was read from, or of the frame."""
    return f"{where(frame)}, {frame.index.name or 'row'} {label}"


def short(value: Any) -> str:
    """Return a representation of at most 60 characters."""
    if isinstance(value, str) and len(value) > 100:
        value = value[:100]
    if isinstance(value, np.generic):  # as people write it
        value = value.item()
    text = repr(value)
    return text if len(text) <= 60 else text[:56] + "..." + (text[0] if text[0] in "'\"" else "")


def is_words(column: "pd.Series[Any]") -> bool:
    """Return whether a column holds strings, or objects that may be strings."""
    if isinstance(column.dtype, pd.CategoricalDtype):
        return False
    return bool(pd.api.types.is_object_dtype(column) or pd.api.types.is_string_dtype(column))


def as_words(column: Any) -> list[str | None]:
    """Return values as words that do not depend on the kind of file: 1, 1.0, "1" and "1.0" are "1".

    None where missing.

    >>> as_words([1, 1.0, " 1.0 ", "one", None, True])
    ['1', '1', '1', 'one', None, 'True']
    """
    if not hasattr(column, "dtype") or len(column) < 100:
        return [_word(value) for value in column]
    codes, words = coded_words(column)
    return list(np.array([*words, None], dtype=object)[codes])


def coded_words(column: Any) -> tuple[Index, list[str | None]]:
    """Return the code of each cell, -1 where missing, and the distinct values as words, see :func:`as_words`.

    The distinct values are few, and a word takes time.
    """
    codes, values = pd.factorize(_hashable(column), use_na_sentinel=True)
    return codes, [_word(value) for value in values]


def _hashable(column: Any) -> Any:
    """Return a column in which 1, 1.0 and True are different values, as their words are."""
    if column.dtype == object and any(isinstance(value, bool) for value in column):
        return pd.Series([str(value) if isinstance(value, bool) else value for value in column], dtype=object)
    return column


def _word(value: Any) -> str | None:
    if isinstance(value, str):  # nearly always, and the others are slow
        word = value.strip()
        # As programs write whole numbers of columns with gaps.
        is_whole = word.endswith(".0") and word[:-2].removeprefix("-").isdecimal()
        return word[:-2] if is_whole else word
    if value is None or pd.isna(value):
        return None
    if isinstance(value, float | np.floating):
        return f"{int(value)}" if float(value).is_integer() else repr(float(value))
    if isinstance(value, pd.Timestamp):
        return value.isoformat().removesuffix("T00:00:00")
    return str(value).strip()


def numbers(frame: pd.DataFrame, name: str) -> Floats:
    """Return a column as floats (N,), NaN where missing; the error names the row that is no number."""
    column = frame[name]
    if pd.api.types.is_datetime64_any_dtype(column):
        raise ValueError(f"{where(frame)}: expected numbers in column {name!r}, as in training, got dates.")
    if pd.api.types.is_bool_dtype(column) and column.notna().any():
        raise ValueError(f"{where(frame)}: expected numbers in column {name!r}, as in training, got true and false.")
    if np.iscomplexobj(column):
        raise ValueError(f"{where(frame)}: expected real numbers in column {name!r}, got complex ones.")
    if pd.api.types.is_numeric_dtype(column):
        values: Floats = column.to_numpy(dtype=np.float64, na_value=np.nan)
        missing = np.isnan(values)
    else:
        values = parsed_numbers(column)
        missing = np.isnan(values) & gaps(column, np.isnan(values))
    bad = ~np.isfinite(values) & ~missing
    if bad.any():
        at = int(np.argmax(bad))
        kind = "a finite number" if np.isinf(values[at]) else "a number"
        raise ValueError(
            f"{place(frame, frame.index[at])}: expected {kind} in column {name!r}, got {short(column.iloc[at])}."
        )
    return values


def weights(frame: pd.DataFrame, name: str) -> Floats:
    """Return the weights in a column of a table or a portion of one, (N,): finite numbers >= 0."""
    require_columns(frame.columns, [name], "the table")
    values: Floats = pd.to_numeric(frame[name], errors="coerce").to_numpy(dtype=np.float64, na_value=np.nan)
    bad = ~np.isfinite(values) | (values < 0)
    if bad.any():
        at = int(bad.argmax())
        word = as_words(frame[name])[at]
        got = short(word) if word else "nothing"
        raise ValueError(f"{place(frame, frame.index[at])}: expected a weight >= 0 in column {name!r}, got {got}.")
    return values


def parsed_numbers(column: "pd.Series[Any]") -> Floats:
    """Return the numbers in a column of words or objects (N,), NaN where there is none; true and false are none."""
    try:
        # Fast, where nothing but empty cells stands in the way.
        words = compute.utf8_trim_whitespace(pa.array(column, type=pa.string(), from_pandas=True))
        return np.asarray(compute.cast(words, pa.float64()).to_numpy(zero_copy_only=False), dtype=np.float64)
    except (pa.ArrowException, TypeError, ValueError, OverflowError):
        pass
    read = pd.to_numeric(column.astype(object), errors="coerce")
    values: Floats = read.to_numpy(dtype=np.float64, na_value=np.nan, copy=True)
    if column.dtype == object:
        values[[isinstance(value, bool | np.bool_) for value in column]] = np.nan
    return values


def gaps(column: "pd.Series[Any]", unread: Mask) -> Mask:
    """Return which of the cells that could not be read stand for a missing value: the empty ones, "NA" and the like."""
    found = np.zeros(len(column), dtype=bool)
    if unread.any():
        words = as_words(column[unread])
        found[unread] = [not word or word in MISSING_WORDS for word in words]
    return found


def dates(frame: pd.DataFrame, name: str, style: str = "") -> "pd.Series[Any]":
    """Return a column as UTC times, NaT where missing; its style is a format such as "%m/%d/%Y", "" for ISO 8601."""
    column = frame[name]
    if pd.api.types.is_datetime64_any_dtype(column):
        return pd.to_datetime(column, utc=True)
    if pd.api.types.is_numeric_dtype(column) and column.notna().any():
        raise ValueError(f"{where(frame)}: expected dates in column {name!r}, as in training, got numbers.")
    values = pd.to_datetime(column.astype(object), format=style or "ISO8601", utc=True, errors="coerce")
    unread = values.isna().to_numpy()
    bad = unread & ~gaps(column, unread)
    if bad.any():
        at = int(np.argmax(bad))
        example = pd.Timestamp("2024-01-31").strftime(style) if style else "2024-01-31"
        raise ValueError(
            f"{place(frame, frame.index[at])}: expected a date such as {example} in column {name!r}, "
            f"got {short(column.iloc[at])}."
        )
    return values


def texts(frame: pd.DataFrame, name: str) -> Array:
    """Return a column as strings (N,), empty where missing."""
    column = frame[name]
    if not is_words(column) and column.notna().any():
        if not isinstance(column.dtype, pd.CategoricalDtype):
            raise ValueError(
                f"{where(frame)}: expected texts in column {name!r}, as in training, got {column.dtype} values."
            )
        column = column.astype(object)
    values = column.to_numpy(dtype=object)
    return np.array([value if type(value) is str else _text(value) for value in values], dtype=object)


def _text(value: Any) -> str:
    return "" if value is None or value != value else str(value)


def categories(frame: pd.DataFrame, name: str) -> Array:
    """Return a column as words (N,), NaN where missing."""
    return np.array([np.nan if word is None else word for word in as_words(frame[name])], dtype=object)


def some(words: Iterable[Any]) -> str:
    """Return the first three words."""
    listed = [short(str(word)) for word in words]
    return ", ".join(listed[:3]) + (", ..." if len(listed) > 3 else "")
