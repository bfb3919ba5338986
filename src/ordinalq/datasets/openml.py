"""Tables of OpenML: fried as published, and Yolanda."""

from pathlib import Path

from ordinalq.datasets import fried
from ordinalq.datasets.dataset import Dataset
from ordinalq.datasets.download import find_local, openml_file, openml_target
from ordinalq.datasets.files import numeric_columns, read_table
from ordinalq.datasets.tables import regression_dataset

FRIED_FILES = ("fried.parquet", "fried.csv", "dataset_564.pq", "fried.arff")
# OpenML names them X1..X10 and Y; other copies of the same file have the second set of names.
FRIED_COLUMNS = (
    (*(f"X{i}" for i in range(1, 11)), "Y"),
    (*(f"attr_{i}" for i in range(10)), "target"),
)
YOLANDA_FILES = ("yolanda.parquet", "yolanda.csv", "yolanda.arff", "dataset_42705.pq", "Yolanda.arff")
YOLANDA_COLUMNS = (tuple(str(i) for i in range(1, 102)),)
YOLANDA_SPAN = (1922.0, 2011.0)


def load_fried(data: str | Path | None, settings: str, random_state: int) -> Dataset:
    """Return the published file as a data set."""
    source = "OpenML 564, fried; public"
    return _load("fried-openml", 564, FRIED_FILES, FRIED_COLUMNS, fried.SPAN, source, data, settings, random_state)


def load_yolanda(data: str | Path | None, settings: str, random_state: int) -> Dataset:
    """Return Yolanda as a data set."""
    source = "OpenML 42705, Yolanda; public"
    return _load("yolanda", 42705, YOLANDA_FILES, YOLANDA_COLUMNS, YOLANDA_SPAN, source, data, settings, random_state)


def _load(
    name: str,
    data_id: int,
    files: tuple[str, ...],
    known_columns: tuple[tuple[str, ...], ...],
    span: tuple[float, float],
    source: str,
    data: str | Path | None,
    settings: str,
    random_state: int,
) -> Dataset:
    """Find or fetch the file, take its columns by name, and bin the target, which comes last in `known_columns`."""
    path = find_local(files, data) or openml_file(data_id, files[-1])
    target = openml_target(path)
    frame = read_table(path).rename(columns=str)
    columns = next((names for names in known_columns if set(names) <= set(frame.columns)), known_columns[0])
    if target is not None and target in frame.columns and len(frame.columns) == len(columns):
        # The publisher's own word on which column is the target goes before our list of names.
        columns = (*(name for name in frame.columns if name != target), target)
    table = numeric_columns(frame, columns, str(path))
    return regression_dataset(name, table[:, :-1], table[:, -1], columns[:-1], span, source, settings, random_state)
