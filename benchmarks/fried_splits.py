"""Variation of the errors on fried between splits.

    python benchmarks/fried_splits.py

The rarest class of fried has 26 items in the test pool, and every sample repeats them. For several splits, the
same forest and methods are judged on samples of their pools and on samples of a fresh pool without repetition. Mean
NMD, APP and APP-OQ (20%).
"""

import argparse

import numpy as np
from sklearn.ensemble import RandomForestClassifier

import ordinalq as oq
from ordinalq.classifiers.cross_fitting import held_out
from ordinalq.datasets.regression import SPAN, friedman
from ordinalq.metrics import errors
from ordinalq.samples.samples import smoothest_mask

SEEDS = (876, 1, 2, 3, 4)
METHODS = (oq.PACC(), oq.OPACC(tau=1e-3), oq.OEDy(tau=1e-3), oq.OPDF(n_bins=55, tau=1e-3))
N_FRESH, PER_CLASS = 1_000_000, 3000


def fresh_pool(n_items, rng):
    """Return features and classes of new items, at most 3000 of each class."""
    X = np.round(rng.uniform(size=(n_items, 10)), 3)
    y = np.searchsorted(np.linspace(*SPAN, 11)[1:-1], friedman(X) + rng.standard_normal(n_items), side="right")
    kept = np.concatenate([rng.permutation(np.flatnonzero(y == c))[:PER_CLASS] for c in range(10)])
    return X[kept], y[kept]


def drawn(data, part, tiny):
    """Return the samples of the protocol APP, few of them on request."""
    samples = data.samples("APP", part)
    return samples[:20] if tiny else samples


def main():
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--tiny", action="store_true", help="one split, few trees and samples")
    tiny = parser.parse_args().tiny
    X, y = fresh_pool(N_FRESH // 10 if tiny else N_FRESH, np.random.default_rng(99))
    n_samples, size = (20, 100) if tiny else (2000, 1000)
    print("| seed | method | validation APP | APP-OQ | test APP | APP-OQ | fresh APP | APP-OQ |")
    print("|---|---|---|---|---|---|---|---|")
    for seed in SEEDS[:1] if tiny else SEEDS:
        data = oq.datasets.load_dataset("fried", random_state=seed)
        forest = RandomForestClassifier(
            20 if tiny else 100, criterion="entropy", max_depth=12, oob_score=True, random_state=seed, n_jobs=2
        )
        model = held_out(forest).fit(*data.train)
        pools = [
            (model.predict_proba(data.validation.X), drawn(data, "validation", tiny)),
            (model.predict_proba(data.test.X), drawn(data, "test", tiny)),
            (model.predict_proba(X), oq.protocols.APP(n_samples, size, min_per_class=3, random_state=seed).draw(y)),
        ]
        for quantifier in METHODS:
            quantifier.fit_scores(model.held_out_scores_, data.train.y)
            cells = []
            for S, samples in pools:
                found = errors(samples.prevalences, quantifier.predict_scores(S, samples))
                cells += [found.mean(), found[smoothest_mask(samples.prevalences, 0.2)].mean()]
            print(f"| {seed} | {quantifier.paper_name} | {' | '.join(f'{cell:.4f}' for cell in cells)} |", flush=True)


if __name__ == "__main__":
    main()
