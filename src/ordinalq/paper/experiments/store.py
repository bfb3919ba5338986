"""Store of an experiment: one Parquet file per finished unit of work.

The store is a folder that one run uses at a time. A part is named ``KIND-KEY-DIGEST.parquet``. KEY is a hash of
everything that determines the content, so that a computed part can be found. DIGEST is a hash of the bytes, so that
damage is detected. A part is written under a temporary name and renamed, so that it is either complete or absent,
whenever the run is killed.
"""

import ast
import errno
import hashlib
import io
import json
import logging
import os
import platform
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from functools import cache
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from ordinalq._utils.extras import require_extra
from ordinalq._utils.parallel import try_lock
from ordinalq.io.writing import write_bytes

with require_extra("paper", "running experiments"):
    import pyarrow.parquet  # noqa: F401 - pandas writes Parquet files with it

logger = logging.getLogger("ordinalq")

FORMAT = "ordinalq experiment 1"
MARK = "run.json"  # marks a folder of results, with the settings of the run
PARTIAL = ".partial-"  # beginning of the name of a file that is being written
DIGITS = 20  # hexadecimal digits of a hash
# What results depend on besides our own code and the configuration.
PACKAGES = ("numpy", "scipy", "scikit-learn")
ROOT = Path(__file__).parents[2]  # folder of the package


class Store:
    """Folder of one experiment.

    Use it as ``with open_store(folder, identity) as store``.

    Attributes
    ----------
    folder : Path
    damaged : list of str
        Parts that were found damaged and removed.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.damaged: list[str] = []

    @property
    def results(self) -> Path:
        """Folder of the parts."""
        return self.folder / "results"

    def get(self, kind: str, key: str) -> pd.DataFrame | None:
        """Return a part, or None if it does not exist or is damaged.

        A damaged part is removed and reported.
        """
        for path in sorted(self.results.glob(f"{kind}-{key}-*.parquet")):
            content = path.read_bytes()
            if path.stem.rpartition("-")[2] == digest(content):
                return pd.read_parquet(io.BytesIO(content))
            logger.warning("%s is damaged and will be computed again", path)
            self.damaged.append(path.name)
            path.unlink()
        return None

    def has(self, kind: str, key: str) -> bool:
        """Return whether a part exists and is complete."""
        return self.get(kind, key) is not None

    def put(self, kind: str, key: str, table: pd.DataFrame) -> None:
        """Write a part; it replaces an earlier one."""
        buffer = io.BytesIO()
        table.to_parquet(buffer, index=False)
        content = buffer.getvalue()
        new = self.results / f"{kind}-{key}-{digest(content)}.parquet"
        self.write(new, content)
        for path in self.results.glob(f"{kind}-{key}-*.parquet"):
            if path != new:
                path.unlink()

    def write(self, path: Path, content: bytes) -> None:
        """Write a file atomically."""
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            write_bytes(path, content, prefix=PARTIAL, sync=True)
        except OSError as error:
            if error.errno in (errno.ENOSPC, errno.EDQUOT):
                raise OSError(
                    error.errno, f"the disk of {self.folder} is full; what is finished is kept: make room and run again"
                ) from error
            raise

    def identify(self, more: Mapping[str, Any]) -> None:
        """Add to the identity of the experiment.

        Raise ValueError if the folder has another identity.
        """
        old = _mark(self.folder)
        if any(name in old["experiment"] and old["experiment"][name] != value for name, value in more.items()):
            raise FileExistsError(
                f"{self.folder} holds the same experiment on other data, or with other samples; name another folder."
            )
        if not set(more) <= set(old["experiment"]):
            self.write(self.folder / MARK, to_json({**old, "experiment": old["experiment"] | dict(more)}).encode())


@contextmanager
def open_store(folder: str | Path, identity: Mapping[str, Any]) -> Iterator[Store]:
    """Lock the folder of an experiment, creating it if absent, and yield its store.

    The folder must be absent, empty, or from an earlier run with the same identity. A new folder is removed again if an
    error occurs before it has results.
    """
    folder = Path(folder)
    check_folder(folder, identity)
    made = [path for path in (folder, *folder.parents) if not path.exists()]
    folder.mkdir(parents=True, exist_ok=True)
    lock = try_lock(folder / ".lock")
    if lock is None:
        raise FileExistsError(f"{folder} is in use by another run; wait for it, or name another folder.")
    store = Store(folder)
    try:
        for left in folder.rglob(f"{PARTIAL}*"):  # by a run that was killed
            left.unlink()
        if not (folder / MARK).exists():
            store.write(folder / MARK, to_json({"format": FORMAT, "experiment": dict(identity)}).encode())
        yield store
    except BaseException:
        if made and not store.results.exists():
            for name in (MARK, "log.txt"):
                (folder / name).unlink(missing_ok=True)
        raise
    finally:
        (folder / ".lock").unlink(missing_ok=True)
        lock.close()
        with suppress(OSError):  # they are not empty, then
            for path in made:
                path.rmdir()


def check_folder(folder: Path, identity: Mapping[str, Any]) -> None:
    """Raise an error unless the folder can be used for the experiment.

    It must be writable and contain only an earlier run of the experiment.
    """
    if folder.exists() and not folder.is_dir():
        raise NotADirectoryError(f"{folder} must be a folder, but it is a file.")
    above = next(path for path in (folder, *folder.absolute().parents) if path.exists())
    if not above.is_dir() or not os.access(above, os.W_OK):
        raise PermissionError(f"{folder} cannot be written, because of {above}; name another folder.")
    present = sorted(path.name for path in folder.iterdir()) if folder.exists() else []
    if all(name == ".lock" or name.startswith(PARTIAL) for name in present):
        return
    if MARK not in present:
        other = next(name for name in present if name != ".lock")
        raise FileExistsError(
            f"{folder} must be absent, empty or written by ordinalq, but holds {other!r}; name another folder."
        )
    old = _mark(folder)["experiment"]
    different = [f"{name} {old.get(name)!r}" for name in identity if old.get(name) != identity[name]]
    if different:
        raise FileExistsError(f"{folder} holds another experiment ({', '.join(different)}); name another folder.")


def read_mark(folder: Path) -> dict[str, Any]:
    """Return the description of an experiment.

    Errors of files, JSON and keys are those of Python.
    """
    found = json.loads((folder / MARK).read_text(encoding="utf-8"))
    if found["format"] != FORMAT:
        raise ValueError(f"its format is {found['format']!r}")
    return {**found, "experiment": dict(found["experiment"])}


def _mark(folder: Path) -> dict[str, Any]:
    """Return the identity that is stored in the folder."""
    try:
        return read_mark(folder)
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise FileExistsError(
            f"{folder / MARK} is damaged, or ordinalq did not write it; name another folder, or restore it. ({error})"
        ) from error


def key_of(description: Any) -> str:
    """Return the hash of a description that JSON can express."""
    return digest(to_json(description).encode())


def to_json(value: Any) -> str:
    """Return JSON text, the same for equal values."""
    return json.dumps(value, sort_keys=True, indent=1, default=_plain)


def versions() -> dict[str, str]:
    """Return the versions of the packages that results depend on."""
    return {name: version(name) for name in ("ordinalq", *PACKAGES)}


def code_hash(modules: Iterable[str], alone: Iterable[str] = ()) -> str:
    """Return a hash of the source of modules and of all their imports.

    Only modules and imports of the package count. Modules in `alone` count without their imports.
    """
    found: set[str] = set()
    left = list(modules)
    while left:
        name = left.pop()
        if name not in found:
            found.add(name)
            left += _imported(name)
    digest = hashlib.sha256()
    for name in sorted(found | set(alone)):
        digest.update(_source(name))
    return digest.hexdigest()[:DIGITS]


def _path(module: str) -> Path:
    """Return the file of a module of the package."""
    path = ROOT.joinpath(*module.split(".")[1:])
    return path / "__init__.py" if path.is_dir() else path.with_suffix(".py")


@cache
def _source(module: str) -> bytes:
    return _path(module).read_bytes()


@cache
def _imported(module: str) -> tuple[str, ...]:
    """Return the modules of the package that a module imports, in functions as well."""
    found = []
    for node in ast.walk(ast.parse(_source(module))):
        if isinstance(node, ast.ImportFrom) and (node.module or "").partition(".")[0] == ROOT.name:
            parts = [f"{node.module}.{alias.name}" for alias in node.names]
            found += [part if _path(part).exists() else str(node.module) for part in parts]
    # Figures show results and do not change them.
    return tuple(name for name in found if not name.startswith(f"{ROOT.name}.plot"))


def machine() -> dict[str, Any]:
    """Return the description of the machine for the report."""
    return {"python": platform.python_version(), "system": platform.platform(), "processors": os.cpu_count()}


def content_hash(*arrays: Any) -> str:
    """Return a hash of the content of arrays, sparse arrays or data frames."""
    digest = hashlib.sha256()
    for array in arrays:
        if hasattr(array, "indptr"):
            parts = [array.data, array.indices, array.indptr]
        elif hasattr(array, "columns"):
            parts = [pd.util.hash_pandas_object(array).to_numpy(), np.array([str(name) for name in array.columns])]
        else:
            parts = [np.asarray(array)]
        for part in parts:
            digest.update(f"{part.dtype} {part.shape}".encode())
            digest.update(
                np.ascontiguousarray(part).tobytes() if part.dtype != object else repr(part.tolist()).encode()
            )
    return digest.hexdigest()[:DIGITS]


def digest(content: bytes) -> str:
    """Return a hash of bytes."""
    return hashlib.sha256(content).hexdigest()[:DIGITS]


def _plain(value: Any) -> Any:
    if isinstance(value, np.generic):
        return value.item()
    if isinstance(value, np.ndarray | tuple | set):
        return list(value)
    raise TypeError(f"{value!r} cannot be written as JSON.")
