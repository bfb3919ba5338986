"""Intervals of B distributions: classes, cumulative prevalences, mean class."""

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
        For the mean class.
    values : ndarray (n,) or None
        Values of the classes over which the mean is taken; None stands for the positions 1..n.
    """

    level: float
    estimand: str
    lower: Floats
    upper: Floats
    cumulative_lower: Floats
    cumulative_upper: Floats
    mean_lower: Floats
    mean_upper: Floats
    values: Floats | None = None

    @classmethod
    def of_statistics(
        cls, level: float, estimand: str, lower: Floats, upper: Floats, values: Floats | None = None
    ) -> "Bounds":
        """Return bounds from those of :func:`statistics`, (B, 2n), cut to [0, 1]."""
        n = lower.shape[1] // 2
        low, high = np.zeros(2 * n), np.ones(2 * n)
        low[-1], high[-1] = (1, n) if values is None else (min(values), max(values))
        lower, upper = np.clip(lower, low, high), np.clip(upper, low, high)
        # Cumulative prevalences rise: bounds that do not are widened.
        inner = slice(n, 2 * n - 1)
        lower[:, inner] = np.minimum.accumulate(lower[:, inner][:, ::-1], axis=1)[:, ::-1]
        upper[:, inner] = np.maximum.accumulate(upper[:, inner], axis=1)
        below, above = (np.hstack([end[:, n:-1], np.ones((len(end), 1))]) for end in (lower, upper))
        return cls(level, estimand, lower[:, :n], upper[:, :n], below, above, lower[:, -1], upper[:, -1], values)

    def take(self, rows: Any) -> "Bounds":
        """Return the bounds of some samples."""
        arrays: dict[str, Any] = {name: getattr(self, name)[rows] for name in PER_SAMPLE}
        return replace(self, **arrays)

    def extend_to(self, P: Floats) -> "Bounds":
        """Return bounds that reach to the shares P (B, n), where these lie outside."""
        values = {"": P, "cumulative_": np.cumsum(P, axis=1), "mean_": mean_class(P, self.values)}
        lower = {f"{name}lower": np.minimum(getattr(self, f"{name}lower"), x) for name, x in values.items()}
        upper = {f"{name}upper": np.maximum(getattr(self, f"{name}upper"), x) for name, x in values.items()}
        return replace(self, **lower, **upper)

    def within(self, least: Floats, rest: Floats) -> "Bounds":
        """Return bounds cut to the limits of samples with labelled items.

        Labelled items have prevalences `least` (B, n), all others `rest`.

        Each prevalence is at least that of the known items among all, and at most that plus `rest` (B,), the part of
        the items that are not known.
        """
        values = np.arange(1.0, least.shape[1] + 1) if self.values is None else self.values
        mean, more = least @ values, rest[:, None]
        low = {"": least, "cumulative_": np.cumsum(least, axis=1), "mean_": mean + rest * values.min()}
        high = {"": least + more, "cumulative_": low["cumulative_"] + more, "mean_": mean + rest * values.max()}
        ends: dict[str, Any] = {
            f"{name}{end}": np.clip(getattr(self, f"{name}{end}"), low[name], high[name])
            for name in low
            for end in ("lower", "upper")
        }
        return replace(self, **ends)

    @classmethod
    def concatenate(cls, parts: Sequence["Bounds"]) -> "Bounds":
        """Return the bounds of the samples of all parts, one part after the other."""
        arrays: dict[str, Any] = {name: np.concatenate([getattr(part, name) for part in parts]) for name in PER_SAMPLE}
        return replace(parts[0], **arrays)


# The fields with one entry per sample.
PER_SAMPLE = ("lower", "upper", "cumulative_lower", "cumulative_upper", "mean_lower", "mean_upper")


def mean_class(P: Floats, values: Floats | None = None) -> Floats:
    """Return the mean class of P (..., n) over class values, or positions 1..n."""
    return np.asarray(P @ (np.arange(1.0, P.shape[-1] + 1) if values is None else values))


def statistics(P: Floats, values: Floats | None = None) -> Floats:
    """Return prevalences, cumulative prevalences and mean class, (..., 2n).

    The last cumulative prevalence, which is one, is left out.
    """
    return np.concatenate([P, np.cumsum(P, axis=-1)[..., :-1], mean_class(P, values)[..., None]], axis=-1)


def item_steps(n: int, values: Floats | None = None) -> Floats:
    """Return the change of `statistics` if one item moves up by a class, (2n,)."""
    steps = np.ones(2 * n)
    if values is not None:
        steps[-1] = np.ptp(values) / (n - 1)
    return steps
