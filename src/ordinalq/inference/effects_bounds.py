r"""Intervals around predicted shares: of each class, of the cumulated shares, and of the mean class.

For any u'p, a share or the mean class, the half width h is

    h^2 = t^2 phi u'Eu (1 + (rho - 1) / 2) + 1 / (4 N^2),   rho = min(4, u' (diag p - p p') u / u'Bu),

with t a quantile of the Student distribution and phi the widening of `predict`. rho lets the error of a share follow
the share, half of it, since E is the same for all groups of a size; it is 1 for the mean class. The last term is half
an item, for the sample. Labels of the group itself replace phi and rho step by step: what they tell does not depend on
other groups.
"""

import numpy as np
from scipy.special import ndtri, stdtrit

from ordinalq._utils.validation import Floats, check_real
from ordinalq.inference.bounds import Bounds, statistics
from ordinalq.inference.predict import Prediction, cumulated_variance

# A share is at most this many times more variable than in the mean of all groups.
MOST_VARIABLE = 4.0
# How far the variance of a share follows the share.
FOLLOWS = 0.5


def bounds(prediction: Prediction, level: float = 0.95) -> Bounds:
    """Return intervals that hold the truth of a group with the given probability, each by itself."""
    level = check_real("level", level, low=0, high=1, open_low=True)
    value, half = statistics(prediction.mean), half_widths(prediction, level)
    # An interval holds its estimate: a median may be beyond half a width where a share is nearly nothing.
    return Bounds.of_statistics(level, prediction.of, value - half, value + half).holding(prediction.prevalences)


def stated_covariance(prediction: Prediction, level: float) -> Floats:
    """Return E (B, n, n), scaled so that normal intervals by it are as wide as those of `bounds`, on average.

    The average is that over the cumulated shares and the mean class. Differences of groups are judged by it.
    """
    n = prediction.mean.shape[1]
    variance = np.maximum(variances(prediction.covariance), np.finfo(float).tiny)
    ratio = half_widths(prediction, level) ** 2 / (ndtri((1 + level) / 2) ** 2 * variance)
    return np.asarray(prediction.covariance * ratio[:, n:].mean(axis=1)[:, None, None])


def variances(E: Floats) -> Floats:
    """Variances of `statistics` for shares with covariance E (B, n, n), (B, 2n)."""
    index = np.arange(1.0, E.shape[1] + 1)
    single = np.maximum(np.diagonal(E, axis1=1, axis2=2), 0)
    mean = np.maximum(np.matmul(E @ index, index[:, None]), 0)
    return np.hstack([single, cumulated_variance(E), mean])


def half_widths(prediction: Prediction, level: float) -> Floats:
    """Half width h of each statistic, before it is cut to possible values, (B, 2n)."""
    variance = variances(prediction.covariance)
    # What part of the error is left to the model of the groups: all of it, unless there are labels.
    left = np.ones_like(variance)
    if prediction.unlabelled is not None:
        left = np.clip(variance / np.maximum(variances(prediction.unlabelled), np.finfo(float).tiny), 0, 1)
    share, prior = statistics(prediction.mean), statistics(prediction.centre)
    rho = np.minimum(MOST_VARIABLE, share * (1 - share) / (prior * (1 - prior)))
    rho[:, -1] = 1
    factor = 1 + left * (prediction.widening[:, None] - 1)
    t = np.repeat(stdtrit(prediction.dof, (1 + level) / 2)[:, None], variance.shape[1], axis=1)
    t[:, -1] = stdtrit(prediction.mean_dof, (1 + level) / 2)
    h2 = t**2 * variance * factor * (1 + FOLLOWS * left * (rho - 1))
    if prediction.of == "sample":
        h2 += left / (4 * prediction.n_items[:, None] ** 2)
    return np.asarray(np.sqrt(h2))
