"""The interface of fitted quantifiers that inference relies on."""

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple, Protocol, Self, TypeVar

import numpy as np
import numpy.typing as npt

from ordinalq._utils.validation import Array, Codes, Floats
from ordinalq.inference.bounds import Bounds
from ordinalq.inference.options import Draws
from ordinalq.representations import expected_rank
from ordinalq.samples.samples import OneHot, Samples
from ordinalq.samples.summary import Summary
from ordinalq.samples.weights import Weights, class_shares
from ordinalq.simplex import Data
from ordinalq.solvers.sensitivity import Move
from ordinalq.solvers.solution import Solution

# What services may ask a quantifier: facts that its class declares, and answers that depend on its fit.


class Smoothing(NamedTuple):
    """How much an estimate is smoothed: the name of the parameter, and its value (None: each sample has its own)."""

    parameter: str
    value: float | None


class Replicates(NamedTuple):
    """Replicated estimates P (r, b, n) of the samples `rows`; groups of r / n_models successive ones share a model."""

    rows: slice
    P: Floats
    n_models: int


class ClosedForm(NamedTuple):
    """Bounds and covariances (B, n, n) by a formula, and, if known, a factor (B, n, k) of the error that is shared.

    `shares` (B, n) are the estimates that these belong to, where they are not those of `solve`, but of the population.
    """

    bounds: Bounds
    covariance: Floats
    shared: npt.NDArray[np.float32] | None = None
    shares: Floats | None = None


class Facts:
    """Facts about a method, with the answers of most methods as defaults.

    Attributes
    ----------
    paper_name : str
        Name in the paper's tables; "" where it is not there.
    on : {"scores", "features"}
        Whether it takes scores of a classifier or the features themselves.
    needs_posteriors : bool
        Whether votes of a classifier would not do.
    on_means : bool
        Whether the estimate depends on a sample only through its size and the mean of `embed`; else it needs the
        scores of all items.
    fits_scores : bool
        Whether it can be fitted on given scores; else it fits classifiers of its own.
    adjusts : bool
        Whether it corrects for the errors of the classifier.
    shares_representation : bool
        Whether quantifiers with other parameters can adopt what it has learned of the items, see `adopt`.
    uses_labels : bool
        Whether `solve` and `closed_form` take labels of some items of a sample into account, where its summary has
        them.
    """

    paper_name: str = ""
    on: str = "scores"
    needs_posteriors: bool = True
    on_means: bool = True
    fits_scores: bool = True
    adjusts: bool = True
    shares_representation: bool = False
    uses_labels: bool = False

    @property
    def counts_items(self) -> bool:
        """Whether estimates from q and M depend on the number of items, as likelihoods of counts do."""
        return False

    def resample(self, F: Floats | OneHot, drawn: Samples) -> tuple[Self, Floats | None]:
        """Return the quantifier that other held-out items give, and how they move the class means.

        F (N_V, d) is `embed` of V; `drawn` are n samples of V, one per class. What moves is the expectation (d, n) of
        f, where f itself depends on V; else None.
        """
        return self, None

    def frequency_width(self, F: Floats | OneHot) -> int | None:
        """Return the length of the blocks of q that must be frequencies (sum one), None where any q will do."""
        return F.width if isinstance(F, OneHot) else None

    def response_matrix(self) -> Floats | None:
        """Return M (d, n) with q = M p, or None where the method has none."""
        return None

    def smoothing(self) -> Smoothing | None:
        """Return the strength of smoothing, None where the method does not smooth at all."""
        return None

    def tune(
        self,
        S: Floats,
        codes: Codes,
        groups: Codes | None = None,
        weights: Weights | None = None,
    ) -> None:
        """Choose what `fit` is to choose, on items with an out-of-sample score (N, ...).

        Groups and weights of the items are given where they are known. It comes after `learn`; most methods have
        nothing to choose.
        """

    def with_strength(self, value: float) -> Self:
        """Return the fitted quantifier with another strength of smoothing."""
        raise TypeError(f"{type(self).__name__} does not smooth.")

    def freedom(self, summary: Summary) -> tuple[Floats, Floats] | None:
        """Return the strength of smoothing of each sample and the degrees of freedom that it leaves, (B,) each."""
        return None

    def adopt(self, fitted: "Facts") -> bool:
        """Take over what a fitted quantifier has learned of the items, if that is the same; say whether it is."""
        return False

    def solve_response(self, data: Data, *, sizes_known: bool = True, strengths: Floats | None = None) -> Solution:
        """Return the Solution of q = M p + background, see `ordinalq.solve`; the sizes may be unknown, and ones.

        `strengths` (B,) replace the method's own strength of smoothing.
        """
        raise TypeError(
            f"method must be one that solves q = M p (ACC, PACC, HDx, HDy, PDF, RUN, IBU, their o-forms, or a "
            f"ComposedQuantifier), got {type(self).__name__}."
        )

    def response_strengths(self, data: Data, solution: Solution) -> Floats:
        """Return the strength of smoothing with which each sample of `solve_response` was solved, (B,)."""
        raise TypeError(f"{type(self).__name__} does not solve q = M p.")

    def response_grid(self, data: Data, size: int) -> Floats:
        """Return strengths of smoothing from weak to strong for each sample of `solve_response`, (size, B) or fewer."""
        raise TypeError(f"{type(self).__name__} has no strength to choose.")

    def roughness(self, P: Floats, sizes: Floats) -> Floats:
        """Return the penalty per unit of strength, (B,), of P (B, n); sizes (B,) are numbers of items."""
        raise TypeError(f"{type(self).__name__} has no penalty.")

    def linearize(self, data: Data, P: Floats, strengths: Floats) -> Move:
        """Return by how much the estimates P (B, n) of `solve_response` change between two data next to these."""
        raise TypeError(f"{type(self).__name__} does not solve q = M p.")

    def closed_form(self, summary: Summary, level: float, estimand: str) -> ClosedForm | None:
        """Return bounds and covariances where the method has a formula for them, else None."""
        return None

    def verdicts(self, summary: Summary) -> npt.NDArray[np.str_] | None:
        """Return what the method itself has to say of each sample, (B,), or None."""
        return None

    def check_parameters(self, n_classes: int) -> None:
        """Refuse parameters out of range, before anything expensive is done."""


# The functions of an item that the fit test looks at: more of them than there are classes.


class ScoreChecks:
    """g(x): histogram of the expected class index (2 n bins), that of the highest score (n bins), the scores (n).

    Under prior probability shift the mean of g over a sample is a mixture of its class means, as that of any function
    of the items is. Bins hold equal parts of the held-out items, where every class counts alike: a sample may hold many
    items of a class that is rare in training. The inner edges are `rank_edges` (at most 2 n - 1,) and `top_edges` (at
    most n - 1,).
    """

    def __init__(self, rank_edges: Floats, top_edges: Floats) -> None:
        self.rank_edges = rank_edges
        self.top_edges = top_edges

    @classmethod
    def of(cls, S: Floats, codes: Codes, weights: Weights | None = None) -> "ScoreChecks":
        """Return the functions for held-out scores S (N, n), codes (N,) and weights."""
        n = S.shape[1]
        w = class_shares(codes, n, weights)
        return cls(weighted_quantiles(expected_rank(S), w, 2 * n), weighted_quantiles(_highest(S), w, n))

    def total(self, S: Floats, samples: Samples) -> Floats:
        """Return the sums of g over samples of items with scores S (N, n), (B, 4 n)."""
        width = 2 * S.shape[1]
        bins = [self.rank_edges.searchsorted(expected_rank(S)), self.top_edges.searchsorted(_highest(S))]
        counts = samples.total(OneHot(np.column_stack(bins), width))
        # The second histogram has half as many bins.
        return np.hstack([counts[:, : width + width // 2], samples.total(S)])

    def values(self, S: Floats) -> Floats:
        """Return g of each item, (N, 4 n)."""
        return self.total(S, Samples(np.arange(len(S)), np.arange(len(S) + 1), len(S)))


def _highest(S: Floats) -> Floats:
    """Return the highest score of each item, (N,): few long rows are faster than many short ones."""
    return np.asarray(np.ascontiguousarray(S.T).max(axis=0))


def weighted_quantiles(x: Floats, weights: Floats, n_bins: int) -> Floats:
    """Return distinct edges that cut the weighted values x (N,) into at most n_bins parts of equal weight."""
    order = np.argsort(x, kind="stable")
    cumulated = np.cumsum(weights[order])
    at = np.searchsorted(cumulated, np.arange(1, n_bins) / n_bins * cumulated[-1])
    edges = np.unique(x[order][np.minimum(at, len(x) - 1)])
    return np.asarray(edges[edges < x.max()])


# ruff: noqa: D102 - `ordinalq.Quantifier` documents the members.


T = TypeVar("T")


class FittedQuantifier(Protocol):
    """A fitted quantifier: intervals, group estimates, fit tests and tuning take any object with these members.

    `ordinalq.Quantifier` documents them. Inference never depends on the class of a quantifier.
    """

    @property
    def on(self) -> str: ...
    @property
    def on_means(self) -> bool: ...
    @property
    def uses_labels(self) -> bool: ...
    @property
    def classes_(self) -> Array: ...
    @property
    def p_train_(self) -> Floats: ...
    @property
    def held_out_(self) -> tuple[Floats, Codes]: ...
    @property
    def held_out_weights_(self) -> Weights | None: ...
    @property
    def group_covariance_(self) -> Floats | None: ...
    @property
    def check_covariance_(self) -> Floats | None: ...
    @property
    def width_correction_(self) -> Floats | None: ...

    def summarize(self, S: Any, samples: Any = None, *, checks: bool = True, labels: Any = None) -> Summary: ...
    def solve(self, summary: Summary) -> Solution: ...
    def solve_scores(self, S: Any, samples: Any) -> Solution: ...
    def replicates(self, summary: Summary, P: Floats, draws: Draws) -> Iterator[Replicates]: ...
    def closed_form(self, summary: Summary, level: float, estimand: str) -> ClosedForm | None: ...
    def verdicts(self, summary: Summary) -> npt.NDArray[np.str_] | None: ...
    def embed(self, S: Floats) -> Floats | OneHot: ...
    def resample(self, F: Floats | OneHot, drawn: Samples) -> tuple[Self, Floats | None]: ...
    def frequency_width(self, F: Floats | OneHot) -> int | None: ...
    def response_matrix(self) -> Floats | None: ...
    def group_features(self, S: Floats) -> Floats: ...
    def class_predictions(self, S: Floats) -> Floats: ...
    def checks(self) -> ScoreChecks | None: ...
    def once(self, derive: Callable[[Self], T]) -> T: ...
    def smoothing(self) -> Smoothing | None: ...
    def with_strength(self, value: float) -> Self: ...
    def freedom(self, summary: Summary) -> tuple[Floats, Floats] | None: ...
