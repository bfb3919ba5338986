"""A common offset of all new groups: its formula, its use in estimates, tables, files and on clusters."""

import json
import warnings
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.linalg import block_diag
from seeds import generator
from sklearn.linear_model import LogisticRegression
from test_group_training import N_CLASSES, covered, make

import ordinalq as oq
from ordinalq.cli import main
from ordinalq.inference import drift as drifts
from ordinalq.inference.drift import DriftSums, drift_sums, shifted, solve_drift
from ordinalq.inference.group_labels import GroupLabels, within_groups
from ordinalq.inference.group_model import Filter, ModelDistance, State, condition, predict
from ordinalq.inference.predict import estimate
from ordinalq.samples import summary as blocks

CLASSIFIER = oq.classifiers.CrossFitted(LogisticRegression(), cv=5)


@pytest.fixture(scope="module")
def trained():
    X, y, groups = make(generator(5), 100, 40)
    return oq.GroupBLP(CLASSIFIER).fit(X, y, groups=groups)


def with_other_labels(rng, n_groups, n_items, part):
    """Return features, labels and groups like those of `make`, but part of the labels are a class higher."""
    X, y, groups = make(rng, n_groups, n_items)
    return X, np.where(rng.random(len(y)) < part, np.minimum(y + 1, N_CLASSES), y), groups


def some_labels(rng, y, total):
    """Return the labels of some items drawn at random, NaN for the others."""
    labels = np.full(len(y), np.nan)
    chosen = rng.choice(len(y), total, replace=False)
    labels[chosen] = y[chosen]
    return labels


def truth_of(groups, y):
    return oq.Samples.from_groups(groups, y).prevalences


def summary_of(quantifier, rng, n_groups=15, n_labelled=0):
    X, y, groups = make(rng, n_groups, 30)
    labels = some_labels(rng, y, n_labelled) if n_labelled else None
    return quantifier.summarize(quantifier.scores(X), oq.Samples.from_groups(groups), labels=labels)


# The formula


def near_groups(model, rng, n_groups=6):
    """Return what is seen of groups near the centre of the model, so that all count in full; two have labels."""
    looks = State.of(model).looks
    # Variances of these coordinates are 1/50 at least: squared distances are below those of 0.125 chi-square.
    Q = model.M @ model.mu + model.shift + 0.05 * rng.normal(size=(n_groups, looks.shape[1])) @ looks.T
    counts = np.zeros((n_groups, model.n_classes))
    counts[:2] = rng.integers(1, 4, (2, model.n_classes))
    sums = counts @ model.M.T + 0.01 * rng.normal(size=Q.shape) * (counts.sum(axis=1) > 0)[:, None]
    return Q, rng.integers(10, 50, n_groups).astype(float), GroupLabels(counts, sums)


@pytest.mark.parametrize("strength", [0.1, 1.0])
def test_the_offset_is_that_of_one_dense_gaussian(trained, rng, strength):
    model = trained.group_model_
    Q, U, labels = near_groups(model, rng)
    state, filt = State.of(model), Filter.of(model)
    seen = ModelDistance.of(model, filt, Q, U)
    assert (seen.distance < filt.rank).all()
    base = predict(model, Q, U)
    Omega = within_groups(model, state, GroupLabels(labels.counts + 0.0, labels.sums), base.mean, base.covariance)
    # All observations of all groups as one vector z = H delta + noise.
    H, S, z = [], [], []
    for g, m in enumerate(labels.n_labelled):
        q = (Q[g] - model.M[:, -1]) @ state.Z - state.H @ state.theta
        if m == 0:
            within = (model.M @ model.B @ model.M.T + model.W) / U[g]
            pairs = np.hstack([model.M, np.eye(len(model.M))])
            S.append(state.Z.T @ (pairs @ model.effect @ pairs.T * (1 - 1 / U[g]) + within) @ state.Z)
            H.append(state.H)
            z.append(q)
            continue
        both = np.vstack([np.eye(len(state.J)), state.H])
        residual = labels.sums[g] - labels.counts[g] @ model.M.T
        x = state.to_theta @ np.r_[labels.counts[g], residual] / m - state.theta
        noise = block_diag(Omega[g] / m, state.H @ Omega[g] @ state.H.T / U[g])
        S.append(both @ state.J @ both.T + noise)
        H.append(both)
        z.append(np.r_[x, q])
    H, z = np.vstack(H), np.concatenate(z)
    prior = strength * state.J + drifts.error_of_centre(model, state)
    gain = prior @ H.T @ np.linalg.inv(H @ prior @ H.T + block_diag(*S))
    found = solve_drift(model, drift_sums(model, Q, U, labels), strength)
    assert_allclose(found.offset, state.to_full @ gain @ z, rtol=1e-6, atol=1e-9)
    covariance = state.to_full @ (prior - gain @ H @ prior) @ state.to_full.T
    assert_allclose(found.root @ found.root.T, covariance, rtol=1e-6, atol=1e-10)


def test_the_average_over_strengths_has_the_moments_of_the_mixture(trained, rng):
    model = trained.group_model_
    sums = drift_sums(model, *near_groups(model, rng))
    state = State.of(model)
    J, H = state.J, state.H
    shown = J @ H.T @ np.linalg.inv(H @ J @ H.T) @ H @ J
    weight, mean, second = [], [], []
    for c, p in zip(drifts.STRENGTHS, drifts.PRIOR, strict=True):
        for hidden, also in zip(drifts.STRENGTHS, drifts.PRIOR, strict=True):
            prior = c * shown + hidden * (J - shown) + drifts.error_of_centre(model, state)
            C = np.linalg.inv(np.linalg.inv(prior) + sums.information)
            fit = C @ sums.score
            volume = np.linalg.slogdet(np.eye(len(J)) + prior @ sums.information)[1]
            weight.append(p * also * np.exp((sums.score @ fit - volume) / 2))
            mean.append(fit)
            second.append(C)
    weight = np.array(weight) / np.sum(weight)
    center = weight @ np.array(mean)
    found = solve_drift(model, sums)
    assert_allclose(found.offset, state.to_full @ center, rtol=1e-5, atol=1e-9)
    # With ten labels or more, the covariance leaves out small strengths of the part that only labels show.
    assert sums.n_labelled >= drifts.FEW_LABELS
    kept = np.tile(np.array(drifts.STRENGTHS) >= drifts.NOT_EXCLUDED, len(drifts.STRENGTHS))
    weight = weight * kept / weight[kept].sum()
    spread = sum(w * (C + np.outer(b - center, b - center)) for w, C, b in zip(weight, second, mean, strict=True))
    assert_allclose(found.root @ found.root.T, state.to_full @ spread @ state.to_full.T, rtol=1e-5, atol=1e-10)


def test_the_shared_error_is_that_of_the_centre_after_conditioning(trained, rng):
    model = trained.group_model_
    Q, U, labels = near_groups(model, rng)
    moved = shifted(model, solve_drift(model, drift_sums(model, Q, U, labels)))
    n, M = model.n_classes, model.M
    got = condition(moved, Q, U, "sample")
    for g, N in enumerate(U):
        both = np.hstack([M, np.eye(len(M))])
        C = moved.effect * (1 - 1 / N) + block_diag(moved.B, moved.W) / N
        # Posteriors sum to one, so that the covariance of q is singular.
        gain = C @ both.T @ np.linalg.pinv(both @ C @ both.T, rcond=1e-9, hermitian=True)
        expected = (np.eye(len(C)) - gain @ both)[:n] @ moved.common
        assert_allclose(got.shared[g], expected, atol=1e-7)


def test_sums_of_parts_merge_to_those_of_all(trained, rng):
    whole = summary_of(trained, rng, 40, 25)
    parts = [trained.collect(whole[rows]) for rows in (slice(15), slice(15, 40))]
    for one, other in zip(parts[0].merge(parts[1]), trained.collect(whole), strict=True):
        assert_allclose(one, other, rtol=1e-9, atol=1e-9)


def test_chunks_of_groups_do_not_change_the_sums(trained, rng, monkeypatch):
    model = trained.group_model_
    seen = near_groups(model, rng, 9)
    expected = drift_sums(model, *seen)
    monkeypatch.setattr(drifts, "CHUNK", 8)
    for one, other in zip(drift_sums(model, *seen), expected, strict=True):
        assert_allclose(one, other, rtol=1e-9, atol=1e-12)


def test_a_group_far_from_all_others_hardly_moves_the_offset(trained, rng):
    model = trained.group_model_
    Q, U, _ = near_groups(model, rng, 30)
    before = solve_drift(model, drift_sums(model, Q, U)).offset
    far = Q.copy()
    far[0] += 1000 * (np.eye(len(Q[0]))[0] - np.eye(len(Q[0]))[1])
    after = solve_drift(model, drift_sums(model, far, U)).offset
    sd = np.sqrt(np.diag(model.effect)).max()
    assert np.abs(after - before).max() < 0.2 * sd


# Estimates


@pytest.mark.parametrize("n_labelled", [0, 40])
def test_strength_zero_gives_the_estimates_without_drift(trained, rng, n_labelled):
    summary = summary_of(trained, rng, 15, n_labelled)
    none, zero = (estimate(trained, summary, 0.95, drift=drift) for drift in (None, 0))
    assert_allclose(zero.prevalences, none.prevalences, atol=1e-12)
    assert none.drift is None
    assert none.shared is None
    assert_array_equal(zero.drift.offset, 0)
    # The error of the training groups is shared.
    assert np.abs(zero.shared).max() > 0
    assert_allclose(zero.own + zero.shared @ zero.shared.transpose(0, 2, 1), zero.covariance, atol=1e-6)
    assert (np.linalg.eigvalsh(zero.own) > -1e-6).all()


def test_without_drift_a_group_does_not_depend_on_the_others(trained, rng):
    summary = summary_of(trained, rng, 20)
    alone = estimate(trained, summary[:5], 0.95, drift=None)
    assert_array_equal(estimate(trained, summary, 0.95, drift=None).lower[:5], alone.lower)
    assert np.abs(estimate(trained, summary, 0.95).lower[:5] - alone.lower).max() > 1e-6


def test_a_stored_drift_gives_the_same_estimates_later(trained, rng):
    summary = summary_of(trained, rng, 20, 30)
    first = estimate(trained, summary, 0.95)
    read = oq.inference.Drift.from_json(json.loads(json.dumps(first.to_json()["drift"])))
    for drift in (first.drift, read):
        later = estimate(trained, summary[:4], 0.95, drift=drift)
        assert_allclose(later.prevalences, first.prevalences[:4], atol=1e-12)
        assert_allclose(later.lower, first.lower[:4], atol=1e-12)
        assert_allclose(later.shared, first.shared[:4], atol=1e-6)
        assert later.verdict.startswith("The offset of an earlier table (20 groups, 30 labels) was used. It moves the ")
        assert "of an earlier table, found from 20 groups and 30 labels" in later.provenance.drift
    assert str(read) == str(first.drift)
    assert first.verdict.startswith("The new groups as a whole")
    assert "earlier" not in first.provenance.drift


def test_labels_of_one_group_move_the_others(trained, rng):
    X, y, groups = with_other_labels(rng, 8, 60, 1.0)
    labels = np.where(groups == 0, y, np.nan)
    without, got = (trained.predict_groups(X, groups, labels=given) for given in (None, labels))
    assert without.drift is None
    change = (got.mean - without.mean)[1:]
    assert change.mean() > 0
    assert_allclose(got.moved[1:] @ np.arange(1, N_CLASSES + 1), change, atol=1e-9)
    assert got.drift.n_labelled == 60


def test_few_groups_without_labels_have_no_offset(trained, rng):
    assert estimate(trained, summary_of(trained, rng, 9)).drift is None
    assert estimate(trained, summary_of(trained, rng, 10)).drift is not None
    assert estimate(trained, summary_of(trained, rng, 2, 1)).drift is not None
    assert estimate(trained, summary_of(trained, rng, 2), drift=0.3).drift.strengths == (0.3, 0.3)


def test_samples_of_a_pool_have_no_offset(trained, rng):
    X, _, _ = make(rng, 20, 30)
    samples = rng.integers(len(X), size=(30, 50))
    assert trained.predict_interval(X, 0.9, oq.Samples.from_index(samples, len(X))).drift is None


def test_a_larger_strength_widens_intervals(trained, rng):
    summary = summary_of(trained, rng, 20)
    widths = [estimate(trained, summary, 0.95, drift=c).bounds for c in (0, 0.3, 3)]
    means = [(b.mean_upper - b.mean_lower).mean() for b in widths]
    assert means[0] < means[1] < means[2]


def test_few_labels_anywhere_help_all_groups_that_are_labelled_by_another_standard(trained, rng):
    """Features are the same, but most labels are a class higher."""
    X, y, groups = with_other_labels(rng, 60, 60, 0.8)
    truth, labels = truth_of(groups, y), some_labels(rng, y, 300)
    got, without = (trained.predict_groups(X, groups, level=0.95, labels=labels, drift=d) for d in ("auto", None))
    # Over 40 seeds of 100 labels the ratio of errors is 0.48 with a standard deviation of 0.042.
    assert oq.metrics.nmd(truth, got.prevalences).mean() < 0.7 * oq.metrics.nmd(truth, without.prevalences).mean()
    assert covered(got, truth)[0] > covered(without, truth)[0]
    assert got.drift.differs
    assert (got.basis == "model").mean() > 0.8


def test_drift_correction_costs_little_without_drift(trained, rng):
    X, y, groups = make(rng, 100, 60)
    truth, labels = truth_of(groups, y), some_labels(rng, y, 100)
    got, without = (trained.predict_groups(X, groups, level=0.95, labels=labels, drift=d) for d in ("auto", None))
    # Over 40 seeds the ratio of errors is 1.003 and the coverage 0.954, with standard deviations of 0.012 and 0.015.
    assert oq.metrics.nmd(truth, got.prevalences).mean() < 1.1 * oq.metrics.nmd(truth, without.prevalences).mean()
    assert covered(got, truth)[0] > 0.88


def test_groups_whose_items_have_changed_differ_as_a_whole(trained, rng):
    X, _, groups = make(rng, 40, 60)
    got = trained.predict_groups(X + 2.0, groups)
    assert got.drift.differs
    assert "as a whole differ from the training groups (p < 0.001)" in got.verdict


def test_the_verdict_does_not_depend_on_a_stated_strength(trained, rng):
    X, _, groups = make(rng, 40, 60)
    summary = trained.summarize(trained.scores(X + 2.0), oq.Samples.from_groups(groups))
    found = [estimate(trained, summary, drift=drift).drift for drift in ("auto", 0, 0.3)]
    assert found[0].differs
    assert len({str(drift) for drift in found}) == 1
    assert len({drift.size for drift in found}) == 1


def test_groups_are_unlike_the_training_groups_only_after_the_offset(rng):
    """New groups are similar, but have mostly another class than the training groups."""
    X, y, groups = make(rng, 60, 60, spread=0.1, concentration=100)
    q = oq.GroupBLP(CLASSIFIER).fit(X, y, groups=groups)
    with_offset, without = (q.predict_groups(X[y == 1], groups[y == 1], drift=d).fit for d in ("auto", None))
    assert (without == "good").mean() < 0.8
    assert (with_offset == "good").mean() > 0.9


def test_p_values_of_like_groups_are_not_too_small(trained):
    """All tables share the training groups: even so, 12 of 20 below 5% would not be chance."""
    p = [estimate(trained, summary_of(trained, generator(100 + s), 30, 20 * (s % 2))).drift.p_value for s in range(20)]
    assert np.sum(np.array(p) < 0.05) < 12
    assert np.median(p) > 0.01


def test_labels_that_are_not_a_random_draw_are_warned_of(trained, rng):
    X, y, groups = make(rng, 30, 60)
    chosen = np.argsort(X.sum(axis=1))[-150:]
    labels = np.full(len(y), np.nan)
    labels[chosen] = y[chosen]
    with pytest.warns(oq.inference.LabelSelectionWarning, match="drawn at random"):
        trained.predict_groups(X, groups, labels=labels)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", oq.inference.LabelSelectionWarning)
        assert trained.predict_groups(X, groups, labels=some_labels(rng, y, 150)).drift.selection_p_value > 1e-6


def test_differences_of_groups_do_not_contain_the_offset(trained, rng):
    """Two groups share the error of the offset, so that their difference is known better than either."""
    summary = summary_of(trained, rng, 12)
    small, large = (estimate(trained, summary, 0.95, drift=c) for c in (0.1, 3))
    a, b = (one.compare(0, 1).mean_upper - one.compare(0, 1).mean_lower for one in (small, large))
    width = [(one.bounds.mean_upper - one.bounds.mean_lower).mean() for one in (small, large)]
    assert b.mean() / a.mean() < 0.5 * (1 + width[1] / width[0])


def test_blocks_of_groups_have_the_offset_of_all(trained, rng, monkeypatch):
    summary = summary_of(trained, rng, 20, 30)
    expected = estimate(trained, summary, 0.95)
    monkeypatch.setattr(blocks, "BLOCK_SAMPLES", 7)
    got = estimate(trained, summary, 0.95)
    assert_allclose(got.prevalences, expected.prevalences, atol=1e-12)
    assert_allclose(got.shared, expected.shared, atol=1e-7)
    assert got.verdict == expected.verdict


def test_provenance_states_the_offset(trained, rng):
    got = estimate(trained, summary_of(trained, rng, 12, 5))
    assert "a common offset, found from 12 groups and 5 labels" in got.provenance.drift
    stated = estimate(trained, summary_of(trained, rng, 3), drift=0.3)
    assert "stated strength 0.3" in stated.provenance.drift
    assert "none" in estimate(trained, summary_of(trained, rng, 3)).provenance.drift


@pytest.mark.parametrize(
    ("drift", "error", "match"),
    [
        ("none", TypeError, "drift must be"),
        (True, TypeError, "drift must be"),
        (-1, ValueError, "drift"),
        (np.nan, ValueError, "drift"),
    ],
)
def test_impossible_drifts_are_errors(trained, rng, drift, error, match):
    with pytest.raises(error, match=match):
        estimate(trained, summary_of(trained, rng, 3), drift=drift)


def test_a_drift_needs_a_model_of_groups_and_belongs_to_it(trained, rng):
    X, y, groups = make(rng, 10, 30)
    q = oq.PACC(CLASSIFIER).fit(X, y, groups=groups)
    with pytest.raises(ValueError, match="for PACC, which has no model of groups"):
        q.predict_groups(X, groups, drift=0.3)
    assert q.predict_groups(X, groups).drift is None
    drift = trained.predict_groups(X, groups).drift
    with pytest.raises(ValueError, match="same model"):
        estimate(trained, summary_of(trained, rng, 3), drift=replace(drift, offset=drift.offset[1:]))


def test_the_default_with_groups_has_an_offset(rng):
    X, y, groups = make(rng, 20, 30)
    q = oq.AdjustedML(CLASSIFIER).fit(X, y, groups=groups)
    new, _, asked = make(rng, 12, 30)
    got = q.predict_groups(new, asked, level=0.9)
    assert got.drift is not None
    assert_allclose(
        q.predictor_.infer(
            q.summarize(q.scores(new), oq.Samples.from_groups(asked)),
            oq.inference.IntervalOptions(),
            None,
            0,
            got.drift,
        ).prevalences,
        got.prevalences,
        atol=1e-12,
    )


def test_a_table_of_one_class_of_scores_still_has_sums(trained):
    sums = DriftSums(np.zeros((2, 2)), np.zeros(2), np.zeros(1), 0.0, 0, 0)
    assert drifts._p_value(trained.group_model_, State.of(trained.group_model_), sums) == 1.0


# Tables, files and clusters


def frame_of(rng, n_groups, n_labelled=0):
    X, y, groups = make(rng, n_groups, 30)
    frame = pd.DataFrame({"x": X[:, 0], "z": X[:, 1], "shop": groups, "stars": y})
    known = np.nan if n_labelled == 0 else some_labels(rng, y, n_labelled)
    return frame.assign(known=known)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Return a folder with a model and a table with some labels."""
    found = tmp_path_factory.mktemp("drift")
    model = oq.TableModel(oq.GroupBLP(CLASSIFIER), features=["x", "z"])
    model.fit(frame_of(generator(0), 40), "stars", by="shop").save(found / "m.oq")
    frame_of(generator(1), 15, 40).to_csv(found / "new.csv", index=False)
    return found


def answered(capsys, folder, *options):
    """Return the JSON of the estimates of the table."""
    main(["predict", str(folder / "m.oq"), str(folder / "new.csv"), "--by", "shop", "--json", *options])
    return json.loads(capsys.readouterr().out)


def test_commands_give_the_result_of_the_library(capsys, folder):
    model, frame = oq.load_model(folder / "m.oq"), pd.read_csv(folder / "new.csv")
    for options, how in (
        ((), {}),
        (("--labels", "known"), {"labels": "known"}),
        (("--drift", "none"), {"drift": None}),
        (("--drift", "0.3"), {"drift": 0.3}),
    ):
        got, expected = answered(capsys, folder, *options), model.predict_groups(frame, "shop", **how)
        assert_allclose([g["prevalences"] for g in got["groups"]], expected.prevalences, atol=1e-9)
        assert ("drift" in got) == (expected.drift is not None)
        if expected.drift is not None:
            assert got["drift"]["verdict"] == expected.verdict
            assert_allclose(got["drift"]["moved"], expected.moved.mean(axis=0), atol=1e-9)


def test_a_file_of_estimates_states_the_offset_of_a_later_table(capsys, folder):
    first = answered(capsys, folder, "--labels", "known")
    (folder / "first.json").write_text(json.dumps(first))
    again = answered(capsys, folder, "--drift", str(folder / "first.json"))
    assert again["drift"]["offset"] == first["drift"]["offset"]
    assert again["drift"]["verdict"].startswith("The offset of an earlier table (")


@pytest.mark.parametrize("content", ["{", "[]", "{}", '{"drift": {}}', '{"drift": {"offset": "x"}}'])
def test_files_without_an_offset_are_errors(capsys, folder, content):
    (folder / "bad.json").write_text(content)
    arguments = ["--by", "shop", "--drift", str(folder / "bad.json")]
    assert main(["predict", str(folder / "m.oq"), str(folder / "new.csv"), *arguments]) != 0
    assert "drift" in capsys.readouterr().err


def test_the_terminal_states_the_verdict_once(capsys, folder):
    main(["predict", str(folder / "m.oq"), str(folder / "new.csv"), "--by", "shop", "--labels", "known"])
    text = " ".join(capsys.readouterr().out.split())
    assert text.count("The new groups as a whole") == 1
    assert "40 labels of any groups were used" in text


def test_shown_groups_have_the_offset_of_all(capsys, folder):
    whole, top = (answered(capsys, folder, *options) for options in ((), ("--sort", "mean", "--top", "3")))
    assert top["drift"]["offset"] == whole["drift"]["offset"]
    means = [group["mean_class"] for group in top["groups"][:3]]
    assert means == sorted(means, reverse=True)
    assert means[0] == pytest.approx(max(group["mean_class"] for group in whole["groups"]))


def test_comparisons_use_the_offset_of_all_groups(capsys, folder):
    model, frame = oq.load_model(folder / "m.oq"), pd.read_csv(folder / "new.csv")
    main(["compare", str(folder / "m.oq"), str(folder / "new.csv"), "0", "1", "--by", "shop", "--json"])
    options = oq.inference.IntervalOptions(estimand="population")
    expected = model.predict_groups(frame, "shop", level=0.95, options=options).compare(0, 1).to_json()
    (got,) = json.loads(capsys.readouterr().out)["pairs"]
    for name in ("mean_class", "mean_class_lower", "mean_class_upper", "p_value"):
        assert got[name] == pytest.approx(expected["pairs"][0][name])


@pytest.mark.parametrize("how", [{}, {"labels": "known"}, {"drift": None}, {"drift": 0.3}], ids=str)
def test_dask_gives_the_result_of_one_machine(folder, how, monkeypatch):
    dd = pytest.importorskip("dask.dataframe")
    monkeypatch.setattr(blocks, "BLOCK_SAMPLES", 4)
    model, frame = oq.load_model(folder / "m.oq"), pd.read_csv(folder / "new.csv")
    there = dd.from_pandas(frame, npartitions=3)
    got = oq.dask.predict_groups(model, there, "shop", level=0.9, **how)
    expected = model.predict_groups(frame, "shop", level=0.9, **how)
    assert_allclose(got.prevalences, expected.prevalences, atol=1e-10)
    assert_allclose(got.lower, expected.lower, atol=1e-10)
    assert got.verdict == expected.verdict
