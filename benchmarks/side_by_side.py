"""Compare the numbers and the times of two versions of the library, side by side.

    git worktree add ../before COMMIT
    python benchmarks/side_by_side.py ../before/src src                numbers, equal to 1e-9
    python benchmarks/side_by_side.py ../before/src src --speed        times, old and new in turn
    python benchmarks/side_by_side.py ../before/src src --tiny         either one, in seconds
    python benchmarks/side_by_side.py ../before/src src --only unfold  either one, of some titles or tasks

OLD and NEW are folders that hold the package `ordinalq`. Each version runs in a separate process on the same inputs:
every method with several settings, intervals of both kinds, groups with a level, the choice of tau, diagnoses,
`ordinalq.solve` and `SampleSearch`; and, in `application_items.py`, groups with labels and weights, comparisons and
trends, the default quantifier, unfolding with systematic errors, tables in memory and in files, saved models and an
experiment. Every item is a named array; the largest difference of each must not exceed 1e-9. Text must be equal. A
word without digits may change if it changes in all items in the same way; such words are printed. The versions may
have different names and keywords, which `interface.py` translates. Ends with status 1 if an item differs or is
missing.
"""

import os

os.environ.update(dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1"))

import argparse
import functools
import itertools
import json
import subprocess
import sys
import tempfile
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
from application_items import Items, Titles, application_tasks, application_titles
from interface import adapter, centred, find, make_method, old_name, paper_methods, solution

TOLERANCE = 1e-9
# Replicates of intervals, and their seed.
REPLICATES = {"n_replicates": 40, "random_state": 3}
N_CLASSES = 5
# Runs of each version in the comparison of times.
RUNS, IMPORTS = 7, 9
SLOWER = 1.1
FRIED_CLASSES = 10
# Methods that take items, because they fit several models.
ON_ITEMS = ("OQT", "ARC")
# Before the name of what a solver reports, which a version need not have.
SOLVER = "solver"
# Settings whose intervals and groups are among the tiny ones; settings besides the defaults that go through fried.
TINY = ("OPACC", "RUN", "SLD", "SLD bcts", "RUN n_df")
FRIED = ("OACC auto", "OPACC auto", "OPDF auto", "RUN auto", "IBU auto", "RUN n_df")


# --- inputs, by NumPy alone -----------------------------------------------------------------------------------


class Input:
    """Labelled items with features and held-out scores, a pool of the same kind, samples and groups of it.

    Attributes
    ----------
    X, X_pool : ndarray (N, m), (N', m)
    S, S_pool : ndarray (N, n), (N', n)
    y, y_pool : ndarray (N,), (N',)
        Codes 0..n-1.
    index : ndarray (B, m)
        Samples of the pool.
    groups : ndarray (N',)
        Sixteen groups of very different sizes.
    """

    def __init__(self, X, S, y, X_pool, S_pool, y_pool, n_samples, sample_size):
        self.X, self.S, self.y, self.X_pool, self.S_pool, self.y_pool = X, S, y, X_pool, S_pool, y_pool
        self.n_classes = S.shape[1]
        rng = np.random.default_rng(11)
        P = rng.dirichlet(np.ones(self.n_classes), n_samples)
        weights = P[:, y_pool] / np.bincount(y_pool, minlength=self.n_classes)[y_pool]
        self.index = np.array([rng.choice(len(y_pool), sample_size, p=w / w.sum()) for w in weights])
        self.groups = np.sort(np.minimum(rng.geometric(0.25, len(y_pool)), 16))

    def given(self, quantifier_name: str) -> tuple[Any, Any]:
        """Return what a method takes of the training items and of the pool: features, or scores."""
        on_features = quantifier_name in ("HDx", "OHDx")
        return (self.X, self.X_pool) if on_features else (self.S, self.S_pool)


def synthetic(n_items: int, n_pool: int, n_samples: int, sample_size: int, n: int = N_CLASSES) -> Input:
    """Return overlapping normal classes, and scores from Dirichlet distributions around the class."""
    rng = np.random.default_rng(7)

    def items(size):
        y = np.concatenate(
            [np.arange(n).repeat(8), rng.choice(n, size - 8 * n, p=np.arange(n, 0, -1) / np.arange(n + 1).sum())]
        )
        X = rng.normal(size=(size, 3)) + y[:, None] * np.array([0.8, 0.4, 0.0])
        E = rng.gamma(0.3 + 3 * np.exp(-np.abs(np.arange(n) - y[:, None])))
        return X, E / E.sum(axis=1, keepdims=True), y

    X, S, y = items(n_items)
    return Input(X, S, y, *items(n_pool), n_samples, sample_size)


def fried_subset(n_items: int, n_pool: int, n_samples: int, sample_size: int) -> Input:
    """Return items of fried with the scores of one forest, out-of-bag for the training items."""
    from sklearn.ensemble import RandomForestClassifier
    from workload import fried

    X, y = fried(n_items + n_pool)
    forest = RandomForestClassifier(60, max_depth=10, oob_score=True, random_state=0)
    S = forest.fit(X[:n_items], y[:n_items]).oob_decision_function_
    S_pool = forest.predict_proba(X[n_items:])
    return Input(X[:n_items], S, y[:n_items], X[n_items:], S_pool, y[n_items:], n_samples, sample_size)


# --- what is compared -----------------------------------------------------------------------------------------


def settings(n: int) -> Iterator[tuple[str, Any]]:
    """Yield names and unfitted quantifiers: all methods that take scores or features, in several settings."""
    import ordinalq as oq
    from ordinalq.losses import LeastSquares, MatchDistance, Poisson
    from ordinalq.regularizers import Entropy, Tikhonov
    from ordinalq.representations import HardVotes, Histograms, Partition, Posteriors

    for entry in paper_methods():
        if entry.name not in ON_ITEMS:
            yield entry.name, make_method(entry.cls)
    ramp = np.linspace(1, 2, n)
    for name in ("OACC", "OPACC", "OHDx", "OHDy", "OEDy", "OPDF", "RUN"):
        cls = getattr(oq, name)
        yield f"{name} strong", make_method(cls, tau=1e3 if name == "RUN" else 0.3)
        yield f"{name} order 2", make_method(cls, tau=1e2 if name == "RUN" else 0.01, order=2)
        yield f"{name} centre", centred(cls, ramp / ramp.sum(), tau=1e2 if name == "RUN" else 0.05)
        yield f"{name} auto", make_method(cls, tau="auto")
    for name in ("ACC", "PACC", "OPACC", "EDy", "OPDF"):
        yield f"{name} newton", make_method(getattr(oq, name), solver="newton")
    for name in ("OSLD", "IBU"):
        cls = getattr(oq, name)
        yield f"{name} line", cls(order=1, interpolation=0.01)
        yield f"{name} auto", cls(interpolation="auto")
    for calibration in ("bcts", "vector"):
        yield f"SLD {calibration}", oq.SLD(calibration=calibration)
        yield f"OSLD {calibration}", oq.OSLD(calibration=calibration)
    yield "SLD tau", oq.SLD(tau=0.01)
    yield "SLD auto", oq.SLD(tau="auto")
    yield "SLD newton", oq.SLD(solver="newton")
    yield "SLD tol", oq.SLD(tol=1e-6, max_iter=1000)
    yield "RUN n_df", oq.RUN(n_df=n - 1.5)
    yield "RUN acceptance", make_method(oq.RUN, acceptance=1 / ramp)
    yield "RUN acceptance n_df", make_method(oq.RUN, acceptance=1 / ramp, n_df=n - 1.5)
    for name in ("HDx", "HDy", "OHDy"):
        yield f"{name} 7 bins", getattr(oq, name)(n_bins=7)
    yield "PDF 12 bins", oq.PDF(n_bins=12)
    yield "OPDF 12 bins", make_method(oq.OPDF, n_bins=12)
    yield "EDy euclidean", oq.EDy(distance="euclidean")
    yield "leaves", oq.ComposedQuantifier(Partition(max_leaf_nodes=20), Poisson(), Tikhonov(10.0))
    yield "histograms", oq.ComposedQuantifier(Histograms(3), LeastSquares(), Tikhonov(1e-3))
    yield "entropy", oq.ComposedQuantifier(Posteriors(), LeastSquares(), Entropy(0.01))
    yield "match distance", oq.ComposedQuantifier(HardVotes(), MatchDistance())
    yield "PACC softmax", oq.PACC(solver="softmax")

    class Fourth(find("NumericalLoss")):
        """Sum of fourth powers of the residuals."""

        def value(self, P: Any, data: Any) -> Any:
            return ((data.Q - data.expected(P)) ** 4).sum(axis=1)

    yield "numerical loss", oq.ComposedQuantifier(Posteriors(), Fourth(), Tikhonov(1e-3))


def item_settings() -> Iterator[tuple[str, Any]]:
    """Yield names and unfitted quantifiers that are fitted on items, with the default classifier."""
    import ordinalq as oq

    for entry in paper_methods():
        yield entry.name, make_method(entry.cls)
    yield "ARC acc", oq.ARC(correction="acc")


def measured(name: str, q: Any, data: Input, *, services: bool) -> Items:
    """Yield the items of one quantifier, fitted on scores or features."""
    S, S_pool = data.given(type(q).__name__)
    q.fit_scores(S, data.y)
    yield "p", q.predict_scores(S_pool, data.index)
    yield from named(SOLVER, solution(q, S_pool, data.index))
    for strength in ("tau_", "interpolation_"):
        if getattr(q, strength, None) is not None:
            yield strength, getattr(q, strength)
    if hasattr(q, "tuning_"):
        for key in ("value", "values", "errors", "standard_errors"):
            yield f"tuning {key}", getattr(q.tuning_, key)
    if services:
        yield from served(q, S_pool, data)


def served(q: Any, S_pool: Any, data: Input) -> Items:
    """Yield intervals, groups and a diagnosis by one fitted quantifier."""
    import ordinalq as oq

    offer = adapter()
    few = oq.Samples.from_index(data.index[:4], len(S_pool))
    for of in ("sample", "population"):
        yield from named(of, offer.intervals(q, S_pool, few, 0.9, of, **REPLICATES))
    for level in (None, 0.8):
        yield from named(f"groups {level}", offer.groups(q, S_pool, data.groups, level, **REPLICATES))
    if type(q).__name__ not in ("SLD", "OSLD"):  # in chunks these once kept scores in single precision
        parts = np.array_split(np.random.default_rng(0).permutation(len(S_pool)), 3)
        yield from named("chunks", offer.chunks(q, S_pool, data.groups, parts))
    yield from named("diagnosis", dict(numbers(offer.diagnosis(q, S_pool[:300]))))


def named(title: str, record: dict[str, Any]) -> Items:
    """Yield the entries of a record with a title before their names."""
    for key, value in record.items():
        yield f"{title} {key}", value


def on_items(q: Any, data: Input) -> Items:
    """Yield the estimates of one quantifier that is fitted on items."""
    q.fit(data.X, data.y)
    yield "p", q.predict_samples(data.X_pool, data.index)
    yield "whole", q.predict(data.X_pool)


def numbers(record: Any) -> Items:
    """Yield the numbers of a dict of dicts by the name of the innermost key."""
    for key, value in record.items():
        if isinstance(value, dict):
            yield from numbers(value)
        elif value is not None and np.size(value) and np.asarray(value).dtype.kind in "fiub":
            yield key, value


def unfolded(n: int) -> Items:
    """Yield solutions for given responses, with background and acceptance."""
    import ordinalq as oq

    rng = np.random.default_rng(5)
    d = n + 3
    M = np.exp(-0.5 * (np.linspace(0, n - 1, d)[:, None] - np.arange(n)) ** 2)
    M /= M.sum(axis=0)
    acceptance = np.linspace(0.4, 0.9, n)
    background = np.linspace(5, 40, d)
    P = rng.dirichlet(np.ones(n), 6)
    counts = rng.poisson(4000 * P @ M.T + background).astype(float)
    for name in ("ACC", "PACC", "OACC", "HDy", "OHDy", "PDF", "OPDF", "RUN", "IBU"):
        method = make_method(getattr(oq, name))
        yield f"{name}", oq.solve(counts, M, method)
        yield f"{name} background", oq.solve(counts, M, method, background=background)
        both = {"background": background, "acceptance": acceptance}
        yield f"{name} background acceptance", oq.solve(counts, M, method, **both)
        yield f"{name} all counts", oq.solve(counts, M, method, **both, counts=True)
    yield "RUN n_df", oq.solve(counts, M, oq.RUN(n_df=n - 1.5), background=background)
    yield (
        "RUN columns",
        oq.solve(counts, M * acceptance, make_method(oq.RUN, acceptance=acceptance), acceptance="columns"),
    )


def searched(data: Input) -> Items:
    """Yield the tables of searches over classifiers, strengths and representations."""
    from sklearn.linear_model import LogisticRegression

    import ordinalq as oq

    options = {"small_pool": "replace", "random_state": 0}
    samples = {
        "app": find("APP")(30, 100, **options).draw(data.y_pool),
        "oq": find("APPOQ")(0.2, 60, 100, **options).draw(data.y_pool),
    }
    grids = {
        "OPACC": {"tau": [1e-3, 1e-1, "auto"], "classifier__C": [0.1, 1.0]},
        "HDx": {"n_bins": [2, 4]},
        "RUN": {"tau": [1.0, 100.0], "order": [1, 2]},
        "SLD": {"calibration": ["none", "bcts"]},
    }
    for name, grid in grids.items():
        cls = getattr(oq, name)
        q = cls() if name == "HDx" else cls(LogisticRegression(max_iter=300))
        search = find("SampleSearch")(q, grid, samples=samples, measure=["nmd", "rnod"])
        search.fit(data.X, data.y, data.X_pool)
        for column in ("error", "std", "unconverged"):
            yield f"{name} {column}", search.results_[column].to_numpy(dtype=float)


# --- one version ----------------------------------------------------------------------------------------------


def collect(tiny: bool, only: str) -> tuple[dict[str, Any], dict[str, str]]:
    """Return all items of the imported version by name, and the errors of titles that failed."""
    items: dict[str, Any] = {}
    failed: dict[str, str] = {}
    with tempfile.TemporaryDirectory() as folder:
        for title, found in all_titles(tiny, Path(folder)):
            if only not in title:
                continue
            begun = time.perf_counter()
            try:
                for key, value in found():
                    array = np.asarray(value)
                    if array.dtype.kind not in "fiub":
                        array = np.array([old_name(str(word)) for word in array.ravel()]).reshape(array.shape)
                    items[f"{title}: {old_name(key)}"] = array
            except Exception as error:  # reported by the comparison
                failed[title] = f"{type(error).__name__}: {error}"
            if not tiny:
                print(f"{title}: {time.perf_counter() - begun:.1f} s", file=sys.stderr, flush=True)
    return items, failed


def all_titles(tiny: bool, folder: Path) -> Titles:
    """Yield all titles; one that cannot be prepared becomes a title that fails, as the rest of its part does."""
    for part in (titles(tiny), *application_titles(tiny, folder)):
        last = "the start"
        try:
            for last, found in part:
                yield last, found
        except Exception as error:  # reported by the comparison
            yield f"titles after {last}", functools.partial(fail, error)


def fail(error: Exception) -> Items:
    """Raise an error."""
    raise error


def titles(tiny: bool) -> Titles:
    """Yield the titles of the paper's methods, `solve` and `SampleSearch`, and functions that yield their items."""
    data = synthetic(300, 500, 6, 40) if tiny else synthetic(1500, 2500, 60, 200)
    for name, q in settings(N_CLASSES):
        if not tiny or name in TINY or name in ("CC", "ACC", "PDF", "HDx", "OPDF", "OSLD", "IBU"):
            services = not tiny or name in TINY
            yield name, lambda name=name, q=q, services=services: measured(name, q, data, services=services)
    for name, q in item_settings():
        if not tiny or name in ("PACC", "OQT", "ARC acc"):
            yield f"items {name}", lambda q=q: on_items(q, data)
    yield "solve", lambda: unfolded(N_CLASSES)
    if tiny:
        return
    yield "search", lambda: searched(data)
    real = functools.cache(lambda: fried_subset(3000, 3000, 60, 300))
    for name, q in settings(FRIED_CLASSES):
        if " " not in name or name in FRIED:
            services = name in TINY
            yield (
                f"fried {name}",
                lambda name=name, q=q, services=services: measured(name, q, real(), services=services),
            )


def child_numbers(tree: str, out: str, tiny: bool, only: str) -> None:
    """Write the items of the version in `tree`."""
    check_tree(tree)
    items, failed = collect(tiny, only)
    np.savez(out, **{f"item {i}": value for i, value in enumerate(items.values())})
    Path(f"{out}.json").write_text(json.dumps({"names": list(items), "failed": failed}))


def check_tree(tree: str) -> None:
    """Exit if the package was not imported from the tree."""
    import ordinalq

    if not Path(ordinalq.__file__).is_relative_to(Path(tree).resolve()):
        raise SystemExit(f"expected ordinalq from {tree}, got {ordinalq.__file__}")


def start(tree: Path, mode: str, *arguments: str, **options: Any) -> subprocess.Popen[str]:
    """Start this script for one version."""
    environment = os.environ | {"PYTHONPATH": str(tree)}
    command = [sys.executable, __file__, str(tree), str(tree), "--child", mode, *arguments]
    return subprocess.Popen(command, env=environment, text=True, **options)


# --- numbers --------------------------------------------------------------------------------------------------


def compare(old: Path, new: Path, tiny: bool, only: str) -> int:
    """Print the largest difference of each title, and return the number of items that differ or are missing."""
    with tempfile.TemporaryDirectory() as folder:
        found = []
        for label, tree in (("old", old), ("new", new)):
            out = str(Path(folder) / f"{label}.npz")
            process = start(tree, "numbers", "--out", out, f"--only={only}", *(["--tiny"] if tiny else []))
            if process.wait() != 0:
                raise SystemExit(f"the {label} version ended with status {process.returncode}")
            notes = json.loads(Path(f"{out}.json").read_text())
            with np.load(out) as arrays:
                items = {name: arrays[f"item {i}"] for i, name in enumerate(notes["names"])}
            found.append((items, notes["failed"]))
    (before, failed_before), (after, failed_after) = found
    wrong = 0
    for title in sorted({*failed_before, *failed_after}):
        old_error, new_error = failed_before.get(title, "done"), failed_after.get(title, "done")
        wrong += new_error != "done"
        print(f"{title}: old {old_error}; new {new_error}")
    largest: dict[str, float] = {}
    unreported: list[str] = []
    words = Words()
    for name, value in before.items():
        title, _, key = name.partition(": ")
        if title in failed_after:
            continue
        if name not in after and key.startswith(SOLVER):
            unreported.append(name)
            continue
        change = difference(value, after[name], words) if name in after else np.inf
        if change > TOLERANCE:
            wrong += 1
            print(f"{name}: " + (f"differs by {change:.3g}" if name in after else "is missing"))
        largest[title] = max(largest.get(title, 0.0), change)
    for title, change in largest.items():
        print(f"{title:<28} {change:.2g}")
    for a, b in words.changed:
        print(f"word changed in all items: {a!r} is now {b!r}")
    if unreported:
        print(f"{len(unreported)} items of solvers are missing, such as {unreported[0]}")
    extra = [name for name in after if name not in before]
    print(f"{len(before)} items of {len(largest)} titles, {wrong} wrong, largest difference "
          f"{max(largest.values(), default=0.0):.2g}; {len(extra)} only in the new version")  # fmt: skip
    return wrong


class Words:
    """Words of the old version and those that the new one has in their place, one for one in all items."""

    def __init__(self) -> None:
        self._new: dict[str, str] = {}
        self._old: dict[str, str] = {}

    def match(self, a: str, b: str) -> bool:
        """Return whether word b may stand for word a; words with digits must be equal."""
        if a != b and any(character.isdigit() for character in a + b):
            return False
        return self._new.setdefault(a, b) == b and self._old.setdefault(b, a) == a

    @property
    def changed(self) -> list[tuple[str, str]]:
        """Old and new words that differ."""
        return [(a, b) for a, b in self._new.items() if a != b]


def difference(a: Any, b: Any, words: Words) -> float:
    """Return the largest difference, relative to numbers above one; infinite if shapes, text or NaN differ."""
    if a.shape != b.shape or (a.dtype.kind == "U") != (b.dtype.kind == "U"):
        return np.inf
    if a.dtype.kind == "U":
        pairs = {(str(x), str(y)) for x, y in zip(a.ravel(), b.ravel(), strict=True)}
        return 0.0 if all(words.match(x, y) for x, y in sorted(pairs)) else np.inf
    a, b = a.astype(float), b.astype(float)
    same = (a == b) | (np.isnan(a) & np.isnan(b))
    a, b = np.where(same, 0.0, a), np.where(same, 0.0, b)
    differences = np.abs(a - b) / np.maximum(1.0, np.abs(a))
    return float(np.nan_to_num(differences, nan=np.inf).max(initial=0.0))


# --- times ----------------------------------------------------------------------------------------------------


def tasks(tiny: bool) -> Iterator[tuple[str, Callable[[], Callable[[], Any]]]]:
    """Yield names of tasks on the paper's methods, and functions that prepare them and return what is timed."""
    import ordinalq as oq

    data = synthetic(*((400, 1000, 20, 100) if tiny else (4000, 10_000, 300, 1000)), n=10)
    many = np.random.default_rng(0).integers(0, 20 if tiny else 100, len(data.S_pool))
    samples = oq.Samples.from_index(data.index, len(data.S_pool))
    few = oq.Samples.from_index(data.index[:5], len(data.S_pool))
    offer = adapter()

    def fit(entry: Any) -> Any:
        if entry.name in ON_ITEMS:
            return entry.cls().fit(data.X, data.y)
        return entry.cls().fit_scores(data.given(entry.name)[0], data.y)

    @functools.cache
    def fitted(entry: Any) -> tuple[Any, Any]:
        q = fit(entry)
        return q, q.scores(data.X_pool) if entry.name in ON_ITEMS else data.given(entry.name)[1]

    def drawn(entry: Any) -> Callable[[], Any]:
        q, pool = fitted(entry)
        return lambda: q.predict_scores(pool, samples)

    def groups(entry: Any, fit: bool) -> Callable[[], Any]:
        q, pool = fitted(entry)
        return lambda: offer.groups(q, pool, many, None, fit=fit)

    def intervals(entry: Any) -> Callable[[], Any]:
        q, pool = fitted(entry)
        return lambda: offer.intervals(q, pool, few, 0.9, "sample", fit=False, **REPLICATES)

    for entry in [entry for entry in paper_methods() if not tiny or entry.name in ("CC", "OPACC", "SLD")]:
        yield f"{entry.name} fit", lambda entry=entry: functools.partial(fit, entry)
        yield f"{entry.name} samples", functools.partial(drawn, entry)
        for with_fit in (False, True):  # a version without the fit test of groups does less
            yield f"{entry.name} groups{', fit' * with_fit}", functools.partial(groups, entry, with_fit)
        if entry.name in ("OPACC", "RUN", "SLD"):
            yield f"{entry.name} intervals", functools.partial(intervals, entry)


def child_speed(tree: str, tiny: bool) -> None:
    """Answer each line of the input, the name of a task, with the processor seconds that it takes.

    A task is prepared when it is first named; the time for that does not count.
    """
    check_tree(tree)
    with warnings.catch_warnings(), tempfile.TemporaryDirectory() as folder:
        warnings.simplefilter("ignore")
        known = dict(itertools.chain(tasks(tiny), application_tasks(tiny, Path(folder))))
        prepared = functools.cache(lambda name: known[name]())
        print(json.dumps(list(known)), flush=True)
        for line in sys.stdin:
            run = prepared(line.strip())
            begun = time.process_time()
            run()
            print(time.process_time() - begun, flush=True)


def ask(process: subprocess.Popen[str], task: str) -> float:
    """Return the seconds of one run."""
    assert process.stdin is not None
    assert process.stdout is not None
    process.stdin.write(f"{task}\n")
    process.stdin.flush()
    return float(process.stdout.readline())


def race(old: Path, new: Path, tiny: bool, only: str) -> int:
    """Print the seconds of both versions, run in turn, and return the number of tasks that became slower.

    Only tasks with the words `only` in their name are run.
    """
    extra = ["--tiny"] if tiny else []
    both = [start(tree, "speed", *extra, stdin=subprocess.PIPE, stdout=subprocess.PIPE) for tree in (old, new)]
    slower = 0
    try:
        names = [json.loads(process.stdout.readline()) for process in both if process.stdout]
        common = [name for name in names[0] if name in names[1] and only in name]
        print(f"{'task':<32} {'old ms':>9} {'new ms':>9} {'new / old':>9}   (best of several, processor time)")
        for task in common:
            warm = max(ask(process, task) for process in both)
            # The shorter a task, the more often it is repeated within a run; long ones take fewer runs.
            runs = 1 if tiny else 3 if warm > 1 else RUNS
            repeats = 1 if tiny else max(1, min(50, int(0.05 / max(ask(both[0], task), 1e-4))))
            seconds = [[min(ask(p, task) for _ in range(repeats)) for p in both] for _ in range(runs)]
            before, after = np.min(seconds, axis=0)
            ratio = after / before
            slower += ratio > SLOWER
            print(
                f"{task:<32} {1e3 * before:9.2f} {1e3 * after:9.2f} {ratio:9.2f}{'  slower' * bool(ratio > SLOWER)}",
                flush=True,
            )
    finally:
        for process in both:
            with suppress(BrokenPipeError):
                process.communicate(timeout=60)
    return slower


def import_times(old: Path, new: Path, runs: int) -> None:
    """Print how long `import ordinalq` takes after that of scikit-learn's base, old and new in turn.

    The modules are compiled before, as installed packages are. A version may load its parts when they are first used:
    the time until a method is there is what counts.
    """
    start = "import time, sklearn.base; t = time.process_time(); import ordinalq; "
    with tempfile.TemporaryDirectory() as folder:
        # One run says nothing, and need not wait for all packages to be compiled.
        compiled = {"PYTHONDONTWRITEBYTECODE": "", "PYTHONPYCACHEPREFIX": folder} if runs > 1 else {}
        for what, use in (("import ordinalq", ""), ("import ordinalq, and a method", "ordinalq.PACC; ")):
            seconds = np.empty((runs + 1, 2))
            for i, (j, tree) in itertools.product(range(runs + 1), enumerate((old, new))):
                command = [sys.executable, "-c", f"{start}{use}print(time.process_time() - t)"]
                environment = os.environ | compiled | {"PYTHONPATH": str(tree)}
                run = subprocess.run(command, env=environment, stdout=subprocess.PIPE, check=True)
                seconds[i, j] = float(run.stdout)
            before, after = seconds[1:].min(axis=0)
            print(f"{what}, after scikit-learn: old {before:.3f} s, new {after:.3f} s, new / old {after / before:.2f}")


def main() -> None:
    """Compare numbers, or times."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("old", type=Path, help="folder that holds the package ordinalq of the old version")
    parser.add_argument("new", type=Path, help="the same of the new version")
    parser.add_argument("--speed", action="store_true", help="times instead of numbers")
    parser.add_argument("--only", default="", help="titles, or tasks, whose name has these words in it")
    parser.add_argument("--tiny", action="store_true", help="small inputs and few settings")
    parser.add_argument("--child", choices=["numbers", "speed"], help=argparse.SUPPRESS)
    parser.add_argument("--out", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.child == "numbers":
        warnings.simplefilter("ignore")
        child_numbers(str(arguments.old), arguments.out, arguments.tiny, arguments.only)
        return
    if arguments.child == "speed":
        child_speed(str(arguments.old), arguments.tiny)
        return
    old, new = arguments.old.resolve(), arguments.new.resolve()
    if arguments.speed:
        slower = race(old, new, arguments.tiny, arguments.only)
        if arguments.only in "import":
            import_times(old, new, 1 if arguments.tiny else IMPORTS)
        print(f"{slower} tasks are slower by more than {SLOWER - 1:.0%}")
        raise SystemExit(1 if slower and not arguments.tiny else 0)  # tiny times say nothing
    wrong = compare(old, new, arguments.tiny, arguments.only)
    raise SystemExit(1 if wrong else 0)


if __name__ == "__main__":
    main()
