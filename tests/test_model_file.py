"""Saved models: the same after loading, nothing but known types, and a clear error for everything else."""

import io
import json
import os
import pickle
import re
import stat
import subprocess
import sys
import zipfile
from pathlib import Path

import numpy as np
import pandas as pd
import polars as pl
import pytest
import skops.io
from numpy.testing import assert_array_equal
from seeds import generator
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.decomposition import PCA
from sklearn.ensemble import (
    AdaBoostClassifier,
    BaggingClassifier,
    HistGradientBoostingRegressor,
    RandomForestClassifier,
)
from sklearn.naive_bayes import GaussianNB
from sklearn.neural_network import MLPRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, StandardScaler
from sklearn.tree import DecisionTreeClassifier

import ordinalq as oq
from ordinalq import losses, regularizers, representations
from ordinalq.classifiers import calibration, cross_fitting, logistic, ordinal, stacking
from ordinalq.inference.group_model import GroupModel
from ordinalq.inference.model import HeldOut
from ordinalq.inference.tuning import Tuning
from ordinalq.quantifiers.auto import Training
from ordinalq.samples.weights import Weights
from ordinalq.solvers import l1, newton, quadratic, softmax
from ordinalq.tables import model_file
from ordinalq.tables.model import TypedColumns, Words
from ordinalq.tables.model_file import META, PAYLOAD, load_model_and_info, own_types, read_info


@pytest.fixture(scope="module")
def data():
    rng = generator(1)
    y = np.repeat([1, 2, 3, 4, 5], 40)
    return y[:, None] + rng.normal(size=(200, 3)), y, 3 + rng.normal(size=(50, 3))


@pytest.fixture(scope="module")
def model(data):
    X, y, _ = data
    return oq.OPACC(oq.classifiers.CrossFitted(GaussianNB(), cv=2), tau=0.01).fit(X, y)


@pytest.fixture
def saved(model, tmp_path):
    oq.save_model(model, tmp_path / "model.oq")
    return tmp_path / "model.oq"


def rewrite(path, *, meta=None, payload=None, checksum=True, extra=(), compression=zipfile.ZIP_STORED):
    """Write the file again with changes; with `checksum`, also its checksum."""
    with zipfile.ZipFile(path) as archive:
        old, data = json.loads(archive.read(META)), archive.read(PAYLOAD)
    new = {**old, **(meta or {})}
    data = data if payload is None else payload
    if checksum:
        new["sha256"] = model_file.checksum(new, data)
    with zipfile.ZipFile(path, "w", compression) as archive:
        archive.writestr(META, json.dumps(new))
        archive.writestr(PAYLOAD, data)
        for name in extra:
            archive.writestr(name, "more")


# The same after loading


@pytest.mark.parametrize("entry", oq.catalog(beyond=False), ids=lambda entry: entry.name)
def test_every_method_predicts_the_same_after_loading(entry, data, tmp_path):
    X, y, pool = data
    on_features = "classifier" not in entry.cls().get_params()
    q = entry.cls() if on_features else entry.cls(oq.classifiers.CrossFitted(GaussianNB(), cv=2))
    q.fit(X, y)
    index = np.arange(48).reshape(4, 12)
    before = q.predict_samples(pool, index)
    info = oq.save_model(q, tmp_path / "model.oq")
    loaded = oq.load_model(tmp_path / "model.oq")
    assert type(loaded) is entry.cls
    assert_array_equal(loaded.predict_samples(pool, index), before)
    assert_array_equal(q.predict_samples(pool, index), before)  # saving changed nothing
    assert info.method == entry.name
    assert info.classes == [1, 2, 3, 4, 5]
    assert info.p_train == [0.2] * 5


@pytest.mark.parametrize(
    "q",
    [
        oq.PACC(RandomForestClassifier(20, oob_score=True, random_state=0)),
        oq.PACC(make_pipeline(StandardScaler(), GaussianNB())),
        oq.SLD(oq.classifiers.CrossFitted(GaussianNB()), calibration="vector"),
        oq.OACC(oq.classifiers.CrossFitted(oq.classifiers.OrdinalLogisticAT(), cv=2)),
        oq.ACC(oq.classifiers.CrossFitted(oq.classifiers.OrdinalRidge(), cv=2)),
        oq.PACC(oq.classifiers.CrossFitted(GaussianNB()), solver="newton"),
        oq.ARC(GaussianNB(), correction="acc"),
        oq.OEDy(oq.classifiers.OrdinalStack(random_state=0)),
        oq.PACC(
            oq.classifiers.OrdinalStack(
                [MLPRegressor(hidden_layer_sizes=(5,), max_iter=5000, random_state=0), GaussianNB()], cv=2
            )
        ),
        oq.OPACC(oq.classifiers.CrossFitted(GaussianNB()), tau="auto"),
        oq.OSLD(oq.classifiers.CrossFitted(GaussianNB()), interpolation="auto"),
        oq.ComposedQuantifier(
            representations.Partition(8), losses.Poisson(), regularizers.Tikhonov(10.0), solver=newton.NewtonSolver()
        ),
    ],
    ids=lambda q: type(q).__name__,
)
def test_classifiers_solvers_and_compositions_load_too(q, data, tmp_path):
    X, y, pool = data
    q.fit(X, y)
    oq.save_model(q, tmp_path / "model.oq")
    loaded = oq.load_model(tmp_path / "model.oq")
    assert_array_equal(loaded.predict(pool), q.predict(pool))


def test_intervals_are_the_same_after_loading(model, saved, data):
    before = model.predict_groups(data[2], np.arange(50) % 3, level=0.9)
    after = oq.load_model(saved).predict_groups(data[2], np.arange(50) % 3, level=0.9)
    pd.testing.assert_frame_equal(after.frame(), before.frame(), check_exact=True)


@pytest.mark.parametrize("frame", [pd.DataFrame, pl.DataFrame])
def test_names_of_the_features_are_kept_and_checked(frame, data, tmp_path):
    X, y, pool = data
    names = ["price", "weight", "größe"]
    q = oq.PACC(oq.classifiers.CrossFitted(GaussianNB(), cv=2)).fit(frame(dict(zip(names, X.T, strict=True))), y)
    info = oq.save_model(q, tmp_path / "model.oq")
    assert list(info.columns) == names
    loaded = oq.load_model(tmp_path / "model.oq")
    assert loaded.feature_names_in_.tolist() == names
    good = frame(dict(zip(names, pool.T, strict=True)))
    assert_array_equal(loaded.predict(good), q.predict(good))
    with pytest.raises(ValueError, match="feature names"):
        loaded.predict(frame(dict(zip("abc", pool.T, strict=True))))


@pytest.mark.parametrize(
    ("labels", "kept"),
    [
        (["bad", "fair", "good", "very good", "great"], ["bad", "fair", "good", "very good", "great"]),
        ([0.5, 1.0, 1.5, 2.0, 2.5], [0.5, 1.0, 1.5, 2.0, 2.5]),
    ],
)
def test_labels_keep_their_order_and_type(labels, kept, data, tmp_path):
    X, y, _ = data
    q = oq.CC(oq.classifiers.CrossFitted(GaussianNB(), cv=2)).fit(X, np.array(labels)[y - 1], classes=labels)
    info = oq.save_model(q, tmp_path / "model.oq")
    assert info.classes == kept
    assert oq.load_model(tmp_path / "model.oq").classes_.tolist() == labels


def test_pipelines_that_end_with_a_quantifier_are_models(data, tmp_path):
    X, y, pool = data
    pipeline = make_pipeline(StandardScaler(), oq.ARC(GaussianNB())).fit(X, y)
    oq.save_model(pipeline, tmp_path / "model.oq")
    assert_array_equal(oq.load_model(tmp_path / "model.oq").predict(pool), pipeline.predict(pool))
    assert set(pipeline[-1].models_) == set(oq.load_model(tmp_path / "model.oq")[-1].models_)


def test_the_file_describes_its_content(model, saved):
    info = oq.save_model(model, saved)
    assert read_info(saved) == info
    assert load_model_and_info(saved)[1] == info
    assert info.versions["ordinalq"] == oq.__version__
    assert set(info.versions) == {"python", "ordinalq", "scikit-learn", "numpy", "skops"}
    assert info.parameters["tau"] == "0.01"
    assert info.n_held_out == 200


# Writing


def test_models_are_replaced_but_other_files_are_not(model, saved, tmp_path):
    oq.save_model(model, saved)
    thesis = tmp_path / "thesis.oq"
    thesis.write_text("mine")
    with pytest.raises(FileExistsError, match=r"thesis.oq: exists and is not an ordinalq model; .* set overwrite=True"):
        oq.save_model(model, thesis)
    assert thesis.read_text() == "mine"
    oq.save_model(model, thesis, overwrite=True)
    assert oq.load_model(thesis).tau == 0.01


def test_failure_while_writing_leaves_the_old_file_and_nothing_else(model, saved, monkeypatch):
    before = saved.read_bytes()

    def fail(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr(zipfile.ZipFile, "writestr", fail)
    with pytest.raises(KeyboardInterrupt):
        oq.save_model(model, saved)
    assert saved.read_bytes() == before
    assert [path.name for path in saved.parent.iterdir()] == ["model.oq"]


def test_files_have_the_permissions_of_any_new_file(saved, tmp_path):
    (tmp_path / "plain").touch()
    assert stat.S_IMODE(saved.stat().st_mode) == stat.S_IMODE((tmp_path / "plain").stat().st_mode)


@pytest.mark.parametrize(
    ("thing", "error", "message"),
    [
        (oq.PACC(), ValueError, "not fitted"),
        (GaussianNB(), TypeError, "quantifier, or a pipeline that ends with one, got GaussianNB"),
        ({"a": 1}, TypeError, "got dict"),
    ],
)
def test_only_fitted_quantifiers_are_saved(thing, error, message, tmp_path):
    with pytest.raises(error, match=message):
        oq.save_model(thing, tmp_path / "model.oq")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(("name", "message"), [("", "got a folder"), ("absent/model.oq", "absent: no such folder")])
def test_places_that_cannot_be_written_are_named(name, message, model, tmp_path):
    with pytest.raises((ValueError, FileNotFoundError), match=message):
        oq.save_model(model, tmp_path / name)


# Trust


class Chatty(ClassifierMixin, BaseEstimator):
    """A classifier of the caller's own."""

    def fit(self, X, y):
        self.classes_ = np.unique(y)
        return self

    def predict_proba(self, X):
        return np.full((len(X), len(self.classes_)), 1 / len(self.classes_))

    def predict(self, X):
        return np.full(len(X), self.classes_[0])


def test_types_of_others_are_rejected_by_name_unless_the_caller_lists_them(data, tmp_path):
    X, y, pool = data
    q = oq.PCC(oq.classifiers.CrossFitted(Chatty(), cv=2)).fit(X, y)
    oq.save_model(q, tmp_path / "model.oq")
    name = f"{Chatty.__module__}.Chatty"
    with pytest.raises(ValueError, match=rf"not trusted: {name};") as caught:
        oq.load_model(tmp_path / "model.oq")
    assert isinstance(caught.value, model_file.UntrustedTypesError)
    loaded = oq.load_model(tmp_path / "model.oq", trusted=[name])
    assert_array_equal(loaded.predict(pool), q.predict(pool))
    with pytest.raises(TypeError, match="trusted must be a list"):
        oq.load_model(tmp_path / "model.oq", trusted=name)


class Evil:
    """Whatever unpickles it runs a command."""

    def __reduce__(self):
        return os.mkdir, ("owned",)


def test_functions_in_a_model_are_rejected_and_not_called(data, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    X, y, _ = data
    pipeline = make_pipeline(StandardScaler(), oq.CC(GaussianNB())).fit(X, y)
    pipeline.steps.insert(0, ("function", FunctionTransformer(os.system)))
    oq.save_model(pipeline, "model.oq")
    with pytest.raises(ValueError, match=r"not trusted: posix\.system"):
        oq.load_model("model.oq")


def test_objects_that_run_code_when_unpickled_run_none(saved, model, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    payload = model_file.payload_of({"model": model, "evil": Evil()})
    rewrite(saved, payload=payload)
    with pytest.raises(ValueError, match=r"not trusted: .*(mkdir|Evil)"):
        oq.load_model(saved)
    assert not (tmp_path / "owned").exists()


@pytest.mark.parametrize("where", ["file", "payload"])
def test_pickles_in_disguise_are_not_unpickled(where, saved, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    evil = pickle.dumps(Evil())
    if where == "file":
        saved.write_bytes(evil)
    else:
        rewrite(saved, payload=evil)
    with pytest.raises(ValueError, match=r"pickle(s|, which)"):
        oq.load_model(saved)
    assert not (tmp_path / "owned").exists()


def test_trusted_types_are_exactly_the_parts_of_our_models():
    """A type is trusted by its name, never by a prefix; who adds a class decides here whether files may build it."""
    modules = (
        losses,
        regularizers,
        representations,
        calibration,
        cross_fitting,
        logistic,
        ordinal,
        stacking,
        l1,
        newton,
        quadratic,
        softmax,
    )
    expected = {entry.cls for entry in oq.catalog()} | {
        oq.ComposedQuantifier,
        oq.regularizers.AutoStrength,
        Training,
        Tuning,
        GroupModel,
        HeldOut,
        Weights,
    }
    expected |= {TypedColumns, oq.TableModel, Words}
    for module in modules:
        for thing in vars(module).values():
            is_class = isinstance(thing, type) and issubclass(thing, BaseEstimator)
            own = is_class and thing.__module__ == module.__name__ and not thing.__name__.startswith("_")
            if own and not getattr(thing, "__abstractmethods__", None) and thing is not regularizers.Smoother:
                expected.add(thing)
    functions = {"to_float", "to_object", "calendar", "calendar_names"}
    names = {f"ordinalq.aliases.{name}" for name in functions | {cls.__name__ for cls in expected}}
    # Boosted trees are looked at, as other trees; the optimizer of a neural network holds numbers alone.
    boosted = "sklearn.ensemble._hist_gradient_boosting.predictor.TreePredictor"
    optimizer = "sklearn.neural_network._stochastic_optimizers.AdamOptimizer"
    assert set(own_types()) == names | {"numpy.dtype", "sklearn.tree._tree.Tree", boosted, optimizer}


@pytest.mark.parametrize(
    ("field", "value", "message"),
    [
        ("left", 10**6, "not a tree"),
        ("right", 0, "not a tree"),
        ("feature_idx", 99, "features that do not exist"),
        ("feature_idx", -1, "features that do not exist"),
        ("is_categorical", 1, "by categories"),
    ],
)
def test_boosted_trees_that_point_outside_of_themselves_are_rejected(field, value, message, data, tmp_path):
    X, y, _ = data
    q = oq.PACC(oq.classifiers.OrdinalProbit([HistGradientBoostingRegressor(max_iter=5, random_state=0)])).fit(X, y)
    tree = q.classifier_.estimators_[0][0]._predictors[0][0]
    tree.nodes[field][0] = value
    oq.save_model(q, tmp_path / "forged.oq")
    with pytest.raises(ValueError, match=message):
        oq.load_model(tmp_path / "forged.oq")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"left_child": 10_000_000}, "not a tree"),
        ({"right_child": 0}, "not a tree"),
        ({"feature": 10_000_000}, "features that do not exist"),
    ],
)
def test_forged_decision_trees_are_rejected(change, message, data, saved):
    X, y, _ = data
    forest = oq.PCC(RandomForestClassifier(10, oob_score=True, random_state=0)).fit(X, y)
    tree = forest.classifier_.estimator_.estimators_[0].tree_
    state = tree.__getstate__()
    for name, value in change.items():
        state["nodes"][name][0] = value
    tree.__setstate__(state)
    oq.save_model(forest, saved)
    with pytest.raises(ValueError, match=message):
        oq.load_model(saved)


@pytest.mark.parametrize("claimed", ["tree", "tree and its estimator", "none"])
def test_trees_for_more_features_than_their_forest_checks_are_rejected(claimed, data, saved):
    """Such a tree passes by its own count, and would be given rows that are shorter."""
    X, y, _ = data
    forest = oq.PCC(RandomForestClassifier(10, oob_score=True, random_state=0)).fit(X, y)
    wide = np.zeros((200, 20_001))
    wide[:, 20_000] = y
    other = RandomForestClassifier(1, random_state=0, max_features=None).fit(wide, y).estimators_[0]
    assert other.tree_.feature[0] == 20_000
    if claimed != "tree and its estimator":
        other.n_features_in_ = 3
    forest.classifier_.estimator_.estimators_[0] = other
    if claimed == "none":
        del other.n_features_in_
        del forest.classifier_.estimator_.n_features_in_
    oq.save_model(forest, saved)
    with pytest.raises(ValueError, match=r"is for \w+ features, its model for (3|None)"):
        oq.load_model(saved)


@pytest.mark.parametrize(
    "classifier",
    [
        BaggingClassifier(DecisionTreeClassifier(max_depth=3), 5, max_features=2, random_state=0),
        AdaBoostClassifier(n_estimators=5, random_state=0),
        DecisionTreeClassifier(max_depth=3),
        make_pipeline(PCA(2), RandomForestClassifier(5, random_state=0)),
    ],
    ids=lambda classifier: type(classifier).__name__,
)
def test_valid_trees_are_loaded(classifier, data, saved):
    X, y, pool = data
    q = oq.PCC(oq.classifiers.CrossFitted(classifier, cv=2)).fit(X, y)
    oq.save_model(q, saved)
    assert_array_equal(oq.load_model(saved).predict(pool), q.predict(pool))


# Versions


@pytest.mark.parametrize(
    ("meta", "message"),
    [
        ({"format": 5}, r"made by a newer ordinalq \(.*format 5; this is format 4\): upgrade"),
        ({"format": 3}, r"made by an older ordinalq \(format 3; this is format 4\): fit the model again"),
        ({"format": "1"}, "does not name a format"),
        ({"format": True}, "does not name a format"),
        ({"versions": {}}, "does not say which ordinalq"),
        ({"versions": {"ordinalq": "0.99.0", "scikit-learn": "1.6.0"}}, "made with ordinalq 0.99.0, but"),
        ({"versions": {"ordinalq": oq.__version__, "scikit-learn": "1.999.0"}}, "made with scikit-learn 1.999.0, but"),
        ({"versions": {"ordinalq": oq.__version__, "scikit-learn": "0.24.2"}}, "install scikit-learn 0.24, or fit"),
        ({"versions": {"ordinalq": oq.__version__, "scikit-learn": "new"}}, "does not say which scikit-learn"),
    ],
)
def test_newer_and_incompatible_versions_are_rejected(meta, message, saved):
    rewrite(saved, meta=meta)
    with pytest.raises(ValueError, match=message):
        oq.load_model(saved)


def test_older_scikit_learn_is_a_warning(saved, model, data):
    rewrite(saved, meta={"versions": {"ordinalq": oq.__version__, "scikit-learn": "1.0.2"}})
    with pytest.warns(UserWarning, match=r"made with scikit-learn 1.0.2, but .* fit the model again to be sure"):
        loaded = oq.load_model(saved)
    assert_array_equal(loaded.predict(data[2]), model.predict(data[2]))


# Damage


@pytest.mark.parametrize("part", [0, 0.1, 0.5, 0.9, 0.999])
def test_truncated_files_are_rejected(part, saved):
    whole = saved.read_bytes()
    saved.write_bytes(whole[: int(part * len(whole))])
    with pytest.raises(ValueError, match=r"model.oq: expected a model of ordinalq, but (the file is|it is)"):
        oq.load_model(saved)


def test_any_changed_byte_is_noticed(saved, rng):
    whole = saved.read_bytes()
    end = whole.rindex(b"PK\x01\x02") - 200  # the list of members, where flags mean nothing, is checked by zipfile
    for at in rng.integers(end, size=60):
        if b"PK" in whole[max(0, at - 40) : at]:
            continue  # the header of a member, which has dates
        changed = bytearray(whole)
        changed[at] ^= 1 << int(rng.integers(8))
        saved.write_bytes(bytes(changed))
        with pytest.raises(ValueError, match=re.escape(str(saved))):
            oq.load_model(saved)


@pytest.mark.parametrize("change", [{"classes": [5, 4, 3, 2, 1]}, {"p_train": [1, 0, 0, 0, 0]}, {"method": "CC"}])
def test_changed_descriptions_do_not_match_the_checksum(change, saved):
    rewrite(saved, meta=change, checksum=False)
    with pytest.raises(ValueError, match="the checksum does not match"):
        oq.load_model(saved)


def test_a_description_that_contradicts_the_model_is_rejected_even_with_its_checksum(saved):
    rewrite(saved, meta={"classes": [5, 4, 3, 2, 1]})
    with pytest.raises(ValueError, match=r"classes must be \[5, 4, 3, 2, 1\], as described in meta.json, got"):
        oq.load_model(saved)


def bomb():
    """An archive of a few kilobytes that unpacks to 200 MB."""
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("schema.json", b"0" * 200_000_000)
    return stream.getvalue()


def test_archives_that_would_fill_the_memory_are_not_unpacked(saved):
    rewrite(saved, payload=bomb())
    with pytest.raises(ValueError, match=r"would grow to 200,000,000 bytes"):
        oq.load_model(saved)
    saved.unlink()


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"compression": zipfile.ZIP_DEFLATED}, "must not be compressed"),
        ({"extra": ["more.txt"]}, "got an archive of meta.json, model.skops, more.txt"),
        ({"payload": b"rubbish"}, "was not written by skops"),
        ({"payload": b"PK\x03\x04rubbish"}, "is damaged"),
        ({"meta": {"pairs": ["models_"]}}, "cannot be read"),
        ({"meta": {"pairs": None}}, "cannot be read"),
    ],
)
def test_other_archives_are_rejected(change, message, saved):
    rewrite(saved, **change)
    with pytest.raises(ValueError, match=message):
        oq.load_model(saved)


def test_archives_of_something_else_are_rejected(saved, model):
    with zipfile.ZipFile(saved, "w") as archive:
        archive.writestr("word/document.xml", "<x/>")
    with pytest.raises(ValueError, match=r"got an archive of word/document.xml"):
        oq.load_model(saved)
    skops.io.dump(model, saved)
    with pytest.raises(ValueError, match="expected a model of ordinalq, got an archive of"):
        oq.load_model(saved)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("{", "meta.json in it cannot be read"),
        ("[]", "it is not a JSON object"),
        ("{}", "does not name a format"),
        ("[" * 100_000, "cannot be read"),
        ('{"format": 4}', "is incomplete: versions, method"),
    ],
)
def test_invalid_descriptions_are_rejected(text, message, saved):
    with zipfile.ZipFile(saved) as archive:
        payload = archive.read(PAYLOAD)
    with zipfile.ZipFile(saved, "w") as archive:
        archive.writestr(META, text)
        archive.writestr(PAYLOAD, payload)
    with pytest.raises(ValueError, match=message):
        oq.load_model(saved)


def test_absent_files_and_folders_are_named(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"absent.oq: no such file"):
        oq.load_model(tmp_path / "absent.oq")
    with pytest.raises(ValueError, match="got a folder"):
        oq.load_model(tmp_path)


def test_wide_models_are_short(tmp_path, rng):
    """Names of columns are arrays in the file, not a node each: saving and loading would take minutes otherwise."""
    names = [f"column {i}" for i in range(400)]
    frame = pd.DataFrame(rng.normal(size=(60, 400)), columns=names).assign(shop=["a", "b"] * 30)
    frame["stars"] = np.repeat([1, 2, 3], 20)
    model = oq.TableModel(oq.PACC()).fit(frame, target="stars")
    oq.save_model(model, tmp_path / "wide.oq")
    with zipfile.ZipFile(tmp_path / "wide.oq") as archive:
        payload = io.BytesIO(archive.read(PAYLOAD))
    schema = zipfile.ZipFile(payload).read("schema.json").decode()
    assert schema.count("__class__") < 6 * len(names) + 2000
    loaded = oq.load_model(tmp_path / "wide.oq")
    assert_array_equal(loaded.predict(frame), model.predict(frame))
    assert_array_equal(loaded.predict(frame[frame.columns[::-1]]), model.predict(frame))
    with pytest.raises(ValueError, match="column 7"):
        loaded.predict(frame.drop(columns="column 7"))


def test_models_of_texts_keep_the_names_that_their_encoder_looks_up(tmp_path, rng):
    frame = pd.DataFrame({"text": ["good kettle", "fair kettle", "bad kettle"] * 20, "price": rng.normal(size=60)})
    frame["stars"] = [3, 2, 1] * 20
    model = oq.TableModel(oq.PACC(), text=["text"]).fit(frame, target="stars")
    oq.save_model(model, tmp_path / "text.oq")
    assert_array_equal(oq.load_model(tmp_path / "text.oq").predict(frame), model.predict(frame))


def test_words_are_one_part_of_a_file_and_come_back_with_their_numbers(rng, tmp_path):
    words = np.array([f"word{i}" for i in range(1500)])
    frame = pd.DataFrame({"stars": np.repeat([1, 2, 3], 30)})
    frame["review"] = [" ".join(rng.choice(words, 60)) for _ in range(90)]
    model = oq.TableModel(oq.PACC(), text=["review"]).fit(frame, target="stars")
    model.save(tmp_path / "a.oq")
    _, payload = model_file._read(tmp_path / "a.oq")
    with zipfile.ZipFile(io.BytesIO(payload)) as archive:
        assert archive.read("schema.json").count(b"__loader__") < 1000
    same = oq.load_model(tmp_path / "a.oq")
    old, new = (one.encoder_.named_transformers_["words of review"] for one in (model, same))
    assert new.vocabulary_ == old.vocabulary_
    assert_array_equal(same.predict(frame), model.predict(frame))


SAVE = """
import sys, hostile_models, ordinalq as oq
from ordinalq.tables.fit import build_quantifier
unused = [object() for _ in range(int(sys.argv[2]))]
model = oq.TableModel(build_quantifier("OPACC"), text=["review"], features=["price", "size", "day"])
model.fit(hostile_models.table(), "stars").save(sys.argv[1])
"""


def test_two_identical_fits_give_files_of_equal_bytes(tmp_path):
    """Also in two processes, in which objects have other addresses and sets another order."""
    paths = [tmp_path / f"{i}.oq" for i in range(3)]
    for i, path in enumerate(paths[:2]):
        places = os.pathsep.join([str(Path(__file__).parent), os.environ.get("PYTHONPATH", "")])
        environment = {**os.environ, "PYTHONHASHSEED": str(i + 1), "PYTHONPATH": places}
        subprocess.run([sys.executable, "-c", SAVE, str(path), str(1000 * i)], check=True, env=environment)
    oq.load_model(paths[0]).save(paths[2])
    assert len({path.read_bytes() for path in paths}) == 1
