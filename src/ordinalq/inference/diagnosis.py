"""What can be said of one estimate: whether the data fit the method's assumption, and how much they tell.

Quantifiers assume prior probability shift: a new sample is another mixture of the same classes. Then the mean of any
function g of the items is a mixture of its class means, q = M p. `diagnose` takes more functions than there are
classes, compares q with the best mixture by a chi-square test, and derives from the same covariances how well classes
can be told apart and how many items it takes.

For methods on scores g are the functions of `ordinalq.inference.checks`; for methods on features it is their own
representation. Thus the test has residual degrees of freedom also where the method itself has none, as ACC with its n
equations for n classes.
"""

from ordinalq._utils.validation import Floats
from ordinalq.inference.functions import FUNCTIONS_PER_CLASS, checked
from ordinalq.inference.mixture import Moments, class_moments, compare
from ordinalq.inference.model import FittedQuantifier
from ordinalq.inference.verdict import Diagnosis, SmoothingEffect
from ordinalq.metrics import nmd
from ordinalq.samples.samples import class_means
from ordinalq.samples.summary import Summary
from ordinalq.simplex import clean, jaggedness
from ordinalq.solvers.solution import distributions

# Items per function in the test.
ITEMS_PER_FUNCTION = 10


def diagnose(quantifier: FittedQuantifier, summary: Summary) -> Diagnosis:
    """Return the diagnosis of a fitted quantifier on the summary of one sample, made with ``checks=True``."""
    if len(summary) != 1:
        raise ValueError(f"summary must be of one sample, got {len(summary)}.")
    estimate = distributions(quantifier.solve(summary))[0]
    N = int(summary.drawn_sizes[0])
    known, notes = getattr(quantifier, "held_out_", None), []
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
        n_training=None if known is None else len(known[1]),
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
    """Return the moments of g over the held-out items, and its mean over the sample (d,)."""
    known, n = checked(quantifier), len(quantifier.classes_)
    few = known.first(min(FUNCTIONS_PER_CLASS * n, int(summary.drawn_sizes[0]) // ITEMS_PER_FUNCTION))
    moments = class_moments(few.g, few.codes, n, few.weights)._replace(D=few.D)
    return moments, few.means(summary)[0]


def _too_few(quantifier: FittedQuantifier, n_functions: int, N: int) -> str:
    """State why there are fewer functions than classes."""
    n = len(quantifier.classes_)
    if ITEMS_PER_FUNCTION * n > N:
        return f"the sample is too small, it takes at least {ITEMS_PER_FUNCTION * n} items."
    if quantifier.on == "features":
        return f"the method looks at {n_functions} numbers per item, too few to check {n} shares."
    return "votes have no more values than there are classes; a classifier with probabilities tells more."


def _matrix(quantifier: FittedQuantifier) -> Floats | None:
    """Return M, or the mean scores of each class."""
    M = quantifier.response_matrix()
    if M is not None or quantifier.on == "features" or not hasattr(quantifier, "held_out_"):
        return M
    return class_means(*quantifier.held_out_, None, quantifier.held_out_weights_)


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
    assert strength is not None  # those with a strength of its own for each sample know their freedom
    return SmoothingEffect(
        parameter=smoothing.parameter,
        strength=strength,
        moved=float(nmd(without, estimate)),
        jaggedness_without=float(jaggedness(without)),
        freedom=freedom,
    )
