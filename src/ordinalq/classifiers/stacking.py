"""`OrdinalProbit` and `OrdinalStack`: scores from regressors and several models.

Where classes are bins of something continuous, a regressor of the class index learns more from the same items than a
classifier, because rare classes borrow from their neighbours. Where they are not, it learns less; the stack weighs
both.
"""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, Self

import numpy as np
from joblib import Parallel, delayed
from scipy.optimize import minimize
from scipy.sparse import issparse
from scipy.special import log_ndtr
from sklearn.base import BaseEstimator, clone, is_regressor
from sklearn.utils import _safe_indexing, get_tags
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import _num_samples, check_consistent_length, check_is_fitted, column_or_1d

from ordinalq._utils.parallel import WatchedCall, limit_threads
from ordinalq._utils.progress import iterate_steps
from ordinalq._utils.validation import Array, Codes, Floats, Mask, check_choice
from ordinalq.classifiers.calibration import logarithms, normalized, softmax_loss
from ordinalq.classifiers.cross_fitting import (
    CrossFitted,
    HeldOutScores,
    OutOfBag,
    copy_feature_attributes,
    held_out,
    make_folds,
    unscored,
)
from ordinalq.classifiers.registry import NEWTON
from ordinalq.io.encoder import table_encoder

# Which regressors and classifiers suit what kind of items: a table of choices, and the reason for each.


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
    """Unfitted regressors and classifiers, their kind of items, and reasons.

    The kind is a key of `MEMBERS`. Each member has a reason.

    `folds` is the number of folds that they are fitted on.
    """

    members: list[Any]
    kind: str
    reasons: tuple[str, ...]
    folds: int


def choose(X: Any, *, groups: bool = False, budget: str = "balanced", random_state: Any = 0) -> Choice:
    """Return unfitted members of a stack for labelled items (N, ...) in a budget.

    Columns of a frame that are not numbers become categories; `groups` is True if there are training groups.
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
    """Return an unfitted encoder for frames that need one, else None.

    An encoder is needed for columns other than numbers and for missing values.
    """
    if not hasattr(X, "dtypes") or not hasattr(X, "columns"):
        # Members raise scikit-learn's error for complex numbers.
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

    return LogisticRegression(class_weight="balanced", **NEWTON)


def _scaled(model: Any) -> Any:
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    return make_pipeline(StandardScaler(), model)


Part = tuple[Callable[[int, bool, int], Any], str]
TREES = "boosted trees: a regressor of the class index that finds steps and interactions"
SMOOTH = "kernel ridge regression: a regressor that finds smooth functions of few columns"
NETWORK = "neural network: a regressor halfway between the two"
FOREST = "random forest: a classifier, for neighbouring classes that differ"
LINE = "ridge regression: a regressor that copes with many columns and few items"
LOGISTIC = "logistic regression: a classifier that copes with many columns and few items"
ALIKE = "logistic regression: a classifier for many columns; all classes have equal weight"

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


# Ordered probit with a varying spread: from numbers that predict the class index to posteriors.
#
#     P(y <= k | x) = Phi((theta_k - a.g(x)) exp(-b.h(x))),   theta_0 < ... < theta_{n-2},
#
# where g(x) are predictions of the index and h(x) their expected deviation. Classes share the line a.g, so that a
# rare one borrows from its neighbours: all that is its own is a threshold.


# Logarithm of the square root of 2 pi.
LOG_ROOT = 0.5 * np.log(2 * np.pi)
# Least expected deviation that counts, in classes: below it, its logarithm has no meaning.
LEAST_DEVIATION = 0.02
# Strength of the pull of a and b towards zero, in items: it only matters where classes are separated perfectly, or
# if there are about as many items as parameters.
PULL = 1.0
# Directions of g whose scatter is below this part of the largest repeat the others.
REPEATED = 1e-8
# Least mass of a class in units of its upper probability: thresholds closer than rounding would have none.
LEAST_MASS = 1e-15
# Bound of b.h: deviations that differ by more than exp(4) from the usual one are extrapolated.
LARGEST_SPREAD = 4.0
# Bound of the logarithm of an increment of theta: no fit comes near, but steps of the line search go beyond.
LARGEST_INCREMENT = 30.0


class OrderedProbit(BaseEstimator):
    """Ordered probit, fitted by maximum likelihood (L-BFGS).

    With g standardized along its principal directions, u the standardized mean of the predictions, clipped to its
    training range, and v the expected deviation of a prediction, h = (u, u^2, ln max(v, 0.02) - mean).

    Attributes
    ----------
    theta_ : ndarray (n-1,)
        Thresholds, ascending.
    location_ : ndarray (m,)
        a, of the predictions as they are; ``offset_`` is subtracted from a.g.
    spread_ : ndarray (2,) or (3,)
        b.
    """

    def fit(self, G: Floats, v: Floats | None, codes: Codes) -> Self:
        """Fit thresholds, location and spread.

        G (N, m) are predictions of the class index made without the item, v (N,) their expected absolute deviations or
        None if not known, codes (N,) classes 0..n-1, each with an item.
        """
        n = int(codes.max()) + 1
        mean = G.mean(axis=1)
        self.mean_, self.scale_ = float(mean.mean()), max(float(mean.std()), LEAST_DEVIATION)
        self.range_ = (float(mean.min()), float(mean.max()))
        self.log_deviation_ = None if v is None else float(_log_deviation(v).mean())
        centre = G.mean(axis=0)
        _, lengths, directions = np.linalg.svd(G - centre, full_matrices=False)
        kept = lengths > REPEATED * lengths.max(initial=0)
        whitening = directions[kept].T / lengths[kept] * np.sqrt(len(G))  # (m, k)
        Z, H = (G - centre) @ whitening, self._spread_features(G, v)
        best = minimize(
            probit_loss,
            _start(Z, codes, n, H.shape[1]),
            args=(Z, H, codes, n),
            jac=True,
            method="L-BFGS-B",
            # Remembering all steps halves their number: thresholds and location go together.
            options={"maxiter": 500, "maxcor": 40, "ftol": 1e-12, "gtol": 1e-7},
        ).x
        self.theta_, a, self.spread_ = unpack(best, n, Z.shape[1])
        self.location_ = whitening @ a
        self.offset_ = float(centre @ self.location_)
        return self

    def log_posteriors(self, G: Floats, v: Floats | None) -> Floats:
        """Return ln P(y = i | x), (N, n), for predictions G (N, m), deviations v (N,)."""
        shrink = np.exp(-_bounded(self._spread_features(G, v) @ self.spread_)[0])
        edges = np.concatenate([[-np.inf], self.theta_, [np.inf]])
        t = (edges - (G @ self.location_ - self.offset_)[:, None]) * shrink[:, None]  # (N, n+1)
        return log_mass(t[:, :-1], t[:, 1:])

    def _spread_features(self, G: Floats, v: Floats | None) -> Floats:
        """Return h (N, 2 or 3)."""
        u = (np.clip(G.mean(axis=1), *self.range_) - self.mean_) / self.scale_
        columns = [u, u**2]
        if v is not None:
            columns.append(_log_deviation(v) - (self.log_deviation_ or 0.0))
        return np.stack(columns, axis=1)


def probit_loss(x: Floats, Z: Floats, H: Floats, codes: Codes, n: int) -> tuple[float, Floats]:
    """Return the mean negative log-likelihood with its pull, and its gradient.

    x (n - 1 + k + s,) has theta_0, logarithms of the increments of theta, a (k,) and b (s,); location and spread are
    linear in Z (N, k) and H (N, s).
    """
    k, number = Z.shape[1], len(codes)
    theta, a, b = unpack(x, n, k)
    edges = np.concatenate([[-np.inf], theta, [np.inf]])
    spread, inside = _bounded(H @ b)
    shrink, line = np.exp(-spread), Z @ a
    low, high = (edges[codes] - line) * shrink, (edges[codes + 1] - line) * shrink
    value = log_mass(low, high)
    at_low, at_high = _density_ratio(low, value), _density_ratio(high, value)  # phi / mass
    by_line = (at_low - at_high) * shrink
    with np.errstate(invalid="ignore"):  # infinite edges have no density
        moment = np.where(at_low > 0, at_low * low, 0.0) - np.where(at_high > 0, at_high * high, 0.0)
    # Edge j is the upper one of class j-1 and the lower one of class j.
    by_theta = (
        np.bincount(codes, at_high * shrink, minlength=n)[:-1] - np.bincount(codes, at_low * shrink, minlength=n)[1:]
    )
    later = np.cumsum(by_theta[::-1])[::-1]  # an increment moves all thresholds from its own on
    by_increments = np.concatenate([later[:1], later[1:] * np.diff(theta) * (x[1 : n - 1] < LARGEST_INCREMENT)])
    gradient = np.concatenate([by_increments, by_line @ Z, (moment * inside) @ H])
    loss = -value.sum() + PULL / 2 * (x[n - 1 :] @ x[n - 1 :])
    slope = -gradient
    slope[n - 1 :] += PULL * x[n - 1 :]
    return float(loss / number), slope / number


def unpack(x: Floats, n: int, k: int) -> tuple[Floats, Floats, Floats]:
    """Return theta (n-1,), a (k,) and b of the variables of `probit_loss`."""
    increments, a, b = np.split(x, [n - 1, n - 1 + k])
    steps = np.exp(np.minimum(increments[1:], LARGEST_INCREMENT))
    return increments[0] + np.concatenate([[0.0], np.cumsum(steps)]), a, b


def log_mass(low: Floats, high: Floats) -> Floats:
    """Return ln(Phi(high) - Phi(low)) without cancellation."""
    upper = low > 0
    low, high = np.where(upper, -high, low), np.where(upper, -low, high)
    top = log_ndtr(high)
    return np.asarray(top + np.log(np.maximum(-np.expm1(log_ndtr(low) - top), LEAST_MASS)))


def _density_ratio(t: Floats, log_masses: Floats) -> Floats:
    """Return phi(t) / mass, which is at most (1 + |t|) / LEAST_MASS.

    Where a step of the line search goes far out, the exponent is a difference of numbers beyond 1e16, and only the
    limit is known.
    """
    largest = np.log1p(np.abs(t)) - np.log(LEAST_MASS)
    return np.asarray(np.exp(np.minimum(-0.5 * t**2 - LOG_ROOT - log_masses, largest)))


def _bounded(spread: Floats) -> tuple[Floats, Mask]:
    """Return the spread within its bounds, and where these do not hold it."""
    return np.clip(spread, -LARGEST_SPREAD, LARGEST_SPREAD), np.abs(spread) < LARGEST_SPREAD


def _log_deviation(v: Floats) -> Floats:
    return np.asarray(np.log(np.maximum(v, LEAST_DEVIATION)))


def _start(Z: Floats, codes: Codes, n: int, n_spread: int) -> Any:
    """Return the variables where y is a.g plus normal noise: least squares."""
    a = Z.T @ (codes - codes.mean()) / len(codes)
    noise = max(float((codes - codes.mean() - Z @ a).std()), LEAST_DEVIATION)
    first = (0.5 - codes.mean()) / noise
    return np.concatenate([[first], np.full(n - 2, -np.log(noise)), a / noise, np.zeros(n_spread)])


# Logarithms of the posteriors of an ordered probit below this are ignored.
LEAST_LOGARITHM = -30.0


class OrdinalProbit(HeldOutScores):
    """Classifier made of regressors of the class index and an ordered probit.

        P(y <= k | x) = Phi((theta_k - a.g(x)) exp(-b.h(x)))

    with the predictions g(x) of the index 0..n-1, and h(x) made of g(x) and of a further regressor, which predicts how
    far g(x) is off. All are fitted on folds, and the probit on predictions for items that the models have not seen, so
    ``held_out_scores_`` need no further folds. New items get the posteriors of the mean prediction of
    the folds.

    Parameters
    ----------
    regressors : list of regressors, default=None
        None stands for those of an :class:`OrdinalStack`, or a ridge regression if it has none.
    spread : regressor, default=None
        Regressor of the absolute deviation |y - g(x)|; None stands for a copy of the first of the regressors.
    cv : int or splitter, default=5
        As in :class:`CrossFitted`.
    n_jobs : int, default=None
        Folds that are fitted at the same time.
    random_state : int, default=0
        Shuffles the folds; also the seed of the default regressors.

    Attributes
    ----------
    held_out_scores_ : ndarray (N, n)
    probit_ : OrderedProbit
    estimators_ : list of lists of fitted regressors
        Per fold those of the index, and last that of the deviation.
    classes_ : ndarray (n,)

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> y = rng.integers(1, 6, 500)
    >>> model = OrdinalProbit().fit(y[:, None] + rng.normal(size=(500, 2)), y)
    >>> model.predict([[1.0, 1.0], [3.0, 3.0], [5.0, 5.0]])
    array([1, 3, 5])
    """

    gives_posteriors_ = True
    # Small posteriors are those of a distribution, not of a count of votes: see `OrdinalStack`.
    has_tails = True

    def __init__(
        self,
        regressors: Sequence[Any] | None = None,
        *,
        spread: Any = None,
        cv: Any = N_FOLDS,
        n_jobs: int | None = None,
        random_state: Any = 0,
    ) -> None:
        self.regressors = regressors
        self.spread = spread
        self.cv = cv
        self.n_jobs = n_jobs
        self.random_state = random_state

    def fit(self, X: Any, y: Any, labels: Array | None = None, groups: Codes | None = None) -> Self:
        """Fit regressors and probit on X (N, ...), y (N,), and groups (N,).

        Parameters
        ----------
        X : array-like (N, ...)
            Items, one per row.
        y : array-like (N,)
            Class of each item.
        labels : ndarray (n,), default=None
            Names of the classes if y has codes.
        groups : ndarray of int (N,), default=None
            Group of each item; groups stay together in the folds.

        Returns
        -------
        Self
            The fitted classifier.
        """
        X, y = _checked(X, y)
        self.classes_, codes = np.unique(y, return_inverse=True)
        if len(self.classes_) < 2:
            raise ValueError(f"y must have at least 2 classes, got 1 class: {self.classes_[0]}.")
        regressors = list(self.regressors or ())
        if not regressors:
            from sklearn.linear_model import Ridge

            chosen = choose(X, random_state=self.random_state).members
            regressors = [member for member in chosen if is_regressor(member)] or [Ridge()]
        folds = make_folds(self.cv, codes, groups, random_state=self.random_state, seen=False)
        index = codes.astype(np.float64)
        jobs = Parallel(n_jobs=self.n_jobs)
        spread = regressors[0] if self.spread is None else self.spread
        fold = delayed(WatchedCall(_fitted))
        self.estimators_ = jobs(fold(regressors, spread, X, index, train) for train, _ in iterate_steps("fold", folds))
        predictions = _held_out(self.estimators_, X, folds)
        G, v = predictions[:, :-1], predictions[:, -1]
        self.probit_ = OrderedProbit().fit(G, v, codes)
        self.held_out_scores_ = normalized(self.probit_.log_posteriors(G, v))
        copy_feature_attributes(self, self.estimators_[0][0])
        return self

    def predict_proba(self, X: Any) -> Floats:
        """Return the posteriors by the mean predictions of the folds, (N, n)."""
        check_is_fitted(self, "estimators_")
        X = _rows(X)
        predictions = np.mean([[model.predict(X) for model in models] for models in self.estimators_], axis=0)
        return normalized(self.probit_.log_posteriors(predictions[:-1].T, predictions[-1]))

    def __sklearn_tags__(self) -> Any:
        """Copy input tags of the regressors; scores are poor without class order."""
        tags = _with_items_of(super().__sklearn_tags__(), self.regressors)
        tags.classifier_tags.poor_score = True
        return tags


class OrdinalStack(HeldOutScores):
    """Regressors and classifiers, weighted by the likelihood of held-out items.

    The regressors become one :class:`OrdinalProbit`, every classifier is cross-fitted or scored out of bag. With the
    posteriors s_m(x) of these members,

        eta_i(x) = sum_m w_m ln s_mi(x) + c_i

    is fitted by the class-balanced log-likelihood of the held-out scores, sum_x ln softmax(eta)_y / n_y, so that
    exp(eta) are density ratios in which rare classes count as much as others. ``predict_proba`` gives posteriors under
    the training distribution, p_i exp(eta_i) normalized.

    Parameters
    ----------
    members : list of regressors and classifiers, default=None
        None stands for those that suit the kind of the items within the budget: docs/default.md has the table.
    budget : {"fast", "balanced", "best"}, default="balanced"
        How much time the members may take, if they are None.
    cv : int or splitter, default=None
        Folds of all members except those that have their own (`CrossFitted`, out-of-bag forests). None means 5; if
        the members are None and the items sparse, 10 unless the budget is "fast".
    n_jobs : int, default=None
        Folds that are fitted at the same time.
    random_state : int, default=0
        Shuffles the folds; also the seed of the members, if they are None.

    Attributes
    ----------
    held_out_scores_ : ndarray (N, n)
        Out-of-sample posteriors of the training items; NaN if a forest has no vote for one.
    members_ : list of fitted classifiers with held-out scores
    kind_, reasons_ : str, tuple of str
        If `members` is None: the kind of the items, and a reason for each member; else "".
    weights_ : ndarray (members,)
    biases_ : ndarray (n,)
    classes_ : ndarray (n,)

    Examples
    --------
    >>> import ordinalq as oq
    >>> from sklearn.linear_model import LinearRegression, LogisticRegression
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(500, 3))
    >>> y = np.digitize(X.sum(axis=1) + rng.normal(size=500), [-2, 0, 2])
    >>> stack = OrdinalStack([LinearRegression(), LogisticRegression()])
    >>> oq.PACC(stack).fit(X, y).predict(X).round(1)
    array([0.2, 0.3, 0.3, 0.2])
    """

    gives_posteriors_ = True

    def __init__(
        self,
        members: Sequence[Any] | None = None,
        *,
        budget: str = "balanced",
        cv: Any = None,
        n_jobs: int | None = None,
        random_state: Any = 0,
    ) -> None:
        self.members = members
        self.budget = budget
        self.cv = cv
        self.n_jobs = n_jobs
        self.random_state = random_state

    def fit(self, X: Any, y: Any, labels: Array | None = None, groups: Codes | None = None) -> Self:
        """Fit members and weights on X (N, ...), y (N,), labels and groups.

        Parameters
        ----------
        X : array-like (N, ...)
            Items, one per row.
        y : array-like (N,)
            Class of each item.
        labels : ndarray (n,), default=None
            Names of the classes if y has codes.
        groups : ndarray of int (N,), default=None
            Group of each item; groups stay together in the folds.

        Returns
        -------
        Self
            The fitted classifier.
        """
        X, y = _checked(X, y)
        self.classes_, codes = np.unique(y, return_inverse=True)
        members = iterate_steps("model", self._held_out_members(X, groups))
        with limit_threads(len(y)):
            self.members_ = [member.fit(X, y, labels, groups) for member in members]
        lacking = next((member for member in self.members_ if not member.gives_posteriors_), None)
        if lacking is not None:
            raise TypeError(
                f"members must be regressors or classifiers with predict_proba, got {lacking.estimator!r}; use for "
                "example CalibratedClassifierCV around it."
            )
        L = self._log_scores([member.held_out_scores_ for member in self.members_])
        scored = ~np.isnan(L).any(axis=(0, 2))
        self.prior_ = np.bincount(codes) / len(codes)
        self.weights_, self.biases_ = balanced_weights(L[:, scored], codes[scored], np.log(self.prior_))
        self.held_out_scores_ = np.full(L.shape[1:], np.nan)
        self.held_out_scores_[scored] = self._posteriors(L[:, scored])
        copy_feature_attributes(self, self.members_[0])
        return self

    def _held_out_members(self, X: Any, groups: Codes | None) -> list[Any]:
        """Return the unfitted members: one probit, and held-out classifiers."""
        members, self.kind_, folds = self.members, "", N_FOLDS
        self.reasons_: tuple[str, ...] = ()
        if members is None:
            how: dict[str, Any] = {"budget": self.budget, "random_state": self.random_state}
            members, self.kind_, self.reasons_, folds = choose(X, groups=groups is not None, **how)
        if not members:
            raise ValueError("members must hold at least one regressor or classifier, got none.")
        common: dict[str, Any] = {
            "cv": folds if self.cv is None else self.cv,
            "n_jobs": self.n_jobs,
            "random_state": self.random_state,
        }
        regressors = [member for member in members if hasattr(member, "fit") and is_regressor(member)]
        found: list[Any] = [OrdinalProbit(regressors, **common)] if regressors else []
        for member in members:
            if member not in regressors:
                given = held_out(member)
                if isinstance(given, OutOfBag):
                    given.set_params(thinned=True)  # the stack takes logarithms
                plain = isinstance(given, CrossFitted) and not isinstance(member, CrossFitted)
                found.append(given.set_params(**common) if plain else given)
        return found

    def _log_scores(self, scores: Sequence[Floats]) -> Floats:
        """Return ln s of each member, (members, N, n)."""
        rows = []
        for member, S in zip(self.members_, scores, strict=True):
            if getattr(member, "has_tails", False):
                with np.errstate(divide="ignore"):
                    rows.append(np.maximum(np.log(S), LEAST_LOGARITHM))
            else:
                rows.append(np.where(unscored(S)[:, None], np.nan, logarithms(S)))
        return np.stack(rows)

    def _posteriors(self, L: Floats) -> Floats:
        """Return posteriors under the training distribution from ln s (members, N, n)."""
        return normalized(np.tensordot(self.weights_, L, axes=1) + (self.biases_ + np.log(self.prior_)))

    def predict_proba(self, X: Any) -> Floats:
        """Return calibrated posteriors under the training distribution, (N, n)."""
        check_is_fitted(self, "members_")
        X = _rows(X)
        with limit_threads(X.shape[0]):
            return self._posteriors(self._log_scores([member.predict_proba(X) for member in self.members_]))

    def __sklearn_tags__(self) -> Any:
        """Take what items may look like from the members."""
        return _with_items_of(super().__sklearn_tags__(), self.members)


def balanced_weights(L: Floats, codes: Codes, log_prior: Floats) -> tuple[Floats, Floats]:
    """Return w (m,) and c (n,) that maximise sum_x ln softmax(w.L + c)_y / n_y.

    L (m, N, n) are logarithms of held-out posteriors of m members, `log_prior` (n,) is ln p of the training items. A
    pull of the strength of one item holds c_i to -ln p_i, where it belongs if the members are calibrated: a class of
    five items cannot say much about it.
    """
    m, _, n = L.shape
    counts = np.bincount(codes, minlength=n)
    # In memory class by class: sums over classes then run along the items.
    L = np.ascontiguousarray(L.transpose(0, 2, 1)).transpose(0, 2, 1)
    found: Floats = minimize(
        balanced_loss,
        np.concatenate([np.full(m, 1 / m), -log_prior]),
        args=(L, codes, 1 / counts, -log_prior),
        jac=True,
        method="L-BFGS-B",
        options={"maxiter": 500, "maxcor": 40, "ftol": 1e-12, "gtol": 1e-8},
    ).x
    return found[:m], found[m:]


def balanced_loss(x: Floats, L: Floats, codes: Codes, weight: Floats, centre: Floats) -> tuple[float, Floats]:
    """Return the class-balanced negative log-likelihood and its gradient.

    It includes a penalty that pulls c to its centre (n,).

    `x` holds w (m,) and c (n,), `weight` (n,) is that of an item of each class.
    """
    m = len(L)
    w, c = x[:m], x[m:]
    value, error = softmax_loss(np.einsum("m,mxi->xi", w, L) + c, codes, weight[codes])
    value += 0.5 * (weight * (c - centre) ** 2).sum()
    slope = np.concatenate([np.einsum("mxi,xi->m", L, error), error.sum(axis=0) + weight * (c - centre)])
    return value, slope


def _checked(X: Any, y: Any) -> tuple[Any, Array]:
    """Return validated items and labels (N,)."""
    X = _rows(X)
    for what, number in zip(("item(s)", "feature(s)"), X.shape, strict=False):
        if number == 0:
            raise ValueError(f"X must not be empty: 0 {what} (shape={X.shape}) while a minimum of 1 is required.")
    y = column_or_1d(y, warn=True)
    check_classification_targets(y)
    check_consistent_length(X, y)
    return X, y


def _rows(X: Any) -> Any:
    """Return items (N, ...) as something whose rows can be picked."""
    return X.tocsr() if issparse(X) else X if hasattr(X, "shape") else np.asarray(X)


def _with_items_of(tags: Any, parts: Sequence[Any] | None) -> Any:
    """Return tags that allow the inputs that all parts allow.

    Inputs are sparse items and missing values. None chooses suitable parts.
    """
    found = [get_tags(part).input_tags for part in parts or ()]
    tags.input_tags.sparse = all(one.sparse for one in found)
    tags.input_tags.allow_nan = parts is None or (bool(found) and all(one.allow_nan for one in found))
    return tags


def _fitted(regressors: Sequence[Any], spread: Any, X: Any, index: Floats, train: Codes) -> list[Any]:
    """Return fitted regressors of the index and one of the deviation of their mean.

    Deviations of these items are too small, but only their relative sizes are used;
    and those by models of other folds would know the items of this one.
    """
    part = _safe_indexing(X, train)
    models = [clone(model).fit(part, index[train]) for model in regressors]
    mean = np.mean([model.predict(part) for model in models], axis=0)
    return [*models, clone(spread).fit(part, np.abs(index[train] - mean))]


def _held_out(models: list[list[Any]], X: Any, folds: list[tuple[Codes, Codes]]) -> Floats:
    """Return the predictions (N, m) of each item by the models of its fold."""
    found = np.empty((sum(len(test) for _, test in folds), len(models[0])))
    for of_fold, (_, test) in zip(models, folds, strict=True):
        part = _safe_indexing(X, test)
        found[test] = np.stack([model.predict(part) for model in of_fold], axis=1)
    return found
