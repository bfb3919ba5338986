"""
Is A better than B?
===================

Three products have new reviews without stars. Which one do people like best, and how sure can we be?
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
# The estimates of all products rest on the same training items, so their errors have causes in common. A comparison
# takes that into account. If there are several pairs, the intervals are widened so that they all hold together.

found = estimates.compare("A", "B", "C")
print("\n".join(found.sentences()))

# %%
# The mean can hide what matters: C has as many enthusiasts as A, but also more angry customers. The plot shows,
# for each pair, the difference of the means; ``found.frame()`` has the differences at every star.

figure, ax = plt.subplots(figsize=(8, 4), layout="constrained")
plot.comparison(found, ax=ax, xlabel="stars")
