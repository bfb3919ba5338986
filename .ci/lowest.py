"""Print the oldest versions that pyproject.toml allows, as constraints for pip, a line for each dependency."""

import re
import tomllib
from pathlib import Path

# What the tests use beside the dependencies, in versions of their time: scikit-learn 1.7 reads the columns of polars in
# a way of which polars 1.40 warns, and gives pytest 9 a generator of checks, of which it warns.
COMPANIONS = ["polars<1.40", "pytest<9"]


def lowest(requirements: list[str]) -> list[str]:
    """Turn `name>=version` into `name==version`.

    >>> lowest(["numpy>=2.0", "jinja2>=3.1"])
    ['numpy==2.0', 'jinja2==3.1']
    """
    return [re.sub(r">=", "==", requirement) for requirement in requirements]


if __name__ == "__main__":
    project = tomllib.loads((Path(__file__).parents[1] / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    print("\n".join([*lowest(project["dependencies"]), *COMPANIONS]))
