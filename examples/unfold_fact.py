"""From events to a spectrum: gamma rays of the FACT telescope, with statistical and systematic errors.

Run it as ``ORDINALQ_DATA=folder python examples/unfold_fact.py [pictures]``, where the folder holds FACT events (see
``ordinalq datasets``). Without that variable a small simulated stand-in takes their place, and the first line says so.
The steps are those of a real analysis: estimate energies, learn the response from simulated events, unfold what was
measured, check the result.
"""

import os
import sys
from pathlib import Path

import numpy as np
from sklearn.ensemble import RandomForestRegressor
from sklearn.model_selection import cross_val_predict

import ordinalq as oq
from ordinalq.datasets import published

rng = np.random.default_rng(876)
spectrum = published.fact_spectrum()  # of the Crab nebula, over 12 bins of log10(energy / GeV)
acceptance = spectrum.effective_areas / spectrum.effective_areas.max()

# 1. Events: features and the true bin. Bins below the threshold, and with next to no events, are left out.
if "ORDINALQ_DATA" in os.environ:
    dataset = oq.datasets.load_dataset("fact-oq")
    parts = (dataset.train, dataset.validation, dataset.test)
    X, bins = np.vstack([part.X for part in parts]), np.concatenate([part.y for part in parts])
    print(f"{len(X)} simulated events of the FACT telescope")
else:
    bins = rng.choice(12, size=1500, p=acceptance / acceptance.sum())
    X = (bins + rng.normal(0, 1.2, len(bins)))[:, None] + rng.normal(0, 0.4, (len(bins), 3))
    print("a simulated stand-in for the FACT events: set ORDINALQ_DATA for the real ones")
# Three true bins from 0.5 to 8 TeV, the last wider than the others: few events have such energies.
inside = (bins >= 2) & (bins < 10)
group = np.array([0, 0, 1, 1, 2, 2, 2, 2])
X, fine = X[inside], bins[inside] - 2
true = group[fine]
edges = 10 ** spectrum.edges[[2, 4, 6, 10]]
share = spectrum.p[2:10]  # of the observed events
observed = np.bincount(group, share)
a = observed / np.bincount(group, share / acceptance[2:10])  # mean acceptance of all events of a bin

# 2. An estimate of the energy for every event, from a forest that has not seen it.
forest = RandomForestRegressor(100, min_samples_leaf=3, random_state=0)
energy = cross_val_predict(forest, X, fine // 2, cv=5)

# 3. One half of the events is the simulation, the other half what will be measured, in five observed bins.
half = rng.random(len(true)) < 0.5
seen = np.digitize(energy, np.quantile(energy[half], [0.2, 0.4, 0.6, 0.8]))
simulated = np.zeros((5, 3))
np.add.at(simulated, (seen[half], true[half]), 1)
response = simulated / simulated.sum(axis=0)

# 4. The measurement: events of the Crab nebula, drawn by its spectrum, and some background of hadrons.
weight = share[fine[~half]] / np.bincount(fine[~half], minlength=8)[fine[~half]]
drawn = rng.choice(seen[~half], size=rng.poisson(400), p=weight / weight.sum())
background = np.full(5, 8.0)
measured = np.bincount(drawn, minlength=5) + rng.poisson(background)
truth = 400 * observed / observed.sum() / a

# 5. Unfolding, with what is uncertain: statistics of the simulation, acceptance, background.
unknown = {
    "simulation": oq.unfolding.SimulatedEvents(simulated),
    "acceptance": oq.unfolding.Uncertainty("acceptance", 0.05, relative=True, correlated=True),
    "background": oq.unfolding.Uncertainty("background", 0.1, relative=True, correlated=True),
}
known = {"acceptance": a, "background": background, "edges": edges, "systematics": unknown}
result = oq.unfold(measured, response, **known)
print(result)
print("truth ", truth.round(0))

# 6. Checks.
print(oq.unfolding.closure_test(result, truth).sentence)
print(oq.unfolding.bottom_line_test(result, {"truth": truth, "flat": np.full(3, truth.mean())}).sentence)
coverage = oq.unfolding.coverage_test(result, truth, n_toys=60)
print(coverage.sentence)

# 7. Other methods and strengths, beside it.
for name, asked in {
    "no regularization": {"tau": 0.0},
    "n_df = 2.5": {"n_df": 2.5},
    "IBU": {"method": oq.IBU(interpolation=0.0, stop="ks", tol=0.001)},
}.items():
    other = oq.unfold(measured, response, **known, **asked)
    print(f"{name:18}", "  ".join(f"{t:6.0f} +- {e:.0f}" for t, e in zip(other.counts, other.error, strict=True)))

if len(sys.argv) > 1:
    folder = Path(sys.argv[1])
    folder.mkdir(exist_ok=True)
    result.plot(truth=truth, xlabel="energy / GeV").figure.savefig(folder / "spectrum.png", dpi=120)
    result.plot_scan().figure.savefig(folder / "scan.png", dpi=120)
    coverage.plot().figure.savefig(folder / "coverage.png", dpi=120)
