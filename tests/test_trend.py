"""Trends of groups: test, calibration, sentences, plots and command line."""

import json

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose
from scipy.stats import chi2, kstest, norm
from seeds import generator

import ordinalq as oq
from ordinalq.cli import main
from ordinalq.inference.bounds import Bounds
from ordinalq.inference.estimates import Estimates
from ordinalq.inference.predict import estimate
from ordinalq.inference.trend import trend_of
from ordinalq.plot import trend as plot_trend
from ordinalq.samples.keys import Keys
from ordinalq.samples.labels import class_scale

POPULATION = oq.inference.IntervalOptions("population")
SHARES = np.array([0.1, 0.2, 0.3, 0.4])


def draw(rng, p, n_items):
    y = rng.choice(4, n_items, p=p)
    return 1.2 * y[:, None] + rng.normal(size=(n_items, 2)), y + 1


@pytest.mark.parametrize("name", ["PACC", "AdjustedML"])
def test_p_values_are_uniform_without_change(name):
    rng, n_series, T = generator(51), 80, 6
    # Few training items: their error is far larger than the differences between groups, and common to all.
    quantifier = getattr(oq, name)().fit(*draw(rng, np.full(4, 0.25), 240))
    sizes = rng.integers(100, 800, n_series * T)
    X, _ = draw(rng, SHARES, sizes.sum())
    found = quantifier.predict_groups(X, np.repeat(np.arange(len(sizes)), sizes), level=0.9, options=POPULATION)
    tests = [found.take(slice(k * T, k * T + T)).trend() for k in range(n_series)]
    # By chance the distance is larger than this once in 100,000 times.
    largest = np.sqrt(-np.log(1e-5 / 2) / 2 / n_series)
    for values in (np.array([one.p_value[0] for one in tests]), np.array([one.mean_p_value[0] for one in tests])):
        # A prior makes AdjustedML cautious: its p-values may be too large, not too small.
        side = "greater" if name == "AdjustedML" else "two-sided"
        distance = kstest(values, "uniform", alternative=side).statistic
        assert distance < largest
    inside = np.mean([one.slope_lower[0] <= 0 <= one.slope_upper[0] for one in tests])
    assert inside > 0.75
    # The common error is not part of it.
    whole = np.trace(found.covariance, axis1=1, axis2=2).mean()
    assert np.trace(found.own, axis1=1, axis2=2).mean() < 0.97 * whole


def test_a_change_is_seen():
    rng = generator(52)
    quantifier = oq.PACC().fit(*draw(rng, np.full(4, 0.25), 600))
    parts = [draw(rng, SHARES + t * np.array([0.03, 0.02, -0.02, -0.03]), 500)[0] for t in range(6)]
    groups = pd.Series(np.repeat([f"2024-0{t + 1}" for t in range(6)], 500), name="month")
    found = quantifier.predict_groups(np.vstack(parts), groups, level=0.95, options=POPULATION).trend()
    assert found.p_value[0] < 1e-3
    assert found.slope_upper[0] < 0
    # The mean class falls by 0.03 * 3 + 0.02 from month to month.
    assert_allclose(found.slope[0], -0.11, atol=0.05)
    text = str(found)
    assert text.startswith("The distribution changes (6 groups by month, p < 0.001): the mean class falls by 0.")
    assert text.endswith("(This is about the populations behind the items.)")
    assert found.frame()["n_groups"].tolist() == [6]
    assert found.to_json()["estimand"] == "population"


def by_hand(T=5, n_items=None, own=None, P=None, groups=None):
    """Return estimates whose errors are known."""
    n_items = np.full(T, 200) if n_items is None else n_items
    V = (np.diag(SHARES) - np.outer(SHARES, SHARES)) / n_items[:, None, None] if own is None else own
    keys, _ = Keys.of(np.arange(T) if groups is None else groups)
    bounds = Bounds(0.9, "sample", *[np.zeros((T, 4))] * 4, *[np.zeros(T)] * 2)
    P = np.tile(SHARES, (T, 1)) if P is None else P
    return Estimates(np.arange(1, 5), P, n_items, keys, bounds, V, own=V)


def test_chi_square_is_that_of_the_formula():
    # Always the same, without a significant outlier: the slope would be that of the other periods.
    off = 0.01 * np.array([[2, -3, 1, 0], [-1, 2, 2, -3], [1, 0, -2, 1], [0, 2, -1, -1], [-2, 1, 0, 1]])
    P, n_items = SHARES + off, np.array([50, 100, 200, 400, 150])
    found = by_hand(n_items=n_items, P=P).trend()
    assert found.outlier_p_value[0] > 0.05
    # Multinomial errors of a common distribution: Pearson's statistic with the covariance as it was stated.
    x = n_items @ P / n_items.sum()
    W = (np.diag(SHARES) - np.outer(SHARES, SHARES))[:3, :3]
    D = (P - x)[:, :3]
    expected = sum(N * d @ np.linalg.solve(W, d) for N, d in zip(n_items, D, strict=True))
    assert_allclose(found.chi2, expected, rtol=1e-9)
    assert found.degrees_of_freedom[0] == 12
    slope, v = np.polyfit(np.arange(5), P @ np.arange(1, 5), 1, w=np.sqrt(n_items), cov="unscaled")
    u = np.arange(1.0, 5)
    error = np.sqrt(v[0, 0] * u @ (np.diag(SHARES) - np.outer(SHARES, SHARES)) @ u)
    assert_allclose(found.slope, slope[0], rtol=1e-9)
    assert_allclose(found.slope_upper - found.slope, 1.6448536 * error, rtol=1e-6)
    # Three tests: the slope, its independent rest, and the period that a line without it misses most.
    rise = (slope[0] / error) ** 2
    parts = np.array([chi2.sf(rise, 1), chi2.sf(expected - rise, 11)])
    assert_allclose([found.slope_p_value[0], found.other_p_value[0]], 1 - (1 - parts) ** 3, rtol=1e-6, atol=1e-12)
    means, times, missed = P @ u, np.arange(5), []
    for t in times:
        others = np.delete(times, t)
        line, v = np.polyfit(others, means[others], 1, w=np.sqrt(n_items[others]), cov="unscaled")
        unit = u @ (np.diag(SHARES) - np.outer(SHARES, SHARES)) @ u
        at = np.array([t, 1])
        scatter = (n_items[others] * (means[others] - np.polyval(line, others)) ** 2).sum() / unit / 2
        distance = means[t] - np.polyval(line, t)
        missed.append((abs(distance) / np.sqrt(unit * (at @ v @ at + 1 / n_items[t])), max(1, scatter), distance))
    worst = int(np.argmax([score for score, _, _ in missed]))
    assert found.outlier[0] == worst
    assert_allclose(found.outlier_shift[0], missed[worst][2], rtol=1e-6)
    single = 1 - (1 - 2 * norm.sf(missed[worst][0] / np.sqrt(missed[worst][1]))) ** 5
    assert_allclose(found.outlier_p_value[0], 1 - (1 - single) ** 3, rtol=1e-6, atol=1e-12)
    tests = found.slope_p_value[0], found.outlier_p_value[0], found.other_p_value[0]
    assert found.p_value[0] == min(tests)
    assert "(This is about exactly these items.)" in str(found)


def test_many_classes_are_judged_by_mean_spread_and_skewness(rng):
    n, T = 9, 6
    p = np.full(n, 1 / n)
    V = np.tile((np.diag(p) - np.outer(p, p)) / 300, (T, 1, 1))
    keys, _ = Keys.of(np.arange(T))
    bounds = Bounds(0.9, "population", *[np.zeros((T, n))] * 4, *[np.zeros(T)] * 2)
    ripple = np.tile(p, (T, 1)) + 0.05 * np.outer((-1.0) ** np.arange(T), [1, -2, 1, 0, 0, 0, -1, 2, -1])
    spread = np.tile(p, (T, 1)) + 0.05 * np.outer((-1.0) ** np.arange(T), [1, 0, 0, 0, -2, 0, 0, 0, 1])
    found = [Estimates(np.arange(n), P, np.full(T, 300), keys, bounds, V, own=V).trend() for P in (ripple, spread)]
    assert [one.degrees_of_freedom[0] for one in found] == [15, 15]
    # The mean stays.
    assert found[1].mean_p_value[0] > 0.9
    assert found[1].p_value[0] < 1e-6


def test_series_of_several_columns_are_tested_one_by_one(rng):
    groups = pd.DataFrame({"shop": ["a"] * 4 + ["b"] * 4 + ["c"], "month": [1, 2, 3, None, 1, 2, 3, 4, 1]})
    P = np.vstack(
        [np.tile(SHARES, (4, 1)), np.tile(SHARES, (4, 1)) + np.arange(4)[:, None] * [0.05, 0, 0, -0.05], [SHARES]]
    )
    found = by_hand(9, P=P, groups=groups).trend()
    assert found.series.tolist() == ["a", "b", "c"]
    # Rows without a time are left out.
    assert [len(rows) for rows in found.rows] == [3, 4, 1]
    assert found.p_value[0] == 1
    assert found.p_value[1] < 0.01
    assert np.isnan(found.p_value[2])
    lines = str(found).split("\n")
    assert lines[0].startswith("a: no change in the distribution can be seen")
    assert lines[2].startswith("c: there are too few")
    assert "all 3 series together (Bonferroni)" in lines[3]
    alone = by_hand(4, P=P[4:8]).trend()
    assert_allclose(found.p_value[1], min(1, 3 * alone.p_value[0]))


def test_groups_whose_estimate_has_no_scatter_do_not_decide():
    own = np.tile((np.diag(SHARES) - np.outer(SHARES, SHARES)) / 100, (6, 1, 1))
    own[2] = 0
    P = np.tile(SHARES, (6, 1))
    P[2] = [0, 0.25, 0.3, 0.45]
    assert by_hand(6, np.full(6, 100), own, P).trend().p_value[0] > 0.1
    nothing = by_hand(3, np.full(3, 100), np.zeros((3, 4, 4))).trend()
    assert np.isnan(nothing.p_value[0])
    assert "too few items" in str(nothing)


def test_estimates_without_a_level_or_groups_have_no_trend(rng):
    X, y = draw(rng, SHARES, 200)
    quantifier = oq.PACC().fit(X, y)
    with pytest.raises(ValueError, match="Pass a level"):
        quantifier.predict_groups(X, y).trend()
    with pytest.raises(TypeError, match="trend needs estimates of groups"):
        quantifier.predict_interval(X).trend()


def test_figure_has_means_with_a_band_and_shares(rng):
    P = rng.dirichlet(60 * SHARES, 5)
    top, bottom = plot_trend(by_hand(P=P), xlabel="stars")
    assert_allclose(top.lines[0].get_ydata(), P @ np.arange(1, 5))
    assert top.get_title(loc="left") == "mean of stars, band: 90% intervals"
    heights = np.array([[bar.get_height() for bar in container] for container in bottom.containers])
    assert_allclose(heights.T, 100 * P)
    lines = plot_trend(by_hand(4, groups=pd.DataFrame({"shop": list("aabb"), "month": [1, 2, 1, 2]})))
    assert len(lines) == 1
    assert [text.get_text() for text in lines[0].get_legend().get_texts()] == ["a", "b"]
    top, _ = plot_trend(P, names=list("abcde"), mean_lower=np.ones(5), mean_upper=np.full(5, 4.0))
    assert len(top.collections) == 1
    with pytest.raises(ValueError, match="given together"):
        plot_trend(P, mean_lower=np.ones(5))


def test_predict_prints_whether_there_is_a_change(tmp_path, capsys):
    rng = generator(53)
    X, y = draw(rng, np.full(4, 0.25), 400)
    pd.DataFrame(X, columns=["f1", "f2"]).assign(stars=y).to_csv(tmp_path / "train.csv", index=False)
    parts = [draw(rng, p, 400)[0] for p in (SHARES, SHARES, SHARES[::-1])]
    new = pd.DataFrame(np.vstack(parts), columns=["f1", "f2"])
    new["day"] = np.repeat(["2024-01-05", "2024-02-05", "2024-03-05"], 400)
    new.to_csv(tmp_path / "new.csv", index=False)
    fit = ["fit", tmp_path / "train.csv", "--target", "stars", "--features", "f1,f2", "--method", "PACC"]
    assert main([*map(str, fit), "--out", str(tmp_path / "model.oq")]) == 0
    call = [*map(str, ["predict", tmp_path / "model.oq", tmp_path / "new.csv", "--by", "day:month"])]
    capsys.readouterr()
    assert main([*call, "--plot", str(tmp_path / "trend.png"), "--out", str(tmp_path / "trend.csv")]) == 0
    out = " ".join(capsys.readouterr().out.split())
    assert "The distribution changes (3 groups by day" in out
    assert "(This is about the populations behind the items.)" in out
    assert "mean_class_lower" in pd.read_csv(tmp_path / "trend.csv")
    assert (tmp_path / "trend.png").stat().st_size > 5000
    assert main([*call, "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["trend"]["p_value"] < 1e-3
    # In another order the months are groups like others.
    assert main([*call, "--sort", "mean", "--json"]) == 0
    assert "trend" not in json.loads(capsys.readouterr().out)


def test_json_is_valid_without_a_trend():
    """A single group has no trend: its tests are null, not NaN."""
    y = np.arange(60) % 3 + 1
    q = oq.PACC().fit_scores(np.eye(3)[y - 1] * 0.7 + 0.1, y)
    keys = oq.Samples.from_groups(np.array([2024.0, np.nan])[np.arange(60) % 2], missing=True)
    found = estimate(q, q.summarize(np.eye(3)[y - 1] * 0.7 + 0.1, keys), 0.95)
    assert np.isnan(found.trend().p_value).all()
    for one in (found, found.trend(), found.compare(*found.keys.tolist())):
        assert json.loads(json.dumps(one.to_json(), allow_nan=False))
    assert found.trend().to_json()["p_value"] is None


def test_slope_counts_periods_without_a_group(rng):
    """The mean class rises by the same from March to May as it would in two months."""
    P = np.array([[0.5, 0.3, 0.2], [0.4, 0.3, 0.3], [0.2, 0.3, 0.5]])
    own, sizes = np.tile(1e-3 * (np.eye(3) - 1 / 3), (3, 1, 1)), np.full(3, 100.0)
    months, words = (
        Keys.of(pd.Series(names, name="t"))[0] for names in (["2024-01", "2024-02", "2024-04"], list("abd"))
    )
    found, plain = (
        trend_of(keys, P, own, sizes, 0.95, "population", class_scale([1, 2, 3])) for keys in (months, words)
    )
    assert_allclose(found.slope, 0.2)
    assert found.period == "month"
    assert "per month" in str(found)
    assert_allclose(plain.slope, 0.3)
    assert "from one to the next" in str(plain)


def test_figure_has_a_place_for_every_period_and_none_for_rows_without_one(rng):
    P = rng.dirichlet(np.ones(3), 4)
    keys = Keys.of(pd.Series(["2023-Q4", "2024-Q1", "2024-Q3", None], name="day"))[0]
    estimates = Estimates(np.arange(1, 4), P, np.full(4, 10), keys)
    top, bottom = plot_trend(estimates)
    assert_allclose(top.lines[0].get_xdata(), [0, 1, 3])
    assert [text.get_text() for text in bottom.get_xticklabels()] == ["2023-Q4", "2024-Q1", "2024-Q2", "2024-Q3"]
    shops = Keys.of(pd.DataFrame({"shop": list("aabb"), "day": ["2023", "2025", "2024", None]}))[0]
    (ax,) = plot_trend(Estimates(np.arange(1, 4), P, np.full(4, 10), shops))
    assert [line.get_xdata().tolist() for line in ax.lines] == [[0, 2], [1]]


def test_a_sentence_never_names_a_change_that_its_test_does_not_find(rng):
    """A slope with an interval that excludes zero is not mentioned unless the one test is significant."""
    for _ in range(200):
        T, slope = int(rng.integers(2, 40)), rng.normal(0, 0.02)
        P = rng.dirichlet(200 * SHARES, T) + np.outer(np.arange(T) - (T - 1) / 2, [-1, 0, 0, 1]) * slope / 3 / T
        found = by_hand(T, P=P, groups=[f"20{t + 10}" for t in range(T)]).trend()
        text, p = str(found), found.p_value[0]
        assert ("changes" in text) == (p < 0.05)
        assert not (p >= 0.05 and any(word in text for word in ("rises", "falls", "stands out")))
        assert ("rises" in text or "falls" in text) == (found.slope_p_value[0] < 0.05)


def test_an_outlying_period_is_named():
    means = np.full(24, 0.4)
    means[[6, 17]] = [0.05, 0.42]
    P = np.column_stack([0.6 - means, np.full(24, 0.2), np.full(24, 0.2), means])
    months = [f"2024-{t + 1:02d}" for t in range(12)] + [f"2025-{t + 1:02d}" for t in range(12)]
    found = by_hand(24, P=P, groups=pd.Series(months, name="month")).trend()
    text = "2024-07 stands out with a mean class of 1.75, 1.05 below the line of the other periods"
    # The others neither rise nor fall.
    assert str(found).startswith(f"The distribution changes (24 groups by month, p < 0.001): {text}.")
    assert found.frame()["outlier"].tolist() == ["2024-07"]
    assert found.to_json()["outlier"] == "2024-07"
    assert "2024-07" not in str(by_hand(24, P=np.tile(SHARES, (24, 1)), groups=months).trend())


def test_two_periods_do_not_differ_by_more_than_the_scale():
    """Two years at both ends of the scale are stated as they are."""
    ends = np.array([[0.97, 0.01, 0.01, 0.01], [0.01, 0.01, 0.01, 0.97]])
    two = by_hand(2, P=ends, groups=["2010", "2011"]).trend()
    assert "the mean class rises from 1.06 in 2010 to 3.94 in 2011" in str(two)
    assert "per year" not in str(two)
    beyond = by_hand(2, np.array([5, 5]), P=ends[::-1], groups=["2010", "2011"]).trend()
    assert beyond.slope_lower[0] == -3
    assert beyond.slope_lower[0] < beyond.slope[0] < beyond.slope_upper[0]


def test_the_interval_of_a_slope_contains_it_if_a_series_jumps():
    """The line through 1, 1, 4, 4 rises by 1.2 per month, more than from the lowest to the highest class in between."""
    P = np.eye(4)[[0, 0, 3, 3]]
    found = by_hand(4, P=P, groups=[f"2024-0{t}" for t in range(1, 5)]).trend()
    assert_allclose(found.slope, 1.2, rtol=1e-9)
    assert_allclose((found.slope_lower + found.slope_upper) / 2, 1.2, rtol=1e-9)
    assert found.slope_lower[0] < found.slope[0] < found.slope_upper[0]
    assert "rises by 1.200 per month" in str(found)
