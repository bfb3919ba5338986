"""Common offset of all new groups from the training groups.

The state of group g, theta_g = (population prevalences, group effect on f), is

    theta_g = theta_0 + delta + u_g,    u_g ~ N(0, J),    theta_0 = (mu, shift).

Unlabelled items show H theta_g with noise, labelled ones theta_g itself. Let R_g be the information of all items of
the group about theta_g, and s_g their score at theta_0. Information about delta and its score are sums over groups:

    I = sum_g (1 + R_g J)^-1 R_g,    v = sum_g (1 + R_g J)^-1 s_g.

Parts of a group with the same theta_g would add up their R and s first.

J = J_v + J_h has a part J_v that unlabelled items show and a part J_h, with H J_h = 0, that only labels show: a change
of meaning. The offset has them in different strengths c. G training groups with N items leave an error of theta_0, too:

    delta ~ N(0, c_v J_v + c_h J_h + J / G + Omega / N).

The posterior is averaged over the strengths. Estimates are linear in delta, so its mean and its covariance are all that
a second pass over the groups needs. Half of the covariance of the groups follows the offset, since a class that has
become frequent varies more. That half keeps its value in coordinates in which single classes have unit covariance.
"""

import json
import warnings
from dataclasses import dataclass, replace
from itertools import product
from pathlib import Path
from typing import Any, NamedTuple, Self

import numpy as np
from scipy.linalg import block_diag
from scipy.special import fdtrc

from ordinalq._utils.validation import Floats, check_real
from ordinalq.inference.group_labels import GroupLabels, within_groups
from ordinalq.inference.group_model import (
    CHUNK,
    FOLLOWS,
    RANK_TOLERANCE,
    Filter,
    GroupModel,
    ModelDistance,
    State,
    multinomial,
    orthonormal_polynomials,
    predict,
    tail_dof,
)

# Strengths c of either part of an offset, and their prior probabilities.
STRENGTHS = (0.0, 0.03, 0.1, 0.3, 1.0, 3.0)
PRIOR = (0.3, 0.05, 0.1, 0.25, 0.25, 0.05)
# Groups that an offset can be found from without labels.
FEWEST_GROUPS = 10
# The groups differ as a whole if chance alone has a smaller probability, and the offset is at least this many standard
# deviations of the groups: many groups show offsets that are too small to matter.
LEVEL, NOTABLE = 0.05, 0.2
# Variance of an offset that is not drift, over that of the groups: models of folds and of all items give other scores.
OTHER_SCORES = 0.003
# Labelled items are not a random draw if chance has a smaller probability.
NOT_RANDOM = 0.001
# An offset leaves each class at least this part of its prevalence in the training groups.
LEAST = 0.05
# From ten labels on, intervals allow for at least this strength of the part that only labels show: few labels do not
# exclude it.
FEW_LABELS, NOT_EXCLUDED = 10, 0.3


class LabelSelectionWarning(UserWarning):
    """Warning: labelled items are not a random draw with the stated probabilities."""


class DriftSums(NamedTuple):
    """Sums over groups that determine their common offset.

    Attributes
    ----------
    information : ndarray (k, k)
        I, the information about the offset.
    score : ndarray (k,)
        v, its score.
    difference : ndarray (r,)
        Weighted differences of the mean of f between labelled items and the others of their groups.
    weight : float
        Variance of each coordinate of that difference.
    n_groups, n_labelled : int
        Groups and labelled items.
    """

    information: Floats
    score: Floats
    difference: Floats
    weight: float
    n_groups: int
    n_labelled: int

    def merge(self, other: "DriftSums") -> "DriftSums":
        """Return the sums over the groups of both."""
        return DriftSums(
            self.information + other.information,
            self.score + other.score,
            self.difference + other.difference,
            self.weight + other.weight,
            self.n_groups + other.n_groups,
            self.n_labelled + other.n_labelled,
        )


def drift_sums(model: GroupModel, Q: Floats, n_unlabelled: Floats, labels: GroupLabels | None = None) -> DriftSums:
    """Return the sums over groups that determine their common offset.

    Parameters
    ----------
    model : GroupModel
        Model of the training groups.
    Q : ndarray (B, d)
        Mean representations of the unlabelled items; any values if there are none.
    n_unlabelled : ndarray (B,)
        Number of unlabelled items.
    labels : GroupLabels, default=None
        Labelled items of the groups.

    Returns
    -------
    DriftSums
    """
    state, U = State.of(model), np.asarray(n_unlabelled, dtype=np.float64)
    k, r = state.H.shape[1], state.H.shape[0]
    total = DriftSums(np.zeros((k, k)), np.zeros(k), np.zeros(r), 0.0, 0, 0)
    for start in range(0, len(Q), CHUNK // 4):
        rows = slice(start, start + CHUNK // 4)
        some = None if labels is None else GroupLabels(labels.counts[rows], labels.sums[rows])
        total = total.merge(_sums(model, state, Q[rows], U[rows], some))
    return total


def _sums(model: GroupModel, state: State, Q: Floats, U: Floats, labels: GroupLabels | None) -> DriftSums:
    filt = Filter.of(model)
    m = np.zeros(len(U)) if labels is None else labels.n_labelled
    sizes = np.where(U > 0, U, np.maximum(m, 1))
    if labels is not None:
        Q = np.where(U[:, None] > 0, Q, labels.sums / np.maximum(m, 1)[:, None])
    seen = ModelDistance.of(model, filt, Q, sizes)
    # Group effects have heavy tails: a group far from the others has less information on the common offset.
    nu = tail_dof(model, filt.rank)
    trust = np.minimum((nu + filt.rank) / (nu + seen.distance), 1)[:, None]
    plain = m == 0
    precision = (trust / seen.variances)[plain]
    H = filt.V.T @ np.hstack([model.M @ state.back, state.looks])
    information = (H.T * precision.sum(axis=0)) @ H
    score = H.T @ (precision * seen.coordinates[plain]).sum(axis=0)
    difference, weight = np.zeros(len(state.H)), 0.0
    if labels is not None and not plain.all():
        rows = np.flatnonzero(~plain)
        some = GroupLabels(labels.counts[rows], labels.sums[rows])
        base = predict(model, Q[rows], sizes[rows])
        R, s = item_information(model, state, Q[rows], U[rows], some, base.mean, base.covariance)
        T = np.linalg.inv(np.eye(len(state.J)) + R @ state.J) * trust[rows, :, None]
        information = information + (T @ R).sum(axis=0)
        score = score + np.einsum("bij,bj->i", T, s)
        both = m[rows] * U[rows] / (m[rows] + U[rows])
        difference, weight = both @ ((some.sums / m[rows, None] - Q[rows]) @ state.Z), float(both.sum())
    return DriftSums((information + information.T) / 2, score, difference, weight, len(U), round(float(m.sum())))


def item_information(
    model: GroupModel, state: State, Q: Floats, U: Floats, labels: GroupLabels, p: Floats, E: Floats
) -> tuple[Floats, Floats]:
    """Return information R (b, k, k) and score (b, k) of all items about theta_g."""
    Omega, m, H = within_groups(model, state, labels, p, E), labels.n_labelled[:, None], state.H
    of_labels = np.linalg.inv(Omega) * m[:, :, None]
    of_others = np.linalg.inv(H @ Omega @ H.T) * U[:, None, None]
    x = np.hstack([labels.counts, labels.sums - labels.counts @ model.M.T]) / m @ state.to_theta.T - state.theta
    z = (Q - model.M[:, -1]) @ state.Z - state.theta @ H.T
    score = np.einsum("bij,bj->bi", of_labels, x) + np.einsum("bij,bj->bi", of_others, z) @ H
    return of_labels + H.T @ of_others @ H, score


@dataclass(frozen=True, eq=False)
class Drift:
    """Common offset of all new groups from the training groups.

    Pass it to a later call, ``predict_groups(..., drift=earlier.drift)``, to use the offset of an earlier table.

    Attributes
    ----------
    offset : ndarray (n + d,)
        Posterior mean of the offset of class prevalences and of the representation.
    root : ndarray (n + d, k)
        Root of its covariance, which is the error that all groups share.
    p_value : float
        Probability of an offset as large if the new groups are drawn like the training groups.
    size : float
        Root mean square of the offset in standard deviations of the training groups. It does not depend on a stated
        strength: it is that of the offset averaged over the strengths.
    strengths : tuple of two floats
        Posterior means of c for the part that unlabelled items show, and for the part that only labels show.
    is_stated : bool
        Whether the strength was given by the user.
    n_groups, n_labelled : int
        Groups and labelled items that the offset was found from.
    selection_p_value : float
        Probability of labelled items as different from the others of their groups, if they are a random draw.
    is_earlier : bool
        Whether the offset, if it is passed to a call, is that of an earlier table.
    """

    offset: Floats
    root: Floats
    p_value: float
    size: float
    strengths: tuple[float, float]
    is_stated: bool
    n_groups: int
    n_labelled: int
    selection_p_value: float = 1.0
    is_earlier: bool = False

    @property
    def differs(self) -> bool:
        """Whether the new groups as a whole differ from the training groups."""
        return self.p_value < LEVEL and self.size >= NOTABLE

    def __str__(self) -> str:
        p = f"p = {self.p_value:.2g}" if self.p_value >= 0.001 else "p < 0.001"
        little = "differ only slightly from" if self.p_value < LEVEL else "do not differ noticeably from"
        verdict = "differ from" if self.differs else little
        text = f"The new groups as a whole {verdict} the training groups ({p})."
        if self.n_labelled == 0 and not self.differs:
            text += " Changes that only labels show are not excluded."
        return text

    def to_json(self) -> dict[str, Any]:
        """Return all values as plain numbers, lists and text for :meth:`from_json`."""
        arrays = {"offset": self.offset.tolist(), "root": self.root.tolist(), "strengths": list(self.strengths)}
        values = {"verdict": str(self), "differs": self.differs, **vars(self), **arrays}
        del values["is_earlier"]
        return values

    @classmethod
    def read(cls, path: Path) -> Self:
        """Return the offset in a file with the JSON of estimates.

        Parameters
        ----------
        path : path
            JSON file of estimates.

        Returns
        -------
        Drift
            The offset of an earlier table.
        """
        try:
            values = json.loads(path.read_text(encoding="utf-8"))["drift"]
        except (json.JSONDecodeError, UnicodeDecodeError, KeyError, TypeError) as error:
            raise ValueError(f"{path}: must be the JSON of estimates that have a drift.") from error
        return cls.from_json(values)

    @classmethod
    def from_json(cls, values: dict[str, Any]) -> Self:
        """Return the offset that :meth:`to_json` wrote.

        Parameters
        ----------
        values : dict
            Result of :meth:`to_json`.

        Returns
        -------
        Drift
            The offset.
        """
        try:
            offset, root = (np.array(values[name], dtype=np.float64) for name in ("offset", "root"))
            p, size, selection = (float(values[name]) for name in ("p_value", "size", "selection_p_value"))
            c, stated = (float(values["strengths"][0]), float(values["strengths"][1])), bool(values["is_stated"])
            counts = int(values["n_groups"]), int(values["n_labelled"])
        except (KeyError, TypeError, ValueError, IndexError, OverflowError) as error:
            raise ValueError(f"drift must be the result of Drift.to_json, got {str(values)[:60]!r}.") from error
        if offset.ndim != 1 or root.ndim != 2 or not (np.isfinite(offset).all() and np.isfinite(root).all()):
            raise ValueError("drift must have a finite offset (n + d,) and root (n + d, k).")
        return cls(offset, root, p, size, c, stated, *counts, selection_p_value=selection, is_earlier=True)


def solve_drift(model: GroupModel, sums: DriftSums, strength: float | None = None) -> Drift:
    """Return the posterior of the common offset.

    Parameters
    ----------
    model : GroupModel
        Model of the training groups.
    sums : DriftSums
        Sums over all new groups.
    strength : float, default=None
        Strength c of both parts; None averages over the strengths. With 0 the offset is zero, and only the error of the
        training groups is shared.

    Returns
    -------
    Drift
    """
    state = State.of(model)
    J, H, error = state.J, state.H, error_of_centre(model, state)
    shown = J @ H.T @ np.linalg.solve(H @ J @ H.T, H @ J)
    if strength is None:
        c = np.array(list(product(STRENGTHS, STRENGTHS)))
        log_weight = np.log(np.outer(PRIOR, PRIOR)).ravel()
    else:
        c, log_weight = np.full((1, 2), check_real("drift", strength, low=0)), np.zeros(1)
    priors = c[:, :1, None] * shown + c[:, 1:, None] * (J - shown) + error
    # C = U (1 + U' I U)^-1 U' with U U' the prior covariance.
    U = _roots(priors)
    inner = np.eye(len(J)) + U.transpose(0, 2, 1) @ sums.information @ U
    C = U @ np.linalg.solve(inner, U.transpose(0, 2, 1))
    b = C @ sums.score
    if strength == 0:
        b, C = np.zeros_like(b), error[None]
    log_weight = log_weight + (b @ sums.score - np.linalg.slogdet(inner)[1]) / 2
    weight = np.exp(log_weight - log_weight.max())
    weight /= weight.sum()
    mean, (visible, hidden) = weight @ b, (weight @ c).tolist()
    if strength is None and sums.n_labelled >= FEW_LABELS:
        weight = weight * (c[:, 1] >= NOT_EXCLUDED)
        weight /= weight.sum()
    covariance = np.tensordot(weight, C + (b - mean)[:, :, None] * (b - mean)[:, None, :], 1)
    back = state.to_full
    # Whether groups differ does not depend on the strength that a user states.
    size = float(np.sqrt(mean @ np.linalg.solve(J, mean) / len(J)))
    return Drift(
        back @ mean,
        back @ _roots(covariance),
        p_value=_p_value(model, state, sums),
        size=size if strength is None else solve_drift(model, sums).size,
        strengths=(visible, hidden),
        is_stated=strength is not None,
        n_groups=sums.n_groups,
        n_labelled=sums.n_labelled,
        selection_p_value=_selection_p_value(state, sums),
    )


def _roots(C: Floats) -> Floats:
    """Return U with U U' = C of positive semidefinite matrices (..., k, k)."""
    size, vectors = np.linalg.eigh(C)
    return np.asarray(vectors * np.sqrt(np.maximum(size, 0))[..., None, :])


def error_of_centre(model: GroupModel, state: State) -> Floats:
    """Return the covariance (k, k) of theta_0 from G groups with N items.

    It is J / G + Omega / N.

    It includes a small offset between held-out scores and those of new items.
    """
    Omega = state.to_theta @ block_diag(model.B, model.W) @ state.to_theta.T
    return np.asarray(state.J * (1 / model.n_groups + OTHER_SCORES) + Omega / model.n_items)


def _p_value(model: GroupModel, state: State, sums: DriftSums) -> float:
    """Return the p-value of b' (I^+ + C)^+ b with b = I^+ v.

    C is the error of theta_0. The test is an F test, since J was learned.

    With labels, the part that unlabelled items show and the rest are tested by themselves, and the smaller of the two
    p-values is corrected for their number. A joint test with few labels would not find what the items show.
    """
    size, vectors = np.linalg.eigh(sums.information)
    kept = size > RANK_TOLERANCE * max(size[-1], np.finfo(float).tiny)
    if not kept.any():
        return 1.0
    X = vectors[:, kept]
    b = (X.T @ sums.score) / size[kept]
    V = np.diag(1 / size[kept]) + X.T @ error_of_centre(model, state) @ X
    distance = float(b @ np.linalg.solve(V, b))
    H = state.H @ X
    if len(b) <= len(H):
        return _tail(model, distance, len(b))
    seen = H @ b
    shown = float(seen @ np.linalg.solve(H @ V @ H.T, seen))
    parts = (shown, len(H)), (distance - shown, len(b) - len(H))
    smaller = min(_tail(model, *part) for part in parts)
    return smaller * (2 - smaller)


def _tail(model: GroupModel, distance: float, k: int) -> float:
    """Return the tail probability of a squared distance of k coordinates."""
    free = max(model.dof - k + 1, 1.0)
    return float(fdtrc(k, free, max(distance, 0.0) * free / (model.dof * k)))


def _selection_p_value(state: State, sums: DriftSums) -> float:
    """Return the p-value of the difference between labelled and other items.

    F with as many degrees of freedom as labels allow, since f is far from normal and these may be few.
    """
    if sums.weight == 0:
        return 1.0
    k = state.back.shape[1]
    x = np.linalg.qr(state.H[:, :k])[0].T @ sums.difference
    free = max(sums.n_labelled - len(x), 1)
    return float(fdtrc(len(x), free, x @ x / sums.weight / len(x) * free / (free + len(x))))


def check_selection(drift: Drift, stacklevel: int = 2) -> None:
    """Warn if labelled items differ from the other items of their groups."""
    if drift.selection_p_value < NOT_RANDOM:
        warnings.warn(
            f"The labelled items differ from the other items of their groups (p = {drift.selection_p_value:.1g}), so "
            "estimates can be biased. Pass labels of items that were drawn at random.",
            LabelSelectionWarning,
            stacklevel=stacklevel + 1,
        )


def shifted(model: GroupModel, drift: Drift) -> GroupModel:
    """Return the model of groups with the common offset and its shared error."""
    n = model.n_classes
    if drift.offset.shape != (n + len(model.shift),) or drift.root.shape[:1] != drift.offset.shape:
        raise ValueError(
            f"drift must be of a model with {n} classes and {len(model.shift)} features, got one with "
            f"{len(drift.offset)} values. Pass the drift of estimates by the same model."
        )
    mu, shift = np.maximum(model.mu + drift.offset[:n], LEAST * model.mu), model.shift + drift.offset[n:]
    mu = mu / mu.sum()
    # Half of the covariance of the groups follows the offset, as half of the variance of a share follows the share.
    follows = multinomial(mu) @ orthonormal_polynomials(mu) @ orthonormal_polynomials(model.mu).T
    fallback = model.fallback
    if fallback is not None:
        # Its prevalences are not those of groups.
        of_looks = np.vstack([np.zeros((n, drift.root.shape[1])), drift.root[n:]])
        fallback = replace(fallback, shift=shift, common=of_looks)
    A = (1 - FOLLOWS) * model.A + FOLLOWS * follows @ model.A @ follows.T
    K = (1 - FOLLOWS) * model.K + FOLLOWS * follows @ model.K
    of_parts = model.of_parts
    if of_parts is not None:
        moved = block_diag(follows, np.eye(len(shift)))
        of_parts = (1 - FOLLOWS) * of_parts + FOLLOWS * moved @ of_parts @ moved.T
    return replace(model, mu=mu, shift=shift, A=A, K=K, common=drift.root, fallback=fallback, of_parts=of_parts)
