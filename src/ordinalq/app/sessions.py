"""Sessions of browsers and their projects, and messages in the words of the web app."""

import re
import secrets
import shutil
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

from ordinalq.app.jobs import CANCELLED, FAILED, RUNNING, Job
from ordinalq.app.uploads import SENT, Refused
from ordinalq.app.work import Answer, Asked, Choices, Compared, Fitted, Planned, Table
from ordinalq.tables.preview import TablePreview

# Messages of the library in the words of the page: what it calls parameters are fields here.


# Parameters as messages write them, and what the page calls them.
WORDS = {
    r"skip_unlabelled=True": "the tick that leaves out rows without a class",
    r"(?:give )?all (?:of them|classes) in (?:ascending )?order, classes=\[\.\.\.\]": "put the classes in order",
    r"(?:name it in )?classes=\[\.\.\.\]": "put the classes in order",
    r"name (?:it|the column|some|other columns) (?:in|with) (?:(?:features|text|categories)=\[\.\.\.\](?: or )?)+": (
        "choose what the column is used as"
    ),
    r"(?:features|text|categories)=\[\.\.\.\]": "what the columns are used as",
    r"(?:give )?quoting='none'": "choose that quotes are plain characters",
    r"name its format with dates=\{[^}]*\}": "write them as 2024-01-31",
    r"if you know who made them, [^;]*trusted=\[\.\.\.\]": "only the command line can be told to trust them",
}


def on_page(message: str) -> str:
    """Return a message in the words of the page.

    >>> on_page("fill it, or use skip_unlabelled=True.")
    'fill it, or use the tick that leaves out rows without a class.'
    >>> on_page("is no text; name it in text=[...] or categories=[...] to keep it")
    'is no text; choose what the column is used as to keep it'
    """
    for pattern, words in WORDS.items():
        message = re.sub(pattern, words, message)
    return message


# Each browser that was given the token has a session; more are a mistake, or an attack.
MAX_SESSIONS = 50
MAX_WALKS = 20
# Pieces of work at the same time, of all sessions together.
MAX_JOBS = 4
# What is found from a model, and from estimates: another one makes it outdated.
FROM = {"fitted": ("answer", "compared", "planned"), "answer": ("compared", "planned")}
BUSY = "this work is not done yet: wait for it, or cancel it."


class Walk:
    """One way from a labelled table to estimates: its files, what was chosen, what was found, and the work under way.

    Its folder is made here and removed by :meth:`end`.
    """

    def __init__(self, folder: Path) -> None:
        self.key = folder.name
        self.folder = folder
        folder.mkdir(mode=0o700)
        self.title = "New work"
        self.step = "/table"
        self.table: Table | None = None
        self.preview: TablePreview | None = None
        self.choices: Choices | None = None
        self.model: Path | None = None
        self.fitted: Fitted | None = None
        self.sample: Table | None = None
        self.sample_preview: TablePreview | None = None
        self.asked = Asked()
        self.answer: Answer | None = None
        self.compared: Compared | None = None
        self.planned: Planned | None = None
        # Tables of a built-in example that wait for their step.
        self.ready: dict[str, Table] = {}
        self.job: Job | None = None
        self.problem = ""
        self.notes: list[str] = []
        self._keep: tuple[str, ...] = ()
        self._next = ""
        self._lock = threading.Lock()

    def begin(self, title: str, work: Callable[..., Any], arguments: dict[str, Any], *keep: str, step: str) -> None:
        """Start a piece of work, one at a time; its result, or each part of it, is kept as an attribute.

        If all goes well, it leads to a step.
        """
        with self._lock:
            if self.is_busy:
                raise Refused(BUSY, 409)
            self.problem, self.notes = "", []
            self.job, self._keep, self._next = Job(title, work, arguments), keep, step

    @property
    def is_busy(self) -> bool:
        """Whether work is under way."""
        return self.job is not None and self.job.state == RUNNING

    def settle(self) -> None:
        """Take the result of work that has ended since the last look."""
        with self._lock:
            job = self.job
            if job is None or job.state == RUNNING:
                return
            self.job, self.notes = None, job.notes
            if job.state == FAILED:
                self.problem = job.problem
            elif job.state == CANCELLED:
                self.problem = "cancelled."
            else:
                found = (job.result,) if len(self._keep) == 1 else job.result
                outdated = [later for name in self._keep for later in FROM.get(name, ())]
                vars(self).update({**dict.fromkeys(outdated), **dict(zip(self._keep, found, strict=True))})
                self.step = self._next
            self._tidy()

    def cancel(self) -> None:
        """Stop the work under way."""
        if self.job is not None:
            self.job.cancel()
            self.job.wait(5)

    def shown(self, message: str) -> str:
        """Return a message in the words of the page, in which files have the names that the user gave them."""
        for table in (*self._tables(), *self.ready.values()):
            message = message.replace(str(table.path), table.shown)
        return on_page(message.replace(str(self.model), "the model").replace(f"{self.folder}/", ""))

    def _tables(self) -> list[Table]:
        """Return the tables of the walk, and those of labels that have come back."""
        tables = [table for table in (self.table, self.sample) if table is not None]
        return tables + [labels for table in tables for labels, _ in table.returned]

    def _tidy(self) -> None:
        """Remove tables that are needed no more: replaced, refused, or of work that failed."""
        kept = {table.path for table in self._tables()} | {self.model}
        for path in self.folder.glob(f"{SENT}*"):
            if path not in kept:
                path.unlink(missing_ok=True)

    def end(self) -> None:
        """Stop the work and remove the files."""
        self.cancel()
        shutil.rmtree(self.folder, ignore_errors=True)


class Session:
    """The walks of one browser."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        folder.mkdir(mode=0o700)
        self.walks: dict[str, Walk] = {}

    def begin(self) -> Walk:
        """Start a walk."""
        if len(self.walks) >= MAX_WALKS:
            raise Refused(f"there are {MAX_WALKS} pieces of work already: delete one of them first.", 429)
        walk = Walk(self.folder / secrets.token_hex(16))
        self.walks[walk.key] = walk
        return walk

    def end(self, key: str) -> None:
        """End a walk."""
        walk = self.walks.pop(key, None)
        if walk is not None:
            walk.end()


class Sessions:
    """All sessions; their files are in one private folder."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._sessions: dict[str, Session] = {}

    def begin(self) -> str:
        """Start a session and return its key, which is the cookie."""
        if len(self._sessions) >= MAX_SESSIONS:
            raise Refused("there are too many sessions: start `ordinalq app` again.", 429)
        key = secrets.token_urlsafe(32)
        self._sessions[key] = Session(self.folder / secrets.token_hex(16))
        return key

    def get(self, key: str) -> Session | None:
        """Return a session by its cookie."""
        return self._sessions.get(key)

    def check_jobs(self) -> None:
        """Raise an error if too much work runs at the same time."""
        if sum(walk.is_busy for session in self._sessions.values() for walk in session.walks.values()) >= MAX_JOBS:
            raise Refused(f"{MAX_JOBS} pieces of work are under way already: wait for one of them.", 429)

    def end(self) -> None:
        """Stop all work and remove all files."""
        for session in self._sessions.values():
            for key in list(session.walks):
                session.end(key)
        self._sessions.clear()
