"""Methods that solve q = M p: representation, loss, regularizer, solver."""

from abc import abstractmethod
from collections.abc import Iterator
from copy import copy
from typing import Any, NamedTuple, Self

import numpy as np
from sklearn.base import clone

from ordinalq._utils.validation import Codes, Floats, same_parameters
from ordinalq.inference.model import HeldOut, Smoothing, Traits
from ordinalq.inference.tuning import Split, Trial, Tuning, tune, tuning_basis, warn_about_choice
from ordinalq.losses import Loss
from ordinalq.quantifiers.base import Quantifier, check_every_class
from ordinalq.regularizers import NoPenalty, Regularizer, Tikhonov
from ordinalq.representations import Representation
from ordinalq.samples.samples import OneHot, Samples, class_means
from ordinalq.samples.summary import Summary
from ordinalq.samples.weights import weights_argument
from ordinalq.simplex import Data, averaged, equal_columns
from ordinalq.solvers.choose import check_solver, choose
from ordinalq.solvers.objectives import LinearObjective
from ordinalq.solvers.solution import Solution

EXAMPLES = {"representation": "Posteriors()", "loss": "LeastSquares()", "regularizer": "Tikhonov(1e-3)"}


class Parts(NamedTuple):
    """The parts of a linear method."""

    representation: Representation
    loss: Loss
    regularizer: Regularizer = NoPenalty()

    def smoothed(self, tau: Any, order: int, centre: Any) -> "Parts":
        """Return the parts of the o-method: the same with Tikhonov regularization."""
        return self._replace(regularizer=Tikhonov(tau, order=order, centre=centre))


class SmoothedQuantifier(Quantifier):
    """A method with a regularizer or a smoothing, whose strength `fit` may choose.

    Attributes
    ----------
    smoother_ : Regularizer or PolynomialSmoothing
        With the strength that was chosen, if the parameter is "auto".
    tau_ or interpolation_ : float
        That strength, for methods that have one.
    tuning_ : Tuning
        Errors of the strengths that were tried; only with "auto".
    """

    smoother_: Any

    @abstractmethod
    def _trials(self, held_out: HeldOut, splits: list[Split]) -> Iterator[Trial]:
        """Yield samples of held-out items to tune on."""

    @property
    def _solves_slowly(self) -> bool:
        """Whether a sample takes a millisecond, so that tuning uses fewer samples."""
        return False

    def _trial_unit(self, n_items: float) -> float:
        """Return the unit of a strength: one, or N for a likelihood of counts."""
        return 1.0

    def _tune(self, held_out: HeldOut, pool: Codes | None = None) -> None:
        """Choose the strength of smoothing if it is "auto", on samples of the pool."""
        self.__dict__.pop("tuning_", None)
        auto, smoother = self.smoother_.auto, self.smoother_
        if auto is not None:
            codes, weights = held_out.codes, held_out.weights
            pool = np.arange(len(codes)) if pool is None else pool
            chosen_on = tuning_basis(auto, codes, held_out.groups, pool, few=self._solves_slowly).weighted(
                codes, weights
            )
            trials = self._trials(held_out, chosen_on.splits)
            self.tuning_: Tuning = tune(smoother, trials, self._trial_unit(chosen_on.sample_size), chosen_on.source)
            warn_about_choice(self.tuning_, self.p_train_, (split.prevalences for split in chosen_on.splits))
            self.smoother_ = smoother.with_strength(self.tuning_.value)
        self._set_strength()

    def _set_strength(self) -> None:
        name = self.smoother_.strength
        if name is not None:
            setattr(self, f"{name}_", getattr(self.smoother_, name))

    def smoothing(self) -> Smoothing | None:
        """Return the strength of smoothing, None if the method does not smooth."""
        name = self.smoother_.strength
        return None if name is None else Smoothing(name, getattr(self, f"{name}_"))

    def with_strength(self, value: float) -> Self:
        """Return the fitted quantifier with another strength of smoothing."""
        if self.smoother_.strength is None:
            return super().with_strength(value)
        twin = copy(self)
        twin.smoother_ = self.smoother_.with_strength(value)
        twin._set_strength()
        return twin


class MatrixQuantifier(SmoothedQuantifier):
    """Method on the mean q of a representation and its class means M (d, n)."""

    representation_: Representation
    M_: Floats

    @property
    def traits(self) -> Traits:
        """Traits of a method whose representation other parameters can share."""
        return Traits(shares_representation=True, accepts_weights=True)

    @abstractmethod
    def _set_parts(self) -> None:
        """Set ``representation_``, ``smoother_`` and the other parts, by the parameters."""

    @abstractmethod
    def _solve_data(self, data: Data) -> Solution:
        """Return the Solution for q and M of the fitted quantifier."""

    def learn(self, held_out: HeldOut) -> HeldOut | None:
        """Fit the representation and its class means."""
        self._set_parts()
        check_every_class(held_out.codes, self.classes_)
        F = self._fitted_representation(self.representation_, held_out).transform(held_out.S)
        for_means = self.representation_.for_means_
        if for_means is not None:
            check_every_class(held_out.codes[for_means], self.classes_)
        self.M_ = self._without_rounding(class_means(F, held_out.codes, for_means, held_out.weights))
        self._tune(held_out, None if for_means is None else np.flatnonzero(for_means))
        return None if for_means is None else held_out.take(for_means)

    def _without_rounding(self, M: Floats) -> Floats:
        """Return M (d, n) with equal columns if they differ by rounding errors."""
        sets = equal_columns(M, float(self.traits.input_kind == "scores"))
        M = averaged(M, sets)
        return averaged(M.T, sets).T if self.representation_.gives_distances else M

    def _fitted_representation(self, representation: Representation, V: HeldOut) -> Representation:
        return representation.fit(V.S, V.codes, len(self.classes_), **weights_argument(representation.fit, V.weights))

    def _trials(self, held_out: HeldOut, splits: list[Split]) -> Iterator[Trial]:
        """Yield samples of held-out items, each split with a separate M."""
        F = self.embed(held_out.S)
        for split in splits:
            if self.representation_.gives_distances:
                # Both q and M are distances to the items that M is made of.
                near = self._fitted_representation(clone(self.representation_), held_out.take(split.for_means))
                F = near.transform(held_out.S)
            twin = copy(self)
            twin.M_ = class_means(F, held_out.codes, split.for_means, held_out.weights)
            yield Trial(twin, Summary.of_means(split.samples, F), split.prevalences, split.weights)

    def embed(self, S: Floats) -> Floats | OneHot:
        """Return the representation (N, d) of scores or features S (N, ...)."""
        return self.representation_.transform(S)

    def solve(self, summary: Summary) -> Solution:
        """Return the estimates of B summarized samples."""
        Q = summary.means
        if self.representation_.gives_distances:
            Q = averaged(Q, equal_columns(self.M_))
        return self._solve_data(Data(Q, self.M_, summary.sizes, self.representation_.n_blocks_))

    def resample(self, F: Floats | OneHot, drawn: Samples) -> tuple[Self, Floats | None]:
        """Return the quantifier with M from other held-out items, and its change."""
        twin = copy(self)
        if not self.representation_.gives_distances:
            twin.M_ = self._without_rounding(drawn.average(F).T)
            return twin, None
        # Distances to other items: f changes, and with it q, by the change of the estimated mixture of V.
        V = self.held_out_
        nearer = clone(self.representation_).fit(V.S[drawn.items], V.codes[drawn.items], len(self.classes_))
        moved = nearer.transform(V.S)
        twin.M_ = self._without_rounding(drawn.average(moved).T)
        return twin, class_means(moved, V.codes, None, V.weights) - class_means(F, V.codes, None, V.weights)

    def frequency_width(self, F: Floats | OneHot) -> int | None:
        """Return the length of the blocks of q that are frequencies, or None."""
        return self.representation_.frequency_width(F)

    def response_matrix(self) -> Floats | None:
        """Return M, None if it contains distances."""
        return None if self.representation_.gives_distances else self.M_

    def adopt(self, fitted: Quantifier) -> bool:
        """Copy representation and class means of an equal fitted quantifier."""
        # The correction of widths belongs to the parameters that it was learned with.
        if not isinstance(fitted, MatrixQuantifier) or fitted.held_out_.width_correction is not None:
            return False
        self.check_parameters(len(fitted.classes_))
        self._set_parts()
        # A strength that is chosen in `fit` needs the training items, not only M.
        if self.smoother_.is_auto or not same_parameters(self.representation_, fitted.representation_):
            return False
        for name in ("classes_", "p_train_", "held_out_", "representation_", "M_"):
            setattr(self, name, getattr(fitted, name))
        self._set_strength()
        return True


class LinearQuantifier(MatrixQuantifier):
    """Method that minimizes a loss between q and M p plus a regularizer.

    Subclasses name the parts. They may have a parameter `solver`. Without it, the solver that suits the loss is used.
    """

    loss_: Loss
    solver: Any = None

    @abstractmethod
    def parts(self) -> Parts:
        """Return representation, loss and regularizer, by the parameters."""

    @property
    def traits(self) -> Traits:
        """Traits by the parts."""
        representation, loss, _ = self.parts()
        return Traits(
            input_kind=representation.on,
            needs_posteriors=representation.needs_posteriors,
            shares_representation=True,
            accepts_weights=True,
            counts_items=loss.needs_sizes,
        )

    def check_parameters(self, n_classes: int) -> None:
        """Raise ValueError if a parameter is out of range."""
        representation, loss, regularizer = self.parts()
        check_solver(self.solver)
        representation.check()
        loss.check()
        regularizer.check(n_classes)

    def _set_parts(self) -> None:
        self.representation_, self.loss_, self.smoother_ = self.parts()

    def _trial_unit(self, n_items: float) -> float:
        """Return N for a likelihood of counts, else one."""
        return float(self.loss_.scale(np.array([n_items], dtype=np.float64))[0])

    @property
    def _solves_slowly(self) -> bool:
        """Whether the loss is not convex."""
        return not self.loss_.convex

    def frequency_width(self, F: Floats | OneHot) -> int | None:
        """Return the length of blocks of q that must be frequencies, or None."""
        return None if self.loss_.takes_any_q else super().frequency_width(F)

    def _solve_data(self, data: Data) -> Solution:
        return self.minimize(data, self.loss_, self.smoother_)

    def minimize(self, data: Data, loss: Loss, regularizer: Regularizer, strengths: Floats | None = None) -> Solution:
        """Return the minimum of a loss plus a regularizer times `strengths` (B,).

        Parameters
        ----------
        data : Data
            Problems of B samples: q (B, d), M (d, n), background and sizes.
        loss : Loss
            Loss between q and M p.
        regularizer : Regularizer
            Penalty on p.
        strengths : ndarray (B,), default=None
            Factors of the regularizer for each sample.

        Returns
        -------
        Solution
            Minimum of each sample.
        """
        objective = LinearObjective(loss, regularizer, data, strengths)
        solution: Solution = choose(objective, self.solver).minimize(objective)
        return solution


class ComposedQuantifier(LinearQuantifier):
    """Any representation, loss and regularizer: min_p loss(q, M p) + regularizer(p).

    Parameters
    ----------
    representation : Representation
        f(x), which is averaged over samples and classes.
    loss : Loss
        Distance between q and M p.
    regularizer : Regularizer, default=None
        None stands for no regularization.
    solver : solver or name, default=None
        None stands for the one that suits the loss.
    classifier : classifier, default=None
        Provides the scores, see :class:`CC`; not used by representations of features.

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
    def traits(self) -> Traits:
        """Traits by the parts; parts of a wrong type have default traits."""
        return Traits(
            input_kind=getattr(self.representation, "on", "scores"),
            needs_posteriors=getattr(self.representation, "needs_posteriors", True),
            shares_representation=True,
            accepts_weights=True,
            counts_items=getattr(self.loss, "needs_sizes", False),
        )

    def check_parameters(self, n_classes: int) -> None:
        """Raise TypeError or ValueError if parts are wrong or incompatible."""
        for name, kind in (("representation", Representation), ("loss", Loss), ("regularizer", Regularizer)):
            part = getattr(self, name)
            if not (isinstance(part, kind) or (name == "regularizer" and part is None)):
                raise TypeError(f"{name} must be a {kind.__name__}, for example {EXAMPLES[name]}, got {part!r}.")
        if self.representation.gives_distances != self.loss.needs_distances:
            raise ValueError(f"Energy works only with MeanDistances, got {self.representation} and {self.loss}.")
        if self.loss.has_kinks and self.regularizer is not None and not self.regularizer.has_form:
            raise ValueError(f"{self.loss} has kinks and needs Tikhonov or no regularizer, got {self.regularizer}.")
        super().check_parameters(n_classes)

    def parts(self) -> Parts:
        """Return copies of the parts."""
        regularizer = NoPenalty() if self.regularizer is None else clone(self.regularizer)
        return Parts(clone(self.representation), clone(self.loss), regularizer)
