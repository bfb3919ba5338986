"""Fetching public files: local copies first, resumed downloads, checked sums, archives that stay in their folder.

Nothing that was fetched is executed or unpickled; it is read as numbers and text only.
"""

import hashlib
import json
import logging
import os
import shutil
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from ordinalq._utils.parallel import try_lock
from ordinalq.io.writing import write_bytes

logger = logging.getLogger("ordinalq")

ATTEMPTS = 3  # transfers per call; each resumes where the last one broke
TIMEOUT = (10, 60)  # seconds to connect, and between two packets
CHUNK_BYTES = 2**16  # what a broken transfer loses at most
POLL_SECONDS = 0.2  # between two looks at whether another process has finished
ARCHIVES = (".zip", ".tar.gz", ".tgz", ".tar.xz", ".tar")  # endings
ZENODO = "https://zenodo.org/api/records"
OPENML = "https://www.openml.org/api/v1/json/data"


def cache_folder() -> Path:
    """Return the folder of downloaded files: ORDINALQ_CACHE, or the place that the system has for caches."""
    import pooch

    return Path(os.environ.get("ORDINALQ_CACHE") or pooch.os_cache("ordinalq"))


def cached_copy(source: Path, name: str) -> Path:
    """Return where in the cache is what was made from a file, under a name that another or a changed file never has."""
    state = source.stat()
    key = hashlib.sha256(f"{source.resolve()} {state.st_size} {state.st_mtime_ns}".encode()).hexdigest()[:16]
    return cache_folder() / f"{key}-{name}"


def find_local(patterns: Sequence[str], data: str | Path | None = None) -> Path | None:
    """Return a local copy of the first of some file names, which may hold ``*``; None if there is none.

    `data` is the file itself, or the folder that holds it; then it must be there. None looks into the folder named by
    ORDINALQ_DATA, if that is set, and then into the cache of downloads.
    """
    if data is not None:
        path = Path(data)
        if not path.exists():
            raise FileNotFoundError(f"{path}: no such file or folder.")
        found = path if path.is_file() else _first_match(path, patterns)
        if found is None:
            raise FileNotFoundError(f"{path}: the folder must hold one of {', '.join(patterns)}, but has none of them.")
        return found
    folder = os.environ.get("ORDINALQ_DATA")
    if folder and not Path(folder).is_dir():
        raise FileNotFoundError(f"ORDINALQ_DATA must name a folder, but {folder!r} is none.")
    found = _first_match(Path(folder), patterns) if folder else None
    return found or _first_match(cache_folder(), patterns)


def _first_match(folder: Path, patterns: Sequence[str]) -> Path | None:
    for pattern in patterns:
        for path in sorted(folder.glob(pattern)):
            return path
    return None


def fetch(url: str, file_name: str, checksum: str | None = None, advice: str | None = None) -> Path:
    """Download a file into the cache, unless it is there already, and return its path.

    A transfer that breaks is resumed, in this call and in the next one, provided that the address is the same and the
    server says that the file is, too. While another process fetches the same file, this one waits for it. The checksum
    is ``"sha256:..."`` or ``"md5:..."``, None where none is published; `advice` says what to do without the network,
    None names the folder ORDINALQ_DATA and `data`.
    """
    import pooch
    import requests

    folder = cache_folder()
    folder.mkdir(parents=True, exist_ok=True)

    def transfer(url: str, output_file: str, _: Any) -> None:
        part = folder / f"{file_name}.part"
        for attempt in range(1, ATTEMPTS + 1):
            try:
                _transfer(url, part)
                break
            except (requests.ConnectionError, requests.Timeout, requests.exceptions.ChunkedEncodingError) as error:
                if attempt == ATTEMPTS:
                    raise
                logger.info("%s: the transfer broke (%s), attempt %d follows", file_name, error, attempt + 1)
        shutil.move(part, output_file)
        _validator_file(part).unlink(missing_ok=True)

    pooch.get_logger().setLevel(logging.WARNING)  # it would report each step and the sum of each file
    try:
        with _lock(folder / f"{file_name}.lock"):
            return Path(pooch.retrieve(url, checksum, fname=file_name, path=folder, downloader=transfer))
    except requests.RequestException as error:
        raise _unreachable(url, error, advice or _put(file_name)) from error
    except ValueError as error:
        if checksum is None:
            raise
        raise ValueError(
            f"{url}: the file does not have the expected checksum {checksum} and was refused; fetch it again, or, if "
            f"its publisher has changed it, put a copy that you trust as {file_name} into the folder named by "
            "ORDINALQ_DATA."
        ) from error


def fetch_json(url: str, advice: str) -> Any:
    """Get a JSON document; `advice` says what to do without the network."""
    import requests

    try:
        with requests.get(url, timeout=TIMEOUT) as response:
            response.raise_for_status()
            return response.json()
    except requests.RequestException as error:
        raise _unreachable(url, error, advice) from error


def zenodo_archive(record: int, name: str, advice: str) -> Path:
    """Fetch the only archive of a Zenodo record as `name` and its ending, with the sum that Zenodo states."""
    files = fetch_json(f"{ZENODO}/{record}", advice).get("files", [])
    archives = [file for file in files if file["key"].endswith(ARCHIVES)]
    if len(archives) != 1:
        names = ", ".join(file["key"] for file in files) or "no file"
        raise ValueError(f"Zenodo record {record}: expected one archive, got {names}; {advice}.")
    [file] = archives
    ending = next(ending for ending in ARCHIVES if file["key"].endswith(ending))
    return fetch(file["links"]["self"], name + ending, file["checksum"])


def openml_file(data_id: int, file_name: str) -> Path:
    """Fetch the ARFF file of an OpenML data set, and keep beside it which column is the target."""
    advice = _put(file_name)
    description = fetch_json(f"{OPENML}/{data_id}", advice)["data_set_description"]
    path = fetch(description["url"], file_name, f"md5:{description['md5_checksum']}")
    target = {"target": description["default_target_attribute"]}
    write_bytes(path.with_name(f"{path.name}.json"), json.dumps(target).encode())
    return path


def openml_target(path: Path) -> str | None:
    """Return the target column that OpenML states for a fetched file, None for any other file."""
    statement = path.with_name(f"{path.name}.json")
    return str(json.loads(statement.read_text(encoding="utf-8"))["target"]) if statement.is_file() else None


def _put(file_name: str) -> str:
    return f"put it as {file_name} into the folder named by ORDINALQ_DATA, or name it with data=PATH"


def _unreachable(url: str, error: Exception, advice: str) -> ConnectionError:
    reason = " ".join(str(error).split())
    return ConnectionError(
        f"{url} cannot be reached; without the network, get the file on another machine and {advice}. ({reason[:200]})"
    )


@contextmanager
def _lock(path: Path) -> Iterator[None]:
    """Wait until no other process or thread holds the lock, and hold it; the system frees it when a process dies."""
    waiting = False
    while (file := try_lock(path)) is None:
        if not waiting:
            logger.warning("%s is being fetched by another process: waiting for it", path.with_suffix(""))
            waiting = True
        time.sleep(POLL_SECONDS)
    try:
        yield
    finally:
        with suppress(OSError):  # Windows does not remove an open file
            path.unlink()
        file.close()


def _transfer(url: str, part: Path) -> None:
    """Download `url` to `part`, continuing what is there if the server confirms that it is the same file."""
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
        if response.status_code == 416:  # nothing after what we have: begin anew
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
