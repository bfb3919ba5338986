"""Linear classifiers that know the order of the classes: OLR-AT, OLR-IT, ORidge and LAD.

All four project an item onto one line, w.x, and differ in how they cut that line into classes.

What to use when:

* :class:`OrdinalLogisticAT` and :class:`OrdinalLogisticIT` learn the cuts and give posteriors, so every
  quantifier can use them. AT charges an item for all thresholds, so that an error costs the more the farther
  it goes; IT charges it for the two thresholds of its own class only.
* :class:`OrdinalRidge` and :class:`LeastAbsoluteDeviation` regress on the codes 0..n-1 and round. They give
  no posteriors and therefore serve the quantifiers that count votes.
"""

from ordinalq.classifiers.ordinal import OrdinalLogisticAT, OrdinalLogisticIT
from ordinalq.classifiers.rounded import LeastAbsoluteDeviation, OrdinalRidge

__all__ = ["LeastAbsoluteDeviation", "OrdinalLogisticAT", "OrdinalLogisticIT", "OrdinalRidge"]
