"""Linear systems of the steps along the central path of absolute residuals."""

import numpy as np

from ordinalq._utils.validation import Floats
from ordinalq.simplex import weighted_gram


def normal_equations(D: Floats, W: Floats, K: Floats, diagonal: Floats) -> Floats:
    """Return the systems (B, n + 1, n + 1) of dp and dt, from which dy = W (rho - D dp) has been eliminated.

    K (n, n) is the curvature that all problems share, `diagonal` (B, n) what each adds to its diagonal.

    Late weights W (B, d) span twenty orders of magnitude: a relative ridge keeps the systems regular in floating point.
    Where columns of D are (nearly) dependent, that ridge outweighs K, and dp falls short.
    """
    B, n = diagonal.shape
    each = np.arange(n)
    system = np.zeros((B, n + 1, n + 1))
    system[:, :n, :n] = weighted_gram(W, D) + K
    system[:, each, each] += diagonal
    system[:, each, each] *= 1 + 1e-13
    system[:, :n, n] = system[:, n, :n] = 1
    return system


def whole_system(D: Floats, W: Floats, K: Floats, diagonal: Floats) -> Floats:
    """Return the systems (B, n + 1 + d, n + 1 + d) of dp, dt and dy, where large weights W (B, d) cost no digits."""
    B, n = diagonal.shape
    each, residual = np.arange(n), np.arange(n + 1, n + 1 + len(D))
    system = np.zeros((B, n + 1 + len(D), n + 1 + len(D)))
    system[:, :n, :n] = K
    system[:, each, each] += diagonal
    system[:, :n, n] = system[:, n, :n] = 1
    system[:, :n, n + 1 :], system[:, n + 1 :, :n] = -D.T, D
    # Equal rows of D whose residuals vanish need a little on the diagonal; the optimum stays.
    system[:, residual, residual] = 1 / W + 1e-13
    return system
