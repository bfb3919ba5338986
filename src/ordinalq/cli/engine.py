"""Tables that are read on an engine: where it is, and what comes back from there."""

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from ordinalq.cli.options import Job
    from ordinalq.inference.estimates import Estimates
    from ordinalq.inference.options import Plan
    from ordinalq.samples.summary import Summary

ENGINES = ("local", "dask", "spark")


class Where(NamedTuple):
    """Where rows are scored: the engine, and the address of Dask's scheduler or Spark's master (None: workers here)."""

    engine: str = "local"
    address: str | None = None

    def check(self, resume: bool) -> None:
        """Refuse what no engine does."""
        from ordinalq._utils.validation import check_choice

        check_choice("--engine", self.engine, ENGINES)
        if resume and self.engine != "local":
            raise ValueError("--resume is for --engine local: engines take care of workers that are lost.")


def on_engine(job: "Job", where: Where, level: float | None, plan: "Plan") -> "Summary | Estimates":
    """Return the sums of a table, or its estimates where the method needs the scores of all items of a group."""
    from ordinalq.inference.estimates import Estimates
    from ordinalq.tables import engines
    from ordinalq.tables.aggregate import Reading
    from ordinalq.tables.grouping import Grouping

    groups = Grouping(job.columns, job.file.format)
    # Sums are few and come here, where all else is the same as on one machine.
    reading = Reading(job.loaded, groups, job.labels, weight=job.weight, weights=job.weights)
    task = engines.Task(reading, level, plan.repeatable(), estimates=not job.quantifier.on_means)
    try:
        found: Summary | Estimates = (_on_dask if where.engine == "dask" else _on_spark)(task, job, where)
    except ImportError as error:
        raise ValueError(f"--engine {where.engine} needs a package that is not installed: {error.name}.") from error
    if isinstance(found, Estimates):
        assert found.keys is not None
        return replace(found, keys=groups.order(found.keys)[1])
    return groups.typed(found)


def _on_dask(task: Any, job: "Job", where: Where) -> Any:
    from ordinalq import dask

    with _client(where, job.n_jobs):
        return dask.read_table(task, job.file)


@contextmanager
def _client(where: Where, n_jobs: int) -> Iterator[None]:
    """Connect to a cluster, or start workers on this machine."""
    from distributed import Client

    from ordinalq._utils.parallel import n_workers

    logging.getLogger("distributed").setLevel(logging.ERROR)
    local: dict[str, Any] = {
        "n_workers": n_workers(n_jobs),
        "threads_per_worker": 1,
        "dashboard_address": ":0",
    }
    try:
        client: Any = Client(where.address, **({} if where.address else local))  # type: ignore[no-untyped-call]
    except (OSError, ValueError) as error:
        raise ValueError(f"--scheduler {where.address}: no Dask scheduler answers there.") from error
    with client:
        yield


def _on_spark(task: Any, job: "Job", where: Where) -> Any:
    from ordinalq import spark
    from ordinalq._utils.parallel import n_workers

    return spark.read_table(task, job.file, spark.session(where.address or f"local[{n_workers(job.n_jobs)}]"))
