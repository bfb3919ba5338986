"""Previews of tables: first rows, kinds and values of label columns."""

import pandas as pd

from ordinalq.io.table import open_table
from ordinalq.tables.preview import preview_table


def look(frame, tmp_path, kind="csv", **options):
    path = tmp_path / f"table.{kind}"
    frame.to_parquet(path) if kind == "parquet" else frame.to_csv(path, index=False)
    return preview_table(open_table(path), **options)


def test_values_have_the_order_of_numbers_or_of_their_appearance(tmp_path):
    frame = pd.DataFrame(
        {"stars": [10, 2, 2, 1] * 20, "word": ["b", "a", "a", "c"] * 20, "id": [f"x{i}" for i in range(80)]}
    )
    found = look(frame, tmp_path, whole=True)
    assert found.n_rows == 80
    assert found.column("stars").words == (("1", 20), ("2", 40), ("10", 20))
    assert found.column("word").words == (("b", 20), ("a", 40), ("c", 20))
    assert found.column("stars").is_numeric
    assert not found.column("word").is_numeric
    assert [column.name for column in found.columns if column.may_be_target] == ["stars", "word"]
    assert found.column("id").kind == ""


def test_missing_values_are_counted_and_are_not_a_class(tmp_path):
    frame = pd.DataFrame({"stars": ["1", "NA", "2", None, "3"] * 10})
    column = look(frame, tmp_path, whole=True).column("stars")
    assert column.n_missing == 20
    assert [word for word, _ in column.words] == ["1", "2", "3"]


def test_lists_in_parquet_are_shown_and_not_used(tmp_path):
    frame = pd.DataFrame({"tags": [["a", "b"]] * 30, "stars": [1, 2, 3] * 10})
    found = look(frame, tmp_path, "parquet", whole=True)
    assert found.column("tags").kind == "nested"
    assert "a" in found.rows[0][0]


def test_only_the_first_chunk_is_read_by_default(tmp_path):
    frame = pd.DataFrame({"stars": [1, 2, 3] * 100})
    assert look(frame, tmp_path).n_rows is None
    assert len(look(frame, tmp_path).rows) == 20
