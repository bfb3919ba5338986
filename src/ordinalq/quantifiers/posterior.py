r"""Shares given the mean q of a function of the items, by generalized least squares and a prior.

The shares of the population that a sample of N items comes from are

    p = argmin over the simplex of 1/2 (q - M p)' Omega^-1 (q - M p) - ln prior(p),    Omega = Cov(q - M p_N) + M J M',

where p_N are the shares of the sample, which vary around p with the covariance J = (diag p - p p') / N. Those of the
sample itself follow from what is left: p_N = p + J M' Omega^-1 (q - M p).

In a mixture of priors, each part counts by how well it foresaw q, its evidence N(q; M m, Omega + M A M'), where m and A
are mean and covariance of the part; the estimate is the mean over the parts. The inverse of the second derivative at p
is the covariance of the error; a mixture adds the one between its parts.
"""

from typing import NamedTuple

import numpy as np

from ordinalq._utils.validation import Floats, Index
from ordinalq.inference.group_model import multinomial
from ordinalq.quantifiers.priors import Prior
from ordinalq.simplex import clean
from ordinalq.solvers.barrier import minimize_inside, whiten
from ordinalq.solvers.solution import Solution

# Added to correlations: a direction in which f does not vary at all stays solvable.
POSTERIOR_RIDGE = 1e-9
# Part of an item that is seen at best.
LEAST_SEEN = 1e-3
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

    m problems were solved, one per sample and part that counts. For the shares of the sample itself, `of_sample` has
    the covariance J of its deviation from the population, and J H (B, n, n), what q tells of it; else it is None.
    """

    solution: Solution  # shares (B, n); the worst of the parts in what concerns convergence
    weights: Floats  # (B, c) weights of the parts of the prior
    rows: Index  # (m,) sample of each problem
    shares: Floats  # (m,) and its weight
    parts: Floats  # (m, n) minima
    information: Floats  # (m, n, n) second derivatives
    of_sample: tuple[Floats, Floats] | None

    def covariances(self) -> Floats:
        """Return the covariances of the errors, (B, n, n): inverse information along the simplex, and between parts."""
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
        """Return by how much the shares move where errors pull at those of the population by X (B, n, k)."""
        by_part = np.matmul(self._along(), X[self.rows])
        change = np.add.reduceat(by_part * self.shares[:, None, None], _starts(self.rows))
        if self.of_sample is None:
            return np.asarray(change)
        J, JH = self.of_sample
        return np.asarray(change - np.matmul(JH, change) + np.matmul(J, X))


def posterior(seen: Observed, prior: Prior, sizes: Floats, start: Floats, *, of: str = "sample") -> Posterior:
    """Return the shares of samples of N items (B,), or of the populations they come from; near `start` (B, n)."""
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
    A[:, np.arange(n), np.arange(n)] += k / P**2
    of_sample = None
    if of == "sample":
        # What q says of the deviation of the sample from its population.
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
    return Posterior(solution, weights, rows, shares, P, A, of_sample)


def _of_population(seen: Observed, J: Floats) -> Observed:
    """Return what is seen with the covariance of q - M p, for shares of samples that vary around p by J (B, n, n)."""
    M = np.broadcast_to(seen.M, J.shape)
    return seen._replace(Omega=seen.Omega + np.matmul(np.matmul(M, J), M.transpose(0, 2, 1)))


def pull(seen: Observed, sizes: Floats, P: Floats, D: Floats) -> Floats:
    """Return M' Omega^-1 D (B, n, k): how errors D (B, n, k) of q pull at the shares, which are about P (B, n)."""
    n = P.shape[1]
    scale, R = _correlations(_of_population(seen, multinomial(P) / sizes[:, None, None]), sizes)
    both, _ = whiten(R, np.concatenate([seen.M, D], axis=2) / scale[:, :, None])
    return np.asarray(np.matmul(both[:, :, :n].transpose(0, 2, 1), both[:, :, n:]))


def first_shares(Q: Floats, M: Floats, Omega: Floats, A: Floats) -> Floats:
    """Return m + A M' (M A M' + Omega)^-1 (q - M m), cut to the simplex: the linear prediction around a uniform m.

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
    """Return the weights of the parts of the prior given whitened means g (B, n) with matrices G (B, n, n), (B, c)."""
    found = np.tile(prior.log_weights, (len(g), 1))
    if found.shape[1] == 1:
        return np.ones_like(found)
    for c, (A, centre) in enumerate(zip(prior.covariances(), prior.centres, strict=True)):
        K = np.matmul(np.tensordot(G, A, 1), G.transpose(0, 2, 1)) + np.eye(len(A))
        z, root = whiten(K, (g - G @ centre)[:, :, None])
        found[:, c] -= (z[:, :, 0] ** 2).sum(axis=1) / 2 + np.log(root).sum(axis=1)
    found = np.exp(found - found.max(axis=1, keepdims=True))
    return np.asarray(found / found.sum(axis=1, keepdims=True))


def whitened(seen: Observed, sizes: Floats) -> tuple[Floats, Floats]:
    """Return L^-1 M (B, n, n) and L^-1 q (B, n), with L L' = Omega, for samples of N items (B,)."""
    scale, R = _correlations(seen, sizes)
    right = np.concatenate([np.broadcast_to(seen.M, R.shape), seen.Q[:, :, None]], axis=2) / scale[:, :, None]
    both = np.ascontiguousarray(whiten(R, right)[0])
    return both[:, :, :-1], both[:, :, -1]


def _correlations(seen: Observed, sizes: Floats) -> tuple[Floats, Floats]:
    """Return scales (B, n) and the covariances (B, n, n) in these, regular, for samples of N items (B,)."""
    Q, M, Omega, P0 = seen
    n = Q.shape[1]
    # Nobody asks for less than a thousandth of an item, and where f does not vary there is nothing to see.
    least = LEAST_SEEN / sizes[:, None] * np.abs(M).max(axis=2)
    scale = np.sqrt(np.einsum("bii->bi", Omega) + least**2)
    # Residuals have no part along p0: a variance there makes Omega regular and changes nothing else.
    along = P0 * scale
    along /= np.linalg.norm(along, axis=1, keepdims=True)
    R = Omega / (scale[:, :, None] * scale[:, None, :])
    R[:, np.arange(n), np.arange(n)] = 1.0
    R += along[:, :, None] * along[:, None, :] + POSTERIOR_RIDGE * np.eye(n)
    return scale, R
