"""Benchmarks in parts, which are computed once and stored.

An interrupted run can be continued.
"""

from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import pandas as pd

from ordinalq.io.writing import replacing


def run_parts(
    folder: Path,
    profile: str,
    keys: tuple[str, ...],
    parts: Iterable[tuple[Any, ...]],
    compute: Callable[..., Iterable[dict[str, Any]]],
    summarize: Callable[[pd.DataFrame], pd.DataFrame],
) -> Iterator[tuple[Any, ...]]:
    """Compute the parts of a benchmark and yield each finished part.

    The scores are written to ``scores.csv`` and the summary to ``table.csv``. Parts that ``scores.csv`` already has for
    this profile are not computed again, unless a method failed in them.

    Parameters
    ----------
    folder : path
        Folder of the two files; it is created if necessary.
    profile : str
        Profile of the run. Scores of other profiles are not used.
    keys : tuple of str
        Columns of ``scores.csv`` that identify a part.
    parts : iterable of tuples
        Values of these columns for each part, in the order of the computation.
    compute : callable
        Function of these values that yields the rows of a part.
    summarize : callable
        Function of all rows that returns the table of the benchmark.

    Yields
    ------
    tuple
        The values that identify a part.
    """
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / "scores.csv"
    done = _finished(path, profile, keys) if path.exists() else set()
    for part in parts:
        if tuple(map(str, part)) not in done:
            rows = pd.DataFrame(compute(*part)).assign(profile=profile)
            rows.to_csv(path, mode="a", header=not path.exists(), index=False)
            summarize(_read(path, profile, keys)).to_csv(folder / "table.csv")
        yield part


def _finished(path: Path, profile: str, keys: tuple[str, ...]) -> set[tuple[Any, ...]]:
    """Return the parts of a profile in which no method failed.

    The rows of the others are removed from the file.
    """
    table = pd.read_csv(path, keep_default_na=False, dtype=str)
    parts = pd.MultiIndex.from_frame(table[[*keys, "profile"]])
    table = table[~parts.isin(parts[table["score"] == ""])]
    with replacing(path) as new:
        table.to_csv(new, index=False)
    return set(table.loc[table["profile"] == profile, list(keys)].itertuples(index=False, name=None))


def _read(path: Path, profile: str, keys: tuple[str, ...]) -> pd.DataFrame:
    """Return the rows of a profile, with keys as text.

    A column of years would be read as numbers otherwise.
    """
    table = pd.read_csv(path, keep_default_na=False, dtype=dict.fromkeys(keys, str))
    return table[table["profile"] == profile].assign(score=lambda rows: pd.to_numeric(rows["score"]))
