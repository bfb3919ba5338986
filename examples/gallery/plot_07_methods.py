"""
Ten methods on the same scores
==============================

The classifier is the expensive part. Fit it once, and let every method work on its scores.
"""

import matplotlib.pyplot as plt
import numpy as np

import ordinalq as oq

rng = np.random.default_rng(7)


def items(n, shares):
    """Return n items of six classes that overlap."""
    y = rng.choice(6, size=n, p=shares)
    return y[:, None] + rng.normal(scale=1.5, size=(n, 3)), y


X, y = items(5000, [0.35, 0.25, 0.15, 0.1, 0.1, 0.05])
X_test, y_test = items(5000, np.full(6, 1 / 6))

# %%
# The scores of the training items come from models that have not seen them.

classifier = oq.classifiers.CrossFitted().fit(X, y)
S, S_test = classifier.held_out_scores_, classifier.predict_proba(X_test)

METHODS = ("CC", "PCC", "ACC", "PACC", "HDy", "SLD", "EDy", "OPACC", "OHDy", "OEDy")
samples = oq.protocols.APPOQ(0.2, 1000, 300, random_state=8).draw(y_test)
errors = {}
for name in METHODS:
    q = getattr(oq, name)().fit_scores(S, y)
    errors[name] = oq.metrics.nmd(samples.prevalences, q.predict_scores(S_test, samples))

# %%
# The samples have smooth distributions (protocol APP-OQ), so methods that expect smoothness (``O...``) do better than
# their plain forms. The error is NMD: 0 is perfect, 1 is as wrong as can be.

for name, error in sorted(errors.items(), key=lambda item: item[1].mean()):
    print(f"{name:6} {error.mean():.4f}")
figure, ax = plt.subplots(figsize=(9, 4))
ax.boxplot(list(errors.values()), tick_labels=list(errors))
ax.set(yscale="log", ylabel="NMD of 200 smooth samples")
