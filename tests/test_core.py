"""The core: ordinalq without extras, in a process that cannot import any other package."""

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]

# Core dependencies and the packages that these need.
CORE = {"joblib", "numpy", "pandas", "scipy", "sklearn", "threadpoolctl"}
THEIRS = {"cloudpickle", "dateutil", "narwhals", "pytz", "six", "tzdata"}

BLOCKED = """
import runpy, sys

class Blocker:
    def find_spec(self, name, path=None, target=None):
        package = name.partition(".")[0]
        if package not in {allowed} | sys.stdlib_module_names and not package.startswith("_"):
            raise ModuleNotFoundError(f"No module named {{name!r}}", name=name)

sys.meta_path.insert(0, Blocker())
{code}
"""


def run_without_extras(code):
    """Run Python code in a process that can import the core dependencies only."""
    call = [sys.executable, "-c", BLOCKED.format(allowed={*CORE, *THEIRS, "ordinalq"}, code=code)]
    return subprocess.run(call, capture_output=True, text=True, check=False)


def test_core_works_without_extras_and_names_them():
    run = run_without_extras(f"runpy.run_path({str(ROOT / '.ci' / 'smoke_core.py')!r})")
    assert run.returncode == 0, run.stderr
    assert "works without extras" in run.stdout


def test_program_prints_one_line_without_its_extra():
    run = run_without_extras("sys.argv[1:] = ['fit', 'a.csv']; runpy.run_module('ordinalq', run_name='__main__')")
    line = 'ordinalq: the command line needs typer. Install it with: pip install "ordinalq[cli]"\n'
    assert (run.returncode, run.stdout, run.stderr) == (2, "", line)


def test_modules_of_extras_name_them_when_they_are_imported():
    modules = {
        "ordinalq.cli": ("the command line needs typer", "cli"),
        "ordinalq.dask": ("reading tables needs pyarrow", "tables"),
        "ordinalq.io.table": ("reading tables needs pyarrow", "tables"),
        "ordinalq.paper.experiments.runner": ("running experiments needs pyarrow", "paper"),
        "ordinalq.spark": ("reading tables needs pyarrow", "tables"),
    }
    code = """
import importlib
for module in {modules}:
    try:
        importlib.import_module(module)
    except ImportError as error:
        print(error)
"""
    run = run_without_extras(code.format(modules=list(modules)))
    lines = [f'{needed}. Install it with: pip install "ordinalq[{extra}]"' for needed, extra in modules.values()]
    assert run.stdout.splitlines() == lines, run.stderr
