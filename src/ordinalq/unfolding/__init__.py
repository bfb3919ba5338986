"""Unfolding: spectra with statistical and systematic errors, and checks."""

from ordinalq.unfolding.checks import Check as Check
from ordinalq.unfolding.checks import bottom_line_test as bottom_line_test
from ordinalq.unfolding.checks import closure_test as closure_test
from ordinalq.unfolding.checks import coverage_test as coverage_test
from ordinalq.unfolding.events import unfold_events as unfold_events
from ordinalq.unfolding.measurement import Measurement as Measurement
from ordinalq.unfolding.response import solve as solve
from ordinalq.unfolding.result import Unfolding as Unfolding
from ordinalq.unfolding.spectrum import SmoothSpectrum as SmoothSpectrum
from ordinalq.unfolding.strength import Scan as Scan
from ordinalq.unfolding.systematics import Correlated as Correlated
from ordinalq.unfolding.systematics import Luminosity as Luminosity
from ordinalq.unfolding.systematics import ShiftedModel as ShiftedModel
from ordinalq.unfolding.systematics import SimulatedEvents as SimulatedEvents
from ordinalq.unfolding.systematics import Source as Source
from ordinalq.unfolding.systematics import Uncertainty as Uncertainty
from ordinalq.unfolding.unfold import unfold as unfold
