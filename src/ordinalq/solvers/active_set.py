"""Which classes have mass: active-set methods for quadratic programs over the simplex, a whole batch at once.

A primal-dual active set guesses which classes have mass, solves the equality-constrained problem for that guess, and
corrects the guess where p < 0 or where a multiplier is negative. Problems with the same guess share one factorization.
It nearly always ends after a few rounds. What cycles moves on from its last guess one class at a time, which cannot
cycle. The few that need many such moves start again from the guess of an interior point method, whose number of steps
hardly depends on the number of classes.
"""

import numpy as np

from ordinalq._utils.validation import Counts, Floats, Index, Mask
from ordinalq.solvers.systems import PlainSystems, Systems

# A class leaves the guess when p < -ROUNDING, and joins it when its multiplier is below -ROUNDING times the size of the
# terms it is the sum of: well above the errors of the small linear systems, far below what is seen in a result.
ROUNDING = 1e-13
# The primal-dual rounds end after 2 to 5 unless they cycle.
MAX_ROUNDS = 6
# Moves of one class from the last guess, before interior points look for a better one: they cost about as much.
MAX_MOVES = 12
# Interior points end when their duality gap is below this part of the problem's size; about 12 steps are needed.
GAP = 1e-15
MAX_STEPS = 40
# How far an interior point may go towards the boundary.
TO_BOUNDARY = 0.995


def active_set(systems: Systems, free: Mask) -> tuple[Floats, Counts, Mask]:
    """Return the minima (B, n), the rounds needed, and who came to an end (B,).

    The guess `free` (B, n) has at least one class in every row. Without end are problems whose curvatures are rounding
    errors.
    """
    b = systems.b
    P = np.zeros(b.shape)
    n_iter = np.full(len(b), MAX_ROUNDS, dtype=np.int64)
    free = free.copy()
    open_ = np.arange(len(b))
    for round_ in range(1, MAX_ROUNDS + 1):
        guess = free[open_]
        X, mu = systems.solve(guess, open_)
        P[open_] = X
        wrong = np.where(guess, X < -ROUNDING, _negative(systems, X, mu, guess, open_))
        done = ~wrong.any(axis=1)
        n_iter[open_[done]] = round_
        open_, wrong = open_[~done], wrong[~done]
        if len(open_) == 0:
            break
        free[open_] ^= wrong
        # Every class may be wrong at once; p sums to one, so the class with most mass never is.
        empty = open_[~free[open_].any(axis=1)]
        free[empty] = True
    for better, most in ((_last_guess, MAX_MOVES), (_better_guess, 10 * b.shape[1])):
        if len(open_):
            P[open_], steps, done = one_at_a_time(systems, open_, better(systems, P[open_], open_), most)
            n_iter[open_] += steps
            open_ = open_[~done]
    ended = np.ones(len(b), dtype=bool)
    ended[open_] = False
    P = np.maximum(P, 0)
    return P / P.sum(axis=1, keepdims=True), n_iter, ended


def _negative(systems: Systems, P: Floats, mu: Floats, free: Mask, rows: Index) -> Mask:
    """Return which multipliers (B', n) of classes that are not free are negative by more than rounding errors."""
    negative = (mu < 0) & ~free
    some = np.flatnonzero(negative.any(axis=1))
    if len(some):
        # Only multipliers next to zero depend on how large the errors are.
        limit = -ROUNDING * systems.largest_size(P[some], rows[some])
        some = some[(negative[some] & (mu[some] >= limit[:, None])).any(axis=1)]
    if len(some):
        negative[some] &= mu[some] < -ROUNDING * systems.size(P[some], rows[some])
    return negative


def _last_guess(_systems: Systems, P: Floats, _rows: Index) -> Floats:
    """Return the last points (B', n) without what is negative; the largest of each is positive."""
    P = np.maximum(P, 0)
    return np.asarray(P / P.sum(axis=1, keepdims=True))


def _better_guess(systems: Systems, P: Floats, rows: Index) -> Floats:
    """Return interior points, without classes that have next to no mass, or uniform ones where there is a penalty."""
    if not isinstance(systems, PlainSystems):
        return np.full(P.shape, 1 / P.shape[1])
    P = interior_points(systems.A, systems.b, rows)
    P = np.where(np.minimum(1e-9, P.max(axis=1, keepdims=True) / 2) < P, P, 0)
    return np.asarray(P / P.sum(axis=1, keepdims=True))


def one_at_a_time(systems: Systems, rows: Index, P: Floats, most: int) -> tuple[Floats, Counts, Mask]:
    """Move feasible points downhill, one class at a time; finite for positive definite A, since the value falls.

    Starts at P (B', n) of the problems `rows` (B',) and takes at most this many moves. Returns p (B', n), the number of
    moves (B',), and who came to an end (B',).
    """
    P, free = P.copy(), P > 0
    moves = np.zeros(len(rows), dtype=np.int64)
    open_ = np.arange(len(rows))
    for _ in range(most):
        X, mu = systems.solve(free[open_], rows[open_])
        moves[open_] += 1
        inside = ~(free[open_] & (X < 0)).any(axis=1)
        # Feasible: take it; done unless a multiplier is negative, whose class then gets mass.
        P[open_[inside]] = X[inside]
        missing = _negative(systems, X, mu, free[open_], rows[open_])
        entering = np.where(missing, mu, 0).argmin(axis=1)
        done = inside & ~missing.any(axis=1)
        grow = open_[inside & ~done]
        free[grow, entering[inside & ~done]] = True
        # Infeasible: go as far as p >= 0 allows; the class that stops the step loses its mass.
        out = open_[~inside]
        here, there = P[out], X[~inside]
        falling = free[out] & (there < 0)
        step = np.where(falling, here / np.where(falling, here - there, 1.0), np.inf)
        blocking = step.argmin(axis=1)
        P[out] += step.min(axis=1)[:, None] * (there - here)
        P[out, blocking] = 0
        free[out, blocking] = False
        open_ = open_[~done]
        if len(open_) == 0:
            break
    ended = np.ones(len(rows), dtype=bool)
    ended[open_] = False
    return P, moves, ended


def interior_points(A: Floats, b: Floats, rows: Index) -> Floats:
    """Return nearly optimal interior points (B', n) of the problems `rows` (B',), by Mehrotra's method.

    With multipliers m of p >= 0 and t of sum p = 1, optimal are points with 2 A p - 2 b - m + t = 0 and p m = 0.
    """
    b = b[rows]
    A = np.broadcast_to(A, (len(b), *A.shape)) if A.ndim == 2 else A[rows]
    B, n = b.shape
    # In units of the problem's own size.
    size = np.abs(A).max(axis=(1, 2)) + np.abs(b - b.mean(axis=1, keepdims=True)).max(axis=1)
    size = np.where(size > 0, size, 1.0)
    A, b = 2 * A / size[:, None, None], 2 * (b - b.mean(axis=1, keepdims=True)) / size[:, None]
    P, m, t = np.full((B, n), 1 / n), np.ones((B, n)), np.zeros((B, 1))
    open_ = np.arange(B)
    diagonal = np.arange(n)
    for _ in range(MAX_STEPS):
        p, q = P[open_], m[open_]
        gap = (p * q).sum(axis=1)
        dual = b[open_] - np.matmul(A[open_], p[:, :, None])[:, :, 0] + q - t[open_]
        going = (gap > GAP) | (np.abs(dual).max(axis=1) > GAP)
        going &= gap > np.finfo(float).eps ** 2
        if not going.any():
            break
        open_, p, q, gap, dual = open_[going], p[going], q[going], gap[going], dual[going]
        K = np.zeros((len(open_), n + 1, n + 1))
        K[:, :n, :n] = A[open_]
        K[:, diagonal, diagonal] += q / p
        K[:, :n, n] = K[:, n, :n] = 1
        aim: Floats | float = 0.0
        for corrector in (False, True):
            rhs = np.zeros((len(open_), n + 1, 1))
            rhs[:, :n, 0] = dual + aim / p - q
            rhs[:, n, 0] = 1 - p.sum(axis=1)
            try:
                x = np.linalg.solve(K, rhs)[:, :, 0]
            except np.linalg.LinAlgError:
                return P
            dp, dt = x[:, :n], x[:, n:]
            dq = aim / p - q - q / p * dp
            reach = np.minimum(1, TO_BOUNDARY / np.maximum(np.maximum(-dp / p, -dq / q).max(axis=1), TO_BOUNDARY))
            if corrector:
                break
            ahead = ((p + reach[:, None] * dp) * (q + reach[:, None] * dq)).sum(axis=1)
            aim = (gap / n * (ahead / gap) ** 3)[:, None] - dp * dq
        P[open_] = p + reach[:, None] * dp
        m[open_] = q + reach[:, None] * dq
        t[open_] += reach[:, None] * dt
    return P
