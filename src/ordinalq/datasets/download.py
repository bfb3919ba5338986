"""Fetch public files and read archives.

Local copies are found first. Downloads are resumed and their checksums verified. Members of an archive cannot leave
their folder. Downloaded content is never executed or unpickled; it is read as numbers and text only.
"""

import bz2
import errno
import gzip
import hashlib
import io
import json
import logging
import lzma
import os
import shutil
import stat
import struct
import sys
import tempfile
import time
import zipfile
import zlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path, PurePosixPath
from typing import IO, Any, NamedTuple

from ordinalq._utils.extras import require_extra
from ordinalq._utils.parallel import try_lock
from ordinalq.io.columns import short
from ordinalq.io.writing import replacing, write_bytes

logger = logging.getLogger("ordinalq")

ATTEMPTS = 3  # transfers per call; each resumes where the last one broke
TIMEOUT = (10, 60)  # seconds to connect, and between two packets
CHUNK_BYTES = 2**16  # what a broken transfer loses at most
POLL_SECONDS = 0.2  # between two looks at whether another process has finished
ARCHIVES = (".zip", ".tar.gz", ".tgz", ".tar.xz", ".tar")  # endings
ZENODO = "https://zenodo.org/api/records"
OPENML = "https://www.openml.org/api/v1/json/data"


def cache_folder() -> Path:
    """Return the folder of downloaded files.

    It is ORDINALQ_CACHE, or the cache folder of the operating system.
    """
    if folder := os.environ.get("ORDINALQ_CACHE"):
        return Path(folder)
    with require_extra("paper", "the cache of data sets"):
        import platformdirs

    return Path(platformdirs.user_cache_dir("ordinalq"))


def cached_copy(name: str, *sources: Path) -> Path:
    """Return the path in the cache of data made from files.

    Changed or other files have another path.
    """
    states = [(source.resolve(), source.stat()) for source in sources]
    text = " ".join(f"{path} {state.st_size} {state.st_mtime_ns}" for path, state in states)
    return cache_folder() / f"{hashlib.sha256(text.encode()).hexdigest()[:16]}-{name}"


def find_local(patterns: Sequence[str], data: str | Path | None = None) -> Path | None:
    """Return a local copy of a file.

    Parameters
    ----------
    patterns : list of str
        File names, best first; ``*`` stands for any characters.
    data : path, default=None
        The file, or a folder that contains it; FileNotFoundError is raised if it does not. None looks into the folder
        named by ORDINALQ_DATA and then into the cache of downloads.

    Returns
    -------
    Path or None
        None if `data` is None and no file was found.
    """
    if data is not None:
        path = Path(data)
        if not path.exists():
            raise FileNotFoundError(f"{path}: no such file or folder.")
        found = path if path.is_file() else first_match(path, patterns)
        if found is None:
            raise FileNotFoundError(f"{path}: the folder must hold one of {', '.join(patterns)}, but has none of them.")
        return found
    folder = os.environ.get("ORDINALQ_DATA")
    if folder and not Path(folder).is_dir():
        raise FileNotFoundError(f"ORDINALQ_DATA must name a folder, but {folder!r} is none.")
    found = first_match(Path(folder), patterns) if folder else None
    return found or first_match(cache_folder(), patterns)


def first_match(folder: Path, patterns: Sequence[str]) -> Path | None:
    """Return the first file or folder in `folder` that matches a pattern.

    The patterns are tried in their order.
    """
    return next((path for pattern in patterns for path in sorted(folder.glob(pattern))), None)


def fetch(url: str, file_name: str, checksum: str | None = None, advice: str | None = None) -> Path:
    """Download a file into the cache, unless it is there, and return its path.

    An interrupted transfer is resumed, in this call or the next, if the address and the file on the server are the
    same. While another process fetches the same file, this one waits.

    Parameters
    ----------
    url : str
        Address of the file.
    file_name : str
        Name in the cache.
    checksum : str, default=None
        ``"sha256:..."`` or ``"md5:..."``; None if no checksum is published.
    advice : str, default=None
        Advice of the error message without network; None names the folder ORDINALQ_DATA and `data`.

    Returns
    -------
    Path
        The file in the cache.
    """
    with require_extra("paper", "downloading data sets"):
        import requests

    folder = cache_folder()
    folder.mkdir(parents=True, exist_ok=True)
    path, part = folder / file_name, folder / f"{file_name}.part"
    with _lock(folder / f"{file_name}.lock"):
        if path.is_file() and _has_checksum(path, checksum):
            return path
        try:
            _transfer_in_attempts(url, part)
        except requests.RequestException as error:
            raise _unreachable(url, error, advice or _advice(file_name)) from error
        _validator_file(part).unlink(missing_ok=True)
        if not _has_checksum(part, checksum):
            part.unlink()
            raise ValueError(
                f"{url}: the file does not have the expected checksum {checksum} and was refused; fetch it again, or, "
                f"if its publisher has changed it, put a copy that you trust as {file_name} into the folder named by "
                "ORDINALQ_DATA."
            )
        part.replace(path)
        return path


def _has_checksum(path: Path, checksum: str | None) -> bool:
    """Return whether a file has the checksum ``"ALGORITHM:DIGEST"``.

    The result is True if `checksum` is None.
    """
    if checksum is None:
        return True
    algorithm, _, digest = checksum.partition(":")
    with path.open("rb") as file:
        return hashlib.file_digest(file, algorithm).hexdigest() == digest.lower()


def _transfer_in_attempts(url: str, part: Path) -> None:
    """Download `url` to `part`, resuming after a broken transfer.

    There are at most ATTEMPTS attempts in all.
    """
    import requests

    for attempt in range(1, ATTEMPTS + 1):
        try:
            _transfer(url, part)
            break
        except (requests.ConnectionError, requests.Timeout, requests.exceptions.ChunkedEncodingError) as error:
            if attempt == ATTEMPTS:
                raise
            logger.info("%s: the transfer broke (%s), attempt %d follows", part.stem, error, attempt + 1)


def fetch_json(url: str, advice: str) -> Any:
    """Return a JSON document; `advice` is part of the error message without network."""
    with require_extra("paper", "downloading data sets"):
        import requests

    try:
        with requests.get(url, timeout=TIMEOUT) as response:
            response.raise_for_status()
            return response.json()
    except requests.RequestException as error:
        raise _unreachable(url, error, advice) from error


def zenodo_archive(record: int, name: str, advice: str) -> Path:
    """Fetch the only archive of a Zenodo record.

    The file is stored as `name` with the extension of the archive. It is checked against the checksum that Zenodo
    publishes.
    """
    files = _zenodo_record(record, advice)
    archives = [file for file in files if file["key"].endswith(ARCHIVES)]
    if len(archives) != 1:
        names = ", ".join(file["key"] for file in files) or "no file"
        raise ValueError(f"Zenodo record {record}: expected one archive, got {names}; {advice}.")
    [file] = archives
    ending = next(ending for ending in ARCHIVES if file["key"].endswith(ending))
    return fetch(file["links"]["self"], name + ending, file["checksum"])


def zenodo_files(record: int, names: Sequence[str], advice: str) -> list[Path]:
    """Fetch named files of a Zenodo record, with the checksums that Zenodo states."""
    files = {file["key"]: file for file in _zenodo_record(record, advice)}
    for name in names:
        if name not in files:
            raise ValueError(f"Zenodo record {record}: expected {name}, got {', '.join(files) or 'no file'}; {advice}.")
    return [fetch(files[name]["links"]["self"], name, files[name]["checksum"]) for name in names]


def _zenodo_record(record: int, advice: str) -> list[dict[str, Any]]:
    files: list[dict[str, Any]] = fetch_json(f"{ZENODO}/{record}", advice).get("files", [])
    return files


def openml_file(data_id: int, file_name: str) -> Path:
    """Fetch the ARFF file of an OpenML data set.

    The name of the target column is stored next to it.
    """
    advice = _advice(file_name)
    description = fetch_json(f"{OPENML}/{data_id}", advice)["data_set_description"]
    path = fetch(description["url"], file_name, f"md5:{description['md5_checksum']}")
    target = {"target": description["default_target_attribute"]}
    write_bytes(path.with_name(f"{path.name}.json"), json.dumps(target).encode())
    return path


def openml_target(path: Path) -> str | None:
    """Return the target column that OpenML publishes for a fetched file.

    The result is None for any other file.
    """
    statement = path.with_name(f"{path.name}.json")
    return str(json.loads(statement.read_text(encoding="utf-8"))["target"]) if statement.is_file() else None


def _advice(file_name: str) -> str:
    return f"put it as {file_name} into the folder named by ORDINALQ_DATA, or name it with data=PATH"


def _unreachable(url: str, error: Exception, advice: str) -> ConnectionError:
    reason = " ".join(str(error).split())
    return ConnectionError(
        f"{url} cannot be reached; without the network, get the file on another machine and {advice}. ({reason[:200]})"
    )


@contextmanager
def _lock(path: Path) -> Iterator[None]:
    """Acquire a lock, waiting for other processes and threads.

    The operating system releases the lock when a process dies.
    """
    file = try_lock(path)
    if file is None:
        logger.warning("%s is being fetched by another process: waiting for it", path.with_suffix(""))
    while file is None:
        time.sleep(POLL_SECONDS)
        file = try_lock(path)
    try:
        yield
    finally:
        with suppress(OSError):  # Windows does not remove an open file
            path.unlink()
        file.close()


def _transfer(url: str, part: Path) -> None:
    """Download `url` to `part`, continuing a partial file.

    A partial file is continued only if the server confirms that it is the same file.
    """
    with require_extra("paper", "downloading data sets"):
        import requests
        from rich.console import Console
        from rich.progress import Progress

    validator_file = _validator_file(part)
    # The sum of the file may be unknown: only address and validator keep halves of two versions apart.
    known = json.loads(validator_file.read_text()) if part.exists() and validator_file.exists() else {}
    have = part.stat().st_size if known.get("url") == url else 0
    headers = {"Accept-Encoding": "identity"}  # otherwise the length is not that of the file
    if have:
        headers |= {"Range": f"bytes={have}-", "If-Range": known["validator"]}
    with requests.get(url, headers=headers, stream=True, timeout=TIMEOUT) as response:
        if response.status_code == 416:  # nothing after what we have: begin again
            validator_file.unlink(missing_ok=True)
            raise requests.ConnectionError(f"the server cannot continue after byte {have}")
        response.raise_for_status()
        resumed = response.status_code == 206 and response.headers.get("Content-Range", "").startswith(f"bytes {have}-")
        have = have if resumed else 0
        etag = response.headers.get("ETag", "")
        validator = etag if etag and not etag.startswith("W/") else response.headers.get("Last-Modified")
        validator_file.unlink(missing_ok=True)
        if validator:
            write_bytes(validator_file, json.dumps({"url": url, "validator": validator}).encode())
        length = response.headers.get("Content-Length")
        total = have + int(length) if length else None
        console = Console(stderr=True)
        with Progress(console=console, disable=not sys.stderr.isatty(), transient=True) as progress:
            task = progress.add_task(part.stem, total=total, completed=have)
            with part.open("ab" if resumed else "wb") as file:
                for chunk in response.iter_content(CHUNK_BYTES):
                    file.write(chunk)
                    progress.advance(task, len(chunk))
    if total is not None and part.stat().st_size != total:
        raise requests.ConnectionError(f"got {part.stat().st_size} of {total} bytes")


def _validator_file(part: Path) -> Path:
    return part.with_name(part.name + ".json")


# Archives: zip and tar, with limits on names, sizes and numbers of members
#
# Tar headers are read here, because the standard reader loads headers of any size, follows chains of them by
# recursion, and takes a damaged header for the end of the archive.

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


class InvalidArchiveError(ValueError):
    """An archive that failed validation."""


class Entry(NamedTuple):
    """A member of an archive: its kind ("file", "folder" or "other") and its content."""

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
    """Write the file `name` of an archive to `path`, unless `path` exists.

    The file may be in any folder of the archive.
    """
    if path.is_file():
        return path
    path.parent.mkdir(parents=True, exist_ok=True)
    with replacing(path) as partial:
        found = False
        for member, stream in members(archive):  # to the end, which checks all members
            if member.name == name and not found:
                found = True
                with partial.open("wb") as file:
                    shutil.copyfileobj(stream, file, COPY_BYTES)
        if not found:
            raise ValueError(f"{archive}: expected an archive with {name}, but it has none.")
    return path


@contextmanager
def complete_folder(folder: Path) -> Iterator[Path]:
    """Yield a new folder to fill, which becomes `folder` when it is complete.

    The new folder is deleted after an error. If several processes do so at once, the result of the first one is kept.
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
                raise InvalidArchiveError(f"{archive}: refused, because it has more than {MAX_MEMBERS:,} members.")
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
                raise InvalidArchiveError(f"{archive}: refused, because its member {short(member.name)} {reason}.")
            names.add(name)
            yield name, io.BufferedReader(_Content(archive, member.stream), COPY_BYTES)
    if not names:
        raise _damaged(archive, "it holds no file")


def too_large(archive: Path, most: int) -> InvalidArchiveError:
    """Return the error about an archive that unpacks to more than it may."""
    return InvalidArchiveError(f"{archive}: refused, because it unpacks to more than {most:,} bytes.")


class _Directory(io.BufferedReader):
    """Zip archive whose members are read in chunks.

    Only the list of members is read at once.
    """

    def read(self, size: int | None = -1, /) -> bytes:
        if size is not None and size > MAX_DIRECTORY:
            raise InvalidArchiveError(f"{self.name}: refused, because its list of members has {size:,} bytes.")
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
        said: dict[str, bytes] = {}  # values of extended headers for the next member
        while (header := stream.take(BLOCK)).strip(b"\0"):
            if len(header) < BLOCK or sum(header[:148] + b" " * 8 + header[156:]) != _number(header[148:156]):
                raise _damaged(archive, "no tar archive" if stream.n_bytes <= BLOCK else "a header is not valid")
            size, kind = _number(header[124:136]), header[156:157]
            if kind in b"xgLK":
                if size > MAX_HEADER:
                    raise InvalidArchiveError(f"{archive}: refused, because one of its headers has {size:,} bytes.")
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
    r"""Return a number of a tar header.

    It is written in octal digits, or as bytes after one whose first bit is set.

    >>> _number(b"0000644\0"), _number(bytes([128, 0, 1, 0]))
    (420, 256)
    """
    return int.from_bytes(field[1:], "big") if field[0] & 128 else int(field.strip(b"\0 ") or b"0", 8)


def _records(body: bytes) -> dict[str, bytes]:
    r"""Return the records of a pax header.

    Records are lines ``LENGTH KEY=VALUE``. The length is that of the whole line.

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
    """Successive blocks of a tar archive.

    As a stream, the object returns the remaining bytes of the current member.
    """

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
    except InvalidArchiveError:
        raise
    except DAMAGE as error:
        raise _damaged(archive, error) from error
    except OSError as error:
        if error.errno not in (None, errno.EINVAL):  # the system's own, but for places that are not in the file
            raise
        raise _damaged(archive, error) from error


def _damaged(archive: Path, reason: Any) -> InvalidArchiveError:
    return InvalidArchiveError(f"{archive}: damaged or incomplete archive ({reason}); delete it and fetch it again.")
