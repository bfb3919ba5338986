r"""Shares of a group given the mean representation of its items, under a Gaussian model.

With the covariances of `model`, z = q - M mu - shift and H = (M, 1), mean and covariance of p given q are

    p_hat = mu + C_pq C_qq^{-1} z,    E = C_pp - C_pq C_qq^{-1} C_pq',

where C_qq = P (1 - 1/N) + S / N with P = H J H' of two items and S = M B M' + W of one. The generalized eigenvectors
P v = lam S v diagonalize C_qq for every N at once, so that thousands of groups of any sizes cost a few products. For
the shares of the sample C_pp = A (1 - 1/N) + B / N; for those of the population C_pp = A.
"""

from typing import NamedTuple

import numpy as np
from scipy.special import gammaln

from ordinalq.effects.model import RANK_TOLERANCE, GroupModel
from ordinalq.validation import Floats

# Tails of the groups are no heavier than those of a Student distribution with so many degrees of freedom.
LEAST_DOF = 3.0


class Filter(NamedTuple):
    """C_qq of all N at once: V' C_qq V = lam (1 - 1/N) + 1/N, for one model.

    V (d, r) are eigenvectors, lam (r,) eigenvalues, between (n, r) = C_pq V for two items and within (n, r) for one,
    logdet that of S.
    """

    V: Floats
    lam: Floats
    between: Floats
    within: Floats
    logdet: float

    @property
    def rank(self) -> int:
        """Number of directions r of q."""
        return len(self.lam)

    @classmethod
    def of(cls, model: GroupModel) -> "Filter":
        """Diagonalize the covariances of q."""
        M, B = model.M, model.B
        MK = M @ model.K
        P = M @ model.A @ M.T + MK + MK.T + model.D
        size, U = np.linalg.eigh(M @ B @ M.T + model.W)
        kept = size > RANK_TOLERANCE * size[-1]
        T = U[:, kept] / np.sqrt(size[kept])
        lam, Y = np.linalg.eigh(T.T @ P @ T)
        V = T @ Y
        between = (model.A @ M.T + model.K) @ V
        return cls(V, np.maximum(lam, 0), between, B @ M.T @ V, float(np.log(size[kept]).sum()))


class Gaussian(NamedTuple):
    """Shares given q before any projection: mean (B, n), covariance (B, n, n).

    Of q itself: the distance z' C_qq^{-1} z (B,), log |C_qq| (B,) and its rank.
    """

    mean: Floats
    covariance: Floats
    distance: Floats
    logdet: Floats
    rank: int


def condition(model: GroupModel, Q: Floats, sizes: Floats, of: str) -> Gaussian:
    """Return the distribution of the shares given mean representations Q (B, d) of groups of given sizes (B,)."""
    filt = Filter.of(model)
    inverse = (1 / np.asarray(sizes, dtype=np.float64))[:, None]
    t = (Q - model.M @ model.mu - model.shift) @ filt.V
    variance = filt.lam * (1 - inverse) + inverse
    if of == "sample":
        gain = (1 - inverse)[:, :, None] * filt.between + inverse[:, :, None] * filt.within
        prior = (1 - inverse)[:, :, None] * model.A + inverse[:, :, None] * model.B
    else:
        gain, prior = np.broadcast_to(filt.between, (len(Q), *filt.between.shape)), model.A
    mean = model.mu + np.matmul(gain, (t / variance)[:, :, None])[:, :, 0]
    E = prior - np.matmul(gain / variance[:, None, :], gain.transpose(0, 2, 1))
    return Gaussian(mean, E, (t**2 / variance).sum(axis=1), np.log(variance).sum(axis=1) + filt.logdet, filt.rank)


def log_odds(model: GroupModel, Q: Floats, sizes: Floats, of: str = "sample") -> Floats:
    """Log odds that q comes from groups with the weak prior of the shares, against the learned one, (B,).

    Student densities with as many degrees of freedom as there are groups beyond the directions of q: group effects have
    heavy tails, and those of few groups are hardly known.
    """
    if model.fallback is None:
        return np.full(len(Q), -np.inf)
    nu = max(model.n_groups - Filter.of(model).rank + 1, LEAST_DOF)
    learned, other = condition(model, Q, sizes, of), condition(model.fallback, Q, sizes, of)
    return _log_student(other, nu) - _log_student(learned, nu)


def _log_student(got: Gaussian, nu: float) -> Floats:
    """Log density of q, but for a constant that all models share."""
    constant = gammaln((nu + got.rank) / 2) - gammaln(nu / 2) - got.rank / 2 * np.log(nu)
    return np.asarray(constant - got.logdet / 2 - (nu + got.rank) / 2 * np.log1p(got.distance / nu))
