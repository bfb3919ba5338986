"""Bytes of a file, packed or not, of a pipe, or of the standard input; as UTF-8, whatever the encoding was."""

import bz2
import codecs
import gzip
import io
import lzma
import os
import stat
import sys
import tempfile
import weakref
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

import pyarrow as pa

STDIN = "-"
CHUNK = 1 << 20
# Endings of packed files.
PACKED = (".gz", ".bz2", ".xz", ".zst")


@contextmanager
def open_binary(path: Path, ending: str | None = None) -> Iterator[IO[bytes]]:
    """Open a file; what is packed, as its name or the `ending` says, is unpacked on the way."""
    with path.open("rb") as raw, unpacked(raw, packing(path.name) if ending is None else ending) as stream:
        yield stream


def packing(name: str) -> str:
    """Return the ending of the name of a packed file, "" of others.

    >>> packing("reviews.csv.gz"), packing("reviews.csv")
    ('.gz', '')
    """
    return next((ending for ending in PACKED if name.lower().endswith(ending)), "")


def unpacked(raw: IO[bytes], ending: str) -> Any:
    """Return what an open file holds, as a file; `ending` says how it is packed."""
    if ending == ".zst":
        stream: Any = pa.CompressedInputStream(pa.PythonFile(raw, mode="r"), "zstd")
        return io.BufferedReader(stream)
    if ending == ".gz":
        return gzip.GzipFile(fileobj=raw, mode="rb")
    if ending:
        return bz2.BZ2File(raw) if ending == ".bz2" else lzma.LZMAFile(raw)
    return raw


class Source:
    """A file that can be read as often as needed; what comes through a pipe is kept in a temporary file.

    The path "-" stands for the standard input. Errors call it `name`; `path` is where the bytes are, of a temporary
    file that vanishes with the source; `packing` is the ending of the name of a packed file, such as ".gz", or "".
    """

    def __init__(self, path: str | Path) -> None:
        self.name = "standard input" if str(path) == STDIN else str(path)
        self.packing = packing(Path(path).name)
        self.path = Path(path)
        if str(path) == STDIN:
            self._spool(sys.stdin.buffer)
            return
        check_readable(self.path)
        if not stat.S_ISREG(os.stat(path).st_mode):
            with open(path, "rb") as stream:
                self._spool(stream)

    def _spool(self, stream: IO[bytes]) -> None:
        handle, name = tempfile.mkstemp(prefix="ordinalq-")
        self.path = Path(name)
        weakref.finalize(self, self.path.unlink, missing_ok=True)
        with open(handle, "wb") as file:
            while block := stream.read(CHUNK):
                file.write(block)

    @property
    def n_bytes(self) -> int:
        """Size of the file."""
        return self.path.stat().st_size


def check_readable(path: Path) -> None:
    """Refuse what is no file, or a link to nothing."""
    if path.is_dir():
        raise ValueError(f"{path}: expected a file, got a folder.")
    if path.is_symlink() and not path.exists():
        raise FileNotFoundError(f"{path}: is a link to {os.readlink(path)}, which does not exist.")
    if not path.exists():
        raise FileNotFoundError(f"{path}: no such file.")
    if stat.S_ISSOCK(mode := path.stat().st_mode) or stat.S_ISBLK(mode):
        raise ValueError(f"{path}: expected a file, got a device or a socket.")


class Utf8:
    """The text of a source as UTF-8 bytes, without byte order mark, in blocks of any size.

    Bytes that are not in the encoding are a UnicodeDecodeError.
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
        """Return how many bytes of the file have been read; of a packed file, of what is packed."""
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


def encoding_problem(source: Source, encoding: str) -> str:
    """Find the first line that is not in the encoding."""
    with open_binary(source.path, source.packing) as binary:
        start = binary.read(2)
    with open_binary(source.path, source.packing) as binary:
        if start in (b"\xff\xfe", b"\xfe\xff"):
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
