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

from ordinalq._utils.validation import Floats
from ordinalq.inference.group_model import RANK_TOLERANCE, GroupModel

# Tails of the groups are no heavier than those of a Student distribution with this many degrees of freedom.
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


class Surprise(NamedTuple):
    """How far q is from what a model expects.

    coordinates (B, r) of z and their variances (B, r) in the directions of C_qq, and log |C_qq| (B,).
    """

    coordinates: Floats
    variances: Floats
    logdet: Floats

    @classmethod
    def of(cls, model: GroupModel, filt: Filter, Q: Floats, sizes: Floats) -> "Surprise":
        """Compare mean representations Q (B, d) of groups of given sizes (B,) with a model."""
        inverse = (1 / np.asarray(sizes, dtype=np.float64))[:, None]
        variances = filt.lam * (1 - inverse) + inverse
        t = (Q - model.M @ model.mu - model.shift) @ filt.V
        return cls(t, variances, np.log(variances).sum(axis=1) + filt.logdet)

    @property
    def distance(self) -> Floats:
        """d^2 = z' C_qq^{-1} z, (B,)."""
        return np.asarray((self.coordinates**2 / self.variances).sum(axis=1))

    def log_student(self, nu: float) -> Floats:
        """Log density of q with heavy tails, but for a constant that all models share, (B,)."""
        rank = self.variances.shape[1]
        constant = gammaln((nu + rank) / 2) - gammaln(nu / 2) - rank / 2 * np.log(nu)
        return np.asarray(constant - self.logdet / 2 - (nu + rank) / 2 * np.log1p(self.distance / nu))


class Gaussian(NamedTuple):
    """Shares given q before any projection: mean (B, n), covariance (B, n, n); distance (B,) and rank of q."""

    mean: Floats
    covariance: Floats
    distance: Floats
    rank: int


def condition(model: GroupModel, Q: Floats, sizes: Floats, of: str) -> Gaussian:
    """Return the distribution of the shares given mean representations Q (B, d) of groups of given sizes (B,)."""
    filt = Filter.of(model)
    seen = Surprise.of(model, filt, Q, sizes)
    inverse = (1 / np.asarray(sizes, dtype=np.float64))[:, None, None]
    if of == "sample":
        gain = (1 - inverse) * filt.between + inverse * filt.within
        prior = (1 - inverse) * model.A + inverse * model.B
    else:
        gain, prior = np.broadcast_to(filt.between, (len(Q), *filt.between.shape)), model.A
    mean = model.mu + np.matmul(gain, (seen.coordinates / seen.variances)[:, :, None])[:, :, 0]
    E = prior - np.matmul(gain / seen.variances[:, None, :], gain.transpose(0, 2, 1))
    return Gaussian(mean, E, seen.distance, filt.rank)


def log_odds(model: GroupModel, Q: Floats, sizes: Floats) -> Floats:
    """Log odds that q comes from groups with the weak prior of the shares, against the learned one, (B,).

    Student densities with as many degrees of freedom as there are groups beyond the directions of q: group effects have
    heavy tails, and those of few groups are hardly known.
    """
    if model.fallback is None:
        return np.full(len(Q), -np.inf)
    filt = Filter.of(model)
    nu = max(model.n_groups - filt.rank + 1, LEAST_DOF)
    other = Surprise.of(model.fallback, Filter.of(model.fallback), Q, sizes)
    return other.log_student(nu) - Surprise.of(model, filt, Q, sizes).log_student(nu)
