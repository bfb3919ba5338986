"""Ordered classes from a number, by bins of equal width.

The bins cover the widest span that fills them all. Paper: the section on the UCI and OpenML data.
"""

from typing import Any, NamedTuple

import numpy as np

from ordinalq._utils.validation import Array, Codes, Floats, Index, Mask, check_choice, check_integer

# Rectangles of candidate spans that are examined at once; bounds the memory and keeps the search best-first.
BATCH = 4096


class Binning(NamedTuple):
    """A target cut into ordered classes.

    Attributes
    ----------
    codes : ndarray (N,)
        Class 0..n_bins-1 of each item, -1 where the item is not kept.
    kept : ndarray (N,), bool
        Whether the item has a class: False for missing targets and, with ``outside="drop"``, outside of the span.
    edges : ndarray (n_bins + 1,)
        Finite and ascending; bin k is [edges[k], edges[k + 1]), the last one includes its right edge.
    counts : ndarray (n_bins,)
        Kept items of each class.

    Examples
    --------
    >>> import ordinalq as oq
    >>> binning = oq.datasets.bin_target(np.arange(1000.0), 5, min_count=100)
    >>> binning.counts
    array([200, 200, 200, 200, 200])
    """

    codes: Codes
    kept: Mask
    edges: Floats
    counts: Index


def bin_target(y: Any, n_bins: int = 10, min_count: int = 100, outside: str = "clip", span: Any = None) -> Binning:
    """Cut a real target into `n_bins` classes of equal width.

    The span [lo, hi] runs between two values of the target such that hi - lo is as large as possible while each of
    the bins holds at least `min_count` items; among equally wide spans the one with the smallest lo. The search is
    exact.

    Parameters
    ----------
    y : array-like (N,)
        Target; NaN stands for missing.
    n_bins : int, default=10
        Number of classes, at least 3.
    min_count : int, default=100
        Smallest number of items in each bin of the span; items outside do not count.
    outside : {"clip", "drop"}, default="clip"
        Items outside of the span go to the outermost bins, or are not kept.
    span : (lo, hi), default=None
        Use this span instead of searching. Then `min_count` has no effect.

    Returns
    -------
    Binning
        Classes (N,), mask of the kept items (N,), edges (n_bins + 1,) and counts (n_bins,).

    Examples
    --------
    >>> binning = bin_target([0, 1, 2, 3, 4, 5, 90], n_bins=3, min_count=2)
    >>> binning.edges
    array([0.        , 1.66666667, 3.33333333, 5.        ])
    >>> binning.codes
    array([0, 0, 1, 1, 2, 2, 2])
    """
    n_bins = check_integer("n_bins", n_bins, minimum=3)
    min_count = check_integer("min_count", min_count, minimum=1)
    check_choice("outside", outside, ("clip", "drop"))
    target = _check_target(y)
    present = ~np.isnan(target)
    lo, hi = _check_span(span) if span is not None else widest_span(target[present], n_bins, min_count)
    edges = np.linspace(lo, hi, n_bins + 1)
    kept = present if outside == "clip" else present & (target >= lo) & (target <= hi)
    codes = np.full(len(target), -1, dtype=np.intp)
    # Only the inner edges divide: what lies outside falls into the outermost bins by itself.
    codes[kept] = np.searchsorted(edges[1:-1], target[kept], side="right")
    return Binning(codes, kept, edges, np.bincount(codes[kept], minlength=n_bins))


def widest_span(target: Floats, n_bins: int, min_count: int) -> tuple[float, float]:
    """Find the widest span (lo, hi) whose bins all have at least `min_count` targets.

    The targets have shape (N,). The method is branch and bound. A pair (lo, hi) of distinct targets is a point, a set
    of pairs a rectangle of index ranges. Each inner edge lo + k (hi - lo) / n grows with lo and with hi, so over a
    rectangle it stays between its values at two corners. These values bound the number of items in bin k from above,
    over the whole rectangle. If the bound is below `min_count`, the rectangle has no solution. Otherwise its widest
    pair is tried, and if that fails the rectangle is halved. The widest rectangles go first, so the search ends as soon
    as no open one can exceed the best pair found.
    """
    t = np.sort(target)
    d = np.unique(t)
    # Rectangles (R, 4): first and last index of lo, first and last index of hi.
    queue = np.array([[0, len(d) - 1, 0, len(d) - 1]]) if len(t) >= n_bins * min_count else np.empty((0, 4), int)
    best, best_lo = -np.inf, -np.inf
    while len(queue):
        width = d[queue[:, 3]] - d[queue[:, 0]]
        queue = queue[_can_improve(width, d[queue[:, 0]], best, best_lo)]
        if len(queue) > BATCH:
            width = d[queue[:, 3]] - d[queue[:, 0]]
            order = np.argpartition(-width, BATCH)
            batch, queue = queue[order[:BATCH]], queue[order[BATCH:]]
        else:
            batch, queue = queue, queue[:0]
        batch = batch[(_bin_bounds(batch, t, d, n_bins) >= min_count).all(axis=1)]
        lo, hi = d[batch[:, 0]], d[batch[:, 3]]
        filled = (_bin_counts(lo, hi, t, n_bins) >= min_count).all(axis=1)
        if filled.any():
            top = np.max((hi - lo)[filled])
            top_lo = np.min(lo[filled & (hi - lo == top)])
            if _can_improve(top, top_lo, best, best_lo):
                best, best_lo = float(top), float(top_lo)
        # Where the widest pair is a solution, the rest of the rectangle is narrower: nothing left to look for,
        # save an equally wide pair of smaller lo, and lo is already the smallest of the rectangle.
        queue = np.concatenate([queue, _halves(batch[~filled], d)])
    if best <= 0:
        raise ValueError(
            f"y must have a span with {n_bins} bins of at least {min_count} items, but none of its {len(d)} distinct "
            f"values ({len(t)} items) gives one; lower min_count or n_bins, or give span=(lo, hi)."
        )
    # hi is looked up, not computed as lo + width: it must be a value of the target to the last bit.
    candidates = d[d - best_lo == best]
    filled = (_bin_counts(np.full(len(candidates), best_lo), candidates, t, n_bins) >= min_count).all(axis=1)
    return best_lo, float(candidates[filled][0])


def _can_improve(width: Any, lo: Any, best: float, best_lo: float) -> Any:
    return (width > best) | ((width == best) & (lo < best_lo))


def _bin_counts(lo: Floats, hi: Floats, t: Floats, n_bins: int) -> Index:
    """Return the items of each bin of each span, (R, n_bins)."""
    edges = np.linspace(lo, hi, n_bins + 1, axis=1)
    below = np.searchsorted(t, edges, side="left")
    below[:, -1] = np.searchsorted(t, hi, side="right")
    return np.diff(below, axis=1)


def _bin_bounds(rectangles: Array, t: Floats, d: Floats, n_bins: int) -> Index:
    """Return the maximum number of items per bin and rectangle, (R, n_bins)."""
    lo_min, lo_max, hi_min, hi_max = d[rectangles].T
    smallest = np.linspace(lo_min, hi_min, n_bins + 1, axis=1)
    largest = np.linspace(lo_max, hi_max, n_bins + 1, axis=1)
    # Rounding may move a computed edge beyond the corners' edges by a few units in the last place.
    slack = 8 * np.spacing(np.maximum(np.abs(lo_min), np.abs(hi_max)))[:, None]
    below = np.searchsorted(t, smallest[:, :-1] - slack, side="left")
    upto = np.searchsorted(t, largest[:, 1:] + slack, side="right")
    return np.asarray(upto - below)


def _halves(rectangles: Array, d: Floats) -> Array:
    """Split each rectangle at the middle of the side whose values differ most.

    A single pair has no halves.
    """
    # By values, not by their number: thousands of values next to zero move the edges less than two far from it.
    sides = d[rectangles[:, [1, 3]]] - d[rectangles[:, [0, 2]]]
    rectangles, sides = rectangles[sides.max(axis=1) > 0], sides[sides.max(axis=1) > 0]
    column = 2 * np.argmax(sides, axis=1)  # where that side starts
    rows = np.arange(len(rectangles))
    middle = (rectangles[rows, column] + rectangles[rows, column + 1]) // 2
    lower, upper = rectangles.copy(), rectangles.copy()
    lower[rows, column + 1] = middle
    upper[rows, column] = middle + 1
    both = np.concatenate([lower, upper])
    return both[both[:, 0] < both[:, 3]]  # lo must be smaller than hi somewhere


def _check_target(y: Any) -> Floats:
    try:
        if np.iscomplexobj(y):
            raise TypeError("complex numbers")
        target = np.asarray(y, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise TypeError("y must hold numbers that can be cut into bins; for labels give classes=[...].") from error
    if target.ndim != 1 or len(target) == 0:
        raise ValueError(f"y must be a one-dimensional array with at least one item, got shape {target.shape}.")
    if np.isinf(target).any():
        raise ValueError(
            f"y must be finite or missing, got {target[np.isinf(target)][0]} at item "
            f"{int(np.argmax(np.isinf(target)))}."
        )
    return target


def _check_span(span: Any) -> tuple[float, float]:
    try:
        lo, hi = (float(value) for value in span)
    except (TypeError, ValueError) as error:
        raise TypeError(f"span must be two numbers (lo, hi), got {span!r}.") from error
    if not (np.isfinite(lo) and np.isfinite(hi) and lo < hi):
        raise ValueError(f"span must be two finite numbers lo < hi, got {span!r}.")
    return lo, hi
