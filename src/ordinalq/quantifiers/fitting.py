"""How a quantifier is fitted: on items with a classifier, or on scores of theirs that are given."""

from abc import ABC, abstractmethod
from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils import _safe_indexing
from sklearn.utils.validation import _num_samples, check_consistent_length

from ordinalq._utils.validation import Codes, Floats, check_choice
from ordinalq.classifiers.cross_fitting import held_out, remember_features, shared_scores, unscored, usable_weights
from ordinalq.quantifiers.kept import Kept
from ordinalq.quantifiers.scores import check_features, check_items, check_scores
from ordinalq.samples.keys import Keys
from ordinalq.samples.labels import encode_labels
from ordinalq.samples.weights import KINDS, Weights, handed_on


class Fitting(Kept, BaseEstimator, ABC):
    """The two stages of fitting: a classifier that gives held-out scores, and what a method learns from these."""

    def fit(
        self,
        X: Any,
        y: Any,
        classes: Any = None,
        groups: Any = None,
        sample_weight: Any = None,
        weights: str = "survey",
    ) -> Self:
        """Fit classifier and quantifier on labelled items.

        Parameters
        ----------
        X : array-like, frame or sparse array (N, ...)
            Whatever the classifier takes.
        y : array-like (N,)
            Labels. Numbers are ordered by value, an ordered Categorical keeps its order.
        classes : array-like (n,), default=None
            All labels in ascending order; needed for strings.
        groups : array-like (N,), default=None
            The group of each item: its product, its day. Held-out scores then come from models that have seen no item
            of the group, and the model learns how groups differ, see docs/groups.md.
        sample_weight : array-like (N,), default=None
            Weights of the items, see docs/weights.md: they enter the classifier (if it takes them), class means and
            covariances. Items of weight zero are left out.
        weights : {"survey", "frequency"}, default="survey"
            What weights are: those of a survey or a simulation, worth (sum w)^2 / sum w^2 items, or numbers of items.
        """
        X, y, groups, w = _weighted(X, y, groups, sample_weight, weights)
        codes = self._start(y, classes)
        X = self.check_items(X, reset=True)
        check_consistent_length(X, codes)
        groups = group_codes(groups, len(codes))
        self.fit_items(X, codes, groups, **handed_on(self.fit_items, w))
        return self

    def fit_scores(
        self,
        S: Any,
        y: Any,
        classes: Any = None,
        groups: Any = None,
        sample_weight: Any = None,
        weights: str = "survey",
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
        sample_weight, weights
            Weights of the items, and what they are, see :meth:`fit`.
        """
        if not self.fits_scores:
            raise TypeError(
                f"{type(self).__name__} fits classifiers of its own and cannot be fitted on scores: use fit(X, y)."
            )
        # What an earlier fit on items has left would belong to another model.
        for name in ("classifier_", "n_features_in_", "feature_names_in_"):
            self.__dict__.pop(name, None)
        S, y, groups, w = _weighted(S, y, groups, sample_weight, weights)
        codes = self._start(y, classes)
        S = self.check_scores(S, missing=True)
        check_consistent_length(S, codes)
        if self.on == "features":
            self.n_features_in_ = S.shape[1]
        self._learn_and_keep(S, codes, group_codes(groups, len(codes)), w)
        return self

    def fit_on(
        self,
        classifier: Any,
        y: Any,
        classes: Any = None,
        groups: Any = None,
        sample_weight: Any = None,
        weights: str = "survey",
    ) -> Self:
        """Fit the quantifier on the held-out scores of a fitted classifier, which any number of methods can share.

        Parameters
        ----------
        classifier : fitted CrossFitted, OrdinalProbit, OrdinalStack, or the ``classifier_`` of a fitted quantifier
            It scores new items, too, and is not copied.
        y : array-like (N,)
            Labels of the items that it was fitted on.
        classes, groups, sample_weight, weights
            See :meth:`fit`; as they were when the classifier was fitted.

        Examples
        --------
        >>> import ordinalq as oq
        >>> X = np.arange(60.0)[:, None]
        >>> y = np.repeat([1, 2, 3], 20)
        >>> scored = oq.CrossFitted(cv=3).fit(X, y)
        >>> [method().fit_on(scored, y).predict(X[:30]).round(1).tolist() for method in (oq.CC, oq.PACC)]
        [[0.7, 0.3, 0.0], [0.7, 0.3, 0.0]]
        """
        if self.on == "features":
            raise TypeError(f"{type(self).__name__} works on features, not on scores: use fit(X, y).")
        shared = shared_scores(classifier, encode_labels(y, classes)[0])
        if self.needs_posteriors and not shared.gives_posteriors_:
            raise TypeError(f"{type(self).__name__} needs class probabilities, but the classifier gives votes.")
        self.fit_scores(shared.held_out_scores_, y, classes, groups, sample_weight, weights)
        self.classifier_ = shared
        remember_features(self, classifier)
        return self

    def _start(self, y: Any, classes: Any) -> Codes:
        self.classes_, codes = encode_labels(y, classes, every_class=True)
        self.check_parameters(len(self.classes_))
        return codes

    def fit_items(self, X: Any, codes: Codes, groups: Codes | None = None, weights: Weights | None = None) -> None:
        """Fit the classifier on valid items (N, ...) and codes (N,), then the quantifier on its held-out scores."""
        if self.on == "features":
            self._learn_and_keep(X, codes, groups, weights)
            return
        classifier = held_out(self.classifier)
        w = None if weights is None else usable_weights(classifier, weights.values, len(codes))
        extra = {} if w is None else {"sample_weight": w}
        self.classifier_ = classifier.fit(X, codes, self.classes_, groups, **extra)
        if self.needs_posteriors and not self.classifier_.gives_posteriors_:
            raise TypeError(
                f"{type(self).__name__} needs class probabilities, but {self.classifier!r} has no predict_proba: "
                "use for example LogisticRegression, or CalibratedClassifierCV around it; CC, ACC, OACC, RUN and IBU "
                "need only its predictions."
            )
        self._learn_and_keep(self.classifier_.held_out_scores_, codes, groups, weights)

    def _learn_and_keep(self, S: Floats, codes: Codes, groups: Codes | None, weights: Weights | None) -> None:
        self.learn(S, codes, **handed_on(self.learn, weights))
        scored = ~unscored(S) if self.on == "scores" else np.ones(len(S), dtype=bool)
        if not scored.all():
            S, codes, groups = S[scored], codes[scored], None if groups is None else groups[scored]
            weights = None if weights is None else weights.take(scored)
        self.tune(S, codes, groups, **handed_on(self.tune, weights))
        self.keep(S, codes, groups, **handed_on(self.keep, weights))

    @abstractmethod
    def learn(self, S: Floats, codes: Codes, weights: Weights | None = None) -> None:
        """Learn from held-out scores or features S (N, d), codes (N,) and weights; set ``p_train_``."""

    def check_items(self, X: Any, *, reset: bool) -> Any:
        """Return X with its feature names and number remembered or compared, as floats where it is used directly."""
        return check_items(self, X, as_floats=self.on == "features", reset=reset)

    def check_scores(self, S: Any, *, missing: bool = False) -> Floats:
        """Return scores as float64 rows that sum to one; with `missing`, rows without a score stay as they are."""
        if self.on == "features":
            return check_features(S, getattr(self, "n_features_in_", None))
        return check_scores(S, len(self.classes_), missing=missing)

    def attach(self, classifier: Any, X: Any) -> None:
        """Score new items by a classifier that was fitted on items X (N, ...), after `fit_scores`."""
        self.classifier_ = classifier
        self.check_items(X, reset=True)


def _weighted(X: Any, y: Any, groups: Any, sample_weight: Any, kind: str) -> tuple[Any, Any, Any, Weights | None]:
    """Return items, labels and groups (N, ...) that have a positive weight, and the weights."""
    weights = Weights.of(sample_weight, kind, _num_samples(y)) if y is not None else None
    if weights is None:
        check_choice("weights", kind, KINDS)
        return X, y, groups, None
    kept = np.flatnonzero(weights.values)
    if len(kept) < len(weights.values):
        check_consistent_length(X, y, groups)
        X, y, groups = (None if part is None else _safe_indexing(part, kept) for part in (X, y, groups))
    return X, y, groups, weights.take(kept).scaled()


def group_codes(groups: Any, n_items: int) -> Codes | None:
    """Return the number of each item's group, (N,), or None."""
    if groups is None:
        return None
    keys, codes = Keys.of(groups)
    if len(codes) != n_items:
        raise ValueError(f"groups must have one value per item, {n_items}, got {len(codes)}.")
    if keys.missing.any():
        raise ValueError(f"groups must have no missing values, got {keys.missing[codes].sum()}.")
    return codes
