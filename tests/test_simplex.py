"""The soft-max chart with its chain rule, uniform draws, clean-up."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from ordinalq.simplex import Derivatives, clean, softmax, softmax_derivatives, uniform_simplex


def cubic(P, A, b):
    """f(p) = (b.p)^3 + p'Ap for each row, with derivatives."""
    z = P @ b
    value = z**3 + np.einsum("bi,ij,bj->b", P, A, P)
    gradient = 3 * z[:, None] ** 2 * b + P @ (A + A.T)
    hessian = 6 * z[:, None, None] * np.outer(b, b) + A + A.T
    return Derivatives(value, gradient, hessian)


def test_softmax_lies_on_the_simplex_and_survives_huge_latents():
    P = softmax(np.array([[0.0, 1000.0], [-1000.0, 3.0], [0.0, 0.0]]))
    assert_allclose(P.sum(axis=1), 1)
    assert_allclose(P[0], [0, 0, 1])
    assert_allclose(P[2], 1 / 3)


def test_chain_rule_agrees_with_finite_differences(rng):
    n, h = 5, 1e-4
    A, b = rng.normal(size=(n, n)), rng.normal(size=n)
    latents = rng.normal(size=(1, n - 1))
    P = softmax(latents)
    exact = softmax_derivatives(P, cubic(P, A, b))

    def gradient(point):
        p = softmax(point[None])
        return softmax_derivatives(p, cubic(p, A, b)).gradient[0]

    for k, e in enumerate(np.eye(n - 1) * h):
        steps = [cubic(softmax(latents + s * e), A, b).value[0] for s in (-2, -1, 1, 2)]
        fourth_order = (steps[0] - 8 * steps[1] + 8 * steps[2] - steps[3]) / (12 * h)
        assert_allclose(exact.gradient[0, k], fourth_order, rtol=1e-7, atol=1e-9)
        gradients = [gradient(latents[0] + s * e) for s in (-2, -1, 1, 2)]
        fourth_order = (gradients[0] - 8 * gradients[1] + 8 * gradients[2] - gradients[3]) / (12 * h)
        assert_allclose(exact.hessian[0, k], fourth_order, rtol=1e-7, atol=1e-9)


def test_uniform_simplex_has_the_moments_of_the_flat_dirichlet():
    n, B = 6, 40_000
    P = uniform_simplex(B, n, 1)
    assert_allclose(P.sum(axis=1), 1)
    assert (P >= 0).all()
    assert_allclose(P.mean(axis=0), 1 / n, atol=0.003)
    assert_allclose(P.var(axis=0), (n - 1) / (n**2 * (n + 1)), rtol=0.05)


def test_uniform_simplex_keeps_its_first_rows_when_more_follow():
    assert_array_equal(uniform_simplex(10, 4, 3), uniform_simplex(1000, 4, 3)[:10])


@pytest.mark.parametrize(
    ("row", "expected"),
    [
        ([0.5, 0.5, 0.0], [0.5, 0.5, 0.0]),
        ([2.0, -1.0, 2.0], [0.5, 0.0, 0.5]),
        ([np.nan, 1.0, np.inf], [0.0, 1.0, 0.0]),
        ([-1.0, 0.0, np.nan], [1 / 3, 1 / 3, 1 / 3]),
    ],
)
def test_clean_makes_distributions(row, expected):
    assert_allclose(clean(np.array([row]))[0], expected)
