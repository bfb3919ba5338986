"""Every script in benchmarks/ and examples/ runs to its end, in a tiny version."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

import ordinalq

ROOT = Path(__file__).parent.parent
SOURCES = Path(ordinalq.__file__).parent.parent
MODULES = sorted(ROOT.glob("benchmarks/*.py"))
SCRIPTS = [path for path in MODULES if '__name__ == "__main__"' in path.read_text()] + sorted(
    ROOT.glob("examples/*.py")
)
# What they need besides --tiny: two versions to compare, files to write.
ARGUMENTS = {
    "side_by_side.py": [[SOURCES, SOURCES, "--tiny"], [SOURCES, SOURCES, "--tiny", "--speed"]],
    "groups.py": [["--tiny"], ["--tiny", "--strings", "--chunks", "3", "--level", "0.9", "--replicates", "20"]],
    "coverage.py": [["--tiny"], ["--tiny", "--weights", "1"]],
    "hostile.py": [["--tiny"], ["--tiny", "--method", "OQT", "PACC", "unfold"]],
    "make_reviews.py": [["reviews"]],
    "unfold_fact.py": [["figures"]],
    "unfold_spectrum.py": [["spectrum.png"]],
}
RUNS = [(path, arguments) for path in SCRIPTS for arguments in ARGUMENTS.get(path.name, [["--tiny"]])]


@pytest.mark.parametrize(("script", "arguments"), RUNS, ids=[" ".join([r[0].stem, *map(str, r[1][2:])]) for r in RUNS])
def test_script_runs_to_its_end(script, arguments, tmp_path):
    environment = {name: value for name, value in os.environ.items() if name != "ORDINALQ_DATA"}
    environment |= {"PYTHONPATH": str(SOURCES), "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
    command = [sys.executable, "-W", "ignore", script, *arguments]
    run = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=300)
    assert run.returncode == 0, run.stdout[-2000:] + run.stderr[-2000:]
    # It prints figures, or leaves files.
    assert any(character.isdigit() for character in run.stdout) or any(tmp_path.rglob("*.*"))


def test_every_module_of_benchmarks_is_run():
    imported = "\n".join(path.read_text() for path in SCRIPTS)
    for path in set(MODULES) - set(SCRIPTS):
        assert f"import {path.stem}" in imported or f"from {path.stem} import" in imported, path.name
