"""Argument checks. Errors have the argument, its value and the expected values."""

from collections.abc import Sequence
from numbers import Integral, Real
from typing import Any

import numpy as np
import numpy.typing as npt

# Arrays by what they hold: numbers, classes or groups of items, positions, counts, truth, anything.
Floats = npt.NDArray[np.float64]
Codes = npt.NDArray[np.intp]
Index = npt.NDArray[np.intp]
Counts = npt.NDArray[np.int64]
Mask = npt.NDArray[np.bool_]
Array = npt.NDArray[Any]

# How far the sum of a distribution may be from one.
SUM_TOLERANCE = 1e-6


def check_integer(name: str, value: Any, *, minimum: int) -> int:
    """Return `value` as int; it must be an integer >= `minimum`, not a bool."""
    if isinstance(value, bool | np.bool_) or not isinstance(value, Integral):
        raise TypeError(f"{name} must be an integer >= {minimum}, got {value!r}.")
    if value < minimum:
        raise ValueError(f"{name} must be an integer >= {minimum}, got {value!r}.")
    return int(value)


def check_real(name: str, value: Any, *, low: float, high: float = np.inf, open_low: bool = False) -> float:
    """Return `value` as float; it must be a finite number in [low, high].

    With `open_low`, it must be in (low, high].
    """
    expected = f"a finite number {'>' if open_low else '>='} {low:g}"
    if high < np.inf:
        expected = f"a number in {'(' if open_low else '['}{low:g}, {high:g}]"
    if isinstance(value, bool | np.bool_) or not isinstance(value, Real):
        raise TypeError(f"{name} must be {expected}, got {value!r}.")
    number = float(value)
    if not (np.isfinite(number) and low <= number <= high) or (open_low and number == low):
        raise ValueError(f"{name} must be {expected}, got {value!r}.")
    return number


def check_choice(name: str, value: Any, choices: Sequence[str]) -> str:
    """Return `value`, which must be one of the strings in `choices`."""
    if not (isinstance(value, str) and value in choices):
        raise ValueError(f"{name} must be one of {', '.join(map(repr, choices))}, got {value!r}.")
    return value


def real_numbers(value: Any) -> Floats:
    """Return `value` as an array of floats; complex numbers raise an error."""
    # First an array: objects that only convert to arrays do not work with NumPy's functions.
    array = np.asarray(value)
    if array.dtype.kind == "c":
        raise TypeError("complex numbers")
    try:
        return array.astype(np.float64, copy=False)
    except OverflowError as error:
        raise ValueError("integers beyond the largest float") from error


def check_numbers(name: str, value: Any) -> Floats:
    """Return `value` as an array of finite floats, of any shape."""
    try:
        array = real_numbers(value)
    except (TypeError, ValueError) as error:
        raise TypeError(f"{name} must be numbers, got {_short(value)}.") from error
    if not np.isfinite(array).all():
        place = ", ".join(map(str, np.argwhere(~np.isfinite(array))[0]))
        raise ValueError(
            f"{name} must be finite numbers, got {_short(value)} with {array[~np.isfinite(array)][0]} at [{place}]."
        )
    return array


def check_vectors(name: str, value: Any, *, min_classes: int = 2) -> Floats:
    """Return `value` as a finite float array, shape (n,) or (B, n).

    n is at least `min_classes`.
    """
    try:
        array = real_numbers(value)
    except (TypeError, ValueError) as error:
        raise TypeError(f"{name} must be a vector or a matrix of numbers, got {_short(value)}.") from error
    if array.ndim not in (1, 2):
        raise ValueError(f"{name} must have shape (n,) or (B, n), got shape {array.shape}.")
    if array.shape[-1] < min_classes:
        raise ValueError(f"{name} must have at least {min_classes} classes, got {array.shape[-1]}.")
    if not np.isfinite(array).all():
        raise ValueError(f"{name} must be finite, got {_worst_row(array, ~np.isfinite(array))}.")
    return array


def check_distributions(name: str, value: Any, *, min_classes: int = 2) -> Floats:
    """Return `value` (n,) or (B, n) whose rows are >= 0 and sum to one up to 1e-6."""
    array = check_vectors(name, value, min_classes=min_classes)
    negative = array < 0
    if negative.any():
        raise ValueError(f"{name} must not be negative, got {_worst_row(array, negative)}.")
    sums = array.sum(axis=-1, keepdims=True)
    off = np.broadcast_to(np.abs(sums - 1) > SUM_TOLERANCE, array.shape)
    if off.any():
        raise ValueError(f"{name} must sum to 1, got {_worst_row(array, off)}, which does not.")
    return array


def check_random_state(random_state: Any) -> np.random.Generator:
    """Return a generator for None, a seed >= 0, a SeedSequence or a Generator."""
    try:
        return np.random.default_rng(random_state)
    except (TypeError, ValueError) as error:
        raise TypeError(
            f"random_state must be None, an integer >= 0 or a numpy Generator, got {random_state!r}."
        ) from error


def _worst_row(array: Floats, bad: npt.NDArray[np.bool_]) -> str:
    """Name the first row with a bad entry: ``row 3: [0.2, nan, 0.1]``."""
    if array.ndim == 1:
        return _short(array)
    row = int(np.flatnonzero(bad.any(axis=1))[0])
    return f"row {row}: {_short(array[row])}"


def _short(value: Any) -> str:
    """Return a representation of at most 80 characters."""
    text = repr(value.tolist() if isinstance(value, np.ndarray) else value)
    return text if len(text) <= 80 else text[:77] + "..."


# Whether two parameters, or two estimators with their parameters, are the same.


def same_parameters(a: Any, b: Any) -> bool:
    """Return whether two parameters are known to be equal.

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
