"""Experiment files with own methods, classifiers, measures, loaders and protocols."""

import subprocess
import sys

import numpy as np
import pandas as pd
import pytest
from small_experiment import write_experiment

from ordinalq.paper.experiments.config import load_config
from ordinalq.paper.experiments.outcome import read_outcome
from ordinalq.paper.experiments.runner import source_hash
from ordinalq.paper.experiments.units import prepare

OWN = """
import numpy as np
from sklearn.naive_bayes import GaussianNB
from ordinalq import PACC, SLD

class MyClassifier(GaussianNB):
    pass

class Halfway(PACC):
    def __init__(self, classifier=None, *, weight=0.5, solver=None):
        super().__init__(classifier, solver=solver)
        self.weight = weight

class Broken(SLD):
    def fit_scores(self, *args, **kwargs):
        raise RuntimeError("this method is broken")

def nmd(p, p_hat):
    return np.abs(p - p_hat).max(axis=1)

# The name in the file counts, not that of the function.
largest_error = nmd
"""
EXPERIMENT = """
methods = ["PACC", "open_own:Halfway", "open_own:Broken"]
measures = ["nmd", "open_own:largest_error"]
protocols = ["APP", { kind = "Dirichlet", alpha = 0.5 }, { kind = "NPP", sample_size = 40 }]

[dataset]
table = "items.csv"
target = "stars"

[samples]
n_validation = 8
n_test = 10
sample_size = 60

[classifier]
family = "open_own:MyClassifier"
parameters = { var_smoothing = 1e-8 }
grid = { priors = ["none"] }
"""


def test_own_parts_next_to_a_file_of_20_lines_run_and_a_failing_method_is_printed(tmp_path):
    assert len(EXPERIMENT.strip().splitlines()) <= 20
    (tmp_path / "open_own.py").write_text(OWN)
    path = write_experiment(tmp_path, EXPERIMENT)
    out = tmp_path / "out"
    command = [sys.executable, "-m", "ordinalq", "reproduce", str(path), "--out", str(out), "--n-jobs", "2"]
    done = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path.parent)
    assert done.returncode == 1, done.stderr
    assert "Broken failed in all configurations: RuntimeError: this method is broken" in done.stderr
    assert (out / "tables" / "largest_error.csv").is_file()
    assert "Halfway" in done.stdout
    outcome = read_outcome(out)
    assert outcome.protocols == ["APP", "Dirichlet", "NPP"]
    assert outcome.measures == ["nmd", "largest_error"]
    assert set(outcome.failures) == {"Broken"}
    for protocol in outcome.protocols:
        P, truth = outcome.distributions("Halfway", protocol, "largest_error")
        found = outcome.errors(protocol, "largest_error")["Halfway"]
        np.testing.assert_allclose(found, np.abs(P - truth).max(axis=1), atol=1e-12)
        np.testing.assert_allclose(found, outcome.errors(protocol, "largest_error")["PACC"], atol=1e-12)


def written(tmp_path, protocols, samples="n_validation = 8\nn_test = 10\nsample_size = 60"):
    config = f"protocols = {protocols}\n[dataset]\ntable = 'items.csv'\ntarget = 'stars'\n[samples]\n{samples}\n"
    return write_experiment(tmp_path, config)


def test_the_folder_of_a_file_without_own_parts_is_not_imported_from(tmp_path, monkeypatch):
    monkeypatch.setattr(sys, "path", list(sys.path))
    (tmp_path / "open_plain.py").write_text("from ordinalq.metrics import nmd as plain_nmd")
    path = write_experiment(tmp_path, '[dataset]\ntable = "items.csv"\ntarget = "stars"\n')
    assert load_config(path).folder == ""
    assert str(tmp_path) not in sys.path
    path.write_text('measures = ["open_plain:plain_nmd"]\n' + path.read_text())
    assert load_config(path).folder == str(tmp_path)
    assert str(tmp_path) in sys.path


def test_hashes_of_own_parts_change_with_the_modules_that_they_import(tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(tmp_path)
    (tmp_path / "open_constants.py").write_text("FACTOR = 1.0")
    (tmp_path / "open_unused.py").write_text("FACTOR = 1.0")
    text = "import functools\nfrom open_constants import FACTOR\ndef error(p, p_hat):\n    return FACTOR * p\n"
    (tmp_path / "open_measures.py").write_text(text + "partial_error = functools.partial(error)\n")
    for name in ("error", "partial_error"):
        path = f"open_measures:{name}"
        before = source_hash(path, str(tmp_path))
        (tmp_path / "open_unused.py").write_text(f"FACTOR = '{name}'")
        assert source_hash(path, str(tmp_path)) == before
        (tmp_path / "open_constants.py").write_text(f"FACTOR = '{name}'")
        assert source_hash(path, str(tmp_path)) != before


def test_protocols_have_their_parameters(tmp_path):
    pd.DataFrame([[0.1, 0.2, 0.3, 0.4], [0.25, 0.25, 0.25, 0.25]]).to_csv(
        tmp_path / "vectors.csv", header=False, index=False
    )
    protocols = """[
        "APP", { kind = "APP-OQ", fraction = 0.3 }, { kind = "NPP", sample_size = 30 },
        { kind = "real", vectors = "vectors.csv", min_per_class = 0, sample_size = 20 },
        { kind = "Dirichlet", name = "flat", alpha = [50, 50, 50, 50], n_test = 25 },
    ]"""
    material = prepare(load_config(written(tmp_path, protocols)))
    samples, rows = material.test.samples, material.test.rows
    assert list(rows) == ["APP", "APP-OQ", "NPP", "real", "flat"]
    assert [len(rows[name]) for name in rows] == [10, len(rows["APP-OQ"]), 10, 10, 25]
    assert [set(samples.sizes[rows[name]]) for name in rows] == [{60}, {60}, {30}, {20}, {60}]
    P = material.test.truth
    kept = {tuple(row) for row in P[rows["APP-OQ"]]}
    assert 1 <= len(kept) < 10
    assert kept <= {tuple(row) for row in P[rows["APP"]]}
    vectors = [[0.1, 0.2, 0.3, 0.4], [0.25, 0.25, 0.25, 0.25]]
    assert all(any(np.allclose(row, vector) for vector in vectors) for row in P[rows["real"]])
    assert np.abs(P[rows["flat"]] - 0.25).max() < np.abs(P[rows["APP"]] - 0.25).max()


LOADER = """
import numpy as np
from ordinalq import Samples
from ordinalq.datasets import Dataset, Items, Sampling

def load(data=None, random_state=0):
    y = np.arange(300) % 3
    X = y[:, None] + np.sin(np.arange(600)).reshape(300, 2)
    unlabelled = Items(X, np.full(300, -1))
    samples = Samples.from_groups(np.arange(300) % 5, prevalences=np.full((5, 3), 1 / 3))
    given = {("months", "validation"): samples, ("months", "test"): samples}
    return Dataset(
        name="own", train=Items(X, y), validation=unlabelled, test=unlabelled, classes=("a", "b", "c"),
        feature_names=("u", "v"), source="made", split="given", random_state=random_state, given=given,
        sampling=Sampling(n_validation=5, n_test=5),
    )
"""


def test_a_loader_gives_samples_of_unlabelled_items_with_prevalences(tmp_path):
    (tmp_path / "open_loader.py").write_text(LOADER)
    path = tmp_path / "own.toml"
    path.write_text('methods = ["PACC"]\n[dataset]\nloader = "open_loader:load"\n[classifier]\nfamily = "logistic"\n')
    out = tmp_path / "out"
    command = [sys.executable, "-m", "ordinalq", "reproduce", str(path), "--out", str(out), "--n-jobs", "1"]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    outcome = read_outcome(out)
    assert outcome.protocols == ["months"]
    assert outcome.errors("months", "nmd")["PACC"].max() < 0.2


@pytest.mark.parametrize(
    ("protocols", "message"),
    [
        ('["APQ"]', "protocols must have a kind among APP"),
        ('[{ kind = "APP-OQ" }]', "protocols of kind APP-OQ must have fraction"),
        ('[{ kind = "APP", fraction = 0.5 }]', "protocols of kind APP have no fraction"),
        ('["NPP", { kind = "NPP", sample_size = 30 }]', "protocols must differ in name"),
        ("[]", "protocols must have at least one"),
    ],
)
def test_a_wrong_protocol_is_an_error_with_its_line(tmp_path, protocols, message):
    with pytest.raises(ValueError, match=rf"line 1: {message}"):
        load_config(written(tmp_path, protocols))


def test_an_own_part_that_cannot_be_imported_is_an_error(tmp_path):
    path = tmp_path / "wrong.toml"
    path.write_text('measures = ["no_such_module:error"]\n[dataset]\nname = "fried"\n')
    with pytest.raises(ValueError, match="line 1: measures must be importable: 'no_such_module:error' cannot"):
        load_config(path)
