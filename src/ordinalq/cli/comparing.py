"""The verb that says which of some groups is higher."""

from itertools import takewhile
from pathlib import Path
from typing import Annotated

import typer

from ordinalq.cli.app import app
from ordinalq.cli.options import Job, asks
from ordinalq.cli.wording import say, say_json


@app.command()
@asks
def compare(
    job: Job,
    groups: Annotated[
        list[str], typer.Argument(help="Two or more groups, as the table names them, after more files of the table.")
    ],
    interval: Annotated[float, typer.Option(help="Level of the intervals of differences.")] = 0.95,
    plot: Annotated[Path | None, typer.Option(help="Picture to write: .png, .svg or .pdf.")] = None,
) -> None:
    """Find out which of two groups of rows is higher, and how sure that is; with more groups, for every pair."""
    from ordinalq.cli import display as show
    from ordinalq.inference.estimate import estimate
    from ordinalq.inference.options import check_level
    from ordinalq.io import writing
    from ordinalq.tables.predict import chosen, summarize_table

    files = list(takewhile(_is_table, groups))
    job, groups = job.and_files(files), groups[len(files) :]
    plan = job.plan("population")
    check_level(interval)
    if job.by is None:
        raise ValueError("--by must name the column of the groups to compare.")
    if len(set(groups)) < max(2, len(groups)):
        raise ValueError(f"expected at least two different groups to compare, got {', '.join(groups)}.")
    kind = writing.picture_format(job.output(plot)) if plot else ""
    with job.reading() as how:
        summary = chosen(summarize_table(job.loaded, job.file, **how), groups)
    estimates = estimate(job.quantifier, summary, interval, plan)
    assert estimates.keys is not None
    found = estimates.compare(*estimates.keys.tolist())
    if plot is not None:
        from ordinalq.plot import comparison

        with writing.replacing(plot) as path:
            writing.save_picture(comparison(found, xlabel=job.info.target or ""), path, kind)
    show.smoothing(job.quantifier)
    if job.json:
        say_json(found.to_json())
        return
    show.prevalences(estimates)
    show.basis(estimates)
    show.sentences(f"\n{found}")
    if plot is not None:
        say(f"written: {plot}")
    show.fit(estimates, knows_groups=job.quantifier.knows_groups)


def _is_table(name: str) -> bool:
    """Return whether an argument is a file of the table, and no group."""
    from ordinalq.io.table import format_of

    return format_of(name) is not None and Path(name).is_file()
