"""Estimates of several quantifiers on the same scores, with their representations shared; a failure is data."""

import time
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from sklearn.base import clone

from ordinalq._utils.validation import Floats, Mask
from ordinalq.metrics import errors
from ordinalq.quantifiers.base import Quantifier
from ordinalq.samples.samples import Samples
from ordinalq.samples.summary import Summary
from ordinalq.simplex import clean
from ordinalq.solvers.solution import Solution


class Attempt(NamedTuple):
    """What a quantifier says of B samples, or why it cannot.

    ``P`` (B, n) are the estimates and ``converged`` (B,) tells where the solver reached its tolerance; both are empty
    where ``message`` says why the quantifier failed. ``seconds`` is the time for fitting and solving.
    """

    P: Floats
    converged: Mask
    seconds: float
    message: str

    @classmethod
    def failed(cls, message: str, seconds: float = 0.0) -> "Attempt":
        """Return an attempt that came to nothing."""
        return cls(np.empty((0, 0)), np.empty(0, dtype=bool), seconds, message)

    def judged(self, rows: Any, truth: Any, measure: Any) -> dict[str, Any]:
        """Return mean and standard deviation (divisor B - 1) of the error over samples with known distributions.

        With them comes how many did not converge. The error of an attempt that came to nothing is infinite.
        """
        if self.message:
            return {"error": np.inf, "std": np.nan, "unconverged": len(truth)}
        each = errors(self.P[rows], truth, measure)
        std = float(each.std(ddof=1)) if len(each) > 1 else np.nan
        return {"error": float(each.mean()), "std": std, "unconverged": int((~self.converged[rows]).sum())}


def estimate_all(
    quantifiers: Iterable[Quantifier],
    S: Any,
    y: Any,
    S_pool: Any,
    samples: Samples,
    *,
    classes: Any = None,
    groups: Any = None,
    votes: bool = False,
) -> Iterator[Attempt]:
    """Fit several quantifiers on the same scores and yield the estimates of each; a failure of one is data.

    S (N, n) are out-of-sample scores (or features) of the training items with labels y and perhaps groups, S_pool those
    of the pool that the samples are of; `votes` says that they are no posteriors. The quantifiers stay unfitted. Those
    that say that they share their representation share that of the items, M and q where these are the same, so that for
    instance all strengths of a regularizer cost one representation.
    """
    shared: list[tuple[Quantifier, Summary]] = []
    for quantifier in quantifiers:
        if votes and quantifier.needs_posteriors:
            name, classifier = type(quantifier).__name__, quantifier.classifier
            text = f"TypeError: {name} needs class probabilities, but {classifier!r} has no predict_proba."
            yield Attempt.failed(text)
        else:
            yield attempt(partial(_solve, clone(quantifier), S, y, S_pool, samples, (classes, groups), shared))


def attempt(solve: Callable[[], Solution]) -> Attempt:
    """Return the estimates of a Solution that `solve` makes, or why it cannot."""
    start = time.perf_counter()
    try:
        solution = solve()
    except Exception as error:  # the search goes on, and the table tells
        return Attempt.failed(describe(error), time.perf_counter() - start)
    return Attempt(clean(solution.p), solution.converged, time.perf_counter() - start, "")


def describe(error: Exception) -> str:
    """Return the kind of an error and what it says."""
    return f"{type(error).__name__}: {error}"


def _solve(
    quantifier: Quantifier,
    S: Any,
    y: Any,
    S_pool: Any,
    samples: Samples,
    known: tuple[Any, Any],
    shared: list[tuple[Quantifier, Summary]],
) -> Solution:
    """Fit the quantifier and return its Solution; where it shares its representation, use or add to `shared`."""
    if not quantifier.shares_representation:
        return quantifier.fit_scores(S, y, *known).solve_scores(S_pool, samples)
    for fitted, summary in shared:
        if quantifier.adopt(fitted):
            return quantifier.solve(summary)
    summary = quantifier.fit_scores(S, y, *known).summarize(S_pool, samples, checks=False)
    shared.append((quantifier, summary))
    return quantifier.solve(summary)
