r"""Class means and covariances of the score function f(x) = r(x) / (r(x).p0), from labelled items.

r(x) are density ratios: r_i(x) / r_j(x) is the density of x in class i over that in class j, as far as a classifier
knows. f is the gradient of the log-likelihood ln r(x).p at p0, the instrument, so that its mean holds what the items
tell of p near p0. Whether or not the ratios are right, the mean of f over items with shares p has the expectation M p,
with its true class means M. These are measured:

    M_i = lambda_i (mean of f over the items of class i) + (1 - lambda_i) (mean of f under the model),

the latter over all items with weights omega_i(x) ~ r_i(x) / (r(x).p_train). With x2 the squared distance of the two in
units of the error of the first, lambda_i = x2 / (x2 + n - 1): a rare class borrows its column from the model as far as
its items allow. f.p0 = 1 for all items, so all covariances of f have p0 in their kernel, and M'p0 = 1.
"""

import numpy as np

from ordinalq._utils.validation import Codes, Floats
from ordinalq.samples.weights import Weights, class_shares, item_counts, worth

# Labelled items that class means are made of at most; of larger classes every second item, or third, ... is taken.
MOST_ITEMS = 2**15
# Numbers in an array over items and samples, 4 megabytes.
NUMBERS = 2**19
# Part of the mean variance that is added to each, where covariances are inverted.
COVARIANCE_RIDGE = 1e-6
# Variance that rounding errors make of an f that does not vary.
NOISE = 1e-12


class LabelledRatios:
    """Density ratios R (N, n) of labelled items, and their weights W (N, n) in the class means, M = F'W.

    `counts` (n,) are the items of each class, or what they are worth where they have weights, and `trust` (n,), lambda,
    says how far its mean is its own.
    """

    def __init__(self, R: Floats, codes: Codes, weights: Weights | None = None) -> None:
        n = R.shape[1]
        total = item_counts(codes, n, weights)
        kept = thinned(codes, MOST_ITEMS)
        self.R, codes, weights = R[kept], codes[kept], None if weights is None else weights.take(kept)
        self.counts = worth(codes, n, weights)
        share = class_shares(codes, n, weights)
        # The model sees the items as they were before thinning.
        model = self.R * (total[codes] * share / (self.R @ (total / total.sum())))[:, None]
        model /= model.sum(axis=0)
        own = np.zeros_like(model)
        own[np.arange(len(codes)), codes] = share
        self.W = model
        M, C = self.at(np.full(n, 1 / n))
        F = self.R / self.R.mean(axis=1, keepdims=True)
        apart = (F.T @ own - M).T
        C += (COVARIANCE_RIDGE * np.trace(C, axis1=1, axis2=2)[:, None, None] / n + NOISE) * np.eye(n)
        x2 = self.counts * (apart * np.linalg.solve(C, apart[:, :, None])[:, :, 0]).sum(axis=1)
        self.trust = x2 / (x2 + n - 1)
        self.W = model + self.trust * (own - model)

    def at(self, p0: Floats) -> tuple[Floats, Floats]:
        """Return M (n, n) and the covariances C (n, n, n) within the classes for one instrument p0 (n,)."""
        F = self.R / (self.R @ p0)[:, None]
        M = F.T @ self.W
        C = np.array([(F.T * w) @ F for w in self.W.T])
        return M, C - M.T[:, :, None] * M.T[:, None, :]

    def at_each(self, P0: Floats, shares: Floats) -> tuple[Floats, Floats]:
        """Return M (B, n, n) and sum_i a_i C_i (B, n, n) for instruments P0 (B, n) and their shares a (B, n)."""
        B, n = P0.shape
        upper = np.triu_indices(n)
        first, second = np.zeros((n * n, B)), np.zeros((len(upper[0]), B))
        step = max(1, NUMBERS // n**2)
        for start in range(0, len(self.R), step):
            R, W = self.R[start : start + step], self.W[start : start + step]
            inverse = 1 / (R @ P0.T)
            first += (R[:, :, None] * W[:, None, :]).reshape(len(R), -1).T @ inverse
            second += (R[:, upper[0]] * R[:, upper[1]]).T @ (inverse**2 * (W @ shares.T))
        M = first.T.reshape(B, n, n)
        S = np.empty((B, n, n))
        S[:, upper[0], upper[1]] = S[:, upper[1], upper[0]] = second.T
        return M, S - np.matmul(M * shares[:, None, :], M.transpose(0, 2, 1))


def error_shares(P: Floats, sizes: Floats, counts: Floats, trust: Floats) -> Floats:
    """Return a_i = p_i / N + p_i^2 lambda_i / n_i, (B, n).

    q - M p has the covariance sum_i a_i C_i: the scatter of N items (B,) within their classes, with shares P (B, n),
    and the error of M. This also says which f tells most about p, for any f has this covariance with its own C_i. In
    the mixture of the classes with densities phi_i and shares a_i / sum a, f has the covariance M_i - mean f with the
    ratio of phi_i to the density of the mixture. So no function shows more of the differences between classes beside
    its variance there than these ratios do (Cauchy and Schwarz). That variance is sum_i a_i C_i / sum a plus the
    scatter of the M_i, which adds the same to the error of p whatever f is: the best instrument is p0 = a / sum a.
    """
    return np.asarray(P / sizes[:, None] + P**2 * trust / counts)


def thinned(codes: Codes, most: int) -> Codes:
    """Return at most that many items, evenly spread, with equal numbers from all classes that have enough.

    >>> thinned(np.array([0, 1, 0, 1, 0, 0, 0]), 5).tolist()
    [0, 1, 3, 4, 6]
    """
    counts = np.bincount(codes)
    if counts.sum() <= most:
        return np.arange(len(codes))
    # The largest classes share what the others leave.
    ordered = np.sort(counts)
    left = most - np.r_[0, np.cumsum(ordered)[:-1]]
    cap = int(np.max(left // np.arange(len(counts), 0, -1)))
    chosen = []
    for c, count in enumerate(counts):
        items = np.flatnonzero(codes == c)
        chosen.append(items[np.linspace(0, count - 1, min(cap, count)).round().astype(np.intp)] if count else items)
    return np.sort(np.concatenate(chosen))
