"""What a picture is given: estimates or plain arrays, checked."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from ordinalq._utils.text import plain
from ordinalq._utils.validation import Floats, Index, check_numbers, check_vectors
from ordinalq.inference.estimates import Estimates

Values = npt.ArrayLike
# The parts of Distributions that have one entry per distribution.
OF_ROWS = ("P", "groups", "lower", "upper", "truth", "n_items", "means")


@dataclass(frozen=True)
class Distributions:
    """B distributions ``P`` (B, n), names of their ``classes`` and ``groups``, and what else is known of them.

    ``lower``, ``upper`` and ``truth`` are (B, n), ``n_items`` is (B,), ``means`` are what is said of the mean
    class of each; each of them may be None.
    """

    P: Floats
    classes: list[str]
    groups: list[str]
    lower: Floats | None
    upper: Floats | None
    truth: Floats | None
    n_items: Floats | None
    level: float | None
    means: list[str] | None = None

    @property
    def are_shares(self) -> bool:
        """Whether all sum to one; otherwise they are numbers of items."""
        return bool((np.abs(self.P.sum(axis=1) - 1) < 1e-3).all())

    @property
    def top(self) -> float:
        """Upper end of the axis: a little above all that is drawn."""
        highest = max(float(V.max()) for V in (self.P, self.upper, self.truth) if V is not None)
        return 1.06 * highest if highest > 0 else 1.0

    def largest(self, k: int) -> "Distributions":
        """Return k of them in their order: those with most items, or the first where these are not known."""
        rows = np.arange(len(self.P))
        if self.n_items is not None and k < len(rows):
            rows = np.sort(np.argsort(-self.n_items, kind="stable")[:k])
        return self.take(rows[:k])

    def take(self, rows: Index) -> "Distributions":
        """Return some of them."""
        known: list[str] = [name for name in OF_ROWS if getattr(self, name) is not None]
        parts: dict[str, Any] = {
            name: [value[b] for b in rows] if isinstance(value := getattr(self, name), list) else value[rows]
            for name in known
        }
        return replace(self, **parts)


def distributions(
    name: str,
    estimate: "Values | Estimates",
    classes: Sequence[Any] | None = None,
    groups: Sequence[Any] | None = None,
    *,
    lower: Values | None = None,
    upper: Values | None = None,
    truth: Values | None = None,
    n_items: Values | None = None,
    level: float | None = None,
    one: bool = False,
) -> Distributions:
    """Return what was given under `name` and beside it, checked; what is None is taken from the estimates.

    With `one`, the shape of a single distribution is (n,) or (1, n).
    """
    means = None
    if hasattr(estimate, "prevalences"):
        known: Estimates = estimate  # type: ignore[assignment]
        means = _means(known)
        classes = known.classes.tolist() if classes is None else classes
        groups = known.keys.labels() if groups is None and known.keys is not None else groups
        n_items = known.n_items if n_items is None else n_items
        if known.bounds is not None and lower is None and upper is None:
            lower, upper = known.bounds.lower, known.bounds.upper
            level = known.bounds.level if level is None else level
        estimate = known.prevalences
        if one and len(estimate) != 1:
            many = f"the estimates of {len(estimate)} groups; choose one by its key, or draw them all by plot.groups"
            raise ValueError(f"{name} must be one distribution, got {many}.")
    P = _vectors(name, estimate)
    if P.size == 0 or (one and len(P) != 1) or (not one and np.ndim(estimate) == 1):
        raise ValueError(f"{name} must have shape {'(n,)' if one else '(B, n)'}, got shape {np.shape(estimate)}.")
    given: dict[str, Any] = {"lower": lower, "upper": upper, "truth": truth}
    others = {other: None if value is None else _vectors(other, value) for other, value in given.items()}
    for other, V in others.items():
        if V is not None and V.shape != P.shape:
            expected = P.shape[1:] if one else P.shape
            raise ValueError(f"{other} must have the shape of {name}, {expected}, got {np.shape(given[other])}.")
    if (P < 0).any():
        raise ValueError(f"{name} must be >= 0, got {P.min():g}.")
    if (lower is None) != (upper is None):
        raise ValueError("lower and upper must be given together: they are the ends of the intervals.")
    if others["lower"] is not None and others["upper"] is not None and (others["lower"] > others["upper"]).any():
        raise ValueError("lower must not be above upper.")
    if n_items is not None and np.shape(n_items) != (len(P),):
        raise ValueError(f"n_items must be one number per group, {len(P)}, got shape {np.shape(n_items)}.")
    sizes = None if n_items is None else array("n_items", n_items)
    titles, labels = names("names", groups, len(P)), names("classes", classes, P.shape[1])
    return Distributions(P, labels, titles, **others, n_items=sizes, level=level, means=means)


def _means(estimates: "Estimates") -> list[str]:
    """Return the mean class of each sample, with its interval where there is one."""
    if estimates.bounds is None or estimates.bounds.mean_lower is None:
        return [f"{mean:.2f}" for mean in estimates.mean]
    ends = zip(estimates.mean, estimates.bounds.mean_lower, estimates.bounds.mean_upper, strict=True)
    return [f"{mean:.2f} ({low:.2f} to {high:.2f})" for mean, low, high in ends]


def _vectors(name: str, value: Any) -> Floats:
    """Return distributions (B, n); one may have the shape (n,)."""
    if hasattr(value, "columns"):
        raise TypeError(
            f"{name} must be estimates or an array, got a {type(value).__name__}, whose columns may be anything: give "
            "the estimates themselves, or the columns of the classes as an array."
        )
    return np.atleast_2d(check_vectors(name, value, min_classes=2))


def names(name: str, value: Sequence[Any] | None, n: int) -> list[str]:
    """Return n names that can be printed; 1..n for None."""
    found = [str(i + 1) for i in range(n)] if value is None else [plain(str(v)) for v in value]
    if len(found) != n:
        raise ValueError(f"{name} must be {n} names, got {len(found)}.")
    return found


def array(name: str, value: Values) -> Floats:
    """Return finite numbers, at least one."""
    found = check_numbers(name, value)
    if found.size == 0:
        raise ValueError(f"{name} must be finite numbers, got none.")
    return found
