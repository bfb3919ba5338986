"""Plots of unfolded spectra and their checks."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from ordinalq._utils.validation import Floats
from ordinalq.plot import style
from ordinalq.plot.distributions import Values, array
from ordinalq.plot.style import Axes

# Spectra that span more than this are drawn on a logarithmic axis.
DECADE = 10.0


def spectrum(
    unfolding: Any,
    *,
    truth: Values | None = None,
    model: Any = None,
    ratio: bool = False,
    density: bool = False,
    log: bool | None = None,
    log_x: bool | None = None,
    bias: bool = True,
    xlabel: str = "",
    ylabel: str = "",
    ax: "Axes | None" = None,
) -> Any:
    """Draw an unfolded spectrum: steps with error bars, next to the truth or models.

    Parameters
    ----------
    unfolding : Unfolding
        Result of `ordinalq.unfold`, over one axis or two.
    truth : array-like of the true shape, default=None
        True numbers of events.
    model : array-like of the true shape, or mapping of names to them, default=None
        Numbers of events of one model or several.
    ratio : bool, default=False
        Whether a second panel shows the ratios of truth and models to the estimate, with its errors. One axis only.
    density : bool, default=False
        Whether numbers are divided by the widths of the bins.
    log, log_x : bool, default=None
        Whether the axis of the numbers, or of the bins, is logarithmic. None means if it spans a factor of ten.
    bias : bool, default=True
        Whether the bars are total errors; thick bars within them show the errors without bias.
    xlabel, ylabel : str, default=""
        Labels; the default of the second is "events".
    ax : Axes, default=None
        None means a new figure.

    Returns
    -------
    Axes, or array of them
        One panel; with `ratio` two; over two axes one per bin of the second.
    """
    counts, edges = np.asarray(unfolding.counts), unfolding.edges
    models = model if isinstance(model, Mapping) else {} if model is None else {"model": model}
    others = {name: array(name, value) for name, value in {"truth": truth, **models}.items() if value is not None}
    for name, value in others.items():
        if value.shape != counts.shape:
            raise ValueError(f"{name} must be one number per bin, shape {counts.shape}, got shape {value.shape}.")
    series = {"estimate": counts, "error": unfolding.error, **others}
    if bias:
        series["total"] = unfolding.total_error
    if unfolding.measurement.blocks is not None:
        edges = None
    xlabel = xlabel or ("bin" if edges is None else "")
    if counts.ndim == 1 and edges is not None:
        inner = np.isfinite(edges[:-1]) & np.isfinite(edges[1:])
        series, edges = {name: value[inner] for name, value in series.items()}, np.asarray(edges)[np.isfinite(edges)]
    if density:
        if edges is None or counts.ndim != 1:
            raise ValueError("density must be False without the edges of one axis.")
        series = {name: value / np.diff(edges) for name, value in series.items()}
    drawn = [series["estimate"], *(series[name] for name in others)]
    shown = np.concatenate([value[value > 0] for value in drawn])
    if log is None:
        log = bool(len(shown) and shown.max() / shown.min() > DECADE)
    limits = (float(shown.min()) / 3, 3 * float(shown.max())) if log else None
    ylabel = ylabel or ("events / width" if density else "events")
    if counts.ndim == 1:
        return _one_axis(series, edges, limits, log_x, (xlabel, ylabel), ax, ratio=ratio)
    if counts.ndim != 2 or ax is not None or ratio:
        raise ValueError(f"ax must be None, and there must be one or two axes of bins, got shape {counts.shape}.")
    return _rows(series, edges, limits, log_x, (xlabel, ylabel))


def _one_axis(
    series: dict[str, Floats], edges: Any, limits: Any, log_x: Any, labels: tuple[str, str], ax: Any, *, ratio: bool
) -> Any:
    """Draw one panel, and the ratios in a second one."""
    own, size = ax is None, (min(3.6 + 0.25 * len(series["estimate"]), 8.0), 5.4 if ratio else 4.4)
    if ratio and not own:
        raise ValueError("ax must be None with ratio=True, which needs two panels.")
    panels = _two_panels(size) if ratio else [style.new_axes(size) if ax is None else ax]
    _steps(panels[0], series, edges, limits, log_x, "" if ratio else labels[0])
    panels[0].set_ylabel(labels[1])
    if ratio:
        _ratios(panels[1], series, edges, labels[0])
    if own:  # below, where it hides nothing
        style.legend_below(style.figure_of(panels[0]), panels[0].get_legend_handles_labels()[0])
    else:
        panels[0].legend(frameon=False, fontsize="small")
    return np.array(panels) if ratio else panels[0]


def _two_panels(size: tuple[float, float]) -> Any:
    """Return axes for a spectrum and for its ratios below, with one common x axis."""
    return style.new_figure(size).subplots(2, 1, sharex=True, height_ratios=(3, 1.3))


def _positions(n: int, edges: Any, log_x: Any) -> tuple[Floats, Floats, bool]:
    """Return edges (n + 1,), middles (n,) and whether the axis is logarithmic."""
    x = np.asarray(np.arange(n + 1) + 0.5 if edges is None else edges, dtype=np.float64)
    spread = bool(x[0] > 0 and x[-1] / x[0] > DECADE and edges is not None) if log_x is None else bool(log_x)
    return x, np.asarray(np.sqrt(x[:-1] * x[1:]) if spread else (x[:-1] + x[1:]) / 2), spread


def _ratios(ax: "Axes", series: dict[str, Floats], edges: Any, xlabel: str) -> None:
    """Draw everything divided by the estimate."""
    counts = series["estimate"]
    safe = np.where(counts > 0, counts, np.nan)
    x, middle, _ = _positions(len(counts), edges, ax.get_xscale() == "log")
    wide = series.get("total", series["error"]) / safe
    band: dict[str, Any] = {"baseline": 1 - wide, "fill": True, "color": style.bar(), "alpha": 0.6, "linewidth": 0}
    ax.stairs(1 + wide, x, **band)
    ax.errorbar(middle, np.ones_like(counts), series["error"] / safe, fmt="o", color=style.BLUE, markersize=3)
    for name, look in _styles(series).items():
        ax.stairs(series[name] / safe, x, baseline=None, linewidth=1.8, **look)
    lines = np.clip([series[name] / safe for name in _styles(series)] or [np.ones_like(counts)], 0.3, 2.0)
    lowest, highest = min(np.nanmin(1 - wide), np.nanmin(lines)), max(np.nanmax(1 + wide), np.nanmax(lines))
    margin = 0.1 * (highest - lowest)
    ax.set_ylim(max(lowest - margin, -0.2), min(highest + margin, 3.0))
    ax.set(xlabel=xlabel, ylabel="ratio to\nestimate")
    _tidy(ax)


def _styles(series: dict[str, Floats]) -> dict[str, dict[str, Any]]:
    """Return colours and dashes of truth and models."""
    looks: dict[str, dict[str, Any]] = {"truth": {"color": style.ORANGE, "linestyle": "-"}}
    others = [name for name in series if name not in ("estimate", "error", "total", "truth")]
    choice = [(style.GREEN, "--"), (style.PINK, "-."), (style.VERMILION, ":"), (style.SKY, (0, (6, 1, 1, 1)))]
    for k, name in enumerate(others):
        color, dashes = choice[k % len(choice)]
        looks[name] = {"color": color, "linestyle": dashes}
    return {name: look for name, look in looks.items() if name in series}


def _tidy(ax: "Axes") -> None:
    """Tidy the axes, unless a style has ticks on all sides."""
    from matplotlib import rcParams

    if not rcParams["xtick.top"]:
        style.tidy(ax)


def _rows(series: dict[str, Floats], edges: Any, limits: Any, log_x: Any, labels: tuple[str, str]) -> Any:
    """Draw a panel for each bin of the second axis of series (n1, n2)."""
    n, k = series["estimate"].shape
    columns = k if k <= 3 else int(np.ceil(np.sqrt(k)))
    rows = -(-k // columns)
    figure = style.new_figure((min(2.0 + 0.12 * n, 4.0) * columns + 0.4, 2.1 * rows + 0.8))
    grid = figure.subplots(rows, columns, sharex=True, sharey=True, squeeze=False).ravel()
    for m, ax in enumerate(grid[:k]):
        below = m + columns >= k
        part = {name: value[:, m] for name, value in series.items()}
        _steps(ax, part, None if edges is None else edges[0], limits, log_x, labels[0] if below else "")
        ax.tick_params(labelbottom=below)
        name = f"bin {m + 1}" if edges is None else f"{edges[1][m]:.4g} to {edges[1][m + 1]:.4g}"
        ax.set_title(name, fontsize="small", loc="left", pad=3)
    for ax in grid[k:]:
        ax.set_axis_off()
    figure.supylabel(labels[1], fontsize="medium")
    style.legend_below(figure, grid[0].get_legend_handles_labels()[0])
    return grid[:k]


def _steps(ax: "Axes", series: dict[str, Floats], edges: Any, limits: Any, log_x: Any, xlabel: str) -> None:
    """Draw series (n,) by name: the estimate with its errors, truth and models."""
    counts = series["estimate"]
    x, middle, spread = _positions(len(counts), edges, log_x)
    for name, look in _styles(series).items():
        ax.stairs(series[name], x, label=name, linewidth=2.0, baseline=None, zorder=2, **look)
    ax.stairs(counts, x, color=style.BLUE, linewidth=1.4, label="estimate", baseline=None, zorder=3)
    if "total" in series:
        ax.errorbar(middle, counts, series["total"], fmt="none", ecolor=style.SOFT, elinewidth=0.9, capsize=2)
    thick: dict[str, Any] = {"fmt": "o", "color": style.BLUE, "ecolor": style.ink(), "markersize": 4, "elinewidth": 2.0}
    label = "error without bias" if "total" in series else "error"
    ax.errorbar(middle, counts, series["error"], label=label, zorder=4, **thick)
    if "total" in series:
        ax.plot([], [], color=style.SOFT, linewidth=0.9, label="total error")
    if limits is not None:
        ax.set_yscale("log")
        ax.set_ylim(*limits)
    if spread:
        style.number_axis(ax.xaxis, x)
    ax.set_xlabel(xlabel)
    _tidy(ax)


def refolded(
    unfolding: Any, *, edges: Any = None, log: bool | None = None, log_x: bool | None = None, xlabel: str = ""
) -> Any:
    """Draw observed counts with those that the estimate predicts, and their ratio.

    Parameters
    ----------
    unfolding : Unfolding
        Result of `ordinalq.unfold`.
    edges : array-like (d + 1,), default=None
        Edges of the observed bins. None means numbers of bins.
    log, log_x : bool, default=None
        Whether the axes are logarithmic. None means if they span a factor of ten.
    xlabel : str, default=""
        Label of the bins.

    Returns
    -------
    array of two Axes
    """
    g, expected = np.asarray(unfolding.observed).ravel(), np.asarray(unfolding.refolded).ravel()
    known = unfolding.measurement
    root = np.sqrt(np.diagonal(known.fluctuations(expected[None])[0]))
    top, below = _two_panels((min(3.6 + 0.25 * len(g), 8.0), 5.0))
    x, middle, spread = _positions(len(g), edges, log_x)
    top.stairs(expected, x, color=style.BLUE, linewidth=1.6, label="refolded estimate", baseline=None)
    if known.background.any():
        top.stairs(
            known.background, x, color=style.SOFT, linestyle="--", linewidth=1.4, label="background", baseline=None
        )
    bars: dict[str, Any] = {"fmt": "o", "color": style.ink(), "markersize": 4}
    top.errorbar(middle, g, root, label="observed", **bars)
    shown = np.concatenate([g[g > 0], expected[expected > 0]])
    if log or (log is None and len(shown) and shown.max() / shown.min() > DECADE):
        top.set_yscale("log")
        top.set_ylim(float(shown.min()) / 3, 3 * float(shown.max()))
    safe = np.where(expected > 0, expected, np.nan)
    below.errorbar(middle, g / safe, root / safe, **bars)
    below.axhline(1.0, color=style.BLUE, linewidth=1.4)
    if spread:
        style.number_axis(below.xaxis, x)
    top.set_ylabel("events")
    below.set(xlabel=xlabel or ("observed bin" if edges is None else ""), ylabel="observed /\nrefolded")
    title = f"chi-square {unfolding.chi_square:.3g}, {unfolding.dof:.3g} degrees of freedom left"
    top.set_title(
        title + (f", p = {unfolding.p_value:.2g}" if np.isfinite(unfolding.p_value) else ""),
        fontsize="small",
        loc="left",
    )
    _tidy(top)
    _tidy(below)
    style.legend_below(style.figure_of(top), top.get_legend_handles_labels()[0])
    return np.array([top, below])


def correlation(unfolding: Any, *, xlabel: str = "true bin", ax: "Axes | None" = None) -> Any:
    """Draw the correlation matrix of the total covariance.

    Parameters
    ----------
    unfolding : Unfolding
        Result of `ordinalq.unfold`.
    xlabel : str, default="true bin"
        Label of both axes.
    ax : Axes, default=None
        None means a new figure.
    """
    C = np.asarray(unfolding.correlation)
    return _matrix(C, (None, None), "RdBu_r", (-1.0, 1.0), (xlabel, xlabel, "correlation"), False, ax)


def response(
    unfolding: Any,
    *,
    edges: Any = None,
    log: bool | None = None,
    xlabel: str = "true",
    ylabel: str = "observed",
    ax: "Axes | None" = None,
) -> Any:
    """Draw the response with acceptance over the edges of its bins.

    Parameters
    ----------
    unfolding : Unfolding
        Result of `ordinalq.unfold`.
    edges : array-like (d + 1,), default=None
        Edges of the observed bins. None means numbers of bins.
    log : bool, default=None
        Whether axes with edges are logarithmic. None means if the true edges span a factor of ten.
    xlabel, ylabel : str
        Labels of the axes.
    ax : Axes, default=None
        None means a new figure.
    """
    R, true = unfolding.measurement.response, unfolding.edges
    if true is not None and (not isinstance(true, np.ndarray) or not np.isfinite(true).all()):
        true = None
    is_log = bool(true is not None and true[0] > 0 and true[-1] / true[0] > DECADE) if log is None else log
    return _matrix(
        R, (true, edges), style.COLOR_MAP, (0.0, float(R.max())), (xlabel, ylabel, "probability"), is_log, ax
    )


def _matrix(
    C: Floats, edges: Any, colors: str, limits: tuple[float, float], labels: tuple[str, str, str], is_log: bool, ax: Any
) -> Any:
    """Draw a matrix, its first axis upright, over edges or numbers of bins."""
    ax = style.new_axes((5.2, 4.4)) if ax is None else ax
    y, x = (np.arange(n + 1) + 0.5 if e is None else np.asarray(e) for n, e in zip(C.shape, edges[::-1], strict=True))
    mesh = ax.pcolormesh(x, y, C, cmap=colors, vmin=limits[0], vmax=limits[1])
    bar = style.figure_of(ax).colorbar(mesh, ax=ax, label=labels[2])
    bar.outline.set_visible(False)
    for axis, values, given in ((ax.xaxis, x, edges[0]), (ax.yaxis, y, edges[1])):
        if given is not None and is_log and values[0] > 0:
            style.number_axis(axis, values)
        elif given is None:
            axis.get_major_locator().set_params(integer=True)
    ax.set(xlabel=labels[0], ylabel=labels[1])
    return ax


def strength_scan(scan: Any, ax: "Axes | None" = None) -> "Axes":
    """Draw the criterion of a rule over the degrees of freedom, with its choice.

    Parameters
    ----------
    scan : Scan
        ``unfolding.scan``.
    ax : Axes, default=None
        Axes to draw into. None creates a new figure.
    """
    ax = style.new_axes((4.8, 3.4)) if ax is None else ax
    shown = np.isfinite(scan.criterion)
    x, y = scan.n_df[shown], scan.criterion[shown]
    ax.plot(x, y, "o-", color=style.BLUE, markersize=4, linewidth=1.4, zorder=3)
    k = scan.chosen
    ring: dict[str, Any] = {"markersize": 13, "markerfacecolor": "none", "markeredgecolor": style.ink()}
    ax.plot(scan.n_df[k], scan.criterion[k], "o", markeredgewidth=1.4, zorder=4, **ring)
    name = f"chosen: strength {scan.strength:.3g}, {scan.n_df[k]:.1f} degrees of freedom"
    ax.set_title(name, fontsize="small", loc="left", color=style.ink())
    # From a weak regularizer, left, to a strong one.
    ax.invert_xaxis()
    if y.min() > 0 and y.max() / y.min() > DECADE:
        ax.set_yscale("log")
    ax.set(xlabel="effective degrees of freedom", ylabel=f"criterion: {scan.rule}")
    style.tidy(ax)
    return ax


# Column of a check that is drawn, and what it is.
CHECKS = {
    "closure": ("bias_in_errors", "bias / statistical error"),
    "coverage": ("with_bias", "share of toys that contain the true value"),
}


def check(outcome: Any, ax: "Axes | None" = None) -> "Axes":
    """Draw a check of an unfolding: per bin, or per model before and after.

    Parameters
    ----------
    outcome : Check
        What `closure_test`, `bottom_line_test` or `coverage_test` return.
    ax : Axes, default=None
        Axes to draw into. None creates a new figure.
    """
    columns = outcome.columns
    if outcome.name == "bottom line":
        ax = style.new_axes((4.2, 3.8)) if ax is None else ax
        floor = 1e-12
        x, y = (np.maximum(columns[name], floor) for name in ("p_folded", "p_unfolded"))
        ax.plot(x, y, "o", color=style.BLUE, zorder=3)
        for name, a, b in zip(columns["model"], x, y, strict=True):
            style.literal([ax.annotate(str(name), (a, b), xytext=(5, 4), textcoords="offset points", fontsize="small")])
        low = min(x.min(), y.min(), 0.1) / 2
        ax.plot([low, 1.2], [low, 1.2], color=style.ink(), linestyle="--", linewidth=1.0)
        ax.fill_between([outcome.allowed, 1.2], low, [outcome.allowed, 1.2], color=style.bar(), alpha=0.4, linewidth=0)
        ax.set_title("shaded: allowed before, worse after unfolding", fontsize="small", loc="left")
        ax.set(xscale="log", yscale="log", xlabel="p-value before unfolding", ylabel="p-value after unfolding")
        style.tidy(ax)
        return ax
    name, label = CHECKS[outcome.name]
    ax = style.new_axes((4.8, 3.2)) if ax is None else ax
    bins = columns["bin"]
    if outcome.name == "coverage":
        ax.plot(bins, columns["without_bias"], "s--", color=style.VERMILION, markersize=4, label="errors without bias")
        ax.set_ylim(0, 1.02)
    ax.plot(bins, columns[name], "o-", color=style.BLUE, markersize=5, label="errors with bias", zorder=3)
    ax.axhline(outcome.expected, color=style.ink(), linestyle=":", linewidth=1.2)
    # Coverage may exceed the level.
    low, high = outcome.expected - outcome.allowed, 1.0 if outcome.name == "coverage" else outcome.allowed
    ax.axhspan(low, high, color=style.bar(), alpha=0.3, linewidth=0, label="allowed")
    if outcome.name == "coverage":
        ax.legend(frameon=False, fontsize="small")
    else:
        ax.set_title(f"shaded: within {outcome.allowed:g} errors, as is allowed", fontsize="small", loc="left")
    ax.set(xlabel="bin", ylabel=label)
    ax.set_xticks(bins[:: 1 + len(bins) // 15])
    style.tidy(ax)
    return ax
