"""Run an experiment on validation samples and then on test samples.

All configurations are run on validation samples, the selected ones on test samples. The results of a unit are stored
before anything depends on them, so that a killed run can be continued. Units do not depend on each other, so that the
number of workers does not matter. The module also has the workers and the progress of a run.
"""

import ast
import inspect
import os
import shlex
import sys
import time
import warnings
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any, TextIO

import numpy as np
import pandas as pd
from joblib import Parallel, delayed, parallel_config
from joblib.parallel import BACKENDS, EXTERNAL_BACKENDS
from sklearn.exceptions import ConvergenceWarning
from threadpoolctl import threadpool_limits

from ordinalq._utils.extras import require_extra
from ordinalq._utils.parallel import WatchedCall, end_with_parent, n_workers
from ordinalq._utils.text import percent
from ordinalq.metrics import errors
from ordinalq.paper.experiments.classifiers import classifier_units
from ordinalq.paper.experiments.config import Config, import_object, make_importable
from ordinalq.paper.experiments.outcome import Outcome, prevalence_columns
from ordinalq.paper.experiments.store import (
    MARK,
    Store,
    code_hash,
    digest,
    key_of,
    machine,
    open_store,
    to_json,
    versions,
)
from ordinalq.paper.experiments.units import POOLS, Material, Setup, Unit, prepare, units_of

# Workers: processes of this machine or of a cluster, through the backends of joblib
#
# "loky" (processes, the default), "threading", "multiprocessing" and "sequential" come with joblib. "dask" is a cluster
# of dask: the one that dask's own settings name (DASK_SCHEDULER_ADDRESS), or workers on this machine. "ray" and "spark"
# are those of their packages. Any other name must have been registered with joblib.

Workers = Callable[[Iterable[Any]], Iterable[Any]]


@contextmanager
def parallel(backend: str, n_jobs: int) -> Iterator[Workers]:
    """Yield a function that runs delayed calls in `n_jobs` workers.

    The function yields results in the order in which they finish. An unknown backend, or an invalid number of workers,
    raises ValueError.
    """
    n_processes = n_workers(n_jobs)
    known = sorted({*BACKENDS, *EXTERNAL_BACKENDS, "ray", "spark"})
    if backend not in known:
        raise ValueError(f"backend must be one of {', '.join(known)} or registered with joblib, got {backend!r}.")
    with ExitStack() as stack:
        _prepare(backend, n_processes, stack)
        first = {"initializer": end_with_parent, "initargs": (os.getpid(),)} if backend == "loky" else {}
        stack.enter_context(parallel_config(backend=backend, n_jobs=n_jobs, **first))
        yield _run_calls


def _run_calls(calls: Iterable[Any]) -> Iterable[Any]:
    """Run delayed calls; yield their results in the order in which they end."""
    watched = ((WatchedCall(function), *arguments) for function, *arguments in calls)
    results: Iterable[Any] = Parallel(return_as="generator_unordered", pre_dispatch="2*n_jobs")(watched)
    return results


def _prepare(backend: str, n_processes: int, stack: ExitStack) -> None:
    """Connect to a cluster, if the backend needs one."""
    if backend == "dask":
        with require_extra("dask", "backend 'dask'"):
            import dask
            from distributed import Client, get_client

        try:
            get_client()  # that of the caller
        except ValueError:
            address = dask.config.get("scheduler-address", None)
            local = {} if address else {"n_workers": n_processes, "threads_per_worker": 1, "dashboard_address": None}
            stack.enter_context(Client(address, **local))  # type: ignore[no-untyped-call]
    try:
        if backend == "ray":
            from ray.util.joblib import register_ray

            register_ray()
        elif backend == "spark":
            from joblibspark import register_spark

            register_spark()
    except ImportError as error:
        raise ValueError(f"backend {backend!r} needs a package that is not installed: {error.name}.") from error


# Progress of a run, in a log file and on a terminal

SECONDS_BETWEEN_LINES = 15  # if the output is not a terminal


class Progress:
    """Reports the stages of a run to a log file and to a stream, if they are given.

    A stage has a total amount of work. A terminal shows a bar with percent and time left, any other stream a line from
    time to time. The log file gets a line for each step, once the folder is that of an experiment.
    """

    def __init__(self, log: Path | None = None, stream: TextIO | None = None) -> None:
        self.log, self.stream = log, stream
        self.bar: Any = None

    def stage(self, name: str, total: float, detail: str = "") -> None:
        """Begin a stage."""
        self.close()
        self.name, self.total, self.done = name, total, 0.0
        self.start = self.last = time.monotonic()
        self.write_log(f"{name}: {detail}" if detail else name)
        if self.stream is None:
            return
        if not self.stream.isatty():
            print(f"{name}{': ' + detail if detail else ''}", file=self.stream, flush=True)
            return
        from rich.console import Console
        from rich.progress import BarColumn, TaskProgressColumn, TextColumn, TimeElapsedColumn, TimeRemainingColumn
        from rich.progress import Progress as Bar

        self.bar = Bar(
            TextColumn("{task.description:<11}"), BarColumn(), TaskProgressColumn(), TimeElapsedColumn(),
            TextColumn("left"), TimeRemainingColumn(), TextColumn("{task.fields[detail]}", style="dim"),
            console=Console(file=self.stream),
        )  # fmt: skip
        self.bar.start()
        self.task = self.bar.add_task(name, total=max(total, 1e-9), detail=detail)

    def advance(self, amount: float, detail: str = "") -> None:
        """Report that a part of the stage is done."""
        self.done += amount
        self.write_log(f"  done: {detail}")
        if self.bar is not None:
            self.bar.update(self.task, completed=self.done, detail=detail)
        elif self.stream is not None and time.monotonic() - self.last >= SECONDS_BETWEEN_LINES:
            self.last = time.monotonic()
            part = min(self.done / self.total, 1.0)
            left = (self.last - self.start) * (1 - part) / part
            print(f"{self.name}: {percent(part, 0)}, about {left:.0f} s left", file=self.stream, flush=True)

    def close(self) -> None:
        """End the bar of the last stage."""
        if self.bar is not None:
            self.bar.update(self.task, completed=self.total, detail="")
            self.bar.stop()
            self.bar = None

    def write_log(self, text: str) -> None:
        """Add a line to the log file, if there is one."""
        if self.log is not None and (self.log.parent / MARK).exists():  # the run has the right to write there
            with self.log.open("a", encoding="utf-8") as file:
                file.write(f"{time.strftime('%Y-%m-%d %H:%M:%S')} {text}\n")


# The run

IDENTITY = ("name", "kind", "profile", "settings", "seed")


def run(
    config: Config,
    folder: str | Path,
    *,
    data: str | Path | None = None,
    n_jobs: int = -1,
    backend: str = "loky",
    progress: Progress | None = None,
    finish: Callable[[Outcome], Any] | None = None,
) -> Outcome:
    """Run or continue a single experiment and return the outcome.

    Parameters
    ----------
    config : Config
        The experiment, see :func:`ordinalq.paper.experiments.config.load_config`.
    folder : path
        Folder of the results: absent, empty, or of an earlier run of the same experiment, whose parts are used.
    data : path, default=None
        Local copy of the data set, see :func:`ordinalq.datasets.load_dataset`.
    n_jobs : int, default=-1
        Number of workers; results do not depend on it.
    backend : str, default="loky"
        Backend of joblib.
    progress : Progress, default=None
        Receives the events of the run.
    finish : callable, default=None
        Function of the outcome that is called while the folder is locked, for example to write a report.

    Returns
    -------
    Outcome
    """
    progress = progress or Progress()
    with parallel(backend, n_jobs) as workers, open_store(folder, identity(config)) as store:
        progress.stage("data", 1)
        material = prepare(config, data)
        store.identify({"data": material.digest})
        progress.advance(1, material.dataset.name)
        this = _Run(config, material, store, workers, progress)
        validation = this.validate()
        selected = select(validation)
        outcome = this.outcome(validation, selected, this.test(selected), data)
        outcome.save(store)
        progress.close()
        if finish is not None:
            finish(outcome)
    return outcome


def identity(config: Config) -> dict[str, Any]:
    """Return the identity of an experiment, which must match that of its folder."""
    return {name: getattr(config, name) for name in IDENTITY}


def select(validation: pd.DataFrame) -> pd.DataFrame:
    """Return the row of the smallest error for each method, protocol and measure.

    Of ties, the first row is returned.
    """
    usable = validation[np.isfinite(validation["error"])]
    if usable.empty:
        raise ValueError(f"every configuration failed, the first with {validation['message'].iloc[0]}")
    best = usable.groupby(["method", "protocol", "measure"], sort=False)["error"].idxmin()
    return pd.DataFrame(validation.loc[best.sort_values()]).reset_index(drop=True)


class _Run:
    """One run: the material, the store of parts, the workers."""

    def __init__(self, config: Config, material: Material, store: Store, workers: Workers, progress: Progress) -> None:
        self.config, self.material, self.store, self.workers = config, material, store, workers
        self.progress = progress
        classifiers = config.kind == "classifiers"
        self.units = list(classifier_units(config) if classifiers else units_of(config, material.n_classes))
        self.common: dict[str, Any] = {"versions": versions(), "data": material.digest}
        # The code of own methods, measures and classifiers is not part of the package.
        self.outside = {name: source_hash(path, config.folder) for name, path in config.outside.items()}
        family = config.classifier.get("family", "")
        self.common |= {"classifier source": source_hash(family, config.folder)} if ":" in family else {}
        self.seconds: dict[str, float] = {}

    def validate(self) -> pd.DataFrame:
        """Return the errors of all configurations on the validation samples."""
        jobs = []
        for unit in self.units:
            if not all(self.store.has(kind, self._key(unit, kind)) for kind in unit.kinds):
                jobs.append((unit, delayed(unit.validate)(self.material, self._scores(unit))))
        self._compute("validation", jobs, len(self.units))
        return pd.concat([self._part(unit, "validation") for unit in self.units], ignore_index=True)

    def test(self, selected: pd.DataFrame) -> pd.DataFrame:
        """Return estimates of the selected configurations on the test samples.

        There is one row per sample.
        """
        jobs, tested = [], []
        for unit in self.units:
            mine = selected[selected["classifier"] == to_json(unit.classifier)]
            wanted = set(zip(mine["method"], mine["parameters"], strict=True))
            chosen = tuple(trial for trial in unit.trials if (trial.method, to_json(trial.parameters)) in wanted)
            if not chosen:
                continue
            tested.append(replace(unit, trials=chosen))
            if not self.store.has("estimates", self._key(tested[-1], "estimates")):
                jobs.append((tested[-1], delayed(tested[-1].test)(self.material, self._scores(unit))))
        self._compute("test", jobs, len(tested))
        return pd.concat([self._part(unit, "estimates") for unit in tested], ignore_index=True)

    def outcome(
        self, validation: pd.DataFrame, selected: pd.DataFrame, estimates: pd.DataFrame, data: str | Path | None
    ) -> Outcome:
        """Return the outcome of the run."""
        battery = self.material.test
        names = list(prevalence_columns(battery.truth))
        by_trial = dict(iter(estimates.groupby(["method", "classifier", "parameters"])))
        tables = []
        for _, row in selected.iterrows():
            index = battery.rows[row["protocol"]]
            found = by_trial.get((row["method"], row["classifier"], row["parameters"]))
            if found is None:  # it failed on the test samples, and the tables have a dash
                continue
            part = (
                found.sort_values("sample").iloc[index].assign(**row[["protocol", "measure"]], sample=range(len(index)))
            )
            part["error"] = errors(battery.truth[index], part[names].to_numpy(), self.config.measure(row["measure"]))
            tables.append(part[["method", "protocol", "measure", "sample", "error", "converged", *names]])
        if not tables:
            raise ValueError("every selected configuration failed on the test samples.")
        truth = [
            pd.DataFrame({"protocol": name, "sample": range(len(index))} | prevalence_columns(battery.truth[index]))
            for name, index in battery.rows.items()
        ]
        return Outcome(
            about=self._about(validation, data),
            validation=validation,
            selected=selected,
            estimates=pd.concat(tables, ignore_index=True),
            truth=pd.concat(truth, ignore_index=True),
        )

    def _about(self, validation: pd.DataFrame, data: str | Path | None) -> dict[str, Any]:
        config, material, dataset = self.config, self.material, self.material.dataset
        trials = validation.drop_duplicates(["method", "classifier", "parameters"])
        classifiers = trials.drop_duplicates("classifier")
        counts = np.bincount(dataset.train.y, minlength=material.n_classes)
        return {
            "experiment": identity(config)
            | {
                "title": config.title,
                "data": material.digest,
                "dataset": config.dataset_name,
                "paper": config.dataset.get("paper"),
                "family": config.classifier.get("family"),
                "n_estimators": Setup.of(config).n_estimators if config.classifier.get("family") == "forest" else None,
                "protocols": list(material.test.rows),
                "outside": config.outside,
                "app_oq": dataset.sampling.app_oq,
            }
            | {name: list(getattr(config, name)) for name in ("methods", "measures", "in_sample")},
            "data": {name: getattr(dataset, name) for name in ("name", "source", "split")}
            | {name: list(getattr(dataset, name)) for name in ("notes", "classes")}
            | {f"n_{part}": len(getattr(dataset, part).y) for part in ("train", *POOLS)}
            | {
                "n_features": len(dataset.feature_names),
                "n_test_samples": len(material.test.samples),
                "sample_size": int(material.test.samples.sizes[0]),
                "n_samples": {
                    pool: {name: len(rows) for name, rows in getattr(material, pool).rows.items()} for pool in POOLS
                },
                "p_train": (counts / counts.sum()).tolist(),
            },
            "versions": self.common["versions"] | {"code": code_hash([__name__])},
            "machine": machine(),
            "seconds": self.seconds
            | {"computing": float(trials["seconds"].sum() + classifiers["scoring_seconds"].sum())},
            "configurations": len(trials),
            "damaged": self.store.damaged,
            "command": command(config, self.store.folder, data),
        }

    def _key(self, unit: Unit, kind: str) -> str:
        """Return the hash of everything that determines a part of a unit."""
        about = unit.describe(kind) | self.common | {"code": code_hash(unit.modules(kind), [Unit.__module__])}
        used = {} if kind == "scores" else {one.method: self.outside[one.method] for one in unit.trials if one.path}
        if kind == "validation":
            used |= {name: self.outside[name] for name in self.config.measures if name in self.outside}
        return key_of(about | ({"outside": used} if used else {}))

    def _scores(self, unit: Unit) -> pd.DataFrame | None:
        return self.store.get("scores", self._key(unit, "scores")) if "scores" in unit.kinds else None

    def _part(self, unit: Unit, kind: str) -> pd.DataFrame:
        part = self.store.get(kind, self._key(unit, kind))
        if part is None:
            raise RuntimeError(f"the part {kind} of {unit.label} has vanished while the experiment ran; run it again.")
        return part

    def _compute(self, stage: str, jobs: list[tuple[Unit, Any]], total: int) -> None:
        """Run jobs, the most expensive first, and store the parts of each as it ends."""
        start = time.perf_counter()
        jobs = sorted(jobs, key=lambda job: -job[0].cost)
        there = f"{total - len(jobs)} of {total} units are already done" if len(jobs) < total else f"{total} units"
        self.progress.stage(stage, sum(unit.cost for unit, _ in jobs), there)
        folder = self.config.folder
        for number, parts in self.workers(
            delayed(_run_with_one_thread)(number, job, folder) for number, (_, job) in enumerate(jobs)
        ):
            unit = jobs[number][0]
            for kind, table in parts.items():
                self.store.put(kind, self._key(unit, kind), table)
            self.progress.advance(unit.cost, unit.label)
        if len(jobs) == total:  # else it is the time for a part of the work
            self.seconds[stage] = time.perf_counter() - start


def command(config: Config, folder: Path, data: str | Path | None) -> str:
    """Return the command that runs the experiment again."""
    parts = ["ordinalq", "reproduce", config.source]
    if config.profile != "full":
        parts += ["--profile", config.profile]
    if config.settings != "reference":
        parts += ["--settings", config.settings]
    if data is not None:
        parts += ["--data", str(data)]
    return shlex.join([*parts, "--out", str(folder)])


def source_hash(path: str, folder: str = "") -> str:
    """Return a hash of the source of a custom object.

    If it changes, results are computed again. Modules of the `folder` of the experiment file that it imports are
    included.
    """
    modules = (inspect.getmodule(import_object(path)), sys.modules[path.partition(":")[0]])
    left = [Path(file) for module in modules if (file := getattr(module, "__file__", None))]
    found: set[Path] = set()
    while left:
        file = left.pop()
        if file not in found:
            found.add(file)
            left += _imported_files(file, Path(folder)) if folder and file.is_relative_to(folder) else []
    return digest(b"".join(file.read_bytes() for file in sorted(found)))


def _imported_files(file: Path, folder: Path) -> list[Path]:
    """Return the files below a folder that a module of it imports."""
    paths: list[Path] = []
    for node in ast.walk(ast.parse(file.read_bytes())):
        if isinstance(node, ast.Import):
            paths += [folder.joinpath(*alias.name.split(".")) for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            start = file.parents[node.level - 1] if node.level else folder
            start = start.joinpath(*(node.module or "").split("."))
            paths += [start, *(start / alias.name for alias in node.names)]
    return [one for path in paths for one in (path.with_suffix(".py"), path / "__init__.py") if one.is_file()]


def _run_with_one_thread(number: int, job: Any, folder: str) -> Any:
    """Run a job with one thread.

    Rounding does not depend on the number of jobs then. Modules of the `folder` of the experiment file can be imported.
    """
    make_importable(folder)
    function, args, kwargs = job
    with threadpool_limits(1), warnings.catch_warnings():
        # The paper's logistic regression stops after 100 steps; samples that fail are counted in the tables.
        warnings.simplefilter("ignore", ConvergenceWarning)
        return number, function(*args, **kwargs)
