"""Diagnosis of one estimate: fit test, precision, and the effect of smoothing.

Quantifiers assume prior probability shift: a new sample is another mixture of the same classes. Then the mean of any
function g of the items is a mixture of its class means, q = M p. `diagnose` takes more functions than there are
classes, compares q with the best mixture by a chi-square test, and derives from the same covariances how well classes
can be distinguished and how many items it takes.

For methods on scores g are the functions of `ordinalq.inference.model`; for methods on features it is their own
representation. Thus the test has residual degrees of freedom also where the method itself has none, as ACC with its n
equations for n classes.
"""

from dataclasses import dataclass, fields, is_dataclass
from typing import Any

import numpy as np

from ordinalq._utils.text import percent
from ordinalq._utils.validation import Array, Floats
from ordinalq.inference.fit_test import (
    FUNCTIONS_PER_CLASS,
    TWO_SIDED,
    WANTED,
    Fit,
    Moments,
    Precision,
    checked,
    class_moments,
    compare,
)
from ordinalq.inference.model import FittedQuantifier, has_held_out
from ordinalq.metrics import nmd
from ordinalq.samples.samples import class_means
from ordinalq.samples.summary import Summary
from ordinalq.simplex import clean, jaggedness
from ordinalq.solvers.solution import distributions

# The record about one estimate, and its text.


# An estimate that differs by less from the one without smoothing is not smoothed.
MOVED = 0.001
# A larger condition number is reported as infinite.
MAX_CONDITION = 1e16
# Condition numbers of M up to each limit, and what they mean.
CONDITIONS = (
    (10, "harmless"),
    (100, "noise is amplified noticeably"),
    (1e8, "noise is amplified strongly"),
    (np.inf, "M alone does not determine the shares of all classes"),
)
# Pairs of classes that are named.
NAMED = 3


@dataclass(frozen=True, eq=False)
class SmoothingEffect:
    """Effect of smoothing on an estimate: strength and change of the estimate."""

    parameter: str
    strength: float
    moved: float  # NMD between the estimate and the one without smoothing
    jaggedness_without: float  # xi_1 without smoothing
    freedom: float | None  # degrees of freedom that the regularizer leaves, if the method has them (RUN)

    @property
    def is_active(self) -> bool:
        """Whether it has changed the estimate."""
        return self.moved > MOVED


@dataclass(frozen=True, eq=False)
class Diagnosis:
    """Diagnosis of the estimate of one sample.

    ``str`` gives a short text, ``to_dict`` plain values.

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
    jaggedness, training_jaggedness : float
        xi_1 of the estimate and of the training distribution.
    matrix : ndarray (d, n) or None
        M: the method's own, or the mean scores of each class where it has none or holds distances.
    fit : Fit or None
        Whether any mixture of the classes explains the sample.
    precision : Precision or None
        How well the classes can be distinguished.
    smoothing : SmoothingEffect or None
        What the regularizer has done; None if there is none.
    notes : list of str
        What does not apply, and why.
    """

    method: str
    classes: Array
    n_items: int
    n_training: int | None
    estimate: Floats
    jaggedness: float
    training_jaggedness: float
    matrix: Floats | None
    fit: Fit | None
    precision: Precision | None
    smoothing: SmoothingEffect | None
    notes: list[str]

    @property
    def condition_number(self) -> float | None:
        """Condition number of the matrix."""
        return None if self.matrix is None else float(min(np.linalg.cond(self.matrix), MAX_CONDITION))

    @property
    def shift_is_plausible(self) -> bool | None:
        """Whether the sample may be a mixture of the classes; None if not tested."""
        return None if self.fit is None else self.fit.is_plausible

    @property
    def is_smoothed(self) -> bool | None:
        """Whether smoothing has changed the estimate; None if there is none."""
        return None if self.smoothing is None else self.smoothing.is_active

    def to_dict(self) -> dict[str, Any]:
        """Return all fields and verdicts as plain values, ready for JSON."""
        verdicts = ("condition_number", "shift_is_plausible", "is_smoothed")
        values: dict[str, Any] = plain(self)
        return values | {name: plain(getattr(self, name)) for name in verdicts}

    def plot(self, ax: Any = None) -> Any:
        """Draw M as a heat map, see :func:`ordinalq.plot.response_matrix`."""
        from ordinalq.plot import response_matrix

        if self.matrix is None:
            raise ValueError(f"plot needs a matrix M, which {self.method} does not have.")
        return response_matrix(self.matrix, [str(c) for c in self.classes], ax=ax)

    def __str__(self) -> str:
        return as_text(self)


def as_text(diagnosis: Diagnosis) -> str:
    """Return a diagnosis as a short text, one statement per line."""
    training = "" if diagnosis.n_training is None else f", {diagnosis.n_training:,} training items"
    lines = [f"{diagnosis.method} on {diagnosis.n_items:,} items ({len(diagnosis.classes)} classes{training})"]
    lines += [
        _fit(diagnosis),
        *_precision(diagnosis),
        _matrix_line(diagnosis),
        _smoothing_line(diagnosis),
        _shape(diagnosis),
    ]
    return "\n".join(line for line in [*lines, *diagnosis.notes] if line)


def plain(value: Any) -> Any:
    """Return records and arrays as plain dicts, lists and numbers.

    Infinite and missing numbers become None.
    """
    if is_dataclass(value):
        return {field.name: plain(getattr(value, field.name)) for field in fields(value)}
    if isinstance(value, np.ndarray | np.generic):
        value = value.tolist()
    if isinstance(value, list | tuple):
        return [plain(part) for part in value]
    return None if isinstance(value, float) and not np.isfinite(value) else value


def _fit(diagnosis: Diagnosis) -> str:
    fit = diagnosis.fit
    if fit is None:
        return ""
    p = "p < 1e-9" if fit.p_value < 1e-9 else f"p = {fit.p_value:.2g}"
    test = f"chi-square {fit.chi2:.1f} for {fit.degrees_of_freedom} degrees of freedom, {p}"
    if fit.is_good:
        return f"Fit: good. The sample looks like a mixture of the training classes ({test})."
    if fit.is_plausible:
        return f"Fit: acceptable. The sample differs slightly from a mixture of the training classes ({test})."
    return (
        f"Fit: bad. The sample is not a mixture of the training classes ({test}). The features within classes have "
        "changed, not only the prevalences. Do not trust the estimate."
    )


def _precision(diagnosis: Diagnosis) -> list[str]:
    precision, classes = diagnosis.precision, diagnosis.classes
    if precision is None:
        return []
    half = np.minimum(TWO_SIDED * precision.standard_errors, 1.0)
    worst = int(half.argmax())
    text = f"Precision: without smoothing about +-{half[worst]:.2g} for class {classes[worst]}, "
    text += f"+-{np.median(half):.2g} for the median class (95%)."
    if half[worst] <= WANTED:
        verdict = "The sample is large enough."
    elif precision.n_needed is None:
        verdict = f"No sample is large enough for +-{WANTED} for every class. More training items are needed."
    else:
        verdict = f"About {precision.n_needed:,} items are needed for +-{WANTED} for every class."
    pairs = precision.confusable
    if not pairs:
        return [f"{text} {verdict}", "Classes: all can be distinguished."]
    parts = np.minimum(precision.unnoticed, 1)
    named = [f"{classes[i]} and {classes[j]} ({percent(parts[i, j], 0)})" for i, j in pairs[:NAMED]]
    more = f" and {len(pairs) - NAMED} more pairs" if len(pairs) > NAMED else ""
    line = (
        f"Classes: these pairs are hard to distinguish: {', '.join(named)}{more}. In parentheses: the percentage of "
        "the sample that could move from one class to the other unnoticed."
    )
    return [f"{text} {verdict}", line]


def _matrix_line(diagnosis: Diagnosis) -> str:
    condition = diagnosis.condition_number
    if condition is None:
        return ""
    verdict = next(text for limit, text in CONDITIONS if condition <= limit)
    return f"Matrix: condition number {condition:.3g}, {verdict}."


def _smoothing_line(diagnosis: Diagnosis) -> str:
    effect = diagnosis.smoothing
    if effect is None:
        return "Smoothing: none; this method has no regularizer."
    freedom = "" if effect.freedom is None else f", {effect.freedom:.1f} degrees of freedom"
    what = f"{effect.parameter} = {effect.strength:.3g}{freedom}"
    if not effect.is_active:
        return f"Smoothing: not active ({what}); without it the estimate would be the same."
    return (
        f"Smoothing: active ({what}). It moved the estimate by an NMD of {effect.moved:.3f} and changed its "
        f"jaggedness from {effect.jaggedness_without:.3g} to {diagnosis.jaggedness:.3g}."
    )


def _shape(diagnosis: Diagnosis) -> str:
    jagged, training = diagnosis.jaggedness, diagnosis.training_jaggedness
    text = f"Shape: jaggedness {jagged:.3g}, training data {training:.3g}"
    if diagnosis.precision is None:
        return f"{text}."
    noise = diagnosis.precision.noise_jaggedness
    text += f", noise alone {noise:.2g} (without smoothing)"
    more = "more smoothing" if diagnosis.is_smoothed else "smoothing"
    zigzag = jagged > 3 * training and noise > jagged / 2
    return f"{text}. The ups and downs may be noise; {more} may help." if zigzag else f"{text}."


# Items per function in the test.
ITEMS_PER_FUNCTION = 10


def diagnose(quantifier: FittedQuantifier, summary: Summary) -> Diagnosis:
    """Return the diagnosis of one sample, summarized with ``checks=True``."""
    if len(summary) != 1:
        raise ValueError(f"summary must be of one sample, got {len(summary)}.")
    estimate = distributions(quantifier.solve(summary))[0]
    N = int(summary.drawn_sizes[0])
    known, notes = quantifier.held_out_ if has_held_out(quantifier) else None, []
    fit = precision = None
    if known is None:
        notes.append(f"Fit and precision do not apply: {type(quantifier).__name__} keeps no scores of held-out items.")
    else:
        moments, q = _functions(quantifier, summary)
        if len(q) < len(quantifier.classes_):
            notes.append(f"Fit and precision do not apply: {_too_few(quantifier, len(q), N)}")
        else:
            fit, precision = compare(moments, q, N, estimate)
            if moments.D is not None:
                notes.append("Fit and precision count how groups differ, as the training groups do.")
    if summary.has_weights:
        notes.append(f"The items are weighted, and worth {N:,} items of equal weight.")
    return Diagnosis(
        method=type(quantifier).__name__,
        classes=quantifier.classes_,
        n_items=int(summary.n_items[0]),
        n_training=None if known is None else len(known.codes),
        estimate=estimate,
        jaggedness=jaggedness(estimate),
        training_jaggedness=jaggedness(quantifier.p_train_),
        matrix=_matrix(quantifier),
        fit=fit,
        precision=precision,
        smoothing=_smoothing(quantifier, summary, estimate),
        notes=notes,
    )


def _functions(quantifier: FittedQuantifier, summary: Summary) -> tuple[Moments, Floats]:
    """Return moments of g over held-out items, and its mean over the sample (d,)."""
    known, n = checked(quantifier), len(quantifier.classes_)
    few = known.first(min(FUNCTIONS_PER_CLASS * n, int(summary.drawn_sizes[0]) // ITEMS_PER_FUNCTION))
    moments = class_moments(few.g, few.codes, n, few.weights)._replace(D=few.D)
    return moments, few.means(summary)[0]


def _too_few(quantifier: FittedQuantifier, n_functions: int, N: int) -> str:
    """State why there are fewer functions than classes."""
    n = len(quantifier.classes_)
    if ITEMS_PER_FUNCTION * n > N:
        return f"the sample is too small, it takes at least {ITEMS_PER_FUNCTION * n} items."
    if quantifier.traits.input_kind == "features":
        return f"the method looks at {n_functions} numbers per item, too few to check {n} shares."
    return "votes have only as many values as there are classes. Use a classifier with probabilities."


def _matrix(quantifier: FittedQuantifier) -> Floats | None:
    """Return M, or the mean scores of each class."""
    M = quantifier.response_matrix()
    if M is not None or quantifier.traits.input_kind == "features" or not has_held_out(quantifier):
        return M
    V = quantifier.held_out_
    return class_means(V.S, V.codes, None, V.weights)


def _smoothing(quantifier: FittedQuantifier, summary: Summary, estimate: Floats) -> SmoothingEffect | None:
    """Compare the estimate with the one without smoothing."""
    smoothing = quantifier.smoothing()
    if smoothing is None:
        return None
    without = clean(quantifier.with_strength(0.0).solve(summary).p)[0]
    strength, freedom = smoothing.value, None
    own = quantifier.freedom(summary)
    if own is not None:
        strength, freedom = (float(part[0]) for part in own)
    assert strength is not None  # methods with one strength per sample have set their degrees of freedom
    return SmoothingEffect(
        parameter=smoothing.parameter,
        strength=strength,
        moved=float(nmd(without, estimate)),
        jaggedness_without=float(jaggedness(without)),
        freedom=freedom,
    )
