"""Estimates for people who come with a response matrix and an observed histogram, and have no classifier."""

import numpy as np

from ordinalq.methods._base import Quantifier, estimates
from ordinalq.methods.unfolding import RUN
from ordinalq.validation import check_real


def solve(q, M, method=None, N=None):
    """Solve q = M p for the class distribution p, with the loss and the regularizer of a method.

    Parameters
    ----------
    q : array-like (d,) or (B, d)
        Observed histograms: fractions where every row sums to one, else counts.
    M : array-like (d, n)
        Response matrix, n >= 2: column j is the distribution of class j over the observed bins.
    method : quantifier, default=None
        Not fitted; ACC or PACC (least squares), HDx or HDy (one histogram), PDF (ordered bins), RUN, IBU, one of their
        o-forms, or a ComposedQuantifier. None stands for ``RUN(tau=10.0)``.
    N : int or array-like (B,), default=None
        Number of observed items; needed where q are fractions and the method is RUN. None stands for the sum of counts.

    Returns
    -------
    ndarray (n,) or (B, n)

    Examples
    --------
    >>> import ordinalq as oq
    >>> M = [[0.9, 0.1], [0.1, 0.9]]
    >>> oq.solve([100, 150], M, method=oq.ACC()).round(4)
    array([0.375, 0.625])
    """
    method = RUN() if method is None else method
    M = _matrix("M", M)
    if M.shape[1] < 2:
        raise ValueError(f"M must have at least 2 columns, one per class, got shape {M.shape}.")
    if (M < 0).any() or (np.abs(M.sum(axis=0) - 1) > 1e-4).any():
        raise ValueError(
            "the columns of M must be distributions over the observed bins (>= 0, sum 1), "
            f"got column sums {np.array2string(M.sum(axis=0), precision=4, threshold=8)}."
        )
    single = np.ndim(q) == 1
    Q = _matrix("q", [q] if single else q)
    if Q.shape[1] != len(M):
        raise ValueError(f"q must have one entry per row of M, {len(M)}, got {Q.shape[1]}.")
    totals = Q.sum(axis=1)
    if (Q < 0).any() or (totals == 0).any():
        raise ValueError("q must be counts or fractions >= 0 with a positive sum in every row.")
    if N is None:
        sizes = None if (np.abs(totals - 1) <= 1e-6).all() else totals
    else:
        sizes = np.array([check_real("N", n, low=0, open_low=True) for n in np.atleast_1d(N).tolist()])
        if len(sizes) not in (1, len(Q)):
            raise ValueError(f"N must be one number, or one per row of q, {len(Q)}, got {len(sizes)}.")
        sizes = np.broadcast_to(sizes, len(Q))
    if not isinstance(method, Quantifier):
        raise TypeError(f"method must be a quantifier such as RUN(tau=10.0), got {method!r}.")
    P = estimates(method._solve_response(Q / totals[:, None], M, sizes))
    return P[0] if single else P


def _matrix(name, value):
    try:
        array = np.asarray(value, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise TypeError(f"{name} must be an array of numbers, got {value!r:.80}.") from error
    if array.ndim != 2 or array.size == 0 or not np.isfinite(array).all():
        raise ValueError(f"{name} must be a finite array of numbers with rows and columns, got shape {array.shape}.")
    return array
