"""Progress of long work, as records of the logger ``ordinalq.progress``.

Without a handler nothing is reported. Work may be inside a step of other work: :class:`ProgressHandler` adds up.
"""

import logging
from collections.abc import Iterable, Iterator, Sequence
from typing import TypeVar

logger = logging.getLogger("ordinalq.progress")
# Handlers of other log records do not receive progress.
logger.propagate = False

Item = TypeVar("Item")


def report_step(description: str, done: int, total: int, width: int = 1) -> None:
    """Report a step of `width` steps that begins after `done` of `total` steps.

    `done == total` ends the work.
    """
    logger.info(description, extra={"step": (done, total, width)})


def iterate_steps(description: str, items: Sequence[Item]) -> Iterator[Item]:
    """Yield items, each of which is a step of the work."""
    for i, item in enumerate(items):
        report_step(f"{description} {i + 1} of {len(items)}", i, len(items))
        yield item
    report_step("", len(items), len(items))


def iterate_parts(description: str, items: Iterable[tuple[Item, int]], total: int) -> Iterator[Item]:
    """Yield items that come with the number of steps, of `total`, done after each."""
    report_step(description, 0, total)
    try:
        for item, done in items:
            yield item
            if 0 < done < total:
                report_step(description, done, total)
    finally:
        report_step("", total, total)


class ProgressHandler(logging.Handler):
    """Log handler that adds up the progress of nested work.

    `part` is between 0 and 1 and never decreases. `what` is the description of the current step.
    """

    def __init__(self) -> None:
        super().__init__()
        self.part, self.what = 0.0, ""
        self._levels: list[tuple[str, float, float]] = []  # what, where it begins, and its width, parts of one

    def emit(self, record: logging.LogRecord) -> None:
        """Record a step."""
        at, of, width = record.step  # type: ignore[attr-defined]
        if at > 0 and self._levels:
            self._levels.pop()
        start, room = 0.0, 1.0
        for _, begins, wide in self._levels:
            start, room = start + begins * room, wide * room
        self.part = max(self.part, start + room * at / max(of, 1))
        if at < of:
            self._levels.append((record.getMessage(), at / of, width / of))
        self.what = ", ".join(what for what, _, _ in self._levels if what)

    def __enter__(self) -> "ProgressHandler":
        """Add the handler to the logger."""
        logger.setLevel(logging.INFO)
        logger.addHandler(self)
        return self

    def __exit__(self, *_: object) -> None:
        """Remove the handler."""
        logger.removeHandler(self)
        logger.setLevel(logging.NOTSET)
