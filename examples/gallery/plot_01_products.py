"""
Stars per product
=================

A shop has labelled reviews and a pile of new ones. How are the stars of each product distributed, and how sure can we
be?
"""

import matplotlib.pyplot as plt
import numpy as np

import ordinalq as oq
from ordinalq import plot

rng = np.random.default_rng(0)
STARS = np.arange(1, 6)


def reviews(n, shares):
    """Return the features of n reviews and their stars; each feature says a little about the stars."""
    stars = rng.choice(STARS, size=n, p=shares)
    return stars[:, None] + rng.normal(size=(n, 4)), stars


# %%
# Most of the labelled reviews are good, as reviews tend to be.

X, stars = reviews(4000, [0.08, 0.08, 0.14, 0.25, 0.45])
q = oq.PACC().fit(X, stars)

# %%
# The new reviews come with the name of the product but without stars. (We know the truth here, but use it only for
# the plot.)

PRODUCTS = {
    "kettle": (400, [0.45, 0.25, 0.15, 0.10, 0.05]),
    "lamp": (150, [0.20, 0.20, 0.20, 0.20, 0.20]),
    "toaster": (600, [0.02, 0.05, 0.13, 0.45, 0.35]),
}
piles = {name: reviews(*made) for name, made in PRODUCTS.items()}
X_new = np.concatenate([pile[0] for pile in piles.values()])
product = np.repeat(list(piles), [len(pile[0]) for pile in piles.values()])

estimates = q.predict_groups(X_new, product, level=0.95)
print(estimates)

# %%
# The diamonds are the true shares. At a level of 95%, about one interval in twenty misses its diamond.

truth = [np.bincount(pile[1], minlength=6)[1:] / len(pile[1]) for pile in piles.values()]
plot.groups(estimates, truth=truth, figure=plt.figure(figsize=(10, 3.5), layout="constrained"), xlabel="stars")
