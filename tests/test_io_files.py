"""Tables in many files: patterns, folders, folders that are columns, packed files; errors name the file."""

import bz2
import gzip
import lzma
import pickle

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from seeds import generator
from summaries import predict_table

import ordinalq as oq
from ordinalq.cli import main
from ordinalq.io import csv, jsonl
from ordinalq.io.files import Wanted
from ordinalq.io.table import open_table


def rows(n=90, rng=None):
    rng = generator() if rng is None else rng
    stars = rng.integers(1, 4, n)
    return pd.DataFrame(
        {"x": stars + rng.normal(size=n), "z": rng.normal(size=n), "shop": rng.choice(["a", "b"], n), "stars": stars}
    )


@pytest.fixture(scope="module")
def model():
    return oq.TableModel(oq.PACC(), features=["x", "z"]).fit(rows(300), "stars")


def packed_with(ending, content):
    if ending == ".zst":
        stream = pa.BufferOutputStream()
        with pa.CompressedOutputStream(stream, "zstd") as file:
            file.write(content)
        return stream.getvalue().to_pybytes()
    return {".gz": gzip, ".bz2": bz2, ".xz": lzma}[ending].compress(content)


def test_files_are_read_as_if_they_were_one(tmp_path, model):
    frame = rows(100)
    whole = tmp_path / "whole.csv"
    frame.to_csv(whole, index=False)
    folder = tmp_path / "parts"
    folder.mkdir()
    for i in range(4):
        frame[25 * i : 25 * (i + 1)].to_csv(folder / f"{i}.csv", index=False)
    (folder / "_SUCCESS").write_text("")
    (folder / ".0.csv.crc").write_text("x")
    expected = predict_table(model, open_table(whole), by="shop").frame()
    for given in (folder, str(folder / "*.csv"), str(tmp_path / "**" / "[0-9].csv"), sorted(folder.glob("*.csv"))):
        found = predict_table(model, open_table(given), by="shop").frame()
        pd.testing.assert_frame_equal(found, expected, rtol=1e-12)
    assert open_table(folder).read().reset_index(drop=True)["x"].astype(float).equals(frame["x"])


@pytest.mark.parametrize("ending", [".gz", ".bz2", ".xz", ".zst"])
@pytest.mark.parametrize("kind", ["csv", "jsonl"])
def test_compressed_text_is_unpacked(tmp_path, ending, kind):
    frame = rows(50)
    text = frame.to_csv(index=False) if kind == "csv" else frame.to_json(orient="records", lines=True)
    path = tmp_path / f"t.{kind}{ending}"
    path.write_bytes(packed_with(ending, text.encode()))
    assert sum(map(len, open_table(path).chunks(["x"]))) == 50
    *_, (_, last) = open_table(path).blocks(Wanted(["x"]))
    assert last.done == path.stat().st_size
    path.write_bytes(packed_with(ending, text.encode())[:-30])
    with pytest.raises(ValueError, match=rf"t\.{kind}"):
        open_table(path).read()


@pytest.mark.parametrize("kind", ["csv", "parquet"])
def test_folders_named_by_values_are_columns(tmp_path, model, kind):
    frame = rows(120).assign(year=np.repeat([2023, 2024, 2025], 40))
    for year, part in frame.groupby("year"):
        folder = tmp_path / f"reviews/year={year}"
        folder.mkdir(parents=True)
        part = part.drop(columns="year")
        part.to_csv(folder / "a.csv", index=False) if kind == "csv" else part.to_parquet(folder / "a.parquet")
    table = open_table(tmp_path / "reviews")
    assert table.columns()[-1] == "year"
    found = predict_table(model, table, by="year")
    assert found.keys.tolist() == [2023, 2024, 2025]
    assert found.n_items.tolist() == [40, 40, 40]
    one = predict_table(model, open_table(tmp_path / "reviews" / "year=2024"), by="year")
    np.testing.assert_allclose(one.prevalences[0], found.prevalences[1], rtol=1e-12)
    (tmp_path / "reviews/year=__HIVE_DEFAULT_PARTITION__").mkdir()
    (tmp_path / "reviews/year=2025" / f"a.{kind}").rename(
        tmp_path / "reviews/year=__HIVE_DEFAULT_PARTITION__" / f"a.{kind}"
    )
    assert predict_table(model, open_table(tmp_path / "reviews"), by="year").keys.tolist() == [2023, 2024, None]


def test_all_subcommands_take_many_files_and_workers(tmp_path, model, capsys):
    model.save(tmp_path / "m.oq")
    names = [str(tmp_path / f"{i}.csv") for i in range(2)]
    for name in names:
        rows(200).to_csv(name, index=False)

    def said(verb, files, *more):
        assert main([verb, str(tmp_path / "m.oq"), *files, *more, "--by", "shop", "--json"]) == 0
        return capsys.readouterr().out

    for verb, more in {"predict": (), "plan": (), "compare": ("a", "b")}.items():
        expected = said(verb, [str(tmp_path / "*.csv")], *more)
        assert said(verb, names, *more) == expected
        if verb == "compare":
            assert said(verb, names, *more, "--n-jobs", "2") == expected


def test_checksums_of_parquet_files_are_checked(tmp_path, model):
    path = tmp_path / "t.parquet"
    rows(500).to_parquet(path, write_page_checksum=True, compression="none", use_dictionary=False)
    content = bytearray(path.read_bytes())
    content[1000] ^= 1
    path.write_bytes(content)
    with pytest.raises(ValueError, match=r"t\.parquet: not a readable parquet file: .*CRC"):
        predict_table(model, open_table(path))


def test_errors_name_the_file_and_the_row(tmp_path, model):
    frame = rows(20)
    for i in range(3):
        frame.to_csv(tmp_path / f"{i}.csv", index=False)
    text = (tmp_path / "1.csv").read_text().splitlines()
    text[4] = "oops" + text[4][text[4].index(",") :]
    (tmp_path / "1.csv").write_text("\n".join(text))
    with pytest.raises(ValueError, match=r"1\.csv, line 5: expected a number in column 'x', got 'oops'"):
        predict_table(model, open_table(tmp_path))
    frame.drop(columns="z").to_csv(tmp_path / "1.csv", index=False)
    with pytest.raises(ValueError, match=r"1\.csv, line 1: 1 of .* columns are missing: 'z'"):
        predict_table(model, open_table(tmp_path))
    with pytest.raises(ValueError, match=r"1\.csv: lacks the column 'z' that .*0\.csv has"):
        open_table(tmp_path).read()
    frame.assign(more=1).to_csv(tmp_path / "1.csv", index=False)
    with pytest.raises(ValueError, match=r"1\.csv: has a column 'more' that .*0\.csv lacks"):
        open_table(tmp_path).read()
    (tmp_path / "1.csv").write_text("x,z,shop,stars\n")
    assert len(open_table(tmp_path).read()) == 40  # a part without rows is not an error


def test_groups_of_another_kind_name_the_file(tmp_path, model):
    frame = rows(20).assign(shop=range(20))
    frame.to_parquet(tmp_path / "0.parquet")
    frame.assign(shop="a").to_parquet(tmp_path / "1.parquet")
    with pytest.raises(ValueError, match=r"1\.parquet: expected number in column 'shop', as .*0\.parquet has"):
        predict_table(model, open_table(tmp_path), by="shop")


def test_mixtures_are_rejected(tmp_path, capsys):
    rows(5).to_csv(tmp_path / "0.csv", index=False)
    rows(5).to_parquet(tmp_path / "1.parquet")
    with pytest.raises(ValueError, match=r"1\.parquet: expected a csv file, as .*0\.csv is, got parquet"):
        open_table(tmp_path)
    (tmp_path / "year=1").mkdir()
    rows(5).to_csv(tmp_path / "year=1" / "2.csv", index=False)
    with pytest.raises(ValueError, match=r"2\.csv: expected folders such as year=\.\.\. for all files or for none"):
        open_table(str(tmp_path / "**" / "*.csv"))
    (tmp_path / "year=1" / "2.csv").write_text("x,year\n1,2\n")
    with pytest.raises(ValueError, match=r"2\.csv: has a column 'year', which is also the name of its folder"):
        open_table(tmp_path / "year=1").read()
    with pytest.raises(ValueError, match=r"0\.csv: expected each file once, got it twice"):
        open_table([tmp_path / "0.csv", str(tmp_path / "*.csv")])
    assert main(["predict", "m.oq", "-", str(tmp_path / "0.csv")]) == 2
    assert "standard input: expected no other files" in capsys.readouterr().err


@pytest.mark.parametrize("kind", ["csv", "jsonl", "parquet"])
def test_a_block_gives_the_same_rows_in_another_process(tmp_path, monkeypatch, kind):
    monkeypatch.setattr(csv, "BLOCK", 300)
    monkeypatch.setattr(csv, "HEADER", 300)
    monkeypatch.setattr(jsonl, "BLOCK", 300)
    frame = rows(200).assign(note='a "quoted", cell\nof two lines, ä')
    path = tmp_path / f"t.{kind}"
    if kind == "csv":
        frame.to_csv(path, index=False)
    elif kind == "jsonl":
        frame.to_json(path, orient="records", lines=True, force_ascii=False)
    else:
        frame.to_parquet(path, row_group_size=30)
    wanted = Wanted(["x", "note", "shop"], ["x"])
    table = open_table(path)
    here = pd.concat(frame for file, block in table.blocks(wanted) for frame, _ in file.frames(block, wanted))
    sent = [pickle.dumps((file, file.light(block))) for file, block in table.blocks(wanted)]
    assert max(map(len, sent)) < 2000  # no text travels
    there = []
    for message in reversed(sent):
        file, block = pickle.loads(message)
        there.append(pd.concat(frame for frame, _ in file.frames(block, wanted)))
    pd.testing.assert_frame_equal(pd.concat(there[::-1]), here)
    assert len(here) == 200
    assert len(sent) > 5


@pytest.mark.parametrize("names", [["0.csv", "1.csv", "2.csv"], ["1.csv", "0.csv"]])
def test_one_of_many_files_may_have_no_rows_but_not_all(tmp_path, model, names):
    frame = rows(60)
    frame.to_csv(tmp_path / "1.csv", index=False)
    frame.head(0).to_csv(tmp_path / "0.csv", index=False)
    frame.head(0).to_csv(tmp_path / "2.csv", index=False)
    found = predict_table(model, open_table([tmp_path / name for name in names]), by="shop").frame()
    expected = predict_table(model, open_table(tmp_path / "1.csv"), by="shop").frame()
    pd.testing.assert_frame_equal(found, expected)
    with pytest.raises(ValueError, match=r"2\.csv: expected rows, but the file has none after its header"):
        predict_table(model, open_table([tmp_path / "0.csv", tmp_path / "2.csv"]), by="shop")
