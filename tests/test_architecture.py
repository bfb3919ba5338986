"""Rules of structure that no linter checks: private names, imports and types.

Every test lists all violations at once. Layers are the business of import-linter (`make check`).
"""

import ast
import re
import tomllib
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import ordinalq

ROOT = Path(ordinalq.__file__).parent

# Private names of other packages that we read, and the reason.
FOREIGN = {
    "_safe_indexing": "rows of arrays, sparse matrices, lists and frames; scikit-learn has no public twin",
    "_num_samples": "number of items of anything that a classifier takes; scikit-learn has no public twin",
    "_exit": "public function of os",
    "_replace": "public method of named tuples",
    "_asdict": "public method of named tuples",
    "_fields": "public attribute of named tuples",
    "_make": "public method of named tuples",
}
# Imports of our own modules within functions: (importer, imported) -> what they save. Others are errors.
LAZY = {
    ("ordinalq.__main__", "ordinalq.cli"): "typer, which the extra `cli` installs",
    ("ordinalq.classifiers", "ordinalq.classifiers.ordinal"): "public names; scikit-learn's linear models, SVMs: 0.1 s",
    ("ordinalq.classifiers.registry", "ordinalq.classifiers.ordinal"): "scikit-learn's linear models and SVMs",
    ("ordinalq.datasets.amazon", "ordinalq.datasets.text"): "scikit-learn's text features",
    ("ordinalq.datasets.files", "ordinalq.io.table"): "pyarrow, which the extra `tables` installs",
    ("ordinalq.inference.diagnosis", "ordinalq.plot"): "a plot of the result; matplotlib",
    ("ordinalq.inference.estimates", "ordinalq.plot"): "a plot of the result; matplotlib",
    ("ordinalq.inference.tuning", "ordinalq.plot"): "a plot of the result; matplotlib",
    ("ordinalq.paper.experiments.units", "ordinalq.datasets.text"): "scikit-learn's text features",
    ("ordinalq.tables.fit", "ordinalq.classifiers.logistic"): "scikit-learn's linear models",
    ("ordinalq.tables", "ordinalq.tables.model"): "a public name; scikit-learn's compose and text features",
    ("ordinalq.tables", "ordinalq.tables.model_file"): "public names; skops and zipfile",
}
# Each verb imports what it needs when it runs: `ordinalq --help` would take seconds otherwise.
COMMANDS = "ordinalq.cli"
# Functions that are about quantifiers and return what the caller gave, of any type.
GIVEN = ("with_quantifier",)
# Imports that point upwards, at call time: results draw themselves.
UPWARDS = {(f"ordinalq.inference.{name}", "ordinalq.plot") for name in ("diagnosis", "estimates", "tuning")}
# Modules that may name options, and why.
OPTIONS = {
    "ordinalq.app.commands": "shows the command that does the same",
    "ordinalq.paper.experiments.runner": "records the command that repeats a run",
}


@dataclass(frozen=True)
class Module:
    """A source file, parsed."""

    path: Path

    @property
    def name(self):
        parts = ("ordinalq", *self.path.relative_to(ROOT).with_suffix("").parts)
        return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)

    @cached_property
    def text(self):
        return self.path.read_text(encoding="utf-8")

    @cached_property
    def tree(self):
        tree = ast.parse(self.text)
        for node in ast.walk(tree):
            for child in ast.iter_child_nodes(node):
                child.parent = node
        return tree

    @cached_property
    def nodes(self):
        return list(ast.walk(self.tree))

    def at(self, node):
        return f"{self.path.relative_to(ROOT)}:{node.lineno}"


MODULES = [Module(path) for path in sorted(ROOT.rglob("*.py"))]
NAMES = {module.name for module in MODULES}


def report(violations):
    """Fail with all violations."""
    found = sorted({text for _, text in violations})
    assert not found, f"{len(found)} violations:\n" + "\n".join(found)


# Private names


def is_private(name):
    return name.startswith("_") and not (name.startswith("__") and name.endswith("__"))


def defined_names(module):
    """Names that the module or one of its classes defines: functions, assigned names, attributes of self."""
    for node in module.nodes:
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            yield node.name
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            yield node.id
        elif isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store) and of_self(node.value):
            yield node.attr


def of_self(node):
    """Return whether an expression is the object or the class that the method belongs to."""
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
        return node.func.id == "super"
    return isinstance(node, ast.Name) and node.id in ("self", "cls")


def private_reads(module):
    """Yield (node, name) of private attributes that are read on other objects than self, and of private imports."""
    for node in module.nodes:
        if isinstance(node, ast.Attribute) and is_private(node.attr) and not of_self(node.value):
            yield node, node.attr
        elif isinstance(node, ast.ImportFrom):
            yield from ((node, alias.name) for alias in node.names if is_private(alias.name))
        elif by_name(node) and is_private(node.args[1].value) and not of_self(node.args[0]):
            yield node, node.args[1].value


def by_name(node):
    """Return whether a node is getattr(x, "name"), or hasattr or setattr."""
    if not (isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and len(node.args) > 1):
        return False
    name = node.args[1]
    known = node.func.id in ("getattr", "hasattr", "setattr")
    return known and isinstance(name, ast.Constant) and isinstance(name.value, str)


def test_private_names_are_read_only_in_the_module_that_defines_them():
    violations = []
    for module in MODULES:
        own = set(defined_names(module))
        for node, name in private_reads(module):
            foreign_import = isinstance(node, ast.ImportFrom) and (node.module or "").startswith("ordinalq")
            if foreign_import or (name not in own and name not in FOREIGN):
                violations.append((module.name, f"{module.at(node)}: {name} belongs to another module"))
    report(violations)


# Imports


def imports(module):
    """Yield (imported module of ours, node) of all imports, those within functions and for type checking included."""
    package = module.name if module.path.name == "__init__.py" else module.name.rpartition(".")[0]
    for node in module.nodes:
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            base = node.module or ""
            if node.level:
                parent = ".".join(package.split(".")[: len(package.split(".")) - node.level + 1])
                base = f"{parent}.{base}".rstrip(".")
            whole = [f"{base}.{alias.name}" for alias in node.names]
            names = [name if name in NAMES else base for name in whole]
        else:
            continue
        for name in names:
            if name in NAMES and name != module.name:
                yield name, node


def within_function(node):
    while hasattr(node, "parent"):
        node = node.parent
        if isinstance(node, ast.FunctionDef | ast.Lambda):
            return True
    return False


def strongly_connected(graph):
    """Return the sets of more than one node that reach each other (Tarjan)."""
    index, low, stack, found = {}, {}, [], []

    def visit(node):
        index[node] = low[node] = len(index)
        stack.append(node)
        for other in graph.get(node, ()):
            if other not in index:
                visit(other)
                low[node] = min(low[node], low[other])
            elif other in stack:
                low[node] = min(low[node], index[other])
        if low[node] == index[node]:
            component = set(stack[stack.index(node) :])
            del stack[stack.index(node) :]
            if len(component) > 1:
                found.append(component)

    for node in graph:
        if node not in index:
            visit(node)
    return found


def test_imports_have_no_cycle_even_within_functions():
    graph = {m.name: {name for name, _ in imports(m) if (m.name, name) not in UPWARDS} for m in MODULES}
    cycles = strongly_connected(graph)
    report([(name, f"{' <-> '.join(sorted(cycle))}") for cycle in cycles for name in cycle])


def test_imports_within_functions_are_listed_with_their_reason():
    found = [(m, name, node) for m in MODULES for name, node in imports(m) if within_function(node)]
    report(
        [
            (module.name, f"{module.at(node)}: {name} is imported within a function")
            for module, name, node in found
            if (module.name, name) not in LAZY and not module.name.startswith(COMMANDS)
        ],
    )
    gone = LAZY.keys() - {(module.name, name) for module, name, _ in found}
    assert not gone, f"no such imports any more: {sorted(gone)}"


# Types and words


def docstring_lines(node):
    first = node.body[0] if node.body else None
    if isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant) and isinstance(first.value.value, str):
        return set(range(first.lineno, first.end_lineno + 1))
    return set()


def test_a_quantifier_is_never_any():
    violations = []
    for module in MODULES:
        for node in module.nodes:
            if isinstance(node, ast.FunctionDef):
                for argument in (*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs):
                    kind = "" if argument.annotation is None else ast.unparse(argument.annotation)
                    if re.fullmatch(r"_?quantifiers?", argument.arg) and (not kind or re.search(r"\bAny\b", kind)):
                        violations.append((module.name, f"{module.at(argument)}: {argument.arg}: {kind or 'untyped'}"))
                result = "" if node.returns is None else ast.unparse(node.returns)
                if (
                    re.fullmatch(r"\w*_?quantifiers?", node.name)
                    and re.search(r"\bAny\b", result)
                    and node.name not in GIVEN
                ):
                    violations.append((module.name, f"{module.at(node)}: {node.name} -> {result}"))
    report(violations)


def docstrings(module):
    """Return the nodes of all docstrings."""
    owners = (ast.Module, ast.ClassDef, ast.FunctionDef)
    return {id(node.body[0].value) for node in module.nodes if isinstance(node, owners) and docstring_lines(node)}


def test_only_the_command_line_speaks_of_options():
    violations = []
    for module in MODULES:
        if module.name.partition("ordinalq.")[2].partition(".")[0] in ("cli", "__main__") or module.name in OPTIONS:
            continue
        spared = docstrings(module)
        for node in module.nodes:
            if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in spared:
                options = re.findall(r"(?<![\w(-])--[a-z][\w-]*", node.value)  # var(--x) is CSS
                violations += [(module.name, f"{module.at(node)}: {option}") for option in options]
    report(violations)


def test_the_package_has_at_most_twelve_layers_and_28_entries():
    root = Path(__file__).parents[1]
    contracts = tomllib.loads((root / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["importlinter"][
        "contracts"
    ]
    layers = next(one["layers"] for one in contracts if one["type"] == "layers")
    assert len(layers) <= 12
    assert len([path for path in ROOT.iterdir() if path.name != "__pycache__"]) <= 28
