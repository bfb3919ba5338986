"""The package as a whole: light to import, its names sorted, the README's example true, every equation at home."""

import re
import subprocess
import sys
from pathlib import Path

import ordinalq as oq

ROOT = Path(__file__).parents[1]
HEAVY = ("matplotlib", "pandas", "rich", "jinja2", "pooch", "skops", "typer", "pyarrow", "torch", "polars")


def loaded_modules(statement):
    code = f"import sys\n{statement}\nprint('\\n'.join(sys.modules))"
    return set(subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split())


def test_import_loads_nothing_heavy_beyond_scikit_learn():
    added = loaded_modules("import ordinalq") - loaded_modules("import sklearn")
    assert "ordinalq" in added
    assert not {name.partition(".")[0] for name in added} & set(HEAVY)


def test_public_names_are_sorted_and_exist():
    assert oq.__all__ == sorted(oq.__all__)
    for name in oq.__all__:
        assert hasattr(oq, name)


def test_example_of_the_readme_prints_what_it_says():
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    example = re.search(r"```python\n(.*?)```\n+```text\n(.*?)```", text, re.DOTALL)
    assert example, "the README has a python block followed by its output"
    code, output = example.groups()
    run = subprocess.run([sys.executable, "-W", "error", "-c", code], capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stderr
    assert run.stdout == output


def test_ci_runs_the_test_command_of_the_readme():
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    assert "\nmake test\n" in readme
    assert "make test\nmake check" in (ROOT / ".ci" / "run").read_text(encoding="utf-8")


def test_version_is_the_one_of_the_changelog_or_newer():
    changelog = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    assert f"## {oq.__version__.partition('.dev')[0]}" in changelog
