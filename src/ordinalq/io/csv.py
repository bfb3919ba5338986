"""CSV and TSV files, read block by block with pyarrow.

A cell is text or, if empty, missing; what it means is decided once for the whole table (`ordinalq.io.columns`), so
that no chunk of a file is read differently from another. Columns that are known to hold numbers are read as such.
"""

import re
from collections.abc import Collection, Iterator
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
from pyarrow import compute
from pyarrow import csv as arrow_csv

from ordinalq.io.columns import MAX_COLUMNS, MISSING_WORDS, check_names, require_columns
from ordinalq.io.files import (
    BLOCK,
    EXCEL_STARTS,
    MAX_ROW,
    Block,
    Dialect,
    Part,
    Rows,
    Source,
    Utf8,
    Wanted,
    exact_rows,
    excel_problem,
    first_row,
    row_lines,
    rows_end,
    unclosed_quote_error,
)

# So much tells the names of the columns, and whether the cells of a TSV file are quoted.
HEADER = 1 << 16
SAMPLE = 1 << 22
# A first line that names the separator.
SEPARATOR = re.compile(rb'"?sep=([;,\t|])"?\r?\n', re.IGNORECASE)


class Delimited:
    """A table in a CSV or TSV file.

    Cells are separated by tabs, or by commas, or by semicolons if the first line has no comma, or as a first line such
    as "sep=;" states. :func:`ordinalq.io.table.open_table` describes the meaning of quotes.
    """

    def __init__(self, source: Source, encoding: str, tabs: bool, quoting: str) -> None:
        self.source = source
        self.encoding = encoding
        self.tabs = tabs
        self.quoting = quoting

        self._head: _Head | None = None

    def columns(self) -> list[str]:
        """Return the names of the columns."""
        with Utf8(self.source, self.encoding) as text:
            return self._header(text)[0].names

    def blocks(self, wanted: Wanted) -> Iterator[Block]:
        """Yield blocks of whole rows."""
        with Utf8(self.source, self.encoding) as text:
            head, n_lines, rest = self._header(text)
            require_columns(head.names, wanted.columns or (), self.source.name)
            self._head = head
            line = n_lines + 1
            final = False
            while not final:
                new = text.read(BLOCK)
                while new.endswith(b"\r") and (more := text.read(1)):  # the end of a line is not cut
                    new += more
                final = not new
                self._check_text(new, line, rest)
                block = rest + new if rest else new
                start = text.position() - len(block)
                if final and not block.endswith(b"\n"):
                    block += b"\n"
                end, lines, rows, exact = _cut(block, head, line, self.source.name, final=final)
                if end and not _is_blank(block, end):
                    done = self.source.n_bytes if final else text.position()
                    yield Block(start, start + end, line, lines, done, block[:end], rows, exact)
                rest = block[end:]
                line += lines
                if len(rest) > MAX_ROW:
                    raise unclosed_quote_error(self.source.name, line)

    def parts(self, block: Block, wanted: Wanted) -> Iterator[Part]:
        """Yield the rows of a block."""
        if self._head is None:
            with Utf8(self.source, self.encoding) as text:
                self._head = self._header(text)[0]
        reader = _Reader(self._head, wanted, self.source.name)
        table, lines = reader.read(block, block.content(self.source.path))
        if table is not None:
            yield Part(table, lines)

    def _header(self, text: Utf8) -> tuple["_Head", int, bytes]:
        """Return what the header says, its number of lines, and what was read after it."""
        block = text.read(SAMPLE if self.tabs else HEADER)
        while (b"\n" not in block or block.endswith(b"\r")) and len(block) <= MAX_ROW and (more := text.read(HEADER)):
            block += more
        if not block:
            raise ValueError(f"{self.source.name}: expected a header and rows, but the file is empty.")
        if block.startswith(EXCEL_STARTS):
            raise ValueError(excel_problem(self.source))
        self._check_text(block, 1, b"")
        # Excel writes the separator into a line before the names.
        declared = SEPARATOR.match(block)
        if declared is not None:
            block = block[declared.end() :]
        first = block[: end if (end := block.find(b"\n")) >= 0 else len(block)]
        separator = "\t"
        if not self.tabs:
            # As spreadsheets write it where the comma is in the numbers.
            separator = ";" if b";" in first and b"," not in first else ","
        if declared is not None:
            separator = declared[1].decode()
        if (n_cells := first.count(separator.encode()) + 1) > MAX_COLUMNS:
            raise ValueError(f"{self.source.name}, line 1: expected at most {MAX_COLUMNS:,} columns, got {n_cells:,}.")
        dialect = Dialect(separator, self._is_quoted(block, separator))
        found = first_row(block[: len(first) + 1].decode(), dialect, self.source.name)
        while found is None:  # a quoted name with a line break
            found = first_row(block.decode(errors="ignore"), dialect, self.source.name)
            if found is None:
                new = text.read(HEADER)
                if not new or len(block) > MAX_ROW:
                    raise unclosed_quote_error(self.source.name, 1)
                block += new
        cells, n_lines, n_bytes = found
        names = [name.strip() for name in cells]
        if not any(names):
            raise ValueError(f"{self.source.name}, line 1: expected the names of the columns, got an empty line.")
        check_names(names, f"{self.source.name}, line 1")
        return _Head(names, dialect), n_lines + (declared is not None), block[n_bytes:]

    def _is_quoted(self, block: bytes, separator: str) -> bool:
        if self.quoting != "auto":
            return self.quoting == "minimal"
        if not self.tabs:
            return True
        # Texts may well have a quote: only if all of them stand at the edges of cells are they meant to protect.
        sample = block[:SAMPLE]
        if b'"' not in sample:
            return False
        found = rows_end(sample if len(sample) < len(block) else sample + b"\n", Dialect(separator, True))
        return found is not None and found[0] > 0 and _has_quoted_cell(sample, separator)

    def _check_text(self, new: bytes, line: int, rest: bytes) -> None:
        if b"\0" in new:
            line += _count_lines(rest) + _count_lines(new[: new.index(b"\0")])
            raise ValueError(
                f"{self.source.name}, line {line}: expected text, got a null character: the file is not text."
            )


class _Head(NamedTuple):
    """Names of the columns, and how cells are separated."""

    names: list[str]
    dialect: Dialect


def _cut(block: bytes, head: _Head, line: int, name: str, *, final: bool) -> tuple[int, int, Rows | None, bool]:
    """Return bytes and lines of the complete rows of a block.

    The third value contains the rows if they were read one by one, otherwise None. The fourth is whether they were.
    """
    found = rows_end(block, head.dialect)
    if found is not None and not (final and found[0] < len(block)):
        return *found, None, False
    rows = exact_rows(block, head.dialect, len(head.names), line, name, final=final)
    return rows.n_bytes, rows.n_lines, rows, True


class _Reader:
    """Turns blocks of rows into tables."""

    def __init__(self, head: _Head, wanted: Wanted, name: str) -> None:
        position = {name: j for j, name in reversed(list(enumerate(head.names)))}
        self.kept = head.names if wanted.columns is None else list(wanted.columns)
        self.chosen = list(range(len(head.names))) if wanted.columns is None else [position[name] for name in self.kept]
        self.n_columns = len(head.names)
        numbers = set(wanted.numbers)
        self.numbers = {j for j, name in zip(self.chosen, self.kept, strict=True) if name in numbers}
        self.dialect = head.dialect
        self.name = name

    def read(self, block: Block, text: bytes) -> tuple[pa.Table | None, Any]:
        """Return the rows of a block, if there are any, and their lines."""
        if not text.endswith(b"\n"):
            text += b"\n"
        attempts: tuple[set[int], ...] = (self.numbers, set()) if self.numbers else (set(),)
        for numbers in () if block.exact else attempts:
            try:
                table = self._fast(text, numbers)
            except pa.ArrowInvalid:
                continue
            if table.num_rows == block.n_lines:
                return table, range(block.line, block.line + block.n_lines)
            lines = row_lines(text, self.dialect) + block.line
            if len(lines) == table.num_rows:
                return table, lines
        rows = block.rows or exact_rows(text, self.dialect, self.n_columns, block.line, self.name, final=True)
        return (self._table(rows) if rows.cells else None), np.array(rows.lines)

    def _fast(self, text: bytes, numbers: Collection[int]) -> pa.Table:
        quoted = self.dialect.quoted and b'"' in text
        kinds = {str(j): pa.float64() if j in numbers else pa.string() for j in self.chosen}
        table = arrow_csv.read_csv(
            pa.py_buffer(text),
            read_options=arrow_csv.ReadOptions(column_names=[str(j) for j in range(self.n_columns)]),
            parse_options=arrow_csv.ParseOptions(
                delimiter=self.dialect.separator, quote_char='"' if quoted else False, newlines_in_values=quoted
            ),
            convert_options=arrow_csv.ConvertOptions(
                column_types=kinds,
                include_columns=list(kinds),
                null_values=["", *MISSING_WORDS] if numbers else [""],
                strings_can_be_null=not numbers,
                check_utf8=False,  # it was decoded
            ),
        )
        columns = table.columns
        if numbers:
            missing = pa.scalar(None, pa.string())
            for j, column in enumerate(columns):
                if column.type == pa.string() and compute.any(empty := compute.equal(column, "")).as_py():
                    columns[j] = compute.if_else(empty, missing, column)
        return pa.Table.from_arrays(columns, names=self.kept)

    def _table(self, rows: Rows) -> pa.Table:
        columns = [pa.array([row[j] or None for row in rows.cells], type=pa.string()) for j in self.chosen]
        return pa.Table.from_arrays(columns, names=self.kept)


def _has_quoted_cell(sample: bytes, separator: str) -> bool:
    edge = separator.encode()
    return sample.startswith(b'"') or edge + b'"' in sample or b'\n"' in sample


def _is_blank(block: bytes, end: int) -> bool:
    """Return whether all lines are empty; long blocks rarely are."""
    return not block[: min(end, 100)].strip(b"\r\n") and not block[:end].strip(b"\r\n")


def _count_lines(block: bytes) -> int:
    data = np.frombuffer(block, dtype=np.uint8)
    n = int(np.count_nonzero(data == ord("\n")))
    return n + block.count(b"\r") - block.count(b"\r\n") if b"\r" in block else n
