"""
A folder of files on Dask
=========================

When there are too many files for one machine, every worker scores its own rows and only sums travel. The result is
the same as on one machine.
"""

import tempfile
from pathlib import Path

import dask.dataframe as dd
import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

import ordinalq as oq
from ordinalq import plot

rng = np.random.default_rng(9)


def reviews(n, shares):
    """Return a table of n reviews: two features that depend on the stars, and the stars."""
    stars = rng.choice(np.arange(1, 6), size=n, p=shares)
    tone, length = stars + rng.normal(scale=0.8, size=n), 20 - 2 * stars + rng.normal(scale=4, size=n)
    return pd.DataFrame({"tone": tone, "length": length, "stars": stars})


model = oq.TableModel(oq.PACC()).fit(reviews(4000, [0.1, 0.1, 0.2, 0.3, 0.3]), target="stars")

# %%
# A folder with one file per shop. In real life it would be a bucket, and a ``dask.distributed.Client`` would name the
# cluster. Without one, Dask uses this machine.

folder = Path(tempfile.mkdtemp())
for shop, falling in (("north", 0.6), ("east", 0.9), ("south", 1.2), ("west", 1.8)):
    shares = falling ** np.arange(5)
    table = reviews(2000, shares / shares.sum()).drop(columns="stars")
    table.assign(shop=shop).to_parquet(folder / f"{shop}.parquet")

frame = dd.read_parquet(folder)
estimates = oq.dask.predict_groups(model, frame, by="shop", level=0.95)
print(estimates.frame().iloc[:, :7].round(2).to_string(index=False))

# %%
# On one machine the result is the same up to rounding.

here = model.predict_groups(frame.compute(), "shop", level=0.95)
print("largest difference:", abs(here.prevalences - estimates.prevalences).max())
plot.groups(estimates, figure=plt.figure(figsize=(10, 3.5), layout="constrained"), xlabel="stars")
