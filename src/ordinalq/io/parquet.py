"""Parquet files, read in batches of rows."""

from collections.abc import Iterator
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from ordinalq.io.columns import check_names, require_columns
from ordinalq.io.files import Block, Part, Source, Wanted


class Parquet:
    """A table in a Parquet file, read in batches of limited size."""

    def __init__(self, source: Source, batch_rows: int, batch_bytes: int) -> None:
        self.source = source
        self.batch_rows = batch_rows
        self.batch_bytes = batch_bytes
        self._metadata: Any = None  # of a remote file, so that it is transferred once

    def columns(self) -> list[str]:
        """Return the names of the columns."""
        with self._open() as file:
            names = file.schema_arrow.names
        check_names(names, self.source.name)
        return [str(name) for name in names]

    def blocks(self, wanted: Wanted) -> Iterator[Block]:
        """Yield the row groups."""
        with self._open() as file:
            names = self._checked(file.schema_arrow, wanted)
            sizes = [_n_bytes(file.metadata.row_group(i), set(names)) for i in range(file.metadata.num_row_groups)]
            total, before, row = max(sum(sizes), 1), 0, 0
            for i, size in enumerate(sizes):
                n_rows, before = file.metadata.row_group(i).num_rows, before + size
                if n_rows:
                    yield Block(i, i + 1, row, n_rows, self.source.n_bytes * before // total)
                row += n_rows

    def parts(self, block: Block, wanted: Wanted) -> Iterator[Part]:
        """Yield the rows of a row group, batch by batch."""
        with self._open() as file:
            names = self._checked(file.schema_arrow, wanted)
            # So many rows that a chunk stays small also where cells are long texts.
            size = _n_bytes(file.metadata.row_group(block.start), set(names))
            batch = max(1, min(self.batch_rows, int(2 * self.batch_bytes * block.n_lines / max(size, 1))))
            row = block.line
            try:
                for part in file.iter_batches(batch_size=batch, row_groups=[block.start], columns=names):
                    rows = range(row, row + part.num_rows)
                    self._check_text(part, row)
                    row += part.num_rows
                    if part.num_rows:
                        yield Part(pa.Table.from_batches([part]).select(names), rows)
            except (pa.ArrowException, OSError) as error:
                raise self._unreadable(error) from error

    def _check_text(self, batch: Any, first_row: int) -> None:
        """Raise ValueError if text is not UTF-8.

        Arrow reads any bytes, which would fail much later.
        """
        for name, column in zip(batch.schema.names, batch.columns, strict=True):
            words = column.dictionary if pa.types.is_dictionary(column.type) else column
            if not (pa.types.is_string(words.type) or pa.types.is_large_string(words.type)):
                continue
            try:
                words.validate(full=True)
            except pa.ArrowInvalid as error:
                plain = column.dictionary_decode() if words is not column else column
                cells = plain.cast(pa.large_binary()).to_pylist()
                row, cell = next((i, cell) for i, cell in enumerate(cells) if not _is_utf8(cell))
                place = f"{self.source.name}, row {first_row + row}"
                raise ValueError(f"{place}: expected UTF-8 text in column {name!r}, got {cell[:40]!r}.") from error

    def kinds(self) -> dict[str, str]:
        """Return the kind of each column: numbers of any width are of one kind."""
        with self._open() as file:
            schema = file.schema_arrow
        kinds = {}
        for field in schema:
            kind = field.type.value_type if pa.types.is_dictionary(field.type) else field.type
            is_number = pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_decimal(kind)
            kinds[field.name] = "number" if is_number else str(kind).removeprefix("large_")
        return kinds

    def _checked(self, schema: Any, wanted: Wanted) -> list[str]:
        """Return the columns to read.

        Raise an error for columns that the table lacks, or that do not have one value per cell.
        """
        check_names(schema.names, self.source.name)
        names = list(schema.names if wanted.columns is None else wanted.columns)
        require_columns(schema.names, names, self.source.name)
        for name in [] if wanted.nested else names:
            kind = schema.field(name).type
            if pa.types.is_nested(kind) or pa.types.is_binary(kind) or pa.types.is_large_binary(kind):
                raise ValueError(
                    f"{self.source.name}: expected one value per cell in column {name!r}, got {kind}; "
                    "make it text or numbers, or leave it out with features=[...]."
                )
        return names

    def _open(self) -> Any:
        try:
            remote = self.source.address is not None
            file = pq.ParquetFile(
                self.source.seekable(),
                metadata=self._metadata,
                buffer_size=1 << 20,
                pre_buffer=remote,  # requests ranges together
                page_checksum_verification=True,
            )
            self._metadata = file.metadata if remote else None
            return file
        except (pa.ArrowException, OSError) as error:
            if isinstance(error, PermissionError | ConnectionError | FileNotFoundError):
                raise
            raise self._unreadable(error) from error

    def _unreadable(self, error: Exception) -> ValueError:
        reason = (str(error).splitlines() or [type(error).__name__])[0]
        return ValueError(f"{self.source.name}: not a readable parquet file: {reason[:200]}")


def _is_utf8(cell: bytes | None) -> bool:
    try:
        (cell or b"").decode()
    except UnicodeDecodeError:
        return False
    return True


def _n_bytes(group: Any, names: set[str]) -> int:
    """Return the bytes that some columns of a row group have when they are unpacked."""
    columns = (group.column(j) for j in range(group.num_columns))
    return sum(column.total_uncompressed_size for column in columns if column.path_in_schema.partition(".")[0] in names)
