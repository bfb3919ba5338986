"""Intervals: coverage and other properties."""

import pickle

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone
from sklearn.naive_bayes import GaussianNB
from summaries import intervals

import ordinalq as oq
from ordinalq.inference.bootstrap import ClassPools, composition, rounded
from ordinalq.inference.bounds import Bounds
from ordinalq.inference.predict import estimate
from ordinalq.losses import LeastSquares
from ordinalq.representations import Partition

METHODS = {entry.name: entry.cls for entry in oq.catalog(beyond=False)}
each_method = pytest.mark.parametrize("name", METHODS)


def scores(rng, y, n=4, noise=1.0):
    """Return posteriors under equal class frequencies of items z ~ N(y, noise^2), (N, n)."""
    z = y + noise * rng.normal(size=len(y))
    E = np.exp(-((z[:, None] - np.arange(n)) ** 2) / (2 * noise**2))
    return E / E.sum(axis=1, keepdims=True)


def build(name):
    return METHODS[name]() if name in ("HDx", "OHDx") else METHODS[name](oq.classifiers.CrossFitted(GaussianNB(), cv=3))


@pytest.fixture
def data(rng):
    """Return features (300, 2), codes 0..3 and a pool (120, 2)."""
    y = np.arange(300) % 4
    return y[:, None] + rng.normal(size=(300, 2)), y, rng.integers(0, 4, 120)[:, None] + rng.normal(size=(120, 2))


def covered(method, rng, target, *, n_train, n_samples=40, n_rounds=10, size=200):
    """Return the coverage of 95% intervals by class (n,), cumulative class and mean."""
    n = 4
    hits = []
    for seed in range(n_rounds):
        y = np.arange(n_train) % n
        quantifier = method().fit_scores(scores(rng, y), y)
        truth = rng.dirichlet(np.full(n, 0.7), n_samples)
        counts = np.array([rng.multinomial(size, p) for p in truth])
        if target == "sample":
            truth = counts / size
        labels = np.repeat(np.tile(np.arange(n), n_samples), counts.ravel())
        found = intervals(
            quantifier,
            scores(rng, labels),
            groups=np.repeat(np.arange(n_samples), size),
            estimand=target,
            random_state=seed,
        )
        below, mean = np.cumsum(truth, axis=1)[:, :-1], truth @ [0, 1, 2, 3]
        hits.append(
            np.column_stack(
                [
                    (found.lower <= truth + 1e-12) & (truth <= found.upper + 1e-12),
                    (found.bounds.cumulative_lower[:, :-1] <= below + 1e-12)
                    & (below <= found.bounds.cumulative_upper[:, :-1] + 1e-12),
                    (found.bounds.mean_lower <= mean + 1e-12) & (mean <= found.bounds.mean_upper + 1e-12),
                ]
            )
        )
    return np.concatenate(hits).mean(axis=0)


# Of a true 95%, 400 samples show 90 to 99% (five standard deviations of 1.1% at 95.5%: at zero they hold more);
# the mean of the eight rates, which depend on each other, has one of about 0.7%.


@pytest.mark.parametrize(
    ("method", "target"),
    [
        pytest.param(oq.PACC, "sample", id="PACC-sample"),
        pytest.param(oq.PACC, "population", id="PACC-population"),
        pytest.param(oq.ACC, "sample", id="ACC-sample"),
        pytest.param(oq.ACC, "population", id="ACC-population", marks=pytest.mark.slow),
        pytest.param(lambda: oq.SLD(calibration="bcts"), "sample", id="SLD-sample"),
        pytest.param(lambda: oq.SLD(calibration="bcts"), "population", id="SLD-population", marks=pytest.mark.slow),
    ],
)
def test_intervals_contain_the_true_value_as_often_as_their_level(method, target, rng):
    hits = covered(method, rng, target, n_train=4000)
    assert hits.min() > 0.90
    assert 0.92 < hits.mean() < 0.99


@pytest.mark.parametrize("method", [oq.PACC, oq.SLD], ids=["PACC", "SLD"])
def test_the_uncertainty_of_m_counts(method, rng):
    # With as few held-out items as there are in a sample, M adds about as much as the sample itself; without it the
    # intervals would cover 84%. The ten samples of a round share M, so that a rate has a standard deviation of 2%, the
    # mean of all one of 1.2%.
    hits = covered(method, rng, "sample", n_train=200, n_samples=10, n_rounds=40)
    assert hits.min() > 0.85
    assert 0.89 < hits.mean() < 0.995


@pytest.mark.slow
@pytest.mark.parametrize("method", [oq.EDy, oq.HDy, oq.PDF], ids=lambda method: method.__name__)
def test_intervals_of_methods_without_smoothing_contain_the_true_value(method, rng):
    hits = covered(method, rng, "sample", n_train=4000)
    assert hits.min() > 0.88
    assert 0.91 < hits.mean() < 0.99


def test_the_covariance_is_that_of_the_theory(rng):
    # Far from the boundary PACC is linear: cov = M^-1 [sum_i (p_i / N + p_i^2 / N_i) Sigma_i] M^-T.
    n, size = 3, 5000
    y = np.arange(3000) % n
    S = scores(rng, y, n, noise=0.5)
    quantifier = oq.PACC().fit_scores(S, y)
    labels = np.repeat([0, 1, 2], [1500, 2000, 1500])
    pool = scores(rng, labels, n, noise=0.5)
    p = np.array([0.3, 0.4, 0.3])
    within = np.array([np.cov(S[y == i].T, bias=True) for i in range(n)])
    inverse = np.linalg.inv(quantifier.M_)
    for target in ("sample", "population"):
        found = intervals(quantifier, pool, estimand=target, n_replicates=2000)
        noise = np.tensordot(p / size + p**2 / 1000, within, axes=1)
        expected = inverse @ noise @ inverse.T
        if target == "population":
            expected = expected + (np.diag(p) - np.outer(p, p)) / size
        assert_allclose(found.covariance[0], expected, rtol=0.25, atol=0.1 * expected.max())
        width = (found.upper - found.lower)[0] / (2 * 1.96)
        assert_allclose(width, np.sqrt(np.diag(expected)), rtol=0.15)


def test_the_population_is_less_certain_than_the_sample(rng):
    y = np.arange(4000) % 4
    quantifier = oq.PACC().fit_scores(scores(rng, y, noise=0.3), y)
    S = scores(rng, np.arange(400) % 4, noise=0.3)
    sample, population = (intervals(quantifier, S, estimand=t) for t in ("sample", "population"))
    assert (np.trace(population.covariance[0]) > 2 * np.trace(sample.covariance[0])).all()


@each_method
def test_every_method_gives_intervals_around_its_estimate(name, data):
    X, y, pool = data
    quantifier = build(name).fit(X, y + 1)
    groups = np.repeat([0, 1, 2], [1, 20, 99])
    for target in ("sample", "population"):
        found = quantifier.predict_interval(
            pool, 0.8, groups, options=oq.inference.IntervalOptions(estimand=target, n_replicates=20)
        )
        assert (found.level, found.bounds.estimand) == (0.8, target)
        assert_array_equal(found.groups, [0, 1, 2])
        assert_array_equal(found.n_items, [1, 20, 99])
        assert_array_equal(found.classes, [1, 2, 3, 4])
        assert_array_equal(found.prevalences, quantifier.predict_samples(pool, oq.Samples.from_groups(groups)))
        assert_allclose(found.cumulative, np.cumsum(found.prevalences, axis=1))
        assert_allclose(found.mean, found.prevalences @ [1, 2, 3, 4])
        triples = [
            (found.lower, found.prevalences, found.upper, 0, 1),
            (found.bounds.cumulative_lower, found.cumulative, found.bounds.cumulative_upper, 0, 1 + 1e-12),
            (found.bounds.mean_lower, found.mean, found.bounds.mean_upper, 1, 4),
        ]
        for lower, value, upper, low, high in triples:
            assert (low <= lower).all()
            assert (lower <= value).all()
            assert (value <= upper).all()
            assert (upper <= high).all()
        assert found.covariance.shape == (3, 4, 4)
        assert_allclose(found.covariance, found.covariance.transpose(0, 2, 1))


@pytest.mark.parametrize("method", [oq.PACC, oq.SLD, oq.PCC], ids=lambda method: method.__name__)
@pytest.mark.parametrize("target", ["sample", "population"])
def test_single_items_are_less_informative_than_many(method, target, rng):
    y = np.arange(2000) % 4
    quantifier = method().fit_scores(scores(rng, y), y)
    S = scores(rng, np.arange(1000) % 4)
    # 100 groups of one item, nine of 100.
    groups = np.r_[np.arange(100), np.repeat(np.arange(100, 109), 100)]
    found = intervals(quantifier, S, groups=groups, estimand=target, bias=False)
    width = (found.upper - found.lower).mean(axis=1)
    assert width[:100].mean() > 1.3 * width[100:].mean()
    # One item is never certain of its class.
    assert width[:100].min() > 0.01


@each_method
def test_the_same_seed_gives_the_same_intervals(name, data):
    X, y, pool = data
    quantifier = build(name).fit(X, y)
    first, again, other = (
        quantifier.predict_interval(pool, options=oq.inference.IntervalOptions(n_replicates=20, random_state=s))
        for s in (3, 3, 4)
    )
    assert_array_equal(first.lower, again.lower)
    assert_array_equal(first.covariance, again.covariance)
    assert not np.array_equal(first.covariance, other.covariance)
    copy = pickle.loads(pickle.dumps(quantifier))
    assert_array_equal(
        copy.predict_interval(pool, options=oq.inference.IntervalOptions(n_replicates=20, random_state=3)).upper,
        first.upper,
    )


def test_no_groups_groups_and_samples_are_the_same(data):
    X, y, pool = data
    quantifier = build("PACC").fit(X, y)
    S = quantifier.scores(pool)
    groups = np.repeat(["b", "a"], 60)
    samples = oq.Samples.from_groups(groups)
    by_groups, by_samples = (intervals(quantifier, S, groups=g) for g in (groups, samples))
    assert_array_equal(by_groups.lower, by_samples.lower)
    assert by_samples.groups.tolist() == ["a", "b"]
    whole, one = (intervals(quantifier, S, groups=g) for g in (None, np.zeros(120, dtype=int)))
    assert whole.groups is None
    assert_array_equal(whole.upper, one.upper)
    assert_array_equal(quantifier.predict_interval(pool).upper, whole.upper)


def test_a_batch_gives_the_results_of_its_single_samples(rng):
    y = np.arange(2000) % 4
    quantifier = oq.PACC().fit_scores(scores(rng, y), y)
    S, groups = scores(rng, np.arange(600) % 4), np.repeat([0, 1, 2], 200)
    together = intervals(quantifier, S, groups=groups, n_replicates=2000)
    for b in range(3):
        alone = intervals(quantifier, S[groups == b], n_replicates=2000)
        assert_allclose(alone.prevalences[0], together.prevalences[b], atol=1e-12)
        # The random numbers are others, which move a bound by about a tenth of the standard deviation.
        deviation = np.sqrt(np.diag(together.covariance[b])).max()
        assert_allclose(alone.lower[0], together.lower[b], atol=0.6 * deviation)
        assert_allclose(alone.upper[0], together.upper[b], atol=0.6 * deviation)
        assert_allclose(np.diag(alone.covariance[0]), np.diag(together.covariance[b]), rtol=0.3)


def test_samples_that_exceed_the_memory_are_solved_in_chunks(rng, monkeypatch):
    y = np.arange(400) % 4
    S, groups = scores(rng, np.arange(300) % 4), np.arange(300) % 30
    for quantifier in (oq.PACC(), oq.SLD(), oq.OSLD(calibration="vector")):
        quantifier.fit_scores(scores(rng, y), y)
        whole = intervals(quantifier, S, groups=groups, n_replicates=100)
        with monkeypatch.context() as patch:
            patch.setattr("ordinalq.inference.bootstrap.CHUNK", 100 * 4 * 7)
            parts = intervals(quantifier, S, groups=groups, n_replicates=100)
        assert_array_equal(parts.prevalences, whole.prevalences)
        # The random numbers are others, but nothing else: on average over the groups bounds agree.
        assert_allclose(parts.upper.mean(axis=0), whole.upper.mean(axis=0), atol=0.06)
        assert_allclose(parts.lower.mean(axis=0), whole.lower.mean(axis=0), atol=0.06)


def test_a_large_sample_is_drawn_by_a_smaller_one(rng):
    # The deviation of N items is that of 1000, scaled: variances go on falling as 1 / N.
    y = np.arange(200_000) % 4
    quantifier = oq.PACC().fit_scores(scores(rng, y, noise=0.5), y)
    S = scores(rng, np.arange(16_000) % 4, noise=0.5)
    small, large = (intervals(quantifier, S[:N], n_replicates=300, bias=False) for N in (1000, 16_000))
    ratio = np.trace(small.covariance[0]) / np.trace(large.covariance[0])
    # Here p_i / N + p_i^2 / N_i, where N_i = 50,000 items of V do not become more.
    assert_allclose(ratio, (0.25 / 1000 + 0.25**2 / 50_000) / (0.25 / 16_000 + 0.25**2 / 50_000), rtol=0.35)


def test_the_held_out_items_are_kept(data):
    X, y, _ = data
    V = build("PACC").fit(X, y).held_out_
    S, codes = V.S, V.codes
    assert S.shape == (300, 4)
    assert_array_equal(codes, y)
    S = np.full((5, 3), 1 / 3)
    S[0] = np.nan
    V = oq.PACC().fit_scores(S, [1, 1, 2, 3, 2]).held_out_
    kept, codes = V.S, V.codes
    assert len(kept) == 4
    assert_array_equal(codes, [0, 1, 2, 1])
    V = oq.HDx().fit(X, y).held_out_
    features, codes = V.S, V.codes
    assert_array_equal(features, X)
    V = build("OQT").fit(X, y).held_out_
    kept, codes = V.S, V.codes
    assert len(kept) == len(codes) == 100
    # Only the items that the tree has not seen.
    partition = oq.ComposedQuantifier(Partition(8), LeastSquares()).fit(X, y)
    assert len(partition.held_out_.S) == 150
    assert (partition.predict_interval(X[:50], options=oq.inference.IntervalOptions(n_replicates=20)).upper > 0).all()


@pytest.mark.parametrize("method", [oq.ACC, oq.OACC, oq.RUN], ids=lambda method: method.__name__)
def test_intervals_warn_if_classes_cannot_be_distinguished(method):
    y = np.arange(90) % 3
    votes = np.tile([0.2, 0.5, 0.3], (90, 1))  # always for the second class
    quantifier = method().fit_scores(votes, y)
    with pytest.warns(UserWarning, match="the classifier does not distinguish all classes") as caught:
        found = intervals(quantifier, votes, n_replicates=20)
    assert len(caught) == 1
    assert_allclose(found.prevalences, 1 / 3, atol=1e-6)


def test_intervals_warn_if_features_do_not_distinguish_classes(data):
    X, y, pool = data
    quantifier = oq.HDx(n_bins=2).fit(X[:, :1], y)
    with pytest.warns(UserWarning, match="the features do not distinguish all classes"):
        quantifier.predict_interval(pool[:, :1], options=oq.inference.IntervalOptions(n_replicates=20))


def test_an_interval_shows_itself(data):
    X, y, pool = data
    quantifier = build("PACC").fit(X, y)
    whole = quantifier.predict_interval(pool, options=oq.inference.IntervalOptions(n_replicates=20))
    assert repr(whole) == "Estimates(1 sample, 4 classes, level=0.95, of the sample)"
    assert "95% intervals of the sample\n120 items\n  0" in str(whole)
    assert list(whole.frame())[:2] == ["n_items", "0"]
    groups = np.arange(120) % 12
    many = quantifier.predict_interval(pool, groups=groups, options=oq.inference.IntervalOptions(n_replicates=20))
    assert str(many).endswith("and 2 more")
    table = many.frame()
    assert_array_equal(
        table,
        quantifier.predict_groups(
            pool, groups, level=0.95, options=oq.inference.IntervalOptions(n_replicates=20)
        ).frame(),
    )


def test_drawn_counts_have_the_right_sum_and_expectation(rng):
    P = rng.dirichlet(np.ones(5), 50)
    sizes = rng.integers(1, 40, 50)
    counts = np.array([rounded(P, sizes, rng) for _ in range(4000)])
    assert (counts.sum(axis=2) == sizes).all()
    assert (np.abs(counts - P * sizes[:, None]) < 1).all()
    assert_allclose(counts.mean(axis=0), P * sizes[:, None], atol=0.05)
    assert_allclose(composition(np.array([[1.0, 0, 0]]), np.array([1])), [[0.6, 0.2, 0.2]])


def test_drawn_items_are_of_the_wanted_classes(rng):
    codes = rng.integers(0, 3, 40)
    V = ClassPools(np.zeros((40, 3)), codes, 3)
    counts = np.array([[3, 0, 2], [0, 4, 1]])
    samples = V.draw(counts, rng)
    assert_array_equal(samples.sizes, [5, 5])
    for b in range(2):
        assert_array_equal(np.bincount(codes[samples.index(b)], minlength=3), counts[b])


def test_mistakes_are_named(data):
    X, y, pool = data
    quantifier = build("PACC").fit(X, y)
    for level in (0, 1, 95, -0.5, np.nan):
        with pytest.raises(ValueError, match=r"level must be a number between 0 and 1, such as 0\.95"):
            quantifier.predict_interval(pool, level)
    with pytest.raises(TypeError, match="level must be a number"):
        quantifier.predict_interval(pool, "high")
    with pytest.raises(TypeError, match=r"such as 0\.95, got ndarray\. Pass groups as groups=\.\.\.") as e:
        quantifier.predict_interval(pool, np.arange(120))
    assert len(str(e.value)) < 150
    with pytest.raises(ValueError, match="estimand must be one of 'sample', 'population', got 'truth'"):
        quantifier.predict_interval(pool, options=oq.inference.IntervalOptions(estimand="truth"))
    with pytest.raises(ValueError, match="n_replicates must be an integer >= 20"):
        quantifier.predict_interval(pool, options=oq.inference.IntervalOptions(n_replicates=5))
    with pytest.raises(TypeError, match="random_state must be"):
        quantifier.predict_interval(pool, options=oq.inference.IntervalOptions(random_state="seed"))
    with pytest.raises(ValueError, match="groups must have one value per item, 120, got 2"):
        quantifier.predict_interval(pool, groups=["a", "b"])
    with pytest.raises(ValueError, match="samples must be drawn from the 120 given items"):
        quantifier.predict_interval(pool, groups=oq.Samples.whole(7))
    del quantifier.held_out_
    assert_allclose(quantifier.predict(pool).sum(), 1)
    with pytest.raises(ValueError, match="has no held-out items"):
        quantifier.predict_interval(pool)


def test_cumulative_bounds_rise_and_are_never_narrower_for_it(rng):
    lower, upper = np.sort(rng.random((2, 200, 8)), axis=0)
    lower[:, -1], upper[:, -1] = 1, 4
    got = Bounds.of_statistics(0.9, "sample", lower, upper)
    assert (np.diff(got.cumulative_lower, axis=1) >= 0).all()
    assert (np.diff(got.cumulative_upper, axis=1) >= 0).all()
    assert (got.cumulative_lower[:, :3] <= lower[:, 4:7]).all()
    assert (got.cumulative_upper[:, :3] >= upper[:, 4:7]).all()
    # No wider than needed: each bound is one of those given at its class or beyond.
    assert_array_equal(got.cumulative_lower[:, 0], lower[:, 4:7].min(axis=1))
    assert_array_equal(got.cumulative_upper[:, 2], upper[:, 4:7].max(axis=1))


@pytest.mark.parametrize("method", [oq.PACC, oq.SLD, oq.AdjustedML, oq.GroupBLP])
def test_cumulative_bounds_of_every_method_rise(method, rng):
    S, groups = scores(rng, np.arange(400) % 4), np.repeat(np.arange(40), 10)
    q = method().fit_scores(S, np.arange(400) % 4)
    bounds = estimate(q, q.summarize(S, oq.Samples.from_groups(groups)), 0.8).bounds
    for ends in (bounds.cumulative_lower, bounds.cumulative_upper):
        assert (np.diff(ends, axis=1) >= -1e-15).all()


@pytest.mark.parametrize("method", ["PACC", "EDy", "OEDy", "OPACC", "ACC", "HDy", "RUN", "SLD", "PCC"])
def test_nothing_is_claimed_of_classes_with_equal_scores(method, rng):
    y = np.r_[0, 1, 2, rng.integers(0, 3, 57)]
    scores = np.tile([0.2, 0.3, 0.5], (60, 1))
    quantifier = getattr(oq, method)().fit_scores(scores, y)
    with pytest.warns(UserWarning, match="only the joint prevalence of classes 0, 1, 2 can be estimated"):
        found = intervals(quantifier, scores[:50], n_replicates=20)
    assert_allclose(found.lower, 0, atol=1e-12)
    assert_allclose(found.upper, 1, atol=1e-12)
    if method not in ("SLD", "PCC"):
        assert_allclose(found.prevalences, 1 / 3, atol=1e-6)


@pytest.mark.parametrize("method", [oq.PACC, oq.EDy], ids=lambda method: method.__name__)
def test_classes_with_equal_scores_share_the_interval_of_their_joint_prevalence(method, rng):
    y = rng.permutation(np.arange(300) % 3)
    scores = np.where(y[:, None] > 0, [0.1, 0.3, 0.6], [0.8, 0.1, 0.1]) @ np.eye(3)
    noise = rng.random(300)[:, None] * 0.3
    scores = (1 - noise) * scores + noise / 3
    for other in (1, 2):  # the same scores for both classes
        scores[y == other] = scores[y == 1][: (y == other).sum()]
    quantifier = method().fit_scores(scores, y)
    with pytest.warns(UserWarning, match="joint prevalence of classes 1, 2 can"):
        found = intervals(quantifier, scores[:120], n_replicates=40)
    assert_allclose(found.prevalences[:, 1], found.prevalences[:, 2], atol=1e-6)
    assert_allclose(found.lower[:, 1:], 0, atol=1e-12)
    joint = 1 - found.prevalences[:, 0]
    assert (found.upper[:, 1:] >= joint[:, None] - 1e-9).all()
    assert (found.upper[:, 1:] < 1).all()


@pytest.mark.parametrize("method", [oq.CC(), oq.IBU(), oq.RUN(), oq.OSLD(), oq.OPACC(tau=1e-3)], ids=repr)
def test_intervals_include_the_bias_of_the_method(method, rng):
    y = np.arange(2000) % 4
    scores = np.exp(-0.5 * (y[:, None] + rng.normal(size=(2000, 1)) - np.arange(4)) ** 2)
    scores /= scores.sum(axis=1, keepdims=True)
    quantifier = clone(method).fit_scores(scores[:1000], y[:1000])
    samples = oq.protocols.APP(100, 200, small_pool="replace", random_state=rng).draw(y[1000:])
    summary, truth = quantifier.summarize(scores[1000:], samples), samples.prevalences
    covered, plain = (
        ((got.lower <= truth) & (truth <= got.upper)).mean()
        for got in (
            estimate(quantifier, summary, 0.95, oq.inference.IntervalOptions(n_replicates=40, bias=bias))
            for bias in (True, False)
        )
    )
    assert covered > max(0.8, plain)


def test_estimates_are_never_on_an_interior_end_of_their_interval(rng):
    y = np.arange(600) % 4
    scores = np.exp(-0.5 * (y[:, None] + rng.normal(size=(600, 1)) - np.arange(4)) ** 2)
    scores /= scores.sum(axis=1, keepdims=True)
    samples = oq.protocols.APP(60, 30, small_pool="replace", random_state=rng).draw(y)
    for method in (oq.PACC, oq.OPACC, oq.IBU, oq.HDy, oq.SLD, oq.GroupBLP, oq.AdjustedML):
        quantifier = method().fit_scores(scores, y)
        got = estimate(
            quantifier, quantifier.summarize(scores, samples), 0.95, oq.inference.IntervalOptions(n_replicates=20)
        )
        P = got.prevalences
        assert ((got.lower < P) | (got.lower == 0)).all()
        assert ((got.upper > P) | (got.upper == 1)).all()
