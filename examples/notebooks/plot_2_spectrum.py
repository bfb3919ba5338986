"""
Is this spectrum a power law?
=============================

A telescope has counted events in 14 bins of estimated energy. The response is known from a simulation with a limited
number of events, and the energy scale has an uncertainty. Does the true spectrum follow a power law, or does it bend?
"""

import matplotlib.pyplot as plt
import numpy as np

import ordinalq as oq

# %%
# The measurement
# ---------------
# The true spectrum of this example bends at 3 TeV. The detector smears energies by about one bin, and detects few
# events of low energy.

rng = np.random.default_rng(5)
n = 14
edges = np.geomspace(0.1, 20, n + 1)  # TeV
energy = np.sqrt(edges[:-1] * edges[1:])
truth = 3e5 * energy**-1.6 * np.exp(-energy / 3) * np.diff(edges)
acceptance = 0.5 / (1 + (0.4 / energy) ** 2)


def smear(scale=1.0):
    """Return a response whose energies are multiplied by a scale, (observed bins, true bins)."""
    place = np.log(energy * scale / energy[0]) / np.log(energy[1] / energy[0])
    response = np.exp(-0.5 * ((np.arange(n)[:, None] - place) / 0.9) ** 2)
    return response / response.sum(axis=0)


background = np.linspace(40, 5, n)
observed = rng.poisson(smear() @ (acceptance * truth) + background)
simulated = np.column_stack([rng.multinomial(4000, column) for column in smear().T])

# %%
# Unfold with systematic errors
# -----------------------------
# The default method is smooth in the logarithm of the density. It leaves power laws unchanged, so the regularization
# does not decide the question. There are three sources of systematic errors.

sources = {
    "simulation": oq.unfolding.SimulatedEvents(simulated),
    "energy scale": oq.unfolding.ShiftedModel(smear(1.05)),
    "acceptance": oq.unfolding.Uncertainty("acceptance", 0.04, relative=True, correlated=True),
}
response = simulated / simulated.sum(axis=0)
spectrum = oq.unfold(observed, response, acceptance=acceptance, background=background, edges=edges, systematics=sources)
print(spectrum)

# %%
# The spectrum with its total errors, and the true one.

panels = spectrum.plot(truth=truth, ratio=True, density=True, xlabel="energy / TeV")

# %%
# Compare with models
# -------------------
# ``compare`` tests models with the total covariance, in which the systematic errors are correlated between bins.

power_law = 3e5 * energy**-1.6 * np.diff(edges)
lowest = energy < 1
power_law *= spectrum.counts[lowest].sum() / power_law[lowest].sum()
print(spectrum.compare({"power law": power_law, "with cutoff": truth}))

# %%
# The power law is excluded, and the spectrum with the cutoff is not. Which source limits the precision?

table = spectrum.frame()
figure, ax = plt.subplots(figsize=(8, 4), layout="constrained")
for name in ("statistical", *sources):
    ax.step(energy, 100 * table[name] / table["events"], where="mid", label=name)
ax.set(xscale="log", yscale="log", xlabel="energy / TeV", ylabel="error in % of the bin")
ax.legend()

# %%
# Can the errors be trusted?
# --------------------------
# A closure test unfolds the expected counts of a known spectrum, without fluctuations.

print(oq.unfolding.closure_test(spectrum, truth=truth))

# %%
# It fails in the last bins. They have few events, the cutoff is steep there, and the regularization moves events into
# them. The total error contains an estimate of this bias. A coverage test repeats the measurement on toys and counts
# how often the intervals contain the true value, with the bias and without it.

print(oq.unfolding.coverage_test(spectrum, truth=truth, n_toys=100, random_state=1))

# %%
# Without the bias, intervals of the last bin contain the true value far too rarely. With it, the intervals of all
# bins do. So publish the total error, or leave out the last bin.
