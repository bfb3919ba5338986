"""Estimates of groups on a Spark cluster.

The call is ``oq.spark.predict_groups(model, frame, by="product")``. The module needs the package pyspark, ``pip install
"ordinalq[spark]"``, a Java runtime, and ordinalq on the executors.
"""

import re
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import pandas as pd

from ordinalq._utils.extras import require_extra
from ordinalq.io.table import nullable
from ordinalq.samples.keys import with_period
from ordinalq.solvers.solution import warn_of_failed
from ordinalq.tables import engines as core
from ordinalq.tables.aggregate import merge_chunks
from ordinalq.tables.grouping import By

with require_extra("spark", "ordinalq.spark"):
    import pyarrow as pa

if TYPE_CHECKING:
    from ordinalq.io.table import Table

# A row between two steps: the block of groups that it belongs to, where it comes from, and what it holds.
ROW = "block long, origin string, body binary"
# How the errors of an executor end, and what they are here.
KINDS: dict[str, Any] = {"ValueError": ValueError, "TypeError": TypeError, "RuntimeError": RuntimeError}
ERROR = re.compile(rf"^(?:\w+\.)*({'|'.join(KINDS)}): (.+)$", re.MULTILINE)
# Samples and items of a partition that are sent at once.
MOST_SAMPLES, MOST_ITEMS = 2**16, 2**18


def predict_groups(model: Any, frame: Any, by: By, *, max_items: int = core.MAX_ITEMS, **how: Any) -> Any:
    """Estimate the class distribution of each group of rows of a Spark frame.

    Rows are scored on the workers that have them (``mapInArrow``); sums (or the scores of all items of a group, where a
    method needs them) go to the executors that estimate a block of groups (``groupBy``, ``applyInArrow``). The names of
    all groups and their numbers of items pass through the driver. The rows are those of
    ``model.predict_groups(...).frame()``.

    Parameters
    ----------
    model, by, max_items, **how
        See :func:`ordinalq.dask.predict_groups`.
    frame : pyspark.sql.DataFrame
        Rows with the columns that the model was fitted on.

    Returns
    -------
    pyspark.sql.DataFrame
        One row per group: the group, n_items, the share of each class, mean_class, and what else is known.
    """
    from pyspark.sql.pandas.types import to_arrow_schema

    task = core.prepared(model, frame.columns, by, **how)
    sent = frame.sparkSession.sparkContext.broadcast(core.payload(task))
    columns = list(task.reading.wanted.columns or ())
    with _original_errors():
        parts = frame.select(*(f"`{name}`" for name in columns)).mapInArrow(_remote("scored", sent), ROW)
        kept, layout = _compute_layout(task, sent, parts, None, max_items)
        schema = _schema(task, frame.schema, by)
        blocks = _by_block(kept, sent, layout)
        return blocks.applyInArrow(_remote("rows", sent, to_arrow_schema(schema), _drift(task, sent, blocks)), schema)


def read_table(task: core.Task, file: "Table", session: Any) -> Any:
    """Return the estimates or sums of a table in files that the executors can read.

    Parameters
    ----------
    task : Task
        Model, groups and options, see :mod:`ordinalq.tables.engines`.
    file : Table
        Table in files.
    session : SparkSession
        Session.

    Returns
    -------
    found : Estimates or Summary
        As the task requires.
    """
    task.reading.check(file)
    sent = session.sparkContext.broadcast(core.payload(task))
    rows = [(0, f"{number:012d}", core.packed(piece)) for number, piece in enumerate(file.pieces(task.reading.wanted))]
    with _original_errors():
        pieces = session.createDataFrame(rows, ROW).repartition(len(rows))
        kept, layout = _compute_layout(task, sent, pieces.mapInArrow(_remote("read", sent), ROW), file)
        blocks = _by_block(kept, sent, layout)
        found = _collected(blocks.applyInArrow(_remote("bodies", sent, _drift(task, sent, blocks)), ROW))
        kept.unpersist()
    return core.collected(task, found, layout.keys)


def session(master: str | None) -> Any:
    """Return the Spark session of the caller, or a new one.

    A new session has a master such as local[2].

    Parameters
    ----------
    master : str or None
        Address of the master, such as "local[2]"; None uses that of Spark's settings.

    Returns
    -------
    session : SparkSession
        Active or new session.
    """
    from pyspark.sql import SparkSession

    quiet = {"spark.ui.enabled": "false", "spark.ui.showConsoleProgress": "false", "spark.log.level": "ERROR"}
    builder = SparkSession.builder.appName("ordinalq").config(map=quiet)
    builder = builder if master is None else builder.master(master)
    return builder.getOrCreate()


@contextmanager
def _original_errors() -> Iterator[None]:
    """Raise an error of an executor in its original form.

    Warnings of Spark about new versions of pandas are suppressed.
    """
    from py4j.protocol import Py4JJavaError
    from pyspark.errors import PySparkException

    try:
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", "PySpark does not yet fully support pandas", FutureWarning)
            yield
    except (PySparkException, Py4JJavaError) as error:
        found = ERROR.findall(str(error))
        if not found:
            raise
        name, message = found[-1]
        raise KINDS[name](message) from error


def _compute_layout(
    task: core.Task, sent: Any, parts: Any, file: "Table | None" = None, max_items: int = core.MAX_ITEMS
) -> tuple[Any, core.Layout]:
    """Compute parts on their workers, and return them with the blocks of groups."""
    kept = parts.persist()
    known = _collected(kept.mapInArrow(_remote("facts", sent), ROW))
    return kept, core.layout(task, known, file, max_items)


def _collected(rows: Any) -> list[Any]:
    """Return the content of rows in their order.

    It is computed here, because Spark would compute rows twice to find it.
    """
    found = sorted(rows.collect(), key=lambda row: (row.block, row.origin))
    return [core.unpacked(row.body) for row in found]


def _by_block(kept: Any, sent: Any, layout: core.Layout) -> Any:
    """Return parts grouped by the blocks of groups that they belong to."""
    where = kept.sparkSession.sparkContext.broadcast(layout)
    return kept.mapInArrow(_remote("split", sent, where), ROW).groupBy("block")


def _drift(task: core.Task, sent: Any, blocks: Any) -> Any:
    """Return the common offset of all groups.

    For this, all blocks are merged once before they are estimated.
    """
    if not core.takes_two_passes(task):
        return None
    return core.with_drift(task, _collected(blocks.applyInArrow(_remote("collected", sent), ROW)))


def _remote(name: str, sent: Any, *more: Any) -> Callable[..., Any]:
    """Return a function that does a step on an executor."""
    step = core.remote("spark", name)
    return lambda rows: step(sent.value, rows, *more)


def _scored(sent: Any, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Yield the sums over the groups of the rows of a partition."""
    from pyspark import TaskContext

    task, waiting, number = core.received(sent), [], 0
    origin = f"{TaskContext.get().partitionId():06d}"
    for batch in batches:
        chunk = core.scored(task, _frame(batch))
        waiting += [] if chunk is None else [chunk]
        samples, items = (sum(len(one.summary) for one in waiting), sum(one.n_items for one in waiting))
        if samples > MOST_SAMPLES or (items > MOST_ITEMS and not task.quantifier.traits.uses_sample_means):
            yield _row(0, f"{origin}-{number:06d}", merge_chunks(waiting))
            waiting, number = [], number + 1
    if waiting:
        yield _row(0, f"{origin}-{number:06d}", merge_chunks(waiting))


def _read(sent: Any, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Yield the sums over the groups of pieces of files."""
    task = core.received(sent)
    for row in _rows(batches):
        if (chunk := core.scored_block(task, *core.unpacked(row["body"]))) is not None:
            yield _row(0, row["origin"], chunk)


def _facts(sent: Any, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Yield what the layout needs of each part."""
    for row in _rows(batches):
        yield _row(0, row["origin"], core.facts(core.unpacked(row["body"])))


def _split(sent: Any, batches: Iterator[pa.RecordBatch], layout: Any) -> Iterator[pa.RecordBatch]:
    """Yield what each part has of each block."""
    for row in _rows(batches):
        for block, summary in layout.value.split(core.unpacked(row["body"]).summary).items():
            yield _row(block, row["origin"], (summary, layout.value.keys[layout.value.slices[block]]))


def _merged(table: pa.Table) -> tuple[int, Any]:
    """Return the number of a block of groups and the sums of its parts."""
    rows = sorted(table.to_pylist(), key=lambda row: str(row["origin"]))
    parts = [core.unpacked(row["body"]) for row in rows]
    return int(rows[0]["block"]), core.merged_block(parts[0][1], [summary for summary, _ in parts])


def _sums(sent: Any, table: pa.Table) -> pa.Table:
    """Return the sums of a block that determine the common offset as one row."""
    number, summary = _merged(table)
    return pa.Table.from_batches([_row(number, "", core.received(sent).quantifier.collect(summary))])


def _bodies(sent: Any, table: pa.Table, drift: Any) -> pa.Table:
    """Return what a block gives as one row."""
    number, summary = _merged(table)
    return pa.Table.from_batches([_row(number, "", core.finished(core.received(sent), number, summary, drift))])


def _estimated(sent: Any, table: pa.Table, schema: Any, drift: Any) -> pa.Table:
    """Return the estimates of a block, one row per group."""
    estimates, failed = core.finished(core.received(sent), *_merged(table), drift)
    warn_of_failed(failed, len(estimates))
    columns = {column.name: column.tolist() for column in estimates.keys.columns}
    # Where weights happen to be ones, an item is worth an item.
    columns |= {"n_effective": estimates.n_items.astype(float)}
    columns |= {name: values for name, values in estimates.frame().items() if name not in estimates.keys.names}
    return pa.Table.from_arrays([pa.array(columns[one.name], type=one.type) for one in schema], schema=schema)


STEPS: dict[str, Callable[..., Any]] = {
    "scored": _scored,
    "read": _read,
    "facts": _facts,
    "split": _split,
    "collected": _sums,
    "bodies": _bodies,
    "rows": _estimated,
}


def _row(block: int, origin: str, content: Any) -> pa.RecordBatch:
    types = {"block": pa.int64(), "origin": pa.string(), "body": pa.binary()}
    values = {"block": block, "origin": origin, "body": core.packed(content)}
    return pa.RecordBatch.from_arrays([pa.array([values[name]], type=kind) for name, kind in types.items()], [*types])


def _rows(batches: Iterator[pa.RecordBatch]) -> Iterator[dict[str, Any]]:
    for batch in batches:
        yield from batch.to_pylist()


def _frame(batch: pa.RecordBatch) -> pd.DataFrame:
    """Return rows as a frame; whole numbers stay whole where some are missing."""
    columns = {}
    for name, column in zip(batch.schema.names, batch.columns, strict=True):
        columns[name] = column.to_pandas(types_mapper=nullable if column.null_count else None)
    return pd.DataFrame(columns)


def _schema(task: core.Task, fields: Any, by: By) -> Any:
    """Return the columns of the result as Spark has them."""
    from pyspark.sql import types

    example = core.example(task)
    periods = {name for name, period, _ in map(with_period, [by] if isinstance(by, str) else by) if period is not None}
    words = types.StringType()
    kept = {name: words if name in periods else fields[name].dataType for name in task.reading.groups.names}
    found = [types.StructField(name, kind) for name, kind in kept.items()]
    kinds = {"i": types.LongType(), "f": types.DoubleType()}
    for name, dtype in example.dtypes.items():
        found.append(types.StructField(str(name), kinds.get(dtype.kind, words)))
    return types.StructType(found)
