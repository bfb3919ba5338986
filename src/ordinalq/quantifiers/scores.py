"""Checks of the items, scores and features that a caller brings."""

from typing import Any

import numpy as np
from scipy.sparse import issparse
from sklearn.utils.validation import _num_samples, validate_data

from ordinalq._utils.validation import Floats, Mask, real_numbers
from ordinalq.classifiers.cross_fitting import unscored

# How far the sum of a row of scores may be from one: single precision and rounded files stay below.
SCORE_SUM_TOLERANCE = 1e-4


def check_items(estimator: Any, X: Any, *, as_floats: bool, reset: bool) -> Any:
    """Return items (N, ...) whose number and names of features the estimator remembers (`reset`) or compares."""
    if X is None or isinstance(X, str):
        raise TypeError(f"X must be items, one per row, got {X!r}.")
    if as_floats:
        return validate_data(estimator, X, reset=reset, dtype=np.float64)
    if not reset and hasattr(estimator, "n_features_in_") and getattr(X, "ndim", 2) == 1:
        raise ValueError(
            "Expected 2D array, got 1D array instead: X must have one row per item. Reshape your data, for "
            "example X.reshape(1, -1) for a single item."
        )
    validate_data(estimator, X, reset=reset, skip_check_array=True)
    if _num_samples(X) == 0:
        raise ValueError("X must have at least one item, got none.")
    if not hasattr(X, "__getitem__") and hasattr(X, "__array__"):
        return np.asarray(X)
    return X.tocsr() if issparse(X) else X


def check_scores(S: Any, n_classes: int, *, missing: bool = False) -> Floats:
    """Return scores as float64 rows that sum to one; with `missing`, rows without a score stay as they are."""
    scores = _matrix(S)
    if scores.shape[1] != n_classes:
        raise ValueError(f"S must have one column per class, {n_classes}, got {scores.shape[1]}.")
    # Almost always nothing is to be said or done, and two passes show it; comparisons with NaN are false.
    if scores.min() >= 0 and (np.abs(scores.sum(axis=1) - 1) <= 1e-12).all():
        return scores
    empty = unscored(scores) if missing else np.zeros(len(scores), dtype=bool)
    _refuse(~(np.isfinite(scores).all(axis=1) | empty), scores, "must be finite")
    total = scores.sum(axis=1)
    _refuse((scores < -SCORE_SUM_TOLERANCE).any(axis=1) & ~empty, scores, "must not be negative")
    _refuse((np.abs(total - 1) > SCORE_SUM_TOLERANCE) & ~empty, scores, "must sum to 1")
    if empty.any() or (np.abs(total - 1) > 1e-12).any() or (scores < 0).any():
        scores = np.where(empty[:, None], scores, np.maximum(scores, 0))
        total = np.where(empty, 1.0, scores.sum(axis=1))
        scores = scores / total[:, None]
    return scores


def check_features(X: Any, n_features: int | None) -> Floats:
    """Return features as finite float64 rows of the expected number."""
    features = _matrix(X)
    if n_features is not None and features.shape[1] != n_features:
        raise ValueError(f"S must have {n_features} features, got {features.shape[1]}.")
    _refuse(np.asarray(~np.isfinite(features).all(axis=1)), features, "must be finite")
    return features


def _matrix(S: Any) -> Floats:
    try:
        matrix = real_numbers(S)
    except (TypeError, ValueError) as error:
        raise TypeError(f"S must be an array of numbers (N, n), got {type(S).__name__}.") from error
    if matrix.ndim != 2 or len(matrix) == 0:
        raise ValueError(f"S must have shape (N, n) with at least one row, got {matrix.shape}.")
    return matrix


def _refuse(bad: Mask, S: Floats, what: str) -> None:
    if bad.any():
        row = int(np.argmax(bad))
        raise ValueError(f"the rows of S {what}, got row {row}: {np.array2string(S[row], precision=4, threshold=8)}.")
