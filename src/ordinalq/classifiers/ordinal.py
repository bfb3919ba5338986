"""Ordinal classifiers: logistic (OLR-AT, OLR-IT), ordinal ridge and LAD.

All four project an item onto one line, w.x, and differ in how they cut that line into classes.

What to use when:

* :class:`OrdinalLogisticAT` and :class:`OrdinalLogisticIT` learn the cuts and give posteriors, so every
  quantifier can use them. AT charges an item for all thresholds, so that an error costs the more the farther
  it goes; IT charges it for the two thresholds of its class only.
* :class:`OrdinalRidge` and :class:`LeastAbsoluteDeviation` regress on the codes 0..n-1 and round. They give
  no posteriors and therefore serve the quantifiers that count votes.
"""

import warnings
from abc import ABCMeta, abstractmethod
from numbers import Real
from typing import Any, NamedTuple, Self

import numpy as np
from scipy.linalg import cholesky, solve_triangular
from scipy.optimize import Bounds, minimize
from scipy.sparse import issparse
from scipy.special import expit, log_expit
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import Ridge
from sklearn.svm import LinearSVR
from sklearn.utils import check_array, gen_batches
from sklearn.utils.sparsefuncs import mean_variance_axis
from sklearn.utils.validation import check_is_fitted, validate_data

from ordinalq._utils.validation import Array, Codes, Floats, Mask, check_choice, check_integer, check_real

# What the linear ordinal classifiers share: checks of labels and weights, and moments of features.


# A column whose standard deviation is below this fraction of its mean is constant up to rounding.
CONSTANT = 1e-13
# Rows that are centred at once: while whitening, at most 16 MB of float64.
BLOCK_ROWS = 1024


class Labelled(NamedTuple):
    """Validated items: X (N, d), classes (n,), codes (N,) and weights (N,).

    X is an array or sparse. Every class has an item with a weight above 0.
    """

    X: Any
    classes: Array
    codes: Codes
    weight: Floats


def moments(X: Any, weight: Floats) -> tuple[Floats, Floats]:
    """Return weighted mean and standard deviation (d,) of the columns of X (N, d).

    Constant columns have a standard deviation of 0.
    """
    if issparse(X):
        mean, variance = mean_variance_axis(X, axis=0, weights=weight)
    else:
        mean = weight @ X / weight.sum()
        batches = gen_batches(len(X), BLOCK_ROWS)
        variance = sum(weight[rows] @ (X[rows] - mean) ** 2 for rows in batches) / weight.sum()
    # Rounding may leave the variance of a constant column slightly above or below zero.
    deviation = np.sqrt(np.maximum(variance, 0.0))
    return np.asarray(mean), np.where(deviation > CONSTANT * np.abs(mean), deviation, 0.0)


def check_labelled(estimator: Any, X: Any, y: Any, sample_weight: Any) -> Labelled:
    """Return the validated arguments of ``fit``, with weights times class weights."""
    X, y = validate_data(estimator, X, y, accept_sparse="csr", dtype=np.float64)
    if y.dtype.kind == "O" and all(isinstance(label, Real) for label in y):
        y = y.astype(np.float64)
    if y.dtype.kind not in "biuf":
        raise ValueError(
            f"Unknown label type: y must be numbers, because labels such as {str(y[0])!r} have no natural order. "
            "Pass the codes 0..n-1 of the classes in ascending order."
        )
    classes, codes = np.unique(y, return_inverse=True)
    if len(classes) < 2:
        raise ValueError(f"y must have at least 2 classes, got 1 class: {classes[0]}.")
    if 2 * len(classes) > len(y) and np.any(classes != np.rint(classes)):
        raise ValueError(f"y looks continuous: {len(classes)} values in {len(y)} items; cut it into classes.")
    weight = _item_weights(sample_weight, len(y))
    totals: Floats = np.bincount(codes, weights=weight).astype(np.float64)  # (n,)
    factors = _class_weights(estimator.class_weight, classes, totals)  # (n,)
    if not (totals * factors).all():
        empty = classes[totals * factors == 0][0]
        raise ValueError(f"The class {empty} has weight zero; leave out its items or give them weight.")
    return Labelled(X, classes, codes, weight * factors[codes])


def _item_weights(sample_weight: Any, n_items: int) -> Floats:
    """Return the given weights, or ones (N,)."""
    if sample_weight is None:
        return np.ones(n_items)
    weight: Floats = check_array(sample_weight, ensure_2d=False, dtype=np.float64, input_name="sample_weight")
    if weight.shape != (n_items,):
        raise ValueError(f"sample_weight must have shape ({n_items},), got {weight.shape}.")
    if (weight < 0).any():
        raise ValueError(f"sample_weight must not be negative, got {weight.min()} at item {weight.argmin()}.")
    return weight


def _class_weights(class_weight: Any, classes: Array, totals: Floats) -> Floats:
    """Return one factor per class (n,); `totals` (n,) are summed item weights.

    "balanced" is sum(totals) / (n totals), with counts for totals the usual n_items / (n * count of class).
    """
    if class_weight is None:
        return np.ones(len(classes))
    if isinstance(class_weight, dict):
        labels = classes.tolist()
        stray = [label for label in class_weight if label not in labels]
        # A fold may lack a class; but a class without weight next to a weight without class is misspelt.
        if stray and not set(labels) <= set(class_weight):
            raise ValueError(f"class_weight has {stray[0]!r}, which is not one of the classes {labels}.")
        factors = [check_real(f"class_weight[{c!r}]", class_weight.get(c, 1.0), low=0) for c in labels]
        return np.array(factors)
    check_choice("class_weight", class_weight, ["balanced"])
    with np.errstate(divide="ignore"):
        return np.asarray(np.where(totals > 0, totals.sum() / (len(totals) * totals), 0.0))


def project(estimator: Any, X: Any) -> Floats:
    """Return w.x (N,) of items X (N, d), array-like or sparse, by a fitted estimator."""
    check_is_fitted(estimator)
    items = validate_data(estimator, X, accept_sparse="csr", dtype=np.float64, reset=False)
    return np.asarray(items @ estimator.coef_)


def ordinal_tags(tags: Any) -> Any:
    """Return scikit-learn tags: X may be sparse, classes are learned along a line."""
    tags.input_tags.sparse = True
    tags.classifier_tags.poor_score = True
    return tags


# Up to this many features the variables are whitened by a Cholesky factor, beyond it only scaled. The factor
# costs as much as some ten steps, and on correlated features (embeddings of texts) it saves hundreds.
WHITENED_FEATURES = 2048
# Added to the curvature of the standardized features, relative to it: columns that are constant or repeat
# each other then leave the factor regular. It only chooses variables, so the optimum is untouched.
JITTER = 1e-10
# Steps after which a whitened problem is whitened again; only almost separable classes need so many.
STEPS_PER_CHART = 50
# Least curvature of an item in a new chart, relative to the largest: it stays regular where all lie far away.
LEAST_STEEPNESS = 1e-6
# A line search that ends in rounding noise has converged if the gradient promises no larger relative gain.
NEGLIGIBLE_GAIN = 1e-8


class _ThresholdLogistic(ClassifierMixin, BaseEstimator, metaclass=ABCMeta):
    """Logistic losses of ordered thresholds; subclasses define which ones count."""

    def __init__(
        self, alpha: float = 1.0, *, class_weight: Any = None, max_iter: int = 1000, tol: float = 1e-12
    ) -> None:
        self.alpha = alpha
        self.class_weight = class_weight
        self.max_iter = max_iter
        self.tol = tol

    @staticmethod
    @abstractmethod
    def _counted(codes: Codes, n_classes: int) -> Mask:
        """Whether threshold k counts for item i: boolean (N, n-1), from the codes (N,)."""

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Find w and theta.

        Parameters
        ----------
        X : array-like or sparse matrix (N, d)
            Features; taken as float64, and as they are, without scaling.
        y : array-like (N,)
            Numbers, ordered by value; at least two classes.
        sample_weight : array-like (N,), default=None
            Non-negative weights of the items, multiplied by those of the classes.

        Returns
        -------
        Self
            The fitted classifier.
        """
        alpha = check_real("alpha", self.alpha, low=0)
        max_iter = check_integer("max_iter", self.max_iter, minimum=1)
        tol = check_real("tol", self.tol, low=0)
        X, self.classes_, codes, weight = check_labelled(self, X, y, sample_weight)
        n = len(self.classes_)
        side = np.where(np.arange(n - 1) >= codes[:, None], 1.0, -1.0)  # (N, n-1)
        counted = weight[:, None] * self._counted(codes, n)  # (N, n-1)
        result = minimize_thresholds(X, side, counted, alpha, max_iter=max_iter, tol=tol)
        self.coef_, self.theta_, self.loss_, self.n_iter_ = result
        return self

    def predict(self, X: Any) -> Array:
        """Predict the class of each item by the thresholds below w.x.

        The code is #{k : theta_k < w.x}.

        This is the median class of ``predict_proba``, which need not be the most probable one.

        Parameters
        ----------
        X : array-like (N, d)
            Items, one per row.

        Returns
        -------
        ndarray (N,)
            Predicted classes.
        """
        line = project(self, X)[:, None]  # (N, 1)
        return np.asarray(self.classes_[(line > self.theta_).sum(axis=1)])

    def predict_proba(self, X: Any) -> Floats:
        """Return posteriors (N, n).

        They are the differences of P(y <= k | x) = sigmoid(theta_k - w.x) from one k to the next.

        Parameters
        ----------
        X : array-like (N, d)
            Items, one per row.

        Returns
        -------
        ndarray (N, n)
            Posteriors.
        """
        line = project(self, X)[:, None]  # (N, 1)
        edges = np.concatenate([[-np.inf], self.theta_, [np.inf]])  # (n+1,)
        # sigmoid(a) - sigmoid(b) = (1 - exp(b - a)) sigmoid(a) sigmoid(-b): never negative, and small
        # posteriors keep all their digits, which ratios of posteriors need.
        return np.asarray(-np.expm1(-np.diff(edges)) * expit(edges[1:] - line) * expit(line - edges[:-1]))

    def __sklearn_tags__(self) -> Any:
        return ordinal_tags(super().__sklearn_tags__())


class OrdinalLogisticAT(_ThresholdLogistic):
    """Ordinal logistic regression with all-threshold loss (OLR-AT).

    Rennie & Srebro (2005).

    With labels coded 0..n-1, minimizes over w and theta_0 <= ... <= theta_{n-2}

        sum_i w_i sum_{k=0..n-2} log(1 + exp(-S_ik (theta_k - w.x_i))) + alpha/2 ||w||^2,

    S_ik = +1 if k >= y_i and -1 otherwise. The sum is convex, so a local minimum is the minimum. L-BFGS-B
    seeks it in (w, theta_0, increments >= 0), after an exact change of variables thanks to which it converges
    for any scale of the features. (The penalty does depend on their scale.)

    Parameters
    ----------
    alpha : float, default=1.0
        Strength of the penalty, >= 0. With 0, perfectly separable classes have no finite solution.
    class_weight : None, "balanced" or dict, default=None
        Weight of each class in the item weights w_i. "balanced" gives every class the same total; a dict maps
        labels to weights, and labels that it lacks weigh 1.
    max_iter : int, default=1000
        Most steps of L-BFGS-B; running out of them is a ``ConvergenceWarning``.
    tol : float, default=1e-12
        Stop when a step lowers the loss by less than this fraction.

    Attributes
    ----------
    classes_ : ndarray (n,)
        Labels in ascending order.
    coef_ : ndarray (d,)
        w.
    theta_ : ndarray (n-1,)
        Thresholds in ascending order.
    loss_ : float
        Value of the minimum, penalty included.
    n_iter_ : int
        Steps taken.

    References
    ----------
    J. Rennie, N. Srebro: Loss functions for preference levels: regression with discrete ordered labels. IJCAI
    Workshop on Advances in Preference Handling, 2005.
    F. Pedregosa, F. Bach, A. Gramfort: On the consistency of ordinal regression methods. JMLR 18, 2017.

    Examples
    --------
    >>> model = OrdinalLogisticAT().fit([[0.0], [1.0], [2.0], [3.0], [4.0], [5.0]], [1, 1, 2, 2, 3, 3])
    >>> model.predict([[0.5], [2.5], [4.5]])
    array([1, 2, 3])
    >>> model.predict_proba([[2.5]]).round(2)
    array([[0.18, 0.63, 0.18]])
    """

    @staticmethod
    def _counted(codes: Codes, n_classes: int) -> Mask:
        return np.ones((len(codes), n_classes - 1), dtype=bool)


class OrdinalLogisticIT(_ThresholdLogistic):
    """Ordinal logistic regression with immediate-threshold loss (OLR-IT).

    Rennie & Srebro (2005).

    Minimizes, over w and theta_0 <= ... <= theta_{n-2},

        sum_i w_i sum_{k in {y_i - 1, y_i}} log(1 + exp(-S_ik (theta_k - w.x_i))) + alpha/2 ||w||^2,

    the sum of :class:`OrdinalLogisticAT` restricted to the thresholds next to the class of the item (one, for
    the first and the last class). For two classes both are the usual logistic regression. Thresholds may
    coincide; the class between them then has posterior 0 and is never predicted.

    Parameters
    ----------
    alpha, class_weight, max_iter, tol
        See :class:`OrdinalLogisticAT`.

    Attributes
    ----------
    classes_, coef_, theta_, loss_, n_iter_ : see :class:`OrdinalLogisticAT`

    Examples
    --------
    >>> model = OrdinalLogisticIT().fit([[0.0], [1.0], [2.0], [3.0], [4.0], [5.0]], [1, 1, 2, 2, 3, 3])
    >>> model.predict([[0.5], [2.5], [4.5]])
    array([1, 2, 3])
    """

    @staticmethod
    def _counted(codes: Codes, n_classes: int) -> Mask:
        k = np.arange(n_classes - 1)
        return np.asarray((k == codes[:, None] - 1) | (k == codes[:, None]))


class Minimum(NamedTuple):
    """Minimum of the threshold loss: w (d,), theta (n-1,), value and steps."""

    w: Floats
    theta: Floats
    value: float
    n_iter: int


def threshold_loss(
    w: Floats, theta: Floats, X: Any, side: Floats, weight: Floats, alpha: float
) -> tuple[float, Floats, Floats]:
    """Return the threshold loss and its gradients by w and theta.

    sum_ik weight_ik log(1 + exp(-side_ik (theta_k - w.x_i))) + alpha/2 ||w||^2.

    X (N, d) is only multiplied with vectors, so the memory beyond it is a few arrays (N, n-1). `side` (N, n-1) is +1
    where the item belongs below the threshold, else -1; `weight` (N, n-1) that of the item, 0 where the threshold does
    not count for it.
    """
    margin = side * (theta - (X @ w)[:, None])  # (N, n-1)
    value = -np.vdot(weight, log_expit(margin)) + alpha / 2 * (w @ w)
    slope = -weight * side * expit(-margin)  # (N, n-1) derivatives by theta_k - w.x_i
    return float(value), alpha * w - X.T @ slope.sum(axis=1), slope.sum(axis=0)


def minimize_thresholds(X: Any, side: Floats, weight: Floats, alpha: float, *, max_iter: int, tol: float) -> Minimum:
    """Minimize :func:`threshold_loss` over w and theta_0 <= ... <= theta_{n-2}.

    Starts at w = 0, theta_0 = 0 and increments 1, 2, ..., n-2.
    """
    w, theta = np.zeros(X.shape[1]), np.cumsum(np.arange(side.shape[1], dtype=np.float64))
    lower = np.repeat([-np.inf, 0.0], [len(w) + 1, len(theta) - 1])  # increments are >= 0
    steepness: Any = 1.0
    n_iter, unfinished = 0, True
    while unfinished and n_iter < max_iter:
        chart = _Chart(X, steepness * weight / 4, alpha)
        steps = min(max_iter - n_iter, STEPS_PER_CHART if chart.whitened else max_iter)
        result = minimize(
            _charted_loss,
            chart.coordinates(w, theta),
            args=(chart, X, side, weight, alpha),
            jac=True,
            method="L-BFGS-B",
            bounds=Bounds(lower, np.inf),
            # A step takes at most 40 evaluations, so that the steps alone are limited.
            options={"maxiter": steps, "maxfun": 50 * steps, "ftol": tol, "gtol": tol},
        )
        w, theta = chart.model(result.x)
        n_iter += result.nit
        unfinished = result.status == 1
        # Where items lie far from the thresholds, the loss is much flatter than the 1/4 of the first chart.
        below = expit(theta - (X @ w)[:, None])
        steepness = np.maximum(4 * below * (1 - below), LEAST_STEEPNESS)  # (N, n-1)
    uphill = (result.x <= lower) & (result.jac > 0)  # pressed against the bound
    # The chart levels the curvature to about 1, hence a gradient g promises a gain of the order of g^2.
    gain = np.sum(result.jac[~uphill] ** 2) / max(result.fun, 1.0)
    if unfinished or (result.status == 2 and gain > NEGLIGIBLE_GAIN):
        warnings.warn(
            f"The loss did not converge in {n_iter} of {max_iter} steps ({result.message.strip(': ')}): "
            "raise max_iter, tol or alpha, or standardize the features.",
            ConvergenceWarning,
            stacklevel=3,
        )
    return Minimum(w, theta, float(result.fun), n_iter)


def _charted_loss(
    u: Floats, chart: "_Chart", X: Any, side: Floats, weight: Floats, alpha: float
) -> tuple[float, Floats]:
    """Return the threshold loss at variables u of the chart, with its gradient."""
    w, theta = chart.model(u)
    value, gradient_w, gradient_theta = threshold_loss(w, theta, X, side, weight, alpha)
    return value, chart.gradient(gradient_w, gradient_theta)


class _Chart:
    """Change of variables (v, t) -> (w, theta) that evens out the curvature.

    w = D^-1 L^-T v   and   theta_k = sum_{j<=k} t_j / r_j + w.m,   t_j >= 0 for j >= 1,

    with the mean m and the standard deviations D of the features, L L' the curvature of the loss in D w
    (whole, or its diagonal if features are many) and r_j^2 that in the j-th increment. Since theta_0 is free,
    moving it by w.m is centring the features without touching X. The steps of L-BFGS-B then do not depend on
    units or offsets of the features, and hardly on their correlation.

    Parameters
    ----------
    X : ndarray or sparse matrix (N, d)
    curvature : ndarray (N, n-1)
        Second derivative of the loss by theta_k - w.x_i, or about that.
    alpha : float
    """

    def __init__(self, X: Any, curvature: Floats, alpha: float) -> None:
        per_item = curvature.sum(axis=1)  # (N,)
        self.mean, deviation = moments(X, per_item)
        self.scale = np.where(deviation > 0, deviation, 1.0)  # (d,)
        ridge = alpha / self.scale**2 + JITTER * per_item.sum()  # (d,)
        self.whitened = X.shape[1] <= WHITENED_FEATURES
        if self.whitened:
            self.root = cholesky(np.diag(ridge) + self._gram(X, per_item), lower=True)  # (d, d)
        else:
            self.root = np.sqrt(ridge + per_item.sum())  # (d,)
        # The j-th increment moves all thresholds from the j-th on.
        self.rate = np.sqrt(np.cumsum(curvature.sum(axis=0)[::-1])[::-1])  # (n-1,)

    def _gram(self, X: Any, per_item: Floats) -> Floats:
        """Weighted Gram matrix (d, d) of the standardized features, by blocks of rows."""
        gram = np.zeros((X.shape[1], X.shape[1]))
        for rows in gen_batches(X.shape[0], BLOCK_ROWS):
            block = X[rows].toarray() if issparse(X) else X[rows]
            block = (block - self.mean) * (np.sqrt(per_item[rows])[:, None] / self.scale)
            gram += block.T @ block
        return gram

    def coordinates(self, w: Floats, theta: Floats) -> Floats:
        """Return the u of w (d,) and theta (n-1,)."""
        v = w * self.scale
        v = self.root.T @ v if self.whitened else self.root * v
        steps = np.diff(theta - self.mean @ w, prepend=0.0)
        return np.concatenate([v, self.rate * steps])

    def model(self, u: Floats) -> tuple[Floats, Floats]:
        """Return the w (d,) and theta (n-1,) of u."""
        v, t = np.split(u, [len(self.scale)])
        w = self._divide(v, trans=1) / self.scale
        return w, np.cumsum(t / self.rate) + self.mean @ w

    def gradient(self, gradient_w: Floats, gradient_theta: Floats) -> Floats:
        """Return the gradient by u, from those by w (d,) and theta (n-1,)."""
        gradient_v = self._divide((gradient_w + self.mean * gradient_theta.sum()) / self.scale, trans=0)
        return np.concatenate([gradient_v, np.cumsum(gradient_theta[::-1])[::-1] / self.rate])

    def _divide(self, v: Floats, trans: int) -> Floats:
        """Return L^-1 v, or L^-T v if `trans`."""
        if self.whitened:
            return np.asarray(solve_triangular(self.root, v, lower=True, trans=trans, check_finite=False))
        return np.asarray(v / self.root)


# Regression on the codes of the classes, rounded: ORidge and LAD.


class _RoundedRegression(ClassifierMixin, BaseEstimator, metaclass=ABCMeta):
    """Line f(x) = w.x + b fitted to codes 0..n-1 and rounded; subclasses fit it."""

    coef_: Floats
    intercept_: float

    @abstractmethod
    def _fit_line(self, X: Any, codes: Floats, weight: Floats) -> None:
        """Set ``coef_`` (d,) and ``intercept_`` from X (N, d), codes and weights (N,)."""

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Find w and b.

        Parameters
        ----------
        X : array-like or sparse matrix (N, d)
            Features; taken as float64.
        y : array-like (N,)
            Numbers, ordered by value; at least two classes.
        sample_weight : array-like (N,), default=None
            Non-negative weights of the items, multiplied by those of the classes.

        Returns
        -------
        Self
            The fitted classifier.
        """
        X, self.classes_, codes, weight = check_labelled(self, X, y, sample_weight)
        self._fit_line(X, codes.astype(np.float64), weight)
        return self

    def predict(self, X: Any) -> Array:
        """Predict the class of each item: f(x) rounded and clipped to 0..n-1.

        Parameters
        ----------
        X : array-like (N, d)
            Items, one per row.

        Returns
        -------
        ndarray (N,)
            Predicted classes.
        """
        code = np.rint(project(self, X) + self.intercept_)
        return np.asarray(self.classes_[np.clip(code, 0, len(self.classes_) - 1).astype(np.intp)])

    def __sklearn_tags__(self) -> Any:
        return ordinal_tags(super().__sklearn_tags__())


class OrdinalRidge(_RoundedRegression):
    """ORidge: ridge regression on the codes 0..n-1 of the classes, rounded.

    Minimizes sum_i w_i (y_i - f(x_i))^2 + alpha ||w||^2 over f(x) = w.x + b.

    Parameters
    ----------
    alpha : float, default=1.0
        Strength of the penalty, >= 0.
    class_weight : None, "balanced" or dict, default=None
        See :class:`OrdinalLogisticAT`.
    normalize : bool, default=False
        Whether the penalty is taken after centring each column of X and dividing it by its l2 norm
        sqrt(sum_i w_i (x_ij - mean_j)^2). Such columns are short, so a given ``alpha`` then weighs far more.

    Attributes
    ----------
    classes_ : ndarray (n,)
        Labels in ascending order.
    coef_ : ndarray (d,)
        w, in units of X also if ``normalize``.
    intercept_ : float
        b.

    Examples
    --------
    >>> model = OrdinalRidge().fit([[0.0], [1.0], [2.0], [3.0], [4.0], [5.0]], [1, 1, 2, 2, 3, 3])
    >>> model.predict([[0.5], [2.5], [90.0]])
    array([1, 2, 3])
    """

    def __init__(self, alpha: float = 1.0, *, class_weight: Any = None, normalize: bool = False) -> None:
        self.alpha = alpha
        self.class_weight = class_weight
        self.normalize = normalize

    def _fit_line(self, X: Any, codes: Floats, weight: Floats) -> None:
        alpha = check_real("alpha", self.alpha, low=0)
        scale: Any = 1.0
        if self.normalize:
            # The norm is the standard deviation times sqrt(sum_i w_i), a factor that goes into alpha; Ridge
            # centres the columns itself.
            _, deviation = moments(X, weight)
            scale = np.where(deviation > 0, deviation, 1.0)
            X = X.multiply(1 / scale).tocsr() if issparse(X) else X / scale
            alpha *= weight.sum()
        # tol matters for sparse X only, which Ridge solves iteratively: on words, its default 1e-4 was seen
        # to leave f wrong by .02 of a class, 1e-6 by .0002.
        ridge = Ridge(alpha, tol=1e-6).fit(X, codes, sample_weight=weight)
        self.coef_ = ridge.coef_ / scale
        self.intercept_ = ridge.intercept_


class LeastAbsoluteDeviation(_RoundedRegression):
    """LAD: least absolute deviations from the codes 0..n-1 of the classes, rounded.

    Minimizes 1/2 ||w||^2 + C sum_i w_i |y_i - f(x_i)| over f(x) = w.x + b: linear support-vector regression
    with epsilon 0. As in scikit-learn's ``LinearSVR``, b is penalized as if it were a coordinate of w.

    Parameters
    ----------
    C : float, default=1.0
        Weight of the deviations against the penalty, > 0. Coordinate descent needs many passes if C is large
        or the features are of different scale.
    class_weight : None, "balanced" or dict, default=None
        See :class:`OrdinalLogisticAT`.
    max_iter : int, default=1000
        Most passes over the data; running out of them is a ``ConvergenceWarning``.
    tol : float, default=1e-4
        Stop when the optimality conditions are violated by less than this.
    random_state : None, int or RandomState, default=0
        Seed of the order in which items are visited.

    Attributes
    ----------
    classes_ : ndarray (n,)
        Labels in ascending order.
    coef_ : ndarray (d,)
        w.
    intercept_ : float
        b.
    n_iter_ : int
        Passes over the data.

    Examples
    --------
    >>> model = LeastAbsoluteDeviation(C=10.0, random_state=0)
    >>> model = model.fit([[0.0], [1.0], [2.0], [3.0], [4.0], [5.0]], [1, 1, 2, 2, 3, 3])
    >>> model.predict([[0.5], [2.5], [90.0]])
    array([1, 2, 3])
    """

    def __init__(
        self,
        C: float = 1.0,
        *,
        class_weight: Any = None,
        max_iter: int = 1000,
        tol: float = 1e-4,
        random_state: Any = 0,
    ) -> None:
        self.C = C
        self.class_weight = class_weight
        self.max_iter = max_iter
        self.tol = tol
        self.random_state = random_state

    def _fit_line(self, X: Any, codes: Floats, weight: Floats) -> None:
        svr = LinearSVR(
            epsilon=0.0,
            C=check_real("C", self.C, low=0, open_low=True),
            max_iter=check_integer("max_iter", self.max_iter, minimum=1),
            tol=check_real("tol", self.tol, low=0, open_low=True),
            random_state=self.random_state,
        ).fit(X, codes, sample_weight=weight)
        self.coef_ = svr.coef_
        self.intercept_ = float(svr.intercept_[0])
        self.n_iter_ = svr.n_iter_
