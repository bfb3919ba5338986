"""Calibration of posteriors on held-out scores.

Maximum likelihood (SLD, o-SLD) believes the scores; a forest's are pulled towards the middle.
"""

from collections.abc import Callable
from copy import copy
from typing import Any

import numpy as np
from scipy.optimize import minimize
from sklearn.base import BaseEstimator

from ordinalq._utils.validation import Array, Codes, Floats, check_choice
from ordinalq.samples.weights import Weights, item_counts

CALIBRATIONS = ("none", "bcts", "vector")
# Scores are mixed with this much of the uniform distribution before their logarithm: a forest's zeros are not exact.
FLOOR = 1e-4


class Calibration(BaseEstimator):
    """Calibration softmax(w * ln(s) + c), fitted by maximum likelihood.

    w and c maximize the likelihood of the labels of held-out items.

    Parameters
    ----------
    kind : {"none", "bcts", "vector"}, default="none"
        "bcts", bias-corrected temperature scaling (Alexandari et al., ICML 2020): one w for all classes; "vector": one
        per class; "none" leaves the scores alone.
    balanced : bool, default=False
        Whether all classes have equal weight in the likelihood, however many items they have. The calibrated scores
        then are the posteriors of a population in which all classes are equally frequent: ratios of densities.
    """

    def __init__(self, kind: str = "none", *, balanced: bool = False) -> None:
        self.kind = kind
        self.balanced = balanced

    def check(self) -> None:
        """Raise ValueError for an unknown kind."""
        check_choice("calibration", self.kind, CALIBRATIONS)

    def fit(self, S: Floats, codes: Codes, weights: Weights | None = None) -> "Calibration":
        """Fit w and c on held-out scores S (N, n), codes (N,) and weights of the items."""
        n = S.shape[1]
        self.weights_, self.biases_ = np.ones(n), np.zeros(n)
        if self.kind == "none":
            return self
        L = np.asfortranarray(logarithms(S))  # class by class: sums over classes then run along the items
        n_weights = n if self.kind == "vector" else 1
        counts = item_counts(codes, n, weights)
        each = 1 / (n * counts)[codes] if self.balanced else np.full(len(codes), 1 / counts.sum())
        each = each if weights is None else each * weights.values

        def loss(x: Floats) -> tuple[float, Any]:
            w, c = x[:n_weights], x[n_weights:]
            value, error = softmax_loss(L * w + c, codes, each)
            slope = np.einsum("xi,xi->i", error, L)
            return value, np.concatenate([slope if n_weights > 1 else slope.sum(keepdims=True), error.sum(axis=0)])

        start = np.concatenate([np.ones(n_weights), -np.log(counts / counts.sum()) if self.balanced else np.zeros(n)])
        best = minimize(loss, start, jac=True, method="L-BFGS-B", options={"maxiter": 1000, "gtol": 1e-8}).x
        self.weights_, self.biases_ = np.broadcast_to(best[:n_weights], n).copy(), best[n_weights:]
        return self

    def transform(self, S: Floats) -> Floats:
        """Return calibrated scores, (N, n)."""
        if self.kind == "none":
            return S
        return normalized(logarithms(S) * self.weights_ + self.biases_)

    def replicates(
        self,
        S: Floats,
        codes: Codes,
        draw: Callable[[], Array],
        number: int,
        weights: Weights | None = None,
    ) -> list["Calibration"]:
        """Return calibrations fitted on drawn items, by one Newton step from this one.

        S (N, n) and codes (N,) are the held-out items that this one was fitted on, `draw` gives the items (N,) of each
        of `number` draws; with weights these are drawn by them.
        """
        if self.kind == "none":
            return [self] * number
        n = S.shape[1]
        L = logarithms(S)
        p = normalized(L * self.weights_ + self.biases_)
        error = p - np.eye(n)[codes]
        # Second derivatives in the logits are diag(p) - p p'; with respect to w each logit brings its L.
        pL = p * L
        w = np.ones((len(p), 1)) if weights is None else weights.values[:, None]
        wp, wpL = w * p, w * pL
        WW, WC = np.diag((wpL * L).sum(axis=0)) - wpL.T @ pL, np.diag(wpL.sum(axis=0)) - wpL.T @ p
        CC = np.diag(wp.sum(axis=0)) - wp.T @ p
        slopes = error * L
        if self.kind == "bcts":  # one w for all classes
            WW, WC, slopes = WW.sum(keepdims=True), WC.sum(axis=0, keepdims=True), slopes.sum(axis=1, keepdims=True)
        hessian = np.block([[WW, WC], [WC.T, CC]])
        gradients = np.hstack([slopes, error])
        found = []
        for _ in range(number):
            drawn = draw()
            # As much weight is drawn as there is.
            scale = 1.0 if weights is None else w.sum() / len(drawn)
            total = scale * gradients[drawn].sum(axis=0) - (w * gradients).sum(axis=0)
            # The biases are free up to a constant.
            step = -np.linalg.lstsq(hessian, total, rcond=1e-9)[0]
            one = copy(self)
            one.weights_, one.biases_ = self.weights_ + step[:-n], self.biases_ + step[-n:]
            found.append(one)
        return found


def normalized(eta: Floats) -> Floats:
    """Return exp(eta) / sum exp(eta) for eta (N, n), whose place it takes."""
    eta -= eta.max(axis=1, keepdims=True)
    np.exp(eta, out=eta)
    eta /= eta.sum(axis=1, keepdims=True)
    return eta


def softmax_loss(eta: Floats, codes: Codes, weight: Floats) -> tuple[float, Floats]:
    """Return the weighted softmax loss and its derivative in eta (N, n).

    The loss is -sum_x w(x) ln softmax(eta(x))_y for weights w (N,) of the items.

    The derivative takes the place of eta.
    """
    items = np.arange(len(codes))
    eta -= eta.max(axis=1, keepdims=True)
    own = eta[items, codes]
    np.exp(eta, out=eta)
    total = eta.sum(axis=1)
    value = weight @ (np.log(total) - own)
    eta *= (weight / total)[:, None]
    eta[items, codes] -= weight
    return float(value), eta


def logarithms(S: Floats) -> Floats:
    """Return ln s of scores (N, n), mixed with a little of the uniform distribution."""
    return np.asarray(np.log((1 - FLOOR) * S + FLOOR / S.shape[1]))
