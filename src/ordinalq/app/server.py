"""Serving the page on this machine, and cleaning up behind it."""

import os
import secrets
import shutil
import socket
import tempfile
import threading
import webbrowser
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import uvicorn

from ordinalq._utils.parallel import try_lock
from ordinalq.app import jobs, work
from ordinalq.app.routes import build

# Only this machine: the page has no users, no passwords and no encryption.
HOST = "127.0.0.1"
PREFIX = "ordinalq-app-"
LOCK = "lock"
# Requests at the same time; a browser makes a handful.
MAX_REQUESTS = 64
# Seconds that requests under way are given at the end.
PATIENCE = 2


def serve(port: int, say: Callable[[str], object], *, browser: bool = True) -> None:
    """Serve the page until the program is ended; port 0 takes a free one, `say` is told the address with the token."""
    with _listening(port) as listening, private_folder() as folder:
        port = listening.getsockname()[1]
        token = secrets.token_urlsafe(24)
        config = uvicorn.Config(
            build(folder, port, token),
            http="h11",
            ws="none",
            log_level="error",
            access_log=False,
            server_header=False,
            proxy_headers=False,
            limit_concurrency=MAX_REQUESTS,
            timeout_graceful_shutdown=PATIENCE,
        )
        address = f"http://{HOST}:{port}/?token={token}"
        say(address)
        # The first process takes seconds to import everything: before it is needed.
        threading.Thread(target=jobs.run, args=(work.warm, {}), daemon=True).start()
        if browser:
            threading.Timer(0.5, webbrowser.open, (address,)).start()
        uvicorn.Server(config).run(sockets=[listening])


@contextmanager
def _listening(port: int) -> Iterator[socket.socket]:
    with socket.socket() as listening:
        # A server that has just ended leaves its port for a minute otherwise; on Windows this would share it.
        if os.name == "posix":
            listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            listening.bind((HOST, port))
            listening.listen()  # a browser that is faster than we are waits
        except OSError as error:
            raise ValueError(f"port {port} cannot be used ({error.strerror}): give another one.") from error
        yield listening


@contextmanager
def private_folder() -> Iterator[Path]:
    """Give a folder that nobody else can read, and remove it; also those of servers that were killed."""
    for old in Path(tempfile.gettempdir()).glob(f"{PREFIX}*"):
        _remove_left(old)
    folder = Path(tempfile.mkdtemp(prefix=PREFIX))
    lock = try_lock(folder / LOCK)
    try:
        yield folder
    finally:
        if lock is not None:
            lock.close()
        shutil.rmtree(folder, ignore_errors=True)


def _remove_left(old: Path) -> None:
    """Remove the folder of a server that is no more; its lock is free."""
    if old.is_symlink() or not (old / LOCK).is_file() or (hasattr(os, "getuid") and old.stat().st_uid != os.getuid()):
        return
    lock = try_lock(old / LOCK)
    if lock is not None:
        lock.close()
        shutil.rmtree(old, ignore_errors=True)
