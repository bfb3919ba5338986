"""Groups within groups: parts, such as months, share the effect of the group.

The state of part t of group g, theta_gt = (population prevalences, effect on f), is

    theta_gt = theta_0 + u_g + w_gt,    u_g ~ N(0, J),    w_gt ~ N(0, J_w).

J_w is learned if the training groups have parts, and J / 2 otherwise.

With H = (M, 1), the mean representation of N items has the deviation

    z = q - H theta_0 = H u_g + H w_gt + noise,    Cov(noise) = (S - H J H') / N,

S the covariance of single items. In coordinates in which S - H J H' is 1 and H J_w H' is diagonal, lam, the parts have
the variances v = lam + 1 / N around H u_g. A group is then one observation of H u_g: the mean of z with weights 1 / v,
which has the variances 1 / sum_t 1 / v. Given u_g, the parts are independent, and with J_pH the first n rows of J_w H'

    p_hat = mu + u_hat + J_pH v^-1 (z - H u_hat).

If all parts of a group are equal, w = 0, their estimates differ by J_pH v^-1 noise alone. Parts are compared by the
covariance of this noise: the effect of the group, and its error, are the same in all of them. If J_w is learned, the
effect of parts on the features is a part of the noise: only the prevalences of the parts are then the same.

Training items of the group are one more part of it, of which the prevalences are seen.
"""

from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
from scipy.linalg import block_diag, eigh

from ordinalq._utils.validation import Array, Codes, Floats, Mask
from ordinalq.inference.group_model import (
    DROP,
    FIRST_K,
    PARTS,
    RANK_TOLERANCE,
    GroupModel,
    GroupSums,
    Prediction,
    State,
    TrainingRows,
    error_of_rare_classes,
    log_odds,
    medians,
    own_scatter,
    predict,
    project,
)
from ordinalq.samples.keys import Keys

# Noise of single items within a group, at least this part of that of all items.
LEAST_NOISE = 0.05


def learn_parts(model: GroupModel, sums: GroupSums, groups: Codes) -> GroupModel:
    """Return the model with J_w, learned from labelled parts of groups.

    With the mean (e, r) of a part, x_t, the mean of its group with weights c, x_g, and h = c (1 - c / sum_g c),

        sum c (x_t - x_g)(x_t - x_g)'  has the expectation  sum h J_w + sum (h / N) V,

    V the covariance of single items within parts. As for J, k dimensions of the assumed J / 2 are added, and the noise
    of the estimate is the least variance. Without groups that have two parts, nothing is learned.

    Parameters
    ----------
    model : GroupModel
        Model of the training groups.
    sums : GroupSums
        Sums over the labelled items of P parts.
    groups : ndarray (P,)
        Group of each part.

    Returns
    -------
    GroupModel
    """
    state, sums, M = State.of(model), sums.in_items(), model.M
    # Sums over single items, of their squares and by parts, in coordinates in which J is regular.
    ee, ef, ff = np.diag(sums.counts.sum(axis=0)), sums.cross.sum(axis=0), sums.squares.sum(axis=0)
    er, rr = ef - ee @ M.T, ff - M @ ef - (M @ ef).T + M @ ee @ M.T
    squares = state.to_theta @ np.block([[ee, er], [er.T, rr]]) @ state.to_theta.T
    N = sums.counts.sum(axis=1)
    X = np.hstack([sums.counts, sums.cross.sum(axis=1) - sums.counts @ M.T]) @ state.to_theta.T
    X, N, groups = X[N > 0], N[N > 0, None], groups[N > 0]
    within = (squares - (X / N).T @ X) / max(N.sum() - len(N), 1)
    c = N / (N + FIRST_K)
    total = _sums(c, groups)
    apart = X / N - (_sums(c * X / N, groups) / np.maximum(total, np.finfo(float).tiny))[groups]
    h = c * (1 - c / total[groups])
    if not (h > RANK_TOLERANCE).any():
        return model
    n_parts = float(h.sum() ** 2 / (c * h).sum())
    learned = ((c * apart).T @ apart - (h / N).sum() * within) / h.sum()
    J = (n_parts * learned + len(state.J) * PARTS * state.J) / (n_parts + len(state.J))
    Omega = state.to_theta @ block_diag(model.B, model.W) @ state.to_theta.T
    size, vectors = eigh((J + J.T) / 2, Omega)
    noise = np.sqrt(2 / n_parts) * float((h / N).sum() / h.sum())
    root = state.to_full @ Omega @ vectors * np.sqrt(np.maximum(size, noise))
    of_parts = root @ root.T
    fallback = None if model.fallback is None else replace(model.fallback, of_parts=of_parts)
    return replace(model, of_parts=of_parts, fallback=fallback)


class Parts(NamedTuple):
    """Predictions of B parts of groups, and values for their comparison.

    Attributes
    ----------
    prediction : Prediction
        Prediction of each part.
    linear : ndarray (B, n)
        Estimates before they are limited to the simplex.
    sampling : ndarray (B, n, n)
        Covariance of the linear estimate of each part, if no part of its group differs from the others.
    response : ndarray (B, n)
        Ratio of the estimated to the true deviation of a part from its group, if items of a class have the same
        features in all parts: of the cumulative prevalences but the last and of the mean class. Estimates are drawn to
        the group.

    The last three are NaN for parts that are predicted one by one.
    """

    prediction: Prediction
    linear: Floats
    sampling: Floats
    response: Floats

    @classmethod
    def independent(cls, prediction: Prediction) -> "Parts":
        """Return parts that are predicted one by one."""
        B, n = prediction.mean.shape
        return cls(prediction, np.full((B, n), np.nan), np.full((B, n, n), np.nan), np.full((B, n), np.nan))

    def replaced(self, rows: Mask, some: "Parts") -> "Parts":
        """Return the same with other predictions of the parts of a mask (B,)."""
        new = replace(some.prediction, unlabelled=some.prediction.total)
        arrays: dict[str, Any] = {
            name: _with_values(value, rows, getattr(new, name))
            for name, value in vars(self.prediction).items()
            if isinstance(value, np.ndarray)
        }
        others = (_with_values(old, rows, one) for old, one in zip(self[1:], some[1:], strict=True))
        return Parts(replace(self.prediction, **arrays), *others)


def _with_values(array: Array, rows: Mask, values: Array) -> Array:
    """Return a copy with other values in the rows of a mask."""
    changed = array.copy()
    changed[rows] = values
    return changed


def groups_of_parts(keys: Keys | None, trained: tuple[str, ...]) -> tuple[Keys, Codes] | None:
    """Return the groups of B parts and the group of each, (B,), or None.

    They are if they have the columns of the training groups and others.

    >>> keys, _ = Keys.of({"shop": ["a", "a", "b"], "month": [1, 2, 1]})
    >>> groups_of_parts(keys, ("shop",))[1].tolist(), groups_of_parts(keys, ("town",))
    ([0, 0, 1], None)
    """
    if keys is None or not trained or not set(trained) < set(keys.names):
        return None
    return Keys.of(Keys([column for column in keys.columns if column.name in trained]).frame())


def predict_parts(
    model: GroupModel,
    Q: Floats,
    sizes: Floats,
    groups: Codes,
    estimand: str,
    values: Floats | None = None,
    training: TrainingRows | None = None,
) -> Parts:
    """Predict the prevalences of parts of groups.

    Parameters
    ----------
    model : GroupModel
        Model of the training groups.
    Q : ndarray (B, d)
        Mean representation of each part.
    sizes : ndarray (B,)
        Number of its items.
    groups : ndarray (B,)
        Its group, 0..G-1.
    estimand : {"sample", "population"}
        Whether prevalences are those of the items or of their population.
    values : ndarray (n,), default=None
        Values of the classes; None stands for the positions 1..n.
    training : TrainingRows, default=None
        Training items of the G groups. They do not count for groups that are unlike the training groups.

    Returns
    -------
    Parts
    """
    Q, sizes = np.asarray(Q, dtype=np.float64), np.asarray(sizes, dtype=np.float64)
    n_items = _sums(sizes[:, None], groups)[:, 0]
    means = _sums(sizes[:, None] * Q, groups) / n_items[:, None]
    base = predict(model, means, n_items, estimand)
    names = ("centre", "distance", "unlike", "widening", "dof", "mean_dof")
    whole = {name: getattr(base, name)[groups] for name in names}
    got, unlike = condition_parts(model, Q, sizes, groups, estimand, values, training), whole["unlike"]
    if model.fallback is not None and unlike.any():
        # As for groups: the error is that of the weak prior, and the estimate too if the learned prior is given up.
        rows = np.flatnonzero(unlike)
        some = np.unique(groups[rows], return_inverse=True)[1]
        other = condition_parts(model.fallback, Q[rows], sizes[rows], some, estimand, values)
        given_up = (log_odds(model, means, n_items) - model.worst > np.log(DROP))[groups[rows]]
        apart = np.where(given_up[:, None], 0, other.mean - got.mean[rows])
        got.covariance[rows] = other.covariance + apart[:, :, None] * apart[:, None, :]
        for name in ("mean", "sampling", "response"):
            getattr(got, name)[rows[given_up]] = getattr(other, name)[given_up]
        if got.shared is not None and other.shared is not None:
            got.shared[rows] = other.shared
    E = got.covariance
    p = project(got.mean, E)
    estimate = medians(p, E, whole["centre"])
    if estimand == "population":
        E = E + np.where(unlike[:, None, None], 0, own_scatter(model, p, sizes))
    if model.rarity is not None:
        E = E + error_of_rare_classes(model, model.rarity, Q, sizes, estimand, p)
    found = replace(base, prevalences=estimate, mean=p, covariance=E, n_items=sizes, shared=got.shared, **whole)
    return Parts(found, got.mean, got.sampling, got.response)


class Conditioned(NamedTuple):
    """Prevalences of b parts given all means: mean, covariance, fields of `Parts`."""

    mean: Floats
    covariance: Floats
    sampling: Floats
    response: Floats
    shared: Floats | None


def condition_parts(
    model: GroupModel,
    Q: Floats,
    sizes: Floats,
    groups: Codes,
    estimand: str,
    values: Floats | None = None,
    training: TrainingRows | None = None,
) -> Conditioned:
    """Return the distribution of prevalences of parts given all means.

    See `predict_parts`.
    """
    n, M = model.n_classes, model.M
    T, lam = _directions(model)
    J_w, L = model.part_effect, np.tri(n)[:-1]
    inverse = (1 / sizes)[:, None]
    v = lam + inverse
    z = (Q - M @ model.mu - model.shift) @ T
    J_pH, J_HH = (model.A @ M.T + model.K) @ T, T.T @ _between(model, model.effect) @ T
    # The group: one observation of H u, the mean over its parts.
    precision = _sums(1 / v, groups)
    mean = _sums(z / v, groups) / precision
    prior, J = np.zeros(n + len(lam)), np.block([[model.A, J_pH], [J_pH.T, J_HH]])
    if training is not None:
        seen = training.condition(J[:, :n] @ L.T, L @ (model.A + J_w[:n, :n]) @ L.T)
        prior, J = seen[0], J - seen[1]
    both = J[..., n:]
    gain = both @ np.linalg.inv(J[..., n:, n:] + (1 / precision)[:, :, None] * np.eye(len(lam)))
    u = prior + np.matmul(gain, (mean - prior[..., n:])[:, :, None])[:, :, 0]
    left = J - gain @ np.swapaxes(both, -1, -2)
    # The parts.
    X, own = (J_w[:n, :n] @ M.T + J_w[:n, n:]) @ T, J_w[:n, :n]
    if estimand == "sample":
        within = model.B - model.A
        X, own = X + inverse[:, :, None] * (within @ M.T @ T), own + inverse[:, :, None] * within
    G = X / v[:, None, :]
    p = model.mu + u[groups, :n] + np.matmul(G, (z - u[groups, n:])[:, :, None])[:, :, 0]
    F = np.concatenate([np.broadcast_to(np.eye(n), (len(Q), n, n)), -G], axis=2)
    explained = np.matmul(G, np.swapaxes(X, -1, -2))
    covariance = own - explained + F @ left[groups] @ F.transpose(0, 2, 1)
    # Items of equal parts have other prevalences by chance.
    sampling, response = own - explained, np.ones((len(Q), n))
    if estimand == "population":
        sampling = np.matmul(G * inverse[:, :, None], G.transpose(0, 2, 1))
        if model.of_parts is not None:
            GT = G @ T.T
            sampling = sampling + GT @ _given_prevalences(J_w, n) @ GT.transpose(0, 2, 1)
        response = _ratio(G @ (T.T @ M @ own), own, values)
    shared = None
    if model.common is not None:
        of_p, of_f = np.split(model.common, [n])
        of_z = T.T @ (M @ of_p + of_f)
        moved = gain[groups] @ of_z
        shared = of_p - moved[:, :n] - G @ (of_z - moved[:, n:])
    return Conditioned(p, covariance, sampling, response, shared)


def _sums(X: Floats, groups: Codes) -> Floats:
    """Return the sums of rows X (B, r) over the parts of each group, (G, r)."""
    return np.stack([np.bincount(groups, weights=column) for column in X.T], axis=1).astype(np.float64)


def _between(model: GroupModel, J: Floats) -> Floats:
    """Return H J H' (d, d), the covariance of q for a covariance J of the state."""
    H = np.hstack([model.M, np.eye(len(model.M))])
    return np.asarray(H @ J @ H.T)


def _given_prevalences(J: Floats, n: int) -> Floats:
    """Return the covariance (d, d) of the effect on features given prevalences."""
    K = J[:n, n:]
    return np.asarray(J[n:, n:] - K.T @ np.linalg.pinv(J[:n, :n], rcond=RANK_TOLERANCE, hermitian=True) @ K)


def _directions(model: GroupModel) -> tuple[Floats, Floats]:
    """Return T (d, r) and lam (r,) that diagonalize both covariances.

    T' (S - H J H') T = 1 and T' H J_w H' T = diag(lam).
    """
    S = model.M @ model.B @ model.M.T + model.W
    size, U = np.linalg.eigh(S)
    kept = size > RANK_TOLERANCE * size[-1]
    Z = U[:, kept] / np.sqrt(size[kept])
    part, Y = np.linalg.eigh(np.eye(Z.shape[1]) - Z.T @ _between(model, model.effect) @ Z)
    Z = Z @ Y / np.sqrt(np.maximum(part, LEAST_NOISE))
    lam, Y = np.linalg.eigh(Z.T @ _between(model, model.part_effect) @ Z)
    return Z @ Y, np.maximum(lam, 0)


def _ratio(estimated: Floats, C: Floats, values: Floats | None) -> Floats:
    """Return u' (estimated) u / u' C u of cumulative prevalences and mean, (B, n)."""
    n = len(C)
    numbers = np.arange(1.0, n + 1) if values is None else values
    U = np.column_stack([np.tri(n).T[:, :-1], numbers])
    whole = np.maximum(np.einsum("is,ij,js->s", U, C, U), np.finfo(float).tiny)
    return np.asarray(np.einsum("is,bij,js->bs", U, estimated, U, optimize=True) / whole)
