"""The measurement: observed counts, response, acceptance and background."""

import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np

from ordinalq._utils.validation import Floats, check_numbers
from ordinalq.simplex import Data
from ordinalq.unfolding.response import (
    bin_contents,
    bin_variances,
    check_axes,
    is_histogram,
    read_background,
    read_response,
)


@dataclass(frozen=True)
class Measurement:
    """Observed counts, and what turns true numbers t of events into expected counts: lambda = M (a t) + b.

    Attributes
    ----------
    counts : ndarray (d,)
        Observed numbers of events g, or sums of weights.
    variances : ndarray (d,) or None
        Sums of squared weights; None for plain counts.
    M : ndarray (d, n)
        Response: column i is the distribution of the observed events of class i.
    acceptance : ndarray (n,)
        Share a_i of the events of class i that are observed.
    background : ndarray (d,)
        Expected events b_j of no class.
    shape : tuple of int
        Shape of the true bins, n in all.
    observed_shape : tuple of int
        Shape of the observed bins, d in all.
    edges : tuple of ndarray, or None
        Edges of the true bins along each axis.
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
    simulated: tuple[Floats, Floats] | None = None
    histogram: Any = None
    response_axes: tuple[Any, ...] = ()

    @property
    def weight(self) -> float:
        """The mean weight of an event: the counts divided by it have the fluctuations of plain counts."""
        return 1.0 if self.variances is None else float(self.variances.sum() / self.counts.sum())

    def signal(self, G: Floats, background: Floats | None = None) -> Floats:
        """Return S = sum_j (g_j - b_j), (B,), for histograms G (B, d)."""
        b = self.background if background is None else background
        return np.asarray(G.sum(axis=1) - b.sum())

    def data(self, G: Floats, M: Floats | None = None, background: Floats | None = None) -> Data:
        """Return the problems q = M p + o of histograms G (B, d), perhaps with another response and background."""
        M, b = self.M if M is None else M, self.background if background is None else background
        S = self.signal(G, b)
        o = None if not b.any() and background is None else b / S[:, None]
        return Data(G / S[:, None], M, S / self.weight, background=o)

    def spectrum(self, P: Floats, G: Floats) -> Floats:
        """Return numbers of all events t = S p / a, (B, n), for shares P (B, n) of the observed ones."""
        return np.asarray(self.signal(G)[:, None] * P / self.acceptance)

    def fold(self, T: Floats) -> Floats:
        """Return expected counts, (B, d), for numbers of events T (B, n)."""
        return np.asarray((T * self.acceptance) @ self.M.T + self.background)

    def fluctuation(self, expected: Floats) -> Floats:
        """Return the variances of counts, (..., d), that are expected."""
        if self.variances is None:
            return expected
        # The mean weight in a bin is a property of the events, hence the same in each repetition.
        mean = np.full_like(self.counts, self.weight)
        return np.asarray(expected * np.divide(self.variances, self.counts, out=mean, where=self.counts > 0))

    def draw(self, expected: Floats, n_toys: int, rng: np.random.Generator) -> Floats:
        """Draw histograms (n_toys, d) around expected counts (d,): Poisson in units of the weight of each bin."""
        unit = np.divide(self.fluctuation(expected), expected, out=np.ones_like(expected), where=expected > 0)
        return np.asarray(unit * rng.poisson(expected / unit, size=(n_toys, len(expected))))


def read_measurement(
    counts: Any,
    response: Any,
    *,
    acceptance: Any = None,
    background: Any = None,
    variances: Any = None,
    edges: Any = None,
) -> Measurement:
    """Return what was given to `unfold`, checked."""
    if is_histogram(counts) and counts.ndim == 1 and (not is_histogram(response) or response.ndim == 2):
        check_axes(counts, response, acceptance, background)
    g, v = _counts(counts, variances)
    R, simulated = _flat_response(response, g.shape)
    shape = tuple(np.shape(response.values() if is_histogram(response) else response)[g.ndim :])
    if R.shape[1] < 2:
        raise ValueError("response must have at least 2 true bins: one holds (counts - background).sum() / acceptance.")
    M, a = read_response(R, _flat(acceptance, shape), name="response")
    b = np.zeros(g.size)
    if background is not None:
        share, signal = read_background(_flat(background, g.shape), np.array([g.sum()]), (1, g.size))
        b = share[0] * signal
    found_edges = _edges(edges, shape) if edges is not None else _axis_edges(response, g.ndim)
    return Measurement(
        counts=g.ravel(),
        variances=None if v is None else v.ravel(),
        M=M,
        acceptance=np.ones(M.shape[1]) if a is None else a,
        background=b,
        shape=shape,
        observed_shape=g.shape,
        edges=found_edges,
        simulated=simulated,
        histogram=counts if is_histogram(counts) and is_histogram(response) else None,
        response_axes=tuple(response.axes[g.ndim :]) if is_histogram(response) else (),
    )


def _counts(counts: Any, variances: Any) -> tuple[Floats, Floats | None]:
    """Return the observed counts (...) and their variances, None for plain counts."""
    if is_histogram(counts):
        if variances is not None:
            raise ValueError("variances must be None where counts are a histogram, which has its own.")
        g = bin_contents("counts", counts, n_axes=counts.ndim)
        known = bin_variances("counts", counts)
        v = None if np.allclose(known, g) else known
    else:
        g, v = check_numbers("counts", counts), None if variances is None else check_numbers("variances", variances)
    if g.ndim == 0 or g.size == 0:
        raise ValueError(f"counts must be a histogram, one number per observed bin, got shape {g.shape}.")
    if (g < 0).any():
        raise ValueError(
            f"counts must be >= 0, got {g.min():g}: give the counts as observed, and the expected "
            "background as background=, so that nothing has to be subtracted."
        )
    if not g.sum() > 0:
        raise ValueError("counts must have a positive sum.")
    if v is not None and (v.shape != g.shape or (v < 0).any() or not v.sum() > 0):
        raise ValueError(
            f"variances must be >= 0, one per count and not all zero, shape {g.shape}, got shape {v.shape}."
        )
    if v is None and not np.array_equal(g, np.round(g)):
        warnings.warn(
            "counts are not whole numbers and are treated as counts with a variance of their own size: give variances= "
            "(sums of squared weights) for sums of weights, or variances=counts for expected counts.",
            UserWarning,
            stacklevel=4,
        )
    return g, v


def _flat_response(response: Any, observed: tuple[int, ...]) -> tuple[Floats, tuple[Floats, Floats] | None]:
    """Return the response (d, n), and the contents and variances of a histogram."""
    histogram = is_histogram(response)
    R = bin_contents("response", response, n_axes=response.ndim) if histogram else check_numbers("response", response)
    _check_shapes(observed, R)
    R = R.reshape(int(np.prod(observed)), -1)
    if not histogram:
        _check_columns(R)
        return R, None
    sums, known = R.sum(axis=0), response.variances()
    if (R < 0).any() or (sums <= 0).any():
        raise ValueError("response must have entries >= 0, and some in every true bin.")
    return R / sums, None if known is None else (R, np.asarray(known, dtype=np.float64).reshape(R.shape))


def _check_shapes(observed: tuple[int, ...], R: Floats) -> None:
    """Refuse a response that does not begin with the shape of the counts, and say what was probably meant."""
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


def _check_columns(R: Floats) -> None:
    """State what columns that are no distributions probably are."""
    columns, rows = R.sum(axis=0), R.sum(axis=1)
    if R.shape[0] == R.shape[1] and np.allclose(rows, 1, atol=1e-6) and (columns > 1 + 1e-3).any():
        raise ValueError(
            "the rows of response sum to one, not its columns: it looks transposed; column i is the distribution "
            "of class i over the observed bins, give response.T."
        )
    if (columns > 1 + 1e-3).all() and (R >= 0).all():
        raise ValueError(
            "the columns of response must sum to at most one, got numbers of simulated events: give "
            "response / response.sum(axis=0), and systematics={'simulation': SimulatedEvents(response)} for their "
            "statistics."
        )


def _flat(value: Any, shape: tuple[int, ...]) -> Any:
    """Return what belongs to bins of a shape as a vector; words and other lengths are left to their checks."""
    if value is None or isinstance(value, str):
        return value
    if is_histogram(value):
        value = bin_contents("acceptance or background", value, n_axes=value.ndim)
    array = check_numbers("acceptance or background", value)
    return array.ravel() if array.shape == shape else array


def _axis_edges(response: Any, n_observed: int) -> tuple[Floats, ...] | None:
    """Return the edges of the true axes of a response histogram, if they are numbers."""
    if not is_histogram(response):
        return None
    axes = response.axes[n_observed:]
    if any(axis.traits.discrete for axis in axes):
        return None
    return tuple(np.asarray(axis.edges, dtype=np.float64) for axis in axes)


def _edges(edges: Any, shape: tuple[int, ...]) -> tuple[Floats, ...]:
    """Return the edges of the true bins along each axis."""
    parts = [edges] if np.isscalar(edges) else list(edges)
    given = [parts] if len(shape) == 1 and all(np.ndim(part) == 0 for part in parts) else parts
    found = tuple(check_numbers("edges", part) for part in given)
    if len(found) != len(shape) or any(part.shape != (n + 1,) for part, n in zip(found, shape, strict=True)):
        lengths = " and ".join(str(n + 1) for n in shape)
        raise ValueError(f"edges must be {lengths} ascending numbers, got {[part.shape for part in found]}.")
    if any((np.diff(part) <= 0).any() for part in found):
        raise ValueError("edges must ascend.")
    return found
