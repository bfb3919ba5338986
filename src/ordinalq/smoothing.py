"""Smoothing between the iterations of an EM (IBU, o-SLD). It is no penalty: nothing is minimised."""

from functools import lru_cache
from typing import Any

import numpy as np

from ordinalq._utils.validation import Floats, check_integer
from ordinalq.simplex import clean
from ordinalq.strength import Smoother

# Weights of the polynomial that are tried first.
INTERPOLATIONS = (0.0, 1e-4, 1e-3, 1e-2, 1e-1, 1.0)


class PolynomialSmoothing(Smoother):
    """lam u + (1 - lam) p, with u the least-squares polynomial through the points (i, p_i), made a distribution.

    Parameters
    ----------
    order : int, default=0
        Degree of the polynomial; 0 makes u uniform.
    interpolation : float, "auto" or Auto, default=0.1
        lam in [0, 1], the weight of the polynomial; "auto" is chosen when a quantifier is fitted.
    """

    strength = "interpolation"

    def __init__(self, order: int = 0, interpolation: Any = 0.1) -> None:
        self.order = order
        self.interpolation = interpolation

    def check(self, n_classes: int) -> None:
        """Refuse parameters that do not fit n classes."""
        check_integer("order", self.order, minimum=0)
        self.check_strength(n_classes, high=1)
        if self.order > n_classes - 1:
            raise ValueError(
                f"order must be at most n - 1 = {n_classes - 1} for {n_classes} classes, got {self.order}."
            )

    def strengths(self, unit: float) -> tuple[float, ...]:
        """Return weights of the polynomial; they have no unit."""
        return INTERPOLATIONS

    def limits(self, unit: float) -> tuple[float, float]:
        """Return where the grid ends: a weight of one is the polynomial itself, less than the smallest is none."""
        return INTERPOLATIONS[1], INTERPOLATIONS[-1]

    def smooth(self, P: Floats) -> Floats:
        """Return the smoothed distributions, (B, n); negative values of the polynomial become 0."""
        if self.interpolation == 0:
            return P
        U = np.maximum(P @ polynomial_projection(P.shape[1], self.order), 0)
        return clean(self.interpolation * clean(U) + (1 - self.interpolation) * P)


@lru_cache(maxsize=64)  # an EM asks for the same matrix a hundred times
def polynomial_projection(n: int, order: int) -> Floats:
    """Return the (n, n) matrix that takes p to the values of its least-squares polynomial: that fit is linear in p."""
    Z, _ = np.linalg.qr(np.vander(np.linspace(-1, 1, n), order + 1))
    return np.asarray(Z @ Z.T)
