r"""Estimates that rest on the random draw of the labelled items alone, and so are valid whatever else is wrong.

With g any fixed prediction of the one-hot class e, m of the N items of a group labelled, and eps = e - g, the
*difference estimator* of survey sampling, also known as prediction-powered inference, is

    p_hat = mean_L e + mean g - mean_L g,    Cov(p_hat) = Cov(eps) (1/m - 1/N)   [ + Cov(e) / N for the population ],

mean_L over the labelled items, mean over all. It needs no assumption on groups, classes or shift: a bad g makes the
interval wide, never wrong. The first term vanishes when all items are labelled (the finite-population factor).
"""

from typing import NamedTuple

import numpy as np
from scipy.special import stdtrit

from ordinalq._utils.validation import Floats, check_choice, check_real
from ordinalq.inference.bounds import Bounds, statistics
from ordinalq.inference.effects_bounds import variances
from ordinalq.inference.predict import project

# Variance of a share that is known but for rounding errors.
KNOWN = 1e-16


class LabelMoments(NamedTuple):
    """B groups with labelled items.

    The labelled ones give class counts (B, n), sums of e g' (B, n, n) and of g g' (B, n, n); all of them, the mean of g
    (B, n) and the number of items (B,).
    """

    counts: Floats
    eg: Floats
    gg: Floats
    mean_g: Floats
    n_items: Floats

    @property
    def n_labelled(self) -> Floats:
        """Number of labelled items m, (B,)."""
        return np.asarray(self.counts.sum(axis=1))


class DesignBased(NamedTuple):
    """Estimates (B, n) on the simplex, the difference estimator as it is (B, n), its covariance (B, n, n), bounds."""

    prevalences: Floats
    raw: Floats
    covariance: Floats
    bounds: Bounds


def design_based(labels: LabelMoments, level: float = 0.95, of: str = "sample") -> DesignBased:
    r"""Estimate shares by the difference estimator, with intervals, of the N items at hand or of their population.

    The variance of eps, relative to that of e itself, says how many labels without any g the m labels are worth; the
    interval of a share is Wilson's for that number, with a Student quantile; that of the mean class is Student's. Each
    group has at least two labels, or labels of all of its items.
    """
    check_choice("of", of, ("sample", "population"))
    level = check_real("level", level, low=0, high=1, open_low=True)
    n, m, N = labels.counts.shape[1], labels.n_labelled[:, None], np.asarray(labels.n_items)[:, None]
    sum_g = labels.eg.sum(axis=1)
    raw = labels.counts / m + labels.mean_g - sum_g / m
    ee = labels.counts[:, :, None] * np.eye(n)
    cov_e = _covariance(ee, labels.counts)
    cov_eps = _covariance(ee - labels.eg - labels.eg.transpose(0, 2, 1) + labels.gg, labels.counts - sum_g, m)
    left = np.maximum(1 / m - 1 / N, 0)[:, :, None]
    E = cov_eps * left if of == "sample" else cov_eps * left + cov_e / N[:, :, None]
    P = project(raw, E + KNOWN * np.eye(n))
    value, variance = statistics(raw), variances(E)
    lower, upper = _wilson(value, m * variance, variances(cov_e), m, 1 - m / N if of == "sample" else 1.0, level)
    half = stdtrit(_dof(m)[:, 0], (1 + level) / 2) * np.sqrt(variance[:, -1])
    lower[:, -1], upper[:, -1] = value[:, -1] - half, value[:, -1] + half
    return DesignBased(P, raw, E, Bounds.of_statistics(level, of, lower, upper).holding(P))


def _covariance(squares: Floats, total: Floats, m: Floats | None = None) -> Floats:
    """Covariance (B, n, n) from sums of x x' and of x over m items; m is the sum of `total` where it is a count."""
    m = (total.sum(axis=1, keepdims=True) if m is None else m)[:, :, None]
    return np.asarray((squares - total[:, :, None] * total[:, None, :] / m) / _dof(m))


def _dof(m: Floats) -> Floats:
    """Degrees of freedom of m labels; a single one, of a single item, leaves nothing to estimate."""
    return np.maximum(m - 1, 1)


def _wilson(
    estimate: Floats, error: Floats, var_e: Floats, m: Floats, open_part: Floats | float, level: float
) -> tuple[Floats, Floats]:
    """Wilson's interval of shares (B, k) for m labels, each with error variance `error` where e has `var_e`."""
    # A quarter of an item, so that no share counts as known because it was not seen; unless all items are labelled.
    worth = m * (var_e + 0.25 / m) / np.maximum(error + 0.25 / m * open_part, KNOWN)
    p, z2 = np.clip(estimate, 0, 1), stdtrit(_dof(m), (1 + level) / 2) ** 2
    centre = (p + z2 / (2 * worth)) / (1 + z2 / worth)
    half = np.sqrt(z2 * p * (1 - p) / worth + (z2 / (2 * worth)) ** 2) / (1 + z2 / worth)
    return np.asarray(centre - half), np.asarray(centre + half)
