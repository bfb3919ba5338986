"""The samples of labelled items that a score is the mean over."""

from typing import Any

import numpy as np

from ordinalq._utils.validation import Array, Floats
from ordinalq.protocols import APP, draw_items, streams
from ordinalq.samples.labels import encode_labels
from ordinalq.samples.samples import Samples
from ordinalq.samples.weights import Weights

# Samples that a score is the mean of, their size at most, and their seed.
SAMPLES, SIZE, SEED = 100, 100, 0


def drawn_samples(codes: Any, n_classes: int, weights: Weights | None) -> tuple[Samples, Floats]:
    """Return APP samples of items with codes (N,), and their (weighted) prevalences (B, n).

    Distributions are uniform over the simplex of the classes that are there, and the same for all quantifiers.
    """
    present, own = np.unique(codes, return_inverse=True)
    counts = APP(SAMPLES, min(SIZE, len(codes)), random_state=SEED).counts(len(present))
    items = draw_items(own, counts, "replace", streams(SEED)[2], present)
    samples = Samples(items, np.append(0, np.cumsum(counts.sum(axis=1))), len(codes)).weighted(weights)
    return samples, samples.average(np.eye(n_classes)[codes])


def labelled_samples(S: Floats, y: Any, classes: Array, weights: Weights | None) -> tuple[Floats, Samples, Floats]:
    """Return scores (N, n) of the items that have a weight, samples of them, and their prevalences (B, n)."""
    _, codes = encode_labels(y, classes)
    if len(S) != len(codes):
        raise ValueError(f"y must have one label per item, {len(S)}, got {len(codes)}.")
    if weights is not None:
        kept = weights.values > 0
        S, codes, weights = S[kept], codes[kept], weights.take(kept)
    return S, *drawn_samples(codes, len(classes), weights)
