"""The benchmark of Castano et al.: data, protocol, score and command."""

import itertools

import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import LogisticRegression

from ordinalq.cli.main import main
from ordinalq.datasets import CASTANO, load_castano
from ordinalq.paper.benchmarks import castano


def write_sets(folder, rng, n_items=120):
    """Write all 17 data sets as CSV files of the published form, with four classes each."""
    for name in CASTANO:
        y = np.arange(n_items) % 4 + 3
        frame = pd.DataFrame({"x0": y + rng.normal(size=n_items), "x1": rng.normal(size=n_items), "class": y})
        frame.to_csv(folder / f"{name}.csv", sep=";", index=False)


def test_loader_reads_the_published_form(tmp_path, rng):
    write_sets(tmp_path, rng)
    X, y = load_castano("stock.ord", tmp_path)
    assert X.shape == (120, 2)
    assert np.array_equal(y, np.arange(120) % 4)


def test_score_is_one_minus_emd_over_the_largest_emd_of_any_estimate(rng):
    P, P_hat = rng.dirichlet(np.ones(5), 50), rng.dirichlet(np.ones(5), 50)
    emd = [sum(abs(sum(p[: k + 1]) - sum(q[: k + 1])) for k in range(5)) for p, q in zip(P, P_hat, strict=True)]
    vertices = np.eye(5)
    largest = [max(np.abs(np.cumsum(p - vertex)).sum() for vertex in vertices) for p in P]
    np.testing.assert_allclose(castano.emd_score(P, P_hat), 1 - np.divide(emd, largest), atol=1e-12)


def test_bags_have_the_size_of_the_pool_and_bounded_outer_classes(rng):
    y = rng.permutation(np.repeat(np.arange(5), [10, 50, 60, 70, 10]))
    bags = castano.draw_bags(y, 400, rng)
    assert set(bags.sizes) == {200}
    P = bags.prevalences
    assert P[:, 0].min() >= 0.05
    assert P[:, -1].min() >= 0.05
    # Spacings of uniform points: the inner classes have equal means.
    np.testing.assert_allclose(P[:, 1:-1].mean(axis=0), 0.9 / 5, atol=0.05)


def test_posteriors_of_frank_hall_are_distributions_and_keep_consistent_thresholds(rng):
    y = rng.integers(0, 4, 300)
    X = y[:, None] + rng.normal(size=(300, 2))
    model = castano.FrankHall(LogisticRegression()).fit(X, y)
    S = model.predict_proba(X)
    np.testing.assert_allclose(S.sum(axis=1), 1, atol=1e-12)
    assert S.min() >= -1e-12
    at_most = np.stack([one.predict_proba(X)[:, 1] for one in model.estimators_], axis=1)
    rising = (np.diff(at_most, axis=1) >= 0).all(axis=1)
    assert rising.sum() > 100
    np.testing.assert_allclose(np.cumsum(S, axis=1)[rising, :-1], at_most[rising], atol=1e-12)


def test_command_prints_averages_next_to_published_ones_and_continues(tmp_path, rng, monkeypatch, capsys):
    write_sets(tmp_path, rng)
    kept = dict(itertools.islice(castano.METHODS.items(), 5))
    monkeypatch.setattr(castano, "METHODS", kept)
    monkeypatch.setattr(castano, "N_BAGS", 5)
    monkeypatch.setattr(castano, "CASTANO", ("ESL", "stock.ord"))
    monkeypatch.setitem(castano.PROFILES, "quick", castano.RunSize(1, 2, (2,), (1,)))
    arguments = ["reproduce", "castano", "--profile", "quick", "--data", str(tmp_path), "--out", str(tmp_path / "out")]
    assert main([*arguments, "--n-jobs", "1"]) == 0
    out = capsys.readouterr().out
    assert "0.8677" in out
    assert "higher is better" in out
    scores = pd.read_csv(tmp_path / "out" / "scores.csv")
    assert len(scores) == 2 * 5
    table = pd.read_csv(tmp_path / "out" / "table.csv", index_col=0)
    expected = scores[scores["method"] == "PACC"]["score"].mean()
    np.testing.assert_allclose(table.loc["PACC", "average"], expected, atol=1e-12)
    monkeypatch.setattr(castano, "_repetition", pytest.fail)  # nothing is computed again
    assert main([*arguments, "--n-jobs", "1"]) == 0
