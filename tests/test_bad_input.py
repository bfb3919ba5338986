"""Mistakes of the caller: one clear error that names the argument, what was got and what is expected."""

import numpy as np
import pytest

import ordinalq as oq

U = [0.2] * 5
Y = [1, 2, 3, 4, 5] * 20

MEASURES = [oq.metrics.md, oq.metrics.nmd, oq.metrics.rnod, oq.metrics.rsnod, oq.metrics.rnadw]
BAD_VECTORS = [
    (([0.5, 0.5, 0.5], [0.2, 0.3, 0.5]), r"p must sum to 1, got \[0.5, 0.5, 0.5\]"),
    (([0.2, 0.3, 0.5], [0.2, 0.3, 0.6]), "p_hat must sum to 1"),
    (([-0.2, 0.7, 0.5], [0.2, 0.3, 0.5]), "p must not be negative"),
    (([np.nan, 0.5, 0.5], [0.2, 0.3, 0.5]), "p must be finite"),
    (([0.2, 0.3, 0.5], [np.inf, 0.3, 0.5]), "p_hat must be finite"),
    (([1.0], [1.0]), "p must have at least 2 classes, got 1"),
    (([0.2, 0.3, 0.5], U), r"same shape, got \(3,\) and \(5,\)"),
    (([U, U], [U, U, U]), r"same shape, got \(2, 5\) and \(3, 5\)"),
    (([U, [0.3] * 5], [U, U]), "row 1"),
    (([[U]], [[U]]), r"shape \(n,\) or \(B, n\), got shape \(1, 1, 5\)"),
]


@pytest.mark.parametrize("measure", MEASURES, ids=lambda f: f.__name__)
@pytest.mark.parametrize(("vectors", "message"), BAD_VECTORS, ids=range(len(BAD_VECTORS)))
def test_measures_reject_values_that_are_not_distributions(measure, vectors, message):
    with pytest.raises(ValueError, match=message):
        measure(*vectors)


@pytest.mark.parametrize(
    "distances", [[1, 1], [1, 1, 1, 0], [1, 1, 1, -1], [1, 1, 1, np.nan], [[1, 1, 1, 1]], 1.0], ids=repr
)
@pytest.mark.parametrize("measure", [oq.metrics.md, oq.metrics.rnod], ids=lambda f: f.__name__)
def test_measures_reject_bad_distances(measure, distances):
    with pytest.raises(ValueError, match="distances must be 4 positive numbers for 5 classes, got"):
        measure(U, U, distances=distances)


VALUE_ERRORS = [
    (lambda: oq.simplex.jaggedness([1.0]), "p must have at least 2 classes, got 1"),
    (lambda: oq.simplex.jaggedness([0.2, 0.3, 0.5], 2), "p must have at least 4 classes, got 3"),
    (lambda: oq.simplex.jaggedness([0.2, np.nan, 0.5]), "p must be finite"),
    (lambda: oq.simplex.jaggedness(0.3), r"shape \(n,\) or \(B, n\)"),
    (lambda: oq.simplex.jaggedness(U, order=-1), "order must be an integer >= 0, got -1"),
    (lambda: oq.simplex.jaggedness(U, normalization="none"), "normalization must be one of 'paper', 'max', got 'none'"),
    (lambda: oq.simplex.difference_matrix(2, 1), "n must be an integer >= 3, got 2"),
    (lambda: oq.simplex.difference_matrix(5, -1), "order must be an integer >= 0, got -1"),
    (lambda: oq.protocols.APP(0, 10), "n_samples must be an integer >= 1, got 0"),
    (lambda: oq.protocols.APP(10, 0), "sample_size must be an integer >= 1, got 0"),
    (lambda: oq.protocols.APP(10, 10, rounding="up"), "rounding must be one of 'balanced', 'truncate', got 'up'"),
    (lambda: oq.protocols.APP(10, 10, small_pool="ignore"), "small_pool must be one of 'error', 'repeat', 'replace'"),
    (lambda: oq.protocols.APP(10, 10, min_per_class=-1), "min_per_class must be an integer >= 0, got -1"),
    (
        lambda: oq.protocols.APP(10, 10, rounding="truncate", min_per_class=1),
        "min_per_class must be 0 with rounding='truncate'",
    ),
    (lambda: oq.protocols.APP(10, 10, min_per_class=3).draw(Y), "got 3 for 5 classes and 10 items"),
    (lambda: oq.protocols.APP(10, 10).draw([]), "y_pool must hold at least one label, got an empty array"),
    (lambda: oq.protocols.APP(10, 10).draw(Y, classes=[1, 2, 3]), r"y_pool has labels that are not in classes"),
    (lambda: oq.protocols.APP(10, 10).draw(Y, classes=range(1, 7)), "at least .* items of class 6, got 0"),
    (lambda: oq.protocols.APP(10, 10, small_pool="repeat").draw(Y, classes=range(1, 7)), "items of class 6, got 0"),
    (
        lambda: oq.protocols.APP(50, 90, random_state=0).draw(Y),
        "y_pool must have at least .* of class .*, got 20; use smaller",
    ),
    (lambda: oq.protocols.APP(10, 10).draw(["a", "b", "c"] * 9), "y_pool has labels without an order"),
    (lambda: oq.protocols.APPOQ(0.0, 10, 10), r"fraction must be a number in \(0, 1\], got 0.0"),
    (lambda: oq.protocols.APPOQ(1.5, 10, 10), r"fraction must be a number in \(0, 1\], got 1.5"),
    (lambda: oq.protocols.APPOQ(np.nan, 10, 10), r"fraction must be a number in \(0, 1\], got nan"),
    (lambda: oq.protocols.NPP(3, 1000).draw(Y), "y_pool must have at least 1000 items .*, got 100"),
    (lambda: oq.protocols.NPP(3, 10, small_pool="no"), "small_pool must be one of"),
    (lambda: oq.protocols.NPP(-3, 10), "n_samples must be an integer >= 1, got -3"),
    (lambda: oq.protocols.RealPrevalences([0.5, 0.4, 0.4], 3, 10), "vectors must sum to 1"),
    (
        lambda: oq.protocols.RealPrevalences([U, [1, 0, 0, 0, -0.0001]], 3, 10),
        "vectors must not be negative, got row 1",
    ),
    (lambda: oq.protocols.RealPrevalences([0.2, 0.3, 0.5], 3, 10).draw(Y), "one entry per class, 5, got 3"),
    (lambda: oq.protocols.matching_fraction([0.5, 0.5, 0.5]), "vectors must sum to 1"),
    (lambda: oq.protocols.matching_fraction(U, n_draws=0), "n_samples must be an integer >= 1, got 0"),
    (lambda: oq.Samples.from_index([], 5), "at least one sample"),
    (lambda: oq.Samples.from_index([[0], []], 5), "sample 1 is empty"),
    (lambda: oq.Samples.from_index([[0, 1], [2, 5]], 5), r"0..4 for n_items=5, got 5 in sample 1"),
    (lambda: oq.Samples.from_index([[0, -1]], 5), "got -1 in sample 0"),
    (lambda: oq.Samples.from_index([[0, 1]], 0), "n_items must be an integer >= 1, got 0"),
    (lambda: oq.Samples.from_index([[0, 1]], 5, y=[1, 2, 3]), "one label per item of the pool, 5, got 3"),
    (lambda: oq.Samples.from_index([[[0, 1]]], 5), "sample 0 has shape"),
    (lambda: oq.Samples.from_groups([]), "groups must be a one-dimensional array with items"),
    (lambda: oq.Samples.from_groups([[1, 2]]), "groups must be a one-dimensional array"),
    (lambda: oq.Samples.from_groups([1.0, np.nan]), "groups must have no missing values, got 1, the first at item 1"),
    (lambda: oq.Samples.from_groups(["a", None]), "groups must have no missing values"),
    (lambda: oq.Samples.whole(0), "n_items must be an integer >= 1, got 0"),
    (lambda: oq.Samples.whole(3).average(np.ones((4, 2))), r"F must have shape \(3, d\), .* got \(4, 2\)"),
    (lambda: oq.Samples.whole(3).average(np.ones(3)), r"F must have shape \(3, d\), .* got \(3,\)"),
    (lambda: oq.Samples.whole(3)[[False]], "at least one of the 1 samples"),
    (lambda: oq.Samples.whole(3).smoothest(0.5), "prevalences: give y"),
    (lambda: oq.Samples.whole(100, y=Y).smoothest(2), "fraction"),
]


@pytest.mark.parametrize(("call", "message"), VALUE_ERRORS, ids=[m for _, m in VALUE_ERRORS])
def test_wrong_values_are_rejected(call, message):
    with pytest.raises(ValueError, match=message):
        call()


TYPE_ERRORS = [
    (lambda: oq.simplex.difference_matrix(5.5), "n must be an integer >= 3, got 5.5"),
    (lambda: oq.simplex.difference_matrix(5, True), "order must be an integer >= 0, got True"),
    (lambda: oq.simplex.jaggedness("smooth"), "p must be a vector or a matrix of numbers, got 'smooth'"),
    (lambda: oq.metrics.nmd(["a", "b", "c"], U), "p must be a vector or a matrix of numbers"),
    (lambda: oq.protocols.APP(10.0, 10), "n_samples must be an integer >= 1, got 10.0"),
    (lambda: oq.protocols.APP(10, "10"), "sample_size must be an integer >= 1, got '10'"),
    (lambda: oq.protocols.APPOQ("0.2", 10, 10), r"fraction must be a number in \(0, 1\], got '0.2'"),
    (
        lambda: oq.protocols.APP(10, 10, random_state="seed"),
        "random_state must be None, an integer >= 0 or a numpy Generator",
    ),
    (lambda: oq.protocols.APP(10, 10, random_state=-1), "random_state must be None, an integer >= 0"),
    (lambda: oq.Samples.from_index([[0.5, 1.0]], 5), "index must hold integers, got float64 in sample 0"),
    (lambda: oq.Samples.from_index(3, 5), "index must be an integer array"),
    (lambda: oq.Samples.from_index(oq.Samples.whole(3), 3), "got Samples, which need no conversion"),
    (lambda: oq.Samples.from_groups(np.array([1, "a"], dtype=object)), "groups must be values that can be sorted"),
]


@pytest.mark.parametrize(("call", "message"), TYPE_ERRORS, ids=[m for _, m in TYPE_ERRORS])
def test_wrong_types_are_rejected(call, message):
    with pytest.raises(TypeError, match=message):
        call()
