"""The choice of parameters and methods by the error on samples of known class distributions."""

from ordinalq.model_selection.compare import MethodComparison as MethodComparison
from ordinalq.model_selection.compare import compare_methods as compare_methods
from ordinalq.model_selection.search import Attempt as Attempt
from ordinalq.model_selection.search import SampleSearch as SampleSearch
from ordinalq.model_selection.search import configurations_of as configurations_of
from ordinalq.model_selection.search import configured as configured
from ordinalq.model_selection.search import describe as describe
from ordinalq.model_selection.search import estimate_all as estimate_all
