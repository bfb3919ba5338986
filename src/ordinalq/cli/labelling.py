"""The verb that says how many rows to label, and which."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ordinalq._utils.text import percent
from ordinalq.cli.app import app
from ordinalq.cli.options import Job, MoreArgument, asks
from ordinalq.cli.wording import say, say_json

if TYPE_CHECKING:
    from ordinalq.inference.label_plan import LabelsNeeded


@app.command()
@asks
def plan(
    job: Job,
    more: MoreArgument = None,
    width: Annotated[float, typer.Option(help="Width of the interval to reach: in classes, or in shares.")] = 0.05,
    quantity: Annotated[str, typer.Option(help="Whose interval: that of the 'mean' class, or of a class.")] = "mean",
    interval: Annotated[float, typer.Option(help="Level of the interval.")] = 0.95,
    out: Annotated[
        Path | None, typer.Option("--out", "-o", help="Rows to label, to write: .csv, .tsv, .jsonl or .parquet.")
    ] = None,
) -> None:
    """Work out how many rows of each group to label for intervals as narrow as you want, and draw those rows."""
    from ordinalq._utils.validation import check_real
    from ordinalq.inference.options import check_level
    from ordinalq.io import writing
    from ordinalq.tables.label_plan import plan_labels, rows_to_label

    job = job.and_files(more)
    made = job.plan()
    check_real("width", width, low=0, open_low=True)
    check_level(interval)
    if out is not None:
        if str(job.table) == "-":
            raise ValueError("--out needs a table in a file, which is read three times, got standard input.")
        job.output(out)
    kind = writing.table_format(out) if out else ""
    if job.weight is not None:
        raise ValueError("--weight is not for plan: how many rows to label is known only without weights.")
    with job.reading() as how:
        del how["weight"], how["weights"]
        found = plan_labels(job.loaded, job.file, plan=made, width=width, quantity=quantity, level=interval, **how)
    if out is not None:
        rows = rows_to_label(job.file, found, job.labels or job.info.target, job.random_state)
        with writing.replacing(out) as path:
            writing.write_table(rows, path, kind)
    if job.json:
        say_json(_needed_result(found.needed))
        return
    _say_needed(found.needed)
    if out is not None:
        say(f"written: {out}, {found.needed.total:,} rows, drawn at random within each group")


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


def _say_needed(needed: "LabelsNeeded") -> None:
    """Print one row per group, and what they cost together."""
    import numpy as np

    from ordinalq._utils.text import MAX_ROWS, table
    from ordinalq.cli.display import key_columns

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
    what = needed.quantity if needed.quantity == "mean class" else f"share of class {needed.quantity}"
    some = int((needed.labels > 0).sum())
    cost = f"{needed.total:,} labels in {some:,} group{'s' * (some != 1)}"
    say(f"{percent(needed.level)} intervals of the {what}, at most {needed.asked:g} wide: {cost}")
    if (needed.width > needed.asked).any():
        say("! not even with all items labelled: ask for the sample, or for a larger width")
    if (needed.basis == "labels").any():
        say("intervals rest on the labels alone, from ten labels on")
