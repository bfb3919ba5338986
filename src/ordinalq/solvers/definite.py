"""Systems of many small positive definite matrices at once.

LAPACK takes one matrix after the other, and for ten rows its calls cost more than the work. Here all matrices take each
step of the elimination together: the batch is the last axis, along which every operation runs.
"""

import numpy as np

from ordinalq._utils.validation import Floats

# Matrices with more rows are worth a call of their own.
SMALL = 24


def eliminate(W: Floats) -> None:
    """Turn W (n + m, n, B), K and below it R', into L and (L^-1 R)' with K = L L', in place.

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
    """Return (K^-1 R)', (m, n, B), from what `eliminate` has left, whose lower rows take it up."""
    n = W.shape[1]
    X = W[n:]
    for j in reversed(range(n)):
        if j < n - 1:
            X[:, j] -= np.einsum("ikb,kb->ib", X[:, j + 1 :], W[j + 1 : n, j])
        X[:, j] /= W[j, j]
    return X


def whiten(K: Floats, R: Floats) -> tuple[Floats, Floats]:
    """Return L^-1 R (B, n, m) and the diagonal of L (B, n), with L L' = K, for K (B, n, n) and R (B, n, m)."""
    B, n, m = R.shape
    W = np.empty((n + m, n, B))
    W[:n], W[n:] = K.transpose(1, 2, 0), R.transpose(2, 1, 0)
    eliminate(W)
    return W[n:].transpose(2, 1, 0), np.einsum("iib->bi", W[:n])
