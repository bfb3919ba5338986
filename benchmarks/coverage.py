"""Coverage of the intervals of every method on fried, metro traffic and Beijing's air.

Run it with ``python benchmarks/coverage.py``; metro traffic and Beijing's air are read from the folder that
ORDINALQ_DATA names. All are cut into ten classes of at least 1000 items. Each of several
random halves of the items trains, the other half is the pool of APP samples without repeated items: the uncertainty of
M is part of the intervals, and shows only over several M. For the target "population" the composition of each sample is
drawn from its prevalences, which are then the truth.

With ``--weights 1`` all items, those of training and those of the samples, have log-normal weights, whose logarithm has
that standard deviation; the truth of a sample then is its weighted composition.
"""

import os

os.environ.update(dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1"))

import argparse
import itertools
import time
import warnings

import group_data
import numpy as np
from interface import adapter
from joblib import Parallel, delayed
from sklearn.ensemble import RandomForestClassifier
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import ordinalq as oq
from ordinalq.samples.weights import Weights
from ordinalq.simplex import uniform_simplex

N_CLASSES = 10
LEVEL = 0.95
# A class is present where it has more than this part of a sample.
PRESENT = 0.02

METHODS = {
    "PACC": lambda: oq.PACC(),
    "ACC": lambda: oq.ACC(),
    "SLD (bcts)": lambda: oq.SLD(calibration="bcts"),
    "SLD (vector)": lambda: oq.SLD(calibration="vector"),
    "SLD": lambda: oq.SLD(),
    "HDx": lambda: oq.HDx(),
    "HDy": lambda: oq.HDy(),
    "EDy": lambda: oq.EDy(),
    "PDF": lambda: oq.PDF(),
    "RUN": lambda: oq.RUN(),
    "IBU": lambda: oq.IBU(),
    "o-ACC": lambda: oq.OACC(),
    "o-PACC": lambda: oq.OPACC(),
    "o-HDx": lambda: oq.OHDx(),
    "o-HDy": lambda: oq.OHDy(),
    "o-SLD (bcts)": lambda: oq.OSLD(calibration="bcts"),
    "o-EDy": lambda: oq.OEDy(),
    "o-PDF": lambda: oq.OPDF(),
    "CC": lambda: oq.CC(),
    "PCC": lambda: oq.PCC(),
    "OQT": lambda: oq.OQT(),
    "ARC": lambda: oq.ARC(),
    "AdjustedML": lambda: oq.AdjustedML(),
}
# Those that fit their own classifiers.
TREES = {"OQT": oq.OQT, "ARC": oq.ARC}
ON_FEATURES = ("HDx", "o-HDx")
CLASSIFIERS = {
    "logistic": lambda: oq.classifiers.CrossFitted(
        make_pipeline(StandardScaler(), LogisticRegression(max_iter=300)), cv=10
    ),
    "forest": lambda: oq.classifiers.CrossFitted(RandomForestClassifier(50, min_samples_leaf=5, random_state=0), cv=10),
    "forest, out of bag": lambda: RandomForestClassifier(100, min_samples_leaf=5, oob_score=True, random_state=0),
}


def draw(y, n_samples, size, target, seed):
    """Return samples of the pool and the prevalences that are the truth, (B, n)."""
    if target == "sample":
        samples = oq.protocols.APP(n_samples, size, random_state=seed).draw(y)
        return samples, samples.prevalences
    rng = np.random.default_rng(seed)
    members = [np.flatnonzero(y == c) for c in range(N_CLASSES)]
    items, truth = [], []
    while len(items) < n_samples:
        p = uniform_simplex(1, N_CLASSES, rng)[0]
        counts = rng.multinomial(size, p)
        if (counts <= [len(m) for m in members]).all():
            items.append(
                np.concatenate([rng.choice(m, k, replace=False) for m, k in zip(members, counts, strict=True)])
            )
            truth.append(p)
    return oq.Samples.from_index(items, len(y)), np.array(truth)


def with_weights(samples, truth, y, w, target):
    """Return the samples with weights w (N,) of the pool's items, and what is true of them then, (B, n)."""
    samples = samples.weighted(Weights(w))
    return samples, samples.average(np.eye(N_CLASSES)[y]) if target == "sample" else truth


def one_split(X, y, classifier, methods, targets, n_samples, sizes, n_replicates, seed, spread=None):
    """Return {(method, target, size): what is covered}.

    That is: classes (B, n), cumulative classes (B, n - 1), mean class (B,), present classes; then widths (B, n) and the
    seconds per sample (1,).
    """
    a, b = train_test_split(np.arange(len(y)), test_size=0.5, stratify=y, random_state=seed)
    w = None if spread is None else np.random.default_rng([seed, 7]).lognormal(sigma=spread, size=len(y))
    given_weights = {} if w is None else {"sample_weight": w[a]}
    scorer = oq.PACC(CLASSIFIERS[classifier]()).fit(X[a], y[a], **given_weights)
    S, S_pool = scorer.held_out_.S, scorer.scores(X[b])
    codes = scorer.held_out_.codes
    found = {}
    for name in methods:
        if name in TREES:
            # They hold items out themselves.
            binary = "forest, out of bag" if classifier == "forest" else classifier
            quantifier = TREES[name](CLASSIFIERS[binary]()).fit(X[a], y[a], **given_weights)
            pool = quantifier.scores(X[b])
        else:
            quantifier = METHODS[name]()
            given, pool, labels = (X[a], X[b], y[a]) if name in ON_FEATURES else (S, S_pool, codes)
            quantifier.fit_scores(given, labels, **given_weights)
        for target, size in itertools.product(targets, sizes):
            samples, truth = draw(y[b], n_samples, size, target, seed)
            if w is not None:
                samples, truth = with_weights(samples, truth, y[b], w[b], target)
            start = time.perf_counter()
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", ConvergenceWarning)
                options = {"n_replicates": n_replicates, "random_state": seed}
                i = adapter().intervals(quantifier, pool, samples, LEVEL, target, **options)
            seconds = time.perf_counter() - start
            below = np.cumsum(truth, axis=1)[:, :-1]
            mean = truth @ np.unique(y)
            inside = _inside(truth, i["lower"], i["upper"])
            found[name, target, size] = (
                inside,
                _inside(below, i["cumulative_lower"][:, :-1], i["cumulative_upper"][:, :-1]),
                _inside(mean, i["mean_lower"], i["mean_upper"]),
                inside[truth > PRESENT],
                i["upper"] - i["lower"],
                np.array([seconds / len(samples)]),
            )
    return found


def _inside(truth, lower, upper):
    # Counts divided by the size may be off by a rounding error.
    return (lower <= truth + 1e-12) & (truth <= upper + 1e-12)


def main():
    """Print one table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", nargs="+", default=["fried", "metro"], choices=["fried", "metro", "beijing"])
    parser.add_argument("--classifiers", nargs="+", default=["logistic", "forest"], choices=list(CLASSIFIERS))
    parser.add_argument("--methods", nargs="+", default=list(METHODS), choices=list(METHODS))
    parser.add_argument("--targets", nargs="+", default=["sample", "population"])
    parser.add_argument("--splits", type=int, default=5)
    parser.add_argument("--samples", type=int, default=500, help="over all splits")
    parser.add_argument("--sizes", type=int, nargs="+", default=[500], help="of the samples")
    parser.add_argument("--replicates", type=int, default=200)
    parser.add_argument(
        "--weights", type=float, help="standard deviation of the logarithm of the weights; none without"
    )
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--tiny", action="store_true", help="seconds, for two methods")
    args = parser.parse_args()
    if args.tiny:
        args.methods, args.classifiers, args.splits, args.samples = ["PACC", "HDx", "SLD (bcts)"], ["logistic"], 1, 4
        args.sizes, args.replicates, args.data = [100], 20, ["fried"]
    print(
        "| data | classifier | method | size | target | mean | worst class | cumulative | mean class | present |",
        end="",
    )
    print(" width | ms/sample |")
    print("|" + "---|" * 12)
    for data in args.data:
        X, y = group_data.table(data)
        if args.tiny:
            kept = np.concatenate([np.flatnonzero(y == c)[:200] for c in range(N_CLASSES)])
            X, y = X[kept], y[kept]
        for classifier in args.classifiers:
            n_samples = args.samples // args.splits
            parts = Parallel(n_jobs=args.jobs)(
                delayed(one_split)(
                    X,
                    y,
                    classifier,
                    args.methods,
                    args.targets,
                    n_samples,
                    args.sizes,
                    args.replicates,
                    seed,
                    args.weights,
                )
                for seed in range(args.splits)
            )
            for name, size, target in itertools.product(args.methods, args.sizes, args.targets):
                inside, below, mean, present, width, seconds = (
                    np.concatenate(values) for values in zip(*(part[name, target, size] for part in parts), strict=True)
                )
                covered = inside.mean(), inside.mean(axis=0).min(), below.mean(), mean.mean(), present.mean()
                print(
                    f"| {data} | {classifier} | {name} | {size} | {target} | ",
                    " | ".join(f"{value:.1%}" for value in covered),
                    f" | {width.mean():.3f} | {1000 * seconds.mean():.0f} |",
                    sep="",
                    flush=True,
                )


if __name__ == "__main__":
    main()
