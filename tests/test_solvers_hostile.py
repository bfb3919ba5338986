"""A part of the hostile problems of benchmarks/hostile.py: no silent excess, no exception, nothing off the simplex."""

import importlib
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose
from seeds import SEED

import ordinalq as oq
from ordinalq.losses import ALL_LOSSES, Energy, LeastSquares, MatchDistance, Poisson
from ordinalq.regularizers import NoPenalty, Tikhonov
from ordinalq.simplex import Data
from ordinalq.solvers.choose import choose
from ordinalq.solvers.objectives import LinearObjective

N_PROBLEMS = 120
# Of ten thousand problems about ten are flagged: more than so many of 120 would be in less than one run of a million.
MOST_FLAGGED = 5
# Seed and index of problems that were once answered wrongly without a word, or flagged though they are well posed.
ONCE_WRONG = {
    "nearly equal columns of absolute residuals need their own units": (1, 770),
    "a long column hides what a correction finds": (1, 1944),
    "a small gradient is not a small excess": (1, 4020),
    "multipliers of absolute residuals by singular values": (1, 523),
    "without curvature the penalty is all there is": (2, 3953),
    "another histogram fits exactly at a better minimum": (0, 10348),
    "a better minimum has other classes": (0, 21188),
    "a small gradient is not a small excess near a kink": (0, 397),
    "no step leads away from where nothing explains the items of a bin": (0, 5556),
    "no step leads away from there, with large values": (0, 5775),
    "a bin with next to no items asks for next to no mass": (0, 11977),
    "a long column lacks a mass that no step can add": (0, 23562),
    "without curvature the gradient is all there is": (0, 11163),
    "absolute residuals of 1e-12": (2, 22468),
    "absolute residuals of 1e-12 with many classes": (1, 18839),
    "absolute residuals in units of a long column": (1, 9445),
    "a step of nothing where the model bends downwards": (0, 3183),
    "another kink is lower than that of a good fit": (52, 905),
    "a kink lies next to a lower minimum": (55, 21345),
    "the sum of p has all its digits next to large curvatures": (51, 940),
    "a step that values cannot judge is taken next to a long column": (52, 6391),
    "a step without an expected gain is not a failure": (52, 16975),
}
NOT_DISTANCES = [loss for loss in ALL_LOSSES if not isinstance(loss, Energy)]


@pytest.fixture(scope="module")
def hostile():
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(Path(__file__).parents[1] / "benchmarks")
        return importlib.import_module("hostile")


def test_hostile_problems_are_solved_or_flagged(hostile):
    verdicts = [hostile.judge(i, SEED) for i in range(N_PROBLEMS)]
    silent = [v for v in verdicts if v.excess > 0 and not v.flagged]
    assert silent == []  # exceptions and NaN have an infinite excess
    assert sum(v.flagged for v in verdicts) <= MOST_FLAGGED
    assert [v for v in verdicts if v.flagged and v.condition < 1e8] == []


def test_methods_survive_hostile_items(hostile):
    methods = hostile.hostile_methods
    quick = [name for name in methods.NAMES if name not in methods.SLOW]
    failed = [one for name in quick for i in range(4) if (one := methods.judge(name, i, SEED)).failures]
    assert failed == []


@pytest.mark.parametrize(("seed", "index"), ONCE_WRONG.values(), ids=ONCE_WRONG)
def test_problems_that_were_once_wrong_are_solved(hostile, seed, index):
    verdict = hostile.judge(index, seed)
    assert verdict.excess == 0
    assert not verdict.flagged


def test_a_problem_that_is_lost_in_rounding_is_flagged(hostile):
    # Two columns differ by 1e-10: the curvature between them is lost, and with it which of them should have mass.
    assert hostile.judge(3142, 2).flagged


def test_a_penalty_that_is_lost_next_to_a_long_column_at_a_kink_is_flagged(hostile):
    # Many p fit exactly. Those with a smaller penalty of 1e-6 are only reached by moves that the long column balances.
    assert hostile.judge(19612, 54).flagged


def test_the_certificates_notice_answers_that_are_not_optimal(hostile):
    noticed = 0
    for i in range(40):
        problem = hostile.draw(i, SEED)
        if problem.loss in ("hellinger", "absolute"):
            continue
        data = problem.objective.data
        p = choose(problem.objective).minimize(problem.objective).p[0]
        worse = 0.99 * p + 0.01 * np.eye(len(p))[p.argmin()]
        with np.errstate(all="ignore"):  # as in `judge`
            value, best = hostile.convex_minimum(problem, data, worse)
        at = problem.objective.value(np.array([p]), np.zeros(1, dtype=int))[0]
        assert best <= at + hostile.tolerance(at, 1e-9)
        noticed += value - best > hostile.tolerance(best, 1e-9)
    assert noticed > 10


def flat_data(rng, n_batch=3, n=6):
    """Problems whose M has equal columns; q in the image of M, counts, or anything."""
    d = int(rng.integers(3, 10))
    M = rng.dirichlet(np.full(d, 0.5), n).T[:, rng.integers(0, n - 2, n)]
    Q = rng.dirichlet(np.ones(n), n_batch) @ M.T
    kind = rng.integers(3)
    if kind == 1:
        Q = np.array([rng.multinomial(50, q / q.sum()) / 50 for q in Q])
    elif kind == 2:
        Q = rng.dirichlet(np.ones(d), n_batch)
    return Data(Q, M, np.full(n_batch, 50.0))


# Absolute residuals have no regularizer in the catalog; with one, interior points are as exact as their duality gap.
FLAT = [(loss, tau) for loss in NOT_DISTANCES for tau in (0.0, 1e-2, 1e8)]
FLAT = [(loss, tau) for loss, tau in FLAT if tau == 0 or not isinstance(loss, MatchDistance)]


@pytest.mark.parametrize(("loss", "tau"), FLAT, ids=str)
def test_batch_equals_loop_on_flat_problems(loss, tau):
    penalty = NoPenalty() if tau == 0 else Tikhonov(tau)
    for seed in range(10):
        data = flat_data(np.random.default_rng(seed))
        objective = LinearObjective(loss, penalty, data)
        whole = choose(objective).minimize(objective)
        for b in range(len(data)):
            single = LinearObjective(loss, penalty, data.take(np.array([b])))
            assert_allclose(choose(single).minimize(single).p[0], whole.p[b], rtol=0, atol=1e-9)


@pytest.mark.parametrize("loss", NOT_DISTANCES, ids=repr)
def test_indistinguishable_classes_share_their_mass(loss):
    for seed in range(10):
        data = flat_data(np.random.default_rng(seed))
        objective = LinearObjective(loss, NoPenalty(), data)
        P = choose(objective).minimize(objective).p
        for i in range(data.n_classes):
            same = np.abs(data.M - data.M[:, [i]]).max(axis=0) == 0
            assert np.ptp(P[:, same], axis=1).max() < 1e-6


WEAK = np.array([[0.4, 0.3, 0.3], [0.3, 0.4, 0.3], [0.3, 0.3, 0.4]])


@pytest.mark.parametrize("method", [oq.OACC, oq.OPDF, oq.RUN, oq.OHDx, oq.OHDy])
@pytest.mark.parametrize("tau", [1e9, 1e11, 1e12, 1e15, 1e100, 1e300])
def test_strong_penalties_leave_their_null_space_to_the_data(method, tau):
    # Straight lines have no penalty; of those the steepest fits best.
    assert_allclose(oq.solve([500, 300, 200], WEAK, method(tau=tau)), [2 / 3, 1 / 3, 0], atol=1e-6)


@pytest.mark.parametrize("loss", [LeastSquares(), Poisson()], ids=repr)
def test_strong_penalties_with_an_unreachable_centre_decide_first(loss):
    # C (p - centre) = 0 has no solution on the simplex: p is at the smallest penalty for any data.
    centre = np.array([3.0, -2.0, 4.0, -1.0])
    data = Data(np.array([[0.7, 0.1, 0.1, 0.1], [0.1, 0.1, 0.1, 0.7]]), np.eye(4), np.array([100.0, 100.0]))
    found = []
    for tau in (1e6, 1e12):
        objective = LinearObjective(loss, Tikhonov(tau, order=0, centre=centre), data)
        solution = choose(objective).minimize(objective)
        assert solution.converged.all()
        found.append(solution.p)
    assert_allclose(found[0], found[1], atol=1e-3)
    assert_allclose(found[1][0], found[1][1], atol=1e-9)


def test_tau_has_a_largest_value():
    with pytest.raises(ValueError, match=r"tau must be at most 1e\+300, got 1.7e\+308"):
        oq.solve([500, 300, 200], WEAK, oq.OACC(tau=1.7e308))


@pytest.mark.parametrize("N", [1, 1000])
def test_a_corner_that_explains_the_sample_is_found(N):
    M = np.array([[1, 0.00323, 0.15573], [0, 0.5, 0.4], [0, 0.49677, 0.44427]])
    assert_allclose(oq.solve([1.0, 0, 0], M / M.sum(axis=0), oq.OHDx(tau=1), N=N), [1, 0, 0], atol=1e-6)


def test_impossible_computations_are_rejected():
    for counts in ([1.7e308, 1.7e308, 1.0], [1e307, 1e307, 1.0]):
        with pytest.raises(ValueError, match=r"q must have at most 1e\+150 items in every row"):
            oq.solve(counts, WEAK)
    with pytest.raises(ValueError, match=r"N must be a number in \(0, 1e\+150\]"):
        oq.solve([0.5, 0.25, 0.25], WEAK, N=1e200)
    with pytest.raises(TypeError, match="q must be an array of numbers"):
        oq.solve(np.array([1, 2j, 3]), WEAK)
    with pytest.raises(ValueError, match="entries of M must be 0 or at least 1e-140, got 1e-301"):
        oq.solve([1, 2, 3], np.array([[1, 0.5, 0], [1e-301, 0.5, 0], [0, 0, 1]]), oq.HDx())


COMPLEX = np.full((6, 3), 1 / 3 + 0.1j)
FRAME = pd.DataFrame({"size": np.linspace(0, 1, 60) + 1j, "stars": [1, 2, 3] * 20})
REFUSED = {
    "scores to fit": lambda: oq.PACC().fit_scores(COMPLEX, [0, 1, 2] * 2),
    "scores": lambda: oq.PACC().fit_scores(COMPLEX.real, [0, 1, 2] * 2).solve_scores(COMPLEX, [[0, 1]]),
    "weights": lambda: oq.PACC().fit_scores(COMPLEX.real, [0, 1, 2] * 2, sample_weight=COMPLEX[:, 0]),
    "variances": lambda: oq.solve([5, 3, 2], WEAK, variances=COMPLEX[0]),
    "distributions": lambda: oq.metrics.nmd(COMPLEX.real, COMPLEX),
    "counts": lambda: oq.unfold(COMPLEX[0], WEAK),
}


@pytest.mark.parametrize("call", REFUSED.values(), ids=REFUSED)
def test_no_imaginary_part_is_dropped(call):
    with pytest.raises(TypeError, match=r"must be .*number"):
        call()


REFUSED_ITEMS = {
    "an array": lambda: oq.AutoQuantifier(budget="fast").fit(FRAME[["size"]].to_numpy(), FRAME["stars"]),
    "a list": lambda: oq.classifiers.OrdinalStack().fit(FRAME[["size"]].to_numpy().tolist(), FRAME["stars"]),
    "a frame": lambda: oq.AutoQuantifier(budget="fast").fit(FRAME[["size"]], FRAME["stars"]),
    "a table": lambda: oq.TableModel(oq.PACC()).fit(FRAME, "stars"),
    "a data set": lambda: oq.datasets.make_dataset(FRAME, "stars"),
}


@pytest.mark.parametrize("call", REFUSED_ITEMS.values(), ids=REFUSED_ITEMS)
@pytest.mark.filterwarnings("error")
def test_items_with_imaginary_parts_are_rejected(call):
    with pytest.raises(ValueError, match=r"Complex data not supported|expected real numbers in column 'size'"):
        call()


def test_a_target_with_imaginary_parts_is_rejected():
    with pytest.raises(TypeError, match="y must hold numbers"):
        oq.datasets.bin_target(FRAME["size"], 3)


# Columns that are equal, or as good as equal, next to others that differ in their twelfth digit.
NEARLY_EQUAL = [
    ([6, 4], [[0, 1, 1, 1.06492431e-12], [1, 0, 0, 1 - 1.06492431e-12]], [0.2, 0.3, 0.3, 0.2]),
    ([6, 4], [[1, 1, 0, 0.25, 0.75], [1e-88, 1e-75, 1, 0.75, 0.25]], [0.2, 0.2, 0.2, 0.2, 0.2]),
    ([5, 5], [[1, 1, 0.25], [0, 1e-30, 0.75]], [1 / 6, 1 / 6, 2 / 3]),
]


@pytest.mark.parametrize(("q", "M", "p"), NEARLY_EQUAL)
@pytest.mark.filterwarnings("error")
def test_a_difference_below_the_last_digit_is_none(q, M, p):
    assert_allclose(oq.solve(q, M, oq.ACC()), p, atol=1e-6)


@pytest.mark.parametrize("method", [oq.ACC, oq.PACC, oq.RUN, oq.EDy, oq.PDF, oq.OPDF, oq.OACC])
def test_sixty_mostly_indistinguishable_classes_take_few_rounds(method, rng):
    n = 60
    y = np.concatenate([np.arange(n), rng.integers(0, n, n // 2)])
    S = np.exp(-np.square((np.arange(n) - y[:, None]) / 3)) + 0.02
    S = S * rng.gamma(1, 1, S.shape)
    S /= S.sum(axis=1, keepdims=True)
    solution = method().fit_scores(S, y).solve_scores(S, [np.arange(len(S)), np.arange(40)])
    assert solution.converged.all()
    assert solution.n_iter.max() < 600
