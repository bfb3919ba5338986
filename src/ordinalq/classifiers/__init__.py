"""Classifiers: held-out scores, calibration, stacks, and ordinal classifiers."""

from typing import TYPE_CHECKING, Any

from ordinalq.classifiers.cross_fitting import CrossFitted as CrossFitted
from ordinalq.classifiers.cross_fitting import InSample as InSample
from ordinalq.classifiers.stacking import OrdinalProbit as OrdinalProbit
from ordinalq.classifiers.stacking import OrdinalStack as OrdinalStack

if TYPE_CHECKING:
    from ordinalq.classifiers.ordinal import LeastAbsoluteDeviation as LeastAbsoluteDeviation
    from ordinalq.classifiers.ordinal import OrdinalLogisticAT as OrdinalLogisticAT
    from ordinalq.classifiers.ordinal import OrdinalLogisticIT as OrdinalLogisticIT
    from ordinalq.classifiers.ordinal import OrdinalRidge as OrdinalRidge


def __getattr__(name: str) -> Any:
    """Load the ordinal classifiers on first use: their imports are slow."""
    if name in ("LeastAbsoluteDeviation", "OrdinalLogisticAT", "OrdinalLogisticIT", "OrdinalRidge"):
        from ordinalq.classifiers import ordinal

        return getattr(ordinal, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
