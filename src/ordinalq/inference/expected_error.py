"""The expected error of a method, measured on held-out items."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from sklearn.base import clone

from ordinalq._utils.validation import Codes, Floats, Mask, check_integer
from ordinalq.classifiers.cross_fitting import unscored
from ordinalq.inference.group_model import FEWEST_GROUPS
from ordinalq.inference.intervals import USUAL_SIZE
from ordinalq.inference.model import FittedQuantifier
from ordinalq.metrics import errors
from ordinalq.protocols import APP
from ordinalq.samples.samples import Samples

# Groups for which an error is stated.
GROUP_SIZES = (f"groups of {USUAL_SIZE} items or more", "smaller groups")
# Samples of each half; their mean is then known to some 5%.
N_SAMPLES = 100


def expected_errors(
    quantifier: FittedQuantifier,
    S: Floats,
    codes: Codes,
    *,
    groups: Codes | None = None,
    sizes: Sequence[int] = (1000,),
    random_state: int = 0,
) -> dict[Any, float]:
    """Return the expected mean NMD for samples of each size or groups.

    NaN if the items are too few.

    The scored items S (N, n), codes and groups (N,) are halved. The method, without its classifier, learns from one
    half and estimates samples of the other: of all distributions equally (protocol APP), or the groups themselves where
    there are groups. Then the halves change places. Learning and judging both suffer from half the items; the squared
    excess over e_0, the error where the method has learned from the items that it is judged on, falls with their
    number, hence e^2 = e_0^2 + (e_half^2 - e_0^2) / 2. Errors of groups are means over the groups of each size. The
    quantifier is not changed.
    """
    for size in sizes:
        check_integer("sizes", size, minimum=1)
    keys: tuple[Any, ...] = tuple(sizes) if groups is None else GROUP_SIZES
    rng = np.random.default_rng(random_state)
    scored = ~unscored(S)
    S, codes, groups = S[scored], codes[scored], None if groups is None else groups[scored]
    half = _half(codes, rng) if groups is None else _half_of_groups(groups, rng)
    if not all(_enough(codes[part], S.shape[1], None if groups is None else groups[part]) for part in (half, ~half)):
        return dict.fromkeys(keys, float("nan"))  # unknown
    seed = int(rng.integers(2**31))

    def error(taught: Mask, judged: Mask) -> Floats:
        number = None if groups is None else groups[taught]
        twin = clone(quantifier).fit_scores(S[taught], codes[taught], groups=number)
        own, classes = codes[judged], np.arange(S.shape[1])
        if groups is not None:
            parts = [Samples.from_groups(groups[judged], own, classes=classes)]
        else:
            how: dict[str, Any] = {"small_pool": "repeat", "random_state": seed}
            parts = [APP(N_SAMPLES, min(size, len(codes)), **how).draw(own, classes=classes) for size in sizes]
        samples = Samples.stacked(parts)
        found = errors(samples.prevalences, twin.solve_scores(S[judged], samples).p)
        if groups is None:
            return np.asarray(found.reshape(len(parts), -1).mean(axis=1))
        large = samples.sizes >= USUAL_SIZE
        return np.array([found[some].mean() if some.any() else np.nan for some in (large, ~large)])

    both = np.stack([error(half, ~half), error(~half, half)])
    seen = ~np.isnan(both)
    expected = np.where(seen, both, 0).sum(axis=0) / np.where(seen.any(axis=0), seen.sum(axis=0), np.nan)
    if groups is None:
        everything = np.ones(len(codes), dtype=bool)
        learned = np.minimum(expected, error(everything, everything))
        expected = np.sqrt((expected**2 + learned**2) / 2)
    return dict(zip(keys, expected.tolist(), strict=True))


def _enough(codes: Codes, n: int, groups: Codes | None) -> bool:
    """Return whether items have all n classes and enough groups, if any."""
    enough_groups = groups is None or (np.bincount(groups) > 1).sum() >= FEWEST_GROUPS
    return bool(enough_groups and (np.bincount(codes, minlength=n) > 0).all())


def _half(codes: Codes, rng: np.random.Generator) -> Mask:
    """Return a random half of each class, (N,)."""
    place = np.empty(len(codes), dtype=np.intp)
    order = np.lexsort((rng.random(len(codes)), codes))
    place[order] = np.arange(len(codes))
    return np.asarray(place % 2 == 0)


def _half_of_groups(groups: Codes, rng: np.random.Generator) -> Mask:
    """Return the items of a random half of the groups, (N,)."""
    numbers = rng.permutation(np.unique(groups))
    return np.isin(groups, numbers[::2])
