"""The probability simplex, difference matrices, and the record of q and M."""

from dataclasses import dataclass, replace
from math import ceil, comb
from typing import Any, NamedTuple

import numpy as np

from ordinalq._utils.validation import Floats, Index, check_choice, check_integer, check_random_state, check_vectors


class Derivatives(NamedTuple):
    """A function of B points with its derivatives.

    Parameters
    ----------
    value : ndarray (B,)
        At each point.
    gradient : ndarray (B, n)
        First derivatives.
    hessian : ndarray (B, n, n)
        Second derivatives.

    Examples
    --------
    ||p||^2 at two points:

    >>> P = np.array([[0.5, 0.5], [1.0, 0.0]])
    >>> Derivatives((P**2).sum(axis=1), 2 * P, np.array([2 * np.eye(2)] * 2)).value
    array([0.5, 1. ])
    """

    value: Floats
    gradient: Floats
    hessian: Floats


def softmax(latents: Floats) -> Floats:
    """Chart of the open simplex [eq:softmax].

    p_i = exp(l_i) / sum_j exp(l_j) with l_1 = 0.

    Parameters
    ----------
    latents : ndarray (B, n - 1)
        l_2, ..., l_n.

    Returns
    -------
    ndarray (B, n)

    Examples
    --------
    >>> softmax(np.zeros((1, 3)))
    array([[0.25, 0.25, 0.25, 0.25]])
    """
    full = np.concatenate([np.zeros((len(latents), 1)), latents], axis=1)
    E = np.exp(full - full.max(axis=1, keepdims=True))
    return np.asarray(E / E.sum(axis=1, keepdims=True))


def softmax_derivatives(P: Floats, at_p: Derivatives) -> Derivatives:
    """Return derivatives by the latents from those by p (chain rule).

    With J = diag(p) - p p', ghat = g - (p.g) 1 and r = p * ghat:
    grad_l = r and Hess_l = J H J + diag(r) - r p' - p r', without the row and column of the fixed l_1.

    Parameters
    ----------
    P : ndarray (B, n)
        Points in the open simplex.
    at_p : Derivatives
        Derivatives of a function of p at P.

    Returns
    -------
    Derivatives
        gradient (B, n - 1), hessian (B, n - 1, n - 1).
    """
    r = P * centred_gradient(P, at_p.gradient)
    J = P[:, :, None] * np.eye(P.shape[1]) - P[:, :, None] * P[:, None, :]
    outer = r[:, :, None] * P[:, None, :]
    H = J @ at_p.hessian @ J + r[:, :, None] * np.eye(P.shape[1]) - outer - outer.transpose(0, 2, 1)
    return Derivatives(at_p.value, r[:, 1:], H[:, 1:, 1:])


def centred_gradient(P: Floats, G: Floats) -> Floats:
    """Return ghat = g - (p.g) 1, (B, n); mass should move to negative entries."""
    return np.asarray(G - (P * G).sum(axis=1, keepdims=True))


def uniform_simplex(n_samples: int, n_classes: int, random_state: Any = None) -> Floats:
    """Draw uniformly from the simplex by Kraemer's method [eq:probsimplex].

    p = differences of (0, u_(1), ..., u_(n-1), 1) with sorted uniform u; the same as Dirichlet(1, ..., 1). Row i does
    not depend on the number of rows.

    Returns
    -------
    ndarray (n_samples, n_classes)
    """
    n_samples = check_integer("n_samples", n_samples, minimum=1)
    n_classes = check_integer("n_classes", n_classes, minimum=2)
    U = np.sort(check_random_state(random_state).random((n_samples, n_classes - 1)), axis=1)
    return np.diff(U, axis=1, prepend=0.0, append=1.0)


def clean(P: Floats) -> Floats:
    """Make estimates distributions: invalid and negative entries become 0.

    Rows are divided by their sum.

    A row without positive entry becomes uniform. P and the result have shape (B, n).
    """
    P = np.where(np.isfinite(P) & (P > 0), P, 0.0)
    empty = P.sum(axis=1) == 0
    P[empty] = 1.0
    return np.asarray(P / P.sum(axis=1, keepdims=True))


# What makes classes ordinal: finite differences over the class index, and the jaggedness of a distribution.
#
# Paper: the section on ordinal plausibility (jaggedness xi_0, xi_1, xi_2) and the Tikhonov matrices.


def difference_matrix(n: int, order: int = 1) -> Floats:
    """Tikhonov matrix C_k, the (k+1)-th finite difference over n classes.

    Row i holds s (-1)^j binom(k+1, j) at column i + j, j = 0..k+1, with s = (-1)^ceil(k/2): rows (1, -1) for k = 0,
    (-1, 2, -1) for k = 1, (-1, 3, -3, 1) for k = 2. C_k p = 0 exactly where p is a polynomial of degree <= k in the
    class index [eq:tikhonovmatrix] [eq:tikhonovmatrix2] [eq:tikhonovmatrix3] [eq:tikhonovmatrix4].

    Parameters
    ----------
    n : int
        Number of classes, at least order + 2.
    order : int, default=1
        k >= 0.

    Returns
    -------
    ndarray (n - order - 1, n)

    Examples
    --------
    >>> difference_matrix(4)
    array([[-1.,  2., -1.,  0.],
           [ 0., -1.,  2., -1.]])
    """
    order = check_integer("order", order, minimum=0)
    n = check_integer("n", n, minimum=order + 2)
    sign = (-1) ** ceil(order / 2)
    C = np.zeros((n - order - 1, n))
    for j in range(order + 2):
        C[np.arange(len(C)), np.arange(len(C)) + j] = sign * (-1) ** j * comb(order + 1, j)
    return C


def existing_differences(n: int, order: int = 1) -> Floats:
    """Return C_k (max(n - k - 1, 0), n), without rows for too few classes."""
    return difference_matrix(n, order) if n >= order + 2 else np.zeros((0, n))


def grid_difference_matrix(shape: tuple[int, ...], order: int = 1) -> Floats:
    """Return the Tikhonov matrix (m, n_1 n_2 ...) of a grid of classes.

    It has the differences C_k along its axes, one below the other.

    The shape (n_1, n_2, ...) are numbers of bins; classes are counted as ``numpy.ravel`` does. Axes with fewer than
    order + 2 bins have no differences.

    >>> grid_difference_matrix((6, 5)).shape  # 4 x 5 along the first axis, 6 x 3 along the second
    (38, 30)
    """
    sizes = [check_integer("shape", size, minimum=1) for size in shape]
    along = [k for k, size in enumerate(sizes) if size >= order + 2]
    if not along:
        raise ValueError(f"order must be at most the longest axis less 2, {max(sizes) - 2}, got {order}.")
    parts = []
    for k in along:
        before, after = np.eye(int(np.prod(sizes[:k]))), np.eye(int(np.prod(sizes[k + 1 :])))
        parts.append(np.kron(np.kron(before, difference_matrix(sizes[k], order)), after))
    return np.vstack(parts)


def jaggedness(p: Any, order: int = 1, *, normalization: str = "paper") -> Any:
    """Deviation of p from a smooth shape: xi_k(p) = ||C_k p||^2 / z.

    [eq:jaggedness] for k = 1, [eq:jaggedness2] for k = 0, [eq:jaggedness3] for k = 2.

    Parameters
    ----------
    p : array-like (n,) or (B, n)
        Finite vectors, usually distributions; they need not sum to one. n >= order + 2, or n = 2, if there is no
        curvature and xi_1 is zero.
    order : int, default=1
        k; 1 is the paper's measure of ordinal plausibility.
    normalization : {"paper", "max"}, default="paper"
        z as printed: 2 for k = 0, min(6, n + 1) for k = 1, 8 for k = 2. With 8, xi_2 can exceed one; "max" divides by
        the largest ||C_k p||^2 over the simplex, which is that of a vertex: the largest squared column norm of C_k.
        For k >= 3 nothing is printed, and both are "max".

    Returns
    -------
    float or ndarray (B,)

    Examples
    --------
    >>> round(jaggedness([0.20, 0.10, 0.05, 0.20, 0.45]), 5)
    0.00875
    """
    order = check_integer("order", order, minimum=0)
    check_choice("normalization", normalization, ("paper", "max"))
    P = check_vectors("p", p, min_classes=2 if order == 1 else order + 2)
    n = P.shape[-1]
    if n == 2 and order == 1:
        return 0.0 if P.ndim == 1 else np.zeros(len(P))
    C = difference_matrix(n, order)
    printed = {0: 2.0, 1: min(6.0, n + 1.0), 2: 8.0}
    largest = float((C * C).sum(axis=0).max())
    z = printed.get(order, largest) if normalization == "paper" else largest
    xi = np.square(P @ C.T).sum(axis=-1) / z
    return float(xi) if P.ndim == 1 else xi


# The data of B problems q = M p: what losses, objectives and EM share.


# Products of two entries of M that are made at once for a batch, 16 megabytes; beyond, each sample has its own product.
MAX_PAIRS = 2**21
# Rows of a batch that are multiplied at once, see `row_product`.
BLOCK = 16
# How much more than the others a histogram counts in `Data.emphases`, and how many emphases there are at most.
EMPHASIS = 100.0
MOST_EMPHASES = 12


def row_product(X: Floats, M: Floats) -> Floats:
    """Return X M for X (B, k), M (k, m), with rows independent of each other.

    A product of matrices adds in another order where their shapes differ. On problems with flat directions such last
    digits grow to visible ones; blocks of equal shape keep a sample's estimate the same in any batch.
    """
    B, k = X.shape
    n_blocks = -(-B // BLOCK)
    padded = X
    if n_blocks * BLOCK != B:
        padded = np.zeros((n_blocks * BLOCK, k))
        padded[:B] = X
    return np.asarray(np.matmul(padded.reshape(n_blocks, BLOCK, k), M).reshape(n_blocks * BLOCK, M.shape[1])[:B])


def weighted_gram(W: Floats, M: Floats) -> Floats:
    """Return M' diag(w) M, (B, n, n), for each row w of W (B, d)."""
    d, n = M.shape
    if d * n * n <= MAX_PAIRS:
        pairs = (M[:, :, None] * M[:, None, :]).reshape(d, n * n)
        return row_product(W, pairs).reshape(len(W), n, n)
    return np.array([(M.T * w) @ M for w in W]).reshape(len(W), n, n)


def reference_column(M: Floats) -> Floats:
    """Return the shortest column (d,) of M (d, n)."""
    return np.asarray(M[:, np.abs(M).sum(axis=0).argmin()])


@dataclass(frozen=True)
class Data:
    """Mean embeddings of B samples and of n classes.

    A `background` o (B, d) belongs to no class and is known: q is compared with M p + o instead of M p. Q and o are in
    units of the signal, a row of Q sums to 1 + sum(o).
    """

    Q: Floats  # (B, d) mean embedding of each sample
    M: Floats  # (d, n) mean embedding of each class
    sizes: Floats  # (B,) number of items of each sample
    n_blocks: int = 1  # number of histograms that the d rows consist of, all of the same length
    background: Floats | None = None
    directions: Floats | None = None  # (d, n) M less one of its columns, see `along_simplex`

    def __len__(self) -> int:
        return len(self.Q)

    @property
    def n_classes(self) -> int:
        """The number of classes."""
        return int(self.M.shape[1])

    @property
    def signal(self) -> Floats:
        """Part of q that the classes have to explain, q - o (B, d)."""
        return self.Q if self.background is None else self.Q - self.background

    @property
    def columns(self) -> Floats:
        """Matrix in the derivatives of a loss: M, or the directions in its place."""
        return self.M if self.directions is None else self.directions

    def along_simplex(self) -> "Data":
        """Return data with more accurate derivatives along the simplex.

        Where p keeps its sum, M p changes by D dp with D = M - m 1' for any m, here the shortest column: it is not
        dwarfed by a long one, and where all columns are nearly equal, their differences keep all digits.
        """
        return replace(self, directions=self.M - reference_column(self.M)[:, None])

    def expected(self, P: Floats) -> Floats:
        """Return M p + o, (B, d), for P (B, n)."""
        V = row_product(P, self.M.T)
        return V if self.background is None else V + self.background

    def take(self, rows: Index) -> "Data":
        """Return the data of some samples; M is shared."""
        background = None if self.background is None else self.background[rows]
        return Data(self.Q[rows], self.M, self.sizes[rows], self.n_blocks, background, self.directions)

    def without_empty_rows(self) -> "Data":
        """Return the data without rows in which M is zero for all classes."""
        kept = self.M.any(axis=1)
        if kept.all():
            return self
        background = None if self.background is None else self.background[:, kept]
        return replace(self, Q=self.Q[:, kept], M=self.M[kept], background=background, directions=None)

    def cumulated(self) -> "Data":
        """Return cumulative sums over the rows of q, M and o, without the last."""
        Q, M = np.cumsum(self.Q, axis=1)[:, :-1], np.cumsum(self.M, axis=0)[:-1]
        background = None if self.background is None else np.cumsum(self.background, axis=1)[:, :-1]
        return replace(self, Q=Q, M=M, background=background, directions=None)

    def emphases(self) -> "list[Data]":
        """Return the data with one histogram after the other emphasized.

        The optima of such data are good starts where a sum of distances between histograms has several minima, most of
        which fit some of them exactly. w ||sqrt(q) - sqrt(v)||^2 is the squared distance of w q and w v; the weights w
        have mean one.
        """
        k, o = self.n_blocks, self.background
        weights = np.repeat(1 + (EMPHASIS - 1) * np.eye(k), len(self.M) // k, axis=1)
        weights /= weights.mean(axis=1, keepdims=True)
        chosen = np.linspace(0, k - 1, min(k, MOST_EMPHASES) if k > 1 else 0).astype(np.intp)
        return [
            replace(self, Q=w * self.Q, M=w[:, None] * self.M, background=None if o is None else w * o, directions=None)
            for w in weights[chosen]
        ]


# Means that differ by less, relative to the size of what was averaged, differ by rounding errors.
ROUNDING = 1e-12


def equal_columns(M: Floats, size: float = 0.0) -> Index:
    """Return the set (n,) of each column of M (d, n), equal up to rounding.

    `size` is that of the numbers behind M if it is larger than the entries of M.

    >>> equal_columns(np.array([[0.1, 0.3, 0.1 + 1e-16], [0.9, 0.7, 0.9]])).tolist()
    [0, 1, 0]
    """
    near = np.abs(M[:, :, None] - M[:, None, :]).max(axis=0) <= ROUNDING * max(size, float(np.abs(M).max()))
    return np.unique(near.argmax(axis=0), return_inverse=True)[1]


def averaged(X: Floats, sets: Index) -> Floats:
    """Return X (..., n) with entries of each set (n,) replaced by their mean."""
    if sets.max() == len(sets) - 1:
        return X
    member = np.eye(sets.max() + 1)[sets]
    return np.asarray((X @ member / member.sum(axis=0))[..., sets])
