"""Real groups: estimates and intervals for products, months, films and days, by methods that were trained with groups.

    ORDINALQ_DATA=FOLDER python benchmarks/real_groups.py [--parts table methods ...] [--splits 20]
    python benchmarks/real_groups.py --tiny          # synthetic groups, a few seconds, no file

The files are described in data.md. Classifiers are fitted once, see group_data.py; all else goes through the package:
`fit_scores(S, y, groups=...)`, `summarize`, `estimate`. The truth is the realized prevalence of a group, intervals have
level 95%. Differences carry paired standard errors over groups, those of Amazon clustered by product or month, which
occur in several splits; a difference within two of them is a tie.
"""

import os

os.environ.update(dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1"))

import argparse
import warnings
from copy import copy
from dataclasses import replace
from typing import NamedTuple

import group_data
import numpy as np
from group_data import Groups

import ordinalq as oq
from ordinalq.inference.bounds import Bounds, mean_class
from ordinalq.inference.estimates import Estimates
from ordinalq.inference.predict import estimate
from ordinalq.quantifiers.group_blp import UNLIKE

LEVEL = 0.95
USUAL_SIZE = 20
ROUNDING = 1e-9
METHODS = {
    "GroupBLP": oq.GroupBLP,
    "PACC": oq.PACC,
    "SLD (bcts)": lambda: oq.SLD(calibration="bcts"),
    "OPACC, tau = 1": lambda: oq.OPACC(tau=1.0),
    "o-SLD (bcts)": lambda: oq.OSLD(calibration="bcts"),
    "CC": oq.CC,
    "PCC": oq.PCC,
}
# Repeats its whole iteration for each replicate.
SLOW = ("o-SLD (bcts)",)
STATED = 0.1
# Of the artificial samples, next to which others stand.
RIVALS = ("PCC", "CC", "PACC")


class Trial(NamedTuple):
    """One set of test groups: keys (B,), sizes (B,), truth (B, n), our estimates, those of others by name (B, n)."""

    keys: np.ndarray
    sizes: np.ndarray
    truth: np.ndarray
    ours: Estimates
    others: dict[str, np.ndarray]


def normalized(S):
    """Return scores in double precision that sum to one."""
    S = S.astype(float)
    return S / S.sum(axis=1, keepdims=True)


def fit(data: Groups, method=oq.GroupBLP, *, groups=True, rows=slice(None)):
    """Return the method fitted on the training items (or some `rows` of them), with their groups or without."""
    keys = data.g[rows] if groups else None
    return method().fit_scores(normalized(data.S[rows]), data.y[rows], classes=np.arange(data.n_classes), groups=keys)


def asked(data: Groups, least=1):
    """Return scores, samples and classes of the test items in groups of at least so many."""
    keys, sizes = np.unique(data.h, return_counts=True)
    rows = np.isin(data.h, keys[sizes >= least])
    return normalized(data.T[rows]), oq.Samples.from_groups(data.h[rows]), data.z[rows]


def shares(codes, samples, n_classes):
    """Return the true prevalences of samples, (B, n)."""
    return np.asarray(samples.average(np.eye(n_classes)[codes]))


def answer(quantifier, S, samples) -> Estimates:
    """Return estimates with intervals."""
    with warnings.catch_warnings():
        # Of classes that votes of a classifier never name.
        warnings.filterwarnings("ignore", message="the classifier does not distinguish all classes")
        return estimate(quantifier, quantifier.summarize(S, samples), LEVEL)


def run(data: Groups, quantifier=None, others=RIVALS) -> Trial:
    """Estimate all test groups by a fitted quantifier, GroupBLP with groups, and by other methods without."""
    S, samples, z = asked(data)
    quantifier = fit(data) if quantifier is None else quantifier
    found = {name: fit(data, METHODS[name], groups=False).predict_scores(S, samples) for name in others}
    found["training"] = np.tile(np.bincount(data.y, minlength=data.n_classes) / len(data.y), (len(samples), 1))
    truth = shares(z, samples, data.n_classes)
    return Trial(samples.groups_, samples.sizes, truth, answer(quantifier, S, samples), found)


def nmd(P, T):
    """Normalized match distance of each row."""
    return np.abs(np.cumsum(P - T, axis=1)[:, :-1]).sum(axis=1) / (P.shape[1] - 1)


def mean_error(P, T):
    """Absolute error of the mean class, in classes."""
    return np.abs((P - T) @ np.arange(1, P.shape[1] + 1))


def covered(b: Bounds, truth):
    """Return whether classes (B, n) and mean class (B,) are covered, and the widths (B, n)."""
    mean = mean_class(truth, b.values)
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


def difference(mine, theirs, keys):
    """Return the mean difference with its standard error, and whether it is a tie, in words."""
    delta, error = (mine - theirs).mean(), standard_error(mine - theirs, keys)
    return f"{delta:+.4f} ± {error:.4f}{', a tie' if abs(delta) <= 2 * error else ''}"


def joined(parts):
    """Join tuples of arrays, entry by entry."""
    return [np.concatenate(values) for values in zip(*parts, strict=True)]


def line(name, trials, chosen, error=nmd):
    """Print one line of the table over the chosen groups of all trials."""
    parts = [(t, chosen(t.sizes)) for t in trials]
    keys = np.concatenate([t.keys[c] for t, c in parts])
    ours = np.concatenate([error(t.ours.prevalences, t.truth)[c] for t, c in parts])
    others = {r: np.concatenate([error(t.others[r], t.truth)[c] for t, c in parts]) for r in trials[0].others}
    best = min(("PCC", "training"), key=lambda r: others[r].mean())
    inside, mean, width = joined([v[c] for v in covered(t.ours.bounds, t.truth)] for t, c in parts)
    unlike = np.concatenate([marked(t.ours)[c] for t, c in parts])
    print(
        f"| {name} | {len(ours)} | {ours.mean():.4f} | "
        + " | ".join(f"{errors.mean():.4f}" for errors in others.values())
        + f" | {ours.mean() / others[best].mean():.3f} | {difference(ours, others[best], keys)} ({best})"
        + f" | {both(inside, mean)} | {width.mean():.3f} | {unlike.mean():.1%} |",
        flush=True,
    )


def marked(estimates: Estimates):
    """Return which groups are called unlike the training groups, (B,)."""
    return np.zeros(len(estimates), dtype=bool) if estimates.fit is None else estimates.fit == UNLIKE


HEAD = (
    "| groups | number | GroupBLP | PCC | CC | PACC | training | GroupBLP / best | difference | covered: "
    "classes / mean | width | unlike |\n|" + "---|" * 12
)


def real_sets(splits):
    """Return {name: list of data} of the four kinds of groups."""
    return {
        "Amazon by product": [group_data.amazon("product", s) for s in splits],
        "Amazon by month": [group_data.amazon("month", s) for s in splits],
        "IMDB by film": [group_data.imdb()],
        "flights by day": [group_data.flights()],
        "flights by day, another half, five draws": [group_data.flights(f"other {draw}") for draw in range(5)],
    }


def table(sets):
    """The table of the main comparison, then small groups by the error of the mean class."""
    trials = {name: [run(data) for data in parts] for name, parts in sets.items()}
    print(f"\nNMD, groups of at least {USUAL_SIZE} items\n\n" + HEAD)
    for name, some in trials.items():
        if all((t.sizes < USUAL_SIZE).all() for t in some):
            continue
        line(name, some, lambda sizes: sizes >= USUAL_SIZE)
        if len(some) > 10:
            line(name + ", splits 10 to 19", some[10:], lambda sizes: sizes >= USUAL_SIZE)
    print(f"\nError of the mean class, in classes, groups below {USUAL_SIZE} items\n\n" + HEAD)
    for name, some in trials.items():
        if any((t.sizes < USUAL_SIZE).any() for t in some):
            line(name, some, lambda sizes: sizes < USUAL_SIZE, mean_error)


def default(splits, budget, names):
    """Compare `oq.AutoQuantifier(budget)` with training groups and GroupBLP on the usual scores, on equal groups."""
    makers = {
        "Amazon by product": [lambda stack, s=s: group_data.amazon("product", s, stack) for s in splits],
        "Amazon by month": [lambda stack, s=s: group_data.amazon("month", s, stack) for s in splits],
        "IMDB by film": [lambda stack: group_data.imdb(stack=stack)],
        "flights by day": [lambda stack: group_data.flights(stack=stack)],
    }
    print(f"\nThe default, budget {budget}, and GroupBLP: NMD, groups of at least {USUAL_SIZE} items\n\n{HEAD}")
    for name in names or makers:
        for label, stack in ((name, ""), (f"{name}, default", budget)):
            line(label, [run(make(stack)) for make in makers[name]], lambda sizes: sizes >= USUAL_SIZE)


def methods(sets, names):
    """Every method with and without training groups: error, coverage, and width over mean absolute error."""
    print(f"\nAll methods, groups of at least {USUAL_SIZE} items; differences to GroupBLP\n")
    print(
        "| groups | method | NMD | difference | covered, trained with groups | width | width / error "
        "| covered, without | width |\n|" + "---|" * 9
    )
    for set_name, parts in sets.items():
        first = None
        for name in names:
            found = {True: [], False: []}
            for data in parts:
                S, samples, z = asked(data, USUAL_SIZE)
                truth = shares(z, samples, data.n_classes)
                for groups, rows in found.items():
                    got = answer(fit(data, METHODS[name], groups=groups), S, samples)
                    absolute = np.abs(got.prevalences - truth).mean(axis=1)
                    rows.append((nmd(got.prevalences, truth), absolute, *covered(got.bounds, truth), samples.groups_))
            error, absolute, inside, mean, width, keys = joined(found[True])
            _, _, inside_without, mean_without, width_without, _ = joined(found[False])
            delta = "" if first is None else difference(error, first, keys)
            first = error if first is None else first
            print(
                f"| {set_name} | {name} | {error.mean():.4f} | {delta} | {both(inside, mean)}"
                f" | {width.mean():.3f} | {width.mean() / absolute.mean():.2f}"
                f" | {both(inside_without, mean_without)} | {width_without.mean():.3f} |",
                flush=True,
            )


def earlier():
    """Trained on the earlier half of the days or months, asked about the later."""
    print(f"\nNMD, trained on the earlier half, groups of at least {USUAL_SIZE} items\n\n" + HEAD)
    line("flights by day", [run(group_data.flights("earlier"))], lambda sizes: sizes >= USUAL_SIZE)
    line("Amazon by month", [run(group_data.amazon("month", "earlier"))], lambda sizes: sizes >= USUAL_SIZE)


def without_groups(kind):
    """Return GroupBLP as it is without training groups: with its "weak" prior, or a "stated" effect."""
    return oq.GroupBLP if kind == "weak" else lambda: oq.GroupBLP(group_effect=STATED)


def stated_effect(sets):
    """No training groups: the weak default prior and a stated effect."""
    for kind in ("weak", "stated"):
        print(f"\nNMD, no training groups, {kind} prior, groups of at least {USUAL_SIZE} items\n\n" + HEAD)
        for name, parts in sets.items():
            trials = [run(data, fit(data, without_groups(kind), groups=False)) for data in parts]
            line(name, trials, lambda sizes: sizes >= USUAL_SIZE)


def few_groups(sets, numbers, n_draws):
    """Few labelled groups: draws of the training groups (IMDB: films with at least 20 reviews)."""
    print("\nFew labelled groups: NMD and coverage, mean over draws (worst)\n")
    print("| groups | labelled | NMD | classes | mean class | width |\n|" + "---|" * 6)
    lines = []
    for name, data in sets.items():
        S, samples, z = asked(data, USUAL_SIZE)
        truth = shares(z, samples, data.n_classes)
        for number in numbers:
            found = [
                (nmd(got.prevalences, truth).mean(), *(value.mean() for value in covered(got.bounds, truth)))
                for got in (
                    answer(fit(data, rows=drawn), S, samples) for drawn in draws_of_groups(data, number, n_draws)
                )
            ]
            if found:
                a, worst, most = np.mean(found, axis=0), np.min(found, axis=0), np.max(found, axis=0)
                lines.append((name, number, *a, *worst[1:3]))
                print(
                    f"| {name} | {number} | {a[0]:.4f} ({most[0]:.4f}) | {a[1]:.1%} ({worst[1]:.1%}) | "
                    f"{a[2]:.1%} ({worst[2]:.1%}) | {a[3]:.3f} |",
                    flush=True,
                )
    return lines


def draws_of_groups(data: Groups, number, n_draws):
    """Yield the training items of so many groups of at least 20 items, drawn at random; every class is among them."""
    rng = np.random.default_rng(0)
    keys, sizes = np.unique(data.g, return_counts=True)
    large = keys[sizes >= USUAL_SIZE]
    while n_draws > 0 and number <= len(large):
        rows = np.flatnonzero(np.isin(data.g, rng.choice(large, number, replace=False)))
        if len(np.unique(data.y[rows])) == data.n_classes:
            n_draws -= 1
            yield rows


def app(pools, sizes, n_samples):
    """Artificial samples without groups: the weak prior, and a stated effect, next to PACC and PCC."""
    print("\nArtificial samples (APP), no training groups; difference to the better of PACC and PCC\n")
    print(
        "| pool | size | weak | PACC | PCC | weak / best | difference | covered: classes / mean | width | stated "
        "| covered |\n|" + "---|" * 11
    )
    ratios = []
    for name, data in pools.items():
        fits = {kind: fit(data, without_groups(kind), groups=False) for kind in ("weak", "stated")}
        others = {name: fit(data, METHODS[name], groups=False) for name in ("PACC", "PCC")}
        S = normalized(data.T)
        for size in sizes:
            samples = oq.protocols.APP(n_samples, size, random_state=size).draw(data.z)
            truth = samples.prevalences
            got = {kind: answer(q, S, samples) for kind, q in fits.items()}
            errors = {kind: nmd(e.prevalences, truth) for kind, e in got.items()}
            errors |= {name: nmd(q.predict_scores(S, samples), truth) for name, q in others.items()}
            best = min(others, key=lambda name: errors[name].mean())
            inside, mean, width = covered(got["weak"].bounds, truth)
            ratios.append(errors["weak"].mean() / errors[best].mean())
            print(
                f"| {name} | {size} | "
                + " | ".join(f"{errors[kind].mean():.4f}" for kind in ("weak", "PACC", "PCC"))
                + f" | {ratios[-1]:.3f} | {difference(errors['weak'], errors[best], np.arange(n_samples))}"
                f" | {both(inside, mean)} | {width.mean():.3f} | {errors['stated'].mean():.4f}"
                f" | {both(*covered(got['stated'].bounds, truth)[:2])} |",
                flush=True,
            )
    print(f"\nweak / best: mean {np.mean(ratios):.3f}, largest {np.max(ratios):.3f}")


def unlike(pools, n_groups, sizes, n_samples):
    """Trained with groups of equal composition, asked about artificial samples: how many misses are marked."""
    print("\nTrained with groups of equal composition, asked about APP samples\n")
    print(
        "| pool | groups | size | marked unlike | covered: classes | NMD | marked among samples with a miss "
        "| marked among missed classes | the same, alarm off: covered | marked of its misses |\n|" + "---|" * 10
    )
    found = []
    for name, data in pools.items():
        for number in n_groups:
            quantifier = fit(equal_groups(data, number))
            # The same without the alarm.
            deaf = copy(quantifier)
            deaf.group_model_ = replace(quantifier.group_model_, fallback=None)
            for size in sizes:
                samples = oq.protocols.APP(n_samples, size, random_state=size).draw(data.z)
                truth, S = samples.prevalences, normalized(data.T)
                got = answer(quantifier, S, samples)
                marks = marked(got)
                miss, miss_deaf = (~covered(e.bounds, truth)[0] for e in (got, answer(deaf, S, samples)))
                parts = [m[marks].sum() / max(m.sum(), 1) for m in (miss.any(axis=1), miss, miss_deaf.any(axis=1))]
                print(
                    f"| {name} | {number} | {size} | {marks.mean():.1%} | {1 - miss.mean():.1%} | "
                    f"{nmd(got.prevalences, truth).mean():.4f} | {parts[0]:.1%} | {parts[1]:.1%} | "
                    f"{1 - miss_deaf.mean():.1%} | {parts[2]:.1%} |",
                    flush=True,
                )
                found.append((marks, miss.any(axis=1), miss_deaf.any(axis=1)))
    marks, missed, missed_deaf = joined(found)
    print(
        f"\nmarked of all samples with a miss: {marks[missed].mean():.1%}; alarm off: {marks[missed_deaf].mean():.1%}"
    )


def equal_groups(data: Groups, number) -> Groups:
    """Return training items in so many groups of equal composition."""
    return replace(data, g=np.random.default_rng(number).integers(0, number, len(data.y)))


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


PARTS = ("table", "default", "methods", "earlier", "stated", "few", "app", "unlike")


def main():
    """Print the tables that were asked for."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--parts", nargs="+", choices=PARTS, default=PARTS)
    parser.add_argument("--splits", type=int, default=20, help="of the Amazon reviews")
    parser.add_argument("--draws", type=int, default=20, help="of few labelled groups")
    parser.add_argument("--methods", nargs="+", choices=METHODS, help="default: all but those that take an hour")
    parser.add_argument("--budget", default="balanced", help="of the default")
    parser.add_argument("--groups", nargs="+", help="kinds of groups for the default, such as 'flights by day'")
    parser.add_argument("--tiny", action="store_true", help="synthetic groups, in seconds")
    args = parser.parse_args()
    if args.tiny:
        return tiny(args.parts)
    if "table" in args.parts:
        table(real_sets(range(args.splits)))
    if "default" in args.parts:
        default(range(10, 10 + args.splits // 2), args.budget, args.groups)
    if "methods" in args.parts:
        # Splits that nothing was chosen on, and one draw of the other half of the days.
        sets = real_sets(range(args.splits // 2, args.splits))
        sets["flights by day, another half"] = sets.pop("flights by day, another half, five draws")[:1]
        methods(sets, args.methods or [name for name in METHODS if name not in SLOW])
    if "earlier" in args.parts:
        earlier()
    if "stated" in args.parts:
        stated_effect(real_sets(range(args.splits)))
    if "few" in args.parts:
        few_groups({"flights": group_data.flights(), "IMDB": group_data.imdb()}, (5, 10, 20, 50, 100), args.draws)
    pools = {f"{d}, {c}": (d, c) for d in ("fried", "metro", "beijing") for c in ("forest", "logistic")}
    if "app" in args.parts:
        loaded = {f"{name} {s}": group_data.app_pool(*which, s) for name, which in pools.items() for s in range(3)}
        app(loaded, (500, 1000), 300)
    if "unlike" in args.parts:
        forests = {d: group_data.app_pool(d, "forest", 0) for d in ("fried", "metro", "beijing")}
        unlike(forests, (20, 100), (500, 1000), 300)
    return None


def tiny(parts):
    """Run every part on synthetic groups."""
    sets = {"synthetic": [synthetic(seed) for seed in range(2)]}
    small = {"synthetic, small": [synthetic(seed, size=12) for seed in range(2)]}
    if "table" in parts:
        table(sets | small)
    if "methods" in parts:
        methods({"synthetic": [synthetic(0, n_groups=15)]}, METHODS)
    if "stated" in parts:
        stated_effect(sets)
    if "few" in parts:
        few_groups({"synthetic": sets["synthetic"][0]}, (5, 20), 3)
    pool = {"synthetic": synthetic(0, n_groups=40, size=150, effect=0.0)}
    if "app" in parts:
        app(pool, (200,), 50)
    if "unlike" in parts:
        unlike(pool, (20,), (200,), 50)


if __name__ == "__main__":
    main()
