"""Results in the terminal: tables, bars and a progress bar."""

import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import numpy as np

from ordinalq.terminal import MAX_ROWS, screen, table
from ordinalq.text import plain, shortened

if TYPE_CHECKING:
    import pandas as pd

# More bar charts than this say less than a file does.
MAX_CHARTS = 6

# Reading less than this takes no time.
LONG_WORK = 20_000_000


def prevalences(estimate: "pd.DataFrame", classes: Sequence[Any], level: float | None = None) -> None:
    """Print the table of `predict_table` in per cent."""
    names = [str(label) for label in classes]
    by = estimate.columns[0]
    ends, middles = [], []
    for record in estimate.head(MAX_ROWS).to_dict("records"):
        mean = f"{record['mean_class']:.2f}"
        if level is not None:
            mean += f" ({record['mean_class_lower']:.2f} to {record['mean_class_upper']:.2f})"
        ends.append((str(record[by]), f"{record['n_items']:,}", mean))
        middles.append([f"{100 * record[name]:.0f} %" for name in names])
    # What is left beside 8 characters of the name, the items, the mean class and "...", with 3 between columns.
    room = screen().width - 8 - sum(3 + max(map(len, column)) for column in list(zip(*ends, strict=True))[1:]) - 5
    widths = [3 + max(map(len, column)) for column in zip(names, *middles, strict=True)]
    fitting = int((np.cumsum(widths) <= room).sum())
    hidden = [] if fitting == len(names) else ["..."]
    shown = len(names) if not hidden else max(1, fitting - 1)
    rows = [[a, b, *cells[:shown], *hidden, c] for (a, b, c), cells in zip(ends, middles, strict=True)]
    table([by, "items", *names[:shown], *hidden, "mean class"], rows, total=len(estimate))


def charts(estimate: "pd.DataFrame", classes: Sequence[Any], level: float | None = None) -> None:
    """Print a bar chart of each of the first groups."""
    names = [str(label) for label in classes]
    by = estimate.columns[0]
    shown = estimate.head(MAX_CHARTS)
    titles = shortened([plain(f"{by} {name}") for name in shown[by]], screen().width)
    for record, title in zip(shown.to_dict("records"), titles, strict=True):
        bars(title if len(estimate) > 1 else "", record, names, level)


def bars(title: str, record: Any, names: Sequence[str], level: float | None) -> None:
    """Print one bar per class; with a level, the interval beside it."""
    console = screen()
    if title:
        console.print(f"\n{plain(title)}", overflow="ellipsis", no_wrap=True)
    else:
        console.print()
    width = min(24, max(map(len, names)))
    room = max(10, min(50, console.width - width - 28))
    largest = max(float(record[name]) for name in names) or 1.0
    for name in names:
        p = float(record[name])
        line = f"  {plain(name)[:width]:>{width}}  {_bar(p / largest, room)} {100 * p:3.0f} %"
        if level is not None:
            line += f"  ({100 * float(record[f'{name}_lower']):.0f} to {100 * float(record[f'{name}_upper']):.0f})"
        console.print(line, overflow="crop", no_wrap=True)


def _bar(part: float, room: int) -> str:
    """Draw a bar of `part` of the room, in eighths of a character.

    >>> _bar(0.5, 4) + "|"
    '██  |'
    """
    eighths = round(8 * room * min(max(part, 0.0), 1.0))
    full, rest = divmod(eighths, 8)
    return ("█" * full + (" ▏▎▍▌▋▊▉"[rest] if rest else "")).ljust(room)


@contextmanager
def progress(what: str, n_bytes: int) -> Iterator[Callable[[int], object] | None]:
    """Show a progress bar on the terminal if there is one and the work is long; give the function that moves it."""
    if n_bytes < LONG_WORK or not sys.stderr.isatty():
        yield None
        return
    from rich.console import Console
    from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (TextColumn("{task.description}"), BarColumn(), DownloadColumn(), TimeRemainingColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task(what, total=n_bytes)
        yield lambda done: bar.update(task, completed=done)


def percentages(p: Any, classes: Sequence[Any]) -> str:
    """Return a distribution as one line.

    >>> percentages([0.25, 0.5, 0.25], [1, 2, 3])
    '1: 25 %, 2: 50 %, 3: 25 %'
    """
    return ", ".join(f"{label}: {100 * x:.0f} %" for label, x in zip(classes, np.asarray(p), strict=True))
