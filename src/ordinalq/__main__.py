"""The program `ordinalq`, also ``python -m ordinalq``."""

import sys


def script() -> None:
    """Run the command line, or print the extra that it needs."""
    try:
        from ordinalq.cli import script as run
    except ImportError as error:
        sys.stderr.write(f"ordinalq: {error}\n")
        sys.exit(2)
    run()


if __name__ == "__main__":
    script()
