"""Histograms of the UHI protocol: hist, boost-histogram, uproot, PyROOT."""

import sys
import warnings
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ordinalq._utils.extras import require_extra
from ordinalq._utils.validation import Floats

# Part of the simulated events in true flow bins from which on a warning is issued.
FLOW = 1e-3


def is_histogram(thing: Any) -> bool:
    """Return whether something is a histogram of the UHI protocol."""
    return not isinstance(thing, np.ndarray) and all(hasattr(thing, name) for name in ("kind", "axes", "values"))


def bin_contents(name: str, histogram: Any, *, n_axes: int | None = None, flow: bool = False) -> Floats:
    """Return the bin contents of a histogram, with underflow and overflow or without."""
    found = len(histogram.axes)
    if n_axes is not None and found != n_axes:
        raise ValueError(f"{name} must be a histogram with {n_axes} {'axis' if n_axes == 1 else 'axes'}, got {found}.")
    if str(histogram.kind).rpartition(".")[2] != "COUNT":
        raise ValueError(f"{name} must be a histogram of counts, got one of means.")
    return np.asarray(_read(histogram.values, flow), dtype=np.float64)


def bin_variances(name: str, histogram: Any, *, flow: bool = False) -> Floats:
    """Return the variances of bin contents; without weights, the contents."""
    variances = _read(histogram.variances, flow)
    if variances is None:
        raise ValueError(
            f"{name} must be a histogram with variances, got one that was scaled. "
            "Use storage=Weight(), or pass its contents and their variances=[...]."
        )
    return np.asarray(variances, dtype=np.float64)


def _read(method: Callable[..., Any], flow: bool) -> Any:
    if not flow:
        return method()
    try:
        return method(flow=True)
    except TypeError as error:
        raise TypeError("flow must be False with this type of histogram, which has no flow bins.") from error


def warn_of_flow(response: Any, n_observed: int) -> None:
    """Warn if events migrate into the range from omitted true flow bins."""
    try:
        everything = np.asarray(response.values(flow=True), dtype=np.float64)
    except TypeError:
        return
    inner = np.asarray(response.values(), dtype=np.float64)
    sides = [flow_sides(response.axes[k], everything.shape[k]) for k in range(n_observed)]
    observed = tuple(slice(below, n - above) for (below, above), n in zip(sides, everything.shape, strict=False))
    seen = everything[observed].sum()
    part = 1 - inner.sum() / seen if seen > 0 else 0.0
    if part > FLOW:
        warnings.warn(
            f"response has {part:.1%} of its observed events in true underflow and overflow bins, which are left out. "
            "Pass flow=True to unfold them as bins, or their expected counts as background.",
            UserWarning,
            stacklevel=5,
        )


def flow_sides(axis: Any, n: int) -> tuple[bool, bool]:
    """Return whether the n bins along an axis include underflow, and overflow."""
    if n == len(axis) + 1:
        return bool(axis.traits.underflow), bool(axis.traits.overflow)
    return n > len(axis), n > len(axis)


def axis_edges(axes: Sequence[Any], shape: tuple[int, ...]) -> tuple[Floats, ...] | None:
    """Return the edges along each axis, infinite for flow bins, or None."""
    found = []
    for axis, n in zip(axes, shape, strict=True):
        if axis.traits.discrete:
            return None
        bins = np.array([axis[i] for i in range(len(axis))], dtype=np.float64)
        edges = np.append(bins[:, 0], bins[-1, 1])
        below, above = flow_sides(axis, n)
        found.append(np.concatenate([[-np.inf] * below, edges, [np.inf] * above]))
    return tuple(found)


def check_axes(q: Any, M: Any, acceptance: Any, background: Any) -> None:
    """Raise ValueError if acceptance or background have other bins than M and q."""
    observed = q.axes[0] if is_histogram(q) else M.axes[0] if is_histogram(M) else None
    true = M.axes[1] if is_histogram(M) and len(M.axes) == 2 else None
    for name, value, kind, axis in (
        ("background", background, "observed", observed),
        ("acceptance", acceptance, "true", true),
    ):
        if axis is None or not is_histogram(value) or len(value.axes) != 1:  # more axes raise an error later
            continue
        if not same_bins(value.axes[0], axis):
            raise ValueError(f"the axis of {name} must be the {kind} one, {axis!r}, got {value.axes[0]!r}.")


def same_bins(one: Any, other: Any) -> bool:
    """Return whether two axes have the same bins."""
    if len(one) != len(other):
        return False
    if one.traits.discrete or other.traits.discrete:
        return [one[i] for i in range(len(one))] == [other[i] for i in range(len(other))]
    bins = [np.array([axis[i] for i in range(len(axis))], dtype=np.float64) for axis in (one, other)]
    return np.allclose(bins[0], bins[1], rtol=1e-9, atol=0)


def result_type(q: Any, M: Any) -> Callable[[Floats], Any]:
    """Return the function that makes a histogram of the type of q, or None."""
    if not (is_histogram(q) and is_histogram(M)):
        return lambda estimate: estimate
    if len(q.axes) == 1 and len(M.axes) == 2 and not same_bins(q.axes[0], M.axes[0]):
        raise ValueError(f"the first axis of M must be that of q, {q.axes[0]!r}, got {M.axes[0]!r}.")

    def histogram(estimate: Floats) -> Any:
        kind, axes = _constructor(q, [M.axes[1]])
        result = kind(*axes, storage=sys.modules["boost_histogram"].storage.Double())
        result.view(flow=False)[...] = estimate
        # Estimates are not counts: scaling removes variances that would be taken from the contents.
        result *= 1.0
        return result

    return histogram


def make_histogram(like: Any, axes: Sequence[Any], values: Floats, variances: Floats) -> Any:
    """Return a histogram with variances, of the type of another, or of `hist`.

    `axes` are axes of histograms, or arrays of edges. Values of flow bins are stored as such.
    """
    kind, own = _constructor(like, axes)
    result = kind(*own, storage=sys.modules["boost_histogram"].storage.Weight())
    inner = result.view(flow=False)
    view = inner if inner.shape == values.shape else result.view(flow=True)
    view["value"], view["variance"] = values, variances
    return result


def _constructor(like: Any, axes: Sequence[Any]) -> tuple[Any, list[Any]]:
    """Return a class of histograms and its axes."""
    package: Any = sys.modules.get("boost_histogram")
    is_boost = package is not None and isinstance(like, package.Histogram)
    if is_boost and all(isinstance(axis, package.axis.Axis) for axis in axes):
        return type(like), list(axes)
    with require_extra("hist", "a histogram of the result"):
        import hist
    made: list[Any] = []
    for axis in axes:
        edges = axis if isinstance(axis, np.ndarray) else axis_edges([axis], (len(axis),))
        edges = edges if isinstance(edges, np.ndarray) or edges is None else edges[0]
        if edges is None:
            made.append(hist.axis.StrCategory([str(axis[i]) for i in range(len(axis))]))
        else:
            made.append(hist.axis.Variable(edges[np.isfinite(edges)]))
    return hist.Hist, made
