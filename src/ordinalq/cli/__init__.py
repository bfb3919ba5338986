"""The command line: one verb per step. Errors are one line; exit code 2 is the caller's mistake, 1 anything else."""

from ordinalq._utils.extras import require_extra

with require_extra("cli", "the command line"):
    from ordinalq.cli.main import main, script

__all__ = ["main", "script"]
