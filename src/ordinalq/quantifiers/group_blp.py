"""GroupBLP: best linear prediction of the prevalences of groups."""

from typing import Any

import numpy as np
import numpy.typing as npt

from ordinalq._utils.validation import Floats, check_real
from ordinalq.inference.drift import FEWEST_GROUPS, Drift, DriftSums, drift_sums, shifted, solve_drift
from ordinalq.inference.fit_test import verdicts
from ordinalq.inference.group_labels import GroupLabels, predict_labelled
from ordinalq.inference.group_model import (
    GroupModel,
    GroupSums,
    Prediction,
    TrainingRows,
    bounds,
    learn,
    model_with_stated_effect,
    model_without_effect,
    predict,
    stated_covariance,
    uses_logits,
    with_logits,
)
from ordinalq.inference.intervals import with_closed_form
from ordinalq.inference.labels import WEIGHTED
from ordinalq.inference.model import HeldOut, Inference, Traits, values_of
from ordinalq.inference.nested import Parts, groups_of_parts, learn_parts, predict_parts
from ordinalq.inference.options import IntervalOptions
from ordinalq.quantifiers.base import Quantifier
from ordinalq.samples.keys import UNNAMED, Keys
from ordinalq.samples.summary import Summary
from ordinalq.simplex import clean
from ordinalq.solvers.solution import Solution

# Part of a sample below which a difference of weights is a rounding error.
ROUNDING = 1e-12
# Training groups that are stored, those with most items.
MOST_STORED = 100_000
# Warning about a group; the estimate of a single item is mostly the mean of all groups.
LIKE, UNLIKE, SINGLE = "good", "unlike the training groups", "too few items"


class GroupBLP(Quantifier):
    """Best linear prediction of group prevalences from mean posteriors.

    Statisticians know it as the empirical best linear predictor of small-area estimation, physicists as a Wiener
    filter. The shares p of a group vary around mu with covariance A, and its items look different from those of other
    groups, by an effect with covariance D, which may go together with the shares (K). All are learned from labelled
    groups, ``fit(X, y, groups=...)``: with q = mean f, p_hat = mu + C_pq C_qq^-1 (q - M mu - shift), see
    docs/groups.md. The intervals come from its error covariance, in closed form, and do not shrink below what the
    group effect allows.

    Without training groups the group effect is zero, and the prior is weak: estimates and intervals are then right only
    for samples that differ in nothing but their shares.

    Parameters
    ----------
    classifier : classifier, default=None
        Gives the posteriors, see :class:`CC`.
    group_effect : float, default=None
        Without training groups: a stated intraclass correlation of the labels in (0, 1], such as 0.1. Groups then
        differ mostly in their mean class, and their items as if they were of a higher or lower class; see
        :func:`ordinalq.inference.group_model.model_with_stated_effect`. None stands for no effect.

    Attributes
    ----------
    group_model_ : GroupModel
        Means and covariances; ``source`` is "learned", "stated" or "weak".
    training_hashes_ : ndarray (G,)
        Hashes of the names of the training groups, in ascending order.
    training_counts_ : ndarray (G, n)
        Labelled items of each class in these groups. New items of the same group are estimated with them.
    """

    paper_name = ""
    answers_for_: Quantifier
    training_hashes_: npt.NDArray[np.uint64] | None = None
    training_counts_: Floats | None = None

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
        self.uses_logits_ = uses_logits(len(self.classes_), held_out.size, n_groups)
        self.group_model_: GroupModel = self._model(held_out) if self.uses_logits_ else model

    def _model(self, V: HeldOut) -> GroupModel:
        """Return the model of groups for the present representation."""
        place = np.zeros(len(V.codes), dtype=np.intp) if V.groups is None else V.groups
        sums = GroupSums.of(self.embed(V.S), V.codes, place, len(self.classes_), weights=V.weights)
        if V.groups is not None:
            self.training_counts_ = sums.in_items().counts
            model = learn(sums)
            if V.parts is None:
                return model
            groups = np.zeros(V.parts.max() + 1, dtype=np.intp)
            groups[V.parts] = V.groups
            parts = GroupSums.of(self.embed(V.S), V.codes, V.parts, len(self.classes_), weights=V.weights)
            return learn_parts(model, parts, groups)
        return (
            model_without_effect(sums)
            if self.group_effect is None
            else model_with_stated_effect(sums, self.group_effect)
        )

    def name_groups(self, keys: Keys | None) -> None:
        """Store the column names of the training groups, and hashes of group names."""
        super().name_groups(keys)
        counts, self.training_hashes_ = self.training_counts_, None
        self.training_counts_ = None
        if keys is None or counts is None or UNNAMED in keys.names:
            # Groups without a named column may have other numbers in every table.
            return
        # Of the last groups no item may have a score.
        hashes = keys.hashes(self.group_columns_)[: len(counts)]
        rows = np.flatnonzero(~keys.missing[: len(counts)] & (counts.sum(axis=1) > 0))
        rows = rows[np.argsort(-counts[rows].sum(axis=1), kind="stable")[:MOST_STORED]]
        self.training_hashes_, first = np.unique(hashes[rows], return_index=True)
        self.training_counts_ = counts[rows[first]]

    def _training_rows(self, keys: Keys | None) -> TrainingRows | None:
        """Return the training items of groups, or None."""
        stored, counts = self.training_hashes_, self.training_counts_
        if keys is None or stored is None or counts is None or not set(self.group_columns_) <= set(keys.names):
            return None
        hashes = keys.hashes(self.group_columns_)
        place = np.minimum(np.searchsorted(stored, hashes), len(stored) - 1)
        known = (stored[place] == hashes) & ~keys.missing
        if not known.any():
            return None
        return TrainingRows(np.where(known[:, None], counts[place], 0), self.group_model_.mu, self.group_model_.B)

    def embed(self, S: Floats) -> Floats:
        """Return the posteriors, and logits if there are enough items."""
        return with_logits(S) if self.uses_logits_ else S

    def solve(self, summary: Summary) -> Solution:
        """Return the predicted shares of each sample."""
        return Solution.closed_form(self._predicted(self.group_model_, summary, "sample")[0].prevalences)

    def _prediction(self, model: GroupModel, summary: Summary, estimand: str) -> Prediction:
        """Return the prediction of each sample, with labelled and training items."""
        Q, n_others, labels = self._observed(summary)
        training = self._training_rows(summary.keys)
        if labels is None and training is None:
            return predict(model, Q, n_others, estimand)
        if labels is None:
            labels = GroupLabels(np.zeros((len(Q), model.n_classes)), np.zeros_like(Q))
        return predict_labelled(model, Q, n_others, labels, estimand, training)

    def _observed(self, summary: Summary) -> tuple[Floats, Floats, GroupLabels | None]:
        """Return means (B, d) and numbers (B,) of unlabelled items, and labelled ones."""
        # Labels that were not drawn with equal chances say nothing of the model.
        if "labels" not in summary.totals or WEIGHTED in summary.totals:
            return summary.means, summary.sizes, None
        unit = summary.item_unit[:, None]
        labels = GroupLabels(summary.totals["labels"] * unit, summary.totals["labels f"] * unit)
        # Rounding errors of weights that are all labelled are not items.
        n_others = summary.sizes - labels.n_labelled
        n_others = np.where(n_others > ROUNDING * summary.sizes, n_others, 0)
        # Of the items without a label; if there are none, any.
        rest = summary.totals["f"] * unit - labels.sums
        return rest / np.where(n_others > 0, n_others, 1)[:, None], n_others, labels

    def _predicted(self, model: GroupModel, summary: Summary, estimand: str) -> tuple[Prediction, Parts | None]:
        """Return the prediction of each sample, and statistics of parts of groups."""
        parts = self._parts(model, summary, estimand)
        return (self._prediction(model, summary, estimand), None) if parts is None else (parts.prediction, parts)

    def _parts(self, model: GroupModel, summary: Summary, estimand: str) -> Parts | None:
        """Return the predictions of parts of groups; None if the samples are not parts.

        Parts of a group with labels are predicted one by one.
        """
        found = groups_of_parts(summary.keys, self.group_columns_)
        if found is None or model.source != "learned":
            return None
        Q, sizes, labels = self._observed(summary)
        groups, n_labelled = found[1], np.zeros(len(sizes)) if labels is None else labels.n_labelled
        plain = np.bincount(groups, weights=n_labelled)[groups] == 0
        training = self._training_rows(found[0])
        if plain.all():
            return predict_parts(model, Q, sizes, groups, estimand, values_of(self), training)
        alone = Parts.independent(self._prediction(model, summary, estimand))
        if not plain.any():
            return alone
        which, some = np.unique(groups[plain], return_inverse=True)
        training = None if training is None else training.take(which)
        these = predict_parts(model, Q[plain], sizes[plain], some, estimand, values_of(self), training)
        return alone.replaced(plain, these)

    def collect(self, summary: Summary) -> DriftSums | None:
        """Return sums for the common offset; None without training groups."""
        if self.group_model_.source != "learned":
            return None
        found = groups_of_parts(summary.keys, self.group_columns_)
        if found is not None:
            summary = summary.regrouped(found[1], found[0])
        return drift_sums(self.group_model_, *self._observed(summary))

    def find_drift(self, sums: DriftSums, strength: float | None = None) -> Drift | None:
        """Return the common offset of all samples, of one or several strengths.

        None if no strength is stated, there are fewer than ten samples, and no labels.
        """
        if strength is None and sums.n_groups < FEWEST_GROUPS and sums.n_labelled == 0:
            return None
        return solve_drift(self.group_model_, sums, strength)

    def infer(
        self,
        summary: Summary,
        options: IntervalOptions,
        level: float | None = None,
        block: int = 0,
        context: Drift | None = None,
    ) -> Inference:
        """Return estimates with bounds and covariances by the prediction error.

        The common offset of all samples is `context`; None stands for none.
        """
        model = self.group_model_ if context is None else shifted(self.group_model_, context)
        prediction, parts = self._predicted(model, summary, options.estimand)
        P, moved = clean(prediction.prevalences), None
        if context is not None:
            moved = P - clean(self._predicted(self.group_model_, summary, options.estimand)[0].prevalences)
        found = Inference(
            P,
            np.ones(len(summary), dtype=bool),
            self._verdicts(model, summary, prediction),
            moved=moved,
            linear=None if parts is None else parts.linear,
            sampling=None if parts is None else parts.sampling,
            response=None if parts is None else parts.response,
        )
        if level is None:
            return found
        E = stated_covariance(prediction, level)
        return with_closed_form(found, bounds(prediction, level, values_of(self)), E, _shared(prediction, E))

    def _verdicts(self, model: GroupModel, summary: Summary, prediction: Prediction) -> npt.NDArray[np.str_] | None:
        """Return samples unlike the training groups; without groups, the fit test."""
        if model.source != "learned":
            return verdicts(self, summary)
        return np.where(prediction.unlike, UNLIKE, np.where(summary.sizes < 2, SINGLE, LIKE))

    def response_matrix(self) -> Floats | None:
        """Return M."""
        return self.group_model_.M


def _shared(prediction: Prediction, E: Floats) -> npt.NDArray[np.float32] | None:
    """Return the factor (B, n, k) of the error that samples share."""
    if prediction.shared is None:
        return None
    total = np.maximum(np.trace(prediction.total, axis1=1, axis2=2), np.finfo(float).tiny)
    ratio = np.sqrt(np.trace(E, axis1=1, axis2=2) / total)
    return np.asarray(prediction.shared * ratio[:, None, None], dtype=np.float32)
