"""Intervals from replicates, corrected by the errors of labelled samples.

These are the training groups or, without groups, samples drawn from the held-out items.
"""

import warnings
from dataclasses import replace

import numpy as np
import numpy.typing as npt
from scipy.special import ndtri, stdtrit

from ordinalq._utils.validation import Codes, Floats, Index, Mask
from ordinalq.inference.bootstrap import ClassPools
from ordinalq.inference.bounds import Bounds, item_steps, statistics
from ordinalq.inference.fit_test import verdicts
from ordinalq.inference.model import FittedQuantifier, Inference, has_held_out, values_of
from ordinalq.inference.options import IntervalOptions
from ordinalq.inference.region import ellipsoids_of_means
from ordinalq.protocols import APP
from ordinalq.samples.samples import Samples, class_means
from ordinalq.samples.summary import Summary
from ordinalq.samples.weights import Weights, effective_items
from ordinalq.simplex import clean, equal_columns

# Widths of intervals: percentiles of replicates, and what samples with known labels show of their errors.


# A correction is learned from groups of at least USUAL_SIZE items, not fewer than the FEWEST largest, and not more than
# MOST, whose squared errors have a relative error of 14%; 6000 solutions take seconds at most.
USUAL_SIZE, FEWEST, MOST = 20, 10, 100
CORRECTION_REPLICATES = 60
# Smaller groups have separate corrections, by size: those below each limit are represented by parts of this many
# items of the training groups.
LIMITS, PARTS = (2, 5, 20), (1, 3, 10)
# Size of the samples that show the bias of a method without training groups.
BIAS_SIZE = 500
# Each side of an interval has at least this part of its width: an estimate on the end of its interval is biased.
LEAST_SIDE = 0.1
# Standard deviations of a chi-square sum beyond which errors are not explained by chance.
CHANCE = 2.5
SEED = 0
# The level at which widths are compared; the correction is nearly the same at others.
LEVEL = 0.95
# Groups that would have to show that intervals are too wide, before half of it is believed.
CAUTION = 10
# Groups that the errors of both sides count like, for bounds of one side.
BOTH_SIDES = 20
HALVINGS = 60
# Variances of statistics that are known but for rounding errors.
KNOWN = 1e-20


def percentiles(
    R: Floats, level: float, values: Floats | None = None, sets: Index | None = None
) -> tuple[Floats, Floats]:
    """Return percentiles (b, 2n) of the statistics of replicates R (r, b, n).

    The prevalence of classes in the same of the `sets` (n,) may belong to any of these.
    """
    low, high = (statistics(R, values),) * 2 if sets is None else _extremes(R, values, sets)
    # "weibull": so that a further replicate would lie outside with the probability of the level.
    lower = np.quantile(low, (1 - level) / 2, axis=0, method="weibull")
    return np.asarray(lower), np.asarray(np.quantile(high, (1 + level) / 2, axis=0, method="weibull"))


def _extremes(R: Floats, values: Floats | None, sets: Index) -> tuple[Floats, Floats]:
    """Return the extreme statistics if prevalences move within sets of classes."""
    U = statistics(np.eye(len(sets)), values)
    joint = R @ np.eye(sets.max() + 1)[sets]
    ends = ([pick(U[sets == s], axis=0) for s in range(sets.max() + 1)] for pick in (np.min, np.max))
    low, high = (joint @ np.array(end) for end in ends)
    return low, high


def sides(estimate: Floats, ends: tuple[Floats, Floats], half_item: Floats) -> Floats:
    """Return distances (B, 2, k) of percentiles from estimates (B, k).

    An estimate on the end of its percentiles, or beyond, is biased: each side has at least a part of the width, and
    half an item.
    """
    lower, upper = ends
    width = np.maximum(upper, estimate) - np.minimum(lower, estimate)
    h = np.stack([estimate - lower, upper - estimate], axis=1)
    return np.asarray(np.hypot(np.maximum(h, LEAST_SIDE * width[:, None]), half_item[:, None]))


def _half_item(sizes: Floats, n: int, values: Floats | None) -> Floats:
    """Return by how much half an item of N (B,) moves each statistic, (B, 2n)."""
    return np.asarray(item_steps(n, values) / (2 * sizes[:, None]))


def widened(h: Floats, correction: Floats | None, level: float) -> Floats:
    """Return sqrt(c^2 h^2 + z^2 b^2) for distances h (B, 2, k) of bounds.

    The correction (B, 2, 2, k) has c and b, each of the distances below and above; None stands for c = 1 and b = 0.
    """
    if correction is None:
        return h
    return np.asarray(np.hypot(correction[:, 0] * h, ndtri((1 + level) / 2) * correction[:, 1]))


def width_correction(
    quantifier: FittedQuantifier, S: Floats, codes: Codes, groups: Codes, weights: Weights | None = None
) -> Floats | None:
    """Return the correction of interval widths, learned on training groups.

    S (N, ...), codes and groups (N,) are V, scored by models that have seen no item of their group. The correction
    (s, 2, 2, 2n) is that of :func:`shown_correction`, for groups below each of the limits of sizes and for all
    larger ones; None if fewer than three groups have several items.
    """
    chosen = _large_groups(effective_items(groups, int(groups.max()) + 1, weights))
    if len(chosen) < 3:
        return None
    rows = np.flatnonzero(np.isin(groups, chosen))
    rng, found = np.random.default_rng(SEED), []
    for size in (*PARTS, None):
        some = rows if size is None else np.sort(_parts(rows, groups, size, rng))
        samples = Samples.from_groups(groups[some]).weighted(None if weights is None else weights.take(some))
        found.append(shown_correction(quantifier, S[some], codes[some], samples))
    return np.stack(found)


def _parts(rows: Index, groups: Codes, size: int, rng: np.random.Generator) -> Index:
    """Draw up to `size` of the rows of each group."""
    order = rng.permutation(rows)
    order = order[np.argsort(groups[order], kind="stable")]
    rank = np.arange(len(order)) - np.searchsorted(groups[order], groups[order])
    return np.asarray(order[rank < size])


def bias_correction(quantifier: FittedQuantifier) -> Floats:
    """Return the correction (1, 2, 2, 2n) for the bias of held-out samples.

    The samples have uniformly drawn prevalences. Intervals are never made narrower, and they are widened only if chance
    hardly explains the errors: otherwise the intervals of large samples would consist of noise of the correction.
    """
    V, n = quantifier.held_out_, len(quantifier.classes_)
    counts = APP(MOST, max(1, min(BIAS_SIZE, round(V.size))), random_state=SEED).counts(n)
    drawn = ClassPools.of(quantifier).draw(counts, np.random.default_rng(SEED))
    found = shown_correction(quantifier, V.S, V.codes, drawn, least=MOST + CHANCE * np.sqrt(2 * MOST))
    found[0] = 1
    return found[None]


def shown_correction(
    quantifier: FittedQuantifier, S: Floats, codes: Codes, samples: Samples, least: float = 0.0
) -> Floats:
    r"""Return the correction of intervals, (2, 2, 2n), from labelled samples.

    Replicates have the scatter of an estimate: that of items, of M, and of the features of groups (D). They do not have
    the bias of a method that smooths or does not adjust, or of an early stop; and an estimate that errs upwards far and
    rarely has bounds above it that should be below. Labelled samples show the whole error: see :func:`excess`, where e
    are the errors of the G samples, and v the squared distances of their bounds from the estimates, over that of a
    standard normal variable. Samples below their estimate inform lower bounds, those above upper ones, together with
    twenty samples like the mean of both sides. b counts with the Student quantile of G - 1 degrees of freedom, c as if
    ten more samples had shown no need for it. b is 0 if sum e^2 / v is below `least`. The correction is c and b, below
    and above, of classes, cumulative prevalences and mean class.
    """
    truth = samples.average(np.eye(len(quantifier.classes_))[codes])
    summary = quantifier.summarize(S, samples, checks=False)
    P, values, G = clean(quantifier.solve(summary).p), values_of(quantifier), len(samples)
    estimate = statistics(P, values)
    error = statistics(truth, values) - estimate
    low, high = np.empty_like(estimate), np.empty_like(estimate)
    options = IntervalOptions(n_replicates=CORRECTION_REPLICATES)
    for part, R, _ in quantifier.replicates(summary, P, options.draws()):
        low[part], high[part] = percentiles(R, LEVEL, values)
    z, t = ndtri((1 + LEVEL) / 2), stdtrit(G - 1, (1 + LEVEL) / 2)
    half = np.moveaxis(sides(estimate, (low, high), _half_item(summary.sizes, P.shape[1], values)), 1, 0) / z
    both = excess(error**2, half.mean(axis=0) ** 2, np.ones_like(error, dtype=bool))
    by_side = np.array([excess(error**2, h**2, side) for h, side in zip(half, (error < 0, error > 0), strict=True)])
    weight = np.array([(error < 0).sum(axis=0), (error > 0).sum(axis=0)])
    weight = weight / (weight + BOTH_SIDES)
    c2, b2 = np.moveaxis(weight[:, None] * by_side**2 + (1 - weight[:, None]) * np.square(both), 1, 0)
    b2 = np.where((error**2 / half.mean(axis=0) ** 2).sum(axis=0) < least, 0, b2)
    return np.stack([np.sqrt((CAUTION + G * c2) / (CAUTION + G)), np.sqrt(b2) * t / z])


def excess(e2: Floats, v: Floats, counted: Mask) -> tuple[Floats, Floats]:
    r"""Return scale c and excess deviation b, (k,), of errors e2 over variances v.

    sum_g e_g^2 / (c^2 v_g + b^2) = m (G - 1) / G over the m groups that are `counted` (G, k), with c = 1 or b = 0: the
    estimate of Paule and Mandel (1982) of a variance between laboratories, and a scale where the errors are smaller
    than they should be. One degree of freedom is lost since the class means know these groups.
    """
    G, k = e2.shape
    e2 = np.where(counted, e2, 0)
    expected = counted.sum(axis=0) * (G - 1) / G

    def chi2(b2: Floats) -> Floats:
        return np.asarray((e2 / np.maximum(v + b2, KNOWN)).sum(axis=0))

    # NaN for a statistic without a group to count, or that does not vary, as the last cumulated prevalence.
    known = (expected > 0) & (v.max(axis=0) > KNOWN)
    scale = np.sqrt(np.minimum(np.divide(chi2(np.zeros(k)), expected, where=known, out=np.ones(k)), 1))
    # The sum falls with b^2, and is small enough where b^2 = 2 sum e^2: halved to rounding errors.
    low, high = np.zeros(k), 2 * e2.sum(axis=0) * (scale == 1)
    for _ in range(HALVINGS):
        middle = (low + high) / 2
        above = chi2(middle) > expected
        low, high = np.where(above, middle, low), np.where(above, high, middle)
    return scale, np.sqrt(high)


def _large_groups(sizes: Floats) -> Codes:
    """Return the groups to learn from: the large ones, evenly if too many."""
    order = np.argsort(-sizes, kind="stable")
    some = order[: max((sizes >= USUAL_SIZE).sum(), min(FEWEST, (sizes > 1).sum()))]
    every = np.sort(some)
    step = np.linspace(0, len(every) - 1, min(len(every), MOST)).round().astype(np.intp)
    return np.asarray(every[step])


# Columns of M are dependent where a singular value is below this part of its norm.
RANK_TOLERANCE = 1e-9


def infer_by_bootstrap(
    quantifier: FittedQuantifier, summary: Summary, options: IntervalOptions, level: float | None, block: int
) -> Inference:
    """Estimate samples by `solve`, with bootstrap intervals if a level is given."""
    solution = quantifier.solve(summary)
    found = Inference(clean(solution.p), solution.converged, verdicts(quantifier, summary))
    if level is None:
        return found
    ellipsoids = ellipsoids_of_means(quantifier, summary, found.prevalences, options.estimand)
    return replace(_bootstrapped(quantifier, summary, found, level, options, block), ellipsoids=ellipsoids)


def with_closed_form(
    found: Inference, bounds: Bounds, covariance: Floats, shared: npt.NDArray[np.float32] | None = None
) -> Inference:
    """Add bounds and covariances (B, n, n) of a formula, with shared error factor."""
    own = covariance if shared is None else covariance - _product(shared)
    bounds = bounds.extend_to(found.prevalences)
    return replace(found, bounds=bounds, covariance=covariance, own=own, shared=shared)


def _bootstrapped(
    quantifier: FittedQuantifier,
    summary: Summary,
    found: Inference,
    level: float,
    options: IntervalOptions,
    block: int,
) -> Inference:
    """Add percentiles of replicates as bounds, and their covariances."""
    sets = _indistinct_classes(quantifier)
    P, values = found.prevalences, values_of(quantifier)
    B, n = P.shape
    estimate = statistics(P, values)
    lower, upper = np.empty_like(estimate), np.empty_like(estimate)
    covariance, own = np.empty((B, n, n)), np.empty((B, n, n))
    shared: list[npt.NDArray[np.float32]] = []
    for rows, R, n_models in quantifier.replicates(summary, P, options.draws(block)):
        lower[rows], upper[rows] = percentiles(R, level, values, sets)
        D = R - R.mean(axis=0)
        covariance[rows] = own[rows] = np.einsum("rbi,rbj->bij", D, D, optimize=True) / (len(R) - 1)
        if n_models > 1:
            # The mean over replicates with the same M: what is left of the samples' own noise differs between samples.
            common = D.reshape(n_models, -1, *D.shape[1:]).mean(axis=1) / np.sqrt(n_models - 1)
            shared.append(common.transpose(1, 2, 0).astype(np.float32))
            # Of r replicates with the same M the mean has the common part C and W / r of the own part W.
            r = len(R) // n_models
            own[rows] = (covariance[rows] - _product(shared[-1])) * (r / max(r - 1, 1))
    factor = np.concatenate(shared) if shared else None
    correction = _correction(quantifier, summary.sizes) if options.bias else None
    h = widened(sides(estimate, (lower, upper), _half_item(summary.sizes, n, values)), correction, level)
    lower, upper = estimate - h[:, 0], estimate + h[:, 1]
    if correction is not None:
        scale, extra = np.moveaxis(np.sqrt((correction[..., :n] ** 2).mean(axis=2)), 1, 0)
        # Prevalences sum to one, and their errors to zero.
        centred = np.eye(n) - 1 / n
        more = extra[:, :, None] ** 2 * np.eye(n)
        moved = (centred @ (V * scale[:, :, None] * scale[:, None] + more) @ centred for V in (covariance, own))
        # Symmetric to the last digit.
        covariance, own = ((V + V.transpose(0, 2, 1)) / 2 for V in moved)
        factor = None if factor is None else (factor * scale[:, :, None]).astype(np.float32)
    bounds = Bounds.of_statistics(level, options.estimand, lower, upper, values).extend_to(P)
    return replace(found, bounds=bounds, covariance=covariance, own=own, shared=factor)


def _correction(quantifier: FittedQuantifier, sizes: Floats) -> Floats | None:
    """Return the correction of the interval of each sample, (B, 2, 2, 2n), or None."""
    V = quantifier.held_out_
    if V.learned_groups:
        return None if V.width_correction is None else V.width_correction[np.searchsorted(LIMITS, sizes, side="right")]
    found = V.once(bias_correction, quantifier, key=quantifier)
    return np.broadcast_to(found, (len(sizes), *found.shape[1:]))


def _product(factor: Floats | npt.NDArray[np.float32]) -> Floats:
    """Return L L' of factors (B, n, k), in double precision."""
    L = factor.astype(np.float64)
    return np.asarray(np.matmul(L, L.transpose(0, 2, 1)))


def _indistinct_classes(quantifier: FittedQuantifier) -> Index | None:
    """Return the set (n,) of each class if classes have the same mean, and warn.

    Warn also if M (d, n) maps different distributions to the same q, so that no noise moves the estimate among these.
    """
    if not has_held_out(quantifier):
        return None
    means = quantifier.held_out_.once(_mean_features, quantifier, key=quantifier)
    sets = equal_columns(means, float(quantifier.traits.input_kind == "scores"))
    what = "features do" if quantifier.traits.input_kind == "features" else "classifier does"
    if sets.max() < len(sets) - 1:
        members = [", ".join(map(str, quantifier.classes_[sets == s])) for s in range(sets.max() + 1)]
        names = "; ".join(name for s, name in enumerate(members) if (sets == s).sum() > 1)
        warnings.warn(
            f"the {what} not distinguish all classes: only the joint prevalence of classes {names} can be estimated.",
            stacklevel=5,
        )
        return sets
    M = quantifier.response_matrix()
    if M is None:
        return None
    rank = np.linalg.matrix_rank(M - M.mean(axis=1, keepdims=True), tol=RANK_TOLERANCE * np.linalg.norm(M))
    if rank < M.shape[1] - 1:
        warnings.warn(
            f"the {what} not distinguish all classes: the data do not determine some of their prevalences, "
            "and their intervals are too narrow. Use diagnose for details.",
            stacklevel=5,
        )
    return None


def _mean_features(quantifier: FittedQuantifier) -> Floats:
    """Return class means (d, n) of the representation over held-out items."""
    V = quantifier.held_out_
    return class_means(quantifier.group_features(V.S), V.codes, None, V.weights)
