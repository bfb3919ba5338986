"""Groups, labels, tables, unfolding and experiments, as `side_by_side.py` compares and times them.

A title is a part of the library, and its items are named arrays. Names that differ between versions are the new ones,
see `interface.py`.
"""

import functools
import importlib.util
import io
import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
import pandas as pd
from interface import call, columns, command, errors, find

Items = Iterator[tuple[str, Any]]
Titles = Iterator[tuple[str, Callable[[], Items]]]

N_CLASSES = 5
LEVEL = 0.9
# Options of intervals: few replicates, and their seed.
REPLICATES = {"n_replicates": 40, "random_state": 3}
NUMBERS = ["price", "age", "rank"]
# Words of reviews, from bad to good, and others that say nothing.
OPINIONS = np.array(["broken", "poor", "usable", "good", "perfect"])
FILLERS = np.array(["the", "pen", "ink", "paper", "colour", "box", "bought", "again"])
# Keys of JSON whose values are sentences, paths or names of the programs used.
SENTENCES = ("sentence", "verdict", "reasons", "notes", "model", "written")
# Settings whose title is among the tiny ones.
TINY_GROUPS = ("AML", "AML groups", "AML effect", "BLP groups", "BLP effect", "PACC groups", "OPACC auto groups")
# Settings with a model of groups that labels enter.
LABELS_IN_MODEL = ("AML groups", "AML effect", "BLP groups", "BLP effect")
TINY_DEFAULT = ("numbers", "numbers groups", "text", "text groups", "effect", "weights")
TINY_UNFOLD = ("default", "systematics", "systematics by toys", "IBU", "weighted counts")

EXPERIMENT = """
title = "small"
methods = [{methods}]
seed = 5

[dataset]
table = "items.csv"
target = "stars"

[samples]
n_validation = 8
n_test = 10
sample_size = 30

[classifier]
family = "forest"
n_estimators = 10

[classifier.grid]
max_depth = [2, 4]

[grid.OPACC]
tau = [0.0, 0.01]

[grid.OHDx]
n_bins = [3]
tau = [0.001]
"""
CLASSIFIER_EXPERIMENT = """
kind = "classifiers"
measures = ["nmd"]
seed = 5

[dataset]
table = "items.csv"
target = "stars"

[samples]
n_validation = 8
n_test = 10
sample_size = 30

[grid]
LR = { C = [0.01, 1.0] }
OLR-AT = { alpha = [1.0] }
OLR-IT = { alpha = [1.0], class_weight = ["balanced"] }
ORidge = { alpha = [1.0], normalize = [false, true] }
LAD = { C = [0.01] }
"""


# --- inputs ---------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Reviews:
    """Reviews in groups whose class distributions and whose items differ.

    Attributes
    ----------
    train, new : DataFrame
        Reviews of some shops, and of others. Columns: shop, stars (the class, 1 to 5), price, age, rank, size (a
        category), review (text), day, weight (survey weight), count (frequency), known (stars of some rows).
    index : ndarray (B, m)
        Samples of the rows of `new`.
    """

    train: pd.DataFrame
    new: pd.DataFrame
    index: np.ndarray

    @classmethod
    def make(cls, n_items: int, n_new: int, n_groups: int) -> "Reviews":
        """Draw reviews of `n_groups` shops, and of half as many others.

        Of the other shops, the first is unlike those in `train`, and the last has a single review.
        """
        rng = np.random.default_rng(13)
        train, new = _frame(rng, n_items, n_groups, "shop"), _frame(rng, n_new, n_groups // 2, "new")
        first = new["shop"] == new["shop"].min()
        new.loc[first, NUMBERS] += np.array([2.0, 3.0, -3.0])
        new.loc[first, "review"] = "perfect broken good"
        new.loc[n_new - 1, "shop"] = "new z"
        return cls(train, new, rng.integers(0, n_new, (6, 60)))

    def table(self, which: str) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return numbers (N, 3), classes (N,) and shops (N,) of the rows of `train` or `new`."""
        frame = getattr(self, which)
        return frame[NUMBERS].to_numpy(), frame["stars"].to_numpy(), frame["shop"].to_numpy(dtype=object)

    def text(self, which: str) -> Any:
        """Return the reviews of `train` or `new` as tf-idf vectors, a sparse matrix (N, d)."""
        return self._vectors.transform(getattr(self, which)["review"])

    @functools.cached_property
    def _vectors(self) -> Any:
        from sklearn.feature_extraction.text import TfidfVectorizer

        return TfidfVectorizer().fit(self.train["review"])


def _frame(rng: np.random.Generator, n_items: int, n_groups: int, name: str) -> pd.DataFrame:
    n = N_CLASSES
    P = rng.dirichlet(np.full(n, 3.0), n_groups)
    effect = rng.normal(0, 0.2, (n_groups, 3))
    # Sizes of groups differ; every group has some items.
    shares = rng.dirichlet(np.full(n_groups, 2.0))
    group = np.concatenate([np.arange(n_groups).repeat(4), rng.choice(n_groups, n_items - 4 * n_groups, p=shares)])
    y = (rng.random(n_items)[:, None] > np.cumsum(P, axis=1)[group]).sum(axis=1)
    y[: 2 * n] = np.arange(n).repeat(2)
    X = rng.normal(size=(n_items, 3)) + y[:, None] * np.array([0.8, 0.5, 0.2]) + effect[group]
    said = np.clip(y[:, None] + rng.integers(-1, 2, (n_items, 4)), 0, n - 1)
    words = np.hstack([OPINIONS[said], rng.choice(FILLERS, (n_items, 3))])
    known = pd.Series(y + 1, dtype="Int64").where(rng.random(n_items) < 0.3)
    day = pd.Timestamp("2024-01-01") + pd.to_timedelta(rng.integers(0, 150, n_items), unit="D")
    return pd.DataFrame(
        {
            "shop": [f"{name} {chr(97 + g)}" for g in group],
            "stars": y + 1,
            **dict(zip(NUMBERS, X.round(6).T, strict=True)),
            "size": np.array(["small", "medium", "large"])[np.clip(y // 2 + rng.integers(-1, 2, n_items), 0, 2)],
            "review": [" ".join(row) for row in words],
            "day": day.strftime("%Y-%m-%d"),
            "weight": rng.lognormal(0, 0.7, n_items).round(6),
            "count": rng.integers(0, 4, n_items),
            "known": known,
        }
    )


# --- items of results -----------------------------------------------------------------------------------------


def estimates(title: str, found: Any) -> Items:
    """Yield the numbers of Estimates."""
    for name, column in columns(found.frame()).items():
        yield f"{title} {name}", column
    if found.bounds is not None:
        for name in ("cumulative_lower", "cumulative_upper"):
            yield f"{title} {name}", getattr(found.bounds, name)
        yield f"{title} covariance", found.covariance


def framed(title: str, found: Any) -> Items:
    """Yield the columns of a result that has a frame."""
    for name, column in columns(found.frame()).items():
        yield f"{title} {name}", column


def flat(value: Any, name: str) -> Items:
    """Yield the numbers and words of what was read from JSON, by the path of their keys."""
    if isinstance(value, dict):
        for key, part in value.items():
            if key not in SENTENCES:
                yield from flat(part, f"{name} {key}")
    elif isinstance(value, list) and value and all(isinstance(row, dict) for row in value):
        keys = dict.fromkeys(key for row in value for key in row)
        yield from flat({key: [row.get(key) for row in value] for key in keys}, name)
    elif value is not None:
        try:
            yield name, np.array(value, dtype=np.float64)  # None becomes NaN
        except (TypeError, ValueError):
            yield name, np.array([str(part) for part in np.atleast_1d(np.array(value, dtype=object))])


# --- groups ---------------------------------------------------------------------------------------------------


def group_settings() -> Iterator[tuple[str, Any, bool]]:
    """Yield names, unfitted quantifiers, and whether they learn from training groups."""
    import ordinalq as oq

    aml, blp, auto = find("AdjustedML", "AML"), find("GroupBLP", "BLP"), find("AutoStrength", "Auto")
    falling = np.arange(N_CLASSES, 0, -1) / np.arange(N_CLASSES + 1).sum()
    yield "AML", aml(), False
    yield "AML groups", aml(), True
    yield "AML effect", aml(group_effect=0.1), False
    for prior in ("uniform", "smooth", "training"):
        yield f"AML {prior}", aml(prior=prior), False
    yield "AML given prior", aml(prior=falling), False
    yield "AML strength", aml(prior="training", strength=50.0), False
    for instrument in ("uniform", "training"):
        yield f"AML instrument {instrument}", aml(instrument=instrument), False
    yield "BLP", blp(), False
    yield "BLP groups", blp(), True
    yield "BLP effect", blp(group_effect=0.1), False
    yield "PACC groups", oq.PACC(), True
    yield "SLD groups", oq.SLD(calibration="bcts"), True
    yield "EDy groups", oq.EDy(), True
    yield "OPACC auto groups", oq.OPACC(tau="auto"), True
    yield "OPACC auto items", oq.OPACC(tau=auto(weight="items", min_items=5)), True
    yield "OPACC auto prevalences", oq.OPACC(tau=auto(prevalences=[falling, falling[::-1]])), False


def grouped(q: Any, data: Reviews, with_groups: bool) -> Items:
    """Yield estimates of groups, comparisons, trends, label plans and a diagnosis of one quantifier."""
    X, y, groups = data.table("train")
    X_new, y_new, groups_new = data.table("new")
    call(q.fit, X, y, groups=groups if with_groups else None)
    yield "samples", q.predict_samples(X_new, data.index)
    yield "score", q.score(X_new, y_new)
    yield from estimates("whole", call(q.predict_interval, X_new, LEVEL, intervals=REPLICATES))
    yield from estimates("groups", q.predict_groups(X_new, groups_new))
    for estimand in ("sample", "population"):
        how = REPLICATES | {"estimand": estimand}
        found = call(q.predict_groups, X_new, groups_new, level=LEVEL, intervals=how)
        yield from estimates(f"groups {estimand}", found)
        yield from framed(f"compare {estimand}", found.compare(*found.groups[:3].tolist()))
        yield from framed(f"trend {estimand}", found.trend())
    for quantity in ("mean", 5):
        needed = q.labels_needed(X_new, groups_new, 0.3, quantity)
        yield from framed(f"labels needed {quantity}", needed)
    yield "labels to draw", needed.draw(groups_new)
    yield from flat(q.diagnose(X_new).to_dict(), "diagnosis")


def labelled(q: Any, data: Reviews, with_groups: bool, bases: tuple[str, ...]) -> Items:
    """Yield estimates of groups by labels of some items: with the model, and by the labels alone."""
    X, y, groups = data.table("train")
    X_new, _, groups_new = data.table("new")
    labels = data.new["known"].to_numpy(dtype=object, na_value=None)
    call(q.fit, X, y, groups=groups if with_groups else None)
    for basis in bases:
        how = REPLICATES | {"basis": basis}
        found = call(q.predict_groups, X_new, groups_new, labels=labels, intervals=how)
        yield from estimates(basis, found)
        for estimand in ("sample", "population"):
            how |= {"estimand": estimand}
            found = call(q.predict_groups, X_new, groups_new, level=LEVEL, labels=labels, intervals=how)
            yield from estimates(f"{basis} {estimand}", found)
        yield from framed(f"{basis} compare", found.compare(*found.groups[:3].tolist()))
    yield from framed("needed", call(q.labels_needed, X_new, groups_new, 0.2, labels=labels))


def weighted(q: Any, data: Reviews, with_groups: bool) -> Items:
    """Yield estimates by items with weights, in training and in groups."""
    X, y, groups = data.table("train")
    X_new, _, groups_new = data.table("new")
    labels = data.new["known"].to_numpy(dtype=object, na_value=None)
    for kind, column in (("survey", "weight"), ("frequency", "count")):
        weights = {"sample_weight": data.train[column].to_numpy(), "weight_type": kind}
        call(q.fit, X, y, groups=groups if with_groups else None, **weights)
        weights["sample_weight"] = data.new[column].to_numpy()
        yield f"{kind} whole", call(q.predict, X_new, **weights)
        found = call(q.predict_groups, X_new, groups_new, level=LEVEL, intervals=REPLICATES, **weights)
        yield from estimates(f"{kind} groups", found)
        how = {"level": LEVEL, "labels": labels, "intervals": REPLICATES}
        yield from estimates(f"{kind} labels", call(q.predict_groups, X_new, groups_new, **how, **weights))
        yield from flat(call(q.diagnose, X_new, **weights).to_dict(), f"{kind} diagnosis")


def group_titles(data: Reviews, tiny: bool) -> Titles:
    """Yield the titles of methods on groups."""
    for name, q, with_groups in group_settings():
        if tiny and name not in TINY_GROUPS:
            continue
        yield f"groups {name}", lambda q=q, with_groups=with_groups: grouped(q, data, with_groups)
        if name in TINY_GROUPS or name == "SLD groups":
            bases = ("auto", "labels", *(["model"] if name in LABELS_IN_MODEL else []))
            arguments = q, data, with_groups, bases
            yield f"labels {name}", lambda arguments=arguments: labelled(*arguments)
            yield f"weights {name}", lambda q=q, with_groups=with_groups: weighted(q, data, with_groups)


# --- the default ----------------------------------------------------------------------------------------------


def default_settings(data: Reviews) -> Iterator[tuple[str, dict[str, Any], tuple[Any, Any], bool]]:
    """Yield names, parameters, items to learn from and new ones, and whether there are training groups."""
    numbers = data.table("train")[0], data.table("new")[0]
    text = data.text("train"), data.text("new")
    mixed = tuple(frame[[*NUMBERS, "size"]].astype({"size": "category"}) for frame in (data.train, data.new))
    for kind, items in (("numbers", numbers), ("text", text), ("mixed", mixed)):
        yield kind, {"budget": "fast"}, items, False
        yield f"{kind} groups", {"budget": "fast"}, items, True
    yield "effect", {"budget": "fast", "group_effect": 0.1}, numbers, False
    yield "prior", {"budget": "fast", "prior": "smooth", "instrument": "uniform"}, numbers, False
    yield "balanced", {"budget": "balanced"}, numbers, False
    yield "balanced groups", {"budget": "balanced"}, numbers, True


def default(parameters: dict[str, Any], data: Reviews, items: tuple[Any, Any], with_groups: bool) -> Items:
    """Yield what the default quantifier chooses and expects, and its estimates."""
    (_, y, groups), (_, _, groups_new) = data.table("train"), data.table("new")
    q = find("AutoQuantifier", "Default")(**parameters)
    call(q.fit, items[0], y, groups=groups if with_groups else None)
    yield "kind", np.array([q.training_.kind])
    for name, weight in q.training_.weights.items():
        yield f"stack {name}", weight
    for size, error in q.training_.expected.items():
        yield f"expected {size}", error
    yield "samples", q.predict_samples(items[1], data.index)
    yield from estimates("groups", q.predict_groups(items[1], groups_new))
    for estimand in ("sample", "population"):
        found = call(q.predict_groups, items[1], groups_new, level=LEVEL, intervals={"estimand": estimand})
        yield from estimates(f"groups {estimand}", found)
    yield from framed("compare", found.compare(*found.groups[:3].tolist()))
    yield from framed("trend", found.trend())
    labels = data.new["known"].to_numpy(dtype=object, na_value=None)
    for basis in ("auto", "labels"):
        found = call(q.predict_groups, items[1], groups_new, level=LEVEL, labels=labels, intervals={"basis": basis})
        yield from estimates(f"labels {basis}", found)
    yield from flat(q.diagnose(items[1]).to_dict(), "diagnosis")


def default_titles(data: Reviews, tiny: bool) -> Titles:
    """Yield the titles of the default quantifier."""
    for name, parameters, items, with_groups in default_settings(data):
        if not tiny or name in TINY_DEFAULT:
            arguments = parameters, data, items, with_groups
            yield f"default {name}", lambda arguments=arguments: default(*arguments)
    for name, with_groups in (("", False), (" groups", True)):
        if not (tiny and with_groups):
            q = find("AutoQuantifier", "Default")(budget="fast")
            yield f"default weights{name}", lambda q=q, with_groups=with_groups: weighted(q, data, with_groups)


# --- evaluation, protocols, classifiers -----------------------------------------------------------------------


def measured_errors() -> Items:
    """Yield errors of estimates by every measure, and a test."""
    rng = np.random.default_rng(0)
    P, Q, R = (rng.dirichlet(np.ones(N_CLASSES), 30) for _ in range(3))
    for measure in ("md", "nmd", "rnod", "rsnod", "rnadw"):
        yield measure, find(measure)(P, Q)
        yield f"errors {measure}", errors(P, Q, measure)
        yield f"errors {measure}, one truth", errors(P[0], Q, measure)
    yield "wilcoxon", find("wilcoxon", taking="b")(errors(P, Q), errors(P, R))
    yield "jaggedness", find("jaggedness")(P)


def drawn(data: Reviews) -> Items:
    """Yield the samples that every protocol draws."""
    y = data.new["stars"].to_numpy()
    how = {"small_pool": "repeat", "random_state": 4}
    vectors = np.random.default_rng(1).dirichlet(np.ones(N_CLASSES), 7)
    protocols = {
        "APP": find("APP")(20, 50, **how),
        "APP truncated": find("APP")(20, 50, rounding="truncate", **how),
        "APP with every class": find("APP")(20, 50, min_per_class=2, **how),
        "APPOQ": find("APPOQ")(0.3, 20, 50, **how),
        "NPP": find("NPP")(20, 50, random_state=4),
        "real": find("RealPrevalences")(vectors, 20, 50, **how),
    }
    for name, protocol in protocols.items():
        samples = protocol.draw(y)
        yield f"{name} items", samples.items
        yield f"{name} prevalences", samples.prevalences


def classified(data: Reviews) -> Items:
    """Yield what classifiers predict, and the held-out scores of those that have them."""
    from sklearn.linear_model import LogisticRegression

    (X, y, groups), X_new = data.table("train"), data.table("new")[0]
    codes = np.unique(groups, return_inverse=True)[1]
    for name in ("OrdinalLogisticAT", "OrdinalLogisticIT", "OrdinalRidge", "LeastAbsoluteDeviation"):
        fitted = find(name)().fit(X, y)
        yield name, fitted.predict(X_new)
        if hasattr(fitted, "predict_proba"):
            yield f"{name} posteriors", fitted.predict_proba(X_new)
    held_out = {
        "CrossFitted": find("CrossFitted")(LogisticRegression(), cv=5),
        "InSample": find("InSample")(LogisticRegression()),
        "OrdinalProbit": find("OrdinalProbit")(),
        "OrdinalStack": find("OrdinalStack")(budget="fast"),
    }
    for name, classifier in held_out.items():
        for kind, given in (("", None), (" groups", codes)):
            if name == "InSample" and kind:
                continue
            fitted = call(classifier.fit, X, y, groups=given)
            yield f"{name}{kind} held out", fitted.held_out_scores_
            yield f"{name}{kind}", fitted.predict_proba(X_new)


def compared_methods(data: Reviews, with_groups: bool, tiny: bool) -> Items:
    """Yield the table of `compare_methods`."""
    import ordinalq as oq

    methods = {
        "counting": oq.CC(),
        "adjusted": oq.PACC(),
        "smooth": oq.OPACC(tau=0.01 if tiny else "auto"),
        "likelihood": find("AdjustedML", "AML")(),
        "groups": find("GroupBLP", "BLP")(),
    }
    if not tiny:
        default = find("AutoQuantifier", "Default")(budget="fast")
        methods |= {"default": default, "trees": oq.OQT(), "features": oq.HDx()}
    X, y, groups = data.table("train")
    found = call(find("compare_methods"), methods, X, y, groups=groups if with_groups else None, measure="nmd")
    yield from framed("table", found)
    for name, values in found.errors.items():
        yield f"errors {name}", values


def binned(data: Reviews, folder: Path) -> Items:
    """Yield a data set made of a table with a real target: its classes, parts and samples."""
    found = find("bin_target")(data.train["price"].to_numpy(), 4, min_count=20)
    yield "edges", found.edges
    frame = data.train[[*NUMBERS, "size"]]
    path = folder / "real.csv"
    frame.to_csv(path, index=False)
    sampling = find("Sampling")(n_validation=5, n_test=6, sample_size=12)
    dataset = find("make_dataset")(path, "price", n_bins=3, min_count=60, sampling=sampling, random_state=1)
    for part in ("train", "validation", "test"):
        X, y = getattr(dataset, part)
        yield f"{part} X", np.asarray(X)
        yield f"{part} y", y
    samples = dataset.samples("APP", "test")
    yield "samples", samples.items
    yield "prevalences", samples.prevalences


def other_titles(data: Reviews, folder: Path, tiny: bool) -> Titles:
    """Yield the titles of measures, protocols, classifiers, data sets and comparisons of methods."""
    yield "metrics", measured_errors
    yield "protocols", lambda: drawn(data)
    yield "classifiers", lambda: classified(data)
    yield "data set", lambda: binned(data, folder)
    yield "compare methods", lambda: compared_methods(data, False, tiny)
    yield "compare methods groups", lambda: compared_methods(data, True, tiny)


# --- unfolding ------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Detector:
    """Response M (d, n) of simulated events, acceptance (n,), background (d,), a spectrum (n,) and counts (d,)."""

    events: np.ndarray
    acceptance: np.ndarray
    background: np.ndarray
    truth: np.ndarray
    counts: np.ndarray

    @classmethod
    def make(cls, n: int) -> "Detector":
        """Simulate a detector with n true and n + 2 observed bins."""
        rng = np.random.default_rng(17)
        d = n + 2
        M = np.exp(-0.5 * ((np.linspace(0, n - 1, d)[:, None] - np.arange(n)) / 0.9) ** 2)
        M /= M.sum(axis=0)
        events = rng.poisson(3000 * M).astype(float)
        acceptance, background = np.linspace(0.3, 0.8, n), np.linspace(60.0, 15.0, d)
        truth = 6000 * np.exp(-0.4 * np.arange(n))
        counts = rng.poisson(M @ (acceptance * truth) + background).astype(float)
        return cls(events, acceptance, background, truth, counts)

    @property
    def M(self) -> np.ndarray:
        """Response whose columns are distributions."""
        return self.events / self.events.sum(axis=0)

    @property
    def known(self) -> dict[str, Any]:
        """Acceptance and background as keywords."""
        return {"acceptance": self.acceptance, "background": self.background}

    def systematics(self) -> dict[str, Any]:
        """Return sources of systematic errors, of every kind."""
        uncertainty = find("Uncertainty")
        off = np.roll(self.M, 1, axis=0) * 0.1 + self.M * 0.9
        return {
            "simulation": find("SimulatedEvents")(self.events, generated=np.full(len(self.truth), 5000.0)),
            "rate": uncertainty("background", 0.1, relative=True, correlated=True),
            "efficiency": uncertainty("acceptance", 0.02),
            "migration": uncertainty("response", 0.03, relative=True),
            "scale": find("ShiftedModel", "Alternative")(off, background=1.1 * self.background),
        }


def unfold_settings(detector: Detector) -> Iterator[tuple[str, Any, Any, dict[str, Any]]]:
    """Yield names, counts, responses and keywords of `unfold`."""
    import ordinalq as oq

    counts, M, known, n = detector.counts, detector.M, detector.known, len(detector.truth)
    systematics = detector.systematics()
    yield "default", counts, M, known
    yield "no acceptance", counts, M, {"background": detector.background}
    yield "systematics", counts, M, known | {"systematics": systematics}
    toys = {"propagation": "toys", "n_toys": 5}
    yield "systematics by toys", counts, M, known | {"systematics": systematics} | toys
    for rule in ("gcv", "lcurve", "global-correlation", "toys"):
        yield f"rule {rule}", counts, M, known | {"tau": rule, "n_toys": 5}
    yield "n_df", counts, M, known | {"n_df": n - 2.5, "systematics": systematics}
    yield "no regularization", counts, M, known | {"method": oq.RUN(tau=0.0), "edges": np.arange(n + 1.0)}
    iterations = oq.IBU(interpolation=0.0, stop="ks", tol=0.01)
    yield "IBU", counts, M, known | {"method": iterations, "systematics": systematics}
    yield "weighted counts", counts, M, known | {"variances": 1.5 * counts}
    grid = np.exp(-0.5 * ((np.arange(4)[:, None] - np.arange(3) - 0.5) / 0.6) ** 2)
    response = np.einsum("ai,bj->abij", grid, grid)
    shape = np.arange(9.0).reshape(3, 3) * 100 + 200
    yield "grid", np.round(np.einsum("abij,ij->ab", response, shape)), response / response.sum(axis=(0, 1)), {}
    if importlib.util.find_spec("boost_histogram") is not None:
        yield "histograms", *_histograms(detector), {"background": detector.background}


def _histograms(detector: Detector) -> tuple[Any, Any]:
    """Return counts and simulated events as histograms."""
    import boost_histogram as bh

    d, n = detector.events.shape
    observed, true = bh.axis.Regular(d, 0, d), bh.axis.Regular(n, 0, n)
    counts, events = bh.Histogram(observed), bh.Histogram(observed, true)
    counts.view()[...], events.view()[...] = detector.counts, detector.events
    return counts, events


def unfolded(counts: Any, response: Any, given: dict[str, Any], *, checks: bool) -> Items:
    """Yield an unfolded spectrum with its errors, the scan of strengths, and checks of it."""
    import ordinalq as oq

    found = oq.unfold(counts, response, **given)
    for name in ("counts", "covariance", "statistical", "refolded", "correlation"):
        yield name, getattr(found, name)
    # The latter are names of older versions.
    for name, former in (("bias_error", "bias"), ("total_error", "error_with_bias")):
        yield name, getattr(found, name if hasattr(found, name) else former)
    for name, covariance in found.systematic.items():
        yield f"systematic {name}", covariance
    for name in ("strength", "n_df", "n_iter", "converged", "chi_square", "dof", "p_value"):
        yield name, getattr(found, name)
    for bias in (True, False):
        yield f"interval, bias {bias}", np.array(found.interval(LEVEL, bias=bias))
    yield from framed("table", found)
    if found.scan is not None:
        for name in ("strengths", "n_df", "criterion", "chosen"):
            yield f"scan {name}", getattr(found.scan, name)
    if checks:
        tests = {
            "closure": find("closure_test")(found),
            "closure of another": find("closure_test")(found, found.counts[::-1]),
            "coverage": find("coverage_test")(found, n_toys=10, random_state=2),
            "bottom line": find("bottom_line_test")(found, {"same": found.counts, "other": 1.1 * found.counts}),
        }
        for name, test in tests.items():
            yield from framed(name, test)
            yield f"{name} passed", test.passed


def unfold_titles(tiny: bool) -> Titles:
    """Yield the titles of `unfold`."""
    for name, *arguments in unfold_settings(Detector.make(6 if tiny else 9)):
        if not tiny or name in TINY_UNFOLD:
            checks = name in ("default", "systematics", "no regularization", "IBU")
            yield f"unfold {name}", lambda arguments=arguments, checks=checks: unfolded(*arguments, checks=checks)


# --- tables in memory, and models in files --------------------------------------------------------------------


def table_model(data: Reviews, *, text: bool = True, groups: bool = True, **weights: Any) -> Any:
    """Return a model of tables, the default one, fitted on a frame."""
    import ordinalq as oq

    used = {"text": ["review"]} if text else {"categories": ["size"]}
    quantifier = find("AutoQuantifier", "Default")(budget="fast")
    model = oq.TableModel(quantifier, features=["price", "age", "day"], **used)
    return call(model.fit, data.train, "stars", groups="shop" if groups else None, **weights)


def tabled(data: Reviews, *, text: bool, groups: bool) -> Items:
    """Yield estimates of the rows of a frame by a model of tables."""
    model = table_model(data, text=text, groups=groups)
    yield from flat(model.quality_, "quality")
    yield "whole", model.predict(data.new)
    yield "scores", model.scores(data.new[:20])
    found = call(model.predict_groups, data.new, "shop", level=LEVEL, intervals=REPLICATES)
    yield from estimates("shop", found)
    yield from framed("compare", found.compare(*found.groups[:3].tolist()))
    how = {"level": LEVEL, "intervals": REPLICATES | {"estimand": "population"}}
    months = call(model.predict_groups, data.new, ["shop", "day:month"], **how)
    yield from estimates("months", months)
    yield from framed("trend", months.trend())
    yield from estimates("values", model.predict_groups(data.new, data.new["size"].to_numpy()))
    for kind, column in (("survey", "weight"), ("frequency", "count")):
        weights = {"sample_weight": column, "weight_type": kind}
        yield from estimates(kind, call(model.predict_groups, data.new, "shop", level=LEVEL, **weights))
    for basis in ("auto", "labels"):
        how = {"level": LEVEL, "labels": "known", "intervals": {"basis": basis}}
        yield from estimates(f"labels {basis}", call(model.predict_groups, data.new, "shop", **how))
    yield from framed("needed", model.labels_needed(data.new, "shop", 0.2))
    yield from flat(model.diagnose(data.new).to_dict(), "diagnosis")
    if importlib.util.find_spec("polars") is not None:
        import polars as pl

        yield from estimates("polars", model.predict_groups(pl.from_pandas(data.new), "shop", level=LEVEL))


def weighted_table(data: Reviews) -> Items:
    """Yield estimates by models of tables that were fitted with weights."""
    for kind, column in (("survey", "weight"), ("frequency", "count")):
        weights = {"sample_weight": column, "weight_type": kind}
        model = table_model(data, text=False, **weights)
        yield from estimates(kind, call(model.predict_groups, data.new, "shop", level=LEVEL, **weights))


def saved(name: str, data: Reviews, folder: Path) -> Items:
    """Yield estimates by a model that was written to a file and read again."""
    import ordinalq as oq

    path, items, groups = folder / "saved.oq", data.table("new")[0], data.table("new")[2]
    if name == "table":
        model, items, groups = table_model(data), data.new, "shop"
    else:
        model = next(q for setting, q, _ in [*group_settings(), _default_setting()] if setting == name)
        X, y, trained = data.table("train")
        call(model.fit, X, y, groups=trained if name.endswith("groups") else None)
    oq.save_model(model, path, overwrite=True)
    loaded = oq.load_model(path)
    for which, one in (("before", model), ("after", loaded)):
        yield f"{which} whole", one.predict(items)
        found = call(one.predict_groups, items, groups, level=LEVEL, intervals=REPLICATES)
        yield from estimates(which, found)


def _default_setting() -> tuple[str, Any, bool]:
    return "default groups", find("AutoQuantifier", "Default")(budget="fast"), True


def table_titles(data: Reviews, folder: Path, tiny: bool) -> Titles:
    """Yield the titles of tables in memory and of saved models."""
    yield "table text groups", lambda: tabled(data, text=True, groups=True)
    if not tiny:
        yield "table text", lambda: tabled(data, text=True, groups=False)
        yield "table numbers groups", lambda: tabled(data, text=False, groups=True)
        yield "table numbers", lambda: tabled(data, text=False, groups=False)
    yield "table weights", lambda: weighted_table(data)
    names = ("AML", "BLP groups", "default groups", "table")
    for name in names if tiny else (*names, "AML groups", "PACC groups", "SLD groups", "OPACC auto groups"):
        yield f"saved {name}", lambda name=name: saved(name, data, folder)


# --- tables in files, by the command line ---------------------------------------------------------------------


class Files:
    """Tables in files, and models that the command line fits on them.

    Parameters
    ----------
    data : Reviews
        Rows of the tables.
    folder : Path
        Folder for tables and models.
    """

    def __init__(self, data: Reviews, folder: Path) -> None:
        self.data = data
        self.folder = folder

    def table(self, which: str, kind: str) -> Path:
        """Return the path of the table `train` or `new`; `first` and `second` are halves of the latter."""
        path = self.folder / f"{which}.{kind}"
        if not path.exists():
            half = len(self.data.new) // 2
            parts = {"first": self.data.new[:half], "second": self.data.new[half:]}
            frame = parts.get(which, getattr(self.data, which, None))
            if kind == "csv":
                frame.to_csv(path, index=False)
            elif kind == "jsonl":
                frame.to_json(path, orient="records", lines=True, double_precision=15)
            else:
                frame.to_parquet(path, index=False)
        return path

    def model(self, name: str, kind: str = "csv") -> Path:
        """Return the path of a fitted model."""
        path = self.folder / f"{name} {kind}.oq"
        if not path.exists():
            self.fit(name, kind)
        return path

    def fit(self, name: str, kind: str = "csv") -> Any:
        """Fit a model, write it and return what the command prints."""
        blp = find("GroupBLP", "BLP").__name__
        choices = {
            "default": "--budget fast --text review",
            "groups": "--budget fast --text review --by shop",
            "PACC": "--method PACC --weight weight --weight-type survey",
            "OPACC": "--method OPACC --tau auto --weight count --weight-type frequency",
            "effect": f"--method {blp} --set group_effect=0.1",
        }
        target = ("--target", "stars", "--features", "price,age,size")
        out = self.folder / f"{name} {kind}.oq"
        return self.json("fit", self.table("train", kind), *target, "--out", out, *choices[name].split())

    def json(self, *arguments: Any) -> Any:
        """Return what a command prints as JSON."""
        return json.loads(command(*arguments, "--json"))

    def predicted(self, model: str, kind: str, *options: Any) -> Any:
        """Return what `predict` prints of the new table."""
        return self.json("predict", self.model(model, kind), self.table("new", kind), *options)

    def asked(self, name: str, *options: Any, model: str = "groups") -> Any:
        """Return what another subcommand prints of the new table."""
        return self.json(name, self.model(model), self.table("new", "csv"), *options)


def read_files(files: Files, kind: str, models: tuple[str, ...]) -> Items:
    """Yield estimates from files of one kind, by models that were fitted on such a file."""
    for name in models:
        yield from flat(files.fit(name, kind), f"{name} fit")
        yield from flat(files.predicted(name, kind), f"{name} whole")
        found = files.predicted(name, kind, "--by", "shop", "--level", LEVEL)
        yield from flat(found, f"{name} shop")
    yield from flat(files.predicted(models[-1], kind, "--by", "shop,size"), "two columns")
    yield from flat(files.predicted(models[-1], kind, "--by", "day:month"), "months")
    for basis in ("auto", "labels"):
        options = ("--by", "shop", "--level", LEVEL, "--labels", "known", "--basis", basis)
        yield from flat(files.predicted(models[-1], kind, *options), f"labels {basis}")


def predicted_files(files: Files, tiny: bool) -> Items:
    """Yield what `predict` prints and writes with its other options."""
    by_shop = ("--by", "shop", "--level", LEVEL)
    for estimand in ("sample", "population"):
        yield from flat(files.predicted("groups", "csv", *by_shop, "--estimand", estimand), estimand)
    for kind, column in (("survey", "weight"), ("frequency", "count")):
        options = (*by_shop, "--weight", column, "--weight-type", kind)
        for name in ("groups", "PACC"):
            yield from flat(files.predicted(name, "csv", *options), f"{name} {kind}")
    yield from flat(files.predicted("effect", "csv", *by_shop), "effect")
    yield from flat(files.predicted("PACC", "csv", *by_shop, "--diagnose"), "diagnose")
    yield from flat(files.predicted("groups", "csv", *by_shop, "--sort", "mean", "--top", 3), "top")
    yield from flat(files.predicted("groups", "csv", "--by", "shop", "--min-items", 20), "large")
    parts = [files.table(part, "csv") for part in ("first", "second")]
    yield from flat(files.json("predict", files.model("groups"), *parts, *by_shop), "two files")
    out = files.folder / "estimates.csv"
    command("predict", files.model("groups"), files.table("new", "csv"), *by_shop, "--out", out)
    for name, column in columns(pd.read_csv(out)).items():
        yield f"written {name}", column
    if not tiny:
        yield from flat(files.predicted("groups", "csv", *by_shop, "--n-jobs", 2), "two processes")


def asked_files(files: Files) -> Items:
    """Yield what `compare`, `plan` and `evaluate` print."""
    shops = sorted(set(files.data.new["shop"]))[:3]
    for name in ("groups", "PACC"):
        yield from flat(files.asked("compare", *shops, "--by", "shop", model=name), f"compare {name}")
    out = files.folder / "rows.csv"
    options = ("--by", "shop", "--width", 0.2, "--labels", "known", "--out", out)
    yield from flat(files.asked("plan", *options), "plan")
    yield "plan rows", pd.read_csv(out).iloc[:, 0].to_numpy()
    yield from flat(files.asked("plan", "--by", "shop", "--quantity", 5, model="PACC"), "plan of a class")
    samples = ("--samples", 30, "--sample-size", 40)
    yield from flat(files.asked("evaluate", "--by", "shop"), "evaluate groups")
    yield from flat(files.asked("evaluate", *samples), "evaluate samples")
    yield from flat(files.asked("evaluate", *samples, "--protocol", "app-oq:0.3", model="PACC"), "evaluate smooth")
    yield from flat(files.asked("evaluate", *samples, "--methods", "CC,PACC,OPACC,SLD"), "methods on samples")
    yield from flat(files.asked("evaluate", "--by", "shop", "--methods", "CC,PACC,SLD"), "methods on groups")


def file_titles(data: Reviews, folder: Path, tiny: bool) -> Titles:
    """Yield the titles of tables in files."""
    files = Files(data, folder)
    models = ("groups",) if tiny else ("default", "PACC", "OPACC", "effect", "groups")
    for kind in ("csv", "jsonl", "parquet"):
        yield f"files {kind}", lambda kind=kind: read_files(files, kind, models)
    yield "files predict", lambda: predicted_files(files, tiny)
    yield "files compare, plan, evaluate", lambda: asked_files(files)


# --- an experiment of the paper's kind ------------------------------------------------------------------------


def experiment(home: Path, config: str, tables: tuple[str, ...]) -> Items:
    """Yield the results of a small experiment, written into the folder `home`; figures are empty."""
    rng = np.random.default_rng(3)
    stars = np.arange(480) % 4 + 1
    frame = pd.DataFrame({"a": stars + rng.normal(size=480), "b": rng.normal(size=480), "stars": stars})
    home.mkdir()
    frame.to_csv(home / "items.csv", index=False)
    (home / "small.toml").write_text(config)
    with mock.patch("matplotlib.figure.Figure.savefig", _empty_picture):
        command("reproduce", home / "small.toml", "--out", home / "out", "--n-jobs", 1, "--quiet")
    for name in ("validation", "selected", "estimates", "truth"):
        table = columns(pd.read_parquet(home / "out" / f"{name}.parquet"))
        for column, values in table.items():
            if "seconds" not in column:
                yield f"{name} {column}", values
    for name in tables:
        for column, values in columns(pd.read_csv(home / "out" / "tables" / f"{name}.csv")).items():
            yield f"table {name} {column}", values


def _empty_picture(figure: Any, file: Any, *arguments: Any, **options: Any) -> None:
    """Write an empty image in place of a figure."""
    content = '<svg width="1" height="1"></svg>'
    if isinstance(file, io.TextIOBase):
        file.write(content)
    elif hasattr(file, "write"):
        file.write(content.encode())
    else:
        Path(file).write_text(content)


def experiment_titles(folder: Path, tiny: bool) -> Titles:
    """Yield the titles of experiments."""
    methods = ("PACC", "OPACC") if tiny else ("CC", "PACC", "HDx", "SLD", "OQT", "ARC", "EDy", "OPACC", "OHDx")
    config = EXPERIMENT.format(methods=", ".join(f'"{name}"' for name in methods))
    yield "experiment", lambda: experiment(folder / "experiment", config, ("nmd", "rnod"))
    if not tiny:
        yield "experiment classifiers", lambda: experiment(folder / "classifiers", CLASSIFIER_EXPERIMENT, ())


def application_titles(tiny: bool, folder: Path) -> list[Titles]:
    """Return the titles of each part of this module; files go into a folder."""
    data = Reviews.make(300, 240, 12) if tiny else Reviews.make(1500, 1500, 24)
    return [
        group_titles(data, tiny),
        default_titles(data, tiny),
        other_titles(data, folder, tiny),
        unfold_titles(tiny),
        table_titles(data, folder, tiny),
        file_titles(data, folder, tiny),
        experiment_titles(folder, tiny),
    ]


# --- times ----------------------------------------------------------------------------------------------------


def application_tasks(tiny: bool, folder: Path) -> Iterator[tuple[str, Callable[[], Callable[[], Any]]]]:
    """Yield names of tasks, and functions that prepare them and return what is timed."""
    import ordinalq as oq

    data = Reviews.make(300, 240, 12) if tiny else Reviews.make(2000, 10_000, 24)
    (X, y, groups), (X_new, _, groups_new) = data.table("train"), data.table("new")
    labels = data.new["known"].to_numpy(dtype=object, na_value=None)
    aml, blp, auto = find("AdjustedML", "AML"), find("GroupBLP", "BLP"), find("AutoQuantifier", "Default")

    @functools.cache
    def fitted(name: str) -> Any:
        cls, with_groups = classes[name]
        return call(cls().fit, X, y, groups=groups if with_groups else None)

    def fit(name: str) -> Callable[[], Any]:
        cls, with_groups = classes[name]
        return lambda: call(cls().fit, X, y, groups=groups if with_groups else None)

    def predict(name: str, **how: Any) -> Callable[[], Any]:
        q = fitted(name)
        return lambda: call(q.predict_groups, X_new, groups_new, level=LEVEL, intervals=REPLICATES, **how)

    fast = functools.partial(auto, budget="fast")
    classes: dict[str, tuple[Any, bool]] = {
        "AML": (aml, False),
        "AML with groups": (aml, True),
        "BLP": (blp, False),
        "BLP with groups": (blp, True),
        "Default": (fast, False),
        "Default with groups": (fast, True),
        "PACC": (oq.PACC, False),
    }
    for name in classes:
        yield f"{name} fit on items", functools.partial(fit, name)
        yield f"{name} groups, level", functools.partial(predict, name)
    for name in ("PACC", "BLP with groups", "Default with groups"):
        yield f"{name} labels", functools.partial(predict, name, labels=labels)
    for kind in ("csv", "parquet"):
        yield f"TableModel {kind} fit", functools.partial(_file_fit, data, folder, kind)
        yield f"TableModel {kind} predict", functools.partial(_file_predict, data, folder, kind)
    yield "TableModel frame predict", functools.partial(_frame_predict, data)
    detector = Detector.make(6 if tiny else 12)
    given = detector.known
    yield "unfold", lambda: lambda: oq.unfold(detector.counts, detector.M, **given)
    both = given | {"systematics": detector.systematics()}
    yield "unfold, systematics", lambda: lambda: oq.unfold(detector.counts, detector.M, **both)
    yield "unfold, coverage", functools.partial(_coverage, detector)


def _file_fit(data: Reviews, folder: Path, kind: str) -> Callable[[], Any]:
    files = Files(data, folder)
    files.table("train", kind)
    return lambda: files.fit("groups", kind)


def _file_predict(data: Reviews, folder: Path, kind: str) -> Callable[[], Any]:
    files = Files(data, folder)
    files.predicted("groups", kind)
    return lambda: files.predicted("groups", kind, "--by", "shop", "--level", LEVEL)


def _frame_predict(data: Reviews) -> Callable[[], Any]:
    model = table_model(data)
    return lambda: model.predict_groups(data.new, "shop", level=LEVEL)


def _coverage(detector: Detector) -> Callable[[], Any]:
    import ordinalq as oq

    found = oq.unfold(detector.counts, detector.M, **detector.known)
    return lambda: find("coverage_test")(found, n_toys=20)
