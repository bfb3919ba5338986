"""Labels that come back: rows that were drawn and labelled, joined to the table that they are from."""

import io
import json
from pathlib import Path

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

from ordinalq.files.cells import as_words, short
from ordinalq.files.many import Table
from ordinalq.files.names import MISSING_WORDS, require_columns
from ordinalq.files.opening import open_binary
from ordinalq.telling import each

# Names that `rows_to_label` gives the column of places, which is the first one.
PLACES = ("line", "row", "line of the file", "row of the file")
# Rows are those of the table if at least this share of their common cells agrees; spreadsheet programs write some
# numbers and dates in another way.
AGREE = 0.5


class ReturnedLabels:
    """Labels of rows of a table, by the line (or row, in Parquet) that they are in.

    They are in the column `target` of what :func:`ordinalq.tables.planning.rows_to_label` gave; rows without one are
    left out.
    """

    def __init__(self, file: Table, target: str) -> None:
        frame = file.read()
        require_columns(frame.columns, [target], file.name)
        place = str(frame.columns[0])
        if place not in PLACES:
            raise ValueError(
                f"{file.name}: expected the rows that were drawn, whose first column is 'line' or 'row', got {place!r}."
            )
        self.name = file.name
        self.target = target
        words = as_words(frame[target])
        self.labels: dict[int, str] = {}
        for number, word in zip(as_words(frame[place]), words, strict=True):
            if number is None or not number.isdecimal():
                raise ValueError(f"{file.name}: expected a number in column {place!r}, got {short(number)}.")
            if word and word not in MISSING_WORDS:
                self.labels[int(number)] = word
        if not self.labels:
            raise ValueError(f"{file.name}: column {target!r} has no labels: fill it first.")
        others = frame.drop(columns=[place, target])
        others.index = [int(number) for number in as_words(frame[place]) if number is not None]
        self._rows = others
        self._seen: set[int] = set()
        self._same = self._compared = 0

    def of(self, frame: pd.DataFrame) -> list[str | None]:
        """Return the labels of the rows of a portion (N,); None where there is none."""
        here = [label for label in frame.index.tolist() if label in self.labels]
        self._seen.update(here)
        shared = [name for name in self._rows.columns if name in frame.columns]
        if here and shared:
            for name in shared:
                pairs = zip(as_words(frame.loc[here, name]), as_words(self._rows.loc[here, name]), strict=True)
                self._same += sum((a or "") == (b or "") for a, b in pairs)
                self._compared += len(here)
        return [self.labels.get(label) for label in frame.index.tolist()]

    def check(self) -> None:
        """Refuse labels of another table; to be called when all portions have been seen."""
        if self._same < AGREE * self._compared:
            raise ValueError(f"{self.name}: its rows are not those of the table: draw the rows to label again.")
        lost = self.labels.keys() - self._seen
        if lost:
            raise ValueError(f"{self.name}: {len(lost):,} of its rows are not in the table, such as {min(lost)}.")


def join_labels(file: Table, labels: ReturnedLabels, out: Path, *, encoding: str = "utf-8") -> None:
    """Write a table in its own format with the labels in one more column, or in the gaps of that column.

    Text is written as UTF-8, and separated by commas where the format is CSV; `encoding` is that of JSON lines in
    `file`.
    """
    if file.format == "parquet":
        _join_parquet(file, labels, out)
    elif file.format == "jsonl":
        _join_json_lines(file, labels, out, encoding)
    else:
        _join_delimited(file, labels, out)
    labels.check()


def _filled(frame: pd.DataFrame, labels: ReturnedLabels) -> list[str | None]:
    """Return the column of labels of a portion: new ones, and those that were there."""
    known = as_words(frame[labels.target]) if labels.target in frame.columns else [None] * len(frame)
    return [old if new is None else new for new, old in zip(labels.of(frame), known, strict=True)]


def _join_delimited(file: Table, labels: ReturnedLabels, out: Path) -> None:
    separator = "\t" if file.format == "tsv" else ","
    with out.open("w", encoding="utf-8", newline="") as stream:
        for number, frame in enumerate(file.portions()):
            frame[labels.target] = _filled(frame, labels)
            frame.to_csv(stream, index=False, header=number == 0, sep=separator, lineterminator="\n")


def _join_json_lines(file: Table, labels: ReturnedLabels, out: Path, encoding: str) -> None:
    """Copy the lines as they are, with one more key in those that have a label."""
    for frame in file.portions(nested=True):
        labels.of(frame)
    with (
        open_binary(file.files[0].path) as packed,
        io.TextIOWrapper(packed, encoding=encoding, newline="\n") as lines,
        out.open("w", encoding="utf-8", newline="\n") as stream,
    ):
        for number, line in enumerate(lines, start=1):
            word = labels.labels.get(number)
            row = line if word is None else json.dumps({**json.loads(line), labels.target: word}, ensure_ascii=False)
            stream.write(row.removeprefix("\ufeff").rstrip("\r\n") + "\n")


def _join_parquet(file: Table, labels: ReturnedLabels, out: Path) -> None:
    source = pq.ParquetFile(file.files[0].path)
    names = source.schema_arrow.names
    fields = [*(field for field in source.schema_arrow if field.name != labels.target), (labels.target, pa.string())]
    done = 0
    with pq.ParquetWriter(out, schema := pa.schema(fields)) as writer:
        groups = each("part", range(source.num_row_groups))
        for batch in (batch for group in groups for batch in source.iter_batches(row_groups=[group])):
            frame = batch.to_pandas(ignore_metadata=True)
            frame.index = range(done, done + len(frame))
            kept = [batch.column(name) for name in names if name != labels.target]
            columns = [*kept, pa.array(_filled(frame, labels), pa.string())]
            writer.write_batch(pa.RecordBatch.from_arrays(columns, schema=schema))
            done += len(frame)
