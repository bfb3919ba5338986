"""Amazon-OQ-BK as published: RoBERTa vectors of book reviews with their samples, converted from text once."""

import hashlib
import itertools
import logging
import re
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path, PurePosixPath
from typing import IO, Any

import numpy as np
import numpy.typing as npt

from ordinalq._utils.validation import Floats
from ordinalq.datasets.amazon import STARS, read_shares, sampling
from ordinalq.datasets.archives import complete_folder, members
from ordinalq.datasets.dataset import Dataset
from ordinalq.datasets.download import ARCHIVES, cached_copy, find_local, zenodo_archive
from ordinalq.datasets.split import Items
from ordinalq.samples.samples import Samples

logger = logging.getLogger("ordinalq")

# Under our name, or as the record names its only archive.
VECTOR_FILES = (
    *(f"{name}{ending}" for name in ("amazon-oq-bk", "*v0.2.1") for ending in ARCHIVES),
    *("roberta.zip", "roberta", "*/roberta"),
)
RECORD = 8405476  # on Zenodo
N_FEATURES = 768
MAX_VECTOR_LINE = 2**16  # bytes of a line: a label and 768 numbers have some 8000
MAX_PREVALENCES = 2**22  # bytes of a table of prevalences, which has some 5000 short lines
MERGE_ROWS = 2**18  # newest rows that are kept in a dictionary, see _DistinctRows
PROTOCOLS = {"app": "APP", "app-oq": "APP-OQ", "real": "real"}
POOLS = {"dev": "validation", "test": "test"}
MEMBER = re.compile(
    r"(?:^|/)roberta/(?:(training_data\.txt)|(app|app-oq|real)/(dev|test)_(?:samples/(\d+)\.txt|(prevalences)\.txt))$"
)


def load_vectors(data: str | Path | None, settings: str, random_state: int) -> Dataset:
    """Return the published RoBERTa vectors with their published samples; they are converted on the first call."""
    advice = (
        f"put the archive of https://zenodo.org/records/{RECORD} as amazon-oq-bk.zip into the folder named by "
        "ORDINALQ_DATA, or name it with data=PATH"
    )
    own = data is not None and (Path(data) / "training_data.txt").is_file()  # the folder of the vectors itself
    path = Path(str(data)) if own else find_local(VECTOR_FILES, data) or zenodo_archive(RECORD, "amazon-oq-bk", advice)
    anchor = path if path.is_file() else path / "training_data.txt"
    if not anchor.exists():
        raise FileNotFoundError(f"{anchor}: no such file; the folder of the vectors must hold it.")
    folder = cached_copy(anchor, "amazon-oq-bk")
    if not folder.is_dir():
        logger.info("%s: converting to distinct items and indices, once", path)
        convert_vectors(path, folder)
    return _read_converted(folder, random_state)


def convert_vectors(source: Path, folder: Path) -> None:
    """Convert the published text files, an archive or the folder ``roberta``: distinct rows once, samples as indices.

    The source is read as a stream, file by file. In memory are one sample, eight bytes and an index for each distinct
    row, and the samples' indices: below 2 GB for the whole of the published data.

    For each part P of train, validation and test the folder gets ``P_X.npy`` (N, 768) float32 and ``P_y.npy`` (N,),
    distinct rows; ``train_index.npy`` (20000,) int32, and for each protocol and pool ``app_validation.npy`` (B, m)
    int32 and so on, which rows there are. It appears when everything is done.
    """
    with complete_folder(folder) as partial:
        _convert(source, partial)


def _convert(source: Path, folder: Path) -> None:
    samples: dict[tuple[str, str], dict[int, npt.NDArray[np.int32]]] = defaultdict(dict)
    prevalences: dict[tuple[str, str], Floats] = {}
    with (
        _DistinctRows(folder, "train") as train,
        _DistinctRows(folder, "validation") as validation,
        _DistinctRows(folder, "test") as test,
    ):
        pools = {"dev": validation, "test": test}
        for name, stream in members(source) if source.is_file() else _folder_members(source):
            match = MEMBER.search(str(name))
            if not match:
                continue
            training, protocol, pool, number, _ = match.groups()
            where = f"{source}: {name}"
            if training:
                np.save(folder / "train_index.npy", train.add(stream, where))
            elif number is not None:
                samples[protocol, pool][int(number)] = pools[pool].add(stream, where)
            else:
                prevalences[protocol, pool] = _read_prevalences(stream, where)
        if train.n_rows == 0:
            raise ValueError(f"{source}: expected roberta/training_data.txt with vectors, but there is none.")
        for protocol, pool in itertools.product(PROTOCOLS, POOLS):
            if not samples[protocol, pool]:
                raise ValueError(
                    f"{source}: incomplete archive, roberta/{protocol}/{pool}_samples is missing; fetch it again."
                )
        parts = itertools.combinations((train.keys(), validation.keys(), test.keys()), 2)
        overlap = sum(len(np.intersect1d(a, b)) for a, b in parts)
    if overlap:
        logger.warning("%s: %d rows occur in two of training, validation and test, as published", source, overlap)
    for (protocol, pool), rows in samples.items():
        where = f"roberta/{protocol}/{pool}"
        index = _index_matrix(rows, f"{source}: {where}_samples")
        np.save(folder / f"{protocol}_{POOLS[pool]}.npy", index)
        # The stated prevalences have three decimals; the labels of the rows are what counts.
        y, stated = np.load(folder / f"{POOLS[pool]}_y.npy"), prevalences.get((protocol, pool))
        realized = np.stack([(y[index] == i).mean(axis=1) for i in range(len(STARS))], axis=1)
        if stated is not None and (stated.shape != realized.shape or np.abs(stated - realized).max() > 1e-3):
            text = "%s: %s_prevalences.txt does not agree with the labels in the samples, which are used"
            logger.warning(text, source, where)


class _DistinctRows:
    """Rows ``label v_1 .. v_768`` of a part, written to files as they come, each distinct one once."""

    def __init__(self, folder: Path, part: str) -> None:
        self.n_rows = 0
        self._path_y = folder / f"{part}_y.npy"
        self._file = (folder / f"{part}_X.npy").open("wb+")
        self._labels: list[int] = []
        # Where the row with a key is: a sorted table, and a dictionary of the newest, merged when it gets large. A
        # dictionary of all ten million rows would alone take 2 GB.
        self._sorted = np.empty(0, dtype=np.uint64)
        self._places = np.empty(0, dtype=np.int32)
        self._newest: dict[int, int] = {}
        self._write_header()

    def __enter__(self) -> "_DistinctRows":
        return self

    def __exit__(self, *_: Any) -> None:
        self._file.seek(0)
        self._write_header()
        self._file.close()
        np.save(self._path_y, np.array(self._labels, dtype=np.int8))

    def _write_header(self) -> None:
        # numpy leaves room in the header for the first axis to grow: it is written again at the end.
        header = {"descr": "<f4", "fortran_order": False, "shape": (self.n_rows, N_FEATURES)}
        np.lib.format.write_array_header_1_0(self._file, header)

    def keys(self) -> npt.NDArray[np.uint64]:
        """Return a key for each distinct row."""
        self._merge()
        return self._sorted

    def add(self, stream: IO[bytes], where: str) -> npt.NDArray[np.int32]:
        """Store the rows of a file that are new; return the place of each row, (m,)."""
        places = []
        for number, line in enumerate(iter(lambda: stream.readline(MAX_VECTOR_LINE), b""), start=1):
            line = line.strip()
            key = int.from_bytes(hashlib.blake2b(line, digest_size=8).digest(), "little")
            place = self._newest.get(key, self._old(key))
            if place is None:
                label, vector = _parse(line, f"{where}, line {number}")
                self._file.write(vector.tobytes())
                self._labels.append(label)
                place = self._newest[key] = self.n_rows
                self.n_rows += 1
            places.append(place)
        if len(self._newest) >= MERGE_ROWS:
            self._merge()
        return np.array(places, dtype=np.int32)

    def _old(self, key: int) -> int | None:
        """Return the place of a row that is in the sorted table."""
        at = int(np.searchsorted(self._sorted, np.uint64(key)))
        return int(self._places[at]) if at < len(self._sorted) and self._sorted[at] == key else None

    def _merge(self) -> None:
        keys = np.concatenate([self._sorted, np.fromiter(self._newest, np.uint64, len(self._newest))])
        places = np.concatenate([self._places, np.fromiter(self._newest.values(), np.int32, len(self._newest))])
        order = np.argsort(keys)
        self._sorted, self._places, self._newest = keys[order], places[order], {}


def _parse(line: bytes, where: str) -> tuple[int, npt.NDArray[np.float32]]:
    """Read ``label v_1 .. v_768``."""
    words = line.split(maxsplit=N_FEATURES + 1)
    if len(words) != N_FEATURES + 1:
        got = f"{len(words)} columns" if len(words) <= N_FEATURES else "more columns"
        raise ValueError(f"{where}: expected a label and {N_FEATURES} numbers, got {got}.")
    if words[0] not in (b"0", b"1", b"2", b"3", b"4"):
        raise ValueError(f"{where}: expected a label 0..4, got {words[0].decode(errors='replace')!r}.")
    try:
        vector = np.array(words[1:]).astype("<f4")
    except ValueError as error:
        raise ValueError(f"{where}: expected numbers, but {error}.") from error
    if not np.isfinite(vector).all():
        raise ValueError(f"{where}: expected finite numbers, got {vector[~np.isfinite(vector)][0]}.")
    return int(words[0]), vector


def _folder_members(folder: Path) -> Iterator[tuple[PurePosixPath, IO[bytes]]]:
    for path in sorted(folder.rglob("*.txt")):
        with path.open("rb") as stream:
            yield PurePosixPath("roberta", *path.relative_to(folder).parts), stream


def _read_prevalences(stream: IO[bytes], where: str) -> Floats:
    """Read the table of prevalences: header ``id,0,1,2,3,4``, one row per sample."""
    content = stream.read(MAX_PREVALENCES + 1)
    if len(content) > MAX_PREVALENCES:
        raise ValueError(f"{where}: refused, because it has more than {MAX_PREVALENCES:,} bytes.")
    lines = content.decode("utf-8", errors="replace").splitlines()
    if not lines or lines[0].replace(" ", "") != "id,0,1,2,3,4":
        raise ValueError(f"{where}, line 1: expected the header id,0,1,2,3,4, got {lines[0] if lines else ''!r}.")
    return read_shares(lines[1:], where, first_line=2, n_before=1)


def _index_matrix(rows: dict[int, npt.NDArray[np.int32]], where: str) -> npt.NDArray[np.int32]:
    if sorted(rows) != list(range(len(rows))):
        absent = min(set(range(max(rows) + 1)) - set(rows))
        raise ValueError(f"{where}: expected the files 0.txt to {max(rows)}.txt, but {absent}.txt is missing.")
    sizes = {len(row) for row in rows.values()}
    if len(sizes) > 1 or 0 in sizes:
        odd = next(i for i in range(len(rows)) if len(rows[i]) != len(rows[0]) or len(rows[i]) == 0)
        raise ValueError(f"{where}/{odd}.txt: expected {len(rows[0])} lines as in 0.txt, got {len(rows[odd])}.")
    return np.stack([rows[i] for i in range(len(rows))])


def _read_converted(folder: Path, random_state: int) -> Dataset:
    parts: dict[str, Any] = {}
    for part in ("train", "validation", "test"):
        # Mapped, not read: the pools are larger than the memory of a small machine.
        X = np.load(folder / f"{part}_X.npy", mmap_mode="r")
        parts[part] = Items(X, np.load(folder / f"{part}_y.npy").astype(np.intp))
    # A review that was published twice for training is two training items.
    rows = np.load(folder / "train_index.npy")
    parts["train"] = Items(parts["train"].X[rows], parts["train"].y[rows])
    given = {
        (PROTOCOLS[protocol], pool): Samples.from_index(
            np.load(path), len(parts[pool].y), parts[pool].y, classes=np.arange(len(STARS))
        )
        for protocol in PROTOCOLS
        for pool in POOLS.values()
        if (path := folder / f"{protocol}_{pool}.npy").exists()
    }
    return Dataset(
        name="amazon-oq-bk",
        **parts,
        classes=STARS,
        feature_names=tuple(f"roberta_{j}" for j in range(N_FEATURES)),
        source=f"Amazon-OQ-BK, Zenodo record {RECORD}: book reviews (McAuley et al.) as RoBERTa vectors; research use",
        split="as published: 20,000 training items, pools of the items that occur in samples",
        sampling=sampling(None),
        random_state=random_state,
        given=given,
    )
