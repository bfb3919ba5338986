"""Error measures of ordinal quantification: how far an estimate p_hat is from the true distribution p.

What to use when: NMD, the normalized match distance (earth mover's distance over the class index), is the usual
choice; RNOD weighs squared errors by the distance between classes and looks only at classes that do occur; RSNOD is
its symmetric form; RNADW looks at all classes. All are 0 for a perfect estimate and at most 1.
Paper: the section on evaluation measures.
"""

from typing import Any

import numpy as np

from ordinalq._utils.validation import Floats, check_distributions


def md(p: Any, p_hat: Any, *, distances: Any = None) -> Any:
    """Match distance, sum_{i<n} d_i |P_hat(y_i) - P(y_i)| with cumulative P [eq:EMD].

    Parameters
    ----------
    p, p_hat : array-like (n,) or (B, n)
        True and estimated distributions; a vector is paired with every row of a matrix.
    distances : array-like (n - 1,), default=None
        d_i > 0, the distance between class i and class i + 1; None stands for all 1.

    Returns
    -------
    float or ndarray (B,)

    Examples
    --------
    >>> md([0.2, 0.1, 0.05, 0.2, 0.45], [0.2, 0.2, 0.2, 0.2, 0.2])
    0.6
    """
    difference, _, _, d = _checked(p, p_hat, distances)
    return _result(_match_distance(difference, d))


def nmd(p: Any, p_hat: Any, *, distances: Any = None) -> Any:
    """Normalized match distance, MD / sum_i d_i, in [0, 1] [eq:NMD].

    With unit distances the divisor is n - 1. Parameters as for :func:`md`.

    Examples
    --------
    >>> nmd([1, 0, 0, 0, 0], [0, 1, 0, 0, 0])
    0.25
    """
    difference, _, _, d = _checked(p, p_hat, distances)
    return _result(_match_distance(difference, d) / d.sum())


def rnod(p: Any, p_hat: Any, *, distances: Any = None) -> Any:
    """Root normalized order-aware divergence, sqrt(OD(p || p_hat) / (n - 1)) [eq:RNOD].

    OD(p || p_hat) is the mean of DW_i = sum_j |i - j| (p_j - p_hat_j)^2 over the classes i with p_i > 0. It is not
    symmetric. With `distances`, |i - j| is the distance between the classes and n - 1 the sum of all. Parameters as
    for :func:`md`.

    Examples
    --------
    >>> rnod([1, 0, 0, 0, 0], [0, 1, 0, 0, 0])
    0.5
    """
    difference, P, _, d = _checked(p, p_hat, distances)
    return _result(np.sqrt(_order_aware(difference, P, d) / d.sum()))


def rsnod(p: Any, p_hat: Any, *, distances: Any = None) -> Any:
    """Root symmetric normalized order-aware divergence, sqrt((OD(p || p_hat) + OD(p_hat || p)) / 2 / (n - 1)).

    OD as in :func:`rnod`; parameters as for :func:`md`.

    Examples
    --------
    >>> rsnod([1, 0, 0, 0, 0], [0, 1, 0, 0, 0])
    0.5
    """
    difference, P, P_hat, d = _checked(p, p_hat, distances)
    both = (_order_aware(difference, P, d) + _order_aware(difference, P_hat, d)) / 2
    return _result(np.sqrt(both / d.sum()))


def rnadw(p: Any, p_hat: Any, *, distances: Any = None) -> Any:
    """Root normalized average distance-weighted sum of squares, sqrt(mean_i DW_i / (n - 1)) over all classes i.

    DW as in :func:`rnod`; parameters as for :func:`md`.

    Examples
    --------
    >>> round(rnadw([1, 0, 0], [0, 1, 0]), 6)
    0.912871
    """
    difference, P, _, d = _checked(p, p_hat, distances)
    return _result(np.sqrt(_order_aware(difference, np.ones_like(P), d) / d.sum()))


def _match_distance(difference: Floats, d: Floats) -> Floats:
    return np.asarray(np.abs(np.cumsum(difference, axis=-1)[..., :-1]) @ d)


def _order_aware(difference: Floats, P: Floats, d: Floats) -> Floats:
    """Return OD: the mean over {i : P_i > 0} of sum_j |t_i - t_j| difference_j^2, t the positions of the classes."""
    t = np.concatenate([[0.0], np.cumsum(d)])
    DW = np.square(difference) @ np.abs(t[:, None] - t)
    present = P > 0
    return np.asarray((DW * present).sum(axis=-1) / present.sum(axis=-1))


def _checked(p: Any, p_hat: Any, distances: Any) -> tuple[Floats, Floats, Floats, Floats]:
    """Return p - p_hat, p, p_hat and the distances, all valid and of matching shapes."""
    P = check_distributions("p", p)
    P_hat = check_distributions("p_hat", p_hat)
    if P.shape[-1] != P_hat.shape[-1] or (P.ndim == P_hat.ndim == 2 and len(P) != len(P_hat)):
        raise ValueError(f"p and p_hat must have the same shape, got {P.shape} and {P_hat.shape}.")
    n = P.shape[-1]
    d = np.ones(n - 1) if distances is None else np.asarray(distances, dtype=np.float64)
    if d.shape != (n - 1,) or not (np.isfinite(d).all() and (d > 0).all()):
        raise ValueError(f"distances must be {n - 1} positive numbers for {n} classes, got {distances!r}.")
    return P - P_hat, P, P_hat, d


def _result(value: Floats) -> Any:
    return float(value) if value.ndim == 0 else value
