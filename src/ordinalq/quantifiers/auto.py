"""`AutoQuantifier`, the default quantifier, and the record of its choices."""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ordinalq._utils.validation import Codes, check_choice
from ordinalq.classifiers.cross_fitting import last_step
from ordinalq.classifiers.stacking import BUDGETS, OrdinalStack
from ordinalq.inference.expected_error import expected_errors
from ordinalq.inference.model import Traits
from ordinalq.quantifiers.adjusted_ml import AdjustedML
from ordinalq.quantifiers.base import TrainingGroups
from ordinalq.samples.weights import Weights

# Sizes of samples for which the expected error is reported.
SIZES = (100, 1000)


@dataclass(frozen=True)
class Training:
    """Choice of :class:`AutoQuantifier` and its expected errors.

    Attributes
    ----------
    budget, kind, method : str
        The given budget, the kind of items, and the name of the method.
    reasons : tuple of str
        Reason for each part.
    weights : dict of str to float
        Weight of the regressors together, and of each classifier, in the stack.
    expected : dict of int or str to float
        Expected mean NMD of samples by number of items, with any distribution, or of groups by size; see
        :func:`ordinalq.inference.expected_error.expected_errors`.
    """

    budget: str
    kind: str
    method: str
    reasons: tuple[str, ...]
    weights: dict[str, float]
    expected: dict[Any, float]

    def __str__(self) -> str:
        lines = [f"{self.method} on a stack for {self.kind!r} items, budget {self.budget!r}"]
        numbers = {reason: self.reasons.count(reason) for reason in self.reasons}
        lines += [f"  {reason if n == 1 else reason.replace(':', f' ({n}):', 1)}" for reason, n in numbers.items()]
        lines.append("  weights: " + ", ".join(f"{name} {weight:.2f}" for name, weight in self.weights.items()))
        sizes = {size: size if isinstance(size, str) else f"samples of {size} items" for size in self.expected}
        known = {size: f"{error:.4f}" for size, error in self.expected.items() if not np.isnan(error)}
        lines.append("  expected NMD: " + (", ".join(f"{known[size]} in {sizes[size]}" for size in known) or "unknown"))
        return "\n".join(lines)


class AutoQuantifier(AdjustedML):
    """Default method: adjusted maximum likelihood on a stack of models.

    ``AutoQuantifier(budget=...)`` is ``AdjustedML(OrdinalStack(budget=...))`` and also reports its choices and the
    expected error. It chooses models by a table, without a search; see docs/default.md. With training groups, it learns
    the differences between groups.

    Parameters
    ----------
    budget : {"fast", "balanced", "best"}, default="balanced"
        Time budget. On one core, 20,000 items with 10 columns take about 4 s with "fast" and 12 s with "balanced".
        "best" takes several times as long.
    prior, strength, instrument
        See :class:`AdjustedML`.
    group_effect : float, default=0.1
        Intraclass correlation that is assumed if groups are estimated without training groups, see :class:`GroupBLP`. A
        warning is issued in this case. None assumes no group effect. `predict` and `predict_samples` do not use it.
    n_jobs : int, default=None
        Number of folds that are fitted at the same time.
    random_state : int, default=0
        Seed of folds, trees and samples.

    Attributes
    ----------
    training_ : Training
        The choices with their reasons, the weights of the models, and the expected error.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> stars = rng.integers(1, 6, size=500)
    >>> q = AutoQuantifier(budget="fast").fit(stars[:, None] + rng.normal(size=(500, 3)), stars)
    >>> q.training_.kind, q.training_.method
    ('few', 'AdjustedML')
    """

    def __init__(
        self,
        *,
        budget: str = "balanced",
        prior: Any = "any",
        strength: float | None = None,
        instrument: str = "sample",
        group_effect: float | None = 0.1,
        n_jobs: int | None = None,
        random_state: int = 0,
    ) -> None:
        self.budget = budget
        self.prior = prior
        self.strength = strength
        self.instrument = instrument
        self.group_effect = group_effect
        self.n_jobs = n_jobs
        self.random_state = random_state

    @property
    def traits(self) -> Traits:
        """Traits of AdjustedML, but it fits its own classifiers."""
        return replace(super().traits, accepts_scores=False)

    @property
    def classifier(self) -> OrdinalStack:
        """The stack, unfitted."""
        return OrdinalStack(budget=self.budget, n_jobs=self.n_jobs, random_state=self.random_state)

    def check_parameters(self, n_classes: int) -> None:
        """Raise ValueError if a parameter is out of range."""
        check_choice("budget", self.budget, BUDGETS)
        super().check_parameters(n_classes)

    def _fit_items(self, X: Any, codes: Codes, groups: TrainingGroups | None, weights: Weights | None) -> None:
        """Fit the stack on items and codes (N,), then the method, and estimate errors."""
        super()._fit_items(X, codes, groups, weights)
        stack: Any = self.classifier_
        method = AdjustedML(
            prior=self.prior, strength=self.strength, instrument=self.instrument, group_effect=self.group_effect
        )
        S, seed = stack.held_out_scores_, self.random_state
        place = None if groups is None else groups.codes
        expected = expected_errors(method, S, codes, groups=place, sizes=SIZES, random_state=seed)
        learned = "" if groups is None else "; learns from the training groups how groups differ"
        reason = f"AdjustedML: adjusted maximum likelihood, robust to imperfect posteriors{learned}"
        self.training_ = Training(
            budget=self.budget,
            kind=stack.kind_,
            method="AdjustedML",
            reasons=(*stack.reasons_, reason),
            weights=_weights(stack),
            expected=expected,
        )


def _weights(stack: Any) -> dict[str, float]:
    """Return the weight of the regressors together and of each kind of classifier."""
    weights: dict[str, float] = {}
    for member, weight in zip(stack.members_, np.asarray(stack.weights_).tolist(), strict=True):
        name = type(last_step(member.estimator)).__name__ if hasattr(member, "estimator") else "regressors"
        weights[name] = weights.get(name, 0.0) + weight
    return weights
