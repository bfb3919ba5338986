"""Tables of any size: the number of workers changes nothing, and a run that was killed goes on."""

import os
import signal
import subprocess
import sys
import time
from concurrent.futures import wait

import numpy as np
import pandas as pd
import pytest
from summaries import predict_table

import ordinalq as oq
from ordinalq._utils.parallel import early_workers, in_order
from ordinalq.cli import main
from ordinalq.io import csv
from ordinalq.io.table import open_table
from ordinalq.tables.aggregate import FinishedBlocks


def run(*arguments):
    assert main(list(map(str, arguments))) == 0


def rows(n, rng):
    stars = rng.integers(1, 4, n)
    return pd.DataFrame(
        {
            "x": stars + rng.normal(size=n),
            "shop": rng.choice(["a", "b", "", "d"], n),
            "day": rng.choice(["2024-01-01", "2024-01-02"], n),
            "stars": stars,
        }
    )


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Two models, and a table of 5000 rows in four files."""
    folder = tmp_path_factory.mktemp("reading")
    rng = np.random.default_rng(0)  # how many processes read a table has nothing to do with what is in it
    train = rows(300, rng)
    for name, method in {"pacc": oq.PACC(), "sld": oq.SLD()}.items():
        oq.TableModel(method, features=["x"]).fit(train, "stars").save(folder / f"{name}.oq")
    (folder / "parts").mkdir()
    for i in range(4):
        rows(1250, rng).to_csv(folder / "parts" / f"{i}.csv", index=False)
    return folder


@pytest.fixture
def workers():
    """Return two workers that have started, so that small tables also reach them."""
    with early_workers(3, "ordinalq.tables.aggregate") as started:
        wait(started)
        yield started


@pytest.mark.parametrize("name", ["pacc", "sld"])
def test_the_number_of_workers_changes_no_byte(folder, tmp_path, name, workers):
    for n_jobs in (1, 2, 3):
        how = ["--by", "shop,day", "--interval", "0.9", "--n-jobs", n_jobs, "--out", tmp_path / f"{n_jobs}.parquet"]
        run("predict", folder / f"{name}.oq", folder / "parts", *how)
    first, *others = ((tmp_path / f"{n_jobs}.parquet").read_bytes() for n_jobs in (1, 2, 3))
    assert all(other == first for other in others)
    found = pd.read_parquet(tmp_path / "1.parquet")
    assert found["n_items"].sum() == 5000
    assert len(found) == 8
    assert found["shop"].isna().sum() == 2


def test_a_worker_names_the_file_and_the_line(folder, tmp_path, capsys, workers):
    for part in sorted((folder / "parts").iterdir()):
        (tmp_path / part.name).write_text(part.read_text())
    text = (tmp_path / "2.csv").read_text().splitlines()
    text[6] = "oops,a,2024-01-01,1"
    (tmp_path / "2.csv").write_text("\n".join(text))
    assert main(["predict", str(folder / "pacc.oq"), str(tmp_path), "--n-jobs", "2"]) == 2
    error = capsys.readouterr().err
    assert "2.csv, line 7: expected a number in column 'x', got 'oops'." in error
    assert error.count("\n") == 1


def test_an_error_of_the_calls_is_raised_and_results_come_in_order():
    def calls():
        yield from ((i,) for i in range(10))
        raise ValueError("out of rows")

    found = []
    with pytest.raises(ValueError, match="out of rows"):
        found.extend(in_order(_later, 100, calls(), 2))
    assert list(in_order(_later, 100, ((i,) for i in range(7)), 2)) == [100 + i for i in range(7)]
    with pytest.raises(ValueError, match="n_jobs must be a whole number other than 0"):
        list(in_order(_later, 100, [], 0))


def test_this_process_and_workers_that_were_started_early_share_the_calls():
    with early_workers(2, "ordinalq.tables.aggregate") as started:
        # The first calls do not wait for the worker, which is starting.
        assert list(in_order(_pid, None, [()] * 2, 2)) == [os.getpid()] * 2
        wait(started)
        found = list(in_order(_pid, None, [()] * 8, 2))
        again = list(in_order(_pid, None, [()] * 8, 2))
    assert os.getpid() in found
    assert len(set(found)) == 2
    assert set(again) == set(found)


def test_the_last_call_is_not_queued_behind_another_one():
    with early_workers(2, "ordinalq.tables.aggregate") as started:
        wait(started)
        busy, last = in_order(_pid, None, [()] * 2, 2)
    assert busy != last == os.getpid()


def test_the_error_of_the_first_of_two_failing_calls_is_raised(workers):
    # The workers get the first calls, and this process gets the last, which fails before them.
    with pytest.raises(ValueError, match="call 1 of 5"):
        list(in_order(_fail, 5, ((i,) for i in range(5)), 3))


def test_results_do_not_wait_for_the_last_call_if_workers_are_faster_than_the_calls(workers):
    requested = []

    def calls():
        for i in range(100):
            time.sleep(0.02)
            requested.append(i)
            yield (i,)

    results = in_order(_add, 100, calls(), 3)
    assert next(results) == 100
    assert len(requested) < 100
    assert list(results) == list(range(101, 200))


def _add(shared, number):
    return shared + number


def test_a_worker_that_is_killed_is_named_in_the_error():
    with pytest.raises(RuntimeError, match=r"^A worker process was killed"):
        _lose_a_worker()


def _lose_a_worker():
    with early_workers(2, "json") as started:
        wait(started)
        list(in_order(_kill_other, os.getpid(), [()] * 4, 2))


def _kill_other(first):
    if os.getpid() != first:
        os.kill(os.getpid(), signal.SIGKILL)


def _fail(shared, number):
    time.sleep(0.2 if number < 4 else 0)
    if number in (1, 4):
        raise ValueError(f"call {number} of {shared}")


def _pid(_):
    time.sleep(0.05)
    return os.getpid()


def _later(shared, number):
    time.sleep(0.05 if number % 2 == 0 else 0)
    return shared + number


def test_finished_units_are_not_computed_again(folder, tmp_path, monkeypatch):
    model, table = oq.load_model(folder / "pacc.oq"), open_table(folder / "parts")
    expected = predict_table(model, table, by="shop", level=0.9).frame()
    kept = FinishedBlocks(tmp_path / "kept", "a model")
    assert predict_table(model, table, by="shop", level=0.9, finished=kept).frame().equals(expected)
    assert len(list((tmp_path / "kept").glob("*.npz"))) == 4
    scored = []
    encode = oq.TableModel.encode
    monkeypatch.setattr(oq.TableModel, "encode", lambda self, X: scored.append(len(X)) or encode(self, X))
    assert predict_table(model, table, by="shop", level=0.9, finished=kept).frame().equals(expected)
    assert scored == []
    # A damaged chunk is made again, another model and a changed file have nothing in common with it.
    next((tmp_path / "kept").glob("*.npz")).write_bytes(b"nonsense")
    assert predict_table(model, table, by="shop", level=0.9, finished=kept).frame().equals(expected)
    assert scored == [1250]
    predict_table(model, table, by="shop", finished=FinishedBlocks(tmp_path / "kept", "another model"))
    assert sum(scored) == 1250 + 5000
    for foreign in ("notes.json", "model.npz"):
        (tmp_path / "kept" / foreign).write_text("not ours")
    kept.delete()
    assert sorted(path.name for path in (tmp_path / "kept").iterdir()) == ["model.npz", "notes.json"]
    for foreign in (tmp_path / "kept").iterdir():
        foreign.unlink()
    kept.delete()
    assert not (tmp_path / "kept").exists()


SLOW = """
import sys, time
import ordinalq as oq
from ordinalq.cli import main
from ordinalq.tables import aggregate
scores = aggregate.scores_of
def slowly(model, frame):
    time.sleep(0.15)
    return scores(model, frame)
aggregate.scores_of = slowly
from ordinalq.io import csv
csv.BLOCK = csv.HEADER = 4000
sys.exit(main(sys.argv[1:]))
"""


def test_a_run_that_was_killed_goes_on_to_the_same_bytes(folder, tmp_path, monkeypatch):
    def command(out, *more):
        return [
            *(sys.executable, "-c", SLOW, "predict", str(folder / "pacc.oq"), str(folder / "parts")),
            *("--by", "shop", "--interval", "0.9", "--out", str(out), *more),
        ]

    monkeypatch.setattr(csv, "BLOCK", 4000)
    monkeypatch.setattr(csv, "HEADER", 4000)
    run("predict", *command(tmp_path / "whole.csv")[4:])
    out, kept = tmp_path / "killed.csv", tmp_path / "killed.csv.parts"
    for moment in range(3):
        process = subprocess.Popen(command(out, "--resume"), stdout=subprocess.DEVNULL)
        deadline = time.monotonic() + 240  # enough for a machine that does other things too
        # Three chunks more than the last time; it may be in the middle of writing one.
        while len(list(kept.glob("*.json")) if kept.exists() else []) < 3 * (moment + 1):
            assert time.monotonic() < deadline
            assert process.poll() is None
            time.sleep(0.01)
        time.sleep(0.03 * moment)
        os.kill(process.pid, signal.SIGKILL)
        process.wait()
        assert not out.exists()
    before = len(list(kept.glob("*.json")))
    assert before >= 9
    run("predict", *command(out, "--resume")[4:])
    assert out.read_bytes() == (tmp_path / "whole.csv").read_bytes()
    assert not kept.exists()


def test_resume_needs_files_and_an_output(folder, tmp_path, capsys):
    table = str(folder / "parts")
    for arguments, message in {
        (table, "--resume"): "--resume needs --out",
        ("-", "--format", "csv", "--resume", "--out", str(tmp_path / "a.csv")): "--resume needs a table in files",
        (table, "--n-jobs", "0"): "--n-jobs must be a whole number other than 0",
        (table, "--scheduler", "tcp://host:1"): "--scheduler needs --engine dask",
        (table, "--engine", "dask", "--master", "local[1]"): "--master needs --engine spark",
    }.items():
        assert main(["predict", str(folder / "pacc.oq"), *arguments]) == 2
        assert message in capsys.readouterr().err
