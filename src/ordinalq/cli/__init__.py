"""The command line. Errors are one line; exit code 2 is a mistake of the caller, 1 anything else."""

from ordinalq.cli.main import main, script

__all__ = ["main", "script"]
