"""Names of the parts of ordinalq in saved models, independent of their modules.

Model files name a part as ``ordinalq.aliases.PACC``: this module has every alias as an attribute, which is the part
that the table below leads to. Whoever moves or renames a part changes its line here, and no model is orphaned. An alias
that has been in a release is never given to another part.
"""

from importlib import import_module
from typing import Any


def _places(parts: dict[str, str]) -> dict[str, str]:
    """Return the place "module:name" of each part, by its name: that is its alias."""
    return {name: f"ordinalq.{module}:{name}" for module, names in parts.items() for name in names.split()}


# Alias -> module:name; a part that gets another name keeps its alias in a separate line below these.
ALIASES = _places(
    {
        "quantifiers.counting": "CC PCC",
        "quantifiers.adjusted": "ACC PACC OACC OPACC",
        "quantifiers.histogram": "HDx HDy OHDx OHDy PDF OPDF",
        "quantifiers.likelihood": "SLD OSLD KDEy",
        "quantifiers.trees": "OQT ARC",
        "quantifiers.run_ibu": "IBU RUN",
        "quantifiers.energy": "EDy OEDy",
        "quantifiers.group_blp": "GroupBLP",
        "quantifiers.adjusted_ml": "AdjustedML",
        "quantifiers.auto": "AutoQuantifier Training",
        "inference.group_model": "GroupModel",
        "inference.model": "HeldOut",
        "quantifiers.linear": "ComposedQuantifier",
        "regularizers": "AutoStrength Entropy LogTikhonov NoPenalty Tikhonov PolynomialSmoothing",
        "inference.tuning": "Tuning",
        "losses": "CumulativeSquares Energy Hellinger LeastSquares MatchDistance Poisson",
        "representations": "HardVotes Histograms MeanDistances Partition Posteriors RankHistogram",
        "solvers.l1": "L1Solver",
        "solvers.newton": "NewtonSolver",
        "solvers.quadratic": "QuadraticSolver",
        "solvers.softmax": "SoftmaxSolver",
        "samples.weights": "Weights",
        "classifiers.calibration": "Calibration",
        "classifiers.cross_fitting": "AlreadyFitted CrossFitted InSample OutOfBag",
        "classifiers.logistic": "TableLogisticRegression",
        "classifiers.ordinal": "LeastAbsoluteDeviation OrdinalRidge OrdinalLogisticAT OrdinalLogisticIT",
        "classifiers.stacking": "OrderedProbit OrdinalProbit OrdinalStack",
        "tables.model": "TableModel TypedColumns Words",
    }
)

# Functions at the steps of an encoder.
FUNCTIONS = _places({"io.encoder": "to_float to_object calendar calendar_names"})


def __getattr__(name: str) -> Any:
    """Return the part that an alias stands for."""
    if name not in ALIASES and name not in FUNCTIONS:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    module, _, part = (ALIASES | FUNCTIONS)[name].partition(":")
    return getattr(import_module(module), part)


def alias_of(module: str, name: str) -> str | None:
    """Return the alias of a part, None if it has none.

    >>> alias_of("ordinalq.quantifiers.adjusted", "PACC")
    'PACC'
    """
    found = [alias for alias, place in (ALIASES | FUNCTIONS).items() if place == f"{module}:{name}"]
    return found[0] if found else None
