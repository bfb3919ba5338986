"""Sheets of Excel and OpenDocument files, read as a whole with python-calamine.

Cells become words as in CSV files, so that a sheet and its CSV export give the same model.
"""

import datetime as dt
import logging
import re
import zipfile
from collections.abc import Iterator, Sequence
from functools import lru_cache
from itertools import zip_longest
from pathlib import Path
from typing import Any, NamedTuple
from xml.parsers import expat

import pyarrow as pa

from ordinalq._utils.extras import require_extra
from ordinalq._utils.text import first_of, nearest
from ordinalq.io.columns import check_names, require_columns
from ordinalq.io.files import Block, Part, Source, Wanted

logger = logging.getLogger("ordinalq")

# Largest file that is read, unpacked, and most cells of the rectangle of a sheet, which takes 40 bytes each.
MAX_UNPACKED = 1 << 30
MAX_CELLS = 50_000_000
# Most characters in all cells of all sheets, each text as often as cells have it.
MAX_TEXT = 1 << 28

CHUNK = 1 << 22
# Any sheet of Excel has this element. A file may name its members as it likes.
SHEET = re.compile(rb"<(?:[^\s<>/]+:)?sheetData\b")
# The table of texts that cells of Excel refer to by number has these elements.
SHARED = re.compile(rb"<(?:[^\s<>/]+:)?si\b")
LONGEST_TAG = 256
# Types of cells of Excel with a text, or with the number of one.
TEXTS = {"s", "str", "inlineStr"}
# The place of a cell in a sheet of Excel, or the number of a row.
PLACE = re.compile(r"([A-Za-z]*)([0-9]*)")
# Cells of a sheet of OpenDocument.
CELLS = {"table:table-cell", "table:covered-table-cell"}

ADVICE = "Save it as CSV in Excel."
NO_WORKBOOK = "Give it the extension of its format, such as .csv, or save it as CSV in Excel."


class Sheet(NamedTuple):
    """Column names, cells as words, the sheet row number of each row.

    `sheets` are the names of all sheets with cells.
    """

    names: list[str]
    table: pa.Table
    rows: list[int]
    sheets: list[str]


class Spreadsheet:
    """Table in a sheet of an Excel (.xlsx) or OpenDocument (.ods) file.

    It is the named sheet, or the first with cells.
    """

    def __init__(self, source: Source, sheet: str | None = None) -> None:
        self.source = source
        self.sheet = sheet

    def columns(self) -> list[str]:
        """Return the names of the columns."""
        return self._read().names

    def sheets(self) -> list[str]:
        """Return the names of the sheets with cells."""
        return self._read().sheets

    def blocks(self, wanted: Wanted) -> Iterator[Block]:
        """Yield all rows as one block."""
        found = self._read()
        require_columns(found.names, wanted.columns or (), self.source.name)
        if found.rows:
            yield Block(0, 1, found.rows[0], found.rows[-1] - found.rows[0] + 1, self.source.n_bytes)

    def parts(self, block: Block, wanted: Wanted) -> Iterator[Part]:
        """Yield the rows of the sheet."""
        found = self._read()
        yield Part(found.table if wanted.columns is None else found.table.select(list(wanted.columns)), found.rows)

    def _read(self) -> Sheet:
        path = self.source.path
        return _sheet(path, path.stat().st_mtime_ns, self.source.name, self.sheet)


@lru_cache(maxsize=2)
def _sheet(path: Path, _changed: int, name: str, sheet: str | None) -> Sheet:
    """Return the content of a sheet.

    A file is read once as long as it does not change.
    """
    with require_extra("excel", "reading .xlsx and .ods files"):
        import python_calamine as calamine

    try:
        _check_size(path, name)
        with calamine.CalamineWorkbook.from_path(path) as book:
            cells, first, sheets = _cells(book, name, sheet)
    except calamine.PasswordError as error:
        raise ValueError(f"{name}: the file is protected by a password. {ADVICE}") from error
    except (calamine.CalamineError, zipfile.BadZipFile, expat.ExpatError, OSError) as error:
        if isinstance(error, PermissionError):
            raise
        advice = ADVICE if zipfile.is_zipfile(path) else NO_WORKBOOK
        raise ValueError(f"{name}: not a readable Excel or OpenDocument file ({error}). {advice}") from error
    names = [_word(cell) or "" for cell in cells[0]] if cells else []
    if not any(names):
        raise ValueError(f"{name}: expected the names of the columns in the first row, got an empty sheet.")
    check_names(names, name)
    kept = [j for j, column in enumerate(names) if column]
    rows = [(first + i, row) for i, row in enumerate(cells) if i and any(cell != "" for cell in row)]
    unnamed = sum(1 for j, column in enumerate(names) if not column and any(row[j] != "" for _, row in rows))
    if unnamed:
        logger.warning(
            "%s: %d of the columns have values but no name in row %d and are not read; if the names are in a later "
            "row, delete the rows above it",
            name,
            unnamed,
            first,
        )
    columns = [pa.array([_word(row[j]) for _, row in rows], type=pa.string()) for j in kept]
    named = [names[j] for j in kept]
    return Sheet(named, pa.Table.from_arrays(columns, names=named), [number for number, _ in rows], sheets)


def _cells(book: Any, name: str, sheet: str | None) -> tuple[list[list[Any]], int, list[str]]:
    """Return the rows of a sheet, the number of the first, and all sheets with cells.

    The rows are those from the first that is not empty.
    """
    if sheet is not None and sheet not in book.sheet_names:
        there = nearest(sheet, book.sheet_names) or f"; there are {first_of(book.sheet_names)}."
        raise ValueError(f"{name}: has no sheet {sheet!r}{there}")
    chosen, sheets = None, []
    for one in book.sheet_names:  # only the chosen one stays in memory
        found = book.get_sheet_by_name(one)
        if found.height:
            sheets.append(one)
        if chosen is None and (found.height if sheet is None else one == sheet):
            chosen = found
    if sheet is None and len(sheets) > 1:
        logger.warning("%s: sheet %r is read; sheet='NAME' reads another of %s", name, sheets[0], first_of(sheets))
    if chosen is None or chosen.start is None:
        return [], 1, sheets
    row, column = chosen.start
    return [line[column:] for line in chosen.to_python(skip_empty_area=False)[row:]], row + 1, sheets


def _word(cell: Any) -> str | None:
    """Return a cell as a CSV file has it, None if it is empty.

    >>> [_word(cell) for cell in (5.0, 1.25, " a ", "", True, dt.date(2024, 1, 31), dt.datetime(2024, 1, 31, 12, 30))]
    ['5', '1.25', 'a', None, 'True', '2024-01-31', '2024-01-31T12:30:00']
    """
    if isinstance(cell, float):
        return str(int(cell)) if cell.is_integer() and abs(cell) < 1e15 else repr(cell)
    if isinstance(cell, dt.date | dt.time):  # a datetime is a date
        return cell.isoformat().removesuffix("T00:00:00")
    return str(cell).strip() or None


def _check_size(path: Path, name: str) -> None:
    """Raise ValueError if a file would take too much memory.

    The library calamine allocates all cells of a rectangle, and copies a text for each cell that has it.
    """
    with zipfile.ZipFile(path) as archive:
        members = archive.infolist()
        if sum(member.file_size for member in members) > MAX_UNPACKED:
            raise ValueError(f"{name}: expected at most {MAX_UNPACKED >> 30} GB of unpacked cells, got more. {ADVICE}")
        others = [one for one in members if not _has(SHEET, _chunks(archive, one))]
        tables = [_lengths(_chunks(archive, one)) for one in others if _has(SHARED, _chunks(archive, one))]
        lengths = [max(each) for each in zip_longest(*tables, fillvalue=0)]
        total = 0
        for member in members:
            if member.filename == "content.xml":
                n_rows, n_columns, n_characters = _size_of_content(_chunks(archive, member))
            elif member not in others:
                n_rows, n_columns, n_characters, n_unknown = _size_of_sheet(_chunks(archive, member), lengths)
                if n_unknown:
                    logger.warning(
                        "%s: %d formulas have no stored result (%s) and are read as missing values; open the file in "
                        "Excel and save it",
                        name,
                        n_unknown,
                        member.filename,
                    )
            else:
                continue
            if n_rows * n_columns > MAX_CELLS:
                size = f"{n_rows:,} rows and {n_columns:,} columns"
                raise ValueError(f"{name}: expected at most {MAX_CELLS:,} cells in a sheet, got {size}. {ADVICE}")
            total += n_characters
            if total > MAX_TEXT:
                raise ValueError(
                    f"{name}: expected at most {MAX_TEXT:,} characters in all sheets, got {total:,} or more. {ADVICE}"
                )


def _chunks(archive: zipfile.ZipFile, member: zipfile.ZipInfo) -> Iterator[bytes]:
    """Yield the unpacked bytes of a member."""
    with archive.open(member) as stream:
        while chunk := stream.read(CHUNK):
            yield chunk


def _has(element: re.Pattern[bytes], chunks: Iterator[bytes]) -> bool:
    """Return whether a member of an Excel file has an element."""
    rest = b""
    for chunk in chunks:
        if element.search(rest + chunk):
            return True
        rest = chunk[-LONGEST_TAG:]
    return False


def _parse(chunks: Iterator[bytes], parser: expat.XMLParserType) -> None:
    """Parse a member."""
    for chunk in chunks:
        parser.Parse(chunk)
    parser.Parse(b"", True)


def _lengths(chunks: Iterator[bytes]) -> list[int]:
    """Return the lengths of the texts that cells of Excel refer to by number."""
    lengths: list[int] = []
    parser = expat.ParserCreate()

    def start(element: str, _attributes: dict[str, str]) -> None:
        if element.rpartition(":")[2] == "si":
            lengths.append(0)
            parser.CharacterDataHandler = count

    def count(text: str) -> None:
        lengths[-1] += len(text)

    parser.StartElementHandler = start
    _parse(chunks, parser)
    return lengths


def _size_of_sheet(chunks: Iterator[bytes], lengths: Sequence[int]) -> tuple[int, int, int, int]:
    """Return the size of an Excel sheet: rows, columns, characters, formulas.

    Formulas are those without a stored result. Rows and columns are those of the rectangle that contains all cells.
    Rows and cells without a position follow the one before. Cells of type "s" have the number of a text, whose length
    is in `lengths`.
    """
    row = column = n_rows = n_columns = n_characters = n_formulas = n_results = 0
    kind_of_cell, has_formula = "", False
    parser = expat.ParserCreate()
    parser.buffer_text = True  # a number is not cut in two

    def start(element: str, attributes: dict[str, str]) -> None:
        nonlocal row, column, n_rows, n_columns, n_formulas, kind_of_cell, has_formula
        kind = element.rpartition(":")[2]
        if kind == "c":
            at = _place(attributes.get("r", ""))
            row, column = at[0] or row, at[1] or column + 1
            n_rows, n_columns = max(n_rows, row), max(n_columns, column)
            kind_of_cell, has_formula = attributes.get("t", ""), False
            parser.CharacterDataHandler = text if kind_of_cell in TEXTS else None
        elif kind == "row":
            row, column = _place(attributes.get("r", ""))[0] or row + 1, 0
        # A result that is a text may be empty.
        elif kind == "f" and kind_of_cell not in TEXTS and not has_formula:
            has_formula = True
            n_formulas += 1
        elif kind == "v" and has_formula:
            parser.CharacterDataHandler = result

    def text(word: str) -> None:
        nonlocal n_characters
        if kind_of_cell != "s":
            n_characters += len(word)
        elif len(word) < LONGEST_TAG and word.strip().isdecimal() and int(word) < len(lengths):
            n_characters += lengths[int(word)]

    # The handler must not be changed in a call of it: that would empty the buffer by another call, without end.
    def result(_text: str) -> None:
        nonlocal n_results, has_formula
        n_results += has_formula
        has_formula = False

    def end(element: str) -> None:
        if element.rpartition(":")[2] == "v":
            parser.CharacterDataHandler = None

    parser.StartElementHandler, parser.EndElementHandler = start, end
    _parse(chunks, parser)
    return n_rows, n_columns, n_characters, n_formulas - n_results


def _place(word: str) -> tuple[int, int]:
    """Return the numbers of row and column of a cell, 0 if they are not given.

    >>> _place("AB12"), _place("7"), _place("")
    ((12, 28), (7, 0), (0, 0))
    """
    found = PLACE.match(word)
    assert found is not None  # the pattern matches the empty text
    return int(found[2] or 0), _number(found[1].upper())


@lru_cache(maxsize=1 << 15)
def _number(letters: str) -> int:
    """Return the number of a column from its letters.

    >>> _number("A"), _number("AB")
    (1, 28)
    """
    found = 0
    for letter in letters:
        found = 26 * found + ord(letter) - ord("A") + 1
    return found


def _size_of_content(chunks: Iterator[bytes]) -> tuple[int, int, int]:
    """Return rows, columns and characters of a rectangle with all cells.

    The sheets are those of an OpenDocument file. A row, a cell or a space can have a repeat count. Empty rows and cells
    at the end do not count.
    """
    n_rows = total = n_columns = width = n_characters = rows = cells = 0

    def start(element: str, attributes: dict[str, str]) -> None:
        nonlocal n_rows, total, n_columns, width, n_characters, rows, cells
        if element == "table:table-row":
            rows, width = _times(attributes, "table:number-rows-repeated"), 0
            total += rows
        elif element == "text:p":
            parser.CharacterDataHandler = text
        elif element in CELLS:
            cells = _times(attributes, "table:number-columns-repeated")
            width += cells
            n_characters += rows * cells * len(attributes.get("office:string-value", ""))
            if any("value" in name or name == "table:formula" for name in attributes):
                n_rows, n_columns = total, max(n_columns, width)
        elif element == "text:s":
            n_characters += rows * cells * _times(attributes, "text:c")

    def text(word: str) -> None:
        nonlocal n_characters
        n_characters += rows * cells * len(word)

    def end(element: str) -> None:
        if element in CELLS:
            parser.CharacterDataHandler = None

    parser = expat.ParserCreate()
    parser.StartElementHandler, parser.EndElementHandler = start, end
    _parse(chunks, parser)
    return n_rows, n_columns, n_characters


def _times(attributes: dict[str, str], name: str) -> int:
    """Return how many rows or cells one element stands for."""
    times = attributes.get(name, "1")
    return int(times) if times.isdecimal() else 1
