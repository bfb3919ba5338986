"""Time and peak memory of `ordinalq predict` on a CSV file that is larger than what it may use of the memory.

    python benchmarks/large_csv.py [--gigabytes 3] [--kind text|numbers] [--folder FOLDER]

The file is written to a temporary folder (in FOLDER if given) and removed afterwards.
"""

import argparse
import csv
import os
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

ORDINALQ = [sys.executable, "-c", "from ordinalq.cli import script; script()"]
WORDS = [
    f"{a}{b}{c}" for a in "bdfgklmnprst" for b in ("a", "e", "i", "o", "u", "ai") for c in ("n", "l", "sk", "m", "r")
]


def text_rows(n: int, rng: np.random.Generator) -> tuple[list[str], list[list[object]]]:
    """Return header and rows of a product, a text of about 60 words and 1 to 5 stars."""
    rows: list[list[object]] = []
    for star in rng.integers(1, 6, size=n):
        # The words that a star prefers are a window of the list, which overlaps with those of its neighbours.
        centre = rng.normal(60 * star, 60, size=rng.integers(30, 90))
        words = [WORDS[int(i) % len(WORDS)] for i in centre]
        rows.append([f"product {rng.integers(50)}", " ".join(words), int(star)])
    return ["product", "review", "stars"], rows


def number_rows(n: int, rng: np.random.Generator) -> tuple[list[str], list[list[object]]]:
    """Return header and rows of a product, eight measurements and 1 to 5 stars."""
    rows: list[list[object]] = []
    for star in rng.integers(1, 6, size=n):
        values = (star + rng.normal(0, 1.5, size=8)).round(6).tolist()
        rows.append([f"product {rng.integers(50)}", *values, int(star)])
    return ["product", *(f"x{j}" for j in range(8)), "stars"], rows


def write(path: Path, header: list[str], rows: list[list[object]], n_bytes: int = 0) -> int:
    """Write the rows, again and again until the file has so many bytes; return their number."""
    with path.open("w", encoding="utf-8", newline="") as stream:
        csv.writer(stream, lineterminator="\n").writerow(header)
        stream.flush()
        start = stream.tell()
        csv.writer(stream, lineterminator="\n").writerows(rows)
    block = path.read_bytes()[start:]
    repeats = max(0, -(-n_bytes // len(block)) - 1)
    with path.open("ab") as binary:
        for _ in range(repeats):
            binary.write(block)
    return len(rows) * (repeats + 1)


def main() -> None:
    """Make the file, run the command, print what it took."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--gigabytes", type=float, default=3.0)
    parser.add_argument("--kind", choices=("text", "numbers"), default="text")
    parser.add_argument("--folder", default=None)
    parser.add_argument("--tiny", action="store_true", help="a megabyte instead of gigabytes")
    options = parser.parse_args()
    gigabytes = 0.001 if options.tiny else options.gigabytes
    make, columns = (
        (text_rows, ["--text", "review"])
        if options.kind == "text"
        else (number_rows, ["--features", ",".join(f"x{j}" for j in range(8))])
    )
    rng = np.random.default_rng(0)
    with tempfile.TemporaryDirectory(dir=options.folder) as name:
        folder = Path(name)
        train, new, model = folder / "train.csv", folder / "new.csv", folder / "model.oq"
        write(train, *make(500 if options.tiny else 5000, rng))
        subprocess.run([*ORDINALQ, "fit", train, "--target", "stars", *columns, "--out", model], check=True)
        n_rows = write(new, *make(1000 if options.tiny else 50_000, rng), n_bytes=int(gigabytes * 1e9))
        fitting = resource.getrusage(resource.RUSAGE_CHILDREN)
        start = time.perf_counter()
        command = [*ORDINALQ, "predict", model, new, "--by", "product", "--interval", "0.95"]
        run = subprocess.Popen([*command, "--out", folder / "result.csv"], stdout=subprocess.DEVNULL)
        _, status, usage = os.wait4(run.pid, 0)
        seconds = time.perf_counter() - start
        if status:
            sys.exit("ordinalq predict failed")
        processor = resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime - fitting.ru_utime
        print(
            f"{options.kind}: {new.stat().st_size / 1e9:.3f} GB, {n_rows:,} rows: {seconds:.0f} s "
            f"({processor:.0f} s of processor time), at most {usage.ru_maxrss / 1024**2:.2f} GB of memory"
        )


if __name__ == "__main__":
    main()
