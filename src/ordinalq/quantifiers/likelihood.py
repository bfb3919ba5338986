"""SLD, its ordinal version o-SLD, and KDEy. Paper: the sections on SLD and o-SLD."""

from abc import abstractmethod
from collections.abc import Iterator
from copy import copy
from typing import Any

import numpy as np

from ordinalq._utils.validation import Codes, Floats, check_integer, check_real
from ordinalq.classifiers.calibration import Calibration
from ordinalq.inference.bootstrap import ClassPools, Tilt, chunks, composition, of_items
from ordinalq.inference.model import HeldOut, Replicates, Traits
from ordinalq.inference.options import Draws
from ordinalq.inference.tuning import Split, Trial
from ordinalq.metrics import nmd
from ordinalq.protocols import APP
from ordinalq.quantifiers.adjusted_ml import thinned
from ordinalq.quantifiers.base import check_every_class
from ordinalq.quantifiers.linear import SmoothedQuantifier
from ordinalq.regularizers import NoPenalty, PolynomialSmoothing, Regularizer, Smoother, Tikhonov
from ordinalq.samples.samples import Samples
from ordinalq.samples.summary import Summary
from ordinalq.samples.weights import Weights, class_shares
from ordinalq.simplex import clean
from ordinalq.solvers.choose import check_solver, choose
from ordinalq.solvers.em import em_mixture
from ordinalq.solvers.objectives import HESSIANS, MixtureObjective
from ordinalq.solvers.quadratic import simplex_qp
from ordinalq.solvers.solution import Solution

# Added to correlations and, relative to its mean diagonal, to the information: what V leaves open stays solvable.
RIDGE = 1e-8
OPEN = 1e-10


class _LikelihoodMethod(SmoothedQuantifier):
    """Maximises the likelihood of the items' scores under prior probability shift."""

    calibration: str
    max_iter: int
    tol: float

    @property
    def traits(self) -> Traits:
        """Traits of a method that needs the scores of all items."""
        return Traits(uses_sample_means=False, accepts_weights=True)

    def learn(self, held_out: HeldOut) -> None:
        """Fit the calibration."""
        check_every_class(held_out.codes, self.classes_)
        self.calibration_ = Calibration(self.calibration).fit(held_out.S, held_out.codes, held_out.weights)
        self.smoother_ = self._smoother()
        self._tune(held_out)

    @abstractmethod
    def _smoother(self) -> Smoother:
        """Return what smooths, by its parameters."""

    @abstractmethod
    def _maximize(self, S: Floats, samples: Samples) -> Solution:
        """Return the Solution for valid scores and samples."""

    def solve(self, summary: Summary) -> Solution:
        """Return the estimates of B summarized samples."""
        return self._maximize(*summary.scored())

    @property
    def _solves_slowly(self) -> bool:
        """Whether a sample takes a millisecond: its items are all in the likelihood."""
        return True

    def _trials(self, held_out: HeldOut, splits: list[Split]) -> Iterator[Trial]:
        """Yield samples of held-out items; class means are not needed."""
        for split in splits:
            yield Trial(self, Summary.of_items(split.samples, held_out.S), split.prevalences, split.weights)

    def check_parameters(self, n_classes: int) -> None:
        """Raise ValueError if a parameter is out of range."""
        Calibration(self.calibration).check()
        check_integer("max_iter", self.max_iter, minimum=1)
        check_real("tol", self.tol, low=0)

    def _ratios(self, S: Floats) -> Floats:
        """Return the score ratios r_i(x) = s_i(x) / p_i of calibrated posteriors, (N, n)."""
        return np.asarray(self.calibration_.transform(S) / self.p_train_)

    def replicates(self, summary: Summary, P: Floats, draws: Draws) -> Iterator[Replicates]:
        """Yield replicates of the estimates P (B, n).

        The likelihood holds for perfect posteriors only. Without smoothing the replicates come from the posteriors used
        as a representation whose class means are measured on V, see :meth:`_adjusted`; smoothed estimates are made
        again of samples that are drawn from V, with calibrations of drawn items.
        """
        V = ClassPools.of(self)
        smoothing = self.smoothing()
        if smoothing is None or smoothing.value == 0:
            return self._adjusted(V, summary, P, draws)
        models = []
        drawn = self.calibration_.replicates(
            V.S, V.codes, lambda: V.resample(draws.rng).items, draws.n_models, V.weights
        )
        for calibration in drawn:
            model = copy(self)
            model.calibration_ = calibration
            models.append(model)
        return of_items(models, V, summary, P, draws, Tilt.of(self, V))

    def _adjusted(self, V: ClassPools, summary: Summary, P: Floats, draws: Draws) -> Iterator[Replicates]:
        """Yield replicates by the class means of the posteriors.

        f_i(x) = r_i(x) / sum_j r_j(x) are the posteriors if all classes were equally frequent, r the score ratios.
        Whether or not they are right, their mean q over the sample has expectation H p with their class means H on V.
        To first order q - H p has covariance Omega = sum_i (p_i / N + p_i^2 / N_i) Sigma_i, where the second term, with
        the N_i items of class i in V, is the part of H; the population adds that of its composition, and training
        groups add D (1 - 1/N), the group effect. A replicate
        minimises (q* - H p)' Omega^-1 (q* - H p) over the simplex, with q* normal around q.

        Posteriors at the estimate itself would be a little more precise, but they depend on the sample, and intervals
        that ignore it are too short.
        """
        draws = draws.for_samples()
        F, n = self._even_posteriors(V.S), P.shape[1]
        H = V.classes.average(F).T
        S, samples = summary.scored()
        q = samples.average(self._even_posteriors(S))
        spread = np.empty((n, n - 1, n - 1))
        for i in range(n):
            off = F[V.classes.index(i)] - H[:, i]
            spread[i] = (off.T * V.shares[V.classes.index(i)]) @ off
        for rows in chunks(len(P), draws.n_replicates * n):
            p, N = composition(P[rows], summary.sizes[rows]), summary.sizes[rows][:, None]
            Omega = np.tensordot(p / N + p**2 / V.counts, spread, axes=1)
            D = self.held_out_.group_covariance
            if D is not None:
                Omega += D * (1 - 1 / N)[:, :, None]
            if draws.estimand == "population":
                expected = p @ H.T
                outer = expected[:, :, None] * expected[:, None, :]
                Omega += np.einsum("bi,ki,li->bkl", p / N, H, H) - outer / N[:, :, None]
            G, g = _whitened(q[rows], H, Omega)
            A = np.matmul(G.transpose(0, 2, 1), G)
            # Classes that V does not distinguish.
            A += OPEN * np.trace(A, axis1=1, axis2=2)[:, None, None] / n * np.eye(n)
            found = np.empty((draws.n_replicates, len(g), n))
            # Of few samples many replicates are solved at once.
            step = max(1, HESSIANS // A.size)
            for start in range(0, draws.n_replicates, step):
                part = found[start : start + step]
                noisy = g + draws.rng.normal(size=(len(part), *g.shape))
                b = np.matmul(noisy[:, :, None, :], G)[:, :, 0].reshape(-1, n)
                part[:] = simplex_qp(np.tile(A, (len(part), 1, 1)), b)[0].reshape(part.shape)
            yield Replicates(rows, clean(found.reshape(-1, n)).reshape(found.shape), 1)

    def group_features(self, S: Floats) -> Floats:
        """Return the posteriors that :meth:`_adjusted` takes."""
        return self._even_posteriors(S)

    def _even_posteriors(self, S: Floats) -> Floats:
        """Return r_i(x) / sum_j r_j(x) of all classes but the last, (N, n - 1)."""
        ratios = self._ratios(S)
        return np.asarray(ratios[:, :-1] / ratios.sum(axis=1, keepdims=True))


def _whitened(Q: Floats, H: Floats, Omega: Floats) -> tuple[Floats, Floats]:
    """Return L^-1 H (B, n - 1, n) and L^-1 q (B, n - 1), with L L' = Omega."""
    scale = np.sqrt(np.maximum(np.diagonal(Omega, axis1=1, axis2=2), 1e-30))
    Omega = Omega / (scale[:, :, None] * scale[:, None, :]) + RIDGE * np.eye(len(H))
    right = np.concatenate([np.broadcast_to(H, (len(Q), *H.shape)), Q[:, :, None]], axis=2) / scale[:, :, None]
    both = np.linalg.solve(np.linalg.cholesky(Omega), right)
    return np.asarray(both[:, :, :-1]), np.asarray(both[:, :, -1])


class SLD(_LikelihoodMethod):
    """Expectation maximization over posteriors (Saerens et al., SLD).

    It starts from the training distribution.

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
        Stop EM when the mean absolute change of p is at most this; 0 never stops early.
    solver : {None, "em", "newton"} or solver, default=None
        None stands for "em", or "newton" if tau is not 0.
    """

    paper_name = "SLD"

    def __init__(
        self,
        classifier: Any = None,
        *,
        tau: Any = 0.0,
        calibration: str = "none",
        max_iter: int = 100,
        tol: float = 0.0,
        solver: Any = None,
    ) -> None:
        self.classifier = classifier
        self.tau = tau
        self.calibration = calibration
        self.max_iter = max_iter
        self.tol = tol
        self.solver = solver

    def check_parameters(self, n_classes: int) -> None:
        """Raise ValueError if a parameter is out of range."""
        super().check_parameters(n_classes)
        Tikhonov(self.tau).check(n_classes)
        check_solver(self.solver, also=("em",))
        if self.tau != 0 and self.solver == "em":
            raise ValueError("solver must be None or 'newton' with tau > 0: EM has no regularizer.")

    def _smoother(self) -> Smoother:
        return Tikhonov(self.tau)

    def _maximize(self, S: Floats, samples: Samples) -> Solution:
        regularizer: Regularizer = self.smoother_ if self.smoother_.tau > 0 else NoPenalty()
        objective = MixtureObjective(self._ratios(S), samples, regularizer)
        # Along a choice of tau all of them, zero too, go to their optimum.
        if self.solver == "em" or (self.solver is None and self.tau == 0):
            return em_mixture(objective, self.p_train_, max_iter=self.max_iter, tol=self.tol)
        solution: Solution = choose(objective, self.solver).minimize(objective)
        return solution


class OSLD(_LikelihoodMethod):
    """o-SLD: SLD whose prior is smoothed by a polynomial after each iteration.

    The last p is not smoothed.

    Parameters
    ----------
    classifier, calibration, max_iter, tol
        See :class:`SLD`.
    order : int, default=0
        Degree of the polynomial.
    interpolation : float or "auto", default=0.1
        Weight of the polynomial in [0, 1]; ``interpolation=0`` is SLD. "auto" is chosen on the training items, like tau
        in :class:`OPACC`; ``interpolation_`` is the choice, ``tuning_`` the curve that led to it.
    """

    paper_name = "o-SLD"

    def __init__(
        self,
        classifier: Any = None,
        *,
        order: int = 0,
        interpolation: Any = 0.1,
        calibration: str = "none",
        max_iter: int = 100,
        tol: float = 0.0,
    ) -> None:
        self.classifier = classifier
        self.order = order
        self.interpolation = interpolation
        self.calibration = calibration
        self.max_iter = max_iter
        self.tol = tol

    def check_parameters(self, n_classes: int) -> None:
        """Raise ValueError if a parameter is out of range."""
        super().check_parameters(n_classes)
        PolynomialSmoothing(self.order, self.interpolation).check(n_classes)

    def _smoother(self) -> Smoother:
        return PolynomialSmoothing(self.order, self.interpolation)

    def _maximize(self, S: Floats, samples: Samples) -> Solution:
        objective = MixtureObjective(self._ratios(S), samples, NoPenalty())
        return em_mixture(objective, self.p_train_, smoothing=self.smoother_, max_iter=self.max_iter, tol=self.tol)


# Bandwidths that "auto" tries.
BANDWIDTHS = (0.01, 0.02, 0.05, 0.1, 0.2)
# Samples of each half of the held-out items, and their items at most, on which a bandwidth is chosen.
N_SAMPLES, SAMPLE_SIZE = 50, 500
# Entries of a block of kernel values.
KERNELS = 2**22
# Held-out items at most whose kernels are summed.
MOST_KERNELS = 2**14


class KDEy(_LikelihoodMethod):
    r"""Maximum likelihood with kernel densities of posteriors (KDEy-ML).

    The density of the scores s in class i is the mean of Gaussian kernels at the held-out items of the class,
    f_i(s) = 1/n_i sum_{y_j = i} exp(-||s - s_j||^2 / (2 h^2)). The estimate maximizes sum_x ln sum_i p_i f_i(s(x)) over
    the simplex (Moreo, Gonzalez and del Coz, "Kernel density estimation for multiclass quantification", 2024). The
    densities of a pool are computed once, and all samples are solved together. Intervals rest on the class means of
    the posteriors, as those of :class:`SLD`.

    Parameters
    ----------
    classifier : classifier, default=None
        Gives the posteriors, see :class:`CC`.
    bandwidth : float or "auto", default=0.1
        Standard deviation h of the kernels. "auto" takes the one of {0.01, 0.02, 0.05, 0.1, 0.2} with the smallest NMD
        on samples of the held-out items, half of which serve as kernels.
    tau : float or "auto", default=0.0
        Tikhonov regularization of the likelihood, see :class:`SLD`.
    solver : {None, "newton"} or solver, default=None
        Algorithm on the simplex.
    random_state : int, default=0
        Seed of the samples on which "auto" is decided.

    Attributes
    ----------
    bandwidth_ : float
        The bandwidth in use.
    kernels_, kernel_weights_ : ndarray (m, n), ndarray (m, n)
        Scores of held-out items, and their weights in the density of each class. Of more than 16,384 items a part of
        each class is used.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> y = rng.integers(0, 3, 300)
    >>> S = rng.dirichlet([1, 1, 1], 300) / 2 + np.eye(3)[y] / 2
    >>> KDEy().fit_scores(S, y).predict_scores(S, [np.flatnonzero(y == 1)]).round(1)
    array([[0., 1., 0.]])
    """

    paper_name = ""
    calibration = "none"
    max_iter = 1
    tol = 0.0

    def __init__(
        self,
        classifier: Any = None,
        *,
        bandwidth: Any = 0.1,
        tau: Any = 0.0,
        solver: Any = None,
        random_state: int = 0,
    ) -> None:
        self.classifier = classifier
        self.bandwidth = bandwidth
        self.tau = tau
        self.solver = solver
        self.random_state = random_state

    def check_parameters(self, n_classes: int) -> None:
        """Raise ValueError if a parameter is out of range."""
        if self.bandwidth != "auto":
            check_real("bandwidth", self.bandwidth, low=0, open_low=True)
        Tikhonov(self.tau).check(n_classes)
        check_solver(self.solver)

    def learn(self, held_out: HeldOut) -> None:
        """Store the kernels, after the choice of the bandwidth."""
        check_every_class(held_out.codes, self.classes_)
        self.bandwidth_ = self._best_bandwidth(held_out) if self.bandwidth == "auto" else float(self.bandwidth)
        self._place_kernels(held_out.S, held_out.codes, held_out.weights)
        super().learn(held_out)

    def _place_kernels(self, S: Floats, codes: Codes, weights: Weights | None) -> None:
        """Store the kernels at scores S (N, n) of items of known classes."""
        kept = thinned(codes, MOST_KERNELS)
        self.kernels_ = S[kept]
        self.kernel_weights_ = np.zeros((len(kept), S.shape[1]))
        weights = None if weights is None else weights.take(kept)
        self.kernel_weights_[np.arange(len(kept)), codes[kept]] = class_shares(codes[kept], S.shape[1], weights)

    def _best_bandwidth(self, V: HeldOut) -> float:
        """Return the bandwidth with the smallest NMD on half of the items."""
        rng = np.random.default_rng(self.random_state)
        classes, order = np.arange(V.S.shape[1]), np.lexsort((rng.random(len(V.codes)), V.codes))
        halves = order[::2], order[1::2]
        if any((np.bincount(V.codes[half], minlength=len(classes)) == 0).any() for half in halves):
            return BANDWIDTHS[len(BANDWIDTHS) // 2]
        protocol = APP(
            N_SAMPLES, min(SAMPLE_SIZE, len(V.codes) // 2), small_pool="repeat", random_state=self.random_state
        )
        trial, error = copy(self), np.zeros(len(BANDWIDTHS))
        trial.smoother_ = NoPenalty()
        for kernels, judged in (halves, halves[::-1]):
            trial._place_kernels(V.S[kernels], V.codes[kernels], None if V.weights is None else V.weights.take(kernels))
            samples = protocol.draw(V.codes[judged], classes=classes)
            for i, trial.bandwidth_ in enumerate(BANDWIDTHS):
                error[i] += nmd(samples.prevalences, clean(trial._maximize(V.S[judged], samples).p)).mean()
        return BANDWIDTHS[int(error.argmin())]

    def _smoother(self) -> Smoother:
        return Tikhonov(self.tau)

    def densities(self, S: Floats) -> Floats:
        """Return class densities (N, n) of scores S (N, n), up to a factor per item.

        Parameters
        ----------
        S : ndarray (N, n)
            Class scores of items, or features (N, d) for methods on features.

        Returns
        -------
        ndarray (N, n)
            Densities of each item in each class.
        """
        found = np.empty((len(S), self.kernel_weights_.shape[1]))
        squares = np.square(self.kernels_).sum(axis=1)
        step = max(1, KERNELS // len(squares))
        for start in range(0, len(S), step):
            part = S[start : start + step]
            # Squared distances less ||s||^2, a factor of the item as is the smallest of them.
            K = squares - 2 * part @ self.kernels_.T
            K -= K.min(axis=1, keepdims=True)
            K *= -0.5 / self.bandwidth_**2
            found[start : start + step] = np.exp(K, out=K) @ self.kernel_weights_
        return found

    def _maximize(self, S: Floats, samples: Samples) -> Solution:
        regularizer: Regularizer = self.smoother_ if getattr(self.smoother_, "tau", 0) > 0 else NoPenalty()
        objective = MixtureObjective(self.densities(S), samples, regularizer)
        solution: Solution = choose(objective, self.solver).minimize(objective)
        return solution
