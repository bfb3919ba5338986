"""Worker processes end when the process that started them has ended."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

# One call for two workers, or for the command and two workers: the others wait for work when the command is killed.
WORK = """
import os, sys, time
from joblib import delayed
from ordinalq.paper.experiments.runner import parallel
from ordinalq._utils.parallel import in_order

def work(*arguments):
    open(os.path.join(arguments[-1], "working"), "w").close()
    time.sleep(600)

"""
CODES = {
    "an experiment": """
with parallel("loky", 2) as run:
    list(run(delayed(work)(sys.argv[1]) for _ in range(1)))
""",
    "a prediction": """
list(in_order(work, None, [(sys.argv[1],)], 3))
""",
}


def is_running(number):
    try:
        os.kill(number, 0)
    except ProcessLookupError:
        return False
    try:
        with open(f"/proc/{number}/stat") as file:
            return file.read().rpartition(")")[2].split()[0] != "Z"  # ended, but not waited for
    except FileNotFoundError:
        return False


def wait_for(condition, seconds):
    end = time.monotonic() + seconds
    while not condition() and time.monotonic() < end:
        time.sleep(0.1)
    return condition()


def workers_of(command):
    """Return the numbers of the worker processes of a command, without those that look after its files."""
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            parent = int((folder / "stat").read_text().rpartition(")")[2].split()[1])
            if parent == command.pid and b"LokyProcess" in (folder / "cmdline").read_bytes():
                found.append(int(folder.name))
        except (FileNotFoundError, ProcessLookupError):  # ended meanwhile
            pass
    return found


@pytest.mark.skipif(not os.path.exists("/proc/self/stat"), reason="looks at processes in /proc")
@pytest.mark.parametrize("code", CODES.values(), ids=CODES)
def test_workers_of_a_killed_command_end_by_themselves(code, tmp_path):
    command = subprocess.Popen([sys.executable, "-c", WORK + code, str(tmp_path)])
    try:
        assert wait_for((tmp_path / "working").exists, 60)
        workers = workers_of(command)
        assert len(workers) == 2
    finally:
        command.send_signal(signal.SIGKILL)
        command.wait()
    assert wait_for(lambda: not any(map(is_running, workers)), 30)
