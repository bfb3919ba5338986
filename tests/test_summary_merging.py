"""A million items in twenty thousand groups: chunks in any order give what all items at once give."""

from functools import lru_cache

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from seeds import generator
from sklearn.naive_bayes import GaussianNB

import ordinalq as oq

N_ITEMS, N_GROUPS, N_CLASSES = 1_000_000, 20_000, 5
# The default is AdjustedML on another classifier.
METHODS = {entry.name: entry.cls for entry in oq.catalog() if entry.name != "AutoQuantifier"}


@lru_cache(maxsize=1)
def pool():
    """Return features (N, 2), scores (N, n) and groups (N,) of all items."""
    rng = generator(0)
    codes = rng.integers(0, N_CLASSES, N_ITEMS)
    X = codes[:, None] + rng.normal(size=(N_ITEMS, 2))
    density = np.exp(-((X[:, :1] - np.arange(N_CLASSES)) ** 2) / 2)
    return X, density / density.sum(axis=1, keepdims=True), rng.permutation(np.resize(np.arange(N_GROUPS), N_ITEMS))


def fitted(cls):
    """Return the fitted quantifier and what it takes of the pool."""
    X, S, _ = pool()
    y = np.arange(2000) % N_CLASSES
    rng = generator(1)
    train = y[:, None] + rng.normal(size=(2000, 2))
    if not cls().traits.accepts_scores:
        return cls(GaussianNB()).fit(train, y), S
    if cls().traits.input_kind == "features":
        return cls().fit(train, y), X
    density = np.exp(-((train[:, :1] - np.arange(N_CLASSES)) ** 2) / 2)
    return cls().fit_scores(density / density.sum(axis=1, keepdims=True), y), S


def merged_pairwise(parts):
    """Return the summary of all parts, merged two by two."""
    while len(parts) > 1:
        pairs = [parts[i].merge(parts[i + 1]) for i in range(0, len(parts) - 1, 2)]
        parts = pairs + parts[2 * len(pairs) :]
    return parts[0]


@pytest.mark.slow
@pytest.mark.parametrize("name", METHODS)
def test_chunks_in_any_order_merge_to_the_whole(name):
    quantifier, S = fitted(METHODS[name])
    groups = pool()[2]
    whole = quantifier.summarize(S, oq.Samples.from_groups(groups), checks=True)
    P = quantifier.solve(whole).p
    rng = generator(2)
    for n_portions in (1, 7, 100):
        chunks = np.array_split(rng.permutation(N_ITEMS), n_portions)
        parts = [quantifier.summarize(S[rows], oq.Samples.from_groups(groups[rows]), checks=True) for rows in chunks]
        found = merged_pairwise([parts[i] for i in rng.permutation(n_portions)])
        assert found.keys.tolist() == list(range(N_GROUPS))
        assert_array_equal(found.n_items, whole.n_items)
        for total, expected in zip(found.totals.values(), whole.totals.values(), strict=True):
            assert_allclose(total, expected, rtol=1e-12, atol=1e-12)
        assert_allclose(quantifier.solve(found).p, P, atol=1e-9)
