"""The groups that matter, and all others as one."""

from typing import Any

import numpy as np

from ordinalq._utils.validation import check_integer
from ordinalq.inference.estimates import largest_first
from ordinalq.inference.model import FittedQuantifier
from ordinalq.samples.keys import Column, Keys
from ordinalq.samples.summary import Summary
from ordinalq.solvers.solution import distributions

# The key of all groups that are not shown by themselves.
OTHER = "(other)"


def select(
    quantifier: FittedQuantifier,
    summary: Summary,
    sort: Any = None,
    top: int | None = None,
    min_items: int | None = None,
) -> Summary:
    """Return the groups that matter in order, and the items of all others as one more group, the last.

    What is said of the others is an estimate of its own, from all their items. Where there is such a group the keys are
    text, since its own, "(other)", is.

    Groups with most "items", the highest "mean" class or the largest share of a class come first, as `sort` says; None
    keeps the order, but stands for "items" where only the `top` are wanted. Groups with fewer than `min_items` are
    among the others.
    """
    if summary.keys is None:
        raise ValueError("sort, top and min_items are for groups, but the summary has none.")
    sort = "items" if sort is None and top is not None else sort
    order = np.arange(len(summary))
    if sort is not None:
        P = distributions(quantifier.solve(summary))
        order = largest_first(sort, quantifier.classes_, summary.n_items, P)
    if min_items is not None:
        order = order[summary.n_items[order] >= check_integer("min_items", min_items, minimum=1)]
    if top is not None:
        order = order[: check_integer("top", top, minimum=1)]
    keys = summary.keys[order]
    rows = np.full(len(summary), -1 if len(order) == len(summary) else len(order), dtype=np.intp)
    rows[order] = np.arange(len(order))
    return summary.regrouped(rows, keys if len(order) == len(summary) else _with_others(keys))


def _with_others(keys: Keys) -> Keys:
    """Return the keys as text, and one more for the others."""
    import pandas as pd

    if OTHER in keys.labels():
        raise ValueError(f"a group is already called {OTHER!r}, the name for all others together: rename it.")
    columns: list[Column] = []
    for column in keys.columns:
        pairs = zip(column.tolist(), column.labels(), strict=True)
        words = [None if value is None else label for value, label in pairs]
        # The first column says it.
        last = "" if columns else OTHER
        columns.append(Column(pd.Index([*words, last], dtype=object), column.name))
    return Keys(columns)
