"""What the columns of a table are.

A column is a "text", a "number", a "date" or a "category". The kinds are found once, in the training table; every later
table must be readable in the same way. Dates are ISO 8601, or of another format that the kind names: "date:%m/%d/%Y".
"""

import logging
import re
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd

from ordinalq._utils.text import percent
from ordinalq._utils.validation import check_choice
from ordinalq.io.cells import categories, dates, gaps, is_words, numbers, parsed_numbers, place, short, texts, where
from ordinalq.io.names import MISSING_WORDS, require_columns

logger = logging.getLogger("ordinalq")

KINDS = ("text", "number", "date", "category")

# Columns that one categorical feature becomes; rarer categories share the last one.
MAX_CATEGORIES = 30
# A column of strings is a text if it has more distinct values than a category may have, and at least this many words
# on average.
MIN_WORDS = 3
# Strings of which more than this part is distinct are names of the rows if they are no texts.
MAX_DISTINCT = 0.5
# If at least this part of the values are numbers, the words among them are mistakes.
MOSTLY = 0.9

ISO_DATE = r"\d{4}-\d{2}-\d{2}(?:[T ]\d{2}:\d{2}(?::\d{2}(?:\.\d+)?)?(?:Z|[+-]\d{2}:?\d{2})?)?"
# Day and month before the year, and the time of the day.
OTHER_DATE = re.compile(r"(\d{1,2})([/.-])(\d{1,2})\2(\d{4})( \d{1,2}:\d{2}(?::\d{2})?(?: ?[AaPp][Mm])?)?")


def column_kinds(
    frame: pd.DataFrame,
    columns: Sequence[str],
    *,
    text: Sequence[str] = (),
    categories: Sequence[str] = (),
    dates: Mapping[str, str] | None = None,
) -> dict[str, str]:
    """Return the kind of each column of a training table: what the caller says, or else what its values look like.

    The caller knows those that are `text` or `categories`, and the formats of `dates`, such as "%m/%d/%Y". Columns
    without any value, and strings that are neither text nor category because nearly each occurs once (identifiers,
    links), get no kind, which is logged.
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
        elif kind := _kind(frame, name):
            kinds[name] = kind
    return kinds


def check_kind(name: str, kind: str) -> None:
    """Refuse what is no kind of a column."""
    check_choice(name, kind.partition(":")[0], KINDS)


def _all_numbers(column: "pd.Series[Any]") -> bool:
    """Return whether every cell is a number in words: nearly always, and to find any other kind is slow."""
    return len(column) > 0 and is_words(column) and not np.isnan(parsed_numbers(column)).any()


def _kind(frame: pd.DataFrame, name: str) -> str:
    """Return the kind of a column by its values, "" if it is of no use, which is logged."""
    column = frame[name]
    if not column.notna().any():
        logger.warning("column %r is left out: it has no value at all", name)
        return ""
    if pd.api.types.is_datetime64_any_dtype(column):
        return "date"
    if pd.api.types.is_bool_dtype(column):
        return "category"
    if pd.api.types.is_numeric_dtype(column):
        return "number"
    if not np.isnan(parsed_numbers(column)[column.notna().to_numpy()]).any():
        return "number"
    values = column.dropna()
    if values.dtype == object and values.map(lambda value: isinstance(value, bool)).all():
        return "category"
    words = _words(values)
    if not len(words):
        logger.warning("column %r is left out: it has no value at all, but words such as %s", name, values.iloc[0])
        return ""
    unreadable = pd.Series(parsed_numbers(values.loc[words.index] if values.index.is_unique else words)).isna()
    if not unreadable.any():
        return "number"
    if (part := float((~unreadable).mean())) >= MOSTLY:
        at = int(unreadable.to_numpy().argmax())
        raise ValueError(
            f"{place(frame, words.index[at])}: expected a number in column {name!r}, as in {percent(part, 0)} of "
            f"its rows, got {short(words.iloc[at])}; correct it, or name the column in categories=[...]."
        )
    if re.fullmatch(ISO_DATE, words.iloc[0]) and words.str.fullmatch(ISO_DATE).all():
        return "date"
    if style := _date_style(words, name):
        return style
    distinct = words.nunique()
    if distinct <= MAX_CATEGORIES:
        return "category"
    if words.map(lambda word: len(word.split())).mean() >= MIN_WORDS:
        return "text"
    if distinct <= MAX_DISTINCT * len(words):
        return "category"
    logger.warning(
        "column %r is left out: it has %d different values in %d rows and is no text; name it in text=[...] or "
        "categories=[...] to keep it",
        name,
        frame[name].nunique(),
        len(frame),
    )
    return ""


def _words(values: "pd.Series[Any]") -> "pd.Series[Any]":
    """Return values as words, those that are none left out."""
    words = values.astype(str).str.strip()
    return words[~words.isin([*MISSING_WORDS, ""])]


def date_style(frame: pd.DataFrame, name: str, example: str) -> str:
    """Return the format of a column of dates with the day before or after the month, "" for all else.

    Where both may be the day that is an error, which shows the `example` of a name with a format.
    """
    if not is_words(frame[name]):
        return ""
    words = _words(frame[name].dropna())
    style = _other_style(words) if len(words) else ""
    if style is None:
        raise ValueError(
            f"{where(frame)}: column {name!r} looks like dates, but the day may come before or after the month: "
            f"name the format, as in {example}."
        )
    return style


def _date_style(words: "pd.Series[Any]", name: str) -> str:
    """Return "date:FORMAT" for dates with the day before or after the month, "" for other words.

    Where both may be the day, a note says what to do.
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
    """Return the format of dates with the day before or after the month, "" for other words; None if both may be.

    Which of both is the day follows from days after the twelfth, or from points between the numbers.
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
    """Return the columns of a table as their kinds want them; an error names the row that cannot be read so.

    Texts: strings, empty where missing. Numbers: floats, NaN where missing. Dates: UTC, NaT where missing. Categories:
    strings, NaN where missing.
    """
    require_columns(frame.columns, list(kinds), where(frame))
    data: dict[str, Any] = {}
    for name, described in kinds.items():
        kind, _, style = described.partition(":")
        if kind == "date":
            data[name] = dates(frame, name, style)
        else:
            convert = {"text": texts, "number": numbers, "category": categories}[kind]
            data[name] = convert(frame, name)
    return pd.DataFrame(data, index=frame.index, columns=list(kinds))


def natural(frame: pd.DataFrame) -> pd.DataFrame:
    """Return a table as read from a file with numbers and dates as such, and all other columns as they are.

    In a column of words, those such as "NA" are missing values if all else are numbers; otherwise they stay words.
    """
    found = pd.DataFrame({name: _natural(frame, name) for name in frame.columns}, index=frame.index)
    found.attrs |= frame.attrs
    return found


def _natural(frame: pd.DataFrame, name: str) -> Any:
    column = frame[name]
    if not is_words(column) or not column.notna().any():
        return column
    values = parsed_numbers(column)
    missing = gaps(column, np.isnan(values))
    words = column.notna().to_numpy() & missing
    if not (np.isnan(values) & ~missing).any() and not missing.all():
        if n_words := int(words.sum()):
            logger.info(
                "%s: column %r holds numbers and %d words such as NA, which are missing values",
                where(frame),
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
