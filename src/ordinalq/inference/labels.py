"""Estimates of groups by the random draw of their labelled items alone, and the sums that labels need."""

from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
from scipy.special import stdtrit

from ordinalq._utils.validation import Codes, Floats, Index, Mask, check_choice, check_real
from ordinalq.inference.bounds import PER_SAMPLE, Bounds, statistics
from ordinalq.inference.estimates import REGIONS, Estimates
from ordinalq.inference.fit_test import GOOD, UNTESTED
from ordinalq.inference.group_model import logits_pay, project, variances, with_logits
from ordinalq.inference.model import FittedQuantifier, has_held_out, values_of
from ordinalq.inference.options import ESTIMANDS, IntervalOptions
from ordinalq.samples.labels import encode_known_labels
from ordinalq.samples.samples import Samples
from ordinalq.samples.summary import Summary

# Estimates that rest on the random draw of the labelled items alone, and so are valid whatever else is wrong.
#
# With g any fixed prediction of the one-hot class e, m of the N items of a group labelled, and eps = e - g, the
# *difference estimator* of survey sampling, also known as prediction-powered inference, is
#
#     p_hat = mean_L e + mean g - mean_L g,    Cov(p_hat) = Cov(eps) (1/m - 1/N)   [ + Cov(e) / N for the population ],
#
# mean_L over the labelled items, mean over all. It needs no assumption on groups, classes or shift: a bad g makes the
# interval wide, never wrong. The first term vanishes when all items are labelled (the finite-population factor).


# Variance of a share that is known but for rounding errors.
KNOWN = 1e-16
# Part of the items without a label that is none but for rounding errors.
ROUNDING = 1e-12


class LabelMoments(NamedTuple):
    """B groups with labelled items.

    The labelled ones give class counts (B, n), sums of e g' (B, n, n) and of g g' (B, n, n); all of them, the mean of g
    (B, n) and the number of items (B,).
    """

    counts: Floats
    eg: Floats
    gg: Floats
    mean_g: Floats
    n_items: Floats

    @property
    def n_labelled(self) -> Floats:
        """Number of labelled items m, (B,)."""
        return np.asarray(self.counts.sum(axis=1))


class DesignBased(NamedTuple):
    """Estimates (B, n) on the simplex, the difference estimator as it is (B, n), its covariance (B, n, n), bounds."""

    prevalences: Floats
    raw: Floats
    covariance: Floats
    bounds: Bounds


def design_based(
    labels: LabelMoments, level: float = 0.95, estimand: str = "sample", values: Floats | None = None
) -> DesignBased:
    r"""Estimate shares by the difference estimator, with intervals, of the N items at hand or of their population.

    The variance of eps, relative to that of e itself, says how many labels without any g the m labels are worth; the
    interval of a share is Wilson's for that number, with a Student quantile; that of the mean class is Student's. Each
    group has at least two labels, or labels of all of its items.
    """
    check_choice("estimand", estimand, ESTIMANDS)
    level = check_real("level", level, low=0, high=1, open_low=True)
    n, m, N = labels.counts.shape[1], labels.n_labelled[:, None], np.asarray(labels.n_items)[:, None]
    sum_g = labels.eg.sum(axis=1)
    raw = labels.counts / m + labels.mean_g - sum_g / m
    ee = labels.counts[:, :, None] * np.eye(n)
    cov_e = _covariance(ee, labels.counts)
    cov_eps = _covariance(ee - labels.eg - labels.eg.transpose(0, 2, 1) + labels.gg, labels.counts - sum_g, m)
    left = np.maximum(1 / m - 1 / N, 0)[:, :, None]
    E = cov_eps * left if estimand == "sample" else cov_eps * left + cov_e / N[:, :, None]
    P = _possible(raw, E + KNOWN * np.eye(n), labels.counts / N, 1 - m[:, 0] / N[:, 0], estimand)
    value, variance = statistics(raw, values), variances(E, values)
    open_part = 1 - m / N if estimand == "sample" else 1.0
    lower, upper = _wilson(value, m * variance, variances(cov_e, values), m, open_part, level)
    half = stdtrit(_dof(m)[:, 0], (1 + level) / 2) * np.sqrt(variance[:, -1])
    lower[:, -1], upper[:, -1] = value[:, -1] - half, value[:, -1] + half
    lower, upper = _with_unseen(labels.counts, lower, upper)
    found = Bounds.of_statistics(level, estimand, lower, upper, values)
    if estimand == "sample":
        found = found.within(labels.counts / N, np.maximum(1 - m[:, 0] / N[:, 0], 0))
    return DesignBased(P, raw, E, found.holding(P))


def _with_unseen(counts: Floats, lower: Floats, upper: Floats) -> tuple[Floats, Floats]:
    """Return bounds (B, 2n) of statistics that do not exclude classes without a label, given counts (B, n).

    A prevalence, or a cumulative one, of which no label was seen may be zero, and one of which all labels are may be
    one. The prediction g says nothing against it: it may be wrong.
    """
    seen = statistics(counts)[:, :-1]
    rest = counts.sum(axis=1, keepdims=True) - seen
    lower, upper = lower.copy(), upper.copy()
    lower[:, :-1][seen <= 0] = 0
    upper[:, :-1][rest <= 0] = 1
    return lower, upper


def _possible(P: Floats, E: Floats, least: Floats, rest: Floats, estimand: str) -> Floats:
    """Return the possible prevalences nearest to P (B, n) in the norm of E^-1 (B, n, n).

    A sample consists of labelled items, whose part of all is `least` (B, n), and of others, `rest` (B,) of all, that
    have any distribution. For a population all distributions are possible.
    """
    if estimand != "sample":
        return project(P, E)
    left, size = (rest > ROUNDING)[:, None], rest[:, None]
    others = project(np.where(left, (P - least) / np.where(left, size, 1), P), E)
    # All labelled: what they sum to is one but for rounding errors.
    return np.where(left, least + size * others, least / np.where(left, 1, least.sum(axis=1, keepdims=True)))


def _covariance(squares: Floats, total: Floats, m: Floats | None = None) -> Floats:
    """Covariance (B, n, n) from sums of x x' and of x over m items; m is the sum of `total` where it is a count."""
    m = (total.sum(axis=1, keepdims=True) if m is None else m)[:, :, None]
    return np.asarray((squares - total[:, :, None] * total[:, None, :] / m) / _dof(m))


def _dof(m: Floats) -> Floats:
    """Degrees of freedom of m labels; a single one, of a single item, leaves nothing to estimate."""
    return np.maximum(m - 1, 1)


def _wilson(
    estimate: Floats, error: Floats, var_e: Floats, m: Floats, open_part: Floats | float, level: float
) -> tuple[Floats, Floats]:
    """Wilson's interval of shares (B, k) for m labels, each with error variance `error` where e has `var_e`."""
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
    """Return the estimates of summarized samples with the labels of some of their items, and what each rests on.

    A method with a model of groups has used the labels already. Else, or if options.basis says so, or where it is left
    open and the sample is unlike the training groups, estimates and intervals of samples with at least ten labels are
    those of `design_based`; the others stay as they are.
    """
    m = summary.n_labelled
    if m is None:
        if options.basis == "labels":
            raise ValueError("basis='labels' needs labels of some items: give labels=[...], or leave basis out.")
        return estimates
    by_labels = enough(m, summary.n_items) & by_labels_alone(quantifier, estimates, options)
    basis = np.where(by_labels, "labels", "model")
    estimates = replace(estimates, n_labelled=m, basis=basis)
    rows = np.flatnonzero(by_labels)
    if len(rows):
        estimates = _by_labels(quantifier, summary, estimates, options, rows)
    return _within_limits(summary, estimates) if options.estimand == "sample" else estimates


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
    return replace(estimates, bounds=_merged(estimates.bounds, rows, found), **changed)


def label_limits(summary: Summary) -> tuple[Floats, Floats]:
    """Return the part of all items that is labelled, by class (B, n), and the part that is not (B,)."""
    least = summary.totals["labels"] / summary.weight[:, None]
    return least, np.maximum(1 - least.sum(axis=1), 0)


def _within_limits(summary: Summary, estimates: Estimates) -> Estimates:
    """Return estimates and bounds that the labelled items of a sample do not rule out."""
    least, rest = label_limits(summary)
    P = estimates.prevalences
    beyond = ((least > P) | (least + rest[:, None] < P)).any(axis=1)
    if beyond.any():
        flat = np.broadcast_to(np.eye(P.shape[1]), (int(beyond.sum()), *least.shape[1:] * 2))
        P = _replaced(P, np.flatnonzero(beyond), _possible(P[beyond], flat, least[beyond], rest[beyond], "sample"))
    bounds = None if estimates.bounds is None else estimates.bounds.within(least, rest).holding(P)
    return replace(estimates, prevalences=P, bounds=bounds)


def enough(n_labelled: Any, n_items: Any) -> Mask:
    """Return which samples (B,) have labels enough for an estimate by these alone."""
    return np.asarray((n_labelled >= FEWEST) | (n_labelled >= n_items))


def by_labels_alone(quantifier: FittedQuantifier, estimates: Estimates, options: IntervalOptions) -> Mask:
    """Return which samples are to rest on their labels alone, (B,), where these are enough."""
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
    counts, eg, gg = ((summary.totals[name][rows].T * unit).T for name in ("labels", "labels eg", "labels gg"))
    labels = LabelMoments(counts, eg, gg, summary.mean("g")[rows], summary.sizes[rows])
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


def label_totals(quantifier: FittedQuantifier, S: Floats, samples: Samples, labels: Any) -> dict[str, Floats]:
    """Return sums over B samples of items with scores S (N, n) and labels (N,), None or NaN where there is none.

    Nothing where no labels are given at all.

    With e the one-hot class and g the prediction of it by `class_predictions`: "g" (B, n) over all items; over the
    labelled ones "labels" (B, n) of e, "labels eg" and "labels gg" (B, n, n) of e g' and g g', and for methods on means
    "labels f" (B, d) of the representation. With weights all of these are weighted, and "labels n" (B,) is the number
    of the labelled ones, where weights do not say so.
    """
    if labels is None:
        return {}
    if not has_held_out(quantifier):
        raise ValueError(
            f"this {type(quantifier).__name__} was fitted without keeping its held-out items, which estimates from "
            "labels need: fit it again."
        )
    codes = encode_known_labels(labels, quantifier.classes_)
    if len(codes) != len(S):
        raise ValueError(f"labelled must have one label or gap per item, {len(S)}, got {len(codes)}.")
    g = class_predictions(quantifier, S)
    known = np.flatnonzero(codes >= 0)
    some, G, E = _among(samples, known), g[known], np.eye(g.shape[1])[codes[known]]
    totals = {
        "g": samples.total(g),
        "labels": some.total(E),
        "labels eg": np.stack([some.total(e[:, None] * G) for e in E.T], axis=1),
        "labels gg": np.stack([some.total(column[:, None] * G) for column in G.T], axis=1),
    }
    if samples.weights is not None and not samples.weights.counts_items:
        totals["labels n"] = some.sizes.astype(np.float64)
    if quantifier.traits.uses_sample_means:
        totals["labels f"] = some.total(np.asarray(quantifier.embed(S[known]), dtype=np.float64))
    return totals


def class_predictions(quantifier: FittedQuantifier, S: Floats) -> Floats:
    """Return g (N, n), the best linear prediction of the one-hot class of items, learned on the held-out items.

    g = beta' f, with beta by least squares on V; f are the scores, with logits if V has enough items for them, or the
    representation of features. The entries sum to one and may be negative.
    """
    V = quantifier.held_out_
    if quantifier.traits.input_kind == "features":
        known, new = (np.asarray(quantifier.embed(X), dtype=np.float64) for X in (V.S, S))
    else:
        features = with_logits if logits_pay(len(quantifier.classes_), V.size) else np.asarray
        known, new = features(V.S), features(S)
    E = np.eye(len(quantifier.classes_))[V.codes]
    if V.weights is not None:
        root = np.sqrt(V.weights.values)[:, None]
        known, E = known * root, E * root
    beta = np.linalg.lstsq(known, E, rcond=None)[0]
    return np.asarray(new @ beta)


def _among(samples: Samples, chosen: Codes) -> Samples:
    """Return what samples hold of the chosen items (k,), as samples of these alone."""
    place = np.full(samples.n_items, -1, dtype=np.intp)
    place[chosen] = np.arange(len(chosen))
    items = place[samples.items]
    kept = np.append(0, np.cumsum(items >= 0))
    weights = None if samples.weights is None else samples.weights.take(items >= 0)
    return Samples(items[items >= 0], kept[samples.offsets], len(chosen), weights=weights)
