"""Groups that differ as a whole from the training groups, and groups that do not: with and without a common offset.

    ORDINALQ_DATA=FOLDER python benchmarks/drift.py [--parts tweets challenge like seasons verdict each cost]
    python benchmarks/drift.py --tiny      # synthetic groups, seconds, no file

All groups of a table are estimated, and those with at least 20 items are compared with their true prevalences. Labels
are drawn at random from all items. Parts: "tweets" are topics of later years; "challenge" is the default of the package
in the unit of the SemEval challenge; "like" are groups drawn like the training groups, and "seasons" later ones;
"verdict" are p-values; "each" draws labels in every group, and compares with estimates by labels alone; "cost" is time
and memory.
"""

import os

os.environ.update(dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1"))

import argparse
import resource
import time
import warnings

import group_data
import numpy as np
from group_data import Groups
from group_labels import fitted
from one_answer import head, row
from real_groups import covered, nmd, normalized, synthetic
from scipy.stats import kstest

import ordinalq as oq
from ordinalq.inference.predict import estimate

LEVEL, USUAL_SIZE = 0.95, 20
REPORTED = range(100, 120)
COLUMNS = ("groups", "labels", "NMD: without", "with", "ratio", "covered: without", "with", "width: ratio", "differ")


class Table:
    """Scored items of new groups and the model of the training groups."""

    def __init__(self, data: Groups) -> None:
        self.quantifier, self.S, self.z = fitted(data), normalized(data.T), data.z
        self.samples = oq.Samples.from_groups(data.h)
        self.truth = oq.Samples.from_groups(data.h, data.z).prevalences
        self.is_large = self.samples.sizes >= USUAL_SIZE

    def labels(self, total: int, seed: int):
        """Return the labels of some items, drawn at random, and NaN for the others; None for no labels."""
        if total == 0:
            return None
        chosen = np.random.default_rng(seed).choice(len(self.z), min(total, len(self.z)), replace=False)
        return self.given(chosen)

    def given(self, chosen):
        """Return the labels of chosen items, and NaN for the others."""
        labels = np.full(len(self.z), np.nan)
        labels[chosen] = self.z[chosen] + 1
        return labels

    def estimates(self, labels=None, **how):
        """Return the estimates of all groups."""
        basis = how.pop("basis", "auto")
        summary = self.quantifier.summarize(self.S, self.samples, labels=labels)
        options = oq.inference.IntervalOptions(basis=basis)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", oq.inference.LabelSelectionWarning)
            return estimate(self.quantifier, summary, LEVEL, options, how.get("drift", "auto"))

    def figures(self, got):
        """Return error, coverage by class (n,), coverage of the mean class and width of the large groups."""
        inside, mean, width = (part[self.is_large] for part in covered(got.bounds, self.truth))
        return nmd(got.prevalences, self.truth)[self.is_large].mean(), inside.mean(axis=0), mean.mean(), width.mean()


def text(figures) -> str:
    """Return coverage of all classes, the worst class and the mean class."""
    classes = np.mean([f[1] for f in figures], axis=0)
    return f"{classes.mean():.1%} / {classes.min():.0%} / {np.mean([f[2] for f in figures]):.0%}"


def compare(name, makers, totals, draws):
    """Print errors and coverage with and without the offset, over draws of labels from each of several tables."""
    tables = [Table(make()) for make in makers]
    for total in totals:
        without, offset, verdicts, selected = [], [], [], []
        for table in tables:
            for seed in range(draws if total else 1):
                labels = table.labels(total, seed)
                got = table.estimates(labels)
                without.append(table.figures(table.estimates(labels, drift=None)))
                offset.append(table.figures(got))
                verdicts.append(got.drift is not None and got.drift.differs)
                selected.append(got.drift is not None and got.drift.selection_p_value < 0.001)
        a, b = (np.mean([f[0] for f in part]) for part in (without, offset))
        width = np.mean([f[3] for f in offset]) / np.mean([f[3] for f in without])
        count = f"{sum(verdicts)} of {len(verdicts)}" + f", {sum(selected)} warnings" * (sum(selected) > 0)
        row(name, total, f"{a:.4f}", f"{b:.4f}", f"{b / a:.3f}", text(without), text(offset), f"{width:.2f}", count)


def tweets(draws, totals=(0, 30, 100, 300)):
    """Compare topics of 2016 and 2017, with scores of a logistic regression and of the default's stack."""
    head(*COLUMNS)
    for name, test, more in (
        ("2016", "test2016", ()),
        ("2017", "test2017", ()),
        ("2017, trained with 2016", "test2017", ("test2016",)),
    ):
        for stack in ("", "balanced"):
            make = [lambda test=test, stack=stack, more=more: group_data.tweets(test, stack, more=more)]
            compare(f"topics {name}{stack and ', default stack'}", make, totals, draws)


def challenge():
    """Print the earth mover's distance of the default, trained on the text and topic of the tweets."""
    head("training topics", "new topics", "EMD: without", "with", "covered: with", "p")
    frame = group_data.read("semeval_tweets")
    for parts, test in (([], "2016"), ([], "2017"), (["test2016"], "2017")):
        known = frame[frame["part"].isin(["train", "dev", "devtest", *parts])]
        asked = frame[frame["part"] == f"test{test}"]
        model = oq.TableModel(text=["text"]).fit(known, "label", by="topic")
        truth = oq.Samples.from_groups(asked["topic"].to_numpy(), asked["label"].to_numpy()).prevalences
        errors = []
        for drift in (None, "auto"):
            got = model.predict_groups(asked, "topic", level=LEVEL, drift=drift)
            errors.append(f"{np.abs(np.cumsum(got.prevalences - truth, axis=1)).sum(axis=1).mean():.3f}")
        inside = covered(got.bounds, truth)[0].mean(axis=0)
        cells = f"{inside.mean():.1%} / {inside.min():.0%}", f"{got.drift.p_value:.1g}"
        row(" + ".join(["train, dev, devtest", *parts]), test, *errors, *cells)


def like(splits, totals=(0, 30, 100)):
    """Compare groups that are drawn like the training groups; one draw of labels per split."""
    head(*COLUMNS)
    films = [lambda s=s: group_data.imdb(f"choose {s}") for s in splits if s < REPORTED.start + 10]
    compare("flights, other days", [lambda s=s: group_data.flights(f"split {s}") for s in splits], totals, 1)
    compare("films, halves", films, totals, 2)
    compare("films, published split", [group_data.imdb], totals, 5)
    for by in ("product", "month"):
        compare(f"Amazon by {by}", [lambda s=s, by=by: group_data.amazon(by, s) for s in splits], totals, 2)


def seasons(draws, totals=(0, 30, 100, 300)):
    """Compare groups of a later time."""
    head(*COLUMNS)
    compare("flights, winter to summer", [lambda: group_data.flights("winter")], totals, draws)
    compare("without dep_delay", [lambda: group_data.flights("winter, scheduled")], totals, draws)
    compare("Amazon months, earlier to later", [lambda: group_data.amazon("month", "earlier")], totals, draws)


def verdict(sets):
    """Print the distribution of p-values of the verdict on whole tables without labels."""
    head("groups", "tables", "smallest p", "median p", "KS p of uniform", "p < 0.05", "differ")
    for name, makers in sets.items():
        drifts = [Table(make()).estimates().drift for make in makers]
        p = np.array([one.p_value for one in drifts if one is not None])
        uniform = f"{kstest(p, 'uniform').pvalue:.2f}" if len(p) > 5 else ""
        differ = sum(one is not None and one.differs for one in drifts)
        row(name, len(p), f"{p.min():.1g}", f"{np.median(p):.2g}", uniform, f"{(p < 0.05).mean():.0%}", differ)


def each(sets, numbers, draws):
    """Compare the offset with labels alone, for labels of some items of every group."""
    head("groups", "labels each", "NMD: offset", "labels alone", "covered: offset", "labels alone", "width: ratio")
    for name, make in sets.items():
        table = Table(make())
        order, n = table.samples, len(table.samples)
        for m in numbers:
            parts = {"model": [], "labels": []}
            for seed in range(draws):
                rng = np.random.default_rng(seed)
                chosen = np.concatenate([rng.permutation(order.index(b))[:m] for b in range(n)])
                for basis, part in parts.items():
                    part.append(table.figures(table.estimates(table.given(chosen), basis=basis)))
            error = [f"{np.mean([f[0] for f in part]):.4f}" for part in parts.values()]
            width = np.divide(*(np.mean([f[3] for f in part]) for part in parts.values()))
            row(name, m, *error, *map(text, parts.values()), f"{width:.2f}")


def cost(n_groups, size=30):
    """Print time and memory of many groups with intervals."""
    head("groups", "items", "labels", "CPU, summaries", "CPU, estimates with intervals", "without drift", "peak memory")
    train, asked = synthetic(0), synthetic(1, n_groups=n_groups // 2, size=size)
    T, z, h = (np.concatenate(pair) for pair in ((asked.S, asked.T), (asked.y, asked.z), (asked.g, asked.h)))
    h = np.where(np.arange(len(h)) < len(asked.g), h, h + n_groups // 2)
    table = Table(Groups(train.S, train.y, train.g, T, z, h))
    for total in (0, n_groups // 10):
        labels, start = table.labels(total, 0), time.process_time()
        summary = table.quantifier.summarize(table.S, table.samples, labels=labels)
        spent = [time.process_time() - start]
        for drift in ("auto", None):
            start = time.process_time()
            estimate(table.quantifier, summary, LEVEL, drift=drift)
            spent.append(time.process_time() - start)
        memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
        row(n_groups, len(z), total, *(f"{s:.2f} s" for s in spent), f"{memory:.2f} GB")


PARTS = ("tweets", "challenge", "like", "seasons", "verdict", "each", "cost")


def main():
    """Print the tables."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--parts", nargs="+", default=PARTS, choices=PARTS)
    parser.add_argument("--draws", type=int, default=20)
    parser.add_argument("--splits", type=int, nargs="+", default=list(REPORTED))
    parser.add_argument("--tiny", action="store_true", help="synthetic groups, in seconds")
    args = parser.parse_args()
    if args.tiny:
        few = [lambda: synthetic(0, n_groups=20)]
        head(*COLUMNS)
        compare("synthetic", few, [0, 10], 1)
        verdict({"synthetic": few})
        each({"synthetic": few[0]}, [10], 1)
        cost(100)
        return
    years = {year: lambda year=year: group_data.tweets(f"test{year}") for year in ("2016", "2017")}
    days = [lambda s=s: group_data.flights(f"split {s}") for s in args.splits]
    films = [lambda s=s: group_data.imdb(f"choose {s}") for s in args.splits[:10]]
    sets = {f"topics {year}": [make] for year, make in years.items()} | {"flights, other days": days, "films": films}
    run = {
        "tweets": lambda: tweets(args.draws),
        "challenge": challenge,
        "like": lambda: like(args.splits),
        "seasons": lambda: seasons(args.draws),
        "verdict": lambda: verdict(sets),
        "each": lambda: each({f"topics {year}": make for year, make in years.items()}, [3, 10, 30], args.draws // 4),
        "cost": lambda: cost(20_000),
    }
    for part in args.parts:
        run[part]()


if __name__ == "__main__":
    main()
