"""Which regressors and classifiers suit what kind of items: a table of choices, and the reason for each."""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from scipy.sparse import issparse
from sklearn.utils.validation import _num_samples

from ordinalq._utils.validation import check_choice
from ordinalq.classifiers.registry import TO_THE_OPTIMUM
from ordinalq.io.encoder import table_encoder

BUDGETS = ("fast", "balanced", "best")
N_FOLDS = 5
# More folds where rare classes have few items: each model then sees nearly all of them.
FOLDS = {("sparse", "balanced"): 10, ("sparse", "best"): 10}
# Below this many items, boosted trees have too little to learn from; a linear and a smooth function need less.
FEW = 1000
# Beyond this many columns the items are vectors that another model has made, such as embeddings of texts, on which
# linear models are as good as trees and much faster.
WIDE = 400
# Items of a tree's bootstrap, at most: a forest of a million items is no better for them, but slower.
MOST_PER_TREE = 100_000


class Choice(NamedTuple):
    """Unfitted regressors and classifiers, the kind of items they are for (a key of `MEMBERS`), a reason for each.

    `folds` is the number of folds that they are fitted on.
    """

    members: list[Any]
    kind: str
    reasons: tuple[str, ...]
    folds: int


def choose(X: Any, *, groups: bool = False, budget: str = "balanced", random_state: Any = 0) -> Choice:
    """Return the members of a stack that suit labelled items (N, ...), unfitted, within a budget.

    Columns of a frame that are no numbers become categories; `groups` says whether there are training groups.
    """
    check_choice("budget", budget, BUDGETS)
    kind = kind_of(X)
    encoder = _encoder(X)
    parts = MEMBERS[kind][budget]
    members = [make(_num_samples(X), groups, random_state) for make, _ in parts]
    if encoder is not None:
        members = [_piped(encoder, member) for member in members]
    return Choice(members, kind, tuple(reason for _, reason in parts), FOLDS.get((kind, budget), N_FOLDS))


def kind_of(X: Any) -> str:
    """Return the kind of the items: "sparse", "vectors", "few" or "table"."""
    if issparse(X):
        return "sparse"
    if np.ndim(X) == 1 and np.asarray(X).dtype.kind in "OU":
        raise ValueError(
            "X must have columns, got a list of texts: make vectors of them, for example by TfidfVectorizer, or fit a "
            "TableModel(text=...) to the table that they are in."
        )
    width = X.shape[1] if hasattr(X, "shape") and len(X.shape) > 1 else np.asarray(X).shape[-1]
    if width > WIDE:
        return "vectors"
    return "few" if _num_samples(X) < FEW else "table"


def _encoder(X: Any) -> Any:
    """Return an unfitted encoder for frames with columns that are no numbers or have gaps, None for all else."""
    if not hasattr(X, "dtypes") or not hasattr(X, "columns"):
        # Members refuse complex numbers, with scikit-learn's own words.
        if issparse(X) or np.iscomplexobj(X) or not np.isnan(np.asarray(X, dtype=np.float64)).any():
            return None
        from sklearn.impute import SimpleImputer

        return SimpleImputer(strategy="median", add_indicator=True, keep_empty_features=True)
    return table_encoder(X)


def _piped(encoder: Any, member: Any) -> Any:
    from sklearn.base import clone
    from sklearn.pipeline import make_pipeline

    return make_pipeline(clone(encoder), member)


# The parts. Each takes the number of items, whether there are groups, and a seed.


def _boosted(learning_rate: float, max_iter: int, max_leaf_nodes: int = 31) -> Callable[[int, bool, int], Any]:
    def make(_n_items: int, _groups: bool, seed: int) -> Any:
        from sklearn.ensemble import HistGradientBoostingRegressor

        return HistGradientBoostingRegressor(
            learning_rate=learning_rate,
            max_iter=max_iter,
            max_leaf_nodes=max_leaf_nodes,
            early_stopping=True,
            random_state=seed,
        )

    return make


def _smooth(n_components: int) -> Callable[[int, bool, int], Any]:
    def make(n_items: int, _groups: bool, seed: int) -> Any:
        from sklearn.kernel_approximation import Nystroem
        from sklearn.linear_model import Ridge
        from sklearn.pipeline import make_pipeline
        from sklearn.preprocessing import RobustScaler

        # The range of nine tenths of a column is about three standard deviations: exp(-|x - x'|^2 / d) of columns that
        # are scaled to it is wide, as functions of many columns want it, and does not follow outliers.
        scaler = RobustScaler(quantile_range=(5.0, 95.0))
        kernel = Nystroem(n_components=max(2, min(n_components, n_items // 5)), random_state=seed)
        return make_pipeline(scaler, kernel, Ridge(1e-3))

    return make


def _network(*sizes: int) -> Callable[[int, bool, int], Any]:
    def make(_n_items: int, _groups: bool, seed: int) -> Any:
        from sklearn.neural_network import MLPRegressor
        from sklearn.pipeline import make_pipeline
        from sklearn.preprocessing import StandardScaler

        network = MLPRegressor(
            hidden_layer_sizes=sizes, batch_size=200, learning_rate_init=3e-3, early_stopping=True, random_state=seed
        )
        return make_pipeline(StandardScaler(), network)

    return make


def _forest(n_trees: int) -> Callable[[int, bool, int], Any]:
    def make(n_items: int, groups: bool, seed: int) -> Any:
        from sklearn.ensemble import RandomForestClassifier

        # Out-of-bag trees have seen other items of a group; then the forest is fitted on folds. Two fifths of the trees
        # score new items, see `OutOfBag`.
        return RandomForestClassifier(
            n_trees,
            min_samples_leaf=3,
            max_samples=MOST_PER_TREE if n_items > MOST_PER_TREE else None,
            oob_score=not groups,
            random_state=seed,
        )

    return make


def _ridge(alpha: float) -> Callable[[int, bool, int], Any]:
    def make(_n_items: int, _groups: bool, seed: int) -> Any:
        from sklearn.linear_model import Ridge

        return _scaled(Ridge(alpha))

    return make


def _logistic(C: float) -> Callable[[int, bool, int], Any]:
    def make(_n_items: int, _groups: bool, seed: int) -> Any:
        from sklearn.linear_model import LogisticRegression

        return _scaled(LogisticRegression(C=C, max_iter=2000))

    return make


def _of_words(_n_items: int, _groups: bool, _seed: int) -> Any:
    from sklearn.linear_model import LogisticRegression

    return LogisticRegression(class_weight="balanced", **TO_THE_OPTIMUM)


def _scaled(model: Any) -> Any:
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    return make_pipeline(StandardScaler(), model)


Part = tuple[Callable[[int, bool, int], Any], str]
TREES = "boosted trees: a regressor of the class index that finds steps and interactions"
SMOOTH = "kernel ridge regression: a regressor that finds smooth functions of few columns"
NETWORK = "neural network: a regressor halfway between the two"
FOREST = "random forest: a classifier, where neighbouring classes do not look alike"
LINE = "ridge regression: a regressor that copes with many columns and few items"
LOGISTIC = "logistic regression: a classifier that copes with many columns and few items"
ALIKE = "logistic regression: a classifier for many columns; all classes count alike"

MEMBERS: dict[str, dict[str, list[Part]]] = {
    "table": {
        "fast": [(_boosted(0.15, 200), TREES), (_forest(30), FOREST)],
        "balanced": [(_boosted(0.06, 1000), TREES), (_smooth(300), SMOOTH), (_forest(150), FOREST)],
        "best": [
            (_boosted(0.04, 2000), TREES),
            (_boosted(0.06, 1000, 12), TREES),
            (_smooth(600), SMOOTH),
            (_network(64, 64), NETWORK),
            (_forest(500), FOREST),
        ],
    },
    "few": {
        "fast": [(_ridge(1.0), LINE), (_smooth(100), SMOOTH), (_logistic(1.0), LOGISTIC)],
        "balanced": [
            (_ridge(1.0), LINE),
            (_smooth(100), SMOOTH),
            (_logistic(1.0), LOGISTIC),
            (_forest(200), FOREST),
        ],
        "best": [
            (_ridge(1.0), LINE),
            (_smooth(100), SMOOTH),
            (_logistic(1.0), LOGISTIC),
            (_forest(500), FOREST),
        ],
    },
    "vectors": {
        "fast": [(_ridge(10.0), LINE), (_logistic(0.01), LOGISTIC)],
        "balanced": [
            (_ridge(10.0), LINE),
            (_ridge(1000.0), LINE),
            (_logistic(0.01), LOGISTIC),
        ],
        "best": [
            (_ridge(10.0), LINE),
            (_ridge(1000.0), LINE),
            (_smooth(600), SMOOTH),
            (_logistic(0.01), LOGISTIC),
            (_forest(500), FOREST),
        ],
    },
    "sparse": {budget: [(_of_words, ALIKE)] for budget in BUDGETS},
}
