"""The group effect on any representation, for methods that have no model of groups of their own."""

import numpy as np

from ordinalq._utils.validation import Codes, Floats
from ordinalq.inference.learn import error_of_means, learn
from ordinalq.inference.sums import GroupSums
from ordinalq.samples.weights import Weights

# Numbers in the squares of all groups, half a gigabyte; wider representations are reduced to their main directions.
MAX_SQUARES = 2**26


def effect_on_looks(F: Floats, codes: Codes, groups: Codes, weights: Weights | None = None) -> Floats:
    """Return D (d, d), the covariance between groups of the mean of f within a class.

    F (N, d) represents labelled items, scored by models that have seen no item of their group; codes and groups (N,)
    are their classes 0..n-1 and groups 0..G-1.
    """
    n_groups, d = int(groups.max()) + 1, F.shape[1]
    n_classes = int(codes.max()) + 1
    kept = int(min(d, max(1, np.sqrt(MAX_SQUARES / n_groups))))
    U = np.eye(d)
    if kept < d:
        centred = F - F.mean(axis=0)
        U = np.linalg.eigh(centred.T @ centred)[1][:, -kept:]
    sums = GroupSums.of(F @ U, codes, groups, n_classes, weights=weights)
    model = learn(sums)
    # The error of M is not an effect of groups: replicates of M bring it.
    D = model.D - error_of_means(sums, model.mu, model.A)
    return np.asarray(U @ D @ U.T)
