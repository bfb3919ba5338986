"""The choice of parameters by the error on samples of known class distributions.

The scores of items depend on the classifier only. `SampleSearch` therefore fits each classifier configuration once,
and shares its scores among all quantifier configurations; these share their representations too, and each one solves
the samples of all protocols as one batch.
"""

from collections.abc import Iterable
from typing import Any, Self

import numpy as np
from joblib import Parallel, delayed
from sklearn.base import BaseEstimator, clone
from sklearn.utils.validation import check_consistent_length, check_is_fitted

from ordinalq._utils.parallel import Watched
from ordinalq._utils.validation import Floats
from ordinalq.classifiers.cross_fitting import held_out
from ordinalq.metrics import find_measure
from ordinalq.model_selection.grid import configurations_of, configured
from ordinalq.model_selection.judging import (
    Judgement,
    Material,
    Outcome,
    Task,
    check_measures,
    check_samples,
    classifier_part,
    judge,
    results,
    run,
    units,
)
from ordinalq.quantifiers.base import Quantifier, Services
from ordinalq.samples.labels import encode_labels

# What a fit on items leaves besides the results.
REMEMBERED = ("n_features_in_", "feature_names_in_")


class SampleSearch(Services, BaseEstimator):
    """Search a grid of parameters for the smallest mean error over validation samples.

    Every classifier configuration is fitted once; its out-of-sample scores of the training items and its scores of the
    pool serve all quantifier configurations. Every protocol and measure has its own best configuration.

    After `fit` with one protocol and one measure the search acts like the best quantifier, ``best_estimator_``:
    it predicts, estimates groups and intervals, diagnoses, and can be saved.

    Parameters
    ----------
    quantifier : Quantifier
        Quantifier whose parameters are set.
    grid : dict of lists, or list of such dicts
        Values of each parameter, nested ones as ``classifier__max_depth`` or ``regularizer__tau``. The configurations
        come in the order of the dicts; within a dict the last parameter varies fastest. An empty dict means the
        quantifier as it is.
    samples : Samples or dict of names to Samples
        Samples of the pool, with prevalences; a dict has one entry per protocol.
    measure : str, callable or list of them, default="nmd"
        Error measures, see :func:`ordinalq.metrics.errors`.
    n_jobs : int, default=None
        Number of classifier configurations that are fitted at the same time.
    refit : bool, default=True
        Keep the best quantifiers, for `best_quantifier` and `predict`.

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
        Only with one protocol and one measure, see :meth:`best` and :meth:`best_quantifier`.

    Examples
    --------
    >>> import ordinalq as oq
    >>> from sklearn.naive_bayes import GaussianNB
    >>> rng = np.random.default_rng(0)
    >>> y, y_pool = rng.integers(1, 6, 300), rng.integers(1, 6, 300)
    >>> X, X_pool = y[:, None] + rng.normal(size=(300, 1)), y_pool[:, None] + rng.normal(size=(300, 1))
    >>> samples = oq.APPOQ(0.2, 100, 50, small_pool="repeat", random_state=0).draw(y_pool)
    >>> search = SampleSearch(oq.OPACC(GaussianNB()), {"tau": [1e-5, 1e-1]}, samples=samples)
    >>> search.fit(X, y, X_pool).best()
    {'tau': 0.1}
    """

    def __init__(
        self,
        quantifier: Quantifier,
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

    def fit(self, X: Any, y: Any, X_pool: Any, classes: Any = None, groups: Any = None) -> Self:
        """Fit every configuration on labelled items and judge it on the samples of the pool.

        Parameters
        ----------
        X : array-like, frame or sparse array (N, ...)
            Training items.
        y : array-like (N,)
            Their labels, see :meth:`ordinalq.CC.fit`.
        X_pool : array-like, frame or sparse array (N', ...)
            The items that the samples consist of.
        classes : array-like (n,), default=None
            All labels in ascending order; needed for strings.
        groups : array-like (N,), default=None
            The group of each training item, see :meth:`ordinalq.CC.fit`.
        """
        task = prepared(self, y, X_pool, classes)._replace(groups=groups)
        check_consistent_length(X, y)
        for name in REMEMBERED:
            self.__dict__.pop(name, None)
        # Quantifiers on scores and on features look at the items in different ways.
        for probe in {quantifier.on: clone(quantifier) for quantifier in task.quantifiers}.values():
            probe.check_items(X, reset=True)
            probe.check_items(X_pool, reset=False)
            self.__dict__.update({name: value for name, value in vars(probe).items() if name in REMEMBERED})
        parts = units(task)
        outcomes = Parallel(n_jobs=self.n_jobs, return_as="generator")(
            delayed(Watched(run))(kind, task.part(chosen), X, X_pool) for kind, chosen in parts
        )
        return self._collect(task, zip([chosen for _, chosen in parts], outcomes, strict=True))

    def fit_scores(self, S: Any, y: Any, S_pool: Any, classes: Any = None) -> Self:
        """Fit every configuration on out-of-sample scores and judge it on the scores of the pool.

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
        """
        task = prepared(self, y, S_pool, classes)
        check_consistent_length(S, y)
        for configuration, quantifier in zip(task.configurations, task.quantifiers, strict=True):
            if given := classifier_part(configuration):
                raise ValueError(f"grid must not have {next(iter(given))!r}: with scores there is no classifier.")
            if not quantifier.fits_scores:
                quantifier.fit_scores(S, y)  # raises, and says why
        for name in REMEMBERED:
            self.__dict__.pop(name, None)
        everything = list(range(len(task.quantifiers)))
        return self._collect(task, [(everything, judge(task, Material(None, S, S_pool)))])

    def best(self, protocol: str | None = None, measure: Any = None) -> dict[str, Any]:
        """Return the parameters of the smallest mean error (ties: first in the order of the grid).

        Parameters
        ----------
        protocol, measure : str, default=None
            Names of samples and measure; each may be left out if there is only one.
        """
        column = self._column(protocol, measure)
        return dict(self._configurations[self._best[column][1]])

    def best_quantifier(self, protocol: str | None = None, measure: Any = None) -> Quantifier:
        """Return the quantifier with the parameters of `best`, fitted on all training items."""
        column = self._column(protocol, measure)
        if not self._fitted:
            raise ValueError("best_quantifier needs refit=True, got refit=False: the quantifiers were not kept.")
        return self._fitted[self._best[column][1]]

    def fitted(self) -> Quantifier:
        """Return the best quantifier, see :meth:`best_quantifier`."""
        return self.best_quantifier()

    @property
    def best_estimator_(self) -> Quantifier:
        """The best quantifier, fitted; only with one protocol and one measure."""
        return self.best_quantifier()

    def scores(self, X: Any) -> Floats:
        """Return what `predict_scores` takes, by the best quantifier, (N, n)."""
        return self.fitted().scores(X)

    def predict(self, X: Any) -> Floats:
        """Estimate the class distribution of X as one sample, (n,), by the best quantifier."""
        return self.fitted().predict(X)

    def score(self, X: Any, y: Any) -> float:
        """Return minus the mean NMD over samples of labelled items, see :meth:`ordinalq.CC.score`."""
        return self.fitted().score(X, y)

    def predict_samples(self, X: Any, samples: Any) -> Floats:
        """Estimate the class distribution of each sample of the pool X, (B, n), by the best quantifier."""
        return self.fitted().predict_samples(X, samples)

    def predict_scores(self, S: Any, samples: Any) -> Floats:
        """Estimate the class distribution of each sample of a pool with scores S (N, n), (B, n)."""
        return self.fitted().predict_scores(S, samples)

    def _collect(self, task: Task, outcomes: Iterable[tuple[list[int], Outcome]]) -> Self:
        """Keep the table and the best quantifier of each column, from pairs of positions and outcomes."""
        table, best, fitted = gathered(task, outcomes)
        self.classes_ = task.classes
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
                raise ValueError(f"{what} must be given where there are several: {', '.join(map(repr, known))}.")
            if name is not None and name not in known:
                raise ValueError(f"{what} must be one of {', '.join(map(repr, known))}, got {name!r}.")
            chosen.append(known[0] if name is None else name)
        return chosen[0], chosen[1]


def prepared(search: SampleSearch, y: Any, pool: Any, classes: Any) -> Task:
    """Check the arguments and return the task."""
    if not isinstance(search.quantifier, Quantifier):
        raise TypeError(f"quantifier must be a quantifier of ordinalq, for example PACC(), got {search.quantifier!r}.")
    ordered, _ = encode_labels(y, classes, every_class=True)
    protocols = check_samples(search.samples, pool, ordered)
    measures = check_measures(search.measure)
    configurations = list(configurations_of(search.grid))
    quantifiers = [configured(search.quantifier, configuration) for configuration in configurations]
    for configuration, quantifier in zip(configurations, quantifiers, strict=True):
        try:
            quantifier.check_parameters(len(ordered))
            if quantifier.on == "scores":
                held_out(quantifier.classifier)
        except (TypeError, ValueError) as error:
            where = f" (in grid: {configuration})" if configuration else ""
            raise (TypeError if isinstance(error, TypeError) else ValueError)(f"{error}{where}") from error
    return Task(configurations, quantifiers, y, ordered, protocols, measures, search.refit)


def gathered(
    task: Task, outcomes: Iterable[tuple[list[int], Outcome]]
) -> tuple[dict[int, Judgement], dict[tuple[str, str], tuple[float, int]], dict[int, Quantifier]]:
    """Return each configuration's judgement, error and position of the best of each column, and the best, fitted."""
    table: dict[int, Judgement] = {}
    best = {column: (np.inf, len(task.quantifiers)) for column in task.columns}
    fitted: dict[int, Quantifier] = {}
    for chosen, outcome in outcomes:
        for i, judgement in zip(chosen, outcome.judgements, strict=True):
            table[i] = judgement
            for column in task.columns:
                best[column] = min(best[column], (judgement.cells[column]["error"], i))
        fitted |= {chosen[i]: quantifier for i, quantifier in outcome.fitted.items()}
        # Those that another classifier configuration has beaten are large, and not needed any more.
        wanted = {i for _, i in best.values()}
        fitted = {i: quantifier for i, quantifier in fitted.items() if i in wanted}
    if all(judgement.message for judgement in table.values()):
        raise ValueError(f"every configuration failed, the first with {table[0].message}")
    return table, best, fitted
