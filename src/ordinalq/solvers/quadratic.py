"""Exact solution of convex quadratic programs over the simplex, a whole batch at once.

min_p p'Ap - 2 b'p over {p >= 0, sum p = 1}, with A positive semidefinite on the directions that sum to zero. One A may
serve the whole batch (ACC, PACC, EDy, o-PDF and their regularized forms), or each problem has its own (the steps of
Newton's method).

A primal-dual active set guesses which classes have mass, solves the equality-constrained problem for that guess, and
corrects the guess where p < 0 or where a multiplier is negative. Problems with the same guess share one factorization.
It nearly always ends after a few rounds; what cycles goes to a primal active set, which moves one class at a time and
cannot cycle.
"""

import numpy as np
import numpy.typing as npt
from sklearn.base import BaseEstimator

from ordinalq.objectives import Objective
from ordinalq.solvers.solution import Solution, kkt_residual
from ordinalq.validation import Floats

Mask = npt.NDArray[np.bool_]

# A class leaves the guess when p < -ROUNDING, and joins it when its multiplier is below -ROUNDING times the scale of
# the problem: well above the errors of the small linear systems, far below what is seen in a result.
ROUNDING = 1e-13
# The primal-dual rounds end after 2 to 5 unless they cycle.
MAX_ROUNDS = 6
# A curvature along the simplex below this part of A's entries is rounding error: A counts as singular.
SINGULAR = 1e-14


class QuadraticSolver(BaseEstimator):
    """Exact solver of objectives that are quadratic with one matrix A for the batch.

    Where A is singular along the simplex, several p are optimal; the one nearest to the uniform distribution is
    returned.
    """

    def minimize(self, objective: Objective) -> Solution:
        """Minimise every sample's objective; p is exact up to rounding."""
        form = objective.quadratic()
        if form is None:
            raise TypeError(f"solver 'quadratic' needs a quadratic objective, got {objective}; use solver='newton'.")
        A, b = form
        P, n_iter = simplex_qp(A, b)
        rows = np.arange(objective.n_samples)
        kkt = kkt_residual(P, 2 * (P @ A - b)) / objective.scale
        # The problem's own size, so that the test does not depend on units.
        size = np.abs(A).max() + np.abs(b).max(axis=1)
        return Solution(P, objective.value(P, rows), n_iter, kkt <= np.maximum(1e-9 * size, 1e-13), kkt)


def simplex_qp(A: Floats, b: Floats, free: Mask | None = None) -> tuple[Floats, npt.NDArray[np.int64]]:
    """Minimise p'Ap - 2 b'p over the simplex for each row of b.

    Parameters
    ----------
    A : ndarray (n, n) or (B, n, n)
        Symmetric, positive semidefinite on directions that sum to zero.
    b : ndarray (B, n)
    free : bool ndarray (B, n), default=None
        First guess of the classes with mass; None stands for all.

    Returns
    -------
    p : ndarray (B, n)
    n_iter : ndarray (B,)
        Rounds needed.
    """
    if A.ndim == 2:
        curvature = np.sort(np.abs(np.linalg.eigvalsh(_along_simplex(A))))
        size = np.abs(A).max()
        # One eigenvalue belongs to the direction (1, ..., 1), which the projection has set to zero.
        if curvature[1] <= SINGULAR * size:
            positive = curvature[curvature > SINGULAR * size]
            return _nearest_to_uniform(A, b, 1e-8 * np.sqrt(size * positive[0]) if len(positive) else 1.0)
    return _active_set(A, b, np.ones(b.shape, dtype=bool) if free is None else free)


def _along_simplex(A: Floats) -> Floats:
    """Return A restricted to the directions that sum to zero, as an (n, n) matrix with (1, ..., 1) in its kernel."""
    T = np.eye(len(A)) - 1 / len(A)
    return T @ A @ T


def _nearest_to_uniform(A: Floats, b: Floats, ridge: float) -> tuple[Floats, npt.NDArray[np.int64]]:
    """Solve a problem with many optima by proximal steps that start at the uniform p.

    Each step minimises the objective plus ridge * ||p - previous||^2. The first is as near to the optimum that is
    nearest to uniform as the ridge is small against the positive curvatures, the others remove the ridge's own effect
    on the optimality. A ridge of 1e-8 times the geometric mean of the largest and the smallest curvature balances this
    against the rounding errors, which grow as the ridge shrinks.
    """
    n = len(A)
    P = np.full(b.shape, 1 / n)
    rounds = np.zeros(len(b), dtype=np.int64)
    for _ in range(3):
        P, n_iter = _active_set(A + ridge * np.eye(n), b + ridge * P, P > 0)
        rounds += n_iter
    return P, rounds


def _active_set(A: Floats, b: Floats, free: Mask) -> tuple[Floats, npt.NDArray[np.int64]]:
    """Primal-dual active set; the guess `free` (B, n) has at least one class in every row."""
    P = np.zeros(b.shape)
    n_iter = np.full(len(b), MAX_ROUNDS, dtype=np.int64)
    free = free.copy()
    # A multiplier is a difference of gradients: its rounding errors have the size of the largest term.
    scale = np.abs(A).max(axis=(-2, -1)) + np.abs(b).max(axis=1)
    open_ = np.arange(len(b))
    for round_ in range(1, MAX_ROUNDS + 1):
        P[open_], mu = _equality_solution(A, b, free, open_)
        wrong = np.where(free[open_], P[open_] < -ROUNDING, mu < -ROUNDING * scale[open_, None])
        done = ~wrong.any(axis=1)
        n_iter[open_[done]] = round_
        open_, wrong = open_[~done], wrong[~done]
        if len(open_) == 0:
            break
        free[open_] ^= wrong
        # Every class may be wrong at once; p sums to one, so the class with most mass never is.
        empty = open_[~free[open_].any(axis=1)]
        free[empty] = True
    if len(open_):
        P[open_] = _primal_active_set(A if A.ndim == 2 else A[open_], b[open_], scale[open_])
    P = np.maximum(P, 0)
    return P / P.sum(axis=1, keepdims=True), n_iter


def _equality_solution(A: Floats, b: Floats, free: Mask, rows: npt.NDArray[np.intp]) -> tuple[Floats, Floats]:
    """Minimise over {sum p = 1, p = 0 outside `free`}; return p and the multipliers mu of p >= 0, each (B', n).

    With the multiplier lam of the sum, A p - b = lam + mu/2 and mu = 0 on the free classes.
    """
    if A.ndim == 3:
        P, lam = _own_systems(A[rows], b[rows], free[rows])
        AP = np.matmul(A[rows], P[:, :, None])[:, :, 0]
    else:
        P, lam = _shared_systems(A, b[rows], free[rows])
        AP = P @ A
    return P, 2 * (AP - b[rows] - lam[:, None])


def _shared_systems(A: Floats, b: Floats, free: Mask) -> tuple[Floats, Floats]:
    """One inverse for all problems with the same free classes."""
    B, n = b.shape
    sets, group = np.unique(np.packbits(free, axis=1), axis=0, return_inverse=True)
    distinct = np.unpackbits(sets, axis=1, count=n).astype(bool)
    K = _systems(A, distinct)
    inverse = np.linalg.inv(K).astype(np.float64, copy=False)
    rhs = np.ones((B, n + 1))
    rhs[:, :n] = np.where(free, b, 0)
    # Problems in the order of their sets, so that each set is one product.
    order = np.argsort(group.ravel(), kind="stable")
    x = np.empty((B, n + 1))
    if len(sets) * 4 < B:
        for i, members in enumerate(np.split(order, np.cumsum(np.bincount(group.ravel()))[:-1])):
            x[members] = _refined(K[i], inverse[i], rhs[members])
    else:
        x = _refined(K[group.ravel()], inverse[group.ravel()], rhs[:, None, :])[:, 0]
    return np.where(free, x[:, :n], 0), -x[:, n]


def _refined(K: Floats, inverse: Floats, rhs: Floats) -> Floats:
    """Return the solutions x of K x = rhs for symmetric K, with one step of refinement; rhs (..., n + 1) in rows."""
    x = np.matmul(rhs, inverse)
    return np.asarray(x + np.matmul(rhs - np.matmul(x, K), inverse))


def _systems(A: Floats, free: Mask) -> Floats:
    """Return the bordered matrices (B, n + 1, n + 1), with unit vectors for the classes that are not free."""
    B, n = free.shape
    K = np.zeros((B, n + 1, n + 1))
    K[:, :n, :n] = np.where(free[:, :, None] & free[:, None, :], A, 0)
    K[:, np.arange(n), np.arange(n)] += ~free
    K[:, :n, n] = K[:, n, :n] = free
    return K


def _own_systems(A: Floats, b: Floats, free: Mask) -> tuple[Floats, Floats]:
    """One system per problem."""
    B, n = b.shape
    rhs = np.ones((B, n + 1, 1))
    rhs[:, :n, 0] = np.where(free, b, 0)
    x = np.linalg.solve(_systems(A, free), rhs)[:, :, 0].astype(np.float64, copy=False)
    return x[:, :n], -x[:, n]


def _primal_active_set(A: Floats, b: Floats, scale: Floats) -> Floats:
    """Move feasible points downhill, one class at a time; finite for positive definite A, since the value falls."""
    B, n = b.shape
    P = np.full((B, n), 1 / n)
    free = np.ones((B, n), dtype=bool)
    open_ = np.arange(B)
    for _ in range(50 * n):
        X, mu = _equality_solution(A, b, free, open_)
        inside = ~(free[open_] & (X < 0)).any(axis=1)
        # Feasible: take it; done unless a multiplier is negative, whose class then gets mass.
        P[open_[inside]] = X[inside]
        entering = np.where(free[open_], 0, mu).argmin(axis=1)
        done = inside & (mu[np.arange(len(open_)), entering] >= -ROUNDING * scale[open_])
        grow = open_[inside & ~done]
        free[grow, entering[inside & ~done]] = True
        # Infeasible: go as far as p >= 0 allows; the class that stops the step loses its mass.
        out = open_[~inside]
        step = np.where(free[out] & (X[~inside] < 0), P[out] / np.maximum(P[out] - X[~inside], 1e-300), np.inf)
        blocking = step.argmin(axis=1)
        P[out] += step.min(axis=1)[:, None] * (X[~inside] - P[out])
        P[out, blocking] = 0
        free[out, blocking] = False
        open_ = open_[~done]
        if len(open_) == 0:
            break
    return P
