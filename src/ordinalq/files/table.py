"""A table in a file: CSV, TSV, JSON lines or Parquet, read in portions; each error names the file and the line."""

import csv
import lzma
import zlib
from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from ordinalq.files.blocks import Block, Part
from ordinalq.files.delimited import Delimited
from ordinalq.files.json_lines import JsonLines
from ordinalq.files.names import require_columns
from ordinalq.files.opening import PACKED, STDIN, Source, check_encoding, check_readable, encoding_problem, packing
from ordinalq.files.parquet import Parquet
from ordinalq.validation import check_choice

if TYPE_CHECKING:
    import pandas as pd

FORMATS = ("csv", "tsv", "jsonl", "parquet")
ENDINGS = {"csv": "csv", "tsv": "tsv", "jsonl": "jsonl", "ndjson": "jsonl", "parquet": "parquet", "pq": "parquet"}
QUOTING = ("auto", "minimal", "none")

# A portion has at most this many bytes, in the columns that are read, and this many rows.
PORTION_BYTES = 8_000_000
PORTION_ROWS = 50_000


class Table(ABC):
    """Rows in one file or in many; see :func:`ordinalq.files.many.open_table`. Errors call it by its name."""

    name: str
    format: str

    @property
    @abstractmethod
    def n_bytes(self) -> int:
        """Size in bytes, against which `portions` reports its progress."""

    @property
    def lacks_keys(self) -> bool:
        """Whether a row may lack columns, so that those of the first row are not all."""
        return self.format == "jsonl"

    @property
    @abstractmethod
    def files(self) -> "list[TableFile]":
        """The files, in the order in which they are read."""

    @abstractmethod
    def columns(self) -> list[str]:
        """Return the names of the columns; for JSON lines, those of the first row."""

    def require(self, *columns: Sequence[str]) -> None:
        """Refuse a table that lacks columns of a list, one list after the other; rows that may lack any tell later."""
        for names in () if self.lacks_keys else columns:
            require_columns(self.columns(), names, self.name)

    @abstractmethod
    def blocks(self, wanted: "Wanted") -> "Iterator[tuple[TableFile, Block]]":
        """Yield blocks of rows, each with the file that can read it, here or in another process."""

    def pieces(self, wanted: "Wanted") -> "Iterator[tuple[TableFile, Block | None]]":
        """Yield what other machines can read: blocks, or whole files (None) where blocks cannot be found again."""
        for file in self.files:
            if not file.again:
                yield file, None
        for file, block in self.blocks(wanted):
            if file.again:
                yield file, file.light(block)

    @abstractmethod
    def check_seen(self, wanted: "Wanted", seen: Collection[str]) -> None:
        """Refuse a table in which all rows lack a column, where these were `seen`."""

    def portions(
        self,
        columns: Sequence[str] | None = None,
        progress: Callable[[int], object] | None = None,
        *,
        numbers: Collection[str] = (),
        native: Collection[str] = (),
        nested: bool = False,
    ) -> Iterator["pd.DataFrame"]:
        """Yield the rows in portions; the index of each frame is the line (or row, in Parquet) of its file.

        What is read is said by :class:`Wanted`; `progress` is told how many bytes have been read so far, after each
        portion.
        """
        wanted = Wanted(columns, numbers, native, nested)
        seen: set[str] = set()
        done = 0
        for file, block in self.blocks(wanted):
            for frame, read in file.frames(block, wanted):
                seen.update(frame.attrs.pop("seen", ()))
                yield frame
                if progress is not None:
                    progress(int(done + read * (block.done - done)))
            done = block.done
        self.check_seen(wanted, seen)

    def read(self, columns: Sequence[str] | None = None, *, nested: bool = False) -> "pd.DataFrame":
        """Read the whole table, see :meth:`portions`."""
        import pandas as pd

        portions = list(self.portions(columns, nested=nested))
        table = pd.concat(portions) if len(portions) > 1 else portions[0]
        table.index.name = portions[0].index.name
        table.attrs["where"] = self.name
        return table


class Wanted(NamedTuple):
    """What is to be read of a table: some columns, all of which must exist, or all (None).

    Columns that are expected to hold `numbers` come as such where all cells of a block do, otherwise as they are
    written; `native` columns of Parquet files keep their type also where values are missing, so that whole numbers stay
    whole; `nested` says whether a cell of a Parquet file may hold a list or an object.
    """

    columns: Sequence[str] | None = None
    numbers: Collection[str] = ()
    native: Collection[str] = ()
    nested: bool = False


class Fixed(NamedTuple):
    """One value of all rows of a file, and the type of its column."""

    value: Any
    kind: str


class TableFile(Table):
    """A table in one file; columns in `fixed` have one value in all rows, and are not in the file."""

    def __init__(self, source: Source, format: str, encoding: str, quoting: str) -> None:  # noqa: A002
        self.name = source.name
        self.format = format
        self.fixed: dict[str, Fixed] = {}
        self._source = source
        self._encoding = encoding
        self._quoting = quoting
        self._reading: tuple[bool, Delimited | JsonLines | Parquet] | None = None

    @property
    def n_bytes(self) -> int:
        """Size of the file."""
        return self._source.n_bytes

    @property
    def path(self) -> Path:
        """Where the bytes are."""
        return self._source.path

    @property
    def files(self) -> "list[TableFile]":
        """The file itself."""
        return [self]

    def columns(self) -> list[str]:
        """Return the names of the columns; for JSON lines, those of the first row."""
        return [*self.inner_columns(), *self.fixed]

    def inner_columns(self) -> list[str]:
        """Return the names of the columns that are in the file itself."""
        with self._errors():
            return self._reader().columns()

    def kinds(self) -> dict[str, str]:
        """Return the kind of each column, where the file knows it."""
        reader = self._reader()
        return reader.kinds() if isinstance(reader, Parquet) else {}

    def blocks(self, wanted: Wanted, *, empty: bool = True) -> Iterator[tuple["TableFile", Block]]:
        """Yield blocks of rows; a file without any is an error, unless `empty` is false: others have some."""
        with self._errors():
            for block in self._reader(wanted.nested).blocks(self._inner(wanted), wanted.numbers):
                empty = False
                yield self, block
            if empty:
                raise ValueError(f"{self.name}: expected rows, but the file has none after its header.")

    @property
    def again(self) -> bool:
        """Whether blocks can be read from the file once more: it is no packed text, and in UTF-8."""
        return self._reader().again

    def light(self, block: Block) -> Block:
        """Return a block as it is sent to another process."""
        return block.light(self.again)

    def frames(self, block: Block, wanted: Wanted) -> Iterator[tuple["pd.DataFrame", float]]:
        """Yield the rows of a block in portions, and the part of the block that has been read then."""
        with self._errors():
            for part in self._reader(wanted.nested).parts(block, self._inner(wanted), wanted.numbers):
                n_rows = len(part.lines)
                step = self._step(part, n_rows)
                for start in range(0, n_rows, step):
                    stop = min(start + step, n_rows)
                    frame = self._frame(part, start, stop, wanted)
                    yield frame, (part.lines[stop - 1] + 1 - block.line) / max(block.n_lines, 1)

    def check_seen(self, wanted: Wanted, seen: Collection[str]) -> None:
        """Refuse a file in which all rows lack a column."""
        reader = self._reader(wanted.nested)
        if isinstance(reader, JsonLines):
            reader.check_seen(self._inner(wanted), seen)

    def _inner(self, wanted: Wanted) -> list[str] | None:
        """Return the columns to read that are in the file itself."""
        return None if wanted.columns is None else [name for name in wanted.columns if name not in self.fixed]

    def _reader(self, nested: bool = False) -> Delimited | JsonLines | Parquet:
        if self._reading is None or self._reading[0] != nested:
            self._reading = nested, self._new_reader(nested)
        return self._reading[1]

    def _new_reader(self, nested: bool) -> Delimited | JsonLines | Parquet:
        if self.format == "parquet":
            return Parquet(self._source, PORTION_ROWS, PORTION_BYTES, nested)
        if self.format == "jsonl":
            return JsonLines(self._source, self._encoding)
        return Delimited(self._source, self._encoding, self.format == "tsv", self._quoting)

    def _step(self, part: Part, n_rows: int) -> int:
        """Return the number of rows of a portion."""
        n_bytes = _n_bytes(part)
        return max(1, min(PORTION_ROWS, int(PORTION_BYTES * n_rows / max(n_bytes, 1))))

    def _frame(self, part: Part, start: int, stop: int, wanted: Wanted) -> "pd.DataFrame":
        """Return rows of a part as a frame; whoever finds a mistake in it can say where it is."""
        import pandas as pd

        table: Any = part.table
        if isinstance(table, pd.DataFrame):
            frame = table.iloc[start:stop].copy()
        else:
            rows = table.slice(start, stop - start)
            frame = rows.to_pandas(ignore_metadata=True)
            native = set(wanted.native)
            for name, column in zip(rows.column_names, rows.columns, strict=True) if native else ():
                if name in native and column.null_count and frame[name].dtype.kind in "fO":
                    frame[name] = column.to_pandas(types_mapper=nullable)
        frame.index = pd.Index(part.lines[start:stop], name="row" if self.format == "parquet" else "line")
        for name, (value, kind) in self.fixed.items():
            if wanted.columns is None or name in wanted.columns:
                frame[name] = pd.Series([value] * len(frame), dtype=kind, index=frame.index)
        if self.fixed and wanted.columns is not None:
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
    """Return the table in a single file, see :func:`ordinalq.files.many.open_table`."""
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
    import pandas as pd
    import pyarrow as pa

    if pa.types.is_integer(kind):
        return pd.UInt64Dtype() if pa.types.is_uint64(kind) else pd.Int64Dtype()
    return pd.BooleanDtype() if pa.types.is_boolean(kind) else None


def _n_bytes(part: Part) -> int:
    table: Any = part.table
    known = getattr(table, "nbytes", None)  # counted anew each time it is asked for
    if known is not None:
        return int(known)
    return int(sum(len(value) for column in table for value in table[column] if isinstance(value, str)))
