"""Regression on the codes of the classes, rounded: ORidge and LAD."""

from abc import ABCMeta, abstractmethod
from typing import Any, Self

import numpy as np
from scipy.sparse import issparse
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.linear_model import Ridge
from sklearn.svm import LinearSVR

from ordinalq._utils.validation import Array, Floats, check_integer, check_real
from ordinalq.classifiers.line import check_labelled, moments, ordinal_tags, project


class _RoundedRegression(ClassifierMixin, BaseEstimator, metaclass=ABCMeta):
    """A line f(x) = w.x + b fitted to the codes 0..n-1 and rounded; subclasses fit the line."""

    coef_: Floats
    intercept_: float

    @abstractmethod
    def _fit_line(self, X: Any, codes: Floats, weight: Floats) -> None:
        """Set ``coef_`` (d,) and ``intercept_`` from X (N, d), codes (N,) and item weights (N,)."""

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
        """
        X, self.classes_, codes, weight = check_labelled(self, X, y, sample_weight)
        self._fit_line(X, codes.astype(np.float64), weight)
        return self

    def predict(self, X: Any) -> Array:
        """Give the class of each item: f(x) rounded to the nearest code, clipped to 0..n-1."""
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
