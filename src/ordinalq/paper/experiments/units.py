"""Material of an experiment, and its units of work.

A unit consists of trials that are fitted and scored together. It belongs to one classifier configuration. The
classifier is fitted once, and its scores are used by all methods with all their parameters. Methods on features, such
as HDx, and methods that fit their classifiers themselves, such as OQT, are separate units. Units do not depend on each
other, and each is deterministic.
"""

import inspect
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any, ClassVar, NamedTuple

import numpy as np
import pandas as pd

from ordinalq.classifiers.cross_fitting import CrossFitted
from ordinalq.classifiers.registry import scoring_classifier
from ordinalq.datasets import Dataset, Sampling, load_dataset, make_dataset
from ordinalq.datasets.dataset import POOLS as POOLS
from ordinalq.datasets.dataset import derived_seed
from ordinalq.metrics import find_measure
from ordinalq.model_selection.engine import Attempt, EvaluationSamples, Learned, Training, learn
from ordinalq.model_selection.search import configurations_of
from ordinalq.paper.experiments.config import Config, import_object
from ordinalq.paper.experiments.outcome import prevalence_columns
from ordinalq.paper.experiments.store import content_hash, to_json
from ordinalq.protocols import APP, APPOQ, NPP, Dirichlet, RealPrevalences
from ordinalq.quantifiers.base import Quantifier
from ordinalq.quantifiers.catalog import find_method
from ordinalq.quantifiers.counting import CC
from ordinalq.samples.samples import Samples, smoothest_mask
from ordinalq.simplex import jaggedness

# Material: the items of a data set, and the samples of its protocols


@dataclass(frozen=True, eq=False)
class Material:
    """Data shared by all units: training items, pools, samples."""

    dataset: Dataset
    validation: EvaluationSamples
    test: EvaluationSamples
    digest: str

    @property
    def n_classes(self) -> int:
        """Number of classes."""
        return len(self.dataset.classes)

    @property
    def training(self) -> Training:
        """Training items."""
        return Training(*self.dataset.train, np.arange(self.n_classes))

    @property
    def pools(self) -> dict[str, Any]:
        """Items of both pools."""
        return {pool: getattr(self.dataset, pool).X for pool in POOLS}


def prepare(config: Config, data: str | Path | None = None) -> Material:
    """Load the data set of an experiment and draw its samples."""
    dataset = _dataset(config, data)
    if config.protocols:
        validation, test = (
            EvaluationSamples.of({one["name"]: _drawn(dataset, one, pool) for one in config.protocols})
            for pool in POOLS
        )
    else:
        # The paper compares classifiers under APP only.
        protocols = ("APP",) if config.kind == "classifiers" else dataset.protocols
        validation, test = (_battery(dataset, protocols, pool, config.samples.get(f"n_{pool}")) for pool in POOLS)
    digest = content_hash(
        *(array for part in (dataset.train, dataset.validation, dataset.test) for array in part),
        *(array for battery in (validation, test) for array in (battery.samples.items, *battery.rows.values())),
    )
    return Material(dataset, validation, test, digest)


def _battery(dataset: Dataset, protocols: tuple[str, ...], pool: str, limit: int | None) -> EvaluationSamples:
    """Return the samples of a pool; of given ones, at most `limit` per protocol.

    APP-OQ is a part of APP, unless its samples are given, and costs nothing more.
    """
    drawn = [name for name in protocols if name != "APP-OQ" or (name, pool) in dataset.given]
    battery = EvaluationSamples.of({name: dataset.samples(name, pool)[:limit] for name in drawn})
    rows = battery.rows
    if len(drawn) < len(protocols):
        rows = rows | {"APP-OQ": np.flatnonzero(smoothest_mask(battery.truth[rows["APP"]], dataset.sampling.app_oq))}
    return EvaluationSamples(battery.samples, {name: rows[name] for name in protocols})


def _drawn(dataset: Dataset, about: Mapping[str, Any], pool: str) -> Samples:
    """Return the samples of a protocol of the experiment file."""
    kind, how = about["kind"], dict(about)
    if kind == "given":
        return dataset.samples(about["name"], pool)
    sampling = dataset.sampling
    common: dict[str, Any] = {
        key: how.get(key, getattr(sampling, key)) for key in ("sample_size", "rounding", "min_per_class", "small_pool")
    }
    common["n_samples"] = how.get(f"n_{pool}", getattr(sampling, f"n_{pool}"))
    # APP-OQ keeps samples of APP.
    common["random_state"] = derived_seed(dataset.random_state, "APP" if kind == "APP-OQ" else about["name"], pool)
    protocol: Any
    if kind == "APP":
        protocol = APP(**common)
    elif kind == "APP-OQ":
        protocol = APPOQ(about["fraction"], **common)
    elif kind == "Dirichlet":
        protocol = Dirichlet(about["alpha"], **common)
    elif kind == "real":
        protocol = RealPrevalences(_vectors(about["vectors"]), poisson=about.get("poisson", False), **common)
    else:
        protocol = NPP(**{key: common[key] for key in ("n_samples", "sample_size", "small_pool", "random_state")})
    samples: Samples = protocol.draw(getattr(dataset, pool).y, classes=np.arange(len(dataset.classes)))
    return samples


def _vectors(given: Any) -> Any:
    """Return distributions (k, n), given or read from a file.

    A file has numbers without a header.
    """
    if not isinstance(given, str):
        return given
    table = pd.read_csv(given, sep=None, engine="python", header=None)
    try:
        return table.to_numpy(dtype=np.float64)
    except ValueError as error:
        raise ValueError(f"{given} must have numbers without a header, one distribution per row: {error}.") from error


def _dataset(config: Config, data: str | Path | None) -> Dataset:
    """Load the data set, with the numbers of samples of the configuration."""
    about = config.dataset
    if "table" not in about:
        if "loader" in about:
            dataset = import_object(about["loader"])(data=data, random_state=config.seed)
            if not isinstance(dataset, Dataset):
                raise TypeError(f"loader {about['loader']} must return a Dataset, got {type(dataset).__name__}.")
        else:
            dataset = load_dataset(about["name"], data=data, settings=config.settings, random_state=config.seed)
        changes: dict[str, Any] = {
            name: value for name, value in config.samples.items() if value != getattr(dataset.sampling, name)
        }
        return replace(dataset, sampling=replace(dataset.sampling, **changes)) if changes else dataset
    given: dict[str, Any] = {
        name: about[name] for name in ("n_bins", "classes", "features", "min_count") if name in about
    }
    if "text" in about:
        from ordinalq.datasets.text import tfidf

        given |= {"features": about["text"], "encoder": tfidf()}
    numbers: dict[str, Any] = {"n_validation": 1000, "n_test": 2000} | config.samples
    sampling = Sampling(**numbers)
    table = about["table"] if data is None else data
    return make_dataset(table, about["target"], sampling=sampling, random_state=config.seed, **given)


# Units

# Modules that fit classifiers and compare methods. The data themselves are a part of every key.
COMPUTING = ("ordinalq.classifiers.registry", "ordinalq.model_selection.engine", "ordinalq.quantifiers.counting")


class Trial(NamedTuple):
    """Method with its parameters.

    It has the path of its class if that is not in the catalog.
    """

    method: str
    parameters: dict[str, Any]
    path: str = ""

    def quantifier(self, **more: Any) -> Quantifier:
        """Return the unfitted quantifier, with more parameters where it has them."""
        made: Quantifier = find_method(self.path or self.method).cls(**self.parameters)
        made.set_params(**{name: value for name, value in more.items() if name in made.get_params(deep=False)})
        return made


@dataclass(frozen=True)
class Setup:
    """Settings shared by all units of an experiment.

    ``family``, ``n_estimators`` and fixed ``parameters`` of the classifier, the ``seed`` of all classifiers, the error
    ``measures`` (names, or paths of own ones), and the methods that get ``in_sample`` scores.
    """

    family: str
    n_estimators: int
    seed: int
    measures: tuple[str, ...]
    in_sample: tuple[str, ...]
    parameters: dict[str, Any] = field(default_factory=dict)

    @classmethod
    def of(cls, config: Config) -> "Setup":
        """Return the setup of an experiment."""
        family, n_estimators = config.classifier.get("family", ""), config.classifier.get("n_estimators", 100)
        measures = tuple(config.outside.get(name, name) for name in config.measures)
        seed, parameters = derived_seed(config.seed, "classifier"), config.classifier.get("parameters", {})
        return cls(family, n_estimators, seed, measures, config.in_sample, parameters)

    def classifier(self, parameters: Mapping[str, Any]) -> Any:
        """Return an unfitted classifier of the paper, with out-of-sample scores.

        "forest": a random forest with out-of-bag scores. "logistic": logistic regression in ten folds. Everything
        else is scikit-learn's default; "none" in `parameters` stands for None. A class of the user, "module:Class", is
        cross-fitted in ten folds.
        """
        given = self.parameters | dict(parameters)
        if ":" in self.family:
            return CrossFitted(own_classifier(self.family, given, self.seed), n_jobs=1, random_state=self.seed)
        trees = {"n_estimators": self.n_estimators} if self.family == "forest" else {}
        return scoring_classifier(self.family, trees | given, random_state=self.seed)


def own_classifier(path: str, parameters: Mapping[str, Any], seed: int) -> Any:
    """Return an unfitted classifier of the class "module:Class".

    The seed is passed if it has a random_state.
    """
    cls = import_object(path)
    given = {key: None if value == "none" else value for key, value in parameters.items()}
    random = {"random_state": seed} if "random_state" in inspect.signature(cls).parameters else {}
    return cls(**(random | given))


@dataclass(frozen=True, eq=False)
class Unit(ABC):
    """Trials that share a classifier."""

    classifier: dict[str, Any]  # its parameters; empty if there is none
    trials: tuple[Trial, ...]
    setup: Setup
    cost: float  # a guess of the seconds that it takes, for the order of the units and for the progress bar

    # The parts that `validate` makes.
    kinds: ClassVar[tuple[str, ...]] = ("validation",)

    @property
    def label(self) -> str:
        """Short description for the log."""
        methods = list(dict.fromkeys(trial.method for trial in self.trials))
        what = ", ".join(methods) if len(methods) < 4 else f"{len(methods)} methods"
        how = ", ".join(f"{name}={value}" for name, value in self.classifier.items())
        return f"{what} ({how})" if how else what

    def describe(self, kind: str) -> dict[str, Any]:
        """Return everything about the unit that determines a part of it."""
        about = {"unit": type(self).__name__, "kind": kind, "classifier": self.classifier, "setup": asdict(self.setup)}
        return about if kind == "scores" else about | {"trials": [list(trial) for trial in self.trials]}

    def modules(self, kind: str) -> list[str]:
        """Return the modules that compute a part; a change of others keeps it."""
        trials = () if kind == "scores" else self.trials
        return [*COMPUTING, *(find_method(one.method).cls.__module__ for one in trials if not one.path)]

    def score(self, material: Material) -> pd.DataFrame | None:
        """Return the scores that the trials share; None if there are none."""
        return None

    @abstractmethod
    def estimate(self, material: Material, scores: pd.DataFrame | None, pool: str) -> list[Attempt]:
        """Return the estimates of each trial on the samples of a pool."""

    def validate(self, material: Material, scores: pd.DataFrame | None) -> dict[str, pd.DataFrame]:
        """Return the parts of `kinds`: validation results and intermediate data.

        The results are the errors of the trials on the validation samples. The scores are those that `score` returned
        in an earlier run, if there was one.
        """
        scores = self.score(material) if scores is None else scores
        parts = {} if scores is None else {"scores": scores}
        found = self.estimate(material, scores, "validation")
        seconds = 0.0 if scores is None else float(scores["seconds"].iloc[0])
        return parts | {"validation": self._validation_rows(found, material.validation, seconds)}

    def test(self, material: Material, scores: pd.DataFrame | None) -> dict[str, pd.DataFrame]:
        """Return the part "estimates": what the trials say of each test sample."""
        return {"estimates": self._estimate_rows(self.estimate(material, scores, "test"), material.n_classes)}

    def _validation_rows(
        self, estimates: Iterable[Attempt], battery: EvaluationSamples, scoring_seconds: float
    ) -> pd.DataFrame:
        """Return the rows of the validation table."""
        jagged = jaggedness(battery.truth)
        measures = {
            one.rpartition(":")[2]: find_measure(import_object(one) if ":" in one else one)[1]
            for one in self.setup.measures
        }
        rows = []
        for trial, result in zip(self.trials, estimates, strict=True):
            for row in battery.measure_errors(result, measures, scoring_seconds):
                index, smoothing = battery.rows[row["protocol"]], np.nan
                if not result.message:
                    smoothing = float(jaggedness(result.P[index]).mean() / jagged[index].mean())
                rows.append(self._names(trial) | row | {"n_samples": len(index), "smoothing": smoothing})
        return pd.DataFrame(rows)

    def _names(self, trial: Trial) -> dict[str, Any]:
        """Return what identifies a trial in a table."""
        classifier, parameters = to_json(self.classifier), to_json(trial.parameters)
        return {"method": trial.method, "classifier": classifier, "parameters": parameters}

    def _estimate_rows(self, estimates: Iterable[Attempt], n: int) -> pd.DataFrame:
        """Return one row per trial and sample; none for a trial that failed."""
        tables = []
        for trial, result in zip(self.trials, estimates, strict=True):
            P = np.empty((0, n)) if result.message else result.P
            head = {"sample": np.arange(len(P)), "converged": result.converged}
            tables.append(pd.DataFrame(self._names(trial) | head | prevalence_columns(P)))
        return pd.concat(tables, ignore_index=True)


class ScoredUnit(Unit):
    """All methods on the scores of one classifier."""

    kinds = ("scores", "validation")

    def make_classifier(self) -> Any:
        """Return the unfitted classifier, with out-of-sample scores."""
        return self.setup.classifier(self.classifier)

    def score(self, material: Material) -> pd.DataFrame:
        """Fit the classifier and score all items.

        The training items are scored out-of-sample. The items of the pools are scored, too.
        """
        pools = material.pools
        if self.setup.in_sample:
            pools["in_sample"] = material.dataset.train.X
        learned = learn(CC(self.make_classifier()), material.training, pools)
        scores = {"train": learned.S} | dict(learned.pools)
        if learned.message:
            scores = {"train": np.full((1, material.n_classes), np.nan)}
        tables = [pd.DataFrame({"part": part} | prevalence_columns(S, "s")) for part, S in scores.items()]
        return pd.concat(tables, ignore_index=True).assign(seconds=learned.seconds, message=learned.message)

    def estimate(self, material: Material, scores: pd.DataFrame | None, pool: str) -> list[Attempt]:
        """Return the estimates of each trial; those of the same representation share it."""
        assert scores is not None
        columns = [name for name in scores.columns if name.startswith("s_")]
        S = {str(part): table[columns].to_numpy() for part, table in scores.groupby("part", sort=False)}
        found: dict[int, Attempt] = {}
        for part in ("train", "in_sample"):
            chosen = [
                i for i, t in enumerate(self.trials) if (t.method in self.setup.in_sample) == (part == "in_sample")
            ]
            learned = Learned(material.training, S.get(part), S, message=scores["message"].iloc[0])
            quantifiers = (self.trials[i].quantifier() for i in chosen)
            results = learned.estimate(quantifiers, pool, getattr(material, pool).samples)
            found |= dict(zip(chosen, results, strict=True))
        return [found[i] for i in range(len(self.trials))]


class FeatureUnit(Unit):
    """A method that takes the features as they are, such as HDx."""

    def estimate(self, material: Material, scores: pd.DataFrame | None, pool: str) -> list[Attempt]:
        """Return the estimates of each trial."""
        quantifiers = [trial.quantifier() for trial in self.trials]
        learned = learn(quantifiers[0], material.training, {pool: material.pools[pool]})
        return list(learned.estimate(quantifiers, pool, getattr(material, pool).samples))


class ItemUnit(Unit):
    """Method that fits classifiers on the items, such as OQT.

    It scores both pools in one unit.
    """

    kinds = ("validation", "estimates")

    def estimate(self, material: Material, scores: pd.DataFrame | None, pool: str) -> list[Attempt]:
        """Return the estimates of the trial on one pool."""
        return self._both(material)[pool]

    def validate(self, material: Material, scores: pd.DataFrame | None) -> dict[str, pd.DataFrame]:
        """Return the parts "validation" and "estimates"."""
        found = self._both(material)
        return {
            "validation": self._validation_rows(found["validation"], material.validation, 0.0),
            "estimates": self._estimate_rows(found["test"], material.n_classes),
        }

    def _both(self, material: Material) -> dict[str, list[Attempt]]:
        """Return the estimates of the trial on both pools.

        Their time includes that for fitting.
        """
        (trial,) = self.trials
        quantifier = trial.quantifier(classifier=self.setup.classifier(self.classifier), n_jobs=1)
        learned = learn(quantifier, material.training, material.pools)
        found = {}
        for pool in POOLS:
            (one,) = learned.estimate([quantifier], pool, getattr(material, pool).samples)
            found[pool] = [one._replace(seconds=one.seconds + learned.seconds)]
        return found


def units_of(config: Config, n_classes: int) -> Iterator[Unit]:
    """Yield the units of the main experiment, in the order of the classifier grid."""
    setup = Setup.of(config)
    scored: list[Trial] = []
    fitted: list[Trial] = []
    alone: list[Trial] = []  # with separate classifiers: fitted once, not for each classifier of the experiment
    for method in config.methods:
        path = config.outside.get(method, "")
        entry = find_method(path or method)
        grid = config.grids.get(method, entry.grid(n_classes, config.settings))
        trials = tuple(Trial(method, parameters, path) for parameters in configurations_of(grid))
        kind = entry.cls().traits.learns_from
        if kind == "features":
            yield FeatureUnit({}, trials, setup, 2.0 * len(trials))
        elif kind == "scores":
            scored += trials
        else:
            (fitted if "classifier" in inspect.signature(entry.cls).parameters else alone).extend(trials)
    for trial in alone:
        yield ItemUnit({}, (trial,), setup, 30.0)
    for classifier in configurations_of(config.classifier["grid"]):
        cost = _classifier_cost(setup, classifier)
        if scored:
            yield ScoredUnit(classifier, tuple(scored), setup, cost + 10)
        for trial in fitted:
            yield ItemUnit(classifier, (trial,), setup, cost * (n_classes - 1) / 3)


def _classifier_cost(setup: Setup, parameters: Mapping[str, Any]) -> float:
    """Guess the seconds for fitting a classifier."""
    if setup.family != "forest":
        return 20.0
    entropy = 1.5 if parameters.get("criterion") == "entropy" else 1.0
    return float(1 + setup.n_estimators / 100 * entropy * 0.35 * (parameters.get("max_depth") or 20))
