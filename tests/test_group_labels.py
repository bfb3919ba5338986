"""Labels of some items of new groups, in Python and in summaries."""

import importlib.util
import tomllib
from pathlib import Path

import numpy as np
import pandas as pd
import polars as pl
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from seeds import generator
from sklearn.linear_model import LogisticRegression
from test_group_training import N_CLASSES, covered, make

import ordinalq as oq
from ordinalq.inference.labels import LabelMoments, class_predictions, design_based
from ordinalq.inference.predict import estimate

ROOT = Path(__file__).parent.parent
CLASSIFIER = oq.classifiers.CrossFitted(LogisticRegression(), cv=5)


def some_labels(rng, y, groups, m):
    """Return the labels of m items of each group drawn at random, NaN for the others."""
    labelled = np.full(len(y), np.nan)
    for group in np.unique(groups):
        chosen = rng.choice(np.flatnonzero(groups == group), m, replace=False)
        labelled[chosen] = y[chosen]
    return labelled


@pytest.fixture(scope="module")
def trained():
    """Return models fitted with groups, by name."""
    X, y, groups = make(generator(5), 100, 40)
    return {cls.__name__: cls(CLASSIFIER).fit(X, y, groups=groups) for cls in (oq.GroupBLP, oq.PACC, oq.SLD)}


@pytest.mark.parametrize("basis", ["model", "labels"])
@pytest.mark.parametrize("m", [10, 30])
def test_labels_narrow_the_intervals_which_still_hold(trained, basis, m, rng):
    X, y, groups = make(rng, 200, 90)
    truth = oq.Samples.from_groups(groups, y).prevalences
    labelled = some_labels(rng, y, groups, m)
    quantifier = trained["GroupBLP"]
    without = quantifier.predict_groups(X, groups, level=0.95)
    got = quantifier.predict_groups(
        X, groups, level=0.95, labels=labelled, options=oq.inference.IntervalOptions(basis=basis)
    )
    assert set(got.basis) == {basis}
    assert set(got.n_labelled) == {m}
    classes, mean = covered(got, truth)
    # Over 25 seeds the shares are .94 to .97 with standard deviations of at most .0135 (classes; .0052 at .97) and
    # .0173 (mean class), since the training groups differ, too: 4.5 of them are missed by chance once in 300,000 runs.
    assert 0.88 < classes <= 0.995
    assert mean > 0.865
    if basis == "model":
        assert (got.upper - got.lower).mean() < 0.9 * (without.upper - without.lower).mean()
        assert oq.metrics.nmd(truth, got.prevalences).mean() < oq.metrics.nmd(truth, without.prevalences).mean()


@pytest.mark.parametrize("name", [entry.name for entry in oq.catalog()])
def test_every_method_takes_labels(name, rng):
    X, y, _ = make(rng, 30, 30)
    cls = getattr(oq, name)
    takes = "classifier" in cls().get_params(deep=False)
    quantifier = (cls(CLASSIFIER) if takes else cls()).fit(X, y)
    new, labels, asked = make(rng, 2, 150)
    labelled = np.where((np.arange(300) % 150 < 40) & (asked == 1), labels, np.nan)
    plan = oq.inference.IntervalOptions(n_replicates=20, basis="labels")
    got = quantifier.predict_groups(new, asked, level=0.9, labels=labelled, options=plan)
    assert got.basis.tolist() == ["model", "labels"]
    assert got.n_labelled.tolist() == [0, 40]
    assert (got.lower <= got.prevalences).all()
    assert (got.prevalences <= got.upper).all()
    # The group without labels is as it was.
    plain = quantifier.predict_groups(new, asked, level=0.9, options=oq.inference.IntervalOptions(n_replicates=20))
    assert_allclose(got.prevalences[0], plain.prevalences[0])
    assert_allclose(got.lower[0], plain.lower[0])


def test_intervals_from_labels_only_are_valid_if_the_method_is_wrong(rng):
    # The features of all groups have moved far from those of the training.
    X, y, _ = make(rng, 20, 60, spread=0)
    new, labels, groups = make(rng, 200, 150, spread=0)
    new = new + 2
    truth = oq.Samples.from_groups(groups, labels).prevalences
    quantifier = oq.PACC(CLASSIFIER).fit(X, y)
    plan = oq.inference.IntervalOptions(n_replicates=20)
    assert covered(quantifier.predict_groups(new, groups, level=0.95, options=plan), truth)[0] < 0.6
    labelled = some_labels(rng, labels, groups, 30)
    got = quantifier.predict_groups(new, groups, level=0.95, labels=labelled, options=plan)
    assert set(got.basis) == {"labels"}
    assert 0.92 < covered(got, truth)[0] < 0.99


def test_groups_unlike_the_training_groups_rest_on_their_labels(rng):
    X, y, groups = make(rng, 60, 60, spread=0.05, concentration=1000.0)
    quantifier = oq.GroupBLP(CLASSIFIER).fit(X, y, groups=groups)
    usual, extreme = X[:60], rng.normal(size=(500, 2))
    labelled = np.full(560, np.nan)
    labelled[:20], labelled[60:80] = y[:20], 1
    asked = np.repeat(["like", "unlike"], [60, 500])
    got = quantifier.predict_groups(np.vstack([usual, extreme]), asked, labels=labelled)
    assert got.basis.tolist() == ["model", "labels"]
    forced = quantifier.predict_groups(
        np.vstack([usual, extreme]), asked, labels=labelled, options=oq.inference.IntervalOptions(basis="model")
    )
    assert forced.basis.tolist() == ["model", "model"]


@pytest.mark.parametrize("basis", ["model", "labels"])
def test_all_items_labelled_is_the_count(trained, basis, rng):
    X, y, groups = make(rng, 3, 50)
    truth = oq.Samples.from_groups(groups, y).prevalences
    got = trained["GroupBLP"].predict_groups(
        X, groups, level=0.95, labels=y, options=oq.inference.IntervalOptions(basis=basis)
    )
    assert_allclose(got.prevalences, truth, atol=1e-6)
    assert_allclose(got.upper - got.lower, 0, atol=1e-5)
    open_ = trained["GroupBLP"].predict_groups(
        X, groups, level=0.95, labels=y, options=oq.inference.IntervalOptions("population", basis=basis)
    )
    assert (open_.upper - open_.lower).mean() > 0.05


@pytest.mark.parametrize("name", ["GroupBLP", "PACC"])
def test_no_labels_at_all_change_nothing(trained, name, rng):
    X, _, groups = make(rng, 3, 50)
    got = trained[name].predict_groups(X, groups, level=0.9, labels=[None] * len(X))
    plain = trained[name].predict_groups(X, groups, level=0.9)
    assert_allclose(got.prevalences, plain.prevalences, rtol=1e-12)
    assert_allclose(got.upper, plain.upper, rtol=1e-12)
    assert got.n_labelled.tolist() == [0, 0, 0]
    assert set(got.basis) == {"model"}
    assert plain.basis is None


WORDS = ["bad", "fair", "good", "great"]


def kinds_of_labels(codes, known):
    """Yield labels with missing values, in all types that users have."""
    words = [WORDS[c] if k else None for c, k in zip(codes, known, strict=True)]
    yield words
    yield np.array(words, dtype=object)
    yield [word if word else float("nan") for word in words]
    yield pd.Series(words)
    yield pd.Series(words, dtype="string")
    yield pd.Categorical(words, categories=WORDS, ordered=True)
    yield pd.Series(pd.Categorical(words, categories=WORDS, ordered=True))
    yield pl.Series(words)
    yield pl.Series(words, dtype=pl.Enum(WORDS))


def test_labels_may_be_of_any_kind(rng):
    X, y, _ = make(rng, 10, 60)
    words = np.array(WORDS)[y - 1]
    quantifier = oq.GroupBLP(CLASSIFIER).fit(X, words, classes=WORDS)
    asked, known = np.repeat([0, 1], 300), rng.random(600) < 0.2
    found = [quantifier.predict_groups(X, asked, labels=given).prevalences for given in kinds_of_labels(y - 1, known)]
    for P in found[1:]:
        assert_array_equal(P, found[0])
    numbers = oq.GroupBLP(CLASSIFIER).fit(X, y)
    expected = numbers.predict_groups(X, asked, labels=np.where(known, y, np.nan)).prevalences
    assert_allclose(expected, found[0], rtol=1e-9)
    for given in (pd.Series(y, dtype="Int64").where(known), pl.Series(np.where(known, y, -1)).replace(-1, None)):
        assert_array_equal(numbers.predict_groups(X, asked, labels=given).prevalences, expected)


def test_labels_enter_the_model_of_groups_of_other_methods_too(trained, rng):
    X, y, groups = make(generator(5), 100, 40)
    quantifier = oq.AdjustedML(CLASSIFIER).fit(X, y, groups=groups)
    new, labels, asked = make(rng, 3, 60)
    labelled = some_labels(rng, labels, asked, 20)
    got, same = (q.predict_groups(new, asked, labels=labelled) for q in (quantifier, trained["GroupBLP"]))
    assert_allclose(got.prevalences, same.prevalences, rtol=1e-9)
    assert_array_equal(got.basis, same.basis)
    without = oq.AdjustedML(CLASSIFIER).fit(X, y).predict_groups(new, asked, labels=labelled)
    assert set(without.basis) == {"labels"}


def test_wrong_labels_are_rejected(trained, rng):
    X, y, groups = make(rng, 2, 30)
    quantifier = trained["GroupBLP"]
    with pytest.raises(ValueError, match=r"labels has labels that are not in classes \[1, 2, 3, 4\]: \[9.0\]"):
        quantifier.predict_groups(X, groups, labels=[9.0, *[np.nan] * 59])
    with pytest.raises(ValueError, match=r"labels must have 60 values, one per item \(None if not labelled\), got 3"):
        quantifier.predict_groups(X, groups, labels=[1, 2, None])
    with pytest.raises(ValueError, match="basis='labels' needs labels of some items"):
        quantifier.predict_groups(X, groups, options=oq.inference.IntervalOptions(basis="labels"))
    with pytest.raises(
        ValueError, match=r"basis='model' needs a method with a model of groups .* such as GroupBLP; with PACC"
    ):
        trained["PACC"].predict_groups(X, groups, labels=y, options=oq.inference.IntervalOptions(basis="model"))
    with pytest.raises(ValueError, match="basis must be one of"):
        oq.inference.IntervalOptions(basis="both")


@pytest.mark.parametrize("name", ["GroupBLP", "PACC", "SLD"])
def test_labels_add_up_in_chunks_and_files(trained, name, rng, tmp_path):
    X, y, groups = make(rng, 4, 60)
    labelled = np.where(rng.random(240) < 0.3, y, np.nan)
    quantifier = trained[name]
    S = quantifier.scores(X)
    order = rng.permutation(240)
    parts = []
    for i, rows in enumerate(np.array_split(order, 3)):
        part = quantifier.summarize(S[rows], oq.Samples.from_groups(groups[rows]), labels=labelled[rows])
        part.save(tmp_path / f"{i}.npz")
        parts.append(oq.samples.Summary.load(tmp_path / f"{i}.npz"))
    merged = oq.samples.Summary.merged(parts)
    whole = quantifier.summarize(S, oq.Samples.from_groups(groups), labels=labelled)
    assert_array_equal(merged.n_labelled, whole.n_labelled)
    for plan in (
        oq.inference.IntervalOptions(n_replicates=20),
        oq.inference.IntervalOptions(n_replicates=20, basis="labels"),
    ):
        one, other = (estimate(quantifier, summary, 0.9, plan) for summary in (merged, whole))
        assert_allclose(one.prevalences, other.prevalences, atol=1e-9)
        assert_array_equal(one.basis, other.basis)
        on_labels = other.basis == "labels"
        assert_allclose(one.lower[on_labels], other.lower[on_labels], atol=1e-9)
    bare = quantifier.summarize(S, oq.Samples.from_groups(groups))
    with pytest.raises(ValueError, match="summaries of different quantifiers"):
        whole.merge(bare)


def test_tables_state_the_basis_of_an_estimate(trained, rng):
    X, y, groups = make(rng, 2, 100)
    labelled = np.where((np.arange(200) % 100 < 30) & (groups == 0), y, np.nan)
    got = trained["PACC"].predict_groups(X, groups, level=0.9, labels=labelled)
    frame = got.frame()
    assert frame["n_labelled"].tolist() == [30, 0]
    assert frame["basis"].tolist() == ["labels", "model"]
    rows = got.to_json()["groups"]
    assert [(row["n_labelled"], row["basis"]) for row in rows] == [(30, "labels"), (0, "model")]
    assert "100 items, 30 labelled: by the labels alone" in str(got)
    assert got[0].basis.tolist() == ["labels"]
    assert (got.shared[0] == 0).all()
    assert (got.shared[1] != 0).any()


# ---- prediction-powered inference ----------------------------------------------------------------------------------


def drawn(seed):
    """Return one-hot labels and scores of labelled items, and scores of 800 others, as for the stored figures."""
    rng = np.random.default_rng(seed)
    m, U, n = (30, 100, 300)[seed], 800, 4
    p = rng.dirichlet(np.full(n, 2.0))
    y = rng.choice(n, m + U, p=p)
    S = rng.dirichlet(np.full(n, 0.5), m + U) + np.eye(n)[y]
    S /= S.sum(axis=1, keepdims=True)
    return np.eye(n)[y[:m]], S[:m], S[m:]


@pytest.fixture(scope="module")
def printed():
    return tomllib.loads((ROOT / "tests/reference/prediction_powered.toml").read_text())["mean"]


@pytest.mark.parametrize("seed", [0, 1, 2])
def test_difference_estimator_is_prediction_powered_inference(seed, printed):
    e, s, t = drawn(seed)
    m, N = len(e), 10**9
    # So many items that it does not matter whether the labelled ones are among them.
    got = design_based(
        LabelMoments(*(x[None] for x in (e.sum(axis=0), e.T @ s, s.T @ s, t.mean(axis=0))), np.array([N])), power=1.0
    )
    assert_allclose(got.raw[0], printed["estimates"][seed], atol=1e-12)
    assert_allclose(got.covariance[0].diagonal(), (e - s).var(axis=0, ddof=1) / m, rtol=1e-6)


@pytest.mark.parametrize("seed", [0, 1, 2])
def test_interval_of_the_benchmark_is_that_of_ppi_python(seed, printed, monkeypatch):
    monkeypatch.syspath_prepend(str(ROOT / "benchmarks"))
    spec = importlib.util.spec_from_file_location("group_labels", ROOT / "benchmarks/group_labels.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    low, high = module.prediction_powered(*drawn(seed))
    assert_allclose(low, printed["lower"][seed], atol=1e-9)
    assert_allclose(high, printed["upper"][seed], atol=1e-9)


def test_power_of_predictions_is_chosen_by_least_squares(rng):
    """No other power gives a smaller total variance, and predictions that say nothing are not used."""
    e, s, t = drawn(1)
    noise = rng.dirichlet(np.ones(4), len(e) + len(t))
    for g, rest in ((s, t), (noise[: len(e)], noise[len(e) :]), ((s + noise[: len(e)]) / 2, t)):
        parts = LabelMoments(
            *(x[None] for x in (e.sum(axis=0), e.T @ g, g.T @ g, rest.mean(axis=0))), np.array([1000.0])
        )
        m = len(e)
        size = {power: np.trace(design_based(parts, power=power).covariance[0]) for power in np.linspace(0, 1, 101)}
        tuned = np.trace(design_based(parts).covariance[0]) * (m - 2) / (m - 1)
        assert tuned <= min(size.values()) * (1 + 1e-9)
        assert tuned >= min(size.values()) * (1 - 1e-3)


def test_equal_inclusion_probabilities_are_a_random_draw(trained, rng):
    X, y, groups = make(rng, 5, 100)
    labelled = some_labels(rng, y, groups, 25)
    options = oq.inference.IntervalOptions(basis="labels")
    for quantifier in (trained["PACC"], trained["GroupBLP"]):
        plain = quantifier.predict_groups(X, groups, level=0.9, labels=labelled, options=options)
        given = np.where(np.isnan(labelled), np.nan, 0.25)
        got = quantifier.predict_groups(X, groups, level=0.9, labels=labelled, label_inclusion=given)
        assert set(got.basis) == {"labels"}
        assert "with the given probabilities" in got.provenance.labels
        assert "drawn at random" in plain.provenance.labels
        assert_allclose(got.prevalences, plain.prevalences, atol=1e-9)
        assert_allclose(got.covariance, plain.covariance, atol=1e-12)
        assert_allclose(got.bounds.mean_upper, plain.bounds.mean_upper, atol=1e-9)


def uncertain_first(rng, quantifier, X, groups, m):
    """Return the probabilities of items of equal groups to be labelled, 20% uniform, and which of them are drawn."""
    S = quantifier.scores(X)
    u = np.sqrt(1 - (S**2).sum(axis=1))
    N = np.bincount(groups)[groups]
    pi = np.minimum(1, m * (0.2 / N + 0.8 * u / np.bincount(groups, u)[groups]))
    return pi, rng.random(len(X)) < pi


def test_labels_drawn_by_uncertainty_hold_with_their_probabilities(trained, rng):
    X, y, groups = make(rng, 200, 150)
    truth = oq.Samples.from_groups(groups, y).prevalences
    quantifier = trained["PACC"]
    pi, known = uncertain_first(rng, quantifier, X, groups, 30)
    labelled = np.where(known, y, np.nan)
    options = oq.inference.IntervalOptions(n_replicates=20)
    given = quantifier.predict_groups(X, groups, level=0.95, labels=labelled, label_inclusion=pi, options=options)
    classes, mean = covered(given, truth)
    # 200 groups: four and a half standard errors of a part of 0.95 are 0.069.
    assert classes > 0.91
    assert mean > 0.87
    random = quantifier.predict_groups(X, groups, level=0.95, labels=some_labels(rng, y, groups, 30), options=options)
    assert (given.upper - given.lower).mean() < 1.1 * (random.upper - random.lower).mean()
    # Estimates are unbiased, unlike those that take such labels for a random draw.
    spread = np.sqrt(given.covariance[:, range(N_CLASSES), range(N_CLASSES)].mean(axis=0) / 200)
    assert (np.abs((given.prevalences - truth).mean(axis=0)) < 5 * spread).all()


def test_groups_with_few_labels_drawn_unequally_stay_with_the_method(trained, rng):
    """The model of groups cannot use labels that are not a random draw."""
    X, y, groups = make(rng, 3, 100)
    labelled = some_labels(rng, y, groups, 5)
    quantifier, population = trained["GroupBLP"], oq.inference.IntervalOptions("population")
    got = quantifier.predict_groups(X, groups, labels=labelled, label_inclusion=np.full(300, 0.05), options=population)
    assert set(got.basis) == {"model"}
    assert_allclose(got.prevalences, quantifier.predict_groups(X, groups, options=population).prevalences)


def test_inclusion_probabilities_add_up_in_chunks(trained, rng):
    X, y, groups = make(rng, 4, 60)
    quantifier = trained["PACC"]
    S, pi = quantifier.scores(X), rng.uniform(0.2, 0.9, 240)
    labelled = np.where(rng.random(240) < pi, y, np.nan)
    parts = [
        quantifier.summarize(
            S[rows], oq.Samples.from_groups(groups[rows]), labels=labelled[rows], label_inclusion=pi[rows]
        )
        for rows in np.array_split(rng.permutation(240), 3)
    ]
    whole = quantifier.summarize(S, oq.Samples.from_groups(groups), labels=labelled, label_inclusion=pi)
    merged = oq.samples.Summary.merged(parts)
    one, other = (estimate(quantifier, summary, 0.9) for summary in (merged, whole))
    assert set(one.basis) == {"labels"}
    assert_allclose(one.prevalences, other.prevalences, atol=1e-9)
    assert_allclose(one.upper, other.upper, atol=1e-9)


def test_wrong_inclusion_probabilities_are_rejected(trained, rng):
    X, y, groups = make(rng, 2, 30)
    quantifier, half = trained["GroupBLP"], np.full(60, 0.5)
    with pytest.raises(
        ValueError, match=r"label_inclusion must be in \[1e-09, 1\] for every labelled item, got 0 for item 1"
    ):
        quantifier.predict_groups(X, groups, labels=y, label_inclusion=[0.5, 0, *half[2:]])
    with pytest.raises(ValueError, match="got 1e-200 for item 1"):
        quantifier.predict_groups(X, groups, labels=y, label_inclusion=[0.5, 1e-200, *half[2:]])
    with pytest.raises(ValueError, match=r"one probability per item, 60, got shape \(3,\)"):
        quantifier.predict_groups(X, groups, labels=y, label_inclusion=half[:3])
    with pytest.raises(ValueError, match="label_inclusion needs labels"):
        quantifier.predict_groups(X, groups, label_inclusion=half)
    options = oq.inference.IntervalOptions(basis="model")
    with pytest.raises(ValueError, match="basis must be 'labels' with label_inclusion"):
        quantifier.predict_groups(X, groups, labels=y, label_inclusion=half, options=options)
    with pytest.raises(ValueError, match="label_inclusion must be None with sample_weight"):
        quantifier.predict_groups(X, groups, labels=y, label_inclusion=half, sample_weight=half)


def test_probabilities_that_do_not_add_up_to_the_items_are_warned_of(trained, rng):
    X, y, groups = make(rng, 3, 44)
    labelled, quantifier = some_labels(rng, y, groups, 15), trained["PACC"]
    chance = np.full(len(y), 15 / 44)
    quantifier.predict_groups(X, groups, labels=labelled, label_inclusion=chance)
    chance[groups == groups[0]] = 1
    with pytest.warns(oq.inference.LabelSelectionWarning, match="of 1 of 3 samples do not agree.* for 15 items, .* 44"):
        quantifier.predict_groups(X, groups, labels=labelled, label_inclusion=chance)


def test_probabilities_of_the_actual_draw_are_not_warned_of(trained, rng):
    X, y, groups = make(rng, 100, 60)
    chance = rng.choice([0.2, 0.5, 1.0], len(y))
    labelled = np.where(rng.random(len(y)) < chance, y, np.nan)
    got = trained["PACC"].predict_groups(X, groups, labels=labelled, label_inclusion=chance)
    assert (got.basis == "labels").sum() > 50


def test_class_predictions_sum_to_one(trained, rng):
    X, _, _ = make(rng, 2, 30)
    quantifier = trained["PACC"]
    g = class_predictions(quantifier, quantifier.scores(X))
    assert g.shape == (60, N_CLASSES)
    assert_allclose(g.sum(axis=1), 1)


@pytest.mark.parametrize("estimand", ["sample", "population"])
def test_labels_alone_never_rule_out_a_class_without_labels(trained, estimand, rng):
    X, y, groups = make(rng, 150, 60, concentration=0.3)
    labelled = some_labels(rng, y, groups, 15)
    options = oq.inference.IntervalOptions(basis="labels", estimand=estimand)
    got = trained["PACC"].predict_groups(X, groups, level=0.95, labels=labelled, options=options)
    known = ~np.isnan(labelled)
    seen = np.zeros((150, N_CLASSES))
    np.add.at(seen, (groups[known], labelled[known].astype(int) - 1), 1)
    assert (seen == 0).any()
    assert (got.lower[seen == 0] == 0).all()
    below = np.cumsum(seen, axis=1)[:, :-1]
    assert (got.bounds.cumulative_lower[:, :-1][below == 0] == 0).all()
    if estimand == "population":
        # Of a sample, the labelled items count: the others are at most all of the class.
        assert (got.upper[seen == 15] >= 1).all()
        assert (got.bounds.cumulative_upper[:, :-1][below == 15] >= 1).all()


def limits(codes, groups, known, weights):
    """Return the smallest and largest possible prevalence of each class in each group, and of the mean of 1..n."""
    G = groups.max() + 1
    total = np.bincount(groups, weights)
    least = np.zeros((G, N_CLASSES))
    np.add.at(least, (groups[known], codes[known]), weights[known])
    least /= total[:, None]
    rest = 1 - least.sum(axis=1)
    mean = least @ np.arange(1, N_CLASSES + 1)
    return least, least + rest[:, None], mean + rest, mean + N_CLASSES * rest


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("basis", ["auto", "labels"])
@pytest.mark.parametrize("name", ["GroupBLP", "PACC", "SLD"])
def test_estimates_and_bounds_are_possible_given_the_labelled_items(trained, name, basis, weighted, rng):
    X, y, groups = make(rng, 60, 13, concentration=0.5)
    known = rng.random(len(y)) < rng.choice([0.2, 0.5, 0.8, 1.0], 60)[groups]
    labelled = np.where(known, y, np.nan)
    w = rng.gamma(2.0, size=len(y)) if weighted else np.ones(len(y))
    how = {"sample_weight": w} if weighted else {}
    options = oq.inference.IntervalOptions(basis=basis)
    got = trained[name].predict_groups(X, groups, level=0.95, labels=labelled, options=options, **how)
    low, high, mean_low, mean_high = limits(y - 1, groups, known, w)
    for P in (got.prevalences, got.lower, got.upper):
        assert (low - 1e-9 <= P).all()
        assert (high + 1e-9 >= P).all()
    for mean in (got.mean, got.bounds.mean_lower, got.bounds.mean_upper):
        assert ((mean_low - 1e-9 <= mean) & (mean <= mean_high + 1e-9)).all()
    assert ((got.lower <= got.prevalences + 1e-12) & (got.prevalences <= got.upper + 1e-12)).all()
    without = trained[name].predict_groups(X, groups, labels=labelled, options=options, **how)
    assert_allclose(without.prevalences, got.prevalences, atol=1e-12)


def test_labels_of_groups_like_the_training_groups_keep_the_model(trained, rng):
    X, y, groups = make(rng, 60, 60)
    got = trained["GroupBLP"].predict_groups(X, groups, level=0.95, labels=some_labels(rng, y, groups, 12))
    assert (got.basis == "model").mean() > 0.8
