r"""The fit test of many samples at once, from sums alone and in closed form.

If a sample is a mixture p of the known classes, the mean q of functions g has expectation M p. Contrasts L with
L'(M_i - M_j) = 0 for all classes have the same expectation c in every mixture, so

    z = L'q - c,    E z = 0,    Cov z = sum_i (p_i / N + p_i^2 / n_i + t p_i) L'V_i L + (1 - 1/N) L'D L,

with V_i the covariance of g within class i, n_i the held-out items behind M_i, and D how groups differ, where the model
knows that. z'(Cov z)^-1 z is what generalized least squares would leave over of q after the best p, without looking
for that p. For the covariance alone a rough p is enough: that of ordinary least squares where classes have their mean
covariance, with negative shares cut off. So the verdict belongs to the scores, whatever method goes on with them. Under
the assumption it has mean k, the number of contrasts,
and variance 2 k + kurtosis / N, and is taken for a multiple of a chi-square variable with these.

t is what scores of new items differ from held-out ones by: other models have made them.

What the test cannot see: a change of the items along the columns of M moves q as another p would, and leaves nothing
over.
"""

from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from scipy.special import chdtrc

from ordinalq._utils.validation import Floats
from ordinalq.inference.bootstrap import composition
from ordinalq.inference.functions import checked
from ordinalq.inference.mixture import class_moments
from ordinalq.inference.model import FittedQuantifier
from ordinalq.samples.summary import Summary
from ordinalq.samples.weights import class_shares
from ordinalq.simplex import clean

GOOD, DOUBTFUL, BAD, UNTESTED = "good", "doubtful", "bad", "too few items"
# Levels of the test below which a fit is doubtful, and bad.
DOUBTFUL_LEVEL, BAD_LEVEL = 0.05, 0.001
# Variance of the difference between held-out and new scores, in units of that of an item.
TOLERANCE = 5e-4
# Smaller samples are not tested.
MIN_ITEMS = 10
# Rows that are worked on at once.
CHUNK = 2048


class FitTest(NamedTuple):
    """What the test needs of the held-out items."""

    name: str  # of the sums in a summary
    L: Floats  # (d0, k) contrasts
    c: Floats  # (k,) their expectation
    R: Floats  # (d0, n) a rough estimate, p = R'q + r
    r: Floats  # (n,)
    V: Floats  # (n, k, k) covariances of the contrasts within each class
    counts: Floats  # (n,) held-out items of each class
    D: Floats  # (k, k) covariance between groups
    kurtosis: float  # E (x' V^-1 x)^2 - k^2 - 2 k of single items, zero where they are normal

    @classmethod
    def of(cls, quantifier: FittedQuantifier) -> "FitTest | None":
        """Return the test of a quantifier; None where it has no more functions than classes."""
        if not hasattr(quantifier, "held_out_"):
            return None
        known, n = checked(quantifier), len(quantifier.classes_)
        k = known.g.shape[1] - n + 1
        if k < 1:
            return None
        moments = class_moments(known.g, known.codes, n, known.weights)
        # In coordinates in which the mean covariance of the classes is the identity.
        size, axes = np.linalg.eigh(moments.V.mean(axis=0))
        white = axes / np.sqrt(np.maximum(size, 1e-12 * size[-1]))
        M = white.T @ moments.M
        # Columns of Z span the directions in which shares sum to zero.
        Z = np.linalg.svd(np.ones((1, n)))[2][1:].T
        L = white @ np.linalg.svd(M @ Z)[0][:, n - 1 :]
        R = white @ np.linalg.pinv(M @ Z).T @ Z.T
        even = np.full(n, 1 / n)
        x = (known.g - moments.M.T[known.codes]) @ L
        share = class_shares(known.codes, n, known.weights)
        fourth = np.bincount(known.codes, weights=share * (x * x).sum(axis=1) ** 2, minlength=n)
        return cls(
            name=known.name,
            L=known.axes @ L,
            c=known.centre @ known.axes @ L + moments.M[:, 0] @ L,
            R=known.axes @ R,
            r=even - (known.centre @ known.axes + moments.M @ even) @ R,
            V=L.T @ moments.V @ L,
            counts=moments.counts,
            D=np.zeros((k, k)) if known.D is None else L.T @ known.D @ L,
            kurtosis=max(float(fourth.mean()) - k * k - 2 * k, 0.0),
        )

    def p_values(self, summary: Summary) -> Floats:
        """Return the p-value of each sample, (B,)."""
        q, N = summary.mean(self.name), summary.sizes
        P, Z = composition(clean(q @ self.R + self.r), N), q @ self.L - self.c
        chi2, k = np.empty(len(Z)), Z.shape[1]
        V = self.V.reshape(len(self.V), -1)
        for start in range(0, len(Z), CHUNK):
            rows = slice(start, start + CHUNK)
            p, z, inverse = P[rows], Z[rows], 1 / N[rows, None]
            C = ((p * inverse + p**2 / self.counts + TOLERANCE * p) @ V).reshape(-1, k, k)
            C += self.D * (1 - inverse[:, :, None])
            chi2[rows] = (z * np.linalg.solve(C, z[:, :, None])[:, :, 0]).sum(axis=1)
        variance = 2 * k + self.kurtosis / N
        return np.asarray(chdtrc(2 * k * k / variance, chi2 * 2 * k / variance))


def verdicts(quantifier: FittedQuantifier, summary: Summary) -> npt.NDArray[np.str_] | None:
    """Return for each sample whether it looks like a mixture of the known classes; None where that cannot be tested."""
    test = quantifier.once(FitTest.of)
    if test is None or test.name not in summary.totals:
        return None
    p = test.p_values(summary)
    found = np.where(p < BAD_LEVEL, BAD, np.where(p < DOUBTFUL_LEVEL, DOUBTFUL, GOOD))
    return np.where(summary.sizes < MIN_ITEMS, UNTESTED, found)
