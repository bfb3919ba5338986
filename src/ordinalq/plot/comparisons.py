"""Plots of trends and of differences between groups."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from ordinalq._utils.text import cut, percent, plain, shortened
from ordinalq._utils.validation import Counts, Floats, check_integer
from ordinalq.inference.bounds import mean_class
from ordinalq.inference.estimates import Estimates
from ordinalq.plot import style
from ordinalq.plot.distributions import MARK, UNMARKED, WARNING, Distributions, Values, array, distributions
from ordinalq.plot.style import Axes
from ordinalq.samples.keys import Keys, named, numbered

if TYPE_CHECKING:
    from ordinalq.inference.comparison import Comparison


AxesArray = npt.NDArray[np.object_]

# Series that can be distinguished in one figure.
MAX_SERIES = len(style.LOOKS)
# Shares below this part are too low for a number, and more groups than that have bars too narrow for one.
LOWEST_NUMBER = 0.05
MAX_NUMBERS = 16


def trend(
    estimate: "Values | Estimates",
    classes: Sequence[Any] | None = None,
    names: Sequence[Any] | None = None,
    mean_lower: Values | None = None,
    mean_upper: Values | None = None,
    figure: Any = None,
    xlabel: str = "",
) -> AxesArray:
    """Draw groups in order: mean class with intervals, and class prevalences.

    Parameters
    ----------
    estimate : Estimates, or array-like (T, n)
        Class prevalences of each group. In estimates by several columns, the last column is the time, and each group of
        the other columns is a separate line. Only the first five lines are drawn, without prevalences.
    classes : sequence (n,), default=None
        Class names in ascending order. None means those of the estimates, or 1..n.
    names : sequence (T,), default=None
        Names of the groups. None means the keys of the estimates, or 1..T.
    mean_lower, mean_upper : array-like (T,), default=None
        Bounds of the intervals of the mean class. None means those of the estimates, if they have any.
    figure : Figure or SubFigure, default=None
        Figure to draw into. None creates a new figure.
    xlabel : str, default=""
        Label of the classes.

    Returns
    -------
    ndarray of Axes
        Axes of the mean class, and of the prevalences if there is one series. ``axes[0].figure`` is the figure.

    Examples
    --------
    >>> from ordinalq.plot import trend
    >>> axes = trend([[0.2, 0.5, 0.3], [0.1, 0.4, 0.5]], names=["2024-01", "2024-02"])
    >>> [ax.get_ylabel() for ax in axes]
    ['mean class', 'share of items, %']
    """
    given = distributions("estimate", estimate, classes, names)
    ends, own = _ends(estimate, mean_lower, mean_upper, len(given.P)), figure is None
    keys = getattr(estimate, "keys", None)
    if keys is not None and len(keys.columns) > 1:
        axes = _several(given, keys, ends, figure, xlabel)
        if own:
            style.sign(axes[0].figure, estimate)
        return axes
    if keys is not None and (undated := [b for b, key in enumerate(keys.tolist()) if key is None]):
        # Rows without a time are at no place on its axis.
        given = given.take(np.delete(np.arange(len(keys)), undated))
        ends = None if ends is None else np.delete(ends, undated, axis=1)
    x, ticks = _axis(given.groups)
    width = min(max(3.6 + 0.32 * len(ticks), 4.6), 10.0)
    figure = style.new_figure((width, 4.6 + style.name_height(ticks, width))) if figure is None else figure
    top, bottom = figure.subplots(2, 1, sharex=True, height_ratios=[2, 3])
    _line(top, x, mean_class(given.P, given.scale.numbers), ends, style.LOOKS[0])
    _warn(top, x, mean_class(given.P, given.scale.numbers), given)
    _finish_means(top, xlabel, getattr(estimate, "level", None), given.scale.name)
    if own:
        style.sign(figure, estimate)
    _stacked(bottom, x, given)
    bottom.set_xlim(-0.6, len(ticks) - 0.4)
    style.name_classes(bottom, ticks, width=width - 1.6)
    return np.array([top, bottom], dtype=np.object_)


def _axis(names: Sequence[str]) -> tuple[Counts, list[str]]:
    """Return positions of groups on a time axis, and the names of all periods."""
    found = numbered(names)
    if found is None:
        return np.arange(len(names)), list(names)
    x = found[1] - found[1].min()
    return x, named(found[0], int(found[1].min()), int(x.max()) + 1)


def _ends(estimate: Any, lower: Any, upper: Any, T: int) -> Floats | None:
    """Return the ends of the intervals of the mean class, (2, T), or None."""
    bounds = getattr(estimate, "bounds", None)
    if lower is None and upper is None and bounds is not None:
        lower, upper = bounds.mean_lower, bounds.mean_upper
    if (lower is None) != (upper is None):
        raise ValueError("mean_lower and mean_upper must be given together: they are the ends of the intervals.")
    if lower is None:
        return None
    given = {"mean_lower": array("mean_lower", lower), "mean_upper": array("mean_upper", upper)}
    for name, end in given.items():
        if end.shape != (T,):
            raise ValueError(f"{name} must be one number per group, {T}, got shape {end.shape}.")
    return np.array(list(given.values()))


def _line(ax: "Axes", x: Any, means: Floats, ends: Floats | None, look: style.Look, label: str = "") -> None:
    """Draw one line of mean classes with its band."""
    color, marker, dashes = look
    if ends is not None:
        ax.fill_between(x, *ends, color=color, alpha=0.18, linewidth=0, zorder=2)
    size = 5 if len(x) <= 40 else 2.5
    ax.plot(x, means, color=color, marker=marker, linestyle=dashes, markersize=size, zorder=3, label=label or None)


def _warn(ax: "Axes", x: Any, means: Floats, given: Distributions) -> None:
    """Mark periods whose fit is not good."""
    marked = np.flatnonzero(np.array(given.is_marked) & (np.asarray(x) >= 0))
    if len(marked):
        look: dict[str, Any] = {"marker": "X", "s": 40, "color": style.ink(), "zorder": 5}
        ax.scatter(np.asarray(x)[marked], means[marked], label=WARNING, **look)
        if ax.get_legend() is None:
            ax.legend(handles=[style.handle(WARNING, style.ink(), "X")], fontsize="x-small", frameon=False)


def _finish_means(ax: "Axes", xlabel: str, level: float | None, name: str) -> None:
    style.tidy(ax, grid="y")
    ax.set_ylabel(name)
    what = f"mean of {cut(plain(xlabel), style.NAME_LENGTH)}" if xlabel and name == "mean class" else name
    band = "" if level is None else f", band: {percent(level)} intervals"
    style.literal([ax.set_title(what + band, fontsize="small", loc="left")])


def _stacked(ax: "Axes", x: Any, given: Distributions) -> None:
    """Draw stacked class prevalences in percent, with numbers if they fit."""
    P = 100 * given.P / given.P.sum(axis=1, keepdims=True)
    shades, base = style.shades(len(given.classes)), np.zeros(len(P))
    for i, name in enumerate(given.classes):
        label = cut(name, style.NAME_LENGTH)
        ax.bar(x, P[:, i], bottom=base, width=0.86, color=shades[i], edgecolor="white", linewidth=0.5, label=label)
        if len(P) <= MAX_NUMBERS:
            for b in np.flatnonzero(P[:, i] >= 100 * LOWEST_NUMBER):
                color = "white" if i < 0.6 * len(given.classes) else style.INK
                place: dict[str, Any] = {"ha": "center", "va": "center", "fontsize": "x-small", "color": color}
                ax.text(x[b], base[b] + P[b, i] / 2, f"{P[b, i]:.0f}", **place)
        base += P[:, i]
    style.tidy(ax, grid="y")
    ax.set_ylim(0, 100)
    ax.set_ylabel("share of items, %")
    handles, labels = ax.get_legend_handles_labels()
    # The highest class on top, as in the figure.
    legend = ax.legend(handles[::-1], labels[::-1], ncols=1 if len(labels) <= 16 else 2, **style.BESIDE)
    style.literal(legend.get_texts())


def _several(given: Distributions, keys: Keys, ends: Floats | None, figure: Any, xlabel: str) -> AxesArray:
    """Draw the mean class of several series over a common time."""
    series, codes = Keys.of(Keys(keys.columns[:-1]).frame())
    times, of_group = Keys.of(keys.columns[-1].index)
    dated = np.array([value is not None for value in times.tolist()])
    at, names = _axis([name for name, there in zip(times.labels(), dated, strict=True) if there])
    x = np.full(len(times), -1)
    x[dated] = at
    x = x[of_group]
    width = min(max(4.6 + 0.32 * len(names), 5.6), 10.0)
    figure = style.new_figure((width, 3.4 + style.name_height(names, width))) if figure is None else figure
    ax: Axes = figure.subplots()
    means = mean_class(given.P, given.scale.numbers)
    sizes = np.bincount(codes, weights=given.n_items, minlength=len(series))
    shown = np.sort(np.argsort(-sizes, kind="stable")[:MAX_SERIES])
    labels = [plain(series.labels()[k]) for k in shown]
    for k, look, name in zip(shown, style.LOOKS, shortened(labels, style.NAME_LENGTH), strict=False):
        rows = np.flatnonzero((codes == k) & (x >= 0))
        _line(ax, x[rows], means[rows], None if ends is None else ends[:, rows], look, name)
    _warn(ax, np.where(np.isin(codes, shown), x, -1), means, given)
    _finish_means(ax, xlabel, given.level, given.scale.name)
    style.literal(ax.legend(title=plain(cut(keys.names[0], style.NAME_LENGTH)), **style.BESIDE).get_texts())
    ax.set_xlim(-0.6, len(names) - 0.4)
    style.name_classes(ax, names, width=width - 2)
    if len(shown) < len(series):
        what = "the first" if given.n_items is None else "those with most items,"
        note = ax.set_xlabel(f"{what} {len(shown)} of {len(series):,}", fontsize="small", color=style.SOFT)
        style.literal([note])
    return np.array([ax], dtype=np.object_)


# Differences between groups with their intervals.


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
        Axes to draw into. None creates a new figure.
    max_pairs : int, default=30
        At most this many are drawn; a note gives the total number.
    xlabel : str, default=""
        Label of the classes.
    """
    check_integer("max_pairs", max_pairs, minimum=1)
    return _cuts(found, ax, xlabel) if len(found) == 1 else _pairs(found, ax, max_pairs)


def _cuts(found: "Comparison", ax: "Axes | None", xlabel: str) -> "Axes":
    """Draw one pair: shares at or above each class but the first."""
    names = [f"≥ {plain(str(label))}" for label in found.classes[1:]]
    a, b = _pair_names(found, 1)[0]
    if ax is None:
        width = min(3.6 + 0.55 * len(names), 9.0)
        ax = style.new_axes((width, 3.2 + style.name_height(names, width)))
        style.sign(ax.figure, found)
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
    mean = f"{found.mean_name} {found.mean[0]:+.2f} ({found.mean_lower[0]:+.2f} to {found.mean_upper[0]:+.2f})"
    _title(ax, found, 1, f"{mean}, {100 * found.level:g}% intervals")
    return ax


def _pair_names(found: "Comparison", k: int) -> list[tuple[str, str]]:
    """Return the short names of the first k pairs, marked if the fit is not good."""
    names = [plain(name) for name in [*found.a.labels()[:k], *found.b.labels()[:k]]]
    short, fit = shortened(names, NAME), ["good"] * (2 * k) if found.fit is None else found.fit[:k].T.ravel().tolist()
    marked = [f"{'' if one in UNMARKED else MARK}{name}" for name, one in zip(short, fit, strict=True)]
    return list(zip(marked[:k], marked[k:], strict=True))


def _title(ax: "Axes", found: "Comparison", k: int, title: str) -> None:
    """Write the title, with a warning if a group of the first k pairs is marked."""
    if found.fit is not None and not np.isin(found.fit[:k], list(UNMARKED)).all():
        title = f"{title}\n{MARK}{WARNING}"
    style.literal([ax.set_title(title, fontsize="small", loc="left")])


def _pairs(found: "Comparison", ax: "Axes | None", max_pairs: int) -> "Axes":
    """Draw the difference of the mean class of each pair, one below the other."""
    k = min(len(found), max_pairs)
    names = [f"{a} - {b}" for a, b in _pair_names(found, k)]
    if ax is None:
        ax = style.new_axes((3.2 + style.LETTER_SMALL * max(map(len, names)), 1.1 + 0.26 * k))
        style.sign(ax.figure, found)
    y = np.arange(k)
    _whiskers(ax, y, (found.mean_lower[:k], found.mean_upper[:k]), found.mean[:k], upright=False)
    ax.axvline(0, color=style.SOFT, linewidth=1.0, zorder=1)
    style.tidy(ax, grid="x")
    ax.set_yticks(y, names, fontsize="small")
    style.literal(ax.get_yticklabels())
    ax.set_ylim(k - 0.4, -0.6)
    part = "" if k == len(found) else f", the first {k} of {len(found)} pairs"
    ax.set_xlabel(f"difference of the {found.mean_name}{part}", fontsize="small")
    _title(ax, found, k, f"{100 * found.level:g}% intervals, for all pairs together")
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
