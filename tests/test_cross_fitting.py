"""Held-out scores: by models that have not seen the item, in the order of our classes."""

import warnings

import numpy as np
import pytest
import sklearn
from joblib import parallel_config
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.calibration import CalibratedClassifierCV
from sklearn.ensemble import BaggingClassifier, ExtraTreesClassifier, RandomForestClassifier
from sklearn.exceptions import NotFittedError
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression, RidgeClassifier
from sklearn.model_selection import KFold, PredefinedSplit, ShuffleSplit, StratifiedKFold
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import LinearSVC

import ordinalq as oq
from ordinalq.classifiers.cross_fitting import AlreadyFitted, InSample, OutOfBag, class_scores, held_out

# Since 1.9, class_weight="balanced" weights the bootstrap draw of forests.
WEIGHTED_BOOTSTRAP = tuple(int(part) for part in sklearn.__version__.split(".")[:2]) >= (1, 9)

VOTERS = [LinearSVC(), RidgeClassifier(), make_pipeline(StandardScaler(), LinearSVC())]
METHODS = {entry.name: entry.cls for entry in oq.catalog(beyond=False)}
VOTE_METHODS = [METHODS[name] for name in METHODS if name in ("CC", "ACC", "OACC", "RUN", "IBU")]
POSTERIOR_METHODS = [
    METHODS[name]
    for name in METHODS
    if name in ("PCC", "PACC", "HDy", "SLD", "EDy", "PDF", "OPACC", "OHDy", "OSLD", "OEDy", "OPDF")
]


def friedman(rng, n_items, edges=(9.0, 13.0, 16.0, 19.0)):
    """Return features (N, 6) and classes 0..len(edges) of Friedman's function, which uses five of the features."""
    X = rng.random((n_items, 6))
    target = 10 * np.sin(np.pi * X[:, 0] * X[:, 1]) + 20 * (X[:, 2] - 0.5) ** 2 + 10 * X[:, 3] + 5 * X[:, 4]
    return X, np.digitize(target + rng.normal(size=n_items), edges)


@pytest.fixture
def data(rng):
    return friedman(rng, 300)


class Memory(ClassifierMixin, BaseEstimator):
    """Is certain of the items that it has seen, and says the first class for all others; counts its fits."""

    def fit(self, X, y):
        self.classes_ = np.unique(y)
        self.seen_ = {tuple(x): label for x, label in zip(X, y, strict=True)}
        return self

    def knows(self, X):
        return np.array([tuple(x) in self.seen_ for x in X])

    def predict_proba(self, X):
        labels = [self.seen_.get(tuple(x), self.classes_[0]) for x in X]
        return np.eye(len(self.classes_))[np.searchsorted(self.classes_, labels)]


# CrossFitted


def test_no_item_is_scored_by_a_model_that_has_seen_it(data):
    X, y = data
    fitted = oq.classifiers.CrossFitted(Memory(), cv=5).fit(X, y)
    # A model that had seen an item would give its class; one that has not, gives class 0.
    assert_array_equal(fitted.held_out_scores_, np.eye(5)[np.zeros(len(y), dtype=int)])
    assert (InSample(Memory()).fit(X, y).held_out_scores_.argmax(axis=1) == y).all()


def test_held_out_accuracy_of_one_neighbour_is_not_perfect(data):
    X, y = data
    neighbour = KNeighborsClassifier(1)
    in_sample = InSample(neighbour).fit(X, y).held_out_scores_.argmax(axis=1)
    assert (in_sample == y).all()
    assert (oq.classifiers.CrossFitted(neighbour).fit(X, y).held_out_scores_.argmax(axis=1) == y).mean() < 0.7


def test_every_item_is_held_out_by_exactly_one_model(data):
    X, y = data
    fitted = oq.classifiers.CrossFitted(Memory(), cv=7).fit(X, y)
    left_out = np.array([~model.knows(X) for model in fitted.estimators_])
    assert_array_equal(left_out.sum(axis=0), 1)
    assert np.isfinite(fitted.held_out_scores_).all()


def test_folds_are_stratified(data):
    X, y = data
    fitted = oq.classifiers.CrossFitted(Memory(), cv=5).fit(X, y)
    counts = np.array([np.bincount(y[~model.knows(X)], minlength=5) for model in fitted.estimators_])
    assert (np.ptp(counts, axis=0) <= 1).all()


def test_held_out_scores_equal_a_loop_over_the_folds(data):
    X, y = data
    folds = StratifiedKFold(4, shuffle=True, random_state=3)
    expected = np.empty((len(y), 5))
    for train, test in folds.split(X, y):
        expected[test] = GaussianNB().fit(X[train], y[train]).predict_proba(X[test])
    assert_array_equal(
        oq.classifiers.CrossFitted(GaussianNB(), cv=4, random_state=3).fit(X, y).held_out_scores_, expected
    )


def test_new_items_get_the_mean_of_the_fold_models(data, rng):
    X, y = data
    new = rng.random((50, 6))
    fitted = oq.classifiers.CrossFitted(GaussianNB(), cv=4).fit(X, y)
    assert len(fitted.estimators_) == 4
    naive = np.zeros((50, 5))
    for train, _ in StratifiedKFold(4, shuffle=True, random_state=0).split(X, y):
        naive += GaussianNB().fit(X[train], y[train]).predict_proba(new) / 4
    assert_allclose(fitted.predict_proba(new), naive, rtol=0, atol=1e-14)
    assert_array_equal(fitted.predict(new), naive.argmax(axis=1))


def test_refit_scores_new_items_by_one_model_of_all_items(data, rng):
    X, y = data
    new = rng.random((50, 6))
    refitted = oq.classifiers.CrossFitted(GaussianNB(), cv=4, refit=True).fit(X, y)
    assert len(refitted.estimators_) == 1
    assert_array_equal(refitted.predict_proba(new), GaussianNB().fit(X, y).predict_proba(new))
    folds = oq.classifiers.CrossFitted(GaussianNB(), cv=4).fit(X, y)
    assert_array_equal(refitted.held_out_scores_, folds.held_out_scores_)
    assert np.abs(refitted.predict_proba(new) - folds.predict_proba(new)).max() > 1e-6


def test_a_class_unknown_to_a_fold_model_gets_score_zero(data):
    X, y = data
    y = np.where(y >= 2, y + 1, y)
    y[7] = 2  # the only item of a class in the middle: the model that holds it out cannot know the class
    fitted = oq.classifiers.CrossFitted(GaussianNB(), cv=3).fit(X, y)
    (ignorant,) = [model for model in fitted.estimators_ if 2 not in model.classes_]
    assert fitted.held_out_scores_.shape == (300, 6)
    assert fitted.held_out_scores_[7, 2] == 0
    assert_allclose(fitted.held_out_scores_.sum(axis=1), 1)
    S = class_scores(ignorant, X, fitted.classes_)
    assert_array_equal(S[:, 2], 0)
    assert_array_equal(S[:, [0, 1, 3, 4, 5]], ignorant.predict_proba(X))


def test_small_classes_give_no_warning_and_the_largest_class_bounds_the_folds():
    X = np.arange(14.0).reshape(7, 2)
    y = np.array([0, 0, 0, 0, 1, 1, 2])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert len(oq.classifiers.CrossFitted(GaussianNB(), cv=10).fit(X, y).estimators_) == 4


@pytest.mark.parametrize("method", [oq.PACC, oq.CC], ids=lambda c: c.__name__)
def test_n_jobs_changes_nothing(method, data):
    X, y = data
    one = method(oq.classifiers.CrossFitted(GaussianNB(), cv=4)).fit(X, y)
    with parallel_config(backend="threading"):
        two = method(oq.classifiers.CrossFitted(GaussianNB(), cv=4, n_jobs=2)).fit(X, y)
    assert_array_equal(one.classifier_.held_out_scores_, two.classifier_.held_out_scores_)
    assert_array_equal(one.predict(X), two.predict(X))


def test_random_state_shuffles_the_folds(data):
    X, y = data

    def scores(seed):
        return oq.classifiers.CrossFitted(GaussianNB(), cv=4, random_state=seed).fit(X, y).held_out_scores_

    assert_array_equal(scores(0), oq.classifiers.CrossFitted(GaussianNB(), cv=4).fit(X, y).held_out_scores_)
    assert_array_equal(scores(5), scores(5))
    assert np.abs(scores(0) - scores(5)).max() > 1e-6


def test_splitters_and_lists_of_splits_serve_as_cv(data):
    X, y = data
    thirds = np.arange(300) % 3
    splitters = [
        PredefinedSplit(thirds),
        [(np.flatnonzero(thirds != k), np.flatnonzero(thirds == k)) for k in range(3)],
    ]
    expected = np.empty((300, 5))
    for k in range(3):
        expected[thirds == k] = GaussianNB().fit(X[thirds != k], y[thirds != k]).predict_proba(X[thirds == k])
    for cv in splitters:
        assert_array_equal(oq.classifiers.CrossFitted(GaussianNB(), cv=cv).fit(X, y).held_out_scores_, expected)
    assert len(oq.classifiers.CrossFitted(GaussianNB(), cv=KFold(6)).fit(X, y).estimators_) == 6


def test_a_splitter_that_does_not_hold_out_every_item_once_is_rejected(data):
    with pytest.raises(ValueError, match=r"cv must hold out every item exactly once"):
        oq.classifiers.CrossFitted(GaussianNB(), cv=ShuffleSplit(3, random_state=0)).fit(*data)


def test_none_stands_for_logistic_regression(data):
    X, y = data
    default = oq.classifiers.CrossFitted(cv=3).fit(X, y)
    assert_array_equal(
        default.held_out_scores_, oq.classifiers.CrossFitted(LogisticRegression(), cv=3).fit(X, y).held_out_scores_
    )
    assert default.estimator is None


@pytest.mark.parametrize("voter", VOTERS, ids=["svc", "ridge", "pipeline"])
def test_estimators_without_predict_proba_give_votes(voter, data):
    X, y = data
    fitted = oq.classifiers.CrossFitted(voter, cv=3).fit(X, y)
    assert not fitted.gives_posteriors_
    expected = np.zeros((300, 5))
    for train, test in StratifiedKFold(3, shuffle=True, random_state=0).split(X, y):
        expected[test, clone(voter).fit(X[train], y[train]).predict(X[test])] = 1
    assert_array_equal(fitted.held_out_scores_, expected)
    votes = np.mean([np.eye(5)[model.predict(X)] for model in fitted.estimators_], axis=0)
    assert_allclose(fitted.predict_proba(X), votes, atol=1e-15)


def test_parameters_of_the_estimator_can_be_set_and_cloned():
    fitted = oq.classifiers.CrossFitted(LogisticRegression(), cv=4)
    fitted.set_params(estimator__C=0.25, refit=True)
    assert fitted.get_params()["estimator__C"] == 0.25
    copy = clone(fitted)
    assert copy.estimator is not fitted.estimator
    assert copy.get_params()["estimator__C"] == 0.25
    assert (copy.cv, copy.refit) == (4, True)
    quantifier = oq.PACC(fitted).set_params(classifier__estimator__C=8.0)
    assert fitted.estimator.C == 8.0
    assert quantifier.get_params()["classifier__estimator__C"] == 8.0


def test_fit_leaves_the_given_estimator_alone(data):
    X, y = data
    forest = RandomForestClassifier(30, oob_score=True, random_state=0)
    for estimator in (GaussianNB(), forest):
        quantifier = oq.PACC(estimator).fit(X, y)
        assert quantifier.classifier is estimator
        assert not hasattr(estimator, "classes_")


def test_string_labels_of_the_classifier_itself_are_kept(data):
    X, y = data
    names = np.array(["e", "d", "c", "b", "a"])
    fitted = oq.classifiers.CrossFitted(GaussianNB(), cv=3).fit(X, names[y])
    assert fitted.classes_.tolist() == ["a", "b", "c", "d", "e"]
    coded = oq.classifiers.CrossFitted(GaussianNB(), cv=3).fit(X, 4 - y)
    assert_array_equal(fitted.held_out_scores_, coded.held_out_scores_)
    assert_array_equal(fitted.predict(X), fitted.classes_[coded.predict(X)])


# What becomes of the classifier that the caller gives


def test_held_out_method_depends_on_the_classifier():
    forest = RandomForestClassifier(oob_score=True)
    assert isinstance(held_out(None), oq.classifiers.CrossFitted)
    assert isinstance(held_out(GaussianNB()), oq.classifiers.CrossFitted)
    assert isinstance(held_out(RandomForestClassifier()), oq.classifiers.CrossFitted)
    assert isinstance(held_out(forest), OutOfBag)
    assert isinstance(held_out(make_pipeline(StandardScaler(), forest)), OutOfBag)
    assert isinstance(held_out(oq.classifiers.CrossFitted(forest)), oq.classifiers.CrossFitted)
    in_sample = InSample(GaussianNB())
    copy = held_out(in_sample)
    assert isinstance(copy, InSample)
    assert copy is not in_sample


# Out-of-bag scores


@pytest.mark.parametrize(
    "forest",
    [
        RandomForestClassifier(60, oob_score=True, random_state=3),
        ExtraTreesClassifier(60, bootstrap=True, oob_score=True, random_state=3),
        BaggingClassifier(GaussianNB(), 40, oob_score=True, random_state=3),
    ],
    ids=lambda f: type(f).__name__,
)
def test_out_of_bag_scores_are_those_of_the_forest(forest, data, rng):
    X, y = data
    fitted = held_out(forest).fit(X, y)
    alone = clone(forest).fit(X, y)
    assert_array_equal(fitted.held_out_scores_, alone.oob_decision_function_)
    new = rng.random((20, 6))
    assert_array_equal(fitted.predict_proba(new), alone.predict_proba(new))
    assert fitted.gives_posteriors_


@pytest.mark.parametrize(
    "forest",
    [
        RandomForestClassifier(60, oob_score=True, max_features=1, random_state=3),
        RandomForestClassifier(60, oob_score=True, max_features=1, max_samples=0.5, random_state=3),
        BaggingClassifier(n_estimators=60, oob_score=True, random_state=3),
    ],
    ids=["forest", "half bags", "bagging"],
)
def test_a_thinned_forest_scores_new_items_by_as_many_trees_as_those_held_out(forest, data, rng):
    X, y = data
    whole, thinned = OutOfBag(forest).fit(X, y), OutOfBag(forest, thinned=True).fit(X, y)
    assert_array_equal(thinned.held_out_scores_, whole.held_out_scores_)
    votes = [~np.isin(np.arange(len(y)), items) for items in whole.estimator_.estimators_samples_]
    trees = thinned.estimator_.estimators_
    assert abs(len(trees) - np.sum(votes, axis=0).mean()) <= 1
    new = rng.random((20, 6))
    assert_allclose(thinned.predict_proba(new), np.mean([tree.predict_proba(new) for tree in trees], axis=0))


def voteless_rows(forest, X, y):
    """Return which items every tree of the forest has drawn, read from the trees themselves."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        alone = clone(forest).fit(X, y)
    seen = [np.isin(np.arange(len(y)), items) for items in alone.estimators_samples_]
    return np.all(seen, axis=0)


@pytest.mark.parametrize("scaled", [False, True], ids=["forest", "pipeline"])
def test_items_without_a_vote_are_dropped_from_M_but_count_in_p_train(scaled, rng):
    X, y = friedman(rng, 500)
    forest = RandomForestClassifier(9, oob_score=True, random_state=1)
    voteless = voteless_rows(forest, X, y)
    assert 0 < voteless.sum() < 30
    classifier = make_pipeline(StandardScaler(with_mean=False, with_std=False), forest) if scaled else forest
    quantifier = oq.PACC(classifier).fit(X, y)
    S = quantifier.classifier_.held_out_scores_
    assert_array_equal(np.isnan(S).all(axis=1), voteless)
    assert_array_equal(np.isnan(S).any(axis=1), voteless)
    M = np.column_stack([S[~voteless & (y == i)].mean(axis=0) for i in range(5)])
    assert_allclose(quantifier.M_, M, rtol=0, atol=1e-14)
    assert_allclose(quantifier.p_train_, np.bincount(y) / 500, rtol=0, atol=1e-15)


@pytest.mark.parametrize("blank", [np.nan, 0.0])
def test_rows_without_a_score_are_recognized_as_nan_or_zero(blank, data, rng):
    _, y = data
    S = rng.dirichlet(np.ones(5), len(y))
    S[::10] = blank
    quantifier = oq.PACC().fit_scores(S, y)
    scored = np.arange(len(y)) % 10 > 0
    assert_allclose(quantifier.M_, oq.PACC().fit_scores(S[scored], y[scored]).M_, rtol=0, atol=1e-14)
    assert_allclose(quantifier.p_train_, np.bincount(y) / len(y))


@pytest.mark.skipif(not WEIGHTED_BOOTSTRAP, reason="the weights enter the bootstrap draw since scikit-learn 1.9")
@pytest.mark.parametrize("scaled", [False, True], ids=["forest", "pipeline"])
def test_balanced_forests_that_lose_rare_classes_are_rejected_with_the_remedy(scaled, rng):
    X, y = friedman(rng, 600, edges=(5.0, 9.0, 19.0, 23.0))
    forest = RandomForestClassifier(20, class_weight="balanced", oob_score=True, random_state=0)
    classifier = make_pipeline(StandardScaler(), forest) if scaled else forest
    with pytest.raises(
        ValueError, match=r"class number \d of 5 has no out-of-bag score for \d+% of its items.*more than 10%"
    ):
        oq.PACC(classifier).fit(X, y)
    with pytest.raises(ValueError, match="use class_weight='balanced_subsample' instead"):
        oq.PACC(classifier).fit(X, y)
    forest.set_params(class_weight="balanced_subsample")
    assert oq.PACC(classifier).fit(X, y).M_.shape == (5, 5)


def test_too_few_trees_are_rejected_too(data):
    with pytest.raises(ValueError, match=r"has no out-of-bag score for .* use more trees, or CrossFitted\(forest\)"):
        oq.PACC(RandomForestClassifier(2, oob_score=True, random_state=0)).fit(*data)


@pytest.mark.skipif(not WEIGHTED_BOOTSTRAP, reason="the weights enter the bootstrap draw since scikit-learn 1.9")
def test_balanced_draws_rare_items_into_every_bag_and_balanced_subsample_does_not(rng):
    n_trees = 40
    X, y = friedman(rng, 3000, (5.0, 12.0, 18.0, 23.0))  # the outer classes have about 3% of the items
    counts = np.bincount(y)
    # "balanced" gives each class a fifth of the N draws: an item is drawn N / (5 N_c) times on average, and has no vote
    # where every tree has drawn it; a uniform bootstrap draws it once on average.
    drawn = {"balanced": len(y) / (5 * counts), "balanced_subsample": np.ones(5)}
    for weight, mean in drawn.items():
        expected = (1 - np.exp(-mean)) ** n_trees
        found = np.bincount(y[voteless_rows(forest_with(weight, n_trees), X, y)], minlength=5) / counts
        noise = np.sqrt(expected * (1 - expected) / counts)
        # Items of a class are not drawn independently, hence the second term.
        assert (np.abs(found - expected) <= 6 * noise + 0.02).all(), (weight, found, expected)
    assert (1 - np.exp(-drawn["balanced"].max())) ** n_trees > 0.5


def forest_with(weight, n_trees):
    return RandomForestClassifier(n_trees, class_weight=weight, oob_score=True, random_state=0)


# In-sample scores


def test_in_sample_scores_are_those_of_one_model_on_its_own_items(data):
    X, y = data
    fitted = InSample(GaussianNB()).fit(X, y)
    assert_array_equal(fitted.held_out_scores_, GaussianNB().fit(X, y).predict_proba(X))
    quantifier = oq.PACC(InSample(GaussianNB())).fit(X, y)
    # In sample, q of the training items is M p exactly, so that their own distribution comes back.
    assert_allclose(quantifier.predict(X), quantifier.p_train_, atol=1e-10)


# Methods and classifiers without probabilities


@pytest.mark.parametrize("voter", VOTERS, ids=["svc", "ridge", "pipeline"])
@pytest.mark.parametrize("method", VOTE_METHODS, ids=lambda c: c.__name__)
def test_methods_of_predictions_take_classifiers_without_probabilities(method, voter, data):
    X, y = data
    classifier = oq.classifiers.CrossFitted(voter, cv=3)
    quantifier = method(classifier).fit(X, y)
    votes = clone(classifier).fit(X, y)
    by_hand = method().fit_scores(votes.held_out_scores_, y).predict_scores(votes.predict_proba(X), [range(300)])
    assert_allclose(quantifier.predict(X), by_hand[0], rtol=0, atol=1e-12)


@pytest.mark.parametrize("voter", VOTERS, ids=["svc", "ridge", "pipeline"])
@pytest.mark.parametrize("method", POSTERIOR_METHODS, ids=lambda c: c.__name__)
def test_methods_of_posteriors_name_the_classifiers_that_they_need(method, voter, data):
    message = rf"{method.__name__} needs class probabilities.* has no predict_proba.*LogisticRegression.*Calibrated"
    with pytest.raises(TypeError, match=f"(?s){message}"):
        method(oq.classifiers.CrossFitted(voter, cv=2)).fit(*data)


def test_every_method_on_a_classifier_is_in_one_of_the_two_lists():
    on_classifier = {name for name, method in METHODS.items() if "classifier" in method().get_params()}
    # OQT and ARC fit their own binary classifiers.
    assert on_classifier - {"OQT", "ARC"} == {method.__name__ for method in VOTE_METHODS + POSTERIOR_METHODS}


def test_of_the_trees_only_arc_takes_classifiers_without_probabilities(data):
    X, y = data
    assert oq.metrics.nmd(np.bincount(y) / 300, oq.ARC(LinearSVC()).fit(X, y).predict(X)) < 0.3
    with pytest.raises(TypeError, match=r"OQT needs class probabilities, but LinearSVC.* has no predict_proba"):
        oq.OQT(LinearSVC()).fit(X, y)


# Order of the classes


def test_columns_follow_our_order_and_not_the_alphabet(data):
    X, y = data
    names = np.array(["VeryUnhappy", "Unhappy", "Neutral", "Happy", "VeryHappy"])
    assert sorted(names) != names.tolist()
    forest = RandomForestClassifier(30, oob_score=True, random_state=0)
    for classifier in (GaussianNB(), forest, InSample(GaussianNB())):
        named = oq.PACC(classifier).fit(X, names[y], classes=names)
        coded = oq.PACC(classifier).fit(X, y)
        assert named.classes_.tolist() == names.tolist()
        assert_array_equal(named.M_, coded.M_)
        assert_array_equal(named.scores(X), coded.scores(X))
        # The mean score of a class is highest for that class itself: M has a strong diagonal only in our order.
        assert (named.M_.argmax(axis=0) == np.arange(5)).sum() >= 3


# Classifiers that were fitted before

LABELS = {
    "codes": np.arange(5),
    "stars": np.arange(1, 6),
    "floats": np.array([10.0, 20.0, 30.0, 40.0, 50.0]),
    "words": np.array(["poor", "fair", "good", "great", "best"]),
    "objects": np.array(["poor", "fair", "good", "great", "best"], dtype=object),
}


@pytest.fixture
def parted(rng):
    """Items to fit the classifier on, others for the quantifier, and new ones: features and codes."""
    X, y = friedman(rng, 900)
    return (X[:400], y[:400]), (X[400:700], y[400:700]), (X[700:], y[700:])


@pytest.mark.parametrize("labels", LABELS.values(), ids=LABELS)
@pytest.mark.parametrize("method", [oq.ACC, oq.OPACC, oq.SLD])
def test_fitted_classifier_may_have_any_labels(method, labels, parted):
    (X, y), (X_fit, y_fit), (X_new, _) = parted
    expected = method(FrozenEstimator(GaussianNB().fit(X, y))).fit(X_fit, y_fit).predict(X_new)
    classifier = FrozenEstimator(GaussianNB().fit(X, labels[y]))
    q = method(classifier).fit(X_fit, labels[y_fit], classes=labels)
    assert_allclose(q.predict(X_new), expected, rtol=0, atol=1e-12)
    assert_array_equal(q.classes_, labels)


def test_fitted_classifier_is_not_fitted_again_and_scores_every_item_once(parted):
    (X, y), (X_fit, y_fit), (X_new, _) = parted
    model = GaussianNB().fit(X, y + 1)
    q = oq.PACC(FrozenEstimator(model)).fit(X_fit, y_fit + 1)
    assert isinstance(q.classifier_, AlreadyFitted)
    assert_array_equal(q.held_out_.S, model.predict_proba(X_fit))
    assert_array_equal(q.scores(X_new), model.predict_proba(X_new))
    assert_array_equal(q.classifier_.predict(X_new) + 1, model.predict(X_new))


def test_fitted_forest_does_not_give_the_out_of_bag_scores_of_its_own_items(parted):
    (X, y), (X_fit, y_fit), _ = parted
    forest = RandomForestClassifier(30, oob_score=True, random_state=0).fit(X, y + 1)
    q = oq.PACC(FrozenEstimator(forest)).fit(X_fit, y_fit + 1)
    assert_array_equal(q.held_out_.S, forest.predict_proba(X_fit))


def test_fitted_classifier_without_probabilities_votes(parted):
    (X, y), (X_fit, y_fit), (X_new, _) = parted
    words = LABELS["words"]
    model = LinearSVC().fit(X, words[y])
    q = oq.ACC(FrozenEstimator(model)).fit(X_fit, words[y_fit], classes=words)
    votes = q.scores(X_new)
    assert_array_equal(words[votes.argmax(axis=1)], model.predict(X_new))
    assert_array_equal(votes.sum(axis=1), 1)
    with pytest.raises(TypeError, match="PACC needs class probabilities"):
        oq.PACC(FrozenEstimator(model)).fit(X_fit, words[y_fit], classes=words)


@pytest.mark.parametrize("wrap", [oq.classifiers.CrossFitted, InSample], ids=lambda wrap: wrap.__name__)
def test_fitted_classifier_within_another_keeps_its_labels(wrap, parted):
    (X, y), (X_fit, y_fit), (X_new, _) = parted
    words = LABELS["words"]
    model = GaussianNB().fit(X, words[y])
    q = oq.PACC(wrap(FrozenEstimator(model))).fit(X_fit, words[y_fit], classes=words)
    columns = np.searchsorted(model.classes_, words)
    assert_allclose(q.scores(X_new), model.predict_proba(X_new)[:, columns], rtol=0, atol=1e-15)


def test_calibration_of_a_fitted_classifier_is_cross_fitted_with_its_labels(parted):
    (X, y), (X_fit, y_fit), (X_new, _) = parted
    words = LABELS["words"]

    def calibrated(labels):
        return CalibratedClassifierCV(FrozenEstimator(GaussianNB().fit(X, labels[y])))

    expected = oq.PACC(calibrated(np.arange(5))).fit(X_fit, y_fit).predict(X_new)
    q = oq.PACC(calibrated(words)).fit(X_fit, words[y_fit], classes=words)
    assert isinstance(q.classifier_, oq.classifiers.CrossFitted)
    assert_allclose(q.predict(X_new), expected, rtol=0, atol=1e-9)


def test_search_takes_fitted_classifiers(parted):
    (X, y), (X_fit, y_fit), (X_new, y_new) = parted
    words = LABELS["words"]
    samples = oq.protocols.APP(10, 30, small_pool="replace", random_state=0).draw(words[y_new], classes=words)
    models = [FrozenEstimator(model.fit(X, words[y])) for model in (GaussianNB(), LogisticRegression())]
    search = oq.model_selection.SampleSearch(oq.PACC(), {"classifier": models}, samples=samples)
    search.fit(X_fit, words[y_fit], X_new, classes=words)
    assert (search.results_["message"] == "").all()
    assert_allclose(search.predict(X_new).sum(), 1)


def test_fitted_classifier_must_have_exactly_the_classes_of_the_items(parted):
    (X, y), (X_fit, y_fit), _ = parted
    few = FrozenEstimator(GaussianNB().fit(X[y < 4], y[y < 4] + 1))
    with pytest.raises(ValueError, match=r"has the classes \[1, 2, 3, 4\], .* it lacks \[5\]"):
        oq.PACC(few).fit(X_fit, y_fit + 1)
    many = FrozenEstimator(GaussianNB().fit(X, y + 1))
    with pytest.raises(ValueError, match=r"no item is of \[5\]"):
        oq.PACC(many).fit(X_fit[y_fit < 4], y_fit[y_fit < 4] + 1)
    # Codes are not labels: a classifier fitted on codes needs codes.
    codes = FrozenEstimator(GaussianNB().fit(X, y))
    with pytest.raises(ValueError, match=r"has the classes \[0, 1, 2, 3, 4\], .* it lacks \[5\]"):
        oq.PACC(codes).fit(X_fit, y_fit + 1)
    with pytest.raises(NotFittedError):
        oq.PACC(FrozenEstimator(GaussianNB())).fit(X_fit, y_fit)


def test_trees_reject_a_classifier_of_all_classes(parted):
    (X, y), (X_fit, y_fit), _ = parted
    with pytest.raises(ValueError, match="has the classes"):
        oq.OQT(FrozenEstimator(GaussianNB().fit(X, y + 1))).fit(X_fit, y_fit + 1)


def test_quantifier_on_a_fitted_classifier_can_be_saved(parted, tmp_path):
    (X, y), (X_fit, y_fit), (X_new, _) = parted
    words = LABELS["words"]
    q = oq.OPACC(FrozenEstimator(GaussianNB().fit(X, words[y]))).fit(X_fit, words[y_fit], classes=words)
    oq.save_model(q, tmp_path / "q.oq")
    assert_array_equal(oq.load_model(tmp_path / "q.oq").predict(X_new), q.predict(X_new))
