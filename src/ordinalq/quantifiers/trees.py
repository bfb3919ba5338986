"""OQT and ARC: trees of binary classifiers over the ordered classes."""

from abc import abstractmethod
from copy import copy
from typing import Any, Self

import numpy as np
from joblib import Parallel, delayed
from sklearn.base import clone
from sklearn.utils import _safe_indexing
from sklearn.utils.validation import _num_samples, check_is_fitted

from ordinalq._utils.parallel import WatchedCall
from ordinalq._utils.validation import Codes, Floats, Mask, check_choice, check_real
from ordinalq.classifiers.cross_fitting import fit_weighted, held_out, last_step, usable_weights
from ordinalq.inference.model import HeldOut, Traits
from ordinalq.losses import LeastSquares
from ordinalq.quantifiers.base import Quantifier, TrainingGroups, check_every_class, check_items, class_distribution
from ordinalq.regularizers import NoPenalty
from ordinalq.representations import one_hot
from ordinalq.samples.samples import OneHot, Samples, class_means
from ordinalq.samples.summary import Summary
from ordinalq.samples.weights import Weights, item_counts
from ordinalq.simplex import Data
from ordinalq.solvers.choose import choose
from ordinalq.solvers.objectives import LinearObjective
from ordinalq.solvers.solution import Solution


class _TreeQuantifier(Quantifier):
    """A tree of binary classifiers over the classes.

    A tree is an int, the class of a leaf, or a tuple (t, left, right): the classes up to t go left, the others right.
    """

    classifier: Any
    held_out: float
    random_state: Any

    @property
    def traits(self) -> Traits:
        """Traits of a method that fits its own classifiers."""
        return Traits(accepts_scores=False, accepts_weights=True)

    def learn(self, held_out: HeldOut) -> None:
        """Learn nothing: `fit` grows the tree on items."""

    @abstractmethod
    def _grow(self, X: Any, codes: Codes, weights: Weights | None) -> None:
        """Fit the binary classifiers on items (N, ...), codes (N,) and weights."""

    @abstractmethod
    def _test(self, X: Any, codes: Codes, weights: Weights | None) -> None:
        """Measure on held-out items how reliable they are."""

    @abstractmethod
    def _class_scores(self, X: Any) -> Floats:
        """Return the class scores of valid items, (N, n)."""

    def scores(self, X: Any) -> Floats:
        """Return the class scores of the tree, (N, n)."""
        check_is_fitted(self, "p_train_")
        return self._class_scores(check_items(self, X, reset=False))

    def check_parameters(self, n_classes: int) -> None:
        """Raise ValueError if a parameter is out of range."""
        check_real("held_out", self.held_out, low=0, high=1, open_low=True)
        if self.held_out == 1:
            raise ValueError("held_out must be below 1: the classifiers need items too.")

    def frequency_width(self, F: Floats | OneHot) -> int | None:
        """Return n: q is a distribution."""
        return len(self.classes_)

    def _fit_items(self, X: Any, codes: Codes, groups: TrainingGroups | None, weights: Weights | None) -> None:
        """Grow the tree on one part of the items, and test it on the other."""
        # Imported here for the reason that `ordinalq.classifiers.cross_fitting` gives.
        from sklearn.model_selection import GroupShuffleSplit, train_test_split

        n = len(self.classes_)
        few = np.bincount(codes, minlength=n) < 2
        if few.any():
            raise ValueError(
                f"class {self.classes_[few.argmax()]} has a single item, but {type(self).__name__} needs at least two "
                "of every class: one to fit on, one to hold out."
            )
        if groups is None:
            # As scikit-learn rounds it.
            n_kept = int(np.ceil(self.held_out * len(codes)))
            if not n <= n_kept <= len(codes) - n:
                raise ValueError(
                    f"y must have enough items to hold out at least one of each of {n} classes and to fit on one, got "
                    f"{len(codes)} with held_out={self.held_out}. Pass more items or another held_out."
                )
            grown, kept = train_test_split(
                np.arange(len(codes)), test_size=self.held_out, stratify=codes, random_state=self.random_state
            )
        else:
            splitter = GroupShuffleSplit(1, test_size=self.held_out, random_state=self.random_state)
            grown, kept = next(splitter.split(codes, groups=groups.codes))
        check_every_class(codes[grown], self.classes_)
        parts = [None if weights is None else weights.take(part) for part in (grown, kept)]
        self._grow(_safe_indexing(X, grown), codes[grown], parts[0])
        self._test(_safe_indexing(X, kept), codes[kept], parts[1])
        check_every_class(codes[kept], self.classes_)
        self.p_train_ = class_distribution(codes, n, weights)
        S = self._class_scores(_safe_indexing(X, kept))
        place = None if groups is None else np.unique(groups.codes[kept], return_inverse=True)[1]
        self._store(HeldOut(S, codes[kept], parts[1], place, float(len(codes))))


class OQT(_TreeQuantifier):
    """Ordinal quantification tree (Da San Martino et al., 2016).

    The most reliable binary quantifiers come first.

    For each threshold j a classifier g_j of "y <= j" is fitted; D_j, the Kullback-Leibler divergence between the
    fraction of y <= j and the mean of g_j on the held-out items, measures its reliability. The tree takes the threshold
    of the smallest D_j at its root (ties: the smallest j) and goes on within both sides. The posterior of a class is
    the product of g_t (going left) and 1 - g_t (going right) along its path; the estimate is the mean posterior.

    Parameters
    ----------
    classifier : classifier, default=None
        Classifier of the binary problems, see :class:`CC`. Each of the n - 1 problems fits ten models, whose mean
        posterior is used; ``CrossFitted(classifier, cv=5)`` fits five, ``InSample(classifier)`` one. A forest with
        ``oob_score=True`` is fitted once.
    held_out : float, default=1/3
        Fraction of the training items on which the divergences are measured.
    n_jobs : int, default=None
        Number of classifiers that are fitted at the same time.
    random_state : int, default=0
        Seed of the split.

    Attributes
    ----------
    divergences_ : ndarray (n - 1,)
        D_j of each threshold.
    tree_ : tuple
        (t, left, right) with thresholds as positions 0..n-2 in ``classes_``; leaves are positions of classes.
    """

    paper_name = "OQT"
    adjusts = False

    def __init__(
        self, classifier: Any = None, *, held_out: float = 1 / 3, n_jobs: int | None = None, random_state: Any = 0
    ) -> None:
        self.classifier = classifier
        self.held_out = held_out
        self.n_jobs = n_jobs
        self.random_state = random_state

    def _grow(self, X: Any, codes: Codes, weights: Weights | None) -> None:
        model, w = _binary_classifier(self.classifier, weights)
        self.models_ = Parallel(n_jobs=self.n_jobs)(
            delayed(WatchedCall(_fit_side))(model, X, codes > j, w) for j in range(len(self.classes_) - 1)
        )
        if not all(_gives_posteriors(model) for model in self.models_):
            raise TypeError(
                f"OQT needs class probabilities, but {self.classifier!r} has no predict_proba: use for example "
                "LogisticRegression, or CalibratedClassifierCV around it."
            )

    def _test(self, X: Any, codes: Codes, weights: Weights | None) -> None:
        n = len(self.classes_)
        w = None if weights is None else weights.values
        true = np.array([np.average(codes <= j, weights=w) for j in range(n - 1)])
        self.divergences_ = divergence(true, np.average(self._left(X), axis=0, weights=w))
        self.tree_ = most_reliable_first(self.divergences_)

    def _left(self, X: Any) -> Floats:
        """Return g_j of each item, (N, n - 1)."""
        return np.column_stack([model.predict_proba(X)[:, 0] for model in self.models_])

    def _class_scores(self, X: Any) -> Floats:
        G = self._left(X)
        S = np.empty((len(G), len(self.classes_)))

        def descend(tree: Any, product: Floats) -> None:
            if isinstance(tree, int):
                S[:, tree] = product
                return
            t, left, right = tree
            descend(left, product * G[:, t])
            descend(right, product * (1 - G[:, t]))

        descend(self.tree_, np.ones(len(G)))
        return S

    def solve(self, summary: Summary) -> Solution:
        """Return the mean posteriors."""
        return Solution.closed_form(summary.means)


class ARC(_TreeQuantifier):
    """ARC (Esuli, 2016): hard decisions down a tree, then a correction.

    The tree halves the items. Each class has a correction.

    A node splits its classes where the fraction of its items on the left is nearest to one half (ties: the first), and
    fits a classifier on its own items. An item descends to one class.

    Parameters
    ----------
    classifier : classifier, default=None
        Classifier of the binary problems, see :class:`OQT`; it need not give probabilities.
    held_out : float, default=1/3
        Fraction of the training items on which the correction is measured.
    n_jobs : int, default=None
        Number of classifiers of one level that are fitted at the same time.
    random_state : int, default=0
        Seed of the split.
    correction : {"ratio", "acc"}, default="ratio"
        "ratio": predicted fractions times true / predicted fraction of the class on the held-out items (the class is
        left as it is where either is zero), normalized; "acc": adjusted count, as in :class:`ACC`.

    Attributes
    ----------
    tree_ : tuple
        (t, left, right): classes up to position t go left; leaves are positions of classes.
    """

    paper_name = "ARC"

    def __init__(
        self,
        classifier: Any = None,
        *,
        held_out: float = 1 / 3,
        n_jobs: int | None = None,
        random_state: Any = 0,
        correction: str = "ratio",
    ) -> None:
        self.classifier = classifier
        self.held_out = held_out
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.correction = correction

    def check_parameters(self, n_classes: int) -> None:
        """Raise ValueError if a parameter is out of range."""
        super().check_parameters(n_classes)
        check_choice("correction", self.correction, ("ratio", "acc"))

    def _grow(self, X: Any, codes: Codes, weights: Weights | None) -> None:
        n = len(self.classes_)
        model, w = _binary_classifier(self.classifier, weights)
        self.tree_ = halving_tree(item_counts(codes, n, weights))
        self.models_ = {}
        level = [(0, n - 1, self.tree_)]
        while level:
            inner = [(low, high, tree) for low, high, tree in level if not isinstance(tree, int)]
            members = [np.flatnonzero((codes >= low) & (codes <= high)) for low, high, _ in inner]
            fitted = Parallel(n_jobs=self.n_jobs)(
                delayed(WatchedCall(_fit_side))(
                    model, _safe_indexing(X, items), codes[items] > tree[0], None if w is None else w[items]
                )
                for (_, _, tree), items in zip(inner, members, strict=True)
            )
            level = []
            for (low, high, (t, left, right)), side in zip(inner, fitted, strict=True):
                self.models_[low, high] = side
                level += [(low, t, left), (t + 1, high, right)]

    def _test(self, X: Any, codes: Codes, weights: Weights | None) -> None:
        n = len(self.classes_)
        votes = self._class_scores(X)
        w = None if weights is None else weights.values
        self.ratios_ = _ratios(class_distribution(codes, n, weights), np.average(votes, axis=0, weights=w))
        if self.correction == "acc":
            check_every_class(codes, self.classes_)
            self.M_ = class_means(votes, codes, None, weights)

    def resample(self, F: Floats | OneHot, drawn: Samples) -> tuple[Self, Floats | None]:
        """Return the quantifier with a correction by other held-out items."""
        twin = copy(self)
        M = drawn.average(F).T
        true = drawn.sizes / drawn.sizes.sum()
        twin.ratios_ = _ratios(true, M @ true)
        if self.correction == "acc":
            twin.M_ = M
        return twin, None

    def _class_scores(self, X: Any) -> Floats:
        """Return the class that each item descends to as one-hot votes, (N, n)."""
        predicted = np.empty(_num_samples(X), dtype=np.intp)

        def descend(low: int, high: int, tree: Any, items: Codes) -> None:
            if isinstance(tree, int) or len(items) == 0:
                predicted[items] = low
                return
            t, left, right = tree
            goes_right = self.models_[low, high].predict(_safe_indexing(X, items)) > 0
            descend(low, t, left, items[~goes_right])
            descend(t + 1, high, right, items[goes_right])

        descend(0, len(self.classes_) - 1, self.tree_, np.arange(len(predicted)))
        return one_hot(predicted, len(self.classes_))

    def response_matrix(self) -> Floats | None:
        """Return the mean votes of each class where they correct the estimate."""
        return self.M_ if self.correction == "acc" else None

    def solve(self, summary: Summary) -> Solution:
        """Return the corrected fractions of votes."""
        if self.correction == "acc":
            objective = LinearObjective(LeastSquares(), NoPenalty(), Data(summary.means, self.M_, summary.sizes))
            solution: Solution = choose(objective).minimize(objective)
            return solution
        P = summary.means * self.ratios_
        return Solution.closed_form(P / P.sum(axis=1, keepdims=True))


def _ratios(true: Floats, predicted: Floats) -> Floats:
    """Return true / predicted fraction of each class, (n,), 1 where either is zero."""
    both = (true > 0) & (predicted > 0)
    return np.where(both, np.divide(true, predicted, out=np.ones(len(true)), where=both), 1.0)


def divergence(true: Any, estimated: Any) -> Any:
    """Return the Kullback-Leibler divergence in bits of binary distributions.

    Both are smoothed, z <- (z + e) / (1 + 2 e) with e = 1e-6.
    """
    e = 1e-6
    a, b = (true + e) / (1 + 2 * e), (estimated + e) / (1 + 2 * e)
    return a * np.log2(a / b) + (1 - a) * np.log2((1 - a) / (1 - b))


def most_reliable_first(divergences: Any) -> Any:
    """Return the tree whose nodes take the smallest divergence (n - 1,).

    >>> most_reliable_first([0.3, 0.1, 0.2])
    (1, (0, 0, 1), (2, 2, 3))
    """

    def grow(low: int, high: int) -> Any:  # thresholds low..high-1, classes low..high
        if low == high:
            return low
        t = low + int(np.argmin(divergences[low:high]))
        return t, grow(low, t), grow(t + 1, high)

    return grow(0, len(divergences))


def halving_tree(counts: Any) -> Any:
    """Return the tree whose nodes split `counts` (n,) as evenly as possible.

    >>> halving_tree([10, 10, 10, 30])
    (2, (0, 0, (1, 1, 2)), 3)
    """
    counts = np.asarray(counts)

    def grow(low: int, high: int) -> Any:  # classes low..high
        if low == high:
            return low
        below = np.cumsum(counts[low : high + 1])
        # |1/2 - fraction| times twice the total: integers, so that ties are ties.
        t = low + int(np.argmin(np.abs(below[-1] - 2 * below[:-1])))
        return t, grow(low, t), grow(t + 1, high)

    return grow(0, len(counts) - 1)


def _binary_classifier(classifier: Any, weights: Weights | None) -> tuple[Any, Floats | None]:
    """Return the classifier of the binary problems, and its weights (N,)."""
    model = _without_bags(classifier)
    return model, None if weights is None else usable_weights(model, weights.values, len(weights.values))


def _without_bags(classifier: Any) -> Any:
    """Return a forest without out-of-bag scores, or a cross-fitted classifier."""
    if classifier is not None and getattr(last_step(classifier), "oob_score", False):
        forest = clone(classifier)
        last_step(forest).set_params(oob_score=False)
        return forest
    return held_out(classifier)


def _gives_posteriors(model: Any) -> bool:
    return bool(getattr(model, "gives_posteriors_", hasattr(model, "predict_proba")))


def _fit_side(model: Any, X: Any, right: Mask, w: Floats | None) -> Any:
    """Fit a classifier of 0 (left, lower classes) against 1, with weights (N,)."""
    return fit_weighted(clone(model), X, right.astype(np.intp), w)
