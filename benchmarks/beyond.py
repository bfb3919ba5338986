"""The default next to the best of all other methods, chosen in hindsight, on the same artificial samples.

    ORDINALQ_DATA=FOLDER python benchmarks/beyond.py [NAME ...] [--splits 876 1 2] [--seeds 7 8] [--rows ROWS.csv]

Data: see data.md. Rivals are the methods below on a random forest (texts: logistic regression), unweighted and with
balanced classes, so each has two classifiers and some parameters to be lucky with; the best of all is picked with
knowledge of the test samples, per line, and once more for all splits of a data set together. The default,
`oq.AutoQuantifier`, sees the training items only. Mean NMD of samples of 1000 and 100 items: APP, APP-OQ (20%), and
NPP. Fitted scores are kept in the folder that ORDINALQ_CACHE names. Errors are kept in the file --rows: what is there
is not computed again, and the tables are made of all of it, so that a long run can be made in parts.
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
from ordinalq.classifiers.cross_fitting import held_out
from ordinalq.datasets.regression import friedman
from ordinalq.datasets.text import tfidf
from ordinalq.inference.predict import estimate
from ordinalq.metrics import errors
from ordinalq.samples.samples import smoothest_mask

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
COLUMNS = ["data", "split", "seed", "setting", "method", "nmd", "expected", "covered", "worst"]
# Not rivals: the default, also with the prior for NPP, and the training distribution.
OWN, OWN_TRAINING, NOTHING = "default", "default, prior training", "training distribution"
# Items of each class that `fresh` makes: a sample of 1000 has hardly ever more.
FRESH = 1000
# The other methods on scores.
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
    "KDEy": oq.KDEy(),
    "KDEy auto": oq.KDEy(bandwidth="auto"),
}
# Those on features, for tables; with --slow, as OQT and ARC, which fit their own classifiers.
ON_FEATURES = {"HDx": oq.HDx(n_bins=4), "o-HDx 1e-3": oq.OHDx(n_bins=4, tau=1e-3)}
QUICK = ("CC", "PACC", "o-EDy 1e-3")


def load(name, split):
    """Return the data set of that name and split, None where its file is missing."""
    folder = Path(os.environ.get("ORDINALQ_DATA", ""))
    path = folder / ("fried.parquet" if name == "fried" else f"{name}.parquet")
    if not path.is_file():
        if name == "fried":  # made by its formula
            return oq.datasets.load_dataset("fried", random_state=split)
        print(f"{name} is left out: there is no {path.name} in the folder that ORDINALQ_DATA names", file=sys.stderr)
        return None
    if name == "fried":
        return oq.datasets.load_dataset("fried-openml", random_state=split)
    if name in TABLES:
        # The traffic is to be told from the weather; the hour would tell it all.
        frame = pd.read_parquet(path).drop(columns="date_time", errors="ignore")
        return oq.datasets.make_dataset(frame, target=TABLES[name], n_bins=10, random_state=split)
    if name in TEXTS:
        text, target = TEXTS[name]
        frame = pd.read_parquet(path, columns=[text, target])
        return oq.datasets.make_dataset(frame, target, features=text, encoder=tfidf(), random_state=split)
    frame = pd.read_parquet(path).drop(columns=["url", "timedelta", "source", "uci_row"], errors="ignore")
    frame["shares"] = np.log(frame["shares"])
    return oq.datasets.make_dataset(frame, "shares", n_bins=10, random_state=split)


def rivals_of(name, n_trees):
    """Return the classifiers of the rivals by name."""
    if name in TEXTS:
        models = {w: LogisticRegression(max_iter=1000, class_weight=w) for w in (None, "balanced")}
        return {str(w or "plain"): oq.classifiers.CrossFitted(model, cv=5) for w, model in models.items()}
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
    q = oq.AutoQuantifier(budget=budget).fit(*data.train)
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
    large = oq.protocols.APP(n_samples, 1000, min_per_class=3, **common).draw(y)
    # A fifth of the samples is smooth: five times as many are drawn for that.
    smooth = oq.protocols.APP(2 * n_samples, 1000, min_per_class=3, **{**common, "random_state": seed + 100}).draw(y)
    return {
        ("APP", 1000): large,
        ("APP-OQ", 1000): smooth[np.flatnonzero(smoothest_mask(smooth.prevalences, 0.2))],
        ("APP", 100): oq.protocols.APP(n_samples, 100, **common).draw(y),
        ("NPP", 1000): oq.protocols.NPP(n_samples, 1000, **common).draw(y, classes=np.unique(y)),
    }


def judge(name, split, arguments, known):
    """Yield one line per setting and method that is not known: mean NMD, and what the default says of itself."""
    data = load(name, split)
    if data is None:
        return
    tiny = arguments.tiny
    if arguments.items is not None:
        part = np.random.default_rng(0).permutation(len(data.train.y))[: arguments.items]
        data = type(data)(**{**vars(data), "train": type(data.train)(data.train.X[part], data.train.y[part])})
    y, pool = data.train.y, data.test.y
    drawn = {seed: samples_of(pool, arguments.samples, seed) for seed in arguments.seeds}
    drawn = {(seed, *setting): samples for seed, settings in drawn.items() for setting, samples in settings.items()}

    def lines(label, method, T, told=None):
        for (seed, *setting), samples in drawn.items():
            setting = f"{setting[0]} {setting[1]}"
            if (name, split, seed, setting, label) not in known:
                yield name, split, seed, setting, label, *measured(method, T, samples, told, setting)

    for key, classifier in rivals_of(name, 20 if tiny else 100).items():
        labels = [f"{label} ({key})" for label in RIVALS if label in QUICK or not tiny]
        lacking = [label for label in labels if any((name, split, *one, label) not in known for one in keys(drawn))]
        if lacking:
            given = kept(f"{name}_{split}_{key}", lambda classifier=classifier: scored(classifier, data))
        for label in lacking:
            yield from lines(label, RIVALS[label.partition(" (")[0]].fit_scores(given["S"], y), given["T"])
        for label in ("OQT", "ARC") if arguments.slow else ():
            if any((name, split, *one, f"{label} ({key})") not in known for one in keys(drawn)):
                method = getattr(oq, label)(classifier).fit(data.train.X, y)
                yield from lines(f"{label} ({key})", method, method.scores(data.test.X))
    for label, method in ON_FEATURES.items() if arguments.slow and name not in TEXTS else ():
        if any((name, split, *one, label) not in known for one in keys(drawn)):
            items, pool_items = (np.asarray(part.X, dtype=np.float64) for part in (data.train, data.test))
            yield from lines(label, method.fit_scores(items, y), pool_items)
    own = kept(f"{name}_{split}_train_{arguments.budget}", lambda: trained(data, arguments.budget))
    yield from lines(OWN, oq.AdjustedML().fit_scores(own["S"], y), own["T"], own["expected"])
    yield from lines(OWN_TRAINING, oq.AdjustedML(prior="training").fit_scores(own["S"], y), own["T"])
    yield from lines(NOTHING, np.bincount(y) / len(y), None)


def keys(drawn):
    """Return seed and setting of all samples."""
    return [(seed, f"{protocol} {size}") for seed, protocol, size in drawn]


def measured(method, T, samples, told, setting):
    """Return the mean NMD and, of the default, the error that it expects and how often its 95% intervals hold."""
    if T is None:
        return errors(samples.prevalences, np.tile(method, (len(samples), 1))).mean(), np.nan, np.nan, np.nan
    if told is None:
        return errors(samples.prevalences, method.solve_scores(T, samples).p).mean(), np.nan, np.nan, np.nan
    found = estimate(method, method.summarize(T, samples, checks=False), 0.95, oq.inference.IntervalOptions())
    truth = samples.prevalences
    inside = ((found.lower <= truth + 1e-9) & (truth <= found.upper + 1e-9)).mean(axis=0)
    expected = told[int(setting.endswith("1000"))] if setting.startswith("APP ") else np.nan
    return errors(truth, found.prevalences).mean(), expected, inside.mean(), inside.min()


def report(frame):
    """Print the tables."""
    index = ["data", "split", "setting"]
    mean = frame.pivot_table("nmd", index, "method", sort=False).dropna(subset=[OWN, OWN_TRAINING])
    told = frame[frame["method"] == OWN].groupby(index)[["expected", "covered", "worst"]].mean()
    print("\n| data | split | samples | default | expected | covered, worst class | best other | which | ratio |")
    print("|---|---|---|--:|--:|--:|--:|---|--:|")
    for where, row in mean.iterrows():
        others, expected = rivals(row, where[2]), told.loc[where, "expected"]
        expected = "" if np.isnan(expected) else f"{expected:.4f}"
        covered = f"{100 * told.loc[where, 'covered']:.0f}, {100 * told.loc[where, 'worst']:.0f} %"
        print(f"| {where[0]} | {where[1]} | {where[2]} | {row[OWN]:.4f} | {expected} | "
              f"{covered} | {others.min():.4f} | {others.idxmin()} | {row[OWN] / others.min():.2f} |")  # fmt: skip
    print("\nThe same for all splits of a data set together, one best other for all of them:\n")
    print('| data | splits | samples | default | best other | which | ratio | ratio with prior="training" |')
    print("|---|---|---|--:|--:|---|--:|--:|")
    ratios = {}
    for (name, setting), part in mean.groupby(["data", "setting"], sort=False):
        row = part.mean(skipna=False)
        others = rivals(row, setting)
        ratios[name, setting] = row[[OWN, OWN_TRAINING]] / others.min()
        print(f"| {name} | {', '.join(map(str, part.index.get_level_values('split')))} | {setting} | {row[OWN]:.4f} | "
              f"{others.min():.4f} | {others.idxmin()} | {ratios[name, setting][OWN]:.2f} | "
              f"{ratios[name, setting][OWN_TRAINING]:.2f} |")  # fmt: skip
    each = pd.Series({where: row[OWN] / rivals(row, where[2]).min() for where, row in mean.iterrows()})
    settings = list(mean.index.get_level_values("setting").unique())
    print(f'\nIn short, NMD and ratio:\n\n| data, split | {" | ".join(settings)} | NPP, prior="training" |')
    print(f"|---|{'--:|' * (len(settings) + 1)}")
    for (name, split), part in mean.groupby(["data", "split"], sort=False):
        cells = [f"{part.loc[(name, split, one), OWN]:.4f}, {each[name, split, one]:.2f}" for one in settings]
        known = part.loc[(name, split, settings[-1])]
        cells.append(f"{known[OWN_TRAINING] / rivals(known, settings[-1]).min():.2f}")
        print(f"| {name}, {split} | {' | '.join(cells)} |")
    pooled = pd.DataFrame(ratios).T[OWN]
    print("\n| samples | geometric mean of the ratios, per line | worst | per data set | worst |")
    print("|---|--:|--:|--:|--:|")
    for setting in settings:
        parts = each.xs(setting, level=2), pooled.xs(setting, level=1)
        cells = (f"{np.exp(np.log(part).mean()):.3f} | {part.max():.2f}" for part in parts)
        print(f"| {setting} | {' | '.join(cells)} |")
    relative = mean.div(mean.drop(columns=[OWN_TRAINING]).min(axis=1), axis=0)
    table = relative.groupby("setting", sort=False).agg(lambda part: np.exp(np.log(part).mean()))
    print("\nGeometric mean over all lines of the error, relative to the best of each line:\n")
    print(f"| method | {' | '.join(table.index)} |\n|---|{'--:|' * len(table)}")
    for method, row in table.T.sort_values(table.index[0]).iterrows():
        print(f"| {method} | {' | '.join(f'{value:.2f}' for value in row)} |")


def rivals(row, setting):
    """Return the errors of the others; where samples are like the training items, its distribution is one of them."""
    return row.drop([OWN, OWN_TRAINING, *([] if setting.startswith("NPP") else [NOTHING])]).dropna()


def fresh(budget, n_samples):
    """Print how often 95% intervals hold on fried where no item repeats: the pool is made again by the formula."""
    data = oq.datasets.load_dataset("fried", random_state=876)
    q = oq.AutoQuantifier(budget=budget).fit(*data.train)
    edges = [float(name.partition(",")[2].strip(" )]")) for name in data.classes[:-1]]
    rng, parts, missing = np.random.default_rng(5), [], np.full(len(data.classes), FRESH)
    while missing.any():
        X = np.round(rng.uniform(size=(100_000, 10)), 3)
        y = np.digitize(np.round(friedman(X) + rng.standard_normal(len(X)), 3), edges)
        for c in range(len(missing)):
            found = np.flatnonzero(y == c)[: missing[c]]
            parts.append((X[found], y[found]))
            missing[c] -= len(found)
    X, y = (np.concatenate(arrays) for arrays in zip(*parts, strict=True))
    S = q.scores(X)
    for size in (100, 1000):
        samples = oq.protocols.APP(n_samples, size, small_pool="repeat", random_state=1).draw(y)
        told = [q.training_.expected[100], q.training_.expected[1000]]
        nmd, expected, covered, worst = measured(q, S, samples, told, f"APP {size}")
        print(f"fried, new items, APP {size}: NMD {nmd:.4f} (expected {expected:.4f}), "
              f"{100 * covered:.1f} % covered, worst class {100 * worst:.0f} %")  # fmt: skip


def main():
    """Print the tables."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("names", nargs="*", default=list(NAMES))
    parser.add_argument("--splits", nargs="*", type=int, default=list(SPLITS))
    parser.add_argument("--seeds", nargs="*", type=int, default=list(SEEDS))
    parser.add_argument("--budget", default="balanced")
    parser.add_argument("--samples", type=int, default=N_SAMPLES)
    parser.add_argument("--rows", type=Path, help="CSV file of the errors of every method; read, and added to")
    parser.add_argument("--items", type=int, help="number of training items at most, drawn at random; default: all")
    parser.add_argument("--slow", action="store_true", help="also OQT and ARC, and HDx and o-HDx on tables")
    parser.add_argument(
        "--fresh", action="store_true", help="coverage on new items of fried instead, which never repeat"
    )
    parser.add_argument("--tiny", action="store_true", help="fried only, one split, few items, trees and samples")
    arguments = parser.parse_args()
    if arguments.tiny:
        arguments.names, arguments.splits, arguments.seeds, arguments.samples = ["fried"], [876], [7], 20
        arguments.budget, arguments.items = "fast", 2000
    if arguments.fresh:
        return fresh(arguments.budget, arguments.samples)
    frame = pd.DataFrame(columns=COLUMNS)
    if arguments.rows is not None and arguments.rows.exists():
        frame = pd.read_csv(arguments.rows)
    for name in arguments.names:
        for split in arguments.splits:
            start = time.process_time()
            known = set(frame[["data", "split", "seed", "setting", "method"]].itertuples(index=False, name=None))
            found = pd.DataFrame(judge(name, split, arguments, known), columns=COLUMNS)
            frame = found if frame.empty else pd.concat([frame, found], ignore_index=True)
            if arguments.rows is not None:
                frame.to_csv(arguments.rows, index=False)
            print(f"{name}, split {split}: {time.process_time() - start:.0f} s", file=sys.stderr, flush=True)
    report(frame)
    return None


if __name__ == "__main__":
    main()
