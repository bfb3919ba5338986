"""Pictures: arrays and tables in, matplotlib axes out.

Every function draws into the axes that it is given and returns them; without any it makes a figure of its own, which
pyplot knows nothing of: ``ax.figure.savefig("picture.png")``. Colours are told apart by colour-blind people, and
shapes, lightness or line styles carry the same difference in grey.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from ordinalq.validation import Floats, check_integer, check_vectors

if TYPE_CHECKING:
    from matplotlib.axes import Axes

Values = npt.ArrayLike
AxesArray = npt.NDArray[np.object_]

# The palette of Okabe and Ito, in an order of clearly different lightness.
BLUE, ORANGE, GREEN, PINK, VERMILION, SKY = "#0072B2", "#E69F00", "#009E73", "#CC79A7", "#D55E00", "#56B4E9"
INK, SOFT, GRID, BAR = "#222222", "#666666", "#DDDDDD", "#8FC1E3"
# Lines one after another: colour, marker and dashes all differ.
LINES = (
    (BLUE, "o", "-"),
    (VERMILION, "s", "--"),
    (GREEN, "^", "-."),
    (PINK, "D", ":"),
    (ORANGE, "v", (0, (6, 1, 1, 1))),
)
MARKERS = "os^Dv<>Pp*Xhd8H"
COLOR_MAP = "cividis"
# Above these many points single ones cannot be seen; above these many cells numbers cannot be read.
MAX_POINTS = 3000
MAX_NUMBERS = 150
# Longer class names are cut.
NAME_LENGTH = 22
# Mean width of a letter in inches, in matplotlib's usual sizes "medium" and "small".
LETTER, LETTER_SMALL = 0.083, 0.07


def distribution(
    p: Values,
    classes: Sequence[Any] | None = None,
    lower: Values | None = None,
    upper: Values | None = None,
    truth: Values | None = None,
    ax: "Axes | None" = None,
    level: float | None = None,
    xlabel: str = "",
) -> "Axes":
    """Draw one distribution over ordered classes as bars, with intervals and the true values where they are known.

    Parameters
    ----------
    p : array-like (n,)
        Shares of the classes, or numbers of items.
    classes : sequence (n,), default=None
        Names in ascending order; None stands for 1..n.
    lower, upper : array-like (n,), default=None
        Ends of the intervals.
    truth : array-like (n,), default=None
        True values.
    ax : Axes, default=None
        None stands for a new figure.
    level : float, default=None
        Of the intervals, such as 0.95, for the legend.
    xlabel : str, default=""
        What the classes are.

    Returns
    -------
    Axes

    Examples
    --------
    >>> from ordinalq.plot import distribution
    >>> ax = distribution([0.2, 0.5, 0.3], ["bad", "fair", "good"], lower=[0.1, 0.4, 0.2], upper=[0.3, 0.6, 0.4])
    >>> ax.get_ylabel()
    'share of items'
    """
    P, names, low, high, true = _distributions("p", p, classes, lower, upper, truth, rows=None)
    if ax is None:
        width = min(2.4 + 0.55 * P.shape[1], 9.0)
        ax = _new_axes((width, 3.2 + _name_height(names, width)))
    shown = [_bars(ax, P[0], _row(low, 0), _row(high, 0), _row(true, 0), level)]
    ax.set_ylim(0, _top(P, high, true))
    _name_classes(ax, names)
    if xlabel:
        ax.set_xlabel(_cut(xlabel, NAME_LENGTH))
    ax.set_ylabel("share of items" if _are_shares(P) else "number of items")
    handles, labels = _legend(shown)
    if len(handles) > 1:
        # Above the axes: the bars of an unknown distribution may be high anywhere.
        ax.legend(handles, labels, loc="lower left", bbox_to_anchor=(0, 1), ncols=3, frameon=False, borderaxespad=0.2)
    return ax


def groups(
    estimate: Values,
    classes: Sequence[Any] | None = None,
    names: Sequence[Any] | None = None,
    lower: Values | None = None,
    upper: Values | None = None,
    truth: Values | None = None,
    n_items: npt.ArrayLike | None = None,
    max_groups: int = 30,
    columns: int | None = None,
    figure: Any = None,
    level: float | None = None,
    xlabel: str = "",
) -> AxesArray:
    """Draw the distributions of many groups as small multiples on common axes.

    Parameters
    ----------
    estimate : array-like (B, n)
        Shares of the classes in each group.
    classes : sequence (n,), default=None
        Names in ascending order; None stands for 1..n.
    names : sequence (B,), default=None
        Names of the groups; None stands for 1..B.
    lower, upper, truth : array-like (B, n), default=None
        Ends of the intervals, and true values.
    n_items : array-like (B,), default=None
        Numbers of items of the groups, for the titles.
    max_groups : int, default=30
        The first so many are drawn; a note says how many there are.
    columns : int, default=None
        Pictures in a row; None stands for a number that suits the number of groups.
    figure : Figure or SubFigure, default=None
        Where to draw; None stands for a new figure.
    level : float, default=None
        Of the intervals, such as 0.95, for the legend.
    xlabel : str, default=""
        What the classes are.

    Returns
    -------
    ndarray of Axes (k,)
        One per group drawn; ``axes[0].figure`` is the figure.

    Examples
    --------
    >>> from ordinalq.plot import groups
    >>> axes = groups([[0.2, 0.5, 0.3], [0.6, 0.3, 0.1]], names=["north", "south"])
    >>> [ax.get_title(loc="left") for ax in axes]
    ['north', 'south']
    """
    P, class_names, low, high, true = _distributions("estimate", estimate, classes, lower, upper, truth, rows=2)
    B, n = P.shape
    titles = _names("names", names, B)
    sizes = [""] * B
    if n_items is not None:
        if np.shape(n_items) != (B,):
            raise ValueError(f"n_items must be one number per group, {B}, got shape {np.shape(n_items)}.")
        sizes = [f" ({size:,.0f})" for size in np.asarray(n_items)]
    k = min(check_integer("max_groups", max_groups, minimum=1), B)
    if columns is None:
        # About as many rows as columns, with few places left empty.
        square = int(np.ceil(np.sqrt(k)))
        columns = k if k <= 3 else min(range(square, square + 2), key=lambda c: (-k % c, c))
    columns = min(check_integer("columns", columns, minimum=1), k)
    rows = -(-k // columns)
    width = min(max(1.1 + 0.17 * n, 1.9), 3.4)
    if figure is None:
        from matplotlib.figure import Figure

        # Names of classes stand below the last row, and below the one before where the last is not full.
        named = _name_height(class_names, width, LETTER_SMALL, upright=True) * (1 if k % columns == 0 else 2)
        figure = Figure(figsize=(width * columns + 0.6, 1.5 * rows + 0.7 + named), layout="constrained")
    grid = figure.subplots(rows, columns, sharex=True, sharey=True, squeeze=False)
    axes = grid.ravel()[:k]
    shown = []
    titles = shortened(titles[:k], max(int(width / LETTER_SMALL) - max(map(len, sizes[:k])) - 2, 4))
    for i, ax in enumerate(axes):
        shown.append(_bars(ax, P[i], _row(low, i), _row(high, i), _row(true, i), level))
        ax.set_title(titles[i] + sizes[i], fontsize="small", loc="left", color=INK, pad=3)
        ax.tick_params(labelsize="small")
    for ax in grid.ravel()[k:]:
        ax.set_axis_off()
    drawn = slice(0, k)
    axes[0].set_ylim(0, _top(P[drawn], _part(high, drawn), _part(true, drawn)))
    for i, ax in enumerate(axes):
        lowest = i + columns >= k
        # Upright: slanted names would reach below the neighbour.
        _name_classes(ax, class_names, size="small", width=width, upright=True)
        # The axes are shared: where nothing is below, the names of the classes are here.
        ax.tick_params(labelbottom=lowest)
    figure.supylabel("share of items" if _are_shares(P) else "number of items", fontsize="medium")
    handles, labels = _legend(shown)
    if len(handles) > 1:
        figure.legend(handles, labels, loc="outside upper right", ncols=3, frameon=False, fontsize="small")
    part = f"the first {k} of {B} groups" if k < B else ""
    if part:
        below = f"{_cut(xlabel, NAME_LENGTH)} ({part})" if xlabel else part
        figure.supxlabel(below, fontsize="small", color=SOFT, x=0.99, ha="right")
    elif xlabel:
        figure.supxlabel(_cut(xlabel, NAME_LENGTH), fontsize="medium")
    return np.asarray(axes, dtype=np.object_)


def estimate_against_truth(
    estimate: Values, truth: Values, classes: Sequence[Any] | None = None, ax: "Axes | None" = None
) -> "Axes":
    """Draw the estimated against the true shares of every class: right estimates lie on the diagonal.

    More than 3000 points are counted in hexagons instead of being drawn one by one.

    Parameters
    ----------
    estimate, truth : array-like (B, n)
        Estimated and true distributions of the samples.
    classes : sequence (n,), default=None
        Names in ascending order; None stands for 1..n.
    ax : Axes, default=None
        None stands for a new figure.

    Returns
    -------
    Axes
    """
    P, names, _, _, true = _distributions("estimate", estimate, classes, None, None, truth, rows=2)
    if true is None:
        raise ValueError("truth must be the true distributions (B, n), got None.")
    B, n = P.shape
    if ax is None:
        legend = 1.2 if B * n > MAX_POINTS else 0.9 + LETTER_SMALL * min(max(map(len, names)), NAME_LENGTH)
        ax = _new_axes((4.0 + legend, max(3.9, 0.8 + 0.2 * min(n, 16))))
    high = max(float(P.max()), float(true.max())) * 1.04
    if B * n > MAX_POINTS:
        from matplotlib.colors import LogNorm

        # Rare hexagons light and common ones dark, on a logarithmic scale: some hold a thousand times more than others.
        cells = ax.hexbin(
            true.ravel(),
            P.ravel(),
            gridsize=42,
            norm=LogNorm(vmin=0.4),
            mincnt=1,
            cmap="Blues",
            extent=(0, high, 0, high),
            linewidths=0.1,
        )
        _figure(ax).colorbar(cells, ax=ax, label=f"classes of {B:,} samples")
    else:
        colors = _shades(n)
        for i in range(n):
            # Classes are ordered, and so are their colours; markers tell neighbours apart.
            ax.scatter(
                true[:, i],
                P[:, i],
                s=26,
                color=colors[i],
                marker=MARKERS[i % len(MARKERS)],
                alpha=1 if B <= 50 else 0.6,
                edgecolors=INK,
                linewidths=0.3,
                label=_cut(names[i], NAME_LENGTH),
                zorder=3,
            )
        ax.legend(
            loc="center left",
            bbox_to_anchor=(1.0, 0.5),
            frameon=False,
            fontsize="small",
            title="class",
            ncols=1 if n <= 16 else 2,
        )
    ax.plot([0, high], [0, high], color=INK, linewidth=1.0, linestyle="--", zorder=2)
    ax.set(xlim=(0, high), ylim=(0, high), xlabel="true share", ylabel="estimated share")
    ax.set_aspect("equal", adjustable="box")
    _plain(ax, grid="both")
    return ax


def tau_path(
    taus: Values,
    errors: Values,
    standard_errors: Values | None = None,
    chosen: float | None = None,
    label: str | None = None,
    ax: "Axes | None" = None,
) -> "Axes":
    """Draw the error against the strength of the regularizer, with a place of its own for tau = 0.

    Parameters
    ----------
    taus : array-like (k,)
        Strengths >= 0, in any order.
    errors : array-like (k,)
        Error of each.
    standard_errors : array-like (k,), default=None
        Standard errors of these, drawn as bars.
    chosen : float, default=None
        One of the taus, to be marked.
    label : str, default=None
        For the legend, where several paths are drawn into the same axes.
    ax : Axes, default=None
        None stands for a new figure.

    Returns
    -------
    Axes

    Examples
    --------
    >>> from ordinalq.plot import tau_path
    >>> ax = tau_path([0, 1e-3, 1e-1], [0.05, 0.03, 0.04], chosen=1e-3)
    >>> ax.get_xticks().tolist()
    [0.0, 0.001, 0.01, 0.1]
    """
    x = _series("taus", taus)
    y = _series("errors", errors, len(x))
    spread = None if standard_errors is None else _series("standard_errors", standard_errors, len(x))
    if (x < 0).any():
        raise ValueError(f"taus must be >= 0, got {x.min():g}.")
    if chosen is not None and not np.isclose(x, chosen, rtol=1e-9, atol=0).any():
        raise ValueError(f"chosen must be one of taus, got {chosen!r}.")
    order = np.argsort(x, kind="stable")
    x, y = x[order], y[order]
    spread = None if spread is None else spread[order]
    ax = _new_axes((4.8, 3.2)) if ax is None else ax
    drawn = len(ax.containers)
    color, marker, dashes = LINES[drawn % len(LINES)]
    _tau_axis(ax, x)
    positive = x > 0
    style: dict[str, Any] = {
        "color": color,
        "marker": marker,
        "markersize": 5.5,
        "capsize": 3,
        "elinewidth": 1.1,
        "zorder": 3,
    }
    ax.errorbar(
        x[positive],
        y[positive],
        None if spread is None else spread[positive],
        linestyle=dashes,
        linewidth=1.6,
        label=label,
        **style,
    )
    if not positive.all():
        # No line to tau = 0, which is infinitely far away on this axis.
        ax.errorbar(
            x[~positive], y[~positive], None if spread is None else spread[~positive], linestyle="none", **style
        )
        del ax.containers[-1]
    if chosen is not None:
        i = int(np.argmin(np.abs(x - chosen)))
        ring: dict[str, Any] = {
            "markersize": 14,
            "markerfacecolor": "none",
            "markeredgecolor": INK,
            "linestyle": "none",
        }
        # With several paths the legend explains the rings, once; a text could cover another path.
        known = "chosen" in ax.get_legend_handles_labels()[1]
        ring["label"] = "chosen" if label is not None and not known else None
        ax.plot(x[i], y[i], marker="o", markeredgewidth=1.4, zorder=4, **ring)
        if label is None:
            side = "left" if i == 0 and len(x) > 1 else "right" if i == len(x) - 1 and i > 0 else "center"
            ax.annotate(
                f"chosen: {x[i]:g}",
                (x[i], y[i]),
                xytext=({"left": -7, "right": 7, "center": 0}[side], -12),
                textcoords="offset points",
                ha=side,
                va="top",
                color=INK,
                fontsize="small",
                zorder=5,
            )
            ax.margins(y=0.18)
    ax.set_xlabel("tau, strength of the regularizer")
    ax.set_ylabel("error")
    _plain(ax, grid="both")
    if label is not None:
        ax.legend(frameon=False, fontsize="small", markerscale=0.8)
    return ax


def response_matrix(
    M: Values, classes: Sequence[Any] | None = None, bins: Sequence[Any] | None = None, ax: "Axes | None" = None
) -> "Axes":
    """Draw M as a heat map: one column per class, one row per observed bin, from the bottom up.

    Parameters
    ----------
    M : array-like (d, n)
        Mean representation of each class, or response matrix.
    classes : sequence (n,), default=None
        Names in ascending order; None stands for 1..n.
    bins : sequence (d,), default=None
        Names of the rows; None stands for `classes` where d = n, else for 1..d.
    ax : Axes, default=None
        None stands for a new figure.

    Returns
    -------
    Axes
        Numbers are written into the cells where there are at most 150.
    """
    cells = _array("M", M)
    if cells.ndim != 2:
        raise ValueError(f"M must have shape (d, n), got shape {cells.shape}.")
    d, n = cells.shape
    columns = _names("classes", classes, n)
    rows = columns if bins is None and d == n else _names("bins", bins, d)
    if ax is None:
        ax = _new_axes((min(2.6 + 0.45 * n, 10.0), min(1.6 + 0.36 * d, 9.0)))
    low = min(float(cells.min()), 0.0)
    picture = ax.imshow(cells, cmap=COLOR_MAP, vmin=low, origin="lower", aspect="auto", interpolation="nearest")
    shares = np.allclose(cells.sum(axis=0), 1, atol=1e-3)
    bar = _figure(ax).colorbar(picture, ax=ax, label="share of the class" if shares else "mean of the class")
    bar.outline.set_visible(False)
    _name_classes(ax, columns)
    step = -(-d // 30)
    ax.set_yticks(range(0, d, step), [_cut(name, NAME_LENGTH) for name in rows[::step]])
    if d * n <= MAX_NUMBERS:
        for i, j in np.ndindex(d, n):
            value = float(cells[i, j])
            dark = value - low < 0.55 * (float(cells.max()) - low)
            ax.text(j, i, _number(value), ha="center", va="center", fontsize="small", color="white" if dark else INK)
    ax.set_xlabel("true class")
    ax.set_ylabel("observed")
    ax.tick_params(length=0)
    for spine in ax.spines.values():
        spine.set_visible(False)
    return ax


# What the pictures share


def _new_axes(size: tuple[float, float]) -> "Axes":
    """Return axes of a new figure that pyplot does not know."""
    from matplotlib.figure import Figure

    return Figure(figsize=size, layout="constrained").subplots()


def _figure(ax: "Axes") -> Any:
    return ax.get_figure(root=False)


def _bars(
    ax: "Axes",
    p: Floats,
    low: Floats | None,
    high: Floats | None,
    true: Floats | None,
    level: float | None = None,
) -> dict[str, Any]:
    """Draw one distribution; return its legend."""
    x = np.arange(len(p))
    shown: dict[str, Any] = {"estimate": ax.bar(x, p, width=0.78, color=BAR, edgecolor=BLUE, linewidth=0.8, zorder=2)}
    if low is not None and high is not None:
        # From end to end, whether or not the estimate lies in between.
        middle, half = (low + high) / 2, (high - low) / 2
        shown["interval" if level is None else f"{100 * level:g} % interval"] = ax.errorbar(
            x, middle, half, fmt="none", ecolor=INK, elinewidth=1.2, capsize=3 if len(p) <= 10 else 2, zorder=4
        )
    if true is not None:
        shown["truth"] = ax.plot(
            x, true, "D", markersize=5, markerfacecolor=ORANGE, markeredgecolor=INK, markeredgewidth=0.8, zorder=5
        )[0]
    _plain(ax, grid="y")
    ax.set_xlim(-0.6, len(p) - 0.4)
    return shown


def _legend(shown: list[dict[str, Any]]) -> tuple[list[Any], list[str]]:
    """Return handles and labels of what some picture shows."""
    merged = {label: handle for legend in reversed(shown) for label, handle in legend.items()}
    return list(merged.values()), list(merged)


def _plain(ax: "Axes", *, grid: str) -> None:
    """Leave out what carries no information."""
    ax.spines[["top", "right"]].set_visible(False)
    for side in ("left", "bottom"):
        ax.spines[side].set_color(SOFT)
    ax.grid(True, axis=grid, color=GRID, linewidth=0.7)  # type: ignore[arg-type]
    ax.set_axisbelow(True)
    ax.tick_params(color=SOFT)


def _name_classes(
    ax: "Axes", names: list[str], *, size: str = "medium", width: float | None = None, upright: bool = False
) -> None:
    """Write the names of the classes below the axes, slanted where they would touch, and not all if they are many."""
    step = -(-len(names) // 30)
    shown = [_cut(name, NAME_LENGTH) for name in names[::step]]
    if width is None:
        width = ax.get_window_extent().width / _figure(ax).dpi
    angle = _name_angle(shown, width, LETTER if size == "medium" else LETTER_SMALL, upright=upright)
    ax.set_xticks(range(0, len(names), step), shown, fontsize=size)
    if angle:
        ax.tick_params(axis="x", rotation=angle)
        for text in ax.get_xticklabels():
            text.set(ha="center" if angle == 90 else "right", rotation_mode="default" if angle == 90 else "anchor")


def _name_angle(names: list[str], width: float, letter: float = LETTER, *, upright: bool = False) -> int:
    """Return by how many degrees names of classes must be turned to fit side by side into a width in inches."""
    longest = max(map(len, names))
    # One letter is left free between names.
    room = width / len(names) / letter - 1
    if longest <= max(room, 1):
        return 0
    return 90 if upright or longest <= 4 or room < 2 else 40


def _name_height(names: list[str], width: float, letter: float = LETTER, *, upright: bool = False) -> float:
    """Return the height in inches of the names of classes below a picture of this width."""
    angle = _name_angle(names, width, letter, upright=upright)
    return 0.2 + letter * min(max(map(len, names)), NAME_LENGTH) * float(np.sin(np.radians(angle)))


def _tau_axis(ax: Any, x: Floats) -> None:
    """Make the x axis logarithmic; a tau of zero, also one drawn before, is a decade left of the smallest other."""
    from matplotlib.ticker import NullLocator

    x = np.unique(np.concatenate([x, *(np.asarray(line.get_xdata(), dtype=np.float64) for line in ax.lines)]))
    positive = x[x > 0]
    low, high = (positive[0], positive[-1]) if len(positive) else (1.0, 1.0)
    # A twentieth of the axis is left free at both sides.
    free = (high / low) ** 0.05 * 1.3
    if x[0] > 0:
        ax.set_xscale("log")
        ax.set_xlim(low / free, high * free)
    else:
        ax.set_xscale("symlog", linthresh=low, linscale=1.0)
        ax.set_xlim(-0.3 * low, high * free)
        ax.set_xticks([0])
    if x[0] == 0 and len(positive):
        powers = np.arange(np.ceil(np.log10(low) - 1e-9), np.floor(np.log10(high) + 1e-9) + 1)
        ax.set_xticks([0, *10.0 ** powers[:: 1 + len(powers) // 8]])
    ax.xaxis.set_minor_locator(NullLocator())


def _shades(n: int) -> list[Any]:
    """Return n colours from dark to light, the lightest still visible on white."""
    from matplotlib import colormaps

    return [colormaps[COLOR_MAP](value) for value in np.linspace(0.0, 0.9, n)]


def _are_shares(P: Floats) -> bool:
    return bool((np.abs(P.sum(axis=1) - 1) < 1e-3).all())


def _top(*drawn: Floats | None) -> float:
    """Return the upper end of the axis: a little above all that is drawn."""
    highest = max(float(values.max()) for values in drawn if values is not None)
    return 1.06 * highest if highest > 0 else 1.0


def _row(P: Floats | None, i: int) -> Floats | None:
    return None if P is None else P[i]


def _part(P: Floats | None, rows: slice) -> Floats | None:
    return None if P is None else P[rows]


def shortened(names: Sequence[str], length: int) -> list[str]:
    """Cut long names at the end, and in the middle where they would be the same then.

    >>> shortened(["short", "a long name"], 8)
    ['short', 'a long…']
    >>> shortened(["a long name, black", "a long name, white"], 9)
    ['a lo…lack', 'a lo…hite']
    """
    cut = [_cut(name, length) for name in names]
    of: dict[str, set[str]] = {}
    for name, short in zip(names, cut, strict=True):
        of.setdefault(short, set()).add(name)
    head = max(length - 1, 0) // 2
    return [
        name[:head] + "…" + name[len(name) - (length - 1 - head) :]
        if len(of[short]) > 1 and len(name) > length
        else short
        for name, short in zip(names, cut, strict=True)
    ]


def _cut(name: str, length: int) -> str:
    return name if len(name) <= length else name[: length - 1].rstrip() + "…"


def _number(value: float) -> str:
    """Return 0.07 as .07, and nothing where that would be .00: the colour says as much."""
    text = f"{value:.2f}" if abs(value) < 10 else f"{value:.0f}"
    return "" if text in ("0.00", "-0.00") else text[1:] if text.startswith("0.") else text


# Checks


def _distributions(
    name: str,
    p: Values,
    classes: Sequence[Any] | None,
    lower: Values | None,
    upper: Values | None,
    truth: Values | None,
    *,
    rows: int | None,
) -> tuple[Floats, list[str], Floats | None, Floats | None, Floats | None]:
    """Return estimates (B, n), names of the classes, and intervals and truth (B, n) or None."""
    P = check_vectors(name, p, min_classes=2)
    if P.ndim != (1 if rows is None else 2) or P.size == 0:
        raise ValueError(f"{name} must have shape {'(n,)' if rows is None else '(B, n)'}, got shape {P.shape}.")
    if (P < 0).any():
        raise ValueError(f"{name} must be >= 0, got {P.min():g}.")
    others: dict[str, Floats | None] = {"lower": None, "upper": None, "truth": None}
    for other, value in (("lower", lower), ("upper", upper), ("truth", truth)):
        if value is not None:
            array = check_vectors(other, value, min_classes=2)
            if array.shape != P.shape:
                raise ValueError(f"{other} must have the shape of {name}, {P.shape}, got {array.shape}.")
            others[other] = np.atleast_2d(array)
    if (lower is None) != (upper is None):
        raise ValueError("lower and upper must be given together: they are the ends of the intervals.")
    low, high = others["lower"], others["upper"]
    if low is not None and high is not None and (low > high).any():
        raise ValueError("lower must not be above upper.")
    return np.atleast_2d(P), _names("classes", classes, P.shape[-1]), low, high, others["truth"]


def _names(name: str, value: Sequence[Any] | None, n: int) -> list[str]:
    names = [str(i + 1) for i in range(n)] if value is None else [str(v) for v in value]
    if len(names) != n:
        raise ValueError(f"{name} must be {n} names, got {len(names)}.")
    return names


def _series(name: str, value: Values, n: int | None = None) -> Floats:
    array = _array(name, value)
    if array.ndim != 1 or array.size == 0 or (n is not None and len(array) != n):
        raise ValueError(f"{name} must be one number per tau{'' if n is None else f', {n}'}, got shape {array.shape}.")
    return array


def _array(name: str, value: Values) -> Floats:
    try:
        array = np.asarray(value, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise TypeError(f"{name} must be numbers, got {value!r:.80}.") from error
    if array.size == 0 or not np.isfinite(array).all():
        raise ValueError(f"{name} must be finite numbers, got {value!r:.80}.")
    return array
