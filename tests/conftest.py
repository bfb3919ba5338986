"""Fixtures shared by all tests, and which tests the seed sweeps."""

import numpy as np
import pytest
from seeds import SEED, generator


@pytest.fixture
def rng():
    """One generator per test; ORDINALQ_TEST_SEED sweeps the seed."""
    return np.random.default_rng(SEED)


def pytest_report_header():
    """Print the seed at the top of the report."""
    return f"ordinalq: ORDINALQ_TEST_SEED={SEED}"


def pytest_collection_modifyitems(items):
    """Mark the tests whose data follow the seed: by the fixture, or by data that their module shares."""
    for item in items:
        module = getattr(item, "module", None)
        shared = any(value is generator for value in vars(module).values()) if module else False
        if "rng" in getattr(item, "fixturenames", ()) or shared:
            item.add_marker(pytest.mark.seeded)
