"""Labels that come back: rows that were drawn and labelled, joined to the table that they are from."""

import pandas as pd

from ordinalq.io.columns import MISSING_WORDS, as_words, require_columns, short
from ordinalq.io.table import Table

# Names that `rows_to_label` gives the column of places, which is the first one.
PLACES = ("line", "row", "line of the file", "row of the file")
# Rows are those of the table if at least this share of their common cells agrees; spreadsheet programs write some
# numbers and dates in another way.
AGREE = 0.5


class ReturnedLabels:
    """Labels of rows of a table, by the line (or row, in Parquet) that they are in.

    They are in the column `target` of what :func:`ordinalq.tables.label_plan.rows_to_label` gave; rows without one are
    left out. A file is read with them if it is filled in by them, see :class:`ordinalq.io.table.TableFile`.
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

    def values(self, frame: pd.DataFrame) -> list[str | None]:
        """Return the column of labels of a portion (N,): new ones, and those that were there."""
        here = [label for label in frame.index.tolist() if label in self.labels]
        self._seen.update(here)
        shared = [name for name in self._rows.columns if name in frame.columns]
        if here and shared:
            for name in shared:
                ours, theirs = frame.loc[here, name], self._rows.loc[here, name]
                if ours.dtype.kind == "f":  # read as numbers, which are written in many ways
                    theirs = pd.to_numeric(theirs, errors="coerce").astype(ours.dtype)
                pairs = zip(as_words(ours), as_words(theirs), strict=True)
                self._same += sum((a or "") == (b or "") for a, b in pairs)
                self._compared += len(here)
        known = as_words(frame[self.target]) if self.target in frame.columns else [None] * len(frame)
        return [self.labels.get(label, old) for label, old in zip(frame.index.tolist(), known, strict=True)]

    def check(self) -> None:
        """Refuse labels of another table; to be called when all portions have been seen."""
        if self._same < AGREE * self._compared:
            raise ValueError(f"{self.name}: its rows are not those of the table: draw the rows to label again.")
        lost = self.labels.keys() - self._seen
        if lost:
            raise ValueError(f"{self.name}: {len(lost):,} of its rows are not in the table, such as {min(lost)}.")
