"""Groups that are estimated by a model that was fitted without groups."""

import warnings

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_array_equal

import ordinalq as oq
from ordinalq.inference import NoTrainingGroupsWarning

MESSAGE = "The model was fitted without groups"


@pytest.fixture
def reviews(rng):
    """Return features (N, 2), labels 1..4, and groups that differ in the features of their items."""
    groups = rng.integers(40, size=800)
    y = rng.integers(1, 5, size=800)
    return y[:, None] + 0.5 * rng.normal(size=(40, 1))[groups] + rng.normal(size=(800, 2)), y, groups


@pytest.fixture
def default(reviews):
    """Return the default, fitted without groups."""
    return oq.AutoQuantifier(budget="fast").fit(*reviews[:2])


def test_the_default_assumes_a_group_effect_and_warns_once(reviews, default):
    X, _, groups = reviews
    with pytest.warns(NoTrainingGroupsWarning, match="a group effect of 0.1 is assumed. Pass groups to fit") as caught:
        got = default.predict_groups(X, groups, level=0.95)
    assert len(caught) == 1
    assert caught[0].filename == __file__
    stated = oq.GroupBLP(group_effect=0.1).fit_on(default.classifier_, reviews[1])
    same = stated.predict_groups(X, groups, level=0.95)
    assert_array_equal(got.prevalences, same.prevalences)
    assert_array_equal(got.lower, same.lower)


def test_without_a_stated_effect_groups_are_estimated_as_samples(reviews, default):
    X, y, groups = reviews
    plain = oq.AutoQuantifier(budget="fast", group_effect=None).fit(X, y)
    with pytest.warns(NoTrainingGroupsWarning, match="same features in every group"):
        got = plain.predict_groups(X, groups).prevalences
    samples = oq.Samples.from_groups(groups)
    assert_array_equal(got, default.predict_samples(X, samples))
    narrow = plain.predict_groups(X, groups % 2, level=0.95)
    wide = default.predict_groups(X, groups % 2, level=0.95)
    assert (wide.upper - wide.lower).mean() > (narrow.upper - narrow.lower).mean()


def test_samples_and_single_estimates_do_not_use_the_effect(reviews, default):
    X, y, groups = reviews
    plain = oq.AutoQuantifier(budget="fast", group_effect=None).fit(X, y)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert_array_equal(default.predict(X), plain.predict(X))
        samples = oq.Samples.from_groups(groups)
        assert_array_equal(default.predict_groups(X, samples).prevalences, plain.predict_samples(X, samples))
        assert_array_equal(default.predict_interval(X).lower, plain.predict_interval(X).lower)


def test_named_methods_warn_and_keep_their_estimates(reviews):
    X, y, groups = reviews
    q = oq.PACC().fit(X, y)
    with pytest.warns(NoTrainingGroupsWarning, match="same features in every group"):
        got = q.predict_groups(X, groups)
    assert_array_equal(got.prevalences, q.predict_samples(X, oq.Samples.from_groups(groups)))


def test_models_that_were_fitted_with_groups_do_not_warn(reviews):
    X, y, groups = reviews
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for q in (oq.AutoQuantifier(budget="fast"), oq.PACC()):
            q.fit(X, y, groups=groups).predict_groups(X, groups, level=0.9)


def test_plans_for_labels_use_the_same_model_as_the_estimates(reviews, default):
    X, _, groups = reviews
    with pytest.warns(NoTrainingGroupsWarning):
        needed = default.labels_needed(X, groups, width=0.2)
    got = default.predict_groups(X, groups, level=0.95)
    by_model = needed.basis == "model"
    assert by_model.any()
    widths = got.bounds.mean_upper - got.bounds.mean_lower
    np.testing.assert_allclose(needed.now[by_model], widths[by_model], rtol=1e-9)


def test_tables_warn_if_they_are_grouped(reviews, tmp_path):
    X, y, groups = reviews
    frame = pd.DataFrame(X, columns=["a", "b"]).assign(stars=y, shop=groups)
    model = oq.TableModel(oq.AutoQuantifier(budget="fast"), features=["a", "b"]).fit(frame, target="stars")
    with pytest.warns(NoTrainingGroupsWarning):
        got = model.predict_groups(frame, by="shop", level=0.95)
    oq.save_model(model, tmp_path / "m.oq")
    loaded = oq.load_model(tmp_path / "m.oq")
    with pytest.warns(NoTrainingGroupsWarning):
        assert_array_equal(loaded.predict_groups(frame, by="shop", level=0.95).lower, got.lower)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model.predict(frame)
