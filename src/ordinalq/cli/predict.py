"""Subcommands that use a model: predict, compare, plan and app."""

import copy
import hashlib
import inspect
import logging
import shlex
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, dataclass, replace
from functools import cached_property, partial
from itertools import takewhile
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple, get_args

import typer

from ordinalq._utils.extras import require_extra
from ordinalq._utils.text import counted, percent
from ordinalq.cli.options import (
    CsvSafeOption,
    EncodingOption,
    FormatOption,
    JsonOption,
    MaxSpoolOption,
    ModelArgument,
    QuotingOption,
    SheetOption,
    TidyOption,
    TrustOption,
    WeightOption,
    WeightTypeOption,
    app,
    check_roles,
    print_json,
    print_lines,
    split_names,
)

if TYPE_CHECKING:
    import pandas as pd

    from ordinalq.inference.estimates import Estimates
    from ordinalq.inference.label_plan import LabelsNeeded, SpreadLabels
    from ordinalq.inference.options import IntervalOptions
    from ordinalq.inference.trend import Trend
    from ordinalq.io.table import Table
    from ordinalq.quantifiers.base import Quantifier
    from ordinalq.samples.summary import Summary
    from ordinalq.tables.aggregate import FinishedBlocks
    from ordinalq.tables.model_file import ModelInfo
    from ordinalq.tables.predict import Diagnoses


# What several verbs ask: a model about a table, by groups. The options are written here once.


MoreArgument = Annotated[list[str] | None, typer.Argument(help="Further files of the table.")]


@dataclass(frozen=True)
class Job:
    """A model, a table of any size, and how its groups are estimated."""

    model: ModelArgument
    table: Annotated[
        str,
        typer.Argument(
            help="Table of any size: a file, a folder, a pattern '*.parquet', https:// or s3://. - is standard input."
        ),
    ]
    by: Annotated[
        str | None,
        typer.Option(help="Columns of groups: a column, several (a,b), or periods of a date column (date:month)."),
    ] = None
    tidy_groups: TidyOption = False
    estimand: Annotated[
        str | None,
        typer.Option(
            "--estimand",
            help="Intervals for these rows (sample) or for their population. Default: population for comparisons and "
            "periods, else sample.",
        ),
    ] = None
    labels: Annotated[str | None, typer.Option(help="Column with labels of some rows, which were drawn at random.")] = (
        None
    )
    label_inclusion: Annotated[
        str | None,
        typer.Option(help="Column with the probability that each labelled row was drawn. Implies --basis labels."),
    ] = None
    basis: Annotated[
        str,
        typer.Option(
            "--basis",
            help="Basis of estimates with labels: labels (labels alone), model (labels and group model) or auto.",
        ),
    ] = "auto"
    drift: Annotated[
        str,
        typer.Option(
            help="Common offset of all groups from the training groups: auto (estimate it), none (estimate groups "
            "independently), a number (its variance, for example 0.3), or a .json file of predict --json."
        ),
    ] = "auto"
    weight: WeightOption = None
    weight_type: WeightTypeOption = "survey"
    n_jobs: Annotated[int, typer.Option(help="Number of processes that read and score. -1: all processors.")] = 1
    random_state: Annotated[int, typer.Option(min=0, help="Random seed of intervals and draws.")] = 0
    trust: TrustOption = ""
    format: FormatOption = None
    sheet: SheetOption = None
    encoding: EncodingOption = "utf-8"
    quoting: QuotingOption = "auto"
    max_spool: MaxSpoolOption = 8.0
    csv_safe: CsvSafeOption = False
    json: JsonOption = False

    @property
    def has_groups(self) -> bool:
        """Whether the model was fitted with groups."""
        from ordinalq.inference.model import learned_groups

        return learned_groups(self.quantifier)

    def options(self, estimand: str = "sample") -> "IntervalOptions":
        """Return the options for intervals; raise ValueError if a choice is unknown."""
        from ordinalq._utils.validation import check_choice
        from ordinalq.inference.options import BASES, ESTIMANDS, IntervalOptions

        estimand = estimand if self.estimand is None else self.estimand
        check_choice("--estimand", estimand, ESTIMANDS)
        check_choice("--basis", self.basis, BASES)
        return IntervalOptions(estimand=estimand, random_state=self.random_state, basis=self.basis)

    @property
    def stated_drift(self) -> Any:
        """The value of --drift; raise ValueError if it is none of the choices."""
        if self.drift in ("auto", "none"):
            return None if self.drift == "none" else "auto"
        if self.drift.endswith(".json"):
            from ordinalq.inference.drift import Drift

            return Drift.read(Path(self.drift))
        try:
            return float(self.drift)
        except ValueError:
            raise ValueError(f"--drift must be auto, none, a number or a .json file, got {self.drift!r}.") from None

    @property
    def has_periods(self) -> bool:
        """Whether the last of the columns of groups are periods of time."""
        from ordinalq.samples.keys import with_period

        return self.by is not None and with_period(self.by.strip())[1] is not None

    def output(self, path: Path) -> Path:
        """Return a path that can be written and is neither the model nor the table."""
        from ordinalq.io.writing import check_output

        return check_output(path, self.model, *(part.path for part in self.file.files))

    def with_files(self, more: Sequence[str | Path] | None) -> "Job":
        """Return the job with more files of the table."""
        job = replace(self)
        if more:
            vars(job)["file"] = self._opened([self.table, *more])
            vars(job)["tables"] = [self.table, *map(str, more)]
        return job

    @cached_property
    def tables(self) -> list[str]:
        """Names of the files, folders or patterns of the table."""
        return [self.table]

    @cached_property
    def file(self) -> "Table":
        """The table."""
        return self._opened(self.table)

    @property
    def reading_options(self) -> list[str]:
        """The given options for reading the table, to repeat in a suggested command."""
        given = {
            "--format": (self.format, None),
            "--sheet": (self.sheet, None),
            "--encoding": (self.encoding, "utf-8"),
            "--quoting": (self.quoting, "auto"),
        }
        return [word for option, (value, usual) in given.items() if value != usual for word in (option, str(value))]

    @property
    def tidy_option(self) -> list[str]:
        """The option --tidy-groups if it is given."""
        return ["--tidy-groups"] if self.tidy_groups else []

    def _opened(self, path: Any) -> "Table":
        from ordinalq.io.table import open_table

        return open_table(path, self.format, self.encoding, self.quoting, self.max_spool, self.sheet)

    @cached_property
    def _loaded(self) -> "tuple[Any, ModelInfo]":
        from ordinalq.tables.model_file import load_model_and_info

        return load_model_and_info(self.model, trusted=split_names(self.trust))

    @cached_property
    def loaded(self) -> Any:
        """Loaded model; with a stated group effect if it was fitted without groups."""
        from ordinalq.tables.inner import model_for

        return model_for(self._loaded[0], self.by)

    @property
    def info(self) -> "ModelInfo":
        """Information in the model file."""
        return self._loaded[1]

    @property
    def quantifier(self) -> "Quantifier":
        """The quantifier of the model."""
        from ordinalq.tables.inner import fitted_quantifier

        return fitted_quantifier(self.loaded)

    def check_resume(self, out: Path | None) -> None:
        """Raise an error if --resume has no output file or input that can be read twice."""
        if out is None:
            raise ValueError("--resume needs --out. Finished parts are stored next to that file.")
        if str(self.table) == "-":
            raise ValueError("--resume needs a table in files, got standard input.")

    def finished(self, out: Path) -> "FinishedBlocks":
        """Return the folder next to the output that keeps what is finished."""
        from ordinalq.tables.aggregate import FinishedBlocks
        from ordinalq.version import __version__

        digest = hashlib.sha256(self.model.read_bytes()).hexdigest()
        how = (
            self.by,
            self.labels,
            self.label_inclusion,
            self.weight,
            self.weight_type,
            self.file.format,
            self.sheet,
            self.encoding,
            self.quoting,
            self.trust,
        )
        return FinishedBlocks(out.with_name(out.name + ".parts"), repr((__version__, digest, *how)))

    @property
    def columns(self) -> list[str] | None:
        """The columns of groups, if there are any."""
        return columns_of(self.by, self.file)

    @contextmanager
    def reading(self) -> Iterator[dict[str, Any]]:
        """Show the progress of reading; yield options of functions that read."""
        from ordinalq.cli import display

        with display.working(f"reading {self.file.name}"):
            yield {
                "by": self.columns,
                "labels": self.labels,
                "label_inclusion": self.label_inclusion,
                "weight": self.weight,
                "weight_type": self.weight_type,
                "n_jobs": self.n_jobs,
            }


def columns_of(by: str | None, file: "Table") -> list[str] | None:
    """Return the columns that a,b names, or one whose own name has a comma."""
    if by is None:
        return None
    return [by] if "," not in by or by in file.columns() else split_names(by)


def job_command(verb: Callable[..., None], *, unsupported: Sequence[str] = ()) -> Callable[..., None]:
    """Add the arguments and options of a :class:`Job` to a subcommand.

    Its help leaves out options that are unsupported. The subcommand itself rejects them.
    """
    shared = [_hidden(one) if one.name in unsupported else one for one in inspect.signature(Job).parameters.values()]
    own = [*inspect.signature(verb).parameters.values()][1:]

    def run(**given: Any) -> None:
        job = Job(**{one.name: given.pop(one.name) for one in shared})
        check_roles(job.model, [job.table])
        if job.n_jobs == 1 or given.get("engine", "local") != "local":
            return verb(job, **given)
        from ordinalq._utils.parallel import early_workers

        with early_workers(job.n_jobs, "ordinalq.tables.aggregate"):
            return verb(job, **given)

    named = [one.replace(kind=inspect.Parameter.KEYWORD_ONLY) for one in (*shared[:2], *own, *shared[2:])]
    run.__name__, run.__doc__ = verb.__name__, verb.__doc__
    run.__annotations__ = {one.name: one.annotation for one in named}
    run.__signature__ = inspect.Signature(named)  # type: ignore[attr-defined]
    return run


def _hidden(parameter: inspect.Parameter) -> inspect.Parameter:
    """Return the parameter of an option that the help leaves out."""
    kind, option = get_args(parameter.annotation)
    option = copy.copy(option)
    option.hidden = True
    return parameter.replace(annotation=Annotated[kind, option])


# Tables that are read on an engine.


ENGINES = ("local", "dask", "spark")


class EngineAddress(NamedTuple):
    """Engine that scores rows, and the address of its scheduler or master.

    None starts workers on this machine.
    """

    engine: str = "local"
    address: str | None = None

    def check(self, resume: bool) -> None:
        """Raise ValueError if the engine is unknown or cannot resume."""
        from ordinalq._utils.validation import check_choice

        check_choice("--engine", self.engine, ENGINES)
        if resume and self.engine != "local":
            raise ValueError("--resume is only supported with --engine local. Other engines restart lost workers.")


def on_engine(
    job: "Job", where: EngineAddress, level: float | None, options: "IntervalOptions"
) -> "Summary | Estimates":
    """Return the sums of a table, or its estimates if scores are needed.

    Some methods need the scores of all items of a group.
    """
    from ordinalq.inference.estimates import Estimates
    from ordinalq.tables import engines
    from ordinalq.tables.aggregate import Reading
    from ordinalq.tables.grouping import Grouping

    groups = Grouping(job.columns, job.file.format)
    # Sums are few and come here, where all else is the same as on one machine.
    how: dict[str, Any] = {"weight": job.weight, "weight_type": job.weight_type, "label_inclusion": job.label_inclusion}
    reading = Reading(job.loaded, groups, job.labels, **how)
    task = engines.Task(reading, level, options.repeatable(), estimates=not job.quantifier.traits.uses_sample_means)
    found: Summary | Estimates = (_on_dask if where.engine == "dask" else _on_spark)(task, job, where)
    if isinstance(found, Estimates):
        assert found.keys is not None
        return replace(found, keys=groups.order(found.keys)[1])
    return groups.typed(found)


def _on_dask(task: Any, job: "Job", where: EngineAddress) -> Any:
    from ordinalq import dask

    with _client(where, job.n_jobs):
        return dask.read_table(task, job.file)


@contextmanager
def _client(where: EngineAddress, n_jobs: int) -> Iterator[None]:
    """Connect to a cluster, or start workers on this machine."""
    with require_extra("dask", "--engine dask"):
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
        raise ValueError(f"--scheduler {where.address}: no Dask scheduler responds at this address.") from error
    with client:
        yield


def _on_spark(task: Any, job: "Job", where: EngineAddress) -> Any:
    from ordinalq import spark
    from ordinalq._utils.parallel import n_workers

    with require_extra("spark", "--engine spark"):
        import pyspark  # noqa: F401
    return spark.read_table(task, job.file, spark.session(where.address or f"local[{n_workers(job.n_jobs)}]"))


# Groups without a good fit that are named.
NAMED = 20
# Groups in one file of a folder.
PART_GROUPS = 100_000
# Of the intervals of periods, where none is given.
LEVEL = 0.95


@app.command()
@job_command
def predict(
    job: Job,
    more: MoreArgument = None,
    sort: Annotated[
        str | None,
        typer.Option(
            help="Sort groups, largest first, by items, mean or the prevalence of a class. --sort=-mean: lowest first."
        ),
    ] = None,
    top: Annotated[int | None, typer.Option(help="Number of groups to show. All others are merged into one.")] = None,
    best: Annotated[int | None, typer.Option(help="Number of groups with the highest mean to show.")] = None,
    worst: Annotated[int | None, typer.Option(help="Number of groups with the lowest mean to show.")] = None,
    min_items: Annotated[
        int | None, typer.Option(help="Minimum number of rows of a group. Smaller groups are merged into one.")
    ] = None,
    interval: Annotated[float | None, typer.Option(help="Confidence level of intervals, for example 0.95.")] = None,
    out: Annotated[
        Path | None,
        typer.Option(
            "--out",
            "-o",
            help="Output table: .csv, .tsv, .xlsx, .jsonl or .parquet. Without extension: a folder of Parquet files.",
        ),
    ] = None,
    plot: Annotated[Path | None, typer.Option(help="Output plot: .png, .svg or .pdf.")] = None,
    diagnose: Annotated[
        bool, typer.Option("--diagnose", help="Print a diagnosis of the estimate: fit, precision and smoothing.")
    ] = False,
    engine: Annotated[str, typer.Option(help="Engine that scores rows: local, dask or spark.")] = "local",
    scheduler: Annotated[str | None, typer.Option(help="Address of a Dask scheduler. Default: local workers.")] = None,
    master: Annotated[str | None, typer.Option(help="Address of a Spark master. Default: local workers.")] = None,
    resume: Annotated[
        bool, typer.Option("--resume", help="Store finished parts next to --out, and continue from them.")
    ] = False,
) -> None:
    """Estimate the class distribution of a table, or of each group of its rows."""
    from ordinalq.cli import display
    from ordinalq.inference.estimates import check_names
    from ordinalq.inference.predict import MIN_RANKED
    from ordinalq.tables.grouping import names_of

    addresses = {"dask": scheduler, "spark": master}
    where = EngineAddress(engine, addresses.pop(engine, None))
    if any(addresses.values()):
        raise ValueError("--scheduler needs --engine dask, --master needs --engine spark.")
    where.check(resume)
    if resume:
        job.check_resume(out)
    job = job.with_files(more)
    if interval is not None and not 0 < interval < 1:
        raise ValueError(f"interval must be a level between 0 and 1, such as 0.95, got {interval}.")
    if best is not None or worst is not None:
        if sum(option is not None for option in (sort, top, best, worst)) > 1:
            raise ValueError("--best, --worst, --sort and --top exclude each other. Use one of them.")
        sort, top = ("mean", best) if worst is None else ("-mean", worst)
        min_items = MIN_RANKED if min_items is None else min_items
    selection = {"sort": sort, "top": top, "min_items": min_items}
    selects = any(option is not None for option in selection.values())
    if selects and job.by is None:
        raise ValueError("--sort, --top, --best, --worst and --min-items need groups. Pass --by COLUMN.")
    # The test of a trend needs intervals, and is about the population, not only these rows.
    in_time = job.has_periods and not selects
    plan, interval = (
        job.options("population" if in_time else "sample"),
        LEVEL if in_time and interval is None else interval,
    )
    outputs = _outputs(job, out, plot)
    quantifier = job.quantifier
    check_names(quantifier.classes_, names_of(job.columns))
    finished = job.finished(out) if resume and out is not None else None
    estimates, n_groups, found = _answer(job, where, finished, interval, selection, plan, diagnose=diagnose)
    trend = estimates.trend() if in_time and estimates.own is not None else None
    _write(job, estimates, out, plot, in_time=in_time)
    if finished is not None:
        finished.delete()
    if interval is not None:
        display.smoothing(quantifier)
    if job.json:
        print_json(_result(estimates, trend, found, job.by))
        return
    display.prevalences(estimates)
    display.print_other_groups(estimates, n_groups)
    if (best or worst) and min_items is not None and min_items > 1:
        display.sentences(f"ranked by the estimated mean, groups of at least {min_items:,} items (--min-items 1: all)")
    display.assumption(estimates)
    display.basis(estimates)
    display.verdict(estimates)
    _print_estimates(job, estimates, trend, found, outputs)


def _print_estimates(
    job: Job, estimates: "Estimates", trend: "Trend | None", found: "Diagnoses | None", outputs: Sequence[Path]
) -> None:
    """State what there is below the table."""
    from ordinalq.cli import display

    if trend is not None:
        display.sentences(f"\n{trend}")
    elif not outputs:
        display.charts(estimates)
    if found is not None:
        _print_diagnoses(found, job.by)
    for path in outputs:
        print_lines(f"written: {path}")
    # The diagnosis has a stricter test, so a good fit is not printed below it.
    has_misfits = display.fit(estimates, has_groups=job.has_groups, only_misfits=found is not None)
    _print_hints(job, estimates)
    if estimates.bounds is None and not has_misfits:
        display.next_step("add --interval 0.95 for intervals")
    else:
        _print_plan(job, estimates, has_misfits=has_misfits)


def _print_hints(job: Job, estimates: "Estimates") -> None:
    """Print options for labels that are not used, and for groups that are dates."""
    from ordinalq.cli import display

    target = job.info.target
    if job.labels is None and target is not None and target in job.file.columns():
        how = f"--labels {shlex.quote(target)} uses it, if the labelled rows were drawn at random"
        display.labelled("labels", f"column {target!r} is not used; {how}")
    if column := _date_column(job, estimates):
        by = ",".join(f"{one}:month" if one == column else one for one in job.columns or [])
        display.labelled("groups", f"{column!r} has dates; --by {shlex.quote(by)} estimates months")


def _date_column(job: Job, estimates: "Estimates") -> str:
    """Return a column of groups that has dates but no period, "" if there is none."""
    import pandas as pd

    from ordinalq.io.columns import ISO_DATE, date_style
    from ordinalq.samples.keys import with_period

    if job.columns is None or estimates.keys is None:
        return ""
    for asked, column in zip(job.columns, estimates.keys.columns, strict=True):
        if with_period(asked)[1] is not None:
            continue
        words = pd.Series(column.index).dropna().astype(str)
        try:
            if len(words) and (words.str.fullmatch(ISO_DATE).all() or date_style(words.to_frame(asked), asked, asked)):
                return asked
        except ValueError:  # the day may come before or after the month
            return asked
    return ""


def _print_plan(job: Job, estimates: "Estimates", *, has_misfits: bool) -> None:
    """Print the command that draws rows to label, if `plan` supports the options."""
    from ordinalq.cli import display

    unsupported = (job.weight, job.label_inclusion)
    if job.by is None or str(job.table) == "-" or any(option is not None for option in unsupported):
        return
    if display.all_labelled(estimates):
        return
    labels = [] if job.labels is None else ["--labels", job.labels]
    how = [*job.reading_options, "--by", job.by, *job.tidy_option, *labels]
    command = shlex.join(["ordinalq", "plan", str(job.model), *job.tables, *how])
    display.next_step(f"{'to label items' if has_misfits else 'for narrower intervals'}: {command}")


class Answer(NamedTuple):
    """Estimates, the number of groups, and diagnoses."""

    estimates: "Estimates"
    n_groups: int
    found: "Diagnoses | None"


def _answer(
    job: Job,
    where: EngineAddress,
    finished: "FinishedBlocks | None",
    interval: float | None,
    selection: Mapping[str, Any],
    options: "IntervalOptions",
    *,
    diagnose: bool,
) -> Answer:
    """Read the table, here or on an engine, and estimate its groups."""
    from ordinalq.inference.predict import drift_of, estimate, estimate_some, select
    from ordinalq.samples.summary import Summary
    from ordinalq.tables.predict import diagnoses_of, summarize_table

    quantifier, stated = job.quantifier, job.stated_drift
    selects = any(option is not None for option in selection.values())
    if where.engine == "local":
        with job.reading() as how:
            summary = summarize_table(job.loaded, job.file, finished=finished, tidy_groups=job.tidy_groups, **how)
    else:
        if not quantifier.traits.uses_sample_means and (selects or diagnose):
            raise ValueError(
                f"--sort, --top, --min-items and --diagnose need --engine local for {type(quantifier).__name__}, whose "
                "scores of items stay on the engine."
            )
        read = on_engine(job, where, interval, options)
        if not isinstance(read, Summary):
            return Answer(read, len(read), None)
        summary = read
    n_groups, drift = len(summary), drift_of(quantifier, summary, stated)
    if selects:
        whole = summary
        summary, rows = select(quantifier, whole, **selection, drift=drift)
        estimates = estimate_some(quantifier, whole, summary, rows, interval, options, drift)
    else:
        estimates = estimate(quantifier, summary, interval, options, drift)
    found = diagnoses_of(quantifier, summary, groups=job.by is not None) if diagnose else None
    return Answer(estimates, n_groups, found)


def _outputs(job: Job, out: Path | None, plot: Path | None) -> list[Path]:
    """Return the files to write, which can be written and differ."""
    from ordinalq.io.writing import check_folder, figure_format, table_format

    outputs = [
        check_folder(path) if path is out and is_folder(path) else job.output(path)
        for path in (out, plot)
        if path is not None
    ]
    if len(outputs) == 2 and outputs[0].absolute() == outputs[1].absolute():
        raise ValueError(f"{out}: --out and --plot must be different files.")
    for path, check in ((out, table_format), (plot, figure_format)):
        if path is not None and not (path is out and is_folder(path)):
            check(path)
    return outputs


def is_folder(out: Path) -> bool:
    """Return whether a table is a folder of files: its name has no extension."""
    return not out.suffix


def _write(job: Job, estimates: "Estimates", out: Path | None, plot: Path | None, *, in_time: bool) -> None:
    """Write the table and the plot, of the groups or their trend: both or none."""
    from ordinalq.io import writing

    with ExitStack() as files:
        if out is not None and is_folder(out):
            folder = files.enter_context(writing.replacing_folder(out))
            for number, start in enumerate(range(0, len(estimates), PART_GROUPS)):
                part = estimates.take(slice(start, start + PART_GROUPS))
                writing.write_table(part.frame(), folder / f"part-{number:05d}.parquet", "parquet")
        elif out is not None:
            table = files.enter_context(writing.replacing(out))
            how: dict[str, Any] = {"csv_safe": job.csv_safe, "percent": estimates.prevalence_columns}
            writing.write_table(estimates.frame(), table, writing.table_format(out), **how)
        if plot is not None:
            from ordinalq.plot import trend

            figure = files.enter_context(writing.replacing(plot))
            xlabel = job.info.target or ""
            axes = trend(estimates, xlabel=xlabel) if in_time else estimates.plot(xlabel=xlabel)
            writing.save_figure(axes, figure, writing.figure_format(plot))


def _result(estimates: "Estimates", trend: "Trend | None", found: "Diagnoses | None", by: str | None) -> dict[str, Any]:
    """Return what `predict --json` prints."""
    result = estimates.to_json() | ({} if trend is None else {"trend": trend.to_json()})
    if found is not None:
        result["diagnosis"] = found.whole.to_dict()
        if by is not None:
            result["bad_fit"] = found.misfits
    return result


def _print_diagnoses(found: "Diagnoses", by: str | None) -> None:
    from ordinalq.cli import display

    print_lines("" if by is None else f"\nof the whole table, not of each {by}:")
    display.sentences(f"{found.whole}")
    if found.tested_groups:
        named = ", ".join(found.misfits[:NAMED]) + (", ..." if len(found.misfits) > NAMED else "")
        few = f"bad fit in {len(found.misfits)} of {len(found.tested_groups)} groups with enough items"
        print_lines(f"{few}: {named}" if found.misfits else few)


# Subcommand compare.


@app.command()
@job_command
def compare(
    job: Job,
    groups: Annotated[list[str], typer.Argument(help="Names of two or more groups, after further files of the table.")],
    interval: Annotated[float, typer.Option(help="Confidence level of the intervals of differences.")] = 0.95,
    out: Annotated[
        Path | None,
        typer.Option("--out", "-o", help="Output table of the differences: .csv, .tsv, .xlsx, .jsonl or .parquet."),
    ] = None,
    plot: Annotated[Path | None, typer.Option(help="Output plot: .png, .svg or .pdf.")] = None,
) -> None:
    """Compare the mean classes of two groups, or of all pairs of several groups."""
    from ordinalq.cli import display
    from ordinalq.inference.options import check_level
    from ordinalq.inference.predict import drift_of, estimate_some
    from ordinalq.io import writing
    from ordinalq.tables.predict import chosen, summarize_table

    files = list(takewhile(_is_table, groups))
    job, groups = job.with_files(files), groups[len(files) :]
    plan = job.options("population")
    check_level(interval)
    if job.by is None:
        raise ValueError("--by must name the column of the groups to compare.")
    if len(set(groups)) < max(2, len(groups)):
        raise ValueError(f"expected at least two different groups to compare, got {', '.join(groups)}.")
    if out is not None:
        writing.table_format(out)  # a folder is not supported
    outputs = _outputs(job, out, plot)
    with job.reading() as how:
        summary = summarize_table(job.loaded, job.file, tidy_groups=job.tidy_groups, **how)
    # All groups of the table determine their common offset.
    drift = drift_of(job.quantifier, summary, job.stated_drift)
    some = chosen(summary, groups)
    assert summary.keys is not None
    assert some.keys is not None
    rows = summary.keys.positions(some.keys)
    estimates = estimate_some(job.quantifier, summary, some, rows, interval, plan, drift)
    assert estimates.keys is not None
    found = estimates.compare(*estimates.keys.tolist())
    with ExitStack() as written:
        if out is not None:
            frame = found.frame()
            shares = [name for name in frame if str(name).startswith("up_to_") or name == "probability"]
            path = written.enter_context(writing.replacing(out))
            writing.write_table(frame, path, writing.table_format(out), csv_safe=job.csv_safe, percent=shares)
        if plot is not None:
            from ordinalq.plot import comparison

            path = written.enter_context(writing.replacing(plot))
            axes = comparison(found, xlabel=job.info.target or "")
            writing.save_figure(axes, path, writing.figure_format(plot))
    display.smoothing(job.quantifier)
    if job.json:
        print_json(found.to_json())
        return
    display.prevalences(estimates)
    display.assumption(estimates)
    display.basis(estimates)
    display.sentences(f"\n{found}")
    for path in outputs:
        print_lines(f"written: {path}")
    has_misfits = display.fit(estimates, has_groups=job.has_groups)
    _print_plan(job, estimates, has_misfits=has_misfits)


def _is_table(name: str) -> bool:
    """Return whether an argument is a file of the table, and no group."""
    from ordinalq.io.table import format_of

    return format_of(name) is not None and Path(name).is_file()


# Subcommand plan.


# Options of a job that plan rejects.
NOT_OF_PLAN = ("label_inclusion", "drift", "weight", "weight_type")


@app.command()
@partial(job_command, unsupported=NOT_OF_PLAN)
def plan(
    job: Job,
    more: MoreArgument = None,
    width: Annotated[
        float | None,
        typer.Option(
            help="Maximum width of the interval. Default: 0.3 of the distance between classes, or 0.1 for a class."
        ),
    ] = None,
    quantity: Annotated[str, typer.Option(help="Quantity of the interval: 'mean' class, or a class.")] = "mean",
    interval: Annotated[float, typer.Option(help="Confidence level of the interval.")] = 0.95,
    rows: Annotated[
        int | None, typer.Option(help="Draw exactly this many rows from all groups, or from --group; needs --out.")
    ] = None,
    group: Annotated[str | None, typer.Option(help="Group to draw from, with --rows.")] = None,
    out: Annotated[
        Path | None,
        typer.Option("--out", "-o", help="Output file of the rows to label: .csv, .tsv, .xlsx, .jsonl or .parquet."),
    ] = None,
) -> None:
    """Compute how many rows to label for narrow intervals, and draw them."""
    from ordinalq._utils.validation import check_real
    from ordinalq.cli import display
    from ordinalq.inference.options import check_level
    from ordinalq.io import writing
    from ordinalq.tables.label_plan import plan_labels, rows_to_label

    job = job.with_files(more)
    made = job.options()
    width = _usual_width(job, quantity) if width is None else check_real("width", width, low=0, open_low=True)
    check_level(interval)
    if out is not None:
        if str(job.table) == "-":
            raise ValueError("--out needs a table in a file, which is read three times, got standard input.")
        job.output(out)
    kind = writing.table_format(out) if out else ""
    for option in ("weight", "label_inclusion"):
        if getattr(job, option) is not None:
            raise ValueError(f"plan does not support --{option.replace('_', '-')}.")
    if job.drift != "auto":
        raise ValueError("plan does not support --drift.")
    if group is not None and rows is None:
        raise ValueError("--group needs --rows, the number of rows to draw from the group.")
    if rows is not None:
        _draw_rows(job, rows, group, out, made, quantity, interval)
        return
    with job.reading() as how:
        del how["weight"], how["weight_type"], how["label_inclusion"]
        how |= {"width": width, "quantity": quantity, "level": interval, "tidy_groups": job.tidy_groups}
        found = plan_labels(job.loaded, job.file, options=made, **how)
    if out is not None:
        drawn = rows_to_label(job.file, found, job.labels or job.info.target, job.random_state)
        with writing.replacing(out) as path:
            writing.write_table(drawn, path, kind, csv_safe=job.csv_safe)
    if job.json:
        print_json(_needed_result(found.needed) | _spread_result(found.spread))
        return
    _print_needed(found.needed)
    # Labels of all groups are an alternative only if they are fewer.
    if found.spread is not None and found.spread.n_labels < found.needed.total and found.spread.width <= width:
        display.sentences(f"Or, for all groups together: {found.spread}")
    if out is not None and found.needed.total:
        print_lines(f"written: {out}, {counted(found.needed.total, 'row')}, drawn at random within each group")
        _print_next_step(job, out, drawn)
    elif out is not None:
        print_lines(f"written: {out}, without rows. Pass a smaller --width, or --rows.")
    elif found.needed.total:
        display.next_step("add --out to_label.csv to draw these rows")


def _print_next_step(job: Job, out: Path, rows: "pd.DataFrame") -> None:
    """Print the steps from rows to label to estimates with labels."""
    from ordinalq.cli import display

    column = job.labels or job.info.target or "LABELS"
    place = rows.columns[1 if len(job.file.files) > 1 else 0]
    by = [] if job.by is None else ["--by", job.by]
    how = [*job.reading_options, *by, *job.tidy_option, "--labels", column, "--interval", "0.95"]
    command = ["ordinalq", "predict", str(job.model), *job.tables, *how]
    display.labelled(
        "next",
        f"fill in {column} in {out}; copy it into a column {column} of {job.table}, to the rows whose numbers are in "
        f"the column {place!r}; then:",
    )
    print_lines(f"{'':<{display.WORD}}{shlex.join(command)}")  # in one line, so that it can be copied


def _usual_width(job: Job, quantity: str) -> float:
    """Return a width that some dozens of labels reach, for mean or prevalence."""
    from ordinalq.inference.model import scale_of

    if quantity != "mean":
        return 0.1
    numbers = scale_of(job.quantifier).numbers
    return 0.3 * abs(float(numbers[-1] - numbers[0])) / (len(numbers) - 1)


def _draw_rows(
    job: Job,
    n_rows: int,
    group: str | None,
    out: Path | None,
    options: "IntervalOptions",
    quantity: str,
    level: float,
) -> None:
    """Draw a given number of rows to label, write them, and state what they bring."""
    from ordinalq.cli import display
    from ordinalq.io import writing
    from ordinalq.tables.label_plan import draw_rows

    if out is None:
        raise ValueError("--rows needs --out, the file for the rows.")
    if n_rows < 1:
        raise ValueError(f"--rows must be at least 1, got {n_rows}.")
    if group is not None and job.by is None:
        raise ValueError("--group needs --by, the column of the groups.")
    with job.reading() as how:
        del how["weight"], how["weight_type"], how["label_inclusion"]
        target, seed = job.labels or job.info.target, job.random_state
        how |= {"group": group, "target": target, "quantity": quantity, "level": level, "options": options}
        how["tidy_groups"] = job.tidy_groups
        found = draw_rows(job.loaded, job.file, n_rows, random_state=seed, **how)
    with writing.replacing(out) as path:
        writing.write_table(found.rows, path, writing.table_format(out), csv_safe=job.csv_safe)
    if job.json:
        print_json({"rows": len(found.rows), "group": found.group} | _spread_result(found.spread))
        return
    if found.spread is not None:
        display.sentences(f"{found.spread}")
    where = "all rows without a label" if found.group is None else f"the rows of {found.group} without a label"
    display.sentences(f"written: {out}, {counted(len(found.rows), 'row')}, drawn at random from {where}")
    _print_next_step(job, out, found.rows)


def _spread_result(spread: "SpreadLabels | None") -> dict[str, Any]:
    """Return what --json has of labels that are spread over all groups."""
    return {} if spread is None else {"spread": asdict(spread)}


def _needed_result(needed: "LabelsNeeded") -> dict[str, Any]:
    """Return what `plan --json` prints."""
    rows = needed.frame().astype(object).to_dict("records")
    return {
        "quantity": needed.quantity,
        "width": needed.asked,
        "level": needed.level,
        "total": needed.total,
        "groups": rows,
    }


def _quantity_name(needed: "LabelsNeeded") -> str:
    """Return the name of the quantity whose interval is planned."""
    return needed.quantity if needed.is_of_mean else f"prevalence of class {needed.quantity}"


def _print_needed(needed: "LabelsNeeded") -> None:
    """Print one row per group, and what they cost together."""
    import numpy as np

    from ordinalq._utils.text import MAX_ROWS, table
    from ordinalq.cli.display import key_columns, sentences

    if np.isfinite(typical := needed.typical_width):
        first = (
            f"{needed.n_stated} labels in each group: {percent(needed.level)} intervals of the {_quantity_name(needed)}"
        )
        sentences(f"{first} would be {typical:.2f} wide (median of the groups with more rows)")
    groups = key_columns(needed.keys, len(needed.labels))
    headers = [*groups, "items", "labelled", "width now", "to label", "width then"]
    rows = [
        (
            *(column[b] for column in groups.values()),
            f"{needed.n_items[b]:,}",
            f"{needed.n_labelled[b]:,}",
            "" if np.isnan(needed.now[b]) else f"{needed.now[b]:.3f}",
            f"{needed.labels[b]:,}",
            f"{needed.width[b]:.3f}" + " !" * bool(needed.width[b] > needed.asked),
        )
        for b in range(min(len(needed.labels), MAX_ROWS))
    ]
    table(headers, rows, left=len(groups), total=len(needed.labels), hint="; --json has all")
    what = _quantity_name(needed)
    intervals = f"{percent(needed.level)} intervals of the {what}"
    some = int((needed.labels > 0).sum())
    if some:
        cost = f"{needed.total:,} labels in {some:,} group{'s' * (some != 1)}"
        sentences(f"{intervals}, at most {needed.asked:g} wide: {cost}")
    elif not (needed.width > needed.asked).any():
        sentences(f"All {intervals} are already at most {needed.asked:g} wide. No labels are needed.")
    if (needed.width > needed.asked).any():
        print_lines("! not reached even if all items are labelled. Use --estimand sample or a larger width.")
    if (needed.basis == "labels").any():
        print_lines("with ten labels or more, intervals use the labels alone")


# The verb that opens a page in the browser.


@app.command("app")
def page(
    port: Annotated[int, typer.Option(min=0, max=65535, help="Port. 0: a free port.")] = 8710,
    no_browser: Annotated[
        bool, typer.Option("--no-browser", help="Print the address without opening a browser.")
    ] = False,
) -> None:
    """Start the web app in the browser, on this machine only."""
    with require_extra("app", "the web app"):
        from ordinalq.app.server import serve
    serve(
        port,
        lambda address: print_lines(f"{address}\nPress Ctrl-C to stop the web app and remove its files."),
        browser=not no_browser,
    )
