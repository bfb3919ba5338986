"""Sessions of browsers, their projects, and messages of the web app."""

import re
import secrets
import shutil
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

from ordinalq.app.jobs import CANCELLED, FAILED, RUNNING, Job
from ordinalq.app.uploads import SENT, RequestError
from ordinalq.app.work import Answer, Choices, Compared, Fitted, Planned, PredictOptions, Table
from ordinalq.tables.preview import TablePreview

# Parameters in messages of the library, and their names in the web app.
WORDS = {
    r"skip_unlabelled=True": "the check box that skips rows without a class",
    r"(?:give )?all (?:of them|classes) in (?:ascending )?order, classes=\[\.\.\.\]": "put the classes in order",
    r"(?:name it in )?classes=\[\.\.\.\]": "put the classes in order",
    r"name (?:it|the column|some|other columns) (?:in|with) (?:(?:features|text|categories)=\[\.\.\.\](?: or )?)+": (
        "choose what the column is used as"
    ),
    r"sheet='NAME' reads another of": "choose another below:",
    r"(?:features|text|categories)=\[\.\.\.\]": "what the columns are used as",
    r"(?:give )?quoting='none'": "choose that quotes are plain characters",
    r"name its format with dates=\{[^}]*\}": "write them as 2024-01-31",
    r"if you know who made them, [^;]*trusted=\[\.\.\.\]": "only the command line can load them",
}


def with_app_names(message: str) -> str:
    """Return a message with the names of the web app.

    >>> with_app_names("fill it, or use skip_unlabelled=True.")
    'fill it, or use the check box that skips rows without a class.'
    >>> with_app_names("no text; name it in text=[...] or categories=[...] to keep it")
    'no text; choose what the column is used as to keep it'
    """
    for pattern, words in WORDS.items():
        message = re.sub(pattern, words, message)
    return message


# Each browser with the token has a session.
MAX_SESSIONS = 50
MAX_PROJECTS = 20
# Jobs at the same time, of all sessions together.
MAX_JOBS = 4
# Results that depend on a model and on estimates.
FROM = {"fitted": ("answer", "compared", "planned"), "answer": ("compared", "planned")}
BUSY = "a job of this project is running. Wait for it or cancel it."


class Project:
    """Project from a labelled table to estimates: files, choices, results and job.

    Its folder is made here and removed by :meth:`end`.
    """

    def __init__(self, folder: Path) -> None:
        self.key = folder.name
        self.folder = folder
        folder.mkdir(mode=0o700)
        self.title = "New project"
        self.step = "/table"
        self.table: Table | None = None
        self.preview: TablePreview | None = None
        self.choices: Choices | None = None
        self.model: Path | None = None
        self.fitted: Fitted | None = None
        self.sample: Table | None = None
        self.sample_preview: TablePreview | None = None
        self.options = PredictOptions()
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
        """Start a job; its results are stored in the attributes `keep`.

        Only one job runs at a time. If it succeeds, the project moves to `step`.
        """
        with self._lock:
            if self.is_busy:
                raise RequestError(BUSY, 409)
            self.problem, self.notes = "", []
            self.job, self._keep, self._next = Job(title, work, arguments), keep, step

    @property
    def is_busy(self) -> bool:
        """Whether a job is running."""
        return self.job is not None and self.job.state == RUNNING

    def store_result(self) -> None:
        """Store the result of a job that has ended."""
        with self._lock:
            job = self.job
            if job is None or job.state == RUNNING:
                return
            self.job, self.notes = None, job.notes
            if job.state == FAILED:
                self.problem = job.problem
            elif job.state == CANCELLED:
                self.problem = "the job was cancelled."
            else:
                found = (job.result,) if len(self._keep) == 1 else job.result
                outdated = [later for name in self._keep for later in FROM.get(name, ())]
                vars(self).update({**dict.fromkeys(outdated), **dict(zip(self._keep, found, strict=True))})
                self.step = self._next
            self._tidy()

    def cancel(self) -> None:
        """Stop the running job."""
        if self.job is not None:
            self.job.cancel()
            self.job.wait(5)

    def shown(self, message: str) -> str:
        """Return a message with the names of the web app and of uploaded files."""
        for table in (*self._tables(), *self.ready.values()):
            message = message.replace(str(table.path), table.shown)
        return with_app_names(message.replace(str(self.model), "the model").replace(f"{self.folder}/", ""))

    def _tables(self) -> list[Table]:
        """Return the tables of the project, and tables with returned labels."""
        tables = [table for table in (self.table, self.sample) if table is not None]
        return tables + [labels for table in tables for labels, _ in table.returned]

    def _tidy(self) -> None:
        """Remove files that are no longer needed."""
        kept = {table.path for table in self._tables()} | {self.model}
        for path in self.folder.glob(f"{SENT}*"):
            if path not in kept:
                path.unlink(missing_ok=True)

    def end(self) -> None:
        """Stop the job and remove the files."""
        self.cancel()
        shutil.rmtree(self.folder, ignore_errors=True)


class Session:
    """Projects of one browser."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        folder.mkdir(mode=0o700)
        self.projects: dict[str, Project] = {}

    def begin(self) -> Project:
        """Start a project."""
        if len(self.projects) >= MAX_PROJECTS:
            raise RequestError(f"a session can have at most {MAX_PROJECTS} projects. Delete one first.", 429)
        project = Project(self.folder / secrets.token_hex(16))
        self.projects[project.key] = project
        return project

    def end(self, key: str) -> None:
        """End a project."""
        project = self.projects.pop(key, None)
        if project is not None:
            project.end()


class Sessions:
    """All sessions; their files are in one private folder."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._sessions: dict[str, Session] = {}

    def begin(self) -> str:
        """Start a session and return its key, which is the cookie."""
        if len(self._sessions) >= MAX_SESSIONS:
            raise RequestError(
                f"the web app can have at most {MAX_SESSIONS} sessions. Start `ordinalq app` again.", 429
            )
        key = secrets.token_urlsafe(32)
        self._sessions[key] = Session(self.folder / secrets.token_hex(16))
        return key

    def get(self, key: str) -> Session | None:
        """Return a session by its cookie."""
        return self._sessions.get(key)

    def check_jobs(self) -> None:
        """Raise RequestError if too many jobs are running."""
        if (
            sum(project.is_busy for session in self._sessions.values() for project in session.projects.values())
            >= MAX_JOBS
        ):
            raise RequestError(f"{MAX_JOBS} jobs are running. Wait for one of them.", 429)

    def end(self) -> None:
        """Stop all jobs and remove all files."""
        for session in self._sessions.values():
            for key in list(session.projects):
                session.end(key)
        self._sessions.clear()
