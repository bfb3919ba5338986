"""The choice of parameters by the error on samples of known class distributions."""

from ordinalq.model_selection.attempts import Attempt as Attempt
from ordinalq.model_selection.attempts import describe as describe
from ordinalq.model_selection.attempts import estimate_all as estimate_all
from ordinalq.model_selection.grid import configurations_of as configurations_of
from ordinalq.model_selection.grid import configured as configured
from ordinalq.model_selection.search import SampleSearch as SampleSearch
