"""Weights of items: none of them changes what they should not, and each method hears of them."""

import json
import warnings

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn import config_context
from sklearn.linear_model import LogisticRegression
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import ordinalq as oq
from ordinalq.cli import main
from ordinalq.inference.bootstrap import ClassPools
from ordinalq.inference.model import Traits
from ordinalq.inference.predict import estimate
from ordinalq.losses import Energy, LeastSquares
from ordinalq.representations import MeanDistances, Partition
from ordinalq.samples.summary import Summary
from ordinalq.samples.weights import Weights, effective_counts

N_CLASSES = 4
# Compositions without a class: other distances, calibrations, solvers, penalties and instruments.
VARIANTS = {
    "EDy euclidean": lambda: oq.EDy(distance="euclidean"),
    "EDx": lambda: oq.ComposedQuantifier(MeanDistances("euclidean", on="features"), Energy()),
    "SLD bcts": lambda: oq.SLD(calibration="bcts"),
    "SLD newton": lambda: oq.SLD(tau=0.01),
    "RUN n_df": lambda: oq.RUN(n_df=3),
    "RUN acceptance": lambda: oq.RUN(acceptance=[0.2, 0.4, 0.6, 0.8]),
    "AdjustedML uniform": lambda: oq.AdjustedML(instrument="uniform"),
    "AdjustedML training": lambda: oq.AdjustedML(instrument="training", prior="training"),
    "GroupBLP stated": lambda: oq.GroupBLP(group_effect=0.1),
    "OPDF data": lambda: oq.OPDF(span="data"),
}
MAKERS = {e.name: e.cls for e in oq.catalog(beyond=True) if e.cls().traits.accepts_scores} | VARIANTS
each_maker = pytest.mark.parametrize("make", MAKERS.values(), ids=MAKERS)


def scores(rng, y):
    """Return posteriors under equal class frequencies of items z ~ N(y, 1), (N, n)."""
    z = y + rng.normal(size=len(y))
    E = np.exp(-((z[:, None] - np.arange(N_CLASSES)) ** 2) / 2)
    return E / E.sum(axis=1, keepdims=True)


@pytest.fixture
def data(rng):
    """Return scores and codes of 400 items, scores of 240 others in six groups."""
    y = np.arange(400) % N_CLASSES
    return scores(rng, y), y, scores(rng, rng.integers(0, N_CLASSES, 240)), np.arange(240) % 6


def estimates(quantifier, T, groups, level=None, **how):
    summary = quantifier.summarize(T, oq.Samples.from_groups(groups), **how)
    if type(quantifier).__name__.endswith(("HDx", "HDy")):
        level = None  # their replicates take seconds, and are drawn as all others are
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # a method that does not converge is not what these tests are about
        return estimate(quantifier, summary, level, oq.inference.IntervalOptions(n_replicates=20))


def assert_same(a, b, atol=1e-12):
    assert_allclose(a.prevalences, b.prevalences, atol=atol, rtol=0)
    if a.bounds is not None:
        assert_allclose(a.lower, b.lower, atol=atol, rtol=0)
        assert_allclose(a.upper, b.upper, atol=atol, rtol=0)
        assert_allclose(a.bounds.mean_upper, b.bounds.mean_upper, atol=atol, rtol=0)
    assert_array_equal(a.n_items, b.n_items)
    assert a.keys.tolist() == b.keys.tolist()


@each_maker
def test_weight_zero_equals_removal(make, data, rng):
    S, y, T, groups = data
    w, v = rng.lognormal(size=len(S)), rng.lognormal(size=len(T))
    w[::5] = v[::3] = 0
    v[groups == 4] = 0
    one = estimates(make().fit_scores(S, y, sample_weight=w), T, groups, 0.95, sample_weight=v)
    kept, left = w > 0, v > 0
    other = make().fit_scores(S[kept], y[kept], sample_weight=w[kept])
    assert_same(one, estimates(other, T[left], groups[left], 0.95, sample_weight=v[left]))


@each_maker
def test_equal_weights_equal_none(make, data):
    S, y, T, groups = data
    one = make().fit_scores(S, y, sample_weight=np.full(len(S), 3.7))
    other = make().fit_scores(S, y)
    found = estimates(one, T, groups, 0.95, sample_weight=np.full(len(T), 0.3))
    assert_same(found, estimates(other, T, groups, 0.95), atol=1e-12)
    assert_allclose(found.n_effective, found.n_items)


@each_maker
def test_frequencies_equal_repetition(make, data, rng):
    S, y, T, groups = data
    k, m = rng.integers(0, 4, len(S)), rng.integers(0, 4, len(T))
    one = make().fit_scores(S, y, sample_weight=k, weight_type="frequency")
    other = make().fit_scores(np.repeat(S, k, axis=0), np.repeat(y, k))
    # Replicates of the held-out items are drawn by their weights: the same random numbers lead to the same items.
    found = estimates(one, T, groups, 0.95, sample_weight=m, weight_type="frequency")
    assert_same(
        found,
        estimates(other, np.repeat(T, m, axis=0), np.repeat(groups, m), 0.95),
        atol=1e-10,
    )
    assert found.n_effective is None


@each_maker
def test_scale_of_survey_weights_does_not_matter(make, data, rng):
    S, y, T, groups = data
    w, v = rng.lognormal(size=len(S)), rng.lognormal(size=len(T))
    one = estimates(make().fit_scores(S, y, sample_weight=w), T, groups, 0.95, sample_weight=v)
    other = estimates(make().fit_scores(S, y, sample_weight=1e3 * w), T, groups, 0.95, sample_weight=1e-3 * v)
    assert_same(one, other, atol=1e-10)


@pytest.mark.parametrize("scale", [1e-300, 1e-170, 1e170, 1e300])
@pytest.mark.parametrize("name", ["PACC", "SLD", "AdjustedML", "GroupBLP", "OSLD"])
def test_survey_weights_may_have_any_unit(name, scale, data, rng, tmp_path):
    S, y, T, groups = data
    w, v = rng.uniform(0.5, 2, len(S)), rng.uniform(0.5, 2, len(T))
    labels = np.where(rng.random(len(T)) < 0.4, rng.integers(0, N_CLASSES, len(T)), np.nan)
    how = {"labels": labels, "level": 0.95}
    one = MAKERS[name]().fit_scores(S, y, sample_weight=w)
    other = MAKERS[name]().fit_scores(S, y, sample_weight=scale * w)
    expected = estimates(one, T, groups, sample_weight=v, **how)
    assert_same(estimates(other, T, groups, sample_weight=scale * v, **how), expected, atol=1e-9)
    # In chunks and files, whose weights may be of different units inside.
    parts = []
    for rows in (slice(100), slice(100, None)):
        samples, large = oq.Samples.from_groups(groups[rows]), scale * v[rows]
        parts.append(other.summarize(T[rows], samples, sample_weight=large, labels=labels[rows]))
    parts[0].save(tmp_path / "part.npz")
    summary = Summary.load(tmp_path / "part.npz").merge(parts[1])
    options = oq.inference.IntervalOptions(n_replicates=20)
    whole = other.summarize(T, oq.Samples.from_groups(groups), sample_weight=scale * v, labels=labels)
    assert_same(estimate(other, summary, 0.95, options), estimate(other, whole, 0.95, options), atol=1e-6)


def test_a_group_with_vanishing_weights_is_rejected(data):
    S, y, T, groups = data
    q = oq.PACC().fit_scores(S, y)
    with pytest.raises(ValueError, match="Pass weights with a mean of about 1"):
        q.summarize(T, oq.Samples.from_groups(groups), sample_weight=np.where(groups == 2, 1e-200, 1.0))


@pytest.mark.parametrize("name", ["PACC", "OSLD", "GroupBLP", "EDy", "AdjustedML", "CC"])
def test_training_groups_with_weights(name, data, rng):
    S, y, T, groups = data
    make, places = MAKERS[name], np.arange(len(S)) % 23
    w = rng.lognormal(size=len(S))
    w[::5] = 0
    kept = w > 0
    one = make().fit_scores(S, y, groups=places, sample_weight=w)
    other = make().fit_scores(S[kept], y[kept], groups=places[kept], sample_weight=w[kept])
    assert_same(estimates(one, T, groups, 0.95), estimates(other, T, groups, 0.95))
    k = rng.integers(0, 4, len(S))
    one = make().fit_scores(S, y, groups=places, sample_weight=k, weight_type="frequency")
    other = make().fit_scores(np.repeat(S, k, axis=0), np.repeat(y, k), groups=np.repeat(places, k))
    assert_same(estimates(one, T, groups, 0.95), estimates(other, T, groups, 0.95), atol=1e-8)
    plain = make().fit_scores(S, y, groups=places)
    equal = make().fit_scores(S, y, groups=places, sample_weight=np.full(len(S), 0.2))
    assert_same(estimates(plain, T, groups, 0.95), estimates(equal, T, groups, 0.95), atol=1e-10)


@pytest.mark.parametrize("name", ["PACC", "SLD", "GroupBLP"])
def test_labels_of_weighted_items(name, data, rng):
    S, y, T, groups = data
    quantifier = MAKERS[name]().fit_scores(S, y)
    labels = np.where(rng.random(len(T)) < 0.5, rng.integers(0, N_CLASSES, len(T)), -1)
    known = [None if label < 0 else int(label) for label in labels]
    m = rng.integers(0, 4, len(T))
    one = estimates(quantifier, T, groups, 0.95, labels=known, sample_weight=m, weight_type="frequency")
    repeated = [label for label, often in zip(known, m, strict=True) for _ in range(often)]
    other = estimates(quantifier, np.repeat(T, m, axis=0), np.repeat(groups, m), 0.95, labels=repeated)
    assert_allclose(one.prevalences, other.prevalences, atol=1e-10)
    assert_allclose(one.upper, other.upper, atol=1e-10)
    v = rng.lognormal(size=len(T))
    every = estimates(quantifier, T, groups, 0.95, labels=np.abs(labels), sample_weight=v)
    truth = oq.Samples.from_groups(groups).weighted(Weights(v)).average(np.eye(N_CLASSES)[np.abs(labels)])
    assert_allclose(every.prevalences, truth, atol=1e-6)


def test_means_are_weighted(data, rng):
    S, y, T, groups = data
    v = rng.lognormal(size=len(T))
    pcc = oq.PCC().fit_scores(S, y)
    expected = [np.average(T[groups == g], axis=0, weights=v[groups == g]) for g in range(6)]
    found = estimates(pcc, T, groups, sample_weight=v)
    assert_allclose(found.prevalences, expected)
    sizes = [v[groups == g].sum() ** 2 / (v[groups == g] ** 2).sum() for g in range(6)]
    assert_allclose(found.frame()["n_effective"], sizes)
    w = rng.lognormal(size=len(S))
    M = oq.PACC().fit_scores(S, y, sample_weight=w).M_
    assert_allclose(M, np.transpose([np.average(S[y == c], axis=0, weights=w[y == c]) for c in range(N_CLASSES)]))


def test_likelihood_of_counts_takes_the_effective_size(data):
    S, y, T, _ = data
    w = np.where(np.arange(len(T)) % 2, 1.0, 3.0)
    run = oq.RUN(tau=10).fit_scores(S, y)
    summary = run.summarize(T, sample_weight=w)
    assert_allclose(summary.sizes, 0.8 * len(T))
    again = Summary(summary.n_items, {**summary.totals, "weight2": summary.totals["weight"] ** 2 / (0.8 * len(T))})
    assert_allclose(run.solve(summary).p, run.solve(again).p, atol=1e-12)
    # A sample that is worth less is smoothed more.
    less = run.summarize(T, sample_weight=w, weight_type="frequency")
    assert np.abs(run.solve(less).p - run.solve(summary).p).max() > 1e-6


def test_summaries_of_chunks_with_weights_merge(data, rng, tmp_path):
    S, y, T, groups = data
    v, half = rng.lognormal(size=len(T)), np.arange(len(T)) < 100
    for quantifier in (oq.PACC().fit_scores(S, y), oq.SLD().fit_scores(S, y)):
        parts = [
            quantifier.summarize(T[part], oq.Samples.from_groups(groups[part]), sample_weight=v[part])
            for part in (half, ~half)
        ]
        parts[0].save(tmp_path / "first")
        merged = Summary.load(tmp_path / "first").merge(parts[1])
        whole = quantifier.summarize(T, oq.Samples.from_groups(groups), sample_weight=v)
        assert_allclose(merged.sizes, whole.sizes)
        assert_allclose(quantifier.solve(merged).p, quantifier.solve(whole).p, atol=1e-12)


def test_items_of_large_weight_are_drawn_more_often(rng):
    codes, w = np.array([0, 0, 0, 1, 1]), np.array([1.0, 2.0, 5.0, 3.0, 1.0])
    V = ClassPools(np.zeros((5, 2)), codes, 2, Weights(w))
    drawn = V.draw(np.array([[80_000, 40_000]]), rng)
    counts = np.bincount(drawn.items, minlength=5)
    assert counts[:3].sum() == 80_000
    # Five standard deviations.
    assert_allclose(counts, [10_000, 20_000, 50_000, 30_000, 10_000], atol=5 * np.sqrt(20_000))
    assert_allclose(V.counts, [64 / 30, 16 / 10])


def test_classifiers_that_take_weights_get_them(rng):
    X, y = rng.normal(size=(300, 2)), np.arange(300) % 3
    X[:, 0] += y
    w = rng.lognormal(size=300)
    one = oq.PACC(oq.classifiers.CrossFitted(GaussianNB(), cv=3)).fit(X, y, sample_weight=w)
    by_hand = oq.classifiers.CrossFitted(GaussianNB(), cv=3).fit(X, y, sample_weight=w / w.mean())
    assert_allclose(one.classifier_.held_out_scores_, by_hand.held_out_scores_)
    assert (
        np.abs(
            one.classifier_.held_out_scores_ - oq.classifiers.CrossFitted(GaussianNB(), cv=3).fit(X, y).held_out_scores_
        ).max()
        > 0.01
    )
    pipe = make_pipeline(StandardScaler(), LogisticRegression())
    piped = oq.PACC(oq.classifiers.CrossFitted(pipe, cv=3)).fit(X, y, sample_weight=w)
    with config_context(enable_metadata_routing=True):
        routed = oq.PACC(oq.classifiers.CrossFitted(pipe, cv=3)).fit(X, y, sample_weight=w)
    assert_allclose(piped.classifier_.held_out_scores_, routed.classifier_.held_out_scores_)
    plain = oq.PACC(oq.classifiers.CrossFitted(pipe, cv=3)).fit(X, y)
    assert np.abs(piped.classifier_.held_out_scores_ - plain.classifier_.held_out_scores_).max() > 0.01
    with pytest.warns(UserWarning, match=r"Weights are not used to fit the classifier \(KNeighborsClassifier\)"):
        oq.PACC(oq.classifiers.CrossFitted(KNeighborsClassifier(), cv=3)).fit(X, y, sample_weight=w)


@pytest.mark.parametrize("method", [oq.OQT, oq.ARC, oq.PACC, oq.HDx])
def test_methods_on_items_take_weights(method, rng):
    X, y = rng.normal(size=(300, 2)), np.arange(300) % 3
    X[:, 0] += y
    w = rng.lognormal(size=300)
    classifier = {} if method is oq.HDx else {"classifier": oq.classifiers.CrossFitted(GaussianNB(), cv=3)}
    weighted, plain = method(**classifier).fit(X, y, sample_weight=w), method(**classifier).fit(X, y)
    equal = method(**classifier).fit(X, y, sample_weight=np.full(300, 2.0))
    assert_allclose(equal.predict(X), plain.predict(X), atol=1e-9)
    assert np.abs(weighted.predict(X) - plain.predict(X)).max() > 1e-4
    assert_allclose(weighted.p_train_, np.bincount(y, weights=w) / w.sum())
    index = np.arange(100).reshape(2, 50)
    found = weighted.predict_samples(X, index, sample_weight=w)
    assert_allclose(found[0], weighted.predict(X[:50], sample_weight=w[:50]), atol=1e-9)
    assert weighted.diagnose(X, sample_weight=w).n_items == 300
    interval = weighted.predict_interval(X, sample_weight=w, options=oq.inference.IntervalOptions(n_replicates=20))
    assert (interval.upper - interval.lower > 0).all()


def test_strength_is_chosen_on_weighted_samples(data, rng):
    S, y, _, _ = data
    plain = oq.OPACC(tau="auto").fit_scores(S, y)
    equal = oq.OPACC(tau="auto").fit_scores(S, y, sample_weight=np.full(len(S), 2.0))
    assert_allclose(equal.tuning_.errors, plain.tuning_.errors, atol=1e-10)
    weighted = oq.OPACC(tau="auto").fit_scores(S, y, sample_weight=rng.lognormal(size=len(S)))
    # Samples have a smaller effective size.
    assert weighted.tuning_.errors.min() > plain.tuning_.errors.min()
    # Groups that differ.
    places, auto = (
        np.arange(len(S)) % N_CLASSES * 3 + rng.integers(0, 5, len(S)),
        oq.regularizers.AutoStrength(min_items=5),
    )
    plain = oq.OPACC(tau=auto).fit_scores(S, y, groups=places)
    equal = oq.OPACC(tau=auto).fit_scores(S, y, groups=places, sample_weight=np.full(len(S), 2.0))
    assert_allclose(equal.tuning_.errors, plain.tuning_.errors, atol=1e-10)


def test_partition_takes_weights(rng):
    X, y = rng.normal(size=(300, 2)), np.arange(300) % 3
    X[:, 0] += y
    tree = oq.ComposedQuantifier(Partition(8), LeastSquares())
    assert_allclose(
        tree.fit(X, y, sample_weight=np.full(300, 5.0)).M_,
        oq.ComposedQuantifier(Partition(8), LeastSquares()).fit(X, y).M_,
    )


@pytest.mark.parametrize(
    ("weight", "message"),
    [
        ([1.0, -1.0, 1.0], "finite numbers >= 0, got -1 for item 1"),
        ([1.0, np.nan, 1.0], "got nan for item 1"),
        ([np.inf, 1.0, 1.0], "got inf for item 0"),
        ([0.0, 0.0, 0.0], "all are zero"),
        ([1.0, 1.0], "one number per item, 3, got 2"),
        ([[1.0], [1.0], [1.0]], "must be 1D"),
        (1.0, "must be 1D"),
    ],
)
def test_wrong_weights_are_rejected(weight, message):
    S = np.eye(3) * 0.7 + 0.1
    with pytest.raises(ValueError, match=message):
        oq.PACC().fit_scores(S, [1, 2, 3], sample_weight=weight)
    fitted = oq.PACC().fit_scores(S, [1, 2, 3])
    with pytest.raises(ValueError, match=message):
        fitted.predict_scores(S, [[0, 1, 2]], sample_weight=weight)


def test_weight_types_are_checked_and_words_are_rejected():
    S = np.eye(3) * 0.7 + 0.1
    with pytest.raises(ValueError, match="weight_type must be one of 'survey', 'frequency', got 'count'"):
        oq.PACC().fit_scores(S, [1, 2, 3], weight_type="count")
    with pytest.raises(TypeError, match="sample_weight must be one number per item"):
        oq.PACC().fit_scores(S, [1, 2, 3], sample_weight=["a", "b", "c"])
    fitted = oq.PACC().fit_scores(S, [1, 2, 3])
    with pytest.raises(ValueError, match="some item of every sample, but sample 1 has none"):
        fitted.predict_scores(S, [[0, 1], [2, 2]], sample_weight=[1.0, 1.0, 0.0])


def test_a_class_without_weight_is_missing(data):
    S, y, _, _ = data
    with pytest.raises(ValueError, match="at least one item of every class"):
        oq.PACC().fit_scores(S, y, classes=[0, 1, 2, 3], sample_weight=(y != 2).astype(float))


def test_methods_without_support_for_weights_reject_them(data):
    class Own(oq.PCC):
        @property
        def traits(self):
            return Traits(adjusts=False)

    S, y, T, _ = data
    assert Own().fit_scores(S, y).predict_scores(T, [[0, 1]]).shape == (1, N_CLASSES)
    with pytest.raises(TypeError, match="sample_weight must be None with Own, which does not accept weights"):
        Own().fit_scores(S, y, sample_weight=np.ones(len(S)))


def test_effective_counts_keep_shares_and_variance():
    contents, variances = np.array([30.0, 60.0, 10.0]), np.array([90.0, 120.0, 40.0])
    counts = effective_counts(contents, variances)
    assert_allclose(counts / counts.sum(), contents / contents.sum())
    # The relative variance of the sum of Poisson counts is one over it.
    assert_allclose(1 / counts.sum(), variances.sum() / contents.sum() ** 2)
    assert_array_equal(effective_counts([3.0, 4.0], [3.0, 4.0]), [3, 4])
    with pytest.raises(ValueError, match="shape"):
        effective_counts([1.0, 2.0], [1.0])


def test_weighted_histograms_are_worth_fewer_items(rng):
    hist = pytest.importorskip("hist")
    M = np.array([[0.8, 0.2, 0.1], [0.1, 0.6, 0.2], [0.1, 0.2, 0.7]])
    x, w = rng.integers(0, 3, 500), rng.lognormal(size=500)
    q = hist.Hist(hist.axis.Integer(0, 3), storage=hist.storage.Weight())
    q.fill(x, weight=w)
    effective = effective_counts(q.values(), q.variances())
    assert_allclose(effective.sum(), w.sum() ** 2 / (w**2).sum())
    run = oq.RUN(tau=10)
    expected = oq.solve(effective / effective.sum(), M, run, N=effective.sum())
    assert_allclose(oq.solve(q, M, run), expected, atol=1e-9)
    assert_allclose(oq.solve(q.values(), M, run, variances=q.variances()), expected, atol=1e-9)
    # Counts are in units of the weights, and so is a background.
    assert_allclose(oq.solve(q, M, run, counts=True).sum(), w.sum())
    fifth = 0.2 * q.values()
    assert_allclose(oq.solve(q, M, oq.ACC(), background=fifth, counts=True).sum(), 0.8 * w.sum())
    # With equal weights nothing changes but the unit.
    q.reset()
    q.fill(x, weight=2.5)
    assert_allclose(oq.solve(q, M, run), oq.solve(np.bincount(x), M, run), atol=1e-9)


def test_counts_that_are_not_whole_numbers_are_noted():
    M = [[0.9, 0.2], [0.1, 0.8]]
    with pytest.warns(UserWarning, match="counts that are not whole numbers"):
        oq.solve([10.5, 20.25], M, oq.RUN(order=0))
    # No warning if it makes no difference or is settled.
    oq.solve([10.5, 20.25], M, oq.ACC())
    oq.solve([10.5, 20.25], M, oq.RUN(order=0), N=30.75)
    oq.solve([0.25, 0.75], M, oq.RUN(order=0), N=100)
    oq.solve([10.0, 20.0], M, oq.RUN(order=0))


def test_subtracted_counts_trigger_a_note_about_the_background():
    M = [[0.9, 0.2], [0.1, 0.8]]
    with pytest.raises(ValueError, match=r"background was subtracted, give what was observed, and background="):
        oq.solve([-3.0, 20.0], M, oq.ACC())
    with pytest.raises(ValueError, match="variances must have the shape of q"):
        oq.solve([3.0, 20.0], M, oq.ACC(), variances=[1.0])
    with pytest.raises(ValueError, match="variances must be None if q are fractions"):
        oq.solve([0.3, 0.7], M, oq.ACC(), variances=[0.1, 0.1])


# Tables and the command line.


def table(rng, n=400):
    y = rng.integers(1, 4, n)
    return pd.DataFrame(
        {"x": y + rng.normal(size=n), "stars": y, "shop": rng.choice(["a", "b", "c"], n), "w": rng.integers(0, 4, n)}
    )


def test_weights_of_a_table(rng, tmp_path):
    frame, new = table(rng), table(rng)
    quantifier = oq.PACC(oq.classifiers.CrossFitted(GaussianNB(), cv=3))
    model = oq.TableModel(quantifier, features=["x"]).fit(frame, "stars", sample_weight="w")
    kept = frame[frame["w"] > 0]
    assert model.n_items_ == len(kept)
    assert_allclose(
        model.fitted().p_train_, np.bincount(kept["stars"] - 1, weights=kept["w"]) / kept["w"].sum(), atol=1e-12
    )
    assert oq.TableModel(quantifier).fit(frame, "stars", by="shop", sample_weight="w").kinds_ == {"x": "number"}
    found = model.predict_groups(
        new, "shop", sample_weight="w", level=0.9, options=oq.inference.IntervalOptions(n_replicates=20)
    )
    by_values = model.predict_groups(
        new, "shop", sample_weight=new["w"].to_numpy(), level=0.9, options=oq.inference.IntervalOptions(n_replicates=20)
    )
    assert_allclose(found.upper, by_values.upper)
    repeated = new.loc[new.index.repeat(new["w"])]
    counted = model.predict_groups(new, "shop", sample_weight="w", weight_type="frequency")
    with pytest.warns(UserWarning, match=r"fitted with the weights 'w'.* Use sample_weight='w'"):
        assert_allclose(counted.prevalences, model.predict_groups(repeated, "shop").prevalences)
    ones = np.ones(len(repeated))
    assert_allclose(model.predict(new, sample_weight="w"), model.predict(repeated, sample_weight=ones))
    assert model.diagnose(new, sample_weight="w", weight_type="frequency").n_items == len(repeated)
    with pytest.raises(ValueError, match="'v'"):
        model.predict_groups(new, "shop", sample_weight="v")
    model.save(tmp_path / "model.oq")
    assert_allclose(
        oq.load_model(tmp_path / "model.oq").predict(new, sample_weight="w"), model.predict(new, sample_weight="w")
    )


def test_evaluation_of_groups_is_weighted(rng, tmp_path, capsys):
    frame, new = table(rng), table(rng)
    model = oq.TableModel(oq.PACC(), features=["x"]).fit(frame, "stars")
    model.save(tmp_path / "model.oq")
    new.to_csv(tmp_path / "new.csv", index=False)
    new.loc[new.index.repeat(new["w"])].to_csv(tmp_path / "repeated.csv", index=False)

    def evaluation(name, *options):
        arguments = ["evaluate", tmp_path / "model.oq", tmp_path / name, "--by", "shop", "--json", *options]
        assert main(list(map(str, arguments))) == 0
        return json.loads(capsys.readouterr().out)

    weighted = evaluation("new.csv", "--weight", "w")
    by_estimate = {row["estimate"]: row for row in weighted["errors"]}
    means = [np.average(rows["stars"], weights=rows["w"]) for _, rows in new.groupby("shop")]
    off = np.abs(np.array(means) - frame["stars"].mean()).mean()
    assert_allclose(by_estimate["training prevalences"]["mean_class"], off)
    one, other = evaluation("new.csv", "--weight", "w", "--weight-type", "frequency"), evaluation("repeated.csv")
    assert one["n_items"] == other["n_items"] == new["w"].sum()
    for row, expected in zip(one["errors"], other["errors"], strict=True):
        numbers = [name for name, value in expected.items() if name != "estimate" and value is not None]
        assert_allclose([row[name] for name in numbers], [expected[name] for name in numbers], atol=1e-4)
    arguments = ["evaluate", tmp_path / "model.oq", tmp_path / "new.csv", "--weight", "w"]
    assert main(list(map(str, arguments))) == 2
    assert "--weight needs groups. Pass --by" in capsys.readouterr().err


def test_weights_on_the_command_line(rng, tmp_path, capsys):
    frame, new = table(rng), table(rng)
    frame.to_csv(tmp_path / "train.csv", index=False)
    new.to_csv(tmp_path / "new.csv", index=False)
    model = tmp_path / "model.oq"

    def run(*arguments):
        code = main([str(a) for a in arguments])
        return code, *capsys.readouterr()

    def groups(*arguments):
        code, out, error = run("predict", model, *arguments, "--by", "shop", "--json")
        assert code == 0, error
        return json.loads(out)["groups"]

    options = ["--target", "stars", "--features", "x", "--method", "PACC", "--weight", "w", "--out", model]
    assert run("fit", tmp_path / "train.csv", *options)[0] == 0
    one = groups(tmp_path / "new.csv", "--weight", "w", "--weight-type", "frequency")
    new.loc[new.index.repeat(new["w"])].assign(w=1).to_csv(tmp_path / "repeated.csv", index=False)
    other = groups(tmp_path / "repeated.csv", "--weight", "w", "--weight-type", "frequency")
    with warnings.catch_warnings():
        warnings.simplefilter("default")
        assert "are estimated without weights. Use --weight w." in run("predict", model, tmp_path / "new.csv")[2]
    assert [row["n_items"] for row in one] == [row["n_items"] for row in other]
    assert_allclose([row["prevalences"] for row in one], [row["prevalences"] for row in other], atol=1e-5)
    assert groups(tmp_path / "new.csv", "--weight", "w")[0]["n_effective"] < one[0]["n_items"]
    for value, message in (("-1", "expected a weight >= 0 in column 'w', got '-1'"), ("x", "got 'x'"), ("", "nothing")):
        bad = new.astype({"w": object})
        bad.loc[5, "w"] = value
        bad.to_csv(tmp_path / "bad.csv", index=False)
        code, _, error = run("predict", model, tmp_path / "bad.csv", "--weight", "w")
        assert code != 0
        assert message in error
    new.assign(w=0).to_csv(tmp_path / "bad.csv", index=False)
    assert "no weight above zero" in run("predict", model, tmp_path / "bad.csv", "--weight", "w")[2]
    assert (
        "plan does not support --weight" in run("plan", model, tmp_path / "new.csv", "--by", "shop", "--weight", "w")[2]
    )
    wrong = ["--weight", "w", "--weight-type", "count"]
    assert "--weight-type must be one of" in run("predict", model, tmp_path / "new.csv", *wrong)[2]
