"""A file of a table: CSV, TSV, JSON lines or Parquet, read in portions; each error names the file and the line."""

import csv
import lzma
import zlib
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple, Protocol

import pandas as pd
import pyarrow as pa

from ordinalq._utils.validation import check_choice
from ordinalq.io.blocks import Block, Part, Wanted
from ordinalq.io.csv import Delimited
from ordinalq.io.files import (
    PACKED,
    STDIN,
    Source,
    check_encoding,
    check_readable,
    encoding_problem,
    is_utf8,
    packing,
)
from ordinalq.io.jsonl import JsonLines
from ordinalq.io.parquet import Parquet

FORMATS = ("csv", "tsv", "jsonl", "parquet")
ENDINGS = {"csv": "csv", "tsv": "tsv", "jsonl": "jsonl", "ndjson": "jsonl", "parquet": "parquet", "pq": "parquet"}
QUOTING = ("auto", "minimal", "none")

# A portion has at most this many bytes, in the columns that are read, and this many rows.
PORTION_BYTES = 8_000_000
PORTION_ROWS = 50_000


class Fixed(NamedTuple):
    """One value of all rows of a file, and the type of its column."""

    value: Any
    kind: str


class Filling(Protocol):
    """Values of a column that are not in the file, or only in part."""

    target: str

    def values(self, frame: pd.DataFrame) -> list[Any]:
        """Return the values of the rows of a portion, (N,), given those that the file has."""

    def check(self) -> None:
        """Refuse what cannot be the values of this file; called when all portions have been read."""


class TableFile:
    """One of the files of a table; columns in `fixed` have one value in all rows, and are not in the file."""

    def __init__(self, source: Source, format: str, encoding: str, quoting: str) -> None:  # noqa: A002
        self.name = source.name
        self.format = format
        self.fixed: dict[str, Fixed] = {}
        self._fillings: list[Filling] = []
        self._absent: set[str] = set()
        self._source = source
        self._encoding = encoding
        self._reader: Delimited | JsonLines | Parquet
        if format == "parquet":
            self._reader = Parquet(source, PORTION_ROWS, PORTION_BYTES)
        elif format == "jsonl":
            self._reader = JsonLines(source, encoding)
        else:
            self._reader = Delimited(source, encoding, format == "tsv", quoting)

    @property
    def n_bytes(self) -> int:
        """Size of the file."""
        return self._source.n_bytes

    @property
    def path(self) -> Path:
        """Where the bytes are."""
        return self._source.path

    def columns(self) -> list[str]:
        """Return the names of the columns; for JSON lines, those of the first row."""
        return list(dict.fromkeys([*self.inner_columns(), *self.fixed, *(one.target for one in self._fillings)]))

    def fill(self, filling: Filling) -> None:
        """Let a column have values from elsewhere, after those that others have filled in."""
        if self.format != "jsonl" and filling.target not in self.inner_columns():
            self._absent.add(filling.target)
        self._fillings.append(filling)

    def inner_columns(self) -> list[str]:
        """Return the names of the columns that are in the file itself."""
        with self._errors():
            return self._reader.columns()

    def kinds(self) -> dict[str, str]:
        """Return the kind of each column, where the file knows it."""
        return self._reader.kinds() if isinstance(self._reader, Parquet) else {}

    def blocks(self, wanted: Wanted) -> Iterator[Block]:
        """Yield blocks of rows, which can be read here or in another process."""
        with self._errors():
            yield from self._reader.blocks(self._inner(wanted))

    @property
    def again(self) -> bool:
        """Whether blocks can be read from the file once more: it is no packed text, and in UTF-8."""
        return self.format == "parquet" or (is_utf8(self._encoding) and not self._source.packing)

    def light(self, block: Block) -> Block:
        """Return a block as it is sent to another process: without its text, where that can be read `again`."""
        return block._replace(text=None if self.again else block.text, rows=None)

    def frames(self, block: Block, wanted: Wanted) -> Iterator[tuple[pd.DataFrame, float]]:
        """Yield the rows of a block in portions, and the part of the block that has been read then."""
        with self._errors():
            for part in self._reader.parts(block, self._inner(wanted)):
                n_rows = len(part.lines)
                step = max(1, min(PORTION_ROWS, int(PORTION_BYTES * n_rows / max(_n_bytes(part), 1))))
                for start in range(0, n_rows, step):
                    stop = min(start + step, n_rows)
                    frame = self._frame(part, start, stop, wanted)
                    yield frame, (part.lines[stop - 1] + 1 - block.line) / max(block.n_lines, 1)

    def check_seen(self, wanted: Wanted, seen: Collection[str]) -> None:
        """Refuse a file in which all rows lack a column, or that others have filled in wrongly."""
        if isinstance(self._reader, JsonLines):
            self._reader.check_seen(self._inner(wanted), {*seen, *(one.target for one in self._fillings)})
        for one in self._wanted_fillings(wanted):
            one.check()

    def _wanted_fillings(self, wanted: Wanted) -> list[Filling]:
        return [one for one in self._fillings if wanted.columns is None or one.target in wanted.columns]

    def _inner(self, wanted: Wanted) -> Wanted:
        """Return what is to be read from the file itself."""
        if wanted.columns is None:
            return wanted
        inner = [name for name in wanted.columns if name not in self.fixed and name not in self._absent]
        # Some column tells how many rows there are.
        return wanted._replace(columns=inner or self.inner_columns()[:1])

    def _frame(self, part: Part, start: int, stop: int, wanted: Wanted) -> pd.DataFrame:
        """Return rows of a part as a frame; whoever finds a mistake in it can say where it is."""
        if isinstance(part.table, pd.DataFrame):
            frame = part.table.iloc[start:stop].copy()
        else:
            rows = part.table.slice(start, stop - start)
            frame = rows.to_pandas(ignore_metadata=True)
            native = set(wanted.native)
            for name, column in zip(rows.column_names, rows.columns, strict=True) if native else ():
                if name in native and column.null_count and frame[name].dtype.kind in "fO":
                    frame[name] = column.to_pandas(types_mapper=nullable)
        frame.index = pd.Index(part.lines[start:stop], name="row" if self.format == "parquet" else "line")
        for name, (value, kind) in self.fixed.items():
            if wanted.columns is None or name in wanted.columns:
                frame[name] = pd.Series([value] * len(frame), dtype=kind, index=frame.index)
        for one in self._wanted_fillings(wanted):
            frame[one.target] = pd.Series(one.values(frame), dtype=object, index=frame.index)
        if (self.fixed or self._fillings) and wanted.columns is not None:
            frame = frame[list(wanted.columns)]
        frame.attrs["where"] = self.name
        if part.seen is not None:
            frame.attrs["seen"] = part.seen
        return frame

    @contextmanager
    def _errors(self) -> Iterator[None]:
        """Turn what the readers raise into errors that name the file, and the line where there is one."""
        try:
            yield
        except UnicodeDecodeError as error:
            raise ValueError(encoding_problem(self._source, self._encoding)) from error
        except csv.Error as error:
            raise ValueError(f"{self.name}: not a readable {self.format} file: {error}.") from error
        except (FileNotFoundError, PermissionError):
            raise
        except (OSError, EOFError, zlib.error, lzma.LZMAError) as error:
            raise ValueError(f"{self.name}: not a readable {self.format} file: {error}.") from error


def open_file(
    path: str | Path,
    format: str | None = None,  # noqa: A002
    encoding: str = "utf-8",
    quoting: str = "auto",
) -> TableFile:
    """Return the table in a single file, see :func:`ordinalq.io.many.open_table`."""
    check_encoding(encoding)
    check_choice("quoting", quoting, QUOTING)
    if format is not None:
        check_choice("format", format, FORMATS)
    if str(path) != STDIN:
        check_readable(Path(path))
    if format is None:
        format = format_of(Path(path).name)  # noqa: A001
        if format is None:
            shown = "standard input" if str(path) == STDIN else path
            raise ValueError(
                f"{shown}: expected a file .csv, .tsv, .jsonl or .parquet (text also {', '.join(PACKED)}); "
                "give its format otherwise, such as format='csv'."
            )
    return TableFile(Source(path), format, encoding, quoting)


def format_of(name: str) -> str | None:
    """Return the format that the ending of a name says, None where it says none.

    >>> format_of("a.csv.gz"), format_of("b.PQ"), format_of("c.txt")
    ('csv', 'parquet', None)
    """
    return ENDINGS.get(name.lower().removesuffix(packing(name)).rpartition(".")[2])


def nullable(kind: Any) -> Any:
    """Return a type of pandas that holds whole numbers, or true and false, and gaps."""
    if pa.types.is_integer(kind):
        return pd.UInt64Dtype() if pa.types.is_uint64(kind) else pd.Int64Dtype()
    return pd.BooleanDtype() if pa.types.is_boolean(kind) else None


def _n_bytes(part: Part) -> int:
    table = part.table
    return table.nbytes if isinstance(table, pa.Table) else int(table.memory_usage(deep=True).sum())
