"""The command line: short results, one-line errors, exit codes 0, 1 and 2."""

import json
from itertools import pairwise
from pathlib import Path

import pytest

import ordinalq as oq
from ordinalq.cli import main
from ordinalq.cli.options import app as main_app
from ordinalq.datasets import CATALOG


@pytest.fixture(autouse=True)
def no_local_copies(tmp_path, monkeypatch):
    monkeypatch.delenv("ORDINALQ_DATA", raising=False)
    monkeypatch.setenv("ORDINALQ_CACHE", str(tmp_path / "cache"))


def test_datasets_lists_every_entry_with_size_licence_and_place(capsys, tmp_path):
    (tmp_path / "fried.csv").touch()
    assert main(["datasets", "--data", str(tmp_path)]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert set(lines.pop(1)) == {"─"}
    # Lines are broken at words, 80 columns wide: those that go on have no name.
    assert [line.split()[0] for line in lines if line[0] != " "] == ["name", *(entry.name for entry in CATALOG)]
    starts = [i for i, line in enumerate(lines) if line[0] != " "]
    texts = [" ".join("".join(lines[a:b]).split()) for a, b in pairwise([*starts, len(lines)])]
    assert "40,768" in texts[1]
    assert "built in" in texts[1]
    # A path has no blanks to be broken at.
    assert str(tmp_path / "fried.csv") in texts[2].replace(" ", "")
    assert "CC BY 4.0" in texts[4]
    assert "not downloaded" in texts[4]


def test_documentation_names_every_data_set():
    text = (Path(__file__).parents[1] / "docs" / "datasets.md").read_text(encoding="utf-8")
    for entry in CATALOG:
        assert f"| `{entry.name}` |" in text


def test_extract_writes_the_data_set(capsys, tmp_path):
    assert main(["extract", "fried", "--out", str(tmp_path / "out"), "--random-state", "3"]) == 0
    assert "fried: 8 files in" in capsys.readouterr().out
    description = json.loads((tmp_path / "out" / "dataset.json").read_text())
    assert description["random_state"] == 3
    assert description["classes"] == list(oq.datasets.load_dataset("fried").classes)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["extract", "fred", "--out", "x"], "ordinalq: name must be one of fried"),
        (["extract", "fried"], "ordinalq: Missing option '--out'"),
        (["extract", "fried", "--out", "x", "--settings", "mine"], "ordinalq: --settings must be one of"),
        (["extract", "fried", "--out", "x", "--data", "absent"], "ordinalq: absent: no such file or folder"),
        (["datasets", "--data", "absent"], "ordinalq: absent: folder not found"),
        (["extract", "fried", "--out", "x", "--random-state", "many"], "ordinalq: Invalid value for '--random-state'"),
        (["quantify"], "ordinalq: No such command 'quantify'"),
    ],
)
def test_mistakes_of_the_caller_are_one_line_and_exit_code_2(arguments, message, capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert main(arguments) == 2
    error = capsys.readouterr().err
    assert error.startswith(message)
    assert error.count("\n") == 1


def test_unreachable_source_is_one_line_and_exit_code_1(capsys, tmp_path, monkeypatch):
    monkeypatch.setattr("ordinalq.datasets.download.OPENML", "http://127.0.0.1:9")
    assert main(["extract", "yolanda", "--out", str(tmp_path / "out")]) == 1
    error = capsys.readouterr().err
    assert "put it as Yolanda.arff into the folder named by ORDINALQ_DATA" in error
    assert error.count("\n") == 1
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("position", [0, 1, 2, 4])
def test_debug_shows_the_traceback_wherever_it_stands(position, tmp_path):
    arguments = ["extract", "fred", "--out", str(tmp_path)]
    arguments.insert(position, "--debug")
    with pytest.raises(ValueError, match="name must be one of"):
        main(arguments)
    assert main(["datasets", "--debug"]) == 0


def test_extract_checks_the_folder_before_it_loads(capsys, tmp_path, monkeypatch):
    monkeypatch.setattr("ordinalq.datasets.load_dataset", None)  # not called
    (tmp_path / "thesis.txt").write_text("mine")
    assert main(["extract", "fried", "--out", str(tmp_path)]) == 2
    assert "holds 'thesis.txt'; name another folder" in capsys.readouterr().err


def test_datasets_reports_an_absent_folder_of_local_copies(capsys, tmp_path, monkeypatch):
    monkeypatch.setenv("ORDINALQ_DATA", str(tmp_path / "absent"))
    assert main(["datasets"]) == 2
    error = capsys.readouterr().err
    assert error.startswith("ordinalq: ORDINALQ_DATA must name a folder")
    assert error.count("\n") == 1


def test_call_without_arguments_shows_the_help(capsys):
    assert main([]) == 2
    captured = capsys.readouterr()
    assert "Usage" in captured.out + captured.err
    assert "ordinalq:" not in captured.err


def test_long_work_is_shown_on_a_terminal_unless_quiet(capsys, monkeypatch):
    import sys
    import time

    from ordinalq.cli import display, fit

    def methods():
        with display.working("fitting on train.csv"):
            time.sleep(0.3)

    verb = next(verb for verb in main_app.registered_commands if verb.callback is fit.methods)
    monkeypatch.setattr(verb, "callback", methods)
    monkeypatch.setattr(display, "PATIENCE", 0.01)
    monkeypatch.setenv("TERM", "xterm")
    for terminal, quiet, expected in ((True, False, True), (True, True, False), (False, False, False)):
        monkeypatch.setattr(sys.stderr, "isatty", lambda answer=terminal: answer, raising=False)
        assert main(["methods", *["--quiet"] * quiet]) == 0
        assert ("fitting on train.csv" in capsys.readouterr().err) == expected


def test_the_version_needs_no_subcommand(capsys):
    assert main(["--version"]) == 0
    assert capsys.readouterr().out == f"ordinalq {oq.__version__}\n"


def test_quiet_is_accepted_anywhere(capsys):
    assert main(["datasets", "--quiet"]) == 0
    assert main(["--quiet", "methods"]) == 0
    assert "PACC" in capsys.readouterr().out
