"""Estimates from a table file."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from ordinalq._utils.text import first_of, nearest
from ordinalq.inference.diagnosis import Diagnosis, diagnose
from ordinalq.io.table import Table
from ordinalq.quantifiers.base import Quantifier
from ordinalq.samples.keys import AND, Column, Keys
from ordinalq.samples.summary import Summary
from ordinalq.tables.aggregate import Reading, read_summary
from ordinalq.tables.grouping import WHOLE, By, Grouping, merge_groups_by_spelling
from ordinalq.tables.model import warn_of_weights

# Groups with fewer items for each class are not diagnosed: nearly anything fits them.
MIN_PER_CLASS = 10


def summarize_table(
    model: Any,
    file: Table,
    *,
    by: By | None = None,
    labels: str | None = None,
    label_inclusion: str | None = None,
    weight: str | None = None,
    weight_type: str = "survey",
    tidy_groups: bool = False,
    **how: Any,
) -> Summary:
    """Return the summary of a table, or of each group of its rows.

    The summary has all values that the quantifier of the model needs. The table is read in chunks. The model is a
    :class:`TableModel`, or a quantifier that was fitted on a frame of numbers, whose columns the table has. The values
    of the column `by`, or of several, are the groups. They keep their type and their order; in text files they are
    whole numbers, numbers, dates or true and false where all of them are. Rows without a value are one group, the last.
    "date:month" takes the months of a column of dates (or year, quarter, week, day; times with a zone in UTC). None
    takes all rows as one group, "all".

    The column `labels` has labels of some rows, a random draw, and missing values; `label_inclusion` is the column
    of the probabilities with which these rows were drawn; `weight` is a column of weights of the kind `weight_type`.
    See :meth:`ordinalq.PACC.predict_groups`. With `tidy_groups`, groups whose names differ only in case and blanks are
    merged; a warning counts them otherwise. Number of workers and the like are those of
    :func:`ordinalq.tables.aggregate.read_summary`.
    """
    warn_of_weights(model, weight)
    groups = Grouping(by, file.format)
    more: dict[str, Any] = {"weight": weight, "weight_type": weight_type, "label_inclusion": label_inclusion}
    summary = read_summary(Reading(model, groups, labels, **more), file, **how)
    if len(summary) == 0:
        raise ValueError(f"{file.name}: column {weight!r} has no weight above zero.")
    return merge_groups_by_spelling(groups.typed(summary), tidy_groups)


def chosen(summary: Summary, names: Sequence[str]) -> Summary:
    """Return the summary of the groups with the given names, in this order.

    Names are those in the output. The name "a,b" is the same as "a, b". A group is also found by a part
    of its name that no other name has, ignoring case.
    """
    assert summary.keys is not None
    picked = np.array([find_group(summary.keys, name) for name in names])
    if len(set(picked.tolist())) < len(picked):
        raise ValueError(f"expected different groups, but two of {', '.join(map(repr, names))} are the same.")
    rows = np.full(len(summary), -1, dtype=np.intp)
    rows[picked] = np.arange(len(picked))
    return summary.regrouped(rows, summary.keys[picked])


def find_group(keys: Keys, name: str) -> int:
    """Return the position of the group with a name or unique part of a name.

    The name "a,b" is the same as "a, b".
    """
    labels = keys.labels()
    if len(keys.columns) > 1 and name not in labels:
        name = {label.replace(AND, ","): label for label in labels}.get(name, name)
    return labels.index(_found(name, labels, keys.name))


def _found(name: str, labels: Sequence[str], column: str) -> str:
    """Return the group that a name or a part of it stands for.

    >>> _found("paper", ["Kindle Paperwhite", "Echo"], "product")
    'Kindle Paperwhite'
    """
    folded = name.casefold()
    for matches in (
        lambda one: one == name,
        lambda one: one.casefold() == folded,
        lambda one: folded in one.casefold(),
    ):
        found = [label for label in labels if matches(label)]
        if len(found) == 1:
            return found[0]
    if found:
        raise ValueError(
            f"{len(found):,} of the {len(labels):,} groups of {column!r} contain {name!r}: {_quoted_examples(found)}. "
            "Use a part that only one of them has."
        )
    words = folded.split()
    near = [label for label in labels if any(word in label.casefold() for word in words)] if len(words) > 1 else []
    hint = nearest(name, labels) or (
        f"; some of its words are in {_quoted_examples(near)}" if near else f"; there are {_quoted_examples(labels)}"
    )
    raise ValueError(f"none of the {len(labels):,} groups of {column!r} is {name!r}{hint}")


def _quoted_examples(labels: Sequence[str]) -> str:
    return first_of([repr(label) for label in labels])


class Diagnoses(NamedTuple):
    """Diagnoses of a table as one sample, and of its large groups by their names."""

    whole: Diagnosis
    groups: dict[str, Diagnosis]

    @property
    def tested_groups(self) -> dict[str, bool]:
        """Whether the fit of each group that was tested is plausible."""
        verdicts = {name: one.shift_is_plausible for name, one in self.groups.items()}
        return {name: verdict for name, verdict in verdicts.items() if verdict is not None}

    @property
    def misfits(self) -> list[str]:
        """Names of the groups that are not a mixture of the training classes."""
        return [name for name, plausible in self.tested_groups.items() if not plausible]


def diagnoses_of(quantifier: Quantifier, summary: Summary, *, groups: bool) -> Diagnoses:
    """Report whether estimates of a summarized table can be trusted.

    With `groups`, large groups are included.
    """
    found = {}
    if groups and summary.keys is not None:
        names = summary.keys.labels()
        for row in range(len(summary)):
            if summary.n_items[row] >= MIN_PER_CLASS * len(quantifier.classes_):
                found[names[row]] = diagnose(quantifier, summary[row : row + 1])
    return Diagnoses(diagnose(quantifier, _as_one_sample(summary)), found)


def _as_one_sample(summary: Summary) -> Summary:
    """Return the summary of all samples as one."""
    return summary.regrouped(np.zeros(len(summary), dtype=np.intp), Keys([Column(pd.Index([WHOLE]))]))
