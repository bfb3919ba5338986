"""Differences between groups with their intervals."""

from typing import TYPE_CHECKING, Any

import numpy as np

from ordinalq._utils.text import cut, plain, shortened
from ordinalq._utils.validation import check_integer
from ordinalq.plot import style
from ordinalq.plot.style import Axes

if TYPE_CHECKING:
    from ordinalq.inference.comparison import Comparison

# Characters of the name of a group.
NAME = 18


def comparison(found: "Comparison", ax: "Axes | None" = None, max_pairs: int = 30, xlabel: str = "") -> "Axes":
    """Draw a comparison of groups: where two differ, or by how much many pairs do.

    For one pair, the difference of the share of each class and all above is drawn, which is positive where the first
    group has more in the upper classes; of several, the difference of the mean class of each.

    Parameters
    ----------
    found : Comparison
        As :meth:`ordinalq.Estimates.compare` gives it.
    ax : Axes, default=None
        None stands for a new figure.
    max_pairs : int, default=30
        At most this many are drawn; a note says how many there are.
    xlabel : str, default=""
        What the classes are.
    """
    check_integer("max_pairs", max_pairs, minimum=1)
    return _cuts(found, ax, xlabel) if len(found) == 1 else _pairs(found, ax, max_pairs)


def _cuts(found: "Comparison", ax: "Axes | None", xlabel: str) -> "Axes":
    """Draw one pair: shares at or above each class but the first."""
    names = [f"≥ {plain(str(label))}" for label in found.classes[1:]]
    a, b = shortened([plain(found.a.labels()[0]), plain(found.b.labels()[0])], NAME)
    if ax is None:
        width = min(3.6 + 0.55 * len(names), 9.0)
        ax = style.new_axes((width, 3.2 + style.name_height(names, width)))
    x = np.arange(len(names))
    ends = (-100 * found.cumulative_upper[0, :-1], -100 * found.cumulative_lower[0, :-1])
    _whiskers(ax, x, ends, -100 * found.cumulative[0, :-1], upright=True)
    ax.axhline(0, color=style.SOFT, linewidth=1.0, zorder=1)
    style.tidy(ax, grid="y")
    ax.set_xlim(-0.6, len(names) - 0.4)
    style.name_classes(ax, names)
    if xlabel:
        style.literal([ax.set_xlabel(cut(plain(xlabel), style.NAME_LENGTH))])
    style.literal([ax.set_ylabel(f"{a} - {b}, percentage points")])
    mean = f"mean class {found.mean[0]:+.2f} ({found.mean_lower[0]:+.2f} to {found.mean_upper[0]:+.2f})"
    style.literal([ax.set_title(f"{mean}, {100 * found.level:g} % intervals", fontsize="small", loc="left")])
    return ax


def _pairs(found: "Comparison", ax: "Axes | None", max_pairs: int) -> "Axes":
    """Draw the difference of the mean class of each pair, one below the other."""
    k = min(len(found), max_pairs)
    short = [shortened([plain(name) for name in keys.labels()[:k]], NAME) for keys in (found.a, found.b)]
    names = [f"{a} - {b}" for a, b in zip(*short, strict=True)]
    if ax is None:
        ax = style.new_axes((3.2 + style.LETTER_SMALL * max(map(len, names)), 1.1 + 0.26 * k))
    y = np.arange(k)
    _whiskers(ax, y, (found.mean_lower[:k], found.mean_upper[:k]), found.mean[:k], upright=False)
    ax.axvline(0, color=style.SOFT, linewidth=1.0, zorder=1)
    style.tidy(ax, grid="x")
    ax.set_yticks(y, names, fontsize="small")
    style.literal(ax.get_yticklabels())
    ax.set_ylim(k - 0.4, -0.6)
    part = "" if k == len(found) else f", the first {k} of {len(found)} pairs"
    ax.set_xlabel(f"difference of the mean class{part}", fontsize="small")
    title = f"{100 * found.level:g} % intervals, for all pairs together"
    ax.set_title(title, fontsize="small", loc="left")
    return ax


def _whiskers(ax: "Axes", places: Any, ends: tuple[Any, Any], values: Any, *, upright: bool) -> None:
    """Draw values with intervals from end to end, at places on the other axis."""
    middle, half = (ends[0] + ends[1]) / 2, (ends[1] - ends[0]) / 2
    look: dict[str, Any] = {"fmt": "none", "ecolor": style.ink(), "elinewidth": 1.2, "capsize": 3, "zorder": 3}
    dots: dict[str, Any] = {"color": style.BLUE, "markersize": 6, "zorder": 4}
    if upright:
        ax.errorbar(places, middle, yerr=half, **look)
        ax.plot(places, values, "o", **dots)
    else:
        ax.errorbar(middle, places, xerr=half, **look)
        ax.plot(values, places, "o", **dots)
