r"""Labels of the group itself: few, many or none, by one formula; and an interval that is valid whatever else is wrong.

With theta = (population shares, group effect on the looks) ~ N((mu, shift), J), the m labelled items of the group show
theta with noise Omega / m, and the U items without a label show H theta with noise H Omega H' / U. Conditioning on the
first gives a prior of this very group, and the second works as without labels. Omega, the covariance of the items
within the group, follows its shares: (labelled counts + nu p_hat + mu) / (m + nu + 1), where p_hat is the estimate
without labels and nu the number of items that it is worth, so that few labels do not judge themselves.

The sample consists of the labelled items, which are known, and the others: its error has the factor (U / N)^2.
"""

from dataclasses import replace
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from scipy.special import stdtrit

from ordinalq.bounds import Bounds
from ordinalq.effects.bounds import bounds, stack, statistics
from ordinalq.effects.model import RANK_TOLERANCE, GroupModel, multinomial
from ordinalq.effects.predict import CHUNK, Prediction, medians, predict, project
from ordinalq.validation import Floats, check_choice, check_real

Codes = npt.NDArray[np.intp]

# Variance of a share that is known but for rounding errors.
KNOWN = 1e-16
# Labels that `labels_needed` looks for at most.
MOST_LABELS = 2**20


class GroupLabels(NamedTuple):
    """Labelled items of B groups: class counts (B, n) and sums of f (B, d)."""

    counts: Floats
    sums: Floats

    @property
    def n_labelled(self) -> Floats:
        """Number of labelled items m, (B,)."""
        return np.asarray(self.counts.sum(axis=1))


def predict_labelled(
    model: GroupModel, Q: Floats, n_unlabelled: Floats, labels: GroupLabels, of: str = "sample"
) -> Prediction:
    """Predict the shares of groups with some labelled items.

    Parameters
    ----------
    model : GroupModel
    Q : ndarray (B, d)
        Mean representation of the items without a label; any where there are none.
    n_unlabelled : ndarray (B,)
        Their number U.
    labels : GroupLabels
        A random draw of the group's items.
    of : {"sample", "population"}, default="sample"
        All items, labelled or not, or the population behind them.
    """
    U, m = np.asarray(n_unlabelled, dtype=np.float64), labels.n_labelled
    # A group whose items are all labelled has no q; its labels stand for it, and only to judge whether it is unlike.
    Q = np.where(U[:, None] > 0, Q, labels.sums / np.maximum(m, 1)[:, None])
    base = predict(model, Q, np.where(U > 0, U, np.maximum(m, 1)), of)
    p, E = base.mean.copy(), base.covariance.copy()
    for part in (model, model.fallback):
        rows = np.flatnonzero((m > 0) & (base.unlike if part is model.fallback else ~base.unlike))
        if part is None:
            continue
        for chunk in np.split(rows, range(CHUNK // 4, len(rows), CHUNK // 4)) if len(rows) else []:
            some = GroupLabels(labels.counts[chunk], labels.sums[chunk])
            got = _condition(part, Q[chunk], U[chunk], some, base.mean[chunk], base.covariance[chunk], of)
            p[chunk], E[chunk] = got
    p, with_labels = project(p, E), (m > 0)[:, None]
    return replace(
        base,
        prevalences=np.where(with_labels, medians(p, E, base.centre), base.prevalences),
        mean=np.where(with_labels, p, base.mean),
        covariance=E,
        n_items=U + m,
        dof=base.dof + m,
        mean_dof=base.mean_dof + m,
        unlabelled=base.covariance,
    )


def _condition(
    model: GroupModel, Q: Floats, U: Floats, labels: GroupLabels, p: Floats, E: Floats, of: str
) -> tuple[Floats, Floats]:
    """Return mean and covariance of the shares of b groups, each with labels.

    theta is written as the n - 1 cumulated shares and r coordinates of the looks.
    """
    n, M = model.n_classes, model.M
    m = labels.n_labelled[:, None, None]
    size, vectors = np.linalg.eigh(M @ model.B @ M.T + model.W)
    kept = size > RANK_TOLERANCE * size[-1]
    Z = vectors[:, kept] / np.sqrt(size[kept])
    L = np.tril(np.ones((n, n)))[:-1]
    back = np.diff(np.vstack([np.zeros(n - 1), np.eye(n - 1), np.zeros(n - 1)]), axis=0)  # p = back alpha + (0, ..., 1)
    to_theta = np.block([[L, np.zeros((n - 1, len(M)))], [np.zeros((Z.shape[1], n)), Z.T]])
    J = to_theta @ model.effect @ to_theta.T
    prior = to_theta @ np.r_[model.mu, model.shift]
    H = np.hstack([Z.T @ M @ back, np.eye(Z.shape[1])])
    Omega = _within(model, labels, p, E, L, Z)

    # The labels: theta itself, with noise.
    seen = np.hstack([labels.counts, labels.sums - labels.counts @ M.T]) / m[:, :, 0] @ to_theta.T
    gain = np.linalg.solve(J + Omega / m, np.broadcast_to(J, Omega.shape)).transpose(0, 2, 1)
    mean = prior + np.matmul(gain, (seen - prior)[:, :, None])[:, :, 0]
    C = J - np.matmul(gain, np.broadcast_to(J, Omega.shape))

    # The others: H theta, with noise that p has a part in.
    some = U > 0
    spread = Omega / np.maximum(U, 1)[:, None, None]
    target = C + spread if of == "sample" else C
    HC = np.matmul(H, C + spread)
    z = (Q - M[:, -1]) @ Z - mean @ H.T
    cross = np.matmul(H, target)
    gain = np.linalg.solve(np.matmul(HC, H.T), cross).transpose(0, 2, 1) * some[:, None, None]
    mean = mean + np.matmul(gain, z[:, :, None])[:, :, 0]
    C = target - np.matmul(gain, cross)

    shares = mean[:, : n - 1] @ back.T + np.eye(n)[-1]
    error = np.matmul(back, np.matmul(C[:, : n - 1, : n - 1], back.T))
    if of == "sample":
        N = (U + m[:, 0, 0])[:, None]
        shares = (labels.counts + U[:, None] * shares) / N
        error = error * ((U[:, None] / N) ** 2)[:, :, None]
    return shares, error


def _within(model: GroupModel, labels: GroupLabels, p: Floats, E: Floats, L: Floats, Z: Floats) -> Floats:
    """Omega of each group, (b, k, k): covariance of cumulated one-hot classes and of the looks of its items."""
    worth = np.trace(multinomial(model.mu)) / np.maximum(np.trace(E, axis1=1, axis2=2), np.finfo(float).tiny)
    # More items than could be labelled would not change the shares any more.
    worth = np.minimum(worth, MOST_LABELS)[:, None]
    shares = (labels.counts + worth * p + model.mu) / (labels.n_labelled[:, None] + worth + 1)
    k, n = L.shape[0], len(Z.T) + L.shape[0]
    Omega = np.zeros((len(p), n, n))
    Omega[:, :k, :k] = L @ multinomial(shares) @ L.T
    Omega[:, k:, k:] = Z.T @ model.W @ Z
    return Omega


def labels_needed(
    model: GroupModel,
    Q: Floats,
    sizes: Floats,
    width: float,
    *,
    statistic: int | None = None,
    level: float = 0.95,
    of: str = "sample",
) -> npt.NDArray[np.int64]:
    """How many items of each group to label, so that its interval is no wider than `width`; drawn at random.

    Parameters
    ----------
    model, Q, sizes
        As for :func:`predict`: the groups, before any label.
    width : float
        Upper minus lower bound: in classes for the mean class, in shares for a class.
    statistic : int, default=None
        Index of a class; None stands for the mean class.
    level, of
        Of the interval.

    Returns
    -------
    ndarray (B,)
        0 where the interval is narrow enough as it is; at most the number of items for the sample.
    """
    check_choice("of", of, ("sample", "population"))
    width = check_real("width", width, low=0, open_low=True)
    Q, sizes = np.asarray(Q, dtype=np.float64), np.asarray(sizes, dtype=np.float64)
    most = sizes if of == "sample" else np.full(len(sizes), float(MOST_LABELS))
    shares = predict(model, Q, sizes, of).mean

    def too_wide(m: Floats) -> npt.NDArray[np.bool_]:
        # Labels as they are expected: like the group, in shares and in looks.
        U = sizes - m if of == "sample" else sizes
        labels = GroupLabels(m[:, None] * shares, m[:, None] * Q)
        got = bounds(predict_labelled(model, Q, U, labels, of), level)
        if statistic is None:
            return np.asarray(got.mean_upper - got.mean_lower > width)
        return np.asarray(got.upper[:, statistic] - got.lower[:, statistic] > width)

    low, high = np.full(len(sizes), -1.0), most.copy()
    # Invariant: too wide at low (or low = -1), narrow enough at high.
    while (high - low > 1).any():
        middle = np.where(high - low > 1, np.floor((low + high) / 2), high)
        wide = too_wide(middle)
        low, high = np.where(wide, np.minimum(middle, high - 1), low), np.where(wide, high, middle)
    return high.astype(np.int64)


def design_based(
    model: GroupModel,
    F: Floats,
    codes: Codes,
    groups: Codes,
    Q: Floats,
    n_unlabelled: Floats,
    *,
    level: float = 0.95,
    of: str = "sample",
) -> tuple[Floats, Bounds]:
    r"""Estimates and intervals that rest on the random draw of the labels alone.

    With g = beta' f, any fixed linear prediction of e, the difference estimator is mean_L e + mean_U g - mean_L g. Its
    error is that of eps = e - g, which needs no assumption on groups, classes or shift. The variance of eps, relative
    to that of e itself, says how many labels without any f the m labels are worth; the interval of a share is Wilson's
    for that number, with a Student quantile, and that of the mean class is Student's. Where the sample is asked for,
    the labelled part of it has no error: the factor 1 - m / N.

    Parameters
    ----------
    model : GroupModel
        Gives beta.
    F, codes, groups : ndarray (N_L, d), (N_L,), (N_L,)
        The labelled items, with classes and groups 0..B-1.
    Q, n_unlabelled : ndarray (B, d), (B,)
        Mean and number of the other items.
    level, of
        Of the intervals.

    Returns
    -------
    estimates : ndarray (B, n)
        Not cut to [0, 1]; NaN without labels.
    Bounds
        All of [0, 1] with fewer than two labels.
    """
    check_choice("of", of, ("sample", "population"))
    n, B = model.n_classes, len(Q)
    S = model.M @ model.B @ model.M.T + model.W
    beta = np.linalg.pinv(S, rcond=RANK_TOLERANCE, hermitian=True) @ model.M @ model.B
    U = np.asarray(n_unlabelled, dtype=np.float64)[:, None]
    m = np.bincount(groups, minlength=B).astype(np.float64)[:, None]
    Y, g = statistics(np.eye(n)[codes]), statistics(F @ beta)
    mean_y, var_y = _moments(Y, groups, m)
    mean_g, var_g = _moments(g, groups, m)
    _, var_eps = _moments(Y - g, groups, m)
    some = U > 0
    with np.errstate(invalid="ignore", divide="ignore"):
        rest = mean_y + np.where(some, statistics(Q @ beta) - mean_g, 0)
        estimate = (m * mean_y + U * rest) / (m + U) if of == "sample" else rest
        # The mean of eps over m labels; then what is left of it, or the mean of g over the others.
        error = (
            var_eps * (1 - m / (m + U))
            if of == "sample"
            else np.where(some, var_eps + m / np.maximum(U, 1) * var_g, var_y)
        )
        lower, upper = _wilson(estimate, error, var_y, m, level)
        t = stdtrit(m[:, 0] - 1, (1 + level) / 2)
        half = t * np.sqrt(error[:, -1] / m[:, 0])
        lower[:, -1], upper[:, -1] = estimate[:, -1] - half, estimate[:, -1] + half
    low, high = np.zeros(2 * n), np.ones(2 * n)
    low[-1], high[-1] = 1, n
    few = m < 2
    lower, upper = np.where(few, low, np.clip(lower, low, high)), np.where(few, high, np.clip(upper, low, high))
    return estimate[:, :n], stack(level, of, lower, upper, np.arange(1.0, n + 1))


def _wilson(estimate: Floats, error: Floats, var_y: Floats, m: Floats, level: float) -> tuple[Floats, Floats]:
    """Wilson's interval of shares for m e-labels' worth, where eps has variance `error` and e has `var_y`, (B, k)."""
    # A quarter of an item, so that no share counts as known because it was not seen.
    worth = m * (var_y + 0.25 / m) / np.maximum(error + 0.25 / m * (error > 0), KNOWN)
    p, z2 = np.clip(estimate, 0, 1), stdtrit(m - 1, (1 + level) / 2) ** 2
    centre = (p + z2 / (2 * worth)) / (1 + z2 / worth)
    half = np.sqrt(z2 * p * (1 - p) / worth + (z2 / (2 * worth)) ** 2) / (1 + z2 / worth)
    return centre - half, centre + half


def _moments(X: Floats, groups: Codes, m: Floats) -> tuple[Floats, Floats]:
    """Mean and variance of the columns of X (N, k) within each group, (B, k); NaN where they need more items."""
    with np.errstate(invalid="ignore", divide="ignore"):
        mean = np.stack([np.bincount(groups, weights=x, minlength=len(m)) for x in X.T], axis=1) / m
        centred = (X - mean[groups]) ** 2
        return mean, np.stack([np.bincount(groups, weights=x, minlength=len(m)) for x in centred.T], axis=1) / (m - 1)
