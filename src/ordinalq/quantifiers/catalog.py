"""The list of methods: names, groups and the grids of the paper."""

import difflib
import importlib
import inspect
import re
from dataclasses import dataclass
from functools import cache
from typing import Any

from ordinalq._utils.validation import check_choice
from ordinalq.quantifiers.adjusted import ACC, OACC, OPACC, PACC
from ordinalq.quantifiers.adjusted_ml import AdjustedML
from ordinalq.quantifiers.auto import AutoQuantifier
from ordinalq.quantifiers.base import Quantifier
from ordinalq.quantifiers.counting import CC, PCC
from ordinalq.quantifiers.energy import EDy, OEDy
from ordinalq.quantifiers.group_blp import GroupBLP
from ordinalq.quantifiers.histogram import OPDF, PDF, HDx, HDy, OHDx, OHDy
from ordinalq.quantifiers.likelihood import OSLD, SLD, KDEy
from ordinalq.quantifiers.run_ibu import IBU, RUN
from ordinalq.quantifiers.trees import ARC, OQT

TAUS = [1e-5, 1e-3, 1e-1]
# "Until convergence", for which no number is printed: p changes by at most this on average over the classes.
UNTIL_CONVERGENCE: dict[str, list[Any]] = {"max_iter": [10_000], "tol": [1e-6]}
# The group of methods that the paper does not have; experiments run them only if they are named.
BEYOND = "beyond the paper"
PATH = re.compile(r"([A-Za-z_][\w.]*):([A-Za-z_]\w*)")


@dataclass(frozen=True)
class Entry:
    """Method of the catalog: its class and its group in the paper's tables.

    The name of the class is the id of the method.
    """

    cls: type[Quantifier]
    group: str

    @property
    def name(self) -> str:
        """Id of the method, also in configs, results and the command line."""
        return str(self.cls.__name__)

    @property
    def paper_name(self) -> str:
        """Name in the paper's tables."""
        return str(self.cls.paper_name)

    def grid(self, n_classes: int, settings: str = "reference") -> dict[str, list[Any]]:
        """Return the paper's grid: parameter -> values (tab:hyperparameter).

        Grids of RUN, PDF and o-PDF depend on n.

        Settings "reference" are those of the authors' program, "paper" those of the text, if they differ.
        """
        check_choice("settings", settings, ("reference", "paper"))
        printed = settings == "paper"
        grids: dict[str, dict[str, list[Any]]] = {
            "HDx": {"n_bins": [2, 3, 4]},
            "HDy": {"n_bins": [2, 4]},
            # The program stopped after 100 iterations.
            "SLD": UNTIL_CONVERGENCE if printed else {},
            "OQT": {"held_out": [1 / 3 if printed else 0.334]},
            # The program corrected by ratios of frequencies, the text by ACC.
            "ARC": {"held_out": [1 / 3], "correction": ["acc"]} if printed else {"held_out": [0.334]},
            # The program left the printed grid on the five stars of Amazon only.
            "RUN": {"tau": [1e-3, 1e-1, 1e1] if printed or n_classes == 5 else [1e-1, 1e1, 1e3]},
            "IBU": {"order": [0, 1], "interpolation": [1e-2, 1e-1]},
            "PDF": {"n_bins": [5 * (n_classes - 1), 10 * (n_classes - 1)]},
            "OACC": {"tau": TAUS},
            "OPACC": {"tau": TAUS},
            "OHDx": {"n_bins": [2, 3, 4], "tau": TAUS},
            "OHDy": {"n_bins": [2, 4], "tau": TAUS},
            "OSLD": {"order": [0, 1], "interpolation": [1e-2, 1e-1]},
            "OEDy": {"tau": TAUS},
            "OPDF": {"n_bins": [5 * (n_classes - 1), 10 * (n_classes - 1)], "tau": TAUS},
        }
        if not printed:
            # The program took the bins of 12 classes for 10 classes too, and the span of the data in place of PDF's.
            bins = [55, 110] if n_classes == 10 else grids["OPDF"]["n_bins"]
            grids["OPDF"] = {"n_bins": bins, "tau": TAUS, "span": ["data"]}
        return {name: list(values) for name, values in grids.get(self.name, {}).items()}


def catalog(*, beyond: bool = True) -> list[Entry]:
    """Return all methods in the order of the paper's tables.

    Methods beyond the paper follow unless `beyond` is False.

    Parameters
    ----------
    beyond : bool, default=True
        Whether methods beyond the paper are included.

    Returns
    -------
    list of Entry
        Methods with their class, group and grid.

    Examples
    --------
    >>> [entry.name for entry in catalog() if entry.group == "non-ordinal"][:4]
    ['CC', 'PCC', 'ACC', 'PACC']
    """
    groups: dict[str, list[type[Quantifier]]] = {
        "non-ordinal": [CC, PCC, ACC, PACC, HDx, HDy, SLD],
        "ordinal": [OQT, ARC, IBU, RUN, EDy, PDF],
        "new ordinal": [OACC, OPACC, OHDx, OHDy, OSLD, OEDy, OPDF],
    }
    if beyond:
        groups[BEYOND] = [AutoQuantifier, AdjustedML, GroupBLP, KDEy]
    return [Entry(cls, group) for group, classes in groups.items() for cls in classes]


def known_methods() -> dict[str, Entry]:
    """Return the methods of the catalog by their names, in its order."""
    return {entry.name: entry for entry in catalog()}


def find_method(name: str) -> Entry:
    """Return a method by its name in the catalog or its path "package.module:Class".

    The error for a typing mistake suggests the nearest name.

    >>> find_method("OPACC").group
    'new ordinal'
    """
    if ":" in name:
        return import_method(name)
    entries = known_methods()
    if name in entries:
        return entries[name]
    known = {
        alias.lower(): entry.name for entry in entries.values() for alias in (entry.name, entry.paper_name) if alias
    }
    near = difflib.get_close_matches(name.lower(), known, n=1, cutoff=0.5)
    hint = f"; did you mean {known[near[0]]}?" if near else ", or the path package.module:Class of your own."
    raise ValueError(f"method must be one of {', '.join(entries)}, got {name!r}{hint}")


@cache
def import_method(path: str) -> Entry:
    """Import a method "package.module:Class" that derives from Quantifier."""
    found = PATH.fullmatch(path)
    if found is None:
        raise ValueError(f"{path!r} is not a path of a class such as 'package.module:Class'")
    module, name = found.groups()
    try:
        cls = getattr(importlib.import_module(module), name)
    except Exception as error:  # any exception of a third-party module at import
        raise ValueError(f"{path!r} cannot be imported: {type(error).__name__}: {error}") from error
    if not (isinstance(cls, type) and issubclass(cls, Quantifier)) or inspect.isabstract(cls):
        raise ValueError(f"{path!r} must be a class that derives from Quantifier and has all of its methods")
    return Entry(cls, BEYOND)
