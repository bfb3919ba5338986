"""Tables in the terminal."""

import textwrap
from collections.abc import Collection, Sequence
from typing import TYPE_CHECKING, Any

from ordinalq._utils.text import plain, shortened

if TYPE_CHECKING:
    from rich.console import Console

MAX_ROWS = 40  # more say less than a file does
MIN_WIDTH = 8  # characters of the column that gives way
GAP = 3  # characters between columns


class Bold(str):
    """Text of a cell that stands out."""

    __slots__ = ()


def screen(min_width: int = 0) -> "Console":
    """Return the terminal; where it is narrower than `min_width`, lines are broken rather than cut."""
    from rich.console import Console

    # Names come from files: nothing in them is markup, and numbers get no colours of their own.
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
    r"""Print rows under headers, the first `left` columns flush left; column `cut` gives way to a narrow terminal.

    Its cells are cut, distinct as they were, or with `wrap` broken at words: then nothing is lost.

    Headings may have several lines, separated by "\n"; cells of type :class:`Bold` stand out, and a line is drawn below
    the rows `ends`. The first 40 rows are shown; where there are more, of which `total` counts those that were not
    given, a last line says how many, with a `hint` where to see them.
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
