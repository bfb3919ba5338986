r"""Labels of the group itself: few, many or none, by one formula.

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

from ordinalq._utils.validation import Floats
from ordinalq.inference.group_model import RANK_TOLERANCE, GroupModel, multinomial
from ordinalq.inference.predict import CHUNK, Prediction, medians, predict, project

# Labels that an estimate without labels is worth at most.
MOST_LABELS = 2**20
# Groups differ in every direction at least as much as sets of 1000 items do: real ones are finite, as the flights of a
# day, or made of parts. Many labels would otherwise find J too narrow where training groups happened to agree; HALF of
# them count half, and none leave the prediction as it is.
DIFFER, HALF = 1e-3, 30


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
    """Predict the shares of groups with some labelled items, a random draw of the group's.

    Q (B, d) is the mean representation of the U = `n_unlabelled` (B,) items without a label, any where there are none.
    The shares are those of all items, labelled or not, or of the population behind them.
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
    N = U[:, None, None] + m
    J = J + DIFFER * m / (m + HALF) * (Omega - J)

    # The labels: theta itself, with noise.
    seen = np.hstack([labels.counts, labels.sums - labels.counts @ M.T]) / m[:, :, 0] @ to_theta.T
    gain = np.linalg.solve(J + Omega / m, J).transpose(0, 2, 1)
    mean = prior + np.matmul(gain, (seen - prior)[:, :, None])[:, :, 0]
    C = J - np.matmul(gain, J)

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
        shares = (labels.counts + U[:, None] * shares) / N[:, :, 0]
        error = error * (U[:, None, None] / N) ** 2
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
