"""
A response matrix with systematics
==================================

A response matrix from 20,000 simulated events is not exact, nor is the acceptance. How much of the error of a spectrum
is due to the counts, and how much to what is not known about the detector?
"""

import matplotlib.pyplot as plt
import numpy as np

import ordinalq as oq

rng = np.random.default_rng(12)
n = 10
truth = np.exp(-0.35 * np.arange(n))
truth *= 20_000 / truth.sum()
acceptance = np.linspace(0.3, 0.8, n)
exact = np.exp(-0.5 * ((np.arange(n)[:, None] - np.arange(n)) / 0.8) ** 2)
exact /= exact.sum(axis=0)

# %%
# What the simulation gives: 2000 events of each true bin.

simulated = np.column_stack([rng.multinomial(2000, column) for column in exact.T])
response = simulated / simulated.sum(axis=0)
observed = rng.poisson(exact @ (acceptance * truth))

# %%
# Three sources: the number of simulated events, 5 % of the acceptance in all bins alike, and a response that is 10 %
# wider, which another simulation would give.

wider = np.exp(-0.5 * ((np.arange(n)[:, None] - np.arange(n)) / 0.88) ** 2)
wider /= wider.sum(axis=0)
sources = {
    "simulation": oq.SimulatedEvents(simulated),
    "acceptance": oq.Uncertainty("acceptance", 0.05, relative=True, correlated=True),
    "resolution": oq.Alternative(wider),
}
spectrum = oq.unfold(observed, response, acceptance=acceptance, systematics=sources)
table = spectrum.frame()
print(table[["bin", "events", "statistical", *sources]].round().to_string(index=False))

# %%
# The relative error of each bin, by source.

figure, ax = plt.subplots(figsize=(8, 4), layout="constrained")
for name in ("statistical", *sources):
    ax.step(table["bin"], 100 * table[name] / table["events"], where="mid", label=name)
ax.set(xlabel="true bin", ylabel="error in % of the bin")
ax.legend()
