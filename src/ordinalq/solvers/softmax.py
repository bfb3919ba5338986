"""Newton's method in the soft-max chart of the paper: p = softmax(l), from l = 0.

It repeats the numerics of the paper. The chart covers the open simplex only: where a class of the optimum
is empty, p approaches it without end, and what is left is of the order of the tolerance. The other solvers work on the
simplex itself, and find empty classes exactly.
"""

import numpy as np
from sklearn.base import BaseEstimator

from ordinalq._utils.validation import Floats, Index, Mask, check_integer, check_real
from ordinalq.simplex import Derivatives, softmax, softmax_derivatives
from ordinalq.solvers.newton import make_convex
from ordinalq.solvers.objectives import Objective
from ordinalq.solvers.solution import Solution, kkt_residual

# No latent moves by more in a step: the second-order model of an exponential holds no farther.
LONGEST = 2.0
# A step must achieve this part of the decrease expected from the gradient.
ARMIJO = 1e-4
# The line search gives up below this length.
SHORTEST = 1e-10
# Rounding error of a value, as part of its terms: a rise below it does not count.
NOISE = 1e-14


class SoftmaxSolver(BaseEstimator):
    """Newton solver in the soft-max chart [eq:softmax2].

    Minimizes F(softmax(l)) over l with l_1 = 0 from l = 0, the uniform p.

    Steps are those of Newton's method with negative curvatures turned upwards (F is not convex in l even if it is in
    p), shortened to at most 2 per latent and until F falls. The end is judged on the simplex, by the KKT residual of p:
    the gradient in l vanishes on every face, a wrong one too.

    Parameters
    ----------
    max_iter : int, default=500
        Largest number of steps.
    tol : float, default=1e-8
        A sample is done when its KKT residual is at most this.
    """

    def __init__(self, *, max_iter: int = 500, tol: float = 1e-8) -> None:
        self.max_iter = max_iter
        self.tol = tol

    def minimize(self, objective: Objective) -> Solution:
        """Minimise every sample's objective from l = 0."""
        max_iter = check_integer("max_iter", self.max_iter, minimum=1)
        tol = check_real("tol", self.tol, low=0)
        if objective.absolute() is not None:
            raise TypeError(f"solver 'softmax' needs a smooth objective, got {objective}. Use solver='l1'.")
        B, n = objective.n_samples, objective.n_classes
        solution = Solution(np.empty((B, n)), np.empty(B), np.empty(B, np.int64), np.empty(B, np.bool_), np.empty(B))
        for rows, part in objective.passes():
            solution.put(rows, _minimize(part, max_iter, tol))
        return solution


def _minimize(objective: Objective, max_iter: int, tol: float) -> Solution:
    """Minimize the objectives of all samples from l = 0."""
    objective = objective.along_simplex()
    B, n = objective.n_samples, objective.n_classes
    L, value, kkt = np.zeros((B, n - 1)), np.empty(B), np.empty(B)
    n_iter = np.zeros(B, dtype=np.int64)
    open_ = np.arange(B)
    for iteration in range(max_iter + 1):
        P = softmax(L[open_])
        at = objective.derivatives(P, open_)
        value[open_] = at.value
        kkt[open_] = kkt_residual(P, at.gradient) / objective.scale[open_]
        going = kkt[open_] > tol
        if iteration == max_iter or not going.any():
            break
        open_, at = open_[going], Derivatives(*(field[going] for field in at))
        n_iter[open_] += 1
        moved = _step(objective, L, open_, softmax_derivatives(P[going], at))
        open_ = open_[moved]
        if len(open_) == 0:
            break
    return Solution(softmax(L), value, n_iter, kkt <= tol, kkt)


def _step(objective: Objective, L: Floats, open_: Index, at: Derivatives) -> Mask:
    """Move the latents L of the samples `open_` (b,); return which moved."""
    D = -np.linalg.solve(make_convex(at.hessian), at.gradient[:, :, None])[:, :, 0]
    D *= LONGEST / np.maximum(np.abs(D).max(axis=1, keepdims=True), LONGEST)
    slope = (at.gradient * D).sum(axis=1)
    allowed = NOISE * (np.abs(at.value) + objective.scale[open_])
    step, moved = np.ones(len(D)), np.zeros(len(D), dtype=bool)
    left = np.flatnonzero(slope < 0)
    while len(left):
        trial = L[open_[left]] + step[left, None] * D[left]
        found = objective.value(softmax(trial), open_[left])
        good = found <= at.value[left] + ARMIJO * step[left] * slope[left] + allowed[left]
        L[open_[left[good]]], moved[left[good]] = trial[good], True
        left = left[~good]
        step[left] /= 2
        left = left[step[left] > SHORTEST]
    return moved
