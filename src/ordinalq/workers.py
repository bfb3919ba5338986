"""Work in other processes that ends when nobody waits for it any more."""

import os
import signal
import threading
import time
from collections.abc import Callable
from typing import Any

# Seconds between two looks at whether the parent is still there.
POLL = 1.0

_watching = threading.Event()


class Watched:
    """A function whose worker process ends by itself when the process that started it is gone, however it ended.

    Workers of joblib wait for more work otherwise, for minutes, with all that they have read in memory.

    Parameters
    ----------
    function : callable
        What is called in the worker, ``delayed(Watched(function))(...)``.
    """

    def __init__(self, function: Callable[..., Any]) -> None:
        self.function = function
        self.owner = os.getpid()

    def __call__(self, *arguments: Any, **options: Any) -> Any:
        """Call the function; watch the parent from now on."""
        # Threads of the owner, and workers of a cluster, have other parents.
        if os.getppid() == self.owner and not _watching.is_set():
            _watching.set()
            threading.Thread(target=_watch, args=(self.owner,), daemon=True).start()
        return self.function(*arguments, **options)


def _watch(parent: int) -> None:
    while os.getppid() == parent:
        time.sleep(POLL)
    os.kill(os.getpid(), signal.SIGTERM)
