"""Data sets: training items, two pools, and protocols that draw samples.

The training items are labelled. The module also splits items into the three parts, and writes a data set as a folder of
Parquet files.
"""

import json
import shutil
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse
from sklearn.base import clone

from ordinalq._utils.extras import require_extra
from ordinalq._utils.validation import Floats, Index, check_choice, check_distributions, check_integer, check_real
from ordinalq.io.encoder import encoded_names, table_encoder
from ordinalq.protocols import APP, Protocol, RealPrevalences
from ordinalq.samples.samples import Samples

# Split into training, validation and test

N_TRAIN = 20_000
SMALL = 30_000  # below this number of items the split is 1/2, 1/4, 1/4


class Items(NamedTuple):
    """Features X (N, d) and classes y (N,).

    Classes are integers in 0..n-1, or -1 for unlabelled items of a pool.
    """

    X: Any
    y: Index


class Split(NamedTuple):
    """Items of each part, ascending and disjoint, and how they were chosen."""

    train: Index
    validation: Index
    test: Index
    rule: str

    def items(self, X: Any, y: Index) -> dict[str, Any]:
        """Return the items of each part, by the names that a data set gives the parts."""
        return {part: Items(take(X, rows), y[rows]) for part, rows in zip(self._fields, self[:3], strict=False)}


def split_items(y: Index, classes: tuple[str, ...], random_state: int) -> Split:
    """Split items with classes y (N,) in 0..n-1 at random, each class in proportion.

    20,000 items are for training and the rest is halved; below 30,000 items the parts are 1/2, 1/4 and 1/4. Each class
    has at least one item in each part; an error calls it by its name among `classes`.
    """
    available = np.bincount(y, minlength=len(classes))
    if available.min() < 3:
        rare = int(np.argmin(available))
        raise ValueError(
            f"every class must have at least 3 items, one for each of training, validation and test, but class "
            f"{classes[rare]!r} has {available[rare]}; use fewer or wider classes."
        )
    if len(y) < SMALL:
        wanted, rule = len(y) // 2, f"1/2, 1/4, 1/4, stratified (fewer than {SMALL:,} items)"
    else:
        wanted, rule = N_TRAIN, f"{N_TRAIN:,} training items, the rest halved, stratified"
    n_train = _proportional(available, wanted)
    rest = available - n_train
    # Classes with an odd rest give their last item to the two pools in turn.
    odd = rest % 2
    n_validation = rest // 2 + odd * (np.cumsum(odd) % 2)
    rng = np.random.default_rng(derived_seed(random_state, "split"))
    parts: tuple[list[Index], list[Index], list[Index]] = ([], [], [])
    for i in range(len(classes)):
        items = rng.permutation(np.flatnonzero(y == i))
        for part, chosen in zip(parts, np.split(items, [n_train[i], n_train[i] + n_validation[i]]), strict=True):
            part.append(chosen)
    train, validation, test = (np.sort(np.concatenate(part)) for part in parts)
    return Split(train, validation, test, rule)


def _proportional(available: Index, wanted: int) -> Index:
    """Divide `wanted` items among the classes by largest remainders.

    Each class gets at least one item and keeps at least two. The sum is smaller than `wanted` if these limits leave
    fewer items.

    >>> _proportional(np.array([3, 3, 4]), 5)
    array([1, 1, 2])
    """
    exact = available * wanted / available.sum()
    shares = np.clip(np.floor(exact).astype(np.intp), 1, available - 2)
    while rest := wanted - int(shares.sum()):
        step = 1 if rest > 0 else -1
        free = shares < available - 2 if step > 0 else shares > 1
        if not free.any():
            break
        shares[np.argmax(np.where(free, step * (exact - shares), -np.inf))] += step
    return np.asarray(shares)


def derived_seed(random_state: int, *purpose: str) -> int:
    """Return a seed for one purpose, independent of all other draws.

    >>> derived_seed(876, "APP", "test") == derived_seed(876, "APP", "test")
    True
    """
    words = [int.from_bytes(word.encode(), "little") for word in purpose]
    return int(np.random.SeedSequence([random_state, *words]).generate_state(1)[0])


def take(X: Any, index: Index) -> Any:
    """Return rows of an array, a sparse matrix or a data frame."""
    return X.iloc[index] if hasattr(X, "iloc") else X[index]


# A data set as a folder of Parquet files that any program can read

CHUNK_ROWS = 2**14  # rows written to Parquet at once
PARTIAL = ".ordinalq-"  # beginning of the name of the folder in which files are written before they are moved
DESCRIPTION = "dataset.json"
FORMAT = "ordinalq data set 1"


def write_folder(
    folder: Path,
    description: dict[str, Any],
    parts: Mapping[str, Items],
    feature_names: tuple[str, ...],
    samples: Iterator[tuple[str, Samples]],
) -> list[Path]:
    """Write the files of a data set and return their paths.

    Files of an earlier call are removed once all new ones are written. ``dataset.json`` contains the description, the
    names of the files and the name of the class column. Each part is a file ``NAME.parquet``. Each of the named samples
    is a file ``samples_NAME.parquet``, NAME being "PROTOCOL POOL".
    """
    old = check_folder(folder)
    folder.mkdir(parents=True, exist_ok=True)
    label = "class"
    while label in feature_names:
        label += "_"
    files = {part: f"{part}.parquet" for part in parts}
    with tempfile.TemporaryDirectory(prefix=PARTIAL, dir=folder) as temporary:
        new = Path(temporary)
        for part, items in parts.items():
            _write_rows(new / files[part], _item_tables(items, label, feature_names))
        for name, drawn in samples:
            files[name] = f"samples_{name.replace(' ', '_')}.parquet".lower()
            _write_rows(new / files[name], iter([_sample_table(drawn)]))
        whole = description | {"class_column": label, "features": list(feature_names), "files": files}
        (new / DESCRIPTION).write_text(json.dumps(whole, indent=1) + "\n", encoding="utf-8")
        # The description is removed first and written last: if it exists, all its files are complete.
        for path in sorted(old, key=lambda path: path.name != DESCRIPTION):
            shutil.rmtree(path) if path.is_dir() else path.unlink()
        for file in (*files.values(), DESCRIPTION):
            (new / file).rename(folder / file)
    return [folder / DESCRIPTION, *(folder / file for file in files.values())]


def check_folder(folder: Path) -> list[Path]:
    """Return the files that earlier calls of :meth:`Dataset.save` wrote.

    Raise an error if the folder contains anything else.
    """
    if folder.exists() and not folder.is_dir():
        raise NotADirectoryError(f"{folder} must be a folder, but it is a file.")
    present = sorted(folder.iterdir()) if folder.exists() else []
    ours = {path.name for path in present if path.name.startswith(PARTIAL)}
    # A call that was interrupted while it moved its files has left the description in its temporary folder.
    for path in (folder / DESCRIPTION, *folder.glob(f"{PARTIAL}*/{DESCRIPTION}")):
        try:
            description = json.loads(path.read_text(encoding="utf-8"))
            if description["format"].startswith(FORMAT.rstrip("0123456789")):
                ours |= {DESCRIPTION, *description["files"].values()}
        except (OSError, ValueError, KeyError, TypeError, AttributeError):
            continue
    for path in present:
        if path.name not in ours:
            raise FileExistsError(
                f"{folder} must be absent, empty or written by ordinalq, but holds {path.name!r}; name another folder."
            )
    return present


def _sample_table(samples: Samples) -> Any:
    import pyarrow as pa

    items = pa.LargeListArray.from_arrays(samples.offsets, samples.items)
    known = {} if samples.prevalences is None else {"prevalence": list(samples.prevalences)}
    return pa.table({"items": items} | known)


def _item_tables(items: Items, label: str, feature_names: tuple[str, ...]) -> Iterator[Any]:
    """Yield the rows of a part as Arrow tables of one schema."""
    import pyarrow as pa

    if hasattr(items.X, "iloc"):  # at once: the type of a column of objects follows from all of its rows
        yield pa.table(
            {label: items.y.astype(np.int32)} | {name: _arrow_column(items.X[name]) for name in feature_names}
        )
        return
    for start in range(0, len(items.y), CHUNK_ROWS):
        rows = np.arange(start, min(start + CHUNK_ROWS, len(items.y)))
        columns: dict[str, Any] = {label: items.y[rows].astype(np.int32)}
        X = take(items.X, rows)
        if sparse.issparse(X):
            X = sparse.csr_array(X)
            offsets = X.indptr.astype(np.int64)
            columns["feature"] = pa.LargeListArray.from_arrays(offsets, X.indices.astype(np.int32))
            columns["value"] = pa.LargeListArray.from_arrays(offsets, X.data)
        else:
            columns |= {name: np.ascontiguousarray(X[:, j]) for j, name in enumerate(feature_names)}
        yield pa.table(columns)


def _arrow_column(column: Any) -> Any:
    import pyarrow as pa

    try:
        return pa.array(column, from_pandas=True)
    except pa.ArrowException as error:
        raise ValueError(
            f"column {column.name!r} cannot be written to Parquet, because its values are of different types; make "
            f"them all text or all numbers, or leave the column out. ({error})"
        ) from error


def _write_rows(path: Path, tables: Iterator[Any]) -> None:
    with require_extra("tables", "writing a data set"):
        import pyarrow.parquet as pq

    first = next(tables)
    with pq.ParquetWriter(path, first.schema) as writer:
        writer.write_table(first)
        for table in tables:
            writer.write_table(table)


# The data set

POOLS = ("validation", "test")


@dataclass(frozen=True, eq=False, kw_only=True)
class Sampling:
    """Numbers, sizes and protocols of the samples that are drawn from the pools.

    Parameters
    ----------
    n_validation, n_test : int
        Number of samples of each pool and protocol.
    app_oq : float, default=0.2
        Fraction of the APP samples, the smoothest ones, that APP-OQ keeps.
    real : array-like (k, n), default=None
        Distributions seen in nature; None if the protocol "real" does not apply.
    poisson : bool, default=False
        Whether a real sample has Poisson counts, see :class:`ordinalq.protocols.RealPrevalences`.
    sample_size, rounding, min_per_class, small_pool
        See :class:`ordinalq.protocols.APP`.
    """

    n_validation: int
    n_test: int
    app_oq: float = 0.2
    real: Any = None
    poisson: bool = False
    sample_size: int = 1000
    rounding: str = "balanced"
    min_per_class: int = 3
    small_pool: str = "repeat"

    def __post_init__(self) -> None:
        check_integer("n_validation", self.n_validation, minimum=1)
        check_integer("n_test", self.n_test, minimum=1)
        check_real("app_oq", self.app_oq, low=0, high=1, open_low=True)
        self.protocol("APP", self.n_test, 0)  # checks the rest
        if self.real is not None:
            check_distributions("real", self.real)

    def protocol(self, name: str, n_samples: int, seed: int) -> Protocol:
        """Return a protocol with these settings.

        Parameters
        ----------
        name : {"APP", "real"}
            Kind of the protocol.
        n_samples : int
            Number of samples.
        seed : int
            Seed of the samples.

        Returns
        -------
        Protocol
        """
        shared = ("sample_size", "rounding", "min_per_class", "small_pool")
        common: dict[str, Any] = {name: getattr(self, name) for name in shared}
        common |= {"n_samples": n_samples, "random_state": seed}
        if name == "APP":
            return APP(**common)
        return RealPrevalences(self.real, poisson=self.poisson, **common)


@dataclass(frozen=True, eq=False, kw_only=True)
class Dataset:
    """Training items, a validation pool and a test pool over ordered classes.

    All three have the same classes. No item is in two of them.

    Attributes
    ----------
    name : str
    train, validation, test : Items
        Each with features ``X`` (N, d) and classes ``y`` (N,) in 0..n-1; ``quantifier.fit(*dataset.train)`` works.
    classes : tuple of n str
        Names of the classes in ascending order.
    feature_names : tuple of d str
    source : str
        Where the data come from, and their licence.
    split : str
        How the three parts were chosen.
    sampling : Sampling
        Numbers and sizes of samples, fraction of APP-OQ, real prevalence vectors.
    random_state : int
        Determines the split and all samples.
    notes : tuple of str
        What was left out or changed on the way from the source.
    edges : ndarray (n + 1,) or None
        Bin edges, where the classes are bins of a number.
    acceptance : ndarray (n,) or None
        Probability that an event of each class is observed, relative to the largest: for :class:`ordinalq.RUN` and
        :func:`ordinalq.solve` as it is.
    encoder : transformer or None
        Fitted on the training items; turns new rows of the source table into features.
    given : mapping (protocol, pool) -> Samples
        Samples that were published with the data; all others are drawn. Samples of pools with unlabelled items must be
        given, with their prevalences.

    Examples
    --------
    >>> import ordinalq as oq
    >>> dataset = oq.datasets.load_dataset("fried")
    >>> dataset.protocols, len(dataset.classes)
    (('APP', 'APP-OQ'), 10)
    """

    name: str
    train: Items
    validation: Items
    test: Items
    classes: tuple[str, ...]
    feature_names: tuple[str, ...]
    source: str
    split: str
    sampling: Sampling
    random_state: int
    notes: tuple[str, ...] = ()
    edges: Floats | None = None
    acceptance: Floats | None = None
    encoder: Any = None
    given: Mapping[tuple[str, str], Samples] = field(default_factory=dict)

    def __repr__(self) -> str:
        sizes = " + ".join(f"{len(part.y):,}" for part in (self.train, self.validation, self.test))
        return (
            f"Dataset({self.name!r}: {sizes} items, {len(self.classes)} classes, {len(self.feature_names)} features, "
            f"protocols {', '.join(self.protocols)}; split: {self.split})"
        )

    @property
    def protocols(self) -> tuple[str, ...]:
        """Names of the protocols that apply, for :meth:`samples`."""
        known = all(getattr(self, pool).y.min() >= 0 for pool in POOLS)
        drawn = ["APP", "APP-OQ", *(["real"] if self.sampling.real is not None else [])] if known else []
        return tuple(dict.fromkeys([*drawn, *(name for name, _ in self.given)]))

    def samples(self, protocol: str, pool: str) -> Samples:
        """Draw the samples of a protocol from a pool; the same ones on every call.

        Parameters
        ----------
        protocol : {"APP", "APP-OQ", "real"} or the name of given samples
            APP-OQ is the smoothest part of the samples that APP draws.
        pool : {"validation", "test"}

        Returns
        -------
        Samples
            Indices into the pool, with prevalences (B, n).
        """
        check_choice("protocol", protocol, self.protocols)
        check_choice("pool", pool, POOLS)
        if (protocol, pool) in self.given:
            return self.given[protocol, pool]
        if protocol == "APP-OQ":
            return self.samples("APP", pool).smoothest(self.sampling.app_oq)
        y = getattr(self, pool).y
        return self.protocol(protocol, pool).draw(y, classes=np.arange(len(self.classes)))

    def protocol(self, name: str, pool: str) -> Protocol:
        """Return the protocol that draws the samples of a pool.

        Parameters
        ----------
        name : {"APP", "real"}
            Kind of the protocol.
        pool : {"validation", "test"}
            The pool.

        Returns
        -------
        Protocol
        """
        n_samples = self.sampling.n_validation if pool == "validation" else self.sampling.n_test
        return self.sampling.protocol(name, n_samples, derived_seed(self.random_state, name, pool))

    def save(self, folder: str | Path) -> list[Path]:
        """Write the data set as Parquet files that any program can read.

        ``train``, ``validation`` and ``test.parquet`` hold one row per item: its class in 0..n-1, then the features
        (sparse ones as the lists `feature` and `value`). ``samples_PROTOCOL_POOL.parquet`` holds one row per sample:
        `items`, the 0-based rows of the pool, and `prevalence` if it is known. ``dataset.json`` describes the files.

        Parameters
        ----------
        folder : path
            Absent, empty, or written by an earlier call, whose files are replaced when all the new ones are written.

        Returns
        -------
        list of Path
            The files written.
        """
        description = {
            "format": FORMAT,
            "name": self.name,
            "source": self.source,
            "split": self.split,
            "notes": list(self.notes),
            "random_state": int(self.random_state),
            "classes": list(self.classes),
            "edges": None if self.edges is None else self.edges.tolist(),
            "acceptance": None if self.acceptance is None else self.acceptance.tolist(),
            "app_oq": float(self.sampling.app_oq),
        }
        parts = {part: getattr(self, part) for part in ("train", *POOLS)}
        drawn = ((f"{name} {pool}", self.samples(name, pool)) for name in self.protocols for pool in POOLS)
        return write_folder(Path(folder), description, parts, self.feature_names, drawn)


def split_dataset(
    X: Any,
    y: Index,
    classes: tuple[str, ...],
    random_state: int,
    *,
    feature_names: Sequence[str] = (),
    encoder: Any = None,
    **about: Any,
) -> Dataset:
    """Split items X with classes y (N,) in 0..n-1 and return the data set.

    Items are encoded if there is an encoder. The encoder is fitted on the training items only. "auto" selects the
    encoder that suits their columns.
    """
    split = split_items(y, classes, random_state)
    parts = split.items(X, y)
    if encoder is not None:
        auto = isinstance(encoder, str)
        encoder = (table_encoder(parts["train"].X) if auto else clone(encoder)).fit(*parts["train"])
        parts = {part: Items(encoder.transform(items), codes) for part, (items, codes) in parts.items()}
        feature_names = encoded_names(encoder, parts["train"].X.shape[1])
    about |= {"random_state": random_state, "feature_names": tuple(feature_names), "encoder": encoder}
    return Dataset(**parts, classes=classes, split=split.rule, **about)


def repetition_note(dataset: Dataset) -> str:
    """Return a note on the class that is shortest of items for samples of APP.

    The note is empty if every class has enough items.
    """
    n = len(dataset.classes)
    sampling = dataset.sampling
    if sampling.small_pool == "error" or sampling.sample_size < n * sampling.min_per_class:
        return ""  # an error is raised when samples are drawn
    worst = (1.0, "")
    for pool in POOLS:
        available = np.bincount(getattr(dataset, pool).y, minlength=n)
        wanted = dataset.protocol("APP", pool).counts(n).max(axis=0)
        i = int(np.argmax(wanted / available))
        text = (
            f"samples repeat items of small classes: class {dataset.classes[i]!r} has {available[i]:,} items in the "
            f"{pool} pool, and a sample has up to {wanted[i]:,}; a smaller sample_size in Sampling(...) avoids that"
        )
        worst = max(worst, (wanted[i] / available[i], text if wanted[i] > available[i] else ""))
    return worst[1]


def check_settings(settings: Any, random_state: Any) -> None:
    """Raise an error for settings and seeds that no loader knows."""
    check_choice("settings", settings, ("reference", "paper"))
    check_integer("random_state", random_state, minimum=0)
