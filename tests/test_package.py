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
CORE = {"joblib", "numpy", "pandas", "scipy", "sklearn", "threadpoolctl"}


def loaded_modules(statement):
    code = f"import sys\n{statement}\nprint('\\n'.join(sys.modules))"
    return set(subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split())


def test_import_and_command_line_start_without_numpy():
    assert not {"numpy", "pandas", "sklearn"} & loaded_modules("import ordinalq.cli")


def test_public_names_load_only_core_dependencies():
    # pandas loads pyarrow, and scikit-learn rich, if they are installed.
    core = loaded_modules(f"import {', '.join(sorted(CORE))}, sklearn.pipeline")
    added = loaded_modules("import ordinalq\nfor name in ordinalq.__all__: getattr(ordinalq, name)") - core
    assert "ordinalq.quantifiers" in added
    packages = {name.partition(".")[0] for name in added} - set(sys.stdlib_module_names)
    assert {name for name in packages if not name.startswith("_")} <= {*CORE, "ordinalq"}


def test_a_quantifier_loads_no_tables_and_no_plots():
    added = loaded_modules("import ordinalq; ordinalq.PACC")
    assert "ordinalq.quantifiers.adjusted" in added
    assert not {"ordinalq.plot", "ordinalq.tables.model", "ordinalq.io.table", "ordinalq.datasets"} & added


def test_a_quantifier_loads_no_text_features_and_no_progress_bars_of_scikit_learn():
    # They take half as long to load as all quantifiers together.
    added = loaded_modules("import ordinalq; ordinalq.PACC")
    assert not {"sklearn.feature_extraction.text", "sklearn.preprocessing", "sklearn.pipeline", "rich"} & added


def test_public_names_are_sorted_and_exist():
    assert oq.__all__ == sorted(oq.__all__)
    for name in oq.__all__:
        assert hasattr(oq, name)
        assert name in dir(oq)
    assert oq.losses.Poisson is not None
    with pytest.raises(AttributeError, match="'ordinalq' has no attribute 'PACCC'"):
        oq.PACCC  # noqa: B018


@pytest.mark.printed
def test_example_of_the_readme_prints_the_documented_output():
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


def test_every_equation_is_in_the_documented_place():
    text = (ROOT / "docs" / "equations.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| `(\S+)` \| (eq:.+) \|$", text, re.MULTILINE)
    homes = {label: home for home, labels in rows for label in labels.split(", ")}
    assert len(homes) == 33
    found = {}
    for info in pkgutil.walk_packages(oq.__path__, "ordinalq."):
        for name, doc in documented(importlib.import_module(info.name)):
            for label in re.findall(r"\[(eq:[^\]]+)\]", doc):
                found.setdefault(label, []).append(f"{info.name.removeprefix('ordinalq.')}.{name}")
    assert found == {label: [home] for label, home in homes.items()}


def test_listed_places_of_unlabelled_equations_exist():
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


def test_lists_of_methods_agree_with_the_catalog():
    spec = importlib.util.spec_from_file_location("make_tables", ROOT / "docs" / "make_tables.py")
    make_tables = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(make_tables)
    for path, table in make_tables.PAGES.items():
        assert make_tables.updated(path, table) == path.read_text(encoding="utf-8"), f"run make docs: {path.name}"


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
    "outcomes.py": "synthetic outcomes of experiments with known tables",
    "engine_cases.py": "tables that are scored locally or on an engine",
    "hostile_archives.py": "rubbish",
    "hostile_models.py": "a table for the models that are damaged",
    "small_experiment.py": "data of runs that stop and continue",
    "test_cli_bad_files.py": "rubbish",
    "test_tuning.py": "training sets on which the chosen strength is near the best in hindsight, which most are",
    "test_tables_aggregate.py": "tables that are read by one process or many",
    "test_download.py": "damaged archives, and a tree of files in small",
    "test_datasets_text.py": "labels without meaning",
    "test_samples_labels.py": "a measurement that is not a label",
    "test_likelihood.py": "numbers of another package",
    "test_solvers.py": "samples with several minima, which were sought",
    "test_app.py": "tables of the web app and the command line",
    "test_app_hostile.py": "a table with scripts in it",
    "test_app_large.py": "a large table",
    "test_browser.py": "synthetic reviews, without real ones",
}


def test_random_data_of_the_tests_follow_the_seed():
    """A generator with a fixed number would draw the same data at every seed."""
    for path in sorted(Path(__file__).parent.glob("*.py")):
        text = path.read_text(encoding="utf-8")
        own = re.findall(r"default_rng\((?!seed\))", text) if path.name != Path(__file__).name else []
        assert not own or path.name in FIXED, f"{path.name}: take the fixture rng, or seeds.generator"


# Extras whose packages the modules of a package may import besides the core dependencies.
EXTRAS = {
    "_utils": ("cli", "tables"),
    "app": ("app",),
    "cli": ("cli", "dask", "spark"),
    "dask": ("dask",),
    "datasets": ("fact", "paper", "text"),
    "io": ("excel", "remote", "tables"),
    "paper": ("dask", "paper"),
    "plot": ("plot",),
    "samples": ("tables",),
    "spark": ("spark",),
    "tables": ("tables",),
    "unfolding": ("hist", "root"),
}
# Modules that import packages of an extra at their top: they can be imported only if it is installed.
AT_THE_TOP = {
    **dict.fromkeys(("io.csv", "io.excel", "io.jsonl", "io.parquet", "io.table"), "tables"),
    **dict.fromkeys(("cli.fit", "cli.main", "cli.options", "cli.paper", "cli.predict"), "cli"),
    **dict.fromkeys(("app.actions", "app.pages", "app.server", "app.uploads"), "app"),
    **dict.fromkeys(("paper.experiments.store", "paper.report.html"), "paper"),
    "spark": "spark",
}
# Names of packages that are imported under another name, and packages that come with a declared one.
IMPORTED_AS = {
    "scikit-learn": "sklearn",
    "python-multipart": "python_multipart",
    "python-calamine": "python_calamine",
}
INCLUDED = {"fsspec": "aiohttp", "starlette": "anyio", "pyspark": "py4j", "jinja2": "markupsafe"}
# Callers bring them: they pass such objects, or name such a backend.
BROUGHT = {"polars", "ray", "joblibspark"}


def declared(project, extra=None):
    """Return the packages that an extra installs, None for the core, as they are imported."""
    found = set()
    for requirement in project["dependencies"] if extra is None else project["optional-dependencies"][extra]:
        name, _, inner = re.fullmatch(r"([\w-]+)(\[([\w,]+)\])?.*", requirement).groups()
        if name == "ordinalq":
            found |= set().union(*(declared(project, one) for one in inner.split(",")))
        else:
            found |= {IMPORTED_AS.get(name, name)} | ({INCLUDED[name]} if name in INCLUDED else set())
    return found


def imported_packages(tree):
    """Yield (package of others, whether it is imported when the module is) of all imports but those for types."""
    waiting = [(node, True) for node in tree.body]
    while waiting:
        node, at_the_top = waiting.pop()
        if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING":
            waiting += [(child, at_the_top) for child in node.orelse]
            continue
        names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
        names += [node.module] if isinstance(node, ast.ImportFrom) else []
        for name in {name.partition(".")[0] for name in names} - set(sys.stdlib_module_names) - {"ordinalq"}:
            yield name, at_the_top
        inside = at_the_top and not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda)
        waiting += [(child, inside) for child in ast.iter_child_nodes(node)]


def test_every_package_that_is_imported_is_declared():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    core, source = declared(project), ROOT / "src" / "ordinalq"
    undeclared, at_the_top = set(), {}
    for path in source.rglob("*.py"):
        module = ".".join(path.relative_to(source).with_suffix("").parts)
        extras = EXTRAS.get(module.partition(".")[0], ())
        allowed = core.union(BROUGHT, *(declared(project, extra) for extra in extras))
        for name, is_at_the_top in imported_packages(ast.parse(path.read_text(encoding="utf-8"))):
            if name not in allowed:
                undeclared.add((module, name))
            if name not in core and is_at_the_top:
                at_the_top.setdefault(module, set()).add(name)
    assert sorted(undeclared) == []
    assert at_the_top.keys() == AT_THE_TOP.keys()
    for module, names in at_the_top.items():
        assert names <= declared(project, AT_THE_TOP[module]), module


def test_extras_include_those_that_they_need():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert declared(project) == CORE
    packages = {extra: declared(project, extra) for extra in project["optional-dependencies"]}
    assert packages["cli"] >= packages["plot"] | packages["tables"]
    assert packages["paper"] >= packages["plot"] | packages["tables"]
    assert packages["app"] >= packages["cli"]
    assert packages["all"] == set().union(
        *(packages[one] for one in ("app", "cli", "excel", "hist", "paper", "plot", "tables"))
    )
    assert not packages["all"] & {"dask", "distributed", "pyspark", "torch", "transformers"}
    assert packages["dev"] >= packages["all"]
    assert packages["site"] >= packages["all"]
