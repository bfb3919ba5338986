"""Entry point of the command line: exit codes, errors in one line, signals."""

import io
import logging
import signal
import sys
import warnings
from collections.abc import Mapping, Sequence
from typing import Any

import typer

from ordinalq.cli import fit, paper, predict
from ordinalq.cli.options import QUIET, OneLine, app, one_line, print_lines

# Importing them has added their verbs, which the help lists in this order.
VERBS = (
    *(fit.fit, predict.predict, predict.compare, predict.plan, fit.evaluate, fit.methods),
    *(predict.page, paper.datasets, paper.extract, paper.reproduce, paper.lequa, paper.report),
)
app.registered_commands.sort(key=lambda verb: VERBS.index(verb.callback))

# Wrong files, options and values, and missing extras: what the caller can put right.
CALLERS_MISTAKES = (
    *(ValueError, TypeError, FileNotFoundError, FileExistsError, NotADirectoryError, PermissionError),
    ImportError,
)

# What typer makes of Ctrl-C.
INTERRUPTED = 130


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line and return its exit code."""
    arguments = list(sys.argv[1:] if arguments is None else arguments)
    debug, quiet = "--debug" in arguments, "--quiet" in arguments
    options = _options(arguments)
    # Wherever they stand, but where a verb has its own.
    mine = {"--debug", "--quiet"} - set(options.values())
    arguments = [argument for argument in arguments if argument not in mine]
    handler = logging.StreamHandler()
    handler.setFormatter(OneLine(options))
    logging.basicConfig(level=logging.WARNING, handlers=[handler])

    def warn(message: Warning | str, *_: Any, **__: Any) -> None:
        """Show a warning of a library as we show errors."""
        text = str(message).replace("Pass groups to fit", "Use fit --by")
        print_lines(f"ordinalq: warning: {one_line(text, options)}", err=True)

    token = QUIET.set(quiet)
    try:
        with warnings.catch_warnings():
            warnings.showwarning = warn
            code = int(app(arguments, standalone_mode=False) or 0)
        if code == INTERRUPTED:
            print_lines("ordinalq: interrupted.", err=True)
        return code
    except Exception as error:
        if debug:
            raise
        message = error.format_message() if hasattr(error, "format_message") else str(error) or type(error).__name__
        if isinstance(error, OSError) and error.strerror:  # without its number
            message = f"{error.filename}: {error.strerror}" if error.filename else error.strerror
        if isinstance(error, MemoryError):
            message = "not enough memory."
        if message:  # a call without arguments has only printed the help
            print_lines(f"ordinalq: {one_line(message, options)}", err=True)
        # The parser's own errors (unknown verb, missing option) carry their exit code.
        return int(getattr(error, "exit_code", 2 if isinstance(error, CALLERS_MISTAKES) else 1))
    finally:
        QUIET.reset(token)


def _options(arguments: Sequence[str]) -> Mapping[str, str]:
    """Return the options of the verb that is called, by the names of its parameters."""
    verbs: dict[str, Any] = getattr(typer.main.get_command(app), "commands", {})
    verb = next((argument for argument in arguments if argument in verbs), None)
    if verb is None:
        return {}
    return {parameter.name: parameter.opts[0] for parameter in verbs[verb].params if parameter.opts[0].startswith("-")}


def script() -> None:
    """Run the command line as a program."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")  # a terminal without the characters of a bar shows question marks
    # Being ended is an exception like others, after which nothing half-written is left.
    signal.signal(signal.SIGTERM, lambda number, frame: sys.exit(128 + number))
    sys.exit(main())
