"""Consistency of estimates and intervals, and groups that are estimated without training groups.

    ORDINALQ_DATA=FOLDER python benchmarks/one_answer.py [--parts levels default groups] [--splits 10 11 ...]
    python benchmarks/one_answer.py --tiny      # synthetic groups, seconds, no file

Parts: "levels" counts estimates that depend on the level or lie on an end of their interval; "default" measures errors
and coverage of AutoQuantifier under APP and NPP; "groups" compares AutoQuantifier that was fitted without groups
and estimates groups with the same fitted with groups. The coverage of all methods is measured by coverage.py.
"""

import os

os.environ.update(dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1"))

import argparse
import warnings

import beyond
import group_data
import numpy as np
from real_groups import asked, covered, fit, nmd, shares, synthetic
from sklearn.model_selection import train_test_split

import ordinalq as oq
from ordinalq.inference.predict import estimate

LEVEL, USUAL_SIZE, N_GROUPS = 0.95, 20, 10_000
EFFECT = oq.AutoQuantifier().group_effect
TABLES = ("fried", "beijing", "metro")
ESTIMANDS = ("sample", "population")
SCORED = [e.cls for e in oq.catalog() if e.cls().traits.input_kind == "scores" and e.cls().traits.accepts_scores]
SETTINGS = [(protocol, size) for protocol in ("APP", "NPP") for size in (100, 1000)]


def row(*cells):
    """Print one row of a table."""
    print(f"| {' | '.join(map(str, cells))} |", flush=True)


def head(*cells):
    """Print the head of a table."""
    print()
    row(*cells)
    row(*["---"] * len(cells))


def on_ends(estimates):
    """Return how many estimates lie outside their interval, and how many on an end of it that is inside (0, 1)."""
    P, low, high = estimates.prevalences, estimates.lower, estimates.upper
    ends = ((low >= P) & (low > 0)) | ((high <= P) & (high < 1))
    return int(((low > P) | (high < P)).sum()), int(ends.sum())


def levels(pools, n_groups):
    """Compare estimates with and without a level, and count those on an end of their interval."""
    print(
        "\n| pool | method | estimand | largest difference with and without level | outside | on an end |\n|"
        + "---|" * 6
    )
    for name, data in pools.items():
        S, samples, _ = asked(data)
        if len(samples) > n_groups:
            samples = samples[:n_groups]
        for method in SCORED:
            # Repeated iterations of all replicates take minutes for thousands of groups.
            some = (
                samples[: max(1, n_groups // 100)] if method in (oq.OSLD, oq.EDy, oq.OEDy, oq.HDy, oq.OHDy) else samples
            )
            q = fit(data, method, groups=False)
            summary = q.summarize(S, some, checks=False)
            for estimand in ESTIMANDS:
                options = oq.inference.IntervalOptions(estimand=estimand, n_replicates=40)
                got = estimate(q, summary, LEVEL, options)
                apart = np.abs(estimate(q, summary, None, options).prevalences - got.prevalences).max()
                outside, ends = on_ends(got)
                row(f"{name}, {len(some)} groups", method.__name__, estimand, f"{apart:.1e}", outside, ends)


def drawn_groups(name, n_groups):
    """Return the pool of a table whose items are in drawn groups of 5 to 50."""
    data = group_data.app_pool(name, "logistic", 0)
    rng = np.random.default_rng(0)
    items = rng.integers(len(data.z), size=28 * n_groups)
    keys = np.repeat(np.arange(n_groups), 28)[: len(items)]
    return group_data.Groups(data.S, data.y, data.g, data.T[items], data.z[items], keys)


def default(names, split, n_samples):
    """Print errors and coverage of the default under APP and NPP."""
    head("data", "protocol", "size", "NMD", "classes", "mean class", "width")
    for name in names:
        arrays = beyond.kept(f"one_answer_{name}_{split}", lambda name=name: scored(name, split))
        n = arrays["S"].shape[1]
        q = oq.AdjustedML().fit_scores(arrays["S"], arrays["y"], classes=np.arange(n))
        for protocol, size in SETTINGS:
            drawer = getattr(oq.protocols, protocol)(n_samples, size, small_pool="repeat", random_state=11)
            samples = drawer.draw(arrays["z"])
            got, truth = estimate(q, q.summarize(arrays["T"], samples), LEVEL), samples.prevalences
            inside, mean, width = covered(got.bounds, truth)
            error = nmd(got.prevalences, truth).mean()
            cells = (f"{error:.4f}", f"{inside.mean():.1%}", f"{mean.mean():.1%}", f"{width.mean():.4f}")
            row(name, protocol, size, *cells)


def scored(name, split):
    """Return held-out scores and codes of the training items, and those of the pool, by the default's stack.

    Tables have ten classes of at least 1000 items, so that few samples repeat an item.
    """
    if name in TABLES:
        X, y = group_data.table(name)
        train, pool = train_test_split(np.arange(len(y)), test_size=0.5, stratify=y, random_state=split)
        X_pool, z = X[pool], y[pool]
        q = oq.AutoQuantifier().fit(X[train], y[train])
    else:
        data = beyond.load(name, split)
        q = oq.AutoQuantifier().fit(*data.train)
        X_pool, z = data.test.X, np.searchsorted(q.classes_, data.test.y)
    return {"S": q.held_out_.S, "y": q.held_out_.codes, "T": q.scores(X_pool), "z": z}


def group_sets(splits):
    """Return {name: functions that return the data for a budget of the stack} of the four kinds of groups."""
    return {
        "Amazon by product": [lambda stack, s=s: group_data.amazon("product", s, stack) for s in splits],
        "Amazon by month": [lambda stack, s=s: group_data.amazon("month", s, stack) for s in splits],
        "IMDB by film": [lambda stack: group_data.imdb(stack=stack)],
        "flights by day": [lambda stack: group_data.flights(stack=stack)],
    }


def answers(data, quantifier, *, groups):
    """Return errors, coverage and widths of the test groups of at least 20 items."""
    q = fit(data, lambda: quantifier, groups=groups).for_groups()
    S, samples, z = asked(data, USUAL_SIZE)
    truth = shares(z, samples, data.n_classes)
    got = estimate(q, q.summarize(S, samples), LEVEL)
    return (nmd(got.prevalences, truth), *covered(got.bounds, truth))


def without_groups(sets):
    """Compare models fitted with groups, without them, and without them and without a stated effect."""
    kinds = {
        "with groups": ("balanced", oq.GroupBLP(), True),
        "without": ("balanced-items", oq.AdjustedML(group_effect=EFFECT), False),
        "without, group_effect=None": ("balanced-items", oq.AdjustedML(), False),
    }
    head("groups", "fitted", "NMD", "ratio", "classes", "mean class", "width", "ratio")
    ratios = []
    for name, makers in sets.items():
        first = None
        for kind, (stack, quantifier, groups) in kinds.items():
            parts = [answers(make(stack), quantifier, groups=groups) for make in makers]
            error, inside, mean, width = (np.concatenate(values).mean() for values in zip(*parts, strict=True))
            first = (error, width) if first is None else first
            ratio = error / first[0]
            ratios += [ratio] if kind == "without" else []
            cells = (f"{error:.4f}", f"{ratio:.2f}", f"{inside:.1%}", f"{mean:.1%}", f"{width:.3f}")
            row(name, kind, *cells, f"{width / first[1]:.2f}")
    mean = np.exp(np.mean(np.log(ratios)))
    print(f"\nRatio of NMD without and with groups: geometric mean {mean:.3f}, largest {max(ratios):.2f}")


def drawn_as_groups(names, n_samples):
    """Measure what the stated effect costs if the groups are APP samples."""
    print(
        "\n| pool | size | NMD, group_effect=None | NMD, stated effect | classes covered | width, none | stated |\n|"
        + "---|" * 7
    )
    for name in names:
        data = group_data.app_pool(name, "forest", 0)
        plain = fit(data, oq.AdjustedML, groups=False)
        stated = fit(data, lambda: oq.AdjustedML(group_effect=EFFECT), groups=False).for_groups()
        S = data.T.astype(float) / data.T.sum(axis=1, keepdims=True)
        for size in (100, 1000):
            samples = oq.protocols.APP(n_samples, size, small_pool="repeat", random_state=size).draw(data.z)
            truth = samples.prevalences
            a, b = (estimate(q, q.summarize(S, samples), LEVEL) for q in (plain, stated))
            errors = (nmd(one.prevalences, truth).mean() for one in (a, b))
            widths = ((one.upper - one.lower).mean() for one in (a, b))
            inside = covered(b.bounds, truth)[0].mean()
            print(
                f"| {name} | {size} | "
                + " | ".join(f"{e:.4f}" for e in errors)
                + f" | {inside:.1%} | "
                + " | ".join(f"{w:.3f}" for w in widths)
                + " |",
                flush=True,
            )


def main():
    """Print the tables."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--parts", nargs="+", default=["levels", "default", "groups"])
    parser.add_argument(
        "--splits", type=int, nargs="+", default=list(range(10, 20)), help="of Amazon's products and months"
    )
    parser.add_argument("--split", type=int, default=3, help="of the data sets of part default")
    parser.add_argument("--tiny", action="store_true")
    args = parser.parse_args()
    warnings.simplefilter("ignore")
    if args.tiny:
        levels({"synthetic": synthetic(0, n_groups=30)}, 40)
        without_groups({"synthetic": [lambda _: synthetic(0, n_groups=30)]})
        return
    if "levels" in args.parts:
        levels({"fried": drawn_groups("fried", N_GROUPS), "films": group_data.imdb()}, N_GROUPS)
    if "default" in args.parts:
        default([*TABLES, "amazon_kindle_store_sample"], args.split, 300)
    if "groups" in args.parts:
        without_groups(group_sets(args.splits))
        drawn_as_groups(["fried", "beijing"], 300)


if __name__ == "__main__":
    main()
