"""oq.unfold: spectra with their errors, from an observed histogram and a response."""

import warnings

import hist
import numpy as np
import pytest
import yaml
from numpy.testing import assert_allclose
from seeds import generator

import ordinalq as oq
from ordinalq import plot
from ordinalq.model_selection import SampleSearch
from ordinalq.regularizers import LogTikhonov, Tikhonov
from ordinalq.simplex import grid_difference_matrix
from ordinalq.solvers.em import STOPS
from ordinalq.unfolding import ShiftedModel, SimulatedEvents, Uncertainty
from ordinalq.unfolding.checks import unfold_toys
from ordinalq.unfolding.export import _flow, _root_objects


def detector(n=6, d=None, smear=0.6):
    """Return a response (d, n), an acceptance (n,), a background (d,) and a falling spectrum (n,)."""
    d = n if d is None else d
    M = np.exp(-0.5 * ((np.arange(d)[:, None] * (n / d) - np.arange(n)) / smear) ** 2)
    a = np.linspace(0.2, 0.8, n)
    return M / M.sum(axis=0), a, np.linspace(40.0, 10.0, d), 8000 * np.exp(-0.6 * np.arange(n))


M, A, B, TRUTH = detector()
EXPECTED = M @ (A * TRUTH) + B
KNOWN = {"acceptance": A, "background": B}
METHODS = {
    "no regularization": oq.RUN(tau=0.0),
    "RUN": oq.RUN(tau=30.0),
    "RUN of the logarithm": oq.RUN(tau=3.0, acceptance=A),
    "n_df": oq.RUN(n_df=4, acceptance=A),
    "IBU": oq.IBU(interpolation=0.0, max_iter=6),
    "smoothed IBU": oq.IBU(interpolation=0.3, order=1, max_iter=6),
    "least squares": oq.OACC(tau=0.01),
}


@pytest.fixture
def observed(rng):
    return rng.poisson(EXPECTED)


@pytest.mark.parametrize("name", METHODS)
def test_the_estimate_is_that_of_solve(name, observed):
    method = METHODS[name]
    spectrum = oq.unfold(observed, M, method=method, **KNOWN)
    filled = spectrum.method  # an acceptance that IBU and RUN lack is filled in
    assert_allclose(spectrum.counts, oq.solve(observed, M, filled, **KNOWN, counts=True), rtol=1e-9)
    assert_allclose(spectrum.shares.sum(), 1)


@pytest.mark.parametrize("name", METHODS)
def test_errors_are_those_of_repeated_experiments(name, rng):
    method = METHODS[name]
    spectrum = oq.unfold(EXPECTED, M, method=method, variances=EXPECTED, **KNOWN)
    toys = oq.solve(rng.poisson(EXPECTED, size=(3000, 6)), M, spectrum.method, **KNOWN, counts=True)
    # 3000 toys know a standard deviation to 1.3%, 5 of which are allowed; the rest is curvature.
    assert_allclose(spectrum.statistical_error, toys.std(axis=0, ddof=1), rtol=0.10)


@pytest.mark.parametrize("seed", range(5))
def test_covariance_of_ibu_agrees_with_toys_on_random_problems(seed):
    rng = generator(seed)
    n, d = int(rng.integers(3, 8)), int(rng.integers(8, 12))
    response = (
        0.5 * np.eye(d)[:, np.linspace(0, d - 1, n).round().astype(int)].T + 0.5 * rng.dirichlet(np.ones(d), n)
    ).T
    expected = response @ rng.uniform(2000, 20000, n)
    method = oq.IBU(interpolation=0.0, max_iter=int(rng.integers(2, 15)))
    spectrum = oq.unfold(expected, response, method=method, variances=expected)
    toys = oq.solve(rng.poisson(expected, size=(20_000, d)), response, method, counts=True)
    assert_allclose(spectrum.statistical_error, toys.std(axis=0, ddof=1), rtol=0.05)
    difference = np.linalg.norm(np.cov(toys, rowvar=False) - spectrum.statistical)
    assert difference < 0.05 * np.linalg.norm(spectrum.statistical)


PYUNFOLD = {"response": np.array([[0.9, 0.1], [0.1, 0.9]]), "errors": np.array([10, 12.2])}


def pyunfold_example(**stop):
    return oq.unfold(
        [100, 150],
        PYUNFOLD["response"],
        variances=PYUNFOLD["errors"] ** 2,
        method=oq.IBU(interpolation=0.0, **stop),
        # An efficiency of 1 with an error of 0.01 stands for 10,000 simulated events per true bin.
        systematics={"simulation": SimulatedEvents(10_000 * PYUNFOLD["response"])},
    )


def propagated(steps, *, transposed):
    """Return the errors of the example by the derivatives of D'Agostini's iteration, as Adye gives them (efficiency 1).

    D_ij = U_ij + n_i / n0_i D0_ij - sum_kl g_k / n0_l U_ik U_lk D0_lj, with D0_ik U_lk U_lj for the last three where
    `transposed`.
    """
    g, n0, D = np.array([100.0, 150.0]), np.full(2, 125.0), np.zeros((2, 2))
    for _ in range(steps):
        U = (PYUNFOLD["response"] * n0).T / (PYUNFOLD["response"] @ n0)
        three = (D, U, U) if transposed else (U, U, D)
        D = U + ((U @ g) / n0)[:, None] * D - np.einsum("k,l,ik,lk,lj->ij", g, 1 / n0, *three)
        n0 = U @ g
    return np.sqrt(((D * PYUNFOLD["errors"]) ** 2).sum(axis=1))


def test_documented_example_of_pyunfold():
    spectrum = pyunfold_example(stop="ks", tol=0.01)
    assert_allclose(spectrum.counts, [94.32086967, 155.67913033], atol=5e-9)
    assert_allclose(spectrum.systematic_error, [0.65570621, 0.65570621], atol=5e-9)
    assert spectrum.n_iter == 4
    # The statistical errors printed there follow, digit for digit, from the derivatives with two factors exchanged.
    # Ours are those of the derivatives themselves, so that the sum, which is fixed, has the error of the sum.
    assert_allclose(propagated(4, transposed=True), [11.16853268, 13.65488168], atol=5e-9)
    assert_allclose(spectrum.statistical_error, propagated(4, transposed=False), rtol=1e-7)
    assert_allclose(np.sqrt(spectrum.statistical.sum()), np.sqrt(100 + 12.2**2), rtol=1e-9)


def test_the_first_iteration_has_the_errors_of_pyunfold():
    assert_allclose(pyunfold_example(max_iter=1).statistical_error, [9.08231248, 11.0254433], atol=5e-8)


def test_stopping_statistics_of_the_example_are_those_of_pyunfold():
    steps = np.array([[125.0, 125.0], *(pyunfold_example(max_iter=k).counts for k in range(1, 5))])
    for name, last in {
        "ks": [0.08, 0.02853015811, 0.01035635445, 0.00383000875],
        "chi-square": [1.61030595813, 0.21099189635, 0.02827590214, 0.00389457604],
        "bayes-factor": [-0.58412384446, -1.96485353846, -2.13847275324, -2.15927078404],
        "max-change": [0.08695652174, 0.03515861791, 0.0134048381, 0.00505013722],
    }.items():
        assert_allclose(STOPS[name](steps[:-1], steps[1:]), last, atol=1e-9)


def test_no_regularization_and_as_many_bins_fit_exactly(observed):
    spectrum = oq.unfold(observed, M, tau=0.0, **KNOWN)
    assert_allclose(spectrum.refolded, observed, rtol=1e-6)
    assert spectrum.n_df == pytest.approx(6, abs=1e-6)
    assert np.isnan(spectrum.p_value)
    assert_allclose(spectrum.bias_error, 0, atol=1e-4 * spectrum.counts.max())


def test_degrees_of_freedom_are_those_requested(observed):
    spectrum = oq.unfold(observed, M, n_df=4, **KNOWN)
    assert spectrum.n_df == pytest.approx(4, abs=0.1)
    assert spectrum.dof == pytest.approx(6 - spectrum.n_df)
    assert 0 <= spectrum.p_value <= 1


def test_chi_square_of_refolded_counts_has_the_degrees_of_freedom_that_are_left(rng):
    response, a, b, truth = detector(d=12)
    G = rng.poisson(response @ (a * truth) + b, (400, 12)).astype(float)
    first = oq.unfold(G[0], response, tau=0.0, acceptance=a, background=b)
    assert first.dof == pytest.approx(6, abs=0.1)
    refolded = first.measurement.fold(first.unfolder.solve(G).T)
    chi_square = ((G - refolded) ** 2 / refolded).sum(axis=1)
    assert first.chi_square == pytest.approx(chi_square[0])
    # Six degrees of freedom: a mean of 400 with standard error sqrt(12 / 400) = 0.17.
    assert chi_square.mean() == pytest.approx(6, abs=0.8)


# How strong?


@pytest.mark.parametrize("rule", ["information", "gcv", "lcurve", "global-correlation", "toys"])
def test_rules_choose_the_minimum_of_their_criterion(rule, observed):
    spectrum = oq.unfold(observed, M, tau=rule, n_toys=20, **KNOWN)
    scan = spectrum.scan
    assert scan.rule == rule
    assert scan.criterion[scan.chosen] == scan.criterion.min()
    assert spectrum.strength == scan.strengths[scan.chosen]
    assert (np.diff(scan.strengths) > 0).all()
    assert (np.diff(scan.n_df) < 1e-6).all()


def test_the_default_is_named_and_rules_choose_iterations_too(observed):
    assert oq.unfold(observed, M, **KNOWN).scan.rule == "evidence"
    spectrum = oq.unfold(observed, M, method=oq.IBU(interpolation=0.0), tau="gcv", **KNOWN)
    assert spectrum.strength == spectrum.n_iter
    assert spectrum.strength in spectrum.scan.strengths


def test_the_default_finds_a_falling_spectrum(rng):
    # A falling spectrum of twelve bins, where RUN(tau=10.0) has 262 and 272 events instead of 367 and 191.
    response, _, _, _ = detector(12, smear=0.9)
    energy = np.logspace(2.5, 4.5, 25)[1::2]
    truth = 20_000 * energy**-1.7 / (energy**-1.7).sum()
    a, b = 0.9 / (1 + (800 / energy) ** 2), np.linspace(50, 0, 12)
    g = rng.poisson(response @ (a * truth) + b)
    spectrum = oq.unfold(g, response, acceptance=a, background=b)
    many = truth > 20
    assert (np.abs(spectrum.counts - truth) < 5 * spectrum.total_error)[many].all()
    assert_allclose(spectrum.counts[5:7], truth[5:7], rtol=0.3)


def test_toys_are_unfolded_as_histograms_alone(rng):
    response, a, b, truth = detector(7)
    G = rng.poisson((truth * a) @ response.T + b, size=(3, 7)).astype(float)
    alone = [oq.unfold(g, response, acceptance=a, background=b) for g in G]
    toys = unfold_toys(alone[0], G)
    assert_allclose(toys.T, [one.counts for one in alone], rtol=1e-6)
    assert_allclose(toys.half_length(0.6827, bias=True), [one.total_error for one in alone], rtol=1e-4)


# Systematics


def test_linear_and_toy_propagation_agree(observed):
    sources = {
        "simulation": SimulatedEvents(3000 * M, generated=3000 / A),
        "acceptance": Uncertainty("acceptance", 0.03, relative=True, correlated=True),
        "background": Uncertainty("background", 0.2, relative=True),
        "response": Uncertainty("response", 0.03, relative=True),
        "scale": ShiftedModel(np.roll(M, 1, axis=0) * 0.02 + 0.98 * M),
    }
    linear = oq.unfold(observed, M, n_df=5, systematics=sources, **KNOWN)
    toys = oq.unfold(observed, M, n_df=5, systematics=sources, propagation="toys", n_toys=60, **KNOWN)
    for name in sources:
        a, b = (np.sqrt(np.diag(spectrum.systematic[name])) for spectrum in (linear, toys))
        # 60 toys know a standard deviation to 9%; what is not linear adds to that.
        assert (np.abs(b - a) <= 0.45 * a + 0.01 * linear.counts).all()
    assert_allclose(linear.covariance, linear.statistical + sum(linear.systematic.values()))


def test_an_acceptance_that_is_off_moves_the_estimate_by_as_much(observed):
    sources = {"a": Uncertainty("acceptance", 0.05, relative=True, correlated=True)}
    spectrum = oq.unfold(observed, M, tau=0.0, systematics=sources, **KNOWN)
    assert_allclose(spectrum.systematic_error, 0.05 * spectrum.counts, rtol=1e-6)


def test_an_alternative_moves_the_estimate_as_unfolding_with_it_does(observed):
    other = 0.98 * M + 0.02 * np.roll(M, 1, axis=0)
    spectrum = oq.unfold(observed, M, tau=0.0, systematics={"scale": ShiftedModel(other)}, **KNOWN)
    moved = oq.unfold(observed, other, tau=0.0, **KNOWN).counts - spectrum.counts
    assert_allclose(spectrum.systematic_error, np.abs(moved), rtol=0.1, atol=0.01 * np.abs(moved).max())


@pytest.mark.parametrize(
    ("source", "message"),
    [
        (Uncertainty("efficiency", 0.1), "of must be one of"),
        (Uncertainty("background", -0.1), "error must be >= 0"),
        (Uncertainty("background", np.ones(5)), "error must be 6 finite numbers"),
        (Uncertainty("background", "5%"), "error must be numbers"),
        (ShiftedModel(), "needs a response"),
        (ShiftedModel(-M), "must be >= 0"),
        (SimulatedEvents(0 * M), "some events in every true bin"),
        (0.1, "must be SimulatedEvents, Uncertainty or ShiftedModel"),
    ],
)
def test_impossible_sources_are_rejected(source, message, observed):
    with pytest.raises((ValueError, TypeError), match=message):
        oq.unfold(observed, M, tau=0.0, systematics={"x": source}, **KNOWN)


def test_a_source_must_not_hide_a_column_of_the_table(observed):
    with pytest.raises(ValueError, match="systematics must have names other than"):
        oq.unfold(observed, M, tau=0.0, systematics={"error": Uncertainty("background", 1.0)}, **KNOWN)


def test_observed_bins_without_events_do_not_keep_a_rule_from_smoothing():
    response = np.array([[0.8, 0.2, 0.0, 0.0], [0.2, 0.6, 0.2, 0.0], [0.0, 0.2, 0.6, 0.2], [0.0, 0.0, 0.2, 0.8]])
    strengths = oq.unfold([230, 60, 2, 0], response).scan.strengths
    assert (strengths > 0).all()
    assert (np.diff(strengths) > 0).all()


# What was probably meant


@pytest.mark.parametrize(
    ("counts", "response", "known", "message"),
    [
        (np.ones((3, 6)), M, {}, "unfold takes one"),
        (np.ones((1, 6)), M, {}, r"counts.ravel\(\)"),
        (np.ones(8), detector(6, 8)[0].T, {}, r"give response\.T"),
        ([10, 20], [[0.9, 0.1], [0.5, 0.5]], {}, r"rows of response sum to one.*response\.T"),
        ([5, 6], [[0.5], [0.5]], {}, "at least 2 true bins"),
        (np.ones(6), 1000 * M, {}, "SimulatedEvents"),
        (-np.ones(6), M, {}, "background="),
        (np.zeros(6), M, {}, "positive sum"),
        (np.full(6, 5e-324), M, {}, "counts must have a sum of at least 1e-150, got"),
        (np.full(6, 1e300), M, {}, "counts must be at most 1.66667e\\+149 per bin, got 1e\\+300"),
        ([10**400] * 6, M, {}, "counts must be numbers"),
        (np.ones(6), np.full_like(M, 1.7e308), {}, "columns of response must sum to at most one"),
        (np.ones(6), np.empty((6, 0)), {}, r"response must have observed bins and .* bins, got shape \(6, 0\)"),
        (np.ones(6), M, {"variances": np.ones(5)}, "variances must be >= 0, one per count"),
        (np.ones(6), M, {"edges": np.arange(6)}, "edges must be 7 ascending numbers"),
        (np.ones(6), M, {"edges": 5}, "edges must be 7 ascending numbers"),
        (np.ones(6), M, {"edges": []}, "edges must be 7 ascending numbers"),
        (np.ones(6), M, {"tau": "best"}, "tau must be one of"),
        (np.ones(6), M, {"tau": 1.0, "n_df": 3}, "n_df must be None with tau, got 3. Pass one"),
        (np.ones(6), M, {"method": oq.IBU(), "n_df": 3}, "IBU has no such parameter"),
        (np.ones(6), M, {"method": oq.IBU(), "tau": "lcurve"}, "has no penalty"),
        (np.ones(6), M, {"method": oq.ACC(), "tau": "gcv"}, "no strength to choose"),
        (np.ones(6), M, {"method": oq.PCC()}, "solves q = M p"),
        (np.ones(6), M, {"propagation": "exact"}, "propagation must be one of"),
        (np.ones(6), M, {"background": np.ones(6)}, "nothing is left"),
    ],
)
def test_error_messages_name_the_probable_intention(counts, response, known, message):
    with pytest.raises((ValueError, TypeError), match=message):
        oq.unfold(counts, response, **known)


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("method", [None, oq.RUN(tau=1.0), oq.IBU()])
@pytest.mark.parametrize("size", [1.0, 1e6, 1e9, 1e12, 1e18])
def test_a_response_that_determines_nothing_gives_finite_errors_and_all_events_or_a_flag(size, method, rng):
    column = rng.dirichlet(np.full(6, 5.0))[:, None]
    for response in (np.ones((1, 3)), np.repeat(column, 4, axis=1), column + 1e-15 * rng.random((6, 4))):
        counts = np.round(size * np.arange(1, len(response) + 1))
        found = oq.unfold(counts, response, method=method)
        assert np.isfinite(found.covariance).all()
        # Columns that differ in their last digit cannot be optimized over from 1e6 events on, which is flagged.
        assert abs(found.counts.sum() - counts.sum()) < 0.01 * np.sqrt(counts.sum()) or not found.converged


def test_numbers_that_are_not_counts_are_noted(observed):
    with pytest.warns(UserWarning, match="variances="):
        oq.unfold(observed * 0.37, M, tau=0.0)


# Weights


def test_a_bin_whose_variance_is_zero_does_not_count_in_the_chi_square(observed):
    variances = observed.astype(float)
    variances[0] = 0
    spectrum = oq.unfold(observed, M, n_df=5, variances=variances)
    off, expected = (observed - spectrum.refolded)[1:], spectrum.refolded[1:]
    assert_allclose(spectrum.chi_square, (off**2 / expected).sum())  # variances of the counts to be expected


def test_weighted_counts_have_the_errors_of_their_variances(observed):
    run = {"method": oq.RUN(n_df=5)}
    for known in ({"n_df": 5}, run):
        plain = oq.unfold(observed, M, **known)
        weighted = oq.unfold(2.5 * observed, M, variances=2.5**2 * observed, **known)
        assert_allclose(weighted.counts, 2.5 * plain.counts, rtol=1e-6)
        assert_allclose(weighted.error, 2.5 * plain.error, rtol=0.02)
    solved = oq.solve(2.5 * observed, M, weighted.method, variances=2.5**2 * observed, counts=True)
    assert_allclose(weighted.counts, solved, rtol=1e-9)
    assert weighted.chi_square == pytest.approx(plain.chi_square, rel=0.05)


# Histograms


def test_histograms_in_and_out(rng):
    energy = hist.axis.Regular(4, 1, 9, name="energy")
    signal = hist.axis.Regular(6, 0, 10, name="signal")
    true = rng.uniform(1, 9, 20_000)
    simulated, seen = hist.Hist(signal, energy), hist.Hist(signal)
    simulated.fill(signal=true + rng.normal(0, 0.7, 20_000), energy=true)
    seen.fill(1 + rng.exponential(2.0, 3000))
    spectrum = oq.unfold(seen, simulated)
    assert_allclose(spectrum.edges, [1, 3, 5, 7, 9])
    assert list(spectrum.systematic) == ["simulation"]
    result = spectrum.histogram()
    assert isinstance(result, hist.Hist)
    assert result.axes[0] == energy
    assert_allclose(result.values(), spectrum.counts)
    assert_allclose(result.variances(), spectrum.total_error**2)
    assert_allclose(spectrum.histogram(bias=False).variances(), spectrum.error**2)


def test_weighted_histograms_bring_their_variances(rng):
    signal = hist.axis.Regular(6, 0, 6, name="signal")
    seen = hist.Hist(signal, storage=hist.storage.Weight())
    seen.fill(rng.uniform(0, 6, 2000), weight=rng.uniform(0.5, 1.5, 2000))
    spectrum = oq.unfold(seen, M, tau=0.0)
    assert_allclose(spectrum.error, oq.unfold(seen.values(), M, tau=0.0, variances=seen.variances()).error)
    with pytest.raises(TypeError, match="histogram needs edges, or counts and response"):
        spectrum.histogram()


# What is shown


def test_table_and_text(observed):
    sources = {"scale": Uncertainty("background", 0.1, relative=True)}
    spectrum = oq.unfold(observed, M, edges=np.arange(7.0), systematics=sources, **KNOWN)
    table = spectrum.frame()
    assert list(table) == ["low", "high", "events", "share", "statistical", "scale", "error", "bias", "total"]
    assert_allclose(table["events"], spectrum.counts)
    assert_allclose(table["error"] ** 2, table["statistical"] ** 2 + table["scale"] ** 2)
    assert "by evidence" in str(spectrum)
    assert "degrees of freedom" in str(spectrum)


def test_intervals_hold_the_bias_and_are_not_negative(observed):
    spectrum = oq.unfold(observed, M, n_df=3, **KNOWN)
    narrow, wide = (spectrum.interval(0.95, bias=bias) for bias in (False, True))
    assert (wide[0] <= narrow[0]).all()
    assert (wide[1] >= narrow[1]).all()
    assert (wide[0] >= 0).all()


def test_empty_bins_have_the_error_of_bins_that_could_be_negative(rng):
    truth = np.array([40_000.0, 8000.0, 1500.0, 250.0, 40.0, 4.0])
    unfolder = oq.unfold((M @ truth).round(), M, tau=0.0).unfolder
    fit = unfolder.solve(unfolder.draw(truth, 400, rng))
    C = unfolder.statistical(fit, unfolder.jacobian(fit))
    empty = fit.T[:, -1] <= 0
    assert empty.mean() > 0.2
    error = np.sqrt(C[empty, -1, -1])
    # Without an error intervals of 95% would miss in all of these.
    assert (truth[-1] <= 2 * error).mean() > 0.9
    assert np.linalg.eigvalsh(C).min() > 0


def off_by(part, rng):
    other = M * (1 + part * rng.normal(size=M.shape))
    return other / other.sum(axis=0)


def test_counts_vary_as_the_stated_covariance_predicts(rng):
    known = {
        "response": Uncertainty("response", 0.05, relative=True),
        "acceptance": Uncertainty("acceptance", 0.03, relative=True, correlated=True),
        "background": Uncertainty("background", 0.2, relative=True),
    }
    unfolder = oq.unfold(EXPECTED.round(), M, tau=0.0, systematics=known, **KNOWN).unfolder
    drawn = np.cov(unfolder.draw(TRUTH, 4000, rng), rowvar=False)
    spread = unfolder.spread(TRUTH[None], acceptance=True)[0]
    assert_allclose(drawn, spread, atol=0.15 * np.sqrt(np.outer(np.diag(spread), np.diag(spread))).max())
    assert_allclose(np.diag(drawn), np.diag(spread), rtol=0.2)


def test_a_stated_error_of_the_response_is_not_taken_for_structure(rng):
    truth = np.full(6, 200_000.0)
    known = {"systematics": {"response": Uncertainty("response", 0.05, relative=True)}}
    ratios = []
    for _ in range(4):
        counts = rng.poisson(off_by(0.05, rng) @ truth)
        without, with_it = oq.unfold(counts, M), oq.unfold(counts, M, **known)
        assert with_it.n_df <= without.n_df
        assert with_it.chi_square < oq.unfold(counts, M, n_df=with_it.n_df).chi_square
        ratios.append(((with_it.counts - truth) ** 2).sum() / ((without.counts - truth) ** 2).sum())
    assert np.median(ratios) < 1


def test_plots(observed):
    spectrum = oq.unfold(observed, M, edges=np.logspace(2, 4, 7), **KNOWN)
    ax = spectrum.plot(truth=TRUTH, model=TRUTH * 1.1, xlabel="energy / GeV")
    assert ax.get_yscale() == "log"
    assert ax.get_xscale() == "log"
    assert {text.get_text() for text in ax.figure.legends[0].get_texts()} >= {"truth", "model", "estimate"}
    scan = spectrum.plot_scan()
    assert "evidence" in scan.get_ylabel()
    with pytest.raises(ValueError, match="truth must be one number per bin"):
        plot.spectrum(spectrum, truth=[1.0, 2.0])
    with pytest.raises(ValueError, match="the result has no scan"):
        oq.unfold(observed, M, tau=0.0).plot_scan()


# Checks


def test_closure_holds_without_regularization_and_fails_with_too_much(observed):
    line = TRUTH.copy()
    line[3] *= 3
    good = oq.unfolding.closure_test(oq.unfold(observed, M, tau=0.0, **KNOWN), line)
    assert good.passed
    assert np.abs(good.frame()["bias_in_errors"]).max() < 1e-3
    bad = oq.unfolding.closure_test(oq.unfold(observed, M, n_df=2.05, **KNOWN), line)
    assert not bad.passed
    assert "fails" in bad.sentence
    assert bad.sentence.endswith("Weaker regularization, such as a smaller tau, reduces it.")
    assert "smaller tau" not in good.sentence
    assert bad.plot().get_ylabel() == "bias / statistical error"


def test_bottom_line_holds_without_regularization_and_fails_for_a_line_that_is_smoothed_away(observed):
    models = {"truth": TRUTH, "steeper": TRUTH * np.exp(-0.02 * np.arange(6))}
    good = oq.unfolding.bottom_line_test(oq.unfold(observed, M, tau=0.0, **KNOWN), models)
    assert good.passed
    assert list(good.frame()["model"]) == ["truth", "steeper"]
    line = TRUTH.copy()
    line[3] *= 2
    seen = np.round(M @ (A * line) + B)
    smooth = oq.unfold(seen, M, n_df=2.05, **KNOWN)
    assert oq.unfolding.bottom_line_test(smooth, {"the truth": line}).passed  # the total covariance includes the bias
    bad = oq.unfolding.bottom_line_test(smooth, {"the truth": line}, bias=False)
    assert not bad.passed
    assert "the truth" in bad.sentence
    assert bad.plot().get_xscale() == "log"


def test_models_that_the_counts_exclude_do_not_judge_the_unfolding(observed):
    smooth, flat = oq.unfold(observed, M, n_df=2.05, **KNOWN), np.full(6, TRUTH.mean())
    nothing = oq.unfolding.bottom_line_test(smooth, {"flat": flat})
    assert not nothing.passed
    assert "cannot be tested" in nothing.sentence
    plain = oq.unfold(observed, M, tau=0.0, **KNOWN)
    assert oq.unfolding.bottom_line_test(plain, {"flat": flat, "estimate": plain.counts}).passed
    with pytest.raises(TypeError, match="mapping of names to spectra"):
        oq.unfolding.bottom_line_test(plain, [TRUTH])


def test_coverage_is_right_without_regularization(observed):
    found = oq.unfolding.coverage_test(oq.unfold(observed, M, tau=0.0, **KNOWN), TRUTH, n_toys=400)
    table = found.frame()
    # 400 toys: a share of 0.683 has a standard error of 0.023, a mean over bins less.
    assert_allclose(table["without_bias"], 0.6827, atol=0.1)
    assert table["without_bias"].mean() == pytest.approx(0.6827, abs=0.05)
    assert "toys" in found.sentence
    assert found.plot().get_ylim()[1] > 1


def test_coverage_of_the_default_repeats_its_rule_for_every_toy(observed):
    found = oq.unfolding.coverage_test(oq.unfold(observed, M, **KNOWN), n_toys=20)
    assert (found.frame()["with_bias"] >= found.frame()["without_bias"]).all()
    with pytest.raises(ValueError, match="cannot be repeated"):
        oq.unfolding.coverage_test(oq.unfold(observed, M, tau="toys", n_toys=5, **KNOWN), n_toys=5)
    for wrong in (TRUTH[:3], 0 * TRUTH):
        with pytest.raises(ValueError, match="a spectrum must be numbers >= 0, not all zero"):
            oq.unfolding.closure_test(oq.unfold(observed, M, tau=0.0, **KNOWN), wrong)


# Two dimensions


def grid_detector():
    """Return a response (7, 6, 6, 5), an acceptance (6, 5) and a smooth spectrum (6, 5)."""
    one, two = detector(6, 7)[0], detector(5, 6)[0]
    i, j = np.arange(6)[:, None], np.arange(5)
    return np.einsum("ac,bd->abcd", one, two), 0.3 + 0.1 * i * np.ones(5), 4000 * np.exp(-0.3 * i - 0.2 * j)


def test_two_dimensions_close_without_noise():
    response, a, truth = grid_detector()
    expected = np.einsum("abcd,cd->ab", response, a * truth)
    spectrum = oq.unfold(expected, response, tau=0.0, acceptance=a, variances=expected)
    assert spectrum.counts.shape == (6, 5)
    assert spectrum.refolded.shape == (7, 6)
    assert_allclose(spectrum.counts, truth, rtol=1e-6)
    # Smooth along each axis of the logarithm: the regularizer does not see it.
    assert_allclose(oq.unfold(expected, response, tau=10.0, acceptance=a, variances=expected).counts, truth, rtol=2e-3)


def test_two_dimensions_have_a_table_a_rule_and_errors(rng):
    response, a, truth = grid_detector()
    g = rng.poisson(np.einsum("abcd,cd->ab", response, a * truth))
    edges = [np.arange(7.0), np.arange(6.0)]
    spectrum = oq.unfold(g, response, acceptance=a, edges=edges)
    assert spectrum.error.shape == (6, 5)
    assert spectrum.n_df < 20
    assert (np.abs(spectrum.counts - truth) < 6 * spectrum.total_error).all()
    table = spectrum.frame()
    assert list(table)[:4] == ["low_1", "high_1", "low_2", "high_2"]
    assert_allclose(table["events"].to_numpy().reshape(6, 5), spectrum.counts)
    panels = spectrum.plot(truth=truth)
    assert [ax.get_title(loc="left") for ax in panels] == ["0 to 1", "1 to 2", "2 to 3", "3 to 4", "4 to 5"]
    assert_allclose(panels[3].patches[1].get_data().values, spectrum.counts[:, 3])
    with pytest.raises(ValueError, match="ax must be None"):
        spectrum.plot(ax=panels[0])
    with pytest.raises(ValueError, match="must not smooth along one axis"):
        oq.unfold(g, response, method=oq.IBU(order=1, interpolation=0.5))


@pytest.mark.parametrize("order", [0, 1, 2])
@pytest.mark.parametrize("shape", [(6, 5), (4, 2), (3, 4, 5)])
def test_differences_of_a_grid_are_finite_differences_along_its_axes(shape, order, rng):
    x = rng.normal(size=shape)
    C = grid_difference_matrix(shape, order)
    along = [np.diff(x, order + 1, axis=k).ravel() for k in range(len(shape)) if shape[k] >= order + 2]
    assert_allclose(np.abs(C @ x.ravel()), np.abs(np.concatenate(along)), atol=1e-12)


@pytest.mark.parametrize(
    "regularizer", [Tikhonov(2.0, shape=(6, 5)), LogTikhonov(2.0, acceptance=np.ones(30), shape=(6, 5))]
)
def test_derivatives_of_a_penalty_on_a_grid_are_finite_differences_of_its_value(regularizer, rng):
    regularizer.check(30)
    P, sizes, h = rng.dirichlet(np.full(30, 5.0))[None], np.array([1000.0]), 1e-6
    at = regularizer.derivatives(P, sizes)
    steps = [(P + h * row, P - h * row) for row in np.eye(30)]
    value = [
        (regularizer.derivatives(a, sizes).value - regularizer.derivatives(b, sizes).value) / (2 * h) for a, b in steps
    ]
    assert_allclose(at.gradient[0], np.array(value)[:, 0], rtol=1e-4, atol=1e-5 * np.abs(at.gradient).max())
    slope = [
        (regularizer.derivatives(a, sizes).gradient - regularizer.derivatives(b, sizes).gradient)[0] for a, b in steps
    ]
    assert_allclose(at.hessian[0], np.array(slope) / (2 * h), rtol=1e-4, atol=1e-5 * np.abs(at.hessian).max())


def test_a_shape_that_is_not_that_of_the_classes_is_rejected():
    with pytest.raises(ValueError, match="shape must have 30 bins"):
        Tikhonov(1.0, shape=(6, 4)).check(30)
    with pytest.raises(ValueError, match="order must be at most"):
        grid_difference_matrix((2, 2), order=1)


FAKES = np.linspace(0.3, 0.05, 6)


@pytest.mark.parametrize("method", [None, oq.RUN(tau=3.0)])
@pytest.mark.parametrize(
    ("response", "acceptance"), [(M * A, "columns"), (M, A), (M, None)], ids=["columns", "given", "none"]
)
def test_an_identical_alternative_moves_nothing_with_fakes(response, acceptance, method, observed):
    same = {"same": ShiftedModel(response), "both": ShiftedModel(response, acceptance=acceptance)}
    spectrum = oq.unfold(
        observed, response, acceptance=acceptance, fakes=FAKES, systematics=same, method=method, n_df=4
    )
    assert_allclose(spectrum.systematic_error, 0, atol=1e-8 * spectrum.counts.max())
    stored = oq.unfolding.Unfolding.from_json(spectrum.to_json())
    assert_allclose(stored.measurement.fakes, FAKES)
    assert_allclose(stored.measurement.without_fakes()[0], M, rtol=1e-12, atol=1e-15)


def test_errors_of_the_response_are_those_before_fakes_are_added(observed):
    events = np.round(1000 * M) + 1
    P, V = events / events.sum(axis=0), np.zeros((6, 6))
    V[2, 1] = events[2, 1]
    step = np.sqrt(V) / events.sum(axis=0)
    step -= P * step.sum(axis=0)
    sources = {
        "simulation": SimulatedEvents(events, variances=V),
        "response": Uncertainty("response", step, correlated=True),
        "model": ShiftedModel(P + step),
    }
    spectrum = oq.unfold(observed, P, acceptance=A, fakes=FAKES, tau=0.0, systematics=sources)
    one, two, three = (spectrum.moves[name][0] for name in sources)
    assert abs(three).max() > 1
    assert_allclose(one, three, rtol=1e-6)
    assert_allclose(two, three, rtol=1e-6)


def test_an_error_of_the_acceptance_is_one_of_events_with_true_partners(observed):
    sources = {"acceptance": Uncertainty("acceptance", 0.05), "model": ShiftedModel(acceptance=A + 0.05)}
    spectrum = oq.unfold(observed, M, acceptance=A, fakes=FAKES, tau=0.0, systematics=sources)
    assert_allclose(spectrum.moves["acceptance"].sum(axis=0), spectrum.moves["model"][0], rtol=1e-6)
    made = {"simulation": SimulatedEvents(1000 * M, variances=np.zeros((6, 6)), generated=np.full(6, 1000 / 0.2))}
    spectrum = oq.unfold(observed, M, acceptance=A, fakes=FAKES, tau=0.0, systematics=made)
    expected = spectrum.counts * np.sqrt((1 - A) / A / 5000)
    assert_allclose(spectrum.systematic_error, expected, rtol=1e-3)


def test_events_need_a_quantifier_on_class_scores(rng):
    true = np.repeat([0, 1, 2], 100)
    X = true[:, None] + rng.normal(0, 0.7, (300, 3))  # as many columns as classes
    with pytest.raises(TypeError, match="fitted quantifier on class scores"):
        oq.unfolding.unfold_events(oq.HDx().fit(X, true), X)
    samples = oq.protocols.APP(5, 40, small_pool="repeat", random_state=0).draw(true)
    search = SampleSearch(oq.OPACC(), {"tau": [0.0, 0.1]}, samples=samples).fit(X, true, X)
    assert oq.unfolding.unfold_events(search, X, n_bins=3).observed.sum() == 300


def test_hepdata_has_numbers_and_names_as_they_are(tmp_path):
    counts = [1e20, 2e20, 3e20]
    sources = {"NaN Infinity 1e+16": oq.unfolding.Luminosity(1e-5)}
    spectrum = oq.unfold(counts, np.eye(3), tau=0.0, edges=[1e-6, 1e-5, 1e16, 1e17], systematics=sources)
    table = yaml.safe_load(spectrum.to_hepdata(tmp_path)[1].read_text())
    bins = [(part["low"], part["high"]) for part in table["independent_variables"][0]["values"]]
    assert bins == [(1e-6, 1e-5), (1e-5, 1e16), (1e16, 1e17)]
    rows = table["dependent_variables"][0]["values"]
    assert [row["value"] for row in rows] == spectrum.counts.tolist()
    assert rows[0]["errors"][1]["label"] == "sys,NaN Infinity 1e+16"
    assert all(isinstance(error["symerror"], float) for row in rows for error in row["errors"])


@pytest.mark.parametrize("value", [1e16, -1e16, 1e-5, 1.5e-7, 0.0, 12.0, 1e300, np.inf, -np.inf])
def test_numbers_of_yaml_are_read_back(value):
    assert yaml.safe_load(_flow({"value": value, "also": [value]})) == {"value": value, "also": [value]}
    assert np.isnan(yaml.safe_load(_flow(np.nan)))


def test_sources_with_similar_names_have_different_files(tmp_path):
    names = ["jes up", "jes-up", "jes up 2", "JES up"]
    sources = {name: oq.unfolding.Luminosity(0.01 * (k + 1)) for k, name in enumerate(names)}
    spectrum = oq.unfold([480, 320, 210], np.eye(3), tau=0.0, edges=[1, 2, 4, 8], systematics=sources)
    files = spectrum.to_hepdata(tmp_path, name="submission")
    assert len({file.name.lower() for file in files}) == len(files) == len(list(tmp_path.iterdir()))
    for entry in yaml.safe_load_all(files[0].read_text()):
        values = yaml.safe_load((tmp_path / entry["data_file"]).read_text())["dependent_variables"][0]["values"]
        for name in names:
            if entry["name"].endswith(f"covariance (sys,{name})"):
                assert_allclose([part["value"] for part in values], spectrum.systematic[name].ravel())
    keys = [key for key, _ in _root_objects(spectrum)]
    assert len({key.lower() for key in keys}) == len(keys)
    assert {"covariance_jes_up", "covariance_jes_up_2", "covariance_jes_up_2_2"} <= set(keys)


def one_sided(underflow, overflow, *, outside=200):
    """Return counts and response histograms, with `outside` events from each true flow bin that exists."""
    observed = hist.axis.Regular(4, 0, 4, underflow=underflow, overflow=overflow, name="observed")
    true = hist.axis.Regular(4, 0, 4, underflow=underflow, overflow=overflow, name="true")
    response = hist.Hist(observed, true)
    response.view(flow=False)[...] = 1000 * np.eye(4) + 100
    events = response.view(flow=True)
    if underflow:
        events[:2, 0] = outside
    if overflow:
        events[-2:, -1] = outside
    counts = hist.Hist(observed)
    counts.view(flow=True)[...] = events.sum(axis=1)
    return counts, response


@pytest.mark.parametrize(("underflow", "overflow"), [(True, False), (False, True), (True, True)])
def test_events_from_one_flow_side_are_noted(underflow, overflow):
    counts, response = one_sided(underflow, overflow)
    with pytest.warns(UserWarning, match="true underflow and overflow") as noted:
        oq.unfold(counts, response, tau=0.0)
    assert noted[0].filename == __file__
    edges = oq.unfold(counts, response, flow=True, tau=0.0).measurement.edges[0]
    assert [edges[0] == -np.inf, edges[-1] == np.inf] == [underflow, overflow]


def test_observed_flow_bins_alone_are_not_noted():
    counts, response = one_sided(False, True, outside=0)
    response.view(flow=True)[-1, :-1] = 500  # true events of the range that are observed above it
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        oq.unfold(counts, response, tau=0.0)


@pytest.mark.parametrize(("side", "place"), [("underflow", 0), ("overflow", -1)])
def test_a_true_flow_bin_without_events_is_named(side, place):
    counts, response = one_sided(True, True)
    response.view(flow=True)[:, place] = 0
    with pytest.raises(ValueError, match=f"the {side} of true axis 1. Use {side}=False"):
        oq.unfold(counts, response, flow=True)
    response.view(flow=True)[:, 2] = 0
    with pytest.warns(UserWarning, match="left out"), pytest.raises(ValueError, match="none in bin 2 of 4"):
        oq.unfold(counts, response)


def test_counts_that_are_not_whole_are_noted_at_the_call(observed):
    with pytest.warns(UserWarning, match="whole numbers") as noted:
        oq.unfold(observed + 0.5, M)
    assert noted[0].filename == __file__


def test_given_variances_of_simulated_events_replace_those_of_a_histogram():
    counts, response = one_sided(False, False)
    V = 9 * response.values()
    sources = [SimulatedEvents(response), SimulatedEvents(response, variances=V), SimulatedEvents(response.values())]
    one, three, plain = (
        oq.unfold(counts, response, tau=0.0, systematics={"simulation": source}).systematic_error for source in sources
    )
    assert_allclose(three, 3 * one)
    assert_allclose(plain, one)


def test_a_response_histogram_without_variances_is_noted():
    counts, response = one_sided(False, False)
    V = response.values()
    response *= 2.0
    assert response.variances() is None
    with pytest.warns(UserWarning, match="statistics of the simulation are not included") as noted:
        assert not oq.unfold(counts, response, tau=0.0).systematic
    assert noted[0].filename == __file__
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        known = {"limited sample": SimulatedEvents(response, variances=4 * V)}
        assert oq.unfold(counts, response, tau=0.0, systematics=known).systematic_error.all()


@pytest.mark.parametrize("propagation", ["linear", "toys"])
@pytest.mark.parametrize("method", [oq.RUN(tau=3.0), oq.IBU(interpolation=0.0, max_iter=6)], ids=["RUN", "IBU"])
def test_a_constant_fraction_of_fakes_scales_the_estimate(method, propagation, observed):
    a = np.linspace(0.6, 0.95, 6)
    known = {
        "acceptance": a,
        "method": method,
        "propagation": propagation,
        "n_toys": 20,
        "systematics": {"acceptance": Uncertainty("acceptance", 0.05), "model": ShiftedModel(detector(smear=0.65)[0])},
    }
    plain = oq.unfold(observed, M, **known)
    spectrum = oq.unfold(observed, M, fakes=np.full(6, 0.5), **known)
    assert spectrum.measurement.acceptance.max() > 1
    assert_allclose(spectrum.method.acceptance, a / a.max())
    assert_allclose(spectrum.counts, plain.counts / 2, rtol=1e-5)
    assert_allclose(spectrum.statistical_error, plain.statistical_error / 2, rtol=1e-3)
    assert_allclose(spectrum.systematic_error, plain.systematic_error / 2, rtol=1e-3)
