"""Conventions of scikit-learn for every method and for open compositions."""

import ast
import inspect
import pickle
import re
import warnings
from unittest import SkipTest

import numpy as np
import pandas as pd
import polars as pl
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse
from scipy.optimize import linprog, minimize
from scipy.spatial.distance import cdist
from sklearn.base import clone
from sklearn.ensemble import RandomForestClassifier
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.model_selection import ParameterGrid
from sklearn.naive_bayes import GaussianNB, MultinomialNB
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.tree import DecisionTreeClassifier
from sklearn.utils.estimator_checks import estimator_checks_generator

import ordinalq as oq
from ordinalq import losses, regularizers, representations
from ordinalq.classifiers import cross_fitting
from ordinalq.losses import Energy, Hellinger, LeastSquares, Loss, Poisson
from ordinalq.regularizers import Regularizer, Tikhonov
from ordinalq.representations import HardVotes, Histograms, MeanDistances, Partition, Posteriors, Representation
from ordinalq.simplex import Derivatives
from ordinalq.solvers import l1, newton, quadratic

METHODS = {entry.name: entry.cls for entry in oq.catalog(beyond=False)}
each_method = pytest.mark.parametrize("method", METHODS.values(), ids=METHODS)


def on_classifier(method):
    """Return whether the method works on a classifier; HDx and OHDx take the features themselves."""
    return "classifier" in inspect.signature(method).parameters


each_with_classifier = pytest.mark.parametrize(
    "method", [cls for cls in METHODS.values() if on_classifier(cls)], ids=lambda cls: cls.__name__
)


def build(method, classifier=None):
    """Return an unfitted quantifier on a fast classifier."""
    classifier = oq.classifiers.CrossFitted(GaussianNB(), cv=3) if classifier is None else classifier
    return method(classifier) if on_classifier(method) else method()


def fast_tree():
    """Return a classifier that takes dense and sparse data, and fits in a millisecond."""
    return oq.classifiers.CrossFitted(DecisionTreeClassifier(max_depth=2, random_state=0), cv=2)


@pytest.fixture
def data(rng):
    """Return features (400, 4), codes 0..4 (400,), and a pool (300, 4)."""
    X, pool = rng.random((400, 4)), rng.random((300, 4))
    y = np.digitize(X[:, 0] + X[:, 1] + 0.2 * rng.normal(size=400), [0.6, 0.9, 1.1, 1.4])
    return X, y, pool


@pytest.fixture
def index(rng):
    """Return ten samples of 60 items of the pool."""
    return rng.integers(0, 300, size=(10, 60))


# The checks of scikit-learn are not made for quantifiers: some expect one prediction per row.

PER_ROW = "predict gives one distribution for all rows, not one prediction per row"
TAG = "whether sparse or missing values are fine is the classifier's business; the tag has only one answer"
FOLDS = "folds of repeated items are not those of weighted ones; from given scores test_weights.py asks for more"
INAPPLICABLE = {
    "check_methods_sample_order_invariance": PER_ROW,
    "check_methods_subset_invariance": PER_ROW,
    "check_sample_weight_equivalence_on_dense_data": FOLDS,
    "check_estimators_nan_inf": TAG,
    "check_estimator_sparse_tag": TAG,
    "check_estimator_sparse_array": TAG,
    "check_estimator_sparse_matrix": TAG,
}
NOT_RUN = {"check_array_api_input": "needs SCIPY_ARRAY_API, and no method takes arrays of other libraries"}


def failed_checks(method):
    """Run all checks of scikit-learn; return {check: error}."""
    failed = {}
    for estimator, check in estimator_checks_generator(build(method, fast_tree())):
        name = check.func.__name__
        try:
            with warnings.catch_warnings():
                # Said of every method that smooths, where a check draws two classes.
                warnings.filterwarnings("ignore", message="a penalty of order 1 has no effect")
                check(estimator)
        except SkipTest:
            assert name in NOT_RUN, name
        except Exception as error:  # any exception is the verdict
            failed[name] = f"{type(error).__name__}: {error}"
    return failed


@pytest.fixture(scope="module")
def verdicts():
    return {name: failed_checks(method) for name, method in METHODS.items()}


@pytest.mark.parametrize("name", METHODS)
def test_scikit_learn_checks_that_can_apply_pass(name, verdicts):
    unexpected = {check: error for check, error in verdicts[name].items() if check not in INAPPLICABLE}
    assert unexpected == {}


@pytest.mark.parametrize("check", INAPPLICABLE)
def test_checks_listed_as_inapplicable_do_fail(check, verdicts):
    assert any(check in failed for failed in verdicts.values()), f"{check} passes everywhere: take it off the list"


def test_listed_checks_exist():
    known = {check.func.__name__ for _, check in estimator_checks_generator(build(oq.CC))}
    assert set(INAPPLICABLE) <= known


def test_checked_names_are_those_of_the_catalog(verdicts):
    names = [entry.name for entry in oq.catalog(beyond=False)]
    assert list(verdicts) == names
    assert all(getattr(oq, name) is METHODS[name] for name in names)
    assert len(set(names)) == len(names) >= 15


# Estimators: parameters, copies, repetition


@each_method
def test_clone_is_unfitted_and_predicts_the_same(method, data):
    X, y, pool = data
    fitted = build(method).fit(X, y)
    copy = clone(fitted)
    assert not hasattr(copy, "classes_")
    assert_array_equal(copy.fit(X, y).predict(pool), fitted.predict(pool))


@each_with_classifier
def test_parameters_of_the_classifier_are_set_through_the_quantifier(method, data):
    X, y, pool = data
    quantifier = method(GaussianNB()).set_params(classifier__var_smoothing=0.5)
    assert quantifier.get_params()["classifier__var_smoothing"] == 0.5
    assert_array_equal(quantifier.fit(X, y).scores(pool), method(GaussianNB(var_smoothing=0.5)).fit(X, y).scores(pool))
    assert np.abs(quantifier.scores(pool) - method(GaussianNB()).fit(X, y).scores(pool)).max() > 1e-6


@each_with_classifier
def test_a_pipeline_serves_as_the_classifier(method, data):
    X, y, pool = data
    pipeline = make_pipeline(StandardScaler(), GaussianNB())
    piped = method(pipeline).set_params(classifier__gaussiannb__var_smoothing=0.1).fit(100 * X, y)
    assert pipeline[-1].var_smoothing == 0.1
    # Scaled within each fold, the units of the features do not matter.
    assert_allclose(piped.predict(100 * pool), clone(piped).fit(X, y).predict(pool), atol=1e-6)


@each_method
def test_pickle_keeps_the_predictions(method, data, index):
    X, y, pool = data
    fitted = build(method).fit(X, y)
    copy = pickle.loads(pickle.dumps(fitted))
    assert_array_equal(copy.predict_samples(pool, index), fitted.predict_samples(pool, index))
    assert_array_equal(copy.classes_, fitted.classes_)


@each_method
def test_fit_changes_no_parameter(method, data):
    X, y, _ = data
    quantifier = build(method)
    before = {name: (value, repr(value)) for name, value in quantifier.get_params().items()}
    quantifier.fit(X, y)
    after = quantifier.get_params()
    assert before.keys() == after.keys()
    assert all(after[name] is value and repr(after[name]) == text for name, (value, text) in before.items())


@each_method
def test_fitting_again_forgets_the_first_fit(method, data):
    X, y, pool = data
    fresh = build(method).fit(X, y)
    again = build(method).fit(X[:200, :3], np.minimum(y[:200], 2)).fit(X, y)
    assert_array_equal(again.predict(pool), fresh.predict(pool))
    assert_array_equal(again.fit(X, y).predict(pool), fresh.predict(pool))
    assert_array_equal(again.p_train_, fresh.p_train_)


@each_method
def test_two_quantifiers_without_seed_agree(method, data, index):
    X, y, pool = data
    first, second = (build(method).fit(X, y).predict_samples(pool, index) for _ in range(2))
    assert_array_equal(first, second)


# Data: frames, sparse arrays, lists, text


@each_method
@pytest.mark.parametrize("frame", [pd.DataFrame, pl.DataFrame], ids=["pandas", "polars"])
def test_frames_give_the_estimates_of_arrays(method, frame, data, index):
    X, y, pool = data
    names = ["b", "a", "d", "c"]
    named = build(method).fit(frame(dict(zip(names, X.T, strict=True))), y)
    framed = frame(dict(zip(names, pool.T, strict=True)))
    plain = build(method).fit(X, y)
    assert named.feature_names_in_.tolist() == names
    assert named.n_features_in_ == 4
    assert_allclose(named.predict(framed), plain.predict(pool), atol=1e-8)
    assert_allclose(named.predict_samples(framed, index), plain.predict_samples(pool, index), atol=1e-8)


@each_method
@pytest.mark.parametrize("frame", [pd.DataFrame, pl.DataFrame], ids=["pandas", "polars"])
def test_feature_names_are_compared_at_predict(method, frame, data):
    X, y, pool = data
    fitted = build(method).fit(frame(dict(zip("abcd", X.T, strict=True))), y)
    for names in ("abdc", "abce"):
        with pytest.raises(ValueError, match="The feature names should match those that were passed during fit"):
            fitted.predict(frame(dict(zip(names, pool.T, strict=True))))
    with pytest.warns(UserWarning, match="X does not have valid feature names, but"):
        fitted.predict(pool)
    with pytest.warns(UserWarning, match="X has feature names, but"):
        build(method).fit(X, y).predict(frame(dict(zip("abcd", pool.T, strict=True))))


@each_with_classifier
@pytest.mark.parametrize("as_sparse", [sparse.csr_array, sparse.csc_array, sparse.csr_matrix], ids=lambda f: f.__name__)
def test_sparse_items_give_the_estimates_of_dense_ones(method, as_sparse, data, index):
    X, y, pool = data
    X, pool = np.where(X < 0.3, 0, X), np.where(pool < 0.3, 0, pool)
    dense = build(method, fast_tree()).fit(X, y)
    fitted = build(method, fast_tree()).fit(as_sparse(X), y)
    assert_allclose(fitted.predict_samples(as_sparse(pool), index), dense.predict_samples(pool, index), atol=1e-8)
    assert_allclose(fitted.predict(as_sparse(pool)), dense.predict(pool), atol=1e-8)


@each_method
def test_lists_give_the_estimates_of_arrays(method, data, index):
    X, y, pool = data
    listed = build(method).fit(X.tolist(), y.tolist())
    plain = build(method).fit(X, y)
    assert_array_equal(listed.predict_samples(pool.tolist(), index.tolist()), plain.predict_samples(pool, index))


@each_method
def test_single_precision_is_enough(method, data, index):
    X, y, pool = data
    X, pool = X.astype(np.float32), pool.astype(np.float32)
    single = build(method).fit(X, y).predict_samples(pool, index)
    assert single.dtype == np.float64
    double = build(method).fit(X.astype(np.float64), y).predict_samples(pool.astype(np.float64), index)
    assert_allclose(single, double, atol=1e-2)


@pytest.mark.parametrize(
    "container", [list, lambda t: np.array(t, dtype=object), pd.Series], ids=["list", "array", "series"]
)
def test_texts_are_items_if_the_classifier_accepts_them(container, rng):
    words = np.array(["awful", "poor", "fair", "good", "superb"])
    y = rng.integers(0, 5, 300)
    texts = [" ".join(rng.choice(words, 4)) + f" {words[code]}" * 6 for code in y]
    classifier = make_pipeline(CountVectorizer(), MultinomialNB())
    quantifier = oq.PACC(oq.classifiers.CrossFitted(classifier, cv=3)).fit(container(texts), y)
    true = np.bincount(y) / 300
    assert oq.metrics.nmd(true, quantifier.predict(container(texts))) < 0.02
    first = quantifier.predict_samples(container(texts), [np.flatnonzero(y < 2), np.flatnonzero(y > 2)])
    assert first[0, :2].sum() > 0.9
    assert first[1, 3:].sum() > 0.9


# Labels

NAMES = np.array(["VeryUnhappy", "Unhappy", "Neutral", "Happy", "VeryHappy"])
LABELS = {
    "1..5": (lambda y: y + 1, None),
    "reals": (lambda y: y / 2 - 0.7, None),
    "primes": (lambda y: np.array([2, 3, 5, 7, 11])[y], None),
    "list": (lambda y: (y + 1).tolist(), None),
    "objects": (lambda y: (y + 1).astype(object), None),
    "unsigned": (lambda y: y.astype(np.uint8), None),
    "classes": (lambda y: y + 1, [1, 2, 3, 4, 5]),
    "downwards": (lambda y: 5 - y, [5, 4, 3, 2, 1]),
    "strings": (lambda y: NAMES[y], NAMES.tolist()),
    "string objects": (lambda y: NAMES[y].astype(object), NAMES),
    "series": (lambda y: pd.Series(y + 1, index=np.arange(len(y))[::-1]), None),
    "string series": (lambda y: pd.Series(NAMES[y]), NAMES),
    "categorical": (lambda y: pd.Categorical(NAMES[y], categories=NAMES, ordered=True), None),
    "categorical series": (lambda y: pd.Series(pd.Categorical(NAMES[y], categories=NAMES, ordered=True)), None),
    "polars": (lambda y: pl.Series(y + 1), None),
    "enum": (lambda y: pl.Series(NAMES[y].tolist(), dtype=pl.Enum(NAMES.tolist())), None),
}


@each_method
def test_all_kinds_of_labels_give_the_estimates_of_codes(method, data):
    X, y, pool = data
    coded = build(method).fit(X, y)
    expected = coded.predict(pool)
    assert_array_equal(coded.classes_, range(5))
    for kind, (encode, classes) in LABELS.items():
        labels = encode(y)
        fitted = build(method).fit(X, labels, classes=classes)
        assert_array_equal(fitted.predict(pool), expected, err_msg=kind)
        assert_array_equal(fitted.classes_[y], np.asarray(labels), err_msg=kind)


@each_method
def test_the_order_of_the_classes_is_the_order_of_the_estimate(method, data):
    X, y, pool = data
    reversed_ = build(method).fit(X, 4 - y)
    assert reversed_.predict(pool).shape == (5,)
    # Items of the lowest class are found there, and at the other end with reversed labels.
    low = pool[pool[:, :2].sum(axis=1) < 0.5]
    assert build(method).fit(X, y).predict(low)[:2].sum() > 0.7
    assert reversed_.predict(low)[3:].sum() > 0.7


# Samples


@each_method
def test_estimates_are_distributions(method, data, index):
    X, y, pool = data
    P = build(method).fit(X, y).predict_samples(pool, index)
    assert P.shape == (10, 5)
    assert P.dtype == np.float64
    assert (P >= 0).all()
    assert_allclose(P.sum(axis=1), 1, atol=1e-12)


@each_method
def test_predict_is_one_sample_of_all_items(method, data):
    X, y, pool = data
    fitted = build(method).fit(X, y)
    whole = fitted.predict(pool)
    assert whole.shape == (5,)
    assert_array_equal(whole, fitted.predict_samples(pool, oq.Samples.whole(300))[0])
    assert_array_equal(whole, fitted.predict_samples(pool, np.arange(300)[None])[0])


@each_method
def test_the_two_stages_agree_with_predict_samples(method, data, index):
    X, y, pool = data
    fitted = build(method).fit(X, y)
    S = fitted.scores(pool)
    P = fitted.predict_samples(pool, index)
    assert_array_equal(fitted.predict_scores(S, index), P)
    solution = fitted.solve_scores(S, index)
    assert_allclose(solution.p, P, rtol=0, atol=1e-12)
    assert solution.converged.all()
    for part in (solution.value, solution.n_iter, solution.converged, solution.kkt):
        assert part.shape == (10,)


@each_with_classifier
def test_fit_is_fit_scores_on_the_held_out_scores(method, data, index):
    X, y, pool = data
    fitted = build(method).fit(X, y)
    try:
        from_scores = build(method).fit_scores(fitted.classifier_.held_out_scores_, y)
    except (AttributeError, TypeError):
        # OQT and ARC grow a tree of classifiers: their error must say so.
        with pytest.raises(TypeError, match=f"{method.__name__}.*fit"):
            build(method).fit_scores(np.full((len(y), 5), 0.2), y)
        assert method.__name__ in ("OQT", "ARC")
        return
    S = fitted.scores(pool)
    assert_array_equal(from_scores.predict_scores(S, index), fitted.predict_scores(S, index))


@each_method
def test_index_arrays_lists_and_samples_agree(method, data, index):
    X, y, pool = data
    fitted = build(method).fit(X, y)
    P = fitted.predict_samples(pool, index)
    assert_array_equal(fitted.predict_samples(pool, list(index)), P)
    assert_array_equal(fitted.predict_samples(pool, oq.Samples.from_index(index, 300)), P)
    ragged = fitted.predict_samples(pool, [index[0], index[1, :20]])
    assert_allclose(ragged[0], P[0], atol=1e-8)
    assert_allclose(ragged[1], fitted.predict(pool[index[1, :20]]), atol=1e-8)


@each_method
def test_permuting_the_samples_permutes_the_rows(method, data, index, rng):
    X, y, pool = data
    fitted = build(method).fit(X, y)
    order = rng.permutation(10)
    assert_allclose(fitted.predict_samples(pool, index[order]), fitted.predict_samples(pool, index)[order], atol=1e-8)


@each_method
def test_permuting_the_items_of_a_sample_changes_nothing(method, data, index, rng):
    X, y, pool = data
    fitted = build(method).fit(X, y)
    permuted = rng.permuted(index, axis=1)
    assert_allclose(fitted.predict_samples(pool, permuted), fitted.predict_samples(pool, index), atol=1e-7)


# RUN is another matter: its likelihood is of counts, and twice as many items weaken the regularizer.
@pytest.mark.parametrize("method", [METHODS[name] for name in METHODS if name != "RUN"], ids=lambda cls: cls.__name__)
def test_a_sample_taken_twice_gives_the_same_estimate(method, data, index):
    X, y, pool = data
    fitted = build(method).fit(X, y)
    twice = np.concatenate([index, index], axis=1)
    assert_allclose(fitted.predict_samples(pool, twice), fitted.predict_samples(pool, index), atol=1e-7)


# Docstrings


def public_classes():
    modules = (losses, regularizers, representations, cross_fitting, l1, newton, quadratic)
    found = {name: getattr(oq, name) for name in oq.__all__ if inspect.isclass(getattr(oq, name))}
    for module in modules:
        own = vars(module).values()
        found |= {c.__name__: c for c in own if inspect.isclass(c) and c.__module__ == module.__name__}
    return {name: cls for name, cls in found.items() if not name.startswith("_") and not inspect.isabstract(cls)}


PUBLIC = public_classes()


def documented_parameters(cls):
    """Return {parameter: (written default or None, text)} of the Parameters section."""
    doc = inspect.getdoc(cls) or ""
    section = re.search(r"^Parameters\n-+\n(.*?)(?=^\S[^\n]*\n-+\n|\Z)", doc, re.S | re.M)
    found = {}
    for head, text in re.findall(r"^(\S[^\n]*)\n((?:[ ]+[^\n]*\n?|\n)*)", section[1] if section else "", re.M):
        names, _, kind = head.partition(" : ")
        default = re.search(r"default=(.+)$", kind)
        found |= {name.strip(): (default[1] if default else None, kind, text) for name in names.split(",")}
    return found


def written(text):
    """Return the value of a default as it is written, also of a fraction such as 1/3."""
    top, _, bottom = text.partition("/")
    return ast.literal_eval(top) / ast.literal_eval(bottom) if bottom else ast.literal_eval(text)


@pytest.mark.parametrize(
    "cls",
    [
        pytest.param(cls, id=name)
        for name, cls in PUBLIC.items()
        if cls
        not in (
            oq.Samples,
            oq.datasets.Dataset,
            oq.datasets.Binning,
        )  # made by functions, documented by their attributes
    ],
)
def test_docstrings_name_every_parameter_with_its_default(cls):
    parameters = {name: p.default for name, p in inspect.signature(cls).parameters.items()}
    documented = documented_parameters(cls)
    assert set(documented) == set(parameters)
    for name, (default, kind, text) in documented.items():
        if kind == "":  # "See :class:`X`."
            other = re.search(r"[Ss]ee :class:`(\w+)`", text)
            assert other, f"{name} is neither described nor referred"
            there = PUBLIC.get(other[1]) or getattr(inspect.getmodule(cls), other[1])
            exception = re.search(rf"the default {name} is ([^\s.;,]+)", text)
            expected = inspect.signature(there).parameters[name].default
            assert parameters[name] == (written(exception[1]) if exception else expected), name
        elif parameters[name] is inspect.Parameter.empty:
            assert default is None, name
        else:
            assert default is not None, f"{name} has a default that is not documented"
            assert written(default) == parameters[name], name


def test_drifted_defaults_would_be_noticed():
    class Drifted(oq.OACC):
        """o-ACC.

        Parameters
        ----------
        classifier, solver
            See :class:`ACC`.
        tau : float, default=1e-2
            Drifted.
        """

    found = documented_parameters(Drifted)
    assert written(found["tau"][0]) != inspect.signature(Drifted).parameters["tau"].default
    assert "order" not in found


@each_method
def test_every_method_has_a_name_a_summary_and_keyword_parameters(method):
    assert method.paper_name
    assert method.__doc__.strip().endswith(".")
    assert next(iter(inspect.signature(method).parameters)) == ("classifier" if on_classifier(method) else "n_bins")
    kinds = [p.kind for p in inspect.signature(method).parameters.values()]
    assert all(kind is inspect.Parameter.KEYWORD_ONLY for kind in kinds[on_classifier(method) :])


# Compositions


def test_named_methods_are_compositions(data, index):
    X, y, pool = data
    classifier = oq.classifiers.CrossFitted(GaussianNB(), cv=3)
    pairs = [
        (oq.OPACC(classifier, tau=0.01), Posteriors(), LeastSquares(), Tikhonov(0.01)),
        (oq.OACC(classifier, tau=0.01, order=0), HardVotes(), LeastSquares(), Tikhonov(0.01, order=0)),
        (oq.HDy(classifier, n_bins=3), Histograms(3), Hellinger(), None),
        (oq.OHDx(tau=0.01), Histograms(4, on="features"), Hellinger(), Tikhonov(0.01)),
        (oq.EDy(classifier, distance="euclidean"), MeanDistances("euclidean"), Energy(), None),
        (oq.RUN(classifier, tau=3.0), HardVotes(), Poisson(), Tikhonov(3.0)),
    ]
    for named, *parts in pairs:
        composed = oq.ComposedQuantifier(*parts, classifier=classifier)
        expected = named.fit(X, y).predict_samples(pool, index)
        assert_array_equal(composed.fit(X, y).predict_samples(pool, index), expected)


def test_parameters_of_the_parts_can_be_searched(data, index):
    X, y, pool = data
    classifier = oq.classifiers.CrossFitted(GaussianNB(), cv=3)
    composed = oq.ComposedQuantifier(Histograms(), Hellinger(), Tikhonov(1e-3), classifier=classifier)
    grid = {
        "regularizer__tau": [1e-3, 1e-1],
        "representation__n_bins": [2, 4],
        "classifier__estimator__var_smoothing": [0.1],
    }
    estimates = []
    for chosen in ParameterGrid(grid):
        fitted = clone(composed).set_params(**chosen).fit(X, y)
        estimates.append(fitted.predict_samples(pool, index))
        named = oq.OHDy(
            oq.classifiers.CrossFitted(GaussianNB(var_smoothing=0.1), cv=3),
            n_bins=chosen["representation__n_bins"],
            tau=chosen["regularizer__tau"],
        )
        assert_array_equal(estimates[-1], named.fit(X, y).predict_samples(pool, index))
    assert len({P.tobytes() for P in estimates}) == 4
    # The parts that the caller gave stay as they were.
    assert (composed.regularizer.tau, composed.representation.n_bins) == (1e-3, 4)


def test_fit_does_not_touch_the_given_parts(data):
    X, y, _ = data
    representation, loss, regularizer = Histograms(3, on="features"), Hellinger(), Tikhonov(0.1)
    fitted = oq.ComposedQuantifier(representation, loss, regularizer).fit(X, y)
    assert fitted.representation is representation
    assert not hasattr(representation, "edges_")
    assert fitted.representation_ is not representation


def test_compositions_pickle_and_clone(data, index):
    X, y, pool = data
    fitted = oq.ComposedQuantifier(Partition(8), Poisson(), Tikhonov(10.0)).fit(X, y)
    P = fitted.predict_samples(pool, index)
    assert_array_equal(pickle.loads(pickle.dumps(fitted)).predict_samples(pool, index), P)
    assert_array_equal(clone(fitted).fit(X, y).predict_samples(pool, index), P)


class LeastDeviations(Loss):
    """||q - M p||_1."""

    def derivatives(self, P, data):
        R = data.expected(P) - data.Q
        return Derivatives(np.abs(R).sum(axis=1), np.sign(R) @ data.M, np.zeros((len(P), P.shape[1], P.shape[1])))

    def absolute(self, data):
        return data.M, data.signal


class Moments(Representation):
    """f(x) = mean and mean square of the class index under s(x)."""

    def transform(self, S):
        i = np.arange(1.0, S.shape[1] + 1)
        return np.column_stack([S @ i, S @ i**2])


class TowardsUniform(Regularizer):
    """tau/2 ||p - 1/n||^2."""

    def __init__(self, tau=1.0):
        self.tau = tau

    def derivatives(self, P, sizes):
        D = P - 1 / P.shape[1]
        H = np.broadcast_to(self.tau * np.eye(P.shape[1]), (len(P), P.shape[1], P.shape[1]))
        return Derivatives(self.tau / 2 * (D * D).sum(axis=1), self.tau * D, H)


def test_a_loss_of_ones_own_reaches_the_minimum_of_the_linear_program(data, index):
    X, y, pool = data
    fitted = oq.ComposedQuantifier(
        Posteriors(), LeastDeviations(), classifier=oq.classifiers.CrossFitted(GaussianNB())
    ).fit(X, y)
    M, S = fitted.M_, fitted.scores(pool)
    P = fitted.predict_scores(S, index)
    for p, rows in zip(P, index, strict=True):
        q = S[rows].mean(axis=0)
        # min sum(t) subject to -t <= q - M p <= t and sum p = 1
        program = linprog(
            np.r_[np.zeros(5), np.ones(5)],
            A_ub=np.block([[M, -np.eye(5)], [-M, -np.eye(5)]]),
            b_ub=np.r_[q, -q],
            A_eq=[np.r_[np.ones(5), np.zeros(5)]],
            b_eq=[1],
        )
        assert_allclose(np.abs(q - M @ p).sum(), program.fun, atol=1e-9)


def test_a_representation_and_a_regularizer_of_ones_own_solve_their_equations(data, index):
    X, y, pool = data
    composed = oq.ComposedQuantifier(
        Moments(), LeastSquares(), TowardsUniform(), classifier=oq.classifiers.CrossFitted(GaussianNB(), cv=3)
    )
    fitted = composed.set_params(regularizer__tau=500.0).fit(X, y)
    S = fitted.scores(pool)
    P = fitted.predict_scores(S, index)
    assert P.min() > 0  # so that the conditions p >= 0 do not bind
    held = fitted.classifier_.held_out_scores_
    f = Moments().transform(held)
    M = np.column_stack([f[y == i].mean(axis=0) for i in range(5)])
    for p, rows in zip(P, index, strict=True):
        q = Moments().transform(S[rows]).mean(axis=0)
        # 2 M'(M p - q) + tau (p - 1/n) = lambda 1 and sum p = 1
        system = np.block([[2 * M.T @ M + 500 * np.eye(5), np.ones((5, 1))], [np.ones((1, 5)), np.zeros((1, 1))]])
        expected = np.linalg.solve(system, np.r_[2 * M.T @ q + 100, 1])[:5]
        assert_allclose(p, expected, atol=1e-8)


def on_simplex(function, n=5):
    """Minimise a function over the simplex by scipy, from three starts."""
    starts = [np.full(n, 1 / n), np.eye(n)[0] * 0.6 + 0.4 / n, np.eye(n)[-1] * 0.6 + 0.4 / n]
    found = [
        minimize(
            function,
            start,
            method="SLSQP",
            bounds=[(0, 1)] * n,
            constraints={"type": "eq", "fun": lambda p: p.sum() - 1},
            options={"ftol": 1e-15, "maxiter": 500},
        )
        for start in starts
    ]
    return min(found, key=lambda result: result.fun)


def test_svd_composition_equals_weighted_least_squares_by_hand(data, index):
    X, y, pool = data
    tau = 1e-2
    svd = oq.ComposedQuantifier(
        HardVotes(), LeastSquares("poisson"), Tikhonov(tau), classifier=oq.classifiers.CrossFitted(GaussianNB(), cv=3)
    ).fit(X, y)
    votes = np.eye(5)[svd.classifier_.held_out_scores_.argmax(axis=1)]
    M = np.column_stack([votes[y == i].mean(axis=0) for i in range(5)])
    assert_allclose(svd.M_, M, atol=1e-14)
    S = svd.scores(pool)
    C = oq.simplex.difference_matrix(5)
    for p, rows in zip(svd.predict_scores(S, index[:4]), index[:4], strict=True):
        q = np.bincount(S[rows].argmax(axis=1), minlength=5) / 60
        w = np.sqrt(1 + max(1, 60 - 5) * q)
        w /= w.mean()

        def loss(p, q=q, w=w):
            return (((q - M @ p) / w) ** 2).sum() + tau / 2 * ((C @ p) ** 2).sum()

        expected = on_simplex(loss)
        assert loss(p) <= expected.fun + 1e-10
        assert_allclose(p, expected.x, atol=1e-4)


def test_edx_composition_equals_energy_distance_of_features_by_hand(data, index):
    X, y, pool = data
    edx = oq.ComposedQuantifier(MeanDistances("euclidean", on="features"), Energy()).fit(X, y)
    members = [X[y == i] for i in range(5)]
    D = np.array([[cdist(a, b).mean() for b in members] for a in members])
    for p, rows in zip(edx.predict_samples(pool, index[:4]), index[:4], strict=True):
        q = np.array([cdist(a, pool[rows]).mean() for a in members])

        def loss(p, q=q):
            return 2 * p @ q - p @ D @ p

        expected = on_simplex(loss)
        assert loss(p) <= expected.fun + 1e-10
        assert_allclose(p, expected.x, atol=1e-3)


def test_partition_takes_the_place_of_the_classifier_in_run(data, index):
    X, y, pool = data
    fitted = oq.ComposedQuantifier(Partition(8), Poisson(), Tikhonov(10.0)).fit(X, y)
    assert not hasattr(fitted, "classifier_")
    partition = fitted.representation_
    leaf = partition.tree_.apply(X)
    means = partition.for_means_
    assert 150 < means.sum() < 250
    M = np.array([[(leaf[means & (y == i)] == k).mean() for i in range(5)] for k in np.unique(leaf)])
    assert_allclose(fitted.M_, M, atol=1e-14)
    # The same through the response matrix, which does not contain trees.
    found = partition.tree_.apply(pool)[index]
    counts = np.column_stack([(found == k).sum(axis=1) for k in np.unique(leaf)])
    assert_allclose(fitted.predict_samples(pool, index), oq.solve(counts, M, oq.RUN(tau=10.0)), atol=1e-9)


def test_forests_and_logistic_regression_estimate_well(data):
    X, y, pool = data
    truth = np.bincount(np.digitize(pool[:, :2].sum(axis=1), [0.6, 0.9, 1.1, 1.4]), minlength=5) / 300
    for classifier in (oq.classifiers.CrossFitted(cv=2), RandomForestClassifier(30, oob_score=True, random_state=0)):
        assert oq.metrics.nmd(truth, oq.OPACC(classifier, tau=0.1).fit(X, y).predict(pool)) < 0.1
