"""Forged model files: none runs code, crashes, or takes more than 500 MB or 5 s; all end with one clear line."""

import time
import warnings
from pathlib import Path

import hostile_models
import pytest
from apart import MEGABYTES, SECONDS, apart, ends_with_one_clear_line, said_by

import ordinalq as oq

pytestmark = pytest.mark.skipif(not Path("/proc/self/statm").exists(), reason="needs processes to end")


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("hostile")


@pytest.fixture(scope="module")
def paths(folder):
    return hostile_models.base_models(folder)


def test_honest_files_are_not_refused(paths, folder):
    hostile_models.table().to_csv(folder / "table.csv", index=False)
    for path in paths.values():
        (code, _, err), _, _ = apart(lambda path=path: said_by(["predict", str(path), str(folder / "table.csv")]), 60)
        assert (code, err) == (0, "")


def test_files_made_by_hand_end_with_one_clear_line(paths, folder, monkeypatch):
    monkeypatch.chdir(folder)
    hostile_models.table().to_csv(folder / "table.csv", index=False)
    forged = folder / "forged.oq"
    names = []
    for name, content in hostile_models.made(paths):
        names.append(name)
        forged.write_bytes(content)
        ends_with_one_clear_line(name, ["predict", str(forged), "table.csv"])
    assert len(names) == len(set(names)) >= 60
    assert not (folder / "owned").exists()


def load_and_predict(content, path, frame):
    """Return the kind of error with which loading and predicting end, "" if they do not."""
    path.write_bytes(content)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            model = oq.load_model(path)
        except Exception as error:
            return f"load: {type(error).__name__}: {error}"
        try:
            model.predict(frame)
        except Exception as error:
            return f"predict: {type(error).__name__}: {error}"
    return ""


def check_mutated(paths, folder, rng, n):
    contents = [path.read_bytes() for path in paths.values()]
    frame, path = hostile_models.table(30), folder / "mutated.oq"
    files = list(hostile_models.mutated(contents, rng, n))
    refused = 0
    for start in range(0, n, 25):
        part = files[start : start + 25]

        def work(part=part):
            found = []
            for _, content in part:
                begin = time.process_time()
                found.append([load_and_predict(content, path, frame), time.process_time() - begin])
            return found

        results, _, megabytes = apart(work, 25 * SECONDS)
        assert megabytes < MEGABYTES, [name for name, _ in part]
        for (name, _), (error, seconds) in zip(part, results, strict=True):
            assert seconds < SECONDS, (name, seconds)
            if error.startswith("load"):
                refused += 1
                assert error.startswith(("load: ValueError: ", "load: UntrustedTypesError: ")), (name, error)
                assert "mutated.oq" in error, (name, error)
                assert "\n" not in error, (name, error)
    assert refused > n / 2


def test_files_changed_by_chance_are_refused_or_harmless(paths, folder, rng):
    check_mutated(paths, folder, rng, 100)


@pytest.mark.slow
def test_a_thousand_files_changed_by_chance_are_refused_or_harmless(paths, folder, rng):
    check_mutated(paths, folder, rng, 1000)
