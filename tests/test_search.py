"""SampleSearch: the same answers as a naive loop, with every classifier fitted once."""

import pickle

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse
from seeds import generator
from sklearn.base import clone
from sklearn.ensemble import RandomForestClassifier
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LogisticRegression
from sklearn.naive_bayes import GaussianNB
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import LinearSVC
from sklearn.tree import DecisionTreeClassifier

import ordinalq as oq
from ordinalq.datasets import Sampling
from ordinalq.losses import Energy, LeastSquares
from ordinalq.model_selection.engine import estimate_all
from ordinalq.model_selection.search import SampleSearch, configurations_of, configure
from ordinalq.quantifiers.linear import LinearQuantifier, Parts
from ordinalq.regularizers import Tikhonov
from ordinalq.representations import HardVotes, MeanDistances, Partition, Posteriors

METHODS = {entry.name: entry for entry in oq.catalog(beyond=False)}
FITS = []


class Spy(GaussianNB):
    """Tells in FITS with which parameters it was fitted."""

    def fit(self, X, y):
        FITS.append(self.var_smoothing)
        if self.var_smoothing == 0.5:
            raise RuntimeError("one half is not smooth")
        return super().fit(X, y)


def items(rng, n_items, n=5):
    y = rng.permutation(np.resize(np.arange(n), n_items))
    return np.column_stack([y + 0.8 * rng.normal(size=n_items), rng.normal(size=n_items) - y / 3]), y


class Problem:
    """Training items, a pool, and samples of two protocols of it."""

    def __init__(self, labels=(1, 2, 3, 4, 5)):
        rng = generator(3)
        labels = np.asarray(labels)
        self.X, codes = items(rng, 250)
        self.X_pool, pool_codes = items(rng, 200)
        self.y, self.y_pool = labels[codes], labels[pool_codes]
        classes = labels if labels.dtype.kind == "U" else None
        drawn = {"small_pool": "repeat", "random_state": 5}
        self.app = oq.protocols.APP(8, 40, **drawn).draw(self.y_pool, classes=classes)
        self.app_oq = oq.protocols.APPOQ(0.2, 40, 40, **drawn).draw(self.y_pool, classes=classes)
        self.both = {"APP": self.app, "APP-OQ": self.app_oq}

    def search(self, quantifier, grid, samples=None, **options):
        samples = self.app if samples is None else samples
        return SampleSearch(quantifier, grid, samples=samples, **options).fit(self.X, self.y, self.X_pool)


@pytest.fixture(scope="module")
def problem():
    return Problem()


@pytest.fixture(autouse=True)
def no_fits_yet():
    FITS.clear()


def naive(quantifier, grid, problem, samples, measures):
    """Fit every configuration from scratch; mean and std of each row of the table, in order."""
    rows = []
    for configuration in configurations_of(grid):
        fitted = clone(quantifier).set_params(**clone(configuration, safe=False)).fit(problem.X, problem.y)
        for part in samples.values():
            P = fitted.predict_samples(problem.X_pool, part)
            for measure in measures:
                found = getattr(oq.metrics, measure)(part.prevalences, P)
                rows.append((found.mean(), found.std(ddof=1)))
    return np.array(rows)


CROSSED = oq.classifiers.CrossFitted(GaussianNB(), cv=3)
SMOOTHING = "classifier__estimator__var_smoothing"


# the truth


# Hellinger distances of few bins and items may have a kink at the optimum.
@pytest.mark.filterwarnings("ignore:.* did not converge")
@pytest.mark.parametrize("name", METHODS)
def test_results_equal_a_naive_loop(name, problem):
    entry = METHODS[name]
    quantifier = entry.cls() if name in ("HDx", "OHDx") else entry.cls(CROSSED)
    grid = {parameter: values[-2:] for parameter, values in entry.grid(5).items()}
    if name not in ("HDx", "OHDx"):
        grid[SMOOTHING] = [1e-9, 0.1]
    search = problem.search(quantifier, grid, problem.both, measure=["nmd", "rnod"])
    expected = naive(quantifier, grid, problem, problem.both, ["nmd", "rnod"])
    assert_allclose(search.results_[["error", "std"]], expected, rtol=1e-7)
    assert (search.results_["message"] == "").all()
    for j, column in enumerate((p, m) for p in problem.both for m in ("nmd", "rnod")):
        best = list(configurations_of(grid))[np.argmin(expected[j::4, 0])]
        assert search.best(*column) == best
        scratch = clone(quantifier).set_params(**best).fit(problem.X, problem.y)
        kept = search.best_quantifier(*column)
        assert {name: kept.get_params()[name] for name in best} == best
        assert_allclose(
            kept.predict_samples(problem.X_pool, problem.app),
            scratch.predict_samples(problem.X_pool, problem.app),
            atol=1e-9,
        )
        assert_allclose(kept.predict(problem.X_pool[:50]), scratch.predict(problem.X_pool[:50]), atol=1e-9)
        assert kept.n_features_in_ == 2


def test_out_of_bag_forests_are_searched_too(problem):
    forest = RandomForestClassifier(30, oob_score=True, random_state=1)
    grid = {"classifier__max_depth": [2, 5], "tau": [1e-5, 1e-1]}
    search = problem.search(oq.OPACC(forest), grid, problem.both)
    expected = naive(oq.OPACC(forest), grid, problem, problem.both, ["nmd"])
    assert_allclose(search.results_["error"], expected[:, 0], rtol=1e-9)


@pytest.mark.parametrize(
    ("quantifier", "grid"),
    [
        (
            oq.ComposedQuantifier(Posteriors(), LeastSquares(), Tikhonov(0.1), classifier=CROSSED),
            {"regularizer__tau": [1e-3, 1.0], "regularizer__order": [0, 1], SMOOTHING: [1e-9, 0.1]},
        ),
        (
            oq.ComposedQuantifier(Posteriors(), LeastSquares(), classifier=CROSSED),
            {"representation": [HardVotes(), Partition(8), Posteriors()], "loss": [LeastSquares("poisson")]},
        ),
        (
            oq.ComposedQuantifier(MeanDistances("euclidean", on="features"), Energy(), Tikhonov(1.0)),
            {"regularizer__tau": [1e-3, 1.0]},
        ),
        (oq.PACC(CROSSED), {"classifier": [GaussianNB(), DecisionTreeClassifier(max_depth=3, random_state=0)]}),
        (
            oq.PACC(),
            [
                {
                    "classifier": [oq.classifiers.CrossFitted(LogisticRegression(), cv=3)],
                    "classifier__estimator__C": [0.01, 1],
                },
                {"classifier": [GaussianNB()], "classifier__var_smoothing": [0.1]},
            ],
        ),
    ],
    ids=["nested", "representations", "features", "classifiers", "list"],
)
def test_parts_and_nested_parameters_equal_a_naive_loop(quantifier, grid, problem):
    search = problem.search(quantifier, grid, problem.both)
    assert_allclose(
        search.results_[["error", "std"]], naive(quantifier, grid, problem, problem.both, ["nmd"]), rtol=1e-7
    )


def test_quantifier_grid_and_its_objects_are_left_alone(problem):
    quantifier, given = oq.OPACC(CROSSED), oq.classifiers.CrossFitted(GaussianNB(), cv=2)
    grid = {"classifier": [given], SMOOTHING: [0.1, 0.2], "tau": [1.0]}
    problem.search(quantifier, grid)
    assert given.estimator.var_smoothing == 1e-9
    assert not hasattr(given, "classes_")
    assert not hasattr(quantifier, "classes_")
    assert quantifier.tau == 1e-4


# each thing once


def test_each_classifier_configuration_is_fitted_once(problem):
    grid = {"tau": [1e-3, 1e-1, 10.0], "order": [0, 1], "classifier__estimator__var_smoothing": [1e-9, 0.1]}
    search = problem.search(oq.OPACC(oq.classifiers.InSample(Spy())), grid, problem.both, measure=["nmd", "rnod"])
    assert sorted(FITS) == [1e-9, 0.1]
    assert len(search.results_) == 12 * 2 * 2
    search.best_quantifier("APP", "nmd").predict(problem.X)
    assert len(FITS) == 2


def test_dicts_of_a_grid_share_classifiers_that_are_equal(problem):
    grid = [
        {"classifier": [oq.classifiers.InSample(Spy())], "tau": [0.1]},
        {"classifier": [oq.classifiers.InSample(Spy()), oq.classifiers.InSample(Spy(var_smoothing=0.1))], "order": [0]},
        {"tau": [10.0]},
    ]
    problem.search(oq.OPACC(oq.classifiers.InSample(Spy())), grid)
    # The last dict names no classifier: that it is the same one is not looked for.
    assert sorted(FITS) == [1e-9, 1e-9, 0.1]


@pytest.mark.parametrize(("make", "n_fits"), [(np.array, 1), (list, 1), (tuple, 1), (pd.Series, 2)])
def test_equal_values_are_one_configuration_if_they_can_be_compared(make, n_fits, problem):
    priors = [0.1, 0.2, 0.4, 0.2, 0.1]
    grid = [{"classifier__estimator__priors": [make(priors)], "tau": [tau]} for tau in (0.1, 1.0)]
    search = problem.search(oq.OPACC(oq.classifiers.InSample(Spy())), grid)
    assert len(FITS) == n_fits
    assert (search.results_["message"] == "").all()


def test_trees_are_fitted_once_for_all_protocols(problem):
    problem.search(oq.OQT(oq.classifiers.InSample(Spy())), {}, problem.both, measure=["nmd", "rnod"])
    assert len(FITS) == 4  # one per threshold


def test_features_need_no_classifier(problem):
    search = problem.search(oq.OHDx(), {"n_bins": [2, 3], "tau": [1e-3, 1e-1]})
    assert FITS == []
    assert search.predict(problem.X_pool).shape == (5,)


def test_representations_are_computed_once_for_all_strengths_of_regularization(problem, monkeypatch):
    calls = []
    transform = MeanDistances.transform
    monkeypatch.setattr(MeanDistances, "transform", lambda self, S: calls.append(len(S)) or transform(self, S))
    problem.search(oq.OEDy(CROSSED), {"tau": [1e-5, 1e-3, 1e-1]}, refit=False)
    assert calls == [250, 200]


def test_methods_of_one_classifier_share_its_scores(problem):
    S, S_pool = CROSSED.fit(problem.X, problem.y).held_out_scores_, CROSSED.predict_proba(problem.X_pool)
    quantifiers = [entry.cls() for name, entry in METHODS.items() if name not in ("HDx", "OHDx", "OQT", "ARC")]
    found = list(estimate_all(quantifiers, S, problem.y, S_pool, problem.app))
    for quantifier, estimates in zip(quantifiers, found, strict=True):
        expected = clone(quantifier).fit_scores(S, problem.y).solve_scores(S_pool, problem.app)
        assert_allclose(estimates.P, expected.p, atol=1e-9)
        assert_array_equal(estimates.converged, expected.converged)
        assert not hasattr(quantifier, "classes_")


def test_several_methods_share_the_fits_of_equal_classifiers(problem):
    def crossed(smoothing):
        return oq.classifiers.CrossFitted(Spy(var_smoothing=smoothing), cv=3)

    methods = {"PACC": oq.PACC(crossed(1e-9)), "OPACC": oq.OPACC(crossed(1e-9)), "CC": oq.CC(crossed(0.1))}
    grid = {"OPACC": {"tau": [1e-3, 1e-1]}, "CC": {SMOOTHING: [0.1, 0.2]}}
    search = problem.search(methods, grid)
    assert FITS == [1e-9] * 3 + [0.1] * 3 + [0.2] * 3
    assert search.results_["method"].tolist() == ["PACC", "OPACC", "OPACC", "CC", "CC"]
    alone = [problem.search(methods[name], grid.get(name, {})).results_["error"] for name in methods]
    assert_allclose(search.results_["error"], np.concatenate(alone), atol=1e-12)
    best = search.results_.loc[search.results_["error"].idxmin()]
    assert search.best()["method"] == best["method"]
    assert type(search.best_estimator_).__name__ == best["method"]
    with pytest.raises(ValueError, match="names of methods as keys"):
        problem.search(methods, {"tau": [1.0]})
    with pytest.raises(TypeError, match="must be a quantifier"):
        problem.search({"PACC": 3}, {})


class Renamed(oq.PACC):
    """PACC with a parameter that has the name of a column of results."""

    def __init__(self, classifier=None, *, method="plain"):
        super().__init__(classifier)
        self.method = method


def test_parameters_called_method_are_searched(problem):
    quantifier, grid = Renamed(GaussianNB()), {"method": ["plain", "other"]}
    search = SampleSearch(quantifier, grid, samples=problem.app).fit(problem.X, problem.y, problem.X_pool)
    assert search.results_["method"].tolist() == ["plain", "other"]
    assert search.best_params_ == {"method": "plain"}
    several = SampleSearch({"A": quantifier}, {"A": grid}, samples=problem.app)
    with pytest.raises(ValueError, match=r"grid\['A'\] must not have 'method'"):
        several.fit(problem.X, problem.y, problem.X_pool)


def test_linear_methods_without_a_parameter_solver_are_solved(problem):
    class Smooth(LinearQuantifier):
        def __init__(self, classifier=None, *, tau=1e-3):
            self.classifier = classifier
            self.tau = tau

        def parts(self):
            return Parts(Posteriors(), LeastSquares(), Tikhonov(self.tau))

    ours = Smooth(CROSSED, tau=0.01).fit(problem.X, problem.y).predict_samples(problem.X_pool, problem.app)
    expected = oq.OPACC(CROSSED, tau=0.01).fit(problem.X, problem.y).predict_samples(problem.X_pool, problem.app)
    assert_allclose(ours, expected, atol=1e-12)
    search = problem.search(Smooth(CROSSED), {"tau": [1e-3, 1e-1]})
    assert (search.results_["message"] == "").all()


def test_subclasses_with_a_solution_of_their_own_keep_it(problem):
    class Shifted(oq.PACC):
        def solve(self, summary):
            solution = super().solve(summary)
            solution.p[:] = np.eye(5)[0]
            return solution

    search = problem.search(Shifted(CROSSED), {})
    assert_allclose(search.results_["error"], oq.metrics.nmd(problem.app.prevalences, np.eye(5)[0]).mean())


# scores instead of items


def test_search_on_scores_is_the_search_on_items(problem):
    quantifier, grid = oq.OHDy(CROSSED), {"n_bins": [2, 4], "tau": [1e-3, 1e-1]}
    on_items = problem.search(quantifier, grid, problem.both)
    model = clone(CROSSED).fit(problem.X, problem.y)
    S_pool = model.predict_proba(problem.X_pool)
    on_scores = SampleSearch(oq.OHDy(), grid, samples=problem.both).fit_scores(
        model.held_out_scores_, problem.y, S_pool
    )
    untimed = ["seconds", "scoring_seconds"]
    pd.testing.assert_frame_equal(on_items.results_.drop(columns=untimed), on_scores.results_.drop(columns=untimed))
    assert_allclose(
        on_scores.best_quantifier("APP").predict_scores(S_pool, problem.app),
        on_items.best_quantifier("APP").predict_samples(problem.X_pool, problem.app),
    )


def test_scores_have_no_classifier_to_search(problem):
    search = SampleSearch(oq.PACC(GaussianNB()), {"classifier__var_smoothing": [1]}, samples=problem.app)
    with pytest.raises(ValueError, match="grid must not have 'classifier__var_smoothing': fit_scores"):
        search.fit_scores(np.full((250, 5), 0.2), problem.y, np.full((200, 5), 0.2))
    with pytest.raises(TypeError, match="OQT fits its own classifiers"):
        SampleSearch(oq.OQT(), {}, samples=problem.app).fit_scores(
            np.full((250, 5), 0.2), problem.y, np.full((200, 5), 0.2)
        )


# the choice


def test_ties_go_to_the_first_in_the_order_of_the_grid(problem):
    # The number of iterations allowed makes no difference to a solver that needs few, the classifiers do.
    grid = {"order": [1, 0], "classifier__estimator__var_smoothing": [0.1, 1e-9], "interpolation": [0.0]}
    search = problem.search(oq.IBU(CROSSED), grid)
    error = search.results_["error"].to_numpy()
    assert_array_equal(error[:2], error[2:])
    assert search.best()["order"] == 1
    reverse = problem.search(oq.IBU(CROSSED), grid | {"order": [0, 1]})
    assert reverse.best() == search.best() | {"order": 0}
    assert reverse.best_quantifier().order == 0


def test_last_parameter_varies_fastest_and_dicts_follow_each_other():
    grid = [{"b": [1, 2], "a": (3, 4)}, {}, {"c": np.array([5.0])}]
    assert list(configurations_of(grid)) == [
        {"b": 1, "a": 3},
        {"b": 1, "a": 4},
        {"b": 2, "a": 3},
        {"b": 2, "a": 4},
        {},
        {"c": 5.0},
    ]


def test_protocols_and_measures_have_their_own_best(problem):
    search = problem.search(
        oq.OACC(CROSSED), {"tau": [1e-5, 1e-1, 10.0, 1e3]}, problem.both, measure=["nmd", oq.metrics.rnod, "md"]
    )
    table = search.results_
    assert len(table) == 4 * 2 * 3
    for (protocol, measure), part in table.groupby(["protocol", "measure"]):
        assert search.best(protocol, measure) == {"tau": part["tau"].iloc[part["error"].argmin()]}
    assert search.best("APP", oq.metrics.rnod) == search.best("APP", "rnod")
    assert not hasattr(search, "best_params_")


def test_measures_may_be_functions(problem):
    def first_class(p, p_hat):
        return np.abs(p[:, 0] - p_hat[:, 0])

    search = problem.search(oq.OPACC(CROSSED), {"tau": [1e-5, 10.0]}, measure=first_class)
    P = search.predict_samples(problem.X_pool, problem.app)
    assert_allclose(search.results_["error"].min(), np.abs(P - problem.app.prevalences)[:, 0].mean())
    assert search.results_["measure"].unique() == ["first_class"]


def test_columns_that_are_not_there_are_named(problem):
    search = problem.search(oq.PACC(CROSSED), {}, problem.both, measure=["nmd", "rnod"])
    with pytest.raises(ValueError, match="protocol must be given if there are several: 'APP', 'APP-OQ'"):
        search.best()
    with pytest.raises(ValueError, match="measure must be given if there are several: 'nmd', 'rnod'"):
        search.best("APP")
    with pytest.raises(ValueError, match="protocol must be one of 'APP', 'APP-OQ', got 'NPP'"):
        search.best("NPP", "nmd")
    with pytest.raises(ValueError, match="measure must be one of 'nmd', 'rnod', got 'md'"):
        search.best("APP", "md")
    with pytest.raises(ValueError, match="protocol must be given"):
        search.predict(problem.X_pool)


# the table


def test_table_shows_parameters_as_they_were_given(problem):
    tree = DecisionTreeClassifier(random_state=0)
    grid = [{"classifier__max_depth": [2, None], "tau": [0.1, 1.0]}, {"order": [0]}]
    table = problem.search(oq.OPACC(tree), grid).results_
    assert list(table.columns[:6]) == ["configuration", "classifier__max_depth", "tau", "order", "protocol", "measure"]
    assert list(table.columns[6:]) == ["error", "std", "unconverged", "seconds", "scoring_seconds", "message"]
    assert table["classifier__max_depth"].tolist() == [2, 2, None, None, None]
    # Where a dict does not name a parameter, the value of the quantifier is in use.
    assert table["tau"].tolist() == [0.1, 1.0, 0.1, 1.0, 1e-4]
    assert table["order"].tolist() == [1, 1, 1, 1, 0]
    assert table["tau"].dtype == np.float64
    assert table["protocol"].unique().tolist() == ["samples"]
    assert (table[["seconds", "scoring_seconds"]] > 0).all(axis=None)


def test_unconverged_samples_are_counted_per_protocol(problem):
    quantifier = oq.RUN(CROSSED, solver=oq.solvers.newton.NewtonSolver(max_iter=1))
    table = problem.search(quantifier, {"tau": [10.0]}, problem.both).results_
    solved = quantifier.fit(problem.X, problem.y)
    S = solved.scores(problem.X_pool)
    expected = [(~solved.solve_scores(S, part).converged).sum() for part in problem.both.values()]
    assert table["unconverged"].tolist() == expected
    assert sum(expected) > 0


def test_single_sample_has_no_standard_deviation(problem):
    table = problem.search(oq.PACC(CROSSED), {}, problem.app[:1]).results_
    assert np.isnan(table["std"]).all()
    assert (table["error"] > 0).all()


# failures


def test_failing_classifier_configuration_is_infinite_and_the_others_go_on(problem):
    grid = {"classifier__estimator__var_smoothing": [0.5, 1e-9], "tau": [0.1, 1.0]}
    search = problem.search(oq.OPACC(oq.classifiers.InSample(Spy())), grid, problem.both)
    table = search.results_
    assert (table["error"] == np.inf).tolist() == [True] * 4 + [False] * 4
    assert table["message"].tolist() == ["RuntimeError: one half is not smooth"] * 4 + [""] * 4
    assert table["unconverged"].tolist()[:2] == [len(problem.app), len(problem.app_oq)]
    assert np.isnan(table["std"][:4]).all()
    assert search.best("APP")["classifier__estimator__var_smoothing"] == 1e-9


def test_failing_tree_is_infinite_and_the_others_go_on(problem):
    grid = {"classifier__estimator__var_smoothing": [0.5, 1e-9]}
    search = problem.search(oq.ARC(oq.classifiers.InSample(Spy())), grid)
    assert search.results_["error"].tolist()[0] == np.inf
    assert search.best() == {"classifier__estimator__var_smoothing": 1e-9}


def test_failing_quantifier_is_infinite_and_the_others_go_on(problem):
    class Sometimes(oq.OPACC):
        def minimize(self, data, *parts):
            if self.tau == 1:
                raise FloatingPointError("one is too much")
            return super().minimize(data, *parts)

    search = problem.search(Sometimes(CROSSED), {"tau": [1, 0.1]})
    assert search.results_["message"].tolist() == ["FloatingPointError: one is too much", ""]
    assert search.best_params_ == {"tau": 0.1}


def test_votes_serve_those_who_need_no_probabilities(problem):
    quantifier = oq.ComposedQuantifier(Posteriors(), LeastSquares(), classifier=LinearSVC())
    search = problem.search(quantifier, {"representation": [Posteriors(), HardVotes()]})
    assert "needs class probabilities" in search.results_["message"][0]
    assert isinstance(search.best()["representation"], HardVotes)


def test_search_without_any_success_is_an_error(problem):
    with pytest.raises(ValueError, match="every configuration failed, the first with RuntimeError: one half"):
        problem.search(oq.OPACC(oq.classifiers.InSample(Spy(var_smoothing=0.5))), {"tau": [0.1, 1.0]})


def test_errors_of_measures_are_the_caller_s(problem):
    def broken(p, p_hat):
        raise ZeroDivisionError("no measure")

    with pytest.raises(ZeroDivisionError, match="no measure"):
        problem.search(oq.PACC(CROSSED), {}, measure=broken)


# mistakes of the caller

FOREST = RandomForestClassifier(5, oob_score=True)


@pytest.mark.parametrize(
    ("quantifier", "grid", "error", "message"),
    [
        (
            oq.PACC(),
            {"tau": [1]},
            ValueError,
            "parameter 'tau' in grid is unknown; valid for PACC are classifier, solver",
        ),
        (
            oq.PACC(FOREST),
            {"classifier__max_dept": [1]},
            ValueError,
            "'classifier__max_dept'.*RandomForest.*__max_depth",
        ),
        (
            oq.PACC(oq.classifiers.CrossFitted(GaussianNB())),
            {"classifier__estimator__C": [1]},
            ValueError,
            "valid for GaussianNB are classifier__estimator__priors, classifier__estimator__var_smoothing",
        ),
        (oq.PACC(), {"classifier__C": [1]}, ValueError, "classifier is None, which has no parameters"),
        (oq.HDx(), {"classifier__max_depth": [1]}, ValueError, "valid for HDx are n_bins, solver"),
        (oq.OPACC(), {"tau__x": [1]}, ValueError, "tau is 0.0001, which has no parameters"),
        (oq.OPACC(), {"tau": 0.1}, TypeError, r"grid\['tau'\] must be a list of values, got 0.1"),
        (oq.PACC(), {"solver": "newton"}, TypeError, r"grid\['solver'\] must be a list of values, got 'newton'"),
        (oq.OPACC(), {"tau": []}, ValueError, r"grid\['tau'\] must hold at least one value"),
        (oq.OPACC(), {"tau": {0.1: 1}}, TypeError, r"grid\['tau'\] must be a list of values"),
        (oq.OPACC(), {"tau": np.ones((2, 2))}, ValueError, r"got an array of shape \(2, 2\)"),
        (oq.OPACC(), {"tau": None}, TypeError, r"grid\['tau'\] must be a list of values, got None"),
        (oq.OPACC(), {0: [1]}, TypeError, "names of parameters as keys, got 0"),
        (oq.OPACC(), [], ValueError, "grid must hold at least one dict"),
        (oq.OPACC(), "tau", TypeError, "grid must be a dict of parameters to lists"),
        (oq.OPACC(), None, TypeError, "grid must be a dict of parameters to lists"),
        (oq.OPACC(), [{"tau": [1]}, "tau"], TypeError, "or a list of such dicts"),
        (oq.OPACC(), {"tau": [1, -1]}, ValueError, r"tau must be .* got -1.* \(in grid: {'tau': -1}\)"),
        (oq.HDy(), {"n_bins": [4, "4"]}, TypeError, "n_bins must be an integer"),
        (oq.PACC(), {"solver": ["newtown"]}, ValueError, "solver must be"),
        (oq.OQT(), {"held_out": [0.5, 1.5]}, ValueError, "held_out must be"),
        (oq.PACC(), {"classifier": [GaussianNB]}, TypeError, "classifier must be a scikit-learn classifier"),
        (oq.PACC, {}, TypeError, "quantifier must be a quantifier of ordinalq"),
        (GaussianNB(), {}, TypeError, "quantifier must be a quantifier of ordinalq"),
    ],
)
def test_bad_grids_are_rejected_before_anything_is_fitted(quantifier, grid, error, message, problem):
    with pytest.raises(error, match=message):
        problem.search(quantifier, grid)


@pytest.mark.parametrize(
    ("samples", "error", "message"),
    [
        ({}, ValueError, "samples must hold at least one protocol"),
        (np.zeros((2, 3), dtype=int), TypeError, "samples must be Samples, for example APP"),
        ({"APP": [[0, 1]]}, TypeError, r"samples\['APP'\] must be Samples.*got list"),
        ({1: oq.Samples.whole(200)}, TypeError, "names of protocols as keys, got 1"),
        (oq.Samples.whole(100), ValueError, "samples must be drawn from the 200 items of the pool, got one of 100"),
        ({"all": oq.Samples.whole(200)}, ValueError, r"samples\['all'\] must have prevalences"),
        (
            oq.Samples.whole(200, np.resize([1, 2, 3], 200)),
            ValueError,
            r"classes of y, \[1, 2, 3, 4, 5\], got \[1, 2, 3\]",
        ),
        (oq.Samples.whole(200, np.resize([1, 2, 3, 4, 6], 200)), ValueError, "give classes=.* when you draw"),
    ],
)
def test_samples_that_do_not_fit_are_rejected(samples, error, message, problem):
    with pytest.raises(error, match=message):
        problem.search(oq.PACC(oq.classifiers.InSample(Spy())), {}, samples)
    assert FITS == []


@pytest.mark.parametrize(
    ("measure", "message"),
    [
        ("NMD", "measure must be one of 'nmd'"),
        ([], "measure must name at least one measure"),
        (["nmd", "nmd"], "measure must have distinct names, got 'nmd' twice"),
        (["nmd", 3], "measure must be one of .* got 3"),
    ],
)
def test_unknown_measures_are_rejected(measure, message, problem):
    with pytest.raises(ValueError, match=message):
        problem.search(oq.PACC(oq.classifiers.InSample(Spy())), {}, measure=measure)
    assert FITS == []


def test_items_that_do_not_fit_are_rejected(problem):
    search = SampleSearch(oq.PACC(oq.classifiers.InSample(Spy())), {}, samples=problem.app)
    with pytest.raises(ValueError, match="inconsistent numbers of samples"):
        search.fit(problem.X[1:], problem.y, problem.X_pool)
    with pytest.raises(ValueError, match=r"1 features, but .* expecting 2 features"):
        search.fit(problem.X, problem.y, problem.X_pool[:, :1])
    with pytest.raises(TypeError, match="NoneType"):
        search.fit(problem.X, problem.y, None)
    with pytest.raises(ValueError, match="give classes="):
        search.fit(problem.X, problem.y.astype(str), problem.X_pool)
    assert FITS == []


# as a quantifier and an estimator


def test_search_of_one_column_is_the_best_quantifier(problem):
    search = problem.search(oq.OPACC(CROSSED), {"tau": [1e-5, 1e-1]})
    best = search.best_quantifier()
    assert search.best_params_ == search.best() == {"tau": best.tau}
    assert_array_equal(search.classes_, [1, 2, 3, 4, 5])
    assert_array_equal(search.predict(problem.X_pool), best.predict(problem.X_pool))
    S = search.scores(problem.X_pool)
    assert_array_equal(search.predict_scores(S, problem.app), search.predict_samples(problem.X_pool, problem.app))


def test_strings_take_their_order_from_classes():
    labels = ["low", "fair", "good", "high", "top"]  # not the alphabet's order
    named, numbered = Problem(labels), Problem()
    grid = {"tau": [1e-5, 1e-1, 10.0]}
    with_names = SampleSearch(oq.OPACC(CROSSED), grid, samples=named.both).fit(
        named.X, named.y, named.X_pool, classes=labels
    )
    with_numbers = numbered.search(oq.OPACC(CROSSED), grid, numbered.both)
    assert_allclose(with_names.results_["error"], with_numbers.results_["error"], rtol=1e-12)
    assert with_names.classes_.tolist() == labels
    assert with_names.best_quantifier("APP").classes_.tolist() == labels


def test_frames_keep_their_names(problem):
    X, X_pool = (pd.DataFrame(items, columns=["a", "b"]) for items in (problem.X, problem.X_pool))
    y = pd.Series(problem.y)
    for quantifier in (oq.OPACC(CROSSED), oq.OHDx()):
        search = SampleSearch(quantifier, {"tau": [0.1]}, samples=problem.app).fit(X, y, X_pool)
        assert search.feature_names_in_.tolist() == ["a", "b"]
        assert search.best_quantifier().feature_names_in_.tolist() == ["a", "b"]
        with pytest.raises(ValueError, match="feature names"):
            search.predict(X_pool.rename(columns={"a": "c"}))
        with pytest.raises(ValueError, match="feature names"):
            search.fit(X, y, X_pool.rename(columns={"a": "c"}))


def test_sparse_items_are_searched_if_the_classifier_accepts_them(problem):
    quantifier, grid = oq.PACC(DecisionTreeClassifier(random_state=0)), {"classifier__max_depth": [2, 4]}
    dense = problem.search(quantifier, grid)
    X, X_pool = sparse.coo_array(problem.X), sparse.coo_array(problem.X_pool)
    search = SampleSearch(quantifier, grid, samples=problem.app).fit(X, problem.y, X_pool)
    assert_allclose(search.results_["error"], dense.results_["error"], rtol=1e-12)
    assert_allclose(search.predict(X_pool), dense.predict(problem.X_pool))


def test_pipelines_are_classifiers(problem):
    pipeline = make_pipeline(StandardScaler(), LogisticRegression())
    grid = {"classifier__logisticregression__C": [0.01, 1.0]}
    search = problem.search(oq.PACC(pipeline), grid)
    assert_allclose(search.results_["error"], naive(oq.PACC(pipeline), grid, problem, {"": problem.app}, ["nmd"])[:, 0])


@pytest.mark.parametrize(
    "quantifier", [oq.OPACC(CROSSED), oq.ARC(CROSSED), oq.OHDy(CROSSED)], ids=lambda q: q.paper_name
)
def test_number_of_jobs_changes_nothing(quantifier, problem):
    grid = {SMOOTHING: [1e-9, 0.1, 1.0]}
    if hasattr(quantifier, "tau"):
        grid["tau"] = [1e-3, 1e-1]
    one, two = (problem.search(quantifier, grid, problem.both, n_jobs=n_jobs) for n_jobs in (None, 2))
    untimed = ["seconds", "scoring_seconds"]
    pd.testing.assert_frame_equal(
        one.results_.drop(columns=untimed), two.results_.drop(columns=untimed), check_exact=True
    )
    for protocol in problem.both:
        assert one.best(protocol) == two.best(protocol)
        assert_array_equal(
            one.best_quantifier(protocol).predict(problem.X_pool), two.best_quantifier(protocol).predict(problem.X_pool)
        )


def test_search_is_cloned_without_its_results(problem):
    search = problem.search(oq.OPACC(CROSSED), {"tau": [0.1, 1.0]}, measure=["nmd"])
    copy = clone(search)
    assert not hasattr(copy, "results_")
    assert set(search.get_params(deep=False)) == {"quantifier", "grid", "samples", "measure", "n_jobs", "refit"}
    assert search.get_params()["quantifier__tau"] == 1e-4
    assert copy.set_params(quantifier__order=0).quantifier.order == 0
    assert search.quantifier.order == 1
    untimed = ["seconds", "scoring_seconds"]
    again = clone(search).fit(problem.X, problem.y, problem.X_pool)
    pd.testing.assert_frame_equal(search.results_.drop(columns=untimed), again.results_.drop(columns=untimed))


def test_constructor_only_stores():
    search = SampleSearch("no quantifier", "no grid", samples=3, measure=4, n_jobs="x", refit=None)
    assert (search.quantifier, search.grid, search.samples, search.measure) == ("no quantifier", "no grid", 3, 4)


def test_search_survives_pickling(problem):
    search = problem.search(oq.OPACC(CROSSED), {"tau": [0.1, 1.0]})
    copy = pickle.loads(pickle.dumps(search))
    assert_array_equal(copy.predict(problem.X_pool), search.predict(problem.X_pool))


def test_second_fit_forgets_the_first(problem):
    search = problem.search(oq.OPACC(CROSSED), {"tau": [0.1, 1.0]})
    search.set_params(samples=problem.both).fit(problem.X, problem.y, problem.X_pool)
    assert not hasattr(search, "best_params_")
    assert len(search.results_) == 4


def test_without_refit_no_quantifier_is_kept(problem):
    search = problem.search(oq.OPACC(CROSSED), {"tau": [0.1, 1.0]}, refit=False)
    assert search.best() in ({"tau": 0.1}, {"tau": 1.0})
    with pytest.raises(ValueError, match="best_quantifier needs refit=True"):
        search.predict(problem.X_pool)


def test_unfitted_search_raises_not_fitted_error(problem):
    search = SampleSearch(oq.PACC(), {}, samples=problem.app)
    for call in (search.best, search.best_quantifier, lambda: search.predict(problem.X)):
        with pytest.raises(NotFittedError):
            call()


def test_only_the_best_classifiers_are_kept(problem):
    search = problem.search(oq.OPACC(CROSSED), {SMOOTHING: [1e-9, 0.01, 0.1, 1.0], "tau": [0.1, 1.0]}, problem.both)
    assert len(search._fitted) <= 2
    assert {id(quantifier) for quantifier in search._fitted.values()} == {
        id(search.best_quantifier(protocol)) for protocol in problem.both
    }


def test_configure_copies_its_parameters():
    forest = RandomForestClassifier(7)
    quantifier = configure(oq.OPACC(), {"classifier__max_depth": 3, "classifier": forest, "tau": 2.0})
    assert (quantifier.classifier.max_depth, quantifier.classifier.n_estimators, quantifier.tau) == (3, 7, 2.0)
    assert forest.max_depth is None


def test_from_a_table_to_the_best_method_on_test_samples():
    rng = generator(11)
    X = rng.random((6000, 5))
    target = 10 * np.sin(np.pi * X[:, 0] * X[:, 1]) + 20 * (X[:, 2] - 0.5) ** 2 + 10 * X[:, 3] + 5 * X[:, 4]
    y = np.digitize(target + rng.normal(size=6000), [9, 13, 16, 19])
    frame = pd.DataFrame(X, columns=list("abcde")).assign(level=y)
    data = oq.datasets.make_dataset(frame, "level", sampling=Sampling(n_validation=60, n_test=60, sample_size=300))
    forest = RandomForestClassifier(40, oob_score=True, class_weight="balanced_subsample", random_state=0)
    grid = {"classifier__max_depth": [2, 6], "tau": [1e-5, 1e-3, 1e-1]}
    samples = {protocol: data.samples(protocol, "validation") for protocol in data.protocols}
    search = SampleSearch(oq.OPACC(forest), grid, samples=samples, measure=["nmd", "rnod"])
    search.fit(*data.train, data.validation.X)
    assert search.best("APP", "nmd")["classifier__max_depth"] == 6
    test = data.samples("APP", "test")
    chosen = search.best_quantifier("APP", "nmd").predict_samples(data.test.X, test)
    counted = oq.CC(forest).fit(*data.train).predict_samples(data.test.X, test)
    assert oq.metrics.nmd(test.prevalences, chosen).mean() < 0.9 * oq.metrics.nmd(test.prevalences, counted).mean()
