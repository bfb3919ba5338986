"""Rows of a table to label."""

from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from ordinalq._utils.validation import Index, Mask, check_random_state
from ordinalq.inference.label_plan import LabelsNeeded, drawn_items, labels_needed
from ordinalq.inference.options import IntervalOptions
from ordinalq.io.columns import as_words, is_missing, where
from ordinalq.io.table import Table
from ordinalq.tables.aggregate import Reading, read_summary
from ordinalq.tables.grouping import By, Grouping
from ordinalq.tables.inner import fitted_quantifier


class LabelPlan(NamedTuple):
    """How many rows of each group to label; `read` has the groups as the file does, by which rows are found again."""

    needed: LabelsNeeded
    read: LabelsNeeded
    by: By | None
    labels: str | None


def plan_labels(
    model: Any,
    file: Table,
    *,
    by: By | None = None,
    labels: str | None = None,
    width: float = 0.05,
    quantity: Any = "mean",
    level: float = 0.95,
    options: IntervalOptions | None = None,
    **how: Any,
) -> LabelPlan:
    """Return how many rows of a table, or of each group of its rows, to label.

    The parameters are those of :func:`ordinalq.tables.predict.summarize_table` and
    :func:`ordinalq.inference.label_plan.labels_needed`.
    """
    groups = Grouping(by, file.format)
    summary = read_summary(Reading(model, groups, labels, with_gaps=True), file, **how)
    read = labels_needed(fitted_quantifier(model), summary, width, quantity, level=level, options=options)
    assert summary.keys is not None
    return LabelPlan(read.take(*groups.order(summary.keys)), read, by, labels)


def rows_to_label(file: Table, plan: LabelPlan, target: str | None = None, random_state: int = 0) -> pd.DataFrame:
    """Draw the rows to label at random within each group; the table of the plan is read twice more.

    The rows come with all their columns, after one that says which line (or row, in Parquet) of the file each is, and
    one with the name of the file, where there are many. A column `target` for the labels is added, empty, if the table
    lacks it.
    """
    codes, free = _groups_of_rows(file, plan)
    chosen = np.zeros(len(codes), dtype=bool)
    chosen[drawn_items(plan.read.labels, codes, free, check_random_state(random_state))] = True
    kept, names, start = [], [], 0
    for frame in file.portions():
        kept.append(frame[chosen[start : start + len(frame)]])
        names += [where(frame)] * len(kept[-1])
        start += len(frame)
    rows = pd.concat(kept)
    if target is not None and target not in rows.columns:
        rows[target] = None
    name = rows.index.name or "row"
    rows.insert(0, name if name not in rows.columns else f"{name} of the file", rows.index)
    if len(file.files) > 1:
        rows.insert(0, "file" if "file" not in rows.columns else "name of the file", names)
    return rows.reset_index(drop=True)


def _groups_of_rows(file: Table, plan: LabelPlan) -> tuple[Index, Mask]:
    """Return the group of each row as a position in the plan, (N,), and whether it has no label yet, (N,)."""
    assert plan.read.keys is not None
    position = {key: row for row, key in enumerate(plan.read.keys.tolist())}
    groups = Grouping(plan.by, file.format)
    columns = list(dict.fromkeys([*groups.names, *filter(None, [plan.labels])]))
    codes, free = [np.zeros(0, dtype=np.intp)], [np.zeros(0, dtype=bool)]
    for frame in file.portions(columns or None, native=groups.native):
        code = np.zeros(len(frame), dtype=np.intp)
        samples = groups.samples(frame)
        assert samples.keys is not None
        code[samples.items] = np.repeat([position[key] for key in samples.keys.tolist()], samples.sizes)
        codes.append(code)
        words = [None] * len(frame) if plan.labels is None else as_words(frame[plan.labels])
        free.append(np.array([is_missing(word) for word in words], dtype=bool))
    return np.concatenate(codes), np.concatenate(free)
