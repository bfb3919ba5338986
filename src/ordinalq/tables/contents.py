"""A look at a model that was loaded, before it is used: what compiled code would follow without looking."""

from collections.abc import Iterable
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.base import BaseEstimator
from sklearn.ensemble import BaggingClassifier, BaggingRegressor, BaseEnsemble
from sklearn.ensemble._hist_gradient_boosting.predictor import TreePredictor
from sklearn.tree import BaseDecisionTree
from sklearn.tree._tree import Tree

# More processes or threads than this are those of a forged file.
MAX_JOBS = 1024


def check_contents(model: Any) -> None:
    """Refuse decision trees, sparse matrices and generators that point outside of themselves; all in one walk."""
    # Thing, features that its estimator checks items for, and whether it is inside of an ensemble.
    waiting: list[tuple[Any, Any, bool]] = [(model, None, False)]
    seen: set[int] = set()
    while waiting:
        thing, n_features, in_ensemble = waiting.pop()
        if isinstance(thing, Tree):
            _check_tree(thing, n_features)
            continue
        if isinstance(thing, TreePredictor):
            _check_boosted_tree(thing, n_features)
            continue
        if id(thing) in seen and not isinstance(thing, BaseEstimator):
            continue
        seen.add(id(thing))
        parts: Iterable[Any] = ()
        if isinstance(thing, BaseEstimator):
            n_features, in_ensemble = _check_estimator(thing, n_features, in_ensemble), _hands_on(thing)
            parts = vars(thing).values()
        elif isinstance(thing, dict):
            parts = thing.values()
        elif isinstance(thing, list | tuple | set):
            parts = thing
        elif isinstance(thing, np.ndarray):
            parts = thing.ravel() if thing.dtype == object else ()
        elif sparse.issparse(thing):
            _check_sparse(thing)
        elif isinstance(thing, np.random.RandomState):
            _check_generator(thing.get_state(legacy=False))
        elif isinstance(thing, np.random.Generator):
            _check_generator(thing.bit_generator.state)
        elif hasattr(thing, "__dict__") and type(thing).__module__.partition(".")[0] == "ordinalq":
            parts = vars(thing).values()
        waiting += [(part, n_features, in_ensemble) for part in parts]


def _hands_on(estimator: Any) -> bool:
    """Return whether an estimator gives its items to others as they are, without their looking at them."""
    # Bagging may give a tree some of the features, and has it look at them.
    return isinstance(estimator, BaseEnsemble) and not isinstance(estimator, BaggingClassifier | BaggingRegressor)


def _check_estimator(estimator: Any, n_features: Any, in_ensemble: bool) -> Any:
    """Return the number of features that an estimator checks items for."""
    number = vars(estimator).get("n_features_in_")
    if isinstance(estimator, BaseDecisionTree) and "tree_" in vars(estimator):
        if in_ensemble and number != n_features:
            raise ValueError(f"a decision tree in it is for {number} features, its model for {n_features}")
        _check_outputs(estimator)
    jobs = vars(estimator).get("n_jobs")
    if isinstance(jobs, int) and abs(jobs) > MAX_JOBS:
        raise ValueError(f"a part of it asks for {jobs:,} jobs at the same time")
    return number


def _check_outputs(estimator: Any) -> None:
    """Refuse a tree whose leaves know other classes than its estimator."""
    tree = estimator.tree_
    n_classes = vars(estimator).get("n_classes_")
    if isinstance(n_classes, int | np.integer) and tree.n_outputs == 1 and tree.max_n_classes != n_classes:
        raise ValueError(f"a decision tree in it is for {tree.max_n_classes} classes, its model for {n_classes}")


def _check_tree(tree: Any, n_features: Any) -> None:
    """Refuse decision trees whose nodes point to nodes other than their descendants, or to features that do not exist.

    scikit-learn follows the nodes without looking, so that those of a forged file could lead anywhere in the memory.
    It compares new items with the `n_features_in_` of the estimator that it is given, and no more inside of an
    ensemble: what counts is the number there, not that of the tree.
    """
    if tree.node_count < 1:
        raise ValueError("a decision tree in it has no nodes")
    inner = tree.children_left != -1
    own = np.arange(tree.node_count)[inner]
    for children in (tree.children_left[inner], tree.children_right[inner]):
        if not ((children > own) & (children < tree.node_count)).all():
            raise ValueError("a decision tree in it is not a tree")
    if not ((tree.feature[inner] >= 0) & (tree.feature[inner] < tree.n_features)).all():
        raise ValueError("a decision tree in it asks for features that do not exist")
    if not isinstance(n_features, int | np.integer) or tree.n_features != n_features:
        raise ValueError(f"a decision tree in it is for {tree.n_features} features, its model for {n_features}")


def _check_boosted_tree(tree: Any, n_features: Any) -> None:
    """Refuse trees of gradient boosting that point outside of themselves, as `_check_tree` does.

    Splits by category follow further tables; none of our own models has any.
    """
    nodes = tree.nodes
    inner = nodes["is_leaf"] == 0
    own = np.arange(len(nodes))[inner]
    if len(nodes) < 1 or not all(
        ((nodes[side][inner] > own) & (nodes[side][inner] < len(nodes))).all() for side in ("left", "right")
    ):
        raise ValueError("a boosted tree in it is not a tree")
    features = nodes["feature_idx"][inner]
    if not isinstance(n_features, int | np.integer) or not ((features >= 0) & (features < n_features)).all():
        raise ValueError("a boosted tree in it asks for features that do not exist")
    if nodes["is_categorical"][inner].any():
        raise ValueError("a boosted tree in it splits by categories: give it numbers instead")


def _check_sparse(matrix: Any) -> None:
    """Refuse a sparse matrix with positions outside of it."""
    if hasattr(matrix, "check_format"):
        matrix.check_format(full_check=True)
    elif matrix.format == "coo":
        for positions, length in zip(matrix.coords, matrix.shape, strict=True):
            if len(positions) and not (positions.min() >= 0 and positions.max() < length):
                raise ValueError("a sparse matrix in it has positions outside of it")


def _check_generator(state: Any) -> None:
    """Refuse a generator of random numbers that reads beyond its state."""
    inner = state.get("state", {})
    if isinstance(inner, dict) and "pos" in inner and not 0 <= int(inner["pos"]) <= len(inner.get("key", ())):
        raise ValueError("a generator of random numbers in it reads beyond its state")
