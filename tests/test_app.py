"""The web app: from a labelled table to estimates; projects are separate."""

import io
import json
import re
import shlex
import time
from html import unescape
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from pages import Client, problem, served
from progress_record import ProgressRecord

import ordinalq as oq
from ordinalq.app import views, work
from ordinalq.cli import main
from ordinalq.io.table import open_table


@pytest.fixture(scope="module")
def app(tmp_path_factory):
    with served(tmp_path_factory.mktemp("app")) as server:
        yield server


@pytest.fixture(scope="module")
def tables():
    """A labelled table and a new one: two numbers, a word, a group and a date."""
    rng = np.random.default_rng(0)

    def rows(n, groups):
        grade = rng.integers(3, size=n)
        return pd.DataFrame(
            {
                "shop": rng.choice(groups, size=n),
                "day": pd.to_datetime("2024-01-01") + pd.to_timedelta(rng.integers(90, size=n), "D"),
                "size": (grade + rng.normal(0, 0.8, n)).round(3),
                "price": (2 * grade + rng.normal(0, 2, n)).round(3),
                "grade": np.array(["bad", "fair", "good"])[grade],
            }
        )

    labelled = rows(500, ["a", "b", "c", "d", "e", "f"])
    return labelled, rows(400, ["<b>x</b>", "y", "z"]).drop(columns="grade")


def csv(frame):
    return frame.to_csv(index=False).encode()


def ordered(labelled):
    """Return the fields of the form, the classes in their order: bad, fair, good."""
    classes = [("class", number) for number in range(3)]  # a common scale, which is put in order
    return [("target", "grade"), ("by", "shop"), *classes, ("use.1", "out"), ("budget", "fast")]


@pytest.fixture(scope="module")
def walked(app, tables):
    """A project up to the estimates."""
    labelled, new = tables
    client = Client(app.port)
    project = client.project(client.send("/upload", "grades.csv", csv(labelled)))
    client.post(f"{project}/fit", ordered(labelled))
    client.done(project)
    client.send(f"{project}/sample", "new.csv", csv(new))
    client.done(project)
    client.post(f"{project}/predict", {"by": "shop"})
    client.done(project)
    return client, project


def test_preview_has_twenty_rows_and_the_kind_of_each_column(app, tables):
    client = Client(app.port)
    page = client.get(client.project(client.send("/upload", "grades.csv", csv(tables[0])))).text
    assert "The first 20 rows of 500" in page
    found = re.findall(r'<tr data-column="(\w+)">.*?<option value="([^"]*)" selected', page, re.DOTALL)
    assert dict(found) == {"shop": "category", "day": "out", "size": "number", "price": "number", "grade": "category"}
    assert re.search(r"<option selected>grade", page), "the target is guessed"


@pytest.mark.parametrize("kind", ["tsv", "jsonl", "parquet"])
def test_other_formats_are_read_in_the_same_way(app, tables, kind):
    stream = io.BytesIO()
    frame = tables[0].assign(day=tables[0]["day"].astype(str))
    if kind == "tsv":
        stream.write(frame.to_csv(index=False, sep="\t").encode())
    elif kind == "jsonl":
        stream.write(frame.to_json(orient="records", lines=True).encode())
    else:
        frame.to_parquet(stream)
    client = Client(app.port)
    page = client.get(client.project(client.send("/upload", f"grades.{kind}", stream.getvalue()))).text
    assert "The first 20 rows of 500" in page
    assert re.search(r"<option selected>grade", page)


def test_results_equal_those_of_the_command_line_to_the_last_digit(walked, tables, tmp_path, monkeypatch):
    client, project = walked
    for name, frame in zip(("grades.csv", "new.csv"), tables, strict=True):
        (tmp_path / name).write_bytes(csv(frame))
    monkeypatch.chdir(tmp_path)
    client.post(f"{project}/compare", [("group", 1), ("group", 2)])
    client.done(project)
    for step in ("model", "results"):
        for command in re.findall(r"<pre><code>(ordinalq .*?)</code></pre>", client.get(f"{project}/{step}").text):
            words = shlex.split(command.replace("&#39;", "'"))[1:]
            assert main(words) == 0
            if words[0] == "compare":
                compared = words
    # The command line has fitted its own model, by the command that the web app shows.
    assert client.get(f"{project}/file/estimates.csv").content == (tmp_path / "estimates.csv").read_bytes()
    parquet = pd.read_parquet(io.BytesIO(client.get(f"{project}/file/estimates.parquet").content))
    written = pd.read_csv(tmp_path / "estimates.csv", dtype=str).astype(parquet.dtypes.to_dict())
    pd.testing.assert_frame_equal(parquet, written, check_exact=True)
    assert compared[-2:] == ["y", "z"]


def test_comparison_is_that_of_the_command_line(walked, tables, tmp_path, monkeypatch, capsys):
    client, project = walked
    client.post(f"{project}/compare", [("group", 1), ("group", 2)])
    page = client.done(project).text
    monkeypatch.chdir(tmp_path)
    (tmp_path / "new.csv").write_bytes(csv(tables[1]))
    (tmp_path / "model.oq").write_bytes(client.get(f"{project}/file/model.oq").content)
    assert main(["compare", "model.oq", "new.csv", "--by", "shop", "--json", "y", "z"]) == 0
    (pair,) = json.loads(capsys.readouterr().out)["pairs"]
    assert pair["sentence"] in page
    found = pd.read_csv(io.BytesIO(client.get(f"{project}/file/comparison.csv").content), dtype=str)
    for name in ("mean_class", "mean_class_lower", "mean_class_upper", "probability"):
        assert [float(value) for value in found[name]] == [pair[name]]


def test_groups_that_differ_from_those_of_training_are_counted(app):
    def verdict(has_groups, **fits):
        answer = SimpleNamespace(has_groups=has_groups, smoothed=False)
        return app.site.render(
            "verdict.html",
            answer=answer,
            estimates=SimpleNamespace(verdict=""),
            fits={name.replace("_", " "): n for name, n in fits.items()},
        )

    page = verdict(True, good=29, unlike_the_training_groups=3, too_few_items=5)
    assert "3 of 32 groups with enough rows differ from the training groups" in page
    page = verdict(False, good=10, doubtful=2, bad=1)
    assert "3 of 13 groups with enough rows differ from any mixture of the training classes" in page
    assert "All 4 groups with enough rows agree with the training groups" in verdict(True, good=4, too_few_items=1)


def test_names_of_groups_are_shown_and_not_obeyed(walked):
    client, project = walked
    page = client.get(f"{project}/results").text
    assert "&lt;b&gt;x&lt;/b&gt;" in page
    assert "<b>x</b>" not in page


@pytest.mark.parametrize("sort", ["mean", "-mean"])
def test_groups_of_few_rows_do_not_lead_the_order_by_means(sort, rng):
    code = rng.integers(3, size=300)
    model = oq.PACC().fit(code[:, None] + rng.normal(scale=0.1, size=(300, 1)), code)
    X = np.repeat([[0.0], [1.0], [0.0], [2.0], [2.0]], [1, 50, 9, 30, 1], axis=0)
    estimates = model.predict_groups(X, np.repeat([*"abcde"], [1, 50, 9, 30, 1]))
    order = views.positions(estimates, views.GroupSelection(sort=sort)).tolist()
    assert order[:2] == ([3, 1] if sort == "mean" else [1, 3])
    assert set(order[2:]) == {0, 2, 4}


def test_groups_are_sorted_and_filtered(walked):
    client, project = walked

    def names(**query):
        page = client.get(f"{project}/results", **query).text
        return re.findall(r'<th scope="row"><div class="name" title="[^"]*">(.*?)</div></th>', page)

    estimates = pd.read_csv(io.BytesIO(client.get(f"{project}/file/estimates.csv").content))
    by_mean = estimates.sort_values("mean_class", ascending=False)["shop"].str.replace("<", "&lt;")
    assert names(sort="mean") == by_mean.str.replace(">", "&gt;").tolist()
    assert names(find="Y") == ["y"]
    assert names(least=10_000) == []
    assert names(sort="no such column") == names()


def test_figures_are_made_for_the_shown_groups(walked):
    client, project = walked
    assert client.get(f"{project}/estimates.png", find="y", save=1).content.startswith(b"\x89PNG")
    svg = client.get(f"{project}/estimates.svg")
    assert b"<svg" in svg.content
    assert svg.headers["content-type"] == "image/svg+xml"
    assert client.get(f"{project}/estimates.pdf").status == 404
    assert b"<svg" in client.get(f"{project}/file/errors.svg").content


def test_a_saved_model_can_be_brought_back(walked, app, tables):
    client, project = walked
    model = client.get(f"{project}/file/model.oq").content
    other = Client(app.port)
    again = other.project(other.send("/upload", "mine.oq", model))
    assert "Quality of the model" in other.get(again).text
    other.send(f"{again}/sample", "new.csv", csv(tables[1]))
    other.done(again)
    other.post(f"{again}/predict", {"by": "shop"})
    other.done(again)
    estimates = other.get(f"{again}/file/estimates.csv").content
    assert estimates == client.get(f"{project}/file/estimates.csv").content


def test_two_browsers_have_separate_sessions(walked, app):
    client, project = walked
    other = Client(app.port)
    for path in ("", "/table", "/results", "/job", "/file/model.oq", "/estimates.svg"):
        assert other.get(f"{project}{path}").status == 404
    assert other.post(f"{project}/delete").status == 404
    assert project not in other.get("/").text
    assert project in client.get("/").text


def test_two_tabs_have_separate_projects(app, tables):
    client = Client(app.port)
    labelled = csv(tables[0])
    one = client.project(client.send("/upload", "one.csv", labelled))
    two = client.project(client.send("/upload", "two.csv", labelled[: len(labelled) // 2].rpartition(b"\n")[0]))
    assert one != two
    assert "one.csv" in client.get(f"{one}/table").text
    assert "of 500" in client.get(f"{one}/table").text
    assert "of 500" not in client.get(f"{two}/table").text


def test_work_can_be_cancelled_and_begun_again(app):
    rng = np.random.default_rng(1)
    words = np.array([f"word{i}" for i in range(3000)])
    texts = [" ".join(rng.choice(words, 40)) for _ in range(4000)]
    frame = pd.DataFrame({"text": texts, "stars": rng.integers(1, 6, 4000)})
    client = Client(app.port)
    project = client.project(client.send("/upload", "texts.csv", csv(frame)))
    fields = [("target", "stars"), *(("class", i) for i in range(5))]
    client.post(f"{project}/fit", fields)
    assert "Cancel" in client.get(project).text, "a page that is reloaded finds its work"
    assert client.post(f"{project}/fit", fields).status == 409, "one piece of work at a time"
    before = time.monotonic()
    page = client.post(f"{project}/cancel")
    assert problem(page) == "The job was cancelled."
    assert time.monotonic() - before < 10
    assert client.get(f"{project}/file/model.oq").status == 404
    client.post(f"{project}/fit", fields)
    assert client.get(f"{project}/job").json()["state"] == "running"
    client.post(f"{project}/delete")


def test_fitting_reports_its_progress(tables, tmp_path):
    (tmp_path / "grades.csv").write_bytes(csv(tables[0]))
    table = work.Table(tmp_path / "grades.csv", "grades.csv")
    choices = work.Choices("grade", classes=("bad", "fair", "good"), method="PACC")
    with ProgressRecord() as far:
        work.fit(table, choices, tmp_path)
    parts = [part for part, _ in far.told]
    assert parts == sorted(parts)
    assert len(set(parts)) > 5
    assert parts[-1] == 1
    assert any("reading the table" in what for _, what in far.told)
    assert any("fold 5 of 5" in what for _, what in far.told)


def test_a_broken_table_is_answered_by_a_sentence_with_its_name_and_line(app, tmp_path_factory):
    client = Client(app.port)
    page = client.get(client.project(client.send("/upload", "broken.csv", b"a,b\n1,2\n3\n")))
    assert problem(page) == "broken.csv, line 3: expected 2 columns, got 1."
    page = client.get(client.project(client.send("/upload", "broken.parquet", b"PAR1 no")))
    assert problem(page).startswith("broken.parquet: not a readable parquet file")
    assert str(tmp_path_factory.getbasetemp()) not in page.text


def test_a_table_in_another_encoding_can_be_read_again(app):
    text = "name,stars\n" + "".join(f"M\xfcller {i},{i % 3}\n" for i in range(60))
    client = Client(app.port)
    project = client.project(client.send("/upload", "western.csv", text.encode("cp1252")))
    assert "expected utf-8 text" in problem(client.get(project))
    client.post(f"{project}/read", {"encoding": "cp1252"})
    assert "Müller 1" in client.done(project).text


def test_groups_merged_in_training_are_merged_in_the_new_table_unless_changed(app, tables):
    labelled, new = tables
    client = Client(app.port)
    project = client.project(client.send("/upload", "grades.csv", csv(labelled)))
    client.post(f"{project}/fit", [*ordered(labelled)[:-1], ("method", "PACC"), ("tidy", "1")])
    client.done(project)
    client.send(f"{project}/sample", "new.csv", csv(new))
    box = '<input type="checkbox" name="tidy" value="1"'
    assert f"{box} checked>" in client.done(project).text
    client.post(f"{project}/predict", {"by": "shop"})
    client.done(project)
    assert f"{box}>" in client.get(f"{project}/new").text


def test_each_sheet_with_cells_can_be_chosen(app, tables, tmp_path):
    labelled, _ = tables
    with pd.ExcelWriter(tmp_path / "t.xlsx", engine="xlsxwriter") as book:
        pd.DataFrame({"note": ["made by hand"]}).to_excel(book, sheet_name="Read me", index=False)
        pd.DataFrame().to_excel(book, sheet_name="Empty", index=False)
        labelled.to_excel(book, sheet_name="Grades", index=False)
    client = Client(app.port)
    project = client.project(client.send("/upload", "grades.xlsx", (tmp_path / "t.xlsx").read_bytes()))
    page = unescape(client.done(project).text)
    assert "sheet 'Read me' is read; choose another below: Read me, Grades" in page
    assert re.findall(r'<select id="table-sheet".*</select>', page) == [
        '<select id="table-sheet" name="sheet"><option>Read me</option><option>Grades</option></select>'
    ]
    client.post(f"{project}/read", {"which": "table", "sheet": "Grades"})
    page = client.done(project).text
    assert "<option selected>Grades</option>" in page
    assert "<option selected>grade</option>" in page
    # Reading it again in another way keeps the sheet.
    assert '<input type="hidden" name="sheet" value="Grades">' in page


def test_deleting_removes_the_files(app, tables):
    client = Client(app.port)
    project = client.project(client.send("/upload", "one.csv", csv(tables[0])))
    folder = next(app.folder.rglob(project.rpartition("/")[2]))
    assert any(folder.iterdir())
    client.post(f"{project}/delete")
    assert not folder.exists()
    assert client.get(project).status == 404


def test_periods_of_a_date_give_a_trend(app, walked, tables, tmp_path, monkeypatch, capsys):
    client, project = walked
    model = client.get(f"{project}/file/model.oq").content
    other = Client(app.port)
    own = other.project(other.send("/upload", "mine.oq", model))
    other.send(f"{own}/sample", "new.csv", csv(tables[1]))
    other.done(own)
    other.post(f"{own}/predict", {"by": "day:month"})
    page = other.done(own).text
    assert "Over time" in page
    assert b"<svg" in other.get(f"{own}/trend.svg").content
    monkeypatch.chdir(tmp_path)
    (tmp_path / "model.oq").write_bytes(model)
    (tmp_path / "new.csv").write_bytes(csv(tables[1]))
    command = "predict model.oq new.csv --by day:month --interval 0.95 --json"
    assert main(command.split()) == 0
    sentence = json.loads(capsys.readouterr().out)["trend"]["sentence"]
    assert sentence in unescape(page), "as on the command line"
    assert "Over time" not in client.get(f"{project}/results").text, "shops have no order in time"


def test_two_columns_of_groups_and_weights_are_those_of_the_command_line(app, tables, tmp_path, monkeypatch):
    rng = np.random.default_rng(2)
    labelled, new = (frame.assign(stands_for=rng.integers(1, 5, len(frame))) for frame in tables)
    client = Client(app.port)
    project = client.project(client.send("/upload", "grades.csv", csv(labelled)))
    client.post(f"{project}/fit", [*ordered(labelled)[:-1], ("method", "PACC"), ("weight", "stands_for")])
    page = client.done(project).text
    assert "stands_for" not in re.search(r"<dt>columns</dt><dd>(.*?)</dd>", page)[1], "a weight is not learned from"
    client.send(f"{project}/sample", "new.csv", csv(new))
    client.done(project)
    page = client.post(f"{project}/predict", {"by": "day:month", "and": "day:year"})
    assert problem(page) == "Both columns of groups are the same. Choose two different columns, or one."
    assert '<option value="stands_for" selected>' in client.get(f"{project}/new").text, "the weights of the model"
    client.post(f"{project}/predict", {"by": "shop", "and": "day:month", "weight": "stands_for"})
    page = client.done(project).text
    assert "9 groups by shop, month of day," in page
    monkeypatch.chdir(tmp_path)
    for name, frame in (("grades.csv", labelled), ("new.csv", new)):
        (tmp_path / name).write_bytes(csv(frame))
    for step in ("model", "results"):
        (command,) = re.findall(r"<pre><code>ordinalq (.*?)</code></pre>", client.get(f"{project}/{step}").text)
        assert main(shlex.split(command)) == 0
    assert client.get(f"{project}/file/estimates.csv").content == (tmp_path / "estimates.csv").read_bytes()
    client.post(f"{project}/plan", {"width": "0.3"})
    assert "not available with weights" in problem(client.done(project))


def test_a_result_is_never_shown_next_to_other_settings(app, walked, tables):
    client, project = walked
    other = Client(app.port)
    own = other.project(other.send("/upload", "mine.oq", client.get(f"{project}/file/model.oq").content))
    other.send(f"{own}/sample", "new.csv", csv(tables[1]))
    other.done(own)
    other.post(f"{own}/predict", {"by": "shop"})
    other.done(own)
    # The column is not a class: the job fails, and former results are removed.
    other.post(f"{own}/predict", {"by": "shop", "labels": "price", "level": "0.8"})
    page = other.done(own)
    assert page.path.endswith("/new")
    assert problem(page)
    assert "80% intervals" not in other.get(f"{own}/results").text


def test_files_of_work_that_failed_do_not_stay(app, walked, tables):
    client, project = walked
    other = Client(app.port)
    own = other.project(other.send("/upload", "mine.oq", client.get(f"{project}/file/model.oq").content))
    for _ in range(2):
        other.send(f"{own}/sample", "new.csv", csv(tables[1]))
        other.done(own)
    other.post(f"{own}/predict", {"by": "shop"})
    other.done(own)
    other.send(f"{own}/labels", "back.csv", b"no,such\n1,2\n")
    assert problem(other.done(own))
    folder = next(app.folder.rglob(own.rpartition("/")[2]))
    assert len(list(folder.glob("upload-*"))) == 2, "the model and the last table"


def test_labels_of_downloaded_rows_are_used(app, walked, tables, tmp_path, monkeypatch):
    client, project = walked
    _, new = tables
    other = Client(app.port)
    own = other.project(other.send("/upload", "mine.oq", client.get(f"{project}/file/model.oq").content))
    other.send(f"{own}/sample", "new.csv", csv(new))
    other.done(own)
    other.post(f"{own}/predict", {"by": "shop"})
    other.done(own)
    other.post(f"{own}/plan", {"width": "0.3"})
    page = other.done(own).text
    rows = pd.read_csv(io.BytesIO(other.get(f"{own}/file/to_label.csv").content))
    assert f"Download {len(rows):,} rows" in page
    assert f"{len(rows):,} labelled rows" in page
    rows["grade"] = np.where(rows["size"] < 0.5, "bad", np.where(rows["size"] < 1.5, "fair", "good"))
    other.send(f"{own}/labels", "back.csv", csv(rows))
    page = other.done(own).text
    assert "basis" in page
    # By hand and on the command line: the same.
    monkeypatch.chdir(tmp_path)
    new.assign(grade=pd.Series(rows["grade"].to_numpy(), index=rows["line"] - 2)).to_csv("new.csv", index=False)
    (tmp_path / "model.oq").write_bytes(other.get(f"{own}/file/model.oq").content)
    command = "predict model.oq new.csv --by shop --labels grade --interval 0.95 --out out.csv"
    assert main(command.split()) == 0
    assert other.get(f"{own}/file/estimates.csv").content == (tmp_path / "out.csv").read_bytes()


def test_the_report_needs_nothing_else(walked):
    client, project = walked
    answer = client.get(f"{project}/report.html")
    assert answer.headers["content-disposition"] == 'attachment; filename="report.html"'
    page = answer.text
    assert "&lt;b&gt;x&lt;/b&gt;" in page
    assert "<b>x</b>" not in page
    assert "<script" not in page
    addresses = re.findall(r'(?:src|href)="([^"]*)', page)
    assert addresses
    assert all(address.startswith("data:image/svg+xml;base64,") for address in addresses)
    assert "url(" not in page
    means = pd.read_csv(io.BytesIO(client.get(f"{project}/file/estimates.csv").content))["mean_class"]
    assert all(f">{mean:.2f} <" in page for mean in means)


def test_excel_comes_in_and_goes_out_and_periods_of_any_format_are_offered(app, tables, tmp_path):
    labelled, new = (frame.assign(day=frame["day"].dt.strftime("%d.%m.%Y")) for frame in tables)
    content = {}
    for name, frame in (("labelled", labelled), ("new", new)):
        frame.to_excel(tmp_path / "t.xlsx", index=False, engine="xlsxwriter")
        content[name] = (tmp_path / "t.xlsx").read_bytes()
    client = Client(app.port)
    project = client.project(client.send("/upload", "grades.xlsx", content["labelled"]))
    client.post(f"{project}/fit", [*ordered(labelled)[:-1], ("method", "PACC")])
    client.done(project)
    client.send(f"{project}/sample", "new.xlsx", content["new"])
    page = client.done(project).text
    assert '<option value="day:month:%d.%m.%Y">month of day</option>' in page
    client.post(f"{project}/predict", {"by": "shop"})
    page = client.done(project).text
    assert "lowest mean first" in page
    report = client.get(f"{project}/report.html").text
    n_groups = new["shop"].nunique()
    assert f"<caption>{n_groups} groups</caption>" in report
    excel = client.get(f"{project}/file/estimates.xlsx")
    (tmp_path / "estimates.xlsx").write_bytes(excel.content)
    assert len(open_table(tmp_path / "estimates.xlsx").read()) == n_groups
