"""Widths of intervals: percentiles of replicates, and what the training groups of a model say of them."""

import numpy as np
import numpy.typing as npt
from scipy.special import ndtri, stdtrit

from ordinalq.contract.plan import Plan
from ordinalq.contract.quantifier import Quantifier
from ordinalq.samples import Samples
from ordinalq.simplex import clean
from ordinalq.validation import Floats

Codes = npt.NDArray[np.intp]

# What a correction is learned from: groups of at least so many items, but not fewer than the ten largest, and not more
# than a hundred, whose squared errors are known to 14 %; 6000 solutions take seconds at most.
USUAL_SIZE, FEWEST, MOST = 20, 10, 100
CORRECTION_REPLICATES = 60
# The level at which widths are compared; the correction is nearly the same at others.
LEVEL = 0.95
# Groups that would have to show that intervals are too wide, before half of it is believed.
CAUTION = 10
HALVINGS = 50
# Variances of statistics that are known but for rounding errors.
KNOWN = 1e-20


def statistics(P: Floats) -> Floats:
    """Shares of the classes, cumulated shares and the mean class of P (..., n), side by side: (..., 2n + 1)."""
    index = np.arange(1.0, P.shape[-1] + 1)
    return np.concatenate([P, np.cumsum(P, axis=-1), (P @ index)[..., None]], axis=-1)


def percentiles(R: Floats, level: float) -> tuple[Floats, Floats]:
    """Percentiles (b, 2n + 1) of the statistics of replicates R (r, b, n) that hold the given part of them."""
    # "weibull": so that a further replicate would lie outside as often as the level says.
    low, high = np.quantile(statistics(R), [(1 - level) / 2, (1 + level) / 2], axis=0, method="weibull")
    return np.asarray(low), np.asarray(high)


def corrected(
    estimate: Floats, lower: Floats, upper: Floats, correction: Floats, level: float
) -> tuple[Floats, Floats]:
    """Return bounds (B, k) whose distances h from the estimates are sqrt(c^2 h^2 + z^2 b^2), with (c, b) (2, k)."""
    scale, extra = correction
    beyond = (ndtri((1 + level) / 2) * extra) ** 2
    low, high = (np.sqrt((scale * np.maximum(h, 0)) ** 2 + beyond) for h in (estimate - lower, upper - estimate))
    return estimate - low, estimate + high


def width_correction(quantifier: Quantifier, S: Floats, codes: Codes, groups: Codes) -> Floats | None:
    r"""Return by how much the intervals of a quantifier have to be corrected, learned on its own training groups.

    Replicates know the scatter of an estimate: that of items, of M, and of the looks of groups (D). They know neither
    the bias of a method that smooths or does not adjust, nor by how much the simplex or an early stop hold an estimate
    back. Labelled groups show the whole error: see :func:`excess`, where e are the errors of the G training groups,
    and v their squared half widths, over that of a standard normal variable. b counts with the Student quantile of
    G - 1 degrees of freedom, c as if ten more groups had shown no need for it.

    Parameters
    ----------
    quantifier : Quantifier
        Fitted on these items.
    S, codes, groups : ndarray (N, ...), (N,), (N,)
        V: items with out-of-sample scores (of models that have seen no item of their group), classes and groups.

    Returns
    -------
    ndarray (2, 2n + 1) or None
        c and b of classes, cumulated shares and mean class; None where fewer than three groups have several items.
    """
    chosen = _asked_about(np.bincount(groups))
    G = len(chosen)
    if G < 3:
        return None
    rows = np.isin(groups, chosen)
    samples = Samples.from_groups(groups[rows])
    truth = samples.average(np.eye(len(quantifier.classes_))[codes[rows]])
    summary = quantifier.summarize(S[rows], samples, checks=False)
    P = clean(quantifier.solve(summary).p)
    half = np.empty((G, 2 * P.shape[1] + 1))
    plan = Plan(n_replicates=CORRECTION_REPLICATES)
    for part, R, _ in quantifier.replicates(summary, P, plan.draws()):
        low, high = percentiles(R, LEVEL)
        half[part] = (high - low) / 2
    end = (1 + LEVEL) / 2
    scale, extra = excess((statistics(P) - statistics(truth)) ** 2, (half / ndtri(end)) ** 2)
    scale = np.sqrt((CAUTION + G * scale**2) / (CAUTION + G))
    extra *= stdtrit(G - 1, end) / ndtri(end)
    return np.stack([scale, extra])


def excess(e2: Floats, v: Floats) -> tuple[Floats, Floats]:
    r"""Return the scale c and the excess deviation b, (k,), that squared errors e2 show beyond variances v, (G, k).

    sum_g e_g^2 / (c^2 v_g + b^2) = G - 1, with c = 1 or b = 0: the estimate of Paule and Mandel (1982) of a variance
    between laboratories, and a scale where the errors are smaller than they should be. One degree of freedom is lost
    since the class means know these groups.
    """
    G, k = e2.shape

    def chi2(b2: Floats) -> Floats:
        return np.asarray((e2 / np.maximum(v + b2, KNOWN)).sum(axis=0))

    scale = np.sqrt(np.minimum(chi2(np.zeros(k)) / (G - 1), 1))
    low, high = np.zeros(k), e2.sum(axis=0) * (scale == 1)
    # The sum falls with b^2, and is below G - 1 where b^2 = sum e^2: halved to rounding errors.
    for _ in range(HALVINGS):
        middle = (low + high) / 2
        above = chi2(middle) > G - 1
        low, high = np.where(above, middle, low), np.where(above, high, middle)
    # A statistic that neither errs nor varies, as the last cumulated share, stays as it is.
    return np.where(v.max(axis=0) > KNOWN, scale, 1), np.sqrt(high)


def _asked_about(sizes: Codes) -> Codes:
    """Return the groups to learn from: those of some size, at least the largest ten; if there are too many, evenly."""
    order = np.argsort(-sizes, kind="stable")
    some = order[: max((sizes >= USUAL_SIZE).sum(), min(FEWEST, (sizes > 1).sum()))]
    every = np.sort(some)
    step = np.linspace(0, len(every) - 1, min(len(every), MOST)).round().astype(np.intp)
    return np.asarray(every[step])
