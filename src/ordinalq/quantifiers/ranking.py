"""PDF and its ordinal version o-PDF. Paper: the sections on PDF and o-PDF (sec:OPDF)."""

from typing import Any

from ordinalq.losses import CumulativeSquares, MatchDistance
from ordinalq.quantifiers.linear import LinearQuantifier, Parts
from ordinalq.regularizers import NoPenalty, Tikhonov
from ordinalq.representations import RankHistogram


class PDF(LinearQuantifier):
    """Match distance of histograms of the expected class index: min_p ||S(q - M p)||_1 over the simplex.

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

    def _parts(self) -> Parts:
        return RankHistogram(self.n_bins), MatchDistance(), NoPenalty()


class OPDF(LinearQuantifier):
    """o-PDF: min_p ||S(q - M p)||_2^2 + tau/2 ||C p||^2 on histograms of the expected class index.

    Parameters
    ----------
    classifier, n_bins
        See :class:`PDF`.
    span : {"classes", "data"}, default="classes"
        "classes": the bins of PDF, over [1, n], all of which count. "data", as in the paper's program: bins between
        the training minimum and maximum; bins without training items are left out, together with the mass that a
        sample has in them.
    tau, order, centre
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

    def _parts(self) -> Parts:
        penalty = Tikhonov(self.tau, order=self.order, centre=self.centre)
        loss = CumulativeSquares(drop_empty=self.span == "data")
        return RankHistogram(self.n_bins, span=self.span), loss, penalty
