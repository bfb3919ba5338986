"""Labels of the group itself: coverage and width by the model of groups, by the labels alone, and by PPI.

    ORDINALQ_DATA=FOLDER python benchmarks/group_labels.py [--parts labels promised] [--seed 0]
    python benchmarks/group_labels.py --tiny          # synthetic groups, a few seconds, no file

Each test day, or ten pooled films, is a population, from which labelled and unlabelled items are drawn with
replacement; the truth is its distribution, intervals have level 95%. Next to the two kinds of intervals that
`predict_groups(labels=...)` gives stands prediction-powered inference with lambda = 1, cut to [0, 1];
tests/test_group_labels.py holds it to figures of ppi-python.
"""

import os

os.environ.update(dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1"))

import argparse
from dataclasses import replace
from typing import NamedTuple

import group_data
import numpy as np
from group_data import Groups
from real_groups import both, covered, equal_groups, nmd, normalized, synthetic

import ordinalq as oq
from ordinalq.inference.label_plan import labels_needed
from ordinalq.inference.predict import estimate

LEVEL = 0.95


class Drawn(NamedTuple):
    """Items of B groups: scores (N, n), groups (N,), labels 1..n with NaN if there is none (N,)."""

    S: np.ndarray
    groups: np.ndarray
    labelled: np.ndarray


def fitted(data: Groups, method=oq.GroupBLP):
    """Return a method that was fitted on the training items with their groups; labels are 1..n."""
    return method().fit_scores(normalized(data.S), data.y + 1, classes=np.arange(1, data.n_classes + 1), groups=data.g)


def populations(data: Groups, pooled, rng):
    """Return the items of each population: the test groups, or `pooled` of those with ten items, drawn at random."""
    keys, sizes = np.unique(data.h, return_counts=True)
    if pooled == 1:
        return [np.flatnonzero(data.h == key) for key in keys]
    keys = rng.permutation(keys[sizes >= 10])
    return [np.flatnonzero(np.isin(data.h, keys[i : i + pooled])) for i in range(0, len(keys) - pooled + 1, pooled)]


def drawn(data: Groups, known, others) -> Drawn:
    """Return labelled (B, m) and other items (B, U) as a user has them."""
    rows = np.hstack([known, others])
    labels = np.hstack([data.z[known] + 1.0, np.full(others.shape, np.nan)])
    return Drawn(normalized(data.T[rows.ravel()]), np.repeat(np.arange(len(rows)), rows.shape[1]), labels.ravel())


def estimates(quantifier, items: Drawn, **plan):
    """Estimate the groups through the package, from scores."""
    samples = oq.Samples.from_groups(items.groups)
    summary = quantifier.summarize(items.S, samples, labels=items.labelled)
    return estimate(quantifier, summary, LEVEL, oq.inference.IntervalOptions(**plan))


def prediction_powered(e, s, t, z=1.959963984540054):
    """Interval of the mean of e by prediction-powered inference with lambda = 1, cut to [0, 1]: its ends, (n,) each.

    e (m, n) are one-hot labels, s (m, n) and t (U, n) scores of the labelled and of the other items.
    """
    centre = t.mean(axis=0) + (e - s).mean(axis=0)
    half = z * np.sqrt(t.var(axis=0) / len(t) + (e - s).var(axis=0) / len(e))
    return np.clip(centre - half, 0, 1), np.clip(centre + half, 0, 1)


HEAD = (
    "| groups | labels | NMD: model | covered: classes / mean | width | width / PPI's | NMD: labels alone | covered "
    "| width | PPI: NMD | covered | width | auto: by labels | covered |\n|" + "---|" * 14
)


def labels(name, data: Groups, numbers, *, pooled=1, n_unlabelled=800, quantifier=None, seed=0):
    """Print coverage and width: by the model, by the labels alone, by prediction-powered inference."""
    quantifier = fitted(data) if quantifier is None else quantifier
    rng = np.random.default_rng(seed)
    groups, n = populations(data, pooled, rng), data.n_classes
    truth = np.array([np.bincount(data.z[rows], minlength=n) / len(rows) for rows in groups])
    for m in numbers:
        others = np.array([rng.choice(rows, n_unlabelled) for rows in groups])
        known = np.array([rng.choice(rows, m) for rows in groups], dtype=np.intp).reshape(len(groups), m)
        items = drawn(data, known, others)
        got = estimates(quantifier, items, estimand="population", basis="model")
        inside, mean, width = covered(got.bounds, truth)
        cells = [f"{nmd(got.prevalences, truth).mean():.4f}", both(inside, mean), f"{width.mean():.3f}"]
        if m:
            design = estimates(quantifier, items, estimand="population", basis="labels")
            S = items.S.reshape(len(groups), -1, n)
            ends = np.array(
                [prediction_powered(np.eye(n)[data.z[k]], s[:m], s[m:]) for k, s in zip(known, S, strict=True)]
            )
            low, high = ends[:, 0], ends[:, 1]
            inside, mean, wide = covered(design.bounds, truth)
            cells += [f"{width.mean() / (high - low).mean():.2f}", f"{nmd(design.prevalences, truth).mean():.4f}"]
            cells += [both(inside, mean), f"{wide.mean():.3f}"]
            ppi = S[:, m:].mean(axis=1) + np.eye(n)[data.z[known]].mean(axis=1) - S[:, :m].mean(axis=1)
            cells += [f"{nmd(ppi, truth).mean():.4f}"]
            cells += [f"{((low <= truth) & (truth <= high)).mean():.1%}", f"{(high - low).mean():.3f}"]
            either = estimates(quantifier, items, estimand="population")
            inside, mean, _ = covered(either.bounds, truth)
            cells += [f"{(either.basis == 'labels').mean():.0%}", both(inside, mean)]
        print(f"| {name} | {m} | " + " | ".join(cells + [""] * (12 - len(cells))) + " |", flush=True)


def labels_of_sample(name, data: Groups, numbers, *, pooled=1, quantifier=None, seed=0):
    """Print coverage and width for the items at hand, some of which are labelled, drawn without replacement."""
    quantifier = fitted(data) if quantifier is None else quantifier
    rng = np.random.default_rng(seed)
    groups, n = populations(data, pooled, rng), data.n_classes
    for m in numbers:
        some = [rng.permutation(rows) for rows in groups if len(rows) >= 2 * m]
        rows, position = np.concatenate(some), np.concatenate([np.arange(len(part)) for part in some])
        place = np.repeat(np.arange(len(some)), [len(part) for part in some])
        truth = np.array([np.bincount(data.z[part], minlength=n) / len(part) for part in some])
        items = Drawn(normalized(data.T[rows]), place, np.where(position < m, data.z[rows] + 1.0, np.nan))
        cells = []
        for basis in ("model", "labels"):
            got = estimates(quantifier, items, basis=basis)
            inside, mean, width = covered(got.bounds, truth)
            cells += [f"{nmd(got.prevalences, truth).mean():.4f}", both(inside, mean), f"{width.mean():.3f}"]
        print(f"| {name} | {len(some)} | {m} | " + " | ".join(cells) + " |", flush=True)


SAMPLE_HEAD = (
    "| groups | number | labels | NMD: model | covered: classes / mean | width | NMD: labels | covered | width |\n|"
    + "---|" * 9
)


def labels_of_unlike(name, data: Groups, numbers, n_samples, size, seed=0):
    """Labels of artificial samples, which are unlike the training groups of equal composition."""
    samples = oq.protocols.APP(n_samples, size, random_state=seed).draw(data.z)
    items = np.asarray(samples.items)
    asked = replace(data, T=data.T[items], z=data.z[items], h=np.repeat(np.arange(len(samples)), samples.sizes))
    labels(name, asked, numbers, quantifier=fitted(equal_groups(data, 100)), seed=seed)


def promised(name, data: Groups, widths, quantity="mean", *, seed=1):
    """Print widths that `labels_needed` promises for the items at hand, next to those reached with so many labels."""
    rng = np.random.default_rng(seed)
    samples, S = oq.Samples.from_groups(data.h), normalized(data.T)
    for method, bases in ((oq.GroupBLP, ("model", "labels")), (oq.PACC, ("labels",))):
        quantifier = fitted(data, method)
        summary = quantifier.summarize(S, samples, labels=[None] * len(S))
        for basis in bases:
            for width in widths:
                plan = oq.inference.IntervalOptions(basis=basis)
                needed = labels_needed(quantifier, summary, width, quantity, options=plan)
                chosen = needed.draw(data.h, random_state=rng)
                labelled = np.full(len(S), np.nan)
                labelled[chosen] = data.z[chosen] + 1.0
                got = estimates(quantifier, Drawn(S, data.h, labelled), basis=basis).bounds
                some = needed.labels > 0
                reached = got.mean_upper - got.mean_lower
                if quantity != "mean":
                    reached = (got.upper - got.lower)[:, quantity - 1]
                ratio = reached[some] / needed.width[some]
                counts = needed.labels[some]
                print(
                    f"| {name} | {method.__name__}, {basis} | {quantity} | {width} | {some.sum()} of {len(some)} | "
                    f"{np.median(counts):.0f} ({counts.min()} to {counts.max()}) | {needed.width[some].mean():.3f} | "
                    f"{reached[some].mean():.3f} | {(np.abs(ratio - 1) <= 0.15).mean():.0%} |",
                    flush=True,
                )


PROMISED_HEAD = (
    "| groups | method, basis | of | asked | groups that need labels | labels: median (range) | promised | reached "
    "| within 15% |\n|" + "---|" * 9
)


def limits(name, data: Groups, parts, *, at_least=10, at_most=100, method=oq.GroupBLP, seed=0):
    """Print groups with a large part of their items labelled: coverage, and estimates that the labels rule out.

    "absent" is the part of the classes without an item in the group whose interval holds zero.
    """
    quantifier, rng, n = fitted(data, method), np.random.default_rng(seed), data.n_classes
    groups = [rows for rows in populations(data, 1, rng) if at_least <= len(rows) <= at_most]
    for part in parts:
        some = [rng.permutation(rows) for rows in groups]
        rows, sizes = np.concatenate(some), np.array([len(r) for r in some])
        known = np.concatenate([np.arange(len(r)) < round(part * len(r)) for r in some])
        place = np.repeat(np.arange(len(some)), sizes)
        codes = data.z[rows]
        truth = np.array([np.bincount(data.z[r], minlength=n) / len(r) for r in some])
        least = np.zeros_like(truth)
        np.add.at(least, (place[known], codes[known]), 1)
        least, open_part = least / sizes[:, None], 1 - least.sum(axis=1) / sizes
        items = Drawn(normalized(data.T[rows]), place, np.where(known, codes + 1.0, np.nan))
        for basis in ("auto", "labels"):
            got = estimates(quantifier, items, basis=basis)
            inside, mean, width = covered(got.bounds, truth)
            beyond = (got.prevalences < least - 1e-9) | (got.prevalences > least + open_part[:, None] + 1e-9)
            alone = f"{(got.basis == 'labels').mean():.0%}"
            cells = [f"{nmd(got.prevalences, truth).mean():.4f}", both(inside, mean), f"{width.mean():.3f}"]
            absent = f"{inside[truth == 0].mean():.1%}" if (truth == 0).any() else ""
            cells += [absent, f"{beyond.any(axis=1).mean():.1%}"]
            print(
                f"| {name}, {method.__name__} | {len(some)} | {part:.0%} | {basis} | {alone} | "
                + " | ".join(cells)
                + " |",
                flush=True,
            )


LIMITS_HEAD = (
    "| groups | number | labelled | basis | by the labels alone | NMD | covered: classes / mean | width "
    "| absent classes covered | impossible estimates |\n|" + "---|" * 10
)


PARTS = ("labels", "promised", "limits")


def main():
    """Print the tables that were asked for."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--parts", nargs="+", choices=PARTS, default=PARTS)
    parser.add_argument("--part", default="report", help="of the flights and films, see group_data.py")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--tiny", action="store_true", help="synthetic groups, in seconds")
    args = parser.parse_args()
    large = synthetic(2, size=400)
    unlike = synthetic(0, n_groups=40, size=150, effect=0.0)
    if "labels" in args.parts:
        print("\nLabels of the group itself, of the population\n\n" + HEAD)
        if args.tiny:
            labels("synthetic", large, (0, 10, 30, 100), n_unlabelled=200)
            labels_of_unlike("synthetic, unlike", unlike, (30,), 20, 200)
            print("\nLabels of the group itself, of the sample\n\n" + SAMPLE_HEAD)
            labels_of_sample("synthetic", large, (10, 30, 100))
        else:
            labels("flights by day", group_data.flights(args.part), (0, 10, 30, 100, 300), seed=args.seed)
            labels("ten films", group_data.imdb(args.part), (0, 30, 100), pooled=10, seed=args.seed)
            pool = group_data.app_pool("fried", "forest", 0)
            labels_of_unlike("APP samples of fried", pool, (30, 100), 200, 500, seed=args.seed)
            print("\nLabels of the group itself, of the sample\n\n" + SAMPLE_HEAD)
            labels_of_sample("flights by day", group_data.flights(args.part), (10, 30, 100, 300), seed=args.seed)
            labels_of_sample("ten films", group_data.imdb(args.part), (10, 30, 100), pooled=10, seed=args.seed)
            for split in range(20, 26):
                data = group_data.amazon("product", split)
                labels_of_sample(f"Amazon by product, {split}", data, (10, 30, 100), seed=args.seed)
    if "promised" in args.parts:
        print("\nLabels needed: widths promised and reached\n\n" + PROMISED_HEAD)
        if args.tiny:
            promised("synthetic", large, (0.3,))
        else:
            promised("flights by day", group_data.flights(args.part), (0.5, 0.3, 0.2), seed=args.seed)
            promised("flights by day", group_data.flights(args.part), (0.1,), 4, seed=args.seed)

    if "limits" in args.parts:
        print("\nMany items of a group labelled\n\n" + LIMITS_HEAD)
        sets = {"synthetic": synthetic(2, size=40)} if args.tiny else {}
        if not args.tiny:
            sets = {"films": group_data.imdb(args.part), "flights by day": group_data.flights(args.part)}
        for name, data in sets.items():
            size = {"at_most": 2000} if name == "flights by day" else {}
            for method in (oq.GroupBLP, oq.PACC):
                limits(name, data, (0.1, 0.5, 0.7, 0.9), method=method, seed=args.seed, **size)


if __name__ == "__main__":
    main()
