"""A table in one file or in many: a pattern of names, a folder, or a folder of folders such as ``year=2024``."""

import glob
import os
import re
from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from pathlib import Path
from urllib.parse import unquote

import pandas as pd

from ordinalq._utils.progress import along
from ordinalq.io.blocks import Block, Wanted
from ordinalq.io.files import STDIN
from ordinalq.io.names import require_columns
from ordinalq.io.table import Fixed, TableFile, format_of, open_file

# How Hive writes a missing value in the name of a folder.
MISSING_FOLDER = "__HIVE_DEFAULT_PARTITION__"
FOLDER = re.compile(r"([^=]+)=(.*)")
WHOLE_NUMBER = re.compile(r"-?(?:0|[1-9]\d{0,17})")
PATTERN = re.compile(r"[*?\[]")


def open_table(
    path: str | Path | Sequence[str | Path],
    format: str | None = None,  # noqa: A002
    encoding: str = "utf-8",
    quoting: str = "auto",
) -> "Table":
    """Return the table in a file or in many, which are looked at only to see that they are there.

    Parameters
    ----------
    path : str or Path, or list of these
        Its ending says the format (``.csv``, ``.tsv``, ``.jsonl``, ``.parquet``; text also packed, with ``.gz``,
        ``.bz2``, ``.xz`` or ``.zst``). "-" is the standard input; what comes from there or from a pipe is first copied
        to a temporary file. A folder stands for all files in and below it, except those that begin with "." or "_"; a
        pattern such as "reviews/*.parquet" for all files that match, with "**" for folders of any depth. Folders with
        names such as "year=2024" are a column of that name. Files are read in the order of their names, and must have
        the same columns.
    format : {"csv", "tsv", "jsonl", "parquet"}, default=None
        Needed if the ending does not tell the format.
    encoding : str, default="utf-8"
        Encoding of text files.
    quoting : {"auto", "minimal", "none"}, default="auto"
        Whether quotes around a cell of CSV and TSV files protect what is in it ("minimal"), or are characters like
        others ("none"). "auto": they protect in CSV files, and in TSV files in which all quotes are at the edges of
        cells.
    """
    given = [path] if isinstance(path, str | Path) else list(path)
    if not given:
        raise ValueError("path must name at least one file, got none.")
    found = [file for one in given for file in _found(one, format)]
    if len(found) > 1 and any(str(file) == STDIN for file, _ in found):
        raise ValueError("standard input: expected no other files.")
    paths = [file for file, _ in found]
    if twice := [file for file, times in Counter(paths).items() if times > 1]:
        raise ValueError(f"{twice[0]}: expected each file once, got it twice.")
    files = [open_file(file, format, encoding, quoting) for file in paths]
    formats = {file.format for file in files}
    if len(formats) > 1:
        first, other = files[0], next(file for file in files if file.format != files[0].format)
        raise ValueError(f"{other.name}: expected a {first.format} file, as {first.name} is, got {other.format}.")
    _set_fixed(files, [values for _, values in found])
    name = files[0].name if paths == [Path(given[0])] else ", ".join(map(str, given))
    return Table(name, files)


class Table:
    """Rows in one file, or in many of one format with the same columns; errors about all of them call it by its name.

    The files are in the order in which they are read.
    """

    def __init__(self, name: str, files: list[TableFile]) -> None:
        self.name = name
        self.files = files
        self.format = files[0].format
        # Whether a row may lack columns, so that those of the first row are not all.
        self.lacks_keys = self.format == "jsonl"

    @property
    def n_bytes(self) -> int:
        """Size of all files."""
        return sum(file.n_bytes for file in self.files)

    def columns(self) -> list[str]:
        """Return the names of the columns of the first file; for JSON lines, those of its first row."""
        return self.files[0].columns()

    def require(self, *columns: Sequence[str]) -> None:
        """Refuse a table that lacks columns of a list, one list after the other; rows that may lack any tell later."""
        for names in () if self.lacks_keys else columns:
            require_columns(self.columns(), names, self.name)

    def blocks(self, wanted: Wanted) -> Iterator[tuple[TableFile, Block]]:
        """Yield blocks of rows, each with the file that can read it, here or in another process."""
        before, kinds, empty = 0, self.files[0].kinds(), True
        for file in self.files:
            self._check(file, wanted, kinds)
            for block in file.blocks(wanted):
                empty = False
                yield file, block._replace(done=before + block.done)
            before += file.n_bytes
        if empty:
            raise ValueError(f"{self.files[-1].name}: expected rows, but the file has none after its header.")

    def pieces(self, wanted: Wanted) -> Iterator[tuple[TableFile, Block | None]]:
        """Yield what other machines can read: blocks, or whole files (None) where blocks cannot be found again."""
        for file in self.files:
            if not file.again:
                yield file, None
        for file, block in self.blocks(wanted):
            if file.again:
                yield file, file.light(block)

    def check_seen(self, wanted: Wanted, seen: Collection[str]) -> None:
        """Refuse a table in which all rows lack a column, where these were `seen`."""
        for file in self.files:
            file.check_seen(wanted, seen)

    def portions(
        self,
        columns: Sequence[str] | None = None,
        *,
        numbers: Collection[str] = (),
        native: Collection[str] = (),
        nested: bool = False,
    ) -> Iterator[pd.DataFrame]:
        """Yield the rows in portions; the index of each frame is the line (or row, in Parquet) of its file.

        What is read is said by :class:`Wanted`; how far that is, by :mod:`ordinalq._utils.progress`.
        """
        wanted = Wanted(columns, numbers, native, nested)
        seen: set[str] = set()

        def frames() -> Iterator[tuple[pd.DataFrame, int]]:
            done = 0
            for file, block in self.blocks(wanted):
                for frame, read in file.frames(block, wanted):
                    seen.update(frame.attrs.pop("seen", ()))
                    yield frame, int(done + read * (block.done - done))
                done = block.done

        yield from along("reading the table", frames(), self.n_bytes)
        self.check_seen(wanted, seen)

    def read(self, columns: Sequence[str] | None = None, *, nested: bool = False) -> pd.DataFrame:
        """Read the whole table, see :meth:`portions`."""
        portions = list(self.portions(columns, nested=nested))
        table = pd.concat(portions) if len(portions) > 1 else portions[0]
        table.index.name = portions[0].index.name
        table.attrs["where"] = self.name
        return table

    def _check(self, file: TableFile, wanted: Wanted, kinds: dict[str, str]) -> None:
        """Refuse a file with other columns than the first, or with groups of another kind."""
        first = self.files[0]
        if file.fixed and not self.lacks_keys and (twice := set(file.inner_columns()) & file.fixed.keys()):
            raise ValueError(f"{file.name}: has a column {min(twice)!r}, which is also the name of its folder.")
        if wanted.columns is None and not self.lacks_keys and file is not first:
            theirs, ours = first.columns(), file.columns()
            if lacking := [name for name in theirs if name not in set(ours)]:
                raise ValueError(f"{file.name}: lacks the column {lacking[0]!r} that {first.name} has.")
            if added := [name for name in ours if name not in set(theirs)]:
                raise ValueError(f"{file.name}: has a column {added[0]!r} that {first.name} lacks.")
        if not wanted.native or file is first:
            return
        own = file.kinds()
        for name in wanted.native:
            kind, expected = own.get(name), kinds.get(name)
            if kind != expected and "null" not in (kind, expected):
                raise ValueError(
                    f"{file.name}: expected {expected} in column {name!r}, as {first.name} has, got {kind}."
                )


def _found(path: str | Path, format: str | None) -> list[tuple[Path, dict[str, str]]]:  # noqa: A002
    """Return the files that a path, folder or pattern stands for, sorted, with what the names of folders say."""
    text = str(path)
    if text == STDIN or (os.path.lexists(text) and not os.path.isdir(text)):
        return [(Path(text), {})]
    if os.path.isdir(text):
        files = [Path(folder) / name for folder, _, names in os.walk(text) for name in names]
        inside = [file.relative_to(text) for file in files]
        files = [file for file, inner in zip(files, inside, strict=True) if not _is_hidden(inner)]
        files = [file for file in files if (format_of(file.name) if format is None else format) is not None]
        what = "expected a folder with .csv, .tsv, .jsonl or .parquet files, got none"
    elif PATTERN.search(text):
        files = [file for name in glob.glob(text, recursive=True) if (file := Path(name)).is_file()]
        what = "no file matches the pattern"
    else:
        raise FileNotFoundError(f"{text}: no such file.")
    if not files:
        raise FileNotFoundError(f"{text}: {what}.")
    return [(file, _values(file)) for file in sorted(files)]


def _is_hidden(inside: Path) -> bool:
    """Return whether a file is a note that a program has left beside the data."""
    return any(part.startswith((".", "_")) and not FOLDER.fullmatch(part) for part in inside.parts)


def _values(file: Path) -> dict[str, str]:
    """Return what the names of the folders of a file say.

    >>> _values(Path("reviews/year=2024/shop=north%20pole/a.csv"))
    {'year': '2024', 'shop': 'north pole'}
    """
    matches = [FOLDER.fullmatch(part) for part in file.parent.parts]
    return {unquote(match[1]): unquote(match[2]) for match in matches if match is not None}


def _set_fixed(files: list[TableFile], values: list[dict[str, str]]) -> None:
    """Give files the columns of their folders: words in text files, in Parquet whole numbers where all are."""
    names = values[0].keys()
    for file, one in zip(files, values, strict=True):
        if one.keys() != names:
            odd = min(one.keys() ^ names)
            raise ValueError(f"{file.name}: expected folders such as {odd}=... for all files or for none.")
    for name in names:
        words = [None if one[name] == MISSING_FOLDER else one[name] for one in values]
        whole = files[0].format == "parquet" and all(WHOLE_NUMBER.fullmatch(word) for word in words if word is not None)
        kind = ("Int64" if None in words else "int64") if whole else "object"
        for file, word in zip(files, words, strict=True):
            file.fixed[name] = Fixed(int(word) if whole and word is not None else word, kind)
