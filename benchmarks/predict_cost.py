"""Cost of `ordinalq predict` beyond reading and scoring, and cost of idle threads, in one run.

    python benchmarks/predict_cost.py [--rows 600000] [--tiny]

The table has ten columns, see `reading.py`; the model takes seven numbers, and the rows have 5000 groups. "total" is
reading, scoring and grouping of all blocks in one process. "CPU" is that of the whole command in a new process, with
the threads that BLAS takes by default, and with one.
"""

import argparse
import os
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
from reading import NUMBERS, best, make_table
from sklearn.linear_model import LogisticRegression

import ordinalq as oq
from ordinalq.io.table import open_table
from ordinalq.tables.grouping import Grouping
from ordinalq.tables.model import scores_of
from ordinalq.tables.predict import summarize_table

COMMAND = """
import resource, sys
from ordinalq.cli import main
main(sys.argv[1:])
used = resource.getrusage(resource.RUSAGE_SELF)
print(used.ru_utime + used.ru_stime, file=sys.stderr)
"""


def cpu_seconds(arguments: list[str], **environment: str) -> float:
    """Return the CPU time of the command in a new process."""
    inherited = {name: value for name, value in os.environ.items() if not name.endswith("_NUM_THREADS")}
    command = [sys.executable, "-c", COMMAND, *arguments]
    done = subprocess.run(command, capture_output=True, text=True, check=True, env={**inherited, **environment})
    return float(done.stderr.splitlines()[-1])


def main() -> None:
    """Print one line per ratio."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, default=600_000)
    parser.add_argument("--tiny", action="store_true", help="a small table, to see that it runs")
    options = parser.parse_args()
    n_rows, repeats = (2000, 1) if options.tiny else (options.rows, 3)
    table = make_table(n_rows)
    rng = np.random.default_rng(34)
    train = table[:2000].assign(stars=1 + np.clip(np.rint(table["x0"][:2000] + rng.normal(size=2000)) + 2, 0, 4))
    model = oq.TableModel(oq.PACC(LogisticRegression()), features=NUMBERS).fit(train, "stars")
    with tempfile.TemporaryDirectory() as folder:
        for ending in ("csv", "parquet"):
            path = Path(folder) / f"table.{ending}"
            table.to_csv(path, index=False) if ending == "csv" else table.to_parquet(path, index=False)
            model.save(Path(folder) / "model.oq")
            frames = list(open_table(path).chunks([*NUMBERS, "product"], numbers=NUMBERS))
            grouping = Grouping("product", ending)

            def read(path: Path = path) -> None:
                assert sum(len(f) for f in open_table(path).chunks([*NUMBERS, "product"], numbers=NUMBERS)) == n_rows

            def score(frames: list = frames) -> None:
                for frame in frames:
                    scores_of(model, frame)

            def group(frames: list = frames, grouping: Grouping = grouping) -> None:
                for frame in frames:
                    grouping.samples(frame)

            def total(path: Path = path) -> None:
                summarize_table(model, open_table(path), by=["product"])

            reading, scoring, groups, together = best([read, score, group, total], repeats)
            ratio = together / (reading + scoring)
            parts = f"reading {reading:.2f} s, scoring {scoring:.2f} s, grouping {groups:.2f} s, total {together:.2f} s"
            print(f"{ending}: {parts}: total {ratio:.2f} times reading plus scoring")
            arguments = ["predict", str(Path(folder) / "model.oq"), str(path), "--by", "product", "--json"]
            default, one = cpu_seconds(arguments), cpu_seconds(arguments, OPENBLAS_NUM_THREADS="1", OMP_NUM_THREADS="1")
            print(f"{ending}: CPU {default:.2f} s by default, {one:.2f} s with one thread: {default / one:.2f} times")


if __name__ == "__main__":
    main()
