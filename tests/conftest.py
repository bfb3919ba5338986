"""Fixtures shared by all tests."""

import os

import numpy as np
import pytest


@pytest.fixture
def rng():
    """One generator per test; ORDINALQ_TEST_SEED sweeps the seed."""
    return np.random.default_rng(int(os.environ.get("ORDINALQ_TEST_SEED", "876")))
