"""SLD, o-SLD, IBU, KDEy: naive twins of their EM, limits, likelihood, calibration, memory."""

import tomllib
import tracemalloc
from pathlib import Path

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.optimize import minimize
from seeds import generator

import ordinalq as oq
from ordinalq.classifiers.calibration import Calibration
from ordinalq.metrics import nmd
from ordinalq.protocols import APP
from ordinalq.regularizers import NoPenalty, PolynomialSmoothing, Tikhonov
from ordinalq.solvers.em import em_mixture
from ordinalq.solvers.newton import NewtonSolver
from ordinalq.solvers.objectives import MixtureObjective
from ordinalq.solvers.solution import EXCESS, SMALL_EXCESS


@pytest.fixture(scope="module")
def data():
    """Held-out scores V (900, 5) of an unbalanced training set, pool scores S (1500, 5), ragged samples."""
    rng = generator(11)

    def items(counts):
        codes = np.repeat(np.arange(5), counts)
        logits = -0.7 * np.square(codes[:, None] + rng.normal(size=(len(codes), 1)) - np.arange(5))
        S = np.exp(logits) * np.array([1, 2, 3, 2, 1])
        return S / S.sum(axis=1, keepdims=True), codes

    V, y = items([100, 200, 300, 200, 100])
    S, pool = items([300] * 5)
    index = [rng.choice(1500, size, replace=False) for size in (40, 300, 7, 120, 300, 40, 1, 900)]
    return V, y, S, oq.Samples.from_index(index, 1500, pool)


def naive_smooth(p, order, lam):
    i = np.arange(1, len(p) + 1)
    u = np.maximum(np.polyval(np.polyfit(i, p, order), i), 0)
    u = lam * u / u.sum() + (1 - lam) * p
    return u / u.sum()


def naive_sld(S, p_train, order=0, lam=0.0, n_iter=100):
    """The formula, item by item."""
    n = len(p_train)
    prior = p_train.copy()
    for _ in range(n_iter):
        p = np.zeros(n)
        for s in S:
            numerator = [prior[i] / p_train[i] * s[i] for i in range(n)]
            p += np.array(numerator) / sum(numerator) / len(S)
        prior = naive_smooth(p, order, lam) if lam else p
    return p


def naive_ibu(q, M, order=0, lam=0.0, n_iter=100):
    n = M.shape[1]
    prior = np.full(n, 1 / n)
    for _ in range(n_iter):
        p = np.zeros(n)
        for i in range(n):
            for j in range(len(q)):
                evidence = sum(M[j, k] * prior[k] for k in range(n))
                p[i] += M[j, i] * prior[i] / evidence * q[j]
        prior = naive_smooth(p, order, lam) if lam else p
    return p


def test_sld_equals_its_formula(data):
    V, y, S, samples = data
    P = oq.SLD().fit_scores(V, y).predict_scores(S, samples)
    p_train = np.bincount(y) / len(y)
    for b in (0, 2, 3, 6):
        assert_allclose(P[b], naive_sld(S[samples.index(b)], p_train), atol=1e-12)


@pytest.mark.parametrize(("order", "lam"), [(0, 0.1), (1, 0.1), (2, 0.5), (0, 1.0)])
def test_osld_equals_its_formula(order, lam, data):
    V, y, S, samples = data
    P = oq.OSLD(order=order, interpolation=lam).fit_scores(V, y).predict_scores(S, samples)
    p_train = np.bincount(y) / len(y)
    for b in (0, 2):
        assert_allclose(P[b], naive_sld(S[samples.index(b)], p_train, order, lam), atol=1e-12)


@pytest.mark.parametrize(("order", "lam"), [(0, 0.0), (0, 0.1), (1, 0.1)])
def test_ibu_equals_its_formula(order, lam, rng):
    M = 0.5 * np.eye(4) + 0.5 * rng.dirichlet(np.ones(4), 4).T
    Q = rng.dirichlet(np.ones(4), 3)
    P = oq.solve(Q, M, oq.IBU(order=order, interpolation=lam))
    for p, q in zip(P, Q, strict=True):
        assert_allclose(p, naive_ibu(q, M, order, lam), atol=1e-12)


def test_ibu_reproduces_the_documented_example_of_pyunfold():
    # PyUnfold 0.5.0, first example of its documentation: uniform prior, efficiencies 1, 4 iterations.
    M = np.array([[0.9, 0.1], [0.1, 0.9]])
    p = oq.solve([100, 150], M, oq.IBU(interpolation=0.0, max_iter=4))
    assert_allclose(250 * p, [94.32086967, 155.67913033], atol=5e-9)


REFERENCE = tomllib.loads((Path(__file__).parent / "reference" / "likelihood.toml").read_text(encoding="utf-8"))


@pytest.mark.parametrize("k", range(3))
def test_sld_agrees_with_quapy(k):
    rng = np.random.default_rng(REFERENCE["sld"]["seeds"][k])
    S, p_train = rng.dirichlet(np.ones(4) * 2, 60), rng.dirichlet(np.ones(4) * 5)
    p = em_mixture(MixtureObjective(S / p_train, oq.Samples.whole(60)), p_train).p[0]
    assert_allclose(p, REFERENCE["sld"]["prevalences"][k], atol=1e-12)


@pytest.mark.parametrize("k", range(3))
def test_ibu_agrees_with_pyunfold(k):
    rng = np.random.default_rng(REFERENCE["ibu"]["seeds"][k])
    M = 0.6 * np.eye(5) + 0.4 * rng.dirichlet(np.ones(5), 5).T
    counts = rng.multinomial(1000, M @ rng.dirichlet(np.ones(5) * 2))
    p = oq.solve(counts, M, oq.IBU(interpolation=0.0, max_iter=20))
    assert_allclose(1000 * p, REFERENCE["ibu"]["unfolded"][k], rtol=1e-9)


def test_osld_without_interpolation_is_sld(data):
    V, y, S, samples = data
    assert_array_equal(
        oq.OSLD(interpolation=0.0).fit_scores(V, y).predict_scores(S, samples),
        oq.SLD().fit_scores(V, y).predict_scores(S, samples),
    )


def test_smoothing_equals_a_polynomial_fit(rng):
    P = rng.dirichlet(np.full(6, 0.3), 20)
    for order in range(4):
        for lam in (0.01, 0.5, 1.0):
            expected = [naive_smooth(p, order, lam) for p in P]
            assert_allclose(PolynomialSmoothing(order, lam).smooth(P), expected, atol=1e-12)


def test_likelihood_never_decreases_without_smoothing(data):
    V, y, S, samples = data
    values = [oq.SLD(max_iter=k).fit_scores(V, y).solve_scores(S, samples).value for k in (1, 2, 5, 20, 100, 400)]
    assert (np.diff(values, axis=0) <= 1e-14).all()
    M = 0.5 * np.eye(5) + 0.5 * generator(1).dirichlet(np.ones(5), 5).T
    Q = generator(2).dirichlet(np.ones(5), 4)
    likelihoods = []
    for k in (1, 2, 5, 20, 100, 400):
        V_ = oq.solve(Q, M, oq.IBU(interpolation=0.0, max_iter=k)) @ M.T
        likelihoods.append((Q * np.log(V_)).sum(axis=1))
    assert (np.diff(likelihoods, axis=0) >= -1e-14).all()


def test_newton_attains_at_least_the_likelihood_of_ten_thousand_em_iterations(data):
    V, y, S, samples = data
    em = oq.SLD(max_iter=10_000).fit_scores(V, y).solve_scores(S, samples)
    newton = oq.SLD(solver="newton").fit_scores(V, y).solve_scores(S, samples)
    assert newton.converged.all()
    assert newton.kkt.max() <= 1e-8
    # What "converged" means: above the minimum by at most this.
    allowed = np.maximum(EXCESS * np.abs(newton.value), SMALL_EXCESS)
    assert (newton.value <= em.value + allowed).all()
    assert newton.n_iter.max() < 50


def test_run_without_tau_is_the_limit_of_ibu_without_smoothing(rng):
    M = 0.6 * np.eye(5) + 0.4 * rng.dirichlet(np.ones(5), 5).T
    Q = rng.dirichlet(np.full(5, 3.0), 5)
    limit = oq.solve(Q, M, oq.IBU(interpolation=0.0, max_iter=20_000))
    assert_allclose(oq.solve(Q, M, oq.RUN(tau=0.0), N=1000), limit, atol=1e-5)


def test_tikhonov_on_the_likelihood_makes_estimates_smooth(data):
    V, y, S, samples = data
    rough, smooth = (oq.SLD(tau=tau).fit_scores(V, y).predict_scores(S, samples) for tau in (1e-9, 1e6))
    assert oq.simplex.jaggedness(smooth).max() < 1e-6
    assert oq.simplex.jaggedness(rough).mean() > 1e-2
    newton = oq.SLD(solver="newton").fit_scores(V, y).predict_scores(S, samples)
    assert_allclose(rough, newton, atol=1e-3)


@pytest.mark.parametrize("regularizer", [NoPenalty(), Tikhonov(0.3)], ids=repr)
def test_derivatives_of_the_likelihood_agree_with_finite_differences(regularizer, data):
    _, y, S, samples = data
    objective = MixtureObjective(S / (np.bincount(y) / len(y)), samples, regularizer)
    rows = np.arange(len(samples))
    P = generator(3).dirichlet(np.full(5, 4.0), len(samples))
    at = objective.derivatives(P, rows)
    h = 1e-4
    assert_allclose(objective.value(P, rows), at.value, rtol=1e-13)
    for k, e in enumerate(np.eye(5) * h):
        steps = [objective.derivatives(P + s * e, rows) for s in (-2, -1, 1, 2)]
        values, gradients = ([getattr(step, name) for step in steps] for name in ("value", "gradient"))
        assert_allclose(
            at.gradient[:, k], (values[0] - 8 * values[1] + 8 * values[2] - values[3]) / 12 / h, rtol=1e-6, atol=1e-8
        )
        assert_allclose(
            at.hessian[:, k],
            (gradients[0] - 8 * gradients[1] + 8 * gradients[2] - gradients[3]) / 12 / h,
            rtol=1e-6,
            atol=1e-6,
        )


def test_each_ragged_sample_gets_its_single_estimate(data):
    V, y, S, samples = data
    for quantifier in (oq.SLD(), oq.OSLD(order=1), oq.SLD(solver="newton"), oq.SLD(tau=0.01)):
        P = quantifier.fit_scores(V, y).predict_scores(S, samples)
        for b in range(len(samples)):
            assert_allclose(quantifier.predict_scores(S, samples[b])[0], P[b], atol=1e-9)


def test_tolerance_stops_each_sample_on_its_own(data):
    V, y, S, samples = data
    solution = oq.SLD(tol=1e-4, max_iter=1000).fit_scores(V, y).solve_scores(S, samples)
    assert solution.converged.all()
    assert len(np.unique(solution.n_iter)) > 2
    exact = oq.SLD(max_iter=1).fit_scores(V, y)
    for b in range(len(samples)):
        k = int(solution.n_iter[b])
        before, after = (exact.set_params(max_iter=m).predict_scores(S, samples[b])[0] for m in (k - 1, k))
        assert np.abs(after - before).mean() <= 1e-4
        assert_allclose(solution.p[b], after, atol=1e-12)


def test_unmet_tolerance_is_reported(data):
    V, y, S, samples = data
    solution = oq.SLD(tol=1e-12, max_iter=3).fit_scores(V, y).solve_scores(S, samples)
    assert not solution.converged.all()


def test_items_that_no_class_explains_contribute_nothing():
    ratios = np.array([[1.0, 0.0, 0.0], [0.0, 0.0, 0.0], [0.0, 1.0, 0.0]])
    objective = MixtureObjective(ratios, oq.Samples.whole(3))
    P = em_mixture(objective, np.array([0.5, 0.5, 0.0])).p
    assert np.isfinite(P).all()
    assert_allclose(P, [[1 / 2, 1 / 2, 0]])


def test_newton_on_the_mixture_handles_classes_without_mass(rng):
    ratios = rng.random((50, 4))
    ratios[:, 3] *= 0.1  # never the best explanation
    objective = MixtureObjective(ratios, oq.Samples.whole(50))
    solution = NewtonSolver().minimize(objective)
    assert solution.p[0, 3] == 0
    assert solution.kkt[0] < 1e-10


@pytest.mark.parametrize("kind", ["bcts", "vector"])
def test_calibration_recovers_distorted_posteriors(kind, rng):
    n = 4
    S = rng.dirichlet(np.ones(n), 20_000) * 0.9 + 0.1 / n
    codes = (rng.random((len(S), 1)) > np.cumsum(S, axis=1)).sum(axis=1)
    weights = np.array([0.5] * n) if kind == "bcts" else np.array([0.4, 0.6, 0.5, 0.8])
    distorted = S**weights * np.array([1.0, 2.0, 0.5, 1.0])
    distorted /= distorted.sum(axis=1, keepdims=True)
    calibrated = Calibration(kind).fit(distorted, codes).transform(distorted)
    assert_allclose(calibrated.sum(axis=1), 1, atol=1e-12)
    before, after = (np.abs(A - S).mean() for A in (distorted, calibrated))
    assert after < 0.1 * before
    assert_array_equal(Calibration("none").fit(distorted, codes).transform(distorted), distorted)


def test_calibration_helps_sld_on_distorted_scores(data):
    V, y, S, samples = data
    V, S = (np.sqrt(A) / np.sqrt(A).sum(axis=1, keepdims=True) for A in (V, S))
    errors = [
        oq.metrics.nmd(samples.prevalences, oq.SLD(calibration=kind).fit_scores(V, y).predict_scores(S, samples)).mean()
        for kind in ("none", "bcts")
    ]
    assert errors[1] < 0.8 * errors[0]


def test_memory_of_the_em_does_not_grow_with_the_samples():
    rng = generator(0)
    S = rng.dirichlet(np.ones(12), 5000)
    y = rng.integers(12, size=5000)
    index = rng.integers(5000, size=(400, 1000))
    samples = oq.Samples.from_index(index, 5000)
    quantifier = oq.SLD(max_iter=2).fit_scores(S, y)
    peaks = []
    for part in (samples[:100], samples):
        tracemalloc.start()
        quantifier.solve_scores(S, part)
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
    assert peaks[1] < 1.5 * peaks[0] < 100e6


def test_mass_that_nothing_explains_leaves_estimates_on_the_simplex(rng):
    V = np.eye(4)[[0, 0, 1, 1, 2, 2, 3, 3]]
    V[6:] = [[1.0, 0, 0, 0]] * 2  # class 3 is never predicted
    S = np.eye(4)[[3] * 5 + [0] * 15]
    for quantifier in (oq.IBU(), oq.IBU(order=1, interpolation=1.0), oq.OSLD(order=1, interpolation=1.0), oq.SLD()):
        solution = quantifier.fit_scores(V, np.repeat(np.arange(4), 2)).solve_scores(
            S, [[0, 1, 2], [0, 5, 6], [7, 8, 9]]
        )
        assert np.isfinite(solution.p).all()
        assert_allclose(solution.p.sum(axis=1), 1)


def test_calibration_needs_a_score_of_every_class():
    V = np.full((9, 3), 1 / 3)
    V[6:] = np.nan
    with pytest.raises(ValueError, match="class 3 has no training item with an out-of-sample score"):
        oq.SLD(calibration="bcts").fit_scores(V, np.repeat([1, 2, 3], 3))


def naive_kdey(S, y, T, bandwidth):
    """Return the estimate of KDEy for the sample T, from the formula, by a general optimizer."""
    n = S.shape[1]
    F = np.array(
        [[np.exp(-np.square(S[y == i] - x).sum(axis=1) / (2 * bandwidth**2)).mean() for i in range(n)] for x in T]
    )

    def value(p):
        return -np.log(F @ p).sum()

    def slope(p):
        return -(F / (F @ p)[:, None]).sum(axis=0)

    total = {"type": "eq", "fun": lambda p: p.sum() - 1}
    how = {"bounds": [(1e-12, 1)] * n, "constraints": [total], "options": {"maxiter": 2000, "ftol": 1e-15}}
    found = minimize(value, np.full(n, 1 / n), jac=slope, method="SLSQP", **how)
    return found.x, F


@pytest.mark.parametrize("bandwidth", [0.05, 0.1, 0.3])
def test_kdey_finds_the_optimum_of_a_naive_version(bandwidth, rng):
    y, z = rng.integers(0, 4, 200), rng.choice(4, 60, p=[0.1, 0.2, 0.3, 0.4])
    S, T = (rng.dirichlet(np.ones(4), len(one)) / 2 + np.eye(4)[one] / 2 for one in (y, z))
    fitted = oq.KDEy(bandwidth=bandwidth).fit_scores(S, y)
    found = fitted.solve_scores(T, [np.arange(60), np.arange(30)])
    assert found.converged.all()
    for p, items in zip(found.p, (slice(60), slice(30)), strict=True):
        expected, F = naive_kdey(S, y, T[items], bandwidth)
        assert_allclose(p, expected, atol=1e-3)
        # The likelihood is at least that of the naive version, up to 1e-6.
        assert np.log(F @ p).sum() >= np.log(F @ expected).sum() - 1e-6
    found, expected = fitted.densities(T), naive_kdey(S, y, T, bandwidth)[1]
    assert_allclose(*(F / F.sum(axis=1, keepdims=True) for F in (found, expected)), atol=1e-12)


def test_kdey_chooses_a_bandwidth_that_suits_the_items(rng):
    y, z = rng.integers(0, 3, 600), rng.integers(0, 3, 600)
    # Two clusters for each class, 0.03 apart: wide kernels cannot tell the classes apart.
    corner = rng.integers(0, 2, 600), rng.integers(0, 2, 600)
    S, T = (
        np.c_[0.3 + 0.4 * c + 0.03 * one, np.full(600, 0.1)] + rng.normal(0, 0.004, (600, 2))
        for c, one in zip(corner, (y, z), strict=True)
    )
    S, T = (np.c_[s, 1 - s.sum(axis=1)] for s in (S, T))
    samples = APP(50, 100, random_state=0).draw(z)
    auto = oq.KDEy(bandwidth="auto").fit_scores(S, y)
    assert auto.bandwidth_ < 0.05
    wide = oq.KDEy(bandwidth=0.2).fit_scores(S, y)
    error = [nmd(samples.prevalences, one.predict_scores(T, samples)).mean() for one in (auto, wide)]
    assert error[0] < error[1] / 2


def test_kdey_rejects_a_bandwidth_that_is_not_positive(rng):
    with pytest.raises(ValueError, match="bandwidth must be"):
        oq.KDEy(bandwidth=0).fit_scores(np.eye(3)[[0, 1, 2]], [0, 1, 2])
