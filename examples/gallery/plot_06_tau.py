"""
Choosing tau
============

Methods whose names begin with ``O`` smooth: they prefer distributions in which neighbouring classes have similar
shares. So do RUN and IBU. ``tau`` is the strength of this preference. ``tau="auto"`` chooses it with smooth samples
drawn from the training items.
"""

import matplotlib.pyplot as plt
import numpy as np

import ordinalq as oq
from ordinalq import plot

rng = np.random.default_rng(3)
n = 8
y = rng.choice(n, size=3000, p=np.arange(1, n + 1) / 36)
X = y[:, None] + rng.normal(scale=2.5, size=(3000, 4))

q = oq.OPACC(tau="auto").fit(X, y)
print(q.tuning_)

# %%
# What does the strength do to a sample whose true distribution is smooth? Without smoothing the estimate jumps up and
# down; with too much of it the peak is lost.

truth = np.exp(-0.5 * ((np.arange(n) - 2) / 1.5) ** 2)
truth /= truth.sum()
sample = rng.choice(n, size=1000, p=truth)
X_new = sample[:, None] + rng.normal(scale=2.5, size=(1000, 4))

figure, (left, right) = plt.subplots(1, 2, figsize=(10, 4))
tuning = q.tuning_
plot.tau_path(tuning.values, tuning.errors, tuning.standard_errors, chosen=tuning.value, ax=left)
for tau, marker in ((0.0, "v"), (tuning.value, "o"), (1.0, "^")):
    estimate = oq.OPACC(tau=tau).fit(X, y).predict(X_new)
    right.plot(range(n), 100 * estimate, marker, label=f"tau = {tau:.2g}")
right.step(range(n), 100 * truth, where="mid", color="gray", label="the truth")
right.set(xlabel="class", ylabel="share in %")
right.legend()
figure.tight_layout()
