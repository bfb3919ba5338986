"""Sums of labelled items, group by group: all that a model of the groups is made from.

An item has a class, as a one-hot vector e (n,), and a representation f (d,). Sums over the items of a group can be
merged, whichever items came first, and hold neither keys nor single items.
"""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from ordinalq.validation import Floats

Codes = npt.NDArray[np.intp]


@dataclass(frozen=True, eq=False)
class GroupSums:
    """Sums over the labelled items of G groups.

    Attributes
    ----------
    counts : ndarray (G, n)
        sum e: items of each class.
    cross : ndarray (G, n, d)
        sum e f': sums of f by class.
    squares : ndarray (G, d, d)
        sum f f'.
    class_squares : ndarray (n, d, d)
        sum f f' by class, over all groups.
    """

    counts: Floats
    cross: Floats
    squares: Floats
    class_squares: Floats

    @classmethod
    def of(cls, F: Floats, codes: Codes, groups: Codes, n_classes: int, n_groups: int | None = None) -> "GroupSums":
        """Add up items with representations F (N, d), codes (N,) of classes and codes (N,) of groups."""
        F = np.asarray(F, dtype=np.float64)
        G = int(groups.max()) + 1 if n_groups is None else n_groups
        d = F.shape[1]
        cell = groups * n_classes + codes
        counts = np.bincount(cell, minlength=G * n_classes).reshape(G, n_classes).astype(np.float64)
        cross = _add_rows(F, cell, G * n_classes).reshape(G, n_classes, d)
        squares, class_squares = np.empty((G, d, d)), np.empty((n_classes, d, d))
        # Column by column, so that no array is larger than F.
        for j in range(d):
            product = F * F[:, j : j + 1]
            squares[:, j] = _add_rows(product, groups, G)
            class_squares[:, j] = _add_rows(product, codes, n_classes)
        return cls(counts, cross, squares, class_squares)

    @property
    def n_items(self) -> Floats:
        """Number of items of each group, (G,)."""
        return np.asarray(self.counts.sum(axis=1))

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

    def merge(self, other: "GroupSums", rows: Codes) -> "GroupSums":
        """Add the groups of `other`; its group g goes to the row rows[g], a new one if beyond those at hand."""
        G = max(len(self.counts), int(rows.max()) + 1)
        parts: dict[str, Floats] = {}
        for name in ("counts", "cross", "squares"):
            mine, theirs = getattr(self, name), getattr(other, name)
            total = np.zeros((G, *mine.shape[1:]))
            total[: len(mine)] = mine
            np.add.at(total, rows, theirs)
            parts[name] = total
        return GroupSums(**parts, class_squares=self.class_squares + other.class_squares)


def _add_rows(F: Floats, codes: Codes, n_codes: int) -> Floats:
    """Return the sums of the rows of F (N, d) that have the same code, (n_codes, d)."""
    total = np.empty((n_codes, F.shape[1]))
    for j, column in enumerate(F.T):
        total[:, j] = np.bincount(codes, weights=column, minlength=n_codes)
    return total
