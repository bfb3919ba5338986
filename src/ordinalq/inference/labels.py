"""Design-based estimates from labelled items, and the sums of labels."""

import warnings
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
from scipy.special import stdtrit

from ordinalq._utils.text import counted
from ordinalq._utils.validation import Codes, Floats, Index, Mask, check_choice, check_real, real_numbers
from ordinalq.inference.bounds import PER_SAMPLE, Bounds, statistics
from ordinalq.inference.drift import LabelSelectionWarning
from ordinalq.inference.estimates import REGIONS, Estimates
from ordinalq.inference.fit_test import GOOD, UNTESTED
from ordinalq.inference.group_model import multinomial, project, uses_logits, variances, with_logits
from ordinalq.inference.model import FittedQuantifier, has_held_out, values_of
from ordinalq.inference.options import ESTIMANDS, IntervalOptions
from ordinalq.samples.labels import encode_known_labels
from ordinalq.samples.samples import Samples
from ordinalq.samples.summary import Summary

# Estimates that rest on the random draw of the labelled items alone, and so are valid even if the model is wrong.
#
# Let g be any fixed prediction of the one-hot class e, and let item i of the N items of a group be labelled with the
# probability pi_i. With weights w = 1 / pi and eps = e - lambda g, the *difference estimator* of survey sampling, also
# known as prediction-powered inference, is
#
#     p_hat = mean_L e + lambda (mean g - mean_L g),
#     Cov(p_hat) = m / (m - 2) sum_L (w^2 - w) d d' / (sum_L w)^2   [ + Cov(e) / N for the population ],
#
# mean_L the mean over the labelled items with weights w (Hajek), mean that over all items, d = eps - mean_L eps, and
# m = (sum_L w)^2 / sum_L w^2; m - 1 in place of m - 2 if lambda is given. If all pi are equal, this is Cov(eps)
# (1/m - 1/N). It needs no assumption on groups, classes or shift: a bad g makes the interval wide, never wrong. Any
# fixed lambda is valid; the tuned one minimizes the trace of Cov(p_hat) (least squares; PPI++).


# Variance of a share that is known but for rounding errors.
KNOWN = 1e-16
# Part of the items without a label that is none but for rounding errors.
ROUNDING = 1e-12


class LabelSums(NamedTuple):
    """Weighted sums of e (B, n), e g' and g g' (B, n, n) over labelled items."""

    e: Floats
    eg: Floats
    gg: Floats

    @property
    def total(self) -> Floats:
        """Sum of the weights, (B, 1)."""
        return np.asarray(self.e.sum(axis=1, keepdims=True))

    def scaled(self, factor: Floats) -> "LabelSums":
        """Return the sums times a factor (B,)."""
        return LabelSums(*((part.T * factor).T for part in self))

    def scatter(self, power: Floats, centre: Floats) -> Floats:
        """Return the sum of d d' with d = e - power g - centre, (B, n, n)."""
        n, power = self.e.shape[1], power[:, None, None]
        eg = power * (self.eg + self.eg.transpose(0, 2, 1))
        squares = self.e[:, :, None] * np.eye(n) - eg + power**2 * self.gg
        first = (self.e - power[:, 0] * self.eg.sum(axis=1))[:, :, None] * centre[:, None, :]
        return np.asarray(
            squares - first - first.transpose(0, 2, 1) + self.total[:, :, None] * centre[:, :, None] * centre[:, None]
        )


class LabelMoments(NamedTuple):
    """B groups with labelled items.

    The labelled ones give class counts (B, n), sums of e g' (B, n, n) and of g g' (B, n, n); all of them, the mean of g
    (B, n) and the number of items (B,). Items that were drawn with known probabilities pi have the sums with weights
    1 / pi (`weighted`) and (1 - pi) / pi^2 (`spread`); None: all items of a group had the same probability.
    """

    counts: Floats
    eg: Floats
    gg: Floats
    mean_g: Floats
    n_items: Floats
    weighted: LabelSums | None = None
    spread: LabelSums | None = None

    @property
    def n_labelled(self) -> Floats:
        """Number of labelled items m, (B,)."""
        return np.asarray(self.counts.sum(axis=1))

    def drawn(self) -> tuple[LabelSums, LabelSums, Floats]:
        """Return sums with weights w and w^2 - w, and the effective number of labels."""
        plain = LabelSums(self.counts, self.eg, self.gg)
        if self.weighted is None or self.spread is None:
            m = self.n_labelled
            return plain, plain.scaled(np.maximum(1 - m / self.n_items, 0)), m[:, None]
        w = self.weighted.total
        return self.weighted, self.spread, np.asarray(w**2 / np.maximum(self.spread.total + w, KNOWN))


class DesignBased(NamedTuple):
    """Estimates (B, n) on the simplex, difference estimator, covariance, bounds."""

    prevalences: Floats
    raw: Floats
    covariance: Floats
    bounds: Bounds


def design_based(
    labels: LabelMoments,
    level: float = 0.95,
    estimand: str = "sample",
    values: Floats | None = None,
    power: float | None = None,
) -> DesignBased:
    """Estimate prevalences by the difference estimator, with intervals.

    The estimand is the N items or their population.

    `power` is lambda; None tunes it. The interval of a prevalence is Wilson's, for the number of labels that would give
    the same variance without g, with a Student quantile. That of the mean class is Student's. Each group has at least
    two labels, or labels of all of its items.
    """
    check_choice("estimand", estimand, ESTIMANDS)
    level = check_real("level", level, low=0, high=1, open_low=True)
    n, part = labels.counts.shape[1], (labels.n_labelled / labels.n_items)[:, None]
    w, spread, m = labels.drawn()
    N = np.asarray(labels.n_items)[:, None]
    mean_e, mean_g = w.e / w.total, w.eg.sum(axis=1) / w.total
    lam = _tuned_power(spread, mean_e, mean_g) if power is None else np.full(len(m), power)
    raw = mean_e + lam[:, None] * (labels.mean_g - mean_g)
    cov_e = (m / _dof(m))[:, :, None] * multinomial(mean_e)
    # The mean and, if it is tuned, lambda come from the same labels.
    free = _dof(m) if power is not None else _dof(m - 1)
    E = (m / free)[:, :, None] * spread.scatter(lam, mean_e - lam[:, None] * mean_g) / w.total[:, :, None] ** 2
    if estimand == "population":
        E = E + cov_e / N[:, :, None]
    P = _possible(raw, E + KNOWN * np.eye(n), labels.counts / N, 1 - part[:, 0], estimand)
    value, variance = statistics(raw, values), variances(E, values)
    open_part = 1 - part if estimand == "sample" else 1.0
    lower, upper = _wilson(value, m * variance, variances(cov_e, values), m, open_part, level)
    half = stdtrit(_dof(m)[:, 0], (1 + level) / 2) * np.sqrt(variance[:, -1])
    lower[:, -1], upper[:, -1] = value[:, -1] - half, value[:, -1] + half
    lower, upper = _with_unseen(labels.counts, lower, upper)
    found = Bounds.of_statistics(level, estimand, lower, upper, values)
    if estimand == "sample":
        found = found.within(labels.counts / N, np.maximum(1 - part[:, 0], 0))
    return DesignBased(P, raw, E, found.extend_to(P))


def _tuned_power(spread: LabelSums, mean_e: Floats, mean_g: Floats) -> Floats:
    """Return lambda in [0, 1], (B,), that minimizes the total variance."""
    total, g = spread.total[:, 0], spread.eg.sum(axis=1)
    eg = np.trace(spread.eg, axis1=1, axis2=2) - (
        spread.e * mean_g + g * mean_e - total[:, None] * mean_e * mean_g
    ).sum(1)
    gg = np.trace(spread.gg, axis1=1, axis2=2) - (2 * g * mean_g - total[:, None] * mean_g**2).sum(axis=1)
    return np.asarray(np.clip(np.divide(eg, gg, out=np.ones_like(eg), where=gg > KNOWN), 0, 1))


def _with_unseen(counts: Floats, lower: Floats, upper: Floats) -> tuple[Floats, Floats]:
    """Return bounds (B, 2n) that do not exclude classes without a label.

    A prevalence, or a cumulative one, of which no label was seen may be zero, and one of which all labels are may be
    one. The prediction g may be wrong.
    """
    seen = statistics(counts)[:, :-1]
    rest = counts.sum(axis=1, keepdims=True) - seen
    lower, upper = lower.copy(), upper.copy()
    lower[:, :-1][seen <= 0] = 0
    upper[:, :-1][rest <= 0] = 1
    return lower, upper


def _possible(P: Floats, E: Floats, least: Floats, rest: Floats, estimand: str) -> Floats:
    """Return possible prevalences nearest to P (B, n) in the norm of E^-1.

    A sample consists of labelled items, whose part of all is `least` (B, n), and of others, `rest` (B,) of all, that
    have any distribution. For a population all distributions are possible.
    """
    if estimand != "sample":
        return project(P, E)
    left, size = (rest > ROUNDING)[:, None], rest[:, None]
    others = project(np.where(left, (P - least) / np.where(left, size, 1), P), E)
    # All labelled: what they sum to is one but for rounding errors.
    return np.where(left, least + size * others, least / np.where(left, 1, least.sum(axis=1, keepdims=True)))


def _dof(m: Floats) -> Floats:
    """Return degrees of freedom of m labels."""
    return np.maximum(m - 1, 1)


def _wilson(
    estimate: Floats, error: Floats, var_e: Floats, m: Floats, open_part: Floats | float, level: float
) -> tuple[Floats, Floats]:
    """Return Wilson's interval of prevalences (B, k) for m labels.

    Each label has error variance `error` if e has `var_e`.
    """
    # A quarter of an item, so that no share counts as known because it was not seen; unless all items are labelled.
    worth = m * (var_e + 0.25 / m) / np.maximum(error + 0.25 / m * open_part, KNOWN)
    p, z2 = np.clip(estimate, 0, 1), stdtrit(_dof(m), (1 + level) / 2) ** 2
    centre = (p + z2 / (2 * worth)) / (1 + z2 / worth)
    half = np.sqrt(z2 * p * (1 - p) / worth + (z2 / (2 * worth)) ** 2) / (1 + z2 / worth)
    return np.asarray(centre - half), np.asarray(centre + half)


# Labels from which on an estimate by them alone is worth having: the share of fewer scatters by .15 and more.
FEWEST = 10


def with_labels(
    quantifier: FittedQuantifier, summary: Summary, estimates: Estimates, options: IntervalOptions
) -> Estimates:
    """Return estimates of samples with some labelled items, and their basis.

    A method with a model of groups has used the labels already. Else, or if options.basis requires it, or if it is left
    open and the sample is unlike the training groups, estimates and intervals of samples with at least ten labels are
    those of `design_based`; the others stay as they are.
    """
    m = summary.n_labelled
    if m is None:
        if options.basis == "labels":
            raise ValueError("basis='labels' needs labels of some items. Pass labels=[...], or no basis.")
        return estimates
    options = _basis(summary, options)
    by_labels = has_enough_labels(m, summary.n_items) & by_labels_alone(quantifier, estimates, options)
    basis = np.where(by_labels, "labels", "model")
    estimates = replace(estimates, n_labelled=m, basis=basis)
    if WEIGHTED in summary.totals and estimates.origin is not None:
        estimates = replace(estimates, origin=replace(estimates.origin, labels="drawn with the given probabilities"))
    rows = np.flatnonzero(by_labels)
    if len(rows):
        estimates = _by_labels(quantifier, summary, estimates, options, rows)
    return _within_limits(summary, estimates) if options.estimand == "sample" else estimates


def _basis(summary: Summary, options: IntervalOptions) -> IntervalOptions:
    """Return options with the basis "labels" if inclusion probabilities are known."""
    if WEIGHTED not in summary.totals:
        return options
    if options.basis == "model":
        raise ValueError("basis must be 'labels' with label_inclusion, got 'model'. Pass no basis.")
    return replace(options, basis="labels")


def _by_labels(
    quantifier: FittedQuantifier, summary: Summary, estimates: Estimates, options: IntervalOptions, rows: Index
) -> Estimates:
    """Return the estimates, those of some samples by their labels alone."""
    level = 0.95 if estimates.level is None else estimates.level
    found = from_labels(quantifier, summary, rows, level, options.estimand)
    changed: dict[str, Any] = {"prevalences": _replaced(estimates.prevalences, rows, found.prevalences)}
    # What labels say of a group has nothing to do with M, or with an offset of all groups.
    changed["moved"] = _replaced(estimates.moved, rows, 0)
    if estimates.bounds is None:
        return replace(estimates, **changed)
    changed["covariance"] = _replaced(estimates.covariance, rows, found.covariance)
    changed["shared"] = _replaced(estimates.shared, rows, 0)
    changed["own"] = _replaced(estimates.own, rows, found.covariance)
    # Their regions follow from covariance and bounds.
    changed |= {name: _replaced(getattr(estimates, name), rows, np.nan) for name in REGIONS}
    # Labels alone say nothing of the effect of a group.
    changed |= {name: _replaced(getattr(estimates, name), rows, np.nan) for name in ("linear", "sampling", "response")}
    return replace(estimates, bounds=_merged(estimates.bounds, rows, found), **changed)


def label_limits(summary: Summary) -> tuple[Floats, Floats]:
    """Return labelled parts by class (B, n) and the unlabelled part (B,)."""
    least = summary.totals["labels"] / summary.weight[:, None]
    return least, np.maximum(1 - least.sum(axis=1), 0)


def _within_limits(summary: Summary, estimates: Estimates) -> Estimates:
    """Return estimates and bounds that agree with the labelled items."""
    least, rest = label_limits(summary)
    P = estimates.prevalences
    beyond = ((least > P) | (least + rest[:, None] < P)).any(axis=1)
    if beyond.any():
        flat = np.broadcast_to(np.eye(P.shape[1]), (int(beyond.sum()), *least.shape[1:] * 2))
        P = _replaced(P, np.flatnonzero(beyond), _possible(P[beyond], flat, least[beyond], rest[beyond], "sample"))
    bounds = None if estimates.bounds is None else estimates.bounds.within(least, rest).extend_to(P)
    return replace(estimates, prevalences=P, bounds=bounds)


def has_enough_labels(n_labelled: Any, n_items: Any) -> Mask:
    """Return which samples (B,) have labels enough for an estimate by these alone."""
    return np.asarray((n_labelled >= FEWEST) | (n_labelled >= n_items))


def by_labels_alone(quantifier: FittedQuantifier, estimates: Estimates, options: IntervalOptions) -> Mask:
    """Return which samples, (B,), are estimated from their labels alone."""
    if options.basis == "model" and not quantifier.traits.has_group_model:
        raise ValueError(
            f"basis='model' needs a method with a model of groups that labels can enter, such as GroupBLP; with "
            f"{type(quantifier).__name__} estimates from labels rest on the labels alone: basis='labels', or none."
        )
    if options.basis == "labels" or not quantifier.traits.has_group_model:
        return np.ones(len(estimates), dtype=bool)
    if options.basis == "model" or estimates.fit is None:
        return np.zeros(len(estimates), dtype=bool)
    # The choice is free: a model of groups does not judge what does not fit it.
    return ~np.isin(estimates.fit, (GOOD, UNTESTED))


def from_labels(
    quantifier: FittedQuantifier, summary: Summary, rows: Index, level: float, estimand: str
) -> DesignBased:
    """Return estimates of some samples by their labels alone."""
    # In items, so that the labels count as part of all.
    unit = summary.item_unit[rows]
    plain = LabelSums(*(summary.totals[name][rows] for name in ("labels", "labels eg", "labels gg"))).scaled(unit)
    drawn = [
        LabelSums(*(summary.totals[name + more][rows] for more in ("", " eg", " gg")))
        for name in (WEIGHTED, SPREAD)
        if name in summary.totals
    ]
    labels = LabelMoments(*plain, summary.mean("g")[rows], summary.sizes[rows], *drawn)
    return design_based(labels, level, estimand, values_of(quantifier))


def _replaced(array: Any, rows: Index, values: Floats | float) -> Any:
    """Return a copy with other values in some rows."""
    if array is None:
        return None
    changed = array.copy()
    changed[rows] = values
    return changed


def _merged(bounds: Bounds, rows: Index, found: DesignBased) -> Bounds:
    """Return bounds with those of other estimates in some rows."""
    arrays: dict[str, Any] = {
        name: _replaced(getattr(bounds, name), rows, getattr(found.bounds, name)) for name in PER_SAMPLE
    }
    return replace(bounds, **arrays)


# Labelled items of samples: the sums that estimates from labels need, which add up like all others.


# Sums over labelled items with weights 1 / pi and (1 - pi) / pi^2, pi the probability with which the item was drawn.
WEIGHTED, SPREAD = "labels w", "labels v"
# Smallest probability of a labelled item.
LEAST_CHANCE = 1e-9
# The sum of 1 / pi differs from the number of items by chance at most by this many standard deviations, and by this
# part of it because of rounded probabilities.
MOST_DEVIATIONS, ROUNDED = 8, 0.01


def label_totals(
    quantifier: FittedQuantifier, S: Floats, samples: Samples, labels: Any, inclusion: Any = None
) -> dict[str, Floats]:
    """Return sums over B samples of scores S (N, n) and labels (N,).

    A label is None or NaN if missing.

    Nothing where no labels are given at all.

    With e the one-hot class and g the prediction of it by `class_predictions`: "g" (B, n) over all items; over the
    labelled ones "labels" (B, n) of e, "labels eg" and "labels gg" (B, n, n) of e g' and g g', and for methods on means
    "labels f" (B, d) of the representation. With weights all of these are weighted, and "labels n" (B,) is the number
    of the labelled ones, where weights do not say so. With inclusion probabilities (N,) of the labelled items there are
    also the sums "labels w" and "labels v", each with " eg" and " gg", see `LabelMoments`.
    """
    if labels is None:
        if inclusion is not None:
            raise ValueError("label_inclusion needs labels of some items. Pass labels=[...].")
        return {}
    if not has_held_out(quantifier):
        raise ValueError(
            f"this {type(quantifier).__name__} has no held-out items, which estimates with labels need. Fit it again."
        )
    codes = encode_known_labels(labels, quantifier.classes_)
    if len(codes) != len(S):
        raise ValueError(f"labels must have {len(S)} values, one per item (None if not labelled), got {len(codes)}.")
    g = class_predictions(quantifier, S)
    known = np.flatnonzero(codes >= 0)
    some, G, E = _restrict_to(samples, known), g[known], np.eye(g.shape[1])[codes[known]]
    weights = {"labels": np.ones(len(known))}
    if inclusion is not None:
        pi = _check_inclusion(inclusion, codes, samples)[known]
        weights |= {WEIGHTED: 1 / pi, SPREAD: (1 - pi) / pi**2}
    totals = {"g": samples.total(g)}
    for name, w in weights.items():
        totals[name] = some.total(E * w[:, None])
        totals[f"{name} eg"] = np.stack([some.total((e * w)[:, None] * G) for e in E.T], axis=1)
        totals[f"{name} gg"] = np.stack([some.total((column * w)[:, None] * G) for column in G.T], axis=1)
    if samples.weights is not None and not samples.weights.counts_items:
        totals["labels n"] = some.sizes.astype(np.float64)
    if quantifier.traits.uses_sample_means:
        totals["labels f"] = some.total(np.asarray(quantifier.embed(S[known]), dtype=np.float64))
    return totals


def _check_inclusion(inclusion: Any, codes: Codes, samples: Samples) -> Floats:
    """Return the inclusion probabilities (N,); only those of labelled items count."""
    pi = real_numbers(inclusion)
    if pi.shape != codes.shape:
        raise ValueError(f"label_inclusion must have one probability per item, {len(codes)}, got shape {pi.shape}.")
    if samples.weights is not None:
        raise ValueError(
            "label_inclusion must be None with sample_weight: weighted items are drawn with equal chances."
        )
    wrong = (codes >= 0) & ~((pi >= LEAST_CHANCE) & (pi <= 1))
    if wrong.any():
        got = f"{pi[wrong][0]:g} for item {int(wrong.argmax())}"
        raise ValueError(f"label_inclusion must be in [{LEAST_CHANCE:g}, 1] for every labelled item, got {got}.")
    return pi


def check_inclusion_sums(summary: Summary, stacklevel: int = 2) -> None:
    """Warn if labels were not drawn with the stated inclusion probabilities pi.

    The sum of 1 / pi over the labelled items estimates the number N of all items with variance sum (1 - pi) / pi^2.
    That variance is scaled to N if the sum is smaller.
    """
    m = summary.n_labelled
    if m is None or WEIGHTED not in summary.totals:
        return
    tested = has_enough_labels(m, summary.n_items) & (m > 0)
    N = summary.n_items[tested]
    total, variance = (summary.totals[name][tested].sum(axis=1) for name in (WEIGHTED, SPREAD))
    limit = MOST_DEVIATIONS * np.sqrt(variance * np.maximum(N / total, 1)) + ROUNDED * N
    wrong = np.flatnonzero(np.abs(total - N) > limit)
    if len(wrong):
        one = f"The labels of one of them stand for {total[wrong[0]]:,.0f} items, but there are {N[wrong[0]]:,}."
        warnings.warn(
            f"The labels of {len(wrong):,} of {counted(len(N), 'sample')} do not agree with label_inclusion: the sum "
            f"of 1 / probability must be near the number of items. {one} Pass the probability of each draw.",
            LabelSelectionWarning,
            stacklevel=stacklevel + 1,
        )


def class_predictions(quantifier: FittedQuantifier, S: Floats) -> Floats:
    """Return g (N, n), the best linear prediction of the one-hot class of items.

    g = beta' f, with beta by least squares on V; f are the scores, with logits if V has enough items for them, or the
    representation of features. The entries sum to one and may be negative.
    """
    V = quantifier.held_out_
    if quantifier.traits.input_kind == "features":
        known, new = (np.asarray(quantifier.embed(X), dtype=np.float64) for X in (V.S, S))
    else:
        features = with_logits if uses_logits(len(quantifier.classes_), V.size) else np.asarray
        known, new = features(V.S), features(S)
    E = np.eye(len(quantifier.classes_))[V.codes]
    if V.weights is not None:
        root = np.sqrt(V.weights.values)[:, None]
        known, E = known * root, E * root
    beta = np.linalg.lstsq(known, E, rcond=None)[0]
    return np.asarray(new @ beta)


def _restrict_to(samples: Samples, chosen: Codes) -> Samples:
    """Return what samples hold of the chosen items (k,), as samples of these alone."""
    place = np.full(samples.n_items, -1, dtype=np.intp)
    place[chosen] = np.arange(len(chosen))
    items = place[samples.items]
    kept = np.append(0, np.cumsum(items >= 0))
    weights = None if samples.weights is None else samples.weights.take(items >= 0)
    return Samples(items[items >= 0], kept[samples.offsets], len(chosen), weights=weights)
