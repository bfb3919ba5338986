"""Provenance of estimates."""

import json

import numpy as np
import pytest

import ordinalq as oq
from ordinalq.inference.predict import estimate


@pytest.fixture
def data(rng):
    y = np.arange(600) % 3 + 1
    return y[:, None] + rng.normal(size=(600, 2)), y, np.arange(600) % 20


def test_provenance_names_model_version_estimand_level_and_assumptions(data):
    X, y, groups = data
    q = oq.PACC().fit(X, y)
    options = oq.inference.IntervalOptions(estimand="population")
    found = estimate(q, q.summarize(q.scores(X), oq.Samples.from_groups(groups)), 0.9, options).provenance
    assert (found.method, found.version, found.estimand, found.level) == ("PACC", oq.__version__, "population", 0.9)
    assert found.groups == "differ in nothing but their prevalences"
    assert found.labels == "none"
    whole = q.predict_interval(X, 0.9).provenance
    assert whole.groups == "none"
    assert whole.model == found.model
    assert oq.GroupBLP().fit(X, y, groups=groups).predict_groups(X, groups).provenance.groups.startswith("drawn like")
    stated = oq.GroupBLP(group_effect=0.05).fit(X, y).predict_groups(X, groups).provenance
    assert "stated group effect of 0.05" in stated.groups


def test_labels_are_part_of_the_provenance(data, rng):
    X, y, groups = data
    labels = np.where(rng.permutation(600) < 300, y, np.nan)
    q = oq.PACC().fit(X, y)
    found = estimate(q, q.summarize(q.scores(X), oq.Samples.from_groups(groups % 2), labels=labels), 0.9)
    said = "300 items, drawn at random; 2 of 2 estimates rest on them alone"
    assert found.provenance.labels == said
    assert json.loads(json.dumps(found.to_json()))["provenance"]["labels"] == said
    assert "1 of 1" in found.take([0]).provenance.labels


def test_the_hash_is_that_of_the_model_and_survives_a_file(data, tmp_path):
    X, y, _ = data
    q = oq.PACC().fit(X, y)
    oq.save_model(q, tmp_path / "m.oq")
    hashes = [one.predict_interval(X, 0.9).provenance.model for one in (q, oq.load_model(tmp_path / "m.oq"))]
    assert hashes[0] == hashes[1]
    others = [
        oq.PACC().fit(X[:-1], y[:-1]),
        oq.ACC().fit(X, y),
        oq.PACC().fit(X, 4 - y),
        oq.PACC().fit(X, y, class_values=[1, 2, 4]),
    ]
    assert len({hashes[0], *(one.predict_interval(X, 0.9).provenance.model for one in others)}) == 5


def test_plots_name_the_model_in_figures_of_their_own(data):
    X, y, _ = data
    found = oq.PACC().fit(X, y).predict_interval(X, 0.9)
    figure = found.plot().figure
    assert figure.get_suptitle() == found.provenance.short
    assert found.provenance.model.startswith(found.provenance.short.split("model ")[1].split(",")[0])
    assert oq.plot.distribution([0.2, 0.8]).figure.get_suptitle() == ""


def test_groups_without_training_groups_name_the_model_that_was_fitted(rng):
    y = rng.integers(1, 5, size=400)
    X, groups = y[:, None] + rng.normal(size=(400, 2)), np.arange(400) % 5
    q = oq.AutoQuantifier(budget="fast").fit(X, y)
    single, grouped = q.predict_interval(X).provenance, q.predict_groups(X, groups).provenance
    assert grouped.method == single.method == "AutoQuantifier"
    assert grouped.model == single.model
    assert grouped.groups == "differ by a stated group effect of 0.1"
