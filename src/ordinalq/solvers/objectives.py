"""Objectives: functions of p for each of B samples, with their derivatives.

`LinearObjective` compares q with M p; `MixtureObjective` is the likelihood of the items' scores.
"""

from abc import ABC, abstractmethod
from collections.abc import Iterator
from copy import copy
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from ordinalq._utils.validation import Counts, Floats, Index, Mask
from ordinalq.losses import Loss
from ordinalq.regularizers import NoPenalty, Penalty, Regularizer
from ordinalq.samples.samples import Samples
from ordinalq.simplex import Data, Derivatives

# Samples of a linear objective that are treated in one pass: their Hessians stay in the cache.
PASS = 2048
# Numbers in the Hessians of a pass at most, 16 megabytes: many classes go in smaller passes.
HESSIANS = 2**21
# Numbers in the score ratios of a block of samples, half a megabyte, and of a pass of blocks.
BLOCK = 2**16
BLOCKS = 2**20
# Items per class that are looked at first for directions that no item sees, and when these see all of them.
SOME_ITEMS, ALL_SEEN = 8, 1e-10
# Floor of densities: an item that p cannot explain has a density of zero.
TINY = 1e-300


class Seen(NamedTuple):
    """Directions along which objectives change.

    Along d the objective is constant if d'Gd = 0 and sum d = 0.

    ``matrices`` (k, n, n) are the different G, ``which`` (B,) is the index of each sample's matrix.
    """

    matrices: Floats
    which: Index


class Objective(ABC):
    """B functions of p on the simplex.

    ``scale`` (B,) divides gradients in the optimality measure, so that likelihoods count per item. ``convex`` is
    true if the functions are convex, ``nonnegative`` if no value is below zero.
    """

    n_samples: int
    n_classes: int
    scale: Floats
    convex: bool
    nonnegative: bool = False

    @abstractmethod
    def derivatives(self, P: Floats, rows: Index) -> Derivatives:
        """Return value, gradient and Hessian of the samples `rows` (B',) at P (B', n)."""

    def value(self, P: Floats, rows: Index) -> Floats:
        """Return the values of the samples `rows` (B',) at P (B', n)."""
        return self.derivatives(P, rows).value

    def gradient(self, P: Floats, rows: Index) -> Floats:
        """Return the gradients of the samples `rows` (B',) at P (B', n)."""
        return self.derivatives(P, rows).gradient

    def majorizer(self, P: Floats, rows: Index) -> Floats | None:
        """Return Hessians (B', n, n) of convex upper bounds that touch at P, or None."""
        return None

    def quadratic(self) -> tuple[Floats, Floats] | None:
        """Return A (n, n), b (B, n) if the objective is p'Ap - 2 b'p, else None."""
        return None

    def along_simplex(self) -> "Objective":
        """Return an objective with more accurate derivatives along the simplex."""
        return self

    def split(self) -> tuple["Objective", Penalty] | None:
        """Return the objective without its regularizer, and the penalty parts."""
        return None

    def absolute(self) -> tuple[Floats, Floats, Floats, Floats] | None:
        """Return D, C, K, k of a sum of absolute residuals, else None.

        The objective is ||c - Dp||_1 + p'Kp/2 - k'p with D (d, n), C (B, d), K (n, n), k (n,).
        """
        return None

    def stages(self) -> list["Objective"]:
        """Return easier objectives, easiest first, whose optima are good starts."""
        return []

    def ambiguous(self, P: Floats) -> Mask:
        """Return which samples (B,) may have better minima than those at P (B, n)."""
        return np.zeros(self.n_samples, dtype=bool)

    def at_kink(self, P: Floats) -> Mask:
        """Return which samples (B,) are at a kink at P (B, n)."""
        return np.zeros(self.n_samples, dtype=bool)

    def emphases(self) -> list["Objective"]:
        """Return easier objectives whose optima are other starts; usually none."""
        return []

    def seen(self, rows: Index) -> Seen | None:
        """Return directions of change for `rows` (B',); None if all or unknown."""
        return None

    def take(self, rows: Index) -> "Objective":
        """Return the objectives of some samples, with repetitions."""
        raise TypeError(f"{self} cannot start several times from each sample, as an ambiguous objective must.")

    @abstractmethod
    def passes(self, chosen: Mask | None = None) -> Iterator[tuple[Index, "Objective"]]:
        """Yield rows (b,) and their objective, in chunks that fit the cache."""


class LinearObjective(Objective):
    """Loss between q and M p plus a regularizer [eq:system-of-linear-equations].

    The data are kept as the loss compares them. The regularizer counts `strengths` (B,) times for each sample; None
    stands for once.
    """

    def __init__(self, loss: Loss, regularizer: Regularizer, data: Data, strengths: Floats | None = None) -> None:
        self.loss, self.regularizer, self.strengths = loss, regularizer, strengths
        self.data = loss.prepare(replace(data, sizes=np.asarray(data.sizes, dtype=np.float64)))
        self.n_samples, self.n_classes = len(data), data.n_classes
        self.scale = loss.scale(self.data.sizes)
        self.convex = loss.convex and regularizer.convex
        self.nonnegative = loss.nonnegative and (
            type(regularizer) is NoPenalty or regularizer.penalty(data.n_classes) is not None
        )

    def _penalty(self, P: Floats, rows: Index) -> Derivatives:
        """Return the regularizer of the samples `rows`, as often as it counts."""
        penalty = self.regularizer.derivatives(P, self.data.sizes[rows])
        if self.strengths is None:
            return penalty
        times = self.strengths[rows]
        return Derivatives(
            times * penalty.value, times[:, None] * penalty.gradient, times[:, None, None] * penalty.hessian
        )

    def __repr__(self) -> str:
        return f"{self.loss} + {self.regularizer}"

    def derivatives(self, P: Floats, rows: Index) -> Derivatives:
        """Return value, gradient and Hessian of loss plus regularizer."""
        fit = self.loss.derivatives(P, self.data.take(rows))
        if type(self.regularizer) is NoPenalty:
            return fit
        return Derivatives(*(a + b for a, b in zip(fit, self._penalty(P, rows), strict=True)))

    def gradient(self, P: Floats, rows: Index) -> Floats:
        """Return the gradient of loss plus regularizer."""
        gradient = self.loss.gradient(P, self.data.take(rows))
        return gradient if type(self.regularizer) is NoPenalty else gradient + self._penalty(P, rows).gradient

    def along_simplex(self) -> "LinearObjective":
        """Return an objective with more accurate derivatives along the simplex."""
        part = copy(self)
        part.data = self.data.along_simplex()
        return part

    def value(self, P: Floats, rows: Index) -> Floats:
        """Return loss plus regularizer."""
        penalty = self.regularizer.value(P, self.data.sizes[rows])
        return self.loss.value(P, self.data.take(rows)) + (
            penalty if self.strengths is None else self.strengths[rows] * penalty
        )

    def majorizer(self, P: Floats, rows: Index) -> Floats | None:
        """Return the loss's majorizer plus the Hessian of a convex regularizer."""
        above = self.loss.majorizer(P, self.data.take(rows))
        if above is None or not self.regularizer.convex:
            return None
        return above + self._penalty(P, rows).hessian

    def quadratic(self) -> tuple[Floats, Floats] | None:
        """Return A and b where loss and regularizer are quadratic forms, else None."""
        form = self.loss.quadratic(self.data)
        penalty = self.regularizer.quadratic(self.n_classes)
        if form is None or penalty is None or self.strengths is not None:
            return None
        return form[0] + penalty[0] / 2, form[1] + penalty[1] / 2

    def split(self) -> tuple[Objective, Penalty] | None:
        """Return the loss alone, and the parts of the regularizer."""
        penalty = self.regularizer.penalty(self.n_classes)
        if penalty is None or self.strengths is not None:
            return None
        bare = copy(self)
        bare.regularizer, bare.convex = NoPenalty(), self.loss.convex
        return bare, penalty

    def absolute(self) -> tuple[Floats, Floats, Floats, Floats] | None:
        """Return D, C, K, k of absolute residuals with a quadratic regularizer."""
        form = self.loss.absolute(self.data)
        penalty = self.regularizer.quadratic(self.n_classes)
        return None if form is None or penalty is None or self.strengths is not None else (*form, *penalty)

    def ambiguous(self, P: Floats) -> Mask:
        """Return for which samples the loss may have lower minima than those at P."""
        return self.loss.ambiguous(P, self.data)

    def at_kink(self, P: Floats) -> Mask:
        """Return which samples are at a kink of the loss at P."""
        return self.loss.at_kink(P, self.data)

    def emphases(self) -> list[Objective]:
        """Return the objective with one part of the data after the other counted more."""
        parts = self.data.emphases() if self.loss.stages() else []
        return [LinearObjective(self.loss, self.regularizer, part, self.strengths) for part in parts]

    def seen(self, rows: Index) -> Seen | None:
        """Return D'D of the counted rows D of M, plus that of the regularizer."""
        counted = self.loss.counted(self.data.take(rows))
        smoothed = self.regularizer.seen(self.n_classes)
        if counted is None or smoothed is None:
            return None
        D = self.data.along_simplex().columns

        def matrix(kept: Mask) -> Floats:
            # The other bins enter by their sum in each histogram only.
            rest = np.where(kept[:, None], 0.0, D).reshape(self.data.n_blocks, -1, self.n_classes).sum(axis=1)
            return _in_own_units(D[kept].T @ D[kept] + rest.T @ rest) + smoothed

        # Where the bins that all samples have see every direction, those of each sample do.
        if _all_seen(matrix(np.all(counted, axis=0))):
            return None
        # Samples with the same empty bins see the same.
        sets, which = np.unique(np.packbits(counted, axis=1), axis=0, return_inverse=True)
        matrices = [matrix(kept.astype(bool)) for kept in np.unpackbits(sets, axis=1, count=counted.shape[1])]
        return Seen(np.array(matrices), which.ravel())

    def passes(self, chosen: Mask | None = None) -> Iterator[tuple[Index, "LinearObjective"]]:
        """Yield chunks of the samples."""
        everyone = np.arange(self.n_samples) if chosen is None else np.flatnonzero(chosen)
        step = max(1, min(PASS, HESSIANS // self.n_classes**2))
        for start in range(0, len(everyone), step):
            rows = everyone[start : start + step]
            yield rows, self.take(rows)

    def take(self, rows: Index) -> "LinearObjective":
        """Return the objectives of some samples."""
        part = copy(self)
        part.data, part.scale = self.data.take(rows), self.scale[rows]
        part.strengths = None if self.strengths is None else self.strengths[rows]
        part.n_samples = len(rows)
        return part

    def stages(self) -> list[Objective]:
        """Return the objectives with the loss's easier versions."""
        return [LinearObjective(loss, self.regularizer, self.data, self.strengths) for loss in self.loss.stages()]


class Block(NamedTuple):
    """The score ratios of a few samples.

    ``rows`` (b,) are their positions among the requested ones, R (b, n, m) the ratios of their items (items last, so
    that products run along contiguous memory), W (b, m) the weights of the items: 1 / size, or their own over the sum,
    or 0 where a shorter sample is padded.
    """

    rows: Index
    R: Floats
    W: Floats

    def densities(self, P: Floats) -> Floats:
        """Return r(x).p of each item for P (b, n), shape (b, m)."""
        return np.asarray(np.matmul(P[:, None, :], self.R)[:, 0])

    def weighted_ratios(self, P: Floats) -> Floats:
        """Return sum_x w(x) r(x) / (r(x).p), (b, n)."""
        inverse = self.W / np.maximum(self.densities(P), TINY)
        return np.asarray(np.matmul(self.R, inverse[:, :, None])[:, :, 0])


class MixtureObjective(Objective):
    """Likelihood of p under prior probability shift, plus a regularizer.

    -(1/N) sum_x ln(r(x).p).

    r_i(x) = s_i(x) / p_L,i is the density of x in class i up to a factor that does not depend on i; the ratios (N, n)
    are those of the pool. Gradient -(1/N) sum_x r(x) / (r(x).p), Hessian (1/N) sum_x r(x) r(x)' / (r(x).p)^2.
    """

    def __init__(self, ratios: Floats, samples: Samples, regularizer: Regularizer | None = None) -> None:
        self.ratios = ratios
        self.samples = samples
        self.regularizer = NoPenalty() if regularizer is None else regularizer
        self.n_samples, self.n_classes = len(samples), ratios.shape[1]
        self.scale = np.ones(len(samples))
        self.convex = self.regularizer.convex
        self._held: Block | None = None  # the ratios of all samples, if they are kept for many evaluations

    def __repr__(self) -> str:
        return f"mixture likelihood + {self.regularizer}"

    def blocks(self, rows: Index, numbers: int = BLOCK) -> Iterator[Block]:
        """Yield the ratios of the samples `rows`, some of similar size at a time."""
        sizes = self.samples.sizes[rows]
        order = np.argsort(sizes, kind="stable")
        start = 0
        while start < len(order):
            step = max(1, numbers // (int(sizes[order[start]]) * self.n_classes))
            chosen = order[start : start + step]
            # Padding may double the work at most.
            chosen = chosen[sizes[chosen] <= 2 * sizes[chosen[0]]]
            start += len(chosen)
            yield self._block(chosen, rows[chosen], sizes[chosen])

    def _block(self, chosen: Index, rows: Index, sizes: Counts) -> Block:
        if self._held is not None:
            return Block(chosen, self._held.R[rows], self._held.W[rows])
        items, offsets = self.samples.items, self.samples.offsets[rows]
        ramp = np.arange(sizes.max())
        inside = ramp < sizes[:, None]
        places = np.where(inside, offsets[:, None] + ramp, offsets[:, None])
        R = self.ratios[items[places]].transpose(0, 2, 1).copy()
        if self.samples.weights is None:
            return Block(chosen, R, inside / sizes[:, None])
        W = self.samples.weights.values[places] * inside
        return Block(chosen, R, W / W.sum(axis=1, keepdims=True))

    def split(self) -> tuple[Objective, Penalty] | None:
        """Return the likelihood alone, and the parts of the regularizer."""
        penalty = self.regularizer.penalty(self.n_classes)
        if penalty is None:
            return None
        bare = copy(self)
        bare.regularizer, bare.convex = NoPenalty(), True
        return bare, penalty

    def passes(self, chosen: Mask | None = None) -> Iterator[tuple[Index, "MixtureObjective"]]:
        """Yield chunks of samples of similar size, with gathered ratios."""
        everyone = np.arange(self.n_samples) if chosen is None else np.flatnonzero(chosen)
        for block in self.blocks(everyone, BLOCKS):
            rows = everyone[block.rows]
            part = self.take(rows)
            part._held = block
            yield rows, part

    def take(self, rows: Index) -> "MixtureObjective":
        """Return the objectives of some samples."""
        return MixtureObjective(self.ratios, self.samples[rows], self.regularizer)

    def seen(self, rows: Index) -> Seen | None:
        """Return the mean of r r' over the items, plus what the regularizer sees."""
        smoothed = self.regularizer.seen(self.n_classes)
        if smoothed is None:
            return None
        matrices = np.empty((len(rows), self.n_classes, self.n_classes))
        everything = True
        for block in self.blocks(rows):
            # Where the first items see every direction, all of them do.
            for items in (slice(SOME_ITEMS * self.n_classes), slice(None)):
                R = block.R[:, :, items]
                G = np.matmul(R * block.W[:, None, items], R.transpose(0, 2, 1))
                matrices[block.rows] = _in_own_units(G) + smoothed
                if _all_seen(matrices[block.rows]):
                    break
            else:
                everything = False
        return None if everything else Seen(matrices, np.arange(len(rows)))

    def derivatives(self, P: Floats, rows: Index) -> Derivatives:
        """Return value, gradient and Hessian of likelihood plus regularizer."""
        B, n = P.shape
        value, gradient, hessian = np.empty(B), np.empty((B, n)), np.empty((B, n, n))
        for block in self.blocks(rows):
            V = block.densities(P[block.rows])
            # The root of the weights goes to both sides, so that the Hessian is one product.
            root = np.sqrt(block.W)
            scaled = block.R * (root / np.maximum(V, TINY))[:, None, :]
            value[block.rows] = negative_log_likelihood(V, block.W)
            gradient[block.rows] = -np.matmul(scaled, root[:, :, None])[:, :, 0]
            with np.errstate(over="ignore"):  # of items that p cannot explain: the value is infinite, too
                hessian[block.rows] = np.matmul(scaled, scaled.transpose(0, 2, 1))
        penalty = self.regularizer.derivatives(P, self.samples.sizes[rows].astype(np.float64))
        return Derivatives(value + penalty.value, gradient + penalty.gradient, hessian + penalty.hessian)

    def value(self, P: Floats, rows: Index) -> Floats:
        """Return likelihood plus regularizer; infinite where p cannot explain an item."""
        value = np.empty(len(P))
        for block in self.blocks(rows):
            value[block.rows] = negative_log_likelihood(block.densities(P[block.rows]), block.W)
        return value + self.regularizer.derivatives(P, self.samples.sizes[rows].astype(np.float64)).value


def _all_seen(G: Floats) -> bool:
    """Return whether all G (..., n, n) are regular along the simplex."""
    size = np.linalg.eigvalsh(G)
    return bool((size[..., 1] > ALL_SEEN * size[..., -1]).all())  # the first belongs to (1, ..., 1)


def _in_own_units(G: Floats) -> Floats:
    """Return G (..., n, n) along the simplex, divided by its largest entry."""
    G = G - G.mean(axis=-1, keepdims=True)
    G = G - G.mean(axis=-2, keepdims=True)
    size = np.abs(G).max(axis=(-2, -1), keepdims=True)
    return np.asarray(G / np.where(size > 0, size, 1.0))


def negative_log_likelihood(V: Floats, W: Floats) -> Floats:
    """Return -sum_x w(x) ln v(x), (b,), for densities V and weights W (b, m).

    It is infinite if v = 0 < w.
    """
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.asarray(-np.where(W > 0, W * np.log(V), 0.0).sum(axis=1))
