"""How good a fitted quantifier is on labelled items, as one number that is larger for better ones."""

from typing import Any

import numpy as np

from ordinalq.contract.summary import Summary
from ordinalq.drawing import draw_items, streams
from ordinalq.labels import encode_labels
from ordinalq.measures import nmd
from ordinalq.protocols import APP
from ordinalq.samples import Samples
from ordinalq.simplex import clean
from ordinalq.validation import Floats
from ordinalq.weights import Weights

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


def minus_mean_nmd(quantifier: Any, X: Any, y: Any, sample_weight: Any, kind: str) -> float:
    """Return minus the mean NMD of the estimates of APP samples of labelled items."""
    _, codes = encode_labels(y, quantifier.classes_)
    S = quantifier.scores(X)
    if len(S) != len(codes):
        raise ValueError(f"y must have one label per item, {len(S)}, got {len(codes)}.")
    weights = Weights.of(sample_weight, kind, len(codes))
    if weights is not None:
        kept = weights.values > 0
        S, codes, weights = S[kept], codes[kept], weights.take(kept)
    samples, truth = drawn_samples(codes, len(quantifier.classes_), weights)
    summary: Summary = quantifier.summarize(S, samples, checks=False)
    return -float(nmd(truth, clean(quantifier.solve(summary).p)).mean())
