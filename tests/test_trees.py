"""OQT and ARC: the trees of hand-made examples, posteriors, corrections."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from seeds import generator
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.naive_bayes import GaussianNB
from sklearn.svm import LinearSVC

import ordinalq as oq
from ordinalq.classifiers import CrossFitted, InSample
from ordinalq.quantifiers.trees import divergence, halving_tree, most_reliable_first


def test_most_reliable_threshold_is_the_root_and_so_on_within_both_sides():
    # D = .3 .1 .2 .4: root at 1; left of it threshold 0, right of it 2 before 3.
    assert most_reliable_first([0.3, 0.1, 0.2, 0.4]) == (1, (0, 0, 1), (2, 2, (3, 3, 4)))


def test_ties_go_to_the_smallest_threshold():
    assert most_reliable_first([0.2, 0.1, 0.1, 0.1]) == (1, (0, 0, 1), (2, 2, (3, 3, 4)))


def test_divergence_by_hand():
    assert_allclose(
        divergence(np.array([0.5, 0.25]), np.array([0.25, 0.25])), [0.5 + 0.5 * np.log2(2 / 3), 0], atol=1e-5
    )
    assert np.isfinite(divergence(np.array([0.0, 1.0]), np.array([1.0, 0.0]))).all()


def test_arc_halves_the_items_of_each_node():
    # Cumulated fractions .1 .3 .6 .8: |1/2 - .6| is smallest; then {1,1} of the left, ...
    assert halving_tree([10, 20, 30, 20, 20]) == (2, (1, (0, 0, 1), 2), (3, 3, 4))


def test_arc_ties_take_the_first_split():
    # Fractions .25 .5 .75 of the root; .4 and .6 are as far from one half: the first.
    assert halving_tree([2, 1, 2]) == (0, 0, (1, 1, 2))
    assert halving_tree([10, 10, 10, 10]) == (1, (0, 0, 1), (2, 2, 3))
    # 1/3 and 2/3 are as far from one half, but not as floating-point numbers.
    assert halving_tree([10, 10, 10]) == (0, 0, (1, 1, 2))


@pytest.fixture(scope="module")
def data():
    rng = generator(2)
    y = np.repeat(np.arange(5), [60, 80, 120, 80, 60])
    X = np.column_stack([y + 0.8 * rng.normal(size=400), rng.normal(size=400)])
    T = rng.permutation(np.repeat(np.arange(5), 60))
    Z = np.column_stack([T + 0.8 * rng.normal(size=300), rng.normal(size=300)])
    return X, y + 1, Z, oq.protocols.APP(20, 60, random_state=1).draw(T)


def test_oqt_posteriors_are_products_along_the_tree_and_sum_to_one(data):
    X, y, Z, samples = data
    oqt = oq.OQT(GaussianNB()).fit(X, y)
    S = oqt.scores(Z)
    assert_allclose(S.sum(axis=1), 1, atol=1e-12)
    G = np.column_stack([model.predict_proba(Z)[:, 0] for model in oqt.models_])
    for c in range(5):
        product, tree = np.ones(len(Z)), oqt.tree_
        while not isinstance(tree, int):
            t, left, right = tree
            product, tree = (product * G[:, t], left) if c <= t else (product * (1 - G[:, t]), right)
        assert tree == c
        assert_allclose(S[:, c], product, atol=1e-12)
    assert_allclose(oqt.predict_samples(Z, samples), samples.average(S), atol=1e-12)


def test_oqt_classifiers_use_all_items_of_the_training_part(data):
    X, y, _, _ = data
    oqt = oq.OQT(RandomForestClassifier(5, oob_score=True, random_state=0), held_out=0.25).fit(X, y)
    assert len(oqt.models_) == len(oqt.divergences_) == 4
    assert_allclose(oqt.divergences_[oqt.tree_[0]], oqt.divergences_.min())
    assert all(model.get_params()["oob_score"] is False for model in oqt.models_)


def test_arc_gives_one_class_per_item_by_descent(data):
    X, y, Z, _ = data
    arc = oq.ARC(GaussianNB()).fit(X, y)
    S = arc.scores(Z)
    assert_array_equal(np.sort(S, axis=1)[:, -2:], np.tile([0, 1], (300, 1)))
    predicted = []
    for z in Z:
        low, high, tree = 0, 4, arc.tree_
        while not isinstance(tree, int):
            t, left, right = tree
            if arc.models_[low, high].predict(z[None])[0] == 0:
                high, tree = t, left
            else:
                low, tree = t + 1, right
        predicted.append(tree)
    assert_array_equal(S.argmax(axis=1), predicted)


def test_arc_nodes_are_fitted_on_their_own_classes_only(data):
    X, y, _, _ = data
    seen = []

    class Spy(LogisticRegression):
        def fit(self, X, y):
            seen.append(len(y))
            return super().fit(X, y)

    arc = oq.ARC(oq.classifiers.CrossFitted(Spy(), cv=2, refit=True)).fit(X, y)
    # refit: the last fit of each node sees all of its items, about 2/3 of the training items at the root.
    assert max(seen) in (266, 267)
    assert set(arc.models_) == {(0, 4), *[span for span in arc.models_ if span != (0, 4)]}
    assert len(arc.models_) == 4


def test_arc_ratio_correction_makes_the_held_out_items_right(data):
    X, y, Z, samples = data
    arc = oq.ARC(GaussianNB()).fit(X, y)
    Q = samples.average(arc.scores(Z))
    expected = Q * arc.ratios_
    assert_allclose(arc.predict_samples(Z, samples), expected / expected.sum(axis=1, keepdims=True), atol=1e-12)
    assert (arc.ratios_ > 0).all()


def test_arc_with_adjusted_count_is_acc_on_the_votes_of_the_tree(data):
    X, y, Z, samples = data
    arc = oq.ARC(GaussianNB(), correction="acc").fit(X, y)
    assert_allclose(arc.M_.sum(axis=0), 1)
    expected = oq.solve(samples.average(arc.scores(Z)), arc.M_, oq.ACC())
    assert_allclose(arc.predict_samples(Z, samples), expected, atol=1e-10)


@pytest.mark.parametrize("cls", [oq.OQT, oq.ARC])
def test_number_of_jobs_changes_nothing(cls, data):
    X, y, Z, samples = data
    one, two = (cls(GaussianNB(), n_jobs=n).fit(X, y).predict_samples(Z, samples) for n in (1, 2))
    assert_array_equal(one, two)


@pytest.mark.parametrize("cls", [oq.OQT, oq.ARC])
def test_trees_reject_scores(cls):
    with pytest.raises(TypeError, match="fits its own classifiers"):
        cls().fit_scores(np.full((6, 3), 1 / 3), [1, 2, 3, 1, 2, 3])


@pytest.mark.parametrize("cls", [oq.OQT, oq.ARC])
@pytest.mark.parametrize("held_out", [0, 1, 1.5, -0.1])
def test_trees_reject_a_held_out_part_of_nothing_or_everything(cls, held_out, data):
    with pytest.raises(ValueError, match="held_out must be"):
        cls(GaussianNB(), held_out=held_out).fit(*data[:2])


@pytest.mark.parametrize("cls", [oq.OQT, oq.ARC])
def test_trees_reject_a_class_with_a_single_item(cls):
    X = np.arange(11.0)[:, None]
    with pytest.raises(ValueError, match="class 3 has a single item"):
        cls(GaussianNB()).fit(X, [1] * 5 + [2] * 5 + [3])


def test_oqt_needs_probabilities_and_arc_does_not(data):
    X, y, Z, samples = data
    with pytest.raises(TypeError, match="OQT needs class probabilities"):
        oq.OQT(LinearSVC()).fit(X, y)
    P = oq.ARC(LinearSVC()).fit(X, y).predict_samples(Z, samples)
    assert oq.metrics.nmd(samples.prevalences, P).mean() < 0.2


def test_arc_rejects_unknown_corrections(data):
    with pytest.raises(ValueError, match="correction must be one of 'ratio', 'acc', got 'none'"):
        oq.ARC(GaussianNB(), correction="none").fit(*data[:2])


def test_small_nodes_with_rare_classes_are_fitted(data):
    X = np.arange(16.0)[:, None]
    y = [1] * 6 + [2] * 6 + [3] * 2 + [4] * 2
    P = oq.ARC(oq.classifiers.CrossFitted(LogisticRegression(), cv=10)).fit(X, y).predict(X)
    assert_allclose(P.sum(), 1)


@pytest.mark.parametrize("method", [oq.OQT, oq.ARC])
@pytest.mark.parametrize(
    ("classifier", "n_models"),
    [(GaussianNB(), 10), (CrossFitted(GaussianNB(), cv=3), 3), (InSample(GaussianNB()), 1)],
    ids=["plain", "three folds", "in-sample"],
)
def test_number_of_models_per_binary_problem_follows_the_classifier(method, classifier, n_models, data, monkeypatch):
    fits = []
    fit = GaussianNB.fit
    monkeypatch.setattr(
        GaussianNB, "fit", lambda self, *given, **weights: fits.append(1) or fit(self, *given, **weights)
    )
    X, y, *_ = data
    method(classifier).fit(X, y)
    assert len(fits) == n_models * (len(np.unique(y)) - 1)
