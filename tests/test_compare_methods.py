"""Several methods on the same scores: one fit of the classifier, one table, paired tests."""

import json

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose
from seeds import generator
from sklearn.linear_model import LogisticRegression

import ordinalq as oq
from ordinalq.cli import main
from ordinalq.metrics import wilcoxon


class Counted(LogisticRegression):
    """A classifier that counts its fits."""

    fits = 0

    def fit(self, X, y, **how):
        """Fit, and count."""
        type(self).fits += 1
        return super().fit(X, y, **how)


@pytest.fixture(scope="module")
def items():
    rng = generator(61)
    y = rng.integers(1, 5, 600)
    return 1.2 * y[:, None] + rng.normal(size=(600, 2)), y


def test_methods_share_one_fit_of_the_classifier(items):
    Counted.fits = 0
    found = oq.model_selection.compare_methods(
        ["CC", "PCC", "PACC", "SLD"], *items, classifier=oq.classifiers.CrossFitted(Counted(), cv=3)
    )
    assert Counted.fits == 3
    assert list(found.errors) == ["CC", "PCC", "PACC", "SLD"]
    assert {len(e) for e in found.errors.values()} == {500}
    table = found.frame()
    assert table["mean"].is_monotonic_increasing
    best = table["method"][0]
    assert found.best == best
    for row in table.to_dict("records"):
        e = found.errors[row["method"]]
        assert_allclose([row["mean"], row["std"]], [e.mean(), e.std(ddof=1)])
        assert row["p_value"] == (1 if row["method"] == best else wilcoxon(e, found.errors[best]))
        assert row["as_good"] == (row["p_value"] >= 0.01)
    # Averaging posteriors does not see a shift.
    assert table["method"].tolist()[-1] == "PCC"
    assert f"{best} has the smallest error" in str(found)
    assert "500 samples" in str(found)


def test_errors_are_those_of_the_halves(items):
    X, y = items
    protocol = oq.protocols.NPP(40, 30, random_state=3)
    found = oq.model_selection.compare_methods(
        {"mine": oq.PACC()}, X, y, protocol=protocol, measure="rnod", random_state=5
    )
    from ordinalq.classifiers.cross_fitting import make_folds

    S = oq.classifiers.CrossFitted(random_state=5).fit(X, y - 1).held_out_scores_
    expected = []
    for taught, judged in make_folds(2, y - 1, random_state=5):
        samples = protocol.draw(y[judged])
        P = oq.PACC().fit_scores(S[taught], y[taught]).predict_scores(S[judged], samples)
        expected.append(oq.metrics.rnod(samples.prevalences, P))
    assert_allclose(found.errors["mine"], np.concatenate(expected), atol=1e-12)


def test_groups_are_the_samples(items):
    X, y = items
    groups = np.repeat(np.arange(15), 40)
    found = oq.model_selection.compare_methods(
        {"PACC": oq.PACC(), "GroupBLP": oq.GroupBLP(), "HDx": oq.HDx(), "OQT": oq.OQT()}, X, y, groups=groups
    )
    assert {len(e) for e in found.errors.values()} == {15}
    assert "15 groups" in found.sentence()


def test_invalid_comparisons_are_rejected(items):
    for methods, error, message in [
        ("CC", TypeError, "a dict of methods, or a list of names"),
        ([], ValueError, "at least one method"),
        (["PACCC"], ValueError, "PACC"),
        ({"a": LogisticRegression()}, TypeError, "must be a quantifier"),
        ({"a": oq.PACC(LogisticRegression())}, ValueError, "must not have a classifier"),
    ]:
        with pytest.raises(error, match=message):
            oq.model_selection.compare_methods(methods, *items)


@pytest.fixture(scope="module")
def files(items, tmp_path_factory):
    folder = tmp_path_factory.mktemp("methods")
    X, y = items
    frame = pd.DataFrame(X, columns=["f1", "f2"]).assign(stars=y, shop=np.arange(len(y)) % 12)
    frame[:300].to_csv(folder / "train.csv", index=False)
    frame[300:].to_csv(folder / "test.csv", index=False)
    fit = ["fit", folder / "train.csv", "--target", "stars", "--features", "f1,f2", "--method", "PACC"]
    assert main([*map(str, fit), "--out", str(folder / "model.oq")]) == 0
    return folder


def test_evaluate_compares_methods_on_the_scores_of_the_model(files, capsys):
    call = [*map(str, ["evaluate", files / "model.oq", files / "test.csv", "--samples", "60"])]
    capsys.readouterr()
    assert main([*call, "--methods", "CC,SLD,AdjustedML"]) == 0
    out = " ".join(capsys.readouterr().out.split())
    for name in ("CC", "SLD", "AdjustedML", "PACC"):
        assert name in out
    assert "smallest error" in out
    assert main([*call, "--methods", "CC,SLD", "--json"]) == 0
    result = json.loads(capsys.readouterr().out)
    assert {row["method"] for row in result["methods"]} == {"CC", "SLD", "PACC"}
    assert main([*call, "--methods", "SLD", "--by", "shop"]) == 0
    assert "12 groups" in capsys.readouterr().out


def test_evaluate_names_the_methods_that_it_cannot_compare(files, capsys):
    call = [*map(str, ["evaluate", files / "model.oq", files / "test.csv", "--methods"])]
    for methods, message in {
        "PACCC": "PACC",
        "HDx": "needs the columns themselves",
        "OQT": "fits its own models",
    }.items():
        assert main([*call, methods]) == 2
        assert message in capsys.readouterr().err
