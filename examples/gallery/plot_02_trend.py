"""
A trend over months
===================

Unlabelled reviews arrive all year. Did the stars change, or is it just chance?
"""

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

import ordinalq as oq
from ordinalq import plot

rng = np.random.default_rng(10)
GOOD, BAD = np.array([0.05, 0.05, 0.15, 0.30, 0.45]), np.array([0.30, 0.25, 0.20, 0.15, 0.10])


def looks(stars):
    """Return features of reviews with these stars."""
    return stars[:, None] + rng.normal(scale=1.2, size=(len(stars), 4))


stars = rng.choice(np.arange(1, 6), size=4000, p=GOOD)
q = oq.PACC().fit(looks(stars), stars)

# %%
# This product gets worse from the summer on.

months = pd.period_range("2024-01", "2024-12", freq="M").astype(str)
worse = np.clip((np.arange(12) - 5) / 6, 0, 1)
parts = [rng.choice(np.arange(1, 6), size=150, p=(1 - w) * GOOD + w * BAD) for w in worse]
month = np.repeat(np.asarray(months), 150)
estimates = q.predict_groups(
    looks(np.concatenate(parts)), month, level=0.95, options=oq.inference.IntervalOptions(estimand="population")
)

# %%
# One test asks whether there is any change at all; a line through the mean classes says in which direction.

print(estimates.trend())
plot.trend(estimates, figure=plt.figure(figsize=(9, 4.5), layout="constrained"))
