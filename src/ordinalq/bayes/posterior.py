r"""Shares given the mean q of a function of the items, by generalized least squares and a prior.

    p = argmin over the simplex of 1/2 (q - M p)' Omega^-1 (q - M p) - ln prior(p)

with Omega the covariance of q - M p. Of a mixture of priors, each part counts by how well it foresaw q, its evidence
N(q; M m, Omega + M A M'), where m and A are mean and covariance of the part; the estimate is the mean over the parts.
The inverse of the second derivative at p is the covariance of the error; a mixture adds the one between its parts.
"""

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from ordinalq.bayes.priors import Prior
from ordinalq.simplex import clean
from ordinalq.solvers.interior import minimize_inside
from ordinalq.solvers.solution import Solution
from ordinalq.validation import Floats

# Added to correlations: a direction in which f does not vary at all stays solvable.
RIDGE = 1e-9
# A part of a prior with less weight does not count.
NEGLIGIBLE = 0.01


class Observed(NamedTuple):
    """What is seen of B samples: means Q (B, n), their matrices M (B, n, n) and covariances Omega (B, n, n).

    P0 (B, n) are the instruments, along which Omega has no variance and M p no slope.
    """

    Q: Floats
    M: Floats
    Omega: Floats
    P0: Floats


class Posterior(NamedTuple):
    """Shares of B samples, the mean over the parts of the prior that count.

    Attributes
    ----------
    solution : Solution
        The shares (B, n); the worst of the parts in what concerns convergence.
    weights : ndarray (B, c)
        Of the parts of the prior.
    rows, shares : ndarray (m,)
        Sample and weight of each of the m problems that were solved, one per sample and part that counts.
    parts : ndarray (m, n)
        Their minima.
    information : ndarray (m, n, n)
        Their second derivatives.
    """

    solution: Solution
    weights: Floats
    rows: npt.NDArray[np.intp]
    shares: Floats
    parts: Floats
    information: Floats

    def covariances(self) -> Floats:
        """Return the covariances of the errors, (B, n, n): inverse information along the simplex, and between parts."""
        inverse = np.linalg.inv(self.information)
        total = inverse.sum(axis=2)
        E = inverse - total[:, :, None] * total[:, None, :] / total.sum(axis=1)[:, None, None]
        apart = self.parts - self.solution.p[self.rows]
        E += apart[:, :, None] * apart[:, None, :]
        return np.asarray(np.add.reduceat(E * self.shares[:, None, None], _starts(self.rows)))


def posterior(seen: Observed, prior: Prior, sizes: Floats, start: Floats, *, of_populations: bool = False) -> Posterior:
    """Return the shares of samples of N items (B,), or of the populations they come from; near `start` (B, n)."""
    sizes = np.asarray(sizes, dtype=np.float64)
    known = None if of_populations else sizes
    G, g = whitened(seen)
    weights = evidence(G, g, prior, known)
    counted = np.where(weights > NEGLIGIBLE, weights, 0.0)
    rows, part = np.nonzero(counted)
    shares = (counted / counted.sum(axis=1, keepdims=True))[rows, part]
    k = np.broadcast_to(prior.exponents(known), (*weights.shape, G.shape[2]))[rows, part]
    A = np.matmul(G.transpose(0, 2, 1), G)[rows] + prior.curvatures()[part]
    b = np.matmul(g[:, None, :], G)[rows, 0]
    found = minimize_inside(A, b, k, start[rows], sizes[rows])
    starts, n = _starts(rows), A.shape[1]
    solution = Solution(
        np.add.reduceat(found.p * shares[:, None], starts),
        np.add.reduceat(found.value * shares, starts),
        np.maximum.reduceat(found.n_iter, starts),
        np.logical_and.reduceat(found.converged, starts),
        np.maximum.reduceat(found.kkt, starts),
    )
    A[:, np.arange(n), np.arange(n)] += k / found.p**2
    return Posterior(solution, weights, rows, shares, found.p, A)


def first_shares(Q: Floats, M: Floats, Omega: Floats, A: Floats) -> Floats:
    """Return m + A M' (M A M' + Omega)^-1 (q - M m), cut to the simplex: the linear prediction around a uniform m.

    Of means Q (B, n) with one M and one Omega (n, n), and shares of covariance A (n, n); a product of matrices.
    """
    AM = A @ M.T
    gain = AM @ np.linalg.pinv(M @ AM + Omega, rcond=RIDGE, hermitian=True)
    n = len(M)
    return clean((Q - M.mean(axis=1)) @ gain.T + 1 / n)


def _starts(rows: npt.NDArray[np.intp]) -> npt.NDArray[np.intp]:
    """Return where each of the sorted rows (m,) begins, (B,)."""
    return np.flatnonzero(np.diff(rows, prepend=-1))


def evidence(G: Floats, g: Floats, prior: Prior, sizes: Floats | None) -> Floats:
    """Return the weights of the parts of the prior given whitened means g (B, n) with matrices G (B, n, n), (B, c)."""
    parts = len(prior.parts)
    if parts == 1:
        return np.ones((len(g), 1))
    # Few sizes are different.
    kinds, which = (None, np.zeros(len(g), dtype=np.intp)) if sizes is None else np.unique(sizes, return_inverse=True)
    A = prior.covariances(kinds)
    found = np.empty((len(g), parts))
    for c in range(parts):
        X = np.matmul(np.matmul(G, A[which, c]), G.transpose(0, 2, 1)) + np.eye(G.shape[1])
        z = g - G @ prior.centres[c]
        L = np.linalg.cholesky(X)
        z = np.linalg.solve(L, z[:, :, None])[:, :, 0]
        found[:, c] = -(z * z).sum(axis=1) / 2 - np.log(np.einsum("bii->bi", L)).sum(axis=1)
    found += prior.log_weights
    found = np.exp(found - found.max(axis=1, keepdims=True))
    return np.asarray(found / found.sum(axis=1, keepdims=True))


def whitened(seen: Observed) -> tuple[Floats, Floats]:
    """Return L^-1 M (B, n, n) and L^-1 q (B, n), with L L' = Omega."""
    Q, M, Omega, P0 = seen
    n = Q.shape[1]
    variance = np.maximum(np.einsum("bii->bi", Omega), np.finfo(float).tiny)
    scale = np.sqrt(variance)
    # Residuals have no part along p0: a variance there makes Omega regular and changes nothing else.
    along = P0 * scale
    along /= np.linalg.norm(along, axis=1, keepdims=True)
    R = Omega / (scale[:, :, None] * scale[:, None, :])
    R += along[:, :, None] * along[:, None, :] + RIDGE * np.eye(n)
    right = np.concatenate([np.broadcast_to(M, (len(Q), n, n)), Q[:, :, None]], axis=2) / scale[:, :, None]
    both = np.linalg.solve(np.linalg.cholesky(R), right)
    return np.asarray(both[:, :, :-1]), np.asarray(both[:, :, -1])
