"""Difference matrices and jaggedness of distributions on the simplex."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from ordinalq.datasets import published
from ordinalq.simplex import difference_matrix, jaggedness

# The paper's sigma_1..sigma_5 (and the sigma_1 that its printed xi_0 belongs to): p, xi_0, xi_1, xi_2.
EXAMPLES = [
    ([0.20, 0.10, 0.05, 0.20, 0.45], 0.04875, 0.00875, 0.00406),
    ([0.20, 0.10, 0.05, 0.25, 0.40], 0.03750, 0.01125, 0.01625),
    ([0.02, 0.47, 0.02, 0.47, 0.02], 0.40500, 0.40500, 0.81000),
    ([0, 0, 0, 0, 1], 0.50000, 0.16667, 0.12500),
    ([0, 0.1, 0.2, 0.3, 0.4], 0.02000, 0, 0),
    ([0.129, 0.093, 0.127, 0.231, 0.405], 0.02177, 0.00245, 0),
]


def recipe(n, order):
    """C_k from the printed recipe: T_0 = I, T_m = T_{m-1}' C', then drop the outermost rows."""
    square = np.eye(n) - np.eye(n, k=1)
    T = np.eye(n)
    for _ in range(order + 1):
        T = T.T @ square
    first, last = (order + 1) // 2, -(-(order + 1) // 2)
    return T[first : n - last]


def test_printed_matrices():
    assert_array_equal(difference_matrix(3, 0), [[1, -1, 0], [0, 1, -1]])
    assert_array_equal(difference_matrix(4, 1), [[-1, 2, -1, 0], [0, -1, 2, -1]])
    assert_array_equal(difference_matrix(5, 2), [[-1, 3, -3, 1, 0], [0, -1, 3, -3, 1]])


@pytest.mark.parametrize("order", range(6))
@pytest.mark.parametrize("extra", [2, 3, 6])
def test_agrees_with_the_recipe_up_to_sign(order, extra):
    n = order + extra
    C, R = difference_matrix(n, order), recipe(n, order)
    assert_array_equal(np.abs(C), np.abs(R))
    assert_array_equal(C.T @ C, R.T @ R)
    if order <= 2:
        assert_array_equal(C, R)


@pytest.mark.parametrize("order", range(6))
def test_annihilates_exactly_the_polynomials_of_degree_up_to_the_order(order):
    index = np.arange(12.0)
    C = difference_matrix(12, order)
    for degree in range(order + 1):
        assert_allclose(C @ index**degree, 0, atol=1e-8)
    assert np.abs(C @ index ** (order + 1)).min() > 0.5
    assert np.linalg.matrix_rank(C) == 12 - order - 1


@pytest.mark.parametrize(("p", "xi_0", "xi_1", "xi_2"), EXAMPLES)
def test_examples_of_the_paper(p, xi_0, xi_1, xi_2):
    assert_allclose([jaggedness(p, k) for k in range(3)], [xi_0, xi_1, xi_2], atol=5e-6)


def test_seven_point_vertices_are_as_jagged_as_can_be():
    assert_allclose(jaggedness(np.eye(7)[2:5]), 1)


def test_all_29_reference_distributions_have_their_printed_jaggedness():
    distributions = [*published.amazon_categories(), published.fact_spectrum()]
    assert len(distributions) == 29
    for d in distributions:
        digits = 4 if d.name.startswith("Fact") else 3
        assert round(jaggedness(d.p), digits) == d.xi1_printed, d.name


@pytest.mark.parametrize("n", range(3, 12))
@pytest.mark.parametrize("order", range(4))
def test_max_normalization_reaches_one_at_a_vertex_and_nowhere_more(n, order, rng):
    if n < order + 2:
        return
    P = np.concatenate([np.eye(n), rng.dirichlet(np.full(n, 0.3), 200)])
    xi = jaggedness(P, order, normalization="max")
    assert_allclose(xi[:n].max(), 1)
    assert xi.max() <= 1 + 1e-12


@pytest.mark.parametrize(("n", "largest"), [(4, 1.125), (5, 2.25), (6, 2.375), (7, 2.5), (9, 2.5)])
def test_printed_normalization_of_order_two_exceeds_one(n, largest):
    assert_allclose(jaggedness(np.eye(n), 2).max(), largest)


def test_orders_without_printed_factor_use_the_maximum(rng):
    P = rng.dirichlet(np.ones(9), 5)
    assert_array_equal(jaggedness(P, 3), jaggedness(P, 3, normalization="max"))


@pytest.mark.parametrize("n", range(3, 16))
def test_jaggedness_of_distributions_lies_in_zero_one_and_is_symmetric(n, rng):
    P = rng.dirichlet(np.full(n, 0.5), 100)
    for order in (0, 1):
        xi = jaggedness(P, order)
        assert (xi >= 0).all()
        assert (xi <= 1 + 1e-12).all()
        assert_allclose(xi, jaggedness(P[:, ::-1], order), atol=1e-15)


def test_batch_equals_loop(rng):
    P = rng.dirichlet(np.ones(6), 20)
    assert_allclose(jaggedness(P), [jaggedness(p) for p in P], rtol=1e-13)
    assert isinstance(jaggedness(P[0]), float)
