"""Atomic writing of results."""

import errno
import os
import re
import tempfile
import warnings
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from ordinalq._utils.extras import require_extra
from ordinalq.io.columns import is_words
from ordinalq.io.files import ENDINGS

# Beginnings of cells that spreadsheets take for formulas.
FORMULAS = ("=", "+", "-", "@", "\t", "\r")
NUMBER = re.compile(r"[+-](?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?")
# Warning of matplotlib about a character that the font lacks.
GLYPH = re.compile(r"Glyph (\d+) .*missing from (?:current )?font")
FIGURES = ("png", "svg", "pdf")
# Formats of numbers in Excel by the kind of a column.
STYLES = {"f": "0.00", "i": "#,##0", "u": "#,##0"}
# Characters from which cells of Excel files are broken into lines, and the width of their columns in pixels.
LONG, WIDE = 40, 300
# The files of a table in a folder.
PART = re.compile(r"part-\d{5}\.parquet")


@contextmanager
def replacing(path: Path, *, prefix: str = "", sync: bool = False) -> Iterator[Path]:
    """Yield a temporary name in the same folder, which becomes `path` at the end.

    The temporary file is deleted after an error. The target of a link is replaced, not the link. The prefix of the name
    marks leftovers of a killed process. With `sync` the bytes are on the disk before the file gets its name.
    """
    path = path.resolve() if path.is_symlink() else path
    try:
        start = f"{prefix or '.'}{path.name[:100]}."
        handle, name = tempfile.mkstemp(prefix=start, suffix=path.suffix[:20], dir=path.parent)
        os.close(handle)
        temporary = Path(name)
        try:
            yield temporary
            # mkstemp allows the owner only; set the permissions of a plain `open`.
            mask = os.umask(0)
            os.umask(mask)
            temporary.chmod(0o666 & ~mask)
            if sync:
                with temporary.open("rb") as file:
                    os.fsync(file.fileno())
            temporary.replace(path)
        finally:
            temporary.unlink(missing_ok=True)
    except OSError as error:
        if error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG):
            raise OSError(error.errno, f"{os.strerror(error.errno)}; nothing was written", str(path)) from error
        raise


def write_bytes(path: Path, content: bytes, *, prefix: str = "", sync: bool = False) -> None:
    """Write a file as a whole or not at all, see :func:`replacing`."""
    with replacing(path, prefix=prefix, sync=sync) as temporary:
        temporary.write_bytes(content)


def check_output(path: Path, *inputs: Path) -> Path:
    """Return a path that can be written and is none of the inputs."""
    if path.is_dir():
        raise ValueError(f"{path}: expected the name of a file to write, got a folder.")
    target = Path(os.path.realpath(path))
    if path.is_symlink() and not target.parent.is_dir():
        raise FileNotFoundError(f"{path}: is a link to {target}, whose folder does not exist.")
    if not target.parent.is_dir():
        raise FileNotFoundError(f"{path.parent}: no such folder to write {path.name} to.")
    if not os.access(target.parent, os.W_OK):
        raise PermissionError(f"{target.parent}: not allowed to write {path.name} there.")
    if target.exists() and not target.is_file():
        raise ValueError(f"{path}: expected the name of a file to write, got a device or a pipe.")
    for given in inputs:
        if path.exists() and given.exists() and path.samefile(given):
            raise ValueError(f"{path}: expected the output to be a different file from the input.")
    return path


def table_format(path: Path) -> str:
    """Return the format of a table to write, by the ending of its name."""
    ending = path.suffix.lower().removeprefix(".")
    if ending not in ENDINGS or ending in ("ods", "xlsm"):
        raise ValueError(f"{path}: expected a name that ends with .csv, .tsv, .xlsx, .jsonl or .parquet.")
    if ENDINGS[ending] == "excel":
        with require_extra("excel", "writing .xlsx files"):
            import xlsxwriter  # noqa: F401
    return ENDINGS[ending]


def figure_format(path: Path) -> str:
    """Return the format of a plot to write, by the extension of its name."""
    ending = path.suffix.lower().removeprefix(".")
    if ending not in FIGURES:
        raise ValueError(f"{path}: expected a name that ends with .png, .svg or .pdf.")
    return ending


def write_table(
    frame: pd.DataFrame, path: Path, kind: str, *, csv_safe: bool = False, percent: Collection[str] = ()
) -> None:
    """Write a table in one of the formats of `ordinalq.io.table`.

    Missing values are empty cells, or null. In CSV and TSV files, text that a spreadsheet would interpret as a formula
    gets a leading quote if `csv_safe`. Otherwise a warning is issued. In Excel files text is never a formula, and the
    columns `percent` are displayed in percent.
    """
    if kind == "excel":
        _write_excel(frame, path, set(percent))
    elif kind == "parquet":
        frame.to_parquet(path, index=False)
    elif kind == "jsonl":
        frame.to_json(path, orient="records", lines=True, force_ascii=False, double_precision=15, date_format="iso")
    else:
        _without_formulas(frame, csv_safe).to_csv(
            path, index=False, sep="\t" if kind == "tsv" else ",", lineterminator="\n"
        )


def _write_excel(frame: pd.DataFrame, path: Path, percent: Collection[str]) -> None:
    """Write a sheet with number formats, a frozen first row and column widths.

    The widths are limited.
    """
    import xlsxwriter
    from xlsxwriter.utility import xl_range

    safe = {"strings_to_formulas": False, "strings_to_urls": False, "strings_to_numbers": False}
    with xlsxwriter.Workbook(str(path), {**safe, "nan_inf_to_errors": True}) as book:
        sheet = book.add_worksheet("table")
        sheet.freeze_panes(1, 0)
        bold = book.add_format({"bold": True, "text_wrap": True, "valign": "top"})
        wrapped = book.add_format({"text_wrap": True, "valign": "top"})
        fitting: dict[int, int] = {}
        for j, name in enumerate(frame.columns):
            column = frame.iloc[:, j]
            style = "0.0%" if name in percent else STYLES.get(column.dtype.kind)
            shown = book.add_format({"valign": "top"} | ({"num_format": style} if style else {}))
            sheet.write_string(0, j, str(name), bold)
            lengths = [len(str(name)), len("100.0%")]
            for i, value in enumerate(column.tolist(), 1):
                if value is None or pd.isna(value):
                    continue
                if isinstance(value, bool) or not isinstance(value, int | float):
                    text = value.isoformat() if hasattr(value, "isoformat") else str(value)
                    sheet.write_string(i, j, text, wrapped if len(text) > LONG else shown)
                else:
                    sheet.write_number(i, j, value, shown)
                    lengths.append(len(f"{value:,.2f}"))
            if style:
                fitting[j] = min(max(lengths) + 2, LONG)
        sheet.autofit(max_width=WIDE)
        # The automatic width counts all digits of a number, also those that its format hides.
        for j, width in fitting.items():
            sheet.set_column(j, j, width)
        if frame.size:
            sheet.ignore_errors({"number_stored_as_text": xl_range(1, 0, len(frame), frame.shape[1] - 1)})


def _without_formulas(frame: pd.DataFrame, csv_safe: bool) -> pd.DataFrame:
    """Return a table for spreadsheets, see :func:`write_table`."""
    words = {j: frame.iloc[:, j] for j in range(frame.shape[1]) if is_words(frame.iloc[:, j])}
    found = {j: column.map(_is_formula).to_numpy(dtype=bool) for j, column in words.items()}
    n_cells = sum(int(mask.sum()) for mask in found.values()) + sum(map(_is_formula, frame.columns))
    if n_cells == 0:
        return frame
    if not csv_safe:
        warnings.warn(
            f"{n_cells:,} cells begin with =, +, - or @, which spreadsheets take for formulas. Use csv_safe=True to "
            "quote them.",
            UserWarning,
            stacklevel=3,
        )
        return frame
    safe = frame.copy()
    for j, mask in found.items():
        safe.isetitem(j, [f"'{cell}" if bad else cell for cell, bad in zip(words[j], mask, strict=True)])
    safe.columns = pd.Index([f"'{name}" if _is_formula(name) else name for name in frame.columns])
    return safe


def _is_formula(cell: Any) -> bool:
    """Return whether a spreadsheet takes a cell for a formula.

    >>> [_is_formula(cell) for cell in ("=A1", "-1.5", "-A1", "a=b", -1.5)]
    [True, False, True, False, False]
    """
    return isinstance(cell, str) and cell.startswith(FORMULAS) and NUMBER.fullmatch(cell) is None


def check_folder(path: Path) -> Path:
    """Return a folder that can be written.

    It must be new, or contain only parts of an earlier table.
    """
    if path.is_dir():
        strange = next((one.name for one in sorted(path.iterdir()) if not PART.fullmatch(one.name)), None)
        if strange is not None:
            raise FileExistsError(f"{path}: expected a new folder, or one of an earlier table, but it has {strange!r}.")
        return path
    if path.exists():
        raise FileExistsError(f"{path}: expected a name with .csv, .tsv, .xlsx, .jsonl or .parquet, or a folder.")
    return check_output(path)


@contextmanager
def replacing_folder(path: Path) -> Iterator[Path]:
    """Yield a temporary folder whose files replace those of `path` at the end.

    It is next to `path`. See :func:`check_folder`.
    """
    with tempfile.TemporaryDirectory(prefix=f".{path.name[:100]}.", dir=path.parent) as name:
        yield Path(name)
        if path.is_dir():
            for old in path.iterdir():
                old.unlink()
        path.mkdir(exist_ok=True)
        for new in sorted(Path(name).iterdir()):
            new.replace(path / new.name)


def save_figure(axes: Any, path: Path, kind: str) -> None:
    """Write the figure of `axes`, one of `ordinalq.plot` or an array of them.

    One warning names all characters that the font of the figure lacks.
    """
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        np.ravel(axes)[0].figure.savefig(path, format=kind, dpi=150, bbox_inches="tight")
    missing = dict.fromkeys(int(found[1]) for one in caught if (found := GLYPH.match(str(one.message))))
    for one in caught:
        if not GLYPH.match(str(one.message)):
            warnings.warn_explicit(one.message, one.category, one.filename, one.lineno)
    if missing:
        warnings.warn(
            f"the font of the plot has no character {''.join(map(chr, missing))} and shows boxes. Set font.family in a "
            "matplotlibrc file to an installed font that has them.",
            UserWarning,
            stacklevel=2,
        )
