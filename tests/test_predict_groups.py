"""Estimates per group: all at once or in chunks, with groups of any type."""

import numpy as np
import pandas as pd
import polars as pl
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.naive_bayes import GaussianNB
from summaries import intervals

import ordinalq as oq
from ordinalq.inference.predict import estimate

METHODS = {entry.name: entry.cls for entry in oq.catalog(beyond=False)}
LABELS = ["low", "middle", "good", "best"]


def make(rng, n_items):
    """Return features (N, 2) and codes 0..3."""
    y = np.arange(n_items) % 4
    return y[:, None] + rng.normal(size=(n_items, 2)), y


def fitted(name, X, y):
    """Return a fitted quantifier on a fast classifier."""
    cls = METHODS[name]
    quantifier = cls() if name in ("HDx", "OHDx") else cls(oq.classifiers.CrossFitted(GaussianNB(), cv=3))
    return quantifier.fit(X, np.array(LABELS)[y], classes=LABELS)


@pytest.fixture
def problem(rng):
    """Return training items, and a pool with groups of 1 to 100 items."""
    X, y = make(rng, 300)
    pool, _ = make(rng, 160)
    sizes = [1, 2, 7, 50, 100]
    groups = rng.permutation(np.repeat(["ink", "pen", "cap", "ape", "zoo"], sizes))
    return X, y, pool, groups


@pytest.mark.parametrize("name", METHODS)
def test_rows_are_the_estimates_of_the_groups(name, problem):
    X, y, pool, groups = problem
    quantifier = fitted(name, X, y)
    table = quantifier.predict_groups(pool, groups).frame()
    assert list(table) == ["group", "n_items", *LABELS, "mean_class"] + (
        [] if name == "ARC" else ["fit"]  # which looks at votes, too few functions to test
    )
    assert table["group"].tolist() == ["ape", "cap", "ink", "pen", "zoo"]
    assert table["n_items"].tolist() == [50, 7, 1, 2, 100]
    assert_array_equal(table[LABELS].to_numpy(), quantifier.predict_samples(pool, oq.Samples.from_groups(groups)))
    for group, row in table.set_index("group").iterrows():
        assert_allclose(row[LABELS].to_numpy(float), quantifier.predict(pool[groups == group]), atol=1e-6)
    assert_allclose(table["mean_class"], table[LABELS].to_numpy() @ [1, 2, 3, 4])


def merged(quantifier, S, groups, cuts):
    """Return the summary of chunks that are merged one after the other."""
    summary = None
    for part in np.array_split(np.arange(len(S)), cuts):
        new = quantifier.summarize(S[part], oq.Samples.from_groups(groups[part]))
        summary = new if summary is None else summary.merge(new)
    return summary


@pytest.mark.parametrize("name", METHODS)
def test_chunks_give_the_result_of_all_items_at_once(name, problem):
    X, y, pool, groups = problem
    quantifier = fitted(name, X, y)
    S = quantifier.scores(pool)
    summary = merged(quantifier, S, groups, [3, 50, 51, 120])
    assert (len(summary), summary.n_items.sum()) == (5, 160)
    # The replicates of these take long, and HDy stands for them.
    level = None if name in ("HDx", "OHDx", "OHDy") else 0.9
    plan = oq.inference.IntervalOptions(n_replicates=20, random_state=1)
    pd.testing.assert_frame_equal(
        estimate(quantifier, summary, level, plan).frame(),
        quantifier.predict_groups(pool, groups, level=level, options=plan).frame(),
        atol=1e-9,
        rtol=0,
    )
    # Single precision is enough for six digits.
    assert_allclose(
        estimate(quantifier, summary.compact()).prevalences,
        intervals(quantifier, S, None, groups).prevalences,
        atol=1e-5,
    )


def test_sums_per_group_are_all_that_is_kept_of_most_methods(problem):
    X, y, pool, groups = problem
    quantifier = fitted("PACC", X, y)
    S = quantifier.scores(pool)
    summary = oq.samples.Summary.merged([quantifier.summarize(S, oq.Samples.from_groups(groups))] * 50)
    assert summary.totals["f"].shape == (5, 4)
    assert not summary.items
    assert summary.n_items.sum() == 50 * 160


@pytest.mark.parametrize("level", [None, 0.8])
def test_bounds_come_with_a_level_only(problem, level):
    X, y, pool, groups = problem
    table = (
        fitted("PACC", X, y)
        .predict_groups(
            pool, pd.Series(groups, name="product"), level=level, options=oq.inference.IntervalOptions(n_replicates=20)
        )
        .frame()
    )
    names = [*LABELS, "mean_class"]
    expected = ["product", "n_items", *names] + (
        [] if level is None else [f"{name}_{end}" for name in names for end in ("lower", "upper")]
    )
    assert list(table) == [*expected, "fit"]
    if level is not None:
        for name in names:
            assert (table[f"{name}_lower"] <= table[name]).all()
            assert (table[name] <= table[f"{name}_upper"]).all()


def test_polars_in_polars_out(problem):
    X, y, pool, groups = problem
    quantifier = fitted("OPACC", X, y)
    plain = quantifier.predict_groups(
        pool, pd.Series(groups, name="product"), level=0.9, options=oq.inference.IntervalOptions(n_replicates=20)
    ).frame()
    items = pl.DataFrame(pool, schema=["a", "b"])
    named = fitted("OPACC", X, y).fit(pl.DataFrame(X, schema=["a", "b"]), np.array(LABELS)[y], classes=LABELS)
    from_groups = quantifier.predict_groups(
        pool, pl.Series("product", groups), level=0.9, options=oq.inference.IntervalOptions(n_replicates=20)
    ).frame()
    from_items = named.predict_groups(
        items, pd.Series(groups, name="product"), level=0.9, options=oq.inference.IntervalOptions(n_replicates=20)
    ).frame()
    for table in (from_groups, from_items):
        assert isinstance(table, pl.DataFrame)
        assert table.columns == list(plain)
        assert table["product"].to_list() == plain["product"].tolist()
        assert table["fit"].to_list() == plain["fit"].tolist()
        assert_allclose(table.drop("product", "fit").to_numpy(), plain.drop(columns=["product", "fit"]).to_numpy())
    assert isinstance(plain, pd.DataFrame)


@pytest.mark.parametrize(
    ("days", "dtype"),
    [
        (pl.Series("day", ["2020-01-02", "2020-01-01"] * 80).str.to_date(), pl.Date),
        (pl.Series("day", ["2020-01-02 03:04:05", "2020-01-01 00:00:00"] * 80).str.to_datetime(), pl.Datetime("us")),
    ],
    ids=["date", "datetime"],
)
def test_dates_of_polars_stay_dates(problem, days, dtype):
    X, y, pool, _ = problem
    table = (
        fitted("PACC", X, y)
        .predict_groups(pool, days, level=0.9, options=oq.inference.IntervalOptions(n_replicates=20))
        .frame()
    )
    assert table["day"].dtype == dtype
    assert table["day"].to_list() == sorted(set(days))


def test_seconds_become_a_unit_that_polars_has(problem):
    X, y, pool, _ = problem
    items = pl.DataFrame(pool, schema=["a", "b"])
    quantifier = fitted("PACC", pl.DataFrame(X, schema=["a", "b"]), y)
    seconds = np.array(["2020-01-02T03:04:05", "2020-01-01T00:00:00"] * 80, dtype="M8[s]")
    table = quantifier.predict_groups(items, seconds).frame()
    assert table["group"].dtype == pl.Datetime("us")
    assert_array_equal(table["group"].to_numpy(), np.unique(seconds))


@pytest.mark.parametrize("name", ["PACC", "SLD"])
def test_ordered_categories_keep_their_order(problem, name):
    X, y, pool, _ = problem
    quantifier = fitted(name, X, y)
    S = quantifier.scores(pool)
    values = np.repeat(["mid", "low", "high"], [60, 70, 30])
    sizes = pd.CategoricalDtype(["low", "none", "mid", "high"], ordered=True)
    groups = pd.Series(values, name="size").astype(sizes)
    table = quantifier.predict_groups(pool, groups).frame()
    assert table["size"].tolist() == ["low", "mid", "high"]
    assert table["n_items"].tolist() == [70, 60, 30]
    assert_array_equal(table["low"][0], quantifier.predict_groups(pool, values)["low"].prevalences[0, 0])
    summary = merged(quantifier, S, groups, [50, 140])
    pd.testing.assert_frame_equal(estimate(quantifier, summary).frame(), table, atol=1e-9, rtol=0)
    with pytest.raises(TypeError, match="groups must have the same ordered categories in all chunks"):
        summary.merge(quantifier.summarize(S, oq.Samples.from_groups(values)))
    with pytest.raises(ValueError, match="groups must have no missing values, got 1, the first at item 2"):
        oq.Samples.from_groups(pd.Categorical(["low", "mid", None], dtype=sizes))
    numbers = pd.Categorical([1.5, 0.5, 1.5], categories=[1.5, 0.5], ordered=True)
    assert oq.Samples.from_groups(numbers).groups_.tolist() == [1.5, 0.5]


@pytest.mark.parametrize(
    "groups",
    [
        [3, 1, 2, 1],
        ["b", "a", "ab", "a"],
        np.array(["b", "a", "ab", "a"], dtype=object),
        [2.5, 1.0, 1.0, -3.0],
        np.array(["2020-01-02", "2020-01-01", "2020-01-02", "2019-05-05"], dtype="M8[D]"),
        pd.Categorical(["b", "a", "c", "a"]),
        [True, False, True, True],
    ],
)
def test_groups_are_distinct_values_in_order_of_their_own_type(groups):
    samples = oq.Samples.from_groups(groups)
    array = np.asarray(groups)
    assert_array_equal(samples.groups_, np.unique(array))
    for value, b in zip(samples.groups_, range(len(samples)), strict=True):
        assert_array_equal(samples.index(b), np.flatnonzero(array == value))
    if array.dtype.kind in "biufM":
        assert samples.groups_.dtype == array.dtype


def test_mistakes_in_groups_are_named(problem):
    X, y, pool, groups = problem
    quantifier = fitted("PACC", X, y)
    with pytest.raises(ValueError, match="groups must have one value per item, 160, got 3"):
        quantifier.predict_groups(pool, ["a", "b", "c"])
    with pytest.raises(ValueError, match="groups must have no missing values, got 1, the first at item 0"):
        quantifier.predict_groups(pool, np.array([None, *groups[1:]], dtype=object))
    with pytest.raises(TypeError, match="groups must be values that can be sorted"):
        quantifier.predict_groups(pool, np.array([1, *groups[1:]], dtype=object))
    with pytest.raises(TypeError, match="groups must be one value per item, got 'product'"):
        quantifier.predict_groups(pool, "product")
    with pytest.raises(TypeError, match="give the column itself, not its name") as caught:
        quantifier.predict_groups(pool, "long " * 1000)
    assert len(str(caught.value)) < 200
    with pytest.raises(ValueError, match="a group column must not have the name 'good'"):
        quantifier.predict_groups(pool, pd.Series(groups, name="good"))
    with pytest.raises(ValueError, match="level must be a number between 0 and 1"):
        quantifier.predict_groups(pool, groups, level=95)
    with pytest.raises(ValueError, match="estimand must be one of 'sample', 'population'"):
        quantifier.predict_groups(pool, groups, options=oq.inference.IntervalOptions(estimand="truth"))


def test_mistakes_in_chunks_are_named(problem):
    X, y, pool, groups = problem
    quantifier = fitted("PACC", X, y)
    S = quantifier.scores(pool)
    summary = quantifier.summarize(S, oq.Samples.from_groups(groups))
    with pytest.raises(TypeError, match="groups must be of one kind in all chunks"):
        summary.merge(quantifier.summarize(S, oq.Samples.from_groups(np.arange(160))))
    with pytest.raises(ValueError, match="summaries of different quantifiers cannot be merged"):
        summary.merge(fitted("HDy", X, y).summarize(S, oq.Samples.from_groups(groups)))
    with pytest.raises(ValueError, match="summaries without groups"):
        summary.merge(quantifier.summarize(S))
    with pytest.raises(ValueError, match="S must have one column per class"):
        quantifier.summarize(S[:, :3], oq.Samples.from_groups(groups))


@pytest.mark.parametrize("name", ["PACC", "SLD"])
@pytest.mark.parametrize(
    "groups",
    [
        np.arange(160) % 7,
        np.array(["a", "b"])[np.arange(160) % 2],
        np.arange(160) % 3 == 0,
        pd.Categorical(["hi", "lo"] * 80, ["lo", "hi"], ordered=True),
        np.arange(160).astype("M8[D]") - np.arange(160) % 5,
    ],
    ids=["int", "text", "bool", "category", "date"],
)
def test_a_summary_survives_a_file(problem, name, groups, tmp_path):
    X, y, pool, _ = problem
    quantifier = fitted(name, X, y)
    samples = oq.Samples.from_groups(groups)
    summary = quantifier.summarize(quantifier.scores(pool), samples, checks=True)
    summary.save(tmp_path / "summary.npz")
    same = oq.samples.Summary.load(tmp_path / "summary.npz")
    assert_array_equal(quantifier.solve(same).p, quantifier.solve(summary).p)
    assert same.keys.tolist() == summary.keys.tolist()
    assert same.keys.same(summary.keys)
    assert same.merge(summary).keys.tolist() == summary.keys.tolist()
    assert_array_equal(same.totals["checks"], summary.totals["checks"])


def test_lists_keep_their_missing_values_and_their_types():
    with pytest.raises(ValueError, match="groups must have no missing values, got 1"):
        oq.Samples.from_groups(["a", "b", float("nan")])
    with pytest.raises(TypeError, match="groups must be values that can be sorted"):
        oq.Samples.from_groups(["a", 1])


def test_summaries_of_another_quantifier_are_rejected(problem):
    X, y, pool, groups = problem
    pacc, sld = fitted("PACC", X, y), fitted("SLD", X, y)
    S = pacc.scores(pool)
    with pytest.raises(ValueError, match="the summary was not made by this SLD"):
        estimate(sld, pacc.summarize(S))
    with pytest.raises(ValueError, match="the summary was not made by this PACC"):
        estimate(pacc, sld.summarize(S))
    with pytest.raises(TypeError, match="summary must be a Summary"):
        estimate(pacc, S)
    with pytest.raises(TypeError, match="options must be IntervalOptions"):
        pacc.predict_groups(pool, groups, level=0.9, options="population")


def test_a_file_that_is_not_a_summary_is_named(tmp_path):
    junk, other = tmp_path / "junk.npz", tmp_path / "other.npz"
    junk.write_bytes(b"nothing of ours")
    np.savez(other, a=np.arange(3))
    np.save(tmp_path / "array.npz.npy", np.arange(3))
    for path in (junk, other, tmp_path / "array.npz.npy"):
        with pytest.raises(ValueError, match=f"{path.name}: expected what Summary.save has written"):
            oq.samples.Summary.load(path)


def test_estimates_are_found_by_group(problem):
    X, y, pool, groups = problem
    estimates = fitted("PACC", X, y).predict_groups(pool, pd.Series(groups, name="product"), level=0.9)
    one = estimates["pen"]
    assert (len(estimates), len(one), one.n_items.tolist()) == (5, 1, [2])
    assert_array_equal(one.prevalences, estimates.prevalences[3:4])
    assert_array_equal(one.lower, estimates.lower[3:4])
    assert one.frame()["product"].tolist() == ["pen"]
    with pytest.raises(KeyError, match="product 'pencil' is not among the 5 groups 'ape', 'cap'"):
        estimates["pencil"]
    assert "pen" in estimates
    assert "pencil" not in estimates
    assert [part.n_items[0] for part in estimates] == estimates.n_items.tolist()
    assert estimates.take(estimates.n_items > 10).groups.tolist() == ["ape", "zoo"]
    plain = estimates.to_json()
    assert plain["by"] == "product"
    assert [row["group"] for row in plain["groups"]] == ["ape", "cap", "ink", "pen", "zoo"]
    assert_allclose(plain["groups"][3]["upper"], estimates.upper[3])
    whole = fitted("PACC", X, y).predict_interval(pool)
    with pytest.raises(TypeError, match="have no groups"):
        whole["pen"]
    with pytest.raises(ValueError, match="Pass a level"):
        _ = fitted("PACC", X, y).predict_groups(pool, groups).lower


def test_errors_that_groups_share_are_reported(rng):
    # With few held-out items and large groups, nearly all of the error is that of M, the same for both.
    y = np.arange(200) % 4
    noise = rng.normal(size=(200, 2))
    quantifier = fitted("PACC", y[:, None] + noise, y)
    pool, _ = make(rng, 40_000)
    estimates = quantifier.predict_groups(
        pool, np.repeat([0, 1], 20_000), level=0.9, options=oq.inference.IntervalOptions(n_replicates=1000)
    )
    between = estimates.shared[0] @ estimates.shared[1].T
    assert_allclose(np.diag(between), np.diag(estimates.covariance[0]), rtol=0.4)
    # Small groups differ by their own items.
    small = quantifier.predict_groups(
        pool[:60], np.repeat([0, 1], 30), level=0.9, options=oq.inference.IntervalOptions(n_replicates=1000)
    )
    between = small.shared[0] @ small.shared[1].T
    assert np.trace(between) < 0.8 * np.trace(small.covariance[0])
