"""A method at work on one measurement: estimates for many histograms at once, and how they move with what is known."""

from collections.abc import Sequence
from dataclasses import dataclass, fields, replace

import numpy as np

from ordinalq._utils.validation import Counts, Floats, Index, Mask
from ordinalq.quantifiers.base import Quantifier
from ordinalq.solvers.sensitivity import AT_THE_EDGE
from ordinalq.unfolding.measurement import Measurement
from ordinalq.unfolding.response_model import response_model

# Part of a standard deviation by which data are moved to see how the estimate does: small for its curvature, large
# beside rounding errors.
STEP = 1e-3
# The least acceptance that a toy may have, as part of what is known.
LEAST = 0.01


@dataclass(frozen=True)
class Fit:
    """Estimates for B histograms ``G`` (B, d).

    ``P`` (B, n) are shares of the observed events, ``T`` (B, n) numbers of all events; ``strengths``, ``n_iter`` and
    ``converged`` are (B,).
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


@dataclass(frozen=True)
class Shift:
    """One direction in which what is known may be off, by one standard deviation; zero stands for no change.

    ``counts`` (d,) or (B, d), ``response`` (d, n), ``acceptance`` (n,), ``background`` (d,).
    """

    counts: Floats | float = 0.0
    response: Floats | float = 0.0
    acceptance: Floats | float = 0.0
    background: Floats | float = 0.0


def shifted(known: Measurement, shifts: Sequence[Shift], steps: Floats) -> Measurement:
    """Return a measurement moved by `steps` (K,) along K shifts, with entries that stay possible."""
    M, a, b = known.M, known.acceptance, known.background
    for step, shift in zip(steps, shifts, strict=True):
        M, a, b = M + step * shift.response, a + step * shift.acceptance, b + step * shift.background
    M = np.maximum(M, 0.0)
    return replace(
        known, M=M / M.sum(axis=0), acceptance=np.maximum(a, LEAST * known.acceptance), background=np.maximum(b, 0.0)
    )


class Unfolder:
    """A method and a measurement.

    Parameters
    ----------
    method : Quantifier
        One that solves q = M p.
    measurement : Measurement
        What is known: response, acceptance, background.
    shifts : sequence of Shift
        How that may be off.
    """

    def __init__(self, method: Quantifier, measurement: Measurement, shifts: Sequence[Shift] = ()) -> None:
        self.method = method
        self.model = response_model(method)
        self.measurement = measurement
        self.shifts = shifts

    def solve(self, G: Floats, strengths: Floats | None = None) -> Fit:
        """Return estimates for the histograms G (B, d), with strengths (B,) or those that the method says."""
        data = self.measurement.data(G)
        solution = self.model.solve(data, strengths=strengths)
        if strengths is None:
            strengths = self.model.strengths(data, solution)
        T = self.measurement.spectrum(solution.p, G)
        return Fit(G, solution.p, T, strengths, solution.n_iter, solution.converged)

    def moved(self, fit: Fit, shifts: Sequence[Shift]) -> Floats:
        """Return by how much the estimates move along K shifts, to first order, (K, B, n)."""
        known = self.measurement
        a, S = known.acceptance, known.signal(fit.G)
        move = self.model.linearize(known.data(fit.G), fit.P, fit.strengths)
        moves = []
        for shift in shifts:
            ahead, behind = (
                known.data(
                    fit.G + step * shift.counts,
                    known.M + step * shift.response,
                    known.background + step * shift.background,
                )
                for step in (STEP, -STEP)
            )
            dP = move(ahead, behind) / (2 * STEP)
            dS = np.broadcast_to(np.sum(shift.counts, axis=-1) - np.sum(shift.background), len(fit))
            moves.append(S[:, None] * dP / a + fit.T * (dS[:, None] / S[:, None] - shift.acceptance / a))
        return np.array(moves).reshape(len(shifts), *fit.T.shape)

    def jacobian(self, fit: Fit) -> Floats:
        """Return the derivatives of the estimates by the observed counts, (B, n, d)."""
        unit = np.sqrt(np.maximum(fit.G, 1.0))
        shifts = [Shift(counts=unit * row) for row in np.eye(fit.G.shape[1])]
        return np.asarray(self.moved(fit, shifts).transpose(1, 2, 0) / unit[:, None, :])

    def freedom(self, J: Floats) -> Floats:
        """Return the effective degrees of freedom (B,): the trace of d lambda / d g."""
        return np.asarray(np.einsum("ji,bij->b", self.measurement.M * self.measurement.acceptance, J))

    def spread(self, T: Floats, *, acceptance: bool = False) -> Floats:
        """Return covariances (B, d, d) of the counts of spectra T (B, n): fluctuations, and what may be off.

        An acceptance that is off is left out unless asked for: an estimate follows it, a model does not.
        """
        known = self.measurement
        V = known.fluctuation(known.fold(T))[:, :, None] * np.eye(len(known.M))
        for shift in self.shifts:
            off = (T * known.acceptance) @ np.broadcast_to(shift.response, known.M.shape).T + shift.background
            if acceptance:
                off = off + (T * shift.acceptance) @ known.M.T
            V += off[:, :, None] * off[:, None, :]
        return np.asarray(V)

    def statistical(self, fit: Fit, J: Floats) -> Floats:
        """Return statistical covariances (B, n, n) of estimates with derivatives J (B, n, d).

        A bin that is estimated to be empty does not move with the counts, and has no correlations. If it could be
        negative it would be at u < 0 with a variance s^2; its error e is where the deviance, a parabola around u, is by
        one above that at zero: e = sqrt(u^2 + s^2) - |u|.
        """
        known = self.measurement
        v = known.fluctuation(known.fold(fit.T) if known.variances is None else fit.G)
        C = np.einsum("bij,bj,bkj->bik", J, v, J)
        rows = np.flatnonzero((fit.P <= AT_THE_EDGE).any(axis=1))
        if len(rows):
            part = fit.take(rows)
            free = self.jacobian(replace(part, P=np.maximum(part.P, 2 * AT_THE_EDGE)))
            below = np.maximum(np.einsum("bij,bj->bi", free, known.fold(part.T) - part.G), 0.0)
            square = np.einsum("bij,bj->bi", free**2, v[rows])
            error = np.sqrt(below**2 + square) - below
            C[rows] += np.where(part.P <= AT_THE_EDGE, error**2, 0.0)[:, :, None] * np.eye(J.shape[1])
        return np.asarray(C)

    def bias(self, fit: Fit, J: Floats, pilot: Floats, pilot_J: Floats) -> tuple[Floats, Floats]:
        """Return what the method does to the spectra `pilot` (B, n), seen without fluctuations, and its variance.

        To first order it estimates t^ + J (R t + b - g) for the spectrum t; the bias moves with the counts by
        (J R - 1) J_pilot dg. J (B, n, d) and J_pilot are the derivatives of the estimates and of the pilot.
        """
        known = self.measurement
        bias = fit.T + np.einsum("bij,bj->bi", J, known.fold(pilot) - fit.G) - pilot
        moves = (J @ (known.M * known.acceptance) - np.eye(pilot.shape[1])) @ pilot_J
        return np.asarray(bias), np.asarray(np.einsum("bij,bjk,bik->bi", moves, self.spread(pilot), moves))

    def draw(self, t: Floats, n_toys: int, rng: np.random.Generator) -> Floats:
        """Draw histograms (n_toys, d) of the spectrum t (n,), each with another response, acceptance and background."""
        if not self.shifts:
            return self.measurement.draw(self.measurement.fold(t[None])[0], n_toys, rng)
        steps = rng.normal(size=(n_toys, len(self.shifts)))
        worlds = (shifted(self.measurement, self.shifts, step) for step in steps)
        return np.vstack([world.draw(world.fold(t[None])[0], 1, rng) for world in worlds])
