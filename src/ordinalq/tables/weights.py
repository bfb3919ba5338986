"""Weights of rows in a column of a table."""

import numpy as np
import pandas as pd

from ordinalq.files.cells import as_words, place, short
from ordinalq.files.names import require_columns
from ordinalq.validation import Floats


def row_weights(frame: pd.DataFrame, column: str) -> Floats:
    """Return the weights in a column of a table or a portion of one, (N,): finite numbers >= 0."""
    require_columns(frame.columns, [column], "the table")
    values: Floats = pd.to_numeric(frame[column], errors="coerce").to_numpy(dtype=np.float64, na_value=np.nan)
    bad = ~np.isfinite(values) | (values < 0)
    if bad.any():
        at = int(bad.argmax())
        word = as_words(frame[column])[at]
        got = short(word) if word else "nothing"
        raise ValueError(f"{place(frame, frame.index[at])}: expected a weight >= 0 in column {column!r}, got {got}.")
    return values
