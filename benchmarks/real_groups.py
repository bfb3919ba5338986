"""Real groups: estimates and intervals for products, months, films and days, beside PCC, CC, PACC and doing nothing.

    ORDINALQ_DATA=FOLDER python benchmarks/real_groups.py [--parts table small ...] [--splits 20]
    python benchmarks/real_groups.py --tiny          # synthetic groups, a few seconds, no file

The files are described in data.md. Classifiers are fitted once, see group_data.py. The truth is the realized prevalence
of a group, intervals have level 95 %. Differences carry paired standard errors over groups, those of Amazon clustered
by product or month, which occur in several splits; a difference within two of them is a tie.
"""

import os

os.environ.update(dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1"))

import argparse
import resource
import time
from dataclasses import replace
from typing import NamedTuple

import group_data
import numpy as np
from group_data import Groups

import ordinalq as oq
from ordinalq.bounds import Bounds
from ordinalq.effects.bounds import bounds
from ordinalq.effects.features import logits_pay, with_logits
from ordinalq.effects.learn import learn, stated, weak
from ordinalq.effects.model import GroupModel
from ordinalq.effects.predict import predict
from ordinalq.effects.sums import GroupSums

RIVALS = ("PCC", "training", "CC", "PACC")
ROUNDING = 1e-9


class Trial(NamedTuple):
    """One set of test groups: keys, sizes, truth (B, n), our prediction and bounds, and the rivals' estimates."""

    keys: np.ndarray
    sizes: np.ndarray
    truth: np.ndarray
    estimate: np.ndarray
    bounds: Bounds
    unlike: np.ndarray
    rivals: dict[str, np.ndarray]


class Fitted(NamedTuple):
    """A model of the groups, and what it takes of scores."""

    model: GroupModel
    features: object


def fit(data: Groups, kind="learned", rows=None) -> Fitted:
    """Learn from the training items (or some `rows` of them): posteriors, and logits where there are groups enough."""
    rows = slice(None) if rows is None else rows
    S, y = data.S[rows].astype(float), data.y[rows]
    g = np.unique(data.g[rows], return_inverse=True)[1]
    make = {"learned": learn, "weak": weak, "stated": stated}[kind]
    model = make(GroupSums.of(S, y, g, data.n_classes))
    if logits_pay(data.n_classes, len(y), model.n_groups if kind == "learned" else None):
        return Fitted(make(GroupSums.of(with_logits(S), y, g, data.n_classes)), with_logits)
    return Fitted(model, lambda S: S.astype(float))


def average(F, samples):
    """Return the means of F over the samples, (B, d)."""
    return np.asarray(samples.average(F))


def run(data: Groups, fitted: Fitted | None = None, rivals=RIVALS) -> Trial:
    """Estimate the test groups."""
    fitted = fit(data) if fitted is None else fitted
    samples = oq.Samples.from_groups(data.h)
    keys, sizes = np.unique(data.h, return_counts=True)
    truth = average(np.eye(data.n_classes)[data.z], samples)
    got = predict(fitted.model, average(fitted.features(data.T), samples), sizes)
    S, T = normalized(data.S), normalized(data.T)
    others = {}
    for name in rivals:
        if name == "training":
            others[name] = np.tile(np.bincount(data.y, minlength=data.n_classes) / len(data.y), (len(keys), 1))
        else:
            others[name] = getattr(oq, name)().fit_scores(S, data.y).predict_scores(T, samples)
    return Trial(keys, sizes, truth, got.prevalences, bounds(got), got.unlike, others)


def normalized(S):
    """Return scores in double precision that sum to one."""
    S = S.astype(float)
    return S / S.sum(axis=1, keepdims=True)


def nmd(P, T):
    """Normalized match distance of each row."""
    return np.abs(np.cumsum(P - T, axis=1)[:, :-1]).sum(axis=1) / (P.shape[1] - 1)


def mean_error(P, T):
    """Absolute error of the mean class, in classes."""
    return np.abs((P - T) @ np.arange(1, P.shape[1] + 1))


def covered(trial_bounds: Bounds, truth):
    """Return whether classes (B, n) and mean class (B,) are covered, and the widths (B, n)."""
    b, mean = trial_bounds, truth @ np.arange(1, truth.shape[1] + 1)
    inside = (b.lower <= truth + ROUNDING) & (truth <= b.upper + ROUNDING)
    return inside, (b.mean_lower <= mean + ROUNDING) & (mean <= b.mean_upper + ROUNDING), b.upper - b.lower


def both(inside, mean):
    """Coverage of the classes and of the mean class."""
    return f"{inside.mean():.1%} / {mean.mean():.1%}"


def standard_error(difference, keys):
    """Standard error of a mean whose terms with the same key are dependent."""
    totals = np.bincount(np.unique(keys, return_inverse=True)[1], weights=difference - difference.mean())
    m = len(totals)
    return np.sqrt((totals**2).sum() * m / max(m - 1, 1)) / len(difference)


def line(name, trials, chosen, error=nmd):
    """Print one line of the table over the chosen groups of all trials."""
    parts = [(t, chosen(t.sizes)) for t in trials]
    keys = np.concatenate([t.keys[c] for t, c in parts])
    ours = np.concatenate([error(t.estimate, t.truth)[c] for t, c in parts])
    rivals = {r: np.concatenate([error(t.rivals[r], t.truth)[c] for t, c in parts]) for r in trials[0].rivals}
    best = min(("PCC", "training"), key=lambda r: rivals[r].mean())
    gap = ours - rivals[best]
    inside, mean, width = (
        np.concatenate(values)
        for values in zip(*([v[c] for v in covered(t.bounds, t.truth)] for t, c in parts), strict=True)
    )
    unlike = np.concatenate([t.unlike[c] for t, c in parts])
    print(
        f"| {name} | {len(ours)} | {ours.mean():.4f} | "
        + " | ".join(f"{rivals[r].mean():.4f}" for r in rivals)
        + f" | {ours.mean() / rivals[best].mean():.3f} | {gap.mean():+.4f} ± {standard_error(gap, keys):.4f} ({best})"
        + f" | {both(inside, mean)} | {width.mean():.3f} | {unlike.mean():.1%} |",
        flush=True,
    )


HEAD = (
    "| groups | number | ours | PCC | training | CC | PACC | ours / best | difference | covered: classes / mean "
    "| width | unlike |\n|" + "---|" * 12
)


def real_sets(splits):
    """Return {name: list of data} of the four kinds of groups."""
    return {
        "Amazon by product": [group_data.amazon("product", s) for s in splits],
        "Amazon by month": [group_data.amazon("month", s) for s in splits],
        "IMDB by film": [group_data.imdb()],
        "flights by day": [group_data.flights()],
        "flights by day, another half, five draws": [group_data.flights(f"issue {draw}") for draw in range(5)],
    }


def table(sets):
    """The table of the main comparison, then small groups by the error of the mean class."""
    trials = {name: [run(data) for data in parts] for name, parts in sets.items()}
    print("\nNMD, groups of at least 20 items\n\n" + HEAD)
    for name, some in trials.items():
        if all((t.sizes < 20).all() for t in some):
            continue
        line(name, some, lambda sizes: sizes >= 20)
        if len(some) > 10:
            line(name + ", splits 10 to 19", some[10:], lambda sizes: sizes >= 20)
    print("\nError of the mean class, in classes, groups below 20 items\n\n" + HEAD)
    for name, some in trials.items():
        if any((t.sizes < 20).any() for t in some):
            line(name, some, lambda sizes: sizes < 20, mean_error)


def earlier():
    """Trained on the earlier half of the days or months, asked about the later."""
    print("\nNMD, trained on the earlier half, groups of at least 20 items\n\n" + HEAD)
    line("flights by day", [run(group_data.flights("earlier"))], lambda sizes: sizes >= 20)
    line("Amazon by month", [run(group_data.amazon("month", "earlier"))], lambda sizes: sizes >= 20)


def stated_effect(sets):
    """No training groups: the weak default prior and a stated effect."""
    for kind in ("weak", "stated"):
        print(f"\nNMD, no training groups, {kind} prior, groups of at least 20 items\n\n" + HEAD)
        for name, parts in sets.items():
            line(name, [run(data, fit(data, kind)) for data in parts], lambda sizes: sizes >= 20)


def few_groups(sets, numbers, n_draws):
    """Few labelled groups: draws of the training groups (IMDB: films with at least 20 reviews)."""
    print("\nFew labelled groups: NMD and coverage, mean over draws (worst)\n")
    print("| groups | labelled | NMD | classes | mean class | width |\n|" + "---|" * 6)
    for name, data in sets.items():
        rng = np.random.default_rng(0)
        keys, sizes = np.unique(data.g, return_counts=True)
        large = keys[sizes >= 20]
        for number in numbers:
            found = []
            while len(found) < n_draws and number <= len(large):
                rows = np.flatnonzero(np.isin(data.g, rng.choice(large, number, replace=False)))
                if len(np.unique(data.y[rows])) < data.n_classes:
                    continue
                t = run(data, fit(data, rows=rows), rivals=())
                c = t.sizes >= 20
                inside, mean, width = (value[c] for value in covered(t.bounds, t.truth))
                found.append((nmd(t.estimate, t.truth)[c].mean(), inside.mean(), mean.mean(), width.mean()))
            if found:
                a, worst, most = np.mean(found, axis=0), np.min(found, axis=0), np.max(found, axis=0)
                print(
                    f"| {name} | {number} | {a[0]:.4f} ({most[0]:.4f}) | {a[1]:.1%} ({worst[1]:.1%}) | "
                    f"{a[2]:.1%} ({worst[2]:.1%}) | {a[3]:.3f} |",
                    flush=True,
                )


def app(pools, sizes, n_samples):
    """Artificial samples without groups: the weak prior, and a stated effect, beside PACC and PCC."""
    print("\nArtificial samples (APP), no training groups\n")
    print(
        "| pool | size | weak | PACC | PCC | weak / best | covered: classes / mean | width | stated | covered |\n|"
        + "---|" * 10
    )
    for name, data in pools.items():
        fits = {kind: fit(data, kind) for kind in ("weak", "stated")}
        pacc = oq.PACC().fit_scores(normalized(data.S), data.y)
        for size in sizes:
            samples = oq.APP(n_samples, size, random_state=size).draw(data.z)
            truth, pcc = samples.prevalences, average(normalized(data.T), samples)
            got = {k: predict(f.model, average(f.features(data.T), samples), samples.sizes) for k, f in fits.items()}
            e = {k: nmd(p.prevalences, truth).mean() for k, p in got.items()}
            rivals = nmd(pacc.predict_scores(normalized(data.T), samples), truth).mean(), nmd(pcc, truth).mean()
            inside, mean, width = covered(bounds(got["weak"]), truth)
            with_effect = covered(bounds(got["stated"]), truth)
            print(
                f"| {name} | {size} | {e['weak']:.4f} | {rivals[0]:.4f} | {rivals[1]:.4f} | "
                f"{e['weak'] / min(rivals):.3f} | {both(inside, mean)} | {width.mean():.3f} | {e['stated']:.4f} | "
                f"{both(*with_effect[:2])} |",
                flush=True,
            )


def unlike(pools, n_groups, sizes, n_samples):
    """Trained with groups of equal composition, asked about artificial samples: how many misses are marked."""
    print("\nTrained with groups of equal composition, asked about APP samples\n")
    print(
        "| pool | groups | size | marked unlike | covered: classes | NMD | marked among samples with a miss "
        "| marked among missed classes | the same, alarm off: covered | marked of its misses |\n|" + "---|" * 10
    )
    for name, data in pools.items():
        for number in n_groups:
            fitted = fit(equal_groups(data, number))
            for size in sizes:
                samples = oq.APP(n_samples, size, random_state=size).draw(data.z)
                truth, Q = samples.prevalences, average(fitted.features(data.T), samples)
                got = predict(fitted.model, Q, samples.sizes)
                deaf = predict(replace(fitted.model, fallback=None), Q, samples.sizes)
                miss, miss_deaf = (~covered(bounds(p), truth)[0] for p in (got, deaf))
                marks = [m[got.unlike].sum() / max(m.sum(), 1) for m in (miss.any(axis=1), miss, miss_deaf.any(axis=1))]
                print(
                    f"| {name} | {number} | {size} | {got.unlike.mean():.1%} | {1 - miss.mean():.1%} | "
                    f"{nmd(got.prevalences, truth).mean():.4f} | {marks[0]:.1%} | {marks[1]:.1%} | "
                    f"{1 - miss_deaf.mean():.1%} | {marks[2]:.1%} |",
                    flush=True,
                )


def equal_groups(data: Groups, number) -> Groups:
    """Return training items in so many groups of equal composition."""
    return replace(data, g=np.random.default_rng(number).integers(0, number, len(data.y)))


def speed(n_groups=20_000, n_classes=10):
    """Seconds and memory for many groups with intervals, from their means."""
    data = synthetic(0, n_groups=200, n_classes=n_classes)
    rng = np.random.default_rng(0)
    for kind in ("posteriors", "with logits"):
        features = with_logits if kind == "with logits" else lambda S: S.astype(float)
        model = learn(GroupSums.of(features(data.S), data.y, data.g, n_classes))
        F = features(data.T)
        sizes = np.maximum(rng.lognormal(2.6, 1.5, n_groups).astype(int), 1)
        Q = np.array([F[rng.integers(0, len(F), min(N, 50))].mean(axis=0) for N in sizes])
        start = time.perf_counter()
        bounds(predict(model, Q, sizes))
        seconds = time.perf_counter() - start
        memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
        print(f"\n{n_groups:,} groups with intervals, {kind}: {seconds:.2f} s, peak of the process {memory:.0f} MB")


def synthetic(seed, n_groups=80, size=60, n_classes=5, effect=0.3) -> Groups:
    """Groups of synthetic items: a latent quality per group, and words that differ from group to group."""
    rng = np.random.default_rng(seed)
    g = np.repeat(np.arange(2 * n_groups), rng.integers(size // 2, 3 * size // 2, 2 * n_groups))
    quality, looks = rng.normal(0, 0.5, 2 * n_groups), rng.normal(0, effect, 2 * n_groups)
    latent = quality[g] + rng.normal(size=len(g))
    y = np.searchsorted(np.linspace(-1.2, 1.2, n_classes - 1), latent)
    seen = latent + looks[g] + rng.normal(0, 0.8, len(g))
    logits = -((seen[:, None] - np.linspace(-1.6, 1.6, n_classes)) ** 2)
    S = np.exp(logits - logits.max(axis=1, keepdims=True)) + 1e-3
    S /= S.sum(axis=1, keepdims=True)
    train = g < n_groups
    return Groups(S[train], y[train], g[train], S[~train], y[~train], g[~train] - n_groups)


PARTS = ("table", "earlier", "stated", "few", "app", "unlike", "speed")


def main():
    """Print the tables that were asked for."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--parts", nargs="+", choices=PARTS, default=PARTS)
    parser.add_argument("--splits", type=int, default=20, help="of the Amazon reviews")
    parser.add_argument("--draws", type=int, default=20, help="of few labelled groups")
    parser.add_argument("--tiny", action="store_true", help="synthetic groups, in seconds")
    args = parser.parse_args()
    if args.tiny:
        return tiny(args.parts)
    if "table" in args.parts:
        table(real_sets(range(args.splits)))
    if "earlier" in args.parts:
        earlier()
    if "stated" in args.parts:
        stated_effect(real_sets(range(args.splits)))
    by_group = {"flights": group_data.flights, "IMDB": group_data.imdb}
    if "few" in args.parts:
        few_groups({name: load() for name, load in by_group.items()}, (5, 10, 20, 50, 100), args.draws)
    pools = {f"{d}, {c}": (d, c) for d in ("fried", "metro", "beijing") for c in ("forest", "logistic")}
    if "app" in args.parts:
        app(
            {f"{name} {s}": group_data.app_pool(*which, s) for name, which in pools.items() for s in range(3)},
            (500, 1000),
            300,
        )
    if "unlike" in args.parts:
        unlike(
            {d: group_data.app_pool(d, "forest", 0) for d in ("fried", "metro", "beijing")}, (20, 100), (500, 1000), 300
        )
    if "speed" in args.parts:
        speed()
    return None


def tiny(parts):
    """Run every part on synthetic groups."""
    sets = {"synthetic": [synthetic(seed) for seed in range(2)]}
    small = {"synthetic, small": [synthetic(seed, size=12) for seed in range(2)]}
    if "table" in parts:
        table(sets | small)
    if "stated" in parts:
        stated_effect(sets)
    if "few" in parts:
        few_groups({"synthetic": sets["synthetic"][0]}, (5, 20), 3)
    pool = {"synthetic": synthetic(0, n_groups=40, size=150, effect=0.0)}
    if "app" in parts:
        app(pool, (200,), 50)
    if "unlike" in parts:
        unlike(pool, (20,), (200,), 50)
    if "speed" in parts:
        speed(2000)


if __name__ == "__main__":
    main()
