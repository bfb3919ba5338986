"""Reading tables: the fast and the slow reader give the same results and errors."""

import csv
import io
import json
import os
import re
import subprocess
import sys
import threading
import time
import zipfile

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_array_equal

from ordinalq.io import columns, writing
from ordinalq.io import columns as cells
from ordinalq.io import csv as delimited
from ordinalq.io.columns import MAX_COLUMNS, as_words, column_kinds, convert_types, typed
from ordinalq.io.files import MAX_CELL
from ordinalq.io.table import open_table


def written(path, content):
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return path


# Delimited text


def reference(text, separator=","):
    """Rows and lines by the csv module alone; None for what it refuses."""
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=separator, strict=True)
    rows, lines = [], []
    try:
        n_columns = len(next(reader))
        for row in reader:
            if row:
                if len(row) != n_columns:
                    return None
                rows.append([cell or None for cell in row])
                lines.append(reader.line_num)
    except csv.Error:
        return None
    return (rows, lines) if rows else None


def random_text(rng):
    """Cells with quotes, separators and line breaks, written properly or thrown together."""
    alphabet = ["a", "b", '"', '""', " ", "é", 'x"y', "\n", "\r\n", ",", "1"]
    if rng.random() < 0.7:
        rows = [["".join(rng.choice(alphabet, rng.integers(6))) for _ in range(3)] for _ in range(rng.integers(1, 12))]
        stream = io.StringIO()
        csv.writer(stream, lineterminator=str(rng.choice(["\n", "\r\n"]))).writerows([["a", "b", "c"], *rows])
        return stream.getvalue()
    return "a,b,c\n" + "".join(rng.choice([*alphabet, ",", ",", "\n"], rng.integers(1, 60)))


def test_any_text_gives_the_rows_lines_and_errors_of_the_csv_module(rng, tmp_path, monkeypatch):
    seen = {True: 0, False: 0}
    for _ in range(400):
        monkeypatch.setattr(delimited, "BLOCK", int(rng.choice([7, 20, 50, 1 << 20])))
        text = random_text(rng)
        path = written(tmp_path / "t.csv", text)
        expected = reference(text)
        seen[expected is not None] += 1
        if expected is None:
            with pytest.raises(ValueError, match=r"t\.csv"):
                open_table(path).read()
            continue
        frame = open_table(path).read()
        found = frame.astype(object).where(frame.notna(), None).to_numpy().tolist()
        assert (found, frame.index.tolist()) == expected, text
    assert min(seen.values()) > 40


def test_a_column_of_numbers_only_is_read_as_numbers(tmp_path):
    path = written(tmp_path / "t.csv", "a,b,c\n1,x,NA\n -2.5 ,NA,\n1e3,,7\n")
    frame = open_table(path).read()
    assert [frame[name].iloc[0] for name in "abc"] == ["1", "x", "NA"]
    [frame] = open_table(path).chunks(["c", "a", "b"], numbers=["a", "c"])
    assert list(frame.columns) == ["c", "a", "b"]
    assert_array_equal(frame["a"], [1, -2.5, 1000])
    assert_array_equal(frame["c"], [np.nan, np.nan, 7])
    assert frame["b"].iloc[:2].tolist() == ["x", "NA"]
    assert frame["b"].isna().tolist() == [False, False, True]
    [frame] = open_table(path).chunks(["b"], numbers=["b"])  # they are none
    assert frame["b"].iloc[0] == "x"


def test_progress_and_encodings_of_other_alphabets(tmp_path):
    text = "größe,wort\n" + "1,für\n" * 1000
    for encoding in ("cp1252", "utf-16", "utf-8-sig", "latin-1"):
        path = written(tmp_path / "t.csv", text.encode(encoding))
        frame = open_table(path, encoding="utf-8" if encoding == "utf-8-sig" else encoding).read()
        assert list(frame.columns) == ["größe", "wort"]
        assert set(frame["wort"]) == {"für"}


@pytest.mark.parametrize(
    ("text", "quoting", "expected"),
    [
        ('a\tb\n"Great" thing\t1\n5" screen\t2\n', "auto", ['"Great" thing', '5" screen']),
        ('a\tb\nsay "x\t1\n"y\t2\n', "auto", ['say "x', '"y']),
        ('a\tb\n"two\tcells"\t1\n"x ""y"""\t2\n', "auto", ["two\tcells", 'x "y"']),
        ('a\tb\n"two"\t1\nx\t2\n', "none", ['"two"', "x"]),
        ('a\tb\n"two\nlines"\t1\nx\t2\n', "minimal", ["two\nlines", "x"]),
    ],
)
def test_quotes_in_tab_separated_texts_are_literal_unless_cells_are_clearly_quoted(text, quoting, expected, tmp_path):
    assert open_table(written(tmp_path / "t.tsv", text), quoting=quoting).read()["a"].tolist() == expected


def test_errors_about_quotes_name_the_remedy(tmp_path):
    path = written(tmp_path / "t.csv", 'a,b\n"Great" thing,1\n')
    with pytest.raises(ValueError, match=r"t.csv, line 2: ',' expected after '\"'; if quotes .* give quoting='none'"):
        open_table(path).read()
    assert open_table(path, quoting="none").read()["a"].tolist() == ['"Great" thing']
    late = 'a\tb\n"x"\t1\n' + "y\t1\n" * 10 + '"Great" thing\t2\n'
    with pytest.raises(ValueError, match=r"line 13: '\t' expected after '\"'; if quotes .* give quoting='none'"):
        open_table(written(tmp_path / "t.tsv", late), quoting="minimal").read()
    with pytest.raises(ValueError, match="quoting must be one of 'auto', 'minimal', 'none', got 'some'"):
        open_table(path, quoting="some")


def test_many_columns_of_numbers_next_to_texts_with_missing_values_take_linear_time(tmp_path):
    times = []
    for n in (2500, 40_000):
        names = [f"column_{j}" for j in range(n)]
        path = written(tmp_path / "t.csv", ",".join(names) + "\n" + "1,," * (n // 2 - 1) + "1,\n")
        start = time.process_time()
        (frame,) = open_table(path).chunks(names, numbers=names[::2])
        times.append(time.process_time() - start)
        assert frame.isna().sum(axis=1).tolist() == [n // 2]
        assert {kind.kind for kind in frame.dtypes.iloc[::2]} == {"f"}
    # Sixteen times as many columns; the square of that if each column were put into a new table.
    assert times[1] < 48 * times[0]


def test_many_columns_take_linear_time_and_too_many_are_rejected_at_once(tmp_path):
    times = []
    for n in (2500, 20_000):
        names = [f"column_{j}" for j in range(n)]
        path = written(tmp_path / "t.csv", ",".join(names) + "\n" + ("1," * n)[:-1] + "\n")
        start = time.process_time()
        assert open_table(path).read(names[::-1]).shape == (1, n)
        times.append(time.process_time() - start)
    assert times[1] < 3
    names = ",".join(f"c{j}" for j in range(10**6))
    path = written(tmp_path / "t.csv", names + "\n")
    start = time.process_time()
    with pytest.raises(ValueError, match=f"line 1: expected at most {MAX_COLUMNS:,} columns, got 1,000,000"):
        open_table(path).read()
    row = json.dumps(dict.fromkeys(names.split(","), 1))
    with pytest.raises(ValueError, match=f"at most {MAX_COLUMNS:,} columns"):
        open_table(written(tmp_path / "t.jsonl", row + "\n")).read()
    assert time.process_time() - start < 10


def test_rows_without_end_are_rejected_before_they_fill_the_memory(tmp_path):
    path = written(tmp_path / "t.csv", b'a,b\n1,"' + b"x" * 40_000_000)
    with pytest.raises(ValueError, match=f"line 2: a quoted cell does not end, or has more than {MAX_CELL:,} char"):
        open_table(path).read()
    path = written(tmp_path / "t.jsonl", b'{"a": "' + b"x" * 40_000_000)
    with pytest.raises(ValueError, match="line 1: expected one JSON object per line, got more than"):
        open_table(path).read()


# JSON lines


@pytest.mark.parametrize(
    ("line", "message"),
    [
        (b'{"a": 1, "a": 2}', "line 2: expected different keys, but 'a' occurs twice"),
        (b'{"a": "\\ud800"}', r"line 2: expected Unicode text, got half of a character, '\\ud800'"),
        (b'{"\\udfff": 1}', "line 2: expected Unicode text, got half of a character"),
        (b'{"a": 1} {"a": 2}', "line 2: expected one JSON object per line"),
        (b'{"a": ', "line 2: expected one JSON object per line"),
        (b'{"a": {"b": 1}}', "line 2: expected one value in 'a', got an object"),
        (b'{"a": [1]}', "line 2: expected one value in 'a', got a list"),
        (b"[" * 100_000, "line 2: expected one JSON object per line"),
        (b'{"a": 1' + b"0" * 5000 + b"}{", "line 2: expected one JSON object per line"),
    ],
)
def test_bad_json_lines_are_named(line, message, tmp_path):
    path = written(tmp_path / "t.jsonl", b'{"a": 0}\n' + line + b"\n")
    with pytest.raises(ValueError, match=message):
        open_table(path).read()


def test_json_values_of_any_kind_keep_their_lines_and_values(tmp_path):
    rows = ['{"a": 1, "b": "2024-01-01"}', "", '{"b": "2024-01-01 10:00:00", "c": true}', '{"a": 2.5}']
    frame = open_table(written(tmp_path / "t.jsonl", "\n".join(rows))).read()
    assert frame.index.tolist() == [1, 3, 4]
    assert frame["b"].tolist()[:2] == ["2024-01-01", "2024-01-01 10:00:00"]  # as they were written
    assert cells.as_words(frame["a"]) == ["1", None, "2.5"]
    mixed = '{"a": 1}\n{"a": "x"}\n{"a": null}\n'
    assert open_table(written(tmp_path / "t.jsonl", mixed)).read()["a"].tolist() == [1, "x", None]


@pytest.mark.parametrize("value", ["true", "1" * 400, "1e999", "Infinity"])
def test_values_that_are_not_numbers_are_rejected(value, tmp_path):
    path = written(tmp_path / "t.jsonl", '{"a": 1}\n{"a": 2}\n' + f'{{"a": {value}}}\n')
    [frame] = open_table(path).chunks(["a"], numbers=["a"])
    with pytest.raises(ValueError, match=r"line 3: expected a (finite )?number in column 'a', got"):
        typed(frame, {"a": "number"})
    whole = written(tmp_path / "t.jsonl", '{"a": true}\n{"a": false}\n')
    with pytest.raises(ValueError, match="expected numbers in column 'a', as in training, got true and false"):
        typed(open_table(whole).read(), {"a": "number"})


def test_keys_that_no_row_has_are_missing_columns(tmp_path):
    path = written(tmp_path / "t.jsonl", '{"a": 1}\n{"a": 2, "b": null}\n')
    assert open_table(path).read(["a", "b"])["b"].isna().all()
    with pytest.raises(ValueError, match="1 of 2 columns are missing: 'c'; there are 2 columns: 'a', 'b'"):
        open_table(path).read(["a", "c"])


# Where tables come from


@pytest.mark.skipif(sys.platform == "win32", reason="pipes with a name")
def test_pipes_are_read_like_files(tmp_path):
    pipe = tmp_path / "pipe.csv"
    os.mkfifo(pipe)
    writer = threading.Thread(target=lambda: pipe.write_text("a,b\n1,x\n2,y\n"))
    writer.start()
    file = open_table(pipe)
    writer.join()
    assert file.columns() == ["a", "b"]
    for _ in range(2):
        assert file.read()["b"].tolist() == ["x", "y"]
    with pytest.raises(ValueError, match=r"pipe.csv, line 1: 1 of 1 columns are missing"):
        file.read(["c"])
    kept = file.files[0].path
    assert kept.exists()
    del file
    assert not kept.exists()


def test_standard_input_is_a_table(tmp_path):
    code = (
        "from ordinalq.io.table import open_table\n"
        "file = open_table('-', 'csv'); print(file.name, file.columns(), len(file.read()))\n"
        "try: file.read(['c'])\n"
        "except ValueError as error: print(error)"
    )
    done = subprocess.run([sys.executable, "-c", code], input=b"a,b\n1,2\n", capture_output=True, check=True)
    assert done.stdout.decode().splitlines() == [
        "standard input ['a', 'b'] 1",
        "standard input: 1 of 1 columns are missing: 'c'; there are 2 columns: 'a', 'b'.",
    ]
    with pytest.raises(ValueError, match=r"standard input: expected a file .* give its format"):
        open_table("-")


def test_links_to_nothing_are_named(tmp_path):
    link = tmp_path / "t.csv"
    link.symlink_to(tmp_path / "absent.csv")
    with pytest.raises(FileNotFoundError, match=r"t.csv: is a link to .*absent.csv, which does not exist"):
        open_table(link)


# Kinds


def kinds_of(**table):
    frame = pd.DataFrame({name: pd.Series(values, dtype=object) for name, values in table.items()})
    return column_kinds(frame, list(frame.columns))


def test_columns_without_any_value_are_left_out_with_a_note(caplog):
    assert kinds_of(a=["1", "2"], b=[None, None], c=["NA", "NA"]) == {"a": "number"}
    assert "column 'b' is left out: it has no value at all" in caplog.text
    assert "column 'c' is left out: it has no value at all, but words such as NA" in caplog.text


@pytest.mark.parametrize(
    ("dates", "kind", "day"),
    [
        (["1/31/2024", "12/01/2023"], "date:%m/%d/%Y", "2024-01-31"),
        (["31/1/2024", "01/12/2023"], "date:%d/%m/%Y", "2024-01-31"),
        (["31.01.2024", "01.02.2024"], "date:%d.%m.%Y", "2024-01-31"),
        (["01-31-2024 6:30 PM", "02-01-2024 7:00 AM"], "date:%m-%d-%Y %I:%M %p", "2024-01-31 18:30"),
        (["1/31/2024 18:30", "2/1/2024 07:00"], "date:%m/%d/%Y %H:%M", "2024-01-31 18:30"),
    ],
)
def test_dates_with_the_month_first_or_last_are_dates(dates, kind, day):
    frame = pd.DataFrame({"day": [*dates, None]}, dtype=object)
    kinds = column_kinds(frame, ["day"])
    assert kinds == {"day": kind}
    assert typed(frame, kinds)["day"].iloc[0] == pd.Timestamp(day, tz="UTC")
    with pytest.raises(ValueError, match=r"row 0: expected a date such as .* in column 'day', got 'soon'"):
        typed(pd.DataFrame({"day": ["soon"]}), kinds)


def test_ambiguous_dates_require_a_format(caplog):
    frame = pd.DataFrame({"day": ["1/2/2024", "3/4/2024"]}, dtype=object)
    assert column_kinds(frame, ["day"]) == {"day": "category"}
    assert "the day may come before or after the month: name its format with dates={'day': '%m/%d/%Y'}" in caplog.text
    kinds = column_kinds(frame, ["day"], dates={"day": "%d/%m/%Y"})
    assert typed(frame, kinds)["day"].dt.month.tolist() == [2, 4]


def test_tables_have_their_natural_types_in_both_wings(tmp_path):
    text = "n,whole,day,word,holes,zip\n1.5,1,2024-01-31,NA,1,01\nNA,2,,x,,02\n"
    frame = convert_types(open_table(written(tmp_path / "t.csv", text)).read())
    assert [frame[name].dtype.kind for name in ("n", "whole", "holes")] == ["f", "i", "f"]
    assert pd.api.types.is_datetime64_any_dtype(frame["day"])
    assert frame["word"].tolist() == ["NA", "x"]
    assert frame.index.tolist() == [2, 3]


def test_many_columns_have_kinds_in_linear_time():
    frame = pd.DataFrame(np.ones((3, 20_000)), columns=[f"c{j}" for j in range(20_000)])
    start = time.process_time()
    assert len(column_kinds(frame, list(frame.columns), text=["c1"], categories=["c2"])) == 20_000
    assert time.process_time() - start < 8
    assert columns.MAX_CATEGORIES == 30


# Writing


def test_full_disks_are_named_and_leave_nothing(tmp_path):
    import errno

    with pytest.raises(OSError, match="nothing was written") as caught, writing.replacing(tmp_path / "r.csv"):
        raise OSError(errno.ENOSPC, "No space left on device")
    assert caught.value.filename == str(tmp_path / "r.csv")
    assert list(tmp_path.iterdir()) == []


def test_links_are_followed_and_stay_links(tmp_path):
    (tmp_path / "old.csv").write_text("old")
    link = tmp_path / "r.csv"
    link.symlink_to(tmp_path / "old.csv")
    writing.write_bytes(writing.check_output(link), b"new")
    assert link.is_symlink()
    assert (tmp_path / "old.csv").read_text() == "new"
    link.unlink()
    link.symlink_to(tmp_path / "absent" / "x.csv")
    with pytest.raises(FileNotFoundError, match=r"is a link to .*x.csv, whose folder does not exist"):
        writing.check_output(link)


def sheets(path, **rows):
    """Write sheets of cells with their names."""
    import xlsxwriter

    with xlsxwriter.Workbook(str(path)) as book:
        for name, cells in rows.items():
            sheet = book.add_worksheet(name)
            for (i, j), value in cells.items():
                sheet.write(i, j, value)
    return path


def test_a_sheet_is_read_from_its_first_cell_and_without_empty_rows(tmp_path, caplog):
    data = {(2, 1): "stars", (2, 2): "text", (2, 3): "ok", (3, 1): 5, (3, 2): "good", (5, 1): 1.5, (5, 3): True}
    path = sheets(tmp_path / "t.xlsx", Empty={}, Data=data, Codes={(0, 0): "a", (1, 0): "1"})
    frame = open_table(path).read()
    assert frame.columns.tolist() == ["stars", "text", "ok"]
    assert frame.astype(object).where(frame.notna(), None).to_numpy().tolist() == [
        ["5", "good", None],
        ["1.5", None, "True"],
    ]
    assert frame.index.tolist() == [4, 6]  # as Excel numbers them
    assert "sheet 'Data' is read" in caplog.text
    assert open_table(path, sheet="Codes").read()["a"].tolist() == ["1"]
    with pytest.raises(ValueError, match=r"t\.xlsx: has no sheet 'codes'; did you mean 'Codes'\?"):
        open_table(path, sheet="codes").columns()
    with pytest.raises(ValueError, match=r"sheet is for \.xlsx and \.ods files, got a csv file"):
        open_table(written(tmp_path / "t.csv", "a\n1\n"), sheet="Data")


def test_a_sheet_of_opendocument_is_read(tmp_path):
    cell = '<table:table-cell office:value-type="{}"{}><text:p>{}</text:p></table:table-cell>'
    rows = [[("string", "stars"), ("string", "text")], [("float", 5), ("string", "good")]]
    inner = "".join(
        "<table:table-row>"
        + "".join(cell.format(kind, f' office:value="{v}"' if kind == "float" else "", v) for kind, v in row)
        + "</table:table-row>"
        for row in rows
    )
    names = ("office", "table", "text")
    spaces = " ".join(f'xmlns:{name}="urn:oasis:names:tc:opendocument:xmlns:{name}:1.0"' for name in names)

    def write(path, inner):
        body = f'<table:table table:name="Data">{inner}</table:table>'
        body = f"<office:body><office:spreadsheet>{body}</office:spreadsheet></office:body>"
        kind = "application/vnd.oasis.opendocument.spreadsheet"
        with zipfile.ZipFile(path, "w") as archive:
            archive.writestr("mimetype", kind)
            entry = f'<manifest:file-entry manifest:full-path="/" manifest:media-type="{kind}"/>'
            space = 'xmlns:manifest="urn:oasis:names:tc:opendocument:xmlns:manifest:1.0"'
            archive.writestr("META-INF/manifest.xml", f"<manifest:manifest {space}>{entry}</manifest:manifest>")
            archive.writestr("content.xml", f"<office:document-content {spaces}>{body}</office:document-content>")
        return path

    assert open_table(write(tmp_path / "t.ods", inner)).read().to_numpy().tolist() == [["5", "good"]]
    many = inner.replace("<table:table-row>", '<table:table-row table:number-rows-repeated="1000000">', 1)
    many = many.replace("<table:table-cell", '<table:table-cell table:number-columns-repeated="100"', 1)
    with pytest.raises(ValueError, match=r"expected at most 50,000,000 cells in a sheet, got 1,000,001 rows"):
        open_table(write(tmp_path / "u.ods", many)).columns()


def test_a_sheet_that_would_fill_the_memory_is_rejected(tmp_path):
    path = sheets(tmp_path / "t.xlsx", Data={(0, 0): "stars", (1_000_000, 1000): 1})
    with pytest.raises(ValueError, match=r"got 1,000,001 rows and 1,001 columns. Save it as CSV in Excel"):
        open_table(path).columns()


WIDE = '<c r="A1"><v>1</v></c><c r="XFD1"><v>1</v></c>'


@pytest.mark.parametrize(
    ("sheet", "member"),
    [
        (
            '<row r="1"><c r="A1"><v>1</v></c></row><row><c s="0" r="XFD1048576"><v>1</v></c></row>',
            "worksheets/sheet1.xml",
        ),
        ("<row r='1'><c r='A1'><v>1</v></c><c s='>' r = 'xfd1048576'><v>1</v></c></row>", "worksheets/sheet1.xml"),
        (f'<row r="1">{WIDE}</row><row r="1048576"><c><v>1</v></c></row>', "worksheets/sheet1.xml"),
        ('<row r="1"><c r="A1"><v>1</v></c><c r="XFD1048576"><v>1</v></c></row>', "elsewhere/sheet1.data"),
        ('<x:row r="1"><x:c r="A1"><x:v>1</x:v></x:c><x:c r="XFD1048576"/></x:row>', "worksheets/sheet1.xml"),
    ],
)
def test_the_size_of_a_sheet_is_found_however_its_cells_are_written(sheet, member, tmp_path):
    path, changed = sheets(tmp_path / "t.xlsx", Data={(0, 0): "stars"}), tmp_path / "u.xlsx"
    x = "x:" if "<x:" in sheet else ""
    space = f'xmlns{x and ":x"}="http://schemas.openxmlformats.org/spreadsheetml/2006/main"'
    body = f"<{x}worksheet {space}><{x}sheetData>{sheet}</{x}sheetData></{x}worksheet>"
    with zipfile.ZipFile(path) as old, zipfile.ZipFile(changed, "w") as new:
        for name in old.namelist():
            if name == "xl/worksheets/sheet1.xml":
                new.writestr(f"xl/{member}", body)
            else:
                new.writestr(name, old.read(name).replace(b"worksheets/sheet1.xml", member.encode()))
    with pytest.raises(ValueError, match=r"got 1,048,576 rows and 16,384 columns"):
        open_table(changed).columns()


def test_true_and_false_of_excel_are_those_of_its_csv_files(tmp_path):
    sheet = open_table(sheets(tmp_path / "t.xlsx", Data={(0, 0): "gift", (1, 0): True, (2, 0): False})).read()
    text = open_table(written(tmp_path / "t.csv", "gift\nTRUE\nFALSE\n")).read()
    assert as_words(sheet["gift"]) == as_words(text["gift"]) == ["True", "False"]


def test_columns_without_a_name_are_counted(tmp_path, caplog):
    cells = {(0, 0): "Report of May", (1, 0): "stars", (1, 1): "text", (1, 2): "shop", (2, 0): 5, (2, 1): "good"}
    assert open_table(sheets(tmp_path / "t.xlsx", Data=cells)).columns() == ["Report of May"]
    assert "t.xlsx: 2 of the columns have values but no name in row 1 and are not read" in caplog.text


def test_formulas_without_a_stored_result_are_counted(tmp_path, caplog):
    path, changed = sheets(tmp_path / "t.xlsx", Data={(0, 0): "stars", (1, 0): 5}), tmp_path / "u.xlsx"
    cells = [
        '<row r="1"><c r="A1" t="str"><v>stars</v></c></row>',
        '<row r="2"><c r="A2"><f>1+1</f><v>2</v></c></row>',
        '<row r="3"><c r="A3"><f>1+2</f><v></v></c></row>',
        '<row r="4"><c r="A4"><f>1+3</f></c></row>',
        '<row r="5"><c r="A5" t="str"><f>""</f><v></v></c></row>',
        '<row r="6"><c r="A6"><v>4</v></c></row>',
    ]
    with zipfile.ZipFile(path) as old, zipfile.ZipFile(changed, "w") as new:
        for name in old.namelist():
            content = old.read(name)
            if name == "xl/worksheets/sheet1.xml":
                content = re.sub(
                    rb"<sheetData>.*</sheetData>", f"<sheetData>{''.join(cells)}</sheetData>".encode(), content
                )
            new.writestr(name, content)
    assert open_table(path).columns() == ["stars"]
    assert "formulas" not in caplog.text
    assert [word for word in open_table(changed).read()["stars"] if isinstance(word, str)] == ["2", "4"]
    assert "u.xlsx: 2 formulas have no stored result" in caplog.text


def test_results_of_formulas_are_read(tmp_path, caplog):
    import xlsxwriter

    path = tmp_path / "t.xlsx"
    with xlsxwriter.Workbook(path) as book:
        sheet = book.add_worksheet()
        sheet.write_string(0, 0, "stars")
        for row in range(1, 4):
            sheet.write_formula(row, 0, f"=1+{row}", None, 1 + row)
        sheet.write_formula(4, 0, '="a"', None, "a")
    assert as_words(open_table(path).read()["stars"]) == ["2", "3", "4", "a"]
    assert "formulas" not in caplog.text


def test_a_damaged_sheet_is_rejected(tmp_path):
    path, changed = sheets(tmp_path / "t.xlsx", Data={(0, 0): "stars"}), tmp_path / "u.xlsx"
    with zipfile.ZipFile(path) as old, zipfile.ZipFile(changed, "w") as new:
        for name in old.namelist():
            new.writestr(name, old.read(name).replace(b"</sheetData>", b"</sheet>"))
    with pytest.raises(ValueError, match=r"u\.xlsx: not a readable Excel or OpenDocument file \(mismatched tag"):
        open_table(changed).columns()


def test_columns_of_excel_files_are_as_wide_as_their_shown_numbers(tmp_path):
    path = tmp_path / "t.xlsx"
    frame = pd.DataFrame({"5": [1 / 3, 2e-8 / 3], "energy": [12345678.901234567, 1.0], "code": ["1", "2"]})
    writing.write_table(frame, path, "excel", percent=["5"])
    with zipfile.ZipFile(path) as parts:
        sheet = parts.read("xl/worksheets/sheet1.xml").decode()
    widths = [float(width) for width in re.findall(r'<col [^>]*?width="([0-9.]+)"', sheet)]
    assert 7 <= widths[0] <= 9
    assert 13 <= widths[1] <= 18
    assert 'numberStoredAsText="1"' in sheet


def test_results_in_excel_have_number_formats_and_no_formulas(tmp_path):
    frame = pd.DataFrame({"product": ["=1+1", None], "n_items": [1200, 3], "5": [0.25, 1], "mean_class": [4.5, np.nan]})
    path = tmp_path / "r.xlsx"
    writing.write_table(frame, path, writing.table_format(path), percent=["5"])
    back = open_table(path).read()
    assert back["product"].tolist()[0] == "=1+1"
    assert back["5"].tolist() == ["0.25", "1"]
    with zipfile.ZipFile(path) as archive:
        assert b"<f>" not in archive.read("xl/worksheets/sheet1.xml")
        styles = archive.read("xl/styles.xml").decode()
    assert 'formatCode="0.0%"' in styles
