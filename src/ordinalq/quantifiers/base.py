"""`Quantifier`, the base class of all methods: fitting, prediction and inference."""

import warnings
from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import replace
from typing import Any, NamedTuple, Self

import numpy as np
from scipy.sparse import issparse
from sklearn.base import BaseEstimator
from sklearn.exceptions import NotFittedError
from sklearn.utils import _safe_indexing, get_tags
from sklearn.utils.validation import _num_samples, check_consistent_length, check_is_fitted, validate_data

from ordinalq._utils.validation import Array, Codes, Floats, Mask, check_choice, real_numbers
from ordinalq.classifiers.cross_fitting import (
    copy_feature_attributes,
    held_out,
    shared_scores,
    unscored,
    usable_weights,
)
from ordinalq.inference.bootstrap import ClassPools, Tilt, of_items, of_means
from ordinalq.inference.diagnosis import Diagnosis, diagnose
from ordinalq.inference.estimates import Estimates
from ordinalq.inference.fit_test import score_checks
from ordinalq.inference.group_model import feature_effect
from ordinalq.inference.intervals import infer_by_bootstrap, width_correction
from ordinalq.inference.items import item_posteriors
from ordinalq.inference.label_plan import LabelsNeeded, labels_needed
from ordinalq.inference.labels import label_totals
from ordinalq.inference.model import HeldOut, Inference, RareClassWarning, Replicates, Smoothing, Traits, has_held_out
from ordinalq.inference.options import Draws, IntervalOptions, check_level
from ordinalq.inference.predict import estimate, group_quantifier, group_samples
from ordinalq.metrics import nmd
from ordinalq.protocols import APP, draw_items, streams
from ordinalq.samples.keys import Keys, is_polars
from ordinalq.samples.labels import class_scale, encode_labels
from ordinalq.samples.samples import OneHot, Samples, as_samples
from ordinalq.samples.summary import Summary
from ordinalq.samples.weights import KINDS, Weights, check_squares, in_usual_unit, item_counts
from ordinalq.simplex import clean
from ordinalq.solvers.solution import Solution, distributions

# Tolerance for the sum of a row of scores; single precision and rounded files stay below.
SCORE_SUM_TOLERANCE = 1e-4
# Groups from which on the first of several columns has the training groups, and the others have their parts.
FEWEST_WITH_PARTS = 10
# Training items of a class below which a warning is issued.
FEW_ITEMS = 10
# Samples of `score`: their number, their largest size, and their seed.
SAMPLES, SIZE, SEED = 100, 100, 0
# Level of intervals if only the covariance of an estimate is needed.
LEVEL = 0.95


class Quantifier(BaseEstimator, ABC):
    """Estimates the class distribution of unlabelled samples over ordered classes.

    There are two stages. `scores` turns items into class scores, or returns the features. `summarize` keeps the values
    that the method needs of samples of scored items, and `solve` turns them into distributions. `fit` and
    `predict_samples` do both.

    A method implements `learn` and `solve` and, if they differ from the defaults, `traits`, `embed`, `resample`,
    `replicates`, `infer` and the methods for smoothing: see docs/extend/method.md.

    Attributes
    ----------
    classes_ : ndarray (n,)
        Classes in ascending order.
    p_train_ : ndarray (n,)
        Class distribution of the training items.
    class_values_ : ndarray (n,) or None
        Value of each class, if given to `fit`.
    held_out_ : HeldOut
        Out-of-sample scores of the training items, for intervals and fit tests.
    group_columns_ : tuple of str
        Names of the columns of the training groups; empty without groups.
    """

    paper_name: str = ""
    classes_: Array
    p_train_: Floats
    class_values_: Floats | None
    held_out_: HeldOut
    group_columns_: tuple[str, ...] = ()

    @property
    def traits(self) -> Traits:
        """Properties of the method that inference, searches and tables depend on."""
        return Traits()

    # Fitting

    def fit(
        self,
        X: Any,
        y: Any,
        *,
        classes: Any = None,
        groups: Any = None,
        class_values: Any = None,
        sample_weight: Any = None,
        weight_type: str = "survey",
    ) -> Self:
        """Fit classifier and quantifier on labelled items.

        Parameters
        ----------
        X : array-like, frame or sparse array (N, ...)
            Items in a form that the classifier accepts.
        y : array-like (N,)
            Labels. Numbers are ordered by value, an ordered Categorical keeps its order.
        classes : array-like (n,), default=None
            All labels in ascending order; needed for strings.
        groups : array-like (N,), default=None
            The group of each item: its product, its day. Held-out scores then come from models that have seen no item
            of the group, and the model learns how groups differ, see docs/groups.md.
        class_values : array-like (n,) or dict, default=None
            Value of each class, over which mean classes are taken. None: classes that are numbers are their own
            values, and for others the mean position 1..n is reported.
        sample_weight : array-like (N,), default=None
            Weights of the items, see docs/weights.md: they enter the classifier (if it takes them), class means and
            covariances. Items of weight zero are left out.
        weight_type : {"survey", "frequency"}, default="survey"
            Survey or simulation weights, whose effective sample size is (sum w)^2 / sum w^2, or numbers of items.

        Returns
        -------
        Self
            The fitted quantifier.
        """
        X, y, groups, w = _weighted(X, y, groups, sample_weight, weight_type)
        codes = self._start(y, classes, class_values)
        X = check_items(self, X, reset=True)
        check_consistent_length(X, codes)
        _warn_of_rare_classes(codes, self.classes_)
        found = training_groups(groups, len(codes))
        self._fit_items(X, codes, found, w)
        self.name_groups(None if found is None else found.keys)
        return self

    def name_groups(self, keys: Keys | None) -> None:
        """Store the names of the columns of the training groups.

        New groups that have these columns and others are parts of groups, see docs/groups.md.

        Parameters
        ----------
        keys : Keys or None
            Names of the training groups.
        """
        self.group_columns_ = () if keys is None else tuple(keys.names)

    def fit_scores(
        self,
        S: Any,
        y: Any,
        *,
        classes: Any = None,
        groups: Any = None,
        class_values: Any = None,
        sample_weight: Any = None,
        weight_type: str = "survey",
    ) -> Self:
        """Fit the quantifier on out-of-sample scores of labelled items.

        Parameters
        ----------
        S : array-like (N, n)
            Scores by models that have not seen the item; rows that are all NaN or all zero stand for items without
            such a score, which count in the training distribution only. Columns follow the order of the classes.
        y : array-like (N,)
            Labels, see :meth:`fit`.
        classes : array-like (n,), default=None
            All labels in ascending order.
        groups : array-like (N,), default=None
            The group of each item; its score comes from a model that has seen no item of the group.
        class_values : array-like (n,) or dict, default=None
            Value of each class, see :meth:`fit`.
        sample_weight, weight_type
            Weights of the items and their type, see :meth:`fit`.

        Returns
        -------
        Self
            The fitted quantifier.
        """
        if not self.traits.accepts_scores:
            raise TypeError(
                f"{type(self).__name__} fits its own classifiers and cannot be fitted on scores. Use fit(X, y)."
            )
        # Attributes of an earlier fit on items would belong to another model.
        for name in ("classifier_", "n_features_in_", "feature_names_in_"):
            self.__dict__.pop(name, None)
        S, y, groups, w = _weighted(S, y, groups, sample_weight, weight_type)
        codes = self._start(y, classes, class_values)
        S = self._check_scores(S, missing=True)
        check_consistent_length(S, codes)
        if self.traits.input_kind == "features":
            self.n_features_in_ = S.shape[1]
        found = training_groups(groups, len(codes))
        self._fit_held_out(S, codes, found, w)
        self.name_groups(None if found is None else found.keys)
        return self

    def fit_on(self, classifier: Any, y: Any, **how: Any) -> Self:
        """Fit on the held-out scores of a fitted classifier, shared by methods.

        Parameters
        ----------
        classifier : fitted CrossFitted, OrdinalProbit, OrdinalStack, or the ``classifier_`` of a fitted quantifier
            It scores new items, too, and is not copied.
        y : array-like (N,)
            Labels of the items that it was fitted on.
        **how
            `classes`, `groups`, `class_values`, `sample_weight` and `weight_type`, see :meth:`fit`; as they were when
            the classifier was fitted.

        Returns
        -------
        Self
            The fitted quantifier.

        Examples
        --------
        >>> import ordinalq as oq
        >>> X = np.arange(60.0)[:, None]
        >>> y = np.repeat([1, 2, 3], 20)
        >>> scored = oq.classifiers.CrossFitted(cv=3).fit(X, y)
        >>> [method().fit_on(scored, y).predict(X[:30]).round(1).tolist() for method in (oq.CC, oq.PACC)]
        [[0.7, 0.3, 0.0], [0.7, 0.3, 0.0]]
        """
        if self.traits.input_kind == "features":
            raise TypeError(f"{type(self).__name__} works on features, not on scores. Use fit(X, y).")
        shared = shared_scores(classifier, encode_labels(y, how.get("classes"))[0])
        if self.traits.needs_posteriors and not shared.gives_posteriors_:
            raise TypeError(f"{type(self).__name__} needs class probabilities, got a classifier with votes only.")
        self.fit_scores(shared.held_out_scores_, y, **how)
        self.classifier_ = shared
        copy_feature_attributes(self, classifier)
        return self

    def attach(self, classifier: Any, X: Any) -> None:
        """Use a classifier fitted on X (N, ...) for new items, after `fit_scores`.

        Parameters
        ----------
        classifier : classifier
            Fitted classifier.
        X : array-like (N, ...)
            Items that the classifier was fitted on.
        """
        self.classifier_ = classifier
        check_items(self, X, reset=True)

    def _start(self, y: Any, classes: Any, class_values: Any) -> Codes:
        self.classes_, codes = encode_labels(y, classes, every_class=True)
        self.class_values_ = None if class_values is None else class_scale(self.classes_, class_values).numbers
        self.check_parameters(len(self.classes_))
        return codes

    def _fit_items(self, X: Any, codes: Codes, groups: "TrainingGroups | None", weights: Weights | None) -> None:
        """Fit the classifier on items and codes (N,), then the quantifier."""
        if self.traits.input_kind == "features":
            self._fit_held_out(X, codes, groups, weights)
            return
        classifier = held_out(self.classifier)
        w = None if weights is None else usable_weights(classifier, weights.values, len(codes))
        extra = {} if w is None else {"sample_weight": w}
        self.classifier_ = classifier.fit(X, codes, self.classes_, None if groups is None else groups.codes, **extra)
        if self.traits.needs_posteriors and not self.classifier_.gives_posteriors_:
            raise TypeError(
                f"{type(self).__name__} needs class probabilities, but {self.classifier!r} has no predict_proba: "
                "use for example LogisticRegression, or CalibratedClassifierCV around it; CC, ACC, OACC, RUN and IBU "
                "need only its predictions."
            )
        self._fit_held_out(self.classifier_.held_out_scores_, codes, groups, weights)

    def _fit_held_out(self, S: Floats, codes: Codes, groups: "TrainingGroups | None", weights: Weights | None) -> None:
        """Learn from out-of-sample scores or features, and store the items that have one."""
        if weights is not None and not self.traits.accepts_weights:
            raise TypeError(f"sample_weight must be None with {type(self).__name__}, which does not accept weights.")
        self.p_train_ = class_distribution(codes, len(self.classes_), weights)
        V = HeldOut(S, codes, weights, n_training=float(len(codes)) if weights is None else weights.size)
        if groups is not None:
            V = replace(V, groups=groups.codes, parts=groups.parts)
        if self.traits.input_kind == "scores" and (empty := unscored(S)).any():
            V = V.take(~empty)
        self._store(self.learn(V) or V)

    def _store(self, V: HeldOut) -> None:
        """Store the held-out items, and statistics of their groups."""
        groups, V = V.groups, replace(V, groups=None, parts=None, learned_groups=V.groups is not None)
        self.held_out_ = V
        if groups is None or self.traits.has_group_model:
            return
        D = feature_effect(self.group_features(V.S), V.codes, groups, V.weights)
        checks = score_checks(self)
        C = None if checks is None else feature_effect(checks.values(V.S), V.codes, groups, V.weights)
        self.held_out_ = replace(V, group_covariance=D, check_covariance=C)
        correction = width_correction(self, V.S, V.codes, groups, V.weights)
        self.held_out_ = replace(self.held_out_, width_correction=correction)

    def _check_scores(self, S: Any, *, missing: bool = False) -> Floats:
        if self.traits.input_kind == "features":
            return check_features(S, getattr(self, "n_features_in_", None))
        return check_scores(S, len(self.classes_), missing=missing)

    # Prediction

    def scores(self, X: Any) -> Floats:
        """Return class scores (N, n), or features as floats.

        Parameters
        ----------
        X : array-like (N, ...)
            Items, one per row.

        Returns
        -------
        ndarray (N, n) or (N, d)
            Class scores or features of the items.
        """
        check_is_fitted(self, "p_train_")
        if self.traits.input_kind == "scores" and not hasattr(self, "classifier_"):
            raise NotFittedError(f"{type(self).__name__} was fitted on scores. Use predict_scores, or fit it on items.")
        X = check_items(self, X, reset=False)
        S: Floats = X if self.traits.input_kind == "features" else self.classifier_.predict_proba(X)
        return S

    def predict(self, X: Any, sample_weight: Any = None, weight_type: str = "survey") -> Floats:
        """Estimate the class distribution of X as one sample, (n,).

        Parameters
        ----------
        X : array-like (N, ...)
            Items, one per row.
        sample_weight : array-like (N,), default=None
            Weights of the items; None for equal weights.
        weight_type : {'survey', 'frequency'}, default='survey'
            Survey or simulation weights, or numbers of identical items.

        Returns
        -------
        ndarray (n,)
            Estimated class prevalences.
        """
        S = self.scores(X)
        return np.asarray(self.predict_scores(S, Samples.whole(len(S)), sample_weight, weight_type)[0])

    def predict_samples(self, X: Any, samples: Any, sample_weight: Any = None, weight_type: str = "survey") -> Floats:
        """Estimate the class distribution of each sample.

        Parameters
        ----------
        X : array-like, frame or sparse array (N, ...)
            The pool of items.
        samples : Samples or integer array (B, m)
            The items of each sample.
        sample_weight : array-like (N,), default=None
            Weights of the items of the pool; those of weight zero are left out.
        weight_type : {"survey", "frequency"}, default="survey"
            Type of the weights, see :meth:`fit`.

        Returns
        -------
        ndarray (B, n)
        """
        return self.predict_scores(self.scores(X), samples, sample_weight, weight_type)

    def predict_scores(self, S: Any, samples: Any, sample_weight: Any = None, weight_type: str = "survey") -> Floats:
        """Estimate class distributions (B, n) of samples from scores S (N, n).

        Parameters
        ----------
        S : array-like (N, n)
            Class scores of the pool, or features (N, d) for methods on features.
        samples : Samples or array-like of int (B, m)
            Samples as positions of items in the pool.
        sample_weight : array-like (N,), default=None
            Weights of the items; None for equal weights.
        weight_type : {'survey', 'frequency'}, default='survey'
            Survey or simulation weights, or numbers of identical items.

        Returns
        -------
        ndarray (B, n)
            Estimated class prevalences of each sample.
        """
        return distributions(self.solve_scores(S, samples, sample_weight, weight_type))

    def solve_scores(self, S: Any, samples: Any, sample_weight: Any = None, weight_type: str = "survey") -> Solution:
        """Return the estimates of `predict_scores` as a `Solution`.

        It also has value, n_iter, converged and kkt.

        Parameters
        ----------
        S : array-like (N, n)
            Class scores of the pool, or features (N, d) for methods on features.
        samples : Samples or array-like of int (B, m)
            Samples as positions of items in the pool.
        sample_weight : array-like (N,), default=None
            Weights of the items; None for equal weights.
        weight_type : {'survey', 'frequency'}, default='survey'
            Survey or simulation weights, or numbers of identical items.

        Returns
        -------
        Solution
            Estimates with value, n_iter, converged and kkt.
        """
        if samples is None:
            raise TypeError("samples must be Samples or an integer array (B, m), got None.")
        how = {"sample_weight": sample_weight, "weight_type": weight_type}
        return self.solve(self.summarize(S, samples, checks=False, **how))

    def summarize(
        self,
        S: Any,
        samples: Any = None,
        *,
        checks: bool = True,
        labels: Any = None,
        label_inclusion: Any = None,
        sample_weight: Any = None,
        weight_type: str = "survey",
    ) -> Summary:
        """Return the values that the method needs of samples of scored items.

        Parameters
        ----------
        S : array-like (N, n)
            Scores of the pool, as `scores` returns them.
        samples : Samples or integer array (B, m), default=None
            The items of each sample; None takes all items as one.
        checks : bool, default=True
            Also keep the sums that the fit test needs.
        labels : array-like (N,), default=None
            Labels of the pool, None or NaN for unlabelled items: also keep the sums that estimates from labels need.
        label_inclusion : array-like (N,), default=None
            Probabilities with which labelled items were drawn, see :meth:`predict_groups`.
        sample_weight, weight_type
            Weights of the pool and their type, see :meth:`predict_samples`. Groups whose items all have weight zero
            are left out.

        Returns
        -------
        Summary
        """
        check_is_fitted(self, "p_train_")
        S = self._check_scores(S)
        samples = Samples.whole(len(S)) if samples is None else as_samples(samples, len(S))
        weights, exponent = in_usual_unit(Weights.of(sample_weight, weight_type, len(S)))
        samples = samples.weighted(weights)
        if samples.weights is not None:
            check_squares(samples.weight, samples.squared_weight)
        means = self.traits.uses_sample_means
        summary = Summary.of_means(samples, self.embed(S)) if means else Summary.of_items(samples, S)
        totals = {**summary.totals, **label_totals(self, S, samples, labels, label_inclusion)}
        functions = score_checks(self) if checks and has_held_out(self) else None
        if functions is not None:
            totals["checks"] = functions.total(S, samples)
        return replace(summary, totals=totals, exponent=exponent)

    def score(self, X: Any, y: Any, sample_weight: Any = None, weight_type: str = "survey") -> float:
        """Return minus the mean NMD over 100 samples of the items.

        For `cross_val_score` and `GridSearchCV`.

        The samples have 100 items and uniformly drawn class distributions (APP, a fixed seed). Taken as one sample, the
        items would have the distribution of the training items, and methods that do not adjust would look best.

        Parameters
        ----------
        X : array-like, frame or sparse array (N, ...)
            Items.
        y : array-like (N,)
            Their labels; samples consist of the classes that occur.
        sample_weight, weight_type
            Weights of the items and their type, see :meth:`fit`.

        Returns
        -------
        float
            Minus the mean NMD; larger is better.
        """
        S = self.scores(X)
        weights, _ = in_usual_unit(Weights.of(sample_weight, weight_type, len(S)))
        S, samples, truth = _labelled_samples(S, y, self.classes_, weights)
        return -float(nmd(truth, clean(self.solve(self.summarize(S, samples, checks=False)).p)).mean())

    # Groups, intervals and diagnosis

    def predict_groups(
        self,
        X: Any,
        groups: Any,
        *,
        level: float | None = None,
        labels: Any = None,
        label_inclusion: Any = None,
        drift: Any = "auto",
        options: IntervalOptions | None = None,
        sample_weight: Any = None,
        weight_type: str = "survey",
    ) -> Estimates:
        """Estimate the class distribution of each group of items.

        Parameters
        ----------
        X : array-like, frame or sparse array (N, ...)
            The items.
        groups : array-like (N,) or Samples
            Group of each item. Groups keep their type and are sorted. Ordered categories keep their order.
        level : float, default=None
            Level of the intervals, such as 0.95. With None, intervals are not computed.
        labels : array-like (N,), default=None
            Labels of some of the items, None or NaN for the others. The labelled items must be drawn at random, from
            all items or within each group. With a group model, labels improve the estimates of all groups.
            ``IntervalOptions(basis=...)`` sets their use. The column ``basis`` states it.
        label_inclusion : array-like (N,), default=None
            Probability in (0, 1] with which each labelled item was drawn, independently of its label. Values of
            unlabelled items are not used. The probabilities may differ, for example be higher for uncertain items.
            Estimates then use the labels alone. None means equal probabilities within each group.
        drift : "auto", None, float or Drift, default="auto"
            Common offset of all groups from the training groups. "auto" estimates it, if there are at least ten groups
            or any labels. None estimates each group independently of the others. A number such as 0.3 states its
            variance relative to that between the training groups. The ``drift`` of earlier estimates is used unchanged.
            Methods without a group model have no offset.
        options : IntervalOptions, default=None
            Options for interval estimation, see :class:`ordinalq.inference.IntervalOptions`.
        sample_weight : array-like (N,), default=None
            Weights of the items. Items of weight zero, and groups of only such items, are left out.
        weight_type : {"survey", "frequency"}, default="survey"
            Type of the weights, see :meth:`fit`.

        Returns
        -------
        Estimates
            One estimate per group. ``frame()`` returns a table.
        """
        if groups is None:
            raise TypeError("groups must be one value per item, got None. Use predict for all items as one sample.")
        level = None if level is None else check_level(level)
        return self._quantifier_for(groups)._estimate(
            X,
            groups,
            level,
            options,
            drift,
            labels=labels,
            label_inclusion=label_inclusion,
            sample_weight=sample_weight,
            weight_type=weight_type,
        )

    def predict_interval(
        self,
        X: Any,
        level: float = 0.95,
        groups: Any = None,
        *,
        labels: Any = None,
        label_inclusion: Any = None,
        drift: Any = "auto",
        options: IntervalOptions | None = None,
        sample_weight: Any = None,
        weight_type: str = "survey",
    ) -> Estimates:
        """Estimate class distributions with bootstrap intervals.

        The intervals hold for each class, each cumulative prevalence and the mean class by itself. They
        include the bias of the method, unless ``IntervalOptions(bias=False)`` is given: see docs/uncertainty.md.

        Parameters
        ----------
        X : array-like, frame or sparse array (N, ...)
            The items.
        level : float, default=0.95
            Level of each interval, in (0, 1).
        groups : array-like (N,) or Samples, default=None
            The group of each item, or samples of the items; None takes all of X as one sample.
        labels : array-like (N,), default=None
            Labels of some of the items, see :meth:`predict_groups`.
        label_inclusion : array-like (N,), default=None
            Probabilities with which labelled items were drawn, see :meth:`predict_groups`.
        drift : "auto", None, float or Drift, default="auto"
            Common offset of all groups, see :meth:`predict_groups`.
        options : IntervalOptions, default=None
            Options for interval estimation, see :class:`ordinalq.inference.IntervalOptions`.
        sample_weight, weight_type
            Weights of the items and their type, see :meth:`predict_groups`.

        Returns
        -------
        Estimates
            Prevalences with the bounds of their intervals.
        """
        level = check_level(level)
        return self._quantifier_for(groups)._estimate(
            X,
            groups,
            level,
            options,
            drift,
            labels=labels,
            label_inclusion=label_inclusion,
            sample_weight=sample_weight,
            weight_type=weight_type,
        )

    def predict_items(self, X: Any, groups: Any = None, *, labels: Any = None) -> Floats:
        """Return posteriors of each item given the prevalences of its group.

        A classifier's probabilities hold for the prevalences of the training items. Here they are calibrated and
        reweighted by the prevalences estimated for the item's group, for users who also sort or filter items.

        Parameters
        ----------
        X : array-like, frame or sparse array (N, ...)
            The items.
        groups : array-like (N,), default=None
            The group of each item; None takes all of X as one sample.
        labels : array-like (N,), default=None
            Labels of some of the items, for the estimates of the groups; see :meth:`predict_groups`.

        Returns
        -------
        ndarray (N, n)
            Rows sum to one.

        Examples
        --------
        >>> import ordinalq as oq
        >>> rng = np.random.default_rng(0)
        >>> y = np.repeat([1, 2], 300)
        >>> q = oq.PACC().fit(y[:, None] + rng.normal(size=(600, 1)), y)
        >>> mostly_two = np.repeat([1, 2], [20, 280])[:, None] + rng.normal(size=(300, 1))
        >>> q.scores(mostly_two).mean(axis=0).round(1).tolist()
        [0.4, 0.6]
        >>> q.predict_items(mostly_two).mean(axis=0).round(1).tolist()
        [0.1, 0.9]
        """
        if isinstance(groups, Samples):
            raise TypeError("groups must be one value per item, got Samples, which may contain an item twice.")
        S = self.scores(X)
        votes = not getattr(getattr(self, "classifier_", None), "gives_posteriors_", True)
        if self.traits.input_kind != "scores" or votes or not has_held_out(self):
            raise TypeError(f"predict_items needs class probabilities, which this {type(self).__name__} does not have.")
        samples, quantifier = group_samples(groups, len(S)), self._quantifier_for(groups)
        # The covariance, not the estimate, needs a level.
        found = estimate(quantifier, quantifier.summarize(S, samples, labels=labels, checks=False), LEVEL)
        return item_posteriors(self, S, samples, found)

    def labels_needed(
        self,
        X: Any,
        groups: Any,
        width: float = 0.05,
        quantity: Any = "mean",
        *,
        level: float = 0.95,
        labels: Any = None,
        options: IntervalOptions | None = None,
    ) -> LabelsNeeded:
        """Return the number of labels for intervals of at most `width`.

        Parameters
        ----------
        X, groups, labels, options
            See :meth:`predict_groups`; without labels so far, `labels` is None.
        width : float, default=0.05
            Upper minus lower bound: in classes for the mean class, in shares for a class.
        quantity : "mean" or a class, default="mean"
            Whose interval: that of the mean class, or of the share of a class.
        level : float, default=0.95
            Level of the interval.

        Returns
        -------
        LabelsNeeded
            ``frame()`` gives a table, ``draw(groups)`` the items to label, at random within each group.
        """
        S = self.scores(X)
        known = [None] * len(S) if labels is None else labels
        quantifier = self._quantifier_for(groups)
        summary = quantifier.summarize(S, group_samples(groups, len(S)), labels=known)
        return labels_needed(quantifier, summary, width, quantity, level=level, options=options)

    def diagnose(self, X: Any, sample_weight: Any = None, weight_type: str = "survey") -> Diagnosis:
        """Check fit, precision and smoothing of the estimate of X as one sample.

        A chi-square test checks whether the sample is a mixture of the training classes. The diagnosis also contains
        the precision, the number of items for a higher precision, classes that are hard to distinguish, and the effect
        of the regularizer. ``print`` shows a short text, ``to_dict()`` returns the values, and ``plot()`` draws M.

        Parameters
        ----------
        X : array-like, frame or sparse array (N, ...)
            The items of the sample.
        sample_weight, weight_type
            Weights of the items and their type, see :meth:`predict_groups`.

        Returns
        -------
        Diagnosis
            Fit, precision and smoothing of the estimate.
        """
        summary = self.summarize(self.scores(X), sample_weight=sample_weight, weight_type=weight_type)
        return diagnose(self, summary)

    def _quantifier_for(self, groups: Any) -> "Quantifier":
        """Return the quantifier that estimates groups, or samples as one."""
        return self if groups is None or isinstance(groups, Samples) else group_quantifier(self, stacklevel=4)

    def _estimate(
        self, X: Any, groups: Any, level: float | None, options: IntervalOptions | None, drift: Any, **how: Any
    ) -> Estimates:
        S = self.scores(X)
        found = estimate(self, self.summarize(S, group_samples(groups, len(S)), **how), level, options, drift)
        return replace(found, polars=is_polars(X) or is_polars(groups))

    # Steps that methods implement

    def check_parameters(self, n_classes: int) -> None:
        """Raise ValueError if a parameter is out of range, before expensive steps.

        Parameters
        ----------
        n_classes : int
            Number of classes n.
        """

    @abstractmethod
    def learn(self, held_out: HeldOut) -> HeldOut | None:
        """Learn from held-out items; return those to store, None for all of them.

        Parameters
        ----------
        held_out : HeldOut
            Training items with out-of-sample scores.

        Returns
        -------
        HeldOut or None
            The items to store if they differ from the given ones.
        """

    @abstractmethod
    def solve(self, summary: Summary) -> Solution:
        """Return the estimates of B summarized samples.

        Parameters
        ----------
        summary : Summary
            Sums over B samples, from :meth:`summarize`.

        Returns
        -------
        Solution
            Estimates of the B samples.
        """

    def collect(self, summary: Summary) -> Any:
        """Return sums over samples for `find_drift`; None for most methods.

        They have ``merge(other)``: the sums of blocks of samples merge to those of all.

        Parameters
        ----------
        summary : Summary
            Sums over B samples, from :meth:`summarize`.

        Returns
        -------
        object or None
            Sums that merge over summaries.
        """
        return None

    def find_drift(self, sums: Any, strength: float | None = None) -> Any:
        """Return the common offset of all samples from `collect`, or None.

        Parameters
        ----------
        sums : object
            Merged results of :meth:`collect`.
        strength : float, default=None
            Strength of the offset; None averages over the strengths.

        Returns
        -------
        Drift or None
            Context for :meth:`infer`.
        """
        return None

    def infer(
        self,
        summary: Summary,
        options: IntervalOptions,
        level: float | None = None,
        block: int = 0,
        context: Any = None,
    ) -> Inference:
        """Return estimates of B samples, with bounds if a level is given.

        By default these come from a bootstrap over the sample and the held-out items. `block` numbers blocks of
        samples that are estimated one by one, and `context` is what `collect` returns for all of them.

        Parameters
        ----------
        summary : Summary
            Sums over B samples, from :meth:`summarize`.
        options : IntervalOptions
            Options for interval estimation.
        level : float, default=None
            Probability that an interval contains the true value; None for no intervals.
        block : int, default=0
            Number of the block of samples, which determines the random draws.
        context : object, default=None
            Result of :meth:`find_drift`.

        Returns
        -------
        Inference
            Estimates, bounds and covariances.
        """
        return infer_by_bootstrap(self, summary, options, level, block)

    def embed(self, S: Floats) -> Floats | OneHot:
        """Return the representation f (N, d) of scores or features S (N, ...).

        Parameters
        ----------
        S : ndarray (N, n)
            Class scores of items, or features (N, d) for methods on features.

        Returns
        -------
        ndarray (N, d) or OneHot
            Represented items.
        """
        return S

    def replicates(self, summary: Summary, P: Floats, draws: Draws) -> Iterator[Replicates]:
        """Yield replicates of the estimates P (B, n) with the scatter of errors.

        Parameters
        ----------
        summary : Summary
            Sums over B samples, from :meth:`summarize`.
        P : ndarray (B, n)
            Estimates of the samples.
        draws : Draws
            Options and random generators.

        Returns
        -------
        iterator of Replicates
            Replicated estimates of blocks of samples.
        """
        if self.traits.uses_sample_means:
            return of_means(self, summary, P, draws)
        V = ClassPools.of(self)
        return of_items([self] * draws.n_models, V, summary, P, draws, Tilt.of(self, V))

    def resample(self, F: Floats | OneHot, drawn: Samples) -> tuple[Self, Floats | None]:
        """Return the quantifier for other held-out items, and changes of means.

        F (N_V, d) is `embed` of V; `drawn` are n samples of V, one per class. The change is that of the expectation
        (d, n) of f if f depends on V, else None.

        Parameters
        ----------
        F : ndarray (N, d) or OneHot
            Represented items, from :meth:`embed`.
        drawn : Samples
            Positions of the drawn held-out items.

        Returns
        -------
        tuple of Quantifier and ndarray or None
            Quantifier with other class means, and the change of the means.
        """
        return self, None

    def frequency_width(self, F: Floats | OneHot) -> int | None:
        """Return the length of blocks of q that sum to one, or None.

        Parameters
        ----------
        F : ndarray (N, d) or OneHot
            Represented items, from :meth:`embed`.

        Returns
        -------
        int or None
            Length of the blocks.
        """
        return F.width if isinstance(F, OneHot) else None

    def response_matrix(self) -> Floats | None:
        """Return M (d, n) with q = M p, or None if the method has none."""
        return None

    def group_features(self, S: Floats) -> Floats:
        """Return the function of items (N, d) whose group effect replicates need.

        Parameters
        ----------
        S : ndarray (N, n)
            Class scores of items, or features (N, d) for methods on features.

        Returns
        -------
        ndarray (N, d)
            Values of the function.
        """
        return np.asarray(self.embed(S), dtype=np.float64)

    def smoothing(self) -> Smoothing | None:
        """Return the strength of smoothing, None if the method does not smooth."""
        return None

    def with_strength(self, value: float) -> Self:
        """Return the fitted quantifier with another strength of smoothing.

        Parameters
        ----------
        value : float
            Strength of smoothing.

        Returns
        -------
        Quantifier
            Copy with this strength.
        """
        raise TypeError(f"{type(self).__name__} does not smooth.")

    def freedom(self, summary: Summary) -> tuple[Floats, Floats] | None:
        """Return strength of smoothing and degrees of freedom of samples, (B,) each.

        Parameters
        ----------
        summary : Summary
            Sums over B samples, from :meth:`summarize`.

        Returns
        -------
        tuple of ndarray (B,) or None
            Strengths and degrees of freedom.
        """
        return None

    def for_groups(self) -> "Quantifier":
        """Return the fitted quantifier that estimates groups."""
        return self

    def adopt(self, fitted: "Quantifier") -> bool:
        """Copy the representation of an equal fitted quantifier; return success.

        Parameters
        ----------
        fitted : Quantifier
            Fitted quantifier.

        Returns
        -------
        bool
            Whether the representation was copied.
        """
        return False

    def __sklearn_tags__(self) -> Any:
        """Take the tags of items from the classifier, which receives them."""
        tags = super().__sklearn_tags__()
        if self.traits.input_kind == "scores":
            items = get_tags(held_out(self.classifier)).input_tags
            tags.input_tags.sparse, tags.input_tags.allow_nan = items.sparse, items.allow_nan
        return tags


def class_distribution(codes: Codes, n: int, weights: Weights | None = None) -> Floats:
    """Return the (weighted) prevalence of each of n classes, (n,)."""
    counts = item_counts(codes, n, weights)
    return np.asarray(counts / counts.sum())


def check_every_class(codes: Codes, classes: Array) -> None:
    """Raise ValueError if codes (N,) leave out a class."""
    missing = np.bincount(codes, minlength=len(classes)) == 0
    if missing.any():
        raise ValueError(
            f"class {classes[missing.argmax()]} has no training item with an out-of-sample score; "
            f"M needs every one of the {len(classes)} classes."
        )


def _warn_of_rare_classes(codes: Codes, classes: Array) -> None:
    """Warn of classes with few of the items with codes (N,)."""
    counts = np.bincount(codes, minlength=len(classes))
    few = [f"{label} ({count})" for label, count in zip(classes, counts, strict=True) if count < FEW_ITEMS]
    if few:
        warnings.warn(
            f"Some classes have fewer than {FEW_ITEMS} training items, so their prevalences are uncertain: "
            f"{', '.join(few)}. Label more items of these classes.",
            RareClassWarning,
            stacklevel=3,
        )


def check_items(estimator: Quantifier, X: Any, *, reset: bool) -> Any:
    """Return items (N, ...) with validated features; `reset` stores their names.

    They are floats if the method works on features.
    """
    if X is None or isinstance(X, str):
        raise TypeError(f"X must be items, one per row, got {X!r}.")
    if estimator.traits.input_kind == "features":
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
    """Return scores as float64 rows with sum one.

    With `missing`, rows without a score stay as they are.
    """
    scores = _matrix(S)
    if scores.shape[1] != n_classes:
        raise ValueError(f"S must have one column per class, {n_classes}, got {scores.shape[1]}.")
    # Almost always nothing is to be said or done, and two passes show it; comparisons with NaN are false.
    if scores.min() >= 0 and (np.abs(scores.sum(axis=1) - 1) <= 1e-12).all():
        return scores
    empty = unscored(scores) if missing else np.zeros(len(scores), dtype=bool)
    _raise_row_error(~(np.isfinite(scores).all(axis=1) | empty), scores, "must be finite")
    total = scores.sum(axis=1)
    _raise_row_error((scores < -SCORE_SUM_TOLERANCE).any(axis=1) & ~empty, scores, "must not be negative")
    _raise_row_error((np.abs(total - 1) > SCORE_SUM_TOLERANCE) & ~empty, scores, "must sum to 1")
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
    _raise_row_error(np.asarray(~np.isfinite(features).all(axis=1)), features, "must be finite")
    return features


def _matrix(S: Any) -> Floats:
    try:
        matrix = real_numbers(S)
    except (TypeError, ValueError) as error:
        raise TypeError(f"S must be an array of numbers (N, n), got {type(S).__name__}.") from error
    if matrix.ndim != 2 or len(matrix) == 0:
        raise ValueError(f"S must have shape (N, n) with at least one row, got {matrix.shape}.")
    return matrix


def _raise_row_error(bad: Mask, S: Floats, what: str) -> None:
    if bad.any():
        row = int(np.argmax(bad))
        raise ValueError(f"the rows of S {what}, got row {row}: {np.array2string(S[row], precision=4, threshold=8)}.")


def _weighted(X: Any, y: Any, groups: Any, sample_weight: Any, kind: str) -> tuple[Any, Any, Any, Weights | None]:
    """Return items, labels and groups (N, ...) with positive weights."""
    weights = Weights.of(sample_weight, kind, _num_samples(y)) if y is not None else None
    if weights is None:
        check_choice("weight_type", kind, KINDS)
        return X, y, groups, None
    kept = np.flatnonzero(weights.values)
    if len(kept) < len(weights.values):
        check_consistent_length(X, y, groups)
        X, y, groups = (None if part is None else _safe_indexing(part, kept) for part in (X, y, groups))
    return X, y, groups, weights.take(kept).scaled()


class TrainingGroups(NamedTuple):
    """Groups of N training items.

    Attributes
    ----------
    keys : Keys
        The G groups.
    codes : ndarray (N,)
        Group of each item.
    parts : ndarray (N,) or None
        Part of a group that each item belongs to, numbered over all groups; None if groups have no parts.
    """

    keys: Keys
    codes: Codes
    parts: Codes | None = None


def training_groups(groups: Any, n_items: int) -> TrainingGroups | None:
    """Return the groups of training items, None without groups.

    If there are several columns, the first has the groups and the others their parts, provided that there are at least
    ten groups. With fewer, every combination of values is a group.

    >>> rows = {"shop": np.repeat(np.arange(10), 2), "month": np.tile([1, 2], 10)}
    >>> found = training_groups(rows, 20)
    >>> found.keys.names, found.codes[:4].tolist(), found.parts[:4].tolist()
    (['shop'], [0, 0, 1, 1], [0, 1, 2, 3])
    """
    if groups is None:
        return None
    keys, codes = Keys.of(groups)
    if len(codes) != n_items:
        raise ValueError(f"groups must have one value per item, {n_items}, got {len(codes)}.")
    if keys.missing.any():
        raise ValueError(f"groups must have no missing values, got {keys.missing[codes].sum()}.")
    first, of_parts = Keys.of(Keys(keys.columns[:1]).frame())
    if len(keys.columns) == 1 or len(first) < FEWEST_WITH_PARTS:
        return TrainingGroups(keys, codes)
    return TrainingGroups(first, of_parts[codes], codes)


def drawn_samples(codes: Any, n_classes: int, weights: Weights | None) -> tuple[Samples, Floats]:
    """Return APP samples of items with codes (N,), and prevalences (B, n).

    Distributions are uniform over the simplex of the classes that are there, and the same for all quantifiers.
    """
    present, own = np.unique(codes, return_inverse=True)
    counts = APP(SAMPLES, min(SIZE, len(codes)), random_state=SEED).counts(len(present))
    items = draw_items(own, counts, "replace", streams(SEED)[2], present)
    samples = Samples(items, np.append(0, np.cumsum(counts.sum(axis=1))), len(codes)).weighted(weights)
    return samples, samples.average(np.eye(n_classes)[codes])


def _labelled_samples(S: Floats, y: Any, classes: Array, weights: Weights | None) -> tuple[Floats, Samples, Floats]:
    """Return scores (N, n) of weighted items, samples, and prevalences (B, n)."""
    _, codes = encode_labels(y, classes)
    if len(S) != len(codes):
        raise ValueError(f"y must have one label per item, {len(S)}, got {len(codes)}.")
    if weights is not None:
        kept = weights.values > 0
        S, codes, weights = S[kept], codes[kept], weights.take(kept)
    return S, *drawn_samples(codes, len(classes), weights)
