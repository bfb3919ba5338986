"""The default beside the best of all other methods, chosen in hindsight, on the same artificial samples.

    ORDINALQ_DATA=FOLDER python benchmarks/beyond.py [NAME ...] [--splits 876 1 2] [--seeds 7 8] [--budget balanced]

Data: see data.md. Rivals are the methods below on a random forest (texts: logistic regression), unweighted and with
balanced classes, so each has two classifiers and some parameters to be lucky with; the best of all is picked with
knowledge of the test samples, per line. The default, `oq.train`, sees the training items only. Mean NMD of samples of
1000 and 100 items: APP, APP-OQ (20 %), and NPP. Fitted scores are kept in the folder that ORDINALQ_CACHE names.
"""

import argparse
import os
import sys
import time
from pathlib import Path

import numpy as np
import pandas as pd
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression

import ordinalq as oq
from ordinalq.classify.held_out import held_out
from ordinalq.datasets.text import tfidf
from ordinalq.evaluation import errors
from ordinalq.samples import smoothest_mask

TABLES = {"beijing_pm25": "pm2.5", "diamonds": "price", "metro_traffic": "traffic_volume"}
TEXTS = {
    "amazon_consumer_reviews": ("reviews.text", "reviews.rating"),
    "amazon_kindle_store_sample": ("reviewText", "overall"),
    "imdb_reviews": ("text", "rating"),
}
NAMES = ("fried", *TABLES, *TEXTS, "online_news_partial")
SPLITS, SEEDS = (876, 1, 2), (7, 8)
N_SAMPLES = 300
SETTINGS = (("APP", 1000), ("APP-OQ", 1000), ("APP", 100), ("NPP", 1000))
# The other methods. Left out are HDx and o-HDx, which take features, and OQT and ARC, which fit classifiers of their
# own: they cannot share the scores.
RIVALS = {
    "CC": oq.CC(),
    "PCC": oq.PCC(),
    "ACC": oq.ACC(),
    "PACC": oq.PACC(),
    "HDy": oq.HDy(n_bins=4),
    "SLD": oq.SLD(),
    "SLD bcts": oq.SLD(calibration="bcts"),
    "SLD vector": oq.SLD(calibration="vector"),
    "IBU": oq.IBU(),
    "RUN 1": oq.RUN(tau=1.0),
    "RUN 100": oq.RUN(tau=100.0),
    "EDy": oq.EDy(),
    "PDF": oq.PDF(),
    "o-ACC auto": oq.OACC(tau="auto"),
    "o-PACC auto": oq.OPACC(tau="auto"),
    "o-PACC 1e-5": oq.OPACC(tau=1e-5),
    "o-PACC 1e-3": oq.OPACC(tau=1e-3),
    "o-HDy 1e-3": oq.OHDy(n_bins=4, tau=1e-3),
    "o-SLD": oq.OSLD(interpolation=0.01),
    "o-EDy auto": oq.OEDy(tau="auto"),
    "o-EDy 1e-5": oq.OEDy(tau=1e-5),
    "o-EDy 1e-3": oq.OEDy(tau=1e-3),
    "o-PDF auto": oq.OPDF(tau="auto"),
    "o-PDF 1e-3": oq.OPDF(tau=1e-3),
}
QUICK = ("CC", "PACC", "o-EDy 1e-3")


def load(name, split):
    """Return the data set of that name and split, None where its file is missing."""
    folder = Path(os.environ.get("ORDINALQ_DATA", ""))
    path = folder / ("fried.parquet" if name == "fried" else f"{name}.parquet")
    if not path.is_file():
        if name == "fried":  # made by its formula
            return oq.load_dataset("fried", random_state=split)
        print(f"{name} is left out: there is no {path.name} in the folder that ORDINALQ_DATA names", file=sys.stderr)
        return None
    if name == "fried":
        return oq.load_dataset("fried-openml", random_state=split)
    if name in TABLES:
        # The traffic is to be told from the weather; the hour would tell it all.
        frame = pd.read_parquet(path).drop(columns="date_time", errors="ignore")
        return oq.make_dataset(frame, target=TABLES[name], n_bins=10, random_state=split)
    if name in TEXTS:
        text, target = TEXTS[name]
        frame = pd.read_parquet(path, columns=[text, target])
        return oq.make_dataset(frame, target, features=text, encoder=tfidf(), random_state=split)
    frame = pd.read_parquet(path).drop(columns=["url", "timedelta", "source", "uci_row"], errors="ignore")
    frame["shares"] = np.log(frame["shares"])
    return oq.make_dataset(frame, "shares", n_bins=10, random_state=split)


def rivals_of(name, n_trees):
    """Return the classifiers of the rivals by name."""
    if name in TEXTS:
        models = {w: LogisticRegression(max_iter=1000, class_weight=w) for w in (None, "balanced")}
        return {str(w or "plain"): oq.CrossFitted(model, cv=5) for w, model in models.items()}
    weights = {"plain": None, "balanced": "balanced_subsample"}
    forest = {"n_estimators": n_trees, "max_depth": 12, "oob_score": True, "random_state": 0}
    return {key: RandomForestClassifier(class_weight=w, **forest) for key, w in weights.items()}


def kept(name, make):
    """Return the arrays kept under that name in the folder ORDINALQ_CACHE, or make and keep them."""
    folder = os.environ.get("ORDINALQ_CACHE")
    path = None if folder is None else Path(folder) / f"{name}.npz"
    if path is not None and path.exists():
        with np.load(path) as arrays:
            return dict(arrays)
    arrays = make()
    if path is not None:
        path.parent.mkdir(parents=True, exist_ok=True)
        np.savez(path, **arrays)
    return arrays


def scored(classifier, data):
    """Return held-out scores S of the training items, scores T of the pool, and CPU seconds of the fit."""
    start = time.process_time()
    model = held_out(classifier).fit(*data.train)
    return {
        "S": model.held_out_scores_,
        "T": model.predict_proba(data.test.X),
        "seconds": np.array(time.process_time() - start),
    }


def trained(data, budget):
    """Return the same of the default, with the error that it expects."""
    start = time.process_time()
    q = oq.train(*data.train, budget=budget)
    seconds = time.process_time() - start
    return {
        "S": q.classifier_.held_out_scores_,
        "T": q.scores(data.test.X),
        "seconds": np.array(seconds),
        "expected": np.array([q.training_.expected[100], q.training_.expected[1000]]),
    }


def samples_of(y, n_samples, seed):
    """Return the samples of each setting."""
    common = {"small_pool": "repeat", "random_state": seed}
    large = oq.APP(n_samples, 1000, min_per_class=3, **common).draw(y)
    # A fifth of the samples is smooth: five times as many are drawn for that.
    smooth = oq.APP(2 * n_samples, 1000, min_per_class=3, **{**common, "random_state": seed + 100}).draw(y)
    return {
        ("APP", 1000): large,
        ("APP-OQ", 1000): smooth[np.flatnonzero(smoothest_mask(smooth.prevalences, 0.2))],
        ("APP", 100): oq.APP(n_samples, 100, **common).draw(y),
        ("NPP", 1000): oq.NPP(n_samples, 1000, **common).draw(y, classes=np.unique(y)),
    }


def judge(name, split, arguments):
    """Yield one line per setting: mean NMD of the default, of each rival, and what the default expected."""
    data = load(name, split)
    if data is None:
        return
    tiny = arguments.tiny
    if tiny:
        part = np.random.default_rng(0).permutation(len(data.train.y))[:2000]
        data = type(data)(**{**vars(data), "train": type(data.train)(data.train.X[part], data.train.y[part])})
    y, pool = data.train.y, data.test.y
    drawn = {seed: samples_of(pool, arguments.samples, seed) for seed in arguments.seeds}
    estimates = {}
    for key, classifier in rivals_of(name, 20 if tiny else 100).items():
        given = kept(f"{name}_{split}_{key}", lambda classifier=classifier: scored(classifier, data))
        for label, method in RIVALS.items():
            if label in QUICK or not tiny:
                estimates[f"{label} ({key})"] = method.fit_scores(given["S"], y), given["T"]
                yield from lines(name, split, f"{label} ({key})", *estimates[f"{label} ({key})"], drawn)
    own = kept(f"{name}_{split}_train_{arguments.budget}", lambda: trained(data, arguments.budget))
    choice = oq.AML().fit_scores(own["S"], y)
    yield from lines(name, split, "default", choice, own["T"], drawn, own)
    training = np.tile(np.bincount(y) / len(y), (1, 1))
    for seed, settings in drawn.items():
        for setting, samples in settings.items():
            P = np.repeat(training, len(samples), axis=0)
            yield name, split, seed, setting, "training distribution", errors(P, samples.prevalences).mean(), np.nan


def lines(name, split, label, method, T, drawn, own=None):
    """Yield the errors of one method."""
    for seed, settings in drawn.items():
        for setting, samples in settings.items():
            found = errors(method.solve_scores(T, samples).p, samples.prevalences).mean()
            expected = np.nan
            if own is not None and setting[0] == "APP":
                expected = own["expected"][int(setting[1] == 1000)]
            yield name, split, seed, setting, label, found, expected


def report(found, rows=None):
    """Print the table, and the geometric means of the ratios."""
    columns = ["data", "split", "seed", "setting", "method", "nmd", "expected"]
    frame = pd.DataFrame(found, columns=columns)
    if rows is not None:
        frame.to_csv(rows, index=False)
    mean = frame.pivot_table("nmd", ["data", "split", "setting"], "method", sort=False)
    expected = frame[frame["method"] == "default"].groupby(["data", "split", "setting"])["expected"].mean()
    rivals = mean.drop(columns="default")
    print("\n| data | split | protocol | items | default | expected | best other | which | ratio |")
    print("|---|---|---|--:|--:|--:|--:|---|--:|")
    for (name, split, setting), row in mean.iterrows():
        others = rivals.loc[(name, split, setting)]
        others = others if setting[0] == "NPP" else others.drop("training distribution")
        told = expected[name, split, setting]
        print(f"| {name} | {split} | {setting[0]} | {setting[1]} | {row['default']:.4f} | "
              f"{'' if np.isnan(told) else f'{told:.4f}'} | {others.min():.4f} | {others.idxmin()} | "
              f"{row['default'] / others.min():.2f} |")  # fmt: skip
    ratio = mean["default"] / rivals.drop(columns="training distribution").min(axis=1)
    print("\n| protocol | items | geometric mean of the ratios | worst |\n|---|--:|--:|--:|")
    for setting, part in ratio.groupby("setting", sort=False):
        print(f"| {setting[0]} | {setting[1]} | {np.exp(np.log(part).mean()):.3f} | {part.max():.2f} |")
    table = mean.groupby("setting", sort=False).apply(
        lambda part: np.exp(np.log(part.div(part.min(axis=1), axis=0)).mean())
    )
    print("\nGeometric mean over all data of the error, relative to the best of each line:\n")
    print(table.T.sort_values(("APP", 1000)).round(2).to_string())


def main():
    """Print the tables."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("names", nargs="*", default=list(NAMES))
    parser.add_argument("--splits", nargs="*", type=int, default=list(SPLITS))
    parser.add_argument("--seeds", nargs="*", type=int, default=list(SEEDS))
    parser.add_argument("--budget", default="balanced")
    parser.add_argument("--samples", type=int, default=N_SAMPLES)
    parser.add_argument("--rows", help="also write the error of every method to this CSV file")
    parser.add_argument("--tiny", action="store_true", help="fried only, one split, few items, trees and samples")
    arguments = parser.parse_args()
    if arguments.tiny:
        arguments.names, arguments.splits, arguments.seeds, arguments.samples = ["fried"], [876], [7], 20
        arguments.budget = "fast"
    found = []
    for name in arguments.names:
        for split in arguments.splits:
            start = time.process_time()
            found += judge(name, split, arguments)
            print(f"{name}, split {split}: {time.process_time() - start:.0f} s", file=sys.stderr, flush=True)
    report(found, arguments.rows)


if __name__ == "__main__":
    main()
