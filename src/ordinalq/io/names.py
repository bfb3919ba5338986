"""Names of columns, and words that stand for a missing value."""

from collections.abc import Iterable, Sequence
from typing import Any

from ordinalq._utils.text import first_of
from ordinalq.samples.keys import PERIODS

# What pandas takes for a missing value by default.
MISSING_WORDS = (
    *("#N/A", "#N/A N/A", "#NA", "-1.#IND", "-1.#QNAN", "-NaN", "-nan", "1.#IND", "1.#QNAN"),
    *("<NA>", "N/A", "NA", "NULL", "NaN", "None", "n/a", "nan", "null"),
)

# What other programs call a column without a name, which only numbers the rows.
UNNAMED = ("", "__index_level_0__")

# A line with more cells is hardly the header of a table; each column costs time and memory of its own.
MAX_COLUMNS = 100_000


def require_columns(present: Iterable[Any], names: Sequence[str], where: str) -> None:
    """Refuse a table, called `where`, that lacks some of the columns; the error lists them."""
    present = list(present)
    known = set(present)
    missing = [name for name in names if name not in known]
    if missing:
        # Other files have no line of names.
        place = ", line 1" if where.removesuffix(".gz").endswith((".csv", ".tsv", ".arff")) else ""
        named = [name for name in present if name not in UNNAMED]
        dated = [name for name in missing if name.rpartition(":")[0] in known]
        periods = f"; periods of a column of dates are {', '.join(PERIODS)}, as in date:month" if dated else ""
        raise ValueError(
            f"{where}{place}: {len(missing)} of {len(names)} columns are missing: {_first(missing)}; there are "
            f"{len(named)} columns: {_first(named)}{periods}."
        )


def check_names(names: Sequence[str], where: str) -> None:
    """Refuse a table with two columns of the same name, or with more columns than a table has."""
    if len(names) > MAX_COLUMNS:
        raise ValueError(f"{where}: expected at most {MAX_COLUMNS:,} columns, got {len(names):,}.")
    seen = set(UNNAMED)
    for name in names:
        if name in seen and name not in UNNAMED:
            raise ValueError(f"{where}: expected columns of different names, but {name!r} occurs twice.")
        seen.add(name)


def _first(names: Sequence[Any]) -> str:
    return first_of([text if len(text := repr(name)) <= 60 else text[:57] + "..." for name in names])
