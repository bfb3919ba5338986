"""When iterations have changed the estimate little enough: statistics of two successive histograms.

Each takes the numbers of items of the last and of the new estimate, (b, n), and returns one number per row (b,); the
iteration ends where it is at most the tolerance.
"""

from collections.abc import Callable

import numpy as np
from scipy.special import gammaln

from ordinalq.validation import Floats

Stop = Callable[[Floats, Floats], Floats]


def mean_change(old: Floats, new: Floats) -> Floats:
    """Mean absolute change of the shares."""
    return np.asarray(np.abs(_shares(new) - _shares(old)).mean(axis=1))


def kolmogorov_smirnov(old: Floats, new: Floats) -> Floats:
    """Largest difference of the cumulated shares."""
    return np.asarray(np.abs(np.cumsum(_shares(new) - _shares(old), axis=1)).max(axis=1))


def chi_square(old: Floats, new: Floats) -> Floats:
    """Chi-square of two histograms per class: (1/n) sum_i (sqrt(A/B) b_i - sqrt(B/A) a_i)^2 / (a_i + b_i)."""
    A, B = (counts.sum(axis=1, keepdims=True) for counts in (old, new))
    difference = np.sqrt(A / B) * new - np.sqrt(B / A) * old
    total = old + new
    return np.asarray((difference**2 / np.where(total > 0, total, 1.0)).mean(axis=1))


def bayes_factor(old: Floats, new: Floats) -> Floats:
    """Logarithm of the odds that two histograms have different distributions, each being as likely as any other.

    ln Gamma(a_i + 1) + ln Gamma(b_i + 1) - ln Gamma(a_i + b_i + 1), summed, and the same for the totals + n - 1, with
    the opposite sign, and + ln Gamma(n).
    """
    n = old.shape[1]
    A, B = old.sum(axis=1), new.sum(axis=1)
    classes = (gammaln(old + 1) + gammaln(new + 1) - gammaln(old + new + 1)).sum(axis=1)
    return np.asarray(classes - gammaln(A + n) - gammaln(B + n) + gammaln(A + B + n) + gammaln(n))


def maximum_change(old: Floats, new: Floats) -> Floats:
    """Largest relative change: max_i |b_i - a_i| / (a_i + b_i)."""
    total = old + new
    return np.asarray((np.abs(new - old) / np.where(total > 0, total, 1.0)).max(axis=1))


STOPS: dict[str, Stop] = {
    "mean": mean_change,
    "ks": kolmogorov_smirnov,
    "chi-square": chi_square,
    "bayes-factor": bayes_factor,
    "max-change": maximum_change,
}


def _shares(counts: Floats) -> Floats:
    return np.asarray(counts / counts.sum(axis=1, keepdims=True))
