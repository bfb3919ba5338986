"""Tables of any size: `ordinalq predict --by` beside reading and scoring alone, memory, workers, a million groups.

    python benchmarks/scale.py --tiny
    python benchmarks/scale.py speed --rows 10000000
    python benchmarks/scale.py growth --rows 10000000 --plot docs/scale.png

Data are made under a temporary folder. Times are those of the processor, summed over processes, unless they are called
seconds of the clock; what it takes to start Python and load the model, measured on a thousand rows, is subtracted on
both sides of a ratio.
"""

import argparse
import os
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

import numpy as np
import pandas as pd

import ordinalq as oq
from ordinalq.contract.summary import Summary
from ordinalq.inference.groups import estimate
from ordinalq.keys import Column, Keys

KINDS = ("numbers", "texts", "parquet")
PARTS = ("speed", "memory", "groups", "growth")
WORDS = np.array(["bad", "poor", "fair", "good", "great", "kettle", "pen", "ink", "arrived", "late", "soon", "works"])
FEATURES = 10
CHUNK = 200_000

# Reading by pyarrow with one thread, and scoring by the same model; nothing is grouped or summed up.
ALONE = """
import sys
import pyarrow as pa
from pyarrow import csv, dataset
import ordinalq as oq
pa.set_cpu_count(1)
model, path, by = oq.load_model(sys.argv[1]), sys.argv[2], sys.argv[3]
columns = [*model.kinds_, by]
if path.endswith(".csv"):
    convert = csv.ConvertOptions(include_columns=columns)
    batches = csv.open_csv(path, csv.ReadOptions(use_threads=False, block_size=1 << 23), convert_options=convert)
else:
    batches = dataset.dataset(path).to_batches(columns=columns, use_threads=False, batch_size=50_000)
for batch in batches:
    if batch.num_rows:
        model.scores(batch.to_pandas())
"""


def rows(kind, n, rng):
    """Return n rows: numbers or texts, a label and a group of a hundred."""
    stars = rng.integers(1, 6, n)
    frame = pd.DataFrame({"stars": stars, "shop": rng.integers(0, 100, n)})
    if kind == "texts":
        words = WORDS[
            np.clip(rng.normal(stars[:, None] - 1, 3, size=(n, 30)).astype(int) % len(WORDS), 0, len(WORDS) - 1)
        ]
        return frame.assign(review=[" ".join(line) for line in words.tolist()])
    X = stars[:, None] * rng.random(FEATURES) + rng.normal(size=(n, FEATURES))
    return frame.join(pd.DataFrame(X.round(5), columns=[f"x{j}" for j in range(FEATURES)]))


def write(kind, n, folder):
    """Write n rows in portions, and return the path: one CSV file, or a folder of fifty Parquet files."""
    rng = np.random.default_rng(1)
    path = folder / (f"{kind}.csv" if kind != "parquet" else "parquet")
    if kind == "parquet":
        path.mkdir()
        for number, part in enumerate(np.array_split(np.arange(n), 50)):
            rows(kind, len(part), rng).to_parquet(path / f"{number:02d}.parquet")
        return path
    for start in range(0, n, CHUNK):
        part = rows(kind, min(CHUNK, n - start), rng)
        part.to_csv(path, index=False, mode="a", header=start == 0)
    return path


def model_of(kind, folder, method=None):
    """Fit a model on a few rows and save it."""
    train = rows(kind, 3000, np.random.default_rng(0))
    columns = {"text": ["review"]} if kind == "texts" else {"features": [f"x{j}" for j in range(FEATURES)]}
    path = folder / f"{kind}-{type(method).__name__}.oq"
    oq.TableModel(oq.OPACC() if method is None else method, **columns).fit(train, "stars").save(path)
    return path


def watched(command):
    """Run a command; return its seconds of the processor and of the clock, and the most memory in megabytes."""
    before, start, most = os.times(), time.monotonic(), [0.0]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL)
    ended = threading.Event()

    def look():
        while not ended.wait(0.2):
            most[0] = max(most[0], memory(process.pid))

    watcher = threading.Thread(target=look)
    watcher.start()
    code = process.wait()
    ended.set()
    watcher.join()
    if code:
        raise SystemExit(f"{command} failed")
    after = os.times()
    used = after.children_user + after.children_system - before.children_user - before.children_system
    return used, time.monotonic() - start, most[0]


def memory(pid):
    """Return the megabytes of a process and of all that it has started; what they share counts once."""
    total = 0
    try:
        for line in Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines():
            total += int(line.split()[1]) if line.startswith("Pss:") else 0
        children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    except (OSError, ValueError):
        return 0.0
    return total / 1024 + sum(memory(int(child)) for child in children)


def predict(model, path, *more):
    """Return the command."""
    return [
        sys.executable,
        "-m",
        "ordinalq",
        "predict",
        str(model),
        str(path),
        "--by",
        "shop",
        "--json",
        *map(str, more),
    ]


def speed(n, folder, kinds):
    """Print what `predict --by` takes beside reading and scoring alone, and with two workers."""
    print(f"{n:,} rows: seconds of the processor of predict, over reading and scoring alone; two workers over one")
    for kind in kinds:
        model, found, size = model_of(kind, folder), [], 0.0
        # Twice, since the first run fills the caches of the disk.
        for rows_of in (1000, 1000, n) if n > 10_000 else (1000, n):
            path = write(kind, rows_of, folder)
            files = [path] if path.is_file() else sorted(path.iterdir())
            size = sum(file.stat().st_size for file in files) / 1e6
            alone = [sys.executable, "-c", ALONE, str(model), str(path), "shop"]
            found.append([watched(one) for one in (alone, predict(model, path), predict(model, path, "--n-jobs", 2))])
            for file in files:
                file.unlink()
            if path.is_dir():
                path.rmdir()
        used, clock, _ = np.moveaxis(np.subtract(found[-1], found[-2]), 1, 0)
        most = [one[2] for one in found[-1]]
        print(
            f"{kind:8} {size:7,.0f} MB  alone {used[0]:6.1f}  predict {used[1]:6.1f}  ratio {used[1] / used[0]:.2f}   "
            f"two workers {used[2]:6.1f}, by the clock {clock[1] / clock[2]:.2f} times faster   "
            f"memory {most[1]:,.0f} and {most[2]:,.0f} MB",
            flush=True,
        )


def memories(n, folder):
    """Print the memory of two workers at two sizes, and the bytes that SLD keeps of an item."""
    for method in (oq.OPACC(), oq.SLD()):
        model = model_of("numbers", folder, method)
        for size in (n // 4, n):
            path = write("numbers", size, folder)
            most = watched(predict(model, path, "--n-jobs", 2))[2]
            print(f"{type(method).__name__:6} {size:10,} rows  {most:7,.0f} MB in three processes")
            path.unlink()


def groups(n):
    """Print the seconds for estimates of n groups from given summaries, and for intervals in closed form."""
    rng = np.random.default_rng(2)
    y = rng.integers(1, 6, 3000)
    S = np.exp(rng.normal(size=(3000, 5)) + np.eye(5)[y - 1])
    S /= S.sum(axis=1, keepdims=True)
    for method, level in ((oq.PACC(), None), (oq.OPACC(), None), (oq.BLP(), None), (oq.BLP(), 0.95)):
        named = {"groups": rng.integers(0, 100, 3000)} if isinstance(method, oq.BLP) else {}
        quantifier = method.fit_scores(S, y, **named)
        some = quantifier.summarize(S, oq.Samples.from_groups(rng.integers(0, 200, 3000)))
        drawn = rng.integers(0, len(some), n)
        totals = {name: total[drawn] for name, total in some.totals.items()}
        summary = Summary(some.n_items[drawn], totals, (), Keys([Column(pd.RangeIndex(n), "shop")]))
        start, before = time.monotonic(), time.process_time()
        estimate(quantifier, summary, level)
        used, clock = time.process_time() - before, time.monotonic() - start
        what = "estimates" if level is None else "with intervals"
        print(f"{type(method).__name__:6} {n:10,} groups, {what:15} {used:6.1f} s of the processor, {clock:6.1f} s")


def growth(n, folder, plot):
    """Print the seconds against the number of rows, from a hundredth of n on, and draw them."""
    sizes = sorted({max(1000, n // d) for d in (100, 30, 10, 3, 1)})
    model, seconds = model_of("parquet", folder), []
    for size in sizes:
        path = write("parquet", size, folder)
        used, clock, _ = watched(predict(model, path))
        seconds.append(used)
        print(f"{size:10,} rows  {used:7.1f} s of the processor  {clock:7.1f} s of the clock")
        for file in path.iterdir():
            file.unlink()
        path.rmdir()
    slope = (seconds[-1] - seconds[0]) / max(sizes[-1] - sizes[0], 1)
    print(f"each further million rows takes {1e6 * slope:.2f} s")
    if plot is not None:
        import matplotlib as mpl

        mpl.use("agg")
        import matplotlib.pyplot as plt

        figure, axes = plt.subplots(figsize=(5.5, 3.4), layout="constrained")
        axes.plot(sizes, seconds, "o-", color="#1f5fa8", label="predict --by")
        axes.plot(sizes, [seconds[0] + slope * (size - sizes[0]) for size in sizes], ":", color="0.5", label="a line")
        axes.set(xlabel="rows", ylabel="seconds of the processor", ylim=(0, None))
        axes.legend(frameon=False)
        figure.savefig(plot, dpi=150)


def main():
    """Measure what is asked for."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("parts", nargs="*", default=PARTS, metavar="PART", help=f"some of {', '.join(PARTS)}")
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--groups", type=int, default=1_000_000)
    parser.add_argument("--tiny", action="store_true", help="run in seconds")
    parser.add_argument("--kinds", nargs="+", choices=KINDS, default=KINDS, help="tables of part speed")
    parser.add_argument("--plot", type=Path)
    options = parser.parse_args()
    if options.tiny:
        # Each process that is started takes seconds: only some of what there is.
        options.rows, options.groups, options.kinds = 3000, 20_000, ("numbers",)
        options.parts = ("groups", "speed")
    with tempfile.TemporaryDirectory(prefix="ordinalq-scale-") as name:
        folder = Path(name)
        if "speed" in options.parts:
            speed(options.rows, folder, options.kinds)
        if "memory" in options.parts:
            memories(options.rows, folder)
        if "groups" in options.parts:
            groups(options.groups)
        if "growth" in options.parts:
            (folder / "growth").mkdir()
            growth(options.rows, folder / "growth", options.plot)


if __name__ == "__main__":
    main()
