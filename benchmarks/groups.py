"""Estimates of a million scored items in 20,000 groups of 1 to 5000 items: time and memory of one process.

Run it with ``python benchmarks/groups.py``; ``--level 0.95`` adds intervals, ``--method SLD`` takes another method.
Scores are drawn, not predicted: the time of the classifier is not part of it. The memory is the peak of the process,
with the scores (80 MB) and the library itself.
"""

import os

os.environ.update(dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1"))

import argparse
import resource
import time

import numpy as np

import ordinalq as oq
from ordinalq.methods.streaming import GroupTotals

N_ITEMS, N_GROUPS, N_CLASSES, LARGEST = 1_000_000, 20_000, 10, 5000


def scored_items(n_items, rng):
    """Return scores (N, n) around the true class, and the classes (N,)."""
    y = rng.integers(0, N_CLASSES, n_items)
    E = rng.exponential(size=(n_items, N_CLASSES))
    E *= np.exp(-np.abs(np.arange(N_CLASSES) - y[:, None]))
    return E / E.sum(axis=1, keepdims=True), y


def group_sizes(rng):
    """Return 20,000 sizes from 1 to 5000 whose sum is a million, most of them small."""
    sizes = np.clip(np.round(rng.lognormal(2.6, 1.55, N_GROUPS)), 1, LARGEST).astype(int)
    sizes[:2] = 1, LARGEST
    while (surplus := sizes.sum() - N_ITEMS) != 0:
        free = np.flatnonzero((sizes > 1) if surplus > 0 else (sizes < LARGEST))[2:]
        chosen = rng.choice(free, min(abs(surplus), len(free)), replace=False)
        sizes[chosen] -= np.sign(surplus)
    return sizes


def main():
    """Print seconds and megabytes."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--method", default="OPACC")
    parser.add_argument("--level", type=float)
    parser.add_argument("--replicates", type=int, default=200)
    parser.add_argument("--strings", action="store_true", help="groups are words instead of numbers")
    parser.add_argument("--portions", type=int, default=0, help="add the items in so many portions")
    args = parser.parse_args()
    rng = np.random.default_rng(0)
    S_train, y_train = scored_items(20_000, rng)
    S, _ = scored_items(N_ITEMS, rng)
    groups = rng.permutation(np.repeat(np.arange(N_GROUPS), group_sizes(rng)))
    if args.strings:
        groups = np.array([f"product {g}" for g in groups])
    quantifier = getattr(oq, args.method)().fit_scores(S_train, y_train)
    start, start_cpu = time.perf_counter(), time.process_time()
    if args.portions:
        totals = GroupTotals(quantifier)
        for part in np.array_split(np.arange(N_ITEMS), args.portions):
            totals.add(S[part], groups[part])
        frame = totals.table(level=args.level, n_replicates=args.replicates)
    else:
        frame = quantifier.predict_groups_scores(S, groups, level=args.level, n_replicates=args.replicates)
    seconds, cpu = time.perf_counter() - start, time.process_time() - start_cpu
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    sizes = frame["n_items"]
    print(
        f"{args.method}, {sizes.sum():,} items in {len(frame):,} groups of {sizes.min()} to {sizes.max()}, "
        f"level {args.level}: {seconds:.1f} s ({cpu:.1f} s of processor time), peak {memory:.0f} MB"
    )


if __name__ == "__main__":
    main()
