"""A table in many files: a pattern of names, a folder, or a folder of folders such as ``year=2024``."""

import glob
import os
import re
from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from pathlib import Path
from urllib.parse import unquote

from ordinalq.files.blocks import Block
from ordinalq.files.opening import STDIN
from ordinalq.files.table import Fixed, Table, TableFile, Wanted, format_of, open_file

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
) -> Table:
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
    plain = len(files) == 1 and not files[0].fixed and str(found[0][0]) == str(given[0])
    return files[0] if plain else TableFiles(", ".join(map(str, given)), files)


class TableFiles(Table):
    """A table in many files of one format, with the same columns; errors about all of them call it by its name."""

    def __init__(self, name: str, files: list[TableFile]) -> None:
        self.name = name
        self.format = files[0].format
        self._files = files

    @property
    def files(self) -> list[TableFile]:
        """The files, in the order in which they are read."""
        return self._files

    @property
    def n_bytes(self) -> int:
        """Size of all files."""
        return sum(file.n_bytes for file in self._files)

    def columns(self) -> list[str]:
        """Return the names of the columns of the first file."""
        return self._files[0].columns()

    def blocks(self, wanted: Wanted) -> Iterator[tuple[TableFile, Block]]:
        """Yield blocks of rows of one file after the other."""
        before, kinds, empty = 0, self._files[0].kinds(), True
        for i, file in enumerate(self._files):
            self._check(file, wanted, kinds)
            # One part of a table may have no rows, all may not.
            for _, block in file.blocks(wanted, empty=empty and i == len(self._files) - 1):
                empty = False
                yield file, block._replace(done=before + block.done)
            before += file.n_bytes

    def check_seen(self, wanted: Wanted, seen: Collection[str]) -> None:
        """Refuse files in which all rows of all files lack a column."""
        missing = [name for name in wanted.columns or () if name not in seen]
        for file in self._files if missing else ():
            if file.lacks_keys:
                file.check_seen(wanted, seen)

    def _check(self, file: TableFile, wanted: Wanted, kinds: dict[str, str]) -> None:
        """Refuse a file with other columns than the first, or with groups of another kind."""
        first = self._files[0]
        if not file.lacks_keys and (twice := set(file.inner_columns()) & file.fixed.keys()):
            raise ValueError(f"{file.name}: has a column {min(twice)!r}, which is also the name of its folder.")
        if wanted.columns is None and not file.lacks_keys and file is not first:
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
