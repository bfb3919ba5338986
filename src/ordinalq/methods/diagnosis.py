"""What can be said of one estimate: whether the data fit the method's assumption, and how much they tell.

Quantifiers assume prior probability shift: a new sample is another mixture of the same classes. Then the mean of any
function g of the items is a mixture of its class means, q = M p. `diagnose` takes more functions than there are
classes, compares q with the best mixture by a chi-square test, and derives from the same covariances how well classes
can be told apart and how many items it takes.

For methods on scores g holds the histogram of the expected class index, that of the highest score, and the scores
themselves; for methods on features it is their own representation. Thus the test has residual degrees of freedom
also where the method itself has none, as ACC with its n equations for n classes.
"""

from copy import copy
from dataclasses import dataclass, fields
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from scipy.special import chdtrc

from ordinalq.measures import nmd
from ordinalq.methods.tuning import with_strength
from ordinalq.ordinal import difference_matrix, jaggedness
from ordinalq.representations import expected_rank, one_hot
from ordinalq.samples import Samples
from ordinalq.simplex import clean
from ordinalq.solvers.quadratic import simplex_qp
from ordinalq.validation import Floats

Codes = npt.NDArray[np.intp]

# Half the width of a 95 % interval in standard errors, and the half width that a sample should allow.
TWO_SIDED = 1.96
WANTED = 0.02
# A test below the first level rejects; a deviation below the second (in the unit of Cohen's w) is too small to matter.
# Held-out scores of forests with fully grown trees differ from those of new items by up to 0.26.
LEVEL = 0.01
SMALL_EFFECT = 0.3
# Classes can hardly be told apart where this part of the sample could change sides unnoticed.
UNNOTICED = 0.1
# Items per function in the test, and functions per class.
ITEMS_PER_FUNCTION = 10
FUNCTIONS_PER_CLASS = 4
# With few items of a class its covariance is mixed with that of all classes, as if so many of these were its own.
BORROWED = 10
# An estimate that differs by less from the one without smoothing is not smoothed.
MOVED = 0.001


@dataclass(frozen=True, eq=False)
class Diagnosis:
    """What is known about the estimate of one sample; ``str`` gives a short text, ``to_dict`` plain values.

    Attributes
    ----------
    method : str
        Class name of the quantifier.
    classes : ndarray (n,)
        Classes in ascending order.
    n_items, n_training : int
        Items of the sample, and held-out training items (None where the method keeps none).
    estimate : ndarray (n,)
        What `predict` returns.
    matrix : ndarray (d, n) or None
        M: the method's own, or the mean scores of each class where it has none or holds distances.
    condition_number : float or None
        Of the matrix.
    chi2, degrees_of_freedom, p_value : float, int, float, or None
        Of the test whether any mixture of the classes explains the sample.
    effect : float or None
        Size of the deviation in standard deviations of one item, without what noise adds (as Cohen's w).
    best_mixture : ndarray (n,) or None
        The mixture that explains the sample best.
    excess_chi2 : float or None
        By how much the estimate explains it worse.
    standard_errors : ndarray (n,) or None
        Of the best mixture: what a method without smoothing can reach at most.
    n_needed : int or None
        Items for 95 % intervals of at most +-0.02 for every class; None also where no number is enough.
    unnoticed : ndarray (n, n) or None
        Part of the sample that could move from class i to class j within two standard deviations of the noise.
    confusable : list of (int, int)
        Pairs of positions i < j with more than a tenth there.
    jaggedness, training_jaggedness : float
        xi_1 of the estimate and of the training distribution.
    noise_jaggedness : float or None
        What the noise of the best mixture alone adds to xi_1 on average.
    parameter, strength : str and float, or None
        Name and value of the strength of smoothing.
    moved : float or None
        NMD between the estimate and the one without smoothing.
    jaggedness_without : float or None
        xi_1 without smoothing.
    effective_freedom : float or None
        Degrees of freedom that the regularizer leaves (RUN).
    notes : list of str
        What does not apply, and why.
    """

    method: str
    classes: Any
    n_items: int
    n_training: int | None
    estimate: Floats
    matrix: Floats | None
    condition_number: float | None
    chi2: float | None
    degrees_of_freedom: int | None
    p_value: float | None
    effect: float | None
    best_mixture: Floats | None
    excess_chi2: float | None
    standard_errors: Floats | None
    n_needed: int | None
    unnoticed: Floats | None
    confusable: list[tuple[int, int]]
    jaggedness: float
    training_jaggedness: float
    noise_jaggedness: float | None
    parameter: str | None
    strength: float | None
    moved: float | None
    jaggedness_without: float | None
    effective_freedom: float | None
    notes: list[str]

    @property
    def shift_is_plausible(self) -> bool | None:
        """Whether the sample may be a mixture of the known classes; None where that was not tested."""
        if self.p_value is None or self.effect is None:
            return None
        return self.p_value >= LEVEL or self.effect < SMALL_EFFECT

    @property
    def is_smoothed(self) -> bool | None:
        """Whether the regularizer has changed the estimate; None where there is none."""
        return None if self.moved is None else self.moved > MOVED

    def to_dict(self) -> dict[str, Any]:
        """Return all fields and verdicts as plain numbers, strings, lists and None, ready for JSON."""
        values = {field.name: _plain(getattr(self, field.name)) for field in fields(self)}
        return values | {"shift_is_plausible": self.shift_is_plausible, "is_smoothed": self.is_smoothed}

    def plot(self, ax: Any = None) -> Any:
        """Draw M as a heat map, see :func:`ordinalq.plot.response_matrix`."""
        from ordinalq.plot import response_matrix

        if self.matrix is None:
            raise ValueError(f"plot needs a matrix M, and {self.method} has none.")
        return response_matrix(self.matrix, [str(c) for c in self.classes], ax=ax)

    def __str__(self) -> str:
        training = "" if self.n_training is None else f", {self.n_training:,} training items"
        lines = [f"{self.method} on {self.n_items:,} items ({len(self.classes)} classes{training})"]
        lines += [self._fit(), *self._precision(), self._matrix(), self._smoothing(), self._shape(), *self.notes]
        return "\n".join(line for line in lines if line)

    def _fit(self) -> str:
        if self.p_value is None:
            return ""
        p = "p < 1e-9" if self.p_value < 1e-9 else f"p = {self.p_value:.2g}"
        test = f"chi-square {self.chi2:.1f} for {self.degrees_of_freedom} degrees of freedom, {p}"
        if self.p_value >= LEVEL:
            return f"Fit: good. The sample looks like a mixture of the known classes ({test})."
        if self.shift_is_plausible:
            return f"Fit: acceptable. The sample differs from a mixture of the known classes, but slightly ({test})."
        return (
            f"Fit: bad. No mixture of the known classes looks like this sample ({test}): the items themselves have "
            "changed, not only the shares of the classes. Do not trust the estimate."
        )

    def _precision(self) -> list[str]:
        if self.standard_errors is None or self.unnoticed is None:
            return []
        half = np.minimum(TWO_SIDED * self.standard_errors, 1.0)
        worst = int(half.argmax())
        text = f"Precision: without smoothing about +-{half[worst]:.2g} for class {self.classes[worst]}, "
        text += f"+-{np.median(half):.2g} for the median class (95 %)."
        if half[worst] <= WANTED:
            verdict = "The sample is large enough."
        elif self.n_needed is None:
            verdict = f"No sample is large enough for +-{WANTED} everywhere: it takes more training items."
        else:
            verdict = f"It takes about {self.n_needed:,} items for +-{WANTED} everywhere."
        lines = [f"{text} {verdict}"]
        if self.confusable:
            worst_first = sorted(self.confusable, key=lambda pair: -self.unnoticed[pair])  # type: ignore[index]
            named = [
                f"{self.classes[i]} and {self.classes[j]} ({min(self.unnoticed[i, j], 1):.0%})"
                for i, j in worst_first[:3]
            ]
            more = f" and {len(worst_first) - 3} more pairs" if len(worst_first) > 3 else ""
            lines.append(
                f"Classes: hardly told apart are {', '.join(named)}{more}; in brackets the part of the sample that "
                "could change sides unnoticed."
            )
        else:
            lines.append("Classes: all can be told apart.")
        return lines

    def _matrix(self) -> str:
        if self.condition_number is None:
            return ""
        kinds = (
            (10, "harmless"),
            (100, "noise is amplified noticeably"),
            (1e8, "noise is amplified strongly"),
            (np.inf, "M alone does not determine the shares of all classes"),
        )
        verdict = next(text for limit, text in kinds if self.condition_number <= limit)
        return f"Matrix: condition number {self.condition_number:.3g}, {verdict}."

    def _smoothing(self) -> str:
        if self.moved is None:
            return "Smoothing: none; this method has no regularizer."
        freedom = "" if self.effective_freedom is None else f", {self.effective_freedom:.1f} degrees of freedom"
        what = f"{self.parameter} = {self.strength:.3g}{freedom}"
        if not self.is_smoothed:
            return f"Smoothing: not active ({what}); without it the estimate would be the same."
        return (
            f"Smoothing: active ({what}). It moved the estimate by an NMD of {self.moved:.3f} and changed its "
            f"jaggedness from {self.jaggedness_without:.3g} to {self.jaggedness:.3g}."
        )

    def _shape(self) -> str:
        text = f"Shape: jaggedness {self.jaggedness:.3g}, training data {self.training_jaggedness:.3g}"
        if self.noise_jaggedness is None:
            return f"{text}."
        text += f", noise alone {self.noise_jaggedness:.2g} (without smoothing)"
        zigzag = self.jaggedness > 3 * self.training_jaggedness and self.noise_jaggedness > self.jaggedness / 2
        more = "more smoothing" if self.is_smoothed else "smoothing"
        return f"{text}. The ups and downs may be noise; {more} may help." if zigzag else f"{text}."


class Moments(NamedTuple):
    """Means M (d, n), second moments E (n, d, d) and covariances V (n, d, d) of d functions in n classes."""

    M: Floats
    E: Floats
    V: Floats
    counts: Floats

    def item_covariance(self, p: Floats) -> Floats:
        """Return the covariance (d, d) of one item of the mixture p."""
        v = self.M @ p
        return np.asarray(np.tensordot(p, self.E, axes=1) - np.outer(v, v))

    def covariance(self, p: Floats, N: float) -> Floats:
        """Return the covariance (d, d) of q - M p: N items of the mixture p, and class means of limited accuracy."""
        return np.asarray(self.item_covariance(p) / N + np.tensordot(p * p / self.counts, self.V, axes=1))

    def information(self, p: Floats, N: float) -> tuple[Floats, Floats]:
        """Return W (d, d), the inverse of the covariance, and the information M'WM (n, n)."""
        W: Floats = np.linalg.pinv(self.covariance(p, N), hermitian=True).astype(np.float64)
        return W, self.M.T @ W @ self.M


def diagnose(quantifier: Any, S: Floats, estimate: Floats, training: tuple[Floats, Codes] | None) -> Diagnosis:
    """Return the diagnosis of a fitted quantifier on the items S (N, ...) of one sample.

    Parameters
    ----------
    quantifier : Quantifier
        Fitted.
    S : ndarray (N, n) or (N, d)
        Valid scores or features.
    estimate : ndarray (n,)
        What the quantifier says of them.
    training : tuple of ndarray (N', ...) and ndarray (N',), or None
        Held-out scores (or features) and codes of the training items.
    """
    n = len(quantifier.classes_)
    values: dict[str, Any] = dict.fromkeys(field.name for field in fields(Diagnosis))
    values |= {
        "method": type(quantifier).__name__,
        "classes": quantifier.classes_,
        "n_items": len(S),
        "estimate": estimate,
        "confusable": [],
        "jaggedness": jaggedness(estimate),
        "training_jaggedness": jaggedness(quantifier.p_train_),
        "notes": [],
    }
    values |= _smoothing(quantifier, S, estimate)
    if training is None:
        values["notes"].append(
            f"Fit, precision and matrix do not apply: {values['method']} keeps no scores of held-out training items."
        )
        return Diagnosis(**values)
    values["n_training"] = len(training[1])
    values |= _matrix(quantifier, *training)
    known, new = _functions(quantifier, S, training)
    if known.shape[1] < n:
        if len(S) < ITEMS_PER_FUNCTION * n:
            why = f"the sample is too small, it takes at least {ITEMS_PER_FUNCTION * n} items."
        elif quantifier._on == "features":
            why = f"the method looks at {known.shape[1]} numbers per item, too few to check {n} shares."
        else:
            why = "votes have no more values than there are classes; a classifier with probabilities tells more."
        values["notes"].append(f"Fit and precision do not apply: {why}")
        return Diagnosis(**values)
    return Diagnosis(**(values | _test(known, training[1], new, estimate, n)))


def _test(known: Floats, codes: Codes, new: Floats, estimate: Floats, n: int) -> dict[str, Any]:
    """Compare the mean of `new` (N, d) with mixtures of the class means of `known` (N', d)."""
    moments = class_moments(known, codes, n)
    N, q = len(new), new.mean(axis=0)
    p = clean(estimate[None] + 1e-3)[0]
    for _ in range(10):
        W, A = moments.information(p, N)
        p = simplex_qp(A, (moments.M.T @ W @ q)[None])[0][0]
    W, A = moments.information(p, N)
    chi2, at_estimate = (float(r @ W @ r) for r in (q - moments.M @ p, q - moments.M @ estimate))
    # Classes that the best mixture leaves out were no freedom of the fit.
    freedom = len(q) - int((p > 0).sum()) + 1
    effect = _effect(moments, q, p, N, freedom / len(q))
    errors = covariance_on_simplex(A)
    deltas = np.eye(n)[:, None] - np.eye(n)[None]
    moving = np.einsum("ija,ab,ijb->ij", deltas, A, deltas)
    unnoticed = np.divide(2.0, np.sqrt(np.maximum(moving, 1e-300)), where=~np.eye(n, dtype=bool), out=np.zeros((n, n)))
    C = difference_matrix(n)
    return {
        "chi2": chi2,
        "degrees_of_freedom": freedom,
        "p_value": float(chdtrc(freedom, chi2)),
        "effect": effect,
        "best_mixture": p,
        "excess_chi2": max(at_estimate - chi2, 0.0),
        "standard_errors": np.sqrt(np.diag(errors)),
        "n_needed": _needed(moments, p),
        "unnoticed": unnoticed,
        "confusable": [(i, j) for i in range(n) for j in range(i + 1, n) if unnoticed[i, j] > UNNOTICED],
        "noise_jaggedness": float(np.trace(C @ errors @ C.T) / min(6, n + 1)),
    }


def _effect(moments: Moments, q: Floats, p: Floats, N: int, free: float) -> float:
    """Return sqrt(max(r'Wr - tr(W Omega) free, 0)), r = q - M p.

    W is the inverse covariance of one item of the mixture p, Omega the covariance of r if nothing but noise is in it,
    and `free` the part of its directions that the fit has left. Divided by one item's noise and not by that of q, the
    deviation neither grows with the sample nor fades once M is less certain than q.
    """
    r = q - moments.M @ p
    W: Floats = np.linalg.pinv(moments.item_covariance(p), hermitian=True).astype(np.float64)
    noise = np.trace(W @ moments.covariance(p, N)) * free
    return float(np.sqrt(max(r @ W @ r - noise, 0.0)))


def class_moments(F: Floats, codes: Codes, n: int) -> Moments:
    """Return the moments of F (N, d) in each of n classes."""
    counts = np.bincount(codes, minlength=n).astype(np.float64)
    members = one_hot(codes, n)
    M = (members.T @ F).T / counts
    E = np.array([F[codes == i].T @ F[codes == i] for i in range(n)]) / counts[:, None, None]
    V = E - np.einsum("ai,bi->iab", M, M)
    pooled = np.tensordot(counts, V, axes=1) / counts.sum()
    weight = (counts / (counts + BORROWED))[:, None, None]
    return Moments(M, E, weight * V + (1 - weight) * pooled, counts)


def covariance_on_simplex(A: Floats) -> Floats:
    """Return the covariance (n, n) of an estimate on the simplex with information A (n, n)."""
    n = len(A)
    # Columns of Z span the directions that sum to zero.
    Z = np.linalg.svd(np.ones((1, n)))[2][1:].T
    return np.asarray(Z @ np.linalg.pinv(Z.T @ A @ Z, hermitian=True) @ Z.T)


def _needed(moments: Moments, p: Floats) -> int | None:
    """Return the number of items that makes every 95 % interval narrow enough, or None."""

    def enough(N: float) -> bool:
        errors = np.diag(covariance_on_simplex(moments.information(p, N)[1]))
        return bool(TWO_SIDED * np.sqrt(errors.max()) <= WANTED)

    low, high = 0.0, 8.0  # powers of ten
    if not enough(10**high):
        return None
    while high - low > 0.005:
        middle = (low + high) / 2
        low, high = (low, middle) if enough(10**middle) else (middle, high)
    digits = max(int(high) - 1, 0)
    return int(np.ceil(10 ** (high - digits)) * 10**digits)


def _functions(quantifier: Any, S: Floats, training: tuple[Floats, Codes]) -> tuple[Floats, Floats]:
    """Return g of the training items and of the sample, (N', d) and (N, d), without redundant directions."""
    known_S, codes = training
    n = len(quantifier.classes_)
    # Every class counts alike: a sample may hold many of those that are rare in training.
    weights = 1 / np.bincount(codes, minlength=n)[codes] / n
    if quantifier._on == "features":
        known, new = (np.asarray(quantifier.representation_.transform(part), dtype=float) for part in (known_S, S))
    else:
        many = int(np.clip(len(S) // ITEMS_PER_FUNCTION, 2, 2 * n))
        columns = []
        for function, n_bins in ((expected_rank, many), (lambda part: part.max(axis=1), min(many, n))):
            x = function(known_S)
            edges = _quantiles(x, weights, n_bins)
            columns.append([one_hot(edges.searchsorted(function(part)), len(edges) + 1) for part in (known_S, S)])
        known, new = (np.hstack([*(c[k] for c in columns), part]) for k, part in enumerate((known_S, S)))
    centre = weights @ known
    known, new = known - centre, new - centre
    size, axes = np.linalg.eigh((known * weights[:, None]).T @ known)
    kept = np.flatnonzero(size > 1e-6 * size.max())[::-1]
    axes = axes[:, kept[: min(FUNCTIONS_PER_CLASS * n, len(S) // ITEMS_PER_FUNCTION)]]
    return known @ axes, new @ axes


def _quantiles(x: Floats, weights: Floats, n_bins: int) -> Floats:
    """Return distinct edges that cut the weighted values x (N,) into at most n_bins parts of equal weight."""
    order = np.argsort(x, kind="stable")
    cumulated = np.cumsum(weights[order])
    at = np.searchsorted(cumulated, np.arange(1, n_bins) / n_bins * cumulated[-1])
    edges = np.unique(x[order][at])
    return np.asarray(edges[edges < x.max()])


def _matrix(quantifier: Any, S: Floats, codes: Codes) -> dict[str, Any]:
    """Return M and its condition number."""
    M = getattr(quantifier, "M_", None)
    if M is None or quantifier.loss_.needs_distances:
        if quantifier._on == "features":
            return {}
        members = one_hot(codes, len(quantifier.classes_))
        M = (members.T @ S).T / members.sum(axis=0)
    return {"matrix": M, "condition_number": float(min(np.linalg.cond(M), 1e16))}


def _smoothing(quantifier: Any, S: Floats, estimate: Floats) -> dict[str, Any]:
    """Compare the estimate with the one without smoothing."""
    regularizer = getattr(quantifier, "regularizer_", None)
    name = None if regularizer is None else regularizer.strength
    if name is None:
        return {}
    samples = Samples.whole(len(S))
    without = copy(quantifier)
    without.regularizer_ = with_strength(regularizer, 0.0)
    strength, freedom = getattr(regularizer, name), None
    if hasattr(quantifier, "_freedom"):
        strength, freedom = (float(part[0]) for part in quantifier._freedom(S, samples))
        without.n_df = None
    plain = clean(without._solve(S, samples).p)[0]
    return {
        "parameter": name,
        "strength": float(strength),
        "moved": nmd(plain, estimate),
        "jaggedness_without": jaggedness(plain),
        "effective_freedom": freedom,
    }


def _plain(value: Any) -> Any:
    """Return arrays and NumPy numbers as plain ones; infinite or missing numbers as None."""
    if isinstance(value, np.ndarray | np.generic):
        value = value.tolist()
    if isinstance(value, list | tuple):
        return [_plain(part) for part in value]
    return None if isinstance(value, float) and not np.isfinite(value) else value
