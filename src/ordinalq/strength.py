"""How much to smooth: what regularizers and the smoothing of an EM have in common."""

from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, clone

from ordinalq._utils.validation import check_choice, check_distributions, check_integer, check_real

# The strength that is chosen in `fit`.
AUTO = "auto"
WEIGHTS = ("groups", "items")


class Auto(BaseEstimator):
    """A strength that is chosen in `fit`; the word "auto" stands for ``Auto()``.

    It is chosen on samples that look like those to come. These are, in this order: samples of the given `prevalences`,
    drawn from the training items; the training groups of ``fit(..., groups=)``; smooth samples of the training items
    (APP-OQ).

    Parameters
    ----------
    prevalences : array-like (k, n), default=None
        Expected distributions, such as those of earlier groups; all are equally likely.
    weight : {"groups", "items"}, default="groups"
        With training groups: whether errors of all groups count alike, or by their number of items.
    min_items : int, default=20
        With training groups: smaller ones are left out; what is best for them smooths large ones too much.

    Examples
    --------
    >>> import ordinalq as oq
    >>> oq.OPACC(tau=oq.Auto(weight="items")).tau
    Auto(weight='items')
    """

    def __init__(self, *, prevalences: Any = None, weight: str = "groups", min_items: int = 20) -> None:
        self.prevalences = prevalences
        self.weight = weight
        self.min_items = min_items

    def check(self, n_classes: int) -> None:
        """Refuse parameters out of range."""
        check_choice("weight", self.weight, WEIGHTS)
        check_integer("min_items", self.min_items, minimum=1)
        if self.prevalences is not None:
            shape = np.atleast_2d(check_distributions("prevalences", self.prevalences)).shape
            if shape[1] != n_classes:
                raise ValueError(f"prevalences must have one entry per class, {n_classes}, got {shape[1]}.")


class Smoother(BaseEstimator):
    """Something that smooths; `strength` is the name of the parameter that says how much, None where there is none."""

    strength: str | None = None

    @property
    def auto(self) -> Auto | None:
        """How the strength is to be chosen; None where it is a number, or there is none."""
        value = getattr(self, self.strength) if self.strength else None
        if isinstance(value, Auto):
            return value
        return Auto() if isinstance(value, str) and value == AUTO else None

    @property
    def is_auto(self) -> bool:
        """Whether the strength is yet to be chosen."""
        return self.auto is not None

    def with_strength(self, value: float) -> Any:
        """Return a copy with another strength."""
        return clone(self).set_params(**{str(self.strength): value})

    def strengths(self, unit: float) -> tuple[float, ...]:
        """Return the strengths to try first, ascending, for a loss whose values are of size `unit`."""
        return ()

    def limits(self, unit: float) -> tuple[float, float]:
        """Return the smallest strength above zero and the largest one that are worth trying."""
        return 0.0, np.inf

    def check_strength(self, n_classes: int, high: float = np.inf) -> None:
        """Refuse a strength that is neither to be chosen nor a number in [0, high]."""
        if self.auto is None:
            check_real(str(self.strength), getattr(self, str(self.strength)), low=0, high=high)
        else:
            self.auto.check(n_classes)
