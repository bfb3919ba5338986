"""The command line: one verb per step. Errors are one line; exit code 2 is the caller's mistake, 1 anything else."""

import logging
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer

app = typer.Typer(
    name="ordinalq",
    help="Ordinal quantification: class distributions of unlabelled samples over ordered classes.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)

# Wrong files, options and values: what the caller can put right.
CALLERS_MISTAKES = (ValueError, TypeError, FileNotFoundError, FileExistsError, NotADirectoryError, PermissionError)

DataOption = Annotated[
    Path | None, typer.Option("--data", help="File or folder with a local copy; default: the folder ORDINALQ_DATA.")
]


@app.callback()
def options(debug: Annotated[bool, typer.Option("--debug", help="Show the traceback of an error.")] = False) -> None:
    """Ordinal quantification: class distributions of unlabelled samples over ordered classes."""


@app.command()
def datasets(
    data: Annotated[Path | None, typer.Option(help="Folder with local copies; default: ORDINALQ_DATA.")] = None,
) -> None:
    """List the data sets: what exists, how large, under which licence, and whether it is here."""
    from ordinalq.datasets import CATALOG
    from ordinalq.datasets.download import find_local

    if data is None:
        find_local(())  # finds nothing, but says if ORDINALQ_DATA is no folder
    if data is not None and not data.is_dir():
        raise FileNotFoundError(f"{data}: no such folder.")
    rows: list[tuple[str, ...]] = [("name", "items", "features", "classes", "licence", "where", "what")]
    for entry in CATALOG:
        numbers = (entry.n_items, entry.n_features, entry.n_classes)
        cells = ("" if number is None else f"{number:,}" for number in numbers)
        rows.append((entry.name, *cells, entry.licence, entry.where(data), entry.what))
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for name, *counts, licence, where, what in rows:
        right = "  ".join(cell.rjust(width) for cell, width in zip(counts, widths[1:4], strict=True))
        typer.echo(f"{name:<{widths[0]}}  {right}  {licence:<{widths[4]}}  {where:<{widths[5]}}  {what}")


@app.command()
def extract(
    name: Annotated[str, typer.Argument(help="Name of a data set, see `ordinalq datasets`.")],
    out: Annotated[Path, typer.Option("--out", help="Folder to write: absent, empty, or written by an earlier call.")],
    data: DataOption = None,
    settings: Annotated[
        str, typer.Option(help="'reference' as the authors' code, or 'paper' as the text.")
    ] = "reference",
    random_state: Annotated[int, typer.Option(help="Determines the split and all samples.")] = 876,
) -> None:
    """Write a data set as Parquet files, with the samples of each protocol, for use by other programs."""
    from ordinalq.datasets import load_dataset
    from ordinalq.datasets.dataset import check_folder

    check_folder(out)  # before the work, not after it
    dataset = load_dataset(name, data=data, settings=settings, random_state=random_state)
    files = dataset.save(out)
    for note in dataset.notes:
        typer.echo(f"note: {note}")
    typer.echo(f"{dataset.name}: {len(files)} files in {out}; split: {dataset.split}")


@app.command()
def reproduce(
    name: Annotated[str, typer.Argument(help="An experiment of the paper, such as fried, or the path of a TOML file.")],
    profile: Annotated[
        str, typer.Option(help="'full', or 'quick': fewer samples and a small classifier grid.")
    ] = "full",
    settings: Annotated[
        str, typer.Option(help="'reference' as the authors' code, or 'paper' as the text.")
    ] = "reference",
    data: DataOption = None,
    out: Annotated[
        Path | None, typer.Option("--out", help="Folder to write; default: results/NAME. An interrupted run goes on.")
    ] = None,
    n_jobs: Annotated[int, typer.Option("--n-jobs", help="Number of workers; -1: all processors.")] = -1,
    backend: Annotated[str, typer.Option(help="Backend of joblib: loky, dask, ray, spark, ...")] = "loky",
    quiet: Annotated[bool, typer.Option("--quiet", help="No progress, no table.")] = False,
) -> None:
    """Run an experiment of the paper and write its tables beside the printed figures, and a report."""
    from ordinalq.report.reproduce import reproduce_experiment

    page = reproduce_experiment(
        name, profile=profile, settings=settings, data=data, folder=out, n_jobs=n_jobs, backend=backend, quiet=quiet
    )
    typer.echo(str(page))


@app.command()
def report(
    folders: Annotated[list[Path], typer.Argument(help="Folders of finished experiments.")],
    out: Annotated[Path | None, typer.Option("--out", help="Folder for the comparison of several experiments.")] = None,
) -> None:
    """Write the report of a finished experiment again, or compare several of them by ranks."""
    from ordinalq.report.reproduce import report_experiments

    typer.echo(str(report_experiments(folders, out)))


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line and return its exit code."""
    arguments = list(sys.argv[1:] if arguments is None else arguments)
    debug = "--debug" in arguments
    arguments = [argument for argument in arguments if argument != "--debug"]  # wherever it stands
    logging.basicConfig(level=logging.WARNING, format="%(message)s")
    try:
        return int(app(arguments, standalone_mode=False) or 0)
    except Exception as error:
        if debug:
            raise
        message = error.format_message() if hasattr(error, "format_message") else str(error) or type(error).__name__
        if message:  # a call without arguments has shown the help and says no more
            typer.echo(f"ordinalq: {' '.join(message.split())}", err=True)
        # The parser's own errors (unknown verb, missing option) carry their exit code.
        return int(getattr(error, "exit_code", 2 if isinstance(error, CALLERS_MISTAKES) else 1))


def script() -> None:
    """Run the command line as a program."""
    sys.exit(main())
