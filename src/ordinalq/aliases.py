"""The names by which saved models call the parts of ordinalq, whatever modules these are in.

Model files name a part as ``ordinalq.aliases.PACC``: this module has every alias as an attribute, which is the part
that the table below leads to. Whoever moves or renames a part changes its line here, and no model is orphaned. An alias
that has been in a release is never given to another part.
"""

from importlib import import_module
from typing import Any

# Alias -> module:name.
ALIASES = {
    # Methods.
    "CC": "ordinalq.methods.counting:CC",
    "PCC": "ordinalq.methods.counting:PCC",
    "ACC": "ordinalq.methods.adjusted:ACC",
    "PACC": "ordinalq.methods.adjusted:PACC",
    "OACC": "ordinalq.methods.adjusted:OACC",
    "OPACC": "ordinalq.methods.adjusted:OPACC",
    "HDx": "ordinalq.methods.hellinger:HDx",
    "HDy": "ordinalq.methods.hellinger:HDy",
    "OHDx": "ordinalq.methods.hellinger:OHDx",
    "OHDy": "ordinalq.methods.hellinger:OHDy",
    "SLD": "ordinalq.methods.likelihood:SLD",
    "OSLD": "ordinalq.methods.likelihood:OSLD",
    "OQT": "ordinalq.methods.trees:OQT",
    "ARC": "ordinalq.methods.trees:ARC",
    "IBU": "ordinalq.methods.unfolding:IBU",
    "RUN": "ordinalq.methods.unfolding:RUN",
    "EDy": "ordinalq.methods.energy:EDy",
    "OEDy": "ordinalq.methods.energy:OEDy",
    "PDF": "ordinalq.methods.ranking:PDF",
    "OPDF": "ordinalq.methods.ranking:OPDF",
    "BLP": "ordinalq.methods.groups:BLP",
    "AML": "ordinalq.methods.aml:AML",
    "Default": "ordinalq.methods.default:Default",
    "GroupModel": "ordinalq.effects.model:GroupModel",
    "ComposedQuantifier": "ordinalq.methods.composed:ComposedQuantifier",
    # What methods consist of.
    "Auto": "ordinalq.strength:Auto",
    "Training": "ordinalq.methods.default:Training",
    "Tuning": "ordinalq.inference.tuning:Tuning",
    "CumulativeSquares": "ordinalq.losses:CumulativeSquares",
    "Energy": "ordinalq.losses:Energy",
    "Hellinger": "ordinalq.losses:Hellinger",
    "LeastSquares": "ordinalq.losses:LeastSquares",
    "MatchDistance": "ordinalq.losses:MatchDistance",
    "Poisson": "ordinalq.losses:Poisson",
    "Entropy": "ordinalq.regularizers:Entropy",
    "LogTikhonov": "ordinalq.regularizers:LogTikhonov",
    "NoPenalty": "ordinalq.regularizers:NoPenalty",
    "Tikhonov": "ordinalq.regularizers:Tikhonov",
    "PolynomialSmoothing": "ordinalq.smoothing:PolynomialSmoothing",
    "HardVotes": "ordinalq.representations:HardVotes",
    "Histograms": "ordinalq.representations:Histograms",
    "MeanDistances": "ordinalq.representations:MeanDistances",
    "Partition": "ordinalq.representations:Partition",
    "Posteriors": "ordinalq.representations:Posteriors",
    "RankHistogram": "ordinalq.representations:RankHistogram",
    "L1Solver": "ordinalq.solvers.l1:L1Solver",
    "NewtonSolver": "ordinalq.solvers.newton:NewtonSolver",
    "QuadraticSolver": "ordinalq.solvers.quadratic:QuadraticSolver",
    "SoftmaxSolver": "ordinalq.solvers.softmax:SoftmaxSolver",
    "Weights": "ordinalq.weights:Weights",
    # Classifiers.
    "Calibration": "ordinalq.classify.calibration:Calibration",
    "AlreadyFitted": "ordinalq.classify.held_out:AlreadyFitted",
    "CrossFitted": "ordinalq.classify.held_out:CrossFitted",
    "InSample": "ordinalq.classify.held_out:InSample",
    "OutOfBag": "ordinalq.classify.held_out:OutOfBag",
    "LeastAbsoluteDeviation": "ordinalq.classify.rounded:LeastAbsoluteDeviation",
    "OrdinalLogisticAT": "ordinalq.classify.thresholds:OrdinalLogisticAT",
    "OrdinalLogisticIT": "ordinalq.classify.thresholds:OrdinalLogisticIT",
    "OrdinalRidge": "ordinalq.classify.rounded:OrdinalRidge",
    "OrderedProbit": "ordinalq.classify.probit:OrderedProbit",
    "OrdinalProbit": "ordinalq.classify.stack:OrdinalProbit",
    "OrdinalStack": "ordinalq.classify.stack:OrdinalStack",
    # Tables.
    "Words": "ordinalq.files.words:Words",
    "TableModel": "ordinalq.tables.model:TableModel",
    "TypedColumns": "ordinalq.tables.columns:TypedColumns",
}

# Functions at the steps of an encoder.
FUNCTIONS = {
    "to_float": "ordinalq.files.encoder:to_float",
    "to_object": "ordinalq.files.encoder:to_object",
    "calendar": "ordinalq.files.encoder:calendar",
    "calendar_names": "ordinalq.files.encoder:calendar_names",
}


def __getattr__(name: str) -> Any:
    """Return the part that an alias stands for."""
    if name not in ALIASES and name not in FUNCTIONS:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    module, _, part = (ALIASES | FUNCTIONS)[name].partition(":")
    return getattr(import_module(module), part)


def alias_of(module: str, name: str) -> str | None:
    """Return the alias of a part, None if it has none.

    >>> alias_of("ordinalq.methods.adjusted", "PACC")
    'PACC'
    """
    found = [alias for alias, place in (ALIASES | FUNCTIONS).items() if place == f"{module}:{name}"]
    return found[0] if found else None
