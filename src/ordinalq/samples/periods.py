"""Periods of time that are groups: their names, and which follows which."""

import datetime as dt
import re
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from ordinalq._utils.validation import Counts

# Names of periods, which sort as the periods follow one another; a week is that of ISO 8601.
PERIODS = {"year": "%Y", "quarter": "%Y-Q", "month": "%Y-%m", "week": "%G-W%V", "day": "%Y-%m-%d"}

ASKED = re.compile(rf"(.+?):({'|'.join(PERIODS)})(?::(.+))?", re.DOTALL)
NAMES = {
    "year": re.compile(r"(1[5-9]\d\d|2\d{3})"),
    "quarter": re.compile(r"(\d{4})-Q([1-4])"),
    "month": re.compile(r"(\d{4})-(0[1-9]|1[0-2])"),
    "week": re.compile(r"(\d{4})-W(0[1-9]|[1-4]\d|5[0-3])"),
    "day": re.compile(r"(\d{4})-(\d{2})-(\d{2})"),
}


class Asked(NamedTuple):
    """A column of groups, the period of its dates that is asked for, if any, and their format ("": as is usual)."""

    column: str
    period: str | None
    style: str


def with_period(by: str) -> Asked:
    """Return a column and the period that is asked for, if any.

    >>> [tuple(with_period(by)) for by in ("date:month", "date:day:%m/%d/%Y", "date", "a:b")]
    [('date', 'month', ''), ('date', 'day', '%m/%d/%Y'), ('date', None, ''), ('a:b', None, '')]
    """
    found = ASKED.fullmatch(by)
    return Asked(by, None, "") if found is None else Asked(found[1], found[2], found[3] or "")


def numbered(names: Sequence[str]) -> tuple[str, Counts] | None:
    """Return the period that all names are of, and the number (T,) of each on a line of all; None for other names.

    >>> numbered(["2023-12", "2024-03"]), numbered(["red", "blue"])
    (('month', array([24287, 24290])), None)
    """
    for period, pattern in NAMES.items():
        found = [pattern.fullmatch(name) for name in names]
        if names and all(found):
            try:
                numbers = [_number(period, *map(int, match.groups())) for match in found if match is not None]
            except ValueError:  # no such day or week
                return None
            return period, np.array(numbers, dtype=np.int64)
    return None


def _number(period: str, year: int, part: int = 1, day: int = 1) -> int:
    if period in ("week", "day"):
        date = dt.date.fromisocalendar(year, part, 1) if period == "week" else dt.date(year, part, day)
        return date.toordinal() // (7 if period == "week" else 1)
    return year * {"year": 1, "quarter": 4, "month": 12}[period] + part - 1


def named(period: str, first: int, n: int) -> list[str]:
    """Return the names of n periods, one after the other.

    >>> named("quarter", 4 * 2023 + 3, 2), named("day", numbered(["2024-02-28"])[1][0], 2)
    (['2023-Q4', '2024-Q1'], ['2024-02-28', '2024-02-29'])
    """
    numbers = range(first, first + n)
    if period == "day":
        return [dt.date.fromordinal(number).isoformat() for number in numbers]
    if period == "week":
        weeks = [dt.date.fromordinal(7 * number + 1).isocalendar() for number in numbers]
        return [f"{week.year}-W{week.week:02d}" for week in weeks]
    parts = [divmod(number, {"year": 1, "quarter": 4, "month": 12}[period]) for number in numbers]
    forms = {"year": "{}", "quarter": "{}-Q{}", "month": "{}-{:02d}"}
    return [forms[period].format(year, part + 1) for year, part in parts]
