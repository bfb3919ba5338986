"""Labels of all groups against the model: how often it is given up, and what estimates are then worth.

    ORDINALQ_DATA=FOLDER python benchmarks/drift_labels.py [--draws 5]

SemEval tweets by topic, whose test topics of 2016 and 2017 differ from the training topics as a whole; and groups that
do not: other flights, films, products and months. Some labels are drawn in every group.
"""

import os

os.environ.update(dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1"))

import argparse

import group_data
import numpy as np
import pandas as pd
from group_data import Groups, cached, read, scored, texts
from group_labels import Drawn, estimates, fitted
from real_groups import both, covered, nmd, normalized, synthetic
from sklearn.linear_model import LogisticRegression

import ordinalq as oq
from ordinalq.inference.labels import CONTRADICTED

HEAD = (
    "| groups | number | labels each | given up | NMD: auto | model | labels | covered: auto | model | labels |\n|"
    + "---|" * 10
)


def tweets(test: str) -> Groups:
    """Return tweets by topic: those of train, dev and devtest train, those of a later test are asked about."""

    def make() -> Groups:
        frame = read("semeval_tweets")
        y, g = frame["label"].to_numpy().astype(int), pd.factorize(frame["topic"])[0]
        y = y - y.min()
        train = np.flatnonzero(frame["part"].isin(["train", "dev", "devtest"]))
        asked = np.flatnonzero(frame["part"] == test)
        X, X_test = texts(frame["text"].iloc[train], frame["text"].iloc[asked], 2)
        model = LogisticRegression(C=3, max_iter=1000)
        return scored("", model, X, y[train], g[train], X_test, y[asked], g[asked])

    return cached(f"tweets_{test}", make)


def drift(name, data: Groups, numbers, draws, at_least=20):
    """Print how often the labels contradict the model, and errors and coverage by both and by the choice."""
    keys, sizes = np.unique(data.h, return_counts=True)
    chosen = [np.flatnonzero(data.h == key) for key in keys[sizes >= at_least]]
    quantifier = fitted(data)
    rows = np.concatenate(chosen)
    place = np.repeat(np.arange(len(chosen)), [len(r) for r in chosen])
    truth = np.array([np.bincount(data.z[r], minlength=data.n_classes) / len(r) for r in chosen])
    S = normalized(data.T[rows])
    for m in numbers:
        given_up, cells = [], {basis: [] for basis in ("auto", "model", "labels")}
        for seed in range(draws):
            rng = np.random.default_rng(seed)
            known = np.concatenate([rng.permutation(len(r)) < m for r in chosen])
            items = Drawn(S, place, np.where(known, data.z[rows] + 1.0, np.nan))
            evidence = quantifier.collect(quantifier.summarize(S, oq.Samples.from_groups(place), labels=items.labelled))
            given_up.append(evidence.p_value(quantifier.group_model_.n_groups) < CONTRADICTED)
            for basis in cells:
                got = estimates(quantifier, items, basis=basis)
                inside, mean, _ = covered(got.bounds, truth)
                cells[basis].append((nmd(got.prevalences, truth).mean(), inside, mean))
        errors = [f"{np.mean([e for e, _, _ in part]):.4f}" for part in cells.values()]
        held = [both(np.array([i for _, i, _ in part]), np.array([k for _, _, k in part])) for part in cells.values()]
        told = f"{sum(given_up)} of {draws}"
        print(f"| {name} | {len(chosen)} | {m} | {told} | " + " | ".join(errors + held) + " |", flush=True)


def main():
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--draws", type=int, default=5)
    parser.add_argument("--numbers", type=int, nargs="+", default=[3, 10, 30])
    parser.add_argument("--tiny", action="store_true", help="synthetic groups, in seconds")
    args = parser.parse_args()
    print(HEAD)
    if args.tiny:
        drift("synthetic", synthetic(0, n_groups=20), [10], 1)
        return
    for year in (2016, 2017):
        drift(f"tweets {year}", tweets(f"test{year}"), args.numbers, args.draws)
    for part in ("report", "choose 0", "choose 1", "other 0", "other 1"):
        drift(f"flights, {part}", group_data.flights(part), args.numbers, args.draws)
    for part in ("report", "choose 0", "choose 1"):
        drift(f"films, {part}", group_data.imdb(part), args.numbers, args.draws)
    for by in ("product", "month"):
        for split in range(5):
            drift(f"Amazon by {by}, {split}", group_data.amazon(by, split), args.numbers, args.draws)


if __name__ == "__main__":
    main()
