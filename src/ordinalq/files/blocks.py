"""Pieces of a file: blocks, which are cheap to find and can be read anywhere, and the parts that reading them gives."""

from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    import pyarrow as pa

    from ordinalq.files.rows import Rows

# Bytes of text that are a block.
BLOCK = 1 << 24


class Block(NamedTuple):
    """Successive rows of a file that have not been read yet; the same whoever reads them.

    Attributes
    ----------
    start, stop : int
        The bytes of a text file; the row groups of a Parquet file.
    line : int
        Line of the first row (or row, counted from 0, in Parquet).
    n_lines : int
    done : int
        Bytes of the file that have been looked at after it.
    text : bytes or None
        The text in UTF-8; None where it can be read from the file once more.
    rows : Rows or None
        The rows, where they had to be read to find their end.
    exact : bool
        Whether only the slow reader can tell the rows of it.
    """

    start: int
    stop: int
    line: int
    n_lines: int
    done: int
    text: bytes | None = None
    rows: "Rows | None" = None
    exact: bool = False

    def light(self, again: bool) -> "Block":
        """Return the block as it is sent to another process: without its text, where that can be read `again`."""
        return self._replace(text=None if again else self.text, rows=None)

    def content(self, path: Path) -> bytes:
        """Return the text."""
        if self.text is not None:
            return self.text
        with path.open("rb") as file:
            file.seek(self.start)
            return file.read(self.stop - self.start)


class Part(NamedTuple):
    """Some rows of a file.

    Attributes
    ----------
    table : pyarrow.Table
    lines : range or ndarray of int
        Line (or row, counted from 0, in Parquet) of the file of each row.
    done : int
        Bytes of the file that are read after it.
    seen : frozenset of str or None
        Columns that have a value in some row, where rows may lack columns.
    """

    table: "pa.Table"
    lines: Any
    done: int
    seen: frozenset[str] | None = None
