"""LeQua 2024, task T3: the published format, the measures, the command and the full size."""

import re
import resource
import sys
import tempfile
import time
import zipfile
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from lequa_files import texts, write_archives, write_folder

import ordinalq as oq
from ordinalq.cli.main import main
from ordinalq.datasets import lequa
from ordinalq.datasets.lequa import load_lequa, macro_nmd, write_submission
from ordinalq.paper.benchmarks.lequa import estimate_test_samples
from ordinalq.paper.experiments.config import config_folder, load_config


@pytest.fixture(autouse=True)
def cache(tmp_path, monkeypatch):
    monkeypatch.delenv("ORDINALQ_DATA", raising=False)
    monkeypatch.setenv("ORDINALQ_CACHE", str(tmp_path / "cache"))


def numbers(text):
    return np.array([[float(cell) for cell in line.split(",")] for line in text.splitlines()[1:]])


@pytest.mark.parametrize("write", [write_folder, write_archives])
def test_folders_and_archives_of_the_published_format_are_read(tmp_path, rng, write):
    files = dict(texts(rng))
    order = rng.permutation(len(files))
    write(tmp_path, [list(files.items())[i] for i in order])  # archives are in any order
    dataset = load_lequa(tmp_path)
    assert dataset.classes == ("one", "two", "three", "four", "five")
    assert dataset.protocols == ("LeQua",)
    training = numbers(files["training_data.txt"])
    np.testing.assert_array_equal(dataset.train.y, training[:, 0])
    np.testing.assert_allclose(dataset.train.X, training[:, 1:], rtol=1e-6)
    for pool, prefix, n_samples in (("validation", "dev", 20), ("test", "test", 30)):
        samples, items = dataset.samples("LeQua", pool), getattr(dataset, pool)
        assert len(samples) == n_samples
        assert (items.y == -1).all()
        np.testing.assert_allclose(samples.prevalences, numbers(files[f"{prefix}_prevalences.txt"])[:, 1:], atol=1e-12)
        for number in (0, 7, n_samples - 1):
            X = items.X[samples.items[samples.offsets[number] : samples.offsets[number + 1]]]
            np.testing.assert_allclose(X, numbers(files[f"{prefix}_samples/{number}.txt"]), rtol=1e-6)


def test_folder_and_archives_give_the_same_data_set_by_every_path(tmp_path, rng, monkeypatch):
    files = list(texts(rng))
    for name, write in (("folder", write_folder), ("archives", write_archives)):
        (tmp_path / name).mkdir()
        write(tmp_path / name, files)
    first = load_lequa(tmp_path / "folder")
    monkeypatch.setenv("ORDINALQ_DATA", str(tmp_path / "archives"))
    for data in (tmp_path / "folder/T3/public", tmp_path / "archives", tmp_path / "archives/T3.train_dev.zip", None):
        other = oq.datasets.load_dataset("lequa2024-t3", data)
        for pool in ("validation", "test"):
            a, b = first.samples("LeQua", pool), other.samples("LeQua", pool)
            np.testing.assert_array_equal(a.prevalences, b.prevalences)
            np.testing.assert_array_equal(getattr(first, pool).X[a.items], getattr(other, pool).X[b.items])


def test_conversion_happens_once_and_again_if_the_prevalences_arrive(tmp_path, rng, monkeypatch):
    write_archives(tmp_path, texts(rng))
    truth = (tmp_path / "T3.test_prevalences.zip").read_bytes()
    (tmp_path / "T3.test_prevalences.zip").unlink()
    dataset = load_lequa(tmp_path)
    assert dataset.samples("LeQua", "test").prevalences is None
    assert dataset.notes == ("the prevalences of the test samples are not known",)
    dataset.save(tmp_path / "saved")
    with monkeypatch.context() as patched:
        patched.setattr(lequa, "_convert", None)
        load_lequa(tmp_path)
    (tmp_path / "T3.test_prevalences.zip").write_bytes(truth)
    assert load_lequa(tmp_path).samples("LeQua", "test").prevalences.shape == (30, 5)


DAMAGE = {
    "missing samples": ({"dev_samples/3.txt": None}, r"must be 0\.txt to 19\.txt, 3\.txt is missing"),
    "missing label map": ({"label_map.txt": None}, r"label_map\.txt is missing"),
    "bad label map": ({"label_map.txt": "one 0\ntwo 7\n"}, r"label_map\.txt: expected the ids 0\.\.n-1"),
    "no number": ({"test_samples/4.txt": "0,1,2,3,4,5\n1,2,3,4,x,6\n"}, r"4\.txt, line 2: expected a number"),
    "too few cells": ({"test_samples/4.txt": "0,1,2,3,4,5\n1,2,3,4,5,6\n1,2\n"}, r"4\.txt, line 3: expected 6 columns"),
    "no rows": ({"test_samples/4.txt": "0,1,2,3,4,5\n"}, r"4\.txt: expected rows of 6 numbers"),
    "another header": ({"test_samples/4.txt": "a,b\n1,2\n"}, r"4\.txt, line 1: expected the header 0,1,2"),
    "other features": ({"test_samples/4.txt": "0,1\n1,2\n"}, r"expected \d features as in other files, got \d"),
    "a wrong label": ({"training_data.txt": "label,0,1,2,3,4,5\n9,1,2,3,4,5,6\n"}, "must have the labels 0..4"),
    "few prevalences": ({"dev_prevalences.txt": "id,0,1,2,3,4\n0,1,0,0,0,0\n"}, r"ids 0\.\.19 and 5 classes, got 1"),
    "no distribution": ({"test_prevalences.txt": "id,0,1,2,3,4\n" + "".join(f"{i},1,1,0,0,0\n" for i in range(30))},
                        "test samples must sum to 1"),
}  # fmt: skip


@pytest.mark.parametrize("write", [write_folder, write_archives])
@pytest.mark.parametrize("kind", DAMAGE)
def test_damaged_files_are_named_and_leave_nothing_in_the_cache(tmp_path, rng, write, kind):
    changes, message = DAMAGE[kind]
    files = dict(texts(rng)) | changes
    write(tmp_path, [(name, text) for name, text in files.items() if text is not None])
    with pytest.raises(ValueError, match=message):
        load_lequa(tmp_path)
    assert not list((tmp_path / "cache").glob("*lequa*"))


def test_archives_with_members_outside_of_their_folder_are_rejected(tmp_path, rng):
    write_archives(tmp_path, texts(rng))
    with zipfile.ZipFile(tmp_path / "T3.test.zip", "a") as archive:
        archive.writestr("../test_samples/99.txt", "0,1\n1,2\n")
    with pytest.raises(ValueError, match=r"T3\.test\.zip: refused, because its member"):
        load_lequa(tmp_path)


def test_folder_without_test_samples_is_an_error(tmp_path, rng):
    write_folder(tmp_path, [(name, text) for name, text in texts(rng) if not name.startswith("test")])
    with pytest.raises(FileNotFoundError, match=r"must have T3\.test\.zip or the folder test_samples"):
        load_lequa(tmp_path)


def test_macro_nmd_is_the_mean_over_intervals_of_the_mean_number_of_stars(rng):
    P, P_hat = (rng.dirichlet(np.full(5, 0.4), 200) for _ in range(2))
    P[:3] = np.eye(5)[[0, 1, 4]]  # on the limits of the intervals
    nmd = oq.metrics.nmd(P, P_hat)
    stars = P @ np.arange(1, 6)
    groups = [
        [e for e, s in zip(nmd, stars, strict=True) if low <= s < low + 1 or s == low + 1 == 5] for low in range(1, 5)
    ]
    assert sum(map(len, groups)) == 200
    expected = np.mean([np.mean(group) for group in groups if group])
    np.testing.assert_allclose(macro_nmd(P, P_hat).mean(), expected, rtol=1e-12)


def test_submission_has_an_id_and_one_column_per_class(tmp_path, rng):
    P = rng.dirichlet(np.ones(5), 12)
    write_submission(tmp_path / "out.txt", P)
    table = pd.read_csv(tmp_path / "out.txt", index_col=0)
    assert table.index.name == "id"
    assert list(table.index) == list(range(12))
    assert list(table.columns) == ["0", "1", "2", "3", "4"]
    np.testing.assert_array_equal(np.loadtxt(tmp_path / "out.txt", delimiter=",", skiprows=1)[:, 1:], P)
    with pytest.raises(ValueError, match="P must sum to 1"):
        write_submission(tmp_path / "other.txt", P * 2)


def test_command_chooses_on_development_samples_and_writes_a_submission(tmp_path, rng, capsys):
    write_archives(tmp_path, texts(rng))
    out = tmp_path / "submission.txt"
    command = ["lequa", "--data", str(tmp_path), "--methods", "PACC,OPACC", "--n-jobs", "1", "--out", str(out)]
    assert main(command) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[-1] == f"30 estimates in {out}"
    table = pd.read_csv(out, index_col=0)
    dataset = load_lequa(tmp_path)
    truth = dataset.samples("LeQua", "test").prevalences
    error = oq.metrics.nmd(truth, table.to_numpy()).mean()
    assert lines[-2].startswith(f"test samples: mean NMD {error:.5f}, macro-NMD")
    assert error < oq.metrics.nmd(truth, np.full_like(truth, 0.2)).mean() / 2
    found = estimate_test_samples(dataset, ["PACC", "OPACC"])
    np.testing.assert_allclose(found.P, table.to_numpy(), atol=1e-9)
    assert found.best["nmd"] == found.validation["nmd"].min()
    # Without the prevalences of the test samples the estimates are the same.
    (tmp_path / "T3.test_prevalences.zip").unlink()
    assert main(command) == 0
    assert "test samples" not in capsys.readouterr().out
    np.testing.assert_allclose(pd.read_csv(out, index_col=0), table, atol=1e-12)


def test_methods_without_scores_are_rejected(tmp_path, rng, capsys):
    write_archives(tmp_path, texts(rng))
    assert main(["lequa", "--data", str(tmp_path), "--methods", "OQT", "--out", str(tmp_path / "o.txt")]) != 0
    assert "methods must work on class scores, but OQT does not" in capsys.readouterr().err


def test_experiment_of_the_published_samples_runs(tmp_path, rng, capsys):
    write_archives(tmp_path, texts(rng))
    out, own = tmp_path / "out", tmp_path / "own.toml"
    assert load_config("lequa2024-t3").measures == ("nmd", "macro_nmd")
    text = (config_folder() / "lequa2024-t3.toml").read_text()
    own.write_text(re.sub(r"methods = \[.*?\]", 'methods = ["PACC", "OPACC"]', text, flags=re.DOTALL))
    command = ["reproduce", str(own), "--profile", "quick", "--data", str(tmp_path), "--out", str(out)]
    assert main([*command, "--n-jobs", "1"]) == 0
    capsys.readouterr()
    for measure in ("nmd", "macro_nmd"):
        assert (out / "tables" / f"{measure}.csv").is_file()
    errors = pd.read_parquet(out / "estimates.parquet").query("method == 'OPACC'").groupby("measure")["error"].mean()
    assert 0 < errors["nmd"] < 0.1
    assert 0 < errors["macro_nmd"] < 0.1


def test_experiment_without_test_prevalences_is_an_error(tmp_path, rng, capsys):
    write_archives(tmp_path, texts(rng))
    (tmp_path / "T3.test_prevalences.zip").unlink()
    out = str(tmp_path / "out")
    assert main(["reproduce", "lequa2024-t3", "--data", str(tmp_path), "--out", out, "--n-jobs", "1"]) != 0
    assert "samples of LeQua must have prevalences" in capsys.readouterr().err


@pytest.mark.slow
def test_full_size_is_loaded_searched_and_estimated_within_15_minutes(rng, capsys, monkeypatch):
    """Archives of about 6 GB of text: 20,000 training items, 1,000 and 5,000 samples of 200 items."""
    with tempfile.TemporaryDirectory() as temporary:  # not kept, as `tmp_path` would be
        folder = Path(temporary)
        monkeypatch.setenv("ORDINALQ_CACHE", str(folder / "cache"))
        write_archives(folder, texts(rng, 20_000, 1_000, 5_000, 200, 256))
        start = time.perf_counter()
        load_lequa(folder)
        loaded = time.perf_counter()
        command = ["lequa", "--data", str(folder), "--n-jobs", "2", "--out", str(folder / "submission.txt")]
        assert main(command) == 0
        end = time.perf_counter()
        assert len(pd.read_csv(folder / "submission.txt")) == 5_000
    gigabytes = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    with capsys.disabled():
        sys.stderr.write(f"loading {loaded - start:.0f} s, the rest {end - loaded:.0f} s, {gigabytes:.1f} GB\n")
    assert end - start < 900
    assert gigabytes < 8
