"""Steps of all engines: score rows, add sums, split blocks, estimate blocks.

An engine only moves :class:`Summary` objects between these steps. Blocks and their random numbers are those of
:func:`ordinalq.inference.predict.estimate`, so that every engine returns the result of a single machine.

A model of groups takes two passes. Sums of all blocks determine the common offset of all groups. Then blocks are
estimated.
"""

import io
import platform
import socket
from collections.abc import Callable, Iterable, Sequence
from functools import lru_cache, reduce
from typing import Any, NamedTuple

import joblib
import numpy as np
import pandas as pd
import sklearn

from ordinalq.inference.drift import Drift
from ordinalq.inference.estimates import check_names, concatenate
from ordinalq.inference.nested import groups_of_parts
from ordinalq.inference.options import IntervalOptions, check_level
from ordinalq.inference.predict import estimate_block, is_wanted, resolve_drift
from ordinalq.io.columns import require_columns
from ordinalq.io.files import Block
from ordinalq.io.table import Table, TableFile
from ordinalq.quantifiers.base import Quantifier
from ordinalq.quantifiers.catalog import catalog
from ordinalq.samples.keys import Keys
from ordinalq.samples.summary import Summary, blocks
from ordinalq.solvers.solution import warn_of_failed
from ordinalq.tables.aggregate import Chunk, Reading, merge_chunks
from ordinalq.tables.grouping import By, Grouping, names_of
from ordinalq.tables.inner import fitted_quantifier, model_for
from ordinalq.tables.model import warn_of_unread
from ordinalq.version import __version__

# Items of one group that a task takes, where a method needs all of them: about two gigabytes for five classes.
MAX_ITEMS = 10_000_000


class Task(NamedTuple):
    """Steps for rows and sums.

    Sums are estimated on the workers, or returned to the caller.
    """

    reading: Reading
    level: float | None
    options: IntervalOptions
    estimates: bool = True
    drift: Any = "auto"

    @property
    def quantifier(self) -> Quantifier:
        """The quantifier of the model."""
        return fitted_quantifier(self.reading.model)


class Layout(NamedTuple):
    """All groups in the order of their estimates, and their blocks.

    A block is estimated at once.
    """

    keys: Keys
    slices: list[slice]

    def split(self, summary: Summary) -> dict[int, Summary]:
        """Return what a summary has of each block."""
        if len(self.slices) == 1:
            return {0: summary}
        assert summary.keys is not None
        place = self.keys.positions(summary.keys)
        number = np.searchsorted([part.start for part in self.slices], place, side="right") - 1
        found = {}
        for block in np.unique(number).tolist():
            mine = number == block
            rows = np.where(mine, np.cumsum(mine) - 1, -1)
            found[block] = summary.regrouped(rows, summary.keys[mine])
        return found


def prepared(
    model: Any,
    columns: Iterable[Any],
    by: By,
    *,
    level: float | None = None,
    labels: str | None = None,
    label_inclusion: str | None = None,
    sample_weight: str | None = None,
    weight_type: str = "survey",
    drift: Any = "auto",
    options: IntervalOptions | None = None,
) -> Task:
    """Return the task for frames with the given columns.

    See :meth:`ordinalq.TableModel.predict_groups`.
    """
    model = model_for(model, by)
    quantifier = fitted_quantifier(model)
    check_names(quantifier.classes_, names_of(by))
    for name, value in (("labels", labels), ("label_inclusion", label_inclusion), ("sample_weight", sample_weight)):
        if value is not None and not isinstance(value, str):
            raise TypeError(f"{name} must be the name of a column, got {type(value).__name__}.")
    how: dict[str, Any] = {"weight": sample_weight, "weight_type": weight_type, "label_inclusion": label_inclusion}
    reading = Reading(model, Grouping(by), labels, compact=False, **how)
    require_columns(columns, list(reading.wanted.columns or ()), "the table")
    options = IntervalOptions() if options is None else options
    is_wanted(quantifier, drift)
    return Task(reading, None if level is None else check_level(level), options.repeatable(), drift=drift)


def payload(task: Task) -> tuple[dict[str, str], bytes]:
    """Return a task in the form that is sent once to all workers.

    It includes the versions that created it.
    """
    return versions(), packed(task)


def received(sent: tuple[dict[str, str], bytes]) -> Task:
    """Return a task on a worker; the error names a version that differs."""
    theirs, content = sent
    for name, ours in versions().items():
        if theirs[name] != ours:
            raise RuntimeError(
                f"the worker {socket.gethostname()} has {name} {ours}, but the model comes from {theirs[name]}: "
                "install the same version there."
            )
    return _task(content)


def packed(content: Any) -> bytes:
    """Return anything as it travels between our own machines."""
    stream = io.BytesIO()
    joblib.dump(content, stream)
    return stream.getvalue()


def unpacked(content: bytes) -> Any:
    """Return what another of our machines has packed."""
    return joblib.load(io.BytesIO(content))


# Each worker unpacks a task once.
_task: Callable[[bytes], Task] = lru_cache(maxsize=2)(unpacked)


def versions() -> dict[str, str]:
    """Return the versions that must be the same on all machines.

    Models and sums are sent as Python objects.
    """
    python = ".".join(platform.python_version_tuple()[:2])
    return {"ordinalq": __version__, "scikit-learn": sklearn.__version__, "python": python}


def remote(engine: str, name: str) -> Callable[..., Any]:
    """Return a function that does a step of an engine on a worker.

    It is sent as it stands here, so that a worker without ordinalq can still say what it lacks.
    """
    version = __version__

    def step(*arguments: Any) -> Any:
        import importlib
        import socket

        try:
            steps = importlib.import_module(f"ordinalq.{engine}").STEPS
        except ImportError as error:
            raise RuntimeError(
                f"the worker {socket.gethostname()} has no ordinalq: install ordinalq {version} there ({error})."
            ) from error
        return steps[name](*arguments)

    return step


def scored(task: Task, frame: pd.DataFrame) -> Chunk | None:
    """Return the sums over the groups of some rows, None if there are none."""
    return task.reading.part(frame) if len(frame) else None


def scored_block(task: Task, file: TableFile, block: Block | None) -> Chunk | None:
    """Return the chunk of a block of a file, or of all blocks if it is None.

    The result is None for a file without rows.
    """
    these = [block] if block is not None else file.blocks(task.reading.wanted)
    parts = [task.reading.chunk(file, one) for one in these]
    return merge_chunks(parts) if parts else None


def facts(chunk: Chunk) -> Chunk:
    """Return the groups of a chunk and their numbers of items, without the sums.

    This is the information that the layout needs.
    """
    return chunk._replace(summary=Summary(chunk.summary.n_items, {}, (), chunk.summary.keys))


def layout(task: Task, known: Sequence[Chunk], file: Table | None = None, max_items: int = MAX_ITEMS) -> Layout:
    """Return the blocks of all groups from the facts of all chunks.

    Groups of a file may be words that represent numbers.
    """
    if not known:
        raise ValueError("the table has no rows.")
    whole = merge_chunks(known)
    assert whole.summary.keys is not None
    keys, n_items = whole.summary.keys, whole.summary.n_items
    warn_of_unread(task.reading.model, whole.n_unread, whole.n_rows)
    if file is not None:
        file.check_seen(task.reading.wanted, whole.seen)
        task.reading.groups.record_strings(whole.strings)
        order = task.reading.groups.order(keys)[0]
        keys, n_items = keys[order], n_items[order]
    of_items = not task.quantifier.traits.uses_sample_means
    if of_items and n_items.max() > max_items:
        name = keys[[int(n_items.argmax())]].labels()[0]
        raise ValueError(
            f"group {name!r} has {n_items.max():,} items; {type(task.quantifier).__name__} needs the scores of all of "
            f"them in one task, which takes at most {max_items:,} (max_items): take a method on means, such as "
            f"{_on_means()}."
        )
    parts = groups_of_parts(keys, getattr(task.quantifier, "group_columns_", ()))
    return Layout(keys, blocks(n_items, of_items=of_items, groups=None if parts is None else parts[1]))


def merged_block(keys: Keys, parts: Sequence[Summary]) -> Summary:
    """Return the sums of a block of groups in the order of their keys."""
    summary = Summary.merged(parts)
    assert summary.keys is not None
    return summary.regrouped(keys.positions(summary.keys), keys)


def takes_two_passes(task: Task) -> bool:
    """Return whether all blocks determine a common offset before any is estimated."""
    wanted = task.estimates and is_wanted(task.quantifier, task.drift)
    return wanted and not isinstance(task.drift, Drift)


def with_drift(task: Task, sums: Sequence[Any]) -> Drift | None:
    """Return the common offset of all groups from the sums that blocks collect."""
    found = [one for one in sums if one is not None]
    return resolve_drift(task.quantifier, reduce(lambda a, b: a.merge(b), found), task.drift) if found else None


def finished(task: Task, number: int, summary: Summary, drift: Drift | None = None) -> tuple[Any, int]:
    """Return the estimates of a block of groups, and the number of failures.

    The estimates use the common offset of all groups. Sums are returned if the task requests no estimates.
    """
    if not task.estimates:
        return summary, 0
    drift = task.drift if isinstance(task.drift, Drift) else drift
    return estimate_block(task.quantifier, summary, task.level, task.options, number, drift)


def collected(task: Task, found: Sequence[tuple[Any, int]], keys: Keys) -> Any:
    """Return all estimates, or all sums, from those of the blocks."""
    warn_of_failed(sum(failed for _, failed in found), len(keys))
    parts = [part for part, _ in found]
    return concatenate(parts, keys) if task.estimates else Summary.merged(parts)


def example(task: Task) -> pd.DataFrame:
    """Return a table of estimates without groups, whose columns are those of any."""
    quantifier = task.quantifier
    n = len(quantifier.classes_)
    S = np.full((1, n), 1 / n) if quantifier.traits.input_kind == "scores" else np.zeros((1, quantifier.n_features_in_))
    labels = None if task.reading.labels is None else [None]
    weight = None if task.reading.weight is None else [0.5]
    summary = quantifier.summarize(S, labels=labels, sample_weight=weight)
    found: pd.DataFrame = estimate_block(quantifier, summary, task.level, task.options, 0)[0].frame()
    return found


def _on_means() -> str:
    """Name some methods that need means only."""
    methods = [(entry.name, entry.cls().traits) for entry in catalog()]
    plain = [name for name, t in methods if t.uses_sample_means and t.input_kind == "scores" and t.adjusts]
    return ", ".join(plain[:6])
