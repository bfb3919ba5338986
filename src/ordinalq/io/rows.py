"""Rows of delimited text: where they end, and the slow reader that says what is wrong with one of them."""

import csv
import io
import threading
from collections.abc import Iterable, Iterator
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from ordinalq._utils.validation import Index

# A row of more bytes is a quoted cell that does not end, or no table.
MAX_ROW = 1 << 24
MAX_CELL = 1 << 22

QUOTE, LINE_FEED, RETURN = ord('"'), ord("\n"), ord("\r")
Lines = npt.NDArray[np.int64]

# The limit of a cell is a global of the csv module.
_limit = threading.Lock()


class Dialect(NamedTuple):
    """How cells are separated, and whether quotes around a cell are part of it."""

    separator: str
    quoted: bool


class Rows(NamedTuple):
    """Rows as the slow reader gives them."""

    cells: list[list[str]]
    lines: list[int]  # the line of the file in which each row ends
    n_bytes: int  # of all of them in the file
    n_lines: int  # likewise


def rows_end(block: bytes, dialect: Dialect) -> tuple[int, int] | None:
    """Return bytes and lines of the complete rows of a block that starts with one; zeros if there is none.

    None if quotes do not stand at the edges of cells, so that only `exact_rows` can tell.
    """
    if b"\r" in block and block.count(b"\r") != block.count(b"\r\n"):
        return None  # lines that end as those of old computers do
    data = np.frombuffer(block, dtype=np.uint8)
    if not dialect.quoted or b'"' not in block:
        return block.rfind(b"\n") + 1, int(np.count_nonzero(data == LINE_FEED))
    quotes = np.flatnonzero(data == QUOTE)
    if not _at_edges(block, quotes, dialect):
        return None
    last = block.rfind(b"\n")
    if len(quotes) % 2 == 0 and last > quotes[-1]:
        return last + 1, int(np.count_nonzero(data == LINE_FEED))
    feeds = np.flatnonzero(data == LINE_FEED)
    outside = np.flatnonzero(np.searchsorted(quotes, feeds) % 2 == 0)
    return (int(feeds[outside[-1]]) + 1, int(outside[-1]) + 1) if len(outside) else (0, 0)


def row_lines(block: bytes, dialect: Dialect) -> Lines:
    """Return the line, counted from 0, in which each row that is not empty ends; for what `rows_end` can tell."""
    data = np.frombuffer(block, dtype=np.uint8)
    quotes = np.flatnonzero(data == QUOTE) if dialect.quoted else np.empty(0, dtype=np.intp)
    feeds = np.flatnonzero(data == LINE_FEED)
    outside = np.searchsorted(quotes, feeds) % 2 == 0
    ends = feeds[outside]
    starts = np.append(0, ends[:-1] + 1)
    empty = (ends == starts) | ((ends == starts + 1) & (data[starts] == RETURN))
    return np.asarray(np.flatnonzero(outside)[~empty], dtype=np.int64)


def _at_edges(block: bytes, quotes: Index, dialect: Dialect) -> bool:
    """Return whether each quote opens a cell, closes one, or is one of two that stand for one.

    Then, and only then, a character is inside of quotes if an odd number of them is before it.
    """
    data = np.frombuffer(block, dtype=np.uint8)
    edge = np.zeros(256, dtype=bool)
    edge[[ord(dialect.separator), LINE_FEED, RETURN, QUOTE]] = True
    opening, closing = quotes[::2], quotes[1::2]
    if opening[0] == 0:  # begins with the block
        opening = opening[1:]
    if len(closing) and closing[-1] == len(data) - 1:  # ends with it
        closing = closing[:-1]
    return bool(edge[data[opening - 1]].all() and edge[data[closing + 1]].all())


def exact_rows(block: bytes, dialect: Dialect, n_columns: int, first_line: int, name: str, *, final: bool) -> Rows:
    """Read the rows of a block one by one; the error names the line that is no row of `n_columns` cells.

    The block is UTF-8, starts with a row, and its first line has the number `first_line` in the file of this name.
    Without `final`, an incomplete row at its end is left for the next block.
    """
    lines = _lines(block.decode(errors="ignore"))  # a character may be cut at the end
    if not final and lines and not lines[-1].endswith(("\n", "\r")):
        lines.pop()
    cells: list[list[str]] = []
    numbers: list[int] = []
    done = 0
    for row, number in _parsed(lines, dialect, first_line, name, final=final):
        done = number
        if not row:
            continue  # an empty line
        if len(row) != n_columns:
            line = first_line + number - 1
            raise ValueError(f"{name}, line {line}: expected {n_columns} columns, got {len(row)}.")
        cells.append(row)
        numbers.append(first_line + number - 1)
    return Rows(cells, numbers, sum(len(line.encode()) for line in lines[:done]), done)


def first_row(text: str, dialect: Dialect, name: str) -> tuple[list[str], int, int] | None:
    """Return the cells of the first row, its number of lines, and its length in bytes; None if it is not complete."""
    used: list[str] = []

    def lines() -> Iterator[str]:
        for line in io.StringIO(text, newline=""):
            used.append(line)
            yield line

    for row, number in _parsed(lines(), dialect, 1, name, final=False):
        return row, number, sum(len(line.encode()) for line in used)
    return None


def _lines(text: str) -> list[str]:
    r"""Split at \n, \r\n and \r, and nowhere else."""
    return list(io.StringIO(text, newline=""))


def _parsed(
    lines: Iterable[str], dialect: Dialect, first_line: int, name: str, *, final: bool
) -> Iterator[tuple[list[str], int]]:
    """Yield each row with the number of lines up to its end."""
    if dialect.quoted:
        reader = csv.reader(lines, delimiter=dialect.separator, strict=True)
    else:
        reader = csv.reader(lines, delimiter=dialect.separator, quoting=csv.QUOTE_NONE, strict=True)
    while True:
        start = reader.line_num
        try:
            with _limit:
                before = csv.field_size_limit(MAX_CELL)
                try:
                    row = next(reader)
                finally:
                    csv.field_size_limit(before)
        except StopIteration:
            return
        except csv.Error as error:
            what = str(error)
            if "unexpected end" in what and not final:
                return
            if "field limit" in what or "unexpected end" in what:
                raise endless(name, first_line + start) from error
            raise ValueError(
                f"{name}, line {first_line + start}: {what}; if quotes are plain characters in this file, give "
                "quoting='none'."
            ) from error
        yield row, reader.line_num


def endless(name: str, line: int) -> ValueError:
    """Return the error about a cell that does not end."""
    return ValueError(
        f"{name}, line {line}: a quoted cell does not end, or has more than {MAX_CELL:,} characters; if quotes are "
        "plain characters in this file, give quoting='none'."
    )
