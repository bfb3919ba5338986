"""`Summary`: the values that a method needs of B samples, which can be merged."""

import io
import struct
import tempfile
import zipfile
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from ordinalq._utils.arrays import read_header
from ordinalq._utils.extras import require_extra
from ordinalq._utils.validation import Array, Codes, Counts, Floats, Index
from ordinalq.samples.keys import Column, Keys
from ordinalq.samples.samples import Samples
from ordinalq.samples.weights import Weights

# What is worked on at once: enough for whole batches, little enough for the memory.
BLOCK_SAMPLES, BLOCK_ITEMS = 2**14, 2**20
# Scored items of a table that are kept in memory, some tens of bytes for each.
IN_MEMORY = 2**22
# Chunks that wait until they are merged: often enough for the memory, seldom enough for the time.
WAITING = 16


class Scored(NamedTuple):
    """Chunk of scored items: S (N, n), samples of them, and rows of the summary.

    Each sample is a part of one row.
    """

    S: npt.NDArray[np.floating[Any]]
    samples: Samples
    rows: Index

    def moved(self, rows: Index) -> "Scored":
        """Return the items as part of other samples.

        Sample b becomes part of sample rows[b], or is removed if that is -1.
        """
        stay = rows >= 0
        return Scored(self.S, self.samples if stay.all() else self.samples[stay], rows[stay])

    def chosen(self, rows: Index) -> "Scored":
        """Return the items of some samples.

        Sample b becomes part of sample rows[b], or is removed if that is -1. Only the scores of the remaining items are
        copied, so that the others can stay on disk.
        """
        kept = self.samples[rows >= 0]
        items = Samples(np.arange(len(kept.items)), kept.offsets, len(kept.items), weights=kept.weights)
        return Scored(np.asarray(self.S[kept.items]), items, rows[rows >= 0])


@dataclass(frozen=True, eq=False)
class Summary:
    """All that a quantifier needs of B samples.

    Methods on means need sums over the items of each sample; methods on items (SLD, o-SLD) need the scores of all of
    them. Both can be merged: chunks summarized by different processes or machines give the same as all items at
    once. `Quantifier.summarize` makes summaries, `Quantifier.solve` and the functions of `ordinalq.inference` take
    them.

    Parameters
    ----------
    n_items : ndarray (B,)
        Number of items (of those with a positive weight; the sum of the weights where these are numbers of items).
    totals : dict of str to ndarray (B, ...)
        Sums over the items of each sample, which merging adds up: "weight" and "weight2" (B,) of the weights and of
        their squares; for methods on means "f" (B, d) of w f; "checks" (B, g) of the functions of the fit test, where
        the method has some; of labelled items what `ordinalq.inference.labels` says.
    items : tuple of Scored, default=()
        Chunks of scored items, for methods on items.
    keys : Keys, default=None
        The groups that the samples stand for.
    exponent : int, default=0
        Weights are in units of 2^exponent: not 0 if their squares would otherwise be beyond what numbers can hold.

    Examples
    --------
    >>> import ordinalq as oq
    >>> rng = np.random.default_rng(0)
    >>> y = rng.integers(1, 4, 300)
    >>> X = y[:, None] + rng.normal(size=(300, 2))
    >>> q = oq.PACC().fit(X, y)
    >>> months = oq.Samples.from_groups(y[:100] % 2), oq.Samples.from_groups(y[100:] % 2)
    >>> first, second = q.summarize(q.scores(X[:100]), months[0]), q.summarize(q.scores(X[100:]), months[1])
    >>> int(first.merge(second).n_items.sum())
    300
    """

    n_items: Counts
    totals: Mapping[str, Floats]
    items: tuple[Scored, ...] = ()
    keys: Keys | None = None
    exponent: int = 0

    @classmethod
    def of_means(cls, samples: Samples, F: Any) -> "Summary":
        """Return the sums of f over samples of represented items F (N, d).

        Parameters
        ----------
        samples : Samples
            B samples of a pool.
        F : array, sparse array or OneHot (N, d)
            Represented items of the pool.

        Returns
        -------
        summary : Summary
            Sums of the samples.
        """
        return cls(_n_items(samples), {**_weights(samples), "f": samples.total(F)}, (), samples.keys)

    @classmethod
    def of_items(cls, samples: Samples, S: Floats) -> "Summary":
        """Return samples of scored items S (N, n) themselves.

        Parameters
        ----------
        samples : Samples
            B samples of a pool.
        S : ndarray (N, n)
            Scores of the items.

        Returns
        -------
        summary : Summary
            Scores of the items of each sample.
        """
        items = (Scored(S, samples, np.arange(len(samples))),)
        return cls(_n_items(samples), _weights(samples), items, samples.keys)

    def __len__(self) -> int:
        return len(self.n_items)

    @property
    def weight(self) -> Floats:
        """Sum of the weights of each sample, shape (B,).

        Without weights it is the number of items.
        """
        return self.totals["weight"]

    @property
    def sizes(self) -> Floats:
        """Effective sample size N of each sample, shape (B,).

        It is (sum w)^2 / sum w^2. Without weights it is the number of items.
        """
        return np.asarray(self.weight**2 / self.totals["weight2"])

    @property
    def drawn_sizes(self) -> Counts:
        """The same as whole numbers, for replicates of the samples, (B,)."""
        return np.maximum(np.rint(self.sizes), 1).astype(np.int64)

    @property
    def has_weights(self) -> bool:
        """Whether items have weights that are not numbers of items."""
        return bool((self.weight != self.totals["weight2"]).any())

    @property
    def n_labelled(self) -> Counts | None:
        """Number of labelled items of each sample, (B,); None if no labels were given."""
        if "labels" not in self.totals:
            return None
        number = self.totals.get("labels n")
        return np.rint(self.totals["labels"].sum(axis=1) if number is None else number).astype(np.int64)

    @property
    def item_unit(self) -> Floats:
        """Items that a unit of weight is worth, (B,): N / sum w, one without weights."""
        return np.asarray(self.weight / self.totals["weight2"])

    @property
    def means(self) -> Floats:
        """Mean representation q of each sample, (B, d)."""
        return self.mean("f")

    def mean(self, name: str) -> Floats:
        """Return the weighted mean of one of the totals, (B, ...).

        Parameters
        ----------
        name : str
            Key of ``totals``.

        Returns
        -------
        means : ndarray (B, ...)
            Weighted means.
        """
        total = self.totals[name]
        return np.asarray(total / self.weight.reshape(-1, *(1,) * (total.ndim - 1)))

    def with_means(self, Q: Floats, repeat: int = 1) -> "Summary":
        """Return `repeat` copies of the samples with other mean representations.

        The copies are concatenated. Q has shape (repeat B, d).

        Parameters
        ----------
        Q : ndarray (repeat B, d)
            Mean representations.
        repeat : int, default=1
            Number of copies.

        Returns
        -------
        summary : Summary
            The copies.
        """
        # Weights that sum to one leave Q as it is, to the last bit.
        weights = {"weight": np.ones(len(Q)), "weight2": np.tile(1 / self.sizes, repeat)}
        return Summary(np.tile(self.n_items, repeat), {**weights, "f": Q})

    def __getitem__(self, rows: slice) -> "Summary":
        """Return the summary of successive samples."""
        chosen = np.arange(len(self))[rows]
        totals = {name: total[rows] for name, total in self.totals.items()}
        keys = None if self.keys is None else self.keys[rows]
        position = np.full(len(self), -1, dtype=np.intp)
        position[chosen] = np.arange(len(chosen))
        parts = [part.chosen(new) for part in self.items if ((new := position[part.rows]) >= 0).any()]
        return Summary(self.n_items[rows], totals, tuple(parts), keys, self.exponent)

    def scored(self) -> tuple[Floats, Samples]:
        """Return the scores of all items, (N, n), and the samples of them.

        Returns
        -------
        S, samples : ndarray (N, n), Samples
            Scores, and the samples of their rows.
        """
        first = self.items[0]
        if len(self.items) == 1 and len(first.rows) == len(self) and (first.rows == np.arange(len(self))).all():
            return _double(first.S), first.samples
        return _joined(self.items, len(self))

    def compact(self) -> "Summary":
        """Return the summary with scores in single precision.

        The memory is 4 n + 8 bytes per item. Estimates change by about 1e-6.

        Returns
        -------
        summary : Summary
            The same samples.
        """
        return replace(self, items=tuple(part._replace(S=part.S.astype(np.float32)) for part in self.items))

    def merge(self, other: "Summary") -> "Summary":
        """Return the summary of the items of both, see :meth:`merged`.

        Parameters
        ----------
        other : Summary
            Summary by the same quantifier.

        Returns
        -------
        summary : Summary
            Summary of all items.
        """
        return Summary.merged([self, other])

    @classmethod
    def merged(cls, parts: Sequence["Summary"]) -> "Summary":
        """Return the summary of the items of all parts, by the same quantifier.

        Samples with the same key become one; without keys the first samples of all parts become one, and so on.

        Parameters
        ----------
        parts : list of Summary
            Summaries of chunks.

        Returns
        -------
        summary : Summary
            Summary of all items.

        Examples
        --------
        >>> import ordinalq as oq
        >>> S = np.array([[0.7, 0.2, 0.1], [0.2, 0.6, 0.2], [0.1, 0.2, 0.7]])
        >>> q = oq.PACC().fit_scores(S, [1, 2, 3])
        >>> both = q.summarize(S[:2], oq.Samples.from_groups(["pen", "ink"]))
        >>> both = both.merge(q.summarize(S[2:], oq.Samples.from_groups(["pen"])))
        >>> both.keys.tolist(), both.n_items.tolist()
        (['ink', 'pen'], [1, 2])
        """
        if not parts:
            raise ValueError("parts must hold at least one summary, got none.")
        if len(parts) == 1:
            return parts[0]
        keys, positions = _merged_keys(parts)
        exponent = max((part.exponent for part in parts if len(part)), default=0)
        parts = [part.in_unit(exponent) for part in parts]
        n_items = np.zeros(len(parts[0]) if keys is None else len(keys), dtype=np.int64)
        names = parts[0].totals.keys()
        totals = {name: np.zeros((len(n_items), *parts[0].totals[name].shape[1:])) for name in names}
        items: list[Scored] = []
        for part, rows in zip(parts, positions, strict=True):
            if part.totals.keys() != names or any(part.totals[n].shape[1:] != totals[n].shape[1:] for n in names):
                raise ValueError("summaries of different quantifiers cannot be merged.")
            n_items[rows] += part.n_items
            for name in names:
                totals[name][rows] += part.totals[name]
            items += [scored._replace(rows=rows[scored.rows]) for scored in part.items]
        return cls(n_items, totals, tuple(items), keys, exponent)

    def in_unit(self, exponent: int) -> "Summary":
        """Return the summary with weights in units of 2^exponent.

        Parameters
        ----------
        exponent : int
            Exponent of the new unit.

        Returns
        -------
        summary : Summary
            The same samples.
        """
        k = self.exponent - exponent
        if k == 0:
            return self
        # All totals are weighted once, but for these.
        power = {"weight2": 2, "labels n": 0}
        totals = {name: np.ldexp(total, k * power.get(name, 1)) for name, total in self.totals.items()}
        items = []
        for part in self.items:
            weights = Weights(np.ldexp(_values(part.samples), k))
            samples = Samples(part.samples.items, part.samples.offsets, part.samples.n_items, weights=weights)
            items.append(part._replace(samples=samples))
        return replace(self, totals=totals, items=tuple(items), exponent=exponent)

    def regrouped(self, rows: Index, keys: Keys) -> "Summary":
        """Return a summary of new samples that consist of these samples.

        Sample b becomes part of sample rows[b], or is removed if that is -1.

        Parameters
        ----------
        rows : ndarray (B,)
            New sample of each sample, -1 for none.
        keys : Keys
            Keys of the new samples.

        Returns
        -------
        summary : Summary
            The new samples.
        """
        kept = rows >= 0
        n_items = np.zeros(len(keys), dtype=np.int64)
        np.add.at(n_items, rows[kept], self.n_items[kept])
        totals = {name: np.zeros((len(keys), *total.shape[1:])) for name, total in self.totals.items()}
        for name, total in self.totals.items():
            np.add.at(totals[name], rows[kept], total[kept])
        items = [part.moved(new) for part in self.items if ((new := rows[part.rows]) >= 0).any()]
        return Summary(n_items, totals, tuple(items), keys, self.exponent)

    def save(self, path: str | Path) -> None:
        """Write the summary to a file of arrays, which :meth:`load` reads.

        Parameters
        ----------
        path : str or Path
            File to write, ``.npz``.
        """
        arrays: dict[str, Any] = {f"total {name}": total for name, total in self.totals.items()}
        arrays |= {"n_items": self.n_items, "exponent": np.array(self.exponent)}
        for i, part in enumerate(self.items):
            samples = part.samples
            arrays |= {f"S {i}": part.S, f"items {i}": samples.items, f"offsets {i}": samples.offsets}
            arrays[f"rows {i}"] = part.rows
            if samples.weights is not None:
                arrays[f"weights {i}"] = samples.weights.values
        if self.keys is not None:
            arrays["keys"] = _to_bytes(self.keys)
        with Path(path).open("wb") as file:
            np.savez(file, **arrays)

    @classmethod
    def load(cls, path: str | Path) -> "Summary":
        """Read what :meth:`save` has written; no code from the file is run.

        Parameters
        ----------
        path : str or Path
            File that `save` has written.

        Returns
        -------
        summary : Summary
            Checked summary.
        """
        try:
            arrays = _arrays(Path(path))
            totals = {name[6:]: array for name, array in arrays.items() if name.startswith("total ")}
            items = [_scored(arrays, i) for i in range(sum(name.startswith("S ") for name in arrays))]
            keys = _from_bytes(arrays["keys"]) if "keys" in arrays else None
            exponent = arrays.get("exponent", np.array(0))
            _require(exponent.dtype.kind == "i" and exponent.ndim == 0)
            summary = cls(arrays["n_items"], totals, tuple(items), keys, int(exponent))
            summary.check()
        except (FileNotFoundError, PermissionError, IsADirectoryError, ImportError):
            raise
        except Exception as error:  # zipfile, NumPy and Arrow raise many kinds for damaged files
            raise ValueError(f"{path}: expected what Summary.save has written, got something else.") from error
        return summary

    def check(self) -> None:
        """Raise ValueError if arrays do not fit together, as those of a damaged file."""
        B = len(self)
        _require(self.n_items.shape == (B,) and self.n_items.dtype.kind == "i" and (self.n_items >= 0).all())
        _require({"weight", "weight2"} <= self.totals.keys() or not self.items)
        for name, total in self.totals.items():
            _require(total.dtype == np.float64 and total.ndim >= 1 and len(total) == B)
            _require(
                name not in ("weight", "weight2") or (total.shape == (B,) and ((total > 0) & np.isfinite(total)).all())
            )
        for S, samples, rows in self.items:
            _require(S.ndim == 2 and S.dtype.kind == "f" and np.isfinite(S).all())
            _require(rows.shape == (len(samples),) and _are_below(rows, B) and _are_below(samples.items, len(S)))
            offsets = samples.offsets
            _require(
                offsets.dtype.kind in "iu" and offsets.ndim == 1 and (np.diff(offsets.astype(np.int64)) >= 0).all()
            )
            _require(len(offsets) >= 1 and offsets[0] == 0 and offsets[-1] == len(samples.items))
            weights = samples.weights
            _require(weights is None or (weights.values.shape == samples.items.shape and (weights.values >= 0).all()))
        _require(self.keys is None or len(self.keys) == B)


def _require(fits: Any) -> None:
    if not fits:
        raise ValueError("the arrays of a summary must fit together.")


def _are_below(numbers: Array, n: int) -> bool:
    """Return whether an array has whole numbers 0..n-1."""
    return bool(numbers.ndim == 1 and numbers.dtype.kind in "iu" and ((numbers >= 0) & (numbers < n)).all())


def blocks(n_items: Counts, *, of_items: bool, groups: Codes | None = None) -> list[slice]:
    """Return slices of successive samples that are processed together.

    They are the same on every machine. A slice has at most 2^14 samples and, for methods on items, 2^20 items, unless a
    single sample has more. If samples are parts of groups (B,), all parts of a group are in one block regardless of
    their number.

    Parameters
    ----------
    n_items : ndarray (B,)
        Numbers of items of the samples.
    of_items : bool
        Whether the method needs all items.
    groups : ndarray (B,), default=None
        Groups of the samples, which stay together.

    Returns
    -------
    blocks : list of slice
        Positions of samples.
    """
    ends, found, start = np.cumsum(n_items), [], 0
    whole = np.arange(1, len(n_items) + 1)
    if groups is not None:
        last = np.zeros(groups.max(initial=-1) + 1, dtype=np.intp)
        last[groups] = whole
        # A block may end if no group before has a part behind.
        whole = whole[np.maximum.accumulate(last[groups]) == whole]
    while start < len(n_items):
        stop = min(start + BLOCK_SAMPLES, len(n_items))
        if of_items:
            before = int(ends[start] - n_items[start])
            stop = min(stop, max(start + 1, int(np.searchsorted(ends, before + BLOCK_ITEMS, side="right"))))
        at = int(np.searchsorted(whole, stop, side="right"))
        stop = int(whole[at - 1] if at and whole[at - 1] > start else whole[at])
        found.append(slice(start, stop))
        start = stop
    return found


def merge_all(parts: Iterable[Summary]) -> Summary:
    """Merge the summaries of any number of chunks into one.

    See :func:`spill_to_disk`.
    """
    waiting: list[Summary] = []
    for part in parts:
        waiting.append(part)
        if len(waiting) == WAITING:
            waiting = [spill_to_disk(Summary.merged(waiting))]
    return Summary.merged(waiting)


def spill_to_disk(summary: Summary) -> Summary:
    """Move the scores of a summary to a temporary file if there are millions.

    The file contains the scores sample by sample.
    """
    here = [part for part in summary.items if not isinstance(part.S, np.memmap)]
    if sum(len(part.S) for part in here) <= IN_MEMORY:
        return summary
    rows = np.concatenate([np.repeat(part.rows, part.samples.sizes) for part in here])
    order = np.argsort(rows, kind="stable")
    S = np.concatenate([part.S[part.samples.items] for part in here])[order]
    weights = None
    if any(part.samples.weights is not None for part in here):
        weights = Weights(_on_disk(np.concatenate([_values(part.samples) for part in here])[order]))
    distinct, sizes = np.unique(rows, return_counts=True)
    offsets = np.append(0, np.cumsum(sizes))
    items = _on_disk(np.arange(len(S), dtype=np.int32 if len(S) < 2**31 else np.int64))
    samples = Samples(items, offsets, len(S), weights=weights)
    there = [part for part in summary.items if isinstance(part.S, np.memmap)]
    return replace(summary, items=(*there, Scored(_on_disk(S), samples, distinct)))


def _scored(arrays: Mapping[str, Any], i: int) -> Scored:
    """Return chunk i of what a file holds."""
    weights = Weights(arrays[f"weights {i}"]) if f"weights {i}" in arrays else None
    S = arrays[f"S {i}"]
    samples = Samples(arrays[f"items {i}"], arrays[f"offsets {i}"], len(S), weights=weights)
    return Scored(S, samples, arrays[f"rows {i}"])


def _joined(parts: Sequence[Scored], B: int) -> tuple[Floats, Samples]:
    """Return the scores of the items of all chunks, (N, n), and the B samples."""
    # Items of all chunks one after the other, then sorted by the sample they belong to.
    starts = np.cumsum([0, *(len(part.S) for part in parts)])
    items = np.concatenate([part.samples.items + start for part, start in zip(parts, starts, strict=False)])
    rows = np.concatenate([np.repeat(part.rows, part.samples.sizes) for part in parts])
    offsets = np.append(0, np.cumsum(np.bincount(rows, minlength=B)))
    S = _double(np.concatenate([part.S for part in parts]))
    order = np.argsort(rows, kind="stable")
    weights = None
    if any(part.samples.weights is not None for part in parts):
        weights = Weights(np.concatenate([_values(part.samples) for part in parts])[order])
    return S, Samples(items[order], offsets, len(S), weights=weights)


def _n_items(samples: Samples) -> Counts:
    """Return the number of items of each sample, shape (B,).

    With frequency weights a row counts several times.
    """
    if samples.weights is None or not samples.weights.counts_items:
        return samples.sizes
    return np.rint(samples.weight).astype(np.int64)


def _weights(samples: Samples) -> dict[str, Floats]:
    """Return the sums of the weights and of their squares, (B,) each."""
    return {"weight": samples.weight, "weight2": samples.squared_weight}


def _values(samples: Samples) -> Floats:
    """Return the weights of the drawn items of all samples."""
    return np.ones(len(samples.items)) if samples.weights is None else samples.weights.values


def _merged_keys(parts: Sequence[Summary]) -> tuple[Keys | None, list[Index]]:
    """Return the keys of all parts and the rows of each part's samples among them."""
    keys = [part.keys for part in parts if part.keys is not None]
    if len(keys) == len(parts):
        return Keys.merged(keys)
    if keys or len({len(part) for part in parts}) > 1:
        raise ValueError("summaries without groups can be merged only with those of as many samples without groups.")
    return None, [np.arange(len(part)) for part in parts]


def _double(S: npt.NDArray[np.floating[Any]]) -> Floats:
    """Return scores in double precision.

    Rows that were stored in single precision are normalized to sum to one.
    """
    double: Floats = S.astype(np.float64, copy=False)
    return double if S.dtype == np.float64 else np.asarray(double / double.sum(axis=1, keepdims=True))


def _on_disk(array: Array) -> Array:
    """Return an array that is read from a file which vanishes with it."""
    with tempfile.TemporaryFile(prefix="ordinalq-") as file:
        array.tofile(file)
        return np.memmap(file, dtype=array.dtype, mode="r", shape=array.shape)


def _arrays(path: Path) -> dict[str, Array]:
    """Return the arrays of a file of :meth:`Summary.save`.

    They are not compressed, so that their size is bounded by that of the file.
    """
    with zipfile.ZipFile(path) as archive:
        for member in archive.infolist():
            _require(member.compress_type == zipfile.ZIP_STORED and member.file_size <= path.stat().st_size)
            with archive.open(member) as stream:
                read_header(stream, member.file_size)
    with np.load(path, allow_pickle=False) as file:
        return {name: file[name] for name in file.files}


def _to_bytes(keys: Keys) -> npt.NDArray[np.uint8]:
    """Return keys as an Arrow stream; raise TypeError if it cannot hold them."""
    import pandas as pd

    with require_extra("tables", "saving a summary of groups"):
        import pyarrow as pa

    for column in keys.columns:
        try:
            table = pa.Table.from_pandas(pd.DataFrame({column.name: column.index}), preserve_index=False)
            same = _from_bytes(_stream(table)).columns[0].index.equals(column.index)
        except (pa.ArrowException, TypeError, ValueError, UnicodeError) as error:
            raise _not_saved(column) from error
        if not same:
            raise _not_saved(column)
    return _stream(pa.Table.from_pandas(pd.DataFrame(keys.frame()), preserve_index=False))


def _stream(table: Any) -> npt.NDArray[np.uint8]:
    import pyarrow as pa

    stream = io.BytesIO()
    with pa.ipc.new_stream(stream, table.schema) as writer:
        writer.write_table(table)
    return np.frombuffer(stream.getvalue(), dtype=np.uint8)


def _not_saved(column: Column) -> TypeError:
    kind = column.index.dtype if column.index.dtype != object else type(column.index[0]).__name__
    return TypeError(
        f"groups must be text, numbers, dates or categories to be saved, got {kind} in {column.name!r}. Use str."
    )


def _is_compressed(message: Any) -> bool:
    """Return whether the buffers of an Arrow message are compressed.

    The method `save` never compresses them. Compressed buffers could exceed the size of the file. The metadata are a
    flatbuffer, which Arrow has verified: a table is preceded by the offsets of its fields.
    """
    metadata = message.metadata.to_pybytes()

    def field(table: int, number: int) -> int | None:
        """Return the place of a table that is a field of another, None if it is not set."""
        places = table - struct.unpack_from("<i", metadata, table)[0]
        size, *offsets = struct.unpack_from(f"<{number + 3}H", metadata, places)
        if size < 2 * number + 6 or not offsets[-1]:
            return None
        start = table + int(offsets[-1])
        return start + int(struct.unpack_from("<I", metadata, start)[0])

    if message.type not in ("record batch", "dictionary"):
        return False
    batch = field(struct.unpack_from("<I", metadata)[0], 2)
    if message.type == "dictionary" and batch is not None:
        batch = field(batch, 1)
    return batch is None or field(batch, 3) is not None


def _from_bytes(stream: npt.NDArray[np.uint8]) -> Keys:
    import pandas as pd

    with require_extra("tables", "loading a summary of groups"):
        import pyarrow as pa

    content = stream.tobytes()
    _require(not any(map(_is_compressed, pa.ipc.MessageReader.open_stream(content))))
    with pa.ipc.open_stream(content) as reader:
        # Nested values cannot be keys, and recurse.
        types = [kind.storage_type if isinstance(kind, pa.BaseExtensionType) else kind for kind in reader.schema.types]
        _require(types and not any(map(pa.types.is_nested, types)))
        table = reader.read_all()
    table.validate(full=True)
    frame = table.to_pandas()
    return Keys([Column(pd.Index(frame[name]), str(name)) for name in frame.columns])
