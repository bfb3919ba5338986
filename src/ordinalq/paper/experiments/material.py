"""What an experiment works on: the items of a data set, and the samples of its protocols."""

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from ordinalq._utils.validation import Floats, Index
from ordinalq.datasets import Dataset, Sampling, load_dataset, make_dataset
from ordinalq.datasets.dataset import POOLS as POOLS
from ordinalq.paper.experiments.config import Config
from ordinalq.paper.experiments.store import content_hash
from ordinalq.samples.samples import Samples, smoothest_mask


class Battery(NamedTuple):
    """The samples of a pool, each one once, and which of them belong to a protocol.

    ``rows`` gives the positions of a protocol's samples; APP-OQ is a part of APP and costs nothing more.
    """

    samples: Samples
    rows: dict[str, Index]

    @property
    def truth(self) -> Floats:
        """True distributions, (B, n)."""
        assert self.samples.prevalences is not None
        return self.samples.prevalences


@dataclass(frozen=True, eq=False)
class Material:
    """What all units see: training items, pools, samples."""

    dataset: Dataset
    validation: Battery
    test: Battery
    digest: str

    @property
    def n_classes(self) -> int:
        """Number of classes."""
        return len(self.dataset.classes)


def prepare(config: Config, data: str | Path | None = None) -> Material:
    """Load the data set of an experiment and draw its samples."""
    dataset = _dataset(config, data)
    # The paper compares classifiers under APP only.
    protocols = ("APP",) if config.kind == "classifiers" else dataset.protocols
    validation, test = (_battery(dataset, protocols, pool, config.samples.get(f"n_{pool}")) for pool in POOLS)
    digest = content_hash(
        *(array for part in (dataset.train, dataset.validation, dataset.test) for array in part),
        *(array for battery in (validation, test) for array in (battery.samples.items, *battery.rows.values())),
    )
    return Material(dataset, validation, test, digest)


def _battery(dataset: Dataset, protocols: tuple[str, ...], pool: str, limit: int | None) -> Battery:
    """Return the samples of a pool; of given ones, at most `limit` per protocol."""
    parts: list[Samples] = []
    rows: dict[str, Index] = {}
    for protocol in protocols:
        if protocol == "APP-OQ" and (protocol, pool) not in dataset.given:
            P = parts[0].prevalences
            assert P is not None
            rows[protocol] = np.flatnonzero(smoothest_mask(P, dataset.sampling.app_oq))
            continue
        samples = dataset.samples(protocol, pool)
        samples = samples[:limit] if limit is not None and len(samples) > limit else samples
        start = sum(map(len, parts))
        rows[protocol] = np.arange(start, start + len(samples))
        parts.append(samples)
    return Battery(Samples.stacked(parts), rows)


def _dataset(config: Config, data: str | Path | None) -> Dataset:
    """Load the data set, with the numbers of samples of the configuration."""
    about = config.dataset
    if "name" in about:
        dataset = load_dataset(about["name"], data=data, settings=config.settings, random_state=config.seed)
        changes: dict[str, Any] = {
            name: value for name, value in config.samples.items() if value != getattr(dataset.sampling, name)
        }
        return replace(dataset, sampling=replace(dataset.sampling, **changes)) if changes else dataset
    given: dict[str, Any] = {
        name: about[name] for name in ("n_bins", "classes", "features", "min_count") if name in about
    }
    if "text" in about:
        from ordinalq.datasets.text import tfidf

        given |= {"features": about["text"], "encoder": tfidf()}
    numbers: dict[str, Any] = {"n_validation": 1000, "n_test": 2000} | config.samples
    sampling = Sampling(**numbers)
    table = about["table"] if data is None else data
    return make_dataset(table, about["target"], sampling=sampling, random_state=config.seed, **given)
