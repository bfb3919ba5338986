"""Unfolding as physicists need it: spectra with statistical and systematic errors, and checks of them."""

from ordinalq.unfolding.checks import Check, bottom_line_test, closure_test, coverage_test
from ordinalq.unfolding.measurement import Measurement
from ordinalq.unfolding.result import Unfolding
from ordinalq.unfolding.scan import Scan
from ordinalq.unfolding.systematics import Alternative, SimulatedEvents, Source, Uncertainty
from ordinalq.unfolding.unfold import unfold

__all__ = [
    "Alternative",
    "Check",
    "Measurement",
    "Scan",
    "SimulatedEvents",
    "Source",
    "Uncertainty",
    "Unfolding",
    "bottom_line_test",
    "closure_test",
    "coverage_test",
    "unfold",
]
