"""The house rules that no linter knows: whose private names are read, who imports whom, how long things are.

Every test lists all violations at once. Layers are the business of import-linter (`make check`).
"""

import ast
import io
import re
import tokenize
import tomllib
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import ordinalq

ROOT = Path(ordinalq.__file__).parent
MAX_MODULE, MAX_CLASS, MAX_FUNCTION = 400, 200, 50

# Private names of other packages that we read, and why there is no public one.
FOREIGN = {
    "_safe_indexing": "rows of arrays, sparse matrices, lists and frames alike; scikit-learn has no public twin",
    "_num_samples": "number of items of anything that a classifier takes; scikit-learn has no public twin",
    "_exit": "public function of os",
    "_replace": "public method of named tuples",
    "_asdict": "public method of named tuples",
    "_fields": "public attribute of named tuples",
    "_make": "public method of named tuples",
}
# Imports of our own modules within functions: (importer, imported) -> what they save. There are no others.
LAZY = {
    ("ordinalq.public", "ordinalq.classify.ordinal"): "the public names; scikit-learn's linear models, SVMs: .1 s",
    ("ordinalq.public", "ordinalq.datasets"): "the public names; a quarter of all modules, with those that read files",
    ("ordinalq.public", "ordinalq.tables.model"): "the public name; scikit-learn's compose and its text features",
    ("ordinalq.public", "ordinalq.tables.saving"): "the public names; skops and zipfile",
    ("ordinalq.classify.factory", "ordinalq.classify.ordinal"): "scikit-learn's linear models and SVMs",
    ("ordinalq.contract.estimates", "ordinalq.plot"): "the one import upwards: a view of the result",
    ("ordinalq.datasets.amazon", "ordinalq.datasets.text"): "scikit-learn's text features",
    ("ordinalq.experiments.material", "ordinalq.datasets.text"): "scikit-learn's text features",
    ("ordinalq.inference.tuning", "ordinalq.plot"): "a view of the result; a tenth of `import ordinalq`",
    ("ordinalq.inference.verdict", "ordinalq.plot"): "a view of the result; a tenth of `import ordinalq`",
}
# Each verb imports what it needs when it runs: `ordinalq --help` would take seconds otherwise.
COMMANDS = "ordinalq.cli"
# Functions that are about quantifiers and return what the caller gave, of any type.
GIVEN = ("with_quantifier",)
# The one import that points upwards, at call time.
UPWARDS = {("ordinalq.contract.estimates", "ordinalq.plot")}
# Modules that may name options, and why.
OPTIONS = {
    "ordinalq.app.commands": "shows the command that does the same",
    "ordinalq.experiments.runner": "records the command that repeats a run",
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

    @cached_property
    def comments(self):
        """Comments by line."""
        tokens = tokenize.generate_tokens(io.StringIO(self.text).readline)
        return {token.start[0]: token.string for token in tokens if token.type == tokenize.COMMENT}

    @cached_property
    def code_lines(self):
        """Numbers of the lines that hold code: neither blank nor comment alone."""
        nothing = (tokenize.COMMENT, tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT)
        tokens = tokenize.generate_tokens(io.StringIO(self.text).readline)
        return {n for t in tokens if t.type not in nothing for n in range(t.start[0], t.end[0] + 1)}

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


def test_imports_within_functions_are_listed_with_what_they_save():
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


# Lengths


def docstring_lines(node):
    first = node.body[0] if node.body else None
    if isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant) and isinstance(first.value.value, str):
        return set(range(first.lineno, first.end_lineno + 1))
    return set()


def function_length(module, node):
    """Lines of code: without docstrings (those of inner functions too), blank lines and comments."""
    lines = set(range(node.lineno, node.end_lineno + 1)) & module.code_lines
    for inner in ast.walk(node):
        if isinstance(inner, ast.FunctionDef | ast.ClassDef):
            lines -= docstring_lines(inner)
    return len(lines)


def has_reason(module, node):
    """Return whether `# long: reason` stands beside the definition, or on the line above it."""
    beside = range(node.lineno - 1, node.body[0].lineno)
    return any(re.match(r"#.*\blong: \S", module.comments.get(line, "")) for line in beside)


def test_modules_classes_and_functions_are_short():
    violations = []
    for module in MODULES:
        length = module.text.count("\n")
        if length > MAX_MODULE:
            violations.append((module.name, f"{module.path.relative_to(ROOT)}: {length} lines, at most {MAX_MODULE}"))
        for node in module.nodes:
            if isinstance(node, ast.ClassDef):
                length, limit = node.end_lineno - node.lineno + 1, MAX_CLASS
            elif isinstance(node, ast.FunctionDef) and not has_reason(module, node):
                length, limit = function_length(module, node), MAX_FUNCTION
            else:
                continue
            if length > limit:
                violations.append((module.name, f"{module.at(node)}: {node.name} has {length} lines, at most {limit}"))
    report(violations)


# Types and words


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


DOCUMENT = Path(__file__).parents[1] / "docs" / "architecture.md"


def documented():
    """Return what docs/architecture.md says of each room and of the modules beside them: {folder: words}."""
    block = DOCUMENT.read_text(encoding="utf-8").partition("## Which file holds what")[2].split("```")[1]
    entries = re.split(r"^  (?=\S)", block.partition("src/ordinalq/\n")[2].partition("\ntests/")[0], flags=re.MULTILINE)
    found = {"": ""}
    for entry in entries:
        room = re.match(r"(\w+)/ ", entry)
        found[room[1] if room else ""] = found.get(room[1] if room else "", "") + entry
    # Each method is named in the table of methods.
    found["methods"] += " ".join(re.findall(r"^\| `.*", DOCUMENT.read_text(encoding="utf-8"), flags=re.MULTILINE))
    return found


def test_the_picture_of_the_house_names_every_file_and_no_other():
    named = {room: set(re.findall(r"\b\w+\.py\b", text)) for room, text in documented().items()}
    there = {}
    for module in MODULES:
        *room, name = module.path.relative_to(ROOT).parts
        there.setdefault("/".join(room), set()).add(name)
    for room, names in there.items():
        assert named[room] - {"__init__.py"} == names - {"__init__.py", "__main__.py"}, room


def test_the_layers_of_the_document_are_those_that_are_checked():
    contracts = tomllib.loads((DOCUMENT.parents[1] / "pyproject.toml").read_text(encoding="utf-8"))
    layers = next(one["layers"] for one in contracts["tool"]["importlinter"]["contracts"] if one["type"] == "layers")
    drawn = DOCUMENT.read_text(encoding="utf-8").partition("## Layers")[2].split("```")[1]
    assert drawn.strip().splitlines() == layers
