"""Grids of parameters and the configurations that they stand for."""

from collections.abc import Iterator, Mapping
from itertools import product
from typing import Any

import numpy as np
from sklearn.base import clone

from ordinalq.quantifiers.base import Quantifier


def configurations_of(grid: Any) -> Iterator[dict[str, Any]]:
    """Yield the configurations of a grid: dict by dict, the last parameter of a dict varies fastest.

    >>> list(configurations_of([{"n_bins": [2, 4], "tau": [0.1, 1]}, {}]))
    [{'n_bins': 2, 'tau': 0.1}, {'n_bins': 2, 'tau': 1}, {'n_bins': 4, 'tau': 0.1}, {'n_bins': 4, 'tau': 1}, {}]
    """
    parts = [grid] if isinstance(grid, Mapping) else grid
    if not isinstance(parts, list | tuple) or not all(isinstance(part, Mapping) for part in parts):
        raise TypeError(f"grid must be a dict of parameters to lists of values, or a list of such dicts, got {grid!r}.")
    if len(parts) == 0:
        raise ValueError("grid must hold at least one dict, got an empty list; {} stands for the quantifier as it is.")
    for part in parts:
        for name, values in part.items():
            if not isinstance(name, str):
                raise TypeError(f"grid must have names of parameters as keys, got {name!r}.")
            if isinstance(values, str | bytes | Mapping | set) or not hasattr(values, "__len__"):
                raise TypeError(f"grid[{name!r}] must be a list of values, got {values!r}; for one value write a list.")
            if np.ndim(values) > 1 and isinstance(values, np.ndarray):
                raise ValueError(f"grid[{name!r}] must be a list of values, got an array of shape {values.shape}.")
            if len(values) == 0:
                raise ValueError(f"grid[{name!r}] must hold at least one value, got none.")
    for part in parts:
        for values in product(*part.values()):
            yield dict(zip(part, values, strict=True))


def configured(quantifier: Quantifier, configuration: Mapping[str, Any]) -> Quantifier:
    """Return an unfitted copy of the quantifier with the parameters of a configuration, nested ones as ``a__b``.

    Parts in it, such as classifiers, are copied.
    """
    result: Quantifier = clone(quantifier)
    # Outer parameters first: they may bring the objects that the inner ones belong to.
    for name in sorted(configuration, key=lambda name: name.count("__")):
        if name not in result.get_params():
            raise ValueError(_unknown(result, name))
        result.set_params(**{name: clone(configuration[name], safe=False)})
    return result


def _unknown(quantifier: Quantifier, name: str) -> str:
    """Return the message for a parameter that the quantifier has not."""
    outer, _, _ = name.rpartition("__")
    owner: Any = quantifier
    # The innermost part of the name that does exist tells which names are valid.
    while outer:
        if outer in (known := quantifier.get_params()):
            owner = known[outer]
            break
        outer = outer.rpartition("__")[0]
    what = f"parameter {name!r} in grid is unknown"
    if not hasattr(owner, "get_params"):
        return (
            f"{what}: {outer} is {owner!r}, which has no parameters; give {type(quantifier).__name__} an object there."
        )
    prefix = f"{outer}__" if outer else ""
    valid = ", ".join(prefix + inner for inner in sorted(owner.get_params(deep=False)))
    return f"{what}; valid for {type(owner).__name__} are {valid or 'none'}."
