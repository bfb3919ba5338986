"""The choice of parameters by the error on samples of known class distributions."""

from ordinalq.search.attempts import Attempt as Attempt
from ordinalq.search.attempts import describe as describe
from ordinalq.search.attempts import estimate_all as estimate_all
from ordinalq.search.grid import configurations_of as configurations_of
from ordinalq.search.grid import configured as configured
from ordinalq.search.search import SampleSearch as SampleSearch
