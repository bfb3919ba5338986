"""Means over the values of the classes."""

import json

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import ordinalq as oq
from ordinalq.cli import main
from ordinalq.inference.intervals import width_correction
from ordinalq.inference.label_plan import labels_needed
from ordinalq.inference.predict import estimate
from ordinalq.samples.labels import class_scale
from ordinalq.tables.evaluate import group_error_table

WORDS = ["poor", "fair", "good"]
VALUES = [-2.0, 0.0, 6.0]


def scored(rng, n_items=900, n_groups=30):
    """Return scores (N, 3), codes, and groups with different prevalences."""
    P = rng.dirichlet([2, 2, 2], n_groups)
    groups = np.repeat(np.arange(n_groups), n_items // n_groups)
    codes = np.array([rng.choice(3, p=P[g]) for g in groups])
    codes[:3] = [0, 1, 2]
    noisy = np.exp(-0.5 * (codes[:, None] + rng.normal(scale=0.6, size=(n_items, 1)) - np.arange(3)) ** 2)
    return noisy / noisy.sum(axis=1, keepdims=True), codes, groups


@pytest.mark.parametrize(
    ("classes", "values", "name"),
    [
        ([0, 5, 10], [0, 5, 10], "mean class"),
        ([1, 2, 3, 4, 7, 8], [1, 2, 3, 4, 7, 8], "mean class"),
        (np.array([0.5, 1.5]), [0.5, 1.5], "mean class"),
        (["1", "3", "4.5"], [1, 3, 4.5], "mean class"),
        (WORDS, [1, 2, 3], "mean position"),
        ([False, True], [1, 2], "mean position"),
        (["1", "2", "many"], [1, 2, 3], "mean position"),
        (["nan", "inf"], [1, 2], "mean position"),
        (np.array(["2024-01", "2024-02"], dtype="M8[M]"), [1, 2], "mean position"),
    ],
)
def test_numbers_are_their_own_values_and_others_have_positions(classes, values, name):
    scale = class_scale(classes)
    assert_array_equal(scale.numbers, values)
    assert scale.name == name


def test_values_of_words_may_come_as_list_or_dict():
    for given in (VALUES, dict(zip(WORDS, VALUES, strict=True))):
        scale = class_scale(WORDS, given)
        assert_array_equal(scale.numbers, VALUES)
        assert scale.name == "mean class"


@pytest.mark.parametrize(
    "bad", [[1, 2], [2, 2, 2], [1, 3, 2], [1, 2, np.inf], "abc", {"poor": 1, "fair": 2}, ["a"] * 3]
)
def test_values_that_do_not_fit_the_classes_are_rejected(bad):
    with pytest.raises((ValueError, TypeError), match="class_values must"):
        class_scale(WORDS, bad)


def test_classes_may_share_a_value_as_in_the_net_promoter_score(rng):
    y = rng.permutation(np.arange(1100) % 11)
    X = y[:, None] + rng.normal(size=(1100, 2))
    values = [-100] * 7 + [0] * 2 + [100] * 2
    found = oq.PACC().fit(X, y, class_values=values).predict_interval(X, level=0.95)
    p = found.prevalences[0]
    assert_allclose(found.mean, 100 * (p[9:].sum() - p[:7].sum()))
    assert found.bounds.mean_lower[0] < found.mean[0] < found.bounds.mean_upper[0]


@pytest.mark.parametrize("trained_with_groups", [False, True])
@pytest.mark.parametrize("method", [oq.PACC, oq.SLD, oq.GroupBLP, oq.AdjustedML])
def test_values_on_a_line_move_means_and_their_bounds_along_it(method, trained_with_groups, rng):
    S, codes, groups = scored(rng)
    known = {"groups": groups} if trained_with_groups else {}
    labels = np.where(rng.random(len(codes)) < 0.4, codes, -1).astype(object)
    labels[labels == -1] = None
    found = {}
    for name, classes in (("positions", [1, 2, 3]), ("values", [-7, -4, -1])):
        q = method().fit_scores(S, np.array(classes)[codes], **known)
        named = np.array([None if i is None else classes[i] for i in labels], dtype=object)
        summary = q.summarize(S, oq.Samples.from_groups(groups), labels=named)
        found[name] = [estimate(q, summary, 0.95, oq.inference.IntervalOptions(basis=b)) for b in ("auto", "labels")]
    for one, other in zip(*found.values(), strict=True):
        assert_allclose(one.prevalences, other.prevalences, atol=1e-12)
        assert_allclose(other.mean, 3 * one.mean - 10, atol=1e-9)
        for end in ("mean_lower", "mean_upper"):
            assert_allclose(getattr(other.bounds, end), 3 * getattr(one.bounds, end) - 10, atol=1e-9)
        assert_allclose(other.bounds.lower, one.bounds.lower, atol=1e-12)
        assert_allclose(other.compare(1, 2).mean_upper, 3 * one.compare(1, 2).mean_upper, atol=1e-9)
        assert_allclose(other.compare(1, 2).p_value, one.compare(1, 2).p_value, atol=1e-9)
        assert_allclose(other.trend().slope_lower, 3 * one.trend().slope_lower, atol=1e-9)
        assert_allclose(other.trend().mean_p_value, one.trend().mean_p_value, atol=1e-9)


def test_intervals_of_uneven_values_cover_the_mean(rng):
    S, codes, groups = scored(rng, 12_000, 200)
    half = groups < 100
    truth = np.bincount(groups, np.array(VALUES)[codes]) / np.bincount(groups)
    for method in (oq.PACC, oq.GroupBLP):
        q = method().fit_scores(S[half], np.array(WORDS)[codes[half]], classes=WORDS, class_values=VALUES)
        got = estimate(q, q.summarize(S[~half], oq.Samples.from_groups(groups[~half])), 0.95)
        held = (got.bounds.mean_lower <= truth[100:] + 1e-9) & (truth[100:] <= got.bounds.mean_upper + 1e-9)
        # 81 of 100 is six standard deviations below 95%.
        assert held.mean() > 0.81
        assert ((got.bounds.mean_lower <= got.mean) & (got.mean <= got.bounds.mean_upper)).all()
        assert -2 <= got.bounds.mean_lower.min() < got.bounds.mean_upper.max() <= 6


def test_corrections_of_widths_are_in_the_unit_of_the_values(rng):
    S, codes, groups = scored(rng)
    one, ten = (oq.PACC().fit_scores(S, codes, classes=[0, 1, 2], class_values=[0, k, 2 * k]) for k in (1, 10))
    c, b = width_correction(one, S, codes, groups)[-1]
    c10, b10 = width_correction(ten, S, codes, groups)[-1]
    assert_allclose(c10, c, atol=1e-9)
    assert_allclose(b10[:, -1], 10 * b[:, -1], atol=1e-9)
    assert_allclose(b10[:, :-1], b[:, :-1], atol=1e-9)


def test_everything_printed_or_written_names_the_mean_and_uses_the_values(rng):
    S, codes, groups = scored(rng)
    words = oq.PACC().fit_scores(S, np.array(WORDS)[codes], classes=WORDS)
    valued = oq.PACC().fit_scores(S, np.array(WORDS)[codes], classes=WORDS, class_values=VALUES)
    summary = words.summarize(S, oq.Samples.from_groups(groups), labels=[None] * len(S))
    for q, name, values in ((words, "mean position", [1, 2, 3]), (valued, "mean class", VALUES)):
        got = estimate(q, summary, 0.95)
        assert_allclose(got.frame()["mean_class"], got.prevalences @ values)
        said = got.to_json()
        assert said["class_values"] == values
        assert_allclose([row["mean_class"] for row in said["groups"]], got.mean)
        assert f"  {name} " in str(got)
        assert f"The {name} of" in str(got.compare(1, 2))
        assert got.trend().mean_name == name
        assert labels_needed(q, summary).quantity == name
        assert got.take([0]).plot().get_legend().get_title().get_text().endswith(got_mean(got, name))
        assert oq.plot.trend(got)[0].get_ylabel() == name
        assert_allclose(oq.plot.trend(got)[0].lines[0].get_ydata(), got.mean)
        assert oq.plot.comparison(got.compare(1, 2)).get_title(loc="left").startswith(name)
        assert_array_equal(got.sorted("mean").mean, np.sort(got.mean)[::-1])


def got_mean(got, name):
    """Return what a plot of the first sample says of its mean."""
    return f"{name} {got.mean[0]:.2f} ({got.bounds.mean_lower[0]:.2f} to {got.bounds.mean_upper[0]:.2f})"


def test_errors_of_the_mean_are_measured_in_the_values(rng):
    S, codes, groups = scored(rng)
    q = oq.PACC().fit_scores(S, codes * 10)
    samples = oq.Samples.from_groups(groups, codes, classes=[0, 1, 2])
    found = estimate(q, q.summarize(S, samples), 0.95)
    table = group_error_table({"model": found.prevalences, "PCC": samples.average(S)}, samples, found)
    truth = np.bincount(groups, codes * 10.0) / np.bincount(groups)
    assert_allclose(table["mean_class"][0], np.abs(found.mean - truth).mean())
    held = (found.bounds.mean_lower <= truth + 1e-9) & (truth <= found.bounds.mean_upper + 1e-9)
    assert_allclose(table["mean_class_covered"][0], held.mean())


def test_a_model_file_keeps_the_values_that_the_command_line_gives(rng, tmp_path, capsys):
    y = rng.integers(0, 3, 300)
    frame = pd.DataFrame({"x": y + rng.normal(scale=0.5, size=300), "mood": np.array(WORDS)[y], "shop": y % 2})
    frame.to_csv(tmp_path / "t.csv", index=False)
    how = ["--target", "mood", "--features", "x", "--method", "PACC", "--out", str(tmp_path / "m.oq")]
    table = str(tmp_path / "t.csv")
    assert main(["fit", table, *how, "--classes", ",".join(WORDS), "--class-values", "-2,0,6"]) == 0
    capsys.readouterr()
    assert main(["predict", str(tmp_path / "m.oq"), table, "--by", "shop", "--json"]) == 0
    said = json.loads(capsys.readouterr().out)
    for row in said["groups"]:
        assert_allclose(row["mean_class"], np.dot(row["prevalences"], VALUES))
    assert main(["predict", str(tmp_path / "m.oq"), table, "--by", "shop"]) == 0
    assert "mean class" in capsys.readouterr().out
    assert main(["fit", table, *how, "--classes", ",".join(WORDS)]) == 0
    assert main(["predict", str(tmp_path / "m.oq"), table, "--by", "shop"]) == 0
    assert "mean position" in capsys.readouterr().out
