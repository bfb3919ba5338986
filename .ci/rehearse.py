"""Run every target of the Makefile and the validation benchmarks from a fresh clone, one after the other.

``make rehearse`` writes docs/validation/rehearsal.md: target, command, result, seconds, commit and versions. Finished
steps are stored in build/rehearsal, so that an interrupted run continues. A failure is listed and stops nothing. Names
of steps run these again: ``python .ci/rehearse.py "make test" drift.py``.
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
# Text of the report from this line on is written by hand and stays.
BY_HAND = "## Asked and measured"
MAKE = (
    "test",
    "check",
    "seeds",
    "slow",
    "hostile",
    "browser-test",
    "cluster-test",
    "quapy-test",
    "lowest",
    "site",
    "release",
    "notebooks",
    "bench",
    "coverage",
)
# Benchmarks behind the pages of docs/validation, reduced to minutes; without the options they run in full.
BENCHMARKS = {
    "analysts.py": ("--splits 0", "analysts"),
    "coverage.py": ("--data fried --classifiers logistic --splits 1 --samples 100", "intervals"),
    "drift.py": ("--draws 4", "drift"),
    "fit_cost.py": ("", "default"),
    "fits.py": ("--splits 2 --samples 100", "fit-test"),
    "group_labels.py": ("", "one-answer"),
    "hostile.py": ("--method all --problems 20", "methods"),
    "item_posteriors.py": ("--devices 3", "one-answer"),
    "one_answer.py": ("--parts levels default", "one-answer"),
    "predict_cost.py": ("", "scale"),
    "real_groups.py": ("--parts default --splits 2", "groups"),
    "regions.py": ("--samples 100", "one-answer"),
    "tuning.py": ("fried --methods OPACC OEDy", "tuning"),
    "unfolding.py": ("--toys 20", "unfolding"),
    "within_groups.py": ("--repeats 2", "within-groups"),
}
REPRODUCED = {"semeval": "", "castano": "--profile quick --n-jobs 2"}


def steps():
    """Return the commands by the names of their steps, and the pages of the benchmarks."""
    commands = {f"make {name}": (f"make {name}", "") for name in MAKE}
    for script, (options, page) in BENCHMARKS.items():
        commands[script] = f".venv/bin/python benchmarks/{script} {options}".strip(), page
    for name, options in REPRODUCED.items():
        commands[name] = f".venv/bin/ordinalq reproduce {name} {options}".strip(), name
    return commands


def output_of(*command, cwd=ROOT):
    """Return the standard output of a command."""
    return subprocess.run(command, cwd=cwd, check=True, capture_output=True, text=True).stdout.strip()


def run(name, command, clone):
    """Run a step in the clone and return its record; the log is stored next to the clone."""
    log = FOLDER / f"{name.replace(' ', '-')}.log"
    began = time.monotonic()
    with log.open("w", encoding="utf-8") as file:
        done = subprocess.run(command, shell=True, cwd=clone, stdout=file, stderr=subprocess.STDOUT, check=False)
    seconds = round(time.monotonic() - began)
    return {"commit": clone.name, "code": done.returncode, "seconds": seconds, "result": last_line(log)}


def last_line(log):
    """Return the line of a log that sums it up: the counts of pytest, or the last one that is not empty."""
    text = log.read_text(encoding="utf-8", errors="replace")
    lines = [line.strip(" =") for line in text.splitlines() if line.strip()]
    counts = [line for line in lines if re.search(r"\d+ (passed|failed)", line)]
    return (counts or lines or ["no output"])[-1][:100]


def report(records):
    """Return the generated part of the report."""
    packages = ("numpy", "scipy", "scikit-learn", "pandas", "pyarrow")
    versions = ", ".join(f"{name} {version(name)}" for name in packages)
    rows, missing = [], []
    for name, (command, page) in steps().items():
        if name not in records:
            missing.append(name)
            continue
        record = records[name]
        step = f"[{page}]({page}.md)" if page else name.removeprefix("make ")
        status = f"**exit code {record['code']}**" if record["code"] else "ok"
        result = record["result"].replace(f"{FOLDER / record['commit']}", ".").replace("|", " ").strip()
        cells = (step, f"`{command}`", status, f"`{result}`", str(record["seconds"]), record["commit"])
        rows.append(f"| {' | '.join(cells)} |")
    return "\n".join(
        [
            "# Rehearsal",
            "",
            "For maintainers. Every target of the Makefile and a reduced run of every validation benchmark, one after",
            "the other, from a fresh clone (`make rehearse`). Without the options after its name, a benchmark runs in",
            "full; the figures of full runs are on the linked pages.",
            "",
            f"Python {platform.python_version()}, {versions}, {os.cpu_count()} cores.",
            "",
            "| step | command | status | last line | seconds | commit |",
            "|---|---|---|---|--:|---|",
            *rows,
            "",
            *([f"Not run: {', '.join(missing)}.", ""] if missing else []),
        ]
    )


def main(names):
    """Run the steps that are not finished for this commit, and write the report after each of them."""
    commit = output_of("git", "rev-parse", "--short", "HEAD")
    clone, store = FOLDER / commit, FOLDER / "records.json"
    FOLDER.mkdir(parents=True, exist_ok=True)
    if not clone.exists():
        output_of("git", "clone", "--quiet", str(ROOT), str(clone))
        output_of("make", ".venv/installed", cwd=clone)  # steps without make also need it
    for name, (command, _) in steps().items():
        if name not in names if names else stored(store).get(name, {}).get("commit") == commit:
            continue
        record = run(name, command, clone)
        records = stored(store) | {name: record}  # other steps may have ended meanwhile
        store.write_text(json.dumps(records, indent=1), encoding="utf-8")
        _, _, by_hand = PAGE.read_text(encoding="utf-8").partition(BY_HAND)
        PAGE.write_text(f"{report(records)}\n{BY_HAND}{by_hand}", encoding="utf-8")
    return int(any(record["code"] for record in stored(store).values()))


def stored(store):
    """Return the records of earlier steps."""
    return json.loads(store.read_text(encoding="utf-8")) if store.exists() else {}


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
