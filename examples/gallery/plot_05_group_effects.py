"""
Why real groups need group effects
==================================

Most intervals assume that the feature distribution within a class is the same in every group. If they do not, the
interval shrinks as a group grows, but the error does not.
"""

import matplotlib.pyplot as plt
import numpy as np

import ordinalq as oq

rng = np.random.default_rng(4)


def groups(names, n):
    """Return groups of n items; each group has its own shares, and its items look a little different."""
    parts = []
    for name in names:
        y = rng.choice(np.arange(1, 6), size=n, p=rng.dirichlet([2, 3, 4, 3, 2]))
        looks = rng.normal(scale=0.3, size=(5, 4))
        parts.append((y[:, None] + looks[y - 1] + rng.normal(scale=1.5, size=(n, 4)), y, np.full(n, name)))
    return (np.concatenate(part) for part in zip(*parts, strict=True))


X, y, group = groups(range(60), 60)
plain = oq.PACC().fit(X, y)
aware = oq.GroupBLP().fit(X, y, groups=group)

# %%
# Take a hundred new groups of each size. How often does a 95% interval contain the true mean class, and how wide is
# it?

sizes = [30, 100, 300, 1000]
covered, width = {"PACC": [], "GroupBLP": []}, {"PACC": [], "GroupBLP": []}
for size in sizes:
    X_new, y_new, group_new = groups(range(100), size)
    truth = y_new.reshape(100, size).mean(axis=1)
    for name, q in (("PACC", plain), ("GroupBLP", aware)):
        bounds = q.predict_groups(X_new, group_new, level=0.95).bounds
        covered[name].append(100 * np.mean((bounds.mean_lower <= truth) & (truth <= bounds.mean_upper)))
        width[name].append(np.mean(bounds.mean_upper - bounds.mean_lower))
    print(
        f"{size:5d} items: PACC covers {covered['PACC'][-1]:.0f}%, GroupBLP with groups {covered['GroupBLP'][-1]:.0f}%"
    )

figure, (left, right) = plt.subplots(1, 2, figsize=(10, 4))
for name, label in (("PACC", "PACC, trained without groups"), ("GroupBLP", "GroupBLP, trained with groups")):
    left.plot(sizes, covered[name], "o-", label=label)
    right.plot(sizes, width[name], "o-", label=label)
left.axhline(95, color="gray", linestyle=":")
left.set(xscale="log", ylim=(0, 102), xlabel="items in a group", ylabel="intervals with the true value, %")
right.set(xscale="log", ylim=(0, None), xlabel="items in a group", ylabel="width of the interval, classes")
left.legend()
figure.tight_layout()
