"""The functions that a fit test looks at, on the held-out items, in directions that are not redundant."""

from typing import NamedTuple

import numpy as np

from ordinalq._utils.validation import Codes, Floats
from ordinalq.inference.model import FittedQuantifier
from ordinalq.samples.summary import Summary
from ordinalq.samples.weights import Weights, class_shares

# Functions per class, and the part of the largest variance below which a direction is redundant.
FUNCTIONS_PER_CLASS = 4
REDUNDANT = 1e-6


class Checked(NamedTuple):
    """Functions g of the held-out items V, as directions of what a summary holds under `name`."""

    name: str  # "checks", or "f" where a representation on features serves as such
    g: Floats  # (N_V, d) values in V, the direction with the largest variance first
    codes: Codes  # (N_V,) classes
    centre: Floats  # (d0,) from what was summed up to g: (x - centre) axes
    axes: Floats  # (d0, d)
    D: Floats | None  # (d, d) covariance of the mean of g in a class between groups, if known
    weights: Weights | None = None

    def means(self, summary: Summary) -> Floats:
        """Return the mean of g over each sample, (B, d)."""
        return np.asarray((summary.mean(self.name) - self.centre) @ self.axes)

    def first(self, d: int) -> "Checked":
        """Return the d directions with the largest variance."""
        D = None if self.D is None else self.D[:d, :d]
        return self._replace(g=self.g[:, :d], axes=self.axes[:, :d], D=D)


def checked(quantifier: FittedQuantifier) -> Checked:
    """Return the functions of a fitted quantifier that has kept its held-out items."""
    S, codes = quantifier.held_out_
    n = len(quantifier.classes_)
    functions = quantifier.checks()
    if functions is None:
        name, g, D = "f", np.asarray(quantifier.embed(S), dtype=np.float64), quantifier.group_covariance_
    else:
        name, g, D = "checks", functions.values(S), getattr(quantifier, "check_covariance_", None)
    # Every class counts alike: a sample may hold many of those that are rare in training.
    shares = class_shares(codes, n, quantifier.held_out_weights_) / n
    centre = shares @ g
    g = g - centre
    size, axes = np.linalg.eigh((g * shares[:, None]).T @ g)
    axes = axes[:, np.flatnonzero(size > REDUNDANT * size.max())[::-1][: FUNCTIONS_PER_CLASS * n]]
    D = None if D is None else axes.T @ D @ axes
    return Checked(name, g @ axes, codes, centre, axes, D, quantifier.held_out_weights_)
