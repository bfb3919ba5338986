"""Histograms of `hist` and `boost_histogram`, in and out of `ordinalq.solve`."""

import sys
from collections.abc import Callable
from typing import Any

import numpy as np

from ordinalq._utils.validation import Floats


def is_histogram(thing: Any) -> bool:
    """Return whether something is a histogram."""
    # Whoever has a histogram has loaded its package; hist builds on boost_histogram.
    package = sys.modules.get("boost_histogram")
    return package is not None and isinstance(thing, package.Histogram)


def bin_contents(name: str, histogram: Any, *, n_axes: int) -> Floats:
    """Return the bin contents of a histogram, without underflow and overflow."""
    if histogram.ndim != n_axes:
        raise ValueError(
            f"{name} must be a histogram with {n_axes} {'axis' if n_axes == 1 else 'axes'}, got {histogram.ndim}."
        )
    if histogram.kind != "COUNT":
        raise ValueError(f"{name} must be a histogram of counts, got one of means.")
    return np.asarray(histogram.values(), dtype=np.float64)


def bin_variances(name: str, histogram: Any) -> Floats:
    """Return the variances of the bin contents of a histogram, which are the contents themselves without weights."""
    variances = histogram.variances()
    if variances is None:
        raise ValueError(
            f"{name} must be a histogram that knows its variances, got one that was scaled: fill one with "
            "storage=Weight(), or give its contents, and their variances=[...]."
        )
    return np.asarray(variances, dtype=np.float64)


def result_type(q: Any, M: Any) -> Callable[[Floats], Any]:
    """Return the function that turns the estimate into what the caller gets."""
    if not (is_histogram(q) and is_histogram(M)):
        return lambda estimate: estimate
    if q.ndim == 1 and M.ndim == 2 and not _same_bins(q.axes[0], M.axes[0]):
        raise ValueError(f"the first axis of M must be that of q, {q.axes[0]!r}, got {M.axes[0]!r}.")

    def histogram(estimate: Floats) -> Any:
        storage = sys.modules["boost_histogram"].storage.Double()
        result = type(q)(M.axes[1], storage=storage)
        result.view(flow=False)[...] = estimate
        # Estimates are no counts: this makes the package forget that it could take the contents for variances.
        result *= 1.0
        return result

    return histogram


def check_axes(q: Any, M: Any, acceptance: Any, background: Any) -> None:
    """Refuse histograms of the acceptance and the background whose bins are not those of M and q."""
    observed = q.axes[0] if is_histogram(q) else M.axes[0] if is_histogram(M) else None
    true = M.axes[1] if is_histogram(M) and M.ndim == 2 else None
    for name, value, kind, axis in (
        ("background", background, "observed", observed),
        ("acceptance", acceptance, "true", true),
    ):
        if axis is None or not is_histogram(value) or value.ndim != 1:  # more axes are refused later
            continue
        if not _same_bins(value.axes[0], axis):
            raise ValueError(f"the axis of {name} must be the {kind} one, {axis!r}, got {value.axes[0]!r}.")


def _same_bins(one: Any, other: Any) -> bool:
    """Return whether two axes have the same bins; names, labels and overflow bins may differ."""
    if len(one) != len(other):
        return False
    if one.traits.discrete or other.traits.discrete:
        return list(one) == list(other)
    return np.allclose(one.edges, other.edges, rtol=1e-9, atol=0)
