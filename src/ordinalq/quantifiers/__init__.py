"""Quantifiers: the base class and the methods, one module per family."""

from ordinalq.quantifiers.adjusted import ACC, OACC, OPACC, PACC
from ordinalq.quantifiers.adjusted_ml import AdjustedML
from ordinalq.quantifiers.auto import AutoQuantifier
from ordinalq.quantifiers.base import Quantifier
from ordinalq.quantifiers.counting import CC, PCC
from ordinalq.quantifiers.energy import EDy, OEDy
from ordinalq.quantifiers.group_blp import GroupBLP
from ordinalq.quantifiers.histogram import OPDF, PDF, HDx, HDy, OHDx, OHDy
from ordinalq.quantifiers.likelihood import OSLD, SLD
from ordinalq.quantifiers.linear import ComposedQuantifier
from ordinalq.quantifiers.run_ibu import IBU, RUN
from ordinalq.quantifiers.trees import ARC, OQT

__all__ = [
    "ACC",
    "ARC",
    "CC",
    "IBU",
    "OACC",
    "OPACC",
    "OPDF",
    "OQT",
    "OSLD",
    "PACC",
    "PCC",
    "PDF",
    "RUN",
    "SLD",
    "AdjustedML",
    "AutoQuantifier",
    "ComposedQuantifier",
    "EDy",
    "GroupBLP",
    "HDx",
    "HDy",
    "OEDy",
    "OHDx",
    "OHDy",
    "Quantifier",
]
