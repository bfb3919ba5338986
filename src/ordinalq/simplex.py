"""The probability simplex {p : p >= 0, sum p = 1}: its soft-max chart, uniform draws, clean-up of estimates."""

from typing import Any, NamedTuple

import numpy as np

from ordinalq._utils.validation import Floats, check_integer, check_random_state


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
    """Chart of the open simplex: p_i = exp(l_i) / sum_j exp(l_j) with l_1 = 0 [eq:softmax].

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
    """Derivatives with respect to the latents, from those with respect to p (chain rule).

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
    """Return ghat = g - (p.g) 1, shape (B, n): its negative entries are where mass should be added."""
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
    """Make estimates distributions: NaN, infinite and negative entries become 0, rows are divided by their sum.

    A row without positive entry becomes uniform. P and the result have shape (B, n).
    """
    P = np.where(np.isfinite(P) & (P > 0), P, 0.0)
    empty = P.sum(axis=1) == 0
    P[empty] = 1.0
    return np.asarray(P / P.sum(axis=1, keepdims=True))
