"""Solvers: optimal, exact, never worse than scipy, the same for a batch as for each sample alone."""

from dataclasses import replace

import numpy as np
import pytest
from numpy.testing import assert_allclose
from problems import random_objective, scipy_runs
from scipy.optimize import linprog, minimize

import ordinalq as oq
from ordinalq.losses import ALL_LOSSES, CumulativeSquares, Energy, Hellinger, LeastSquares, MatchDistance, Poisson
from ordinalq.regularizers import LogTikhonov, NoPenalty, Tikhonov
from ordinalq.simplex import Data, Derivatives, difference_matrix
from ordinalq.solvers import quadratic
from ordinalq.solvers.choose import choose
from ordinalq.solvers.l1 import L1Solver
from ordinalq.solvers.newton import NewtonSolver
from ordinalq.solvers.objectives import LinearObjective, Objective
from ordinalq.solvers.quadratic import QuadraticSolver, Systems, simplex_qp
from ordinalq.solvers.solution import kkt_residual

ROW = np.zeros(1, dtype=int)


def scipy_qp(objective, starts):
    """Best value that SLSQP finds on the simplex from the given starts."""
    n = objective.n_classes
    A, (b,) = objective.quadratic()
    constant = objective.value(starts[0][None], ROW)[0] - starts[0] @ (A @ starts[0] - 2 * b)

    def function(p):
        return p @ (A @ p - 2 * b) + constant, 2 * (A @ p - b)

    best = np.inf
    for start in starts:
        run = minimize(
            function,
            start,
            jac=True,
            method="SLSQP",
            bounds=[(0, 1)] * n,
            constraints={"type": "eq", "fun": lambda p: p.sum() - 1, "jac": lambda p: np.ones(n)},
            options={"ftol": 1e-14, "maxiter": 300},
        )
        p = np.maximum(run.x, 0)
        best = min(best, function(p / p.sum())[0])
    return best


def check_quadratic_problems(loss, n_problems, rng):
    for _ in range(n_problems):
        objective = random_objective(rng, loss)
        solution = QuadraticSolver().minimize(objective)
        assert solution.converged.all()
        assert solution.kkt.max() <= 1e-10
        assert_allclose(solution.p.sum(axis=1), 1, atol=1e-14)
        assert (solution.p >= 0).all()
        starts = [
            np.full(objective.n_classes, 1 / objective.n_classes),
            *rng.dirichlet(np.ones(objective.n_classes), 2),
        ]
        assert solution.value[0] <= scipy_qp(objective, starts) + 1e-9


QUADRATIC = [LeastSquares(), Energy(), CumulativeSquares()]


@pytest.mark.parametrize("loss", QUADRATIC, ids=repr)
def test_quadratic_solutions_are_optimal_and_never_worse_than_scipy(loss, rng):
    check_quadratic_problems(loss, 200, rng)


@pytest.mark.slow
@pytest.mark.parametrize("loss", QUADRATIC, ids=repr)
def test_two_thousand_quadratic_solutions_are_optimal_and_never_worse_than_scipy(loss, rng):
    check_quadratic_problems(loss, 2000, rng)


def check_newton_problems(loss, n_blocks, n_problems, rng):
    """Compare the minima of Newton's method with the best of ten runs of scipy."""
    for _ in range(n_problems):
        objective = random_objective(rng, loss, n=int(rng.integers(3, 11)), n_blocks=n_blocks)
        runs = scipy_runs(objective, rng.uniform(-1, 1, (10, objective.n_classes - 1)))
        solution = NewtonSolver().minimize(objective)
        assert solution.converged.all()
        assert solution.value[0] <= min(runs) + 1e-7


NEWTON = [(Poisson(), 1), (Hellinger(), 1), (Hellinger(), 5)]


@pytest.mark.parametrize(("loss", "n_blocks"), NEWTON, ids=str)
def test_newton_is_never_worse_than_the_best_of_ten_scipy_runs(loss, n_blocks, rng):
    check_newton_problems(loss, n_blocks, 25 if n_blocks == 1 else 10, rng)


@pytest.mark.slow
@pytest.mark.parametrize(("loss", "n_blocks"), NEWTON, ids=str)
def test_newton_is_never_worse_than_the_best_of_ten_scipy_runs_on_hundreds(loss, n_blocks, rng):
    check_newton_problems(loss, n_blocks, 300 if n_blocks == 1 else 100, rng)


def linear_program(D, c):
    """Smallest ||c - D p||_1 over the simplex, by HiGHS."""
    d, n = D.shape
    A = np.vstack([np.hstack([D, np.eye(d), -np.eye(d)]), [1.0] * n + [0.0] * 2 * d])
    options = {"primal_feasibility_tolerance": 1e-10, "dual_feasibility_tolerance": 1e-10}
    return linprog(np.r_[np.zeros(n), np.ones(2 * d)], A_eq=A, b_eq=np.r_[c, 1], method="highs", options=options).fun


def test_l1_attains_the_value_of_the_linear_program(rng):
    for _ in range(200):
        objective = random_objective(rng, MatchDistance(), tau=0)
        solution = L1Solver().minimize(objective)
        assert solution.converged.all()
        assert_allclose(solution.value[0], linear_program(objective.data.M, objective.data.Q[0]), atol=1e-9)


def test_l1_takes_the_optimum_nearest_to_uniform(rng):
    several = 0
    for k in range(60):
        n, d = int(rng.integers(3, 9)), int(rng.integers(2, 5))
        M = rng.dirichlet(np.ones(d), n).T
        if k % 3 == 0:
            M = M[:, rng.integers(0, n, n)]
        q = rng.dirichlet(np.ones(d)) if k % 2 else M @ rng.dirichlet(np.ones(n))
        objective = LinearObjective(MatchDistance(), NoPenalty(), Data(q[None], M, np.array([50])))
        p = L1Solver().minimize(objective).p[0]
        D, c = objective.data.M, objective.data.Q[0]
        best = linear_program(D, c)

        # The nearest point of the optimal face {p, s : |c - D p| <= s, sum s <= best}, by SLSQP from our solution.
        def slack(z, D=D, c=c, n=n, best=best):
            r = c - D @ z[:n]
            return np.concatenate([z[n:] - r, z[n:] + r, [best + 1e-11 - z[n:].sum()]])

        run = minimize(
            lambda z, n=n: np.square(z[:n] - 1 / n).sum(),
            np.concatenate([p, np.abs(c - D @ p)]),
            method="SLSQP",
            bounds=[(0, None)] * (n + len(c)),
            constraints=[
                {"type": "ineq", "fun": slack},
                {"type": "eq", "fun": lambda z, n=n: z[:n].sum() - 1},
            ],
            options={"ftol": 1e-14, "maxiter": 500},
        )
        assert_allclose(p, run.x[:n], atol=2e-5)
        several += np.linalg.matrix_rank(np.vstack([D, np.ones(n)])) < n
    assert several > 20


def test_l1_with_a_quadratic_regularizer_is_optimal(rng):
    for _ in range(30):
        objective = random_objective(rng, MatchDistance(), n=6, tau=0.1)
        solution = L1Solver().minimize(objective)
        assert solution.converged.all()
        D, C, K, k = objective.absolute()

        def value(z, D=D, K=K, k=k):
            return z[6:].sum() + z[:6] @ K @ z[:6] / 2 - k @ z[:6]

        def slack(z, D=D, c=C[0]):
            r = c - D @ z[:6]
            return np.concatenate([z[6:] - r, z[6:] + r])

        p = solution.p[0]
        run = minimize(
            value,
            np.concatenate([np.full(6, 1 / 6), np.ones(len(D))]),
            method="SLSQP",
            bounds=[(0, None)] * (6 + len(D)),
            constraints=[{"type": "ineq", "fun": slack}, {"type": "eq", "fun": lambda z: z[:6].sum() - 1}],
            options={"ftol": 1e-13, "maxiter": 1000},
        )
        assert value(np.concatenate([p, np.abs(C[0] - D @ p)])) <= run.fun + 1e-8


@pytest.mark.parametrize("tau", [1e-6, 1e-3, 1e-1])
def test_l1_finds_how_a_weak_regularizer_divides_equal_columns(tau, rng):
    """Between classes with the same column only the regularizer decides; equal rows make no system singular."""
    M = rng.dirichlet(np.ones(8), 5).T[:, [0, 1, 2, 0, 2, 0, 3, 4]]
    M[3] = 0
    M /= M.sum(axis=0)
    Q = np.concatenate([rng.dirichlet(np.ones(8), 100), rng.dirichlet(np.full(8, 0.3), 100) @ M.T])
    objective = LinearObjective(MatchDistance(), Tikhonov(tau, order=1), Data(Q, M, np.full(200, 1000)))
    assert L1Solver().minimize(objective).converged.all()


@pytest.mark.parametrize("loss", ALL_LOSSES, ids=repr)
def test_recovers_known_prevalence(loss, rng):
    """q = M p holds exactly, so p is the optimum of every loss."""
    n = 5
    P = rng.dirichlet(np.ones(n), 20)
    M = 0.6 * np.eye(n) + 0.4 * rng.dirichlet(np.ones(n), n).T
    if isinstance(loss, Energy):
        M = np.abs(np.arange(n)[:, None] - np.arange(n)) * 1.0  # distances between the classes themselves
    objective = LinearObjective(loss, NoPenalty(), Data(P @ M.T, M, np.full(20, 1000)))
    solution = choose(objective).minimize(objective)
    assert solution.converged.all()
    assert_allclose(solution.p, P, atol=1e-6)


@pytest.mark.parametrize("tau", [0.0, 1e-2])
@pytest.mark.parametrize("loss", ALL_LOSSES, ids=repr)
def test_batch_equals_loop(loss, tau, rng):
    objective = random_objective(rng, loss, n=6, n_batch=30, tau=tau)
    whole = choose(objective).minimize(objective)
    for b in range(30):
        single = _row(objective, b)
        alone = choose(single).minimize(single)
        # Several optima may be equally good: then the values agree, and p if it is determined.
        assert_allclose(alone.value[0], whole.value[b], rtol=1e-9, atol=1e-10)
        assert_allclose(alone.p[0], whole.p[b], atol=2e-5)


def _row(objective, b):
    single = object.__new__(LinearObjective)
    single.__dict__.update(objective.__dict__)
    single.data, single.scale = objective.data.take(np.array([b])), objective.scale[b : b + 1]
    single.n_samples = 1
    return single


@pytest.mark.parametrize("loss", [LeastSquares(), Poisson(), Hellinger()], ids=repr)
def test_newton_reaches_the_quadratic_and_any_other_optimum_up_to_its_tolerance(loss, rng):
    for _ in range(20):
        objective = random_objective(rng, loss, n=6, n_batch=10, tau=1e-3)
        solution = NewtonSolver().minimize(objective)
        assert solution.converged.all()
        at = objective.derivatives(solution.p, np.arange(10))
        # Where a histogram fits exactly, the gradient's last digits hang on those of p.
        digits = 1e-6 if isinstance(loss, Hellinger) else 1e-12
        assert_allclose(solution.kkt, kkt_residual(solution.p, at.gradient) / objective.scale, atol=digits)
        if isinstance(loss, LeastSquares):
            assert_allclose(solution.value, QuadraticSolver().minimize(objective).value, atol=1e-10)


def test_newton_minimises_the_log_regularizer(rng):
    for _ in range(20):
        n = int(rng.integers(3, 9))
        M = 0.7 * np.eye(n) + 0.3 * rng.dirichlet(np.ones(n), n).T
        q = rng.multinomial(500, M @ rng.dirichlet(np.ones(n))) / 500
        penalty = LogTikhonov(1.0, acceptance=rng.random(n) + 0.5)
        objective = LinearObjective(Poisson(), penalty, Data(q[None], M, np.array([500])))
        solution = NewtonSolver().minimize(objective)
        assert solution.converged.all()
        assert solution.value[0] <= min(scipy_runs(objective, rng.uniform(-1, 1, (5, n - 1)))) + 1e-6


def test_kkt_residual_is_zero_at_optima_only():
    G = np.array([[1.0, 1.0, 2.0], [1.0, 1.0, 0.5], [1.0, 2.0, 3.0]])
    P = np.array([[0.5, 0.5, 0.0], [0.5, 0.5, 0.0], [0.5, 0.5, 0.0]])
    assert_allclose(kkt_residual(P, G), [0.0, 0.5, 0.5])


def test_degenerate_problems_that_make_the_guess_cycle_are_solved_by_the_safe_method(rng, monkeypatch):
    # Without any round of the fast method, everything goes to the safe one.
    objectives = [random_objective(rng, LeastSquares(), tau=1e-3) for _ in range(50)]
    fast = [QuadraticSolver().minimize(objective) for objective in objectives]
    monkeypatch.setattr(quadratic, "MAX_ROUNDS", 1)
    for objective, expected in zip(objectives, fast, strict=True):
        safe = QuadraticSolver().minimize(objective)
        assert safe.kkt.max() <= 1e-10
        assert_allclose(safe.p, expected.p, atol=1e-8)


def test_the_estimate_is_uniform_if_all_p_are_optimal():
    M = np.full((4, 4), 0.25)
    for loss in (LeastSquares(), CumulativeSquares(), MatchDistance(), Poisson(), Hellinger()):
        objective = LinearObjective(loss, NoPenalty(), Data(np.array([[0.1, 0.2, 0.3, 0.4]]), M, np.array([100])))
        assert_allclose(choose(objective).minimize(objective).p, 0.25, atol=1e-9)


def test_singular_problems_give_the_optimum_nearest_to_uniform(rng):
    for _ in range(50):
        n = int(rng.integers(4, 9))
        M = rng.dirichlet(np.ones(n), 3).T[:, rng.integers(0, 3, n)]  # at most three different classes
        q = M @ rng.dirichlet(np.ones(n))
        objective = LinearObjective(LeastSquares(), NoPenalty(), Data(q[None], M, np.array([100])))
        p = QuadraticSolver().minimize(objective).p[0]
        # Classes with the same column share their mass evenly: that is nearest to uniform.
        for i in range(n):
            same = np.abs(M - M[:, [i]]).max(axis=0) == 0
            assert_allclose(p[same], p[i], atol=1e-6)


def test_hellinger_minima_are_never_worse_than_the_uniform_distribution():
    # The stages that lead to the loss begin near a minimum whose penalty is three times that of the uniform p.
    M = np.array([[0.52, 5611.0, 0.008], [0.48, 19074.0, 0.992]])
    objective = LinearObjective(
        Hellinger(), Tikhonov(1000.0, order=0), Data(np.array([[0.27, 0.86]]), M, np.array([1000]))
    )
    uniform = objective.value(np.full((1, 3), 1 / 3), np.zeros(1, dtype=np.intp))
    assert choose(objective).minimize(objective).value < uniform


def test_hellinger_minima_next_to_a_corner_are_found():
    # The items of one bin are explained by the last class alone. At the corner of the second class its slope is 1e8,
    # and its curvature so much larger that a second-order model shows no gain.
    Q = np.array(
        [[0.165, 0.487, 0.001, 0.321, 0.026, 0.381, 0.125, 0.281, 0.213, 0.0002, 0.019, 0.059, 0.046, 0.015, 0.861]]
    )
    M = np.array(
        [
            [0.046, 0.151, 1e-61],
            [1e-62, 0.457, 0.015],
            [0, 0, 0],
            [0.579, 0.298, 1e-61],
            [0.132, 0.023, 1e-62],
            [0.297, 0.278, 0.152],
            [6e-22, 0.091, 0.282],
            [0, 0, 0],
            [0.095, 0.156, 0.058],
            [2e-22, 5e-22, 0.133],
            [0.067, 0.019, 0.032],
            [9e-28, 0.059, 1e-28],
            [0, 0, 0],
            [0.020, 0.015, 1e-27],
            [4e-28, 0.861, 0.009],
        ]
    )
    objective = LinearObjective(Hellinger(), NoPenalty(), Data(Q, M, np.array([100000.0]), n_blocks=3))
    solution = choose(objective).minimize(objective)
    for step in 10.0 ** -np.arange(1, 13):
        moved = solution.p + step * (np.eye(3) - solution.p)
        values = objective.take(np.zeros(3, dtype=np.intp)).value(moved, np.arange(3))
        assert (values >= solution.value - 1e-9).all()


def test_hellinger_minima_that_fit_one_histogram_exactly_are_compared_with_others():
    # The first start ends where the first of three histograms fits exactly; the mean distance, .08, is moderate.
    Q = np.array([[0.505, 0.278, 0.217, 0.321, 0.351, 0.328, 0.017, 0.747, 0.236]])
    M = np.array(
        [
            [0.767, 0.764, 0.135, 0.135, 0.009, 0.506],
            [0.232, 0.084, 0.337, 0.337, 0.740, 0.449],
            [0.001, 0.152, 0.528, 0.528, 0.251, 0.045],
            [0.340, 0.034, 0.375, 0.326, 0.340, 0.340],
            [0.251, 0.895, 0.355, 0.278, 0.365, 0.365],
            [0.409, 0.071, 0.270, 0.396, 0.295, 0.295],
            [0.002, 0.040, 0.020, 0.144, 0.729, 0.001],
            [0.954, 0.769, 0.445, 0.839, 0.238, 0.954],
            [0.044, 0.191, 0.535, 0.017, 0.033, 0.045],
        ]
    )
    objective = LinearObjective(Hellinger(), Tikhonov(1.0), Data(Q, M, np.array([1000.0]), n_blocks=3))
    assert choose(objective).minimize(objective).value < 0.0885


def test_hellinger_minima_at_a_kink_are_found_next_to_a_start():
    # The first of four histograms fits exactly at (.52, 0, .48). With rounded kinks, there is no minimum near by.
    Q = np.array([[0.52, 0.48, 0.499, 0.501, 0.363, 0.637, 0.049, 0.951]])
    M = np.array(
        [
            [1, 0.9998, 0.0002],
            [0, 0.0002, 0.9998],
            [0.9959, 1, 1],
            [0.0041, 0, 0],
            [0.3749, 0.3115, 0.5594],
            [0.6251, 0.6885, 0.4406],
            [0.0406, 0.9247, 0.8169],
            [0.9594, 0.0753, 0.1831],
        ]
    )
    objective = LinearObjective(Hellinger(), Tikhonov(1e-3), Data(Q, M, np.array([1000.0]), n_blocks=4))
    solution = choose(objective).minimize(objective)
    assert solution.value <= objective.value(np.array([[0.52, 0, 0.48]]), np.arange(1))


def test_hellinger_minima_with_one_exactly_fitting_histogram_are_found():
    # The second of three fits at (0, .518, 0, .482, 0), with .21842; (0, .358, 0, .642, 0) is a minimum with .21860.
    Q = np.array([[0.1301, 0.8699, 0.4963, 0.5037, 0.1323, 0.8677]])
    M = np.array(
        [
            [0.2909, 0.6860, 0.7706, 0.0569, 0.6720],
            [0.7091, 0.3140, 0.2294, 0.9431, 0.3280],
            [0.9972, 0.0290, 0.3638, 0.9990, 0.4587],
            [0.0028, 0.9710, 0.6362, 0.0010, 0.5413],
            [0.7239, 0.5984, 0.3754, 0.2811, 0.3313],
            [0.2761, 0.4016, 0.6246, 0.7189, 0.6687],
        ]
    )
    objective = LinearObjective(Hellinger(), Tikhonov(1e-3, order=0), Data(Q, M, np.array([1000.0]), n_blocks=3))
    assert choose(objective).minimize(objective).value < 0.2185


def test_hellinger_minima_at_a_kink_of_a_good_fit_are_compared_with_other_kinks():
    # The second of seven histograms fits exactly at (0, .042, .958), with .0597; the third class alone has .0580.
    first = [0.000, 0.633, 0.600, 0.867, 0.767, 0.200, 0.200]
    M = [
        [0.529, 0.325, 0.000],
        [0.851, 0.066, 0.658],
        [0.849, 0.015, 0.628],
        [0.800, 0.758, 0.968],
        [0.096, 0.214, 0.821],
        [0.128, 0.606, 0.239],
        [0.619, 0.424, 0.166],
    ]
    Q, M = np.array([[v, 1 - v] for v in first]).reshape(1, -1), np.array([[r, 1 - np.array(r)] for r in M])
    objective = LinearObjective(Hellinger(), NoPenalty(), Data(Q, M.reshape(-1, 3), np.array([30.0]), n_blocks=7))
    assert choose(objective).minimize(objective).value <= objective.value(np.eye(3)[[2]], np.arange(1))


def test_a_strong_penalty_next_to_a_long_column_leaves_the_other_classes_exact():
    # The column of the second class is 10,000 times as long, so it has no mass. Of the multiplier of the penalty,
    # 1e11 times a difference of p, only five digits can be computed from p.
    Q = np.array([[0.0990, 0.4578, 0.0735, 0.0617, 0.4089, 0.1051]])
    M = np.array(
        [
            [0.1045, 3092.6, 0.0089, 0.1747],
            [0.1731, 10983.2, 0.4017, 0.0877],
            [0.0707, 980.0, 0.0559, 0.2310],
            [0.2281, 3304.9, 0.2188, 0.2566],
            [0.1977, 7938.7, 0.2498, 0.1240],
            [0.2259, 5343.9, 0.0650, 0.1260],
        ]
    )
    background = np.array([[0.0657, 0.0244, 0.0735, 0.0284, 0.0089, 0.0051]])
    data = Data(Q, M, np.array([30.0]), background=background)
    objective = LinearObjective(LeastSquares("poisson"), Tikhonov(1e11, order=2), data)
    solution = choose(objective).minimize(objective)
    assert solution.converged
    # Along this direction, the penalty does not change.
    direction = np.array([-2, 0, 1, 1])
    for step in 10.0 ** -np.arange(2, 8):
        for moved in (solution.p + step * direction, solution.p - step * direction):
            inside = moved.min() >= 0
            assert not inside or objective.value(moved, np.arange(1)) >= solution.value - 1e-10


def test_large_curvatures_cost_no_digits_of_the_sum_of_p(rng):
    # Classes 1 and 2 differ by the penalty alone; class 0 has nearly no mass, and its column is the reference.
    columns = rng.dirichlet(np.ones(4), 2)
    R = np.array([np.zeros(4), columns[0], columns[0], columns[1]])
    A = 1e8 * R @ R.T + difference_matrix(4, 2).T @ difference_matrix(4, 2)
    p = np.concatenate([[1e-10], rng.dirichlet([5.0, 5.0, 0.01]) * (1 - 1e-10)])
    for matrix in (A, A[None]):
        found, _ = simplex_qp(matrix, (A @ p)[None])
        assert_allclose(found[0, 0], p[0], rtol=0, atol=1e-12)


def test_columns_of_vanishing_length_do_not_lead_off_the_simplex():
    # Two columns are so short that differences between them are lost next to the others: flat directions of many sizes.
    M = np.array([[0.301, 9.6e-93, 0.122, 0.445, 4.1e-93]])
    objective = LinearObjective(LeastSquares(), NoPenalty(), Data(np.array([[0.5]]), M, np.array([30])))
    solution = QuadraticSolver().minimize(objective)
    assert solution.converged.all()
    assert_allclose(solution.p, [[0, 0, 0, 1, 0]], atol=1e-12)


@pytest.mark.parametrize("loss", [LeastSquares(), CumulativeSquares()], ids=repr)
def test_directions_without_data_or_penalty_cost_no_digits_of_the_others(loss, rng):
    # A straight line through the middle of mirrored columns changes nothing, and the weak penalty next to nothing.
    for _ in range(100):
        M = rng.dirichlet(np.full(6, 0.5), 3).T[:, [0, 1, 2, 2, 1, 0]]
        Q = rng.multinomial(1000, M @ rng.dirichlet(np.ones(6)), size=20) / 1000
        objective = LinearObjective(loss, Tikhonov(1e-5, order=2), Data(Q, M, np.full(20, 1000)))
        solution = QuadraticSolver().minimize(objective)
        assert solution.converged.all()
        assert_allclose(solution.p, solution.p[:, ::-1], atol=1e-8)


@pytest.mark.parametrize("n_items", [1e6, 1e9, 1e12, 1e15])
def test_nearly_equal_columns_give_equal_estimates_alone_and_in_a_batch_or_a_flag(n_items, rng):
    for _ in range(20):
        n, tau = int(rng.integers(3, 13)), float(rng.choice([0.0, 1e-6, 1e-3]))
        M = rng.dirichlet(np.ones(n + 3), n).T
        M[:, 1] = M[:, 0] * (1 + 10 ** rng.uniform(-14, -9) * rng.normal(size=n + 3))
        M /= M.sum(axis=0)
        Q = rng.dirichlet(np.ones(n), size=8) @ M.T
        objective = LinearObjective(Poisson(), Tikhonov(tau), Data(Q, M, np.full(8, n_items)))
        together = NewtonSolver().minimize(objective)
        for i in range(8):
            alone = NewtonSolver().minimize(objective.take(np.array([i])))
            if together.converged[i] and alone.converged[0]:
                assert_allclose(alone.p[0], together.p[i], atol=1e-4)


def test_own_matrices_equal_a_shared_one(rng):
    A = rng.normal(size=(6, 6))
    A = A @ A.T
    b = rng.normal(size=(40, 6))
    shared, _ = simplex_qp(A, b)
    own, _ = simplex_qp(np.broadcast_to(A, (40, 6, 6)), b)
    assert_allclose(own, shared, atol=1e-12)


def test_solvers_reject_objectives_they_cannot_solve(rng):
    poisson, absolute = random_objective(rng, Poisson()), random_objective(rng, MatchDistance())
    with pytest.raises(TypeError, match="'quadratic' needs a quadratic objective"):
        QuadraticSolver().minimize(poisson)
    with pytest.raises(TypeError, match="'l1' needs a sum of absolute residuals"):
        L1Solver().minimize(poisson)
    with pytest.raises(TypeError, match="'newton' needs a smooth objective"):
        NewtonSolver().minimize(absolute)


def test_too_few_iterations_are_reported_not_hidden(rng):
    M = 0.5 * np.eye(8) + 0.5 * rng.dirichlet(np.ones(8), 8).T
    Q = rng.multinomial(1000, rng.dirichlet(np.ones(8)), size=5) / 1000
    objective = LinearObjective(Poisson(), NoPenalty(), Data(Q, M, np.full(5, 1000)))
    solution = NewtonSolver(max_iter=1).minimize(objective)
    assert not solution.converged.any()
    assert (solution.n_iter == 1).all()
    assert_allclose(solution.p.sum(axis=1), 1)


@pytest.mark.parametrize("size", [1, 3, 10])
def test_hellinger_of_small_samples_is_as_good_as_scipys_best_or_flagged(size, rng):
    # Small samples leave bins empty, where the loss has corners; a minimum that is missed must not count as found.
    worse = 0
    for _ in range(30):
        n = int(rng.integers(3, 8))
        M = np.concatenate([rng.dirichlet(np.ones(4), n).T for _ in range(n)])
        q = np.concatenate([rng.multinomial(size, rng.dirichlet(np.ones(4))) / size for _ in range(n)])
        objective = LinearObjective(Hellinger(), Tikhonov(1e-3), Data(q[None], M, np.array([size]), n))
        solution = NewtonSolver().minimize(objective)
        best = min(scipy_runs(objective, rng.uniform(-1, 1, (5, n - 1))))
        worse += solution.value[0] > best + 1e-7
        assert solution.kkt[0] <= 1e-4 or not solution.converged[0]
    assert worse == 0


class Misleading(Objective):
    """p_1, with a Hessian that says the slope is about to end, and a majorizer that knows better."""

    n_samples, n_classes, convex = 2, 3, False
    scale = np.ones(2)

    def derivatives(self, P, rows):
        H = np.broadcast_to(-1e20 * np.eye(3), (len(P), 3, 3))
        return Derivatives(P[:, 0], np.tile([1.0, 0.0, 0.0], (len(P), 1)), H)

    def majorizer(self, P, rows):
        return np.broadcast_to(np.eye(3), (len(P), 3, 3))

    def passes(self, chosen=None):
        yield np.arange(2), self


class WithoutMajorizer(Misleading):
    """The same, and nothing better than the Hessian."""

    def majorizer(self, P, rows):
        return None


def test_a_model_that_leaves_no_step_gives_way_to_the_majorizer():
    solution = NewtonSolver().minimize(Misleading())
    assert solution.converged.all()
    assert_allclose(solution.value, 0, atol=1e-9)


def test_without_a_majorizer_such_a_sample_is_not_called_converged():
    solution = NewtonSolver().minimize(WithoutMajorizer())
    assert not solution.converged.any()


class Faint(Misleading):
    """p_1 / 10^11: next to no gradient, but more to be gained than what counts as nothing."""

    convex = True

    def derivatives(self, P, rows):
        return Derivatives(1e-11 * P[:, 0], np.tile([1e-11, 0.0, 0.0], (len(P), 1)), np.zeros((len(P), 3, 3)))


def test_a_small_gradient_alone_is_not_an_optimum():
    solution = NewtonSolver().minimize(Faint())
    assert solution.converged.all()
    assert_allclose(solution.p[:, 0], 0, atol=1e-3)


class Undecided(Systems):
    """Two classes: with both in use the second has less than nothing, without it that one is missed."""

    b = np.zeros((1, 2))

    def solve(self, free, rows):
        both = free.all(axis=1, keepdims=True)
        return np.where(both, [[1.5, -0.5]], [[1.0, 0.0]]), np.where(both, 0.0, [[0.0, -1.0]])

    def size(self, P, rows):
        return np.ones(P.shape)

    def largest_size(self, P, rows):
        return np.ones(len(P))


def test_active_sets_without_an_end_are_flagged():
    P, _, ended = quadratic.active_set(Undecided(), np.ones((1, 2), dtype=bool))
    assert not ended.any()
    assert_allclose(P.sum(axis=1), 1)


def test_samples_that_do_not_fit_get_other_starts_and_the_best_minimum_counts(monkeypatch):
    rng = np.random.default_rng(8)  # four of these samples have a lower minimum than the first start finds
    rng.choice([1, 3, 10, 300]), rng.integers(3, 8)
    n, size, n_samples = 4, 10, 60
    M = np.concatenate([rng.dirichlet(np.ones(4), n).T for _ in range(n)])
    draws = [[rng.multinomial(size, rng.dirichlet(np.ones(4))) / size for _ in range(n)] for _ in range(n_samples)]
    data = Data(np.array(draws).reshape(n_samples, -1), M, np.full(n_samples, size), n)
    objective = LinearObjective(Hellinger(), Tikhonov(1e-3), data)
    several = NewtonSolver().minimize(objective).value
    monkeypatch.setattr(Hellinger, "ambiguous", lambda self, P, data: np.zeros(len(data), dtype=bool))
    one = NewtonSolver().minimize(objective).value
    assert (several <= one + 1e-12).all()
    assert (several < one - 1e-6).any()


def histograms_with_a_kink(rng):
    """Return q (9,) and M (9, 4): the first two classes can fit the first of three histograms, the others miss it."""
    first, second, third = (rng.dirichlet(np.ones(3), 4).T for _ in range(3))
    first[2] = [0, 0, 0.5, 0.5]
    first[:2] *= (1 - first[2]) / first[:2].sum(axis=0)
    p = np.append(rng.dirichlet([3, 3]), [0, 0])
    rest = [0.9 * M @ p + 0.1 * rng.dirichlet(np.ones(3)) for M in (second, third)]
    return np.concatenate([first @ p, *rest]), np.concatenate([first, second, third])


def test_classes_without_mass_do_not_hide_the_curvature_next_to_a_kink(rng):
    # The squared distance of the first histogram is linear in the masses of the last two classes, so that where it fits
    # but for 1e-8, the curvature along them is about -1e22; that of the others is less than 1e8.
    for _ in range(20):
        q, M = histograms_with_a_kink(rng)
        data = Data(q[None], M, np.array([1000.0]), 3)
        found = NewtonSolver().minimize(LinearObjective(Hellinger(), NoPenalty(), data))
        assert found.converged.all()
        assert found.kkt[0] <= 1e-7
        assert found.n_iter[0] <= 60


def test_only_samples_that_do_not_fit_are_ambiguous():
    M = np.array([[0.7, 0.1], [0.2, 0.3], [0.1, 0.6]])
    data = Data(np.array([M @ [0.4, 0.6], [0.0, 0.0, 1.0]]), M, np.array([10.0, 1e5]))
    P = np.array([[0.4, 0.6], [0.0, 1.0]])
    assert Hellinger().ambiguous(P, data).tolist() == [False, True]
    assert not Hellinger(squared=True).ambiguous(P, data).any()


def test_only_a_kink_that_other_p_leave_is_ambiguous():
    # The second histogram fits every p, the first fits in the first sample. The third does not fit.
    M = np.array([[0.9, 0.1], [0.1, 0.9], [0.5, 0.5], [0.5, 0.5], [0.6, 0.4], [0.4, 0.6]])
    P = np.array([[0.3, 0.7], [0.3, 0.7]])
    Q = P @ M.T + np.array([[0, 0, 0, 0, 0.25, -0.25], [0.01, -0.01, 0, 0, 0.25, -0.25]])
    assert Hellinger().ambiguous(P, Data(Q, M, np.array([10.0, 10.0]), n_blocks=3)).tolist() == [True, False]
    assert not Hellinger().ambiguous(P, Data(P @ M.T, M, np.array([10.0, 10.0]), n_blocks=3)).any()


def test_emphases_count_one_histogram_after_the_other(rng):
    M = np.concatenate([rng.dirichlet(np.ones(4), 5).T for _ in range(3)])
    data = Data(np.concatenate(rng.dirichlet(np.ones(4), 3))[None], M, np.array([100.0]), 3)
    found = data.emphases()
    assert data.take(np.array([0])).emphases()[0].n_blocks == 3
    assert replace(data, n_blocks=1).emphases() == []
    assert len(found) == 3
    fits = []
    for part in (data, *found):
        objective = LinearObjective(Hellinger(squared=True), NoPenalty(), part)
        p = NewtonSolver().minimize(objective).p
        fits.append([Hellinger(squared=True).value(p, replace(data, Q=q, M=m, n_blocks=1))[0]
                     for q, m in zip(np.split(data.Q, 3, axis=1), np.split(M, 3), strict=True)])  # fmt: skip
    # Each histogram is fitted best where it counts most.
    assert (np.argmin(fits, axis=0) == [1, 2, 3]).all()


@pytest.mark.parametrize(
    "method", [oq.PACC(), oq.OPACC(), oq.HDy(), oq.OHDy(), oq.PDF(), oq.OPDF(), oq.RUN(), oq.IBU()], ids=str
)
def test_an_estimate_is_the_same_in_any_batch_up_to_rounding(method, rng):
    """The tolerance is that of docs/solvers.md, for matrices with a condition number below 100."""
    for _ in range(10):
        n, B = int(rng.integers(3, 9)), int(rng.integers(10, 60))
        M = 0.7 * np.eye(n) + 0.3 * rng.dirichlet(np.ones(n), n).T
        assert np.linalg.cond(M) < 100
        Q = rng.multinomial(200, np.full(n, 1 / n), B).astype(np.float64)
        together = np.asarray(oq.solve(Q, M, method))
        for rows in (slice(0, 1), slice(0, B // 2), slice(B // 3, None)):
            assert_allclose(np.asarray(oq.solve(Q[rows], M, method)), together[rows], rtol=0, atol=1e-12)
