"""Labels that come back are joined to the rows that were drawn, in every format."""

import pandas as pd
import pytest

from ordinalq.io.table import open_table
from ordinalq.tables.preview import ReturnedLabels

ROWS = pd.DataFrame(
    {"shop": ["a", "b", "a", "c"], "text": ["one, two", 'say "x"', "line\nbreak", "ü"], "n": [1, 2, 3, 4]}
)
# The place of a row is the line in which it ends (its number from 0, in Parquet).
PLACES = {"csv": [2, 3, 5, 6], "tsv": [2, 3, 5, 6], "jsonl": [1, 2, 3, 4], "parquet": [0, 1, 2, 3]}


def write(frame, path):
    if path.suffix == ".parquet":
        frame.to_parquet(path)
    elif path.suffix == ".jsonl":
        frame.to_json(path, orient="records", lines=True, force_ascii=False)
    else:
        frame.to_csv(path, index=False, sep="\t" if path.suffix == ".tsv" else ",")
    return open_table(path)


def returned(tmp_path, places, chosen, labels, **changed):
    drawn = ROWS.iloc[chosen].assign(**changed)
    drawn.insert(0, "line", [places[i] for i in chosen])
    return ReturnedLabels(write(drawn.assign(stars=labels), tmp_path / "returned.csv"), "stars")


@pytest.mark.parametrize("kind", PLACES)
def test_labels_join_the_rows_that_were_drawn(tmp_path, kind):
    file = write(ROWS, tmp_path / f"table.{kind}")
    labels = returned(tmp_path, PLACES[kind], [2, 0], [5, 1])
    file.files[0].fill(labels)
    joined = file.read()
    assert [None if pd.isna(x) or x == "" else str(x) for x in joined["stars"]] == ["1", None, "5", None]
    pd.testing.assert_frame_equal(
        joined[["shop", "text"]].reset_index(drop=True), ROWS[["shop", "text"]], check_dtype=False
    )


@pytest.mark.parametrize("kind", PLACES)
def test_labels_that_were_there_stay(tmp_path, kind):
    file = write(ROWS.assign(stars=["3", None, None, "2"]), tmp_path / f"table.{kind}")
    file.files[0].fill(returned(tmp_path, PLACES[kind], [0, 1], [4, 5]))
    joined = file.read()
    assert [None if pd.isna(x) or x == "" else str(x) for x in joined["stars"]] == ["4", "5", None, "2"]


@pytest.mark.parametrize("kind", PLACES)
def test_labels_may_come_back_twice_and_be_read_alone(tmp_path, kind):
    file = write(ROWS, tmp_path / f"table.{kind}")
    for chosen, labels in (([0, 1], [4, 5]), ([1, 3], [2, 1])):
        file.files[0].fill(returned(tmp_path, PLACES[kind], chosen, labels))
    assert file.columns() == [*ROWS, "stars"]
    [frame] = file.chunks(["stars"])
    assert frame["stars"].tolist() == ["4", "2", None, "1"]
    assert file.read(["n", "stars"]).columns.tolist() == ["n", "stars"]


@pytest.mark.parametrize("kind", PLACES)
def test_a_table_can_be_read_without_its_labels(tmp_path, kind):
    file = write(ROWS, tmp_path / f"table.{kind}")
    file.files[0].fill(returned(tmp_path, PLACES[kind], [0, 1], [4, 5]))
    assert file.read(["shop"]).columns.tolist() == ["shop"]


def test_numbers_are_the_same_however_they_are_written(tmp_path):
    rows = pd.DataFrame({"price": ["1.50", "2e0", "", "-4.0"]})
    drawn = rows.assign(stars=["1", "2", "3", "4"])
    drawn.insert(0, "line", [2, 3, 4, 5])
    labels = write(drawn, tmp_path / "returned.csv")
    file = write(rows.assign(shop="a"), tmp_path / "table.csv")
    file.files[0].fill(ReturnedLabels(labels, "stars"))
    [frame] = file.chunks(["price", "stars"], numbers=["price"])
    assert frame["price"].dtype == float
    assert frame["stars"].tolist() == ["1", "2", "3", "4"]


def test_rows_without_a_label_are_left_out(tmp_path):
    assert returned(tmp_path, PLACES["csv"], [0, 1, 3], ["", "4", None]).labels == {3: "4"}


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"shop": "z", "text": "other", "n": 9}, "its rows are not those of the table"),
        ({"places": [200, 300, 500, 600]}, "2 of its rows are not in the table, such as 200"),
        ({"labels": [None, None]}, "has no labels: fill it first"),
    ],
)
def test_labels_of_another_table_are_rejected(tmp_path, changed, message):
    file = write(ROWS, tmp_path / "table.csv")
    places, labels = changed.pop("places", PLACES["csv"]), changed.pop("labels", [1, 2])

    def read():
        file.files[0].fill(returned(tmp_path, places, [0, 1], labels, **changed))
        return file.read()

    with pytest.raises(ValueError, match=message):
        read()


def test_a_table_that_was_not_drawn_is_rejected(tmp_path):
    with pytest.raises(ValueError, match="expected the rows that were drawn, whose first column is 'line' or 'row'"):
        ReturnedLabels(write(ROWS.assign(stars=1), tmp_path / "table.csv"), "stars")
