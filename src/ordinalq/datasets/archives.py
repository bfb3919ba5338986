"""Archives: members that stay in their folder, and no more of them than such an archive can hold.

Nothing in them is executed or unpickled. Tar headers are read here: the standard reader takes them into memory whatever
their size, and follows chains of them by recursion.
"""

import bz2
import errno
import gzip
import io
import lzma
import stat
import struct
import tempfile
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path, PurePosixPath
from typing import IO, Any, NamedTuple

from ordinalq.io.columns import short
from ordinalq.io.writing import replacing

COPY_BYTES = 2**16  # copied at once
# What an archive may unpack to: this many bytes, this many times its size. Tables of numbers shrink to a thirtieth at
# most (BlogFeedback), zeros to a thousandth.
FREE_BYTES = 2**25
MAX_RATIO = 40
MAX_MEMBERS = 40_000  # files and folders; Amazon-OQ-BK has some 20,000
MAX_DIRECTORY = 2**22  # bytes of the list of members of a zip archive; that of Amazon-OQ-BK has half of it
MAX_HEADER = 2**14  # bytes of one header of a tar archive; a name of a thousand characters takes less than 2048
BLOCK = 512  # bytes; a tar archive consists of them
DAMAGE = (
    *(zipfile.BadZipFile, lzma.LZMAError, zlib.error, struct.error),
    *(EOFError, NotImplementedError, RuntimeError, ValueError, OverflowError, IndexError),
)


class Refused(ValueError):
    """An archive that nobody has published."""


class Entry(NamedTuple):
    """What the list of an archive says of a member: a "file", a "folder" or "other"; and its content."""

    name: str
    size: int
    kind: str
    stream: Any


class _Content(io.RawIOBase):
    """Content of a file in an archive; says of a damaged archive that it is damaged."""

    def __init__(self, archive: Path, stream: Any) -> None:
        self.archive = archive
        self.stream = stream

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        with _readable(self.archive):
            data = self.stream.read(min(len(buffer), COPY_BYTES))
        buffer[: len(data)] = data
        return len(data)


def extract(archive: Path, name: str, path: Path) -> Path:
    """Write the file `name` of an archive, in whatever folder it is there, to `path`, unless that exists."""
    if path.is_file():
        return path
    path.parent.mkdir(parents=True, exist_ok=True)
    with replacing(path) as partial:
        found = False
        for member, stream in members(archive):
            if member.name == name and not found:
                found = True
                with partial.open("wb") as file:
                    while chunk := stream.read(COPY_BYTES):
                        file.write(chunk)
        if not found:
            raise ValueError(f"{archive}: expected an archive with {name}, but it has none.")
    return path


@contextmanager
def complete_folder(folder: Path) -> Iterator[Path]:
    """Give a new folder to fill, which becomes `folder` when it is complete and vanishes after an error.

    Several processes may do so at once: the first one counts.
    """
    folder.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix=f"{folder.name}.", dir=folder.parent) as temporary:
        partial = Path(temporary) / folder.name  # unlike the temporary folder, as readable as any other
        partial.mkdir()
        yield partial
        try:
            partial.rename(folder)
        except OSError:
            if not folder.is_dir():
                raise


def members(archive: Path) -> Iterator[tuple[PurePosixPath, io.BufferedReader]]:
    """Yield name and content of each file of a zip or tar archive.

    Members that lead out of the folder, links, special files and two files of one name are refused, and so is what
    unpacks to more than 32 MB and 40 times the archive, or has more than 40,000 members. Each content must be read
    before the next one is asked for.
    """
    most = FREE_BYTES + MAX_RATIO * archive.stat().st_size
    total = 0
    names: set[PurePosixPath] = set()
    with _readable(archive):
        found = _zip_members(archive) if zipfile.is_zipfile(archive) else _tar_members(archive, most)
        for number, member in enumerate(found, start=1):
            if number > MAX_MEMBERS:
                raise Refused(f"{archive}: refused, because it has more than {MAX_MEMBERS:,} members.")
            total += member.size  # both formats never give more than the stated size
            if total > most:
                raise too_large(archive, most)
            if member.kind == "folder":
                continue
            name = PurePosixPath(member.name.replace("\\", "/"))
            reason = ""
            if name.is_absolute() or ".." in name.parts or any(":" in part for part in name.parts):
                reason = "leads out of the folder"
            elif not name.parts:
                reason = "is a file without a name"
            elif member.kind != "file":
                reason = "is a link or a special file"
            elif name in names:
                reason = "is there twice"
            if reason:
                raise Refused(f"{archive}: refused, because its member {short(member.name)} {reason}.")
            names.add(name)
            yield name, io.BufferedReader(_Content(archive, member.stream), COPY_BYTES)
    if not names:
        raise _damaged(archive, "it holds no file")


def too_large(archive: Path, most: int) -> Refused:
    """Return the error about an archive that unpacks to more than it may."""
    return Refused(f"{archive}: refused, because it unpacks to more than {most:,} bytes.")


class _Directory(io.BufferedReader):
    """A zip archive; what is asked for at once is its list of members, all else comes in chunks."""

    def read(self, size: int | None = -1, /) -> bytes:
        if size is not None and size > MAX_DIRECTORY:
            raise Refused(f"{self.name}: refused, because its list of members has {size:,} bytes.")
        return super().read(size)


def _zip_members(archive: Path) -> Iterator[Entry]:
    with _Directory(io.FileIO(archive)) as raw, zipfile.ZipFile(raw) as file:
        for info in file.infolist():
            regular = stat.S_IFMT(info.external_attr >> 16) in (0, stat.S_IFREG)
            kind = "folder" if info.is_dir() else "file" if regular else "other"
            with io.BytesIO() if kind != "file" else file.open(info) as stream:
                yield Entry(info.filename, info.file_size, kind, stream)


def _tar_members(archive: Path, most: int) -> Iterator[Entry]:
    with _unpacking(archive) as packed:
        stream = _Blocks(packed, archive, most)
        said: dict[str, bytes] = {}  # what headers of their own say of the next member
        while (header := stream.take(BLOCK)).strip(b"\0"):
            if len(header) < BLOCK or sum(header[:148] + b" " * 8 + header[156:]) != _number(header[148:156]):
                raise _damaged(archive, "no tar archive" if stream.n_bytes <= BLOCK else "a header is not valid")
            size, kind = _number(header[124:136]), header[156:157]
            if kind in b"xgLK":
                if size > MAX_HEADER:
                    raise Refused(f"{archive}: refused, because one of its headers has {size:,} bytes.")
                body = stream.take(-size % BLOCK + size)[:size]
                said |= {"path": body} if kind == b"L" else _records(body) if kind == b"x" else {}
                continue
            prefix = header[345:500].partition(b"\0")[0] if header[257:263] == b"ustar\0" else b""
            short_name = (prefix + b"/" if prefix else b"") + header[:100].partition(b"\0")[0]
            name = said.get("path", short_name).partition(b"\0")[0].decode(errors="replace")
            size = int(said.get("size", size))
            if size < 0:
                raise ValueError("a file has a size below zero")
            is_folder = kind == b"5" or (kind in b"\0" and name.endswith("/"))
            stream.left = size
            what = "folder" if is_folder else "file" if kind in b"0\0007" and "GNU.sparse" not in said else "other"
            yield Entry(name, size, what, stream)
            stream.skip(-size % BLOCK)
            said = {}


def _number(field: bytes) -> int:
    r"""Return a number of a tar header: octal figures, or bytes after one whose first bit is set.

    >>> _number(b"0000644\0"), _number(bytes([128, 0, 1, 0]))
    (420, 256)
    """
    return int.from_bytes(field[1:], "big") if field[0] & 128 else int(field.strip(b"\0 ") or b"0", 8)


def _records(body: bytes) -> dict[str, bytes]:
    r"""Return what a pax header says: lines ``LENGTH KEY=VALUE``, the length being that of the whole line.

    >>> _records(b"12 path=a/b\n14 size=12345\n")
    {'path': b'a/b', 'size': b'12345'}
    """
    said = {}
    while body:
        length = int(body.partition(b" ")[0])
        if not 0 < length <= len(body):
            raise ValueError("a header is not valid")
        key, _, value = body[:length].partition(b" ")[2].removesuffix(b"\n").partition(b"=")
        said["GNU.sparse" if key.startswith(b"GNU.sparse") else key.decode(errors="replace")] = value
        body = body[length:]
    return said


class _Blocks:
    """The blocks of a tar archive one after the other, and as a stream what is left of a file in it."""

    def __init__(self, stream: IO[bytes], archive: Path, most: int) -> None:
        self.stream = stream
        self.archive = archive
        self.most = most
        self.n_bytes = self.left = 0

    def take(self, size: int) -> bytes:
        """Return the next bytes."""
        self.n_bytes += size
        if self.n_bytes > self.most + BLOCK * MAX_MEMBERS:
            raise too_large(self.archive, self.most)
        return self.stream.read(size)

    def read(self, size: int) -> bytes:
        """Return at most `size` bytes of the file."""
        data = self.take(min(self.left, size))
        if self.left and not data:
            raise EOFError("a file in it ends too early")
        self.left -= len(data)
        return data

    def skip(self, padding: int) -> None:
        """Pass over what is left of the file, and what fills its last block."""
        while self.left:
            self.read(COPY_BYTES)
        self.take(padding)


def _unpacking(archive: Path) -> IO[bytes]:
    """Open a tar archive as it is before it was packed, by what it begins with."""
    with archive.open("rb") as file:
        start = file.read(6)
    if start.startswith(b"\x1f\x8b"):
        return gzip.open(archive, "rb")  # type: ignore[return-value]
    if start.startswith((b"\xfd7zXZ", b"]\x00\x00")):
        return lzma.open(archive, "rb")
    return bz2.open(archive, "rb") if start.startswith(b"BZh") else archive.open("rb")


@contextmanager
def _readable(archive: Path) -> Iterator[None]:
    """Report that an archive is damaged."""
    try:
        yield
    except Refused:
        raise
    except DAMAGE as error:
        raise _damaged(archive, error) from error
    except OSError as error:
        if error.errno not in (None, errno.EINVAL):  # the system's own, but for places that are not in the file
            raise
        raise _damaged(archive, error) from error


def _damaged(archive: Path, reason: Any) -> Refused:
    return Refused(f"{archive}: damaged or incomplete archive ({reason}); delete it and fetch it again.")
