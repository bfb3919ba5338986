"""Groups whose items differ: what a model learns of them in training, and intervals that hold for them."""

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression

import ordinalq as oq
from ordinalq.cli import main
from ordinalq.inference.bootstrap import ClassPools, Tilt
from ordinalq.inference.group_model import GroupSums, learn
from ordinalq.inference.intervals import excess

N_CLASSES = 4


def make(rng, n_groups, n_items, spread=0.5, concentration=2.0):
    """Return features (N, 2), labels 1..4 and groups: shares and looks differ from group to group."""
    P = rng.dirichlet(np.full(N_CLASSES, concentration), n_groups)
    looks = spread * rng.normal(size=(n_groups, 2))
    groups = np.repeat(np.arange(n_groups), n_items)
    y = np.concatenate([rng.choice(N_CLASSES, n_items, p=p) for p in P])
    return y[:, None] + looks[groups] + rng.normal(size=(len(y), 2)), y + 1, groups


def covered(estimates, truth):
    """Return the coverage of the intervals of classes and of the mean class."""
    mean = truth @ np.arange(1.0, N_CLASSES + 1)
    return (
        ((estimates.lower <= truth + 1e-12) & (truth <= estimates.upper + 1e-12)).mean(),
        ((estimates.bounds.mean_lower <= mean) & (mean <= estimates.bounds.mean_upper)).mean(),
    )


@pytest.mark.parametrize(
    "method", [oq.GroupBLP, oq.PACC, lambda: oq.SLD(calibration="bcts")], ids=["GroupBLP", "PACC", "SLD"]
)
def test_intervals_hold_for_groups_that_differ_if_the_model_has_groups(method, rng):
    X, y, groups = make(rng, 100, 40)
    new, labels, asked = make(rng, 300, 60)
    truth = oq.Samples.from_groups(asked, labels).prevalences
    quantifier = method()
    quantifier.classifier = oq.classifiers.CrossFitted(LogisticRegression(), cv=5)
    with_groups = quantifier.fit(X, y, groups=groups).predict_groups(new, asked, level=0.95)
    # 300 groups of four classes: a true 95% shows between 92% and 98%.
    classes, mean = covered(with_groups, truth)
    assert classes > 0.91
    assert mean > 0.90
    without = quantifier.fit(X, y).predict_groups(new, asked, level=0.95)
    assert covered(without, truth)[0] < classes - 0.05


BIASED = {
    "PCC": oq.PCC,
    "CC": oq.CC,
    "OPACC": lambda: oq.OPACC(tau=1.0),
    "SLD": lambda: oq.SLD(calibration="bcts", tau=10.0),
    "OSLD": lambda: oq.OSLD(calibration="bcts", interpolation=0.5, max_iter=20),
}


@pytest.mark.parametrize("name", BIASED)
def test_intervals_of_biased_methods_hold_for_groups_if_the_model_has_groups(name, rng):
    X, y, groups = make(rng, 60, 40)
    new, labels, asked = make(rng, 100, 60)
    truth = oq.Samples.from_groups(asked, labels).prevalences
    quantifier = BIASED[name]()
    quantifier.classifier = oq.classifiers.CrossFitted(LogisticRegression(), cv=5)
    plan = oq.inference.IntervalOptions(n_replicates=60)
    # 100 groups whose errors go together over classes, and 60 that the widths were learned from.
    classes, mean = covered(
        quantifier.fit(X, y, groups=groups).predict_groups(new, asked, level=0.95, options=plan), truth
    )
    assert classes > 0.89
    assert mean > 0.85
    plain = oq.inference.IntervalOptions(n_replicates=60, bias=False)
    without = quantifier.fit(X, y).predict_groups(new, asked, level=0.95, options=plain)
    assert covered(without, truth)[0] < classes - 0.1


def test_tilted_samples_look_as_groups_do(rng):
    X, y, groups = make(rng, 60, 200, spread=0.3)
    sld = oq.SLD(oq.classifiers.CrossFitted(LogisticRegression(), cv=3), calibration="bcts").fit(X, y, groups=groups)
    V = ClassPools.of(sld)
    F, D = sld.group_features(V.S), sld.held_out_.group_covariance
    counts = np.tile(V.counts.astype(np.int64) // 30, (600, 1))
    size = counts[0].sum()
    tilt = Tilt.of(sld, V)
    means = {n: tilt.draw(V, counts, np.full(600, n), rng).average(F) for n in (size, 1)}
    # Groups of one item have no group effect; only the scatter of items is left.
    found = np.cov(means[size].T) - np.cov(means[1].T)
    assert_allclose(np.trace(found), np.trace(D), rtol=0.25)
    direction = np.linalg.eigh(D)[1][:, -1]
    assert_allclose(direction @ found @ direction, direction @ D @ direction, rtol=0.3)


def test_the_excess_of_errors_beyond_their_variances_is_found(rng):
    v = rng.uniform(0.5, 2.0, (4000, 3)) * [1.0, 1.0, 0.0]
    more = np.array([3.0, 0.0, 0.0])
    errors = rng.normal(size=v.shape) * np.sqrt(v + more) * [1.0, 0.5, 0.0]
    every = np.ones(v.shape, dtype=bool)
    scale, extra = excess(errors**2, v, every)
    # By hand: e^2 = (v + 3), v / 4, and nothing at all.
    assert_allclose(scale, [1, 0.5, 1], rtol=0.05)
    assert_allclose(extra, [np.sqrt(3), 0, 0], rtol=0.05, atol=1e-12)
    assert_allclose((errors**2 / (scale**2 * v + extra**2 + 1e-20)).sum(axis=0)[:2], 3999, rtol=1e-9)
    # Half of the groups tell the same, none of them nothing.
    assert_allclose(excess(errors**2, v, every & (np.arange(4000)[:, None] < 2000))[1][0], np.sqrt(3), rtol=0.07)
    assert_array_equal(excess(errors**2, v, ~every), [np.ones(3), np.zeros(3)])


def test_a_model_with_other_parameters_does_not_take_over_widths_of_groups(rng):
    X, y, groups = make(rng, 20, 30)
    fitted = oq.OPACC(oq.classifiers.CrossFitted(LogisticRegression(), cv=3)).fit(X, y, groups=groups)
    assert not oq.OPACC(tau=5.0).adopt(fitted)
    assert oq.OPACC(tau=5.0).adopt(fitted.fit(X, y))


def test_best_linear_prediction_errs_less_than_adjusted_counts_on_groups_that_differ(rng):
    X, y, groups = make(rng, 100, 40)
    new, labels, asked = make(rng, 300, 30)
    truth = oq.Samples.from_groups(asked, labels).prevalences
    classifier = oq.classifiers.CrossFitted(LogisticRegression(), cv=5)
    errors = {
        cls.__name__: oq.metrics.nmd(
            truth, cls(classifier).fit(X, y, groups=groups).predict_groups(new, asked).prevalences
        )
        for cls in (oq.GroupBLP, oq.PACC, oq.PCC)
    }
    assert errors["GroupBLP"].mean() < 0.95 * min(errors["PACC"].mean(), errors["PCC"].mean())


def test_no_model_has_seen_the_group_of_an_item_that_it_scores(rng):
    X, y, groups = make(rng, 12, 30)

    class Remembers(LogisticRegression):
        def fit(self, X, y):
            self.seen_ = {tuple(row) for row in X}
            return super().fit(X, y)

    fitted = oq.classifiers.CrossFitted(Remembers(), cv=4).fit(X, y, groups=groups)
    for model in fitted.estimators_:
        known = {group for row, group in zip(X, groups, strict=True) if tuple(row) in model.seen_}
        left_out = set(groups.tolist()) - known
        assert len(left_out) == 3
        assert all(tuple(row) not in model.seen_ for row, g in zip(X, groups, strict=True) if g in left_out)


def test_out_of_bag_scores_are_rejected_with_groups(rng):
    X, y, groups = make(rng, 12, 30)
    forest = RandomForestClassifier(10, oob_score=True, random_state=0)
    with pytest.raises(ValueError, match=r"groups must be None with out-of-bag scores.*CrossFitted\(forest\)"):
        oq.PACC(forest).fit(X, y, groups=groups)


@pytest.mark.parametrize("name", [entry.name for entry in oq.catalog(beyond=False)])
def test_every_method_takes_groups_in_training(name, rng):
    X, y, groups = make(rng, 8, 40)
    cls = getattr(oq, name)
    classifier = oq.classifiers.CrossFitted(LogisticRegression(), cv=3)
    quantifier = (cls() if cls().traits.input_kind == "features" else cls(classifier)).fit(X, y, groups=groups)
    d = quantifier.held_out_.group_covariance.shape[0]
    assert quantifier.held_out_.group_covariance.shape == (d, d)
    assert np.linalg.eigvalsh(quantifier.held_out_.group_covariance).min() > -1e-12
    wide = quantifier.predict_interval(X[:200], options=oq.inference.IntervalOptions(n_replicates=20))
    assert (wide.lower <= wide.prevalences).all()
    assert quantifier.fit(X, y).held_out_.group_covariance is None


def test_intervals_of_large_groups_do_not_shrink_below_the_group_effect(rng):
    X, y, groups = make(rng, 60, 50)
    quantifier = oq.GroupBLP(oq.classifiers.CrossFitted(LogisticRegression(), cv=5)).fit(X, y, groups=groups)
    new, _, _ = make(rng, 1, 20_000)
    widths = [
        np.ptp([e.lower, e.upper], axis=0).mean()
        for e in (quantifier.predict_interval(new[:n]) for n in (50, 2000, 20_000))
    ]
    assert widths[0] > 1.1 * widths[1]
    assert widths[2] > 0.9 * widths[1]


def test_groups_unlike_those_of_the_training_are_named(rng):
    # All training groups have nearly equal shares; the second group asked about has items of one class only.
    X, y, groups = make(rng, 60, 60, spread=0.05, concentration=1000.0)
    quantifier = oq.GroupBLP(oq.classifiers.CrossFitted(LogisticRegression(), cv=5)).fit(X, y, groups=groups)
    usual, extreme = X[:60], rng.normal(size=(500, 2))
    estimates = quantifier.predict_groups(np.vstack([usual, extreme]), np.repeat([0, 1], [60, 500]), level=0.9)
    assert estimates.fit.tolist() == ["good", "unlike the training groups"]
    # Groups of one item are not printed like any other.
    few = quantifier.predict_groups(usual[:3], [0, 1, 1])
    assert few.fit.tolist() == ["too few items", "good"]
    assert estimates.prevalences[1, 0] > 0.8
    assert estimates.frame()["fit"].tolist() == estimates.fit.tolist()


def test_scores_with_groups_give_the_model_of_the_sums(rng):
    X, y, groups = make(rng, 40, 30)
    S = oq.classifiers.CrossFitted(LogisticRegression(), cv=4).fit(X, y, groups=groups).held_out_scores_
    quantifier = oq.GroupBLP().fit_scores(S, y, groups=groups)
    model = learn(GroupSums.of(quantifier.embed(S), y - 1, groups, N_CLASSES))
    assert_array_equal(quantifier.group_model_.D, model.D)
    same = oq.GroupBLP().fit_scores(S, y, groups=[f"product {g}" for g in groups])
    assert_allclose(
        same.predict_scores(S, oq.Samples.whole(len(S))), quantifier.predict_scores(S, oq.Samples.whole(len(S)))
    )


def test_a_model_of_groups_is_saved_without_keys(rng, tmp_path):
    X, y, groups = make(rng, 40, 30)
    quantifier = oq.GroupBLP(oq.classifiers.CrossFitted(LogisticRegression(), cv=4)).fit(
        X, y, groups=[f"secret{g}" for g in groups]
    )
    oq.save_model(quantifier, tmp_path / "model.oq")
    same = oq.load_model(tmp_path / "model.oq")
    assert_array_equal(same.predict_interval(X).upper, quantifier.predict_interval(X).upper)
    assert b"secret" not in (tmp_path / "model.oq").read_bytes()


def test_the_command_line_fits_with_groups(rng, tmp_path, capsys):
    X, y, groups = make(rng, 30, 30)
    frame = pd.DataFrame({"a": X[:, 0], "b": X[:, 1], "product": groups, "stars": y})
    frame.to_csv(tmp_path / "train.csv", index=False)
    model, new = str(tmp_path / "model.oq"), str(tmp_path / "train.csv")
    assert main(["fit", new, "--target", "stars", "--by", "product", "--method", "GroupBLP", "--out", model]) == 0
    assert "product" not in capsys.readouterr().out.partition("columns:")[2].partition("\n")[0]
    assert main(["predict", model, new, "--by", "product", "--interval", "0.95", "--out", str(tmp_path / "e.csv")]) == 0
    found = pd.read_csv(tmp_path / "e.csv")
    assert found["fit"].isin(["good", "unlike the training groups"]).all()
    truth = oq.Samples.from_groups(groups, y).prevalences
    names = [str(c) for c in range(1, 5)]
    inside = (found[[f"{n}_lower" for n in names]].to_numpy() <= truth) & (
        truth <= found[[f"{n}_upper" for n in names]].to_numpy()
    )
    assert inside.mean() > 0.9


def test_mistakes_in_training_groups_are_named(rng):
    X, y, groups = make(rng, 12, 30)
    for bad, message in (
        (groups[:5], "groups must have one value per item, 360, got 5"),
        ([None, *groups[1:].tolist()], "groups must have no missing values, got 1"),
        (np.zeros(360), "groups must have at least two different values"),
        (np.repeat([0, 1], 180), "groups must contain at least 3"),
    ):
        with pytest.raises(ValueError, match=message):
            oq.GroupBLP(oq.classifiers.CrossFitted(LogisticRegression(), cv=3)).fit(X, y, groups=bad)
    alone = np.where(y == 1, 12, groups)
    with pytest.raises(ValueError, match="class number 1 is in 1 of the 13 groups only, which are held out together"):
        oq.PACC(oq.classifiers.CrossFitted(LogisticRegression(), cv=3)).fit(X, y, groups=alone)
    with pytest.raises(ValueError, match="groups must be None with InSample"):
        oq.PACC(oq.classifiers.InSample(LogisticRegression())).fit(X, y, groups=groups)
    with pytest.raises(ValueError, match="group_effect must be None with groups"):
        oq.GroupBLP(oq.classifiers.CrossFitted(LogisticRegression(), cv=3), group_effect=0.1).fit(X, y, groups=groups)
    with pytest.raises(ValueError, match="group_effect must be a number in"):
        oq.GroupBLP(group_effect=2.0).fit(X, y)
