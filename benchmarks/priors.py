"""Priors of AdjustedML: errors under APP, APP-OQ, NPP and real prevalences, of 30 to 1000 items.

    ORDINALQ_DATA=FOLDER python benchmarks/priors.py [--splits 876 1]

Forests, out of bag, on fried, metro traffic, Beijing and diamonds (ten classes), and logistic regression on the texts
of device reviews (five), each judged on the test pool. "real": for metro traffic and Beijing the shares of each month;
for device reviews those of the books that data.md names. Each cell is the geometric mean, over data sets and splits, of
the mean NMD. The scores are kept in the folder ORDINALQ_CACHE, or in one for temporary files.
"""

import os

os.environ.update(dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1"))

import argparse
from functools import partial
from pathlib import Path

import numpy as np
import pandas as pd
from group_data import cache_folder, read, texts
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import train_test_split

import ordinalq as oq
from ordinalq.classifiers.cross_fitting import held_out
from ordinalq.samples.samples import smoothest_mask

TARGETS = {"fried": None, "metro_traffic": "traffic_volume", "beijing_pm25": "pm2.5", "diamonds": "price"}
BOOKS = "amazon_books_prevalences.tsv"
SIZES = (30, 100, 300, 1000)
N_SAMPLES = 100
METHODS = {
    "AdjustedML": oq.AdjustedML,
    'AdjustedML, "uniform"': partial(oq.AdjustedML, prior="uniform"),
    'AdjustedML, "smooth"': partial(oq.AdjustedML, prior="smooth"),
    'AdjustedML, "training"': partial(oq.AdjustedML, prior="training"),
    "AdjustedML, means only": partial(oq.AdjustedML, instrument="uniform"),
    "GroupBLP": oq.GroupBLP,
    "PACC": oq.PACC,
    "OPACC (auto)": partial(oq.OPACC, tau="auto"),
    "SLD (bcts)": partial(oq.SLD, calibration="bcts"),
}


def table(name, split, tiny):
    """Return training and test items and real prevalences (k, n), or None, of a table of numbers."""
    if name == "fried":
        path = None if tiny else Path(os.environ["ORDINALQ_DATA"]) / "fried.parquet"
        data = oq.datasets.load_dataset("fried" if tiny else "fried-openml", data=path, random_state=split)
        return data.train, data.test, None
    data = oq.datasets.make_dataset(
        Path(os.environ["ORDINALQ_DATA"]) / f"{name}.parquet", target=TARGETS[name], n_bins=10, random_state=split
    )
    if name == "diamonds":
        return data.train, data.test, None
    frame = read(name).dropna(subset=[TARGETS[name]])
    codes = np.searchsorted(data.edges[1:-1], frame[TARGETS[name]], side="right")
    when = frame["date_time"].astype(str).str[:7] if name == "metro_traffic" else frame["year"] * 100 + frame["month"]
    return data.train, data.test, oq.Samples.from_groups(when, codes, classes=np.arange(10)).prevalences


def devices(split):
    """Return training and test items and the shares of books."""
    frame = read("amazon_consumer_reviews").dropna(subset=["reviews.rating", "reviews.text"])
    a, b = train_test_split(frame, test_size=0.5, random_state=split)
    X, Z = texts(a["reviews.text"], b["reviews.text"], 3)
    y, z = (part["reviews.rating"].to_numpy().astype(int) - 1 for part in (a, b))
    books = pd.read_csv(Path(os.environ["ORDINALQ_DATA"]) / BOOKS, sep="\t", header=None).to_numpy(dtype=float)
    return (X, y), (Z, z), books / books.sum(axis=1, keepdims=True)


def scores(name, split, tiny):
    """Return held-out scores, codes, scores and codes of the pool, and real prevalences (k, n) or an empty array."""
    path = cache_folder() / f"priors_{name}_{split}.npz"
    if not tiny and path.exists():
        with np.load(path) as kept:
            return [kept[key] for key in ("S", "y", "T", "z", "real")]
    train, test, real = devices(split) if name == "devices" else table(name, split, tiny)
    if name == "devices":
        model = held_out(oq.classifiers.CrossFitted(LogisticRegression(C=3, max_iter=1000), cv=5))
    else:
        forest = RandomForestClassifier(20 if tiny else 100, max_depth=12, oob_score=True, random_state=0)
        model = held_out(forest)
    (X, y), (Z, z) = train, test
    model.fit(X, y)
    found = [model.held_out_scores_, y, model.predict_proba(Z), z, np.empty((0, 0)) if real is None else real]
    if not tiny:
        path.parent.mkdir(parents=True, exist_ok=True)
        np.savez(path, **dict(zip(("S", "y", "T", "z", "real"), found, strict=True)))
    return found


def drawn(z, real, size, n_samples):
    """Yield the protocols by name, with their samples; APP-OQ are the smoothest fifth of five times as many."""
    common = {"small_pool": "repeat", "random_state": 7}
    app = oq.protocols.APP(5 * n_samples, size, **common).draw(z)
    yield "APP", app[:n_samples]
    yield "APP-OQ", app[smoothest_mask(app.prevalences, 0.2)]
    yield "NPP", oq.protocols.NPP(n_samples, size, **common).draw(z)
    if len(real):
        yield "real", oq.protocols.RealPrevalences(real, n_samples, size, **common).draw(z)


def measure(name, split, sizes, n_samples, tiny):
    """Return {(method, protocol, size): mean NMD}."""
    S, y, T, z, real = scores(name, split, tiny)
    methods = {label: make().fit_scores(S, y) for label, make in METHODS.items()}
    found = {}
    for size in sizes:
        for protocol, samples in drawn(z, real, size, n_samples):
            for label, method in methods.items():
                error = oq.metrics.nmd(samples.prevalences, method.solve_scores(T, samples).p)
                found[label, protocol, size] = error.mean()
            training = np.broadcast_to(np.bincount(y) / len(y), samples.prevalences.shape)
            found["training distribution", protocol, size] = oq.metrics.nmd(samples.prevalences, training).mean()
    return found


def main():
    """Print one table per protocol."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--splits", nargs="*", type=int, default=[876, 1])
    parser.add_argument("--names", nargs="*", default=[*TARGETS, "devices"])
    parser.add_argument("--tiny", action="store_true", help="one data set, few trees and samples")
    arguments = parser.parse_args()
    pairs, sizes, n_samples = [(n, s) for n in arguments.names for s in arguments.splits], SIZES, N_SAMPLES
    if arguments.tiny:
        pairs, sizes, n_samples = [("fried", 876)], (30, 100), 10
    results = []
    for name, split in pairs:
        results.append(measure(name, split, sizes, n_samples, arguments.tiny))
        row = " ".join(f"{results[-1]['AdjustedML', protocol, sizes[-1]]:.4f}" for protocol in ("APP", "APP-OQ", "NPP"))
        print(f"{name} {split}: AdjustedML, {sizes[-1]} items: {row}", flush=True)
    for protocol in ("APP", "APP-OQ", "NPP", "real"):
        having = [found for found in results if ("AdjustedML", protocol, sizes[0]) in found]
        if not having:
            continue
        print(f"\n| {protocol}, {len(having)} sets | {' | '.join(f'N = {size}' for size in sizes)} |")
        print("|---|" + "--:|" * len(sizes))
        for label in (*METHODS, "training distribution"):
            means = [np.exp(np.mean([np.log(found[label, protocol, size]) for found in having])) for size in sizes]
            print(f"| {label} | {' | '.join(f'{mean:.4f}' for mean in means)} |")


if __name__ == "__main__":
    main()
