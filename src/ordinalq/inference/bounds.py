"""Intervals of B distributions: for classes, cumulative prevalences and the mean class."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ordinalq._utils.validation import Floats


@dataclass(frozen=True, eq=False)
class Bounds:
    """Lower and upper bounds around B estimates, each of them at its own level.

    Attributes
    ----------
    level : float
        Level of each single interval.
    estimand : {"sample", "population"}
        Whether they are for the prevalence realized in this sample, or for that of its population.
    lower, upper : ndarray (B, n)
        For the prevalence of each class.
    cumulative_lower, cumulative_upper : ndarray (B, n)
        For the prevalence of each class and all below.
    mean_lower, mean_upper : ndarray (B,)
        For the mean class index.
    """

    level: float
    estimand: str
    lower: Floats
    upper: Floats
    cumulative_lower: Floats
    cumulative_upper: Floats
    mean_lower: Floats
    mean_upper: Floats

    @classmethod
    def of_statistics(cls, level: float, estimand: str, lower: Floats, upper: Floats) -> "Bounds":
        """Return bounds from those of :func:`statistics`, (B, 2n), within what is possible."""
        n = lower.shape[1] // 2
        low, high = np.zeros(2 * n), np.ones(2 * n)
        low[-1], high[-1] = 1, n
        lower, upper = np.clip(lower, low, high), np.clip(upper, low, high)
        below, above = (np.hstack([end[:, n:-1], np.ones((len(end), 1))]) for end in (lower, upper))
        return cls(level, estimand, lower[:, :n], upper[:, :n], below, above, lower[:, -1], upper[:, -1])

    def take(self, rows: Any) -> "Bounds":
        """Return the bounds of some samples."""
        arrays = {name: value[rows] for name, value in vars(self).items() if isinstance(value, np.ndarray)}
        return replace(self, **arrays)

    def holding(self, P: Floats) -> "Bounds":
        """Return bounds that reach to the shares P (B, n), where these lie outside."""
        values = {"": P, "cumulative_": np.cumsum(P, axis=1), "mean_": P @ np.arange(1.0, P.shape[1] + 1)}
        lower = {f"{name}lower": np.minimum(getattr(self, f"{name}lower"), x) for name, x in values.items()}
        upper = {f"{name}upper": np.maximum(getattr(self, f"{name}upper"), x) for name, x in values.items()}
        return replace(self, **lower, **upper)

    @classmethod
    def united(cls, parts: Sequence["Bounds"]) -> "Bounds":
        """Return the bounds of the samples of all parts, one part after the other."""
        names = [name for name, value in vars(parts[0]).items() if isinstance(value, np.ndarray)]
        arrays: dict[str, Any] = {name: np.concatenate([getattr(part, name) for part in parts]) for name in names}
        return replace(parts[0], **arrays)


def statistics(P: Floats) -> Floats:
    """Shares of the classes, cumulated shares but the last, and the mean class of P (B, n), side by side: (B, 2n)."""
    index = np.arange(1.0, P.shape[1] + 1)
    return np.hstack([P, np.cumsum(P, axis=1)[:, :-1], (P @ index)[:, None]])
