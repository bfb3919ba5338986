"""Made-up outcomes of experiments for the tests of the report: what an experiment finds, without running one."""

import json

import numpy as np
import pandas as pd

import ordinalq as oq
from ordinalq.metrics import MEASURES
from ordinalq.paper.experiments.outcome import Outcome
from ordinalq.simplex import jaggedness, uniform_simplex

GROUP_NOISE = {"non-ordinal": 0.08, "ordinal": 0.06, "new ordinal": 0.04}
CLASSIFIERS = ("LR", "OLR-AT", "OLR-IT", "ORidge", "LAD")
QUANTIFIERS = ("CC", "PCC", "ACC", "PACC", "SLD")


def make_outcome(
    name="fried",
    *,
    paper="OpenMl-fried-OQ",
    n_classes=10,
    n_samples=100,
    protocols=("APP", "APP-OQ"),
    measures=("nmd", "rnod"),
    methods=None,
    kind="quantifiers",
    failed=(),
    unconverged=(),
    grids=True,
    seed=0,
):
    """Return an outcome whose estimates are the truth plus noise, less of it for the methods of later groups."""
    rng = np.random.default_rng(seed)
    entries = {entry.name: entry for entry in oq.catalog(beyond=False)}
    if methods is None:
        methods = list(entries)
        if kind == "classifiers":
            methods = [
                f"{c}-{q}" for c in CLASSIFIERS for q in QUANTIFIERS if c in CLASSIFIERS[:3] or q in ("CC", "ACC")
            ]
    p_train = rng.dirichlet(np.full(n_classes, 3.0))
    truth = {}
    for protocol in protocols:
        P = uniform_simplex(n_samples * 5, n_classes, random_state=rng)
        truth[protocol] = P[:n_samples] if protocol == "APP" else P[np.argsort(jaggedness(P))[:n_samples]]
    validation, estimates = [], []
    for position, method in enumerate(methods):
        entry = entries.get(method)
        noise = (GROUP_NOISE[entry.group] if entry else 0.05) * (1 + 0.03 * position)
        grid = _grid(entry, n_classes) if grids else [{}]
        classifiers = [{"max_depth": depth, "class_weight": w} for depth in (4, 12) for w in ("balanced", None)]
        if kind == "classifiers":
            classifiers = [{"name": method.rpartition("-")[0], "C": C} for C in (0.1, 1.0)]
        for protocol in protocols:
            for measure in measures:
                for i, classifier in enumerate(classifiers):
                    for j, parameters in enumerate(grid):
                        tau = parameters.get("tau", 1e-3)
                        error = (
                            np.nan
                            if method in failed
                            else noise * (1 + 0.1 * i + 0.05 * abs(j - 1) + 0.1 * protocols.index(protocol))
                        )
                        validation.append(
                            {
                                "method": method,
                                "classifier": json.dumps(classifier, indent=1),
                                "parameters": json.dumps(parameters, indent=1),
                                "protocol": protocol,
                                "measure": measure,
                                "error": error,
                                "std": error / 3,
                                "smoothing": np.nan
                                if method in failed
                                else 1.5 - (0.1 + 0.05 * protocols.index(protocol)) * np.log10(tau * 1e5 + 1),
                                "unconverged": 0,
                                "n_samples": 50,
                                "seconds": 0.01 * (j + 1),
                                "message": "no <b>minimum</b> found" if method in failed else "",
                            }
                        )
                if method in failed:
                    continue
                P = truth[protocol]
                P_hat = np.clip(P + noise * rng.normal(size=P.shape) / np.sqrt(n_classes), 0, None)
                P_hat /= P_hat.sum(axis=1, keepdims=True)
                table = pd.DataFrame(P_hat, columns=[f"p_{k + 1}" for k in range(n_classes)])
                converged = np.ones(n_samples, dtype=bool)
                converged[: 3 if method in unconverged else 0] = False
                table.insert(0, "method", method)
                table.insert(1, "protocol", protocol)
                table.insert(2, "measure", measure)
                table.insert(3, "sample", np.arange(n_samples))
                table.insert(4, "error", MEASURES[measure](P, P_hat))
                table.insert(5, "converged", converged)
                estimates.append(table)
    validation = pd.DataFrame(validation)
    whole = validation.dropna(subset=["error"])
    selected = whole.loc[whole.groupby(["method", "protocol", "measure"], sort=False)["error"].idxmin()]
    truth_table = pd.concat(
        pd.DataFrame(P, columns=[f"p_{k + 1}" for k in range(n_classes)]).assign(
            protocol=protocol, sample=range(len(P))
        )
        for protocol, P in truth.items()
    )
    about = {
        "experiment": {
            "name": name,
            "kind": kind,
            "title": f"The experiment on {name}",
            "profile": "quick",
            "settings": "reference",
            "seed": 876,
            "dataset": {"name": name, "paper": paper},
            "paper": paper,
            "methods": list(methods),
            "measures": list(measures),
            "protocols": list(protocols),
            "n_estimators": None if kind == "classifiers" else 100,
            "in_sample": [],
            "app_oq": 0.2,
        },
        "data": {
            "name": name,
            "source": "synthetic, for a test",
            "split": "20,000 + 10,384 + 10,384 items",
            "notes": ["class 10 has 29 items & is repeated"],
            "classes": [str(k + 1) for k in range(n_classes)],
            "n_train": 20000,
            "n_validation": 10384,
            "n_test": 10384,
            "n_test_samples": n_samples,
            "n_features": 10,
            "p_train": p_train.tolist(),
        },
        "versions": {"ordinalq": "0.1.0", "code": "0123456789", "numpy": "2.0", "scipy": "1.13", "scikit-learn": "1.6"},
        "machine": {"python": "3.11", "system": "Linux", "processors": 2},
        "seconds": {"classifiers": 61.5, "validation": 12.25, "test": 3.0},
        "configurations": len(validation[["method", "classifier", "parameters"]].drop_duplicates()),
        "damaged": [],
        "command": f"ordinalq reproduce {name} --profile quick",
    }
    return Outcome(about, validation, selected.reset_index(drop=True), pd.concat(estimates), truth_table)


def _grid(entry, n_classes):
    """Return the configurations of a method."""
    configurations = [{}]
    for name, values in entry.grid(n_classes).items() if entry else ():
        configurations = [old | {name: value} for old in configurations for value in values]
    return configurations
