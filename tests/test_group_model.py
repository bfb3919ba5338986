"""Group effects: pair means, the predictor, its intervals, the alarm, labels of the group."""

from dataclasses import replace

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.stats import multivariate_normal

from ordinalq.inference.group_labels import DIFFER, HALF, GroupLabels, predict_labelled
from ordinalq.inference.group_model import (
    Filter,
    GroupModel,
    GroupSums,
    ModelDistance,
    bounds,
    condition,
    cumulated_variance,
    error_of_means,
    half_widths,
    learn,
    log_odds,
    medians,
    model_with_stated_effect,
    model_without_effect,
    multinomial,
    orthonormal_polynomials,
    pair_means,
    predict,
    project,
    uses_logits,
    weak_prior,
    with_logits,
)
from ordinalq.inference.labels import LabelMoments, design_based
from ordinalq.solvers.quadratic import simplex_qp

N_CLASSES, WIDTH = 4, 3
# Class means of f; its rows do not sum to one, so that no direction of f is without information.
M = np.array([[0.0, 0.3, 0.7, 1.0], [0.2, 0.6, 0.5, 0.1], [0.1, 0.0, 0.2, 0.6]])
WITHIN = np.array([[0.06, 0.01, 0.0], [0.01, 0.05, 0.01], [0.0, 0.01, 0.04]])
MU = np.array([0.2, 0.35, 0.3, 0.15])


def random_groups(rng, n_groups, sizes=(2, 40), spread=0.3, looks=0.15, together=0.1):
    """Return F, codes and groups of items: prevalences and features of a group vary together.

    Shares are MU + spread * s * direction, looks are looks * normal + together * s; s is standard normal, cut so that
    shares stay positive.
    """
    direction = np.array([0.12, 0.1, -0.12, -0.1])
    s = np.clip(rng.normal(size=n_groups), -2.5, 2.5)
    P = MU + spread * s[:, None] * direction
    shift = looks * rng.normal(size=(n_groups, WIDTH)) + together * s[:, None]
    N = rng.integers(*sizes, n_groups)
    groups = np.repeat(np.arange(n_groups), N)
    codes = (rng.random(len(groups))[:, None] > np.cumsum(P, axis=1)[groups, :-1]).sum(axis=1)
    noise = rng.multivariate_normal(np.zeros(WIDTH), WITHIN, len(groups))
    return M[:, codes].T + shift[groups] + noise, codes, groups


def random_model(rng, n=N_CLASSES, d=WIDTH, source="learned", dof=60.0):
    """Return a model with arbitrary positive definite covariances."""
    mu = rng.dirichlet(np.full(n, 5.0))
    R = rng.normal(size=(n - 1 + d, n + d + 3))
    C = R @ R.T / R.shape[1]
    x = multinomial(mu) @ orthonormal_polynomials(mu)
    T = np.block([[x, np.zeros((n, d))], [np.zeros((d, n - 1)), np.eye(d)]])
    J = 0.1 * T @ C @ T.T
    W = 0.2 * np.eye(d) + 0.1 * np.cov(rng.normal(size=(d, 3 * d)))
    M = rng.uniform(size=(d, n))
    return GroupModel(source, mu, M, 0.05 * rng.normal(size=d), W, J[:n, :n], J[n:, n:], J[:n, n:], dof - 10, dof, 0.1)


def of_items(model):
    """Return the covariance of (e, r) of a single item, (n + d, n + d)."""
    n, d = model.n_classes, len(model.W)
    return np.block([[model.B, np.zeros((n, d))], [np.zeros((d, n)), model.W]])


def joint_covariance(model, N):
    """Return the covariance (n + d, n + d) of p and rbar of a group of N items, from the definition."""
    return model.effect * (1 - 1 / N) + of_items(model) / N


# ---- sums ----------------------------------------------------------------------------------------------------------


def test_sums_are_those_of_a_loop(rng):
    F, codes, groups = random_groups(rng, 7)
    sums = GroupSums.of(F, codes, groups, N_CLASSES)
    for g in range(7):
        rows = groups == g
        e = np.eye(N_CLASSES)[codes[rows]]
        assert_allclose(sums.counts[g], e.sum(axis=0))
        assert_allclose(sums.cross[g], e.T @ F[rows])
        assert_allclose(sums.squares[g], F[rows].T @ F[rows])
    for c in range(N_CLASSES):
        assert_allclose(sums.class_covariances[c], np.cov(F[codes == c].T, bias=True), atol=1e-12)
        assert_allclose(sums.class_means[:, c], F[codes == c].mean(axis=0))


# ---- pair means ----------------------------------------------------------------------------------------------------


def test_pair_means_equal_a_double_loop_over_pairs(rng):
    F, codes, groups = random_groups(rng, 6, sizes=(1, 7))
    codes[rng.choice(len(codes), N_CLASSES, replace=False)] = np.arange(N_CLASSES)  # every class occurs
    sums = GroupSums.of(F, codes, groups, N_CLASSES)
    mu, shift = rng.dirichlet(np.ones(N_CLASSES)), rng.normal(size=WIDTH)
    weights = rng.random(6)
    E = np.eye(N_CLASSES)[codes] - mu
    R = F - sums.class_means[:, codes].T - shift
    A, D, K = np.zeros((N_CLASSES,) * 2), np.zeros((WIDTH,) * 2), np.zeros((N_CLASSES, WIDTH))
    for g in range(6):
        rows = np.flatnonzero(groups == g)
        pairs = [(i, j) for i in rows for j in rows if i != j]
        for i, j in pairs:
            A += weights[g] / len(pairs) * np.outer(E[i], E[j])
            D += weights[g] / len(pairs) * np.outer(R[i], R[j])
            K += weights[g] / len(pairs) * np.outer(E[i], R[j])
    got = pair_means(sums, mu, shift, weights)
    assert_allclose(got.A, A, atol=1e-12)
    assert_allclose(got.D, D, atol=1e-12)
    assert_allclose(got.K, K, atol=1e-12)


def test_pair_means_are_unbiased(rng):
    # With the true means, so that only the covariances are estimated: the mean over many groups is the truth.
    n_groups, spread, looks, together = 6000, 0.25, 0.15, 0.1
    F, codes, groups = random_groups(rng, n_groups, (2, 12), spread, looks, together)
    sums = GroupSums.of(F, codes, groups, N_CLASSES)
    got = pair_means(sums, MU, np.zeros(WIDTH), np.full(n_groups, 1 / n_groups))
    direction = spread * np.array([0.12, 0.1, -0.12, -0.1])
    variance = np.var(np.clip(rng.normal(size=10**6), -2.5, 2.5))
    assert_allclose(got.A, variance * np.outer(direction, direction), atol=4e-3)
    # sums.class_means hold the looks that go with the shares of a class; that is far below the tolerance.
    assert_allclose(got.D, looks**2 * np.eye(WIDTH) + variance * together**2, atol=4e-3)
    assert_allclose(got.K, variance * together * np.outer(direction, np.ones(WIDTH)), atol=4e-3)


def test_learned_covariances_approach_the_truth(rng):
    F, codes, groups = random_groups(rng, 4000, (20, 60))
    model = learn(GroupSums.of(F, codes, groups, N_CLASSES))
    variance = np.var(np.clip(rng.normal(size=10**6), -2.5, 2.5))
    direction = 0.3 * np.array([0.12, 0.1, -0.12, -0.1])
    assert_allclose(model.mu, MU, atol=5e-3)
    assert_allclose(model.A, variance * np.outer(direction, direction), atol=1e-3)
    assert_allclose(model.W, WITHIN + 0.15**2 * np.eye(WIDTH) + variance * 0.1**2, atol=4e-3)
    assert_allclose(model.K, variance * 0.1 * np.outer(direction, np.ones(WIDTH)), atol=1e-3)


def test_without_group_effect_hardly_any_is_learned(rng):
    F, codes, groups = random_groups(rng, 500, (30, 60), spread=0, looks=0, together=0)
    model = learn(GroupSums.of(F, codes, groups, N_CLASSES))
    assert np.trace(model.A) < 0.02 * np.trace(model.B)
    assert np.trace(model.D) < 0.02 * np.trace(model.W)


def test_learned_effect_is_positive_semidefinite_and_never_nothing(rng):
    F, codes, groups = random_groups(rng, 5, (20, 30))
    model = learn(GroupSums.of(F, codes, groups, N_CLASSES))
    values = np.linalg.eigvalsh(model.effect)
    # One direction, (1, ..., 1) of the shares, has no variance.
    assert_allclose(values[0], 0, atol=1e-12)
    assert values[1] > 0
    assert_allclose(model.A.sum(axis=0), 0, atol=1e-12)
    assert_allclose(model.K.sum(axis=0), 0, atol=1e-12)


def test_means_weight_groups_by_the_information_of_their_items(rng):
    F, codes, groups = random_groups(rng, 60, (2, 200))
    sums = GroupSums.of(F, codes, groups, N_CLASSES)
    model = learn(sums)
    k = (1 - model.correlation) / model.correlation
    w = sums.n_items / (sums.n_items + k)
    shares = sums.counts / sums.n_items[:, None]
    looks = sums.cross.sum(axis=1) / sums.n_items[:, None] - shares @ sums.class_means.T
    # The rounds have settled.
    assert_allclose(model.mu, (w @ shares + sums.pooled) / (w.sum() + 1), atol=1e-4)
    assert_allclose(model.shift, w @ looks / (w.sum() + 1), atol=1e-4)


def test_error_of_the_class_means_is_part_of_every_model(rng, monkeypatch):
    F, codes, groups = random_groups(rng, 20, (5, 10))
    sums = GroupSums.of(F, codes, groups, N_CLASSES)
    model = learn(sums)
    expected = sum(
        (model.mu[c] ** 2 + model.A[c, c]) * np.cov(F[codes == c].T, bias=True) / (codes == c).sum()
        for c in range(N_CLASSES)
    )
    assert_allclose(error_of_means(sums, model.mu, model.A), expected)
    assert_allclose(model_without_effect(sums).D, error_of_means(sums, *weak_prior(sums.pooled)))
    monkeypatch.setattr("ordinalq.inference.group_model.error_of_means", lambda *_: np.zeros((WIDTH, WIDTH)))
    assert_allclose(model.D - learn(sums).D, expected)


def test_two_groups_are_rejected(rng):
    F, codes, groups = random_groups(rng, 2, (30, 60))
    with pytest.raises(ValueError, match="at least 3 with two labelled items"):
        learn(GroupSums.of(F, codes, groups, N_CLASSES))


@pytest.mark.parametrize("make", [learn, model_without_effect, model_with_stated_effect])
def test_a_class_without_items_is_rejected(rng, make):
    F, codes, groups = random_groups(rng, 20)
    codes[codes == 2] = 1
    with pytest.raises(ValueError, match="class 2 of 4 has none"):
        make(GroupSums.of(F, codes, groups, N_CLASSES))


def test_polynomials_are_orthonormal(rng):
    mu = rng.dirichlet(np.ones(9))
    x = orthonormal_polynomials(mu)
    assert_allclose(x.T @ np.diag(mu) @ x, np.eye(8), atol=1e-8)
    assert_allclose(mu @ x, 0, atol=1e-10)
    # The first is linear in the class index.
    assert_allclose(np.diff(x[:, 0]), np.diff(x[:, 0])[0])


# ---- the predictor -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("of", ["sample", "population"])
def test_predictor_is_the_conditional_mean_of_the_joint_gaussian(rng, of):
    model = random_model(rng)
    n, d = N_CLASSES, WIDTH
    sizes = np.array([1, 2, 17, 400])
    Q = rng.uniform(size=(4, d))
    got = condition(model, Q, sizes, of)
    logdet = ModelDistance.of(model, Filter.of(model), Q, sizes).logdet
    H = np.hstack([model.M, np.eye(d)])
    for b, N in enumerate(sizes):
        C = joint_covariance(model, N)
        # Shares of the population have the covariance of two items with everything.
        target = C if of == "sample" else model.effect
        C_qq, C_pq = H @ C @ H.T, target[:n] @ H.T
        z = Q[b] - model.M @ model.mu - model.shift
        assert_allclose(got.mean[b], model.mu + C_pq @ np.linalg.solve(C_qq, z), atol=1e-9)
        assert_allclose(got.covariance[b], target[:n, :n] - C_pq @ np.linalg.solve(C_qq, C_pq.T), atol=1e-10)
        assert_allclose(got.distance[b], z @ np.linalg.solve(C_qq, z))
        density = multivariate_normal(np.zeros(d), C_qq).logpdf(z)
        assert_allclose(-(logdet[b] + got.distance[b] + d * np.log(2 * np.pi)) / 2, density)


def test_without_effect_and_with_a_flat_prior_it_is_least_squares(rng):
    # D = K = 0 and A large: minimum of (q - Mp)' W^-1 (q - Mp) over all p, as PACC with the right weights.
    model = replace(random_model(rng, d=5), D=np.zeros((5, 5)), K=np.zeros((4, 5)), shift=np.zeros(5))
    M = np.eye(5)[:, :4] + 0.2 * rng.uniform(size=(5, 4))
    model = replace(model, M=M, A=1e4 * multinomial(np.full(4, 0.25)), dof=np.inf)
    P = rng.dirichlet(np.full(4, 50.0), 3)
    sizes = np.full(3, 1000)
    noise = 0.003 * rng.normal(size=(3, 5))
    Q = P @ model.M.T + noise
    inverse = np.linalg.inv(model.W)
    least, _ = simplex_qp(model.M.T @ inverse @ model.M, Q @ inverse @ model.M)
    got = predict(model, Q, sizes)
    assert_allclose(got.mean, least, atol=1e-6)


def test_a_group_without_information_gets_the_mean_of_all(rng):
    model = replace(random_model(rng), M=np.zeros((WIDTH, N_CLASSES)), K=np.zeros((N_CLASSES, WIDTH)))
    got = condition(model, rng.uniform(size=(2, WIDTH)), np.array([5, 50]), "sample")
    assert_allclose(got.mean, np.tile(model.mu, (2, 1)))


def test_batch_equals_loop(rng):
    model = random_model(rng)
    Q, sizes = rng.uniform(size=(9, WIDTH)), rng.integers(1, 200, 9)
    whole = predict(model, Q, sizes)
    limits = bounds(whole)
    for b in rng.permutation(9):
        one = predict(model, Q[[b]], sizes[[b]])
        assert_allclose(one.prevalences[0], whole.prevalences[b], atol=1e-10)
        assert_allclose(bounds(one).lower[0], limits.lower[b], atol=1e-10)
        assert_allclose(bounds(one).mean_upper[0], limits.mean_upper[b], atol=1e-10)


def test_reversing_classes_reverses_estimates(rng):
    F, codes, groups = random_groups(rng, 40)
    Q, sizes = rng.uniform(size=(5, WIDTH)), np.array([1, 3, 20, 50, 1000])
    model = learn(GroupSums.of(F, codes, groups, N_CLASSES))
    mirror = learn(GroupSums.of(F, N_CLASSES - 1 - codes, groups, N_CLASSES))
    got, back = predict(model, Q, sizes), predict(mirror, Q, sizes)
    assert_allclose(got.prevalences, back.prevalences[:, ::-1], atol=1e-6)
    assert_allclose(bounds(got).lower, bounds(back).lower[:, ::-1], atol=1e-6)
    assert_allclose(bounds(got).mean_lower, N_CLASSES + 1 - bounds(back).mean_upper, atol=1e-6)


def test_order_of_groups_and_a_linear_map_of_f_do_not_matter(rng):
    F, codes, groups = random_groups(rng, 30)
    T, at = rng.normal(size=(WIDTH, WIDTH)), rng.normal(size=WIDTH)
    Q, sizes = rng.uniform(size=(4, WIDTH)), np.array([2, 10, 60, 900])
    model = learn(GroupSums.of(F, codes, groups, N_CLASSES))
    other = learn(GroupSums.of(F @ T + at, codes, rng.permutation(30)[groups], N_CLASSES))
    assert_allclose(predict(model, Q, sizes).mean, predict(other, Q @ T + at, sizes).mean, atol=1e-6)


def test_projection_minimises_the_distance_in_the_norm_of_the_inverse(rng):
    R = rng.normal(size=(6, 4, 4))
    E = np.matmul(R, R.transpose(0, 2, 1)) / 50
    T = np.eye(4) - 0.25
    E = T @ E @ T
    P = 0.25 + 0.3 * rng.normal(size=(6, 4)) @ T
    p = project(P, E)
    assert_allclose(p.sum(axis=1), 1)
    assert (p >= 0).all()
    inside = (P >= 0).all(axis=1)
    assert_allclose(p[inside], P[inside])
    others = rng.dirichlet(np.ones(4), 2000)
    for b in np.flatnonzero(~inside):
        # The same tiny ridge as in the function: E itself has no inverse.
        inverse = np.linalg.inv(E[b] + 1e-3 * np.trace(E[b]) / 4 * np.eye(4))
        distance = lambda x: np.einsum("...i,ij,...j", x - P[b], inverse, x - P[b])  # noqa: E731, B023
        assert distance(p[b]) <= distance(others).min() + 1e-9


def test_medians_agree_with_the_beta_distribution(rng):
    from scipy.stats import beta

    mu = rng.dirichlet(np.full(5, 4.0), 1)
    p = rng.dirichlet(np.full(5, 4.0), 20)
    precision = rng.uniform(1, 200, 20)
    # E proportional to B has the same precision for every cumulated share.
    E = multinomial(mu) / (precision + 1)[:, None, None]
    got = np.cumsum(medians(p, E, np.tile(mu, (20, 1))), axis=1)[:, :-1]
    c = np.cumsum(p, axis=1)[:, :-1]
    exact = beta.median(c * precision[:, None], (1 - c) * precision[:, None])
    falling = np.minimum.accumulate(exact[:, ::-1], axis=1)[:, ::-1]
    assert_allclose(got, (np.maximum.accumulate(exact, axis=1) + falling) / 2, atol=3e-3)


def test_medians_prefer_neither_end(rng):
    # Shares near nothing, with unequal precision: the medians of the cumulated shares do not always increase.
    p, centre = rng.dirichlet(np.full(5, 0.3), 300), rng.dirichlet(np.full(5, 4.0), 300)
    R = rng.normal(size=(300, 5, 5)) * rng.uniform(0, 0.1, size=(300, 5, 1))
    E = np.matmul(R, R.transpose(0, 2, 1))
    E = E - E.mean(axis=1, keepdims=True)
    E = E - E.mean(axis=2, keepdims=True)
    mirror = medians(p[:, ::-1], E[:, ::-1, ::-1], centre[:, ::-1])
    assert_allclose(medians(p, E, centre), mirror[:, ::-1], atol=1e-7)


def test_cumulated_variance_is_that_of_the_sums(rng):
    R = rng.normal(size=(3, 5, 5))
    E = np.matmul(R, R.transpose(0, 2, 1))
    L = np.tril(np.ones((5, 5)))[:-1]
    assert_allclose(cumulated_variance(E), np.einsum("ki,bij,kj->bk", L, E, L))


# ---- intervals -----------------------------------------------------------------------------------------------------


def test_intervals_cover_new_groups(rng):
    F, codes, groups = random_groups(rng, 400, (10, 60))
    model = learn(GroupSums.of(F, codes, groups, N_CLASSES))
    G, y, g = random_groups(rng, 600, (10, 60))
    sums = GroupSums.of(G, y, g, N_CLASSES)
    truth = sums.counts / sums.n_items[:, None]
    got = predict(model, sums.cross.sum(axis=1) / sums.n_items[:, None], sums.n_items)
    limits = bounds(got, 0.9)
    mean = truth @ np.arange(1, N_CLASSES + 1)
    below = np.cumsum(truth, axis=1)[:, :-1]
    # 600 groups: the standard error of a coverage is below 1.3%, that of all classes smaller.
    assert 0.86 < ((limits.lower <= truth) & (truth <= limits.upper)).mean() < 0.95
    assert 0.85 < ((limits.mean_lower <= mean) & (mean <= limits.mean_upper)).mean() < 0.95
    inside = (limits.cumulative_lower[:, :-1] <= below) & (below <= limits.cumulative_upper[:, :-1])
    assert 0.86 < inside.mean() < 0.95
    # A like group is beyond the worst of 400 once in 401 times.
    assert got.unlike.mean() < 0.02
    # Better than the mean of all groups, and than the training shares.
    error = np.abs(np.cumsum(got.prevalences - truth, axis=1)).sum(axis=1).mean()
    assert error < np.abs(np.cumsum(model.mu - truth, axis=1)).sum(axis=1).mean()


def test_intervals_hold_their_estimates_and_stay_possible(rng):
    model = random_model(rng)
    got = predict(model, rng.uniform(-1, 2, size=(50, WIDTH)), rng.integers(1, 1000, 50))
    limits = bounds(got)
    assert (limits.lower <= got.prevalences).all()
    assert (got.prevalences <= limits.upper).all()
    assert (limits.lower >= 0).all()
    assert (limits.upper <= 1).all()
    assert ((limits.mean_lower >= 1) & (limits.mean_upper <= N_CLASSES)).all()
    assert_allclose(got.prevalences.sum(axis=1), 1)


def test_half_widths_follow_the_formula(rng):
    from scipy.stats import t as student

    model = random_model(rng)
    got = predict(model, rng.uniform(size=(3, WIDTH)), np.array([4, 40, 400]))
    half = half_widths(got, 0.95)
    n = N_CLASSES
    U = np.vstack([np.eye(n), np.tril(np.ones((n, n)))[:-1], np.arange(1.0, n + 1)])
    for b in range(3):
        phi = (model.dof + got.distance[b]) / (model.dof - n + 2) * (1 + 1 / model.dof)
        for k, u in enumerate(U):
            spread = [u @ multinomial(p) @ u for p in (got.mean[b], model.mu)]
            rho = 1 if k == 2 * n - 1 else min(4, spread[0] / spread[1])
            dof = model.n_groups / 2 if k == 2 * n - 1 else model.dof - n + 2
            h2 = student.ppf(0.975, dof) ** 2 * phi * (u @ got.covariance[b] @ u) * (1 + rho) / 2
            assert_allclose(half[b, k] ** 2, h2 + 1 / (4 * got.n_items[b] ** 2))


def test_interval_of_a_large_group_does_not_shrink_below_the_group_effect(rng):
    model = random_model(rng)
    Q = np.tile(model.M @ model.mu + model.shift, (3, 1))
    limits = bounds(predict(model, Q, np.array([100, 10**5, 10**9])))
    width = limits.mean_upper - limits.mean_lower
    assert width[0] > width[1]
    assert_allclose(width[1], width[2], rtol=1e-2)
    none = replace(model, D=np.zeros_like(model.D), K=np.zeros_like(model.K), M=np.eye(N_CLASSES)[:WIDTH])
    Q = np.tile(none.M @ none.mu + none.shift, (2, 1))
    limits = bounds(predict(none, Q, np.array([100, 10**9])))
    assert (limits.mean_upper - limits.mean_lower)[1] < 0.01


# ---- without training groups, and unlike them ----------------------------------------------------------------------


def test_weak_prior_is_a_dirichlet_distribution(rng):
    pooled = rng.dirichlet(np.ones(6))
    mu, A = weak_prior(pooled)
    drawn = rng.dirichlet(5 * mu, 200_000)
    assert_allclose(drawn.mean(axis=0), mu, atol=3e-3)
    assert_allclose(np.cov(drawn.T), A, atol=2e-3)


def test_weak_model_covers_samples_of_any_composition(rng):
    F, codes, groups = random_groups(rng, 200, looks=0, together=0)
    model = model_without_effect(GroupSums.of(F, codes, groups, N_CLASSES))
    truth, Q = [], []
    by_class = [np.flatnonzero(codes == c) for c in range(N_CLASSES)]
    for p in rng.dirichlet(np.ones(N_CLASSES), 400):
        counts = rng.multinomial(200, p)
        rows = np.concatenate([rng.choice(by_class[c], k) for c, k in enumerate(counts)])
        truth.append(counts / 200)
        Q.append(F[rows].mean(axis=0))
    truth = np.array(truth)
    got = predict(model, np.array(Q), np.full(400, 200))
    limits = bounds(got)
    assert 0.92 < ((limits.lower <= truth) & (truth <= limits.upper)).mean() < 0.995
    assert not got.unlike.any()


def test_stated_effect_has_the_stated_size(rng):
    F, codes, groups = random_groups(rng, 30)
    model = model_with_stated_effect(GroupSums.of(F, codes, groups, N_CLASSES), 0.1)
    mu, W = model.mu, model.W
    x = orthonormal_polynomials(mu)
    spread = np.diag(x.T @ model.A @ x)
    assert_allclose(spread * np.arange(1, N_CLASSES), spread[0])
    # In total, cumulative prevalences vary by a tenth of what those of single items do.
    between, within = (cumulated_variance(C[None]).sum() for C in (model.A, multinomial(mu)))
    assert_allclose(between, 0.1 * within)
    # The features of items vary by a quarter of that in any direction, and by all of it from class to class.
    u = model.M @ multinomial(mu) @ x[:, 0]
    inverse = np.linalg.pinv(W, hermitian=True)
    assert_allclose(inverse @ model.D @ inverse @ u / (inverse @ u), 0.1)
    other = np.array([u[1], -u[0], *np.zeros(len(u) - 2)])
    assert_allclose(other @ model.D @ other, 0.025 * other @ W @ other)
    assert_allclose(model.K, 0)


def test_few_groups_are_drawn_to_the_template(rng):
    # The polynomials of a few groups that differ in one direction: the others get c / k^2 of the template.
    F, codes, groups = random_groups(rng, 3, (20_000, 20_001), spread=0, looks=0, together=0)
    model = learn(GroupSums.of(F, codes, groups, N_CLASSES))
    x = orthonormal_polynomials(model.mu)
    effects = np.diag(x.T @ model.A @ x)
    assert_allclose(effects * np.arange(1, N_CLASSES) ** 2 / effects[0], 1, atol=0.35)


def test_samples_of_another_composition_are_unlike(rng):
    # Groups of equal composition and looks; then a sample with nearly one class only.
    F, codes, groups = random_groups(rng, 100, (60, 100), spread=0, looks=0, together=0)
    model = learn(GroupSums.of(F, codes, groups, N_CLASSES))
    Q = np.stack([M @ np.eye(N_CLASSES)[-1], M @ MU])
    got = predict(model, Q, np.array([500, 500]))
    assert got.unlike.tolist() == [True, False]
    # The prior is dropped, and the interval is that of the weak prior.
    assert got.mean[0, -1] > 0.8
    assert bounds(got).upper[0, -1] > 0.95
    deaf = predict(replace(model, fallback=None), Q, np.array([500, 500]))
    assert_allclose(deaf.prevalences[1], got.prevalences[1])


def test_a_group_somewhat_unlike_keeps_its_estimate_and_widens(rng):
    F, codes, groups = random_groups(rng, 100, (60, 100), spread=0, looks=0, together=0)
    model = learn(GroupSums.of(F, codes, groups, N_CLASSES))
    # From the mean of the groups to another composition, until the alarm rings for the first time.
    steps = np.linspace(0, 1, 2000)[:, None]
    Q = (1 - steps) * (M @ MU) + steps * (M @ np.eye(N_CLASSES)[-1])
    sizes = np.full(2000, 200)
    got = predict(model, Q, sizes)
    assert not got.unlike[0]
    first = np.flatnonzero(got.unlike)[0]
    odds = log_odds(model, Q, sizes) - model.worst
    assert odds[first - 1] <= np.log1p(200 / model.n_groups) < odds[first] < np.log(10_000)
    # The estimate goes on as before, its error is that under the weak prior.
    assert_allclose(got.prevalences[first], got.prevalences[first - 1], atol=0.01)
    other = condition(model.fallback, Q[[first]], sizes[[first]], "sample")
    apart = project(other.mean, other.covariance)[0] - got.mean[first]
    assert_allclose(got.covariance[first], other.covariance[0] + np.outer(apart, apart), atol=1e-12)
    assert_allclose(got.centre[first], model.fallback.mu)
    assert np.isinf(got.dof[first])
    assert np.isinf(got.mean_dof[first])
    width = bounds(got).upper - bounds(got).lower
    assert (width[first] > width[first - 1]).all()


def test_training_groups_are_not_unlike(rng):
    F, codes, groups = random_groups(rng, 30)
    sums = GroupSums.of(F, codes, groups, N_CLASSES)
    model = learn(sums)
    Q = sums.cross.sum(axis=1) / sums.n_items[:, None]
    assert_allclose(log_odds(model, Q, sums.n_items).max(), model.worst)
    assert not predict(model, Q, sums.n_items).unlike.any()


def test_distance_widens_intervals(rng):
    model = random_model(rng)
    near = model.M @ model.mu + model.shift
    direction = Filter.of(model).V[:, 0]
    far = near + 6 * model.W @ direction
    got = predict(model, np.stack([near, far]), np.array([50, 50]))
    assert got.distance[1] > got.distance[0]
    assert got.widening[1] > got.widening[0]


# ---- labels of the group itself ------------------------------------------------------------------------------------


def labelled_groups(rng, n_groups, m, U):
    """Return F, codes, groups of m labelled items per group, the means of U others, their shares, and all shares."""
    F, codes, groups = random_groups(rng, n_groups, (m + U, m + U + 1))
    position = np.tile(np.arange(m + U), n_groups)
    known = position < m
    counts = np.bincount(groups * N_CLASSES + codes, minlength=n_groups * N_CLASSES).reshape(n_groups, -1)
    Q = np.stack([np.bincount(groups[~known], weights=f[~known]) for f in F.T], axis=1) / max(U, 1)
    return F[known], codes[known], groups[known], Q, counts / (m + U)


def gather(F, codes, groups):
    """Return GroupLabels."""
    sums = GroupSums.of(F, codes, groups, N_CLASSES)
    return GroupLabels(sums.counts, sums.cross.sum(axis=1))


@pytest.fixture
def model(rng):
    return learn(GroupSums.of(*random_groups(rng, 300, (20, 60)), N_CLASSES))


@pytest.mark.parametrize("of", ["sample", "population"])
def test_without_labels_the_prediction_is_unchanged(rng, model, of):
    Q, sizes = rng.uniform(size=(4, WIDTH)), np.array([3, 30, 300, 3000])
    none = GroupLabels(np.zeros((4, N_CLASSES)), np.zeros((4, WIDTH)))
    got, plain = predict_labelled(model, Q, sizes, none, of), predict(model, Q, sizes, of)
    assert_allclose(got.prevalences, plain.prevalences)
    assert_allclose(bounds(got).lower, bounds(plain).lower)
    assert_allclose(bounds(got).mean_upper, bounds(plain).mean_upper)


def test_all_labels_give_the_shares_themselves(rng, model):
    F, codes, groups, _, truth = labelled_groups(rng, 5, 40, 0)
    got = predict_labelled(model, np.zeros((5, WIDTH)), np.zeros(5), gather(F, codes, groups))
    assert_allclose(got.mean, truth, atol=1e-9)
    assert_allclose(bounds(got).upper - bounds(got).lower, 0, atol=1e-6)


def test_many_labels_give_the_labelled_share(rng, model):
    m = 200_000
    shares = np.array([[0.7, 0.1, 0.1, 0.1]])
    looks = np.array([[0.4, -0.2, 0.3]])
    labels = GroupLabels(m * shares, m * (shares @ M.T + looks))
    got = predict_labelled(model, shares @ M.T + looks, np.array([100.0]), labels, "population")
    assert_allclose(got.mean, shares, atol=5e-3)
    assert (bounds(got).upper - bounds(got).lower).max() < 0.02


def test_labels_are_a_gaussian_conditioning(rng):
    # Against one joint Gaussian of shares, labels and q, with the noise that the function states.
    model = random_model(rng, source="weak", dof=np.inf)
    n, d, m, U = N_CLASSES, WIDTH, 12.0, 50.0
    counts = rng.multinomial(12, model.mu)[None].astype(float)
    looks = 0.1 * rng.normal(size=(1, d))
    Q = (model.M @ model.mu + model.shift + 0.05 * rng.normal(size=d))[None]
    got = predict_labelled(model, Q, np.array([U]), GroupLabels(counts, counts @ model.M.T + m * looks), "population")
    before = predict(model, Q, np.array([U]), "population")
    worth = np.trace(model.B) / np.trace(before.covariance[0])
    within = of_items(model)
    within[:n, :n] = multinomial((counts[0] + worth * before.mean[0] + model.mu) / (m + worth + 1))
    H = np.hstack([model.M, np.eye(d)])
    J, k = model.effect + DIFFER * m / (m + HALF) * (within - model.effect), n + d
    # theta, what labels show of it, what the others show.
    C = np.block([[J, J, J @ H.T], [J, J + within / m, J @ H.T], [H @ J, H @ J, H @ (J + within / U) @ H.T]])
    seen = np.r_[counts[0] / m - model.mu, looks[0] - model.shift, Q[0] - model.M @ model.mu - model.shift]
    inverse = np.linalg.pinv(C[k:, k:], rcond=1e-10, hermitian=True)
    mean = model.mu + (C[:k, k:] @ inverse @ seen)[:n]
    covariance = (C[:k, :k] - C[:k, k:] @ inverse @ C[k:, :k])[:n, :n]
    assert_allclose(got.covariance[0], covariance, atol=1e-8)
    if (mean > 0).all():
        assert_allclose(got.mean[0], mean, atol=1e-7)


@pytest.mark.parametrize("of", ["sample", "population"])
@pytest.mark.parametrize("m", [10, 60])
def test_labelled_intervals_cover_and_shrink(rng, model, m, of):
    B, U = 300, 90
    F, codes, groups, Q, truth = labelled_groups(rng, B, m, U)
    if of == "population":
        # The shares of the population itself are not known; those of many more items come close.
        truth = None
    labels = gather(F, codes, groups)
    got = bounds(predict_labelled(model, Q, np.full(B, U), labels, of))
    without = bounds(predict(model, Q, np.full(B, U), of))
    assert (got.upper - got.lower).mean() < (without.upper - without.lower).mean()
    if truth is not None:
        assert 0.92 < ((got.lower <= truth + 1e-9) & (truth <= got.upper + 1e-9)).mean() <= 0.99


def moments(F, codes, groups, Q, U, beta):
    """Return LabelMoments of predictions F @ beta, for groups with U more items of means Q."""
    B, e, g = len(Q), np.eye(N_CLASSES)[codes], F @ beta
    m = np.bincount(groups, minlength=B)[:, None]

    def total(X):
        return np.stack([X[groups == b].sum(axis=0) for b in range(B)])

    mean_g = (total(g) + U * Q @ beta) / (m + U)
    squares = [total(x[:, :, None] * g[:, None, :]) for x in (e, g)]
    return LabelMoments(total(e), *squares, mean_g, m[:, 0] + U)


@pytest.mark.parametrize("m", [30, 100])
def test_design_based_interval_is_valid_for_any_predictions(rng, m):
    B, U = 400, 200
    F, codes, groups, Q, truth = labelled_groups(rng, B, m, U)
    mean = truth @ np.arange(1, N_CLASSES + 1)
    good = np.linalg.lstsq(F, np.eye(N_CLASSES)[codes], rcond=None)[0]
    widths = []
    for beta in (good, good[:, ::-1], np.zeros_like(good)):
        got = design_based(moments(F, codes, groups, Q, U, beta))
        limits = got.bounds
        assert 0.92 < ((limits.lower <= truth + 1e-9) & (truth <= limits.upper + 1e-9)).mean() < 0.985
        assert 0.91 < ((limits.mean_lower <= mean) & (mean <= limits.mean_upper)).mean() < 0.985
        # Unbiased: 400 groups of m labels.
        assert_allclose((got.raw - truth).mean(axis=0), 0, atol=4 * 0.7 / np.sqrt(B * m))
        assert (limits.lower <= got.prevalences).all()
        assert_allclose(got.prevalences.sum(axis=1), 1)
        widths.append((limits.upper - limits.lower).mean())
    assert widths[0] < widths[2]
    # Predictions that are worse than none are given no power.
    assert widths[1] < 1.05 * widths[2]


def test_design_based_interval_is_exact_when_all_is_labelled(rng):
    F, codes, groups, _, truth = labelled_groups(rng, 3, 25, 0)
    got = design_based(moments(F, codes, groups, np.zeros((3, WIDTH)), 0, rng.normal(size=(WIDTH, N_CLASSES))))
    assert_allclose(got.raw, truth, atol=1e-12)
    assert_allclose(got.bounds.lower, truth, atol=1e-6)
    assert_allclose(got.bounds.upper, truth, atol=1e-6)


def test_population_adds_the_scatter_of_the_items(rng):
    F, codes, groups, _, truth = labelled_groups(rng, 3, 400, 0)
    got = design_based(
        moments(F, codes, groups, np.zeros((3, WIDTH)), 0, np.zeros((WIDTH, N_CLASSES))), estimand="population"
    )
    assert_allclose(got.covariance, multinomial(truth) / 399, rtol=1e-9, atol=1e-15)


# ---- representation ------------------------------------------------------------------------------------------------


def test_logits_are_stored_next_to_the_posteriors():
    S = np.array([[0.5, 0.25, 0.25], [1.0, 0.0, 0.0]])
    F = with_logits(S)
    assert_allclose(F[:, :3], S)
    assert_allclose(F[0, 3:], [0, np.log(3)])
    assert_allclose(F[1, 3:], np.log(0.98 / 0.02))


def test_logits_need_groups_or_items():
    assert uses_logits(8, 100, n_groups=45)
    assert not uses_logits(8, 10**6, n_groups=44)
    assert uses_logits(8, 7500)
    assert not uses_logits(8, 7499)


def test_intervals_of_a_rare_class_allow_for_more_of_it(rng):
    F, codes, groups = random_groups(rng, 60, (60, 100))
    few = np.flatnonzero(codes == 0)[5:]
    kept = np.setdiff1d(np.arange(len(codes)), few)
    model = learn(GroupSums.of(F[kept], codes[kept], groups[kept], N_CLASSES))
    assert model.rarity[0] == pytest.approx(0.8)
    assert (model.rarity[1:] == 0).all()
    # Groups that have some items of the class again.
    Q = np.stack([F[groups == g].mean(axis=0) for g in range(20)])
    sizes = np.bincount(groups)[:20]
    known = replace(model, rarity=None)
    width, narrow = ((b.upper - b.lower)[:, 0] for b in (bounds(predict(m, Q, sizes)) for m in (model, known)))
    assert (width > 1.2 * narrow).all()
    assert learn(GroupSums.of(F, codes, groups, N_CLASSES)).rarity is None


def test_one_label_hardly_changes_the_uncertainty_of_a_rare_class(rng):
    F, codes, groups = random_groups(rng, 60, (60, 100))
    kept = np.setdiff1d(np.arange(len(codes)), np.flatnonzero(codes == 0)[5:])
    model = learn(GroupSums.of(F[kept], codes[kept], groups[kept], N_CLASSES))
    Q, N = F[groups == 0].mean(axis=0)[None], np.array([80.0])
    first = np.flatnonzero((groups == 0) & (codes == 1))[0]
    one = GroupLabels(np.eye(N_CLASSES)[[1]], F[[first]])
    without, labelled = predict(model, Q, N), predict_labelled(model, Q, N - 1, one)
    widths = [(b.upper - b.lower)[0, 0] for b in (bounds(without), bounds(labelled))]
    assert widths[1] > 0.7 * widths[0]
