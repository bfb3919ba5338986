"""The verb that says how many rows to label, and which."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ordinalq.cli.app import (
    BasisOption,
    EncodingOption,
    FormatOption,
    JsonOption,
    ModelArgument,
    QuotingOption,
    TrustOption,
    app,
)
from ordinalq.cli.wording import listed, say, say_json

if TYPE_CHECKING:
    from ordinalq.inference.labelling import LabelsNeeded


@app.command()
# long: half of it are the options
def plan(
    model: ModelArgument,
    table: Annotated[Path, typer.Argument(help="Table whose rows may be labelled, of any size.")],
    by: Annotated[str | None, typer.Option(help="Column of groups: a number of labels for each.")] = None,
    width: Annotated[float, typer.Option(help="Width of the interval to reach: in classes, or in shares.")] = 0.05,
    quantity: Annotated[str, typer.Option(help="Whose interval: that of the 'mean' class, or of a class.")] = "mean",
    interval: Annotated[float, typer.Option(help="Level of the interval.")] = 0.95,
    interval_of: Annotated[
        str, typer.Option("--interval-of", help="Intervals for this 'sample', or for its 'population'.")
    ] = "sample",
    labels: Annotated[str | None, typer.Option(help="Column with the labels that there are already.")] = None,
    basis: BasisOption = "auto",
    out: Annotated[
        Path | None, typer.Option("--out", help="Rows to label, to write: .csv, .tsv, .jsonl or .parquet.")
    ] = None,
    random_state: Annotated[int, typer.Option(min=0, help="Seed of the draw of the rows.")] = 0,
    trust: TrustOption = "",
    format: FormatOption = None,  # noqa: A002
    encoding: EncodingOption = "utf-8",
    quoting: QuotingOption = "auto",
    json: JsonOption = False,
) -> None:
    """Say how many rows of each group to label, so that intervals are as narrow as one wants, and draw these rows."""
    from ordinalq.cli import show
    from ordinalq.contract.plan import BASES, OF, Plan, check_level
    from ordinalq.files import writing
    from ordinalq.files.many import open_table
    from ordinalq.tables.planning import plan_labels, rows_to_label
    from ordinalq.tables.saving import load_model_and_info
    from ordinalq.validation import check_choice, check_real

    check_choice("--interval-of", interval_of, OF)
    check_choice("--basis", basis, BASES)
    check_real("width", width, low=0, open_low=True)
    check_level(interval)
    if out is not None and str(table) == "-":
        raise ValueError("--out needs a table in a file, which is read three times, got standard input.")
    file = open_table(table, format, encoding, quoting)
    if out is not None:
        writing.check_output(out, model, *(part.path for part in file.files))
    kind = writing.table_format(out) if out else ""
    loaded, info = load_model_and_info(model, trusted=listed(trust))
    how = Plan(of=interval_of, basis=basis)
    options: dict[str, Any] = {"by": by, "labels": labels, "width": width, "quantity": quantity, "level": interval}
    with show.progress(file.name, file.n_bytes) as progress:
        found = plan_labels(loaded, file, plan=how, progress=progress, **options)
    if out is not None:
        rows = rows_to_label(file, found, labels or info.target, random_state)
        with writing.replacing(out) as path:
            writing.write_table(rows, path, kind)
    if json:
        say_json(_result(found.needed))
        return
    _say(found.needed)
    if out is not None:
        say(f"written: {out}, {found.needed.total:,} rows, drawn at random within each group")


def _result(needed: "LabelsNeeded") -> dict[str, Any]:
    """Return what `plan --json` prints."""
    rows = needed.frame().astype(object).to_dict("records")
    return {
        "quantity": needed.quantity,
        "width": needed.asked,
        "level": needed.level,
        "total": needed.total,
        "groups": rows,
    }


def _say(needed: "LabelsNeeded") -> None:
    """Print one row per group, and what they cost together."""
    import numpy as np

    from ordinalq.terminal import MAX_ROWS, table

    names = [""] * len(needed.labels) if needed.keys is None else needed.keys.labels()
    headers = [
        "" if needed.keys is None else needed.keys.name,
        "items",
        "labelled",
        "width now",
        "to label",
        "width then",
    ]
    rows = [
        (
            names[b],
            f"{needed.n_items[b]:,}",
            f"{needed.n_labelled[b]:,}",
            "" if np.isnan(needed.now[b]) else f"{needed.now[b]:.3f}",
            f"{needed.labels[b]:,}",
            f"{needed.width[b]:.3f}" + " !" * bool(needed.width[b] > needed.asked),
        )
        for b in range(min(len(names), MAX_ROWS))
    ]
    table(headers, rows, total=len(names), hint="; --json has all")
    what = needed.quantity if needed.quantity == "mean class" else f"share of class {needed.quantity}"
    groups = int((needed.labels > 0).sum())
    cost = f"{needed.total:,} labels in {groups:,} groups"
    say(f"{needed.level:.0%} intervals of the {what}, at most {needed.asked:g} wide: {cost}")
    if (needed.width > needed.asked).any():
        say("! not even with all items labelled: ask for the sample, or for a larger width")
    if (needed.basis == "labels").any():
        say("intervals rest on the labels alone, from ten labels on")
