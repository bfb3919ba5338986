"""Long jobs in separate processes: progress, cancellation and results."""

import contextlib
import logging
import multiprocessing
import os
import sys
import threading
import time
import warnings
from collections.abc import Callable
from multiprocessing.connection import Connection
from typing import Any

from ordinalq._utils.progress import ProgressHandler

# Modules that the fork server imports in advance, so that a process starts in hundredths of a second.
PRELOADED = ["ordinalq.app.work", "ordinalq.plot", "matplotlib.figure", "matplotlib.backends.backend_agg"]
# Messages about the progress of one thing are at least this many seconds apart.
PAUSE = 0.1
# Part of the machine's memory for one job. A file that needs more must not end the server.
MEMORY = 0.75
# Notes that are kept, such as warnings.
MAX_NOTES = 20

RUNNING, DONE, FAILED, CANCELLED = "running", "done", "failed", "cancelled"


def context() -> Any:
    """Return the start method of processes: a fork server if available."""
    if "forkserver" not in multiprocessing.get_all_start_methods():
        return multiprocessing.get_context("spawn")
    found = multiprocessing.get_context("forkserver")
    found.set_forkserver_preload(PRELOADED)
    return found


class Job:
    """A function of a module that runs in another process.

    It reports its progress, see :mod:`ordinalq._utils.progress`. Its state is "running", "done" with a result, "failed"
    with a problem, or "cancelled"; `notes` are warnings of the library.
    """

    def __init__(self, title: str, work: Callable[..., Any], arguments: dict[str, Any]) -> None:
        self.title = title
        self.state = RUNNING
        self.text = "starting"
        self.part: float | None = None
        self.notes: list[str] = []
        self.result: Any = None
        self.problem = ""
        self.started = time.monotonic()
        self._lock = threading.Lock()
        how = context()
        self._connection, theirs = how.Pipe()
        self._process = how.Process(target=_run, args=(theirs, work, arguments, MEMORY), daemon=True)
        self._process.start()
        theirs.close()
        self._follower = threading.Thread(target=self._receive_messages, daemon=True)
        self._follower.start()

    @property
    def seconds(self) -> float:
        """Time since the start."""
        return time.monotonic() - self.started

    def cancel(self) -> None:
        """Stop the work, if it is not done."""
        with self._lock:
            if self.state == RUNNING:
                self.state = CANCELLED
        self._process.kill()

    def wait(self, timeout: float | None = None) -> None:
        """Wait until the work has ended in some way."""
        self._follower.join(timeout)

    def _receive_messages(self) -> None:
        """Receive messages of the process until it ends."""
        with contextlib.suppress(EOFError, OSError):
            while True:
                kind, value = self._connection.recv()
                with self._lock:
                    self._handle_message(kind, value)
        self._process.join()
        self._connection.close()
        with self._lock:
            if self.state == RUNNING:
                self.state = FAILED
                self.problem = "the work was ended by the system, perhaps because it took too much memory."

    def _handle_message(self, kind: str, value: Any) -> None:
        if self.state != RUNNING:
            return
        if kind == "progress":
            self.text, self.part = value
        elif kind == "note":
            if value not in self.notes and len(self.notes) < MAX_NOTES:
                self.notes.append(value)
        elif kind == DONE:
            self.state, self.result = DONE, value
        elif kind == FAILED:
            self.state, self.problem = FAILED, value


def run(work: Callable[..., Any], arguments: dict[str, Any], timeout: float = 120.0) -> Any:
    """Run a short piece of work in another process and return what it returns."""
    job = Job("", work, arguments)
    job.wait(timeout)
    if job.state == RUNNING:
        job.cancel()
        raise ValueError("this takes too long.")
    if job.state != DONE:
        raise ValueError(job.problem)
    return job.result


class _Steps(ProgressHandler):
    """Sends the progress of the job."""

    def __init__(self, connection: Connection) -> None:
        super().__init__()
        self._connection = connection
        self._last = "", 0.0

    def emit(self, record: logging.LogRecord) -> None:
        super().emit(record)
        now = time.monotonic()
        if self.what != self._last[0] or now - self._last[1] >= PAUSE:
            self._last = self.what, now
            self._connection.send(("progress", (self.what or "working", self.part)))


class _Notes(logging.Handler):
    """Sends log messages of the library."""

    def __init__(self, note: Callable[[str], None]) -> None:
        super().__init__(logging.WARNING)
        self._note = note

    def emit(self, record: logging.LogRecord) -> None:
        self._note(record.getMessage())


def _run(connection: Connection, work: Callable[..., Any], arguments: dict[str, Any], memory: float) -> None:
    """Do the work, in the other process, with a part of the machine's memory."""
    threading.Thread(target=_end_with, args=(connection,), daemon=True).start()
    _limit_memory(memory)

    def note(text: str) -> None:
        connection.send(("note", " ".join(text.split())))

    def show(message: Warning | str, category: type[Warning], *_: Any, **__: Any) -> None:
        if not issubclass(category, DeprecationWarning | FutureWarning):
            note(str(message).replace("Pass groups to fit", "Fit a model with groups"))

    logging.getLogger("ordinalq").addHandler(_Notes(note))
    logging.getLogger("ordinalq").propagate = False
    warnings.showwarning = show
    try:
        with _Steps(connection):
            result = work(**arguments)
        connection.send((DONE, result))
    except MemoryError:
        connection.send((FAILED, "not enough memory."))
    except Exception as error:
        connection.send((FAILED, str(error) or type(error).__name__))


def _end_with(connection: Connection) -> None:
    """End this process when the other side has gone, however it went."""
    with contextlib.suppress(EOFError, OSError):
        connection.recv()
    os._exit(1)


def _limit_memory(part: float) -> None:
    """Let an allocation fail rather than the machine."""
    if sys.platform != "linux":
        return
    import resource

    total = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    _, hard = resource.getrlimit(resource.RLIMIT_DATA)
    limit = int(part * total)
    resource.setrlimit(resource.RLIMIT_DATA, (limit if hard < 0 else min(limit, hard), hard))
