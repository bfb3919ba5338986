"""AdjustedML: adjusted maximum likelihood with priors."""

from collections.abc import Iterator
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from scipy.special import ndtri

from ordinalq._utils.validation import Codes, Floats, Index, check_choice, check_distributions, check_real
from ordinalq.classifiers.calibration import Calibration
from ordinalq.inference.bounds import Bounds, item_steps, statistics
from ordinalq.inference.fit_test import verdicts
from ordinalq.inference.group_model import multinomial, variances
from ordinalq.inference.intervals import with_closed_form
from ordinalq.inference.model import HeldOut, Inference, Traits, values_of
from ordinalq.inference.options import IntervalOptions
from ordinalq.quantifiers.base import Quantifier, check_every_class
from ordinalq.quantifiers.group_blp import GroupBLP
from ordinalq.samples.keys import Keys
from ordinalq.samples.summary import Summary
from ordinalq.samples.weights import Weights, class_shares, effective_items, item_counts
from ordinalq.simplex import clean, existing_differences
from ordinalq.solvers.barrier import minimize_inside, whiten
from ordinalq.solvers.objectives import MixtureObjective
from ordinalq.solvers.solution import Solution

# Class means and covariances of the score function f(x) = r(x) / (r(x).p0), from labelled items.
#
# r(x) are density ratios: r_i(x) / r_j(x) is the density of x in class i over that in class j, as far as a classifier
# knows. f is the gradient of the log-likelihood ln r(x).p at p0, the instrument, so that its mean holds what the items
# tell of p near p0. Whether or not the ratios are right, the mean of f over items with shares p has the expectation M
# p, with its true class means M. These are measured:
#
#     M_i = lambda_i (mean of f over the items of class i) + (1 - lambda_i) (mean of f under the model),
#
# the latter over all items with weights omega_i(x) ~ r_i(x) / (r(x).p_train). With x2 the squared distance of the two
# in units of the error of the first, lambda_i = x2 / (x2 + n - 1): a rare class borrows its column from the model as
# far as its items allow. f.p0 = 1 for all items, so all covariances of f have p0 in their kernel, and M'p0 = 1.


# Labelled items that class means are made of at most; of larger classes every second item, or third, ... is taken.
MOST_ITEMS = 2**15
# Numbers in an array over items and samples, 4 megabytes.
NUMBERS = 2**19
# Part of the mean variance that is added to each, where covariances are inverted.
COVARIANCE_RIDGE = 1e-6
# Variance that rounding errors make of an f that does not vary.
NOISE = 1e-12


class LabelledRatios:
    """Density ratios R (N, n) of labelled items, and weights W (N, n), M = F'W.

    `counts` (n,) are the items of each class, or what they are worth where they have weights, and `trust` (n,), lambda,
    is the part of its mean that comes from its own items.
    """

    def __init__(self, R: Floats, codes: Codes, weights: Weights | None = None) -> None:
        n = R.shape[1]
        total = item_counts(codes, n, weights)
        kept = thinned(codes, MOST_ITEMS)
        self.R, codes, weights = R[kept], codes[kept], None if weights is None else weights.take(kept)
        self.counts = effective_items(codes, n, weights)
        share = class_shares(codes, n, weights)
        # The model sees the items as they were before thinning.
        model = self.R * (total[codes] * share / (self.R @ (total / total.sum())))[:, None]
        model /= model.sum(axis=0)
        own = np.zeros_like(model)
        own[np.arange(len(codes)), codes] = share
        self.W = model
        M, C = self.at(np.full(n, 1 / n))
        F = self.R / self.R.mean(axis=1, keepdims=True)
        apart = (F.T @ own - M).T
        C += (COVARIANCE_RIDGE * np.trace(C, axis1=1, axis2=2)[:, None, None] / n + NOISE) * np.eye(n)
        x2 = self.counts * (apart * np.linalg.solve(C, apart[:, :, None])[:, :, 0]).sum(axis=1)
        self.trust = x2 / (x2 + n - 1)
        self.W = model + self.trust * (own - model)

    def at(self, p0: Floats) -> tuple[Floats, Floats]:
        """Return M (n, n) and within-class covariances (n, n, n) for instrument p0 (n,)."""
        F = self.R / (self.R @ p0)[:, None]
        M = F.T @ self.W
        C = np.array([(F.T * w) @ F for w in self.W.T])
        return M, C - M.T[:, :, None] * M.T[:, None, :]

    def at_each(self, P0: Floats, shares: Floats) -> tuple[Floats, Floats]:
        """Return M (B, n, n) and sum_i a_i C_i (B, n, n) for instruments P0 (B, n)."""
        B, n = P0.shape
        upper = np.triu_indices(n)
        first, second = np.zeros((n * n, B)), np.zeros((len(upper[0]), B))
        step = max(1, NUMBERS // n**2)
        for start in range(0, len(self.R), step):
            R, W = self.R[start : start + step], self.W[start : start + step]
            inverse = 1 / (R @ P0.T)
            first += (R[:, :, None] * W[:, None, :]).reshape(len(R), -1).T @ inverse
            second += (R[:, upper[0]] * R[:, upper[1]]).T @ (inverse**2 * (W @ shares.T))
        M = first.T.reshape(B, n, n)
        S = np.empty((B, n, n))
        S[:, upper[0], upper[1]] = S[:, upper[1], upper[0]] = second.T
        return M, S - np.matmul(M * shares[:, None, :], M.transpose(0, 2, 1))


def error_shares(P: Floats, sizes: Floats, counts: Floats, trust: Floats) -> Floats:
    """Return a_i = p_i / N + p_i^2 lambda_i / n_i, (B, n).

    q - M p has the covariance sum_i a_i C_i: the scatter of N items (B,) within their classes, with shares P (B, n),
    and the error of M. This also determines the most informative f, for any f has this covariance with its own C_i. In
    the mixture of the classes with densities phi_i and shares a_i / sum a, f has the covariance M_i - mean f with the
    ratio of phi_i to the density of the mixture. So no function shows more of the differences between classes next to
    its variance there than these ratios do (Cauchy and Schwarz). That variance is sum_i a_i C_i / sum a plus the
    scatter of the M_i, which adds the same to the error of p for every f: the best instrument is p0 = a / sum a.
    """
    return np.asarray(P / sizes[:, None] + P**2 * trust / counts)


def thinned(codes: Codes, most: int) -> Codes:
    """Return at most that many items, evenly spread, balanced over classes.

    >>> thinned(np.array([0, 1, 0, 1, 0, 0, 0]), 5).tolist()
    [0, 1, 3, 4, 6]
    """
    counts = np.bincount(codes)
    if counts.sum() <= most:
        return np.arange(len(codes))
    # The largest classes share what the others leave.
    ordered = np.sort(counts)
    left = most - np.r_[0, np.cumsum(ordered)[:-1]]
    cap = int(np.max(left // np.arange(len(counts), 0, -1)))
    chosen = []
    for c, count in enumerate(counts):
        items = np.flatnonzero(codes == c)
        chosen.append(items[np.linspace(0, count - 1, min(cap, count)).round().astype(np.intp)] if count else items)
    return np.sort(np.concatenate(chosen))


# What is known of the shares of a population before a sample of it is seen: mixtures of Dirichlet distributions.
#
# A part of the mixture has a centre m, an effective sample size nu, and may be smooth:
#
#     ln prior(p) = sum_i k_i ln p_i - T/2 ||C p / 2||^2,    k = nu m,    C the second differences.
#
# k is alpha of a Dirichlet distribution: its mean is the mode of the product of p_i^k_i, its covariance
# (diag(m) - m m') / (nu + 1).


# By how much a smooth prior multiplies the precision of second differences; under the uniform one their half has the
# variance 3/2 / (n (n + 1)).
SMOOTH = 4.0
# Effective sample size of the training distribution if it is expected.
STRENGTH = 1000.0
# Weights of "anything", "smooth" and "as in training" where nothing is known.
WEIGHTS = (0.4, 0.4, 0.2)
# Least exponent: no class is ruled out, though it be rare among the training items.
LEAST = 0.05
NAMES = ("any", "uniform", "smooth", "training")


class Part(NamedTuple):
    """Part of a prior: centre (n,), effective sample size nu, smoothness T, weight."""

    centre: Floats
    sample_size: float
    smoothness: float = 0.0
    weight: float = 1.0


class Prior:
    """A mixture of distributions of the shares."""

    def __init__(self, parts: list[Part]) -> None:
        self.parts = parts

    @classmethod
    def of(cls, prior: Any, p_train: Floats, strength: float | None = None) -> "Prior":
        """Return the prior by name or centre, see :class:`ordinalq.AdjustedML`."""
        n = len(p_train)
        uniform = Part(np.full(n, 1 / n), n)
        sample_size = STRENGTH if strength is None else strength
        if not isinstance(prior, str):
            return cls([Part(np.asarray(prior, dtype=np.float64), sample_size)])
        smooth = uniform._replace(smoothness=SMOOTH * n * (n + 1) / 1.5)
        training = Part(p_train, sample_size)
        if prior == "any":
            parts = (uniform, smooth, training)
            return cls([part._replace(weight=weight) for part, weight in zip(parts, WEIGHTS, strict=True)])
        return cls([{"uniform": uniform, "smooth": smooth, "training": training}[prior]])

    @property
    def log_weights(self) -> Floats:
        """Logarithms of the parts' weights, (c,)."""
        return np.log([part.weight for part in self.parts])

    @property
    def centres(self) -> Floats:
        """Centres of the parts, (c, n)."""
        return np.array([part.centre for part in self.parts])

    def exponents(self) -> Floats:
        """Return k of each part, (c, n)."""
        return np.array([np.maximum(part.sample_size * part.centre, LEAST) for part in self.parts])

    def curvatures(self) -> Floats:
        """Return T C'C / 4 of each part, (c, n, n)."""
        C = _bends(self.centres.shape[1])
        return np.array([part.smoothness * C.T @ C for part in self.parts])

    def covariances(self) -> Floats:
        """Return the covariance of the shares under each part, (c, n, n)."""
        found = []
        for part in self.parts:
            A = multinomial(part.centre) / (part.sample_size + 1)
            if part.smoothness > 0:
                C = _bends(len(A))
                CA = C @ A
                A = A - CA.T @ np.linalg.solve(CA @ C.T + np.eye(len(C)) / part.smoothness, CA)
            found.append(A)
        return np.array(found)


def _bends(n: int) -> Floats:
    """Return C / 2, half the second differences over n classes."""
    return existing_differences(n) / 2


def check_prior(prior: Any, strength: Any, n_classes: int) -> None:
    """Raise ValueError if prior or strength is not valid for n classes."""
    if isinstance(prior, str) or prior is None:
        if prior not in NAMES:
            raise ValueError(f"prior must be one of {', '.join(map(repr, NAMES))}, or a distribution, got {prior!r}.")
    elif check_distributions("prior", prior, min_classes=2).shape != (n_classes,):
        raise ValueError(f"prior must be a distribution over the {n_classes} classes, got {prior!r}.")
    if strength is not None:
        check_real("strength", strength, low=0, open_low=True)
        if isinstance(prior, str) and prior in ("uniform", "smooth"):
            raise ValueError(f"strength must be None with prior={prior!r}, which determines it.")


# Shares given the mean q of a function of the items, by generalized least squares and a prior.
#
# The shares of the population that a sample of N items comes from are
#
#     p = argmin over the simplex of 1/2 (q - M p)' Omega^-1 (q - M p) - ln prior(p),
#     Omega = Cov(q - M p_N) + M J M',
#
# where p_N are the shares of the sample, which vary around p with the covariance J = (diag p - p p') / N. Those of the
# sample itself follow from what is left: p_N = p + J M' Omega^-1 (q - M p).
#
# In a mixture of priors, each part counts by how well it foresaw q, its evidence N(q; M m, Omega + M A M'), where m
# and A are mean and covariance of the part; the estimate is the mean over the parts. The inverse of the second
# derivative at p is the covariance of the error; a mixture adds the one between its parts.


# Added to correlations: a direction in which f does not vary at all stays solvable.
POSTERIOR_RIDGE = 1e-9
# Part of an item that is seen at best.
LEAST_SEEN = 1e-3
# A part of a prior with less weight does not count.
NEGLIGIBLE = 0.01
# Samples beyond this squared distance from all parts of a prior are measured in a unit that makes it this distance:
# differences between distances of millions are rounding errors.
FARTHEST = 1e3


class Observed(NamedTuple):
    """Observed means of B samples, with their matrices and covariances.

    Means Q (B, n), matrices M (B, n, n) and covariances Omega (B, n, n).

    P0 (B, n) are the instruments, along which Omega has no variance and M p no slope.
    """

    Q: Floats
    M: Floats
    Omega: Floats
    P0: Floats


class Posterior(NamedTuple):
    """Shares of B samples, the mean over the parts of the prior that count.

    m problems were solved, one per sample and part that counts. For the shares of the sample itself, `of_sample` has
    the covariance J of its deviation from the population, and J H (B, n, n), its regression on q; else it is None.
    """

    solution: Solution  # shares (B, n); the worst of the parts in what concerns convergence
    weights: Floats  # (B, c) weights of the parts of the prior
    rows: Index  # (m,) sample of each problem
    shares: Floats  # (m,) and its weight
    parts: Floats  # (m, n) minima
    information: Floats  # (m, n, n) second derivatives, but for those of smoothness
    of_sample: tuple[Floats, Floats] | None

    def covariances(self) -> Floats:
        """Return error covariances (B, n, n): inverse information, and between parts."""
        E = self._along()
        apart = self.parts - self.solution.p[self.rows]
        if self.of_sample is not None:
            J, JH = self.of_sample[0][self.rows], self.of_sample[1][self.rows]
            left = np.eye(J.shape[1]) - JH
            E = np.matmul(np.matmul(left, E), left.transpose(0, 2, 1)) + np.matmul(left, J)
        E += apart[:, :, None] * apart[:, None, :]
        return np.asarray(np.add.reduceat(E * self.shares[:, None, None], _starts(self.rows)))

    def _along(self) -> Floats:
        """Return the inverse information of each part along the simplex, (m, n, n)."""
        inverse = np.linalg.inv(self.information)
        total = inverse.sum(axis=2)
        return np.asarray(inverse - total[:, :, None] * total[:, None, :] / total.sum(axis=1)[:, None, None])

    def moved(self, X: Floats) -> Floats:
        """Return the change of prevalences if errors pull at them by X (B, n, k)."""
        by_part = np.matmul(self._along(), X[self.rows])
        change = np.add.reduceat(by_part * self.shares[:, None, None], _starts(self.rows))
        if self.of_sample is None:
            return np.asarray(change)
        J, JH = self.of_sample
        return np.asarray(change - np.matmul(JH, change) + np.matmul(J, X))


def posterior(seen: Observed, prior: Prior, sizes: Floats, start: Floats, *, estimand: str = "sample") -> Posterior:
    """Return prevalences of samples of N items (B,) or populations near `start`."""
    sizes = np.asarray(sizes, dtype=np.float64)
    J = multinomial(start) / sizes[:, None, None]
    G, g = whitened(_of_population(seen, J), sizes)
    weights = evidence(G, g, prior)
    counted = np.where(weights > NEGLIGIBLE, weights, 0.0)
    rows, part = np.nonzero(counted)
    shares = (counted / counted.sum(axis=1, keepdims=True))[rows, part]
    k = prior.exponents()[part]
    H, b = np.matmul(G.transpose(0, 2, 1), G), np.matmul(g[:, None, :], G)[:, 0]
    A = H[rows] + prior.curvatures()[part]
    found = minimize_inside(A, b[rows], k, start[rows], sizes[rows])
    P, n = found.p, A.shape[1]
    # Smoothness improves the estimate but is not information: the truth may be jagged all the same.
    information = H[rows]
    information[:, np.arange(n), np.arange(n)] += k / P**2
    of_sample = None
    if estimand == "sample":
        # Regression on q of the deviation of the sample from its population.
        of_sample = J, np.matmul(J, H)
        rest = b[rows] - np.matmul(H[rows], P[:, :, None])[:, :, 0]
        P = clean(P + np.matmul(J[rows], rest[:, :, None])[:, :, 0])
    starts = _starts(rows)
    solution = Solution(
        np.add.reduceat(P * shares[:, None], starts),
        np.add.reduceat(found.value * shares, starts),
        np.maximum.reduceat(found.n_iter, starts),
        np.logical_and.reduceat(found.converged, starts),
        np.maximum.reduceat(found.kkt, starts),
    )
    return Posterior(solution, weights, rows, shares, P, information, of_sample)


def _of_population(seen: Observed, J: Floats) -> Observed:
    """Return the observation with the covariance of q - M p for populations.

    Prevalences of samples vary around p by J (B, n, n).
    """
    M = np.broadcast_to(seen.M, J.shape)
    return seen._replace(Omega=seen.Omega + np.matmul(np.matmul(M, J), M.transpose(0, 2, 1)))


def pull(seen: Observed, sizes: Floats, P: Floats, D: Floats) -> Floats:
    """Return M' Omega^-1 D (B, n, k), the pull of errors D of q on prevalences P."""
    n = P.shape[1]
    scale, R = _correlations(_of_population(seen, multinomial(P) / sizes[:, None, None]), sizes)
    both, _ = whiten(R, np.concatenate([seen.M, D], axis=2) / scale[:, :, None])
    return np.asarray(np.matmul(both[:, :, :n].transpose(0, 2, 1), both[:, :, n:]))


def first_shares(Q: Floats, M: Floats, Omega: Floats, A: Floats) -> Floats:
    """Return the linear prediction around a uniform m, cut to the simplex.

    m + A M' (M A M' + Omega)^-1 (q - M m).

    For means Q (B, n) with one M and one Omega (n, n), and shares of covariance A (n, n); a product of matrices.
    """
    AM = A @ M.T
    gain = AM @ np.linalg.pinv(M @ AM + Omega, rcond=POSTERIOR_RIDGE, hermitian=True)
    n = len(M)
    return clean((Q - M.mean(axis=1)) @ gain.T + 1 / n)


def _starts(rows: Index) -> Index:
    """Return where each of the sorted rows (m,) begins, (B,)."""
    return np.flatnonzero(np.diff(rows, prepend=-1))


def evidence(G: Floats, g: Floats, prior: Prior) -> Floats:
    """Return the weights (B, c) of the parts of the prior given whitened means."""
    found = np.tile(prior.log_weights, (len(g), 1))
    if found.shape[1] == 1:
        return np.ones_like(found)
    distances = np.empty_like(found)
    for c, (A, centre) in enumerate(zip(prior.covariances(), prior.centres, strict=True)):
        K = np.matmul(np.tensordot(G, A, 1), G.transpose(0, 2, 1)) + np.eye(len(A))
        z, root = whiten(K, (g - G @ centre)[:, :, None])
        distances[:, c] = (z[:, :, 0] ** 2).sum(axis=1)
        found[:, c] -= np.log(root).sum(axis=1)
    found -= distances / 2 / np.maximum(1, distances.min(axis=1, keepdims=True) / FARTHEST)
    found = np.exp(found - found.max(axis=1, keepdims=True))
    return np.asarray(found / found.sum(axis=1, keepdims=True))


def whitened(seen: Observed, sizes: Floats) -> tuple[Floats, Floats]:
    """Return L^-1 M (B, n, n) and L^-1 q (B, n), with L L' = Omega."""
    scale, R = _correlations(seen, sizes)
    right = np.concatenate([np.broadcast_to(seen.M, R.shape), seen.Q[:, :, None]], axis=2) / scale[:, :, None]
    both = np.ascontiguousarray(whiten(R, right)[0])
    return both[:, :, :-1], both[:, :, -1]


def _correlations(seen: Observed, sizes: Floats) -> tuple[Floats, Floats]:
    """Return scales (B, n) and regular covariances (B, n, n) in these scales."""
    Q, M, Omega, P0 = seen
    n = Q.shape[1]
    # Less than a thousandth of an item does not matter, and an f that does not vary has no information.
    least = LEAST_SEEN / sizes[:, None] * np.abs(M).max(axis=2)
    scale = np.sqrt(np.einsum("bii->bi", Omega) + least**2)
    # Residuals have no part along p0: a variance there makes Omega regular and changes nothing else.
    along = P0 * scale
    along /= np.linalg.norm(along, axis=1, keepdims=True)
    R = Omega / (scale[:, :, None] * scale[:, None, :])
    R[:, np.arange(n), np.arange(n)] = 1.0
    R += along[:, :, None] * along[:, None, :] + POSTERIOR_RIDGE * np.eye(n)
    return scale, R


# Intervals around estimated shares from the covariance of their errors.


def normal_bounds(
    P: Floats, E: Floats, sizes: Floats, level: float, estimand: str, values: Floats | None = None
) -> Bounds:
    """Return normal intervals of prevalences P (B, n) with covariances E.

    Also those of cumulated prevalences and the mean class.

    u'p lies within z sqrt(u'Eu) of its estimate, and where the shares are those of N items (B,), within half an item
    more.
    """
    h2 = ndtri((1 + level) / 2) ** 2 * variances(E, values)
    if estimand == "sample":
        h2 += (item_steps(P.shape[1], values) / (2 * np.asarray(sizes, dtype=np.float64)[:, None])) ** 2
    value, half = statistics(P, values), np.sqrt(h2)
    return Bounds.of_statistics(level, estimand, value - half, value + half, values)


INSTRUMENTS = ("sample", "uniform", "training")
# Samples that are treated in one pass.
PASS = 512


class AdjustedML(Quantifier):
    """Adjusted maximum likelihood with class means measured on held-out items.

    Density ratios r(x) come from the posteriors, calibrated so that all classes have the same weight. Their likelihood
    has the gradient mean f with f(x) = r(x) / (r(x).p0), which is as precise a summary of the items as there is, for
    shares near p0. Its class means M and its covariance Omega are measured, so that errors of the posteriors do no
    harm; then p = argmin 1/2 (q - M p)' Omega^-1 (q - M p) - ln prior(p) over the simplex. Since M has errors, too, p0
    is not the first estimate of p itself: it has as much of each class as that class contributes to Omega. See
    docs/methods.md.

    With training groups, ``fit(X, y, groups=...)``, Omega includes the group effect D and the prior is learned from the
    groups: that is :class:`GroupBLP`, whose f, the posteriors, equals the instrument p0 = p_train up to units.

    Parameters
    ----------
    classifier : classifier, default=None
        Gives the posteriors, see :class:`CC`.
    prior : {"any", "uniform", "smooth", "training"} or array-like (n,), default="any"
        What is expected of the shares. "uniform": anything; "smooth": neighbouring classes have similar shares;
        "training": the shares of the training items; a distribution: these shares. "any" weighs the three by how well
        they predict the sample; estimates of the population then use "uniform".
    strength : float, default=None
        Number of items that the training distribution, or a given one, is worth as a prior. None means the number of
        training items with "training", and 1000 otherwise.
    instrument : {"sample", "uniform", "training"}, default="sample"
        p0: made for each sample from a first estimate, which needs the scores of all its items; or one p0 for all
        samples, which loses a few per cent but needs only means.
    group_effect : float, default=None
        Group effect that is assumed when groups are estimated without training groups, see :class:`GroupBLP`.
        `predict` and `predict_samples` do not use it.

    Attributes
    ----------
    calibration_ : Calibration
    strength_ : float or None
        Number of items that the expected distribution is worth, if not the usual 1000.
    counts_, trust_ : ndarray (n,)
        Held-out items of each class, and the part of its mean that comes from them alone.
    M_ : ndarray (n, n)
        Class means of f for the instrument of all samples (of their first estimate).
    covariances_ : ndarray (n, n, n)
        Covariances of f within the classes for that instrument.
    predictor_ : GroupBLP or None
        Model of the training groups, which then gives all estimates.
    """

    paper_name = ""

    def __init__(
        self,
        classifier: Any = None,
        *,
        prior: Any = "any",
        strength: float | None = None,
        instrument: str = "sample",
        group_effect: float | None = None,
    ) -> None:
        self.classifier = classifier
        self.prior = prior
        self.strength = strength
        self.instrument = instrument
        self.group_effect = group_effect

    @property
    def traits(self) -> Traits:
        """Traits by the instrument and, after `fit`, by the model of groups."""
        predictor = getattr(self, "predictor_", None)
        return Traits(
            accepts_weights=True,
            uses_sample_means=self.instrument != "sample" or predictor is not None,
            has_group_model=predictor is not None,
        )

    def check_parameters(self, n_classes: int) -> None:
        """Raise ValueError if a parameter is out of range."""
        check_choice("instrument", self.instrument, INSTRUMENTS)
        check_prior(self.prior, self.strength, n_classes)
        GroupBLP(group_effect=self.group_effect).check_parameters(n_classes)

    def learn(self, held_out: HeldOut) -> None:
        """Fit calibration, class means of a common instrument, and group model."""
        counted = self.strength is None and isinstance(self.prior, str) and self.prior == "training"
        self.strength_ = held_out.n_training if counted else self.strength
        check_every_class(held_out.codes, self.classes_)
        self.predictor_: GroupBLP | None = None
        self.calibration_ = Calibration("bcts", balanced=True).fit(held_out.S, held_out.codes, held_out.weights)
        labelled = self._labelled(held_out)
        self.counts_, self.trust_ = labelled.counts, labelled.trust
        self.M_, self.covariances_ = labelled.at(self._common())
        if held_out.groups is not None:
            self.predictor_ = self._group_model(held_out)

    def _group_model(self, held_out: HeldOut, group_effect: float | None = None) -> GroupBLP:
        """Return the model of groups that held-out items give."""
        model = GroupBLP(group_effect=group_effect)
        model.classes_, model.p_train_, model.class_values_ = self.classes_, self.p_train_, self.class_values_
        model.learn(held_out)
        return model

    def name_groups(self, keys: Keys | None) -> None:
        """Store the names of the columns of the training groups."""
        super().name_groups(keys)
        if self.predictor_ is not None:
            self.predictor_.name_groups(keys)

    def for_groups(self) -> Quantifier:
        """Return the quantifier for groups: with a stated effect, or this one."""
        if self.group_effect is None or self.held_out_.learned_groups:
            return self
        model = self.held_out_.once(
            AdjustedML._group_model, self, self.held_out_, self.group_effect, key=(self, self.group_effect)
        )
        model.held_out_, model.answers_for_ = self.held_out_, self
        for name in ("classifier_", "n_features_in_", "feature_names_in_"):
            if hasattr(self, name):
                setattr(model, name, getattr(self, name))
        return model

    def _labelled(self, V: HeldOut) -> LabelledRatios:
        """Return the density ratios of held-out items."""
        return LabelledRatios(self._ratios(V.S), V.codes, V.weights)

    def _ratios(self, S: Floats) -> Floats:
        """Return density ratios r of items with scores S (N, n), (N, n)."""
        return self.calibration_.transform(S)

    def _common(self) -> Floats:
        """Return the instrument that all samples share, at first or for good."""
        n = len(self.classes_)
        return self.p_train_ if self.instrument == "training" else np.full(n, 1 / n)

    def embed(self, S: Floats) -> Floats:
        """Return f of items with scores S (N, n) for the common instrument, (N, n)."""
        if self.predictor_ is not None:
            return self.predictor_.embed(S)
        R = self._ratios(S)
        return np.asarray(R / (R @ self._common())[:, None])

    def solve(self, summary: Summary) -> Solution:
        """Return the estimates of B summarized samples."""
        if self.predictor_ is not None:
            return self.predictor_.solve(summary)
        return Solution.concatenate([found.solution for found in self._posteriors(summary, "sample", self.prior)])

    def collect(self, summary: Summary) -> Any:
        """Return the sums that determine the common offset of all samples, or None."""
        return None if self.predictor_ is None else self.predictor_.collect(summary)

    def find_drift(self, sums: Any, strength: float | None = None) -> Any:
        """Return the common offset of all samples, see :meth:`GroupBLP.find_drift`."""
        return None if self.predictor_ is None else self.predictor_.find_drift(sums, strength)

    def infer(
        self,
        summary: Summary,
        options: IntervalOptions,
        level: float | None = None,
        block: int = 0,
        context: Any = None,
    ) -> Inference:
        """Return estimates with bounds and covariances from the curvature.

        Estimate and bounds belong to one posterior. Prevalences of populations use the prior "uniform" in place of
        "any": otherwise both sides of a comparison would be drawn to the training distribution, and to each other.
        """
        if self.predictor_ is not None:
            found = self.predictor_.infer(summary, options, level, block, context)
            return replace(found, verdict=verdicts(self, summary)) if found.verdict is None else found
        of_any_population = options.estimand == "population" and isinstance(self.prior, str) and self.prior == "any"
        posteriors = list(self._posteriors(summary, options.estimand, "uniform" if of_any_population else self.prior))
        solution = Solution.concatenate([one.solution for one in posteriors])
        found = Inference(clean(solution.p), solution.converged, verdicts(self, summary))
        if level is None:
            return found
        E = np.concatenate([one.covariances() for one in posteriors])
        shared = np.concatenate(list(_shared(self, posteriors, summary.sizes)))
        bounds = normal_bounds(found.prevalences, E, summary.sizes, level, options.estimand, values_of(self))
        return with_closed_form(found, bounds, E, shared)

    def response_matrix(self) -> Floats | None:
        """Return M for the common instrument."""
        return self.M_ if self.predictor_ is None else self.predictor_.response_matrix()

    def _posteriors(self, summary: Summary, estimand: str, prior: Any) -> Iterator[Posterior]:
        """Yield the posteriors of successive samples."""
        expected = Prior.of(prior, self.p_train_, self.strength_)
        for seen, P, sizes in self._observed(summary, expected):
            yield posterior(seen, expected, sizes, P, estimand=estimand)

    def _observed(self, summary: Summary, expected: Prior) -> Iterator[tuple[Observed, Floats, Floats]]:
        """Yield observations of successive samples, prevalences (B, n) and sizes (B,)."""
        if self.traits.uses_sample_means:
            Q = summary.means
        else:
            S, samples = summary.scored()
            labelled = self._labelled(self.held_out_)
            mixture, Q = MixtureObjective(self._ratios(S), samples), samples.average(self.embed(S))
        for start in range(0, len(summary), PASS):
            rows = np.arange(start, min(start + PASS, len(summary)))
            sizes = summary.sizes[rows]
            P = self._first(Q[rows], sizes)
            seen = self._at_common(Q[rows], sizes, P)
            if not self.traits.uses_sample_means:
                P = _positive(posterior(seen, expected, sizes, P).solution.p, sizes)
                shares = error_shares(P, sizes, self.counts_, self.trust_)
                P0, q = shares / shares.sum(axis=1, keepdims=True), np.empty_like(P)
                for block in mixture.blocks(rows):
                    q[block.rows] = block.weighted_ratios(P0[block.rows])
                seen = Observed(q, *labelled.at_each(P0, shares), P0)
            yield seen, P, sizes

    def _first(self, Q: Floats, sizes: Floats) -> Floats:
        """Return prevalences (B, n) from means Q (B, n) of the common f alone."""
        P = np.empty_like(Q)
        # Samples of similar sizes share one treatment.
        exponents = np.log2(sizes).round()
        p0, A = self._common(), Prior.of("uniform", self.p_train_).covariances()[0]
        for exponent in np.unique(exponents):
            rows, size = exponents == exponent, np.array([2.0**exponent])
            a = error_shares(p0[None], size, self.counts_, self.trust_)[0]
            # The shares of the sample vary by its items, too.
            spread = A + multinomial(np.full(len(p0), 1 / len(p0))) / size
            P[rows] = first_shares(Q[rows], self.M_, np.tensordot(a, self.covariances_, 1), spread)
        return _positive(P, sizes)

    def _at_common(self, Q: Floats, sizes: Floats, P: Floats) -> Observed:
        """Return observations by means Q (B, n) of the common f, near P (B, n)."""
        Omega = np.tensordot(error_shares(P, sizes, self.counts_, self.trust_), self.covariances_, 1)
        return Observed(Q, np.broadcast_to(self.M_, Omega.shape), Omega, np.broadcast_to(self._common(), Q.shape))


def _positive(P: Floats, sizes: Floats) -> Floats:
    """Return prevalences (B, n) with at least half an item in each class."""
    return clean(np.maximum(P, 0.5 / sizes[:, None]))


def _shared(method: AdjustedML, found: list[Posterior], sizes: Floats) -> Iterator[npt.NDArray[np.float32]]:
    """Yield factors (b, n, n^2) of the effect of errors of M on prevalences.

    Column i of M errs by delta_i with covariance lambda_i C_i / n_i, and q - M p by -sum_i p_i delta_i. The common
    instrument stands for that of each sample: both use the same labelled items, nearly equally.
    """
    values, vectors = np.linalg.eigh(method.covariances_ * (method.trust_ / method.counts_)[:, None, None])
    roots = vectors * np.sqrt(np.maximum(values, 0))[:, None, :]
    for one, N in zip(found, np.split(sizes, np.cumsum([len(f.solution.p) for f in found])[:-1]), strict=True):
        P = clean(one.solution.p)
        D = np.einsum("bi,ijk->bjik", P, roots).reshape(*P.shape, -1)
        yield one.moved(pull(method._at_common(P, N, P), N, P, D)).astype(np.float32)
