"""LeQua 2024, task T3: stars of product reviews as vectors.

The items of the samples have no labels. The published text files are converted to arrays once.

A. Esuli, A. Moreo, F. Sebastiani, G. Sperduti: "An overview of LeQua 2024, the 2nd international data challenge on
learning to quantify".
"""

import io
import json
import logging
import re
from collections.abc import Iterator
from pathlib import Path, PurePosixPath
from typing import IO, Any

import numpy as np
import pandas as pd

from ordinalq._utils.validation import Floats, Index, check_distributions
from ordinalq.datasets.dataset import POOLS, Dataset, Items, Sampling
from ordinalq.datasets.download import cached_copy, complete_folder, find_local, first_match, members, zenodo_files
from ordinalq.datasets.files import read_numbers
from ordinalq.io.writing import write_bytes
from ordinalq.metrics import nmd
from ordinalq.samples.samples import Samples

logger = logging.getLogger("ordinalq")

RECORD = 10654475  # on Zenodo
ARCHIVES = ("T3.train_dev.zip", "T3.test.zip", "T3.test_prevalences.zip")
FOLDERS = ("", "T3/public/", "public/", "*/T3/public/", "lequa2024*/")
TRAINING, SAMPLES, TRUTH = "training_data.txt", "test_samples", "test_prevalences.txt"
FILES = tuple(f"{folder}{name}" for name in (ARCHIVES[0], TRAINING) for folder in FOLDERS)
MAX_BYTES = 2**30  # of one text file; the training data have about 100 million
SUM_TOLERANCE = 1e-3  # of published prevalences
PROTOCOL = "LeQua"
PREFIX = {"dev": "validation", "test": "test"}
MEMBER = re.compile(r"(?:^|/)(?:(training_data)|(label_map)|(dev|test)_prevalences|(dev|test)_samples/(\d{1,9}))\.txt$")


def load_lequa(data: str | Path | None = None, settings: str = "reference", random_state: int = 876) -> Dataset:
    """Load the task T3 of LeQua 2024; the text files are converted on the first call.

    Parameters
    ----------
    data : path, default=None
        Folder that has ``T3.train_dev.zip``, ``T3.test.zip`` and ``T3.test_prevalences.zip``, or their unpacked files
        (``T3/public``); or the first of the archives. None looks into the folder named by ORDINALQ_DATA and into the
        cache, and then fetches the archives from Zenodo.
    settings : str, default="reference"
        Has no effect: the samples are published.
    random_state : int, default=876
        Stored in the data set. It has no effect on the samples.

    Returns
    -------
    dataset : Dataset
        The development samples are in the pool "validation", the test samples in the pool "test", both under the
        protocol "LeQua". Their items have no labels. The test samples have prevalences only if the file is present.
    """
    anchor = find_local(FILES, data)
    if anchor is None:
        advice = (
            f"put {', '.join(ARCHIVES)} of https://zenodo.org/records/{RECORD} into the folder named by ORDINALQ_DATA, "
            "or name their folder with data=PATH"
        )
        anchor = zenodo_files(RECORD, ARCHIVES, advice)[0]
    sources = _sources(anchor, None if data is None or Path(data).is_file() else Path(data))
    folder = cached_copy("lequa2024-t3", *(path for source in sources for path in _dated(source)))
    if not folder.is_dir():
        logger.info("%s: converting text to arrays, once", anchor.parent)
        with complete_folder(folder) as partial:
            _convert(sources, partial)
    return _read_converted(folder, random_state)


def _sources(anchor: Path, folder: Path | None) -> list[Path]:
    """Return the archives and folders that contain the published data.

    These are the training data, the test samples and the test prevalences.
    """
    found = {anchor if anchor.suffix == ".zip" else anchor.parent: None}
    for archive, name in zip(ARCHIVES[1:], (SAMPLES, TRUTH), strict=True):
        patterns = [f"{place}{file}" for place in FOLDERS for file in (archive, name)]
        places = [anchor.parent] if folder is None else [anchor.parent, folder]
        path = next((path for place in places if (path := first_match(place, patterns))), None)
        if path is not None:
            found[path if path.suffix == ".zip" else path.parent] = None
        elif name == SAMPLES:
            raise FileNotFoundError(f"{anchor.parent} must have {archive} or the folder {name}, but has neither.")
    return list(found)


def _dated(source: Path) -> list[Path]:
    """Return the files and folders whose sizes and dates change if the data change."""
    if source.is_file():
        return [source]
    names = (TRAINING, "label_map.txt", "dev_samples", "dev_prevalences.txt", SAMPLES, TRUTH)
    return [path for name in names if (path := source / name).exists()]


def _files(source: Path) -> Iterator[tuple[PurePosixPath, IO[bytes]]]:
    """Yield name and content of each file of an archive or of a folder."""
    if source.is_file():
        yield from members(source)
        return
    for pattern in ("*.txt", "*_samples/*.txt"):
        for path in sorted(source.glob(pattern)):
            with path.open("rb") as stream:
                yield PurePosixPath(path.relative_to(source)), stream


def _convert(sources: list[Path], folder: Path) -> None:
    """Write the vectors of each part in single precision, and all other data.

    The files are written one after the other.
    """
    places: dict[str, dict[int, tuple[int, int]]] = {pool: {} for pool in POOLS}  # first row and number of rows
    truth: dict[str, Floats] = {}
    classes: tuple[str, ...] = ()
    y: Any = None
    n_features: int | None = None
    n_rows = dict.fromkeys(POOLS, 0)
    with (folder / "validation.f4").open("wb") as validation, (folder / "test.f4").open("wb") as test:
        outputs = {"validation": validation, "test": test}
        for source in sources:
            for name, stream in _files(source):
                if not (match := MEMBER.search(str(name))):
                    continue
                training, label_map, of_truth, of_sample, number = match.groups()
                where = f"{source}: {name}"
                if label_map:
                    classes = _read_classes(_content(stream, where), where)
                    continue
                table = _read_table(stream, where, "label" if training else "id" if of_truth else "")
                if of_truth:
                    truth[PREFIX[of_truth]] = table
                    continue
                X = table[:, 1:] if training else table
                if n_features not in (None, X.shape[1]):
                    raise ValueError(f"{where}: expected {n_features} features as in other files, got {X.shape[1]}.")
                n_features = X.shape[1]
                if training:
                    y = table[:, 0]
                    X.astype("<f4").tofile(folder / "train.f4")
                else:
                    pool = PREFIX[of_sample]
                    if int(number) in places[pool]:
                        raise ValueError(f"{where}: there is another file of sample {int(number)}.")
                    places[pool][int(number)] = (n_rows[pool], len(X))
                    n_rows[pool] += len(X)
                    outputs[pool].write(X.astype("<f4").tobytes())
    for missing, what in ((y is None, TRAINING), (not classes, "label_map.txt"), ("validation" not in truth,
                          "dev_prevalences.txt"), (not places["validation"], "dev_samples"),
                          (not places["test"], SAMPLES)):  # fmt: skip
        if missing:
            raise ValueError(f"{sources[0]}: {what} is missing; fetch the archives again.")
    if not np.array_equal(np.unique(y), np.arange(len(classes))):
        raise ValueError(f"{sources[0]}: {TRAINING} must have the labels 0..{len(classes) - 1}, got {np.unique(y)!r}.")
    np.save(folder / "train_y.npy", y.astype(np.int8))
    for pool in POOLS:
        ids = sorted(places[pool])
        if ids != list(range(len(ids))):
            absent = min(set(range(len(ids))) - set(ids))
            raise ValueError(
                f"{sources[0]}: the {pool} samples must be 0.txt to {ids[-1]}.txt, {absent}.txt is missing."
            )
        np.save(folder / f"{pool}_places.npy", np.array([places[pool][id_] for id_ in ids]))
        if pool in truth:
            np.save(folder / f"{pool}_P.npy", _prevalences(truth[pool], len(ids), len(classes), pool))
    (folder / "about.json").write_text(json.dumps({"classes": classes, "n_features": n_features}), encoding="utf-8")


def _content(stream: IO[bytes], where: str) -> bytes:
    content = stream.read(MAX_BYTES + 1)
    if len(content) > MAX_BYTES:
        raise ValueError(f"{where}: the file must have at most {MAX_BYTES:,} bytes.")
    return content


def _read_classes(content: bytes, where: str) -> tuple[str, ...]:
    """Read lines of a name and its id; return the names in the order of the ids."""
    names: dict[int, str] = {}
    for number, line in enumerate(content.decode("utf-8", errors="replace").splitlines(), start=1):
        if line.strip():
            name, _, code = line.strip().replace(",", " ").rpartition(" ")
            if not name.strip() or not code.isdecimal() or int(code) in names:
                raise ValueError(f"{where}, line {number}: expected a name and a new id, got {line[:80]!r}.")
            names[int(code)] = name.strip()
    if len(names) < 2 or set(names) != set(range(len(names))):
        raise ValueError(f"{where}: expected the ids 0..n-1 of at least two classes, got {sorted(names)}.")
    return tuple(names[code] for code in range(len(names)))


def _read_table(stream: IO[bytes], where: str, first: str) -> Floats:
    """Read numbers below the header ``first,0,1,...``.

    If `first` is empty, the header does not have that column.
    """
    content = _content(stream, where)
    header = content.partition(b"\n")[0]
    names = header.decode("utf-8", errors="replace").strip().split(",")
    expected = [*([first] if first else []), *map(str, range(len(names) - bool(first)))]
    if names != expected:
        begin = f"{first},0,1" if first else "0,1,2"
        raise ValueError(f"{where}, line 1: expected the header {begin},..., got {','.join(names)[:80]!r}.")
    rows = io.BytesIO(content)
    rows.seek(len(header) + 1)
    return read_numbers(rows, where, len(names), 2)


def _prevalences(table: Floats, n_samples: int, n_classes: int, pool: str) -> Floats:
    """Return prevalences (B, n) in the order of the samples.

    Each row of the table is an identifier followed by n prevalences.
    """
    P = table[np.argsort(table[:, 0], kind="stable"), 1:]
    if P.shape != (n_samples, n_classes) or not np.array_equal(np.sort(table[:, 0]), np.arange(n_samples)):
        raise ValueError(
            f"prevalences of the {pool} samples must have the ids 0..{n_samples - 1} and {n_classes} classes, got "
            f"{len(P)} rows and {P.shape[1]} classes."
        )
    total = P.sum(axis=1, keepdims=True)
    if P.min() < 0 or np.abs(total - 1).max() > SUM_TOLERANCE:
        worst = int(np.argmax(np.maximum(np.abs(total[:, 0] - 1), -P.min(axis=1))))
        raise ValueError(
            f"prevalences of the {pool} samples must sum to 1, got {P[worst].tolist()} for sample {worst}."
        )
    return np.asarray(P / total)


def _read_converted(folder: Path, random_state: int) -> Dataset:
    about = json.loads((folder / "about.json").read_text(encoding="utf-8"))
    d, classes = about["n_features"], tuple(about["classes"])
    parts: dict[str, Any]
    parts, given = (
        {"train": Items(_mapped(folder / "train.f4", d), np.load(folder / "train_y.npy").astype(np.intp))},
        {},
    )
    for pool in POOLS:
        X = _mapped(folder / f"{pool}.f4", d)
        parts[pool] = Items(X, np.full(len(X), -1))
        index: list[Index] = [np.arange(start, start + size) for start, size in np.load(folder / f"{pool}_places.npy")]
        path = folder / f"{pool}_P.npy"
        P, known = (np.load(path), np.arange(len(classes))) if path.exists() else (None, None)
        given[PROTOCOL, pool] = Samples.from_index(index, len(X), classes=known, prevalences=P)
    notes = () if P is not None else ("the prevalences of the test samples are not known",)
    return Dataset(
        name="lequa2024-t3",
        **parts,
        classes=classes,
        feature_names=tuple(map(str, range(d))),
        source=f"LeQua 2024, task T3, Zenodo record {RECORD}",
        split="as published: training items, development samples and test samples",
        sampling=Sampling(n_validation=1000, n_test=5000, sample_size=200),
        random_state=random_state,
        notes=notes,
        given=given,
    )


def _mapped(path: Path, n_features: int) -> Any:
    """Return the rows of a converted file, mapped and not read: processes share them."""
    return np.memmap(path, dtype="<f4", mode="r").reshape(-1, n_features)


def macro_nmd(p: Any, p_hat: Any) -> Floats:
    """Return weighted NMDs whose mean is the macro-NMD of LeQua 2024.

    Samples are divided by their true mean number of stars, in [1, 2), [2, 3), ..., [n - 1, n]. Macro-NMD is the mean
    over these intervals of the mean NMD within each. Intervals without a sample are left out. A sample that is one of
    B_k in its interval, of B in K intervals, has the weight B / (K B_k).

    Parameters
    ----------
    p, p_hat : array-like (B, n)
        True and estimated distributions of all samples.

    Returns
    -------
    ndarray (B,)
        Weighted errors. Only their mean has a meaning.

    Examples
    --------
    Two samples between one and two stars, with errors 0.5 and 0, and one between two and three with 0.25.

    >>> macro_nmd([[1, 0, 0], [1, 0, 0], [0, 1, 0]], [[0, 1, 0], [1, 0, 0], [0.25, 0.5, 0.25]]).mean().item()
    0.25
    """
    P = np.atleast_2d(check_distributions("p", p))
    n = P.shape[1]
    # The largest mean, that of the last class alone, belongs to the last interval.
    interval = np.minimum(np.floor(np.round(P @ np.arange(n), 12)), n - 2).astype(np.intp)
    count = np.bincount(interval, minlength=n - 1)
    return np.asarray(nmd(P, p_hat) * len(P) / ((count > 0).sum() * count[interval]))


def write_submission(path: str | Path, P: Any) -> None:
    """Write estimates in the format of submissions.

    The result is a CSV file with ``id`` and one column per class.

    Parameters
    ----------
    path : path
        File to write.
    P : array-like (B, n)
        Estimated distributions in the order of the samples.
    """
    P = np.atleast_2d(check_distributions("P", P))
    table = pd.DataFrame(P).rename_axis("id").to_csv(lineterminator="\n")
    write_bytes(Path(path), table.encode())
