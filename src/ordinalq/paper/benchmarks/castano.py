"""Benchmark of Castano et al. (2024): 17 data sets and two published tables.

Each repetition holds out 30% of the items as test items. A random forest with balanced classes is tuned by the
geometric mean of recalls and fitted to each of the n - 1 thresholds (Frank and Hall). Methods learn from its
cross-fitted posteriors and estimate 300 samples of the size of the test set. Three methods also learn from a single
forest.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple, Self

import numpy as np
import pandas as pd
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.ensemble import RandomForestClassifier
from sklearn.metrics import make_scorer, recall_score
from sklearn.model_selection import GridSearchCV, StratifiedKFold, train_test_split

from ordinalq._utils.validation import Codes, Floats, check_choice
from ordinalq.classifiers.cross_fitting import CrossFitted
from ordinalq.datasets.castano import CASTANO, load_castano
from ordinalq.model_selection.engine import Training, learn
from ordinalq.paper.benchmarks.parts import run_parts
from ordinalq.quantifiers.adjusted import ACC, OACC, OPACC, PACC
from ordinalq.quantifiers.adjusted_ml import AdjustedML
from ordinalq.quantifiers.auto import AutoQuantifier
from ordinalq.quantifiers.base import Quantifier
from ordinalq.quantifiers.counting import CC, PCC
from ordinalq.quantifiers.energy import EDy, OEDy
from ordinalq.quantifiers.histogram import OPDF, PDF, HDx, HDy, OHDx, OHDy
from ordinalq.quantifiers.likelihood import OSLD, SLD, KDEy
from ordinalq.quantifiers.run_ibu import IBU, RUN
from ordinalq.samples.samples import Samples

N_BAGS = 300
SMALLEST = 0.05  # smallest prevalence of the first and of the last class


class PublishedMethod(NamedTuple):
    """Method with its published average scores.

    The scores are from Castano et al., and from Bunse et al. with regularized methods. The posteriors come from one
    forest per threshold, or from a single forest of all classes.
    """

    quantifier: Quantifier
    castano: float | None = None
    regularized: float | None = None
    per_threshold: bool = True


# The averages are of the tables published next to the data sets and in github.com/mirkobunse/regularized-oq. The second
# table has scores of CC, SLD and o-SLD that a forest per threshold does not reach; a single forest does.
METHODS = {
    "CC": PublishedMethod(CC(), 0.8677),
    "CC, single forest": PublishedMethod(CC(), None, 0.9016, per_threshold=False),
    "PCC": PublishedMethod(PCC(), 0.8811, 0.8841),
    "ACC": PublishedMethod(ACC(), 0.8827, 0.8899),
    "PACC": PublishedMethod(PACC(), 0.8929, 0.8963),
    "HDx, 8 bins": PublishedMethod(HDx(n_bins=8), 0.8789),
    "HDy, 8 bins": PublishedMethod(HDy(n_bins=8), 0.9002),
    "EDy": PublishedMethod(EDy(), 0.9146, 0.9150),
    "EDy, Euclidean": PublishedMethod(EDy(distance="euclidean"), 0.9124, 0.9123),
    "PDF, 32 bins": PublishedMethod(PDF(n_bins=32), 0.9060, 0.9061),
    "SLD": PublishedMethod(SLD()),
    "SLD, single forest": PublishedMethod(SLD(), None, 0.7586, per_threshold=False),
    "IBU, order 0, 0.1": PublishedMethod(IBU(order=0, interpolation=0.1), None, 0.9207),
    "IBU, order 1, 0.1": PublishedMethod(IBU(order=1, interpolation=0.1), None, 0.9192),
    "RUN, tau 10": PublishedMethod(RUN(tau=10.0), None, 0.9074),
    "RUN, tau 100": PublishedMethod(RUN(tau=100.0), None, 0.9099),
    "o-ACC, tau 0.01": PublishedMethod(OACC(tau=0.01), None, 0.9090),
    "o-PACC, tau 0.001": PublishedMethod(OPACC(tau=0.001), None, 0.9161),
    "o-PACC, tau 0.01": PublishedMethod(OPACC(tau=0.01), None, 0.9163),
    "o-EDy, tau 0.001": PublishedMethod(OEDy(tau=0.001), None, 0.9181),
    "o-EDy, tau 0.01": PublishedMethod(OEDy(tau=0.01), None, 0.9209),
    "o-HDx, 8 bins, tau 0.1": PublishedMethod(OHDx(n_bins=8, tau=0.1), None, 0.8863),
    "o-HDy, 4 bins, tau 0.1": PublishedMethod(OHDy(n_bins=4, tau=0.1), None, 0.9142),
    "o-PDF, 100 bins, tau 0.1": PublishedMethod(OPDF(n_bins=100, tau=0.1), None, 0.9141),
    "o-SLD, order 0, 0.1": PublishedMethod(OSLD(order=0, interpolation=0.1)),
    "o-SLD, order 0, 0.1, single forest": PublishedMethod(
        OSLD(order=0, interpolation=0.1), None, 0.7911, per_threshold=False
    ),
    "o-PACC, tau auto": PublishedMethod(OPACC(tau="auto")),
    "o-EDy, tau auto": PublishedMethod(OEDy(tau="auto")),
    "KDEy": PublishedMethod(KDEy()),
    "AdjustedML": PublishedMethod(AdjustedML()),
    "AutoQuantifier": PublishedMethod(AutoQuantifier()),
}


@dataclass(frozen=True)
class RunSize:
    """Numbers of repetitions and folds, and the grid of the random forest."""

    n_repetitions: int
    n_folds: int
    max_depth: tuple[int, ...]
    min_samples_leaf: tuple[int, ...]


PROFILES = {
    "full": RunSize(10, 20, (1, 5, 10, 15, 20, 25, 30), (1, 2, 5, 10, 20)),
    "quick": RunSize(1, 5, (5, 15, 30), (1, 5, 20)),
}


class FrankHall(ClassifierMixin, BaseEstimator):
    """Binary classifiers, one per threshold, with consistent posteriors.

    Thresholds are between neighbouring classes. The probabilities of "at most class k" are made increasing from both
    sides, and averaged (Destercke and Yang 2014).

    Parameters
    ----------
    estimator : classifier
        A copy of it is fitted to each threshold.

    Attributes
    ----------
    classes_ : ndarray (n,)
        Classes in ascending order.
    estimators_ : list of n - 1 classifiers
        The fitted copies.
    """

    def __init__(self, estimator: Any) -> None:
        self.estimator = estimator

    def fit(self, X: Any, y: Any) -> Self:
        """Fit n - 1 binary classifiers to X (N, d) with classes y (N,)."""
        self.classes_ = np.unique(y)
        self.estimators_ = [clone(self.estimator).fit(X, y <= k) for k in self.classes_[:-1]]
        return self

    def predict_proba(self, X: Any) -> Floats:
        """Return posteriors (N, n)."""
        at_most = np.stack([model.predict_proba(X)[:, 1] for model in self.estimators_], axis=1)
        upper = np.maximum.accumulate(at_most, axis=1)
        lower = np.minimum.accumulate(at_most[:, ::-1], axis=1)[:, ::-1]
        cumulative = np.pad((upper + lower) / 2, ((0, 0), (1, 1)), constant_values=((0, 0), (0, 1)))
        return np.asarray(np.diff(cumulative, axis=1))

    def predict(self, X: Any) -> Any:
        """Return the most probable classes (N,)."""
        return self.classes_[self.predict_proba(X).argmax(axis=1)]


def emd_score(P: Floats, P_hat: Floats) -> Floats:
    """Return 1 - EMD / maxEMD for distributions (B, n), shape (B,).

    The value maxEMD is the largest possible EMD for the true distribution.

    Parameters
    ----------
    P, P_hat : ndarray (B, n)
        True and estimated distributions.

    Returns
    -------
    ndarray (B,)

    Examples
    --------
    >>> emd_score(np.array([[0.5, 0.5, 0.0]]), np.array([[0.0, 0.5, 0.5]])).round(4)
    array([0.3333])
    """
    expected = P @ np.arange(P.shape[1])
    largest = np.maximum(expected, P.shape[1] - 1 - expected)
    return np.asarray(1 - np.abs(np.cumsum(P - P_hat, axis=1)).sum(axis=1) / largest)


def draw_bags(y: Codes, n_bags: int, rng: np.random.Generator) -> Samples:
    """Draw samples of the size of the pool by the published protocol.

    Items are drawn with replacement. The prevalences are spacings of n - 1 uniform points in [0.05, 0.95].

    Parameters
    ----------
    y : ndarray (N,)
        Classes of the pool, 0..n-1.
    n_bags : int
        Number of samples.
    rng : numpy.random.Generator
        Source of randomness.

    Returns
    -------
    Samples
    """
    n, size = int(y.max()) + 1, len(y)
    cuts = np.sort(rng.integers(round(size * SMALLEST), round(size * (1 - SMALLEST)), (n_bags, n - 1)), axis=1)
    edges = np.pad(cuts, ((0, 0), (1, 1)), constant_values=((0, 0), (0, size)))
    counts = edges[:, 1:] - edges[:, :-1]
    available = np.bincount(y, minlength=n)
    starts = np.cumsum(available) - available
    wanted = np.repeat(np.tile(np.arange(n), n_bags), counts.ravel())
    drawn = starts[wanted] + (rng.random(wanted.size) * available[wanted]).astype(np.intp)
    items = np.argsort(y, kind="stable")[drawn]
    return Samples.from_index(items.reshape(n_bags, size), size, y, classes=np.arange(n))


def tuned_forest(X: Floats, y: Codes, effort: RunSize, seed: int, n_jobs: int) -> RandomForestClassifier:
    """Return an unfitted random forest with tuned parameters.

    They have the best geometric mean of recalls in three folds.
    """
    forest = RandomForestClassifier(class_weight="balanced", random_state=seed)
    grid = {"max_depth": list(effort.max_depth), "min_samples_leaf": list(effort.min_samples_leaf)}
    folds = StratifiedKFold(3, shuffle=True, random_state=seed)
    search = GridSearchCV(forest, grid, scoring=make_scorer(_geometric_mean), cv=folds, refit=False, n_jobs=n_jobs)
    best: RandomForestClassifier = forest.set_params(**search.fit(X, y).best_params_)
    return best


def _geometric_mean(y: Any, found: Any) -> float:
    """Return the geometric mean of the recalls of all classes."""
    recalls = np.asarray(recall_score(y, found, average=None, zero_division=0))
    return float(np.prod(recalls) ** (1 / len(recalls)))


def run_castano(
    folder: Path,
    *,
    profile: str = "full",
    data: str | Path | None = None,
    n_jobs: int = 1,
    repetitions: int | None = None,
) -> Iterator[str]:
    """Run the benchmark and write ``scores.csv`` and ``table.csv``.

    Repetitions that ``scores.csv`` already has are not computed again.

    Parameters
    ----------
    folder : path
        Folder of the two files.
    profile : {"full", "quick"}, default="full"
        "quick" has one repetition, fewer folds and a smaller grid of forests.
    data : path, default=None
        Folder of the data sets, see :func:`ordinalq.datasets.load_castano`.
    n_jobs : int, default=1
        Number of classifiers that are fitted at the same time.
    repetitions : int, default=None
        Number of repetitions; None stands for that of the profile.

    Yields
    ------
    str
        A line for each data set and repetition that is done.
    """
    check_choice("profile", profile, tuple(PROFILES))
    effort = PROFILES[profile]
    parts = [(name, repetition) for repetition in range(repetitions or effort.n_repetitions) for name in CASTANO]
    compute = partial(_repetition, effort=effort, data=data, n_jobs=n_jobs)
    for name, repetition in run_parts(folder, profile, ("dataset", "repetition"), parts, compute, summarize):
        yield f"{name}, repetition {repetition + 1}"


def _repetition(
    name: str, repetition: int, effort: RunSize, data: str | Path | None, n_jobs: int
) -> Iterator[dict[str, Any]]:
    """Yield the mean score of each method on one split of a data set."""
    seed = 2032 + repetition  # as published
    X, y = load_castano(name, data)
    X_train, X_test, y_train, y_test = train_test_split(X, y, test_size=0.3, random_state=seed, stratify=y)
    bags = draw_bags(y_test, N_BAGS, np.random.default_rng(seed))
    assert bags.prevalences is not None
    forest = tuned_forest(X_train, y_train, effort, seed, n_jobs)
    n_folds = min(effort.n_folds, int(np.bincount(y_train).min()))
    cross_fitted = partial(CrossFitted, cv=n_folds, refit=True, n_jobs=n_jobs, random_state=seed)
    training = Training(X_train, y_train, np.arange(y.max() + 1))
    scored = {
        per_threshold: learn(CC(cross_fitted(classifier)), training, {"test": X_test})
        for per_threshold, classifier in ((True, FrankHall(forest)), (False, forest))
    }
    for method, (quantifier, *_, per_threshold) in METHODS.items():
        on_scores = quantifier.traits.learns_from == "scores"
        learned = scored[per_threshold] if on_scores else learn(quantifier, training, {"test": X_test})
        (found,) = learned.estimate([quantifier], "test", bags)
        score = float(emd_score(bags.prevalences, found.P).mean()) if not found.message else np.nan
        head = {"dataset": name, "repetition": repetition, "method": method}
        yield head | {"score": score, "seconds": found.seconds, "message": found.message}


def summarize(scores: pd.DataFrame) -> pd.DataFrame:
    """Return the mean score of each method on each data set, and averages.

    The averages are our average over data sets and the two published ones. Data sets have equal weights, also with
    different numbers of repetitions.
    """
    means = scores.pivot_table("score", "method", "dataset", dropna=False)
    methods = [method for method in METHODS if method in means.index]
    means = means.loc[methods, [name for name in CASTANO if name in means.columns]]
    published = pd.DataFrame.from_dict(
        {name: METHODS[name][1:3] for name in methods}, orient="index", columns=["Castano et al.", "Bunse et al."]
    )
    return pd.concat([means.mean(axis=1, skipna=False).rename("average"), published, means], axis=1)
