"""Losses given by their value alone: derivatives are finite differences."""

from abc import abstractmethod

import numpy as np

from ordinalq._utils.validation import Floats
from ordinalq.losses import Loss
from ordinalq.simplex import Data, Derivatives

# Steps of differences: of values, about the cube root of the rounding error, and of gradients that come from those.
STEP, GRADIENT_STEP = 6e-6, 1e-4


class NumericalLoss(Loss):
    """A loss defined by its value alone; derivatives are finite differences.

    Subclasses implement :meth:`value`. If you know the gradient as well, implement :meth:`gradient`, which saves most
    of the time; with Hessians, derive from :class:`ordinalq.losses.Loss`. Differences along n classes take about 2 n^2
    values for every step of the solver, and estimates are right to about six digits. A loss that is not convex in p
    sets ``convex = False``.

    See docs/extend/loss.md.

    Examples
    --------
    >>> import ordinalq as oq
    >>> class Fourth(oq.NumericalLoss):
    ...     def value(self, P, data):
    ...         return ((data.Q - data.expected(P)) ** 4).sum(axis=1)
    >>> M = [[0.8, 0.2], [0.2, 0.8]]
    >>> oq.solve([0.5, 0.5], M, oq.ComposedQuantifier(oq.representations.HardVotes(), Fourth())).round(2)
    array([0.5, 0.5])
    """

    @abstractmethod
    def value(self, P: Floats, data: Data) -> Floats:
        """Return the value (B,) at P (B, n), whose rows need not sum to one exactly.

        It compares ``data.Q`` (B, d) with ``data.expected(P)`` (B, d), for samples of ``data.sizes`` (B,) items.
        """

    def gradient(self, P: Floats, data: Data) -> Floats:
        """Return differences of values (B, n): central ones, and one-sided ones of the same order where p_i is zero."""
        G = np.empty_like(P)
        here = self.value(P, data)
        for i in range(P.shape[1]):
            inside = P[:, i] >= STEP
            up = self.value(_moved(P, i, STEP), data)
            # Where p_i cannot get smaller, a second step upwards.
            other = self.value(_moved(P, i, np.where(inside, -STEP, 2 * STEP)), data)
            G[:, i] = np.where(inside, up - other, 4 * up - other - 3 * here) / (2 * STEP)
        return G

    def derivatives(self, P: Floats, data: Data) -> Derivatives:
        """Return value, gradient, and Hessian by differences of gradients."""
        G = self.gradient(P, data)
        steps = range(P.shape[1])
        H = np.stack([(self.gradient(_moved(P, i, GRADIENT_STEP), data) - G) / GRADIENT_STEP for i in steps], axis=1)
        return Derivatives(self.value(P, data), G, (H + H.transpose(0, 2, 1)) / 2)


def _moved(P: Floats, i: int, step: Floats | float) -> Floats:
    """Return P (B, n) with p_i moved by a step."""
    moved = P.copy()
    moved[:, i] += step
    return moved
