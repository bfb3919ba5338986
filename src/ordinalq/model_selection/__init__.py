"""Selection of parameters and methods by the error on labelled samples."""

from ordinalq.model_selection.compare import MethodComparison as MethodComparison
from ordinalq.model_selection.compare import compare_methods as compare_methods
from ordinalq.model_selection.quapy import QuapyQuantifier as QuapyQuantifier
from ordinalq.model_selection.search import SampleSearch as SampleSearch
