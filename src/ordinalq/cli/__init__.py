"""The command line. Errors are one line; exit code 2 is a mistake of the caller, 1 anything else."""

from ordinalq._utils.extras import require_extra

with require_extra("cli", "the command line"):
    from ordinalq.cli.main import main, script

__all__ = ["main", "script"]
