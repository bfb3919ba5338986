"""Run every target of the Makefile and the validation benchmarks from a fresh clone, one after the other.

``make rehearse`` writes docs/validation/rehearsal.md: target, command, result, seconds, commit and versions. Finished
steps are stored in build/rehearsal, so that an interrupted run continues. A failure is listed and stops nothing. Pass
names of steps to run only these: ``python .ci/rehearse.py test check``.
"""

import json
import os
import platform
import re
import subprocess
import sys
import time
from importlib.metadata import version
from pathlib import Path

ROOT = Path(__file__).parents[1]
FOLDER = ROOT / "build" / "rehearsal"
PAGE = ROOT / "docs" / "validation" / "rehearsal.md"
MAKE = ("test", "check", "seeds", "slow", "hostile", "browser-test", "cluster-test", "lowest", "site", "release")
# Benchmarks behind docs/validation, reduced to minutes; without the options they run in full.
BENCHMARKS = {
    "analysts.py": "--splits 0",
    "coverage.py": "--data fried --classifiers logistic --splits 1 --samples 100",
    "drift.py": "--draws 4",
    "fits.py": "--splits 2 --samples 100",
    "group_labels.py": "",
    "item_posteriors.py": "--devices 3",
    "one_answer.py": "--parts levels default",
    "predict_cost.py": "",
    "real_groups.py": "--parts default --splits 2",
    "regions.py": "--samples 100",
    "tuning.py": "fried --methods OPACC OEDy",
    "unfolding.py": "--toys 20",
    "within_groups.py": "--repeats 2",
}


def steps():
    """Return the commands by the names of their steps."""
    commands = {name: f"make {name}" for name in (*MAKE, "bench", "coverage")}
    for script, options in BENCHMARKS.items():
        commands[script] = f".venv/bin/python benchmarks/{script} {options}".strip()
    return commands


def output_of(*command, cwd=ROOT):
    """Return the standard output of a command."""
    return subprocess.run(command, cwd=cwd, check=True, capture_output=True, text=True).stdout.strip()


def run(name, command, clone):
    """Run a step in the clone and return its record; the log is stored next to the clone."""
    log = FOLDER / f"{name}.log"
    began = time.monotonic()
    with log.open("w", encoding="utf-8") as file:
        done = subprocess.run(command, shell=True, cwd=clone, stdout=file, stderr=subprocess.STDOUT, check=False)
    seconds = time.monotonic() - began
    return {"command": command, "code": done.returncode, "seconds": seconds, "result": last_line(log)}


def last_line(log):
    """Return the line of a log that sums it up: the counts of pytest, or the last one that is not empty."""
    text = log.read_text(encoding="utf-8", errors="replace")
    lines = [line.strip(" =") for line in text.splitlines() if line.strip()]
    counts = [line for line in lines if re.search(r"\d+ (passed|failed)", line)]
    return (counts or lines or ["no output"])[-1][:120]


def page(records, commit):
    """Return the report of results."""
    packages = ("numpy", "scipy", "scikit-learn", "pandas", "pyarrow")
    versions = ", ".join(f"{name} {version(name)}" for name in packages)
    rows = []
    for name, record in records.items():
        status = f"**exit code {record['code']}**" if record["code"] else "ok"
        result = record["result"].replace("|", "/")
        rows.append(f"| {name} | `{record['command']}` | {status} | {result} | {record['seconds']:.0f} |")
    missing = [name for name in steps() if name not in records]
    return "\n".join(
        [
            "# Rehearsal",
            "",
            "Every target and a reduced run of every validation benchmark, from a fresh clone (`make rehearse`).",
            "",
            f"Commit {commit}, Python {platform.python_version()}, {versions}, {os.cpu_count()} cores.",
            "",
            "| step | command | status | last line | seconds |",
            "|---|---|---|---|--:|",
            *rows,
            "",
            *([f"Not run: {', '.join(missing)}.", ""] if missing else []),
        ]
    )


def main(names):
    """Run the steps that are not finished for this commit, and write the report after each of them."""
    commit = output_of("git", "rev-parse", "--short", "HEAD")
    clone, store = FOLDER / commit, FOLDER / f"{commit}.json"
    FOLDER.mkdir(parents=True, exist_ok=True)
    if not clone.exists():
        output_of("git", "clone", "--quiet", str(ROOT), str(clone))
    records = json.loads(store.read_text(encoding="utf-8")) if store.exists() else {}
    for name, command in steps().items():
        if name in records or (names and name not in names):
            continue
        records[name] = run(name, command, clone)
        store.write_text(json.dumps(records, indent=1), encoding="utf-8")
        PAGE.write_text(page(records, commit), encoding="utf-8")
    return int(any(record["code"] for record in records.values()))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
