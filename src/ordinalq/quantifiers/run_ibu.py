"""RUN and IBU, unfolding methods of experimental physics."""

from dataclasses import replace
from typing import Any, Self

import numpy as np

from ordinalq._utils.validation import Floats, check_choice, check_integer, check_real, check_vectors
from ordinalq.inference.model import Traits
from ordinalq.losses import Loss, Poisson
from ordinalq.quantifiers.linear import LinearQuantifier, MatrixQuantifier, Parts
from ordinalq.regularizers import (
    LogTikhonov,
    NoPenalty,
    PolynomialSmoothing,
    Regularizer,
    Tikhonov,
    check_acceptance,
    differences,
)
from ordinalq.representations import HardVotes
from ordinalq.samples.summary import Summary
from ordinalq.simplex import Data
from ordinalq.solvers.em import STOPS, em_counts
from ordinalq.solvers.solution import Solution

# Curvatures below this part of the largest are rounding errors of zero.
ROUNDING = 1e-12


class RUN(LinearQuantifier):
    """Regularized unfolding: Poisson likelihood plus Tikhonov regularization.

    The likelihood is that of the counts of predictions.

    min_p N sum_i [v_i - q_i ln(N v_i)] + tau/2 ||C p||^2 with v = M p and f(x) = onehot(h(x)). The likelihood is of
    counts, the regularizer of prevalences: tau acts N times weaker than in o-ACC.

    Parameters
    ----------
    classifier : classifier, default=None
        Gives the predictions h(x), see :class:`CC`.
    tau, order, centre
        See :class:`OPACC`; the default tau is 10. With "auto" it is the best one for samples of 1000 items.
    n_df : float, default=None
        Effective number of degrees of freedom, in (order + 1, n]: each sample gets the tau with
        sum_i 1 / (1 + tau e_i) = n_df, where e_i are the eigenvalues of C'C in the basis that makes the Hessian of the
        likelihood the identity, at the solution without regularization. It takes precedence over a number in `tau`.
    acceptance : array-like (n,), default=None
        Probability a_i in (0, 1] that an event of class i is observed, as in :func:`ordinalq.solve`. With it the
        regularizer acts on log10(1 + (N - n) (p_i / a_i) / sum_j (p_j / a_j)), as in the original method: the spectrum
        of all events is smooth, not that of the observed ones. The estimate is still the distribution p of the
        observed events.
    shape : tuple of int, default=None
        Numbers of bins along the axes, if the classes form a grid, see `ordinalq.regularizers.Tikhonov`.
    solver : solver or name, default=None
        None stands for "newton".
    """

    paper_name = "RUN"

    def __init__(
        self,
        classifier: Any = None,
        *,
        tau: Any = 10.0,
        order: int = 1,
        centre: Any = None,
        acceptance: Any = None,
        solver: Any = None,
        n_df: float | None = None,
        shape: Any = None,
    ) -> None:
        self.classifier = classifier
        self.tau = tau
        self.order = order
        self.centre = centre
        self.acceptance = acceptance
        self.solver = solver
        self.n_df = n_df
        self.shape = shape

    def parts(self) -> Parts:
        """Return the parts; with an acceptance, a logarithmic regularizer."""
        if self.acceptance is None:
            regularizer: Regularizer = Tikhonov(self.tau, order=self.order, centre=self.centre, shape=self.shape)
        else:
            regularizer = LogTikhonov(self.tau, order=self.order, acceptance=self.acceptance, shape=self.shape)
        return Parts(HardVotes(), Poisson(), regularizer)

    def check_parameters(self, n_classes: int) -> None:
        """Raise ValueError if a parameter is out of range."""
        if self.acceptance is not None and self.centre is not None:
            raise ValueError("centre must be None with acceptance: the regularizer then acts on a logarithmic scale.")
        super().check_parameters(n_classes)
        if self.n_df is not None:
            check_real("n_df", self.n_df, low=self.n_unpenalized(n_classes), high=n_classes, open_low=True)
            if self.parts().regularizer.is_auto:
                raise ValueError("n_df must be None with tau='auto'. Pass one of them.")

    def _set_strength(self) -> None:
        super()._set_strength()
        if self.n_df is not None:
            self.tau_: float | None = None  # each sample has its own

    def with_strength(self, value: float) -> Self:
        """Return the fitted quantifier with one tau for all samples."""
        twin = super().with_strength(value)
        twin.n_df, twin.tau_ = None, value
        return twin

    def minimize(self, data: Data, loss: Loss, regularizer: Regularizer, strengths: Floats | None = None) -> Solution:
        """Return the minimum, with the tau of each sample that leaves `n_df`."""
        if self.n_df is None or strengths is not None:
            return self._with_strengths(data, loss, regularizer, strengths)
        A, R, solution = self.curvatures(data, regularizer)
        tau = tau_for(self.n_df, A, R)
        smoothed = np.flatnonzero(tau > 0)
        if len(smoothed):
            unit, part = regularizer.with_strength(1.0), data.take(smoothed)
            solution.put(smoothed, self._with_strengths(part, loss, unit, tau[smoothed]))
        return solution

    def _with_strengths(self, data: Data, loss: Loss, regularizer: Regularizer, strengths: Floats | None) -> Solution:
        if strengths is None or regularizer.quadratic(data.n_classes) is None or not (strengths > 0).all():
            return super().minimize(data, loss, regularizer, strengths)
        # The likelihood is proportional to N: if the regularizer does not depend on N, it may be changed instead of
        # the strength, which separates the two in the solver.
        scaled = super().minimize(replace(data, sizes=data.sizes / strengths), loss, regularizer)
        return replace(scaled, value=scaled.value * strengths)

    def n_unpenalized(self, n_classes: int) -> int:
        """Return the number of directions that the regularizer does not penalize.

        Parameters
        ----------
        n_classes : int
            Number of classes n.

        Returns
        -------
        int
            Number of unpenalized directions.
        """
        return n_classes - int(np.linalg.matrix_rank(differences(n_classes, self.order, self.shape)))

    def curvatures(self, data: Data, regularizer: Regularizer) -> tuple[Floats, Floats, Solution]:
        """Return A (B, d, n) and R (B, m, n) with Hessians A'A and R'R.

        A belongs to the likelihood, R to the regularizer.

        They are those at the unregularized Solution, which is returned too.

        Parameters
        ----------
        data : Data
            Problems of B samples: q (B, d), M (d, n), background and sizes.
        regularizer : Regularizer
            Penalty on p.

        Returns
        -------
        tuple of ndarray (B, d, n), ndarray (B, m, n) and Solution
            Roots A and R of the Hessians, and the unregularized solution.
        """
        free = super().minimize(data, Poisson(), NoPenalty())
        rows = np.sqrt(data.Q * data.sizes[:, None]) / np.maximum(data.expected(free.p), 1e-150)
        return rows[:, :, None] * data.M, regularizer.root(free.p, np.asarray(data.sizes, dtype=np.float64)), free

    def freedom(self, summary: Summary) -> tuple[Floats, Floats] | None:
        """Return tau and remaining degrees of freedom of each sample, (B,) each."""
        data = Data(summary.means, self.M_, summary.sizes)
        A, R, _ = self.curvatures(data, self.smoother_)
        tau = np.full(len(summary), self.tau_) if self.n_df is None else tau_for(self.n_df, A, R)
        return tau, degrees_of_freedom(tau, A, R)


class IBU(MatrixQuantifier):
    """Iterative Bayesian unfolding with a smoothed prior.

    Bayes' theorem is applied to the counts of predictions.

    p_i^(k) = sum_j [M_ji p~_i / sum_l M_jl p~_l] q_j, p~ the smoothed p^(k-1), from a uniform start; the last p is not
    smoothed.

    Parameters
    ----------
    classifier : classifier, default=None
        Gives the predictions h(x), see :class:`CC`.
    order, interpolation
        Parameters of the polynomial smoothing, see :class:`OSLD`; by default 0 and 0.1; "auto" works too.
    max_iter : int, default=100
        Largest number of iterations.
    tol : float, default=0.0
        The iteration ends when the statistic `stop` of two successive estimates is at most this; 0 never stops early.
    stop : {"mean", "ks", "chi-square", "bayes-factor", "max-change"}, default="mean"
        Mean absolute change of p; or of the numbers of items: the distance of Kolmogorov and Smirnov, chi-square per
        class, logarithm of the odds of different distributions, largest relative change |b - a| / (a + b).
    prior : array-like (n,), default=None
        Distribution of all items to start from, in any unit; None stands for the uniform one.
    acceptance : array-like (n,), default=None
        Probability a_i in (0, 1] that an item of class i is observed, as in :class:`RUN`: the prior, and the numbers of
        items that `stop` compares, are those of all items, observed or not. The estimate is still p, of observed items.
    """

    paper_name = "IBU"

    def __init__(
        self,
        classifier: Any = None,
        *,
        order: int = 0,
        interpolation: Any = 0.1,
        max_iter: int = 100,
        tol: float = 0.0,
        stop: str = "mean",
        prior: Any = None,
        acceptance: Any = None,
    ) -> None:
        self.classifier = classifier
        self.order = order
        self.interpolation = interpolation
        self.max_iter = max_iter
        self.tol = tol
        self.stop = stop
        self.prior = prior
        self.acceptance = acceptance

    @property
    def traits(self) -> Traits:
        """Traits of a method on predictions."""
        return Traits(needs_posteriors=False, shares_representation=True, accepts_weights=True)

    def _set_parts(self) -> None:
        self.representation_, self.smoother_ = HardVotes(), self.smoother()

    def smoother(self) -> PolynomialSmoothing:
        """Return the smoothing, by the parameters."""
        return PolynomialSmoothing(self.order, self.interpolation)

    def check_parameters(self, n_classes: int) -> None:
        """Raise ValueError if a parameter is out of range."""
        self.smoother().check(n_classes)
        check_integer("max_iter", self.max_iter, minimum=1)
        check_real("tol", self.tol, low=0)
        check_choice("stop", self.stop, tuple(STOPS))
        if self.acceptance is not None:
            check_acceptance(self.acceptance, n_classes)
        if self.prior is not None:
            prior = check_vectors("prior", self.prior, min_classes=2)
            if prior.shape != (n_classes,) or not (prior > 0).all():
                raise ValueError(f"prior must be {n_classes} numbers > 0, got {self.prior!r:.80}.")

    def _solve_data(self, data: Data) -> Solution:
        return self.iterate(data, self.smoother_)

    def iterate(self, data: Data, smoothing: PolynomialSmoothing, iterations: Floats | None = None) -> Solution:
        """Iterate until convergence, or a number of times per sample, (B,).

        Parameters
        ----------
        data : Data
            Problems of B samples: q (B, d), M (d, n), background and sizes.
        smoothing : PolynomialSmoothing
            Smoothing of the prior.
        iterations : ndarray (B,), default=None
            Number of iterations of each sample.

        Returns
        -------
        Solution
            Estimates of the samples.
        """
        known: dict[str, Any] = {"smoothing": smoothing, "start": self.start(data.n_classes)}
        if iterations is not None:
            return em_counts(data, max_iter=iterations.astype(np.int64), **known)
        a = None if self.acceptance is None else np.asarray(self.acceptance, dtype=np.float64)
        stop = STOPS[self.stop]
        return em_counts(data, max_iter=self.max_iter, tol=self.tol, stop=stop, acceptance=a, **known)

    def start(self, n_classes: int) -> Floats | None:
        """Return the first prevalences (n,) of observed items; None if uniform.

        Parameters
        ----------
        n_classes : int
            Number of classes n.

        Returns
        -------
        ndarray (n,) or None
            First prevalences.
        """
        if self.prior is None and self.acceptance is None:
            return None
        observed = np.ones(n_classes)
        for part in (self.prior, self.acceptance):
            observed = observed if part is None else observed * np.asarray(part, dtype=np.float64)
        return np.asarray(observed / observed.sum())


def degrees_of_freedom(tau: Any, A: Floats, R: Floats) -> Floats:
    """Return sum_i 1 / (1 + tau e_i), the degrees of freedom left by tau, (B,).

    A'A, of A (B, d, n), and R'R, of R (B, m, n), are Hessians of the likelihood and of the regularizer per unit of
    strength; e_i are the eigenvalues of R'R in the basis in which A'A is the identity. Directions in which A'A is zero
    have no freedom.
    """
    e, rank = _whitened(A, R)
    return _left(np.asarray(tau, dtype=np.float64), e, rank)


def tau_for(n_df: float, A: Floats, R: Floats) -> Floats:
    """Return the tau (B,) that leaves n_df degrees of freedom, at least 0."""
    e, rank = _whitened(A, R)
    # On a logarithmic scale, from where every direction is free to where only those without curvature are.
    low = -np.log(e.max(axis=1, initial=1e-300)) - 30
    high = -np.log(np.where(e > 0, e, np.inf).min(axis=1).clip(1e-300, 1e300)) + 30
    for _ in range(100):
        middle = (low + high) / 2
        many = _left(np.exp(middle), e, rank) > n_df
        low, high = np.where(many, middle, low), np.where(many, high, middle)
    return np.where(rank <= n_df, 0.0, np.exp((low + high) / 2))


def _left(tau: Floats, e: Floats, rank: Floats) -> Floats:
    return np.asarray(rank - (1 - 1 / (1 + tau[:, None] * e)).sum(axis=1))


def _whitened(A: Floats, R: Floats) -> tuple[Floats, Floats]:
    """Return eigenvalues of R'R in units of A'A, and the rank of A, (B,).

    They are squares of singular values, which have twice the digits of eigenvalues.
    """
    _, size, axes = np.linalg.svd(A, full_matrices=False)
    known = size**2 > ROUNDING * size.max(axis=1, keepdims=True) ** 2
    W = axes / np.where(known, size, np.inf)[:, :, None]
    e = np.linalg.svd(np.matmul(R, W.transpose(0, 2, 1)), compute_uv=False) ** 2
    return np.where(e > ROUNDING * e.max(axis=1, keepdims=True, initial=0.0), e, 0.0), known.sum(axis=1).astype(
        np.float64
    )
