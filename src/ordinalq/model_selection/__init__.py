"""The choice of parameters by the error on samples of known class distributions."""

from ordinalq.model_selection.search import Attempt as Attempt
from ordinalq.model_selection.search import SampleSearch as SampleSearch
from ordinalq.model_selection.search import configurations_of as configurations_of
from ordinalq.model_selection.search import configured as configured
from ordinalq.model_selection.search import describe as describe
from ordinalq.model_selection.search import estimate_all as estimate_all
