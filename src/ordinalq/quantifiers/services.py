"""What users ask a fitted model of any kind: estimates of groups, intervals, a diagnosis."""

from abc import ABC, abstractmethod
from dataclasses import replace
from typing import Any

from ordinalq._utils.validation import Floats
from ordinalq.inference.diagnosis import Diagnosis, diagnose
from ordinalq.inference.estimate import estimate, group_samples
from ordinalq.inference.estimates import Estimates
from ordinalq.inference.label_plan import LabelsNeeded, labels_needed
from ordinalq.inference.options import Plan, check_level
from ordinalq.quantifiers.base import Quantifier
from ordinalq.samples.keys import is_polars


class Services(ABC):
    """Estimates of groups, intervals and diagnosis, for whatever scores items by a fitted quantifier."""

    @abstractmethod
    def fitted(self) -> Quantifier:
        """Return the quantifier that answers."""

    @abstractmethod
    def scores(self, X: Any) -> Floats:
        """Return what the quantifier takes: class scores (N, n), or features."""

    def predict_groups(
        self,
        X: Any,
        groups: Any,
        *,
        level: float | None = None,
        labelled: Any = None,
        plan: Plan | None = None,
        sample_weight: Any = None,
        weights: str = "survey",
    ) -> Estimates:
        """Estimate the class distribution of each group of items.

        Parameters
        ----------
        X : array-like, frame or sparse array (N, ...)
            The items.
        groups : array-like (N,) or Samples
            The group of each item; groups keep their type and come sorted, ordered categories in their own order.
        level : float, default=None
            Level of the intervals, such as 0.95; None gives none.
        labelled : array-like (N,), default=None
            Labels of some of these items, None or NaN for the others: a random draw of each group whose labels are
            known. ``Plan(basis=...)`` says how they are used, the column ``basis`` which way it was.
        plan : Plan, default=None
            How intervals are made, see :class:`ordinalq.Plan`.
        sample_weight : array-like (N,), default=None
            Weights of the items; those of weight zero, and groups that have no others, are left out.
        weights : {"survey", "frequency"}, default="survey"
            What weights are: those of a survey or a simulation, worth (sum w)^2 / sum w^2 items, or numbers of items;
            see docs/weights.md.

        Returns
        -------
        Estimates
            ``frame()`` gives a table, one row per group.
        """
        if groups is None:
            raise TypeError("groups must be one value per item, got None; predict takes all items as one sample.")
        level = None if level is None else check_level(level)
        return self._estimate(X, groups, level, plan, labelled=labelled, sample_weight=sample_weight, weights=weights)

    def predict_interval(
        self,
        X: Any,
        level: float = 0.95,
        groups: Any = None,
        *,
        labelled: Any = None,
        plan: Plan | None = None,
        sample_weight: Any = None,
        weights: str = "survey",
    ) -> Estimates:
        """Estimate class distributions with intervals, by a bootstrap over the sample and over the held-out items.

        The intervals hold for each class, each cumulative prevalence and the mean class index by itself. They cover
        the scatter of the estimate, not the bias of a method that smooths or does not adjust: see docs/uncertainty.md.

        Parameters
        ----------
        X : array-like, frame or sparse array (N, ...)
            The items.
        level : float, default=0.95
            Level of each interval, in (0, 1).
        groups : array-like (N,) or Samples, default=None
            The group of each item, or samples of the items; None takes all of X as one sample.
        labelled : array-like (N,), default=None
            Labels of some of the items, see :meth:`predict_groups`.
        plan : Plan, default=None
            How intervals are made, see :class:`ordinalq.Plan`.
        sample_weight, weights
            Weights of the items, and what they are, see :meth:`predict_groups`.
        """
        level = check_level(level)
        return self._estimate(X, groups, level, plan, labelled=labelled, sample_weight=sample_weight, weights=weights)

    def labels_needed(
        self,
        X: Any,
        groups: Any,
        width: float = 0.05,
        quantity: Any = "mean",
        *,
        level: float = 0.95,
        labelled: Any = None,
        plan: Plan | None = None,
    ) -> LabelsNeeded:
        """Return how many items of each group to label, so that its interval is no wider than `width`.

        Parameters
        ----------
        X, groups, labelled, plan
            See :meth:`predict_groups`; without labels so far, `labelled` is None.
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
        quantifier, S = self.fitted(), self.scores(X)
        known = [None] * len(S) if labelled is None else labelled
        summary = quantifier.summarize(S, group_samples(groups, len(S)), labelled=known)
        return labels_needed(quantifier, summary, width, quantity, level=level, plan=plan)

    def diagnose(self, X: Any, sample_weight: Any = None, weights: str = "survey") -> Diagnosis:
        """Report how far the estimate of X as one sample can be trusted.

        Is the sample a mixture of the known classes at all (a chi-square test with p-value)? How precise can an
        estimate be, and how many items would it take? Which classes can hardly be told apart, and does the regularizer
        do anything? ``print`` gives a short text, ``to_dict()`` the values, ``plot()`` a picture of M.

        Parameters
        ----------
        X : array-like, frame or sparse array (N, ...)
            The items of the sample.
        sample_weight, weights
            Weights of the items, and what they are, see :meth:`predict_groups`.
        """
        quantifier = self.fitted()
        summary = quantifier.summarize(self.scores(X), sample_weight=sample_weight, weights=weights)
        return diagnose(quantifier, summary)

    def _estimate(self, X: Any, groups: Any, level: float | None, plan: Plan | None, **how: Any) -> Estimates:
        quantifier, S = self.fitted(), self.scores(X)
        summary = quantifier.summarize(S, group_samples(groups, len(S)), **how)
        return replace(estimate(quantifier, summary, level, plan), polars=is_polars(X) or is_polars(groups))
