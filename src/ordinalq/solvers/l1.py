"""Exact minimization of absolute residuals over the simplex, in batches.

min_p ||c - D p||_1 + p'Kp/2 - k'p over {p >= 0, sum p = 1}: a linear program for K = 0. A primal-dual interior point
method (Mehrotra's predictor and corrector) solves all samples together, since D is the same for all; the residuals that
vanish and the classes without mass then give p by an equality-constrained problem, exact up to rounding.

Where several p are optimal, the one nearest to the uniform distribution is taken: for a small enough ridge,
||c - D p||_1 + ridge/2 ||p - 1/n||^2 has exactly that solution (Mangasarian and Meyer, SIAM J. Control Optim. 1979).
"""

import itertools
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from scipy.optimize import linprog
from sklearn.base import BaseEstimator

from ordinalq._utils.validation import Counts, Floats, Index, Mask, check_integer
from ordinalq.simplex import reference_column, weighted_gram
from ordinalq.solvers.objectives import HESSIANS, Objective
from ordinalq.solvers.solution import EXCESS, SMALL_EXCESS, Solution

# Linear systems of the steps along the central path of absolute residuals.


def normal_equations(D: Floats, W: Floats, K: Floats, diagonal: Floats) -> Floats:
    """Return systems (B, n + 1, n + 1) of dp and dt, with dy eliminated.

    dy = W (rho - D dp).

    K (n, n) is the curvature that all problems share, `diagonal` (B, n) what each adds to its diagonal.

    Late weights W (B, d) span twenty orders of magnitude: a relative ridge keeps the systems regular in floating point.
    Where columns of D are (nearly) dependent, that ridge outweighs K, and dp falls short.
    """
    B, n = diagonal.shape
    each = np.arange(n)
    system = np.zeros((B, n + 1, n + 1))
    system[:, :n, :n] = weighted_gram(W, D) + K
    system[:, each, each] += diagonal
    system[:, each, each] *= 1 + 1e-13
    system[:, :n, n] = system[:, n, :n] = 1
    return system


def whole_system(D: Floats, W: Floats, K: Floats, diagonal: Floats) -> Floats:
    """Return systems (B, n + 1 + d, n + 1 + d) of dp, dt and dy.

    Large weights W (B, d) cost no digits there.
    """
    B, n = diagonal.shape
    each, residual = np.arange(n), np.arange(n + 1, n + 1 + len(D))
    system = np.zeros((B, n + 1 + len(D), n + 1 + len(D)))
    system[:, :n, :n] = K
    system[:, each, each] += diagonal
    system[:, :n, n] = system[:, n, :n] = 1
    system[:, :n, n + 1 :], system[:, n + 1 :, :n] = -D.T, D
    # Equal rows of D whose residuals vanish need a little on the diagonal; the optimum stays.
    system[:, residual, residual] = 1 / W + 1e-13
    return system


# Samples per pass: the residuals of a pass stay in the cache.
CHUNK = 512
# Interior points end when the duality gap is below this; the exact solution is then read off.
GAP = 1e-10
# The duality gap that a problem with a quadratic term may have.
SMOOTH_GAP = 1e-8
# A ridge is small enough when it raises the loss by less than this; of two losses one is lower by more than rounding.
COSTLESS, ROUNDING = 2e-10, 2e-13
# A ridge towards the uniform p that keeps all systems regular and changes the loss by less than rounding to 1e-10.
RIDGE = 1e-10
# Where there are several optima, the largest of these ridges that costs nothing finds the one nearest to uniform.
RIDGES = (1e-1, 1e-2, 1e-3, 1e-4, 1e-5, 1e-6)
# A residual or a prevalence below this counts as zero when the exact solution is read off.
ZERO = 1e-7


class L1Solver(BaseEstimator):
    """Exact solver for absolute residuals plus a quadratic regularizer.

    Parameters
    ----------
    max_iter : int, default=60
        Largest number of interior point steps; about 12 to 20 are needed.
    """

    def __init__(self, *, max_iter: int = 60) -> None:
        self.max_iter = max_iter

    def minimize(self, objective: Objective) -> Solution:
        """Minimise every sample's objective; ``kkt`` of the solution is the duality gap."""
        max_iter = check_integer("max_iter", self.max_iter, minimum=1)
        form = objective.absolute()
        if form is None:
            raise TypeError(f"solver 'l1' needs a sum of absolute residuals, got {objective}. Use solver='newton'.")
        D, C, K, k = form
        if K.any():  # the optimum is not a vertex, so only interior points remain
            pull = Pull(K, k, np.full((len(C), 1), RIDGE))
            P, _, duality_gap, n_iter = _in_chunks(
                lambda rows: _interior_points(D, C[rows], pull.take(rows), max_iter), len(C), len(K)
            )
            left = np.flatnonzero(duality_gap > SMOOTH_GAP)
            if len(left):  # the normal equations ran out of digits
                P[left], _, duality_gap[left], steps = _in_chunks(
                    lambda i: _interior_points(D, C[left[i]], pull.take(left[i]), max_iter, whole=True),
                    len(left),
                    sum(D.shape),
                )
                n_iter[left] += steps
        else:
            unit, own_D, own_C = _in_own_units(D, C)
            P, duality_gap, n_iter = _minimize(own_D, own_C, max_iter, SMALL_EXCESS / unit)
            duality_gap = unit * duality_gap
        value = objective.value(P, np.arange(len(C)))
        confirmed = duality_gap <= (SMOOTH_GAP if K.any() else np.maximum(EXCESS * np.abs(value), SMALL_EXCESS))
        return Solution(P, value, n_iter, confirmed, duality_gap)


def _in_own_units(D: Floats, C: Floats) -> tuple[float, Floats, Floats]:
    """Return a unit u and the scaled problem (D - m 1')/u, (c - m)/u.

    It has the same optima; m is a column of D.

    Where all columns are nearly equal, the residuals depend on their differences; a single long column sets no unit.
    """
    m = reference_column(D)
    D, C = D - m[:, None], C - m
    sizes = np.abs(D).max(axis=0, initial=0.0)
    unit = float(np.median(sizes[sizes > 0])) if sizes.any() else 1.0
    return unit, D / unit, C / unit


class Pull(NamedTuple):
    """The quadratic part p'Kp/2 - k'p + ridge/2 ||p - 1/n||^2 of B problems.

    Parameters
    ----------
    K, k : ndarray (n, n), (n,)
        The part that all problems share.
    ridge : ndarray (B, 1)
        The pull of each towards uniform.
    """

    K: Floats
    k: Floats
    ridge: Floats

    def gradient(self, P: Floats) -> Floats:
        """Return its gradient (B, n) at P (B, n)."""
        return np.asarray(P @ self.K - self.k + self.ridge * (P - 1 / P.shape[1]))

    def take(self, rows: Index) -> "Pull":
        """Return that of some problems."""
        return self._replace(ridge=self.ridge[rows])


def _minimize(D: Floats, C: Floats, max_iter: int, small: float) -> tuple[Floats, Floats, Counts]:
    """Return p (B, n), duality gap (B,) and number of steps (B,).

    An excess of `small` is always allowed.
    """
    P, y, duality_gap, unique, n_iter = _vertices(D, C, np.full(len(C), RIDGE), max_iter)
    least = np.maximum(_loss(D, C, P) - duality_gap, 0)  # a lower bound of the minimum
    rows = np.flatnonzero(~unique)
    if len(rows):
        P[rows], steps = _nearest_to_uniform(D, C[rows], P[rows], least[rows], max_iter, small)
        n_iter[rows] += steps
    # Nearly degenerate problems can stop short of the wanted duality gap: they get a closer look, and a simplex method
    # has the last word on the few that are left.
    open_ = np.flatnonzero(_loss(D, C, P) > _limit(least, least, small))
    if len(open_):
        P[open_] = _corrected(D, C[open_], P[open_])
        least[open_] = np.maximum(least[open_], _lower_bounds(D, C[open_], P[open_], y[open_]))
        open_ = open_[_loss(D, C[open_], P[open_]) > _limit(least[open_], least[open_], small)]
    if len(open_):
        closer, y, duality_gap, _, steps = _vertices(D, C[open_], np.full(len(open_), RIDGE / 100), max_iter, GAP / 100)
        least[open_] = np.maximum(least[open_], _loss(D, C[open_], closer) - duality_gap)
        closer = _corrected(D, C[open_], closer)
        least[open_] = np.maximum(least[open_], _lower_bounds(D, C[open_], closer, y))
        n_iter[open_] += steps
        better = _loss(D, C[open_], closer) < _loss(D, C[open_], P[open_]) - ROUNDING
        P[open_[better]] = closer[better]
    duality_gap = _loss(D, C, P) - least
    for b in np.flatnonzero(_loss(D, C, P) > _limit(least, least, small)):
        P[b], duality_gap[b] = _safeguard(D, C[b], P[b], duality_gap[b])
    return P, np.maximum(duality_gap, 0), n_iter


def _vertices(D: Floats, C: Floats, ridge: Floats, max_iter: int, wanted: float = GAP) -> tuple[Any, ...]:
    """Return p (B, n) for ridges (B,), y, duality gap, uniqueness and steps.

    p is read off from interior points.
    """
    nothing = np.zeros((D.shape[1], D.shape[1]))

    def some(rows: Index) -> tuple[Any, ...]:
        pull = Pull(nothing, nothing[0], ridge[rows, None])
        P, y, _, n_iter = _interior_points(D, C[rows], pull, max_iter, wanted)
        return *_read_off(D, C[rows], P, y), n_iter

    return _in_chunks(some, len(C), D.shape[1])


def _nearest_to_uniform(
    D: Floats, C: Floats, P: Floats, least: Floats, max_iter: int, small: float
) -> tuple[Floats, Counts]:
    """Return the optima nearest to uniform if there are several, and steps (B,).

    The largest ridge that costs next to nothing finds them, within the limit of `_limit`; no minimum is below `least`.
    """
    B, k = len(C), len(RIDGES)
    ridged, _, _, _, steps = _vertices(D, np.tile(C, (k, 1)), np.repeat(RIDGES, B), max_iter)
    candidates = np.concatenate([ridged.reshape(k, B, -1), P[None]])
    losses = np.array([_loss(D, C, candidate) for candidate in candidates])
    largest = np.argmax(losses <= losses.min(axis=0) + COSTLESS, axis=0)
    nearest, lowest = candidates[largest, np.arange(B)], candidates[losses.argmin(axis=0), np.arange(B)]
    allowed = _limit(np.maximum(losses.min(axis=0), least), least, small)
    costly = np.flatnonzero(_loss(D, C, nearest) > allowed)
    nearest[costly] = _corrected(D, C[costly], nearest[costly])
    costless = _loss(D, C, nearest) <= allowed
    return np.where(costless[:, None], nearest, lowest), steps.reshape(k, B).sum(axis=0)


def _in_chunks(function: Callable[[Index], tuple[Any, ...]], n_samples: int, n_classes: int) -> tuple[Any, ...]:
    """Join the results of a function for chunks of rows that fit the cache."""
    step = max(1, min(CHUNK, HESSIANS // n_classes**2))
    parts = [function(np.arange(i, min(i + step, n_samples))) for i in range(0, n_samples, step)]
    return tuple(np.concatenate(part) for part in zip(*parts, strict=True))


def _interior_points(
    D: Floats, C: Floats, pull: Pull, max_iter: int, wanted: float = GAP, whole: bool = False
) -> tuple[Floats, Floats, Floats, Counts]:
    """Follow the central path; return p, multipliers, duality gap and steps.

    p is (B, n), the multipliers y are (B, d), duality gap and number of steps are (B,).

    The residual is split, c - D p = up - down with up, down >= 0, and y in [-1, 1] is its multiplier; m >= 0 belongs
    to p >= 0 and t to sum p = 1. Optimal are points with up (1 - y) = down (1 + y) = p m = 0 and
    g(p) - D'y - m + t 1 = 0 with the gradient g of the quadratic part. The steps come from the normal equations, or
    from the `whole` system, which is larger and keeps all digits.
    """
    B, n = len(C), D.shape[1]
    P = np.full((B, n), 1 / n)
    R = C - P @ D.T
    size = np.maximum(1, np.abs(C).max(axis=1, initial=0))
    up, down = np.maximum(R, 0) + 0.1 * size[:, None], np.maximum(-R, 0) + 0.1 * size[:, None]
    y, m, t = np.zeros(C.shape), np.full((B, n), 1.0), np.zeros((B, 1))
    # Kept besides y: 1 - y loses its digits where y approaches 1.
    above, below = 1 - y, 1 + y
    # A quadratic term ties the primal and the dual step together.
    coupled = pull.ridge + np.abs(pull.K).max() > 10 * RIDGE
    n_terms = 2 * D.shape[0] + n
    duality_gap, n_iter = np.full(B, np.inf), np.zeros(B, dtype=np.int64)
    open_ = np.arange(B)
    result, multipliers = P.copy(), y.copy()
    for _ in range(max_iter):
        total = (up * above).sum(axis=1) + (down * below).sum(axis=1) + (P * m).sum(axis=1)
        primal = C[open_] - P @ D.T - up + down
        dual = y @ D + m - t - pull.gradient(P)
        now = _duality_gap(D, C[open_], pull, P, y)
        better = now < duality_gap[open_]
        result[open_[better]], multipliers[open_[better]], duality_gap[open_[better]] = (
            P[better],
            y[better],
            now[better],
        )
        # Once the products are this small, further steps only lose digits.
        going = (duality_gap[open_] > wanted * size[open_]) & (total > 1e-14 * size[open_])
        if not going.any():
            break
        if not going.all():
            open_ = open_[going]
            P, up, down, y, m, t = P[going], up[going], down[going], y[going], m[going], t[going]
            above, below, total = above[going], below[going], total[going]
            primal, dual, pull, coupled = primal[going], dual[going], pull.take(going), coupled[going]
        n_iter[open_] += 1
        mu = (total / n_terms)[:, None]
        W = 1 / (up / above + down / below)
        system = (whole_system if whole else normal_equations)(D, W, pull.K, m / P + pull.ridge)
        # Affine step, then the centred step with the second-order correction.
        a_up = a_down = a_P = 0.0  # targets of the three products
        for corrector in (False, True):
            rho = primal - (a_up / above - up) + (a_down / below - down)
            pushed, rest = dual + a_P / P - m, 1 - P.sum(axis=1, keepdims=True)
            rhs = np.hstack([pushed, rest, rho] if whole else [pushed + (W * rho) @ D, rest])
            x = np.linalg.solve(system, rhs[:, :, None])[:, :, 0]
            dP, dt = x[:, :n], x[:, n : n + 1]
            dy = x[:, n + 1 :] if whole else W * (rho - dP @ D.T)
            d_up = a_up / above - up + up / above * dy
            d_down = a_down / below - down - down / below * dy
            dm = a_P / P - m - m / P * dP
            reach = _longest_step(((up, d_up), (down, d_down), (P, dP)))
            reach_dual = _longest_step(((above, -dy), (below, dy), (m, dm)))
            if corrector:
                break
            ahead = (
                ((up + reach * d_up) * (above - reach_dual * dy)).sum(axis=1)
                + ((down + reach * d_down) * (below + reach_dual * dy)).sum(axis=1)
                + ((P + reach * dP) * (m + reach_dual * dm)).sum(axis=1)
            )
            target = mu * ((ahead / total) ** 3)[:, None]
            a_up, a_down, a_P = target + d_up * dy, target - d_down * dy, target - dP * dm
        reach, reach_dual = np.minimum(1.0, 0.99 * reach), np.minimum(1.0, 0.99 * reach_dual)
        both = np.minimum(reach, reach_dual)
        reach, reach_dual = np.where(coupled, both, reach), np.where(coupled, both, reach_dual)
        P, up, down = P + reach * dP, up + reach * d_up, down + reach * d_down
        above, below = above - reach_dual * dy, below + reach_dual * dy
        y, m, t = y + reach_dual * dy, m + reach_dual * dm, t + reach_dual * dt
    result = np.maximum(result, 0)
    return result / result.sum(axis=1, keepdims=True), multipliers, duality_gap, n_iter


def _duality_gap(D: Floats, C: Floats, pull: Pull | None, P: Floats, y: Floats) -> Floats:
    """Return how much the objective at P can be above its minimum, (B,).

    For every y in [-1, 1], ||c - D p||_1 >= y.(c - D p), and the quadratic part lies above its tangent at P; the least
    value of that linear bound over the simplex is at a vertex.
    """
    P = np.maximum(P, 0)
    P = P / P.sum(axis=1, keepdims=True)
    y = np.clip(y, -1, 1)
    g = np.zeros(P.shape) if pull is None else pull.gradient(P)
    return np.asarray((np.abs(C - P @ D.T) - y * C).sum(axis=1) + (g * P).sum(axis=1) - (g - y @ D).min(axis=1))


def _longest_step(pairs: tuple[tuple[Floats, Floats], ...]) -> Floats:
    """Return the largest s <= 1 / 0.99 with x + s dx >= 0, (B, 1)."""
    shrinking = [np.max(-dx / x, axis=1) for x, dx in pairs]
    fastest = np.maximum(np.max(shrinking, axis=0), 0.99)
    return np.asarray(1 / fastest)[:, None]


def _safeguard(D: Floats, c: Floats, p: Floats, duality_gap: float) -> tuple[Floats, float]:
    """Return the better of p and the vertex of HiGHS, and its duality gap.

    HiGHS meets its conditions to 1e-10; then it is called once more, for the change of p in units of the loss.
    """
    loss = float(np.abs(c - D @ p).sum())
    least = loss - duality_gap
    for again in (False, True):
        start, unit = (p, loss) if again and loss > 0 else (np.zeros(len(p)), 1.0)
        program = _linear_program(D, (c - D @ start) / unit, start / unit)
        if program.x is None:
            continue
        vertex = np.maximum(start + unit * program.x[: len(p)], 0)
        vertex /= vertex.sum()
        least = max(least, *(_lower_bound(D, c, x, program.eqlin.marginals[: len(c)]) for x in (p, vertex)))
        other = float(np.abs(c - D @ vertex).sum())
        if other < loss - max(COSTLESS * other, ROUNDING):
            p, loss = vertex, other
    return p, loss - least


def _linear_program(D: Floats, c: Floats, start: Floats) -> Any:
    """Return the HiGHS solution of min ||c - D x||_1, start + x >= 0.

    x sums to one if start is zero, else to zero.
    """
    d, n = D.shape
    return linprog(
        [0.0] * n + [1.0] * 2 * d,
        A_eq=np.vstack([np.hstack([D, np.eye(d), -np.eye(d)]), [1.0] * n + [0.0] * 2 * d]),  # D x + up - down = c
        b_eq=np.append(c, 0.0 if start.any() else 1.0),
        bounds=np.column_stack([np.append(-start, np.zeros(2 * d)), np.full(n + 2 * d, np.inf)]),
        method="highs-ds",
        options={"primal_feasibility_tolerance": 1e-10, "dual_feasibility_tolerance": 1e-10},
    )


def _limit(value: Floats, least: Floats, small: float) -> Floats:
    """Return the largest acceptable loss (B,) for a best value and lower bound."""
    return np.asarray(value + np.maximum(EXCESS * least, small))


def _corrected(D: Floats, C: Floats, P: Floats) -> Floats:
    """Return P (B, n) with residuals near zero set to zero if the loss falls.

    By singular values instead of the normal equations of :func:`_read_off`, which have only half of the digits.
    """
    P = P.copy()
    # A class may have less mass than what counts as zero: then all of them may change.
    for b, least in itertools.product(range(len(P)), (ZERO, 0.0)):
        c, p = C[b], P[b]
        used, r = p >= least, c - D @ p
        zero = np.abs(r) < ZERO
        system = np.vstack([D[np.ix_(zero, used)], np.ones(int(used.sum()))])
        new = np.where(used, p, 0.0)
        new[used] += np.linalg.lstsq(system, np.append((c - D @ new)[zero], 1 - new.sum()), rcond=1e-13)[0]
        new = np.maximum(new, 0)
        new /= new.sum()
        if np.abs(c - D @ new).sum() < np.abs(r).sum():
            P[b] = new
    return P


def _lower_bounds(D: Floats, C: Floats, P: Floats, y: Floats) -> Floats:
    """Return lower bounds (B,) of the minima, from P (B, n) and y (B, d)."""
    return np.array([_lower_bound(D, *one) for one in zip(C, P, y, strict=True)])


def _lower_bound(D: Floats, c: Floats, p: Floats, y: Floats) -> float:
    """Return the lower bound y.c - max_i (D'y)_i of the best known y in [-1, 1].

    At an optimum y is the sign of what is not nearly zero, and the classes with mass have the same D'y; the other
    entries of y (d,) are changed as little as this requires.
    """
    r, used = c - D @ p, p >= ZERO
    zero = np.abs(r) < ZERO
    exact = np.where(zero, y, np.sign(r))
    uneven = (exact @ D)[used]
    system = np.column_stack([D[np.ix_(zero, used)].T, np.ones(int(used.sum()))])
    exact[zero] -= np.linalg.lstsq(system, uneven - uneven.mean(), rcond=1e-13)[0][:-1]
    return max(float(z @ c - (z @ D).max()) for z in (np.clip(y, -1, 1), np.clip(exact, -1, 1)))


def _loss(D: Floats, C: Floats, P: Floats) -> Floats:
    return np.asarray(np.abs(C - P @ D.T).sum(axis=1))


def _read_off(D: Floats, C: Floats, P: Floats, y: Floats) -> tuple[Floats, Floats, Floats, Mask]:
    """Return exact p for the zero residuals and empty classes of P (B, n).

    Also y, the duality gap, and whether p is unique.

    That p is the point nearest to uniform among those with the same zero residuals and empty classes; where it would
    raise the loss, P itself is returned. The multipliers y (B, d) of the zero residuals are corrected so that all
    classes with mass have the same gradient, as optimality requires.
    """
    n = D.shape[1]
    used = P >= ZERO
    zero = (np.abs(C - P @ D.T) < ZERO).astype(np.float64)
    # Normal equations of the zero residuals and the sum, on the classes in use.
    G = (weighted_gram(zero, D) + 1) * (used[:, :, None] & used[:, None, :])
    spectrum, axes = np.linalg.eigh(G)
    large = spectrum > 1e-12 * spectrum[:, -1:]

    def solve(rhs: Floats) -> Floats:
        coordinates = np.matmul(axes.transpose(0, 2, 1), rhs[:, :, None])[:, :, 0]
        coordinates = np.divide(coordinates, spectrum, out=np.zeros_like(rhs), where=large)
        return np.asarray(np.matmul(axes, coordinates[:, :, None])[:, :, 0] * used)

    start = used / n
    exact = start
    for _ in range(2):  # a correction, for the normal equations have only half of the digits
        exact = exact + solve(((zero * (C - exact @ D.T)) @ D + 1 - exact.sum(axis=1, keepdims=True)) * used)
    exact = np.maximum(exact, 0)
    exact /= exact.sum(axis=1, keepdims=True)
    good = _loss(D, C, exact) <= _loss(D, C, P) + RIDGE
    exact = np.where(good[:, None], exact, P)
    Dy = y @ D
    uneven = (Dy - (Dy * exact).sum(axis=1, keepdims=True)) * used
    y = y - zero * (solve(uneven) @ D.T)
    return exact, y, _duality_gap(D, C, None, exact, y), large.sum(axis=1) == used.sum(axis=1)
