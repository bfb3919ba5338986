"""Methods from outside go wherever those of the catalog go, with no edit of the library."""

import json

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from outsiders import Medians, Squares
from sklearn.naive_bayes import GaussianNB
from small_experiment import CONFIG, write_experiment

import ordinalq as oq
from ordinalq.cli import main
from ordinalq.inference.predict import estimate

OUTSIDERS = (Squares, Medians)
each_outsider = pytest.mark.parametrize("method", OUTSIDERS, ids=lambda cls: cls.__name__)


@pytest.fixture
def data(rng):
    """Return features (400, 2), labels 1..4, a pool (300, 2) and its groups."""
    y = np.arange(400) % 4
    pool = rng.integers(0, 4, 300)
    return (
        y[:, None] + rng.normal(size=(400, 2)),
        y + 1,
        pool[:, None] + rng.normal(size=(300, 2)),
        np.repeat(["ink", "pen", "cap"], 100),
    )


def fitted(method, data):
    return method(oq.classifiers.CrossFitted(GaussianNB(), cv=3)).fit(data[0], data[1])


@each_outsider
def test_outsiders_predict_samples_and_groups_with_intervals(method, data):
    quantifier, pool, groups = fitted(method, data), data[2], data[3]
    samples = oq.Samples.from_groups(groups)
    P = quantifier.predict_samples(pool, samples)
    assert_allclose(P.sum(axis=1), 1)
    estimates = quantifier.predict_groups(pool, groups, level=0.9)
    assert_array_equal(estimates.prevalences, P)
    assert estimates.groups.tolist() == ["cap", "ink", "pen"]
    for of in ("sample", "population"):
        whole = quantifier.predict_interval(pool, options=oq.inference.IntervalOptions(estimand=of))
        assert (whole.lower <= whole.prevalences).all()
        assert (whole.prevalences <= whole.upper).all()
        assert (whole.upper - whole.lower).max() > 0.01
    assert estimates.covariance.shape == (3, 4, 4)


@each_outsider
def test_outsiders_are_diagnosed(method, data):
    quantifier = fitted(method, data)
    found = quantifier.diagnose(data[2])
    # Of 300 items, one mixture of the known classes in a hundred is called implausible; the p value is uniform.
    assert found.fit.p_value > 1e-6
    # Items that all lie between the classes: an effect of 2.7, whose logarithm scatters by 0.15 (40 seeds): 0.3, which
    # is small, is fourteen deviations away.
    bad = quantifier.diagnose(1.5 + 0.01 * data[2])
    assert not bad.shift_is_plausible
    assert bad.fit.p_value < 1e-6
    assert "no regularizer" in str(found)


@each_outsider
def test_summaries_of_outsiders_merge(method, data, rng):
    quantifier, groups = fitted(method, data), data[3]
    S = quantifier.scores(data[2])
    parts = [
        quantifier.summarize(S[rows], oq.Samples.from_groups(groups[rows]))
        for rows in np.split(rng.permutation(300), 6)
    ]
    merged = oq.samples.Summary.merged(parts)
    assert_allclose(
        estimate(quantifier, merged).prevalences, quantifier.predict_groups(data[2], groups).prevalences, atol=1e-12
    )


def test_outsiders_are_searched(data):
    samples = oq.protocols.APP(50, 60, small_pool="repeat", random_state=0).draw(data[1])
    grid = {"ridge": [1e-3, 10.0]}
    search = oq.model_selection.SampleSearch(
        Squares(oq.classifiers.CrossFitted(GaussianNB(), cv=3)), grid, samples=samples
    )
    search.fit(data[0], data[1], data[0])
    assert search.best_params_ == {"ridge": 1e-3}
    assert_array_equal(search.predict(data[2]), search.best_estimator_.predict(data[2]))
    assert len(search.predict_groups(data[2], data[3], level=0.9)) == 3
    assert search.diagnose(data[2]).method == "Squares"
    items = oq.model_selection.SampleSearch(
        Medians(oq.classifiers.CrossFitted(GaussianNB(), cv=3)), {}, samples=samples
    )
    assert np.isfinite(items.fit(data[0], data[1], data[0]).results_["error"]).all()


@each_outsider
def test_external_methods_are_saved_and_loaded_if_they_are_trusted(method, data, tmp_path):
    quantifier = fitted(method, data)
    path = tmp_path / "model.oq"
    oq.save_model(quantifier, path)
    with pytest.raises(ValueError, match=f"outsiders.{method.__name__}"):
        oq.load_model(path)
    same = oq.load_model(path, trusted=[f"outsiders.{method.__name__}"])
    assert_array_equal(same.predict(data[2]), quantifier.predict(data[2]))
    assert_array_equal(same.predict_interval(data[2]).upper, quantifier.predict_interval(data[2]).upper)


@each_outsider
def test_outsiders_work_from_the_command_line(method, data, tmp_path, capsys):
    X, y, pool, groups = data
    name = method.__name__
    pd.DataFrame({"a": X[:, 0], "b": X[:, 1], "stars": y}).to_csv(tmp_path / "train.csv", index=False)
    pd.DataFrame({"a": pool[:, 0], "b": pool[:, 1], "product": groups}).to_csv(tmp_path / "new.csv", index=False)
    model = tmp_path / "model.oq"
    fit = [
        "fit",
        str(tmp_path / "train.csv"),
        "--target",
        "stars",
        "--method",
        f"outsiders:{name}",
        "--out",
        str(model),
    ]
    assert main(fit) == 0
    capsys.readouterr()
    predict = ["predict", str(model), str(tmp_path / "new.csv"), "--by", "product", "--interval", "0.9", "--json"]
    assert main(predict) == 2
    assert f"outsiders.{name}" in capsys.readouterr().err
    assert main([*predict, "--trust", f"outsiders.{name}"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert [row["group"] for row in found["groups"]] == ["cap", "ink", "pen"]
    assert_allclose([sum(row["prevalences"]) for row in found["groups"]], 1)


def test_external_methods_run_in_an_experiment_and_appear_in_its_report(tmp_path):
    head, _, rest = CONFIG.partition("methods = ")
    config = head + 'methods = ["PACC", "outsiders:Squares", "outsiders:Medians"]' + rest[rest.index("\n") :]
    config = config[: config.index("[grid.OPACC]")] + "[grid.Squares]\nridge = [0.001, 1.0]\n"
    path = write_experiment(tmp_path, config.replace("[2, 5]", "[3]"), n_items=400)
    assert main(["reproduce", str(path), "--out", str(tmp_path / "out"), "--n-jobs", "1", "--quiet"]) == 0
    page = (tmp_path / "out" / "report.html").read_text(encoding="utf-8")
    tables = "".join(path.read_text(encoding="utf-8") for path in (tmp_path / "out" / "tables").glob("*.csv"))
    for name in ("Squares", "Medians"):
        assert name in page
        assert name in tables
