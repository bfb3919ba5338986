"""What makes classes ordinal: finite differences over the class index, and the jaggedness of a distribution.

Paper: the section on ordinal plausibility (jaggedness xi_0, xi_1, xi_2) and the Tikhonov matrices.
"""

from math import ceil, comb
from typing import Any

import numpy as np

from ordinalq._utils.validation import Floats, check_choice, check_integer, check_vectors


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
    """Return C_k (max(n - k - 1, 0), n), without rows where there are too few classes: two have no curvature."""
    return difference_matrix(n, order) if n >= order + 2 else np.zeros((0, n))


def grid_difference_matrix(shape: tuple[int, ...], order: int = 1) -> Floats:
    """Tikhonov matrix (m, n_1 n_2 ...) of a grid of classes: the differences C_k along its axes, one below the other.

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
    """How far p deviates from a smooth shape: xi_k(p) = ||C_k p||^2 / z.

    [eq:jaggedness] for k = 1, [eq:jaggedness2] for k = 0, [eq:jaggedness3] for k = 2.

    Parameters
    ----------
    p : array-like (n,) or (B, n)
        Finite vectors, usually distributions; they need not sum to one. n >= order + 2, or n = 2, where there is no
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
