"""Workers: processes of this machine, or of a cluster, through the backends of joblib.

"loky" (processes, the default), "threading", "multiprocessing" and "sequential" come with joblib. "dask" is a cluster
of dask: the one that dask's own settings name (DASK_SCHEDULER_ADDRESS), or workers on this machine. "ray" and "spark"
are those of their packages. Any other name must have been registered with joblib.
"""

import os
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

from joblib import Parallel, parallel_config
from joblib.parallel import BACKENDS, EXTERNAL_BACKENDS

from ordinalq._utils.parallel import Watched, n_workers, watch

Workers = Callable[[Iterable[Any]], Iterable[Any]]


@contextmanager
def parallel(backend: str, n_jobs: int) -> Iterator[Workers]:
    """Give a function that runs delayed calls in `n_jobs` workers and yields results in the order in which they end."""
    check_workers(backend, n_jobs)
    with ExitStack() as stack:
        _prepare(backend, n_workers(n_jobs), stack)
        first = {"initializer": watch, "initargs": (os.getpid(),)} if backend == "loky" else {}
        stack.enter_context(parallel_config(backend=backend, n_jobs=n_jobs, **first))
        yield _run


def _run(calls: Iterable[Any]) -> Iterable[Any]:
    """Run delayed calls; yield their results in the order in which they end."""
    watched = ((Watched(function), *arguments) for function, *arguments in calls)
    results: Iterable[Any] = Parallel(return_as="generator_unordered", pre_dispatch="2*n_jobs")(watched)
    return results


def check_workers(backend: str, n_jobs: int) -> None:
    """Refuse a backend that nobody knows, and a number of workers that makes no sense."""
    n_workers(n_jobs)
    known = sorted({*BACKENDS, *EXTERNAL_BACKENDS, "ray", "spark"})
    if backend not in known:
        raise ValueError(f"backend must be one of {', '.join(known)} or registered with joblib, got {backend!r}.")


def _prepare(backend: str, n_processes: int, stack: ExitStack) -> None:
    """Connect to a cluster, where the backend needs one."""
    try:
        if backend == "dask":
            import dask
            from distributed import Client, get_client

            try:
                get_client()  # that of the caller
            except ValueError:
                address = dask.config.get("scheduler-address", None)
                local = (
                    {} if address else {"n_workers": n_processes, "threads_per_worker": 1, "dashboard_address": None}
                )
                stack.enter_context(Client(address, **local))  # type: ignore[no-untyped-call]
        elif backend == "ray":
            from ray.util.joblib import register_ray

            register_ray()
        elif backend == "spark":
            from joblibspark import register_spark

            register_spark()
    except ImportError as error:
        raise ValueError(f"backend {backend!r} needs a package that is not installed: {error.name}.") from error
