"""Distributions over bins of a number, such as an energy: steps between the edges, with bands."""

from typing import Any

import numpy as np

from ordinalq._utils.text import cut, plain
from ordinalq._utils.validation import Floats
from ordinalq.plot import style
from ordinalq.plot.inputs import Distributions, Values, array
from ordinalq.plot.style import Axes

# Edges that span more than this factor stand on a logarithmic axis.
WIDE = 50.0


def spectrum(ax: "Axes", given: Distributions, edges: Values, xlabel: str, *, log: bool) -> dict[str, Any]:
    """Draw one distribution as steps between edges (n + 1,); return its legend.

    Parameters
    ----------
    ax : Axes
    given : Distributions
        A single one, with intervals and the truth where they are known.
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
        name = "interval" if given.level is None else f"{100 * given.level:g} % interval"
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
