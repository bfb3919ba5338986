"""Ordered probit with a varying spread: from numbers that predict the class index to posteriors.

    P(y <= k | x) = Phi((theta_k - a.g(x)) exp(-b.h(x))),   theta_0 < ... < theta_{n-2},

where g(x) are predictions of the index and h(x) says how far they may be off. Classes share the line a.g, so that a
rare one borrows from its neighbours: all that is its own is a threshold.
"""

from typing import Any, Self

import numpy as np
from scipy.optimize import minimize
from scipy.special import log_ndtr
from sklearn.base import BaseEstimator

from ordinalq._utils.validation import Codes, Floats, Mask

# Logarithm of the square root of 2 pi.
LOG_ROOT = 0.5 * np.log(2 * np.pi)
# Least expected deviation that counts, in classes: below it, its logarithm says nothing.
LEAST_DEVIATION = 0.02
# Strength of the pull of a and b towards zero, in items: it only matters where classes are separated perfectly, or
# where there are about as many items as parameters.
PULL = 1.0
# Directions of g whose scatter is below this part of the largest repeat the others.
REPEATED = 1e-8
# Least mass of a class in units of its upper probability: thresholds closer than rounding would have none.
LEAST_MASS = 1e-15
# Bound of b.h: deviations that differ by more than exp(4) from the usual one are extrapolated.
LARGEST_SPREAD = 4.0
# Bound of the logarithm of an increment of theta: no fit comes near, but steps of the line search go beyond.
LARGEST_INCREMENT = 30.0


class OrderedProbit(BaseEstimator):
    """The ordered probit, fitted by maximum likelihood (L-BFGS with analytic derivatives).

    With g standardized along its principal directions, u the standardized mean of the predictions, clipped to its
    training range, and v the expected deviation of a prediction, h = (u, u^2, ln max(v, 0.02) - mean).

    Attributes
    ----------
    theta_ : ndarray (n-1,)
        Thresholds, ascending.
    location_ : ndarray (m,)
        a, of the predictions as they are; ``offset_`` is subtracted from a.g.
    spread_ : ndarray (2,) or (3,)
        b.
    """

    def fit(self, G: Floats, v: Floats | None, codes: Codes) -> Self:
        """Fit thresholds, location and spread.

        G (N, m) are predictions of the class index made without the item, v (N,) their expected absolute deviations or
        None where nobody knows, codes (N,) classes 0..n-1, each with an item.
        """
        n = int(codes.max()) + 1
        mean = G.mean(axis=1)
        self.mean_, self.scale_ = float(mean.mean()), max(float(mean.std()), LEAST_DEVIATION)
        self.range_ = (float(mean.min()), float(mean.max()))
        self.log_deviation_ = None if v is None else float(_log_deviation(v).mean())
        centre = G.mean(axis=0)
        _, lengths, directions = np.linalg.svd(G - centre, full_matrices=False)
        kept = lengths > REPEATED * lengths.max(initial=0)
        whitening = directions[kept].T / lengths[kept] * np.sqrt(len(G))  # (m, k)
        Z, H = (G - centre) @ whitening, self._spread_features(G, v)
        best = minimize(
            probit_loss,
            _start(Z, codes, n, H.shape[1]),
            args=(Z, H, codes, n),
            jac=True,
            method="L-BFGS-B",
            # Remembering all steps halves their number: thresholds and location go together.
            options={"maxiter": 500, "maxcor": 40, "ftol": 1e-12, "gtol": 1e-7},
        ).x
        self.theta_, a, self.spread_ = unpack(best, n, Z.shape[1])
        self.location_ = whitening @ a
        self.offset_ = float(centre @ self.location_)
        return self

    def log_posteriors(self, G: Floats, v: Floats | None) -> Floats:
        """Return ln P(y = i | x), (N, n), of items with predictions G (N, m) and expected deviations v (N,)."""
        shrink = np.exp(-_bounded(self._spread_features(G, v) @ self.spread_)[0])
        edges = np.concatenate([[-np.inf], self.theta_, [np.inf]])
        t = (edges - (G @ self.location_ - self.offset_)[:, None]) * shrink[:, None]  # (N, n+1)
        return log_mass(t[:, :-1], t[:, 1:])

    def _spread_features(self, G: Floats, v: Floats | None) -> Floats:
        """Return h (N, 2 or 3)."""
        u = (np.clip(G.mean(axis=1), *self.range_) - self.mean_) / self.scale_
        columns = [u, u**2]
        if v is not None:
            columns.append(_log_deviation(v) - (self.log_deviation_ or 0.0))
        return np.stack(columns, axis=1)


def probit_loss(x: Floats, Z: Floats, H: Floats, codes: Codes, n: int) -> tuple[float, Floats]:
    """Return the mean negative log-likelihood with its pull, and its gradient.

    x (n - 1 + k + s,) has theta_0, logarithms of the increments of theta, a (k,) and b (s,); location and spread are
    linear in Z (N, k) and H (N, s).
    """
    k, number = Z.shape[1], len(codes)
    theta, a, b = unpack(x, n, k)
    edges = np.concatenate([[-np.inf], theta, [np.inf]])
    spread, inside = _bounded(H @ b)
    shrink, line = np.exp(-spread), Z @ a
    low, high = (edges[codes] - line) * shrink, (edges[codes + 1] - line) * shrink
    value = log_mass(low, high)
    at_low, at_high = _density_ratio(low, value), _density_ratio(high, value)  # phi / mass
    by_line = (at_low - at_high) * shrink
    with np.errstate(invalid="ignore"):  # infinite edges have no density
        moment = np.where(at_low > 0, at_low * low, 0.0) - np.where(at_high > 0, at_high * high, 0.0)
    # Edge j is the upper one of class j-1 and the lower one of class j.
    by_theta = (
        np.bincount(codes, at_high * shrink, minlength=n)[:-1] - np.bincount(codes, at_low * shrink, minlength=n)[1:]
    )
    later = np.cumsum(by_theta[::-1])[::-1]  # an increment moves all thresholds from its own on
    by_increments = np.concatenate([later[:1], later[1:] * np.diff(theta) * (x[1 : n - 1] < LARGEST_INCREMENT)])
    gradient = np.concatenate([by_increments, by_line @ Z, (moment * inside) @ H])
    loss = -value.sum() + PULL / 2 * (x[n - 1 :] @ x[n - 1 :])
    slope = -gradient
    slope[n - 1 :] += PULL * x[n - 1 :]
    return float(loss / number), slope / number


def unpack(x: Floats, n: int, k: int) -> tuple[Floats, Floats, Floats]:
    """Return theta (n-1,), a (k,) and b of the variables of `probit_loss`."""
    increments, a, b = np.split(x, [n - 1, n - 1 + k])
    steps = np.exp(np.minimum(increments[1:], LARGEST_INCREMENT))
    return increments[0] + np.concatenate([[0.0], np.cumsum(steps)]), a, b


def log_mass(low: Floats, high: Floats) -> Floats:
    """Return ln(Phi(high) - Phi(low)) without cancellation: in the upper tail by its mirror image."""
    upper = low > 0
    low, high = np.where(upper, -high, low), np.where(upper, -low, high)
    top = log_ndtr(high)
    return np.asarray(top + np.log(np.maximum(-np.expm1(log_ndtr(low) - top), LEAST_MASS)))


def _density_ratio(t: Floats, log_masses: Floats) -> Floats:
    """Return phi(t) / mass, which is at most (1 + |t|) / LEAST_MASS.

    Where a step of the line search goes far out, the exponent is a difference of numbers beyond 1e16, and only the
    limit is known.
    """
    largest = np.log1p(np.abs(t)) - np.log(LEAST_MASS)
    return np.asarray(np.exp(np.minimum(-0.5 * t**2 - LOG_ROOT - log_masses, largest)))


def _bounded(spread: Floats) -> tuple[Floats, Mask]:
    """Return the spread within its bounds, and where these do not hold it."""
    return np.clip(spread, -LARGEST_SPREAD, LARGEST_SPREAD), np.abs(spread) < LARGEST_SPREAD


def _log_deviation(v: Floats) -> Floats:
    return np.asarray(np.log(np.maximum(v, LEAST_DEVIATION)))


def _start(Z: Floats, codes: Codes, n: int, n_spread: int) -> Any:
    """Return the variables where y is a.g plus normal noise: least squares."""
    a = Z.T @ (codes - codes.mean()) / len(codes)
    noise = max(float((codes - codes.mean() - Z @ a).std()), LEAST_DEVIATION)
    first = (0.5 - codes.mean()) / noise
    return np.concatenate([[first], np.full(n - 2, -np.log(noise)), a / noise, np.zeros(n_spread)])
