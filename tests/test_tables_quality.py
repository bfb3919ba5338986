"""Quality of the classifier in fit: baselines, rare and absent classes."""

import json

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose
from seeds import generator

import ordinalq as oq
from ordinalq.cli import main
from ordinalq.tables.model import missing_labels, quality, sentences


def items(rng, counts, noise=1.0):
    y = np.repeat(np.arange(len(counts)), counts)
    return y[:, None] + noise * rng.normal(size=(len(y), 2)), y


def test_numbers_are_those_of_the_held_out_votes():
    X, y = items(generator(71), [20, 60, 120])
    quantifier = oq.PACC().fit(X, y)
    found = quality(quantifier, X, y)
    votes = quantifier.classifier_.held_out_scores_.argmax(axis=1)
    assert_allclose(found["accuracy"], (votes == y).mean())
    assert_allclose(found["distance"], np.abs(votes - y).mean())
    assert (found["largest"], found["largest_share"]) == ("2", 0.6)
    assert (found["median"], found["median_distance"]) == ("2", 0.5)
    assert found["rare"] == {"0": 20}
    assert found["accuracy"] <= found["twice"] <= 1


def test_more_labels_help_with_few_items_and_many_columns():
    rng = generator(72)

    def gain(n_items, n_columns, distance):
        y = rng.integers(0, 3, n_items)
        X = distance * y[:, None] + rng.normal(size=(n_items, n_columns))
        found = quality(oq.PACC(oq.classifiers.CrossFitted(cv=5)).fit(X, y), X, y)
        return found["twice"] - found["accuracy"]

    # Gains of single sets are 0.031 +- 0.030 and 0.003 +- 0.003: the means are five deviations within their bounds.
    few = np.mean([gain(120, 60, 0.3) for _ in range(50)])
    many = np.mean([gain(3000, 2, 1.0) for _ in range(5)])
    assert few > 0.005
    assert many < min(0.01, few)


@pytest.mark.parametrize("classifier", ["stack", "none"])
def test_other_classifiers_are_judged_too(classifier):
    X, y = items(generator(73), [60, 60, 60])
    if classifier == "none":
        assert quality(oq.HDx().fit(X, y), X, y) is None
        return
    assert quality(oq.AutoQuantifier(budget="fast").fit(X, y), X, y)["twice"] is not None


def test_quality_is_described_in_sentences():
    found = {
        "accuracy": 0.72, "largest": "5", "largest_share": 0.68, "distance": 0.4, "median": "5", "median_distance": 0.6,
        "rare": {"1": 12}, "twice": 0.76,
    }  # fmt: skip
    assert sentences(found, [1, 2, 4, 5], "stars") == [
        ("accuracy", "72% of the items, held out; always saying 5 would be right in 68%"),
        ("distance", "off by 0.40 stars on average; always saying 5 by 0.60"),
        ("labels", "twice as many may raise the accuracy to about 76%"),
        ("rare", "fewer than 30 items of 1 (12): label more of these first"),
        ("absent", "no item is labelled 3: shares of it cannot be estimated; label some if there are any"),
    ]
    assert missing_labels([1, 2, 3]) == []
    assert sentences(None, ["low", "high"], "classes") == []


def test_fit_prints_the_quality_of_the_classifier(tmp_path, capsys):
    X, y = items(generator(74), [40, 12, 60])
    frame = pd.DataFrame(X, columns=["f1", "f2"]).assign(stars=y + 3)
    frame.to_csv(tmp_path / "train.csv", index=False)
    call = [
        *map(str, ["fit", tmp_path / "train.csv", "--target", "stars", "--method", "PACC", "--out", tmp_path / "m.oq"])
    ]
    assert main(call) == 0
    out = capsys.readouterr().out
    assert "always saying 5 would be right in 54%" in out
    assert "stars on average" in out
    assert "fewer than 30 items of 4 (12)" in out
    assert "no item is labelled 1 or 2: shares of these cannot be estimated" in out
    assert main([*call, "--json"]) == 0
    result = json.loads(capsys.readouterr().out)
    assert result["absent"] == ["1", "2"]
    assert result["rare"] == {"4": 12}
    assert oq.load_model(tmp_path / "m.oq").quality_["largest"] == "5"
