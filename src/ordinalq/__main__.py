"""``python -m ordinalq`` is the command line."""

from ordinalq.cli import script

if __name__ == "__main__":
    script()
