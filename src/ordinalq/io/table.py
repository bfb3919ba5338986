"""Tables in one file or many, in any format, read in chunks."""

import csv
import glob
import lzma
import os
import re
import zlib
from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import Any, NamedTuple, Protocol
from urllib.parse import unquote

import pandas as pd

from ordinalq._utils.extras import require_extra
from ordinalq._utils.progress import iterate_parts
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
    compression_extension,
    encoding_problem,
    is_utf8,
    named_network_errors,
    remote_address,
    remote_filesystem,
    shown_name,
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
        """Raise an error if the values cannot be those of this file.

        The method is called when all chunks have been read.
        """


class TableFile:
    """One of the files of a table.

    Columns in `fixed` have one value in all rows, and are not in the file.
    """

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
        """Path of the file, or of its local copy."""
        return self._source.path

    def state(self) -> list[Any]:
        """Return values that differ if the content differs.

        See :meth:`ordinalq.io.files.Source.state`.
        """
        return self._source.state()

    def columns(self) -> list[str]:
        """Return the names of the columns; for JSON lines, those of the first row."""
        return list(dict.fromkeys([*self.inner_columns(), *self.fixed, *(one.target for one in self._fillings)]))

    def fill(self, filling: Filling) -> None:
        """Add values of a column that are not in the file, after earlier ones."""
        if self.format != "jsonl" and filling.target not in self.inner_columns():
            self._absent.add(filling.target)
        self._fillings.append(filling)

    def inner_columns(self) -> list[str]:
        """Return the names of the columns that are in the file itself."""
        with self._errors():
            return self._reader.columns()

    def sheets(self) -> list[str]:
        """Return the names of the sheets with cells; empty for other formats."""
        if self.format != "excel":
            return []
        with self._errors():
            return self._reader.sheets()  # type: ignore[union-attr]

    def kinds(self) -> dict[str, str]:
        """Return the kind of each column of a Parquet file; empty for other formats."""
        return self._reader.kinds() if isinstance(self._reader, Parquet) else {}

    def blocks(self, wanted: Wanted) -> Iterator[Block]:
        """Yield blocks of rows, which can be read here or in another process."""
        with self._errors():
            yield from self._reader.blocks(self._inner(wanted))

    @property
    def can_reread(self) -> bool:
        """Whether blocks can be read from the file again.

        This requires that the file is in UTF-8, and is not compressed text.
        """
        return self.format in BINARY or (is_utf8(self._encoding) and not self._source.packing)

    def light(self, block: Block) -> Block:
        """Return a block in the form that is sent to another process.

        Its text is left out if it can be read `again`.
        """
        return block._replace(text=None if self.can_reread else block.text, rows=None)

    def frames(self, block: Block, wanted: Wanted) -> Iterator[tuple[pd.DataFrame, float]]:
        """Yield the rows of a block in chunks, each with the fraction read so far.

        Parameters
        ----------
        block : Block
            Rows to read.
        wanted : Wanted
            Columns to read.

        Returns
        -------
        frames : iterator of (pandas.DataFrame, float)
            Chunks, each with the part of the block that is read after it.
        """
        with self._errors():
            for part in self._reader.parts(block, self._inner(wanted)):
                n_rows = len(part.lines)
                step = max(1, min(PORTION_ROWS, int(PORTION_BYTES * n_rows / max(_n_bytes(part), 1))))
                for start in range(0, n_rows, step):
                    stop = min(start + step, n_rows)
                    frame = self._frame(part, start, stop, wanted)
                    yield frame, (part.lines[stop - 1] + 1 - block.line) / max(block.n_lines, 1)

    def check_seen(self, wanted: Wanted, seen: Collection[str]) -> None:
        """Raise an error if all rows lack a column, or a filling is invalid.

        A filling provides the values of a column from another source.
        """
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
        """Return rows of a part as a frame.

        Its index and the attribute ``where`` are used in messages about invalid cells.
        """
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
        """Convert errors of the readers to errors that name the file and the line.

        The line is left out if there is none.
        """
        address = self._source.address
        try:
            with nullcontext() if address is None else named_network_errors(address):
                yield
        except UnicodeDecodeError as error:
            raise ValueError(encoding_problem(self._source, self._encoding)) from error
        except csv.Error as error:
            raise ValueError(f"{self.name}: not a readable {self.format} file: {error}.") from error
        except (FileNotFoundError, PermissionError, ConnectionError):
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
    if str(path) != STDIN and remote_address(path) is None:
        check_readable(Path(path))
    if format is None:
        format = format_of(Path(shown_name(path)).name)  # noqa: A001
        if format is None:
            if Path(shown_name(path)).suffix.lower() in OLD_EXCEL:
                raise ValueError(f"{shown_name(path)}: expected an .xlsx file. Save it as .xlsx or CSV in Excel.")
            raise ValueError(
                f"{shown_name(path)}: expected a file .csv, .tsv, .xlsx, .ods, .jsonl or .parquet (text also "
                f"{', '.join(PACKED)}); give its format otherwise, such as format='csv'."
            )
    return TableFile(Source(path, format, max_spool), format, encoding, quoting, sheet)


def format_of(name: str) -> str | None:
    """Return the format by the extension of a name, None for an unknown one.

    Parameters
    ----------
    name : str
        Name of a file.

    Returns
    -------
    format : str or None
        One of the formats of :func:`open_table`.

    Examples
    --------
    >>> format_of("a.csv.gz"), format_of("b.PQ"), format_of("c.txt")
    ('csv', 'parquet', None)
    """
    return ENDINGS.get(name.lower().removesuffix(compression_extension(name)).rpartition(".")[2])


def nullable(kind: Any) -> Any:
    """Return the nullable pandas type for integers or booleans."""
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
NO_TABLES = "expected a folder with .csv, .tsv, .xlsx, .ods, .jsonl or .parquet files, got none"


def open_table(
    path: str | Path | Sequence[str | Path],
    format: str | None = None,  # noqa: A002
    encoding: str = "utf-8",
    quoting: str = "auto",
    max_spool: float = MAX_SPOOL,
    sheet: str | None = None,
) -> "Table":
    """Return the table in one or several files.

    The call only checks that the files exist.

    Parameters
    ----------
    path : str or Path, or list of these
        The extension determines the format: ``.csv``, ``.tsv``, ``.xlsx``, ``.ods``, ``.jsonl`` or ``.parquet``; text
        also compressed, with ``.gz``, ``.bz2``, ``.xz`` or ``.zst``. "-" is the standard input, which is first copied
        to a temporary file, as is a pipe. A folder means all files in and below it, except those that begin with "." or
        "_". A pattern such as "reviews/*.parquet" means all files that match, with "**" for folders of any depth.
        Folders with names such as "year=2024" are a column of that name. Files are read in the order of their names,
        and must have the same columns. Addresses that begin with ``https://`` (a file) or ``s3://`` (a file or folder)
        need the extra "remote"; Parquet is read in parts, other formats are copied first.
    format : {"csv", "tsv", "jsonl", "parquet", "excel"}, default=None
        Needed if the extension does not determine the format.
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

    Returns
    -------
    table : Table
        Table whose rows have not been read.
    """
    given = [path] if isinstance(path, str | Path) else list(path)
    if not given:
        raise ValueError("path must name at least one file, got none.")
    found = [file for one in given for file in _found(one, format)]
    if len(found) > 1 and any(str(file) == STDIN for file, _ in found):
        raise ValueError("standard input: expected no other files.")
    paths = [file for file, _ in found]
    if twice := [file for file, times in Counter(paths).items() if times > 1]:
        raise ValueError(f"{shown_name(twice[0])}: expected each file once, got it twice.")
    files = [open_file(file, format, encoding, quoting, max_spool, sheet) for file in paths]
    formats = {file.format for file in files}
    if len(formats) > 1:
        first, other = files[0], next(file for file in files if file.format != files[0].format)
        raise ValueError(f"{other.name}: expected a {first.format} file, as {first.name} is, got {other.format}.")
    _set_fixed(files, [values for _, values in found])
    name = ", ".join(map(shown_name, given))
    return Table(name, files)


class Table:
    """Rows in one file, or in several of one format with the same columns.

    The files are in the order in which they are read. Errors about all of them use the name of the table.
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
        """Return the column names of the first file.

        For JSON lines, these are those of its first row.

        Returns
        -------
        names : list of str
            Columns.
        """
        return self.files[0].columns()

    def require(self, *columns: Sequence[str]) -> None:
        """Raise an error if the table lacks columns of a list, one list after the other.

        Parameters
        ----------
        *columns : list of str
            Lists of required columns.
        """
        for names in () if self.lacks_keys else columns:
            require_columns(self.columns(), names, self.name)

    def blocks(self, wanted: Wanted) -> Iterator[tuple[TableFile, Block]]:
        """Yield blocks of rows, each with the file that can read it.

        A block can be read in this or in another process.

        Parameters
        ----------
        wanted : Wanted
            Columns to read.

        Returns
        -------
        blocks : iterator of (TableFile, Block)
            In the order of the files.
        """
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
        """Yield pieces for other machines: blocks, or whole files (None).

        A piece is a whole file if its blocks cannot be read again.

        Parameters
        ----------
        wanted : Wanted
            Columns to read.

        Returns
        -------
        pieces : iterator of (TableFile, Block or None)
            Pieces of the table.
        """
        for file in self.files:
            if not file.can_reread:
                yield file, None
        for file, block in self.blocks(wanted):
            if file.can_reread:
                yield file, file.light(block)

    def check_seen(self, wanted: Wanted, seen: Collection[str]) -> None:
        """Raise an error if all rows of the table lack a column.

        `seen` are the columns that were found.
        """
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
        """Yield the rows in chunks.

        The index of each frame is the line (or row, in Parquet) of its file. :class:`Wanted` describes the arguments.
        Progress is reported through :mod:`ordinalq._utils.progress`.

        Parameters
        ----------
        columns : list of str, default=None
            Columns to read; None reads all.
        numbers : collection of str, default=()
            Columns that are numbers if all cells of a block are.
        native : collection of str, default=()
            Columns of Parquet files that keep their type.
        nested : bool, default=False
            Allow cells of Parquet files that hold lists or objects.

        Returns
        -------
        chunks : iterator of pandas.DataFrame
            Rows in the order of the files.
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

        yield from iterate_parts("reading the table", frames(), self.n_bytes)
        self.check_seen(wanted, seen)

    def read(self, columns: Sequence[str] | None = None, *, nested: bool = False) -> pd.DataFrame:
        """Read the whole table, see :meth:`chunks`.

        Parameters
        ----------
        columns : list of str, default=None
            Columns to read; None reads all.
        nested : bool, default=False
            Allow cells of Parquet files that hold lists or objects.

        Returns
        -------
        frame : pandas.DataFrame
            All rows.
        """
        chunks = list(self.chunks(columns, nested=nested))
        table = pd.concat(chunks) if len(chunks) > 1 else chunks[0]
        table.index.name = chunks[0].index.name
        table.attrs["where"] = self.name
        return table

    def _check(self, file: TableFile, wanted: Wanted, kinds: dict[str, str]) -> None:
        """Raise an error if a file has other columns or kinds than the first.

        The kinds are those of the groups.
        """
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


def _found(path: str | Path, format: str | None) -> list[tuple[str | Path, dict[str, str]]]:  # noqa: A002
    """Return the files of a path, folder or pattern, sorted.

    Each file has the values in the names of its folders.
    """
    text = str(path)
    if (address := remote_address(path)) is not None:
        return [(file, _values(Path(shown_name(file)))) for file in _remote_files(address, format)]
    if text == STDIN or (os.path.lexists(text) and not os.path.isdir(text)):
        return [(Path(text), {})]
    if os.path.isdir(text):
        files = [Path(folder) / name for folder, _, names in os.walk(text) for name in names]
        files = [file for file in files if _is_table(file.relative_to(text), format)]
        what = NO_TABLES
    elif PATTERN.search(text):
        files = [file for name in glob.glob(text, recursive=True) if (file := Path(name)).is_file()]
        what = "no file matches the pattern"
    else:
        raise FileNotFoundError(f"{text}: no such file.")
    if not files:
        raise FileNotFoundError(f"{text}: {what}.")
    return [(file, _values(file)) for file in sorted(files)]


def _remote_files(address: str, format: str | None) -> list[str]:  # noqa: A002
    """Return the addresses of the files of a remote folder.

    Web servers do not list their files.
    """
    if not address.startswith("s3:"):
        return [address]
    with named_network_errors(address):
        filesystem, path = remote_filesystem(address)
        if filesystem.info(path)["type"] == "file":
            return [address]
        names = filesystem.find(path)
    names = [name for name in names if _is_table(Path(name).relative_to(path), format)]
    if not names:
        raise FileNotFoundError(f"{shown_name(address)}: {NO_TABLES}.")
    parameters = address.partition("?")[2]
    return [f"s3://{name}{'?' if parameters else ''}{parameters}" for name in sorted(names)]


def _is_table(inside: Path, format: str | None) -> bool:  # noqa: A002
    """Return whether a file of a folder is read.

    It must be neither hidden nor of an unknown format.
    """
    return not _is_hidden(inside) and (format or format_of(inside.name)) is not None


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
    """Add the columns of their folders to files.

    They are words in text files. In Parquet files they are integers if all values are.
    """
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
