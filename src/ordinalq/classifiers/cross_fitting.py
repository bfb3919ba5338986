"""Out-of-sample scores: cross-fitting, forests, folds, shared classifiers.

A quantifier learns how a classifier errs, so the scores of its training items must come from models that were fitted
without them: from the other folds (`CrossFitted`), or from the trees of a forest whose bootstrap left them out.

A classifier that was fitted before, on other items (`FrozenEstimator`), is not fitted again: all items are new to it.

Quantifiers fit classifiers on codes 0..n-1, in the order of their classes. Classifiers that were fitted before have
the labels instead; `fit` receives the labels of the codes (`labels`), and columns are found through the classifier's
``classes_``.

The parts of scikit-learn that are used here are imported in the functions that use them: they take longer to load than
all of ordinalq, and draw in packages that no estimate needs.
"""

import warnings
from abc import ABC, abstractmethod
from typing import Any, Self

import numpy as np
from joblib import Parallel, delayed
from sklearn import config_context
from sklearn.base import BaseEstimator, ClassifierMixin, clone, is_regressor
from sklearn.frozen import FrozenEstimator
from sklearn.utils import _safe_indexing
from sklearn.utils.validation import (
    _num_samples,
    check_consistent_length,
    check_is_fitted,
    column_or_1d,
    has_fit_parameter,
)

from ordinalq._utils.parallel import WatchedCall
from ordinalq._utils.progress import iterate_steps
from ordinalq._utils.text import percent
from ordinalq._utils.validation import Array, Codes, Floats, Mask, check_integer
from ordinalq.samples.weights import check_weights

# Folds of the training items: every item is held out once, groups together.


def make_folds(
    cv: Any, codes: Codes, groups: Codes | None = None, *, random_state: Any = 0, seen: bool = True
) -> list[tuple[Codes, Codes]]:
    """Return the training and held-out items of each fold.

    Items have codes and groups (N,).

    `cv` is a scikit-learn splitter or the number of stratified, shuffled folds (fewer if no class has that many items;
    folds of whole groups if there are groups). With groups, `seen` rejects folds in which a class is held out that
    is not among their training items.
    """
    with warnings.catch_warnings():
        # A class with fewer items than folds is small, not wrong.
        warnings.filterwarnings("ignore", message="The least populated class")
        folds = list(_splitter(cv, codes, groups, random_state).split(np.zeros(len(codes)), codes, groups))
    held = np.bincount(np.concatenate([test for _, test in folds]), minlength=len(codes))
    if (held != 1).any():
        raise ValueError(
            f"cv must hold out every item exactly once, but holds out item {(held != 1).argmax()} "
            f"{held[(held != 1).argmax()]} times. Use for example StratifiedKFold."
        )
    if seen and groups is not None:
        _check_groups(codes, groups, folds)
    return folds


def _splitter(cv: Any, codes: Codes, groups: Codes | None, random_state: Any) -> Any:
    from sklearn.model_selection import GroupKFold, KFold, StratifiedKFold, check_cv

    if not isinstance(cv, int | np.integer):
        return check_cv(cv, codes, classifier=True)
    k = check_integer("cv", cv, minimum=2)
    if len(codes) < 2:
        raise ValueError(f"y must have at least two items, so that one can be held out, got {len(codes)}.")
    if groups is not None:
        if (number := len(np.unique(groups))) < 2:
            raise ValueError("groups must have at least two different values, got one.")
        return GroupKFold(min(k, number))
    largest = int(np.bincount(codes).max())
    if largest < 2:  # nothing to stratify
        return KFold(min(k, len(codes)), shuffle=True, random_state=random_state)
    return StratifiedKFold(min(k, largest), shuffle=True, random_state=random_state)


def _check_groups(codes: Codes, groups: Codes, folds: list[tuple[Codes, Codes]]) -> None:
    """Raise ValueError if a fold by group lacks a class that its model has to score."""
    for train, test in folds:
        unseen = np.setdiff1d(codes[test], codes[train])
        if len(unseen):
            holders, total = len(np.unique(groups[codes == unseen[0]])), len(np.unique(groups))
            raise ValueError(
                f"groups must leave items of every class to learn from, but class number {unseen[0] + 1} is in "
                f"{holders} of the {total} groups only, which are held out together: use more folds (cv), or more "
                "groups with that class."
            )


# Classifiers with weights of their items, where they take them.


def usable_weights(estimator: Any, sample_weight: Any, n_items: int) -> Floats | None:
    """Return the weights (N,) for the fit of a classifier or a pipeline.

    None if there are none, and with a warning where it takes none.
    """
    if sample_weight is None:
        return None
    weights = check_weights(sample_weight, n_items)
    last = last_step(estimator)
    if has_fit_parameter(last, "sample_weight"):
        return weights
    warnings.warn(
        f"Weights are not used to fit the classifier ({type(last).__name__}), only to estimate from its scores.",
        stacklevel=4,
    )
    return None


def fit_weighted(estimator: Any, X: Any, y: Any, weights: Floats | None) -> Any:
    """Fit a classifier, or a pipeline that ends with one, with weights (N,)."""
    if weights is None:
        return estimator.fit(X, y)
    if not hasattr(estimator, "steps"):
        return estimator.fit(X, y, sample_weight=weights)
    # Whatever the caller routes to us: here they are for the last step.
    with config_context(enable_metadata_routing=False):
        return estimator.fit(X, y, **{f"{estimator.steps[-1][0]}__sample_weight": weights})


# A class may lose this part of its items for lack of an out-of-bag vote.
MAX_LOST = 0.1


class HeldOutScores(ClassifierMixin, BaseEstimator, ABC):
    """Classifier whose `fit` also sets ``held_out_scores_`` (N, n).

    These are scores of the training items by models that were not fitted on them.

    ``gives_posteriors_`` is True if scores are probabilities, not votes; columns follow ``classes_``.
    """

    scores_training_items = True
    classes_: Array

    def predict(self, X: Any) -> Any:
        """Return the class of the highest score, ties to the lowest class, (N,).

        Parameters
        ----------
        X : array-like (N, ...)
            Items, one per row.

        Returns
        -------
        ndarray (N,)
            Predicted classes.
        """
        S = self.predict_proba(X)
        return self.classes_[S.argmax(axis=1)]

    @abstractmethod
    def predict_proba(self, X: Any) -> Floats:
        """Return the scores of new items, (N, n).

        Parameters
        ----------
        X : array-like (N, ...)
            Items, one per row.

        Returns
        -------
        ndarray (N, n)
            Class scores.
        """


class CrossFitted(HeldOutScores):
    """A classifier as k models, each fitted without one of k folds.

    ``held_out_scores_`` holds the score of each training item by the model that has not seen it. New items get the mean
    of the k models' scores. The held-out scores show the accuracy of this ensemble, not that of a model refitted on all
    items.

    Parameters
    ----------
    estimator : classifier, default=None
        None stands for ``LogisticRegression(max_iter=1000)``. One without ``predict_proba`` gives votes: 1 for the
        predicted class, 0 for the others.
    cv : int or splitter, default=10
        Number of stratified, shuffled folds (fewer if no class has that many items), or a scikit-learn splitter that
        holds out every item once.
    refit : bool, default=False
        Score new items by one more model, fitted on all training items.
    n_jobs : int, default=None
        Number of models that are fitted at the same time.
    random_state : int, default=0
        Shuffles the folds.

    Attributes
    ----------
    held_out_scores_ : ndarray (N, n)
        Out-of-sample scores of the training items; columns follow ``classes_``.
    estimators_ : list of fitted classifiers
    classes_ : ndarray (n,)
    names_ : ndarray (n,)
        Names of the classes: ``classes_``, or the labels of an already fitted part.
    gives_posteriors_ : bool
        Whether the scores are probabilities, not votes.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> y = rng.integers(1, 4, 300)
    >>> model = CrossFitted(cv=5).fit(y[:, None] + rng.normal(size=(300, 2)), y)
    >>> model.held_out_scores_.shape, len(model.estimators_)
    ((300, 3), 5)
    """

    def __init__(
        self, estimator: Any = None, *, cv: Any = 10, refit: bool = False, n_jobs: Any = None, random_state: Any = 0
    ) -> None:
        self.estimator = estimator
        self.cv = cv
        self.refit = refit
        self.n_jobs = n_jobs
        self.random_state = random_state

    def fit(
        self, X: Any, y: Any, labels: Array | None = None, groups: Codes | None = None, sample_weight: Any = None
    ) -> Self:
        """Fit one model per fold on X (N, ...), y (N,) and weights (N,).

        With the codes of groups (N,) no model has seen an item of the groups that it scores.

        Parameters
        ----------
        X : array-like (N, ...)
            Items, one per row.
        y : array-like (N,)
            Class of each item.
        labels : ndarray (n,), default=None
            Names of the classes if y has codes.
        groups : ndarray of int (N,), default=None
            Group of each item; groups stay together in the folds.
        sample_weight : array-like (N,), default=None
            Weights of the items; None for equal weights.

        Returns
        -------
        Self
            The fitted classifier.
        """
        y = column_or_1d(y)
        check_consistent_length(X, y)
        self.classes_, codes = np.unique(y, return_inverse=True)
        estimator = default_classifier() if self.estimator is None else self.estimator
        self.names_ = names_of_classes(estimator, self.classes_, labels)
        y = self.names_[codes]
        folds = make_folds(self.cv, codes, groups, random_state=self.random_state)
        w = usable_weights(estimator, sample_weight, len(y))
        jobs = (delayed(WatchedCall(_fit))(estimator, X, y, w, train) for train, _ in iterate_steps("fold", folds))
        models = Parallel(n_jobs=self.n_jobs)(jobs)
        self.gives_posteriors_ = hasattr(models[0], "predict_proba")
        S = np.full((len(y), len(self.classes_)), np.nan)
        for model, (_, test) in zip(models, folds, strict=True):
            S[test] = class_scores(model, _safe_indexing(X, test), self.names_)
        self.held_out_scores_ = S
        self.estimators_ = [fit_weighted(clone(estimator), X, y, w)] if self.refit else models
        copy_feature_attributes(self, models[0])
        return self

    def predict_proba(self, X: Any) -> Floats:
        """Return the mean of the models' scores, (N, n)."""
        check_is_fitted(self, "estimators_")
        scores = [class_scores(model, X, self.names_) for model in self.estimators_]
        return np.asarray(np.mean(scores, axis=0))


class InSample(HeldOutScores):
    """Classifier scored on its training items, which biases the scores.

    It serves to replicate the paper's EDy and PDF, whose reference implementation does this (docs/departures.md).

    Parameters
    ----------
    estimator : classifier, default=None
        None stands for ``LogisticRegression(max_iter=1000)``.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> y = rng.integers(1, 4, 300)
    >>> InSample().fit(y[:, None] + rng.normal(size=(300, 2)), y).held_out_scores_.shape
    (300, 3)
    """

    def __init__(self, estimator: Any = None) -> None:
        self.estimator = estimator

    def fit(
        self, X: Any, y: Any, labels: Array | None = None, groups: Codes | None = None, sample_weight: Any = None
    ) -> Self:
        """Fit the classifier on X (N, ...), y (N,), and score the same items.

        Parameters
        ----------
        X : array-like (N, ...)
            Items, one per row.
        y : array-like (N,)
            Class of each item.
        labels : ndarray (n,), default=None
            Names of the classes if y has codes.
        groups : None
            Not supported.
        sample_weight : array-like (N,), default=None
            Weights of the items; None for equal weights.

        Returns
        -------
        Self
            The fitted classifier.
        """
        if groups is not None:
            raise ValueError(
                "groups must be None with InSample: its scores come from a model that was fitted on all groups. "
                "Use CrossFitted."
            )
        estimator = default_classifier() if self.estimator is None else self.estimator
        self.classes_, codes = np.unique(y, return_inverse=True)
        self.names_ = names_of_classes(estimator, self.classes_, labels)
        w = usable_weights(estimator, sample_weight, len(codes))
        self.estimator_ = fit_weighted(clone(estimator), X, self.names_[codes], w)
        self.gives_posteriors_ = hasattr(self.estimator_, "predict_proba")
        self.held_out_scores_ = self.predict_proba(X)
        return self

    def predict_proba(self, X: Any) -> Floats:
        """Return the classifier's scores, (N, n)."""
        check_is_fitted(self, "estimator_")
        return class_scores(self.estimator_, X, self.names_)


class OutOfBag(HeldOutScores):
    """A forest whose training items are scored by the trees that have not seen them.

    Parameters
    ----------
    estimator : forest, or pipeline that ends with one
        With ``oob_score=True``; ``held_out_scores_`` (N, n) are NaN for items that every tree has seen.
    thinned : bool, default=False
        Keep only as many trees for new items as have scored a training item on average. Votes of few trees are noisier
        than those of all: what is linear in the scores does not mind, but the mean of a logarithm would be biased.
    """

    gives_posteriors_ = True

    def __init__(self, estimator: Any, *, thinned: bool = False) -> None:
        self.estimator = estimator
        self.thinned = thinned

    def fit(
        self, X: Any, y: Any, labels: Array | None = None, groups: Codes | None = None, sample_weight: Any = None
    ) -> Self:
        """Fit the forest on X (N, ...), y (N,); groups are not supported."""
        if groups is not None:
            raise ValueError(
                "groups must be None with out-of-bag scores: the trees that have not seen an item have seen others of "
                "its group, so that groups would look more similar than they are; use CrossFitted(forest), whose folds "
                "keep groups together."
            )
        w = usable_weights(self.estimator, sample_weight, len(y))
        with warnings.catch_warnings():
            # Items without a vote are left out below.
            warnings.filterwarnings("ignore", message="Some inputs do not have OOB scores")
            # The forest divides by the number of votes, zero for those items.
            warnings.filterwarnings("ignore", message="invalid value encountered in divide", category=RuntimeWarning)
            self.estimator_ = fit_weighted(clone(self.estimator), X, y, w)
        forest = last_step(self.estimator_)
        self.classes_, codes = np.unique(y, return_inverse=True)
        S = np.asarray(forest.oob_decision_function_, dtype=np.float64)
        voteless = unscored(S)
        self.held_out_scores_ = np.where(voteless[:, None], np.nan, S)
        lost = np.bincount(codes[voteless], minlength=len(self.classes_)) / np.bincount(codes)
        if lost.max() > MAX_LOST:
            raise ValueError(
                f"class number {lost.argmax() + 1} of {len(lost)} has no out-of-bag score for "
                f"{percent(lost.max(), 0)} of its items, more than {percent(MAX_LOST)}: estimates would be badly "
                "biased. With class_weight='balanced', "
                "scikit-learn >= 1.9 draws items of rare classes into nearly every bag: use "
                "class_weight='balanced_subsample' instead. "
                "Otherwise use more trees, or CrossFitted(forest)."
            )
        if self.thinned:
            kept = max(round(len(forest.estimators_) * _left_out(forest, len(codes))), 1)
            forest.set_params(n_estimators=kept).estimators_ = forest.estimators_[:kept]
        return self

    def predict_proba(self, X: Any) -> Floats:
        """Return the scores of the trees that are kept, (N, n)."""
        return class_scores(self.estimator_, X, self.classes_)


class AlreadyFitted(HeldOutScores):
    """Classifier that was fitted before, on other items than the quantifier.

    Parameters
    ----------
    estimator : FrozenEstimator
        Around a fitted classifier whose ``classes_`` are the labels of the quantifier, in any order.
    """

    def __init__(self, estimator: Any) -> None:
        self.estimator = estimator

    def fit(
        self, X: Any, y: Any, labels: Array | None = None, groups: Codes | None = None, sample_weight: Any = None
    ) -> Self:
        """Score X (N, ...) with codes y (N,); weights are ignored."""
        self.classes_ = np.unique(y)
        check_is_fitted(self.estimator)
        self.names_ = names_of_classes(self.estimator, self.classes_, labels)
        known = self.estimator.classes_.tolist()
        lacking = [name for name in self.names_.tolist() if name not in known]
        extra = [name for name in known if name not in self.names_.tolist()]
        if lacking or extra:
            raise ValueError(
                f"the fitted classifier has the classes {known}, but the items have {self.names_.tolist()}: "
                f"{'it lacks' if lacking else 'no item is of'} {lacking or extra}; "
                "fit it on items of exactly these classes."
            )
        self.gives_posteriors_ = hasattr(self.estimator, "predict_proba")
        self.held_out_scores_ = self.predict_proba(X)
        return self

    def predict_proba(self, X: Any) -> Floats:
        """Return the classifier's scores, (N, n)."""
        check_is_fitted(self, "names_")
        return class_scores(self.estimator, X, self.names_)


def held_out(classifier: Any) -> Any:
    """Return an unfitted classifier with held-out scores for any classifier.

    None is ``CrossFitted(LogisticRegression(max_iter=1000))``; a ``FrozenEstimator`` is taken as it is; a forest with
    ``oob_score=True``, also at the end of a pipeline, gives out-of-bag scores; what has its own held-out scores
    (``scores_training_items``) is copied; anything else is cross-fitted. Its ``fit(X, codes, labels)`` takes what the
    codes stand for.
    """
    if classifier is None:
        return CrossFitted()
    usable = all(hasattr(classifier, name) for name in ("fit", "predict", "get_params"))
    if isinstance(classifier, type) or not usable or is_regressor(classifier):
        raise TypeError(f"classifier must be a scikit-learn classifier (an object, not its class), got {classifier!r}.")
    if getattr(classifier, "scores_training_items", False):
        return clone(classifier)
    if isinstance(classifier, FrozenEstimator):  # which also has what the forest in it has
        return AlreadyFitted(classifier)
    if getattr(last_step(classifier), "oob_score", False):
        return OutOfBag(classifier)
    return CrossFitted(classifier)


def copy_feature_attributes(estimator: Any, fitted: Any) -> None:
    """Copy the number and names of features, if known, from a fitted part."""
    for name in ("n_features_in_", "feature_names_in_"):
        if hasattr(fitted, name):
            setattr(estimator, name, getattr(fitted, name))


def default_classifier() -> Any:
    """Return the default classifier."""
    from sklearn.linear_model import LogisticRegression

    # A hundred steps, scikit-learn's default, are too few for items that are not scaled.
    return LogisticRegression(max_iter=1000)


def last_step(estimator: Any) -> Any:
    """Return the last step of a pipeline, or the estimator itself."""
    return estimator[-1] if hasattr(estimator, "steps") else estimator


def unscored(S: Floats) -> Mask:
    """Return which rows of S (N, n) hold no score: all NaN or all zero."""
    return np.asarray(np.isnan(S).all(axis=1) | (S == 0).all(axis=1))


def names_of_classes(estimator: Any, classes: Array, labels: Array | None) -> Array:
    """Return the class names (n,) of an estimator.

    These are the labels if a part of it was fitted on them before.

    Classes are codes, ascending; ``labels[code]`` is what a code stands for, None where the codes are the labels.
    """
    parts = (estimator, *estimator.get_params(deep=True).values())
    if labels is None or not any(isinstance(part, FrozenEstimator) for part in parts):
        return classes
    names: Array = np.asarray(labels)[classes]
    return names


def class_scores(model: Any, X: Any, names: Array) -> Floats:
    """Return scores of a fitted model in the columns of `names` (n,).

    A class that the model does not have gets 0.
    """
    column = {name: j for j, name in enumerate(names.tolist())}
    known = np.asarray(model.classes_).tolist()
    if not column.keys() >= set(known):
        raise ValueError(f"the classifier must have only the classes {list(column)}, got {known}.")
    S = np.zeros((_num_samples(X), len(names)))
    if hasattr(model, "predict_proba"):
        S[:, [column[name] for name in known]] = model.predict_proba(X)
    else:
        said, which = np.unique(model.predict(X), return_inverse=True)
        S[np.arange(len(S)), np.array([column[name] for name in said.tolist()], dtype=np.intp)[which]] = 1
    return S


def _left_out(forest: Any, n_items: int) -> float:
    """Return the mean part of N items left out by the bootstrap, (1 - 1/N)^drawn."""
    most = n_items if forest.max_samples is None else forest.max_samples
    drawn = most * n_items if isinstance(most, float) else most
    return float((1 - 1 / n_items) ** drawn)


def _fit(estimator: Any, X: Any, y: Any, w: Floats | None, train: Any) -> Any:
    """Fit one model; with one class left, the model always predicts that class."""
    if len(np.unique(y[train])) == 1:
        from sklearn.dummy import DummyClassifier

        estimator = DummyClassifier(strategy="most_frequent")
    return fit_weighted(clone(estimator), _safe_indexing(X, train), y[train], None if w is None else w[train])


# Scores of one fitted classifier for any number of methods.


def shared_scores(classifier: Any, names: Array) -> Any:
    """Return a classifier whose scores have the columns of `names` (n,).

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
        raise ValueError(f"y must have the classes of the classifier, {known}, got {names.tolist()}.")
    model = AlreadyFitted(FrozenEstimator(classifier))
    model.classes_, model.names_ = np.arange(len(names)), names
    model.gives_posteriors_ = classifier.gives_posteriors_
    model.held_out_scores_ = classifier.held_out_scores_[:, [known.index(name) for name in names.tolist()]]
    return model
