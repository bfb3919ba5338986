"""A data set as a folder of Parquet files that any program can read."""

import json
import shutil
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from scipy import sparse

from ordinalq.datasets.split import Items, take
from ordinalq.samples.samples import Samples

CHUNK_ROWS = 2**14  # rows written to Parquet at once
PARTIAL = ".ordinalq-"  # beginning of the name of the folder in which files are written before they are moved
DESCRIPTION = "dataset.json"
FORMAT = "ordinalq data set 1"


def write_folder(
    folder: Path,
    description: dict[str, Any],
    parts: Mapping[str, Items],
    feature_names: tuple[str, ...],
    samples: Iterator[tuple[str, Samples]],
) -> list[Path]:
    """Write the files of a data set and return their paths; those of an earlier call go once all new ones are written.

    ``dataset.json`` has the description, the names of the files and that of the column of classes; each part is a file
    ``NAME.parquet``, each of the named samples a file ``samples_NAME.parquet``, NAME being "PROTOCOL POOL".
    """
    old = check_folder(folder)
    folder.mkdir(parents=True, exist_ok=True)
    label = "class"
    while label in feature_names:
        label += "_"
    files = {part: f"{part}.parquet" for part in parts}
    with tempfile.TemporaryDirectory(prefix=PARTIAL, dir=folder) as temporary:
        new = Path(temporary)
        for part, items in parts.items():
            _write_rows(new / files[part], _item_tables(items, label, feature_names))
        for name, drawn in samples:
            files[name] = f"samples_{name.replace(' ', '_')}.parquet".lower()
            _write_rows(new / files[name], iter([_sample_table(drawn)]))
        whole = description | {"class_column": label, "features": list(feature_names), "files": files}
        (new / DESCRIPTION).write_text(json.dumps(whole, indent=1) + "\n", encoding="utf-8")
        # The description goes first and comes last: where it is, all its files are there and belong together.
        for path in sorted(old, key=lambda path: path.name != DESCRIPTION):
            shutil.rmtree(path) if path.is_dir() else path.unlink()
        for file in (*files.values(), DESCRIPTION):
            (new / file).rename(folder / file)
    return [folder / DESCRIPTION, *(folder / file for file in files.values())]


def check_folder(folder: Path) -> list[Path]:
    """Return what earlier calls of :meth:`Dataset.save` wrote into a folder; refuse a folder with anything else."""
    if folder.exists() and not folder.is_dir():
        raise NotADirectoryError(f"{folder} must be a folder, but it is a file.")
    present = sorted(folder.iterdir()) if folder.exists() else []
    ours = {path.name for path in present if path.name.startswith(PARTIAL)}
    # A call that was interrupted while it moved its files has left the description in its temporary folder.
    for path in (folder / DESCRIPTION, *folder.glob(f"{PARTIAL}*/{DESCRIPTION}")):
        try:
            description = json.loads(path.read_text(encoding="utf-8"))
            if description["format"].startswith(FORMAT.rstrip("0123456789")):
                ours |= {DESCRIPTION, *description["files"].values()}
        except (OSError, ValueError, KeyError, TypeError, AttributeError):
            continue
    for path in present:
        if path.name not in ours:
            raise FileExistsError(
                f"{folder} must be absent, empty or written by ordinalq, but holds {path.name!r}; name another folder."
            )
    return present


def _sample_table(samples: Samples) -> Any:
    items = pa.LargeListArray.from_arrays(samples.offsets, samples.items)
    return pa.table({"items": items, "prevalence": list(np.asarray(samples.prevalences))})


def _item_tables(items: Items, label: str, feature_names: tuple[str, ...]) -> Iterator[Any]:
    """Yield the rows of a part as Arrow tables of one schema."""
    if hasattr(items.X, "iloc"):  # at once: the type of a column of objects follows from all of its rows
        yield pa.table(
            {label: items.y.astype(np.int32)} | {name: _arrow_column(items.X[name]) for name in feature_names}
        )
        return
    for start in range(0, len(items.y), CHUNK_ROWS):
        rows = np.arange(start, min(start + CHUNK_ROWS, len(items.y)))
        columns: dict[str, Any] = {label: items.y[rows].astype(np.int32)}
        X = take(items.X, rows)
        if sparse.issparse(X):
            X = sparse.csr_array(X)
            offsets = X.indptr.astype(np.int64)
            columns["feature"] = pa.LargeListArray.from_arrays(offsets, X.indices.astype(np.int32))
            columns["value"] = pa.LargeListArray.from_arrays(offsets, X.data)
        else:
            columns |= {name: np.ascontiguousarray(X[:, j]) for j, name in enumerate(feature_names)}
        yield pa.table(columns)


def _arrow_column(column: Any) -> Any:
    try:
        return pa.array(column, from_pandas=True)
    except pa.ArrowException as error:
        raise ValueError(
            f"column {column.name!r} cannot be written to Parquet, because its values are of different types; make "
            f"them all text or all numbers, or leave the column out. ({error})"
        ) from error


def _write_rows(path: Path, tables: Iterator[Any]) -> None:
    import pyarrow.parquet as pq

    first = next(tables)
    with pq.ParquetWriter(path, first.schema) as writer:
        writer.write_table(first)
        for table in tables:
            writer.write_table(table)
