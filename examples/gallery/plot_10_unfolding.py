"""
Unfolding a spectrum
====================

A detector misses most events of low energy and smears the rest. Simulation tells us how; we want the true spectrum.
"""

import matplotlib.pyplot as plt
import numpy as np

import ordinalq as oq

rng = np.random.default_rng(11)
edges = np.logspace(2.5, 4.5, 13)
energy = np.sqrt(edges[:-1] * edges[1:])
truth = 20_000 * energy**-1.7 / (energy**-1.7).sum()

acceptance = 0.9 / (1 + (800 / energy) ** 2)
response = np.exp(-0.5 * ((np.arange(12)[:, None] - np.arange(12)) / 0.9) ** 2)
response /= response.sum(axis=0)
background = np.linspace(50, 0, 12)
observed = rng.poisson(response @ (acceptance * truth) + background)

# %%
# How strongly to regularize is chosen from the counts themselves.

spectrum = oq.unfold(observed, response, acceptance=acceptance, background=background, edges=edges)
print(spectrum)

# %%
# The steps are the estimate. Thick bars show the error due to the counts; thin ones are total errors, which include the
# bias of smoothing.

figure, ax = plt.subplots(figsize=(8, 5), layout="constrained")
spectrum.plot(ax=ax, truth=truth)
ax.set(xlabel="energy / GeV")
