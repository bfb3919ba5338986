"""Print the oldest versions that pyproject.toml allows, as constraints for pip, a line for each dependency."""

import re
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

# Packages of the tests, in versions of that time: scikit-learn 1.7 reads the columns of polars in a way of which polars
# 1.40 warns, and gives pytest 9 a generator of checks, of which it warns.
COMPANIONS = ["polars<1.40", "pytest<9"]


def requirements(project: dict[str, Any], extra: str | None = None) -> Iterator[str]:
    """Yield the requirements of the core, or those of an extra and of the extras in it.

    >>> extras = {"all": ["ordinalq[plot]", "rich>=13.8"], "plot": ["matplotlib>=3.10"]}
    >>> list(requirements({"dependencies": ["numpy>=2.0"], "optional-dependencies": extras}, "all"))
    ['matplotlib>=3.10', 'rich>=13.8']
    """
    for requirement in project["dependencies"] if extra is None else project["optional-dependencies"][extra]:
        if inner := re.fullmatch(r"ordinalq\[(.+)\]", requirement):
            for one in inner[1].split(","):
                yield from requirements(project, one)
        else:
            yield requirement


def lowest(requirements: list[str]) -> list[str]:
    """Turn `name>=version` into `name==version`.

    >>> lowest(["numpy>=2.0", "jinja2>=3.1"])
    ['numpy==2.0', 'jinja2==3.1']
    """
    return [re.sub(r">=", "==", requirement) for requirement in requirements]


if __name__ == "__main__":
    project = tomllib.loads((Path(__file__).parents[1] / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    everything = sorted({*requirements(project), *requirements(project, "all")})
    print("\n".join([*lowest(everything), *COMPANIONS]))
