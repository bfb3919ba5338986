"""Ordinal quantification: the class distribution of unlabelled samples over ordered classes."""

from importlib import import_module
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

from ordinalq.version import __version__ as __version__

if TYPE_CHECKING:
    from ordinalq.public import *  # noqa: F403 - a new name goes there


def __getattr__(name: str) -> Any:
    """Load the public names and the modules on first use: `ordinalq --help` needs no scikit-learn."""
    if find_spec(f"{__name__}.{name}") is not None:
        return import_module(f"{__name__}.{name}")
    public = import_module(f"{__name__}.public")
    if name == "__all__" or name in public.__all__:
        return getattr(public, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    names: list[str] = import_module(f"{__name__}.public").__all__
    return sorted({*globals(), *names} - {"Any", "TYPE_CHECKING", "find_spec", "import_module"})
