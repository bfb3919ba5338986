"""GroupBLP: best linear prediction of the prevalences of groups."""

from typing import Any

import numpy as np
import numpy.typing as npt

from ordinalq._utils.validation import Floats, check_real
from ordinalq.inference.fit_test import verdicts
from ordinalq.inference.group_model import (
    GroupModel,
    GroupSums,
    Prediction,
    bounds,
    is_unlike,
    learn,
    logits_pay,
    predict,
    stated,
    stated_covariance,
    weak,
    with_logits,
)
from ordinalq.inference.intervals import with_closed_form
from ordinalq.inference.labels import (
    CONTRADICTED,
    WEIGHTED,
    GroupLabels,
    LabelEvidence,
    label_evidence,
    predict_labelled,
)
from ordinalq.inference.model import HeldOut, Inference, Traits, values_of
from ordinalq.inference.options import IntervalOptions
from ordinalq.quantifiers.base import Quantifier
from ordinalq.samples.summary import Summary
from ordinalq.simplex import clean
from ordinalq.solvers.solution import Solution

# Part of a sample below which a difference of weights is a rounding error.
ROUNDING = 1e-12
# What is said of a group; the estimate of a single item is mostly what is known of all groups.
LIKE, UNLIKE, SINGLE = "good", "unlike the training groups", "too few items"


class GroupBLP(Quantifier):
    """Best linear prediction of the shares of a group, given the mean of its items' posteriors.

    Statisticians know it as the empirical best linear predictor of small-area estimation, physicists as a Wiener
    filter. The shares p of a group vary around mu with covariance A, and its items look different from those of other
    groups, by an effect with covariance D, which may go together with the shares (K). All are learned from labelled
    groups, ``fit(X, y, groups=...)``: with q = mean f, p_hat = mu + C_pq C_qq^-1 (q - M mu - shift), see
    docs/groups.md. The intervals come from its error covariance, in closed form, and do not shrink below what the
    group effect allows.

    Without training groups there is no group effect, and the prior is weak: estimates and intervals are then right only
    for samples that differ in nothing but their shares.

    Parameters
    ----------
    classifier : classifier, default=None
        Gives the posteriors, see :class:`CC`.
    group_effect : float, default=None
        Without training groups: a stated intraclass correlation of the labels in (0, 1], such as 0.1. Groups then
        differ mostly in their mean class, and their items as if they were of a higher or lower class; see
        :func:`ordinalq.inference.group_model.stated`. None stands for no effect.

    Attributes
    ----------
    group_model_ : GroupModel
        Means and covariances; ``source`` is "learned", "stated" or "weak".
    """

    paper_name = ""
    answers_for_: Quantifier

    def __init__(self, classifier: Any = None, *, group_effect: float | None = None) -> None:
        self.classifier = classifier
        self.group_effect = group_effect

    def check_parameters(self, n_classes: int) -> None:
        """Raise ValueError if a parameter is out of range."""
        if self.group_effect is not None:
            check_real("group_effect", self.group_effect, low=0, high=1, open_low=True)

    @property
    def traits(self) -> Traits:
        """Traits of a method with a model of groups."""
        return Traits(accepts_weights=True, has_group_model=True)

    def learn(self, held_out: HeldOut) -> None:
        """Learn the model of the groups, for which sums over the held-out items suffice."""
        if held_out.groups is not None and self.group_effect is not None:
            raise ValueError("group_effect must be None with groups, from which the effect is learned.")
        self.uses_logits_ = False
        model = self._model(held_out)
        # The information in the groups counts, not their number: most may have few items.
        n_groups = None if held_out.groups is None else model.n_groups
        self.uses_logits_ = logits_pay(len(self.classes_), held_out.size, n_groups)
        self.group_model_: GroupModel = self._model(held_out) if self.uses_logits_ else model

    def _model(self, V: HeldOut) -> GroupModel:
        """Return the model of groups for the present representation."""
        place = np.zeros(len(V.codes), dtype=np.intp) if V.groups is None else V.groups
        sums = GroupSums.of(self.embed(V.S), V.codes, place, len(self.classes_), weights=V.weights)
        if V.groups is not None:
            return learn(sums)
        return weak(sums) if self.group_effect is None else stated(sums, self.group_effect)

    def embed(self, S: Floats) -> Floats:
        """Return the posteriors, and the logits of the cumulative ones if there is enough to learn from."""
        return with_logits(S) if self.uses_logits_ else S

    def solve(self, summary: Summary) -> Solution:
        """Return the predicted shares of each sample."""
        return Solution.closed_form(self._prediction(summary, "sample").prevalences)

    def _prediction(self, summary: Summary, estimand: str) -> Prediction:
        """Return the prediction of each sample, by the labels of its items too, where there are any."""
        if not self._uses_labels(summary):
            return predict(self.group_model_, summary.means, summary.sizes, estimand)
        labels = self._labels(summary)
        # Rounding errors of weights that are all labelled are no items.
        n_others = summary.sizes - labels.n_labelled
        n_others = np.where(n_others > ROUNDING * summary.sizes, n_others, 0)
        # Of the items without a label; where there are none, any.
        rest = summary.totals["f"] * summary.item_unit[:, None] - labels.sums
        Q = rest / np.where(n_others > 0, n_others, 1)[:, None]
        return predict_labelled(self.group_model_, Q, n_others, labels, estimand)

    def collect(self, summary: Summary) -> LabelEvidence | None:
        """Return by how far the labels of all samples together contradict the model; None without labels."""
        if not self._uses_labels(summary) or self.group_model_.source != "learned":
            return None
        # Groups that are unlike by themselves say nothing of the others.
        like = ~is_unlike(self.group_model_, summary.means, summary.sizes)
        labels = self._labels(summary)
        return label_evidence(self.group_model_, GroupLabels(labels.counts[like], labels.sums[like]))

    def _uses_labels(self, summary: Summary) -> bool:
        """Return whether items have labels that are a random draw: the model cannot use others."""
        return "labels" in summary.totals and WEIGHTED not in summary.totals

    def _labels(self, summary: Summary) -> GroupLabels:
        """Return the labelled items of each sample."""
        unit = summary.item_unit[:, None]
        return GroupLabels(summary.totals["labels"] * unit, summary.totals["labels f"] * unit)

    def infer(
        self,
        summary: Summary,
        options: IntervalOptions,
        level: float | None = None,
        block: int = 0,
        context: LabelEvidence | None = None,
    ) -> Inference:
        """Return estimates with bounds and covariances by the formula of the prediction error.

        If the labels of all samples together contradict the model (`context`), all are unlike the training groups.
        """
        prediction = self._prediction(summary, options.estimand)
        verdict = self._verdicts(summary, prediction)
        if context is not None and context.p_value(self.group_model_.n_groups) < CONTRADICTED:
            verdict = np.full(len(summary), UNLIKE)
        found = Inference(clean(prediction.prevalences), np.ones(len(summary), dtype=bool), verdict)
        if level is None:
            return found
        return with_closed_form(found, bounds(prediction, level, values_of(self)), stated_covariance(prediction, level))

    def _verdicts(self, summary: Summary, prediction: Prediction) -> npt.NDArray[np.str_] | None:
        """Return which samples are unlike the training groups or single items; without groups, the fit test."""
        if self.group_model_.source != "learned":
            return verdicts(self, summary)
        if self._uses_labels(summary):
            unlike = prediction.unlike
        else:
            unlike = is_unlike(self.group_model_, summary.means, summary.sizes)
        return np.where(unlike, UNLIKE, np.where(summary.sizes < 2, SINGLE, LIKE))

    def response_matrix(self) -> Floats | None:
        """Return M."""
        return self.group_model_.M
