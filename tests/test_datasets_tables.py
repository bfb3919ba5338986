"""make_dataset: any table becomes a data set, with categories and missing values; removed rows are reported."""

import logging

import numpy as np
import pandas as pd
import polars as pl
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import ordinalq as oq
from ordinalq.datasets import Sampling
from ordinalq.datasets.files import read_table
from ordinalq.datasets.text import tfidf

SAMPLING = Sampling(n_validation=20, n_test=20, sample_size=50)


@pytest.fixture
def table(rng):
    """A table of 600 rows with numbers, missing values, categories, flags and dates."""
    n = 600
    value = rng.normal(size=n)
    return pd.DataFrame(
        {
            "number": np.where(rng.random(n) < 0.1, np.nan, value),
            "whole": pd.array(rng.integers(0, 5, n), dtype="Int64"),
            "colour": rng.choice(["red", "green", None], n),
            "flag": rng.random(n) < 0.5,
            "day": pd.Timestamp("2020-01-01") + pd.to_timedelta(rng.integers(0, 1000, n), unit="D"),
            "price": 10 * value + rng.normal(size=n),
        }
    )


def test_features_become_numbers_without_missing_values(table):
    dataset = oq.datasets.make_dataset(table, target="price", n_bins=4, min_count=20, sampling=SAMPLING)
    X = dataset.train.X
    assert np.isfinite(X).all()
    assert X.shape[1] == len(dataset.feature_names)
    assert {
        "number",
        "missingindicator_number",
        "whole",
        "flag",
        "colour_red",
        "colour_green",
        "day_day_of_week",
    } <= set(dataset.feature_names)
    missing = X[:, dataset.feature_names.index("missingindicator_number")] == 1
    filled = X[missing, dataset.feature_names.index("number")]
    assert len(filled) > 5
    assert len(set(filled)) == 1  # the median


def test_encoder_is_fitted_on_the_training_items_only(table):
    dataset = oq.datasets.make_dataset(table, target="price", n_bins=4, min_count=20, sampling=SAMPLING)
    column = dataset.feature_names.index("number")
    missing = dataset.feature_names.index("missingindicator_number")
    known = dataset.train.X[dataset.train.X[:, missing] == 0, column]
    filled = dataset.test.X[dataset.test.X[:, missing] == 1, column]
    assert_allclose(filled, np.median(known))


def test_encoder_takes_new_rows_with_unknown_categories(table):
    dataset = oq.datasets.make_dataset(table, target="price", n_bins=4, min_count=20, sampling=SAMPLING)
    new = table.drop(columns="price").head(3).assign(colour="blue")
    assert dataset.encoder.transform(new).shape == (3, len(dataset.feature_names))


def test_encoder_none_keeps_the_frame_for_the_users_own_pipeline(table):
    dataset = oq.datasets.make_dataset(table, target="price", n_bins=4, min_count=20, encoder=None, sampling=SAMPLING)
    assert isinstance(dataset.train.X, pd.DataFrame)
    assert dataset.feature_names == ("number", "whole", "colour", "flag", "day")
    pipeline = make_pipeline(oq.datasets.table_encoder(dataset.train.X), StandardScaler(), LogisticRegression())
    assert pipeline.fit(*dataset.train).score(*dataset.test) > 0.5


def test_rows_without_target_are_left_out_with_a_word(table, caplog):
    table.loc[:9, "price"] = np.nan
    dataset = oq.datasets.make_dataset(table, target="price", n_bins=4, min_count=20, sampling=SAMPLING)
    assert "10 of 600 rows have no 'price' and were left out" in dataset.notes
    assert "10 of 600 rows have no 'price' and were left out" in caplog.text
    assert sum(len(part.y) for part in (dataset.train, dataset.validation, dataset.test)) == 590


def test_items_outside_of_the_span_are_counted_in_a_note(table):
    options = {"target": "price", "n_bins": 3, "span": (-5, 5), "sampling": SAMPLING}
    clipped = oq.datasets.make_dataset(table, **options)
    dropped = oq.datasets.make_dataset(table, outside="drop", **options)
    outside = int((table["price"].abs() > 5).sum())
    assert clipped.notes[0] == (
        f"{outside} of 600 items have 'price' outside of [-5, 5] and count in the outermost classes"
    )
    assert dropped.notes[0] == f"{outside} of 600 items have 'price' outside of [-5, 5] and were left out"
    assert sum(len(part.y) for part in (dropped.train, dropped.validation, dropped.test)) == 600 - outside


def test_unused_columns_are_named_in_one_log_line(table, caplog):
    caplog.set_level(logging.INFO)
    dataset = oq.datasets.make_dataset(
        table, "price", n_bins=4, min_count=20, features=["whole", "flag"], sampling=SAMPLING
    )
    assert dataset.feature_names == ("whole", "flag")
    assert [r.message for r in caplog.records if "not used" in r.message] == [
        "the table: 3 columns are not used: number, colour, day"
    ]


def test_string_labels_take_the_given_order(table):
    table["size"] = pd.cut(table["price"], 3, labels=["small", "medium", "large"]).astype(str)
    dataset = oq.datasets.make_dataset(table.drop(columns="price"), "size", classes=["small", "medium", "large"])
    assert dataset.classes == ("small", "medium", "large")
    expected = table["size"].map({"small": 0, "medium": 1, "large": 2}).value_counts().sort_index()
    total = sum(np.bincount(part.y) for part in (dataset.train, dataset.validation, dataset.test))
    assert_array_equal(total, expected)
    with pytest.raises(ValueError, match=r"give classes=\[...\]"):
        oq.datasets.make_dataset(table, "size")


@pytest.mark.parametrize("ending", ["csv", "parquet", "csv.gz"])
def test_files_give_the_same_data_set_as_the_frame(table, tmp_path, ending):
    numbers = table[["number", "price"]]
    path = tmp_path / f"table.{ending}"
    numbers.to_parquet(path) if ending == "parquet" else numbers.to_csv(path, index=False)
    from_file = oq.datasets.make_dataset(path, "price", n_bins=4, min_count=20)
    assert from_file.name.startswith("table")
    assert_allclose(from_file.train.X, oq.datasets.make_dataset(numbers, "price", n_bins=4, min_count=20).train.X)


def test_polars_frame_gives_the_same_data_set(table):
    numbers = table[["number", "price"]]
    one = oq.datasets.make_dataset(numbers, "price", n_bins=4, min_count=20)
    two = oq.datasets.make_dataset(pl.from_pandas(numbers), "price", n_bins=4, min_count=20)
    assert_allclose(one.train.X, two.train.X)


def test_the_word_none_in_a_csv_is_a_category_and_not_a_missing_value(tmp_path):
    path = tmp_path / "holidays.csv"
    path.write_text("holiday,y\n" + "None,1\nEaster,2\n,3\n" * 10)
    dataset = oq.datasets.make_dataset(path, "y")
    assert dataset.feature_names == ("holiday_Easter", "holiday_None", "holiday_nan")


def test_the_word_na_among_numbers_is_a_missing_value(tmp_path, caplog):
    caplog.set_level(logging.INFO)
    path = tmp_path / "table.csv"
    path.write_text(
        "number,whole,word,code,y\n" + "1.5,1,None,NA,1\nNA,2,7,NA,2\n-2, n/a,red,NA,3\n,4,red,NA,NA\n" * 10
    )
    frame = read_table(path)
    assert_array_equal(frame["number"][:4], [1.5, np.nan, -2, np.nan])
    assert_array_equal(frame["whole"][:4], [1, 2, np.nan, 4])
    assert frame["word"][:3].tolist() == ["None", "7", "red"]
    assert set(frame["code"]) == {"NA"}  # no number, so it is text
    assert "column 'number' holds numbers and 10 words such as NA, which are missing values" in caplog.text
    dataset = oq.datasets.make_dataset(path, "y")
    assert dataset.classes == ("1", "2", "3")
    assert dataset.notes[0] == "10 of 40 rows have no 'y' and were left out"


def test_repeated_items_of_small_classes_are_noted_once(table, caplog):
    dataset = oq.datasets.make_dataset(table, "price", n_bins=4, min_count=20)
    [line] = [record for record in caplog.records if "samples repeat items" in record.message]
    assert line.levelno == logging.WARNING
    assert dataset.notes[-1] in line.message
    assert "a smaller sample_size in Sampling(...) avoids that" in dataset.notes[-1]
    roomy = oq.datasets.make_dataset(
        table, "price", n_bins=4, min_count=20, sampling=Sampling(n_validation=5, n_test=5, sample_size=12)
    )
    assert roomy.notes == tuple(note for note in dataset.notes if "repeat" not in note)


def test_texts_become_tfidf_vectors(rng):
    words = np.array(["awful", "dull", "fair", "good", "superb"])
    stars = rng.integers(0, 5, 400)
    frame = pd.DataFrame(
        {"text": [f"a {words[s]} book of number {i % 7}" for i, s in enumerate(stars)], "stars": stars + 1}
    )
    sparse = oq.datasets.make_dataset(frame, "stars", features="text", encoder=tfidf())
    assert "superb" in sparse.feature_names
    assert "superb book" in sparse.feature_names
    assert LogisticRegression().fit(*sparse.train).score(*sparse.test) == 1
    dense = oq.datasets.make_dataset(frame, "stars", features="text", encoder=tfidf(n_components=8))
    assert dense.train.X.shape == (200, 8)
    assert LogisticRegression().fit(*dense.train).score(*dense.test) == 1


def test_missing_texts_are_empty_texts_and_noted():
    frame = pd.DataFrame({"text": ["one two", "two three", None] * 20, "y": [1.0, 2, 3] * 20})
    dataset = oq.datasets.make_dataset(frame, "y", features="text", encoder=tfidf())
    assert dataset.notes[0] == "20 of 60 items have no 'text', which counts as an empty text"
    assert dataset.classes == ("1", "2", "3")
    assert dataset.train.X[dataset.train.y == 2].sum() == 0


def test_a_single_feature_goes_through_the_table_encoder(table):
    dataset = oq.datasets.make_dataset(table, "price", n_bins=4, min_count=20, features="whole", sampling=SAMPLING)
    assert dataset.feature_names == ("whole",)
    assert dataset.train.X.shape[1] == 1


def test_sparse_features_are_saved_as_lists(rng, tmp_path):
    frame = pd.DataFrame({"text": ["one two", "two three", "three one"] * 20, "y": [1, 2, 3] * 20})
    dataset = oq.datasets.make_dataset(frame, "y", features="text", encoder=tfidf(), sampling=SAMPLING)
    dataset.save(tmp_path)
    saved = pd.read_parquet(tmp_path / "test.parquet")
    row = np.zeros(len(dataset.feature_names))
    row[saved["feature"][4]] = saved["value"][4]
    assert_allclose(row, dataset.test.X[[4]].toarray()[0])


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"target": "cost"}, "1 of 1 columns are missing: 'cost'"),
        ({"target": "price"}, "600 different numbers, too many for classes: give n_bins"),
        ({"target": "price", "n_bins": 3, "classes": [1, 2, 3]}, "not both"),
        ({"target": "price", "n_bins": 4, "min_count": 20, "features": ["price"]}, "must not hold the target"),
        ({"target": "price", "n_bins": 4, "min_count": 20, "features": ["weight"]}, "missing: 'weight'"),
        ({"target": "price", "n_bins": 4, "min_count": 20, "encoder": "best"}, "encoder must be one of 'auto'"),
    ],
)
def test_bad_options_are_named(table, options, message):
    with pytest.raises(ValueError, match=message):
        oq.datasets.make_dataset(table, **options)


@pytest.mark.parametrize(
    ("change", "options", "error", "message"),
    [
        ({"number": [np.inf, -np.inf] * 300}, {}, ValueError, "column 'number' .* has 600 infinite values; replace"),
        ({"number": [[1, 2]] * 600}, {}, TypeError, "column 'number' must hold one value per cell, but has a list"),
        ({}, {"features": ["flag", "flag"]}, ValueError, "features must be distinct, but 'flag' occurs 2 times"),
        ({"price": np.nan}, {}, ValueError, "must have rows with a 'price', but all 600 rows lack it"),
        ({}, {"target": 5}, TypeError, "target must be the name of a column as text, got 5; use target='5'"),
    ],
)
def test_bad_cells_and_names_are_named(table, change, options, error, message):
    with pytest.raises(error, match=message):
        oq.datasets.make_dataset(
            table.assign(**change), **({"target": "price", "n_bins": 4, "min_count": 20} | options)
        )


def test_columns_of_the_same_name_are_rejected(table):
    with pytest.raises(ValueError, match="'price' occurs twice"):
        oq.datasets.make_dataset(pd.concat([table, table[["price"]]], axis=1), "price", n_bins=4)


def test_tables_that_cannot_be_read_are_named(tmp_path):
    with pytest.raises(FileNotFoundError, match="no such file"):
        oq.datasets.make_dataset(tmp_path / "absent.csv", "y")
    (tmp_path / "table.docx").write_text("")
    with pytest.raises(ValueError, match=r"expected a file \.csv"):
        oq.datasets.make_dataset(tmp_path / "table.docx", "y")
    (tmp_path / "broken.parquet").write_bytes(b"PAR1 nothing")
    with pytest.raises(ValueError, match=r"broken\.parquet: not a readable parquet file"):
        oq.datasets.make_dataset(tmp_path / "broken.parquet", "y")
    (tmp_path / "ragged.csv").write_text("a,y\n1,2\n1,2,3,4\n")
    with pytest.raises(ValueError, match=r"ragged\.csv, line 3: expected 2 columns, got 4"):
        oq.datasets.make_dataset(tmp_path / "ragged.csv", "y")
    with pytest.raises(TypeError, match="must be a pandas or polars DataFrame or a path"):
        oq.datasets.make_dataset([[1, 2]], "y")
