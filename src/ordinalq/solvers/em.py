"""Expectation maximization for a batch of samples, and its stopping rules.

Every one of them iterates p = prior * sum_x w(x) r(x) / (r(x).prior) and takes the (smoothed) result as the next prior.
In SLD the x are the items of the sample and r their score ratios, in IBU the observed bins and the rows of M.
"""

from collections.abc import Callable

import numpy as np
from scipy.special import betaln

from ordinalq._utils.validation import Counts, Floats, Mask, check_integer, check_real
from ordinalq.losses import Poisson
from ordinalq.regularizers import NoPenalty, PolynomialSmoothing
from ordinalq.simplex import Data, clean
from ordinalq.solvers.objectives import TINY, LinearObjective, MixtureObjective, negative_log_likelihood
from ordinalq.solvers.solution import Solution, kkt_residual

# When iterations have changed the estimate little enough: statistics of two successive histograms.
#
# Each takes the numbers of items of the last and of the new estimate, (b, n), and returns one number per row (b,); the
# iteration ends if it is at most the tolerance.


Stop = Callable[[Floats, Floats], Floats]


def mean_change(old: Floats, new: Floats) -> Floats:
    """Mean absolute change of the shares."""
    return np.asarray(np.abs(_shares(new) - _shares(old)).mean(axis=1))


def kolmogorov_smirnov(old: Floats, new: Floats) -> Floats:
    """Largest difference of the cumulated shares."""
    return np.asarray(np.abs(np.cumsum(_shares(new) - _shares(old), axis=1)).max(axis=1))


def chi_square(old: Floats, new: Floats) -> Floats:
    """Return the chi-square of two histograms per class.

    (1/n) sum_i (sqrt(A/B) b_i - sqrt(B/A) a_i)^2 / (a_i + b_i).
    """
    A, B = (counts.sum(axis=1, keepdims=True) for counts in (old, new))
    difference = np.sqrt(A / B) * new - np.sqrt(B / A) * old
    total = old + new
    return np.asarray((difference**2 / np.where(total > 0, total, 1.0)).mean(axis=1))


def bayes_factor(old: Floats, new: Floats) -> Floats:
    """Return log odds that the ratio of histograms varies over the classes.

    BenZvi et al. (2011).

    sum_i ln B(a_i + 1, b_i + 1) - ln B(A + 1, B + 1), with the beta function B and the totals A, B: each ratio, and the
    common one, is as likely as any other.
    """
    return np.asarray(betaln(old + 1, new + 1).sum(axis=1) - betaln(old.sum(axis=1) + 1, new.sum(axis=1) + 1))


def maximum_change(old: Floats, new: Floats) -> Floats:
    """Largest relative change: max_i |b_i - a_i| / (a_i + b_i)."""
    total = old + new
    return np.asarray((np.abs(new - old) / np.where(total > 0, total, 1.0)).max(axis=1))


STOPS: dict[str, Stop] = {
    "mean": mean_change,
    "ks": kolmogorov_smirnov,
    "chi-square": chi_square,
    "bayes-factor": bayes_factor,
    "max-change": maximum_change,
}


def _shares(counts: Floats) -> Floats:
    return np.asarray(counts / counts.sum(axis=1, keepdims=True))


NO_SMOOTHING = PolynomialSmoothing(0, 0.0)


def em_mixture(
    objective: MixtureObjective,
    prior: Floats,
    *,
    smoothing: PolynomialSmoothing = NO_SMOOTHING,
    max_iter: int = 100,
    tol: float = 0.0,
) -> Solution:
    """Iterate p over ratios r(x) of items, with smoothed p~ [eq:sld].

    p_i^(k) = (1/N) sum_x [p~_i r_i(x)] / [sum_j p~_j r_j(x)], p~ the smoothed p^(k-1).

    The prior (n,) is p~ of the first iteration; the regularizer of the objective plays no part. It stops after
    `max_iter` iterations, or where the mean absolute change of p is at most `tol`; 0 never stops early. The Solution is
    the last, unsmoothed p; value and kkt are those of the likelihood.
    """
    P, n_iter = np.empty((objective.n_samples, objective.n_classes)), np.empty(objective.n_samples, dtype=np.int64)
    converged = np.empty(objective.n_samples, dtype=bool)
    value, kkt = np.empty(objective.n_samples), np.empty(objective.n_samples)
    for block in objective.blocks(np.arange(objective.n_samples)):
        rows, ratios = block.rows, block.weighted_ratios
        start = np.tile(prior, (len(rows), 1))
        last, n_iter[rows], converged[rows] = _iterate(ratios, start, smoothing, max_iter, tol)
        P[rows] = clean(last)  # items that no class of the prior explains have lost their mass
        value[rows] = negative_log_likelihood(block.densities(P[rows]), block.W)
        kkt[rows] = kkt_residual(P[rows], -block.weighted_ratios(P[rows]))
    return Solution(P, value, n_iter, converged, kkt)


def em_counts(
    data: Data,
    *,
    smoothing: PolynomialSmoothing = NO_SMOOTHING,
    max_iter: int | Counts = 100,
    tol: float = 0.0,
    start: Floats | None = None,
    acceptance: Floats | None = None,
    stop: Stop = mean_change,
) -> Solution:
    """Iterate p over counts q, with smoothed p~ [eq:ibu].

    p_i^(k) = sum_j [M_ji p~_i / sum_l M_jl p~_l] q_j, p~ the smoothed p^(k-1).

    The q of the data are the observed fractions, M is the response matrix. Without smoothing the limit is the maximum
    of the Poisson likelihood. A background o is one more cause, whose share is known: the denominator is
    sum_l M_jl p~_l + o_j, and what is left for the classes is made a distribution.

    It begins with `start` (n,), None being the uniform one, and ends as :func:`em_mixture` does, after a number of
    iterations that may be each sample's own (B,), or where the statistic `stop` of two successive estimates (see
    `ordinalq.solvers.em`) is at most `tol`. With an acceptance a (n,) that looks at N p_i / a_i.
    """
    objective = LinearObjective(Poisson(), NoPenalty(), data)
    data = objective.data

    def ratios(prior: Floats) -> Floats:
        # Plain products: an EM is a contraction, which last digits do not grow in.
        if data.background is None:
            return np.asarray((data.Q / np.maximum(prior @ data.M.T, TINY)) @ data.M)
        R = (data.Q / np.maximum(prior @ data.M.T + data.background, TINY)) @ data.M
        return np.asarray(R / np.maximum((prior * R).sum(axis=1, keepdims=True), TINY))

    first = np.full(data.n_classes, 1 / data.n_classes) if start is None else start

    def statistic(old: Floats, new: Floats) -> Floats:
        # Numbers of items beyond those of a double have no statistic, and never meet the tolerance.
        with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
            items = data.sizes[:, None] / (1.0 if acceptance is None else acceptance)
            return stop(items * old, items * new)

    P, n_iter, converged = _iterate(
        ratios,
        np.tile(first, (len(data), 1)),
        smoothing,
        max_iter,
        tol,
        statistic,
    )
    P = clean(P)  # mass of q in rows that M does not know is lost
    at = objective.derivatives(P, np.arange(len(data)))
    return Solution(P, at.value, n_iter, converged, kkt_residual(P, at.gradient) / objective.scale)


def _iterate(
    ratios: Callable[[Floats], Floats],
    prior: Floats,
    smoothing: PolynomialSmoothing,
    max_iter: int | Counts,
    tol: float,
    stop: Stop = mean_change,
) -> tuple[Floats, Counts, Mask]:
    """Iterate p = prior * ratios(prior) from the priors (b, n).

    At most `max_iter` times, one number or (b,).

    Return the last unsmoothed p, the number of iterations, and whether `tol` was met (or not given).
    """
    if not isinstance(max_iter, np.ndarray):
        max_iter = np.full(len(prior), check_integer("max_iter", max_iter, minimum=1))
    tol = check_real("tol", tol, low=0)
    P = prior
    n_iter = max_iter.copy()
    met, done = np.zeros(len(prior), dtype=bool), np.zeros(len(prior), dtype=bool)
    last = int(max_iter.max())
    # Nearly always all samples end with the last iteration, and there is nothing to look at before.
    together = tol == 0 and int(max_iter.min()) == last
    for k in range(1, last + 1):
        new = prior * ratios(prior)
        if not together:
            # A sample that is done keeps its p; the few others decide how long the block goes on.
            new = np.where(done[:, None], P, new)
            if tol > 0:
                now = ~done & (stop(P, new) <= tol)
                n_iter[now] = k
                met |= now
            done |= met | (k >= max_iter)
        P = new
        if k == last or (not together and done.all()):
            break
        prior = smoothing.smooth(P)
    return P, n_iter, met | (tol == 0)
