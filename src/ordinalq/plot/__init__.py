"""Pictures: estimates or arrays in, matplotlib axes out.

Every function draws into the axes that it is given and returns them; without any it makes a figure of its own, which
pyplot knows nothing of: ``ax.figure.savefig("picture.png")``. Estimates as `predict_groups` and `predict_interval`
return them bring their classes, groups and intervals along.
"""

from ordinalq.plot.differences import comparison
from ordinalq.plot.distributions import distribution, estimate_against_truth, groups
from ordinalq.plot.matrices import response_matrix
from ordinalq.plot.paths import tau_path
from ordinalq.plot.trends import trend
from ordinalq.plot.unfolding import check, spectrum, strength_scan
from ordinalq.text import shortened

__all__ = [
    "check",
    "comparison",
    "distribution",
    "estimate_against_truth",
    "groups",
    "response_matrix",
    "shortened",
    "spectrum",
    "strength_scan",
    "tau_path",
    "trend",
]
