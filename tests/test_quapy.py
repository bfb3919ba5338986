"""QuaPy: the code of its page runs, and each package runs the methods of the other, if QuaPy is installed."""

import warnings
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from small_experiment import write_experiment
from test_docs import blocks

import ordinalq as oq
from ordinalq.cli.main import main
from ordinalq.model_selection.quapy import QuapyQuantifier

PAGE = Path(__file__).parents[1] / "docs" / "quapy.md"
OWN = '''
from quapy.method.aggregative import KDEyML
from ordinalq.model_selection.quapy import QuapyQuantifier

class QuapyKDEy(QuapyQuantifier):
    """KDEy of QuaPy."""

    def __init__(self, classifier=None, *, bandwidth=0.1):
        self.classifier = classifier
        self.bandwidth = bandwidth

    @property
    def method(self):
        return KDEyML(bandwidth=self.bandwidth)
'''


def scored(rng, n_items=400, n=4):
    """Return posteriors and labels 1..n of items."""
    y = rng.permutation(np.resize(np.arange(n), n_items))
    logits = rng.normal(size=(n_items, n)) - np.abs(np.arange(n) - y[:, None])
    S = np.exp(logits) / np.exp(logits).sum(axis=1, keepdims=True)
    return S, y + 1


def test_the_same_job_in_both():
    pytest.importorskip("quapy")
    given = {}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # those of other packages
        for code, _ in blocks(PAGE):
            exec(compile(code, str(PAGE), "exec"), given)


def test_the_examples_of_the_page_check_their_results():
    text = PAGE.read_text(encoding="utf-8")
    assert text.count("assert_allclose") >= 4
    for code, _ in blocks(PAGE):
        compile(code, str(PAGE), "exec")


@pytest.mark.parametrize(("name", "tolerance"), [("CC", 1e-9), ("PCC", 1e-9), ("ACC", 1e-3), ("PACC", 1e-3)])
def test_wrapped_methods_give_the_estimates_of_ours_on_the_same_scores(name, tolerance, rng):
    theirs = getattr(pytest.importorskip("quapy.method.aggregative"), name)
    S, y = scored(rng)
    pool, z = scored(rng)
    samples = oq.protocols.APP(10, 100, small_pool="repeat", random_state=0).draw(z)
    ours = getattr(oq, name)().fit_scores(S, y).predict_scores(pool, samples)
    wrapped = QuapyQuantifier(theirs()).fit_scores(S, y)
    np.testing.assert_allclose(wrapped.predict_scores(pool, samples), ours, atol=tolerance)
    assert wrapped.traits.learns_from == "scores"


def test_methods_without_classifier_learn_from_features(rng):
    theirs = pytest.importorskip("quapy.method.non_aggregative").MaximumLikelihoodPrevalenceEstimation
    X, y = scored(rng)
    q = QuapyQuantifier(theirs()).fit(X[:, :2], y)
    assert q.traits.learns_from == "features"
    np.testing.assert_allclose(q.predict(X[:50, :2]), np.bincount(y)[1:] / len(y), atol=1e-12)


def test_an_experiment_runs_a_method_of_quapy_next_to_ours(tmp_path, monkeypatch):
    pytest.importorskip("quapy")
    config = """
methods = ["PACC", "own_quapy:QuapyKDEy"]
measures = ["nmd"]

[dataset]
table = "items.csv"
target = "stars"

[samples]
n_validation = 5
n_test = 6
sample_size = 60

[classifier]
family = "logistic"
grid = { C = [1.0] }

[grid.QuapyKDEy]
bandwidth = [0.05, 0.2]
"""
    (tmp_path / "own_quapy.py").write_text(OWN)
    monkeypatch.syspath_prepend(str(tmp_path))
    path = write_experiment(tmp_path, config)
    assert main(["reproduce", str(path), "--out", str(tmp_path / "out"), "--n-jobs", "1", "--quiet"]) == 0
    estimates = pd.read_parquet(tmp_path / "out" / "estimates.parquet")
    assert set(estimates["method"]) == {"PACC", "QuapyKDEy"}
    assert estimates.groupby("method")["error"].mean().max() < 0.3


def test_objects_other_than_quapy_methods_are_rejected(rng):
    S, y = scored(rng)
    with pytest.raises(TypeError, match="must be a quantifier of QuaPy"):
        QuapyQuantifier("EMQ").fit(S, y)
