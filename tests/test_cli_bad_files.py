"""Bad files and options of `fit`, `predict` and `evaluate`: one clear line, exit code 2, nothing left behind."""

import gzip
import json
import pickle
import zipfile

import numpy as np
import pandas as pd
import pytest

from ordinalq.cli import main
from ordinalq.io.table import open_table

WORDS = ["awful", "poor", "fair", "good", "great"]


def rows(n=60):
    """Rows of review, price, day, size, product and stars; the words tell the stars."""
    table = []
    for i in range(n):
        star = i % 5 + 1
        review = f"{WORDS[star - 1]} thing it is {WORDS[(star - 1 + (i % 7 == 0)) % 5]} indeed"
        table.append(
            {
                "review": review,
                "price": 10.0 * star + i % 3,
                "day": f"2024-0{star}-1{i % 3}",
                "size": "SML"[i % 3],
                "product": f"p{i % 4}",
                "stars": star,
            }
        )
    return table


def csv_text(table, separator=","):
    lines = [separator.join(table[0])]
    return "\n".join(lines + [separator.join(map(str, row.values())) for row in table]) + "\n"


GOOD = csv_text(rows())
UNLABELLED = csv_text([{name: row[name] for name in row if name != "stars"} for row in rows()])


@pytest.fixture(scope="module")
def models(tmp_path_factory):
    """A model of all columns, and one of the text alone."""
    folder = tmp_path_factory.mktemp("models")
    (folder / "train.csv").write_text(GOOD)
    fit = ["fit", str(folder / "train.csv"), "--target", "stars", "--method", "PACC"]
    columns = "price,day,size"
    assert main([*fit, "--features", columns, "--text", "review", "--out", str(folder / "all.oq")]) == 0
    assert main([*fit, "--text", "review", "--out", str(folder / "text.oq")]) == 0
    return folder


def refused(arguments, capsys, folder):
    """Run a command that must fail; return its one line."""
    before = {path.name for path in folder.iterdir()}
    capsys.readouterr()
    assert main(list(map(str, arguments))) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err.startswith("ordinalq: ")
    assert captured.err.count("\n") == 1, captured.err
    assert "Traceback" not in captured.err
    assert len(captured.err) < 500
    assert {path.name for path in folder.iterdir()} == before
    return captured.err


def edited(text, line, replacement):
    """Replace a line of a text, counted from one."""
    lines = text.split("\n")
    lines[line - 1] = replacement
    return "\n".join(lines)


TRAINING = {
    "empty": ("", "train.csv: expected a header and rows, but the file is empty"),
    "line break only": ("\n", "line 1: expected the names of the columns, got an empty line"),
    "header only": ("review,stars\n", "expected rows, but the file has none after its header"),
    "header without line break": ("review,stars", "expected rows, but the file has none after its header"),
    "missing target": (GOOD.replace("stars", "points"), "1 of 1 columns are missing: 'stars'"),
    "one column": ("stars\n" + "\n".join("12345" * 8), "has no column to learn from besides 'stars'"),
    "one class": ("review,stars\n" + "good,1\n" * 20, "at least 2 ordered classes, got 1 class: [1]"),
    "words as labels": (
        "review,stars\n" + "".join(f"{word} it is,{word}\n" for word in WORDS * 9),
        "has labels without an order (awful, fair, good, great, poor): give all of them in ascending order",
    ),
    "one word as label": (
        "review,stars\n" + "good thing,fine\n" * 20,
        "column 'stars' must have at least 2 classes, got 'fine' in all rows",
    ),
    "text as labels": (
        "review,stars\n" + "".join(f"good thing,word {i}\n" for i in range(300)),
        "has 300 different values, too many for classes. Use the column of the labels",
    ),
    "word among labels": (
        edited(GOOD, 9, "nice,1,2024-01-01,S,p1,five"),
        "line 9: expected a number in column 'stars'",
    ),
    "missing label": (
        edited(GOOD, 7, "nice,1,2024-01-01,S,p1,"),
        "line 7: expected a label in column 'stars', got nothing",
    ),
    "no labels": ("review,stars\n" + "good,\n" * 9, "column 'stars' has no labels at all"),
    "measurement": (
        "review,stars\n" + "".join(f"good,{i / 7:.3f}\n" for i in range(60)),
        "has 60 different numbers, too many for classes",
    ),
    "infinite label": (edited(GOOD, 5, "nice,1,2024-01-01,S,p1,inf"), "line 5: expected a number in column 'stars'"),
    "cell too few": (edited(GOOD, 6, "nice,1,2024-01-01,S,5"), "line 6: expected 6 columns, got 5"),
    "cell too many": (edited(GOOD, 6, "nice, and so on,1,2024-01-01,S,p1,5"), "line 6: expected 6 columns, got 7"),
    "open quotation": (
        edited(GOOD, 8, '"nice,1,2024-01-01,S,p1,5'),
        "line 8: a quoted cell does not end, or has more than",
    ),
    "text after quotation": (edited(GOOD, 8, '"nice"thing,1,2024-01-01,S,p1,5'), "line 8: ',' expected after"),
    "mixed types": (edited(GOOD, 12, "nice,cheap,2024-01-01,S,p1,5"), "line 12: expected a number in column 'price'"),
    "infinite number": (
        edited(GOOD, 12, "nice,inf,2024-01-01,S,p1,5"),
        "line 12: expected a finite number in column 'price'",
    ),
    "column twice": (
        GOOD.replace("size", "price"),
        "line 1: expected columns of different names, but 'price' occurs twice",
    ),
    "latin-1": (
        GOOD.replace("fair", "für").encode("latin-1"),
        "line 4: expected utf-8 text, got the byte 0xfc; save the file",
    ),
    "utf-16": (GOOD.encode("utf-16"), "expected utf-8 text, got UTF-16"),
    "null characters": (GOOD.replace("fair", "fa\0r"), "line 4: expected text, got a null character"),
    "binary rubbish": (np.random.default_rng(0).bytes(5000), "expected utf-8 text"),
    "an image": (b"\x89PNG\r\n\x1a\n" + bytes(200), "expected utf-8 text"),
    "a pickle": (pickle.dumps(rows(), protocol=0), "train.csv"),
}


@pytest.mark.parametrize("case", TRAINING)
def test_bad_training_tables(case, capsys, tmp_path):
    content, message = TRAINING[case]
    path = tmp_path / "train.csv"
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    error = refused(
        ["fit", path, "--target", "stars", "--method", "PACC", "--out", tmp_path / "model.oq"], capsys, tmp_path
    )
    assert message in error


OTHER_FORMATS = {
    "empty.jsonl": (b"", "but the file is empty"),
    "list.jsonl": (b"[1, 2]\n", "line 1: expected one JSON object per line, got '[1, 2]'"),
    "broken.jsonl": (b'{"stars": 1}\n{"stars": 2\n', "line 2: expected one JSON object per line"),
    "array.jsonl": (
        b'{"stars": 1, "review": "good"}\n{"stars": 2, "review": ["good", "bad"]}\n',
        "line 2: expected one value in 'review', got a list",
    ),
    "object.jsonl": (b'{"stars": 1, "review": {"a": 1}}\n', "line 1: expected one value in 'review', got an object"),
    "wrong.jsonl": (b'{"points": 1, "review": "good"}\n', "1 of 2 columns are missing: 'stars'"),
    "latin.jsonl": (
        '{"stars": 1, "review": "für"}\n'.encode("latin-1"),
        "line 1: expected utf-8 text, got the byte 0xfc",
    ),
    "rubbish.parquet": (np.random.default_rng(0).bytes(5000), "not a readable parquet file"),
    "empty.parquet": (b"", "not a readable parquet file"),
    "text.parquet": (GOOD.encode(), "not a readable parquet file"),
    "comma.tsv": (GOOD.encode(), "The columns are separated by ','. Use --format csv."),
    "tab.csv": (GOOD.replace(",", "\t").encode(), "The columns are separated by '\\t'. Use --format tsv."),
    "bar.csv": (GOOD.replace(",", "|").encode(), "separated by '|'. Save the table with commas, semicolons or tabs."),
    "old.xls": (b"\xd0\xcf\x11\xe0 and so on\n", "expected an .xlsx file. Save it as .xlsx or CSV in Excel."),
    "plain.csv.gz": (GOOD.encode(), "not a readable csv file: Not a gzipped file"),
    "short.csv.gz": (gzip.compress(GOOD.encode())[:-20], "not a readable csv file"),
    "table.xlsx": (b"PK", "not a readable Excel or OpenDocument file"),
    "text.xlsx": (GOOD.encode(), "Give it the extension of its format, such as .csv, or save it as CSV in Excel."),
    "renamed.csv": (b"PK\x03\x04 and so on\n", "got a file of Excel. Save it as CSV in Excel"),
    "older.csv": (b"\xd0\xcf\x11\xe0 and so on\n", "got a file of Excel. Save it as CSV in Excel"),
    "no_ending": (GOOD.encode(), "expected a file .csv, .tsv, .xlsx, .ods, .jsonl or .parquet"),
}


@pytest.mark.parametrize("name", OTHER_FORMATS)
def test_bad_files_of_other_formats(name, capsys, tmp_path):
    content, message = OTHER_FORMATS[name]
    (tmp_path / name).write_bytes(content)
    error = refused(
        ["fit", tmp_path / name, "--target", "stars", "--text", "review", "--out", tmp_path / "model.oq"],
        capsys,
        tmp_path,
    )
    assert message in error
    assert name in error


def test_parquet_of_lists_and_truncated_parquet(capsys, tmp_path):
    frame = pd.DataFrame(rows())
    frame["tags"] = [["a", "b"]] * len(frame)
    frame.to_parquet(tmp_path / "train.parquet")
    fit = ["fit", tmp_path / "train.parquet", "--target", "stars", "--out", tmp_path / "model.oq"]
    assert "expected one value per cell in column 'tags', got list" in refused(fit, capsys, tmp_path)
    whole = (tmp_path / "train.parquet").read_bytes()
    (tmp_path / "train.parquet").write_bytes(whole[: len(whole) // 2])
    assert "train.parquet: not a readable parquet file" in refused(fit, capsys, tmp_path)
    frame.drop(columns="tags").iloc[:0].to_parquet(tmp_path / "train.parquet")
    assert "expected rows, but the file has none" in refused(fit, capsys, tmp_path)


def test_rows_under_a_header_of_another_separator_name_the_separators(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text("review|stars\nnice, but small|3\n")
    with pytest.raises(ValueError, match=r"t\.csv, line 2: expected 1 column, got 2\. A \.csv file has commas or"):
        open_table(path).read()


NEW = {
    "empty": ("", "but the file is empty"),
    "header only": ("review,price,day,size\n", "expected rows, but the file has none after its header"),
    "missing column": (UNLABELLED.replace("price", "cost"), "1 of 4 columns are missing: 'price'"),
    "all columns missing": ("a,b\n1,2\n", "4 of 4 columns are missing: 'review', 'price', 'day', 'size'"),
    "other separator": (UNLABELLED.replace(",", "|"), "columns are missing"),
    "word in a number": (
        edited(UNLABELLED, 11, "nice,cheap,2024-01-01,S,p1"),
        "line 11: expected a number in column 'price', got 'cheap'",
    ),
    "infinite number": (
        edited(UNLABELLED, 11, "nice,-inf,2024-01-01,S,p1"),
        "line 11: expected a finite number in column 'price'",
    ),
    "no date": (
        edited(UNLABELLED, 11, "nice,1,yesterday,S,p1"),
        "line 11: expected a date such as 2024-01-31 in column 'day', got 'yesterday'",
    ),
    "no such day": (
        edited(UNLABELLED, 11, "nice,1,2024-02-31,S,p1"),
        "line 11: expected a date such as 2024-01-31 in column 'day'",
    ),
    "ragged": (edited(UNLABELLED, 11, "nice,1"), "line 11: expected 5 columns, got 2"),
    "late rubbish": (UNLABELLED.encode() + b"\xff\xfe\x00\x01", "line 62: expected utf-8 text, got the byte 0xff"),
    "cp1252": (
        UNLABELLED.replace("awful", "“awful”").encode("cp1252"),
        "line 2: expected utf-8 text, got the byte 0x93",
    ),
}


@pytest.mark.parametrize("case", NEW)
def test_bad_new_tables(case, models, capsys, tmp_path):
    content, message = NEW[case]
    path = tmp_path / "new.csv"
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    out = ["--out", tmp_path / "result.csv", "--plot", tmp_path / "result.png"]
    assert message in refused(["predict", models / "all.oq", path, *out], capsys, tmp_path)


def test_columns_of_another_type_than_in_training(models, capsys, tmp_path):
    good = pd.DataFrame(rows())
    path, out = tmp_path / "new.parquet", ["--out", tmp_path / "result.csv"]
    changes = {
        "expected texts in column 'review', as in training, got": good.assign(review=good["price"]),
        "expected numbers in column 'price', as in training, got dates": good.assign(price=pd.Timestamp("2024-01-01")),
        "expected dates in column 'day', as in training, got numbers": good.assign(day=good["price"]),
        "row 3: expected a number in column 'price', got 'x'": good.assign(price=["1", "2", "3", "x"] + ["5"] * 56),
    }
    for message, frame in changes.items():
        frame.to_parquet(path)
        assert message in refused(["predict", models / "all.oq", path, *out], capsys, tmp_path)


def test_missing_columns_of_parquet_are_in_no_line(models, capsys, tmp_path):
    table = pd.DataFrame(rows()).drop(columns=["review", "stars"]).assign(**dict.fromkeys("abcdefgh", 1))
    table[table["price"] > 10].to_parquet(tmp_path / "new.parquet")  # with its index
    error = refused(["predict", models / "text.oq", tmp_path / "new.parquet"], capsys, tmp_path)
    assert "new.parquet: 1 of 1 columns are missing: 'review'; there are 12 columns: 'price', " in error
    assert error.endswith(" and 2 more.\n")


def test_missing_groups_are_a_column_that_is_named(models, capsys, tmp_path):
    (tmp_path / "new.csv").write_text(UNLABELLED)
    predict = ["predict", models / "all.oq", tmp_path / "new.csv", "--by", "shop", "--out", tmp_path / "result.csv"]
    assert "columns are missing: 'shop'" in refused(predict, capsys, tmp_path)


LABELLED = {
    "unknown class": (
        edited(GOOD, 9, "nice,1,2024-01-01,S,p1,6"),
        "line 9: column 'stars' has a label that is not among the classes 1, 2, 3, 4, 5: '6'",
    ),
    "word": (
        edited(GOOD, 9, "nice,1,2024-01-01,S,p1,six"),
        "line 9: column 'stars' has a label that is not among the classes",
    ),
    "missing label": (edited(GOOD, 9, "nice,1,2024-01-01,S,p1,"), "line 9: expected a label in column 'stars'"),
    "no target": (UNLABELLED, "columns are missing: 'stars'"),
    "one class only": (csv_text([row for row in rows() if row["stars"] == 4]), "must have items of every class"),
}


@pytest.mark.parametrize("case", LABELLED)
def test_bad_labelled_tables(case, models, capsys, tmp_path):
    content, message = LABELLED[case]
    (tmp_path / "labelled.csv").write_text(content)
    assert message in refused(["evaluate", models / "all.oq", tmp_path / "labelled.csv"], capsys, tmp_path)


def tampered(content):
    """Change the model inside of a model file."""
    at = content.index(b"model.skops") + 5000
    return content[:at] + bytes([content[at] ^ 1]) + content[at + 1 :]


def repacked(content, **changes):
    """Write a model file again with another description."""
    import io

    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        meta, payload = json.loads(archive.read("meta.json")), archive.read("model.skops")
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w") as archive:
        archive.writestr("meta.json", json.dumps({**meta, **changes}))
        archive.writestr("model.skops", payload)
    return stream.getvalue()


MODELS = {
    "empty": (lambda good: b"", "but the file is empty"),
    "truncated": (lambda good: good[: len(good) // 2], "the file is damaged or incomplete"),
    "tampered": (tampered, "the file is damaged or incomplete"),
    "relabelled": (lambda good: repacked(good, classes=[5, 4, 3, 2, 1]), "the checksum does not match"),
    "newer": (lambda good: repacked(good, format=7), "was made by a newer ordinalq"),
    "a pickle": (lambda good: pickle.dumps({"classes": [1, 2, 3]}), "it looks like a pickle, which is never loaded"),
    "a packed pickle": (lambda good: gzip.compress(pickle.dumps([1])), "it looks like a pickle, which is never loaded"),
    "a table": (lambda good: GOOD.encode(), "but it is something else"),
    "rubbish": (lambda good: np.random.default_rng(0).bytes(3000), "expected a model of ordinalq"),
}


@pytest.mark.parametrize("verb", ["predict", "evaluate"])
@pytest.mark.parametrize("case", MODELS)
def test_bad_models(case, verb, models, capsys, tmp_path):
    change, message = MODELS[case]
    (tmp_path / "model.oq").write_bytes(change((models / "all.oq").read_bytes()))
    (tmp_path / "new.csv").write_text(GOOD)
    out = ["--out", tmp_path / "result.csv"] if verb == "predict" else []
    assert message in refused([verb, tmp_path / "model.oq", tmp_path / "new.csv", *out], capsys, tmp_path)


FIT_OPTIONS = {
    "typo in method": (["--method", "OPAC"], "did you mean OPACC?"),
    "paper name as method": (["--method", "o-PACC"], "did you mean OPACC?"),
    "method without tau": (["--method", "PACC", "--tau", "1"], "PACC has no parameter 'tau'; it has: solver"),
    "unknown parameter": (["--set", "bins=3", "--method", "OPACC"], "OPACC has no parameter 'bins'"),
    "parameter without method": (["--tau", "1"], "AutoQuantifier has no parameter 'tau'"),
    "unknown budget": (["--budget", "slow"], "budget must be one of 'fast', 'balanced', 'best', got 'slow'"),
    "parameter without value": (["--set", "tau"], "--set must be key=value"),
    "negative tau": (["--tau", "-1", "--method", "OPACC"], "tau must be"),
    "word as tau": (["--tau", "much", "--method", "OPACC"], "tau must be"),
    "unknown classifier": (["--classifier", "svm"], "classifier must be one of 'logistic', 'forest'"),
    "classifier for HDx": (["--method", "HDx", "--classifier", "forest"], "uses no classifier"),
    "text for HDx": (
        ["--method", "HDx", "--text", "review"],
        "HDx compares histograms of columns and cannot take the text",
    ),
    "target as feature": (["--features", "price,stars"], "target 'stars' must not be among the columns"),
    "unknown feature": (["--features", "price,colour"], "columns are missing: 'colour'"),
    "unknown text": (["--text", "title"], "columns are missing: 'title'"),
    "text and category": (["--text", "review", "--categories", "review"], "must be either text or category"),
    "text of symbols": (["--text", "size"], "has no word that occurs in two rows"),
    "too few classes": (["--classes", "1,2"], "label that is not among the classes 1, 2"),
    "classes twice": (["--classes", "1,2,3,4,5,5"], "classes must be distinct"),
    "empty class": (["--classes", "0,1,2,3,4,5"], "at least one item of every class, but has none of [0]"),
    "unknown format": (["--format", "word"], "format must be one of 'csv'"),
    "unknown encoding": (["--encoding", "utf-9"], "encoding must be one that Python knows"),
    "negative seed": (["--random-state", "-1"], "Invalid value for '--random-state'"),
}


@pytest.mark.parametrize("case", FIT_OPTIONS)
def test_bad_options_of_fit(case, capsys, tmp_path):
    options, message = FIT_OPTIONS[case]
    (tmp_path / "train.csv").write_text(GOOD)
    fit = ["fit", tmp_path / "train.csv", "--target", "stars", "--out", tmp_path / "model.oq"]
    assert message in refused([*fit, *options], capsys, tmp_path)


def test_outputs_are_checked_before_anything_is_done(models, capsys, tmp_path):
    model, new = models / "text.oq", tmp_path / "new.csv"
    new.write_text(GOOD)
    thesis = tmp_path / "thesis.txt"
    thesis.write_text("mine")
    (tmp_path / "empty").mkdir()
    fit = ["fit", new, "--target", "stars", "--text", "review", "--out"]
    predict = ["predict", model, new]
    for arguments, message in {
        (*fit, thesis): "thesis.txt: exists and is not an ordinalq model. Use another file or --force",
        (*fit, new): "expected the output to be a different file from the input",
        (*fit, tmp_path / "model.csv"): "model.csv: expected the name of a model file, such as model.oq",
        (*fit, tmp_path): "got a folder",
        (*fit, tmp_path / "absent" / "model.oq"): "absent: no such folder",
        (*predict, "--out", model): "expected the output to be a different file from the input",
        (*predict, "--out", new): "expected the output to be a different file from the input",
        (*predict, "--out", tmp_path / "result.ods"): "expected a name that ends with .csv, .tsv, .xlsx, .jsonl or",
        (*predict, "--plot", tmp_path / "result.gif"): "expected a name that ends with .png, .svg or .pdf",
        (*predict, "--plot", tmp_path / "absent" / "result.png"): "absent: no such folder",
        (*predict, "--interval", "95"): "--interval must be a level between 0 and 1",
        (*predict, "--interval", "nan"): "--interval must be a level between 0 and 1",
        (*predict, "--estimand", "stars"): "--estimand must be one of 'sample', 'population'",
        ("predict", model, tmp_path / "absent.csv"): "absent.csv: no such file",
        ("predict", model, tmp_path / "empty"): "empty: expected a folder with .csv, .tsv, .xlsx, .ods, .jsonl",
        ("predict", model, tmp_path / "*.tsv"): "*.tsv: no file matches the pattern",
        ("predict", tmp_path / "absent.oq", new): "absent.oq: no such file",
        ("evaluate", model, new, "--protocol", "appoq"): "--protocol must be one of 'app', 'app-oq', 'npp'",
        ("evaluate", model, new, "--protocol", "app-oq"): "--protocol must be app-oq:FRACTION",
        ("evaluate", model, new, "--protocol", "app-oq:2"): "fraction must be",
        ("evaluate", model, new, "--by", "shop"): "columns are missing: 'shop'",
        ("evaluate", model, new, "--samples", "0"): "--samples must be an integer >= 1",
        ("evaluate", model, new, "--sample-size", "0"): "--sample-size must be an integer >= 1",
    }.items():
        assert message in refused(arguments, capsys, tmp_path), arguments
    assert thesis.read_text() == "mine"
    assert new.read_text() == GOOD


@pytest.mark.parametrize("verb", ["predict", "compare", "plan", "evaluate"])
@pytest.mark.parametrize("ending", ["csv", "xlsx"])
def test_swapped_model_and_table_are_named_in_the_right_order(verb, ending, models, capsys, tmp_path):
    model, new = models / "text.oq", tmp_path / f"new.{ending}"
    frame = pd.DataFrame(rows())
    frame.to_csv(new) if ending == "csv" else frame.to_excel(new, engine="xlsxwriter")
    groups = ["--by", "product", "p1", "p2"] if verb == "compare" else []
    assert f"Use {model} {new}." in refused([verb, new, model, *groups], capsys, tmp_path)
    assert f"{new}: expected a model, which `ordinalq fit` writes, got a table" in refused(
        [verb, new, new, *groups], capsys, tmp_path
    )
    assert f"{model}: expected a table, got a model" in refused([verb, model, model, *groups], capsys, tmp_path)
    assert f"{model}: expected a table, got a model" in refused(
        ["fit", model, "--target", "stars", "--out", tmp_path / "model.oq"], capsys, tmp_path
    )


def test_failure_at_the_end_leaves_the_earlier_results(models, capsys, tmp_path, monkeypatch):
    (tmp_path / "new.csv").write_text(UNLABELLED)
    (tmp_path / "result.csv").write_text("earlier")

    def fail(*_, **__):
        raise ValueError("no ink")

    monkeypatch.setattr("ordinalq.io.writing.save_figure", fail)
    outputs = ["--out", tmp_path / "result.csv", "--plot", tmp_path / "result.png"]
    error = refused(["predict", models / "text.oq", tmp_path / "new.csv", *outputs], capsys, tmp_path)
    assert error == "ordinalq: no ink\n"
    assert (tmp_path / "result.csv").read_text() == "earlier"


def test_interruption_leaves_nothing_behind(models, capsys, tmp_path, monkeypatch):
    (tmp_path / "new.csv").write_text(UNLABELLED)

    def interrupt(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr("ordinalq.io.writing.write_table", interrupt)
    arguments = ["predict", models / "text.oq", tmp_path / "new.csv", "--out", tmp_path / "result.csv"]
    assert main(list(map(str, arguments))) == 130
    assert capsys.readouterr().err.endswith("ordinalq: interrupted.\n")
    assert [path.name for path in tmp_path.iterdir()] == ["new.csv"]


def test_there_are_at_least_forty_bad_files():
    assert sum(map(len, (TRAINING, OTHER_FORMATS, NEW, LABELLED, MODELS))) >= 40
