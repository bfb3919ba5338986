"""The common style of all plots.

Colours can be distinguished by colour-blind people, and markers, dashes or lightness carry the same difference in grey.
"""

import sys
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from ordinalq._utils.extras import require_extra
from ordinalq._utils.text import cut

if TYPE_CHECKING:
    from matplotlib.artist import Artist
    from matplotlib.axes import Axes as Axes
    from matplotlib.axis import Axis
    from matplotlib.figure import Figure as Figure
    from matplotlib.text import Text
else:  # matplotlib is loaded when something is drawn
    Axes = Figure = Any

# The palette of Okabe and Ito.
BLUE, ORANGE, GREEN, PINK, VERMILION, SKY = "#0072B2", "#E69F00", "#009E73", "#CC79A7", "#D55E00", "#56B4E9"
INK, SOFT, GRID, BAR = "#222222", "#767676", "#DDDDDD", "#8FC1E3"
# On a dark background, such as that of matplotlib's style "dark_background".
DARK_INK, DARK_GRID, DARK_BAR = "#F0F0F0", "#3A3A3A", "#2F6A94"

Dashes = Literal["-", "--", "-.", ":", "none"] | tuple[int, tuple[int, ...]]
Look = tuple[str, str, Dashes]
# Lines one after another: colour, marker and dashes all differ.
LOOKS: tuple[Look, ...] = (
    (BLUE, "o", "-"),
    (VERMILION, "s", "--"),
    (GREEN, "^", "-."),
    (PINK, "D", ":"),
    (ORANGE, "v", (0, (6, 1, 1, 1))),
)
MARKERS = "os^Dv<>Pp*Xhd8H"
COLOR_MAP = "cividis"
# Longer class names are cut, and more of them are not all written.
NAME_LENGTH = 22
MAX_NAMES = 30
# Mean width of a letter in inches, in matplotlib's usual sizes "medium" and "small".
LETTER, LETTER_SMALL = 0.083, 0.07
# A legend next to the axes.
BESIDE: dict[str, Any] = {"loc": "center left", "bbox_to_anchor": (1.0, 0.5), "frameon": False, "fontsize": "small"}
# For figures that are written to files, independent of the caller's settings.
FILE_STYLE: dict[Any, Any] = {
    "font.family": "DejaVu Sans",
    "font.size": 9.0,
    "svg.hashsalt": "ordinalq",
    "svg.fonttype": "path",
    "text.parse_math": False,  # a class may be called "$x$"
    "figure.facecolor": "white",
    "savefig.facecolor": "auto",
    "axes.facecolor": "white",
    "text.color": INK,
    "axes.labelcolor": INK,
    "axes.titlecolor": INK,
    "axes.titlesize": 10.0,
    "axes.linewidth": 0.8,
    "xtick.labelcolor": INK,
    "ytick.labelcolor": INK,
    "legend.frameon": False,
}


def is_dark() -> bool:
    """Return whether matplotlib's settings ask for a dark background."""
    from matplotlib import colors, rcParams

    return sum(colors.to_rgb(rcParams["axes.facecolor"])) < 1.5


def ink() -> str:
    """Return the colour of text and intervals on the background and on bars."""
    return DARK_INK if is_dark() else INK


def bar() -> str:
    """Return the colour of bars and bands."""
    return DARK_BAR if is_dark() else BAR


def new_figure(size: tuple[float, float]) -> Any:
    """Return a new figure of a size in inches.

    In a notebook, and if the user has imported pyplot, the figure is registered with pyplot, so that it is shown.
    Otherwise it is not, so that figures of servers and long runs are freed.
    """
    with require_extra("plot", "plotting"):
        from matplotlib.figure import Figure

    if {"matplotlib.pyplot", "ipykernel"} & set(sys.modules):
        import matplotlib.pyplot as plt

        return plt.figure(figsize=size, layout="constrained")
    return Figure(figsize=size, layout="constrained")


def new_axes(size: tuple[float, float]) -> "Axes":
    """Return axes of a new figure."""
    axes: Axes = new_figure(size).subplots()
    return axes


def sign(figure: Any, estimate: Any) -> None:
    """Name the model of estimates, if it is known, above a new figure."""
    provenance = getattr(estimate, "provenance", None)
    if provenance is not None:
        literal([figure.suptitle(provenance.short, x=0.995, ha="right", fontsize=5, color=SOFT)])


def figure_of(ax: "Axes") -> Any:
    """Return the figure or part of a figure that the axes stand in."""
    return ax.get_figure(root=False)


def tidy(ax: "Axes", grid: Literal["x", "y", "both"] = "both") -> None:
    """Leave out of the axes what carries no information."""
    ax.spines[["top", "right"]].set_visible(False)
    for side in ("left", "bottom"):
        ax.spines[side].set_color(SOFT)
    ax.grid(True, axis=grid, color=DARK_GRID if is_dark() else GRID, linewidth=0.7)
    ax.set_axisbelow(True)
    ax.tick_params(color=SOFT)


def shades(n: int) -> list[Any]:
    """Return n colours from dark to light, the lightest still visible on white."""
    from matplotlib import colormaps

    return [colormaps[COLOR_MAP](value) for value in np.linspace(0.0, 0.9, n)]


def literal(texts: Iterable["Text"]) -> None:
    """Let names be shown as they are: "$5 to $9" is not a formula."""
    for text in texts:
        text.set_parse_math(False)


# Names of classes


def name_classes(
    ax: "Axes", names: Sequence[str], *, size: str = "medium", width: float | None = None, upright: bool = False
) -> None:
    """Write class names below the axes, slanted or thinned out if they are many."""
    step = -(-len(names) // MAX_NAMES)
    shown = [cut(name, NAME_LENGTH) for name in names[::step]]
    if width is None:
        width = ax.get_window_extent().width / figure_of(ax).dpi
    angle = _angle(shown, width, LETTER if size == "medium" else LETTER_SMALL, upright)
    ax.set_xticks(range(0, len(names), step), shown, fontsize=size)
    literal(ax.get_xticklabels())
    if angle:
        ax.tick_params(axis="x", rotation=angle)
        for text in ax.get_xticklabels():
            text.set(ha="center" if angle == 90 else "right", rotation_mode="default" if angle == 90 else "anchor")


def name_height(names: Sequence[str], width: float, letter: float = LETTER, *, upright: bool = False) -> float:
    """Return the height in inches of the names of classes below a figure."""
    angle = _angle(names, width, letter, upright)
    return 0.2 + letter * min(max(map(len, names)), NAME_LENGTH) * float(np.sin(np.radians(angle)))


def _angle(names: Sequence[str], width: float, letter: float, upright: bool) -> int:
    """Return the angle in degrees at which class names fit into a width in inches."""
    longest = max(map(len, names))
    # One letter is left free between names.
    room = width / len(names) / letter - 1
    if longest <= max(room, 1):
        return 0
    return 90 if upright or longest <= 4 or room < 2 else 40


# Axes of numbers


def number_axis(axis: "Axis", values: Iterable[float] = ()) -> None:
    """Give an axis few plain numbers; logarithmic if values span a factor of four."""
    from matplotlib.ticker import FuncFormatter, LogLocator, MaxNLocator, NullFormatter, NullLocator

    low, high = min(values, default=0.0), max(values, default=0.0)
    if low > 0 and high / low > 4:
        axis.axes.set_xscale("log") if axis.axis_name == "x" else axis.axes.set_yscale("log")  # type: ignore[attr-defined]
        few = (1, 2, 5) if high / low < 40 else (1,)
        axis.set_major_locator(LogLocator(subs=few, numticks=8))
        axis.set_minor_locator(NullLocator())
        axis.set_minor_formatter(NullFormatter())
    else:
        axis.set_major_locator(MaxNLocator(4))
    axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:.6g}"))


def percent_axis(ax: "Axes") -> None:
    """Write shares on the upright axis in per cent."""
    from matplotlib.ticker import FuncFormatter

    ax.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{100 * value:.4g}%"))


# Legends


def handle(label: str, color: str, marker: str = "", dashes: Dashes = "none") -> "Artist":
    """Return an entry of a legend: a line, a marker, or both."""
    from matplotlib.lines import Line2D

    size = 10 if marker == "|" else 6
    return Line2D([], [], color=color, marker=marker or None, linestyle=dashes, ms=size, mew=1.4, label=label)


def legend_below(figure: "Figure", handles: Sequence["Artist"]) -> None:
    """Put a legend below everything, in as many columns as fit side by side."""
    # Inches of the widest entry: its letters, and the line or marker before it.
    widest = max(0.6 + 0.9 * LETTER * len(str(one.get_label())) for one in handles)
    columns = max(1, min(len(handles), int(figure.get_size_inches()[0] / widest)))
    figure.legend(handles=list(handles), loc="outside lower center", ncols=columns, fontsize=9, frameon=False)
