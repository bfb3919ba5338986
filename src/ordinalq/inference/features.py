"""Representations of scored items for group models."""

import numpy as np
from scipy.special import logit

from ordinalq._utils.validation import Floats

# Cumulated posteriors nearer to 0 or 1 tell nothing more of a class, and their logits would be mostly noise.
CLIP = 0.02
# Groups per coordinate of f, and labelled items where there are no groups, from which on logits pay.
GROUPS_PER_COORDINATE = 3
ITEMS_PER_COORDINATE = 500


def with_logits(S: Floats) -> Floats:
    """Posteriors S (N, n), then the logits of the cumulated ones cut to [0.02, 0.98]: (N, 2n - 1)."""
    S = np.asarray(S, dtype=np.float64)
    n = S.shape[1]
    # In place: a million items of ten classes take 150 megabytes once.
    F = np.empty((len(S), 2 * n - 1))
    F[:, :n] = S
    cumulated = np.cumsum(S[:, :-1], axis=1, out=F[:, n:])
    logit(np.clip(cumulated, CLIP, 1 - CLIP, out=cumulated), out=cumulated)
    return F


def logits_pay(n_classes: int, n_items: float, n_groups: float | None = None) -> bool:
    """Return whether the labelled items, in effectively this many groups, can carry the 2n - 1 coordinates."""
    d = 2 * n_classes - 1
    return n_items >= ITEMS_PER_COORDINATE * d if n_groups is None else n_groups >= GROUPS_PER_COORDINATE * d
