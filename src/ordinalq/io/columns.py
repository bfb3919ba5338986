"""Columns of a table: names, kinds and values of their cells.

A column is a "text", a "number", a "date" or a "category". The kinds are found once, in the training table; every later
table must be readable in the same way. Dates are ISO 8601, or of another format that the kind names: "date:%m/%d/%Y".
"""

import difflib
import logging
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd

from ordinalq._utils.text import counted, first_of, percent
from ordinalq._utils.validation import Array, Floats, Index, Mask, check_choice
from ordinalq.samples.keys import PERIODS

# Names of columns, and words that stand for a missing value.


# What pandas takes for a missing value by default.
MISSING_WORDS = (
    *("#N/A", "#N/A N/A", "#NA", "-1.#IND", "-1.#QNAN", "-NaN", "-nan", "1.#IND", "1.#QNAN"),
    *("<NA>", "N/A", "NA", "NULL", "NaN", "None", "n/a", "nan", "null"),
)


def is_missing(word: str | None) -> bool:
    """Return whether a cell is a missing value: empty, "NA" or similar."""
    return not word or word in MISSING_WORDS


# What other programs call a column without a name, which only numbers the rows.
UNNAMED = ("", "__index_level_0__")

# A line with more cells is hardly the header of a table; each column costs time and memory.
MAX_COLUMNS = 100_000


# Present columns that an error lists.
MAX_NAMED = 10

# Separators by which a header may be wrongly read as one name, and what to do.
SEPARATORS = {
    "\t": "Use format='tsv'.",
    ";": "Use format='csv'.",
    "|": "Save the table with commas, semicolons or tabs.",
    ",": "Use format='csv'.",
}


def require_columns(present: Iterable[Any], names: Sequence[str], where: str) -> None:
    """Raise an error if a table lacks some of the columns.

    The error lists the missing columns and names the table as `where`.
    """
    present = list(present)
    known = set(present)
    missing = [name for name in names if name not in known]
    if missing:
        # Other files have no line of names.
        place = ", line 1" if where.removesuffix(".gz").endswith((".csv", ".tsv", ".arff")) else ""
        named = [name for name in present if name not in UNNAMED]
        dated = [name for name in missing if name.rpartition(":")[0] in known]
        periods = f"; periods of a column of dates are {', '.join(PERIODS)}, as in date:month" if dated else ""
        near = difflib.get_close_matches(missing[0], named, n=1)
        hint = f" Did you mean {near[0]!r}?" if near else _separator_hint(named)
        there = f"there {'is' if len(named) == 1 else 'are'} {counted(len(named), 'column')}"
        raise ValueError(
            f"{where}{place}: {len(missing)} of {len(names)} columns are missing: {_first(missing)}; {there}: "
            f"{_first(named, MAX_NAMED)}{periods}.{hint}"
        )


def _separator_hint(names: Sequence[str]) -> str:
    """Return a sentence about the separator if all columns were read as one.

    Otherwise return "".

    >>> _separator_hint(["stars;review"]), _separator_hint(["stars", "review"])
    (" The columns are separated by ';'. Use format='csv'.", '')
    """
    found = [separator for separator in SEPARATORS if len(names) == 1 and separator in names[0]]
    return f" The columns are separated by {found[0]!r}. {SEPARATORS[found[0]]}" if found else ""


def check_names(names: Sequence[str], where: str) -> None:
    """Raise an error if two columns have the same name or there are too many."""
    if len(names) > MAX_COLUMNS:
        raise ValueError(f"{where}: expected at most {MAX_COLUMNS:,} columns, got {len(names):,}.")
    seen = set(UNNAMED)
    for name in names:
        if name in seen and name not in UNNAMED:
            raise ValueError(f"{where}: expected columns of different names, but {name!r} occurs twice.")
        seen.add(name)


def _first(names: Sequence[Any], most: int = 5) -> str:
    return first_of([text if len(text := repr(name)) <= 60 else text[:57] + "..." for name in names], most)


# Cells of a table as numbers, dates and words; an error names the row that cannot be read so.


# A larger number is a mistake: its square is beyond what is computed with.
OUTLIER = 1e30


# What a frame must be where a model reads it.
FRAME = "a pandas or polars frame, because the model takes its columns"


def as_pandas(frame: Any, expected: str = FRAME) -> pd.DataFrame:
    """Return a pandas or polars frame as a pandas frame.

    The error for other types names the type that was `expected`.

    Parameters
    ----------
    frame : pandas or polars DataFrame
        Table.
    expected : str
        Description of the expected type, for the error.

    Returns
    -------
    frame : pandas.DataFrame
        The same rows.
    """
    if not isinstance(frame, pd.DataFrame):
        if not hasattr(frame, "to_pandas"):
            raise TypeError(f"frame must be {expected}, got {type(frame).__name__}.")
        frame = frame.to_pandas()
    found: pd.DataFrame = frame
    return found


def source_name(frame: pd.DataFrame) -> str:
    """Name the file that a frame was read from."""
    return str(frame.attrs.get("where", "the table"))


def place(frame: pd.DataFrame, label: Any) -> str:
    """Name a row of the file that a frame was read from, or of the frame."""
    return f"{source_name(frame)}, {frame.index.name or 'row'} {label}"


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


# True and false in the CSV files that Excel writes.
EXCEL_WORDS = {"TRUE": "True", "FALSE": "False"}


def as_words(column: Any) -> list[str | None]:
    """Return values as words that do not depend on the file format.

    The values 1, 1.0, "1" and "1.0" are all "1". Missing values are None.

    Parameters
    ----------
    column : array-like (N,)
        Values of any type.

    Returns
    -------
    words : list of str or None
        Words.

    Examples
    --------
    >>> as_words([1, 1.0, " 1.0 ", "one", None, True, "TRUE"])
    ['1', '1', '1', 'one', None, 'True', 'True']
    """
    if not hasattr(column, "dtype") or len(column) < 100:
        return [_word(value) for value in column]
    codes, words = coded_words(column)
    return list(np.array([*words, None], dtype=object)[codes])


def coded_words(column: Any) -> tuple[Index, list[str | None]]:
    """Return the code of each cell and the distinct values as words.

    The code is -1 if the value is missing. The words are those of :func:`as_words`. Only distinct values are converted,
    because converting a value to a word is slow.
    """
    codes, values = pd.factorize(_hashable(column), use_na_sentinel=True)
    return codes, [_word(value) for value in values.tolist()]


def _hashable(column: Any) -> Any:
    """Return a column in which 1, 1.0 and True are different values.

    Their words differ, too.
    """
    if column.dtype == object and any(isinstance(value, bool) for value in column):
        return pd.Series([str(value) if isinstance(value, bool) else value for value in column], dtype=object)
    return column


def _word(value: Any) -> str | None:
    if isinstance(value, str):  # nearly always, and the others are slow
        word = value.strip()
        # As programs write whole numbers of columns with missing values.
        is_whole = word.endswith(".0") and word[:-2].removeprefix("-").isdecimal()
        return word[:-2] if is_whole else EXCEL_WORDS.get(word, word)
    if value is None or pd.isna(value):
        return None
    if isinstance(value, float | np.floating):
        return f"{int(value)}" if float(value).is_integer() else repr(float(value))
    if isinstance(value, pd.Timestamp):
        return value.isoformat().removesuffix("T00:00:00")
    return str(value).strip()


def numbers(frame: pd.DataFrame, name: str) -> Floats:
    """Return a column as floats (N,), NaN if missing.

    The error names the row that is not a number.

    Parameters
    ----------
    frame : pandas.DataFrame (N, ...)
        Table, or a chunk of one.
    name : str
        Column.

    Returns
    -------
    values : ndarray (N,)
        Floats.
    """
    column = frame[name]
    if pd.api.types.is_datetime64_any_dtype(column):
        raise ValueError(f"{source_name(frame)}: expected numbers in column {name!r}, as in training, got dates.")
    if pd.api.types.is_bool_dtype(column) and column.notna().any():
        raise ValueError(
            f"{source_name(frame)}: expected numbers in column {name!r}, as in training, got true and false."
        )
    if np.iscomplexobj(column):
        raise ValueError(f"{source_name(frame)}: expected real numbers in column {name!r}, got complex ones.")
    if pd.api.types.is_numeric_dtype(column):
        values: Floats = column.to_numpy(dtype=np.float64, na_value=np.nan)
        missing = np.isnan(values)
    else:
        values = parsed_numbers(column)
        missing = np.isnan(values) & missing_cells(column, np.isnan(values))
    bad = ~np.isfinite(values) & ~missing
    raise_for_cells(frame, name, bad, "a finite number" if np.isinf(values[bad][:1]).any() else "a number")
    raise_for_cells(frame, name, np.abs(values) > OUTLIER, f"a number below {OUTLIER:g}, not an outlier,")
    return values


def raise_for_cells(frame: pd.DataFrame, name: str, bad: Mask, expected: str) -> None:
    """Raise ValueError for the first of the `bad` cells (N,) of a column.

    Nothing is raised if no cell is bad.
    """
    if bad.any():
        at = int(np.argmax(bad))
        got = short(frame[name].iloc[at]) if as_words(frame[name].iloc[[at]])[0] else "nothing"
        raise ValueError(f"{place(frame, frame.index[at])}: expected {expected} in column {name!r}, got {got}.")


def weights(frame: pd.DataFrame, name: str) -> Floats:
    """Return the weights in a column of a table or chunk, shape (N,).

    Weights are finite numbers >= 0.

    Parameters
    ----------
    frame : pandas.DataFrame (N, ...)
        Table, or a chunk of one.
    name : str
        Column.

    Returns
    -------
    weights : ndarray (N,)
        Weights.
    """
    require_columns(frame.columns, [name], "the table")
    values: Floats = pd.to_numeric(frame[name], errors="coerce").to_numpy(dtype=np.float64, na_value=np.nan)
    raise_for_cells(frame, name, ~np.isfinite(values) | (values < 0), "a weight >= 0")
    return values


def probabilities(frame: pd.DataFrame, name: str) -> Floats:
    """Return the probabilities in a column of a table or chunk, shape (N,).

    Probabilities are in (0, 1], NaN if missing.

    Parameters
    ----------
    frame : pandas.DataFrame (N, ...)
        Table, or a chunk of one.
    name : str
        Column.

    Returns
    -------
    values : ndarray (N,)
        Probabilities.
    """
    require_columns(frame.columns, [name], "the table")
    values: Floats = pd.to_numeric(frame[name], errors="coerce").to_numpy(dtype=np.float64, na_value=np.nan)
    unread = np.isnan(values) & ~missing_cells(frame[name], np.isnan(values))
    raise_for_cells(frame, name, unread | (values <= 0) | (values > 1), "a probability in (0, 1], or none")
    return values


def parsed_numbers(column: "pd.Series[Any]") -> Floats:
    """Return the numbers in a column of words or objects, shape (N,).

    Cells without a number are NaN. True and false are not numbers.
    """
    if (fast := _parsed_by_arrow(column)) is not None:
        return fast
    read = pd.to_numeric(column.astype(object), errors="coerce")
    values: Floats = read.to_numpy(dtype=np.float64, na_value=np.nan, copy=True)
    if column.dtype == object:
        values[[isinstance(value, bool | np.bool_) for value in column]] = np.nan
    return values


def _parsed_by_arrow(column: "pd.Series[Any]") -> Floats | None:
    """Return the numbers of :func:`parsed_numbers`, parsed by pyarrow.

    The result is None unless all cells are numbers or missing and pyarrow is installed. This is faster but optional:
    frames are read without the extra `tables`, only files need it.
    """
    try:
        import pyarrow as pa
        from pyarrow import compute
    except ModuleNotFoundError:
        return None
    try:
        words = compute.utf8_trim_whitespace(pa.array(column, type=pa.string(), from_pandas=True))
        return np.asarray(compute.cast(words, pa.float64()).to_numpy(zero_copy_only=False), dtype=np.float64)
    except (pa.ArrowException, TypeError, ValueError, OverflowError):
        return None


def missing_cells(column: "pd.Series[Any]", unread: Mask) -> Mask:
    """Return which of the unread cells are missing values.

    Missing values are empty cells, "NA" and similar words.
    """
    found = np.zeros(len(column), dtype=bool)
    if unread.any():
        found[unread] = [is_missing(word) for word in as_words(column[unread])]
    return found


def dates(frame: pd.DataFrame, name: str, style: str = "") -> "pd.Series[Any]":
    """Return a column as UTC times, NaT if missing.

    Parameters
    ----------
    frame : pandas.DataFrame (N, ...)
        Table, or a chunk of one.
    name : str
        Column.
    style : str, default=""
        Format such as "%m/%d/%Y"; "" is ISO 8601.

    Returns
    -------
    times : pandas.Series (N,)
        Times in UTC.
    """
    column = frame[name]
    if pd.api.types.is_datetime64_any_dtype(column):
        return pd.to_datetime(column, utc=True)
    if pd.api.types.is_numeric_dtype(column) and column.notna().any():
        raise ValueError(f"{source_name(frame)}: expected dates in column {name!r}, as in training, got numbers.")
    values = pd.to_datetime(column.astype(object), format=style or "ISO8601", utc=True, errors="coerce")
    unread = values.isna().to_numpy()
    example = pd.Timestamp("2024-01-31").strftime(style or "%Y-%m-%d")
    raise_for_cells(frame, name, unread & ~missing_cells(column, unread), f"a date such as {example}")
    return values


def texts(frame: pd.DataFrame, name: str) -> Array:
    """Return a column as strings (N,), empty where missing.

    Parameters
    ----------
    frame : pandas.DataFrame (N, ...)
        Table, or a chunk of one.
    name : str
        Column.

    Returns
    -------
    texts : ndarray (N,)
        Strings.
    """
    column = frame[name]
    if not is_words(column) and column.notna().any():
        if not isinstance(column.dtype, pd.CategoricalDtype):
            raise ValueError(
                f"{source_name(frame)}: expected texts in column {name!r}, as in training, got {column.dtype} values."
            )
        column = column.astype(object)
    values = column.to_numpy(dtype=object)
    return np.array([value if type(value) is str else _text(value) for value in values], dtype=object)


def _text(value: Any) -> str:
    return "" if value is None or value != value else str(value)


def categories(frame: pd.DataFrame, name: str) -> Array:
    """Return a column as words (N,), NaN where missing.

    Parameters
    ----------
    frame : pandas.DataFrame (N, ...)
        Table, or a chunk of one.
    name : str
        Column.

    Returns
    -------
    words : ndarray (N,)
        Strings and NaN.
    """
    return np.array([np.nan if word is None else word for word in as_words(frame[name])], dtype=object)


def first_words(words: Iterable[Any]) -> str:
    """Return the first three words."""
    listed = [short(str(word)) for word in words]
    return ", ".join(listed[:3]) + (", ..." if len(listed) > 3 else "")


logger = logging.getLogger("ordinalq")

KINDS = ("text", "number", "date", "category")

# Columns that one categorical feature becomes; rarer categories share the last one.
MAX_CATEGORIES = 30
# A column of strings is a text if it has more distinct values than a category may have, and at least this many words
# on average.
MIN_WORDS = 3
# Strings of which more than this part is distinct are names of the rows if they are not texts.
MAX_DISTINCT = 0.5
# If at least this part of the values are numbers, the words among them are mistakes.
MOSTLY = 0.9

ISO_DATE = r"\d{4}-\d{2}-\d{2}(?:[T ]\d{2}:\d{2}(?::\d{2}(?:\.\d+)?)?(?:Z|[+-]\d{2}:?\d{2})?)?"
# Day and month before the year, and the time of the day.
OTHER_DATE = re.compile(r"(\d{1,2})([/.-])(\d{1,2})\2(\d{4})( \d{1,2}:\d{2}(?::\d{2})?(?: ?[AaPp][Mm])?)?")
# A number with a decimal comma, or one comma between thousands.
COMMA_NUMBER = r"[+-]?\d+,\d+"


def column_kinds(
    frame: pd.DataFrame,
    columns: Sequence[str],
    *,
    text: Sequence[str] = (),
    categories: Sequence[str] = (),
    dates: Mapping[str, str] | None = None,
    unused: dict[str, str] | None = None,
) -> dict[str, str]:
    """Return the kind of each column of a training table.

    The kind is the one given by the caller, or else follows from the values. The caller can pass the columns that are
    `text` or `categories`, and the formats of `dates`, such as "%m/%d/%Y". Columns without any value get no kind.
    Strings that are neither text nor category because nearly each occurs once (identifiers, links) get no kind either.
    The reason is logged, or stored in `unused` by the name of the column.
    """
    dates = dict(dates or {})
    texts, groups = set(text), set(categories)
    kinds = {}
    for name in columns:
        if name in texts:
            kinds[name] = "text"
        elif name in groups:
            kinds[name] = "category"
        elif name in dates:
            kinds[name] = f"date:{dates[name]}"
        elif _all_numbers(frame[name]):
            kinds[name] = "number"
        else:
            kind, reason = _kind(frame, name)
            if kind:
                kinds[name] = kind
            elif unused is None:
                logger.warning("column %r is left out: %s", name, reason)
            else:
                unused[name] = reason.partition(";")[0]
    return kinds


def check_kind(name: str, kind: str) -> None:
    """Raise ValueError for an unknown kind of column."""
    check_choice(name, kind.partition(":")[0], KINDS)


def _all_numbers(column: "pd.Series[Any]") -> bool:
    """Return whether every cell is a number written as a word.

    This is the usual case, and detecting any other kind is slow.
    """
    return len(column) > 0 and is_words(column) and not np.isnan(parsed_numbers(column)).any()


def _kind(frame: pd.DataFrame, name: str) -> tuple[str, str]:
    """Return the kind of a column by its values, or "" and a reason."""
    column = frame[name]
    if not column.notna().any():
        return "", "it has no value at all"
    if pd.api.types.is_datetime64_any_dtype(column):
        return "date", ""
    if pd.api.types.is_bool_dtype(column):
        return "category", ""
    if pd.api.types.is_numeric_dtype(column):
        return "number", ""
    if not np.isnan(parsed_numbers(column)[column.notna().to_numpy()]).any():
        return "number", ""
    values = column.dropna()
    if values.dtype == object and values.map(lambda value: isinstance(value, bool)).all():
        return "category", ""
    words = _words(values)
    if not len(words):
        return "", f"it has no value at all, but words such as {str(values.iloc[0])[:60]}"
    unreadable = pd.Series(parsed_numbers(values.loc[words.index] if values.index.is_unique else words)).isna()
    if not unreadable.any():
        return "number", ""
    if (part := float((~unreadable).mean())) >= MOSTLY:
        at = int(unreadable.to_numpy().argmax())
        raise ValueError(
            f"{place(frame, words.index[at])}: expected a number in column {name!r}, as in {percent(part, 0)} of "
            f"its rows, got {short(words.iloc[at])}; correct it, or name the column in categories=[...]."
        )
    if re.fullmatch(ISO_DATE, words.iloc[0]) and words.str.fullmatch(ISO_DATE).all():
        return "date", ""
    if style := _date_style(words, name):
        return style, ""
    if words.str.fullmatch(COMMA_NUMBER).all():
        logger.warning(
            "column %r has numbers with a comma, such as %s, which are not read as numbers: write them with a point",
            name,
            words.iloc[0],
        )
    distinct = words.nunique()
    if distinct <= MAX_CATEGORIES:
        return "category", ""
    if words.map(lambda word: len(word.split())).mean() >= MIN_WORDS:
        return "text", ""
    if distinct <= MAX_DISTINCT * len(words):
        return "category", ""
    return "", (
        f"{frame[name].nunique():,} different values in {len(frame):,} rows, no text; name it in text=[...] or "
        "categories=[...] to keep it"
    )


def _words(values: "pd.Series[Any]") -> "pd.Series[Any]":
    """Return values as words, those that are none left out."""
    words = values.astype(str).str.strip()
    return words[~words.isin([*MISSING_WORDS, ""])]


def date_style(frame: pd.DataFrame, name: str, example: str) -> str:
    """Return the format of a column of dates with day and month, "" for others.

    The day is before or after the month. If either number can be the day, an error is raised that shows the `example`
    of a name with a format.
    """
    if not is_words(frame[name]):
        return ""
    words = _words(frame[name].dropna())
    style = _other_style(words) if len(words) else ""
    if style is None:
        raise ValueError(
            f"{source_name(frame)}: column {name!r} looks like dates, but the day may come before or after the month: "
            f"name the format, as in {example}."
        )
    return style


def _date_style(words: "pd.Series[Any]", name: str) -> str:
    """Return "date:FORMAT" for dates with day and month, "" for other words.

    The day is before or after the month. If either number can be the day, a note with the remedy is logged.
    """
    style = _other_style(words)
    if style is None:
        logger.warning(
            "column %r looks like dates, but the day may come before or after the month: name its format with "
            "dates={%r: '%%m/%%d/%%Y'}",
            name,
            name,
        )
    return f"date:{style}" if style else ""


def _other_style(words: "pd.Series[Any]") -> str | None:
    """Return the format of dates with day and month, "" for other words.

    The day is before or after the month. Days after the twelfth, or points between the numbers, determine its position.
    The result is None if either number can be the day.
    """
    first = OTHER_DATE.fullmatch(words.iloc[0])
    if first is None:
        return ""
    matches = [OTHER_DATE.fullmatch(word) for word in words.unique()]
    found = [match for match in matches if match is not None]
    if len(found) < len(matches) or len({match[2] for match in found}) > 1:
        return ""
    times = {_time_style(match[5] or "") for match in found}
    left = max(int(match[1]) for match in found)
    right = max(int(match[3]) for match in found)
    mark = first[2]
    if len(times) > 1 or (left > 12 and right > 12):
        return ""
    if left <= 12 and right <= 12 and mark != ".":
        return None
    day_first = left > 12 or (mark == "." and right <= 12)
    day, month = ("%d", "%m") if day_first else ("%m", "%d")
    return f"{day}{mark}{month}{mark}%Y{times.pop()}"


def _time_style(text: str) -> str:
    """Return the format of a time of the day.

    >>> _time_style(" 6:30 PM"), _time_style(" 18:30:05"), _time_style("")
    (' %I:%M %p', ' %H:%M:%S', '')
    """
    if not text:
        return ""
    seconds = ":%S" if text.count(":") == 2 else ""
    if text[-1] in "Mm":
        return f" %I:%M{seconds}{' ' if text[-3] == ' ' else ''}%p"
    return f" %H:%M{seconds}"


def typed(frame: pd.DataFrame, kinds: Mapping[str, str]) -> pd.DataFrame:
    """Return the columns of a table in the types that their kinds require.

    An error names the row that cannot be read. Texts are strings, empty if missing. Numbers are floats, NaN if missing.
    Dates are UTC, NaT if missing. Categories are strings, NaN if missing.

    Parameters
    ----------
    frame : pandas.DataFrame (N, ...)
        Table.
    kinds : dict of str to str
        Kind of each column.

    Returns
    -------
    frame : pandas.DataFrame (N, ...)
        Columns in the order of `kinds`.
    """
    require_columns(frame.columns, list(kinds), source_name(frame))
    data: dict[str, Any] = {}
    for name, described in kinds.items():
        kind, _, style = described.partition(":")
        if kind == "date":
            data[name] = dates(frame, name, style)
        else:
            convert = {"text": texts, "number": numbers, "category": categories}[kind]
            data[name] = convert(frame, name)
    return pd.DataFrame(data, index=frame.index, columns=list(kinds))


def convert_types(frame: pd.DataFrame) -> pd.DataFrame:
    """Return a table read from a file with numbers and dates converted.

    Other columns are unchanged. In a column of words, words such as "NA" are missing values if all others are numbers.
    Otherwise they stay words.

    Parameters
    ----------
    frame : pandas.DataFrame (N, ...)
        Table with text in its cells.

    Returns
    -------
    frame : pandas.DataFrame (N, ...)
        The same columns.
    """
    found = pd.DataFrame({name: _natural(frame, name) for name in frame.columns}, index=frame.index)
    found.attrs |= frame.attrs
    return found


def _natural(frame: pd.DataFrame, name: str) -> Any:
    column = frame[name]
    if not is_words(column) or not column.notna().any():
        return column
    values = parsed_numbers(column)
    missing = missing_cells(column, np.isnan(values))
    words = column.notna().to_numpy() & missing
    if not (np.isnan(values) & ~missing).any() and not missing.all():
        if n_words := int(words.sum()):
            logger.info(
                "%s: column %r holds numbers and %d words such as NA, which are missing values",
                source_name(frame),
                name,
                n_words,
            )
        # Whole numbers stay such: they may be classes.
        whole = np.isfinite(values).all() and (values == np.round(values)).all() and (np.abs(values) < 2**53).all()
        plain = whole and not column.astype(str).str.contains(r"[.eE]", regex=True).any()
        return pd.Series(values.astype(np.int64) if plain else values, index=column.index)
    known = column[~missing].astype(str).str.strip()
    if len(known) and re.fullmatch(ISO_DATE, known.iloc[0]) and known.str.fullmatch(ISO_DATE).all():
        return dates(frame, name)
    return column
