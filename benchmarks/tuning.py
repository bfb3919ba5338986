"""Quality of the automatic choice of tau: its error compared with no smoothing and with the best tau in hindsight.

    ORDINALQ_DATA=FOLDER python benchmarks/tuning.py [NAME ...] [--weights none balanced] [--methods OPACC ...]
    ORDINALQ_DATA=FOLDER python benchmarks/tuning.py [NAME ...] --defaults [--splits 876 1 2]

The folder holds metro_traffic.parquet, beijing_pm25.parquet and diamonds.parquet; fried needs no file. Every o-method
is fitted with tau="auto" on the out-of-bag scores of a forest and judged on samples of 1000 items of the test pool:
APP-OQ (20%), for which the choice is made, and APP. "best" is the smallest error of a grid, chosen with knowledge of
the test samples. With --defaults, fixed strengths and "auto" are compared with tau = 0, over several splits.
"""

import argparse
import os
import sys
import time
from pathlib import Path

import numpy as np
from sklearn.base import clone
from sklearn.ensemble import RandomForestClassifier

import ordinalq as oq
from ordinalq.samples.samples import smoothest_mask

TARGETS = {"fried": None, "metro_traffic": "traffic_volume", "beijing_pm25": "pm2.5", "diamonds": "price"}
METHODS = ("OACC", "OPACC", "OHDx", "OHDy", "OEDy", "OPDF", "RUN", "OSLD", "IBU")
SLOW = ("OHDx", "OHDy", "OSLD")
WEIGHTS = {"none": None, "balanced": "balanced_subsample"}
# APP samples, of which a fifth is APP-OQ; fewer for the slow methods.
N_SAMPLES = 1000
FEWER = 400
SAMPLE_SIZE = 1000


# Strengths that could be a default.
DEFAULTS = (1e-5, 3e-5, 1e-4, 3e-4, 1e-3, 3e-3, 1e-2, "auto")


def load(name, split=876):
    """Return the data set of that name, None if its file is missing."""
    if name == "fried":
        return oq.datasets.load_dataset("fried", random_state=split)
    path = Path(os.environ.get("ORDINALQ_DATA", "")) / f"{name}.parquet"
    if not path.is_file():
        print(f"{name} is left out: there is no {path.name} in the folder that ORDINALQ_DATA names", file=sys.stderr)
        return None
    return oq.datasets.make_dataset(path, target=TARGETS[name], n_bins=10, random_state=split)


def grid(name):
    """Return the strengths for the best in hindsight: four per decade, two for the slow methods."""
    if name in ("OSLD", "IBU"):
        return np.concatenate([[0], 10.0 ** np.arange(-4, 0.1, 0.5 if name in SLOW else 0.25)])
    step = 0.5 if name in SLOW else 0.25
    return np.concatenate([[0], (SAMPLE_SIZE if name == "RUN" else 1) * 10.0 ** np.arange(-6, 2.1, step)])


def measure(name, S, y, pool, samples):
    """Return the choice, the CPU seconds of the fit, and for each protocol the errors of auto, 0 and best."""
    parameter = "interpolation" if name in ("OSLD", "IBU") else "tau"
    start = time.process_time()
    q = getattr(oq, name)(**{parameter: "auto"}).fit_scores(S, y)
    seconds = time.process_time() - start
    chosen = q.tuning_.value
    values = np.unique(np.append(grid(name), chosen))
    found = np.empty((len(values), len(samples)))
    for i, value in enumerate(values):
        fixed = q if value == chosen else getattr(oq, name)(**{parameter: float(value)}).fit_scores(S, y)
        found[i] = oq.metrics.nmd(samples.prevalences, fixed.solve_scores(pool, samples).p)
    smooth = smoothest_mask(samples.prevalences, 0.2)
    errors = {}
    for protocol, rows in (("APP-OQ", smooth), ("APP", np.ones(len(samples), dtype=bool))):
        curve = found[:, rows].mean(axis=1)
        best = int(curve.argmin())
        errors[protocol] = (curve[values == chosen][0], curve[0], curve[best], values[best])
    return chosen, seconds, errors


def compare_defaults(names, methods, splits, n_samples, n_trees, n_train):
    """Print the error of each strength relative to tau = 0: geometric means over splits and both weightings."""
    print(f"| data | method | samples | tau = 0: NMD | {' | '.join(map(str, DEFAULTS))} |")
    print(f"|---|---|---|--:|{'--:|' * len(DEFAULTS)}")
    for name in names:
        found = {(method, protocol): [] for method in methods for protocol in ("APP", "APP-OQ")}
        for split in splits:
            data = load(name, split)
            if data is None:
                break
            X, y = np.asarray(data.train.X, dtype=float)[:n_train], data.train.y[:n_train]
            protocol = oq.protocols.APP(n_samples, SAMPLE_SIZE, min_per_class=3, small_pool="repeat", random_state=7)
            samples = protocol.draw(data.test.y)
            smooth = smoothest_mask(samples.prevalences, 0.2)
            for weights in WEIGHTS.values():
                forest = RandomForestClassifier(
                    n_trees, max_depth=12, oob_score=True, random_state=0, class_weight=weights
                )
                S, T = (
                    forest.fit(X, y).oob_decision_function_,
                    forest.predict_proba(np.asarray(data.test.X, dtype=float)),
                )
                for method in methods:
                    fitted = [getattr(oq, method)(tau=tau).fit_scores(S, y) for tau in (0.0, *DEFAULTS)]
                    errors = [oq.metrics.nmd(samples.prevalences, q.solve_scores(T, samples).p) for q in fitted]
                    found[method, "APP"].append([error.mean() for error in errors])
                    found[method, "APP-OQ"].append([error[smooth].mean() for error in errors])
        for (method, protocol), rows in found.items():
            if rows:
                means = np.exp(np.log(rows).mean(axis=0))
                cells = " | ".join(f"{ratio:.3f}" for ratio in means[1:] / means[0])
                print(f"| {name} | {method} | {protocol} | {means[0]:.4f} | {cells} |", flush=True)


def main():
    """Print one table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("names", nargs="*", default=list(TARGETS))
    parser.add_argument("--weights", nargs="*", default=["none"], choices=list(WEIGHTS))
    parser.add_argument("--methods", nargs="*", default=list(METHODS))
    parser.add_argument("--defaults", action="store_true", help="compare fixed strengths with tau = 0")
    parser.add_argument("--splits", nargs="*", type=int, default=[876, 1, 2])
    parser.add_argument("--tiny", action="store_true", help="one method, few trees and samples")
    arguments = parser.parse_args()
    n_samples, fewer, n_trees, n_train = N_SAMPLES, FEWER, 100, None
    if arguments.tiny:
        arguments.methods, n_samples, fewer, n_trees, n_train = ["OPACC"], 20, 10, 20, 2000
    if arguments.defaults:
        methods = [method for method in arguments.methods if method not in (*SLOW, "RUN", "IBU")]
        return compare_defaults(arguments.names, methods, arguments.splits, n_samples, n_trees, n_train)
    print("| data | weights | method | auto | best | NMD auto | tau = 0 | best | auto / best | auto / 0 | "
          "APP: auto | tau = 0 | best | fit, CPU s |")  # fmt: skip
    print("|---|---|---|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|")
    for name in arguments.names:
        data = load(name)
        if data is None:
            continue
        X, y = np.asarray(data.train.X, dtype=float)[:n_train], data.train.y[:n_train]
        X_pool = np.asarray(data.test.X, dtype=float)
        protocol = oq.protocols.APP(n_samples, SAMPLE_SIZE, min_per_class=3, small_pool="repeat", random_state=7)
        samples = protocol.draw(data.test.y)
        forest = RandomForestClassifier(n_trees, max_depth=12, oob_score=True, random_state=0)
        for weights in arguments.weights:
            model = clone(forest).set_params(class_weight=WEIGHTS[weights]).fit(X, y)
            S, S_pool = model.oob_decision_function_, model.predict_proba(X_pool)
            for method in arguments.methods:
                given = (X, X_pool) if method == "OHDx" else (S, S_pool)
                chosen, seconds, errors = measure(
                    method, given[0], y, given[1], samples[:fewer] if method in SLOW else samples
                )
                auto, none, best, at = errors["APP-OQ"]
                app = errors["APP"]
                print(f"| {name} | {weights} | {method} | {chosen:.2g} | {at:.2g} | {auto:.4f} | {none:.4f} | "
                      f"{best:.4f} | {auto / best:.3f} | {auto / none:.3f} | {app[0]:.4f} | {app[1]:.4f} | "
                      f"{app[2]:.4f} | {seconds:.1f} |", flush=True)  # fmt: skip
    return None


if __name__ == "__main__":
    main()
