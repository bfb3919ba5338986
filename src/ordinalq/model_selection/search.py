"""The choice of parameters by the error on samples of known class distributions.

The scores of items depend on the classifier only. `SampleSearch` therefore fits each classifier configuration once,
and shares its scores among all quantifier configurations; these share their representations too, and each one solves
the samples of all protocols as one batch.
"""

from collections.abc import Iterable, Iterator, Mapping
from itertools import product
from typing import Any, NamedTuple, Self

import numpy as np
import pandas as pd
from joblib import Parallel, delayed
from sklearn.base import BaseEstimator, clone
from sklearn.utils.validation import _num_samples, check_consistent_length, check_is_fitted

from ordinalq._utils.parallel import WatchedCall
from ordinalq._utils.validation import Array, Floats, same_parameters
from ordinalq.classifiers.cross_fitting import held_out
from ordinalq.inference.diagnosis import Diagnosis
from ordinalq.inference.estimates import Estimates
from ordinalq.inference.label_plan import LabelsNeeded
from ordinalq.metrics import find_measure
from ordinalq.model_selection.engine import EvaluationSamples, Learned, Training, learn
from ordinalq.quantifiers.base import Quantifier, check_items
from ordinalq.samples.labels import encode_labels
from ordinalq.samples.samples import Samples

# Grids of parameters and the configurations that they stand for.


def configurations_of(grid: Any) -> Iterator[dict[str, Any]]:
    """Yield the configurations of a grid, dict by dict.

    The last parameter of a dict varies fastest.

    Parameters
    ----------
    grid : dict of lists, or list of such dicts
        Values of each parameter.

    Yields
    ------
    dict of str to value

    Examples
    --------
    >>> list(configurations_of([{"n_bins": [2, 4], "tau": [0.1, 1]}, {}]))
    [{'n_bins': 2, 'tau': 0.1}, {'n_bins': 2, 'tau': 1}, {'n_bins': 4, 'tau': 0.1}, {'n_bins': 4, 'tau': 1}, {}]
    """
    parts = [grid] if isinstance(grid, Mapping) else grid
    if not isinstance(parts, list | tuple) or not all(isinstance(part, Mapping) for part in parts):
        raise TypeError(f"grid must be a dict of parameters to lists of values, or a list of such dicts, got {grid!r}.")
    if len(parts) == 0:
        raise ValueError("grid must hold at least one dict, got an empty list; {} stands for the quantifier as it is.")
    for part in parts:
        for name, values in part.items():
            if not isinstance(name, str):
                raise TypeError(f"grid must have names of parameters as keys, got {name!r}.")
            if isinstance(values, str | bytes | Mapping | set) or not hasattr(values, "__len__"):
                raise TypeError(f"grid[{name!r}] must be a list of values, got {values!r}; for one value write a list.")
            if np.ndim(values) > 1 and isinstance(values, np.ndarray):
                raise ValueError(f"grid[{name!r}] must be a list of values, got an array of shape {values.shape}.")
            if len(values) == 0:
                raise ValueError(f"grid[{name!r}] must hold at least one value, got none.")
    for part in parts:
        for values in product(*part.values()):
            yield dict(zip(part, values, strict=True))


def configure(quantifier: Quantifier, configuration: Mapping[str, Any]) -> Quantifier:
    """Return an unfitted copy of a quantifier with the parameters of a configuration.

    Parameters
    ----------
    quantifier : Quantifier
        Quantifier whose parameters are set.
    configuration : dict of str to value
        Parameters, nested ones as ``a__b``; objects such as classifiers are copied.

    Returns
    -------
    Quantifier
    """
    result: Quantifier = clone(quantifier)
    # Outer parameters first: they may bring the objects that the inner ones belong to.
    for name in sorted(configuration, key=lambda name: name.count("__")):
        if name not in result.get_params():
            raise ValueError(_unknown(result, name))
        result.set_params(**{name: clone(configuration[name], safe=False)})
    return result


def _unknown(quantifier: Quantifier, name: str) -> str:
    """Return the message for an unknown parameter of a quantifier."""
    outer, _, _ = name.rpartition("__")
    owner: Any = quantifier
    # The innermost part of the name that exists determines the valid names.
    while outer:
        if outer in (known := quantifier.get_params()):
            owner = known[outer]
            break
        outer = outer.rpartition("__")[0]
    what = f"parameter {name!r} in grid is unknown"
    if not hasattr(owner, "get_params"):
        return (
            f"{what}: {outer} is {owner!r}, which has no parameters. Pass an object with parameters as {outer} of "
            f"{type(quantifier).__name__}."
        )
    prefix = f"{outer}__" if outer else ""
    valid = ", ".join(prefix + inner for inner in sorted(owner.get_params(deep=False)))
    return f"{what}; valid for {type(owner).__name__} are {valid or 'none'}."


# The errors of many configurations on the samples of several protocols, by units that share a classifier.


# Name of the protocol if samples come without one, of the pool, and of the method in a configuration of several.
UNNAMED = "samples"
POOL = "pool"
METHOD = "method"


class Task(NamedTuple):
    """The configurations, and everything that they have in common."""

    configurations: list[dict[str, Any]]
    quantifiers: list[Quantifier]
    training: Training
    battery: EvaluationSamples
    measures: dict[str, Any]
    keep: bool
    classifiers: list[Any]  # of the method of each configuration, before its parameters are set

    @property
    def columns(self) -> list[tuple[str, str]]:
        """Pairs of protocol and measure."""
        return list(product(self.battery.rows, self.measures))

    def part(self, chosen: list[int]) -> "Task":
        """Return the task of some configurations alone."""
        return self._replace(
            configurations=[self.configurations[i] for i in chosen],
            quantifiers=[self.quantifiers[i] for i in chosen],
            classifiers=[self.classifiers[i] for i in chosen],
        )


class Outcome(NamedTuple):
    """Rows of each configuration of a unit, and the best fitted quantifiers.

    There is one row per column. A quantifier is stored if it is the best in some column.
    """

    rows: list[list[dict[str, Any]]]
    fitted: dict[int, Quantifier]


def units(task: Task) -> list[list[int]]:
    """Return the positions of the configurations that are treated together.

    These are the configurations with the same view of the items.
    """
    found: list[tuple[str, dict[str, Any], list[int]]] = []
    for i, quantifier in enumerate(task.quantifiers):
        kind = quantifier.traits.learns_from
        part = classifier_part(task.configurations[i]) | {METHOD: task.classifiers[i]} if kind == "scores" else {}
        for other_kind, other_part, chosen in found:
            if kind != "items" and kind == other_kind and same_parameters(part, other_part):
                chosen.append(i)
                break
        else:
            found.append((kind, part, [i]))
    return [chosen for _, _, chosen in found]


def run(task: Task, X_pool: Any) -> Outcome:
    """Fit the shared part of the configurations of a unit and measure errors."""
    return evaluate_all(task, learn(task.quantifiers[0], task.training, {POOL: X_pool}))


def evaluate_all(task: Task, learned: Learned) -> Outcome:
    """Estimate and measure all configurations, and keep the best of each column.

    The best are fitted again on the same scores.
    """
    found = learned.estimate(task.quantifiers, POOL, task.battery.samples)
    rows = [list(task.battery.measure_errors(one, task.measures, learned.seconds)) for one in found]
    best = {min(range(len(rows)), key=lambda i: rows[i][k]["error"]) for k in range(len(task.columns))}
    kept = [i for i in sorted(best) if task.keep and not rows[i][0]["message"]]
    return Outcome(rows, {i: learned.fit(task.quantifiers[i]) for i in kept})


def classifier_part(configuration: Mapping[str, Any]) -> dict[str, Any]:
    """Return the parameters of the classifier."""
    return {name: value for name, value in configuration.items() if name.partition("__")[0] == "classifier"}


def results(task: Task, table: Mapping[int, list[dict[str, Any]]]) -> pd.DataFrame:
    """Return the table, one row per configuration, protocol and measure."""
    names = list(dict.fromkeys(name for configuration in task.configurations for name in configuration))
    columns = {}
    for name in names:
        # A parameter that a dict of the grid does not have is that of the quantifier.
        values = [
            configuration[name] if name in configuration else quantifier.get_params().get(name)
            for configuration, quantifier in zip(task.configurations, task.quantifiers, strict=True)
        ]
        plain = len({type(value) for value in values}) == 1 and isinstance(values[0], bool | int | float)
        # With objects, None remains None next to numbers, and lists remain lists.
        columns[name] = pd.Series(values, dtype=None if plain else object)
    found = pd.DataFrame([{"configuration": i} | row for i in range(len(table)) for row in table[i]])
    for position, (name, column) in enumerate(columns.items(), start=1):
        found.insert(position, name, column.loc[found["configuration"]].to_numpy())
    return found


def check_samples(samples: Any, pool: Any, classes: Array) -> dict[str, Samples]:
    """Return the samples by the name of the protocol.

    They must fit the pool and the classes (n,).
    """
    protocols = dict(samples) if isinstance(samples, Mapping) else {UNNAMED: samples}
    if not protocols:
        raise ValueError("samples must hold at least one protocol, got an empty dict.")
    n_items = _num_samples(pool)
    for name, part in protocols.items():
        if not isinstance(name, str):
            raise TypeError(f"samples must have names of protocols as keys, got {name!r}.")
        which = f"samples[{name!r}]" if isinstance(samples, Mapping) else "samples"
        if not isinstance(part, Samples):
            raise TypeError(
                f"{which} must be Samples, for example APP(1000, 500).draw(y_pool) or "
                f"Samples.from_index(index, n_items, y_pool), got {type(part).__name__}."
            )
        if part.n_items != n_items:
            raise ValueError(f"{which} must be drawn from the {n_items} items of the pool, got one of {part.n_items}.")
        if part.prevalences is None:
            raise ValueError(f"{which} must have prevalences. Pass y or prevalences when you make them.")
        n = part.prevalences.shape[1]
        if n != len(classes) or (part.classes is not None and not np.array_equal(part.classes, classes)):
            got = f"{n} classes" if part.classes is None else f"{part.classes.tolist()}"
            raise ValueError(
                f"{which} must have the classes of y, {classes.tolist()}, got {got}; "
                "give classes=[...] when you draw them and when you fit."
            )
    return protocols


def check_measures(measure: Any) -> dict[str, Any]:
    """Return the measures by name."""
    given = list(measure) if isinstance(measure, list | tuple) else [measure]
    if not given:
        raise ValueError("measure must name at least one measure, got an empty list.")
    measures: dict[str, Any] = {}
    for one in given:
        name, function = find_measure(one)
        if name in measures:
            raise ValueError(f"measure must have distinct names, got {name!r} twice.")
        measures[name] = function
    return measures


# Attributes that a fit on items sets in addition to the results.
REMEMBERED = ("n_features_in_", "feature_names_in_")


class SampleSearch(BaseEstimator):
    """Search a grid of parameters for the smallest mean error over samples.

    The samples are validation samples. Every classifier configuration is fitted once. All quantifier configurations use
    its out-of-sample scores of the training items and its scores of the pool. The best configuration is selected for
    each protocol and measure.

    After `fit` with one protocol and one measure, the search has the methods of the best quantifier,
    ``best_estimator_``: it predicts, estimates groups and intervals, diagnoses, and can be saved.

    Parameters
    ----------
    quantifier : Quantifier or dict of str to Quantifier
        Quantifier whose parameters are set, or several methods by name. Equal classifiers of several methods are fitted
        once.
    grid : dict of lists, or list of such dicts
        Values of each parameter. Nested parameters are named like ``classifier__max_depth`` or ``regularizer__tau``.
        The configurations are in the order of the dicts. Within a dict, the last parameter varies fastest. An empty
        dict leaves the quantifier unchanged. With several methods, pass a dict that maps the name of a method to its
        grid. Methods without a grid are tried unchanged. The name of the method is the parameter ``method`` of a
        configuration.
    samples : Samples or dict of names to Samples
        Samples of the pool, with prevalences. A dict has one entry per protocol.
    measure : str, callable or list of them, default="nmd"
        Error measures, see :func:`ordinalq.metrics.errors`.
    n_jobs : int, default=None
        Number of classifier configurations that are fitted at the same time.
    refit : bool, default=True
        Whether to keep the best quantifiers, for `best_quantifier` and `predict`.

    Attributes
    ----------
    results_ : pandas.DataFrame
        One row per configuration, protocol and measure: `configuration` (its number in the order of the grid), a column
        per parameter, `protocol`, `measure`, `error` (mean over the samples), `std`, `unconverged` (number of samples
        whose solver did not reach its tolerance), `seconds` (of this configuration, all protocols together),
        `scoring_seconds` (of fitting and applying the classifier, shared by all configurations with that classifier)
        and `message` (empty, or why the configuration failed; its error is infinite then).
    classes_ : ndarray (n,)
        Classes in ascending order.
    best_params_, best_estimator_ : dict, Quantifier
        Only for one protocol and one measure, see :meth:`best` and :meth:`best_quantifier`.

    Examples
    --------
    >>> import ordinalq as oq
    >>> from sklearn.naive_bayes import GaussianNB
    >>> rng = np.random.default_rng(0)
    >>> y, y_pool = rng.integers(1, 6, 300), rng.integers(1, 6, 300)
    >>> X, X_pool = y[:, None] + rng.normal(size=(300, 1)), y_pool[:, None] + rng.normal(size=(300, 1))
    >>> samples = oq.protocols.APPOQ(0.2, 100, 50, small_pool="repeat", random_state=0).draw(y_pool)
    >>> search = SampleSearch(oq.OPACC(GaussianNB()), {"tau": [1e-5, 1e-1]}, samples=samples)
    >>> search.fit(X, y, X_pool).best()
    {'tau': 0.1}

    Several methods, whose classifier is fitted once:

    >>> methods = {"PACC": oq.PACC(GaussianNB()), "OPACC": oq.OPACC(GaussianNB())}
    >>> search = SampleSearch(methods, {"OPACC": {"tau": [1e-3, 1e-1]}}, samples=samples)
    >>> search.fit(X, y, X_pool).best()
    {'method': 'OPACC', 'tau': 0.1}
    """

    def __init__(
        self,
        quantifier: Quantifier | Mapping[str, Quantifier],
        grid: Any,
        *,
        samples: Any,
        measure: Any = "nmd",
        n_jobs: int | None = None,
        refit: bool = True,
    ) -> None:
        self.quantifier = quantifier
        self.grid = grid
        self.samples = samples
        self.measure = measure
        self.n_jobs = n_jobs
        self.refit = refit

    def fit(self, X: Any, y: Any, X_pool: Any, *, classes: Any = None, groups: Any = None) -> Self:
        """Fit every configuration on labelled items and measure its errors.

        The errors are those on the samples of the pool.

        Parameters
        ----------
        X : array-like, frame or sparse array (N, ...)
            Training items.
        y : array-like (N,)
            Their labels, see :meth:`ordinalq.CC.fit`.
        X_pool : array-like, frame or sparse array (N', ...)
            Items of the samples.
        classes : array-like (n,), default=None
            All labels in ascending order. Required for strings.
        groups : array-like (N,), default=None
            Group of each training item, see :meth:`ordinalq.CC.fit`.

        Returns
        -------
        SampleSearch
            The fitted search.
        """
        task = prepare_task(self, X_pool, Training(X, y, classes, groups))
        check_consistent_length(X, y)
        for name in REMEMBERED:
            self.__dict__.pop(name, None)
        # Quantifiers on scores and on features validate items in different ways.
        for probe in {quantifier.traits.input_kind: clone(quantifier) for quantifier in task.quantifiers}.values():
            check_items(probe, X, reset=True)
            check_items(probe, X_pool, reset=False)
            self.__dict__.update({name: value for name, value in vars(probe).items() if name in REMEMBERED})
        parts = units(task)
        outcomes = Parallel(n_jobs=self.n_jobs, return_as="generator")(
            delayed(WatchedCall(run))(task.part(chosen), X_pool) for chosen in parts
        )
        return self._collect(task, zip(parts, outcomes, strict=True))

    def fit_scores(self, S: Any, y: Any, S_pool: Any, *, classes: Any = None) -> Self:
        """Fit every configuration on out-of-sample scores and measure its errors.

        The errors are those on the scores of the pool.

        Parameters
        ----------
        S : array-like (N, n)
            Scores of the training items, see :meth:`ordinalq.CC.fit_scores`; features (N, d) for HDx.
        y : array-like (N,)
            Labels of the training items.
        S_pool : array-like (N', n)
            Scores of the items that the samples consist of.
        classes : array-like (n,), default=None
            All labels in ascending order.

        Returns
        -------
        SampleSearch
            The fitted search.
        """
        task = prepare_task(self, S_pool, Training(None, y, classes))
        check_consistent_length(S, y)
        for configuration, quantifier in zip(task.configurations, task.quantifiers, strict=True):
            if given := classifier_part(configuration):
                raise ValueError(
                    f"grid must not have {next(iter(given))!r}: fit_scores has no classifier. Use fit(X, y, X_pool)."
                )
            if not quantifier.traits.accepts_scores:
                quantifier.fit_scores(S, y)  # raises TypeError with the reason
        for name in REMEMBERED:
            self.__dict__.pop(name, None)
        everything = list(range(len(task.quantifiers)))
        return self._collect(task, [(everything, evaluate_all(task, Learned(task.training, S, {POOL: S_pool})))])

    def best(self, protocol: str | None = None, measure: Any = None) -> dict[str, Any]:
        """Return the parameters of the smallest mean error.

        Of ties, the first in the order of the grid is returned.

        Parameters
        ----------
        protocol, measure : str, default=None
            Names of samples and measure; each may be left out if there is only one.

        Returns
        -------
        dict of str to value
            The parameters; with several methods also ``method``.
        """
        column = self._column(protocol, measure)
        return dict(self._configurations[self._best[column][1]])

    def best_quantifier(self, protocol: str | None = None, measure: Any = None) -> Quantifier:
        """Return the quantifier with the parameters of `best`.

        It is fitted on all training items.

        Parameters
        ----------
        protocol, measure : str, default=None
            See :meth:`best`.

        Returns
        -------
        Quantifier
        """
        column = self._column(protocol, measure)
        if not self._fitted:
            raise ValueError("best_quantifier needs refit=True, got refit=False: the quantifiers were not stored.")
        return self._fitted[self._best[column][1]]

    def fitted(self) -> Quantifier:
        """Return the best quantifier, see :meth:`best_quantifier`."""
        return self.best_quantifier()

    @property
    def best_estimator_(self) -> Quantifier:
        """The best quantifier, fitted; only with one protocol and one measure."""
        return self.best_quantifier()

    def scores(self, X: Any) -> Floats:
        """Return class scores by the best quantifier, shape (N, n).

        Parameters
        ----------
        X : array-like, frame or sparse array (N, ...)
            Items.

        Returns
        -------
        ndarray (N, n)
            Class scores, or features (N, d) for methods on features.
        """
        return self.fitted().scores(X)

    def predict(self, X: Any, **weights: Any) -> Floats:
        """Estimate the class distribution of X as one sample, shape (n,).

        See :meth:`ordinalq.PACC.predict`.

        Parameters
        ----------
        X : array-like, frame or sparse array (N, ...)
            Items.
        **weights
            Arguments `sample_weight` and `weight_type`, see :meth:`ordinalq.PACC.predict`.

        Returns
        -------
        ndarray (n,)
            Estimated class prevalences.
        """
        return self.fitted().predict(X, **weights)

    def score(self, X: Any, y: Any, **weights: Any) -> float:
        """Return minus the mean NMD over samples of labelled items.

        See :meth:`ordinalq.CC.score`.

        Parameters
        ----------
        X : array-like, frame or sparse array (N, ...)
            Items.
        y : array-like (N,)
            Labels of the items.
        **weights
            Arguments `sample_weight` and `weight_type`, see :meth:`ordinalq.PACC.score`.

        Returns
        -------
        float
            Minus the mean NMD. Larger is better.
        """
        return self.fitted().score(X, y, **weights)

    def predict_samples(self, X: Any, samples: Any, **weights: Any) -> Floats:
        """Estimate the class distribution of each sample of a pool, shape (B, n).

        The estimates are those of the best quantifier.

        Parameters
        ----------
        X : array-like, frame or sparse array (N, ...)
            Items of the pool.
        samples : Samples or array-like of int (B, m)
            Samples as positions of items in the pool.
        **weights
            Arguments `sample_weight` and `weight_type`, see :meth:`ordinalq.PACC.predict_samples`.

        Returns
        -------
        ndarray (B, n)
            Estimated class prevalences of each sample.
        """
        return self.fitted().predict_samples(X, samples, **weights)

    def predict_scores(self, S: Any, samples: Any, **weights: Any) -> Floats:
        """Estimate class distributions (B, n) of samples from scores S (N, n).

        Parameters
        ----------
        S : array-like (N, n)
            Class scores of the pool, or features (N, d) for methods on features.
        samples : Samples or array-like of int (B, m)
            Samples as positions of items in the pool.
        **weights
            Arguments `sample_weight` and `weight_type`, see :meth:`ordinalq.PACC.predict_scores`.

        Returns
        -------
        ndarray (B, n)
            Estimated class prevalences of each sample.
        """
        return self.fitted().predict_scores(S, samples, **weights)

    def predict_groups(self, X: Any, groups: Any, **how: Any) -> Estimates:
        """Estimate the class distribution of each group.

        See :meth:`ordinalq.PACC.predict_groups`.

        Parameters
        ----------
        X : array-like, frame or sparse array (N, ...)
            Items.
        groups : array-like (N,) or Samples
            Group of each item.
        **how
            Further arguments of :meth:`ordinalq.PACC.predict_groups`.

        Returns
        -------
        Estimates
            Distributions (B, n) of the B groups.
        """
        return self.fitted().predict_groups(X, groups, **how)

    def predict_interval(self, X: Any, level: float = 0.95, groups: Any = None, **how: Any) -> Estimates:
        """Estimate class distributions with intervals.

        See :meth:`ordinalq.PACC.predict_interval`.

        Parameters
        ----------
        X : array-like, frame or sparse array (N, ...)
            Items.
        level : float, default=0.95
            Level of the intervals.
        groups : array-like (N,) or Samples, default=None
            Group of each item. None takes all items as one sample.
        **how
            Further arguments of :meth:`ordinalq.PACC.predict_interval`.

        Returns
        -------
        Estimates
            Distributions (B, n) with intervals.
        """
        return self.fitted().predict_interval(X, level, groups, **how)

    def labels_needed(self, X: Any, groups: Any, **how: Any) -> LabelsNeeded:
        """Return the number of items to label in each group.

        See :meth:`ordinalq.PACC.labels_needed`.

        Parameters
        ----------
        X : array-like, frame or sparse array (N, ...)
            Items.
        groups : array-like (N,) or Samples
            Group of each item.
        **how
            Further arguments of :meth:`ordinalq.PACC.labels_needed`.

        Returns
        -------
        LabelsNeeded
            Numbers of items to label, one for each of the B groups.
        """
        return self.fitted().labels_needed(X, groups, **how)

    def diagnose(self, X: Any, sample_weight: Any = None, weight_type: str = "survey") -> Diagnosis:
        """Report whether the estimate of X as one sample can be trusted.

        See :meth:`ordinalq.PACC.diagnose`.

        Parameters
        ----------
        X : array-like, frame or sparse array (N, ...)
            Items.
        sample_weight : array-like (N,), default=None
            Weights of the items.
        weight_type : {"survey", "frequency"}, default="survey"
            Type of the weights, see :meth:`ordinalq.PACC.fit`.

        Returns
        -------
        Diagnosis
            Tests and warnings.
        """
        return self.fitted().diagnose(X, sample_weight, weight_type)

    def _collect(self, task: Task, outcomes: Iterable[tuple[list[int], Outcome]]) -> Self:
        """Store the table and the best quantifier of each column.

        `outcomes` are pairs of positions and outcomes.
        """
        table, best, fitted = merge_outcomes(task, outcomes)
        self.classes_ = task.training.classes
        self.results_ = results(task, table)
        self._configurations, self._best, self._fitted = task.configurations, best, fitted
        self.__dict__.pop("best_params_", None)
        if len(best) == 1:
            self.best_params_ = self.best()
        return self

    def _column(self, protocol: str | None, measure: Any) -> tuple[str, str]:
        """Return the pair of names that the caller means."""
        check_is_fitted(self, "results_")
        names = [list(dict.fromkeys(parts)) for parts in zip(*self._best, strict=True)]
        given = (protocol, None if measure is None else find_measure(measure)[0])
        chosen = []
        for what, name, known in zip(("protocol", "measure"), given, names, strict=True):
            if name is None and len(known) > 1:
                raise ValueError(f"{what} must be given if there are several: {', '.join(map(repr, known))}.")
            if name is not None and name not in known:
                raise ValueError(f"{what} must be one of {', '.join(map(repr, known))}, got {name!r}.")
            chosen.append(known[0] if name is None else name)
        return chosen[0], chosen[1]


def prepare_task(search: SampleSearch, pool: Any, training: Training) -> Task:
    """Check the arguments and return the task."""
    methods = search.quantifier if isinstance(search.quantifier, Mapping) else {"": search.quantifier}
    for quantifier in methods.values():
        if not isinstance(quantifier, Quantifier):
            raise TypeError(f"quantifier must be a quantifier of ordinalq, for example PACC(), got {quantifier!r}.")
    ordered, _ = encode_labels(training.y, training.classes, every_class=True)
    battery = EvaluationSamples.of(check_samples(search.samples, pool, ordered))
    measures = check_measures(search.measure)
    configurations, quantifiers, classifiers = [], [], []
    for name, grid in grids_of(search.quantifier, search.grid).items():
        for configuration in configurations_of(grid):
            if name and METHOD in configuration:
                raise ValueError(
                    f"grid[{name!r}] must not have {METHOD!r}, which is the column of names. "
                    f"Pass each {METHOD} as a quantifier."
                )
            quantifiers.append(configure(methods[name], configuration))
            configurations.append({METHOD: name} | configuration if name else configuration)
            classifiers.append(getattr(methods[name], "classifier", None))
    for configuration, quantifier in zip(configurations, quantifiers, strict=True):
        try:
            quantifier.check_parameters(len(ordered))
            if quantifier.traits.input_kind == "scores":
                held_out(quantifier.classifier)
        except (TypeError, ValueError) as error:
            where = f" (in grid: {configuration})" if configuration else ""
            raise (TypeError if isinstance(error, TypeError) else ValueError)(f"{error}{where}") from error
    training = training._replace(classes=ordered)
    return Task(configurations, quantifiers, training, battery, measures, search.refit, classifiers)


def grids_of(quantifier: Quantifier | Mapping[str, Quantifier], grid: Any) -> dict[str, Any]:
    """Return the grid of each method by name; a single quantifier has the name ""."""
    if not isinstance(quantifier, Mapping):
        return {"": grid}
    if not quantifier or not all(isinstance(name, str) and name for name in quantifier):
        raise ValueError(f"quantifier must have names of methods as keys, got {list(quantifier)!r}.")
    if not isinstance(grid, Mapping) or (unknown := set(grid) - set(quantifier)):
        got = repr(grid) if not isinstance(grid, Mapping) else ", ".join(map(repr, unknown))
        raise ValueError(f"grid must have the names of methods as keys ({', '.join(quantifier)}), got {got}.")
    return {name: grid.get(name, {}) for name in quantifier}


def merge_outcomes(
    task: Task, outcomes: Iterable[tuple[list[int], Outcome]]
) -> tuple[dict[int, list[dict[str, Any]]], dict[tuple[str, str], tuple[float, int]], dict[int, Quantifier]]:
    """Return the rows of all configurations and the best of each column.

    The best are described by error and position for each column, and by the fitted quantifiers.
    """
    table: dict[int, list[dict[str, Any]]] = {}
    best = {column: (np.inf, len(task.quantifiers)) for column in task.columns}
    fitted: dict[int, Quantifier] = {}
    for chosen, outcome in outcomes:
        for i, rows in zip(chosen, outcome.rows, strict=True):
            table[i] = rows
            for column, row in zip(task.columns, rows, strict=True):
                best[column] = min(best[column], (row["error"], i))
        fitted |= {chosen[i]: quantifier for i, quantifier in outcome.fitted.items()}
        # Quantifiers that are no longer the best are removed, because they are large.
        wanted = {i for _, i in best.values()}
        fitted = {i: quantifier for i, quantifier in fitted.items() if i in wanted}
    if all(rows[0]["message"] for rows in table.values()):
        raise ValueError(f"every configuration failed, the first with {table[0][0]['message']}")
    return table, best, fitted
