"""Plots of errors over strength or samples, and of response matrices."""

from collections.abc import Mapping, Sequence
from itertools import cycle
from typing import Any

import numpy as np

from ordinalq._utils.text import cut
from ordinalq._utils.validation import Floats, check_distributions
from ordinalq.metrics import errors
from ordinalq.plot.distributions import Values, array, names
from ordinalq.plot.style import (
    COLOR_MAP,
    INK,
    LOOKS,
    MAX_NAMES,
    NAME_LENGTH,
    Axes,
    figure_of,
    ink,
    literal,
    name_classes,
    new_axes,
    tidy,
)


def tau_path(
    taus: Values,
    errors: Values,
    standard_errors: Values | None = None,
    chosen: float | None = None,
    label: str | None = None,
    ax: "Axes | None" = None,
) -> "Axes":
    """Draw the error against the strength of the regularizer.

    Parameters
    ----------
    taus : array-like (k,)
        Strengths >= 0, in any order.
    errors : array-like (k,)
        Error for each strength.
    standard_errors : array-like (k,), default=None
        Standard errors of the errors, drawn as bars.
    chosen : float, default=None
        The strength to mark, one of `taus`.
    label : str, default=None
        Legend entry, if several paths are drawn into the same axes.
    ax : Axes, default=None
        Axes to draw into. None creates a new figure.

    Examples
    --------
    >>> from ordinalq.plot import tau_path
    >>> ax = tau_path([0, 1e-3, 1e-1], [0.05, 0.03, 0.04], chosen=1e-3)
    >>> ax.get_xticks().tolist()
    [0.0, 0.001, 0.01, 0.1]
    """
    x = _series("taus", taus)
    y = _series("errors", errors, len(x))
    spread = np.zeros(len(x)) if standard_errors is None else _series("standard_errors", standard_errors, len(x))
    if (x < 0).any():
        raise ValueError(f"taus must be >= 0, got {x.min():g}.")
    if chosen is not None and not np.isclose(x, chosen, rtol=1e-9, atol=0).any():
        raise ValueError(f"chosen must be one of taus, got {chosen!r}.")
    order = np.argsort(x, kind="stable")
    x, y, spread = x[order], y[order], spread[order]
    ax = new_axes((4.8, 3.2)) if ax is None else ax
    color, marker, dashes = LOOKS[len(ax.containers) % len(LOOKS)]
    _tau_axis(ax, x)
    look: dict[str, Any] = {"color": color, "marker": marker, "markersize": 5.5, "capsize": 3, "elinewidth": 1.1}
    for part, line in ((x > 0, dashes), (x == 0, "none")):
        # No line to tau = 0, which is infinitely far away on this axis.
        if part.any() or line == dashes:
            bars = None if standard_errors is None else spread[part]
            name = label if line == dashes else None
            ax.errorbar(x[part], y[part], bars, linestyle=line, linewidth=1.6, label=name, zorder=3, **look)
    if (x == 0).any():
        del ax.containers[-1]  # which count the paths
    if chosen is not None:
        _mark(ax, x, y, int(np.argmin(np.abs(x - chosen))), alone=label is None)
    ax.set_xlabel("tau, strength of the regularizer")
    ax.set_ylabel("error")
    tidy(ax)
    if label is not None:
        ax.legend(frameon=False, fontsize="small", markerscale=0.8)
    return ax


def _mark(ax: "Axes", x: Floats, y: Floats, i: int, *, alone: bool) -> None:
    """Draw a ring around the chosen point, and name it."""
    # With several paths the legend explains the rings, once; a text could cover another path.
    known = "chosen" in ax.get_legend_handles_labels()[1]
    ring: dict[str, Any] = {"markersize": 14, "markerfacecolor": "none", "markeredgecolor": ink(), "linestyle": "none"}
    label = None if alone or known else "chosen"
    ax.plot(x[i], y[i], marker="o", markeredgewidth=1.4, zorder=4, label=label, **ring)
    if not alone:
        return
    side = "left" if i == 0 and len(x) > 1 else "right" if i == len(x) - 1 and i > 0 else "center"
    place = ({"left": -7, "right": 7, "center": 0}[side], -12)
    look: dict[str, Any] = {"ha": side, "va": "top", "color": ink(), "fontsize": "small", "zorder": 5}
    ax.annotate(f"chosen: {x[i]:g}", (x[i], y[i]), xytext=place, textcoords="offset points", **look)
    ax.margins(y=0.18)


def _tau_axis(ax: Any, x: Floats) -> None:
    """Make the x axis logarithmic, with zero a decade left of the smallest tau."""
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


def _series(name: str, value: Values, n: int | None = None) -> Floats:
    found = array(name, value)
    if found.ndim != 1 or (n is not None and len(found) != n):
        raise ValueError(f"{name} must be one number per tau{'' if n is None else f', {n}'}, got shape {found.shape}.")
    return found


# Errors of methods on samples with known prevalences.


def error_by_shift(
    estimates: Mapping[str, Values],
    truth: Values,
    p_train: Values,
    *,
    measure: str = "nmd",
    n_bins: int = 10,
    ax: "Axes | None" = None,
) -> "Axes":
    """Draw mean errors against the distance from the training distribution.

    Samples are sorted by their distance, in the same measure as the error, and divided into bins with equal numbers of
    samples. Bands extend two standard errors to each side.

    Parameters
    ----------
    estimates : dict of str to array-like (B, n)
        Estimated prevalences of each method.
    truth : array-like (B, n)
        True prevalences of the samples.
    p_train : array-like (n,)
        Training prevalences, such as ``q.p_train_``.
    measure : str, default="nmd"
        Error measure, see :func:`ordinalq.metrics.errors`.
    n_bins : int, default=10
        Maximum number of bins. Each has at least five samples.
    ax : Axes, default=None
        Axes to draw into. None creates a new figure.

    Examples
    --------
    >>> import numpy as np
    >>> from ordinalq.plot import error_by_shift
    >>> truth = np.random.default_rng(0).dirichlet(np.ones(3), 100)
    >>> ax = error_by_shift({"training": np.full((100, 3), 1 / 3)}, truth, [1 / 3, 1 / 3, 1 / 3])
    >>> ax.get_xlabel()
    'distance from the training distribution (NMD)'
    """
    P = check_distributions("truth", array("truth", truth))
    centre = check_distributions("p_train", array("p_train", p_train))
    distance = errors(np.broadcast_to(centre, P.shape), P, measure)
    bins = np.array_split(np.argsort(distance, kind="stable"), max(1, min(n_bins, len(P) // 5)))
    x = np.array([distance[rows].mean() for rows in bins])
    ax = new_axes((4.8, 3.2)) if ax is None else ax
    for (name, found), (color, marker, dashes) in zip(estimates.items(), cycle(LOOKS), strict=False):
        error = errors(P, check_distributions(name, array(name, found)), measure)
        mean = np.array([error[rows].mean() for rows in bins])
        half = 2 * np.array([error[rows].std(ddof=1) / np.sqrt(len(rows)) if len(rows) > 1 else 0.0 for rows in bins])
        ax.plot(x, mean, color=color, marker=marker, linestyle=dashes, markersize=5, linewidth=1.6, label=name)
        ax.fill_between(x, mean - half, mean + half, color=color, alpha=0.15, linewidth=0)
    ax.set(xlabel=f"distance from the training distribution ({measure.upper()})", ylabel=f"mean {measure.upper()}")
    ax.set_ylim(bottom=0)
    tidy(ax)
    ax.legend(frameon=False, fontsize="small")
    return ax


def bias(
    estimates: Mapping[str, Values],
    truth: Values,
    classes: Sequence[Any] | None = None,
    ax: "Axes | None" = None,
) -> "Axes":
    """Draw differences between estimated and true prevalences as boxes.

    A box reaches from the first to the third quartile of the samples, and its line is the median. Whiskers contain 95%
    of the samples.

    Parameters
    ----------
    estimates : dict of str to array-like (B, n)
        Estimated prevalences of each method.
    truth : array-like (B, n)
        True prevalences of the samples.
    classes : sequence (n,), default=None
        Class names in ascending order. None means 1..n.
    ax : Axes, default=None
        Axes to draw into. None creates a new figure.

    Examples
    --------
    >>> from ordinalq.plot import bias
    >>> ax = bias({"PACC": [[0.3, 0.7], [0.5, 0.5]]}, [[0.4, 0.6], [0.5, 0.5]], ["bad", "good"])
    >>> [text.get_text() for text in ax.get_xticklabels()]
    ['bad', 'good']
    """
    P = check_distributions("truth", array("truth", truth))
    n, k = P.shape[1], len(estimates)
    if ax is None:
        ax = new_axes((min(2.4 + 0.3 * n * k, 11.0), 3.4))
    width = 0.8 / max(k, 1)
    for i, ((name, found), (color, _, _)) in enumerate(zip(estimates.items(), cycle(LOOKS), strict=False)):
        off = check_distributions(name, array(name, found)) - P
        drawn = ax.boxplot(
            off,
            positions=np.arange(n) + (i - (k - 1) / 2) * width,
            widths=0.8 * width,
            whis=(2.5, 97.5),
            showfliers=False,
            patch_artist=True,
            manage_ticks=False,
            medianprops={"color": ink()},
            whiskerprops={"color": color},
            capprops={"color": color},
            boxprops={"facecolor": color, "edgecolor": color, "alpha": 0.5},
        )
        drawn["boxes"][0].set_label(name)
    ax.axhline(0, color=ink(), linewidth=0.8)
    name_classes(ax, names("classes", classes, n))
    ax.set(xlabel="class", ylabel="estimated - true prevalence", xlim=(-0.6, n - 0.4))
    tidy(ax, "y")
    ax.legend(frameon=False, fontsize="small")
    return ax


# Matrices as heat maps.


# Above this many cells numbers cannot be read.
MAX_NUMBERS = 150
# Below this part of the scale cells are so dark that numbers must be white.
DARK = 0.55


def response_matrix(
    M: Values, classes: Sequence[Any] | None = None, bins: Sequence[Any] | None = None, ax: "Axes | None" = None
) -> "Axes":
    """Draw M as a heat map: one column per class, one row per observed bin.

    Parameters
    ----------
    M : array-like (d, n)
        Mean representation of each class, or response matrix.
    classes : sequence (n,), default=None
        Class names in ascending order. None means 1..n.
    bins : sequence (d,), default=None
        Names of the rows. None means `classes` if d = n, else 1..d.
    ax : Axes, default=None
        Axes to draw into. None creates a new figure.

    Returns
    -------
    Axes
        Numbers are written into the cells if there are at most 150.
    """
    cells = array("M", M)
    if cells.ndim != 2:
        raise ValueError(f"M must have shape (d, n), got shape {cells.shape}.")
    d, n = cells.shape
    columns = names("classes", classes, n)
    rows = columns if bins is None and d == n else names("bins", bins, d)
    if ax is None:
        ax = new_axes((min(2.6 + 0.45 * n, 10.0), min(1.6 + 0.36 * d, 9.0)))
    low, high = min(float(cells.min()), 0.0), float(cells.max())
    image = ax.imshow(cells, cmap=COLOR_MAP, vmin=low, origin="lower", aspect="auto", interpolation="nearest")
    shares = np.allclose(cells.sum(axis=0), 1, atol=1e-3)
    bar = figure_of(ax).colorbar(image, ax=ax, label="share of the class" if shares else "mean of the class")
    bar.outline.set_visible(False)
    name_classes(ax, columns)
    step = -(-d // MAX_NAMES)
    ax.set_yticks(range(0, d, step), [cut(name, NAME_LENGTH) for name in rows[::step]])
    literal(ax.get_yticklabels())
    if d * n <= MAX_NUMBERS:
        for i, j in np.ndindex(d, n):
            color = "white" if cells[i, j] - low < DARK * (high - low) else INK
            ax.text(j, i, _number(float(cells[i, j])), ha="center", va="center", fontsize="small", color=color)
    ax.set(xlabel="true class", ylabel="observed")
    ax.tick_params(length=0)
    for spine in ax.spines.values():
        spine.set_visible(False)
    return ax


def _number(value: float) -> str:
    """Return 0.07 as .07, and nothing for .00.

    >>> _number(0.07), _number(0.001), _number(12.3)
    ('.07', '', '12')
    """
    text = f"{value:.2f}" if abs(value) < 10 else f"{value:.0f}"
    return "" if text in ("0.00", "-0.00") else text[1:] if text.startswith("0.") else text
