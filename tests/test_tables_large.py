"""Tables too large to learn from, and results too large for one file."""

import numpy as np
import pandas as pd
import pytest
from seeds import generator

import ordinalq as oq
from ordinalq.cli import main, predict
from ordinalq.io.table import open_table
from ordinalq.tables import aggregate
from ordinalq.tables.aggregate import shares, some_rows


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A table of 4000 rows in two files, and a model."""
    folder = tmp_path_factory.mktemp("sampling")
    rng = generator()
    stars = rng.integers(1, 4, 4000)
    frame = pd.DataFrame({"x": stars + rng.normal(size=4000), "stars": stars})
    frame["shop"] = np.where(np.arange(4000) < 3, "tiny", np.where(rng.random(4000) < 0.25, "small", "large"))
    (folder / "parts").mkdir()
    frame[:1500].to_csv(folder / "parts" / "0.csv", index=False)
    frame[1500:].to_csv(folder / "parts" / "1.csv", index=False)
    oq.TableModel(oq.PACC(), features=["x"]).fit(frame, "stars").save(folder / "model.oq")
    return folder


def test_shares_are_the_same_part_of_each_group():
    found = shares(np.array([10_000, 5000, 3, 1]), 1500)
    assert found.sum() == 1500
    assert found[2:].tolist() == [1, 1]
    np.testing.assert_allclose(found[:2] / [10_000, 5000], 0.1, rtol=0.01)
    assert shares(np.array([2, 3]), 10).tolist() == [2, 3]
    with pytest.raises(ValueError, match="max_items must be at least the number of groups, 3, got 2"):
        shares(np.array([5, 5, 5]), 2)


def test_rows_are_drawn_from_all_of_the_table_and_each_group(folder, caplog):
    table = open_table(folder / "parts")
    whole = table.read()
    found = some_rows(table, None, "shop", 400, 0)
    assert len(found) == 400
    counts, sizes = found["shop"].value_counts(), whole["shop"].value_counts()
    assert counts["tiny"] >= 1
    np.testing.assert_allclose(counts[["small", "large"]] / sizes[["small", "large"]], 0.1, rtol=0.05)
    assert "learned from 400 of 4,000 rows, 10% of each of 3 values of 'shop'" in caplog.text
    # In order, none twice, from both files.
    values = found["x"].tolist()
    positions = [whole["x"].tolist().index(value) for value in values]
    assert positions == sorted(set(positions))
    assert 0.25 < np.mean(np.array(positions) < 1500) < 0.5
    again, other = some_rows(table, None, "shop", 400, 0), some_rows(table, None, "shop", 400, 1)
    assert again["x"].tolist() == values
    assert other["x"].tolist() != values
    assert len(some_rows(table, ["x", "shop"], "shop", 9999, 0)) == 4000


def test_draws_are_uniform(folder, monkeypatch):
    """Each row is drawn as often as any other: 200 draws of 100 of 4000 rows."""
    table = open_table(folder / "parts")
    frames = list(table.chunks())
    monkeypatch.setattr(type(table), "chunks", lambda self, *a, **k: iter(frames))
    monkeypatch.setattr(aggregate.logger, "disabled", True)
    place = {value: i for i, value in enumerate(pd.concat(frames)["x"])}
    hits = np.zeros(4000)
    rng = generator(1)
    for _ in range(200):
        hits[[place[value] for value in some_rows(table, None, "stars", 100, rng)["x"]]] += 1
    # Poisson with mean 5 in each of 40 stretches of 100 rows: 500 +- 22.
    stretches = hits.reshape(40, 100).sum(axis=1)
    assert stretches.sum() == 200 * 100
    assert abs(stretches - 500).max() < 6 * np.sqrt(500)


def test_fit_learns_from_some_rows(folder, tmp_path, capsys, caplog):
    fit = ["fit", folder / "parts", "--target", "stars", "--features", "x", "--method", "PACC"]
    fit = [*map(str, fit), "--out", str(tmp_path / "m.oq"), "--max-items"]
    assert main([*fit, "600"]) == 0
    assert "fitted on 600 items" in capsys.readouterr().out
    assert "learned from 600 of 4,000 rows, 15% of each of 3 values of 'stars'" in caplog.text
    assert main([*fit, "2"]) == 2
    assert "--max-items must be at least the number of groups, 3, got 2" in capsys.readouterr().err


def test_results_may_be_the_files_of_a_folder(folder, tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(predict, "PART_GROUPS", 2)
    how = ["predict", folder / "model.oq", folder / "parts", "--by", "shop"]
    assert main(list(map(str, [*how, "--out", tmp_path / "result.parquet"]))) == 0
    for _ in range(2):  # it may be written again
        assert main(list(map(str, [*how, "--out", tmp_path / "result"]))) == 0
    assert sorted(path.name for path in (tmp_path / "result").iterdir()) == ["part-00000.parquet", "part-00001.parquet"]
    pd.testing.assert_frame_equal(
        open_table(tmp_path / "result").read().reset_index(drop=True),
        open_table(tmp_path / "result.parquet").read().reset_index(drop=True),
        check_names=False,
    )
    (tmp_path / "result" / "thesis.txt").write_text("mine")
    assert main(list(map(str, [*how, "--out", tmp_path / "result"]))) == 2
    assert "expected a new folder, or one of an earlier table, but it has 'thesis.txt'" in capsys.readouterr().err
    assert (tmp_path / "result" / "thesis.txt").read_text() == "mine"
