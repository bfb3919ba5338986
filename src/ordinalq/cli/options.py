"""Typer application, shared options, and messages in terms of options."""

import json
import logging
import re
import shlex
from collections.abc import Mapping, Sequence
from contextvars import ContextVar
from pathlib import Path
from typing import Annotated, Any

import typer

from ordinalq._utils.text import finite, plain
from ordinalq.version import __version__

app = typer.Typer(
    name="ordinalq",
    help="Ordinal quantification: class distributions of unlabelled samples over ordered classes.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)

DataOption = Annotated[
    Path | None, typer.Option("--data", help="File or folder with a local copy. Default: the folder ORDINALQ_DATA.")
]
FormatOption = Annotated[
    str | None,
    typer.Option("--format", help="File format: csv, tsv, excel, jsonl or parquet. Default: by the file extension."),
]
TidyOption = Annotated[
    bool, typer.Option("--tidy-groups", help="Merge groups whose names differ only in case or spaces.")
]
SheetOption = Annotated[
    str | None, typer.Option("--sheet", help="Sheet of an .xlsx or .ods file. Default: the first with cells.")
]
EncodingOption = Annotated[str, typer.Option("--encoding", help="Encoding of text files, such as cp1252.")]
QuotingOption = Annotated[
    str,
    typer.Option(
        "--quoting", help="Quotes in CSV and TSV files: minimal (they enclose cells) or none (ordinary characters)."
    ),
]
MaxSpoolOption = Annotated[
    float, typer.Option("--max-spool", help="Maximum size in GB of standard input or a pipe copied to disk.")
]
CsvSafeOption = Annotated[
    bool, typer.Option("--csv-safe", help="Put a quote before CSV cells that spreadsheets would run as formulas.")
]
JsonOption = Annotated[bool, typer.Option("--json", help="Print the result as JSON.")]
SkipOption = Annotated[bool, typer.Option("--skip-unlabelled", help="Skip rows without a label.")]
ModelArgument = Annotated[Path, typer.Argument(help="Model file written by `ordinalq fit`.")]
WeightOption = Annotated[str | None, typer.Option("--weight", help="Weight column.")]
WeightTypeOption = Annotated[
    str,
    typer.Option(
        "--weight-type",
        help="Weight type: survey (sampling or simulation weights) or frequency (row counts).",
    ),
]
TrustOption = Annotated[
    str, typer.Option("--trust", help="Additional types to allow in the model file, comma-separated.")
]


def _print_version(is_given: bool) -> None:
    if is_given:
        typer.echo(f"ordinalq {__version__}")
        raise typer.Exit


@app.callback()
def options(
    debug: Annotated[bool, typer.Option("--debug", help="Show the traceback of an error.")] = False,
    quiet: Annotated[bool, typer.Option("--quiet", help="Do not show progress.")] = False,
    version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Show the version and exit.")
    ] = False,
) -> None:
    """Estimate class distributions of samples over ordered classes."""


# Terminal output: plain characters only, with options instead of parameters of the library.


# Whether the running call has the option --quiet.
QUIET: ContextVar[bool] = ContextVar("quiet", default=False)

# Parameters of the library that have another name as an option.
SYNONYMS = {
    "overwrite": "force",
    "trusted": "trust",
    "level": "interval",
    "dates": "date_format",
    "n_samples": "samples",
    "sample_weight": "weight",
}
# Lists show how they are written.
LISTS = {"classes": " a,b,c", "labels": " COLUMN"}

# name=[...], name=True, name='word', name={'column': 'word'} and name=PATH, as in Python.
KEYWORD = re.compile(r"\b([a-z_]+)=(\[\.\.\.\]|True|'([^']*)'|\{'([^']*)': '([^']*)'\}|[A-Z]+\b)")

# A parameter that a message is about.
SUBJECT = re.compile(r"([a-z_]+) (?:must|has|needs)\b")


def print_lines(text: str, *, err: bool = False) -> None:
    """Print lines; what would move the cursor or change the terminal is a blank."""
    typer.echo("\n".join(plain(line) for line in text.split("\n")), err=err)


def print_json(value: Any) -> None:
    """Print JSON with escaped control characters; NaN and infinity become null."""
    text = json.dumps(finite(value), indent=2, ensure_ascii=False, default=str)
    typer.echo("".join(c if c == "\n" or c.isprintable() else _escaped(c) for c in text))


def with_option_names(text: str, options: Mapping[str, str]) -> str:
    """Return a text in which parameters are written as options of the subcommand.

    Parameters without an option stay.

    >>> with_option_names("give quoting='none', or tau=True.", {"quoting": "--quoting"})
    'give --quoting none, or tau=True.'
    >>> with_option_names("Use sample_weight='design weight'.", {"weight": "--weight"})
    "Use --weight 'design weight'."
    """

    def option(match: re.Match[str]) -> str:
        name = SYNONYMS.get(match[1], match[1])
        if name not in options:
            return match[0]
        value = ""
        if match[3] is not None:
            value = f" {shlex.quote(match[3])}"
        elif match[4] is not None:
            value = f" {match[4]}={match[5]}"
        elif match[2].isupper():
            value = f" {match[2]}"
        elif match[2] == "[...]":
            value = LISTS.get(name, "")
        return f"{options[name]}{value}"

    return KEYWORD.sub(option, text)


def _subject(text: str, options: Mapping[str, str]) -> str:
    """Call the parameter that a message begins with by its option.

    >>> _subject("n_samples must be an integer >= 1, got 0.", {"samples": "--samples"})
    '--samples must be an integer >= 1, got 0.'
    """
    found = SUBJECT.match(text)
    if found is None:
        return text
    option = options.get(SYNONYMS.get(found[1], found[1])) or options.get(f"{found[1]}s")
    return text if option is None else f"{option}{text[found.end(1) :]}"


def one_line(text: str, options: Mapping[str, str]) -> str:
    """Return a message of the library as one line of the command line."""
    return plain(with_option_names(_subject(" ".join(text.split()), options), options))


class OneLine(logging.Formatter):
    """Log messages of the library in terms of the command line."""

    def __init__(self, options: Mapping[str, str]) -> None:
        super().__init__("%(message)s")
        self.options = options

    def format(self, record: logging.LogRecord) -> str:
        """Return the record as one line."""
        return one_line(record.getMessage(), self.options)


def split_names(text: str) -> list[str]:
    """Return the names in a comma-separated list.

    >>> split_names("a, b,c")
    ['a', 'b', 'c']
    """
    return [name.strip() for name in text.split(",") if name.strip()]


def check_roles(model: Path, tables: Sequence[str]) -> None:
    """Raise ValueError if the model is a table, or a table is a model."""
    from ordinalq.io.table import format_of

    is_table = model.is_file() and format_of(model.name) is not None and not _is_model(model)
    if is_table and _is_model(Path(tables[0])):
        raise ValueError(f"the model must come before the table, got {model} {tables[0]}. Use {tables[0]} {model}.")
    if is_table:
        raise ValueError(f"{model}: expected a model, which `ordinalq fit` writes, got a table.")
    check_tables(tables)


def check_tables(tables: Sequence[str]) -> None:
    """Raise ValueError if a table is a model."""
    for table in tables:
        if _is_model(Path(table)):
            raise ValueError(f"{table}: expected a table, got a model.")


def _is_model(path: Path) -> bool:
    from ordinalq.tables.model_file import is_model

    return path.is_file() and is_model(path)


def _escaped(character: str) -> str:
    """Return a character as JSON escapes it."""
    return json.dumps(character)[1:-1] if ord(character) > 0xFF or ord(character) < 0x20 else f"\\u{ord(character):04x}"
