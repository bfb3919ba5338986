"""The quantifier inside a table model, a search or a pipeline."""

import copy
from typing import Any

from sklearn.pipeline import Pipeline

from ordinalq.inference.predict import group_quantifier
from ordinalq.quantifiers.base import Quantifier


def fitted_quantifier(model: Any) -> Quantifier:
    """Return the quantifier of a table model, search or pipeline.

    The last step of a pipeline must have one. Any other model is returned unchanged.
    """
    if isinstance(model, Pipeline):
        model = model.steps[-1][1]
    if not isinstance(model, Quantifier) and hasattr(model, "fitted"):
        model = model.fitted()
    if not isinstance(model, Quantifier):
        raise TypeError(f"model must be a quantifier, or a pipeline that ends with one, got {type(model).__name__}.")
    return model


def model_for(model: Any, by: Any) -> Any:
    """Return the model for groups of rows, or the model itself.

    The model itself is returned if `by` is None. A warning is issued if it has not learned the differences between
    groups.
    """
    if by is None:
        return model
    return with_quantifier(model, group_quantifier(fitted_quantifier(model), stacklevel=4))


def with_quantifier(model: Any, quantifier: Quantifier) -> Any:
    """Return a copy of a model with another quantifier."""
    if isinstance(model, Quantifier):
        return quantifier
    changed = copy.copy(model)
    if isinstance(model, Pipeline):
        changed.steps = [*model.steps[:-1], (model.steps[-1][0], quantifier)]
    else:
        changed.quantifier_ = quantifier
    return changed
