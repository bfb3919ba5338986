"""Tables of any size: `ordinalq predict --by` next to reading and scoring alone, memory, workers, a million groups.

    python benchmarks/scale.py --tiny
    python benchmarks/scale.py speed --kinds numbers --rows 35300000 --folder data     # 3 GB of CSV
    python benchmarks/scale.py speed --kinds texts --rows 19000000 --folder data       # 3 GB of CSV
    python benchmarks/scale.py speed --kinds numbers parquet --rows 10000000 --folder data  # two processes and one
    python benchmarks/scale.py speed memory growth --kinds parquet --rows 10000000 --folder data --plot docs/scale.svg

Data are made under a temporary folder, or in one that keeps them. Times are those of the processor, summed over
processes, unless they are called seconds of the clock.
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
import pyarrow as pa
import pyarrow.parquet as pq
from pyarrow import compute, csv

import ordinalq as oq
from ordinalq.inference.predict import estimate
from ordinalq.io.table import open_table
from ordinalq.samples.keys import Column, Keys
from ordinalq.samples.summary import Summary
from ordinalq.tables.predict import summarize_table

KINDS = ("numbers", "texts", "parquet")
PARTS = ("speed", "memory", "groups", "growth")
WORDS = ["bad", "poor", "fair", "good", "great", "kettle", "pen", "ink", "arrived", "late", "soon", "works"]
# Words in a text; how much each of ten numbers grows by class.
TEXT, SLOPES = 30, np.random.default_rng(7).random(10)
CHUNK = 100_000
# Rows that take no time next to that of starting.
FEW = 1000

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
    """Return n rows as a table of Arrow: numbers or texts, a label and a group of a hundred."""
    stars, shop = rng.integers(1, 6, n), rng.integers(0, 100, n)
    if kind == "texts":
        codes = rng.normal(stars[:, None] - 1, 3, size=(n, TEXT)).astype(int) % len(WORDS)
        ends = pa.array(np.arange(0, TEXT * n + 1, TEXT, dtype=np.int32))
        words = pa.ListArray.from_arrays(ends, pa.array(WORDS).take(pa.array(codes.ravel())))
        return pa.table({"stars": stars, "shop": shop, "review": compute.binary_join(words, " ")})
    X = (stars[:, None] * SLOPES + rng.normal(size=(n, len(SLOPES)))).round(5)
    return pa.table({"stars": stars, "shop": shop, **{f"x{j}": x for j, x in enumerate(X.T)}})


def written(kind, n, folder):
    """Return the path of n rows, made unless they are there: one CSV file, or a folder of fifty Parquet files."""
    path = folder / (f"{kind}-{n}.csv" if kind != "parquet" else f"{kind}-{n}")
    if path.exists():
        return path
    rng = np.random.default_rng(1)
    if kind == "parquet":
        path.mkdir()
        for number, part in enumerate(np.array_split(np.arange(n), 50)):
            pq.write_table(rows(kind, len(part), rng), path / f"{number:02d}.parquet")
        return path
    with path.open("wb") as file:
        for start in range(0, n, CHUNK):
            part = rows(kind, min(CHUNK, n - start), rng)
            csv.write_csv(part, file, csv.WriteOptions(include_header=start == 0, quoting_style="none"))
    return path


def model_of(kind, folder, method=None):
    """Fit a model on a few rows and save it."""
    train = rows(kind, 3000, np.random.default_rng(0)).to_pandas()
    columns = {"text": ["review"]} if kind == "texts" else {"features": [f"x{j}" for j in range(len(SLOPES))]}
    path = folder / f"{kind}-{type(method).__name__}.oq"
    model = oq.TableModel(oq.OPACC() if method is None else method, **columns).fit(train, "stars")
    model.save(path, overwrite=True)
    return path


def watched(command):
    """Run a command; return its seconds of the processor and of the clock, megabytes, and its own seconds."""
    before, start, most, own = os.times(), time.monotonic(), 0.0, 0.0
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL)
    ended = threading.Event()
    threading.Thread(target=lambda: ended.set() if process.wait() is not None else None).start()
    while not ended.wait(0.3):
        most, own = max(most, memory(process.pid)), max(own, used_by(process.pid))
    if process.returncode:
        raise SystemExit(f"{command} failed")
    after = os.times()
    used = after.children_user + after.children_system - before.children_user - before.children_system
    return np.array([used, time.monotonic() - start, most, own])


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


def used_by(pid):
    """Return the seconds of the processor of a process itself, without those that it has started."""
    try:
        cells = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return 0.0
    return (int(cells[11]) + int(cells[12])) / os.sysconf("SC_CLK_TCK")


def predict(model, path, *more):
    """Return the command."""
    how = ["predict", str(model), str(path), "--by", "shop", "--json", *map(str, more)]
    return [sys.executable, "-m", "ordinalq", *how]


def speed(n, folder, kinds):
    """Print what `predict --by` takes next to reading and scoring alone, and with two processes."""
    for kind in kinds:
        model, path = model_of(kind, folder), written(kind, n, folder)
        few = written(kind, FEW, folder)

        def ways(table, model=model):
            alone = [sys.executable, "-c", ALONE, str(model), str(table), "shop"]
            return alone, predict(model, table), predict(model, table, "--n-jobs", 2)

        alone, one, two = found = [watched(way) for way in ways(path)]
        starts = [watched(way) for way in ways(few)] if few != path else [0 * one for one in found]
        net = [a[0] - b[0] for a, b in zip(found, starts, strict=True)]
        size = sum(part.n_bytes for part in open_table(path).files) / 1e6
        print(
            f"{kind}: {n:,} rows, {size:,.0f} MB\n"
            f"  alone {alone[0]:.1f} s, predict {one[0]:.1f} s, {one[0] / alone[0]:.2f} times as long; without what it "
            f"takes to start, {net[0]:.1f} and {net[1]:.1f} s, {net[1] / net[0]:.2f}\n"
            f"  two processes {two[0]:.1f} s, of which the first {two[3]:.1f}; two idle cores could be "
            f"{one[0] / two[3]:.2f} times as fast as one; by the clock {one[1]:.1f} and {two[1]:.1f} s, "
            f"{one[1] / two[1]:.2f}, at a load of {os.getloadavg()[0]:.1f}\n"
            f"  memory {one[2]:,.0f} MB, with two processes {two[2]:,.0f} MB in all",
            flush=True,
        )


def memories(n, folder, kinds):
    """Print the memory of two processes at two sizes, and the bytes that SLD keeps of an item."""
    for kind in kinds:
        for method in (oq.OPACC(), oq.SLD()):
            model = model_of(kind, folder, method)
            for size in (n // 4, n):
                most = watched(predict(model, written(kind, size, folder), "--n-jobs", 2))[2]
                print(f"{kind}, {type(method).__name__}: {size:,} rows, {most:,.0f} MB in two processes", flush=True)
        items = summarize_table(oq.load_model(model), open_table(written(kind, n // 4, folder)), by="shop").items
        arrays = [array for part in items for array in (part.S, part.samples.items, part.samples.offsets, part.rows)]
        n_bytes = sum(array.nbytes for array in arrays)
        on_disk = sum(array.nbytes for array in arrays if isinstance(array, np.memmap))
        print(f"{kind}, SLD: {n_bytes / (n // 4):.1f} bytes of an item, {on_disk / n_bytes:.0%} of them on disk")


def groups(n):
    """Print the seconds for estimates of n groups from given summaries, and for intervals in closed form."""
    rng = np.random.default_rng(2)
    y = rng.integers(1, 6, 3000)
    S = np.exp(rng.normal(size=(3000, 5)) + np.eye(5)[y - 1])
    S /= S.sum(axis=1, keepdims=True)
    for method, level in ((oq.PACC(), None), (oq.OPACC(), None), (oq.GroupBLP(), None), (oq.GroupBLP(), 0.95)):
        named = {"groups": rng.integers(0, 100, 3000)} if isinstance(method, oq.GroupBLP) else {}
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


def growth(n, folder, kinds, plot):
    """Print the seconds against the number of rows, from a hundredth of n on, in one process, and draw them."""
    sizes, curves = sorted({max(FEW, n // d) for d in (100, 32, 10, 3, 1)}), {}
    for kind in kinds:
        model, curves[kind] = oq.load_model(model_of(kind, folder)), []
        estimate(model.fitted(), summarize_table(model, open_table(written(kind, FEW, folder)), by="shop"))
        for size in sizes:
            path = written(kind, size, folder)
            before = time.process_time()
            estimate(model.fitted(), summarize_table(model, open_table(path), by="shop"))
            seconds = time.process_time() - before
            curves[kind].append(seconds)
            print(f"{kind}: {size:12,} rows {seconds:7.2f} s, {1e6 * seconds / size:6.2f} of a million", flush=True)
    if plot is not None:
        draw(sizes, curves).savefig(plot)


def draw(sizes, curves):
    """Return a figure of seconds against rows, and lines a + b rows through the first point and the last."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(5.5, 3.6), layout="constrained")
    axes = figure.subplots()
    grid = np.geomspace(sizes[0], sizes[-1], 50)
    for color, (kind, seconds) in zip(("#1f5fa8", "#b8561c", "#3d7a3d"), curves.items(), strict=False):
        axes.loglog(sizes, seconds, "o", color=color, label=f"predict --by, {kind}")
        axes.loglog(grid, np.interp(grid, [sizes[0], sizes[-1]], [seconds[0], seconds[-1]]), ":", color=color)
    axes.plot([], [], ":", color="0.5", label="a + b rows")
    axes.set(xlabel="rows", ylabel="seconds of the processor")
    axes.xaxis.set_major_formatter("{x:,.0f}")
    axes.yaxis.set_major_formatter("{x:g}")
    axes.legend(frameon=False)
    return figure


def main():
    """Measure what is asked for."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("parts", nargs="*", default=PARTS, metavar="PART", help=f"some of {', '.join(PARTS)}")
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--groups", type=int, default=1_000_000)
    parser.add_argument("--kinds", nargs="+", choices=KINDS, default=KINDS, help="what tables hold")
    parser.add_argument("--folder", type=Path, help="where tables are made, and found again")
    parser.add_argument("--plot", type=Path)
    parser.add_argument("--tiny", action="store_true", help="run in seconds")
    options = parser.parse_args()
    if options.tiny:
        # Each process that is started takes seconds: only some of what there is.
        options.rows, options.groups, options.kinds = FEW, 20_000, ("numbers",)
        options.parts = ("groups", "speed")
    with tempfile.TemporaryDirectory(prefix="ordinalq-scale-") as name:
        folder = options.folder or Path(name)
        folder.mkdir(exist_ok=True)
        if "speed" in options.parts:
            speed(options.rows, folder, options.kinds)
        if "memory" in options.parts:
            memories(options.rows, folder, options.kinds)
        if "groups" in options.parts:
            groups(options.groups)
        if "growth" in options.parts:
            growth(options.rows, folder, options.kinds, options.plot)


if __name__ == "__main__":
    main()
