"""The package as a whole: light to import, its names sorted, the README's example true, every equation at home."""

import ast
import importlib
import importlib.util
import pkgutil
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

import ordinalq as oq

ROOT = Path(__file__).parents[1]
HEAVY = ("matplotlib", "rich", "jinja2", "platformdirs", "skops", "typer", "torch", "polars")


def loaded_modules(statement):
    code = f"import sys\n{statement}\nprint('\\n'.join(sys.modules))"
    return set(subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split())


def test_import_and_command_line_start_without_numpy():
    assert not {"numpy", "pandas", "sklearn"} & loaded_modules("import ordinalq.cli")


def test_names_load_nothing_heavy_beyond_scikit_learn():
    added = loaded_modules("import ordinalq; ordinalq.PACC") - loaded_modules("import sklearn")
    assert "ordinalq.public" in added
    assert not {name.partition(".")[0] for name in added} & set(HEAVY)


def test_public_names_are_sorted_and_exist():
    assert oq.__all__ == sorted(oq.__all__)
    for name in oq.__all__:
        assert hasattr(oq, name)
        assert name in dir(oq)
    assert oq.losses.Poisson is not None
    with pytest.raises(AttributeError, match="'ordinalq' has no attribute 'PACCC'"):
        oq.PACCC  # noqa: B018


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


def documented(module):
    """Names and docstrings of the functions and classes that a module defines itself."""
    for name, thing in vars(module).items():
        if getattr(thing, "__module__", None) == module.__name__ and thing.__doc__:
            yield name, thing.__doc__


def test_every_equation_has_the_home_that_the_documentation_says():
    text = (ROOT / "docs" / "equations.md").read_text(encoding="utf-8")
    homes = dict(re.findall(r"^\| (eq:\S+) \| `(\S+)` \|$", text, re.MULTILINE))
    assert len(homes) == 33
    found = {}
    for info in pkgutil.walk_packages(oq.__path__, "ordinalq."):
        for name, doc in documented(importlib.import_module(info.name)):
            for label in re.findall(r"\[(eq:[^\]]+)\]", doc):
                found.setdefault(label, []).append(f"{info.name.removeprefix('ordinalq.')}.{name}")
    assert found == {label: [home] for label, home in homes.items()}


def test_homes_of_what_has_no_label_exist():
    text = (ROOT / "docs" / "equations.md").read_text(encoding="utf-8").partition("no label in the paper")[2]
    homes = re.findall(r"`([a-z_]+(?:\.\w+)+)`", text)
    for wanted in ("divergence", "_ratios", "degrees_of_freedom", "fact_spectrum", "OrdinalLogisticIT", "wilcoxon"):
        assert any(home.endswith(f".{wanted}") for home in homes), wanted
    for home in homes:
        module, _, name = f"ordinalq.{home}".rpartition(".")
        try:
            owner = importlib.import_module(module)
        except ModuleNotFoundError:  # a method of a class
            outer, _, cls = module.rpartition(".")
            owner = getattr(importlib.import_module(outer), cls)
        assert hasattr(owner, name) or importlib.util.find_spec(f"ordinalq.{home}"), home


def test_lists_of_methods_are_what_the_catalog_says():
    spec = importlib.util.spec_from_file_location("make_methods", ROOT / "docs" / "make_methods.py")
    make_methods = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(make_methods)
    for path, table in make_methods.PAGES.items():
        assert make_methods.updated(path, table) == path.read_text(encoding="utf-8"), f"run make docs: {path.name}"


def test_all_twenty_methods_are_in_the_catalog():
    assert [entry.paper_name for entry in oq.catalog(beyond=False)] == list(oq.datasets.published.results())


def test_no_file_speaks_of_package_indexes():
    words = [f"{first}-{second}" for first, second in (("index", "url"), ("find", "links"), ("extra", "index"))]
    for pattern in ("*.md", "*.toml", "*.txt", "Makefile", ".ci/*", "benchmarks/*.*", "src/**/*.py"):
        for path in ROOT.glob(pattern):
            assert not any(word in path.read_text(encoding="utf-8") for word in words), path


# Generators of the tests that do not follow the seed, and why.
FIXED = {
    "seeds.py": "gives those that follow it",
    "conftest.py": "the fixture `rng`",
    "outcomes.py": "made-up outcomes of experiments, of which the tests know every table",
    "engine_cases.py": "tables that are scored here or there, whatever they hold",
    "hostile_archives.py": "rubbish",
    "hostile_models.py": "a table for the models that are damaged",
    "small_experiment.py": "data of runs that stop and go on, whatever they hold",
    "test_bad_files.py": "rubbish",
    "test_tuning.py": "training sets on which the chosen strength is near the best in hindsight, which most are",
    "test_reading.py": "tables that are read by one process or many, whatever they hold",
    "test_download.py": "damaged archives, and a tree of files in small",
    "test_datasets_text.py": "labels without meaning",
    "test_labels.py": "a measurement that is no label",
    "test_likelihood.py": "numbers of another package",
    "test_solvers.py": "samples with several minima, which were sought",
    "test_app.py": "tables that go through the page and the command line alike, whatever they hold",
    "test_app_hostile.py": "a table with scripts in it",
    "test_app_large.py": "a large table",
    "test_browser.py": "made-up reviews, where there are no real ones",
}


def test_random_data_of_the_tests_follow_the_seed():
    """A generator with a number of its own would see the same data at every seed."""
    for path in sorted(Path(__file__).parent.glob("*.py")):
        text = path.read_text(encoding="utf-8")
        own = re.findall(r"default_rng\((?!seed\))", text) if path.name != Path(__file__).name else []
        assert not own or path.name in FIXED, f"{path.name}: take the fixture rng, or seeds.generator"


def test_every_package_that_is_imported_is_declared():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    extras = project["optional-dependencies"]
    wanted = [*project["dependencies"], *(name for extra in extras.keys() - {"dev", "site"} for name in extras[extra])]
    # Callers bring the first four; starlette, pyspark and jinja2 the others.
    others = {"boost_histogram", "polars", "ray", "joblibspark", "anyio", "py4j", "markupsafe"}
    known = {re.split(r"[\[><=]", name)[0] for name in wanted} | others
    names = {"scikit-learn": "sklearn", "python-multipart": "python_multipart"}
    allowed = {names.get(name, name) for name in known} | set(sys.stdlib_module_names) | {"ordinalq"}
    used = set()
    for path in (ROOT / "src").rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Import):
                used |= {(alias.name.partition(".")[0], path.name) for alias in node.names}
            elif isinstance(node, ast.ImportFrom):
                used.add((node.module.partition(".")[0], path.name))
    assert sorted((name, where) for name, where in used if name not in allowed) == []
