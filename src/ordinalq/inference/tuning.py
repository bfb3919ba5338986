"""The strength of smoothing, chosen on the training items.

The held-out items V play both parts: some give the class means M, others the samples, see `splits`. The strength whose
estimates have the smallest mean NMD is taken. Nothing is fitted but M, for V is held-out already.
"""

import warnings
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from ordinalq._utils.progress import iterate_steps
from ordinalq._utils.text import finite, percent
from ordinalq._utils.validation import Codes, Floats, Mask
from ordinalq.inference.model import FittedQuantifier
from ordinalq.metrics import nmd
from ordinalq.protocols import APPOQ, Protocol, RealPrevalences
from ordinalq.regularizers import AutoStrength, Smoother
from ordinalq.samples.samples import Samples
from ordinalq.samples.summary import Summary
from ordinalq.samples.weights import Weights
from ordinalq.simplex import clean, jaggedness

if TYPE_CHECKING:
    import pandas as pd


# Samples to choose a strength of smoothing on, all of them made of the held-out items V of the training data.
#
# Three kinds, each with the items that M comes from:
#
# *Smooth samples* and *samples of given prevalences* are drawn from all of V, M from a random third of it. A third is
# a compromise: M from the half of V deviates from V's own means exactly as much as M from all of V deviates from the
# truth; a third doubles that variance, which leaves a margin for what differs between held-out scores and those of new
# items.
#
# *Training groups* are samples themselves: M comes from the items of other groups.


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
# With fewer groups of enough items, the strength is not chosen on groups.
MIN_GROUPS = 3


class Split(NamedTuple):
    """Items for M (N,), samples of known prevalences (B, n), and weights (B,)."""

    for_means: Mask
    samples: Samples
    weights: Floats

    @property
    def prevalences(self) -> Floats:
        """Those of the samples, (B, n)."""
        assert self.samples.prevalences is not None
        return self.samples.prevalences


class TuningBasis(NamedTuple):
    """Basis of the choice of a strength: text, typical sample size and splits."""

    source: str
    sample_size: int
    splits: list[Split]

    def weighted(self, codes: Codes, weights: Weights | None) -> "TuningBasis":
        """Return it with weights of the held-out items, which have these codes (N,)."""
        if weights is None:
            return self
        made = _with_shares if self.source == "groups" else _within_classes
        return self._replace(splits=[s._replace(samples=made(s.samples, codes, weights)) for s in self.splits])


def tuning_basis(
    auto: AutoStrength, codes: Codes, groups: Codes | None, pool: Codes, *, few: bool = False
) -> TuningBasis:
    """Return the basis of the choice of a strength, as `auto` defines it.

    Held-out items have codes and possibly training groups (N,).

    Only those of the pool (k,) may enter M and samples; where each sample takes long, `few` have to do.
    """
    if auto.prevalences is None and groups is not None:
        sizes = np.bincount(groups[pool])
        n_large = int((sizes >= auto.min_items).sum())
        if n_large >= MIN_GROUPS:
            return TuningBasis(
                "groups", int(np.median(sizes[sizes >= auto.min_items])), _by_group(auto, codes, groups, pool)
            )
        warnings.warn(
            f"only {n_large} training groups have {auto.min_items} items or more, too few to choose the strength: "
            "it was chosen on smooth samples of all items, as without groups.",
            stacklevel=2,
        )
    size = min(SAMPLE_SIZE, len(pool))
    draws = FEWER_DRAWS if few else DRAWS
    splits = []
    for number, third in enumerate(thirds(codes, pool, few=few)):
        protocol: Protocol
        if auto.prevalences is None:
            # So many APP samples that their smoothest fifth are as many as needed.
            protocol = APPOQ(FRACTION, int(draws / FRACTION), size, small_pool="replace", random_state=SEED + number)
        else:
            vectors = np.asarray(auto.prevalences, dtype=np.float64)
            protocol = RealPrevalences(vectors, draws, size, small_pool="replace", random_state=SEED + number)
        samples = _of_all_items(protocol.draw(codes[pool]), pool, len(codes))
        splits.append(Split(third, samples, np.ones(len(samples))))
    return TuningBasis("smooth" if auto.prevalences is None else "prevalences", size, splits)


def _with_shares(groups: Samples, codes: Codes, weights: Weights) -> Samples:
    """Return groups with weights, and the weighted shares of their classes."""
    assert groups.classes is not None
    known = groups.weighted(weights)
    known.prevalences = known.average(np.eye(len(groups.classes))[codes])
    return known


def _within_classes(drawn: Samples, codes: Codes, weights: Weights) -> Samples:
    """Return samples whose item weights keep the class prevalences."""
    n = int(codes.max()) + 1
    cell = np.repeat(np.arange(len(drawn)), drawn.sizes) * n + codes[drawn.items]
    w = weights.values[drawn.items]  # noqa: PD011 - an attribute of Weights
    scale = np.bincount(cell) / np.maximum(np.bincount(cell, weights=w), np.finfo(float).tiny)
    own = Weights(w * scale[cell])
    return Samples(
        drawn.items, drawn.offsets, drawn.n_items, classes=drawn.classes, prevalences=drawn.prevalences, weights=own
    )


def _of_all_items(drawn: Samples, pool: Codes, n_items: int) -> Samples:
    """Return samples of a part of N items, `pool` (k,), as samples of all of them."""
    return Samples(pool[drawn.items], drawn.offsets, n_items, classes=drawn.classes, prevalences=drawn.prevalences)


def thirds(codes: Codes, pool: Codes, *, few: bool = False) -> Iterator[Mask]:
    """Yield masks (N,) of random thirds of the items `pool`.

    Each has at least two items of each class that has them.
    """
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


def _by_group(auto: AutoStrength, codes: Codes, groups: Codes, pool: Codes) -> list[Split]:
    """Return training groups of enough items in folds, with other items for M."""
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
        samples = _of_all_items(
            Samples.from_groups(groups[members], codes[members], classes=np.arange(n)), members, len(codes)
        )
        weights = samples.sizes.astype(np.float64)
        splits.append(Split(for_means, samples, weights if auto.weight == "items" else np.ones(len(weights))))
    return splits


# After the grid that a smoother starts with, points halfway between the best one and its neighbours are tried, twice.
REFINEMENTS = 2
# The grid is widened where its end is better than all others by more than this part: else the curve is flat there.
BETTER = 1e-3
STEP = 10.0
# In words, what the samples were.
SAMPLES = {
    "smooth": f"smooth samples (APP-OQ {percent(FRACTION)}) of {{size}} training items",
    "prevalences": "samples of {size} training items with the given prevalences",
    "groups": "training groups of {size} items (median), held out",
}


class Trial(NamedTuple):
    """Quantifier fitted on some held-out items, samples (B, n) and weights (B,)."""

    quantifier: FittedQuantifier
    summary: Summary
    prevalences: Floats
    weights: Floats


@dataclass(frozen=True, eq=False)
class Tuning:
    """Record of the choice of the strength of a regularizer.

    Attributes
    ----------
    parameter : str
        "tau" or "interpolation".
    value : float
        The chosen strength.
    values : ndarray (k,)
        The strengths that were tried, ascending.
    errors : ndarray (k,)
        (Weighted) mean NMD of each over all samples.
    standard_errors : ndarray (k,)
        Standard errors of these means, from the scatter between the splits.
    n_samples, sample_size : int
        Number of the samples, and of the items of each (of groups: the median).
    source : {"smooth", "prevalences", "groups"}
        What the samples were: smooth ones of the training items, such with given prevalences, or training groups.
    """

    parameter: str
    value: float
    values: Floats
    errors: Floats
    standard_errors: Floats
    n_samples: int
    sample_size: int
    source: str = "smooth"

    def __str__(self) -> str:
        best, none = self.errors.min(), self.errors[0]
        samples = SAMPLES[self.source].format(size=self.sample_size)
        text = f"{self.parameter} = {self.value:.3g}, the best of {len(self.values)} on {self.n_samples} {samples}"
        return f"{text}: NMD {best:.4f}, without smoothing {none:.4f}."

    @property
    def at_edge(self) -> bool:
        """Whether the largest strength was chosen: a larger one might be better."""
        return bool(self.value == self.values[-1])

    def to_dict(self) -> dict[str, Any]:
        """Return all values as plain numbers and lists."""
        values = vars(self).items()
        found: dict[str, Any] = finite({k: v.tolist() if isinstance(v, np.ndarray) else v for k, v in values})
        return found

    def table(self) -> "pd.DataFrame":
        """Return the curve as a table with the parameter, nmd and standard_error."""
        import pandas as pd

        columns = {self.parameter: self.values, "nmd": self.errors, "standard_error": self.standard_errors}
        return pd.DataFrame(columns)

    def plot(self, ax: Any = None) -> Any:
        """Draw the curve, see :func:`ordinalq.plot.tau_path`."""
        from ordinalq.plot import tau_path

        return tau_path(self.values, self.errors, self.standard_errors, chosen=self.value, ax=ax)


def tune(smoother: Smoother, trials: Iterable[Trial], unit: float = 1.0, source: str = "smooth") -> Tuning:
    """Choose a strength of smoothing, relative to a unit, by mean NMD over trials.

    The smoother defines the first strength and the largest one. All trials are kept in memory, since every strength
    goes through all of them; `source` describes them, see :class:`Tuning`.
    """
    trials = list(trials)
    share = np.array([trial.weights.sum() for trial in trials])
    share /= share.sum()
    # Mean NMD of each trial by strength
    found: dict[float, Floats] = {}

    def error(value: float) -> float:
        if value not in found:
            solved = [(t, clean(t.quantifier.with_strength(value).solve(t.summary).p)) for t in trials]
            found[value] = np.array([np.average(nmd(t.prevalences, p), weights=t.weights) for t, p in solved])
        return float(share @ found[value])

    first = list(smoother.strengths(unit))
    for value in iterate_steps("strength", first):
        error(value)
    values = _refined(_widened(first, error, *smoother.limits(unit)), error)
    errors = np.array([error(value) for value in values])
    # Of a weighted mean; with equal weights the standard deviation of the trials over the root of their number.
    spread = np.array([share @ (share * (found[value] - error(value)) ** 2) for value in values])
    sizes = np.concatenate([trial.summary.n_items for trial in trials])
    return Tuning(
        parameter=str(smoother.strength),
        value=values[int(errors.argmin())],
        values=np.array(values),
        errors=errors,
        standard_errors=np.sqrt(spread * len(trials) / max(len(trials) - 1, 1)),
        n_samples=len(sizes),
        sample_size=int(np.median(sizes)),
        source=source,
    )


def _widened(values: list[float], error: Callable[[float], float], low: float, high: float) -> list[float]:
    """Return strengths with more at an end, while that is clearly the best."""
    while values[-1] * STEP <= high and error(values[-1]) < (1 - BETTER) * min(map(error, values[:-1])):
        values = [*values, values[-1] * STEP]
    while values[1] / STEP >= low and error(values[1]) < (1 - BETTER) * min(map(error, [0.0, *values[2:]])):
        values = [values[0], values[1] / STEP, *values[1:]]
    return values


def _refined(values: list[float], error: Callable[[float], float]) -> list[float]:
    """Return strengths with points halfway between the best one and its neighbours."""
    for _ in range(REFINEMENTS):
        at = values.index(min(values, key=error))
        neighbours = values[max(at - 1, 0) : at + 2]
        # No point lies halfway to zero on a logarithmic scale.
        halfway = [float(np.sqrt(a * b)) for a, b in pairwise(neighbours) if a > 0]
        values = sorted({*values, *halfway})
    return values


def warn_about_choice(tuning: Tuning, p_train: Floats, samples: Iterable[Floats]) -> None:
    """Warn if a choice is at the edge of its grid or its samples are too smooth.

    The samples that it was made on have prevalences (B, n) each, the training items p_train (n,).
    """
    name = tuning.parameter
    if tuning.at_edge:
        warnings.warn(
            f"{name}='auto' ended at {tuning.value:.3g}, the largest value that was tried. "
            "Either the samples that it was chosen on are as smooth, or the scores have too little information on the "
            f"classes. Use more training items, a better classifier or another method, or pass {name} as a number.",
            stacklevel=2,
        )
    if tuning.source != "smooth" or tuning.value == 0:
        return
    most, own = max(float(np.max(jaggedness(P))) for P in samples), float(jaggedness(p_train))
    if own > most:
        warnings.warn(
            f"{name}='auto' was chosen on samples with a jaggedness of at most {most:.2g}, and that of the training "
            f"distribution is {own:.2g}: if your samples are as jagged, smoothing may add bias. Fit with groups, pass "
            f"{name}=AutoStrength(prevalences=...) with the distributions that you expect, or {name}=0.",
            stacklevel=2,
        )
