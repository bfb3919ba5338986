"""Curvatures of the models of Newton's method, and what they promise."""

import numpy as np

from ordinalq._utils.validation import Floats, Mask
from ordinalq.simplex import Derivatives, centred_gradient

# Curvatures below this part of the largest are raised to it.
MIN_CURVATURE = 1e-14
# The same where curvatures are bent upwards: there the model is rough anyway, and the steps should not be wild.
MIN_BENT_CURVATURE = 1e-9


def gain_by_each_class(P: Floats, at: Derivatives) -> Floats:
    """Return by how much (B,) the second-order model at P (B, n) could fall, each class alone trading with all others.

    Along e_i - p, with slope ghat_i and curvature c_i, the fall is largest at -ghat_i / c_i or where a mass ends; the
    falls of all classes are added.
    """
    slope = centred_gradient(P, at.gradient)
    HP = np.matmul(at.hessian, P[:, :, None])[:, :, 0]
    curvature = np.einsum("bii->bi", at.hessian) - 2 * HP + (P * HP).sum(axis=1, keepdims=True)
    longest = np.where(slope < 0, 1.0, P / np.maximum(1 - P, np.finfo(float).tiny))
    safe = np.where(curvature > 0, curvature, 1.0)
    step = np.where(curvature > 0, np.minimum(np.abs(slope) / safe, longest), longest)
    return np.asarray((step * (np.abs(slope) - curvature * step / 2)).sum(axis=1))


def largest_curvature(H: Floats) -> Floats:
    """Return the largest curvature (B,) of H (B, n, n) along p_i - 1/n, a class against all."""
    means = H.mean(axis=2)
    return np.asarray((np.einsum("bii->bi", H) - 2 * means).max(axis=1) + means.mean(axis=1))


def with_ridge(H: Floats, G: Floats) -> Floats:
    """Return H (B, n, n) with a tiny ridge relative to its diagonal, against flat directions.

    Where there is no curvature at all, as where no bin with items counts, it is relative to the gradients G (B, n).
    """
    n = H.shape[1]
    diagonal = np.abs(np.einsum("bii->bi", H))
    mean = diagonal.mean(axis=1, keepdims=True)
    mean = np.where(mean > 0, mean, np.abs(G).max(axis=1, keepdims=True))
    H = H.copy()
    H[:, np.arange(n), np.arange(n)] += MIN_CURVATURE * (diagonal + mean) + np.finfo(float).tiny
    return H


def along_simplex(H: Floats) -> Floats:
    """Return H (B, n, n) with a tiny ridge, and positive curvature along (1, ..., 1), where no step goes."""
    n = H.shape[1]
    H = H - H.mean(axis=1, keepdims=True)
    H = H - H.mean(axis=2, keepdims=True)
    mean = np.maximum(np.trace(H, axis1=1, axis2=2) / n, np.finfo(float).tiny)[:, None, None]
    return np.asarray(H + mean * (1e2 * MIN_CURVATURE * np.eye(n) + 1 / n))


def along_face(H: Floats, P: Floats, G: Floats) -> Floats:
    """Return H (B, n, n) along the face of P (B, n) that the gradient G (B, n) leads to, else with positive curvature.

    A class without mass, and which should get none, takes no part in a step. Beside a kink its curvature can be so
    large and negative that those which count are lost in it.
    """
    n = H.shape[1]
    free = (P > 0) | (centred_gradient(P, G) < 0)
    free |= free.sum(axis=1, keepdims=True) < 2
    inside = free[:, :, None] * np.eye(n) - (free / free.sum(axis=1, keepdims=True))[:, :, None] * free[:, None, :]
    # Where no curvature is left, it is below the rounding errors of H.
    least = np.finfo(float).eps * np.abs(H).max(axis=(1, 2)) + np.finfo(float).tiny
    H = np.matmul(np.matmul(inside, H), inside)
    size = np.abs(np.einsum("bii->bi", H)).mean(axis=1)
    size = np.where(size > 0, size, least)[:, None, None]
    return np.asarray(H + size * (1e2 * MIN_CURVATURE * np.eye(n) + np.eye(n) - inside))


def bent_upwards(H: Floats) -> Floats:
    """Return H (B, n, n) with negative curvatures replaced by their absolute values, tiny ones by a small positive."""
    curvature, axes = np.linalg.eigh(H)
    size = np.abs(curvature)
    size = np.maximum(size, MIN_BENT_CURVATURE * size.max(axis=1, keepdims=True))
    return np.asarray(np.matmul(axes * size[:, None, :], axes.transpose(0, 2, 1)))


def positive_definite(H: Floats) -> Mask:
    """Return which of the matrices H (B, n, n) are positive definite: all pivots of their elimination are positive."""
    H = H.copy()
    good = np.ones(len(H), dtype=bool)
    for k in range(H.shape[1]):
        good &= H[:, k, k] > 0
        column = np.where(good[:, None], H[:, k + 1 :, k], 0.0)
        pivot = np.where(good, H[:, k, k], 1.0)
        # Of a positive definite H, column^2 <= pivot * diagonal: what overflows is not, and its next pivot says so.
        with np.errstate(over="ignore", invalid="ignore"):
            H[:, k + 1 :, k + 1 :] -= column[:, :, None] * (column / pivot[:, None])[:, None, :]
    return good
