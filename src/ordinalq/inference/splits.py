"""Samples to choose a strength of smoothing on, all of them made of the held-out items V of the training data.

Three kinds, each with the items that M comes from:

*Smooth samples* and *samples of given prevalences* are drawn from all of V, M from a random third of it. A third is a
compromise: M from the half of V deviates from V's own means exactly as much as M from all of V deviates from the truth;
a third doubles that variance, which leaves a margin for what differs between held-out scores and those of new items.

*Training groups* are samples themselves: M comes from the items of other groups.
"""

import warnings
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from ordinalq._utils.validation import Codes, Floats, Mask
from ordinalq.protocols import APPOQ, Protocol, RealPrevalences
from ordinalq.regularizers import Auto
from ordinalq.samples.samples import Samples
from ordinalq.samples.weights import Weights

# How often V is split, and samples of each split. Where a single sample takes a millisecond, fewer have to do, in
# larger batches; they are the same for all strengths.
SPLITS, DRAWS = 24, 40
FEWER_SPLITS, FEWER_DRAWS = 6, 32
# Part of the APP samples that APP-OQ keeps, the smoothest.
FRACTION = 0.2
# Items of a sample, or as many as V has.
SAMPLE_SIZE = 1000
# The draws belong to the method, not to chance: the same data give the same strength.
SEED = 0
# Parts of the training groups: with as many, M of the others is nearly M of all.
FOLDS = 12
# Fewer groups of enough items are no ground for a choice.
MIN_GROUPS = 3


class Split(NamedTuple):
    """Items that M comes from (N,), samples of known prevalences (B, n), and how much each of them counts (B,)."""

    for_means: Mask
    samples: Samples
    weights: Floats

    @property
    def prevalences(self) -> Floats:
        """Those of the samples, (B, n)."""
        assert self.samples.prevalences is not None
        return self.samples.prevalences


class Ground(NamedTuple):
    """What a strength is chosen on: in words, the typical size of a sample, and the splits."""

    source: str
    sample_size: int
    splits: list[Split]

    def weighted(self, codes: Codes, weights: Weights | None) -> "Ground":
        """Return it with weights of the held-out items, which have these codes (N,)."""
        if weights is None:
            return self
        made = _with_shares if self.source == "groups" else _within_classes
        return self._replace(splits=[s._replace(samples=made(s.samples, codes, weights)) for s in self.splits])


def ground(auto: Auto, codes: Codes, groups: Codes | None, pool: Codes, *, few: bool = False) -> Ground:
    """Return what a strength is chosen on, as `auto` says: held-out items with codes and perhaps training groups (N,).

    Only those of the pool (k,) may enter M and samples; where each sample takes long, `few` have to do.
    """
    if auto.prevalences is None and groups is not None:
        sizes = np.bincount(groups[pool])
        n_large = int((sizes >= auto.min_items).sum())
        if n_large >= MIN_GROUPS:
            return Ground(
                "groups", int(np.median(sizes[sizes >= auto.min_items])), _by_group(auto, codes, groups, pool)
            )
        warnings.warn(
            f"only {n_large} training groups have {auto.min_items} items or more, too few to choose a strength on: "
            "it was chosen on smooth samples of all items, as without groups.",
            stacklevel=2,
        )
    size = min(SAMPLE_SIZE, len(pool))
    draws = FEWER_DRAWS if few else DRAWS
    splits = []
    for number, third in enumerate(thirds(codes, pool, few=few)):
        protocol: Protocol
        if auto.prevalences is None:
            # So many APP samples that their smoothest fifth are as many as asked for.
            protocol = APPOQ(FRACTION, int(draws / FRACTION), size, small_pool="replace", random_state=SEED + number)
        else:
            vectors = np.asarray(auto.prevalences, dtype=np.float64)
            protocol = RealPrevalences(vectors, draws, size, small_pool="replace", random_state=SEED + number)
        samples = _of(protocol.draw(codes[pool]), pool, len(codes))
        splits.append(Split(third, samples, np.ones(len(samples))))
    return Ground("smooth" if auto.prevalences is None else "prevalences", size, splits)


def _with_shares(groups: Samples, codes: Codes, weights: Weights) -> Samples:
    """Return groups with weights, and the weighted shares of their classes."""
    assert groups.classes is not None
    known = groups.weighted(weights)
    known.prevalences = known.average(np.eye(len(groups.classes))[codes])
    return known


def _within_classes(drawn: Samples, codes: Codes, weights: Weights) -> Samples:
    """Return samples whose items have weights that sum, in each class, to the number of its items: prevalences stay."""
    n = int(codes.max()) + 1
    cell = np.repeat(np.arange(len(drawn)), drawn.sizes) * n + codes[drawn.items]
    w = weights.values[drawn.items]
    scale = np.bincount(cell) / np.maximum(np.bincount(cell, weights=w), np.finfo(float).tiny)
    own = Weights(w * scale[cell])
    return Samples(
        drawn.items, drawn.offsets, drawn.n_items, classes=drawn.classes, prevalences=drawn.prevalences, weights=own
    )


def _of(drawn: Samples, pool: Codes, n_items: int) -> Samples:
    """Return samples of a part of N items, `pool` (k,), as samples of all of them."""
    return Samples(pool[drawn.items], drawn.offsets, n_items, classes=drawn.classes, prevalences=drawn.prevalences)


def thirds(codes: Codes, pool: Codes, *, few: bool = False) -> Iterator[Mask]:
    """Yield masks (N,) of random thirds of the items `pool`, with at least two items of each class that has them."""
    rng = np.random.default_rng(SEED)
    counts = np.bincount(codes[pool])
    wanted = np.minimum(counts, np.maximum(2, -(-counts // 3)))
    starts = np.cumsum(counts) - counts
    for _ in range(FEWER_SPLITS if few else SPLITS):
        order = rng.permutation(pool)
        order = order[np.argsort(codes[order], kind="stable")]
        position = np.arange(len(order)) - starts[codes[order]]
        mask = np.zeros(len(codes), dtype=bool)
        mask[order[position < wanted[codes[order]]]] = True
        yield mask


def _by_group(auto: Auto, codes: Codes, groups: Codes, pool: Codes) -> list[Split]:
    """Return the training groups of enough items in folds, each with the items of all other folds for M."""
    sizes, n = np.bincount(groups[pool]), int(codes.max()) + 1
    n_folds = min(FOLDS, int((sizes >= auto.min_items).sum()))
    # Sorted by size and dealt out: every fold gets large and small ones.
    fold = np.empty(len(sizes), dtype=np.intp)
    fold[np.argsort(-sizes, kind="stable")] = np.arange(len(sizes)) % n_folds
    of_item, judged = fold[groups[pool]], sizes[groups[pool]] >= auto.min_items
    splits = []
    for k in range(n_folds):
        others = of_item != k
        # A class that no other fold has keeps its items, else there would be no M.
        others |= (np.bincount(codes[pool[others]], minlength=n) == 0)[codes[pool]]
        for_means = np.zeros(len(codes), dtype=bool)
        for_means[pool[others]] = True
        members = pool[(of_item == k) & judged]
        samples = _of(Samples.from_groups(groups[members], codes[members], classes=np.arange(n)), members, len(codes))
        weights = samples.sizes.astype(np.float64)
        splits.append(Split(for_means, samples, weights if auto.weight == "items" else np.ones(len(weights))))
    return splits
