"""Estimates of groups on a Dask cluster: ``oq.dask.predict_groups(model, frame, by="product")``.

Needs the package dask, ``pip install ordinalq[dask]``, and ordinalq on the workers.
"""

from collections.abc import Callable, Sequence
from importlib import import_module
from typing import TYPE_CHECKING, Any

from ordinalq import engines as core
from ordinalq.tables.groups import By
from ordinalq.version import __version__

if TYPE_CHECKING:
    from ordinalq.contract.estimates import Estimates
    from ordinalq.contract.plan import Plan
    from ordinalq.files.table import Table


def predict_groups(
    model: Any,
    frame: Any,
    by: By,
    *,
    level: float | None = None,
    labelled: str | None = None,
    weight: str | None = None,
    weights: str = "survey",
    plan: "Plan | None" = None,
    max_items: int = core.MAX_ITEMS,
) -> "Estimates":
    """Estimate the class distribution of each group of rows of a Dask frame.

    Rows are scored where they are; sums (or the scores of all items of a group, where a method needs them) go to the
    workers that estimate a block of groups. The result is that of ``model.predict_groups`` on one machine.

    Parameters
    ----------
    model : TableModel or quantifier
        A fitted table model, or a quantifier that was fitted on a frame of numbers.
    frame : dask.dataframe.DataFrame
        Rows with the columns that the model was fitted on.
    by : str or list of str
        Columns of the groups; rows without a value are a group of their own, the last.
    level, plan
        See :meth:`ordinalq.TableModel.predict_groups`.
    labelled : str, default=None
        Column with labels of some rows, see :meth:`ordinalq.PACC.predict_groups`.
    weight : str, default=None
        Column of weights of the rows.
    weights : {"survey", "frequency"}, default="survey"
        What weights are, see :meth:`ordinalq.PACC.predict_groups`.
    max_items : int, default=10,000,000
        Items of one group that a task takes, for methods that need all of them; more are an error.

    Returns
    -------
    Estimates
    """
    named: dict[str, Any] = {"labels": labelled, "weight": weight, "weights": weights}
    task = core.prepared(model, frame.columns, by, level, plan, **named)
    sent = _delayed(core.payload(task))
    columns = list(task.reading.wanted.columns or ())
    parts = [_delayed(_remote("scored"))(sent, part) for part in frame[columns].to_delayed()]
    return _finish(task, sent, parts, max_items=max_items)  # type: ignore[no-any-return]


def read_table(task: core.Task, file: "Table") -> Any:
    """Return the estimates or sums of a table in files that the workers can read, as the task says."""
    groups, wanted = task.reading.groups, task.reading.wanted
    task.reading.check(file)
    sent = _delayed(core.payload(task))
    there = [_delayed(_remote("scored_block"), nout=3)(sent, part, block) for part, block in file.pieces(wanted)]
    facts, there = _sized(sent, [(part, strings, seen) for part, strings, seen in there])
    for strings, _ in facts:
        if groups is not None:
            groups.saw(strings)
    file.check_seen(wanted, frozenset().union(*(seen for _, seen in facts)))
    return _finish(task, sent, there, groups)


def _sized(sent: Any, parts: Sequence[Any]) -> tuple[list[Any], list[Any]]:
    """Compute parts where they are; return what is known of them, and the parts."""
    dask: Any = import_module("dask")
    kept = dask.persist(*(part for part, _, _ in parts), *(one for _, *more in parts for one in more))
    n = len(parts)
    facts = dask.compute(*kept[n:])
    return [(facts[2 * i], facts[2 * i + 1]) for i in range(n)], list(kept[:n])


def _finish(
    task: core.Task, sent: Any, parts: Sequence[Any], groups: Any = None, max_items: int = core.MAX_ITEMS
) -> Any:
    """Bring the sums of each block of groups together and estimate them there."""
    dask: Any = import_module("dask")
    parts = dask.persist(*parts)
    found = dask.compute(*(_delayed(_remote("sizes"))(part) for part in parts))
    there = [part for part, one in zip(parts, found, strict=True) if one is not None]
    if not there:
        raise ValueError("the table has no rows.")
    layout = core.layout(task, [one for one in found if one is not None], groups, max_items)
    split = [_delayed(_remote("split"), nout=len(layout.slices))(layout, part) for part in there]
    results = [
        _delayed(_remote("finished"))(sent, number, layout.keys[rows], [blocks[number] for blocks in split])
        for number, rows in enumerate(layout.slices)
    ]
    return core.collected(task, dask.compute(*results), layout.keys)


def _delayed(value: Any, **options: Any) -> Any:
    return import_module("dask").delayed(value, **options)


def _remote(name: str) -> Callable[..., Any]:
    """Return a function that does a step on a worker.

    It is sent as it stands here, so that a worker without ordinalq can still say what it lacks.
    """
    version = __version__

    def step(*arguments: Any) -> Any:
        try:
            from ordinalq import dask as engine
        except ImportError as error:
            import socket

            raise RuntimeError(
                f"the worker {socket.gethostname()} has no ordinalq: install ordinalq {version} there ({error})."
            ) from error
        return engine.STEPS[name](*arguments)

    return step


def _split(layout: core.Layout, part: Any) -> list[Any]:
    """Return what a part has of each block, None where that is nothing."""
    found = layout.split(part)
    return [found.get(number) for number in range(len(layout.slices))]


def _finished(sent: Any, number: int, keys: Any, parts: Sequence[Any]) -> Any:
    return core.finished(core.received(sent), number, keys, [part for part in parts if part is not None])


STEPS: dict[str, Callable[..., Any]] = {
    "scored": lambda sent, frame: core.scored(core.received(sent), frame),
    "scored_block": lambda sent, file, block: core.scored_block(core.received(sent), file, block),
    "sizes": lambda part: None if part is None else core.sizes(part),
    "split": _split,
    "finished": _finished,
}
