"""Scores from regression: the ordered probit, OrdinalProbit and OrdinalStack."""

import contextlib
from unittest import SkipTest

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.sparse import csr_array
from scipy.stats import norm
from sklearn.base import clone
from sklearn.ensemble import RandomForestClassifier
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LinearRegression, LogisticRegression, Ridge
from sklearn.model_selection import GroupKFold, StratifiedKFold
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KNeighborsClassifier, KNeighborsRegressor
from sklearn.svm import LinearSVC
from sklearn.tree import DecisionTreeRegressor
from sklearn.utils.estimator_checks import estimator_checks_generator
from threadpoolctl import threadpool_info, threadpool_limits

import ordinalq as oq
from ordinalq.classifiers.stacking import (
    OrderedProbit,
    OrdinalProbit,
    OrdinalStack,
    balanced_loss,
    balanced_weights,
    log_mass,
    probit_loss,
)

CUTS = (-1.5, -0.5, 0.5, 1.5)


def items(rng, n_items=600, noise=0.7):
    """Return features (N, 4) and classes 0..4 of a line through them."""
    X = rng.normal(size=(n_items, 4))
    return X, np.digitize(X[:, 0] + 0.5 * X[:, 1] + noise * rng.normal(size=n_items), CUTS)


def differences(f, x, step=1e-4):
    """Return central differences of f at x (m,)."""
    return np.array([(f(x + h) - f(x - h)) / (2 * step) for h in step * np.eye(len(x))])


def log_loss(P, y):
    return -np.log(P[np.arange(len(y)), y]).mean()


# The ordered probit.


def test_mass_between_two_bounds_keeps_its_digits_in_both_tails():
    low = np.array([-np.inf, -1.0, 0.5, 8.0, 30.0, -31.0, 2.0])
    high = np.array([0.3, 1.0, np.inf, 8.1, 31.0, -30.0, np.inf])
    expected = norm.cdf(high) - norm.cdf(low)
    upper = low > 1
    expected[upper] = norm.sf(low[upper]) - norm.sf(high[upper])
    assert_allclose(np.exp(log_mass(low, high)), expected, rtol=1e-9)
    assert log_mass(np.array([40.0]), np.array([41.0]))[0] == pytest.approx(norm.logsf(40.0))


def test_gradient_of_the_probit_is_that_of_differences(rng):
    n, Z, H = 5, rng.normal(size=(80, 2)), rng.normal(size=(80, 3))
    codes = rng.integers(n, size=80)
    for scale in (0.3, 1.0, 3.0):
        x = scale * rng.normal(size=n - 1 + 2 + 3)
        _, slope = probit_loss(x, Z, H, codes, n)
        expected = differences(lambda at: probit_loss(at, Z, H, codes, n)[0], x)
        assert_allclose(slope, expected, rtol=1e-5, atol=1e-5 * np.abs(expected).max())


@pytest.mark.parametrize("size", [1e3, 1e8, 1e10, 1e100])
def test_steps_of_the_line_search_that_go_far_out_have_a_finite_slope(size, rng):
    Z, H, codes = rng.normal(size=(200, 1)), rng.normal(size=(200, 2)), rng.integers(4, size=200)
    loss, slope = probit_loss(np.array([0, np.log(size), np.log(size), size, 0, 0]), Z, H, codes, 4)
    assert np.isfinite(loss)
    assert np.isfinite(slope).all()


def test_probit_finds_the_distribution_that_items_are_drawn_from(rng):
    """Predictions with a bias and noise that grows: posteriors are those of Bayes' theorem."""
    g = rng.uniform(-1, 5, size=20_000)
    sd = np.exp(0.2 * (g - 2))
    thresholds = np.array([0.5, 1.5, 2.5, 3.5])
    codes = np.digitize(g + sd * rng.normal(size=len(g)), thresholds)
    probit = OrderedProbit().fit(g[:, None], None, codes)
    bounds = norm.cdf((np.array([-np.inf, *thresholds, np.inf]) - g[:, None]) / sd[:, None])
    assert np.abs(np.exp(probit.log_posteriors(g[:, None], None)) - np.diff(bounds, axis=1)).max() < 0.05


def test_expected_deviations_set_the_spread(rng):
    g, v = rng.uniform(0, 4, size=8000), rng.choice([0.2, 1.0], size=8000)
    codes = np.clip(np.rint(g + 1.25 * v * rng.normal(size=8000)), 0, 4).astype(int)
    probit = OrderedProbit().fit(g[:, None], v, codes)
    same = np.full((2, 1), 2.0)
    sure, unsure = np.exp(probit.log_posteriors(same, np.array([0.2, 1.0])))
    assert sure[2] > 0.9 > 0.5 > unsure[2]


def test_predictions_that_repeat_each_other_do_no_harm(rng):
    g = rng.normal(size=(500, 1))
    codes = np.digitize(g[:, 0] + rng.normal(size=500), [-1, 0, 1])
    one, three = OrderedProbit().fit(g, None, codes), OrderedProbit().fit(np.repeat(g, 3, axis=1), None, codes)
    assert_allclose(
        three.log_posteriors(np.repeat(g, 3, axis=1), None), one.log_posteriors(g, None), rtol=1e-3, atol=1e-3
    )


def test_perfect_and_constant_predictions_leave_finite_posteriors(rng):
    codes = np.repeat(np.arange(4), 50)
    for G in (codes[:, None].astype(float), np.zeros((200, 1))):
        probit = OrderedProbit().fit(G, None, codes)
        P = np.exp(probit.log_posteriors(G, None))
        assert np.isfinite(P).all()
        assert_allclose(P.sum(axis=1), 1)
    assert_allclose(P, 0.25, atol=1e-3)


# The classifier made of regressors.


def test_held_out_scores_are_those_of_a_loop_over_the_folds(rng):
    X, y = items(rng)
    model = OrdinalProbit([LinearRegression()], random_state=3).fit(X, y)
    g, v = np.empty((2, len(y)))
    for train, test in StratifiedKFold(5, shuffle=True, random_state=3).split(X, y):
        of_index = LinearRegression().fit(X[train], y[train])
        g[test] = of_index.predict(X[test])
        v[test] = LinearRegression().fit(X[train], np.abs(y[train] - of_index.predict(X[train]))).predict(X[test])
    expected = np.exp(OrderedProbit().fit(g[:, None], v, y).log_posteriors(g[:, None], v))
    assert_allclose(model.held_out_scores_, expected, atol=1e-9)


def test_no_part_of_a_held_out_score_has_seen_the_item(rng):
    X, y = items(rng, 400)
    folds = list(StratifiedKFold(5, shuffle=True, random_state=0).split(X, y))
    changed = y.copy()
    changed[folds[0][1]] = rng.permutation(y[folds[0][1]])
    models = [
        OrdinalProbit([DecisionTreeRegressor(max_depth=3, random_state=0)], cv=folds).fit(X, one)
        for one in (y, changed)
    ]
    part = X[folds[0][1]]
    first, second = ([tree.predict(part) for tree in model.estimators_[0]] for model in models)
    assert_array_equal(first, second)


def test_posteriors_are_distributions_and_as_good_for_new_items(rng):
    X, y = items(rng, 3000)
    X_new, y_new = items(rng, 3000)
    model = OrdinalProbit([LinearRegression()]).fit(X, y)
    P = model.predict_proba(X_new)
    assert_allclose(P.sum(axis=1), 1)
    assert log_loss(P, y_new) == pytest.approx(log_loss(model.held_out_scores_, y), rel=0.1)
    assert log_loss(P, y_new) < log_loss(LogisticRegression().fit(X, y).predict_proba(X_new), y_new) * 1.05


@pytest.mark.parametrize("convert", [np.asarray, csr_array], ids=["dense", "sparse"])
def test_dense_and_sparse_items_need_no_regressor_named(rng, convert):
    X, y = items(rng, 300)
    model = OrdinalProbit().fit(convert(X), y)
    assert model.predict_proba(convert(X)).shape == (300, 5)
    assert isinstance(model.estimators_[0][0], Ridge) == (convert is csr_array)


def test_missing_values_pass_if_the_regressor_accepts_them(rng):
    X, y = items(rng, 300)
    X[rng.random(X.shape) < 0.2] = np.nan
    q = oq.PACC(OrdinalProbit()).fit(X, y)
    assert np.isfinite(q.predict(X)).all()
    with pytest.raises(ValueError, match="NaN"):
        OrdinalProbit([Ridge()]).fit(X, y)


def test_a_class_of_five_items_gets_posteriors(rng):
    X, y = items(rng, 2000, noise=0.2)
    rare = np.flatnonzero(y == 4)[5:]
    X, y = np.delete(X, rare, axis=0), np.delete(y, rare)
    for model in (OrdinalProbit([Ridge()]), OrdinalStack([Ridge(), LogisticRegression()])):
        S = model.fit(X, y).held_out_scores_
        assert np.isfinite(S).all()
        # Rare, but told from the others: its items have a share far above its frequency.
        assert S[y == 4, 4].mean() > 3 * S[y < 4, 4].mean()


def test_labels_may_be_any_that_sort(rng):
    X, y = items(rng, 300)
    names = np.array(["a", "b", "c", "d", "e"])
    model = OrdinalProbit([Ridge()]).fit(X, names[y])
    assert_array_equal(model.classes_, names)
    assert_array_equal(model.predict(X), names[OrdinalProbit([Ridge()]).fit(X, y).predict(X)])


def test_two_classes_and_a_single_one(rng):
    X, y = items(rng, 300)
    P = OrdinalProbit([Ridge()]).fit(X, y > 2).predict_proba(X)
    assert P.shape == (300, 2)
    with pytest.raises(ValueError, match="2 classes"):
        OrdinalProbit([Ridge()]).fit(X, np.zeros(300))


def test_groups_stay_together(rng):
    """A regressor that remembers groups would otherwise look perfect."""
    groups = np.repeat(np.arange(60), 10)
    y = rng.integers(5, size=60)[groups]
    X = groups[:, None] + 0.01 * rng.normal(size=(600, 1))
    near = KNeighborsRegressor(3)
    model = OrdinalProbit([near], spread=LinearRegression())
    apart, together = clone(model).fit(X, y), clone(model).fit(X, y, groups=groups)
    assert log_loss(apart.held_out_scores_, y) < 0.1 < 1.3 < log_loss(together.held_out_scores_, y)


# The stack.


def test_gradient_of_the_balanced_likelihood_is_that_of_differences(rng):
    L = np.log(rng.dirichlet(np.ones(4), size=(2, 50)))
    codes = rng.integers(4, size=50)
    x, weight, centre = rng.normal(size=6), rng.random(4), rng.normal(size=4)
    _, slope = balanced_loss(x, L, codes, weight, centre)
    assert_allclose(
        slope, differences(lambda at: balanced_loss(at, L, codes, weight, centre)[0], x), rtol=1e-5, atol=1e-7
    )


def test_calibrated_posteriors_are_left_as_they_are(rng):
    """Labels drawn from the posteriors: w = 1 and c = -ln p."""
    prior = np.array([0.5, 0.3, 0.15, 0.05])
    S = rng.dirichlet(4 * prior, size=40_000)
    codes = (S.cumsum(axis=1) < rng.random((40_000, 1))).sum(axis=1)
    w, c = balanced_weights(np.log(S)[None], codes, np.log(prior))
    assert_allclose(w, 1, atol=0.05)
    shift = c + np.log(prior)
    assert_allclose(shift - shift.mean(), 0, atol=0.15)


def test_stack_is_as_good_as_its_best_member_on_new_items(rng):
    X, y = items(rng, 2000)
    X_new, y_new = items(rng, 2000)
    stack = OrdinalStack([LinearRegression(), KNeighborsClassifier(5)]).fit(X, y)
    member, stacked = stack.members_[0].predict_proba(X_new), stack.predict_proba(X_new)
    assert log_loss(stacked, y_new) < 1.02 * log_loss(member, y_new)
    assert stack.weights_[0] > 4 * stack.weights_[1]


def test_every_method_takes_a_stack_without_fitting_it_in_folds_again(rng):
    X, y = items(rng)
    stack = OrdinalStack([LinearRegression(), LogisticRegression()])
    for method in (oq.PACC, oq.OEDy, oq.SLD, oq.CC, oq.RUN):
        q = method(stack).fit(X, y)
        assert isinstance(q.classifier_, OrdinalStack)
        assert q.classifier_ is not stack
        if method is oq.CC:
            assert_allclose(q.predict(X), np.bincount(q.classifier_.predict(X), minlength=5) / len(y))
        else:
            # The largest of 1200 deviations, five classes at sixty seeds, was 0.053, as of normal ones of 0.017: 0.1 is
            # beyond 5.8 of these, less than one run in a million.
            assert_allclose(q.predict(X), np.bincount(y) / len(y), atol=0.1)


def test_groups_of_a_quantifier_reach_all_members(rng):
    X, y = items(rng)
    groups = rng.integers(12, size=len(y))
    stack = OrdinalStack([LinearRegression(), LogisticRegression()], cv=4)
    q = oq.PACC(stack).fit(X, y, groups=groups)
    _, codes = np.unique(groups, return_inverse=True)
    (train, test), *_ = GroupKFold(4).split(X, y, codes)
    expected = LogisticRegression().fit(X[train], y[train]).predict_proba(X[test])
    assert_allclose(q.classifier_.members_[1].held_out_scores_[test], expected, atol=1e-6)


def test_forests_are_scored_out_of_bag_and_without_members_named_by_folds_of_groups(rng):
    X, y = items(rng, 300)
    forest = RandomForestClassifier(30, oob_score=True, random_state=0)
    stack = OrdinalStack([LinearRegression(), forest]).fit(X, y)
    assert type(stack.members_[1]).__name__ == "OutOfBag"
    with pytest.raises(ValueError, match="out-of-bag"):
        OrdinalStack([LinearRegression(), forest]).fit(X, y, groups=np.arange(300) // 10)
    default = OrdinalStack().fit(X, y, groups=np.arange(300) // 10)
    assert np.isfinite(default.held_out_scores_).all()


def test_posteriors_keep_the_training_distribution(rng):
    X, y = items(rng, 3000)
    S = OrdinalStack([LinearRegression(), LogisticRegression()]).fit(X, y).held_out_scores_
    assert_allclose(S.sum(axis=1), 1)
    assert_allclose(S.mean(axis=0), np.bincount(y) / len(y), atol=0.03)


def test_equal_seeds_give_equal_scores_and_clones_keep_their_members(rng):
    X, y = items(rng, 300)
    stack = OrdinalStack(random_state=5)
    assert_array_equal(stack.fit(X, y).predict_proba(X), clone(stack).fit(X, y).predict_proba(X))
    named = OrdinalStack([Ridge(alpha=2.0)], cv=3)
    assert clone(named).get_params()["members"][0].alpha == 2.0


class ThreadCounter(GaussianNB):
    """A classifier that stores how many threads the libraries may use during its fit."""

    def fit(self, X, y, sample_weight=None):
        self.n_threads_ = {each["num_threads"] for each in threadpool_info()}
        return super().fit(X, y, sample_weight)


def test_small_fits_use_one_thread_and_leave_the_limit_of_the_caller(rng):
    X, y = items(rng, 200)
    with threadpool_limits(2):
        stack = OrdinalStack([ThreadCounter()], cv=2).fit(X, y)
        assert {each["num_threads"] for each in threadpool_info()} == {2}
    assert all(model.n_threads_ == {1} for model in stack.members_[0].estimators_)


def test_mistakes_are_named(rng):
    X, y = items(rng, 200)
    with pytest.raises(ValueError, match="members must hold"):
        OrdinalStack([]).fit(X, y)
    with pytest.raises(TypeError, match="predict_proba"):
        OrdinalStack([LinearSVC()]).fit(X, y)
    with pytest.raises(TypeError, match="classifier"):
        OrdinalStack(["forest"]).fit(X, y)
    with pytest.raises(NotFittedError):
        OrdinalStack().predict_proba(X)


@pytest.mark.filterwarnings("ignore")  # the checks fit unusual data
@pytest.mark.parametrize(
    "estimator",
    [OrdinalProbit([LinearRegression()], cv=2), OrdinalStack([LinearRegression(), GaussianNB()], cv=2)],
    ids=["OrdinalProbit", "OrdinalStack"],
)
def test_checks_of_scikit_learn(estimator):
    for one, check in estimator_checks_generator(estimator):
        with contextlib.suppress(SkipTest):
            check(one)
