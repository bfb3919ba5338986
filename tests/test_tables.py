"""Models of tables: groups keep their type and order in every format; models are saved and loaded."""

import datetime as dt
import importlib
import json
import pickle
import sys
import types
import warnings

import numpy as np
import pandas as pd
import polars as pl
import pyarrow.parquet as pq
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from seeds import generator
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.naive_bayes import GaussianNB
from summaries import predict_table

import ordinalq as oq
from ordinalq import aliases
from ordinalq.cli import main
from ordinalq.io.table import open_table
from ordinalq.samples.keys import Keys
from ordinalq.tables.evaluate import compared_with, evaluate_table, verdict
from ordinalq.tables.grouping import labelled_rows, merge_spellings
from ordinalq.tables.model import Words
from ordinalq.tables.model_file import read_info
from ordinalq.tables.predict import summarize_table
from ordinalq.tables.predictors import likely_groups, other_columns_help, unused_reason
from ordinalq.tables.scales import known_order


def rows(n=240):
    rng = generator()
    stars = np.arange(n) % 5 + 1
    return pd.DataFrame({"price": stars + rng.normal(size=n), "stars": stars})


@pytest.fixture(scope="module")
def model():
    return oq.TableModel(oq.PACC(oq.classifiers.CrossFitted(GaussianNB(), cv=2)), features=["price"]).fit(
        rows(), target="stars"
    )


@pytest.fixture(scope="module")
def saved(model, tmp_path_factory):
    path = tmp_path_factory.mktemp("model") / "model.oq"
    model.save(path)
    return path


DAYS = [dt.date(2024, 3, 1), dt.date(2023, 12, 31), dt.date(2024, 1, 15)]
GROUPS = {
    "int": ([10, 9, 100], [9, 10, 100]),
    "negative": ([-1, -10, 3], [-10, -1, 3]),
    "float": ([0.5, 10.25, 9.0], [0.5, 9.0, 10.25]),
    "string": (["pen", "ink", "cap"], ["cap", "ink", "pen"]),
    "code": (["007", "10", "9"], ["007", "10", "9"]),
    "bool": ([True, False, True], [False, True]),
    "date": (DAYS, sorted(DAYS)),
    "category": (["low", "high", "mid"], ["low", "mid", "high"]),
}


def table_of(kind, missing):
    values, expected = GROUPS[kind]
    frame = rows(120)
    column = pd.Series([values[i % 3] for i in range(len(frame))], dtype=object)
    if kind == "category":
        column = column.astype(pd.CategoricalDtype(["low", "mid", "high", "top"], ordered=True))
    elif kind in ("int", "negative", "float", "bool"):
        column = column.infer_objects()
    if missing:
        column = column.astype({"int": "Int64", "negative": "Int64", "bool": "boolean"}.get(kind, column.dtype))
        column[::4] = None
    return frame.assign(product=column), expected


def written(frame, path):
    if path.suffix == ".parquet":
        frame.to_parquet(path)
    elif path.suffix == ".jsonl":
        frame.to_json(path, orient="records", lines=True, date_format="iso")
    else:
        frame.to_csv(path, index=False)
    return path


@pytest.mark.parametrize("missing", [False, True])
@pytest.mark.parametrize("source", ["csv", "jsonl", "parquet"])
@pytest.mark.parametrize("kind", GROUPS)
def test_groups_keep_their_type_and_order_in_every_file(kind, source, missing, saved, tmp_path):
    frame, expected = table_of(kind, missing)
    if kind == "category" and source != "parquet":
        expected = sorted(expected)  # text files have no order but that of the alphabet
    if kind == "date" and source == "jsonl":
        frame["product"] = [None if pd.isna(day) else day.isoformat() for day in frame["product"]]
        expected = [day.isoformat() for day in expected]
    path = written(frame, tmp_path / f"new.{source}")
    for out in ("r.csv", "r.jsonl", "r.parquet"):
        assert main(["predict", str(saved), str(path), "--by", "product", "--out", str(tmp_path / out)]) == 0
    missing_value = [None] if missing else []
    column = pq.read_table(tmp_path / "r.parquet").column("product")
    assert column.to_pylist() == [*expected, *missing_value]
    if kind == "category" and source == "parquet":
        assert column.type.ordered
    lines = [json.loads(line)["product"] for line in (tmp_path / "r.jsonl").read_text().splitlines()]
    plain = [value.isoformat() if isinstance(value, dt.date) else value for value in expected]
    assert [str(value)[:10] if isinstance(value, str) else value for value in lines] == [*plain, *missing_value]
    words = pd.read_csv(tmp_path / "r.csv", dtype=str)["product"].tolist()
    assert words[: len(plain)] == [str(value) for value in plain]
    assert all(pd.isna(word) for word in words[len(plain) :])


def test_missing_groups_are_called_so_on_the_terminal_and_come_last(saved, tmp_path, capsys):
    frame, _ = table_of("int", missing=True)
    path = written(frame, tmp_path / "new.csv")
    assert main(["predict", str(saved), str(path), "--by", "product"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[0] for line in lines[2:6]] == ["9", "10", "100", "(missing)"]
    assert main(["predict", str(saved), str(path), "--by", "product", "--json"]) == 0
    assert [row["group"] for row in json.loads(capsys.readouterr().out)["groups"]] == [9, 10, 100, None]


@pytest.mark.parametrize("name", ["n_items", "mean_class", "3", "3_lower", "fit"])
def test_groups_named_like_a_column_of_the_result_are_rejected(name, saved, tmp_path, capsys):
    path = written(rows(60).assign(**{name: "x"}), tmp_path / "new.csv")
    assert main(["predict", str(saved), str(path), "--by", name]) == 2
    assert f"a group column must not have the name {name!r}" in capsys.readouterr().err


def test_types_of_groups_are_those_of_all_chunks(saved, tmp_path, monkeypatch):
    monkeypatch.setattr("ordinalq.io.table.PORTION_ROWS", 10)
    frame = rows(60).assign(product=["9"] * 20 + ["10"] * 20 + ["x"] * 20)
    found = predict_table(oq.load_model(saved), open_table(written(frame, tmp_path / "new.csv")), by="product")
    assert found.keys.tolist() == ["10", "9", "x"]
    found = predict_table(oq.load_model(saved), open_table(written(frame.head(40), tmp_path / "new.csv")), by="product")
    assert found.keys.tolist() == [9, 10]
    lines = "".join(f'{{"price": {i}.5, "product": {i % 3 + (0.5 if i > 30 else 0)}}}\n' for i in range(60))
    (tmp_path / "new.jsonl").write_text(lines)
    found = predict_table(oq.load_model(saved), open_table(tmp_path / "new.jsonl"), by="product")
    assert found.keys.tolist() == [0, 0.5, 1, 1.5, 2, 2.5]


@pytest.mark.parametrize("method", ["PACC", "SLD"])
def test_chunks_give_the_result_of_the_whole_table(method, tmp_path, monkeypatch):
    frame, _ = table_of("int", missing=True)
    q = getattr(oq, method)(oq.classifiers.CrossFitted(GaussianNB(), cv=2))
    model = oq.TableModel(q, features=["price"]).fit(rows(), target="stars")
    file = open_table(written(frame, tmp_path / "new.csv"))
    whole = predict_table(model, file, by="product", level=0.9)
    expected = model.predict_groups(frame, by="product", level=0.9)
    monkeypatch.setattr("ordinalq.io.table.PORTION_ROWS", 7)
    chunks = predict_table(model, file, by="product", level=0.9)
    for found in (whole, chunks):
        pd.testing.assert_frame_equal(found.frame(), expected.frame(), atol=1e-5, check_dtype=False)
    assert summarize_table(model, file).keys.tolist() == ["all"]


def test_long_names_of_groups_are_those_of_a_wrong_column(saved, tmp_path):
    path = written(rows(10).assign(product="x" * 200_000), tmp_path / "new.parquet")
    with pytest.raises(ValueError, match=r"names of groups in column 'product', got one of 200,000 characters"):
        predict_table(oq.load_model(saved), open_table(path), by="product")


# The model


def test_a_table_model_answers_for_frames_of_pandas_and_polars(model):
    frame, expected = table_of("int", missing=False)
    estimates = model.predict_groups(
        frame, by="product", level=0.9, options=oq.inference.IntervalOptions(estimand="population", random_state=1)
    )
    assert estimates.keys.tolist() == expected
    assert estimates.bounds.estimand == "population"
    assert estimates.frame().columns[0] == "product"
    assert_allclose(model.predict(frame), model.predict_interval(frame).prevalences[0])
    assert_allclose(model.predict_interval(frame, by=frame["product"]).prevalences, estimates.prevalences)
    both = pl.from_pandas(frame)
    assert isinstance(model.predict_groups(both, by="product").frame(), pl.DataFrame)
    assert_allclose(model.predict_groups(both, by="product").prevalences, estimates.prevalences)
    assert model.diagnose(frame).n_items == len(frame)
    with pytest.raises(ValueError, match="columns are missing: 'shop'"):
        model.predict_groups(frame, by="shop")


def test_a_table_model_is_an_estimator_like_others():
    from sklearn.base import clone

    unfitted = oq.TableModel(oq.CC(GaussianNB()), features=["price"])
    assert clone(unfitted).get_params()["features"] == ["price"]
    with pytest.raises(Exception, match="not fitted"):
        unfitted.predict(rows())
    with pytest.raises(TypeError, match="quantifier must be a quantifier"):
        oq.TableModel(GaussianNB()).fit(rows(), target="stars")
    words = rows().assign(stars=lambda x: np.array(list("abcde"))[x["stars"] - 1])
    fitted = oq.TableModel(oq.CC(GaussianNB())).fit(words, target="stars", classes=list("edcba"))
    assert fitted.classes_.tolist() == list("edcba")
    assert fitted.kinds_ == {"price": "number"}


def test_us_dates_are_dates_in_models_too(tmp_path):
    frame = rows()
    frame["day"] = pd.date_range("2024-01-01", periods=len(frame)).strftime("%m/%d/%Y")
    train, path = written(frame, tmp_path / "train.csv"), tmp_path / "m.oq"
    fit = ["fit", str(train), "--target", "stars", "--method", "CC", "--out", str(path)]
    assert main([*fit, "--features", "price,day"]) == 0
    assert read_info(path).columns == {"price": "number", "day": "date:%m/%d/%Y"}
    frame["day"] = "01/02/2024"
    written(frame, train)
    assert main([*fit, "--features", "price", "--date-format", "day=%d/%m/%Y"]) == 0
    assert read_info(path).columns == {"price": "number", "day": "date:%d/%m/%Y"}


def test_errors_of_groups_have_the_standard_deviation_of_a_sample(model, tmp_path):
    frame, _ = table_of("int", missing=False)
    errors = evaluate_table(model, open_table(written(frame, tmp_path / "t.csv")), by="product").set_index("estimate")
    P = model.predict_groups(frame, by="product").prevalences
    truth = np.array([np.bincount(part["stars"] - 1, minlength=5) for _, part in frame.groupby("product")])
    e = oq.metrics.nmd(truth / truth.sum(axis=1, keepdims=True), P)
    assert_allclose(errors.loc["PACC", ["nmd", "nmd_std"]].astype(float), [e.mean(), e.std(ddof=1)])


# Files of models


def test_a_search_is_saved_as_its_best_quantifier(tmp_path):
    frame = rows()
    X, y = frame[["price"]].to_numpy(), frame["stars"]
    samples = oq.protocols.NPP(20, 50, random_state=0).draw(y)
    search = oq.model_selection.SampleSearch(oq.OPACC(GaussianNB()), {"tau": [1e-3, 1.0]}, samples=samples).fit(X, y, X)
    info = oq.save_model(search, tmp_path / "m.oq")
    loaded = oq.load_model(tmp_path / "m.oq")
    assert info.method == "OPACC"
    assert loaded.tau == search.best()["tau"]
    assert_array_equal(loaded.predict(X), search.predict(X))


def test_files_name_parts_by_their_aliases_only(saved):
    import io
    import zipfile

    with zipfile.ZipFile(saved) as archive:
        payload = zipfile.ZipFile(io.BytesIO(archive.read("model.skops")))
    schema = payload.read("schema.json").decode()
    assert "ordinalq.aliases" in schema
    assert "ordinalq.quantifiers" not in schema
    assert "ordinalq.tables" not in schema


def test_models_load_after_every_module_has_moved(saved, model, monkeypatch):
    """As if all parts were in modules of other names, and the old modules were gone."""
    moved = {}
    for table in (aliases.ALIASES, aliases.FUNCTIONS):
        for alias, place in table.items():
            module, _, name = place.partition(":")
            new = f"elsewhere_{module.replace('.', '_')}"
            moved.setdefault(new, types.ModuleType(new))
            setattr(moved[new], f"New{name}", getattr(importlib.import_module(module), name))
            monkeypatch.setitem(table, alias, f"{new}:New{name}")
    for name, module in moved.items():
        monkeypatch.setitem(sys.modules, name, module)
    loaded = oq.load_model(saved)
    assert_array_equal(loaded.predict(rows()), model.predict(rows()))


def test_every_alias_leads_to_a_part():
    for alias, place in {**aliases.ALIASES, **aliases.FUNCTIONS}.items():
        part = getattr(aliases, alias)
        assert aliases.alias_of(part.__module__, part.__qualname__) == alias
        assert place == f"{part.__module__}:{part.__qualname__}"
    with pytest.raises(AttributeError, match="no attribute 'Evil'"):
        aliases.Evil  # noqa: B018


@pytest.fixture(scope="module")
def survey():
    """Answers with text, and columns that say nothing about the answer."""
    rng = generator(0)
    stars = rng.integers(1, 6, size=600)
    words = np.array(["awful", "poor", "usual", "good", "superb"])
    others = np.array([" ".join(rng.choice(["day", "week", "shop", "queue", "price"], 4)) for _ in stars])
    near = np.clip(stars + rng.integers(-1, 2, size=600), 1, 5)
    return pd.DataFrame(
        {
            "respondent": rng.permutation(10_000)[:600],
            "row": np.arange(600),
            "day": pd.date_range("2024-01-01", periods=600).strftime("%Y-%m-%d"),
            "numHelpful": rng.poisson(0.3, size=600),
            "survey_weight": rng.uniform(0.5, 2, size=600),
            "region": rng.choice(["north", "south", "west", "east"], size=600),
            "comment": np.char.add(np.char.add(words[near - 1], " "), others),
            "height": 1.8,
            "stars": stars,
        }
    )


def test_identifiers_dates_votes_and_weights_are_not_learned_from_unless_they_are_named(survey):
    quantifier = oq.PCC()
    model = oq.TableModel(quantifier).fit(survey, "stars")
    assert model.kinds_ == {"comment": "text"}
    assert model.unused_ == {
        "stars": "the target",
        "respondent": "an identifier",
        "row": "a number of the row",
        "day": "a date",
        "numHelpful": "a count of votes",
        "survey_weight": "a weight",
        "region": "may be a group of rows",
        "height": "does not lower the held-out error of the text",
    }
    assert oq.TableModel(quantifier).fit(survey, "stars", by="region").unused_["region"] == "the group"
    weighted = oq.TableModel(quantifier).fit(survey, "stars", sample_weight="survey_weight")
    assert weighted.unused_["survey_weight"] == "the weight"
    named = oq.TableModel(quantifier, text=["comment"], features=["day", "numHelpful"]).fit(survey, "stars")
    assert named.kinds_ == {"comment": "text", "day": "date", "numHelpful": "number"}
    assert named.unused_ == {}


@pytest.mark.parametrize(
    ("name", "values", "reason"),
    [
        ("consumer_price_index", [101.2, 99.8, 104.1, 110.0], ""),
        ("heat_index", [80, 80, 95, 95], ""),
        ("index", [7, 3, 12, 5], "an identifier"),
        ("Weight (kg)", [71, 64.5, 90, 82], ""),
        ("body weight", [71, 64.5, 90, 82], ""),
        ("weight", [71, 64.5, 90, 82], "a weight"),
        ("wt", [0.5, 1.5, 1, 1], "a weight"),
        ("post_wgt", [0.5, 1.5, 1, 1], "a weight"),
        ("survey_weight", [1200, 800, 950, 1100], "a weight"),
    ],
)
def test_a_measured_column_is_not_taken_for_an_identifier_or_a_weight(name, values, reason):
    assert unused_reason(name, "number", pd.Series(values)) == reason


def test_names_of_groups_are_found_by_their_words():
    names = [
        "restored",
        "history",
        "capacity",
        "shop",
        "productId",
        "storeid",
        "subcategory",
        "reviews.brand",
        "Cities",
    ]
    assert likely_groups(dict.fromkeys(names, "category")) == names[3:]


def test_do_not_know_has_no_place_between_disagree_and_agree():
    assert known_order(["stimme nicht zu", "weiß nicht", "stimme zu"]) is None
    assert known_order(["stimme zu", "weder noch", "stimme nicht zu"]) == ["stimme nicht zu", "weder noch", "stimme zu"]


def test_columns_next_to_text_are_used_if_they_lower_the_held_out_error(survey, rng):
    told = survey[["comment", "stars"]].assign(recommends=survey["stars"] + 0.5 * rng.normal(size=600) > 3)
    assert oq.TableModel(oq.PCC()).fit(told, "stars").kinds_ == {"comment": "text", "recommends": "category"}


def test_columns_next_to_text_that_cannot_be_compared_are_named_in_a_warning(caplog):
    few = pd.DataFrame({"comment": ["one two", "three four"], "height": [1.5, 2.5]})
    assert other_columns_help(few, {"comment": "text", "height": "number"}, np.array([0, 1]))
    assert "columns next to text are used without a comparison of held-out errors: 'height'" in caplog.text


def test_fit_lists_used_and_unused_columns_and_counts_of_rows(survey, tmp_path, capsys):
    frame = survey[["comment", "day", "numHelpful", "stars"]].astype(object)
    frame.loc[:2, "comment"] = None
    frame.loc[3:6, "stars"] = None
    frame.loc[590:599, ["comment", "stars"]] = ["awful day day day", 1]
    train, model = written(frame, tmp_path / "train.csv"), tmp_path / "m.oq"
    fit = ["fit", str(train), "--target", "stars", "--method", "PCC", "--skip-unlabelled", "--out", str(model)]
    repeated = frame.drop(index=range(7))[["comment", "stars"]].duplicated().sum()
    assert main([*fit, "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert [found[name] for name in ("n_skipped", "n_empty", "n_duplicates")] == [4, 3, repeated]
    assert found["unused"] == {"stars": "the target", "day": "a date", "numHelpful": "a count of votes"}
    assert main(fit) == 0
    out = capsys.readouterr().out
    assert f"rows:      4 without 'stars' (not used), 3 without text, {repeated} with the text" in out
    assert "not used: a count of votes" in out


MOODS = ["VeryUnhappy", "Unhappy", "Neutral", "Happy", "VeryHappy"]


@pytest.mark.parametrize(
    "order",
    [
        MOODS,
        ["Strongly disagree", "Disagree", "Neither agree nor disagree", "Agree", "Strongly agree"],
        ["sehr unzufrieden", "unzufrieden", "teils/teils", "zufrieden", "sehr zufrieden"],
        ["jamais", "rarement", "parfois", "souvent", "toujours"],
        ["never", "sometimes", "often", "always"],
        ["very poor", "poor", "fair", "good", "very good", "excellent"],
        ["muy malo", "malo", "regular", "bueno", "muy bueno"],
        ["XS", "S", "M", "L", "XL", "XXL"],
        ["Jan", "Feb", "Mar", "Apr", "Dec"],
        ["very low", "low", "medium", "high", "very high"],
    ],
)
def test_common_scales_of_words_are_put_in_order(order, rng):
    assert known_order(rng.permutation(order).tolist()) == order


def test_words_that_are_not_all_of_one_scale_have_no_known_order():
    assert known_order(["good", "bad", "red"]) is None
    assert known_order(["Good", "good ", "bad"]) is None  # two forms of one level


def moods(rng):
    code = rng.integers(5, size=1000)
    return pd.DataFrame({"x": code + rng.normal(scale=0.7, size=1000), "mood": np.array(MOODS)[code]})


def test_a_model_of_a_common_scale_needs_no_classes(rng):
    model = oq.TableModel(oq.PACC()).fit(moods(rng), "mood")
    assert model.classes_.tolist() == MOODS
    assert model.quality_["better_order"] is None


def test_an_order_that_contradicts_the_data_is_questioned(rng, tmp_path, capsys):
    path = written(moods(rng), tmp_path / "train.csv")
    given = "Happy,Neutral,VeryUnhappy,VeryHappy,Unhappy"
    fit = ["fit", str(path), "--target", "mood", "--method", "PACC", "--out", str(tmp_path / "m.oq")]
    assert main([*fit, "--classes", given]) == 0
    out = " ".join(capsys.readouterr().out.split())
    assert "order: contradicted by the data" in out
    assert ", ".join(MOODS) in out or ", ".join(MOODS[::-1]) in out


@pytest.mark.parametrize("given", [[0, 2, 1, 3, 4], [0, 1, 2, 3, 4], [4, 3, 2, 1, 0]], ids=["swap", "usual", "reverse"])
def test_an_order_other_than_the_usual_one_of_a_scale_is_questioned(given, rng, tmp_path, capsys):
    path = written(moods(rng), tmp_path / "train.csv")
    fit = ["fit", str(path), "--target", "mood", "--method", "PACC", "--out", str(tmp_path / "m.oq")]
    assert main([*fit, "--classes", ",".join(MOODS[i] for i in given)]) == 0
    out = " ".join(capsys.readouterr().out.split())
    assert ("order:" in out) == (given != sorted(given))
    if "contradicted" not in out:
        assert (f"not the usual order of these words: {', '.join(MOODS)}. Check it" in out) == ("order:" in out)


@pytest.mark.parametrize("given", [sorted(MOODS), [MOODS[-1], *MOODS[:-1]]], ids=["alphabetical", "last first"])
def test_likely_mistakes_in_the_order_are_questioned(given, rng):
    model = oq.TableModel(oq.PACC()).fit(moods(rng), "mood", classes=given)
    assert model.quality_["better_order"] in (MOODS, MOODS[::-1])


def test_a_right_order_of_rare_and_frequent_classes_is_not_questioned(rng):
    code = rng.choice(5, size=4000, p=[0.02, 0.02, 0.05, 0.21, 0.7])
    frame = pd.DataFrame({"x": code + rng.normal(scale=2.0, size=4000), "stars": code + 1})
    assert oq.TableModel(oq.PACC()).fit(frame, "stars").quality_["better_order"] is None


def test_groups_are_sorted_both_ways_and_found_by_a_part_of_their_name(rng, tmp_path, capsys):
    train = moods(rng)
    path = tmp_path / "m.oq"
    oq.TableModel(oq.PACC()).fit(train, "mood").save(path)
    shops = {"Kindle Paperwhite": 4, "Echo (Black)": 1, "Echo (White)": 0}
    parts = [train[train["mood"] == MOODS[mood]].assign(shop=shop) for shop, mood in shops.items()]
    new = str(written(pd.concat(parts), tmp_path / "new.csv"))

    def groups(*options):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            assert main(["predict", str(path), new, "--by", "shop", "--json", *options]) == 0
        return [one["group"] for one in json.loads(capsys.readouterr().out)["groups"]]

    assert groups("--sort=-mean") == ["Echo (White)", "Echo (Black)", "Kindle Paperwhite"]
    assert groups("--sort", "mean") == groups("--sort=-mean")[::-1]
    assert groups("--worst", "1") == ["Echo (White)", "(other)"]
    assert groups("--best", "2") == ["Kindle Paperwhite", "Echo (Black)", "(other)"]
    assert main(["predict", str(path), new, "--by", "shop", "--best", "1", "--top", "2"]) == 2
    capsys.readouterr()
    assert main(["compare", str(path), new, "--by", "shop", "paper", "(white)"]) == 0
    assert "The mean position of Kindle Paperwhite" in capsys.readouterr().out
    assert main(["compare", str(path), new, "--by", "shop", "paper", "echo"]) == 2
    assert "2 of the 3 groups of 'shop' contain 'echo': 'Echo (Black)', 'Echo (White)'" in capsys.readouterr().err
    assert main(["compare", str(path), new, "--by", "shop", "paper", "Kindle"]) == 2
    assert "expected different groups" in capsys.readouterr().err


def test_groups_that_differ_in_case_and_blanks_are_counted_and_merged_on_request(rng, tmp_path, capsys):
    frame = moods(rng).assign(shop=rng.choice(["North Pole", "north  pole", "NORTH POLE", "South", "West"], size=1000))
    tidy = frame.assign(shop=frame["shop"].replace({"north  pole": "North Pole", "NORTH POLE": "North Pole"}))
    with pytest.warns(UserWarning, match=r"5 groups of 'shop' are 3 .*'NORTH POLE'.* Use tidy_groups=True"):
        assert oq.TableModel(oq.PACC()).fit(frame, "mood", by="shop").n_groups_ == 5
    model = oq.TableModel(oq.PACC()).fit(frame, "mood", by="shop", tidy_groups=True)
    assert model.n_groups_ == 3
    path = tmp_path / "m.oq"
    model.save(path)

    def answer(frame, *options):
        new = str(written(frame, tmp_path / "new.csv"))
        assert main(["predict", str(path), new, "--by", "shop", "--json", *options]) == 0
        groups = json.loads(capsys.readouterr().out)["groups"]
        # Merged groups have the name of the largest, by which they are sorted.
        return sorted(groups, key=lambda one: " ".join(one["group"].casefold().split()))

    found, expected = answer(frame, "--tidy-groups"), answer(tidy)
    assert [one["n_items"] for one in found] == [one["n_items"] for one in expected]
    assert_allclose([one["prevalences"] for one in found], [one["prevalences"] for one in expected], atol=1e-9)
    assert {one["group"].casefold() for one in found} <= {"north pole", "north  pole", "south", "west"}


def test_rows_without_text_are_expected_as_in_training(rng):
    def table(n_empty):
        moved = moods(rng)[["mood"]]
        return moved.assign(text=np.where(np.arange(len(moved)) < n_empty, "", "a " + moved["mood"] + " word"))

    model = oq.TableModel(oq.PACC(), text=["text"]).fit(table(300), "mood")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model.predict(table(450))
    with pytest.warns(UserWarning, match="550 of 1,000 rows have no word of the training texts") as caught:
        model.predict(table(550))
    assert [one.filename for one in caught] == [__file__]


def test_a_misspelt_label_is_answered_by_the_class(rng, tmp_path, capsys):
    frame, path = moods(rng), tmp_path / "m.oq"
    oq.TableModel(oq.PACC()).fit(frame, "mood").save(path)
    frame.loc[7, "mood"] = "very unhappy"
    new = str(written(frame, tmp_path / "new.csv"))
    for command in (["evaluate", str(path), new], ["predict", str(path), new, "--labels", "mood"]):
        assert main(command) == 2
        assert "line 9" in (error := capsys.readouterr().err)
        assert "'very unhappy'; did you mean 'VeryUnhappy' or" in error


def test_evaluate_and_plan_merge_spellings_as_predict_does(rng, tmp_path, capsys):
    shops = rng.choice(["North Pole", "North Pole", "North Pole", "north  pole", "NORTH POLE", "South"], size=1000)
    frame = moods(rng).assign(shop=shops)
    path, new, tidy = tmp_path / "m.oq", tmp_path / "new.csv", tmp_path / "tidy.csv"
    oq.TableModel(oq.PACC()).fit(moods(rng), "mood").save(path)
    frame.to_csv(new, index=False)
    frame.assign(shop=np.where(shops == "South", "South", "North Pole")).to_csv(tidy, index=False)

    def answer(subcommand, table, *options):
        assert main([subcommand, str(path), str(table), "--by", "shop", "--json", *map(str, options)]) == 0
        return json.loads(capsys.readouterr().out)

    assert_allclose(
        [row["nmd"] for row in answer("evaluate", new, "--tidy-groups")["errors"]],
        [row["nmd"] for row in answer("evaluate", tidy)["errors"]],
        atol=1e-9,
    )
    found = answer("plan", new, "--width", 0.1, "--tidy-groups", "--out", tmp_path / "rows.csv")
    counts = [(one["shop"], one["n_items"], one["labels"]) for one in found["groups"]]
    expected = answer("plan", tidy, "--width", 0.1)["groups"]
    assert counts == [(one["shop"], one["n_items"], one["labels"]) for one in expected]
    drawn = pd.read_csv(tmp_path / "rows.csv")["shop"].map(lambda name: " ".join(name.casefold().split()))
    assert drawn.value_counts().to_dict() == {shop.casefold(): n for shop, _, n in counts if n}
    answer("plan", new, "--tidy-groups", "--rows", 200, "--group", "north", "--out", tmp_path / "rows.csv")
    assert set(pd.read_csv(tmp_path / "rows.csv")["shop"]) == {"North Pole", "north  pole", "NORTH POLE"}


def test_predict_groups_of_a_frame_merges_spellings_as_files_do(rng):
    frame = moods(rng).assign(shop=rng.choice(["North", "north ", "zoo"], size=1000))
    model = oq.TableModel(oq.PACC()).fit(frame.drop(columns="shop"), "mood")
    with pytest.warns(UserWarning, match=r"3 groups of 'shop' are 2 .* Use tidy_groups=True"):
        assert len(model.predict_groups(frame, by="shop")) == 3
    found = model.predict_groups(frame, by="shop", tidy_groups=True, level=0.9)
    expected = model.predict_groups(frame.assign(shop=frame["shop"].str.strip().str.title()), by="shop", level=0.9)
    assert found.n_items.tolist() == expected.n_items.tolist()
    assert_allclose(found.prevalences, expected.prevalences, atol=1e-9)


def test_groups_by_two_columns_are_merged_only_if_both_names_agree():
    values = {"city": ["A", "A, b", "a", "A"], "shop": ["b, c", "c", "B,  C", "d"]}
    keys, codes = Keys.of(values)
    rows, kept = merge_spellings(keys, np.ones(len(keys)), True)
    assert (len(keys), len(kept)) == (4, 3)
    new = rows[codes]
    assert new[0] == new[2]
    assert len(set(new.tolist())) == 3


def test_a_large_but_uncertain_gain_is_not_called_no_better():
    few = compared_with("CC", np.array([-0.1, 0.05, -0.12, 0.03]), 0.2)
    assert few["said"] == "not shown to be better"
    assert verdict([few], 4) == (
        "On your 4 groups this model is not shown to be better than counting predictions. Its error is smaller, but 4 "
        "groups are too few."
    )
    assert compared_with("CC", np.array([-0.01, 0.008, -0.012, 0.013]), 0.2)["said"] == "no better"


@pytest.mark.parametrize("cell", ["1e40", "1e300"])
def test_a_huge_number_is_called_an_outlier(cell, rng, tmp_path, capsys):
    frame = moods(rng).astype({"x": object})
    frame.loc[7, "x"] = cell
    path = written(frame, tmp_path / "train.csv")
    assert main(["fit", str(path), "--target", "mood", "--method", "PACC", "--out", str(tmp_path / "m.oq")]) == 2
    assert "line 9: expected a number below 1e+30, not an outlier, in column 'x'" in capsys.readouterr().err


@pytest.mark.parametrize("typo", ["55", "4.5"])
def test_a_label_of_very_few_rows_that_does_not_fit_the_scale_is_questioned(typo):
    labels = np.array([*"12345"] * 600, dtype=object)
    labels[[7, 900]] = typo
    frame = pd.DataFrame({"x": np.arange(3000.0), "stars": labels})
    with pytest.raises(ValueError, match=rf"do not fit the others: .*{typo}.* \(2\), of 3,000 rows. Correct them"):
        labelled_rows(frame, "stars", None, False)
    named = sorted({*labels}, key=float)
    assert labelled_rows(frame, "stars", named, False)[2] == 0


def test_rare_ends_of_a_scale_are_not_questioned():
    labels = [*"6789"] * 300 + ["10"] * 300 + ["0", "2", "3"]
    frame = pd.DataFrame({"x": np.arange(float(len(labels))), "nps": labels})
    assert len(labelled_rows(frame, "nps", None, False)[1]) == len(labels)


def test_a_misspelt_word_of_a_known_scale_is_named():
    labels = ["unhappy", "neutral", "happy"] * 100 + ["hapyp"]
    frame = pd.DataFrame({"x": np.arange(float(len(labels))), "mood": labels})
    with pytest.raises(ValueError, match=r"do not fit the others: .*hapyp.* \(1\), of 301 rows"):
        labelled_rows(frame, "mood", None, False)


def test_budget_best_adds_character_ngrams_of_text_and_survives_a_model_file(tmp_path, rng):
    words = {1: "terrible", 2: "mediocre", 3: "wonderful"}
    stars = rng.integers(1, 4, 240)

    def misspelled(star):
        letters = list(words[star])
        letters[rng.integers(len(letters))] = "abcdefghijklmnopqrstuvwxyz"[rng.integers(26)]
        return f"a\n{''.join(letters)} thing"

    frame = pd.DataFrame({"text": [misspelled(star) for star in stars], "stars": stars})
    models = {}
    for budget in ("balanced", "best"):
        models[budget] = oq.TableModel(oq.AutoQuantifier(budget=budget), text=["text"]).fit(frame, "stars")
    names = {budget: [step[0] for step in model.encoder_.transformers_] for budget, model in models.items()}
    assert names["balanced"] == ["words of text"]
    assert names["best"] == ["words of text", "characters of text"]
    assert models["best"].quality_["accuracy"] > 0.9  # most misspelled words occur once
    path = tmp_path / "model.oq"
    models["best"].save(path)
    assert_allclose(oq.load_model(path).scores(frame), models["best"].scores(frame), atol=1e-12)


WORDS = ["good", "bad", "Ärger", "ärger", "x", "don't", "2024", "日本", "naïve", "a_b", "İstanbul", "straße", "-", ""]


def test_words_are_counted_as_scikit_learn_counts_them(rng):
    def texts(n_texts):
        lengths = rng.integers(0, 12, n_texts)
        more = [*WORDS, *(f"word{i}" for i in range(40))]
        return [rng.choice([" ", ", ", "\n"]).join(rng.choice(more, length)) for length in lengths]

    train, new = texts(400), [*texts(100), "", "unseen words only", "good unseen bad"]
    for min_df, max_features in ((2, 60), (1, None), (3, 500)):
        how = {"ngram_range": (1, 2), "sublinear_tf": True, "min_df": min_df, "max_features": max_features}
        ours, theirs = Words(**how, dtype=np.float32), TfidfVectorizer(**how, dtype=np.float32)
        pairs = [(ours.fit_transform(train), theirs.fit_transform(train)), (ours.transform(new), theirs.transform(new))]
        assert ours.vocabulary_ == theirs.vocabulary_
        pairs.append((pickle.loads(pickle.dumps(ours)).transform(new), theirs.transform(new)))
        for found, expected in pairs:
            for part in ("indptr", "indices", "data"):
                np.testing.assert_array_equal(getattr(found, part), getattr(expected, part))
        # The same object learns other texts.
        np.testing.assert_array_equal(
            ours.fit(new * 3).transform(train).data, theirs.fit(new * 3).transform(train).data
        )


def test_texts_without_words_are_an_error_as_in_scikit_learn():
    for texts, message in ((["a", "-"], "empty vocabulary"), (["one two", "three four"], "no terms remain")):
        with pytest.raises(ValueError, match=message):
            Words(ngram_range=(1, 2), min_df=2).fit(texts)
