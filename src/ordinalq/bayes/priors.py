r"""What is known of the shares of a sample before it is seen: mixtures of Dirichlet distributions.

A part of the mixture has a centre m, is worth nu items, and may be smooth:

    ln prior(p) = sum_i k_i ln p_i - T/2 ||C p / 2||^2,    k = nu_N m,    C the second differences.

k is alpha of a Dirichlet distribution: its mean is the mode of the product of p_i^k_i. The shares of a sample of N
items vary more than those of the population it comes from, by the items themselves, as if nu_N items had been seen:

    Cov(p) = B (1 / (nu + 1) (1 - 1/N) + 1/N) = B / (nu_N + 1),    B = diag(m) - m m'.
"""

from typing import Any, NamedTuple

import numpy as np

from ordinalq.ordinal import difference_matrix
from ordinalq.validation import Floats, check_distributions, check_real

# By how much a smooth prior multiplies the precision of second differences; under the uniform one their half has the
# variance 3/2 / (n (n + 1)).
SMOOTH = 2.0
# Items that the training distribution is worth where it is expected.
STRENGTH = 1000.0
# Weights of "anything", "smooth" and "as in training" where nothing is known.
WEIGHTS = (0.6, 0.2, 0.2)
# Exponents below this leave the shares of a sample of one item, which has one class only, without any prior.
LEAST = 0.05
NAMES = ("any", "uniform", "smooth", "training")


class Part(NamedTuple):
    """A part of a prior: its centre (n,), the items nu that it is worth, its smoothness T and its weight."""

    centre: Floats
    worth: float
    smoothness: float = 0.0
    weight: float = 1.0


class Prior:
    """A mixture of distributions of the shares.

    Attributes
    ----------
    parts : list of Part
    """

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
        # Two classes have no second differences.
        smooth = uniform._replace(smoothness=SMOOTH * n * (n + 1) / 1.5 if n > 2 else 0.0)
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

    def exponents(self, sizes: Floats | None) -> Floats:
        """Return k of each part for samples of N items (B,), None for their populations: (B, c, n), or (1, c, n)."""
        k = self._worth(sizes)[:, :, None] * self.centres
        return np.asarray(np.maximum(k, LEAST))

    def curvatures(self) -> Floats:
        """Return T C'C / 4 of each part, (c, n, n)."""
        n = self.centres.shape[1]
        C = difference_matrix(n) / 2 if n > 2 else np.zeros((1, n))
        return np.array([part.smoothness * C.T @ C for part in self.parts])

    def covariances(self, sizes: Floats | None) -> Floats:
        """Return the covariance of the shares under each part, (B, c, n, n), or (1, c, n, n) of the populations."""
        n = self.centres.shape[1]
        m = self.centres
        B = m[:, :, None] * np.eye(n) - m[:, :, None] * m[:, None, :]
        A = B / (self._worth(sizes) + 1)[:, :, None, None]
        for c, part in enumerate(self.parts):
            if part.smoothness > 0:
                C = difference_matrix(n) / 2
                CA = C @ A[:, c]
                inner = CA @ C.T + np.eye(len(C)) / part.smoothness
                A[:, c] -= np.matmul(CA.transpose(0, 2, 1), np.linalg.solve(inner, CA))
        return A

    def _worth(self, sizes: Floats | None) -> Floats:
        """Return nu_N of each part, (B, c)."""
        nu = np.array([part.worth for part in self.parts])
        if sizes is None:
            return nu[None]
        N = np.asarray(sizes, dtype=np.float64)[:, None]
        return np.asarray(N * (nu + 1) / (nu + N) - 1)


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
