"""md, nmd, rnod, rsnod, rnadw."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

from ordinalq.metrics import md, nmd, rnadw, rnod, rsnod

ALL_MEASURES = [md, nmd, rnod, rsnod, rnadw]
SIGMA_1 = [0.20, 0.10, 0.05, 0.20, 0.45]

# Computed by hand: true p, estimate, MD, NMD, RNOD, RNOD with the arguments swapped.
EXAMPLES = [
    (SIGMA_1, [0.2] * 5, 0.6, 0.15, 0.2037155, 0.2037155),
    ([1, 0, 0, 0, 0], [0, 0, 0, 0, 1], 4, 1, 1, 1),
    ([1, 0, 0, 0, 0], [0, 1, 0, 0, 0], 1, 0.25, 0.5, 0.5),
    (SIGMA_1, [0.02, 0.47, 0.02, 0.47, 0.02], 0.96, 0.24, 0.4270246, 0.4270246),
    ([0.5, 0.5, 0, 0, 0], [0.4, 0.4, 0.2, 0, 0], 0.3, 0.075, 0.1322876, 0.1190238),
    ([0, 0.5, 0.5, 0], [0.25] * 4, 0.5, 0.1666667, 0.2886751, 0.3227486),
]


def naive(p, p_hat, d):
    """All five measures by plain loops over the formulas."""
    n = len(p)
    total = sum(d)

    def between(i, j):
        return sum(d[min(i, j) : max(i, j)])

    def DW(i):
        return sum(between(i, j) * (p[j] - p_hat[j]) ** 2 for j in range(n))

    def OD(reference):
        present = [i for i in range(n) if reference[i] > 0]
        return sum(DW(i) for i in present) / len(present)

    match = sum(d[i] * abs(sum(p[: i + 1]) - sum(p_hat[: i + 1])) for i in range(n - 1))
    return [
        match,
        match / total,
        np.sqrt(OD(p) / total),
        np.sqrt((OD(p) + OD(p_hat)) / 2 / total),
        np.sqrt(sum(DW(i) for i in range(n)) / n / total),
    ]


@pytest.mark.parametrize(("p", "p_hat", "MD", "NMD", "RNOD", "swapped"), EXAMPLES)
def test_examples_of_the_specification(p, p_hat, MD, NMD, RNOD, swapped):
    assert_allclose([md(p, p_hat), nmd(p, p_hat), rnod(p, p_hat), rnod(p_hat, p)], [MD, NMD, RNOD, swapped], atol=5e-8)
    assert_allclose(rsnod(p, p_hat), np.sqrt((RNOD**2 + swapped**2) / 2), atol=1e-7)


@pytest.mark.parametrize("distances", [None, "random"])
def test_fast_equals_naive(distances, rng):
    P, P_hat = rng.dirichlet(np.ones(6), (2, 30))
    P[:10, 2:4] = 0
    P /= P.sum(axis=1, keepdims=True)
    d = None if distances is None else rng.random(5) + 0.1
    expected = [naive(p, q, [1] * 5 if d is None else list(d)) for p, q in zip(P, P_hat, strict=True)]
    got = np.transpose([measure(P, P_hat, distances=d) for measure in ALL_MEASURES])
    assert_allclose(got, expected, rtol=1e-12)


@pytest.mark.parametrize("measure", ALL_MEASURES)
def test_vectors_give_floats_and_go_with_every_row_of_a_batch(measure, rng):
    P = rng.dirichlet(np.ones(4), 7)
    p = P[0]
    assert isinstance(measure(p, P[1]), float)
    assert_allclose(measure(p, P), [measure(p, row) for row in P], rtol=1e-12)
    assert_allclose(measure(P, p), [measure(row, p) for row in P], rtol=1e-12)


@pytest.mark.parametrize("n", range(3, 13))
def test_measures_lie_in_zero_one_and_vanish_only_at_equality(n, rng):
    P, P_hat = rng.dirichlet(np.full(n, 0.4), (2, 80))
    for measure in (nmd, rnod, rsnod, rnadw):
        value = measure(P, P_hat, distances=rng.random(n - 1) + 0.01)
        assert (value > 0).all()
        assert (value <= 1 + 1e-12).all()
        assert_allclose(measure(P, P), 0)


@pytest.mark.parametrize("measure", [md, nmd, rsnod, rnadw])
def test_symmetric_measures_are_symmetric(measure, rng):
    P, P_hat = rng.dirichlet(np.ones(5), (2, 50))
    assert_allclose(measure(P, P_hat), measure(P_hat, P), rtol=1e-12)


@pytest.mark.parametrize("measure", ALL_MEASURES)
def test_distances_count_only_relative_to_each_other_in_normalized_measures(measure, rng):
    P, P_hat = rng.dirichlet(np.ones(5), (2, 20))
    d = rng.random(4) + 0.5
    factor = 10 if measure is md else 1
    assert_allclose(measure(P, P_hat, distances=10 * d), factor * measure(P, P_hat, distances=d), rtol=1e-12)
    assert_allclose(measure(P, P_hat, distances=np.ones(4)), measure(P, P_hat), rtol=1e-12)


def test_nmd_is_one_between_the_outermost_classes_for_any_distances():
    assert nmd([1, 0, 0, 0], [0, 0, 0, 1], distances=[1, 5, 0.2]) == 1
