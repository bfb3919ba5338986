"""Sums of labelled items, group by group: all that a model of the groups is made from.

An item has a class, as a one-hot vector e (n,), and a representation f (d,). Sums over the items of a group can be
merged, whichever items came first, and hold neither keys nor single items. Where items have weights all sums are
weighted.
"""

from dataclasses import dataclass, replace

import numpy as np

from ordinalq._utils.validation import Codes, Floats
from ordinalq.samples.weights import Weights, item_counts


@dataclass(frozen=True, eq=False)
class GroupSums:
    """Sums over the labelled items of G groups."""

    counts: Floats  # (G, n) sum e: items of each class
    cross: Floats  # (G, n, d) sum e f': sums of f by class
    squares: Floats  # (G, d, d) sum f f'
    class_squares: Floats  # (n, d, d) sum f f' by class, over all groups
    squared: Floats | None = None  # (G, n) sum w^2 e; None where that is `counts`, as without weights

    @classmethod
    def of(cls, F: Floats, codes: Codes, groups: Codes, n_classes: int, weights: Weights | None = None) -> "GroupSums":
        """Add up items with representations F (N, d), codes (N,) of classes, codes (N,) of groups, and weights."""
        F = np.asarray(F, dtype=np.float64)
        G, d = int(groups.max()) + 1, F.shape[1]
        cell = groups * n_classes + codes
        counts = item_counts(cell, G * n_classes, weights).reshape(G, n_classes)
        weighted, squared = F, None
        if weights is not None:
            weighted = F * weights.values[:, None]
            squared = item_counts(cell, G * n_classes, Weights(weights.squares)).reshape(G, n_classes)
        cross = _add_rows(weighted, cell, G * n_classes).reshape(G, n_classes, d)
        squares, class_squares = np.empty((G, d, d)), np.empty((n_classes, d, d))
        # Column by column, so that no array is larger than F.
        for j in range(d):
            product = weighted * F[:, j : j + 1]
            squares[:, j] = _add_rows(product, groups, G)
            class_squares[:, j] = _add_rows(product, codes, n_classes)
        return cls(counts, cross, squares, class_squares, squared)

    @property
    def weight(self) -> Floats:
        """Sum of the weights of each group, (G,): its number of items without."""
        return np.asarray(self.counts.sum(axis=1))

    @property
    def n_items(self) -> Floats:
        """Number of items that each group is worth, (G,)."""
        return _worth(self.counts, self.squared, axis=1)

    @property
    def class_sizes(self) -> Floats:
        """Number of items that each class is worth, (n,)."""
        return _worth(self.counts, self.squared, axis=0)

    def in_items(self) -> "GroupSums":
        """Return the sums with weights that add up, in each group, to the items that it is worth, as do their squares.

        Then sums over pairs of items are the square of a group's sum less its items' own squares, as without weights,
        where weights do not depend on what is added up.
        """
        if self.squared is None:
            return self
        scale = self.n_items / np.maximum(self.weight, np.finfo(float).tiny)
        counts, cross, squares = (
            part * scale.reshape(-1, *(1,) * (part.ndim - 1)) for part in (self.counts, self.cross, self.squares)
        )
        return replace(self, counts=counts, cross=cross, squares=squares)

    @property
    def class_means(self) -> Floats:
        """M (d, n): mean representation of each class, over the items of all groups."""
        return np.asarray((self.cross.sum(axis=0) / self.counts.sum(axis=0)[:, None]).T)

    @property
    def class_covariances(self) -> Floats:
        """Covariance of f within each class, over the items of all groups, (n, d, d)."""
        M = self.class_means
        means = self.class_squares / self.counts.sum(axis=0)[:, None, None]
        return np.asarray(means - M.T[:, :, None] * M.T[:, None, :])

    @property
    def pooled(self) -> Floats:
        """Class shares of all items, (n,)."""
        return np.asarray(self.counts.sum(axis=0) / self.counts.sum())


def _worth(total: Floats, squared: Floats | None, axis: int) -> Floats:
    """Return (sum w)^2 / sum w^2 along an axis, zero where there is nothing."""
    weight = total.sum(axis=axis)
    if squared is None:
        return np.asarray(weight)
    square = squared.sum(axis=axis)
    return np.asarray(np.divide(weight**2, square, out=np.zeros_like(weight), where=square > 0))


def _add_rows(F: Floats, codes: Codes, n_codes: int) -> Floats:
    """Return the sums of the rows of F (N, d) that have the same code, (n_codes, d)."""
    total = np.empty((n_codes, F.shape[1]))
    for j, column in enumerate(F.T):
        total[:, j] = np.bincount(codes, weights=column, minlength=n_codes)
    return total
