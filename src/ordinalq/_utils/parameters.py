"""Whether two parameters, or two estimators with their parameters, are the same."""

from typing import Any

import numpy as np


def same_parameters(a: Any, b: Any) -> bool:
    """Return whether two parameters are the same; where that is hard to tell, they are not.

    >>> same_parameters({"tau": 0.1}, {"tau": 0.1}), same_parameters([1, 2], (1, 2))
    (True, False)
    """
    if a is b:
        return True
    if type(a) is not type(b):
        return False
    if hasattr(a, "get_params"):
        return same_parameters(a.get_params(deep=False), b.get_params(deep=False))
    if isinstance(a, dict):
        return a.keys() == b.keys() and all(same_parameters(a[name], b[name]) for name in a)
    if isinstance(a, list | tuple):
        return len(a) == len(b) and all(map(same_parameters, a, b))
    if isinstance(a, np.ndarray):
        return a.dtype == b.dtype and np.array_equal(a, b)
    try:
        return bool(a == b)
    except (TypeError, ValueError):
        return False
