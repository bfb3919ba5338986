"""Derivatives of estimates with respect to the data."""

import numpy as np

from ordinalq._utils.validation import Floats
from ordinalq.solvers.objectives import Objective

# Classes with less mass than this are at the edge of the simplex, and stay there.
AT_THE_EDGE = 1e-9
# Curvatures below this part of the largest are rounding errors of zero.
FLAT = 1e-12


def tangent_inverse(objective: Objective, P: Floats) -> Floats:
    """Return X (B, n, n) with dp = -X dg: changes of minima P by gradients.

    With Z the projection on the directions that keep the sum of p and the classes without mass, X is the pseudo-inverse
    of Z H Z; H is the Hessian.
    """
    B, n = P.shape
    free = (P > AT_THE_EDGE).astype(np.float64)
    Z = free[:, :, None] * (np.eye(n) - free[:, None, :] / free.sum(axis=1)[:, None, None])
    H = objective.derivatives(P, np.arange(B)).hessian
    size, axes = np.linalg.eigh(np.matmul(Z, np.matmul(H, Z)))
    known = size > FLAT * size[:, -1:]
    root = axes * np.where(known, 1 / np.sqrt(np.where(known, size, 1.0)), 0.0)[:, None, :]
    return np.asarray(np.matmul(root, root.transpose(0, 2, 1)))
