"""Forged model files: none runs code, crashes, or takes more than 500 MB or 5 s; all end with one clear line."""

import time
import warnings
from pathlib import Path

import hostile_models
import pytest
from apart import MEGABYTES, SECONDS, apart, ends_with_one_clear_line, said_by
from sklearn.naive_bayes import GaussianNB

import ordinalq as oq

pytestmark = pytest.mark.skipif(not Path("/proc/self/statm").exists(), reason="needs processes to end")


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("hostile")


@pytest.fixture(scope="module")
def paths(folder):
    return hostile_models.base_models(folder)


def test_valid_files_are_not_rejected(paths, folder):
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


@pytest.mark.parametrize("number", [200_000_000, pytest.param(-1, marks=pytest.mark.slow)])
def test_no_number_in_a_file_becomes_the_size_of_an_array_unchecked(paths, folder, number):
    """Each array of integers, and each integer in the tree, is changed in turn."""
    hostile_models.table().to_csv(folder / "table.csv", index=False)
    forged = folder / "forged.oq"

    def work():
        found = []
        for name, content in hostile_models.with_each_integer(paths["bayes"].read_bytes(), number):
            forged.write_bytes(content)
            begin = time.process_time()
            code, _, err = said_by(["predict", str(forged), str(folder / "table.csv"), "--interval", "0.9"])
            found.append([name, code, err, time.process_time() - begin])
        return found

    results, _, megabytes = apart(work, 60)
    assert len(results) > 30
    assert megabytes < 300
    assert max(seconds for *_, seconds in results) < 2
    assert {code for _, code, *_ in results} <= {0, 1, 2}
    assert all(err.count("\n") == 1 for _, code, err, _ in results if code), results


def test_the_parts_of_one_model_are_rejected_with_the_description_of_another(paths, folder):
    frame, swapped = hostile_models.table(), folder / "swapped.oq"
    for changed in (frame[7:], frame.drop(columns="size")):
        features = [column for column in ("price", "size") if column in changed]
        quantifier = oq.PACC(oq.classifiers.CrossFitted(GaussianNB(), cv=2))
        oq.TableModel(quantifier, features=features).fit(changed, "stars").save(folder / "other.oq")
        one, other = (hostile_models.Forgery(path.read_bytes()) for path in (paths["bayes"], folder / "other.oq"))
        other.meta = one.meta
        swapped.write_bytes(other.bytes())
        with pytest.raises(ValueError, match=r"swapped.oq: .* must be .*, as described in meta.json, got"):
            oq.load_model(swapped)


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


def test_randomly_changed_files_are_rejected_or_harmless(paths, folder, rng):
    check_mutated(paths, folder, rng, 100)


@pytest.mark.slow
def test_a_thousand_randomly_changed_files_are_rejected_or_harmless(paths, folder, rng):
    check_mutated(paths, folder, rng, 1000)
