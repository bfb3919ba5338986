"""Rows of a table to label."""

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from ordinalq._utils.validation import Index, Mask, check_integer, check_random_state
from ordinalq.inference.label_plan import LabelsNeeded, SpreadLabels, drawn_items, labels_needed, spread_labels
from ordinalq.inference.options import IntervalOptions
from ordinalq.io.columns import as_words, is_missing, source_name
from ordinalq.io.table import Table
from ordinalq.samples.summary import Summary
from ordinalq.tables.aggregate import Reading, read_summary
from ordinalq.tables.grouping import By, Grouping, merge_spellings
from ordinalq.tables.inner import fitted_quantifier
from ordinalq.tables.predict import find_group


class LabelPlan(NamedTuple):
    """Numbers of rows to label in each group.

    `read` contains the groups in the order of the file, and `place` the position in it of each group key of the file,
    to find their rows again. `spread` is the effect of labels that are distributed over all groups. It is None if the
    method has no model of groups.
    """

    needed: LabelsNeeded
    read: LabelsNeeded
    place: Mapping[Any, int]
    by: By | None
    labels: str | None
    spread: SpreadLabels | None = None


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
    tidy_groups: bool = False,
    **how: Any,
) -> LabelPlan:
    """Return how many rows of a table, or of each group of its rows, to label.

    The parameters are those of :func:`ordinalq.tables.predict.summarize_table` and
    :func:`ordinalq.inference.label_plan.labels_needed`.
    """
    groups = Grouping(by, file.format)
    summary, place = _read(Reading(model, groups, labels, with_gaps=True), file, tidy_groups, **how)
    quantifier = fitted_quantifier(model)
    how_wide: dict[str, Any] = {"quantity": quantity, "level": level, "options": options}
    read = labels_needed(quantifier, summary, width, **how_wide)
    spread = None
    if quantifier.traits.has_group_model and len(summary) > 1:
        spread = spread_labels(quantifier, summary, width, **how_wide)
    assert summary.keys is not None
    return LabelPlan(read.take(*groups.order(summary.keys)), read, place, by, labels, spread)


def _read(reading: Reading, file: Table, tidy_groups: bool, **how: Any) -> tuple[Summary, dict[Any, int]]:
    """Return the summary of a table, and the place of each key of the file."""
    summary = read_summary(reading, file, **how)
    assert summary.keys is not None
    rows, kept = merge_spellings(summary.keys, summary.n_items, tidy_groups)
    place = dict(zip(summary.keys.tolist(), rows.tolist(), strict=True))
    return (summary if len(kept) == len(rows) else summary.regrouped(rows, summary.keys[kept])), place


class DrawnRows(NamedTuple):
    """Rows to label, drawn at random from rows without a label.

    They are drawn from all rows or from those of one group. `spread` is the expected effect on all groups. It is None
    if rows are of one group or the method has no model of groups. `group` is the name of the group. It is None if rows
    are of all groups.
    """

    rows: pd.DataFrame
    spread: SpreadLabels | None
    group: str | None


def draw_rows(
    model: Any,
    file: Table,
    n_rows: int,
    *,
    by: By | None = None,
    group: str | None = None,
    labels: str | None = None,
    target: str | None = None,
    quantity: Any = "mean",
    level: float = 0.95,
    options: IntervalOptions | None = None,
    random_state: int = 0,
    tidy_groups: bool = False,
    **how: Any,
) -> DrawnRows:
    """Draw exactly `n_rows` rows to label at random.

    They are drawn from all rows without a label, or from those of one group. The group is named as in the output, or by
    a part of its name that no other name has. The columns of the rows are as in :func:`rows_to_label`. The other
    parameters are those of :func:`plan_labels`.
    """
    n_rows = check_integer("n_rows", n_rows, minimum=1)
    groups = Grouping(by, file.format)
    summary, place = _read(Reading(model, groups, labels, with_gaps=True), file, tidy_groups, **how)
    assert summary.keys is not None
    quantifier = fitted_quantifier(model)
    codes, free = _groups_of_rows(file, place, by, labels)
    if group is not None:
        order, shown = groups.order(summary.keys)
        found = find_group(shown, group)
        group = shown.labels()[found]
        free &= codes == order[found]
    if n_rows > free.sum():
        raise ValueError(f"expected at most {free.sum():,} rows to draw, those without a label, got {n_rows:,}.")
    chosen = np.zeros(len(codes), dtype=bool)
    chosen[check_random_state(random_state).choice(np.flatnonzero(free), n_rows, replace=False)] = True
    spread = None
    if group is None and quantifier.traits.has_group_model and len(summary) > 1:
        more: dict[str, Any] = {"quantity": quantity, "level": level, "options": options}
        spread = spread_labels(quantifier, summary, n_labels=n_rows, **more)
    return DrawnRows(_rows(file, chosen, target), spread, group)


def rows_to_label(file: Table, plan: LabelPlan, target: str | None = None, random_state: int = 0) -> pd.DataFrame:
    """Draw the rows to label at random within each group.

    The table of the plan is read twice more. The rows have all their columns, after one with the line (or row, in
    Parquet) of the file, and one with the name of the file, if there are several. A column `target` for the labels is
    added, empty, if the table lacks it.
    """
    codes, free = _groups_of_rows(file, plan.place, plan.by, plan.labels)
    chosen = np.zeros(len(codes), dtype=bool)
    chosen[drawn_items(plan.read.labels, codes, free, check_random_state(random_state))] = True
    return _rows(file, chosen, target)


def _rows(file: Table, chosen: Mask, target: str | None) -> pd.DataFrame:
    """Return the chosen rows (N,) of a table with their positions.

    A column `target` is for the labels.
    """
    kept, names, start = [], [], 0
    for frame in file.chunks():
        kept.append(frame[chosen[start : start + len(frame)]])
        names += [source_name(frame)] * len(kept[-1])
        start += len(frame)
    rows = pd.concat(kept)
    if target is not None and target not in rows.columns:
        rows[target] = None
    name = rows.index.name or "row"
    rows.insert(0, name if name not in rows.columns else f"{name} of the file", rows.index)
    if len(file.files) > 1:
        rows.insert(0, "file" if "file" not in rows.columns else "name of the file", names)
    return rows.reset_index(drop=True)


def _groups_of_rows(file: Table, place: Mapping[Any, int], by: By | None, labels: str | None) -> tuple[Index, Mask]:
    """Return the group of each row, (N,), and whether it has no label, (N,).

    The group is the place of its key.
    """
    groups = Grouping(by, file.format)
    columns = list(dict.fromkeys([*groups.names, *filter(None, [labels])]))
    codes, free = [np.zeros(0, dtype=np.intp)], [np.zeros(0, dtype=bool)]
    for frame in file.chunks(columns or None, native=groups.native):
        code = np.zeros(len(frame), dtype=np.intp)
        samples = groups.samples(frame)
        assert samples.keys is not None
        code[samples.items] = np.repeat([place[key] for key in samples.keys.tolist()], samples.sizes)
        codes.append(code)
        words = [None] * len(frame) if labels is None else as_words(frame[labels])
        free.append(np.array([is_missing(word) for word in words], dtype=bool))
    return np.concatenate(codes), np.concatenate(free)
