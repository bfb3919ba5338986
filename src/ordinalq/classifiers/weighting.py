"""Classifiers with weights of their items, where they take them."""

import warnings
from typing import Any

from sklearn import config_context
from sklearn.utils.validation import has_fit_parameter

from ordinalq._utils.validation import Floats
from ordinalq.samples.weights import check_weights


def usable_weights(estimator: Any, sample_weight: Any, n_items: int) -> Floats | None:
    """Return the weights (N,) that a classifier, or the end of a pipeline, is to be fitted with.

    None where there are none, and with a warning where it takes none.
    """
    if sample_weight is None:
        return None
    weights = check_weights(sample_weight, n_items)
    last = estimator[-1] if hasattr(estimator, "steps") else estimator
    if has_fit_parameter(last, "sample_weight"):
        return weights
    warnings.warn(
        f"{type(last).__name__} takes no sample_weight: it is fitted without, and only what is learned from its "
        "scores is weighted.",
        stacklevel=4,
    )
    return None


def fit_weighted(estimator: Any, X: Any, y: Any, weights: Floats | None) -> Any:
    """Fit an unfitted classifier, or a pipeline that ends with one, with weights (N,) that it takes."""
    if weights is None:
        return estimator.fit(X, y)
    if not hasattr(estimator, "steps"):
        return estimator.fit(X, y, sample_weight=weights)
    # Whatever the caller routes to us: here they are for the last step.
    with config_context(enable_metadata_routing=False):
        return estimator.fit(X, y, **{f"{estimator.steps[-1][0]}__sample_weight": weights})
