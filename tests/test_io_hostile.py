"""A hundred damaged tables: each is read, or ends with one clear line."""

import gzip
import io
import json
import os
import subprocess
import sys
import time
import zipfile
from types import SimpleNamespace

import hostile_models
import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from apart import ends_with_one_clear_line

import ordinalq as oq
from ordinalq.cli import main
from ordinalq.io.table import open_table

ESCAPE = "\x1b]0;owned\x07\x1b[31m\x9b2J\x07\r\x08\x7f"
HEAD = b"price,size,product\n"
GOOD = b"1.5,S,p1\n2.5,M,p2\n3.5,L,p1\n" * 10


def parquet(**columns):
    stream = io.BytesIO()
    pq.write_table(pa.table(columns), stream)
    return stream.getvalue()


def line(**row):
    return json.dumps(row).encode() + b"\n"


NESTED = {"[": "]", '{"a":': "}", '[{"a":': "}]", "[\n": "]"}


def nested(mark, depth, name="product"):
    """Return a row with a value that is nested so deep."""
    row = f'{{"price": 1, "size": "S", "{name}": {mark * depth}1{NESTED[mark] * depth}}}\n'
    return row.encode()


NUMBERS = ["NaN", "inf", "-inf", "1e999", "0x10", "1_000", "1,5", "١٢", "1" * 400, "--1", "1e", "½", "true", "None"]
BYTES = [b"\xff", b"\x00", b"\xed\xa0\x80", b"\xc0\x80", b"\xf5\x80\x80\x80", b"\x1b[31m", b"\x9b", b"\xe2\x80\xae"]
CSV = {
    **{f"number {text[:8]}": HEAD + f'"{text}",S,p1\n'.encode() + GOOD for text in NUMBERS},
    **{f"byte {data!r}": HEAD + GOOD + b"1,S," + data + b"\n" for data in BYTES},
    **{f"byte {data!r} in the header": HEAD[:-1] + data + b"\n" + GOOD for data in BYTES},
    "empty": b"",
    "one byte": b"x",
    "line breaks": b"\n\n\n\n",
    "mark only": b"\xef\xbb\xbf",
    "two marks": b"\xef\xbb\xbf\xef\xbb\xbf" + HEAD + GOOD,
    "header only": HEAD,
    "blank lines": HEAD + b"\n\n" + GOOD + b"\r\n\n",
    "returns only": (HEAD + GOOD).replace(b"\n", b"\r"),
    "mixed line ends": HEAD + GOOD.replace(b"\n", b"\r\n", 5),
    "open quotation": HEAD + b'1,"S,p1\n' + GOOD,
    "open quotation at the end": HEAD + GOOD + b'1,S,"p1',
    "quotation that is closed late": HEAD + b'1,"S,p1\n' + GOOD + b'1,S",p1\n',
    "text after quotation": HEAD + b'1,"S"x,p1\n' + GOOD,
    "quotes in the middle": HEAD + b'1,S"M,p"1\n' + GOOD,
    "only quotes": b'"' * 1001,
    "ragged": HEAD + GOOD + b"1,S\n",
    "too wide": HEAD + GOOD + b"1" + b"," * 1000 + b"\n",
    "a million columns": b"a," * 10**6 + b"\n",
    "columns of one name": b"price,size,price\n" + GOOD,
    "columns without a name": b"price,size,,,\n" + GOOD.replace(b"\n", b",,\n"),
    "a name of a megabyte": b"x" * 10**6 + b"," + HEAD + b"1," + GOOD,
    "a cell of twenty megabytes": HEAD + b"1,S," + b"x" * 20_000_000 + b"\n",
    "a quoted cell of twenty megabytes": HEAD + b'1,S,"' + b"x\n" * 10_000_000 + b'"\n',
    "formulas": HEAD + b"1,S,=cmd|' /C calc'!A0\n2,S,+1\n3,S,-1\n4,S,@x\n",
    "another encoding": (HEAD + "1,für,p1\n".encode("cp1252")),
    "wide characters": (HEAD + GOOD).decode().encode("utf-16"),
    "wider characters": (HEAD + GOOD).decode().encode("utf-32"),
    "no table at all": b"%PDF-1.4\n" + bytes(range(256)) * 10,
    "escape sequences as groups": HEAD + f'1,S,"{ESCAPE}"\n2,M,p2\n'.encode(),
    "escape sequences as numbers": HEAD + f'"{ESCAPE}",S,p1\n'.encode(),
    "escape sequences as columns": f'"{ESCAPE}",size,product\n'.encode() + GOOD,
    "direction of writing": HEAD + "1,S,\u202eevil\u2066\n".encode(),
}
GZIP = {
    "not packed": HEAD + GOOD,
    "cut": gzip.compress(HEAD + GOOD)[:-12],
    "packed twice": gzip.compress(gzip.compress(HEAD + GOOD)),
    "a changed byte": gzip.compress(HEAD + GOOD * 100)[:60] + b"x" + gzip.compress(HEAD + GOOD * 100)[61:],
    "a bomb": gzip.compress(HEAD + b"x" * 200_000_000),
}
JSON = {
    "empty": b"",
    "a list": b"[]\n",
    "a number": b"1\n",
    "cut": b'{"price": 1, "size',
    "two in a line": line(price=1, size="S") * 2 + b'{"price": 1} {"price": 2}\n',
    "over two lines": b'{"price": 1,\n"size": "S"}\n',
    "a doubled key": b'{"price": 1, "price": 2, "size": "S"}\n',
    "half a character": b'{"price": 1, "size": "\\ud800", "product": "x"}\n',
    "half a character as a group": b'{"price": 1, "size": "S", "product": "\\udfff"}\n',
    "a list as a value": line(price=[1], size="S", product="x"),
    "an object as a value": line(price={"a": 1}, size="S", product="x"),
    "true as a number": line(price=True, size="S", product="x"),
    "mixed values": line(price=1, size=1, product=1)
    + line(price="2", size="S", product="x")
    + line(price=None, size=None),
    "four hundred figures": b'{"price": ' + b"1" * 400 + b', "size": "S", "product": 1}\n',
    "ten thousand figures": b'{"price": ' + b"1" * 10_000 + b', "size": "S", "product": 1}\n',
    "not a number": b'{"price": NaN, "size": "S", "product": 1}\n',
    "deep": b'{"price": ' + b"[" * 100_000 + b"\n",
    **{f"nested by {mark!r}": nested(mark, 10_000) for mark in NESTED},
    "nested over lines": nested("[\n", 10_000),
    "nested next to the columns": nested('{"a":', 10_000, "other"),
    "an open string of escapes": b'{"price": 1, "size": "[' + b"[" * 100 + b'\\"' * 5_000_000 + b"\n",
    "a million keys": json.dumps({f"k{i}": 1 for i in range(10**6)}).encode() + b"\n",
    "a null character": line(price=1, size="S\0", product="a\0b"),
    "escape sequences": line(price=1, size="S", product=ESCAPE) + line(price=2, size="S", product="x"),
    "escape sequences as keys": line(**{ESCAPE: 1, "price": 1}),
    "a group of ten megabytes": line(price=1, size="S", product="x" * 10_000_000),
    "rubbish": bytes(range(256)) * 20,
}
PARQUET = {
    "empty": b"",
    "rubbish": b"PAR1" + bytes(range(256)) * 20 + b"PAR1",
    "cut": parquet(price=[1.0] * 100, size=["S"] * 100)[:-30],
    "a changed byte": parquet(price=[1.0] * 100, size=["S"] * 100).replace(b"S", b"\xff", 1),
    "no rows": parquet(price=pa.array([], pa.float64()), size=pa.array([], pa.string())),
    "lists": parquet(price=[[1.0]] * 3, size=["S"] * 3),
    "bytes": parquet(price=[1.0] * 3, size=[b"\xff\xfe"] * 3),
    "decimals": parquet(price=pa.array([1, 2, 3], pa.decimal128(10, 2)), size=["S"] * 3, product=["x"] * 3),
    "infinite": parquet(price=[np.inf] * 3, size=["S"] * 3, product=["x"] * 3),
    "far dates": parquet(price=[1.0] * 3, size=["S"] * 3, product=pa.array([2**62] * 3, pa.timestamp("us"))),
    "escape sequences": parquet(price=[1.0] * 3, size=[ESCAPE] * 3, product=[ESCAPE, "a", None]),
    "a group of a hundred megabytes": parquet(price=[1.0], size=["S"], product=["x" * 100_000_000]),
}
TABLES = {
    **{f"{name}.csv": content for name, content in CSV.items()},
    **{f"{name}.csv.gz": content for name, content in GZIP.items()},
    **{f"{name}.jsonl": content for name, content in JSON.items()},
    **{f"{name}.parquet": content for name, content in PARQUET.items()},
}


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    path = tmp_path_factory.mktemp("model") / "model.oq"
    from sklearn.naive_bayes import GaussianNB

    classifier = oq.classifiers.CrossFitted(GaussianNB(), cv=2)
    oq.TableModel(oq.PACC(classifier), features=["price", "size"]).fit(hostile_models.table(), "stars").save(path)
    return path


def clean(text):
    """Return whether nothing in a text changes a terminal."""
    return all(
        character in "\n\t" or (ord(character) >= 0x20 and not 0x7F <= ord(character) <= 0x9F) for character in text
    )


@pytest.mark.filterwarnings("ignore:no value of column")
def test_a_hundred_tables_are_read_or_end_with_one_clear_line(model, tmp_path, capsys):
    assert len(TABLES) >= 100
    for i, (name, content) in enumerate(TABLES.items()):
        path = tmp_path / f"t{i}.{'.'.join(name.split('.')[-2:] if name.endswith('gz') else name.split('.')[-1:])}"
        path.write_bytes(content)
        start = time.process_time()
        code = main(["predict", str(model), str(path), "--by", "product"])
        captured = capsys.readouterr()
        assert time.process_time() - start < 10, name
        assert code in (0, 2), (name, captured.err)
        assert clean(captured.out + captured.err), name
        lines = [text for text in captured.err.splitlines() if "no value of column" not in text]
        assert len(lines) == (code == 2), (name, captured.err)
        assert all(text.startswith("ordinalq: ") and len(text) < 500 for text in lines), (name, captured.err[:600])
        path.unlink()


@pytest.mark.parametrize("verb", ["predict", "fit"])
def test_deeply_nested_values_end_with_one_line_in_bounded_time_and_memory(verb, model, tmp_path):
    path = tmp_path / "t.jsonl"
    for mark in NESTED:
        for depth in (1000, 10_000, 1_000_000):
            path.write_bytes(nested(mark, depth))
            more = [path, "--target", "size", "--out", "m.oq"] if verb == "fit" else [model, path, "--by", "product"]
            line = ends_with_one_clear_line(f"{mark} {depth}", [verb, *map(str, more)], 2, 300)
            assert f"{path}, line 1: expected one JSON object per line" in line


def workbook(**changes):
    """Return an Excel file of a table, with members of its archive changed."""
    frame, stream, changed = hostile_models.table(3)[["price", "size"]], io.BytesIO(), io.BytesIO()
    frame.to_excel(stream, index=False)
    with zipfile.ZipFile(stream) as honest, zipfile.ZipFile(changed, "w", zipfile.ZIP_DEFLATED) as forged:
        for name in honest.namelist():
            change = changes.get(name.rpartition("/")[2].removesuffix(".xml"), lambda text: text)
            forged.writestr(name, change(honest.read(name).decode()))
    return changed.getvalue()


def open_document(cell, n_rows=1):
    """Return an OpenDocument file with a text cell below the name of its column."""
    row = "<table:table-row{}><table:table-cell office:value-type='string'><text:p>{}</text:p>"
    row += "</table:table-cell></table:table-row>"
    rows = row.format("", "price") + row.format(f' table:number-rows-repeated="{n_rows}"', cell)
    space = "urn:oasis:names:tc:opendocument:xmlns:"
    names = " ".join(f'xmlns:{name}="{space}{name}:1.0"' for name in ("office", "table", "text"))
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("mimetype", "application/vnd.oasis.opendocument.spreadsheet")
        manifest = "urn:oasis:names:tc:opendocument:xmlns:manifest:1.0"
        archive.writestr("META-INF/manifest.xml", f'<m:manifest xmlns:m="{manifest}"/>')
        body = f'<office:body><office:spreadsheet><table:table table:name="a">{rows}</table:table>'
        body += "</office:spreadsheet></office:body>"
        archive.writestr("content.xml", f"<office:document-content {names}>{body}</office:document-content>")
    return stream.getvalue()


LONG = "x" * 30_000
ROWS = "".join(f'<row r="{i}"><c r="A{i}" t="s"><v>0</v></c></row>' for i in range(10, 20_000))


def many_sheets():
    """Return an Excel file of sheets with less text each than is too much."""
    import xlsxwriter

    stream = io.BytesIO()
    with xlsxwriter.Workbook(stream) as book:
        for _ in range(20):
            sheet = book.add_worksheet()
            for row in range(2000):
                sheet.write_string(row, 0, LONG)
    return stream.getvalue()


BOMBS = {
    "one text in many cells.xlsx": lambda: workbook(
        sharedStrings=lambda text: text.replace("<t>price", f"<t>{LONG}"),
        sheet1=lambda text: text.replace("</sheetData>", f"{ROWS}</sheetData>"),
    ),
    "a long text.xlsx": lambda: workbook(
        sheet1=lambda text: text.replace(
            "</sheetData>",
            f'<row r="9"><c r="A9" t="inlineStr"><is><t>{"x" * 300_000_000}</t></is></c></row></sheetData>',
        )
    ),
    "one text in many cells with a formula.xlsx": lambda: workbook(
        sharedStrings=lambda text: text.replace("<t>price", f"<t>{LONG}"),
        sheet1=lambda text: text.replace("</sheetData>", f"{ROWS.replace('<v>', '<f>1</f><v>')}</sheetData>"),
    ),
    "one text in many cells of many sheets.xlsx": many_sheets,
    "many spaces.ods": lambda: open_document('<text:s text:c="2000000000"/>'),
    "one text in many rows.ods": lambda: open_document(LONG, 60_000),
}


@pytest.mark.parametrize("name", BOMBS)
def test_a_small_sheet_with_much_text_is_refused_before_it_is_read(name, model, tmp_path):
    path = tmp_path / name
    path.write_bytes(BOMBS[name]())
    assert path.stat().st_size < 1_000_000
    line = ends_with_one_clear_line(name, ["predict", str(model), str(path)], 2, 300)
    assert "expected at most 268,435,456 characters in all sheets, got " in line


@pytest.mark.parametrize("content", [workbook, lambda: open_document("1.5")])
def test_the_same_sheets_without_changes_are_read(content, tmp_path):
    path = tmp_path / ("t.xlsx" if content is workbook else "t.ods")
    path.write_bytes(content())
    assert open_table(path).columns()[0] == "price"


class Endless(io.RawIOBase):
    """A stream without end."""

    def __init__(self, content):
        self.content = content

    def read(self, size):
        return self.content * (size // len(self.content))


@pytest.mark.parametrize("verb", ["predict", "fit", "evaluate"])
@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"\0", "expected lines of text, got 16,777,216 bytes without a line end."),
        (b"1.5,S,p1\n", "expected at most 0.05 GB, got more. Use --max-spool GB."),
    ],
)
def test_input_without_end_is_cut(verb, content, message, model, tmp_path, monkeypatch):
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    monkeypatch.setattr("sys.stdin", SimpleNamespace(buffer=Endless(content)))
    more = ["-", "--target", "size", "--out", "m.oq"] if verb == "fit" else [str(model), "-"]
    more += ["--format", "csv", "--max-spool", "0.05"]
    line = ends_with_one_clear_line(f"{verb} {content}", [verb, *more], 2, 300)
    assert line == f"ordinalq: standard input: {message}\n"


@pytest.mark.skipif(not os.path.exists("/dev/zero"), reason="needs a device without end")
def test_a_device_without_end_is_cut_and_leaves_nothing(model, tmp_path):
    environment = {**os.environ, "TMPDIR": str(tmp_path)}
    command = [sys.executable, "-m", "ordinalq", "predict", str(model), "/dev/zero", "--format", "csv"]
    done = subprocess.run(command, capture_output=True, text=True, env=environment)
    assert (done.returncode, done.stdout, list(tmp_path.iterdir())) == (2, "", [])
    assert done.stderr == "ordinalq: /dev/zero: expected lines of text, got 16,777,216 bytes without a line end.\n"


@pytest.mark.skipif(sys.platform == "win32", reason="needs a pseudo terminal")
@pytest.mark.parametrize("verb", ["fit", "predict", "json", "evaluate", "error"])
def test_no_control_byte_from_data_reaches_a_terminal(verb, model, tmp_path):
    import pty

    frame = hostile_models.table()[["price", "size", "stars"]]
    frame[f"shop{ESCAPE}"] = ESCAPE
    frame["stars"] = [f"{star}{ESCAPE}" for star in frame["stars"]]
    frame.to_json(tmp_path / "t.jsonl", orient="records", lines=True)
    classes = ",".join(dict.fromkeys(sorted(frame["stars"])))
    table, out = str(tmp_path / "t.jsonl"), str(tmp_path / "m.oq")
    fit = ["fit", table, "--target", "stars", "--classes", classes, "--method", "PACC", "--out", out]
    by = ["--by", f"shop{ESCAPE}"]
    if verb != "fit":
        assert main(fit) == 0
    arguments = {
        "fit": fit,
        "predict": ["predict", out, table, *by, "--interval", "0.9", "--diagnose"],
        "json": ["predict", out, table, *by, "--json"],
        "evaluate": ["evaluate", out, table, *by],
        "error": ["fit", table, "--target", f"none{ESCAPE}", "--out", out],
    }[verb]
    child, terminal = pty.fork()
    if child == 0:
        environment = {**os.environ, "NO_COLOR": "1", "TERM": "dumb", "COLUMNS": "200"}
        os.execve(sys.executable, [sys.executable, "-m", "ordinalq", *arguments], environment)
    seen = b""
    try:
        while data := os.read(terminal, 65536):
            seen += data
    except OSError:  # the end of a terminal
        pass
    _, status = os.waitpid(child, 0)
    assert os.waitstatus_to_exitcode(status) == (2 if verb == "error" else 0), seen.decode()
    text = seen.decode().replace("\r\n", "\n")  # as terminals end lines
    assert clean(text), ascii(text)
    assert len(text) > 20


@pytest.mark.filterwarnings("default:the font of the plot")
@pytest.mark.parametrize("kind", ["png", "svg"])
def test_characters_that_the_font_lacks_are_named_in_one_warning(kind, model, tmp_path, capsys):
    (tmp_path / "t.csv").write_bytes(HEAD + "1,S,京東\n2,M,京\n3,L,plain\n".encode())
    out = ["--by", "product", "--plot", str(tmp_path / f"plot.{kind}")]
    assert main(["predict", str(model), str(tmp_path / "t.csv"), *out]) == 0
    error = capsys.readouterr().err
    assert error.startswith("ordinalq: warning: the font of the plot has no character 京東 and shows boxes. Set font")
    assert error.count("\n") == 1


@pytest.mark.filterwarnings("default:4 cells begin")
@pytest.mark.parametrize("safe", [False, True])
def test_spreadsheet_formulas_are_written_as_they_are_with_a_warning_or_quoted(safe, model, tmp_path, capsys):
    (tmp_path / "t.csv").write_bytes(HEAD + CSV["formulas"][len(HEAD) :] + b"5,S,plain\n6,S,-A1\n7,S,+A1\n")
    out = ["--by", "product", "--out", str(tmp_path / "r.csv"), *["--csv-safe"] * safe]
    assert main(["predict", str(model), str(tmp_path / "t.csv"), *out]) == 0
    quote = "'" if safe else ""
    names = {f"{quote}{name}" for name in ("=cmd|' /C calc'!A0", "+A1", "-A1", "@x")}
    assert set(pd.read_csv(tmp_path / "r.csv")["product"]) == {*names, "+1", "-1", "plain"}
    warning = (
        "ordinalq: warning: 4 cells begin with =, +, - or @, which spreadsheets take for formulas. Use --csv-safe to "
        "quote them.\n"
    )
    assert capsys.readouterr().err == ("" if safe else warning)


def test_negative_numbers_do_not_count_as_formulas(model, tmp_path, capsys):
    (tmp_path / "t.csv").write_bytes(HEAD + b"1,S,-3\n2,M,-2.5\n")
    out = ["--by", "product", "--out", str(tmp_path / "r.csv"), "--csv-safe"]
    assert main(["predict", str(model), str(tmp_path / "t.csv"), *out]) == 0
    assert pd.read_csv(tmp_path / "r.csv")["product"].tolist() == [-3, -2.5]
    assert capsys.readouterr().err == ""


def test_text_in_parquet_that_is_not_unicode_is_named_with_its_row(model, tmp_path):
    words = pa.array([b"a"] * 6 + [b"\xff"]).cast(pa.binary())
    text = pa.Array.from_buffers(pa.string(), len(words), words.buffers())
    pq.write_table(pa.table({"price": [1.0] * 7, "size": ["S"] * 7, "product": text}), tmp_path / "t.parquet")
    line = ends_with_one_clear_line(
        "bytes", ["predict", str(model), str(tmp_path / "t.parquet"), "--by", "product"], 2, 300
    )
    assert line.endswith("t.parquet, row 6: expected UTF-8 text in column 'product', got b'\\xff'.\n")
