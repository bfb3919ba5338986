"""Among several optima the one nearest to uniform."""

from ordinalq.objectives import Objective
from ordinalq.validation import Floats


def nearest_to_uniform(objective: Objective, P: Floats) -> Floats:
    return P
