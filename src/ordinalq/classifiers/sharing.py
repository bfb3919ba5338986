"""Scores of one fitted classifier for any number of methods."""

from typing import Any

import numpy as np
from sklearn.frozen import FrozenEstimator

from ordinalq._utils.validation import Array
from ordinalq.classifiers.cross_fitting import AlreadyFitted


def shared_scores(classifier: Any, names: Array) -> Any:
    """Return a fitted classifier whose scores of training and new items have the columns of `names` (n,).

    It was fitted on these labels, or on their codes 0..n-1.
    """
    if not hasattr(classifier, "held_out_scores_"):
        raise TypeError(
            "classifier must be fitted and have held-out scores, such as CrossFitted(...).fit(X, y), got "
            f"{classifier!r}."
        )
    known = np.asarray(classifier.classes_).tolist()
    if known in (names.tolist(), list(range(len(names)))):
        return classifier
    if sorted(map(str, known)) != sorted(map(str, names.tolist())):
        raise ValueError(f"y must have the classes that the classifier knows, {known}, got {names.tolist()}.")
    model = AlreadyFitted(FrozenEstimator(classifier))
    model.classes_, model.names_ = np.arange(len(names)), names
    model.gives_posteriors_ = classifier.gives_posteriors_
    model.held_out_scores_ = classifier.held_out_scores_[:, [known.index(name) for name in names.tolist()]]
    return model
