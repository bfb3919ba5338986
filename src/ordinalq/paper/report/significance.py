"""Ranks of methods over data sets or samples, and tests of differences.

Reference: Demsar, JMLR 7, 2006.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.stats import chi2, rankdata, studentized_range

from ordinalq._utils.validation import Floats, check_real

# Errors that agree to this many decimals are ties: the same estimate, computed in another order.
DECIMALS = 13


@dataclass(frozen=True)
class Ranking:
    """Average ranks, 1 is best."""

    ranks: dict[str, float]  # method -> average rank; ties share their mean rank
    n_blocks: int  # data sets or samples over which ranks were averaged
    statistic: float  # of Friedman's test of "all methods are equally good", corrected for ties
    p_value: float  # of that test; NaN for fewer than two methods
    difference: float  # Nemenyi's critical difference: ranks that are closer do not differ significantly
    level: float  # of the critical difference

    def groups(self) -> list[list[str]]:
        """Return the longest runs of methods within the critical difference.

        Methods are ordered by rank, best first.
        """
        order = sorted(self.ranks, key=lambda name: self.ranks[name])
        values = np.array([self.ranks[name] for name in order])
        ends = np.searchsorted(values, values + self.difference, side="right")
        runs: list[list[str]] = []
        reached = 0
        for first, end in enumerate(ends.tolist()):
            if end > reached and end - first > 1:
                runs.append(order[first:end])
            reached = max(reached, end)
        return runs


def rank(errors: Mapping[str, Any], *, level: float = 0.05) -> Ranking:
    """Return average ranks of methods over blocks with errors (N,).

    A block is a data set or a sample, the same for all methods. With k methods, N blocks and average ranks R_j,
    Friedman's statistic is 12 N / (k (k+1)) sum_j (R_j - (k+1)/2)^2, divided by 1 - sum(t^3 - t) / (N k (k^2-1)) for
    ties of size t. The critical difference is q sqrt(k (k+1) / (6 N)), q the quantile of the studentized range over
    sqrt(2).

    >>> ranking = rank({"a": [0.1, 0.2, 0.1], "b": [0.3, 0.2, 0.4], "c": [0.5, 0.6, 0.3]})
    >>> [round(r, 2) for r in ranking.ranks.values()]
    [1.17, 2.17, 2.67]
    """
    level = check_real("level", level, low=0, high=1, open_low=True)
    if not errors:
        raise ValueError("errors must hold at least one method, got none.")
    E: Floats = np.array([np.asarray(column, dtype=np.float64) for column in errors.values()])  # (k, N)
    if E.ndim != 2 or E.shape[1] == 0 or not np.isfinite(E).all():
        raise ValueError("errors must hold one finite number per method and block.")
    k, n_blocks = E.shape
    R = rankdata(np.round(E, DECIMALS), axis=0)
    average = R.mean(axis=1)
    statistic = p_value = difference = np.nan
    if k > 1:
        sizes = (R[:, None, :] == R[None, :, :]).sum(axis=1)  # (k, N): how many share the rank
        # A tie of size t is counted t times, hence t^2 - 1 instead of t^3 - t.
        ties = 1 - np.sum(sizes**2 - 1) / (n_blocks * k * (k**2 - 1))
        spread = 12 * n_blocks / (k * (k + 1)) * np.sum((average - (k + 1) / 2) ** 2)
        statistic = float(spread / ties) if ties > 0 else 0.0
        p_value = float(chi2.sf(statistic, k - 1))
        quantile = studentized_range.ppf(1 - level, k, np.inf) / np.sqrt(2)
        difference = float(quantile * np.sqrt(k * (k + 1) / (6 * n_blocks)))
    ranks = dict(zip(errors, average.tolist(), strict=True))
    return Ranking(ranks, n_blocks, statistic, p_value, difference, level)
