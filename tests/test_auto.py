"""AutoQuantifier: the models that it chooses and fits, and the errors that it states."""

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.sparse import csr_array
from sklearn.base import clone, is_classifier, is_regressor

import ordinalq as oq
from ordinalq.classifiers.stacking import BUDGETS, FEW, MEMBERS, WIDE, choose, kind_of
from ordinalq.inference.expected_error import expected_errors


def items(rng, n_items=1200, n_classes=4):
    """Return features (N, 3) and classes 0..n-1 that follow a curve through them, with noise."""
    X = rng.normal(size=(n_items, 3))
    line = X[:, 0] + np.sin(2 * X[:, 1]) + 0.5 * rng.normal(size=n_items)
    return X, np.digitize(line, np.linspace(-1.2, 1.2, n_classes - 1))


def test_kinds_of_items():
    assert kind_of(np.zeros((FEW, 3))) == "table"
    assert kind_of(np.zeros((FEW - 1, 3))) == "few"
    assert kind_of(np.zeros((5, WIDE + 1))) == "vectors"
    assert kind_of(csr_array(np.zeros((5000, 3)))) == "sparse"
    assert kind_of([[1.0, 2.0], [3.0, 4.0]]) == "few"


@pytest.mark.parametrize("budget", BUDGETS)
@pytest.mark.parametrize("kind", list(MEMBERS))
def test_every_choice_is_made_of_public_parts_with_a_reason_each(kind, budget):
    shape = {"table": (FEW, 3), "few": (50, 3), "vectors": (50, WIDE + 1), "sparse": (50, 9)}[kind]
    X = csr_array(np.zeros(shape)) if kind == "sparse" else np.zeros(shape)
    choice = choose(X, budget=budget)
    assert choice.kind == kind
    assert len(choice.reasons) == len(choice.members)
    assert all(is_regressor(member) or is_classifier(member) for member in choice.members)
    clone(oq.classifiers.OrdinalStack(choice.members))


@pytest.mark.parametrize("kind", ["few", "vectors", "sparse"])
def test_kinds_that_are_cheap_can_be_trained(kind, rng):
    X = rng.normal(size=(900, 3))
    # Classes that a line tells apart: the estimate is then off by the few items near its cuts, not by its instrument.
    y = np.digitize(X[:, 0] + 0.1 * rng.normal(size=900), [-1.2, 0, 1.2])
    if kind == "vectors":
        X = X @ rng.normal(size=(3, WIDE + 1)) + 0.3 * rng.normal(size=(900, WIDE + 1))
    if kind == "sparse":
        X = csr_array(X)
    q = oq.AutoQuantifier(budget="fast").fit(X[:600], y[:600])
    assert q.training_.kind == kind
    assert_allclose(q.predict(X[600:]), np.bincount(y[600:]) / 300, atol=0.1)


def test_default_is_the_choice_fitted_and_nothing_else(rng):
    X, y = items(rng)
    q = oq.AutoQuantifier(budget="fast", random_state=3).fit(X, y)
    same = oq.AdjustedML(
        oq.classifiers.OrdinalStack(choose(X, budget="fast", random_state=3).members, random_state=3)
    ).fit(X, y)
    assert_array_equal(q.predict(X), same.predict(X))


def test_texts_get_more_folds_and_balanced_classes(rng):
    y = rng.integers(0, 3, 300)
    X = csr_array(rng.poisson(np.eye(3)[y] + 0.3))
    for budget, folds in (("fast", 5), ("balanced", 10)):
        (member,) = oq.classifiers.OrdinalStack(budget=budget).fit(X, y).members_
        assert len(member.estimators_) == folds == choose(X, budget=budget).folds
        assert member.estimator.class_weight == "balanced"
    assert len(oq.classifiers.OrdinalStack(cv=3).fit(X, y).members_[0].estimators_) == 3


def test_the_model_of_texts_reaches_its_optimum(rng):
    """The slope of sum_x w_y ln p_y(x) - ||coefficients||^2 / 2 vanishes, in single precision as in double."""
    y = np.repeat(np.arange(3), [30, 120, 350])
    words = rng.poisson(0.05 + 0.1 * (rng.random((3, 400)) < 0.1)[y])
    for dtype in (np.float32, np.float64):
        X = csr_array(words / np.maximum(1, np.linalg.norm(words, axis=1, keepdims=True)), dtype=dtype)
        model = choose(X).members[0].fit(X, y)
        residuals = (np.eye(3)[y] - model.predict_proba(X)) * (len(y) / 3 / np.bincount(y))[y, None]
        assert np.abs(residuals.T @ X.toarray() - model.coef_).max() < 1e-3 * np.abs(model.coef_).max()


def test_frames_with_categories_and_missing_values_are_taken_as_they_are(rng):
    X, y = items(rng, 400)
    frame = pd.DataFrame(X, columns=["a", "b", "c"])
    frame["shop"] = np.where(y > 1, "far", "near")
    frame.loc[rng.random(400) < 0.1, "a"] = np.nan
    q = oq.AutoQuantifier(budget="fast").fit(frame, y)
    assert_allclose(q.predict(frame), np.bincount(y) / 400, atol=0.08)
    X[0, 0] = np.nan
    assert np.isfinite(oq.AutoQuantifier(budget="fast").fit(X, y).predict(X)).all()


def test_labels_of_words_need_their_order(rng):
    X, y = items(rng, 400)
    names = np.array(["bad", "poor", "fair", "good"])
    q = oq.AutoQuantifier(budget="fast").fit(X, names[y], classes=names)
    assert_array_equal(q.classes_, names)


def test_groups_stay_together_and_their_error_is_expected(rng):
    X, y = items(rng, 600)
    groups = rng.integers(30, size=600)
    q = oq.AutoQuantifier(budget="fast").fit(X, y, groups=groups)
    large, small = q.training_.expected
    assert (large, small) == ("groups of 20 items or more", "smaller groups")
    assert 0 < q.training_.expected[large] < 0.2
    assert f"{q.training_.expected[large]:.4f} in groups of 20 items or more" in str(q.training_)


def test_expected_error_is_near_the_measured_one(rng):
    X, y = items(rng, 3000)
    X_new, y_new = items(rng, 3000)
    q = oq.AutoQuantifier(budget="fast").fit(X, y)
    samples = oq.protocols.APP(200, 100, small_pool="repeat", random_state=1).draw(y_new)
    measured = oq.metrics.nmd(samples.prevalences, q.predict_samples(X_new, samples)).mean()
    assert q.training_.expected[100] == pytest.approx(measured, rel=0.25)
    assert q.training_.expected[1000] < q.training_.expected[100]


def test_the_expected_error_is_unknown_if_a_class_has_a_single_item(rng):
    S = rng.dirichlet(np.ones(3), size=40)
    codes = np.repeat([0, 1, 2], [20, 19, 1])
    assert np.isnan(expected_errors(oq.PACC(), S, codes)[1000])


def test_few_groups_are_enough_to_fit_but_not_to_estimate_the_error(rng):
    X, y = items(rng, 400)
    q = oq.AutoQuantifier(budget="fast").fit(X, y, groups=np.arange(400) % 4)
    assert np.isnan([*q.training_.expected.values()]).all()
    assert "expected NMD: unknown" in str(q.training_)


def test_default_is_saved_with_its_report(rng, tmp_path):
    X, y = items(rng, 400)
    q = oq.AutoQuantifier(budget="fast").fit(X, y)
    q_loaded = oq.load_model(oq.save_model(q, tmp_path / "q.oq") and tmp_path / "q.oq")
    assert_array_equal(q_loaded.predict(X), q.predict(X))
    assert str(q_loaded.training_) == str(q.training_)


def test_mistakes_are_named(rng):
    X, y = items(rng, 100)
    with pytest.raises(ValueError, match="budget must be one of 'fast', 'balanced', 'best', got 'slow'"):
        oq.AutoQuantifier(budget="slow").fit(X, y)
    with pytest.raises(ValueError, match="classes"):
        oq.AutoQuantifier().fit(X, np.array(["a", "b"])[y % 2])
    with pytest.raises(TypeError, match="cannot be fitted on scores"):
        oq.AutoQuantifier().fit_scores(np.eye(4)[y], y)


@pytest.mark.parametrize("make", [list, np.array, pd.Series])
def test_bare_texts_are_rejected_with_the_remedy(make):
    with pytest.raises(ValueError, match=r"got a list of texts: make vectors of them.*TfidfVectorizer.*TableModel"):
        oq.AutoQuantifier().fit(make(["good", "fair", "bad"] * 20), [3, 2, 1] * 20)


def test_search_compares_the_default_with_other_methods(rng):
    X, y = items(rng, 1000)
    samples = oq.protocols.APP(20, 50, small_pool="repeat", random_state=1).draw(y[600:])
    search = oq.model_selection.SampleSearch(
        oq.AutoQuantifier(), {"budget": ["fast"], "prior": ["any", "training"]}, samples=samples
    )
    search.fit(X[:600], y[:600], X[600:])
    assert search.best() == {"budget": "fast", "prior": "any"}
    assert search.best_estimator_.training_.kind == "few"


def test_classes_with_few_training_items_are_named(rng):
    X, y = items(rng, 400)
    kept = (y != 2) | (np.cumsum(y == 2) <= 6)
    with pytest.warns(oq.inference.RareClassWarning, match=r"fewer than 10 training items.*: 2 \(6\)\. Label more"):
        oq.PACC().fit(X[kept], y[kept])
