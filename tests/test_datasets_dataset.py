"""Dataset: disjoint and stratified parts, the samples of each protocol, files for other programs."""

import json
import socket
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import ordinalq as oq
from ordinalq.datasets import Sampling
from ordinalq.datasets.dataset import split_items
from ordinalq.datasets.regression import friedman, make_fried

NAMES = ("low", "middle", "high")


def small(rng, **sampling):
    """A data set of 400 items, three classes, samples of 50 items."""
    frame = pd.DataFrame(rng.normal(size=(400, 2)), columns=["a", "b"])
    frame["target"] = rng.choice([1, 2, 3], size=400, p=[0.2, 0.3, 0.5])
    settings = {"n_validation": 30, "n_test": 40, "sample_size": 50} | sampling
    return oq.datasets.make_dataset(frame, target="target", sampling=Sampling(**settings), random_state=5)


@pytest.mark.parametrize(("n_items", "sizes"), [(400, (200, 100, 100)), (31_000, (20_000, 5_500, 5_500))])
def test_split_is_disjoint_complete_and_of_the_stated_size(n_items, sizes, rng):
    split = split_items(rng.choice(3, size=n_items, p=[0.1, 0.3, 0.6]), NAMES, 1)
    assert_array_equal(np.sort(np.concatenate(split[:3])), np.arange(n_items))
    assert_allclose([len(part) for part in split[:3]], sizes, atol=1)


@pytest.mark.parametrize("n_items", [400, 35_000])
def test_split_is_stratified_to_the_item(n_items, rng):
    y = rng.choice(3, size=n_items, p=[0.1, 0.3, 0.6])
    total = np.bincount(y)
    split = split_items(y, NAMES, 1)
    for part in split[:3]:
        assert_allclose(np.bincount(y[part]), total * len(part) / n_items, atol=1.5)


def test_split_gives_each_part_an_item_of_the_rarest_class():
    y = np.repeat([0, 1, 2], [3, 10_000, 30_000])
    for part in split_items(y, NAMES, 1)[:3]:
        assert np.bincount(y[part], minlength=3).min() >= 1
    with pytest.raises(ValueError, match=r"class 'low' has 2"):
        split_items(y[1:], NAMES, 1)


@pytest.mark.parametrize("counts", [[3, 3, 4], [3] * 10, [3, 3, 3, 3, 500], [3, 4, 5, 6, 7, 100], [9, 3, 3]])
def test_split_gives_each_part_an_item_of_each_of_many_small_classes(counts):
    y = np.repeat(np.arange(len(counts)), counts)
    parts = split_items(y, tuple(map(str, counts)), 1)[:3]
    for part in parts:
        assert np.bincount(y[part], minlength=len(counts)).min() >= 1
    assert_array_equal(np.sort(np.concatenate(parts)), np.arange(len(y)))


@pytest.mark.parametrize(
    ("n_items", "n_train", "rule"), [(29_999, 14_999, "1/2, 1/4, 1/4"), (30_000, 20_000, "20,000 training items")]
)
def test_thirty_thousand_items_do_not_count_as_small(n_items, n_train, rule):
    split = split_items(np.arange(n_items) % 3, NAMES, 1)
    assert len(split.train) == n_train
    assert split.rule.startswith(rule)


def test_split_depends_on_the_random_state_only(rng):
    y = rng.choice(3, size=500)
    assert_array_equal(split_items(y, NAMES, 1).train, split_items(y, NAMES, 1).train)
    assert not np.array_equal(split_items(y, NAMES, 1).train, split_items(y, NAMES, 2).train)


def test_small_data_state_how_they_were_split(rng):
    assert "1/2, 1/4, 1/4" in repr(small(rng))
    assert "20,000 training items" in repr(oq.datasets.load_dataset("fried"))


def test_samples_are_the_same_on_every_call_and_differ_between_pools(rng):
    dataset = small(rng)
    first, again = dataset.samples("APP", "test"), dataset.samples("APP", "test")
    assert_array_equal(first.items, again.items)
    assert len(first) == 40
    other = dataset.samples("APP", "validation")
    assert len(other) == 30
    assert not np.array_equal(first.prevalences[:30], other.prevalences)


def test_prevalences_are_those_of_the_drawn_items(rng):
    dataset = small(rng)
    samples = dataset.samples("APP", "test")
    for b in range(5):
        counts = np.bincount(dataset.test.y[samples.index(b)], minlength=3)
        assert_allclose(samples.prevalences[b], counts / 50)


def test_app_oq_is_the_smoothest_part_of_the_very_app_samples(rng):
    dataset = small(rng, app_oq=0.25)
    app, app_oq = dataset.samples("APP", "test"), dataset.samples("APP-OQ", "test")
    rows = {tuple(app.index(b)): oq.simplex.jaggedness(app.prevalences[b]) for b in range(len(app))}
    kept = [rows.pop(tuple(app_oq.index(b))) for b in range(len(app_oq))]
    assert 8 <= len(kept) <= 12
    assert max(kept) <= min(rows.values()) + 1e-12


def test_real_applies_only_with_vectors(rng):
    plain = small(rng)
    assert plain.protocols == ("APP", "APP-OQ")
    with pytest.raises(ValueError, match="protocol must be one of 'APP', 'APP-OQ', got 'real'"):
        plain.samples("real", "test")
    real = small(rng, real=[[0.2, 0.2, 0.6]])
    assert real.protocols == ("APP", "APP-OQ", "real")
    assert_allclose(real.samples("real", "test").prevalences, [[0.2, 0.2, 0.6]] * 40)
    with pytest.raises(ValueError, match="pool must be one of"):
        real.samples("real", "train")


def test_fried_needs_no_network(monkeypatch):
    def no_socket(*_, **__):
        raise AssertionError("fried must not open a connection")

    monkeypatch.setattr(socket, "socket", no_socket)
    dataset = oq.datasets.load_dataset("fried")
    assert [len(part.y) for part in (dataset.train, dataset.validation, dataset.test)] == [20_000, 10_384, 10_384]
    assert dataset.train.X.dtype == np.float32
    assert dataset.edges[[0, -1]].tolist() == [-0.523, 30.054]


def test_fried_follows_the_formula():
    X, target = make_fried()
    assert X.shape == (40_768, 10)
    assert_array_equal(np.round(X, 3), X)
    residuals = target - friedman(X)
    # Standard errors: .005 of the mean, .0035 of the standard deviation.
    assert_allclose(residuals.mean(), 0, atol=0.02)
    assert_allclose(residuals.std(), 1, atol=0.014)
    assert_allclose(X.mean(axis=0), 0.5, atol=0.006)


def test_friedman_of_a_row_with_distinct_features():
    X = np.array([[1 / 2, 1 / 3, 0.2, 0.3, 0.4, 0.6, 0.7, 0.8, 0.9, 1.0]])
    # 10 sin(pi / 6) + 20 (-.3)^2 + 10 * .3 + 5 * .4 = 5 + 1.8 + 3 + 2
    assert_allclose(friedman(X), [11.8])


def test_fried_is_the_same_data_set_on_every_run():
    one, two = oq.datasets.load_dataset("fried"), oq.datasets.load_dataset("fried")
    assert_array_equal(one.train.X, two.train.X)
    assert_array_equal(one.samples("APP", "test").items, two.samples("APP", "test").items)
    assert not np.array_equal(one.train.X, oq.datasets.load_dataset("fried", random_state=1).train.X)


def test_settings_of_the_paper_repeat_items_only_of_classes_with_too_few():
    dataset = oq.datasets.load_dataset("fried", settings="paper")
    assert dataset.sampling.min_per_class == 0
    sampling = replace(dataset.sampling, n_test=200)
    dataset = replace(dataset, sampling=sampling)
    samples = dataset.samples("APP", "test")
    available = np.bincount(dataset.test.y)
    counts = np.round(samples.prevalences * 1000).astype(int)
    assert (counts == 0).any()
    for b in range(len(samples)):
        items = samples.index(b)
        distinct = np.bincount(dataset.test.y[np.unique(items)], minlength=10)
        assert_array_equal(distinct, np.minimum(counts[b], available))
    assert any("samples repeat items" in note for note in dataset.notes)


@pytest.mark.parametrize(("settings", "n_test", "least"), [("reference", 2000, 3), ("paper", 5000, 0)])
def test_settings_give_the_numbers_of_samples(settings, n_test, least):
    sampling = oq.datasets.load_dataset("fried", settings=settings).sampling
    assert (sampling.n_validation, sampling.n_test, sampling.sample_size, sampling.app_oq) == (1000, n_test, 1000, 0.2)
    assert (sampling.rounding, sampling.min_per_class, sampling.small_pool) == ("balanced", least, "repeat")


def test_paper_settings_remove_items_outside_of_the_span():
    reference, paper = oq.datasets.load_dataset("fried"), oq.datasets.load_dataset("fried", settings="paper")
    n_items = [sum(len(part.y) for part in (d.train, d.validation, d.test)) for d in (reference, paper)]
    assert n_items[0] == 40_768 > n_items[1]
    total = sum(np.bincount(part.y) for part in (paper.train, paper.validation, paper.test))
    assert total.min() >= 1000


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"name": "fred"}, "name must be one of fried, .*make_dataset"),
        ({"name": "fried", "settings": "printed"}, "settings must be one of"),
        ({"name": "fried", "random_state": -1}, "random_state must be an integer"),
    ],
)
def test_load_dataset_names_the_mistake(arguments, message):
    with pytest.raises(ValueError, match=message):
        oq.datasets.load_dataset(**arguments)


def test_saved_files_hold_items_and_samples(rng, tmp_path):
    dataset = small(rng)
    files = dataset.save(tmp_path / "out")
    assert all(file.exists() for file in files)
    description = json.loads((tmp_path / "out" / "dataset.json").read_text())
    assert description["classes"] == ["1", "2", "3"]
    train = pd.read_parquet(tmp_path / "out" / "train.parquet")
    assert_array_equal(train["class"], dataset.train.y)
    assert_allclose(train[["a", "b"]], dataset.train.X)
    saved = pd.read_parquet(tmp_path / "out" / "samples_app_test.parquet")
    samples = dataset.samples("APP", "test")
    assert_array_equal(saved["items"][3], samples.index(3))
    assert_allclose(np.stack(saved["prevalence"]), samples.prevalences)
    test = pd.read_parquet(tmp_path / "out" / "test.parquet")
    counts = np.bincount(test["class"].to_numpy()[saved["items"][3]], minlength=3)
    assert_allclose(saved["prevalence"][3], counts / 50)


def test_save_replaces_its_own_files_and_no_others(rng, tmp_path):
    dataset = small(rng)
    dataset.save(tmp_path)
    dataset.save(tmp_path)
    (tmp_path / "thesis.txt").write_text("mine")
    with pytest.raises(FileExistsError, match=r"holds 'thesis\.txt'"):
        dataset.save(tmp_path)
    assert (tmp_path / "thesis.txt").read_text() == "mine"
    assert (tmp_path / "train.parquet").exists()
    with pytest.raises(NotADirectoryError, match="must be a folder"):
        dataset.save(tmp_path / "thesis.txt")


def test_save_keeps_the_old_files_until_the_new_ones_are_written(rng, tmp_path, monkeypatch):
    dataset = small(rng)
    dataset.save(tmp_path)
    before = {path.name: path.read_bytes() for path in tmp_path.iterdir()}

    def full_disk(*_):
        raise OSError("no space left on device")

    monkeypatch.setattr("ordinalq.datasets.dataset._write_rows", full_disk)
    with pytest.raises(OSError, match="no space left"):
        small(rng).save(tmp_path)
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == before


def test_save_removes_the_files_of_a_killed_call(rng, tmp_path):
    dataset = small(rng)
    dataset.save(tmp_path)
    left = tmp_path / ".ordinalq-killed"
    left.mkdir()
    (tmp_path / "dataset.json").rename(left / "dataset.json")  # killed before the last of its files was moved
    files = dataset.save(tmp_path)
    assert sorted(tmp_path.iterdir()) == sorted(files)


def test_save_takes_the_type_of_a_column_from_all_rows(tmp_path, monkeypatch):
    monkeypatch.setattr("ordinalq.datasets.dataset.CHUNK_ROWS", 10)
    remark = np.array([None] * 60 + ["late"] * 30, dtype=object)
    frame = pd.DataFrame({"remark": remark, "number": np.arange(90.0), "y": np.tile([0, 1, 2], 30)})
    dataset = oq.datasets.make_dataset(
        frame, "y", encoder=None, sampling=Sampling(n_validation=2, n_test=2, sample_size=10)
    )
    dataset.save(tmp_path)
    saved = pd.read_parquet(tmp_path / "train.parquet")
    assert (saved["remark"] == "late").sum() == (dataset.train.X["remark"] == "late").sum() > 0
    assert_array_equal(saved["number"], dataset.train.X["number"])
    frame["remark"] = [1, "two", 3.0] * 30
    mixed = oq.datasets.make_dataset(frame, "y", encoder=None, sampling=dataset.sampling)
    with pytest.raises(ValueError, match="column 'remark' cannot be written to Parquet"):
        mixed.save(tmp_path / "mixed")


def test_save_takes_numpy_numbers(rng, tmp_path):
    frame = pd.DataFrame({"a": rng.normal(size=60), "y": np.tile([0, 1, 2], 20)})
    sampling = Sampling(n_validation=2, n_test=2, sample_size=10, app_oq=np.float32(0.5))
    oq.datasets.make_dataset(frame, "y", sampling=sampling, random_state=np.int64(3)).save(tmp_path / "table")
    oq.datasets.load_dataset("fried", random_state=np.int64(3)).save(tmp_path / "fried")
    for name in ("table", "fried"):
        assert json.loads((tmp_path / name / "dataset.json").read_text())["random_state"] == 3


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"rounding": "up"}, "rounding must be one of"),
        ({"min_per_class": -1}, "min_per_class must be an integer >= 0"),
        ({"rounding": "truncate"}, "min_per_class must be 0 with rounding='truncate'"),
        ({"small_pool": "ignore"}, "small_pool must be one of"),
    ],
)
def test_sampling_names_the_mistake_at_once(options, message):
    with pytest.raises(ValueError, match=message):
        Sampling(n_validation=1, n_test=1, **options)


def test_a_feature_called_class_keeps_its_column(rng, tmp_path):
    frame = pd.DataFrame({"class": rng.normal(size=40), "y": np.tile([0, 1, 2, 3], 10)})
    dataset = oq.datasets.make_dataset(frame, "y", sampling=Sampling(n_validation=2, n_test=2, sample_size=20))
    dataset.save(tmp_path)
    train = pd.read_parquet(tmp_path / "train.parquet")
    assert_array_equal(train["class_"], dataset.train.y)
    assert_allclose(train["class"], dataset.train.X[:, 0])
