"""Two methods outside the catalog: one on means, one on scores of all items."""

from copy import copy

import numpy as np

from ordinalq import Quantifier
from ordinalq.inference.model import Traits
from ordinalq.samples.samples import class_means
from ordinalq.simplex import clean
from ordinalq.solvers.solution import Solution


class Squares(Quantifier):
    """min_p ||q - M p||^2 + ridge ||p||^2 without bounds, cut to the simplex; f holds scores and their squares."""

    def __init__(self, classifier=None, *, ridge=1e-3):
        self.classifier = classifier
        self.ridge = ridge

    def learn(self, held_out):
        self.M_ = class_means(self.embed(held_out.S), held_out.codes)

    def embed(self, S):
        return np.hstack([S, S**2])

    def solve(self, summary):
        A = self.M_.T @ self.M_ + self.ridge * np.eye(self.M_.shape[1])
        return Solution.closed_form(clean(np.linalg.solve(A, self.M_.T @ summary.means.T).T))

    def resample(self, F, drawn):
        twin = copy(self)
        twin.M_ = drawn.average(F).T
        return twin, None

    def response_matrix(self):
        return self.M_


class Medians(Quantifier):
    """p_i ~ the median of s_i over the items of the sample: no mean tells it."""

    @property
    def traits(self):
        return Traits(uses_sample_means=False, adjusts=False)

    def __init__(self, classifier=None):
        self.classifier = classifier

    def learn(self, held_out):
        pass

    def solve(self, summary):
        S, samples = summary.scored()
        return Solution.closed_form(
            clean(np.array([np.median(S[samples.index(b)], axis=0) for b in range(len(samples))]))
        )
