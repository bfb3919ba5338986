"""Work in a separate process: its time, memory and exit code."""

import contextlib
import io
import json
import os
import resource
import signal

from ordinalq.cli import main

SECONDS, MEGABYTES = 5, 500


def apart(work, seconds):
    """Run work in a separate process; return its result, seconds and memory in MB."""
    ours, theirs = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(ours)
        try:
            signal.alarm(int(seconds))
            seconds_before, megabytes_before = spent()
            result = work()
            seconds, megabytes = spent()
            answer = [result, seconds - seconds_before, megabytes - megabytes_before]
            os.write(theirs, json.dumps(answer).encode())
        finally:
            os._exit(0)
    os.close(theirs)
    with open(ours, "rb") as stream:
        answer = stream.read()
    _, status = os.waitpid(child, 0)
    assert os.WIFEXITED(status), f"ended by signal {os.WTERMSIG(status)}"
    assert answer, "no answer"
    return json.loads(answer)


def spent():
    """Return the seconds of work of this process, and the most memory that it has had, in MB."""
    usage = resource.getrusage(resource.RUSAGE_SELF)
    return usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1024


def said_by(arguments):
    """Return exit code and output of the command line in a separate process."""
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        code = main(arguments)
    return [code, out.getvalue(), err.getvalue()]


def ends_with_one_clear_line(name, arguments, most_seconds=SECONDS, most_megabytes=MEGABYTES):
    """Run the command line on a hostile file; return its line after all checks that hold for any such file."""
    try:
        (code, out, err), seconds, megabytes = apart(lambda: said_by(arguments), 30)
    except AssertionError as error:
        raise AssertionError(f"{name}: {error}") from error
    assert seconds < most_seconds, (name, seconds)
    assert megabytes < most_megabytes, (name, megabytes)
    assert code in (1, 2), (name, out)
    assert err.count("\n") == 1, (name, err)
    assert err.startswith("ordinalq: "), (name, err)
    assert all(character.isprintable() or character == "\n" for character in out + err), name
    assert len(err) < 500, (name, err)
    return err
