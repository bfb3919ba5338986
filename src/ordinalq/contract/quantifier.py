"""What a quantifier is: facts about itself, two stages of fitting and predicting, and what services may ask of it."""

import warnings
from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import replace
from typing import Any, Self

import numpy as np
import numpy.typing as npt
from sklearn.base import BaseEstimator
from sklearn.exceptions import ConvergenceWarning, NotFittedError
from sklearn.utils import get_tags
from sklearn.utils.validation import check_consistent_length, check_is_fitted

from ordinalq.classify.held_out import held_out, unscored
from ordinalq.contract.facts import Replicates
from ordinalq.contract.kept import Kept
from ordinalq.contract.labelled import label_totals
from ordinalq.contract.plan import Draws
from ordinalq.contract.scores import check_features, check_items, check_scores
from ordinalq.contract.summary import Summary
from ordinalq.keys import Keys
from ordinalq.labels import encode_labels
from ordinalq.samples import Samples
from ordinalq.simplex import clean
from ordinalq.solvers.solution import Solution
from ordinalq.validation import Floats

Codes = npt.NDArray[np.intp]


class Quantifier(Kept, BaseEstimator, ABC):
    """Estimates the class distribution of unlabelled samples over ordered classes.

    Two stages: `scores` turns items into class scores (or takes the features as they are); `summarize` keeps what the
    method needs of samples of scored items, and `solve` turns that into distributions. `fit` and `predict_samples` do
    both. Whoever asks a quantifier for anything (intervals, groups, diagnosis, search) asks the facts and methods
    below, never what class it is.

    A method derives from `ordinalq.methods.base.Method` and implements `learn` and `solve`, and where they differ from
    the defaults `embed`, `resample`, `replicates`, and what concerns smoothing: see docs/extend/method.md.

    Attributes
    ----------
    classes_ : ndarray (n,)
        Classes in ascending order.
    p_train_ : ndarray (n,)
        Class distribution of the training items.
    """

    def fit(self, X: Any, y: Any, classes: Any = None, groups: Any = None) -> Self:
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

        Returns
        -------
        self
        """
        codes = self._start(y, classes)
        X = self.check_items(X, reset=True)
        check_consistent_length(X, codes)
        self.fit_items(X, codes, group_codes(groups, len(codes)))
        return self

    def fit_scores(self, S: Any, y: Any, classes: Any = None, groups: Any = None) -> Self:
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

        Returns
        -------
        self
        """
        # What an earlier fit on items has left would belong to another model.
        for name in ("classifier_", "n_features_in_", "feature_names_in_"):
            self.__dict__.pop(name, None)
        codes = self._start(y, classes)
        S = self.check_scores(S, missing=True)
        check_consistent_length(S, codes)
        if self.on == "features":
            self.n_features_in_ = S.shape[1]
        self._learn_and_keep(S, codes, group_codes(groups, len(codes)))
        return self

    def _start(self, y: Any, classes: Any) -> Codes:
        self.classes_, codes = encode_labels(y, classes, every_class=True)
        self.check_parameters(len(self.classes_))
        return codes

    def fit_items(self, X: Any, codes: Codes, groups: Codes | None = None) -> None:
        """Fit the classifier on valid items (N, ...) and codes (N,), then the quantifier on its held-out scores."""
        if self.on == "features":
            self._learn_and_keep(X, codes, groups)
            return
        self.classifier_ = held_out(self.classifier).fit(X, codes, self.classes_, groups)
        if self.needs_posteriors and not self.classifier_.gives_posteriors_:
            raise TypeError(
                f"{type(self).__name__} needs class probabilities, but {self.classifier!r} has no predict_proba: "
                "use for example LogisticRegression, or CalibratedClassifierCV around it; CC, ACC, OACC, RUN and IBU "
                "need only its predictions."
            )
        self._learn_and_keep(self.classifier_.held_out_scores_, codes, groups)

    def _learn_and_keep(self, S: Floats, codes: Codes, groups: Codes | None) -> None:
        self.learn(S, codes)
        scored = ~unscored(S) if self.on == "scores" else np.ones(len(S), dtype=bool)
        if not scored.all():
            S, codes, groups = S[scored], codes[scored], None if groups is None else groups[scored]
        self.tune(S, codes, groups)
        self.keep(S, codes, groups)

    def scores(self, X: Any) -> Floats:
        """Return what `predict_scores` takes: class scores (N, n), or the features as floats (HDx)."""
        check_is_fitted(self, "p_train_")
        if self.on == "scores" and not hasattr(self, "classifier_"):
            raise NotFittedError(f"{type(self).__name__} was fitted on scores: use predict_scores, or fit it on items.")
        X = self.check_items(X, reset=False)
        S: Floats = X if self.on == "features" else self.classifier_.predict_proba(X)
        return S

    def predict(self, X: Any) -> Floats:
        """Estimate the class distribution of X as one sample, (n,)."""
        S = self.scores(X)
        return np.asarray(self.predict_scores(S, Samples.whole(len(S)))[0])

    def predict_samples(self, X: Any, samples: Any) -> Floats:
        """Estimate the class distribution of each sample.

        Parameters
        ----------
        X : array-like, frame or sparse array (N, ...)
            The pool of items.
        samples : Samples or integer array (B, m)
            The items of each sample.

        Returns
        -------
        ndarray (B, n)
        """
        return self.predict_scores(self.scores(X), samples)

    def predict_scores(self, S: Any, samples: Any) -> Floats:
        """Estimate the class distribution of each sample from the scores S (N, n) of the pool, (B, n)."""
        return distributions(self.solve_scores(S, samples))

    def solve_scores(self, S: Any, samples: Any) -> Solution:
        """Return the estimates of `predict_scores` with value, n_iter, converged and kkt, as a `Solution`."""
        if samples is None:
            raise TypeError("samples must be Samples, or index must be an integer array (B, m), got None.")
        return self.solve(self.summarize(S, samples, checks=False))

    def summarize(self, S: Any, samples: Any = None, *, checks: bool = True, labelled: Any = None) -> Summary:
        """Return what the method needs of samples of scored items, see :class:`Summary`.

        Parameters
        ----------
        S : array-like (N, n)
            Scores of the pool, as `scores` gives them.
        samples : Samples or integer array (B, m), default=None
            The items of each sample; None takes all items as one.
        checks : bool, default=True
            Also keep what the fit test needs.
        labelled : array-like (N,), default=None
            Labels of the pool, None or NaN where there is none: also keep what estimates from labels need.
        """
        check_is_fitted(self, "p_train_")
        S = self.check_scores(S)
        samples = Samples.whole(len(S)) if samples is None else as_samples(samples, len(S))
        summary = Summary.of_means(samples, self.embed(S)) if self.on_means else Summary.of_items(samples, S)
        totals = {**summary.totals, **label_totals(self, S, samples, labelled)}
        functions = self.checks() if checks and hasattr(self, "held_out_") else None
        if functions is not None:
            totals["checks"] = functions.total(S, samples)
        return replace(summary, totals=totals)

    @abstractmethod
    def learn(self, S: Floats, codes: Codes) -> None:
        """Learn from held-out scores or features S (N, d) and codes (N,); set ``p_train_``."""

    @abstractmethod
    def solve(self, summary: Summary) -> Solution:
        """Return the estimates of B summarized samples."""

    @abstractmethod
    def replicates(self, summary: Summary, P: Floats, draws: Draws) -> Iterator[Replicates]:
        """Yield replicates of the estimates P (B, n), whose scatter is that of their errors."""

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

    def __sklearn_tags__(self) -> Any:
        """Take what items may look like from the classifier, which is the one that sees them."""
        tags = super().__sklearn_tags__()
        if self.on == "scores":
            items = get_tags(held_out(self.classifier)).input_tags
            tags.input_tags.sparse, tags.input_tags.allow_nan = items.sparse, items.allow_nan
        return tags


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


def as_samples(samples: Any, n_items: int) -> Samples:
    """Return samples of a pool, given as such or as an integer array (B, m)."""
    if not isinstance(samples, Samples):
        try:
            samples = Samples.from_index(samples, n_items)
        except (TypeError, ValueError) as error:
            raise type(error)(f"samples must be Samples or an integer array (B, m): {error}") from error
    if samples.n_items != n_items:
        raise ValueError(f"samples must be drawn from the {n_items} given items, got a pool of {samples.n_items}.")
    checked: Samples = samples
    return checked


def distributions(solution: Solution) -> Floats:
    """Return the distributions of a solution, (B, n), with one warning if some did not converge."""
    warn_of_failed(int((~solution.converged).sum()), len(solution.p), stacklevel=4)
    return clean(solution.p)


def warn_of_failed(failed: int, total: int, stacklevel: int = 3) -> None:
    """Warn where some of all samples did not converge."""
    if failed:
        warnings.warn(
            f"{failed} of {total} samples did not converge to the tolerance of the solver: "
            "give a larger max_iter (of the method or its solver), or more regularization.",
            ConvergenceWarning,
            stacklevel=stacklevel,
        )
