"""Unfolded spectra, and how their strength was chosen."""

from typing import TYPE_CHECKING, Any

import numpy as np

from ordinalq.plot import style
from ordinalq.plot.inputs import Values, array

if TYPE_CHECKING:
    from matplotlib.axes import Axes

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
) -> "Axes":
    """Draw an unfolded spectrum: steps with error bars, the truth or a model beside it.

    Parameters
    ----------
    unfolding : Unfolding
        What `ordinalq.unfold` returns, over one axis.
    truth, model : array-like (n,), default=None
        True numbers of events, or those of a model.
    log : bool, default=None
        Whether the axis of the numbers is logarithmic; None stands for spectra that span a factor of ten.
    bias : bool, default=True
        Whether thin bars show the error with the estimated bias of the regularizer, around the thick ones without it.
        Where it smooths strongly they are several times as long: the data do not say what it has smoothed away.
    xlabel : str, default=""
        What the bins are.
    ax : Axes, default=None
        None stands for a new figure.

    Returns
    -------
    Axes
    """
    counts = np.asarray(unfolding.counts)
    if counts.ndim != 1:
        raise ValueError(f"a spectrum over one axis is needed, got shape {counts.shape}; plot slices of counts.")
    n = len(counts)
    edges = np.arange(n + 1) + 0.5 if unfolding.edges is None else np.asarray(unfolding.edges)
    ax = style.new_axes((min(3.6 + 0.25 * n, 8.0), 3.8)) if ax is None else ax
    spread = bool(edges[0] > 0 and edges[-1] / edges[0] > DECADE)
    middle = np.sqrt(edges[:-1] * edges[1:]) if spread else (edges[:-1] + edges[1:]) / 2
    top = [counts]
    for name, value, color, dashes in (("truth", truth, style.ORANGE, "-"), ("model", model, style.GREEN, "--")):
        if value is not None:
            beside = array(name, value)
            if beside.shape != counts.shape:
                raise ValueError(f"{name} must be one number per bin, {n}, got shape {beside.shape}.")
            ax.stairs(beside, edges, color=color, linewidth=2.0, linestyle=dashes, label=name, baseline=None, zorder=2)
            top.append(beside)
    ax.stairs(counts, edges, color=style.BLUE, linewidth=1.4, label="estimate", baseline=None, zorder=3)
    thick: dict[str, Any] = {"fmt": "o", "color": style.BLUE, "ecolor": style.INK, "markersize": 4}
    if bias:
        ax.errorbar(middle, counts, unfolding.error_with_bias, fmt="none", ecolor=style.SOFT, elinewidth=0.9, capsize=2)
    ax.errorbar(
        middle, counts, unfolding.error, elinewidth=2.0, label="statistical and systematic error", zorder=4, **thick
    )
    if bias:
        ax.plot([], [], color=style.SOFT, linewidth=0.9, label="error with the estimated bias of smoothing")
    positive = np.concatenate([part[part > 0] for part in top])
    if log if log is not None else bool(len(positive) and positive.max() / positive.min() > DECADE):
        ax.set_yscale("log")
        ax.set_ylim(positive.min() / 3, 3 * positive.max())
    if spread:
        style.number_axis(ax.xaxis, edges)
    ax.set(xlabel=xlabel or ("bin" if unfolding.edges is None else ""), ylabel="events")
    style.tidy(ax)
    ax.legend(frameon=False, fontsize="small")
    return ax


def strength_scan(scan: Any, ax: "Axes | None" = None) -> "Axes":
    """Draw what a rule saw: its criterion over the effective degrees of freedom, with the chosen strength.

    Parameters
    ----------
    scan : Scan
        ``unfolding.scan``.
    ax : Axes, default=None
        None stands for a new figure.

    Returns
    -------
    Axes
    """
    ax = style.new_axes((4.8, 3.4)) if ax is None else ax
    shown = np.isfinite(scan.criterion)
    x, y = scan.n_df[shown], scan.criterion[shown]
    ax.plot(x, y, "o-", color=style.BLUE, markersize=4, linewidth=1.4, zorder=3)
    k = scan.chosen
    ring: dict[str, Any] = {"markersize": 13, "markerfacecolor": "none", "markeredgecolor": style.INK}
    ax.plot(scan.n_df[k], scan.criterion[k], "o", markeredgewidth=1.4, zorder=4, **ring)
    name = f"chosen: strength {scan.strengths[k]:.3g}, {scan.n_df[k]:.1f} degrees of freedom"
    ax.set_title(name, fontsize="small", loc="left", color=style.INK)
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

    Returns
    -------
    Axes
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
        ax.plot([low, 1.2], [low, 1.2], color=style.INK, linestyle="--", linewidth=1.0)
        ax.fill_between([outcome.allowed, 1.2], low, [outcome.allowed, 1.2], color=style.BAR, alpha=0.4, linewidth=0)
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
    ax.axhline(outcome.expected, color=style.INK, linestyle=":", linewidth=1.2)
    # Intervals may hold the truth more often than they say.
    low, high = outcome.expected - outcome.allowed, 1.0 if outcome.name == "coverage" else outcome.allowed
    ax.axhspan(low, high, color=style.BAR, alpha=0.3, linewidth=0, label="allowed")
    if outcome.name == "coverage":
        ax.legend(frameon=False, fontsize="small")
    else:
        ax.set_title(f"shaded: within {outcome.allowed:g} errors, as is allowed", fontsize="small", loc="left")
    ax.set(xlabel="bin", ylabel=label)
    ax.set_xticks(bins[:: 1 + len(bins) // 15])
    style.tidy(ax)
    return ax
