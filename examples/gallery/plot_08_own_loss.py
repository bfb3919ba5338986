"""
A loss of your own
==================

A method has three parts: a representation of the items, a loss that compares what was seen (q) with what a class
distribution p would lead to (M p), and a regularizer. You can write any of them yourself. This example compares
Pearson's chi-square with least squares and the Hellinger distance.
"""

import matplotlib.pyplot as plt
import numpy as np

import ordinalq as oq
from ordinalq.losses import Hellinger, LeastSquares, Loss, weighted_gram
from ordinalq.regularizers import Tikhonov
from ordinalq.representations import HardVotes
from ordinalq.simplex import Derivatives


class PearsonChiSquare(Loss):
    """The sum over bins of (q - v)^2 / v with v = M p."""

    def prepare(self, data):
        """Leave out bins without training items, which would divide by zero."""
        return data.without_empty_rows()

    def derivatives(self, P, data):
        """Return value, gradient and Hessian in p, for all samples at once."""
        V = np.maximum(data.expected(P), 1e-100)
        ratio = data.Q / V
        value = ((data.Q - V) ** 2 / V).sum(axis=1)
        return Derivatives(value, (1 - ratio**2) @ data.M, weighted_gram(2 * ratio**2 / V, data.M))


# %%
# The new loss works with everything else in the library: batches of samples, intervals, regularizers.

rng = np.random.default_rng(5)
y = rng.choice(5, size=4000, p=[0.4, 0.3, 0.15, 0.1, 0.05])
X = y[:, None] + rng.normal(scale=1.5, size=(4000, 3))
test = rng.choice(5, size=4000)
X_test = test[:, None] + rng.normal(scale=1.5, size=(4000, 3))
samples = oq.protocols.APP(200, 300, random_state=6).draw(test)

errors = {}
for loss in (PearsonChiSquare(), LeastSquares(), Hellinger()):
    q = oq.ComposedQuantifier(HardVotes(), loss, Tikhonov(1e-3)).fit(X, y)
    errors[type(loss).__name__] = oq.metrics.nmd(samples.prevalences, q.predict_samples(X_test, samples))

figure, ax = plt.subplots()
ax.boxplot(list(errors.values()), tick_labels=list(errors))
ax.set(ylabel="NMD of 200 samples")
print({name: round(float(error.mean()), 4) for name, error in errors.items()})
