"""Speed of reading tables: our reader compared with pyarrow, in one run.

    python benchmarks/reading.py [--rows 200000] [--tiny]

The table has ten columns: seven of numbers, a text, a group and a date. "ours" is what `ordinalq predict` does:
chunks of the columns that a model needs, numbers as floats, checked text, a line number for every row.
"""

import argparse
import tempfile
import time
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow.csv
import pyarrow.json
import pyarrow.parquet

from ordinalq.io.table import open_table

NUMBERS = [f"x{i}" for i in range(7)]


def make_table(n_rows: int) -> pd.DataFrame:
    """Return rows of every kind of column."""
    rng = np.random.default_rng(876)
    table = {name: rng.normal(size=n_rows).round(4) for name in NUMBERS}
    item = np.arange(n_rows)
    table["review"] = [f'some words {i % 97}, and "more" of quality {i % 13}' for i in item]
    table["product"] = [f"p{i % 5000}" for i in item]
    table["day"] = [f"2024-01-{i % 28 + 1:02d}" for i in item]
    return pd.DataFrame(table)


def best(works, repeats: int) -> list[float]:
    """Return the shortest of some times of each work, in seconds; they take turns."""
    times: list[list[float]] = [[] for _ in works]
    for _ in range(repeats):
        for work, found in zip(works, times, strict=True):
            start = time.perf_counter()
            work()
            found.append(time.perf_counter() - start)
    return [min(found) for found in times]


def ours(path: Path) -> None:
    """Read all chunks of a table."""
    columns = [*NUMBERS, "review", "product", "day"]
    assert sum(len(frame) for frame in open_table(path).chunks(columns, numbers=NUMBERS)) > 0


def main() -> None:
    """Print one line per format."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, default=200_000)
    parser.add_argument("--tiny", action="store_true", help="a small table, to see that it runs")
    options = parser.parse_args()
    n_rows, repeats = (2000, 1) if options.tiny else (options.rows, 7)
    table = make_table(n_rows)
    print(f"{n_rows:,} rows, {table.shape[1]} columns; best of {repeats}")
    print(f"{'':12}{'ours':>10}{'pyarrow':>10}{'ratio':>8}")
    with tempfile.TemporaryDirectory() as folder:
        quoted, plain = Path(folder) / "quoted.csv", Path(folder) / "plain.csv"
        table.to_csv(quoted, index=False)
        table.assign(review=table["review"].str.replace('[,"]', "", regex=True)).to_csv(plain, index=False)
        lines, parquet = Path(folder) / "t.jsonl", Path(folder) / "t.parquet"
        table.to_json(lines, orient="records", lines=True)
        table.to_parquet(parquet)
        newlines = pyarrow.csv.ParseOptions(newlines_in_values=True)
        rivals = {
            "plain CSV": (plain, lambda: pyarrow.csv.read_csv(plain).to_pandas()),
            "quoted CSV": (quoted, lambda: pyarrow.csv.read_csv(quoted, parse_options=newlines).to_pandas()),
            "JSON lines": (lines, lambda: pyarrow.json.read_json(lines).to_pandas()),
            "Parquet": (parquet, lambda: pyarrow.parquet.read_table(parquet).to_pandas()),
        }
        for name, (path, rival) in rivals.items():
            mine, theirs = best((lambda path=path: ours(path), rival), repeats)
            print(f"{name:12}{mine:9.3f}s{theirs:9.3f}s{mine / theirs:8.2f}")


if __name__ == "__main__":
    main()
