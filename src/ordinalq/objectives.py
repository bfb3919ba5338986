"""What a solver sees: a function of p for each of B samples, with its derivatives."""

from abc import ABC, abstractmethod
from typing import Any

import numpy as np
import numpy.typing as npt

from ordinalq.losses import Loss
from ordinalq.regularizers import Regularizer
from ordinalq.simplex import Derivatives
from ordinalq.validation import Floats

Rows = npt.NDArray[np.intp]


class Objective(ABC):
    """B functions of p on the simplex.

    ``scale`` (B,) divides gradients in the optimality measure, so that likelihoods count per item; ``convex`` says
    whether the functions are so.
    """

    n_samples: int
    n_classes: int
    scale: Floats
    convex: bool

    @abstractmethod
    def derivatives(self, P: Floats, rows: Rows) -> Derivatives:
        """Return value, gradient and Hessian of the samples `rows` (B',) at P (B', n)."""

    def value(self, P: Floats, rows: Rows) -> Floats:
        """Return the values of the samples `rows` (B',) at P (B', n)."""
        return self.derivatives(P, rows).value

    def quadratic(self) -> tuple[Floats, Floats] | None:
        """Return A (n, n) and b (B, n) if the objective is p'Ap - 2 b'p up to a constant, else None."""
        return None

    def absolute(self) -> tuple[Floats, Floats, Floats, Floats] | None:
        """Return D (d, n), C (B, d), K (n, n), k (n,) if the objective is ||c - Dp||_1 + p'Kp/2 - k'p, else None."""
        return None

    def stages(self) -> list["Objective"]:
        """Return easier objectives, easiest first, whose optima lead to this one's; usually none."""
        return []


class LinearObjective(Objective):
    """Loss between q and M p plus a regularizer [eq:system-of-linear-equations].

    Parameters
    ----------
    loss : Loss
    regularizer : Regularizer
    Q : ndarray (B, d)
        Mean embedding of each sample.
    M : ndarray (d, n)
        Mean embedding of each class.
    sizes : ndarray (B,)
        Number of items of each sample.
    n_blocks : int, default=1
        Number of histograms that the d rows consist of, all of the same length.
    """

    def __init__(
        self,
        loss: Loss,
        regularizer: Regularizer,
        Q: Floats,
        M: Floats,
        sizes: npt.NDArray[Any],
        n_blocks: int = 1,
    ) -> None:
        self.loss = loss
        self.regularizer = regularizer
        self.Q, self.M = loss.prepare(Q, M)
        self.sizes = np.asarray(sizes, dtype=np.float64)
        self.n_blocks = n_blocks
        self.n_samples, self.n_classes = len(Q), M.shape[1]
        self.scale = loss.scale(self.sizes)
        self.convex = loss.convex and regularizer.convex

    def __repr__(self) -> str:
        return f"{self.loss} + {self.regularizer}"

    def derivatives(self, P: Floats, rows: Rows) -> Derivatives:
        """Return value, gradient and Hessian of loss plus regularizer."""
        fit = self.loss.derivatives(P, self.Q[rows], self.M, self.sizes[rows], self.n_blocks)
        penalty = self.regularizer.derivatives(P, self.sizes[rows])
        return Derivatives(*(a + b for a, b in zip(fit, penalty, strict=True)))

    def value(self, P: Floats, rows: Rows) -> Floats:
        """Return loss plus regularizer."""
        fit = self.loss.value(P, self.Q[rows], self.M, self.sizes[rows], self.n_blocks)
        return fit + self.regularizer.derivatives(P, self.sizes[rows]).value

    def quadratic(self) -> tuple[Floats, Floats] | None:
        """Return A and b where loss and regularizer are quadratic forms, else None."""
        form = self.loss.quadratic(self.Q, self.M)
        penalty = self.regularizer.quadratic(self.n_classes)
        if form is None or penalty is None:
            return None
        return form[0] + penalty[0] / 2, form[1] + penalty[1] / 2

    def absolute(self) -> tuple[Floats, Floats, Floats, Floats] | None:
        """Return D, C, K, k where the loss is a sum of absolute residuals and the regularizer a quadratic form."""
        form = self.loss.absolute(self.Q, self.M)
        penalty = self.regularizer.quadratic(self.n_classes)
        return None if form is None or penalty is None else (*form, *penalty)

    def stages(self) -> list[Objective]:
        """Return the objectives with the loss's easier versions."""
        return [
            LinearObjective(loss, self.regularizer, self.Q, self.M, self.sizes, self.n_blocks)
            for loss in self.loss.stages()
        ]
