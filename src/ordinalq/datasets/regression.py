"""The Friedman #1 function, regenerated: ten features of which five matter, and the noise is known.

y = 10 sin(pi x_1 x_2) + 20 (x_3 - 1/2)^2 + 10 x_4 + 5 x_5 + e, x uniform in [0, 1]^10, e ~ N(0, 1) (Friedman, 1991).
The file that OpenML publishes as "fried" follows this formula: 40,768 items, three decimals, residuals of mean .001 and
standard deviation .997.
"""

import numpy as np

from ordinalq._utils.validation import Floats
from ordinalq.datasets.tables import Regression

N_ITEMS = 40_768
N_FEATURES = 10
SPAN = (-0.523, 30.054)
SEED = 564  # of the items, which are always the same; the split and the samples have their own random_state


def friedman(X: Floats) -> Floats:
    """Return 10 sin(pi x_1 x_2) + 20 (x_3 - 1/2)^2 + 10 x_4 + 5 x_5, the expectation of y, (N,).

    >>> friedman(np.array([[1.0, 0.5, 0.5, 1.0, 1.0, 0, 0, 0, 0, 0]]))
    array([25.])
    """
    return 10 * np.sin(np.pi * X[:, 0] * X[:, 1]) + 20 * (X[:, 2] - 0.5) ** 2 + 10 * X[:, 3] + 5 * X[:, 4]


def make_fried() -> tuple[Floats, Floats]:
    """Return features (40768, 10) and target (40768,), with three decimals as in the published file."""
    rng = np.random.default_rng(SEED)
    X = np.round(rng.uniform(size=(N_ITEMS, N_FEATURES)), 3)
    return X, np.round(friedman(X) + rng.standard_normal(N_ITEMS), 3)


FRIED = Regression(
    "fried",
    "Friedman #1 function (Ann. Statist. 19, 1991), regenerated; free of licences",
    SPAN,
    lambda data: (np.column_stack(make_fried()), [f"attr_{i}" for i in range(N_FEATURES)], ()),
)
