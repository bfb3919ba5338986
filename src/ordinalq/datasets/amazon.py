"""Amazon-OQ-BK: stars of book reviews.

Either from the raw reviews, which are filtered, split and encoded here, or as the published RoBERTa vectors with their
samples, which are converted from text once.
"""

import gzip
import hashlib
import itertools
import json
import logging
import re
import zlib
from collections import defaultdict
from collections.abc import Iterator, Sequence
from pathlib import Path, PurePosixPath
from typing import IO, Any, NamedTuple

import numpy as np
import numpy.typing as npt

from ordinalq._utils.validation import Array, Floats, Index, check_distributions
from ordinalq.datasets import published
from ordinalq.datasets.dataset import Dataset, Items, Sampling, check_settings, derived_seed, split_dataset
from ordinalq.datasets.download import (
    ARCHIVES,
    FREE_BYTES,
    MAX_RATIO,
    cached_copy,
    complete_folder,
    fetch,
    find_local,
    first_match,
    members,
    too_large,
    zenodo_archive,
)
from ordinalq.datasets.files import read_table
from ordinalq.io.columns import require_columns
from ordinalq.io.files import open_binary
from ordinalq.samples.samples import Samples

logger = logging.getLogger("ordinalq")

# Raw reviews

STARS = ("1 star", "2 stars", "3 stars", "4 stars", "5 stars")
REVIEW_FILES = ("Books.json.gz", "Books.json", "reviews_Books.json.gz", "Books_5.json.gz", "reviews_Books_5.json.gz")
REVIEW_URL = "https://jmcauley.ucsd.edu/data/amazon_v2/categoryFiles/Books.json.gz"
MIN_LENGTH = 200  # characters
MAX_REVIEWS = 300_000  # kept in memory; of more, a random subset
MAX_LINE = 2**22  # bytes of a review; the longest of the published ones have some 30,000
GIVE_UP = 100_000  # reviews none of which is suitable; of books every fifth is

PREVALENCE_FILES = ("amazon_books_prevalences.tsv", "prevalence_votes1_reviews100.csv")
PREVALENCE_URL = "https://raw.githubusercontent.com/mirkobunse/regularized-oq/main/jl/data/" + PREVALENCE_FILES[1]
PREVALENCE_SHA256 = "sha256:1d69d366a200934e7e5278e02550250d48652c8c74382f183f7d5982b25a8bd4"


def load_tfidf(data: str | Path | None, settings: str, random_state: int) -> Dataset:
    """Return reviews as sparse TF-IDF vectors."""
    from ordinalq.datasets.text import tfidf

    return from_reviews(data, tfidf(), name="amazon-oq-bk-tfidf", settings=settings, random_state=random_state)


def load_roberta(data: str | Path | None, settings: str, random_state: int) -> Dataset:
    """Return reviews as vectors of a fine-tuned RoBERTa model.

    The model is fine-tuned on the training reviews.
    """
    from ordinalq.datasets.text import RobertaVectors

    name = "amazon-oq-bk-roberta"
    return from_reviews(data, RobertaVectors(), name=name, settings=settings, random_state=random_state)


def from_reviews(
    data: str | Path | None,
    encoder: Any,
    *,
    name: str = "amazon-reviews",
    settings: str = "reference",
    random_state: int = 876,
    real: Any = None,
) -> Dataset:
    """Extract a data set from raw reviews: filter, split, encode and sample.

    Parameters
    ----------
    data : path or None
        File (JSON lines, also ``.gz``, CSV or Parquet) or its folder. None looks for a local copy and then downloads
        the category Books. If more than `MAX_REVIEWS` pass the filter, a random subset of this size is kept.
    encoder : transformer
        Unfitted encoder of text; it is fitted on the training items.
    name : str, default="amazon-reviews"
        Name of the data set.
    settings : {"reference", "paper"}, default="reference"
        See :func:`ordinalq.datasets.load_dataset`.
    random_state : int, default=876
        Determines the subset, the split and all samples.
    real : array-like (k, 5), default=None
        Star distributions of the protocol "real"; None reads the published 8873 distributions of books.

    Returns
    -------
    Dataset
    """
    check_settings(settings, random_state)
    path = find_local(REVIEW_FILES, data) or fetch(REVIEW_URL, REVIEW_FILES[0])
    reviews = read_reviews(path, MAX_REVIEWS, derived_seed(random_state, "reviews"))
    if real is None:
        real = book_prevalences(path.parent if data is not None else None)
    for note in reviews.notes:
        logger.info("%s: %s", path, note)
    return split_dataset(
        reviews.texts,
        reviews.y,
        STARS,
        random_state,
        name=name,
        encoder=encoder,
        source=f"Amazon reviews (McAuley et al.), {path.name}; research use",
        sampling=sampling(check_distributions("real", real), settings),
        notes=reviews.notes,
    )


def sampling(real: Floats | None, settings: str = "reference") -> Sampling:
    """Return the sampling scheme of the Amazon protocols.

    `real` are star distributions (k, 5) for the protocol "real", or None. "reference" rounds counts down, gives the
    rest to five stars, and draws from small classes with replacement. "paper" rounds to the drawn prevalences and
    repeats an item only if a class has too few.
    """
    printed = settings == "paper"
    return Sampling(
        n_validation=1000,
        n_test=5000,
        app_oq=published.app_oq_percent("Amazon-OQ-BK") / 100,
        real=real,
        rounding="balanced" if printed else "truncate",
        min_per_class=0,
        small_pool="repeat" if printed else "replace",
    )


def book_prevalences(data: str | Path | None = None) -> Floats:
    """Return the star distributions of 8873 books, shape (8873, 5).

    Each book has at least 100 useful reviews.
    """
    local = None if data is None else first_match(Path(data), PREVALENCE_FILES)
    advice = f"put it as {PREVALENCE_FILES[1]} next to the reviews or into the folder named by ORDINALQ_DATA"
    path = local or find_local(PREVALENCE_FILES)
    path = path or fetch(PREVALENCE_URL, PREVALENCE_FILES[1], PREVALENCE_SHA256, advice=advice)
    P = read_shares(path.read_text(encoding="utf-8").splitlines(), str(path))
    if len(P) == 0 or np.abs(P.sum(axis=1) - 1).max() > 1e-3:
        raise ValueError(f"{path}: expected star fractions that sum to one in each line.")
    return np.asarray(P / P.sum(axis=1, keepdims=True))  # the five decimals leave 2e-5


def read_shares(lines: Sequence[str], where: str, first_line: int = 1, n_before: int = 0) -> Floats:
    """Read lines of five numbers, shape (B, 5).

    Numbers are separated by commas or tabs. `n_before` columns precede them.
    """
    P = np.empty((len(lines), len(STARS)))
    for row, line in enumerate(lines):
        words, place = re.split("[,\t]", line), f"{where}, line {first_line + row}"
        if len(words) != n_before + len(STARS):
            raise ValueError(f"{place}: expected {n_before + len(STARS)} columns, got {len(words)}.")
        try:
            P[row] = [float(word) for word in words[n_before:]]
        except ValueError as error:
            raise ValueError(f"{place}: expected numbers, but {error}.") from error
    return P


class Reviews(NamedTuple):
    """Texts (N,), classes y (N,) in 0..4, and what was left out."""

    texts: Array
    y: Index
    notes: tuple[str, ...]


def read_reviews(path: Path, max_reviews: int, seed: int) -> Reviews:
    """Read the reviews with at least 200 characters and a useful vote.

    If there are more than `max_reviews`, a random subset is returned.
    """
    rng = np.random.default_rng(seed)
    texts: list[str] = []
    stars: list[int] = []
    counts: dict[str, int] = defaultdict(int)
    for number, review in _raw_reviews(path):
        if counts["read"] == GIVE_UP and not texts:
            break  # no file of reviews
        counts["read"] += 1
        text, votes = review.get("reviewText"), _useful_votes(review)
        if not isinstance(text, str) or len(text) < MIN_LENGTH:
            counts["short"] += 1
            continue
        if votes is None or votes < 1:
            counts["unreadable" if votes is None else "unvoted"] += 1
            continue
        star = review.get("overall")
        if star not in (1, 2, 3, 4, 5):
            raise ValueError(f"{path}, {number}: expected 'overall' to be 1..5, got {star!r}.")
        counts["kept"] += 1
        if len(texts) < max_reviews:
            texts.append(text)
            stars.append(int(star))
        elif (slot := int(rng.integers(counts["kept"]))) < max_reviews:  # each review stays with equal chance
            texts[slot], stars[slot] = text, int(star)
    if not texts:
        raise ValueError(f"{path}: none of {counts['read']} reviews has {MIN_LENGTH} characters and a useful vote.")
    left_out = (
        f"of {counts['read']:,} reviews, {counts['short']:,} with fewer than {MIN_LENGTH} characters and "
        f"{counts['unvoted']:,} others without a useful vote were left out"
    )
    notes = [left_out]
    if counts["unreadable"]:
        notes.append(f"reviews left out because their votes are unreadable: {counts['unreadable']:,}")
    if counts["kept"] > len(texts):
        notes.append(f"a random {len(texts):,} of {counts['kept']:,} suitable reviews were kept")
    return Reviews(np.array(texts, dtype=object), np.array(stars, dtype=np.intp) - 1, tuple(notes))


def _raw_reviews(path: Path) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield place and content of each review."""
    if path.name.endswith((".parquet", ".csv", ".csv.gz")):
        frame = read_table(path, nested=True)
        require_columns(frame.columns, ["reviewText", "overall"], str(path))
        if not {"helpful", "vote"} & set(frame.columns):
            require_columns(frame.columns, ["helpful"], str(path))
        columns = [name for name in ("reviewText", "overall", "helpful", "vote") if name in frame]
        for row, values in enumerate(frame[columns].itertuples(index=False, name=None)):
            yield f"row {row}", dict(zip(columns, values, strict=True))
        return
    number = n_bytes = 0
    most = FREE_BYTES + MAX_RATIO * path.stat().st_size
    with open_binary(path) as stream:
        try:
            for number, line in enumerate(iter(lambda: stream.readline(MAX_LINE), b""), start=1):
                n_bytes += len(line)
                if n_bytes > most:
                    raise too_large(path, most)
                yield f"line {number}", _review(line, path, number)
        except (EOFError, zlib.error, gzip.BadGzipFile) as error:
            raise ValueError(f"{path}, after line {number}: the file is incomplete; fetch it again.") from error


def _review(line: bytes, path: Path, number: int) -> dict[str, Any]:
    try:
        review = json.loads(line)
    except (ValueError, RecursionError) as error:
        raise ValueError(f"{path}, line {number}: expected a review in JSON, but {error}.") from error
    if not isinstance(review, dict):
        raise ValueError(f"{path}, line {number}: expected a review as a JSON object, got {line[:40]!r}.")
    return review


def _useful_votes(review: dict[str, Any]) -> int | None:
    """Return the number of useful votes, or None if it is unreadable.

    The forms are ``helpful: [up, total]`` and ``vote: "1,234"``.
    """
    try:
        if "helpful" in review:
            helpful = review["helpful"]
            return int((json.loads(helpful) if isinstance(helpful, str) else helpful)[0])
        vote = review.get("vote")
        if vote is None or vote != vote:  # the later release leaves out what is zero
            return 0
        return int(str(vote).replace(",", "").removesuffix(".0"))
    except (TypeError, ValueError, LookupError, OverflowError, RecursionError):
        return None


# Published RoBERTa vectors and samples

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
    """Return the published RoBERTa vectors with their published samples.

    The files are converted on the first call.
    """
    advice = (
        f"put the archive of https://zenodo.org/records/{RECORD} as amazon-oq-bk.zip into the folder named by "
        "ORDINALQ_DATA, or name it with data=PATH"
    )
    own = data is not None and (Path(data) / "training_data.txt").is_file()  # the folder of the vectors itself
    path = Path(str(data)) if own else find_local(VECTOR_FILES, data) or zenodo_archive(RECORD, "amazon-oq-bk", advice)
    anchor = path if path.is_file() else path / "training_data.txt"
    if not anchor.exists():
        raise FileNotFoundError(f"{anchor}: no such file; the folder of the vectors must hold it.")
    folder = cached_copy("amazon-oq-bk", anchor)
    if not folder.is_dir():
        logger.info("%s: converting to distinct items and indices, once", path)
        convert_vectors(path, folder)
    return _read_converted(folder, random_state)


def convert_vectors(source: Path, folder: Path) -> None:
    """Convert the published text files to arrays.

    The source is an archive or the folder ``roberta``. Distinct rows are stored once, samples as indices. The source is
    read as a stream, file by file. Memory contains one sample, eight bytes and an index for each distinct row, and the
    indices of the samples. This is below 2 GB for all of the published data.

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
    """Distinct rows ``label v_1 .. v_768`` of a part.

    Rows are written to files as they arrive, each distinct row once.
    """

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
