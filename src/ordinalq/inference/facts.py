"""What services may ask a quantifier: facts that its class declares, and answers that depend on its fit."""

from typing import NamedTuple, Self

import numpy as np
import numpy.typing as npt

from ordinalq._utils.validation import Codes, Floats
from ordinalq.inference.bounds import Bounds
from ordinalq.samples.samples import OneHot, Samples
from ordinalq.samples.summary import Summary
from ordinalq.samples.weights import Weights
from ordinalq.simplex import Data
from ordinalq.solvers.sensitivity import Move
from ordinalq.solvers.solution import Solution


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

    def closed_form(self, summary: Summary, level: float, of: str) -> ClosedForm | None:
        """Return bounds and covariances where the method has a formula for them, else None."""
        return None

    def verdicts(self, summary: Summary) -> npt.NDArray[np.str_] | None:
        """Return what the method itself has to say of each sample, (B,), or None."""
        return None

    def check_parameters(self, n_classes: int) -> None:
        """Refuse parameters out of range, before anything expensive is done."""
