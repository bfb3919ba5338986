r"""Group effects learned from labelled groups, stated, or taken to be absent.

A, D and K are covariances of two *different* items of a group, and are measured without bias by means over such pairs.
The scores behind f must be held out by group, else D is far too small.

How they are made safe with few groups. In coordinates in which single items have unit covariance, orthonormal
polynomials x_1, ..., x_{n-1} of the class and W^{-1/2} r, write J for the joint covariance of pairs and G for the
effective number of groups. The learned J is

    J  <-  (G J + k J_0) / (G + k),   J_0 = a diag(c / 1, c / 4, ..., c / (n - 1)^2, 1/2, ..., 1/2),

with a template in which neighbouring classes move together, which counts like as many groups as J has dimensions k; a
is the intraclass correlation of the labels, c gives x its share of it. Eigenvalues of J below sqrt(2 / G) mean(1 / N),
the noise of a pair mean where there is no effect, are raised to it: that groups do not differ at all is never known.
"""

from dataclasses import replace
from typing import NamedTuple

import numpy as np

from ordinalq._utils.validation import Floats, check_real
from ordinalq.inference.condition import log_odds
from ordinalq.inference.group_model import RANK_TOLERANCE, GroupModel, multinomial
from ordinalq.inference.sums import GroupSums

# Intraclass correlation of one pseudo-group, for where hardly any groups are at hand.
PRIOR_CORRELATION = 0.03
# Group effect on the looks in the template, as a part of that on the shares.
LOOKS_PER_SHARE = 0.5
# Rounds that settle the weights of the groups, which depend on the intraclass correlation, and back.
ROUNDS = 5
# Groups of two items or more that a spread can be learned from.
FEWEST_GROUPS = 3
FIRST_K, LARGEST_K = 30.0, 1000.0


class PairMeans(NamedTuple):
    """Weighted means over pairs of different items of a group: A (n, n), D (d, d), K (n, d)."""

    A: Floats
    D: Floats
    K: Floats


def pair_means(sums: GroupSums, mu: Floats, shift: Floats, weights: Floats) -> PairMeans:
    """Means of (e_i - mu)(e_j - mu)', (r_i - shift)(r_j - shift)' and (e_i - mu)(r_j - shift)' over pairs i != j.

    Each group's mean over its N (N - 1) pairs counts with its weight (G,): the square of the group's sum, less the
    items' own squares. Groups of one item have no pairs, and no weight.
    """
    N, M = sums.n_items, sums.class_means
    sums = sums.in_items()
    c = np.where(N > 1, weights / np.maximum(N * (N - 1), 1), 0)
    X = sums.counts - N[:, None] * mu
    Y = sums.cross.sum(axis=1) - sums.counts @ M.T - N[:, None] * shift
    # Weighted sums of e, r, e e', e r', r r' over single items.
    e, n_items = c @ sums.counts, c @ N
    f, ef, ff = c @ sums.cross.sum(axis=1), np.tensordot(c, sums.cross, 1), np.tensordot(c, sums.squares, 1)
    r, ee = f - M @ e, np.diag(e)
    er = ef - ee @ M.T
    rr = ff - M @ ef - (M @ ef).T + M @ ee @ M.T

    def centred(second: Floats, left: Floats, right: Floats, at_left: Floats, at_right: Floats) -> Floats:
        outer = np.outer(left, at_right) + np.outer(at_left, right) - n_items * np.outer(at_left, at_right)
        return np.asarray(second - outer)

    A = (X * c[:, None]).T @ X - centred(ee, e, e, mu, mu)
    D = (Y * c[:, None]).T @ Y - centred(rr, r, r, shift, shift)
    K = (X * c[:, None]).T @ Y - centred(er, e, r, mu, shift)
    return PairMeans(A, D, K)


def learn(sums: GroupSums) -> GroupModel:
    """Learn the model from labelled groups; every class has items, and three groups have at least two.

    Groups count with w = N / (N + k) in the means, with w^2 (N - 1) / N in the pair means, where k = (1 - a) / a items
    tell as much of a group as the spread of the groups does.
    """
    check_classes(sums)
    N, weight = sums.n_items, sums.weight
    if (N > 1).sum() < FEWEST_GROUPS:
        raise ValueError(
            f"there must be at least {FEWEST_GROUPS} groups with two labelled items or more, got {(N > 1).sum()}: "
            "the spread of groups cannot be learned from fewer."
        )
    safe, M = np.maximum(N, 1), sums.class_means
    whole = np.where(N > 0, weight, 1)[:, None]
    shares = sums.counts / whole
    looks = (sums.cross.sum(axis=1) - sums.counts @ M.T) / whole
    k = FIRST_K
    for _ in range(ROUNDS):
        w = N / (N + k)
        # The pooled items are one more group: where all are small, their mean is known all the same.
        mu, shift = (w @ shares + sums.pooled) / (w.sum() + 1), w @ looks / (w.sum() + 1)
        v = w**2 * (N - 1) / safe * (N > 1)
        v = v / v.sum()
        pairs = pair_means(sums, mu, shift, v)
        a = float(np.clip(_cumulated_trace(pairs.A) / _cumulated_trace(multinomial(mu)), 0, 1))
        k = float(np.clip((1 - a) / max(a, 1 / LARGEST_K), 1, LARGEST_K))
    G = float(1 / (v @ v))
    W = np.tensordot(sums.pooled, sums.class_covariances, 1)
    floor = np.sqrt(2 / G) * float(v @ (1 / safe))
    A, D, K = _safe_effect(pairs, mu, W, (G * a + PRIOR_CORRELATION) / (G + 1), G, floor)
    D = D + error_of_means(sums, mu, A)
    model = GroupModel("learned", mu, M, shift, W, A, D, K, G, G + dimensions(W, len(mu)), a)
    centre, spread = weak_prior(sums.pooled)
    fallback = replace(model, source="weak", mu=centre, A=spread, K=np.zeros_like(K), dof=np.inf)
    model = replace(model, fallback=fallback)
    some = N > 0
    Q = sums.cross.sum(axis=1)[some] / weight[some, None]
    return replace(model, worst=float(log_odds(model, Q, N[some]).max()))


def weak(sums: GroupSums) -> GroupModel:
    """Return the model without group effect: a weak prior, and the error of M as the only one that items share."""
    check_classes(sums)
    mu, A = weak_prior(sums.pooled)
    d, n = sums.class_means.shape
    W, D = np.tensordot(mu, sums.class_covariances, 1), error_of_means(sums, mu, A)
    return GroupModel("weak", mu, sums.class_means, np.zeros(d), W, A, D, np.zeros((n, d)), correlation=1 / n)


def stated(sums: GroupSums, effect: float = 0.1) -> GroupModel:
    """Return the model with a stated group effect: intraclass correlation a, so that A = a B and D = a W / 2."""
    check_classes(sums)
    a = check_real("effect", effect, low=0, high=1, open_low=True)
    mu = sums.pooled
    d, n = sums.class_means.shape
    W = np.tensordot(mu, sums.class_covariances, 1)
    A, D, K = a * multinomial(mu), LOOKS_PER_SHARE * a * W, np.zeros((n, d))
    return GroupModel("stated", mu, sums.class_means, np.zeros(d), W, A, D, K, correlation=a)


def check_classes(sums: GroupSums) -> None:
    """Refuse sums in which a class has no item."""
    missing = np.flatnonzero(sums.counts.sum(axis=0) == 0)
    if len(missing):
        raise ValueError(
            f"every class needs a labelled item, but class {missing[0]} of {len(sums.counts[0])} has none."
        )


def dimensions(W: Floats, n_classes: int) -> int:
    """Number of dimensions k of J: shares, which sum to one, and directions in which f varies within a class."""
    size = np.linalg.eigvalsh(W)
    return n_classes - 1 + int((size > RANK_TOLERANCE * size[-1]).sum())


def weak_prior(pooled: Floats) -> tuple[Floats, Floats]:
    """Mean and covariance of the shares where nothing is known of groups.

    Those of a Dirichlet distribution that is worth n - 1 items, with a mean half way between the training shares and
    the uniform distribution: samples of any composition are possible, those like the training items a little more so.
    """
    n = len(pooled)
    mu = (pooled + 1 / n) / 2
    return mu, multinomial(mu) / n


def error_of_means(sums: GroupSums, mu: Floats, A: Floats) -> Floats:
    """Covariance of (M_hat - M) p, which the items of all groups share: sum_i E p_i^2 Cov(f | i) / n_i, (d, d)."""
    return np.asarray(np.tensordot((mu**2 + np.diag(A)) / sums.class_sizes, sums.class_covariances, 1))


def orthonormal_polynomials(mu: Floats) -> Floats:
    """Polynomials x (n, n - 1) of the class index, degree 1 to n - 1, with x' diag(mu) x = 1 and mu' x = 0.

    >>> orthonormal_polynomials(np.array([0.25, 0.5, 0.25])).round(3).tolist()
    [[-1.414, 1.0], [0.0, -1.0], [1.414, 1.0]]
    """
    n = len(mu)
    root = np.sqrt(mu)[:, None]
    Q, R = np.linalg.qr(root * np.polynomial.legendre.legvander(np.linspace(-1, 1, n), n - 1))
    return np.asarray((Q * np.sign(np.diag(R)) / root)[:, 1:])


def _safe_effect(pairs: PairMeans, mu: Floats, W: Floats, a: float, G: float, floor: float) -> PairMeans:
    """Shrink J to the template and raise its eigenvalues to the floor, where single items have unit covariance."""
    n = len(mu)
    B, x = multinomial(mu), orthonormal_polynomials(mu)
    Bx = B @ x
    size, U = np.linalg.eigh(W)
    kept = size > RANK_TOLERANCE * size[-1]
    Z, back = U[:, kept] / np.sqrt(size[kept]), U[:, kept] * np.sqrt(size[kept])
    xKZ = x.T @ pairs.K @ Z
    J = np.block([[x.T @ pairs.A @ x, xKZ], [xKZ.T, Z.T @ pairs.D @ Z]])
    decay = 1 / np.arange(1, n) ** 2
    c = _cumulated_trace(B) / _cumulated_trace((Bx * decay) @ Bx.T)
    template = a * np.r_[c * decay, np.full(Z.shape[1], LOOKS_PER_SHARE)]
    J = (G * J + len(J) * np.diag(template)) / (G + len(J))
    value, V = np.linalg.eigh(J)
    J = (V * np.maximum(value, floor)) @ V.T
    return PairMeans(
        Bx @ J[: n - 1, : n - 1] @ Bx.T, back @ J[n - 1 :, n - 1 :] @ back.T, Bx @ J[: n - 1, n - 1 :] @ back.T
    )


def _cumulated_trace(C: Floats) -> float:
    """Sum of the variances of the cumulated shares, for shares with covariance C (n, n)."""
    return float(np.trace(np.cumsum(np.cumsum(C, axis=0), axis=1)[:-1, :-1]))
