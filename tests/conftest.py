"""Fixtures shared by all tests, and which tests the seed sweeps."""

import sys
from importlib.metadata import version
from pathlib import Path

import numpy as np
import pytest
from seeds import SEED, following

CONSTRAINTS = Path(__file__).parents[1] / "constraints.txt"


@pytest.fixture
def rng():
    """One generator per test; ORDINALQ_TEST_SEED sweeps the seed."""
    return np.random.default_rng(SEED)


@pytest.fixture(autouse=True)
def close_figures():
    """Close the figures of a test if pyplot was imported."""
    yield
    if pyplot := sys.modules.get("matplotlib.pyplot"):
        pyplot.close("all")


def pytest_report_header():
    """Print the seed at the top of the report."""
    return f"ordinalq: ORDINALQ_TEST_SEED={SEED}"


def pytest_collection_modifyitems(items):
    """Mark the tests whose data follow the seed: by the fixture `rng`, or by what they use of `seeds`.

    Tests of printed figures are skipped with versions of packages that give other last digits.
    """
    pins = dict(line.split("==") for line in CONSTRAINTS.read_text(encoding="utf-8").splitlines() if "==" in line)
    others = [name for name in ("numpy", "scipy", "scikit-learn", "pandas") if version(name) != pins[name]]
    for item in items:
        if others and item.get_closest_marker("printed"):
            item.add_marker(pytest.mark.skip(reason=f"printed with other versions of {', '.join(others)}"))
        if isinstance(item, pytest.Function):
            used = {item.originalname, *item.fixturenames}
            if "rng" in used or used & following(item.path):
                item.add_marker(pytest.mark.seeded)
