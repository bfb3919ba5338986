"""Labelled items of samples: the sums that estimates from labels need, which add up like all others."""

from typing import Any

import numpy as np

from ordinalq._utils.validation import Codes, Floats
from ordinalq.inference.model import FittedQuantifier
from ordinalq.samples.labels import encode_known_labels
from ordinalq.samples.samples import Samples


def label_totals(quantifier: FittedQuantifier, S: Floats, samples: Samples, labelled: Any) -> dict[str, Floats]:
    """Return sums over B samples of items with scores S (N, n) and labels (N,), None or NaN where there is none.

    Nothing where no labels are given at all.

    With e the one-hot class and g the prediction of it by `class_predictions`: "g" (B, n) over all items; over the
    labelled ones "labels" (B, n) of e, "labels eg" and "labels gg" (B, n, n) of e g' and g g', and for methods on means
    "labels f" (B, d) of the representation. With weights all of these are weighted, and "labels n" (B,) is the number
    of the labelled ones, where weights do not say so.
    """
    if labelled is None:
        return {}
    if not hasattr(quantifier, "held_out_"):
        raise ValueError(
            f"this {type(quantifier).__name__} was fitted without keeping its held-out items, which estimates from "
            "labels need: fit it again."
        )
    codes = encode_known_labels(labelled, quantifier.classes_)
    if len(codes) != len(S):
        raise ValueError(f"labelled must have one label or gap per item, {len(S)}, got {len(codes)}.")
    g = quantifier.class_predictions(S)
    known = np.flatnonzero(codes >= 0)
    some, G, E = _among(samples, known), g[known], np.eye(g.shape[1])[codes[known]]
    totals = {
        "g": samples.total(g),
        "labels": some.total(E),
        "labels eg": np.stack([some.total(e[:, None] * G) for e in E.T], axis=1),
        "labels gg": np.stack([some.total(column[:, None] * G) for column in G.T], axis=1),
    }
    if samples.weights is not None and not samples.weights.counts_items:
        totals["labels n"] = some.sizes.astype(np.float64)
    if quantifier.on_means:
        totals["labels f"] = some.total(np.asarray(quantifier.embed(S[known]), dtype=np.float64))
    return totals


def _among(samples: Samples, chosen: Codes) -> Samples:
    """Return what samples hold of the chosen items (k,), as samples of these alone."""
    place = np.full(samples.n_items, -1, dtype=np.intp)
    place[chosen] = np.arange(len(chosen))
    items = place[samples.items]
    kept = np.append(0, np.cumsum(items >= 0))
    weights = None if samples.weights is None else samples.weights.take(items >= 0)
    return Samples(items[items >= 0], kept[samples.offsets], len(chosen), weights=weights)
