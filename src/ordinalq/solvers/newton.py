"""Newton's method on the simplex for a batch of smooth objectives.

Each step minimises the second-order model over the simplex itself, a small quadratic program, so that classes without
mass are found exactly instead of in a limit; a line search per sample makes the objective fall. Samples that are done
leave the batch. Every sample is in one :class:`State`, which determines its next step and its end.
"""

from collections.abc import Callable, Iterator

import numpy as np
from sklearn.base import BaseEstimator

from ordinalq._utils.validation import Counts, Floats, Index, Mask, check_integer, check_real
from ordinalq.regularizers import Penalty
from ordinalq.simplex import Derivatives, centred_gradient, row_product
from ordinalq.solvers.objectives import HESSIANS, Objective
from ordinalq.solvers.quadratic import is_stiff, simplex_qp, solve_qp
from ordinalq.solvers.solution import EXCESS, SMALL_EXCESS, Solution, kkt_residual, optimality_gap

# Curvatures of the models of Newton's method, and their expected gains.


# Curvatures below this part of the largest are raised to it.
MIN_CURVATURE = 1e-14
# The same where curvatures are bent upwards: there the model is rough anyway, and the steps should not be wild.
MIN_BENT_CURVATURE = 1e-9


def lowest_nearby(values: Callable[[Floats, Index], Floats], P: Floats, rows: Index, H: Floats | None = None) -> Floats:
    """Return the points of least value on the lines from P (B, n) to each class.

    Steps of many sizes are tried. With curvatures H (B, n, n), each step is also tried with a correction in the class
    of the largest curvature.
    """
    best, lowest = P.copy(), values(P, rows)
    for corner in np.eye(P.shape[1]):
        for step in NEARBY:
            straight = P + step * (corner - P)
            for tried in (straight,) if H is None else (straight, _corrected(straight, P, H)):
                value = values(tried, rows)
                lower = value < lowest
                best[lower], lowest[lower] = tried[lower], value[lower]
    return best


def _corrected(X: Floats, P: Floats, H: Floats) -> Floats:
    """Return X (B, n) with the least second-order change from P by moving one class.

    It is the class with the largest curvature in H. The others share what it takes or gives.
    """
    b = np.arange(len(P))
    k = np.einsum("bii->bi", H).argmax(axis=1)
    change = np.einsum("bi,bi->b", H[b, k], X - P) / H[b, k, k]
    mass = np.clip(X[b, k] - change, 0.0, 1.0)
    rest = np.maximum(1 - X[b, k], np.finfo(float).tiny)
    found = X * ((1 - mass) / rest)[:, None]
    found[b, k] = mass
    return np.asarray(found)


def largest_curvature(H: Floats) -> Floats:
    """Return the largest curvature (B,) of H (B, n, n) along p_i - 1/n."""
    means = H.mean(axis=2)
    return np.asarray((np.einsum("bii->bi", H) - 2 * means).max(axis=1) + means.mean(axis=1))


def typical_curvature(H: Floats) -> Floats:
    """Return the largest curvature (B,), but at most the median of the classes.

    A class with a long column of M has a curvature that is larger than the others by orders of magnitude.
    """
    return np.asarray(np.minimum(largest_curvature(H), np.median(np.abs(np.einsum("bii->bi", H)), axis=1)))


def with_ridge(H: Floats, G: Floats) -> Floats:
    """Return H (B, n, n) with a tiny ridge relative to its diagonal.

    Without any curvature, as if no bin with items counts, it is relative to the gradients G (B, n).
    """
    n = H.shape[1]
    diagonal = np.abs(np.einsum("bii->bi", H))
    mean = diagonal.mean(axis=1, keepdims=True)
    mean = np.where(mean > 0, mean, np.abs(G).max(axis=1, keepdims=True))
    H = H.copy()
    H[:, np.arange(n), np.arange(n)] += MIN_CURVATURE * (diagonal + mean) + np.finfo(float).tiny
    return H


def along_simplex(H: Floats) -> Floats:
    """Return H (B, n, n) with a ridge and positive curvature along (1, ..., 1)."""
    n = H.shape[1]
    H = H - H.mean(axis=1, keepdims=True)
    H = H - H.mean(axis=2, keepdims=True)
    mean = np.maximum(np.trace(H, axis1=1, axis2=2) / n, np.finfo(float).tiny)[:, None, None]
    return np.asarray(H + mean * (1e2 * MIN_CURVATURE * np.eye(n) + 1 / n))


def along_face(H: Floats, P: Floats, G: Floats) -> Floats:
    """Return H (B, n, n) along the face of P (B, n) for the gradient G (B, n).

    A class without mass, and which should get none, takes no part in a step. Beside a kink its curvature can be so
    large and negative that those which count are lost in it.
    """
    n = H.shape[1]
    free = (P > 0) | (centred_gradient(P, G) < 0)
    free |= free.sum(axis=1, keepdims=True) < 2
    inside = free[:, :, None] * np.eye(n) - (free / free.sum(axis=1, keepdims=True))[:, :, None] * free[:, None, :]
    # Where no curvature is left, it is below the rounding errors of H.
    least = np.finfo(float).eps * np.abs(H).max(axis=(1, 2)) + np.finfo(float).tiny
    H = np.matmul(np.matmul(inside, H), inside)
    size = np.abs(np.einsum("bii->bi", H)).mean(axis=1)
    size = np.where(size > 0, size, least)[:, None, None]
    return np.asarray(H + size * (1e2 * MIN_CURVATURE * np.eye(n) + np.eye(n) - inside))


def make_convex(H: Floats) -> Floats:
    """Return H (B, n, n) with absolute curvatures, and a small lower limit."""
    curvature, axes = np.linalg.eigh(H)
    size = np.abs(curvature)
    size = np.maximum(size, MIN_BENT_CURVATURE * size.max(axis=1, keepdims=True))
    return np.asarray(np.matmul(axes * size[:, None, :], axes.transpose(0, 2, 1)))


def positive_definite(H: Floats) -> Mask:
    """Return which of the matrices H (B, n, n) are positive definite."""
    H = H.copy()
    good = np.ones(len(H), dtype=bool)
    for k in range(H.shape[1]):
        good &= H[:, k, k] > 0
        column = np.where(good[:, None], H[:, k + 1 :, k], 0.0)
        pivot = np.where(good, H[:, k, k], 1.0)
        # Of a positive definite H, column^2 <= pivot * diagonal: if it overflows, H is not, and the next pivot is
        # negative.
        with np.errstate(over="ignore", invalid="ignore"):
            H[:, k + 1 :, k + 1 :] -= column[:, :, None] * (column / pivot[:, None])[:, None, :]
    return good


# Among several optima of a smooth objective the one nearest to uniform.
#
# Where columns of M depend on each other, or bins are empty, p may move without any change of the objective. Which
# optimum Newton's method ends at is then an accident of its steps. All optima have the same M p in the bins that count,
# so that the nearest one is the projection of the uniform p onto {p >= 0 : p - p* in the flat directions}.


# Directions are flat where what is seen of them is below this part of what is seen of the others.
FLAT = 1e-14
# Weight of the condition that p moves along flat directions only, next to the distance from uniform; each step on its
# multipliers removes all but one part in this many of what is left.
WEIGHT = 1e4
MULTIPLIER_STEPS = 5


def move_to_uniform(objective: Objective, solution: Solution) -> None:
    """Replace non-unique optima by those nearest to uniform, in place."""
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
    value = solution.value[chosen]
    # Of a value whose terms are much larger than itself, only the digits above its rounding errors can be compared.
    noise = NOISE * (np.abs(value) + objective.scale[chosen])
    allowed = value + np.maximum(EXCESS * np.abs(value), SMALL_EXCESS) / 2 + noise
    # A mass of 1e-17 that rounding has taken away may have been all that a bin had: the slope is infinite there.
    good = (at.value <= allowed) & np.isfinite(at.gradient).all(axis=1)
    rows = chosen[good]
    solution.p[rows], solution.value[rows] = P[good], at.value[good]
    solution.kkt[rows] = kkt_residual(P[good], at.gradient[good]) / objective.scale[rows]


def _projected(R: Floats, P: Floats) -> Floats:
    """Return the points nearest to uniform with R'p as at P (B, n).

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


# From this scale on, which is the number of items for the Poisson likelihood, rounding errors of the gradient can
# exceed what a weak penalty contributes along directions that the data do not determine.
LARGE_SCALE = 1e6
# A sample is flagged if rounding errors of the gradient may move p by more than this.
VISIBLE = 1e-6


def _is_imprecise(objective: Objective, solution: Solution) -> Mask:
    """Return which estimates (B,) of penalized objectives depend on rounding errors."""
    imprecise = np.zeros(len(solution.p), dtype=bool)
    rows = np.flatnonzero(objective.scale >= LARGE_SCALE)
    if len(rows) == 0 or objective.split() is None:
        return imprecise
    P = solution.p[rows]
    at = objective.derivatives(P, rows)
    H = along_face(at.hessian, P, at.gradient)
    error = np.finfo(float).eps * objective.scale[rows]
    imprecise[rows] = error > VISIBLE * np.linalg.eigvalsh(H)[:, 0]
    return imprecise


# The optimum of a stage is only a start for the next.
STAGE_TOL = 1e-4
# Rounding error of a value, as part of its terms: a rise below it does not count.
NOISE = 1e-14
# If the expected decrease of a step is lost in the rounding of the value, this many more steps polish p.
POLISHING_STEPS = 4
# With a kink that is rounded off, the gradient is only accurate to this; within the 1e-8 over which it is, that is
# 1e-11 of the value.
ROUNDED_OFF = 1e-3
# A step must achieve this part of the decrease expected from the gradient.
ARMIJO = 1e-4
# The line search gives up below this length.
SHORTEST = 1e-12
# Mass that all classes share at a start where the objective is infinite.
SOME_MASS = 0.01
# Per unit of the scale a larger tau does not change p, while rounding errors of p, squared, would swamp the value.
LARGEST = 1e16
# Where the slope, per unit of the scale, is beyond this, a bin with items has lost all that could explain them: no step
# leads away from there, so that this part of the last one is taken back.
STEEPEST, TAKEN_BACK = 1e12, 1e-3
# Of two minima the second must be lower by this to count as better.
LOWER = 1e-12
# A column of M is long if its curvature is this many times that of the typical class. Near a kink, a gradient that is
# small next to this column has little information on the value.
LONG_COLUMN = 1e8
# Steps towards each class at which values are compared if no model of the objective can be trusted.
NEARBY = 10.0 ** -np.arange(1, 17)


class State:
    """Next action of a sample; states up to POLISH take steps.

    ======== =================================== =====================================================================
    state    step                                leaves for
    ======== =================================== =====================================================================
    NEWTON   model bent upwards where it must be POLISH if its step promises less than rounding errors; CAREFUL if that
                                                 happens, or no step succeeds, far from an optimum; DONE, STUCK
    CAREFUL  the objective's majorizer           POLISH, DONE, STUCK
    POLISH   of less than rounding errors        DONE; EXHAUSTED after a few steps
    DONE     none: optimal up to the tolerance
    EXHAUSTED none: the gradient gets no smaller; converged if what is left is confirmed to be small
    STUCK    none: no step makes the value fall
    ======== =================================== =====================================================================
    """

    NEWTON = 0
    CAREFUL = 1
    POLISH = 2
    DONE = 3
    EXHAUSTED = 4
    STUCK = 5


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
        """Minimize every sample's objective from the uniform p, along its stages.

        Where several p are optimal, the one nearest to the uniform distribution is taken.
        """
        max_iter = check_integer("max_iter", self.max_iter, minimum=1)
        tol = check_real("tol", self.tol, low=0)
        if objective.absolute() is not None:
            raise TypeError(f"solver 'newton' needs a smooth objective, got {objective}. Use solver='l1'.")
        B, n = objective.n_samples, objective.n_classes
        solution = Solution(np.empty((B, n)), np.empty(B), np.empty(B, np.int64), np.empty(B, np.bool_), np.empty(B))
        for rows, part in objective.passes():
            uniform = np.full((len(rows), n), 1 / n)
            found = _minimize_in_stages(part, part.stages(), uniform, max_iter, tol)
            move_to_uniform(part, found)
            found.converged[_is_imprecise(part, found)] = False
            solution.put(rows, found)
        # Other starts for the samples that may have several minima; the best one counts.
        hard = objective.ambiguous(solution.p)
        if not objective.convex:
            hard |= solution.value > objective.value(np.full((B, n), 1 / n), np.arange(B))
            if objective.stages():
                hard |= ~solution.converged
        if hard.any():
            for rows, part in objective.passes(hard):
                nearby = lowest_nearby(part.value, solution.p[rows], np.arange(len(rows)))
                for again in _from_each(part, [nearby, *_other_starts(part, max_iter, tol)], max_iter, tol):
                    _put_better(solution, rows, again)
        # The first stages, with rounded kinks, may have led to a kink next to a lower minimum.
        for rows, part in objective.passes(objective.at_kink(solution.p) & ~hard):
            again = _minimize_in_stages(part, part.stages()[-1:], np.full((len(rows), n), 1 / n), max_iter, tol)
            move_to_uniform(part, again)
            _put_better(solution, rows, again)
        return solution


def _put_better(solution: Solution, rows: Index, again: Solution) -> None:
    """Replace the `rows` of a solution whose values are lower in another one."""
    better = again.value < solution.value[rows] - LOWER
    solution.put(rows[better], again.take(better))


def _other_starts(objective: Objective, max_iter: int, tol: float) -> list[Floats]:
    """Return further starting points (B, n) if there may be several minima.

    They are the uniform p, near the best of the classes alone, the optimum of the first stage without a penalty (where
    that fits exactly, it is a corner that no path from elsewhere finds), and the optima with one part of the data
    counted more than the others: its kink is then kept, and the other parts decide where on it.
    """
    B, n = objective.n_samples, objective.n_classes
    uniform = np.full((B, n), 1 / n)
    rows = np.arange(B)
    corners = (1 - SOME_MASS) * np.eye(n) + SOME_MASS / n
    values = np.array([objective.value(np.tile(corner, (B, 1)), rows) for corner in corners])
    starts = [uniform, corners[values.argmin(axis=0)]]
    bare, _ = objective.split() or (objective, None)
    if bare is not objective and bare.stages():
        starts.append(_minimize(bare.stages()[0], uniform, max_iter, STAGE_TOL).p)
    for part in objective.emphases():
        starts.append(_minimize_in_stages(part, part.stages(), uniform, max_iter, STAGE_TOL).p)
    return starts


def _from_each(objective: Objective, starts: list[Floats], max_iter: int, tol: float) -> Iterator[Solution]:
    """Yield the minima from each of several starts (B, n).

    The lowest start is used twice: along the stages, and for the objective itself. A stage with rounded kinks can lead
    away from a minimum at a kink next to the start.
    """
    B, n = objective.n_samples, objective.n_classes
    step = max(1, HESSIANS // (B * n * n))
    for first in range(0, len(starts), step):
        some = starts[first : first + step]
        several = objective.take(np.tile(np.arange(B), len(some)))
        found = _minimize_in_stages(several, several.stages()[1:], np.concatenate(some), max_iter, tol)
        move_to_uniform(several, found)
        yield from (found.take(np.arange(k * B, (k + 1) * B)) for k in range(len(some)))
    values = np.array([objective.value(start, np.arange(B)) for start in starts])
    lowest = np.stack(starts)[values.argmin(axis=0), np.arange(B)]
    found = _minimize_in_stages(objective, [], lowest, max_iter, tol)
    move_to_uniform(objective, found)
    yield found


def _minimize_in_stages(
    objective: Objective, stages: list[Objective], P: Floats, max_iter: int, tol: float
) -> Solution:
    """Minimize the stages in turn from P (B, n), each from the last optimum."""
    steps = np.zeros(len(P), dtype=np.int64)
    for stage in stages:
        bare, penalty = stage.split() or (stage, None)
        form = bare.quadratic()
        if form is not None:
            P = solve_qp(*form, penalty=penalty).p
            continue
        staged = _minimize(stage, _inside(stage, P), max_iter, max(tol, STAGE_TOL))
        P, steps = staged.p, steps + staged.n_iter
    return _minimize(objective, _inside(objective, P), max_iter, tol, steps)


def _inside(objective: Objective, P: Floats) -> Floats:
    """Return P (B, n) with mass in every class if the objective needs it."""
    rows = np.flatnonzero((P == 0).any(axis=1))
    if len(rows) == 0:
        return P
    outside = rows[~np.isfinite(objective.value(P[rows], rows))]
    P = P.copy()
    P[outside] = (1 - SOME_MASS) * P[outside] + SOME_MASS / P.shape[1]
    return P


def _minimize(objective: Objective, P: Floats, max_iter: int, tol: float, steps: Counts | None = None) -> Solution:
    """Minimize the objectives from P (B, n) after `steps` (B,)."""
    objective = objective.along_simplex()
    bare, penalty = objective.split() or (objective, None)
    if penalty is not None:
        penalty = penalty._replace(tau=min(penalty.tau, LARGEST * float(objective.scale.min())))
    return _Run(bare, penalty, P, tol).minimize(max_iter, np.zeros(len(P), dtype=np.int64) if steps is None else steps)


class _Run:
    """One minimisation of an objective plus a penalty from P (B, n).

    In a `stiff` sample, whose penalty would drown the objective, the two are kept apart; in the others the penalty is
    added to the Hessian.
    """

    def __init__(self, objective: Objective, penalty: Penalty | None, P: Floats, tol: float) -> None:
        B = len(P)
        self.objective, self.penalty, self.P, self.tol = objective, penalty, P.copy(), tol
        self.scale = objective.scale
        self.before = np.full_like(P, 1 / P.shape[1])
        self.value, self.kkt, self.expected_gain = np.empty(B), np.empty(B), np.full(B, np.inf)
        self.state = np.full(B, State.NEWTON, dtype=np.int8)
        self.polished = np.zeros(B, dtype=np.int64)
        # A start for another stage need not be confirmed. Elsewhere a small gradient is not enough: where the curvature
        # is tiny, it has little information on the value.
        self.roughly = tol >= STAGE_TOL
        self.stiff = np.zeros(B, dtype=bool)
        self.has_long_column = np.zeros(B, dtype=bool)
        if penalty is not None:
            # tau (C p - c), which stiff samples know better than from p itself
            self.r = penalty.tau * (row_product(P, penalty.C.T) - penalty.c)
            self.K = penalty.tau * penalty.C.T @ penalty.C

    def minimize(self, max_iter: int, steps: Counts) -> Solution:
        """Take steps until every sample has ended, after `steps` (B,)."""
        n_iter = steps.copy()
        open_ = np.arange(len(self.P))
        for iteration in range(max_iter + 1):
            at = self._derivatives(open_, first=iteration == 0)
            self.value[open_] = at.value
            self.kkt[open_] = kkt_residual(self.P[open_], at.gradient) / self.scale[open_]
            done = np.flatnonzero(self.kkt[open_] <= self.tol)
            if not self.roughly:
                done = done[optimality_gap(self.P[open_[done]], at.gradient[done]) <= self._allowed(open_[done])]
            self.state[open_[done]] = State.DONE
            self.state[open_[(self.polished[open_] >= POLISHING_STEPS) & ~self._is(open_, State.DONE)]] = (
                State.EXHAUSTED
            )
            going = self.state[open_] <= State.POLISH
            if iteration == max_iter or not going.any():
                break
            if not going.all():
                open_, at = open_[going], Derivatives(*(part[going] for part in at))
            n_iter[open_] += 1
            noise = NOISE * (np.abs(at.value) + self.scale[open_])
            self.before[open_] = self.P[open_]
            moved = self._step(open_, at, noise)
            self._next_states(open_, moved, noise)
        return Solution(self.P, self.value, n_iter, self._converged(), self.kkt)

    def _allowed(self, open_: Index | slice = slice(None)) -> Floats:
        """Return by what the values (B',) may exceed the minima."""
        return np.asarray(np.maximum(EXCESS * np.abs(self.value[open_]), SMALL_EXCESS))

    def _is(self, open_: Index, state: int) -> Mask:
        return np.asarray(self.state[open_] == state)

    def _next_states(self, open_: Index, moved: Mask, noise: Floats) -> None:
        """Follow the table of :class:`State` after a step."""
        small = self.expected_gain[open_] <= noise
        if not self.objective.convex:
            # Bending a curvature upwards can leave next to no step far from the optimum: be careful from there on.
            halted = (small | ~moved) & (self.kkt[open_] > ROUNDED_OFF) & self._is(open_, State.NEWTON)
            self.state[open_[halted]] = State.CAREFUL
            open_, moved, small = open_[~halted], moved[~halted], small[~halted]
        self.polished[open_] += small
        self.state[open_[small & moved]] = State.POLISH
        self.state[open_[~moved]] = State.STUCK

    def _converged(self) -> Mask:
        """Return which samples (B,) are optimal, by gradient or expected decrease."""
        if not self.objective.convex:
            converged = (self.kkt <= self.tol) | ((self.polished > 0) & (self.kkt <= ROUNDED_OFF))
            # A column of M that is thousands of times as long as the others has so steep a slope that a mass of 1e-15
            # is missing. The second-order model cannot show such a gain next to the curvature, values do.
            is_doubtful = self.has_long_column | ((self.state == State.STUCK) & ~converged)
            rows = np.flatnonzero(is_doubtful & (self.polished > 0) & (self.kkt > self.tol))
            if len(rows):
                H = self._derivatives(rows, first=False).hessian
                nearby = self._values(lowest_nearby(self._values, self.P[rows], rows, H), rows)
                converged[rows] = self.value[rows] - nearby <= self._allowed(rows)
            return np.asarray(converged)
        confirmed = self.expected_gain <= self._allowed()
        # The gradient of a stiff penalty is large where p has its last digit.
        small = (self.kkt <= ROUNDED_OFF) | (self.stiff & (self.state != State.STUCK))
        confirmed &= (self.polished > 0) & small
        return np.asarray((self.state == State.DONE) | confirmed)

    def _derivatives(self, open_: Index, *, first: bool) -> Derivatives:
        """Return value, gradient and Hessian, the latter without a stiff penalty."""
        at = self.objective.derivatives(self.P[open_], open_)
        steep = np.abs(at.gradient).max(axis=1) > STEEPEST * self.scale[open_]
        if steep.any():
            rows = open_[steep]
            self.P[rows] += TAKEN_BACK * (self.before[rows] - self.P[rows])
            at = self.objective.derivatives(self.P[open_], open_)
        if first and not self.objective.convex:
            H = at.hessian
            self.has_long_column[open_] = largest_curvature(H) > LONG_COLUMN * typical_curvature(H)
        if self.penalty is None:
            return at
        tau, C, c = self.penalty
        if first:
            curvature = typical_curvature if self.objective.convex else largest_curvature
            self.stiff = is_stiff(self.penalty, curvature(at.hessian) / 2)
        R = row_product(self.P[open_], C.T) - c
        stiff = self.stiff[open_]
        self.r[open_] = np.where(stiff[:, None], self.r[open_], tau * R)
        hessian = at.hessian + (np.where(stiff[:, None, None], 0.0, self.K) if stiff.any() else self.K)
        value = at.value + tau / 2 * (R * R).sum(axis=1)
        return Derivatives(value, at.gradient + row_product(self.r[open_], C), hessian)

    def _values(self, P: Floats, open_: Index) -> Floats:
        value = self.objective.value(P, open_)
        return value if self.penalty is None else value + self.penalty.value(P)

    def _model(self, open_: Index, at: Derivatives) -> Floats:
        """Return the curvatures (B', n, n) of the convex models of the samples `open_`."""
        if self.objective.convex:
            return with_ridge(at.hessian, at.gradient)
        H = along_simplex(at.hessian)
        bad = ~positive_definite(H)
        if not bad.any():
            return H
        face = along_face(at.hessian[bad], self.P[open_[bad]], at.gradient[bad])
        bent = ~positive_definite(face)
        face[bent] = make_convex(face[bent])
        H[bad] = face
        bad &= self._is(open_, State.CAREFUL)
        above = self.objective.majorizer(self.P[open_[bad]], open_[bad]) if bad.any() else None
        if above is not None:
            if self.penalty is not None:
                above = above + np.where(self.stiff[open_[bad], None, None], 0.0, self.K)
            H[bad] = along_simplex(above)
        return H

    def _model_minima(self, open_: Index, at: Derivatives, H: Floats) -> tuple[Floats, Floats | None]:
        """Return minima (B', n) of the models, and tau (C p - c) if stiff."""
        P, stiff = self.P[open_], self.stiff[open_]
        b = np.matmul(H, P[:, :, None])[:, :, 0] - at.gradient
        if self.penalty is None or not stiff.any():
            return simplex_qp(H / 2, b / 2, P > 0)[0], None
        X, r = np.empty_like(P), self.r[open_]
        b[stiff] += row_product(r[stiff], self.penalty.C)  # the penalty's part of the gradient is its own affair
        found = solve_qp(H[stiff] / 2, b[stiff] / 2, P[stiff] > 0, penalty=self.penalty)
        X[stiff], r[stiff] = found.p, found.r
        if not stiff.all():
            X[~stiff] = simplex_qp(H[~stiff] / 2, b[~stiff] / 2, P[~stiff] > 0)[0]
        return X, r

    def _step(self, open_: Index, at: Derivatives, noise: Floats) -> Mask:
        """Take a damped step in samples `open_` (B',); return which could move.

        `noise` (B',) is the rounding error of the values: a rise below it does not count.
        """
        P = self.P[open_]
        H = self._model(open_, at)
        X, r = self._model_minima(open_, at, H)
        D = X - P
        # D sums to zero, so the mean of the gradient does not count; left in, its rounding errors would.
        slope = (centred_gradient(P, at.gradient) * D).sum(axis=1)
        self.expected_gain[open_] = -slope
        step = np.ones(len(P))
        moved = np.zeros(len(P), dtype=bool)
        if r is not None:
            # Values cannot judge such a step. The multipliers of the penalty may still be wrong. Next to a long column
            # of M even a short step has an expected gain.
            there = np.flatnonzero(self.stiff[open_] & ((np.abs(D).max(axis=1) <= SHORTEST) | (np.abs(slope) <= noise)))
            if len(there):
                there = there[np.isfinite(self._values(X[there], open_[there]))]
                self.P[open_[there]], self.r[open_[there]], moved[there] = X[there], r[there], True
        left = np.flatnonzero((slope < 0) & ~moved)
        while len(left):
            trial = P[left] + step[left, None] * D[left]
            value = self._values(trial, open_[left])
            # A step with an expected gain below the noise may raise the value: it polishes p.
            good = value <= at.value[left] + ARMIJO * step[left] * slope[left] + noise[left]
            chosen = left[good]
            self.P[open_[chosen]], moved[chosen] = trial[good], True
            if r is not None:
                self.r[open_[chosen]] += step[chosen, None] * (r[chosen] - self.r[open_[chosen]])
            left = left[~good]
            step[left] /= 2
            left = left[step[left] > SHORTEST]
        return moved
