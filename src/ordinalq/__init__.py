"""Ordinal quantification: class distributions of samples over ordered classes."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from ordinalq.version import __version__ as __version__

if TYPE_CHECKING:
    from ordinalq import classifiers as classifiers
    from ordinalq import dask as dask
    from ordinalq import datasets as datasets
    from ordinalq import inference as inference
    from ordinalq import losses as losses
    from ordinalq import metrics as metrics
    from ordinalq import model_selection as model_selection
    from ordinalq import plot as plot
    from ordinalq import protocols as protocols
    from ordinalq import regularizers as regularizers
    from ordinalq import representations as representations
    from ordinalq import simplex as simplex
    from ordinalq import solvers as solvers
    from ordinalq import spark as spark
    from ordinalq import unfolding as unfolding
    from ordinalq.inference import Estimates as Estimates
    from ordinalq.quantifiers import *  # noqa: F403 - the methods
    from ordinalq.quantifiers.catalog import catalog as catalog
    from ordinalq.samples import Samples as Samples
    from ordinalq.tables import TableModel as TableModel
    from ordinalq.tables import load_model as load_model
    from ordinalq.tables import save_model as save_model
    from ordinalq.unfolding import solve as solve
    from ordinalq.unfolding import unfold as unfold

# Public names by the package that provides them; the packages with further names.
_NAMES = {
    "quantifiers": (
        "ACC ARC AdjustedML AutoQuantifier CC ComposedQuantifier EDy GroupBLP HDx HDy IBU KDEy OACC OEDy OHDx OHDy "
        "OPACC OPDF OQT OSLD PACC PCC PDF Quantifier RUN SLD"
    ),
    "quantifiers.catalog": "catalog",
    "samples": "Samples",
    "inference": "Estimates",
    "unfolding": "solve unfold",
    "tables": "TableModel load_model save_model",
}
_NAMESPACES = "classifiers datasets inference metrics model_selection plot protocols solvers unfolding"
_HOMES = {name: home for home, names in _NAMES.items() for name in names.split()}

__all__ = sorted([*_HOMES, *_NAMESPACES.split()])


def __getattr__(name: str) -> Any:
    """Load public names and modules on first use, for a fast start."""
    if name in _HOMES:
        return getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
    try:
        return import_module(f"{__name__}.{name}")
    except ModuleNotFoundError as error:
        if error.name != f"{__name__}.{name}":
            raise
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}") from None


def __dir__() -> list[str]:
    return sorted({*__all__, "__version__"})
