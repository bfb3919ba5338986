"""Tables in one file or many, in any format, read in chunks."""

import csv
import glob
import lzma
import os
import re
import zlib
from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple, Protocol
from urllib.parse import unquote

import pandas as pd

from ordinalq._utils.extras import require_extra
from ordinalq._utils.progress import along
from ordinalq._utils.validation import check_choice, check_real
from ordinalq.io.columns import require_columns
from ordinalq.io.files import (
    BINARY,
    ENDINGS,
    FORMATS,
    MAX_SPOOL,
    PACKED,
    STDIN,
    Block,
    Part,
    Source,
    Wanted,
    check_encoding,
    check_readable,
    encoding_problem,
    is_utf8,
    packing,
)

with require_extra("tables", "reading tables"):
    import pyarrow as pa

    from ordinalq.io.csv import Delimited
    from ordinalq.io.excel import Spreadsheet
    from ordinalq.io.jsonl import JsonLines
    from ordinalq.io.parquet import Parquet

# Extensions of Excel files that are not read.
OLD_EXCEL = (".xls", ".xlsb")

QUOTING = ("auto", "minimal", "none")

# A chunk has at most this many bytes, in the columns that are read, and this many rows.
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
        """Return the values of the rows of a chunk, (N,), given those that the file has."""

    def check(self) -> None:
        """Raise an error for what cannot be the values of this file; called when all chunks have been read."""


class TableFile:
    """One of the files of a table; columns in `fixed` have one value in all rows, and are not in the file."""

    def __init__(
        self,
        source: Source,
        format: str,  # noqa: A002
        encoding: str,
        quoting: str,
        sheet: str | None = None,
    ) -> None:
        self.name = source.name
        self.format = format
        self.fixed: dict[str, Fixed] = {}
        self._fillings: list[Filling] = []
        self._absent: set[str] = set()
        self._source = source
        self._encoding = encoding
        self._reader: Delimited | JsonLines | Parquet | Spreadsheet
        if sheet is not None and format != "excel":
            raise ValueError(f"{self.name}: sheet is for .xlsx and .ods files, got a {format} file.")
        if format == "parquet":
            self._reader = Parquet(source, PORTION_ROWS, PORTION_BYTES)
        elif format == "excel":
            self._reader = Spreadsheet(source, sheet)
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
        """Whether blocks can be read from the file once more: it is not compressed text, and in UTF-8."""
        return self.format in BINARY or (is_utf8(self._encoding) and not self._source.packing)

    def light(self, block: Block) -> Block:
        """Return a block as it is sent to another process: without its text, where that can be read `again`."""
        return block._replace(text=None if self.again else block.text, rows=None)

    def frames(self, block: Block, wanted: Wanted) -> Iterator[tuple[pd.DataFrame, float]]:
        """Yield the rows of a block in chunks, and the part of the block that has been read then."""
        with self._errors():
            for part in self._reader.parts(block, self._inner(wanted)):
                n_rows = len(part.lines)
                step = max(1, min(PORTION_ROWS, int(PORTION_BYTES * n_rows / max(_n_bytes(part), 1))))
                for start in range(0, n_rows, step):
                    stop = min(start + step, n_rows)
                    frame = self._frame(part, start, stop, wanted)
                    yield frame, (part.lines[stop - 1] + 1 - block.line) / max(block.n_lines, 1)

    def check_seen(self, wanted: Wanted, seen: Collection[str]) -> None:
        """Raise an error for a file in which all rows lack a column, or that others have filled in wrongly."""
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
        frame.index = pd.Index(part.lines[start:stop], name="row" if self.format in BINARY else "line")
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
        """Turn what the readers raise into errors that name the file, and the line if there is one."""
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
    max_spool: float = MAX_SPOOL,
    sheet: str | None = None,
) -> TableFile:
    """Return the table in a single file, see :func:`ordinalq.io.table.open_table`."""
    check_encoding(encoding)
    check_choice("quoting", quoting, QUOTING)
    check_real("max_spool", max_spool, low=0)
    if format is not None:
        check_choice("format", format, FORMATS)
    if str(path) != STDIN:
        check_readable(Path(path))
    if format is None:
        format = format_of(Path(path).name)  # noqa: A001
        if format is None:
            shown = "standard input" if str(path) == STDIN else path
            if Path(path).suffix.lower() in OLD_EXCEL:
                raise ValueError(f"{shown}: expected an .xlsx file. Save it as .xlsx or CSV in Excel.")
            raise ValueError(
                f"{shown}: expected a file .csv, .tsv, .xlsx, .ods, .jsonl or .parquet (text also "
                f"{', '.join(PACKED)}); give its format otherwise, such as format='csv'."
            )
    return TableFile(Source(path, format, max_spool), format, encoding, quoting, sheet)


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


# A table in one file or in many: a pattern of names, a folder, or a folder of folders such as ``year=2024``.


# How Hive writes a missing value in the name of a folder.
MISSING_FOLDER = "__HIVE_DEFAULT_PARTITION__"
FOLDER = re.compile(r"([^=]+)=(.*)")
WHOLE_NUMBER = re.compile(r"-?(?:0|[1-9]\d{0,17})")
PATTERN = re.compile(r"[*?\[]")


def open_table(
    path: str | Path | Sequence[str | Path],
    format: str | None = None,  # noqa: A002
    encoding: str = "utf-8",
    quoting: str = "auto",
    max_spool: float = MAX_SPOOL,
    sheet: str | None = None,
) -> "Table":
    """Return the table in a file or in many, which are looked at only to see that they are there.

    Parameters
    ----------
    path : str or Path, or list of these
        Its ending says the format (``.csv``, ``.tsv``, ``.xlsx``, ``.ods``, ``.jsonl``, ``.parquet``; text also
        packed, with ``.gz``, ``.bz2``, ``.xz`` or ``.zst``). "-" is the standard input; what comes from there or from
        a pipe is first copied to a temporary file. A folder stands for all files in and below it, except those that
        begin with "." or "_"; a pattern such as "reviews/*.parquet" for all files that match, with "**" for folders of
        any depth. Folders with names such as "year=2024" are a column of that name. Files are read in the order of
        their names, and must have the same columns.
    format : {"csv", "tsv", "jsonl", "parquet", "excel"}, default=None
        Needed if the ending does not tell the format.
    encoding : str, default="utf-8"
        Encoding of text files.
    quoting : {"auto", "minimal", "none"}, default="auto"
        Whether quotes around a cell of CSV and TSV files protect what is in it ("minimal"), or are characters like
        others ("none"). "auto": they protect in CSV files, and in TSV files in which all quotes are at the edges of
        cells.
    max_spool : float, default=8
        Gigabytes of standard input or of a pipe that are copied at most.
    sheet : str, default=None
        Name of a sheet of an Excel or OpenDocument file; None reads the first sheet that has cells.
    """
    given = [path] if isinstance(path, str | Path) else list(path)
    if not given:
        raise ValueError("path must name at least one file, got none.")
    found = [file for one in given for file in _found(one, format)]
    if len(found) > 1 and any(str(file) == STDIN for file, _ in found):
        raise ValueError("standard input: expected no other files.")
    paths = [file for file, _ in found]
    if twice := [file for file, times in Counter(paths).items() if times > 1]:
        raise ValueError(f"{twice[0]}: expected each file once, got it twice.")
    files = [open_file(file, format, encoding, quoting, max_spool, sheet) for file in paths]
    formats = {file.format for file in files}
    if len(formats) > 1:
        first, other = files[0], next(file for file in files if file.format != files[0].format)
        raise ValueError(f"{other.name}: expected a {first.format} file, as {first.name} is, got {other.format}.")
    _set_fixed(files, [values for _, values in found])
    name = files[0].name if paths == [Path(given[0])] else ", ".join(map(str, given))
    return Table(name, files)


class Table:
    """Rows in one file, or in many of one format with the same columns; errors about all of them call it by its name.

    The files are in the order in which they are read.
    """

    def __init__(self, name: str, files: list[TableFile]) -> None:
        self.name = name
        self.files = files
        self.format = files[0].format
        # Whether a row may lack columns, so that those of the first row are not all.
        self.lacks_keys = self.format == "jsonl"

    @property
    def n_bytes(self) -> int:
        """Size of all files."""
        return sum(file.n_bytes for file in self.files)

    def columns(self) -> list[str]:
        """Return the names of the columns of the first file; for JSON lines, those of its first row."""
        return self.files[0].columns()

    def require(self, *columns: Sequence[str]) -> None:
        """Raise an error if the table lacks columns of a list, one list after the other."""
        for names in () if self.lacks_keys else columns:
            require_columns(self.columns(), names, self.name)

    def blocks(self, wanted: Wanted) -> Iterator[tuple[TableFile, Block]]:
        """Yield blocks of rows, each with the file that can read it, here or in another process."""
        before, kinds, empty = 0, self.files[0].kinds(), True
        for file in self.files:
            self._check(file, wanted, kinds)
            for block in file.blocks(wanted):
                empty = False
                yield file, block._replace(done=before + block.done)
            before += file.n_bytes
        if empty:
            raise ValueError(f"{self.files[-1].name}: expected rows, but the file has none after its header.")

    def pieces(self, wanted: Wanted) -> Iterator[tuple[TableFile, Block | None]]:
        """Yield what other machines can read: blocks, or whole files (None) where blocks cannot be found again."""
        for file in self.files:
            if not file.again:
                yield file, None
        for file, block in self.blocks(wanted):
            if file.again:
                yield file, file.light(block)

    def check_seen(self, wanted: Wanted, seen: Collection[str]) -> None:
        """Raise an error for a table in which all rows lack a column, where these were `seen`."""
        for file in self.files:
            file.check_seen(wanted, seen)

    def chunks(
        self,
        columns: Sequence[str] | None = None,
        *,
        numbers: Collection[str] = (),
        native: Collection[str] = (),
        nested: bool = False,
    ) -> Iterator[pd.DataFrame]:
        """Yield the rows in chunks; the index of each frame is the line (or row, in Parquet) of its file.

        What is read is said by :class:`Wanted`; how far that is, by :mod:`ordinalq._utils.progress`.
        """
        wanted = Wanted(columns, numbers, native, nested)
        seen: set[str] = set()

        def frames() -> Iterator[tuple[pd.DataFrame, int]]:
            done = 0
            for file, block in self.blocks(wanted):
                for frame, read in file.frames(block, wanted):
                    seen.update(frame.attrs.pop("seen", ()))
                    yield frame, int(done + read * (block.done - done))
                done = block.done

        yield from along("reading the table", frames(), self.n_bytes)
        self.check_seen(wanted, seen)

    def read(self, columns: Sequence[str] | None = None, *, nested: bool = False) -> pd.DataFrame:
        """Read the whole table, see :meth:`chunks`."""
        chunks = list(self.chunks(columns, nested=nested))
        table = pd.concat(chunks) if len(chunks) > 1 else chunks[0]
        table.index.name = chunks[0].index.name
        table.attrs["where"] = self.name
        return table

    def _check(self, file: TableFile, wanted: Wanted, kinds: dict[str, str]) -> None:
        """Raise an error for a file with other columns than the first, or with groups of another kind."""
        first = self.files[0]
        if file.fixed and not self.lacks_keys and (twice := set(file.inner_columns()) & file.fixed.keys()):
            raise ValueError(f"{file.name}: has a column {min(twice)!r}, which is also the name of its folder.")
        if wanted.columns is None and not self.lacks_keys and file is not first:
            theirs, ours = first.columns(), file.columns()
            if lacking := [name for name in theirs if name not in set(ours)]:
                raise ValueError(f"{file.name}: lacks the column {lacking[0]!r} that {first.name} has.")
            if added := [name for name in ours if name not in set(theirs)]:
                raise ValueError(f"{file.name}: has a column {added[0]!r} that {first.name} lacks.")
        if not wanted.native or file is first:
            return
        own = file.kinds()
        for name in wanted.native:
            kind, expected = own.get(name), kinds.get(name)
            if kind != expected and "null" not in (kind, expected):
                raise ValueError(
                    f"{file.name}: expected {expected} in column {name!r}, as {first.name} has, got {kind}."
                )


def _found(path: str | Path, format: str | None) -> list[tuple[Path, dict[str, str]]]:  # noqa: A002
    """Return the files that a path, folder or pattern stands for, sorted, with what the names of folders say."""
    text = str(path)
    if text == STDIN or (os.path.lexists(text) and not os.path.isdir(text)):
        return [(Path(text), {})]
    if os.path.isdir(text):
        files = [Path(folder) / name for folder, _, names in os.walk(text) for name in names]
        inside = [file.relative_to(text) for file in files]
        files = [file for file, inner in zip(files, inside, strict=True) if not _is_hidden(inner)]
        files = [file for file in files if (format_of(file.name) if format is None else format) is not None]
        what = "expected a folder with .csv, .tsv, .xlsx, .ods, .jsonl or .parquet files, got none"
    elif PATTERN.search(text):
        files = [file for name in glob.glob(text, recursive=True) if (file := Path(name)).is_file()]
        what = "no file matches the pattern"
    else:
        raise FileNotFoundError(f"{text}: no such file.")
    if not files:
        raise FileNotFoundError(f"{text}: {what}.")
    return [(file, _values(file)) for file in sorted(files)]


def _is_hidden(inside: Path) -> bool:
    """Return whether a file is a note that a program has left next to the data."""
    return any(part.startswith((".", "_")) and not FOLDER.fullmatch(part) for part in inside.parts)


def _values(file: Path) -> dict[str, str]:
    """Return what the names of the folders of a file say.

    >>> _values(Path("reviews/year=2024/shop=north%20pole/a.csv"))
    {'year': '2024', 'shop': 'north pole'}
    """
    matches = [FOLDER.fullmatch(part) for part in file.parent.parts]
    return {unquote(match[1]): unquote(match[2]) for match in matches if match is not None}


def _set_fixed(files: list[TableFile], values: list[dict[str, str]]) -> None:
    """Give files the columns of their folders: words in text files, in Parquet whole numbers where all are."""
    names = values[0].keys()
    for file, one in zip(files, values, strict=True):
        if one.keys() != names:
            odd = min(one.keys() ^ names)
            raise ValueError(f"{file.name}: expected folders such as {odd}=... for all files or for none.")
    for name in names:
        words = [None if one[name] == MISSING_FOLDER else one[name] for one in values]
        whole = files[0].format == "parquet" and all(WHOLE_NUMBER.fullmatch(word) for word in words if word is not None)
        kind = ("Int64" if None in words else "int64") if whole else "object"
        for file, word in zip(files, words, strict=True):
            file.fixed[name] = Fixed(int(word) if whole and word is not None else word, kind)
