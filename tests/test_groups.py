"""Estimates per group: as a table, all at once or in portions."""

import numpy as np
import pandas as pd
import polars as pl
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.naive_bayes import GaussianNB

import ordinalq as oq
from ordinalq.methods.groups import grouped
from ordinalq.methods.streaming import GroupTotals

METHODS = {entry.name: entry.cls for entry in oq.catalog()}
LABELS = ["low", "middle", "good", "best"]


def make(rng, n_items):
    """Return features (N, 2) and codes 0..3."""
    y = np.arange(n_items) % 4
    return y[:, None] + rng.normal(size=(n_items, 2)), y


def fitted(name, X, y):
    """Return a fitted quantifier on a fast classifier."""
    cls = METHODS[name]
    quantifier = cls() if name in ("HDx", "OHDx") else cls(oq.CrossFitted(GaussianNB(), cv=3))
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
    table = quantifier.predict_groups(pool, groups)
    assert list(table) == ["group", "n_items", *LABELS, "mean_class"]
    assert table["group"].tolist() == ["ape", "cap", "ink", "pen", "zoo"]
    assert table["n_items"].tolist() == [50, 7, 1, 2, 100]
    assert_array_equal(table[LABELS].to_numpy(), quantifier.predict_samples(pool, oq.Samples.from_groups(groups)))
    for group, row in table.set_index("group").iterrows():
        assert_allclose(row[LABELS].to_numpy(float), quantifier.predict(pool[groups == group]), atol=1e-6)
    assert_allclose(table["mean_class"], table[LABELS].to_numpy() @ [1, 2, 3, 4])


@pytest.mark.parametrize("name", METHODS)
def test_portions_give_what_all_items_at_once_give(name, problem):
    X, y, pool, groups = problem
    quantifier = fitted(name, X, y)
    S = quantifier.scores(pool)
    totals = GroupTotals(quantifier)
    for part in np.array_split(np.arange(len(S)), [3, 50, 51, 120]):
        totals.add(S[part], groups[part])
    assert (len(totals), totals.n_items) == (5, 160)
    # The replicates of these take long, and HDy stands for them.
    level = None if name in ("HDx", "OHDx", "OHDy") else 0.9
    options = {"level": level, "n_replicates": 20, "random_state": 1}
    tolerance = 1e-5 if "SLD" in name else 1e-9
    pd.testing.assert_frame_equal(
        totals.table(**options), quantifier.predict_groups(pool, groups, **options), atol=tolerance, rtol=0
    )
    pd.testing.assert_frame_equal(totals.table(), quantifier.predict_groups_scores(S, groups), atol=tolerance, rtol=0)


def test_sums_per_group_are_all_that_is_kept_of_most_methods(problem):
    X, y, pool, groups = problem
    quantifier = fitted("PACC", X, y)
    totals = GroupTotals(quantifier)
    S = quantifier.scores(pool)
    for _ in range(50):
        totals.add(S, groups)
    assert totals._sums.shape == (5, 4)
    assert not totals._scores
    assert totals.n_items == 50 * 160


@pytest.mark.parametrize("level", [None, 0.8])
def test_bounds_come_with_a_level_only(problem, level):
    X, y, pool, groups = problem
    table = fitted("PACC", X, y).predict_groups(pool, pd.Series(groups, name="product"), level=level, n_replicates=20)
    names = [*LABELS, "mean_class"]
    expected = ["product", "n_items", *names] + (
        [] if level is None else [f"{name}_{end}" for name in names for end in ("lower", "upper")]
    )
    assert list(table) == expected
    if level is not None:
        for name in names:
            assert (table[f"{name}_lower"] <= table[name]).all()
            assert (table[name] <= table[f"{name}_upper"]).all()


def test_polars_in_polars_out(problem):
    X, y, pool, groups = problem
    quantifier = fitted("OPACC", X, y)
    plain = quantifier.predict_groups(pool, pd.Series(groups, name="product"), level=0.9, n_replicates=20)
    items = pl.DataFrame(pool, schema=["a", "b"])
    named = fitted("OPACC", X, y).fit(pl.DataFrame(X, schema=["a", "b"]), np.array(LABELS)[y], classes=LABELS)
    from_groups = quantifier.predict_groups(pool, pl.Series("product", groups), level=0.9, n_replicates=20)
    from_items = named.predict_groups(items, pd.Series(groups, name="product"), level=0.9, n_replicates=20)
    for table in (from_groups, from_items):
        assert isinstance(table, pl.DataFrame)
        assert table.columns == list(plain)
        assert table["product"].to_list() == plain["product"].tolist()
        assert_allclose(table.drop("product").to_numpy(), plain.drop(columns="product").to_numpy())
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
    table = fitted("PACC", X, y).predict_groups(pool, days, level=0.9, n_replicates=20)
    assert table["day"].dtype == dtype
    assert table["day"].to_list() == sorted(set(days))


def test_seconds_become_a_unit_that_polars_has(problem):
    X, y, pool, _ = problem
    items = pl.DataFrame(pool, schema=["a", "b"])
    quantifier = fitted("PACC", pl.DataFrame(X, schema=["a", "b"]), y)
    seconds = np.array(["2020-01-02T03:04:05", "2020-01-01T00:00:00"] * 80, dtype="M8[s]")
    table = quantifier.predict_groups(items, seconds)
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
    table = quantifier.predict_groups(pool, groups)
    assert table["size"].tolist() == ["low", "mid", "high"]
    assert table["n_items"].tolist() == [70, 60, 30]
    assert_array_equal(table["low"][0], quantifier.predict_groups(pool, values)["low"][1])
    totals = GroupTotals(quantifier)
    for part in (slice(0, 50), slice(50, 140), slice(140, None)):
        totals.add(S[part], groups[part])
    pd.testing.assert_frame_equal(totals.table(), table, atol=1e-5, rtol=0)
    with pytest.raises(TypeError, match="groups must have the same ordered categories in all portions"):
        totals.add(S, values)
    with pytest.raises(ValueError, match="groups must have no missing values, got 1, the first at item 2"):
        grouped(pd.Categorical(["low", "mid", None], dtype=sizes), 3)
    numbers = pd.Categorical([1.5, 0.5, 1.5], categories=[1.5, 0.5], ordered=True)
    assert grouped(numbers, 3).groups_.tolist() == [1.5, 0.5]


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
def test_groups_are_sorted_as_samples_sort_them(groups):
    mine, theirs = grouped(groups, 4), oq.Samples.from_groups(groups)
    assert_array_equal(mine.groups_, theirs.groups_)
    assert mine.groups_.dtype == theirs.groups_.dtype
    assert_array_equal(mine.items, theirs.items)
    assert_array_equal(mine.offsets, theirs.offsets)


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
    with pytest.raises(ValueError, match="groups must not be named 'good'"):
        quantifier.predict_groups(pool, pd.Series(groups, name="good"))
    with pytest.raises(ValueError, match="level must be a number between 0 and 1"):
        quantifier.predict_groups(pool, groups, level=95)
    with pytest.raises(ValueError, match="target must be one of 'sample', 'population'"):
        quantifier.predict_groups(pool, groups, target="truth")


def test_mistakes_in_portions_are_named(problem):
    X, y, pool, groups = problem
    quantifier = fitted("PACC", X, y)
    totals = GroupTotals(quantifier)
    with pytest.raises(ValueError, match="table needs items"):
        totals.table()
    S = quantifier.scores(pool)
    totals.add(S, groups)
    with pytest.raises(TypeError, match="groups must be of one kind in all portions"):
        totals.add(S, np.arange(160))
    with pytest.raises(ValueError, match="S must have one column per class"):
        totals.add(S[:, :3], groups)
    assert totals.n_items == 160  # what failed was not added
