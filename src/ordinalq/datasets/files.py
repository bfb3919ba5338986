"""Reading the published files: numbers in text, tables by column names; each error names the file and the line."""

import csv
import gzip
import io
import logging
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

if TYPE_CHECKING:
    import pandas as pd

logger = logging.getLogger("ordinalq")

# What pandas takes for a missing value by default.
MISSING_WORDS = (
    *("#N/A", "#N/A N/A", "#NA", "-1.#IND", "-1.#QNAN", "-NaN", "-nan", "1.#IND", "1.#QNAN"),
    *("<NA>", "N/A", "NA", "NULL", "NaN", "None", "n/a", "nan", "null"),
)

# What other programs call a column without a name, which only numbers the rows.
UNNAMED = ("", "__index_level_0__")


def read_numbers(stream: IO[bytes], name: str, n_columns: int, first_line: int = 1) -> npt.NDArray[np.float64]:
    """Read comma-separated numbers, no header, all rows with `n_columns`.

    Parameters
    ----------
    stream : binary file
        Positioned at the first row; it must be seekable.
    name : str
        File name for errors.
    n_columns : int
    first_line : int, default=1
        Number of the line at which the stream stands.

    Returns
    -------
    ndarray (N, n_columns)
    """
    import pandas as pd

    start = stream.tell()
    try:
        # Fast, but neither strict nor precise about what is wrong: too few columns become missing values.
        table = pd.read_csv(stream, header=None, comment="%", dtype=np.float64, skipinitialspace=True).to_numpy()
    except pd.errors.EmptyDataError as error:
        raise ValueError(f"{name}: expected rows of {n_columns} numbers, but there are none.") from error
    except ValueError as error:  # also what cannot be parsed or decoded
        _find_bad_line(stream, start, name, n_columns, first_line)
        raise ValueError(f"{name}: not a table of numbers: {error}") from error
    if table.shape[1] != n_columns or not np.isfinite(table).all():
        _find_bad_line(stream, start, name, n_columns, first_line)
    return table


def _find_bad_line(stream: IO[bytes], start: int, name: str, n_columns: int, first_line: int) -> None:
    """Raise an error for the first line that is not `n_columns` finite numbers."""
    stream.seek(start)
    text = io.TextIOWrapper(stream, encoding="utf-8", errors="replace", newline="")
    try:
        for number, row in enumerate(csv.reader(text), start=first_line):
            if not row or row[0].lstrip().startswith("%"):
                continue
            if len(row) != n_columns:
                raise ValueError(f"{name}, line {number}: expected {n_columns} columns, got {len(row)}.")
            for column, value in enumerate(row, start=1):
                if not _is_number(value):
                    raise ValueError(f"{name}, line {number}: expected a number in column {column}, got {value!r}.")
    finally:
        text.detach()


def read_arff(path: Path) -> "pd.DataFrame":
    """Read a dense ARFF file whose attributes are all numbers."""
    import pandas as pd

    names: list[str] = []
    with path.open("rb") as stream:
        for number, raw in enumerate(iter(stream.readline, b""), start=1):
            line = raw.decode("utf-8", errors="replace").strip()
            keyword = line.partition(" ")[0].partition("\t")[0].lower()
            if keyword == "@attribute":
                attribute, kind = _attribute(line[len(keyword) :].strip())
                if kind.lower() not in ("numeric", "real", "integer"):
                    raise ValueError(f"{path}, line {number}: expected a numeric attribute, got {kind!r}.")
                names.append(attribute)
            elif keyword == "@data":
                return pd.DataFrame(read_numbers(stream, str(path), len(names), number + 1), columns=names)
    raise ValueError(f"{path}: expected an ARFF file, but it has no line @data; is the download complete?")


def _attribute(text: str) -> tuple[str, str]:
    """Split ``'a name' REAL`` or ``name REAL`` into name and type."""
    if text[:1] in ("'", '"'):
        name, _, kind = text[1:].partition(text[0])
    else:
        name, _, kind = text.replace("\t", " ").partition(" ")
    return name, kind.strip()


def read_table(path: str | Path) -> "pd.DataFrame":
    """Read a CSV, TSV, Parquet or ARFF file; the ending says which (``.csv.gz`` too).

    In a column of text, words such as "NA" are missing values if all else are numbers; otherwise they stay words.
    """
    import pandas as pd

    path = Path(path)
    if not path.is_file():
        raise FileNotFoundError(f"{path}: no such file.")
    kinds = path.name.lower().removesuffix(".gz").rpartition(".")[2]
    if kinds == "arff":
        return read_arff(path)
    try:
        if kinds in ("parquet", "pq"):
            return pd.read_parquet(path).reset_index(drop=True)  # rows are numbered as in the file
        if kinds in ("csv", "tsv"):
            # Only the empty cell is missing: the text "None" or "NA" may well be a category. Read at once, a column
            # has one type.
            separator = "," if kinds == "csv" else "\t"
            frame = pd.read_csv(path, sep=separator, keep_default_na=False, na_values=[""], low_memory=False)
            return _numbers_with_gaps(frame.rename(columns=lambda name: str(name).strip()), path)
    except (ValueError, OSError, EOFError, UnicodeDecodeError) as error:
        raise ValueError(f"{path}: not a readable {kinds} file: {' '.join(str(error).split())}") from error
    raise ValueError(f"{path}: expected a file .csv, .tsv, .parquet or .arff (or .csv.gz).")


def _numbers_with_gaps(frame: "pd.DataFrame", path: Path) -> "pd.DataFrame":
    """Make those columns numbers in which nothing but words for a missing value stands in the way."""
    import pandas as pd

    for j, name in enumerate(frame.columns):
        column = frame.iloc[:, j]
        if not (pd.api.types.is_object_dtype(column) or pd.api.types.is_string_dtype(column)):
            continue
        missing = column.isna() | column.astype(str).str.strip().isin(MISSING_WORDS)
        numbers = pd.to_numeric(column.mask(missing), errors="coerce")
        if missing.all() or (numbers.isna() & ~missing).any():
            continue
        n_words = int((missing & column.notna()).sum())
        logger.info(
            "%s: column %r holds numbers and %d words such as NA, which are missing values", path, name, n_words
        )
        frame.isetitem(j, numbers.to_numpy())
    return frame


def numeric_columns(
    frame: "pd.DataFrame", names: Sequence[str], where: str, *, gaps: bool = False
) -> npt.NDArray[np.float64]:
    """Take the named columns of a frame as numbers (N, d); further columns are ignored with one log line.

    Empty cells are an error, unless `gaps` are allowed; then they are NaN.
    """
    import pandas as pd

    require_columns(frame.columns, names, where)
    ignored = [str(name) for name in frame.columns if name not in set(names)]
    if ignored:
        logger.info("%s: %d columns are not used: %s", where, len(ignored), ", ".join(ignored[:20]))
    columns = np.empty((len(frame), len(names)))
    for j, name in enumerate(names):
        column = frame[name]
        values = pd.to_numeric(column, errors="coerce").to_numpy(dtype=np.float64, na_value=np.nan)
        unreadable = np.isnan(values) & (~column.isna().to_numpy() | (not gaps))
        if unreadable.any():
            at = int(np.argmax(unreadable))
            row = int(frame.index[at])  # of the file, also where rows were chosen before
            # The header is line 1 of a text file, its first row line 2; other files have rows only.
            place = f"row {row}" if where.endswith((".parquet", ".pq")) else f"line {row + 2}"
            got = "nothing" if column.isna().iloc[at] else repr(column.iloc[at])
            raise ValueError(f"{where}, {place}: expected a number in column {name!r}, got {got}.")
        columns[:, j] = values
    return columns


def require_columns(present: Iterable[Any], names: Sequence[str], where: str) -> None:
    """Raise an error that lists the columns that are missing."""
    present = list(present)
    missing = [name for name in names if name not in set(present)]
    if missing:
        # Other files have no line of names.
        place = ", line 1" if where.removesuffix(".gz").endswith((".csv", ".tsv", ".arff")) else ""
        named = [name for name in present if name not in UNNAMED]
        raise ValueError(
            f"{where}{place}: {len(missing)} of {len(names)} columns are missing: {_first(missing)}; there are "
            f"{len(named)} columns: {_first(named)}."
        )


def _first(names: Sequence[Any]) -> str:
    """Return the first five names.

    >>> _first(["a", "b"]), _first(range(8))
    ("'a', 'b'", '0, 1, 2, 3, 4 and 3 more')
    """
    return ", ".join(map(repr, names[:5])) + (f" and {len(names) - 5} more" if len(names) > 5 else "")


def open_binary(path: Path) -> IO[bytes]:
    """Open a file, unpacking ``.gz`` on the way."""
    return gzip.open(path, "rb") if path.name.endswith(".gz") else path.open("rb")  # type: ignore[return-value]


def _is_number(text: str) -> bool:
    try:
        return bool(np.isfinite(float(text)))
    except ValueError:
        return False
