"""The number of items to label in each group for intervals of a given width."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from ordinalq._utils.text import percent
from ordinalq._utils.validation import Counts, Floats, Index, Mask, check_integer, check_random_state, check_real
from ordinalq.inference.bounds import Bounds
from ordinalq.inference.drift import Drift
from ordinalq.inference.labels import (
    WEIGHTED,
    by_labels_alone,
    class_predictions,
    from_labels,
    has_enough_labels,
    label_limits,
)
from ordinalq.inference.model import FittedQuantifier, scale_of
from ordinalq.inference.options import IntervalOptions, check_level
from ordinalq.inference.predict import drift_of, estimate
from ordinalq.samples.keys import Keys
from ordinalq.samples.labels import is_missing
from ordinalq.samples.summary import Summary

# Quantities that are means over the classes.
MEANS = ("mean class", "mean position")
# Labels per group for which the width is stated in addition: the first number that half of the groups exceed.
STATED = (100, 30, 10)


@dataclass(frozen=True, eq=False)
class LabelsNeeded:
    """Numbers of further items to label, for each of B groups.

    Attributes
    ----------
    asked : float
        The requested width of the interval.
    quantity : str
        What the interval is of: "mean class", "mean position", or a class.
    level : float
        Level of the interval.
    keys : Keys or None
        The groups.
    n_items, n_labelled : ndarray (B,)
        All items of each group, and those that have a label already.
    labels : ndarray (B,)
        How many more to label.
    now, width : ndarray (B,)
        Width of the interval as it is (NaN: none that rests on enough labels), and with that many labels; above `asked`
        where even all items are not enough.
    basis : ndarray (B,) of str
        What the interval will rest on, see :class:`ordinalq.inference.IntervalOptions`.
    n_stated : int
        Labels per group for which a width is stated in addition: 100, 30 or 10, so that half of the groups have more.
    width_of_stated : ndarray (B,) or None
        Width of the interval with `n_stated` more labels. NaN for groups with fewer unlabelled items.
    """

    asked: float
    quantity: str
    level: float
    keys: Keys | None
    n_items: Counts
    n_labelled: Counts
    labels: Counts
    now: Floats
    width: Floats
    basis: npt.NDArray[np.str_]
    n_stated: int = STATED[0]
    width_of_stated: Floats | None = None

    @property
    def typical_width(self) -> float:
        """Median of `width_of_stated`; NaN if no group has a width."""
        widths = np.zeros(0) if self.width_of_stated is None else self.width_of_stated
        known = widths[np.isfinite(widths)]
        return float(np.median(known)) if len(known) else np.nan

    @property
    def is_of_mean(self) -> bool:
        """Whether the interval is that of the mean class or mean position."""
        return self.quantity in MEANS

    @property
    def total(self) -> int:
        """Labels of all groups together."""
        return int(self.labels.sum())

    def take(self, rows: Any, keys: Keys | None = None) -> "LabelsNeeded":
        """Return some groups, or all in another order; `keys` replace theirs."""
        names = ("n_items", "n_labelled", "labels", "now", "width", "basis", "width_of_stated")
        known = [name for name in names if getattr(self, name) is not None]
        arrays: dict[str, Any] = {name: getattr(self, name)[rows] for name in known}
        if keys is None and self.keys is not None:
            keys = self.keys[rows]
        return replace(self, keys=keys, **arrays)

    def frame(self) -> Any:
        """Return one row per group as a pandas frame."""
        import pandas as pd

        groups = {} if self.keys is None else self.keys.frame()
        widths = {"width_now": self.now, "width": self.width}
        counts = {"n_items": self.n_items, "n_labelled": self.n_labelled, "labels": self.labels}
        return pd.DataFrame(groups | counts | widths | {"basis": self.basis})

    def draw(self, groups: Any, labels: Any = None, *, random_state: Any = 0) -> Index:
        """Draw the items to label at random within each group.

        Items of which the classifier is least certain would teach a classifier more, but they are not like the others:
        their labels say nothing of the group as a whole.

        Parameters
        ----------
        groups : array-like (N,)
            The group of each item, as the numbers were made for.
        labels : array-like (N,), default=None
            Labels that there are already, None or NaN for the others.
        random_state : int or Generator, default=0
            Seed of the draw.

        Returns
        -------
        ndarray
            Positions 0..N-1 of the items, ascending.
        """
        keys, codes = Keys.of(groups)
        if self.keys is None or keys.tolist() != self.keys.tolist():
            raise ValueError("groups must be those for which the numbers of labels were computed.")
        free = np.ones(len(codes), dtype=bool)
        if labels is not None:
            free = np.array([is_missing(label) for label in np.asarray(labels, dtype=object).tolist()], dtype=bool)
        return drawn_items(self.labels, codes, free, check_random_state(random_state))


def drawn_items(n_labels: Counts, codes: Index, free: Mask, rng: np.random.Generator) -> Index:
    """Draw n_labels[b] of the free items of each group b, in ascending order."""
    order = rng.permutation(np.flatnonzero(free))
    order = order[np.argsort(codes[order], kind="stable")]
    group = codes[order]
    rank = np.arange(len(order)) - np.searchsorted(group, group)
    return np.sort(order[rank < n_labels[group]])


def labels_needed(
    quantifier: FittedQuantifier,
    summary: Summary,
    width: float = 0.05,
    quantity: Any = "mean",
    *,
    level: float = 0.95,
    options: IntervalOptions | None = None,
) -> LabelsNeeded:
    """Return numbers of labels for intervals of at most `width`.

    Labels are taken to be like the group, as far as it is known: their shares are those of the estimate, and their
    looks those of its items (for a model of groups) or of the held-out items of the same classes. The other parameters
    are those of `Quantifier.labels_needed`; the summary has the present labels, possibly all missing.
    """
    width, level = check_real("width", width, low=0, open_low=True), check_level(level)
    options = IntervalOptions() if options is None else options
    statistic = _statistic(quantifier, quantity)
    if "g" not in summary.totals:
        raise ValueError("summary must have been made with labels=. Pass labels=[None] * N if no item is labelled.")
    if WEIGHTED in summary.totals:
        raise ValueError("labels_needed does not support label_inclusion.")
    if summary.has_weights:
        raise ValueError("labels_needed does not support sample_weight.")
    estimates = estimate(quantifier, summary, None, replace(options, basis="auto"))
    alone = by_labels_alone(quantifier, estimates, options)
    known = np.asarray(summary.n_labelled)

    def widths(more: Floats, drift: Drift | None) -> Floats:
        expected = _expected(quantifier, summary, estimates.prevalences, more)
        found = np.full(len(summary), np.nan)
        rows = np.flatnonzero(alone & has_enough_labels(known + more, summary.sizes))
        if len(rows):
            found[rows] = _width(from_labels(quantifier, expected, rows, level, options.estimand).bounds, statistic)
        # Methods that collect nothing need no context.
        context: dict[str, Any] = {} if drift is None else {"context": drift}
        closed = None if alone.all() else quantifier.infer(expected, options, level, **context).bounds
        if closed is not None:
            if options.estimand == "sample":
                closed = closed.within(*label_limits(expected))
            found = np.where(alone, found, _width(closed, statistic))
        return found

    drift, most = estimates.drift, summary.sizes - known
    now = widths(np.zeros(len(summary)), drift)
    labels = _least(lambda more: ~(widths(more, drift) <= width), now, width, most)
    if not alone.all() and labels.any():
        # Labels of all groups also determine the common offset, so that other numbers are needed.
        drift = drift_of(quantifier, _expected(quantifier, summary, estimates.prevalences, labels))
        labels = _least(lambda more: ~(widths(more, drift) <= width), now, width, most)
    basis = np.where(alone, "labels", "model")
    stated = next((n for n in STATED if np.median(most) > n), STATED[-1])
    return LabelsNeeded(
        width,
        scale_of(quantifier).name if statistic is None else str(quantity),
        level,
        summary.keys,
        summary.n_items,
        known,
        labels.astype(np.int64),
        now,
        widths(labels, drift),
        basis,
        stated,
        np.where(most > stated, widths(np.minimum(stated, most), drift), np.nan),
    )


@dataclass(frozen=True)
class SpreadLabels:
    """Labels spread at random over the items of all groups.

    Attributes
    ----------
    n_labels : int
        Number of items to label.
    now, width : float
        Median over the groups of the width of their intervals: without these labels, and expected with them.
    quantity : str
        Quantity of the interval: "mean class", "mean position", or a class.
    level : float
        Level of the interval.
    asked : float or None
        Median width to reach; None if the number of labels was given.
    """

    n_labels: int
    now: float
    width: float
    quantity: str
    level: float
    asked: float | None = None

    def __str__(self) -> str:
        what = self.quantity if self.quantity in MEANS else f"prevalence of class {self.quantity}"
        drawn = f"{self.n_labels:,} label{'s' * (self.n_labels != 1)}, drawn at random from all groups"
        bring = "brings" if self.n_labels == 1 else "bring"
        interval = f"the typical (median) {percent(self.level)} interval of the {what}"
        if self.asked is not None and self.width > self.asked:
            return f"Not even {drawn}, {bring} {interval} from {self.now:.3f} to {self.asked:g}."
        return f"{drawn}, {bring} {interval} from {self.now:.3f} to about {self.width:.3f}."


def spread_labels(
    quantifier: FittedQuantifier,
    summary: Summary,
    width: float | None = None,
    n_labels: int | None = None,
    quantity: Any = "mean",
    *,
    level: float = 0.95,
    options: IntervalOptions | None = None,
    random_state: Any = 0,
) -> SpreadLabels:
    """Return the effect of labels spread at random over all summarized groups.

    Labels of any group inform about the common offset of all groups. Expected labels are as in :func:`labels_needed`.

    Parameters
    ----------
    quantifier : FittedQuantifier
        A quantifier with a model of groups.
    summary : Summary
        The groups, summarized with labels, if only missing ones.
    width : float, default=None
        Median width of the intervals to reach.
    n_labels : int, default=None
        Number of labels, in place of `width`.
    quantity : "mean" or a class, default="mean"
        Quantity of the interval.
    level : float, default=0.95
        Level of the interval.
    options : IntervalOptions, default=None
        Options for interval estimation.
    random_state : int or Generator, default=0
        Seed of the draw.

    Returns
    -------
    SpreadLabels
    """
    if (width is None) == (n_labels is None):
        raise ValueError("Pass either width or n_labels.")
    if not quantifier.traits.has_group_model:
        raise TypeError(
            f"quantifier must have a model of groups, got {type(quantifier).__name__}. Use labels_needed for others."
        )
    options, statistic = IntervalOptions() if options is None else options, _statistic(quantifier, quantity)
    free = np.rint(summary.sizes - np.asarray(summary.n_labelled)).astype(np.int64)
    order = check_random_state(random_state).permutation(np.repeat(np.arange(len(free)), free))
    P = estimate(quantifier, summary, None, options).prevalences

    def typical(m: int) -> float:
        more = np.bincount(order[:m], minlength=len(free)).astype(np.float64)
        bounds = estimate(quantifier, _expected(quantifier, summary, P, more), level, options).bounds
        assert bounds is not None
        return float(np.median(_width(bounds, statistic)))

    name = scale_of(quantifier).name if statistic is None else str(quantity)
    now = typical(0)
    if n_labels is not None:
        n_labels = check_integer("n_labels", n_labels, minimum=0)
        if n_labels > len(order):
            raise ValueError(
                f"n_labels must be at most the number of unlabelled items, {len(order):,}, got {n_labels:,}."
            )
        return SpreadLabels(n_labels, now, typical(n_labels), name, check_level(level))
    wanted = check_real("width", width, low=0, open_low=True)
    too_few, enough_ = 0, len(order)
    if now <= wanted or typical(enough_) > wanted:
        m = 0 if now <= wanted else enough_
        return SpreadLabels(m, now, typical(m), name, check_level(level), wanted)
    while enough_ - too_few > max(1, enough_ // 50):
        middle = (too_few + enough_) // 2
        too_few, enough_ = (middle, enough_) if typical(middle) > wanted else (too_few, middle)
    return SpreadLabels(enough_, now, typical(enough_), name, check_level(level), wanted)


def _least(too_wide: Callable[[Floats], Mask], now: Floats, width: float, most: Floats) -> Floats:
    """Return the least numbers (B,) for which intervals are narrow, up to `most`."""
    low, high = np.zeros(len(most)), np.where(now <= width, 0, most)
    # Invariant: too wide at low, unless high is 0 too; narrow enough at high, or nothing is.
    while (high - low > 1).any():
        middle = np.where(high - low > 1, np.floor((low + high) / 2), high)
        wide = too_wide(middle)
        low, high = np.where(wide, np.minimum(middle, high - 1), low), np.where(wide, high, middle)
    return high


def _statistic(quantifier: FittedQuantifier, quantity: Any) -> int | None:
    """Return the index of a class, None for the mean class."""
    if isinstance(quantity, str) and quantity == "mean":
        return None
    names = [str(label) for label in quantifier.classes_.tolist()]
    if str(quantity) not in names:
        raise ValueError(f"quantity must be 'mean' or one of the classes {', '.join(names)}, got {quantity!r}.")
    return names.index(str(quantity))


def _width(bounds: Bounds, statistic: int | None) -> Floats:
    if statistic is None:
        return bounds.mean_upper - bounds.mean_lower
    return np.asarray(bounds.upper[:, statistic] - bounds.lower[:, statistic])


def _expected(quantifier: FittedQuantifier, summary: Summary, P: Floats, more: Floats) -> Summary:
    """Return the summary with `more` (B,) expected labels for prevalences P (B, n)."""
    V, codes = quantifier.held_out_.S, quantifier.held_out_.codes
    g, n = class_predictions(quantifier, V), P.shape[1]
    by_class = [g[codes == i] for i in range(n)]
    mean = np.stack([part.mean(axis=0) for part in by_class])
    square = np.stack([part.T @ part / len(part) for part in by_class])
    counts = more[:, None] * P
    totals = dict(summary.totals)
    totals["labels"] = totals["labels"] + counts
    totals["labels eg"] = totals["labels eg"] + counts[:, :, None] * mean
    totals["labels gg"] = totals["labels gg"] + np.tensordot(counts, square, axes=1)
    # As if the predictions of the labelled items were those of all: the estimate does not move.
    m = np.maximum(totals["labels"].sum(axis=1, keepdims=True), 1)
    totals["g"] = totals["weight"][:, None] * totals["labels eg"].sum(axis=1) / m
    if "labels f" in totals:
        # Those without a label look on average as they do.
        others = np.maximum(summary.sizes - summary.totals["labels"].sum(axis=1), 1)[:, None]
        rest = (totals["f"] - summary.totals["labels f"]) / others
        totals["labels f"] = summary.totals["labels f"] + more[:, None] * rest
    return replace(summary, totals=totals)
