"""Pieces of a file: blocks, which are cheap to find and can be read anywhere, and the parts that reading them gives."""

from collections.abc import Collection, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import pandas as pd
import pyarrow as pa

if TYPE_CHECKING:
    from ordinalq.io.rows import Rows

# Bytes of text that are a block.
BLOCK = 1 << 24


class Wanted(NamedTuple):
    """What is to be read of a table: some columns, all of which must exist, or all (None).

    Columns that are expected to hold `numbers` come as such where all cells of a block do, otherwise as they are
    written; `native` columns of Parquet files keep their type also where values are missing, so that whole numbers stay
    whole; `nested` says whether a cell of a Parquet file may hold a list or an object.
    """

    columns: Sequence[str] | None = None
    numbers: Collection[str] = ()
    native: Collection[str] = ()
    nested: bool = False


class Block(NamedTuple):
    """Successive rows of a file that have not been read yet; the same whoever reads them."""

    start: int  # from this byte of a text file, or row group of a Parquet file
    stop: int  # to this one
    line: int  # line of the first row (or row, counted from 0, in Parquet)
    n_lines: int
    done: int  # bytes of the file that have been looked at after it
    text: bytes | None = None  # in UTF-8; None where it can be read from the file once more
    rows: "Rows | None" = None  # where they had to be read to find their end
    exact: bool = False  # whether only the slow reader can tell the rows of it

    def content(self, path: Path) -> bytes:
        """Return the text."""
        if self.text is not None:
            return self.text
        with path.open("rb") as file:
            file.seek(self.start)
            return file.read(self.stop - self.start)


class Part(NamedTuple):
    """Some rows of a file."""

    table: pa.Table | pd.DataFrame
    lines: Any  # of the file (or rows, counted from 0, in Parquet), of each row
    seen: frozenset[str] | None = None  # columns that have a value in some row, where rows may lack columns
