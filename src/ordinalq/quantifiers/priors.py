r"""What is known of the shares of a population before a sample of it is seen: mixtures of Dirichlet distributions.

A part of the mixture has a centre m, is worth nu items, and may be smooth:

    ln prior(p) = sum_i k_i ln p_i - T/2 ||C p / 2||^2,    k = nu m,    C the second differences.

k is alpha of a Dirichlet distribution: its mean is the mode of the product of p_i^k_i, its covariance
(diag(m) - m m') / (nu + 1).
"""

from typing import Any, NamedTuple

import numpy as np

from ordinalq._utils.validation import Floats, check_distributions, check_real
from ordinalq.inference.group_model import multinomial
from ordinalq.simplex import existing_differences

# By how much a smooth prior multiplies the precision of second differences; under the uniform one their half has the
# variance 3/2 / (n (n + 1)).
SMOOTH = 4.0
# Items that the training distribution is worth where it is expected.
STRENGTH = 1000.0
# Weights of "anything", "smooth" and "as in training" where nothing is known.
WEIGHTS = (0.4, 0.4, 0.2)
# Least exponent: no class is ruled out, though it be rare among the training items.
LEAST = 0.05
NAMES = ("any", "uniform", "smooth", "training")


class Part(NamedTuple):
    """A part of a prior: its centre (n,), the items nu that it is worth, its smoothness T and its weight."""

    centre: Floats
    worth: float
    smoothness: float = 0.0
    weight: float = 1.0


class Prior:
    """A mixture of distributions of the shares."""

    def __init__(self, parts: list[Part]) -> None:
        self.parts = parts

    @classmethod
    def of(cls, prior: Any, p_train: Floats, strength: float | None = None) -> "Prior":
        """Return the prior of that name, or with that centre; see :class:`ordinalq.AML`."""
        n = len(p_train)
        uniform = Part(np.full(n, 1 / n), n)
        worth = STRENGTH if strength is None else strength
        if not isinstance(prior, str):
            return cls([Part(np.asarray(prior, dtype=np.float64), worth)])
        smooth = uniform._replace(smoothness=SMOOTH * n * (n + 1) / 1.5)
        training = Part(p_train, worth)
        if prior == "any":
            parts = (uniform, smooth, training)
            return cls([part._replace(weight=weight) for part, weight in zip(parts, WEIGHTS, strict=True)])
        return cls([{"uniform": uniform, "smooth": smooth, "training": training}[prior]])

    @property
    def log_weights(self) -> Floats:
        """Logarithms of the parts' weights, (c,)."""
        return np.log([part.weight for part in self.parts])

    @property
    def centres(self) -> Floats:
        """Centres of the parts, (c, n)."""
        return np.array([part.centre for part in self.parts])

    def exponents(self) -> Floats:
        """Return k of each part, (c, n)."""
        return np.array([np.maximum(part.worth * part.centre, LEAST) for part in self.parts])

    def curvatures(self) -> Floats:
        """Return T C'C / 4 of each part, (c, n, n)."""
        C = _bends(self.centres.shape[1])
        return np.array([part.smoothness * C.T @ C for part in self.parts])

    def covariances(self) -> Floats:
        """Return the covariance of the shares under each part, (c, n, n)."""
        found = []
        for part in self.parts:
            A = multinomial(part.centre) / (part.worth + 1)
            if part.smoothness > 0:
                C = _bends(len(A))
                CA = C @ A
                A = A - CA.T @ np.linalg.solve(CA @ C.T + np.eye(len(C)) / part.smoothness, CA)
            found.append(A)
        return np.array(found)


def _bends(n: int) -> Floats:
    """Return C / 2, half the second differences over n classes."""
    return existing_differences(n) / 2


def check_prior(prior: Any, strength: Any, n_classes: int) -> None:
    """Refuse a prior that is neither a name nor a distribution over n classes, and a strength without use for it."""
    if isinstance(prior, str) or prior is None:
        if prior not in NAMES:
            raise ValueError(f"prior must be one of {', '.join(map(repr, NAMES))}, or a distribution, got {prior!r}.")
    elif check_distributions("prior", prior, min_classes=2).shape != (n_classes,):
        raise ValueError(f"prior must be a distribution over the {n_classes} classes, got {prior!r}.")
    if strength is not None:
        check_real("strength", strength, low=0, open_low=True)
        if isinstance(prior, str) and prior in ("uniform", "smooth"):
            raise ValueError(f"strength must be None with prior={prior!r}, which has its own.")
