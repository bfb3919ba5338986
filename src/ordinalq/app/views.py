"""What pages show of estimates: which groups in which order, and small pictures of their distributions."""

from typing import Any, NamedTuple

import numpy as np

from ordinalq.contract.estimates import Estimates, largest_first
from ordinalq.validation import Array, Index

# Groups on one page, and in one picture, as :func:`ordinalq.plot.distributions` draws them.
PER_PAGE, PER_PICTURE = 50, 30
# A small picture: width of a bar with its gap, and height, in its own units.
STEP, BAR, HEIGHT = 14, 10, 40


class Bar(NamedTuple):
    """A class in a small picture: where its bar and its interval stand."""

    x: float
    y: float
    height: float
    middle: float
    top: float
    bottom: float


class Share(NamedTuple):
    """The share of a class, with its interval where there is one."""

    name: str
    p: float
    lower: float | None
    upper: float | None


class Row(NamedTuple):
    """A group: its position among all, its name, and what is known of it."""

    position: int
    name: str
    n_items: int
    shares: list[Share]
    mean: float
    mean_lower: float | None
    mean_upper: float | None
    fit: str
    n_labelled: int | None
    basis: str
    bars: list[Bar]


class Wanted(NamedTuple):
    """Which groups are shown: in which order, with which words in their name, and with how many items."""

    sort: str = ""
    find: str = ""
    least: int = 1

    @classmethod
    def of(cls, query: Any, classes: Array) -> "Wanted":
        """Read it from the address; what is no choice is ignored."""
        sort = query.get("sort", "")
        known = ["items", "mean", *(str(label) for label in classes)]
        least = query.get("least", "1")
        number = int(least) if least.isdecimal() and len(least) < 10 else 1
        return cls(sort if sort in known else "", query.get("find", "")[:200], max(number, 1))


def positions(estimates: Estimates, wanted: Wanted) -> Index:
    """Return the groups that are wanted, in order, as positions among all."""
    kept = np.flatnonzero(estimates.n_items >= wanted.least)
    if wanted.find and estimates.keys is not None:
        names = estimates.keys.labels()
        kept = np.array([b for b in kept if wanted.find.casefold() in names[b].casefold()], dtype=np.intp)
    if not wanted.sort or not len(kept):
        return kept
    P = estimates.prevalences[kept]
    return kept[largest_first(wanted.sort, estimates.classes, estimates.n_items[kept], P)]


def drawn(which: Index, wanted: Wanted) -> tuple[Index, str]:
    """Return the groups that a picture is given, and what is said of those that it has no room for.

    It draws the first in an order that was asked for; otherwise it takes the largest by itself.
    """
    if len(which) <= PER_PICTURE:
        return which, ""
    kind, order = ("first", " in the order below") if wanted.sort else ("largest", "")
    return which[:PER_PICTURE] if wanted.sort else which, f", the {kind} {PER_PICTURE} of {len(which):,} groups{order}"


def rows(estimates: Estimates, which: Index) -> list[Row]:
    """Return what is shown of some groups."""
    part = estimates.take(which)
    names = ["all rows"] * len(part) if part.keys is None else part.keys.labels()
    top = float(max(part.prevalences.max(initial=0.0), 0 if part.bounds is None else part.upper.max(initial=0.0)))
    found = []
    for b, position in enumerate(which):
        bounds = part.bounds
        found.append(
            Row(
                int(position),
                names[b],
                int(part.n_items[b]),
                _shares(part, b),
                float(part.mean[b]),
                None if bounds is None else float(bounds.mean_lower[b]),
                None if bounds is None else float(bounds.mean_upper[b]),
                "" if part.fit is None else str(part.fit[b]),
                None if part.n_labelled is None else int(part.n_labelled[b]),
                "" if part.basis is None else str(part.basis[b]),
                _bars(part, b, top or 1.0),
            )
        )
    return found


def _shares(part: Estimates, b: int) -> list[Share]:
    lower, upper = (None, None) if part.bounds is None else (part.lower[b], part.upper[b])
    return [
        Share(
            str(label),
            float(part.prevalences[b, i]),
            None if lower is None else float(lower[i]),
            None if upper is None else float(upper[i]),
        )
        for i, label in enumerate(part.classes)
    ]


def _bars(part: Estimates, b: int, top: float) -> list[Bar]:
    """Return a small picture; all groups of a page have the same scale."""

    def height(p: float) -> float:
        return round(HEIGHT * min(max(p, 0.0), top) / top, 2)

    bars = []
    for i, share in enumerate(_shares(part, b)):
        x, tall = i * STEP, height(share.p)
        ends = [HEIGHT - height(share.p if end is None else end) for end in (share.upper, share.lower)]
        bars.append(Bar(x, HEIGHT - tall, tall, x + BAR / 2, *ends))
    return bars


def fit_counts(estimates: Estimates) -> dict[str, int]:
    """Return how many groups have which verdict of the fit."""
    if estimates.fit is None:
        return {}
    values, counts = np.unique(estimates.fit, return_counts=True)
    return {str(value): int(count) for value, count in zip(values, counts, strict=True)}
