"""From events to a spectrum: gamma rays of the FACT telescope, with statistical and systematic errors.

Run it as ``ORDINALQ_DATA=folder python examples/unfold_fact.py [figures]``, where the folder holds FACT events (see
``ordinalq datasets``). Without that variable a small simulated stand-in takes their place, and the first line of the
output states it. The steps are those of a real analysis: learn energies and response from simulated events, unfold what
was measured, check the result.
"""

import os
import sys
from pathlib import Path

import numpy as np
from sklearn.ensemble import RandomForestClassifier

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

# 2. One half of the events is the simulation, on which a quantifier is fitted. Its forest is cross-fitted, so that
# every simulated event has scores from trees that have not seen it.
half = rng.random(len(true)) < 0.5
forest = RandomForestClassifier(200, min_samples_leaf=3, random_state=0)
quantifier = oq.PACC(forest).fit(X[half], true[half])

# 3. The measurement: events of the Crab nebula, drawn from the other half by its spectrum, and 40 of background, whose
# features have the same distributions but no correlations.
weight = share[fine[~half]] / np.bincount(fine[~half], minlength=8)[fine[~half]]
signal = rng.choice(np.flatnonzero(~half), size=rng.poisson(400), p=weight / weight.sum())
hadrons = rng.permuted(X, axis=0)
measured = np.vstack([X[signal], hadrons[rng.choice(len(hadrons), rng.poisson(40))]])
truth = 400 * observed / observed.sum() / a

# 4. From events to a spectrum. The statistics of the simulation are a source of systematic errors by default.
unknown = {
    "acceptance": oq.unfolding.Uncertainty("acceptance", 0.05, relative=True, correlated=True),
    "background": oq.unfolding.Uncertainty("background", 0.1, relative=True, correlated=True),
}
known = {"acceptance": a, "background_events": (hadrons, 40), "edges": edges, "systematics": unknown}
result = oq.unfolding.unfold_events(quantifier, measured, **known)
print(result)
print("truth ", truth.round(0))

# 5. Checks, and models: with the total covariance, or smeared as the estimate is.
print(oq.unfolding.closure_test(result, truth).sentence)
print(oq.unfolding.bottom_line_test(result, {"truth": truth, "flat": np.full(3, truth.mean())}).sentence)
coverage = oq.unfolding.coverage_test(result, truth, n_toys=60)
print(coverage.sentence)
print(result.compare({"truth": truth, "flat": np.full(3, truth.mean())}).to_string(index=False))

# 6. Other methods and strengths.
for name, asked in {
    "no regularization": {"tau": 0.0},
    "n_df = 2.5": {"n_df": 2.5},
    "IBU, 4 iterations": {"method": oq.IBU(interpolation=0.0, max_iter=4)},
}.items():
    other = oq.unfolding.unfold_events(quantifier, measured, **known, **asked)
    pairs = zip(other.counts, other.total_error, strict=True)
    print(f"{name:18}", "  ".join(f"{t:6.0f} +- {e:.0f}" for t, e in pairs))

if len(sys.argv) > 1:
    folder = Path(sys.argv[1])
    folder.mkdir(exist_ok=True)
    panels = result.plot(truth=truth, ratio=True, density=True, xlabel="energy / GeV", ylabel="events / GeV")
    panels[0].figure.savefig(folder / "spectrum.png", dpi=120)
    result.plot_fit()[0].figure.savefig(folder / "fit.png", dpi=120)
    result.plot_scan().figure.savefig(folder / "scan.png", dpi=120)
    coverage.plot().figure.savefig(folder / "coverage.png", dpi=120)
    result.to_json(folder / "spectrum.json")
    result.to_hepdata(folder / "hepdata", variable="energy", units="GeV")
