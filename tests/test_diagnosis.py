"""`diagnose`: fit, precision and smoothing of one sample."""

import json
from functools import lru_cache

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.stats import chi2, kstest
from seeds import generator
from sklearn.naive_bayes import GaussianNB

import ordinalq as oq
from ordinalq.inference.diagnosis import Diagnosis, diagnose
from ordinalq.inference.fit_test import class_moments, covariance_on_simplex
from ordinalq.losses import Energy
from ordinalq.representations import MeanDistances

N_CLASSES = 5
METHODS = {entry.name: entry.cls for entry in oq.catalog(beyond=False)}
SPREAD = np.array([1.0, 1.5, 1.2, 2.0])
EVEN = np.full(N_CLASSES, 1 / N_CLASSES)


def items(rng, codes, scale=1.0):
    return codes[:, None] + scale * rng.normal(size=(len(codes), len(SPREAD))) * SPREAD


def posteriors(X):
    """Return the scores of a classifier that knows the classes, for a uniform prior."""
    log = -((X[:, :, None] - np.arange(N_CLASSES)) ** 2 / (2 * SPREAD[:, None] ** 2)).sum(axis=1)
    density = np.exp(log - log.max(axis=1, keepdims=True))
    return density / density.sum(axis=1, keepdims=True)


@lru_cache
def training(n_items=2000):
    rng = generator(0)
    codes = np.arange(n_items) % N_CLASSES
    X = items(rng, codes)
    return X, posteriors(X), codes


def sample(seed, n_items=1000, p=None, scale=1.0):
    rng = generator(seed)
    p = rng.dirichlet(np.ones(N_CLASSES)) if p is None else p
    X = items(rng, rng.choice(N_CLASSES, n_items, p=p), scale)
    return X, posteriors(X), p


def judged(quantifier, S):
    """Return the diagnosis of one sample with scores or features S."""
    return diagnose(quantifier, quantifier.summarize(S, checks=True))


def fitted(quantifier):
    X, S, y = training()
    return quantifier.fit_scores(X if quantifier.traits.input_kind == "features" else S, y)


@pytest.mark.parametrize("quantifier", [oq.PACC(), oq.HDx()], ids=["scores", "features"])
def test_p_values_are_uniform_and_deviations_standard_inside_the_simplex(quantifier):
    # Items that scatter little: errors are small against the shares. At an edge of the simplex a share cannot fall
    # further, and errors are no longer normal.
    n_samples, by_chance = 60, 1e-6
    y = np.arange(3000) % N_CLASSES
    on_features = quantifier.traits.input_kind == "features"
    p_values, squares = [], []
    for seed in range(n_samples):
        # Separate training items for each sample: their noise is part of the test.
        X_train = items(generator(1000 + seed), y, scale=0.5)
        X, S, p = sample(seed, 3000, EVEN, scale=0.5)
        quantifier.fit_scores(X_train if on_features else posteriors(X_train), y)
        found = judged(quantifier, X if on_features else S)
        p_values.append(found.fit.p_value)
        squares.append(np.mean(((found.fit.best_mixture - p) / found.precision.standard_errors) ** 2))
    # Dvoretzky, Kiefer and Wolfowitz bound the distance by the first term; the law is an approximation up to 0.05.
    assert kstest(p_values, "uniform").statistic < np.sqrt(np.log(2 / by_chance) / (2 * n_samples)) + 0.05
    # Were the deviations of the five shares all the same number, each sample would be one square; they scatter less.
    low, high = chi2.ppf([by_chance, 1 - by_chance], n_samples) / n_samples
    assert low < np.mean(squares) < high


def test_a_class_that_is_not_there_has_the_error_of_about_an_item(rng):
    # Items that tell their classes: a share that is estimated as zero is known to within one item of N, not better.
    y, N = np.arange(3000) % N_CLASSES, 400
    q = oq.PACC().fit_scores(posteriors(items(rng, y, scale=0.2)), y)
    found = judged(q, posteriors(items(rng, 1 + np.arange(N) % (N_CLASSES - 1), scale=0.2)))
    assert found.fit.best_mixture[0] < 1 / N
    assert 0.6 < N * found.precision.standard_errors[0] < 3


@pytest.mark.parametrize("name", ["CC", "PACC", "OPACC", "SLD", "OSLD", "EDy", "OPDF", "RUN", "HDx", "OQT"])
def test_changed_items_are_noticed_by_every_method(name):
    X, _, y = training()
    q = METHODS[name]() if name == "HDx" else METHODS[name](GaussianNB())
    q.fit(X, y)
    # The squared effect of a mixture with even shares is (chi2_k - k) (1/N + 1/N_train), k <= 16: with a probability of
    # 1e-9 it is above the 0.09 that count as small. The effect of ten times the scatter depends on the training items:
    # median 2.9 on scores, and its logarithm scatters downwards by 0.41 (400 training sets, none below 0.88), so that
    # 0.3 is 5.5 standard deviations away; on features it is more.
    good, bad = (q.diagnose(sample(3, p=EVEN, scale=scale)[0]) for scale in (1.0, 10.0))
    assert good.shift_is_plausible
    assert not bad.shift_is_plausible
    assert "Fit: bad" in str(bad)
    assert bad.fit.p_value < 1e-6


def test_effect_does_not_depend_on_the_size_of_the_sample():
    # Up to five times as many items as in training: then M is what is uncertain, and the deviation is as large as ever.
    _, S, y = training(20_000)
    q = oq.PACC().fit_scores(S, y)
    sizes = (1000, 10_000, 100_000)
    bad = [judged(q, sample(3, n, EVEN, scale=3.0)[1]) for n in sizes]
    # The effect of N items differs from that of the most by 0 +- 1.3 / sqrt(N) (40 training sets of 20,000 items). Bad
    # ones are .38 +- .035, .016 and .011: the first alone is within five standard deviations of the plausible .3.
    for found, n in zip(bad, sizes, strict=True):
        assert abs(found.fit.effect - bad[-1].fit.effect) <= 7 / np.sqrt(n)
    assert not any(found.shift_is_plausible for found in bad[1:])
    good = [judged(q, sample(3, n, EVEN)[1]) for n in sizes]
    assert max(found.fit.effect for found in good[1:]) < 0.1 < 0.2 < min(found.fit.effect for found in bad[1:])
    assert all(found.fit.p_value > 1e-6 for found in good)


@pytest.mark.parametrize("name", METHODS)
def test_every_method_of_the_catalog_has_a_diagnosis(name):
    X, _, y = training()
    q = METHODS[name]() if name in ("HDx", "OHDx") else METHODS[name](GaussianNB())
    X_new = sample(1)[0]
    found = q.fit(X, y).diagnose(X_new)
    assert_array_equal(found.estimate, q.predict(X_new))
    assert found.n_items == 1000
    assert json.loads(json.dumps(found.to_dict(), allow_nan=False))["method"] == name
    text = str(found)
    assert len(text.splitlines()) <= 15
    assert "nan" not in text
    assert (found.is_smoothed is None) == (q.smoothing() is None)


def test_scores_and_items_give_the_same_diagnosis():
    X, _, y = training()
    q = oq.OPACC(GaussianNB()).fit(X, y)
    X_new = sample(1)[0]
    assert q.diagnose(X_new).to_dict() == judged(q, q.scores(X_new)).to_dict()


def test_standard_errors_shrink_as_one_over_the_root_of_the_sample_size():
    q = fitted(oq.PACC())
    small, large = (judged(q, sample(2, n, EVEN)[1]).precision.standard_errors for n in (200, 800))
    assert_allclose(small / large, 2, rtol=0.3)


def test_needed_number_of_items_is_enough():
    _, S, y = training(20_000)
    q = oq.PACC().fit_scores(S, y)
    found = judged(q, sample(2, 500, EVEN)[1])
    assert 1.96 * found.precision.standard_errors.max() > 0.02
    assert found.precision.n_needed > 500
    after = judged(q, sample(2, found.precision.n_needed, EVEN)[1])
    assert_allclose(1.96 * after.precision.standard_errors.max(), 0.02, rtol=0.15)
    assert f"About {found.precision.n_needed:,} items are needed" in str(found)


def test_too_few_training_items_are_not_blamed_on_the_sample():
    _, S, y = training(100)
    found = judged(oq.PACC().fit_scores(S, y), sample(2, 5000)[1])
    assert found.precision.n_needed is None
    assert "More training items" in str(found)


def test_similar_classes_are_named():
    rng = generator(0)
    shift = np.array([0, 1, 2, 2.05, 4])  # the third and the fourth are nearly the same

    def scores(codes):
        x = 3 * shift[codes] + rng.normal(size=len(codes))
        density = np.exp(-((x[:, None] - 3 * shift) ** 2) / 2) + 1e-12
        return density / density.sum(axis=1, keepdims=True)

    y, new = np.arange(5000) % 5, np.arange(1000) % 5
    found = judged(oq.PACC().fit_scores(scores(y), y, classes=range(5)), scores(new))
    assert found.precision.confusable == [(2, 3)]
    assert "these pairs are hard to distinguish: 2 and 3" in str(found)
    assert found.precision.unnoticed[2, 3] > 0.1 > found.precision.unnoticed[0, 1]
    assert_allclose(found.precision.unnoticed, found.precision.unnoticed.T)


def test_regularizer_is_active_only_if_it_changes_the_estimate():
    S = sample(4)[1]
    idle, busy = (judged(fitted(oq.OPACC(tau=tau)), S) for tau in (1e-9, 1.0))
    assert not idle.is_smoothed
    assert busy.is_smoothed
    plain = fitted(oq.PACC()).predict_scores(S, oq.Samples.whole(len(S)))[0]
    assert_allclose(busy.smoothing.moved, oq.metrics.nmd(plain, busy.estimate))
    assert_allclose(busy.smoothing.jaggedness_without, oq.simplex.jaggedness(plain))
    assert busy.jaggedness < busy.smoothing.jaggedness_without
    assert "Smoothing: active (tau = 1)" in str(busy)
    assert "not active" in str(idle)
    assert busy.fit.excess_chi2 > idle.fit.excess_chi2


def test_run_reports_its_degrees_of_freedom():
    S = sample(4)[1]
    found = judged(fitted(oq.RUN(n_df=3.5)), S)
    assert_allclose(found.smoothing.freedom, 3.5)
    again = judged(fitted(oq.RUN(tau=found.smoothing.strength)), S)
    assert_allclose(again.smoothing.freedom, 3.5)
    assert_allclose(again.estimate, found.estimate, atol=1e-8)
    assert_allclose(again.smoothing.moved, found.smoothing.moved, atol=1e-8)


def test_matrix_is_that_of_the_method_or_of_the_mean_scores():
    S = sample(4)[1]
    pacc = fitted(oq.PACC())
    found = judged(pacc, S)
    assert_array_equal(found.matrix, pacc.M_)
    assert_allclose(found.condition_number, np.linalg.cond(pacc.M_))
    for other in (oq.SLD(), oq.CC(), oq.EDy()):
        assert_allclose(judged(fitted(other), S).matrix, pacc.M_)
    ax = found.plot()
    assert ax.figure is not None


def test_parts_that_do_not_apply_are_replaced_by_a_reason():
    S = sample(4)[1]
    votes = np.eye(N_CLASSES)[training()[1].argmax(axis=1)]
    on_votes = oq.ACC().fit_scores(votes, training()[2])
    found = judged(on_votes, np.eye(N_CLASSES)[S.argmax(axis=1)])
    assert found.fit is None
    assert "votes have only as many values" in str(found)
    small = judged(fitted(oq.PACC()), S[:20])
    assert small.fit is None
    assert "the sample is too small, it takes at least 50 items" in str(small)
    forgetful = fitted(oq.CC())
    del forgetful.held_out_
    bare = judged(forgetful, S)
    assert bare.matrix is None
    assert "keeps no scores" in str(bare)
    with pytest.raises(ValueError, match="plot needs a matrix M"):
        bare.plot()


def test_features_without_matrix_have_no_figure():
    X, _, y = training()
    q = oq.ComposedQuantifier(MeanDistances("euclidean", on="features"), Energy()).fit(X, y)
    found = q.diagnose(sample(4)[0])
    assert found.matrix is None
    assert found.condition_number is None


def test_diagnosis_cannot_be_changed():
    found = judged(fitted(oq.PACC()), sample(4)[1])
    assert isinstance(found, Diagnosis)
    with pytest.raises(AttributeError):
        found.fit = None


@pytest.mark.parametrize("bad", [np.empty((0, N_CLASSES)), np.full((3, N_CLASSES), np.nan), np.ones((3, 2))])
def test_bad_scores_are_rejected(bad):
    with pytest.raises(ValueError, match=r"S must|rows of S"):
        judged(fitted(oq.PACC()), bad)


def test_moments_of_classes_follow_their_definition(rng):
    F, codes = rng.normal(size=(60, 3)), np.arange(60) % 4
    moments = class_moments(F, codes, 4)
    assert_allclose(moments.M[:, 2], F[codes == 2].mean(axis=0))
    assert_allclose(moments.E[1], F[codes == 1].T @ F[codes == 1] / 15)
    p = np.array([0.1, 0.2, 0.3, 0.4])
    v = moments.M @ p
    exact = np.tensordot(p, moments.E, 1) - np.outer(v, v)
    assert_allclose(moments.covariance(p, 1e12), np.tensordot(p**2 / 15, moments.V, 1), atol=1e-11)
    assert_allclose(moments.covariance(p, 10) - moments.covariance(p, 1e12), exact / 10, atol=1e-11)


def test_covariance_on_the_simplex_is_that_of_a_multinomial():
    p, N = np.array([0.2, 0.3, 0.5]), 100
    assert_allclose(covariance_on_simplex(N * np.diag(1 / p)), (np.diag(p) - np.outer(p, p)) / N)
