"""A small experiment on a made table, for tests of the runner and of the command line."""

import numpy as np
import pandas as pd

CONFIG = """
title = "small"
methods = ["CC", "PACC", "HDx", "SLD", "OQT", "ARC", "EDy", "OPACC", "OHDx"]
seed = 5

[dataset]
table = "items.csv"
target = "stars"

[samples]
n_validation = 8
n_test = 10
sample_size = 60

[classifier]
family = "forest"
n_estimators = 20

[classifier.grid]
max_depth = [2, 5]

[grid.OPACC]
tau = [0.0, 0.01]

[grid.OHDx]
n_bins = [3]
tau = [0.001]

[quick.classifier.grid]
max_depth = [3]
"""


def write_experiment(folder, config=CONFIG, n_items=900):
    """Write ``items.csv`` and ``small.toml`` and return the path of the latter."""
    rng = np.random.default_rng(3)  # a run that stops, goes on or is damaged has nothing to do with its data
    stars = np.arange(n_items) % 4 + 1
    frame = pd.DataFrame({"a": stars + rng.normal(size=n_items), "b": rng.normal(size=n_items), "stars": stars})
    frame.to_csv(folder / "items.csv", index=False)
    path = folder / "small.toml"
    path.write_text(config, encoding="utf-8")
    return path
