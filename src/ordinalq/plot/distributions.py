"""Plots of distributions: one, those of groups, and estimates against truth."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from ordinalq._utils.text import cut, percent, plain, shortened
from ordinalq._utils.validation import Floats, Index, check_integer, check_numbers, check_vectors
from ordinalq.inference.estimates import Estimates
from ordinalq.inference.region import Region
from ordinalq.plot import style
from ordinalq.plot.style import Axes
from ordinalq.samples.labels import Scale, class_scale

# Checks of arguments.


Values = npt.ArrayLike
# Results of fit tests that need no warning; the text of the warning, and the mark of a group that has another result.
UNMARKED = {"good", "too few items"}
WARNING, MARK = "fit not good: unlike the training items", "! "
# The parts of Distributions that have one entry per distribution.
OF_ROWS = ("P", "groups", "lower", "upper", "truth", "n_items", "means", "fit")


@dataclass(frozen=True)
class Distributions:
    """B distributions ``P`` (B, n) with names of classes and groups.

    ``lower``, ``upper`` and ``truth`` are (B, n), ``n_items`` is (B,), ``means`` are the labels of the mean
    class of each, ``class_values`` (n,) and ``fit`` (B,) are those of the estimates; each of them may be None.
    """

    P: Floats
    classes: list[str]
    groups: list[str]
    lower: Floats | None
    upper: Floats | None
    truth: Floats | None
    n_items: Floats | None
    level: float | None
    means: list[str] | None = None
    class_values: Floats | None = None
    fit: list[str] | None = None

    @property
    def is_marked(self) -> list[bool]:
        """Whether each distribution is marked with a warning, (B,)."""
        return [False] * len(self.P) if self.fit is None else [fit not in UNMARKED for fit in self.fit]

    @property
    def scale(self) -> Scale:
        """Values of the classes over which means are taken, and the name of the mean."""
        return class_scale(self.classes, self.class_values)

    @property
    def are_shares(self) -> bool:
        """Whether all sum to one; otherwise they are numbers of items."""
        return bool((np.abs(self.P.sum(axis=1) - 1) < 1e-3).all())

    @property
    def top(self) -> float:
        """Upper end of the axis: a little above all that is drawn."""
        highest = max(float(V.max()) for V in (self.P, self.upper, self.truth) if V is not None)
        return 1.06 * highest if highest > 0 else 1.0

    def largest(self, k: int) -> "Distributions":
        """Return k of them in order: those with most items, or the first."""
        rows = np.arange(len(self.P))
        if self.n_items is not None and k < len(rows):
            rows = np.sort(np.argsort(-self.n_items, kind="stable")[:k])
        return self.take(rows[:k])

    def take(self, rows: Index) -> "Distributions":
        """Return some of them."""
        known: list[str] = [name for name in OF_ROWS if getattr(self, name) is not None]
        parts: dict[str, Any] = {
            name: [value[b] for b in rows] if isinstance(value := getattr(self, name), list) else value[rows]
            for name in known
        }
        return replace(self, **parts)


def distributions(
    name: str,
    estimate: "Values | Estimates",
    classes: Sequence[Any] | None = None,
    groups: Sequence[Any] | None = None,
    *,
    lower: Values | None = None,
    upper: Values | None = None,
    truth: Values | None = None,
    n_items: Values | None = None,
    level: float | None = None,
    one: bool = False,
) -> Distributions:
    """Return the validated arguments; None is replaced by values of the estimates.

    With `one`, the shape of a single distribution is (n,) or (1, n).
    """
    means = values = fit = None
    if hasattr(estimate, "prevalences"):
        known: Estimates = estimate  # type: ignore[assignment]
        means, values = _means(known), known.class_values
        fit = None if known.fit is None else known.fit.tolist()
        classes = known.classes.tolist() if classes is None else classes
        groups = known.keys.labels() if groups is None and known.keys is not None else groups
        n_items = known.n_items if n_items is None else n_items
        if known.bounds is not None and lower is None and upper is None:
            lower, upper = known.bounds.lower, known.bounds.upper
            level = known.bounds.level if level is None else level
        estimate = known.prevalences
        if one and len(estimate) != 1:
            many = f"the estimates of {len(estimate)} groups; choose one by its key, or draw them all by plot.groups"
            raise ValueError(f"{name} must be one distribution, got {many}.")
    P = _vectors(name, estimate)
    if P.size == 0 or (one and len(P) != 1) or (not one and np.ndim(estimate) == 1):
        raise ValueError(f"{name} must have shape {'(n,)' if one else '(B, n)'}, got shape {np.shape(estimate)}.")
    given: dict[str, Any] = {"lower": lower, "upper": upper, "truth": truth}
    others = {other: None if value is None else _vectors(other, value) for other, value in given.items()}
    for other, V in others.items():
        if V is not None and V.shape != P.shape:
            expected = P.shape[1:] if one else P.shape
            raise ValueError(f"{other} must have the shape of {name}, {expected}, got {np.shape(given[other])}.")
    if (P < 0).any():
        raise ValueError(f"{name} must be >= 0, got {P.min():g}.")
    if (lower is None) != (upper is None):
        raise ValueError("lower and upper must be given together: they are the ends of the intervals.")
    if others["lower"] is not None and others["upper"] is not None and (others["lower"] > others["upper"]).any():
        raise ValueError("lower must not be above upper.")
    if n_items is not None and np.shape(n_items) != (len(P),):
        raise ValueError(f"n_items must be one number per group, {len(P)}, got shape {np.shape(n_items)}.")
    sizes = None if n_items is None else array("n_items", n_items)
    titles, labels = names("names", groups, len(P)), names("classes", classes, P.shape[1])
    fields: dict[str, Any] = {**others, "means": means, "class_values": values, "fit": fit}
    return Distributions(P, labels, titles, n_items=sizes, level=level, **fields)


def _means(estimates: "Estimates") -> list[str]:
    """Return the mean class of each sample, with its interval if there is one."""
    if estimates.bounds is None or estimates.bounds.mean_lower is None:
        return [f"{mean:.2f}" for mean in estimates.mean]
    ends = zip(estimates.mean, estimates.bounds.mean_lower, estimates.bounds.mean_upper, strict=True)
    return [f"{mean:.2f} ({low:.2f} to {high:.2f})" for mean, low, high in ends]


def _vectors(name: str, value: Any) -> Floats:
    """Return distributions (B, n); one may have the shape (n,)."""
    if hasattr(value, "columns"):
        raise TypeError(
            f"{name} must be estimates or an array, got a {type(value).__name__}, whose columns are unknown. "
            "Pass the estimates, or the columns of the classes as an array."
        )
    return np.atleast_2d(check_vectors(name, value, min_classes=2))


def names(name: str, value: Sequence[Any] | None, n: int) -> list[str]:
    """Return n names that can be printed; 1..n for None."""
    found = [str(i + 1) for i in range(n)] if value is None else [plain(str(v)) for v in value]
    if len(found) != n:
        raise ValueError(f"{name} must be {n} names, got {len(found)}.")
    return found


def array(name: str, value: Values) -> Floats:
    """Return finite numbers, at least one."""
    found = check_numbers(name, value)
    if found.size == 0:
        raise ValueError(f"{name} must be finite numbers, got none.")
    return found


# Distributions over bins of a number, such as an energy: steps between the edges, with bands.


# Edges that span more than this factor stand on a logarithmic axis.
WIDE = 50.0


def spectrum(ax: "Axes", given: Distributions, edges: Values, xlabel: str, *, log: bool) -> dict[str, Any]:
    """Draw one distribution as steps between edges (n + 1,); return its legend.

    Parameters
    ----------
    ax : Axes
    given : Distributions
        A single one, with intervals and the truth if they are known.
    edges : array-like (n + 1,)
        Edges of the bins, ascending.
    xlabel : str
        What the edges are.
    log : bool
        Whether the axis of the shares is logarithmic.
    """
    x = _edges(edges, given.P.shape[1])
    p = given.P[0]
    if given.lower is not None and given.upper is not None:
        name = "interval" if given.level is None else f"{100 * given.level:g}% interval"
        low, high = (np.append(end[0], end[0, -1]) for end in (given.lower, given.upper))
        band = ax.fill_between(x, low, high, step="post", color=style.bar(), alpha=0.6, linewidth=0, zorder=2)
    legend: dict[str, Any] = {"estimate": ax.stairs(p, x, color=style.BLUE, linewidth=1.6, baseline=None, zorder=4)}
    if given.lower is not None:
        legend[name] = band
    if given.truth is not None:
        look: dict[str, Any] = {"color": style.ORANGE, "linewidth": 1.6, "linestyle": "--", "baseline": None}
        legend["truth"] = ax.stairs(given.truth[0], x, zorder=3, **look)
    style.tidy(ax)
    ax.set_xlim(x[0], x[-1])
    if x[0] > 0 and x[-1] / x[0] > WIDE:
        ax.set_xscale("log")
    if log:
        ax.set_yscale("log")
        seen = np.concatenate([V.ravel() for V in (given.P, given.truth, given.upper) if V is not None])
        ax.set_ylim(0.5 * seen[seen > 0].min(), 2 * seen.max())
    else:
        ax.set_ylim(0, given.top)
    if xlabel:
        style.literal([ax.set_xlabel(cut(plain(xlabel), 2 * style.NAME_LENGTH))])
    return legend


def _edges(edges: Values, n: int) -> Floats:
    """Return the edges of n bins."""
    found = array("edges", edges)
    if found.shape != (n + 1,) or (np.diff(found) <= 0).any():
        raise ValueError(f"edges must be {n + 1} ascending numbers, one more than bins, got shape {found.shape}.")
    return found


AxesArray = npt.NDArray[np.object_]

# Above this many points single ones cannot be seen.
MAX_POINTS = 3000
# Classes of one column of a legend.
MAX_COLUMN = 16
# More numbers than this do not fit side by side.
MOST_NUMBERS = 12
# The mean of each of several groups.
MEAN: dict[str, Any] = {"ha": "center", "va": "top", "fontsize": "x-small", "color": style.SOFT}
# A share below this is drawn as none: its interval must not be what one sees first.
NOTHING = 0.005
NEAR_ZERO = "of estimates near 0"


def distribution(
    p: "Values | Estimates",
    classes: Sequence[Any] | None = None,
    lower: Values | None = None,
    upper: Values | None = None,
    truth: Values | None = None,
    ax: "Axes | None" = None,
    level: float | None = None,
    xlabel: str = "",
    title: str = "",
    edges: Values | None = None,
    log: bool = False,
) -> "Axes":
    """Draw one distribution over ordered classes as bars.

    Intervals and true values are drawn if given.

    Numbers are shown above the bars if there are at most 12 classes. For estimates, the title contains the mean class
    with its interval.

    Parameters
    ----------
    p : Estimates of one sample, or array-like (n,)
        Class prevalences, or numbers of items.
    classes : sequence (n,), default=None
        Class names in ascending order. None means those of the estimates, or 1..n.
    lower, upper : array-like (n,) or (1, n), default=None
        Bounds of the intervals. None means those of the estimates, if they have intervals.
    truth : array-like (n,), default=None
        True values.
    ax : Axes, default=None
        Axes to draw into. None creates a new figure.
    level : float, default=None
        Level of the intervals, such as 0.95, for the legend.
    xlabel : str, default=""
        What the classes are.
    title : str, default=""
        What stands above.
    edges : array-like (n + 1,), default=None
        Edges of bins that the classes are: steps with a band are drawn instead of bars.
    log : bool, default=False
        With edges: whether the axis of the shares is logarithmic.

    Examples
    --------
    >>> from ordinalq.plot import distribution
    >>> ax = distribution([0.2, 0.5, 0.3], ["bad", "fair", "good"], lower=[0.1, 0.4, 0.2], upper=[0.3, 0.6, 0.4])
    >>> ax.get_ylabel()
    'share of items'
    """
    given = distributions("p", p, classes, lower=lower, upper=upper, truth=truth, level=level, one=True)
    if ax is None:
        width = min(2.4 + 0.55 * len(given.classes), 9.0) if edges is None else 5.6
        ax = style.new_axes((width, 3.2 + (0.4 if edges is not None else style.name_height(given.classes, width))))
        style.sign(ax.figure, p)
    if edges is None:
        legend = _draw(ax, given, 0)
        _numbers(ax, given)
        ax.set_ylim(0, 1.06 * given.top)
        style.name_classes(ax, given.classes)
        if xlabel:
            style.literal([ax.set_xlabel(cut(xlabel, style.NAME_LENGTH))])
    else:
        legend = spectrum(ax, given, edges, xlabel, log=log)
    ax.set_ylabel(_quantity(given))
    if given.are_shares and not log:
        style.percent_axis(ax)
    mean = "" if given.means is None or edges is not None else f"{given.scale.name} {given.means[0]}"
    heading = "\n".join(filter(None, [plain(title), mean, WARNING if given.is_marked[0] else ""]))
    if len(legend) > 1:
        # Above the axes: the bars of an unknown distribution may be high anywhere.
        place: dict[str, Any] = {"loc": "lower left", "bbox_to_anchor": (0, 1), "borderaxespad": 0.2}
        place |= {"title": heading or None, "alignment": "left"}
        box = ax.legend(list(legend.values()), list(legend), ncols=3, frameon=False, **place)
        style.literal([box.get_title()])
    elif heading:
        style.literal([ax.set_title(heading, loc="left", fontsize="medium")])
    return ax


def _numbers(ax: "Axes", given: Distributions) -> None:
    """Write the values above the bars if they are few."""
    if len(given.classes) > MOST_NUMBERS:
        return
    tops = np.max([V[0] for V in (given.P, given.upper, given.truth) if V is not None], axis=0)
    for i, (value, top) in enumerate(zip(given.P[0], tops, strict=True)):
        text = f"{100 * value:.0f}%" if given.are_shares else f"{value:,.0f}"
        look: dict[str, Any] = {"textcoords": "offset points", "ha": "center", "fontsize": "small"}
        ax.annotate(text, (i, float(top)), xytext=(0, 3), color=style.ink(), **look)


def groups(
    estimate: "Values | Estimates",
    classes: Sequence[Any] | None = None,
    names: Sequence[Any] | None = None,
    lower: Values | None = None,
    upper: Values | None = None,
    truth: Values | None = None,
    n_items: Values | None = None,
    max_groups: int = 30,
    columns: int | None = None,
    figure: Any = None,
    level: float | None = None,
    xlabel: str = "",
) -> AxesArray:
    """Draw the distributions of many groups as small multiples on common axes.

    Parameters
    ----------
    estimate : Estimates, or array-like (B, n)
        Class prevalences of each group.
    classes : sequence (n,), default=None
        Class names in ascending order. None means those of the estimates, or 1..n.
    names : sequence (B,), default=None
        Names of the groups. None means the keys of the estimates, or 1..B.
    lower, upper, truth : array-like (B, n), default=None
        Bounds of the intervals, and true values. None means the intervals of the estimates, if they have any.
    n_items : array-like (B,), default=None
        Numbers of items of the groups, for the titles. None means those of the estimates.
    max_groups : int, default=30
        Maximum number of groups to draw, the largest ones if the numbers of items are known. A note gives the total.
    columns : int, default=None
        Panels in a row; None chooses a number that suits the number of groups.
    figure : Figure or SubFigure, default=None
        Figure to draw into. None creates a new figure.
    level : float, default=None
        Level of the intervals, such as 0.95, for the legend.
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
    bounds: dict[str, Any] = {"lower": lower, "upper": upper, "truth": truth}
    every = distributions("estimate", estimate, classes, names, **bounds, n_items=n_items, level=level)
    given = every.largest(check_integer("max_groups", max_groups, minimum=1))
    k = len(given.P)
    columns = _n_columns(k) if columns is None else min(check_integer("columns", columns, minimum=1), k)
    width = min(max(1.1 + 0.17 * len(given.classes), 1.9), 3.4)
    if figure is None:
        figure = _new_figure(given, columns, width)
        style.sign(figure, estimate)
    grid = figure.subplots(-(-k // columns), columns, sharex=True, sharey=True, squeeze=False).ravel()
    for ax in grid[k:]:
        ax.set_axis_off()
    legend: dict[str, Any] = {}
    for i, (ax, title) in enumerate(zip(grid, _titles(given, width), strict=False)):
        legend |= _draw(ax, given, i)
        color = style.VERMILION if given.is_marked[i] else style.ink()
        style.literal([ax.set_title(title, fontsize="small", loc="left", color=color, pad=3)])
        if given.means is not None:
            ax.text(0.5, 0.98, f"mean {given.means[i]}", transform=ax.transAxes, **MEAN)
        ax.tick_params(labelsize="small")
        # Upright: slanted names would reach below the neighbour.
        style.name_classes(ax, given.classes, size="small", width=width, upright=True)
        # The axes are shared: where nothing is below, the names of the classes are here.
        ax.tick_params(labelbottom=i + columns >= k)
    # Above the highest bar there is room for the mean.
    grid[0].set_ylim(0, given.top if given.means is None else 1.18 * given.top)
    if given.are_shares:
        style.percent_axis(grid[0])
    figure.supylabel(_quantity(given), fontsize="medium")
    if len(legend) > 1:
        place: dict[str, Any] = {"loc": "outside upper right", "ncols": 3, "frameon": False, "fontsize": "small"}
        # The signature of the figure stands in the line of the title.
        place |= {"title": " ", "title_fontsize": 6}
        figure.legend(list(legend.values()), list(legend), **place)
    which = "first" if every.n_items is None else "largest"  # in their order
    _name_groups(figure, cut(xlabel, style.NAME_LENGTH), k, len(every.P), which, warns=any(given.is_marked))
    return np.asarray(grid[:k], dtype=np.object_)


def estimate_against_truth(
    estimate: "Values | Estimates",
    truth: Values,
    classes: Sequence[Any] | None = None,
    ax: "Axes | None" = None,
    panels: bool = False,
) -> Any:
    """Draw the estimated against the true prevalences of every class.

    More than 3000 points are shown as counts in hexagons.

    Parameters
    ----------
    estimate : Estimates, or array-like (B, n)
        Estimated distributions of the samples.
    truth : array-like (B, n)
        True distributions of the samples.
    classes : sequence (n,), default=None
        Class names in ascending order. None means those of the estimates, or 1..n.
    ax : Axes, default=None
        Axes to draw into. None creates a new figure.
    panels : bool, default=False
        Draw each class in a separate panel of a new figure, with common axes.

    Returns
    -------
    Axes, or ndarray of Axes (n,) with panels
    """
    given = distributions("estimate", estimate, classes, truth=truth)
    if given.truth is None:
        raise ValueError("truth must be the true distributions (B, n), got None.")
    if panels:
        return _panels(given, ax)
    n = len(given.classes)
    many = given.P.size > MAX_POINTS
    if ax is None:
        legend = 1.2 if many else 0.9 + style.LETTER_SMALL * min(max(map(len, given.classes)), style.NAME_LENGTH)
        ax = style.new_axes((4.0 + legend, max(3.9, 0.8 + 0.2 * min(n, MAX_COLUMN))))
    high = max(float(given.P.max()), float(given.truth.max())) * 1.04
    (_hexagons if many else _points)(ax, given, high)
    ax.plot([0, high], [0, high], color=style.ink(), linewidth=1.0, linestyle="--", zorder=2)
    ax.set(xlim=(0, high), ylim=(0, high), xlabel="true share", ylabel="estimated share")
    ax.set_aspect("equal", adjustable="box")
    style.tidy(ax)
    return ax


def _panels(given: Distributions, ax: "Axes | None") -> AxesArray:
    """Draw estimates against the truth, a class in each panel."""
    if ax is not None:
        raise ValueError("ax must be None with panels=True: there is a panel for every class.")
    assert given.truth is not None
    n = len(given.classes)
    columns = _n_columns(n)
    figure = style.new_figure((1.9 * columns + 0.6, 1.9 * -(-n // columns) + 0.6))
    grid = figure.subplots(-(-n // columns), columns, sharex=True, sharey=True, squeeze=False).ravel()
    high = max(float(given.P.max()), float(given.truth.max())) * 1.04
    alpha = 0.8 if len(given.P) <= 50 else 0.3 if len(given.P) <= MAX_POINTS else 0.05
    for i, one in enumerate(grid):
        if i >= n:
            one.set_axis_off()
            continue
        one.scatter(given.truth[:, i], given.P[:, i], s=12, color=style.BLUE, alpha=alpha, linewidths=0, zorder=3)
        one.plot([0, high], [0, high], color=style.ink(), linewidth=1.0, linestyle="--", zorder=2)
        style.literal([one.set_title(cut(given.classes[i], style.NAME_LENGTH), fontsize="small", loc="left", pad=3)])
        one.set(xlim=(0, high), ylim=(0, high), aspect="equal")
        style.tidy(one)
    figure.supxlabel("true share")
    figure.supylabel("estimated share")
    return np.asarray(grid[:n], dtype=np.object_)


def bars(ax: "Axes", p: Values, x: Values | None = None) -> Any:
    """Draw the bars of one distribution (n,) at x (n,), by default 0..n-1."""
    x = np.arange(np.size(p)) if x is None else x
    return ax.bar(
        np.asarray(x), np.asarray(p), width=0.78, color=style.bar(), edgecolor=style.BLUE, linewidth=0.8, zorder=2
    )


def _draw(ax: "Axes", given: Distributions, i: int) -> dict[str, Any]:
    """Draw the i-th distribution; return its legend."""
    n = len(given.classes)
    x = np.arange(n)
    legend: dict[str, Any] = {"estimate": bars(ax, given.P[i])}
    if given.lower is not None and given.upper is not None:
        # From end to end, whether or not the estimate lies in between.
        middle, half = (given.lower[i] + given.upper[i]) / 2, (given.upper[i] - given.lower[i]) / 2
        label = "interval" if given.level is None else f"{100 * given.level:g}% interval"
        drawn = ax.errorbar(x, middle, half, fmt="none", ecolor=style.ink(), elinewidth=1.2, zorder=4)
        shown = given.P[i] >= NOTHING if given.are_shares else np.ones(n, dtype=bool)
        drawn.lines[2][0].set(
            color=[style.ink() if there else style.SOFT for there in shown],
            linewidth=[1.2 if there else 0.6 for there in shown],
        )
        for ends in (given.lower[i], given.upper[i]):
            ax.scatter(x[shown], ends[shown], s=36 if n <= 10 else 16, marker="_", color=style.ink(), zorder=4)
        legend[label] = style.handle(label, style.ink(), dashes="-")
        if not shown.all():
            legend[NEAR_ZERO] = style.handle(NEAR_ZERO, style.SOFT, dashes="-")
    if given.truth is not None:
        look: dict[str, Any] = {"markerfacecolor": style.ORANGE, "markeredgecolor": style.ink(), "markeredgewidth": 0.8}
        legend["truth"] = ax.plot(x, given.truth[i], "D", markersize=5, zorder=5, **look)[0]
    style.tidy(ax, grid="y")
    ax.set_xlim(-0.6, n - 0.4)
    return legend


def _quantity(given: Distributions) -> str:
    return "share of items" if given.are_shares else "number of items"


def _n_columns(k: int) -> int:
    """Return a number of columns for k panels: about as many as rows."""
    square = int(np.ceil(np.sqrt(k)))
    return k if k <= 3 else min(range(square, square + 2), key=lambda c: (-k % c, c))


def _new_figure(given: Distributions, columns: int, width: float) -> Any:
    k = len(given.P)
    # Names of classes stand below the last row, and below the one before where the last is not full.
    named = style.name_height(given.classes, width, style.LETTER_SMALL, upright=True) * (1 if k % columns == 0 else 2)
    return style.new_figure((width * columns + 0.6, 1.5 * -(-k // columns) + 0.7 + named))


def _titles(given: Distributions, width: float) -> list[str]:
    """Return the names of the groups, cut to a width in inches, and their sizes."""
    sizes = [""] * len(given.P) if given.n_items is None else [f" ({size:,.0f})" for size in given.n_items]
    marks = [MARK if marked else "" for marked in given.is_marked]
    room = max(int(width / style.LETTER_SMALL) - max(map(len, sizes)) - max(map(len, marks)) - 2, 4)
    names = shortened(given.groups, room)
    return [mark + name + size for mark, name, size in zip(marks, names, sizes, strict=True)]


def _name_groups(figure: Any, xlabel: str, shown: int, total: int, which: str, *, warns: bool) -> None:
    """Write quantity, number of hidden groups and meaning of marks below the figure."""
    part = f"the {which} {shown} of {total:,} groups, in their order" if shown < total else ""
    first = f"{xlabel} ({part})" if xlabel and part else xlabel or part
    lines = [first, f"{MARK}{WARNING}" if warns else ""]
    if any(lines):
        look: dict[str, Any] = {"fontsize": "small", "color": style.SOFT, "x": 0.99, "ha": "right"} if part else {}
        look = look or {"fontsize": "medium" if not warns else "small"}
        style.literal([figure.supxlabel("\n".join(filter(None, lines)), **look)])


def _points(ax: "Axes", given: Distributions, high: float) -> None:
    """Draw each class of each sample."""
    assert given.truth is not None
    look: dict[str, Any] = {
        "s": 26,
        "alpha": 1 if len(given.P) <= 50 else 0.6,
        "edgecolors": style.ink(),
        "linewidths": 0.3,
    }
    for i, (name, color) in enumerate(zip(given.classes, style.shades(len(given.classes)), strict=True)):
        # Classes are ordered, and so are their colours; markers tell neighbours apart.
        marker = style.MARKERS[i % len(style.MARKERS)]
        label = cut(name, style.NAME_LENGTH)
        ax.scatter(given.truth[:, i], given.P[:, i], color=color, marker=marker, label=label, zorder=3, **look)
    legend = ax.legend(title="class", ncols=1 if len(given.classes) <= MAX_COLUMN else 2, **style.BESIDE)
    style.literal(legend.get_texts())


def _hexagons(ax: "Axes", given: Distributions, high: float) -> None:
    """Count the points in hexagons."""
    from matplotlib.colors import LogNorm

    assert given.truth is not None
    # Rare hexagons light and common ones dark, on a logarithmic scale: some hold a thousand times more than others.
    look: dict[str, Any] = {"norm": LogNorm(vmin=0.4), "cmap": "Blues", "linewidths": 0.1, "mincnt": 1}
    place: dict[str, Any] = {"gridsize": 42, "extent": (0, high, 0, high)}
    cells = ax.hexbin(given.truth.ravel(), given.P.ravel(), **place, **look)
    style.figure_of(ax).colorbar(cells, ax=ax, label=f"classes of {len(given.P):,} samples")


# Corners of the triangle of three classes: the lowest to the left, the highest to the right.
CORNERS = np.array([[0.0, 0.0], [0.5, np.sqrt(0.75)], [1.0, 0.0]])
# Points of an outline.
N_POINTS = 200


def region(
    found: Region, names: Sequence[Any] | None = None, truth: Values | None = None, ax: "Axes | None" = None
) -> "Axes":
    """Draw joint regions of distributions over three classes in a triangle.

    Parameters
    ----------
    found : Region
        Regions of B samples, as `Estimates.region` returns them.
    names : sequence (B,), default=None
        Names of the samples, for a legend.
    truth : array-like (B, 3), default=None
        True distributions.
    ax : Axes, default=None
        Axes to draw into. None creates a new figure.

    Examples
    --------
    >>> import ordinalq as oq
    >>> y = np.arange(300) % 3 + 1
    >>> X = y[:, None] + np.random.default_rng(0).normal(size=(300, 2))
    >>> ax = oq.plot.region(oq.PACC().fit(X, y).predict_interval(X, 0.95).region())
    >>> [text.get_text() for text in ax.texts]
    ['1', '2', '3']
    """
    n = found.centre.shape[1]
    if n != 3:
        raise ValueError(f"found must be regions of three classes, got {n}.")
    ax = style.new_axes((4.4, 4.2)) if ax is None else ax
    triangle = ax.fill(*CORNERS.T, facecolor="none", edgecolor=style.SOFT, linewidth=1.0, zorder=1)[0]
    size, axes = found.axes()
    angle = np.linspace(0, 2 * np.pi, N_POINTS)
    circle = np.column_stack([np.cos(angle), np.sin(angle)])
    labels = [None] * len(found) if names is None else [cut(plain(str(name)), style.NAME_LENGTH) for name in names]
    for b, label in enumerate(labels):
        color, marker, _ = style.LOOKS[b % len(style.LOOKS)]
        outline = found.centre[b] + (circle * np.sqrt(size[b] * found.radius2[b])) @ axes[b].T
        inside = ax.fill(*(outline @ CORNERS).T, color=color, alpha=0.25, zorder=2, label=label)[0]
        inside.set_clip_path(triangle)
        ax.plot(*(found.prevalences[b] @ CORNERS), color=color, marker=marker, markersize=4, zorder=3)
        if truth is not None:
            ax.plot(*(np.asarray(truth)[b] @ CORNERS), color=style.ink(), marker="x", markersize=5, zorder=3)
    for corner, name, place in zip(CORNERS, found.classes, ("top", "bottom", "top"), strict=True):
        text = ax.text(
            corner[0], corner[1], cut(plain(str(name)), style.NAME_LENGTH), ha="center", va=place, fontsize="small"
        )
        style.literal([text])
    ax.set_axis_off()
    ax.set_aspect("equal")
    style.literal([ax.set_title(f"{percent(found.level)} joint regions", fontsize="small", loc="left")])
    if names is not None:
        style.literal(ax.legend(**style.BESIDE).get_texts())
    return ax
