"""The verb that estimates the class distribution of a table, or of each group of its rows."""

from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

import typer

from ordinalq.cli.app import app
from ordinalq.cli.engine import Where, on_engine
from ordinalq.cli.options import Job, MoreArgument, asks
from ordinalq.cli.wording import say, say_json

if TYPE_CHECKING:
    from ordinalq.inference.estimates import Estimates
    from ordinalq.inference.options import Plan
    from ordinalq.inference.trend import Trend
    from ordinalq.tables.aggregate import Finished
    from ordinalq.tables.predict import Diagnoses

# Groups without a good fit that are named.
NAMED = 20
# Groups in one file of a folder.
PART_GROUPS = 100_000
# Of the intervals of periods, where none is given.
LEVEL = 0.95


@app.command()
@asks
def predict(
    job: Job,
    more: MoreArgument = None,
    sort: Annotated[
        str | None, typer.Option(help="Groups with most 'items' first, or by 'mean' class, or by the share of a class.")
    ] = None,
    top: Annotated[int | None, typer.Option(help="Show this many groups, and all others as one.")] = None,
    min_items: Annotated[int | None, typer.Option(help="Groups with fewer rows join the others.")] = None,
    interval: Annotated[float | None, typer.Option(help="Level of intervals, such as 0.95.")] = None,
    out: Annotated[
        Path | None,
        typer.Option(
            "--out", "-o", help="Table to write: .csv, .tsv, .jsonl, .parquet; no ending: a folder of Parquet files."
        ),
    ] = None,
    plot: Annotated[Path | None, typer.Option(help="Picture to write: .png, .svg or .pdf.")] = None,
    diagnose: Annotated[bool, typer.Option("--diagnose", help="Report how far the estimate can be trusted.")] = False,
    engine: Annotated[str, typer.Option(help="Where rows are scored: local, dask or spark.")] = "local",
    scheduler: Annotated[str | None, typer.Option(help="Address of a Dask scheduler; default: local workers.")] = None,
    master: Annotated[str | None, typer.Option(help="Address of a Spark master; default: local workers.")] = None,
    resume: Annotated[
        bool, typer.Option("--resume", help="Keep finished parts beside --out, and continue from them.")
    ] = False,
) -> None:
    """Estimate the class distribution of a table, or of each group of its rows."""
    from ordinalq.cli import display as show
    from ordinalq.inference.estimates import check_names
    from ordinalq.tables.grouping import names_of

    addresses = {"dask": scheduler, "spark": master}
    where = Where(engine, addresses.pop(engine, None))
    if any(addresses.values()):
        raise ValueError("--scheduler is for --engine dask, --master for --engine spark.")
    where.check(resume)
    if resume:
        job.check_resume(out)
    job = job.and_files(more)
    if interval is not None and not 0 < interval < 1:
        raise ValueError(f"interval must be a level between 0 and 1, such as 0.95, got {interval}.")
    selection = {"sort": sort, "top": top, "min_items": min_items}
    selects = any(option is not None for option in selection.values())
    if selects and job.by is None:
        raise ValueError("--sort, --top and --min-items are for groups: give --by COLUMN.")
    # Whether there is a change needs intervals, and asks about the rows to come, too.
    in_time = job.in_time and not selects
    plan, interval = (
        job.plan("population" if in_time else "sample"),
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
        finished.forget()
    if interval is not None:
        show.smoothing(quantifier)
    if job.json:
        say_json(_result(estimates, trend, found, job.by))
        return
    show.prevalences(estimates)
    show.others(estimates, n_groups)
    show.basis(estimates)
    _say(job, estimates, trend, found, outputs)


def _say(
    job: Job, estimates: "Estimates", trend: "Trend | None", found: "Diagnoses | None", outputs: Sequence[Path]
) -> None:
    """State what there is below the table."""
    from ordinalq.cli import display as show

    if trend is not None:
        show.sentences(f"\n{trend}")
    elif not outputs:
        show.charts(estimates)
    if found is not None:
        _say_diagnoses(found, job.by)
    for path in outputs:
        say(f"written: {path}")
    show.fit(estimates, knows_groups=job.quantifier.knows_groups)


class Answer(NamedTuple):
    """Estimates, of how many groups there were, and how far they can be trusted."""

    estimates: "Estimates"
    n_groups: int
    found: "Diagnoses | None"


def _answer(
    job: Job,
    where: Where,
    finished: "Finished | None",
    interval: float | None,
    selection: Mapping[str, Any],
    plan: "Plan",
    *,
    diagnose: bool,
) -> Answer:
    """Read the table, here or on an engine, and estimate its groups."""
    from ordinalq.inference.estimate import estimate, select
    from ordinalq.samples.summary import Summary
    from ordinalq.tables.predict import diagnoses_of, summarize_table

    quantifier = job.quantifier
    selects = any(option is not None for option in selection.values())
    if where.engine == "local":
        with job.reading() as how:
            summary = summarize_table(job.loaded, job.file, finished=finished, **how)
    else:
        if not quantifier.on_means and (selects or diagnose):
            raise ValueError(
                f"--sort, --top, --min-items and --diagnose need --engine local for {type(quantifier).__name__}, whose "
                "scores of items stay on the engine."
            )
        read = on_engine(job, where, interval, plan)
        if not isinstance(read, Summary):
            return Answer(read, len(read), None)
        summary = read
    n_groups = len(summary)
    if selects:
        summary = select(quantifier, summary, **selection)
    estimates = estimate(quantifier, summary, interval, plan)
    found = diagnoses_of(quantifier, summary, groups=job.by is not None) if diagnose else None
    return Answer(estimates, n_groups, found)


def _outputs(job: Job, out: Path | None, plot: Path | None) -> list[Path]:
    """Return the files to write, which can be written and differ."""
    from ordinalq.io.writing import check_folder, picture_format, table_format

    outputs = [
        check_folder(path) if path is out and is_folder(path) else job.output(path)
        for path in (out, plot)
        if path is not None
    ]
    if len(outputs) == 2 and outputs[0].absolute() == outputs[1].absolute():
        raise ValueError(f"{out}: expected different files for the table and the picture.")
    for path, check in ((out, table_format), (plot, picture_format)):
        if path is not None and not (path is out and is_folder(path)):
            check(path)
    return outputs


def is_folder(out: Path) -> bool:
    """Return whether a table is to be written as the files of a folder: its name has no ending."""
    return not out.suffix


def _write(job: Job, estimates: "Estimates", out: Path | None, plot: Path | None, *, in_time: bool) -> None:
    """Write the table and the picture, of the groups or of their change: both or none."""
    from ordinalq.io import writing

    with ExitStack() as files:
        if out is not None and is_folder(out):
            folder = files.enter_context(writing.replacing_folder(out))
            for number, start in enumerate(range(0, len(estimates), PART_GROUPS)):
                part = estimates.take(slice(start, start + PART_GROUPS))
                writing.write_table(part.frame(), folder / f"part-{number:05d}.parquet", "parquet")
        elif out is not None:
            table = files.enter_context(writing.replacing(out))
            writing.write_table(estimates.frame(), table, writing.table_format(out))
        if plot is not None:
            from ordinalq.plot import trend

            picture = files.enter_context(writing.replacing(plot))
            xlabel = job.info.target or ""
            axes = trend(estimates, xlabel=xlabel) if in_time else estimates.plot(xlabel=xlabel)
            writing.save_picture(axes, picture, writing.picture_format(plot))


def _result(estimates: "Estimates", trend: "Trend | None", found: "Diagnoses | None", by: str | None) -> dict[str, Any]:
    """Return what `predict --json` prints."""
    result = estimates.to_json() | ({} if trend is None else {"trend": trend.to_json()})
    if found is not None:
        result["diagnosis"] = found.whole.to_dict()
        if by is not None:
            result["bad_fit"] = found.misfits
    return result


def _say_diagnoses(found: "Diagnoses", by: str | None) -> None:
    from ordinalq.cli import display as show

    say("" if by is None else f"\nof the whole table, not of each {by}:")
    show.sentences(f"{found.whole}")
    if found.judged:
        named = ", ".join(found.misfits[:NAMED]) + (", ..." if len(found.misfits) > NAMED else "")
        few = f"bad fit in {len(found.misfits)} of {len(found.judged)} groups with enough items"
        say(f"{few}: {named}" if found.misfits else few)
