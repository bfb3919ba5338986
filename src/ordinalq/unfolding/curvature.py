"""Changes of the local slope of a spectrum, penalized by default.

On an axis x (ln E, or E itself), the contents of two neighbouring bins define a slope s: that of the exponential
exp(s x), integrated over both bins, that has the ratio of their contents. Over ln E these exponentials are the power
laws. The residuals are the differences of neighbouring slopes. They are zero for every power law (``axis="log"``) or
exponential (``axis="linear"``), integrated over bins of any width. For bins of equal width they are second differences
of the logarithm of the contents.

Slopes are differences of log densities divided by the distance of the effective bin centres, which follow the slope.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from ordinalq._utils.validation import Floats, Index

# Below this argument, series replace functions that lose digits.
SMALL = 1e-2
# Newton steps for the slopes.
MOST_STEPS = 50
# Change of the log ratio of two bins at which the slopes have converged.
CLOSE = 1e-12


class Chain(NamedTuple):
    """Neighbouring bins along an axis: positions (k,) and edges (k + 1,) in x."""

    bins: Index
    edges: Floats


class Curvature:
    """Residuals of spectra: differences of neighbouring slopes.

    A chain has length one.

    Parameters
    ----------
    n_bins : int
        Number of bins n.
    chains : sequence of Chain
        Chains with at least three bins are penalized. A bin may be in several chains, as in a grid, or in none.
    reference : ndarray (n,), default=None
        Positive spectrum. With it the slopes are those of the ratio to the reference.

    Attributes
    ----------
    centres : ndarray (m,)
        Position of each residual along its chain, from 0 to 1.
    chain_of : ndarray (m,)
        Number of the chain of each residual.
    """

    def __init__(self, n_bins: int, chains: Sequence[Chain], reference: Floats | None = None) -> None:
        self.n_bins = n_bins
        self._offset = np.zeros(n_bins) if reference is None else np.log(reference)
        chains = [chain for chain in chains if len(chain.bins) >= 3]
        pairs: list[Any] = []
        middles, widths, distances, centres, numbers = [], [], [], [], []
        rows: list[tuple[int, int]] = []
        for number, (bins, edges) in enumerate(chains):
            x = (edges - edges[0]) / (edges[-1] - edges[0])
            m, h = (x[1:] + x[:-1]) / 2, np.diff(x)
            if reference is not None:
                h = np.full_like(h, 1e-9)  # the ratio to the reference has no width to integrate over
            first = sum(len(part) for part in pairs)
            pairs.append(np.column_stack([bins[:-1], bins[1:]]))
            middles.append(np.diff(m))
            widths.append(np.column_stack([h[:-1], h[1:]]))
            between = (m[1:] + m[:-1]) / 2
            distances.append(np.diff(between))
            centres.append(m[1:-1])
            numbers.append(np.full(len(m) - 2, number))
            rows += [(first + i, first + i + 1) for i in range(len(m) - 2)]
        self._pairs = np.vstack(pairs) if pairs else np.zeros((0, 2), dtype=np.intp)
        self._distance = np.concatenate(middles) if middles else np.zeros(0)
        self._half = np.vstack(widths) / 2 if widths else np.zeros((0, 2))
        self._rows = np.array(rows, dtype=np.intp).reshape(-1, 2)
        self._root_distance = np.sqrt(np.concatenate(distances)) if distances else np.zeros(0)
        self.centres = np.concatenate(centres) if centres else np.zeros(0)
        self.chain_of = np.concatenate(numbers) if numbers else np.zeros(0, dtype=np.intp)
        log_width = np.diff(np.log(self._half), axis=1)[:, 0]
        self._log_width = np.zeros(len(log_width)) if reference is not None else log_width
        self._is_exact = bool(np.allclose(self._half[:, 0], self._half[:, 1], rtol=1e-12))
        # With bins of equal width slopes are linear in the logarithms, and so are the residuals.
        self._linear = self._chain_rule(1 / self._distance[None])[0] if self._is_exact else None

    def __len__(self) -> int:
        return len(self._rows)

    @property
    def n_free(self) -> int:
        """The number of directions that are not penalized."""
        flat = np.zeros((1, self.n_bins))
        return self.n_bins - int(np.linalg.matrix_rank(self.residuals(flat)[1][0])) if len(self) else self.n_bins

    def residuals(self, X: Floats) -> tuple[Floats, Floats]:
        """Return residuals (B, m) and derivatives (B, m, n) at log contents X (B, n)."""
        U = X - self._offset
        U = U[:, self._pairs[:, 1]] - U[:, self._pairs[:, 0]] - self._log_width
        if self._linear is not None:
            slopes = U / self._distance
            derivatives = np.broadcast_to(self._linear, (len(X), *self._linear.shape))
        else:
            slopes, rise = self._slopes(U)
            derivatives = self._chain_rule(rise)
        return (slopes[:, self._rows[:, 1]] - slopes[:, self._rows[:, 0]]) / self._root_distance, derivatives

    def _slopes(self, U: Floats) -> tuple[Floats, Floats]:
        """Return slopes for log density ratios U (B, pairs), and ds/dU."""
        low, high = self._half[:, 0], self._half[:, 1]
        s = U / self._distance
        for _ in range(MOST_STEPS):
            off = s * self._distance + log_sinhc(s * high) - log_sinhc(s * low) - U
            # Distance of the effective centres of the two bins.
            distance = self._distance + high * langevin(s * high) - low * langevin(s * low)
            s = s - off / distance
            if np.abs(off).max(initial=0.0) < CLOSE * (1 + np.abs(U).max(initial=0.0)):
                break
        distance = self._distance + high * langevin(s * high) - low * langevin(s * low)
        return s, 1 / distance

    def _chain_rule(self, rise: Floats) -> Floats:
        """Return the derivatives (B, m, n) of the residuals from those of slopes."""
        B, m = len(rise), np.arange(len(self._rows))
        D = np.zeros((B, len(self._rows), self.n_bins))
        for sign, side in ((-1.0, 0), (1.0, 1)):
            pair = self._rows[:, side]
            step = sign * rise[:, pair] / self._root_distance
            D[:, m, self._pairs[pair, 0]] -= step
            D[:, m, self._pairs[pair, 1]] += step
        return D


def log_sinhc(y: Floats) -> Floats:
    """Return ln(sinh(y) / y), the log mean of exp over a half-width y."""
    a = np.abs(y)
    large = np.maximum(a, SMALL)
    return np.where(a < SMALL, a * a / 6 - a**4 / 180, large + np.log1p(-np.exp(-2 * large)) - np.log(2 * large))


def langevin(y: Floats) -> Floats:
    """coth(y) - 1/y, the derivative of :func:`log_sinhc`."""
    large = np.where(np.abs(y) < SMALL, 1.0, y)
    return np.where(np.abs(y) < SMALL, y / 3 - y**3 / 45, 1 / np.tanh(large) - 1 / large)


def chains_of(
    shape: tuple[int, ...],
    edges: Sequence[Floats] | None = None,
    *,
    blocks: Sequence[int] | None = None,
    axis: str | None = None,
) -> list[Chain]:
    """Return the chains of a histogram: its blocks, or rows along each axis.

    Parameters
    ----------
    shape : tuple of int
        Numbers of bins along the axes.
    edges : sequence of ndarray, default=None
        Edges along each axis, or of each block. Bins with an infinite edge, those of underflow and overflow, are in no
        chain. None means bins of equal width in x.
    blocks : sequence of int, default=None
        Numbers of bins of spectra that are stacked along one axis.
    axis : {"log", "linear"}, default=None
        Scale of the edges. None means "log" if they are positive.
    """
    positions = np.arange(int(np.prod(shape))).reshape(shape)
    if len(shape) == 1:
        parts = np.split(positions, np.cumsum(blocks)[:-1]) if blocks is not None else [positions]
        rows = [(part, None if edges is None else edges[k]) for k, part in enumerate(parts)]
    else:
        rows = [
            (row, None if edges is None else edges[k])
            for k in range(len(shape))
            for row in np.moveaxis(positions, k, -1).reshape(-1, shape[k])
        ]
    return [_chain(bins, along, axis) for bins, along in rows]


def _chain(bins: Index, edges: Floats | None, axis: str | None) -> Chain:
    if edges is None:
        return Chain(bins, np.arange(len(bins) + 1.0))
    inner = np.flatnonzero(np.isfinite(edges[:-1]) & np.isfinite(edges[1:]))
    x = edges[inner[0] : inner[-1] + 2] if len(inner) else np.zeros(1)
    if axis == "log" and (x <= 0).any():
        raise ValueError(f"edges must be > 0 with axis='log', got {x.min():g}. Use axis='linear'.")
    is_log = axis == "log" or (axis is None and bool((x > 0).all()))
    return Chain(bins[inner], np.log(x) if is_log else x)
