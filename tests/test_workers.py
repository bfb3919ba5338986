"""Worker processes end when the process that started them is gone, however it ended."""

import os
import signal
import subprocess
import sys
import time

import pytest

CODE = """
import os, sys, time
from joblib import delayed
from ordinalq.experiments.backends import parallel

def work(folder):
    open(os.path.join(folder, str(os.getpid())), "w").close()
    time.sleep(600)

with parallel("loky", 2) as run:
    list(run(delayed(work)(sys.argv[1]) for _ in range(2)))
"""


def is_running(number):
    try:
        os.kill(number, 0)
    except ProcessLookupError:
        return False
    try:
        with open(f"/proc/{number}/stat") as file:
            return file.read().rpartition(")")[2].split()[0] != "Z"  # ended, but nobody has asked for it
    except FileNotFoundError:
        return False


def wait_for(condition, seconds):
    end = time.monotonic() + seconds
    while not condition() and time.monotonic() < end:
        time.sleep(0.1)
    return condition()


@pytest.mark.skipif(not os.path.exists("/proc/self/stat"), reason="looks at processes in /proc")
def test_workers_of_a_killed_command_end_by_themselves(tmp_path):
    command = subprocess.Popen([sys.executable, "-c", CODE, str(tmp_path)])
    try:
        assert wait_for(lambda: len(list(tmp_path.iterdir())) == 2, 60)
        workers = [int(path.name) for path in tmp_path.iterdir()]
        assert all(map(is_running, workers))
    finally:
        command.send_signal(signal.SIGKILL)
        command.wait()
    assert wait_for(lambda: not any(map(is_running, workers)), 15)
