"""Engine of `SampleSearch` and of the experiments: fit once, measure errors.

Quantifiers with the same view of the items share everything up to their scores. `learn` computes these once. `Learned`
estimates samples of a pool by any number of quantifiers, which share their representations, too. `EvaluationSamples`
measures the errors of each on the samples of all protocols. Failures are messages in the tables.
"""

import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from sklearn.base import clone

from ordinalq._utils.validation import Floats, Index, Mask
from ordinalq.classifiers.cross_fitting import held_out
from ordinalq.metrics import errors, mean_and_std
from ordinalq.quantifiers.base import Quantifier, check_items, training_groups
from ordinalq.samples.labels import encode_labels
from ordinalq.samples.samples import Samples
from ordinalq.samples.summary import Summary
from ordinalq.simplex import clean
from ordinalq.solvers.solution import Solution


class Attempt(NamedTuple):
    """Estimates of a quantifier for B samples, or the message of its failure.

    ``P`` (B, n) are the estimates and ``converged`` (B,) whether the solver reached its tolerance; both are empty if
    there is a ``message``. ``seconds`` is the time for fitting and solving.
    """

    P: Floats
    converged: Mask
    seconds: float
    message: str

    @classmethod
    def failed(cls, message: str, seconds: float = 0.0) -> "Attempt":
        """Return an attempt without estimates."""
        return cls(np.empty((0, 0)), np.empty(0, dtype=bool), seconds, message)


class EvaluationSamples(NamedTuple):
    """Distinct samples of a pool, and their positions in each protocol."""

    samples: Samples
    rows: dict[str, Index]

    @classmethod
    def of(cls, protocols: Mapping[str, Samples]) -> "EvaluationSamples":
        """Return the samples of several protocols, one after the other."""
        for name, samples in protocols.items():
            if samples.prevalences is None:
                raise ValueError(f"samples of {name} must have prevalences. Pass y or prevalences when you make them.")
        ends = np.cumsum([len(samples) for samples in protocols.values()])
        rows = {name: np.arange(end - len(protocols[name]), end) for name, end in zip(protocols, ends, strict=True)}
        return cls(Samples.stacked(list(protocols.values())), rows)

    @property
    def truth(self) -> Floats:
        """True distributions, (B, n)."""
        assert self.samples.prevalences is not None
        return self.samples.prevalences

    def measure_errors(
        self, found: Attempt, measures: Mapping[str, Any], scoring_seconds: float = 0.0
    ) -> Iterator[dict[str, Any]]:
        """Yield the errors of an attempt, one row per protocol and measure.

        A row has the mean of the error, its standard deviation (divisor B - 1) and the number of samples that did not
        converge. The error of an attempt that failed is infinite.
        """
        how = {"seconds": found.seconds, "scoring_seconds": scoring_seconds, "message": found.message}
        for protocol, index in self.rows.items():
            for name, measure in measures.items():
                cell = {"error": np.inf, "std": np.nan, "unconverged": len(index)}
                if not found.message:
                    mean, std = mean_and_std(errors(self.truth[index], found.P[index], measure))
                    cell = {"error": mean, "std": std, "unconverged": int((~found.converged[index]).sum())}
                yield {"protocol": protocol, "measure": name} | cell | how


class Training(NamedTuple):
    """Labelled items X (N, ...) with y (N,), classes (n,) and groups (N,).

    `groups` may be None. X is None if there are only scores.
    """

    X: Any
    y: Any
    classes: Any
    groups: Any = None


class Learned(NamedTuple):
    """Everything that quantifiers which see items in the same way share.

    S (N, n) are out-of-sample scores or features of the training items, `pools` those of each pool. `model` is the
    fitted classifier, if there is one. A quantifier that fits classifiers on the items is `fitted`, and S is None.
    `message` is that of a failure.
    """

    training: Training
    S: Any = None
    pools: Mapping[str, Any] = {}
    model: Any = None
    fitted: Quantifier | None = None
    seconds: float = 0.0
    message: str = ""

    def estimate(self, quantifiers: Iterable[Quantifier], pool: str, samples: Samples) -> Iterator[Attempt]:
        """Yield the estimates of each quantifier for samples of a pool.

        Parameters
        ----------
        quantifiers : iterable of Quantifier
            Unfitted quantifiers that share this part.
        pool : str
            Name of the pool.
        samples : Samples
            Samples of the pool.

        Yields
        ------
        Attempt
        """
        if self.message:
            yield from (Attempt.failed(self.message) for _ in quantifiers)
        elif (fitted := self.fitted) is not None:
            yield attempt(lambda: fitted.solve_scores(self.pools[pool], samples))
        else:
            _, y, classes, groups = self.training
            votes = self.model is not None and not self.model.gives_posteriors_
            known = {"classes": classes, "groups": groups, "votes": votes}
            yield from estimate_all(quantifiers, self.S, y, self.pools[pool], samples, **known)

    def fit(self, quantifier: Quantifier) -> Quantifier:
        """Return a fitted copy of a quantifier; the classifier is not fitted again.

        Parameters
        ----------
        quantifier : Quantifier
            Unfitted quantifier that shares this part.

        Returns
        -------
        Quantifier
        """
        if self.fitted is not None:
            return self.fitted
        result: Quantifier = clone(quantifier)
        X, y, classes, groups = self.training
        if X is not None and quantifier.traits.input_kind == "features":
            return result.fit(X, y, classes=classes, groups=groups)
        result.fit_scores(self.S, y, classes=classes, groups=groups)
        if self.model is not None:
            result.attach(self.model, X)
        return result


def learn(quantifier: Quantifier, training: Training, pools: Mapping[str, Any]) -> Learned:
    """Fit and apply the part that a quantifier shares with others.

    This part is its classifier, or the quantifier itself if it fits classifiers on the items.

    Parameters
    ----------
    quantifier : Quantifier
        Unfitted quantifier.
    training : Training
        Labelled items.
    pools : dict of str to items
        Items to score, by the names of the pools.

    Returns
    -------
    Learned
        With a message if fitting failed.
    """
    start = time.perf_counter()
    try:
        found = _learn(clone(quantifier), training, pools)
    except Exception as error:  # the others go on, and the message goes to the table
        found = Learned(training, message=describe(error))
    return found._replace(seconds=time.perf_counter() - start)


def _learn(quantifier: Quantifier, training: Training, pools: Mapping[str, Any]) -> Learned:
    X, y, classes, groups = training
    kind = quantifier.traits.learns_from
    if kind == "items":
        fitted = quantifier.fit(X, y, classes=classes, groups=groups)
        return Learned(training, None, {name: fitted.scores(items) for name, items in pools.items()}, fitted=fitted)
    X = check_items(quantifier, X, reset=True)
    pools = {name: check_items(quantifier, items, reset=False) for name, items in pools.items()}
    if kind == "features":
        return Learned(training, X, pools)
    labels, codes = encode_labels(y, classes)
    found = training_groups(groups, len(codes))
    model = held_out(quantifier.classifier).fit(X, codes, labels, None if found is None else found.codes)
    scores = {name: model.predict_proba(items) for name, items in pools.items()}
    return Learned(training, model.held_out_scores_, scores, model)


def estimate_all(
    quantifiers: Iterable[Quantifier],
    S: Any,
    y: Any,
    S_pool: Any,
    samples: Samples,
    *,
    classes: Any = None,
    groups: Any = None,
    votes: bool = False,
) -> Iterator[Attempt]:
    """Fit several quantifiers on the same scores and yield the estimates of each.

    Quantifiers with equal representations share them, so that all strengths of a regularizer need one representation.

    Parameters
    ----------
    quantifiers : iterable of Quantifier
        Unfitted quantifiers; they are copied.
    S : array-like (N, n)
        Out-of-sample scores, or features, of the training items.
    y : array-like (N,)
        Labels of the training items.
    S_pool : array-like (N', n)
        Scores, or features, of the pool.
    samples : Samples
        Samples of the pool.
    classes : array-like (n,), default=None
        All labels in ascending order.
    groups : array-like (N,), default=None
        Groups of the training items.
    votes : bool, default=False
        Whether the scores are votes, not posteriors.

    Yields
    ------
    Attempt
        Estimates, or the message of a failure.
    """
    shared: list[tuple[Quantifier, Summary]] = []
    for quantifier in quantifiers:
        if votes and quantifier.traits.needs_posteriors:
            name, classifier = type(quantifier).__name__, quantifier.classifier
            text = f"TypeError: {name} needs class probabilities, but {classifier!r} has no predict_proba."
            yield Attempt.failed(text)
        else:
            known = {"classes": classes, "groups": groups}
            yield attempt(partial(_solve, clone(quantifier), S, y, S_pool, samples, known, shared))


def attempt(solve: Callable[[], Solution]) -> Attempt:
    """Return the estimates of a Solution that `solve` makes, or why it cannot."""
    start = time.perf_counter()
    try:
        solution = solve()
    except Exception as error:  # the others go on, and the message goes to the table
        return Attempt.failed(describe(error), time.perf_counter() - start)
    return Attempt(clean(solution.p), solution.converged, time.perf_counter() - start, "")


def describe(error: Exception) -> str:
    """Return the kind of an error and what it says."""
    return f"{type(error).__name__}: {error}"


def _solve(
    quantifier: Quantifier,
    S: Any,
    y: Any,
    S_pool: Any,
    samples: Samples,
    known: dict[str, Any],
    shared: list[tuple[Quantifier, Summary]],
) -> Solution:
    """Fit the quantifier and return its Solution.

    If it shares its representation, `shared` is used or extended.
    """
    if not quantifier.traits.shares_representation:
        return quantifier.fit_scores(S, y, **known).solve_scores(S_pool, samples)
    for fitted, summary in shared:
        if quantifier.adopt(fitted):
            return quantifier.solve(summary)
    summary = quantifier.fit_scores(S, y, **known).summarize(S_pool, samples, checks=False)
    shared.append((quantifier, summary))
    return quantifier.solve(summary)
