"""Interface of fitted quantifiers for inference, and the records exchanged."""
# ruff: noqa: D102 - `ordinalq.Quantifier` documents the members of the protocol.

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol, Self, TypeVar

import numpy as np
import numpy.typing as npt

from ordinalq._utils.validation import Array, Codes, Floats, Index, Mask
from ordinalq.inference.bounds import Bounds
from ordinalq.inference.options import Draws, IntervalOptions
from ordinalq.samples.labels import Scale, class_scale
from ordinalq.samples.samples import OneHot, Samples
from ordinalq.samples.summary import Summary
from ordinalq.samples.weights import Weights
from ordinalq.solvers.solution import Solution

T = TypeVar("T")


@dataclass(frozen=True)
class Traits:
    """Properties of a quantifier that inference, searches and tables depend on.

    Attributes
    ----------
    input_kind : {"scores", "features"}
        Whether the method takes the scores of a classifier or the features themselves.
    needs_posteriors : bool
        Whether the classifier must provide probabilities, not only predictions.
    uses_sample_means : bool
        Whether the estimate depends on a sample only through its size and the mean of `embed`. Otherwise it needs the
        scores of all items.
    accepts_scores : bool
        Whether the method can be fitted on given scores. Otherwise it fits its own classifiers.
    accepts_weights : bool
        Whether `learn` uses the weights of the held-out items. Otherwise `fit` raises TypeError if weights are given.
    adjusts : bool
        Whether the method corrects for the errors of the classifier.
    shares_representation : bool
        Whether quantifiers with other parameters can adopt its representation, see `adopt`.
    counts_items : bool
        Whether estimates from q and M depend on the number of items, as likelihoods of counts do.
    has_group_model : bool
        Whether the method has a model of groups, into which labels of some items of a sample enter.
    """

    input_kind: str = "scores"
    needs_posteriors: bool = True
    uses_sample_means: bool = True
    accepts_scores: bool = True
    accepts_weights: bool = False
    adjusts: bool = True
    shares_representation: bool = False
    counts_items: bool = False
    has_group_model: bool = False

    @property
    def learns_from(self) -> str:
        """Input of the method: "scores", "features", or "items" for own classifiers."""
        return self.input_kind if self.accepts_scores else "items"


@dataclass(frozen=True, eq=False)
class HeldOut:
    """State stored at fit time for intervals and fit tests.

    V: the training items with out-of-sample scores, and statistics of their groups.

    Attributes
    ----------
    S : ndarray (N, n) or (N, d)
        Out-of-sample scores, or features.
    codes : ndarray (N,)
        Classes as codes 0..n-1.
    weights : Weights or None
        Weights of the items.
    groups : ndarray (N,) or None
        Group numbers; given to `learn`, not stored in a fitted quantifier.
    parts : ndarray (N,) or None
        Numbers of the parts of groups, such as months, if the training groups have such parts; not stored either.
    n_training : float
        Number of all training items, those without a score included.
    learned_groups : bool
        Whether there were groups to learn from.
    group_covariance : ndarray (d, d) or None
        D: covariance between groups of the mean representation within a class.
    check_covariance : ndarray (g, g) or None
        The same for the functions of the fit test.
    width_correction : ndarray (s, 2, 2, 2n + 1) or None
        Correction of interval widths, see `ordinalq.inference.intervals.width_correction`.
    """

    S: Floats
    codes: Codes
    weights: Weights | None = None
    groups: Codes | None = None
    n_training: float = np.nan
    parts: Codes | None = None
    learned_groups: bool = False
    group_covariance: Floats | None = None
    check_covariance: Floats | None = None
    width_correction: Floats | None = None

    @property
    def size(self) -> float:
        """Effective number of items."""
        return float(len(self.codes)) if self.weights is None else self.weights.size

    def take(self, rows: Index | Mask) -> "HeldOut":
        """Return some of the items, without what was learned from groups."""
        weights = None if self.weights is None else self.weights.take(rows)
        groups, parts = (None if one is None else one[rows] for one in (self.groups, self.parts))
        return HeldOut(self.S[rows], self.codes[rows], weights, groups, self.n_training, parts)

    def once(self, derive: Callable[..., T], *arguments: Any, key: Any = None) -> T:
        """Return derive(*arguments), computed at the first call.

        The arguments must follow from these items and from the key, such as a quantifier.
        """
        found = self.__dict__.setdefault("_derived", {})
        if (derive, key) not in found:
            found[derive, key] = derive(*arguments)
        derived: T = found[derive, key]
        return derived

    def __getstate__(self) -> dict[str, Any]:
        """Leave derived values out of copies and files."""
        return {name: value for name, value in self.__dict__.items() if name != "_derived"}


class Smoothing(NamedTuple):
    """Strength of smoothing: parameter name and value, None if per sample."""

    parameter: str
    value: float | None


class Replicates(NamedTuple):
    """Replicated estimates P (r, b, n) of the samples `rows`.

    Runs of r / n_models successive replicates share a model.
    """

    rows: slice
    P: Floats
    n_models: int


class Ellipsoids(NamedTuple):
    """Centres (B, n) and covariances (B, n, n) of joint regions."""

    centre: Floats
    covariance: Floats


@dataclass(frozen=True)
class Inference:
    """Estimates of B samples, computed in one pass.

    Attributes
    ----------
    prevalences : ndarray (B, n)
        Estimated class prevalences.
    converged : ndarray (B,)
        Whether the solver reached its tolerance.
    verdict : ndarray (B,) of str or None
        Result of the fit test; None if it does not apply.
    bounds : Bounds or None
        Intervals; None if no level was given.
    covariance : ndarray (B, n, n) or None
        Error covariance of each sample.
    own : ndarray (B, n, n) or None
        Its part that is independent between samples.
    shared : ndarray (B, n, k) or None
        Factor L of the part that samples share: cov(i, j) = L_i L_j'.
    ellipsoids : Ellipsoids or None
        Joint regions, if they do not follow from covariance and bounds; see `ordinalq.inference.region`.
    linear, sampling, response : ndarray (B, n), (B, n, n), (B, n) or None
        Values by which parts of the same group are compared, see :class:`ordinalq.inference.nested.Parts`.
    moved : ndarray (B, n) or None
        Difference between each estimate and that without the common offset of all samples; None if there is none.
    """

    prevalences: Floats
    converged: Mask
    verdict: npt.NDArray[np.str_] | None = None
    bounds: Bounds | None = None
    covariance: Floats | None = None
    own: Floats | None = None
    shared: npt.NDArray[np.float32] | None = None
    ellipsoids: Ellipsoids | None = None
    linear: Floats | None = None
    sampling: Floats | None = None
    response: Floats | None = None
    moved: Floats | None = None


class RareClassWarning(UserWarning):
    """A class has so few training items that its prevalence is uncertain."""


class NoTrainingGroupsWarning(UserWarning):
    """A model that was fitted without groups estimates groups."""


class FittedQuantifier(Protocol):
    """Protocol of a fitted quantifier, as required by inference.

    `ordinalq.Quantifier` documents them. Inference never depends on the class of a quantifier.
    """

    @property
    def traits(self) -> Traits: ...
    @property
    def classes_(self) -> Array: ...
    @property
    def p_train_(self) -> Floats: ...
    @property
    def held_out_(self) -> HeldOut: ...

    def summarize(self, S: Any, samples: Any = None, *, checks: bool = True, labels: Any = None) -> Summary: ...
    def solve(self, summary: Summary) -> Solution: ...
    def solve_scores(self, S: Any, samples: Any) -> Solution: ...
    def collect(self, summary: Summary) -> Any: ...
    def find_drift(self, sums: Any, strength: float | None = None) -> Any: ...
    def infer(
        self,
        summary: Summary,
        options: IntervalOptions,
        level: float | None = None,
        block: int = 0,
        context: Any = None,
    ) -> Inference: ...
    def replicates(self, summary: Summary, P: Floats, draws: Draws) -> Iterator[Replicates]: ...
    def embed(self, S: Floats) -> Floats | OneHot: ...
    def resample(self, F: Floats | OneHot, drawn: Samples) -> tuple[Self, Floats | None]: ...
    def frequency_width(self, F: Floats | OneHot) -> int | None: ...
    def response_matrix(self) -> Floats | None: ...
    def group_features(self, S: Floats) -> Floats: ...
    def smoothing(self) -> Smoothing | None: ...
    def with_strength(self, value: float) -> Self: ...
    def freedom(self, summary: Summary) -> tuple[Floats, Floats] | None: ...
    def for_groups(self) -> Any: ...


def scale_of(quantifier: FittedQuantifier) -> Scale:
    """Return the class values over which means are taken, and the mean's name."""
    return class_scale(quantifier.classes_, getattr(quantifier, "class_values_", None))


def values_of(quantifier: FittedQuantifier) -> Floats:
    """Return the values of the classes over which means are taken, (n,)."""
    return scale_of(quantifier).numbers


def has_held_out(quantifier: FittedQuantifier) -> bool:
    """Return whether a quantifier stores its held-out items."""
    return getattr(quantifier, "held_out_", None) is not None


def learned_groups(quantifier: FittedQuantifier) -> bool:
    """Return whether a quantifier was fitted with groups."""
    return has_held_out(quantifier) and quantifier.held_out_.learned_groups
