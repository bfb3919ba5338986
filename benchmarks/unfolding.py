"""Bias, coverage, error and speed of unfolded spectra, on toys.

``python benchmarks/unfolding.py`` measures everything and prints tables in Markdown. Every row is written to a file of
the folder `--folder` as soon as it is known; a second call goes on where the first one ended. ``--development``
measures the other spectra, detectors and seeds on which the default was chosen. ``--part`` takes one part.
"""

import argparse
import json
import time
from pathlib import Path

import numpy as np
from scipy.special import ndtri
from scipy.stats import chi2, norm

import ordinalq as oq
from ordinalq.unfolding import Luminosity, ShiftedModel, SimulatedEvents, Uncertainty
from ordinalq.unfolding.result import chi_square
from ordinalq.unfolding.spectrum import bias_covariance

FINE = 60  # points of the integration within a true bin
LEVELS = (0.95, 0.68)


def integrate(true_edges, observed_edges, density, efficiency, resolution):
    """Return the response with losses (d, n) and the contents (n,) of a density integrated over its bins."""
    n, d = len(true_edges) - 1, len(observed_edges) - 1
    truth, seen = np.zeros(n), np.zeros((d, n))
    for i in range(n):
        edges = np.geomspace(true_edges[i], true_edges[i + 1], FINE + 1)
        centres = np.sqrt(edges[1:] * edges[:-1])
        weight = density(centres) * np.diff(edges)
        truth[i] = weight.sum()
        below = norm.cdf((observed_edges / centres[:, None] - 1) / resolution)
        seen[:, i] = (np.diff(below, axis=1) * (weight * efficiency(centres))[:, None]).sum(axis=0)
    return seen / truth, truth


# Spectra, and the detector: lowest energy, decades, resolution, background.
REPORT = {"low": 50.0, "decades": 2.0, "resolution": 0.13, "background": 0.08, "seed": 2027}
DEVELOPMENT = {"low": 20.0, "decades": 2.0, "resolution": 0.15, "background": 0.05, "seed": 1}


def densities(low, high, *, development):
    """Return the five spectra by name, as functions of the energy."""
    middle = np.sqrt(low * high)
    if development:
        return {
            "power law": lambda E: E**-2.5,
            "broken power law": lambda E: np.where(middle > E, (E / middle) ** -2.0, (E / middle) ** -3.2),
            "cut-off": lambda E: E**-2.5 * np.exp(-E / (high / 8)),
            "bump": lambda E: E**-2.5 * (1 + 1.5 * np.exp(-0.5 * (np.log(E / middle) / 0.2) ** 2)),
            "flat": lambda E: E**-1.0,
        }
    knee, line = 0.6 * middle, 1.4 * middle
    return {
        "power law": lambda E: E**-2.2,
        "broken power law": lambda E: np.where(knee > E, (E / knee) ** -1.8, (E / knee) ** -2.9),
        "cut-off": lambda E: E**-2.1 * np.exp(-E / (high / 6)),
        "bump": lambda E: E**-2.3 * (1 + 1.2 * np.exp(-0.5 * (np.log(E / line) / 0.22) ** 2)),
        "flat": lambda E: np.ones_like(E),
    }


def bins(n, ratio, low, high, *, unequal):
    """Return true and observed edges; unequal true bins differ by up to a factor of three on the logarithmic scale."""
    widths = np.resize([1.0, 1, 1, 2, 1, 1, 3, 1], n) if unequal else np.ones(n)
    widths[-1] = 3 if unequal else 1
    x = np.log(low) + np.log(high / low) * np.append(0, np.cumsum(widths)) / widths.sum()
    return np.exp(x), np.exp(np.interp(np.linspace(0, n, round(n * ratio) + 1), np.arange(n + 1), x))


def problem(spectrum, n, ratio, N, unequal, *, development):
    """Return edges, response with losses, truth and background of N observed signal events."""
    of = DEVELOPMENT if development else REPORT
    low, high = of["low"], of["low"] * 10 ** of["decades"]
    true, seen = bins(n, ratio, low, high, unequal=unequal)
    density = densities(low, high, development=development)[spectrum]
    A, truth = integrate(true, seen, density, lambda E: 0.85 / (1 + (1.5 * low / E) ** 2), of["resolution"])
    truth = truth * N / (A @ truth).sum()
    return true, A, truth, of["background"] * N * np.linspace(2, 0, len(A)) / len(A)


# Noise-free power laws


def bias_rows():
    """Yield the largest relative bias of noise-free power laws, by index, acceptance, bins and events."""
    acceptances = {
        "constant": lambda E: 0.5 * np.ones_like(E),
        "rising": lambda E: 0.85 / (1 + (120 / E) ** 2),
        "steep": lambda E: 0.3 / (1 + (800 / E) ** 2),
    }
    for index in (1.5, 2.0, 2.5, 3.0, 4.0):
        for name, efficiency in acceptances.items():
            for unequal in (False, True):
                true, seen = bins(12, 1, 50.0, 15_000.0, unequal=unequal)
                A, shape = integrate(true, seen, lambda E, k=index: E**-k, efficiency, 0.15)
                for N in (2_000, 20_000, 200_000):
                    truth = shape * N / (A @ shape).sum()
                    expected = A @ truth
                    known = {"acceptance": "columns", "variances": expected, "edges": true}
                    off = np.abs(oq.unfold(expected, A, **known).counts / truth - 1).max()
                    key = f"index {index}, {name} acceptance, {'unequal' if unequal else 'equal'} bins, N = {N}"
                    yield key, lambda off=off: {"bias": float(off)}


# Coverage

CASES = (
    (12, 1, 5_000, False),
    (12, 2, 50_000, True),
    (20, 2, 50_000, False),
    (20, 1.5, 5_000, True),
    (30, 1.5, 20_000, True),
    (30, 1, 200_000, False),
    (50, 1, 200_000, True),
    (50, 2, 200_000, False),
)


def toy_rows(n_toys, *, development):
    """Yield coverage, lengths, errors and chi-squares of five spectra with eight binnings each."""
    seed = (DEVELOPMENT if development else REPORT)["seed"]
    for number, spectrum in enumerate(densities(1.0, 100.0, development=development)):
        for case, (n, ratio, N, unequal) in enumerate(CASES):
            key = f"{spectrum}, {n} x {round(n * ratio)} {'unequal' if unequal else 'equal'} bins, N = {N}"
            rng = np.random.default_rng([seed, number, case])
            known = problem(spectrum, n, ratio, N, unequal, development=development)
            yield key, lambda known=known, rng=rng: coverage(*known, n_toys, rng)


def coverage(edges, A, truth, background, n_toys, rng):
    """Return the row of one spectrum: the default on Poisson toys."""
    G = rng.poisson(A @ truth + background, (n_toys, len(A))).astype(float)
    one = oq.unfold(G[0], A, acceptance="columns", background=background, edges=edges)
    unfolder = one.unfolder
    _, strengths = unfolder.choose(G)
    fit = unfolder.solve(G, strengths)
    J = unfolder.jacobian(fit)
    C = unfolder.statistical(fit, J) + bias_covariance(unfolder, fit, J)
    error = np.sqrt(np.einsum("bii->bi", C))
    rmse = np.sqrt(((fit.T - truth) ** 2).mean(axis=0))
    row = {}
    for level in LEVELS:
        half = ndtri((1 + level) / 2) * error
        lower, upper = np.maximum(fit.T - half, 0), fit.T + half
        inside = ((lower <= truth) & (truth <= upper)).mean(axis=0)
        length = (upper - lower).mean(axis=0) / 2 / ndtri((1 + level) / 2) / rmse
        row |= {f"mean {level}": inside.mean(), f"worst {level}": inside.min(), f"length {level}": np.median(length)}
    squared = ((fit.T - truth) ** 2 / truth).sum(axis=1).mean()
    grid = unfolder.grid(G)
    best = min(((unfolder.solve(G, tau).T - truth) ** 2 / truth).sum(axis=1).mean() for tau in grid)
    below = [chi_square(t - truth, c)[0] < chi2.ppf(0.95, len(truth)) for t, c in zip(fit.T, C, strict=True)]
    row |= {"squared error": squared, "ratio to best": squared / best, "chi-square": np.mean(below)}
    row |= {"n_df": unfolder.freedom(J).mean(), "smallest truth": truth.min()}
    return {name: float(value) for name, value in row.items()}


# Systematics


def systematic_rows():
    """Yield the moves of the estimate by each source: to first order, and by unfolding again with the same strength."""
    edges, A, truth, b = problem("cut-off", 12, 1.5, 50_000, False, development=False)
    g = np.random.default_rng([REPORT["seed"], 99]).poisson(A @ truth + b)
    a = A.sum(axis=0)
    energy = np.sqrt(edges[1:] * edges[:-1])
    low, high = REPORT["low"], REPORT["low"] * 100
    true, seen = bins(12, 1.5, low, high, unequal=False)
    density = densities(low, high, development=False)["cut-off"]

    def detector(scale=1.0, resolution=REPORT["resolution"]):
        # True bins and spectrum stay, observed energies are scaled.
        return integrate(true, seen / scale, density, lambda E: 0.85 / (1 + (1.5 * low / E) ** 2), resolution)[0]

    tilt = 0.02 * np.log(energy / energy[0])
    one_entry = np.zeros_like(A)
    one_entry[5, 4] = 0.02 * A[5, 4] / a[4]
    sources = {
        "energy scale 1%": (ShiftedModel(detector(1.01)), {"response": detector(1.01)}),
        "energy scale, pair": (
            ShiftedModel(detector(1.01), down=ShiftedModel(detector(0.99))),
            {"response": (detector(1.01) - detector(0.99)) / 2 + A},
        ),
        "resolution 5%": (ShiftedModel(detector(resolution=0.1365)), {"response": detector(resolution=0.1365)}),
        "efficiency, all columns 2%": (ShiftedModel(A * 0.98), {"response": A * 0.98}),
        "acceptance, tilted": (
            Uncertainty("acceptance", tilt * a, correlated=True),
            {"response": A * (1 + tilt)},
        ),
        "background 5%": (Uncertainty("background", 0.05, relative=True, correlated=True), {"background": 1.05 * b}),
        "luminosity 2%": (Luminosity(0.02, scales_background=True), {"response": 1.02 * A, "background": 1.02 * b}),
        "one entry of the response": (
            Uncertainty("response", one_entry, correlated=True),
            {"response": A + (one_entry - A / a * one_entry.sum(axis=0)) * a},
        ),
    }
    for name, (source, moved) in sources.items():
        yield name, lambda source=source, moved=moved: _compare(g, A, b, edges, source, moved)


def _compare(g, A, b, edges, source, moved):
    known = {"acceptance": "columns", "edges": edges}
    nominal = oq.unfold(g, A, background=b, systematics={"source": source}, **known)
    again = oq.unfold(g, **{"response": A, "background": b, **moved}, tau=nominal.strength, **known)
    linear, exact = nominal.moves["source"][0], again.counts - nominal.counts
    scale = np.abs(exact).max()
    where = np.abs(exact) > 0.05 * scale
    return {
        "largest move / error": float((np.abs(exact) / nominal.statistical_error).max()),
        "linear / unfolded again, worst bin": float(np.abs(linear[where] / exact[where] - 1).max()),
        "norm of the difference": float(np.linalg.norm(linear - exact) / np.linalg.norm(exact)),
    }


def simulation_row(n_sets=200):
    """Return the error by simulated statistics: to first order, and as the spread over other simulations."""
    edges, A, truth, b = problem("cut-off", 12, 1.5, 50_000, False, development=False)
    a, rng = A.sum(axis=0), np.random.default_rng([REPORT["seed"], 98])
    g, M = rng.poisson(A @ truth + b), A / a
    source = {"source": SimulatedEvents(20_000 * M)}
    nominal = oq.unfold(g, M, acceptance=a, background=b, edges=edges, systematics=source)
    found = []
    for _ in range(n_sets):
        N = rng.poisson(20_000 * M)
        again = oq.unfold(g, N / N.sum(axis=0), acceptance=a, background=b, edges=edges, tau=nominal.strength)
        found.append(again.counts)
    return {"worst bin, ratio to the spread": float(np.abs(nominal.systematic_error / np.std(found, axis=0) - 1).max())}


# Closure


def closure_rows(n_sets=200):
    """Yield pulls and chi-squares with independent simulated data and with reweighted truth."""
    for spectrum in densities(1.0, 100.0, development=False):
        for kind in ("independent", "reweighted"):
            yield f"{spectrum}, {kind}", lambda s=spectrum, k=kind: _closure(s, k, n_sets)


def _closure(spectrum, kind, n_sets):
    """Unfold pseudo-data with a response of 200,000 simulated events that was filled with another sample.

    Reweighted: the response within wide bins is that of the simulation, but the truth is tilted by E^0.3.
    """
    edges, A, truth, _ = problem(spectrum, 12, 1.5, 20_000, False, development=False)
    rng = np.random.default_rng([REPORT["seed"], 97, len(spectrum)])
    centres = np.sqrt(edges[1:] * edges[:-1])
    t = truth * (centres / centres[4]) ** 0.3 if kind == "reweighted" else truth
    pulls, chi = [], []
    for _ in range(n_sets):
        simulated = rng.poisson(A * truth * 200_000 / (A @ truth).sum() + 1e-3)
        generated = truth * 200_000 / (A @ truth).sum()
        response = simulated / generated
        g = rng.poisson(A @ t)
        sums = response.sum(axis=0)
        source = {"simulation": SimulatedEvents(simulated + 1e-9, generated=generated)}
        known = {"acceptance": np.minimum(sums, 1), "edges": edges, "systematics": source}
        one = oq.unfold(g, response / sums, **known)
        pulls.append((one.counts - t) / one.total_error)
        chi.append(one.compare({"truth": t})["p_value"][0] > 0.05)
    pulls = np.array(pulls)
    return {
        "mean pull, worst bin": float(np.abs(pulls.mean(axis=0)).max()),
        "width of pulls": float(pulls.std(axis=0).mean()),
        "|pull| < 1.96": float((np.abs(pulls) < 1.96).mean()),
        "p-value > 0.05": float(np.mean(chi)),
    }


# Speed


def speed_rows():
    """Yield seconds of processor time of one call with statistical errors, the best of five."""
    for n in (10, 20, 50, 100, 200):
        for name, method in (("default", None), ("IBU, ks < 0.01", oq.IBU(interpolation=0.0, stop="ks", tol=0.01))):
            yield f"{name}, {n} bins", lambda n=n, method=method: {"seconds": _seconds(n, method)}


def _seconds(n, method):
    M = np.exp(-0.5 * ((np.arange(n)[:, None] - np.arange(n)) / 1.2) ** 2)
    M[M < 1e-12] = 0
    M /= M.sum(axis=0)
    edges = np.geomspace(50, 15_000, n + 1)
    t = (edges[1:] * edges[:-1]) ** -0.85
    g = np.random.default_rng(0).poisson(M @ (t * 200_000 / t.sum()))
    times = []
    for _ in range(5):
        start = time.process_time()
        result = oq.unfold(g, M, edges=edges, method=method)
        _ = result.total_error if method is None else result.error
        times.append(time.process_time() - start)
    return min(times)


# Rows and tables


def measure(part, rows, folder, limit=None):
    """Return the rows of a part by name, those of earlier calls from the folder."""
    file = folder / f"{part}.json"
    known = json.loads(file.read_text()) if file.exists() else {}
    for k, (key, row) in enumerate(rows):
        if limit is not None and k >= limit:
            break
        if key not in known:
            known[key] = row()
            file.write_text(json.dumps(known, indent=1))
    return known


def table(rows):
    """Print a table in Markdown."""
    columns = list(next(iter(rows.values())))
    print("| | " + " | ".join(columns) + " |\n|---|" + "--:|" * len(columns))
    for key, row in rows.items():
        print(f"| {key} | " + " | ".join(f"{row[name]:.3g}" for name in columns) + " |")
    print()


def main():
    """Measure and print all parts."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tiny", action="store_true", help="a few rows with a few toys, to see that it runs")
    parser.add_argument("--toys", type=int, default=200)
    parser.add_argument("--folder", type=Path, default=Path("unfolding_results"))
    parser.add_argument("--part", choices=("bias", "toys", "systematics", "simulation", "closure", "speed"))
    parser.add_argument("--development", action="store_true")
    options = parser.parse_args()
    options.folder.mkdir(parents=True, exist_ok=True)
    n_toys, limit = (6, 1) if options.tiny else (options.toys, None)
    suffix = "_development" if options.development else ""
    parts = {
        "bias": bias_rows,
        "toys": lambda: toy_rows(n_toys, development=options.development),
        "systematics": systematic_rows,
        "simulation": lambda: [("simulated statistics", lambda: simulation_row(n_toys))],
        "closure": lambda: closure_rows(n_toys),
        "speed": speed_rows,
    }
    for part, rows in parts.items():
        if options.part in (None, part):
            print(f"## {part}\n")
            table(measure(part + suffix, rows(), options.folder, limit))


if __name__ == "__main__":
    main()
