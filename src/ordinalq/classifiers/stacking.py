"""Scores from regression and from several models: `OrdinalProbit` and `OrdinalStack`.

Where classes are bins of something continuous, a regressor of the class index learns more from the same items than a
classifier, because rare classes borrow from their neighbours. Where they are not, it learns less; the stack weighs
both.
"""

from collections.abc import Sequence
from typing import Any, Self

import numpy as np
from joblib import Parallel, delayed
from scipy.optimize import minimize
from scipy.sparse import issparse
from sklearn.base import clone, is_regressor
from sklearn.utils import _safe_indexing, get_tags
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_consistent_length, check_is_fitted, column_or_1d

from ordinalq._utils.parallel import Watched
from ordinalq._utils.progress import each
from ordinalq._utils.validation import Array, Codes, Floats
from ordinalq.classifiers.calibration import logarithms, normalized, softmax_loss
from ordinalq.classifiers.cross_fitting import (
    CrossFitted,
    HeldOutScores,
    OutOfBag,
    held_out,
    remember_features,
    unscored,
)
from ordinalq.classifiers.folds import make_folds
from ordinalq.classifiers.members import N_FOLDS, choose
from ordinalq.classifiers.probit import OrderedProbit

# Logarithms of the posteriors of an ordered probit below this are no more believed.
LEAST_LOGARITHM = -30.0


class OrdinalProbit(HeldOutScores):
    """A classifier made of regressors: they predict the class index, and an ordered probit turns it into posteriors.

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
        """Fit regressors and probit on X (N, ...), y (N,); groups (N,) stay together in the folds."""
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
        fold = delayed(Watched(_fitted))
        self.estimators_ = jobs(fold(regressors, spread, X, index, train) for train, _ in each("fold", folds))
        predictions = _held_out(self.estimators_, X, folds)
        G, v = predictions[:, :-1], predictions[:, -1]
        self.probit_ = OrderedProbit().fit(G, v, codes)
        self.held_out_scores_ = normalized(self.probit_.log_posteriors(G, v))
        remember_features(self, self.estimators_[0][0])
        return self

    def predict_proba(self, X: Any) -> Floats:
        """Return the posteriors by the mean predictions of the folds, (N, n)."""
        check_is_fitted(self, "estimators_")
        X = _rows(X)
        predictions = np.mean([[model.predict(X) for model in models] for models in self.estimators_], axis=0)
        return normalized(self.probit_.log_posteriors(predictions[:-1].T, predictions[-1]))

    def __sklearn_tags__(self) -> Any:
        """Take what items may look like from the regressors; where classes have no order, scores are poor."""
        tags = _with_items_of(super().__sklearn_tags__(), self.regressors)
        tags.classifier_tags.poor_score = True
        return tags


class OrdinalStack(HeldOutScores):
    """Regressors and classifiers, weighted by the likelihood of items that they have not seen.

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
        """Fit members and weights on X (N, ...), y (N,); labels and groups as in :class:`CrossFitted`."""
        X, y = _checked(X, y)
        self.classes_, codes = np.unique(y, return_inverse=True)
        members = each("model", self._held_out_members(X, groups))
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
        remember_features(self, self.members_[0])
        return self

    def _held_out_members(self, X: Any, groups: Codes | None) -> list[Any]:
        """Return the unfitted members: the regressors as one probit, and classifiers that give held-out scores."""
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
    """Return the class-balanced negative log-likelihood with the pull of c to its centre (n,), and its gradient.

    `x` holds w (m,) and c (n,), `weight` (n,) is that of an item of each class.
    """
    m = len(L)
    w, c = x[:m], x[m:]
    value, error = softmax_loss(np.einsum("m,mxi->xi", w, L) + c, codes, weight[codes])
    value += 0.5 * (weight * (c - centre) ** 2).sum()
    slope = np.concatenate([np.einsum("mxi,xi->m", L, error), error.sum(axis=0) + weight * (c - centre)])
    return value, slope


def _checked(X: Any, y: Any) -> tuple[Any, Array]:
    """Return items whose rows can be picked, and labels (N,), or refuse them."""
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
    """Return tags that allow what all parts allow: sparse items and missing values; None chooses what suits."""
    found = [get_tags(part).input_tags for part in parts or ()]
    tags.input_tags.sparse = all(one.sparse for one in found)
    tags.input_tags.allow_nan = parts is None or (bool(found) and all(one.allow_nan for one in found))
    return tags


def _fitted(regressors: Sequence[Any], spread: Any, X: Any, index: Floats, train: Codes) -> list[Any]:
    """Return regressors of the index and, last, one of how far their mean is off, all fitted on the same items.

    Deviations of these very items are too small, but all that is asked of them is where they are larger than elsewhere;
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
