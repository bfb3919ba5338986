"""The program that the verbs belong to, and the options that several of them have."""

from pathlib import Path
from typing import Annotated

import typer

from ordinalq.version import __version__

app = typer.Typer(
    name="ordinalq",
    help="Ordinal quantification: class distributions of unlabelled samples over ordered classes.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)

DataOption = Annotated[
    Path | None, typer.Option("--data", help="File or folder with a local copy; default: the folder ORDINALQ_DATA.")
]
FormatOption = Annotated[
    str | None, typer.Option("--format", help="csv, tsv, jsonl or parquet; default: by the ending of the name.")
]
EncodingOption = Annotated[str, typer.Option("--encoding", help="Encoding of text files, such as cp1252.")]
QuotingOption = Annotated[
    str,
    typer.Option(
        "--quoting", help="Quotes around cells of CSV and TSV files: 'minimal': they protect, 'none': plain characters."
    ),
]
JsonOption = Annotated[bool, typer.Option("--json", help="Print the result as JSON.")]
SkipOption = Annotated[bool, typer.Option("--skip-unlabelled", help="Leave out rows without a label.")]
ModelArgument = Annotated[Path, typer.Argument(help="Model that `ordinalq fit` has written.")]
WeightOption = Annotated[str | None, typer.Option("--weight", help="Column of weights of the rows.")]
WeightsOption = Annotated[
    str,
    typer.Option(
        "--weights", help="What weights are: those of a 'survey' or a simulation, or a 'frequency' of the row."
    ),
]
TrustOption = Annotated[str, typer.Option("--trust", help="Types in the model file to trust, comma-separated.")]


def _say_version(asked: bool) -> None:
    if asked:
        typer.echo(f"ordinalq {__version__}")
        raise typer.Exit


@app.callback()
def options(
    debug: Annotated[bool, typer.Option("--debug", help="Show the traceback of an error.")] = False,
    quiet: Annotated[bool, typer.Option("--quiet", help="Show no progress.")] = False,
    version: Annotated[
        bool, typer.Option("--version", callback=_say_version, is_eager=True, help="Show the version and exit.")
    ] = False,
) -> None:
    """Ordinal quantification: class distributions of unlabelled samples over ordered classes."""
