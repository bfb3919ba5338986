"""Parquet files, read in batches of rows."""

from collections.abc import Collection, Iterator, Sequence
from typing import Any

from ordinalq.files.delimited import Part
from ordinalq.files.names import check_names, require_columns
from ordinalq.files.opening import Source


class Parquet:
    """A table in a Parquet file.

    Parameters
    ----------
    source : Source
    batch_rows, batch_bytes : int
        Size of a batch.
    nested : bool
        Whether a cell may hold a list or an object.
    """

    def __init__(self, source: Source, batch_rows: int, batch_bytes: int, nested: bool) -> None:
        self.source = source
        self.nested = nested
        self.batch_rows = batch_rows
        self.batch_bytes = batch_bytes

    def columns(self) -> list[str]:
        """Return the names of the columns."""
        names = self._open().schema_arrow.names
        check_names(names, self.source.name)
        return [str(name) for name in names]

    def parts(self, columns: Sequence[str] | None, numbers: Collection[str]) -> Iterator[Part]:
        """Yield the rows, batch by batch."""
        import pyarrow as pa

        file = self._open()
        schema = file.schema_arrow
        check_names(schema.names, self.source.name)
        if columns is not None:
            require_columns(schema.names, columns, self.source.name)
        names = list(schema.names if columns is None else columns)
        for name in [] if self.nested else names:
            kind = schema.field(name).type
            if pa.types.is_nested(kind) or pa.types.is_binary(kind) or pa.types.is_large_binary(kind):
                raise ValueError(
                    f"{self.source.name}: expected one value per cell in column {name!r}, got {kind}; "
                    "make it text or numbers, or leave it out with features=[...]."
                )
        n_rows, done = max(1, file.metadata.num_rows), 0
        # So many rows that a portion stays small also where cells are long texts.
        sizes = [file.metadata.row_group(i).total_byte_size for i in range(file.metadata.num_row_groups)]
        batch = max(1, min(self.batch_rows, int(2 * self.batch_bytes * n_rows / max(sum(sizes), 1))))
        try:
            for part in file.iter_batches(batch_size=batch, columns=names):
                rows = range(done, done + part.num_rows)
                done += part.num_rows
                if part.num_rows:
                    yield Part(
                        pa.Table.from_batches([part]).select(names), rows, int(self.source.n_bytes * done / n_rows)
                    )
        except (pa.ArrowException, OSError) as error:
            raise self._unreadable(error) from error

    def _open(self) -> Any:
        import pyarrow as pa
        import pyarrow.parquet as pq

        try:
            return pq.ParquetFile(self.source.path, buffer_size=1 << 20, pre_buffer=False)
        except (pa.ArrowException, OSError) as error:
            if isinstance(error, PermissionError):
                raise
            raise self._unreadable(error) from error

    def _unreadable(self, error: Exception) -> ValueError:
        reason = (str(error).splitlines() or [type(error).__name__])[0]
        return ValueError(f"{self.source.name}: not a readable parquet file: {reason[:200]}")
