"""Strength of smoothing: tau="auto", interpolation="auto" and RUN's effective number of degrees of freedom."""

import pickle
from functools import lru_cache

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.linalg import eigh
from seeds import generator
from sklearn.base import clone
from sklearn.naive_bayes import GaussianNB

import ordinalq as oq
from ordinalq.inference import tuning
from ordinalq.inference.tuning import Trial, thirds, tune, tuning_basis
from ordinalq.losses import Energy, LeastSquares, Poisson
from ordinalq.quantifiers.run_ibu import degrees_of_freedom, tau_for
from ordinalq.regularizers import NoPenalty, PolynomialSmoothing, Tikhonov
from ordinalq.representations import MeanDistances, Partition, Posteriors
from ordinalq.simplex import Data, difference_matrix
from ordinalq.solvers.objectives import LinearObjective
from ordinalq.solvers.solution import Solution

N_CLASSES = 6
BY_TAU = (oq.OACC, oq.OPACC, oq.OHDy, oq.OEDy, oq.OPDF, oq.RUN, oq.SLD)
BY_INTERPOLATION = (oq.IBU, oq.OSLD)
AUTO = [(cls, "tau") for cls in BY_TAU] + [(cls, "interpolation") for cls in BY_INTERPOLATION]
each_auto = pytest.mark.parametrize(("method", "parameter"), AUTO, ids=lambda value: getattr(value, "__name__", value))


def items(rng, codes):
    """Return one feature per item, which tells neighbouring classes badly apart."""
    return codes[:, None] + 1.2 * rng.normal(size=(len(codes), 1))


def posteriors(X):
    """Return the scores of a classifier that knows the classes, for a uniform prior."""
    density = np.exp(-((X - np.arange(N_CLASSES)) ** 2) / (2 * 1.2**2)) + 1e-12
    return density / density.sum(axis=1, keepdims=True)


@lru_cache
def training(n_items=600, draw=generator):
    codes = np.arange(n_items) % N_CLASSES
    X = items(draw(0), codes)
    return X, posteriors(X), codes


@lru_cache
def pool_and_samples(draw=generator):
    rng = draw(1)
    codes = np.arange(12_000) % N_CLASSES
    samples = oq.protocols.APPOQ(0.2, 400, 300, random_state=2).draw(codes)
    return posteriors(items(rng, codes)), samples


@pytest.fixture
def quick(monkeypatch):
    """Tune on fewer samples, where the choice itself is not the point."""
    monkeypatch.setattr(tuning, "SPLITS", 3)
    monkeypatch.setattr(tuning, "DRAWS", 6)
    monkeypatch.setattr(tuning, "FEWER_SPLITS", 2)
    monkeypatch.setattr(tuning, "FEWER_DRAWS", 4)


def usual(number):
    """Return a generator of data on which the choice is as good as it usually is."""
    return np.random.default_rng([876, number])


def error(quantifier, draw=generator):
    S, samples = pool_and_samples(draw)
    return float(oq.metrics.nmd(samples.prevalences, quantifier.predict_scores(S, samples)).mean())


@pytest.mark.parametrize(("method", "unit"), [(oq.OACC, 1), (oq.OPACC, 1), (oq.OPDF, 1), (oq.RUN, 600)])
def test_auto_is_nearly_as_good_as_the_best_tau_in_hindsight(method, unit):
    # One set of 600 items in ten misleads: the error is then up to a quarter above the best.
    _, S, y = training(draw=usual)
    auto = method(tau="auto").fit_scores(S, y)
    grid = [method(tau=unit * tau).fit_scores(S, y) for tau in (0, *10.0 ** np.arange(-5, 1.1, 0.5))]
    assert error(auto, usual) <= 1.05 * min(error(q, usual) for q in grid)


def test_auto_interpolation_is_nearly_as_good_as_the_best_in_hindsight():
    _, S, y = training(draw=usual)
    auto = oq.IBU(interpolation="auto").fit_scores(S, y)
    errors = [error(oq.IBU(interpolation=x).fit_scores(S, y), usual) for x in (0, *10.0 ** np.arange(-3, 0.1, 0.5))]
    assert error(auto, usual) <= 1.05 * min(errors)


@pytest.mark.parametrize(
    ("method", "parameter"),
    [(oq.OACC, "tau"), (oq.OPACC, "tau"), (oq.OPDF, "tau"), (oq.RUN, "tau"), (oq.IBU, "interpolation")],
)
def test_auto_is_better_than_no_smoothing_on_any_training_set(method, parameter):
    # At 25 seeds the ratios of the two errors had means of 0.49 to 0.71 and deviations of 0.03 to 0.05, so that 0.9 is
    # more than 4.9 deviations away: less than one run in a million, if they are normal.
    _, S, y = training()
    auto, without = (method(**{parameter: value}).fit_scores(S, y) for value in ("auto", 0))
    assert error(auto) <= 0.9 * error(without)


@each_auto
def test_auto_gives_the_estimates_of_the_chosen_number(method, parameter, quick):
    _, S, y = training()
    auto = method(**{parameter: "auto"}).fit_scores(S, y)
    chosen = getattr(auto, f"{parameter}_")
    assert chosen == auto.tuning_.value == getattr(auto.smoother_, parameter)
    fixed = clone(auto).set_params(**{parameter: chosen}).fit_scores(S, y)
    if method is oq.SLD and chosen == 0:
        fixed.set_params(solver="newton").fit_scores(S, y)
    pool, samples = pool_and_samples()
    assert_array_equal(auto.predict_scores(pool, samples[:5]), fixed.predict_scores(pool, samples[:5]))


@each_auto
def test_number_is_kept_and_nothing_is_tuned(method, parameter):
    _, S, y = training()
    q = method(**{parameter: 0.25}).fit_scores(S, y)
    assert getattr(q, f"{parameter}_") == 0.25
    assert not hasattr(q, "tuning_")


def test_choice_is_the_same_every_time_and_survives_pickle_and_clone(quick):
    _, S, y = training()
    first, second = (oq.OPACC(tau="auto").fit_scores(S, y) for _ in range(2))
    assert first.tau_ == second.tau_
    assert_array_equal(first.tuning_.errors, second.tuning_.errors)
    assert pickle.loads(pickle.dumps(first)).tau_ == first.tau_
    assert clone(first).tau == first.get_params()["tau"] == "auto"


def test_number_after_auto_leaves_no_old_tuning(quick):
    _, S, y = training()
    q = oq.OPACC(tau="auto").fit_scores(S, y)
    assert not hasattr(q.set_params(tau=0.1).fit_scores(S, y), "tuning_")
    assert q.tau_ == 0.1


def test_tuning_returns_the_curve_and_its_minimum(quick):
    _, S, y = training()
    found = oq.OPACC(tau="auto").fit_scores(S, y).tuning_
    assert found.values[0] == 0
    assert (np.diff(found.values) > 0).all()
    assert found.value == found.values[found.errors.argmin()]
    assert found.table().columns.tolist() == ["tau", "nmd", "standard_error"]
    assert found.to_dict()["values"] == found.values.tolist()
    assert (found.n_samples, found.sample_size) == (3 * 6, 600)
    assert f"tau = {found.value:.3g}" in str(found)
    assert "without smoothing" in str(found)
    assert found.plot().get_xlabel()


class Fixed:
    """Stands for a quantifier whose estimates depend on the strength only."""

    def __init__(self, solve, value=None):
        self._solve, self.value = solve, value

    def with_strength(self, value):
        return Fixed(self._solve, value)

    def solve(self, summary):
        return Solution.closed_form(self._solve(self.value))


def trial(samples, solve):
    summary = oq.samples.Summary.of_means(samples, np.zeros((samples.n_items, 1)))
    return Trial(Fixed(solve), summary, samples.prevalences, np.ones(len(samples)))


def test_curve_is_refined_around_its_minimum():
    samples = oq.protocols.APP(3, 50, random_state=0).draw(np.arange(300) % 3)

    def solve(tau):  # error is smallest at tau = 0.02
        weight = min(abs(np.log10(max(tau, 1e-9) / 0.02)) / 20, 1)
        return (1 - weight) * samples.prevalences + weight * np.eye(3)[[0, 0, 0]]

    found = tune(Tikhonov("auto"), [trial(samples, solve)] * 2)
    assert_allclose(found.value, 10**-1.75)
    assert {-2, -1.5, -1.75, -1.25, -1} >= set(
        np.round(np.log10(found.values[(found.values > 9e-3) & (found.values < 0.2)]), 9)
    )
    assert (found.n_samples, found.sample_size) == (6, 50)


def test_tau_of_a_likelihood_is_tried_in_units_of_the_sample_size(quick):
    _, S, y = training()
    assert_allclose(oq.RUN(tau="auto").fit_scores(S, y).tuning_.values[[1, -1]], [600e-6, 600e2])
    assert_allclose(oq.OACC(tau="auto").fit_scores(S, y).tuning_.values[[1, -1]], [1e-6, 1e2])
    assert_allclose(PolynomialSmoothing(0, "auto").strengths(50.0)[-1], 1)


def test_thirds_hold_a_third_of_each_class_and_at_least_two_items():
    codes = np.repeat([0, 1, 2, 3], [1, 2, 4, 90])
    masks = list(thirds(codes, np.arange(len(codes))))
    counts = np.array([np.bincount(codes[mask], minlength=4) for mask in masks])
    assert_array_equal(counts, np.tile([1, 2, 2, 30], (len(masks), 1)))
    assert not np.array_equal(masks[0], masks[1])


def test_samples_for_tuning_come_from_the_pool_only():
    codes = np.arange(400) % 4
    pool = np.flatnonzero(np.arange(400) >= 200)
    samples = tuning_basis(oq.regularizers.AutoStrength(), codes, None, pool).splits[0].samples
    assert samples.items.min() >= 200
    assert samples.sizes[0] == len(pool)
    drawn = codes[samples.index(0)]
    assert_allclose(samples.prevalences[0], np.bincount(drawn, minlength=4) / len(drawn))


@pytest.mark.parametrize(
    "method", [oq.OHDx(tau="auto"), oq.ComposedQuantifier(Partition(), Poisson(), Tikhonov("auto"))]
)
def test_methods_on_features_tune_too(method, quick):
    X, _, y = training()
    q = method.fit(X, y)
    assert q.tau_ == q.smoother_.tau == q.tuning_.value
    assert_allclose(q.predict(X).sum(), 1)


def test_composed_quantifier_tunes_and_keeps_its_parameter(quick):
    _, S, y = training()
    q = oq.ComposedQuantifier(Posteriors(), LeastSquares(), Tikhonov("auto")).fit_scores(S, y)
    assert q.regularizer.tau == "auto"
    assert q.tau_ == oq.OPACC(tau="auto").fit_scores(S, y).tau_
    assert oq.ComposedQuantifier(MeanDistances(), Energy(), Tikhonov("auto")).fit_scores(S, y).tau_ >= 0


@pytest.mark.filterwarnings("ignore:.*smoothing may add bias")
def test_items_without_score_and_rare_classes_do_not_disturb(quick):
    _, S, y = training()
    S, y = S.copy(), y.copy()
    S[10:20] = np.nan
    keep = np.flatnonzero((y != 3) | (np.cumsum(y == 3) <= 1))  # a single item of class 3
    assert np.isfinite(oq.OPACC(tau="auto").fit_scores(S[keep], y[keep]).tau_)
    assert np.isfinite(oq.OEDy(tau="auto").fit_scores(S[keep], y[keep]).tau_)
    assert np.isfinite(oq.OSLD(interpolation="auto").fit_scores(S, y).interpolation_)


def test_search_over_grids_with_auto_works(quick):
    _, S, y = training()
    pool, samples = pool_and_samples()
    search = oq.model_selection.SampleSearch(oq.OPACC(), {"tau": [1e-4, "auto", 1.0]}, samples=samples)
    search.fit_scores(S, y, pool)
    assert (search.results_["message"] == "").all()
    auto = oq.OPACC(tau="auto").fit_scores(S, y)
    assert_allclose(search.results_["error"][1], error(auto))
    ibu = oq.model_selection.SampleSearch(oq.IBU(), {"interpolation": ["auto", 0.5]}, samples=samples).fit_scores(
        S, y, pool
    )
    assert_allclose(ibu.results_["error"][1], error(oq.IBU(interpolation=0.5).fit_scores(S, y)))


@pytest.mark.parametrize("method", [oq.OPACC(tau="auto"), oq.RUN(tau="auto"), oq.IBU(interpolation="auto")])
def test_solve_rejects_auto_without_training_items(method):
    with pytest.raises(ValueError, match=r"(tau|interpolation) must be a number here, got 'auto'"):
        oq.solve([10, 20, 30], np.eye(3), method=method)


@pytest.mark.parametrize(
    ("method", "message"),
    [
        (oq.OPACC(tau="automatic"), "tau must be a finite number >= 0, got 'automatic'"),
        (oq.OSLD(interpolation="best"), r"interpolation must be a number in \[0, 1\], got 'best'"),
        (oq.SLD(tau="auto", solver="em"), "EM has no regularizer"),
        (oq.RUN(tau="auto", n_df=4), "n_df must be None with tau='auto'"),
        (oq.RUN(n_df=2), r"n_df must be a number in \(2, 6\], got 2"),
        (oq.RUN(n_df=7), r"n_df must be a number in \(2, 6\], got 7"),
        (oq.RUN(n_df="4"), "n_df must be a number"),
    ],
)
def test_wrong_strengths_are_rejected(method, message):
    _, S, y = training()
    with pytest.raises((TypeError, ValueError), match=message):
        method.fit_scores(S, y)


# Real groups, expected prevalences, the edges of the grid


def bumps(centres):
    """Return smooth distributions around the given classes, (k, n)."""
    P = np.exp(-((np.arange(N_CLASSES) - centres[:, None]) ** 2) / (2 * 1.5**2))
    return P / P.sum(axis=1, keepdims=True)


@lru_cache
def grouped(n_groups=60, peaked=False):
    """Return scores, codes and groups whose items of a class look different from group to group."""
    rng = generator(3)
    sizes = rng.integers(25, 60, n_groups)
    groups = np.repeat(np.arange(n_groups), sizes)
    P = rng.dirichlet(np.full(N_CLASSES, 0.1), n_groups) if peaked else bumps(rng.uniform(0, N_CLASSES - 1, n_groups))
    codes = (rng.random(len(groups))[:, None] > np.cumsum(P, axis=1)[groups]).sum(axis=1)
    codes[:N_CLASSES] = np.arange(N_CLASSES)
    X = items(rng, codes) + (0 if peaked else 0.5) * rng.normal(size=n_groups)[groups][:, None]
    return posteriors(X), codes, groups


@pytest.mark.filterwarnings("ignore:.*ended at")  # o-SLD takes all it can get
@each_auto
def test_strength_is_the_best_on_training_groups_held_out(method, parameter):
    S, y, groups = grouped(n_groups=6)
    q = method(**{parameter: "auto"}).fit_scores(S, y, groups=groups)
    assert q.tuning_.source == "groups"
    assert q.tuning_.n_samples == 6
    assert f"{q.tuning_.sample_size} items (median), held out" in str(q.tuning_)
    assert getattr(q, f"{parameter}_") == q.tuning_.value == q.tuning_.values[q.tuning_.errors.argmin()]


def test_error_of_a_strength_is_that_of_groups_which_m_has_not_seen():
    S, y, groups = grouped()
    found = oq.OPACC(tau="auto").fit_scores(S, y, groups=groups).tuning_
    at = len(found.values) // 2
    errors = np.empty(60)
    # Largest groups first, dealt out to 12 folds.
    fold = np.empty(60, dtype=int)
    fold[np.argsort(-np.bincount(groups), kind="stable")] = np.arange(60) % 12
    for g in range(60):
        other = fold[groups] != fold[g]
        q = oq.OPACC(tau=found.values[at]).fit_scores(S[other], y[other])
        truth = np.bincount(y[groups == g], minlength=N_CLASSES) / (groups == g).sum()
        errors[g] = oq.metrics.nmd(truth, q.predict_scores(S[groups == g], oq.Samples.whole((groups == g).sum()))[0])
    assert_allclose(found.errors[at], errors.mean(), rtol=1e-6)
    by_items = oq.OPACC(tau=oq.regularizers.AutoStrength(weight="items")).fit_scores(S, y, groups=groups).tuning_
    weighted = np.average(errors, weights=np.bincount(groups))
    assert_allclose(by_items.errors[by_items.values == found.values[at]], weighted, rtol=1e-6)


def test_groups_that_differ_get_more_smoothing_and_peaked_ones_less():
    S, y, groups = grouped()
    smooth = oq.OPACC(tau="auto").fit_scores(S, y).tau_
    assert oq.OPACC(tau="auto").fit_scores(S, y, groups=groups).tau_ > smooth
    S, y, groups = grouped(peaked=True)
    assert oq.OPACC(tau="auto").fit_scores(S, y, groups=groups).tau_ < smooth / 3


def test_small_groups_are_not_judged_and_too_few_large_ones_are_said(quick):
    S, y, groups = grouped()
    sizes = np.bincount(groups)
    found = oq.OPACC(tau=oq.regularizers.AutoStrength(min_items=40)).fit_scores(S, y, groups=groups).tuning_
    assert found.n_samples == (sizes >= 40).sum()
    with pytest.warns(UserWarning, match="only 0 training groups have 1000 items"):
        q = oq.OPACC(tau=oq.regularizers.AutoStrength(min_items=1000)).fit_scores(S, y, groups=groups)
    assert q.tuning_.source == "smooth"


def test_class_in_one_group_only_still_has_a_mean():
    S, y, groups = grouped()
    keep = (y != 3) | (groups == np.bincount(groups[y == 3]).argmax())
    q = oq.OPACC(tau="auto").fit_scores(S[keep], y[keep], classes=np.arange(N_CLASSES), groups=groups[keep])
    assert np.isfinite(q.tuning_.errors).all()


def test_expected_prevalences_decide_how_much_to_smooth():
    _, S, y = training()
    peaks, smooth = np.eye(N_CLASSES), bumps(np.arange(N_CLASSES))
    by_peaks, by_smooth = (
        oq.OPACC(tau=oq.regularizers.AutoStrength(prevalences=P)).fit_scores(S, y) for P in (peaks, smooth)
    )
    assert by_peaks.tau_ < 1e-3 < by_smooth.tau_
    assert by_peaks.tuning_.source == "prevalences"
    assert "with the given prevalences" in str(by_peaks.tuning_)
    ibu = [
        oq.IBU(interpolation=oq.regularizers.AutoStrength(prevalences=P)).fit_scores(S, y).interpolation_
        for P in (peaks, smooth)
    ]
    assert ibu[0] < ibu[1]


@pytest.mark.parametrize(
    ("auto", "message"),
    [
        (oq.regularizers.AutoStrength(weight="size"), "weight must be"),
        (oq.regularizers.AutoStrength(min_items=0), "min_items must be"),
        (
            oq.regularizers.AutoStrength(prevalences=[[0.5, 0.5, 0.0]]),
            "prevalences must have one entry per class, 6, got 3",
        ),
        (oq.regularizers.AutoStrength(prevalences=[[0.5, 0.5, 0.1, 0, 0, 0]]), "prevalences must sum to 1"),
    ],
)
def test_wrong_ways_to_choose_are_rejected(auto, message):
    _, S, y = training()
    for method in (oq.OPACC(tau=auto), oq.OSLD(interpolation=auto)):
        with pytest.raises((TypeError, ValueError), match=message):
            method.fit_scores(S, y)


def test_way_to_choose_survives_clone_and_pickle():
    q = oq.OPACC(tau=oq.regularizers.AutoStrength(weight="items"))
    assert clone(q).tau.weight == pickle.loads(pickle.dumps(q)).tau.weight == "items"
    assert clone(q).set_params(tau__weight="groups").tau.weight == "groups"


def test_grid_is_widened_if_its_end_is_the_best():
    samples = oq.protocols.APP(3, 50, random_state=0).draw(np.arange(300) % 3)

    def best_at(optimum):
        def solve(tau):
            weight = min(abs(np.log10(max(tau, 1e-12) / optimum)) / 20, 1)
            return (1 - weight) * samples.prevalences + weight * np.eye(3)[[0, 0, 0]]

        return tune(Tikhonov("auto"), [trial(samples, solve)] * 2)

    assert_allclose(best_at(1e4).value, 1e4)
    assert_allclose(best_at(1e-8).value, 1e-8)
    assert not best_at(1e4).at_edge
    assert best_at(1e9).at_edge
    assert best_at(1e9).value == 1e6


def test_choice_at_the_edge_warns_and_names_the_remedy(quick):
    rng = generator(4)
    y = np.arange(300) % N_CLASSES
    S = rng.dirichlet(np.ones(N_CLASSES), 300)  # tells nothing
    with pytest.warns(UserWarning, match="ended at .* the largest value that was tried") as caught:
        q = oq.IBU(
            interpolation=oq.regularizers.AutoStrength(prevalences=np.full((1, N_CLASSES), 1 / N_CLASSES))
        ).fit_scores(S, y)
    assert q.interpolation_ == 1
    assert "pass interpolation as a number" in str(caught[0].message)


def test_training_distribution_that_is_far_from_smooth_warns(quick):
    _, S, y = training()
    keep = (y == 4) | (np.arange(len(y)) % 30 < N_CLASSES)
    with pytest.warns(UserWarning, match="smoothing may add bias. Fit with groups, pass tau=Auto"):
        oq.OPACC(tau="auto").fit_scores(S[keep], y[keep])
    oq.OPACC(tau=oq.regularizers.AutoStrength(prevalences=np.eye(N_CLASSES))).fit_scores(S[keep], y[keep])


# RUN by degrees of freedom


def problem(rng, n=6, N=2000):
    M = 0.7 * np.eye(n) + 0.3 * rng.dirichlet(np.ones(n), n).T
    p = rng.dirichlet(np.full(n, 5.0))
    return M, rng.multinomial(N, M @ p), p


def naive_degrees_of_freedom(tau, q, M, N, order=1):
    """From the definition, with scipy's generalized eigenvalues."""
    free = oq.solve(q, M, method=oq.RUN(tau=0, order=order))
    v = M @ free
    H = N * M.T @ np.diag(q / N / v**2) @ M
    C = difference_matrix(M.shape[1], order)
    return np.sum(1 / (1 + tau * np.maximum(eigh(C.T @ C, H, eigvals_only=True), 0)))


@pytest.mark.parametrize("order", [0, 1, 2])
@pytest.mark.parametrize("n_df", [3.5, 5])
def test_n_df_is_the_tau_with_that_many_degrees_of_freedom(rng, order, n_df):
    M, q, _ = problem(rng)
    estimate = oq.solve(q, M, method=oq.RUN(n_df=n_df, order=order))
    low, high = -10.0, 30.0
    for _ in range(80):
        middle = (low + high) / 2
        low, high = (
            (middle, high) if naive_degrees_of_freedom(np.exp(middle), q, M, 2000, order) > n_df else (low, middle)
        )
    assert_allclose(estimate, oq.solve(q, M, method=oq.RUN(tau=np.exp(low), order=order)), atol=1e-7)


def test_all_degrees_of_freedom_mean_no_smoothing_and_few_a_straight_line(rng):
    M, q, _ = problem(rng)
    assert_allclose(oq.solve(q, M, method=oq.RUN(n_df=6)), oq.solve(q, M, method=oq.RUN(tau=0)), atol=1e-8)
    assert oq.simplex.jaggedness(oq.solve(q, M, method=oq.RUN(n_df=2.001))) < 1e-6


def test_each_spectrum_gets_its_own_tau_in_a_batch(rng):
    M, _, _ = problem(rng)
    q = np.array([rng.multinomial(N, M @ rng.dirichlet(np.ones(6))) for N in (300, 3000, 30_000)])
    batch = oq.solve(q, M, method=oq.RUN(n_df=4))
    assert_allclose(batch, [oq.solve(row, M, method=oq.RUN(n_df=4)) for row in q], atol=1e-8)


def test_n_df_with_acceptance_gives_each_histogram_of_a_batch_its_own_tau(rng):
    q, M = rng.integers(20, 200, size=(7, 6)), np.eye(6) * 0.7 + 0.05
    method = oq.RUN(n_df=4, acceptance=[0.2, 0.4, 0.5, 0.6, 0.8, 1.0])
    assert_allclose(oq.solve(q, M, method), [oq.solve(row, M, method) for row in q], atol=1e-7)


def test_n_df_goes_with_acceptance_and_centre(rng):
    M, q, p = problem(rng)
    smooth = oq.solve(q, M, method=oq.RUN(n_df=2.01, acceptance=np.ones(6)))
    assert oq.simplex.jaggedness(np.log10(1 + 1994 * smooth)) < 1e-3
    assert_allclose(oq.solve(q, M, method=oq.RUN(n_df=2.01, centre=p)), p, atol=0.05)


def test_fitted_run_by_degrees_of_freedom_agrees_with_solve():
    _, S, y = training()
    pool, samples = pool_and_samples()
    run = oq.RUN(n_df=4).fit_scores(S, y)
    assert run.tau_ is None
    solution = run.solve_scores(pool, samples[:3])
    assert solution.converged.all()
    Q = samples[:3].average(run.representation_.transform(pool))
    assert_allclose(oq.solve(Q, run.M_, method=oq.RUN(n_df=4), N=300), solution.p, atol=1e-9)
    fixed = (
        oq.RUN(tau=float(run.freedom(run.summarize(pool, samples[:1]))[0][0]))
        .fit_scores(S, y)
        .solve_scores(pool, samples[:1])
    )
    assert_allclose(fixed.value, solution.value[:1], rtol=1e-6)


def test_directions_without_data_count_no_degree_of_freedom():
    C = difference_matrix(4)[None]
    square = np.diag([1.4, 1.0, 1.7, 0.0])[None]
    for A in (square, square[:, :3]):
        assert_allclose(degrees_of_freedom(np.zeros(1), A, C), 3)
        assert tau_for(3.5, A, C) == 0
        tau = tau_for(2.5, A, C)
        assert_allclose(degrees_of_freedom(tau, A, C), 2.5)


def test_degrees_of_freedom_use_the_likelihood_at_the_solution():
    _, S, y = training()
    pool, samples = pool_and_samples()
    run = oq.RUN(tau=50.0).fit_scores(S, y)
    _, freedom = run.freedom(run.summarize(pool, samples[:1]))
    Q = samples[:1].average(run.representation_.transform(pool))
    free = oq.RUN(tau=0).fit_scores(S, y).predict_scores(pool, samples[:1])
    H = (
        LinearObjective(Poisson(), NoPenalty(), Data(Q, run.M_, samples[:1].sizes))
        .derivatives(free, np.array([0]))
        .hessian
    )
    C = difference_matrix(N_CLASSES)
    expected = np.sum(1 / (1 + 50 * np.maximum(eigh(C.T @ C, H[0], eigvals_only=True), 0)))
    assert_allclose(freedom, expected, rtol=1e-6)


def test_fit_on_items_tunes_with_a_classifier(quick):
    X, _, y = training()
    q = oq.OPACC(oq.classifiers.CrossFitted(GaussianNB(), cv=3), tau="auto").fit(X, y)
    assert q.tau_ == q.tuning_.value
    assert_allclose(q.predict(X), np.full(N_CLASSES, 1 / N_CLASSES), atol=0.05)
