"""Maximum entropy next to Tikhonov on fried: the same representation and loss, the strength chosen on other samples.

One forest with out-of-bag scores; least squares on posteriors, Poisson on votes, Hellinger on histograms of posteriors.
tau is chosen by the mean NMD of the validation samples of a protocol, the table has that of the test samples.
"""

import sys
from dataclasses import replace

import numpy as np
from sklearn.ensemble import RandomForestClassifier

import ordinalq as oq
from ordinalq.losses import Hellinger, LeastSquares, Poisson
from ordinalq.regularizers import Entropy, NoPenalty, Tikhonov
from ordinalq.representations import HardVotes, Histograms, Posteriors

PARTS = {
    "least squares": (Posteriors(), LeastSquares(), 1.0),
    "Poisson": (HardVotes(), Poisson(), 1000.0),  # a likelihood of 1000 items
    "Hellinger": (Histograms(4), Hellinger(), 1.0),
}
TAUS = 10.0 ** np.arange(-6, 1)


def main(n_trees, n_samples):
    """Print mean NMD by loss and regularizer under APP and APP-OQ."""
    dataset = oq.datasets.load_dataset("fried")
    dataset = replace(dataset, sampling=replace(dataset.sampling, n_validation=n_samples, n_test=n_samples))
    weights = "balanced_subsample"
    forest = RandomForestClassifier(
        n_trees, max_depth=12, class_weight=weights, oob_score=True, bootstrap=True, random_state=0, n_jobs=1
    )
    forest.fit(*dataset.train)
    S = {"train": forest.oob_decision_function_}
    S |= {pool: forest.predict_proba(getattr(dataset, pool).X) for pool in ("validation", "test")}
    print(f"{'loss':14} {'protocol':8} {'none':>7}  Tikhonov (tau)     entropy (tau)  entropy to p_L (tau)")
    p_train = np.bincount(dataset.train.y) / len(dataset.train.y)
    for name, (representation, loss, unit) in PARTS.items():
        for protocol in dataset.protocols:
            cells = [_chosen(representation, loss, [NoPenalty()], S, dataset, protocol)[0]]
            for make in (Tikhonov, Entropy, lambda tau: Entropy(tau, centre=p_train)):
                cells += _chosen(representation, loss, [make(unit * tau) for tau in TAUS], S, dataset, protocol)
            print("{:14} {:8} {:7.4f} {:8.4f} ({:5g}) {:9.4f} ({:5g}) {:9.4f} ({:5g})".format(name, protocol, *cells))


def _chosen(representation, loss, regularizers, S, dataset, protocol):
    """Return the test error at the tau of the smallest validation error, and that tau."""
    best = (np.inf, None)
    for regularizer in regularizers:
        quantifier = oq.ComposedQuantifier(representation, loss, regularizer).fit_scores(S["train"], dataset.train.y)
        error = _error(quantifier, S["validation"], dataset.samples(protocol, "validation"))
        best = min(best, (error, quantifier), key=lambda pair: pair[0])
    quantifier = best[1]
    error = _error(quantifier, S["test"], dataset.samples(protocol, "test"))
    return error, getattr(quantifier.regularizer, "tau", 0.0)


def _error(quantifier, S, samples):
    return float(oq.metrics.nmd(samples.prevalences, quantifier.predict_scores(S, samples)).mean())


if __name__ == "__main__":
    if "--tiny" in sys.argv:
        main(20, 15)
    else:
        main(100, 1000)
