"""oq.solve: estimates from a response matrix and an observed histogram, without a classifier."""

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.optimize import minimize
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning

import ordinalq as oq
from ordinalq.losses import LeastSquares, Poisson
from ordinalq.regularizers import Tikhonov
from ordinalq.representations import HardVotes
from ordinalq.solvers.newton import NewtonSolver

# Each takes the order 0 too, so that two classes will do.
UNREGULARIZED = [
    oq.ACC(),
    oq.PACC(),
    oq.HDx(),
    oq.HDy(),
    oq.PDF(),
    oq.OACC(tau=0.0, order=0),
    oq.OPACC(tau=0.0, order=0),
    oq.OHDx(tau=0.0, order=0),
    oq.OHDy(tau=0.0, order=0),
    oq.OPDF(tau=0.0, order=0),
    oq.RUN(tau=0.0, order=0),
    oq.RUN(tau=0.0, order=0, solver="newton"),
    oq.ACC(solver="newton"),
]
REGULARIZED = [
    oq.OACC(tau=0.1),
    oq.OPACC(tau=0.1, order=2),
    oq.OHDx(tau=0.1),
    oq.OHDy(tau=0.1, target=[0.1, 0.2, 0.4, 0.2, 0.1]),
    oq.OPDF(tau=0.1),
    oq.RUN(tau=10.0),
    oq.RUN(tau=10.0, acceptance=[1.0, 1.2, 1.5, 1.2, 1.0]),
]


def named(method):
    changed = ",".join(f"{k}={v}" for k, v in method.get_params().items() if v not in (None, "md"))
    return f"{type(method).__name__}({changed})" if isinstance(method, oq.ACC | oq.RUN) else type(method).__name__


def response(rng, n, d=None):
    """Return a response matrix (d, n) whose columns are distributions with a clear peak."""
    d = n + 3 if d is None else d
    peaks = np.eye(d)[np.linspace(0, d - 1, n).round().astype(int)]
    return (0.6 * peaks + 0.4 * rng.dirichlet(np.ones(d), n)).T


@pytest.mark.parametrize("n", [2, 3, 6, 12])
@pytest.mark.parametrize("method", UNREGULARIZED, ids=named)
def test_recovers_the_distribution_behind_an_exact_histogram(method, n, rng):
    M = response(rng, n)
    P = rng.dirichlet(np.ones(n), 8)
    P[:2, 0] = 0.0  # classes without mass are found too
    P /= P.sum(axis=1, keepdims=True)
    assert_allclose(oq.solve(P @ M.T, M, method, N=1000), P, rtol=0, atol=1e-6)


def test_many_unsmoothed_iterations_of_ibu_approach_the_distribution(rng):
    M = response(rng, 4)
    P = rng.dirichlet(np.full(4, 5.0), 5)
    ibu = {k: oq.solve(P @ M.T, M, oq.IBU(interpolation=0.0, max_iter=k), N=1000) for k in (1, 10, 5000)}
    error = [np.abs(ibu[k] - P).max() for k in ibu]
    assert error[0] > error[1] > error[2]
    assert error[2] < 1e-4


@pytest.mark.parametrize("method", UNREGULARIZED, ids=named)
def test_recovers_the_pure_classes(method, rng):
    M = response(rng, 5)
    assert_allclose(oq.solve(M.T, M, method, N=1000), np.eye(5), rtol=0, atol=1e-6)


@pytest.mark.parametrize("method", [*UNREGULARIZED, *REGULARIZED], ids=named)
def test_one_histogram_is_a_batch_of_one(method, rng):
    M = response(rng, 5)
    counts = rng.multinomial(500, M @ rng.dirichlet(np.ones(5)), size=6)
    batch = oq.solve(counts, M, method)
    assert batch.shape == (6, 5)
    for q, p in zip(counts, batch, strict=True):
        alone = oq.solve(q, M, method)
        assert alone.shape == (5,)
        assert_allclose(alone, p, rtol=0, atol=1e-8)


@pytest.mark.parametrize("method", [*UNREGULARIZED, *REGULARIZED], ids=named)
def test_counts_and_fractions_of_them_agree(method, rng):
    M = response(rng, 5)
    sizes = np.array([100, 1000, 17])
    counts = np.array([rng.multinomial(size, M @ rng.dirichlet(np.ones(5))) for size in sizes])
    fractions = oq.solve(counts / sizes[:, None], M, method, N=sizes)
    assert_allclose(oq.solve(counts, M, method), fractions, rtol=0, atol=1e-9)


@pytest.mark.parametrize("method", [*UNREGULARIZED, *REGULARIZED], ids=named)
def test_estimates_are_distributions_whatever_was_observed(method, rng):
    M = response(rng, 5)
    Q = np.vstack([rng.integers(1, 50, size=(20, 8)), np.eye(8, dtype=int) * 40])  # far outside the image of M
    P = oq.solve(Q, M, method)
    assert (P >= 0).all()
    assert_allclose(P.sum(axis=1), 1, atol=1e-12)


@pytest.mark.parametrize("method", [*UNREGULARIZED, *REGULARIZED], ids=named)
def test_the_method_is_only_read(method, rng):
    M = response(rng, 5)
    before = {**vars(method)}
    oq.solve(np.ones(8), M, method)
    assert vars(method) == before


def test_N_may_be_a_number_or_one_per_row(rng):
    M = response(rng, 5)
    Q = rng.dirichlet(np.ones(8), 3)
    method = oq.RUN(tau=10.0)
    assert_array_equal(oq.solve(Q, M, method, N=200), oq.solve(Q, M, method, N=[200, 200, 200]))
    rows = oq.solve(Q, M, method, N=[20, 200, 20_000])
    for q, N, p in zip(Q, [20, 200, 20_000], rows, strict=True):
        assert_allclose(oq.solve(q, M, method, N=N), p, rtol=0, atol=1e-9)
    # More items, less influence of the regularizer.
    jagged = oq.jaggedness(oq.solve(np.repeat(Q[:1], 3, axis=0), M, method, N=[2, 200, 20_000]))
    assert (np.diff(jagged) > 0).all()


def test_N_weighs_only_likelihoods(rng):
    M = response(rng, 5)
    q = rng.dirichlet(np.ones(8))
    for method in (oq.ACC(), oq.OACC(tau=0.1), oq.OHDy(tau=0.1), oq.PDF(), oq.OPDF(tau=0.1)):
        assert_array_equal(oq.solve(q, M, method, N=10), oq.solve(q, M, method))


def test_the_default_is_run_with_tau_ten(rng):
    M = response(rng, 5)
    counts = rng.multinomial(300, M @ rng.dirichlet(np.ones(5)))
    assert_array_equal(oq.solve(counts, M), oq.solve(counts, M, oq.RUN(tau=10.0)))


def test_lists_and_frames_are_matrices_too(rng):
    M = response(rng, 4)
    counts = rng.integers(1, 99, size=(3, 7))
    P = oq.solve(counts, M, oq.ACC())
    assert_array_equal(oq.solve(counts.tolist(), M.tolist(), oq.ACC()), P)
    assert_array_equal(oq.solve(pd.DataFrame(counts), pd.DataFrame(M), oq.ACC()), P)


def test_a_composition_is_a_method(rng):
    M = response(rng, 5)
    counts = rng.multinomial(300, M @ rng.dirichlet(np.ones(5)), size=4)
    acc = oq.ComposedQuantifier(HardVotes(), LeastSquares(), Tikhonov(0.1))
    run = oq.ComposedQuantifier(HardVotes(), Poisson(), Tikhonov(10.0))
    assert_array_equal(oq.solve(counts, M, acc), oq.solve(counts, M, oq.OACC(tau=0.1)))
    assert_array_equal(oq.solve(counts, M, run), oq.solve(counts, M, oq.RUN(tau=10.0)))


# Against the fitted quantifiers: the same estimate from M_ and the mean representation of the sample


@pytest.mark.parametrize(
    "method",
    [
        oq.ACC(),
        oq.PACC(),
        oq.OACC(tau=0.1),
        oq.OPACC(tau=0.1, order=0),
        oq.OPACC(tau=1.0, target=[0.4, 0.3, 0.15, 0.1, 0.05]),
        oq.PDF(n_bins=12),
        oq.OPDF(tau=0.01),
        oq.RUN(),
        oq.RUN(acceptance=[1, 2, 3, 2, 1]),
        oq.IBU(),
    ],
    ids=lambda m: repr(m).replace(" ", "").replace("\n", ""),
)
def test_equals_the_fitted_quantifier_on_its_own_matrix(method, rng):
    y = rng.integers(0, 5, 400)
    S = rng.dirichlet(np.ones(5), 400) * 0.7 + np.eye(5)[y] * 0.3
    pool = rng.dirichlet(np.full(5, 0.5), 200)
    index = rng.integers(0, 200, size=(6, 80))
    fitted = clone(method).fit_scores(S, y)
    Q = oq.Samples.from_index(index, 200).average(fitted.representation_.transform(pool))
    assert_allclose(oq.solve(Q, fitted.M_, method, N=80), fitted.predict_scores(pool, index), rtol=0, atol=1e-8)


# Regularization and the choice of the optimum


def test_a_strong_regularizer_gives_its_favourite_shape(rng):
    M = response(rng, 5)
    q = rng.dirichlet(np.ones(8))
    assert_allclose(oq.solve(q, M, oq.OACC(tau=1e8, order=0)), np.full(5, 0.2), atol=1e-6)
    straight = oq.solve(q, M, oq.OACC(tau=1e8, order=1))
    assert_allclose(np.diff(straight, 2), 0, atol=1e-6)
    target = np.array([0.1, 0.4, 0.05, 0.3, 0.15])
    assert_allclose(oq.solve(q, M, oq.OACC(tau=1e8, order=0, target=target)), target, atol=1e-6)
    assert_allclose(oq.solve(1e3 * q, M, oq.RUN(tau=1e11, order=0, target=target)), target, atol=1e-5)


def test_two_classes_need_the_order_zero():
    M = np.array([[0.9, 0.2], [0.1, 0.8]])
    p = np.array([0.3, 0.7])
    tau = 0.5
    # min (1 - 2 t)^2 tau/2 + ||q - M p||^2 along p = (t, 1 - t), by setting the derivative to zero
    a = M[:, 0] - M[:, 1]
    t = (a @ (M @ p - M[:, 1]) + tau) / (a @ a + 2 * tau)
    assert_allclose(oq.solve(M @ p, M, oq.OACC(tau=tau, order=0)), [t, 1 - t], atol=1e-12)
    with pytest.raises(ValueError, match="order must be at most n - 2 = 0 for 2 classes, got 1"):
        oq.solve(M @ p, M, oq.OACC(tau=tau))


def test_identical_classes_share_their_mass(rng):
    M = response(rng, 4)[:, [0, 1, 1, 2, 3]]
    q = M @ [0.1, 0.5, 0.0, 0.2, 0.2]
    for method in (oq.ACC(), oq.PDF()):
        assert_allclose(oq.solve(q, M, method), [0.1, 0.25, 0.25, 0.2, 0.2], atol=1e-6)


def run_loss(p, counts, M, tau, acceptance):
    """RUN's objective with acceptance, written from the equations."""
    N, n = counts.sum(), len(p)
    v = M @ p
    w = acceptance * p / (acceptance @ p)
    z = np.log10(1 + max(N - n, 1) * w)
    fit = N * v.sum() - (counts[counts > 0] * np.log(N * v[counts > 0])).sum()
    return fit + tau / 2 * np.square(oq.difference_matrix(n) @ z).sum()


@pytest.mark.parametrize("tau", [0.1, 10.0])
def test_run_with_acceptance_reaches_the_minimum_that_scipy_finds(tau, rng):
    acceptance = np.array([1.0, 2.0, 4.0, 2.0, 1.0])
    for _ in range(5):
        M = response(rng, 5)
        counts = rng.multinomial(400, M @ rng.dirichlet(np.full(5, 2.0)))
        p = oq.solve(counts, M, oq.RUN(tau=tau, acceptance=acceptance))
        starts = [np.full(5, 0.2), *rng.dirichlet(np.ones(5), 3) * 0.9 + 0.02]
        best = min(
            minimize(
                run_loss,
                start / start.sum(),
                args=(counts, M, tau, acceptance),
                method="SLSQP",
                bounds=[(1e-12, 1)] * 5,
                constraints={"type": "eq", "fun": lambda p: p.sum() - 1},
                options={"ftol": 1e-14, "maxiter": 300},
            ).fun
            for start in starts
        )
        assert run_loss(p, counts, M, tau, acceptance) <= best + 1e-6


def test_acceptance_does_nothing_without_regularization_and_units_never_matter(rng):
    M = response(rng, 5)
    counts = rng.multinomial(400, M @ rng.dirichlet(np.ones(5)), size=3)
    a = np.array([1.0, 2.0, 4.0, 2.0, 1.0])
    plain = oq.solve(counts, M, oq.RUN(tau=0.0))
    assert_allclose(oq.solve(counts, M, oq.RUN(tau=0.0, acceptance=a)), plain, atol=1e-6)
    corrected = oq.solve(counts, M, oq.RUN(tau=5.0, acceptance=a))
    assert_allclose(oq.solve(counts, M, oq.RUN(tau=5.0, acceptance=100 * a)), corrected, atol=1e-6)
    assert np.abs(corrected - oq.solve(counts, M, oq.RUN(tau=5.0, acceptance=np.ones(5)))).max() > 1e-3


def test_unconverged_rows_are_told_by_one_warning(rng):
    M = response(rng, 5)
    with pytest.warns(ConvergenceWarning, match="2 of 2 .* did not converge"):
        oq.solve(rng.integers(1, 99, size=(2, 8)), M, oq.RUN(solver=NewtonSolver(max_iter=1)))
