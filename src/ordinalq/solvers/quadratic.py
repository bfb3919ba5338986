"""Exact solution of convex quadratic programs over the simplex, a whole batch at once.

min_p p'Ap - 2 b'p + tau/2 ||C p - c||^2 over {p >= 0, sum p = 1}, with A positive semidefinite on the directions that
sum to zero. One A may serve the whole batch (ACC, PACC, EDy, o-PDF and their regularized forms), or each problem has
its own (the steps of Newton's method). `active_set` finds the classes with mass, `systems` solves for given ones.
"""

from typing import NamedTuple

import numpy as np
from sklearn.base import BaseEstimator

from ordinalq._utils.validation import Counts, Floats, Index, Mask
from ordinalq.regularizers import Penalty
from ordinalq.simplex import Derivatives, row_product
from ordinalq.solvers.active_set import active_set
from ordinalq.solvers.objectives import Objective
from ordinalq.solvers.solution import EXCESS, SMALL_EXCESS, Solution, kkt_residual, optimality_gap
from ordinalq.solvers.systems import (
    INFINITE,
    RANK,
    STIFF,
    PlainSystems,
    StiffSystems,
)

# A curvature along the simplex below this part of the largest is rounding error: A counts as singular.
SINGULAR = 1e-14
# Below this part each problem is treated by itself, since the last digits would be seen in p.
DELICATE = 1e-6
# A ridge of this part of the geometric mean of the largest and the smallest curvature balances its own effect against
# the rounding errors, which grow as it shrinks.
RIDGE = 1e-8
# Proximal steps towards an optimum near uniform: the first finds it, the others remove the ridge's effect.
PROXIMAL_STEPS = 3
# Rounds that bring rows and columns of a system to the same size.
EQUILIBRATIONS = 4
# How often an answer that is not confirmed is corrected by its own, more accurate gradient.
CORRECTIONS = 4


class QPSolution(NamedTuple):
    """Minima of B problems, and how the penalty's gradient follows from them.

    Parameters
    ----------
    p, n_iter : ndarray (B, n), (B,)
        The minima, and the rounds needed.
    penalty, r : Penalty or None, ndarray (B, m) or None
        The penalty of all problems, and tau (C p - c) where it is stiff.
    regular : ndarray (B,)
        Whether no ridge was needed, and the active sets came to an end.
    """

    p: Floats
    n_iter: Counts
    penalty: Penalty | None
    r: Floats | None
    regular: Mask

    def multipliers(self) -> Floats:
        """Return tau (C p - c), (B, m), without columns where there is no penalty."""
        if self.penalty is None:
            return np.zeros((len(self.p), 0))
        tau, C, c = self.penalty
        return np.asarray(tau * (row_product(self.p, C.T) - c)) if self.r is None else self.r.copy()

    def whole(self, bare: Derivatives) -> tuple[Floats, Floats]:
        """Return value (B,) and gradient (B, n) at p, from those of the objective without the penalty."""
        if self.penalty is None:
            return bare.value, bare.gradient
        return bare.value + self.penalty.value(self.p), bare.gradient + row_product(self.multipliers(), self.penalty.C)


class QuadraticSolver(BaseEstimator):
    """Exact solver of objectives that are quadratic with one matrix A for the batch.

    Where A is singular along the simplex, several p are optimal; the one nearest to the uniform distribution is
    returned.
    """

    def minimize(self, objective: Objective) -> Solution:
        """Minimise every sample's objective; p is exact up to rounding."""
        parts = objective.split()
        bare, penalty = (objective, None) if parts is None else parts
        form = bare.quadratic()
        if form is None or (parts is None and objective.quadratic() is None):
            raise TypeError(f"solver 'quadratic' needs a quadratic objective, got {objective}; use solver='newton'.")
        A, b = form
        found = solve_qp(A, b, penalty=penalty)
        value, gradient = found.whole(bare.derivatives(found.p, np.arange(objective.n_samples)))
        solution = Solution(found.p, value, found.n_iter, np.zeros(len(b), dtype=bool), np.empty(len(b)))
        limit = np.maximum(EXCESS * np.abs(value), SMALL_EXCESS)
        solution.converged[:] = optimality_gap(found.p, gradient) <= limit
        if objective.nonnegative:
            solution.converged[value <= SMALL_EXCESS] = True
        open_ = np.flatnonzero(~solution.converged)
        if len(open_):
            gradient[open_] = _correct(bare, A, penalty, solution, gradient[open_], limit[open_], open_)
        solution.kkt[:] = kkt_residual(solution.p, gradient) / objective.scale
        return solution


def _correct(
    bare: Objective,
    A: Floats,
    penalty: Penalty | None,
    solution: Solution,
    gradient: Floats,
    limit: Floats,
    rows: Index,
) -> Floats:
    """Correct the answers `rows` (B',) that are not confirmed by their own, more accurate gradients, in place.

    Returns the gradients (B', n) at the corrected p; an excess of `limit` (B',) is allowed.
    """
    P, G = solution.p, gradient.copy()
    for _ in range(CORRECTIONS):
        at = np.flatnonzero(~solution.converged[rows])
        if len(at) == 0:
            break
        open_ = rows[at]
        g = bare.gradient(P[open_], open_)
        again = solve_qp(A, row_product(P[open_], A) - g / 2, P[open_] > 0, penalty=penalty, alone=True)
        again = _refined(bare, A, again, open_)
        value, new = again.whole(bare.derivatives(again.p, open_))
        better = optimality_gap(again.p, new) < optimality_gap(P[open_], G[at])
        chosen = open_[better]
        P[chosen], solution.value[chosen], G[at[better]] = again.p[better], value[better], new[better]
        solution.n_iter[chosen] += again.n_iter[better]
        # The gap counts every class as if all mass could go there; what a step on the classes with mass gains, and
        # those without could, is nearer to the truth.
        confirmed = again.regular & (_gain(A, again, new) <= limit[at]) & better
        solution.converged[open_] = confirmed | (optimality_gap(P[open_], G[at]) <= limit[at])
    return G


def _refined(bare: Objective, A: Floats, found: QPSolution, rows: Index) -> QPSolution:
    """Return p, and r where there is a penalty, after a step from each p (B', n) on its classes with mass.

    The step is a correction: it has as many digits as its gradient, while p as a whole has only those of A p.
    """
    P, r = found.p.copy(), found.multipliers()
    _, G = found.whole(bare.derivatives(P, rows))
    for i in range(len(P)):
        step, r_step = _face_step(A, found.penalty, P[i], r[i], G[i])
        if (P[i] + step >= 0).all():
            P[i], r[i] = P[i] + step, r[i] + r_step
    return found._replace(p=P, r=None if found.penalty is None else r)


def _gain(A: Floats, found: QPSolution, G: Floats) -> Floats:
    """Return by how much the value can fall (B',) on the classes with mass, and by the best of those without."""
    gain, r = np.empty(len(G)), found.multipliers()
    for i, (p, g) in enumerate(zip(found.p, G, strict=True)):
        step, _ = _face_step(A, found.penalty, p, r[i], g)
        promised = -float(step @ (g - p @ g))
        gain[i] = max(float(p @ g - g.min()) if (p == 0)[g.argmin()] else 0.0, promised if promised >= 0 else np.inf)
    return gain


def _face_step(A: Floats, penalty: Penalty | None, p: Floats, r: Floats, g: Floats) -> tuple[Floats, Floats]:
    """Return how p (n,) and r (m,) change to the optimum on the classes with mass, where the gradient is g (n,).

    With r = tau (C p - c) as an unknown of its own, no entry of the system holds the sum of a large and a small term.
    """
    free = p > 0
    C = np.zeros((0, len(p))) if penalty is None else penalty.C
    k, m = int(free.sum()), len(C)
    K, rhs = np.zeros((k + m + 1, k + m + 1)), np.zeros(k + m + 1)
    K[:k, :k] = 2 * A[np.ix_(free, free)]
    K[:k, k:-1], K[k:-1, :k] = C[:, free].T, C[:, free]
    K[:k, -1] = K[-1, :k] = 1
    rhs[:k], rhs[-1] = -(g - p @ g)[free], 1 - p.sum()
    if penalty is not None:
        K[np.arange(k, k + m), np.arange(k, k + m)] = -1 / penalty.tau
        rhs[k:-1] = r / penalty.tau - (C @ p - penalty.c)
    unit = np.ones(len(K))
    for _ in range(EQUILIBRATIONS):
        unit /= np.sqrt(np.maximum(np.abs(unit[:, None] * K * unit).max(axis=1), np.finfo(float).tiny))
    # Along directions in which nothing changes there is no step: K is singular there, up to rounding errors.
    x = unit * np.linalg.lstsq(unit[:, None] * K * unit, unit * rhs, rcond=None)[0]
    step = np.zeros(len(p))
    step[free] = x[:k]
    return step, x[k:-1]


def simplex_qp(A: Floats, b: Floats, free: Mask | None = None) -> tuple[Floats, Counts]:
    """Minimise p'Ap - 2 b'p over the simplex for each row of b (B, n); return p (B, n) and the rounds needed (B,).

    A (n, n) or (B, n, n) is symmetric, positive semidefinite on directions that sum to zero; `free` (B, n) is a first
    guess of the classes with mass, None stands for all.
    """
    found = solve_qp(A, b, free)
    return found.p, found.n_iter


def solve_qp(
    A: Floats, b: Floats, free: Mask | None = None, *, penalty: Penalty | None = None, alone: bool = False
) -> QPSolution:
    """Minimise p'Ap - 2 b'p plus a penalty over the simplex; parameters as for :func:`simplex_qp`.

    Singularity is judged in one matrix for all problems, and where the penalty is stiff, in the directions that it does
    not see: there A is all there is, however small.
    """
    free = np.ones(b.shape, dtype=bool) if free is None else free
    if A.ndim == 3:
        return _solve(A, b, free, penalty, alone=True)
    stiff = penalty is not None and bool(is_stiff(penalty, np.abs(along_simplex(A)).max()))
    kept = penalty if stiff else None
    if penalty is not None and not stiff:
        A, b = _merged(A, b, penalty)
    judged = _judge(A if kept is None else _unseen(A, kept), scaled=kept is None)
    if judged.ridge > 0:
        found = _nearest_to_uniform(A, b, judged.ridge, kept)
    else:
        found = _solve(A, b, free, kept, alone=alone or judged.delicate)
    return found if stiff else found._replace(penalty=penalty)


class _Judged(NamedTuple):
    """Whether the last digits of a problem are seen in p, and the ridge that a singular one needs, else 0."""

    delicate: bool
    ridge: float


def _judge(A: Floats, *, scaled: bool) -> _Judged:
    """Judge A (n, n) along the simplex; where it is not `scaled`, as a whole.

    The coordinates are all p_i but one. Each is scaled by its own curvature, for a column of M that is much longer than
    the others makes no problem singular.
    """
    if scaled:
        i = int(np.abs(A.diagonal()).argmin())
        A = A - A[i] - A[:, i, None] + A[i, i]
        A = np.delete(np.delete(A, i, axis=0), i, axis=1)
    if A.size == 0:
        return _Judged(False, 0.0)
    unit = np.sqrt(np.maximum(A.diagonal(), 0)) if scaled else np.ones(len(A))
    safe = np.where(unit > 0, unit, 1.0)
    relative = np.sort(np.abs(np.linalg.eigvalsh(A / (safe[:, None] * safe))))
    zero = int((relative <= SINGULAR * relative[-1]).sum())
    if zero == 0:
        return _Judged(bool(relative[0] <= DELICATE * relative[-1]), 0.0)
    curvature = np.sort(np.abs(np.linalg.eigvalsh(A)))
    size = curvature[-1] if curvature[-1] > 0 else 1.0
    if zero == len(curvature):
        return _Judged(True, float(size))
    # Small also for the classes whose columns are not long, should the mass be theirs.
    return _Judged(True, float(RIDGE * min(np.sqrt(size * curvature[zero]), np.median(A.diagonal()[unit > 0]))))


def is_stiff(penalty: Penalty, curvature: Floats) -> Mask:
    """Return whether a penalty is too strong to be added to matrices of the given curvatures (B,) along the simplex."""
    return np.asarray(penalty.tau / 2 * np.square(penalty.C).sum(axis=0).max() > STIFF * curvature)


def along_simplex(A: Floats) -> Floats:
    """Return A restricted to the directions that sum to zero, as an (n, n) matrix with (1, ..., 1) in its kernel."""
    A = A - A.mean(axis=0)
    return np.asarray(A - A.mean(axis=1, keepdims=True))


def _unseen(A: Floats, penalty: Penalty) -> Floats:
    """Return A on the directions that sum to zero and that the penalty does not see."""
    _, S, Vt = np.linalg.svd(np.vstack([penalty.C, np.ones(len(A))]))
    rank = int((RANK * S[0] < S).sum())
    return np.asarray(Vt[rank:] @ A @ Vt[rank:].T)


def _merged(A: Floats, b: Floats, penalty: Penalty) -> tuple[Floats, Floats]:
    """Return A and b with the penalty in them."""
    tau, C, c = penalty
    return A + tau / 2 * C.T @ C, b + tau / 2 * (c @ C)


def _solve(A: Floats, b: Floats, free: Mask, penalty: Penalty | None, *, alone: bool) -> QPSolution:
    """Solve problems that have one optimum; a penalty is kept apart."""
    if penalty is None:
        P, n_iter, ended = active_set(PlainSystems(A, b, alone=alone), free)
        return QPSolution(P, n_iter, None, None, ended)
    systems = StiffSystems(A, b, _bounded(penalty, A, b))
    P, n_iter, ended = active_set(systems, free)
    return QPSolution(P, n_iter, penalty, systems.r, ended)


def _bounded(penalty: Penalty, A: Floats, b: Floats) -> Penalty:
    """Return the penalty with a tau that is as good as infinite, where it is larger: squares of it stay finite."""
    size = float(np.abs(A).max() + np.abs(b).max())
    return penalty._replace(tau=min(penalty.tau, INFINITE * size)) if size > 0 else penalty


def _nearest_to_uniform(A: Floats, b: Floats, ridge: float, penalty: Penalty | None) -> QPSolution:
    """Solve problems with many optima by proximal steps that start at the uniform p.

    Each step minimises the objective plus ridge * ||p - previous||^2. The first is as near to the optimum that is
    nearest to uniform as the ridge is small against the positive curvatures.
    """
    n = len(A)
    P = np.full(b.shape, 1 / n)
    rounds = np.zeros(len(b), dtype=np.int64)
    for _ in range(PROXIMAL_STEPS):
        found = _solve(A + ridge * np.eye(n), b + ridge * P, P > 0, penalty, alone=True)
        P, rounds = found.p, rounds + found.n_iter
    return found._replace(n_iter=rounds, regular=np.zeros(len(b), dtype=bool))
