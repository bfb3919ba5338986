"""Intervals around estimates: a bootstrap over the sample and over V, the held-out items behind M.

Given composition p, the mean representation q of a sample of N items has covariance sum_i p_i Sigma_i / N, with Sigma_i
the covariance of f within class i. A sample replicate therefore is q plus the deviation of N items of V, drawn class by
class, from the means of their classes; it needs q, N and V, not the items of the sample. A replicate of M comes from
items of V that are drawn with replacement within each class. Each replicate is solved as the estimate was; the
intervals are percentiles of the replicates, extended to the estimate where it lies outside.

SLD maximises a likelihood that holds for perfect posteriors only. Its intervals come from its own posteriors, used
as a representation whose class means are measured on V, see `_adjusted`.
"""

import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import numpy.typing as npt
from scipy.special import log_softmax
from sklearn.base import clone

from ordinalq.classify.calibration import FLOOR, Calibration
from ordinalq.methods._base import estimates
from ordinalq.samples import OneHot, Samples
from ordinalq.simplex import clean
from ordinalq.solvers.quadratic import simplex_qp
from ordinalq.validation import Floats, check_choice, check_integer, check_random_state

if TYPE_CHECKING:
    import pandas as pd

Index = npt.NDArray[np.intp]
Replicates = Iterator[tuple[slice, Floats]]

TARGETS = ("sample", "population")
# Sample replicates that share a replicate of M.
PER_MODEL = 5
# Items of V that a sample replicate draws at most: the mean of more is normal, and its deviation can be scaled.
MAX_DRAWN = 1000
# Numbers in the replicates that are in memory at once, 128 megabytes.
CHUNK = 2**24
# Columns of M are dependent where a singular value is below this part of its norm.
RANK_TOLERANCE = 1e-9


@dataclass(frozen=True, eq=False, repr=False)
class Intervals:
    """Estimates of B samples with lower and upper bounds, class by class.

    Attributes
    ----------
    level : float
        Of each single interval.
    target : {"sample", "population"}
        What they are intervals of: the prevalence realized in this very sample, or that of the population.
    groups : ndarray (B,) or None
        The value that each sample stands for.
    n_items : ndarray (B,)
        Items of each sample.
    classes : ndarray (n,)
        Classes in ascending order.
    estimate, lower, upper : ndarray (B, n)
        Prevalence of each class.
    cumulative, cumulative_lower, cumulative_upper : ndarray (B, n)
        Prevalence of each class and all below.
    mean, mean_lower, mean_upper : ndarray (B,)
        Mean class index, classes counted from 1.
    covariance : ndarray (B, n, n)
        Of the replicates.
    group_name : str
        Column of the groups in the table.
    """

    level: float
    target: str
    groups: npt.NDArray[Any] | None
    n_items: npt.NDArray[np.int64]
    classes: npt.NDArray[Any]
    estimate: Floats
    lower: Floats
    upper: Floats
    cumulative: Floats
    cumulative_lower: Floats
    cumulative_upper: Floats
    mean: Floats
    mean_lower: Floats
    mean_upper: Floats
    covariance: Floats
    group_name: str = "group"

    def frame(self) -> "pd.DataFrame":
        """Return the table of `predict_groups`, one row per sample."""
        from ordinalq.methods.groups import table

        return table(self.estimate, self.n_items, self.classes, self.groups, self.group_name, self)

    def __repr__(self) -> str:
        B = len(self.estimate)
        return f"Intervals({B} sample{'s' * (B > 1)}, {len(self.classes)} classes, level={self.level}, {self.target!r})"

    def __str__(self) -> str:
        lines = [f"{self.level:.0%} intervals of the {self.target}"]
        shown = min(len(self.estimate), 10)
        width = max(10, *(len(str(label)) for label in self.classes))
        for b in range(shown):
            which = "" if self.groups is None else f"{self.group_name} {self.groups[b]}, "
            lines.append(f"{which}{self.n_items[b]} items")
            ends = zip(self.classes, self.estimate[b], self.lower[b], self.upper[b], strict=True)
            lines += [f"  {label!s:<{width}} {p:.3f}  [{low:.3f}, {high:.3f}]" for label, p, low, high in ends]
            mean = f"{self.mean[b]:.3f}  [{self.mean_lower[b]:.3f}, {self.mean_upper[b]:.3f}]"
            lines.append(f"  {'mean class':<{width}} {mean}")
        if shown < len(self.estimate):
            lines.append(f"and {len(self.estimate) - shown} more")
        return "\n".join(lines)


class Means(NamedTuple):
    """All that most methods see of B samples: mean representations Q (B, d) and sizes (B,)."""

    Q: Floats
    sizes: npt.NDArray[np.int64]

    def solve(self, quantifier: Any) -> Any:
        """Return the Solution."""
        return quantifier._solve_means(self.Q, self.sizes)


class Scored(NamedTuple):
    """What methods of the likelihood see of B samples: the scores S (N, n) of the pool, and the samples."""

    S: Floats
    samples: Samples

    @property
    def sizes(self) -> npt.NDArray[np.int64]:
        """Number of items of each sample, (B,)."""
        return self.samples.sizes

    def solve(self, quantifier: Any) -> Any:
        """Return the Solution."""
        return quantifier._solve(self.S, self.samples)


def see(quantifier: Any, S: Floats, samples: Samples) -> Means | Scored:
    """Return what the quantifier needs of the samples, from valid scores S (N, n)."""
    if quantifier._on_means:
        return Means(samples.average(quantifier._embed(S)), samples.sizes)
    return Scored(S, samples)


def estimated(quantifier: Any, seen: Means | Scored) -> Floats:
    """Return the estimates of the samples that were seen, (B, n)."""
    P: Floats = estimates(seen.solve(quantifier))  # type: ignore[no-untyped-call]
    return P


class Plan(NamedTuple):
    """What kind of intervals, valid."""

    level: float
    target: str
    n_models: int
    rng: np.random.Generator

    @property
    def n_replicates(self) -> int:
        """Replicates of each sample in total."""
        return self.n_models * PER_MODEL


def plan(level: Any, target: Any, n_replicates: Any, random_state: Any) -> Plan:
    """Check the arguments of intervals."""
    if isinstance(level, bool) or not isinstance(level, int | float | np.floating):
        raise TypeError(
            f"level must be a number between 0 and 1, such as 0.95, got {type(level).__name__}; "
            "groups are the next argument, groups=..."
        )
    if not 0 < level < 1:
        raise ValueError(f"level must be a number between 0 and 1, such as 0.95, got {level!r}.")
    check_choice("target", target, TARGETS)
    n_replicates = check_integer("n_replicates", n_replicates, minimum=20)
    return Plan(float(level), target, -(-n_replicates // PER_MODEL), check_random_state(random_state))


def intervals(
    quantifier: Any,
    seen: Means | Scored,
    P: Floats,
    chosen: Plan,
    groups: npt.NDArray[Any] | None = None,
    group_name: str = "group",
) -> Intervals:
    """Return the intervals around the estimates P (B, n) of the samples that were seen."""
    V = held_out_items(quantifier)
    if isinstance(seen, Means):
        _warn_of_equal_columns(quantifier)
        replicates = _means(quantifier, V, seen, P, chosen)
    elif _smooths(quantifier):
        replicates = _redrawn(quantifier, V, seen, P, chosen)
    else:
        replicates = _adjusted(quantifier, V, seen, P, chosen)
    B, n = P.shape
    index = np.arange(1.0, n + 1)
    estimate = np.hstack([P, np.cumsum(P, axis=1), (P @ index)[:, None]])
    lower, upper = np.empty_like(estimate), np.empty_like(estimate)
    covariance = np.empty((B, n, n))
    ends = [(1 - chosen.level) / 2, (1 + chosen.level) / 2]
    for rows, R in replicates:
        for columns, values in (
            (slice(0, n), R),
            (slice(n, 2 * n), np.cumsum(R, axis=2)),
            (slice(2 * n, None), R @ index),
        ):
            # "weibull": so that a further replicate would lie outside as often as the level says.
            low, high = np.quantile(values, ends, axis=0, method="weibull")
            lower[rows, columns], upper[rows, columns] = low.reshape(len(low), -1), high.reshape(len(high), -1)
        D = R - R.mean(axis=0)
        covariance[rows] = np.einsum("rbi,rbj->bij", D, D, optimize=True) / (len(R) - 1)
    # Whole distributions end at one, up to rounding; and no interval leaves its estimate out.
    bound = np.r_[np.ones(2 * n), n]
    lower, upper = np.clip(lower, 0, bound), np.clip(upper, 0, bound)
    lower[:, 2 * n] = np.maximum(lower[:, 2 * n], 1)
    lower[:, 2 * n - 1] = upper[:, 2 * n - 1] = estimate[:, 2 * n - 1]
    lower, upper = np.minimum(lower, estimate), np.maximum(upper, estimate)
    parts = [[a[:, :n], a[:, n : 2 * n], a[:, 2 * n]] for a in (estimate, lower, upper)]
    return Intervals(
        level=chosen.level,
        target=chosen.target,
        groups=groups,
        n_items=seen.sizes,
        classes=quantifier.classes_,
        estimate=P,
        lower=parts[1][0],
        upper=parts[2][0],
        cumulative=parts[0][1],
        cumulative_lower=parts[1][1],
        cumulative_upper=parts[2][1],
        mean=parts[0][2],
        mean_lower=parts[1][2],
        mean_upper=parts[2][2],
        covariance=covariance,
        group_name=group_name,
    )


class HeldOut:
    """V, its items class by class.

    ``classes`` are n samples of V, one per class; ``counts`` (n,) their sizes.
    """

    def __init__(self, S: Floats, codes: Index, n_classes: int) -> None:
        self.S = S
        self.codes = codes
        self.counts = np.bincount(codes, minlength=n_classes)
        self.order = np.argsort(codes, kind="stable")
        self.starts = np.cumsum(self.counts) - self.counts
        self.classes = Samples(self.order, np.append(self.starts, len(codes)), len(codes))

    def resample(self, rng: np.random.Generator) -> Samples:
        """Draw as many items of each class as there are, with replacement."""
        return self.draw(np.diag(self.counts), rng)

    def draw(self, counts: npt.NDArray[Any], rng: np.random.Generator) -> Samples:
        """Draw counts[b, i] items of class i for sample b, with replacement."""
        codes = np.repeat(np.tile(np.arange(len(self.counts)), len(counts)), counts.ravel())
        inside = (rng.random(len(codes)) * self.counts[codes]).astype(np.intp)
        items = self.order[self.starts[codes] + inside]
        return Samples(items, np.append(0, np.cumsum(counts.sum(axis=1))), len(self.codes))


def held_out_items(quantifier: Any) -> HeldOut:
    """Return V of a fitted quantifier."""
    if not hasattr(quantifier, "held_out_"):
        raise ValueError(
            f"this {type(quantifier).__name__} was fitted without keeping its held-out items, which intervals need: "
            "fit it again."
        )
    S, codes = quantifier.held_out_
    return HeldOut(S, codes, len(quantifier.classes_))


def _warn_of_equal_columns(quantifier: Any) -> None:
    """Warn where M (d, n) maps different distributions to the same q: no noise moves the estimate among these."""
    M = getattr(quantifier, "M_", None)
    loss = getattr(quantifier, "loss_", None)
    if M is None or (loss is not None and loss.needs_distances):
        return
    rank = np.linalg.matrix_rank(M - M.mean(axis=1, keepdims=True), tol=RANK_TOLERANCE * np.linalg.norm(M))
    if rank < M.shape[1] - 1:
        what = "features do" if quantifier._on == "features" else "classifier does"
        warnings.warn(
            f"the {what} not tell all classes apart: the data leave some of their shares open, and the intervals, "
            "which do not show that, are too narrow; see diagnose.",
            stacklevel=5,
        )


def _means(quantifier: Any, V: HeldOut, seen: Means, P: Floats, chosen: Plan) -> Replicates:
    """Replicates of methods that see only means: q* = q + deviation of drawn items, M* from drawn items."""
    F = quantifier._embed(V.S)
    M = V.classes.average(F).T
    models = [quantifier._resampled(F, V.resample(chosen.rng)) for _ in range(chosen.n_models)]
    as_frequencies = _frequencies(quantifier, F, V.S)
    for rows in _chunks(len(P), chosen.n_replicates * P.shape[1]):
        Q, sizes, centre = seen.Q[rows], np.tile(seen.sizes[rows], PER_MODEL), composition(P[rows], seen.sizes[rows])
        centre = np.tile(centre, (PER_MODEL, 1))
        found = []
        for model, moved in models:
            samples, counts, shrink = _sample_replicates(V, centre, sizes, chosen)
            # Within the composition that was drawn, or beside the one that was estimated.
            means = counts / samples.sizes[:, None] if chosen.target == "sample" else centre
            noise = (samples.average(F) - means @ M.T) * shrink
            if moved is not None:
                noise += centre @ moved.T
            found.append(clean(model._solve_means(as_frequencies(np.tile(Q, (PER_MODEL, 1)) + noise), sizes).p))
        yield rows, np.reshape(found, (chosen.n_replicates, len(Q), P.shape[1]))


def _adjusted(quantifier: Any, V: HeldOut, seen: Scored, P: Floats, chosen: Plan) -> Replicates:
    """Replicates of SLD, by the class means of its posteriors.

    f_i(x) = r_i(x) / sum_j r_j(x) are the posteriors if all classes were equally frequent, r the score ratios. Whether
    or not they are right, their mean q over the sample has expectation H p with their class means H on V. To first
    order q - H p has covariance Omega = sum_i (p_i / N + p_i^2 / N_i) Sigma_i, where the second term, with
    the N_i items of class i in V, is the part of H; the population adds that of its composition. A replicate minimises
    (q* - H p)' Omega^-1 (q* - H p) over the simplex, with q* normal around q.

    Posteriors at the estimate itself would be a little more precise, but they depend on the sample, and intervals that
    do not know of it are too short.
    """
    F, n = _even_posteriors(quantifier, V.S), P.shape[1]
    H = V.classes.average(F).T
    F_sample = seen.samples.average(_even_posteriors(quantifier, seen.S))
    spread = np.empty((n, n - 1, n - 1))
    for i in range(n):
        D = F[V.classes.index(i)] - H[:, i]
        spread[i] = D.T @ D / len(D)
    for rows in _chunks(len(P), chosen.n_replicates * n):
        G, g = _whitened(F_sample[rows], H, spread, composition(P[rows], seen.sizes[rows]), seen.sizes[rows], V, chosen)
        A = np.matmul(G.transpose(0, 2, 1), G)
        # Classes that V does not tell apart.
        A += 1e-10 * np.trace(A, axis1=1, axis2=2)[:, None, None] / n * np.eye(n)
        found = np.empty((chosen.n_replicates, len(g), n))
        for r in range(chosen.n_replicates):
            noisy = g + chosen.rng.normal(size=g.shape)
            found[r] = simplex_qp(A, np.matmul(noisy[:, None, :], G)[:, 0])[0]
        yield rows, clean(found.reshape(-1, n)).reshape(found.shape)


def _whitened(
    Q: Floats, H: Floats, spread: Floats, p: Floats, sizes: npt.NDArray[np.int64], V: HeldOut, chosen: Plan
) -> tuple[Floats, Floats]:
    """Return L^-1 H (B, n - 1, n) and L^-1 q (B, n - 1), with L L' = Omega of each sample, see `_adjusted`."""
    N = sizes[:, None]
    Omega = np.tensordot(p / N + p**2 / V.counts, spread, axes=1)
    if chosen.target == "population":
        expected = p @ H.T
        Omega += np.einsum("bi,ki,li->bkl", p / N, H, H) - expected[:, :, None] * expected[:, None, :] / N[:, :, None]
    scale = np.sqrt(np.maximum(np.diagonal(Omega, axis1=1, axis2=2), 1e-30))
    Omega = Omega / (scale[:, :, None] * scale[:, None, :]) + 1e-8 * np.eye(len(H))
    right = np.concatenate([np.broadcast_to(H, (len(p), *H.shape)), Q[:, :, None]], axis=2) / scale[:, :, None]
    both = np.linalg.solve(np.linalg.cholesky(Omega), right)
    return np.asarray(both[:, :, :-1]), np.asarray(both[:, :, -1])


def _even_posteriors(quantifier: Any, S: Floats) -> Floats:
    """Return r_i(x) / sum_j r_j(x) of all classes but the last, (N, n - 1); together they sum to one."""
    ratios = quantifier.calibration_.transform(S) / quantifier.p_train_
    return np.asarray(ratios[:, :-1] / ratios.sum(axis=1, keepdims=True))


def _redrawn(quantifier: Any, V: HeldOut, seen: Scored, P: Floats, chosen: Plan) -> Replicates:
    """Replicates of smoothed likelihoods: estimates of samples drawn from V, moved to the estimate as their mean."""
    calibrations = _moved_calibrations(quantifier.calibration_, V, chosen)
    for rows in _chunks(len(P), chosen.n_replicates * P.shape[1]):
        sizes = np.tile(seen.sizes[rows], PER_MODEL)
        centre = np.tile(composition(P[rows], seen.sizes[rows]), (PER_MODEL, 1))
        found, shrink = [], np.ones((len(centre), 1))
        for calibration in calibrations:
            model = clone(quantifier)
            vars(model).update(vars(quantifier), calibration_=calibration)
            samples, _, shrink = _sample_replicates(V, centre, sizes, chosen)
            found.append(clean(model._solve(V.S, samples).p))
        R = np.reshape(found, (chosen.n_replicates, -1, P.shape[1]))
        yield rows, P[rows] + (R - R.mean(axis=0)) * shrink[: R.shape[1]]


def _moved_calibrations(calibration: Calibration, V: HeldOut, chosen: Plan) -> list[Calibration]:
    """Return calibrations that are fitted on drawn items of V, by one step of Newton's method from the given one."""
    if calibration.kind == "none":
        return [calibration] * chosen.n_models
    n = len(V.counts)
    L = np.log((1 - FLOOR) * V.S + FLOOR / n)
    p = np.exp(log_softmax(L * calibration.weights_ + calibration.biases_, axis=1))
    error = p - np.eye(n)[V.codes]
    # Second derivatives in the logits are diag(p) - p p'; with respect to w each logit brings its L.
    pL = p * L
    WW, WC = np.diag((pL * L).sum(axis=0)) - pL.T @ pL, np.diag(pL.sum(axis=0)) - pL.T @ p
    CC = np.diag(p.sum(axis=0)) - p.T @ p
    slopes = error * L
    if calibration.kind == "bcts":  # one w for all classes
        WW, WC, slopes = WW.sum(keepdims=True), WC.sum(axis=0, keepdims=True), slopes.sum(axis=1, keepdims=True)
    hessian = np.block([[WW, WC], [WC.T, CC]])
    gradients = np.hstack([slopes, error])
    steps = []
    for _ in range(chosen.n_models):
        total = gradients[V.resample(chosen.rng).items].sum(axis=0) - gradients.sum(axis=0)
        # The biases are free up to a constant.
        steps.append(-np.linalg.lstsq(hessian, total, rcond=1e-9)[0])
    moved = []
    for step in steps:
        one = clone(calibration)
        one.weights_, one.biases_ = calibration.weights_ + step[:-n], calibration.biases_ + step[-n:]
        moved.append(one)
    return moved


def _sample_replicates(
    V: HeldOut, centre: Floats, sizes: npt.NDArray[np.int64], chosen: Plan
) -> tuple[Samples, npt.NDArray[np.int64], Floats]:
    """Draw one sample of V for each composition (B, n).

    Return the samples, their counts (B, n), and by how much their deviations are to be shrunk (B, 1), since a large
    sample is represented by a smaller one.
    """
    drawn = np.minimum(sizes, MAX_DRAWN)
    if chosen.target == "population":
        counts = chosen.rng.multinomial(drawn, centre)
    else:
        counts = rounded(centre, drawn, chosen.rng)
    return V.draw(counts, chosen.rng), counts, np.sqrt(drawn / sizes)[:, None]


def rounded(P: Floats, sizes: npt.NDArray[np.int64], rng: np.random.Generator) -> npt.NDArray[np.int64]:
    """Return counts (B, n) with sum `sizes` (B,) and expectation sizes * P, each less than one away from it."""
    edges = np.cumsum(P * sizes[:, None], axis=1)
    edges[:, -1] = sizes
    # One number for all edges: the last one stays an integer.
    steps = np.floor(edges + rng.random((len(P), 1))).astype(np.int64)
    steps[:, -1] = sizes
    return np.diff(np.minimum(steps, sizes[:, None]), axis=1, prepend=0)


def composition(P: Floats, sizes: npt.NDArray[np.int64]) -> Floats:
    """Return (N p + 1/2) / (N + n/2), (B, n): half an item of each class beside the estimate.

    Where the estimate is zero the class may still be there, and its items would scatter too.
    """
    N = sizes[:, None]
    return np.asarray((N * P + 0.5) / (N + P.shape[1] / 2))


def _frequencies(quantifier: Any, F: Any, S: Floats) -> Any:
    """Return the function that makes q* frequencies again, where the method wants such."""
    loss: Any = getattr(quantifier, "loss_", None)
    width = F.width if isinstance(F, OneHot) else F.shape[1] if F is S else None
    if width is None or (getattr(loss, "takes_any_q", False)):
        return lambda Q: Q
    return partial(_clipped, width=width)


def _clipped(Q: Floats, width: int) -> Floats:
    """Return Q (B, k * width) without negative entries, each block with sum one."""
    blocks = np.maximum(Q, 0).reshape(len(Q), -1, width)
    return np.asarray((blocks / blocks.sum(axis=2, keepdims=True)).reshape(Q.shape))


def _smooths(quantifier: Any) -> bool:
    """Say whether a likelihood is smoothed or regularized."""
    regularizer = quantifier.regularizer_
    return bool(getattr(regularizer, regularizer.strength) > 0)


def _chunks(B: int, numbers: int) -> Iterator[slice]:
    """Yield slices of the B samples, each of which has so many numbers in its replicates."""
    step = max(1, CHUNK // numbers)
    for start in range(0, B, step):
        yield slice(start, min(start + step, B))
