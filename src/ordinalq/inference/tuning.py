"""How much smoothing: the strength of a regularizer, chosen on the training items alone.

The held-out items V play both parts: some give the class means M, others the samples, see `splits`. The strength whose
estimates have the smallest mean NMD is taken. Nothing is fitted but M, for V is held-out already.
"""

import warnings
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from ordinalq._utils.progress import each
from ordinalq._utils.text import percent
from ordinalq._utils.validation import Floats
from ordinalq.inference.model import FittedQuantifier
from ordinalq.inference.splits import FRACTION
from ordinalq.metrics import nmd
from ordinalq.regularizers import Smoother
from ordinalq.samples.summary import Summary
from ordinalq.simplex import clean, jaggedness

if TYPE_CHECKING:
    import pandas as pd

# After the grid that a smoother starts with, points halfway between the best one and its neighbours are tried, twice.
REFINEMENTS = 2
# The grid is widened where its end is better than all others by more than this part: else the curve is flat there.
BETTER = 1e-3
STEP = 10.0
# In words, what the samples were.
SAMPLES = {
    "smooth": f"smooth samples (APP-OQ {percent(FRACTION)}) of {{size}} training items",
    "prevalences": "samples of {size} training items with the given prevalences",
    "groups": "training groups of {size} items (median), held out",
}


class Trial(NamedTuple):
    """A quantifier, fitted on some of the held-out items, samples of known prevalences (B, n), and weights (B,)."""

    quantifier: FittedQuantifier
    summary: Summary
    prevalences: Floats
    weights: Floats


@dataclass(frozen=True, eq=False)
class Tuning:
    """How the strength of a regularizer was chosen.

    Attributes
    ----------
    parameter : str
        "tau" or "interpolation".
    value : float
        The chosen strength.
    values : ndarray (k,)
        The strengths that were tried, ascending.
    errors : ndarray (k,)
        (Weighted) mean NMD of each over all samples.
    standard_errors : ndarray (k,)
        Standard errors of these means, from the scatter between the splits.
    n_samples, sample_size : int
        Number of the samples, and of the items of each (of groups: the median).
    source : {"smooth", "prevalences", "groups"}
        What the samples were: smooth ones of the training items, such with given prevalences, or training groups.
    """

    parameter: str
    value: float
    values: Floats
    errors: Floats
    standard_errors: Floats
    n_samples: int
    sample_size: int
    source: str = "smooth"

    def __str__(self) -> str:
        best, none = self.errors.min(), self.errors[0]
        samples = SAMPLES[self.source].format(size=self.sample_size)
        text = f"{self.parameter} = {self.value:.3g}, the best of {len(self.values)} on {self.n_samples} {samples}"
        return f"{text}: NMD {best:.4f}, without smoothing {none:.4f}."

    @property
    def at_edge(self) -> bool:
        """Whether it is the largest strength that was tried: more smoothing might have been better still."""
        return bool(self.value == self.values[-1])

    def to_dict(self) -> dict[str, Any]:
        """Return all values as plain numbers and lists."""
        return {name: value.tolist() if isinstance(value, np.ndarray) else value for name, value in vars(self).items()}

    def table(self) -> "pd.DataFrame":
        """Return the curve as a table: columns named after the parameter, then nmd and standard_error."""
        import pandas as pd

        columns = {self.parameter: self.values, "nmd": self.errors, "standard_error": self.standard_errors}
        return pd.DataFrame(columns)

    def plot(self, ax: Any = None) -> Any:
        """Draw the curve, see :func:`ordinalq.plot.tau_path`."""
        from ordinalq.plot import tau_path

        return tau_path(self.values, self.errors, self.standard_errors, chosen=self.value, ax=ax)


def tune(smoother: Smoother, trials: Iterable[Trial], unit: float = 1.0, source: str = "smooth") -> Tuning:
    """Choose a strength of smoothing, relative to a unit, by the mean NMD over trials.

    The smoother says where to begin, and how far one may go. All trials are kept in memory, since every strength goes
    through all of them; their source is told, see :class:`Tuning`.
    """
    trials = list(trials)
    share = np.array([trial.weights.sum() for trial in trials])
    share /= share.sum()
    # Mean NMD of each trial by strength
    found: dict[float, Floats] = {}

    def error(value: float) -> float:
        if value not in found:
            solved = [(t, clean(t.quantifier.with_strength(value).solve(t.summary).p)) for t in trials]
            found[value] = np.array([np.average(nmd(t.prevalences, p), weights=t.weights) for t, p in solved])
        return float(share @ found[value])

    first = list(smoother.strengths(unit))
    for value in each("strength", first):
        error(value)
    values = _refined(_widened(first, error, *smoother.limits(unit)), error)
    errors = np.array([error(value) for value in values])
    # Of a weighted mean; with equal weights the standard deviation of the trials over the root of their number.
    spread = np.array([share @ (share * (found[value] - error(value)) ** 2) for value in values])
    sizes = np.concatenate([trial.summary.n_items for trial in trials])
    return Tuning(
        parameter=str(smoother.strength),
        value=values[int(errors.argmin())],
        values=np.array(values),
        errors=errors,
        standard_errors=np.sqrt(spread * len(trials) / max(len(trials) - 1, 1)),
        n_samples=len(sizes),
        sample_size=int(np.median(sizes)),
        source=source,
    )


def _widened(values: list[float], error: Callable[[float], float], low: float, high: float) -> list[float]:
    """Return strengths (zero, then powers of a step) with more at an end, while that is clearly the best."""
    while values[-1] * STEP <= high and error(values[-1]) < (1 - BETTER) * min(map(error, values[:-1])):
        values = [*values, values[-1] * STEP]
    while values[1] / STEP >= low and error(values[1]) < (1 - BETTER) * min(map(error, [0.0, *values[2:]])):
        values = [values[0], values[1] / STEP, *values[1:]]
    return values


def _refined(values: list[float], error: Callable[[float], float]) -> list[float]:
    """Return strengths with points halfway between the best one and its neighbours."""
    for _ in range(REFINEMENTS):
        at = values.index(min(values, key=error))
        neighbours = values[max(at - 1, 0) : at + 2]
        # No point lies halfway to zero on a logarithmic scale.
        halfway = [float(np.sqrt(a * b)) for a, b in pairwise(neighbours) if a > 0]
        values = sorted({*values, *halfway})
    return values


def warn_of(tuning: Tuning, p_train: Floats, samples: Iterable[Floats]) -> None:
    """Warn where a choice is no good: at the edge of its grid, or on samples all smoother than the training items.

    The samples that it was made on have prevalences (B, n) each, the training items p_train (n,).
    """
    name = tuning.parameter
    if tuning.at_edge:
        warnings.warn(
            f"{name}='auto' ended at {tuning.value:.3g}, the largest that was tried: the smoothest estimate is best. "
            "Either the samples that it was chosen on are as smooth, or the scores tell too little of their classes: "
            f"then take more training items, a better classifier or another method, or give {name} as a number.",
            stacklevel=2,
        )
    if tuning.source != "smooth" or tuning.value == 0:
        return
    most, own = max(float(np.max(jaggedness(P))) for P in samples), float(jaggedness(p_train))
    if own > most:
        warnings.warn(
            f"{name}='auto' was chosen on samples with a jaggedness of at most {most:.2g}, and that of the training "
            f"distribution is {own:.2g}: if yours are as jagged, smoothing may hurt. Fit with groups, give "
            f"{name}=Auto(prevalences=...) with the distributions that you expect, or {name}=0.",
            stacklevel=2,
        )
