"""Random numbers of the tests, swept by the environment variable ORDINALQ_TEST_SEED (see `make seeds`)."""

import ast
import functools
import os
from pathlib import Path

import numpy as np

SEED = int(os.environ.get("ORDINALQ_TEST_SEED", "876"))


def generator(number=0):
    """Return a generator that follows the seed of the tests; different numbers give independent ones.

    For data that many tests share; within a test, take the fixture `rng`. What is fixed on purpose (a damaged file, a
    number from another package) takes a separate generator.
    """
    return np.random.default_rng([SEED, number])


@functools.cache
def following(path):
    """Return the names of a module of tests whose definitions reach `SEED` or `generator`, here or in other modules.

    A name counts if the statement that defines it mentions one that counts, or takes a fixture that does.
    """
    if path == Path(__file__):
        return {"SEED", "generator"}
    found, defined = set(), []
    for statement in ast.parse(path.read_text(encoding="utf-8")).body:
        if isinstance(statement, ast.ImportFrom | ast.Import):
            found |= _imported(statement, path.parent)
        else:
            nodes = list(ast.walk(statement))
            if isinstance(statement, ast.FunctionDef | ast.ClassDef):
                names = {statement.name}
            else:
                names = {node.id for node in nodes if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)}
            mentioned = {node.id for node in nodes if isinstance(node, ast.Name)}
            mentioned |= {node.arg for node in nodes if isinstance(node, ast.arg)}
            mentioned |= {ast.unparse(node) for node in nodes if isinstance(node, ast.Attribute)}  # module.name
            defined.append((names, mentioned))
    before = -1
    while before < len(found):
        before = len(found)
        found |= {name for names, mentioned in defined if mentioned & found for name in names}
    return found


def _imported(statement, folder):
    """Return which of the names that an import brings follow the seed."""
    if isinstance(statement, ast.ImportFrom):
        path = folder / f"{statement.module}.py"
        from_there = following(path) if path.exists() else set()
        return {name.asname or name.name for name in statement.names if name.name in from_there}
    paths = {name.asname or name.name: folder / f"{name.name}.py" for name in statement.names}
    return {f"{module}.{name}" for module, path in paths.items() if path.exists() for name in following(path)}
