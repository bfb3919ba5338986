"""Words for people: names that are cut to fit, printed safely, or suggested for misspelt ones."""

import difflib
from collections.abc import Iterable, Sequence


def cut(name: str, length: int) -> str:
    """Cut a long name at its end.

    >>> cut("a long name", 8)
    'a long…'
    """
    return name if len(name) <= length else name[: length - 1].rstrip() + "…"


def first_of(names: Sequence[str], most: int = 5) -> str:
    """Join the first names, and say how many there are besides.

    >>> first_of(["a", "b"]), first_of("abcdefgh")
    ('a, b', 'a, b, c, d, e and 3 more')
    """
    return ", ".join(names[:most]) + (f" and {len(names) - most:,} more" if len(names) > most else "")


def listed(names: Sequence[str]) -> str:
    """Join names as people do, with "and" before the last."""
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"


def percent(part: float, digits: int | None = None) -> str:
    """Return a part of the whole in per cent, with this many digits, or as many as it has.

    >>> percent(0.95), percent(0.975), percent(0.7213, 0)
    ('95 %', '97.5 %', '72 %')
    """
    return f"{100 * part:g} %" if digits is None else f"{100 * part:.{digits}f} %"


def shortened(names: Sequence[str], length: int) -> list[str]:
    """Cut long names at the end, and in other ways where they would be the same then.

    >>> shortened(["short", "a long name"], 8)
    ['short', 'a long…']
    >>> shortened(["a long name, black", "a long name, white"], 9)
    ['a lo…lack', 'a lo…hite']
    >>> shortened(["the long black pen", "the long white pen"], 9)
    ['th…black…', 'th…white…']
    """
    short = {name: cut(name, length) for name in names}
    for again in (_in_the_middle, _where_they_differ, _numbered):
        same: dict[str, list[str]] = {}
        for name, one in short.items():
            same.setdefault(one, []).append(name)
        for together in same.values():
            long = [name for name in together if len(name) > length]
            if len(together) > 1:
                short |= dict(zip(long, again(long, length), strict=True))
    return [short[name] for name in names]


def _in_the_middle(names: Sequence[str], length: int) -> list[str]:
    head = max(length - 1, 0) // 2
    return [name[:head] + "…" + name[len(name) - (length - 1 - head) :] for name in names]


def _where_they_differ(names: Sequence[str], length: int) -> list[str]:
    """Cut names before the first letter in which they differ, and after it at the end."""
    columns = enumerate(zip(*names, strict=False))
    start = next((i for i, letters in columns if len(set(letters)) > 1), min(map(len, names)))
    head = max(min(start - 1, length // 4), 0)
    return [name[:head] + "…" + cut(name[start:], length - 1 - head) for name in names]


def _numbered(names: Sequence[str], length: int) -> list[str]:
    return [f"{name[: max(length - 1 - len(str(i)), 0)]}…{i}" for i, name in enumerate(names, 1)]


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
