"""The command line of the experiments, from the name to the report."""

import json
import subprocess
import sys
from pathlib import Path

import pytest
from small_experiment import CONFIG, write_experiment

from ordinalq.cli import main

SMALL = CONFIG.replace('"HDx", "SLD", "OQT", "ARC", "EDy", "OPACC", "OHDx"', '"OPACC"')


@pytest.fixture(scope="module")
def written(tmp_path_factory):
    """Folder of a small experiment that the command line has run."""
    folder = tmp_path_factory.mktemp("reproduce")
    path = write_experiment(folder, SMALL)
    assert main(["reproduce", str(path), "--out", str(folder / "out"), "--n-jobs", "1", "--quiet"]) == 0
    return folder / "out"


def tables_of(folder):
    return {path.name: path.read_bytes() for path in sorted((folder / "tables").iterdir())}


def test_reproduce_writes_what_it_promises(written):
    names = {path.suffix for path in (written / "tables").iterdir()}
    assert names == {".md", ".tex", ".csv"}
    assert {"nmd.md", "rnod.tex", "ranking.csv"} <= set(tables_of(written))
    assert list((written / "figures").iterdir())
    assert (written / "report.html").read_text(encoding="utf-8").startswith("<!DOCTYPE html>")
    assert list((written / "results").glob("*.parquet"))
    assert "validation" in (written / "log.txt").read_text()


def test_quiet_run_prints_only_the_path_of_the_page(tmp_path, capsys):
    path = write_experiment(tmp_path, SMALL)
    assert main(["reproduce", str(path), "--out", str(tmp_path / "out"), "--n-jobs", "1", "--quiet"]) == 0
    captured = capsys.readouterr()
    assert captured.out == f"{tmp_path / 'out' / 'report.html'}\n"
    assert captured.err == ""


def test_run_shows_progress_and_the_main_table(tmp_path, capsys):
    path = write_experiment(tmp_path, SMALL)
    assert main(["reproduce", str(path), "--out", str(tmp_path / "out"), "--n-jobs", "1"]) == 0
    captured = capsys.readouterr()
    assert "o-PACC" in captured.out
    assert "validation" in captured.err


def test_report_again_gives_the_same_tables_without_computing(written, tmp_path):
    before = tables_of(written)
    for path in (written / "tables").iterdir():
        path.unlink()
    assert main(["report", str(written)]) == 0
    assert tables_of(written) == before


def test_two_experiments_are_compared_by_ranks(written, tmp_path, capsys):
    path = write_experiment(tmp_path, SMALL.replace("seed = 5", "seed = 6"))
    assert main(["reproduce", str(path), "--out", str(tmp_path / "other"), "--n-jobs", "1", "--quiet"]) == 0
    assert main(["report", str(written), str(tmp_path / "other"), "--out", str(tmp_path / "both")]) == 0
    assert (tmp_path / "both" / "report.html").exists()
    assert (tmp_path / "both" / "tables" / "ranking.csv").exists()
    assert main(["report", str(written), str(tmp_path / "other")]) == 2
    assert "give --out" in capsys.readouterr().err


def test_default_folder_is_named_after_experiment_profile_and_settings(tmp_path, monkeypatch, capsys):
    path = write_experiment(tmp_path, SMALL)
    monkeypatch.chdir(tmp_path)
    arguments = ["reproduce", str(path), "--profile", "quick", "--settings", "paper", "--n-jobs", "1", "--quiet"]
    assert main(arguments) == 0
    assert Path(capsys.readouterr().out.strip()) == Path("results/small-quick-paper/report.html")
    about = json.loads((tmp_path / "results/small-quick-paper/run.json").read_text())
    assert about["command"].endswith("--profile quick --settings paper --out results/small-quick-paper")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["freid"], "did you mean 'fried'"),
        (["fried", "--profile", "fast"], "profile must be one of full, quick"),
        (["fried", "--settings", "papers"], "settings must be one of reference, paper"),
        (["fried", "--backend", "lokky"], "backend must be one of"),
        (["fried", "--n-jobs", "0"], "n_jobs must be a whole number other than 0"),
        (["fried", "--data", "nowhere.parquet"], "nowhere.parquet"),
        (["nowhere.toml"], "nowhere.toml: no such file"),
    ],
)
def test_mistakes_are_one_clear_line(tmp_path, monkeypatch, capsys, arguments, message):
    monkeypatch.chdir(tmp_path)
    assert main(["reproduce", *arguments, "--quiet"]) == 2
    error = capsys.readouterr().err
    assert message in error
    assert error.count("\n") == 1
    assert not list(tmp_path.iterdir())


def test_unknown_method_in_a_config_names_the_nearest(tmp_path, capsys):
    path = write_experiment(tmp_path, SMALL.replace('"OPACC"]', '"OPAC"]'))
    assert main(["reproduce", str(path), "--out", str(tmp_path / "out")]) == 2
    assert "did you mean 'OPACC'" in capsys.readouterr().err
    assert not (tmp_path / "out").exists()


def test_folder_of_others_is_left_alone(tmp_path, capsys):
    path = write_experiment(tmp_path, SMALL)
    before = sorted(tmp_path.iterdir())
    assert main(["reproduce", str(path), "--out", str(tmp_path)]) == 2
    assert "name another folder with --out" in capsys.readouterr().err
    assert sorted(tmp_path.iterdir()) == before


def test_second_process_on_the_same_folder_is_refused(written, tmp_path):
    from ordinalq.experiments.store import open_store

    path = write_experiment(tmp_path, SMALL)
    identity = json.loads((written / "run.json").read_text())["experiment"]
    call = [sys.executable, "-m", "ordinalq", "reproduce", str(path), "--out", str(written)]
    with open_store(written, identity):
        done = subprocess.run(call, capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert "in use by another run" in done.stderr
