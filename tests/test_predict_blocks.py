"""Many groups are estimated block by block, and scored items may lie on disk: the estimates stay what they are."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from seeds import generator

import ordinalq as oq
from ordinalq.inference import estimates as contract
from ordinalq.inference.predict import estimate, estimate_block
from ordinalq.samples import summary as module
from ordinalq.samples.summary import Summary, blocks, spill_to_disk

METHODS = [oq.PACC(), oq.OPACC(), oq.HDy(), oq.SLD(), oq.OSLD(), oq.AdjustedML()]


@pytest.fixture(scope="module")
def data():
    rng = generator()
    y = rng.integers(1, 5, 800)
    S = np.exp(rng.normal(size=(800, 4)) + 2 * np.eye(4)[y - 1])
    return S / S.sum(axis=1, keepdims=True), y, rng.integers(0, 25, 800)


def assert_same(found, expected, exact=True):
    check = assert_array_equal if exact else assert_allclose
    options = {} if exact else {"rtol": 1e-10, "atol": 1e-12}
    check(found.prevalences, expected.prevalences, **options)
    assert found.keys.tolist() == expected.keys.tolist()
    assert (found.fit is None) == (expected.fit is None)
    if expected.bounds is not None:
        for name in ("lower", "upper", "cumulative_lower", "mean_lower", "mean_upper"):
            check(getattr(found.bounds, name), getattr(expected.bounds, name), **options)
        check(found.covariance, expected.covariance, **options)


@pytest.mark.parametrize("method", METHODS, ids=lambda method: type(method).__name__)
@pytest.mark.parametrize("level", [None, 0.9])
def test_single_blocks_give_the_result_of_all(data, monkeypatch, method, level):
    S, y, groups = data
    quantifier = method.fit_scores(S, y)
    summary = quantifier.summarize(S, oq.Samples.from_groups(groups))
    dear = isinstance(method, oq.HDy)  # a replicate of it may have several minima, and takes milliseconds
    plan = oq.inference.IntervalOptions(n_replicates=20 if dear else 200)
    whole = estimate(quantifier, summary, level, plan)
    monkeypatch.setattr(module, "BLOCK_SAMPLES", 7)
    together = estimate(quantifier, summary, level, plan)
    assert_allclose(together.prevalences, whole.prevalences, rtol=1e-8, atol=1e-10)
    slices = blocks(summary.n_items, of_items=False)
    assert len(slices) == 4
    # In any order, as machines come to it.
    parts = {b: estimate_block(quantifier, summary[slices[b]], level, plan, b)[0] for b in (2, 0, 3, 1)}
    apart = contract.concatenate([parts[b] for b in range(4)], summary.keys)
    assert_same(apart, together)
    if level is not None and not dear:
        # Other draws, the same width.
        width, other = (together.upper - together.lower).mean(), (whole.upper - whole.lower).mean()
        assert abs(width / other - 1) < 0.1


def test_blocks_hold_so_many_samples_and_items(monkeypatch):
    monkeypatch.setattr(module, "BLOCK_SAMPLES", 3)
    monkeypatch.setattr(module, "BLOCK_ITEMS", 10)
    n_items = np.array([1, 1, 1, 1, 9, 2, 50, 3, 3, 3, 3])
    assert [(s.start, s.stop) for s in blocks(n_items, of_items=False)] == [(0, 3), (3, 6), (6, 9), (9, 11)]
    found = [(s.start, s.stop) for s in blocks(n_items, of_items=True)]
    assert found == [(0, 3), (3, 5), (5, 6), (6, 7), (7, 10), (10, 11)]


def test_a_generator_is_drawn_from_once(data, monkeypatch):
    S, y, groups = data
    quantifier = oq.PACC().fit_scores(S, y)
    summary = quantifier.summarize(S, oq.Samples.from_groups(groups))
    monkeypatch.setattr(module, "BLOCK_SAMPLES", 7)
    runs = [
        estimate(quantifier, summary, 0.9, oq.inference.IntervalOptions(random_state=generator())) for _ in range(2)
    ]
    assert_same(*runs)


def test_errors_that_groups_share_are_dropped_for_very_many(data, monkeypatch):
    S, y, groups = data
    quantifier = oq.PACC().fit_scores(S, y)
    summary = quantifier.summarize(S, oq.Samples.from_groups(groups))
    monkeypatch.setattr(module, "BLOCK_SAMPLES", 7)
    assert estimate(quantifier, summary, 0.9).shared.shape == (25, 4, 40)
    monkeypatch.setattr(contract, "MAX_SHARED", 20)
    assert estimate(quantifier, summary, 0.9).shared is None


@pytest.mark.parametrize("method", [oq.SLD(), oq.OSLD()], ids=lambda method: type(method).__name__)
def test_scores_on_disk_give_the_same_estimates(data, monkeypatch, method):
    S, y, groups = data
    quantifier = method.fit_scores(S, y)
    parts = [
        quantifier.summarize(S[i : i + 100], oq.Samples.from_groups(groups[i : i + 100])).compact()
        for i in range(0, 800, 100)
    ]
    expected = estimate(quantifier, Summary.merged(parts), 0.9)
    monkeypatch.setattr(module, "IN_MEMORY", 250)
    monkeypatch.setattr(module, "BLOCK_ITEMS", 200)
    whole = parts[0]
    for part in parts[1:]:
        whole = spill_to_disk(whole.merge(part))
    assert sum(isinstance(part.S, np.memmap) for part in whole.items) == 2
    assert sum(len(part.S) for part in whole.items if not isinstance(part.S, np.memmap)) <= 250
    found = estimate(quantifier, whole)
    assert_allclose(found.prevalences, expected.prevalences, rtol=1e-9, atol=1e-10)
    turned = whole.regrouped(np.arange(len(whole))[::-1].copy(), whole.keys)
    assert all(isinstance(part.samples.items, np.memmap) or len(part.S) < 250 for part in turned.items)
