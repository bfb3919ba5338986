"""Readers of the published files: numbers in text, tables by column name.

Each error names the file and the line.
"""

import logging
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import IO

import numpy as np
import pandas as pd

from ordinalq._utils.validation import Floats
from ordinalq.io.columns import convert_types, raise_for_cells, require_columns, short

logger = logging.getLogger("ordinalq")

MAX_LINE = 2**16  # bytes that are read at once of a line, which may have no end


def read_numbers(stream: IO[bytes], name: str, n_columns: int, first_line: int = 1) -> Floats:
    """Read comma-separated numbers without header, shape (N, n_columns).

    The stream is seekable and is positioned at line `first_line`.
    """
    start = stream.tell()
    first = next(_lines(stream, first_line), None)
    if first is None:
        raise ValueError(f"{name}: expected rows of {n_columns} numbers, but there are none.")
    if first[1].count(b",") == n_columns - 1:  # pandas would accept any content as columns
        stream.seek(start)
        try:
            # Fast, but neither strict nor precise about what is wrong: too few columns become missing values.
            table = pd.read_csv(stream, header=None, comment="%", dtype=np.float64, skipinitialspace=True).to_numpy()
            if table.shape[1] == n_columns and np.isfinite(table).all():
                return table
            reason = "it has missing values"
        except (ValueError, MemoryError) as error:  # also what cannot be parsed or decoded
            reason = str(error)
    stream.seek(start)
    for number, line in _lines(stream, first_line):
        cells = line.decode(errors="replace").split(",")
        if len(cells) != n_columns:
            raise ValueError(f"{name}, line {number}: expected {n_columns} columns, got {len(cells)}.")
        for column, value in enumerate(cells, start=1):
            if not _is_number(value):
                raise ValueError(f"{name}, line {number}: expected a number in column {column}, got {short(value)}.")
    raise ValueError(f"{name}: not a table of numbers: {reason}")


def _lines(stream: IO[bytes], first_line: int) -> Iterator[tuple[int, bytes]]:
    """Yield number and content of each line that is neither empty nor a comment."""
    for number, line in enumerate(iter(lambda: stream.readline(MAX_LINE), b""), start=first_line):
        if line.strip() and not line.lstrip().startswith(b"%"):
            yield number, line.rstrip(b"\r\n")


def read_arff(path: Path) -> pd.DataFrame:
    """Read a dense ARFF file whose attributes are all numbers."""
    names: list[str] = []
    with path.open("rb") as stream:
        for number, raw in enumerate(iter(lambda: stream.readline(MAX_LINE), b""), start=1):
            line = raw.decode("utf-8", errors="replace").strip()
            keyword = line.partition(" ")[0].partition("\t")[0].lower()
            if keyword == "@attribute":
                attribute, kind = _attribute(line[len(keyword) :].strip())
                if kind.lower() not in ("numeric", "real", "integer"):
                    raise ValueError(f"{path}, line {number}: expected a numeric attribute, got {kind!r}.")
                names.append(attribute)
            elif keyword == "@data":
                frame = pd.DataFrame(read_numbers(stream, str(path), len(names), number + 1), columns=names)
                frame.attrs["where"] = str(path)
                return frame
    raise ValueError(f"{path}: expected an ARFF file, but it has no line @data; is the download complete?")


def _attribute(text: str) -> tuple[str, str]:
    """Split ``'a name' REAL`` or ``name REAL`` into name and type."""
    if text[:1] in ("'", '"'):
        name, _, kind = text[1:].partition(text[0])
    else:
        name, _, kind = text.replace("\t", " ").partition(" ")
    return name, kind.strip()


def read_table(path: str | Path, *, nested: bool = False) -> pd.DataFrame:
    """Read a CSV, TSV, JSON lines, Parquet or ARFF file.

    The file extension determines the format. Compressed files such as ``.csv.gz`` are accepted.

    Parameters
    ----------
    path : path
        The file.
    nested : bool, default=False
        Accept lists in cells of Parquet files.

    Returns
    -------
    pandas.DataFrame
        Columns of numbers and of ISO 8601 dates are converted; in other columns, text such as "NA" is kept. The index
        of a text file has the line numbers.
    """
    path = Path(path)
    if path.suffix.lower() == ".arff" and path.is_file():
        return read_arff(path)
    from ordinalq.io.table import open_table

    return convert_types(open_table(path).read(nested=nested))


def numeric_columns(frame: pd.DataFrame, names: Sequence[str], where: str, *, accepts_missing: bool = False) -> Floats:
    """Return the named columns of a frame as numbers, shape (N, d).

    Further columns are ignored with one log line. Empty cells raise ValueError, unless `accepts_missing`. Then they are
    NaN.
    """
    require_columns(frame.columns, names, where)
    ignored = [str(name) for name in frame.columns if name not in set(names)]
    if ignored:
        logger.info("%s: %d columns are not used: %s", where, len(ignored), ", ".join(ignored[:20]))
    columns = np.empty((len(frame), len(names)))
    for j, name in enumerate(names):
        column = frame[name]
        values = pd.to_numeric(column, errors="coerce").to_numpy(dtype=np.float64, na_value=np.nan)
        raise_for_cells(frame, name, np.isnan(values) & (~column.isna().to_numpy() | (not accepts_missing)), "a number")
        columns[:, j] = values
    return columns


def _is_number(text: str) -> bool:
    try:
        return bool(np.isfinite(float(text)))
    except ValueError:
        return False
