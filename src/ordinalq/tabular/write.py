"""Writing results: whole files or none."""

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ordinalq.tabular.read import ENDINGS

if TYPE_CHECKING:
    import pandas as pd

PICTURES = ("png", "svg", "pdf")


@contextmanager
def replacing(path: Path) -> Iterator[Path]:
    """Give a temporary name in the same folder, which becomes `path` at the end; an error leaves nothing behind."""
    handle, name = tempfile.mkstemp(prefix=f".{path.name}.", suffix=path.suffix, dir=path.parent)
    os.close(handle)
    temporary = Path(name)
    try:
        yield temporary
        # mkstemp lets nobody else read; give what a plain `open` would have given.
        mask = os.umask(0)
        os.umask(mask)
        temporary.chmod(0o666 & ~mask)
        temporary.replace(path)
    finally:
        temporary.unlink(missing_ok=True)


def check_output(path: Path, *inputs: Path) -> Path:
    """Return a path that can be written and is none of the inputs."""
    if path.is_dir():
        raise ValueError(f"{path}: expected the name of a file to write, got a folder.")
    if not path.parent.is_dir():
        raise FileNotFoundError(f"{path.parent}: no such folder to write {path.name} to.")
    if not os.access(path.parent, os.W_OK):
        raise PermissionError(f"{path.parent}: not allowed to write {path.name} there.")
    for given in inputs:
        if path.exists() and given.exists() and path.samefile(given):
            raise ValueError(f"{path}: expected another file to write than the one that is read.")
    return path


def table_format(path: Path) -> str:
    """Return the format of a table to write, by the ending of its name."""
    ending = path.suffix.lower().removeprefix(".")
    if ending not in ENDINGS:
        raise ValueError(f"{path}: expected a name that ends with .csv, .tsv, .jsonl or .parquet.")
    return ENDINGS[ending]


def picture_format(path: Path) -> str:
    """Return the format of a picture to write, by the ending of its name."""
    ending = path.suffix.lower().removeprefix(".")
    if ending not in PICTURES:
        raise ValueError(f"{path}: expected a name that ends with .png, .svg or .pdf.")
    return ending


def write_table(frame: "pd.DataFrame", path: Path, kind: str) -> None:
    """Write a table in one of the formats of `ordinalq.tabular.read`."""
    if kind == "parquet":
        frame.to_parquet(path, index=False)
    elif kind == "jsonl":
        frame.to_json(path, orient="records", lines=True, force_ascii=False, double_precision=15)
    else:
        frame.to_csv(path, index=False, sep="\t" if kind == "tsv" else ",", lineterminator="\n")


def save_picture(axes: Any, path: Path, kind: str) -> None:
    """Write the figure of `axes` (one, or an array of them) and let go of it."""
    import matplotlib.pyplot as plt
    import numpy as np

    figure = np.ravel(axes)[0].figure
    try:
        figure.savefig(path, format=kind, dpi=150, bbox_inches="tight")
    finally:
        plt.close(figure)
