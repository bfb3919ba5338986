"""Workload of the benchmark: fried, one forest, samples by the artificial-prevalence protocol; and its clock."""

import time
import tracemalloc
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from sklearn.ensemble import RandomForestClassifier

import ordinalq as oq

N_CLASSES = 10
N_TRAIN = 20_000
SAMPLE_SIZE = 1000
# Methods on features instead of scores.
ON_FEATURES = ("HDx", "OHDx")


@dataclass(frozen=True)
class Workload:
    """Training items with out-of-bag scores, and a pool with scores of the same forest.

    Attributes
    ----------
    X_train, X_pool : ndarray (N, 10), (M, 10)
    y_train, y_pool : ndarray (N,), (M,)
        Codes 0..9.
    S_train, S_pool : ndarray (N, 10), (M, 10)
    """

    X_train: np.ndarray
    y_train: np.ndarray
    S_train: np.ndarray
    X_pool: np.ndarray
    y_pool: np.ndarray
    S_pool: np.ndarray

    @cached_property
    def _given(self):
        return {True: (self.X_train, self.X_pool), False: (self.S_train, self.S_pool)}

    def given(self, name):
        """Return what the method `name` takes of the training items and of the pool: scores, or features."""
        return self._given[name in ON_FEATURES]

    def samples(self, n_samples, sample_size=SAMPLE_SIZE):
        """Draw samples from the pool; the rarest classes have fewer items than some samples want."""
        protocol = oq.protocols.APP(n_samples, sample_size, min_per_class=3, small_pool="repeat", random_state=1)
        return protocol.draw(self.y_pool)


def fried(n_items=40_768, seed=0):
    """Items of the data set fried, from its formula (Friedman #1).

    t = 10 sin(pi x_1 x_2) + 20 (x_3 - 1/2)^2 + 10 x_4 + 5 x_5 + N(0, 1) with ten uniform features; t is cut into ten
    bins of equal width over [-0.523, 30.054], with values outside in the outermost bins.

    Returns
    -------
    X : ndarray (n_items, 10)
    y : ndarray (n_items,)
        Codes 0..9.
    """
    rng = np.random.default_rng(seed)
    X = rng.random((n_items, 10))
    t = 10 * np.sin(np.pi * X[:, 0] * X[:, 1]) + 20 * (X[:, 2] - 0.5) ** 2 + 10 * X[:, 3] + 5 * X[:, 4]
    t += rng.normal(size=n_items)
    low, high = -0.523, 30.054
    return X, np.clip(np.floor((t - low) / (high - low) * N_CLASSES), 0, N_CLASSES - 1).astype(int)


def make_workload(n_items=40_768):
    """Fit the forest on the first 20,000 items, at most half of all; the pool is the second half of the rest."""
    X, y = fried(n_items)
    n_train = min(N_TRAIN, n_items // 2)
    start = (n_train + len(y)) // 2
    forest = RandomForestClassifier(100, max_depth=12, oob_score=True, class_weight=None, random_state=0)
    forest.fit(X[:n_train], y[:n_train])
    scores = forest.oob_decision_function_, forest.predict_proba(X[start:])
    return Workload(X[:n_train], y[:n_train], scores[0], X[start:], y[start:], scores[1])


@dataclass(frozen=True)
class Timing:
    """Seconds of repeated runs."""

    best: float
    median: float


# Seconds that a measurement may take, and the fewest repetitions; the tiny benchmark sets both to almost nothing.
BUDGET = {"seconds": 2.0, "runs": 3}


def clock(run: Callable[[], object], *, budget=None, at_least=None, at_most=25) -> Timing:
    """Processor time of `run`, repeated until the budget in seconds is spent; a first run is not counted."""
    budget = BUDGET["seconds"] if budget is None else min(budget, BUDGET["seconds"])
    at_least = BUDGET["runs"] if at_least is None else min(at_least, BUDGET["runs"])
    run()
    seconds = []
    while len(seconds) < at_least or (sum(seconds) < budget and len(seconds) < at_most):
        start = time.process_time()
        run()
        seconds.append(time.process_time() - start)
    return Timing(min(seconds), float(np.median(seconds)))


def peak_memory(run: Callable[[], object]) -> float:
    """Largest memory in MB that `run` has allocated at one time, by tracemalloc, which knows NumPy's arrays."""
    tracemalloc.start()
    try:
        run()
        return tracemalloc.get_traced_memory()[1] / 1e6
    finally:
        tracemalloc.stop()
