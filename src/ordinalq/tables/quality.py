"""Is the classifier any good? What its held-out votes are worth, beside saying always the same."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.utils import _safe_indexing

from ordinalq._utils.text import percent
from ordinalq._utils.validation import Codes
from ordinalq.classifiers.cross_fitting import CrossFitted, default_classifier, make_folds
from ordinalq.quantifiers.base import Quantifier

# A class with fewer labelled items is called rare: its column of M scatters by .1 and more.
RARE = 30
# Part of the items that a model of the learning curve learns from; the folds learn from twice as many.
PART = 0.4
# e(N) = a + b / sqrt(N): from the errors at PART N and 2 PART N follows that at 2 N, in parts of their difference.
GAIN = (1 - np.sqrt(0.5)) / (1 / np.sqrt(PART) - 1 / np.sqrt(2 * PART))
# Numbers with more distinct values than this are no scale from which one could be missing.
LONGEST_SCALE = 12


def quality(quantifier: Quantifier, X: Any, codes: Codes, groups: Codes | None = None) -> dict[str, Any] | None:
    """Measure how good a quantifier's classifier is, fitted on items with codes and groups; None: it has none.

    accuracy, and share of the largest class: part of the items that are found, held out, and by always saying the
    largest; distance, and that of the median class: mean absolute error in classes of both; rare: labels with fewer
    than 30 items, and how many these are; twice: accuracy to expect with twice as many labels (None: unknown, since
    there are too few items).
    """
    S = getattr(getattr(quantifier, "classifier_", None), "held_out_scores_", None)
    if S is None:
        return None
    n = len(quantifier.classes_)
    counts = np.bincount(codes, minlength=n)
    scored = ~np.isnan(S).any(axis=1)
    votes, y = S[scored].argmax(axis=1), codes[scored]
    median = int(np.searchsorted(np.cumsum(counts), len(codes) / 2))
    names = [str(label) for label in quantifier.classes_.tolist()]
    return {
        "accuracy": float((votes == y).mean()),
        "largest": names[int(counts.argmax())],
        "largest_share": float(counts.max() / len(codes)),
        "distance": float(np.abs(votes - y).mean()),
        "median": names[median],
        "median_distance": float(np.abs(median - codes).mean()),
        "rare": {names[i]: int(counts[i]) for i in range(n) if counts[i] < RARE},
        "twice": _with_twice_as_many(quantifier, X, codes, groups, float((votes == y).mean())),
    }


def _with_twice_as_many(
    quantifier: Quantifier, X: Any, codes: Codes, groups: Codes | None, accuracy: float
) -> float | None:
    """Return the accuracy to expect with twice as many labels, None where there are too few for a guess.

    One more model learns from half as many items as those of the folds. In a stack it is one of a cross-fitted member;
    where there is none (forests), a plain logistic regression tells how much more labels bring.
    """
    classifier = getattr(quantifier, "classifier_", None)
    parts_of = [classifier, *getattr(classifier, "members_", ())]
    member = next((one for one in parts_of if isinstance(one, CrossFitted)), None)
    model = default_classifier() if member is None else member.estimators_[0]
    try:
        # Of five folds four teach the larger model, two of them the smaller one; the fifth judges where it must.
        parts = [test for _, test in make_folds(5, codes, groups)]
    except ValueError:
        return None
    small = np.concatenate(parts[: max(1, len(parts) // 2)])
    judged = parts[-1] if member is None else np.concatenate(parts[max(1, len(parts) // 2) :])
    if len(parts) < 5 or len(np.unique(codes[small])) < len(quantifier.classes_):
        return None
    below = _accuracy(model, X, codes, small, judged)
    if member is None:
        above = _accuracy(model, X, codes, np.concatenate(parts[:-1]), judged)
    else:
        above = float((member.held_out_scores_.argmax(axis=1) == codes).mean())
    return float(np.clip(accuracy + GAIN * max(above - below, 0.0), accuracy, 1))


def _accuracy(model: Any, X: Any, codes: Codes, taught: Codes, judged: Codes) -> float:
    """Return the part of the judged items whose class a model finds that was taught by others."""
    fitted = clone(model).fit(_safe_indexing(X, taught), codes[taught])
    return float((np.asarray(fitted.predict(_safe_indexing(X, judged))) == codes[judged]).mean())


def absent(classes: Sequence[Any]) -> list[str]:
    """Return whole numbers that are missing in a scale of labels, from one on or in between.

    >>> absent([3, 4, 5]), absent([1, 2, 4]), absent([0, 1, 2]), absent([10, 20]), absent(["a", "b"])
    (['1', '2'], ['3'], [], [], [])
    """
    try:
        numbers = np.array([float(label) for label in classes])
    except (TypeError, ValueError):
        return []
    whole = (numbers == np.round(numbers)).all() and (np.diff(numbers) == 1).any()
    if not whole or numbers[0] < 0 or numbers[-1] > LONGEST_SCALE:
        return []
    scale = range(min(1, int(numbers[0])), int(numbers[-1]) + 1)
    return [str(value) for value in scale if value not in numbers]


def sentences(found: dict[str, Any] | None, classes: Sequence[Any], unit: str) -> list[tuple[str, str]]:
    """Return what is said of a classifier and its labels: a word and a sentence each."""
    said = []
    if found is not None:
        always = f"always saying {found['largest']} would be right in {percent(found['largest_share'], 0)}"
        said.append(("accuracy", f"{percent(found['accuracy'], 0)} of the items, held out; {always}"))
        off = f"off by {found['distance']:.2f} {unit} on average"
        said.append(("distance", f"{off}; always saying {found['median']} by {found['median_distance']:.2f}"))
        if found["twice"] is not None:
            gain = found["twice"] - found["accuracy"]
            more = f"may raise the accuracy to about {percent(found['twice'], 0)}"
            hardly = "would hardly change the accuracy"
            said.append(("labels", f"twice as many {more if gain >= 0.01 else hardly}"))
        if found["rare"]:
            few = ", ".join(f"{name} ({count})" for name, count in found["rare"].items())
            said.append(("rare", f"fewer than {RARE} items of {few}: label more of these first"))
    if missing := absent(classes):
        them = "it" if len(missing) == 1 else "these"
        gone = f"no item is labelled {' or '.join(missing)}: shares of {them} cannot be estimated"
        said.append(("absent", f"{gone}; label some if there are any"))
    return said


def unit(target: str | None, classes: Sequence[Any]) -> str:
    """Return what errors are counted in: the target where it names steps of one, such as stars, or classes.

    >>> unit("stars", [1, 2, 3]), unit("rating", [1, 2, 3]), unit("sizes", ["S", "M", "L"])
    ('stars', 'classes', 'classes')
    """
    try:
        steps = np.diff(np.array([float(label) for label in classes]))
    except (TypeError, ValueError):
        return "classes"
    return target if target and target.isalpha() and target.endswith("s") and (steps == 1).all() else "classes"
