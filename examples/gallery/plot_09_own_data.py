"""
Your own data in an experiment
==============================

The program that runs the paper's experiments takes any table. It splits the rows, draws validation and test samples,
chooses the parameters of every method, and writes tables, figures and a page.
"""

import tempfile
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

from ordinalq.paper.experiments.config import load_config
from ordinalq.paper.experiments.runner import run

rng = np.random.default_rng(6)
frame = pd.DataFrame(rng.normal(size=(3000, 4)), columns=["size", "age", "light", "noise"])
frame["kind"] = rng.choice(["flat", "house"], 3000)
frame["rent"] = 3 * frame["size"] - frame["age"] + 2 * (frame["kind"] == "house") + rng.normal(size=3000)

# %%
# A configuration file describes the experiment. A numeric target is cut into classes.

METHODS = ["CC", "PACC", "SLD", "EDy", "OPACC", "OEDy"]
CONFIG = f"""
title = "Rents"
methods = {METHODS}

[dataset]
table = "rents.parquet"
target = "rent"
n_bins = 5

[samples]
n_validation = 50
n_test = 100
sample_size = 200

[classifier]
family = "logistic"

[classifier.grid]
C = [0.1, 1.0]
"""

folder = Path(tempfile.mkdtemp())
frame.to_parquet(folder / "rents.parquet")
(folder / "rents.toml").write_text(CONFIG)
outcome = run(load_config(folder / "rents.toml"), folder / "results")

# %%
# ``write_report(outcome, folder)`` would write the report. The errors are also there as a data frame.

errors = outcome.estimates.query("measure == 'nmd'")
print(errors.pivot_table("error", "method", "protocol").loc[METHODS].round(4))

figure, ax = plt.subplots(figsize=(8, 4))
by_method = errors.query("protocol == 'APP'").set_index("method")["error"]
ax.boxplot([by_method[name] for name in METHODS], tick_labels=METHODS)
ax.set(ylabel="NMD of 100 test samples (APP)", title="Rents in five classes")
