"""B samples over one pool of N items, kept as the rows of a sparse (B, N) matrix.

Whatever concerns an item (scores, features) is computed once for the pool; what concerns a sample is then one sparse
product, however often an item is drawn.
"""

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import sparse

from ordinalq._utils.validation import (
    Array,
    Codes,
    Counts,
    Floats,
    Mask,
    check_distributions,
    check_integer,
    check_real,
)
from ordinalq.samples.keys import Keys
from ordinalq.samples.labels import encode_labels
from ordinalq.samples.weights import Weights
from ordinalq.simplex import jaggedness

# Drawn items treated at once: what belongs to them stays in the cache, and memory does not grow with the samples.
CHUNK_ITEMS = 2**16


class OneHot:
    """Matrix F (N, k * width) of k one-hot blocks per item.

    It is stored as codes (N, k), the positions 0..width-1 of the ones.
    """

    def __init__(self, codes: Array, width: int) -> None:
        self.codes = codes
        self.width = width
        self.shape = (len(codes), codes.shape[1] * width)

    def __len__(self) -> int:
        return len(self.codes)

    def __array__(self, dtype: Any = None, copy: Any = None) -> Floats:
        """Return F itself, (N, k * width)."""
        ones: Floats = np.eye(self.width, dtype=dtype)[self.codes].reshape(self.shape)
        return ones

    def count(self, items: Array, sizes: Counts, weights: Floats | None = None) -> Array:
        """Return the sums of F over successive samples, shape (B, k * width).

        Counting is faster than adding.

        Parameters
        ----------
        items : ndarray (sum of sizes,)
            Items of all samples, one sample after the other.
        sizes : ndarray (B,)
            Sizes of the samples.
        weights : ndarray (sum of sizes,), default=None
            Weights of the drawn items.

        Returns
        -------
        sums : ndarray (B, k * width)
            Counts, or sums of weights.
        """
        B = len(sizes)
        first = np.repeat(np.arange(B) * self.width, sizes)
        blocks = [np.bincount(first + column[items], weights, B * self.width) for column in self.codes.T]
        return np.stack([block.reshape(B, self.width) for block in blocks], axis=1).reshape(B, -1)


class _Rows:
    """Successive items of B samples, with values derived from their weights.

    See :class:`Samples`.
    """

    items: npt.NDArray[np.integer[Any]]
    offsets: Counts
    n_items: int
    classes: Array | None
    prevalences: Floats | None
    keys: Keys | None
    weights: Weights | None

    def __len__(self) -> int:
        return len(self.offsets) - 1

    @property
    def sizes(self) -> Counts:
        """Number of items of each sample, (B,)."""
        return np.diff(self.offsets)

    def index(self, b: int) -> npt.NDArray[np.integer[Any]]:
        """Return the items of sample b, shape (sizes[b],).

        Parameters
        ----------
        b : int
            Position of the sample, in 0..B-1.

        Returns
        -------
        ndarray (sizes[b],)
            Positions of the items in the pool.
        """
        return self.items[self.offsets[b] : self.offsets[b + 1]]

    def weighted(self, weights: Weights | None) -> "Samples":
        """Return the samples with the weights of the pool's items.

        Items of weight zero are left out. A group is left out if all of its items have weight zero. A sample without
        groups raises ValueError in this case. Prevalences are left out, because they are valid only without weights.

        Parameters
        ----------
        weights : Weights or None
            Weights (N,) of the items of the pool. None returns the samples unchanged.

        Returns
        -------
        Samples
            Samples with the weights of their items.
        """
        assert isinstance(self, Samples)
        if weights is None:
            return self
        drawn = weights.take(self.items)
        kept = drawn.values > 0
        sizes = np.diff(np.append(0, np.cumsum(kept))[self.offsets])
        some = sizes > 0
        if not some.all() and self.keys is None:
            raise ValueError(
                f"sample_weight must be positive for some item of every sample, but sample {np.argmin(some)} has none."
            )
        return Samples(
            self.items[kept],
            np.append(0, np.cumsum(sizes[some])),
            self.n_items,
            classes=self.classes,
            keys=None if self.keys is None else self.keys if some.all() else self.keys[np.flatnonzero(some)],
            weights=drawn.take(kept),
        )

    @property
    def weight(self) -> Floats:
        """Sum of the weights of each sample, (B,): its size if there are none."""
        return self._sums(None if self.weights is None else self.weights.values)

    @property
    def squared_weight(self) -> Floats:
        """Sum of the squared weights of each sample, shape (B,).

        See :class:`ordinalq.samples.weights.Weights`.
        """
        return self._sums(None if self.weights is None else self.weights.squares)

    def _sums(self, values: Floats | None) -> Floats:
        if values is None:
            return self.sizes.astype(np.float64)
        sums = np.bincount(np.repeat(np.arange(len(self)), self.sizes), weights=values, minlength=len(self))
        return sums.astype(np.float64, copy=False)


class Samples(_Rows):
    """B samples of items 0..N-1.

    An item may be in several samples, and several times in one. Create samples with :meth:`from_index`,
    :meth:`from_groups` or :meth:`whole`, or draw them with a protocol. They need four bytes per drawn item.

    Attributes
    ----------
    items : ndarray (sum of sizes,)
        The drawn items of all samples, one sample after the other.
    offsets : ndarray (B + 1,)
        Sample b contains ``items[offsets[b]:offsets[b + 1]]``.
    n_items : int
        N, the size of the pool.
    classes : ndarray (n,) or None
        Ordered classes, if labels were given.
    prevalences : ndarray (B, n) or None
        Class distribution of each sample, if labels were given.
    keys : Keys or None
        Group of each sample, if created by :meth:`from_groups`. ``groups_`` contains them as an array.
    weights : Weights or None
        Weights of the drawn items, in the order of `items`; see :meth:`weighted`.
    """

    def __init__(
        self,
        items: npt.NDArray[np.integer[Any]],
        offsets: Counts,
        n_items: int,
        *,
        classes: Array | None = None,
        prevalences: Floats | None = None,
        keys: Keys | None = None,
        weights: Weights | None = None,
    ) -> None:
        self.items = items
        self.offsets = offsets
        self.n_items = n_items
        self.classes = classes
        self.prevalences = prevalences
        self.keys = keys
        self.weights = weights

    @classmethod
    def from_index(
        cls, index: Any, n_items: int, y: Any = None, *, classes: Any = None, prevalences: Any = None
    ) -> "Samples":
        """Create samples from the items of each one.

        Parameters
        ----------
        index : integer array (B, m) or list of B integer arrays
            Items 0..N-1 of each sample. Repeated items count repeatedly.
        n_items : int
            N.
        y : array-like (N,), default=None
            Labels of the pool, from which the prevalences follow.
        classes : array-like (n,), default=None
            Order of the labels, see :func:`ordinalq.samples.labels.encode_labels`.
        prevalences : array-like (B, n), default=None
            Known class prevalences of the samples, if the labels of the items are not known.

        Returns
        -------
        samples : Samples
            In the order of `index`.

        Examples
        --------
        >>> samples = Samples.from_index([[0, 1], [2, 2], [1, 3]], 4, y=[1, 2, 3, 3])
        >>> samples.prevalences
        array([[0.5, 0.5, 0. ],
               [0. , 0. , 1. ],
               [0. , 0.5, 0.5]])
        """
        n_items = check_integer("n_items", n_items, minimum=1)
        items, sizes = _drawn(index, n_items)
        return _labelled(items, sizes, n_items, y, classes, prevalences)

    @classmethod
    def from_groups(
        cls, groups: Any, y: Any = None, *, classes: Any = None, prevalences: Any = None, missing: bool = False
    ) -> "Samples":
        """Create one sample per distinct value of `groups`, in sorted order.

        The attribute ``groups_`` contains the values.

        Parameters
        ----------
        groups : array-like (N,) or frame (N, k)
            Group of each item. A frame of several columns gives one sample per distinct row. Ordered categories of
            pandas and polars keep their order.
        y : array-like (N,), default=None
            Labels of the items, from which the prevalences follow.
        classes : array-like (n,), default=None
            Order of the labels.
        prevalences : array-like (B, n), default=None
            Known class prevalences of the groups in the order of ``groups_``, if the labels of the items are not known.
        missing : bool, default=False
            Whether missing values form the last group. Otherwise, they raise an error.

        Returns
        -------
        samples : Samples

        Examples
        --------
        >>> Samples.from_groups(["pen", "ink", "pen"]).sizes.tolist()
        [1, 2]
        >>> Samples.from_groups(["pen", "ink", "pen"], prevalences=[[0, 1], [0.5, 0.5]]).prevalences.tolist()
        [[0.0, 1.0], [0.5, 0.5]]
        """
        keys, codes = Keys.of(groups)
        if keys.missing.any() and not missing:
            absent = keys.missing[codes]
            raise ValueError(
                f"groups must have no missing values, got {absent.sum()}, the first at item {absent.argmax()}."
            )
        # Numbers of 16 bits are sorted by radix, in a fraction of the time.
        short = codes.astype(np.uint16) if len(keys) <= np.iinfo(np.uint16).max else codes
        samples = _labelled(np.argsort(short, kind="stable"), np.bincount(codes), len(codes), y, classes, prevalences)
        samples.keys = keys
        return samples

    @classmethod
    def whole(cls, n_items: int, y: Any = None, *, classes: Any = None) -> "Samples":
        """Create a single sample that contains each of the N items once.

        Parameters
        ----------
        n_items : int
            N.
        y : array-like (N,), default=None
            Labels of the items, from which the prevalences follow.
        classes : array-like (n,), default=None
            Order of the labels.

        Returns
        -------
        samples : Samples
            One sample.
        """
        n_items = check_integer("n_items", n_items, minimum=1)
        return _labelled(np.arange(n_items), np.array([n_items]), n_items, y, classes)

    @classmethod
    def stacked(cls, parts: "Sequence[Samples]") -> "Samples":
        """Return the samples of several sets over the same pool as one set.

        The order is kept. The result has prevalences if all sets have them.

        Parameters
        ----------
        parts : list of Samples
            Sets of samples of the same pool, without weights.

        Returns
        -------
        samples : Samples
            All samples.
        """
        if len({part.n_items for part in parts}) != 1 or any(part.weights is not None for part in parts):
            raise ValueError(
                f"parts must be at least one set of samples of the same pool, without weights, got {list(parts)!r}."
            )
        sizes = np.concatenate([part.sizes for part in parts])
        known = [part.prevalences for part in parts if part.prevalences is not None]
        return cls(
            np.concatenate([part.items for part in parts]),
            np.concatenate([[0], np.cumsum(sizes, dtype=np.int64)]),
            parts[0].n_items,
            classes=parts[0].classes,
            prevalences=np.concatenate(known) if len(known) == len(parts) else None,
        )

    def __repr__(self) -> str:
        sizes = self.sizes
        size = f"{sizes[0]}" if sizes.min() == sizes.max() else f"{sizes.min()}..{sizes.max()}"
        return f"Samples({len(self)} samples of {size} items, pool of {self.n_items})"

    def __getitem__(self, key: Any) -> "Samples":
        """Return the samples selected by a mask (B,), slice, index array or integer."""
        chosen = np.atleast_1d(np.arange(len(self))[key])
        if len(chosen) == 0:
            raise ValueError(f"the selection must hold at least one of the {len(self)} samples, got none.")
        sizes = self.sizes[chosen]
        offsets = np.concatenate([[0], np.cumsum(sizes, dtype=np.int64)])
        # Positions of the chosen samples' items: a ramp within each sample plus where the sample starts.
        positions = np.arange(offsets[-1]) + np.repeat(self.offsets[:-1][chosen] - offsets[:-1], sizes)
        return Samples(
            self.items[positions],
            offsets,
            self.n_items,
            classes=self.classes,
            prevalences=None if self.prevalences is None else self.prevalences[chosen],
            keys=None if self.keys is None else self.keys[chosen],
            weights=None if self.weights is None else self.weights.take(positions),
        )

    @property
    def groups_(self) -> Array | None:
        """Group of each sample, (B,), or None."""
        return None if self.keys is None else self.keys.to_numpy()

    def chunks(self, chunk_items: int = CHUNK_ITEMS) -> Iterator[slice]:
        """Yield slices of successive samples with about `chunk_items` items each.

        Each slice has at least one sample.

        Parameters
        ----------
        chunk_items : int
            Number of items that a slice has at most, unless a single sample has more.

        Returns
        -------
        slices : iterator of slice
            Positions of samples.
        """
        start = 0
        while start < len(self):
            stop = int(np.searchsorted(self.offsets, self.offsets[start] + chunk_items, side="right")) - 1
            stop = max(stop, start + 1)
            yield slice(start, stop)
            start = stop

    def average(self, F: Any) -> Floats:
        """Return the mean embedding of each sample, shape (B, d).

        The mean is q_b = (1/N_b) sum_{x in sigma_b} f(x) (paper: eq. of the mean embedding). It is weighted if there
        are weights.

        Parameters
        ----------
        F : array, sparse array or OneHot (N, d)
            f(x) of each item of the pool.

        Returns
        -------
        ndarray (B, d)
        """
        return np.asarray(self.total(F) / (self.sizes if self.weights is None else self.weight)[:, None])

    def total(self, F: Any) -> Floats:
        """Return the (weighted) sums of f over each sample, (B, d), see :meth:`average`.

        Parameters
        ----------
        F : array, sparse array or OneHot (N, d)
            f(x) of each item of the pool.

        Returns
        -------
        totals : ndarray (B, d)
            Sums.
        """
        if not (isinstance(F, OneHot) or sparse.issparse(F)):
            F = np.ascontiguousarray(F, dtype=np.float64)
        if len(F.shape) != 2 or F.shape[0] != self.n_items:
            raise ValueError(f"F must have shape ({self.n_items}, d), one row per item, got {F.shape}.")
        Q = np.empty((len(self), F.shape[1]))
        F = sparse.csr_array(F) if sparse.issparse(F) else F
        for rows in self.chunks():
            offsets = self.offsets[rows.start : rows.stop + 1]
            items = self.items[offsets[0] : offsets[-1]]
            w = None if self.weights is None else self.weights.values[offsets[0] : offsets[-1]]
            if isinstance(F, OneHot):
                Q[rows] = F.count(items, np.diff(offsets), w)
                continue
            values = np.ones(len(items)) if w is None else w
            drawn, shape = (values, items, offsets - offsets[0]), (len(offsets) - 1, self.n_items)
            total = sparse.csr_array(drawn, shape=shape) @ F
            Q[rows] = total.toarray() if sparse.issparse(total) else total
        return Q

    def smoothest(self, fraction: float) -> "Samples":
        """Keep the samples with the smallest jaggedness.

        Their jaggedness xi_1 is at most the `fraction`-quantile of its distinct values. This is the selection of
        APP-OQ. The samples need prevalences.

        Parameters
        ----------
        fraction : float
            Fraction of the distinct values of the jaggedness, in (0, 1].

        Returns
        -------
        samples : Samples
            The kept samples.
        """
        fraction = check_real("fraction", fraction, low=0, high=1, open_low=True)
        if self.prevalences is None:
            raise ValueError("smoothest needs samples with prevalences: give y when you make them.")
        return self[smoothest_mask(self.prevalences, fraction)]


def class_means(
    F: Any,
    codes: Codes,
    chosen: Mask | None = None,
    weights: Weights | None = None,
) -> Floats:
    """Return M (d, n), the mean of F (N, d) over the items of each class.

    With `chosen`, only the chosen items are used. A class is treated as a sample.

    Parameters
    ----------
    F : array or sparse array (N, d)
        f(x) of each item.
    codes : ndarray (N,)
        Classes 0..n-1 of the items.
    chosen : ndarray (N,), default=None
        Mask of the items to use; None uses all.
    weights : Weights, default=None
        Weights of the items.

    Returns
    -------
    M : ndarray (d, n)
        Means.
    """
    items = np.arange(len(codes)) if chosen is None else np.flatnonzero(chosen)
    members = [items[codes[items] == c] for c in range(codes.max() + 1)]
    return Samples.from_index(members, len(codes)).weighted(weights).average(F).T


def smoothest_mask(P: Floats, fraction: float) -> Mask:
    """Return the mask (B,) of the rows of P (B, n) with the smallest jaggedness.

    These rows have xi_1 <= the `fraction`-quantile of the distinct xi_1 values.

    Parameters
    ----------
    P : ndarray (B, n)
        Distributions.
    fraction : float
        Fraction of the distinct values of the jaggedness.

    Returns
    -------
    mask : ndarray (B,)
        True for the smoothest rows.
    """
    # Equal jaggedness may differ in the last bits (a vector and its mirror image): 12 digits make it distinct.
    xi = np.round(jaggedness(P), 12)
    return np.asarray(xi <= np.quantile(np.unique(xi), fraction))


def _labelled(items: Array, sizes: Array, n_items: int, y: Any, classes: Any, prevalences: Any = None) -> Samples:
    """Return samples of items, given one sample after the other.

    With labels, the prevalences are computed.
    """
    if y is not None and prevalences is not None:
        raise ValueError("y and prevalences must not both be given. Pass y alone: the prevalences follow from it.")
    offsets = np.concatenate([[0], np.cumsum(sizes, dtype=np.int64)])
    dtype = np.int32 if n_items <= np.iinfo(np.int32).max else np.int64
    samples = Samples(items.astype(dtype, copy=False), offsets, n_items)
    if y is not None:
        samples.classes, codes = encode_labels(y, classes)
        if len(codes) != n_items:
            raise ValueError(f"y must have one label per item of the pool, {n_items}, got {len(codes)}.")
        samples.prevalences = samples.average(np.eye(len(samples.classes))[codes])
    elif prevalences is not None:
        samples.prevalences = np.atleast_2d(check_distributions("prevalences", prevalences))
        samples.classes = None if classes is None else np.asarray(classes)
        shape = (len(samples), samples.prevalences.shape[1] if samples.classes is None else len(samples.classes))
        if samples.prevalences.shape != shape:
            raise ValueError(
                f"prevalences must have one row per sample and one column per class, {shape}, got shape "
                f"{samples.prevalences.shape}."
            )
    return samples


def _drawn(index: Any, n_items: int) -> tuple[Array, Counts]:
    """Return the items of all samples, concatenated, and the sample sizes (B,)."""
    rows = _rows(index)
    sizes = np.array([len(row) for row in rows], dtype=np.int64)
    if len(rows) == 0:
        raise ValueError("index must hold at least one sample, got none.")
    if not sizes.all():
        raise ValueError(f"index must hold no empty sample, but sample {np.argmin(sizes)} is empty.")
    items = rows.ravel() if isinstance(rows, np.ndarray) else np.concatenate(rows)
    outside = (items < 0) | (items >= n_items)
    if outside.any():
        at = int(np.argmax(outside))
        row = int(np.searchsorted(np.cumsum(sizes), at, side="right"))
        raise ValueError(f"index must lie in 0..{n_items - 1} for n_items={n_items}, got {items[at]} in sample {row}.")
    return items, sizes


def _rows(index: Any) -> Any:
    """Return `index` as an integer matrix or as a list of integer vectors."""
    if isinstance(index, Samples):
        raise TypeError("index must be an integer array, got Samples, which need no conversion.")
    index = index.to_numpy() if hasattr(index, "to_numpy") else index
    if isinstance(index, np.ndarray) and index.ndim == 2:
        rows: Any = index
        parts = [index]
    else:
        try:
            parts = [np.asarray(row) for row in index]
        except TypeError as error:
            raise TypeError(f"index must be an integer array (B, m) or a list of them, got {index!r}.") from error
        rows = parts
    for b, part in enumerate(parts):
        if part.ndim != 1 and rows is parts:
            raise ValueError(
                f"index must be one list of items per sample ([items] for a single one; see from_groups for groups), "
                f"but sample {b} has shape {part.shape}."
            )
        if part.size and part.dtype.kind not in "iu":
            raise TypeError(f"index must hold integers, got {part.dtype} in sample {b}.")
    return rows


def as_samples(samples: Any, n_items: int) -> Samples:
    """Return samples of a pool, given as such or as an integer array (B, m).

    Parameters
    ----------
    samples : Samples or integer array (B, m)
        Samples, or the items of each.
    n_items : int
        N, the size of the pool.

    Returns
    -------
    samples : Samples
        Checked samples.
    """
    if not isinstance(samples, Samples):
        try:
            samples = Samples.from_index(samples, n_items)
        except (TypeError, ValueError) as error:
            raise type(error)(f"samples must be Samples or an integer array (B, m): {error}") from error
    if samples.n_items != n_items:
        raise ValueError(f"samples must be drawn from the {n_items} given items, got a pool of {samples.n_items}.")
    checked: Samples = samples
    return checked
