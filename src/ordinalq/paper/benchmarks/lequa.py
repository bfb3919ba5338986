"""LeQua 2024, task T3: method selection and estimates of the test samples.

Methods are compared on the development samples.
"""

from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from ordinalq._utils.validation import Floats
from ordinalq.classifiers.registry import NEWTON, scoring_classifier
from ordinalq.datasets.dataset import Dataset
from ordinalq.datasets.lequa import PROTOCOL, macro_nmd
from ordinalq.metrics import nmd
from ordinalq.model_selection.engine import EvaluationSamples, Training, learn
from ordinalq.model_selection.search import configurations_of
from ordinalq.quantifiers.catalog import find_method
from ordinalq.quantifiers.counting import CC

MEASURES = {"nmd": nmd, "macro_nmd": macro_nmd}


class ChosenEstimates(NamedTuple):
    """The chosen method, its estimates of the test samples, and all errors.

    ``validation`` has one row per configuration with the mean errors on the development samples, and ``best`` is the
    row with the smallest mean NMD. ``P`` (B, n) are the estimates in the order of the samples. ``errors`` has the mean
    errors on the test samples, and is empty if their prevalences are not known.
    """

    best: dict[str, Any]
    P: Floats
    validation: pd.DataFrame
    errors: dict[str, float]


def estimate_test_samples(
    dataset: Dataset,
    methods: Iterable[str],
    *,
    classifier: Mapping[str, Any] | None = None,
    n_jobs: int = 1,
    random_state: int = 876,
) -> ChosenEstimates:
    """Choose a method on development samples and estimate the test samples.

    The method and its parameters have the smallest mean NMD on the development samples. The methods share one logistic
    regression in ten folds.

    Parameters
    ----------
    dataset : Dataset
        Data set of :func:`ordinalq.datasets.load_lequa`.
    methods : iterable of str
        Names of the catalog. The methods must work on class scores.
    classifier : mapping, default=None
        Parameters of scikit-learn's logistic regression; Newton's method by default.
    n_jobs : int, default=1
        Number of folds that are fitted at the same time.
    random_state : int, default=876
        Seed of the folds.

    Returns
    -------
    found : ChosenEstimates
    """
    n = len(dataset.classes)
    chosen = [find_method(name) for name in methods]
    if not chosen:
        raise ValueError("methods must have at least one name, got none.")
    for entry in chosen:
        if entry.cls().traits.learns_from != "scores":
            raise ValueError(f"methods must work on class scores, but {entry.name} does not. Use ordinalq reproduce.")
    trials = [(entry, given) for entry in chosen for given in configurations_of(entry.grid(n))]
    model = scoring_classifier("logistic", NEWTON | dict(classifier or {}), n_jobs=n_jobs, random_state=random_state)
    pools = {"validation": dataset.validation.X, "test": dataset.test.X}
    learned = learn(CC(model), Training(*dataset.train, np.arange(n)), pools)
    battery = EvaluationSamples.of({PROTOCOL: dataset.samples(PROTOCOL, "validation")})
    found = learned.estimate((entry.cls(**given) for entry, given in trials), "validation", battery.samples)
    rows: list[dict[str, Any]] = []
    for (entry, given), one in zip(trials, found, strict=True):
        errors = {row["measure"]: row["error"] for row in battery.measure_errors(one, MEASURES)}
        rows.append({"method": entry.name, "parameters": given} | errors | {"message": one.message})
    number = min(range(len(rows)), key=lambda i: rows[i]["nmd"])
    best = rows[number]
    if best["message"]:
        raise ValueError(f"every method failed, the first with {rows[0]['message']}")
    entry, given = trials[number]
    samples = dataset.samples(PROTOCOL, "test")
    (final,) = learned.estimate([entry.cls(**given)], "test", samples)
    if final.message:
        raise ValueError(f"{entry.name} failed on the test samples: {final.message}")
    truth = samples.prevalences
    known = {} if truth is None else {name: float(of(truth, final.P).mean()) for name, of in MEASURES.items()}
    return ChosenEstimates(best, final.P, pd.DataFrame(rows), known)
