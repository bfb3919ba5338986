"""The choice of parameters by the error on samples of known class distributions.

The scores of items depend on the classifier only. `SampleSearch` therefore fits each classifier configuration once,
and shares its scores among all quantifier configurations; these share their representations too, and each one solves
the samples of all protocols as one batch.
"""

import time
from collections.abc import Iterator, Mapping
from functools import partial
from itertools import product
from typing import Any, NamedTuple

import numpy as np
from joblib import Parallel, delayed
from sklearn.base import BaseEstimator, clone
from sklearn.utils.validation import _num_samples, check_consistent_length, check_is_fitted

from ordinalq.classify.held_out import held_out
from ordinalq.evaluation import errors, find_measure
from ordinalq.labels import encode_labels
from ordinalq.methods._base import LinearQuantifier, Quantifier
from ordinalq.methods.tuning import is_auto
from ordinalq.samples import Samples
from ordinalq.simplex import clean

# Name of the protocol where samples come without one.
UNNAMED = "samples"


class SampleSearch(BaseEstimator):
    """Search a grid of parameters for the smallest mean error over validation samples.

    Every classifier configuration is fitted once; its out-of-sample scores of the training items and its scores of the
    pool serve all quantifier configurations. Every protocol and measure has its own best configuration.

    After `fit` with one protocol and one measure the search is itself a quantifier, the best one.

    Parameters
    ----------
    quantifier : Quantifier
        What the parameters are set on.
    grid : dict of lists, or list of such dicts
        Values of each parameter, nested ones as ``classifier__max_depth`` or ``regularizer__tau``. The configurations
        come in the order of the dicts; within a dict the last parameter varies fastest. An empty dict stands for the
        quantifier as it is.
    samples : Samples or dict of names to Samples
        Samples of the pool, with prevalences; a dict has one entry per protocol.
    measure : str, callable or list of them, default="nmd"
        Error measures, see :func:`ordinalq.evaluation.errors`.
    n_jobs : int, default=None
        Number of classifier configurations that are treated at the same time.
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
    best_params_ : dict
        Only with one protocol and one measure, see :meth:`best`.

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

    def __init__(self, quantifier, grid, *, samples, measure="nmd", n_jobs=None, refit=True):
        self.quantifier = quantifier
        self.grid = grid
        self.samples = samples
        self.measure = measure
        self.n_jobs = n_jobs
        self.refit = refit

    def fit(self, X, y, X_pool, classes=None):
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

        Returns
        -------
        self
        """
        task = self._prepare(y, X_pool, classes)
        check_consistent_length(X, y)
        for name in ("n_features_in_", "feature_names_in_"):
            vars(self).pop(name, None)
        # Quantifiers on scores and on features look at the items in different ways.
        for probe in {quantifier._on: clone(quantifier) for quantifier in task.quantifiers}.values():
            probe._validate(X, reset=True)
            probe._validate(X_pool, reset=False)
            for name in ("n_features_in_", "feature_names_in_"):
                if hasattr(probe, name):
                    setattr(self, name, getattr(probe, name))
        units = _units(task)
        outcomes = Parallel(n_jobs=self.n_jobs, return_as="generator")(
            delayed(_run)(kind, task.part(chosen), X, X_pool) for kind, chosen in units
        )
        return self._collect(task, zip([chosen for _, chosen in units], outcomes, strict=True))

    def fit_scores(self, S, y, S_pool, classes=None):
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

        Returns
        -------
        self
        """
        task = self._prepare(y, S_pool, classes)
        check_consistent_length(S, y)
        for configuration, quantifier in zip(task.configurations, task.quantifiers, strict=True):
            if given := _classifier_part(configuration):
                raise ValueError(f"grid must not have {next(iter(given))!r}: with scores there is no classifier.")
            if _fits_items(quantifier):
                quantifier.fit_scores(S, y)  # raises, and says why
        for name in ("n_features_in_", "feature_names_in_"):
            vars(self).pop(name, None)
        everything = list(range(len(task.quantifiers)))
        return self._collect(task, [(everything, _judge(task, _Scored(None, S, S_pool, None, None, 0.0)))])

    def best(self, protocol=None, measure=None):
        """Return the parameters of the smallest mean error (ties: first in the order of the grid).

        Parameters
        ----------
        protocol : str, default=None
            Name of the samples; may be left out where there is only one.
        measure : str or callable, default=None
            May be left out where there is only one.

        Returns
        -------
        dict
            The entries of the grid.
        """
        column = self._column(protocol, measure)
        return dict(self._configurations[self._best[column][1]])

    def best_quantifier(self, protocol=None, measure=None):
        """Return the quantifier with the parameters of `best`, fitted on all training items."""
        column = self._column(protocol, measure)
        if not self._fitted:
            raise ValueError("best_quantifier needs refit=True, got refit=False: the quantifiers were not kept.")
        return self._fitted[self._best[column][1]]

    def predict(self, X):
        """Estimate the class distribution of X as one sample, (n,), by the best quantifier."""
        return self.best_quantifier().predict(X)

    def predict_samples(self, X, samples):
        """Estimate the class distribution of each sample of the pool X, (B, n), by the best quantifier."""
        return self.best_quantifier().predict_samples(X, samples)

    def predict_scores(self, S, samples):
        """Estimate the class distribution of each sample of a pool with scores S (N, n), (B, n)."""
        return self.best_quantifier().predict_scores(S, samples)

    def scores(self, X):
        """Return what `predict_scores` takes, by the best quantifier, (N, n)."""
        return self.best_quantifier().scores(X)

    def _prepare(self, y, pool, classes):
        """Check the arguments and return the task."""
        if not isinstance(self.quantifier, Quantifier):
            raise TypeError(
                f"quantifier must be a quantifier of ordinalq, for example PACC(), got {self.quantifier!r}."
            )
        ordered, _ = encode_labels(y, classes, every_class=True)
        protocols = _check_samples(self.samples, pool, ordered)
        measures = _check_measures(self.measure)
        configurations = list(configurations_of(self.grid))
        quantifiers = [configured(self.quantifier, configuration) for configuration in configurations]
        for configuration, quantifier in zip(configurations, quantifiers, strict=True):
            try:
                quantifier._check_parameters(len(ordered))
                if quantifier._on == "scores":
                    held_out(quantifier.classifier)
            except (TypeError, ValueError) as error:
                where = f" (in grid: {configuration})" if configuration else ""
                raise (TypeError if isinstance(error, TypeError) else ValueError)(f"{error}{where}") from error
        return _Task(configurations, quantifiers, y, ordered, protocols, measures, self.refit)

    def _collect(self, task, outcomes):
        """Make the table from pairs of positions and outcomes, and keep the best quantifier of each column."""
        table = {}
        best = {column: (np.inf, len(task.quantifiers)) for column in task.columns}
        fitted = {}
        for chosen, outcome in outcomes:
            for i, judged in zip(chosen, outcome.judged, strict=True):
                table[i] = judged
                for column in task.columns:
                    best[column] = min(best[column], (judged.error[column], i))
            fitted |= {chosen[i]: quantifier for i, quantifier in outcome.fitted.items()}
            # Those that another classifier configuration has beaten are large, and not needed any more.
            wanted = {i for _, i in best.values()}
            fitted = {i: quantifier for i, quantifier in fitted.items() if i in wanted}
        if all(judged.message for judged in table.values()):
            raise ValueError(f"every configuration failed, the first with {table[0].message}")
        self.classes_ = task.classes
        self.results_ = _results(task, table)
        self._configurations, self._best, self._fitted = task.configurations, best, fitted
        vars(self).pop("best_params_", None)
        if len(best) == 1:
            self.best_params_ = self.best()
        return self

    def _column(self, protocol, measure):
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
        return tuple(chosen)


class Estimates(NamedTuple):
    """What a quantifier says of B samples.

    ``P`` (B, n) are the estimates and ``converged`` (B,) tells where the solver reached its tolerance; both are None
    where ``message`` says why the quantifier failed. ``seconds`` is the time for fitting and solving.
    """

    P: Any
    converged: Any
    seconds: float
    message: str


def estimate_all(quantifiers, S, y, S_pool, samples, *, classes=None) -> Iterator[Estimates]:
    """Fit several quantifiers on the same scores and yield the estimates of each; a failure of one is data.

    Quantifiers that solve q = M p share the representation of the items, M and q where these are the same, so that for
    instance all strengths of a regularizer cost one representation.

    Parameters
    ----------
    quantifiers : iterable of Quantifier
        All on scores of the same classifier, or all on features; they stay unfitted.
    S : ndarray (N, n)
        Out-of-sample scores (or features) of the training items.
    y : array-like (N,)
        Labels of the training items.
    S_pool : ndarray (N', n)
        Scores (or features) of the pool.
    samples : Samples
        B samples of the pool.
    classes : array-like (n,), default=None
        All labels in ascending order.
    """
    embeddings: list[_Embedding] = []
    for quantifier in quantifiers:
        yield _attempt(partial(_solve, clone(quantifier), S, y, S_pool, samples, classes, embeddings))


def configurations_of(grid) -> Iterator[dict[str, Any]]:
    """Yield the configurations of a grid: dict by dict, the last parameter of a dict varies fastest.

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


def configured(quantifier, configuration):
    """Return an unfitted copy of the quantifier with the parameters of a configuration.

    Parameters
    ----------
    quantifier : Quantifier
    configuration : dict of parameters, nested ones as ``classifier__max_depth``
        Parts in it, such as classifiers, are copied.
    """
    result = clone(quantifier)
    # Outer parameters first: they may bring the objects that the inner ones belong to.
    for name in sorted(configuration, key=lambda name: name.count("__")):
        if name not in result.get_params():
            raise ValueError(_unknown(result, name))
        result.set_params(**{name: clone(configuration[name], safe=False)})
    return result


class _Task(NamedTuple):
    """What all configurations have in common, and the configurations."""

    configurations: list[dict[str, Any]]
    quantifiers: list[Any]
    y: Any
    classes: Any
    protocols: dict[str, Samples]
    measures: dict[str, Any]
    keep: bool

    @property
    def columns(self):
        """Pairs of protocol and measure."""
        return list(product(self.protocols, self.measures))

    def part(self, chosen):
        """Return the task of some configurations alone."""
        return self._replace(
            configurations=[self.configurations[i] for i in chosen], quantifiers=[self.quantifiers[i] for i in chosen]
        )


class _Scored(NamedTuple):
    """The scores of one unit and where they come from.

    S (N, n) and S_pool (N', n) are scores or features, S is None with trees; X are the training items, None where only
    scores are given; `model` is the fitted classifier, or `fitted` the quantifier that has fitted its own.
    """

    X: Any
    S: Any
    S_pool: Any
    model: Any
    fitted: Any
    seconds: float


class _Judged(NamedTuple):
    """Mean and standard deviation of the error by (protocol, measure), and what else the table tells."""

    error: dict[tuple[str, str], float]
    std: dict[tuple[str, str], float]
    unconverged: dict[str, int]
    seconds: float
    scoring_seconds: float
    message: str


class _Outcome(NamedTuple):
    """One judgement per configuration of a unit, and the fitted quantifiers that are best in some column."""

    judged: list[_Judged]
    fitted: dict[int, Any]


def _units(task):
    """Return the configurations that are treated together: how they see items ("scores", ...), and their positions."""
    units = []
    for i, quantifier in enumerate(task.quantifiers):
        kind = "items" if _fits_items(quantifier) else quantifier._on
        part = _classifier_part(task.configurations[i]) if kind == "scores" else {}
        for other_kind, other_part, chosen in units:
            if kind != "items" and kind == other_kind and _same(part, other_part):
                chosen.append(i)
                break
        else:
            units.append((kind, part, [i]))
    return [(kind, chosen) for kind, _, chosen in units]


def _run(kind, task, X, X_pool):
    """Make the scores of one unit, and judge its configurations."""
    start = time.perf_counter()
    first = clone(task.quantifiers[0])
    model = fitted = S = None
    try:
        if kind == "items":
            fitted = first.fit(X, task.y, classes=task.classes)
            S_pool = fitted.scores(X_pool)
        else:
            items, pool = first._validate(X, reset=True), first._validate(X_pool, reset=False)
            if kind == "features":
                S, S_pool = items, pool
            else:
                labels, codes = encode_labels(task.y, task.classes)
                model = held_out(first.classifier).fit(items, codes, labels)
                S, S_pool = model.held_out_scores_, model.predict_proba(pool)
    except Exception as error:  # as in `estimate_all`
        seconds = time.perf_counter() - start
        failed = Estimates(None, None, 0.0, _describe(error))
        return _Outcome([_judged(task, failed, seconds) for _ in task.quantifiers], {})
    return _judge(task, _Scored(X, S, S_pool, model, fitted, time.perf_counter() - start))


def _judge(task, scored):
    """Estimate and measure; fit what is best in some column once more, on the same scores, to be kept."""
    samples = Samples.stacked(list(task.protocols.values()))
    judged = [_judged(task, estimates, scored.seconds) for estimates in _estimates(task, scored, samples)]
    best = {min(range(len(judged)), key=lambda i: judged[i].error[column]) for column in task.columns}
    kept = [i for i in sorted(best) if task.keep and not judged[i].message]
    return _Outcome(judged, {i: _fitted(task.quantifiers[i], scored, task) for i in kept})


def _estimates(task, scored, samples):
    """Yield the estimates of each configuration of a unit."""
    if scored.fitted is not None:
        yield _attempt(lambda: scored.fitted.solve_scores(scored.S_pool, samples))
        return
    votes = scored.model is not None and not scored.model.gives_posteriors_
    refused = [votes and quantifier._needs_posteriors for quantifier in task.quantifiers]
    usable = [quantifier for quantifier, bad in zip(task.quantifiers, refused, strict=True) if not bad]
    found = estimate_all(usable, scored.S, task.y, scored.S_pool, samples, classes=task.classes)
    for quantifier, bad in zip(task.quantifiers, refused, strict=True):
        if bad:
            name, classifier = type(quantifier).__name__, quantifier.classifier
            message = f"TypeError: {name} needs class probabilities, but {classifier!r} has no predict_proba."
            yield Estimates(None, None, 0.0, message)
        else:
            yield next(found)


def _judged(task, estimates, scoring_seconds):
    """Return means and standard deviations of the errors over the samples of each protocol."""
    error = dict.fromkeys(task.columns, np.inf)
    std = dict.fromkeys(task.columns, np.nan)
    unconverged = {name: len(samples) for name, samples in task.protocols.items()}
    start = 0
    for name, samples in task.protocols.items():
        if estimates.message:
            break
        rows = slice(start, start + len(samples))
        start = rows.stop
        unconverged[name] = int((~estimates.converged[rows]).sum())
        for label, measure in task.measures.items():
            found = errors(estimates.P[rows], samples.prevalences, measure)
            error[name, label] = float(found.mean())
            std[name, label] = float(found.std(ddof=1)) if len(found) > 1 else np.nan
    return _Judged(error, std, unconverged, estimates.seconds, scoring_seconds, estimates.message)


def _fitted(quantifier, scored, task):
    """Return the quantifier of a unit, fitted and able to predict, without fitting its classifier again."""
    if scored.fitted is not None:
        return scored.fitted
    if scored.X is not None and quantifier._on == "features":
        return clone(quantifier).fit(scored.X, task.y, classes=task.classes)
    result = clone(quantifier).fit_scores(scored.S, task.y, task.classes)
    if scored.model is not None:
        result.classifier_ = scored.model
        result._validate(scored.X, reset=True)  # remembers number and names of the features
    return result


class _Embedding(NamedTuple):
    """A fitted quantifier on a representation, and the mean representation Q (B, d) of the samples."""

    quantifier: Any
    Q: Any


def _solve(quantifier, S, y, S_pool, samples, classes, embeddings):
    """Fit the quantifier and return its Solution; where it solves q = M p, use or add to the embeddings."""
    if not _shares(quantifier):
        return quantifier.fit_scores(S, y, classes).solve_scores(S_pool, samples)
    representation, loss, regularizer = quantifier._parts()
    known = [e for e in embeddings if _same(representation, e.quantifier.representation_)]
    if known:
        quantifier._check_parameters(len(known[0].quantifier.classes_))
        for name in ("classes_", "p_train_", "representation_", "M_"):
            setattr(quantifier, name, getattr(known[0].quantifier, name))
        quantifier.loss_, quantifier.regularizer_ = loss, regularizer
        Q = known[0].Q
    else:
        quantifier.fit_scores(S, y, classes)
        Q = samples.average(quantifier.representation_.transform(quantifier._check_scores(S_pool)))
        embeddings.append(_Embedding(quantifier, Q))
    n_blocks = quantifier.representation_.n_blocks_
    return quantifier._minimize(quantifier.loss_, quantifier.regularizer_, Q, quantifier.M_, samples.sizes, n_blocks)


def _shares(quantifier):
    """Say whether the quantifier is fitted and solved in the way that all linear ones share."""
    methods = ("fit_scores", "solve_scores", "_fit_scores", "_solve")
    return (
        isinstance(quantifier, LinearQuantifier)
        and all(getattr(type(quantifier), name) is getattr(LinearQuantifier, name) for name in methods)
        # A strength that is chosen in `fit` takes the training items, not only M.
        and not is_auto(quantifier._parts()[2])
    )


def _fits_items(quantifier):
    """Say whether the quantifier (OQT, ARC) needs the items themselves, because scores cannot replace them."""
    return type(quantifier).fit_scores is not Quantifier.fit_scores


def _attempt(solve):
    """Return the estimates of a Solution that `solve` makes, or why it cannot."""
    start = time.perf_counter()
    try:
        solution = solve()
        P, converged, message = clean(solution.p), solution.converged, ""
    except Exception as error:  # the search goes on, and the table tells
        P, converged, message = None, None, _describe(error)
    return Estimates(P, converged, time.perf_counter() - start, message)


def _describe(error):
    return f"{type(error).__name__}: {error}"


def _classifier_part(configuration):
    """Return the parameters of the classifier."""
    return {name: value for name, value in configuration.items() if name.partition("__")[0] == "classifier"}


def _same(a, b):
    """Say whether two parameters are the same; where that is hard to tell, they are not."""
    if a is b:
        return True
    if type(a) is not type(b):
        return False
    if hasattr(a, "get_params"):
        return _same(a.get_params(deep=False), b.get_params(deep=False))
    if isinstance(a, dict):
        return a.keys() == b.keys() and all(_same(a[name], b[name]) for name in a)
    if isinstance(a, list | tuple):
        return len(a) == len(b) and all(map(_same, a, b))
    if isinstance(a, np.ndarray):
        return a.dtype == b.dtype and np.array_equal(a, b)
    try:
        return bool(a == b)
    except (TypeError, ValueError):
        return False


def _results(task, table):
    """Return the table, one row per configuration, protocol and measure."""
    import pandas as pd

    names = list(dict.fromkeys(name for configuration in task.configurations for name in configuration))
    rows = [(i, protocol, measure) for i in range(len(table)) for protocol, measure in task.columns]
    columns: dict[str, Any] = {"configuration": [i for i, _, _ in rows]}
    for name in names:
        # Where a dict of the grid does not name the parameter, the quantifier has its own value.
        values = [
            configuration[name] if name in configuration else quantifier.get_params().get(name)
            for configuration, quantifier in zip(task.configurations, task.quantifiers, strict=True)
        ]
        plain = len({type(value) for value in values}) == 1 and isinstance(values[0], bool | int | float)
        # As objects, None stays None beside numbers, and lists stay lists.
        column = np.empty(len(rows), dtype=object)
        for r, (i, _, _) in enumerate(rows):
            column[r] = values[i]
        columns[name] = column.tolist() if plain else pd.Series(column, dtype=object)
    columns["protocol"] = [protocol for _, protocol, _ in rows]
    columns["measure"] = [measure for _, _, measure in rows]
    columns["error"] = [table[i].error[p, m] for i, p, m in rows]
    columns["std"] = [table[i].std[p, m] for i, p, m in rows]
    columns["unconverged"] = [table[i].unconverged[p] for i, p, _ in rows]
    for name in ("seconds", "scoring_seconds", "message"):
        columns[name] = [getattr(table[i], name) for i, _, _ in rows]
    return pd.DataFrame(columns)


def _check_samples(samples, pool, classes):
    """Return the samples by the name of the protocol; they must fit the pool and the classes (n,)."""
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
            raise ValueError(f"{which} must have prevalences: give y when you make them.")
        n = part.prevalences.shape[1]
        if n != len(classes) or (part.classes is not None and not np.array_equal(part.classes, classes)):
            got = f"{n} classes" if part.classes is None else f"{part.classes.tolist()}"
            raise ValueError(
                f"{which} must have the classes of y, {classes.tolist()}, got {got}; "
                "give classes=[...] when you draw them and when you fit."
            )
    return protocols


def _check_measures(measure):
    """Return the measures by name."""
    given = list(measure) if isinstance(measure, list | tuple) else [measure]
    if not given:
        raise ValueError("measure must name at least one measure, got an empty list.")
    measures = {}
    for one in given:
        name, function = find_measure(one)
        if name in measures:
            raise ValueError(f"measure must have distinct names, got {name!r} twice.")
        measures[name] = function
    return measures


def _unknown(quantifier, name):
    """Return the message for a parameter that the quantifier has not."""
    outer, _, _ = name.rpartition("__")
    owner = quantifier
    # The innermost part of the name that does exist tells which names are valid.
    while outer:
        if outer in (known := quantifier.get_params()):
            owner = known[outer]
            break
        outer = outer.rpartition("__")[0]
    what = f"parameter {name!r} in grid is unknown"
    if not hasattr(owner, "get_params"):
        return (
            f"{what}: {outer} is {owner!r}, which has no parameters; give {type(quantifier).__name__} an object there."
        )
    prefix = f"{outer}__" if outer else ""
    valid = ", ".join(prefix + inner for inner in sorted(owner.get_params(deep=False)))
    return f"{what}; valid for {type(owner).__name__} are {valid or 'none'}."
