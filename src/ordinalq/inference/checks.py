"""The functions of an item that the fit test looks at: more of them than there are classes."""

import numpy as np

from ordinalq._utils.validation import Codes, Floats
from ordinalq.representations import expected_rank
from ordinalq.samples.samples import OneHot, Samples
from ordinalq.samples.weights import Weights, class_shares


class ScoreChecks:
    """g(x): histogram of the expected class index (2 n bins), that of the highest score (n bins), the scores (n).

    Under prior probability shift the mean of g over a sample is a mixture of its class means, as that of any function
    of the items is. Bins hold equal parts of the held-out items, where every class counts alike: a sample may hold many
    items of a class that is rare in training. The inner edges are `rank_edges` (at most 2 n - 1,) and `top_edges` (at
    most n - 1,).
    """

    def __init__(self, rank_edges: Floats, top_edges: Floats) -> None:
        self.rank_edges = rank_edges
        self.top_edges = top_edges

    @classmethod
    def of(cls, S: Floats, codes: Codes, weights: Weights | None = None) -> "ScoreChecks":
        """Return the functions for held-out scores S (N, n), codes (N,) and weights."""
        n = S.shape[1]
        w = class_shares(codes, n, weights)
        return cls(weighted_quantiles(expected_rank(S), w, 2 * n), weighted_quantiles(_highest(S), w, n))

    def total(self, S: Floats, samples: Samples) -> Floats:
        """Return the sums of g over samples of items with scores S (N, n), (B, 4 n)."""
        width = 2 * S.shape[1]
        bins = [self.rank_edges.searchsorted(expected_rank(S)), self.top_edges.searchsorted(_highest(S))]
        counts = samples.total(OneHot(np.column_stack(bins), width))
        # The second histogram has half as many bins.
        return np.hstack([counts[:, : width + width // 2], samples.total(S)])

    def values(self, S: Floats) -> Floats:
        """Return g of each item, (N, 4 n)."""
        return self.total(S, Samples(np.arange(len(S)), np.arange(len(S) + 1), len(S)))


def _highest(S: Floats) -> Floats:
    """Return the highest score of each item, (N,): few long rows are faster than many short ones."""
    return np.asarray(np.ascontiguousarray(S.T).max(axis=0))


def weighted_quantiles(x: Floats, weights: Floats, n_bins: int) -> Floats:
    """Return distinct edges that cut the weighted values x (N,) into at most n_bins parts of equal weight."""
    order = np.argsort(x, kind="stable")
    cumulated = np.cumsum(weights[order])
    at = np.searchsorted(cumulated, np.arange(1, n_bins) / n_bins * cumulated[-1])
    edges = np.unique(x[order][np.minimum(at, len(x) - 1)])
    return np.asarray(edges[edges < x.max()])
