"""Estimates, intervals, group models, fit tests and tuning of quantifiers.

The functions take any object with the members of `ordinalq.inference.model.FittedQuantifier`.
"""

from ordinalq.inference.bounds import Bounds as Bounds
from ordinalq.inference.comparison import Comparison as Comparison
from ordinalq.inference.diagnosis import Diagnosis as Diagnosis
from ordinalq.inference.drift import Drift as Drift
from ordinalq.inference.drift import LabelSelectionWarning as LabelSelectionWarning
from ordinalq.inference.estimates import Estimates as Estimates
from ordinalq.inference.label_plan import LabelsNeeded as LabelsNeeded
from ordinalq.inference.model import HeldOut as HeldOut
from ordinalq.inference.model import Inference as Inference
from ordinalq.inference.model import NoTrainingGroupsWarning as NoTrainingGroupsWarning
from ordinalq.inference.model import RareClassWarning as RareClassWarning
from ordinalq.inference.model import Traits as Traits
from ordinalq.inference.options import IntervalOptions as IntervalOptions
from ordinalq.inference.predict import estimate as estimate
from ordinalq.inference.provenance import Provenance as Provenance
from ordinalq.inference.region import Region as Region
from ordinalq.inference.trend import Trend as Trend
