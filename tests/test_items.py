"""Posteriors of items, corrected for the estimated prevalences of their groups."""

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose
from sklearn.linear_model import LogisticRegression
from sklearn.svm import LinearSVC

import ordinalq as oq


def make(rng, P, size):
    """Return features, labels 1..3 and groups whose prevalences are the rows of P."""
    y = np.concatenate([rng.choice(3, size, p=p) for p in P])
    return y[:, None] + rng.normal(size=(len(y), 2)), y + 1, np.repeat(np.arange(len(P)), size)


def log_loss(P, y):
    return -np.log(P[np.arange(len(y)), y - 1]).mean()


@pytest.mark.parametrize("method", [oq.PACC, oq.SLD, oq.AdjustedML, oq.GroupBLP])
@pytest.mark.filterwarnings("ignore::ordinalq.inference.NoTrainingGroupsWarning")
def test_corrected_posteriors_are_better_in_groups_of_other_prevalences(method, rng):
    X, y, _ = make(rng, [[0.2, 0.3, 0.5]], 3000)
    q = method(LogisticRegression()).fit(X, y)
    X, y, groups = make(rng, [[0.8, 0.15, 0.05], [0.05, 0.9, 0.05]], 1000)
    got = q.predict_items(X, groups)
    assert_allclose(got.sum(axis=1), 1)
    assert (got > 0).all()
    # .39, compared with .70 of the classifier.
    assert log_loss(got, y) < 0.8 * log_loss(q.scores(X), y)
    # They add up to the prevalences of the group.
    found = q.predict_groups(X, groups).prevalences
    assert_allclose(np.array([got[groups == g].mean(axis=0) for g in (0, 1)]), found, atol=0.1)


@pytest.mark.filterwarnings("ignore::ordinalq.inference.NoTrainingGroupsWarning")
def test_items_keep_their_order_with_any_order_of_the_groups(rng):
    X, y, _ = make(rng, [[0.3, 0.4, 0.3]], 600)
    q = oq.GroupBLP(LogisticRegression()).fit(X, y)
    X, _, groups = make(rng, [[0.8, 0.1, 0.1], [0.1, 0.1, 0.8]], 50)
    order = rng.permutation(100)
    assert_allclose(q.predict_items(X[order], groups[order]), q.predict_items(X, groups)[order], atol=1e-9)


def test_all_items_are_one_sample_without_groups(rng):
    X, y, _ = make(rng, [[0.3, 0.4, 0.3]], 900)
    q = oq.PACC(LogisticRegression()).fit(X, y)
    X, y, _ = make(rng, [[0.05, 0.1, 0.85]], 500)
    assert log_loss(q.predict_items(X), y) < log_loss(q.scores(X), y)


def test_few_items_do_not_rule_out_a_class(rng):
    """The posterior of a single item stays near that of the classifier."""
    X, y, _ = make(rng, [[0.3, 0.4, 0.3]], 3000)
    q = oq.PACC(LogisticRegression()).fit(X, y)
    got = np.concatenate([q.predict_items(x[None]) for x in X[:12]])
    assert (got.min(axis=1) > 0.1 * q.scores(X[:12]).min(axis=1)).all()


def test_votes_features_and_samples_are_rejected(rng):
    X, y, groups = make(rng, [[0.3, 0.4, 0.3]], 300)
    for q in (oq.ACC(LinearSVC()).fit(X, y), oq.HDx().fit(X, y)):
        with pytest.raises(TypeError, match="predict_items needs class probabilities"):
            q.predict_items(X)
    with pytest.raises(TypeError, match="groups must be one value per item"):
        oq.PACC(LogisticRegression()).fit(X, y).predict_items(X, oq.Samples.from_groups(groups))


@pytest.mark.filterwarnings("ignore::ordinalq.inference.NoTrainingGroupsWarning")
def test_rows_of_a_table_have_posteriors_too(rng):
    X, y, groups = make(rng, [[0.3, 0.4, 0.3], [0.8, 0.1, 0.1]], 200)
    frame = pd.DataFrame({"a": X[:, 0], "b": X[:, 1], "stars": y, "shop": groups})
    model = oq.TableModel(oq.PACC(), features=["a", "b"]).fit(frame, "stars")
    got = model.predict_items(frame, by="shop")
    assert_allclose(got, model.predict_items(frame, by=groups))
    assert_allclose(got, model.quantifier_.predict_items(model.encode(frame), groups))
