"""Tables of OpenML: fried as published, and Yolanda."""

from functools import partial
from pathlib import Path

from ordinalq._utils.validation import Floats
from ordinalq.datasets.download import find_local, openml_file, openml_target
from ordinalq.datasets.files import numeric_columns, read_table
from ordinalq.datasets.regression import SPAN
from ordinalq.datasets.tables import Regression

FRIED_FILES = ("fried.parquet", "fried.csv", "dataset_564.pq", "fried.arff")
# OpenML names them X1..X10 and Y; other copies of the same file have the second set of names.
FRIED_COLUMNS = (
    (*(f"X{i}" for i in range(1, 11)), "Y"),
    (*(f"attr_{i}" for i in range(10)), "target"),
)
YOLANDA_FILES = ("yolanda.parquet", "yolanda.csv", "yolanda.arff", "dataset_42705.pq", "Yolanda.arff")
YOLANDA_COLUMNS = (tuple(str(i) for i in range(1, 102)),)
YOLANDA_SPAN = (1922.0, 2011.0)


def _read(
    data_id: int, files: tuple[str, ...], known_columns: tuple[tuple[str, ...], ...], data: str | Path | None
) -> tuple[Floats, tuple[str, ...], tuple[()]]:
    """Find or fetch the file, and take its columns by name, the target last."""
    path = find_local(files, data) or openml_file(data_id, files[-1])
    target = openml_target(path)
    frame = read_table(path).rename(columns=str)
    columns = next((names for names in known_columns if set(names) <= set(frame.columns)), known_columns[0])
    if target is not None and target in frame.columns and len(frame.columns) == len(columns):
        # The publisher's own word on which column is the target goes before our list of names.
        columns = (*(name for name in frame.columns if name != target), target)
    return numeric_columns(frame, columns, str(path)), columns[:-1], ()


FRIED_OPENML = Regression(
    "fried-openml", "OpenML 564, fried; public", SPAN, partial(_read, 564, FRIED_FILES, FRIED_COLUMNS)
)
YOLANDA = Regression(
    "yolanda", "OpenML 42705, Yolanda; public", YOLANDA_SPAN, partial(_read, 42705, YOLANDA_FILES, YOLANDA_COLUMNS)
)
