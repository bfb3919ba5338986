"""The public names of the package."""

from typing import TYPE_CHECKING, Any

from ordinalq.classifiers.cross_fitting import CrossFitted, InSample
from ordinalq.classifiers.stacking import OrdinalProbit, OrdinalStack
from ordinalq.inference.comparison import Comparison
from ordinalq.inference.estimates import Estimates
from ordinalq.inference.options import Plan
from ordinalq.inference.trend import Trend
from ordinalq.losses import NumericalLoss
from ordinalq.metrics import errors, md, nmd, rnadw, rnod, rsnod, wilcoxon
from ordinalq.model_selection import SampleSearch
from ordinalq.model_selection.compare import MethodComparison, compare_methods
from ordinalq.protocols import APP, APPOQ, NPP, RealPrevalences, matching_fraction
from ordinalq.quantifiers.adjusted import ACC, OACC, OPACC, PACC
from ordinalq.quantifiers.adjusted_ml import AML
from ordinalq.quantifiers.auto import Default, train
from ordinalq.quantifiers.base import Quantifier
from ordinalq.quantifiers.catalog import catalog
from ordinalq.quantifiers.counting import CC, PCC
from ordinalq.quantifiers.energy import EDy, OEDy
from ordinalq.quantifiers.group_blp import BLP
from ordinalq.quantifiers.histogram import OPDF, PDF, HDx, HDy, OHDx, OHDy
from ordinalq.quantifiers.likelihood import OSLD, SLD
from ordinalq.quantifiers.linear import ComposedQuantifier
from ordinalq.quantifiers.run_ibu import IBU, RUN
from ordinalq.quantifiers.trees import ARC, OQT
from ordinalq.regularizers import Auto
from ordinalq.samples.samples import Samples
from ordinalq.samples.summary import Summary
from ordinalq.simplex import Derivatives, difference_matrix, jaggedness
from ordinalq.solvers.solution import Solution
from ordinalq.unfolding import (
    Alternative,
    SimulatedEvents,
    Uncertainty,
    Unfolding,
    bottom_line_test,
    closure_test,
    coverage_test,
    unfold,
)
from ordinalq.unfolding.response import solve

if TYPE_CHECKING:
    from ordinalq.classifiers.ordinal import (
        LeastAbsoluteDeviation,
        OrdinalLogisticAT,
        OrdinalLogisticIT,
        OrdinalRidge,
    )
    from ordinalq.datasets import Binning, Dataset, bin_target, load_dataset, make_dataset
    from ordinalq.tables.model import TableModel
    from ordinalq.tables.model_file import load_model, save_model

__all__ = [  # noqa: RUF022 - plainly sorted, as `sorted` does
    "ACC",
    "AML",
    "APP",
    "APPOQ",
    "ARC",
    "Alternative",
    "Auto",
    "BLP",
    "Binning",
    "CC",
    "Comparison",
    "ComposedQuantifier",
    "CrossFitted",
    "Dataset",
    "Default",
    "Derivatives",
    "EDy",
    "Estimates",
    "HDx",
    "HDy",
    "IBU",
    "InSample",
    "LeastAbsoluteDeviation",
    "MethodComparison",
    "NPP",
    "NumericalLoss",
    "OACC",
    "OEDy",
    "OHDx",
    "OHDy",
    "OPACC",
    "OPDF",
    "OQT",
    "OSLD",
    "OrdinalLogisticAT",
    "OrdinalLogisticIT",
    "OrdinalProbit",
    "OrdinalRidge",
    "OrdinalStack",
    "PACC",
    "PCC",
    "PDF",
    "Plan",
    "Quantifier",
    "RUN",
    "RealPrevalences",
    "SLD",
    "SampleSearch",
    "Samples",
    "SimulatedEvents",
    "Solution",
    "Summary",
    "TableModel",
    "Trend",
    "Uncertainty",
    "Unfolding",
    "bin_target",
    "bottom_line_test",
    "catalog",
    "closure_test",
    "compare_methods",
    "coverage_test",
    "difference_matrix",
    "errors",
    "jaggedness",
    "load_dataset",
    "load_model",
    "make_dataset",
    "matching_fraction",
    "md",
    "nmd",
    "rnadw",
    "rnod",
    "rsnod",
    "save_model",
    "solve",
    "train",
    "unfold",
    "wilcoxon",
]


def __getattr__(name: str) -> Any:
    """Load on first use what not everybody needs: what is behind it takes longer than all the rest."""
    if name in ("Binning", "Dataset", "bin_target", "load_dataset", "make_dataset"):
        from ordinalq import datasets

        return getattr(datasets, name)
    if name in ("LeastAbsoluteDeviation", "OrdinalLogisticAT", "OrdinalLogisticIT", "OrdinalRidge"):
        from ordinalq.classifiers import ordinal

        return getattr(ordinal, name)
    if name in ("load_model", "save_model"):
        from ordinalq.tables import model_file as saving

        return getattr(saving, name)
    if name == "TableModel":
        from ordinalq.tables import model

        return model.TableModel
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
