"""The benchmark on tweets of SemEval: data, scores and command."""

import numpy as np
import pandas as pd
import pytest

from ordinalq.cli.main import main
from ordinalq.datasets import load_semeval
from ordinalq.datasets.semeval import FILES
from ordinalq.paper.benchmarks import semeval
from ordinalq.paper.benchmarks.parts import run_parts

WORDS = {-2: "awful", -1: "bad", 0: "plain", 1: "good", 2: "great"}


def tweets(rng, n_topics=6, n_items=40):
    """Return tweets of the published form: topics per part, and a word for each class with some noise."""
    rows = []
    for part in FILES:
        for topic in range(n_topics):
            label = rng.permutation(np.resize([-2, -1, 0, 1, 2], n_items))
            seen = np.clip(label + rng.integers(-1, 2, n_items), -2, 2)
            text = [f"{WORDS[word]} thing {rng.integers(9)}" for word in seen]
            rows.append(pd.DataFrame({"part": part, "topic": f"{part} {topic}", "label": label, "text": text}))
    return pd.concat(rows, ignore_index=True)


def write_published(table, folder):
    """Write the five published files, each with a tweet that is not available any more."""
    for part, name in FILES.items():
        chosen = table[table["part"] == part]
        lines = [f"{i}\t{row.topic}\t{row.label}\t{row.text}" for i, row in enumerate(chosen.itertuples())]
        (folder / name.rpartition("/")[2]).write_text("\n".join([*lines, "7\tgone\t0\tNot Available", ""]))


def test_loader_reads_the_same_from_published_files_and_parquet(tmp_path, rng):
    table = tweets(rng)
    write_published(table, tmp_path)
    found = load_semeval(tmp_path)
    pd.testing.assert_frame_equal(found.reset_index(drop=True), table, check_dtype=False)
    table.to_parquet(tmp_path / "semeval_tweets.parquet")
    pd.testing.assert_frame_equal(load_semeval(tmp_path), table, check_dtype=False)


def test_loader_names_missing_columns_and_broken_lines(tmp_path, rng):
    table = tweets(rng, n_topics=1)
    table.drop(columns="topic").to_parquet(tmp_path / "semeval_tweets.parquet")
    with pytest.raises(ValueError, match="lacks topic"):
        load_semeval(tmp_path)
    (tmp_path / "semeval_tweets.parquet").unlink()
    write_published(table, tmp_path)
    for wrong in ("1\ttopic\t0", "1\ttopic\tgood\ttext"):
        (tmp_path / FILES["dev"].rpartition("/")[2]).write_text(f"1\ttopic\t0\ttext\n{wrong}\n")
        with pytest.raises(ValueError, match=r"line 2, must have .* separated by tabs"):
            load_semeval(tmp_path)


def test_command_prints_emd_by_year_next_to_published_figures_and_continues(tmp_path, rng, monkeypatch, capsys):
    tweets(rng).to_parquet(tmp_path / "semeval_tweets.parquet")
    kept = {name: semeval.METHODS[name] for name in ("CC", "GroupBLP, groups")}
    monkeypatch.setattr(semeval, "METHODS", kept)
    monkeypatch.setattr(semeval, "LABELS", (10,))
    arguments = ["reproduce", "semeval", "--profile", "quick", "--data", str(tmp_path), "--out", str(tmp_path / "out")]
    assert main([*arguments, "--n-jobs", "1"]) == 0
    out = capsys.readouterr().out
    assert "0.2430" in out
    assert "earth mover's distance in classes; lower is better" in out
    scores = pd.read_csv(tmp_path / "out" / "scores.csv")
    assert len(scores) == 3 * (1 + 1 + 2)
    table = pd.read_csv(tmp_path / "out" / "table.csv", index_col=0)
    # All topics are balanced, and so are the training items.
    np.testing.assert_allclose(table.loc["training distribution"], 0, atol=1e-12)
    expected = scores[(scores["method"] == "GroupBLP, groups") & (scores["labels"] == 10) & (scores["part"] == "2016")]
    np.testing.assert_allclose(table.loc["GroupBLP, groups, 10 labels", "2016"], expected["score"].item(), atol=1e-12)
    monkeypatch.setattr(semeval, "_part", pytest.fail)  # nothing is computed again
    assert main([*arguments, "--n-jobs", "1"]) == 0


def test_a_run_that_stopped_between_two_years_continues(tmp_path, rng, monkeypatch):
    tweets(rng).to_parquet(tmp_path / "semeval_tweets.parquet")
    monkeypatch.setattr(semeval, "METHODS", {"CC": semeval.METHODS["CC"]})
    out = tmp_path / "out"
    assert next(semeval.run_semeval(out, profile="quick", data=tmp_path)) == "topics of 2016"
    assert pd.read_csv(out / "table.csv", index_col=0).loc["CC", "2016"] < 1
    assert len(list(semeval.run_semeval(out, profile="quick", data=tmp_path))) == 3
    assert not pd.read_csv(out / "scores.csv").duplicated(["part", "method"]).any()


def test_a_failing_method_is_reported_and_the_others_run(tmp_path, rng, monkeypatch, capsys):
    tweets(rng).to_parquet(tmp_path / "semeval_tweets.parquet")
    broken = semeval.PublishedMethod(semeval.KDEy(bandwidth=-1.0))
    monkeypatch.setattr(semeval, "METHODS", {"KDEy": broken, "CC": semeval.METHODS["CC"]})
    out = tmp_path / "out"
    arguments = ["reproduce", "semeval", "--profile", "quick", "--data", str(tmp_path), "--out", str(out)]
    assert main([*arguments, "--n-jobs", "1"]) == 1
    assert "KDEy failed" in capsys.readouterr().err
    scores = pd.read_csv(out / "scores.csv", keep_default_na=False).set_index(["method", "part"])
    assert "bandwidth" in scores.loc[("KDEy", "2016"), "message"]
    assert float(scores.loc[("CC", "2016"), "score"]) < 1


def test_scores_of_another_profile_are_computed_again(tmp_path):
    def compute(name):
        calls.append(name)
        yield {"part": name, "method": "PACC", "score": 0.5}

    calls = []
    for profile in ("quick", "full", "full"):
        parts = run_parts(tmp_path, profile, ("part",), [("2016",), ("2017",)], compute, lambda scores: scores)
        assert [name for (name,) in parts] == ["2016", "2017"]
    assert calls == 2 * ["2016", "2017"]
    assert set(pd.read_csv(tmp_path / "table.csv")["profile"]) == {"full"}


def test_parts_with_a_failed_method_are_computed_again(tmp_path):
    def compute(name):
        calls.append(name)
        yield {"part": name, "method": "PACC", "score": 0.5}
        yield {"part": name, "method": "SLD", "score": np.nan if calls == ["2016"] else 0.25}

    calls = []
    for _ in range(3):
        list(run_parts(tmp_path, "full", ("part",), [("2016",), ("2017",)], compute, lambda scores: scores))
    assert calls == ["2016", "2017", "2016"]
    assert sorted(pd.read_csv(tmp_path / "scores.csv")["score"]) == [0.25, 0.25, 0.5, 0.5]
