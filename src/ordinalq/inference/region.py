r"""Joint confidence regions: ellipsoids of a distribution, cut to the simplex.

An interval holds for one class by itself. A region {p : (p - c)' S^+ (p - c) <= r^2} holds for all classes together, in
the n - 1 directions in which prevalences can move; r^2 is the chi-square quantile with n - 1 degrees of freedom.

* Methods on means with a matrix M: q - M p has covariance Omega, that of the items and of M, independent of what the
  method makes of it. c is the generalized least-squares solution, which may lie outside the simplex, and S its
  covariance. Estimates on the edge of the simplex have replicates that hardly move: their covariance would give a
  region that is too small.
* Other methods: c is the estimate. The correlations are those of its error covariance; each standard deviation is the
  larger of that of the covariance and of what the farther end of the interval implies.

Half an item is added to every standard deviation.
"""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from scipy.special import chdtri, gammaln, ndtri

from ordinalq._utils.validation import Array, Floats, Mask, check_random_state
from ordinalq.inference.bounds import Bounds
from ordinalq.inference.model import Ellipsoids, FittedQuantifier, has_held_out
from ordinalq.samples.summary import Summary
from ordinalq.samples.weights import class_shares, effective_items

# Representations wider than this are not inverted for a region.
MOST_FEATURES = 64
# Eigenvalues of Omega below this part of the largest are zero but for rounding errors.
RANK_TOLERANCE = 1e-9
# Variance of a direction of which nothing is known: a region contains the whole simplex along it.
UNKNOWN = 1e3
# Samples that are worked on at once.
CHUNK = 4096
# Prevalences that sum to one but for rounding errors.
ROUNDING = 1e-6


@dataclass(frozen=True, eq=False)
class Region:
    """Joint confidence regions of B distributions.

    Attributes
    ----------
    classes : ndarray (n,)
        Classes in ascending order.
    level : float
        Probability that a region contains the whole true distribution.
    centre : ndarray (B, n)
        Centres of the ellipsoids; they may lie outside the simplex.
    covariance : ndarray (B, n, n)
        Their shapes, singular along (1, ..., 1).
    radius2 : ndarray (B,)
        Largest squared distance (p - centre)' covariance^+ (p - centre) inside.
    prevalences, lower, upper : ndarray (B, n)
        Estimates, and the Bonferroni box: intervals of all classes that hold together at the level.
    """

    classes: Array
    level: float
    centre: Floats
    covariance: Floats
    radius2: Floats
    prevalences: Floats
    lower: Floats
    upper: Floats

    def __len__(self) -> int:
        return len(self.centre)

    def contains(self, p: Floats) -> Mask:
        """Return which regions, (B,), contain p (n,) or their row of p (B, n).

        Parameters
        ----------
        p : array-like (n,) or (B, n)
            Distributions.

        Returns
        -------
        ndarray of bool (B,)
            Whether each region contains its distribution.
        """
        p = np.asarray(p, dtype=np.float64)
        n = self.centre.shape[1]
        if p.shape not in ((n,), self.centre.shape):
            raise ValueError(f"p must have shape ({n},) or {self.centre.shape}, got {p.shape}.")
        if not ((p >= -ROUNDING).all() and np.allclose(p.sum(axis=-1), 1, atol=ROUNDING)):
            raise ValueError("p must be prevalences, which are not negative and sum to one.")
        return np.asarray(self.squared_distance(p) <= self.radius2)

    def squared_distance(self, p: Floats) -> Floats:
        """Return squared Mahalanobis distances (..., B) of p from the centres.

        Parameters
        ----------
        p : array-like (n,) or (B, n)
            Distributions.

        Returns
        -------
        ndarray (..., B)
            Squared distances.
        """
        size, axes = self.axes()
        along = np.einsum("...bi,bij->...bj", np.broadcast_to(p, np.broadcast_shapes(p.shape, self.centre.shape))
                          - self.centre, axes)  # fmt: skip
        return np.asarray((along**2 / size).sum(axis=-1))

    def axes(self) -> tuple[Floats, Floats]:
        """Return variances (B, n - 1) along the axes, and the axes (B, n, n - 1)."""
        U = directions(self.centre.shape[1])
        size, V = np.linalg.eigh(U.T @ self.covariance @ U)
        return np.maximum(size, np.finfo(float).tiny), U @ V

    def volume_ratio(self, n_draws: int = 20_000, random_state: int = 0) -> Floats:
        """Return the volume of each region over that of its Bonferroni box, (B,).

        Both are cut to the simplex.

        Volumes are found by drawing points: of the ellipsoid and of the box, or of the whole simplex if more of these
        are in both. NaN if no point is.

        Parameters
        ----------
        n_draws : int, default=20000
            Number of random points.
        random_state : int, default=0
            Random seed.

        Returns
        -------
        ndarray (B,)
            Ratios of volumes.
        """
        rng = check_random_state(random_state)
        n = self.centre.shape[1]
        k = n - 1
        size, axes = self.axes()
        ball = rng.normal(size=(n_draws, k))
        ball *= (rng.random(n_draws) ** (1 / k) / np.linalg.norm(ball, axis=1))[:, None]
        unit, everywhere = rng.random((n_draws, k)), rng.dirichlet(np.ones(n), n_draws)
        of_ball, of_simplex = k / 2 * np.log(np.pi) - gammaln(k / 2 + 1), np.log(n) / 2 - gammaln(n)
        ratio = np.empty(len(self))
        for b, (low, high) in enumerate(zip(self.lower, self.upper, strict=True)):
            half = np.sqrt(size[b] * self.radius2[b])
            near = (((everywhere - self.centre[b]) @ axes[b] / half) ** 2).sum(axis=1) <= 1
            own = (self.centre[b] + (ball * half) @ axes[b].T >= 0).all(axis=1)
            region = _larger((of_ball + np.log(half).sum(), own), (of_simplex, near))
            # All classes but the one with the widest interval, which is one minus their sum.
            width = high - low
            wide = width.argmax()
            others = np.delete(np.arange(n), wide)
            last = 1 - (low[others] + unit * width[others]).sum(axis=1)
            own = (low[wide] <= last) & (last <= high[wide])
            there = ((low <= everywhere) & (everywhere <= high)).all(axis=1)
            volume = np.log(np.maximum(width[others], np.finfo(float).tiny)).sum() + np.log(n) / 2
            ratio[b] = np.exp(region - _larger((volume, own), (of_simplex, there)))
        return ratio


def _larger(*proposals: tuple[float, Mask]) -> float:
    """Return the log volume of a set from draws in larger sets."""
    volume, hits = max(proposals, key=lambda one: int(one[1].sum()))
    return float(volume + np.log(hits.mean())) if hits.any() else np.nan


def directions(n: int) -> Floats:
    """Return orthonormal directions (n, n - 1) tangent to the simplex."""
    return np.asarray(np.linalg.svd(np.ones((1, n)))[2][1:].T)


def joint_region(
    classes: Array,
    P: Floats,
    covariance: Floats,
    bounds: Bounds,
    sizes: Floats,
    level: float,
    ellipsoids: Ellipsoids | None = None,
) -> Region:
    """Return regions around estimates P (B, n) of samples of N items (B,).

    `ellipsoids` takes their place in rows that are not NaN.
    """
    n = P.shape[1]
    z = ndtri((1 + bounds.level) / 2)
    sd = np.sqrt(np.maximum(np.einsum("bii->bi", covariance), 0))
    wide = np.maximum(sd, np.maximum(bounds.upper - P, P - bounds.lower) / z)
    scale = np.divide(wide, sd, where=sd > 0, out=np.zeros_like(sd))
    # A class without a covariance has an interval at most.
    S = covariance * scale[:, :, None] * scale[:, None, :] + np.where(sd > 0, 0, wide**2)[:, :, None] * np.eye(n)
    centre = P.copy()
    if ellipsoids is not None:
        known = np.isfinite(ellipsoids.centre).all(axis=1)
        centre[known], S[known] = ellipsoids.centre[known], ellipsoids.covariance[known]
    centred = np.eye(n) - 1 / n
    S = centred @ (S + (0.25 / sizes**2)[:, None, None] * np.eye(n)) @ centred
    wider = ndtri(1 - (1 - level) / (2 * n)) / z
    lower, upper = np.maximum(P - wider * (P - bounds.lower), 0), np.minimum(P + wider * (bounds.upper - P), 1)
    region = Region(classes, level, centre, S, np.full(len(P), chdtri(n - 1, 1 - level)), P, lower, upper)
    # A region holds its estimate.
    reach = np.maximum(region.radius2, region.squared_distance(P) * (1 + 1e-9))
    return Region(classes, level, centre, S, reach, P, lower, upper)


class _Moments(NamedTuple):
    """Class means M (d, n), covariances C (n, d, d), effective items (n,)."""

    M: Floats
    C: Floats
    counts: Floats


def ellipsoids_of_means(quantifier: FittedQuantifier, summary: Summary, P: Floats, estimand: str) -> Ellipsoids | None:
    """Return generalized least-squares solutions of q = M p, with covariances.

    None without M.

    P (B, n) are estimates, for the covariance of q - M p: Omega = sum_i (p_i / N + p_i^2 / n_i) C_i, with the group
    effect on the representation if it is known, and M (diag p - p p') M' / N more for a population.
    """
    traits = quantifier.traits
    if not has_held_out(quantifier) or traits.input_kind != "scores" or not traits.accepts_scores:
        return None
    V = quantifier.held_out_
    if traits.uses_sample_means:
        M = quantifier.response_matrix()
        if M is None or traits.counts_items or len(M) > MOST_FEATURES or summary.means.shape[1] != len(M):
            return None
        Q = summary.means
    else:
        # Methods on items keep their scores.
        S, samples = summary.scored()
        Q = samples.average(quantifier.group_features(S))
    moments = V.once(_class_moments, quantifier)
    found = []
    for start in range(0, len(P), CHUNK):
        rows = slice(start, start + CHUNK)
        found.append(_solved(moments, V.group_covariance, Q[rows], P[rows], summary.sizes[rows], estimand))
    return Ellipsoids(*(np.concatenate(part) for part in zip(*found, strict=True)))


def _class_moments(quantifier: FittedQuantifier) -> _Moments:
    V, n = quantifier.held_out_, len(quantifier.classes_)
    F = quantifier.group_features(V.S)
    share, counts = class_shares(V.codes, n, V.weights), effective_items(V.codes, n, V.weights)
    M = np.stack([share[V.codes == i] @ F[V.codes == i] for i in range(n)], axis=1)
    D = F - M.T[V.codes]
    C = np.stack([(D[V.codes == i].T * share[V.codes == i]) @ D[V.codes == i] for i in range(n)])
    return _Moments(M, C * (counts / np.maximum(counts - 1, 1))[:, None, None], counts)


def _solved(
    moments: _Moments, group_effect: Floats | None, Q: Floats, P: Floats, sizes: Floats, estimand: str
) -> Ellipsoids:
    M, C, counts = moments
    n, N = P.shape[1], sizes[:, None]
    # Half an item of each class: none is ruled out.
    inside = (N * P + 0.5) / (N + n / 2)
    Omega = np.einsum("bi,ijk->bjk", inside / N + inside**2 / counts, C, optimize=True)
    if estimand == "population":
        scatter = inside[:, :, None] * np.eye(n) - inside[:, :, None] * inside[:, None, :]
        Omega = Omega + M @ (scatter / N[:, :, None]) @ M.T
    if group_effect is not None:
        Omega = Omega + group_effect
    size, V = np.linalg.eigh(Omega)
    # Items whose scores do not vary have an Omega of rounding errors.
    floor = RANK_TOLERANCE * np.maximum(size[:, -1:], np.abs(M).max() ** 2 / N)
    root = np.sqrt(size, where=size > floor, out=np.full_like(size, np.inf))
    U = directions(n)
    X = np.einsum("bji,jk->bik", V, M @ U, optimize=True) / root[:, :, None]
    y = np.einsum("bji,bj->bi", V, Q - P @ M.T) / root
    # What nothing is known of has a variance, too: no matrix is singular.
    S = np.linalg.inv(X.transpose(0, 2, 1) @ X + np.eye(n - 1) / UNKNOWN)
    move = np.einsum("bij,bkj,bk->bi", S, X, y, optimize=True)
    return Ellipsoids(P + move @ U.T, U @ S @ U.T)
