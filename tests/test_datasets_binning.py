"""Binning: the widest span is exact, ties go to the smallest lo, and every item knows whether it was kept."""

import numpy as np
import pytest
from numpy.testing import assert_array_equal

import ordinalq as oq
from ordinalq.datasets import binning as module
from ordinalq.datasets.binning import widest_span


def counts_on(y, lo, hi, n_bins):
    """Count by hand: bins [left, right), the last one closed."""
    edges = np.linspace(lo, hi, n_bins + 1)
    last = n_bins - 1
    return [np.sum((y >= edges[k]) & ((y < edges[k + 1]) | ((k == last) & (y == hi)))) for k in range(n_bins)]


def brute_force(y, n_bins, min_count):
    best = None
    for lo in np.unique(y):
        for hi in np.unique(y):
            filled = hi > lo and min(counts_on(y, lo, hi, n_bins)) >= min_count
            if filled and (best is None or hi - lo > best[1] - best[0]):
                best = (lo, hi)
    return best


def continuous(rng, size):
    return rng.normal(size=size)


def tied(rng, size):
    return rng.integers(0, 9, size).astype(float)


def skewed_decimals(rng, size):
    return np.round(rng.exponential(size=size), 1)


def far_from_zero(rng, size):
    return np.round(rng.normal(size=size) * 1e6, 1) + 1e9


def many_magnitudes(rng, size):
    return rng.choice([-1, 1], size) * rng.lognormal(0, 8, size)


@pytest.mark.parametrize("draw", [continuous, tied, skewed_decimals, far_from_zero, many_magnitudes])
@pytest.mark.parametrize("batch", [2, 4096])
def test_search_equals_brute_force(draw, batch, rng, monkeypatch):
    monkeypatch.setattr(module, "BATCH", batch)
    found = 0
    # Of values of many magnitudes one draw in ten or more can be binned: of 400 more than three, but for one in 1e12.
    for trial in range(400):
        if trial >= 25 and found > 3:
            break
        y = draw(rng, rng.integers(6, 30))
        n_bins, min_count = int(rng.integers(3, 6)), int(rng.integers(1, 4))
        expected = brute_force(y, n_bins, min_count)
        if expected is None:
            with pytest.raises(ValueError, match="lower min_count"):
                widest_span(y, n_bins, min_count)
        else:
            assert widest_span(y, n_bins, min_count) == expected
            found += 1
    assert found > 3  # the comparison means something


def test_a_wide_span_may_be_filled_if_a_narrower_one_is_not():
    # With hi = 10 the middle bin is empty, with hi = 12 it is not: feasibility is not monotone.
    y = np.array([0.0, 1, 2, 7, 7.5, 8, 10, 12])
    assert min(counts_on(y, 0, 10, 3)) == 0
    assert widest_span(y, 3, 1) == (0, 12)


def test_equally_wide_spans_give_the_smallest_lo():
    # Between the groups a bin is always empty; the two groups are equally wide.
    assert widest_span(np.array([10.0, 11, 12, 0, 1, 2]), 3, 1) == (0, 2)


def test_clip_keeps_all_items_and_finite_edges():
    y = np.concatenate([[-100.0], np.linspace(0, 10, 101), [500.0]])
    binning = oq.datasets.bin_target(y, n_bins=5, min_count=10)
    assert np.isfinite(binning.edges).all()
    assert binning.edges[[0, -1]].tolist() == [0, 10]
    assert binning.kept.all()
    assert binning.codes[0] == 0
    assert binning.codes[-1] == 4
    assert binning.counts.sum() == len(y)


def test_drop_keeps_only_the_items_of_the_span():
    y = np.concatenate([[-100.0], np.linspace(0, 10, 101), [500.0, np.nan]])
    binning = oq.datasets.bin_target(y, n_bins=5, min_count=10, outside="drop")
    assert_array_equal(np.flatnonzero(~binning.kept), [0, 102, 103])
    assert_array_equal(binning.codes[~binning.kept], -1)
    assert_array_equal(binning.counts, counts_on(y[binning.kept], 0, 10, 5))


def test_bins_are_closed_on_the_left_and_the_last_on_both_sides():
    binning = oq.datasets.bin_target([0, 1, 2, 3, 4, 5, 6], n_bins=3, span=(0, 6))
    assert_array_equal(binning.codes, [0, 0, 1, 1, 2, 2, 2])


def test_missing_targets_are_never_kept():
    binning = oq.datasets.bin_target([0.0, 1, 2, np.nan], n_bins=3, min_count=1)
    assert_array_equal(binning.kept, [True, True, True, False])
    assert binning.codes[3] == -1


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ({"y": [[1.0, 2.0]]}, ValueError, "one-dimensional"),
        ({"y": []}, ValueError, "at least one item"),
        ({"y": ["a", "b"]}, TypeError, "must hold numbers"),
        ({"y": [1.0, np.inf]}, ValueError, "finite or missing, got inf at item 1"),
        ({"y": [1.0, 2.0], "n_bins": 2}, ValueError, "n_bins must be an integer >= 3"),
        ({"y": [1.0, 2.0], "min_count": 0}, ValueError, "min_count"),
        ({"y": [1.0, 2.0], "outside": "keep"}, ValueError, "outside must be one of"),
        ({"y": [1.0, 2.0], "span": (3, 1)}, ValueError, "lo < hi"),
        ({"y": [1.0, 2.0], "span": 3}, TypeError, "two numbers"),
        ({"y": np.arange(50.0)}, ValueError, "10 bins of at least 100 items"),
    ],
)
def test_bad_arguments_are_named(arguments, error, message):
    with pytest.raises(error, match=message):
        oq.datasets.bin_target(**arguments)
