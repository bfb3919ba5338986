"""What all quantifiers share: labels, scores, samples, and the linear system q = M p."""

import warnings
from abc import ABC, abstractmethod
from copy import copy
from functools import partial

import numpy as np
from scipy.sparse import issparse
from sklearn.base import BaseEstimator, clone
from sklearn.exceptions import ConvergenceWarning, NotFittedError
from sklearn.utils import get_tags
from sklearn.utils.validation import _num_samples, check_consistent_length, check_is_fitted, validate_data

from ordinalq.classify.held_out import held_out, unscored
from ordinalq.labels import encode_labels
from ordinalq.losses import WithBackground
from ordinalq.methods.tuning import Trial, is_auto, refuse_auto, smooth_samples, thirds, tune, with_strength
from ordinalq.objectives import LinearObjective
from ordinalq.samples import Samples
from ordinalq.simplex import clean
from ordinalq.solvers.choose import check_solver, choose

# How far the sum of a row of scores may be from one: single precision and rounded files stay below.
SCORE_SUM_TOLERANCE = 1e-4


class Quantifier(BaseEstimator, ABC):
    """Estimates the class distribution of unlabelled samples over ordered classes.

    Two stages: `scores` turns items into class scores (or takes the features as they are), `predict_scores` turns the
    scores of samples into distributions. `fit` and `predict_samples` do both.

    Attributes
    ----------
    classes_ : ndarray (n,)
        Classes in ascending order.
    p_train_ : ndarray (n,)
        Class distribution of the training items.
    held_out_ : tuple (S, codes)
        V, which intervals need: out-of-sample scores (N_V, n) of the training items, or their features, and their
        codes 0..n-1 (N_V,).
    """

    paper_name = ""
    # What the method takes: "scores" of a classifier, or the "features" themselves.
    _on = "scores"
    _needs_posteriors = True
    # Whether the estimate depends on a sample only through its size and the mean of `_embed`.
    _on_means = True

    def fit(self, X, y, classes=None):
        """Fit classifier and quantifier on labelled items.

        Parameters
        ----------
        X : array-like, frame or sparse array (N, ...)
            Whatever the classifier takes.
        y : array-like (N,)
            Labels. Numbers are ordered by value, an ordered Categorical keeps its order.
        classes : array-like (n,), default=None
            All labels in ascending order; needed for strings.

        Returns
        -------
        self
        """
        self.classes_, codes = encode_labels(y, classes, every_class=True)
        self._check_parameters(len(self.classes_))
        X = self._validate(X, reset=True)
        check_consistent_length(X, codes)
        self._fit_items(X, codes)
        return self

    def fit_scores(self, S, y, classes=None):
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

        Returns
        -------
        self
        """
        # What an earlier fit on items has left would belong to another model.
        for name in ("classifier_", "n_features_in_", "feature_names_in_"):
            if hasattr(self, name):
                delattr(self, name)
        self.classes_, codes = encode_labels(y, classes, every_class=True)
        self._check_parameters(len(self.classes_))
        S = self._check_scores(S, missing=True)
        check_consistent_length(S, codes)
        if self._on == "features":
            self.n_features_in_ = S.shape[1]
        self._fit_scores(S, codes)
        self._keep(S, codes)
        return self

    def scores(self, X):
        """Return what `predict_scores` takes: class scores (N, n), or the features as floats (HDx)."""
        check_is_fitted(self, "p_train_")
        if self._on == "scores" and not hasattr(self, "classifier_"):
            raise NotFittedError(f"{type(self).__name__} was fitted on scores: use predict_scores, or fit it on items.")
        X = self._validate(X, reset=False)
        return X if self._on == "features" else self.classifier_.predict_proba(X)

    def predict(self, X):
        """Estimate the class distribution of X as one sample, (n,)."""
        S = self.scores(X)
        return self.predict_scores(S, Samples.whole(len(S)))[0]

    def predict_samples(self, X, samples):
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

    def predict_scores(self, S, samples):
        """Estimate the class distribution of each sample from the scores S (N, n) of the pool, (B, n)."""
        return estimates(self.solve_scores(S, samples))

    def solve_scores(self, S, samples):
        """Return the estimates of `predict_scores` with value, n_iter, converged and kkt, as a `Solution`."""
        check_is_fitted(self, "p_train_")
        S = self._check_scores(S)
        if not isinstance(samples, Samples):
            try:
                samples = Samples.from_index(samples, len(S))
            except (TypeError, ValueError) as error:
                raise type(error)(f"samples must be Samples or an integer array (B, m): {error}") from error
        if samples.n_items != len(S):
            raise ValueError(f"samples must be drawn from the {len(S)} given items, got a pool of {samples.n_items}.")
        return self._solve(S, samples)

    def predict_groups(self, X, groups, *, level=None, target="sample", n_replicates=200, random_state=0):
        """Estimate the class distribution of each group of items, as a table.

        Parameters
        ----------
        X : array-like, frame or sparse array (N, ...)
            The items.
        groups : array-like (N,)
            The group of each item.
        level : float, default=None
            Of intervals, such as 0.95; None gives none.
        target, n_replicates, random_state
            See :meth:`predict_interval`.

        Returns
        -------
        pandas.DataFrame, or polars.DataFrame where X or groups came from polars
            One row per group, sorted: the group (in a column named as the series `groups`, or "group"), n_items, one
            column per class, mean_class, the mean of the class index 1..n; with a level <class>_lower, <class>_upper,
            mean_class_lower and mean_class_upper.
        """
        from ordinalq.methods.groups import is_polars

        options = {"level": level, "target": target, "n_replicates": n_replicates, "random_state": random_state}
        return self._group_table(self.scores(X), groups, polars=is_polars(X), **options)

    def predict_groups_scores(self, S, groups, *, level=None, target="sample", n_replicates=200, random_state=0):
        """Estimate the class distribution of each group of items with scores S (N, n), see :meth:`predict_groups`."""
        from ordinalq.methods.groups import is_polars

        options = {"level": level, "target": target, "n_replicates": n_replicates, "random_state": random_state}
        return self._group_table(S, groups, polars=is_polars(S), **options)

    def _group_table(self, S, groups, **options):
        from ordinalq.methods.groups import group_table

        check_is_fitted(self, "p_train_")
        return group_table(self, S, groups, **options)

    def predict_interval(self, X, level=0.95, groups=None, *, target="sample", n_replicates=200, random_state=0):
        """Estimate class distributions with intervals, by a bootstrap over the sample and over the held-out items.

        The intervals hold for each class, each cumulative prevalence and the mean class index by itself. They cover
        the scatter of the estimate, not the bias of a method that smooths or does not adjust: see docs/uncertainty.md.

        Parameters
        ----------
        X : array-like, frame or sparse array (N, ...)
            The items.
        level : float, default=0.95
            Of each interval, in (0, 1).
        groups : array-like (N,) or Samples, default=None
            The group of each item, or samples of the items; None takes all of X as one sample.
        target : {"sample", "population"}, default="sample"
            The prevalence that this very sample has, or that of the population it was drawn from.
        n_replicates : int, default=200
            Replicates of each sample, at least 20; they share one replicate of the held-out items in fives.
        random_state : int or Generator, default=0
            Of the replicates.

        Returns
        -------
        Intervals
        """
        options = {"target": target, "n_replicates": n_replicates, "random_state": random_state}
        return self.predict_interval_scores(self.scores(X), level, groups, **options)

    def predict_interval_scores(self, S, level=0.95, groups=None, *, target="sample", n_replicates=200, random_state=0):
        """Estimate class distributions with intervals from scores S (N, n), see :meth:`predict_interval`."""
        from ordinalq.methods.groups import interval_batch

        check_is_fitted(self, "p_train_")
        options = {"target": target, "n_replicates": n_replicates, "random_state": random_state}
        return interval_batch(self, S, level, groups, **options)

    def diagnose(self, X):
        """Say how far the estimate of X as one sample can be trusted.

        Is the sample a mixture of the known classes at all (a chi-square test with p-value)? How precise can an
        estimate be, and how many items would it take? Which classes can hardly be told apart, and does the regularizer
        do anything? ``print`` gives a short text, ``to_dict()`` the values, ``plot()`` a picture of M.

        Parameters
        ----------
        X : array-like, frame or sparse array (N, ...)
            The items of the sample.

        Returns
        -------
        Diagnosis
        """
        return self.diagnose_scores(self.scores(X))

    def diagnose_scores(self, S):
        """Say how far the estimate of a sample with scores S (N, n) can be trusted, see :meth:`diagnose`."""
        from ordinalq.methods.diagnosis import diagnose

        estimate = self.predict_scores(S, Samples.whole(max(len(S), 1)))[0]
        return diagnose(self, self._check_scores(S), estimate, getattr(self, "held_out_", None))

    @abstractmethod
    def _fit_scores(self, S, codes):
        """Fit on held-out scores or features S (N, d) and codes (N,)."""

    @abstractmethod
    def _solve(self, S, samples):
        """Return the Solution for valid scores and samples."""

    def _fit_items(self, X, codes):
        """Fit the classifier, then the quantifier on its held-out scores."""
        if self._on == "features":
            self._fit_scores(X, codes)
            self._keep(X, codes)
            return
        self.classifier_ = held_out(self.classifier).fit(X, codes, self.classes_)
        if self._needs_posteriors and not self.classifier_.gives_posteriors_:
            raise TypeError(
                f"{type(self).__name__} needs class probabilities, but {self.classifier!r} has no predict_proba: "
                "use for example LogisticRegression, or CalibratedClassifierCV around it; CC, ACC, OACC, RUN and IBU "
                "need only its predictions."
            )
        self._fit_scores(self.classifier_.held_out_scores_, codes)
        self._keep(self.classifier_.held_out_scores_, codes)

    def _keep(self, S, codes):
        """Keep V for intervals: the items (N, ...) with an out-of-sample score."""
        missing = unscored(S) if self._on == "scores" else np.zeros(len(S), dtype=bool)
        self.held_out_ = (S[~missing], codes[~missing]) if missing.any() else (S, codes)

    def _embed(self, S):
        """Return the representation f of items with scores S (N, n), (N, d): an array or `OneHot`."""
        return S

    def _solve_means(self, Q, sizes):
        """Return the Solution for mean representations Q (B, d) and sizes (B,)."""
        raise NotImplementedError(f"{type(self).__name__} needs the scores of all items.")

    def _resampled(self, F, drawn):
        """Return the quantifier that other held-out items give, and how they move the class means.

        F (N_V, d) is `_embed` of V; `drawn` are n samples of V, one per class. What moves is the expectation (d, n) of
        f, where f itself depends on V; else None.
        """
        return self, None

    def _check_parameters(self, n_classes):
        """Raise a clear error for parameters out of range, before anything expensive is done."""

    def _set_regularizer(self, regularizer, trials, loss=None):
        """Keep the regularizer, with its strength chosen on `trials()` where that is "auto"."""
        vars(self).pop("tuning_", None)
        if is_auto(regularizer):
            self.tuning_ = tune(regularizer, trials(), loss)
            regularizer = with_strength(regularizer, self.tuning_.value)
        self.regularizer_ = regularizer
        if regularizer.strength is not None:
            setattr(self, f"{regularizer.strength}_", getattr(regularizer, regularizer.strength))

    def __sklearn_tags__(self):
        """Take what items may look like from the classifier, which is the one that sees them."""
        tags = super().__sklearn_tags__()
        if self._on == "scores":
            items = get_tags(held_out(self.classifier)).input_tags
            tags.input_tags.sparse, tags.input_tags.allow_nan = items.sparse, items.allow_nan
        return tags

    def _solve_response(self, Q, M, sizes, background=None):
        """Return the Solution of q = M p + background for q (B, d), M (d, n) and sizes (B,), see `ordinalq.solve`.

        `sizes` or `background` (B, d) may be None.
        """
        raise TypeError(
            f"method must be one that solves q = M p (ACC, PACC, HDx, HDy, PDF, RUN, IBU, their o-forms, or a "
            f"ComposedQuantifier), got {type(self).__name__}."
        )

    def _validate(self, X, *, reset):
        """Return X with its feature names and number remembered or compared, as floats where it is used directly."""
        if X is None or isinstance(X, str):
            raise TypeError(f"X must be items, one per row, got {X!r}.")
        if self._on == "features":
            return validate_data(self, X, reset=reset, dtype=np.float64)
        if not reset and hasattr(self, "n_features_in_") and getattr(X, "ndim", 2) == 1:
            raise ValueError(
                "Expected 2D array, got 1D array instead: X must have one row per item. Reshape your data, for "
                "example X.reshape(1, -1) for a single item."
            )
        validate_data(self, X, reset=reset, skip_check_array=True)
        if _num_samples(X) == 0:
            raise ValueError("X must have at least one item, got none.")
        return X.tocsr() if issparse(X) else X

    def _check_scores(self, S, *, missing=False):
        """Return scores as float64 rows that sum to one; with `missing`, rows without a score stay as they are."""
        try:
            S = np.asarray(S, dtype=np.float64)
        except (TypeError, ValueError) as error:
            raise TypeError(f"S must be an array of numbers (N, n), got {type(S).__name__}.") from error
        if S.ndim != 2 or len(S) == 0:
            raise ValueError(f"S must have shape (N, n) with at least one row, got {S.shape}.")
        if self._on == "features":
            expected = getattr(self, "n_features_in_", S.shape[1])
            if S.shape[1] != expected:
                raise ValueError(f"S must have {expected} features, got {S.shape[1]}.")
            _refuse(~np.isfinite(S).all(axis=1), S, "must be finite")
            return S
        n = len(self.classes_)
        if S.shape[1] != n:
            raise ValueError(f"S must have one column per class, {n}, got {S.shape[1]}.")
        empty = unscored(S) if missing else np.zeros(len(S), dtype=bool)
        _refuse(~(np.isfinite(S).all(axis=1) | empty), S, "must be finite")
        total = S.sum(axis=1)
        _refuse((S < -SCORE_SUM_TOLERANCE).any(axis=1) & ~empty, S, "must not be negative")
        _refuse((np.abs(total - 1) > SCORE_SUM_TOLERANCE) & ~empty, S, "must sum to 1")
        if empty.any() or (np.abs(total - 1) > 1e-12).any() or (S < 0).any():
            S = np.where(empty[:, None], S, np.maximum(S, 0))
            total = np.where(empty, 1.0, S.sum(axis=1))
            S = S / total[:, None]
        return S


class LinearQuantifier(Quantifier):
    """Solves q = M p for every sample at once; subclasses say with which parts.

    Attributes
    ----------
    M_ : ndarray (d, n)
        Mean representation of each class over the held-out training items.
    regularizer_ : Regularizer
        With the strength that was chosen, where that was "auto".
    tau_ or interpolation_ : float
        That strength, for methods that have one.
    tuning_ : Tuning
        How it was chosen; only where it was "auto".
    """

    @abstractmethod
    def _parts(self):
        """Return representation, loss and regularizer."""

    def _check_parameters(self, n_classes):
        representation, loss, regularizer = self._parts()
        check_solver(getattr(self, "solver", None))
        representation.check()
        loss.check()
        regularizer.check(n_classes)

    def _fit_scores(self, S, codes):
        n = len(self.classes_)
        self.representation_, self.loss_, self.regularizer_ = self._parts()
        p_train = np.bincount(codes, minlength=n) / len(codes)
        if self._on == "scores":
            scored = ~unscored(S)
            S, codes = S[scored], codes[scored]
        check_every_class(codes, self.classes_)
        F = self.representation_.fit(S, codes, n).transform(S)
        for_means = self.representation_.for_means_
        if for_means is not None:
            check_every_class(codes[for_means], self.classes_)
        self.M_ = class_means(F, codes, for_means)
        self._set_regularizer(self.regularizer_, lambda: self._trials(S, F, codes), self.loss_)
        self.p_train_ = p_train

    def _trials(self, S, F, codes):
        """Yield samples of held-out items with M from a third of them, to tune on; F (N, d) represents S (N, ...)."""
        for_means = self.representation_.for_means_
        pool = np.arange(len(codes)) if for_means is None else np.flatnonzero(for_means)
        n_blocks = self.representation_.n_blocks_

        def solve(Q, M, sizes, regularizer):
            return self._minimize(self.loss_, regularizer, Q, M, sizes, n_blocks).p

        few = not self.loss_.convex
        drawn = smooth_samples(codes, pool, few=few)
        for third, samples in zip(thirds(codes, pool, few=few), drawn, strict=True):
            if self.representation_.gives_distances:
                # Both q and M are distances to the items that M is made of.
                nearer = clone(self.representation_).fit(S[third], codes[third], len(self.classes_))
                F = nearer.transform(S)
            yield Trial(samples, partial(solve, samples.average(F), class_means(F, codes, third), samples.sizes))

    def _solve(self, S, samples):
        return self._solve_means(samples.average(self._embed(S)), samples.sizes)

    def _embed(self, S):
        return self.representation_.transform(S)

    def _solve_means(self, Q, sizes):
        return self._minimize(self.loss_, self.regularizer_, Q, self.M_, sizes, self.representation_.n_blocks_)

    def _keep(self, S, codes):
        for_means = self.representation_.for_means_
        super()._keep(*((S, codes) if for_means is None else (S[for_means], codes[for_means])))

    def _resampled(self, F, drawn):
        twin = copy(self)
        if not self.representation_.gives_distances:
            twin.M_ = drawn.average(F).T
            return twin, None
        # Distances to other items: f changes, and with it q, by as much as the estimated mixture of V says.
        S, codes = self.held_out_
        nearer = clone(self.representation_).fit(S[drawn.items], codes[drawn.items], len(self.classes_))
        moved = nearer.transform(S)
        twin.M_ = drawn.average(moved).T
        return twin, class_means(moved, codes) - class_means(F, codes)

    def _solve_response(self, Q, M, sizes, background=None):
        self._check_parameters(M.shape[1])
        _, loss, regularizer = self._parts()
        refuse_auto(regularizer)
        if loss.needs_distances:
            return super()._solve_response(Q, M, sizes)
        if sizes is None:
            if loss.needs_sizes:
                raise ValueError("N must be given where q are fractions: the loss needs the numbers of items.")
            sizes = np.ones(len(Q))
        if background is not None:
            loss, Q = WithBackground(loss), np.hstack([Q, background])
        return self._minimize(loss, regularizer, Q, M, sizes, 1)

    def _minimize(self, loss, regularizer, Q, M, sizes, n_blocks):
        """Return the Solution for mean embeddings Q (B, d), M (d, n) and sizes (B,)."""
        objective = LinearObjective(loss, regularizer, Q, M, sizes, n_blocks)
        return choose(objective, self.solver).minimize(objective)


def estimates(solution):
    """Return the distributions of a solution, (B, n), with one warning if some did not converge."""
    failed = int((~solution.converged).sum())
    if failed:
        warnings.warn(
            f"{failed} of {len(solution.p)} samples did not converge to the tolerance of the solver: "
            "give a larger max_iter (of the method or its solver), or more regularization.",
            ConvergenceWarning,
            stacklevel=3,
        )
    return clean(solution.p)


def class_means(F, codes, chosen=None):
    """Return M (d, n), the mean of F (N, d) over the (chosen) items of each class: a class is a sample too."""
    items = np.arange(len(codes)) if chosen is None else np.flatnonzero(chosen)
    members = [items[codes[items] == c] for c in range(codes.max() + 1)]
    return Samples.from_index(members, len(codes)).average(F).T


def check_every_class(codes, classes):
    """Raise a clear error where a class has no item among `codes` (N,)."""
    missing = np.bincount(codes, minlength=len(classes)) == 0
    if missing.any():
        raise ValueError(
            f"class {classes[missing.argmax()]} has no training item with an out-of-sample score; "
            f"M needs every one of the {len(classes)} classes."
        )


def _refuse(bad, S, what):
    if bad.any():
        row = int(np.argmax(bad))
        raise ValueError(f"the rows of S {what}, got row {row}: {np.array2string(S[row], precision=4, threshold=8)}.")
