"""Estimates of groups on a Dask cluster.

The call is ``oq.dask.predict_groups(model, frame, by="product")``. The module needs the package dask, ``pip install
"ordinalq[dask]"``, and ordinalq on the workers.
"""

from collections.abc import Callable, Sequence
from importlib import import_module
from typing import TYPE_CHECKING, Any

from ordinalq.tables import engines as core
from ordinalq.tables.grouping import By

if TYPE_CHECKING:
    from ordinalq.inference.estimates import Estimates
    from ordinalq.io.table import Table
    from ordinalq.tables.aggregate import Chunk


def predict_groups(model: Any, frame: Any, by: By, *, max_items: int = core.MAX_ITEMS, **how: Any) -> "Estimates":
    """Estimate the class distribution of each group of rows of a Dask frame.

    Rows are scored on the workers that have them; sums (or the scores of all items of a group, where a method needs
    them) go to the workers that estimate a block of groups. The result is that of ``model.predict_groups`` on one
    machine.

    Parameters
    ----------
    model : TableModel or quantifier
        A fitted table model, or a quantifier that was fitted on a frame of numbers.
    frame : dask.dataframe.DataFrame
        Rows with the columns that the model was fitted on.
    by : str or list of str
        Columns of the groups; rows without a value form one group, the last.
    max_items : int, default=10,000,000
        Items of one group that a task takes, for methods that need all of them; more are an error.
    **how
        `level`, `options`, `labels`, `drift`, `sample_weight` and `weight_type`, see
        :meth:`ordinalq.TableModel.predict_groups`; labels and weights are columns of the frame.

    Returns
    -------
    estimates : Estimates
        As of one machine.
    """
    task = core.prepared(model, frame.columns, by, **how)
    sent = _delayed(core.payload(task))
    columns = list(task.reading.wanted.columns or ())
    parts = [_step("scored")(sent, part) for part in frame[columns].to_delayed()]
    return _finish(task, sent, parts, max_items=max_items)  # type: ignore[no-any-return]


def read_table(task: core.Task, file: "Table") -> Any:
    """Return the estimates or sums of a table in files that the workers can read.

    Parameters
    ----------
    task : Task
        Model, groups and options, see :mod:`ordinalq.tables.engines`.
    file : Table
        Table in files.

    Returns
    -------
    found : Estimates or Summary
        As the task requires.
    """
    task.reading.check(file)
    sent = _delayed(core.payload(task))
    return _finish(task, sent, [_step("read")(sent, *piece) for piece in file.pieces(task.reading.wanted)], file)


def _finish(
    task: core.Task, sent: Any, parts: Sequence[Any], file: "Table | None" = None, max_items: int = core.MAX_ITEMS
) -> Any:
    """Score parts on their workers and estimate the groups of each block there.

    The sums of each block of groups are merged first.
    """
    dask: Any = import_module("dask")
    parts = dask.persist(*parts)
    known = dask.compute(*(_step("facts")(part) for part in parts))
    there = [part for part, one in zip(parts, known, strict=True) if one is not None]
    layout = core.layout(task, [one for one in known if one is not None], file, max_items)
    split = [_step("split", nout=len(layout.slices))(layout, part) for part in there]
    merged = [
        _step("merged")(layout.keys[rows], [blocks[number] for blocks in split])
        for number, rows in enumerate(layout.slices)
    ]
    drift = None
    if core.takes_two_passes(task):
        merged = dask.persist(*merged)
        drift = core.with_drift(task, dask.compute(*(_step("collected")(sent, block) for block in merged)))
    results = [_step("finished")(sent, number, block, drift) for number, block in enumerate(merged)]
    return core.collected(task, dask.compute(*results), layout.keys)


def _delayed(value: Any, **options: Any) -> Any:
    return import_module("dask").delayed(value, **options)


def _step(name: str, **options: Any) -> Any:
    return _delayed(core.remote("dask", name), **options)


def _split(layout: core.Layout, part: "Chunk") -> list[Any]:
    """Return what a part has of each block, None if that is nothing."""
    found = layout.split(part.summary)
    return [found.get(number) for number in range(len(layout.slices))]


STEPS: dict[str, Callable[..., Any]] = {
    "scored": lambda sent, frame: core.scored(core.received(sent), frame),
    "read": lambda sent, file, block: core.scored_block(core.received(sent), file, block),
    "facts": lambda part: None if part is None else core.facts(part),
    "split": _split,
    "merged": lambda keys, parts: core.merged_block(keys, [part for part in parts if part is not None]),
    "collected": lambda sent, block: core.received(sent).quantifier.collect(block),
    "finished": lambda sent, number, block, drift: core.finished(core.received(sent), number, block, drift),
}
