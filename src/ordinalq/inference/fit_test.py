"""The fit test of many samples at once, from sums alone and in closed form.

If a sample is a mixture p of the known classes, the mean q of functions g has expectation M p. Contrasts L with
L'(M_i - M_j) = 0 for all classes have the same expectation c in every mixture, so

    z = L'q - c,    E z = 0,    Cov z = sum_i (p_i / N + p_i^2 / n_i + t p_i) L'V_i L + (1 - 1/N) L'D L,

with V_i the covariance of g within class i, n_i the held-out items behind M_i, and D the
covariance between groups, if the model has it. z'(Cov z)^-1 z is what generalized least squares would leave over of q
after the best p, without looking for that p. For the covariance alone a rough p is enough: that of ordinary least
squares where classes have their mean covariance, with negative shares cut off. So the verdict belongs to the scores,
independent of the method that uses them. Under the assumption it has mean k, the number of contrasts, and variance 2 k
+ kurtosis / N, and is taken for a multiple of a chi-square variable with these.

t is what scores of new items differ from held-out ones by: other models have made them.

What the test cannot see: a change of the items along the columns of M moves q as another p would, and leaves nothing
over.
"""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from scipy.special import chdtrc

from ordinalq._utils.validation import Codes, Floats
from ordinalq.inference.bootstrap import composition
from ordinalq.inference.model import FittedQuantifier, HeldOut, has_held_out
from ordinalq.representations import expected_rank, one_hot
from ordinalq.samples.samples import OneHot, Samples
from ordinalq.samples.summary import Summary
from ordinalq.samples.weights import Weights, class_shares, effective_items, item_counts
from ordinalq.simplex import clean, existing_differences
from ordinalq.solvers.quadratic import simplex_qp

# The functions that a fit test looks at, on the held-out items, in directions that are not redundant.


# Functions per class, and the part of the largest variance below which a direction is redundant.
FUNCTIONS_PER_CLASS = 4
REDUNDANT = 1e-6


class ScoreChecks:
    """Functions g(x) of the fit test: two histograms and the scores.

    Histogram of the expected class index (2 n bins), of the highest score (n bins), and the scores (n).

    Under prior probability shift the mean of g over a sample is a mixture of its class means, as that of any function
    of the items is. Bins hold equal parts of the held-out items, in which every class has the same weight: a sample may
    hold many items of a class that is rare in training. The inner edges are `rank_edges` (at most 2 n - 1,) and
    `top_edges` (at most n - 1,).
    """

    def __init__(self, rank_edges: Floats, top_edges: Floats) -> None:
        self.rank_edges = rank_edges
        self.top_edges = top_edges

    @classmethod
    def of(cls, V: HeldOut) -> "ScoreChecks":
        """Return the functions for held-out scores."""
        n = V.S.shape[1]
        w = class_shares(V.codes, n, V.weights)
        return cls(weighted_quantiles(expected_rank(V.S), w, 2 * n), weighted_quantiles(_highest(V.S), w, n))

    def total(self, S: Floats, samples: Samples) -> Floats:
        """Return the sums of g over samples of items with scores S (N, n), (B, 4 n)."""
        width = 2 * S.shape[1]
        bins = [self.rank_edges.searchsorted(expected_rank(S)), self.top_edges.searchsorted(_highest(S))]
        counts = samples.total(OneHot(np.column_stack(bins), width))
        # The second histogram has half as many bins.
        return np.hstack([counts[:, : width + width // 2], samples.total(S)])

    def values(self, S: Floats) -> Floats:
        """Return g of each item, (N, 4 n)."""
        return self.total(S, Samples(np.arange(len(S)), np.arange(len(S) + 1), len(S)))


def _highest(S: Floats) -> Floats:
    """Return the highest score of each item, (N,)."""
    return np.asarray(np.ascontiguousarray(S.T).max(axis=0))


def weighted_quantiles(x: Floats, weights: Floats, n_bins: int) -> Floats:
    """Return distinct edges that cut weighted values x (N,) into n_bins parts.

    The parts have equal weights.
    """
    order = np.argsort(x, kind="stable")
    cumulated = np.cumsum(weights[order])
    at = np.searchsorted(cumulated, np.arange(1, n_bins) / n_bins * cumulated[-1])
    edges = np.unique(x[order][np.minimum(at, len(x) - 1)])
    return np.asarray(edges[edges < x.max()])


def score_checks(quantifier: FittedQuantifier) -> ScoreChecks | None:
    """Return the functions of the fit test; None for methods on features."""
    V = quantifier.held_out_
    return V.once(ScoreChecks.of, V) if quantifier.traits.input_kind == "scores" else None


class Checked(NamedTuple):
    """Functions g of the held-out items V, stored in summaries under `name`."""

    name: str  # "checks", or "f" where a representation on features serves as such
    g: Floats  # (N_V, d) values in V, the direction with the largest variance first
    codes: Codes  # (N_V,) classes
    centre: Floats  # (d0,) from what was summed up to g: (x - centre) axes
    axes: Floats  # (d0, d)
    D: Floats | None  # (d, d) covariance of the mean of g in a class between groups, if known
    weights: Weights | None = None

    def means(self, summary: Summary) -> Floats:
        """Return the mean of g over each sample, (B, d)."""
        return np.asarray((summary.mean(self.name) - self.centre) @ self.axes)

    def first(self, d: int) -> "Checked":
        """Return the d directions with the largest variance."""
        D = None if self.D is None else self.D[:d, :d]
        return self._replace(g=self.g[:, :d], axes=self.axes[:, :d], D=D)


def checked(quantifier: FittedQuantifier) -> Checked:
    """Return the functions of a fitted quantifier that has kept its held-out items."""
    V, n = quantifier.held_out_, len(quantifier.classes_)
    functions = score_checks(quantifier)
    if functions is None:
        name, g, D = "f", np.asarray(quantifier.embed(V.S), dtype=np.float64), V.group_covariance
    else:
        name, g, D = "checks", functions.values(V.S), V.check_covariance
    # Every class has the same weight: a sample may hold many of those that are rare in training.
    shares = class_shares(V.codes, n, V.weights) / n
    centre = shares @ g
    g = g - centre
    size, axes = np.linalg.eigh((g * shares[:, None]).T @ g)
    axes = axes[:, np.flatnonzero(size > REDUNDANT * size.max())[::-1][: FUNCTIONS_PER_CLASS * n]]
    D = None if D is None else axes.T @ D @ axes
    return Checked(name, g @ axes, V.codes, centre, axes, D, V.weights)


# The mixture of the known classes that explains a sample best: how well, and how precisely it can be known.


# Half the width of a 95% interval in standard errors, and the half width that a sample should allow.
TWO_SIDED = 1.96
WANTED = 0.02
# A test below the first level rejects; a deviation below the second (in the unit of Cohen's w) is too small to matter.
# Held-out scores of forests with fully grown trees differ from those of new items by up to 0.26.
LEVEL = 0.01
SMALL_EFFECT = 0.3
# Classes are hard to distinguish if this part of the sample could move between them unnoticed.
UNNOTICED = 0.1
# With few items of a class its covariance is mixed with that of all classes, as if this many of these were its own.
BORROWED = 10
# Steps of the weights, which depend on the mixture that they lead to, and where the first one starts.
REWEIGHTINGS = 10
FLOOR = 1e-3
# Powers of ten of the number of items that a precision may take.
MOST_ITEMS = 8.0


@dataclass(frozen=True, eq=False)
class Fit:
    """A chi-square test whether any mixture of the classes explains a sample.

    Attributes
    ----------
    chi2, degrees_of_freedom, p_value : float, int, float
        Statistic, degrees of freedom and p-value of the test.
    effect : float
        Size of the deviation in standard deviations of one item, without what noise adds (as Cohen's w).
    best_mixture : ndarray (n,)
        The mixture that explains the sample best.
    excess_chi2 : float
        By how much the estimate explains it worse.
    """

    chi2: float
    degrees_of_freedom: int
    p_value: float
    effect: float
    best_mixture: Floats
    excess_chi2: float

    @property
    def is_good(self) -> bool:
        """Whether the test does not reject."""
        return self.p_value >= LEVEL

    @property
    def is_plausible(self) -> bool:
        """Whether the sample may be a mixture of the classes, up to a small deviation."""
        return self.is_good or self.effect < SMALL_EFFECT


@dataclass(frozen=True, eq=False)
class Precision:
    """Precision with which the class prevalences can be estimated.

    Attributes
    ----------
    standard_errors : ndarray (n,)
        Standard errors of the best mixture: what a method without smoothing can reach at most.
    n_needed : int or None
        Items for 95% intervals of at most +-0.02 for every class; None where no number is enough.
    unnoticed : ndarray (n, n)
        Part of the sample that could move from class i to class j within two standard deviations of the noise.
    noise_jaggedness : float
        What the noise of the best mixture alone adds to xi_1 on average.
    """

    standard_errors: Floats
    n_needed: int | None
    unnoticed: Floats
    noise_jaggedness: float

    @property
    def confusable(self) -> list[tuple[int, int]]:
        """Pairs of positions i < j with more than 0.1 in `unnoticed`, worst first."""
        n = len(self.unnoticed)
        pairs = [(i, j) for i in range(n) for j in range(i + 1, n) if self.unnoticed[i, j] > UNNOTICED]
        return sorted(pairs, key=lambda pair: -self.unnoticed[pair])


class Moments(NamedTuple):
    """Means (d, n), second moments and covariances (n, d, d) of d functions.

    ``counts`` (n,) are the items that they come from, D (d, d) the covariance between groups of the means in a class;
    None where nothing is known of groups.
    """

    M: Floats
    E: Floats
    V: Floats
    counts: Floats
    D: Floats | None = None

    def item_covariance(self, p: Floats) -> Floats:
        """Return the covariance (d, d) of one item of the mixture p."""
        v = self.M @ p
        return np.asarray(np.tensordot(p, self.E, axes=1) - np.outer(v, v))

    def covariance(self, p: Floats, N: float) -> Floats:
        """Return the covariance (d, d) of q - M p for N items of the mixture p.

        It includes the errors of M and the group effect.
        """
        within = self.item_covariance(p) / N + np.tensordot(p * p / self.counts, self.V, axes=1)
        return np.asarray(within if self.D is None else within + self.D * (1 - 1 / N))

    def information(self, p: Floats, N: float) -> tuple[Floats, Floats]:
        """Return W (d, d), the inverse covariance, and the information M'WM (n, n)."""
        W: Floats = np.linalg.pinv(self.covariance(p, N), hermitian=True).astype(np.float64)
        return W, self.M.T @ W @ self.M


def compare(moments: Moments, q: Floats, N: int, estimate: Floats) -> tuple[Fit, Precision]:
    """Compare the mean q (d,) of N items with mixtures of the classes.

    The search starts at the estimate (n,).
    """
    p = clean(estimate[None] + FLOOR)[0]
    for _ in range(REWEIGHTINGS):
        W, A = moments.information(p, N)
        p = simplex_qp(A, (moments.M.T @ W @ q)[None])[0][0]
    W, _ = moments.information(p, N)
    chi2, at_estimate = (float(r @ W @ r) for r in (q - moments.M @ p, q - moments.M @ estimate))
    # Classes that the best mixture leaves out were no freedom of the fit.
    freedom = len(q) - int((p > 0).sum()) + 1
    fit = Fit(
        chi2=chi2,
        degrees_of_freedom=freedom,
        p_value=float(chdtrc(freedom, chi2)),
        effect=effect_size(moments, q, p, N, freedom / len(q)),
        best_mixture=p,
        excess_chi2=max(at_estimate - chi2, 0.0),
    )
    return fit, _precision(moments, N, composition(p[None], np.array([float(N)]))[0])


def _precision(moments: Moments, N: int, p: Floats) -> Precision:
    """Return what the information in N items of the mixture p leaves open.

    A class that is not there would add no noise, and seem better known than it is: every class needs some mass.
    """
    n, A = len(p), moments.information(p, N)[1]
    errors = covariance_on_simplex(A)
    deltas = np.eye(n)[:, None] - np.eye(n)[None]
    moving = np.einsum("ija,ab,ijb->ij", deltas, A, deltas)
    unnoticed = np.divide(2.0, np.sqrt(np.maximum(moving, 1e-300)), where=~np.eye(n, dtype=bool), out=np.zeros((n, n)))
    C = existing_differences(n)
    return Precision(
        standard_errors=np.sqrt(np.diag(errors)),
        n_needed=items_needed(moments, p),
        unnoticed=unnoticed,
        noise_jaggedness=float(np.trace(C @ errors @ C.T) / min(6, n + 1)),
    )


def effect_size(moments: Moments, q: Floats, p: Floats, N: int, free: float) -> float:
    """Return sqrt(max(r'Wr - tr(W Omega) free, 0)), r = q - M p.

    W is the inverse covariance of one item of the mixture p, Omega the covariance of r if nothing but noise is in it,
    and `free` the part of its directions that the fit has left. Divided by one item's noise and not by that of q, the
    deviation neither grows with the sample nor fades once M is less certain than q.
    """
    r = q - moments.M @ p
    W: Floats = np.linalg.pinv(moments.item_covariance(p), hermitian=True).astype(np.float64)
    noise = np.trace(W @ moments.covariance(p, N)) * free
    return float(np.sqrt(max(r @ W @ r - noise, 0.0)))


def class_moments(F: Floats, codes: Codes, n: int, weights: Weights | None = None) -> Moments:
    """Return the (weighted) moments of F (N, d) in each of n classes."""
    counts = effective_items(codes, n, weights)
    total = item_counts(codes, n, weights)
    own = F if weights is None else F * weights.values[:, None]
    M = (one_hot(codes, n).T @ own).T / total
    E = np.array([own[codes == i].T @ F[codes == i] for i in range(n)]) / total[:, None, None]
    V = E - np.einsum("ai,bi->iab", M, M)
    pooled = np.tensordot(counts, V, axes=1) / counts.sum()
    weight = (counts / (counts + BORROWED))[:, None, None]
    return Moments(M, E, weight * V + (1 - weight) * pooled, counts)


def covariance_on_simplex(A: Floats) -> Floats:
    """Return the covariance (n, n) of an estimate with information A (n, n)."""
    n = len(A)
    # Columns of Z span the directions that sum to zero.
    Z = np.linalg.svd(np.ones((1, n)))[2][1:].T
    return np.asarray(Z @ np.linalg.pinv(Z.T @ A @ Z, hermitian=True) @ Z.T)


def items_needed(moments: Moments, p: Floats) -> int | None:
    """Return the number of items for which every 95% interval is narrow, or None."""

    def enough(N: float) -> bool:
        errors = np.diag(covariance_on_simplex(moments.information(p, N)[1]))
        return bool(TWO_SIDED * np.sqrt(errors.max()) <= WANTED)

    low, high = 0.0, MOST_ITEMS
    if not enough(10**high):
        return None
    while high - low > 0.005:
        middle = (low + high) / 2
        low, high = (low, middle) if enough(10**middle) else (middle, high)
    digits = max(int(high) - 1, 0)
    return int(np.ceil(10 ** (high - digits)) * 10**digits)


GOOD, DOUBTFUL, BAD, UNTESTED = "good", "doubtful", "bad", "too few items"
# Levels of the test below which a fit is doubtful, and bad.
DOUBTFUL_LEVEL, BAD_LEVEL = 0.05, 0.001
# Variance of the difference between held-out and new scores, in units of that of an item.
TOLERANCE = 5e-4
# Smaller samples are not tested.
MIN_ITEMS = 10
# Rows that are worked on at once.
CHUNK = 2048


class FitTest(NamedTuple):
    """Statistics of the held-out items for the fit test."""

    name: str  # of the sums in a summary
    L: Floats  # (d0, k) contrasts
    c: Floats  # (k,) their expectation
    R: Floats  # (d0, n) a rough estimate, p = R'q + r
    r: Floats  # (n,)
    V: Floats  # (n, k, k) covariances of the contrasts within each class
    counts: Floats  # (n,) held-out items of each class
    D: Floats  # (k, k) covariance between groups
    kurtosis: float  # E (x' V^-1 x)^2 - k^2 - 2 k of single items, zero if they are normal

    @classmethod
    def of(cls, quantifier: FittedQuantifier) -> "FitTest | None":
        """Return the test of a quantifier; None if it has too few functions."""
        known, n = checked(quantifier), len(quantifier.classes_)
        k = known.g.shape[1] - n + 1
        if k < 1:
            return None
        moments = class_moments(known.g, known.codes, n, known.weights)
        # In coordinates in which the mean covariance of the classes is the identity.
        size, axes = np.linalg.eigh(moments.V.mean(axis=0))
        white = axes / np.sqrt(np.maximum(size, 1e-12 * size[-1]))
        M = white.T @ moments.M
        # Columns of Z span the directions in which shares sum to zero.
        Z = np.linalg.svd(np.ones((1, n)))[2][1:].T
        L = white @ np.linalg.svd(M @ Z)[0][:, n - 1 :]
        R = white @ np.linalg.pinv(M @ Z).T @ Z.T
        even = np.full(n, 1 / n)
        x = (known.g - moments.M.T[known.codes]) @ L
        share = class_shares(known.codes, n, known.weights)
        fourth = np.bincount(known.codes, weights=share * (x * x).sum(axis=1) ** 2, minlength=n)
        return cls(
            name=known.name,
            L=known.axes @ L,
            c=known.centre @ known.axes @ L + moments.M[:, 0] @ L,
            R=known.axes @ R,
            r=even - (known.centre @ known.axes + moments.M @ even) @ R,
            V=L.T @ moments.V @ L,
            counts=moments.counts,
            D=np.zeros((k, k)) if known.D is None else L.T @ known.D @ L,
            kurtosis=max(float(fourth.mean()) - k * k - 2 * k, 0.0),
        )

    def p_values(self, summary: Summary) -> Floats:
        """Return the p-value of each sample, (B,)."""
        q, N = summary.mean(self.name), summary.sizes
        P, Z = composition(clean(q @ self.R + self.r), N), q @ self.L - self.c
        chi2, k = np.empty(len(Z)), Z.shape[1]
        V = self.V.reshape(len(self.V), -1)
        for start in range(0, len(Z), CHUNK):
            rows = slice(start, start + CHUNK)
            p, z, inverse = P[rows], Z[rows], 1 / N[rows, None]
            C = ((p * inverse + p**2 / self.counts + TOLERANCE * p) @ V).reshape(-1, k, k)
            C += self.D * (1 - inverse[:, :, None])
            chi2[rows] = (z * np.linalg.solve(C, z[:, :, None])[:, :, 0]).sum(axis=1)
        variance = 2 * k + self.kurtosis / N
        return np.asarray(chdtrc(2 * k * k / variance, chi2 * 2 * k / variance))


def verdicts(quantifier: FittedQuantifier, summary: Summary) -> npt.NDArray[np.str_] | None:
    """Return the verdict of the fit test for each sample, or None."""
    if not has_held_out(quantifier):
        return None
    test = quantifier.held_out_.once(FitTest.of, quantifier)
    if test is None or test.name not in summary.totals:
        return None
    p = test.p_values(summary)
    found = np.where(p < BAD_LEVEL, BAD, np.where(p < DOUBTFUL_LEVEL, DOUBTFUL, GOOD))
    return np.where(summary.sizes < MIN_ITEMS, UNTESTED, found)
