"""The command line: one verb per step. Errors are one line; exit code 2 is the caller's mistake, 1 anything else."""

from ordinalq.cli.main import main, script

__all__ = ["main", "script"]
