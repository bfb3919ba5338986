"""Aggregation of tables of any size block by block, by one process or several.

A block of a file is read and scored on its own, and the sums of all blocks are added up in the order of the blocks.
Methods on items keep single scores: beyond some millions these go to temporary files.
"""

import hashlib
import json
import logging
import re
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from ordinalq._utils.parallel import in_order
from ordinalq._utils.progress import iterate_parts
from ordinalq._utils.validation import Counts, Floats, check_integer, check_random_state
from ordinalq.io import columns as cells
from ordinalq.io.files import Block, Wanted
from ordinalq.io.table import Table, TableFile
from ordinalq.io.writing import replacing, write_bytes
from ordinalq.samples.summary import Summary, merge_all
from ordinalq.tables.grouping import By, Grouping, known_labels
from ordinalq.tables.inner import fitted_quantifier
from ordinalq.tables.model import needed_columns, scores_of, warn_of_unread

# Files of chunks, by the hash of what determines them.
KEPT = re.compile(r"[0-9a-f]{32}\.(npz|json)")


class Chunk(NamedTuple):
    """Result of a block of rows."""

    summary: Summary
    strings: tuple[bool, ...]  # whether each column of groups had strings, see `ordinalq.tables.grouping.GroupColumn`
    seen: frozenset[str]  # columns that some row had, where rows may lack columns
    n_rows: int
    n_unread: int  # rows without a word that the model knows, see `ordinalq.tables.model.scores_of`

    @property
    def n_items(self) -> int:
        """Number of rows."""
        return int(self.summary.n_items.sum())


def merge_chunks(parts: Sequence[Chunk]) -> Chunk:
    """Merge chunks into one."""
    return Chunk(
        Summary.merged([part.summary for part in parts]),
        tuple(map(any, zip(*(part.strings for part in parts), strict=True))),
        frozenset().union(*(part.seen for part in parts)),
        sum(part.n_rows for part in parts),
        sum(part.n_unread for part in parts),
    )


class Reading:
    """Steps for rows: read, score and sum up, see :func:`summarize_table`.

    With `with_gaps` labels can be added later, if there are none. With `compact` scores are stored in single precision
    if a method needs those of all items.
    """

    def __init__(
        self,
        model: Any,
        groups: Grouping,
        labels: str | None = None,
        *,
        with_gaps: bool = False,
        compact: bool = True,
        weight: str | None = None,
        weight_type: str = "survey",
        label_inclusion: str | None = None,
    ) -> None:
        self.model, self.groups, self.labels, self.label_inclusion = model, groups, labels, label_inclusion
        self.weight, self.weight_type = weight, weight_type
        self.with_gaps, self.compact = with_gaps, compact
        kinds = needed_columns(model)
        columns = list(dict.fromkeys([*kinds, *groups.names, *filter(None, [labels, label_inclusion, weight])]))
        numbers = [name for name, kind in kinds.items() if kind == "number" and name not in groups.names]
        self.wanted = Wanted(columns, numbers, groups.native)

    def check(self, file: Table) -> None:
        """Raise an error for a table without the columns that are needed."""
        kinds = needed_columns(self.model)
        file.require(list(kinds), list(self.wanted.columns or ()))
        if self.labels is not None and self.labels in kinds:
            raise ValueError(f"{file.name}: column {self.labels!r} cannot hold labels, the model learned from it.")

    def part(self, frame: pd.DataFrame) -> Chunk:
        """Return what some rows give."""
        seen = frozenset(frame.attrs.pop("seen", ()))
        S, n_unread = scores_of(self.model, frame)
        return Chunk(self._summary(frame, S), self.groups.strings(frame), seen, len(S), n_unread)

    def _summary(self, frame: pd.DataFrame, S: Floats) -> Summary:
        """Return the sums over the groups of some rows with scores S (N, n)."""
        quantifier = fitted_quantifier(self.model)
        samples = self.groups.samples(frame)
        known: Any = [None] * len(frame) if self.with_gaps else None
        if self.labels is not None:
            known = known_labels(frame, self.labels, quantifier.classes_)
        w = None if self.weight is None else cells.weights(frame, self.weight)
        weightless = w is not None and not w.any()
        how: dict[str, Any] = {"sample_weight": None if weightless else w, "weight_type": self.weight_type}
        if self.label_inclusion is not None:
            how["label_inclusion"] = cells.probabilities(frame, self.label_inclusion)
        summary = quantifier.summarize(S, samples, labels=known, **how)
        if weightless:
            return _empty(summary)
        return summary.compact() if self.compact else summary

    def chunk(self, file: TableFile, block: Block) -> Chunk:
        """Return what a block of rows gives."""
        return merge_chunks([self.part(frame) for frame, _ in file.frames(block, self.wanted)])


def _empty(summary: Summary) -> Summary:
    """Return a summary of no samples, with the sums of another."""
    assert summary.keys is not None
    totals = {name: total[:0] for name, total in summary.totals.items()}
    return Summary(summary.n_items[:0], totals, (), summary.keys[np.arange(0)])


class FinishedBlocks:
    """Folder of the chunks of finished blocks under a hash of their inputs.

    The inputs are the rows and the `identity`: the model, the columns of groups, and the options for reading files.
    """

    def __init__(self, folder: Path, identity: str) -> None:
        self.folder = folder
        self.identity = identity
        folder.mkdir(exist_ok=True)

    def key(self, file: TableFile, block: Block) -> str:
        """Return the hash of a block: of the state of its file, and of its place there."""
        about = [self.identity, *file.state()]
        return hashlib.sha256(json.dumps([*about, *block[:4]]).encode()).hexdigest()[:32]

    def get(self, key: str) -> Chunk | None:
        """Return a chunk; None if it is not there, or damaged."""
        try:
            about = json.loads((self.folder / f"{key}.json").read_text())
            content = (self.folder / f"{key}.npz").read_bytes()
            if hashlib.sha256(content).hexdigest() != about["sha256"]:
                return None
            summary = Summary.load(self.folder / f"{key}.npz")
            counts = int(about["n_rows"]), int(about["n_unread"])
            return Chunk(summary, tuple(about["strings"]), frozenset(about["seen"]), *counts)
        except (OSError, ValueError, KeyError, TypeError):
            return None

    def put(self, key: str, chunk: Chunk) -> None:
        """Store a chunk: first its sums, then their checksum."""
        with replacing(self.folder / f"{key}.npz") as path:
            chunk.summary.save(path)
            digest = hashlib.sha256(path.read_bytes()).hexdigest()
        counts = {"n_rows": chunk.n_rows, "n_unread": chunk.n_unread}
        about = {"sha256": digest, "strings": chunk.strings, "seen": sorted(chunk.seen), **counts}
        write_bytes(self.folder / f"{key}.json", json.dumps(about).encode())

    def delete(self) -> None:
        """Delete the stored chunks, and the folder if it is then empty."""
        for path in self.folder.iterdir():
            if KEPT.fullmatch(path.name):
                path.unlink()
        with suppress(OSError):
            self.folder.rmdir()


def read_summary(reading: Reading, file: Table, *, n_jobs: int = 1, finished: FinishedBlocks | None = None) -> Summary:
    """Return the summary of a table of any size.

    The table is read by `n_jobs` processes. The keys are as read. Chunks of an earlier run in `finished` are used, and
    those of this run are stored there.
    """
    reading.check(file)
    seen: set[str] = set()
    n_rows = n_unread = 0

    def summaries() -> Iterator[Summary]:
        nonlocal n_rows, n_unread
        calls = ((part, block, finished) for part, block in file.blocks(reading.wanted))
        chunks = in_order(_chunk, reading, calls, n_jobs, _light)
        for chunk in iterate_parts("reading the table", chunks, file.n_bytes):
            reading.groups.record_strings(chunk.strings)
            seen.update(chunk.seen)
            n_rows, n_unread = n_rows + chunk.n_rows, n_unread + chunk.n_unread
            yield chunk.summary

    summary = merge_all(summaries())
    file.check_seen(reading.wanted, seen)
    warn_of_unread(reading.model, n_unread, n_rows)
    return summary


def _light(file: TableFile, block: Block, finished: FinishedBlocks | None) -> tuple[Any, ...]:
    """Return the arguments of `_chunk` in the form for another process."""
    return file, file.light(block), finished


def _chunk(reading: Reading, file: TableFile, block: Block, finished: FinishedBlocks | None) -> tuple[Chunk, int]:
    """Return the chunk of a block of rows, and the bytes of the table read so far.

    The chunk is computed, or loaded from an earlier run.
    """
    if finished is None:
        return reading.chunk(file, block), block.done
    key = finished.key(file, block)
    found = finished.get(key)
    if found is None:
        found = reading.chunk(file, block)
        finished.put(key, found)
    return found, block.done


# Some rows of a table that is too large to learn from: the same part of each group, drawn at random.


logger = logging.getLogger("ordinalq")


def some_rows(
    file: Table, columns: Sequence[str] | None, strata: By, max_items: int, random_state: Any
) -> pd.DataFrame:
    """Return at most `max_items` rows of a table, in their order.

    The fraction is the same for each group, with at least one row. The groups are those of the columns `strata`. The
    table is read twice: to count the rows of each group, and to draw them.
    """
    max_items = check_integer("max_items", max_items, minimum=1)
    groups = Grouping(strata, file.format)
    counts = merge_all(_counted(groups, frame) for frame in file.chunks(groups.names, native=groups.native))
    assert counts.keys is not None
    quota = shares(counts.n_items, max_items)
    n_rows, n_chosen = int(counts.n_items.sum()), int(quota.sum())
    if n_chosen < n_rows:
        logger.warning(
            "learned from %s of %s rows, %.3g%% of each of %s values of %r",
            f"{n_chosen:,}",
            f"{n_rows:,}",
            100 * n_chosen / n_rows,
            f"{len(counts):,}",
            counts.keys.name,
        )
    rng, left, kept = check_random_state(random_state), counts.n_items.copy(), []
    for frame in file.chunks(columns, native=groups.native):
        samples = groups.samples(frame)
        assert samples.keys is not None
        rows = counts.keys.positions(samples.keys)
        # Number of rows to draw of these, if all remaining rows are equally likely.
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
    """Return the number of rows to take from each group, shape (B,).

    The fraction is the same for all groups except for rounding. Each number is at least one, and their sum is `total`.

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
