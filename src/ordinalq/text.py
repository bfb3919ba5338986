"""Words for people: names that are cut to fit, printed safely, or suggested for misspelt ones."""

import difflib
from collections.abc import Iterable, Sequence


def cut(name: str, length: int) -> str:
    """Cut a long name at its end.

    >>> cut("a long name", 8)
    'a long…'
    """
    return name if len(name) <= length else name[: length - 1].rstrip() + "…"


def shortened(names: Sequence[str], length: int) -> list[str]:
    """Cut long names at the end, and in the middle where they would be the same then.

    >>> shortened(["short", "a long name"], 8)
    ['short', 'a long…']
    >>> shortened(["a long name, black", "a long name, white"], 9)
    ['a lo…lack', 'a lo…hite']
    """
    ends = [cut(name, length) for name in names]
    of: dict[str, set[str]] = {}
    for name, short in zip(names, ends, strict=True):
        of.setdefault(short, set()).add(name)
    head = max(length - 1, 0) // 2
    return [
        name[:head] + "…" + name[len(name) - (length - 1 - head) :]
        if len(of[short]) > 1 and len(name) > length
        else short
        for name, short in zip(names, ends, strict=True)
    ]


def plain(text: str) -> str:
    """Replace characters that would move the cursor or change the terminal."""
    return "".join(c if c.isprintable() else " " for c in text)


def nearest(name: str, known: Iterable[str]) -> str:
    """Return "; did you mean ...?" for a misspelt name, or nothing.

    >>> nearest("OPAC", ["PACC", "OPACC"])
    "; did you mean 'OPACC' or 'PACC'?"
    """
    lower = {one.lower(): one for one in known}
    found = difflib.get_close_matches(name.lower(), lower, n=2, cutoff=0.6)
    return f"; did you mean {' or '.join(repr(lower[one]) for one in found)}?" if found else ""
