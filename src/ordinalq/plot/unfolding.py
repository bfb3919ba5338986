"""Plots of unfolded spectra and their checks."""

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
    model: Values | None = None,
    log: bool | None = None,
    bias: bool = True,
    xlabel: str = "",
    ax: "Axes | None" = None,
) -> Any:
    """Draw an unfolded spectrum: steps with error bars, the truth or a model beside it.

    Parameters
    ----------
    unfolding : Unfolding
        What `ordinalq.unfold` returns, over one axis or two.
    truth, model : array-like of the true shape, default=None
        True numbers of events, or those of a model.
    log : bool, default=None
        Whether the axis of the numbers is logarithmic; None: if the spectrum spans a factor of ten.
    bias : bool, default=True
        Whether thin bars show the error with the estimated bias of the regularizer, around the thick ones without it.
        Where it smooths strongly they are several times as long: the data do not say what it has smoothed away.
    xlabel : str, default=""
        What the bins of the first axis are.
    ax : Axes, default=None
        None stands for a new figure.

    Returns
    -------
    Axes, or array of them
        One panel; over two axes one per bin of the second.
    """
    counts, edges = np.asarray(unfolding.counts), unfolding.edges
    xlabel = xlabel or ("bin" if edges is None else "")
    beside = {name: array(name, value) for name, value in (("truth", truth), ("model", model)) if value is not None}
    for name, value in beside.items():
        if value.shape != counts.shape:
            raise ValueError(f"{name} must be one number per bin, shape {counts.shape}, got shape {value.shape}.")
    series = {"estimate": counts, "error": unfolding.error, **beside}
    if bias:
        series["with_bias"] = unfolding.error_with_bias
    shown = np.concatenate([value[value > 0] for value in (counts, *beside.values())])
    if log is None:
        log = bool(len(shown) and shown.max() / shown.min() > DECADE)
    limits = (float(shown.min()) / 3, 3 * float(shown.max())) if log else None
    if counts.ndim == 1:
        own = ax is None
        ax = style.new_axes((min(3.6 + 0.25 * len(counts), 8.0), 4.4)) if ax is None else ax
        _steps(ax, series, edges, limits, xlabel)
        ax.set_ylabel("events")
        if own:  # below, where it hides nothing
            style.legend_below(style.figure_of(ax), ax.get_legend_handles_labels()[0])
        else:
            ax.legend(frameon=False, fontsize="small")
        return ax
    if counts.ndim != 2 or ax is not None:
        raise ValueError(f"ax must be None, and there must be one or two axes of bins, got shape {counts.shape}.")
    return _rows(series, edges, limits, xlabel)


def _rows(series: dict[str, Floats], edges: Any, limits: Any, xlabel: str) -> Any:
    """Draw a panel for each bin of the second axis of series (n1, n2); return the panels."""
    n, k = series["estimate"].shape
    columns = k if k <= 3 else int(np.ceil(np.sqrt(k)))
    rows = -(-k // columns)
    figure = style.new_figure((min(2.0 + 0.12 * n, 4.0) * columns + 0.4, 2.1 * rows + 0.8))
    grid = figure.subplots(rows, columns, sharex=True, sharey=True, squeeze=False).ravel()
    for m, ax in enumerate(grid[:k]):
        below = m + columns >= k
        part = {name: value[:, m] for name, value in series.items()}
        _steps(ax, part, None if edges is None else edges[0], limits, xlabel if below else "")
        ax.tick_params(labelbottom=below)
        name = f"bin {m + 1}" if edges is None else f"{edges[1][m]:.4g} to {edges[1][m + 1]:.4g}"
        ax.set_title(name, fontsize="small", loc="left", pad=3)
    for ax in grid[k:]:
        ax.set_axis_off()
    figure.supylabel("events", fontsize="medium")
    style.legend_below(figure, grid[0].get_legend_handles_labels()[0])
    return grid[:k]


def _steps(ax: "Axes", series: dict[str, Floats], edges: Any, limits: Any, xlabel: str) -> None:
    """Draw series (n,) by name: the estimate with its errors, truth and model."""
    counts = series["estimate"]
    x = np.arange(len(counts) + 1) + 0.5 if edges is None else np.asarray(edges)
    spread = bool(x[0] > 0 and x[-1] / x[0] > DECADE and edges is not None)
    middle = np.sqrt(x[:-1] * x[1:]) if spread else (x[:-1] + x[1:]) / 2
    for name, color, dashes in (("truth", style.ORANGE, "-"), ("model", style.GREEN, "--")):
        if name in series:
            line: dict[str, Any] = {"linewidth": 2.0, "linestyle": dashes, "baseline": None, "zorder": 2}
            ax.stairs(series[name], x, color=color, label=name, **line)
    ax.stairs(counts, x, color=style.BLUE, linewidth=1.4, label="estimate", baseline=None, zorder=3)
    if "with_bias" in series:
        ax.errorbar(middle, counts, series["with_bias"], fmt="none", ecolor=style.SOFT, elinewidth=0.9, capsize=2)
    thick: dict[str, Any] = {"fmt": "o", "color": style.BLUE, "ecolor": style.ink(), "markersize": 4, "elinewidth": 2.0}
    ax.errorbar(middle, counts, series["error"], label="error", zorder=4, **thick)
    if "with_bias" in series:
        ax.plot([], [], color=style.SOFT, linewidth=0.9, label="error with the estimated bias")
    if limits is not None:
        ax.set_yscale("log")
        ax.set_ylim(*limits)
    if spread:
        style.number_axis(ax.xaxis, x)
    ax.set_xlabel(xlabel)
    style.tidy(ax)


def strength_scan(scan: Any, ax: "Axes | None" = None) -> "Axes":
    """Draw what a rule saw: its criterion over the effective degrees of freedom, with the chosen strength.

    Parameters
    ----------
    scan : Scan
        ``unfolding.scan``.
    ax : Axes, default=None
        None stands for a new figure.
    """
    ax = style.new_axes((4.8, 3.4)) if ax is None else ax
    shown = np.isfinite(scan.criterion)
    x, y = scan.n_df[shown], scan.criterion[shown]
    ax.plot(x, y, "o-", color=style.BLUE, markersize=4, linewidth=1.4, zorder=3)
    k = scan.chosen
    ring: dict[str, Any] = {"markersize": 13, "markerfacecolor": "none", "markeredgecolor": style.ink()}
    ax.plot(scan.n_df[k], scan.criterion[k], "o", markeredgewidth=1.4, zorder=4, **ring)
    name = f"chosen: strength {scan.strengths[k]:.3g}, {scan.n_df[k]:.1f} degrees of freedom"
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
    "coverage": ("with_bias", "share of toys that hold the truth"),
}


def check(outcome: Any, ax: "Axes | None" = None) -> "Axes":
    """Draw the outcome of a check of an unfolding: per bin, or per model before and after unfolding.

    Parameters
    ----------
    outcome : Check
        What `closure_test`, `bottom_line_test` or `coverage_test` return.
    ax : Axes, default=None
        None stands for a new figure.
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
    # Intervals may hold the truth more often than they say.
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
