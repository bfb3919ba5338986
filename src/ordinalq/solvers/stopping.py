"""When iterations have changed the estimate little enough: statistics of two successive histograms.

Each takes the numbers of items of the last and of the new estimate, (b, n), and returns one number per row (b,); the
iteration ends where it is at most the tolerance.
"""

from collections.abc import Callable

import numpy as np
from scipy.special import betaln

from ordinalq._utils.validation import Floats

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
    """Logarithm of the odds that the ratio of two histograms is not the same in all classes (BenZvi et al., 2011).

    sum_i ln B(a_i + 1, b_i + 1) - ln B(A + 1, B + 1), with the beta function B and the totals A, B: each ratio, and the
    common one, is as likely as any other.
    """
    return np.asarray(betaln(old + 1, new + 1).sum(axis=1) - betaln(old.sum(axis=1) + 1, new.sum(axis=1) + 1))


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
