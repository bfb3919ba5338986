"""Methods on histograms: HDx, HDy, PDF and their ordinal versions."""

from typing import Any

from ordinalq.losses import CumulativeSquares, Hellinger, MatchDistance
from ordinalq.quantifiers.linear import LinearQuantifier, Parts
from ordinalq.regularizers import Tikhonov
from ordinalq.representations import Histograms, RankHistogram


class HDx(LinearQuantifier):
    """Hellinger distance of feature histograms: min_p (1/d) sum_k HD(q_k, M_k p).

    It needs no classifier; `scores` gives the features themselves.

    Parameters
    ----------
    n_bins : int, default=4
        Bins per feature, of equal width over the training range.
    solver : solver or name, default=None
        None stands for "newton".
    """

    paper_name = "HDx"

    def __init__(self, *, n_bins: int = 4, solver: Any = None) -> None:
        self.n_bins = n_bins
        self.solver = solver

    def parts(self) -> Parts:
        """Return the parts."""
        return Parts(Histograms(self.n_bins, on="features"), Hellinger())


class HDy(LinearQuantifier):
    """Hellinger distance of histograms of posteriors s_1..s_n, as HDx.

    Parameters
    ----------
    classifier : classifier, default=None
        Gives the posteriors, see :class:`CC`.
    n_bins : int, default=4
        Bins per class, of equal width over the range of the held-out posteriors.
    solver : solver or name, default=None
        None stands for "newton".
    """

    paper_name = "HDy"

    def __init__(self, classifier: Any = None, *, n_bins: int = 4, solver: Any = None) -> None:
        self.classifier = classifier
        self.n_bins = n_bins
        self.solver = solver

    def parts(self) -> Parts:
        """Return the parts."""
        return Parts(Histograms(self.n_bins), Hellinger())


class OHDx(LinearQuantifier):
    """o-HDx: HDx plus Tikhonov regularization tau/2 ||C p||^2 [eq:o-hdx-loss].

    Parameters
    ----------
    n_bins, solver
        See :class:`HDx`.
    tau : float or "auto", default=1e-3
        Strength of smoothing, see :class:`OPACC`.
    order, centre
        See :class:`OPACC`.
    """

    paper_name = "o-HDx"

    def __init__(
        self, *, n_bins: int = 4, tau: Any = 1e-3, order: int = 1, centre: Any = None, solver: Any = None
    ) -> None:
        self.n_bins = n_bins
        self.solver = solver
        self.tau = tau
        self.order = order
        self.centre = centre

    def parts(self) -> Parts:
        """Return the parts."""
        return HDx(n_bins=self.n_bins).parts().smoothed(self.tau, self.order, self.centre)


class OHDy(LinearQuantifier):
    """o-HDy: HDy plus Tikhonov regularization tau/2 ||C p||^2.

    Parameters
    ----------
    classifier, n_bins, solver
        See :class:`HDy`.
    tau : float or "auto", default=1e-3
        Strength of smoothing, see :class:`OPACC`.
    order, centre
        See :class:`OPACC`.
    """

    paper_name = "o-HDy"

    def __init__(
        self,
        classifier: Any = None,
        *,
        n_bins: int = 4,
        tau: Any = 1e-3,
        order: int = 1,
        centre: Any = None,
        solver: Any = None,
    ) -> None:
        self.classifier = classifier
        self.n_bins = n_bins
        self.solver = solver
        self.tau = tau
        self.order = order
        self.centre = centre

    def parts(self) -> Parts:
        """Return the parts."""
        return HDy(n_bins=self.n_bins).parts().smoothed(self.tau, self.order, self.centre)


# PDF and its ordinal version o-PDF. Paper: the sections on PDF and o-PDF (sec:OPDF).


class PDF(LinearQuantifier):
    """Match distance of histograms of the expected class index.

    Minimizes ||S(q - M p)||_1 over the simplex.

    Bins have equal width over [1, n].

    Parameters
    ----------
    classifier : classifier, default=None
        Gives the posteriors, see :class:`CC`.
    n_bins : int, default=None
        Total number of bins; None stands for 5 (n - 1).
    solver : solver or name, default=None
        None stands for the exact "l1".
    """

    paper_name = "PDF"

    def __init__(self, classifier: Any = None, *, n_bins: int | None = None, solver: Any = None) -> None:
        self.classifier = classifier
        self.n_bins = n_bins
        self.solver = solver

    def parts(self) -> Parts:
        """Return the parts."""
        return Parts(RankHistogram(self.n_bins), MatchDistance())


class OPDF(LinearQuantifier):
    """o-PDF: min_p ||S(q - M p)||_2^2 + tau/2 ||C p||^2.

    Histograms of the expected class index.

    Parameters
    ----------
    classifier, n_bins
        See :class:`PDF`.
    span : {"classes", "data"}, default="classes"
        "classes": the bins of PDF, over [1, n], all of which count. "data", as in the paper's program: bins between
        the training minimum and maximum; bins without training items are left out, together with the mass that a
        sample has in them.
    tau : float or "auto", default=1e-3
        Strength of smoothing, see :class:`OPACC`.
    order, centre
        See :class:`OPACC`.
    solver : solver or name, default=None
        None stands for the exact "quadratic".
    """

    paper_name = "o-PDF"

    def __init__(
        self,
        classifier: Any = None,
        *,
        n_bins: int | None = None,
        span: str = "classes",
        tau: Any = 1e-3,
        order: int = 1,
        centre: Any = None,
        solver: Any = None,
    ) -> None:
        self.classifier = classifier
        self.n_bins = n_bins
        self.span = span
        self.tau = tau
        self.order = order
        self.centre = centre
        self.solver = solver

    def parts(self) -> Parts:
        """Return the parts."""
        penalty = Tikhonov(self.tau, order=self.order, centre=self.centre)
        loss = CumulativeSquares(drop_empty=self.span == "data")
        return Parts(RankHistogram(self.n_bins, span=self.span), loss, penalty)
