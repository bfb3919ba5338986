"""How much to smooth: what regularizers and the smoothing of an EM have in common."""

from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, clone

from ordinalq.validation import check_real

# The strength that is chosen in `fit`.
AUTO = "auto"


class Smoother(BaseEstimator):
    """Something whose strength says how much it smooths.

    Attributes
    ----------
    strength : str or None
        Name of the parameter that is the strength; None where there is none.
    """

    strength: str | None = None

    @property
    def is_auto(self) -> bool:
        """Whether the strength is yet to be chosen."""
        value = getattr(self, self.strength) if self.strength else None
        return isinstance(value, str) and value == AUTO

    def with_strength(self, value: float) -> Any:
        """Return a copy with another strength."""
        return clone(self).set_params(**{str(self.strength): value})

    def strengths(self, unit: float) -> tuple[float, ...]:
        """Return the strengths to try first, ascending, for a loss whose values are of size `unit`."""
        return ()


def check_strength(name: str, value: Any, high: float = np.inf) -> None:
    """Refuse what is neither "auto" nor a number in [0, high]."""
    if not (isinstance(value, str) and value == AUTO):
        check_real(name, value, low=0, high=high)
