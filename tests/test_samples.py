"""Samples: sparse rows over a pool."""

import tracemalloc

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse
from seeds import generator

import ordinalq as oq
from ordinalq import Samples
from ordinalq.samples.samples import CHUNK_ITEMS, OneHot
from ordinalq.simplex import jaggedness


@pytest.fixture
def ragged(rng):
    """20 samples of 1 to 40 items over a pool of 100, repetitions included."""
    return [rng.integers(100, size=size) for size in rng.integers(1, 41, size=20)]


def test_average_equals_a_loop_over_the_samples(ragged, rng):
    F = rng.normal(size=(100, 3))
    samples = Samples.from_index(ragged, 100)
    expected = [F[index].mean(axis=0) for index in ragged]
    assert_allclose(samples.average(F), expected, rtol=1e-12)
    assert_allclose(samples.average(sparse.csr_array(F)), expected, rtol=1e-12)
    assert_allclose(samples.average(F.astype(np.float32)), expected, rtol=1e-4)
    assert_array_equal(samples.sizes, [len(index) for index in ragged])


def test_one_hot_rows_are_counted_as_their_arrays_are_averaged(ragged, rng):
    F = OneHot(rng.integers(4, size=(100, 3)), 4)
    samples = Samples.from_index(ragged, 100)
    assert F.shape == np.asarray(F).shape == (100, 12)
    assert_allclose(samples.average(F), samples.average(np.asarray(F)), rtol=1e-12)


def test_average_does_not_depend_on_the_chunks(ragged, rng, monkeypatch):
    F = rng.normal(size=(100, 2))
    samples = Samples.from_index(ragged, 100)
    whole = samples.average(F)
    # 30 items a chunk: many chunks, some of a single sample that is larger than a chunk.
    monkeypatch.setattr(Samples.chunks, "__defaults__", (30,))
    assert len(list(samples.chunks())) > 10
    assert_allclose(samples.average(F), whole, rtol=1e-14)


def test_chunks_cover_every_sample_once(ragged):
    samples = Samples.from_index(ragged, 100)
    covered = np.concatenate([np.arange(20)[rows] for rows in samples.chunks(25)])
    assert_array_equal(covered, np.arange(20))
    assert len(list(samples.chunks(CHUNK_ITEMS))) == 1


def test_prevalences_are_the_fractions_of_the_labels(ragged, rng):
    y = rng.choice([10, 20, 40], size=100)
    samples = Samples.from_index(ragged, 100, y)
    expected = [[np.mean(y[index] == c) for c in (10, 20, 40)] for index in ragged]
    assert_allclose(samples.prevalences, expected, rtol=1e-12)
    assert_array_equal(samples.classes, [10, 20, 40])
    assert Samples.from_index(ragged, 100).prevalences is None


def test_groups_become_samples_in_sorted_order(rng):
    groups = rng.choice(["pen", "ink", "paper"], size=50)
    y = rng.integers(1, 5, size=50)
    samples = Samples.from_groups(groups, y, classes=[1, 2, 3, 4])
    assert samples.groups_.tolist() == ["ink", "paper", "pen"]
    for b, name in enumerate(samples.groups_):
        assert_array_equal(samples.index(b), np.flatnonzero(groups == name))
        assert_allclose(samples.prevalences[b], [np.mean(y[groups == name] == c) for c in range(1, 5)])


def test_whole_is_one_sample_of_every_item(rng):
    F = rng.normal(size=(30, 2))
    samples = Samples.whole(30)
    assert len(samples) == 1
    assert_allclose(samples.average(F)[0], F.mean(axis=0), rtol=1e-12)


@pytest.mark.parametrize("key", [slice(3, 9), [4, 4, 0], np.arange(20) % 2 == 0, 7, -1], ids=repr)
def test_selection_keeps_items_prevalences_and_groups_together(key, rng):
    y = rng.integers(3, size=200)
    samples = Samples.from_groups(rng.integers(20, size=200), y, classes=[0, 1, 2])
    chosen = np.atleast_1d(np.arange(20)[key])
    part = samples[key]
    assert len(part) == len(chosen)
    for b, original in enumerate(chosen):
        assert_array_equal(part.index(b), samples.index(original))
    assert_array_equal(part.prevalences, samples.prevalences[chosen])
    assert_array_equal(part.groups_, samples.groups_[chosen])


def test_iteration_visits_each_sample(ragged):
    samples = Samples.from_index(ragged, 100)
    assert [part.sizes[0] for part in samples] == [len(index) for index in ragged]


def test_smoothest_keeps_the_given_fraction_of_distinct_jaggedness(rng):
    y = rng.integers(5, size=1000)
    samples = Samples.from_index(rng.integers(1000, size=(200, 30)), 1000, y)
    kept = samples.smoothest(0.3)
    xi = jaggedness(samples.prevalences)
    threshold = np.quantile(np.unique(np.round(xi, 12)), 0.3)
    assert len(kept) == (xi <= threshold + 1e-12).sum()
    assert jaggedness(kept.prevalences).max() <= threshold + 1e-12
    assert len(samples.smoothest(1.0)) == 200


def test_memory_is_proportional_to_the_drawn_items():
    index = generator().integers(1_000_000, size=(2000, 500)).astype(np.int32)
    tracemalloc.start()
    samples = Samples.from_index(index, 1_000_000)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert samples.items.nbytes == 4 * index.size
    assert peak < 20 * index.size


def test_samples_with_given_prevalences_serve_a_search_without_labels_of_items(rng):
    y, z = rng.integers(0, 3, 300), rng.integers(0, 3, 400)
    X, Z = (np.eye(3)[one] + rng.normal(0, 0.5, (len(one), 3)) for one in (y, z))
    groups = np.arange(400) % 20
    labelled = Samples.from_groups(groups, z, classes=[0, 1, 2])
    given = Samples.from_groups(groups, prevalences=labelled.prevalences, classes=[0, 1, 2])
    searches = [
        oq.model_selection.SampleSearch(oq.OPACC(), {"tau": [0.0, 1e-3, 10.0]}, samples=samples).fit(X, y, X_pool=Z)
        for samples in (labelled, given)
    ]
    assert_array_equal(searches[0].results_["error"], searches[1].results_["error"])


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"prevalences": [[0.5, 0.5]]}, r"one row per sample and one column per class, \(2, 2\), got shape \(1, 2\)"),
        ({"prevalences": [[0.5, 0.5], [0.7, 0.7]]}, "prevalences must sum to 1"),
        ({"prevalences": [[0.5, 0.5], [1, 0]], "classes": [1, 2, 3]}, r"one column per class, \(2, 3\)"),
        ({"prevalences": [[0.5, 0.5], [1, 0]], "y": [1, 2, 1]}, "y and prevalences must not both be given"),
    ],
)
def test_given_prevalences_are_checked(arguments, message):
    with pytest.raises(ValueError, match=message):
        Samples.from_groups(["pen", "ink", "pen"], **arguments)
