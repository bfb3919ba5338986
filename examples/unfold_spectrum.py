"""Unfold a toy spectrum, from counts in a detector to the numbers of events of each energy, with a figure.

Run it as ``python examples/unfold_spectrum.py [spectrum.png]``. No classifier is needed: the response of the detector,
its acceptance and the background are known, as they are from a simulation.
"""

import sys

import numpy as np

import ordinalq as oq

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

# The default leaves power laws unchanged; the counts choose how strongly other shapes are smoothed.
known = {"acceptance": acceptance, "background": background}
spectrum = oq.unfold(observed, response, edges=edges, **known)
lower, upper = spectrum.interval(0.95)

# Many histograms at once, estimates alone: 200 repetitions of the measurement, four iterations of IBU each.
again = oq.solve(rng.poisson(observed, size=(200, 12)), response, oq.IBU(max_iter=4), counts=True, **known)
print("spread of 200 repetitions with IBU:", np.round(again.std(axis=0)[:4]), "...")

print(f"observed {observed.sum()} events, {background.sum():.0f} of them expected to be background")
print("energy [GeV]     true  estimate   95% interval")
for i in range(12):
    print(f"{energy[i]:12.0f} {truth[i]:8.0f} {spectrum.counts[i]:9.0f}  {lower[i]:6.0f}..{upper[i]:.0f}")
print(f"all          {truth.sum():8.0f} {spectrum.counts.sum():9.0f}")

if len(sys.argv) > 1:
    panels = spectrum.plot(truth=truth, ratio=True, xlabel="energy / GeV")
    panels[0].figure.savefig(sys.argv[1], dpi=150)
