"""Rehearse the experiments of the paper on synthetic files of the published format and size.

    python benchmarks/full_size.py                             # Fact-OQ and Yolanda, as large as published
    python benchmarks/full_size.py amazon-oq-bk --part 0.02    # a part of the samples of Amazon-OQ-BK

Each data set runs in a new process: the file is written and loaded, and parts of the experiment are run. "all" is the
CPU time of the whole experiment, from one unit of each kind and the number of such units. The files of Amazon-OQ-BK
have about 120 GB of text at full size; with `--part`, times grow in proportion.
"""

import argparse
import os
import resource
import subprocess
import sys
import tempfile
import time
import zipfile
from dataclasses import replace
from pathlib import Path

import h5py
import numpy as np
from threadpoolctl import threadpool_limits

from ordinalq.datasets import fact, regression
from ordinalq.datasets.amazon import N_FEATURES, POOLS, PROTOCOLS
from ordinalq.paper.experiments.config import load_config
from ordinalq.paper.experiments.units import ScoredUnit, prepare, units_of

N_YOLANDA = 400_000
N_TRAIN = 20_000
N_SAMPLES = {"dev": 1000, "test": 5000}
SAMPLE_SIZE = 1000


def write_fact(folder, part, rng):
    """Write events whose size and shape depend on the energy, as HDF5."""
    n = max(int(fact.N_EVENTS * part), 3000)
    log_energy = np.clip(rng.gamma(2.0, 0.35, n) + 2.4, 2.4, 4.2)
    table = {name: rng.lognormal(0.3 * log_energy, 0.5).astype(np.float32) for name in fact.COLUMNS}
    table[fact.ENERGY] = 10**log_energy
    with h5py.File(folder / fact.FILES[0], "w") as file:
        for name, column in table.items():
            file.create_dataset(f"events/{name}", data=column)


def write_yolanda(folder, part, rng):
    """Write 100 numbers and a year between 1922 and 2011 per row, as ARFF."""
    n = max(int(N_YOLANDA * part), 3000)
    year = np.clip(np.round(2011 - rng.gamma(1.5, 12.0, n)), 1922, 2011)
    with (folder / "Yolanda.arff").open("w") as file:
        file.write("@relation yolanda\n")
        file.writelines(f"@attribute '{name}' REAL\n" for name in regression.YOLANDA_COLUMNS[0])
        file.write("@data\n")
        for rows in np.array_split(year, max(n // 10_000, 1)):
            X = rng.normal(size=(len(rows), 100)) + np.outer((rows - 1980) / 30, np.linspace(0.5, 0, 100))
            np.savetxt(file, np.column_stack([X, rows]), fmt="%.5f", delimiter=",")


def write_amazon(folder, part, rng):
    """Write an archive of vectors and samples; nearly all items of samples are distinct, as published."""

    def lines(n):
        y = rng.integers(0, 5, n)
        X = rng.normal(size=(n, N_FEATURES)) + np.outer(y - 2, np.linspace(0.3, 0, N_FEATURES))
        return [f"{label} {' '.join(f'{value:.7f}' for value in row)}\n" for label, row in zip(y, X, strict=True)]

    with zipfile.ZipFile(folder / "amazon-oq-bk.zip", "w", zipfile.ZIP_DEFLATED, compresslevel=1) as archive:
        archive.writestr("roberta/training_data.txt", "".join(lines(max(int(N_TRAIN * min(1, 50 * part)), 200))))
        for protocol in PROTOCOLS:
            for pool in POOLS:
                for number in range(max(int(N_SAMPLES[pool] * part), 2)):
                    name = f"roberta/{protocol}/{pool}_samples/{number}.txt"
                    archive.writestr(name, "".join(lines(SAMPLE_SIZE if part > 1e-3 else 50)))


WRITERS = {"fact-oq": write_fact, "yolanda": write_yolanda, "amazon-oq-bk": write_amazon}


def timed(action):
    """Return the result, and seconds of the processor."""
    start = time.process_time()
    with threadpool_limits(1):
        result = action()
    return result, time.process_time() - start


def rehearse(name, part, profile):
    """Write, load and run parts of an experiment; print times and memory."""
    with tempfile.TemporaryDirectory() as temporary:
        os.environ["ORDINALQ_CACHE"] = f"{temporary}/cache"
        folder = Path(temporary) / "data"
        folder.mkdir()
        WRITERS[name](folder, part, np.random.default_rng(1))
        n_bytes = sum(path.stat().st_size for path in folder.iterdir())
        config = load_config(name, profile)
        material, seconds = timed(lambda: prepare(config, folder))
        data = material.dataset
        sizes = " + ".join(f"{len(items.y):,}" for items in (data.train, data.validation, data.test))
        print(f"{name}: {n_bytes / 1e9:.2f} GB, {sizes} items")
        print(f"  load and draw samples: {seconds:.0f} s")
        kinds = {}
        for unit in units_of(config, material.n_classes):
            if profile == "quick":
                unit = replace(unit, trials=unit.trials[:3])
            scored = isinstance(unit, ScoredUnit)
            # Units of one method are as many as their trials; the last classifier is the most expensive.
            count = kinds.get(key := "all scored methods" if scored else unit.trials[0].method, (0, None))[0]
            kinds[key] = (count + (1 if scored else len(unit.trials)), unit)
        total = seconds
        for key, (count, unit) in kinds.items():
            one = unit if isinstance(unit, ScoredUnit) else replace(unit, trials=unit.trials[:1])
            parts, seconds = timed(lambda one=one: one.validate(material, None))
            print(f"  {key}, one of {count} units: {seconds:.0f} s")
            total += count * seconds
            if isinstance(unit, ScoredUnit):
                first = {trial.method: trial for trial in reversed(unit.trials)}
                chosen = replace(unit, trials=tuple(first.values()))
                _, seconds = timed(lambda chosen=chosen, parts=parts: chosen.test(material, parts["scores"]))
                print(f"  test samples, {len(first)} methods once: {seconds:.0f} s")
                total += seconds * len(material.test.rows) * len(config.measures)
        memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
        print(f"  all: {total / 3600:.2f} h of one processor; {memory:.1f} GB of memory", flush=True)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("names", nargs="*", default=["fact-oq", "yolanda"], metavar="NAME", help=", ".join(WRITERS))
    parser.add_argument("--part", type=float, default=1.0, help="part of the items or samples")
    parser.add_argument("--tiny", action="store_true", help="a few items and samples, to try the script")
    parser.add_argument("--alone", action="store_true", help="in this process")
    options = parser.parse_args()
    part = 1e-5 if options.tiny else options.part
    for name in [*WRITERS] if options.tiny else options.names:
        if options.alone or options.tiny:
            rehearse(name, part, "quick" if options.tiny else "full")
        else:
            subprocess.run([sys.executable, __file__, name, "--part", str(part), "--alone"], check=True)
