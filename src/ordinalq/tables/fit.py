"""Fitting a model on a table file."""

from collections.abc import Mapping, Sequence
from typing import Any

from ordinalq._utils.progress import report_step
from ordinalq._utils.validation import check_choice
from ordinalq.classifiers.cross_fitting import CrossFitted
from ordinalq.classifiers.registry import NEWTON, scoring_classifier
from ordinalq.io.table import Table
from ordinalq.quantifiers.base import Quantifier
from ordinalq.quantifiers.catalog import find_method
from ordinalq.tables.aggregate import some_rows
from ordinalq.tables.grouping import By, names_of
from ordinalq.tables.model import TableModel

# Names, and parameters that suit tables of users.
CLASSIFIERS: dict[str, dict[str, Any]] = {
    "logistic": NEWTON,
    "forest": {"n_estimators": 300, "min_samples_leaf": 3, "class_weight": "balanced_subsample"},
}

# Of what is cross-fitted: held-out scores are as good with five folds as with ten, for half the time.
N_FOLDS = 5


def build_quantifier(
    method: str | None = None,
    parameters: Mapping[str, Any] | None = None,
    classifier: str | None = None,
    *,
    groups: bool = False,
    n_jobs: int | None = None,
    random_state: int = 0,
) -> Quantifier:
    """Return an unfitted quantifier for encoded tables.

    The method is a name of the catalog, or the path package.module:Class of a custom class; None is
    :class:`ordinalq.AutoQuantifier`, or its method, :class:`ordinalq.AdjustedML`, where a classifier is named. That is
    "logistic", logistic regression, cross-fitted, or "forest", a random forest with out-of-bag scores; with groups the
    forest is cross-fitted, so that folds keep groups together. None is "logistic" where the method needs one.
    """
    named = method is not None
    if method is None:
        method = "AutoQuantifier" if classifier is None else "AdjustedML"
    entry = find_method(method)
    takes = set(entry.cls().get_params(deep=False))
    parameters = dict(parameters or {})
    for name in parameters:
        if name not in takes - {"classifier"}:
            others = ", ".join(sorted(takes - {"classifier"})) or "none"
            hint = "" if named else ", or name a method that has it"
            raise ValueError(f"{method} has no parameter {name!r}; it has: {others}{hint}.")
    how: dict[str, Any] = {"n_jobs": n_jobs, "random_state": random_state}
    if "classifier" not in takes:
        if classifier is not None:
            reason = (
                "looks at the columns themselves"
                if entry.cls().traits.input_kind == "features"
                else "fits its own models"
            )
            raise ValueError(f"{method} {reason} and uses no classifier; give none.")
        seeds = {name: value for name, value in how.items() if name in takes}
        bare: Quantifier = entry.cls(**seeds | parameters)
        return bare
    name = classifier or "logistic"
    check_choice("classifier", name, tuple(CLASSIFIERS))
    if name == "logistic":
        from ordinalq.classifiers.logistic import TableLogisticRegression

        made: Any = CrossFitted(TableLogisticRegression(**CLASSIFIERS[name]), cv=N_FOLDS, **how)
    else:
        made = scoring_classifier(name, CLASSIFIERS[name], cross_fitted=groups, n_folds=N_FOLDS, **how)
    built: Quantifier = entry.cls(made, **parameters)
    return built


def fit_table(
    file: Table,
    target: str,
    quantifier: Quantifier | None = None,
    *,
    by: By | None = None,
    text: Sequence[str] = (),
    features: Sequence[str] = (),
    categories: Sequence[str] = (),
    dates: Mapping[str, str] | None = None,
    classes: Sequence[str] | None = None,
    class_values: Sequence[Any] | None = None,
    skip_unlabelled: bool = False,
    max_items: int | None = None,
    random_state: int = 0,
    weight: str | None = None,
    weight_type: str = "survey",
    tidy_groups: bool = False,
) -> TableModel:
    """Fit a model on a labelled table, or on some rows of a larger one.

    The table is read as a whole. The model is fitted on at most `max_items` rows, drawn at random: the same fraction of
    each group (without `by`, of each class). The other parameters are those of :class:`TableModel` and of its `fit`.
    """
    model = TableModel(quantifier, text=text, features=features, categories=categories, dates=dates)
    asked = model.asked_columns(target)
    others = [target, *names_of(by), *filter(None, [weight])]
    file.require([*asked, *categories, *(dates or ()), *others])
    columns = list(dict.fromkeys([*asked, *others])) if asked else None
    report_step("", 0, 10)
    if max_items is None:
        frame = file.read(columns)
    else:
        frame = some_rows(file, columns, target if by is None else by, max_items, random_state)
    how: dict[str, Any] = {"sample_weight": weight, "weight_type": weight_type, "skip_unlabelled": skip_unlabelled}
    how["tidy_groups"] = tidy_groups
    report_step("", 1, 10, 9)
    model.fit(frame, target, by=by, classes=classes, class_values=class_values, **how)
    report_step("", 10, 10)
    return model
