"""
How many labels would help?
===========================

You can have some of the new items read and labelled. How many labels does it take to make the interval narrow enough?
"""

import matplotlib.pyplot as plt
import numpy as np

import ordinalq as oq

rng = np.random.default_rng(2)


def reviews(product, n):
    """Return the reviews of a product, which has its own shares and its own way of writing about each star."""
    shares = rng.dirichlet([2, 2, 4, 8, 12])
    stars = rng.choice(np.arange(1, 6), size=n, p=shares)
    looks = rng.normal(scale=0.4, size=(5, 4))
    return stars[:, None] + looks[stars - 1] + rng.normal(scale=1.2, size=(n, 4)), stars, np.full(n, product)


# %%
# Forty labelled products show how products differ. A new one has 2000 reviews without stars.

parts = [reviews(f"product {i}", 100) for i in range(40)]
X, stars, product = (np.concatenate(part) for part in zip(*parts, strict=True))
q = oq.GroupBLP().fit(X, stars, groups=product)
X_new, true_stars, name = reviews("new", 2000)

# %%
# ``labels_needed`` answers the question before anyone has labelled anything.

widths = [0.8, 0.6, 0.4, 0.3, 0.2]
needed = [q.labels_needed(X_new, name, width=width).frame() for width in widths]
for width, table in zip(widths, needed, strict=True):
    print(f"{table['labels'].iloc[0]} labels make the interval of the mean {width} stars wide")

# %%
# Now label items at random, and see what they do.

counts = [0, 10, 30, 100, 300, 1000]
order = rng.permutation(len(name))
means = []
for count in counts:
    labelled = np.full(len(name), np.nan)
    labelled[order[:count]] = true_stars[order[:count]]
    estimates = q.predict_groups(X_new, name, level=0.95, labels=labelled if count else None)
    means.append([estimates.mean[0], estimates.bounds.mean_lower[0], estimates.bounds.mean_upper[0]])
middle, lower, upper = np.transpose(means)

figure, ax = plt.subplots()
ax.errorbar(range(len(counts)), middle, [middle - lower, upper - middle], fmt="o", capsize=4, label="estimate, 95%")
ax.axhline(true_stars.mean(), color="gray", label="the truth")
ax.set(xticks=range(len(counts)), xticklabels=counts, xlabel="labelled reviews, out of 2000", ylabel="mean stars")
ax.legend()
