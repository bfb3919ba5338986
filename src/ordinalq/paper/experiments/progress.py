"""Who wants to know what a run does: nobody, a log file, or a terminal."""

import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any, TextIO

from ordinalq._utils.text import percent
from ordinalq.paper.experiments.store import MARK

SECONDS_BETWEEN_LINES = 15  # where the output is no terminal


class Progress:
    """Tells what goes on to those who listen. Stages have a total amount of work, of which parts are done."""

    def __init__(self, listeners: Sequence["Progress"] = ()) -> None:
        self.listeners = listeners

    def stage(self, name: str, total: float, detail: str = "") -> None:
        """Begin a stage."""
        for one in self.listeners:
            one.stage(name, total, detail)

    def advance(self, amount: float, detail: str = "") -> None:
        """Note that a part of the stage is done."""
        for one in self.listeners:
            one.advance(amount, detail)

    def close(self) -> None:
        """End the last stage."""
        for one in self.listeners:
            one.close()


class LogFile(Progress):
    """Appends a line for each step to a file."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self.path = path

    def stage(self, name: str, total: float, detail: str = "") -> None:
        """Begin a stage."""
        self._line(f"{name}: {detail}" if detail else name)

    def advance(self, amount: float, detail: str = "") -> None:
        """Note that a part of the stage is done."""
        self._line(f"  done: {detail}")

    def _line(self, text: str) -> None:
        if (self.path.parent / MARK).exists():  # the run has the right to write there
            with self.path.open("a", encoding="utf-8") as file:
                file.write(f"{time.strftime('%Y-%m-%d %H:%M:%S')} {text}\n")


class Terminal(Progress):
    """A bar with percent and time left; where the output is no terminal, a line from time to time."""

    def __init__(self, stream: TextIO | None = None) -> None:
        super().__init__()
        self.stream = sys.stderr if stream is None else stream
        self.bar: Any = None
        self.name, self.total, self.done, self.start, self.last = "", 0.0, 0.0, 0.0, 0.0

    def stage(self, name: str, total: float, detail: str = "") -> None:
        """Begin a stage."""
        self.close()
        self.name, self.total, self.done, self.start, self.last = name, total, 0.0, time.monotonic(), time.monotonic()
        if not self.stream.isatty():
            self.stream.write(f"{name}{': ' + detail if detail else ''}\n")
            self.stream.flush()
            return
        from rich.console import Console
        from rich.progress import BarColumn, TaskProgressColumn, TextColumn, TimeElapsedColumn, TimeRemainingColumn
        from rich.progress import Progress as Bar

        self.bar = Bar(
            TextColumn("{task.description:<11}"), BarColumn(), TaskProgressColumn(), TimeElapsedColumn(),
            TextColumn("left"), TimeRemainingColumn(), TextColumn("{task.fields[detail]}", style="dim"),
            console=Console(file=self.stream),
        )  # fmt: skip
        self.bar.start()
        self.task = self.bar.add_task(name, total=max(total, 1e-9), detail=detail)

    def advance(self, amount: float, detail: str = "") -> None:
        """Note that a part of the stage is done."""
        self.done += amount
        if self.bar is not None:
            self.bar.update(self.task, completed=self.done, detail=detail)
        elif time.monotonic() - self.last >= SECONDS_BETWEEN_LINES:
            self.last = time.monotonic()
            share = min(self.done / self.total, 1.0)
            left = (self.last - self.start) * (1 - share) / share
            self.stream.write(f"{self.name}: {percent(share, 0)}, about {left:.0f} s left\n")
            self.stream.flush()

    def close(self) -> None:
        """End the bar of the last stage."""
        if self.bar is not None:
            self.bar.update(self.task, completed=self.total, detail="")
            self.bar.stop()
            self.bar = None
