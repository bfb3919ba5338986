"""Adjusted maximum likelihood: its moments, its priors, its solver, its intervals."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.optimize import minimize
from scipy.special import softmax
from seeds import generator

import ordinalq as oq
from ordinalq.inference.model import learned_groups
from ordinalq.inference.predict import estimate
from ordinalq.quantifiers.adjusted_ml import LabelledRatios, Observed, Prior, posterior, thinned
from ordinalq.solvers import barrier
from ordinalq.solvers.barrier import minimize_inside

N = 4
P_TRAIN = np.array([0.4, 0.3, 0.2, 0.1])


def scored(rng, counts, *, sharpness=1.5):
    """Return posteriors (N, 4) under P_TRAIN of items x ~ N(class, 1), exact for sharpness 1, and codes (N,)."""
    codes = np.repeat(np.arange(N), counts)
    x = codes + rng.normal(size=len(codes))
    S = P_TRAIN * np.exp(-0.5 * (x[:, None] - np.arange(N)) ** 2)
    S = (S / S.sum(axis=1, keepdims=True)) ** sharpness
    return S / S.sum(axis=1, keepdims=True), codes


def problem(rng, n_samples=100, size=500, sharpness=1.5):
    """Return V (S, codes), the scores of a pool and APP samples of it."""
    S, y = scored(rng, (P_TRAIN * 4000).astype(int), sharpness=sharpness)
    T, z = scored(rng, [3000] * N, sharpness=sharpness)
    return S, y, T, oq.protocols.APP(n_samples, size, random_state=rng).draw(z)


def test_is_better_than_least_squares_and_than_plain_likelihood(rng):
    S, y, T, samples = problem(rng, n_samples=300)
    error = {}
    for q in (oq.AdjustedML(prior="uniform"), oq.PACC(), oq.SLD(), oq.OPACC(), oq.EDy()):
        P = q.fit_scores(S, y).predict_scores(T, samples)
        error[type(q).__name__] = oq.metrics.nmd(samples.prevalences, P).mean()
    assert error["AdjustedML"] < 0.97 * min(error[name] for name in error if name != "AdjustedML")


@pytest.mark.parametrize("instrument", ["sample", "uniform", "training"])
def test_a_single_sample_gives_the_same_result_as_in_a_batch(instrument, rng):
    S, y, T, samples = problem(rng, n_samples=9, size=40)
    q = oq.AdjustedML(instrument=instrument).fit_scores(S, y)
    batch = q.solve_scores(T, samples)
    assert batch.converged.all()
    for b in range(len(samples)):
        assert_allclose(q.predict_scores(T, samples[b])[0], batch.p[b], atol=1e-9)


def test_reversing_classes_reverses_the_estimate(rng):
    S, y, T, samples = problem(rng, n_samples=20)
    P = oq.AdjustedML().fit_scores(S, y).predict_scores(T, samples)
    reverse = oq.AdjustedML().fit_scores(S[:, ::-1], N - 1 - y).predict_scores(T[:, ::-1], samples)
    assert_allclose(reverse[:, ::-1], P, atol=1e-5)  # the calibration stops at its own tolerance


def test_moments_are_weighted_means_and_covariances_of_the_score_function(rng):
    S, y, _, _ = problem(rng)
    labelled = LabelledRatios(S / P_TRAIN, y)
    P0, shares = rng.dirichlet(np.ones(N), size=3), rng.random((3, N))
    M, Omega = labelled.at_each(P0, shares)
    for b, p0 in enumerate(P0):
        F = labelled.R / (labelled.R @ p0)[:, None]
        total = 0
        for i in range(N):
            assert_allclose(M[b, :, i], np.average(F, axis=0, weights=labelled.W[:, i]), rtol=1e-10)
            total = total + shares[b, i] * np.cov(F.T, aweights=labelled.W[:, i], ddof=0)
        assert_allclose(Omega[b], total, rtol=1e-8, atol=1e-10)
        alone = labelled.at(p0)
        assert_allclose(alone[0], M[b], rtol=1e-10)
        assert_allclose(np.tensordot(shares[b], alone[1], 1), Omega[b], rtol=1e-8, atol=1e-10)
        # f.p0 = 1 for all items.
        assert_allclose(p0 @ M[b], 1, rtol=1e-10)
        assert_allclose(Omega[b] @ p0, 0, atol=1e-9)


def test_no_instrument_is_more_informative_than_the_shares_of_the_errors(rng):
    """M' Omega^-1 M along the simplex, for items with 30 values of known probability in each class."""
    phi, a = rng.dirichlet(np.ones(30), size=N).T, rng.dirichlet(np.ones(N))
    C = np.eye(N)[:, :-1] - np.eye(N)[:, 1:]  # changes of shares that sum to zero

    def information(p0):
        F = phi / (phi @ p0)[:, None]
        M = F.T @ phi
        Omega = sum(a[i] * np.cov(F.T, aweights=phi[:, i], ddof=0) for i in range(N))
        return C.T @ M.T @ np.linalg.pinv(Omega, hermitian=True, rcond=1e-10) @ M @ C

    best = information(a)
    for p0 in rng.dirichlet(np.ones(N), size=20):
        excess = np.linalg.eigvalsh(best - information(p0))
        assert excess.min() > -1e-8 * np.trace(best)
        assert excess.max() > 0


def test_instruments_have_much_of_the_classes_that_contribute_to_the_error(rng):
    S, y = scored(rng, [2000, 1500, 480, 20])
    T, z = scored(rng, [3000] * N)
    q = oq.AdjustedML(prior="uniform").fit_scores(S, y)
    summary = q.summarize(T, oq.protocols.APP(30, 1000, random_state=2).draw(z))
    ((seen, P, sizes),) = q._observed(summary, Prior.of("uniform", q.p_train_))
    errors = P / sizes[:, None] + P**2 * q.trust_ / q.counts_
    assert_allclose(seen.P0, errors / errors.sum(axis=1, keepdims=True), rtol=1e-10)
    large = P[:, 3] > 0.2
    assert (seen.P0 > P)[large, 3].all()


def test_a_class_borrows_from_a_model_that_holds_and_not_from_one_that_does_not(rng):
    counts = [1000, 700, 300, 6]
    right, y = scored(rng, counts, sharpness=1.0)
    wrong, _ = scored(rng, counts, sharpness=4.0)
    trust = LabelledRatios(right / P_TRAIN, y).trust
    assert trust.max() < 0.95
    assert trust[3] < 0.9
    assert LabelledRatios(wrong / P_TRAIN, y).trust[:3].min() > 0.9


def test_a_class_of_two_items_does_no_harm(rng):
    S, y = scored(rng, [1500, 1000, 498, 2], sharpness=1.0)
    T, z = scored(rng, [3000] * N, sharpness=1.0)
    samples = oq.protocols.APP(50, 500, random_state=1).draw(z)
    error = {}
    for q in (oq.AdjustedML(prior="uniform"), oq.PACC()):
        P = q.fit_scores(S, y).predict_scores(T, samples)
        error[type(q).__name__] = oq.metrics.nmd(samples.prevalences, P).mean()
    assert error["AdjustedML"] < error["PACC"]
    assert error["AdjustedML"] < 0.12


def test_thinning_keeps_rare_classes_whole_and_the_estimate(rng, monkeypatch):
    codes = rng.permutation(np.repeat([0, 1, 2], [5, 400, 1000]))
    kept = thinned(codes, 200)
    counts = np.bincount(codes[kept])
    assert counts[0] == 5
    assert counts.sum() in (199, 200)
    assert abs(counts[1] - counts[2]) <= 1
    assert_array_equal(kept, np.unique(kept))
    S, y, T, samples = problem(rng, n_samples=20)
    q = oq.AdjustedML().fit_scores(S, y)
    whole = q.predict_scores(T, samples)
    monkeypatch.setattr("ordinalq.quantifiers.adjusted_ml.MOST_ITEMS", 1500)
    thin = oq.AdjustedML().fit_scores(S, y).predict_scores(T, samples)
    # Noise of 1500 instead of 4000 items: over 60 seeds the logarithm of the mean difference was -4.5 +- 0.45.
    assert 0 < np.abs(thin - whole).mean() < np.exp(-4.5 + 4.4 * 0.45)


@pytest.mark.parametrize("instrument", ["sample", "uniform"])
def test_perfect_and_useless_scores(instrument):
    y = np.arange(400) % N
    perfect = oq.AdjustedML(prior="uniform", instrument=instrument).fit_scores(np.eye(N)[y], y)
    samples = oq.Samples.from_index([[0, 0, 0, 1] * 30, [2] * 120, np.tile(np.arange(20), 6)], 400)
    assert_allclose(
        perfect.predict_scores(np.eye(N)[y], samples), [[0.75, 0.25, 0, 0], [0, 0, 1, 0], [0.25] * 4], atol=1e-3
    )
    useless = oq.AdjustedML(instrument=instrument).fit_scores(np.full((400, N), 0.25), y)
    assert_allclose(useless.predict_scores(np.full((400, N), 0.25), samples), 0.25, atol=1e-6)


# The solver.


def barrier_problem(rng, n, B=30):
    """Return A, b, k of random problems, some of them nearly singular, with shares next to zero."""
    G = rng.normal(size=(B, n, n)) * 10.0 ** rng.uniform(-2, 3, size=(B, 1, n))
    A = np.matmul(G.transpose(0, 2, 1), G)
    target = rng.dirichlet(np.full(n, 0.3), size=B) + 0.3 * rng.normal(size=(B, n))
    return A, np.matmul(A, target[:, :, None])[:, :, 0], 10.0 ** rng.uniform(-1.3, 2, size=(B, n))


@pytest.mark.parametrize("n", [2, 5, 12])
def test_interior_minimum_is_that_of_a_general_optimizer(n, rng):
    A, b, k = barrier_problem(rng, n)
    scale = np.abs(b).max(axis=1)
    starts = np.full(b.shape, 1 / n), rng.dirichlet(np.full(n, 0.2), size=len(b)) + 1e-6
    found, other = (minimize_inside(A, b, k, start, scale) for start in starts)
    assert found.converged.all()
    assert other.converged.all()
    assert_allclose(other.value, found.value, rtol=1e-10)
    assert (found.p > 0).all()
    assert_allclose(found.p.sum(axis=1), 1)
    for A_, b_, k_, p, value in zip(A, b, k, found.p, found.value, strict=True):

        def objective(t, A_=A_, b_=b_, k_=k_):
            x = np.exp(t - np.logaddexp.reduce(t))
            return x @ A_ @ x / 2 - b_ @ x - k_ @ np.log(x)

        assert_allclose(objective(np.log(p)), value, rtol=1e-9)
        other = minimize(objective, np.log(p) + 0.1 * rng.normal(size=n), method="Nelder-Mead")
        assert other.fun >= value - 1e-9 * abs(value)


@pytest.mark.parametrize("n", [1, 2, 10, barrier.SMALL, barrier.SMALL + 1])
def test_systems_that_are_solved_together_are_those_of_each(n, rng):
    G = rng.normal(size=(7, n, n)) * 10.0 ** rng.uniform(-2, 2, size=(7, n, 1))
    K, R = np.matmul(G, G.transpose(0, 2, 1)) + np.eye(n), rng.normal(size=(7, n, 3))
    W = np.concatenate([K.transpose(1, 2, 0), R.transpose(2, 1, 0)])
    barrier.eliminate(W)
    assert_allclose(barrier.substitute(W).transpose(2, 1, 0), np.linalg.solve(K, R), rtol=1e-6, atol=1e-9)
    L = np.linalg.cholesky(K)
    whitened, diagonal = barrier.whiten(K, R)
    assert_allclose(whitened, np.linalg.solve(L, R), rtol=1e-6, atol=1e-9)
    assert_allclose(diagonal, np.einsum("bii->bi", L))


# Priors.


def test_prior_covariance_is_that_of_drawn_shares(rng):
    A = Prior.of(P_TRAIN, P_TRAIN, 12.0).covariances()[0]
    assert_allclose(A, np.cov(rng.dirichlet(12 * P_TRAIN, size=200_000).T), atol=0.03 * np.abs(A).max())


def test_few_items_give_posterior_probabilities(rng):
    # The shares of one item are its class: the best estimate is the posterior under the prior's centre.
    S, y = scored(rng, (P_TRAIN * 20_000).astype(int), sharpness=1.0)
    T, _ = scored(rng, [50] * N, sharpness=1.0)
    q = oq.AdjustedML(prior="training", strength=1e6).fit_scores(S, y)
    P = q.predict_scores(T, oq.Samples.from_index(np.arange(200)[:, None], 200))
    assert oq.metrics.nmd(T, P).mean() < 0.3 * oq.metrics.nmd(T, np.broadcast_to(P_TRAIN, T.shape)).mean()
    even = oq.AdjustedML(prior="training", strength=1e6).fit_scores(
        np.full((4000, N), 0.25), np.sort(rng.integers(0, N, 4000))
    )
    assert_allclose(even.predict_scores(T, oq.Samples.from_index([[3]], 200))[0], even.p_train_, atol=1e-3)


def test_smooth_prior_foresees_a_fifth_of_the_curvature():
    n = 6
    C = oq.simplex.difference_matrix(n)
    uniform, smooth = (Prior.of(name, np.full(n, 1 / n)).covariances()[0] for name in ("uniform", "smooth"))
    ratio = np.trace(C @ smooth @ C.T) / np.trace(C @ uniform @ C.T)
    assert 0.12 < ratio < 0.25
    assert_allclose(smooth.sum(axis=0), 0, atol=1e-12)


def test_estimate_is_the_training_prior_if_items_carry_no_information(rng):
    S = np.tile(P_TRAIN, (400, 1)) * rng.uniform(0.999, 1.001, size=(400, N))
    y = np.repeat(np.arange(N), [160, 120, 80, 40])
    S /= S.sum(axis=1, keepdims=True)
    for prior, expected, far in (("training", P_TRAIN, 0.02), ("uniform", np.full(N, 0.25), 0.2)):
        P = oq.AdjustedML(prior=prior).fit_scores(S, y).predict_scores(S[:50], oq.Samples.whole(50))
        assert_allclose(P[0], expected, atol=far)


def test_each_prior_is_best_on_its_own_data_and_any_is_good_on_both(rng):
    S, y, T, samples = problem(rng, n_samples=200, size=50)
    z = np.repeat(np.arange(N), 3000)
    natural = oq.protocols.RealPrevalences([P_TRAIN], n_samples=200, sample_size=50, random_state=1).draw(z)
    errors = {}
    for prior in ("uniform", "training", "any"):
        q = oq.AdjustedML(prior=prior).fit_scores(S, y)
        errors[prior] = [oq.metrics.nmd(s.prevalences, q.predict_scores(T, s)).mean() for s in (samples, natural)]
    assert errors["uniform"][0] < errors["training"][0]
    assert errors["training"][1] < errors["uniform"][1]
    assert errors["any"][0] < 1.15 * errors["uniform"][0]
    assert errors["any"][1] < 0.8 * errors["uniform"][1]


def test_prior_is_negligible_with_many_items(rng):
    S, y, T, _ = problem(rng)
    P = [
        oq.AdjustedML(prior=prior)
        .fit_scores(S, y)
        .predict_scores(T, oq.Samples.from_index([np.tile(np.arange(9000), 30)], 12000))
        for prior in ("uniform", "any")
    ]
    assert_allclose(P[0], P[1], atol=0.01)


def test_parts_of_a_prior_are_weighed_by_their_evidence(rng):
    M, Omega = np.eye(N)[None], np.diag([1.0, 1, 1, 0])[None] * 1e-4
    P0 = np.array([[0.0, 0, 0, 1]])
    prior = Prior.of("any", P_TRAIN)
    for p, part in ((P_TRAIN, 2), (np.array([0.1, 0.6, 0.0, 0.3]), 0), (np.array([0.1, 0.2, 0.3, 0.4]), 1)):
        weights = posterior(Observed(p[None], M, Omega, P0), prior, np.array([500.0]), np.full((1, N), 0.25)).weights[0]
        gained = weights / np.exp(prior.log_weights)
        assert gained.argmax() == part
        assert_allclose(weights.sum(), 1)


# Intervals.


@pytest.mark.parametrize("of", ["sample", "population"])
@pytest.mark.parametrize("instrument", ["sample", "uniform"])
def test_intervals_cover(of, instrument):
    rng = generator(3)
    S, y, T, samples = problem(rng, n_samples=300, size=200)
    truth = samples.prevalences
    if of == "population":
        truth = rng.dirichlet(np.ones(N), size=300)
        index = [np.concatenate([rng.choice(3000, c) + 3000 * i for i, c in enumerate(rng.multinomial(200, p))])
                 for p in truth]  # fmt: skip
        samples = oq.Samples.from_index(index, len(T))
    q = oq.AdjustedML(prior="uniform", instrument=instrument).fit_scores(S, y)
    got = estimate(q, q.summarize(T, samples), 0.95, oq.inference.IntervalOptions(estimand=of))
    assert ((got.lower <= got.prevalences) & (got.prevalences <= got.upper)).all()
    assert 0.92 < ((got.lower <= truth) & (truth <= got.upper)).mean() < 0.985
    mean = truth @ np.arange(N)
    assert 0.9 < ((got.bounds.mean_lower <= mean) & (mean <= got.bounds.mean_upper)).mean() < 0.99


@pytest.mark.parametrize("of", ["sample", "population"])
def test_estimates_do_not_depend_on_the_level_and_lie_inside_their_intervals(of, rng):
    S, y, T, _ = problem(rng)
    samples = oq.protocols.NPP(20, 300, random_state=rng).draw(rng.permutation(np.repeat(np.arange(N), 3000)))
    q = oq.AdjustedML().fit_scores(S, y)
    summary, options = q.summarize(T, samples), oq.inference.IntervalOptions(estimand=of)
    got = estimate(q, summary, 0.95, options)
    for level in (None, 0.5):
        assert_array_equal(estimate(q, summary, level, options).prevalences, got.prevalences)
    P = got.prevalences
    assert ((got.lower < P) | (got.lower == 0)).all()
    assert ((got.upper > P) | (got.upper == 1)).all()


def test_estimates_of_populations_are_not_drawn_to_the_training_distribution(rng):
    S, y, T, _ = problem(rng)
    samples = oq.protocols.NPP(20, 300, random_state=rng).draw(rng.permutation(np.repeat(np.arange(N), 3000)))
    found = {}
    for prior in ("any", "uniform"):
        q = oq.AdjustedML(prior=prior).fit_scores(S, y)
        for of in ("sample", "population"):
            options = oq.inference.IntervalOptions(estimand=of)
            found[prior, of] = estimate(q, q.summarize(T, samples), 0.95, options)
    assert_array_equal(found["any", "population"].prevalences, found["uniform", "population"].prevalences)
    assert_array_equal(found["any", "population"].lower, found["uniform", "population"].lower)
    assert np.abs(found["any", "sample"].prevalences - found["uniform", "sample"].prevalences).max() > 0.01


@pytest.mark.parametrize("like_training", [False, True])
def test_intervals_of_the_default_prior_cover(like_training):
    rng, covered = generator(5), []
    for _ in range(4):
        S, y, T, samples = problem(rng, n_samples=300, size=200)
        truth = samples.prevalences
        if like_training:
            z = np.repeat(np.arange(N), 3000)
            p = np.bincount(y) / len(y)
            index = [np.concatenate([rng.choice(3000, c) + 3000 * i for i, c in enumerate(rng.multinomial(200, p))])
                     for _ in range(300)]  # fmt: skip
            samples = oq.Samples.from_index(index, len(T))
            truth = samples.average(np.eye(N)[z])
        q = oq.AdjustedML().fit_scores(S, y)
        got = estimate(q, q.summarize(T, samples), 0.95)
        covered.append(((got.lower <= truth) & (truth <= got.upper)).mean())
    # Single training sets cover .942 +- .009 with drawn prevalences, but one in some dozens less than .9.
    assert np.mean(covered) > 0.895


def test_intervals_of_populations_near_the_training_distribution_cover():
    rng = generator(4)
    p_train = np.array([0.07, 0.08, 0.25, 0.6])
    p = 0.9 * p_train + 0.1 * p_train[::-1]
    mean, covered = p @ np.arange(N), []
    for _ in range(4):
        y, z = np.repeat(np.arange(N), (p_train * 3000).astype(int)), rng.choice(N, size=60 * 300, p=p)
        X, Z = (codes[:, None] + rng.normal(size=(len(codes), 1)) - np.arange(N) for codes in (y, z))
        S, T = (softmax(np.log(p_train) - 0.5 * x**2, axis=1) for x in (X, Z))
        q = oq.AdjustedML().fit_scores(S, y)
        got = estimate(
            q,
            q.summarize(T, oq.Samples.from_groups(np.repeat(np.arange(60), 300))),
            0.95,
            oq.inference.IntervalOptions("population"),
        )
        covered.append((got.bounds.mean_lower <= mean) & (mean <= got.bounds.mean_upper))
    assert np.mean(covered) > 0.85


# Facts and files.


def test_common_instrument_streams_and_merges(rng):
    S, y, T, _ = problem(rng)
    groups = rng.integers(0, 5, size=len(T))
    q = oq.AdjustedML(instrument="uniform").fit_scores(S, y)
    assert q.traits.uses_sample_means
    parts = [q.summarize(T[i::3], oq.Samples.from_groups(groups[i::3])) for i in range(3)]
    whole = q.solve(q.summarize(T, oq.Samples.from_groups(groups)))
    assert_allclose(q.solve(oq.samples.Summary.merged(parts)).p, whole.p, atol=1e-10)


def test_saved_model_gives_the_same(rng, tmp_path):
    X = np.repeat(np.arange(N), 100)[:, None] + rng.normal(size=(400, 2))
    q = oq.AdjustedML().fit(X, np.repeat(np.arange(N), 100))
    oq.save_model(q, tmp_path / "model.oq")
    again = oq.load_model(tmp_path / "model.oq")
    assert_array_equal(again.predict(X[:90]), q.predict(X[:90]))


def grouped(rng):
    """Return posteriors (4000, 4) of items that look different in each of 40 groups, codes and groups."""
    groups = rng.integers(0, 40, size=4000)
    y = rng.integers(0, N, size=4000)
    x = y + 0.7 * rng.normal(size=40)[groups] + rng.normal(size=4000)
    S = np.exp(-0.5 * (x[:, None] - np.arange(N)) ** 2)
    return S / S.sum(axis=1, keepdims=True), y, groups


def test_training_groups_give_the_best_linear_prediction(rng):
    S, y, groups = grouped(rng)
    q, other = oq.AdjustedML().fit_scores(S, y, groups=groups), oq.GroupBLP().fit_scores(S, y, groups=groups)
    assert q.traits.uses_sample_means
    got, expected = (estimate(m, m.summarize(S, oq.Samples.from_groups(groups)), 0.95) for m in (q, other))
    assert_array_equal(got.prevalences, expected.prevalences)
    assert_array_equal(got.lower, expected.lower)
    assert_array_equal(got.fit, expected.fit)
    assert_array_equal(q.response_matrix(), other.response_matrix())
    assert learned_groups(q)
    assert q.traits.has_group_model
    # A second fit without groups forgets them.
    q.fit_scores(S, y)
    assert (q.traits.uses_sample_means, learned_groups(q), q.traits.has_group_model) == (False, False, False)


def test_fixed_instrument_is_the_posterior_in_other_units(rng):
    S, _, _, _ = problem(rng)
    q = oq.AdjustedML(instrument="training").fit_scores(S, rng.integers(0, N, size=len(S)))
    R = q.calibration_.transform(S) * q.p_train_
    assert_allclose(q.embed(S) * q.p_train_, R / R.sum(axis=1, keepdims=True), rtol=1e-12)


def test_stated_group_effect_widens_the_intervals_of_large_groups(rng):
    S, y, groups = grouped(rng)
    width = []
    for effect in (None, 0.1):
        q = oq.AdjustedML(prior="uniform", group_effect=effect).fit_scores(S, y)
        asked = q.for_groups()
        got = estimate(asked, asked.summarize(S, oq.Samples.from_groups(groups % 2)), 0.95)
        width.append((got.upper - got.lower).mean())
    assert width[1] > 1.05 * width[0]


def test_wrong_parameters_are_named(rng):
    S, y, _, _ = problem(rng)
    for parameters, message in (
        (
            {"prior": "flat"},
            "prior must be one of 'any', 'uniform', 'smooth', 'training', or a distribution, got 'flat'",
        ),
        ({"prior": [0.5, 0.5]}, "prior must be a distribution over the 4 classes"),
        ({"prior": [0.5, 0.5, 0.5, 0.5]}, "prior must sum to 1"),
        ({"prior": "uniform", "strength": 3.0}, "strength must be None with prior='uniform'"),
        ({"strength": 0}, "strength must be a finite number > 0"),
        ({"group_effect": 2.0}, r"group_effect must be a number in \(0, 1\]"),
        ({"instrument": "means"}, "instrument must be one of 'sample', 'uniform', 'training'"),
    ):
        with pytest.raises(ValueError, match=message):
            oq.AdjustedML(**parameters).fit_scores(S, y)
