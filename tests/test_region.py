"""Joint confidence regions of whole distributions."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.stats import chi2

import ordinalq as oq
from ordinalq.inference.bounds import Bounds
from ordinalq.inference.predict import estimate
from ordinalq.inference.region import directions, joint_region


def scores(rng, codes, n=3):
    """Return posteriors of items z ~ N(code, 1) under equal class frequencies, (N, n)."""
    E = np.exp(-((codes[:, None] + rng.normal(size=(len(codes), 1)) - np.arange(n)) ** 2) / 2)
    return E / E.sum(axis=1, keepdims=True)


def samples_of(rng, n_samples, size, n=3, concentration=1.0):
    """Return scores, samples and their realized distributions."""
    P = rng.dirichlet(np.full(n, concentration), n_samples)
    codes = np.concatenate([rng.choice(n, size, p=p) for p in P])
    samples = oq.Samples.from_groups(np.repeat(np.arange(n_samples), size), codes, classes=np.arange(n))
    return scores(rng, codes, n), samples, samples.prevalences, P


@pytest.mark.parametrize("estimand", ["sample", "population"])
@pytest.mark.parametrize("method", [oq.PACC, oq.ACC, oq.SLD, oq.AdjustedML, oq.GroupBLP])
def test_regions_contain_the_whole_distribution_as_often_as_their_level(method, estimand, rng):
    y = np.arange(12_000) % 3
    q = method().fit_scores(scores(rng, y), y)
    S, samples, realized, P = samples_of(rng, 400, 200)
    found = estimate(q, q.summarize(S, samples), 0.9, oq.inference.IntervalOptions(estimand=estimand))
    inside = found.region().contains(realized if estimand == "sample" else P)
    # Over ten seeds .88 to .91 on average, with standard deviations of .02, since all samples share the errors of M.
    assert inside.mean() > 0.78
    assert found.region().contains(found.prevalences[0]).shape == (400,)
    assert all(found.take([b]).region().contains(p)[0] for b, p in enumerate(found.prevalences[:20]))
    assert found.region(0.99).contains(realized).mean() >= found.region(0.5).contains(realized).mean()


def test_regions_of_indistinguishable_classes_contain_all_their_mixtures():
    S, y = np.tile([[0.3, 0.3, 0.4]], (60, 1)), np.arange(60) % 3
    with pytest.warns(UserWarning, match="does not distinguish all classes"):
        found = estimate(q := oq.PACC().fit_scores(S, y), q.summarize(S), 0.95)
    region = found.region()
    for p in (*np.eye(3), [1 / 3, 1 / 3, 1 / 3]):
        assert region.contains(p)[0]


def known_region(P, E, level=0.9, size=1e6):
    """Return a region of estimates with normal intervals."""
    half = np.sqrt(np.einsum("bii->bi", E)) * np.sqrt(chi2.ppf(level, 1))
    rest = {name: np.zeros_like(P) for name in ("cumulative_lower", "cumulative_upper")}
    rest |= {name: np.zeros(len(P)) for name in ("mean_lower", "mean_upper")}
    bounds = Bounds(level, "sample", P - half, P + half, **rest)
    return joint_region(np.arange(P.shape[1]), P, E, bounds, np.full(len(P), size), level)


def test_distance_is_that_of_the_error_covariance(rng):
    U = directions(4)
    A = rng.normal(size=(5, 3, 3))
    E = U @ (1e-4 * (A @ A.transpose(0, 2, 1) + np.eye(3))) @ U.T
    P = np.full((5, 4), 0.25)
    region = known_region(P, E)
    p = P + 0.01 * rng.normal(size=(5, 3)) @ U.T
    expected = np.einsum("bi,bij,bj->b", p - P, np.linalg.pinv(E), p - P)
    assert_allclose(region.squared_distance(p), expected, rtol=1e-6)
    assert_allclose(region.radius2, chi2.ppf(0.9, 3))


def test_volume_is_that_of_an_ellipse_over_its_box():
    U = directions(3)
    E = np.stack([U @ (s**2 * np.eye(2)) @ U.T for s in (0.01, 0.02)])
    region = known_region(np.full((2, 3), 1 / 3), E)
    area = np.pi * chi2.ppf(0.9, 2) * np.array([0.01, 0.02]) ** 2
    # Three intervals of equal width w cut a hexagon of the plane whose area is 3/4 of sqrt(3) w^2.
    width = region.upper[:, 0] - region.lower[:, 0]
    assert_allclose(region.volume_ratio(), area / (0.75 * np.sqrt(3) * width**2), rtol=0.05)


def test_wrong_distributions_are_rejected(rng):
    region = known_region(np.full((2, 3), 1 / 3), np.tile(1e-4 * (np.eye(3) - 1 / 3), (2, 1, 1)))
    for bad, message in (([0.5, 0.5], "shape"), ([0.5, 0.5, 0.5], "sum to one"), ([1.2, -0.1, -0.1], "not negative")):
        with pytest.raises(ValueError, match=message):
            region.contains(bad)
    q = oq.PACC().fit_scores(np.eye(3) * 0.7 + 0.1, [1, 2, 3])
    without = estimate(q, q.summarize(np.eye(3) * 0.7 + 0.1))
    with pytest.raises(ValueError, match="no intervals"):
        without.region()


def test_regions_follow_labels_alone(rng):
    y = np.arange(900) % 3
    q = oq.PACC().fit_scores(scores(rng, y), y)
    _, _, realized, _ = samples_of(rng, 200, 80)
    codes = np.repeat(np.arange(200), 80)
    true = np.concatenate([np.repeat(np.arange(3), np.rint(80 * p).astype(int)) for p in realized])
    S = scores(rng, true)
    known = np.where(rng.random(len(true)) < 0.5, true, np.nan)
    found = estimate(q, q.summarize(S, oq.Samples.from_groups(codes), labels=known), 0.95)
    assert set(found.basis) == {"labels"}
    # Of a true 95%, 200 samples show more than 86%.
    assert found.region().contains(realized).mean() > 0.86


def test_regions_of_three_classes_are_drawn(rng):
    y = np.arange(300) % 3
    q = oq.PACC().fit_scores(scores(rng, y), y)
    S, samples, realized, _ = samples_of(rng, 2, 50)
    region = estimate(q, q.summarize(S, samples), 0.9).region()
    ax = oq.plot.region(region, names=["a", "b"], truth=realized)
    assert [text.get_text() for text in ax.get_legend().get_texts()] == ["a", "b"]
    assert ax.get_title(loc="left") == "90% joint regions"
    with pytest.raises(ValueError, match="three classes, got 4"):
        oq.plot.region(known_region(np.full((1, 4), 0.25), np.eye(4)[None]))
