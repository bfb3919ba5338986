"""A table in a file: CSV, TSV, JSON lines or Parquet, read in portions; each error names the file and the line."""

import csv
import zlib
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ordinalq.files.delimited import Delimited, Part
from ordinalq.files.json_lines import JsonLines
from ordinalq.files.opening import STDIN, Source, check_encoding, check_readable, encoding_problem
from ordinalq.files.parquet import Parquet
from ordinalq.validation import check_choice

if TYPE_CHECKING:
    import pandas as pd

FORMATS = ("csv", "tsv", "jsonl", "parquet")
ENDINGS = {"csv": "csv", "tsv": "tsv", "jsonl": "jsonl", "ndjson": "jsonl", "parquet": "parquet", "pq": "parquet"}
QUOTING = ("auto", "minimal", "none")

# A portion has at most so many bytes, in the columns that are read, and so many rows.
PORTION_BYTES = 8_000_000
PORTION_ROWS = 50_000


class TableFile:
    """A table in a file; see :func:`open_table`.

    Attributes
    ----------
    name : str
        What errors call it.
    format : {"csv", "tsv", "jsonl", "parquet"}
    """

    def __init__(self, source: Source, format: str, encoding: str, quoting: str) -> None:  # noqa: A002
        self.name = source.name
        self.format = format
        self._source = source
        self._encoding = encoding
        self._quoting = quoting

    @property
    def n_bytes(self) -> int:
        """Size of the file, against which `portions` reports its progress."""
        return self._source.n_bytes

    @property
    def path(self) -> Path:
        """Where the bytes are."""
        return self._source.path

    @property
    def lacks_keys(self) -> bool:
        """Whether a row may lack columns, so that those of the first row are not all."""
        return self.format == "jsonl"

    def columns(self) -> list[str]:
        """Return the names of the columns; for JSON lines, those of the first row."""
        with self._errors():
            return self._reader().columns()

    def portions(
        self,
        columns: Sequence[str] | None = None,
        progress: Callable[[int], object] | None = None,
        *,
        numbers: Collection[str] = (),
        native: Collection[str] = (),
        nested: bool = False,
    ) -> Iterator["pd.DataFrame"]:
        """Yield the rows in portions; the index of each frame is the line (or row, in Parquet) of the file.

        Parameters
        ----------
        columns : list of str, default=None
            Those to read, all of which must exist; None reads all.
        progress : callable, default=None
            Told how many bytes have been read so far, after each portion.
        numbers : collection of str, default=()
            Columns that are expected to hold numbers; where all cells of a block do, they come as such, otherwise as
            they are written.
        native : collection of str, default=()
            Columns of Parquet files that keep their type also where values are missing: whole numbers stay whole.
        nested : bool, default=False
            Whether a cell of a Parquet file may hold a list or an object.
        """
        empty, before = True, 0
        with self._errors():
            for part in self._reader(nested).parts(columns, numbers):
                empty = False
                n_rows = _length(part)
                step = self._step(part, n_rows)
                for start in range(0, n_rows, step):
                    yield self._frame(part, start, min(start + step, n_rows), native)
                    if progress is not None:
                        read = min(1.0, (start + step) / n_rows)
                        progress(int(before + read * (part.done - before)))
                before = part.done
            if empty:
                raise ValueError(f"{self.name}: expected rows, but the file has none after its header.")

    def read(self, columns: Sequence[str] | None = None, *, nested: bool = False) -> "pd.DataFrame":
        """Read the whole table, see :meth:`portions`."""
        import pandas as pd

        portions = list(self.portions(columns, nested=nested))
        table = pd.concat(portions) if len(portions) > 1 else portions[0]
        table.index.name = portions[0].index.name
        table.attrs["where"] = self.name
        return table

    def _reader(self, nested: bool = False) -> Delimited | JsonLines | Parquet:
        if self.format == "parquet":
            return Parquet(self._source, PORTION_ROWS, PORTION_BYTES, nested)
        if self.format == "jsonl":
            return JsonLines(self._source, self._encoding)
        return Delimited(self._source, self._encoding, self.format == "tsv", self._quoting)

    def _step(self, part: Part, n_rows: int) -> int:
        """Return the number of rows of a portion."""
        n_bytes = _n_bytes(part)
        return max(1, min(PORTION_ROWS, int(PORTION_BYTES * n_rows / max(n_bytes, 1))))

    def _frame(self, part: Part, start: int, stop: int, native: Collection[str]) -> "pd.DataFrame":
        """Return rows of a part as a frame; whoever finds a mistake in it can say where it is."""
        import pandas as pd

        table: Any = part.table
        if isinstance(table, pd.DataFrame):
            frame = table.iloc[start:stop].copy()
        else:
            rows = table.slice(start, stop - start)
            frame = rows.to_pandas(ignore_metadata=True)
            for name in native:
                if rows[name].null_count and frame[name].dtype.kind in "fO":
                    frame[name] = rows[name].to_pandas(types_mapper=_nullable)
        frame.index = pd.Index(part.lines[start:stop], name="row" if self.format == "parquet" else "line")
        frame.attrs["where"] = self.name
        return frame

    @contextmanager
    def _errors(self) -> Iterator[None]:
        """Turn what the readers raise into errors that name the file, and the line where there is one."""
        try:
            yield
        except UnicodeDecodeError as error:
            raise ValueError(encoding_problem(self._source, self._encoding)) from error
        except csv.Error as error:
            raise ValueError(f"{self.name}: not a readable {self.format} file: {error}.") from error
        except (FileNotFoundError, PermissionError):
            raise
        except (OSError, EOFError, zlib.error) as error:
            raise ValueError(f"{self.name}: not a readable {self.format} file: {error}.") from error


def open_table(
    path: str | Path,
    format: str | None = None,  # noqa: A002
    encoding: str = "utf-8",
    quoting: str = "auto",
) -> TableFile:
    """Return the table in a file, which is looked at only to see that it is there.

    Parameters
    ----------
    path : str or Path
        Its ending says the format (``.csv``, ``.tsv``, ``.jsonl``, ``.parquet``; text also with ``.gz``). "-" is the
        standard input; what comes from there or from a pipe is first copied to a temporary file.
    format : {"csv", "tsv", "jsonl", "parquet"}, default=None
        Where the ending does not say it.
    encoding : str, default="utf-8"
        Encoding of text files.
    quoting : {"auto", "minimal", "none"}, default="auto"
        Whether quotes around a cell of CSV and TSV files protect what is in it ("minimal"), or are characters like
        others ("none"). "auto": they protect in CSV files, and in TSV files in which all quotes are at the edges of
        cells.
    """
    check_encoding(encoding)
    check_choice("quoting", quoting, QUOTING)
    if format is not None:
        check_choice("format", format, FORMATS)
    if str(path) != STDIN:
        check_readable(Path(path))
    if format is None:
        ending = Path(path).name.lower().removesuffix(".gz").rpartition(".")[2]
        if ending not in ENDINGS:
            shown = "standard input" if str(path) == STDIN else path
            raise ValueError(
                f"{shown}: expected a file .csv, .tsv, .jsonl or .parquet (text also .gz); give its format otherwise."
            )
        format = ENDINGS[ending]  # noqa: A001
    return TableFile(Source(path), format, encoding, quoting)


def _nullable(kind: Any) -> Any:
    """Return a type of pandas that holds whole numbers, or true and false, and gaps."""
    import pandas as pd
    import pyarrow as pa

    if pa.types.is_integer(kind):
        return pd.UInt64Dtype() if pa.types.is_uint64(kind) else pd.Int64Dtype()
    return pd.BooleanDtype() if pa.types.is_boolean(kind) else None


def _length(part: Part) -> int:
    return len(part.lines)


def _n_bytes(part: Part) -> int:
    table: Any = part.table
    if hasattr(table, "nbytes"):
        return int(table.nbytes)
    return int(sum(len(value) for column in table for value in table[column] if isinstance(value, str)))
