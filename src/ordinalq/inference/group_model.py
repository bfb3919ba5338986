"""Group effects: learned from labelled groups, used to predict prevalences.

Group g has N items with one-hot classes e (n,) and representations f (d,). With class means M and r = f - M e,

    p_g = mean e,   rbar_g = mean r - shift,   q_g = mean f = M p_g + shift + rbar_g,
    Cov(p_g)         = A (1 - 1/N) + B / N,    B = diag(mu) - mu mu'   (shares between groups; between items)
    Cov(rbar_g)      = D (1 - 1/N) + W / N,                            (looks between groups; within a class)
    Cov(p_g, rbar_g) = K (1 - 1/N).

Prior probability shift is D = 0 and K = 0.
"""

from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
from scipy.special import betaincinv, gammaincinv, gammaln, logit, ndtri, stdtrit

from ordinalq._utils.validation import Codes, Floats, Mask, check_choice, check_real
from ordinalq.inference.bounds import Bounds, item_steps, statistics
from ordinalq.inference.options import ESTIMANDS
from ordinalq.samples.weights import Weights, item_counts
from ordinalq.solvers.quadratic import simplex_qp

# Covariance of the effect of a part, over that of the effect of a group, if it is not learned.
PARTS = 0.5
# Directions of f with a variance below this part of the largest are rounding errors (posteriors sum to one).
RANK_TOLERANCE = 1e-8


@dataclass(frozen=True, eq=False)
class GroupModel:
    """Means and covariances of groups; arrays and numbers only.

    The effect is "learned" from labelled groups, "stated" by the user, or taken to be absent, "weak".
    """

    source: str
    mu: Floats  # (n,) mean shares of a group
    M: Floats  # (d, n) class means of f
    shift: Floats  # (d,) mean of rbar_g over groups
    W: Floats  # (d, d) covariance of f within a class
    A: Floats  # (n, n) covariance of the shares between groups
    D: Floats  # (d, d) that of the looks
    K: Floats  # (n, d) that of both
    n_groups: float = 0.0  # effective number G of labelled groups; 0 where none were used
    dof: float = np.inf  # degrees of freedom of J: G and the template's; inf where nothing was learned
    correlation: float = 0.0  # intraclass correlation a of the labels
    worst: float = 0.0  # largest log odds of a training group for another population, see `condition.log_odds`
    fallback: "GroupModel | None" = None  # without the learned prior of the shares, for groups that it makes incredible
    rarity: Floats | None = None  # (n,) of each class, near 1 if it has few labelled items; None: all have many
    n_items: float = np.inf  # effective number of labelled items in these groups
    common: Floats | None = None  # (n + d, k) root of the covariance of an error of (mu, shift) that all groups share
    of_parts: Floats | None = None  # (n + d, n + d) J of parts of groups around their group; None: not learned

    @property
    def n_classes(self) -> int:
        """Number of classes n."""
        return len(self.mu)

    @property
    def B(self) -> Floats:
        """Covariance of the one-hot class of a single item, diag(mu) - mu mu'."""
        return multinomial(self.mu)

    @property
    def effect(self) -> Floats:
        """J: covariance of (e, r) of two items of a group, (n + d, n + d)."""
        return np.block([[self.A, self.K], [self.K.T, self.D]])

    @property
    def part_effect(self) -> Floats:
        """J_w (n + d, n + d): covariance of the effect of a part of a group."""
        return PARTS * self.effect if self.of_parts is None else self.of_parts


def multinomial(p: Floats) -> Floats:
    """Return diag(p) - p p', (..., n, n), the covariance of a one-hot class."""
    p = np.asarray(p)
    return np.asarray(p[..., :, None] * np.eye(p.shape[-1]) - p[..., :, None] * p[..., None, :])


class TrainingRows(NamedTuple):
    """Labelled training items of B groups.

    They are a part of the group with a separate effect, w, and show its prevalences with the noise B / m. Their
    features do not count: the classifier has seen these items, but was not to see those behind the model of groups.

    Attributes
    ----------
    counts : ndarray (B, n)
        Items of each class; zero for groups without training items.
    mu : ndarray (n,)
        Mean prevalences of the training groups.
    B : ndarray (n, n)
        Covariance of the one-hot class of an item.
    """

    counts: Floats
    mu: Floats
    B: Floats

    def take(self, rows: Any) -> "TrainingRows":
        """Return the items of some groups."""
        return self._replace(counts=self.counts[rows])

    @property
    def known(self) -> Mask:
        """Whether a group has any, (B,)."""
        return np.asarray(self.counts.sum(axis=1) > 0)

    def condition(self, cross: Floats, total: Floats) -> tuple[Floats, Floats]:
        """Return mean (B, k) and decrease of covariance (B, k, k) given these items.

        `cross` (k, n - 1) is its covariance with the cumulative prevalences behind the training items, `total`
        (n - 1, n - 1) the covariance of the latter.
        """
        m, L = self.counts.sum(axis=1), np.tri(len(self.mu))[:-1]
        some = np.maximum(m, np.finfo(float).tiny)[:, None]
        V = total + (L @ self.B @ L.T) / np.where(m > 0, m, 1)[:, None, None]
        gain = np.matmul(cross, np.linalg.inv(V)) * self.known[:, None, None]
        seen = (self.counts / some - self.mu) @ L.T
        return np.matmul(gain, seen[:, :, None])[:, :, 0], np.matmul(gain, cross.T)


# Sums of labelled items, group by group: all that a model of the groups is made from.
#
# An item has a class, as a one-hot vector e (n,), and a representation f (d,). Sums over the items of a group can be
# merged, whichever items came first, and hold neither keys nor single items. Where items have weights all sums are
# weighted.


@dataclass(frozen=True, eq=False)
class GroupSums:
    """Sums over the labelled items of G groups."""

    counts: Floats  # (G, n) sum e: items of each class
    cross: Floats  # (G, n, d) sum e f': sums of f by class
    squares: Floats  # (G, d, d) sum f f'
    class_squares: Floats  # (n, d, d) sum f f' by class, over all groups
    squared: Floats | None = None  # (G, n) sum w^2 e; None if equal to `counts`, as without weights

    @classmethod
    def of(cls, F: Floats, codes: Codes, groups: Codes, n_classes: int, weights: Weights | None = None) -> "GroupSums":
        """Add up items with representations F (N, d), class and group codes, weights."""
        F = np.asarray(F, dtype=np.float64)
        G, d = int(groups.max()) + 1, F.shape[1]
        cell = groups * n_classes + codes
        counts = item_counts(cell, G * n_classes, weights).reshape(G, n_classes)
        weighted, squared = F, None
        if weights is not None:
            weighted = F * weights.values[:, None]
            squared = item_counts(cell, G * n_classes, Weights(weights.squares)).reshape(G, n_classes)
        cross = _add_rows(weighted, cell, G * n_classes).reshape(G, n_classes, d)
        squares, class_squares = np.empty((G, d, d)), np.empty((n_classes, d, d))
        # Column by column, so that no array is larger than F.
        for j in range(d):
            product = weighted * F[:, j : j + 1]
            squares[:, j] = _add_rows(product, groups, G)
            class_squares[:, j] = _add_rows(product, codes, n_classes)
        return cls(counts, cross, squares, class_squares, squared)

    @property
    def weight(self) -> Floats:
        """Sum of the weights of each group, (G,): its number of items without."""
        return np.asarray(self.counts.sum(axis=1))

    @property
    def n_items(self) -> Floats:
        """Number of items that each group is worth, (G,)."""
        return _effective_items(self.counts, self.squared, axis=1)

    @property
    def class_sizes(self) -> Floats:
        """Number of items that each class is worth, (n,)."""
        return _effective_items(self.counts, self.squared, axis=0)

    def in_items(self) -> "GroupSums":
        """Return sums with weights that add up to the effective sample size of groups.

        Then sums over pairs of items are the square of a group's sum less its items' own squares, as without weights,
        where weights do not depend on what is added up.
        """
        if self.squared is None:
            return self
        scale = self.n_items / np.maximum(self.weight, np.finfo(float).tiny)
        counts, cross, squares = (
            part * scale.reshape(-1, *(1,) * (part.ndim - 1)) for part in (self.counts, self.cross, self.squares)
        )
        return replace(self, counts=counts, cross=cross, squares=squares)

    @property
    def class_means(self) -> Floats:
        """M (d, n): mean representation of each class, over the items of all groups."""
        return np.asarray((self.cross.sum(axis=0) / self.counts.sum(axis=0)[:, None]).T)

    @property
    def class_covariances(self) -> Floats:
        """Covariance of f within each class, over the items of all groups, (n, d, d)."""
        M = self.class_means
        means = self.class_squares / self.counts.sum(axis=0)[:, None, None]
        return np.asarray(means - M.T[:, :, None] * M.T[:, None, :])

    @property
    def pooled(self) -> Floats:
        """Class shares of all items, (n,)."""
        return np.asarray(self.counts.sum(axis=0) / self.counts.sum())


def _effective_items(total: Floats, squared: Floats | None, axis: int) -> Floats:
    """Return (sum w)^2 / sum w^2 along an axis, zero if there is nothing."""
    weight = total.sum(axis=axis)
    if squared is None:
        return np.asarray(weight)
    square = squared.sum(axis=axis)
    return np.asarray(np.divide(weight**2, square, out=np.zeros_like(weight), where=square > 0))


def _add_rows(F: Floats, codes: Codes, n_codes: int) -> Floats:
    """Return the sums of the rows of F (N, d) that have the same code, (n_codes, d)."""
    total = np.empty((n_codes, F.shape[1]))
    for j, column in enumerate(F.T):
        total[:, j] = np.bincount(codes, weights=column, minlength=n_codes)
    return total


# Representations of scored items for group models.


# Cumulated posteriors nearer to 0 or 1 tell nothing more of a class, and their logits would be mostly noise.
CLIP = 0.02
# Groups per coordinate of f, and labelled items without groups, from which on logits are used.
GROUPS_PER_COORDINATE = 3
ITEMS_PER_COORDINATE = 500


def with_logits(S: Floats) -> Floats:
    """Return posteriors S (N, n) and logits of cumulated ones, (N, 2n - 1).

    Cumulated posteriors are cut to [0.02, 0.98].
    """
    S = np.asarray(S, dtype=np.float64)
    n = S.shape[1]
    # In place: a million items of ten classes take 150 megabytes once.
    F = np.empty((len(S), 2 * n - 1))
    F[:, :n] = S
    cumulated = np.cumsum(S[:, :-1], axis=1, out=F[:, n:])
    logit(np.clip(cumulated, CLIP, 1 - CLIP, out=cumulated), out=cumulated)
    return F


def uses_logits(n_classes: int, n_items: float, n_groups: float | None = None) -> bool:
    """Return whether the labelled items suffice for 2n - 1 coordinates."""
    d = 2 * n_classes - 1
    return n_items >= ITEMS_PER_COORDINATE * d if n_groups is None else n_groups >= GROUPS_PER_COORDINATE * d


# Shares of a group given the mean representation of its items, under a Gaussian model.
#
# With the covariances of `model`, z = q - M mu - shift and H = (M, 1), mean and covariance of p given q are
#
#     p_hat = mu + C_pq C_qq^{-1} z,    E = C_pp - C_pq C_qq^{-1} C_pq',
#
# where C_qq = P (1 - 1/N) + S / N with P = H J H' of two items and S = M B M' + W of one. The generalized eigenvectors
# P v = lam S v diagonalize C_qq for every N at once, so that thousands of groups of any sizes cost a few products. For
# the shares of the sample C_pp = A (1 - 1/N) + B / N; for those of the population C_pp = A.


# Tails of the groups are not heavier than those of a Student distribution with this many degrees of freedom.
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


class State(NamedTuple):
    """Coordinates of theta = (prevalences, group effect) in which J is regular.

    These are the n - 1 cumulative prevalences and r directions of f in which single items have unit variance.
    """

    Z: Floats  # (d, r) to the directions of f
    looks: Floats  # (d, r) back from them
    back: Floats  # (n, n - 1) p = back alpha + (0, ..., 0, 1)
    to_theta: Floats  # (k, n + d) from (p, looks)
    theta: Floats  # (k,) theta_0
    J: Floats  # (k, k)
    H: Floats  # (r, k) mean of f, from theta

    @classmethod
    def of(cls, model: GroupModel) -> "State":
        """Return the coordinates of a model."""
        n, M = model.n_classes, model.M
        size, vectors = np.linalg.eigh(M @ model.B @ M.T + model.W)
        kept = size > RANK_TOLERANCE * size[-1]
        Z, looks = vectors[:, kept] / np.sqrt(size[kept]), vectors[:, kept] * np.sqrt(size[kept])
        back = np.diff(np.vstack([np.zeros(n - 1), np.eye(n - 1), np.zeros(n - 1)]), axis=0)
        L = np.tril(np.ones((n, n)))[:-1]
        to_theta = np.block([[L, np.zeros((n - 1, len(M)))], [np.zeros((Z.shape[1], n)), Z.T]])
        H = np.hstack([Z.T @ M @ back, np.eye(Z.shape[1])])
        J = to_theta @ model.effect @ to_theta.T
        return cls(Z, looks, back, to_theta, to_theta @ np.r_[model.mu, model.shift], J, H)

    @property
    def to_full(self) -> Floats:
        """Differences of theta as differences of (p, looks), (n + d, k)."""
        (n, m), (d, r) = self.back.shape, self.looks.shape
        return np.block([[self.back, np.zeros((n, r))], [np.zeros((d, m)), self.looks]])


class ModelDistance(NamedTuple):
    """Distance of q from the value expected by a model.

    coordinates (B, r) of z and their variances (B, r) in the directions of C_qq, and log |C_qq| (B,).
    """

    coordinates: Floats
    variances: Floats
    logdet: Floats

    @classmethod
    def of(cls, model: GroupModel, filt: Filter, Q: Floats, sizes: Floats) -> "ModelDistance":
        """Compare means Q (B, d) of groups of given sizes (B,) with a model."""
        inverse = (1 / np.asarray(sizes, dtype=np.float64))[:, None]
        variances = filt.lam * (1 - inverse) + inverse
        t = (Q - model.M @ model.mu - model.shift) @ filt.V
        return cls(t, variances, np.log(variances).sum(axis=1) + filt.logdet)

    @property
    def distance(self) -> Floats:
        """d^2 = z' C_qq^{-1} z, (B,)."""
        return np.asarray((self.coordinates**2 / self.variances).sum(axis=1))

    def log_student(self, nu: float) -> Floats:
        """Return the log density of q with heavy tails, up to a constant, (B,)."""
        rank = self.variances.shape[1]
        constant = gammaln((nu + rank) / 2) - gammaln(nu / 2) - rank / 2 * np.log(nu)
        return np.asarray(constant - self.logdet / 2 - (nu + rank) / 2 * np.log1p(self.distance / nu))


class Gaussian(NamedTuple):
    """Prevalences given q before projection: mean (B, n), covariance (B, n, n).

    Also distance (B,) and rank of q.

    The factor `shared` (B, n, k) is the effect of the error of theta_0 that all groups share, a further error.
    """

    mean: Floats
    covariance: Floats
    distance: Floats
    rank: int
    shared: Floats | None = None


def condition(model: GroupModel, Q: Floats, sizes: Floats, estimand: str) -> Gaussian:
    """Return the distribution of prevalences given Q (B, d) and sizes (B,)."""
    filt = Filter.of(model)
    seen = ModelDistance.of(model, filt, Q, sizes)
    inverse = (1 / np.asarray(sizes, dtype=np.float64))[:, None, None]
    if estimand == "sample":
        cross = (1 - inverse) * filt.between + inverse * filt.within
        prior = (1 - inverse) * model.A + inverse * model.B
    else:
        cross, prior = np.broadcast_to(filt.between, (len(Q), *filt.between.shape)), model.A
    gain = cross / seen.variances[:, None, :]
    mean = model.mu + np.matmul(gain, seen.coordinates[:, :, None])[:, :, 0]
    E = prior - np.matmul(gain, cross.transpose(0, 2, 1))
    shared = None
    if model.common is not None:
        of_p, of_f = np.split(model.common, [model.n_classes])
        shared = of_p - np.matmul(gain, filt.V.T @ (model.M @ of_p + of_f))
    return Gaussian(mean, E, seen.distance, filt.rank, shared)


def product(shared: Floats) -> Floats:
    """Return L L' of factors L (B, n, k), (B, n, n)."""
    return np.asarray(np.matmul(shared, shared.transpose(0, 2, 1)))


def tail_dof(model: GroupModel, rank: int) -> float:
    """Return degrees of freedom of the tails of groups, at least three."""
    return max(model.n_groups - rank + 1, LEAST_DOF)


def log_odds(model: GroupModel, Q: Floats, sizes: Floats) -> Floats:
    """Return log odds of the weak prior of prevalences against the learned one, (B,).

    Student densities with the degrees of freedom of `tail_dof`: group effects have heavy tails, and those of few groups
    are hardly known.
    """
    if model.fallback is None:
        return np.full(len(Q), -np.inf)
    filt = Filter.of(model)
    nu = tail_dof(model, filt.rank)
    other = ModelDistance.of(model.fallback, Filter.of(model.fallback), Q, sizes)
    return other.log_student(nu) - ModelDistance.of(model, filt, Q, sizes).log_student(nu)


# Group effects learned from labelled groups, stated, or taken to be absent.
#
# A, D and K are covariances of two *different* items of a group, and are measured without bias by means over such
# pairs. The scores behind f must be held out by group, else D is far too small.
#
# How they are made safe with few groups. In coordinates in which single items have unit covariance, orthonormal
# polynomials x_1, ..., x_{n-1} of the class and W^{-1/2} r, write J for the joint covariance of pairs and G for the
# effective number of groups. The learned J is
#
#     J  <-  (G J + k J_0) / (G + k),   J_0 = a diag(c / 1, c / 4, ..., c / (n - 1)^2, 1/2, ..., 1/2),
#
# with a template in which neighbouring classes move together, which counts like as many groups as J has dimensions k;
# a is the intraclass correlation of the labels, c gives x its share of it. Eigenvalues of J below sqrt(2 / G) mean(1 /
# N), the noise of a pair mean without an effect, are raised to it: that groups do not differ at all is never
# known.


# Intraclass correlation of one pseudo-group, for where hardly any groups are at hand.
PRIOR_CORRELATION = 0.03
# Group effect on the looks in the template, as a part of that on the shares.
LOOKS_PER_SHARE = 0.5
# Part of a stated effect on the features of items that has any direction; the rest points from class to class.
STATED_LOOKS = 0.25
# Rounds that settle the weights of the groups, which depend on the intraclass correlation, and back.
ROUNDS = 5
# Groups of two items or more that a spread can be learned from.
FEWEST_GROUPS = 3
FIRST_K, LARGEST_K = 30.0, 1000.0
# Labelled items of a class of which half of its error is that of the weak prior, and a part that does not count.
FEW_ITEMS, NOT_RARE = 10.0, 0.02


class PairMeans(NamedTuple):
    """Weighted means over pairs of items of a group: A (n, n), D (d, d), K (n, d)."""

    A: Floats
    D: Floats
    K: Floats


def pair_means(sums: GroupSums, mu: Floats, shift: Floats, weights: Floats) -> PairMeans:
    """Return means over pairs i != j of items of products of e and r.

    These are (e_i - mu)(e_j - mu)', (r_i - shift)(r_j - shift)' and (e_i - mu)(r_j - shift)'.

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
    """Learn the model from labelled groups.

    Every class has items, and three groups have at least two.

    Groups count with w = N / (N + k) in the means, with w^2 (N - 1) / N in the pair means, where k = (1 - a) / a items
    tell as much of a group as the spread of the groups does.
    """
    check_classes(sums)
    N, weight = sums.n_items, sums.weight
    if (N > 1).sum() < FEWEST_GROUPS:
        raise ValueError(
            f"groups must contain at least {FEWEST_GROUPS} with two labelled items or more, got {(N > 1).sum()}. "
            "Pass more groups, or fit without groups."
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
    dof = G + dimensions(W, len(mu))
    model = GroupModel("learned", mu, M, shift, W, A, D, K, G, dof, a, n_items=float(N.sum()))
    centre, spread = weak_prior(sums.pooled)
    fallback = replace(model, source="weak", mu=centre, A=spread, K=np.zeros_like(K), dof=np.inf)
    rarity = 1 / (1 + (sums.class_sizes / FEW_ITEMS) ** 2)
    rarity[rarity < NOT_RARE] = 0
    model = replace(model, fallback=fallback, rarity=rarity if rarity.any() else None)
    some = N > 0
    Q = sums.cross.sum(axis=1)[some] / weight[some, None]
    return replace(model, worst=float(log_odds(model, Q, N[some]).max()))


def model_without_effect(sums: GroupSums) -> GroupModel:
    """Return the model without group effect: a weak prior, and the error of M."""
    check_classes(sums)
    mu, A = weak_prior(sums.pooled)
    d, n = sums.class_means.shape
    W, D = np.tensordot(mu, sums.class_covariances, 1), error_of_means(sums, mu, A)
    return GroupModel("weak", mu, sums.class_means, np.zeros(d), W, A, D, np.zeros((n, d)), correlation=1 / n)


def model_with_stated_effect(sums: GroupSums, effect: float = 0.1) -> GroupModel:
    """Return the model with a stated intraclass correlation a of the labels.

    Groups of real items differ most in their mean class, and their items mostly as if they were of a higher or of a
    lower class. With orthonormal polynomials x_1, ..., x_{n-1} of the class and B and W as in `GroupModel`,

        A = a c sum_k (B x_k)(B x_k)' / k,    D = a (W + 3 u u' / (u' W^-1 u)) / 4,    u = M B x_1.
    """
    check_classes(sums)
    a = check_real("effect", effect, low=0, high=1, open_low=True)
    mu, M = sums.pooled, sums.class_means
    d, n = M.shape
    W = np.tensordot(mu, sums.class_covariances, 1)
    A = a * _decaying_spread(mu, 1 / np.arange(1, n))
    u = M @ multinomial(mu) @ orthonormal_polynomials(mu)[:, 0]
    length = max(float(u @ np.linalg.pinv(W, rcond=RANK_TOLERANCE, hermitian=True) @ u), float(np.finfo(float).tiny))
    D = a * (STATED_LOOKS * W + (1 - STATED_LOOKS) * np.outer(u, u) / length)
    return GroupModel("stated", mu, M, np.zeros(d), W, A, D, np.zeros((n, d)), correlation=a)


def _decaying_spread(mu: Floats, decay: Floats) -> Floats:
    """Return c sum_k decay_k (B x_k)(B x_k)', (n, n).

    Its cumulative prevalences vary as those of B in total.
    """
    B = multinomial(mu)
    Bx = B @ orthonormal_polynomials(mu)
    A = (Bx * decay) @ Bx.T
    return np.asarray(_cumulated_trace(B) / _cumulated_trace(A) * A)


def check_classes(sums: GroupSums) -> None:
    """Raise an error for sums in which a class has no item."""
    missing = np.flatnonzero(sums.counts.sum(axis=0) == 0)
    if len(missing):
        raise ValueError(
            f"every class needs a labelled item, but class {missing[0]} of {len(sums.counts[0])} has none."
        )


def dimensions(W: Floats, n_classes: int) -> int:
    """Return the number of dimensions k of J.

    Prevalences have n - 1, and f the directions in which it varies within a class.
    """
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
    """Return the covariance (d, d) of (M_hat - M) p, shared by all groups.

    It is sum_i E p_i^2 Cov(f | i) / n_i.
    """
    return np.asarray(np.tensordot((mu**2 + np.diag(A)) / sums.class_sizes, sums.class_covariances, 1))


def orthonormal_polynomials(mu: Floats) -> Floats:
    """Return orthonormal polynomials x (n, n - 1) of the class index.

    Degrees are 1 to n - 1, with x' diag(mu) x = 1 and mu' x = 0.

    >>> orthonormal_polynomials(np.array([0.25, 0.5, 0.25])).round(3).tolist()
    [[-1.414, 1.0], [0.0, -1.0], [1.414, 1.0]]
    """
    n = len(mu)
    root = np.sqrt(mu)[:, None]
    Q, R = np.linalg.qr(root * np.polynomial.legendre.legvander(np.linspace(-1, 1, n), n - 1))
    return np.asarray((Q * np.sign(np.diag(R)) / root)[:, 1:])


def _safe_effect(pairs: PairMeans, mu: Floats, W: Floats, a: float, G: float, floor: float) -> PairMeans:
    """Shrink J to the template and raise its eigenvalues to a lower limit.

    Single items have unit covariance.
    """
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
    """Return the summed variances of cumulated prevalences with covariance C (n, n)."""
    return float(np.trace(np.cumsum(np.cumsum(C, axis=0), axis=1)[:-1, :-1]))


# The group effect on any representation, for methods without a model of groups.


# Numbers in the squares of all groups, half a gigabyte; wider representations are reduced to their main directions.
MAX_SQUARES = 2**26


def feature_effect(F: Floats, codes: Codes, groups: Codes, weights: Weights | None = None) -> Floats:
    """Return D (d, d), the covariance between groups of the mean of f within a class.

    F (N, d) represents labelled items, scored by models that have seen no item of their group; codes and groups (N,)
    are their classes 0..n-1 and groups 0..G-1.
    """
    n_groups, d = int(groups.max()) + 1, F.shape[1]
    n_classes = int(codes.max()) + 1
    kept = int(min(d, max(1, np.sqrt(MAX_SQUARES / n_groups))))
    U = np.eye(d)
    if kept < d:
        centred = F - F.mean(axis=0)
        U = np.linalg.eigh(centred.T @ centred)[1][:, -kept:]
    sums = GroupSums.of(F @ U, codes, groups, n_classes, weights=weights)
    model = learn(sums)
    # The error of M is not an effect of groups: replicates of M bring it.
    D = model.D - error_of_means(sums, model.mu, model.A)
    return np.asarray(U @ D @ U.T)


# Predicted shares of groups: the best linear predictor, on the simplex, with an alarm for groups unlike the others.
#
# The estimate is p_hat of `condition`, projected onto the simplex in the norm of E^{-1}, then the *median* of each
# cumulated share, by a Beta distribution with that mean and the precision u'Bu / u'Eu - 1: the median is what absolute
# errors ask for.


# A group is unlike the training groups where its odds are 1 + UNLIKE / G times those of the worst of them: the worst of
# many is a good measure, beyond which a like group is once in G + 1 times. Where they are DROP times those, the learned
# prior is given up.
UNLIKE, DROP = 200.0, 10_000.0
# Without learned tails a distance beyond this quantile widens the intervals.
WIDEN_BEYOND = 0.99
# Rows that are worked on at once: 1000 groups of 20 classes take 3 megabytes per matrix.
CHUNK = 4096


@dataclass(frozen=True, eq=False)
class Prediction:
    """Predicted prevalences of B groups with the covariance of their errors."""

    estimand: str  # "sample" or "population"
    prevalences: Floats  # (B, n) the estimate: medians of the cumulated shares, differenced
    mean: Floats  # (B, n) p_hat on the simplex, the centre of the intervals
    covariance: Floats  # (B, n, n) E of the errors that groups do not share, before it is widened
    centre: Floats  # (B, n) mu of the prior that was used
    n_items: Floats  # (B,) N; with labels those without one
    distance: Floats  # (B,) d^2 = z' C_qq^{-1} z
    rank: int  # expectation of d^2: the number of directions of q
    unlike: Mask  # (B,) groups unlike the training groups
    widening: Floats  # (B,) factor of E for the uncertainty of J, which grows with d^2
    dof: Floats  # (B,) degrees of freedom of the errors of shares
    mean_dof: Floats  # (B,) those of the error of the mean class
    unlabelled: Floats | None = None  # (B, n, n) covariance of all errors before labels of the group were used
    shared: Floats | None = None  # (B, n, k) factor of a further error that all groups share; None: there is none

    @property
    def total(self) -> Floats:
        """Covariance of all errors, (B, n, n)."""
        return self.covariance if self.shared is None else self.covariance + product(self.shared)


def predict(model: GroupModel, Q: Floats, sizes: Floats, estimand: str = "sample") -> Prediction:
    """Predict prevalences of groups from means Q (B, d) and sizes (B,).

    A group is unlike the training groups where q speaks for other shares than theirs, by `log_odds`, 1 + 200 / G times
    more than that of any training group does. Its covariance becomes what the estimate would err by if the weak prior
    were right; from ten thousand times on, the weak prior gives the estimate, too.
    """
    check_choice("estimand", estimand, ESTIMANDS)
    Q, sizes = np.asarray(Q, dtype=np.float64), np.asarray(sizes, dtype=np.float64)
    parts = [_predict(model, Q[i : i + CHUNK], sizes[i : i + CHUNK], estimand) for i in range(0, max(len(Q), 1), CHUNK)]
    return join(parts)


def _predict(model: GroupModel, Q: Floats, sizes: Floats, estimand: str) -> Prediction:
    got = condition(model, Q, sizes, estimand)
    centre, E = np.tile(model.mu, (len(Q), 1)), got.covariance
    p = project(got.mean, E)
    estimate = medians(p, E, centre)
    if estimand == "population":
        E = E + own_scatter(model, p, sizes)
    shared = got.shared
    widening, dof = _widening(model, got.distance, got.rank), np.full(len(Q), _dof(model))
    mean_dof = np.full(len(Q), _mean_dof(model))
    unlike = np.zeros(len(Q), dtype=bool)
    if model.fallback is not None:
        odds = log_odds(model, Q, sizes) - model.worst
        unlike = odds > np.log1p(UNLIKE / model.n_groups)
        dropped = odds[unlike] > np.log(DROP)
        other = condition(model.fallback, Q[unlike], sizes[unlike], estimand)
        centre[unlike], dof[unlike], mean_dof[unlike] = model.fallback.mu, np.inf, np.inf
        widening[unlike] = _widening(model.fallback, other.distance, got.rank)
        q = project(other.mean, other.covariance)
        p[unlike] = np.where(dropped[:, None], q, p[unlike])
        estimate[unlike] = np.where(dropped[:, None], medians(q, other.covariance, centre[unlike]), estimate[unlike])
        apart = q - p[unlike]
        E[unlike] = other.covariance + apart[:, :, None] * apart[:, None, :]
        if shared is not None and other.shared is not None:
            shared[unlike] = other.shared
    if model.rarity is not None:
        E = E + error_of_rare_classes(model, model.rarity, Q, sizes, estimand, p)
    return Prediction(
        estimand,
        estimate,
        p,
        E,
        centre,
        sizes,
        got.distance,
        got.rank,
        unlike,
        widening,
        dof,
        mean_dof,
        shared=shared,
    )


def error_of_rare_classes(
    model: GroupModel, rarity: Floats, Q: Floats, sizes: Floats, estimand: str, p: Floats
) -> Floats:
    """Return the error covariance (B, n, n) of classes with few labelled items.

    Neither the mean nor the spread of such a class is known, so its prevalence may be that of the weak prior, as far as
    the class is rare. Other classes then have less, in proportion to p.
    """
    assert model.fallback is not None
    other = condition(model.fallback, Q, sizes, estimand)
    apart = project(other.mean, other.covariance) - p
    r = np.sqrt(rarity)
    T = np.diag(r) - p[:, :, None] * r
    return np.asarray(T @ (other.covariance + apart[:, :, None] * apart[:, None, :]) @ T.transpose(0, 2, 1))


def own_scatter(model: GroupModel, p: Floats, sizes: Floats) -> Floats:
    """Return the change of the sampling covariance for prevalences p, (B, n, n).

    Given the shares of a sample, those of its population have the covariance A - A (A + B / N)^{-1} A, which is
    B / (N + 1/a) for A = a B. The model has B of its mean shares mu there, but items of this group scatter with that of
    p: by less if most are of few classes, by more if they are of all. Half an item of each class counts next to
    p.
    """
    N, a = sizes[:, None], model.correlation
    B = multinomial((N * p + 0.5) / (N + p.shape[1] / 2))
    return np.asarray((B - model.B) * (a / (1 + a * sizes))[:, None, None])


def join(parts: list[Prediction]) -> Prediction:
    """Join the predictions of successive parts of a batch."""
    if len(parts) == 1:
        return parts[0]
    first = parts[0]
    fields: dict[str, Any] = {}
    for name in Prediction.__annotations__:
        value = getattr(first, name)
        fields[name] = np.concatenate([getattr(p, name) for p in parts]) if isinstance(value, np.ndarray) else value
    return Prediction(**fields)


def _dof(model: GroupModel) -> float:
    """Return degrees of freedom of p given q for J with `model.dof`.

    One is lost per class, at most half of all.
    """
    return max(model.dof - model.n_classes + 2, model.dof / 2)


def _mean_dof(model: GroupModel) -> float:
    """Degrees of freedom of the mean class.

    It is one direction, in which groups differ most; the template does not contain its size. Group effects have heavy
    tails, so that G groups tell of their spread what half as many normal ones would.
    """
    return max(model.n_groups / 2, 2.0) if np.isfinite(model.dof) else np.inf


def _widening(model: GroupModel, distance: Floats, rank: int) -> Floats:
    """Factor of E, where J was learned from few groups or does not fit.

    If J has an inverse Wishart distribution worth G' groups, p given q is a Student vector whose scale is
    E (G' + d^2) / (G' - n + 2) (1 + 1/G'): the farther a group is from the training groups, the wider. Where nothing
    was learned, the factor is 1 up to the 99% quantile of d^2, and proportional to d^2 beyond.
    """
    if np.isfinite(model.dof):
        # The error of theta_0 is a part of what groups share, if that is known.
        error = 1 + 1 / model.dof if model.common is None else 1.0
        return np.asarray((model.dof + distance) / _dof(model) * error)
    # Of scores that do not vary, the rank is zero and so is the distance.
    return np.asarray(np.maximum(1, distance / (2 * gammaincinv(np.maximum(rank, 1) / 2, WIDEN_BEYOND))))


def project(P: Floats, E: Floats) -> Floats:
    """Return the points of the simplex nearest to P (B, n) in the norm of E^{-1}."""
    n = P.shape[1]
    outside = (P < 0).any(axis=1)
    result = P.copy()
    if outside.any():
        E = E[outside]
        size = np.trace(E, axis1=1, axis2=2)[:, None, None] / n
        # E is singular along (1, ..., 1), where p cannot move anyway, and nearly so where a share is known.
        # Without any uncertainty, the nearest point in the Euclidean norm is taken.
        size = np.maximum(size, np.where(size > np.finfo(float).tiny, 0.0, 1.0))
        inverse = np.linalg.inv(E + size * (1e-3 * np.eye(n) + 1))
        # Scaled to entries of order one.
        inverse *= size
        result[outside] = simplex_qp(inverse, np.matmul(inverse, P[outside][:, :, None])[:, :, 0])[0]
    return np.asarray(result / result.sum(axis=1, keepdims=True))


def medians(p: Floats, E: Floats, centre: Floats) -> Floats:
    """Differences of the medians of the cumulated shares, (B, n).

    The cumulated share u'p is taken as a Beta variable with mean u'p and precision nu = u'Bu / u'Eu - 1, B that of the
    prior's mean (B, n): a prediction with an effective sample size of nu.
    """
    c = np.clip(np.cumsum(p, axis=1)[:, :-1], 0, 1)
    prior = np.cumsum(centre, axis=1)[:, :-1]
    variance = np.maximum(cumulated_variance(E), np.finfo(float).tiny)
    nu = np.maximum(prior * (1 - prior) / variance - 1, 0.02)
    alpha, beta = c * nu, (1 - c) * nu
    inside = (alpha > 0) & (beta > 0)
    # For large parameters (alpha - 1/3) / (alpha + beta - 2/3) is exact to four digits, and much faster.
    large = inside & (np.minimum(alpha, beta) > 2)
    median = c.copy()
    median[large] = (alpha[large] - 1 / 3) / (nu[large] - 2 / 3)
    small = inside & ~large
    median[small] = betaincinv(alpha[small], beta[small], 0.5)
    # Medians of cumulated shares need not increase; half way between the two hulls, so that neither end is preferred.
    falling = np.minimum.accumulate(median[:, ::-1], axis=1)[:, ::-1]
    median = (np.maximum.accumulate(median, axis=1) + falling) / 2
    ends = np.zeros((len(p), 1)), np.ones((len(p), 1))
    return np.diff(np.hstack([ends[0], median, ends[1]]), axis=1)


def cumulated_variance(E: Floats) -> Floats:
    """Return variances (B, n - 1) of cumulated prevalences with covariance E."""
    both = np.cumsum(np.cumsum(E, axis=1), axis=2)
    return np.asarray(np.maximum(np.diagonal(both, axis1=1, axis2=2)[:, :-1], 0))


# Intervals around predicted shares: of each class, of the cumulated shares, and of the mean class.
#
# For any u'p, a share or the mean class, the half width h is
#
#     h^2 = t^2 phi u'Eu (1 + (rho - 1) / 2) + 1 / (4 N^2),   rho = min(4, u' (diag p - p p') u / u'Bu),
#
# with t a quantile of the Student distribution and phi the widening of `predict`. rho lets the error of a share follow
# the share, half of it, since E is the same for all groups of a size; it is 1 for the mean class. The last term is
# half an item, for the sample. Labels of the group itself replace phi and rho step by step: what they tell does not
# depend on other groups.


# A share is at most this many times more variable than in the mean of all groups.
MOST_VARIABLE = 4.0
# How far the variance of a share follows the share.
FOLLOWS = 0.5


def bounds(prediction: Prediction, level: float = 0.95, values: Floats | None = None) -> Bounds:
    """Return intervals that each contain the true value with a probability."""
    level = check_real("level", level, low=0, high=1, open_low=True)
    value, half = statistics(prediction.mean, values), half_widths(prediction, level, values)
    # The estimate is a median and may differ from the mean by more than half a width if a share is nearly nothing.
    estimate = statistics(prediction.prevalences, values)
    lower, upper = np.minimum(value, estimate) - half, np.maximum(value, estimate) + half
    return Bounds.of_statistics(level, prediction.estimand, lower, upper, values)


def stated_covariance(prediction: Prediction, level: float) -> Floats:
    """Return E (B, n, n), scaled to the width of the intervals of `bounds`.

    The average is that over the cumulated shares and the mean class. Differences of groups are judged by it.
    """
    n = prediction.mean.shape[1]
    total = prediction.total
    variance = np.maximum(variances(total), np.finfo(float).tiny)
    ratio = half_widths(prediction, level) ** 2 / (ndtri((1 + level) / 2) ** 2 * variance)
    return np.asarray(total * ratio[:, n:].mean(axis=1)[:, None, None])


def variances(E: Floats, values: Floats | None = None) -> Floats:
    """Variances of `statistics` for shares with covariance E (B, n, n), (B, 2n)."""
    index = np.arange(1.0, E.shape[1] + 1) if values is None else values
    single = np.maximum(np.diagonal(E, axis1=1, axis2=2), 0)
    mean = np.maximum(np.matmul(E @ index, index[:, None]), 0)
    return np.hstack([single, cumulated_variance(E), mean])


def half_widths(prediction: Prediction, level: float, values: Floats | None = None) -> Floats:
    """Half width h of each statistic, before it is cut to possible values, (B, 2n)."""
    variance = variances(prediction.total, values)
    # What part of the error is left to the model of the groups: all of it, unless there are labels.
    left = np.ones_like(variance)
    if prediction.unlabelled is not None:
        left = np.clip(variance / np.maximum(variances(prediction.unlabelled, values), np.finfo(float).tiny), 0, 1)
    share, prior = statistics(prediction.mean), statistics(prediction.centre)
    rho = np.minimum(MOST_VARIABLE, share * (1 - share) / (prior * (1 - prior)))
    rho[:, -1] = 1
    factor = 1 + left * (prediction.widening[:, None] - 1)
    t = np.repeat(stdtrit(prediction.dof, (1 + level) / 2)[:, None], variance.shape[1], axis=1)
    t[:, -1] = stdtrit(prediction.mean_dof, (1 + level) / 2)
    h2 = t**2 * variance * factor * (1 + FOLLOWS * left * (rho - 1))
    if prediction.estimand == "sample":
        steps = item_steps(prediction.mean.shape[1], values)
        h2 += left * steps**2 / (4 * prediction.n_items[:, None] ** 2)
    return np.asarray(np.sqrt(h2))
