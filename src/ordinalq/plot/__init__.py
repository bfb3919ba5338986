"""Plots of estimates and arrays, on matplotlib axes.

Every function draws into the given axes and returns them. Without axes it makes a figure, which notebooks and
``plt.show()`` show if pyplot was imported; ``ax.figure.savefig("figure.png")`` writes it. Estimates of `predict_groups`
and `predict_interval` bring their classes, groups and intervals along.
"""

from ordinalq._utils.text import shortened as shortened
from ordinalq.plot.comparisons import comparison as comparison
from ordinalq.plot.comparisons import trend as trend
from ordinalq.plot.curves import bias as bias
from ordinalq.plot.curves import error_by_shift as error_by_shift
from ordinalq.plot.curves import response_matrix as response_matrix
from ordinalq.plot.curves import tau_path as tau_path
from ordinalq.plot.distributions import distribution as distribution
from ordinalq.plot.distributions import estimate_against_truth as estimate_against_truth
from ordinalq.plot.distributions import groups as groups
from ordinalq.plot.distributions import region as region
from ordinalq.plot.unfolding import check as check
from ordinalq.plot.unfolding import correlation as correlation
from ordinalq.plot.unfolding import refolded as refolded
from ordinalq.plot.unfolding import response as response
from ordinalq.plot.unfolding import spectrum as spectrum
from ordinalq.plot.unfolding import strength_scan as strength_scan
