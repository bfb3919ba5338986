"""Quantifiers from parts of one's choice."""

from typing import Any

from sklearn.base import clone

from ordinalq.losses import Loss
from ordinalq.quantifiers.linear import LinearQuantifier, Parts
from ordinalq.regularizers import NoPenalty, Regularizer
from ordinalq.representations import Representation

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
