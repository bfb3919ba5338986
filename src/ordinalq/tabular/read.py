"""Tables in files, read in portions: CSV, TSV, JSON lines and Parquet; each error names the file and the line.

A cell of a CSV or TSV file is text or, if empty, missing (None): what it means is decided once for the whole table, by
`ordinalq.tabular.columns`, so that no portion of a file is read differently from another.
"""

import csv
import io
import json
import zlib
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

from ordinalq.datasets.files import UNNAMED, open_binary, require_columns
from ordinalq.validation import check_choice

if TYPE_CHECKING:
    import pandas as pd

FORMATS = ("csv", "tsv", "jsonl", "parquet")
ENDINGS = {"csv": "csv", "tsv": "tsv", "jsonl": "jsonl", "ndjson": "jsonl", "parquet": "parquet", "pq": "parquet"}

# A portion ends after so many characters or rows, whichever comes first.
PORTION_CHARACTERS = 8_000_000
PORTION_ROWS = 50_000


@dataclass(frozen=True)
class TableFile:
    """A table in a file.

    Attributes
    ----------
    path : Path
    format : {"csv", "tsv", "jsonl", "parquet"}
    encoding : str
        Of text files; a byte order mark is skipped.
    """

    path: Path
    format: str
    encoding: str = "utf-8"

    @property
    def n_bytes(self) -> int:
        """Size of the file, against which `portions` reports its progress."""
        return self.path.stat().st_size

    def columns(self) -> list[str]:
        """Return the names of the columns; for JSON lines, those of the first row."""
        with _errors_of(self):
            if self.format == "parquet":
                return [str(name) for name in _open_parquet(self.path).schema_arrow.names]
            with self._text() as text:
                if self.format == "jsonl":
                    for _, row in _json_rows(text, self.path):
                        return list(row)
                    raise ValueError(f"{self.path}: expected rows, but the file is empty.")
                return _header(text, self)[0]

    def portions(
        self, columns: Sequence[str] | None = None, progress: Callable[[int], object] | None = None
    ) -> Iterator["pd.DataFrame"]:
        """Yield the rows in portions; the index of each frame is the line (or row, in Parquet) of the file.

        Parameters
        ----------
        columns : list of str, default=None
            Those to read, all of which must exist; None reads all.
        progress : callable, default=None
            Told how many bytes have been read so far, after each portion.
        """
        source = {"parquet": self._parquet, "jsonl": self._json_lines}.get(self.format, self._delimited)
        empty = True
        with _errors_of(self):
            for frame, n_read in source(columns):
                empty = False
                yield frame
                if progress is not None:
                    progress(n_read)
            if empty:
                raise ValueError(f"{self.path}: expected rows, but the file has none after its header.")

    def read(self, columns: Sequence[str] | None = None) -> "pd.DataFrame":
        """Read the whole table."""
        import pandas as pd

        portions = list(self.portions(columns))
        table = pd.concat(portions) if len(portions) > 1 else portions[0]
        table.index.name = portions[0].index.name
        return table

    @contextmanager
    def _text(self) -> Iterator[io.TextIOWrapper]:
        with open_binary(self.path) as binary:
            start = binary.read(4)
            binary.seek(0)
            if start == b"":
                raise ValueError(f"{self.path}: expected a header and rows, but the file is empty.")
            encoding = "utf-8-sig" if self.encoding.lower().replace("_", "-") in ("utf-8", "utf8") else self.encoding
            yield io.TextIOWrapper(binary, encoding=encoding, newline="")

    def _delimited(self, columns: Sequence[str] | None) -> Iterator[tuple["pd.DataFrame", int]]:
        with self._text() as text:
            names, reader = _header(text, self)
            if columns is not None:
                require_columns(names, columns, str(self.path))
            chosen = [names.index(name) for name in (names if columns is None else columns)]
            kept = [names[j] for j in chosen]
            lines: list[int] = []
            rows: list[list[str]] = []
            n_characters = 0

            def portion() -> "pd.DataFrame":
                cells = zip(kept, zip(*rows, strict=True), strict=True)
                return _frame({name: [cell or None for cell in column] for name, column in cells}, lines, self.path)

            for row in reader:
                if len(row) != len(names):
                    if not row:
                        continue  # an empty line
                    raise ValueError(
                        f"{self.path}, line {reader.line_num}: expected {len(names)} columns, got {len(row)}."
                    )
                values = [row[j] for j in chosen]
                rows.append(values)
                lines.append(reader.line_num)
                n_characters += sum(map(len, values))
                if n_characters > PORTION_CHARACTERS or len(rows) >= PORTION_ROWS:
                    yield portion(), _position(text)
                    lines, rows, n_characters = [], [], 0
            if rows:
                yield portion(), self.n_bytes

    def _json_lines(self, columns: Sequence[str] | None) -> Iterator[tuple["pd.DataFrame", int]]:
        missing = set(columns or ())
        seen: dict[str, None] = {}
        with self._text() as text:
            rows: list[dict[str, Any]] = []
            lines: list[int] = []
            n_characters = 0

            def portion() -> "pd.DataFrame":
                names = list(seen) if columns is None else columns
                return _frame({name: [row.get(name) for row in rows] for name in names}, lines, self.path)

            for number, row in _json_rows(text, self.path):
                for name, value in row.items():
                    if isinstance(value, list | dict):
                        kind = "a list" if isinstance(value, list) else "an object"
                        if columns is None or name in columns:
                            raise ValueError(
                                f"{self.path}, line {number}: expected one value in {name!r}, got {kind}; "
                                "give it columns of its own, or leave it out with --features."
                            )
                    elif isinstance(value, str) and (columns is None or name in columns):
                        n_characters += len(value)
                missing -= row.keys()
                seen.update(dict.fromkeys(row))
                rows.append(row if columns is None else {name: row.get(name) for name in columns})
                lines.append(number)
                if n_characters > PORTION_CHARACTERS or len(rows) >= PORTION_ROWS:
                    yield portion(), _position(text)
                    rows, lines, n_characters = [], [], 0
            # Any row may lack a key; that all rows lack it is known at the end.
            if missing and (rows or seen):
                require_columns(seen, list(columns or ()), str(self.path))
            if rows:
                yield portion(), self.n_bytes

    def _parquet(self, columns: Sequence[str] | None) -> Iterator[tuple["pd.DataFrame", int]]:
        import pandas as pd
        import pyarrow as pa

        file = _open_parquet(self.path)
        schema = file.schema_arrow
        _check_distinct(schema.names, str(self.path))
        if columns is not None:
            require_columns(schema.names, columns, str(self.path))
        names = list(schema.names if columns is None else columns)
        for name in names:
            kind = schema.field(name).type
            if pa.types.is_nested(kind) or pa.types.is_binary(kind) or pa.types.is_large_binary(kind):
                raise ValueError(
                    f"{self.path}: expected one value per cell in column {name!r}, got {kind}; "
                    "make it text or numbers, or leave it out with --features."
                )
        n_rows, done = max(1, file.metadata.num_rows), 0
        # So many rows that a portion stays small also where cells are long texts.
        groups = [file.metadata.row_group(i).total_byte_size for i in range(file.metadata.num_row_groups)]
        batch = max(1, min(PORTION_ROWS, int(2 * PORTION_CHARACTERS * n_rows / max(sum(groups), 1))))
        try:
            for part in file.iter_batches(batch_size=batch, columns=names):
                frame = part.to_pandas()[names]
                frame.index = pd.RangeIndex(done, done + len(frame), name="row")
                frame.attrs["where"] = str(self.path)
                done += len(frame)
                if len(frame):
                    yield frame, int(self.n_bytes * done / n_rows)
        except pa.ArrowException as error:
            raise ValueError(f"{self.path}: not a readable parquet file: {str(error).splitlines()[0]}") from error


def open_table(path: str | Path, format: str | None = None, encoding: str = "utf-8") -> TableFile:  # noqa: A002
    """Return the table in a file, which is looked at only to see that it is there.

    Parameters
    ----------
    path : str or Path
        Its ending says the format (``.csv``, ``.tsv``, ``.jsonl``, ``.parquet``; text also with ``.gz``).
    format : {"csv", "tsv", "jsonl", "parquet"}, default=None
        Where the ending does not say it.
    encoding : str, default="utf-8"
        Of text files.
    """
    path = Path(path)
    if path.is_dir():
        raise ValueError(f"{path}: expected a file, got a folder.")
    if not path.is_file():
        raise FileNotFoundError(f"{path}: no such file.")
    try:
        "".encode(encoding)
    except LookupError as error:
        raise ValueError(
            f"encoding must be one that Python knows, such as utf-8 or cp1252, got {encoding!r}."
        ) from error
    if format is None:
        ending = path.name.lower().removesuffix(".gz").rpartition(".")[2]
        if ending not in ENDINGS:
            raise ValueError(
                f"{path}: expected a file .csv, .tsv, .jsonl or .parquet (text also .gz); give its format otherwise."
            )
        format = ENDINGS[ending]  # noqa: A001
    return TableFile(path, check_choice("format", format, FORMATS), encoding)


@contextmanager
def _errors_of(file: TableFile) -> Iterator[None]:
    """Turn what the readers raise into errors that name the file, and the line where there is one."""
    try:
        yield
    except UnicodeDecodeError as error:
        raise ValueError(_encoding_problem(file)) from error
    except csv.Error as error:
        raise ValueError(f"{file.path}: not a readable {file.format} file: {error}.") from error
    except (FileNotFoundError, PermissionError):
        raise
    except (OSError, EOFError, zlib.error) as error:
        raise ValueError(f"{file.path}: not a readable {file.format} file: {error}.") from error


def _header(text: IO[str], file: TableFile) -> tuple[list[str], Any]:
    """Read the first line; return the names of the columns and the reader of the rows after it."""
    lines = _lines(text, file.path)
    try:
        first = next(lines)
    except StopIteration:
        raise ValueError(f"{file.path}: expected a header and rows, but the file is empty.") from None
    separator = "\t"
    if file.format == "csv":
        # As spreadsheets write it where the comma is in the numbers.
        separator = ";" if ";" in first and "," not in first else ","

    def again() -> Iterator[str]:
        yield first
        yield from lines

    reader = _Checked(csv.reader(again(), delimiter=separator, strict=True), file.path)
    names = [name.strip() for name in next(reader)]
    if not any(names):
        raise ValueError(f"{file.path}, line 1: expected the names of the columns, got an empty line.")
    _check_distinct(names, f"{file.path}, line 1")
    return names, reader


def _check_distinct(names: Sequence[str], where: str) -> None:
    twice = [name for name in names if names.count(name) > 1 and name not in UNNAMED]
    if twice:
        raise ValueError(f"{where}: expected columns of different names, but {twice[0]!r} occurs twice.")


class _Checked:
    """A csv.reader whose errors name file and line."""

    def __init__(self, reader: Any, path: Path) -> None:
        self.reader = reader
        self.path = path

    @property
    def line_num(self) -> int:
        return int(self.reader.line_num)

    def __iter__(self) -> "_Checked":
        return self

    def __next__(self) -> list[str]:
        start = self.line_num + 1
        try:
            row: list[str] = next(self.reader)
        except csv.Error as error:
            what = str(error)
            if "field limit" in what or "unexpected end" in what:
                what = f"a quoted cell does not end, or has more than {csv.field_size_limit():,} characters"
            raise ValueError(f"{self.path}, line {start}: {what}.") from error
        return row


def _lines(text: IO[str], path: Path) -> Iterator[str]:
    """Yield the lines of a text; a null character says that it is none."""
    for number, line in enumerate(text, start=1):
        if "\0" in line:
            raise ValueError(f"{path}, line {number}: expected text, got a null character: the file is not text.")
        yield line


def _json_rows(text: IO[str], path: Path) -> Iterator[tuple[int, dict[str, Any]]]:
    for number, line in enumerate(text, start=1):
        if line.isspace():
            continue
        try:
            row = json.loads(line)
        except (ValueError, RecursionError) as error:
            raise ValueError(f"{path}, line {number}: expected one JSON object per line: {error}.") from error
        if not isinstance(row, dict):
            raise ValueError(f"{path}, line {number}: expected one JSON object per line, got {line.strip()[:40]!r}.")
        yield number, row


def _frame(columns: dict[str, list[Any]], lines: list[int], path: Path) -> "pd.DataFrame":
    """Return a portion of a text file; whoever finds a mistake in it can say where it is."""
    import pandas as pd

    frame = pd.DataFrame(columns, index=pd.Index(lines, name="line"), dtype=object)
    frame.attrs["where"] = str(path)
    return frame


def _open_parquet(path: Path) -> Any:
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        return pq.ParquetFile(path, buffer_size=1 << 20, pre_buffer=False)
    except pa.ArrowInvalid as error:
        raise ValueError(f"{path}: not a readable parquet file: {str(error).splitlines()[0]}") from error


def _position(text: io.TextIOWrapper) -> int:
    """Return how many bytes of the file have been read; of a packed file, of what is packed."""
    inner: Any = text.buffer
    return int(getattr(inner, "fileobj", inner).tell())


def _encoding_problem(file: TableFile) -> str:
    """Find the first line that is not in the encoding."""
    with open_binary(file.path) as binary:
        start = binary.read(2)
        binary.seek(0)
        if start in (b"\xff\xfe", b"\xfe\xff"):
            return f"{file.path}: expected {file.encoding} text, got UTF-16: save it as UTF-8, or give its encoding."
        for number, line in enumerate(binary, start=1):
            try:
                line.decode(file.encoding)
            except UnicodeDecodeError as error:
                byte = line[error.start]
                return (
                    f"{file.path}, line {number}: expected {file.encoding} text, got the byte 0x{byte:02x}; "
                    "save the file as UTF-8, or give its encoding, such as cp1252."
                )
    return f"{file.path}: expected {file.encoding} text."
