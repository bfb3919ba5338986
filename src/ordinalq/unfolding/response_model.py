"""Methods on a response matrix, with a strength for each sample."""

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from ordinalq._utils.validation import Floats
from ordinalq.losses import Loss, Poisson
from ordinalq.quantifiers.linear import LinearQuantifier
from ordinalq.quantifiers.run_ibu import IBU, RUN, tau_for
from ordinalq.regularizers import NoPenalty, Regularizer, Smoother
from ordinalq.simplex import Data
from ordinalq.solvers.objectives import LinearObjective
from ordinalq.solvers.sensitivity import AT_THE_EDGE, tangent_inverse
from ordinalq.solvers.solution import Solution

# Items of an empty observed bin when the curvature of its likelihood is needed: with none it would be zero, and empty
# bins would be the ones that are not smoothed.
FEWEST = 0.5
# Largest number of iterations that a scan tries.
MOST_STEPS = 100
# Smallest number to divide by.
TINY = 1e-300


class ResponseModel(ABC):
    """A method that solves q = M p + background."""

    method: Any

    def __init__(self, method: Any) -> None:
        self.method = method

    @abstractmethod
    def solve(self, data: Data, *, sizes_known: bool = True, strengths: Floats | None = None) -> Solution:
        """Return the Solution; `strengths` (B,) replace that of the method."""

    @abstractmethod
    def strengths(self, data: Data, solution: Solution) -> Floats:
        """Return the strength of smoothing with which each sample was solved, (B,)."""

    @abstractmethod
    def linearize(self, data: Data, P: Floats, strengths: Floats) -> "Move":
        """Return the change of the estimates P (B, n) between two data."""

    @abstractmethod
    def rise(self, data: Data, P: Floats, strengths: Floats) -> Floats:
        """Return the prevalence (B, n) at which the deviance has risen by one."""

    @property
    def has_formula(self) -> bool:
        """Whether there are formulas of derivatives: `jacobian` and `moves`."""
        return False

    def jacobian(self, data: Data, strengths: Floats) -> Floats:
        """Return dp/dg (B, n, d) times the number of signal events."""
        raise NotImplementedError

    def moves(self, data: Data, n_steps: int, changes: "Changes") -> Floats:
        """Return the changes (K, n) of one estimate along K changes of the data."""
        raise NotImplementedError

    def grid(self, data: Data, size: int) -> Floats:
        """Return strengths from weak to strong for each sample, (size, B)."""
        name = type(self.method).__name__
        raise TypeError(f"{name} has no strength to choose by a rule. Pass a number, or use RUN or IBU.")

    def roughness(self, P: Floats, sizes: Floats) -> Floats:
        """Return the penalty per unit of strength, (B,), of P (B, n)."""
        raise TypeError(f"{type(self.method).__name__} has no penalty.")


class LinearModel(ResponseModel):
    """A loss plus a regularizer."""

    method: LinearQuantifier

    def solve(self, data: Data, *, sizes_known: bool = True, strengths: Floats | None = None) -> Solution:
        """Return the minimum."""
        loss, regularizer = self._parts(data, strengths)
        if loss.needs_distances:
            raise _unsuitable(self.method)
        if loss.needs_sizes and not sizes_known:
            raise ValueError("N must be given if q are fractions: the loss needs the numbers of items.")
        return self.method.minimize(data, loss, regularizer, strengths)

    def _parts(self, data: Data, strengths: Floats | None) -> tuple[Loss, Regularizer]:
        """Return loss and regularizer, of unit strength if it varies by sample."""
        self.method.check_parameters(data.n_classes)
        _, loss, regularizer = self.method.parts()
        if strengths is not None and regularizer.strength is not None:
            return loss, regularizer.with_strength(1.0)
        _check_number(regularizer)
        return loss, regularizer

    def strengths(self, data: Data, solution: Solution) -> Floats:
        """Return the strength of the regularizer for each sample, (B,)."""
        regularizer = self.method.parts().regularizer
        return np.full(len(data), 0.0 if regularizer.strength is None else getattr(regularizer, regularizer.strength))

    def roughness(self, P: Floats, sizes: Floats) -> Floats:
        """Return the regularizer per unit of strength, (B,)."""
        regularizer = self.method.parts().regularizer
        if regularizer.strength is None:
            return super().roughness(P, sizes)
        return np.asarray(regularizer.with_strength(1.0).derivatives(P, sizes).value)

    def linearize(self, data: Data, P: Floats, strengths: Floats) -> "Move":
        """Return the change of the estimates by the implicit function theorem."""
        rows = np.arange(len(data))
        inverse = tangent_inverse(self._objective(_fill_empty_bins(data, P), strengths), P)

        def move(ahead: "End", behind: "End") -> Floats:
            pull = [model._objective(moved, strengths).gradient(P, rows) for moved, model in (ahead, behind)]
            return -np.asarray(np.matmul(inverse, (pull[0] - pull[1])[:, :, None])[:, :, 0])

        return move

    def rise(self, data: Data, P: Floats, strengths: Floats) -> Floats:
        """Return prevalences at which the profile deviance has risen by one.

        Only the Poisson loss is half a deviance. For other losses, the deviance of the counts is used.
        """
        if isinstance(self._parts(data, strengths)[0], Poisson):
            return _rise(self._objective(data, strengths), P)
        return _rise_of_counts(data, P)

    def _objective(self, data: Data, strengths: Floats) -> LinearObjective:
        return LinearObjective(*self._parts(data, strengths), data, strengths)


class RunModel(LinearModel):
    """RUN, whose strength may be given by degrees of freedom."""

    method: RUN

    def strengths(self, data: Data, solution: Solution) -> Floats:
        """Return the tau of each sample, (B,)."""
        if self.method.n_df is None:
            return super().strengths(data, solution)
        A, R, _ = self.method.curvatures(data, self.method.parts().regularizer)
        return tau_for(self.method.n_df, A, R)

    def grid(self, data: Data, size: int) -> Floats:
        """Return tau that leave ever fewer degrees of freedom, ascending, (size, B)."""
        some = replace(data, Q=np.where(data.Q > 0, data.Q, FEWEST / data.sizes[:, None]))
        A, R, _ = self.method.curvatures(some, self.method.parts().regularizer.with_strength(1.0))
        n = data.n_classes
        steps = np.linspace(n, self.method.n_unpenalized(n), size + 2)[1:-1]
        return np.array([tau_for(n_df, A, R) for n_df in steps])


class IterationModel(ResponseModel):
    """IBU, whose strength is the number of iterations."""

    method: IBU

    def solve(self, data: Data, *, sizes_known: bool = True, strengths: Floats | None = None) -> Solution:
        """Return the estimate; numbers of items change its likelihood, not the iteration."""
        self.method.check_parameters(data.M.shape[1])
        smoothing = self.method.smoother()
        _check_number(smoothing)
        return self.method.iterate(data, smoothing, strengths)

    def strengths(self, data: Data, solution: Solution) -> Floats:
        """Return the numbers of iterations (B,)."""
        return solution.n_iter.astype(np.float64)

    def linearize(self, data: Data, P: Floats, strengths: Floats) -> "Move":
        """Return the change of the estimates as the difference of two runs."""
        smoothing = self.method.smoother()

        def move(ahead: "End", behind: "End") -> Floats:
            first, last = (model.method.iterate(moved, smoothing, strengths).p for moved, model in (ahead, behind))
            return np.asarray(first - last)

        return move

    def rise(self, data: Data, P: Floats, strengths: Floats) -> Floats:
        """Return prevalences at which the profile deviance has risen by one."""
        return _rise_of_counts(data, P)

    @property
    def has_formula(self) -> bool:
        """Whether nothing is smoothed between the iterations."""
        return bool(self.method.interpolation == 0)

    def jacobian(self, data: Data, strengths: Floats) -> Floats:
        """Return the derivatives through all iterations, (B, n, d).

        With v = M p + o and u_i = p_i sum_j M_ji q_j / v_j, an iteration is p' = u / sum u. Counts move q and, as the
        number of signal events changes, the background o.
        """
        M, Q, B, n = data.M, data.Q, len(data), data.n_classes
        o = np.zeros_like(Q) if data.background is None else data.background
        start = self.method.start(n)
        p = np.tile(np.full(n, 1 / n) if start is None else start, (B, 1))
        dQ, do, D = np.eye(len(M)) - Q[:, :, None], -o[:, :, None], np.zeros((B, n, len(M)))
        for k in range(int(strengths.max())):
            v = np.maximum(p @ M.T + o, TINY)
            factor = (Q / v) @ M
            u, total = p * factor, (p * factor).sum(axis=1)
            inner = (dQ - (Q / v)[:, :, None] * (M @ D + do)) / v[:, :, None]
            dU = factor[:, :, None] * D + p[:, :, None] * (M.T @ inner)
            goes_on = k < strengths
            new = u / total[:, None]
            dP = (dU - new[:, :, None] * dU.sum(axis=1)[:, None, :]) / total[:, None, None]
            p, D = np.where(goes_on[:, None], new, p), np.where(goes_on[:, None, None], dP, D)
        return D

    def moves(self, data: Data, n_steps: int, changes: "Changes") -> Floats:
        """Return derivatives through all iterations along K changes."""
        M, q = data.M, data.Q[0]
        o = np.zeros_like(q) if data.background is None else data.background[0]
        start = self.method.start(M.shape[1])
        p = np.full(M.shape[1], 1 / M.shape[1]) if start is None else start
        D = changes.start
        for _ in range(n_steps):
            v = np.maximum(M @ p + o, TINY)
            factor = (q / v) @ M
            u, total = p * factor, float((p * factor).sum())
            inner = (changes.Q - (q / v) * (D @ M.T + changes.M @ p + changes.background)) / v
            dU = factor * D + p * (inner @ M + (q / v) @ changes.M)
            p = u / total
            D = (dU - p * dU.sum(axis=1, keepdims=True)) / total
        return np.asarray(D)

    def grid(self, data: Data, size: int) -> Floats:
        """Return ever fewer iterations, (size, B) at most."""
        steps = np.unique(np.geomspace(MOST_STEPS, 1, size).round())[::-1]
        return np.tile(steps[:, None], (1, len(data)))


class Changes(NamedTuple):
    """K changes of q (K, d), M (K, d, n), background (K, d) and start (K, n)."""

    Q: Floats
    M: Floats
    background: Floats
    start: Floats


# Data next to those of an estimate, and the model, whose penalty or prior may have another acceptance.
End = tuple[Data, Any]
# From the ends ahead and behind to the difference (B, n) of their estimates.
Move = Callable[[End, End], Floats]


def _fill_empty_bins(data: Data, P: Floats) -> Data:
    """Return the data with expected counts in empty observed bins."""
    return replace(data, Q=np.where(data.Q > 0, data.Q, data.expected(P)))


def _rise(objective: LinearObjective, P: Floats) -> Floats:
    """Return e (B, n): moving class i from 0 to e raises the objective by 1/2.

    The rise is slope e + curvature e^2 / 2. The slope is the gradient less that of the classes that are not empty; the
    curvature is a Schur complement, because the other classes minimize the objective on the simplex. It is not known
    better than to the rounding errors of its terms.
    """
    at = objective.derivatives(P, np.arange(len(P)))
    found = np.zeros_like(P)
    for b, p in enumerate(P):
        free = np.flatnonzero(p > AT_THE_EDGE)
        g, H, m = at.gradient[b], at.hessian[b], len(free)
        K = np.zeros((m + 1, m + 1))
        K[:m, :m], K[:m, m], K[m, :m] = H[np.ix_(free, free)], 1.0, 1.0
        for i in np.flatnonzero(p <= AT_THE_EDGE):
            slope = max(float(g[i] - g[free].mean()), 0.0)
            c = np.append(H[free, i], 1.0)
            least = np.finfo(float).eps * float(H[i, i])
            curvature = max(float(H[i, i] - c @ np.linalg.lstsq(K, c, rcond=1e-12)[0]), least)
            found[b, i] = 1 / max(slope + float(np.sqrt(slope**2 + curvature)), TINY)
    return found


def _rise_of_counts(data: Data, P: Floats) -> Floats:
    """Return prevalences (B, n) that raise the deviance of the counts by one."""
    data = replace(data, Q=np.maximum(data.Q, 0.0))  # counts with a covariance may be negative
    return _rise(LinearObjective(Poisson(), NoPenalty(), data), P)


def response_model(method: Any) -> ResponseModel:
    """Return the model of a method; raise TypeError if it does not solve q = M p."""
    for kind, model in ((RUN, RunModel), (IBU, IterationModel), (LinearQuantifier, LinearModel)):
        if isinstance(method, kind):
            return model(method)
    raise _unsuitable(method)


def _unsuitable(method: Any) -> TypeError:
    return TypeError(
        f"method must be one that solves q = M p (ACC, PACC, HDx, HDy, PDF, RUN, IBU, their o-forms, or a "
        f"ComposedQuantifier), got {type(method).__name__}."
    )


def _check_number(smoother: Smoother) -> None:
    """Raise ValueError if a strength is "auto", which needs training items."""
    if smoother.is_auto:
        name = smoother.strength
        raise ValueError(
            f"{name} must be a number here, got 'auto', which needs training items. "
            f"Pass a number, for example the {name}_ of a fitted quantifier."
        )
