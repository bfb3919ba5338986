"""Losses and regularizers: derivatives, values computed by hand, convexity, what is dropped."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from problems import mean_distances

from ordinalq.losses import ALL_LOSSES, CumulativeSquares, Energy, Hellinger, LeastSquares, MatchDistance, Poisson
from ordinalq.regularizers import Entropy, LogTikhonov, NoPenalty, Tikhonov
from ordinalq.simplex import Data, softmax, softmax_derivatives
from ordinalq.solvers.objectives import LinearObjective

ALL_REGULARIZERS = [
    NoPenalty(),
    Tikhonov(0.7),
    Tikhonov(0.7, order=0),
    Tikhonov(0.7, order=2, centre=[0.1, 0.2, 0.4, 0.2, 0.1]),
    Entropy(0.7),
    Entropy(0.7, centre=[0.1, 0.2, 0.4, 0.2, 0.1]),
    LogTikhonov(0.7, acceptance=[1.0, 0.5, 0.9, 0.7, 0.3]),
    LogTikhonov(0.2, order=0, acceptance=[1.0, 0.5, 0.9, 0.7, 0.3]),
]


def fourth_order(function, x, h=1e-4):
    """Derivative of a function of a vector along each axis, with error O(h^4)."""
    columns = []
    for e in np.eye(len(x)) * h:
        columns.append((function(x - 2 * e) - 8 * function(x - e) + 8 * function(x + e) - function(x + 2 * e)) / 12 / h)
    return np.stack(columns, axis=-1)


def objective_for(loss, regularizer, rng, n=5):
    if isinstance(loss, Energy):
        M, draw = mean_distances(rng, n)
        return LinearObjective(loss, regularizer, Data(draw(None)[None], M, np.array([200])))
    # Cumulation over several histograms has residuals that are always zero, where MatchDistance has kinks.
    k = 3 if isinstance(loss, Hellinger) else 1
    M = np.concatenate([rng.dirichlet(np.ones(6), n).T for _ in range(k)])
    Q = rng.dirichlet(np.ones(6), k).reshape(1, -1)
    return LinearObjective(loss, regularizer, Data(Q, M, np.array([200]), k))


ROW = np.zeros(1, dtype=int)


@pytest.mark.parametrize("regularizer", ALL_REGULARIZERS, ids=repr)
@pytest.mark.parametrize("loss", ALL_LOSSES, ids=repr)
def test_derivatives_in_p_agree_with_finite_differences(loss, regularizer, rng):
    objective = objective_for(loss, regularizer, rng)
    p = rng.dirichlet(np.full(5, 5.0))
    at = objective.derivatives(p[None], ROW)
    assert_allclose(
        at.gradient[0],
        fourth_order(lambda x: objective.value(x[None], ROW)[0], p),
        rtol=1e-6,
        atol=1e-7 * (1 + at.value[0]),
    )
    gradients = fourth_order(lambda x: objective.derivatives(x[None], ROW).gradient[0], p)
    assert_allclose(at.hessian[0], gradients, rtol=1e-6, atol=1e-6 * np.abs(at.hessian).max() + 1e-9)
    assert_allclose(at.value, objective.value(p[None], ROW), rtol=1e-12)


@pytest.mark.parametrize("regularizer", [ALL_REGULARIZERS[i] for i in (0, 1, 5, 6)], ids=repr)
@pytest.mark.parametrize("loss", ALL_LOSSES, ids=repr)
def test_derivatives_through_the_soft_max_agree_with_finite_differences(loss, regularizer, rng):
    objective = objective_for(loss, regularizer, rng)

    def at(latents):
        P = softmax(latents[None])
        return softmax_derivatives(P, objective.derivatives(P, ROW))

    latents = rng.normal(size=4) * 0.3
    exact = at(latents)
    scale = np.abs(exact.hessian).max() + 1
    assert_allclose(exact.gradient[0], fourth_order(lambda x: at(x).value[0], latents), rtol=1e-6, atol=1e-8 * scale)
    assert_allclose(exact.hessian[0], fourth_order(lambda x: at(x).gradient[0], latents), rtol=1e-6, atol=1e-7 * scale)


@pytest.mark.parametrize("loss", ALL_LOSSES, ids=repr)
def test_quadratic_and_absolute_forms_equal_the_loss_up_to_a_constant(loss, rng):
    objective = objective_for(loss, Tikhonov(0.3, centre=[0.1, 0.2, 0.4, 0.2, 0.1]), rng)
    P = rng.dirichlet(np.ones(5), 6)
    values = np.array([objective.value(p[None], ROW)[0] for p in P])
    quadratic, absolute = objective.quadratic(), objective.absolute()
    if quadratic is not None:
        A, b = quadratic
        form = np.array([p @ A @ p - 2 * b[0] @ p for p in P])
    elif absolute is not None:
        D, C, K, k = absolute
        form = np.array([np.abs(C[0] - D @ p).sum() + p @ K @ p / 2 - k @ p for p in P])
    else:
        assert isinstance(loss, Poisson | Hellinger) or loss.weights == "poisson"
        return
    assert_allclose(form - form[0], values - values[0], atol=1e-12)


@pytest.mark.parametrize("loss", [loss for loss in ALL_LOSSES if loss.convex], ids=repr)
def test_convex_losses_are_convex_along_the_simplex(loss, rng):
    T = np.eye(5) - 1 / 5
    for _ in range(20):
        objective = objective_for(loss, NoPenalty(), rng)
        H = T @ objective.derivatives(rng.dirichlet(np.ones(5), 1), ROW).hessian[0] @ T
        assert np.linalg.eigvalsh(H)[0] >= -1e-10 * (1 + np.abs(H).max())


def test_hellinger_loss_is_not_convex():
    # With two bins, h is an angle between v and q, which bends down on the far side of the larger bin.
    M, q = np.array([[0.9, 0.1], [0.1, 0.9]]), np.array([[0.1, 0.9]])
    objective = LinearObjective(Hellinger(), NoPenalty(), Data(q, M, np.array([100])))
    along = np.array([1.0, -1.0])
    H = objective.derivatives(np.array([[0.3, 0.7]]), ROW).hessian[0]
    assert along @ H @ along < -0.1
    H = LinearObjective(Hellinger(squared=True), NoPenalty(), Data(q, M, np.array([100]))).derivatives(
        np.array([[0.3, 0.7]]), ROW
    )
    assert along @ H.hessian[0] @ along > 0.1


M2 = np.array([[0.8, 0.1], [0.1, 0.2], [0.1, 0.7]])
q2 = np.array([0.5, 0.2, 0.3])
p2 = np.array([0.4, 0.6])  # M p = (.38, .16, .46)


@pytest.mark.parametrize(
    ("loss", "expected"),
    [
        (LeastSquares(), 0.12**2 + 0.04**2 + 0.16**2),
        (Poisson(), 100 * (0.5 * np.log(0.5 / 0.38) + 0.2 * np.log(0.2 / 0.16) + 0.3 * np.log(0.3 / 0.46))),
        (Hellinger(), np.sqrt(2 - 2 * (np.sqrt(0.5 * 0.38) + np.sqrt(0.2 * 0.16) + np.sqrt(0.3 * 0.46)))),
        (Hellinger(squared=True), 2 - 2 * (np.sqrt(0.5 * 0.38) + np.sqrt(0.2 * 0.16) + np.sqrt(0.3 * 0.46))),
        (CumulativeSquares(), 0.12**2 + 0.16**2),
        (MatchDistance(), 0.12 + 0.16),
    ],
    ids=repr,
)
def test_specific_values(loss, expected):
    objective = LinearObjective(loss, NoPenalty(), Data(q2[None], M2, np.array([100])))
    assert_allclose(objective.value(p2[None], ROW), expected, rtol=1e-10)


def test_energy_of_two_classes_by_hand():
    M, q = np.array([[0.1, 1.0], [1.0, 0.2]]), np.array([0.5, 0.6])
    objective = LinearObjective(Energy(), NoPenalty(), Data(q[None], M, np.array([100])))
    expected = 2 * (0.4 * 0.5 + 0.6 * 0.6) - (0.16 * 0.1 + 2 * 0.24 * 1.0 + 0.36 * 0.2)
    assert_allclose(objective.value(p2[None], ROW), expected, rtol=1e-12)


def test_poisson_weights_have_mean_one_and_follow_the_counts():
    objective = LinearObjective(LeastSquares("poisson"), NoPenalty(), Data(q2[None], M2, np.array([103])))
    w = np.sqrt(1 + 100 * q2)
    w /= w.mean()
    assert_allclose(objective.value(p2[None], ROW), (((q2 - M2 @ p2) / w) ** 2).sum(), rtol=1e-12)


def test_mass_in_rows_without_training_items_is_lost():
    M = np.vstack([M2, np.zeros(2)])
    q = np.array([0.4, 0.2, 0.3, 0.1])
    for loss in (LeastSquares(), Poisson()):
        with_row = LinearObjective(loss, NoPenalty(), Data(q[None], M, np.array([100])))
        without = LinearObjective(loss, NoPenalty(), Data(q[None, :3], M2, np.array([100])))
        assert_allclose(with_row.value(p2[None], ROW), without.value(p2[None], ROW), rtol=1e-12)
        assert_allclose(with_row.derivatives(p2[None], ROW).gradient, without.derivatives(p2[None], ROW).gradient)


def test_hellinger_scales_the_columns_to_the_mass_that_is_left():
    M = np.vstack([M2, np.zeros(2)])
    q = np.array([0.4, 0.2, 0.3, 0.1])
    objective = LinearObjective(Hellinger(), NoPenalty(), Data(q[None], M, np.array([100])))
    expected = np.linalg.norm(np.sqrt(q[:3]) - np.sqrt(0.9 * M2 @ p2))
    assert_allclose(objective.value(p2[None], ROW), expected, rtol=1e-12)


def test_cumulated_squares_count_empty_bins_unless_they_are_left_out_before_cumulating():
    M = np.array([[0.5, 0.0], [0.0, 0.0], [0.5, 0.5], [0.0, 0.5]])
    q = np.array([0.3, 0.1, 0.3, 0.3])
    dropped, whole = (
        LinearObjective(CumulativeSquares(drop_empty=drop), NoPenalty(), Data(q[None], M, np.array([100])))
        for drop in (True, False)
    )
    v = np.array([0.5 * 0.4, 0.5, 0.5 * 0.6])
    expected = (0.3 - v[0]) ** 2 + (0.6 - v[0] - v[1]) ** 2
    assert_allclose(dropped.value(p2[None], ROW), expected, rtol=1e-12)
    expected = (0.3 - v[0]) ** 2 + (0.4 - v[0]) ** 2 + (0.7 - v[0] - v[1]) ** 2
    assert_allclose(whole.value(p2[None], ROW), expected, rtol=1e-12)


def test_empty_bins_keep_the_derivatives_finite(rng):
    M = rng.dirichlet(np.ones(6), 5).T
    q = np.array([[0.0, 0.5, 0.0, 0.5, 0.0, 0.0]])
    P = np.array([[1.0, 0.0, 0.0, 0.0, 0.0]])
    for loss in (Poisson(), Hellinger(), Hellinger(squared=True)):
        at = LinearObjective(loss, NoPenalty(), Data(q, M, np.array([100]))).derivatives(P, ROW)
        assert all(np.isfinite(part).all() for part in at)


def test_poisson_and_hellinger_are_infinite_if_an_observation_is_impossible():
    M = np.array([[1.0, 0.0, 0.0], [0.0, 0.5, 0.5], [0.0, 0.5, 0.5]])
    P = np.array([[0.0, 0.5, 0.5]])
    for loss in (Poisson(), Hellinger()):
        objective = LinearObjective(loss, NoPenalty(), Data(np.array([[0.2, 0.4, 0.4]]), M, np.array([10])))
        assert objective.value(P, ROW)[0] == np.inf


def test_tikhonov_is_zero_on_polynomials_of_its_order_and_on_its_centre(rng):
    index = np.arange(7.0)
    sizes = np.array([10])
    for order in range(4):
        polynomial = sum(rng.normal() * index**k for k in range(order + 1))
        assert_allclose(Tikhonov(1.0, order=order).derivatives(polynomial[None], sizes).value, 0, atol=1e-9)
    centre = rng.dirichlet(np.ones(7))
    assert_allclose(Tikhonov(1.0, centre=centre).derivatives(centre[None], sizes).value, 0, atol=1e-15)


def test_entropy_is_the_divergence_from_its_centre(rng):
    p, c = rng.dirichlet(np.full(6, 2.0)), rng.dirichlet(np.full(6, 2.0))
    sizes = np.array([10])
    assert_allclose(Entropy(2.0, centre=c).derivatives(p[None], sizes).value, 2 * (p * np.log(p / c)).sum())
    assert_allclose(Entropy(2.0, centre=100 * c).derivatives(c[None], sizes).value, 0, atol=1e-12)  # in any unit
    assert_allclose(Entropy(2.0).derivatives(p[None], sizes).value, 2 * (p * np.log(6 * p)).sum())


def test_entropy_has_finite_derivatives_for_empty_classes_and_no_jump_where_it_is_expanded():
    sizes = np.array([10])
    empty = Entropy(1.0).derivatives(np.array([[1.0, 0.0, 0.0]]), sizes)
    assert all(np.isfinite(part).all() for part in empty)
    assert_allclose(empty.value, np.log(3), atol=1e-8)
    knee = [1e-9 * (1 - 1e-6), 1e-9 * (1 + 1e-6)]
    near = [Entropy(1.0).derivatives(np.array([[1 - x, x, 0.0]]), sizes) for x in knee]
    assert_allclose(near[0].gradient, near[1].gradient, atol=1e-5)
    assert_allclose(near[0].hessian, near[1].hessian, rtol=1e-5)


def test_log_tikhonov_is_zero_if_the_corrected_spectrum_is_flat():
    a = np.array([0.1, 0.2, 0.4, 0.8])
    p = a / a.sum()
    assert_allclose(LogTikhonov(1.0, order=0, acceptance=a).derivatives(p[None], np.array([100])).value, 0, atol=1e-15)
