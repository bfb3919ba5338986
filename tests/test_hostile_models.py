"""Forged model files: none runs code, crashes, or takes more than 500 MB or 5 s; all end with one clear line."""

import contextlib
import io
import json
import os
import resource
import signal
import time
import warnings
from pathlib import Path

import hostile_models
import pytest
from seeds import generator

import ordinalq as oq
from ordinalq.cli import main

pytestmark = pytest.mark.skipif(not Path("/proc/self/statm").exists(), reason="needs processes to end")

SECONDS, MEGABYTES = 5, 500


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("hostile")


@pytest.fixture(scope="module")
def paths(folder):
    return hostile_models.base_models(folder)


def apart(work, seconds):
    """Do work in a process of its own; return what it returns, its time and the memory that it took, in MB."""
    before = int(Path("/proc/self/statm").read_text().split()[1]) * resource.getpagesize() / 2**20
    ours, theirs = os.pipe()
    start = time.monotonic()
    child = os.fork()
    if child == 0:
        os.close(ours)
        try:
            signal.alarm(int(seconds))
            result = work()
            peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
            os.write(theirs, json.dumps([result, peak]).encode())
        finally:
            os._exit(0)
    os.close(theirs)
    with open(ours, "rb") as stream:
        answer = stream.read()
    _, status = os.waitpid(child, 0)
    assert os.WIFEXITED(status), f"ended by signal {os.WTERMSIG(status)}"
    assert answer, "no answer"
    result, peak = json.loads(answer)
    return result, time.monotonic() - start, peak - before


def said_by(arguments):
    """Return exit code and what the command line prints, in a process of its own."""
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        code = main(arguments)
    return [code, out.getvalue(), err.getvalue()]


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
        try:
            (code, out, err), seconds, megabytes = apart(lambda: said_by(["predict", str(forged), "table.csv"]), 30)
        except AssertionError as error:
            raise AssertionError(f"{name}: {error}") from error
        assert seconds < SECONDS, (name, seconds)
        assert megabytes < MEGABYTES, (name, megabytes)
        assert code in (1, 2), (name, out)
        assert err.count("\n") == 1, (name, err)
        assert err.startswith("ordinalq: "), (name, err)
        assert all(character.isprintable() or character == "\n" for character in out + err), name
        assert len(err) < 500, name
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
                begin = time.monotonic()
                found.append([load_and_predict(content, path, frame), time.monotonic() - begin])
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
def test_a_thousand_files_changed_by_chance_are_refused_or_harmless(paths, folder):
    check_mutated(paths, folder, generator(), 1000)
