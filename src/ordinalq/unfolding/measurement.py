"""The measurement: observed counts, response, acceptance and background."""

import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np

from ordinalq._utils.validation import Floats, Mask, check_integer, check_numbers
from ordinalq.simplex import Data
from ordinalq.unfolding.histograms import (
    axis_edges,
    bin_contents,
    bin_variances,
    check_axes,
    flow_sides,
    is_histogram,
    warn_of_flow,
)
from ordinalq.unfolding.response import MOST_ITEMS, SMALLEST, read_background, read_response

# Sums of columns and of rows that differ from one by less than this are rounded ones.
WHOLE = 1e-6


@dataclass(frozen=True)
class Measurement:
    """Observed counts and their expectation lambda = M (a t) + b.

    t are the true numbers of events.

    Attributes
    ----------
    counts : ndarray (d,)
        Observed numbers of events g, or sums of weights.
    variances : ndarray (d,) or None
        Sums of squared weights; None for plain counts.
    M : ndarray (d, n)
        Response: column i is the distribution of the observed events of true bin i.
    acceptance : ndarray (n,)
        Observed events per true event of bin i; above one only if fakes are added.
    background : ndarray (d,)
        Expected events b_j that belong to no true bin.
    shape : tuple of int
        Shape of the true bins, n in all.
    observed_shape : tuple of int
        Shape of the observed bins, d in all.
    edges : tuple of ndarray, or None
        Edges of the true bins along each axis, or of each block. Flow bins have infinite edges.
    blocks : tuple of int, or None
        Numbers of bins of spectra that are stacked along one axis.
    covariance : ndarray (d, d), or None
        Covariance of the counts, which are then normally distributed and may be negative.
    has_losses : bool
        Whether the columns of the response that was given sum to the acceptance.
    fakes : ndarray (d,), or None
        Fraction of the signal events of each observed bin without a true partner. M and `acceptance` include them.
    simulated : tuple of ndarray (d, n), or None
        Contents and variances of a response histogram.
    histogram : object
        The observed histogram, if it and the response were histograms, for the type of results; else None.
    response_axes : tuple
        The true axes of a response histogram.
    """

    counts: Floats
    variances: Floats | None
    M: Floats
    acceptance: Floats
    background: Floats
    shape: tuple[int, ...]
    observed_shape: tuple[int, ...]
    edges: tuple[Floats, ...] | None = None
    blocks: tuple[int, ...] | None = None
    covariance: Floats | None = None
    has_losses: bool = False
    fakes: Floats | None = None
    simulated: tuple[Floats, Floats] | None = None
    histogram: Any = None
    response_axes: tuple[Any, ...] = ()

    @property
    def response(self) -> Floats:
        """Response with acceptance, (d, n): expected counts are R t + background."""
        return np.asarray(self.M * self.acceptance)

    @property
    def relative_acceptance(self) -> Floats:
        """The acceptance (n,), divided by its maximum if fakes push that above one."""
        return np.asarray(self.acceptance / max(1.0, float(self.acceptance.max())))

    def add_fakes(self, R: Floats) -> Floats:
        """Return columns R (d, ...) of a response with the fakes added."""
        return R if self.fakes is None else np.asarray((R.T / (1 - self.fakes)).T)

    def without_fakes(self) -> tuple[Floats, Floats]:
        """Return M (d, n) and acceptance (n,) of the events with true partners."""
        if self.fakes is None:
            return self.M, self.acceptance
        R = self.response * (1 - self.fakes)[:, None]
        sums = R.sum(axis=0)
        return R / sums, sums

    @property
    def weight(self) -> float:
        """Mean weight of an event: counts divided by it fluctuate as plain counts."""
        return 1.0 if self.variances is None else float(self.variances.sum() / self.counts.sum())

    @property
    def weights(self) -> Floats:
        """The mean weight of an event in each observed bin, (d,)."""
        mean = np.full_like(self.counts, self.weight)
        if self.variances is None:
            return mean
        known = (self.counts > 0) & (self.variances > 0)
        return np.divide(self.variances, self.counts, out=mean, where=known)

    def signal(self, G: Floats, background: Floats | None = None) -> Floats:
        """Return S = sum_j (g_j - b_j), (B,), for histograms G (B, d)."""
        b = self.background if background is None else background
        return np.asarray(G.sum(axis=1) - b.sum())

    def data(self, G: Floats, M: Floats | None = None, background: Floats | None = None) -> Data:
        """Return problems q = M p + o of histograms G (B, d)."""
        M, b = self.M if M is None else M, self.background if background is None else background
        S = self.signal(G, b)
        o = None if not b.any() and background is None else b / S[:, None]
        return Data(G / S[:, None], M, S / self.weight, background=o)

    def spectrum(self, P: Floats, G: Floats) -> Floats:
        """Return numbers of all events t = S p / a, (B, n), for observed P (B, n)."""
        return np.asarray(self.signal(G)[:, None] * P / self.acceptance)

    def fold(self, T: Floats) -> Floats:
        """Return expected counts, (B, d), for numbers of events T (B, n)."""
        return np.asarray(T @ self.response.T + self.background)

    def fluctuations(self, expected: Floats) -> Floats:
        """Return the covariances (B, d, d) of counts whose expectations are (B, d)."""
        if self.covariance is not None:
            return np.tile(self.covariance, (len(expected), 1, 1))
        # The mean weight in a bin is a property of the events, hence the same in each repetition.
        mean = np.full_like(self.counts, self.weight)
        unit = (
            mean if self.variances is None else np.divide(self.variances, self.counts, out=mean, where=self.counts > 0)
        )
        return np.asarray((expected * unit)[:, :, None] * np.eye(len(unit)))

    def draw(self, expected: Floats, n_toys: int, rng: np.random.Generator) -> Floats:
        """Draw histograms (n_toys, d) around expected counts (d,).

        Poisson in units of the weight of each bin.
        """
        if self.covariance is not None:
            return rng.multivariate_normal(expected, self.covariance, size=n_toys, method="eigh")
        variance = np.diagonal(self.fluctuations(expected[None])[0])
        unit = np.divide(variance, expected, out=np.ones_like(expected), where=(expected > 0) & (variance > 0))
        return np.asarray(unit * rng.poisson(expected / unit, size=(n_toys, len(expected))))


def read_measurement(
    counts: Any,
    response: Any,
    *,
    acceptance: Any = None,
    background: Any = None,
    fakes: Any = None,
    variances: Any = None,
    covariance: Any = None,
    edges: Any = None,
    blocks: Any = None,
    flow: bool = False,
) -> Measurement:
    """Return the arguments of `unfold`, checked."""
    if is_histogram(counts) and len(counts.axes) == 1 and (not is_histogram(response) or len(response.axes) == 2):
        check_axes(counts, response, acceptance, background)
    g, v = _counts(counts, variances, covariance, flow=flow)
    V = None if covariance is None else _covariance(covariance, g.shape)
    R, shape, simulated = _flat_response(response, g.shape, flow=flow)
    if R.shape[1] < 2:
        raise ValueError(
            "response must have at least 2 true bins, got 1. Use (counts - background).sum() / acceptance."
        )
    if is_histogram(response) and isinstance(acceptance, str):
        raise ValueError(
            "acceptance must be numbers if response is a histogram, whose columns are divided by their sums. "
            "Pass the events of each true bin that are observed, divided by those that were generated."
        )
    if (
        acceptance is not None
        and np.ndim(acceptance) == 0
        and not isinstance(acceptance, str)
        and not is_histogram(acceptance)
    ):
        acceptance = np.full(shape, float(check_numbers("acceptance", acceptance)))
    R = np.where(R < SMALLEST, 0.0, R)
    M, a = read_response(R, _flat("acceptance", acceptance, shape, flow=flow), name="response")
    a = np.ones(M.shape[1]) if a is None else a
    if fakes is not None:
        fakes = _flat("fakes", fakes, g.shape, flow=flow)
        M, a = _with_fakes(M * a, fakes)
    b = np.zeros(g.size)
    if background is not None:
        b = _background(_flat("background", background, g.shape, flow=flow), g, gaussian=V is not None)
    found, sizes = _edges(edges, shape, blocks) if edges is not None else (None, _blocks(blocks, shape))
    if edges is None and is_histogram(response):
        found = axis_edges(response.axes[g.ndim :], shape)
    return Measurement(
        counts=g.ravel(),
        variances=None if v is None else v.ravel(),
        M=M,
        acceptance=a,
        background=b,
        shape=shape,
        observed_shape=g.shape,
        edges=found,
        blocks=sizes,
        covariance=V,
        has_losses=isinstance(acceptance, str),
        fakes=fakes,
        simulated=simulated,
        histogram=counts if is_histogram(counts) and is_histogram(response) else None,
        response_axes=tuple(response.axes)[g.ndim :] if is_histogram(response) else (),
    )


def _counts(counts: Any, variances: Any, covariance: Any, *, flow: bool) -> tuple[Floats, Floats | None]:
    """Return the observed counts (...) and their variances, None for plain counts."""
    if is_histogram(counts):
        if variances is not None:
            raise ValueError("variances must be None if counts are a histogram, which has variances.")
        g = bin_contents("counts", counts, flow=flow)
        known = bin_variances("counts", counts, flow=flow) if covariance is None else g
        v = None if np.allclose(known, g) else known
    else:
        g, v = check_numbers("counts", counts), None if variances is None else check_numbers("variances", variances)
    if g.ndim == 0 or g.size == 0:
        raise ValueError(f"counts must be a histogram, one number per observed bin, got shape {g.shape}.")
    if np.abs(g).max() > MOST_ITEMS / g.size:
        raise ValueError(f"counts must be at most {MOST_ITEMS / g.size:g} per bin, got {g.flat[np.abs(g).argmax()]:g}.")
    if covariance is not None:
        if v is not None:
            raise ValueError("variances must be None with covariance, whose diagonal they are.")
        return g, None
    if (g < 0).any():
        raise ValueError(
            f"counts must be >= 0, got {g.min():g}: give the counts as observed, and the expected "
            "background as background=, so that nothing has to be subtracted. Pass covariance= with subtracted counts."
        )
    if not g.sum() > 0:
        raise ValueError("counts must have a positive sum.")
    if g.sum() < 1 / MOST_ITEMS:
        raise ValueError(f"counts must have a sum of at least {1 / MOST_ITEMS:g}, got {g.sum():g}.")
    if v is not None and (v.shape != g.shape or (v < 0).any() or not v.sum() > 0):
        raise ValueError(
            f"variances must be >= 0, one per count and not all zero, shape {g.shape}, got shape {v.shape}."
        )
    if v is None and not np.array_equal(g, np.round(g)):
        warnings.warn(
            "counts are not whole numbers and are treated as counts whose variance equals their value. Pass variances= "
            "(sums of squared weights) for sums of weights, or variances=counts for expected counts.",
            UserWarning,
            stacklevel=4,
        )
    return g, v


def _covariance(value: Any, shape: tuple[int, ...]) -> Floats:
    """Return the covariance of the counts, (d, d)."""
    V = check_numbers("covariance", value)
    d = int(np.prod(shape))
    if V.size != d * d:
        raise ValueError(f"covariance must have one row and column per count, shape {(d, d)}, got shape {V.shape}.")
    V = V.reshape(d, d)
    if not np.allclose(V, V.T, rtol=1e-8, atol=1e-12 * np.abs(V).max()) or np.linalg.eigvalsh(V)[0] <= 0:
        raise ValueError("covariance must be symmetric with positive eigenvalues.")
    return V


def _background(value: Floats, g: Floats, *, gaussian: bool) -> Floats:
    """Return the background (d,), less than the counts unless these may be negative."""
    if gaussian:
        if np.shape(value) != (g.size,) or (value < 0).any():
            raise ValueError(f"background must be {g.size} numbers >= 0, got shape {np.shape(value)}.")
        return value
    part, signal = read_background(value, np.array([g.sum()]), (1, g.size))
    return np.asarray(part[0] * signal)


def _with_fakes(R: Floats, fakes: Floats) -> tuple[Floats, Floats]:
    """Return response and acceptance with fractions of fakes in observed bins."""
    if fakes.shape != (len(R),) or not ((fakes >= 0) & (fakes < 1)).all():
        raise ValueError(f"fakes must be {len(R)} fractions in [0, 1), one per observed bin, got {fakes!r:.80}.")
    R = R / (1 - fakes)[:, None]
    sums = R.sum(axis=0)
    return R / sums, sums


def _flat_response(
    response: Any, observed: tuple[int, ...], *, flow: bool
) -> tuple[Floats, tuple[int, ...], tuple[Floats, Floats] | None]:
    """Return response (d, n), true shape, contents and variances."""
    histogram = is_histogram(response)
    if histogram:
        R = bin_contents("response", response, flow=flow)
        if not flow:
            warn_of_flow(response, len(observed))
    else:
        R = check_numbers("response", response)
    if R.size == 0:
        raise ValueError(f"response must have observed bins and at least 2 true bins, got shape {R.shape}.")
    if R.ndim == 2 and R.shape[1] == 1:
        return R, (1,), None
    _check_shapes(observed, R)
    shape = R.shape[len(observed) :]
    R = R.reshape(int(np.prod(observed)), -1)
    if not histogram:
        _check_columns(R)
        return R, shape, None
    sums = R.sum(axis=0)
    _check_entries(R)
    if (sums <= 0).any():
        _check_flow_bins(response.axes[len(observed) :], shape, sums <= 0)
        empty = np.flatnonzero(sums <= 0) + 1
        raise ValueError(
            f"response must have events in every true bin, got none in bin {', '.join(map(str, empty))} of "
            f"{R.shape[1]}. Merge it with a neighbour."
        )
    known = response.variances(flow=True) if flow else response.variances()
    return R / sums, shape, None if known is None else (R, np.asarray(known, dtype=np.float64).reshape(R.shape))


def _check_flow_bins(axes: Any, shape: tuple[int, ...], empty: Mask) -> None:
    """Raise ValueError if a true flow bin is among the empty ones (n,)."""
    for k, (axis, n) in enumerate(zip(axes, shape, strict=True)):
        found = np.moveaxis(empty.reshape(shape), k, 0)
        below, above = flow_sides(axis, n)
        for side, has_side, place in (("underflow", below, 0), ("overflow", above, -1)):
            if has_side and found[place].any():
                raise ValueError(
                    f"response must have events in every true bin, got none in the {side} of true axis {k + 1}. "
                    f"Use {side}=False for that axis."
                )


def _check_shapes(observed: tuple[int, ...], R: Floats) -> None:
    """Raise ValueError if response and counts have different shapes."""
    k = len(observed)
    if R.ndim > k and R.shape[:k] == observed:
        return
    hint = "response must have the observed bins first, then the true ones"
    if R.ndim == 2 and k == 1 and R.shape[1] == observed[0]:
        hint = "it looks transposed: rows are observed bins, columns true ones; give response.T"
    elif R.ndim == 2 and k == 2 and 1 in observed and R.shape[0] == max(observed):
        hint = "give the one histogram as counts.ravel()"
    elif R.ndim == 2 and k == 2 and observed[1] == R.shape[0]:
        hint = (
            f"it looks as if counts were {observed[0]} histograms: unfold takes one, "
            "[oq.unfold(row, response) for row in counts]; oq.solve takes many, and returns estimates alone"
        )
    elif R.ndim == 2 and k == 2 and observed[0] == R.shape[0]:
        hint = "it looks as if counts had one histogram per column: give counts[:, 0]"
    elif R.ndim == 2 and k > 1 and int(np.prod(observed)) == R.shape[0]:
        hint = "give response as (*observed shape, *true shape), for example response.reshape(*counts.shape, n1, n2)"
    raise ValueError(f"response has shape {R.shape}, counts have {observed}: {hint}.")


def _check_entries(R: Floats) -> None:
    """Raise ValueError if an entry of the response is negative, with its place."""
    if (R < 0).any():
        j, i = np.unravel_index(int(R.argmin()), R.shape)
        raise ValueError(f"response must be >= 0, got {R.min():g} in observed bin {j + 1} of true bin {i + 1}.")


def _check_columns(R: Floats) -> None:
    """Raise ValueError if columns are not distributions, with the probable reason."""
    _check_entries(R)
    with np.errstate(over="ignore"):
        columns, rows = R.sum(axis=0), R.sum(axis=1)
    if (columns == 0).any():
        empty = np.flatnonzero(columns == 0) + 1
        raise ValueError(
            f"response must have entries in every true bin, got none in bin {', '.join(map(str, empty))} of "
            f"{len(columns)}."
        )
    sums = f"columns sum to {_range(columns)}, rows to {_range(rows)}"
    is_whole = np.allclose(columns, 1, atol=WHOLE)
    if R.shape[0] == R.shape[1] and np.allclose(rows, 1, atol=WHOLE) and not is_whole:
        raise ValueError(
            f"the rows of response sum to one, not its columns: it looks transposed ({sums}); column i is the "
            "distribution of true bin i over the observed bins, give response.T."
        )
    if (columns > 1 + 1e-3).any() and (columns > 1 + 1e-3).all():
        raise ValueError(
            "the columns of response must sum to at most one, got numbers of simulated events: give "
            "response / response.sum(axis=0), and systematics={'simulation': SimulatedEvents(response)} for their "
            "statistics."
        )
    is_even = R.shape[0] == R.shape[1] and np.allclose(rows, rows.mean(), rtol=1e-4)
    if is_even and np.ptp(columns) > 0.03 * columns.mean():
        raise ValueError(
            f"response looks transposed: {sums}. Rows are observed bins, columns true ones, whose sums are the "
            "acceptance. Pass response.T."
        )
    if (columns > 1 + 1e-3).any():
        hint = "It looks transposed. Pass response.T." if (rows <= 1 + 1e-3).all() else "Pass probabilities."
        raise ValueError(f"the columns of response must sum to at most one: {sums}. {hint}")


def _range(sums: Floats) -> str:
    low, high = sums.min(), sums.max()
    return f"{low:.4g}" if np.isclose(low, high) else f"{low:.4g} to {high:.4g}"


def _flat(name: str, value: Any, shape: tuple[int, ...], *, flow: bool) -> Any:
    """Return the values of bins of a shape as a vector."""
    if value is None or isinstance(value, str):
        return value
    if is_histogram(value):
        value = bin_contents(name, value, flow=flow)
    array = check_numbers(name, value)
    return array.ravel() if array.shape == shape else array


def _blocks(blocks: Any, shape: tuple[int, ...]) -> tuple[int, ...] | None:
    """Return the numbers of bins of stacked spectra."""
    if blocks is None:
        return None
    sizes = tuple(check_integer("blocks", size, minimum=1) for size in blocks)
    if len(shape) != 1 or sum(sizes) != shape[0]:
        raise ValueError(f"blocks must sum to the number of true bins, {shape[0]}, got {sizes}.")
    return sizes


def _edges(edges: Any, shape: tuple[int, ...], blocks: Any) -> tuple[tuple[Floats, ...], tuple[int, ...] | None]:
    """Return edges of the true bins by axis or block, and sizes of blocks."""
    parts = [edges] if np.isscalar(edges) else list(edges)
    given = [parts] if len(shape) == 1 and all(np.ndim(part) == 0 for part in parts) else parts
    found = tuple(check_numbers("edges", part) for part in given)
    sizes = _blocks(blocks, shape)
    if sizes is None and len(shape) == 1 and len(found) > 1:
        sizes = _blocks([max(part.size - 1, 1) for part in found], shape)
    lengths = shape if sizes is None else sizes
    if len(found) != len(lengths) or any(part.shape != (n + 1,) for part, n in zip(found, lengths, strict=True)):
        expected = " and ".join(str(n + 1) for n in lengths)
        raise ValueError(f"edges must be {expected} ascending numbers, got {[part.shape for part in found]}.")
    if any((np.diff(part) <= 0).any() for part in found):
        raise ValueError("edges must ascend.")
    return found, sizes
