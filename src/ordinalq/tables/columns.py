"""Numbers from the columns of a table: columns by their kinds, then an encoder of all of them."""

import warnings
from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.compose import ColumnTransformer

from ordinalq.io.columns import as_pandas, check_kind, some, typed
from ordinalq.io.encoder import Words, names_array, table_encoder

MAX_TERMS = 50_000


class TypedColumns(TransformerMixin, BaseEstimator):
    """Takes the columns it knows of a table in their order, and reads them by kind, see `ordinalq.io.columns`.

    ``categories_`` are those of the training table, by column.
    """

    def __init__(self, kinds: Mapping[str, str]) -> None:
        self.kinds = kinds

    def fit(self, X: Any, y: Any = None) -> "TypedColumns":
        """Check the table."""
        self.fit_transform(X)
        return self

    def fit_transform(self, X: Any, y: Any = None) -> pd.DataFrame:
        """Return the typed columns of the training table, a pandas or polars frame."""
        for name, kind in self.kinds.items():
            check_kind(f"kinds[{name!r}]", kind)
        frame = typed(as_pandas(X), self.kinds)
        names = [name for name, kind in self.kinds.items() if kind == "category"]
        self.categories_ = {name: np.unique(frame[name].dropna().to_numpy(dtype=str)) for name in names}
        self.feature_names_in_ = names_array(list(self.kinds))
        self.n_features_in_ = len(self.kinds)
        return frame

    def transform(self, X: Any) -> pd.DataFrame:
        """Return the typed columns of a pandas or polars frame; warn of categories that are all unknown."""
        frame = typed(as_pandas(X), self.kinds)
        for name, known in self.categories_.items():
            words = frame[name].dropna()
            if len(words) and not words.isin(known).any():
                warnings.warn(
                    f"no value of column {name!r} was seen in training: there {some(known)}, here "
                    f"{some(words.unique())}; are they written in the same way?",
                    UserWarning,
                    stacklevel=2,
                )
        return frame


def unfitted_encoder(frame: pd.DataFrame, kinds: Mapping[str, str]) -> Any:
    """Return the unfitted transformer that makes numbers of the typed columns of a training table.

    Texts become TF-IDF weights of words and pairs of words, at most 50,000 of each column; all else goes the way of
    :func:`ordinalq.io.encoder.table_encoder`, numbers being scaled to unit variance.
    """
    texts = [name for name, kind in kinds.items() if kind == "text"]
    others = [name for name, kind in kinds.items() if kind != "text"]
    steps: list[Any] = []
    for name in texts:
        vectorizer = Words(
            ngram_range=(1, 2),
            sublinear_tf=True,
            min_df=2 if len(frame) < 2000 else 5,
            max_features=MAX_TERMS,
            dtype=np.float32,
        )
        steps.append((f"words of {name}", vectorizer, name))
    if others:
        positions = np.flatnonzero([kind != "text" for kind in kinds.values()])
        steps.append(("other columns", table_encoder(frame[others], scale=True), positions))
    # With words the matrix is sparse, whatever else is in it.
    return ColumnTransformer(steps, sparse_threshold=1.0 if texts else 0.0, verbose_feature_names_out=False)
