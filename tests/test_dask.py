"""Tables on Dask: a cluster of two processes gives what one machine gives, also if one of them is killed."""

import os
import signal
import threading
import time

import numpy as np
import pandas as pd
import pytest
from engine_cases import GROUPS, assert_same, cases

import ordinalq as oq
from ordinalq.cli import main
from ordinalq.inference.options import IntervalOptions
from ordinalq.io.table import open_table
from ordinalq.samples import summary as blocks
from ordinalq.tables import engines
from ordinalq.tables.aggregate import Reading
from ordinalq.tables.grouping import Grouping

dask = pytest.importorskip("dask")
dd = pytest.importorskip("dask.dataframe")
distributed = pytest.importorskip("distributed")


@pytest.fixture(scope="module")
def cluster():
    with distributed.LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=":0") as cluster:
        yield cluster


@pytest.fixture
def client(cluster):
    with distributed.Client(cluster) as client:
        yield client


@pytest.fixture(scope="module")
def data():
    models, frame = cases()
    return models, frame, dd.from_pandas(frame, npartitions=4)


@pytest.mark.parametrize("level", [None, 0.9])
@pytest.mark.parametrize("by", GROUPS, ids=str)
def test_two_processes_give_the_result_of_one(client, data, by, level):
    models, frame, there = data
    for model in models.values():
        assert_same(oq.dask.predict_groups(model, there, by, level=level).frame(), model, frame, by, level)


@pytest.mark.parametrize("name", ["PACC", "SLD"])
def test_blocks_of_groups_do_not_change_estimates(data, name, monkeypatch):
    # In threads, which see the smaller blocks too.
    monkeypatch.setattr(blocks, "BLOCK_SAMPLES", 3)
    monkeypatch.setattr(blocks, "BLOCK_ITEMS", 300)
    models, frame, there = data
    by = ["shop", "number"]
    assert_same(oq.dask.predict_groups(models[name], there, by, level=0.9).frame(), models[name], frame, by, 0.9)


def test_labels_of_some_rows_count(client, data):
    models, frame, _ = data
    frame = frame.assign(known=frame["stars"].where(np.arange(len(frame)) % 5 == 0))
    there = dd.from_pandas(frame, npartitions=3)
    found = oq.dask.predict_groups(models["PACC"], there, "number", level=0.9, labels="known")
    expected = models["PACC"].predict_groups(frame, "number", level=0.9, labels="known")
    np.testing.assert_allclose(found.prevalences, expected.prevalences, atol=1e-10)
    np.testing.assert_allclose(found.lower, expected.lower, atol=1e-10)
    assert found.n_labelled.tolist() == expected.n_labelled.tolist()


@pytest.mark.parametrize("name", ["PACC", "SLD"])
def test_weights_of_rows_count(client, data, name):
    models, frame, _ = data
    frame = frame.assign(w=1.0 + np.arange(len(frame)) % 4)
    there = dd.from_pandas(frame, npartitions=3)
    found = oq.dask.predict_groups(models[name], there, "number", sample_weight="w")
    expected = models[name].predict_groups(frame, "number", sample_weight="w")
    np.testing.assert_allclose(found.prevalences, expected.prevalences, atol=1e-10)
    np.testing.assert_allclose(found.n_effective, expected.n_effective)


def test_a_group_that_does_not_fit_names_the_methods_that_need_means(data):
    models, _, there = data
    message = r"group '.' has .* items; SLD needs the scores of all of them in one task, .* 100 .*such as ACC, PACC"
    with pytest.raises(ValueError, match=message):
        oq.dask.predict_groups(models["SLD"], there, "shop", max_items=100)


def test_columns_and_versions_are_checked(data):
    models, _, there = data
    with pytest.raises(ValueError, match="the table: 1 of 3 columns are missing: 'x'"):
        oq.dask.predict_groups(models["PACC"], there.drop(columns="x"), "shop")
    with pytest.raises(TypeError, match="labels must be the name of a column"):
        oq.dask.predict_groups(models["PACC"], there, "shop", labels=[1, 2])
    task = engines.prepared(models["PACC"], there.columns, "shop")
    versions, content = engines.payload(task)
    with pytest.raises(RuntimeError, match=r"the worker .* has scikit-learn .*, but the model comes from 0\.1"):
        engines.received((versions | {"scikit-learn": "0.1"}, content))
    with pytest.raises(ValueError, match="the table has no rows"):
        oq.dask.predict_groups(models["PACC"], there[there["x"] > 1e9], "shop")


def test_a_compressed_file_without_rows_is_skipped_next_to_others(data, tmp_path):
    models, frame, _ = data
    frame.to_csv(tmp_path / "a.csv.gz", index=False)
    frame[:0].to_csv(tmp_path / "b.csv.gz", index=False)
    table = open_table(tmp_path)
    found = oq.dask.read_table(
        engines.Task(Reading(models["PACC"], Grouping("shop", "csv")), None, IntervalOptions()), table
    )
    expected = models["PACC"].predict_groups(frame, "shop")
    np.testing.assert_allclose(found.prevalences, expected.prevalences, atol=1e-6)


def test_a_worker_without_ordinalq_is_named_in_the_error():
    import cloudpickle

    # As it is sent: nothing of ordinalq is imported to unpack it.
    sent = cloudpickle.dumps(engines.remote("dask", "facts"))
    code = (
        "import sys, pickle\n"
        "sys.modules['ordinalq'] = None\n"
        "step = pickle.loads(sys.stdin.buffer.read())\n"
        "try:\n    step(None)\nexcept RuntimeError as error:\n    print(error)\n"
    )
    import subprocess
    import sys

    done = subprocess.run([sys.executable, "-c", code], input=sent, capture_output=True, check=True)
    assert "has no ordinalq: install ordinalq" in done.stdout.decode()


def test_a_worker_that_is_killed_changes_nothing(client, data):
    models, frame, _ = data
    pids = list(client.run(os.getpid).values())
    slow = dd.from_pandas(frame, npartitions=12).map_partitions(_slowly, meta=dd.from_pandas(frame, npartitions=1))
    killer = threading.Timer(1.0, os.kill, (pids[0], signal.SIGKILL))
    killer.start()
    found = oq.dask.predict_groups(models["PACC"], slow, "shop", level=0.9)
    killer.join()
    assert not _alive(pids[0])
    assert_same(found.frame(), models["PACC"], frame, "shop", 0.9)


def _slowly(frame):
    time.sleep(0.4)
    return frame


def _alive(pid):
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


@pytest.mark.parametrize("name", ["PACC", "SLD"])
def test_the_command_line_gives_the_same_file(cluster, data, name, tmp_path, capsys):
    models, frame, _ = data
    models[name].save(tmp_path / "model.oq")
    (tmp_path / "parts").mkdir()
    for i in range(3):
        frame[i::3].to_csv(
            tmp_path / "parts" / f"{i}.csv.gz" if i == 2 else tmp_path / "parts" / f"{i}.csv", index=False
        )
    how = ["predict", tmp_path / "model.oq", tmp_path / "parts", "--by", "number,day", "--interval", "0.9"]
    assert main(list(map(str, [*how, "--out", tmp_path / "here.parquet"]))) == 0
    there = ["--engine", "dask", "--scheduler", cluster.scheduler_address, "--out", tmp_path / "there.parquet"]
    assert main(list(map(str, [*how, *there]))) == 0
    here, there = (pd.read_parquet(tmp_path / f"{name}.parquet") for name in ("here", "there"))
    pd.testing.assert_frame_equal(there, here, rtol=0, atol=1e-10)
    text = (tmp_path / "parts" / "1.csv").read_text().splitlines()
    (tmp_path / "parts" / "1.csv").write_text("\n".join([*text[:4], "oops" + text[4], *text[5:]]))
    capsys.readouterr()
    assert main([*map(str, how), "--engine", "dask", "--scheduler", cluster.scheduler_address]) == 2
    assert "1.csv, line 5: expected a number in column 'x'" in capsys.readouterr().err


def test_engines_reject_unsupported_options(data, tmp_path, capsys, monkeypatch):
    models, frame, _ = data
    models["SLD"].save(tmp_path / "model.oq")
    frame.to_csv(tmp_path / "t.csv", index=False)
    monkeypatch.setitem(dask.config.config["distributed"]["comm"]["timeouts"], "connect", "1s")
    for arguments, message in {
        ("--engine", "flink"): "--engine must be one of 'local', 'dask', 'spark'",
        ("--engine", "dask", "--resume", "--out", "a.csv"): "--resume is only supported with --engine local",
        ("--engine", "dask", "--by", "shop", "--top", "2"): "need --engine local for SLD",
        ("--engine", "dask", "--scheduler", "tcp://127.0.0.1:9"): "no Dask scheduler responds at this address",
    }.items():
        assert main(["predict", str(tmp_path / "model.oq"), str(tmp_path / "t.csv"), *arguments]) == 2
        assert message in capsys.readouterr().err
