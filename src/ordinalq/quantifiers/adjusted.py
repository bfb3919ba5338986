"""ACC, PACC, o-ACC and o-PACC. Paper: sec:CCandfamily, sec:OACCandOPACC."""

from typing import Any

from ordinalq.losses import LeastSquares
from ordinalq.quantifiers.linear import LinearQuantifier, Parts
from ordinalq.representations import HardVotes, Posteriors


class ACC(LinearQuantifier):
    """Adjusted classify and count: min_p ||q - M p||^2 with f(x) = onehot(h(x)).

    Parameters
    ----------
    classifier : classifier, default=None
        Gives the predictions h(x), see :class:`CC`.
    solver : solver or name, default=None
        None stands for the exact "quadratic".
    """

    paper_name = "ACC"

    def __init__(self, classifier: Any = None, *, solver: Any = None) -> None:
        self.classifier = classifier
        self.solver = solver

    def parts(self) -> Parts:
        """Return the parts."""
        return Parts(HardVotes(), LeastSquares())


class PACC(LinearQuantifier):
    """Probabilistic adjusted classify and count: min_p ||q - M p||^2, f(x) = s(x).

    Parameters
    ----------
    classifier : classifier, default=None
        Gives the posteriors s(x), see :class:`CC`.
    solver : solver or name, default=None
        None stands for the exact "quadratic".
    """

    paper_name = "PACC"

    def __init__(self, classifier: Any = None, *, solver: Any = None) -> None:
        self.classifier = classifier
        self.solver = solver

    def parts(self) -> Parts:
        """Return the parts."""
        return Parts(Posteriors(), LeastSquares())


class OACC(LinearQuantifier):
    """o-ACC: ACC plus Tikhonov regularization, min_p ||q - M p||^2 + tau/2 ||C p||^2.

    Parameters
    ----------
    classifier, solver
        See :class:`ACC`.
    tau : float or "auto", default=1e-3
        Strength of smoothing, see :class:`OPACC`; ``tau=0`` is ACC.
    order, centre
        See :class:`OPACC`.
    """

    paper_name = "o-ACC"

    def __init__(
        self, classifier: Any = None, *, tau: Any = 1e-3, order: int = 1, centre: Any = None, solver: Any = None
    ) -> None:
        self.classifier = classifier
        self.solver = solver
        self.tau = tau
        self.order = order
        self.centre = centre

    def parts(self) -> Parts:
        """Return the parts."""
        return ACC().parts().smoothed(self.tau, self.order, self.centre)


class OPACC(LinearQuantifier):
    """o-PACC: PACC plus Tikhonov regularization [eq:o-acc-loss].

    Minimizes ||q - M p||^2 + tau/2 ||C p||^2.

    Parameters
    ----------
    classifier, solver
        See :class:`PACC`.
    tau : float or "auto", default=1e-4
        Strength of smoothing; ``tau=0`` is PACC. "auto" takes the best value for smooth samples of the held-out
        training items; ``tau_`` is the choice, ``tuning_`` the curve that led to it.
    order : int, default=1
        C is ``difference_matrix(n, order)``.
    centre : array-like (n,), default=None
        Penalize C (p - centre) instead of C p.
    """

    paper_name = "o-PACC"

    def __init__(
        self, classifier: Any = None, *, tau: Any = 1e-4, order: int = 1, centre: Any = None, solver: Any = None
    ) -> None:
        self.classifier = classifier
        self.solver = solver
        self.tau = tau
        self.order = order
        self.centre = centre

    def parts(self) -> Parts:
        """Return the parts."""
        return PACC().parts().smoothed(self.tau, self.order, self.centre)
