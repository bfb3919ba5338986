"""A method at work on one measurement: estimates for many histograms at once, and how they move with what is known."""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from ordinalq.contract.quantifier import Quantifier
from ordinalq.problem import Data
from ordinalq.unfolding.measurement import Measurement
from ordinalq.validation import Floats

# Part of a standard deviation by which data are moved to see how the estimate does: small for its curvature, large
# beside rounding errors.
STEP = 1e-3


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
    n_iter: npt.NDArray[np.int64]
    converged: npt.NDArray[np.bool_]

    def __len__(self) -> int:
        return len(self.G)


@dataclass(frozen=True)
class Shift:
    """One direction in which what is known may be off, by one standard deviation; None stands for no change.

    ``counts`` (d,) or (B, d), ``response`` (d, n), ``acceptance`` (n,), ``background`` (d,).
    """

    counts: Floats | None = None
    response: Floats | None = None
    acceptance: Floats | None = None
    background: Floats | None = None


class Unfolder:
    """A method and a measurement.

    Parameters
    ----------
    method : Quantifier
        One that solves q = M p.
    measurement : Measurement
        What is known: response, acceptance, background.
    """

    def __init__(self, method: Quantifier, measurement: Measurement) -> None:
        self.method = method
        self.measurement = measurement

    def solve(self, G: Floats, strengths: Floats | None = None) -> Fit:
        """Return estimates for the histograms G (B, d), with strengths (B,) or those that the method says."""
        data = self.measurement.data(G)
        solution = self.method.solve_response(data, strengths=strengths)
        if strengths is None:
            strengths = self.method.response_strengths(data, solution)
        T = self.measurement.spectrum(solution.p, G)
        return Fit(G, solution.p, T, strengths, solution.n_iter, solution.converged)

    def moved(self, fit: Fit, shifts: list[Shift]) -> Floats:
        """Return by how much the estimates move along K shifts, to first order, (K, B, n)."""
        known = self.measurement
        a, S = known.acceptance, known.signal(fit.G)
        move = self.method.linearize(known.data(fit.G), fit.P, fit.strengths)
        moves = []
        for shift in shifts:
            ahead, behind = (self._data(fit.G, shift, step) for step in (STEP, -STEP))
            dP = move(ahead, behind) / (2 * STEP)
            dS = np.zeros(1) if shift.counts is None else shift.counts.sum(axis=-1)
            dS = dS if shift.background is None else dS - shift.background.sum()
            da = 0.0 if shift.acceptance is None else shift.acceptance / a
            moves.append(S[:, None] * dP / a + fit.T * (np.broadcast_to(dS, len(fit))[:, None] / S[:, None] - da))
        return np.array(moves).reshape(len(shifts), *fit.T.shape)

    def _data(self, G: Floats, shift: Shift, step: float) -> Data:
        """Return the data a step along a shift."""
        known = self.measurement
        G = G if shift.counts is None else G + step * shift.counts
        M = known.M if shift.response is None else known.M + step * shift.response
        b = known.background if shift.background is None else known.background + step * shift.background
        return known.data(G, M, b)

    def jacobian(self, fit: Fit) -> Floats:
        """Return the derivatives of the estimates by the observed counts, (B, n, d)."""
        unit = np.sqrt(np.maximum(fit.G, 1.0))
        shifts = [Shift(counts=unit * row) for row in np.eye(fit.G.shape[1])]
        return np.asarray(self.moved(fit, shifts).transpose(1, 2, 0) / unit[:, None, :])

    def variances(self, J: Floats, expected: Floats) -> Floats:
        """Return the statistical variances (B, n) of estimates with derivatives J (B, n, d)."""
        return np.asarray(np.einsum("bij,bj->bi", J**2, self.measurement.fluctuation(expected)))

    def bias(self, fit: Fit, J: Floats, pilot: Floats, pilot_J: Floats) -> tuple[Floats, Floats]:
        """Return what the method does to the spectra `pilot` (B, n), seen without fluctuations, and its variance.

        The bias is unfolded(folded(t)) - t, the method being linearized for its variance: (J R - 1) t moves by
        (J R - 1) J_pilot dg; J (B, n, d) and J_pilot are the derivatives of the estimates and of the pilot.
        """
        known = self.measurement
        expected = known.fold(pilot)
        bias = self.solve(expected, fit.strengths).T - pilot
        distortion = J @ (known.M * known.acceptance) - np.eye(pilot.shape[1])
        return np.asarray(bias), self.variances(distortion @ pilot_J, expected)
