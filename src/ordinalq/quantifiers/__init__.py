"""Quantifiers: the base class and the methods, one module per family."""

from ordinalq.quantifiers.adjusted import ACC as ACC
from ordinalq.quantifiers.adjusted import OACC as OACC
from ordinalq.quantifiers.adjusted import OPACC as OPACC
from ordinalq.quantifiers.adjusted import PACC as PACC
from ordinalq.quantifiers.adjusted_ml import AdjustedML as AdjustedML
from ordinalq.quantifiers.auto import AutoQuantifier as AutoQuantifier
from ordinalq.quantifiers.base import Quantifier as Quantifier
from ordinalq.quantifiers.counting import CC as CC
from ordinalq.quantifiers.counting import PCC as PCC
from ordinalq.quantifiers.energy import EDy as EDy
from ordinalq.quantifiers.energy import OEDy as OEDy
from ordinalq.quantifiers.group_blp import GroupBLP as GroupBLP
from ordinalq.quantifiers.histogram import OPDF as OPDF
from ordinalq.quantifiers.histogram import PDF as PDF
from ordinalq.quantifiers.histogram import HDx as HDx
from ordinalq.quantifiers.histogram import HDy as HDy
from ordinalq.quantifiers.histogram import OHDx as OHDx
from ordinalq.quantifiers.histogram import OHDy as OHDy
from ordinalq.quantifiers.likelihood import OSLD as OSLD
from ordinalq.quantifiers.likelihood import SLD as SLD
from ordinalq.quantifiers.likelihood import KDEy as KDEy
from ordinalq.quantifiers.linear import ComposedQuantifier as ComposedQuantifier
from ordinalq.quantifiers.run_ibu import IBU as IBU
from ordinalq.quantifiers.run_ibu import RUN as RUN
from ordinalq.quantifiers.trees import ARC as ARC
from ordinalq.quantifiers.trees import OQT as OQT
