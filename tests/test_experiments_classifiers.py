"""The comparison of ordinal classifiers: its own ACC, PACC and SLD, against loops over the samples."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse
from seeds import generator
from sklearn.base import BaseEstimator, ClassifierMixin
from small_experiment import write_experiment

import ordinalq as oq
from ordinalq.classifiers.cross_fitting import CrossFitted
from ordinalq.classifiers.registry import make_classifier
from ordinalq.datasets import Sampling
from ordinalq.datasets.published import ordinal_classifiers
from ordinalq.paper.experiments.classifiers import (
    Predictions,
    Scored,
    classifier_units,
    estimate,
    fit_scores,
    hold_out,
    invert,
    sld_until_stable,
)
from ordinalq.paper.experiments.config import CLASSIFIERS, METHODS, QUANTIFIERS, classifier_grid, load_config
from ordinalq.paper.experiments.runner import select
from ordinalq.paper.experiments.units import prepare
from ordinalq.samples.samples import Samples

CONFIG = """
kind = "classifiers"
measures = ["nmd"]
seed = 5

[dataset]
table = "items.csv"
target = "stars"

[samples]
n_validation = 20
n_test = 30
sample_size = 60

[grid]
LR = { C = [0.00001, 1.0] }
OLR-AT = { alpha = [1.0] }
OLR-IT = { alpha = [1.0], class_weight = ["balanced"] }
ORidge = { alpha = [1.0], normalize = [false, true] }
LAD = { C = [0.01, 0.02] }
"""


def dataset(n_items=600, n=4, to_X=np.asarray):
    rng = generator(1)
    y = rng.integers(0, n, n_items)
    X = np.column_stack([y + rng.normal(size=n_items), rng.normal(size=n_items)])
    frame = pd.DataFrame({"a": X[:, 0], "b": X[:, 1], "stars": y + 1})
    made = oq.datasets.make_dataset(frame, "stars", sampling=Sampling(n_validation=15, n_test=12, sample_size=50))
    parts = {
        part: getattr(made, part)._replace(X=to_X(getattr(made, part).X)) for part in ("train", "validation", "test")
    }
    return replace(made, **parts)


@pytest.fixture(scope="module")
def data():
    return dataset()


def scores_of(data, name, parameters=None, quantifiers=QUANTIFIERS):
    split = hold_out(data.train.y, 0)
    return fit_scores(make_classifier(name, parameters or {}), data, split, quantifiers=quantifiers)


# Which classifiers there are


def test_the_grids_have_the_84_configurations_of_the_paper():
    sizes = {name: int(np.prod([len(values) for values in classifier_grid(name).values()])) for name in CLASSIFIERS}
    assert sizes == {"LR": 14, "OLR-AT": 14, "OLR-IT": 14, "ORidge": 28, "LAD": 14}
    units = list(classifier_units(load_config("ordinal-classifiers")))
    assert len(units) == 84
    assert len({str(unit.classifier) for unit in units}) == 84


def test_methods_are_the_cells_of_the_printed_table():
    printed = [
        f"{row}-{column}" for row, cells in ordinal_classifiers().items() for column in cells if column in QUANTIFIERS
    ]
    assert sorted(printed) == sorted(METHODS)


@pytest.mark.parametrize("name", CLASSIFIERS)
def test_every_parameter_of_the_grid_is_set(name):
    parameters = {key: values[-1] for key, values in classifier_grid(name).items()}
    model = make_classifier(name, parameters, random_state=3)
    assert {key: model.get_params()[key] for key in parameters} == parameters
    assert make_classifier(name, {"class_weight": "none"}).class_weight is None
    assert "random_state" not in model.get_params() or name == "LR" or model.random_state == 3


def test_an_unknown_classifier_is_rejected():
    with pytest.raises(ValueError, match=r"name must be one of .*'LR', .*, got 'OLR'"):
        make_classifier("OLR", {})


def test_config_names_methods_and_classifiers_of_this_experiment(tmp_path):
    path = write_experiment(tmp_path, CONFIG.replace("LAD =", "LADD ="))
    with pytest.raises(ValueError, match=r"LADD is unknown: \[grid\] must have names of classifiers as keys.*'LAD'"):
        load_config(path)
    path = write_experiment(tmp_path, 'methods = ["PACC"]' + CONFIG)
    with pytest.raises(ValueError, match=r"methods must be among LR-CC, .*got 'PACC'"):
        load_config(path)


def test_only_the_chosen_methods_and_their_classifiers_are_run(tmp_path):
    path = write_experiment(tmp_path, 'methods = ["OLR-AT-PACC", "LR-CC"]' + CONFIG)
    units = list(classifier_units(load_config(path)))
    assert [[trial.method for trial in unit.trials] for unit in units] == [["LR-CC"], ["LR-CC"], ["OLR-AT-PACC"]]


def test_an_unknown_parameter_is_rejected_before_the_work(tmp_path):
    config = load_config(write_experiment(tmp_path, CONFIG.replace("LR = { C", "LR = { c")))
    with pytest.raises(TypeError, match="'c'"):
        list(classifier_units(config))


# The split


def test_hold_out_takes_two_fifths_of_each_class_and_no_item_twice():
    y = np.repeat([0, 1, 2], [100, 50, 10])
    training, held_out = hold_out(y, 4)
    assert_array_equal(np.bincount(y[held_out]), [40, 20, 4])
    assert_array_equal(np.sort(np.concatenate([training, held_out])), np.arange(160))
    assert_array_equal(hold_out(y, 4)[1], held_out)
    assert not np.array_equal(hold_out(y, 5)[1], held_out)


def test_hold_out_leaves_each_class_in_both_parts():
    y = np.array([0, 0, 0, 0, 1, 1, 2, 2, 2])
    assert all(set(y[part]) == {0, 1, 2} for part in hold_out(y, 0))
    with pytest.raises(ValueError, match="at least 2 training items, one of them held out, but class 1 has 1"):
        hold_out(np.array([0, 0, 1, 2, 2]), 0)


# The quantifiers


def naive_inverse(q, M):
    """The reference's steps for one sample."""
    try:
        p = np.linalg.solve(M, q)
    except np.linalg.LinAlgError:
        return q
    p = np.clip(p, 0, 1)
    return p / p.sum()


def test_inversion_equals_a_loop_that_solves_clips_and_normalizes(rng):
    M = 0.6 * np.eye(5) + 0.4 * rng.dirichlet(np.ones(5), 5).T
    Q = rng.dirichlet(np.full(5, 0.3), 200)
    P = invert(Q, M)
    assert_allclose(P, [naive_inverse(q, M) for q in Q], atol=1e-12)
    assert (np.linalg.solve(M, Q.T).min(axis=0) < 0).mean() > 0.5  # so that clipping matters


def test_inversion_recovers_the_mixed_prevalences(rng):
    M = 0.6 * np.eye(5) + 0.4 * rng.dirichlet(np.ones(5), 5).T
    P = rng.dirichlet(np.ones(5), 50)
    assert_allclose(invert(P @ M.T, M), P, atol=1e-12)


def test_a_singular_matrix_returns_q(rng):
    M = rng.dirichlet(np.ones(4), 4).T
    M[2] = 0  # no votes for the third class
    Q = rng.dirichlet(np.ones(4), 10)
    assert_array_equal(invert(Q, M), Q)
    assert_array_equal([naive_inverse(q, M) for q in Q], Q)


def naive_sld(S, p_train):
    """The reference's SLD for one sample; also the number of iterations."""
    p = p_train
    for k in range(1, 1001):
        E = S * p / p_train
        new = (E / E.sum(axis=1, keepdims=True)).mean(axis=0)
        change = np.abs(new - p).mean()
        p = new
        if k >= 12 and change < 1e-4:
            break
    return p, k, change < 1e-4


def test_sld_stops_each_sample_at_its_own_iteration(rng):
    p_train = np.array([0.1, 0.2, 0.3, 0.4])
    S = rng.dirichlet(np.full(4, 0.5), 300)
    # Samples of different sizes and shifts: some are stable at once, others take hundreds of iterations.
    peaks = [rng.choice(300, 40, p=S[:, i] / S[:, i].sum()) for i in range(4)]
    index = [*peaks, np.arange(300), rng.choice(300, 7), *(rng.choice(300, 80) for _ in range(30))]
    P, converged = sld_until_stable(S, Samples.from_index(index, 300), p_train)
    naive = [naive_sld(S[items], p_train) for items in index]
    assert_allclose(P, [p for p, _, _ in naive], atol=1e-12)
    assert converged.all()
    iterations = {k for _, k, _ in naive}
    assert min(iterations) < 20
    assert len(iterations) > 10


def test_sld_makes_twelve_iterations_even_if_nothing_changes():
    # Every item is certain: p is right after one iteration. One that is not certain moves slowly.
    S = np.array([[1.0, 0, 0], [0, 1.0, 0], [0, 0, 1.0], [0.5001, 0.4999, 0]])
    p_train = np.full(3, 1 / 3)
    index = [[3, 3], [0, 1]]
    P, converged = sld_until_stable(S, Samples.from_index(index, 4), p_train)
    assert naive_sld(S[[3, 3]], p_train)[1] == 12
    assert_allclose(P, [naive_sld(S[items], p_train)[0] for items in index], atol=1e-14)
    after_two = (S[3] ** 2) / (S[3] ** 2).sum()
    assert abs(P[0] - after_two)[0] > 1e-4
    assert converged.all()


def test_sld_flags_samples_that_still_move_after_the_last_iteration(monkeypatch):
    monkeypatch.setattr("ordinalq.paper.experiments.classifiers.SLD_MAX_ITER", 15)
    # The first item prefers its class by little, and p runs to that class in small steps.
    S = np.array([[0.52, 0.48, 0.0], [0.0, 0.0, 1.0]])
    P, converged = sld_until_stable(S, Samples.from_index([[0, 0], [1, 1]], 2), np.full(3, 1 / 3))
    assert_array_equal(converged, [False, True])
    ratio = (0.52 / 0.48) ** 15
    assert_allclose(P, [[ratio / (1 + ratio), 1 / (1 + ratio), 0], [0, 0, 1]])


@pytest.mark.parametrize("quantifier", QUANTIFIERS)
@pytest.mark.parametrize("name", ["LR", "OLR-AT"])
def test_estimates_equal_a_loop_over_the_samples(data, name, quantifier):
    X, y = data.train
    n = len(data.classes)
    training, held_out = hold_out(y, 0)
    chosen = training if quantifier in ("ACC", "PACC") else np.arange(len(y))
    model = make_classifier(name, {}).fit(X[chosen], y[chosen])

    def f(items):
        return np.eye(n)[model.predict(items)] if quantifier in ("CC", "ACC") else model.predict_proba(items)

    samples = data.samples("APP", "test")
    expected = []
    for b in range(len(samples)):
        items = data.test.X[samples.index(b)]
        p = f(items).mean(axis=0)
        if quantifier in ("ACC", "PACC"):
            M = np.column_stack([f(X[held_out][y[held_out] == c]).mean(axis=0) for c in range(n)])
            p = naive_inverse(p, M)
        if quantifier == "SLD":
            p = naive_sld(f(items), np.bincount(y) / len(y))[0]
        expected.append(p)
    P, converged = estimate(quantifier, scores_of(data, name), "test", samples)
    assert_allclose(P, expected, atol=1e-10)
    assert converged.all()


def test_votes_are_the_decisions_of_the_classifier_not_the_largest_posterior():
    said = Predictions(np.array([1, 0, 2]), np.array([[0.4, 0.25, 0.35], [0.9, 0.1, 0.0], [0.0, 0.1, 0.9]]))
    scored = Scored({"test": said}, {}, said, np.arange(3), np.full(3, 1 / 3))
    P, _ = estimate("CC", scored, "test", Samples.whole(3))
    assert_allclose(P, [[1 / 3, 1 / 3, 1 / 3]])


@pytest.mark.filterwarnings("ignore:Liblinear failed to converge")  # as LAD does on some data, and says
@pytest.mark.parametrize("name", ["ORidge", "LAD"])
@pytest.mark.parametrize("quantifier", ["PCC", "PACC", "SLD"])
def test_classifiers_without_posteriors_serve_only_counting(data, name, quantifier):
    assert {method for method in METHODS if method.startswith(name)} == {f"{name}-CC", f"{name}-ACC"}
    scored = scores_of(data, name)
    with pytest.raises(TypeError, match=f"{quantifier} needs posteriors, .* use CC or ACC"):
        estimate(quantifier, scored, "test", data.samples("APP", "test"))


@pytest.mark.filterwarnings("ignore:Liblinear failed to converge")
@pytest.mark.parametrize("name", CLASSIFIERS)
def test_sparse_items_give_the_estimates_of_dense_ones(data, name):
    other = dataset(to_X=sparse.csr_array)
    samples = data.samples("APP", "test")
    for quantifier in ("CC", "ACC"):
        dense, thin = (estimate(quantifier, scores_of(one, name), "test", samples)[0] for one in (data, other))
        # Solvers that take another path for sparse items may decide a few items on the border otherwise.
        assert np.abs(dense - thin).mean() < 0.01


FITS = []


class Spy(ClassifierMixin, BaseEstimator):
    """Votes for the lowest class, and remembers how many items it was fitted on."""

    def fit(self, X, y):
        FITS.append(len(y))
        self.classes_ = np.unique(y)
        return self

    def predict(self, X):
        return np.zeros(len(X), dtype=int)


@pytest.mark.parametrize(("quantifiers", "parts"), [(["CC"], [300]), (["ACC"], [180]), (["CC", "ACC"], [300, 180])])
def test_a_classifier_is_fitted_only_on_the_parts_that_are_needed(data, quantifiers, parts):
    FITS.clear()
    fit_scores(Spy(), data, hold_out(data.train.y, 0), quantifiers=quantifiers)
    assert_allclose(FITS, parts, atol=2)  # classes are split one by one


# The whole experiment


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    """Material, units, their scores and the validation table of a small experiment."""
    config = load_config(write_experiment(tmp_path_factory.mktemp("classifiers"), CONFIG))
    material, units = prepare(config), list(classifier_units(config))
    parts = [unit.validate(material, None) for unit in units]
    return material, units, parts, pd.concat([part["validation"] for part in parts], ignore_index=True)


def test_every_configuration_is_judged_by_its_mean_error(run):
    material, units, parts, validation = run
    assert set(validation["method"]) == set(METHODS)
    assert (validation["message"] == "").all()
    index = material.validation.rows["APP"]
    for unit, part in zip(units, parts, strict=True):
        found = unit.estimate(material, part["scores"], "validation")
        means = [oq.metrics.nmd(material.validation.truth[index], one.P[index]).mean() for one in found]
        rows = part["validation"]
        assert_allclose(rows.loc[rows["protocol"] == "APP", "error"], means)


def test_the_smallest_mean_is_selected_and_of_equal_ones_the_first(run):
    *_, validation = run
    chosen = select(validation).set_index(["method", "protocol"])
    assert '"C": 1.0' in chosen.loc[("LR-PCC", "APP"), "classifier"]  # 0.00001 shrinks posteriors to the mean
    tied = validation.assign(error=0.1)
    assert '"C": 0.01' in select(tied).set_index(["method", "protocol"]).loc[("LAD-CC", "APP"), "classifier"]


@pytest.mark.parametrize("quantifier", QUANTIFIERS)
def test_test_estimates_come_from_the_classifiers_of_the_validation(run, quantifier, monkeypatch):
    material, units, parts, _ = run
    unit, scores = units[1], parts[1]["scores"]
    P, _ = estimate(quantifier, scores_of_unit(material, unit), "test", material.test.samples)
    monkeypatch.setattr("ordinalq.paper.experiments.classifiers.fit_scores", None)  # none is fitted again
    chosen = tuple(trial for trial in unit.trials if trial.method == f"LR-{quantifier}")
    found = replace(unit, trials=chosen).test(material, scores)["estimates"]
    assert set(found["method"]) == {f"LR-{quantifier}"}
    assert_array_equal(found["sample"], np.arange(len(material.test.samples)))
    assert_allclose(found[["p_1", "p_2", "p_3", "p_4"]], P, atol=1e-14)


def scores_of_unit(material, unit):
    given = {name: value for name, value in unit.classifier.items() if name != "name"}
    classifier = make_classifier(unit.classifier["name"], given, random_state=unit.setup.seed)
    return fit_scores(classifier, material.dataset, hold_out(material.dataset.train.y, unit.setup.seed))


def test_a_configuration_that_fails_is_reported_and_never_selected(run):
    material, units, *_ = run
    broken = replace(units[1], classifier={"name": "LR", "C": -1.0})
    parts = broken.validate(material, None)
    assert np.isinf(parts["validation"]["error"]).all()
    assert parts["validation"]["message"].str.contains("InvalidParameterError").all()
    good = units[1].validate(material, None)["validation"]
    both = pd.concat([parts["validation"], good], ignore_index=True)
    assert (select(both)["message"] == "").all()
    assert len(broken.test(material, parts["scores"])["estimates"]) == 0


def test_units_that_differ_in_anything_have_different_parts(run):
    _, units, *_ = run
    descriptions = [str(unit.describe("scores")) for unit in units]
    assert len(set(descriptions)) == len(units)
    fewer = replace(units[0], trials=units[0].trials[:1])
    assert fewer.describe("scores") != units[0].describe("scores")


# Settings "paper": the quantifiers of the paper's own sections


def test_settings_of_the_paper_take_its_own_quantifiers_on_cross_fitted_scores(tmp_path):
    config = load_config(write_experiment(tmp_path, CONFIG), settings="paper")
    material, units = prepare(config), list(classifier_units(config))
    unit = next(unit for unit in units if unit.classifier["name"] == "OLR-AT")
    scores = unit.validate(material, None)["scores"]
    found = unit.estimate(material, scores, "test")
    X, y = material.dataset.train
    classifier = CrossFitted(unit.make_classifier().estimator, random_state=unit.setup.seed)
    until = {"SLD": {"max_iter": 10_000, "tol": 1e-6}}
    for trial, attempt in zip(unit.trials, found, strict=True):
        name = trial.method.rpartition("-")[2]
        quantifier = getattr(oq, name)(classifier, **until.get(name, {})).fit(X, y)
        P = quantifier.predict_samples(material.dataset.test.X, material.test.samples)
        assert_allclose(attempt.P, P, atol=1e-9)


def test_classifiers_that_only_vote_are_cross_fitted_too(tmp_path):
    config = load_config(write_experiment(tmp_path, CONFIG), settings="paper")
    material = prepare(config)
    unit = next(unit for unit in classifier_units(config) if unit.classifier["name"] == "LAD")
    validation = unit.validate(material, None)["validation"]
    assert (validation["message"] == "").all()
    assert set(validation["method"]) == {"LAD-CC", "LAD-ACC"}
