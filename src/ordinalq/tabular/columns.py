"""What the columns of a table are, and the pipeline that makes numbers of them.

A column is a "text" (TF-IDF), a "number", a "date" (ISO 8601) or a "category" (one column per category). The kinds are
found once, in the training table; every later table must be readable in the same way.
"""

import logging
import warnings
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
from sklearn.base import BaseEstimator, TransformerMixin

from ordinalq.datasets.files import MISSING_WORDS, require_columns
from ordinalq.datasets.tables import MAX_CATEGORIES, table_encoder
from ordinalq.validation import check_choice

if TYPE_CHECKING:
    import pandas as pd

logger = logging.getLogger("ordinalq")

KINDS = ("text", "number", "date", "category")

# A column of strings is a text if it has more distinct values than a category may have, and at least so many words
# in the mean.
MIN_WORDS = 3
# Strings of which more than this part is distinct are names of the rows if they are no texts.
MAX_DISTINCT = 0.5
# So many numbers among words, and the words are mistakes.
MOSTLY = 0.9

MAX_TERMS = 50_000
ISO_DATE = r"\d{4}-\d{2}-\d{2}(?:[T ]\d{2}:\d{2}(?::\d{2}(?:\.\d+)?)?(?:Z|[+-]\d{2}:?\d{2})?)?"


def column_kinds(
    frame: "pd.DataFrame", columns: Sequence[str], *, text: Sequence[str] = (), categories: Sequence[str] = ()
) -> dict[str, str]:
    """Say of which kind each column is: what the caller says, or else what its values look like.

    Parameters
    ----------
    frame : DataFrame
        The training table.
    columns : list of str
        Those to look at. Strings that are neither text nor category because nearly each occurs once (identifiers,
        links) get no kind, which is logged.
    text, categories : list of str, default=()
        Columns whose kind the caller knows.
    """
    kinds = {}
    for name in columns:
        if name in text:
            kinds[name] = "text"
        elif name in categories:
            kinds[name] = "category"
        elif kind := _kind(frame, name):
            kinds[name] = kind
        else:
            distinct = frame[name].nunique()
            logger.warning(
                "column %r is left out: it has %d different values in %d rows and is no text; use --text or "
                "--categories to keep it",
                name,
                distinct,
                len(frame),
            )
    return kinds


def _kind(frame: "pd.DataFrame", name: str) -> str:
    """Return the kind of a column by its values, "" if it is of no use."""
    import pandas as pd

    column = frame[name]
    if pd.api.types.is_datetime64_any_dtype(column):
        return "date"
    if pd.api.types.is_numeric_dtype(column) and not pd.api.types.is_bool_dtype(column):
        return "number"
    values = column.dropna()
    if len(values) == 0:
        raise ValueError(
            f"{_where(frame)}: column {name!r} has no values at all; leave it out with --features, or fill it."
        )
    if values.map(lambda value: isinstance(value, bool)).all():
        return "category"
    words = values.astype(str).str.strip()
    words = words[~words.isin(MISSING_WORDS)]
    unreadable = pd.to_numeric(words, errors="coerce").isna()
    if not unreadable.any():
        return "number"
    if (~unreadable).mean() >= MOSTLY:
        at = unreadable[unreadable].index[0]
        raise ValueError(
            f"{_place(frame, at)}: expected a number in column {name!r}, as in {(~unreadable).mean():.0%} of its rows, "
            f"got {_short(words[at])}; correct it, or name the column in --categories."
        )
    if words.str.fullmatch(ISO_DATE).all():
        return "date"
    if words.nunique() <= MAX_CATEGORIES:
        return "category"
    if words.map(lambda word: len(word.split())).mean() >= MIN_WORDS:
        return "text"
    return "" if words.nunique() > MAX_DISTINCT * len(words) else "category"


def typed(frame: "pd.DataFrame", kinds: Mapping[str, str]) -> "pd.DataFrame":
    """Return the columns of a table as their kinds want them; an error names the row that cannot be read so.

    Texts: strings, empty where missing. Numbers: floats, NaN where missing. Dates: UTC, NaT where missing. Categories:
    strings, NaN where missing.
    """
    import pandas as pd

    require_columns(frame.columns, list(kinds), _where(frame))
    convert = {"text": _texts, "number": _numbers, "date": _dates, "category": _categories}
    data = {name: convert[kind](frame, name) for name, kind in kinds.items()}
    return pd.DataFrame(data, index=frame.index, columns=list(kinds))


def _texts(frame: "pd.DataFrame", name: str) -> npt.NDArray[Any]:
    import pandas as pd

    column = frame[name]
    if not (pd.api.types.is_object_dtype(column) or pd.api.types.is_string_dtype(column)) and column.notna().any():
        if isinstance(column.dtype, pd.CategoricalDtype):
            column = column.astype(object)
        else:
            raise ValueError(
                f"{_where(frame)}: expected texts in column {name!r}, as in training, got {column.dtype} values."
            )
    return np.array(["" if value is None or value != value else str(value) for value in column], dtype=object)


def _numbers(frame: "pd.DataFrame", name: str) -> npt.NDArray[np.float64]:
    import pandas as pd

    column = frame[name]
    if pd.api.types.is_datetime64_any_dtype(column):
        raise ValueError(f"{_where(frame)}: expected numbers in column {name!r}, as in training, got dates.")
    if pd.api.types.is_numeric_dtype(column):
        values: npt.NDArray[np.float64] = column.to_numpy(dtype=np.float64, na_value=np.nan)
        missing = np.isnan(values)
    else:
        values = pd.to_numeric(column, errors="coerce").to_numpy(dtype=np.float64, na_value=np.nan)
        missing = np.isnan(values) & _gaps(column, np.isnan(values))
    bad = ~np.isfinite(values) & ~missing
    if bad.any():
        at = int(np.argmax(bad))
        kind = "a finite number" if np.isinf(values[at]) else "a number"
        raise ValueError(
            f"{_place(frame, frame.index[at])}: expected {kind} in column {name!r}, got {_short(column.iloc[at])}."
        )
    return values


def _dates(frame: "pd.DataFrame", name: str) -> "pd.Series[Any]":
    import pandas as pd

    column = frame[name]
    if pd.api.types.is_datetime64_any_dtype(column):
        return pd.to_datetime(column, utc=True)
    if pd.api.types.is_numeric_dtype(column) and column.notna().any():
        raise ValueError(f"{_where(frame)}: expected dates in column {name!r}, as in training, got numbers.")
    values = pd.to_datetime(column.astype(object), format="ISO8601", utc=True, errors="coerce")
    unread = values.isna().to_numpy()
    bad = unread & ~_gaps(column, unread)
    if bad.any():
        at = int(np.argmax(bad))
        raise ValueError(
            f"{_place(frame, frame.index[at])}: expected a date such as 2024-01-31 in column {name!r}, "
            f"got {_short(column.iloc[at])}."
        )
    return values


def _gaps(column: "pd.Series[Any]", unread: npt.NDArray[np.bool_]) -> npt.NDArray[np.bool_]:
    """Say which of the cells that could not be read stand for a missing value: the empty ones, "NA" and the like."""
    gaps = np.zeros(len(column), dtype=bool)
    if unread.any():
        words = labels_as_text(column[unread])
        gaps[unread] = [word is None or word in MISSING_WORDS for word in words]
    return gaps


def _categories(frame: "pd.DataFrame", name: str) -> npt.NDArray[Any]:
    words = labels_as_text(frame[name])
    return np.array([np.nan if word is None else word for word in words], dtype=object)


def labels_as_text(column: Iterable[Any]) -> list[str | None]:
    """Return values as words that do not depend on the kind of file: 1, 1.0, "1" and "1.0" are "1".

    None where missing.
    """
    import pandas as pd

    words: list[str | None] = []
    for value in column:
        if type(value) is str:  # nearly always, and the others are slow
            word = value.strip()
            # As programs write whole numbers of columns with gaps.
            is_whole = word.endswith(".0") and word[:-2].removeprefix("-").isdecimal()
            words.append(word[:-2] if is_whole else word)
        elif value is None or pd.isna(value):
            words.append(None)
        elif isinstance(value, float | np.floating):
            words.append(f"{int(value)}" if float(value).is_integer() else repr(float(value)))
        elif isinstance(value, pd.Timestamp):
            words.append(value.isoformat().removesuffix("T00:00:00"))
        else:
            words.append(str(value).strip())
    return words


class TypedColumns(TransformerMixin, BaseEstimator):  # type: ignore[misc] # scikit-learn ships no types
    """First step of a pipeline on tables: takes the columns it knows, in their order, and reads them by their kind.

    Parameters
    ----------
    kinds : dict of str to {"text", "number", "date", "category"}
        The columns.
    target : str, default=None
        Column of the labels in the training table; kept for whoever evaluates the model.

    Attributes
    ----------
    categories_ : dict of str to ndarray of str
        Those of the training table, by column.
    """

    def __init__(self, kinds: Mapping[str, str], target: str | None = None) -> None:
        self.kinds = kinds
        self.target = target

    def fit(self, X: Any, y: Any = None) -> "TypedColumns":
        """Check the table."""
        for name, kind in self.kinds.items():
            check_choice(f"kinds[{name!r}]", kind, KINDS)
        frame = typed(as_pandas(X), self.kinds)
        names = [name for name, kind in self.kinds.items() if kind == "category"]
        self.categories_ = {name: np.unique(frame[name].dropna().to_numpy(dtype=str)) for name in names}
        self.feature_names_in_ = np.array(list(self.kinds), dtype=object)
        self.n_features_in_ = len(self.kinds)
        return self

    def transform(self, X: Any) -> "pd.DataFrame":
        """Return the typed columns of a pandas or polars frame; warn of categories that are all unknown."""
        frame = typed(as_pandas(X), self.kinds)
        for name, known in self.categories_.items():
            words = frame[name].dropna()
            if len(words) and not words.isin(known).any():
                warnings.warn(
                    f"no value of column {name!r} was seen in training: there {_some(known)}, here "
                    f"{_some(words.unique())}; are they written in the same way?",
                    UserWarning,
                    stacklevel=2,
                )
        return frame


def as_pandas(X: Any) -> "pd.DataFrame":
    """Return a pandas or polars frame as one of pandas."""
    import pandas as pd

    frame = X if isinstance(X, pd.DataFrame) else X.to_pandas() if hasattr(X, "to_pandas") else None
    if frame is None:
        raise TypeError(
            f"X must be a pandas or polars frame, because the model knows its columns, got {type(X).__name__}."
        )
    return frame


def table_pipeline(frame: "pd.DataFrame", kinds: Mapping[str, str], target: str | None = None) -> list[Any]:
    """Return the unfitted steps that make numbers of a table.

    Texts become TF-IDF weights of words and pairs of words, at most 50,000 of each column; all else goes the way of
    :func:`ordinalq.datasets.table_encoder`, numbers being scaled to unit variance.

    Parameters
    ----------
    frame : DataFrame
        The training table, typed.
    kinds : dict
        See :class:`TypedColumns`.
    target : str, default=None
        See :class:`TypedColumns`.
    """
    from sklearn.compose import ColumnTransformer
    from sklearn.feature_extraction.text import TfidfVectorizer

    texts = [name for name, kind in kinds.items() if kind == "text"]
    others = [name for name in kinds if name not in texts]
    steps: list[Any] = []
    for name in texts:
        vectorizer = TfidfVectorizer(
            ngram_range=(1, 2),
            sublinear_tf=True,
            min_df=2 if len(frame) < 2000 else 5,
            max_features=MAX_TERMS,
            dtype=np.float32,
        )
        steps.append((f"words of {name}", vectorizer, name))
    if others:
        steps.append(("other columns", table_encoder(frame[others], scale=True), others))
    # With words the matrix is sparse, whatever else is in it.
    encoder = ColumnTransformer(steps, sparse_threshold=1.0 if texts else 0.0, verbose_feature_names_out=False)
    return [("columns", TypedColumns(dict(kinds), target)), ("encoder", encoder)]


def _where(frame: "pd.DataFrame") -> str:
    return str(frame.attrs.get("where", "the table"))


def _place(frame: "pd.DataFrame", label: Any) -> str:
    """Name a row of the file that a frame was read from, or of the frame."""
    return f"{_where(frame)}, {frame.index.name or 'row'} {label}"


def _some(words: Iterable[Any]) -> str:
    """Return the first three words."""
    listed = [_short(str(word)) for word in words]
    return ", ".join(listed[:3]) + (", ..." if len(listed) > 3 else "")


def _short(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 60 else text[:57] + "..."
