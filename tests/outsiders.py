"""Two methods that nobody at home knows: one on means, one on the scores of all items."""

from copy import copy

import numpy as np

from ordinalq.quantifiers.linear import Method
from ordinalq.samples.samples import class_means
from ordinalq.simplex import clean
from ordinalq.solvers.solution import Solution


class Squares(Method):
    """min_p ||q - M p||^2 + ridge ||p||^2 without bounds, cut to the simplex; f holds scores and their squares."""

    def __init__(self, classifier=None, *, ridge=1e-3):
        self.classifier = classifier
        self.ridge = ridge

    def learn(self, S, codes):
        self.p_train_ = np.bincount(codes) / len(codes)
        self.M_ = class_means(self.embed(S), codes)

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


class Medians(Method):
    """p_i ~ the median of s_i over the items of the sample: no mean tells it."""

    on_means = False
    adjusts = False

    def __init__(self, classifier=None):
        self.classifier = classifier

    def learn(self, S, codes):
        self.p_train_ = np.bincount(codes) / len(codes)

    def solve(self, summary):
        S, samples = summary.scored()
        return Solution.closed_form(
            clean(np.array([np.median(S[samples.index(b)], axis=0) for b in range(len(samples))]))
        )
