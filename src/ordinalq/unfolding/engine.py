"""Estimates of many histograms and their derivatives; interface of unfolders."""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from typing import Any, NamedTuple

import numpy as np
from sklearn.base import clone

from ordinalq._utils.validation import Counts, Floats, Index, Mask
from ordinalq.solvers.sensitivity import AT_THE_EDGE
from ordinalq.unfolding.measurement import Measurement
from ordinalq.unfolding.response_model import Changes, ResponseModel, response_model

# Fraction of a standard deviation by which data are moved for a numerical derivative.
STEP = 1e-3
# Smallest acceptance of a toy, relative to the nominal one.
LEAST = 0.01
# Shifts of one chunk.
CHUNK = 256


@dataclass(frozen=True)
class Fit:
    """Estimates for B histograms ``G`` (B, d).

    ``P`` (B, n) are prevalences among the observed signal events, ``T`` (B, n) numbers of all events; ``strengths``,
    ``n_iter`` and ``converged`` are (B,).
    """

    G: Floats
    P: Floats
    T: Floats
    strengths: Floats
    n_iter: Counts
    converged: Mask

    def __len__(self) -> int:
        return len(self.G)

    def take(self, rows: Index) -> "Fit":
        """Return the estimates of some histograms."""
        return Fit(*(getattr(self, field.name)[rows] for field in fields(self)))


class Column(NamedTuple):
    """Change (d,) of one column of the response, in compact form."""

    position: int
    values: Floats


@dataclass(frozen=True)
class Shift:
    """One standard deviation of the model of the counts in one direction.

    ``counts`` (d,) or (B, d), ``response`` (d, n) including the acceptance or one column of it, ``background`` (d,).
    """

    counts: Floats | float = 0.0
    response: Floats | Column | float = 0.0
    background: Floats | float = 0.0

    def of_response(self, shape: tuple[int, ...]) -> Floats:
        """Return the change of the response (d, n)."""
        if not isinstance(self.response, Column):
            return np.broadcast_to(self.response, shape)
        change = np.zeros(shape)
        change[:, self.response.position] = self.response.values
        return change


def shifted(known: Measurement, shifts: Sequence[Shift], steps: Floats) -> Measurement:
    """Return a measurement moved by `steps` (K,) along K shifts, non-negative."""
    R, b = known.response, known.background
    for step, shift in zip(steps, shifts, strict=True):
        R, b = R + step * shift.of_response(R.shape), b + step * shift.background
    R = np.maximum(R, 0.0)
    sums = R.sum(axis=0)
    M = np.where(sums > 0, R / np.where(sums > 0, sums, 1.0), known.M)
    return replace(known, M=M, acceptance=np.maximum(sums, LEAST * known.acceptance), background=np.maximum(b, 0.0))


class Unfolder(ABC):
    """A method applied to a measurement.

    Parameters
    ----------
    method : estimator
        Method with its parameters.
    measurement : Measurement
        Response, acceptance, background.
    shifts : sequence of Shift
        Directions in which they may be off.
    """

    def __init__(self, method: Any, measurement: Measurement, shifts: Sequence[Shift] = ()) -> None:
        self.method = method
        self.measurement = measurement
        self.shifts = shifts

    @abstractmethod
    def solve(self, G: Floats, strengths: Floats | None = None) -> Fit:
        """Return estimates for the histograms G (B, d), with strengths (B,)."""

    @abstractmethod
    def moved(self, fit: Fit, shifts: Sequence[Shift]) -> Floats:
        """Return the moves of the estimates along K shifts, to first order, (K, B, n)."""

    @abstractmethod
    def jacobian(self, fit: Fit) -> Floats:
        """Return derivatives (B, n, d) of the estimates by the observed counts."""

    @abstractmethod
    def grid(self, G: Floats, size: int) -> Floats:
        """Return strengths from weak to strong for each histogram, (size, B) or fewer."""

    @abstractmethod
    def roughness(self, fit: Fit) -> Floats:
        """Return the penalty per unit of strength, (B,)."""

    def freedom(self, J: Floats) -> Floats:
        """Return the effective degrees of freedom (B,): the trace of d lambda / d g."""
        return np.asarray(np.einsum("ji,bij->b", self.measurement.response, J))

    def spread(self, T: Floats, *, acceptance: bool = False) -> Floats:
        """Return covariances (B, d, d) of counts: fluctuations and shifts.

        Shifts of the acceptance are left out by default: an estimate follows them, a model does not.
        """
        known = self.measurement
        V = known.fluctuations(known.fold(T))
        for shift in self.shifts:
            dR = shift.of_response(known.M.shape)
            if not acceptance:
                dR = dR - known.M * dR.sum(axis=0)
            off = T @ dR.T + shift.background
            V += off[:, :, None] * off[:, None, :]
        return np.asarray(V)

    def statistical(self, fit: Fit, J: Floats) -> Floats:
        """Return statistical covariances (B, n, n) from derivatives J (B, n, d)."""
        known = self.measurement
        expected = known.fold(fit.T) if known.variances is None else fit.G
        return np.asarray(np.einsum("bij,bjk,blk->bil", J, known.fluctuations(expected), J))

    def draw(self, t: Floats, n_toys: int, rng: np.random.Generator) -> Floats:
        """Draw histograms (n_toys, d) of t (n,) with varied response and background."""
        if not self.shifts:
            return self.measurement.draw(self.measurement.fold(t[None])[0], n_toys, rng)
        steps = rng.normal(size=(n_toys, len(self.shifts)))
        worlds = (shifted(self.measurement, self.shifts, step) for step in steps)
        return np.vstack([world.draw(world.fold(t[None])[0], 1, rng) for world in worlds])


class QuantifierUnfolder(Unfolder):
    """A quantifier that solves q = M p: RUN, IBU, or one of least squares."""

    def __init__(self, method: Any, measurement: Measurement, shifts: Sequence[Shift] = ()) -> None:
        super().__init__(method, measurement, shifts)
        if measurement.covariance is not None:
            raise ValueError(
                f"covariance must be None with {type(method).__name__}: its likelihood is that of counts. "
                "Use the default method."
            )
        self.model = response_model(method)

    def solve(self, G: Floats, strengths: Floats | None = None) -> Fit:
        """Return estimates for the histograms G (B, d)."""
        data = self.measurement.data(G)
        solution = self.model.solve(data, strengths=strengths)
        if strengths is None:
            strengths = self.model.strengths(data, solution)
        T = self.measurement.spectrum(solution.p, G)
        return Fit(G, solution.p, T, strengths, solution.n_iter, solution.converged)

    def moved(self, fit: Fit, shifts: Sequence[Shift]) -> Floats:
        """Return moves of the estimates by differences of gradients or of runs."""
        known = self.measurement
        a, S = known.acceptance, known.signal(fit.G)
        if self.model.has_formula and len(fit) == 1 and shifts:
            return self._moves(fit, shifts)
        move = self.model.linearize(known.data(fit.G), fit.P, fit.strengths)
        moves = []
        for shift in shifts:
            dR = shift.of_response(known.M.shape)
            da = dR.sum(axis=0)
            steps = self._steps(fit.G, shift)
            ends = []
            for step in steps:
                R = known.response + step * dR
                data = known.data(
                    fit.G + step * shift.counts, R / R.sum(axis=0), known.background + step * shift.background
                )
                ends.append((data, self._model(a + step * da if da.any() else None)))
            dP = move(*ends) / (steps[0] - steps[1])
            dS = np.broadcast_to(np.sum(shift.counts, axis=-1) - np.sum(shift.background), len(fit))
            moves.append(S[:, None] * dP / a + fit.T * (dS[:, None] / S[:, None] - da / a))
        return np.array(moves).reshape(len(shifts), *fit.T.shape)

    def _moves(self, fit: Fit, shifts: Sequence[Shift]) -> Floats:
        """Return the moves of one estimate by the formula, in chunks of shifts."""
        known = self.measurement
        M, a, b, S = known.M, known.acceptance, known.background, float(known.signal(fit.G)[0])
        data, q = known.data(fit.G), fit.G[0] / S
        start = self.method.start(len(a))
        found = []
        for k in range(0, len(shifts), CHUNK):
            part = shifts[k : k + CHUNK]
            dR = np.array([shift.of_response(M.shape) for shift in part])
            dg = np.array([np.broadcast_to(shift.counts, fit.G.shape)[0] for shift in part])
            db = np.array([np.broadcast_to(shift.background, q.shape) for shift in part])
            da, dS = dR.sum(axis=1), (dg.sum(axis=1) - db.sum(axis=1))[:, None]
            # The start of an EM is proportional to the acceptance, if it has one.
            follows = start is not None and self.method.acceptance is not None
            ds = start * (da / a) if follows else np.zeros_like(da)
            ds = ds - start * ds.sum(axis=1, keepdims=True) if follows else ds
            dM = (dR - M * da[:, None, :]) / a
            changes = Changes((dg - q * dS) / S, dM, (db - b / S * dS) / S, ds)
            dP = self.model.moves(data, int(fit.strengths[0]), changes)
            found.append(S * dP / a + fit.T * (dS / S - da / a))
        return np.concatenate(found)[:, None, :]

    def _steps(self, G: Floats, shift: Shift) -> tuple[float, float]:
        """Return the steps ahead and behind; counts of zero only move ahead."""
        below = (G + np.broadcast_to(-STEP * shift.counts, G.shape) < 0).any()
        return (STEP, 0.0) if below else (STEP, -STEP)

    def _model(self, acceptance: Floats | None) -> ResponseModel:
        """Return the model with another acceptance in its penalty or prior."""
        if acceptance is None or self.method.get_params(deep=False).get("acceptance") is None:
            return self.model
        scaled = acceptance / acceptance.max() * self.measurement.relative_acceptance.max()
        return response_model(clone(self.method).set_params(acceptance=scaled))

    def jacobian(self, fit: Fit) -> Floats:
        """Return derivatives (B, n, d) of the estimates by the observed counts."""
        known = self.measurement
        S, a = known.signal(fit.G)[:, None, None], known.acceptance[:, None]
        if self.model.has_formula:
            return np.asarray(self.model.jacobian(known.data(fit.G), fit.strengths) / a + fit.T[:, :, None] / S)
        unit = np.sqrt(np.maximum(fit.G, 1.0))
        shifts = [Shift(counts=unit * row) for row in np.eye(fit.G.shape[1])]
        return np.asarray(self.moved(fit, shifts).transpose(1, 2, 0) / unit[:, None, :])

    def statistical(self, fit: Fit, J: Floats) -> Floats:
        """Return statistical covariances (B, n, n).

        A bin that is estimated to be empty does not move with the counts. If it could be negative it would be at u < 0
        with a variance s^2; the deviance, a parabola around u, is by one above that at zero at sqrt(u^2 + s^2) - |u|.
        The error is this, or the number of events at which the deviance itself, minimized over the other bins, has
        risen by one, whichever is larger.
        """
        C = super().statistical(fit, J)
        known, empty = self.measurement, fit.P <= AT_THE_EDGE
        rows = np.flatnonzero(empty.any(axis=1))
        if len(rows):
            part = fit.take(rows)
            free = self.jacobian(replace(part, P=np.maximum(part.P, 2 * AT_THE_EDGE)))
            below = np.maximum(np.einsum("bij,bj->bi", free, known.fold(part.T) - part.G), 0.0)
            expected = known.fold(part.T) if known.variances is None else part.G
            square = np.einsum("bij,bjk,bik->bi", free, known.fluctuations(expected), free)
            unit = known.signal(part.G)[:, None] / known.acceptance
            rise = unit * self.model.rise(known.data(part.G), part.P, part.strengths)
            error = np.maximum(np.sqrt(below**2 + square) - below, rise)
            C[rows] += np.where(empty[rows], error**2, 0.0)[:, :, None] * np.eye(J.shape[1])
        return np.asarray(C)

    def grid(self, G: Floats, size: int) -> Floats:
        """Return strengths of the method from weak to strong, (size, B) or fewer."""
        return self.model.grid(self.measurement.data(G), size)

    def roughness(self, fit: Fit) -> Floats:
        """Return the penalty per unit of strength, (B,)."""
        return self.model.roughness(fit.P, self.measurement.signal(fit.G) / self.measurement.weight)
