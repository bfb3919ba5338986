"""Parts of groups, labels with known probabilities, and planned widths.

    ORDINALQ_DATA=FOLDER python benchmarks/within_groups.py [--parts halves cells inclusion plan] [--choose]
    python benchmarks/within_groups.py --tiny      # synthetic groups, seconds, no file

Parts: "halves" compares random halves of one group, and parts whose mean class differs by 0.3; "cells" has errors and
coverage of real parts of groups; "inclusion" draws labels by uncertainty; "plan" compares planned widths with those
reached. Constants were chosen on the data of --choose.
"""

import os

os.environ.update(dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1"))

import argparse
import warnings

import group_data
import numpy as np
import pandas as pd
from group_labels import fitted
from real_groups import covered, nmd, normalized, synthetic

import ordinalq as oq
from ordinalq.inference.label_plan import labels_needed
from ordinalq.inference.predict import estimate

LEVEL, CHANGE, N_ITEMS, UNIFORM = 0.95, 0.3, 200, 0.2
POPULATION = oq.inference.IntervalOptions("population")


def row(*cells):
    """Print one row of a table."""
    print(f"| {' | '.join(map(str, cells))} |", flush=True)


def head(*cells):
    """Print the head of a table."""
    print()
    row(*cells)
    row(*["---"] * len(cells))


def large_groups(data, least):
    """Return the rows of each test group with at least that many items."""
    keys, sizes = np.unique(data.h, return_counts=True)
    return [np.flatnonzero(data.h == key) for key in keys[sizes >= least]]


def tilted(z, n_classes, change):
    """Return probabilities of items with codes z (N,) whose mean class is `change` away, to the side with more room."""
    values, counts = np.arange(n_classes), np.bincount(z, minlength=n_classes)
    side = -1 if z.mean() > (n_classes - 1) / 2 else 1
    low, high = 0.0, 30.0
    for _ in range(60):
        middle = (low + high) / 2
        p = counts * np.exp(side * middle * (values - values[-1] * (side > 0)))
        low, high = (middle, high) if abs(p @ values / p.sum() - z.mean()) < change else (low, middle)
    return p[z] / counts[z] / p.sum()


def compared(q, S, groups, halves, nested):
    """Return p-values of the difference of halves 0 and 1 of each group, and whether its interval excludes zero."""
    keys = {"group": groups, "half": halves} if nested else 2 * groups + halves
    samples = oq.Samples.from_groups(pd.DataFrame(keys) if nested else keys)
    found = estimate(q, q.summarize(S, samples, checks=False), LEVEL, POPULATION, None)
    pairs = [found.compare((g, 0), (g, 1)) if nested else found.compare(2 * g, 2 * g + 1) for g in np.unique(groups)]
    return np.array([[one.p_value[0], one.mean[0], one.mean_lower[0], one.mean_upper[0]] for one in pairs])


def trends(q, S, groups, periods):
    """Return p-values of the trend of each group over periods."""
    samples = oq.Samples.from_groups(pd.DataFrame({"group": groups, "period": periods}))
    found = estimate(q, q.summarize(S, samples, checks=False), LEVEL, POPULATION, None)
    place = np.array([group for group, _ in found.keys.tolist()])
    return np.array([found.take(place == group).trend().p_value[0] for group in np.unique(place)])


def halves(sets, repeats, least=40):
    """Print how often random halves of a group are called different, and parts whose mean class differs by 0.3."""
    head("groups", "comparisons", "random halves", "today", "thirds", "trend of 6", "0.3 apart", "today", "covered")
    for name, several in sets.items():
        cells = {key: [] for key in ("same", "same today", "thirds", "trend", "apart", "apart today", "inside")}
        for data in several:
            q, rng = fitted(data), np.random.default_rng(0)
            T = normalized(data.T)
            for _ in range(repeats):
                parts = [rng.permutation(rows) for rows in large_groups(data, least)]
                items, groups = np.concatenate(parts), np.repeat(np.arange(len(parts)), list(map(len, parts)))
                place = np.concatenate([np.arange(len(part)) / len(part) for part in parts])
                for key, nested in (("same", True), ("same today", False)):
                    cells[key] += (compared(q, T[items], groups, (place < 0.5) * 1, nested)[:, 0] < 0.05).tolist()
                cells["thirds"] += (compared(q, T[items], groups, (place < 0.2) * 1, True)[:, 0] < 0.05).tolist()
                cells["trend"] += (trends(q, T[items], groups, (6 * place).astype(int)) < 0.05).tolist()
                pairs = []
                for rows in parts:
                    p = tilted(data.z[rows], data.n_classes, CHANGE)
                    pairs += [rng.choice(rows, N_ITEMS), rng.choice(rows, N_ITEMS, p=p)]
                items = np.concatenate(pairs)
                groups = np.repeat(np.arange(len(parts)), 2 * N_ITEMS)
                side = np.tile(np.repeat([0, 1], N_ITEMS), len(parts))
                truth = np.array(
                    [-CHANGE if data.z[rows].mean() <= (data.n_classes - 1) / 2 else CHANGE for rows in parts]
                )
                found = compared(q, T[items], groups, side, True)
                cells["apart"] += (found[:, 0] < 0.05).tolist()
                cells["inside"] += ((found[:, 2] <= truth) & (truth <= found[:, 3])).tolist()
                cells["apart today"] += (compared(q, T[items], groups, side, False)[:, 0] < 0.05).tolist()
        row(name, len(cells["same"]), *(f"{np.mean(part):.1%}" for part in cells.values()))


def main():
    """Print the tables."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--parts", nargs="+", default=["halves", "cells", "inclusion", "plan"])
    parser.add_argument("--choose", action="store_true", help="the data that constants were chosen on")
    parser.add_argument("--tiny", action="store_true", help="synthetic groups, in seconds")
    given = parser.parse_args()
    warnings.simplefilter("ignore")
    if given.tiny:
        sets = {"synthetic": [synthetic(0)]}
    elif given.choose:
        sets = {
            "flights by day": [group_data.flights("choose 0")],
            "tweets by topic, 2016": [group_data.tweets("test2016")],
            "products, splits 0 and 1": [group_data.amazon("product", split) for split in (0, 1)],
        }
    else:
        sets = {
            "flights by day": [group_data.flights("other 0")],
            "tweets by topic, 2017": [group_data.tweets("test2017")],
            "products, splits 10 to 13": [group_data.amazon("product", split) for split in (10, 11, 12, 13)],
        }
    if "halves" in given.parts:
        halves(sets, 1 if given.tiny else 3)


if __name__ == "__main__":
    main()
