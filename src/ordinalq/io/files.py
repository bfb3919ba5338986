"""Bytes of files and pipes: compression, encodings, blocks, delimited rows."""

import bz2
import codecs
import csv
import gzip
import io
import lzma
import os
import re
import stat
import sys
import tempfile
import threading
import uuid
import weakref
from collections.abc import Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, NamedTuple
from urllib.parse import urlsplit

import numpy as np
import numpy.typing as npt
import pandas as pd

from ordinalq._utils.extras import require_extra
from ordinalq._utils.text import counted
from ordinalq._utils.validation import Index

if TYPE_CHECKING:
    import pyarrow as pa

STDIN = "-"
CHUNK = 1 << 20
FORMATS = ("csv", "tsv", "jsonl", "parquet", "excel")
# The format of a table by its file extension.
ENDINGS = {"csv": "csv", "tsv": "tsv", "jsonl": "jsonl", "ndjson": "jsonl", "parquet": "parquet", "pq": "parquet"}
ENDINGS |= {"xlsx": "excel", "xlsm": "excel", "ods": "excel"}
# Formats whose files are not text.
BINARY = ("parquet", "excel")
# First bytes of files that Excel has written: zip archives, and the older compound files.
EXCEL_STARTS = (b"PK\x03\x04", b"\xd0\xcf\x11\xe0")
# Gigabytes of standard input or a pipe that are copied to a temporary file.
MAX_SPOOL = 8.0
# A row of more bytes is a quoted cell that does not end, or no table.
MAX_ROW = 1 << 24
LINE_ENDS = (b"\n", b"\r")
# Endings of packed files.
PACKED = (".gz", ".bz2", ".xz", ".zst")


@contextmanager
def open_binary(path: Path, ending: str | None = None) -> Iterator[IO[bytes]]:
    """Open a file for reading, decompressing it if necessary.

    The file name or `ending` determines the compression.
    """
    with (
        path.open("rb") as raw,
        unpacked(raw, compression_extension(path.name) if ending is None else ending) as stream,
    ):
        yield stream


def compression_extension(name: str) -> str:
    """Return the file extension of a compressed file, or "" for other files.

    >>> compression_extension("reviews.csv.gz"), compression_extension("reviews.csv")
    ('.gz', '')
    """
    return next((ending for ending in PACKED if name.lower().endswith(ending)), "")


def unpacked(raw: IO[bytes], ending: str) -> Any:
    """Return the decompressed content of an open file as a file.

    `ending` is the extension of a compressed file, or "".
    """
    if ending == ".zst":
        with require_extra("tables", "reading .zst files"):
            import pyarrow as pa

        stream: Any = pa.CompressedInputStream(pa.PythonFile(raw, mode="r"), "zstd")
        return io.BufferedReader(stream)
    if ending == ".gz":
        return gzip.GzipFile(fileobj=raw, mode="rb")
    if ending:
        return bz2.BZ2File(raw) if ending == ".bz2" else lzma.LZMAFile(raw)
    return raw


# Remote files: addresses of object stores and web servers. The network is used for these addresses only.

# A Path has one slash after the scheme.
ADDRESS = re.compile(r"(s3|https?):/{1,2}(?=[^/])")
# Status of a web server for a file that does not exist.
ABSENT = (404, 410)


def remote_address(path: str | Path) -> str | None:
    """Return the address of a remote file, None for a local path.

    >>> remote_address(Path("https://host/a.parquet")), remote_address("a.parquet")
    ('https://host/a.parquet', None)
    """
    text = str(path)
    return ADDRESS.sub(r"\1://", text, count=1) if ADDRESS.match(text) else None


def shown_name(path: str | Path) -> str:
    """Return the name of a file for messages.

    Passwords and parameters are removed from addresses.

    >>> shown_name("https://me:secret@host/a.csv?token=1"), shown_name("-")
    ('https://host/a.csv', 'standard input')
    """
    if (address := remote_address(path)) is None:
        return "standard input" if str(path) == STDIN else str(path)
    parts = urlsplit(address)
    return f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}{parts.path}"


def remote_filesystem(address: str) -> tuple[Any, str]:
    """Return the fsspec file system of a remote address and the path in it."""
    scheme = address.partition("://")[0]
    with require_extra("remote", f"reading {scheme}:// files"):
        import fsspec

        if scheme == "s3":
            from fsspec.implementations.arrow import ArrowFSWrapper
            from pyarrow.fs import FileSystem
        else:
            import aiohttp  # noqa: F401
    if scheme == "s3":
        filesystem, path = FileSystem.from_uri(address)
        return ArrowFSWrapper(filesystem), path
    # Arrow decides which ranges it needs.
    found: tuple[Any, str] = fsspec.core.url_to_fs(address, cache_type="none")
    return found


@contextmanager
def named_network_errors(address: str) -> Iterator[None]:
    """Raise errors of the network as errors that name the file.

    They are FileNotFoundError for absent files, and ConnectionError otherwise.
    """
    try:
        yield
    except (PermissionError, ImportError, ValueError, MemoryError):
        raise
    except Exception as error:  # each file system has its own
        if type(error) is ConnectionError:  # from here, of a step within
            raise
        # That of web servers raises FileNotFoundError for every error, and has the error as its cause.
        is_absent, cause = isinstance(error, FileNotFoundError), error.__cause__
        if is_absent and (cause is None or isinstance(cause, FileNotFoundError) or _status(cause) in ABSENT):
            raise FileNotFoundError(f"{shown_name(address)}: no such file.") from error
        raise ConnectionError(
            f"{shown_name(address)} cannot be read: {_reason(cause if is_absent else error)}"
        ) from error


def _status(error: BaseException | None) -> int | None:
    """Return the status with which a web server has answered, or None."""
    return getattr(error, "status", None)


def _reason(error: BaseException | None) -> str:
    """Return the first line of an error, without secrets in addresses."""
    if (status := _status(error)) is not None:
        return f"status {status} {getattr(error, 'message', '')}".strip()
    line = (str(error).splitlines() or [type(error).__name__])[0]
    return re.sub(r"\?[^\s'\"]*", "", re.sub(r"//[^/\s@]*@", "//", line))[:200]


class Source:
    """A file that can be read as often as needed.

    The path "-" is the standard input; addresses begin with ``s3://``, ``https://`` or ``http://``. The content of a
    pipe, and of a remote file other than Parquet, is copied to a temporary file, which is removed with the source. At
    most `max_spool` gigabytes are copied, and text must have lines. ``name`` is for messages, ``path`` is the file or
    its copy, ``address`` that of a remote Parquet file, and ``packing`` the extension of a compressed file or "".
    """

    def __init__(self, path: str | Path, format: str = "csv", max_spool: float = MAX_SPOOL) -> None:  # noqa: A002
        self.name = shown_name(path)
        self.packing = compression_extension(Path(self.name).name)
        self.path = Path(path)
        self.address = remote_address(path)
        if self.address is not None:
            self._connect(self.address, format, max_spool)
            return
        if str(path) == STDIN:
            self._spool(sys.stdin.buffer, format, max_spool)
            return
        check_readable(self.path)
        if not stat.S_ISREG(os.stat(path).st_mode):
            with open(path, "rb") as stream:
                self._spool(stream, format, max_spool)

    def _connect(self, address: str, format: str, max_spool: float) -> None:  # noqa: A002
        """Open a remote Parquet file in place, or copy a file of another format.

        The parts of a Parquet file are read when they are needed. A Parquet file is copied, too, if its server cannot
        send ranges of bytes.
        """
        with named_network_errors(address):
            filesystem, path = remote_filesystem(address)
            info = filesystem.info(path)
            if info["type"] != "file":
                raise FileNotFoundError
            if format == "parquet" and info["size"] and info.get("partial", True):
                # Without a time of modification a changed file cannot be recognized in a later run.
                self._state = [self.name, info["size"], str(info.get("mtime") or uuid.uuid4().hex)]
                return
            with filesystem.open(path, "rb") as stream:
                self._spool(stream, format, max_spool)
        self.address = None

    def seekable(self) -> Any:
        """Return the local path, or a remote file that is open for reading at any place."""
        if self.address is None:
            return self.path
        with named_network_errors(self.address):
            filesystem, path = remote_filesystem(self.address)
            return filesystem.open(path, "rb", **({} if self.address.startswith("s3:") else {"size": self.n_bytes}))

    def state(self) -> list[Any]:
        """Return values that differ if the content differs.

        These are location, size and time of modification.
        """
        if self.address is not None:
            return self._state
        stat = self.path.stat()
        return [str(self.path.resolve()), stat.st_size, stat.st_mtime_ns]

    def _spool(self, stream: IO[bytes], format: str, max_spool: float) -> None:  # noqa: A002
        handle, name = tempfile.mkstemp(prefix="ordinalq-")
        self.path = Path(name)
        weakref.finalize(self, self.path.unlink, missing_ok=True)
        with open(handle, "wb") as file:
            has_lines, line = format not in BINARY and not self.packing, 0
            while block := stream.read(CHUNK):
                line = len(block) - end if (end := max(map(block.rfind, LINE_ENDS)) + 1) else line + len(block)
                if has_lines and line > MAX_ROW:
                    raise ValueError(f"{self.name}: expected lines of text, got {MAX_ROW:,} bytes without a line end.")
                if file.tell() + len(block) > max_spool * 1e9:
                    raise ValueError(f"{self.name}: expected at most {max_spool:g} GB, got more. Use max_spool=GB.")
                file.write(block)

    @property
    def n_bytes(self) -> int:
        """Size of the file."""
        return int(self.state()[1])


def check_readable(path: Path) -> None:
    """Raise an error unless this is a file."""
    if path.is_dir():
        raise ValueError(f"{path}: expected a file, got a folder.")
    if path.is_symlink() and not path.exists():
        raise FileNotFoundError(f"{path}: is a link to {os.readlink(path)}, which does not exist.")
    if not path.exists():
        raise FileNotFoundError(f"{path}: no such file.")
    if stat.S_ISSOCK(mode := path.stat().st_mode) or stat.S_ISBLK(mode):
        raise ValueError(f"{path}: expected a file, got a device or a socket.")


class Utf8:
    """Text of a source as UTF-8 bytes in blocks of any size.

    The byte order mark is left out. Bytes that are invalid in the encoding raise UnicodeDecodeError.
    """

    def __init__(self, source: Source, encoding: str) -> None:
        self._raw = source.path.open("rb")
        self._stream: IO[bytes] = unpacked(self._raw, source.packing)
        self._is_utf8 = is_utf8(encoding)
        self._decoder = codecs.getincrementaldecoder("utf-8" if self._is_utf8 else encoding)()
        self._at_start = True

    def __enter__(self) -> "Utf8":
        return self

    def __exit__(self, *_: object) -> None:
        self._stream.close()
        self._raw.close()

    def read(self, size: int) -> bytes:
        """Return about `size` bytes, none at the end; the last character may be cut."""
        while raw := self._stream.read(size):
            if self._at_start and self._is_utf8:
                raw = raw.removeprefix(codecs.BOM_UTF8)
            self._at_start = False
            if not self._is_utf8:
                raw = self._decoder.decode(raw).encode()
            elif not raw.isascii() or self._decoder.getstate()[0]:
                self._decoder.decode(raw)  # only to see that it can be
            if raw:
                return raw
        return self._decoder.decode(b"", final=True).encode()

    def position(self) -> int:
        """Return the number of bytes of the file that have been read.

        For a compressed file these are compressed bytes.
        """
        return int(self._raw.tell())


def is_utf8(encoding: str) -> bool:
    """Return whether text in an encoding needs no decoding."""
    return codecs.lookup(encoding).name in ("utf-8", "utf-8-sig")


def check_encoding(encoding: str) -> str:
    """Return the name of an encoding that Python knows as one of text."""
    try:
        "".encode(encoding)
        if not isinstance(codecs.decode(b"", encoding), str):
            raise LookupError
    except (LookupError, ValueError) as error:
        raise ValueError(
            f"encoding must be one that Python knows, such as utf-8 or cp1252, got {encoding!r}."
        ) from error
    return encoding


def excel_problem(source: Source) -> str:
    """Return the message about a file of Excel whose name is that of a text file."""
    return (
        f"{source.name}: expected text, got a file of Excel. Save it as CSV in Excel, or give it the extension .xlsx."
    )


def encoding_problem(source: Source, encoding: str) -> str:
    """Find the first line that is not in the encoding."""
    with open_binary(source.path, source.packing) as binary:
        start = binary.read(4)
    if start in EXCEL_STARTS:
        return excel_problem(source)
    with open_binary(source.path, source.packing) as binary:
        if start[:2] in (b"\xff\xfe", b"\xfe\xff"):
            return f"{source.name}: expected {encoding} text, got UTF-16: save it as UTF-8, or give its encoding."
        for number, line in enumerate(binary, start=1):
            try:
                line.decode(encoding)
            except UnicodeDecodeError as error:
                byte = line[error.start]
                return (
                    f"{source.name}, line {number}: expected {encoding} text, got the byte 0x{byte:02x}; "
                    "save the file as UTF-8, or give its encoding, such as cp1252."
                )
    return f"{source.name}: expected {encoding} text."


# Rows of delimited text: the ends of rows, and a slow reader that finds the wrong row.


MAX_CELL = 1 << 22

QUOTE, LINE_FEED, RETURN = ord('"'), ord("\n"), ord("\r")
Lines = npt.NDArray[np.int64]

# The limit of a cell is a global of the csv module.
_limit = threading.Lock()


class Dialect(NamedTuple):
    """Separator of cells, and whether quotes around a cell are not part of it."""

    separator: str
    quoted: bool


class Rows(NamedTuple):
    """Rows as the slow reader gives them."""

    cells: list[list[str]]
    lines: list[int]  # the line of the file in which each row ends
    n_bytes: int  # of all of them in the file
    n_lines: int  # likewise


def rows_end(block: bytes, dialect: Dialect) -> tuple[int, int] | None:
    """Return bytes and lines of the complete rows of a block.

    The block starts with a row. Both numbers are zero if no row is complete. The result is None if quotes are not at
    the edges of cells. Then only `exact_rows` can find the rows.
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
    """Return the line, counted from 0, in which each nonempty row ends.

    The block must be one for which `rows_end` does not return None.
    """
    data = np.frombuffer(block, dtype=np.uint8)
    quotes = np.flatnonzero(data == QUOTE) if dialect.quoted else np.empty(0, dtype=np.intp)
    feeds = np.flatnonzero(data == LINE_FEED)
    outside = np.searchsorted(quotes, feeds) % 2 == 0
    ends = feeds[outside]
    starts = np.append(0, ends[:-1] + 1)
    empty = (ends == starts) | ((ends == starts + 1) & (data[starts] == RETURN))
    return np.asarray(np.flatnonzero(outside)[~empty], dtype=np.int64)


def _at_edges(block: bytes, quotes: Index, dialect: Dialect) -> bool:
    """Return whether each quote opens or closes a cell, or is a doubled quote.

    Only then is a character inside quotes if an odd number of them precedes it.
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
    """Read the rows of a block one by one.

    The error names the line that does not have `n_columns` cells. The block is UTF-8, starts with a row, and its first
    line has the number `first_line` in the file of this name. Without `final`, an incomplete row at its end is left for
    the next block.
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
            # A header with another separator is one name.
            hint = " A .csv file has commas or semicolons between the columns, a .tsv file tabs." * (n_columns == 1)
            raise ValueError(f"{name}, line {line}: expected {counted(n_columns, 'column')}, got {len(row)}.{hint}")
        cells.append(row)
        numbers.append(first_line + number - 1)
    return Rows(cells, numbers, sum(len(line.encode()) for line in lines[:done]), done)


def first_row(text: str, dialect: Dialect, name: str) -> tuple[list[str], int, int] | None:
    """Return the cells of the first row, its number of lines, and its bytes.

    The result is None if the row is not complete.
    """
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
                raise unclosed_quote_error(name, first_line + start) from error
            raise ValueError(
                f"{name}, line {first_line + start}: {what}; if quotes are plain characters in this file, give "
                "quoting='none'."
            ) from error
        yield row, reader.line_num


def unclosed_quote_error(name: str, line: int) -> ValueError:
    """Return the error about a cell that does not end."""
    return ValueError(
        f"{name}, line {line}: a quoted cell does not end, or has more than {MAX_CELL:,} characters; if quotes are "
        "plain characters in this file, give quoting='none'."
    )


# Pieces of a file: blocks, which are cheap to find and can be read anywhere, and the parts that reading them gives.


# Bytes of text that are a block.
BLOCK = 1 << 24


class Wanted(NamedTuple):
    """Columns to read of a table: some, all of which must exist, or all (None).

    Columns that are expected to hold `numbers` come as such where all cells of a block do, otherwise as they are
    written; `native` columns of Parquet files keep their type also where values are missing, so that whole numbers stay
    whole; with `nested`, a cell of a Parquet file may hold a list or an object.
    """

    columns: Sequence[str] | None = None
    numbers: Collection[str] = ()
    native: Collection[str] = ()
    nested: bool = False


class Block(NamedTuple):
    """Successive rows of a file that have not been read yet.

    The object is the same in every process.
    """

    start: int  # from this byte of a text file, or row group of a Parquet file
    stop: int  # to this one
    line: int  # line of the first row (or row, counted from 0, in Parquet)
    n_lines: int
    done: int  # bytes of the file that have been looked at after it
    text: bytes | None = None  # in UTF-8; None where it can be read from the file once more
    rows: "Rows | None" = None  # where they had to be read to find their end
    exact: bool = False  # whether only the slow reader can tell the rows of it

    def content(self, path: Path) -> bytes:
        """Return the text."""
        if self.text is not None:
            return self.text
        with path.open("rb") as file:
            file.seek(self.start)
            return file.read(self.stop - self.start)


class Part(NamedTuple):
    """Some rows of a file."""

    table: "pa.Table | pd.DataFrame"
    lines: Any  # of the file (or rows, counted from 0, in Parquet), of each row
    seen: frozenset[str] | None = None  # columns that have a value in some row, where rows may lack columns
