"""Matrices as heat maps."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from ordinalq._utils.text import cut
from ordinalq.plot.inputs import Values, array, names
from ordinalq.plot.style import COLOR_MAP, INK, MAX_NAMES, NAME_LENGTH, Axes, figure_of, literal, name_classes, new_axes

# Above this many cells numbers cannot be read.
MAX_NUMBERS = 150
# Below this part of the scale cells are so dark that numbers must be white.
DARK = 0.55


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
    cells = array("M", M)
    if cells.ndim != 2:
        raise ValueError(f"M must have shape (d, n), got shape {cells.shape}.")
    d, n = cells.shape
    columns = names("classes", classes, n)
    rows = columns if bins is None and d == n else names("bins", bins, d)
    if ax is None:
        ax = new_axes((min(2.6 + 0.45 * n, 10.0), min(1.6 + 0.36 * d, 9.0)))
    low, high = min(float(cells.min()), 0.0), float(cells.max())
    picture = ax.imshow(cells, cmap=COLOR_MAP, vmin=low, origin="lower", aspect="auto", interpolation="nearest")
    shares = np.allclose(cells.sum(axis=0), 1, atol=1e-3)
    bar = figure_of(ax).colorbar(picture, ax=ax, label="share of the class" if shares else "mean of the class")
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
    """Return 0.07 as .07, and nothing where that would be .00: the colour says as much.

    >>> _number(0.07), _number(0.001), _number(12.3)
    ('.07', '', '12')
    """
    text = f"{value:.2f}" if abs(value) < 10 else f"{value:.0f}"
    return "" if text in ("0.00", "-0.00") else text[1:] if text.startswith("0.") else text
