"""Newton's method on the simplex for a batch of smooth objectives.

Each step minimises the second-order model over the simplex itself, a small quadratic program, so that classes without
mass are found exactly instead of in a limit; a line search per sample makes the objective fall. Samples that are done
leave the batch.
"""

import numpy as np
import numpy.typing as npt
from sklearn.base import BaseEstimator

from ordinalq.objectives import Objective
from ordinalq.simplex import Derivatives, centred_gradient
from ordinalq.solvers.quadratic import simplex_qp
from ordinalq.solvers.solution import Solution, kkt_residual
from ordinalq.validation import Floats, check_integer, check_real

# The optimum of a stage is only a start for the next.
STAGE_TOL = 1e-4
# Where the decrease that a step promises is lost in the rounding of the value, so many more steps polish p.
POLISHING = 3
# With a kink that is rounded off, the gradient is no more accurate than this.
ROUNDED_OFF = 1e-4
# A step must achieve this part of the decrease that the gradient promises.
ARMIJO = 1e-4
# Curvatures below this part of the largest are raised to it.
MIN_CURVATURE = 1e-12


class NewtonSolver(BaseEstimator):
    """Newton's method with simplex-constrained steps.

    Parameters
    ----------
    max_iter : int, default=200
        Largest number of steps for each objective and each of its stages.
    tol : float, default=1e-10
        A sample is done when its KKT residual is at most this.
    """

    def __init__(self, *, max_iter: int = 200, tol: float = 1e-10) -> None:
        self.max_iter = max_iter
        self.tol = tol

    def minimize(self, objective: Objective) -> Solution:
        """Minimise every sample's objective, from the uniform p and along the stages that the objective offers."""
        max_iter = check_integer("max_iter", self.max_iter, minimum=1)
        tol = check_real("tol", self.tol, low=0)
        if objective.absolute() is not None:
            raise TypeError(f"solver 'newton' needs a smooth objective, got {objective}; use solver='l1'.")
        B, n = objective.n_samples, objective.n_classes
        solution = Solution(np.empty((B, n)), np.empty(B), np.empty(B, np.int64), np.empty(B, np.bool_), np.empty(B))
        for rows, part in objective.passes():
            uniform = np.full((len(rows), n), 1 / n)
            solution.put(rows, _minimize_in_stages(part, part.stages(), uniform, max_iter, tol))
        # Other starts for the samples that may have several minima; the best one counts.
        hard = objective.ambiguous()
        if hard.any():
            for rows, part in objective.passes(hard):
                again = _minimize_in_stages(part, part.stages()[1:], np.full((len(rows), n), 1 / n), max_iter, tol)
                better = again.value < solution.value[rows] - 1e-12
                solution.put(rows[better], again.take(better))
        return solution


def _minimize_in_stages(
    objective: Objective, stages: list[Objective], P: Floats, max_iter: int, tol: float
) -> Solution:
    """Minimise the stages one after the other from P (B, n), each from the optimum of the one before."""
    steps = np.zeros(len(P), dtype=np.int64)
    for stage in stages:
        form = stage.quadratic()
        if form is not None:
            P, _ = simplex_qp(*form)
            continue
        staged = _minimize(stage, _inside(stage, P), max_iter, max(tol, STAGE_TOL))
        P, steps = staged.p, steps + staged.n_iter
    return _minimize(objective, _inside(objective, P), max_iter, tol, steps)


def _inside(objective: Objective, P: Floats) -> Floats:
    """Return P (B, n), with some mass for every class where the objective is infinite otherwise."""
    outside = ~np.isfinite(objective.value(P, np.arange(len(P))))
    return np.where(outside[:, None], 0.99 * P + 0.01 / P.shape[1], P)


def _minimize(
    objective: Objective, P: Floats, max_iter: int, tol: float, steps: npt.NDArray[np.int64] | None = None
) -> Solution:
    """Minimise the objectives of all samples from the points P (B, n); `steps` (B,) were taken before."""
    P = P.copy()
    B = len(P)
    value, kkt = np.empty(B), np.empty(B)
    n_iter = np.zeros(B, dtype=np.int64) if steps is None else steps.copy()
    stuck = np.zeros(B, dtype=bool)
    careful = np.zeros(B, dtype=bool)
    polished = np.zeros(B, dtype=np.int64)
    open_ = np.arange(B)
    for iteration in range(max_iter + 1):
        at = objective.derivatives(P[open_], open_)
        value[open_] = at.value
        kkt[open_] = kkt_residual(P[open_], at.gradient) / objective.scale[open_]
        going = (kkt[open_] > tol) & ~stuck[open_] & (polished[open_] < POLISHING)
        if iteration == max_iter or not going.any():
            break
        open_, at = open_[going], Derivatives(*(part[going] for part in at))
        n_iter[open_] += 1
        noise = 1e-14 * (np.abs(at.value) + objective.scale[open_])
        P[open_], moved, promised = _step(objective, open_, P[open_], at, noise, careful[open_])
        # Bending a curvature upwards can leave next to no step far from the optimum: be careful from there on.
        halted = ((promised <= noise) | ~moved) & (kkt[open_] > ROUNDED_OFF) & ~careful[open_] & (not objective.convex)
        careful[open_[halted]] = True
        polished[open_] += (promised <= noise) & ~halted
        stuck[open_] = ~moved & ~halted
    return Solution(P, value, n_iter, (kkt <= tol) | ((polished > 0) & (kkt <= ROUNDED_OFF)), kkt)


def _step(
    objective: Objective,
    rows: npt.NDArray[np.intp],
    P: Floats,
    at: Derivatives,
    noise: Floats,
    careful: npt.NDArray[np.bool_],
) -> tuple[Floats, npt.NDArray[np.bool_], Floats]:
    """Take one damped Newton step; return the new points, which samples could move, and the promised decrease.

    `noise` (B',) is the rounding error of the values: a rise below it does not count. `careful` (B',) samples use the
    objective's majorizer where it is not convex: smaller but safer steps.
    """
    H = along_simplex(at.hessian)
    if not objective.convex:
        bad = ~positive_definite(H)
        H[bad] = bent_upwards(H[bad])
        bad &= careful
        above = objective.majorizer(P[bad], rows[bad]) if bad.any() else None
        if above is not None:
            H[bad] = along_simplex(above)
    b = np.matmul(H, P[:, :, None])[:, :, 0] - at.gradient
    X, _ = simplex_qp(H / 2, b / 2, P > 0)
    D = X - P
    # D sums to zero, so the mean of the gradient does not count; left in, its rounding errors would.
    slope = (centred_gradient(P, at.gradient) * D).sum(axis=1)
    step = np.ones(len(P))
    new = P.copy()
    open_ = np.flatnonzero(slope < 0)
    moved = np.zeros(len(P), dtype=bool)
    while len(open_):
        trial = P[open_] + step[open_, None] * D[open_]
        value = objective.value(trial, rows[open_])
        # A step that promises less than the noise is too small to be judged by the value: it polishes p.
        good = value <= at.value[open_] + ARMIJO * step[open_] * slope[open_] + noise[open_]
        good |= (-slope[open_] <= noise[open_]) & np.isfinite(value)
        new[open_[good]], moved[open_[good]] = trial[good], True
        open_ = open_[~good]
        step[open_] /= 2
        open_ = open_[step[open_] > 1e-12]
    return new, moved, -slope


def along_simplex(H: Floats) -> Floats:
    """Return H (B, n, n) with a tiny ridge, and positive curvature along (1, ..., 1), where no step goes."""
    n = H.shape[1]
    H = H - H.mean(axis=1, keepdims=True)
    H = H - H.mean(axis=2, keepdims=True)
    mean = np.maximum(np.trace(H, axis1=1, axis2=2) / n, 1e-300)[:, None, None]
    return np.asarray(H + mean * (MIN_CURVATURE * np.eye(n) + 1 / n))


def bent_upwards(H: Floats) -> Floats:
    """Return H (B, n, n) with negative curvatures replaced by their absolute values, tiny ones by a small positive."""
    curvature, axes = np.linalg.eigh(H)
    size = np.abs(curvature)
    size = np.maximum(size, 1e3 * MIN_CURVATURE * size.max(axis=1, keepdims=True))
    return np.asarray(np.matmul(axes * size[:, None, :], axes.transpose(0, 2, 1)))


def positive_definite(H: Floats) -> npt.NDArray[np.bool_]:
    """Say which of the matrices H (B, n, n) are positive definite: all pivots of their elimination are positive."""
    H = H.copy()
    good = np.ones(len(H), dtype=bool)
    for k in range(H.shape[1]):
        good &= H[:, k, k] > 0
        column = np.where(good[:, None], H[:, k + 1 :, k], 0.0)
        pivot = np.where(good, H[:, k, k], 1.0)
        H[:, k + 1 :, k + 1 :] -= column[:, :, None] * (column / pivot[:, None])[:, None, :]
    return good
