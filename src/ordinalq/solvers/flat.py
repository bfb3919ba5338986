"""Among several optima of a smooth objective the one nearest to uniform.

Where columns of M depend on each other, or bins are empty, p may move without any change of the objective. Which
optimum Newton's method ends at is then an accident of its steps. All optima have the same M p in the bins that count,
so that the nearest one is the projection of the uniform p onto {p >= 0 : p - p* in the flat directions}.
"""

import numpy as np

from ordinalq._utils.validation import Floats
from ordinalq.solvers.objectives import Objective
from ordinalq.solvers.quadratic import solve_qp
from ordinalq.solvers.solution import EXCESS, SMALL_EXCESS, Solution, kkt_residual

# Directions are flat where what is seen of them is below this part of what is seen of the others.
FLAT = 1e-14
# Weight of the condition that p moves along flat directions only, beside the distance from uniform; each step on its
# multipliers removes all but one part in this many of what is left.
WEIGHT = 1e4
MULTIPLIER_STEPS = 5


def move_to_uniform(objective: Objective, solution: Solution) -> None:
    """Replace the optima of samples that have several by those nearest to uniform, in place."""
    rows = np.arange(len(solution.p))
    seen = objective.seen(rows)
    if seen is None:
        return
    n = objective.n_classes
    T = np.eye(n) - 1 / n
    size, axes = np.linalg.eigh(T @ seen.matrices @ T)
    kept = (size > FLAT * size[:, -1:]) & (size > 0)
    # (1, ..., 1), which the projection has set to zero, is not along the simplex.
    flat = kept.sum(axis=1) < n - 1
    chosen = np.flatnonzero(flat[seen.which] & solution.converged)
    if len(chosen) == 0:
        return
    R = (axes * kept[:, None, :])[seen.which[chosen]]
    P = _projected(R, solution.p[chosen])
    with np.errstate(divide="ignore", invalid="ignore"):
        at = objective.derivatives(P, chosen)
    allowed = solution.value[chosen] + np.maximum(EXCESS * np.abs(solution.value[chosen]), SMALL_EXCESS) / 2
    # A mass of 1e-17 that rounding has taken away may have been all that a bin had: the slope is infinite there.
    good = (at.value <= allowed) & np.isfinite(at.gradient).all(axis=1)
    rows = chosen[good]
    solution.p[rows], solution.value[rows] = P[good], at.value[good]
    solution.kkt[rows] = kkt_residual(P[good], at.gradient[good]) / objective.scale[rows]


def _projected(R: Floats, P: Floats) -> Floats:
    """Return the points nearest to uniform among those of the simplex with R'p as at P (B, n).

    R (B, n, n) has orthonormal columns, some of them zero. Minimises ||p - 1/n||^2 by the method of multipliers.
    """
    B, n = P.shape
    RR = np.matmul(R, R.transpose(0, 2, 1))
    u = np.full((B, n), 1 / n)
    # Without a class at its limit this is all.
    X = P + (u - P) - np.matmul(RR, (u - P)[:, :, None])[:, :, 0]
    left = np.flatnonzero((X < 0).any(axis=1))
    A = np.eye(n) + WEIGHT * RR[left]
    fixed = u[left] + WEIGHT * np.matmul(RR[left], P[left][:, :, None])[:, :, 0]
    pull = np.zeros((len(left), n))
    for _ in range(MULTIPLIER_STEPS if len(left) else 0):
        X[left] = solve_qp(A, fixed - pull, P[left] > 0).p
        pull += WEIGHT * np.matmul(RR[left], (X[left] - P[left])[:, :, None])[:, :, 0]
    return np.asarray(X)
