"""Encoders that turn columns of numbers, dates and categories into numbers.

The functions at its steps have public names, which saved models refer to.
"""

import logging
from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd

from ordinalq.io.columns import MAX_CATEGORIES

logger = logging.getLogger("ordinalq")

# Names of columns up to this length are kept as texts of one length.
LONG_NAME = 100
CALENDAR = ("year", "month", "day", "day_of_week", "hour")


def table_encoder(frame: pd.DataFrame, *, scale: bool = False) -> Any:
    """Return an unfitted transformer from any table to numbers, shape (N, d).

    It is a scikit-learn transformer. Its result has no missing values. Numbers: missing values become the median, and a
    column marks them. Dates: year, month, day, weekday, hour. All others: one column per category, missing values being
    a category. Beyond 30 categories the rarest have a common column, which also represents categories that were not in
    the training table.

    Parameters
    ----------
    frame : DataFrame (N, ...)
        Training table, for the types of its columns.
    scale : bool, default=False
        Scale numbers and dates to mean 0 and variance 1, for linear classifiers.

    Returns
    -------
    transformer : ColumnTransformer
        Unfitted.
    """
    # Pipelines load scikit-learn's progress bars, which `import ordinalq` has no use for.
    from sklearn.compose import make_column_transformer
    from sklearn.impute import SimpleImputer
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import FunctionTransformer, OneHotEncoder, StandardScaler

    # By their positions: scikit-learn takes quadratic time to find many columns by name.
    is_date = np.array([pd.api.types.is_datetime64_any_dtype(dtype) for dtype in frame.dtypes], dtype=bool)
    is_number = np.array([pd.api.types.is_numeric_dtype(dtype) for dtype in frame.dtypes], dtype=bool)  # bool too
    is_category = ~is_date & ~is_number
    for name in frame.columns[is_category]:
        distinct = frame[name].nunique()
        if distinct > MAX_CATEGORIES:
            logger.warning(
                "column %r has %d distinct values: the %d most frequent are categories, the rest shares one; "
                "leave it out with features=[...], convert it (dates, numbers), or give an encoder",
                name,
                distinct,
                MAX_CATEGORIES - 1,
            )

    def imputer() -> Any:
        filled = SimpleImputer(strategy="median", add_indicator=True, keep_empty_features=True)
        return make_pipeline(filled, StandardScaler()) if scale else filled

    return make_column_transformer(
        (make_pipeline(FunctionTransformer(to_float, feature_names_out="one-to-one"), imputer()), is_number),
        (make_pipeline(FunctionTransformer(calendar, feature_names_out=calendar_names), imputer()), is_date),
        (
            make_pipeline(
                FunctionTransformer(to_object, feature_names_out="one-to-one"),
                OneHotEncoder(handle_unknown="infrequent_if_exist", max_categories=MAX_CATEGORIES, sparse_output=False),
            ),
            is_category,
        ),
        verbose_feature_names_out=False,
    )


def names_array(names: Sequence[Any]) -> Any:
    """Return column names as an array of strings of one length.

    A model file stores such an array as a whole. Very long names, and values that are not text, stay objects.
    """
    short = all(isinstance(name, str) and len(name) <= LONG_NAME for name in names)
    return np.array(names, dtype=str if short else object)


def with_name_arrays(encoder: Any) -> Any:
    """Return a fitted encoder whose steps store column names as single arrays.

    The arrays are those of `names_array`. Steps that pass a single column by its name, such as a text, keep objects:
    scikit-learn takes the name from this array, and does not accept `numpy.str_` as a name.
    """
    waiting = [encoder]
    while waiting:
        step = waiting.pop()
        parts = getattr(step, "transformers_", getattr(step, "steps", ()))
        names = vars(step).get("feature_names_in_") if hasattr(step, "__dict__") else None
        if names is not None and not any(isinstance(part[-1], str) for part in parts):
            step.feature_names_in_ = names_array(names.tolist())
        waiting += [part[1] for part in parts]
    return encoder


def encoded_names(encoder: Any, n_features: int) -> tuple[str, ...]:
    """Return the column names of a fitted encoder, or numbers if it has none."""
    try:
        return tuple(map(str, encoder.get_feature_names_out()))
    except AttributeError:  # of the encoder, or of a step of it
        return tuple(f"feature_{j}" for j in range(n_features))


def to_float(frame: pd.DataFrame) -> pd.DataFrame:
    """Convert numbers to floats.

    Complex numbers raise an error, because their imaginary parts would be dropped.
    """
    for name, dtype in frame.dtypes.items():
        if dtype.kind == "c":
            raise ValueError(f"expected real numbers in column {name!r}, got complex ones.")
    return frame.astype("float64")


def to_object(frame: pd.DataFrame) -> pd.DataFrame:
    """Convert categories to text, so that mixed columns can be sorted.

    Missing values stay missing.
    """
    frame = frame.astype(object)
    return frame.where(frame.isna(), frame.map(str)).where(frame.notna(), np.nan)


def calendar(frame: pd.DataFrame) -> pd.DataFrame:
    """Make dates five numbers each."""
    return pd.DataFrame(
        {f"{name}_{unit}": getattr(frame[name].dt, unit).astype("float64") for name in frame for unit in CALENDAR}
    )


def calendar_names(_: Any, names: Sequence[str]) -> list[str]:
    """Name the columns of `calendar`."""
    return [f"{name}_{unit}" for name in names for unit in CALENDAR]
