"""From prevalences to counts, and from counts to items: what all protocols share."""

from typing import Any

import numpy as np
import numpy.typing as npt

from ordinalq._utils.validation import Array, Codes, Counts, Floats, check_random_state


def streams(random_state: Any) -> list[np.random.Generator]:
    """Return independent generators for prevalences, rounding and items: none shifts the draws of another."""
    return check_random_state(random_state).spawn(3)


def round_counts(P: Floats, size: int, rounding: str, minimum: int, rng: np.random.Generator) -> Counts:
    """Return counts (B, n) with sum `size` in each row, from prevalences P (B, n)."""
    n = P.shape[1]
    if rounding == "truncate":
        # The small number keeps an exact 0.29 * 100 from being rounded down to 28.
        m = np.floor(size * P + 1e-9).astype(np.int64)
        m[:, -1] = size - m[:, :-1].sum(axis=1)
        return m
    if n * minimum > size:
        raise ValueError(
            f"min_per_class must leave room: {n} classes with at least {minimum} items do not fit {size} items."
        )
    m = np.maximum(np.rint(size * P), minimum).astype(np.int64)
    W = np.maximum(P, 1 / size)
    for b in np.flatnonzero(m.sum(axis=1) != size):
        while excess := int(size - m[b].sum()):
            weights = W[b] if excess > 0 else W[b] * (m[b] > minimum)
            cumulated = np.cumsum(weights)
            drawn = np.searchsorted(cumulated, rng.random(abs(excess)) * cumulated[-1], side="right")
            # Each distinct class once: a class that was drawn twice moves by one.
            m[b, np.unique(drawn)] += np.sign(excess)
    return m


def draw_items(
    codes: Codes,
    counts: Counts,
    small_pool: str,
    rng: np.random.Generator,
    names: Array,
) -> npt.NDArray[np.int32]:
    """Return the items of all samples, class by class within a sample; without replacement where the pool allows."""
    n = counts.shape[1]
    by_class = np.argsort(codes, kind="stable").astype(np.int32)
    available = np.bincount(codes, minlength=n)
    starts = np.cumsum(available) - available
    wanted = counts.max(axis=0)
    lacking = (wanted > available) if small_pool == "error" else (wanted > 0) & (available == 0)
    if lacking.any():
        c = int(np.argmax(lacking))
        advice = "" if available[c] == 0 else "; use smaller samples, or small_pool='repeat' or 'replace'"
        raise ValueError(
            f"y_pool must have at least {wanted[c]} items of class {names[c]}, got {available[c]}{advice}."
        )
    items = np.empty(counts.sum(), dtype=np.int32)
    end = 0
    for row in counts.tolist():
        for i, m in enumerate(row):
            if m == 0:
                continue
            pool = int(available[i])
            if m <= pool:
                picked = rng.choice(pool, m, replace=False, shuffle=False)
            elif small_pool == "repeat":
                picked = np.resize(rng.permutation(pool), m)
            else:
                picked = rng.integers(pool, size=m)
            items[end : end + m] = by_class[starts[i] + picked]
            end += m
    return items
