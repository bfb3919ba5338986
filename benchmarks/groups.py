"""Estimates of a million scored items in 20,000 groups of 1 to 5000 items: time and memory of one process.

Run it with ``python benchmarks/groups.py``; ``--level 0.95`` adds intervals, ``--method SLD`` takes another method,
``--training-groups 200`` trains with so many groups (``--method GroupBLP --level 0.95``: intervals in closed form).
Scores are drawn, not predicted: the time of the classifier is not part of it. The memory is the peak of the process,
with the scores (80 MB) and the library itself.
"""

import os

os.environ.update(dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1"))

import argparse
import resource
import time

import numpy as np
from interface import adapter

import ordinalq as oq

N_ITEMS, N_GROUPS, N_CLASSES, LARGEST = 1_000_000, 20_000, 10, 5000


def scored_items(n_items, rng):
    """Return scores (N, n) around the true class, and the classes (N,)."""
    y = rng.integers(0, N_CLASSES, n_items)
    E = rng.exponential(size=(n_items, N_CLASSES))
    E *= np.exp(-np.abs(np.arange(N_CLASSES) - y[:, None]))
    return E / E.sum(axis=1, keepdims=True), y


def group_sizes(n_items, n_groups, rng):
    """Return sizes from 1 to 5000 whose sum is n_items, most of them small."""
    sizes = np.clip(np.round(rng.lognormal(2.6, 1.55, n_groups)), 1, LARGEST).astype(int)
    sizes[:2] = 1, LARGEST
    while (surplus := sizes.sum() - n_items) != 0:
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
    parser.add_argument("--training-groups", type=int, default=0, help="train with so many groups")
    parser.add_argument("--strings", action="store_true", help="groups are words instead of numbers")
    parser.add_argument("--chunks", type=int, default=0, help="add the items in so many chunks")
    parser.add_argument("--tiny", action="store_true", help="10,000 items in 200 groups")
    args = parser.parse_args()
    n_items, n_groups = (10_000, 200) if args.tiny else (N_ITEMS, N_GROUPS)
    rng = np.random.default_rng(0)
    S_train, y_train = scored_items(min(n_items, 20_000), rng)
    S, _ = scored_items(n_items, rng)
    groups = rng.permutation(np.repeat(np.arange(n_groups), group_sizes(n_items, n_groups, rng)))
    if args.strings:
        groups = np.array([f"product {g}" for g in groups])
    trained_with = rng.integers(0, args.training_groups, len(y_train)) if args.training_groups else None
    quantifier = getattr(oq, args.method)().fit_scores(S_train, y_train, groups=trained_with)
    options = {"level": args.level, "n_replicates": args.replicates}
    start, start_cpu = time.perf_counter(), time.process_time()
    if args.chunks:
        parts = np.array_split(np.arange(n_items), args.chunks)
        found = adapter().chunks(quantifier, S, groups, parts, **options)
    else:
        found = adapter().groups(quantifier, S, groups, **options)
    seconds, cpu = time.perf_counter() - start, time.process_time() - start_cpu
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    sizes = found["n_items"]
    print(
        f"{args.method}, {sizes.sum():,} items in {len(sizes):,} groups of {sizes.min()} to {sizes.max()}, "
        f"level {args.level}: {seconds:.1f} s ({cpu:.1f} s of processor time), peak {memory:.0f} MB"
    )


if __name__ == "__main__":
    main()
