"""CC and PCC: counting predictions without any adjustment. Paper: sec:CCandfamily."""

import numpy as np

from ordinalq.methods._base import Quantifier
from ordinalq.representations import HardVotes, Posteriors
from ordinalq.solvers.solution import Solution


class _Counting(Quantifier):
    """The estimate is the mean representation of the sample itself."""

    def _fit_scores(self, S, codes):
        self.p_train_ = np.bincount(codes, minlength=len(self.classes_)) / len(codes)

    def _solve(self, S, samples):
        return self._solve_means(samples.average(self._embed(S)), samples.sizes)

    def _embed(self, S):
        return self._representation.transform(S)

    def _solve_means(self, Q, sizes):
        return Solution.closed_form(Q)


class CC(_Counting):
    """Classify and count: the fraction of items that the classifier puts into each class [eq:cc].

    Parameters
    ----------
    classifier : classifier, default=None
        None stands for ``CrossFitted(LogisticRegression())``; a forest with ``oob_score=True`` is used as it is, any
        other classifier as ``CrossFitted(classifier)``.
    """

    paper_name = "CC"
    _representation = HardVotes()
    _needs_posteriors = False

    def __init__(self, classifier=None):
        self.classifier = classifier


class PCC(_Counting):
    """Probabilistic classify and count: the mean of the posterior probabilities [eq:pcc].

    Parameters
    ----------
    classifier : classifier, default=None
        See :class:`CC`.
    """

    paper_name = "PCC"
    _representation = Posteriors()

    def __init__(self, classifier=None):
        self.classifier = classifier
