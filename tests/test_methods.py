"""Promises of the methods: limits, symmetry, recovery, the simplex; naive twins of M and q."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from seeds import generator
from sklearn.exceptions import ConvergenceWarning

import ordinalq as oq
from ordinalq.losses import CumulativeSquares, Energy, LeastSquares, Poisson
from ordinalq.quantifiers.linear import LinearQuantifier
from ordinalq.regularizers import NoPenalty, Tikhonov
from ordinalq.representations import MeanDistances, Partition, RankHistogram
from ordinalq.solvers.newton import NewtonSolver

CATALOG = {entry.name: entry for entry in oq.catalog(beyond=False)}
REGULARIZED = {"OACC": "ACC", "OPACC": "PACC", "OHDx": "HDx", "OHDy": "HDy", "OEDy": "EDy"}
# Methods that can be fitted on scores or features alone.
SCORED = [name for name in CATALOG if name not in ("OQT", "ARC")]


def fit(name, data, **params):
    V, y, S, X, Z, _ = data
    cls = CATALOG[name].cls
    features = name in ("HDx", "OHDx")
    return cls(**params).fit_scores(X if features else V, y), Z if features else S


def items(rng, n):
    """Return scores (n, 5), codes and features (n, 3)."""
    codes = rng.permutation(np.repeat(np.arange(5), n // 5))
    X = np.column_stack([codes + rng.normal(size=n), codes**2 / 4 + rng.normal(size=n), rng.normal(size=n)])
    logits = -np.square(X[:, :1] - np.arange(5)) + 0.2 * rng.normal(size=(n, 5))
    S = np.exp(logits)
    return S / S.sum(axis=1, keepdims=True), codes, X


@pytest.fixture(scope="module")
def data():
    """Held-out scores V (2000, 5), labels 1..5, pool scores S (2500, 5), features X, Z and samples of 400 items."""
    rng = generator(5)
    V, codes, X = items(rng, 2000)
    S, pool, Z = items(rng, 2500)
    samples = oq.protocols.APP(30, 400, random_state=3).draw(pool)
    return V, codes + 1, S, X, Z, samples


@pytest.mark.parametrize(("ordinal", "plain"), REGULARIZED.items())
def test_tau_zero_is_the_plain_method(ordinal, plain, data):
    regularized, S = fit(ordinal, data, tau=0.0)
    unregularized, _ = fit(plain, data)
    expected = unregularized.predict_scores(S, data[-1])
    assert_allclose(regularized.predict_scores(S, data[-1]), expected, atol=1e-7)


@pytest.mark.parametrize("span", ["classes", "data"])
def test_opdf_without_tau_is_least_squares_on_the_cumulated_histogram(span, data):
    regularized, S = fit("OPDF", data, tau=0.0, span=span)
    f = RankHistogram(span=span).fit(data[0], data[1] - 1, 5)
    F = np.asarray(f.transform(data[0]))
    M = np.array([F[data[1] == c].mean(axis=0) for c in range(1, 6)]).T
    kept = M.any(axis=1) | (span == "classes")
    D = np.cumsum(M[kept], axis=0)[:-1]
    Q = np.cumsum(data[-1].average(f.transform(S))[:, kept], axis=1)[:, :-1]
    P = regularized.predict_scores(S, data[-1])
    # Optimality of least squares over the simplex, written out.
    G = 2 * (P @ D.T - Q) @ D
    ghat = G - (P * G).sum(axis=1, keepdims=True)
    assert ghat.min() > -1e-10
    assert np.abs(P * ghat).max() < 1e-10


@pytest.mark.parametrize("name", [name for name in SCORED if "tau" in CATALOG[name].cls().get_params()])
def test_strong_regularization_makes_estimates_smooth(name, data):
    jagged, S = fit(name, data, tau=1e-9)
    smooth, _ = fit(name, data, tau=1e9)
    assert oq.simplex.jaggedness(smooth.predict_scores(S, data[-1])).max() < 1e-6
    assert oq.simplex.jaggedness(jagged.predict_scores(S, data[-1])).max() > 1e-3


@pytest.mark.parametrize("name", ["OACC", "OPACC", "OHDy", "OEDy", "OPDF", "RUN"])
def test_strong_regularization_towards_a_centre_gives_its_shape(name, data):
    centre = np.array([0.1, 0.35, 0.1, 0.35, 0.1])
    quantifier, S = fit(name, data, tau=1e9, centre=centre, order=0)
    assert_allclose(quantifier.predict_scores(S, data[-1]), np.tile(centre, (30, 1)), atol=1e-4)


@pytest.mark.parametrize("name", SCORED)
def test_reversing_the_classes_reverses_the_estimate(name, data):
    V, y, S, X, Z, samples = data
    if name in ("HDx", "OHDx"):
        forward = CATALOG[name].cls().fit_scores(X, y).predict_scores(Z, samples)
        backward = CATALOG[name].cls().fit_scores(X, 6 - y).predict_scores(Z, samples)
    else:
        forward = CATALOG[name].cls().fit_scores(V, y).predict_scores(S, samples)
        backward = CATALOG[name].cls().fit_scores(V[:, ::-1], 6 - y).predict_scores(S[:, ::-1], samples)
    assert_allclose(backward[:, ::-1], forward, atol=1e-5)


@pytest.mark.parametrize("name", [name for name in SCORED if issubclass(CATALOG[name].cls, LinearQuantifier)])
def test_transfer_matrix_is_the_mean_over_the_items_of_each_class(name, data):
    quantifier, _ = fit(name, data)
    V = data[3] if name in ("HDx", "OHDx") else data[0]
    F = np.asarray(quantifier.representation_.transform(V))
    for c in range(5):
        assert_allclose(quantifier.M_[:, c], F[data[1] == c + 1].mean(axis=0), atol=1e-12)


def test_counting_methods_count(data):
    V, y, S, _, _, samples = data
    cc, pcc = oq.CC().fit_scores(V, y), oq.PCC().fit_scores(V, y)
    for b in range(5):
        sample = S[samples.index(b)]
        assert_allclose(cc.predict_scores(S, samples)[b], np.bincount(sample.argmax(axis=1), minlength=5) / 400)
        assert_allclose(pcc.predict_scores(S, samples)[b], sample.mean(axis=0))


@pytest.mark.parametrize("name", [name for name in SCORED if name not in ("CC", "PCC")])
def test_adjusted_estimates_beat_counting_under_prior_shift(name):
    # Many items: noise is averaged out, the bias of counting is not.
    V, y, X = items(generator(7), 20_000)
    S, codes, Z = items(generator(6), 10_000)
    samples = oq.protocols.APP(40, 4000, small_pool="repeat", random_state=3).draw(codes)
    quantifier, T = fit(name, (V, y, S, X, Z, samples))
    error = oq.metrics.nmd(samples.prevalences, quantifier.predict_scores(T, samples)).mean()
    counting = oq.metrics.nmd(samples.prevalences, oq.PCC().fit_scores(V, y).predict_scores(S, samples)).mean()
    assert error < 0.75 * counting


def assert_on_the_simplex(name, rng, concentration, size):
    n = int(rng.integers(3, 8))
    codes = np.concatenate([np.arange(n), rng.integers(n, size=20)])
    V, S = (np.maximum(rng.dirichlet(np.full(n, concentration), k), 0) for k in (len(codes), 40))
    V, S = (np.where(np.isnan(A), 1 / n, A) for A in (V, S))
    V, S = V / V.sum(axis=1, keepdims=True), S / S.sum(axis=1, keepdims=True)
    quantifier = CATALOG[name].cls().fit_scores(V, codes)
    solution = quantifier.solve_scores(S, rng.integers(40, size=(3, size)))
    assert np.isfinite(solution.p).all()
    assert np.isfinite(solution.kkt).all()
    assert (solution.p >= 0).all()
    assert_allclose(solution.p.sum(axis=1), 1, atol=1e-12)


@pytest.mark.parametrize("concentration", [0.02, 0.3, 3.0])
@pytest.mark.parametrize("name", SCORED)
def test_estimates_lie_on_the_simplex_for_any_scores(name, concentration, rng):
    for _ in range(3):
        assert_on_the_simplex(name, rng, concentration, size=int(rng.integers(1, 31)))


@pytest.mark.parametrize(
    ("name", "seed", "concentration"),
    [
        # Moved to uniform, a class of 3e-17 became 0, and with it the mean of a bin that has an item.
        ("HDy", 129107534, 0.02),
        # The elimination of a curvature that is not positive went beyond the largest number.
        ("HDy", [54, 30], 0.3),
        ("OHDy", [54, 30], 0.3),
    ],
)
def test_slopes_and_curvatures_without_bound_raise_no_error(name, seed, concentration):
    assert_on_the_simplex(name, np.random.default_rng(seed), concentration, size=1)


@pytest.mark.parametrize("order", [0, 1, 2, 3])
def test_tikhonov_of_every_order_is_zero_on_its_polynomials(order, data):
    # With a huge tau only polynomials of that degree are left: C p = 0.
    quantifier, S = fit("OPACC", data, tau=1e8, order=order)
    P = quantifier.predict_scores(S, data[-1])
    inside = (P > 1e-6).all(axis=1)  # where p >= 0 does not bend it
    assert np.abs(P[inside] @ oq.simplex.difference_matrix(5, order).T).max() < 1e-5


def test_edy_with_euclidean_distance_differs_but_agrees_on_the_easy_part(data):
    md, S = fit("EDy", data)
    euclidean, _ = fit("EDy", data, distance="euclidean")
    P, E = md.predict_scores(S, data[-1]), euclidean.predict_scores(S, data[-1])
    assert oq.metrics.nmd(P, E).mean() < 0.05
    assert np.abs(P - E).max() > 1e-4


def test_run_with_a_partition_of_the_features(data):
    _, y, _, X, Z, samples = data
    run = oq.ComposedQuantifier(Partition(12), Poisson(), Tikhonov(0.1)).fit(X, y)
    error = oq.metrics.nmd(samples.prevalences, run.predict_samples(Z, samples)).mean()
    assert error < 0.12
    assert run.M_.shape == (12, 5)


def test_run_with_unit_acceptance_is_smooth_on_the_logarithmic_scale(data):
    weak, S = fit("RUN", data, tau=1e-6, acceptance=np.ones(5))
    strong, _ = fit("RUN", data, tau=1e6, acceptance=np.ones(5))
    C = oq.simplex.difference_matrix(5)
    rough, smooth = (np.log10(1 + 395 * q.predict_scores(S, data[-1])) @ C.T for q in (weak, strong))
    assert np.abs(smooth).max() < 0.05 < np.abs(rough).max()


def test_energy_distance_of_features_is_a_composition(data):
    _, y, _, X, Z, samples = data
    edx = oq.ComposedQuantifier(MeanDistances("euclidean", on="features"), Energy()).fit(X, y)
    assert oq.metrics.nmd(samples.prevalences, edx.predict_samples(Z, samples)).mean() < 0.06
    assert_array_equal(edx.scores(Z), Z)


def test_svd_unfolding_is_a_composition_that_weighs_rows_by_their_poisson_errors(data):
    V, y, S, _, _, samples = data
    svd = oq.ComposedQuantifier(oq.ACC().parts().representation, LeastSquares("poisson"), Tikhonov(1e-3)).fit_scores(
        V, y
    )
    assert oq.metrics.nmd(samples.prevalences, svd.predict_scores(S, samples)).mean() < 0.06


def test_opdf_is_the_composition_of_its_parts(data):
    V, y, S, _, _, samples = data
    for span in ("classes", "data"):
        loss = CumulativeSquares(drop_empty=span == "data")
        parts = oq.ComposedQuantifier(RankHistogram(span=span), loss, Tikhonov(1e-3)).fit_scores(V, y)
        named, _ = fit("OPDF", data, tau=1e-3, span=span)
        assert_array_equal(parts.predict_scores(S, samples), named.predict_scores(S, samples))


def test_opdf_has_the_bins_of_pdf_and_loses_no_mass_in_empty_ones(data):
    V, y, S, _, _, samples = data
    few = np.arange(0, 2000, 25)  # 80 items for 60 bins: many bins have none
    plain, ordinal = (cls(n_bins=60).fit_scores(V[few], y[few]) for cls in (oq.PDF, oq.OPDF))
    assert_array_equal(ordinal.representation_.edges_, plain.representation_.edges_)
    assert_array_equal(ordinal.M_, plain.M_)
    assert (ordinal.M_.sum(axis=1) == 0).sum() > 5
    error = {
        span: oq.metrics.nmd(
            samples.prevalences,
            oq.OPDF(n_bins=60, span=span).fit_scores(V[few], y[few]).predict_scores(S, samples),
        ).mean()
        for span in ("classes", "data")
    }
    assert error["classes"] < error["data"]


def test_opdf_rejects_an_unknown_span(data):
    with pytest.raises(ValueError, match="span must be one of"):
        oq.OPDF(span="bins").fit_scores(*data[:2])


def test_solution_reports_value_with_the_regularizer(data):
    quantifier, S = fit("OPACC", data, tau=0.5)
    solution = quantifier.solve_scores(S, data[-1])
    Q = data[-1].average(S)
    C = oq.simplex.difference_matrix(5)
    expected = np.square(Q - solution.p @ quantifier.M_.T).sum(axis=1) + 0.25 * np.square(solution.p @ C.T).sum(axis=1)
    assert_allclose(solution.value, expected, rtol=1e-10)
    assert solution.converged.all()
    assert solution.kkt.max() < 1e-12


def test_samples_that_do_not_converge_are_counted_in_one_warning(data):
    quantifier, S = fit("RUN", data, tau=0.0, solver=NewtonSolver(max_iter=1))
    with pytest.warns(ConvergenceWarning, match=r"\d+ of 30 samples did not converge") as caught:
        P = quantifier.predict_scores(S, data[-1])
    assert len(caught) == 1
    assert_allclose(P.sum(axis=1), 1)


def test_solver_by_name_gives_the_same_estimate(data):
    exact, S = fit("OPACC", data)
    newton, _ = fit("OPACC", data, solver="newton")
    assert_allclose(newton.predict_scores(S, data[-1]), exact.predict_scores(S, data[-1]), atol=1e-6)


def test_items_without_a_held_out_score_count_in_the_training_distribution_only(data):
    V, y = data[:2]
    missing = np.arange(2000) % 7 == 0
    with_nan, with_zero = (np.where(missing[:, None], value, V) for value in (np.nan, 0.0))
    a, b = oq.PACC().fit_scores(with_nan, y), oq.PACC().fit_scores(with_zero, y)
    c = oq.PACC().fit_scores(V[~missing], y[~missing])
    assert_allclose(a.M_, c.M_)
    assert_allclose(b.M_, c.M_)
    assert_allclose(a.p_train_, 0.2)
    assert_allclose(b.p_train_, 0.2)


def test_scores_that_miss_one_by_a_little_are_renormalized(data):
    V, y, S, _, _, samples = data
    quantifier = oq.PACC().fit_scores(V, y)
    rounded = np.round(S, 5)
    assert_allclose(
        quantifier.predict_scores(rounded, samples),
        quantifier.predict_scores(rounded / rounded.sum(axis=1, keepdims=True), samples),
        atol=1e-12,
    )


def test_grids_of_the_paper_and_of_the_reference():
    printed = oq.catalog(beyond=False)
    assert {e.name: e.grid(5, "paper") for e in printed}["RUN"] == {"tau": [1e-3, 1e-1, 1e1]}
    assert CATALOG["RUN"].grid(10) == {"tau": [1e-1, 1e1, 1e3]}
    assert CATALOG["PDF"].grid(10) == {"n_bins": [45, 90]}
    assert CATALOG["OPDF"].grid(10)["n_bins"] == [55, 110]
    assert CATALOG["OPDF"].grid(10, "paper")["n_bins"] == [45, 90]
    assert CATALOG["OPDF"].grid(12)["n_bins"] == [55, 110]
    assert CATALOG["OPDF"].grid(5)["n_bins"] == [20, 40]
    for entry in printed:
        params = entry.cls().get_params()
        assert set(entry.grid(5)) | set(entry.grid(5, "paper")) <= set(params)


def test_settings_of_the_paper_agree_with_its_text():
    def grids(name):
        return CATALOG[name].grid(10, "paper"), CATALOG[name].grid(10, "reference")

    assert [grid.get("correction") for grid in grids("ARC")] == [["acc"], None]
    assert [grid.get("span") for grid in grids("OPDF")] == [None, ["data"]]
    converging, short = grids("SLD")
    assert short == {}
    assert converging["tol"][0] > 0
    assert "max_iter" not in grids("IBU")[0]  # no number and no "convergence" is printed
    assert "max_iter" not in grids("OSLD")[0]


def test_sld_until_convergence_reaches_the_maximum_of_the_likelihood(data):
    settings = {name: values[0] for name, values in CATALOG["SLD"].grid(5, "paper").items()}
    converged, S = fit("SLD", data, **settings)
    limit, _ = fit("SLD", data, solver="newton")
    solution = converged.solve_scores(S, data[-1])
    assert solution.converged.all()
    assert_allclose(solution.p, limit.predict_scores(S, data[-1]), atol=5e-3)
    assert (solution.value <= limit.solve_scores(S, data[-1]).value + 1e-5).all()


def test_grids_agree_with_the_printed_tables():
    printed = oq.datasets.published.grids()["quantifier_paper"]
    renamed = {"val_split": "held_out", "n_bins_per_class": "n_bins"}
    for entry in oq.catalog(beyond=False):
        expected = {renamed.get(k, k): v for k, v in printed[entry.paper_name].items() if k != "ground_distance"}
        if "n_bins_per_class" in printed[entry.paper_name]:
            expected["n_bins"] = [9 * j for j in printed[entry.paper_name]["n_bins_per_class"]]
        grid = entry.grid(10, "paper")
        from_the_text = {name: grid.pop(name) for name in ("max_iter", "tol", "correction") if name in grid}
        assert grid == expected, entry.name
        assert all(len(values) == 1 for values in from_the_text.values())


def test_catalog_follows_the_order_of_the_papers_tables():
    order = list(oq.datasets.published.results())
    names = [entry.paper_name for entry in oq.catalog(beyond=False)]
    assert names == [name for name in order if name in names]


def test_no_penalty_is_zero_everywhere(data):
    composed = oq.ComposedQuantifier(oq.PACC().parts().representation, LeastSquares(), NoPenalty()).fit_scores(
        data[0], data[1]
    )
    plain = oq.PACC().fit_scores(data[0], data[1])
    assert_array_equal(composed.predict_scores(data[2], data[-1]), plain.predict_scores(data[2], data[-1]))


def test_uninformative_scores_give_uniform_estimates_without_a_warning():
    V, y = np.full((30, 3), 1 / 3), np.repeat([1, 2, 3], 10)
    for name in ("ACC", "PACC", "EDy", "OPDF", "PDF", "HDy"):
        P = CATALOG[name].cls().fit_scores(V, y).predict_scores(V, [[0, 1, 2]])
        assert_allclose(P, 1 / 3, atol=1e-9)
