"""Representations: bins, mean distances, leaves."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from ordinalq.representations import (
    ALL_REPRESENTATIONS,
    HardVotes,
    Histograms,
    MeanDistances,
    Partition,
    RankHistogram,
    expected_rank,
)


@pytest.fixture
def scores(rng):
    """Held-out scores and codes of 300 items of 5 classes."""
    codes = rng.permutation(np.repeat(np.arange(5), 60))
    return rng.dirichlet(np.ones(5), 300) * 0.6 + 0.4 * np.eye(5)[codes], codes


@pytest.mark.parametrize("representation", ALL_REPRESENTATIONS, ids=repr)
def test_items_are_represented_one_by_one(representation, scores):
    S, codes = scores
    f = representation.fit(S, codes, 5)
    F = np.asarray(f.transform(S))
    assert len(F) == 300
    assert np.isfinite(F).all()
    assert_allclose(F[7:9], np.asarray(f.transform(S[7:9])), atol=1e-12)


def test_hard_votes_break_ties_towards_the_lowest_class():
    votes = HardVotes().transform(np.array([[0.4, 0.4, 0.2], [0.1, 0.45, 0.45]]))
    assert_array_equal(np.asarray(votes), [[1, 0, 0], [0, 1, 0]])


def test_bins_have_equal_width_over_the_training_range_and_are_closed_on_the_right():
    X = np.array([[0.0], [1.0], [2.0], [4.0]])
    f = Histograms(4, on="features").fit(X, np.zeros(4, dtype=int), 3)
    assert_allclose(f.edges_, [[1.0, 2.0, 3.0]])
    new = np.array([[-9.0], [1.0], [1.0001], [2.0], [3.5], [99.0]])
    assert_array_equal(f.transform(new).codes[:, 0], [0, 0, 1, 1, 3, 3])


def test_features_have_histograms_of_their_own_side_by_side(rng):
    X = rng.normal(size=(50, 3))
    f = Histograms(2, on="features").fit(X, np.zeros(50, dtype=int), 3)
    F = np.asarray(f.transform(X))
    assert F.shape == (50, 6)
    assert f.n_blocks_ == 3
    middle = (X.min(axis=0) + X.max(axis=0)) / 2
    assert_array_equal(F[:, 1::2], middle < X)
    assert_array_equal(F.reshape(50, 3, 2).sum(axis=2), 1)


def test_constant_features_fall_into_the_first_bin():
    X = np.ones((5, 1))
    assert_array_equal(Histograms(3).fit(X, np.zeros(5, dtype=int), 3).transform(X).codes[:, 0], 0)


def naive_mean_distances(S, V, codes, n, distance):
    return [[np.mean([distance(s, v) for v in V[codes == i]]) for i in range(n)] for s in S]


def match_distance(a, b):
    return np.abs(np.cumsum(a - b)[:-1]).sum()


def euclidean(a, b):
    return np.sqrt(((a - b) ** 2).sum())


@pytest.mark.parametrize(("metric", "distance"), [("md", match_distance), ("euclidean", euclidean)])
def test_mean_distances_equal_a_loop_over_all_pairs(metric, distance, scores, rng):
    V, codes = scores
    V, codes = np.round(V[:60], 1), codes[:60]  # rounded: many ties
    S = np.round(rng.dirichlet(np.ones(5), 20), 1)
    F = MeanDistances(metric).fit(V, codes, 5).transform(S)
    assert_allclose(F, naive_mean_distances(S, V, codes, 5, distance), atol=1e-12)


def test_mean_distances_do_not_depend_on_the_blocks_of_items(scores, monkeypatch):
    S, codes = scores
    f = MeanDistances("euclidean").fit(S, codes, 5)
    whole = f.transform(S)
    assert_allclose(np.concatenate([f.transform(S[i : i + 7]) for i in range(0, 300, 7)]), whole, atol=1e-12)


def test_expected_rank_counts_from_one():
    assert_allclose(expected_rank(np.array([[1.0, 0, 0], [0, 0, 1.0], [0.5, 0, 0.5]])), [1, 3, 2])


def test_rank_bins_over_the_classes_are_closed_on_the_left_and_the_last_on_both_sides(scores):
    S, codes = scores
    f = RankHistogram(4).fit(S, codes, 5)
    assert_allclose(f.edges_, [2, 3, 4])
    corners = np.array([[1.0, 0, 0, 0, 0], [0, 1.0, 0, 0, 0], [0, 0, 0, 1.0, 0], [0, 0, 0, 0, 1.0]])
    assert_array_equal(f.transform(corners).codes[:, 0], [0, 1, 3, 3])


def test_rank_bins_over_the_data_span_its_minimum_and_maximum(scores):
    S, codes = scores
    f = RankHistogram(10, span="data").fit(S, codes, 5)
    r = expected_rank(S)
    assert_allclose(f.edges_, np.linspace(r.min(), r.max(), 11)[1:-1])
    bins = f.transform(S).codes[:, 0]
    assert_array_equal(bins, [(f.edges_ < x).sum() for x in r])


def test_rank_histogram_has_five_bins_per_step_by_default(scores):
    S, codes = scores
    assert RankHistogram().fit(S, codes, 5).transform(S).shape == (300, 20)


def test_partition_takes_class_means_from_items_the_tree_has_not_seen(rng):
    X = rng.normal(size=(400, 2))
    codes = np.digitize(X[:, 0], [-0.5, 0.5])
    f = Partition(6, fit_fraction=0.25).fit(X, codes, 3)
    assert f.for_means_.sum() == 300
    F = np.asarray(f.transform(X))
    assert F.shape == (400, f.tree_.get_n_leaves())
    assert_array_equal(F.sum(axis=1), 1)
