"""
A response matrix with systematics
==================================

A response matrix estimated from 20,000 simulated events is not exact, and neither is the acceptance. How much of a
spectrum's error comes from the counts, and how much from what we do not know about the detector?
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
# The simulation gives 2000 events in each true bin.

simulated = np.column_stack([rng.multinomial(2000, column) for column in exact.T])
response = simulated / simulated.sum(axis=0)
observed = rng.poisson(exact @ (acceptance * truth))

# %%
# There are three systematic sources: the limited number of simulated events, an acceptance that may be off by 5% in
# all bins together, and a resolution that may be 10% worse, as in an alternative simulation.

wider = np.exp(-0.5 * ((np.arange(n)[:, None] - np.arange(n)) / 0.88) ** 2)
wider /= wider.sum(axis=0)
sources = {
    "simulation": oq.unfolding.SimulatedEvents(simulated),
    "acceptance": oq.unfolding.Uncertainty("acceptance", 0.05, relative=True, correlated=True),
    "resolution": oq.unfolding.ShiftedModel(wider),
}
spectrum = oq.unfold(observed, response, acceptance=acceptance, systematics=sources)
table = spectrum.frame()
print(table[["bin", "events", "statistical", *sources]].round().to_string(index=False))

# %%
# The relative error of each bin, source by source.

figure, ax = plt.subplots(figsize=(8, 4), layout="constrained")
for name in ("statistical", *sources):
    ax.step(table["bin"], 100 * table[name] / table["events"], where="mid", label=name)
ax.set(xlabel="true bin", ylabel="error in % of the bin", ylim=(0, 6))
ax.legend(loc="upper center", ncols=4)
