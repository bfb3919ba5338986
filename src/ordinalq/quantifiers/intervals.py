"""Intervals around estimated shares from the covariance of their errors."""

import numpy as np
from scipy.special import ndtri

from ordinalq._utils.validation import Floats
from ordinalq.inference.bounds import Bounds, statistics
from ordinalq.inference.group_model import variances


def normal_bounds(P: Floats, E: Floats, sizes: Floats, level: float, of: str) -> Bounds:
    """Return intervals of shares P (B, n), cumulated shares and mean class, whose errors have covariances E (B, n, n).

    u'p lies within z sqrt(u'Eu) of its estimate, and where the shares are those of N items (B,), within half an item
    more.
    """
    h2 = ndtri((1 + level) / 2) ** 2 * variances(E)
    if of == "sample":
        h2 += 1 / (4 * np.asarray(sizes, dtype=np.float64)[:, None] ** 2)
    value, half = statistics(P), np.sqrt(h2)
    return Bounds.of_statistics(level, of, value - half, value + half)
