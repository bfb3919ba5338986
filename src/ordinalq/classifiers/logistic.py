"""Logistic regression for table columns, solved exactly if they are few."""

import warnings
from typing import Any, Self

import numpy as np
from scipy.linalg import LinAlgWarning
from sklearn.linear_model import LogisticRegression

# Up to this many coefficients, Newton steps with the whole Hessian take no longer than conjugate gradients.
FEW_COEFFICIENTS = 300
# Up to this many entries of X times classes, conjugate gradients reach the optimum in about a tenth of a second.
FEW_PRODUCTS = 1_000_000
# Largest gradient of the mean loss at the optimum.
TOLERANCE = 1e-11


class TableLogisticRegression(LogisticRegression):
    """Logistic regression that is solved to its optimum if this takes little time.

    Equal rows that are read from files of different formats may differ in their last digits. A solver with a loose
    tolerance then stops at different points, and estimates differ by 1e-6. At the optimum they differ by less than
    1e-9.

    Parameters
    ----------
    solver, tol, C, class_weight, max_iter and others
        See :class:`sklearn.linear_model.LogisticRegression`. Small problems are solved by "newton-cholesky" or
        "newton-cg" with a small tolerance, others as the parameters say.

    Examples
    --------
    >>> y = np.repeat([1, 2, 3], 40)
    >>> X = y[:, None] + np.random.default_rng(0).normal(size=(120, 2))
    >>> one, other = (TableLogisticRegression().fit(Z, y).predict_proba(X) for Z in (X, np.nextafter(X, np.inf)))
    >>> bool(np.abs(one - other).max() < 1e-12)
    True
    """

    solver: str
    tol: float

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Fit the coefficients.

        Parameters
        ----------
        X : array-like or sparse matrix (N, d)
            Features.
        y : array-like (N,)
            Labels.
        sample_weight : array-like (N,), default=None
            Weights of the items.
        """
        solver, tol = self.solver, self.tol
        (N, d), n = np.shape(X), len(np.unique(y))
        if d * n <= FEW_COEFFICIENTS:
            self.solver, self.tol = "newton-cholesky", TOLERANCE
        elif N * d * n <= FEW_PRODUCTS:
            self.solver, self.tol = "newton-cg", TOLERANCE
        # Vectors of text are in single precision, in which gradients do not get so small.
        if self.tol != tol and getattr(X, "dtype", None) == np.float32:
            X = X.astype(np.float64)
        try:
            with warnings.catch_warnings():
                # If the Hessian is singular, scikit-learn continues with L-BFGS. A line search that fails because of
                # rounding errors has reached the optimum.
                warnings.simplefilter("ignore", LinAlgWarning)
                warnings.filterwarnings("ignore", message="(?i).*line search")
                super().fit(X, y, sample_weight)
        finally:
            self.solver, self.tol = solver, tol
        return self
