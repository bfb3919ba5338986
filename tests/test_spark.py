"""Tables on Spark: two threads give what one machine gives, also if a worker is killed.

They need pyspark and a Java runtime, see `make cluster-test`.
"""

import os
import shutil
import signal
import sys
import warnings

import numpy as np
import pandas as pd
import pytest
from engine_cases import GROUPS, SCHEMA, assert_same, cases

import ordinalq as oq
from ordinalq.cli import main

pyspark = pytest.importorskip("pyspark")
WEIGHED = "x double, z double, shop string, known double, w double"
pytestmark = [
    pytest.mark.skipif(shutil.which("java") is None, reason="no Java runtime"),
    pytest.mark.filterwarnings("ignore:PySpark does not yet fully support pandas:FutureWarning"),
    # Spark's own sockets.
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),
]


@pytest.fixture(scope="module")
def session():
    os.environ["PYSPARK_PYTHON"] = sys.executable
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        # A task is tried four times.
        session = oq.spark.session("local[2,4]")
        session.conf.set("spark.sql.shuffle.partitions", "2")
    yield session
    session.stop()


@pytest.fixture(scope="module")
def data(session):
    models, frame = cases()
    rows = frame.astype(object).where(frame.notna(), None).to_dict("records")
    return models, frame, session.createDataFrame(rows, SCHEMA).repartition(3).persist()


@pytest.mark.parametrize("level", [None, 0.9])
@pytest.mark.parametrize("by", GROUPS, ids=str)
def test_executors_give_the_result_of_one_machine(data, by, level):
    models, frame, there = data
    for model in models.values():
        assert_same(oq.spark.predict_groups(model, there, by, level=level).toPandas(), model, frame, by, level)


@pytest.mark.parametrize("name", ["PACC", "GroupBLP"])
def test_labels_and_weights_of_rows_count(session, data, name):
    """Labels of any groups enter all estimates of GroupBLP, which takes two passes."""
    models, frame, _ = data
    frame = frame[["x", "z", "shop"]].assign(known=frame["stars"].where(frame.index % 5 == 0), w=1.0 + frame.index % 4)
    there = session.createDataFrame(frame.astype(object).where(frame.notna(), None).to_dict("records"), WEIGHED)
    how = {"level": 0.9, "labels": "known", "sample_weight": "w"}
    found = oq.spark.predict_groups(models[name], there, "shop", **how).toPandas()
    expected = models[name].predict_groups(frame, "shop", **how).frame()
    pd.testing.assert_frame_equal(
        found.set_index("shop").loc[expected["shop"]], expected.set_index("shop"), check_dtype=False, rtol=0, atol=1e-10
    )


def test_groups_keep_their_types(data):
    models, _, there = data
    found = dict(oq.spark.predict_groups(models["PACC"], there, ["day", "number"]).dtypes)
    assert (found["day"], found["number"], found["n_items"], found["mean_class"]) == (
        "date",
        "bigint",
        "bigint",
        "double",
    )


def test_a_worker_that_is_killed_changes_nothing(data, tmp_path):
    models, frame, there = data
    marker = str(tmp_path / "killed")

    def die_once(batches):
        if not os.path.exists(marker):
            open(marker, "w").close()
            os.kill(os.getpid(), signal.SIGKILL)
        yield from batches

    found = oq.spark.predict_groups(models["PACC"], there.mapInArrow(die_once, SCHEMA), "shop", level=0.9)
    assert_same(found.toPandas(), models["PACC"], frame, "shop", 0.9)
    assert os.path.exists(marker)


def test_errors_of_executors_are_printed_in_one_line(data):
    models, _, there = data
    bad = there.selectExpr("x / 0.0 - x / 0.0 as y", "*").selectExpr("double('inf') as x", "z", "shop")
    with pytest.raises(ValueError, match=r"^the table, row .*: expected a finite number in column 'x', got inf\.$"):
        oq.spark.predict_groups(models["PACC"], bad, "shop")
    with pytest.raises(ValueError, match=r"group .* SLD needs the scores of all of them"):
        oq.spark.predict_groups(models["SLD"], there, "shop", max_items=100)
    with pytest.raises(ValueError, match="columns are missing: 'x'"):
        oq.spark.predict_groups(models["SLD"], there.drop("x"), "shop")


@pytest.mark.parametrize("name", ["PACC", "SLD"])
def test_the_command_line_gives_the_same_file(data, name, tmp_path, capsys):
    models, frame, _ = data
    models[name].save(tmp_path / "model.oq")
    for i in range(3):
        folder = tmp_path / f"parts/year={i}"
        folder.mkdir(parents=True)
        frame[i::3].to_parquet(folder / "a.parquet")
    how = ["predict", tmp_path / "model.oq", tmp_path / "parts", "--by", "number,year", "--interval", "0.9"]
    assert main(list(map(str, [*how, "--out", tmp_path / "here.parquet"]))) == 0
    there = ["--engine", "spark", "--master", "local[2,4]", "--out", tmp_path / "there.parquet"]
    assert main(list(map(str, [*how, *there]))) == 0
    here, there = (pd.read_parquet(tmp_path / f"{where}.parquet") for where in ("here", "there"))
    pd.testing.assert_frame_equal(there, here, rtol=0, atol=1e-10)
    frame.assign(x=np.inf).to_parquet(tmp_path / "parts/year=1/a.parquet")
    capsys.readouterr()
    assert main([*map(str, how), "--engine", "spark", "--master", "local[2,4]"]) == 2
    assert "a.parquet, row 0: expected a finite number in column 'x', got inf." in capsys.readouterr().err
