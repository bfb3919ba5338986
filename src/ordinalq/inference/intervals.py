"""Intervals from replicates, with widths corrected on the training groups.

Models that were trained with groups know what their intervals missed on those, and correct the widths.
"""

import warnings
from dataclasses import replace

import numpy as np
import numpy.typing as npt
from scipy.special import ndtri, stdtrit

from ordinalq._utils.validation import Codes, Floats, Mask
from ordinalq.inference.bounds import Bounds, mean_class
from ordinalq.inference.fit_test import verdicts
from ordinalq.inference.model import FittedQuantifier, Inference, values_of
from ordinalq.inference.options import IntervalOptions
from ordinalq.inference.region import ellipsoids_of_means
from ordinalq.samples.samples import Samples
from ordinalq.samples.summary import Summary
from ordinalq.samples.weights import Weights, worth
from ordinalq.simplex import clean

# Widths of intervals: percentiles of replicates, and what the training groups of a model say of them.


# What a correction is learned from: groups of at least this many items, not fewer than the ten largest, and not more
# than a hundred, whose squared errors are known to 14 %; 6000 solutions take seconds at most.
USUAL_SIZE, FEWEST, MOST = 20, 10, 100
CORRECTION_REPLICATES = 60
# The level at which widths are compared; the correction is nearly the same at others.
LEVEL = 0.95
# Groups that would have to show that intervals are too wide, before half of it is believed.
CAUTION = 10
# Groups that the errors of both sides count like, for bounds of one side.
BOTH_SIDES = 20
HALVINGS = 50
# Variances of statistics that are known but for rounding errors.
KNOWN = 1e-20


def statistics(P: Floats, values: Floats | None = None) -> Floats:
    """Return prevalences, cumulative ones and the mean class of P (..., n), side by side: (..., 2n + 1)."""
    return np.concatenate([P, np.cumsum(P, axis=-1), mean_class(P, values)[..., None]], axis=-1)


def percentiles(R: Floats, level: float, values: Floats | None = None) -> tuple[Floats, Floats]:
    """Percentiles (b, 2n + 1) of the statistics of replicates R (r, b, n) that hold the given part of them."""
    # "weibull": so that a further replicate would lie outside as often as the level says.
    low, high = np.quantile(statistics(R, values), [(1 - level) / 2, (1 + level) / 2], axis=0, method="weibull")
    return np.asarray(low), np.asarray(high)


def corrected(
    estimate: Floats, lower: Floats, upper: Floats, correction: Floats, level: float
) -> tuple[Floats, Floats]:
    """Return bounds (B, k) whose distances h from the estimates are sqrt(c^2 h^2 + z^2 b^2).

    The correction (2, 2, k) has c and b, each of the distances below and above.
    """
    below, above = np.sqrt(
        (correction[0][:, None] * np.maximum([estimate - lower, upper - estimate], 0)) ** 2
        + (ndtri((1 + level) / 2) * correction[1][:, None]) ** 2
    )
    return estimate - below, estimate + above


def width_correction(
    quantifier: FittedQuantifier, S: Floats, codes: Codes, groups: Codes, weights: Weights | None = None
) -> Floats | None:
    r"""Return by how much the intervals of a quantifier have to be corrected, learned on its own training groups.

    Replicates know the scatter of an estimate: that of items, of M, and of the looks of groups (D). They know neither
    the bias of a method that smooths or does not adjust, nor by how much the simplex or an early stop hold an estimate
    back; and an estimate that errs upwards far and rarely has bounds above it that should be below. Labelled groups
    show the whole error: see :func:`excess`, where e are the errors of the G training groups, and v the squared
    distances of their bounds from the estimates, over that of a standard normal variable. Groups below their estimate
    tell of lower bounds, those above of upper ones, together with twenty groups like the mean of both sides. b counts
    with the Student quantile of G - 1 degrees of freedom, c as if ten more groups had shown no need for it.

    S (N, ...), codes and groups (N,) are V, scored by models that have seen no item of their group. The correction
    (2, 2, 2n + 1) is c and b, below and above, of classes, cumulated shares and mean class; None where fewer than three
    groups have several items.
    """
    chosen = _asked_about(worth(groups, int(groups.max()) + 1, weights))
    G = len(chosen)
    if G < 3:
        return None
    rows = np.isin(groups, chosen)
    samples = Samples.from_groups(groups[rows]).weighted(None if weights is None else weights.take(rows))
    truth = samples.average(np.eye(len(quantifier.classes_))[codes[rows]])
    summary = quantifier.summarize(S[rows], samples, checks=False)
    P, values = clean(quantifier.solve(summary).p), values_of(quantifier)
    estimate = statistics(P, values)
    error = statistics(truth, values) - estimate
    ends = np.empty((2, *estimate.shape))
    options = IntervalOptions(n_replicates=CORRECTION_REPLICATES)
    for part, R, _ in quantifier.replicates(summary, P, options.draws()):
        ends[:, part] = percentiles(R, LEVEL, values)
    z, t = ndtri((1 + LEVEL) / 2), stdtrit(G - 1, (1 + LEVEL) / 2)
    half = np.maximum([estimate - ends[0], ends[1] - estimate], 0) / z
    both = excess(error**2, half.mean(axis=0) ** 2, np.ones_like(error, dtype=bool))
    sides = np.array([excess(error**2, h**2, side) for h, side in zip(half, (error < 0, error > 0), strict=True)])
    weight = np.array([(error < 0).sum(axis=0), (error > 0).sum(axis=0)])
    weight = weight / (weight + BOTH_SIDES)
    c2, b2 = np.moveaxis(weight[:, None] * sides**2 + (1 - weight[:, None]) * np.square(both), 1, 0)
    return np.stack([np.sqrt((CAUTION + G * c2) / (CAUTION + G)), np.sqrt(b2) * t / z])


def excess(e2: Floats, v: Floats, counted: Mask) -> tuple[Floats, Floats]:
    r"""Return the scale c and the excess deviation b, (k,), that squared errors e2 show beyond variances v, (G, k).

    sum_g e_g^2 / (c^2 v_g + b^2) = m (G - 1) / G over the m groups that are `counted` (G, k), with c = 1 or b = 0: the
    estimate of Paule and Mandel (1982) of a variance between laboratories, and a scale where the errors are smaller
    than they should be. One degree of freedom is lost since the class means know these groups.
    """
    G, k = e2.shape
    e2 = np.where(counted, e2, 0)
    expected = counted.sum(axis=0) * (G - 1) / G

    def chi2(b2: Floats) -> Floats:
        return np.asarray((e2 / np.maximum(v + b2, KNOWN)).sum(axis=0))

    # Nothing is said of a statistic that has no group to count, or that does not vary, as the last cumulated share.
    known = (expected > 0) & (v.max(axis=0) > KNOWN)
    scale = np.sqrt(np.minimum(np.divide(chi2(np.zeros(k)), expected, where=known, out=np.ones(k)), 1))
    # The sum falls with b^2, and is small enough where b^2 = 2 sum e^2: halved to rounding errors.
    low, high = np.zeros(k), 2 * e2.sum(axis=0) * (scale == 1)
    for _ in range(HALVINGS):
        middle = (low + high) / 2
        above = chi2(middle) > expected
        low, high = np.where(above, middle, low), np.where(above, high, middle)
    return scale, np.sqrt(high)


def _asked_about(sizes: Floats) -> Codes:
    """Return the groups to learn from: those of some size, at least the largest ten; if there are too many, evenly."""
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
    """Estimate samples by `solve`, with intervals by the bootstrap if a level is given."""
    solution = quantifier.solve(summary)
    found = Inference(clean(solution.p), solution.converged, verdicts(quantifier, summary))
    if level is None:
        return found
    ellipsoids = ellipsoids_of_means(quantifier, summary, found.prevalences, options.estimand)
    return replace(_bootstrapped(quantifier, summary, found, level, options, block), ellipsoids=ellipsoids)


def with_closed_form(
    found: Inference, bounds: Bounds, covariance: Floats, shared: npt.NDArray[np.float32] | None = None
) -> Inference:
    """Add bounds and covariances (B, n, n) that a formula gives, with a factor (B, n, k) of the shared error."""
    own = covariance if shared is None else covariance - _product(shared)
    bounds = bounds.holding(found.prevalences)
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
    _warn_of_equal_columns(quantifier)
    P, values = found.prevalences, values_of(quantifier)
    B, n = P.shape
    estimate = statistics(P, values)
    lower, upper = np.empty_like(estimate), np.empty_like(estimate)
    covariance, own = np.empty((B, n, n)), np.empty((B, n, n))
    shared: list[npt.NDArray[np.float32]] = []
    for rows, R, n_models in quantifier.replicates(summary, P, options.draws(block)):
        lower[rows], upper[rows] = percentiles(R, level, values)
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
    correction = quantifier.held_out_.width_correction
    if correction is not None:
        lower, upper = corrected(estimate, lower, upper, correction, level)
        scale, extra = np.sqrt((correction[:, :, :n] ** 2).mean(axis=1))
        # Shares sum to one, and their errors to zero.
        centred = np.eye(n) - 1 / n
        covariance, own = (
            centred @ (V * scale[:, None] * scale + np.diag(extra**2)) @ centred for V in (covariance, own)
        )
        factor = None if factor is None else (factor * scale[:, None]).astype(np.float32)
    # Whole distributions end at one.
    lower, upper = (np.delete(end, 2 * n - 1, axis=1) for end in (lower, upper))
    bounds = Bounds.of_statistics(level, options.estimand, lower, upper, values).holding(P)
    return replace(found, bounds=bounds, covariance=covariance, own=own, shared=factor)


def _product(factor: Floats | npt.NDArray[np.float32]) -> Floats:
    """Return L L' of factors (B, n, k), in double precision."""
    L = factor.astype(np.float64)
    return np.asarray(np.matmul(L, L.transpose(0, 2, 1)))


def _warn_of_equal_columns(quantifier: FittedQuantifier) -> None:
    """Warn where M (d, n) maps different distributions to the same q: no noise moves the estimate among these."""
    M = quantifier.response_matrix()
    if M is None:
        return
    rank = np.linalg.matrix_rank(M - M.mean(axis=1, keepdims=True), tol=RANK_TOLERANCE * np.linalg.norm(M))
    if rank < M.shape[1] - 1:
        what = "features do" if quantifier.traits.input_kind == "features" else "classifier does"
        warnings.warn(
            f"the {what} not tell all classes apart: the data leave some of their shares open, and the intervals, "
            "which do not show that, are too narrow; see diagnose.",
            stacklevel=5,
        )
