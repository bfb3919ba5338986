"""The methods that an experiment may name: those of the catalog, and classes of others by their import path."""

import hashlib
import inspect

from ordinalq.methods.catalog import Entry, catalog, import_method


def known_methods() -> dict[str, Entry]:
    """Return the methods of the catalog by their names, in its order."""
    return {entry.name: entry for entry in catalog()}


def find_method(name: str, path: str = "") -> Entry:
    """Return a method by its name, and by its path "package.module:Class" if it is not in the catalog."""
    return import_method(path) if path else known_methods()[name]


def source_hash(path: str) -> str:
    """Return a hash of the file that defines the method: where it changes, results are computed again."""
    file = inspect.getsourcefile(import_method(path).cls)
    assert file is not None
    with open(file, "rb") as source:
        return hashlib.sha256(source.read()).hexdigest()[:20]
