"""Classifiers by name, for experiments and tables."""

from collections.abc import Mapping
from typing import Any

from ordinalq._utils.validation import check_choice
from ordinalq.classifiers.cross_fitting import CrossFitted

# Those that come with out-of-sample scores, see `scoring_classifier`.
FAMILIES = ("forest", "logistic")
NAMES = (*FAMILIES, "LR", "OLR-AT", "OLR-IT", "ORidge", "LAD")
# Parameters of a logistic regression by Newton's method. On tf-idf vectors L-BFGS takes 20 times as long and stops
# farther from the optimum.
NEWTON: dict[str, Any] = {"solver": "newton-cg", "tol": 1e-5, "max_iter": 1000}


def classifier_class(name: str) -> Any:
    """Return the class of a classifier; "LR" is the name of "logistic" in the paper.

    >>> classifier_class("LR").__name__
    'LogisticRegression'
    """
    # Imported here because a command that fits nothing needs none of them.
    from sklearn.ensemble import RandomForestClassifier
    from sklearn.linear_model import LogisticRegression

    from ordinalq.classifiers.ordinal import (
        LeastAbsoluteDeviation,
        OrdinalLogisticAT,
        OrdinalLogisticIT,
        OrdinalRidge,
    )

    check_choice("name", name, NAMES)
    linear = LogisticRegression
    ordinal = (OrdinalLogisticAT, OrdinalLogisticIT, OrdinalRidge, LeastAbsoluteDeviation)
    return dict(zip(NAMES, (RandomForestClassifier, linear, linear, *ordinal), strict=True))[name]


def make_classifier(name: str, parameters: Mapping[str, Any] | None = None, *, random_state: int = 0) -> Any:
    """Return an unfitted classifier, one of `NAMES`, with `parameters`.

    Among the parameters, "none" stands for None, which TOML lacks. Only the forest and LAD draw, by the seed.
    """
    given = {key: None if value == "none" else value for key, value in (parameters or {}).items()}
    seed = {"random_state": random_state} if name in ("forest", "LAD") else {}
    return classifier_class(name)(**(seed | given))


def scoring_classifier(
    family: str,
    parameters: Mapping[str, Any] | None = None,
    *,
    cross_fitted: bool = False,
    n_folds: int = 10,
    n_jobs: int | None = 1,
    random_state: int = 0,
) -> Any:
    """Return an unfitted classifier with out-of-sample training scores.

    The family "forest" is a random forest with out-of-bag scores, `cross_fitted` where groups must be kept together;
    "logistic" is logistic regression, cross-fitted. With several jobs a forest adds the votes of its trees in the order
    in which they come, and rounding differs.
    """
    check_choice("family", family, FAMILIES)
    if family == "logistic" or cross_fitted:
        model = make_classifier(family, parameters, random_state=random_state)
        return CrossFitted(model, cv=n_folds, n_jobs=n_jobs, random_state=random_state)
    fixed = {"oob_score": True, "n_jobs": n_jobs}
    return make_classifier(family, fixed | dict(parameters or {}), random_state=random_state)
