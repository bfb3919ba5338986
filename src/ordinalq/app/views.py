"""Tables and small plots of estimates in the web app."""

from typing import Any, NamedTuple

import numpy as np

from ordinalq._utils.validation import Array, Index
from ordinalq.inference.estimates import Estimates, largest_first
from ordinalq.inference.predict import MIN_RANKED

# Groups on one page and in one figure, as :func:`ordinalq.plot.distributions` draws them.
PER_PAGE, PER_FIGURE = 50, 30
# A small plot: distance and width of bars, and height, in its units.
STEP, BAR, HEIGHT = 14, 10, 40


class GroupSelection(NamedTuple):
    """Selection of groups: order, text in the name, minimum number of items."""

    sort: str = ""
    find: str = ""
    least: int = 1

    @classmethod
    def of(cls, query: Any, classes: Array) -> "GroupSelection":
        """Read the selection from the URL; invalid values are ignored."""
        sort = query.get("sort", "")
        known = ["items", "mean", "-mean", *(str(label) for label in classes)]
        least = query.get("least", "1")
        number = int(least) if least.isdecimal() and len(least) < 10 else 1
        return cls(sort if sort in known else "", query.get("find", "")[:200], max(number, 1))


def positions(estimates: Estimates, wanted: GroupSelection) -> Index:
    """Return the positions of the selected groups in order.

    By their means, groups of fewer than `MIN_RANKED` items come last: single items would lead otherwise.
    """
    kept = np.flatnonzero(estimates.n_items >= wanted.least)
    if wanted.find and estimates.keys is not None:
        names = estimates.keys.labels()
        kept = np.array([b for b in kept if wanted.find.casefold() in names[b].casefold()], dtype=np.intp)
    if not wanted.sort or not len(kept):
        return kept
    P = estimates.prevalences[kept]
    kept = kept[largest_first(wanted.sort, estimates.classes, estimates.n_items[kept], P, estimates.scale.numbers)]
    if wanted.sort not in ("mean", "-mean"):
        return kept
    return kept[np.argsort(estimates.n_items[kept] < MIN_RANKED, kind="stable")]


def drawn(which: Index, wanted: GroupSelection) -> tuple[Index, str]:
    """Return the groups of a figure, and a text about groups that are left out.

    The figure has the first groups of a selected order, otherwise the largest ones.
    """
    if len(which) <= PER_FIGURE:
        return which, ""
    kind, order = ("first", " in the order below") if wanted.sort else ("largest", "")
    return which[:PER_FIGURE] if wanted.sort else which, f", the {kind} {PER_FIGURE} of {len(which):,} groups{order}"


class Rows(NamedTuple):
    """Rows of the table of groups: positions, names, estimates, scale of plots."""

    positions: Index
    names: list[str]
    estimates: Estimates
    top: float

    @classmethod
    def of(cls, estimates: Estimates, which: Index) -> "Rows":
        """Return the rows of some groups; their plots have the same scale."""
        part = estimates.take(which)
        names = ["all rows"] * len(part) if part.keys is None else part.keys.labels()
        drawn = part.prevalences if part.bounds is None else np.maximum(part.prevalences, part.upper)
        return cls(which, names, part, float(drawn.max(initial=0.0)) or 1.0)

    @property
    def size(self) -> tuple[int, int, int]:
        """Width and height of a small plot, and width of a bar."""
        return STEP * len(self.estimates.classes), HEIGHT, BAR

    def bars(self, b: int) -> list[tuple[float, ...]]:
        """Return x, top and height of each bar, and x, top and bottom of its interval."""
        shares, bounds = self.estimates.prevalences[b], self.estimates.bounds
        ends = (shares, shares) if bounds is None else (bounds.upper[b], bounds.lower[b])
        height, top, bottom = (np.round(HEIGHT * np.clip(p, 0, self.top) / self.top, 2) for p in (shares, *ends))
        x = STEP * np.arange(len(shares))
        columns = (x, HEIGHT - height, height, x + BAR / 2, HEIGHT - top, HEIGHT - bottom)
        return list(zip(*(column.tolist() for column in columns), strict=True))


def fit_counts(estimates: Estimates) -> dict[str, int]:
    """Return the number of groups for each verdict of the fit test."""
    if estimates.fit is None:
        return {}
    values, counts = np.unique(estimates.fit, return_counts=True)
    return {str(value): int(count) for value, count in zip(values, counts, strict=True)}
