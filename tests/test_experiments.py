import errno
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose
from small_experiment import CONFIG, write_experiment

import ordinalq as oq
from ordinalq.metrics import errors
from ordinalq.model_selection.engine import Attempt
from ordinalq.paper.experiments import runner, store
from ordinalq.paper.experiments.config import config_folder, config_names, load_config
from ordinalq.paper.experiments.outcome import read_outcome
from ordinalq.paper.experiments.runner import Progress, identity, parallel, run, select
from ordinalq.paper.experiments.store import Store, check_folder, content_hash, key_of, open_store
from ordinalq.paper.experiments.units import ItemUnit, ScoredUnit, Setup, prepare, units_of
from ordinalq.paper.report import write_report
from ordinalq.paper.report.html import best_sentences

NAMED = '"OPACC", "outside_methods:Steady", "outside_methods:FineHistograms", "outside_methods:OwnTree"]'
TABLES = ("validation", "selected", "estimates", "truth")
TIMES = ["seconds", "scoring_seconds"]
# With methods that are not in the catalog, and smaller grids.
OUTSIDE = (
    CONFIG.replace('"HDx", "SLD", "OQT", "ARC", "EDy", "OPACC", "OHDx"]', NAMED)
    .replace('"CC", ', "")
    .replace("[2, 5]", "[3]")
    .replace("[0.0, 0.01]", "[0.5]")
    + "\n[grid.Steady]\ntau = [0.5, 2.0]\n\n[grid.FineHistograms]\nn_bins = [3]\n"
)


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    """Config, folder and outcome of a run that nothing disturbed."""
    folder = tmp_path_factory.mktemp("experiment")
    config = load_config(write_experiment(folder))
    return config, folder / "out", run(config, folder / "out", n_jobs=1)


def assert_same(outcome, other):
    for name in TABLES:
        ours, theirs = (getattr(one, name) for one in (outcome, other))
        pd.testing.assert_frame_equal(
            ours.drop(columns=TIMES, errors="ignore"), theirs.drop(columns=TIMES, errors="ignore"), check_exact=True
        )


def copied(finished, tmp_path):
    """Return a copy of the finished folder."""
    import shutil

    return Path(shutil.copytree(finished[1], tmp_path / "out"))


# The configurations


@pytest.mark.parametrize("name", config_names())
@pytest.mark.parametrize("profile", ["full", "quick"])
def test_every_config_of_the_paper_is_valid(name, profile):
    config = load_config(name, profile)
    assert config.name == name
    assert config.members if config.kind == "collection" else config.dataset["name"]


def test_every_data_set_of_the_paper_has_a_config_that_names_its_printed_table():
    from ordinalq.datasets.published import results

    named = {load_config(name).dataset.get("paper") for name in config_names()}
    assert set(results()["CC"]) <= named


def test_full_fried_has_the_configurations_of_the_paper():
    paper = {entry.name for entry in oq.catalog(beyond=False)}
    units = list(units_of(load_config("fried"), 10))
    trials = [trial.method for unit in units for trial in unit.trials]
    assert sum(method in paper for method in trials) == 540
    # The default is fitted once, the others are on the scores of every forest.
    assert [method for method in trials if method not in paper] == [
        "AutoQuantifier",
        *["AdjustedML", "GroupBLP", "KDEy"] * 12,
    ]
    assert sum(isinstance(unit, ScoredUnit) for unit in units) == 12
    # Nine binary forests for each of OQT and ARC and each classifier configuration: 216.
    assert sum(9 for unit in units if isinstance(unit, ItemUnit) and unit.trials[0].method in paper) == 216


def test_methods_beyond_the_paper_are_listed_next_to_its_own(tmp_path):
    config = CONFIG.replace('"PACC", "HDx", "SLD", "OQT", "ARC", "EDy", "OPACC", "OHDx"]', '"OPACC", "beyond"]')
    loaded = load_config(write_experiment(tmp_path, config, n_items=300))
    assert loaded.methods == ("CC", "OPACC", "AutoQuantifier", "AdjustedML", "GroupBLP", "KDEy")
    outcome = run(loaded, tmp_path / "results", n_jobs=1)
    assert set(outcome.validation["method"]) == set(loaded.methods)
    assert not outcome.validation["message"].any()
    default = outcome.validation[outcome.validation["method"] == "AutoQuantifier"]
    assert set(default["classifier"]) == {"{}"}
    sentence = next(iter(best_sentences(outcome)))
    assert sentence.startswith(("NMD under APP: CC has", "NMD under APP: o\N{NON-BREAKING HYPHEN}PACC has"))
    assert "Beyond the paper: AutoQuantifier 0." in sentence or "Beyond the paper: AutoQuantifier ." in sentence


def test_settings_change_the_grids_where_paper_and_reference_differ():
    taus = {
        settings: {
            trial.parameters["tau"]
            for unit in units_of(load_config("fried", settings=settings), 10)
            for trial in unit.trials
            if trial.method == "RUN"
        }
        for settings in ("reference", "paper")
    }
    assert taus == {"reference": {1e-1, 1e1, 1e3}, "paper": {1e-3, 1e-1, 1e1}}


def test_quick_profile_changes_only_the_listed_settings(tmp_path):
    path = write_experiment(tmp_path)
    full, quick = load_config(path), load_config(path, "quick")
    assert quick.classifier == full.classifier | {"grid": {"max_depth": [3]}}
    assert (quick.samples, quick.methods) == (full.samples, full.methods)


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ('methods = ["CC"', 'methods = ["CC", "OPAC"', r"line 3: methods must be among .* did you mean 'OPACC'"),
        ("[grid.OPACC]", "[grid.OPAC]", r"line \d+: OPAC .*names of methods.*did you mean 'OPACC'"),
        ("tau = [0.0, 0.01]", "tau = 0.01", r"line 23: tau of \[grid.OPACC\] must be a list"),
        ("seed = 5", "sead = 5", r"line 4: sead is an unknown key; did you mean 'seed'"),
        ("seed = 5", 'seed = "5"', r"line 4: seed must be a whole number, got '5'"),
        ("seed = 5", "seed = true", r"line 4: seed must be a whole number, got True"),
        ("seed = 5", "seed = -5", r"line 4: seed must be at least 0"),
        ("seed = 5", 'kind = "quantifier"', r"line 4: kind must be one of .*did you mean 'quantifiers'"),
        ("seed = 5", 'measures = ["nmd", "mae"]', r"line 4: measures must be among"),
        ("seed = 5", 'measures = ["nmd", "nmd"]', r"line 4: measures must not name one twice"),
        ("seed = 5", 'in_sample = ["EDx"]', r"line 4: in_sample must be among"),
        ("seed = 5", 'kind = "collection"', r"members must name the experiments"),
        ('target = "stars"', "", r"line 6: dataset must have the target"),
        ('table = "items.csv"', "", r"line 6: dataset must have one of name, table and loader"),
        ('table = "items.csv"', 'name = "freid"', r"line 7: name must be among .*did you mean 'fried'"),
        ("n_validation = 8", "n_validation = 0", r"line 11: n_validation must be at least 1"),
        ("n_validation = 8", "n_valid = 8", r"line 11: n_valid is an unknown key in \[samples\]"),
        ('family = "forest"', 'family = "tree"', r"line 16: family must be among forest, logistic"),
        ("[samples]", "[sample]", r"line 10: sample is an unknown key; did you mean 'samples'"),
        ("max_depth = [2, 5]", "max_depth = []", r"line 20: max_depth of \[classifier.grid\] must be a list"),
        ("seed = 5", "seed = ", r"not valid TOML: .*line 4"),
        ("[quick.classifier.grid]", "[quick.clasifier]", r"line 29: clasifier is an unknown key.* did you mean 'class"),
        ('methods = ["CC"', 'methods = [] # ["CC"', r"line 3: methods must name at least one"),
        ("seed = 5", "measures = []", r"line 4: measures must name at least one"),
        ("seed = 5", 'in_sample = ["OQT"]', r"line 4: in_sample must be among"),
        (
            "tau = [0.0, 0.01]",
            "taus = [0.0]",
            r"line 23: taus of \[grid.OPACC\] is not a parameter of OPACC; did you mean",
        ),
        (
            "max_depth = [2, 5]",
            "max_dept = [2]",
            r"line 20: max_dept of \[classifier.grid\] is not a parameter of Random",
        ),
        ("n_estimators = 20", "n_estimators = 0", r"line 17: n_estimators must be at least 1"),
        ("seed = 5", 'kind = "collection"\nmembers = ["paper"]', r"line 5: members must be single experiments"),
    ],
)
def test_invalid_config_names_line_and_key(tmp_path, old, new, message):
    assert CONFIG.count(old) == 1
    with pytest.raises(ValueError, match=message):
        load_config(write_experiment(tmp_path, CONFIG.replace(old, new)))


@pytest.mark.parametrize(
    ("path", "message"),
    [
        ("nowhere.at_all:Method", r"line 3: methods must be .*'nowhere.at_all:Method' cannot be imported: ModuleNotF"),
        ("outside_methods:Missing", r"line 3: .*cannot be imported: AttributeError"),
        ("outside_methods:numbers", r"line 3: .*must be a class that derives from Quantifier"),
        ("sklearn.svm:SVC", r"line 3: .*must be a class that derives from Quantifier"),
        ("../outside:Method", r"line 3: .*'../outside:Method' is not a path of a class such as 'package.module:Class'"),
        ("outside_methods:CC", r"line 3: methods must differ in name, but there is another 'CC'"),
    ],
)
def test_outside_method_that_cannot_be_had_names_line_and_key(tmp_path, path, message):
    with pytest.raises(ValueError, match=message):
        load_config(write_experiment(tmp_path, CONFIG.replace('methods = ["CC"', f'methods = ["CC", "{path}"')))


def test_parameters_of_an_outside_method_are_checked(tmp_path):
    with pytest.raises(
        ValueError, match=r"line 33: taus of \[grid.Steady\] is not a parameter of Steady; did you mean 'tau"
    ):
        load_config(write_experiment(tmp_path, OUTSIDE.replace("tau = [0.5, 2.0]", "taus = [1]")))


def test_methods_outside_the_catalog_are_run_like_others(tmp_path):
    config = load_config(write_experiment(tmp_path, OUTSIDE))
    assert config.methods == ("PACC", "OPACC", "Steady", "FineHistograms", "OwnTree")
    kinds = {t.method: type(unit).__name__ for unit in units_of(config, 4) for t in unit.trials}
    assert [kinds[name] for name in config.outside] == ["ScoredUnit", "FeatureUnit", "ItemUnit"]
    outcome = run(config, tmp_path / "out", n_jobs=1)
    assert (outcome.validation["message"] == "").all()
    found = outcome.validation.set_index(["method", "parameters"]).sort_index()
    same = json.dumps({"tau": 0.5}, indent=1)
    assert_allclose(found.loc[("Steady", same), "error"], found.loc[("OPACC", same), "error"])
    assert set(outcome.errors("APP", "nmd")) == set(config.methods)
    page = write_report(read_outcome(tmp_path / "out"), tmp_path / "out").read_text(encoding="utf-8")
    assert page.count('<tr data-group="beyond the paper">') > 3 * len(config.outside)


def test_results_of_an_outside_method_depend_on_its_file_and_others_do_not(tmp_path, monkeypatch):
    config = load_config(write_experiment(tmp_path, OUTSIDE))
    material = prepare(config)
    keys = []
    for content in ("a", "b"):
        monkeypatch.setattr(runner, "source_hash", lambda path, folder, content=content: content)
        this = runner._Run(config, material, None, None, None)
        keys.append({(unit.label, kind): this._key(unit, kind) for unit in this.units for kind in unit.kinds})
    changed = {label for label in keys[0] if keys[0][label] != keys[1][label]}
    outside = {(unit.label, kind) for unit in this.units for kind in unit.kinds if any(t.path for t in unit.trials)}
    assert changed == {(label, kind) for label, kind in outside if kind != "scores"}


def test_a_change_of_a_method_keeps_the_results_of_others(tmp_path, monkeypatch):
    config = load_config(write_experiment(tmp_path))
    this = runner._Run(config, prepare(config), None, None, None)

    def keys():
        return {(unit.label, kind): this._key(unit, kind) for unit in this.units for kind in unit.kinds}

    before, source = keys(), store._source
    monkeypatch.setattr(store, "_source", lambda name: source(name) + b"#" * name.endswith("quantifiers.trees"))
    changed = {label for label, key in keys().items() if before[label] != key}
    assert changed
    assert all(label.startswith(("OQT", "ARC")) for label, _ in changed)
    monkeypatch.setattr(store, "_source", lambda name: source(name) + b"#" * name.endswith("solvers.quadratic"))
    changed = {label for label, key in keys().items() if before[label] != key}
    assert changed >= {label for label in before if label[1] != "scores"}
    monkeypatch.setattr(store, "_source", lambda name: source(name) + b"#" * name.endswith("experiments.units"))
    assert all(before[label] != key for label, key in keys().items())


@pytest.mark.parametrize(
    ("quick", "message"),
    [
        ("[quick.samples]\nn_test = 0", r"line 30: n_test must be at least 1"),
        ("[quick]\nsamples = { n_validation = 3, n_test = 0 }", r"line 30: n_test must be at least 1"),
        ("[quick]\ngrid = { OPACC = { tau = 3 } }", r"line 30: tau of \[grid.OPACC\] must be a list"),
        ('[quick]\nmethods = ["XX"]', r"line 30: methods must be among"),
    ],
)
def test_mistakes_in_the_quick_profile_name_their_own_line(tmp_path, quick, message):
    config = CONFIG[: CONFIG.index("[quick.")] + quick
    with pytest.raises(ValueError, match=message):
        load_config(write_experiment(tmp_path, config), "quick")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("freid",), "did you mean 'fried'"),
        (("fried", "fast"), "profile must be one of full, quick"),
        (("fried", "full", "papers"), "settings must be one of .*did you mean 'paper'"),
    ],
)
def test_unknown_names_are_rejected_with_the_nearest_ones(arguments, message):
    with pytest.raises(ValueError, match=message):
        load_config(*arguments)


def test_missing_and_unreadable_configs_are_named(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"none\.toml: no such file"):
        load_config(tmp_path / "none.toml")
    (tmp_path / "bad.toml").write_bytes(b"title = '\xff'")
    with pytest.raises(ValueError, match=r"bad\.toml cannot be read"):
        load_config(tmp_path / "bad.toml")


def test_configs_go_into_the_wheel():
    text = (config_folder().parent / "pyproject.toml").read_text(encoding="utf-8")
    assert '"configs" = "ordinalq/paper/experiments/configs"' in text


# The runner


def test_outcome_is_that_of_a_plain_loop(finished):
    config, _, outcome = finished
    material = prepare(config)
    dataset = material.dataset
    setup = Setup.of(config)
    for method, tau in (("PACC", None), ("OPACC", 0.01)):
        found = []
        for depth in (2, 5):
            cls = getattr(oq, method)
            forest = setup.classifier({"max_depth": depth})
            quantifier = cls(forest) if tau is None else cls(forest, tau=tau)
            quantifier.fit(*dataset.train)
            samples = dataset.samples("APP", "validation")
            P = quantifier.predict_samples(dataset.validation.X, samples)
            found.append(errors(samples.prevalences, P, "nmd").mean())
        rows = outcome.validation
        rows = rows[(rows["method"] == method) & (rows["protocol"] == "APP") & (rows["measure"] == "nmd")]
        if tau is not None:
            rows = rows[[json.loads(text)["tau"] == tau for text in rows["parameters"]]]
        assert_allclose(rows["error"], found, atol=1e-9)


def test_a_search_finds_the_errors_of_the_experiment(finished):
    config, _, outcome = finished
    material, setup = prepare(config), Setup.of(config)
    battery, dataset = material.validation, material.dataset
    samples = {name: battery.samples[rows] for name, rows in battery.rows.items()}
    for name, method in (("OPACC", oq.OPACC(setup.classifier({"max_depth": 2}))), ("OHDx", oq.OHDx())):
        grid = {"OPACC": {"tau": [0.0, 0.01]}, "OHDx": {"n_bins": [3], "tau": [0.001]}}[name]
        search = oq.model_selection.SampleSearch(method, grid, samples=samples, measure=list(config.measures))
        found = search.fit(*dataset.train, dataset.validation.X).results_
        rows = outcome.validation[outcome.validation["method"] == name]
        rows = rows[[json.loads(text).get("max_depth", 2) == 2 for text in rows["classifier"]]]
        assert rows[["protocol", "measure"]].to_numpy().tolist() == found[["protocol", "measure"]].to_numpy().tolist()
        assert_allclose(rows[["error", "std", "unconverged"]], found[["error", "std", "unconverged"]], atol=1e-9)


def test_samples_without_convergence_are_counted_for_methods_on_items(tmp_path, monkeypatch):
    solve = oq.OQT.solve

    def first_fails(self, summary):
        solution = solve(self, summary)
        solution.converged[0] = False
        return solution

    monkeypatch.setattr(oq.OQT, "solve", first_fails)
    config = load_config(write_experiment(tmp_path), "quick")
    unit = next(one for one in units_of(config, 4) if one.trials[0].method == "OQT")
    found = unit.validate(prepare(config), None)
    assert set(found["validation"].query("protocol == 'APP'")["unconverged"]) == {1}
    assert found["estimates"]["converged"].tolist() == [False, *[True] * 9]


def test_selection_takes_the_smallest_validation_error_and_the_first_of_ties(finished):
    *_, outcome = finished
    keys = ["method", "protocol", "measure"]
    smallest = outcome.validation.groupby(keys)["error"].min()
    assert_allclose(outcome.selected.set_index(keys)["error"].sort_index(), smallest.sort_index())
    rows = pd.DataFrame({"method": "A", "protocol": "APP", "measure": "nmd", "error": [2, 1, 1, np.inf], "x": range(4)})
    assert select(rows)["x"].tolist() == [1]


def test_configurations_that_fail_are_not_selected_and_give_the_reason():
    rows = pd.DataFrame({"method": ["A", "A"], "protocol": "APP", "measure": "nmd", "error": np.inf, "message": "why"})
    with pytest.raises(ValueError, match="every configuration failed, the first with why"):
        select(rows)


def test_failing_classifier_is_data(tmp_path):
    config = CONFIG.replace("max_depth = [2, 5]", "max_depth = [-1, 2]").replace('"OQT", "ARC", ', '"ARC", ')
    outcome = run(load_config(write_experiment(tmp_path, config)), tmp_path / "out", n_jobs=1)
    failed = outcome.validation[outcome.validation["message"] != ""]
    assert set(failed["method"]) == {"CC", "PACC", "SLD", "EDy", "OPACC", "ARC"}
    assert failed["message"].str.contains("max_depth").all()
    assert all(json.loads(text).get("max_depth", 2) == 2 for text in outcome.selected["classifier"])


def test_method_that_fails_on_test_samples_only_is_left_out(tmp_path, monkeypatch):
    estimate = ScoredUnit.estimate

    def failing(self, material, scores, pool):
        found = estimate(self, material, scores, pool)
        if pool == "test":
            failed = Attempt.failed("ValueError: no")
            found = [failed if t.method == "SLD" else one for t, one in zip(self.trials, found, strict=True)]
        return found

    monkeypatch.setattr(ScoredUnit, "estimate", failing)
    outcome = run(load_config(write_experiment(tmp_path), "quick"), tmp_path / "out", n_jobs=1)
    assert set(outcome.errors("APP", "nmd")) == set(outcome.methods) - {"SLD"}
    assert outcome.failures == {"SLD": "the selected configuration failed on the test samples"}


def test_estimates_belong_to_the_truth_of_their_samples(finished):
    config, _, outcome = finished
    dataset = prepare(config).dataset
    for protocol in ("APP", "APP-OQ"):
        P, truth = outcome.distributions("PACC", protocol, "nmd")
        assert_allclose(truth, dataset.samples(protocol, "test").prevalences)
        assert_allclose(errors(truth, P, "nmd"), outcome.errors(protocol, "nmd")["PACC"])


def test_in_sample_scores_reach_only_the_methods_that_request_them(tmp_path, finished):
    *_, outcome = finished
    config = load_config(write_experiment(tmp_path, CONFIG.replace("seed = 5", 'seed = 5\nin_sample = ["EDy"]')))
    other = run(config, tmp_path / "out", n_jobs=1)
    mine, theirs = (
        one.validation.set_index(["method", "classifier", "parameters", "protocol", "measure"])["error"]
        for one in (outcome, other)
    )
    asked = mine.index.get_level_values("method") == "EDy"
    assert_allclose(mine[~asked], theirs[~asked])
    assert not np.isclose(mine[asked], theirs[asked]).any()


def test_same_results_with_any_number_of_workers(finished, tmp_path):
    config, _, outcome = finished
    assert_same(run(config, tmp_path / "two", n_jobs=2), outcome)


def test_same_results_on_a_dask_cluster_of_two_processes(finished, tmp_path, monkeypatch):
    distributed = pytest.importorskip("distributed")
    config, _, outcome = finished
    with (
        distributed.LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None) as cluster,
        monkeypatch.context() as patch,
    ):
        import dask

        patch.setitem(dask.config.config, "scheduler-address", cluster.scheduler_address)
        before = cluster.scheduler.transition_counter
        assert_same(run(config, tmp_path / "dask", n_jobs=2, backend="dask"), outcome)
        assert cluster.scheduler.transition_counter > before  # the cluster has worked


def test_classifiers_are_compared_by_the_same_runner_and_resume(tmp_path):
    from ordinalq.paper.experiments.config import METHODS

    config = (
        CONFIG[: CONFIG.index("[classifier]")].replace(
            'methods = ["CC", "PACC", "HDx", "SLD", "OQT", "ARC", "EDy", "OPACC", "OHDx"]', 'kind = "classifiers"'
        )
        + "".join(f'[grid.{name}]\nalpha = [1.0]\nclass_weight = ["none"]\n' for name in ("OLR-AT", "OLR-IT", "ORidge"))
        + "".join(f"[grid.{name}]\nC = [0.1, 1.0]\n" for name in ("LR", "LAD"))
    )
    config = load_config(write_experiment(tmp_path, config))
    outcome = run(config, tmp_path / "out", n_jobs=1)
    assert list(outcome.methods) == list(METHODS)
    assert outcome.protocols == ["APP"]
    assert set(outcome.selected["method"]) == set(METHODS)
    next((tmp_path / "out" / "results").glob("validation-*")).unlink()
    assert_same(run(config, tmp_path / "out", n_jobs=1), outcome)


@pytest.mark.parametrize(
    ("backend", "n_jobs", "message"),
    [
        ("lokky", 1, "backend must be one of .*loky"),
        ("loky", 0, "n_jobs must be a whole number other than 0"),
        ("ray", 1, "backend 'ray' needs a package that is not installed"),
    ],
)
def test_impossible_numbers_of_workers_are_rejected(backend, n_jobs, message):
    with pytest.raises(ValueError, match=message), parallel(backend, n_jobs):
        pass


# The store


def test_second_run_computes_nothing(finished, tmp_path, monkeypatch):
    config, _, outcome = finished
    folder = copied(finished, tmp_path)
    monkeypatch.setattr(Store, "put", None)
    assert_same(run(config, folder, n_jobs=1), outcome)


def test_missing_parts_are_computed_again(finished, tmp_path):
    config, _, outcome = finished
    folder = copied(finished, tmp_path)
    parts = sorted((folder / "results").iterdir())
    for path in parts[::2]:
        path.unlink()
    assert_same(run(config, folder, n_jobs=1), outcome)
    assert sorted(path.name.rpartition("-")[0] for path in (folder / "results").iterdir()) == [
        path.name.rpartition("-")[0] for path in parts
    ]


@pytest.mark.parametrize("damage", ["truncated", "flipped", "emptied"])
@pytest.mark.parametrize("kind", ["scores", "validation", "estimates"])
def test_damaged_part_is_reported_and_computed_again(finished, tmp_path, caplog, damage, kind):
    config, _, outcome = finished
    folder = copied(finished, tmp_path)
    path = next((folder / "results").glob(f"{kind}-*"))
    content = bytearray(path.read_bytes())
    if damage == "flipped":
        content[len(content) // 2] ^= 1
    path.write_bytes({"truncated": content[: len(content) // 2], "flipped": content, "emptied": b""}[damage])
    again = run(config, folder, n_jobs=1)
    assert_same(again, outcome)
    assert again.about["damaged"] == [path.name]
    assert f"{path} is damaged and will be computed again" in caplog.text


def test_killed_run_goes_on_and_ends_with_the_same_results(finished, tmp_path):
    config, _, outcome = finished
    path = write_experiment(tmp_path)
    code = (
        "import sys; from ordinalq.paper.experiments.config import load_config; "
        "from ordinalq.paper.experiments.runner import run; run(load_config(sys.argv[1]), sys.argv[2], n_jobs=1)"
    )
    folder = tmp_path / "killed"
    kills = 0
    for n_parts in (1, 3, 5, 7, 9):
        process = subprocess.Popen([sys.executable, "-c", code, str(path), str(folder)])
        while process.poll() is None and len(list(folder.glob("results/[!.]*"))) < n_parts:
            time.sleep(0.005)
        if process.poll() is None:
            process.send_signal(signal.SIGKILL)
            kills += 1
        process.wait()
    assert kills >= 3
    assert_same(run(config, folder, n_jobs=1), outcome)
    assert not list(folder.rglob(".partial-*"))


def test_second_run_at_the_same_time_is_rejected(finished, tmp_path):
    config, *_ = finished
    folder = copied(finished, tmp_path)
    with open_store(folder, identity(config)), pytest.raises(FileExistsError, match="in use by another run"):
        run(config, folder, n_jobs=1)


def test_foreign_folder_is_rejected_and_left_unchanged(finished, tmp_path):
    config, *_ = finished
    (tmp_path / "thesis.tex").write_text("years of work")
    with pytest.raises(FileExistsError, match=r"but holds 'thesis\.tex'; name another folder"):
        run(config, tmp_path, n_jobs=1)
    assert [path.name for path in tmp_path.iterdir()] == ["thesis.tex"]
    with pytest.raises(NotADirectoryError, match="must be a folder"):
        run(config, tmp_path / "thesis.tex", n_jobs=1)


@pytest.mark.parametrize("content", ["", "[]", "{", '{"format": "ordinalq experiment 999", "experiment": {}}'])
def test_folder_with_an_unknown_description_is_rejected(finished, tmp_path, content):
    (tmp_path / "run.json").write_text(content)
    with pytest.raises(FileExistsError, match=r"run\.json is damaged, or ordinalq did not write it"):
        check_folder(tmp_path, {})


def test_folder_of_another_experiment_is_rejected(finished, tmp_path):
    _, folder, _ = finished
    other = load_config(write_experiment(tmp_path, CONFIG.replace("seed = 5", "seed = 6")))
    with pytest.raises(FileExistsError, match=r"another experiment \(seed 5\)"):
        run(other, folder, n_jobs=1)


def test_changed_data_are_another_experiment(finished, tmp_path):
    _, folder, _ = finished
    path = write_experiment(tmp_path, n_items=904)
    with pytest.raises(FileExistsError, match="same experiment on other data, or with other samples"):
        run(load_config(path), folder, n_jobs=1)


def test_folder_that_was_made_for_nothing_is_removed(tmp_path):
    path = write_experiment(tmp_path)
    (tmp_path / "items.csv").unlink()
    with pytest.raises(FileNotFoundError):
        run(load_config(path), tmp_path / "a" / "b", n_jobs=1)
    assert not (tmp_path / "a").exists()


def test_full_disk_is_one_clear_message_and_keeps_finished_units(tmp_path, monkeypatch):
    with open_store(tmp_path / "out", {"name": "x"}) as store:
        store.put("validation", "a", pd.DataFrame({"x": [1]}))

        def full(_):
            raise OSError(errno.ENOSPC, "No space left on device")

        monkeypatch.setattr(os, "fsync", full)
        with pytest.raises(OSError, match="is full; what is finished is kept: make room and run again"):
            store.put("validation", "b", pd.DataFrame({"x": [2]}))
        assert store.has("validation", "a")
        assert len(list(store.results.iterdir())) == 1


def test_keys_depend_on_everything_that_is_described():
    a = {"tau": [1, 2], "data": "x"}
    assert key_of(a) == key_of({"data": "x", "tau": [1, 2]})
    assert len({key_of(a), key_of(a | {"data": "y"}), key_of(a | {"tau": [2, 1]})}) == 3


def test_content_hash_depends_on_values_shapes_and_types():
    from scipy import sparse

    X = np.arange(6.0).reshape(2, 3)
    frame = pd.DataFrame(X, columns=list("abc"))
    arrays = [X, X.T, X.ravel(), X.astype(np.float32), X + 1, sparse.csr_array(X), frame, frame[["b", "a", "c"]]]
    assert len({content_hash(array) for array in arrays}) == len(arrays)
    assert content_hash(X) == content_hash(np.asfortranarray(X))


def test_outcome_survives_the_folder(finished):
    _, folder, outcome = finished
    again = read_outcome(folder)
    assert_same(again, outcome)
    assert again.about["experiment"] == outcome.about["experiment"]
    assert (again.methods, again.protocols) == (outcome.methods, ["APP", "APP-OQ"])


def test_unfinished_and_foreign_folders_are_not_outcomes(finished, tmp_path):
    with pytest.raises(FileNotFoundError, match=r"it has no run\.json"):
        read_outcome(tmp_path)
    folder = copied(finished, tmp_path)
    (folder / "truth.parquet").write_bytes(b"rubbish")
    with pytest.raises(ValueError, match="damaged table"):
        read_outcome(folder)
    (folder / "truth.parquet").unlink()
    with pytest.raises(ValueError, match="not finished"):
        read_outcome(folder)


# Progress


def test_progress_reaches_the_end_of_every_stage(finished, tmp_path):
    class Recorder(Progress):
        def __init__(self):
            super().__init__()
            self.stages = {}

        def stage(self, name, total, detail=""):
            self.now = self.stages[name] = [total, 0.0]

        def advance(self, amount, detail=""):
            self.now[1] += amount

    recorder = Recorder()
    run(finished[0], tmp_path / "out", n_jobs=1, progress=recorder)
    assert list(recorder.stages) == ["data", "validation", "test"]
    for total, done in recorder.stages.values():
        assert_allclose(done, total)


def test_log_file_lists_each_unit(tmp_path):
    (tmp_path / "run.json").touch()
    log = Progress(tmp_path / "log.txt")
    log.stage("validation", 2, "2 units")
    log.advance(1, "ARC (max_depth=4)")
    lines = (tmp_path / "log.txt").read_text().splitlines()
    assert [line[20:] for line in lines] == ["validation: 2 units", "  done: ARC (max_depth=4)"]


@pytest.mark.parametrize("terminal", [True, False])
def test_terminal_shows_stage_and_share(terminal, monkeypatch):
    import io

    stream = io.StringIO()
    stream.isatty = lambda: terminal
    monkeypatch.setattr("ordinalq.paper.experiments.runner.SECONDS_BETWEEN_LINES", 0)
    shown = Progress(stream=stream)
    shown.stage("validation", 4, "4 units")
    shown.advance(1, "ARC")
    shown.close()
    assert "validation" in stream.getvalue()
    if not terminal:
        assert "validation: 25%, about" in stream.getvalue()
