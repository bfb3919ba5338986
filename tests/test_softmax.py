"""The soft-max solver: the minimum of the simplex solvers inside, and what differs where a class is empty."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from seeds import generator

import ordinalq as oq
from ordinalq.losses import CumulativeSquares, Hellinger, LeastSquares, MatchDistance, Poisson
from ordinalq.regularizers import Entropy, NoPenalty, Tikhonov
from ordinalq.simplex import Data
from ordinalq.solvers.choose import choose
from ordinalq.solvers.objectives import LinearObjective
from ordinalq.solvers.softmax import SoftmaxSolver

LOSSES = [LeastSquares(), Poisson(), Hellinger(), CumulativeSquares()]
N = 1000


def problems(loss, regularizer, n, B):
    """Samples of 1000 items whose classes are distinguished with some mistakes."""
    rng = generator(11)
    M = 0.3 * rng.dirichlet(np.full(2 * n, 0.5), n).T + 0.35 * np.kron(np.eye(n), np.ones((2, 1)))
    Q = rng.multinomial(N, rng.dirichlet(np.ones(n), B) @ M.T) / N
    return LinearObjective(loss, regularizer, Data(Q, M, np.full(B, N)))


@pytest.mark.parametrize("n", [5, 10])
@pytest.mark.parametrize("regularizer", [NoPenalty(), Tikhonov(1e-2)], ids=repr)
@pytest.mark.parametrize("loss", LOSSES, ids=repr)
def test_2000_problems_have_the_value_of_the_simplex_solver_if_no_class_is_empty(loss, regularizer, n):
    objective = problems(loss, regularizer, n, 125)
    exact, chart = (choose(objective, solver).minimize(objective) for solver in (None, "softmax"))
    inside = exact.p.min(axis=1) > 1e-4
    assert inside.sum() > 50
    assert chart.converged[inside].all()
    assert chart.converged.mean() > 0.95  # towards a face the last steps may be endless, and are flagged
    assert_allclose(chart.value[inside], exact.value[inside], atol=1e-6)
    assert_allclose(chart.p[inside], exact.p[inside], atol=1e-5)


def test_an_empty_class_is_reached_exactly_on_the_simplex_and_approached_by_the_soft_max():
    objective = problems(LeastSquares(), NoPenalty(), 5, 200)
    exact, chart = (choose(objective, solver).minimize(objective) for solver in (None, "softmax"))
    empty = exact.p == 0
    assert empty.any()
    assert (chart.p > 0).all()
    assert (chart.p[empty] < 1e-4).all()
    faces = empty.any(axis=1)
    assert (chart.value[faces] > exact.value[faces]).all()  # by what the tolerance leaves
    assert_allclose(chart.value[faces], exact.value[faces], atol=1e-7)


def test_it_starts_from_the_uniform_distribution():
    objective = problems(Poisson(), NoPenalty(), 5, 1)
    first = SoftmaxSolver(tol=1e9).minimize(objective)
    assert_allclose(first.p, 0.2)
    assert first.n_iter[0] == 0
    assert not SoftmaxSolver(max_iter=1).minimize(objective).converged.any()


def test_batch_equals_one_by_one():
    objective = problems(Hellinger(), Tikhonov(1e-3), 5, 20)
    batch = SoftmaxSolver().minimize(objective)
    for b in range(20):
        part = LinearObjective(objective.loss, objective.regularizer, objective.data.take(np.array([b])))
        assert_allclose(SoftmaxSolver().minimize(part).p[0], batch.p[b], atol=1e-9)


def test_kinks_are_rejected_and_methods_take_it_by_name():
    kinked = problems(MatchDistance(), NoPenalty(), 4, 2)
    with pytest.raises(TypeError, match=r"needs a smooth objective, got MatchDistance.* Use solver='l1'"):
        choose(kinked, "softmax").minimize(kinked)
    rng = generator(12)
    S = rng.dirichlet(np.ones(4), 400)
    S = 0.5 * S + 0.5 * np.eye(4)[np.arange(400) % 4]
    codes = np.arange(400) % 4
    samples = oq.protocols.APP(10, 60, random_state=1).draw(codes)
    for method in (oq.OPACC, oq.RUN, oq.SLD, oq.OHDy, oq.OEDy):
        plain, chart = (
            method(solver=solver).fit_scores(S, codes).predict_scores(S, samples)
            for solver in ("newton" if method is oq.SLD else None, "softmax")
        )
        assert_allclose(chart, plain, atol=1e-4)


def test_entropy_and_the_soft_max_agree_with_newton():
    objective = problems(Poisson(), Entropy(20.0), 6, 40)
    newton, chart = (choose(objective, solver).minimize(objective) for solver in ("newton", "softmax"))
    assert newton.converged.all()
    assert chart.converged.all()
    assert_allclose(chart.p, newton.p, atol=1e-6)
    assert (newton.p > 0).all()  # entropy leaves no class empty
    strong = problems(LeastSquares(), Entropy(1e6, centre=[1, 2, 3, 2, 1, 1]), 6, 5)
    assert_allclose(choose(strong).minimize(strong).p, np.tile([0.1, 0.2, 0.3, 0.2, 0.1, 0.1], (5, 1)), atol=1e-5)
