"""Archives: members that stay in their folder, of a size that can be.

Nothing in them is executed or unpickled.
"""

import bz2
import errno
import gzip
import io
import lzma
import shutil
import stat
import tarfile
import tempfile
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import IO, Any, Protocol

CHUNK_BYTES = 2**16  # copied at once
MAX_UNPACKED = 8 * 2**30  # bytes; the archives of UCI unpack to less than a tenth of it
MAX_MEMBERS = 100_000  # files and folders; Amazon-OQ-BK has some 20,000
MAX_HEADER = 2**20  # bytes of one header of a tar archive; a name of a thousand characters takes less than 2048
HEADER_BYTES = 2048  # of a member in the mean
IMPOSSIBLE_NAME = (errno.EEXIST, errno.ENOTDIR, errno.EISDIR, errno.ENAMETOOLONG, errno.EINVAL)
DAMAGE = (
    zipfile.BadZipFile,
    tarfile.TarError,
    gzip.BadGzipFile,
    lzma.LZMAError,
    zlib.error,
    EOFError,
    NotImplementedError,
    RuntimeError,
)


def unpack(archive: Path, folder: Path, max_bytes: int = MAX_UNPACKED) -> Path:
    """Unpack an archive into `folder`, unless that exists; all files or none.

    Members that lead out of the folder, links and special files are refused, and so are more than `max_bytes` or
    100,000 members.
    """
    if folder.is_dir():
        return folder
    with complete_folder(folder) as partial:
        for name, stream in members(archive, max_bytes):
            path = partial.joinpath(*name.parts)
            try:
                path.parent.mkdir(parents=True, exist_ok=True)
                file = path.open("wb")
            except OSError as error:
                if error.errno not in IMPOSSIBLE_NAME:
                    raise
                raise _damaged(archive, f"its member {str(name)[:40]!r} cannot be written: {error.strerror}") from error
            with file:
                shutil.copyfileobj(stream, file, CHUNK_BYTES)
    return folder


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


class Readable(Protocol):
    """What can be read as bytes."""

    def read(self, size: int = -1, /) -> bytes:
        """Return at most `size` bytes, all of them if it is negative."""
        ...


@dataclass
class _Member:
    """Content of a file in an archive; says of a damaged archive that it is damaged."""

    archive: Path
    stream: IO[bytes]

    def read(self, size: int = -1, /) -> bytes:
        with _readable(self.archive):
            return self.stream.read(size)


def members(archive: Path, max_bytes: int = MAX_UNPACKED) -> Iterator[tuple[PurePosixPath, Readable]]:
    """Yield name and content of each file of a zip or tar archive, checked as in :func:`unpack`.

    Each content must be read before the next one is asked for.
    """
    total = n_files = 0
    with _readable(archive):
        opened_members = _zip_members(archive) if zipfile.is_zipfile(archive) else _tar_members(archive, max_bytes)
        for number, (name, size, kind, opened) in enumerate(opened_members, start=1):
            if number > MAX_MEMBERS:
                raise ValueError(f"{archive}: refused, because it has more than {MAX_MEMBERS:,} members.")
            if kind == "folder":
                continue
            n_files += 1
            path = PurePosixPath(name.replace("\\", "/"))
            if path.is_absolute() or ".." in path.parts or any(":" in part for part in path.parts):
                raise ValueError(f"{archive}: refused, because its member {name!r} leads out of the folder.")
            if not path.parts:
                raise ValueError(f"{archive}: refused, because its member {name!r} is a file without a name.")
            if kind != "file":
                raise ValueError(f"{archive}: refused, because its member {name!r} is a link or a special file.")
            total += size  # both formats never give more than the stated size
            if total > max_bytes:
                raise ValueError(f"{archive}: refused, because it unpacks to more than {max_bytes:,} bytes.")
            with opened() as stream:
                yield path, _Member(archive, stream)
    if n_files == 0:
        raise _damaged(archive, "it holds no file")


def _zip_members(archive: Path) -> Iterator[Any]:
    with zipfile.ZipFile(archive) as file:
        for info in file.infolist():
            regular = stat.S_IFMT(info.external_attr >> 16) in (0, stat.S_IFREG)
            kind = "folder" if info.is_dir() else "file" if regular else "other"
            yield info.filename, info.file_size, kind, lambda info=info: file.open(info)


def _tar_members(archive: Path, max_bytes: int) -> Iterator[Any]:
    with _unpacking(archive) as stream, tarfile.open(fileobj=_Bounded(stream, archive, max_bytes), mode="r:") as file:
        for info in file:
            kind = "folder" if info.isdir() else "file" if info.isreg() else "other"
            yield info.name, info.size, kind, lambda info=info: file.extractfile(info)


def _unpacking(archive: Path) -> IO[bytes]:
    """Open a tar archive as it is before it was packed, by what it begins with."""
    with archive.open("rb") as file:
        start = file.read(6)
    if start.startswith(b"\x1f\x8b"):
        return gzip.open(archive, "rb")  # type: ignore[return-value]
    if start.startswith((b"\xfd7zXZ", b"]\x00\x00")):
        return lzma.open(archive, "rb")
    return bz2.open(archive, "rb") if start.startswith(b"BZh") else archive.open("rb")


class _Bounded(io.RawIOBase):
    """A stream that ends with an error where an archive unpacks to more than it may, its headers included."""

    def __init__(self, stream: IO[bytes], archive: Path, max_bytes: int) -> None:
        self.stream = stream
        self.archive = archive
        self.max_bytes = max_bytes

    def read(self, size: int = -1, /) -> bytes:
        # Only headers are asked for at once; a file of any size comes in chunks.
        if size > MAX_HEADER:
            raise ValueError(f"{self.archive}: refused, because one of its headers has {size:,} bytes.")
        data = self.stream.read(size)
        if self.stream.tell() > self.max_bytes + HEADER_BYTES * MAX_MEMBERS:
            raise ValueError(f"{self.archive}: refused, because it unpacks to more than {self.max_bytes:,} bytes.")
        return data

    def seek(self, offset: int, whence: int = 0, /) -> int:
        return self.stream.seek(offset, whence)

    def tell(self) -> int:
        return self.stream.tell()


@contextmanager
def _readable(archive: Path) -> Iterator[None]:
    """Say of a damaged archive that it is damaged."""
    try:
        yield
    except DAMAGE as error:
        raise _damaged(archive, error) from error


def _damaged(archive: Path, reason: Any) -> ValueError:
    return ValueError(f"{archive}: damaged or incomplete archive ({reason}); delete it and fetch it again.")
