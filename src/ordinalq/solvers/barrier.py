"""Quadratic functions with a logarithmic barrier on the simplex, in batches."""

import numpy as np

from ordinalq._utils.validation import Floats
from ordinalq.solvers.solution import Solution, kkt_residual

# Systems of many small positive definite matrices at once.
#
# LAPACK takes one matrix after the other, and for ten rows its calls cost more than the work. Here all matrices take
# each step of the elimination together: the batch is the last axis, along which every operation runs.


# Matrices with more rows get a separate call.
SMALL = 24


def eliminate(W: Floats) -> None:
    """Turn W (n + m, n, B), K above R', into L and (L^-1 R)', K = L L', in place.

    Above its diagonal, L is left as K was.
    """
    n = W.shape[1]
    if n > SMALL:
        L = np.linalg.cholesky(W[:n].transpose(2, 0, 1))
        W[n:] = np.linalg.solve(L, W[n:].transpose(2, 1, 0)).transpose(2, 1, 0)
        W[:n] = L.transpose(1, 2, 0)
        return
    for j in range(n):
        if j > 0:
            W[j:, j] -= np.einsum("ikb,kb->ib", W[j:, :j], W[j, :j])
        W[j:, j] /= np.sqrt(W[j, j])


def substitute(W: Floats) -> Floats:
    """Return (K^-1 R)', (m, n, B), from the result of `eliminate`, in place."""
    n = W.shape[1]
    X = W[n:]
    for j in reversed(range(n)):
        if j < n - 1:
            X[:, j] -= np.einsum("ikb,kb->ib", X[:, j + 1 :], W[j + 1 : n, j])
        X[:, j] /= W[j, j]
    return X


def whiten(K: Floats, R: Floats) -> tuple[Floats, Floats]:
    """Return L^-1 R (B, n, m) and the diagonal of L (B, n), with L L' = K."""
    B, n, m = R.shape
    W = np.empty((n + m, n, B))
    W[:n], W[n:] = K.transpose(1, 2, 0), R.transpose(2, 1, 0)
    eliminate(W)
    return W[n:].transpose(2, 1, 0), np.einsum("iib->bi", W[:n])


# Steps at most; most samples take six to ten.
MAX_ITER = 100
TOL, ROUNDING = 1e-10, 1e-13
# Part of the way to the boundary that a step goes at most.
BOUNDARY = 0.99


def minimize_inside(A: Floats, b: Floats, k: Floats, start: Floats, scale: Floats) -> Solution:
    r"""Minimize p'Ap/2 - b'p - sum_i k_i ln p_i over the simplex.

    The minimum has mass in every class.

    A (B, n, n) is positive semidefinite, k (B, n) positive, `start` (B, n) too; gradients are divided by `scale` (B,)
    in the optimality measure. Newton's method on the conditions A p - b - y = const, p_i y_i = k_i in p and y together
    (primal and dual). In p alone its steps would be short wherever a share is small.
    """
    B, n = b.shape
    P = start / start.sum(axis=1, keepdims=True)
    n_iter = np.full(B, MAX_ITER, dtype=np.int64)
    kkt, good = np.empty(B), np.zeros(B, dtype=bool)
    # Samples that go on; they are the last axis of what follows, see `solvers.definite`.
    open_ = np.arange(B)
    K, c, w, x = (np.ascontiguousarray(np.moveaxis(part, 0, -1)) for part in (A, b, k, P))
    y = w / x
    for iteration in range(MAX_ITER + 1):
        slope = np.einsum("ijb,jb->ib", K, x) - c
        inverse = 1 / x
        gradient = slope - w * inverse
        residual = kkt_residual(x.T, gradient.T)
        # A gradient is not known better than to the rounding errors of its terms.
        size = np.abs(slope).max(axis=0) + np.abs(c).max(axis=0) + w.sum(axis=0)
        done = residual <= np.maximum(TOL * scale[open_], ROUNDING * size)
        ended = done | (iteration == MAX_ITER)
        if ended.any():
            rows = open_[ended]
            P[rows], kkt[rows], good[rows], n_iter[rows] = x[:, ended].T, residual[ended], done[ended], iteration
            if ended.all():
                break
            left = np.flatnonzero(~ended)
            open_ = open_[left]
            K, c, w, x, y, inverse, gradient = (part.take(left, axis=-1) for part in (K, c, w, x, y, inverse, gradient))
        # The second right-hand side keeps the sum.
        W = np.concatenate([K, -gradient[None], np.ones((1, *x.shape))])
        W[np.arange(n), np.arange(n)] += y * inverse
        eliminate(W)
        found = substitute(W)
        dx = found[0] - found[0].sum(axis=0) / found[1].sum(axis=0) * found[1]
        dy = w * inverse - y - y * inverse * dx
        x += _length(x, dx) * dx
        y += _length(y, dy) * dy
    P /= P.sum(axis=1, keepdims=True)
    value = (P * (np.matmul(A, P[:, :, None])[:, :, 0] / 2 - b)).sum(axis=1) - (k * np.log(P)).sum(axis=1)
    return Solution(P, value, n_iter, good, kkt / scale)


def _length(x: Floats, step: Floats) -> Floats:
    """Return step lengths (B,), at most one, that leave x (n, B) positive."""
    return np.asarray(np.minimum(1.0, BOUNDARY / np.maximum((-step / x).max(axis=0), np.finfo(float).tiny)))
