"""oq.solve: estimates from a response matrix and an observed histogram, without a classifier."""

import re
import subprocess
import sys
import warnings
from fractions import Fraction
from math import factorial
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.optimize import minimize
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning

import ordinalq as oq
from ordinalq.losses import ALL_LOSSES, Hellinger, LeastSquares, Poisson
from ordinalq.regularizers import Tikhonov
from ordinalq.representations import HardVotes
from ordinalq.simplex import Data
from ordinalq.solvers.em import STOPS, em_counts
from ordinalq.solvers.newton import NewtonSolver

# Expected counts, whose answer is known, are not whole numbers.
pytestmark = pytest.mark.filterwarnings("ignore:q has counts that are not whole numbers")

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
    oq.OHDy(tau=0.1, centre=[0.1, 0.2, 0.4, 0.2, 0.1]),
    oq.OPDF(tau=0.1),
    oq.RUN(tau=10.0),
    oq.RUN(tau=10.0, acceptance=[1.0, 0.8, 0.7, 0.8, 1.0]),
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
def test_estimates_are_distributions_for_any_counts(method, rng):
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
    jagged = oq.simplex.jaggedness(oq.solve(np.repeat(Q[:1], 3, axis=0), M, method, N=[2, 200, 20_000]))
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
        oq.OPACC(tau=1.0, centre=[0.4, 0.3, 0.15, 0.1, 0.05]),
        oq.PDF(n_bins=12),
        oq.OPDF(tau=0.01),
        oq.RUN(),
        oq.RUN(acceptance=[1, 0.5, 0.3, 0.5, 1]),
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
    centre = np.array([0.1, 0.4, 0.05, 0.3, 0.15])
    assert_allclose(oq.solve(q, M, oq.OACC(tau=1e8, order=0, centre=centre)), centre, atol=1e-6)
    assert_allclose(oq.solve(1e3 * q, M, oq.RUN(tau=1e11, order=0, centre=centre)), centre, atol=1e-5)


def test_two_classes_are_smoothed_by_the_order_zero():
    M = np.array([[0.9, 0.2], [0.1, 0.8]])
    p = np.array([0.3, 0.7])
    tau = 0.5
    # min (1 - 2 t)^2 tau/2 + ||q - M p||^2 along p = (t, 1 - t), by setting the derivative to zero
    a = M[:, 0] - M[:, 1]
    t = (a @ (M @ p - M[:, 1]) + tau) / (a @ a + 2 * tau)
    assert_allclose(oq.solve(M @ p, M, oq.OACC(tau=tau, order=0)), [t, 1 - t], atol=1e-12)
    with pytest.warns(UserWarning, match="a penalty of order 1 has no effect"):
        assert_allclose(oq.solve(M @ p, M, oq.OACC(tau=tau)), p, atol=1e-12)
    with pytest.raises(ValueError, match="order must be at most n - 2 = 0 for 2 classes, got 2"):
        oq.solve(M @ p, M, oq.OACC(tau=tau, order=2))


def test_identical_classes_share_their_mass(rng):
    M = response(rng, 4)[:, [0, 1, 1, 2, 3]]
    q = M @ [0.1, 0.5, 0.0, 0.2, 0.2]
    for method in (oq.ACC(), oq.PDF()):
        assert_allclose(oq.solve(q, M, method), [0.1, 0.25, 0.25, 0.2, 0.2], atol=1e-6)


def run_loss(p, counts, M, tau, acceptance):
    """RUN's objective with acceptance, written from the equations."""
    N, n = counts.sum(), len(p)
    v = M @ p
    w = p / acceptance / (p / acceptance).sum()
    z = np.log10(1 + max(N - n, 1) * w)
    fit = N * v.sum() - (counts[counts > 0] * np.log(N * v[counts > 0])).sum()
    return fit + tau / 2 * np.square(oq.simplex.difference_matrix(n) @ z).sum()


# SciPy 1.13 warns where its own steps leave the bounds.
@pytest.mark.filterwarnings("ignore:Values in x were outside bounds")
@pytest.mark.parametrize("tau", [0.1, 10.0])
def test_run_with_acceptance_reaches_the_minimum_that_scipy_finds(tau, rng):
    acceptance = np.array([1.0, 0.5, 0.25, 0.5, 1.0])
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
    a = np.array([1.0, 0.5, 0.25, 0.5, 1.0])
    plain = oq.solve(counts, M, oq.RUN(tau=0.0))
    assert_allclose(oq.solve(counts, M, oq.RUN(tau=0.0, acceptance=a)), plain, atol=1e-6)
    corrected = oq.solve(counts, M, oq.RUN(tau=5.0, acceptance=a))
    assert_allclose(oq.solve(counts, M, oq.RUN(tau=5.0, acceptance=a / 100)), corrected, atol=1e-6)
    assert np.abs(corrected - oq.solve(counts, M, oq.RUN(tau=5.0, acceptance=np.ones(5)))).max() > 1e-3


def test_unconverged_rows_give_one_warning(rng):
    M = response(rng, 5)
    with pytest.warns(ConvergenceWarning, match="2 of 2 .* did not converge"):
        oq.solve(rng.integers(1, 99, size=(2, 8)), M, oq.RUN(solver=NewtonSolver(max_iter=1)))


# A known background


def spectrum(n=8, d=10, slope=0.35, width=0.9):
    """Return a smearing response (d, n) and a falling distribution (n,)."""
    M = np.exp(-0.5 * ((np.linspace(0, n - 1, d)[:, None] - np.arange(n)) / width) ** 2)
    p = np.exp(-slope * np.arange(n))
    return M / M.sum(axis=0), p / p.sum()


@pytest.mark.parametrize("method", UNREGULARIZED, ids=named)
def test_a_known_background_is_taken_out_exactly(method, rng):
    M = response(rng, 6)
    P = rng.dirichlet(np.ones(6), 5)
    P[0, 2] = 0.0
    P[0] /= P[0].sum()
    S = np.array([50.0, 300.0, 1000.0, 2000.0, 1e5])
    background = rng.uniform(0, 100, size=(5, 9))
    background[:, 3] = 0.0
    counts = S[:, None] * (P @ M.T) + background
    assert_allclose(oq.solve(counts, M, method, background=background), P, rtol=0, atol=1e-5)
    numbers = oq.solve(counts, M, method, background=background, counts=True)
    assert_allclose(numbers, S[:, None] * P, rtol=0, atol=1e-5 * S[:, None].max())


def likelihood(p, counts, M, background, tau):
    """RUN's objective with background, written from the definition of the counts."""
    rate = (counts.sum() - background.sum()) * (M @ p) + background
    penalty = tau / 2 * np.square(oq.simplex.difference_matrix(len(p)) @ p).sum()
    return (rate - counts * np.log(rate)).sum() + penalty


@pytest.mark.parametrize("tau", [0.0, 10.0, 1000.0])
def test_run_with_background_maximizes_the_likelihood_of_all_counts(tau, rng):
    M, p = spectrum()
    background = np.linspace(60, 5, 10)
    for counts in rng.poisson(800 * (M @ p) + background, size=(4, 10)):
        estimate = oq.solve(counts, M, oq.RUN(tau=tau), background=background)
        best = minimize(
            likelihood,
            np.full(8, 1 / 8),
            args=(counts, M, background, tau),
            method="SLSQP",
            bounds=[(0, 1)] * 8,
            constraints={"type": "eq", "fun": lambda p: p.sum() - 1},
            options={"ftol": 1e-13, "maxiter": 500},
        )
        assert likelihood(estimate, counts, M, background, tau) <= best.fun + 1e-8
        assert_allclose(estimate, best.x, rtol=0, atol=1e-4)


def test_ibu_with_background_approaches_the_same_maximum(rng):
    M, p = spectrum(n=5, d=8)
    background = rng.uniform(5, 50, 8)
    counts = rng.poisson(900 * (M @ p) + background, size=(3, 8))
    run = oq.solve(counts, M, oq.RUN(tau=0.0), background=background)
    likelihoods = []
    for k in (1, 10, 20_000):
        ibu = oq.solve(counts, M, oq.IBU(interpolation=0.0, max_iter=k), background=background)
        likelihoods.append(likelihood(ibu[0], counts[0], M, background, 0.0))
    assert likelihoods[0] > likelihoods[1] > likelihoods[2]
    # Where a class has almost no mass the last steps are slow; the likelihood hardly changes any more.
    assert_allclose(ibu, run, rtol=0, atol=1e-3)
    assert likelihoods[2] - likelihood(run[0], counts[0], M, background, 0.0) < 1e-3


def test_ibu_hands_each_bin_to_the_classes_and_the_background_in_proportion():
    M = np.array([[0.8, 0.3], [0.2, 0.7]])
    counts, background = np.array([120.0, 80.0]), np.array([30.0, 10.0])
    S = 160.0
    p = np.array([0.5, 0.5])
    for _ in range(3):
        rate = S * M @ p + background
        items = np.array([sum(counts[j] * S * M[j, i] * p[i] / rate[j] for j in range(2)) for i in range(2)])
        p = items / items.sum()
    estimate = oq.solve(counts, M, oq.IBU(interpolation=0.0, max_iter=3), background=background)
    assert_allclose(estimate, p, atol=1e-14)


@pytest.mark.parametrize("method", [oq.ACC(), oq.OACC(tau=0.1), oq.OPDF(tau=0.1), oq.PDF()], ids=named)
def test_residuals_subtract_the_background(method, rng):
    M = response(rng, 5)
    background = rng.uniform(0, 30, 8)
    counts = rng.poisson(500 * (M @ rng.dirichlet(np.ones(5))) + background, size=(4, 8)) + 31
    subtracted = counts - background
    assert_allclose(oq.solve(counts, M, method, background=background), oq.solve(subtracted, M, method), atol=1e-7)


@pytest.mark.parametrize("method", [*UNREGULARIZED, *REGULARIZED, oq.IBU()], ids=named)
def test_no_background_is_a_background_of_zero(method, rng):
    M = response(rng, 5)
    counts = rng.multinomial(700, M @ rng.dirichlet(np.ones(5)), size=5)
    with_zero = oq.solve(counts, M, method, background=np.zeros(8))
    assert_allclose(with_zero, oq.solve(counts, M, method), rtol=0, atol=1e-6)


@pytest.mark.parametrize("method", [*UNREGULARIZED, *REGULARIZED, oq.IBU()], ids=named)
def test_rows_with_different_backgrounds_are_solved_as_if_alone(method, rng):
    M = response(rng, 5)
    background = rng.uniform(0, 20, size=(4, 8))
    counts = rng.poisson(600 * (M @ rng.dirichlet(np.ones(5))) + background)
    batch = oq.solve(counts, M, method, background=background)
    for q, b, p in zip(counts, background, batch, strict=True):
        assert_allclose(oq.solve(q, M, method, background=b), p, rtol=0, atol=1e-7)
    assert_allclose(batch.sum(axis=1), 1, atol=1e-12)


def test_fractions_with_N_take_a_background_in_items(rng):
    M, p = spectrum()
    background = np.full(10, 12.0)
    counts = rng.poisson(500 * (M @ p) + background)
    of_fractions = oq.solve(counts / counts.sum(), M, oq.RUN(), N=counts.sum(), background=background)
    assert_allclose(of_fractions, oq.solve(counts, M, oq.RUN(), background=background), atol=1e-9)


def test_bins_that_no_class_reaches_have_no_effect_with_any_background(rng):
    M, p = spectrum()
    counts = rng.poisson(500 * (M @ p)) + 20
    wide = np.vstack([M, np.zeros(8)])
    for method in (oq.ACC(), oq.RUN(), oq.IBU()):
        plain = oq.solve(counts, M, method, background=np.full(10, 20.0))
        extended = oq.solve([*counts, 40], wide, method, background=[*np.full(10, 20.0), 40.0])
        assert_allclose(extended, plain, rtol=0, atol=1e-7)


@pytest.mark.parametrize("loss", [loss for loss in ALL_LOSSES if not loss.needs_distances], ids=repr)
def test_derivatives_with_background_are_those_of_the_value(loss, rng):
    M = response(rng, 4)
    Q = rng.dirichlet(np.full(7, 3.0), 3) * 1.5
    background = rng.dirichlet(np.full(7, 3.0), 3) * 0.5
    P = rng.dirichlet(np.full(4, 5.0), 3)
    sizes = np.array([10.0, 300.0, 2000.0])
    data = loss.prepare(Data(Q, M, sizes, background=background))
    at = loss.derivatives(P, data)
    assert_allclose(at.value, loss.value(P, data))
    for step in np.eye(4) - 1 / 4:  # along the simplex
        h = 1e-5
        there, back = (loss.derivatives(P + s * h * step, data) for s in (1, -1))
        slope = (there.value - back.value) / (2 * h)
        assert_allclose(at.gradient @ step / loss.scale(sizes), slope / loss.scale(sizes), rtol=1e-4, atol=1e-6)
        curvature = (there.gradient - back.gradient) / (2 * h) / loss.scale(sizes)[:, None]
        assert_allclose(at.hessian @ step / loss.scale(sizes)[:, None], curvature, rtol=1e-3, atol=1e-4)


def test_the_majorizer_with_background_lies_above_the_hessian(rng):
    M = response(rng, 4)
    Q, background = rng.dirichlet(np.full(7, 3.0), 3) * 1.5, rng.dirichlet(np.full(7, 3.0), 3) * 0.5
    P = rng.dirichlet(np.full(4, 5.0), 3)
    data = Data(Q, M, np.full(3, 500.0), background=background)
    excess = Hellinger().majorizer(P, data) - Hellinger().derivatives(P, data).hessian
    assert (np.linalg.eigvalsh(excess) > -1e-9).all()
    assert excess.max() > 1e-3
    assert Poisson().majorizer(P, data) is None


def test_em_reports_the_likelihood_with_background(rng):
    M, p = spectrum(n=5, d=6)
    background = np.full((1, 6), 0.1)
    Q = p @ M.T + background
    solution = em_counts(Data(Q, M, np.array([500.0]), background=background), max_iter=30_000)
    assert solution.kkt[0] < 1e-6
    assert abs(solution.value[0]) < 1e-6


# Acceptance, and numbers of items


def test_acceptance_turns_the_observed_into_the_existing_items(rng):
    M = response(rng, 5)
    acceptance = np.array([0.1, 0.3, 0.5, 0.9, 1.0])
    existing = np.array([4000.0, 2000.0, 1000.0, 500.0, 250.0])
    counts = M @ (acceptance * existing)
    for method in (oq.ACC(), oq.RUN(tau=0.0), oq.RUN(tau=0.0, acceptance=acceptance), oq.HDx()):
        found = oq.solve(counts, M, method, acceptance=acceptance, counts=True)
        assert_allclose(found, existing, rtol=1e-4)
        shares = oq.solve(counts, M, method, acceptance=acceptance)
        assert_allclose(shares, existing / existing.sum(), rtol=1e-4)


def test_losses_may_be_part_of_the_response(rng):
    R = response(rng, 5)
    acceptance = np.array([0.1, 0.3, 0.5, 0.9, 1.0])
    counts = rng.poisson(R @ (acceptance * 1000), size=(3, 8))
    expected = oq.solve(counts, R, oq.RUN(), acceptance=acceptance, counts=True)
    assert_allclose(oq.solve(counts, R * acceptance, oq.RUN(), acceptance="columns", counts=True), expected, rtol=1e-9)
    assert_allclose(oq.solve(counts, R * acceptance, oq.RUN(), acceptance=acceptance, counts=True), expected, rtol=1e-9)
    assert_allclose(oq.solve(counts, R, oq.RUN(), acceptance="columns"), oq.solve(counts, R, oq.RUN()), atol=1e-12)


def test_full_acceptance_changes_nothing(rng):
    M = response(rng, 5)
    counts = rng.poisson(M @ np.full(5, 100))
    assert_allclose(oq.solve(counts, M, acceptance=np.ones(5)), oq.solve(counts, M), atol=1e-15)


def test_counts_are_the_fractions_times_the_observed_items(rng):
    M = response(rng, 5)
    counts = rng.poisson(M @ np.full(5, 100), size=(3, 8))
    P, T = oq.solve(counts, M, oq.RUN()), oq.solve(counts, M, oq.RUN(), counts=True)
    assert_allclose(T, P * counts.sum(axis=1, keepdims=True), rtol=1e-14)
    assert_allclose(oq.solve(counts[0] / counts[0].sum(), M, oq.RUN(), N=counts[0].sum(), counts=True), T[0])


def test_closure_on_a_steep_spectrum_with_acceptance_and_background(rng):
    # 400 experiments: without regularization the estimate is unbiased, and the pulls have mean 0 and variance 1.
    n = 12
    M, p = spectrum(n=n, d=n, slope=0.25, width=0.45)
    acceptance = np.linspace(0.2, 0.9, n)
    background = np.linspace(80, 20, n)
    existing = 60_000 * p
    counts = rng.poisson(M @ (acceptance * existing) + background, size=(400, n))
    known = {"acceptance": acceptance, "background": background, "counts": True}
    T = oq.solve(counts, M, oq.RUN(tau=0.0), **known)
    pulls = (T.mean(axis=0) - existing) / (T.std(axis=0) / np.sqrt(400))
    assert np.abs(pulls).max() < 4
    # Error propagation through the inverse of M gives the spread.
    inverse = np.linalg.inv(M * acceptance)
    rate = M @ (acceptance * existing) + background
    assert_allclose(T.std(axis=0), np.sqrt(np.square(inverse) @ rate), rtol=0.2)
    assert_allclose(T.sum(axis=1).mean(), existing.sum(), rtol=0.01)
    # Ignoring the background, or the acceptance, is a mistake that shows.
    ignored = oq.solve(counts, M, oq.RUN(tau=0.0), acceptance=acceptance, counts=True)
    assert (ignored.mean(axis=0)[-1] - existing[-1]) / existing[-1] > 0.02


def test_acceptance_means_the_same_for_a_data_set_for_run_and_for_solve(rng):
    # A toy telescope: the spectrum falls, most events of low energy are lost, votes smear.
    n, M = 8, spectrum(n=8, d=8, slope=0.45, width=1.2)[0]
    existing = np.exp(-0.5 * np.arange(n))
    existing /= existing.sum()
    a = np.linspace(0.05, 1, n)
    observed = a * existing / (a @ existing)
    counts = rng.multinomial(2000, M @ observed, size=200)
    existing = np.tile(existing, (200, 1))
    run = oq.RUN(tau=30.0, acceptance=a)
    p = oq.solve(counts, M, run)  # of the observed events, as `fit` and `predict` give it
    t = oq.solve(counts, M, run, acceptance=a)
    corrected = p / a / (p / a).sum(axis=1, keepdims=True)
    assert_allclose(t, corrected, rtol=1e-9)
    # With the inverse, which is another detector, the regularizer expects a wrong shape.
    inverse = oq.solve(counts, M, oq.RUN(tau=30.0, acceptance=(1 / a) / (1 / a).max()))
    inverse = inverse / a / (inverse / a).sum(axis=1, keepdims=True)
    assert oq.metrics.nmd(existing, t).mean() < 0.8 * oq.metrics.nmd(existing, inverse).mean()
    with pytest.raises(ValueError, match=r"acceptance must be 8 numbers in \(0, 1\], the probability"):
        oq.solve(counts, M, oq.RUN(acceptance=1 / a))


def test_the_regularizer_on_the_corrected_spectrum_suits_steep_spectra(rng):
    n = 12
    M, p = spectrum(n=n, d=n, slope=0.45, width=1.2)
    acceptance = 0.9 / (1 + np.exp(-(np.arange(n) - 4)))
    background = np.full(n, 5.0)
    counts = rng.poisson(M @ (acceptance * 40_000 * p) + background, size=(100, n))
    known = {"acceptance": acceptance, "background": background}
    free, smooth = (
        oq.metrics.nmd(
            np.tile(p, (100, 1)), oq.solve(counts, M, oq.RUN(tau=tau, acceptance=acceptance), **known)
        ).mean()
        for tau in (0.0, 3.0)
    )
    assert smooth < 0.8 * free


# Histograms


def histograms(rng, package, **storage):
    """Return observed counts (d = 6) and simulated pairs of observed and true bins (n = 4) as histograms."""
    axes = [package.axis.Regular(6, 0.0, 4.0), package.axis.Regular(4, 0.0, 4.0)]
    true = rng.uniform(0, 4, 4000)
    seen = np.clip(true + rng.normal(0, 0.4, 4000), 0.001, 3.999)
    simulated = package.Hist(*axes) if hasattr(package, "Hist") else package.Histogram(*axes)
    simulated.fill(seen, true)
    observed = type(simulated)(axes[0], **storage)
    observed.fill(np.clip(rng.exponential(1.5, 500) + rng.normal(0, 0.4, 500), 0.001, 3.999))
    return observed, simulated


@pytest.mark.parametrize("name", ["hist", "boost_histogram"])
def test_histograms_go_in_and_out(name, rng):
    package = pytest.importorskip(name)
    q, M = histograms(rng, package)
    result = oq.solve(q, M, oq.RUN(), counts=True)
    assert type(result) is type(q)
    assert result.axes[0] == M.axes[1]
    cells = M.values()
    assert_allclose(result.values(), oq.solve(q.values(), cells / cells.sum(axis=0), oq.RUN(), counts=True))
    assert_allclose(result.values(flow=True).sum(), 500)
    assert result.variances() is None  # estimates are not counts
    assert_allclose(oq.solve(q, M).values().sum(), 1)


def test_histograms_carry_acceptance_and_background_too(rng):
    hist = pytest.importorskip("hist")
    q, M = histograms(rng, hist)
    background, acceptance = q.copy().reset(), hist.Hist(M.axes[1])
    background[...] = np.arange(6.0)
    acceptance[...] = [0.2, 0.4, 0.6, 0.8]
    result = oq.solve(q, M, acceptance=acceptance, background=background)
    R = M.values() / M.values().sum(axis=0)
    expected = oq.solve(q.values(), R, acceptance=[0.2, 0.4, 0.6, 0.8], background=np.arange(6.0))
    assert_allclose(result.values(), expected)


def test_a_histogram_next_to_an_array_gives_an_array(rng):
    hist = pytest.importorskip("hist")
    q, M = histograms(rng, hist)
    R = M.values() / M.values().sum(axis=0)
    expected = oq.solve(q.values(), R)
    assert_allclose(oq.solve(q, R), expected)
    assert_allclose(oq.solve(q.values(), M), expected)
    assert_allclose(oq.solve(np.array([q.values(), q.values()]), M), [expected, expected])


def test_underflow_and_overflow_are_left_out(rng):
    hist = pytest.importorskip("hist")
    q, M = histograms(rng, hist)
    before = oq.solve(q, M, counts=True).values()
    q.fill([-1.0, 99.0, 99.0])
    M.fill([1.0, -5.0, 9.0], [-1.0, 2.0, 9.0])
    assert_array_equal(oq.solve(q, M, counts=True).values(), before)


def test_the_sum_of_counts_may_be_given_too(rng):
    counts, M = np.array([[30.0, 50.0, 20.0], [3.0, 5.0, 2.0]]), GOOD
    assert_array_equal(oq.solve(counts, M, N=[100, 10]), oq.solve(counts, M))


def test_names_of_classes_survive_on_the_true_axis(rng):
    hist = pytest.importorskip("hist")
    observed, true = hist.axis.Integer(0, 3, name="votes"), hist.axis.StrCategory(["bad", "fair", "good"], name="stars")
    M = hist.Hist(observed, true)
    M.fill([0, 0, 1, 1, 1, 2, 2], ["bad", "fair", "bad", "fair", "fair", "good", "good"])
    q = hist.Hist(hist.axis.Integer(0, 3, name="seen", label="what was seen"))
    q.fill([0, 0, 1, 2, 2, 2])
    result = oq.solve(q, M, oq.ACC())
    assert list(result.axes[0]) == ["bad", "fair", "good"]
    assert result.axes[0].name == "stars"


def test_a_weighted_storage_filled_without_weights_is_a_count(rng):
    hist = pytest.importorskip("hist")
    q, M = histograms(rng, hist, storage=hist.storage.Weight())
    assert_allclose(oq.solve(q, M).values(), oq.solve(q.values(), M))


def test_nothing_of_histograms_is_imported_without_them():
    code = (
        "import sys, ordinalq as oq; oq.solve([3, 5], [[0.9, 0.2], [0.1, 0.8]], oq.ACC(), background=[1, 1]); "
        "assert not {'hist', 'boost_histogram'} & set(sys.modules)"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


# Mistakes

GOOD = np.array([[0.7, 0.2, 0.0], [0.2, 0.6, 0.3], [0.1, 0.2, 0.7]])
COUNTS = np.array([30.0, 50.0, 20.0])
WRONG = [
    ({"background": [1, 2]}, r"background must have shape \(3,\) or \(1, 3\), as q, got \(2,\)"),
    ({"background": np.ones((2, 3))}, r"background must have shape \(3,\) or \(1, 3\), as q, got \(2, 3\)"),
    ({"background": [1, -2, 0]}, "background must be >= 0, got -2"),
    ({"background": [1, np.nan, 0]}, "background must be a finite array of numbers"),
    ({"background": [30, 50, 20]}, "background must be less than what was observed, got 100 of 100 in row 0"),
    ({"background": [90, 50, 20]}, "got 160 of 100 in row 0; nothing is left for the classes"),
    ({"background": 3.0}, "background must be a finite array of numbers with rows and columns"),
    ({"background": "none"}, "background must be an array of numbers, got 'none'"),
    ({"acceptance": [0.5, 0.5]}, "acceptance must be one number per class, 3, got 2"),
    ({"acceptance": [0.5, 0.0, 0.5]}, r"acceptance must be shares in \(0, 1\], one per class, got \[0.5 0.  0.5\]"),
    ({"acceptance": [0.5, 2.0, 0.5]}, r"acceptance must be shares in \(0, 1\], one per class, got \[0.5 2.  0.5\]"),
    ({"acceptance": [0.5, np.inf, 0.5]}, "acceptance must be a finite array of numbers"),
    ({"acceptance": [0.5, "x", 0.5]}, "acceptance must be an array of numbers"),
    ({"acceptance": "rows"}, "acceptance must be 'columns' or one number per class, got 'rows'"),
    ({"M": GOOD * 0.5}, "columns of M must be distributions .* are the other items lost\\? Then give acceptance"),
    ({"M": GOOD * 0.5, "acceptance": [0.4, 0.4, 0.4]}, r"sum 1 or acceptance\), got column sums \[0.5 0.5 0.5\]"),
    ({"M": GOOD * 2, "acceptance": "columns"}, r"acceptance must be shares in \(0, 1\]"),
    ({"M": GOOD * [1, 1, 0], "acceptance": "columns"}, r"acceptance must be shares in \(0, 1\]"),
    ({"acceptance": [0.5, 1, 1], "method": oq.RUN(acceptance=[1, 1, 0.5])}, "acceptance .* contradicts that of RUN"),
    ({"counts": "yes"}, "counts must be True or False, got 'yes'"),
    ({"N": 99}, "N must be the sum of q if q are counts, 100 in row 0, got 99; leave N out"),
    ({"q": [COUNTS, 2 * COUNTS], "N": 100}, "N must be the sum of q if q are counts, 200 in row 1, got 100"),
    ({"q": COUNTS / 100, "counts": True}, "N must be given if q are fractions"),
    ({"q": COUNTS / 100, "background": [1, 1, 1], "method": oq.ACC()}, "N must be given if q are fractions"),
    ({"method": oq.SLD(), "background": [1, 1, 1]}, "method must be one that solves q = M p"),
]


@pytest.mark.parametrize(("arguments", "message"), WRONG, ids=[message[:60] for _, message in WRONG])
def test_mistakes_are_named(arguments, message):
    with pytest.raises((ValueError, TypeError), match=message):
        oq.solve(**{"q": COUNTS, "M": GOOD, **arguments})


def test_mistakes_in_histograms_are_named(rng):
    hist = pytest.importorskip("hist")
    q, M = histograms(rng, hist)
    two, one = hist.Hist(*q.axes, *q.axes), hist.Hist(*M.axes[:1])
    weighted = hist.Hist(*q.axes, storage=hist.storage.Weight())
    weighted.fill([1.0, 2.0], weight=[0.5, 3.0])
    means = hist.Hist(*q.axes, storage=hist.storage.Mean())
    means.fill([1.0, 2.0], sample=[0.5, 3.0])
    other = hist.Hist(hist.axis.Regular(6, 0.0, 5.0))
    other.fill([1.0, 2.0])
    shares = hist.Hist(hist.axis.Regular(4, 0.0, 8.0))
    shares[...] = 0.5
    cases = [
        (lambda: oq.solve(two, M), "q must be a histogram with 1 axis, got 2"),
        (lambda: oq.solve(q, one), "M must be a histogram with 2 axes, got 1"),
        (lambda: oq.solve(weighted, M, variances=[1.0] * 6), "variances must be None if q is a histogram"),
        (lambda: oq.solve(means, M), "q must be a histogram of counts, got one of means"),
        (lambda: oq.solve(other, M), re.escape("the first axis of M must be that of q, Regular(6, 0, 5")),
        (lambda: oq.solve(q, M.copy().reset()), "M must have entries >= 0, and some in every true bin"),
        (
            lambda: oq.solve(q, M, acceptance="columns"),
            "acceptance must be one number per class if M is a histogram",
        ),
        (lambda: oq.solve(q, M, background=two), "background must be a histogram with 1 axis, got 2"),
        (lambda: oq.solve(q, M, background=other), "the axis of background must be the observed one, Regular"),
        (lambda: oq.solve(q.values(), M, background=other), "the axis of background must be the observed one"),
        (lambda: oq.solve(q, M.values(), background=other), "the axis of background must be the observed one"),
        (lambda: oq.solve(q, M, acceptance=shares), "the axis of acceptance must be the true one, Regular"),
        (lambda: oq.solve(q.copy().reset(), M), "q must be counts or fractions >= 0 with a positive sum"),
    ]
    for call, message in cases:
        with pytest.raises(ValueError, match=message):
            call()


def test_the_example_for_physicists_recovers_its_spectrum(tmp_path):
    script = Path(__file__).parents[1] / "examples" / "unfold_spectrum.py"
    figure = tmp_path / "spectrum.png"
    command = [sys.executable, "-W", "error", str(script), str(figure)]
    lines = subprocess.run(command, capture_output=True, text=True, check=True).stdout.splitlines()
    true, estimate = (int(part) for part in lines[-1].split()[1:])
    assert true == 20_000
    assert abs(estimate - true) < 1500
    assert figure.read_bytes().startswith(b"\x89PNG")


def test_the_code_of_the_page_on_unfolding_runs(tmp_path, monkeypatch):
    pytest.importorskip("hist")
    monkeypatch.chdir(tmp_path)
    page = (Path(__file__).parents[1] / "docs" / "unfolding.md").read_text(encoding="utf-8")
    names = {}
    for code in re.findall(r"```python\n(.*?)```", page, re.DOTALL):
        exec(code, names)
    assert names["repeated"].shape == (500, 12)
    assert_allclose(names["again"].counts, names["result"].counts)
    assert_allclose(names["histogram"].axes[0].edges, names["edges"])
    assert_allclose(names["histogram"].variances(), names["result"].total_error ** 2)


# IBU as physicists run it


def test_ibu_starts_from_the_given_prior_of_all_items(rng):
    M, a = response(rng, 4), np.array([0.2, 0.5, 0.8, 1.0])
    prior = np.array([4.0, 3.0, 2.0, 1.0])
    q = rng.integers(20, 90, size=7)
    observed = a * prior / (a * prior).sum()
    by_hand = observed * ((q / q.sum() / (M @ observed)) @ M)
    found = oq.solve(q, M, oq.IBU(interpolation=0.0, max_iter=1, prior=prior, acceptance=a))
    assert_allclose(found, by_hand, atol=1e-12)


# Statistics of two successive histograms, worked out by hand for (40, 60) and (50, 50).
BY_HAND = {
    "mean": 0.1,
    "ks": 0.1,
    "chi-square": (100 / 90 + 100 / 110) / 2,
    "max-change": 10 / 90,
    "bayes-factor": float(
        np.log(
            float(
                Fraction(factorial(40) * factorial(60) * factorial(50) ** 2, factorial(91) * factorial(111))
                * Fraction(factorial(201), factorial(100) ** 2)
            )
        )
    ),
}


@pytest.mark.parametrize("name", sorted(STOPS))
def test_stopping_statistics_of_two_histograms(name):
    old, new = np.array([[40.0, 60.0]]), np.array([[50.0, 50.0]])
    assert_allclose(STOPS[name](old, new), BY_HAND[name], atol=1e-6)


@pytest.mark.parametrize("name", sorted(STOPS))
def test_ibu_stops_at_the_first_iteration_whose_statistic_is_small(name, rng):
    M = response(rng, 4)
    q = rng.multinomial(2000, M @ rng.dirichlet(np.full(4, 5.0)))
    steps = [oq.solve(q, M, oq.IBU(interpolation=0.0, max_iter=k), counts=True) for k in range(1, 40)]
    steps = np.array([np.full(4, q.sum() / 4), *steps])
    statistic = STOPS[name](steps[:-1], steps[1:])
    tol = 0.01
    first = int(np.argmax(statistic <= tol))
    assert statistic[first] <= tol
    stopped = oq.solve(q, M, oq.IBU(interpolation=0.0, stop=name, tol=tol), counts=True)
    assert_allclose(stopped, steps[first + 1], rtol=1e-9)


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"stop": "kuiper"}, "stop must be one of"),
        ({"prior": [1.0, 2.0]}, "prior must be 4 numbers > 0"),
        ({"prior": [1.0, 2.0, 0.0, 1.0]}, "prior must be 4 numbers > 0"),
        ({"acceptance": [1.0, 2.0, 0.5, 1.0]}, r"acceptance must be 4 numbers in \(0, 1\]"),
    ],
)
def test_ibu_rejects_parameters_out_of_range(parameters, message):
    with pytest.raises(ValueError, match=message):
        oq.solve([10, 20, 30, 40], np.eye(4), oq.IBU(**parameters))


@pytest.mark.parametrize("method", [oq.PDF(), oq.OPDF(), oq.PACC(), oq.RUN(), oq.IBU(), oq.HDy()])
def test_one_bin_gives_the_uniform_distribution(method):
    """It tells nothing of the classes; PDF compares no cumulated bins at all."""
    assert_allclose(oq.solve([5.0], np.ones((1, 3)), method), np.full(3, 1 / 3), atol=1e-9)


@pytest.mark.parametrize("stop", ["mean", "ks", "chi-square", "bayes-factor", "max-change"])
def test_iterations_with_extreme_numbers_give_one_warning_at_most(stop, rng):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        for scale in (1e-150, 1.0, 1e140):
            M = rng.dirichlet(np.ones(5), 4).T
            acceptance = 10.0 ** -np.array([0.0, 100, 200, 300])
            caught.clear()
            p = oq.solve(
                scale * rng.multinomial(50, np.full(5, 0.2)), M, oq.IBU(stop=stop, tol=1e-9, acceptance=acceptance)
            )
            assert np.isfinite(np.asarray(p)).all()
            assert [str(one.message)[:33] for one in caught] in ([], ["1 of 1 samples did not converge t"])
