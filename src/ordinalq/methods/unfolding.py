"""RUN, the regularized unfolding of physics. Paper: the section on RUN and IBU [eq:unfolding1] [eq:unfolding2]."""

from ordinalq.losses import Poisson
from ordinalq.methods._base import LinearQuantifier
from ordinalq.regularizers import LogTikhonov, Tikhonov
from ordinalq.representations import HardVotes


class RUN(LinearQuantifier):
    """Regularized unfolding: Poisson likelihood of the counts of predictions, plus Tikhonov regularization.

    min_p N sum_i [v_i - q_i ln(N v_i)] + tau/2 ||C p||^2 with v = M p and f(x) = onehot(h(x)). The likelihood is of
    counts, the regularizer of prevalences: tau acts N times weaker than in o-ACC.

    Parameters
    ----------
    classifier : classifier, default=None
        Gives the predictions h(x), see :class:`CC`.
    tau, order, target
        See :class:`OPACC`; the default tau is 10.
    acceptance : array-like (n,), default=None
        Factors that correct p for the acceptance of the detector. With them the regularizer acts on
        log10(1 + (N - n) a_i p_i / sum_j a_j p_j), as in the original method; the estimate stays the distribution
        of the detected items.
    solver : solver or name, default=None
        None stands for "newton".
    """

    paper_name = "RUN"
    _needs_posteriors = False

    def __init__(self, classifier=None, *, tau=10.0, order=1, target=None, acceptance=None, solver=None):
        self.classifier = classifier
        self.tau = tau
        self.order = order
        self.target = target
        self.acceptance = acceptance
        self.solver = solver

    def _parts(self):
        if self.acceptance is None:
            return HardVotes(), Poisson(), Tikhonov(self.tau, order=self.order, target=self.target)
        if self.target is not None:
            raise ValueError("target must be None with acceptance: the regularizer then acts on a logarithmic scale.")
        return HardVotes(), Poisson(), LogTikhonov(self.tau, order=self.order, acceptance=self.acceptance)
