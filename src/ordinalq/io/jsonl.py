"""JSON lines, read block by block with pyarrow."""

import json
import re
from collections.abc import Collection, Iterator, Sequence
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
from pyarrow import json as reader

from ordinalq.io.columns import MAX_COLUMNS, require_columns
from ordinalq.io.files import BLOCK, MAX_ROW, Block, Part, Source, Utf8, Wanted

SURROGATE = re.compile("[\ud800-\udfff]")
# Larger whole numbers are those of a double.
LARGEST = 2**63
# So many bytes tell the types of the columns.
SAMPLE = 1 << 16
# Values may be nested so deep. Arrow recurses once per level, and its work grows with the square of the depth.
MAX_DEPTH = 64
# Also one that is cut by the end: then no start is tried twice.
STRING = re.compile(rb'"(?:[^"\\]|\\.?)*(?:"|\Z)', re.DOTALL)


class JsonLines:
    """A table in a file of JSON lines; a row may lack keys."""

    def __init__(self, source: Source, encoding: str) -> None:
        self.source = source
        self.encoding = encoding
        self._types: dict[str, pa.DataType] | None = None

    def columns(self) -> list[str]:
        """Return the keys of the first row."""
        for _, row in self._rows():
            return list(row)
        raise ValueError(f"{self.source.name}: expected rows, but the file is empty.")

    def blocks(self, wanted: Wanted) -> Iterator[Block]:
        """Yield blocks of whole lines."""
        self._types = None
        for block in self._blocks():
            if self._types is None and block.text is not None:
                # All blocks are read by the types that the first lines have, or else as they are.
                expected = {
                    name: pa.float64() if name in wanted.numbers else pa.string() for name in wanted.columns or ()
                }
                end = block.text.find(b"\n", SAMPLE) + 1
                found = _fast(block.text[: end or None], wanted.columns, expected)
                self._types = expected if found is None else {field.name: field.type for field in found.schema}
            yield block

    def parts(self, block: Block, wanted: Wanted) -> Iterator[Part]:
        """Yield the rows of a block."""
        text, columns = block.content(self.source.path), wanted.columns
        found = _fast(text, columns, self._types or {})
        if found is None:
            frame, lines = self._exact(text, block.line, columns)
            seen = frozenset(frame.columns if columns is None else (c for c in columns if frame[c].notna().any()))
            yield Part(frame, lines, seen)
        else:
            seen = frozenset(name for name in found.column_names if found[name].null_count < found.num_rows)
            yield Part(found, range(block.line, block.line + found.num_rows), seen)

    def check_seen(self, wanted: Wanted, seen: Collection[str]) -> None:
        """Raise an error if all rows lack a column.

        This is checked at the end, because any single row may lack it.
        """
        if wanted.columns is not None and not set(seen).issuperset(wanted.columns):
            keys = {name: None for _, row in self._rows() for name in row}
            require_columns(keys, wanted.columns, self.source.name)

    def _blocks(self) -> Iterator[Block]:
        """Yield blocks of whole lines."""
        with Utf8(self.source, self.encoding) as text:
            rest, line, final, empty = b"", 1, False, True
            while not final:
                new = text.read(BLOCK)
                final = not new
                empty = empty and final
                block = rest + new
                start = text.position() - len(block)
                end = len(block) if final else block.rfind(b"\n") + 1
                rest = block[end:]
                n_lines = block[:end].count(b"\n")
                if len(rest) > MAX_ROW:
                    raise ValueError(
                        f"{self.source.name}, line {line + n_lines}: expected one JSON object per line, got more than "
                        f"{MAX_ROW:,} bytes."
                    )
                if block[:end].strip():
                    done = self.source.n_bytes if final else text.position()
                    yield Block(start, start + end, line, n_lines, done, block[:end])
                line += n_lines
            if empty:
                raise ValueError(f"{self.source.name}: expected rows, but the file is empty.")

    def _rows(self) -> Iterator[tuple[int, dict[str, Any]]]:
        for block in self._blocks():
            yield from _parsed(block.text or b"", block.line, self.source.name)

    def _exact(self, block: bytes, line: int, columns: Sequence[str] | None) -> tuple[Any, Any]:
        """Return the rows as a frame of Python values, and their lines.

        The error names the line of an invalid row.
        """
        rows, lines = [], []
        names: dict[str, None] = dict.fromkeys(columns or ())
        for number, row in _parsed(block, line, self.source.name):
            if columns is None:
                names.update(dict.fromkeys(row))
                if len(names) > MAX_COLUMNS:
                    raise ValueError(
                        f"{self.source.name}, line {number}: expected at most {MAX_COLUMNS:,} columns, got more."
                    )
            for name in row if columns is None else columns:
                if isinstance(value := row.get(name), list | dict):
                    kind = "a list" if isinstance(value, list) else "an object"
                    raise ValueError(
                        f"{self.source.name}, line {number}: expected one value in {name!r}, got {kind}; "
                        "split it into columns, or leave it out with features=[...]."
                    )
            rows.append(row)
            lines.append(number)
        data = {name: [row.get(name) for row in rows] for name in names}
        return pd.DataFrame(data, dtype=object, index=range(len(rows))), np.array(lines)


def _fast(block: bytes, columns: Sequence[str] | None, types: dict[str, pa.DataType]) -> pa.Table | None:
    """Return a block as a table, or None if a row is not a plain object.

    Every row must be one object of plain values on one line.
    """
    n_lines = block.count(b"\n") + (not block.endswith(b"\n"))
    if block.count(b":", 0, block.find(b"\n")) > MAX_COLUMNS:
        return None

    def read(known: dict[str, pa.DataType], others: str) -> pa.Table:
        schema = pa.schema(list(known.items())) if known else None
        options = reader.ParseOptions(explicit_schema=schema, unexpected_field_behavior=others)
        # A line must fit into a block of the reader.
        return reader.read_json(
            pa.py_buffer(block), reader.ReadOptions(block_size=max(len(block), 1)), parse_options=options
        )

    table = None
    if columns is not None:
        try:
            table = read(types, "ignore")
        except (pa.ArrowInvalid, UnicodeError):
            table = None
    if table is None:
        if _is_deep(block):
            return None
        try:
            table = read({}, "infer")
            # Words that look like a time stay as they were written.
            times = {field.name: pa.string() for field in table.schema if pa.types.is_timestamp(field.type)}
            if times:
                table = read(times, "infer")
        except (pa.ArrowInvalid, UnicodeError):
            return None
    names = table.column_names if columns is None else columns
    if not names or table.num_rows != n_lines or not set(names) <= set(table.column_names):
        return None
    table = table.select(list(names))
    if any(pa.types.is_nested(field.type) for field in table.schema):
        return None
    return table.cast(pa.schema([(f.name, pa.string() if pa.types.is_null(f.type) else f.type) for f in table.schema]))


def _is_deep(block: bytes) -> bool:
    """Return whether values may be nested deeper than `MAX_DEPTH`.

    This is checked before Arrow parses them.

    >>> _is_deep(b'{"a": [[1], "[[["]}'), _is_deep(b'{"a": ' + b"[" * 64 + b"]" * 64 + b"}")
    (False, True)
    """
    text = np.frombuffer(block.strip(), dtype=np.uint8)
    opened = np.flatnonzero((text == ord("[")) | (text == ord("{")))
    ends = np.flatnonzero(text == ord("\n"))
    if block.count(b"}\n{") + block.count(b"}\r\n{") < len(ends):
        ends = ends[:0]  # an object may be on several lines
    ends = np.append(ends, len(text))
    starts = np.append(0, ends[:-1])
    # Only lines with many brackets are looked at more closely.
    for i in np.flatnonzero(np.diff(np.searchsorted(opened, ends), prepend=0) > MAX_DEPTH):
        rest = np.frombuffer(STRING.sub(b"", text[starts[i] : ends[i]].tobytes()), dtype=np.uint8)
        steps = np.isin(rest, list(b"[{")).astype(np.int64) - np.isin(rest, list(b"]}"))
        if np.cumsum(steps).max(initial=0) > MAX_DEPTH:
            return True
    return False


def _parsed(block: bytes, line: int, name: str) -> Iterator[tuple[int, dict[str, Any]]]:
    """Yield number and content of each line that is not empty."""
    for number, text in enumerate(block.decode().split("\n"), start=line):
        if not text or text.isspace():
            continue
        where = f"{name}, line {number}"
        try:
            row = json.loads(text, object_pairs_hook=_once, parse_int=_whole)
        except _TwiceError as error:
            raise ValueError(f"{where}: expected different keys, but {error.args[0]!r} occurs twice.") from error
        except RecursionError as error:
            raise ValueError(f"{where}: expected one JSON object per line, got values nested too deep.") from error
        except ValueError as error:
            raise ValueError(f"{where}: expected one JSON object per line: {error}.") from error
        if not isinstance(row, dict):
            raise ValueError(f"{where}: expected one JSON object per line, got {text.strip()[:40]!r}.")
        if "\\u" in text:
            for word in (*row, *row.values()):
                if isinstance(word, str) and (half := SURROGATE.search(word)):
                    raise ValueError(f"{where}: expected Unicode text, got half of a character, {half[0]!a}.")
        yield number, row


class _TwiceError(Exception):
    """A key occurs twice."""


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    row = dict(pairs)
    if len(row) < len(pairs):
        seen: set[str] = set()
        for key, _ in pairs:
            if key in seen:
                raise _TwiceError(key[:80])
            seen.add(key)
    return row


def _whole(digits: str) -> int | float:
    """Return a whole number; one that no integer column holds is that of a double."""
    if len(digits) > 20:  # more than Python converts, perhaps
        return float(digits)
    number = int(digits)
    return number if -LARGEST <= number < LARGEST else float(digits)
