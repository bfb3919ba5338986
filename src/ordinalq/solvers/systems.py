"""Equality-constrained steps of the quadratic program min_p p'Ap - 2 b'p + tau/2 ||C p - c||^2 over the simplex.

For a guess which classes have mass, the minimum over {sum p = 1, p = 0 elsewhere} is one linear system. `PlainSystems`
adds the penalty to A. `StiffSystems` keeps the two apart, for penalties so strong that A would be lost in their
rounding errors.
"""

from abc import ABC, abstractmethod
from functools import cached_property

import numpy as np

from ordinalq._utils.validation import Floats, Index, Mask
from ordinalq.regularizers import Penalty
from ordinalq.simplex import row_product

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
        """Minimise the problems `rows` (B',) over {sum p = 1, p = 0 outside `free`} with `free` (B', n).

        Return p (B', n) and the multipliers mu (B', n) of p >= 0: the gradient less its value on the free classes.
        """

    @abstractmethod
    def size(self, P: Floats, rows: Index) -> Floats:
        """Return the size (B', n) of the terms that mu at P is the sum of, hence of its rounding errors."""

    @abstractmethod
    def largest_size(self, P: Floats, rows: Index) -> Floats:
        """Return what no size of a problem exceeds, (B',)."""


class PlainSystems(Systems):
    """A of one matrix (n, n) for all problems, or of one for each (B, n, n); the penalty is part of it.

    With ``alone`` every problem is treated by itself, so that its result has the same last digits in any batch;
    problems that share their free classes share a product otherwise, which is faster.
    """

    def __init__(self, A: Floats, b: Floats, *, alone: bool = False) -> None:
        self.A, self.b, self.alone = A, b, alone

    @cached_property
    def _largest(self) -> tuple[Floats, Floats]:
        """The largest entries of A and b of each problem, (B,)."""
        A = np.abs(self.A).max(axis=(-2, -1))
        return np.broadcast_to(A, len(self.b)), np.abs(self.b).max(axis=1)

    def solve(self, free: Mask, rows: Index) -> tuple[Floats, Floats]:
        """Return p and mu: with the multiplier lam of the sum, A p - b = lam + mu/2 and mu = 0 on the free classes."""
        A, b = self.A, self.b[rows]
        if A.ndim == 3:
            A = A if len(rows) == len(A) else A[rows]
            P, lam = _own_systems(A, b, free)
            AP = np.matmul(A, P[:, :, None])[:, :, 0]
        else:
            P, lam = _shared_systems(A, b, free, alone=self.alone)
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


def _shared_systems(A: Floats, b: Floats, free: Mask, *, alone: bool) -> tuple[Floats, Floats]:
    """One inverse for all problems with the same free classes."""
    B, n = b.shape
    order, starts = _same_rows(free)
    K = _systems(A, free[order[starts]])
    inverse = _inverse(K)
    rhs = np.ones((B, n + 1))
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
    return np.where(free, x[:, :n], 0), -x[:, n]


def _inverse(K: Floats) -> Floats:
    """Return the inverses of K (B, m, m), or pseudo-inverses of those whose ridge is lost beside larger entries."""
    try:
        return np.linalg.inv(K).astype(np.float64, copy=False)
    except np.linalg.LinAlgError:
        return np.array([solve_or_least_squares(each, np.eye(len(each))) for each in K])


def _same_rows(free: Mask) -> tuple[Index, Index]:
    """Return an order of the rows (B,) in which equal ones follow each other, and where each kind starts in it."""
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
    """Return the solutions x of K x = rhs for symmetric K, with one step of refinement; rhs (..., n + 1) in rows."""
    x = np.matmul(rhs, inverse)
    return np.asarray(x + np.matmul(rhs - np.matmul(x, K), inverse))


def _systems(A: Floats, free: Mask) -> Floats:
    """Return the bordered matrices (B, n + 1, n + 1), with unit vectors for the classes that are not free."""
    B, n = free.shape
    K = np.zeros((B, n + 1, n + 1))
    K[:, :n, n] = K[:, n, :n] = free
    if free.all():  # as in most first rounds
        K[:, :n, :n] = A
        return K
    K[:, :n, :n] = np.where(free[:, :, None] & free[:, None, :], A, 0)
    K[:, np.arange(n), np.arange(n)] += ~free
    return K


def _own_systems(A: Floats, b: Floats, free: Mask) -> tuple[Floats, Floats]:
    """One system per problem."""
    B, n = b.shape
    rhs = np.ones((B, n + 1, 1))
    rhs[:, :n, 0] = np.where(free, b, 0)
    K = _systems(A, free)
    try:
        x = np.linalg.solve(K, rhs)[:, :, 0].astype(np.float64, copy=False)
    except np.linalg.LinAlgError:
        x = np.array([solve_or_least_squares(each, right[:, 0]) for each, right in zip(K, rhs, strict=True)])
    return x[:, :n], -x[:, n]


class StiffSystems(Systems):
    """A (n, n) or (B, n, n) beside a penalty whose curvature is larger by orders of magnitude.

    On each face the directions are split into those that the penalty sees and those that it does not; scaled by the
    root of their curvatures, both are of the same size. r = tau (C p - c), (B, m), the multiplier of the penalty, comes
    from the scaled solution: as a difference of nearly equal numbers, C p - c itself has no digits left.
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
        """Return |A| |p| + |b| + |C|'|r|, and its mean over p for the value on the free classes."""
        P = np.abs(P)
        A = np.broadcast_to(self.A, (len(self.b), *self.A.shape[-2:]))[rows]
        terms = np.matmul(np.abs(A), P[:, :, None])[:, :, 0] + np.abs(self.b[rows])
        terms = terms + np.abs(self.r[rows]) @ np.abs(self.penalty.C)
        return np.asarray(terms + (P * terms).sum(axis=1, keepdims=True))

    def largest_size(self, P: Floats, rows: Index) -> Floats:
        """Return the largest of the sizes: there is nothing to be saved."""
        return np.asarray(self.size(P, rows).max(axis=1))


class _Face:
    """One set of free classes (k of n): coordinates y with p = p0 + W y, p0 a point of least penalty."""

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
