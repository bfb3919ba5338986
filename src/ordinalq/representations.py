"""Representations f of items, averaged over samples and classes.

`HardVotes` and `Posteriors` take the classifier's word, `Histograms` bins each feature or posterior, `MeanDistances`
measures the distance of an item from each class, `RankHistogram` bins the expected class index, `Partition` the leaves
of a decision tree. Shapes: scores S (N, n), features X (N, d'), labels as codes (N,), representation F (N, d).
"""

from abc import ABC, abstractmethod
from typing import Any

import numpy as np
from scipy.spatial.distance import cdist
from sklearn.base import BaseEstimator

from ordinalq._utils.validation import Array, Codes, Floats, Mask, check_choice, check_integer, check_real
from ordinalq.samples.samples import OneHot
from ordinalq.samples.weights import Weights, item_counts


class Representation(BaseEstimator, ABC):
    """A map f from items to R^d.

    Attributes
    ----------
    on : {"scores", "features"}
        What f takes.
    needs_posteriors : bool
        Whether votes instead of probabilities would not do.
    gives_distances : bool
        Whether f holds distances to the classes.
    n_blocks_ : int
        Number of histograms that make up f.
    for_means_ : ndarray (N,) or None
        Which training items may enter the class means M; None for all.
    """

    on: str = "scores"
    needs_posteriors: bool = True
    gives_distances: bool = False
    n_blocks_: int = 1
    for_means_: Mask | None = None

    def check(self) -> None:
        """Raise ValueError if a parameter is out of range."""

    def fit(self, S: Floats, codes: Codes, n_classes: int, weights: Weights | None = None) -> "Representation":
        """Learn bin edges or distances from held-out scores or features.

        Parameters
        ----------
        S : ndarray (N, n)
            Class scores of items, or features (N, d) for methods on features.
        codes : ndarray of int (N,)
            Class index of each item.
        n_classes : int
            Number of classes n.
        weights : Weights, default=None
            Weights of the items.

        Returns
        -------
        Representation
            The fitted representation.
        """
        return self

    @abstractmethod
    def transform(self, S: Floats) -> Floats | OneHot:
        """Return f of each item, (N, d), as an array or as positions of ones.

        Parameters
        ----------
        S : ndarray (N, n)
            Class scores of items, or features (N, d) for methods on features.

        Returns
        -------
        ndarray (N, d) or OneHot
            Represented items.
        """

    def frequency_width(self, F: Floats | OneHot) -> int | None:
        """Return the length of blocks of F (N, d) that sum to one, or None.

        Parameters
        ----------
        F : ndarray (N, d) or OneHot
            Represented items.

        Returns
        -------
        int or None
            Length of the blocks.
        """
        return F.width if isinstance(F, OneHot) else None


class HardVotes(Representation):
    """f(x) = onehot(h(x)), h(x) = argmax_i s_i(x), ties to the lowest class.

    [eq:acc-R], and the observed bins of unfolding [eq:unfolding1] [eq:unfolding2].
    """

    needs_posteriors = False

    def transform(self, S: Floats) -> OneHot:
        """Return the votes, (N, n)."""
        return OneHot(S.argmax(axis=1)[:, None], S.shape[1])


class Posteriors(Representation):
    """f(x) = s(x) [eq:pacc-R]."""

    def transform(self, S: Floats) -> Floats:
        """Return the scores themselves, (N, n)."""
        return S

    def frequency_width(self, F: Floats | OneHot) -> int | None:
        """Return n: scores sum to one."""
        return int(F.shape[1])


class Histograms(Representation):
    """One-hot encoding of the bin of each feature [eq:hdx] [eq:hdx-R] [eq:hdy].

    Bins have equal width between the training minimum and maximum of a feature: inner edges
    e_k = min + k (max - min) / b, k = 1..b-1, outer bins unbounded, bin index 1 + #{k : e_k < x} (a value on an edge
    belongs to the lower bin).

    Parameters
    ----------
    n_bins : int, default=4
        b >= 2, per feature.
    on : {"scores", "features"}, default="scores"
        Posteriors (HDy) or features (HDx).
    """

    def __init__(self, n_bins: int = 4, *, on: str = "scores") -> None:
        self.n_bins = n_bins
        self.on = on

    def check(self) -> None:
        """Raise ValueError if a parameter is out of range."""
        check_integer("n_bins", self.n_bins, minimum=2)
        check_choice("on", self.on, ("scores", "features"))

    def fit(self, S: Floats, codes: Codes, n_classes: int, weights: Weights | None = None) -> "Histograms":
        """Set the bin edges."""
        self.edges_ = np.array([inner_edges(column.min(), column.max(), self.n_bins) for column in S.T])
        self.n_blocks_ = S.shape[1]
        return self

    def transform(self, S: Floats) -> OneHot:
        """Return the one-hot bins, (N, d' b)."""
        columns = [np.searchsorted(edges, column) for edges, column in zip(self.edges_, S.T, strict=True)]
        return OneHot(np.column_stack(columns), self.edges_.shape[1] + 1)


class MeanDistances(Representation):
    """Mean distances f_i(x) of x to the training items of each class i.

    With "md" the distance is the match distance sum_{k<n} |A_k - B_k| of cumulated scores, a sum of one-dimensional
    distances: with the values of each coordinate sorted and summed up from below, mean distances to all classes take
    one binary search per item and coordinate instead of all pairs.

    Parameters
    ----------
    metric : {"md", "euclidean"}, default="md"
        "euclidean" goes through all pairs.
    on : {"scores", "features"}, default="scores"
        Posteriors (EDy) or features (EDx, only "euclidean").
    """

    gives_distances = True

    def __init__(self, metric: str = "md", *, on: str = "scores") -> None:
        self.metric = metric
        self.on = on

    def check(self) -> None:
        """Raise ValueError if a parameter is out of range."""
        check_choice("metric", self.metric, ("md", "euclidean"))
        check_choice("on", self.on, ("scores", "features"))
        if self.metric == "md" and self.on == "features":
            raise ValueError("metric must be 'euclidean' with on='features': the match distance needs class scores.")

    def fit(self, S: Floats, codes: Codes, n_classes: int, weights: Weights | None = None) -> "MeanDistances":
        """Keep the training items, sorted per coordinate for "md"."""
        self.totals_ = item_counts(codes, n_classes, weights)
        if self.metric == "euclidean":
            order = np.argsort(codes, kind="stable")
            self.items_, self.starts_ = S[order], np.searchsorted(codes[order], np.arange(n_classes))
            self.weights_ = None if weights is None else weights.values[order]
            return self
        A = np.cumsum(S, axis=1)[:, :-1]  # (N, n - 1)
        order = np.argsort(A, axis=0, kind="stable")
        self.values_ = np.take_along_axis(A, order, axis=0).T.copy()
        # Number and sum of the values of each class among the r smallest, r = 0..N: (n - 1, N + 1, 2, n)
        self.below_ = np.zeros((A.shape[1], len(A) + 1, 2, n_classes))
        for k in range(A.shape[1]):
            members = one_hot(codes[order[:, k]], n_classes)
            if weights is not None:
                members *= weights.values[order[:, k], None]
            np.cumsum(members, axis=0, out=self.below_[k, 1:, 0])
            np.cumsum(members * self.values_[k][:, None], axis=0, out=self.below_[k, 1:, 1])
        return self

    def transform(self, S: Floats) -> Floats:
        """Return the mean distances to the classes, (N, n)."""
        if self.metric == "euclidean":
            return self._all_pairs(S)
        A = np.cumsum(S, axis=1)[:, :-1]
        totals = self.totals_
        F = np.zeros((len(A), len(totals)))
        for a, values, below in zip(A.T, self.values_, self.below_, strict=True):
            number, total = below[np.searchsorted(values, a)].transpose(1, 0, 2)  # (N, n) each
            # sum of |a - v| over a class: a - v for the values below, v - a for the others
            F += a[:, None] * (2 * number - totals) + below[-1, 1] - 2 * total
        return F / totals

    def _all_pairs(self, S: Floats) -> Floats:
        """Return mean Euclidean distances, computed in blocks of items."""
        F = np.empty((len(S), len(self.totals_)))
        step = max(1, 2**24 // len(self.items_))
        for i in range(0, len(S), step):
            distances = cdist(S[i : i + step], self.items_)
            if self.weights_ is not None:
                distances *= self.weights_
            F[i : i + step] = np.add.reduceat(distances, self.starts_, axis=1) / self.totals_
        return F


class RankHistogram(Representation):
    """One-hot encoding of the bin of the expected class index.

    r(x) = sum_i i s_i(x) in [1, n].

    Parameters
    ----------
    n_bins : int, default=None
        Total number of bins, at least 2; None stands for 5 (n - 1).
    span : {"classes", "data"}, default="classes"
        Bins of equal width over [1, n], left-closed (PDF, o-PDF), or between the training minimum and maximum of r with
        unbounded outer bins, right-closed (o-PDF in the paper's program).
    """

    def __init__(self, n_bins: int | None = None, *, span: str = "classes") -> None:
        self.n_bins = n_bins
        self.span = span

    def check(self) -> None:
        """Raise ValueError if a parameter is out of range."""
        if self.n_bins is not None:
            check_integer("n_bins", self.n_bins, minimum=2)
        check_choice("span", self.span, ("classes", "data"))

    def fit(self, S: Floats, codes: Codes, n_classes: int, weights: Weights | None = None) -> "RankHistogram":
        """Set the bin edges."""
        n_bins = 5 * (n_classes - 1) if self.n_bins is None else self.n_bins
        r = expected_rank(S)
        low, high = (1.0, float(n_classes)) if self.span == "classes" else (r.min(), r.max())
        self.edges_ = inner_edges(low, high, n_bins)
        return self

    def transform(self, S: Floats) -> OneHot:
        """Return the one-hot bins, (N, n_bins)."""
        r = expected_rank(S)
        bins = self.edges_.searchsorted(r, "right") if self.span == "classes" else self.edges_.searchsorted(r)
        return OneHot(bins[:, None], len(self.edges_) + 1)


class Partition(Representation):
    """One-hot encoding of the leaf of a decision tree, without a classifier.

    The tree is grown on one part of the training items, the class means are taken over the other part.

    Parameters
    ----------
    max_leaf_nodes : int, default=20
        Number of leaves.
    fit_fraction : float, default=0.5
        Part of the items that the tree is grown on.
    random_state : int, default=0
        Seed of the split and the tree.
    """

    on = "features"

    def __init__(self, max_leaf_nodes: int = 20, *, fit_fraction: float = 0.5, random_state: Any = 0) -> None:
        self.max_leaf_nodes = max_leaf_nodes
        self.fit_fraction = fit_fraction
        self.random_state = random_state

    def check(self) -> None:
        """Raise ValueError if a parameter is out of range."""
        check_integer("max_leaf_nodes", self.max_leaf_nodes, minimum=2)
        check_real("fit_fraction", self.fit_fraction, low=0, high=1, open_low=True)
        if self.fit_fraction == 1:
            raise ValueError(
                "fit_fraction must be below 1, got 1.0. Class means need items that were not used for the tree."
            )

    def fit(self, S: Floats, codes: Codes, n_classes: int, weights: Weights | None = None) -> "Partition":
        """Grow the tree."""
        # Imported here for the reason that `ordinalq.classifiers.cross_fitting` gives.
        from sklearn.model_selection import train_test_split
        from sklearn.tree import DecisionTreeClassifier

        few = np.bincount(codes, minlength=n_classes) < 2
        if few.any():
            raise ValueError(
                f"class number {few.argmax() + 1} has a single item, but Partition needs two of every class: "
                "one for the tree, one for the class means."
            )
        grown, rest = train_test_split(
            np.arange(len(S)), train_size=self.fit_fraction, stratify=codes, random_state=self.random_state
        )
        tree = DecisionTreeClassifier(max_leaf_nodes=self.max_leaf_nodes, random_state=self.random_state)
        self.tree_ = tree.fit(S[grown], codes[grown], None if weights is None else weights.values[grown])
        self.leaves_ = np.flatnonzero(self.tree_.tree_.children_left == -1)
        self.for_means_ = np.zeros(len(S), dtype=bool)
        self.for_means_[rest] = True
        return self

    def transform(self, S: Floats) -> OneHot:
        """Return the one-hot leaves, (N, max_leaf_nodes)."""
        return OneHot(self.leaves_.searchsorted(self.tree_.apply(S))[:, None], len(self.leaves_))


ALL_REPRESENTATIONS = (
    HardVotes(),
    Posteriors(),
    Histograms(),
    Histograms(3, on="features"),
    MeanDistances(),
    MeanDistances("euclidean"),
    MeanDistances("euclidean", on="features"),
    RankHistogram(),
    RankHistogram(span="data"),
    Partition(),
)


def one_hot(codes: Array, n: int) -> Floats:
    """Return rows of the identity matrix, (N, n), for codes 0..n-1 (N,)."""
    rows: Floats = np.eye(n)[codes]
    return rows


def inner_edges(low: float, high: float, n_bins: int) -> Floats:
    """Return the n_bins - 1 edges between bins of equal width over [low, high]."""
    return np.linspace(low, high, n_bins + 1)[1:-1]


def expected_rank(S: Floats) -> Floats:
    """Return r(x) = sum_i i s_i(x), classes counted from 1, (N,)."""
    return S @ np.arange(1.0, S.shape[1] + 1)
