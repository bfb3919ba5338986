"""Uploaded files and forms, streamed to a private folder within limits."""

import os
import secrets
import shutil
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs

from python_multipart.exceptions import FormParserError
from python_multipart.multipart import MultipartParser, parse_options_header
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request

from ordinalq._utils.text import plain
from ordinalq.app.work import Table
from ordinalq.io.files import BINARY, ENDINGS, compression_extension

# One file, and all files of a server together.
MAX_FILE = 8 << 30
MAX_STORED = 32 << 30
# Bytes of the disk that stay free.
SPARE = 1 << 30
# A form without files: names of columns and of classes.
MAX_FORM = 1 << 20
MAX_FIELDS = 5000
# Headers of one part of a form with files.
MAX_HEADER = 4096
MODEL = "oq"
# Beginning of the names of tables and models that were sent.
SENT = "upload-"
# Free space is checked again after this many bytes.
CHECKED = 64 << 20


class RequestError(ValueError):
    """Invalid request of a browser; `status` is the status of the response."""

    def __init__(self, message: str, status: int = 400) -> None:
        super().__init__(message)
        self.status = status


async def form(request: Request) -> dict[str, list[str]]:
    """Return the fields of a form without files."""
    if request.headers.get("content-type", "").partition(";")[0] != "application/x-www-form-urlencoded":
        raise RequestError("the request must be a form.", 415)
    body = bytearray()
    async for block in request.stream():
        body += block
        if len(body) > MAX_FORM:
            raise RequestError(f"a form may have at most {MAX_FORM:,} bytes.", 413)
    try:
        return parse_qs(body.decode(), keep_blank_values=True, max_num_fields=MAX_FIELDS)
    except ValueError as error:  # too many fields, or no text
        raise RequestError("the form is not valid.") from error


def ending_of(name: str) -> str:
    """Return the file extension under which an upload is stored.

    >>> ending_of("Reviews.CSV.gz"), ending_of("../../x.parquet"), ending_of("model.oq")
    ('.csv.gz', '.parquet', '.oq')
    """
    packed = compression_extension(name)
    last = name.lower().removesuffix(packed).rpartition(".")[2]
    if last not in (*ENDINGS, MODEL) or (packed and ENDINGS.get(last, MODEL) in (*BINARY, MODEL)):
        raise RequestError(
            f"{shown_name(name)}: expected a file .csv, .tsv, .xlsx, .ods, .jsonl or .parquet (text also as .gz). "
            "Save older Excel files as .xlsx.",
            415,
        )
    return f".{last}{packed}"


def shown_name(name: str) -> str:
    r"""Return the name of an uploaded file for display.

    >>> shown_name("C:\\Users\\me\\reviews.csv"), shown_name("../../etc/passwd")
    ('reviews.csv', 'passwd')
    """
    return plain(name.replace("\\", "/").rpartition("/")[2])[:120] or "file"


class _Sink:
    """Stores the file of a form on disk as it arrives; ignores other fields."""

    def __init__(self, folder: Path, room: Callable[[], int]) -> None:
        self.folder = folder
        self.room = room
        self.upload: Table | None = None
        self._stream: Any = None
        self._begin()
        self._written = 0
        self._limit = 0
        self.complete = False

    def callbacks(self) -> Any:
        """Return the callbacks of the parser."""
        return {
            "on_part_begin": self._begin,
            "on_header_field": partial(self._on_header, 0),
            "on_header_value": partial(self._on_header, 1),
            "on_header_end": self._end_header,
            "on_headers_finished": self._open,
            "on_part_data": self._data,
            "on_part_end": self.close,
            "on_end": self._end,
        }

    def _begin(self) -> None:
        self._header, self._disposition, self._n_header = [b"", b""], b"", 0

    def _on_header(self, which: int, data: bytes, start: int, end: int) -> None:
        """Take a piece of the name of a header, or of its value."""
        self._n_header += end - start
        if self._n_header > MAX_HEADER:
            raise RequestError("the form is not valid.")
        self._header[which] += data[start:end]

    def _end_header(self) -> None:
        name, value = self._header
        self._header = [b"", b""]
        if name.lower() == b"content-disposition":
            self._disposition = value

    def _open(self) -> None:
        _, options = parse_options_header(self._disposition)
        if b"filename" not in options:
            return
        name = options[b"filename"].decode("utf-8", "replace")
        if not name:
            raise RequestError("choose a file first.")
        if self.upload is not None:
            raise RequestError("only one file can be uploaded at a time.")
        path = self.folder / f"{SENT}{secrets.token_hex(8)}{ending_of(name)}"
        self.upload = Table(path, shown_name(name))
        # Readable only by this user.
        how = os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0)
        self._stream = os.fdopen(os.open(path, how, 0o600), "wb")

    def _data(self, data: bytes, start: int, end: int) -> None:
        if self._stream is None:
            return
        self._written += end - start
        if self._written > MAX_FILE:
            raise RequestError(f"a file may have at most {MAX_FILE >> 30} GB.", 413)
        if self._written > self._limit:
            room = self.room()
            if room < end - start:
                raise RequestError(
                    "the disk has too little space for this file. Delete other projects, or free space.", 413
                )
            self._limit = self._written - (end - start) + min(room, CHECKED)
        self._stream.write(data[start:end])

    def _end(self) -> None:
        self.complete = True

    def close(self) -> None:
        """Finish the file."""
        if self._stream is not None:
            self._stream.close()
            self._stream = None


async def receive(request: Request, folder: Path, stored: Path) -> Table:
    """Store the file of a multipart form in a private folder under a random name.

    Invalid and incomplete uploads are removed. `stored` is the folder of all files, whose size is limited.
    """
    kind, options = parse_options_header(request.headers.get("content-type", ""))
    if kind != b"multipart/form-data" or not options.get(b"boundary"):
        raise RequestError("the request must be a form with a file.", 415)
    announced = request.headers.get("content-length", "0")
    if announced.isdigit() and int(announced) > MAX_FILE + MAX_FORM:
        raise RequestError(f"a file may have at most {MAX_FILE >> 30} GB.", 413)
    sink, whole = _Sink(folder, lambda: free_bytes(stored)), False
    try:
        parser = MultipartParser(options[b"boundary"], sink.callbacks())
        async for block in request.stream():
            # Writing may take as long as the disk takes.
            await run_in_threadpool(parser.write, block)
        if not sink.complete:
            raise RequestError("the file was cut off.")
        whole = True
    except FormParserError as error:
        raise RequestError("the form is not valid.") from error
    finally:
        sink.close()
        if not whole and sink.upload is not None:
            sink.upload.path.unlink(missing_ok=True)
    if sink.upload is None:
        raise RequestError("choose a file first.")
    return sink.upload


def free_bytes(stored: Path) -> int:
    """Return how many bytes may still be stored."""
    used = sum(path.stat().st_size for path in stored.rglob("*") if path.is_file())
    return max(0, min(MAX_STORED - used, shutil.disk_usage(stored).free - SPARE))
