"""RUN and IBU, the unfolding methods of physics. Paper: the section on methods from experimental physics."""

import numpy as np

from ordinalq.losses import Poisson
from ordinalq.methods._base import LinearQuantifier
from ordinalq.regularizers import LogTikhonov, NoPenalty, PolynomialSmoothing, Tikhonov
from ordinalq.representations import HardVotes
from ordinalq.solvers.em import em_counts
from ordinalq.validation import check_integer, check_real


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


class IBU(LinearQuantifier):
    """Iterative Bayesian unfolding: Bayes' theorem on the counts of predictions, with a smoothed prior.

    p_i^(k) = sum_j [M_ji p~_i / sum_l M_jl p~_l] q_j, p~ the smoothed p^(k-1), from a uniform start; the last p is not
    smoothed.

    Parameters
    ----------
    classifier : classifier, default=None
        Gives the predictions h(x), see :class:`CC`.
    order, interpolation
        Of the polynomial smoothing, see :class:`OSLD`; by default 0 and 0.1.
    max_iter, tol
        See :class:`SLD`; by default 100 iterations.
    """

    paper_name = "IBU"
    _needs_posteriors = False

    def __init__(self, classifier=None, *, order=0, interpolation=0.1, max_iter=100, tol=0.0):
        self.classifier = classifier
        self.order = order
        self.interpolation = interpolation
        self.max_iter = max_iter
        self.tol = tol

    def _parts(self):
        return HardVotes(), Poisson(), NoPenalty()

    def _check_parameters(self, n_classes):
        PolynomialSmoothing(self.order, self.interpolation).check(n_classes)
        check_integer("max_iter", self.max_iter, minimum=1)
        check_real("tol", self.tol, low=0)

    def _solve_response(self, Q, M, sizes):
        # The numbers of items change the value of the likelihood, but not the iteration.
        return super()._solve_response(Q, M, np.ones(len(Q)) if sizes is None else sizes)

    def _minimize(self, loss, regularizer, Q, M, sizes, n_blocks):
        smoothing = PolynomialSmoothing(self.order, self.interpolation)
        return em_counts(Q, M, sizes, smoothing=smoothing, max_iter=self.max_iter, tol=self.tol)
