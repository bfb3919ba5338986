"""`train`: a fitted quantifier for those who name none."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.base import is_regressor
from sklearn.utils.validation import _num_samples

from ordinalq.contract.fitting import group_codes
from ordinalq.contract.quantifier import Quantifier
from ordinalq.labels import encode_labels
from ordinalq.training.choice import choose
from ordinalq.training.expected import expected_error

# Sizes of samples for which the expected error is told.
SIZES = (100, 1000)


@dataclass(frozen=True)
class Training:
    """What `train` chose, and how good it is.

    Attributes
    ----------
    budget, kind, method : str
        As asked, what kind of items there are, and the name of the method.
    reasons : tuple of str
        Why each part is there.
    weights : dict of str to float
        Weight of the regressors together, and of each classifier, in the stack.
    expected : dict of int or str to float
        Mean NMD to expect of samples of so many items of any distribution, or of "groups"; see `expected_error`.
    """

    budget: str
    kind: str
    method: str
    reasons: tuple[str, ...]
    weights: dict[str, float]
    expected: dict[Any, float]

    def __str__(self) -> str:
        lines = [f"{self.method} on a stack for items of the kind {self.kind!r}, budget {self.budget!r}"]
        lines += [f"  {reason}" for reason in self.reasons]
        lines.append("  weights: " + ", ".join(f"{name} {weight:.2f}" for name, weight in self.weights.items()))
        expected = (
            f"{error:.4f} for {size if size == 'groups' else f'samples of {size} items'}"
            for size, error in self.expected.items()
        )
        lines.append("  expected error (NMD): " + ", ".join(expected))
        return "\n".join(lines)


def train(
    X: Any, y: Any, classes: Any = None, groups: Any = None, *, budget: str = "balanced", random_state: int = 0
) -> Quantifier:
    """Fit the quantifier that suits the items: choose, fit, judge.

    The choice is a table, not a search: `choose` picks regressors and classifiers by the kind of the items and the
    budget, :class:`OrdinalStack` weighs them, and :class:`AML` estimates from their scores. See docs/default.md.

    Parameters
    ----------
    X : array-like, frame or sparse array (N, ...)
        Labelled items: numbers, a frame with numbers and categories, or sparse vectors of texts.
    y, classes, groups
        See :meth:`Quantifier.fit`.
    budget : {"fast", "balanced", "best"}, default="balanced"
        On 20,000 items of 10 columns "fast" takes about 5 seconds of one core, "balanced" 11, "best" a multiple.
    random_state : int, default=0
        Seed of folds, trees and samples.

    Returns
    -------
    Quantifier
        Fitted; ``training_`` says what was chosen and which error to expect.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> stars = rng.integers(1, 6, size=500)
    >>> q = train(stars[:, None] + rng.normal(size=(500, 3)), stars, budget="fast")
    >>> q.training_.kind, q.training_.method
    ('few', 'AML')
    """
    choice = choose(X, groups=groups is not None, budget=budget, random_state=random_state)
    quantifier = choice.quantifier.fit(X, y, classes, groups)
    _, codes = encode_labels(y, quantifier.classes_)
    number = group_codes(groups, len(codes))
    stack: Any = quantifier.classifier_
    sizes: tuple[Any, ...] = SIZES if number is None else ("groups",)
    expected = {
        size: expected_error(
            quantifier,
            stack.held_out_scores_,
            codes,
            groups=number,
            sample_size=min(size, _num_samples(X)) if number is None else 1,
            random_state=random_state,
        )
        for size in sizes
    }
    quantifier.training_ = Training(
        budget=budget,
        kind=choice.kind,
        method=type(quantifier).__name__,
        reasons=choice.reasons,
        weights=_weights(stack),
        expected=expected,
    )
    return quantifier


def _weights(stack: Any) -> dict[str, float]:
    """Return the weight of the regressors together and of each classifier."""
    names = ["regressors"] if any(is_regressor(member) for member in stack.members) else []
    names += [_name(member) for member in stack.members if not is_regressor(member)]
    weights: dict[str, float] = {}
    for name, weight in zip(names, np.asarray(stack.weights_).tolist(), strict=True):
        weights[name] = weights.get(name, 0.0) + weight
    return weights


def _name(member: Any) -> str:
    return type(member[-1] if hasattr(member, "steps") else member).__name__
