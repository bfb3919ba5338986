"""Label plans, labels in tables and on the command line, evaluation of groups."""

import json

import numpy as np
import pandas as pd
import polars as pl
import pytest
import typer
from numpy.testing import assert_allclose, assert_array_equal
from seeds import generator
from sklearn.linear_model import LogisticRegression
from summaries import predict_table
from test_group_training import N_CLASSES, make

import ordinalq as oq
from ordinalq.cli import main
from ordinalq.cli.main import app
from ordinalq.inference.label_plan import spread_labels
from ordinalq.inference.model import learned_groups
from ordinalq.io.table import open_table
from ordinalq.tables import fit as fitting
from ordinalq.tables.evaluate import compared_with, evaluate_table, verdict

POPULATION = oq.inference.IntervalOptions("population")
CLASSIFIER = oq.classifiers.CrossFitted(LogisticRegression(), cv=5)


@pytest.fixture(scope="module")
def trained():
    """Return models fitted with groups, by name."""
    X, y, groups = make(generator(5), 100, 40)
    return {cls.__name__: cls(CLASSIFIER).fit(X, y, groups=groups) for cls in (oq.GroupBLP, oq.PACC)}


def width_of(estimates, quantity):
    if quantity == "mean":
        return estimates.bounds.mean_upper - estimates.bounds.mean_lower
    return (estimates.upper - estimates.lower)[:, quantity - 1]


@pytest.mark.parametrize("of", ["sample", "population"])
@pytest.mark.parametrize(("name", "basis"), [("GroupBLP", "model"), ("GroupBLP", "labels"), ("PACC", "auto")])
@pytest.mark.parametrize(("quantity", "width"), [("mean", 0.35), (2, 0.14)])
def test_planned_widths_are_reached(trained, name, basis, quantity, width, of, rng):
    X, y, groups = make(rng, 40, 400)
    quantifier, plan = trained[name], oq.inference.IntervalOptions(of, basis=basis)
    needed = quantifier.labels_needed(X, groups, width, quantity, options=plan)
    # None where the interval is narrow enough already, as that of a class that is hardly there.
    assert_array_equal(needed.labels == 0, needed.now <= width)
    assert (needed.labels > 0).mean() > 0.5
    assert (needed.labels < 400).all()
    assert (needed.width <= width).all()
    chosen = needed.draw(groups, random_state=rng)
    assert_array_equal(np.bincount(groups[chosen]), needed.labels)
    labelled = np.full(len(y), np.nan)
    labelled[chosen] = y[chosen]
    got = quantifier.predict_groups(X, groups, level=0.95, labels=labelled, options=plan)
    # Labels alone are planned with shares that scatter, so that most widths come out smaller: over fifteen seeds the
    # ratio is 0.89 on average with a standard deviation of 0.039, five of which are left to either side.
    assert 0.7 < width_of(got, quantity).mean() / needed.width.mean() < 1.15
    # One label less would not do.
    fewer = quantifier.labels_needed(X, groups, width, quantity, options=plan, labels=labelled)
    assert fewer.labels.mean() < 0.3 * needed.labels.mean()


def test_no_labels_are_needed_if_the_interval_is_narrow_enough(trained, rng):
    X, _, groups = make(rng, 3, 200)
    needed = trained["GroupBLP"].labels_needed(X, groups, width=3.0)
    assert needed.total == 0
    assert (needed.now == needed.width).all()
    # Intervals by labels alone need ten labels.
    alone = trained["PACC"].labels_needed(X, groups, width=3.0)
    assert alone.labels.tolist() == [10, 10, 10]
    assert np.isnan(alone.now).all()
    assert set(alone.basis) == {"labels"}
    all_of_them = trained["PACC"].labels_needed(X, groups, width=1e-6)
    assert (all_of_them.labels == 200).all()
    assert (all_of_them.width < 1e-6).all()
    out_of_reach = trained["PACC"].labels_needed(
        X, groups, width=1e-6, options=oq.inference.IntervalOptions("population")
    )
    assert (out_of_reach.labels == 200).all()
    assert (out_of_reach.width > 0.01).all()


def test_items_to_label_are_drawn_at_random_among_those_without_a_label(trained, rng):
    X, y, groups = make(rng, 4, 100)
    names = pd.Series(np.array(["a", "b", "c", "d"])[groups], name="product")
    labelled = np.where(np.arange(400) % 100 < 20, y, np.nan)
    needed = trained["GroupBLP"].labels_needed(X, names, width=0.3, labels=labelled)
    draws = [needed.draw(names, labelled, random_state=seed) for seed in range(200)]
    assert all((np.diff(draw) > 0).all() for draw in draws)
    times = np.bincount(np.concatenate(draws), minlength=400)
    assert (times[~np.isnan(labelled)] == 0).all()
    free = np.isnan(labelled)
    expected = 200 * needed.labels[groups[free]] / 80
    assert np.abs(times[free] - expected).max() < 5 * np.sqrt(200 / 4)
    frame = needed.frame()
    assert frame.columns.tolist() == ["product", "n_items", "n_labelled", "labels", "width_now", "width", "basis"]
    assert frame["n_labelled"].tolist() == [20] * 4
    with pytest.raises(ValueError, match="groups must be those for which the numbers of labels were computed"):
        needed.draw(groups)


def test_wrong_questions_are_rejected(trained, rng):
    X, _, groups = make(rng, 2, 50)
    with pytest.raises(ValueError, match="quantity must be 'mean' or one of the classes 1, 2, 3, 4, got 'median'"):
        trained["GroupBLP"].labels_needed(X, groups, quantity="median")
    with pytest.raises(ValueError, match="width must be"):
        trained["GroupBLP"].labels_needed(X, groups, width=0)


@pytest.mark.parametrize("offset", [0.0, 0.6])
def test_labels_spread_over_all_groups_reach_their_planned_width(trained, offset, rng):
    """With and without a common offset of the new groups."""
    X, y, groups = make(rng, 60, 80)
    X, q = X + offset, trained["GroupBLP"]
    summary = q.summarize(q.scores(X), oq.Samples.from_groups(groups), labels=[None] * len(y))
    planned = spread_labels(q, summary, n_labels=200)
    assert planned.width < planned.now
    known = np.zeros(len(y), dtype=bool)
    known[rng.choice(len(y), 200, replace=False)] = True
    got = q.predict_groups(X, groups, level=0.95, labels=np.where(known, y, np.nan))
    assert 0.8 < np.median(width_of(got, "mean")) / planned.width < 1.25
    # The number of labels for that width is about the same.
    needed = spread_labels(q, summary, planned.width)
    assert needed.width <= planned.width
    assert 100 < needed.n_labels < 300
    assert f"{needed.n_labels} labels, drawn at random from all groups" in str(needed)
    assert spread_labels(q, summary, 10.0).n_labels == 0
    assert "Not even 4,800 labels" in str(spread_labels(q, summary, 1e-3, options=POPULATION))


def test_wrong_questions_about_spread_labels_are_rejected(trained, rng):
    X, y, groups = make(rng, 3, 20)
    summaries = {
        name: q.summarize(q.scores(X), oq.Samples.from_groups(groups), labels=y) for name, q in trained.items()
    }
    with pytest.raises(ValueError, match="Pass either width or n_labels"):
        spread_labels(trained["GroupBLP"], summaries["GroupBLP"])
    with pytest.raises(TypeError, match="must have a model of groups, got PACC"):
        spread_labels(trained["PACC"], summaries["PACC"], 0.1)
    with pytest.raises(ValueError, match="n_labels must be at most the number of unlabelled items, 0, got 5"):
        spread_labels(trained["GroupBLP"], summaries["GroupBLP"], n_labels=5)


# ---- tables and the command line -----------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def tables(tmp_path_factory):
    """Return a folder with a training table and another, both with groups and labels, and models of the first."""
    folder, rng = tmp_path_factory.mktemp("tables"), generator(6)
    for name, n_groups in (("train", 40), ("new", 12)):
        X, y, groups = make(rng, n_groups, 60)
        frame = pd.DataFrame({"a": X[:, 0], "b": X[:, 1], "stars": y, "shop": groups})
        frame["known"] = frame["stars"].where(frame.groupby("shop").cumcount() < 15).astype("Int64")
        if name == "new":
            frame = pd.concat([frame, frame.iloc[:1].assign(shop=99)])
        frame.to_csv(folder / f"{name}.csv", index=False)
    for method in ("GroupBLP", "PACC"):
        fit = ["fit", folder / "train.csv", "--target", "stars", "--features", "a,b", "--by", "shop"]
        assert main([str(word) for word in [*fit, "--method", method, "--out", folder / f"{method}.oq"]]) == 0
    return folder


def run(*words):
    assert main([str(word) for word in words]) == 0


def test_help_of_plan_leaves_out_options_that_it_rejects():
    commands = typer.main.get_command(app).commands
    hidden = {one.opts[0] for one in commands["plan"].params if getattr(one, "hidden", False)}
    assert hidden == {"--label-inclusion", "--drift", "--weight", "--weight-type"}
    assert not any(getattr(one, "hidden", False) for one in commands["predict"].params)


def test_plan_states_that_no_labels_are_needed(tables, tmp_path, capsys):
    # A group of one row is too small to look unlike the training groups, which would need labels at any width.
    frame = pd.read_csv(tables / "new.csv")
    frame[frame["shop"] == 99].to_csv(tmp_path / "new.csv", index=False)
    plan = ["plan", tables / "GroupBLP.oq", tmp_path / "new.csv", "--by", "shop", "--width", 9]
    run(*plan, "--out", tmp_path / "rows.csv")
    out = " ".join(capsys.readouterr().out.split())
    assert "All 95% intervals of the mean class are already at most 9 wide. No labels are needed." in out
    assert "rows.csv, without rows. Pass a smaller --width, or --rows." in out
    assert "next:" not in out
    assert len(pd.read_csv(tmp_path / "rows.csv")) == 0


def test_inclusion_probabilities_in_a_column_of_a_table(tables, tmp_path, capsys):
    model, frame = oq.load_model(tables / "GroupBLP.oq"), pd.read_csv(tables / "new.csv")
    frame["chance"] = np.where(frame["known"].notna(), 0.2 + 0.5 * (frame["known"] > 2), np.nan)
    frame.to_csv(tmp_path / "new.csv", index=False)
    how = {"by": "shop", "labels": "known", "level": 0.9}
    expected = model.predict_groups(frame, label_inclusion="chance", **how)
    assert expected.basis.tolist() == ["labels"] * 12 + ["labels"]
    assert_array_equal(expected.upper, model.predict_groups(frame, label_inclusion=frame["chance"], **how).upper)
    assert not np.allclose(expected.prevalences, model.predict_groups(frame, **how).prevalences)
    options = ["--by", "shop", "--labels", "known", "--label-inclusion", "chance", "--interval", 0.9, "--json"]
    capsys.readouterr()
    run("predict", tables / "GroupBLP.oq", tmp_path / "new.csv", *options)
    rows = json.loads(capsys.readouterr().out)["groups"]
    assert_allclose([row["prevalences"] for row in rows], expected.prevalences, atol=1e-9)
    assert_allclose([row["upper"] for row in rows], expected.upper, atol=1e-9)
    frame.assign(chance=2).to_csv(tmp_path / "wrong.csv", index=False)
    assert main([str(word) for word in ["predict", tables / "GroupBLP.oq", tmp_path / "wrong.csv", *options]]) != 0
    assert "expected a probability in (0, 1]" in capsys.readouterr().err
    assert main([str(w) for w in ["plan", tables / "GroupBLP.oq", tmp_path / "new.csv", *options]]) != 0
    assert "plan does not support --label-inclusion" in capsys.readouterr().err


@pytest.mark.parametrize("method", ["GroupBLP", "PACC"])
def test_plan_draws_exactly_the_requested_number_of_rows(method, tables, tmp_path, capsys):
    new = pd.read_csv(tables / "new.csv")
    call = ["plan", tables / f"{method}.oq", tables / "new.csv", "--by", "shop", "--labels", "known", "--rows"]
    drawn = {}
    for name, seed in (("one", 3), ("again", 3), ("other", 4)):
        run(*call, 50, "--random-state", seed, "--out", tmp_path / f"{name}.csv")
        drawn[name] = pd.read_csv(tmp_path / f"{name}.csv")
    assert "50 rows, drawn at random from all rows without a label" in " ".join(capsys.readouterr().out.split())
    assert [len(rows) for rows in drawn.values()] == [50, 50, 50]
    assert drawn["one"].equals(drawn["again"])
    assert not drawn["one"].equals(drawn["other"])
    lines = drawn["one"].iloc[:, 0].to_numpy()
    assert len(set(lines)) == 50
    # The first line of the file has the names.
    assert new["known"].isna().to_numpy()[lines - 2].all()
    assert drawn["one"]["shop"].nunique() > 4
    run(*call, 45, "--group", 7, "--out", tmp_path / "group.csv", "--json")
    found = json.loads(capsys.readouterr().out)
    assert (found["rows"], found["group"]) == (45, "7")
    assert set(pd.read_csv(tmp_path / "group.csv")["shop"]) == {7}
    run(*call, 20, "--out", tmp_path / "group.csv", "--json")
    assert ("spread" in json.loads(capsys.readouterr().out)) == (method == "GroupBLP")
    for wrong, message in (
        (["46", "--group", "7"], "expected at most 45 rows to draw, those without a label, got 46"),
        (["5", "--group", "77"], "none of the 13 groups of 'shop' is '77'"),
        (["5000"], "expected at most 540 rows to draw, those without a label, got 5,000"),
        (["0"], "--rows must be at least 1, got 0"),
    ):
        assert main([str(word) for word in [*call, *wrong, "--out", tmp_path / "wrong.csv"]]) != 0
        assert message in " ".join(capsys.readouterr().err.split())
    assert main([str(word) for word in [*call, "5"]]) != 0
    assert "--rows needs --out" in capsys.readouterr().err


def test_plan_finds_a_group_by_a_part_of_its_name(tables, tmp_path, capsys):
    new = pd.read_csv(tables / "new.csv")
    new["shop"] = "Shop " + new["shop"].astype(str) + " North"
    new.to_csv(tmp_path / "new.csv", index=False)
    call = [
        "plan",
        tables / "PACC.oq",
        tmp_path / "new.csv",
        "--by",
        "shop",
        "--rows",
        5,
        "--out",
        tmp_path / "rows.csv",
    ]
    run(*call, "--group", "shop 7", "--json")
    assert json.loads(capsys.readouterr().out)["group"] == "Shop 7 North"
    assert set(pd.read_csv(tmp_path / "rows.csv")["shop"]) == {"Shop 7 North"}
    run(*call, "--group", "shop 7")
    assert "from the rows of Shop 7 North without a label" in " ".join(capsys.readouterr().out.split())
    assert main([str(word) for word in [*call, "--group", "north"]]) != 0
    assert "of the 13 groups of 'shop' contain 'north'" in " ".join(capsys.readouterr().err.split())
    assert main([str(word) for word in [*call, "--group", "Shop 7 Nort h"]]) != 0
    assert "?." not in capsys.readouterr().err


@pytest.mark.parametrize("method", ["GroupBLP", "PACC"])
def test_labels_in_a_column_of_a_table(method, tables, tmp_path, capsys):
    model, frame = oq.load_model(tables / f"{method}.oq"), pd.read_csv(tables / "new.csv")
    by_column = model.predict_groups(frame, by="shop", labels="known", level=0.9)
    assert by_column.n_labelled.tolist() == [15] * 12 + [1]
    by_values = model.predict_groups(frame, by="shop", labels=frame["known"], level=0.9)
    assert_array_equal(by_column.prevalences, by_values.prevalences)
    polars = model.predict_groups(pl.from_pandas(frame), by="shop", labels="known", level=0.9)
    assert_allclose(polars.prevalences, by_column.prevalences)
    assert polars.frame()["basis"].to_list() == by_column.basis.tolist()
    for ending in ("csv", "parquet", "jsonl"):
        path = tmp_path / f"new.{ending}"
        {
            "csv": lambda p: frame.to_csv(p, index=False),
            "parquet": frame.to_parquet,
            "jsonl": lambda p: frame.to_json(p, orient="records", lines=True),
        }[ending](path)
        found = predict_table(model, open_table(path), by="shop", labels="known", level=0.9)
        assert_allclose(found.prevalences, by_column.prevalences, atol=1e-9)
        assert_array_equal(found.basis, by_column.basis)
    capsys.readouterr()
    predict = ["predict", tables / f"{method}.oq", tables / "new.csv", "--by", "shop", "--labels", "known"]
    run(*predict, "--interval", "0.9", "--json")
    groups = json.loads(capsys.readouterr().out)["groups"]
    assert {row["basis"] for row in groups} == {"model"} if method == "GroupBLP" else {"labels"}
    run(*predict, "--basis", "labels")
    said = " ".join(capsys.readouterr().out.split())
    assert "labels of 181 items in 13 of 13 groups; 13 estimates rest on the labels alone" in said
    assert "1 *" in said
    assert "* a single item" in said
    run(*predict)
    rest = "; 13 estimates rest on the model (--basis labels: on the labels alone, if there are ten)"
    assert (rest in " ".join(capsys.readouterr().out.split())) == (method == "GroupBLP")


def refused(capsys, *words):
    capsys.readouterr()
    assert main([str(word) for word in words]) == 2
    return capsys.readouterr().err


def test_forests_keep_named_groups_together(tables, tmp_path, capsys, monkeypatch):
    monkeypatch.setitem(fitting.CLASSIFIERS["forest"], "n_estimators", 20)  # how many trees is not the point
    capsys.readouterr()
    fit = [
        "fit",
        tables / "train.csv",
        "--target",
        "stars",
        "--features",
        "a,b",
        "--method",
        "GroupBLP",
        "--by",
        "shop",
    ]
    run(*fit, "--classifier", "forest", "--max-items", "400", "--out", tmp_path / "forest.oq", "--json")
    assert json.loads(capsys.readouterr().out)["n_groups"] == 40
    model = oq.load_model(tmp_path / "forest.oq")
    assert learned_groups(model.fitted())
    assert type(model.fitted().classifier).__name__ == "CrossFitted"
    run(*fit, "--out", tmp_path / "logistic.oq")
    assert "fitted on 2,400 items in 40 groups" in capsys.readouterr().out


def test_labels_cannot_be_groups(tables, tmp_path, capsys):
    fit = ["fit", tables / "train.csv", "--target", "stars", "--by", "stars", "--out", tmp_path / "m.oq"]
    said = "--by must name the column of the groups, got that of the labels, 'stars'"
    assert said in refused(capsys, *fit)
    assert said in refused(capsys, "evaluate", tables / "PACC.oq", tables / "new.csv", "--by", "stars")


def test_wrong_labels_in_a_table_are_named(tables, tmp_path, capsys):
    frame = pd.read_csv(tables / "new.csv")
    frame["known"] = frame["known"].astype(object)
    frame.loc[3, "known"] = "seven"
    frame.to_csv(tmp_path / "new.csv", index=False)
    model = tables / "PACC.oq"
    predict = ["predict", model, tmp_path / "new.csv", "--by", "shop"]
    said = refused(capsys, *predict, "--labels", "known")
    assert "line 5: column 'known' has a label that is not among the classes 1, 2, 3, 4: 'seven'" in said
    assert "'gone'" in refused(capsys, *predict, "--labels", "gone")
    assert "the model learned from it" in refused(capsys, *predict, "--labels", "a")
    assert "--basis labels needs labels of some items. Pass --labels COLUMN" in refused(
        capsys, *predict, "--basis", "labels"
    )
    assert "--basis must be one of" in refused(capsys, *predict, "--labels", "known", "--basis", "both")
    plan = ["plan", model, tmp_path / "new.csv", "--by", "shop"]
    assert "--width must be" in refused(capsys, *plan, "--width", "0")
    for option, value in (("--drift", "0.3"), ("--weight", "a"), ("--label-inclusion", "a")):
        assert f"plan does not support {option}." in refused(capsys, *plan, option, value)
    assert "--quantity must be 'mean' or one of the classes" in refused(capsys, *plan, "--quantity", "9")
    assert "needs a table in a file" in refused(
        capsys, "plan", model, "-", "--format", "csv", "--out", tmp_path / "rows.csv"
    )


@pytest.mark.parametrize("ending", ["csv", "parquet"])
def test_plan_writes_the_rows_to_label(ending, tables, tmp_path, capsys):
    frame = pd.read_csv(tables / "new.csv").drop(columns="stars")
    path, rows = tmp_path / f"new.{ending}", tmp_path / f"rows.{ending}"
    frame.to_csv(path, index=False) if ending == "csv" else frame.to_parquet(path)
    capsys.readouterr()
    plan = ["plan", tables / "PACC.oq", path, "--by", "shop", "--labels", "known", "--width", "0.4", "--out", rows]
    run(*plan, "--json")
    result = json.loads(capsys.readouterr().out)
    groups = {row["shop"]: row for row in result["groups"]}
    assert list(groups) == [*range(12), 99]
    assert result["total"] == sum(row["labels"] for row in groups.values()) > 20
    written = pd.read_csv(rows) if ending == "csv" else pd.read_parquet(rows)
    assert written.groupby("shop").size().to_dict() == {k: row["labels"] for k, row in groups.items() if row["labels"]}
    assert written["known"].isna().all()
    position = written.iloc[:, 0].astype(int).to_numpy() - (2 if ending == "csv" else 0)
    assert written.columns[0] == ("line" if ending == "csv" else "row")
    assert_allclose(written["a"].astype(float), frame["a"].to_numpy()[position])
    run(*plan)
    said = capsys.readouterr().out
    assert f"{result['total']:,} labels in" in said
    assert "drawn at random within each group" in said
    place = "line" if ending == "csv" else "row"
    assert f"to the rows whose numbers are in the column '{place}'; then: ordinalq predict" in " ".join(said.split())
    run(*plan[:-2])
    assert "next:      add --out to_label.csv to draw these rows" in capsys.readouterr().out


def test_plan_offers_labels_of_all_groups_only_if_they_are_fewer(tables, capsys):
    for width in ("0.1", "0.2", "0.4", "0.8"):
        plan = ["plan", tables / "GroupBLP.oq", tables / "new.csv", "--by", "shop", "--width", width]
        run(*plan, "--json")
        result = json.loads(capsys.readouterr().out)
        run(*plan)
        fewer = result["spread"]["n_labels"] < result["total"] and result["spread"]["width"] <= float(width)
        assert ("Or, for all groups together" in capsys.readouterr().out) == fewer


def test_plan_of_a_whole_table_has_a_column_for_the_labels(tables, tmp_path, capsys):
    pd.read_csv(tables / "new.csv")[["a", "b"]].to_csv(tmp_path / "new.csv", index=False)
    run("plan", tables / "GroupBLP.oq", tmp_path / "new.csv", "--width", "0.2", "--out", tmp_path / "rows.csv")
    rows = pd.read_csv(tmp_path / "rows.csv")
    assert rows.columns.tolist() == ["line", "a", "b", "stars"]
    assert rows["stars"].isna().all()
    assert f"{len(rows):,} labels in 1 group" in capsys.readouterr().out


def test_help_of_plan_lists_no_option_that_it_refuses(capsys):
    run("plan", "--help")
    text = capsys.readouterr().out
    assert "--tidy-groups" in text
    assert not [option for option in ("--weight", "--label-inclusion", "--drift") if option in text]


# ---- evaluation ----------------------------------------------------------------------------------------------------


def test_evaluation_of_groups_leads_with_them_and_ends_with_a_verdict(tables, capsys):
    capsys.readouterr()
    evaluate = ["evaluate", tables / "PACC.oq", tables / "new.csv", "--by", "shop"]
    run(*evaluate)
    lines = capsys.readouterr().out.strip().splitlines()
    assert lines[0] == "mean errors on 13 groups of 721 items, by shop, 1 of a single item"
    assert "On your 13 groups this model is " in " ".join(lines[-4:-1])
    assert any("stars on average" in line for line in lines)
    assert any("95% intervals of this model contain" in line for line in lines)
    run(*evaluate, "--protocol", "npp", "--samples", "20", "--json")
    both = json.loads(capsys.readouterr().out)
    assert both["groups"]["n_single"] == 1
    assert both["samples"]["n_samples"] == 20


def test_evaluation_weights_groups_and_items(tables):
    model, file = oq.load_model(tables / "GroupBLP.oq"), open_table(tables / "new.csv")
    table = evaluate_table(model, file, by="shop").set_index("estimate")
    frame = pd.read_csv(tables / "new.csv")
    found = model.predict_groups(frame, by="shop", level=0.95)
    truth = oq.Samples.from_groups(frame["shop"], frame["stars"]).prevalences
    e, off = oq.metrics.nmd(truth, found.prevalences), np.abs((found.prevalences - truth) @ np.arange(1, N_CLASSES + 1))
    assert_allclose(table.loc["GroupBLP", "nmd"], e.mean())
    assert_allclose(table.loc["GroupBLP", "nmd_by_items"], (e * found.n_items).sum() / len(frame))
    assert_allclose(table.loc["GroupBLP", "mean_class"], off.mean())
    assert_allclose(table.loc["GroupBLP", "mean_class_by_items"], (off * found.n_items).sum() / len(frame))
    inside = (found.lower <= truth + 1e-9) & (truth <= found.upper + 1e-9)
    assert_allclose(table.loc["GroupBLP", "covered"], inside.mean())
    assert np.isnan(table.loc["CC", "covered"])


def test_verdict_needs_a_difference_that_is_not_chance(rng):
    noise = rng.normal(size=40)
    noise -= noise.mean()
    assert compared_with("CC", noise - 0.01)["said"] == "no better"
    assert compared_with("CC", noise - 1)["said"] == "better"
    assert compared_with("CC", noise + 1)["said"] == "worse"
    assert compared_with("CC", np.zeros(5))["said"] == "no better"
    compared = [{"other": name, "said": said} for name, said in (("CC", "worse"), ("training prevalences", "worse"))]
    assert verdict(compared, 7) == (
        "On your 7 groups this model is worse than counting predictions and assuming that nothing changed."
    )
    assert "does not tell" in verdict(compared, 1)
