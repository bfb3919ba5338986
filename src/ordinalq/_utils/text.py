"""Text for people: short names, safe printing, suggestions, terminal tables."""

import difflib
import math
import textwrap
from collections.abc import Collection, Iterable, Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rich.console import Console


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


def join_names(names: Sequence[str]) -> str:
    """Join names as people do, with "and" before the last."""
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"


def percent(part: float, digits: int | None = None) -> str:
    """Return a part of the whole in percent, with `digits` digits if given.

    >>> percent(0.95), percent(0.975), percent(0.7213, 0)
    ('95%', '97.5%', '72%')
    """
    return f"{100 * part:g}%" if digits is None else f"{100 * part:.{digits}f}%"


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
    """Cut names before the first letter in which they differ, and at the end."""
    columns = enumerate(zip(*names, strict=False))
    start = next((i for i, letters in columns if len(set(letters)) > 1), min(map(len, names)))
    head = max(min(start - 1, length // 4), 0)
    return [name[:head] + "…" + cut(name[start:], length - 1 - head) for name in names]


def _numbered(names: Sequence[str], length: int) -> list[str]:
    return [f"{name[: max(length - 1 - len(str(i)), 0)]}…{i}" for i, name in enumerate(names, 1)]


def plain(text: str) -> str:
    """Replace characters that would move the cursor or change the terminal."""
    return "".join(c if c.isprintable() else " " for c in text)


def finite(value: Any) -> Any:
    """Replace the numbers that JSON lacks by None, in dicts, lists and tuples.

    >>> finite({"a": [1.5, float("nan")]})
    {'a': [1.5, None]}
    """
    if isinstance(value, dict):
        return {str(name): finite(part) for name, part in value.items()}
    if isinstance(value, list | tuple):
        return [finite(part) for part in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


def nearest(name: str, known: Iterable[str]) -> str:
    """Return "; did you mean ...?" for a misspelt name, or nothing.

    >>> nearest("OPAC", ["PACC", "OPACC"])
    "; did you mean 'OPACC' or 'PACC'?"
    """
    lower = {one.lower(): one for one in known}
    found = difflib.get_close_matches(name.lower(), lower, n=2, cutoff=0.6)
    return f"; did you mean {' or '.join(repr(lower[one]) for one in found)}?" if found else ""


# Tables in the terminal.


MAX_ROWS = 40  # more say less than a file does
MIN_WIDTH = 8  # characters of the column that gives way
GAP = 3  # characters between columns


class Bold(str):
    """Text of a cell that stands out."""

    __slots__ = ()


def screen(min_width: int = 0) -> "Console":
    """Return the terminal; lines wrap if it is narrower than `min_width`."""
    from rich.console import Console

    # Names come from files: nothing in them is markup, and numbers are not coloured.
    found = Console(markup=False, highlight=False, emoji=False)
    found.width = max(found.width, min_width)
    return found


def table(
    headers: Sequence[str],
    rows: Sequence[Sequence[str]],
    left: int = 1,
    cut: int = 0,
    total: int | None = None,
    console: "Console | None" = None,
    *,
    title: str = "",
    ends: Collection[int] = (),
    hint: str = "",
    wrap: bool = False,
) -> None:
    r"""Print rows under headers.

    The first `left` columns are flush left; column `cut` is shortened if the terminal is narrow.

    Its cells are cut, distinct as they were, or with `wrap` broken at words: then nothing is lost.

    Headings may have several lines, separated by "\n"; cells of type :class:`Bold` stand out, and a line is drawn below
    the rows `ends`. The first 40 rows are shown; if there are more, of which `total` counts those that were not
    given, a last line gives their number, with a `hint` where to find them.
    """
    from rich import box
    from rich.table import Table
    from rich.text import Text

    def cell(text: str) -> Any:
        return Text(plain(text), style="bold") if isinstance(text, Bold) else plain(text)

    console = screen() if console is None else console
    shown = rows[:MAX_ROWS]
    lines = [[plain(line) for line in header.split("\n")] for header in headers]
    widths = [max(map(len, [*lines[j], *(row[j] for row in shown)])) for j in range(len(lines))]
    excess = sum(widths) + GAP * (len(widths) - 1) - console.width
    room = max(MIN_WIDTH, *map(len, lines[cut]), widths[cut] - max(0, excess))
    names = [plain(row[cut]) for row in shown]
    names = ["\n".join(textwrap.wrap(name, room)) for name in names] if wrap else shortened(names, room)
    view = Table(box=box.SIMPLE_HEAD, pad_edge=False, show_edge=False, title=title or None, title_justify="left")
    for j, heading in enumerate(lines):
        justify: Any = "left" if j < left or (wrap and j == cut) else "right"
        view.add_column("\n".join(heading), justify=justify, overflow="ellipsis", no_wrap=True)
    for i, (row, name) in enumerate(zip(shown, names, strict=True)):
        view.add_row(*map(cell, row[:cut]), name, *map(cell, row[cut + 1 :]), end_section=i in ends)
    console.print(view)
    hidden = (total or len(rows)) - len(shown)
    if hidden > 0:
        console.print(f"... and {hidden:,} more{hint}.")


def counted(n: int, what: str) -> str:
    """Return a number of things.

    >>> counted(1, "group"), counted(1200, "item")
    ('1 group', '1,200 items')
    """
    return f"{n:,} {what}{'s' * (n != 1)}"
