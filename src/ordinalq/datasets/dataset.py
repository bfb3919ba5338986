"""A data set: labelled training items, two pools, and the protocols that draw samples from the pools."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.base import clone

from ordinalq._utils.validation import Floats, Index, check_choice, check_distributions, check_integer, check_real
from ordinalq.datasets.folder import FORMAT, write_folder
from ordinalq.datasets.split import Items, derived_seed, split_items
from ordinalq.io.encoder import encoded_names, table_encoder
from ordinalq.protocols import APP, Protocol, RealPrevalences
from ordinalq.samples.samples import Samples

POOLS = ("validation", "test")


@dataclass(frozen=True, eq=False, kw_only=True)
class Sampling:
    """How samples are drawn from the pools.

    Parameters
    ----------
    n_validation, n_test : int
        Number of samples of each pool and protocol.
    app_oq : float, default=0.2
        Fraction of the APP samples, the smoothest ones, that APP-OQ keeps.
    real : array-like (k, n), default=None
        Distributions seen in nature; None if the protocol "real" does not apply.
    poisson : bool, default=False
        Whether a real sample has Poisson counts, see :class:`ordinalq.RealPrevalences`.
    sample_size, rounding, min_per_class, small_pool
        See :class:`ordinalq.APP`.
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
        """Return the protocol "APP" or "real" with these settings."""
        shared = ("sample_size", "rounding", "min_per_class", "small_pool")
        common: dict[str, Any] = {name: getattr(self, name) for name in shared}
        common |= {"n_samples": n_samples, "random_state": seed}
        if name == "APP":
            return APP(**common)
        return RealPrevalences(self.real, poisson=self.poisson, **common)


@dataclass(frozen=True, eq=False, kw_only=True)
class Dataset:
    """Training items, a validation pool and a test pool over the same ordered classes; no item is in two of them.

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
        Samples that were published with the data; all others are drawn.

    Examples
    --------
    >>> import ordinalq as oq
    >>> dataset = oq.load_dataset("fried")
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
        real = self.sampling.real is not None or ("real", "test") in self.given
        return ("APP", "APP-OQ", "real") if real else ("APP", "APP-OQ")

    def samples(self, protocol: str, pool: str) -> Samples:
        """Draw the samples of a protocol from a pool; the same ones on every call.

        Parameters
        ----------
        protocol : {"APP", "APP-OQ", "real"}
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
        """Return the protocol "APP" or "real" that draws the samples of a pool."""
        n_samples = self.sampling.n_validation if pool == "validation" else self.sampling.n_test
        return self.sampling.protocol(name, n_samples, derived_seed(self.random_state, name, pool))

    def save(self, folder: str | Path) -> list[Path]:
        """Write the data set as Parquet files that any program can read.

        ``train``, ``validation`` and ``test.parquet`` hold one row per item: its class in 0..n-1, then the features
        (sparse ones as the lists `feature` and `value`). ``samples_PROTOCOL_POOL.parquet`` holds one row per sample:
        `items`, the 0-based rows of the pool, and `prevalence`. ``dataset.json`` says what everything means.

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
    """Split items X with classes y (N,) in 0..n-1, encode them if there is an encoder, and return the data set.

    The encoder is fitted on the training items only; "auto" is the one that suits their columns.
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
    """Name the class that is most short of items for the samples of APP; nothing if none is."""
    n = len(dataset.classes)
    sampling = dataset.sampling
    if sampling.small_pool == "error" or sampling.sample_size < n * sampling.min_per_class:
        return ""  # drawing says what is wrong
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
    """Refuse settings and seeds that no loader knows."""
    check_choice("settings", settings, ("reference", "paper"))
    check_integer("random_state", random_state, minimum=0)
