"""Quantifiers and scikit-learn: scores, searches, metadata routing, pipelines."""

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn import config_context
from sklearn.base import clone
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV, GroupKFold, StratifiedKFold, cross_val_score
from sklearn.naive_bayes import GaussianNB
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import ordinalq as oq
from ordinalq import losses
from ordinalq.inference.model import learned_groups
from ordinalq.quantifiers.base import drawn_samples
from ordinalq.regularizers import Tikhonov
from ordinalq.representations import HardVotes
from ordinalq.simplex import Data

METHODS = {e.name: e.cls for e in oq.catalog(beyond=True) if e.name != "AutoQuantifier"}


def build(method):
    return method() if method in (oq.HDx, oq.OHDx) else method(oq.classifiers.CrossFitted(GaussianNB(), cv=3))


@pytest.fixture
def data(rng):
    """Return 300 items of four classes, which differ in their first feature."""
    y = rng.choice([1, 2, 3, 4], 300, p=[0.1, 0.2, 0.3, 0.4])
    X = rng.normal(size=(300, 2))
    X[:, 0] += y
    return X, y


def test_score_is_minus_the_mean_nmd_over_uniform_samples(data):
    X, y = data
    q = build(oq.PACC).fit(X, y)
    samples, truth = drawn_samples(y - 1, 4, None)
    assert len(samples) == 100
    assert_allclose(q.score(X, y), -oq.metrics.nmd(truth, q.predict_samples(X, samples)).mean())
    assert q.score(X, y) == q.score(X, y)
    # Uniform on the simplex: the mean is, within five standard errors.
    assert_allclose(truth.mean(axis=0), 0.25, atol=5 * 0.2 / 10)


def test_score_rewards_adjusting(data):
    X, y = data
    pcc, pacc = (build(method).fit(X, y).score(X, y) for method in (oq.PCC, oq.PACC))
    assert pacc > pcc


def test_score_of_items_of_some_classes(data):
    X, y = data
    q = build(oq.PACC).fit(X, y)
    some = y != 2
    assert -1 < q.score(X[some], y[some]) < 0
    with pytest.raises(ValueError, match="not in classes"):
        q.score(X, y + 1)
    with pytest.raises(ValueError, match="one label per item, 300, got 299"):
        q.score(X, y[1:])


def test_score_with_weights(data, rng):
    X, y = data
    q = build(oq.PACC).fit(X, y)
    w = rng.lognormal(size=300)
    assert_allclose(q.score(X, y, sample_weight=np.full(300, 2.0)), q.score(X, y))
    w[::3] = 0
    assert_allclose(q.score(X, y, sample_weight=w), q.score(X[w > 0], y[w > 0], sample_weight=w[w > 0]))


@pytest.mark.parametrize("name", METHODS)
def test_cross_val_score_of_every_method(name, data):
    X, y = data
    found = cross_val_score(build(METHODS[name]), X, y, cv=StratifiedKFold(2), error_score="raise")
    assert ((found > -0.5) & (found < 0)).all()


def test_grid_search_finds_the_better_value(data):
    X, y = data
    X = y[:, None] + 0.3 * (X - y[:, None])  # with items that tell their classes, a straight line is far from the best
    search = GridSearchCV(build(oq.OPACC), {"tau": [1e-3, 1e3]}, cv=StratifiedKFold(3), error_score="raise").fit(X, y)
    assert search.best_params_ == {"tau": 1e-3}
    assert search.predict(X).shape == (4,)
    nested = {"classifier__estimator__C": [1e-6, 1.0]}
    # Not PACC, which makes up for scores that are all nearly the same.
    search = GridSearchCV(oq.PCC(oq.classifiers.CrossFitted(LogisticRegression(), cv=3)), nested, cv=3).fit(X, y)
    assert search.best_params_ == {"classifier__estimator__C": 1.0}


def test_metadata_is_routed(data, rng):
    X, y = data
    groups, w = np.arange(300) % 30, rng.lognormal(size=300)
    with config_context(enable_metadata_routing=True):
        q = build(oq.PACC).set_fit_request(groups=True, sample_weight=True).set_score_request(sample_weight=True)
        found = cross_val_score(q, X, y, cv=GroupKFold(3), params={"groups": groups, "sample_weight": w})
        search = GridSearchCV(q, {"classifier__cv": [3]}, cv=GroupKFold(3)).fit(X, y, groups=groups, sample_weight=w)
        scaler = StandardScaler().set_fit_request(sample_weight=False)
        pipe = make_pipeline(scaler, q).fit(X, y, groups=groups, sample_weight=w)
    for part in (search.best_estimator_, pipe[-1]):
        assert learned_groups(part)
        assert_allclose(part.p_train_, np.bincount(y - 1, weights=w) / w.sum())
    by_hand = []
    for train, test in GroupKFold(3).split(X, y, groups):
        one = build(oq.PACC).fit(X[train], y[train], groups=groups[train], sample_weight=w[train])
        by_hand.append(one.score(X[test], y[test], sample_weight=w[test]))
    assert_allclose(found, by_hand)


def test_pipelines_copies_and_frames(data):
    X, y = data
    frame = pd.DataFrame(X, columns=["a", "b"])
    pipe = make_pipeline(StandardScaler(), build(oq.PACC)).set_output(transform="pandas").fit(frame, y)
    assert pipe[-1].feature_names_in_.tolist() == ["a", "b"]
    assert_allclose(clone(pipe).fit(frame, y).predict(frame), pipe.predict(frame))
    assert pipe.score(frame, y) == pytest.approx(pipe[-1].score(pipe[0].transform(frame), y))


def test_methods_share_the_scores_of_one_classifier(data):
    X, y = data
    scored = oq.classifiers.CrossFitted(GaussianNB(), cv=3).fit(X, y)
    for method in (oq.CC, oq.PACC, oq.SLD, oq.GroupBLP, oq.AdjustedML):
        q, alone = method().fit_on(scored, y), build(method).fit(X, y)
        assert q.classifier_ is scored
        assert q.n_features_in_ == 2
        assert_allclose(q.predict(X[:100]), alone.predict(X[:100]), atol=1e-12)
        assert q.predict_interval(X[:100], options=oq.inference.IntervalOptions(n_replicates=20)).bounds is not None
    # The classifier of a quantifier, which knows codes, serves others.
    shared = oq.PACC().fit_on(build(oq.CC).fit(X, y).classifier_, y)
    assert_allclose(shared.predict(X), build(oq.PACC).fit(X, y).predict(X))


def test_shared_scores_with_groups_weights_and_other_orders(data, rng):
    X, y = data
    groups, w = np.arange(300) % 30, rng.lognormal(size=300)
    scored = oq.classifiers.CrossFitted(GaussianNB(), cv=3).fit(X, y, groups=groups, sample_weight=w / w.mean())
    q = oq.PACC().fit_on(scored, y, groups=groups, sample_weight=w)
    assert_allclose(q.M_, build(oq.PACC).fit(X, y, groups=groups, sample_weight=w).M_)
    words, order = np.array(["bad", "awful", "fine", "good"])[[1, 0, 2, 3]], ["awful", "bad", "fine", "good"]
    labels = np.array(order)[y - 1]
    assert words.tolist() == order
    scored = oq.classifiers.CrossFitted(GaussianNB(), cv=3).fit(X, np.array(["w4", "w1", "w3", "w2"])[y - 1])
    q = oq.PACC().fit_on(scored, np.array(["w4", "w1", "w3", "w2"])[y - 1], classes=["w4", "w1", "w3", "w2"])
    plain = build(oq.PACC).fit(X, labels, classes=order)
    assert_allclose(q.predict(X[:80]), plain.predict(X[:80]))
    assert_allclose(q.M_, plain.M_)


def test_wrong_classifiers_are_not_shared(data):
    X, y = data
    with pytest.raises(TypeError, match="must be fitted and have held-out scores"):
        oq.PACC().fit_on(GaussianNB().fit(X, y), y)
    scored = oq.classifiers.CrossFitted(GaussianNB(), cv=3).fit(X, y)
    with pytest.raises(TypeError, match="works on features"):
        oq.HDx().fit_on(scored, y)
    with pytest.raises(ValueError, match="classes of the classifier"):
        oq.PACC().fit_on(scored, y * 10)
    with pytest.raises(ValueError, match="inconsistent numbers of samples"):
        oq.PACC().fit_on(scored, y[:200])


def test_a_search_with_groups(data, tmp_path):
    X, y = data
    groups = np.arange(300) % 30
    samples = oq.protocols.APP(20, 50, small_pool="replace", random_state=0).draw(y)
    search = oq.model_selection.SampleSearch(build(oq.OPACC), {"tau": [1e-3, 10.0]}, samples=samples).fit(
        X, y, X, groups=groups
    )
    assert learned_groups(search.fitted())
    best = build(oq.OPACC).set_params(tau=search.best()["tau"]).fit(X, y, groups=groups)
    assert_allclose(search.predict(X), best.predict(X))
    assert search.score(X, y) == best.score(X, y)
    oq.save_model(search, tmp_path / "best.oq")
    assert_allclose(oq.load_model(tmp_path / "best.oq").predict(X), best.predict(X))


def test_forests_score_out_of_bag_and_are_shared(data):
    X, y = data
    forest = RandomForestClassifier(60, oob_score=True, min_samples_leaf=3, random_state=0)
    q = oq.PACC(forest).fit(X, y)
    other = oq.SLD().fit_on(q.classifier_, y)
    assert_array_equal(other.predict(X), oq.SLD(forest).fit(X, y).predict(X))


# Two classes.

SMOOTHING = {"RUN", "OACC", "OPACC", "OHDx", "OHDy", "OEDy", "OPDF"}


@pytest.mark.parametrize("name", METHODS)
def test_two_classes_through_every_method(name, data):
    X, y = data
    y = (y > 2).astype(int)
    if name in SMOOTHING:
        with pytest.warns(UserWarning, match="a penalty of order 1 has no effect"):
            q = build(METHODS[name]).fit(X, y)
        plain = {"RUN": oq.RUN(oq.classifiers.CrossFitted(GaussianNB(), cv=3), order=0, tau=0.0)}.get(name)
        plain = build(METHODS[name[1:]]) if plain is None else plain
        if name != "OPDF":  # which has another loss than PDF
            assert_allclose(q.predict(X), plain.fit(X, y).predict(X), atol=1e-6)
    else:
        q = build(METHODS[name]).fit(X, y)
    assert q.classes_.tolist() == [0, 1]
    ones = q.predict(X[y == 1])
    assert ones[1] > 0.75
    found = q.predict_groups(X, np.arange(300) % 3, level=0.9, options=oq.inference.IntervalOptions(n_replicates=20))
    assert found.prevalences.shape == (3, 2)
    assert (found.lower <= found.prevalences).all()
    assert "items" in str(q.diagnose(X))
    assert -0.5 < q.score(X, y) <= 0


def test_penalties_of_order_zero_act_on_two_classes(data):
    X, y = data
    y = (y > 2).astype(int)
    weak, strong = (
        oq.OPACC(oq.classifiers.CrossFitted(GaussianNB(), cv=3), order=0, tau=tau).fit(X, y) for tau in (1e-6, 1e6)
    )
    assert_allclose(strong.predict(X[y == 1]), 0.5, atol=1e-3)
    assert weak.predict(X[y == 1])[1] > 0.9
    with pytest.raises(ValueError, match="order must be at most n - 2 = 0 for 2 classes, got 2"):
        oq.OPACC(order=2).fit(X, y)


def test_measures_protocols_and_tau_of_two_classes(data):
    X, y = data
    y = (y > 2).astype(int)
    assert_allclose(oq.metrics.nmd([[0.25, 0.75]], [[0.5, 0.5]]), 0.25)
    assert oq.simplex.jaggedness([0.25, 0.75]) == 0
    samples = oq.protocols.APP(50, 30, small_pool="replace", random_state=0).draw(y)
    assert samples.prevalences.shape == (50, 2)
    with pytest.warns(UserWarning, match="a penalty of order 1 has no effect"):
        q = oq.OPACC(oq.classifiers.CrossFitted(GaussianNB(), cv=3), tau="auto").fit(X, y)
    assert_allclose(q.predict(X), build(oq.PACC).fit(X, y).predict(X), atol=1e-9)


# Losses by their values.


class Squares(oq.losses.NumericalLoss):
    """Least squares, by its value."""

    def value(self, P, data):
        return ((data.Q - data.expected(P)) ** 2).sum(axis=1)


class Likelihood(oq.losses.NumericalLoss):
    """The Poisson likelihood, by its value and its gradient."""

    needs_sizes = True

    def value(self, P, data):
        V = np.maximum(data.expected(P), 1e-100)
        return data.sizes * (V - data.Q * np.log(V)).sum(axis=1)

    def gradient(self, P, data):
        V = np.maximum(data.expected(P), 1e-100)
        return data.sizes[:, None] * (1 - data.Q / V) @ data.M

    def scale(self, sizes):
        return sizes


@pytest.mark.parametrize(("own", "known"), [(Squares, losses.LeastSquares), (Likelihood, losses.Poisson)])
def test_a_loss_by_its_value_has_the_derivatives_and_the_minimum(own, known, rng):
    M = rng.dirichlet(np.ones(6), 4).T
    data = Data(rng.dirichlet(np.ones(6), 20), M, np.full(20, 100.0))
    P = rng.dirichlet(np.full(4, 0.5), 20)
    P[0], P[1] = [1, 0, 0, 0], [0, 0.5, 0.5, 0]
    one, other = own().derivatives(P, data), known().derivatives(P, data)
    unit = np.abs(other.hessian).max()
    assert_allclose(one.gradient, other.gradient, atol=1e-6 * unit)
    # It only sets the length of a step.
    assert_allclose(one.hessian, other.hessian, atol=1e-2 * unit)
    found, expected = (
        oq.solve(data.Q, M, oq.ComposedQuantifier(HardVotes(), loss, Tikhonov(1e-3)), N=100)
        for loss in (own(), known())
    )
    assert_allclose(found, expected, atol=1e-5)


def test_names_that_are_documented_are_there():
    assert_allclose(oq.metrics.errors([[0.5, 0.0, 0.5]], [[0.5, 0.5, 0.0]], "nmd"), 0.25)
    assert 0 <= oq.metrics.wilcoxon([0.1, 0.2, 0.3], [0.2, 0.3, 0.4]) <= 1
    assert oq.losses.LeastSquares is losses.LeastSquares
    assert oq.regularizers.Tikhonov is Tikhonov
    assert len(oq.datasets.published.amazon_categories()) == 28
    S = np.eye(3) * 0.7 + 0.1
    assert isinstance(oq.PACC().fit_scores(S, [1, 2, 3]).solve_scores(S, [[0, 1]]), oq.solvers.Solution)
    assert oq.simplex.Derivatives._fields == ("value", "gradient", "hessian")
