"""EDy and its ordinal version o-EDy. Paper: the sections on EDy and o-EDy."""

from typing import Any

from ordinalq._utils.validation import check_choice
from ordinalq.losses import Energy
from ordinalq.quantifiers.linear import LinearQuantifier, Parts
from ordinalq.representations import MeanDistances


class EDy(LinearQuantifier):
    """Energy distance of posteriors: min_p 2 p.q - p'Mp.

    q and M are mean distances between items.

    Parameters
    ----------
    classifier : classifier, default=None
        Gives the posteriors, see :class:`CC`.
    distance : {"md", "euclidean"}, default="md"
        Distance between posterior vectors: the match distance, or the Euclidean one.
    solver : solver or name, default=None
        None stands for the exact "quadratic".
    """

    paper_name = "EDy"

    def __init__(self, classifier: Any = None, *, distance: str = "md", solver: Any = None) -> None:
        self.classifier = classifier
        self.distance = distance
        self.solver = solver

    def check_parameters(self, n_classes: int) -> None:
        """Raise ValueError if a parameter is out of range."""
        check_choice("distance", self.distance, ("md", "euclidean"))
        super().check_parameters(n_classes)

    def parts(self) -> Parts:
        """Return the parts."""
        return Parts(MeanDistances(self.distance), Energy())


class OEDy(LinearQuantifier):
    """o-EDy: EDy plus Tikhonov regularization tau/2 ||C p||^2.

    Parameters
    ----------
    classifier, distance, solver
        See :class:`EDy`.
    tau : float or "auto", default=1e-3
        Strength of smoothing, see :class:`OPACC`.
    order, centre
        See :class:`OPACC`.
    """

    paper_name = "o-EDy"

    def __init__(
        self,
        classifier: Any = None,
        *,
        distance: str = "md",
        tau: Any = 1e-3,
        order: int = 1,
        centre: Any = None,
        solver: Any = None,
    ) -> None:
        self.classifier = classifier
        self.distance = distance
        self.solver = solver
        self.tau = tau
        self.order = order
        self.centre = centre

    def check_parameters(self, n_classes: int) -> None:
        """Raise ValueError if a parameter is out of range."""
        check_choice("distance", self.distance, ("md", "euclidean"))
        super().check_parameters(n_classes)

    def parts(self) -> Parts:
        """Return the parts."""
        return EDy(distance=self.distance).parts().smoothed(self.tau, self.order, self.centre)
