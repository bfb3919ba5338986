"""Groups by several columns: their types, their order, and every way in and out."""

import datetime as dt
import json
import re

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from seeds import generator
from summaries import predict_table

import ordinalq as oq
from ordinalq.cli import main
from ordinalq.inference.predict import select
from ordinalq.samples.keys import Keys


@pytest.fixture(scope="module")
def frame():
    """Return a table of reviews in numbers: two shops, three months, a few missing values."""
    rng = generator(41)
    n = 900
    y = rng.choice(4, n)
    found = pd.DataFrame(1.4 * y[:, None] + rng.normal(size=(n, 2)), columns=["f1", "f2"])
    found["stars"] = y + 1
    found["shop"] = pd.Series(rng.choice([7, 12], n), dtype="Int64").mask(rng.random(n) < 0.05)
    found["day"] = rng.choice(["2024-01-31", "2024-02-01", "2024-02-29", "2024-11-05"], n)
    return found


@pytest.fixture(scope="module")
def model(frame):
    return oq.TableModel(oq.PACC(), features=["f1", "f2"]).fit(frame, target="stars")


MONTHS = ["2024-01", "2024-02", "2024-11"]
GROUPS = [(shop, month) for shop in (7, 12, None) for month in MONTHS]


def test_several_columns_name_groups_that_keep_their_types(frame, model):
    found = model.predict_groups(frame, ["shop", "day:month"], level=0.9)
    assert found.keys.tolist() == GROUPS
    assert found.groups[0] == (7, "2024-01")
    table = found.frame()
    assert list(table.columns[:3]) == ["shop", "day", "n_items"]
    assert table["shop"].dtype == "Int64"
    month, shop = frame["day"].str[:7], frame["shop"]
    for group, n_items, p in zip(GROUPS, found.n_items, found.prevalences, strict=True):
        rows = frame[(shop.isna() if group[0] is None else (shop == group[0]).fillna(False)) & (month == group[1])]
        assert n_items == len(rows)
        assert_allclose(model.predict(rows), p, atol=1e-12)
        assert_allclose(found[group].prevalences[0], p)
    assert (12, "2024-11") in found
    assert (12, "2023-11") not in found
    with pytest.raises(KeyError, match=r"shop, day \(12, '2023-11'\) is not among the 9 groups \(7, '2024-01'\)"):
        found[12, "2023-11"]
    with pytest.raises(KeyError, match="must be a tuple of 2 values"):
        found[12]


def test_ways_to_name_groups_agree(frame, model):
    known = frame.dropna(subset="shop")
    by_name = model.predict_groups(known, ["shop", "day"])
    for groups in (known[["shop", "day"]], {"shop": known["shop"], "day": known["day"].to_numpy()}):
        found = model.predict_groups(known, groups)
        assert found.keys.tolist() == by_name.keys.tolist()
        assert_array_equal(found.prevalences, by_name.prevalences)
    X = known[["f1", "f2"]].to_numpy()
    bare = oq.PACC().fit(X, known["stars"]).predict_groups(X, known[["shop", "day"]])
    assert bare.keys.tolist() == by_name.keys.tolist()
    one = model.predict_groups(known, ["shop"])
    assert one.keys.tolist() == [7, 12]
    # A list as long as the frame holds values, unless all of them name columns.
    assert model.predict_groups(known.head(2), ["a", "b"]).keys.tolist() == ["a", "b"]
    with pytest.raises(ValueError, match="groups must have no missing values, got"):
        oq.Samples.from_groups(frame[["shop", "day"]])


def test_polars_gives_polars(frame, model):
    pl = pytest.importorskip("polars")
    given = pl.from_pandas(frame)
    found = model.predict_groups(given, ["shop", "day:month"])
    assert found.frame().columns[:3] == ["shop", "day", "n_items"]
    assert found.frame()["shop"].to_list() == [shop for shop, _ in GROUPS]
    assert found.frame()["shop"].dtype == pl.Int64


def test_groups_of_several_columns_merge_and_survive_a_file(frame, model, tmp_path):
    whole = model.predict_groups(frame, ["shop", "day"])
    quantifier, S = model.fitted(), model.scores(frame)
    groups = frame[["shop", "day"]].astype({"shop": "Int64"})
    parts = [
        quantifier.summarize(S[rows], oq.Samples.from_groups(groups[rows], missing=True))
        for rows in (slice(100), slice(100, 300), slice(300, None))
    ]
    merged = oq.samples.Summary.merged(parts)
    assert merged.keys.tolist() == whole.keys.tolist()
    assert_allclose(quantifier.solve(merged).p, whole.prevalences, atol=1e-9)
    merged.save(tmp_path / "summary.npz")
    assert oq.samples.Summary.load(tmp_path / "summary.npz").keys.same(merged.keys)


def test_the_rest_of_several_columns_is_one_row(frame, model):
    quantifier = model.fitted()
    summary = quantifier.summarize(
        model.scores(frame), oq.Samples.from_groups(frame[["shop", "day"]].astype({"shop": "Int64"}), missing=True)
    )
    found, rows = select(quantifier, summary, top=2)
    assert rows[-1] == -1
    assert found.keys.labels()[-1] == "(other)"
    assert found.keys.tolist()[-1] == ("(other)", "")
    assert found.n_items.sum() == len(frame)


def test_many_columns_do_not_overflow(rng):
    columns = {f"c{j}": rng.integers(0, 1000, 2000) for j in range(12)}
    keys, codes = Keys.of(columns)
    assert len(keys) == len({*zip(*(column.tolist() for column in columns.values()), strict=True)})
    assert keys.tolist() == sorted(keys.tolist())
    assert_array_equal([keys.columns[j].index[codes] for j in range(12)], list(columns.values()))


# The command line


def run(capsys, *arguments):
    code = main([str(argument) for argument in arguments])
    return code, *capsys.readouterr()


@pytest.fixture(scope="module")
def files(frame, model, tmp_path_factory):
    folder = tmp_path_factory.mktemp("keys")
    frame.to_csv(folder / "new.csv", index=False)
    frame.to_json(folder / "new.jsonl", orient="records", lines=True)
    frame.to_parquet(folder / "new.parquet")
    model.save(folder / "model.oq")
    return folder


@pytest.mark.parametrize("ending", ["csv", "jsonl", "parquet"])
def test_every_kind_of_file_has_both_columns(files, tmp_path, capsys, ending):
    call = ["predict", files / "model.oq", files / f"new.{ending}", "--by", "shop,day:month", "--interval", "0.9"]
    code, out, err = run(capsys, *call, "--out", tmp_path / f"result.{ending}")
    assert code == 0, err
    assert out.split()[:3] == ["shop", "day", "items"]
    result = {
        "csv": pd.read_csv,
        "jsonl": lambda path: pd.DataFrame([json.loads(line) for line in path.read_text().splitlines()]),
        "parquet": pd.read_parquet,
    }[ending](tmp_path / f"result.{ending}")
    shops = [None if pd.isna(shop) else int(shop) for shop in result["shop"]]
    assert [*zip(shops, result["day"], strict=True)] == GROUPS
    code, out, _ = run(capsys, *call, "--json")
    found = json.loads(out)
    assert found["by"] == ["shop", "day"]
    assert found["groups"][3]["group"] == {"shop": 12, "day": "2024-01"}


def test_days_are_dates_also_next_to_another_column(files):
    from ordinalq.io.table import open_table

    found = predict_table(oq.load_model(files / "model.oq"), open_table(files / "new.csv"), by=["day", "shop"])
    assert found.keys.tolist()[0] == (dt.date(2024, 1, 31), 7)


@pytest.mark.filterwarnings("ignore:.*seems to be the table")
def test_subcommands_take_both_columns(files, tmp_path, capsys):
    call = [files / "model.oq", files / "new.csv", "--by", "shop,day:month"]
    code, out, err = run(capsys, "compare", *call, "7,2024-01", "12, 2024-02", "--plot", tmp_path / "two.png")
    assert code == 0, err
    assert "The mean class of 7, 2024-01 is" in out
    code, out, err = run(capsys, "predict", *call, "--top", "2", "--plot", tmp_path / "groups.png")
    assert code == 0, err
    assert "(other): 7 more groups" in out
    code, out, err = run(capsys, "plan", *call, "--width", "0.6", "--out", tmp_path / "rows.csv")
    assert code == 0, err
    assert len(pd.read_csv(tmp_path / "rows.csv")) > 0
    code, out, err = run(capsys, "evaluate", *call)
    assert code == 0, err
    assert "on 9 groups of 900 items, by shop,day:month" in out
    code, out, err = run(
        capsys, "fit", files / "new.csv", "--target", "stars", "--features", "f1,f2", "--by", "shop,day:month",
        "--method", "PACC", "--out", tmp_path / "groups.oq",
    )  # fmt: skip
    assert code == 0, err
    assert "in 9 groups" in out


def test_wrong_columns_are_named(files, capsys):
    for by, message in {
        "shop,dya": "dya",
        "day:month,day:year": "several that differ",
        "shop,stars:month": "expected a date such as 2024-01-31 in column 'stars'",
    }.items():
        code, _, err = run(capsys, "predict", files / "model.oq", files / "new.csv", "--by", by)
        assert code == 2
        assert message in err
    code, _, err = run(capsys, "evaluate", files / "model.oq", files / "new.csv", "--by", "shop,stars")
    assert code == 2
    assert "got that of the labels" in err


def test_a_column_may_have_a_comma_in_its_name(frame, files, tmp_path, capsys):
    frame.rename(columns={"shop": "shop, town"}).to_csv(tmp_path / "new.csv", index=False)
    code, out, _ = run(capsys, "predict", files / "model.oq", tmp_path / "new.csv", "--by", "shop, town", "--json")
    assert code == 0
    assert json.loads(out)["by"] == "shop, town"


@pytest.mark.parametrize("kind", [">i8", ">f4", ">U3", ">M8[D]"])
def test_groups_with_the_bytes_of_other_machines_are_read(kind):
    """As FITS files have them."""
    values = np.array(["2024", "2025", "2026"] if "M" in kind else [1, 2, 3]).astype(kind)
    samples = oq.Samples.from_groups(np.repeat(values, [2, 1, 3]))
    assert_array_equal(samples.sizes, [2, 1, 3])
    assert_array_equal(samples.groups_, values)


@pytest.mark.parametrize(
    ("groups", "shown"),
    [
        (["a", "b\ud800", "a"], r"'b\ud800'"),
        (np.array([b"a", b"\xff", b"a"]), r"b'\xff'"),
        ([b"a", b"\xff", b"a"], r"b'\xff'"),
        (pd.Series(["a", "\udfff", "a"], dtype=object), r"'\udfff'"),
    ],
)
def test_names_that_are_not_unicode_text_are_rejected_with_their_row(groups, shown):
    with pytest.raises(ValueError, match=re.escape(f"groups must be Unicode text, got {shown} in row 1 of 'group'.")):
        Keys.of(groups)


def test_bytes_of_numpy_are_read_as_utf8():

    assert Keys.of(np.array(["é".encode(), b"a"]))[0].tolist() == ["a", "é"]
