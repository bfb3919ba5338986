"""What a quantifier is: facts about itself, two stages of fitting and predicting, and what services may ask of it."""

from abc import abstractmethod
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np
from sklearn.exceptions import NotFittedError
from sklearn.utils import get_tags
from sklearn.utils.validation import check_is_fitted

from ordinalq._utils.validation import Floats
from ordinalq.classifiers.cross_fitting import held_out
from ordinalq.inference.labels import label_totals
from ordinalq.inference.model import Replicates
from ordinalq.inference.options import Draws
from ordinalq.metrics import nmd
from ordinalq.quantifiers.fitting import Fitting
from ordinalq.quantifiers.scoring import labelled_samples
from ordinalq.samples.samples import Samples, as_samples
from ordinalq.samples.summary import Summary
from ordinalq.samples.weights import Weights
from ordinalq.simplex import clean
from ordinalq.solvers.solution import Solution, distributions


class Quantifier(Fitting):
    """Estimates the class distribution of unlabelled samples over ordered classes.

    Two stages: `scores` turns items into class scores (or takes the features as they are); `summarize` keeps what the
    method needs of samples of scored items, and `solve` turns that into distributions. `fit` and `predict_samples` do
    both. Services (intervals, groups, diagnosis, search) use the facts and methods below; they never ask for the class
    of a quantifier.

    A method derives from `ordinalq.quantifiers.linear.Method` and implements `learn` and `solve`, and, if they differ from
    the defaults, `embed`, `resample`, `replicates` and the methods for smoothing: see docs/extend/method.md.

    Attributes
    ----------
    classes_ : ndarray (n,)
        Classes in ascending order.
    p_train_ : ndarray (n,)
        Class distribution of the training items.
    """

    def scores(self, X: Any) -> Floats:
        """Return what `predict_scores` takes: class scores (N, n), or the features as floats (HDx)."""
        check_is_fitted(self, "p_train_")
        if self.on == "scores" and not hasattr(self, "classifier_"):
            raise NotFittedError(f"{type(self).__name__} was fitted on scores: use predict_scores, or fit it on items.")
        X = self.check_items(X, reset=False)
        S: Floats = X if self.on == "features" else self.classifier_.predict_proba(X)
        return S

    def predict(self, X: Any, sample_weight: Any = None, weights: str = "survey") -> Floats:
        """Estimate the class distribution of X as one sample, (n,); weights as in :meth:`predict_samples`."""
        S = self.scores(X)
        return np.asarray(self.predict_scores(S, Samples.whole(len(S)), sample_weight, weights)[0])

    def predict_samples(self, X: Any, samples: Any, sample_weight: Any = None, weights: str = "survey") -> Floats:
        """Estimate the class distribution of each sample.

        Parameters
        ----------
        X : array-like, frame or sparse array (N, ...)
            The pool of items.
        samples : Samples or integer array (B, m)
            The items of each sample.
        sample_weight : array-like (N,), default=None
            Weights of the items of the pool; those of weight zero are left out.
        weights : {"survey", "frequency"}, default="survey"
            What weights are, see :meth:`fit`.

        Returns
        -------
        ndarray (B, n)
        """
        return self.predict_scores(self.scores(X), samples, sample_weight, weights)

    def score(self, X: Any, y: Any, sample_weight: Any = None, weights: str = "survey") -> float:
        """Return minus the mean NMD over 100 samples of the given items: for `cross_val_score` and `GridSearchCV`.

        The samples have 100 items and uniformly drawn class distributions (APP, a fixed seed). Taken as one sample, the
        items would have the distribution of the training items, and methods that do not adjust would look best.

        Parameters
        ----------
        X : array-like, frame or sparse array (N, ...)
            Items.
        y : array-like (N,)
            Their labels; samples consist of the classes that occur.
        sample_weight, weights
            Weights of the items, and what they are, see :meth:`fit`.
        """
        S = self.scores(X)
        S, samples, truth = labelled_samples(S, y, self.classes_, Weights.of(sample_weight, weights, len(S)))
        return -float(nmd(truth, clean(self.solve(self.summarize(S, samples, checks=False)).p)).mean())

    def predict_scores(self, S: Any, samples: Any, sample_weight: Any = None, weights: str = "survey") -> Floats:
        """Estimate the class distribution of each sample from the scores S (N, n) of the pool, (B, n)."""
        return distributions(self.solve_scores(S, samples, sample_weight, weights))

    def solve_scores(self, S: Any, samples: Any, sample_weight: Any = None, weights: str = "survey") -> Solution:
        """Return the estimates of `predict_scores` with value, n_iter, converged and kkt, as a `Solution`."""
        if samples is None:
            raise TypeError("samples must be Samples, or index must be an integer array (B, m), got None.")
        return self.solve(self.summarize(S, samples, checks=False, sample_weight=sample_weight, weights=weights))

    def summarize(
        self,
        S: Any,
        samples: Any = None,
        *,
        checks: bool = True,
        labelled: Any = None,
        sample_weight: Any = None,
        weights: str = "survey",
    ) -> Summary:
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
            Labels of the pool, None or NaN for unlabelled items: also keep what estimates from labels need.
        sample_weight, weights
            Weights of the pool, and what they are, see :meth:`predict_samples`. Groups whose items all have weight zero
            are left out.
        """
        check_is_fitted(self, "p_train_")
        S = self.check_scores(S)
        samples = Samples.whole(len(S)) if samples is None else as_samples(samples, len(S))
        samples = samples.weighted(Weights.of(sample_weight, weights, len(S)))
        summary = Summary.of_means(samples, self.embed(S)) if self.on_means else Summary.of_items(samples, S)
        totals = {**summary.totals, **label_totals(self, S, samples, labelled)}
        functions = self.checks() if checks and hasattr(self, "held_out_") else None
        if functions is not None:
            totals["checks"] = functions.total(S, samples)
        return replace(summary, totals=totals)

    @abstractmethod
    def solve(self, summary: Summary) -> Solution:
        """Return the estimates of B summarized samples."""

    @abstractmethod
    def replicates(self, summary: Summary, P: Floats, draws: Draws) -> Iterator[Replicates]:
        """Yield replicates of the estimates P (B, n), whose scatter is that of their errors."""

    def __sklearn_tags__(self) -> Any:
        """Take what items may look like from the classifier, which is the one that sees them."""
        tags = super().__sklearn_tags__()
        if self.on == "scores":
            items = get_tags(held_out(self.classifier)).input_tags
            tags.input_tags.sparse, tags.input_tags.allow_nan = items.sparse, items.allow_nan
        return tags
