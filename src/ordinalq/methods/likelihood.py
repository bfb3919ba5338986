"""SLD and its ordinal version o-SLD. Paper: the sections on SLD and o-SLD."""

from abc import abstractmethod

import numpy as np

from ordinalq.classify.calibration import Calibration
from ordinalq.classify.held_out import unscored
from ordinalq.methods._base import Quantifier, check_every_class
from ordinalq.methods.tuning import Trial, smooth_samples
from ordinalq.objectives import MixtureObjective
from ordinalq.regularizers import NoPenalty, Tikhonov
from ordinalq.smoothing import PolynomialSmoothing
from ordinalq.solvers.choose import check_solver, choose
from ordinalq.solvers.em import em_mixture
from ordinalq.validation import check_integer, check_real


class _LikelihoodQuantifier(Quantifier):
    """Maximises the likelihood of the items' scores under prior probability shift."""

    _on_means = False

    def _fit_scores(self, S, codes):
        self.p_train_ = np.bincount(codes, minlength=len(self.classes_)) / len(codes)
        scored = ~unscored(S)
        check_every_class(codes[scored], self.classes_)
        self.calibration_ = Calibration(self.calibration).fit(S[scored], codes[scored])
        self._set_regularizer(self._regularizer(), lambda: self._trials(S[scored], codes[scored]))

    @abstractmethod
    def _regularizer(self):
        """Return what smooths, by its parameters."""

    @abstractmethod
    def _maximize(self, S, samples, regularizer):
        """Return the Solution for valid scores and samples."""

    def _solve(self, S, samples):
        return self._maximize(S, samples, self.regularizer_)

    def _trials(self, S, codes):
        """Yield samples of held-out items, to tune on; there are no class means that a third would have to give."""
        for samples in smooth_samples(codes, np.arange(len(codes)), few=True):
            yield Trial(samples, lambda regularizer, samples=samples: self._maximize(S, samples, regularizer).p)

    def _check_parameters(self, n_classes):
        Calibration(self.calibration).check()
        check_integer("max_iter", self.max_iter, minimum=1)
        check_real("tol", self.tol, low=0)

    def _objective(self, S, samples, regularizer):
        return MixtureObjective(self.calibration_.transform(S) / self.p_train_, samples, regularizer)


class SLD(_LikelihoodQuantifier):
    """Saerens, Latinne and Decaestecker: expectation maximization over the posteriors, from the training distribution.

    p_i^(k) = (1/N) sum_x [p_i^(k-1)/p_i^(0) s_i(x)] / [sum_j p_j^(k-1)/p_j^(0) s_j(x)]. This climbs the mean
    log-likelihood (1/N) sum_x ln sum_i p_i s_i(x) / p_i^(0), which is concave; ``solver="newton"`` goes to its maximum,
    and ``tau > 0`` subtracts tau/2 ||C p||^2 from it.

    Parameters
    ----------
    classifier : classifier, default=None
        Gives the posteriors, see :class:`CC`.
    tau : float or "auto", default=0.0
        Tikhonov regularization of the likelihood, solved by Newton's method; "auto" is chosen on the training items,
        see :class:`OPACC`.
    calibration : {"none", "bcts", "vector"}, default="none"
        Calibration of the posteriors on the held-out scores.
    max_iter : int, default=100
        Number of EM iterations.
    tol : float, default=0.0
        Stop EM where the mean absolute change of p is at most this; 0 never stops early.
    solver : {None, "em", "newton"} or solver, default=None
        None stands for "em", or "newton" where tau is not 0.
    """

    paper_name = "SLD"

    def __init__(self, classifier=None, *, tau=0.0, calibration="none", max_iter=100, tol=0.0, solver=None):
        self.classifier = classifier
        self.tau = tau
        self.calibration = calibration
        self.max_iter = max_iter
        self.tol = tol
        self.solver = solver

    def _check_parameters(self, n_classes):
        super()._check_parameters(n_classes)
        Tikhonov(self.tau).check(n_classes)
        check_solver(self.solver, also=("em",))
        if self.tau != 0 and self.solver == "em":
            raise ValueError("solver must be None or 'newton' with tau > 0: EM knows no regularizer.")

    def _regularizer(self):
        return Tikhonov(self.tau)

    def _maximize(self, S, samples, regularizer):
        objective = self._objective(S, samples, regularizer if regularizer.tau > 0 else NoPenalty())
        # Along a choice of tau all of them, zero too, go to their optimum.
        if self.solver == "em" or (self.solver is None and self.tau == 0):
            return em_mixture(objective, self.p_train_, max_iter=self.max_iter, tol=self.tol)
        return choose(objective, self.solver).minimize(objective)


class OSLD(_LikelihoodQuantifier):
    """o-SLD: SLD whose prior is smoothed by a polynomial before each iteration; the last p is not smoothed.

    Parameters
    ----------
    classifier, calibration, max_iter, tol
        See :class:`SLD`.
    order : int, default=0
        Degree of the polynomial.
    interpolation : float or "auto", default=0.1
        Weight of the polynomial in [0, 1]; ``interpolation=0`` is SLD. "auto" is chosen on the training items, as tau
        in :class:`OPACC`; ``interpolation_`` and ``tuning_`` tell.
    """

    paper_name = "o-SLD"

    def __init__(self, classifier=None, *, order=0, interpolation=0.1, calibration="none", max_iter=100, tol=0.0):
        self.classifier = classifier
        self.order = order
        self.interpolation = interpolation
        self.calibration = calibration
        self.max_iter = max_iter
        self.tol = tol

    def _check_parameters(self, n_classes):
        super()._check_parameters(n_classes)
        PolynomialSmoothing(self.order, self.interpolation).check(n_classes)

    def _regularizer(self):
        return PolynomialSmoothing(self.order, self.interpolation)

    def _maximize(self, S, samples, regularizer):
        objective = self._objective(S, samples, NoPenalty())
        return em_mixture(objective, self.p_train_, smoothing=regularizer, max_iter=self.max_iter, tol=self.tol)
