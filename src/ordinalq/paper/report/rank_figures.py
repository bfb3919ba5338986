"""Critical-difference diagrams: methods on an axis of ranks; bars join those that do not differ (Demsar, 2006)."""

from collections.abc import Iterator, Mapping
from typing import Any

from ordinalq._utils.text import cut
from ordinalq.paper.report.facts import display_name
from ordinalq.paper.report.picture import Picture, looks_of, sheet
from ordinalq.paper.report.significance import Ranking
from ordinalq.plot.style import INK, LETTER, NAME_LENGTH, SOFT, Axes, Look

WIDTH, STEP = 9.6, 0.065  # inches
# Heights below the axis of ranks: the first bar, and the distances of bars and of names.
FIRST_BAR, BAR, NAME = 0.4, 0.28, 0.42
# More ranks than this are not all numbered.
MAX_TICKS = 25


def rank_pictures(found: Mapping[tuple[str, str], Ranking], subtitle: str) -> Iterator[Picture]:
    """Draw a diagram for each protocol and measure."""
    for (protocol, measure), ranking in found.items():
        if len(ranking.ranks) > 1:
            title = f"Average ranks, {measure.upper()} under {protocol}"
            yield critical_difference(ranking, f"ranks_{measure}_{protocol}", title, subtitle)


def critical_difference(ranking: Ranking, name: str, title: str, subtitle: str = "") -> Picture:
    """Draw one diagram."""
    order = sorted(ranking.ranks, key=lambda method: ranking.ranks[method])
    looks = looks_of(order)
    k = len(order)
    half = -(-k // 2)
    bars = ranking.groups()
    first_name = 0.8 + BAR * len(bars)
    depth = first_name + NAME * half
    # Room for a name, its rank and the marker between them.
    side = (0.5 + LETTER * max(len(_name(method)) + 7 for method in order)) / WIDTH
    unit = STEP / (WIDTH * (1 - 2 * side)) * (k - 1)
    with sheet(WIDTH, 1.0 + 0.52 * depth, constrained=False) as (figure, save):
        axes = figure.add_axes((side, 0.02, 1 - 2 * side, 0.93))
        axes.set(xlim=(1, k), ylim=(depth, -1.5))
        axes.set_axis_off()
        _draw_axis(axes, k, ranking.difference, subtitle)
        for position, method in enumerate(order):
            left = position < half
            level = first_name + NAME * (position if left else k - 1 - position)
            _draw_method(axes, method, ranking.ranks[method], level, looks[method], unit, left)
        for number, bar in enumerate(bars):
            margin = 0.004 * (k - 1)
            ends = [ranking.ranks[bar[0]] - margin, ranking.ranks[bar[-1]] + margin]
            level = FIRST_BAR + BAR * number
            axes.plot(ends, [level, level], color=INK, lw=3.2, solid_capstyle="butt", clip_on=False)
        return save(
            name,
            title,
            "Methods at their average rank, 1 is best. Thick bars join methods whose ranks do not differ significantly "
            f"(Nemenyi, level {ranking.level:g}, {ranking.n_blocks} blocks).",
            section="ranking",
        )


def _draw_axis(axes: "Axes", k: int, difference: float, subtitle: str) -> None:
    """Draw the axis of ranks and the critical difference above it."""
    small: dict[str, Any] = {"va": "bottom", "fontsize": 8}
    axes.plot([1, k], [0, 0], color=INK, lw=1.1, clip_on=False)
    for tick in range(1, k + 1, 1 if k <= MAX_TICKS else 5):
        axes.plot([tick, tick], [-0.14, 0], color=INK, lw=0.9, clip_on=False)
        axes.text(tick, -0.22, str(tick), ha="center", **small)
    if difference < k - 1:
        axes.plot([1, 1 + difference], [-1.0, -1.0], color=INK, lw=1.4, clip_on=False, marker="|", ms=6)
    wide = "wider than the axis, " if difference >= k - 1 else ""
    axes.text(1, -1.15, f"critical difference {wide}{difference:.2f}", ha="left", **small)
    axes.text(k, -1.15, subtitle, ha="right", color=SOFT, **small)


def _draw_method(axes: "Axes", method: str, rank: float, level: float, look: Look, unit: float, left: bool) -> None:
    """Draw a method at its rank, and a line to its name at the left or right; `unit` is a small step."""
    color, marker, _ = look
    side = -1 if left else 1
    edge = (axes.get_xlim()[0] if left else axes.get_xlim()[1]) + side * 2 * unit
    axes.plot([rank, rank, edge], [0, level, level], color=SOFT, lw=0.8, clip_on=False, zorder=1)
    axes.plot(rank, 0, marker, ms=5, color=color, clip_on=False, zorder=4)
    axes.plot(edge + side * 1.2 * unit, level, marker, ms=5, color=color, clip_on=False)
    name = f"{_name(method)}  {rank:.2f}" if left else f"{rank:.2f}  {_name(method)}"
    axes.text(edge + side * 3 * unit, level, name, ha="right" if left else "left", va="center", fontsize=9)


def _name(method: str) -> str:
    return cut(display_name(method), NAME_LENGTH)
