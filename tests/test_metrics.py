"""Metrics: errors per sample, the signed-rank test, and which methods are bold."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.stats import wilcoxon as scipy_wilcoxon

import ordinalq as oq
from ordinalq.metrics import MEASURES, errors, find_measure, p_against_best, wilcoxon

P_TRUE = [[1, 0, 0], [0, 0.5, 0.5]]
P_HAT = [[0, 1, 0], [0, 0.5, 0.5]]


@pytest.mark.parametrize("name", MEASURES)
def test_errors_take_the_true_distribution_as_the_reference(name, rng):
    P_true, P_hat = rng.dirichlet(np.ones(5), (2, 20))
    P_true[:, 0] = 0
    P_true /= P_true.sum(axis=1, keepdims=True)
    assert_array_equal(errors(P_true, P_hat, name), getattr(oq.metrics, name)(P_true, P_hat))
    assert_array_equal(errors(P_true, P_hat, getattr(oq.metrics, name)), errors(P_true, P_hat, name))


def test_errors_by_hand():
    assert_allclose(errors(P_TRUE, P_HAT, "md"), [1, 0])
    assert_allclose(errors(P_TRUE, P_HAT), [0.5, 0])
    assert_allclose(errors([1, 0, 0], P_HAT), [0.5, 0.75])


def test_errors_take_any_function_of_true_and_estimated_distributions():
    def lost(p, p_hat):
        return np.maximum(p - p_hat, 0).sum(axis=1)

    assert_allclose(errors(P_TRUE, P_HAT, lost), [1, 0])
    assert find_measure(lost) == ("lost", lost)


@pytest.mark.parametrize(
    ("P_hat", "measure", "message"),
    [
        (P_HAT, "NMD", "measure must be one of 'nmd', 'rnod', 'md', 'rsnod', 'rnadw'"),
        (P_HAT, None, "measure must be one of"),
        (P_HAT, lambda p, p_hat: 0.1, r"must return one error per sample, \(2,\), got shape \(\)"),
        (P_HAT, lambda p, p_hat: p - p_hat, r"got shape \(2, 3\)"),
        (P_HAT, lambda p, p_hat: np.array([0, np.nan]), "got NaN for sample 1"),
        (P_HAT[0], "nmd", r"P_hat must have shape \(B, n\)"),
        ([*P_HAT, [0, 0, 1]], "nmd", "p and p_hat must have the same shape"),
        ([[0.5, 0.5, 0.5], [1, 0, 0]], "nmd", "p_hat must sum to 1"),
    ],
)
def test_errors_reject_measures_without_one_value_per_sample(P_hat, measure, message):
    with pytest.raises(ValueError, match=message):
        errors(P_TRUE, P_hat, measure)


# the signed-rank test


def by_scipy(a, b):
    return scipy_wilcoxon(a, b, zero_method="wilcox", correction=False, alternative="two-sided", method="approx").pvalue


# SciPy 1.13 warns of ten pairs; the normal approximation is what is compared.
@pytest.mark.filterwarnings("ignore:Sample size too small")
@pytest.mark.parametrize("ties", [False, True])
def test_wilcoxon_is_the_one_of_scipy(ties, rng):
    for n in range(2, 61):
        a, b = rng.random((2, n))
        if ties:  # multiples of 1/8 have exact differences, many of them equal or zero
            a, b = np.round(8 * a) / 8, np.round(8 * b) / 8
        if (a == b).all():
            assert wilcoxon(a, b) == 1
        else:
            assert_allclose(wilcoxon(a, b), by_scipy(a, b), rtol=1e-9)


def test_wilcoxon_by_hand():
    # One pair: z = 1, P(|Z| >= 1) = .3173. Pairs that are equal change nothing.
    assert_allclose(wilcoxon([0.2], [0.1]), 0.31731, atol=1e-5)
    assert_allclose(wilcoxon([0.2, 0.3, 0.3], [0.1, 0.3, 0.3]), 0.31731, atol=1e-5)
    # Three ties of mean rank 2, one of the other sign: z = (2 + 2 - 2) / sqrt(12).
    assert_allclose(wilcoxon([1.0, 2.0, 3.0], [0.0, 1.0, 4.0]), 0.563703, atol=1e-6)


def test_equal_errors_are_not_different():
    a = np.linspace(0, 1, 50)
    assert wilcoxon(a, a) == 1


def test_rounding_does_not_count_as_a_difference(rng):
    # Without care, 1000 differences of 1e-17 with one sign would be as significant as large ones.
    a = rng.random(1000)
    assert wilcoxon(a, a * (1 + 1e-15)) == 1
    assert wilcoxon(np.zeros(1000), np.full(1000, 1e-17)) == 1


def test_infinite_errors_are_the_largest_and_equal_among_each_other():
    assert wilcoxon([np.inf] * 3, [np.inf] * 3) == 1
    assert_allclose(wilcoxon([np.inf, 0.1, np.inf], [0.2, 0.3, np.inf]), wilcoxon([9, 0.1], [0.2, 0.3]))


def test_wilcoxon_is_symmetric(rng):
    a, b = rng.random((2, 100))
    assert wilcoxon(a, b) == wilcoxon(b, a)


@pytest.mark.parametrize(
    ("a", "b", "message"),
    [
        ([0.1, 0.2], [0.1], "a and b must be errors on the same samples, got 2 and 1"),
        ([[0.1]], [0.1], r"a must hold one error per sample, \(B,\), got shape \(1, 1\)"),
        ([], [], "a must hold one error per sample"),
        ([0.1, 0.2], [0.1, np.nan], "b must not have NaN, got one at sample 1"),
    ],
)
def test_wilcoxon_rejects_unpaired_errors(a, b, message):
    with pytest.raises(ValueError, match=message):
        wilcoxon(a, b)


# columns of a table


def test_methods_are_compared_with_the_smallest_mean(rng):
    best = rng.random(200)
    columns = {"far": best + 0.1, "near": best + 1e-3 * rng.standard_normal(200) + 1e-5, "best": best - 1e-4}
    found = p_against_best(columns)
    assert list(found) == ["far", "near", "best"]
    assert found["best"] == 1
    assert found["far"] == wilcoxon(columns["far"], columns["best"]) < 1e-10


def test_first_of_equal_means_is_the_best_and_the_other_no_worse():
    columns = {"a": [0.1, 0.2, 0.3], "b": [0.3, 0.2, 0.1]}
    assert p_against_best(columns)["a"] == 1
    assert p_against_best(columns)["b"] > 0.01


def test_columns_are_checked():
    with pytest.raises(ValueError, match="at least one method"):
        p_against_best({})
    with pytest.raises(ValueError, match="PACC must hold one error per sample"):
        p_against_best({"PACC": 0.1})
