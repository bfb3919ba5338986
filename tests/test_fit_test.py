"""The fit of every group, tested in closed form from sums: the column `fit` of estimates."""

import pickle

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.stats import binom
from sklearn.naive_bayes import GaussianNB

import ordinalq as oq
from ordinalq.inference import fit_test
from ordinalq.inference.diagnosis import diagnose
from ordinalq.inference.fit_test import FitTest, ScoreChecks, checked, class_moments, compare, score_checks
from ordinalq.inference.model import learned_groups
from ordinalq.inference.predict import estimate

N_CLASSES = 4


def items(rng, codes, scale=1.0, moved=0.0):
    return codes[:, None] + scale * rng.normal(size=(len(codes), 3)) * [1.0, 1.5, 2.0] + moved


def posteriors(X):
    """Return the scores of a classifier that knows the classes, for a uniform prior."""
    log = -((X[:, :, None] - np.arange(N_CLASSES)) ** 2 / (2 * np.array([[1.0], [1.5], [2.0]]) ** 2)).sum(axis=1)
    density = np.exp(log - log.max(axis=1, keepdims=True))
    return density / density.sum(axis=1, keepdims=True)


def fitted(rng, method=None, n_items=4000):
    codes = np.arange(n_items) % N_CLASSES
    return (method or oq.PACC()).fit_scores(posteriors(items(rng, codes)), codes)


def groups(rng, n_groups, size, **changes):
    """Return scores and groups, each with another mixture."""
    P = rng.dirichlet(np.ones(N_CLASSES), n_groups)
    place = np.repeat(np.arange(n_groups), size)
    codes = (rng.random(len(place))[:, None] > np.cumsum(P, axis=1)[place]).sum(axis=1).clip(max=N_CLASSES - 1)
    return posteriors(items(rng, codes, **changes)), oq.Samples.from_groups(place)


def differing(rng, n_groups, size):
    """Return scores, codes and groups whose items scatter less or more."""
    place = np.repeat(np.arange(n_groups), size)
    P = rng.dirichlet(np.full(N_CLASSES, 5.0), n_groups)
    codes = (rng.random(len(place))[:, None] > np.cumsum(P, axis=1)[place]).sum(axis=1).clip(max=N_CLASSES - 1)
    scale = np.exp(0.5 * rng.normal(size=(n_groups, 1)))[place]
    return posteriors(items(rng, codes, scale)), codes, place


@pytest.mark.parametrize(("size", "lowest"), [(50, 0.0), (400, 0.3)])
def test_p_values_of_mixtures_are_uniform_without_tolerance(rng, size, lowest, monkeypatch):
    monkeypatch.setattr(fit_test, "TOLERANCE", 0.0)
    q = fitted(rng, n_items=40_000)
    S, samples = groups(rng, 1500, size)
    p = FitTest.of(q).p_values(q.summarize(S, samples))
    # Groups share the noise of the training items: over 24 seeds the mean is .50 +- .013 for groups of 400. In small
    # ones the kurtosis, which few items decide, may spread the law so far that the mean falls (.38 to .53); then the
    # test rejects less. Covariances that are wrong by a factor of two give means of .1 and .8.
    assert lowest < p.mean() < 0.6
    # .038 +- .015 and .048 +- .009
    assert (p < 0.05).mean() < 0.12


def test_statistic_is_the_residual_of_generalized_least_squares(rng, monkeypatch):
    monkeypatch.setattr(fit_test, "TOLERANCE", 0.0)
    asked = {}

    def recorded(freedom, chi2):
        asked["freedom"] = freedom
        return chi2

    monkeypatch.setattr(fit_test, "chdtrc", recorded)
    q = fitted(rng)
    S, samples = groups(rng, 3, 200)
    summary = q.summarize(S, samples)
    test, known = FitTest.of(q), checked(q)
    chi2 = test._replace(kurtosis=0.0).p_values(summary)
    # As many degrees of freedom as functions beyond the n - 1 free shares.
    np.testing.assert_allclose(asked["freedom"], known.g.shape[1] - (N_CLASSES - 1), rtol=1e-12)
    moments = class_moments(known.g, known.codes, N_CLASSES)
    mean = summary.mean("checks")
    P = fit_test.composition(fit_test.clean(mean @ test.R + test.r), summary.n_items)
    for b in range(3):
        C = np.tensordot(P[b] / 200 + P[b] ** 2 / moments.counts, moments.V, axes=1)
        half = np.linalg.inv(np.linalg.cholesky(C))
        # Shares sum to one: the last one is what the others leave.
        A, y = half @ (moments.M[:, :-1] - moments.M[:, -1:]), half @ (known.means(summary)[b] - moments.M[:, -1])
        assert_allclose(chi2[b], ((y - A @ np.linalg.lstsq(A, y, rcond=None)[0]) ** 2).sum(), rtol=1e-6)


@pytest.mark.parametrize("method", [oq.PACC(), oq.OPACC(), oq.CC(), oq.SLD(), oq.EDy(), oq.RUN(), oq.GroupBLP()])
def test_mixtures_fit_and_changed_items_do_not(rng, method):
    q = fitted(rng, method)
    good = estimate(q, q.summarize(*groups(rng, 200, 300))).fit
    # At most the level is expected. With what the test tolerates it is half of that (60 seeds: .026 +- .015), which
    # leaves room for the noise of the training items, the same for all groups.
    assert (good != "good").sum() <= binom.isf(1e-6, 200, fit_test.DOUBTFUL_LEVEL)
    bad = estimate(q, q.summarize(*groups(rng, 50, 1000, scale=3.0))).fit
    assert (bad == "bad").mean() > 0.9


def test_verdict_belongs_to_the_scores_not_to_the_method(rng):
    S, samples = groups(rng, 60, 100, moved=0.4)
    codes = np.arange(4000) % N_CLASSES
    V = posteriors(items(rng, codes))
    found = [(q, q.summarize(S, samples)) for q in (m().fit_scores(V, codes) for m in (oq.PACC, oq.CC, oq.OSLD))]
    first, *others = (estimate(*one).fit for one in found)
    for other in others:
        assert_array_equal(first, other)


def test_error_along_the_columns_of_m_leaves_no_residual(rng):
    """A good fit proves nothing: items that look like those of the next class are another mixture."""
    q = fitted(rng)
    codes = np.minimum(np.arange(40_000) % N_CLASSES + 1, N_CLASSES - 1)
    found = estimate(q, q.summarize(posteriors(items(rng, codes)), oq.Samples.from_groups(np.arange(40_000) // 400)))
    # Over 30 seeds .97 +- .04 fit well, and the largest deviation is .10 +- .016.
    assert (found.fit == "good").mean() >= 0.7
    assert (np.abs(found.mean - codes.mean()) < 0.2).all()


def test_group_effect_that_is_known_is_ordinary(rng):
    S, y, place = differing(rng, 80, 500)
    without, knowing = oq.PACC().fit_scores(S, y), oq.PACC().fit_scores(S, y, groups=place)
    assert not learned_groups(without)
    assert learned_groups(knowing)
    T, _, new = differing(rng, 100, 500)
    samples = oq.Samples.from_groups(new)
    marked = [(estimate(q, q.summarize(T, samples)).fit != "good").mean() for q in (without, knowing)]
    # Over 20 seeds .40 +- .04 and .02 +- .014.
    assert marked[1] < 0.1 < 0.15 < marked[0]
    bad, usual = (diagnose(q, q.summarize(T[new == 0])) for q in (without, knowing))
    assert usual.fit.p_value > bad.fit.p_value
    assert usual.precision.standard_errors.max() > bad.precision.standard_errors.max()
    assert "how groups differ" in str(usual)


def test_sums_in_chunks_give_the_same_verdicts(rng):
    q = fitted(rng)
    S, samples = groups(rng, 30, 60, moved=0.5)
    place = np.repeat(np.arange(30), 60)
    parts = [q.summarize(S[rows], oq.Samples.from_groups(place[rows])) for rows in np.array_split(np.arange(1800), 7)]
    whole = estimate(q, q.summarize(S, samples))
    assert_array_equal(estimate(q, oq.samples.Summary.merged(parts)).fit, whole.fit)
    assert whole.frame()["fit"].tolist() == whole.fit.tolist()
    assert whole.to_json()["groups"][3]["fit"] == whole.fit[3]


def test_fits_that_cannot_be_tested_are_reported(rng):
    q = fitted(rng)
    S, samples = groups(rng, 5, 8)
    assert (estimate(q, q.summarize(S, samples)).fit == "too few items").all()
    assert estimate(q, q.summarize(S, samples, checks=False)).fit is None
    votes = np.eye(N_CLASSES)[np.arange(400) % N_CLASSES]
    few = oq.CC().fit_scores(votes, np.arange(400) % N_CLASSES)
    assert estimate(few, few.summarize(votes)).fit is None


def test_methods_on_features_and_trees_are_tested_too(rng):
    codes = np.arange(1200) % N_CLASSES
    X = items(rng, codes)
    for method in (oq.HDx(), oq.OQT(GaussianNB())):
        found = method.fit(X, codes).predict_groups(X, np.arange(1200) % 3)
        assert set(found.fit) <= {"good", "doubtful", "bad"}


def test_degrees_of_freedom_are_those_that_the_mixture_leaves(rng):
    codes = np.arange(8000) % N_CLASSES
    known = checked(oq.PACC().fit_scores(posteriors(items(rng, codes)), codes))
    moments = class_moments(known.g, codes, N_CLASSES)
    p, N, n_samples = np.array([0.3, 0.3, 0.2, 0.2]), 3000, 600
    excess = []
    # Means with exactly the law that the test assumes: neither tails of single items nor an error of M is in the way.
    for mean in rng.multivariate_normal(moments.M @ p, moments.covariance(p, N), n_samples):
        fit, _ = compare(moments, mean, N, p)
        # Inside of the simplex all shares but one are free.
        assert fit.degrees_of_freedom == known.g.shape[1] - (fit.best_mixture > 0).sum() + 1
        excess.append(fit.chi2 - fit.degrees_of_freedom)
    # A chi-square variable has its degrees of freedom as mean, here up to 4.7 standard errors, which are less than one.
    error = np.sqrt(2 * fit.degrees_of_freedom / n_samples)
    assert abs(np.mean(excess)) < 4.7 * error < 1


def test_test_is_derived_once_and_again_after_another_fit(rng, monkeypatch):
    made = []
    monkeypatch.setattr(fit_test, "checked", lambda quantifier: made.append(quantifier) or checked(quantifier))
    q = fitted(rng)
    summary = q.summarize(*groups(rng, 5, 60))
    first = estimate(q, summary).fit
    assert_array_equal(estimate(q, summary).fit, first)
    assert len(made) == 1
    assert "_derived" in vars(q.held_out_)
    assert "_derived" not in vars(pickle.loads(pickle.dumps(q)).held_out_)
    other = fitted(rng, q)
    assert_array_equal(score_checks(other).rank_edges, ScoreChecks.of(other.held_out_).rank_edges)
    estimate(other, other.summarize(*groups(rng, 5, 60)))
    assert len(made) == 2
