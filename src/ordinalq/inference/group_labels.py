"""Labels of a group in the model of groups: one formula for any number.

With theta = (population shares, group effect on the looks) ~ N((mu, shift), J), the m labelled items of the group
show theta with noise Omega / m, and the U items without a label show H theta with noise H Omega H' / U. Conditioning
on the first gives a prior of this group, and the second works as without labels. Omega, the covariance of the
items within the group, follows its shares: (labelled counts + nu p_hat + mu) / (m + nu + 1), where p_hat is the
estimate without labels and nu the number of items that it is worth, so that few labels do not judge themselves.

The sample consists of the labelled items, which are known, and the others: its error has the factor (U / N)^2.
"""

from dataclasses import replace
from typing import NamedTuple

import numpy as np

from ordinalq._utils.validation import Floats
from ordinalq.inference.group_model import (
    CHUNK,
    FEW_ITEMS,
    GroupModel,
    Prediction,
    State,
    TrainingRows,
    error_of_rare_classes,
    medians,
    multinomial,
    predict,
    project,
)


class GroupLabels(NamedTuple):
    """Labelled items of B groups: class counts (B, n) and sums of f (B, d)."""

    counts: Floats
    sums: Floats

    @property
    def n_labelled(self) -> Floats:
        """Number of labelled items m, (B,)."""
        return np.asarray(self.counts.sum(axis=1))


# Labels that an estimate without labels is worth at most.
MOST_LABELS = 2**20
# Groups differ in every direction at least as much as sets of 1000 items do: real ones are finite, as the flights of a
# day, or made of parts. Many labels would otherwise find J too narrow where training groups happened to agree; HALF of
# them count half, and none leave the prediction as it is.
DIFFER, HALF = 1e-3, 30


def predict_labelled(
    model: GroupModel,
    Q: Floats,
    n_unlabelled: Floats,
    labels: GroupLabels,
    estimand: str = "sample",
    training: TrainingRows | None = None,
) -> Prediction:
    """Predict prevalences of groups with some randomly labelled items.

    Q (B, d) is the mean representation of the U = `n_unlabelled` (B,) items without a label, any if there are none.
    The shares are those of all items, labelled or not, or of the population behind them. `training` are training items
    of the same groups, which are not items of the sample.
    """
    U, m = np.asarray(n_unlabelled, dtype=np.float64), labels.n_labelled
    # A group whose items are all labelled has no q; its labels stand for it, and only to judge whether it is unlike.
    Q = np.where(U[:, None] > 0, Q, labels.sums / np.maximum(m, 1)[:, None])
    base = predict(model, Q, np.where(U > 0, U, np.maximum(m, 1)), estimand)
    p, E = base.mean.copy(), base.covariance.copy()
    shared = None if base.shared is None else base.shared.copy()
    # A group that is unlike the training groups has changed if it was one of them.
    conditioned = m > 0 if training is None else (m > 0) | (training.known & ~base.unlike)
    for part in (model, model.fallback):
        rows = np.flatnonzero(conditioned & (base.unlike if part is model.fallback else ~base.unlike))
        if part is None:
            continue
        for chunk in np.split(rows, range(CHUNK // 4, len(rows), CHUNK // 4)) if len(rows) else []:
            some = GroupLabels(labels.counts[chunk], labels.sums[chunk])
            known = None if training is None or part is not model else training.take(chunk)
            got = _condition(part, Q[chunk], U[chunk], some, base.mean[chunk], base.covariance[chunk], estimand, known)
            p[chunk], E[chunk] = got[:2]
            if shared is not None:
                shared[chunk] = got[2]
    if model.rarity is not None:
        # Labels of the group replace what the training items do not tell of a rare class, little by little.
        left = FEW_ITEMS / (FEW_ITEMS + m) * conditioned
        if estimand == "sample":
            left = left * (U / np.maximum(U + m, 1)) ** 2
        rare = error_of_rare_classes(model, model.rarity, Q, np.where(U > 0, U, np.maximum(m, 1)), estimand, base.mean)
        E = E + left[:, None, None] * rare
    least, rest = np.zeros_like(p), np.ones((len(m), 1))
    if estimand == "sample":
        # Only the items without a label are uncertain, if there are any.
        N = np.maximum(U + m, 1)[:, None]
        least, rest = np.where(U[:, None] > 0, labels.counts / N, 0), np.where(U > 0, U, m)[:, None] / N
    others, with_labels = project((p - least) / rest, E), conditioned[:, None]
    p, middle = (least + rest * x for x in (others, medians(others, E / rest[:, :, None] ** 2, base.centre)))
    return replace(
        base,
        prevalences=np.where(with_labels, middle, base.prevalences),
        mean=np.where(with_labels, p, base.mean),
        covariance=E,
        n_items=U + m,
        dof=base.dof + m,
        mean_dof=base.mean_dof + m,
        unlabelled=base.total,
        shared=shared,
    )


def _condition(
    model: GroupModel,
    Q: Floats,
    U: Floats,
    labels: GroupLabels,
    p: Floats,
    E: Floats,
    estimand: str,
    training: TrainingRows | None = None,
) -> tuple[Floats, Floats, Floats]:
    """Return mean, covariance and shared error factor of prevalences of b groups.

    The groups have labels, training items or both.
    """
    n, M, state = model.n_classes, model.M, State.of(model)
    m, N = labels.n_labelled[:, None, None], U[:, None, None] + labels.n_labelled[:, None, None]
    prior, H, Omega = np.tile(state.theta, (len(Q), 1)), state.H, within_groups(model, state, labels, p, E)
    J = state.J + DIFFER * m / (m + HALF) * (Omega - state.J)
    if training is not None:
        # Of the effect of a group, theta has the part J (J + J_w)^-1 in common with that of other items of the group.
        of_parts = state.to_theta @ model.part_effect @ state.to_theta.T
        common_part = state.J @ np.linalg.solve(state.J + of_parts, state.J)
        mean, less = training.condition(common_part[:, : n - 1], state.J[: n - 1, : n - 1])
        prior, J = prior + mean, J - less

    # The labels: theta itself, with noise.
    some, m = m > 0, np.maximum(m, 1)
    seen = np.hstack([labels.counts, labels.sums - labels.counts @ M.T]) / m[:, :, 0] @ state.to_theta.T
    gain = np.linalg.solve(J + Omega / m, J).transpose(0, 2, 1) * some
    mean = prior + np.matmul(gain, (seen - prior)[:, :, None])[:, :, 0]
    C = J - np.matmul(gain, J)
    common = np.zeros((len(state.J), 0)) if model.common is None else state.to_theta @ model.common
    common = common - np.matmul(gain, common)

    # The others: H theta, with noise that p has a part in.
    some = U > 0
    spread = Omega / np.maximum(U, 1)[:, None, None]
    target = C + spread if estimand == "sample" else C
    HC = np.matmul(H, C + spread)
    z = (Q - M[:, -1]) @ state.Z - mean @ H.T
    cross = np.matmul(H, target)
    gain = np.linalg.solve(np.matmul(HC, H.T), cross).transpose(0, 2, 1) * some[:, None, None]
    mean = mean + np.matmul(gain, z[:, :, None])[:, :, 0]
    C = target - np.matmul(gain, cross)
    common = common - np.matmul(gain, np.matmul(H, common))

    back = state.back
    shares = mean[:, : n - 1] @ back.T + np.eye(n)[-1]
    shared = np.matmul(back, common[:, : n - 1])
    error = np.matmul(back, np.matmul(C[:, : n - 1, : n - 1], back.T))
    if estimand == "sample":
        shares = (labels.counts + U[:, None] * shares) / N[:, :, 0]
        error, shared = error * (U[:, None, None] / N) ** 2, shared * (U[:, None, None] / N)
    return shares, error, shared


def within_groups(model: GroupModel, state: State, labels: GroupLabels, p: Floats, E: Floats) -> Floats:
    """Return Omega of each group, (b, k, k).

    It is the covariance of cumulative one-hot classes and of residuals of its items.
    """
    worth = np.trace(model.B) / np.maximum(np.trace(E, axis1=1, axis2=2), np.finfo(float).tiny)
    # More items than could be labelled would not change the shares any more.
    worth = np.minimum(worth, MOST_LABELS)[:, None]
    shares = (labels.counts + worth * p + model.mu) / (labels.n_labelled[:, None] + worth + 1)
    k, n = len(state.J), model.n_classes
    L = state.to_theta[: n - 1, :n]
    Omega = np.zeros((len(p), k, k))
    Omega[:, : n - 1, : n - 1] = L @ multinomial(shares) @ L.T
    Omega[:, n - 1 :, n - 1 :] = state.Z.T @ model.W @ state.Z
    return Omega
