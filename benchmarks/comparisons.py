"""Comparisons of two groups and tests of change: whether stated probabilities, intervals and p-values are right.

    ORDINALQ_DATA=FOLDER python benchmarks/comparisons.py [--parts same differences days change] [--methods PACC ...]
    python benchmarks/comparisons.py --tiny          # synthetic items, seconds, no file

Scores are those of group_data.py: fried, three halves of two classifiers, and flights by day. `same`: pairs of groups
of one population, drawn uniformly for each pair; the probability that the first is higher must be uniform
(Kolmogorov-Smirnov). `differences`: pairs of groups of two populations; how often intervals of their difference hold.
`days`: pairs of test days, by models that were trained with days. `change`: series of groups of one population, of
different sizes; the p-values of `trend` must be uniform.
"""

import os

os.environ.update(dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1"))

import argparse
from dataclasses import replace

import group_data
import numpy as np
from real_groups import fit, normalized, shares, synthetic
from scipy.stats import kstest

import ordinalq as oq
from ordinalq.inference.predict import estimate
from ordinalq.samples.keys import Keys
from ordinalq.simplex import uniform_simplex

LEVEL = 0.95
SIZE = 500
METHODS = {
    "PACC": oq.PACC,
    "SLD (bcts)": lambda: oq.SLD(calibration="bcts"),
    "o-PACC": oq.OPACC,
    "AdjustedML": oq.AdjustedML,
    "GroupBLP": oq.GroupBLP,
}
PARTS = ("same", "differences", "days", "change")


def drawn(z, P, sizes, rng):
    """Return samples whose compositions are drawn from populations P (B, n) of the items with codes z."""
    members = [np.flatnonzero(z == c) for c in range(P.shape[1])]
    items = [
        np.concatenate([rng.choice(m, k) for m, k in zip(members, rng.multinomial(N, p), strict=True)])
        for p, N in zip(P, sizes, strict=True)
    ]
    return oq.Samples.from_index(items, len(z))


def answered(quantifier, data, samples, of):
    """Return estimates of numbered groups with intervals."""
    summary = quantifier.summarize(normalized(data.T), samples)
    found = estimate(quantifier, summary, LEVEL, oq.inference.IntervalOptions(of))
    return replace(found, keys=Keys.of(np.arange(len(samples)))[0])


def pairs_of(estimates, pairs):
    """Compare pairs one by one: probabilities, differences, and intervals of the mean class and the cumulative."""
    found = [estimates.compare(int(a), int(b)) for a, b in pairs]
    names = ("probability", "mean_lower", "mean_upper", "cumulative_lower", "cumulative_upper")
    return {name: np.concatenate([getattr(one, name) for one in found]) for name in names}


def held(found, D):
    """Return how often the true differences D (K, n) of shares lie in the intervals: mean class, cumulative."""
    n = D.shape[1]
    mean, below = D @ np.arange(1.0, n + 1), np.cumsum(D, axis=1)[:, :-1]
    of_mean = (found["mean_lower"] <= mean + 1e-9) & (mean <= found["mean_upper"] + 1e-9)
    low, high = found["cumulative_lower"][:, :-1], found["cumulative_upper"][:, :-1]
    return of_mean.mean(), ((low <= below + 1e-9) & (below <= high + 1e-9)).mean()


def same(pools, methods, n_pairs, size):
    """Groups of one population."""
    print(f"\nPairs of groups of one population, {size} items each\n\n| scores | method | pairs | KS p | below .05 |")
    print("|" + "---|" * 5)
    for name in methods:
        for pool, parts in pools.items():
            found = []
            for seed, data in enumerate(parts):
                rng = np.random.default_rng(seed)
                K = -(-n_pairs // len(parts))
                P = np.repeat(uniform_simplex(K, data.n_classes, rng), 2, axis=0)
                samples = drawn(data.z, P, np.full(len(P), size), rng)
                got = answered(fit(data, METHODS[name], groups=False), data, samples, "population")
                found.append(pairs_of(got, np.arange(2 * K).reshape(K, 2))["probability"])
            probability = np.concatenate(found)
            sided = 2 * np.minimum(probability, 1 - probability)
            p = kstest(probability, "uniform").pvalue
            print(f"| {pool} | {name} | {len(probability)} | {p:.3f} | {(sided < 0.05).mean():.1%} |", flush=True)
    return


def differences(pools, methods, n_pairs, size):
    """Groups of two populations."""
    print(f"\nPairs of groups of two populations, {size} items each; intervals of the difference hold\n")
    print("| scores | method | of | pairs | mean class | cumulative shares |\n|" + "---|" * 6)
    for name in methods:
        for pool, parts in pools.items():
            for of in ("sample", "population"):
                covered = []
                for seed, data in enumerate(parts):
                    rng = np.random.default_rng(seed)
                    K = -(-n_pairs // len(parts))
                    P = uniform_simplex(2 * K, data.n_classes, rng)
                    samples = drawn(data.z, P, np.full(2 * K, size), rng)
                    truth = P if of == "population" else shares(data.z, samples, data.n_classes)
                    got = answered(fit(data, METHODS[name], groups=False), data, samples, of)
                    pairs = np.arange(2 * K).reshape(K, 2)
                    covered.append(held(pairs_of(got, pairs), truth[pairs[:, 0]] - truth[pairs[:, 1]]))
                mean, below = np.mean(covered, axis=0)
                print(f"| {pool} | {name} | {of} | {n_pairs} | {mean:.1%} | {below:.1%} |", flush=True)


def days(sets, methods, n_pairs):
    """Pairs of real groups, by models that were trained with groups."""
    print("\nPairs of test groups, models trained with groups; intervals of the realized difference hold\n")
    print("| groups | method | pairs | mean class | cumulative shares |\n|" + "---|" * 5)
    for set_name, data in sets.items():
        samples = oq.Samples.from_groups(data.h)
        truth = shares(data.z, samples, data.n_classes)
        for name in methods:
            got = answered(fit(data, METHODS[name]), data, samples, "sample")
            rng = np.random.default_rng(0)
            pairs = np.array([rng.choice(len(samples), 2, replace=False) for _ in range(n_pairs)])
            mean, below = held(pairs_of(got, pairs), truth[pairs[:, 0]] - truth[pairs[:, 1]])
            print(f"| {set_name} | {name} | {n_pairs} | {mean:.1%} | {below:.1%} |", flush=True)


def change(pools, methods, n_series, n_groups, size):
    """Series of groups of one population."""
    print(f"\nSeries of {n_groups} groups of one population, {size // 2} to {2 * size} items; p-values of trend\n")
    print("| scores | method | series | KS p, shares | below .05 | KS p, mean class | below .05 |\n|" + "---|" * 7)
    for name in methods:
        for pool, parts in pools.items():
            found = []
            for seed, data in enumerate(parts):
                rng = np.random.default_rng(seed)
                K = -(-n_series // len(parts))
                P = np.repeat(uniform_simplex(K, data.n_classes, rng), n_groups, axis=0)
                sizes = rng.integers(size // 2, 2 * size, len(P))
                got = answered(fit(data, METHODS[name], groups=False), data, drawn(data.z, P, sizes, rng), "population")
                for k in range(K):
                    tested = got.take(slice(k * n_groups, (k + 1) * n_groups)).trend()
                    found.append((tested.p_value[0], tested.mean_p_value[0]))
            shares_p, mean_p = np.array(found).T
            cells = [f"{kstest(p, 'uniform').pvalue:.3f} | {(p < 0.05).mean():.1%}" for p in (shares_p, mean_p)]
            print(f"| {pool} | {name} | {len(found)} | {' | '.join(cells)} |", flush=True)


def main():
    """Print the tables that were asked for."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--parts", nargs="+", choices=PARTS, default=PARTS)
    parser.add_argument("--methods", nargs="+", choices=METHODS, default=list(METHODS))
    parser.add_argument("--pairs", type=int, default=500)
    parser.add_argument("--tiny", action="store_true", help="synthetic items, in seconds")
    args = parser.parse_args()
    if args.tiny:
        pools = {"synthetic": [synthetic(0, n_groups=20, size=80, effect=0.0)]}
        sets = {"synthetic": synthetic(1, n_groups=30)}
        args.methods, args.pairs, size = ["PACC", "GroupBLP"], 6, 60
    else:
        pools = {f"fried, {c}": [group_data.app_pool("fried", c, s) for s in range(3)] for c in ("logistic", "forest")}
        sets, size = {}, SIZE
        if "days" in args.parts:
            sets = {"flights": group_data.flights(), "flights, another half": group_data.flights("other 0")}
    if "same" in args.parts:
        same(pools, args.methods, args.pairs, size)
    if "differences" in args.parts:
        differences(pools, args.methods, args.pairs, size)
    if "days" in args.parts:
        days(sets, [name for name in args.methods if name in ("PACC", "GroupBLP", "AdjustedML")], 2 * args.pairs)
    if "change" in args.parts:
        change(pools, args.methods, args.pairs, 12 if not args.tiny else 4, size)


if __name__ == "__main__":
    main()
