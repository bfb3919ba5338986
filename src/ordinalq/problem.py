"""The data of B problems q = M p: what losses, objectives and EM share."""

from dataclasses import dataclass, replace

import numpy as np

from ordinalq._utils.validation import Floats, Index

# Products of two entries of M that are made at once for a batch, 16 megabytes; beyond, each sample has its own product.
MAX_PAIRS = 2**21
# Rows of a batch that are multiplied at once, see `row_product`.
BLOCK = 16
# How much more than the others a histogram counts in `Data.emphases`, and how many emphases there are at most.
EMPHASIS = 100.0
MOST_EMPHASES = 12


def row_product(X: Floats, M: Floats) -> Floats:
    """Return X M for X (B, k) and M (k, m), each row of it the same whatever the other rows are, and however many.

    A product of matrices adds in another order where their shapes differ. On problems with flat directions such last
    digits grow to visible ones; blocks of equal shape keep a sample's estimate the same in any batch.
    """
    B, k = X.shape
    n_blocks = -(-B // BLOCK)
    padded = X
    if n_blocks * BLOCK != B:
        padded = np.zeros((n_blocks * BLOCK, k))
        padded[:B] = X
    return np.asarray(np.matmul(padded.reshape(n_blocks, BLOCK, k), M).reshape(n_blocks * BLOCK, M.shape[1])[:B])


def weighted_gram(W: Floats, M: Floats) -> Floats:
    """Return M' diag(w) M for each row w of W (B, d), shape (B, n, n), as one matrix product where M is small."""
    d, n = M.shape
    if d * n * n <= MAX_PAIRS:
        pairs = (M[:, :, None] * M[:, None, :]).reshape(d, n * n)
        return row_product(W, pairs).reshape(len(W), n, n)
    return np.array([(M.T * w) @ M for w in W]).reshape(len(W), n, n)


def reference_column(M: Floats) -> Floats:
    """Return the shortest column (d,) of M (d, n)."""
    return np.asarray(M[:, np.abs(M).sum(axis=0).argmin()])


@dataclass(frozen=True)
class Data:
    """Mean embeddings of B samples and of n classes.

    A `background` o (B, d) belongs to no class and is known: q is compared with M p + o instead of M p. Q and o are in
    units of the signal, a row of Q sums to 1 + sum(o).
    """

    Q: Floats  # (B, d) mean embedding of each sample
    M: Floats  # (d, n) mean embedding of each class
    sizes: Floats  # (B,) number of items of each sample
    n_blocks: int = 1  # number of histograms that the d rows consist of, all of the same length
    background: Floats | None = None
    directions: Floats | None = None  # (d, n) M less one of its columns, see `along_simplex`

    def __len__(self) -> int:
        return len(self.Q)

    @property
    def n_classes(self) -> int:
        """The number of classes."""
        return int(self.M.shape[1])

    @property
    def signal(self) -> Floats:
        """What the classes have to explain, q - o (B, d)."""
        return self.Q if self.background is None else self.Q - self.background

    @property
    def columns(self) -> Floats:
        """What the derivatives of a loss are made of: M, or the directions in its place."""
        return self.M if self.directions is None else self.directions

    def along_simplex(self) -> "Data":
        """Return the data with derivatives that hold along the simplex only, but are more accurate.

        Where p keeps its sum, M p changes by D dp with D = M - m 1' for any m, here the shortest column: it is not
        dwarfed by a long one, and where all columns are nearly equal, their differences keep all digits.
        """
        return replace(self, directions=self.M - reference_column(self.M)[:, None])

    def expected(self, P: Floats) -> Floats:
        """Return M p + o, (B, d), for P (B, n)."""
        V = row_product(P, self.M.T)
        return V if self.background is None else V + self.background

    def take(self, rows: Index) -> "Data":
        """Return the data of some samples; M is shared."""
        background = None if self.background is None else self.background[rows]
        return Data(self.Q[rows], self.M, self.sizes[rows], self.n_blocks, background, self.directions)

    def without_empty_rows(self) -> "Data":
        """Return the data without the rows of q, M and o in which M is zero for all classes."""
        kept = self.M.any(axis=1)
        if kept.all():
            return self
        background = None if self.background is None else self.background[:, kept]
        return replace(self, Q=self.Q[:, kept], M=self.M[kept], background=background, directions=None)

    def cumulated(self) -> "Data":
        """Return the cumulative sums over the rows of q, M and o, without the last one, which is known beforehand."""
        Q, M = np.cumsum(self.Q, axis=1)[:, :-1], np.cumsum(self.M, axis=0)[:-1]
        background = None if self.background is None else np.cumsum(self.background, axis=1)[:, :-1]
        return replace(self, Q=Q, M=M, background=background, directions=None)

    def emphases(self) -> "list[Data]":
        """Return the data with one histogram after the other counted more; none if there is only one.

        The optima of such data are good starts where a sum of distances between histograms has several minima, most of
        which fit some of them exactly. w ||sqrt(q) - sqrt(v)||^2 is the squared distance of w q and w v; the weights w
        have mean one.
        """
        k, o = self.n_blocks, self.background
        weights = np.repeat(1 + (EMPHASIS - 1) * np.eye(k), len(self.M) // k, axis=1)
        weights /= weights.mean(axis=1, keepdims=True)
        chosen = np.linspace(0, k - 1, min(k, MOST_EMPHASES) if k > 1 else 0).astype(np.intp)
        return [
            replace(self, Q=w * self.Q, M=w[:, None] * self.M, background=None if o is None else w * o, directions=None)
            for w in weights[chosen]
        ]
