"""The command line of the experiments, from the name to the report."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from small_experiment import CONFIG, write_experiment

from ordinalq.cli import main
from ordinalq.paper.experiments.config import load_config
from ordinalq.paper.experiments.runner import IDENTITY, run
from ordinalq.paper.experiments.store import open_store

SMALL = CONFIG.replace('"HDx", "SLD", "OQT", "ARC", "EDy", "OPACC", "OHDx"', '"OPACC"')


@pytest.fixture(scope="module")
def quiet_run(tmp_path_factory):
    """Folder in which the command line has run a small experiment, and what it has printed."""
    folder = tmp_path_factory.mktemp("reproduce")
    write_experiment(folder, SMALL)
    call = [sys.executable, "-m", "ordinalq", "reproduce", "small.toml", "--profile", "quick", "--settings", "paper"]
    return folder, subprocess.run([*call, "--n-jobs", "1", "--quiet"], cwd=folder, capture_output=True, text=True)


@pytest.fixture
def written(quiet_run):
    """Folder of the results."""
    return quiet_run[0] / "results" / "small-quick-paper"


def tables_of(folder):
    return {path.name: path.read_bytes() for path in sorted((folder / "tables").iterdir())}


def test_quiet_run_prints_only_the_path_of_the_page(quiet_run):
    _, done = quiet_run
    assert (done.returncode, done.stdout, done.stderr) == (0, "results/small-quick-paper/report.html\n", "")


def test_reproduce_writes_the_documented_files(written):
    assert {path.suffix for path in (written / "tables").iterdir()} == {".md", ".tex", ".csv"}
    assert {"nmd.md", "rnod.tex", "ranking.csv"} <= set(tables_of(written))
    assert list((written / "figures").iterdir())
    assert (written / "report.html").read_text(encoding="utf-8").startswith("<!DOCTYPE html>")
    assert list((written / "results").glob("*.parquet"))
    assert "validation" in (written / "log.txt").read_text()


def test_a_method_that_fails_everywhere_is_printed_logged_and_an_exit_code(tmp_path):
    methods = '["CC", "PACC", "HDx", "SLD", "OQT", "ARC", "EDy", "OPACC", "OHDx"]'
    config = CONFIG.replace(methods, '["PACC", "outside_methods:Broken"]').split("[grid.OPACC]")[0]
    write_experiment(tmp_path, config)
    call = [sys.executable, "-m", "ordinalq", "reproduce", "small.toml", "--n-jobs", "1", "--quiet"]
    environment = os.environ | {"PYTHONPATH": str(Path(__file__).parent)}
    done = subprocess.run(call, cwd=tmp_path, env=environment, capture_output=True, text=True)
    assert done.returncode == 1
    assert done.stdout == "results/small/report.html\n"
    assert done.stderr == "ordinalq: Broken failed in all configurations: ValueError: the gate is shut\n"
    assert "failed: Broken: ValueError: the gate is shut" in (tmp_path / "results/small/log.txt").read_text()


def test_report_names_the_command_that_runs_it_again(written):
    about = json.loads((written / "run.json").read_text())
    expected = "small.toml --profile quick --settings paper --out results/small-quick-paper"
    assert about["command"] == f"ordinalq reproduce {expected}"
    assert expected in (written / "report.html").read_text(encoding="utf-8")


def test_second_run_shows_progress_and_the_main_table_and_gives_the_same_tables(
    quiet_run, written, monkeypatch, capsys
):
    before = tables_of(written)
    shutil.rmtree(written / "tables")
    monkeypatch.chdir(quiet_run[0])
    assert main(["reproduce", "small.toml", "--profile", "quick", "--settings", "paper", "--n-jobs", "1"]) == 0
    captured = capsys.readouterr()
    assert "o-PACC" in captured.out
    assert "validation: 1 of 1 units are already done" in captured.err
    assert tables_of(written) == before


def test_report_again_gives_the_same_tables_without_computing(written, monkeypatch):
    before = tables_of(written)
    shutil.rmtree(written / "tables")
    monkeypatch.setattr("ordinalq.paper.experiments.runner.prepare", None)
    assert main(["report", str(written)]) == 0
    assert tables_of(written) == before


def test_two_experiments_are_compared_by_ranks(written, tmp_path, capsys):
    config = load_config(write_experiment(tmp_path, SMALL.replace("seed = 5", "seed = 6")), "quick", "paper")
    run(config, tmp_path / "other", n_jobs=1)
    assert main(["report", str(written), str(tmp_path / "other")]) == 2
    assert "out must be a folder for the comparison" in capsys.readouterr().err
    assert main(["report", str(written), str(tmp_path / "other"), "--out", str(tmp_path / "both")]) == 0
    assert (tmp_path / "both" / "report.html").exists()
    assert (tmp_path / "both" / "tables" / "ranking.csv").exists()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["freid"], "did you mean 'fried'"),
        (["fried", "--profile", "fast"], "profile must be one of full, quick"),
        (["fried", "--settings", "papers"], "settings must be one of reference, paper"),
        (["fried", "--backend", "lokky"], "backend must be one of"),
        (["fried", "--n-jobs", "0"], "--n-jobs must be a whole number other than 0"),
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


def test_foreign_folder_is_left_unchanged(tmp_path, capsys):
    path = write_experiment(tmp_path, SMALL)
    before = sorted(tmp_path.iterdir())
    assert main(["reproduce", str(path), "--out", str(tmp_path)]) == 2
    assert "name another folder" in capsys.readouterr().err
    assert sorted(tmp_path.iterdir()) == before


def test_empty_folder_is_good(tmp_path):
    path = write_experiment(tmp_path, SMALL)
    (tmp_path / "out").mkdir()
    arguments = ["reproduce", str(path), "--profile", "quick", "--out", str(tmp_path / "out"), "--n-jobs", "1"]
    assert main([*arguments, "--quiet"]) == 0
    assert (tmp_path / "out" / "report.html").exists()


def test_report_of_a_folder_in_use_is_rejected(written, capsys):
    about = json.loads((written / "run.json").read_text())["experiment"]
    with open_store(written, {name: about[name] for name in IDENTITY}):
        assert main(["report", str(written)]) == 2
    assert "in use by another run" in capsys.readouterr().err


def test_one_experiment_is_not_two_data_sets(written, tmp_path, capsys):
    assert main(["report", str(written), str(written), "--out", str(tmp_path / "x")]) == 2
    assert "name each once" in capsys.readouterr().err
    assert not (tmp_path / "x").exists()


def test_second_process_on_the_same_folder_is_rejected(quiet_run, written):
    folder, _ = quiet_run
    about = json.loads((written / "run.json").read_text())["experiment"]
    call = [sys.executable, "-m", "ordinalq", "reproduce", "small.toml", "--profile", "quick", "--settings", "paper"]
    with open_store(written, {name: about[name] for name in IDENTITY}):
        done = subprocess.run(call, cwd=folder, capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert "in use by another run" in done.stderr
