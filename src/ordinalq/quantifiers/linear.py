"""What the methods share: services, smoothing, and the linear system q = M p."""

from abc import abstractmethod
from collections.abc import Iterator
from copy import copy
from typing import Any, Self

import numpy as np
from sklearn.base import clone
from sklearn.utils.validation import check_is_fitted

from ordinalq._utils.validation import Array, Codes, Floats, same_parameters
from ordinalq.classifiers.cross_fitting import unscored
from ordinalq.inference.bootstrap import HeldOut, Tilt, of_items, of_means
from ordinalq.inference.intervals import width_correction
from ordinalq.inference.model import Facts, Replicates, Smoothing
from ordinalq.inference.options import Draws
from ordinalq.inference.tuning import Split, Trial, Tuning, ground, tune, warn_of
from ordinalq.losses import Loss
from ordinalq.quantifiers.base import Quantifier, Services
from ordinalq.regularizers import NoPenalty, Regularizer, Smoother, Tikhonov
from ordinalq.representations import Representation
from ordinalq.samples.samples import OneHot, Samples, class_means
from ordinalq.samples.summary import Summary
from ordinalq.samples.weights import Weights, handed_on, item_counts
from ordinalq.simplex import Data
from ordinalq.solvers.choose import check_solver, choose
from ordinalq.solvers.objectives import LinearObjective
from ordinalq.solvers.sensitivity import Move, tangent_inverse
from ordinalq.solvers.solution import Solution

Parts = tuple[Representation, Loss, Regularizer]


class Method(Quantifier, Services):
    """A quantifier that answers for groups, intervals and diagnosis itself."""

    def fitted(self) -> Quantifier:
        """Return the quantifier itself."""
        check_is_fitted(self, "p_train_")
        return self

    def keep(self, S: Floats, codes: Codes, groups: Codes | None = None, weights: Weights | None = None) -> None:
        """Keep V and, of the groups of its items (N,), what they tell of intervals."""
        super().keep(S, codes, groups, weights)
        if groups is not None:
            self.width_correction_ = width_correction(self, S, codes, groups, weights)

    def replicates(self, summary: Summary, P: Floats, draws: Draws) -> Iterator[Replicates]:
        """Yield replicates of the estimates P (B, n), see `ordinalq.inference.bootstrap`."""
        if self.on_means:
            return of_means(self, summary, P, draws)
        V = HeldOut.of(self)
        return of_items([self] * draws.n_models, V, summary, P, draws, Tilt.of(self, V))


class SmoothedMethod(Method):
    """A method whose estimates a regularizer or a smoothing can make smooth.

    Attributes
    ----------
    smoother_ : Regularizer or PolynomialSmoothing
        With the strength that was chosen, where that was "auto".
    tau_ or interpolation_ : float
        That strength, for methods that have one.
    tuning_ : Tuning
        How it was chosen; only where it was "auto".
    """

    smoother_: Any

    @abstractmethod
    def _trials(self, S: Floats, codes: Codes, splits: list[Split], weights: Weights | None = None) -> Iterator[Trial]:
        """Yield the samples of held-out items with scores or features S (N, ...), to tune on."""

    @property
    def _solves_slowly(self) -> bool:
        """Whether a sample takes a millisecond, so that a strength has to be chosen on fewer."""
        return False

    def _trial_unit(self, n_items: float) -> float:
        """Return what a strength is relative to, for samples of `n_items`: one, or N for a likelihood of counts."""
        return 1.0

    def _pool(self, codes: Codes) -> Codes:
        """Return the items that may enter class means and samples, of held-out ones with these codes (N,)."""
        return np.arange(len(codes))

    def tune(self, S: Floats, codes: Codes, groups: Codes | None = None, weights: Weights | None = None) -> None:
        """Choose the strength of smoothing where that is "auto"."""
        self.__dict__.pop("tuning_", None)
        auto, smoother = self.smoother_.auto, self.smoother_
        if auto is not None:
            chosen_on = ground(auto, codes, groups, self._pool(codes), few=self._solves_slowly)
            chosen_on = chosen_on.weighted(codes, weights)
            trials = self._trials(S, codes, chosen_on.splits, weights)
            self.tuning_: Tuning = tune(smoother, trials, self._trial_unit(chosen_on.sample_size), chosen_on.source)
            warn_of(self.tuning_, self.p_train_, (split.prevalences for split in chosen_on.splits))
            self.smoother_ = smoother.with_strength(self.tuning_.value)
        self._keep_strength()

    def _keep_strength(self) -> None:
        name = self.smoother_.strength
        if name is not None:
            setattr(self, f"{name}_", getattr(self.smoother_, name))

    def smoothing(self) -> Smoothing | None:
        """Return the strength of smoothing, None where the method does not smooth at all."""
        name = self.smoother_.strength
        return None if name is None else Smoothing(name, getattr(self, f"{name}_"))

    def with_strength(self, value: float) -> Self:
        """Return the fitted quantifier with another strength of smoothing."""
        twin = copy(self)
        twin.smoother_ = self.smoother_.with_strength(value)
        twin._keep_strength()
        return twin


class MatrixMethod(SmoothedMethod):
    """A method on the mean of a representation f, q, and its means over the held-out items of each class, M (d, n)."""

    shares_representation = True
    representation_: Representation
    M_: Floats

    @abstractmethod
    def _set_parts(self) -> None:
        """Set ``representation_``, ``smoother_`` and what else belongs to the method, by its parameters."""

    @abstractmethod
    def _solve_data(self, data: Data) -> Solution:
        """Return the Solution for q and M of the fitted quantifier."""

    def learn(self, S: Floats, codes: Codes, weights: Weights | None = None) -> None:
        """Fit the representation and its class means."""
        n = len(self.classes_)
        self._set_parts()
        p_train = class_distribution(codes, n, weights)
        if self.on == "scores":
            scored = ~unscored(S)
            S, codes, weights = S[scored], codes[scored], None if weights is None else weights.take(scored)
        check_every_class(codes, self.classes_)
        F = self._fitted_representation(self.representation_, S, codes, weights).transform(S)
        for_means = self.representation_.for_means_
        if for_means is not None:
            check_every_class(codes[for_means], self.classes_)
        self.M_ = class_means(F, codes, for_means, weights)
        self.p_train_ = p_train

    def _fitted_representation(
        self, representation: Representation, S: Floats, codes: Codes, weights: Weights | None
    ) -> Representation:
        return representation.fit(S, codes, len(self.classes_), **handed_on(representation.fit, weights))

    def _pool(self, codes: Codes) -> Codes:
        """Return the items that may enter class means, as the representation says."""
        for_means = self.representation_.for_means_
        return super()._pool(codes) if for_means is None else np.flatnonzero(for_means)

    def _trials(self, S: Floats, codes: Codes, splits: list[Split], weights: Weights | None = None) -> Iterator[Trial]:
        """Yield the samples of held-out items, each split with an M of its own."""
        F = self.embed(S)
        for split in splits:
            given = split.for_means
            if self.representation_.gives_distances:
                # Both q and M are distances to the items that M is made of.
                w = None if weights is None else weights.take(given)
                F = self._fitted_representation(clone(self.representation_), S[given], codes[given], w).transform(S)
            twin = copy(self)
            twin.M_ = class_means(F, codes, given, weights)
            yield Trial(twin, Summary.of_means(split.samples, F), split.prevalences, split.weights)

    def keep(self, S: Floats, codes: Codes, groups: Codes | None = None, weights: Weights | None = None) -> None:
        """Keep V: the items that may enter the class means."""
        for_means = self.representation_.for_means_
        if for_means is not None:
            S, codes = S[for_means], codes[for_means]
            groups = None if groups is None else groups[for_means]
            weights = None if weights is None else weights.take(for_means)
        super().keep(S, codes, groups, weights)

    def embed(self, S: Floats) -> Floats | OneHot:
        """Return the representation of items with valid scores or features S (N, ...), (N, d)."""
        return self.representation_.transform(S)

    def solve(self, summary: Summary) -> Solution:
        """Return the estimates of B summarized samples."""
        return self._solve_data(Data(summary.means, self.M_, summary.sizes, self.representation_.n_blocks_))

    def resample(self, F: Floats | OneHot, drawn: Samples) -> tuple[Self, Floats | None]:
        """Return the quantifier with M from other held-out items, and how these move distances."""
        twin = copy(self)
        if not self.representation_.gives_distances:
            twin.M_ = drawn.average(F).T
            return twin, None
        # Distances to other items: f changes, and with it q, by as much as the estimated mixture of V says.
        S, codes = self.held_out_
        nearer = clone(self.representation_).fit(S[drawn.items], codes[drawn.items], len(self.classes_))
        moved = nearer.transform(S)
        twin.M_ = drawn.average(moved).T
        weights = self.held_out_weights_
        return twin, class_means(moved, codes, None, weights) - class_means(F, codes, None, weights)

    def frequency_width(self, F: Floats | OneHot) -> int | None:
        """Return the length of the blocks of q that are frequencies, None where there are none."""
        return self.representation_.frequency_width(F)

    def response_matrix(self) -> Floats | None:
        """Return M, None where it holds distances."""
        return None if self.representation_.gives_distances else self.M_

    def adopt(self, fitted: Facts) -> bool:
        """Take over representation and class means of a fitted quantifier, if the representation is the same."""
        # What training groups tell of intervals holds for the parameters that it was learned with.
        if not isinstance(fitted, MatrixMethod) or fitted.width_correction_ is not None:
            return False
        self.check_parameters(len(fitted.classes_))
        self._set_parts()
        # A strength that is chosen in `fit` takes the training items, not only M.
        if self.smoother_.is_auto or not same_parameters(self.representation_, fitted.representation_):
            return False
        self.forget()
        kept = ("held_out_", "held_out_weights_", "group_covariance_", "check_covariance_")
        for name in ("classes_", "p_train_", *kept, "representation_", "M_"):
            setattr(self, name, getattr(fitted, name))
        self.width_correction_ = None
        self._keep_strength()
        return True


class LinearQuantifier(MatrixMethod):
    """Minimizes a loss between q and M p plus a regularizer; subclasses say with which parts."""

    loss_: Loss
    solver: Any

    @abstractmethod
    def _parts(self) -> Parts:
        """Return representation, loss and regularizer, by the parameters."""

    def _set_parts(self) -> None:
        """Set representation, loss and regularizer."""
        self.representation_, self.loss_, self.smoother_ = self._parts()

    def check_parameters(self, n_classes: int) -> None:
        """Refuse parameters out of range."""
        representation, loss, regularizer = self._parts()
        check_solver(self.solver)
        representation.check()
        loss.check()
        regularizer.check(n_classes)

    @property
    def counts_items(self) -> bool:
        """Whether the loss does."""
        return self._parts()[1].needs_sizes

    def _trial_unit(self, n_items: float) -> float:
        """Return N for a likelihood of counts, else one."""
        return float(self.loss_.scale(np.array([n_items], dtype=np.float64))[0])

    @property
    def _solves_slowly(self) -> bool:
        """Whether the loss is not convex."""
        return not self.loss_.convex

    def frequency_width(self, F: Floats | OneHot) -> int | None:
        """Return the length of the blocks of q that must be frequencies, None where the loss takes any q."""
        return None if self.loss_.takes_any_q else super().frequency_width(F)

    def _solve_data(self, data: Data) -> Solution:
        """Return the minimum of loss plus regularizer."""
        return self._minimize(self.loss_, self.smoother_, data)

    def solve_response(self, data: Data, *, sizes_known: bool = True, strengths: Floats | None = None) -> Solution:
        """Return the Solution of q = M p + background, see `ordinalq.solve`; `strengths` (B,) replace the own one."""
        loss, regularizer = self._response_parts(data, strengths)
        if loss.needs_distances:
            return super().solve_response(data, sizes_known=sizes_known)
        if loss.needs_sizes and not sizes_known:
            raise ValueError("N must be given where q are fractions: the loss needs the numbers of items.")
        return self._minimize(loss, regularizer, data, strengths)

    def _response_parts(self, data: Data, strengths: Floats | None) -> tuple[Loss, Regularizer]:
        """Return loss and regularizer, this of unit strength where each sample has its own."""
        self.check_parameters(data.n_classes)
        _, loss, regularizer = self._parts()
        if strengths is not None and regularizer.strength is not None:
            return loss, regularizer.with_strength(1.0)
        refuse_auto(regularizer)
        return loss, regularizer

    def response_strengths(self, data: Data, solution: Solution) -> Floats:
        """Return the strength of the regularizer for each sample, (B,)."""
        regularizer = self._parts()[2]
        return np.full(len(data), 0.0 if regularizer.strength is None else getattr(regularizer, regularizer.strength))

    def roughness(self, P: Floats, sizes: Floats) -> Floats:
        """Return the regularizer per unit of strength, (B,)."""
        regularizer = self._parts()[2]
        if regularizer.strength is None:
            return super().roughness(P, sizes)
        return np.asarray(regularizer.with_strength(1.0).derivatives(P, sizes).value)

    def linearize(self, data: Data, P: Floats, strengths: Floats) -> Move:
        """Return how the estimates P (B, n) move with the data, by the implicit function theorem."""
        loss, regularizer = self._response_parts(data, strengths)
        rows = np.arange(len(data))
        inverse = tangent_inverse(LinearObjective(loss, regularizer, data, strengths), P)

        def move(ahead: Data, behind: Data) -> Floats:
            pull = [LinearObjective(loss, regularizer, moved, strengths).gradient(P, rows) for moved in (ahead, behind)]
            return -np.asarray(np.matmul(inverse, (pull[0] - pull[1])[:, :, None])[:, :, 0])

        return move

    def _minimize(self, loss: Loss, regularizer: Regularizer, data: Data, strengths: Floats | None = None) -> Solution:
        """Return the minimum of a loss plus a regularizer, which may count `strengths` (B,) times."""
        objective = LinearObjective(loss, regularizer, data, strengths)
        solution: Solution = choose(objective, self.solver).minimize(objective)
        return solution


def smoothed(parts: Parts, tau: Any, order: int, centre: Any) -> Parts:
    """Return the parts of an o-method: those of its plain form, with Tikhonov regularization."""
    representation, loss, _ = parts
    return representation, loss, Tikhonov(tau, order=order, centre=centre)


def class_distribution(codes: Codes, n: int, weights: Weights | None = None) -> Floats:
    """Return the (weighted) share of each of n classes, (n,)."""
    counts = item_counts(codes, n, weights)
    return np.asarray(counts / counts.sum())


def refuse_auto(smoother: Smoother) -> None:
    """Refuse a strength that is to be chosen where there are no training items to choose it on."""
    if smoother.is_auto:
        name = smoother.strength
        raise ValueError(
            f"{name} must be a number here, got 'auto': there are no training items to choose it on; "
            f"give a number, for example the {name}_ of a fitted quantifier."
        )


def check_every_class(codes: Codes, classes: Array) -> None:
    """Refuse codes (N,) that leave out a class."""
    missing = np.bincount(codes, minlength=len(classes)) == 0
    if missing.any():
        raise ValueError(
            f"class {classes[missing.argmax()]} has no training item with an out-of-sample score; "
            f"M needs every one of the {len(classes)} classes."
        )


# Quantifiers from parts of one's choice.


EXAMPLES = {"representation": "Posteriors()", "loss": "LeastSquares()", "regularizer": "Tikhonov(1e-3)"}


class ComposedQuantifier(LinearQuantifier):
    """Any representation, loss and regularizer: min_p loss(q, M p) + regularizer(p).

    Parameters
    ----------
    representation : Representation
        f(x): what is averaged over samples and classes.
    loss : Loss
        How far q is from M p.
    regularizer : Regularizer, default=None
        None stands for no regularization.
    solver : solver or name, default=None
        None stands for the one that suits the loss.
    classifier : classifier, default=None
        Gives the scores, see :class:`CC`; not used by representations of features.

    Examples
    --------
    The SVD unfolding of Hoecker and Kartvelishvili, and the energy distance of features:

    >>> from ordinalq import ComposedQuantifier
    >>> from ordinalq.losses import Energy, LeastSquares
    >>> from ordinalq.regularizers import Tikhonov
    >>> from ordinalq.representations import HardVotes, MeanDistances
    >>> svd = ComposedQuantifier(HardVotes(), LeastSquares("poisson"), Tikhonov(1e-2))
    >>> edx = ComposedQuantifier(MeanDistances("euclidean", on="features"), Energy())
    >>> svd.set_params(regularizer__tau=0.1).regularizer
    Tikhonov(tau=0.1)
    """

    paper_name = ""

    def __init__(
        self,
        representation: Representation,
        loss: Loss,
        regularizer: Regularizer | None = None,
        solver: Any = None,
        classifier: Any = None,
    ) -> None:
        self.representation = representation
        self.loss = loss
        self.regularizer = regularizer
        self.solver = solver
        self.classifier = classifier

    @property
    def on(self) -> str:  # type: ignore[override]
        """What the representation takes."""
        return getattr(self.representation, "on", "scores")

    @property
    def needs_posteriors(self) -> bool:  # type: ignore[override]
        """Whether votes would not do for the representation."""
        return getattr(self.representation, "needs_posteriors", True)

    def check_parameters(self, n_classes: int) -> None:
        """Refuse parts that are none, or do not go together."""
        for name, kind in (("representation", Representation), ("loss", Loss), ("regularizer", Regularizer)):
            part = getattr(self, name)
            if not (isinstance(part, kind) or (name == "regularizer" and part is None)):
                raise TypeError(f"{name} must be a {kind.__name__}, for example {EXAMPLES[name]}, got {part!r}.")
        if self.representation.gives_distances != self.loss.needs_distances:
            raise ValueError(f"Energy works only with MeanDistances, got {self.representation} and {self.loss}.")
        if self.loss.has_kinks and self.regularizer is not None and not self.regularizer.has_form:
            raise ValueError(f"{self.loss} has kinks and needs Tikhonov or no regularizer, got {self.regularizer}.")
        super().check_parameters(n_classes)

    def _parts(self) -> Parts:
        regularizer = NoPenalty() if self.regularizer is None else clone(self.regularizer)
        return clone(self.representation), clone(self.loss), regularizer
