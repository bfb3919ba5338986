"""One layout for all tables: from facts, a row each, to the cells that people read."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from ordinalq.paper.report.formats import MISSING, Cell, Column, Row, plus_minus, short

Fact = Mapping[str, Any]


def number(decimals: int, *, signed: bool = False) -> Callable[[float], str]:
    """Return how to write a number; with many decimals it has no leading zero, as in the paper.

    >>> number(4)(0.0194), number(2)(0.5), number(1, signed=True)(3.14)
    ('.0194', '0.50', '+3.1')
    """
    if signed:
        return lambda value: f"{value:+.{decimals}f}" if value else f"{value:.{decimals}f}"
    return lambda value: short(value, decimals) if decimals > 2 else f"{value:.{decimals}f}"


@dataclass(frozen=True)
class Show:
    """A column of a table: its heading, the fact that it shows, and how.

    What is not known (None, NaN, "") is a dash. The fact ``std`` stands after ±, ``bold`` says if the cell is bold. A
    ``shade`` "linear" or "log" colours cells by where they lie between the best and the worst of the column. The column
    is left out where the fact that it ``needs`` is not known in any row. ``above`` is a heading of several columns.
    """

    title: str
    fact: str
    text: Callable[[Any], str] = str
    numeric: bool = True
    std: str = ""
    bold: str = ""
    shade: str = ""
    needs: str = ""
    above: str = ""

    def cell(self, fact: Fact, shade: float | None = None) -> Cell:
        """Return the cell of a fact."""
        value = fact[self.fact]
        if not known(value):
            return Cell(MISSING)
        with_std = self.std and known(fact[self.std])
        text = plus_minus(value, fact[self.std]) if with_std else short(value) if self.std else self.text(value)
        return Cell(text, value if self.numeric else None, bool(self.bold and fact[self.bold]), shade)


def mean_and_std(title: str = "mean ± std", prefix: str = "", **more: Any) -> Show:
    """Return the column of the facts mean, std and bold, whose names may have a prefix."""
    return Show(title, f"{prefix}mean", std=f"{prefix}std", bold=f"{prefix}bold", **more)


def words(title: str, fact: str, text: Callable[[Any], str] = str) -> Show:
    """Return a column of text."""
    return Show(title, fact, text, numeric=False)


def lay_out(
    facts: pd.DataFrame,
    rows: Sequence[str],
    heads: Sequence[Show],
    cells: Sequence[Show],
    *,
    across: Sequence[str] = (),
    above: Callable[[Fact], str] = lambda fact: "",
    group: Callable[[Fact], str] = lambda fact: "",
    shaded_within: Sequence[str] = (),
) -> tuple[tuple[Column, ...], tuple[Row, ...]]:
    """Return the columns and rows of a table, in the order in which they appear in the facts.

    Facts that agree in `rows` are a row of the table. It has the columns `heads`, which are the same for all of its
    facts, and the columns `cells` once for each block: facts that agree in `across`. A heading `above` a block and the
    `group` of a row are made from one of their facts. Shades compare cells that agree in `shaded_within`.
    """
    records: list[Any] = facts.to_dict("records")
    of_row: dict[tuple[Any, ...], Fact] = {}
    blocks: dict[tuple[Any, ...], dict[tuple[Any, ...], Fact]] = {}
    for fact in records:
        key = tuple(fact[name] for name in rows)
        of_row.setdefault(key, fact)
        blocks.setdefault(tuple(fact[name] for name in across), {})[key] = fact
    columns = [Column(show.title, show.above, show.numeric) for show in heads]
    made = {key: [show.cell(fact) for show in heads] for key, fact in of_row.items()}
    for block in blocks.values():
        heading = above(next(iter(block.values())))
        for show in cells:
            if show.needs and not any(known(fact[show.needs]) for fact in block.values()):
                continue
            columns.append(Column(show.title, heading or show.above, show.numeric))
            shades = _shades(block, show, shaded_within)
            for key, row in made.items():
                row.append(show.cell(block[key], shades.get(key)) if key in block else Cell(MISSING))
    return tuple(columns), tuple(Row(tuple(made[key]), group(fact)) for key, fact in of_row.items())


def known(value: Any) -> bool:
    """Whether there is something to show."""
    return value is not None and value != "" and not (isinstance(value, float) and not np.isfinite(value))


def _shades(block: Mapping[Any, Fact], show: Show, within: Sequence[str]) -> dict[Any, float]:
    """Return where the values of a column lie between the best (0) and the worst (1)."""
    shades: dict[Any, float] = {}
    scopes: dict[tuple[Any, ...], dict[Any, float]] = {}
    for key, fact in block.items() if show.shade else ():
        value = fact[show.fact]
        if known(value) and (value > 0 or show.shade == "linear"):
            scopes.setdefault(tuple(fact[name] for name in within), {})[key] = value
    for found in scopes.values():
        values = np.log(list(found.values())) if show.shade == "log" else np.array(list(found.values()))
        width = values.max() - values.min()
        if len(found) > 1:
            scaled = (values - values.min()) / width if width > 0 else np.zeros(len(values))
            shades |= dict(zip(found, scaled.tolist(), strict=True))
    return shades
