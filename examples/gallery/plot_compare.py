"""
Is A better than B?
===================

Three products have new reviews without stars. Which of them do people like better, and how likely is that?
"""

import matplotlib.pyplot as plt
import numpy as np

import ordinalq as oq
from ordinalq import plot

rng = np.random.default_rng(1)


def reviews(n, shares):
    """Return the features of n reviews and their stars."""
    stars = rng.choice(np.arange(1, 6), size=n, p=shares)
    return stars[:, None] + rng.normal(scale=1.2, size=(n, 4)), stars


X, stars = reviews(4000, [0.1, 0.1, 0.2, 0.3, 0.3])
q = oq.PACC().fit(X, stars)

# %%
# The new reviews.

SHARES = {"A": [0.05, 0.10, 0.15, 0.30, 0.40], "B": [0.10, 0.15, 0.20, 0.30, 0.25], "C": [0.20, 0.10, 0.10, 0.15, 0.45]}
piles = [reviews(500, shares)[0] for shares in SHARES.values()]
estimates = q.predict_groups(np.concatenate(piles), np.repeat(list(SHARES), 500), level=0.95)

# %%
# A comparison takes into account that the errors of both groups have causes in common: the same response matrix
# stands behind all of them. With several pairs the intervals are widened, so that all hold together.

found = estimates.compare("A", "B", "C")
print("\n".join(found.sentences()))

# %%
# Mean stars can hide what matters: C has as many enthusiasts as A, and more who are angry. The cumulated shares
# show it.

figure, ax = plt.subplots(figsize=(8, 4), layout="constrained")
plot.comparison(found, ax=ax, xlabel="stars")
