"""Exact solution of convex quadratic programs over the simplex, in batches.

min_p p'Ap - 2 b'p + tau/2 ||C p - c||^2 over {p >= 0, sum p = 1}, with A positive semidefinite on the directions that
sum to zero. One A may serve the whole batch (ACC, PACC, EDy, o-PDF and their regularized forms), or each problem has
its own (the steps of Newton's method). `active_set` finds the classes with mass, `systems` solves for given ones.
"""

from abc import ABC, abstractmethod
from functools import cached_property
from typing import NamedTuple

import numpy as np
from sklearn.base import BaseEstimator

from ordinalq._utils.validation import Counts, Floats, Index, Mask
from ordinalq.regularizers import Penalty
from ordinalq.simplex import Derivatives, row_product
from ordinalq.solvers.objectives import Objective
from ordinalq.solvers.solution import EXCESS, SMALL_EXCESS, Solution, kkt_residual, optimality_gap

# Equality-constrained steps of the quadratic program min_p p'Ap - 2 b'p + tau/2 ||C p - c||^2 over the simplex.
#
# For a guess which classes have mass, the minimum over {sum p = 1, p = 0 elsewhere} is one linear system.
# `PlainSystems` adds the penalty to A. `StiffSystems` keeps the two apart, for penalties so strong that A would be
# lost in their rounding errors.


# A penalty is stiff where its curvature is more than this times that of A along the simplex: A keeps twelve digits.
STIFF = 1e4
# From this ratio on p no longer changes in floating point: a larger tau is the same as the limit.
INFINITE = 1e22
# Singular values of C below this part of the largest are zero: C has small integers as entries.
RANK = 1e-10
# Part of ||C|| below which the penalty of the best p on a face is zero up to rounding.
NO_PENALTY = 1e-13


class Systems(ABC):
    """The linear systems of B problems."""

    b: Floats

    @abstractmethod
    def solve(self, free: Mask, rows: Index) -> tuple[Floats, Floats]:
        """Minimize the problems `rows` (B',) with p = 0 outside `free` (B', n).

        Return p (B', n) and the multipliers mu (B', n) of p >= 0: the gradient less its value on the free classes.
        """

    @abstractmethod
    def size(self, P: Floats, rows: Index) -> Floats:
        """Return the size (B', n) of the terms of mu at P, for rounding errors."""

    @abstractmethod
    def largest_size(self, P: Floats, rows: Index) -> Floats:
        """Return what no size of a problem exceeds, (B',)."""


class PlainSystems(Systems):
    """Linear systems whose matrix contains the penalty.

    Parameters
    ----------
    A : ndarray (n, n) or (B, n, n)
        One matrix for all problems, or one for each.
    b : ndarray (B, n)
        Right sides.
    alone : bool, default=False
        Solve every problem by itself, so that its result has the same last digits in any batch. Otherwise problems
        with the same free classes share a product, which is faster.
    """

    def __init__(self, A: Floats, b: Floats, *, alone: bool = False) -> None:
        self.A, self.b, self.alone = A, b, alone

    @cached_property
    def _largest(self) -> tuple[Floats, Floats]:
        """The largest entries of A and b of each problem, (B,)."""
        A = np.abs(self.A).max(axis=(-2, -1))
        return np.broadcast_to(A, len(self.b)), np.abs(self.b).max(axis=1)

    @cached_property
    def _unit(self) -> Floats:
        """The largest entry of A of each problem, (B,); one for a matrix of zeros."""
        return np.where(self._largest[0] > 0, self._largest[0], 1.0)

    def solve(self, free: Mask, rows: Index) -> tuple[Floats, Floats]:
        """Return p and mu, with A p - b = lam + mu/2 and mu = 0 on free classes."""
        A, b = self.A, self.b[rows]
        if A.ndim == 3:
            A = A if len(rows) == len(A) else A[rows]
            P, lam = _own_systems(A, b, free, self._unit[rows])
            AP = np.matmul(A, P[:, :, None])[:, :, 0]
        else:
            P, lam = _shared_systems(A, b, free, self._unit[0], alone=self.alone)
            AP = row_product(P, A) if self.alone else P @ A
        return P, 2 * (AP - b - lam[:, None])

    def size(self, P: Floats, rows: Index) -> Floats:
        """Return |A| |p| + |b|, and its mean over p for lam."""
        A, P = self.A, np.abs(P)
        terms = row_product(P, np.abs(A)) if A.ndim == 2 else np.matmul(np.abs(A[rows]), P[:, :, None])[:, :, 0]
        terms = terms + np.abs(self.b[rows])
        return np.asarray(terms + (P * terms).sum(axis=1, keepdims=True))

    def largest_size(self, P: Floats, rows: Index) -> Floats:
        """Return the same with the largest entries of A and b in place of each."""
        A, b = self._largest
        mass = np.abs(P).sum(axis=1)
        return np.asarray((1 + mass) * (A[rows] * mass + b[rows]))


def _shared_systems(A: Floats, b: Floats, free: Mask, unit: float, *, alone: bool) -> tuple[Floats, Floats]:
    """One inverse for all problems with the same free classes."""
    B, n = b.shape
    order, starts = _same_rows(free)
    K = _systems(A, free[order[starts]], unit)
    inverse = _inverse(K)
    rhs = np.full((B, n + 1), unit)
    rhs[:, :n] = np.where(free, b, 0)
    x = np.empty((B, n + 1))
    sizes = np.diff(starts, append=B)
    if len(starts) * 4 < B and not alone:
        for i, (start, size) in enumerate(zip(starts, sizes, strict=True)):
            members = order[start : start + size]
            x[members] = _refine_solutions(K[i], inverse[i], rhs[members])
    else:
        group = np.empty(B, dtype=np.intp)
        group[order] = np.repeat(np.arange(len(starts)), sizes)
        x = _refine_solutions(K[group], inverse[group], rhs[:, None, :])[:, 0]
    return np.where(free, x[:, :n], 0), -unit * x[:, n]


def _inverse(K: Floats) -> Floats:
    """Return inverses of K (B, m, m), or pseudo-inverses of singular ones."""
    try:
        return np.linalg.inv(K).astype(np.float64, copy=False)
    except np.linalg.LinAlgError:
        return np.array([solve_or_least_squares(each, np.eye(len(each))) for each in K])


def _same_rows(free: Mask) -> tuple[Index, Index]:
    """Return an order of rows (B,) that groups equal ones, and their starts."""
    B = len(free)
    packed = np.packbits(free, axis=1)
    words = np.zeros((B, -(-packed.shape[1] // 8) * 8), dtype=np.uint8)
    words[:, : packed.shape[1]] = packed
    keys = words.view(np.uint64)  # 64 classes each
    order = np.lexsort(keys.T)
    new = np.ones(B, dtype=bool)
    new[1:] = (keys[order[1:]] != keys[order[:-1]]).any(axis=1)
    return order, np.flatnonzero(new)


def _refine_solutions(K: Floats, inverse: Floats, rhs: Floats) -> Floats:
    """Return solutions x of K x = rhs with one refinement; rhs (..., n + 1)."""
    x = np.matmul(rhs, inverse)
    return np.asarray(x + np.matmul(rhs - np.matmul(x, K), inverse))


def _systems(A: Floats, free: Mask, unit: float | Floats) -> Floats:
    """Return bordered matrices (B, n + 1, n + 1) of the free classes.

    Next to entries of A that are much larger than the border, the sum of p would be lost in rounding errors. The border
    is hence in `unit`, the largest entry of A.
    """
    B, n = free.shape
    K = np.zeros((B, n + 1, n + 1))
    K[:, :n, n] = K[:, n, :n] = free * unit
    if free.all():  # as in most first rounds
        K[:, :n, :n] = A
        return K
    K[:, :n, :n] = np.where(free[:, :, None] & free[:, None, :], A, 0)
    K[:, np.arange(n), np.arange(n)] += ~free
    return K


def _own_systems(A: Floats, b: Floats, free: Mask, unit: Floats) -> tuple[Floats, Floats]:
    """One system per problem."""
    B, n = b.shape
    rhs = np.empty((B, n + 1, 1))
    rhs[:, :n, 0], rhs[:, n, 0] = np.where(free, b, 0), unit
    K = _systems(A, free, unit[:, None])
    try:
        x = np.linalg.solve(K, rhs)[:, :, 0].astype(np.float64, copy=False)
    except np.linalg.LinAlgError:
        x = np.array([solve_or_least_squares(each, right[:, 0]) for each, right in zip(K, rhs, strict=True)])
    return x[:, :n], -unit * x[:, n]


class StiffSystems(Systems):
    """Linear systems with a penalty whose curvature is larger by orders of magnitude.

    On each face the directions are split into those that the penalty changes and the others; scaled by the root of
    their curvatures, both are of the same size. r = tau (C p - c), (B, m), the multiplier of the penalty, comes from
    the scaled solution: as a difference of nearly equal numbers, C p - c itself has no digits left.

    Parameters
    ----------
    A : ndarray (n, n) or (B, n, n)
        One matrix for all problems, or one for each, without the penalty.
    b : ndarray (B, n)
        Right sides.
    penalty : Penalty
        The penalty tau/2 ||C p - c||^2.
    """

    def __init__(self, A: Floats, b: Floats, penalty: Penalty) -> None:
        self.A, self.b, self.penalty = A, b, penalty
        self.r = np.zeros((len(b), len(penalty.c)))
        self._faces: dict[bytes, _Face] = {}

    def solve(self, free: Mask, rows: Index) -> tuple[Floats, Floats]:
        """Return p and mu, and keep r."""
        P, mu = np.zeros(free.shape), np.zeros(free.shape)
        for i, (row, chosen) in enumerate(zip(rows, free, strict=True)):
            key = chosen.tobytes()
            if key not in self._faces:
                self._faces[key] = _Face(chosen, self.penalty)
            A = self.A if self.A.ndim == 2 else self.A[row]
            P[i], self.r[row] = self._faces[key].solve(A, self.b[row])
            pull = self.r[row] @ self.penalty.C
            gradient = 2 * (A @ P[i] - self.b[row]) + pull
            mu[i] = np.where(chosen, 0.0, gradient - gradient[chosen].mean())
        return P, mu

    def size(self, P: Floats, rows: Index) -> Floats:
        """Return |A| |p| + |b| + |C|'|r|, and its mean over p."""
        P = np.abs(P)
        A = np.broadcast_to(self.A, (len(self.b), *self.A.shape[-2:]))[rows]
        terms = np.matmul(np.abs(A), P[:, :, None])[:, :, 0] + np.abs(self.b[rows])
        terms = terms + np.abs(self.r[rows]) @ np.abs(self.penalty.C)
        return np.asarray(terms + (P * terms).sum(axis=1, keepdims=True))

    def largest_size(self, P: Floats, rows: Index) -> Floats:
        """Return the largest of the sizes: there is nothing to be saved."""
        return np.asarray(self.size(P, rows).max(axis=1))


class _Face:
    """Set of k free classes: coordinates y with p = p0 + W y.

    p0 is a point of least penalty.
    """

    def __init__(self, free: Mask, penalty: Penalty) -> None:
        k = int(free.sum())
        self.free, self.penalty = free, penalty
        C = penalty.C[:, free]
        Z = np.linalg.qr(np.column_stack([np.ones(k), np.eye(k)[:, : k - 1]]))[0][:, 1:]
        U, S, Vt = np.linalg.svd(C @ Z, full_matrices=True)
        seen = int((np.max(S, initial=0.0) * RANK < S).sum())
        self.U, self.S, self.W = U[:, :seen], S[:seen], Z @ Vt.T
        uniform = np.full(k, 1 / k)
        missing = penalty.c - C @ uniform
        along = self.U.T @ missing
        self.p0 = uniform + self.W[:, :seen] @ (along / self.S)
        self.rest = self.U @ along - missing  # C p0 - c
        if np.abs(self.rest).max(initial=0.0) <= NO_PENALTY * (np.abs(C).max() + np.abs(penalty.c).max(initial=0.0)):
            self.rest = np.zeros_like(self.rest)
        self.root = np.ones(k - 1)
        self.root[:seen] = np.sqrt(penalty.tau / 2) * self.S
        self.seen = seen

    def solve(self, A: Floats, b: Floats) -> tuple[Floats, Floats]:
        """Return p (n,) and r (m,)."""
        A, b = A[np.ix_(self.free, self.free)], b[self.free]
        G = (self.W.T @ A @ self.W) / (self.root[:, None] * self.root)
        G[np.arange(self.seen), np.arange(self.seen)] += 1
        h = self.W.T @ (b - A @ self.p0) / self.root
        # A diagonal of ones: directions that only the data see have their own scale.
        unit = np.sqrt(np.maximum(G.diagonal(), np.finfo(float).tiny))
        z = solve_or_least_squares(G / (unit[:, None] * unit), h / unit) / unit
        p = np.zeros(len(self.free))
        p[self.free] = self.p0 + self.W @ (z / self.root)
        return p, self.penalty.tau * self.rest + self.U @ (np.sqrt(2 * self.penalty.tau) * z[: self.seen])


def solve_or_least_squares(K: Floats, rhs: Floats) -> Floats:
    """Return the solution of K x = rhs, that of least norm where K is singular."""
    try:
        return np.asarray(np.linalg.solve(K, rhs))
    except np.linalg.LinAlgError:
        return np.asarray(np.linalg.lstsq(K, rhs, rcond=None)[0])


# Which classes have mass: active-set methods for quadratic programs over the simplex, a whole batch at once.
#
# A primal-dual active set guesses which classes have mass, solves the equality-constrained problem for that guess, and
# corrects the guess where p < 0 or where a multiplier is negative. Problems with the same guess share one
# factorization. It nearly always ends after a few rounds. What cycles moves on from its last guess one class at a
# time, which cannot cycle. The few that need many such moves start again from the guess of an interior point method,
# whose number of steps hardly depends on the number of classes.


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
    """Return which multipliers (B', n) of classes not free are negative."""
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
    """Return the last points (B', n) without negative parts."""
    P = np.maximum(P, 0)
    return np.asarray(P / P.sum(axis=1, keepdims=True))


def _better_guess(systems: Systems, P: Floats, rows: Index) -> Floats:
    """Return interior points without empty classes, or uniform with a penalty."""
    if not isinstance(systems, PlainSystems):
        return np.full(P.shape, 1 / P.shape[1])
    P = interior_points(systems.A, systems.b, rows)
    P = np.where(np.minimum(1e-9, P.max(axis=1, keepdims=True) / 2) < P, P, 0)
    return np.asarray(P / P.sum(axis=1, keepdims=True))


def one_at_a_time(systems: Systems, rows: Index, P: Floats, most: int) -> tuple[Floats, Counts, Mask]:
    """Move feasible points downhill, one class at a time.

    Finite for positive definite A, since the value falls.

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
    """Return nearly optimal interior points (B', n) by Mehrotra's method.

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
        duality_gap = (p * q).sum(axis=1)
        dual = b[open_] - np.matmul(A[open_], p[:, :, None])[:, :, 0] + q - t[open_]
        going = (duality_gap > GAP) | (np.abs(dual).max(axis=1) > GAP)
        going &= duality_gap > np.finfo(float).eps ** 2
        if not going.any():
            break
        open_, p, q, duality_gap, dual = open_[going], p[going], q[going], duality_gap[going], dual[going]
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
            aim = (duality_gap / n * (ahead / duality_gap) ** 3)[:, None] - dp * dq
        P[open_] = p + reach[:, None] * dp
        m[open_] = q + reach[:, None] * dq
        t[open_] += reach[:, None] * dt
    return P


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
        The penalty of all problems, and tau (C p - c) if it is stiff.
    regular : ndarray (B,)
        Whether no ridge was needed, and the active sets came to an end.
    """

    p: Floats
    n_iter: Counts
    penalty: Penalty | None
    r: Floats | None
    regular: Mask

    def multipliers(self) -> Floats:
        """Return tau (C p - c), (B, m), without columns if nothing is penalized."""
        if self.penalty is None:
            return np.zeros((len(self.p), 0))
        tau, C, c = self.penalty
        return np.asarray(tau * (row_product(self.p, C.T) - c)) if self.r is None else self.r.copy()

    def whole(self, bare: Derivatives) -> tuple[Floats, Floats]:
        """Return value (B,) and gradient (B, n) at p, with the penalty added."""
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
            raise TypeError(f"solver 'quadratic' needs a quadratic objective, got {objective}. Use solver='newton'.")
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
    """Correct unconfirmed solutions `rows` (B',) by accurate gradients, in place.

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
    """Return p, and r with a penalty, after a step on classes with mass.

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
    """Return possible decreases (B',) on classes with mass and without."""
    gain, r = np.empty(len(G)), found.multipliers()
    for i, (p, g) in enumerate(zip(found.p, G, strict=True)):
        step, _ = _face_step(A, found.penalty, p, r[i], g)
        expected_gain = -float(step @ (g - p @ g))
        gain[i] = max(
            float(p @ g - g.min()) if (p == 0)[g.argmin()] else 0.0, expected_gain if expected_gain >= 0 else np.inf
        )
    return gain


def _face_step(A: Floats, penalty: Penalty | None, p: Floats, r: Floats, g: Floats) -> tuple[Floats, Floats]:
    """Return changes of p (n,) and r (m,) to the optimum on classes with mass.

    With r = tau (C p - c) as a separate unknown, no entry of the system holds the sum of a large and a small term.
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
    # Directions in which nothing changes have a step of zero: K is singular there, up to rounding errors.
    x = unit * np.linalg.lstsq(unit[:, None] * K * unit, unit * rhs, rcond=None)[0]
    step = np.zeros(len(p))
    step[free] = x[:k]
    return step, x[k:-1]


def simplex_qp(A: Floats, b: Floats, free: Mask | None = None) -> tuple[Floats, Counts]:
    """Minimize p'Ap - 2 b'p over the simplex for each row of b (B, n).

    Return p (B, n) and the rounds needed (B,).

    A (n, n) or (B, n, n) is symmetric, positive semidefinite on directions that sum to zero; `free` (B, n) is a first
    guess of the classes with mass, None stands for all.
    """
    found = solve_qp(A, b, free)
    return found.p, found.n_iter


def solve_qp(
    A: Floats, b: Floats, free: Mask | None = None, *, penalty: Penalty | None = None, alone: bool = False
) -> QPSolution:
    """Minimize p'Ap - 2 b'p plus a penalty over the simplex.

    Parameters are those of :func:`simplex_qp`.

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
    judged = _condition(A, kept)
    if judged.ridge > 0:
        found = _nearest_to_uniform(A, b, judged, kept)
    else:
        found = _solve(A, b, free, kept, alone=alone or judged.delicate)
    return found if stiff else found._replace(penalty=penalty)


class _Conditioning(NamedTuple):
    """Conditioning of a problem: accuracy in p, ridge if singular, kernel.

    The columns of `flat` (n, k) are an orthonormal basis of the directions along which the objective is constant.
    """

    delicate: bool
    ridge: float
    flat: Floats


def _condition(A: Floats, penalty: Penalty | None) -> _Conditioning:
    """Return the conditioning of A (n, n) along the simplex.

    With a penalty, along the directions that it does not change.

    Without a penalty the coordinates are all p_i but one. Each is scaled by its own curvature, because a column of M
    that is much longer than the others does not make a problem singular.
    """
    n = len(A)
    if penalty is None:
        i = int(np.abs(A.diagonal()).argmin())
        axes = np.delete(np.eye(n), i, axis=1)
        axes[i] = -1
        A = A - A[i] - A[:, i, None] + A[i, i]
        A = np.delete(np.delete(A, i, axis=0), i, axis=1)
        unit = np.sqrt(np.maximum(A.diagonal(), 0))
    else:
        axes = _unseen(penalty)
        A = axes.T @ A @ axes
        unit = np.ones(len(A))
    if A.size == 0:
        return _Conditioning(False, 0.0, np.zeros((n, 0)))
    safe = np.where(unit > 0, unit, 1.0)
    relative, vectors = np.linalg.eigh(A / (safe[:, None] * safe))
    relative = np.abs(relative)
    flat = relative <= SINGULAR * relative.max()
    if not flat.any():
        return _Conditioning(bool(relative.min() <= DELICATE * relative.max()), 0.0, np.zeros((n, 0)))
    # The kernel is orthogonal to the other eigenvectors in units of p. Its own, divided by tiny units, would be nearly
    # parallel, and rounding errors would lead them off the simplex.
    steep = vectors[:, ~flat].T * safe
    steep /= np.linalg.norm(steep, axis=1, keepdims=True)
    kernel = np.linalg.qr(axes @ np.linalg.svd(steep)[2][len(steep) :].T)[0]
    curvature = np.sort(np.abs(np.linalg.eigvalsh(A)))
    size = curvature[-1] if curvature[-1] > 0 else 1.0
    if flat.all():
        return _Conditioning(True, float(size), kernel)
    # Small also for the classes whose columns are not long, should the mass be theirs.
    smallest = np.sqrt(size * curvature[flat.sum()])
    return _Conditioning(True, float(RIDGE * min(smallest, np.median(A.diagonal()[unit > 0]))), kernel)


def is_stiff(penalty: Penalty, curvature: Floats) -> Mask:
    """Return whether a penalty is too strong to be added to given curvatures (B,)."""
    return np.asarray(penalty.tau / 2 * np.square(penalty.C).sum(axis=0).max() > STIFF * curvature)


def along_simplex(A: Floats) -> Floats:
    """Return A (n, n) restricted to directions that sum to zero."""
    A = A - A.mean(axis=0)
    return np.asarray(A - A.mean(axis=1, keepdims=True))


def _unseen(penalty: Penalty) -> Floats:
    """Return a basis (n, k) of zero-sum directions that the penalty ignores."""
    C = np.vstack([penalty.C, np.ones(penalty.C.shape[1])])
    _, S, Vt = np.linalg.svd(C)
    rank = int((RANK * S[0] < S).sum())
    return np.asarray(Vt[rank:].T)


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
    """Return the penalty with tau limited so that its squares stay finite."""
    size = float(np.abs(A).max() + np.abs(b).max())
    return penalty._replace(tau=min(penalty.tau, INFINITE * size)) if size > 0 else penalty


def _nearest_to_uniform(A: Floats, b: Floats, judged: _Conditioning, penalty: Penalty | None) -> QPSolution:
    """Solve problems with many optima by proximal steps that start at the uniform p.

    Each step minimises the objective plus ridge * ||p - previous||^2. The first is as near to the optimum that is
    nearest to uniform as the ridge is small against the positive curvatures. Rounding errors along flat directions are
    divided by the ridge; where no class is at its limit, a projection removes them.
    """
    n = len(A)
    P = np.full(b.shape, 1 / n)
    rounds = np.zeros(len(b), dtype=np.int64)
    for _ in range(PROXIMAL_STEPS):
        found = _solve(A + judged.ridge * np.eye(n), b + judged.ridge * P, P > 0, penalty, alone=True)
        P, rounds = found.p, rounds + found.n_iter
    # The projection of the uniform p onto the optima of the whole plane is the answer if it has no negative class.
    U = np.full(P.shape, 1 / n)
    X = P + row_product(row_product(U - P, judged.flat), judged.flat.T)
    P = np.where((X >= 0).all(axis=1, keepdims=True), X, P)
    return found._replace(p=P, n_iter=rounds, regular=np.zeros(len(b), dtype=bool))
