"""
Which of the new products are worst?
====================================

A shop has 60 products with labelled reviews. Fifty new products have reviews without stars. They come from another
market, where people write more kindly. How many stars does each new product have, and how certain is that?

This analysis trains a model with groups, asks about new groups, finds that all of them have drifted, and corrects it
with 100 labels.
"""

import textwrap

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

import ordinalq as oq

# %%
# The reviews
# -----------
# Each product has its own prevalences of stars. It also has its own features for each star, because two-star reviews
# of a cable and of a tablet use different words. ``kindness`` moves the features of all products of a market.

rng = np.random.default_rng(11)


def reviews(products, n, kindness=0.0):
    """Return features, stars and products of n reviews of each product."""
    found = []
    for product in products:
        stars = rng.choice([1, 2, 3, 4, 5], size=n, p=rng.dirichlet([2, 2, 3, 4, 4]))
        offset = kindness + rng.normal(scale=0.25, size=4)
        X = stars[:, None] + offset + rng.normal(scale=1.2, size=(n, 4))
        found.append((X, stars, np.full(n, product)))
    return [np.concatenate(part) for part in zip(*found, strict=True)]


known_products = [f"P{number:02d}" for number in range(60)]
new_products = [f"N{number:02d}" for number in range(50)]
X, stars, product = reviews(known_products, 100)
X_new, true_stars, product_new = reviews(new_products, 200, kindness=0.5)
truth = pd.Series(true_stars).groupby(product_new).mean().to_numpy()

# %%
# A model with groups
# -------------------
# ``groups=product`` lets the model learn how products differ. Without it, intervals assume that they differ in their
# prevalences only, and are too narrow.

q = oq.GroupBLP().fit(X, stars, groups=product)
naive = q.predict_groups(X_new, product_new, level=0.95, drift=None)


def summary(estimates):
    """Return the mean error in stars and the number of intervals that contain the true mean."""
    inside = (estimates.bounds.mean_lower <= truth) & (truth <= estimates.bounds.mean_upper)
    error = np.abs(estimates.mean - truth).mean()
    return f"mean error {error:.2f} stars, {inside.sum()} of {len(truth)} intervals contain the true mean"


print(summary(naive))

# %%
# ``drift=None`` estimates each group independently. Almost all estimates are too high.
#
# All groups have drifted
# -----------------------
# By default the model also estimates an offset that all new groups share. The verdict is a sentence about the whole
# table.

without_labels = q.predict_groups(X_new, product_new, level=0.95)
print(textwrap.fill(without_labels.verdict, 80))
print(summary(without_labels))

# %%
# The new groups are recognized as different, and the intervals are wider. That is not enough: the features do not
# show whether the reviews are kinder or the products better, and more than half of the intervals are still wrong.
# Only labels can decide.
#
# A hundred labels
# ----------------
# Read and label 100 reviews, drawn at random from all products: two per product on average. They show the offset of
# all products.

labels = np.full(len(X_new), np.nan)
drawn = rng.choice(len(X_new), size=100, replace=False)
labels[drawn] = true_stars[drawn]
with_labels = q.predict_groups(X_new, product_new, level=0.95, labels=labels)
print(textwrap.fill(with_labels.verdict, 80))
print(summary(with_labels))

# %%
# The figure shows each product with its interval. Points on the diagonal are exact.

figure, axes = plt.subplots(1, 3, figsize=(12, 4), sharex=True, sharey=True, layout="constrained")
for ax, (title, estimates) in zip(
    axes, {"independent": naive, "common offset": without_labels, "100 labels": with_labels}.items(), strict=True
):
    errors = [estimates.mean - estimates.bounds.mean_lower, estimates.bounds.mean_upper - estimates.mean]
    ax.errorbar(truth, estimates.mean, errors, fmt="o", markersize=3, linewidth=0.8)
    ax.plot([1.5, 5], [1.5, 5], color="gray", linewidth=0.8)
    ax.set(title=title, xlabel="true mean")
axes[0].set_ylabel("estimated mean")

# %%
# Which products are worst?
# -------------------------
# Comparisons account for the error that all products share: it cancels in a difference.

worst = with_labels.frame().nsmallest(3, "mean_class")
print(worst[["group", "n_items", "mean_class", "mean_class_lower", "mean_class_upper"]].round(2).to_string(index=False))
print(textwrap.fill(str(with_labels.compare(*worst["group"].iloc[:2])), 80))
