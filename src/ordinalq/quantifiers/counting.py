"""CC and PCC: counting without adjustment. Paper: sec:CCandfamily."""

from typing import Any

from ordinalq._utils.validation import Floats
from ordinalq.inference.model import HeldOut, Traits
from ordinalq.quantifiers.base import Quantifier
from ordinalq.representations import HardVotes, Posteriors, Representation
from ordinalq.samples.samples import OneHot
from ordinalq.samples.summary import Summary
from ordinalq.solvers.solution import Solution


class _Counting(Quantifier):
    """The estimate is the mean representation of the sample itself."""

    _representation: Representation

    @property
    def traits(self) -> Traits:
        """Traits of a method that does not adjust."""
        return Traits(needs_posteriors=self._representation.needs_posteriors, adjusts=False, accepts_weights=True)

    def learn(self, held_out: HeldOut) -> None:
        """Learn nothing: the training distribution is not needed."""

    def embed(self, S: Floats) -> Floats | OneHot:
        """Return votes or posteriors, (N, n)."""
        return self._representation.transform(S)

    def frequency_width(self, F: Floats | OneHot) -> int | None:
        """Return n: q is the estimate, a distribution."""
        return len(self.classes_)

    def solve(self, summary: Summary) -> Solution:
        """Return the means themselves."""
        return Solution.closed_form(summary.means)


class CC(_Counting):
    """Classify and count: the proportion of items classified as each class [eq:cc].

    Parameters
    ----------
    classifier : classifier, default=None
        None stands for ``CrossFitted(LogisticRegression(max_iter=1000))``; a forest with ``oob_score=True`` and a
        ``FrozenEstimator`` are used as they are, any other classifier as ``CrossFitted(classifier)``.
    """

    paper_name = "CC"
    _representation = HardVotes()

    def __init__(self, classifier: Any = None) -> None:
        self.classifier = classifier


class PCC(_Counting):
    """Probabilistic classify and count: the mean of the posteriors [eq:pcc].

    Parameters
    ----------
    classifier : classifier, default=None
        See :class:`CC`.
    """

    paper_name = "PCC"
    _representation = Posteriors()

    def __init__(self, classifier: Any = None) -> None:
        self.classifier = classifier
