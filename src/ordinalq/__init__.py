"""Ordinal quantification: the class distribution of unlabelled samples over ordered classes."""

from ordinalq.classify.held_out import CrossFitted, InSample
from ordinalq.measures import md, nmd, rnadw, rnod, rsnod
from ordinalq.methods.adjusted import ACC, OACC, OPACC, PACC
from ordinalq.methods.catalog import catalog
from ordinalq.methods.composed import ComposedQuantifier
from ordinalq.methods.counting import CC, PCC
from ordinalq.methods.energy import EDy, OEDy
from ordinalq.methods.hellinger import HDx, HDy, OHDx, OHDy
from ordinalq.methods.likelihood import OSLD, SLD
from ordinalq.methods.ranking import OPDF, PDF
from ordinalq.methods.response import solve
from ordinalq.methods.trees import ARC, OQT
from ordinalq.methods.unfolding import IBU, RUN
from ordinalq.ordinal import difference_matrix, jaggedness
from ordinalq.protocols import APP, APPOQ, NPP, RealPrevalences, matching_fraction, protocol_table
from ordinalq.samples import Samples

__version__ = "0.1.0.dev0"

__all__ = [
    "ACC",
    "APP",
    "APPOQ",
    "ARC",
    "CC",
    "IBU",
    "NPP",
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
    "ComposedQuantifier",
    "CrossFitted",
    "EDy",
    "HDx",
    "HDy",
    "InSample",
    "OEDy",
    "OHDx",
    "OHDy",
    "RealPrevalences",
    "Samples",
    "catalog",
    "difference_matrix",
    "jaggedness",
    "matching_fraction",
    "md",
    "nmd",
    "protocol_table",
    "rnadw",
    "rnod",
    "rsnod",
    "solve",
]
