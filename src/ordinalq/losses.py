"""Losses: distances between the mean embedding q of a sample and M p.

What to use when: `LeastSquares` for classifier votes and posteriors (ACC, PACC), `Poisson` for counts in physics (RUN),
`Hellinger` for histograms (HDx, HDy), `Energy` for mean distances (EDy), `MatchDistance` and `CumulativeSquares` for
histograms over ordered bins (PDF, o-PDF). A loss does not depend on the solver.

Shapes: P (B, n), and `Data` with Q (B, d), M (d, n), sizes (B,) and perhaps a background o (B, d), which is added to
M p. Letters of the einsums: b sample, k histogram, i j classes.
"""

from abc import ABC, abstractmethod
from dataclasses import replace

import numpy as np
from scipy.special import xlogy
from sklearn.base import BaseEstimator

from ordinalq._utils.validation import Floats, Mask, check_choice, check_real
from ordinalq.simplex import Data, Derivatives, reference_column, row_product, weighted_gram

# A mean distance above MISFIT times that of a sample that fits, limited to these bounds, gets more than one start.
MISFIT, LEAST_MISFIT, LARGEST_MISFIT = 3.0, 0.05, 0.1
# A histogram is at its kink if its distance is at most this many times what rounds the kink off.
AT_KINK = 100
# Columns of M that differ by less than this part of their largest entry are equal: p could not be judged by that.
LAST_DIGIT = 1e-16


class Loss(BaseEstimator, ABC):
    """A distance between q and M p, for B samples at once.

    Attributes
    ----------
    convex : bool
        Whether it is so in p.
    needs_sizes : bool
        Whether it depends on the numbers of items.
    needs_distances : bool
        Whether q and M are mean distances instead of mean embeddings.
    nonnegative : bool
        Whether it is known never to be below zero: a value of zero is then the least.
    takes_any_q : bool
        Whether q may have negative entries or another sum than one, as a q drawn at random around the observed one has.
    has_kinks : bool
        Whether it is a sum of absolute residuals, which only goes with a quadratic regularizer.
    """

    convex: bool = True
    needs_sizes: bool = False
    needs_distances: bool = False
    nonnegative: bool = False
    takes_any_q: bool = False
    has_kinks: bool = False

    def check(self) -> None:
        """Raise ValueError if a parameter is out of range."""

    def prepare(self, data: Data) -> Data:
        """Return Q, M and the background as the loss compares them.

        Rows of M that are zero for all classes (values of f that no training item has) say nothing about p: their mass
        in q and in the background is dropped without compensation.

        Parameters
        ----------
        data : Data
            Problems of B samples: q (B, d), M (d, n), background and sizes.

        Returns
        -------
        Data
            Prepared problems.
        """
        empty = ~data.M.any(axis=1)
        if not empty.any():
            return data
        background = None if data.background is None else np.where(empty, 0.0, data.background)
        return replace(data, Q=np.where(empty, 0.0, data.Q), background=background)

    @abstractmethod
    def derivatives(self, P: Floats, data: Data) -> Derivatives:
        """Return value (B,), gradient (B, n) and Hessian (B, n, n) in p.

        M p + o, which q is compared with, is ``data.expected(P)``; ``data.columns`` take the place of M in gradient and
        Hessian, so that a solver may ask for more accurate ones that hold along the simplex only.

        Parameters
        ----------
        P : ndarray (B, n)
            Distributions, one per sample.
        data : Data
            Problems of B samples: q (B, d), M (d, n), background and sizes.

        Returns
        -------
        Derivatives
            Value (B,), gradient (B, n) and Hessian (B, n, n).
        """

    def value(self, P: Floats, data: Data) -> Floats:
        """Return the value (B,) alone; infinite outside the domain of the loss.

        Parameters
        ----------
        P : ndarray (B, n)
            Distributions, one per sample.
        data : Data
            Problems of B samples: q (B, d), M (d, n), background and sizes.

        Returns
        -------
        ndarray (B,)
            Values.
        """
        return self.derivatives(P, data).value

    def gradient(self, P: Floats, data: Data) -> Floats:
        """Return the gradient (B, n) alone.

        Parameters
        ----------
        P : ndarray (B, n)
            Distributions, one per sample.
        data : Data
            Problems of B samples: q (B, d), M (d, n), background and sizes.

        Returns
        -------
        ndarray (B, n)
            Gradients.
        """
        return self.derivatives(P, data).gradient

    def majorizer(self, P: Floats, data: Data) -> Floats | None:
        """Return Hessians (B, n, n) of convex upper bounds that touch at P, or None.

        Parameters
        ----------
        P : ndarray (B, n)
            Distributions, one per sample.
        data : Data
            Problems of B samples: q (B, d), M (d, n), background and sizes.

        Returns
        -------
        ndarray (B, n, n) or None
            Hessians of the upper bounds.
        """
        return None

    def scale(self, sizes: Floats) -> Floats:
        """Return the unit of gradients, (B,): one, or N for a likelihood.

        Parameters
        ----------
        sizes : ndarray (B,)
            Number of items of each sample.

        Returns
        -------
        ndarray (B,)
            Unit of the gradients of each sample.
        """
        return np.ones(len(sizes))

    def quadratic(self, data: Data) -> tuple[Floats, Floats] | None:
        """Return A (n, n), b (B, n) if the loss is p'Ap - 2 b'p, else None.

        Parameters
        ----------
        data : Data
            Problems of B samples: q (B, d), M (d, n), background and sizes.

        Returns
        -------
        tuple of ndarray (n, n) and ndarray (B, n), or None
            A and b.
        """
        return None

    def absolute(self, data: Data) -> tuple[Floats, Floats] | None:
        """Return D (d, n) and C (B, d) if the loss is ||c - Dp||_1, else None.

        Parameters
        ----------
        data : Data
            Problems of B samples: q (B, d), M (d, n), background and sizes.

        Returns
        -------
        tuple of ndarray (d, n) and ndarray (B, d), or None
            D and C.
        """
        return None

    def stages(self) -> list["Loss"]:
        """Return easier losses, easiest first, whose optima are good starts."""
        return []

    def counted(self, data: Data) -> Mask | None:
        """Return which rows (B, d) of M p are the same at all optima.

        None if that is not known.

        Parameters
        ----------
        data : Data
            Problems of B samples: q (B, d), M (d, n), background and sizes.

        Returns
        -------
        ndarray of bool (B, d) or None
            Rows that are the same; None for all.
        """
        return None

    def at_kink(self, P: Floats, data: Data) -> Mask:
        """Return which samples (B,) are at a kink that may hide a lower minimum.

        Parameters
        ----------
        P : ndarray (B, n)
            Distributions, one per sample.
        data : Data
            Problems of B samples: q (B, d), M (d, n), background and sizes.

        Returns
        -------
        ndarray of bool (B,)
            Samples at a kink; none if the loss is smooth.
        """
        return np.zeros(len(P), dtype=bool)

    def ambiguous(self, P: Floats, data: Data) -> Mask:
        """Return which samples (B,) may have a lower minimum than the one at P (B, n).

        Parameters
        ----------
        P : ndarray (B, n)
            Distributions, one per sample.
        data : Data
            Problems of B samples: q (B, d), M (d, n), background and sizes.

        Returns
        -------
        ndarray of bool (B,)
            Samples that may have several minima.
        """
        return np.zeros(len(data), dtype=bool)


class LeastSquares(Loss):
    """||q - M p||^2; gradient 2 M'(M p - q), Hessian 2 M'M.

    Parameters
    ----------
    weights : {None, "poisson"}, default=None
        "poisson" weighs row i by 1 / w_i^2, w_i ~ sqrt(1 + max(1, N - d) q_i) with mean 1: the residuals of counts
        relative to their standard deviations, as in SVD unfolding.
    """

    nonnegative = True

    def __init__(self, weights: str | None = None) -> None:
        self.weights = weights

    @property
    def needs_sizes(self) -> bool:  # type: ignore[override]
        """Whether rows are weighted by their Poisson errors."""
        return self.weights is not None

    @property
    def takes_any_q(self) -> bool:  # type: ignore[override]
        """Whether rows have equal weight."""
        return self.weights is None

    def check(self) -> None:
        """Raise ValueError if a parameter is out of range."""
        if self.weights is not None:
            check_choice("weights", self.weights, ("poisson",))

    def prepare(self, data: Data) -> Data:
        """Return the data without the rows that no training item has."""
        return data.without_empty_rows()

    def derivatives(self, P: Floats, data: Data) -> Derivatives:
        """Return value, gradient and Hessian."""
        Q, M = data.Q, data.columns
        R = data.expected(P) - Q
        if self.weights is None:
            H = np.broadcast_to(2 * M.T @ M, (len(P), M.shape[1], M.shape[1]))
            return Derivatives((R * R).sum(axis=1), 2 * row_product(R, M), H)
        deviation = np.sqrt(1 + np.maximum(1, data.sizes - Q.shape[1])[:, None] * Q)
        W = (deviation / deviation.mean(axis=1, keepdims=True)) ** -2
        return Derivatives((W * R * R).sum(axis=1), 2 * row_product(W * R, M), 2 * weighted_gram(W, M))

    def counted(self, data: Data) -> Mask | None:
        """All rows are: squares are strictly convex."""
        return np.ones(data.Q.shape, dtype=bool)

    def quadratic(self, data: Data) -> tuple[Floats, Floats] | None:
        """Return D'D and D'(q - o - m), D = M - m 1' with one column m of M.

        On the simplex, M p = m + D p.

        Where columns are nearly equal, their differences would be lost in M'M.
        """
        if self.weights is not None:
            return None
        m = reference_column(data.M)
        D = data.M - m[:, None]
        D[:, np.abs(D).max(axis=0, initial=0.0) < LAST_DIGIT * np.abs(data.M).max(axis=0, initial=0.0)] = 0
        return D.T @ D, row_product(data.signal - m, D)


class Poisson(Loss):
    """Negative log-likelihood of counts N q [eq:run-likelihood].

    N sum_i [v_i - q_i - q_i ln(v_i / q_i)] with v = M p.

    It is relative to the saturated likelihood v = q: the same minimiser, but the value goes to 0, so that differences
    between steps are not lost in rounding (values are around 1e4 otherwise). Gradient N M'(1 - q/v), Hessian
    N M' diag(q/v^2) M.
    """

    needs_sizes = True

    def derivatives(self, P: Floats, data: Data) -> Derivatives:
        """Return value, gradient and Hessian."""
        V = data.expected(P)
        # Where p cannot explain an observation the value is infinite, and the derivatives are merely very large.
        ratio = data.Q / np.maximum(V, 1e-150)
        curvature = ratio / np.maximum(V, 1e-150)
        N = data.sizes[:, None]
        H = weighted_gram(N * curvature, data.columns)
        return Derivatives(self._value(V, data), N * row_product(1 - ratio, data.columns), H)

    def value(self, P: Floats, data: Data) -> Floats:
        """Return the value alone; infinite where some q_i > 0 has v_i = 0."""
        return self._value(data.expected(P), data)

    @staticmethod
    def _value(V: Floats, data: Data) -> Floats:
        Q = data.Q
        with np.errstate(divide="ignore", invalid="ignore"):
            terms = V - Q - xlogy(Q, np.divide(V, Q, out=np.ones_like(V), where=Q > 0))
        return np.asarray(data.sizes * terms.sum(axis=1))

    def counted(self, data: Data) -> Mask | None:
        """Rows with items are: -q ln v is strictly convex, v alone linear."""
        return data.Q > 0

    def scale(self, sizes: Floats) -> Floats:
        """Return N: the likelihood counts per item."""
        return sizes

    def stages(self) -> list[Loss]:
        """Return least squares, whose exact solution is a good start."""
        return [LeastSquares()]


class Hellinger(Loss):
    """Mean Hellinger distance of histograms [eq:hdx-loss] [eq:hellinger-distance].

    (1/d) sum_k h_k with h_k = ||sqrt(q_k) - sqrt(M_k p)|| over d histograms.

    With v = M p and a_k = M_k'(1 - sqrt(q_k / v_k)): gradient (1/d) sum_k a_k / (2 h_k), Hessian
    (1/d) sum_k [M_k' diag(sqrt(q_k) v_k^(-3/2) / 2) M_k / (2 h_k) - a_k a_k' / (4 h_k^3)]. It is not convex, and has a
    kink where a histogram fits exactly; h_k is computed as sqrt(h_k^2 + smoothing^2).

    Columns of M are rescaled to the mass s = sum(q) / d that q has kept after :meth:`prepare`; since
    HD(q, s M p) = sqrt(s) HD(q / s, M p), that is done by scaling q. With a background o, M p + o is divided by its
    sum 1 + sum(o) instead, and so are the derivatives.

    Parameters
    ----------
    smoothing : float, default=1e-8
        Rounds off the kink; at most this much is added to the loss.
    squared : bool, default=False
        Sum h_k^2 instead: convex and smooth, the first stage of the solution.
    """

    def __init__(self, smoothing: float = 1e-8, *, squared: bool = False) -> None:
        self.smoothing = smoothing
        self.squared = squared

    @property
    def convex(self) -> bool:  # type: ignore[override]
        """Whether the squares are summed."""
        return self.squared

    def check(self) -> None:
        """Raise ValueError if a parameter is out of range."""
        check_real("smoothing", self.smoothing, low=0, open_low=True)

    def derivatives(self, P: Floats, data: Data) -> Derivatives:
        """Return value, gradient and Hessian."""
        M, n_blocks, (B, n) = data.columns, data.n_blocks, P.shape
        mass, Q, V, h, unit = self._distances(P, data)
        root = np.sqrt(np.divide(Q, V, out=np.zeros_like(V), where=Q > 0))
        curvature = np.divide(root, 2 * V, out=np.zeros_like(V), where=Q > 0)
        value = (h * h if self.squared else h).sum(axis=1)
        if self.squared:
            G, H = row_product(1 - root, M), weighted_gram(curvature, M)
        else:
            weight = np.repeat(1 / (2 * h), V.shape[1] // n_blocks, axis=1)
            # a (b, k, i): gradients of squared distances; along the simplex only differences count, tiny next to a kink
            a = np.matmul((1 - root).reshape(B, n_blocks, 1, -1), M.reshape(n_blocks, -1, n))[:, :, 0]
            if data.directions is not None:
                a = a - (P[:, None, :] * a).sum(axis=2, keepdims=True)
            a_scaled = a / (2 * h**1.5)[:, :, None]
            G = np.einsum("bk,bki->bi", 1 / (2 * h), a)
            H = weighted_gram(curvature * weight, M) - np.matmul(a_scaled.transpose(0, 2, 1), a_scaled)
        factor = np.sqrt(mass) / n_blocks
        value, G, H = factor * value, factor[:, None] * G, factor[:, None, None] * H
        return Derivatives(value, G, H) if unit is None else Derivatives(value, G / unit, H / (unit * unit)[:, :, None])

    def majorizer(self, P: Floats, data: Data) -> Floats | None:
        """Return the first part of the Hessian, an upper bound.

        h = sqrt(h^2) lies below its tangent in h^2, which is convex in p.
        """
        mass, Q, V, h, unit = self._distances(P, data)
        root = np.sqrt(np.divide(Q, V, out=np.zeros_like(V), where=Q > 0))
        curvature = np.divide(root, 2 * V, out=np.zeros_like(V), where=Q > 0)
        weight = np.repeat(1 / (2 * h), V.shape[1] // data.n_blocks, axis=1)
        above = (np.sqrt(mass) / data.n_blocks)[:, None, None] * weighted_gram(curvature * weight, data.columns)
        return above if unit is None else above / (unit * unit)[:, :, None]

    def value(self, P: Floats, data: Data) -> Floats:
        """Return the value; it is infinite if some q_i > 0 has v_i = 0."""
        mass, Q, V, h, _ = self._distances(P, data)
        value = (h * h if self.squared else h).sum(axis=1) * np.sqrt(mass) / data.n_blocks
        return np.where(((V <= 0) & (Q > 0)).any(axis=1), np.inf, value)

    def _distances(self, P: Floats, data: Data) -> tuple[Floats, Floats, Floats, Floats, Floats | None]:
        """Return s (B,), q / s (B, d), v (B, d), smoothed h (B, k), and the sum."""
        mass = data.Q.sum(axis=1) / data.n_blocks
        mass = np.where(mass > 0, mass, 1.0)
        Q, V, unit = data.Q / mass[:, None], data.expected(P), None
        if data.background is not None:
            unit = 1 + data.background.sum(axis=1, keepdims=True)
            V = V / unit
        R = np.sqrt(Q) - np.sqrt(V)
        rounded = 0.0 if self.squared else self.smoothing**2
        h = np.sqrt((R * R).reshape(len(P), data.n_blocks, -1).sum(axis=2) + rounded)
        return mass, Q, V, h, unit

    def counted(self, data: Data) -> Mask | None:
        """Rows with items are: h^2 is strictly convex in them, and linear in the others."""
        return data.Q > 0

    def ambiguous(self, P: Floats, data: Data) -> Mask:
        """Return which samples may have several minima.

        These are samples with a misfit, and those at the kink of a histogram of two bins. It fits on a hyperplane, as
        in a regression of absolute residuals, so that each histogram has a kink, and another can be lower. With more
        bins that is rare.
        """
        if self.squared:
            return np.zeros(len(P), dtype=bool)
        mean, n_bins = self._distances(P, data)[3].mean(axis=1), len(data.M) / data.n_blocks
        is_kink = (n_bins == 2) & self.at_kink(P, data)
        # In a sample of N items that fits, h^2 of b bins has the expectation (b - 1) / (4 N).
        misfit = MISFIT * np.sqrt((n_bins - 1) / (4 * np.maximum(data.sizes, 1)))
        return np.asarray(is_kink | (mean > np.clip(misfit, LEAST_MISFIT, LARGEST_MISFIT)))

    def at_kink(self, P: Floats, data: Data) -> Mask:
        """Return which samples fit one histogram exactly, but others badly.

        A histogram that also fits the uniform p does not count.
        """
        if self.squared:
            return np.zeros(len(P), dtype=bool)
        h, uniform = (self._distances(X, data)[3] for X in (P, np.full_like(P, 1 / P.shape[1])))
        kink = AT_KINK * self.smoothing
        return np.asarray(((h <= kink) & (uniform > kink)).any(axis=1) & (h.mean(axis=1) > LEAST_MISFIT))

    def stages(self) -> list[Loss]:
        """Return the convex squared version, then less and less rounded kinks."""
        kinks = [Hellinger(s) for s in (1e-2, 1e-4, 1e-6) if s > self.smoothing]
        return [] if self.squared else [Hellinger(squared=True), *kinks]


class Energy(Loss):
    """Energy distance 2 p.q - p'Mp, up to a constant [eq:EDy].

    q_i and M_ij are mean distances.

    Gradient 2 q - 2 M p, Hessian -2 M: convex along the simplex for distances of negative type.
    """

    needs_distances = True
    takes_any_q = True

    def prepare(self, data: Data) -> Data:
        """Return Q and the symmetric part of M: rounding leaves it slightly asymmetric."""
        return replace(data, M=(data.M + data.M.T) / 2)

    def derivatives(self, P: Floats, data: Data) -> Derivatives:
        """Return value, gradient and Hessian."""
        Q, M = data.Q, data.M
        MP = row_product(P, M)
        H = np.broadcast_to(-2 * M, (len(P), *M.shape))
        return Derivatives((P * (2 * Q - MP)).sum(axis=1), 2 * (Q - MP), H)

    def quadratic(self, data: Data) -> tuple[Floats, Floats]:
        """Return -M and -q, up to constants on the simplex."""
        m = data.M.mean(axis=1)
        return m[:, None] + m - m.mean() - data.M, m - data.Q


class CumulativeSquares(Loss):
    """||S(q - M p)||_2^2 with the cumulative sum S, the loss of o-PDF.

    The last row of S is left out.

    Parameters
    ----------
    drop_empty : bool, default=False
        Leave out the bins without training items before cumulating. The mass of a sample in them is then lost, and is
        missing in every cumulated bin above.
    """

    nonnegative = True
    takes_any_q = True

    def __init__(self, *, drop_empty: bool = False) -> None:
        self.drop_empty = drop_empty

    def prepare(self, data: Data) -> Data:
        """Return the cumulated data, without the last bin."""
        return (data.without_empty_rows() if self.drop_empty else data).cumulated()

    def derivatives(self, P: Floats, data: Data) -> Derivatives:
        """Return value, gradient and Hessian."""
        return LeastSquares().derivatives(P, data)

    def quadratic(self, data: Data) -> tuple[Floats, Floats] | None:
        """Return (SM)'SM and (SM)'S(q - o)."""
        return LeastSquares().quadratic(data)


class MatchDistance(Loss):
    """Match distance ||S(q - M p)||_1 of histograms, the loss of PDF [eq:PDF].

    Convex, with kinks; the derivatives are those of the linear piece that p lies on.
    """

    takes_any_q = True
    has_kinks = True

    def prepare(self, data: Data) -> Data:
        """Return the cumulated data, without the last bin."""
        return data.cumulated()

    def derivatives(self, P: Floats, data: Data) -> Derivatives:
        """Return value, a subgradient and a zero Hessian."""
        R = data.expected(P) - data.Q
        B, n = P.shape
        return Derivatives(np.abs(R).sum(axis=1), row_product(np.sign(R), data.M), np.zeros((B, n, n)))

    def absolute(self, data: Data) -> tuple[Floats, Floats]:
        """Return SM and S(q - o)."""
        return data.M, data.signal


SQUARES = (LeastSquares(), LeastSquares("poisson"), CumulativeSquares(), CumulativeSquares(drop_empty=True))
ALL_LOSSES = (*SQUARES, Poisson(), Hellinger(), Hellinger(squared=True), Energy(), MatchDistance())


# Losses given by their value alone: derivatives are finite differences.


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
    >>> class Fourth(oq.losses.NumericalLoss):
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
        """Return central differences of values (B, n), one-sided at p_i = 0."""
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
