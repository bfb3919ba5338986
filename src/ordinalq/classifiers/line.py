"""What the linear ordinal classifiers share: checks of labels and weights, and moments of features."""

from numbers import Real
from typing import Any, NamedTuple

import numpy as np
from scipy.sparse import issparse
from sklearn.utils import check_array, gen_batches
from sklearn.utils.sparsefuncs import mean_variance_axis
from sklearn.utils.validation import check_is_fitted, validate_data

from ordinalq._utils.validation import Array, Codes, Floats, check_choice, check_real

# A column whose standard deviation is below this fraction of its mean is constant up to rounding.
CONSTANT = 1e-13
# Rows that are centred at once: while whitening, at most 16 MB of float64.
BLOCK_ROWS = 1024


class Labelled(NamedTuple):
    """Valid items: X (N, d), array or sparse, classes (n,), codes (N,) and weights (N,), of each class some above 0."""

    X: Any
    classes: Array
    codes: Codes
    weight: Floats


def moments(X: Any, weight: Floats) -> tuple[Floats, Floats]:
    """Weighted mean (d,) and standard deviation (d,) of the columns of X (N, d); 0 for constant columns."""
    if issparse(X):
        mean, variance = mean_variance_axis(X, axis=0, weights=weight)
    else:
        mean = weight @ X / weight.sum()
        batches = gen_batches(len(X), BLOCK_ROWS)
        variance = sum(weight[rows] @ (X[rows] - mean) ** 2 for rows in batches) / weight.sum()
    # Rounding may leave the variance of a constant column slightly above or below zero.
    deviation = np.sqrt(np.maximum(variance, 0.0))
    return np.asarray(mean), np.where(deviation > CONSTANT * np.abs(mean), deviation, 0.0)


def check_labelled(estimator: Any, X: Any, y: Any, sample_weight: Any) -> Labelled:
    """Return the arguments of ``fit``, checked, with weights times those that the estimator gives the classes."""
    X, y = validate_data(estimator, X, y, accept_sparse="csr", dtype=np.float64)
    if y.dtype.kind == "O" and all(isinstance(label, Real) for label in y):
        y = y.astype(np.float64)
    if y.dtype.kind not in "biuf":
        raise ValueError(
            f"Unknown label type: y must hold numbers, because labels such as {str(y[0])!r} have no order of "
            "their own; give the codes 0..n-1 of the classes in ascending order."
        )
    classes, codes = np.unique(y, return_inverse=True)
    if len(classes) < 2:
        raise ValueError(f"y must have at least 2 classes, got 1 class: {classes[0]}.")
    if 2 * len(classes) > len(y) and np.any(classes != np.rint(classes)):
        raise ValueError(f"y looks continuous: {len(classes)} values in {len(y)} items; cut it into classes.")
    weight = _item_weights(sample_weight, len(y))
    totals: Floats = np.bincount(codes, weights=weight).astype(np.float64)  # (n,)
    factors = _class_weights(estimator.class_weight, classes, totals)  # (n,)
    if not (totals * factors).all():
        empty = classes[totals * factors == 0][0]
        raise ValueError(f"The class {empty} has weight zero; leave out its items or give them weight.")
    return Labelled(X, classes, codes, weight * factors[codes])


def _item_weights(sample_weight: Any, n_items: int) -> Floats:
    """Return the given weights, or ones (N,)."""
    if sample_weight is None:
        return np.ones(n_items)
    weight: Floats = check_array(sample_weight, ensure_2d=False, dtype=np.float64, input_name="sample_weight")
    if weight.shape != (n_items,):
        raise ValueError(f"sample_weight must have shape ({n_items},), got {weight.shape}.")
    if (weight < 0).any():
        raise ValueError(f"sample_weight must not be negative, got {weight.min()} at item {weight.argmin()}.")
    return weight


def _class_weights(class_weight: Any, classes: Array, totals: Floats) -> Floats:
    """Return one factor per class (n,); `totals` (n,) are the summed weights of their items.

    "balanced" is sum(totals) / (n totals), with counts for totals the usual n_items / (n * count of class).
    """
    if class_weight is None:
        return np.ones(len(classes))
    if isinstance(class_weight, dict):
        labels = classes.tolist()
        stray = [label for label in class_weight if label not in labels]
        # A fold may lack a class; but a class without weight beside a weight without class is misspelt.
        if stray and not set(labels) <= set(class_weight):
            raise ValueError(f"class_weight has {stray[0]!r}, which is not one of the classes {labels}.")
        factors = [check_real(f"class_weight[{c!r}]", class_weight.get(c, 1.0), low=0) for c in labels]
        return np.array(factors)
    check_choice("class_weight", class_weight, ["balanced"])
    with np.errstate(divide="ignore"):
        return np.asarray(np.where(totals > 0, totals.sum() / (len(totals) * totals), 0.0))


def project(estimator: Any, X: Any) -> Floats:
    """Return w.x (N,) of items X (N, d), array-like or sparse, by a fitted estimator."""
    check_is_fitted(estimator)
    items = validate_data(estimator, X, accept_sparse="csr", dtype=np.float64, reset=False)
    return np.asarray(items @ estimator.coef_)


def ordinal_tags(tags: Any) -> Any:
    """Tell scikit-learn that X may be sparse and that classes are learnt only in their order along a line."""
    tags.input_tags.sparse = True
    tags.classifier_tags.poor_score = True
    return tags
