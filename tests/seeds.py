"""Random numbers of the tests, swept by the environment variable ORDINALQ_TEST_SEED (see `make seeds`)."""

import os

import numpy as np

SEED = int(os.environ.get("ORDINALQ_TEST_SEED", "876"))


def generator(number=0):
    """Return a generator that follows the seed of the tests; different numbers give independent ones.

    For data that many tests share; within a test, take the fixture `rng`. What is fixed on purpose (a damaged file, a
    number from another package) takes a generator of its own.
    """
    return np.random.default_rng([SEED, number])
