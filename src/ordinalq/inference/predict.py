r"""Predicted shares of groups: the best linear predictor, on the simplex, with an alarm for groups unlike the others.

The estimate is p_hat of `condition`, projected onto the simplex in the norm of E^{-1}, then the *median* of each
cumulated share, by a Beta distribution with that mean and the precision u'Bu / u'Eu - 1: the median is what absolute
errors ask for.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.special import betaincinv, gammaincinv

from ordinalq._utils.validation import Floats, Mask, check_choice
from ordinalq.inference.condition import condition, log_odds
from ordinalq.inference.group_model import GroupModel, multinomial
from ordinalq.solvers.quadratic import simplex_qp

TARGETS = ("sample", "population")
# A group is unlike the training groups where its odds are 1 + UNLIKE / G times those of the worst of them: the worst of
# many is a good measure, beyond which a like group is once in G + 1 times. Where they are DROP times those, the learned
# prior is given up.
UNLIKE, DROP = 200.0, 10_000.0
# Without learned tails a distance beyond this quantile widens the intervals.
WIDEN_BEYOND = 0.99
# Rows that are worked on at once: 1000 groups of 20 classes take 3 megabytes per matrix.
CHUNK = 4096


@dataclass(frozen=True, eq=False)
class Prediction:
    """Predicted shares of B groups, of these very items or their population, with the covariance of their errors."""

    of: str  # "sample" or "population"
    prevalences: Floats  # (B, n) the estimate: medians of the cumulated shares, differenced
    mean: Floats  # (B, n) p_hat on the simplex, the centre of the intervals
    covariance: Floats  # (B, n, n) E, before it is widened
    centre: Floats  # (B, n) mu of the prior that was used
    n_items: Floats  # (B,) N; with labels those without one
    distance: Floats  # (B,) d^2 = z' C_qq^{-1} z
    rank: int  # expectation of d^2: the number of directions of q
    unlike: Mask  # (B,) groups unlike the training groups
    widening: Floats  # (B,) factor of E for the uncertainty of J, which grows with d^2
    dof: Floats  # (B,) degrees of freedom of the errors of shares
    mean_dof: Floats  # (B,) those of the error of the mean class
    unlabelled: Floats | None = None  # (B, n, n) E as it was before labels of the group were used


def predict(model: GroupModel, Q: Floats, sizes: Floats, of: str = "sample") -> Prediction:
    """Predict the shares of groups from their mean representations Q (B, d) and sizes (B,).

    A group is unlike the training groups where q speaks for other shares than theirs, by `log_odds`, 1 + 200 / G times
    more than that of any training group does. Its covariance becomes what the estimate would err by if the weak prior
    were right; from ten thousand times on, the weak prior gives the estimate, too.
    """
    check_choice("of", of, TARGETS)
    Q, sizes = np.asarray(Q, dtype=np.float64), np.asarray(sizes, dtype=np.float64)
    parts = [_predict(model, Q[i : i + CHUNK], sizes[i : i + CHUNK], of) for i in range(0, max(len(Q), 1), CHUNK)]
    return join(parts)


def _predict(model: GroupModel, Q: Floats, sizes: Floats, of: str) -> Prediction:
    got = condition(model, Q, sizes, of)
    centre, E = np.tile(model.mu, (len(Q), 1)), got.covariance
    p = project(got.mean, E)
    estimate = medians(p, E, centre)
    if of == "population":
        E = E + _own_scatter(model, p, sizes)
    widening, dof = _widening(model, got.distance, got.rank), np.full(len(Q), _dof(model))
    mean_dof = np.full(len(Q), _mean_dof(model))
    unlike = np.zeros(len(Q), dtype=bool)
    if model.fallback is not None:
        odds = log_odds(model, Q, sizes) - model.worst
        unlike = odds > np.log1p(UNLIKE / model.n_groups)
        dropped = odds[unlike] > np.log(DROP)
        other = condition(model.fallback, Q[unlike], sizes[unlike], of)
        centre[unlike], dof[unlike], mean_dof[unlike] = model.fallback.mu, np.inf, np.inf
        widening[unlike] = _widening(model.fallback, other.distance, got.rank)
        q = project(other.mean, other.covariance)
        p[unlike] = np.where(dropped[:, None], q, p[unlike])
        estimate[unlike] = np.where(dropped[:, None], medians(q, other.covariance, centre[unlike]), estimate[unlike])
        apart = q - p[unlike]
        E[unlike] = other.covariance + apart[:, :, None] * apart[:, None, :]
    return Prediction(of, estimate, p, E, centre, sizes, got.distance, got.rank, unlike, widening, dof, mean_dof)


def _own_scatter(model: GroupModel, p: Floats, sizes: Floats) -> Floats:
    """Return by how much items of shares p (B, n) scatter about their population otherwise than E has it, (B, n, n).

    Given the shares of a sample, those of its population have the covariance A - A (A + B / N)^{-1} A, which is
    B / (N + 1/a) for A = a B. The model has B of its mean shares mu there, but items of this group scatter with that of
    p: by less where most are of few classes, by more where they are of all. Half an item of each class counts beside p.
    """
    N, a = sizes[:, None], model.correlation
    B = multinomial((N * p + 0.5) / (N + p.shape[1] / 2))
    return np.asarray((B - model.B) * (a / (1 + a * sizes))[:, None, None])


def is_unlike(model: GroupModel, Q: Floats, sizes: Floats) -> Mask:
    """Return which groups are unlike the training groups, (B,), see :func:`predict`."""
    if model.fallback is None:
        return np.zeros(len(Q), dtype=bool)
    return np.asarray(log_odds(model, Q, sizes) - model.worst > np.log1p(UNLIKE / model.n_groups))


def join(parts: list[Prediction]) -> Prediction:
    """Join the predictions of successive parts of a batch."""
    if len(parts) == 1:
        return parts[0]
    first = parts[0]
    fields: dict[str, Any] = {}
    for name in Prediction.__annotations__:
        value = getattr(first, name)
        fields[name] = np.concatenate([getattr(p, name) for p in parts]) if isinstance(value, np.ndarray) else value
    return Prediction(**fields)


def _dof(model: GroupModel) -> float:
    """Degrees of freedom of p given q where J has `model.dof`: one is lost per class, at most half of all."""
    return max(model.dof - model.n_classes + 2, model.dof / 2)


def _mean_dof(model: GroupModel) -> float:
    """Degrees of freedom of the mean class.

    It is one direction, in which groups differ most; the template does not know how much. Group effects have heavy
    tails, so that G groups tell of their spread what half as many normal ones would.
    """
    return max(model.n_groups / 2, 2.0) if np.isfinite(model.dof) else np.inf


def _widening(model: GroupModel, distance: Floats, rank: int) -> Floats:
    """Factor of E, where J was learned from few groups or does not fit.

    If J has an inverse Wishart distribution worth G' groups, p given q is a Student vector whose scale is
    E (G' + d^2) / (G' - n + 2) (1 + 1/G'): the farther a group is from the training groups, the wider. Where nothing
    was learned, the factor is 1 up to the 99 % quantile of d^2, and proportional to d^2 beyond.
    """
    if np.isfinite(model.dof):
        return np.asarray((model.dof + distance) / _dof(model) * (1 + 1 / model.dof))
    return np.asarray(np.maximum(1, distance / (2 * gammaincinv(rank / 2, WIDEN_BEYOND))))


def project(P: Floats, E: Floats) -> Floats:
    """The most probable shares: the point of the simplex nearest to P (B, n) in the norm of E^{-1} (B, n, n)."""
    n = P.shape[1]
    outside = (P < 0).any(axis=1)
    result = P.copy()
    if outside.any():
        E = E[outside]
        size = np.trace(E, axis1=1, axis2=2)[:, None, None] / n
        # E is singular along (1, ..., 1), where p cannot move anyway, and nearly so where a share is known.
        inverse = np.linalg.inv(E + size * (1e-3 * np.eye(n) + 1) + np.finfo(float).tiny)
        # Scaled to entries of order one.
        inverse *= size
        result[outside] = simplex_qp(inverse, np.matmul(inverse, P[outside][:, :, None])[:, :, 0])[0]
    return np.asarray(result / result.sum(axis=1, keepdims=True))


def medians(p: Floats, E: Floats, centre: Floats) -> Floats:
    """Differences of the medians of the cumulated shares, (B, n).

    The cumulated share u'p is taken as a Beta variable with mean u'p and precision nu = u'Bu / u'Eu - 1, B that of the
    prior's mean (B, n): a prediction that is worth nu items.
    """
    c = np.clip(np.cumsum(p, axis=1)[:, :-1], 0, 1)
    prior = np.cumsum(centre, axis=1)[:, :-1]
    variance = np.maximum(cumulated_variance(E), np.finfo(float).tiny)
    nu = np.maximum(prior * (1 - prior) / variance - 1, 0.02)
    alpha, beta = c * nu, (1 - c) * nu
    inside = (alpha > 0) & (beta > 0)
    # For large parameters (alpha - 1/3) / (alpha + beta - 2/3) is exact to four digits, and much faster.
    large = inside & (np.minimum(alpha, beta) > 2)
    median = c.copy()
    median[large] = (alpha[large] - 1 / 3) / (nu[large] - 2 / 3)
    small = inside & ~large
    median[small] = betaincinv(alpha[small], beta[small], 0.5)
    # Medians of cumulated shares need not increase; half way between the two hulls, so that neither end is preferred.
    falling = np.minimum.accumulate(median[:, ::-1], axis=1)[:, ::-1]
    median = (np.maximum.accumulate(median, axis=1) + falling) / 2
    ends = np.zeros((len(p), 1)), np.ones((len(p), 1))
    return np.diff(np.hstack([ends[0], median, ends[1]]), axis=1)


def cumulated_variance(E: Floats) -> Floats:
    """Variances of the cumulated shares but the last, for shares with covariance E (B, n, n): (B, n - 1)."""
    both = np.cumsum(np.cumsum(E, axis=1), axis=2)
    return np.asarray(np.maximum(np.diagonal(both, axis1=1, axis2=2)[:, :-1], 0))
