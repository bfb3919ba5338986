"""Intervals around estimated shares from the covariance of their errors."""

import numpy as np
from scipy.special import ndtri

from ordinalq.bounds import Bounds
from ordinalq.effects.bounds import stack, statistics, variances
from ordinalq.validation import Floats


def normal_bounds(P: Floats, E: Floats, sizes: Floats, level: float, of: str) -> Bounds:
    """Return intervals of shares P (B, n), cumulated shares and mean class, whose errors have covariances E (B, n, n).

    u'p lies within z sqrt(u'Eu) of its estimate, and where the shares are those of N items (B,), within half an item
    more.
    """
    n = P.shape[1]
    value = statistics(P)
    h2 = ndtri((1 + level) / 2) ** 2 * variances(E)
    if of == "sample":
        h2 += 1 / (4 * np.asarray(sizes, dtype=np.float64)[:, None] ** 2)
    half = np.sqrt(h2)
    low, high = np.zeros(2 * n), np.ones(2 * n)
    low[-1], high[-1] = 1, n
    lower, upper = np.clip(value - half, low, high), np.clip(value + half, low, high)
    return stack(level, of, lower, upper, np.arange(1.0, n + 1))
