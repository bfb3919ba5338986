"""Unfold a toy spectrum, from counts in a detector to the numbers of events of each energy, with a picture.

Run it as ``python examples/unfold_spectrum.py [spectrum.png]``. No classifier is needed: the response of the detector,
its acceptance and the background are known, as they are from a simulation.
"""

import sys

import numpy as np

import ordinalq as oq
from ordinalq import plot

rng = np.random.default_rng(876)
edges = np.logspace(2.5, 4.5, 13)  # energies in GeV, 12 classes

# What nature does: a steeply falling spectrum of 20,000 events.
energy = np.sqrt(edges[:-1] * edges[1:])
truth = energy**-1.7
truth *= 20_000 / truth.sum()

# What the detector does: it misses most events of low energy, smears the others, and sees 300 events of background.
acceptance = 0.9 / (1 + (800 / energy) ** 2)
distance = np.arange(12)[:, None] - np.arange(12)
response = np.exp(-0.5 * (distance / 0.9) ** 2)
response /= response.sum(axis=0)
background = np.linspace(50, 0, 12)

observed = rng.poisson(response @ (acceptance * truth) + background)

# RUN maximizes the Poisson likelihood of the counts. With the acceptance its regularizer asks for a smooth logarithm of
# the corrected spectrum.
method = oq.RUN(tau=3.0, acceptance=acceptance)
known = {"acceptance": acceptance, "background": background, "counts": True}
estimate = oq.solve(observed, response, method, **known)

# How far would it move if the experiment were done again? Two hundred repetitions are solved at once.
again = oq.solve(rng.poisson(observed, size=(200, 12)), response, method, **known)
lower, upper = np.quantile(again, [0.16, 0.84], axis=0)

print(f"observed {observed.sum()} events, {background.sum():.0f} of them expected to be background")
print("energy [GeV]     true  estimate       interval")
for i in range(12):
    print(f"{energy[i]:12.0f} {truth[i]:8.0f} {estimate[i]:9.0f}  {lower[i]:6.0f}..{upper[i]:.0f}")
print(f"all          {truth.sum():8.0f} {estimate.sum():9.0f}")

if len(sys.argv) > 1:
    ax = plot.distribution(estimate, [f"{e:,.0f}" for e in energy], lower, upper, truth)
    ax.set(yscale="log", ylim=(truth.min() / 3, 2 * truth.max()), xlabel="energy / GeV", ylabel="events")
    ax.figure.savefig(sys.argv[1], dpi=150)
