"""Locks between processes that end with the process, however it ends."""

import os
import sys
from pathlib import Path
from typing import IO


def try_lock(path: Path) -> IO[bytes] | None:
    """Lock a file and return it; None if another one has the lock."""
    file = path.open("ab")
    try:
        if sys.platform == "win32":
            import msvcrt

            msvcrt.locking(file.fileno(), msvcrt.LK_NBLCK, 1)
        else:
            import fcntl

            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        # The last holder may have removed the file between our opening and our locking it.
        if os.path.samestat(os.fstat(file.fileno()), path.stat()):
            return file
    except (BlockingIOError, PermissionError, FileNotFoundError):
        pass
    file.close()
    return None
