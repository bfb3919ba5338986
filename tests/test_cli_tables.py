"""From a table to distributions with error bars: the README's transcript, files, groups, columns, the terminal."""

import gzip
import json
import os
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose
from progress_record import ProgressRecord
from seeds import generator
from sklearn.naive_bayes import GaussianNB
from summaries import predict_table

import ordinalq as oq
from ordinalq.cli import display, main
from ordinalq.io import table as read
from ordinalq.io.columns import column_kinds, typed
from ordinalq.io.table import open_table
from ordinalq.tables.fit import build_quantifier, fit_table
from ordinalq.tables.model_file import read_info

ROOT = Path(__file__).parents[1]
STARS = ["1", "2", "3", "4", "5"]


def run(*arguments):
    assert main(list(map(str, arguments))) == 0


@pytest.fixture(scope="module")
def reviews(tmp_path_factory):
    """The synthetic reviews, and a model of them."""
    folder = tmp_path_factory.mktemp("reviews")
    subprocess.run([sys.executable, ROOT / "examples" / "make_reviews.py", folder], check=True)
    method = ["--method", "OPACC", "--tau", "1e-3"]
    run("fit", folder / "train.csv", "--target", "stars", "--text", "review", *method, "--out", folder / "stars.oq")
    return folder


def truth(folder):
    return pd.read_csv(folder / "truth.csv").set_index("product")


def test_last_lines_of_predict_count_groups_that_do_not_fit_and_name_the_next_step(reviews, tmp_path, capsys):
    new = pd.read_csv(reviews / "new.csv")
    strange = new[new["product"] == "kettle"].assign(product="strange")
    # Every second review loses its words: no mixture of the classes looks like this.
    strange.loc[strange.index[::2], "review"] = "it"
    pd.concat([new, strange]).to_csv(tmp_path / "new.csv", index=False)
    run("predict", reviews / "stars.oq", tmp_path / "new.csv", "--by", "product", "--out", tmp_path / "fit.csv")
    last = " ".join(capsys.readouterr().out.splitlines()[-3:])
    assert f"next:      to label items: ordinalq plan {reviews / 'stars.oq'}" in last
    assert re.search(
        "fit: (1 of 6 groups with enough items does|2 of 6 groups with enough items do) not look like", last
    )
    assert "a mixture of the training classes: train with --by" in last
    found = pd.read_csv(tmp_path / "fit.csv").set_index("product")["fit"]
    assert found["strange"] == "bad"
    assert (found.drop("strange") != "good").sum() <= 1


@pytest.mark.filterwarnings("default:.*no word of the training texts")
def test_diagnosis_is_not_followed_by_a_good_fit_to_the_training_groups(reviews, tmp_path, capsys):
    train = ["--target", "stars", "--text", "review", "--by", "product", "--method", "GroupBLP"]
    run("fit", reviews / "train.csv", *train, "--out", tmp_path / "groups.oq")
    new = pd.read_csv(reviews / "new.csv").assign(review="xyzzy plugh")
    path = written(new, tmp_path / "new.csv")
    predict = ["predict", tmp_path / "groups.oq", path, "--by", "product"]
    capsys.readouterr()
    run(*predict)
    assert "look like the training groups" in capsys.readouterr().out
    run(*predict, "--diagnose")
    out = capsys.readouterr().out
    assert "bad fit in 5 of 5 groups with enough items" in out
    assert "look like the training groups" not in out


def test_level_of_intervals_is_printed(reviews, capsys):
    predict = ["predict", reviews / "stars.oq", reviews / "new.csv"]
    run(*predict, "--by", "product")
    assert "intervals\n" not in capsys.readouterr().out.replace("for intervals\n", "")
    run(*predict, "--by", "product", "--interval", "0.9")
    assert "\n90% intervals\n" in capsys.readouterr().out
    run(*predict, "--by", "date:quarter")
    assert "\n95% intervals for the population of each group, not only for these rows\n" in capsys.readouterr().out


def test_predict_names_the_next_step(reviews, tmp_path, capsys):
    new = written(pd.read_csv(reviews / "new.csv"), tmp_path / "new table.csv")
    predict = ["predict", reviews / "stars.oq", new]
    run(*predict)
    assert capsys.readouterr().out.endswith("next:      add --interval 0.95 for intervals\n")
    run(*predict, "--by", "date:quarter")
    command = shlex.split(capsys.readouterr().out.partition("for narrower intervals:")[2])
    assert command == ["ordinalq", "plan", str(reviews / "stars.oq"), str(new), "--by", "date:quarter"]
    run(*command[1:])


# The README


def transcript():
    """Return the commands of the README and of the guide that continues it, with their output."""
    texts = [(ROOT / name).read_text(encoding="utf-8") for name in ("README.md", "docs/everyday.md")]
    blocks = [block for text in texts for block in re.findall(r"```console\n(.*?)```", text, re.DOTALL)]
    parts = re.split(r"^\$ ", "".join(blocks).replace("\\\n", " "), flags=re.MULTILINE)[1:]
    return [(command.split(), output) for command, output in (part.split("\n", 1) for part in parts)]


def same_but_for_rounding(output, expected):
    """Compare words exactly, and numbers up to two units of their last digit."""
    number = r"\d[\d,]*(?:\.\d+)?"
    assert re.sub(number, "#", re.sub(" +", " ", output)) == re.sub(number, "#", re.sub(" +", " ", expected))
    for a, b in zip(re.findall(number, output), re.findall(number, expected), strict=True):
        digits = len(b.partition(".")[2])
        assert abs(float(a.replace(",", "")) - float(b.replace(",", ""))) <= 2.1 * 10**-digits, (a, b)


@pytest.mark.printed
def test_commands_of_the_readme_print_the_documented_output(capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "80")
    commands = transcript()
    assert [words[:2] for words, _ in commands] == [
        ["python", "examples/make_reviews.py"],
        ["ordinalq", "fit"],
        ["ordinalq", "predict"],
        ["ordinalq", "predict"],
        ["ordinalq", "compare"],
        ["ordinalq", "evaluate"],
    ]
    for words, expected in commands:
        if words[0] == "python":
            subprocess.run([sys.executable, ROOT / words[1], *words[2:]], check=True)
            continue
        capsys.readouterr()
        assert main(words[1:]) == 0
        captured = capsys.readouterr()
        assert captured.err == ""
        same_but_for_rounding(captured.err + captured.out, expected)
    assert (tmp_path / "result.png").read_bytes().startswith(b"\x89PNG")
    result = pd.read_csv("result.csv").set_index("product")
    true = truth(tmp_path / "reviews")
    assert list(result.index) == list(true.index)
    assert oq.metrics.nmd(true.to_numpy(), result[STARS].to_numpy()).max() < 0.06
    mean = true.to_numpy() @ np.arange(1, 6)
    assert (np.abs(result["mean_class"] - mean) < 0.15).all()
    assert (result["mean_class_lower"] < result["mean_class"]).all()
    assert (result["mean_class_upper"] > result["mean_class"]).all()
    covered = [
        (result[f"{star}_lower"] - 1e-12 <= true[star]) & (true[star] <= result[f"{star}_upper"] + 1e-12)
        for star in STARS
    ]
    assert np.mean(covered) > 0.8


def test_the_reviews_are_always_the_same(reviews, tmp_path):
    subprocess.run([sys.executable, ROOT / "examples" / "make_reviews.py", tmp_path], check=True)
    for name in ("train.csv", "labelled.csv", "new.csv", "truth.csv"):
        assert (tmp_path / name).read_bytes() == (reviews / name).read_bytes()


@pytest.mark.slow
@pytest.mark.skipif(
    not (Path(os.environ.get("ORDINALQ_DATA", "absent")) / "amazon_consumer_reviews.parquet").is_file(),
    reason="needs amazon_consumer_reviews.parquet in ORDINALQ_DATA",
)
def test_device_reviews_by_product(tmp_path, capsys):
    frame = pd.read_parquet(Path(os.environ["ORDINALQ_DATA"]) / "amazon_consumer_reviews.parquet")
    frame = frame[["name", "reviews.text", "reviews.rating"]].sample(frac=1, random_state=0)
    half = len(frame) // 2
    frame.iloc[:half].to_parquet(tmp_path / "train.parquet")
    frame.iloc[half:].to_parquet(tmp_path / "new.parquet")
    model, result = tmp_path / "stars.oq", tmp_path / "result.csv"
    fit = ["--target", "reviews.rating", "--text", "reviews.text", "--method", "OPACC", "--tau", "auto"]
    run("fit", tmp_path / "train.parquet", *fit, "--skip-unlabelled", "--out", model)
    plot = tmp_path / "result.png"
    predict = ["--by", "name", "--interval", "0.95", "--out", result, "--plot", plot]
    run("predict", model, tmp_path / "new.parquet", *predict)
    assert plot.stat().st_size > 10_000
    table = pd.read_csv(result).set_index("name")
    new = frame.iloc[half:].dropna(subset=["reviews.rating"])
    large = new.groupby("name")["reviews.rating"].agg(["mean", "size"]).query("size >= 500")
    found = table.loc[large.index]
    assert len(large) >= 5
    assert (np.abs(found["mean_class"] - large["mean"]) < 0.3).all()
    capsys.readouterr()
    groups = ["--by", "name", "--skip-unlabelled", "--json"]
    run("evaluate", model, tmp_path / "new.parquet", *groups)
    errors = {row["estimate"]: row["nmd"] for row in json.loads(capsys.readouterr().out)["errors"]}
    assert set(errors) == {"OPACC", "CC", "PCC", "training prevalences"}


# predict


def test_estimates_do_not_depend_on_the_chunks(reviews, tmp_path, monkeypatch):
    pd.read_csv(reviews / "new.csv").head(150).to_csv(tmp_path / "new.csv", index=False)
    predict = ["predict", reviews / "stars.oq", tmp_path / "new.csv", "--by", "product", "--interval", "0.9"]
    run(*predict, "--out", tmp_path / "whole.csv")
    monkeypatch.setattr(read, "PORTION_ROWS", 37)
    run(*predict, "--out", tmp_path / "chunks.csv")
    monkeypatch.setattr(read, "PORTION_BYTES", 100)
    run(*predict, "--out", tmp_path / "rows.csv")
    whole = pd.read_csv(tmp_path / "whole.csv")
    for name in ("chunks.csv", "rows.csv"):
        pd.testing.assert_frame_equal(pd.read_csv(tmp_path / name), whole, rtol=1e-6, atol=1e-7)


def test_estimates_are_those_of_the_library(reviews, tmp_path):
    run("predict", reviews / "stars.oq", reviews / "new.csv", "--by", "product", "--out", tmp_path / "result.csv")
    model, new = oq.load_model(reviews / "stars.oq"), pd.read_csv(reviews / "new.csv")
    S = model.scores(new)
    samples = oq.Samples.from_groups(new["product"])
    result = pd.read_csv(tmp_path / "result.csv")
    assert result["product"].tolist() == samples.groups_.tolist()
    assert_allclose(result[STARS], model.fitted().predict_scores(S, samples), atol=1e-9)
    assert result["n_items"].tolist() == samples.sizes.tolist()
    assert_allclose(model.predict(new), model.fitted().predict_scores(S, oq.Samples.whole(len(S)))[0])


def written(frame, path):
    """Write a frame in the format of the ending."""
    text = path.name.removesuffix(".gz")
    if text.endswith(".parquet"):
        frame.to_parquet(path)
        return path
    if text.endswith(".xlsx"):
        frame.to_excel(path, index=False, engine="xlsxwriter")
        return path
    if text.endswith("sep.csv"):
        path.write_text("sep=;\n" + frame.to_csv(index=False, sep=";"))
        return path
    if text.endswith("jsonl"):
        content = frame.to_json(orient="records", lines=True, force_ascii=False, double_precision=15)
    elif text.endswith("semicolon.csv"):
        content = frame.to_csv(index=False, sep=";")
    else:
        content = frame.to_csv(index=False, sep="\t" if text.endswith(".tsv") else ",")
    data = content.encode("utf-8-sig" if "mark" in text else "utf-8")
    path.write_bytes(gzip.compress(data) if path.name.endswith(".gz") else data)
    return path


def mixed_table(n=300):
    """Return rows of every kind of column, with missing values."""
    rng = generator(3)
    stars = rng.integers(1, 6, size=n)
    frame = pd.DataFrame(
        {
            "comment": [f"well, a “{'very ' * s}good” thing\nline two, no. {i % 41}" for i, s in enumerate(stars)],
            "price": np.where(rng.random(n) < 0.1, np.nan, stars + rng.normal(size=n)),
            "size": rng.choice(["small", "large", None], size=n),
            "gift": stars > 3,
            "day": pd.Timestamp("2024-01-01") + pd.to_timedelta(rng.integers(0, 300, size=n), unit="D"),
            "code": [f"c-{i:05d}" for i in range(n)],
            "week": rng.integers(8, 12, size=n),
            "stars": stars,
        }
    )
    frame["day"] = frame["day"].dt.strftime("%Y-%m-%d")
    return frame


FILES = ("t.csv", "t.tsv", "t.jsonl", "t.parquet", "t.csv.gz", "t.jsonl.gz", "mark.csv", "semicolon.csv")
FILES += ("t.xlsx", "sep.csv")


@pytest.fixture(scope="module")
def mixed_model(tmp_path_factory):
    folder = tmp_path_factory.mktemp("mixed")
    train = written(mixed_table(), folder / "train.csv")
    run("fit", train, "--target", "stars", "--method", "PACC", "--out", folder / "model.oq")
    return folder / "model.oq"


def test_kinds_of_columns_are_found(mixed_model):
    info = read_info(mixed_model)
    assert info.columns == {
        "comment": "text",
        "price": "number",
        "size": "category",
        "gift": "category",
        "week": "number",
    }
    assert oq.load_model(mixed_model).unused_ == {
        "stars": "the target",
        "code": "300 different values in 300 rows, no text",
        "day": "a date",
    }
    assert info.target == "stars"
    assert info.n_held_out == 300


@pytest.mark.parametrize("name", FILES)
def test_every_format_gives_the_same_estimates(name, mixed_model, tmp_path, capsys):
    new = mixed_table(200).drop(columns="stars")
    expected = predict_table(
        oq.load_model(mixed_model), open_table(written(new, tmp_path / "expected.csv")), by="week", level=0.9
    )
    found = predict_table(oq.load_model(mixed_model), open_table(written(new, tmp_path / name)), by="week", level=0.9)
    pd.testing.assert_frame_equal(found.frame(), expected.frame(), rtol=1e-9)
    assert found.frame()["week"].tolist() == [8, 9, 10, 11]


@pytest.mark.parametrize("name", ["t.csv", "t.jsonl", "t.parquet"])
def test_every_format_gives_the_same_model(name, tmp_path):
    file = open_table(written(mixed_table(), tmp_path / name))
    fitted = fit_table(file, "stars", build_quantifier("PACC"))
    new = mixed_table(100)
    reference = open_table(written(mixed_table(), tmp_path / "reference.csv"))
    expected = fit_table(reference, "stars", build_quantifier("PACC"))
    assert fitted.kinds_ == expected.kinds_
    assert_allclose(fitted.predict(new), expected.predict(new), rtol=0, atol=1e-9)


@pytest.mark.parametrize("ending", ["csv", "tsv", "jsonl", "parquet"])
def test_results_are_written_in_the_format_of_the_file_extension(ending, reviews, tmp_path):
    out = tmp_path / f"result.{ending}"
    run("predict", reviews / "stars.oq", reviews / "new.csv", "--by", "product", "--out", out)
    frame = open_table(out).read()
    assert list(frame.columns) == ["product", "n_items", *STARS, "mean_class", "fit"]
    assert_allclose(frame[STARS].astype(float).sum(axis=1), 1)
    assert [path.name for path in tmp_path.iterdir()] == [out.name]


def test_rows_without_a_group_are_a_group_of_their_own_and_come_last(reviews, tmp_path):
    new = pd.read_csv(reviews / "new.csv")
    new.loc[new["product"] == "lamp", "product"] = None
    new.to_csv(tmp_path / "new.csv", index=False)
    run("predict", reviews / "stars.oq", tmp_path / "new.csv", "--by", "product", "--out", tmp_path / "result.csv")
    assert pd.isna(pd.read_csv(tmp_path / "result.csv")["product"].tolist()[-1])
    assert pd.read_csv(tmp_path / "result.csv")["n_items"].tolist()[-1] == 150


def test_without_a_group_all_rows_are_one_sample(reviews, capsys):
    run("predict", reviews / "stars.oq", reviews / "new.csv", "--json")
    result = json.loads(capsys.readouterr().out)
    assert result["classes"] == [1, 2, 3, 4, 5]
    assert result["level"] is None
    [group] = result["groups"]
    assert (group["group"], group["n_items"]) == ("all", 1600)
    true = (truth(reviews).to_numpy() * [[300], [250], [400], [150], [500]]).sum(axis=0) / 1600
    assert oq.metrics.nmd(true, group["prevalences"]) < 0.03


def test_intervals_of_the_population_are_wider_than_of_the_sample(reviews, capsys):
    widths = {}
    for target in ("sample", "population"):
        interval = ["--interval", "0.9", "--estimand", target, "--json"]
        run("predict", reviews / "stars.oq", reviews / "new.csv", "--by", "product", *interval)
        groups = json.loads(capsys.readouterr().out)["groups"]
        widths[target] = np.array([g["mean_class_upper"] - g["mean_class_lower"] for g in groups])
        assert all(len(g["lower"]) == len(g["upper"]) == 5 for g in groups)
    assert (widths["population"] > widths["sample"]).all()


def test_diagnosis_is_that_of_the_library(reviews, capsys):
    model, new = oq.load_model(reviews / "stars.oq"), pd.read_csv(reviews / "new.csv")
    expected = model.diagnose(new)
    run("predict", reviews / "stars.oq", reviews / "new.csv", "--diagnose")
    # Lines end where the terminal does.
    assert " ".join(str(expected).split()) in " ".join(capsys.readouterr().out.split())
    run("predict", reviews / "stars.oq", reviews / "new.csv", "--diagnose", "--json")
    assert json.loads(capsys.readouterr().out)["diagnosis"].keys() == expected.to_dict().keys()


def widest(out):
    """Return the length of the longest line besides the next command, which is in one line to be copied."""
    return max(len(line) for line in out.splitlines() if not line.startswith("next:"))


def test_terminal_shows_a_table_and_bars(reviews, capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    run("predict", reviews / "stars.oq", reviews / "new.csv", "--by", "product", "--interval", "0.9")
    out = capsys.readouterr().out
    assert re.search(r"^product +items +1 +2 +3 +4 +5 +mean class$", out, re.MULTILINE)
    assert re.search(r"^kettle +400 +\d+% .*\(.* to .*\)$", out, re.MULTILINE)
    bars = re.findall(r"^ +(\d)  (█*).* (\d+)%  \(\d+ to \d+\)$", out, re.MULTILINE)
    assert len(bars) == 25
    kettle = [len(bar) for _, bar, _ in bars[10:15]]
    assert kettle == sorted(kettle, reverse=True)  # most have one star
    assert widest(out) <= 80


def test_terminal_output_fits_any_width_and_obeys_no_escape_sequences(reviews, tmp_path, capsys, monkeypatch):
    new = pd.read_csv(reviews / "new.csv")
    new["product"] = new["product"].replace("fan", "fan \x1b[31mred\x1b[0m [bold]x[/bold] " + 40 * "long ")
    new.to_csv(tmp_path / "new.csv", index=False)
    for width in (40, 60, 200):
        monkeypatch.setenv("COLUMNS", str(width))
        run("predict", reviews / "stars.oq", tmp_path / "new.csv", "--by", "product", "--interval", "0.9")
        out = capsys.readouterr().out
        assert "\x1b" not in out
        assert widest(out) <= width
    assert "[bold]" in out


def test_long_names_in_the_terminal_stay_distinct(reviews, tmp_path, capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    new = pd.read_csv(reviews / "new.csv")
    new["product"] = "An appliance for the kitchen of the whole family, kind: " + new["product"]
    path = written(new, tmp_path / "new.csv")
    run("predict", reviews / "stars.oq", path, "--by", "product")
    rows = capsys.readouterr().out.splitlines()[2:7]
    ends = [re.split("  +", row.partition("…")[2])[0].split()[-1] for row in rows]
    assert ends == ["blender", "fan", "kettle", "lamp", "toaster"]


def test_progress_is_shown_on_terminals_and_for_long_work_only(reviews, monkeypatch, capsys):
    arguments = ["predict", reviews / "stars.oq", reviews / "new.csv"]
    for patience, terminal, expected in ((0.0, False, False), (60.0, True, False), (0.0, True, True)):
        monkeypatch.setattr(display, "PATIENCE", patience)
        monkeypatch.setenv("TERM", "xterm")
        monkeypatch.setattr(sys.stderr, "isatty", lambda answer=terminal: answer)
        run(*arguments)
        captured = capsys.readouterr()
        assert ("reading" in captured.err) == expected
        assert "reading" not in captured.out


def test_reading_reports_its_progress(reviews, tmp_path, monkeypatch):
    monkeypatch.setattr(read, "PORTION_ROWS", 100)
    new = pd.read_csv(reviews / "new.csv")
    for name in ("new.csv", "new.csv.gz", "new.jsonl", "new.parquet"):
        file = open_table(written(new, tmp_path / name))
        with ProgressRecord() as far:
            assert sum(len(frame) for frame in file.chunks(["review"])) == 1600
        parts = [part for part, _ in far.told]
        assert parts == sorted(parts)
        assert parts[-1] == 1
        assert len({part for part in parts if 0 < part < 1}) >= 2


# fit


def test_the_next_command_of_fit_has_the_groups_and_the_weights_and_can_be_run(tmp_path, capsys):
    frame = mixed_table().rename(columns={"week": "week of sale"}).assign(w=1.5)
    train, model = written(frame, tmp_path / "my train.csv"), tmp_path / "my model.oq"
    fit = ["fit", train, "--target", "stars", "--features", "price", "--method", "PACC", "--by", "week of sale"]
    run(*fit, "--weight", "w", "--weight-type", "frequency", "--out", model)
    printed = capsys.readouterr().out.partition("next:")[2]
    command = shlex.split(printed)
    assert command[:4] == ["ordinalq", "predict", str(model), "NEW_TABLE"]
    run("predict", model, train, *command[4:])
    assert "weights" not in capsys.readouterr().err
    assert command[4:8] == ["--by", "week of sale", "--weight", "w"]


def test_fit_without_a_method_prints_its_choice_the_reason_and_the_expected_error(tmp_path, capsys):
    train = written(mixed_table(), tmp_path / "train.csv")
    fit = ["fit", train, "--target", "stars", "--features", "price,week", "--out", tmp_path / "m.oq"]
    run(*fit, "--budget", "fast")
    text = capsys.readouterr().out
    assert "m.oq: model of 'stars', fitted on 300 items\n" in text
    assert not any(word in text for word in ("AutoQuantifier", "AdjustedML", "NMD", "stack", "weights"))
    assert "expected:  off by " in text
    assert "next: ordinalq predict " in " ".join(text.split())
    run(*fit, "--budget", "fast", "--verbose")
    text = capsys.readouterr().out
    assert "method:    AutoQuantifier" in text
    assert "chosen:    AdjustedML on a stack for 'few' items, budget 'fast'" in text
    assert "ridge regression: a regressor" in text
    assert "expected NMD: 0." in text
    run(*fit, "--budget", "fast", "--json")
    assert set(json.loads(capsys.readouterr().out)["training"]["expected"]) == {"100", "1000"}
    run(*fit, "--classifier", "logistic")
    assert "method:    AdjustedML" in capsys.readouterr().out


def test_forests_columns_and_parameters_can_be_chosen(tmp_path, capsys):
    train = written(mixed_table(), tmp_path / "train.csv")
    options = ["--features", "price,week", "--categories", "week", "--classifier", "forest", "--set", "order=2"]
    options += ["--method", "OPACC"]
    run("fit", train, "--target", "stars", *options, "--tau", "0.01", "--out", tmp_path / "m.oq", "--json")
    result = json.loads(capsys.readouterr().out)
    assert result["columns"] == {"price": "number", "week": "category"}
    assert result["n_items"] == 300
    model = oq.load_model(tmp_path / "m.oq")
    assert (model.fitted().tau, model.fitted().order) == (0.01, 2)
    assert type(model.fitted().classifier_.estimator_).__name__ == "RandomForestClassifier"


@pytest.mark.parametrize("method", ["HDx", "OHDx", "OQT", "ARC", "SLD", "RUN"])
def test_methods_of_every_kind_work_on_tables(method, tmp_path, capsys):
    train = written(mixed_table(), tmp_path / "train.csv")
    fit = ["--target", "stars", "--features", "price,size,day,gift", "--method", method]
    run("fit", train, *fit, "--out", tmp_path / "m.oq")
    run("predict", tmp_path / "m.oq", train, "--by", "week", "--out", tmp_path / "r.csv")
    assert_allclose(pd.read_csv(tmp_path / "r.csv")[STARS].sum(axis=1), 1)


@pytest.mark.filterwarnings("ignore:.*seems to be the table")
def test_labels_in_words_need_their_order(tmp_path, capsys):
    frame = mixed_table()
    words = ["awful", "poor", "fair", "good", "great"]
    frame["stars"] = [words[s - 1] for s in frame["stars"]]
    train = written(frame, tmp_path / "train.csv")
    options = ["--target", "stars", "--features", "price,gift", "--method", "PACC"]
    run("fit", train, *options, "--classes", ", ".join(words), "--out", tmp_path / "m.oq")
    run("predict", tmp_path / "m.oq", train, "--by", "stars", "--out", tmp_path / "r.csv")
    result = pd.read_csv(tmp_path / "r.csv").set_index("stars")
    assert list(result.columns) == ["n_items", *words, "mean_class", "fit"]
    assert result.loc["great", "great"] > 0.5
    assert result.loc["great", "mean_class"] > 4
    capsys.readouterr()
    run("evaluate", tmp_path / "m.oq", train, "--protocol", "npp", "--json")
    assert json.loads(capsys.readouterr().out)["n_items"] == 300


def test_rows_without_a_label_are_left_out_on_request(tmp_path, capsys):
    frame = mixed_table()
    frame["stars"] = frame["stars"].astype("Int64").mask(frame.index % 10 == 0)
    train = written(frame, tmp_path / "train.csv")
    options = ["--target", "stars", "--features", "price,gift", "--skip-unlabelled"]
    run("fit", train, *options, "--out", tmp_path / "m.oq")
    assert "rows:      30 without 'stars' (not used)" in capsys.readouterr().out
    assert oq.load_model(tmp_path / "m.oq").classes_.tolist() == [1, 2, 3, 4, 5]


@pytest.mark.filterwarnings("default:.*no word of the training texts")
def test_missing_values_in_new_tables_are_filled(mixed_model, tmp_path):
    new = mixed_table(50).drop(columns="stars")
    new[["price", "size", "day", "comment"]] = None
    path = written(new, tmp_path / "new.csv")
    run("predict", mixed_model, path, "--out", tmp_path / "r.csv")
    assert_allclose(pd.read_csv(tmp_path / "r.csv")[STARS].sum(axis=1), 1)


def test_words_for_missing_numbers_are_missing_values_but_words_in_categories_are_words():
    frame = pd.DataFrame({"price": ["1", " NA", "3.5", None], "state": ["NA", "CA", "NA", "CA"]}, dtype=object)
    kinds = column_kinds(frame, ["price", "state"])
    assert kinds == {"price": "number", "state": "category"}
    result = typed(frame, kinds)
    assert_allclose(result["price"], [1, np.nan, 3.5, np.nan])
    assert result["state"].tolist() == ["NA", "CA", "NA", "CA"]


def test_table_models_also_accept_frames_in_python(mixed_model):
    import polars as pl

    model, frame = oq.load_model(mixed_model), mixed_table(80)
    p = model.predict(frame)
    assert_allclose(p.sum(), 1)
    assert_allclose(model.predict(pl.from_pandas(frame)), p, atol=1e-9)
    assert_allclose(model.predict(frame[frame.columns[::-1]]), p)
    with pytest.raises(TypeError, match="must be a pandas or polars frame"):
        model.predict(np.zeros((3, 6)))


def test_models_made_in_python_predict_files(tmp_path):
    frame = mixed_table()
    q = oq.PACC(GaussianNB()).fit(frame[["price", "week"]].fillna(3.0), frame["stars"])
    oq.save_model(q, tmp_path / "m.oq")
    new = written(frame[["week", "code", "price"]].fillna(3.0), tmp_path / "new.csv")
    run("predict", tmp_path / "m.oq", new, "--out", tmp_path / "r.csv")
    expected = q.predict(frame[["price", "week"]].fillna(3.0))
    assert_allclose(pd.read_csv(tmp_path / "r.csv")[STARS].to_numpy()[0], expected, atol=1e-9)


def test_columns_that_only_number_the_rows_are_left_out(tmp_path, capsys):
    mixed_table()[["price", "stars"]].to_csv(tmp_path / "train.csv")  # with the index of the frame
    run("fit", tmp_path / "train.csv", "--target", "stars", "--out", tmp_path / "m.oq")
    rows = [line.split() for line in capsys.readouterr().out.splitlines()]
    assert ["price", "number"] in rows
    assert ["stars", "the", "target"] in rows


@pytest.mark.parametrize(("old", "new"), [("t.csv", "n.parquet"), ("t.parquet", "n.csv")])
def test_whole_numbers_are_the_same_categories_and_groups_in_every_format(old, new, tmp_path, recwarn):
    """A column with missing values has floats: "1.0" in a text file, 1.0 in Parquet."""
    frame = mixed_table()[["price", "stars"]].assign(shop=lambda x: x["stars"].astype(float))
    frame.loc[::10, "shop"] = np.nan
    fit = ["--target", "stars", "--features", "price,shop", "--categories", "shop", "--method", "PACC"]
    run("fit", written(frame, tmp_path / old), *fit, "--out", tmp_path / "m.oq")
    for name in (old, new):
        path = written(frame, tmp_path / name)
        run("predict", tmp_path / "m.oq", path, "--by", "shop", "--out", tmp_path / f"{name}.r.csv")
    expected, found = (pd.read_csv(tmp_path / f"{name}.r.csv") for name in (old, new))
    assert found["shop"].tolist()[:5] == [1, 2, 3, 4, 5]
    assert found["shop"].isna().tolist() == [False] * 5 + [True]
    pd.testing.assert_frame_equal(found, expected, rtol=1e-9)


@pytest.mark.filterwarnings("default:no value of column")
def test_categories_that_are_all_unknown_are_a_warning(tmp_path, capsys):
    frame = mixed_table()[["price", "size", "stars"]]
    fit = ["--target", "stars", "--method", "PACC"]
    run("fit", written(frame, tmp_path / "t.csv"), *fit, "--out", tmp_path / "m.oq")
    capsys.readouterr()
    strange = frame.assign(size=frame["size"].str.upper())
    run("predict", tmp_path / "m.oq", written(strange, tmp_path / "n.csv"), "--json")
    err = capsys.readouterr().err
    assert "no value of column 'size' was seen in training: there 'large', 'small', here " in err
    assert err.count("\n") == 1
    strange.loc[0, "size"] = "small"
    run("predict", tmp_path / "m.oq", written(strange, tmp_path / "n.csv"), "--json")
    assert capsys.readouterr().err == ""


@pytest.mark.parametrize("word", ["NA", "NaN", "  "])
def test_words_for_missing_labels_and_groups_are_missing(word, tmp_path, capsys):
    frame = mixed_table()[["price", "week", "stars"]].astype({"stars": object, "week": object})
    frame.loc[::10, "stars"] = word
    frame.loc[:9, "week"] = word
    frame.loc[10:19, "week"] = None
    train = written(frame, tmp_path / "train.csv")
    fit = ["fit", str(train), "--target", "stars", "--features", "price", "--out", str(tmp_path / "m.oq")]
    run(*fit, "--skip-unlabelled")
    assert "rows:      30 without 'stars' (not used)" in capsys.readouterr().out
    assert main(fit) == 2
    got = repr(word) if word.strip() else "nothing"
    assert f"expected a label in column 'stars', got {got} (30 of 300 rows)" in capsys.readouterr().err
    run("predict", tmp_path / "m.oq", train, "--by", "week", "--out", tmp_path / "r.csv")
    result = pd.read_csv(tmp_path / "r.csv")
    assert result["week"].tolist()[:4] == [8, 9, 10, 11]
    assert result["week"].isna().tolist() == [False] * 4 + [True]
    assert result["n_items"].iloc[-1] == 20


def test_words_for_missing_labels_are_labels_if_they_are_classes(tmp_path, capsys):
    frame = mixed_table()[["price", "stars"]]
    frame["stars"] = np.array(["None", "mild", "severe"])[(frame["stars"].to_numpy() - 1) // 2]
    fit = ["--target", "stars", "--classes", "None,mild,severe"]
    run("fit", written(frame, tmp_path / "train.csv"), *fit, "--out", tmp_path / "m.oq")
    assert "on 300 items" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("method", "option", "said"),
    [
        ("OSLD", "interpolation=0.25", ("interpolation", 0.25)),
        ("IBU", "interpolation=0.5", ("interpolation", 0.5)),
        ("OPACC", "tau=0.01", ("tau", 0.01)),
        ("RUN", "n_df=3", ("tau", None)),
        ("SLD", "max_iter=100", None),
        ("PACC", "solver=newton", None),
    ],
)
def test_smoothing_and_the_meaning_of_its_intervals_are_printed(method, option, said, tmp_path, capsys):
    train = written(mixed_table(), tmp_path / "train.csv")
    fit = ["--target", "stars", "--features", "price,gift", "--method", method, "--set", option]
    run("fit", train, *fit, "--out", tmp_path / "m.oq", "--json")
    result = json.loads(capsys.readouterr().out)
    assert {name: result[name] for name in ("tau", "interpolation") if name in result} == dict([said] if said else [])
    run("fit", train, *fit, "--out", tmp_path / "m.oq")
    value = "" if said is None else f", {said[0]} {'of each sample' if said[1] is None else said[1]}"
    assert f"method:    {method}{value}\n" in capsys.readouterr().out
    run("predict", tmp_path / "m.oq", train, "--json")
    assert capsys.readouterr().err == ""
    run("predict", tmp_path / "m.oq", train, "--interval", "0.9", "--json")
    note = "its intervals include the bias on held-out samples\n"
    assert (note in capsys.readouterr().err) == (said is not None)


def test_diagnosis_with_groups_names_those_that_do_not_fit(reviews, tmp_path, capsys):
    new = pd.read_csv(reviews / "new.csv")
    new.loc[new["product"] == "lamp", "review"] = "no word of the training"
    path = written(new, tmp_path / "new.csv")
    run("predict", reviews / "stars.oq", path, "--by", "product", "--diagnose")
    out = capsys.readouterr().out
    assert "\nof the whole table, not of each product:\nOPACC on 1,600 items" in out
    assert "\nbad fit in 1 of 5 groups with enough items: lamp\n" in out
    run("predict", reviews / "stars.oq", path, "--by", "product", "--diagnose", "--json")
    assert json.loads(capsys.readouterr().out)["bad_fit"] == ["lamp"]


def test_groups_of_a_loaded_model_in_python_are_those_of_the_command_line(reviews, tmp_path):
    predict = ["--by", "product", "--interval", "0.95", "--out", tmp_path / "r.csv"]
    run("predict", reviews / "stars.oq", reviews / "new.csv", *predict)
    model, frame = oq.load_model(reviews / "stars.oq"), pd.read_csv(reviews / "new.csv")
    table = model.predict_groups(frame, by="product", level=0.95).frame()
    pd.testing.assert_frame_equal(table, pd.read_csv(tmp_path / "r.csv"), atol=1e-9)


def test_json_lines_keep_only_the_requested_columns(tmp_path, monkeypatch):
    monkeypatch.setattr(read, "PORTION_BYTES", 1000)
    rows = [{"a": "x", "long": "y" * 2000} for _ in range(10)]
    (tmp_path / "t.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    file = open_table(tmp_path / "t.jsonl")
    assert [len(frame) for frame in file.chunks(["a"])] == [10]  # what is not kept does not count
    assert [len(frame) for frame in file.chunks()] == [1] * 10


# evaluate, methods


@pytest.mark.parametrize("protocol", ["app", "app-oq:0.2", "npp", "by product"])
def test_evaluation_is_shown_next_to_simple_estimates(protocol, reviews, tmp_path, capsys):
    labelled = pd.read_csv(reviews / "labelled.csv")
    labelled["product"] = np.arange(len(labelled)) % 7
    labelled.to_csv(tmp_path / "labelled.csv", index=False)
    how = ["--by", "product"] if protocol == "by product" else ["--protocol", protocol]
    evaluate = [*how, "--samples", "100", "--json"]
    run("evaluate", reviews / "stars.oq", tmp_path / "labelled.csv", *evaluate)
    result = json.loads(capsys.readouterr().out)
    errors = {row["estimate"]: row for row in result["errors"]}
    assert list(errors) == ["OPACC", "CC", "PCC", "training prevalences"]
    if protocol.startswith("app"):
        assert errors["OPACC"]["nmd"] < errors["CC"]["nmd"] < errors["training prevalences"]["nmd"]
    assert all(row["rnod_std"] >= 0 for row in errors.values())
    assert result["n_items"] == 2000
    assert result["n_samples"] == {"app": 100, "npp": 100, "by product": 7}.get(protocol, result["n_samples"])


@pytest.mark.parametrize("how", [["--by", "product"], ["--samples", "20"]])
def test_evaluate_prints_words_and_the_next_step_and_abbreviations_only_if_verbose(how, reviews, tmp_path, capsys):
    labelled = pd.read_csv(reviews / "labelled.csv")
    labelled["product"] = np.arange(len(labelled)) % 7
    labelled.to_csv(tmp_path / "labelled.csv", index=False)
    evaluate = ["evaluate", reviews / "stars.oq", tmp_path / "labelled.csv", *how]
    run(*evaluate)
    text = capsys.readouterr().out
    assert not re.search(r"\b(NMD|RNOD|P?CC|OPACC)\b", text)
    assert re.search(r"^this model +0\.\d\d", text, re.MULTILINE)
    assert re.search(r"^counting predictions +0\.\d\d", text, re.MULTILINE)
    by = " --by product" if "--by" in how else ""
    assert text.endswith(f"next:      ordinalq predict {reviews / 'stars.oq'} NEW_TABLE{by} --interval 0.95\n")
    run(*evaluate, "--verbose")
    assert re.search(r"^PCC .*0\.\d{4}", capsys.readouterr().out, re.MULTILINE)


def test_fit_reports_numbers_with_a_comma(tmp_path, caplog):
    lines = [f"{star},{i % 3};{star}" for i, star in enumerate([1, 2, 3, 4, 5] * 12)]
    (tmp_path / "train.csv").write_text("\n".join(["price;stars", *lines]))
    run("fit", tmp_path / "train.csv", "--target", "stars", "--method", "PACC", "--out", tmp_path / "model.oq")
    assert "column 'price' has numbers with a comma, such as 1,0, which are not read as numbers" in caplog.text


@pytest.mark.parametrize("style", ["%Y-%m-%d", "%d.%m.%Y", "%m/%d/%Y"])
def test_groups_that_are_dates_name_the_option_for_months(style, reviews, tmp_path, capsys):
    frame = pd.read_csv(reviews / "new.csv")
    days = pd.to_datetime(frame["date"])
    frame["date"] = days.dt.strftime(style)
    frame.loc[0, "date"] = None
    frame.to_csv(tmp_path / "new.csv", index=False)
    predict = ["predict", reviews / "stars.oq", tmp_path / "new.csv", "--by"]
    run(*predict, "product,date")
    assert "'date' has dates; --by product,date:month estimates months" in capsys.readouterr().out
    for other in ("product", "date:day"):
        run(*predict, other)
        assert "has dates" not in capsys.readouterr().out


def test_label_column_that_is_not_used_is_reported_and_counted_labels_are_stated(reviews, tmp_path, capsys):
    table = reviews / "labelled.csv"
    run("predict", reviews / "stars.oq", table)
    assert "labels:    column 'stars' is not used; --labels stars uses it" in capsys.readouterr().out
    run("predict", reviews / "stars.oq", table, "--labels", "stars", "--interval", "0.9")
    text = capsys.readouterr().out
    assert "every row has a label, so the labels are counted" in text
    assert "next:" not in text


def test_compare_writes_a_table_and_names_the_next_step(reviews, tmp_path, capsys):
    compare = ["compare", reviews / "stars.oq", reviews / "new.csv", "--by", "product", "lamp", "fan", "kettle"]
    run(*compare, "--out", tmp_path / "pairs.csv")
    text = capsys.readouterr().out
    plan = f"ordinalq plan {reviews / 'stars.oq'} {reviews / 'new.csv'} --by product"
    assert text.splitlines()[-1] in [
        f"next:      {why}: {plan}" for why in ("for narrower intervals", "to label items")
    ]
    assert f"written: {tmp_path / 'pairs.csv'}" in text
    run(*compare, "--json")
    pairs = json.loads(capsys.readouterr().out)["pairs"]
    table = pd.read_csv(tmp_path / "pairs.csv")
    assert table[["a", "b"]].to_numpy().tolist() == [[pair["a"], pair["b"]] for pair in pairs]
    np.testing.assert_allclose(table["mean_class_upper"], [pair["mean_class_upper"] for pair in pairs])
    assert main([*map(str, compare), "--out", str(tmp_path / "folder")]) == 2


def test_plan_has_the_same_usual_width_for_values_that_rise_and_fall(reviews, tmp_path, capsys):
    fit = ["fit", reviews / "train.csv", "--target", "stars", "--method", "PACC", "--out", tmp_path / "model.oq"]
    for values in ("1,2,3,4,5", "5,4,3,2,1"):
        run(*fit, "--class-values", values)
        run("plan", tmp_path / "model.oq", reviews / "new.csv", "--by", "product")
        assert "of the mean class, at most 0.3 wide" in " ".join(capsys.readouterr().out.split())


def test_next_step_names_all_files_of_the_table(reviews, tmp_path, capsys):
    shutil.copy(reviews / "new.csv", tmp_path / "more.csv")
    tables = [reviews / "new.csv", tmp_path / "more.csv"]
    run("predict", reviews / "stars.oq", *tables, "--by", "product", "--interval", "0.9")
    assert f"ordinalq plan {reviews / 'stars.oq'} {tables[0]} {tables[1]} --by product\n" in capsys.readouterr().out
    run("plan", reviews / "stars.oq", *tables, "--rows", "5", "--out", tmp_path / "rows.csv")
    last = capsys.readouterr().out.splitlines()[-1]
    command = f"ordinalq predict {reviews / 'stars.oq'} {tables[0]} {tables[1]}"
    assert last.strip() == f"{command} --labels stars --interval 0.95"


def test_next_step_repeats_how_the_table_is_read(reviews, tmp_path, capsys):
    with pd.ExcelWriter(tmp_path / "new.xlsx", engine="xlsxwriter") as book:
        pd.DataFrame({"note": ["made by hand"]}).to_excel(book, sheet_name="Read me", index=False)
        pd.read_csv(reviews / "new.csv").to_excel(book, sheet_name="Not rated", index=False)
    reading = ["--sheet", "Not rated", "--by", "product"]
    run("predict", reviews / "stars.oq", tmp_path / "new.xlsx", *reading, "--interval", "0.9")
    command = shlex.split(capsys.readouterr().out.splitlines()[-1].partition("ordinalq ")[2])
    assert command[0] == "plan"
    run(*command, "--rows", "5", "--out", tmp_path / "rows.csv")
    command = shlex.split(capsys.readouterr().out.splitlines()[-1])
    assert command[-8:] == [*reading, "--labels", "stars", "--interval", "0.95"]


@pytest.mark.filterwarnings("default:.*no word of the training texts")
@pytest.mark.parametrize("options", [[], ["--by", "product"], ["--by", "product", "--n-jobs", "2"]])
def test_rows_without_a_known_word_are_counted_in_a_warning(options, reviews, tmp_path, capsys):
    new = pd.read_csv(reviews / "new.csv")
    predict = ["predict", reviews / "stars.oq", written(new, tmp_path / "new.csv"), *options]
    run(*predict)
    assert "no word of the training texts" not in capsys.readouterr().err
    written(new.assign(review=[str(10**6 + i) for i in range(len(new))]), tmp_path / "new.csv")
    run(*predict)
    error = capsys.readouterr().err
    assert error.startswith("ordinalq: warning: 1,600 of 1,600 rows have no word of the training texts in 'review', so")
    assert error.count("\n") == 1


def test_methods_lists_the_catalog(capsys):
    run("methods")
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[0] for line in lines[2:] if not line.startswith(" ")] == [entry.name for entry in oq.catalog()]
    run("methods", "--json")
    names = [entry["name"] for entry in json.loads(capsys.readouterr().out)]
    assert names == [entry.name for entry in oq.catalog()]


def test_killed_processes_leave_nothing_half_written(reviews, tmp_path):
    code = (
        "import os, signal, sys; from ordinalq import cli; from ordinalq.io import writing as write\n"
        "write.write_table = lambda *_, **__: os.kill(os.getpid(), signal.SIGTERM)\n"
        "cli.script()"
    )
    arguments = ["predict", reviews / "stars.oq", reviews / "new.csv", "--out", tmp_path / "result.csv"]
    done = subprocess.run([sys.executable, "-c", code, *map(str, arguments)], capture_output=True, check=False)
    assert done.returncode == 128 + 15
    assert list(tmp_path.iterdir()) == []
