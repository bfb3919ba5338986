"""Some rows of a table that is too large to learn from: the same part of each group, drawn at random."""

import logging
from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd

from ordinalq._utils.validation import Counts, check_integer, check_random_state
from ordinalq.io.table import Table
from ordinalq.samples.summary import Summary, gathered
from ordinalq.tables.grouping import By, Grouping

logger = logging.getLogger("ordinalq")


def some_rows(
    file: Table, columns: Sequence[str] | None, strata: By, max_items: int, random_state: Any
) -> pd.DataFrame:
    """Return at most `max_items` rows of a table, in their order: of each group the same part, and at least one row.

    The groups are those of the columns `strata`. The table is read twice: to count the rows of each group, and to draw
    them, whatever its size.
    """
    max_items = check_integer("max_items", max_items, minimum=1)
    groups = Grouping(strata, file.format)
    counts = gathered(_counted(groups, frame) for frame in file.portions(groups.names, native=groups.native))
    assert counts.keys is not None
    quota = shares(counts.n_items, max_items)
    n_rows, n_chosen = int(counts.n_items.sum()), int(quota.sum())
    if n_chosen < n_rows:
        logger.warning(
            "learned from %s of %s rows, %.3g %% of each of %s values of %r",
            f"{n_chosen:,}",
            f"{n_rows:,}",
            100 * n_chosen / n_rows,
            f"{len(counts):,}",
            counts.keys.name,
        )
    rng, left, kept = check_random_state(random_state), counts.n_items.copy(), []
    for frame in file.portions(columns, native=groups.native):
        samples = groups.samples(frame)
        assert samples.keys is not None
        rows = counts.keys.positions(samples.keys)
        # How many of the rows that are still wanted are among these, if all rows that are left are alike.
        drawn = rng.hypergeometric(quota[rows], left[rows] - quota[rows], samples.sizes)
        chosen = [rng.choice(samples.index(b), n, replace=False) for b, n in enumerate(drawn.tolist()) if n]
        left[rows] -= samples.sizes
        quota[rows] -= drawn
        if chosen:
            kept.append(frame.iloc[np.sort(np.concatenate(chosen))])
    table = pd.concat(kept)
    table.index.name = kept[0].index.name
    table.attrs = {"where": file.name}
    return table


def shares(sizes: Counts, total: int) -> Counts:
    """Return how many of each group to take, (B,): the same part of all but for rounding, at least one, `total` in sum.

    >>> shares(np.array([1000, 500, 3]), 30)
    array([19, 10,  1])
    """
    if total >= sizes.sum():
        return sizes.copy()
    if len(sizes) > total:
        raise ValueError(f"max_items must be at least the number of groups, {len(sizes):,}, got {total:,}.")
    wanted = 1 + (sizes - 1) * ((total - len(sizes)) / max(int((sizes - 1).sum()), 1))
    found = np.floor(wanted).astype(np.int64)
    rest = np.argsort(found - wanted, kind="stable")[: total - int(found.sum())]
    found[rest] += 1
    return np.asarray(np.minimum(found, sizes))


def _counted(groups: Grouping, frame: pd.DataFrame) -> Summary:
    samples = groups.samples(frame)
    return Summary(samples.sizes, {}, (), samples.keys)
