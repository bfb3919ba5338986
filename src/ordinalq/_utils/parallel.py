"""Worker processes that end with their parent, and locks on folders."""

import importlib
import os
import signal
import sys
import tempfile
import threading
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import BrokenExecutor, Future
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext
from contextvars import ContextVar
from functools import lru_cache
from itertools import chain, pairwise
from pathlib import Path
from typing import IO, Any, TypeAlias, TypeVar

import joblib
from threadpoolctl import threadpool_limits

# Seconds between two looks at whether the parent is still there.
POLL = 1.0
# Calls of each worker that are under way or wait: one to do, one to do next.
PER_WORKER = 2
# Rows from which threads of BLAS and OpenMP are worth their synchronization. On a busy machine, fits with a few
# thousand rows take ten times as long with them.
MANY_ROWS = 50_000

# Results that wait for an earlier one, per process.
MAX_WAITING = 8

Result = TypeVar("Result")
# An executor, and one future per worker, which is done when the worker has started.
Started: TypeAlias = tuple[Any, list[Future[None]]]

_early: ContextVar[Started | None] = ContextVar("_early", default=None)
_watching = threading.Event()


class WatchedCall:
    """A function whose worker process ends when its parent process has ended.

    Workers of joblib wait for more work otherwise, for minutes, with all that they have read in memory. It is called in
    the worker, ``delayed(WatchedCall(function))(...)``.
    """

    def __init__(self, function: Callable[..., Any]) -> None:
        self.function = function
        self.owner = os.getpid()

    def __call__(self, *arguments: Any, **options: Any) -> Any:
        """Call the function; watch the parent from now on."""
        # Threads of the owner, and workers of a cluster, have other parents.
        if os.getppid() == self.owner:
            end_with_parent(self.owner)
        return self.function(*arguments, **options)


def end_with_parent(parent: int) -> None:
    """End this worker process when its parent has ended.

    As an initializer it also serves a worker that has not received a call.
    """
    if not _watching.is_set():
        _watching.set()
        threading.Thread(target=_watch, args=(parent,), daemon=True).start()


def _watch(parent: int) -> None:
    while os.getppid() == parent:
        time.sleep(POLL)
    os.kill(os.getpid(), signal.SIGTERM)


def in_order(
    function: Callable[..., Result],
    shared: Any,
    calls: Iterable[tuple[Any, ...]],
    n_jobs: int = 1,
    light: Callable[..., tuple[Any, ...]] | None = None,
) -> Iterator[Result]:
    """Yield function(shared, *call) for each call in order, by `n_jobs` processes.

    This process is one of them. The others are workers, which start here or inside :func:`early_workers`; until then,
    this process has all calls. The function is at the top of a module, so that workers find it; each worker gets
    `shared` once, and a call as light(*call). BLAS and OpenMP have one thread, also without workers: products of a
    block are small, and idle threads would use the CPU. Calls are requested one ahead, when a process is free. An error
    of a call, or of the iterator of calls, is raised here.
    """
    n_jobs = n_workers(n_jobs)
    if n_jobs == 1:
        for call in calls:
            with threadpool_limits(1):
                result = function(shared, *call)
            yield result
        return
    early = _early.get()
    with ExitStack() as stack:
        executor, started = early or stack.enter_context(_workers(n_jobs, function.__module__))
        path = os.path.join(stack.enter_context(tempfile.TemporaryDirectory(prefix="ordinalq-")), "shared")
        joblib.dump(shared, path)
        waiting: deque[Future[Result]] = deque()
        end: Any = None
        for call, following in pairwise(chain(calls, [end])):
            n_started = sum(one.done() and one.result() is None for one in started)
            # The last call does not queue behind another one: this process would wait for both.
            per_worker = 1 if following is end else PER_WORKER
            if sum(not one.done() for one in waiting) < per_worker * n_started:
                sent = call if light is None else light(*call)
                waiting.append(executor.submit(_call, function, path, sent))
            else:
                waiting.append(_called(function, shared, call))
            while waiting and (waiting[0].done() or len(waiting) >= MAX_WAITING * n_jobs):
                yield waiting.popleft().result()
        while waiting:
            yield waiting.popleft().result()


@contextmanager
def early_workers(n_jobs: int, module: str) -> Iterator[Sequence["Future[None]"]]:
    """Start the workers of :func:`in_order` before its calls are known.

    They import the module while this process loads what the calls need. Inside another such context, its workers are
    used. Yield a future for each worker, which is done when it has started.
    """
    n_jobs, early = n_workers(n_jobs), _early.get()
    if n_jobs == 1 or early is not None:
        yield [] if early is None else early[1]
        return
    with _workers(n_jobs, module) as started:
        token = _early.set(started)
        try:
            yield started[1]
        finally:
            _early.reset(token)


@contextmanager
def _workers(n_jobs: int, module: str) -> Iterator[Started]:
    """Start n_jobs - 1 workers, which import a module, and end them afterwards."""
    from joblib.externals.loky import ProcessPoolExecutor

    executor = ProcessPoolExecutor(n_jobs - 1, initializer=end_with_parent, initargs=(os.getpid(),))
    try:
        yield executor, [executor.submit(_import, module) for _ in range(n_jobs - 1)]
    except BrokenExecutor as error:
        raise RuntimeError("A worker process was killed, perhaps for lack of memory. Use fewer processes.") from error
    finally:
        executor.shutdown(kill_workers=True)


def _import(module: str) -> None:
    importlib.import_module(module)


def _called(function: Callable[..., Result], shared: Any, call: tuple[Any, ...]) -> "Future[Result]":
    """Return the result of a call in this process, or its error, as a future."""
    done: Future[Result] = Future()
    try:
        with _one_thread():
            done.set_result(function(shared, *call))
    except Exception as error:
        done.set_exception(error)
    return done


def n_workers(n_jobs: Any) -> int:
    """Return the number of processes for n_jobs: all processors if negative."""
    if isinstance(n_jobs, bool) or not isinstance(n_jobs, int) or n_jobs == 0:
        raise ValueError(f"n_jobs must be a whole number other than 0 (-1: all processors), got {n_jobs!r}.")
    return int(joblib.cpu_count()) if n_jobs < 0 else n_jobs


def _call(function: Callable[..., Any], path: str, call: tuple[Any, ...]) -> Any:
    """Run one call in a worker, with one thread."""
    with _one_thread():
        return function(_shared(path), *call)


@contextmanager
def _one_thread() -> Iterator[None]:
    """Limit BLAS, OpenMP and Arrow to one thread."""
    try:
        import pyarrow as pa
    except ModuleNotFoundError:  # not installed without the extra `tables`
        pa = None
    before = None if pa is None else pa.cpu_count()
    if pa is not None:
        pa.set_cpu_count(1)
    try:
        with threadpool_limits(1):
            yield
    finally:
        if pa is not None:
            pa.set_cpu_count(before)


@lru_cache(maxsize=1)
def _shared(path: str) -> Any:
    """Return what all calls of a run need, which is read once by each worker."""
    return joblib.load(path)


def limit_threads(n_rows: int) -> AbstractContextManager[Any]:
    """Return a context with one thread for BLAS and OpenMP, unless rows are many."""
    return threadpool_limits(1) if n_rows < MANY_ROWS else nullcontext()


# Locks between processes that end with the process, however it ends.


def try_lock(path: Path) -> IO[bytes] | None:
    """Lock a file and return it; None if another one has the lock."""
    file = path.open("ab")
    try:
        if sys.platform == "win32":
            import msvcrt

            msvcrt.locking(file.fileno(), msvcrt.LK_NBLCK, 1)
        else:
            import fcntl

            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        # The last holder may have removed the file between our opening and our locking it.
        if os.path.samestat(os.fstat(file.fileno()), path.stat()):
            return file
    except (BlockingIOError, PermissionError, FileNotFoundError):
        pass
    file.close()
    return None
