"""Quadratic functions with a logarithmic barrier on the simplex, a whole batch at once."""

import numpy as np

from ordinalq.solvers.solution import Solution, kkt_residual
from ordinalq.validation import Floats

# Steps at most; most samples take six to ten.
MAX_ITER = 100
TOL, ROUNDING = 1e-10, 1e-13
# Part of the way to the boundary that a step goes at most.
BOUNDARY = 0.99


def minimize_inside(A: Floats, b: Floats, k: Floats, start: Floats, scale: Floats) -> Solution:
    r"""Minimise p'Ap/2 - b'p - sum_i k_i ln p_i over the simplex; the minimum has mass in every class.

    A (B, n, n) is positive semidefinite, k (B, n) positive, `start` (B, n) too; gradients are divided by `scale` (B,)
    in the optimality measure. Newton's method on the conditions A p - b - y = const, p_i y_i = k_i in p and y together
    (primal and dual). In p alone its steps would be short wherever a share is small.
    """
    B, n = b.shape
    P = start / start.sum(axis=1, keepdims=True)
    Y = k / P
    n_iter = np.zeros(B, dtype=np.int64)
    kkt, good = np.empty(B), np.zeros(B, dtype=bool)
    open_ = np.arange(B)
    for iteration in range(MAX_ITER + 1):
        slope = _times(A[open_], P[open_]) - b[open_]
        inverse = 1 / P[open_]
        gradient = slope - k[open_] * inverse
        kkt[open_] = kkt_residual(P[open_], gradient) / scale[open_]
        # A gradient is not known better than to the rounding errors of its terms.
        size = np.abs(slope).max(axis=1) + np.abs(b[open_]).max(axis=1) + k[open_].sum(axis=1)
        good[open_] = kkt[open_] * scale[open_] <= np.maximum(TOL * scale[open_], ROUNDING * size)
        left = ~good[open_]
        if iteration == MAX_ITER or not left.any():
            break
        open_, slope, inverse, gradient = open_[left], slope[left], inverse[left], gradient[left]
        p, y = P[open_], Y[open_]
        H = A[open_]
        H[:, np.arange(n), np.arange(n)] += y * inverse
        # The second column keeps the sum.
        found = np.linalg.solve(H, np.stack([-gradient, np.ones_like(p)], axis=2))
        along = found[:, :, 0].sum(axis=1) / found[:, :, 1].sum(axis=1)
        dp = found[:, :, 0] - along[:, None] * found[:, :, 1]
        dy = k[open_] * inverse - y - y * inverse * dp
        P[open_] = p + _length(p, dp)[:, None] * dp
        Y[open_] = y + _length(y, dy)[:, None] * dy
        n_iter[open_] += 1
    P /= P.sum(axis=1, keepdims=True)
    value = (P * (_times(A, P) / 2 - b)).sum(axis=1) - (k * np.log(P)).sum(axis=1)
    return Solution(P, value, n_iter, good, kkt)


def _times(A: Floats, P: Floats) -> Floats:
    return np.asarray(np.matmul(A, P[:, :, None])[:, :, 0])


def _length(x: Floats, step: Floats) -> Floats:
    """Return the length of each step, at most one, that leaves x (B, n) positive, (B,)."""
    return np.asarray(np.minimum(1.0, BOUNDARY / np.maximum((-step / x).max(axis=1), np.finfo(float).tiny)))
