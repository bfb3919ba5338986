"""Posteriors of items, corrected for the estimated prevalences of their groups."""

import numpy as np

from ordinalq._utils.validation import Floats
from ordinalq.classifiers.calibration import Calibration
from ordinalq.inference.estimates import Estimates
from ordinalq.inference.model import FittedQuantifier, HeldOut
from ordinalq.samples.samples import Samples


def item_posteriors(quantifier: FittedQuantifier, S: Floats, samples: Samples, estimates: Estimates) -> Floats:
    r"""Return p(y | x), (N, n), of items with scores S (N, n) in their samples.

    Each item belongs to one sample.

    The scores are calibrated on the held-out items, by vector scaling, and reweighted by estimated over training
    prevalence. An estimate counts as as many items as its error is worth, nu = (1 - sum p^2) / tr Cov - 1, and the
    training prevalences as one item per class: a class that an uncertain estimate leaves out is not ruled out.
    """
    V, p_train = quantifier.held_out_, quantifier.p_train_
    P, E = estimates.prevalences, estimates.covariance
    assert E is not None
    n, spread = P.shape[1], np.maximum(np.trace(E, axis1=1, axis2=2), np.finfo(float).tiny)
    sizes = estimates.n_items.astype(np.float64)
    nu = np.clip((1 - (P**2).sum(axis=1)) / spread - 1, 0, sizes)[:, None]
    expected = (nu * P + n * p_train) / (nu + n)
    rows = np.empty(len(S), dtype=np.intp)
    rows[samples.items] = np.repeat(np.arange(len(samples)), samples.sizes)
    weighted = V.once(score_calibration, V).transform(S) * (expected / p_train)[rows]
    return np.asarray(weighted / weighted.sum(axis=1, keepdims=True))


def score_calibration(V: HeldOut) -> Calibration:
    """Return the calibration of scores, fitted on held-out items."""
    return Calibration("vector").fit(V.S, V.codes, V.weights)
