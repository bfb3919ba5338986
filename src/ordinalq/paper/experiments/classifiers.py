"""The comparison of ordinal and other classifiers in quantifiers.

LR, OLR-AT, OLR-IT, ORidge and LAD in CC, PCC, ACC, PACC and SLD, under APP. A method is a pair, such as "OLR-AT-PACC".
Settings "paper" take the quantifiers of the paper's own sections, on a cross-fitted classifier, as its main tables do.
The authors made their table by another program with other versions of them. These stand here for settings "reference":

* CC, PCC and SLD use a classifier that was trained on all of L, without cross-fitting.
* ACC and PACC train on 60% of L, take M from the other 40%, and invert it.
* SLD stops where its estimate has become stable, instead of after 100 iterations.

A unit of work is one configuration of a classifier, which serves all quantifiers.
"""

import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from sklearn.base import clone

from ordinalq._utils.validation import Codes, Floats, Mask, check_choice
from ordinalq.classifiers.cross_fitting import CrossFitted
from ordinalq.classifiers.registry import make_classifier
from ordinalq.datasets import Dataset
from ordinalq.model_selection.engine import Attempt, describe
from ordinalq.model_selection.search import configurations_of
from ordinalq.paper.experiments.config import (
    ADJUSTED,
    CLASSIFIERS,
    COUNTING,
    QUANTIFIERS,
    Config,
    classifier_grid,
    split_pair,
)
from ordinalq.paper.experiments.outcome import prevalence_columns
from ordinalq.paper.experiments.units import POOLS, Material, ScoredUnit, Setup, Trial, Unit
from ordinalq.quantifiers.catalog import find_method
from ordinalq.samples.samples import OneHot, Samples
from ordinalq.simplex import clean
from ordinalq.solvers.objectives import Block, MixtureObjective

N_FOLDS = 10  # of cross-fitted classifiers
HELD_OUT = 0.4  # part of L from which ACC and PACC take M
# SLD stops at the first iteration from the 12th on that changes p by less than this, on average over the classes.
SLD_FIRST_STOP = 12
SLD_CHANGE = 1e-4
SLD_MAX_ITER = 1000


class Predictions(NamedTuple):
    """Predictions of a classifier for N items.

    ``votes`` (N,) are in 0..n-1. ``posteriors`` (N, n) are None if the classifier has none. The vote is the decision of
    the classifier. For OLR-AT and OLR-IT it is the median class of the posteriors, not the most probable one.
    """

    votes: Codes
    posteriors: Floats | None

    def represented(self, quantifier: str, n_classes: int) -> Floats | OneHot:
        """Return f(x) of a quantifier for each item, shape (N, n).

        These are the votes or the posteriors.
        """
        if quantifier in COUNTING:
            return OneHot(self.votes[:, None], n_classes)
        assert self.posteriors is not None
        return self.posteriors


class Scored(NamedTuple):
    """The two classifiers of a configuration: trained on L, and on 60% of it."""

    whole: Mapping[str, Predictions]  # predictions of each pool by the first
    part: Mapping[str, Predictions]  # and by the second
    held_out: Predictions  # predictions of the second, on the other 40%
    codes: Codes  # classes of the held-out items
    p_train: Floats  # (n,) class frequencies of L


def classifier_units(config: Config) -> Iterator[Unit]:
    """Yield the units of an experiment of the kind "classifiers".

    They are in the order of the classifiers and their grids.
    """
    setup = Setup.of(config)
    for name, strength in CLASSIFIERS.items():
        trials = tuple(Trial(method, {}) for method in config.methods if split_pair(method)[0] == name)
        for parameters in configurations_of(config.grids.get(name, classifier_grid(name))) if trials else ():
            make_classifier(name, parameters)  # refuses unknown parameters before the work
            # The weaker the penalty, the longer it takes.
            decades = np.log10(max(float(parameters.get(strength, 1.0)), 1e-12))
            cost = max(1.0, 4.0 + (decades if strength == "C" else -decades))
            if config.settings == "paper":
                yield CrossFittedUnit({"name": name} | parameters, trials, setup, float(N_FOLDS * cost))
            else:
                yield ClassifierUnit({"name": name} | parameters, trials, setup, float(cost))


def hold_out(y: Codes, seed: int) -> tuple[Codes, Codes]:
    """Split items with classes y (N,) into 60% for training and 40% for M.

    The split is random and stratified by class. Both parts have every class. Items are ascending.
    """
    rng = np.random.default_rng(seed)
    parts: tuple[list[Codes], list[Codes]] = ([], [])
    for c, count in enumerate(np.bincount(y)):
        if count < 2:
            raise ValueError(
                f"every class must have at least 2 training items, one of them held out, but class {c} has {count}."
            )
        items = rng.permutation(np.flatnonzero(y == c))
        n_held_out = min(max(round(HELD_OUT * count), 1), count - 1)
        parts[0].append(items[n_held_out:])
        parts[1].append(items[:n_held_out])
    training, held_out = (np.sort(np.concatenate(part)) for part in parts)
    return training, held_out


def fit_scores(
    classifier: Any,
    dataset: Dataset,
    split: tuple[Codes, Codes],
    *,
    quantifiers: Sequence[str] = QUANTIFIERS,
) -> Scored:
    """Fit a classifier on L and on 60% of it, and score the pools.

    A fit is omitted if the quantifiers do not need it. The split is that of :func:`hold_out`.
    """
    X, y = dataset.train
    training, held_out = split
    pools = {pool: getattr(dataset, pool).X for pool in POOLS}
    whole, part = {}, {"held out": Predictions(np.empty(0, dtype=np.intp), None)}
    if set(quantifiers) - set(ADJUSTED):
        whole = _predictions(clone(classifier).fit(X, y), pools)
    if set(quantifiers) & set(ADJUSTED):
        part = _predictions(clone(classifier).fit(X[training], y[training]), pools | {"held out": X[held_out]})
    return Scored(whole, part, part.pop("held out"), y[held_out], np.bincount(y) / len(y))


def estimate(quantifier: str, scored: Scored, pool: str, samples: Samples) -> tuple[Floats, Mask]:
    """Estimate samples of a pool by the reference's version of a quantifier.

    The quantifiers are CC, PCC, ACC, PACC and SLD. The result is P (B, n), and whether each estimate has converged
    (B,). Only SLD can fail to converge.
    """
    check_choice("quantifier", quantifier, QUANTIFIERS)
    n = len(scored.p_train)
    said = (scored.part if quantifier in ADJUSTED else scored.whole)[pool]
    if said.posteriors is None and quantifier not in COUNTING:
        raise TypeError(f"{quantifier} needs posteriors, but the classifier gives votes only; use CC or ACC.")
    if quantifier == "SLD":
        assert said.posteriors is not None
        return sld_until_stable(said.posteriors, samples, scored.p_train)
    P = samples.average(said.represented(quantifier, n))
    if quantifier in ADJUSTED:
        # A class is a sample too.
        M = Samples.from_groups(scored.codes).average(scored.held_out.represented(quantifier, n)).T
        P = invert(P, M)
    return P, np.ones(len(P), dtype=bool)


def invert(Q: Floats, M: Floats) -> Floats:
    """M^-1 q, clipped to [0, 1] and divided by its sum; q itself where M is singular.

    Q (B, n) are mean votes or posteriors of the samples, M (n, n) those of the classes, one per column.
    """
    try:
        P = np.linalg.solve(M, Q.T).T
    except np.linalg.LinAlgError:  # such as a class without votes
        return Q
    return clean(np.clip(P, 0.0, 1.0))


def sld_until_stable(S: Floats, samples: Samples, p_train: Floats) -> tuple[Floats, Mask]:
    """Run SLD from p_L until the mean absolute change is below 1e-4.

    It stops at the first iteration k >= 12 with mean_i |p_i^(k) - p_i^(k-1)| < 1e-4, or after 1000 iterations. S (N, n)
    are posteriors of the pool. p_L (n,) is both start and divisor. The result is P (B, n), and whether the change has
    become small enough (B,).
    """
    objective = MixtureObjective(S / p_train, samples)
    P = np.tile(p_train, (len(samples), 1))
    converged = np.zeros(len(samples), dtype=bool)
    for block in objective.blocks(np.arange(len(samples))):
        rows = block.rows
        for k in range(1, SLD_MAX_ITER + 1):
            new = P[rows] * block.weighted_ratios(P[rows])
            moving = np.abs(new - P[rows]).mean(axis=1) >= SLD_CHANGE
            P[rows] = new
            if k < SLD_FIRST_STOP or moving.all():
                continue
            converged[rows[~moving]] = True
            rows = rows[moving]
            if len(rows) == 0:
                break
            block = Block(rows, block.R[moving], block.W[moving])
    return clean(P), converged  # items that no class explains have lost their mass


class ClassifierUnit(Unit):
    """One configuration of a classifier in all its quantifiers.

    What it stores for the trials is the least that estimates of both pools can be made from. For CC, PCC, ACC and PACC
    that is the estimates themselves. SLD needs the posteriors of the items; its estimates take more time than all else
    where posteriors hardly differ, and on the test samples only the selected configuration has to make them.
    """

    kinds = ("scores", "validation")

    def describe(self, kind: str) -> dict[str, Any]:
        """Return everything about the unit that determines a part of it."""
        return super().describe(kind) | {"trials": [list(trial) for trial in self.trials]}

    def modules(self, kind: str) -> list[str]:
        """Return this module: its quantifiers are not those of the catalog."""
        return [__name__]

    def score(self, material: Material) -> pd.DataFrame:
        """Fit the classifier on both parts of L and score the pools.

        There is one row per pool, trial and sample, or item in the case of SLD.
        """
        start = time.perf_counter()
        classifier = _unfitted_classifier(self)
        split = hold_out(material.dataset.train.y, self.setup.seed)
        quantifiers = {trial.method: split_pair(trial.method)[1] for trial in self.trials}
        try:
            scored = fit_scores(classifier, material.dataset, split, quantifiers=list(quantifiers.values()))
        except Exception as error:  # the experiment continues, and the message goes to the table
            seconds, message = time.perf_counter() - start, describe(error)
            return pd.DataFrame({"seconds": [seconds], "message": [message]})
        seconds = time.perf_counter() - start
        tables = []
        for pool in POOLS:
            for method, quantifier in quantifiers.items():
                begin = time.perf_counter()
                if quantifier == "SLD":
                    P = scored.whole[pool].posteriors
                    assert P is not None
                else:
                    P, _ = estimate(quantifier, scored, pool, getattr(material, pool).samples)
                table = pd.DataFrame({"pool": pool, "method": method} | prevalence_columns(P))
                tables.append(table.assign(estimating=time.perf_counter() - begin))
        return pd.concat(tables, ignore_index=True).assign(seconds=seconds, message="")

    def estimate(self, material: Material, scores: pd.DataFrame | None, pool: str) -> list[Attempt]:
        """Return the estimates of each trial on the samples of a pool."""
        assert scores is not None
        if message := scores["message"].iloc[0]:
            return [Attempt.failed(message) for _ in self.trials]
        names = [f"p_{i + 1}" for i in range(material.n_classes)]
        stored = dict(iter(scores[scores["pool"] == pool].groupby("method", sort=False)))
        y = material.dataset.train.y
        found = []
        for trial in self.trials:
            begin = time.perf_counter()
            P = stored[trial.method][names].to_numpy()
            converged = np.ones(len(P), dtype=bool)
            if split_pair(trial.method)[1] == "SLD":
                P, converged = sld_until_stable(P, getattr(material, pool).samples, np.bincount(y) / len(y))
            seconds = float(stored[trial.method]["estimating"].iloc[0]) + time.perf_counter() - begin
            found.append(Attempt(P, converged, seconds, ""))
        return found


class CrossFittedUnit(ScoredUnit):
    """One configuration of a classifier, cross-fitted, with several quantifiers.

    The quantifiers are those of the paper's main sections.
    """

    def modules(self, kind: str) -> list[str]:
        """Return this module, which imports those of all quantifiers."""
        return [__name__]

    def make_classifier(self) -> Any:
        """Return the unfitted classifier in ten folds."""
        return CrossFitted(_unfitted_classifier(self), cv=N_FOLDS, n_jobs=1, random_state=self.setup.seed)

    def estimate(self, material: Material, scores: pd.DataFrame | None, pool: str) -> list[Attempt]:
        """Return the estimates of each trial.

        The trial "OLR-AT-PACC" is PACC on the scores of OLR-AT.
        """
        inner = [split_pair(trial.method)[1] for trial in self.trials]
        grids = {name: find_method(name).grid(material.n_classes, "paper") for name in inner}
        trials = tuple(Trial(name, {key: values[0] for key, values in grids[name].items()}) for name in inner)
        return ScoredUnit.estimate(replace(self, trials=trials), material, scores, pool)


def _unfitted_classifier(unit: Unit) -> Any:
    """Return the unfitted classifier of a unit, which is named in its parameters."""
    parameters = {name: value for name, value in unit.classifier.items() if name != "name"}
    return make_classifier(unit.classifier["name"], parameters, random_state=unit.setup.seed)


def _predictions(model: Any, parts: Mapping[str, Any]) -> dict[str, Predictions]:
    """Return the votes of a fitted classifier for each part, and its posteriors.

    Posteriors are None if the classifier has none.
    """
    found = {}
    for name, X in parts.items():
        posteriors = np.asarray(model.predict_proba(X), dtype=np.float64) if hasattr(model, "predict_proba") else None
        found[name] = Predictions(np.asarray(model.predict(X), dtype=np.intp), posteriors)
    return found
