"""The methods that an experiment may name: those of the catalog, and classes of others by their import path."""

import hashlib
import importlib
import inspect
import re
from functools import cache
from typing import Any

from ordinalq.methods._base import Quantifier
from ordinalq.methods.catalog import Entry, catalog

# The group of methods that the paper does not have; experiments run them only where they are named.
BEYOND = "beyond the paper"
PATH = re.compile(r"([A-Za-z_][\w.]*):([A-Za-z_]\w*)")


def known_methods() -> dict[str, Entry]:
    """Return the methods of the catalog by their names, in its order."""
    return {entry.name: entry for entry in catalog()}


def find_method(name: str, path: str = "") -> Entry:
    """Return a method by its name, and by its path "package.module:Class" if it is not in the catalog."""
    return import_method(path) if path else known_methods()[name]


@cache
def import_method(path: str) -> Entry:
    """Return the method "package.module:Class": a class of an importable module that derives from Quantifier."""
    found = PATH.fullmatch(path)
    if found is None:
        raise ValueError(f"{path!r} is no path of a class, such as 'package.module:Class'")
    module, name = found.groups()
    try:
        cls = getattr(importlib.import_module(module), name)
    except Exception as error:  # whatever a module of others raises when it is imported
        raise ValueError(f"{path!r} cannot be imported: {type(error).__name__}: {error}") from error
    if not (isinstance(cls, type) and issubclass(cls, Quantifier)) or inspect.isabstract(cls):
        raise ValueError(f"{path!r} must be a class that derives from Quantifier and has all of its methods")
    return Entry(cls, BEYOND)


def source_hash(path: str) -> str:
    """Return a hash of the file that defines the method: where it changes, results are computed again."""
    file = inspect.getsourcefile(import_method(path).cls)
    assert file is not None
    with open(file, "rb") as source:
        return hashlib.sha256(source.read()).hexdigest()[:20]


# The two facts of a method that decide how it is run. To be replaced by the facts of the contract, cls.on and
# cls.fits_scores, as soon as every method declares them.


def on_features(cls: Any) -> bool:
    """Whether the method takes the features as they are, and no classifier."""
    return bool((getattr(cls, "on", None) or cls._on) == "features")


def fits_scores(cls: Any) -> bool:
    """Whether the method can be fitted on the scores of a classifier; others fit classifiers of their own."""
    return bool(getattr(cls, "fits_scores", cls.fit_scores is Quantifier.fit_scores))
