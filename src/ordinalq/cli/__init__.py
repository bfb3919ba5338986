"""Command line. Exit code 2 is an error of the caller, 1 any other error."""

from ordinalq._utils.extras import require_extra

with require_extra("cli", "the command line"):
    from ordinalq.cli.main import main, script

__all__ = ["main", "script"]
