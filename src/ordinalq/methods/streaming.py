"""Estimates per group of more items than memory holds: scores come in portions, what is needed of them is kept."""

from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.utils.validation import check_is_fitted

from ordinalq.methods.groups import check_columns, group_name, grouped, ordered_categories, rank_order, table
from ordinalq.methods.intervals import Means, Scored, estimated, intervals, plan
from ordinalq.samples import Samples
from ordinalq.validation import Floats


class GroupTotals:
    """What a fitted quantifier needs of each group of items, added up portion by portion.

    Most methods see only the mean representation of a group: its sum and the number of items are kept, d + 1 numbers
    per group. SLD and OSLD need the scores of every item: these are kept in single precision, 4 n + 4 bytes per item,
    which moves estimates by about 1e-6. `table` gives what `predict_groups_scores` gives for all items at once.

    Parameters
    ----------
    quantifier : Quantifier
        Fitted.

    Examples
    --------
    >>> import ordinalq as oq
    >>> S = np.array([[0.7, 0.2, 0.1], [0.2, 0.6, 0.2], [0.1, 0.2, 0.7]])
    >>> totals = GroupTotals(oq.PACC().fit_scores(S, [1, 2, 3]))
    >>> totals.add(S[:2], ["pen", "ink"])
    >>> totals.add(S[2:], ["pen"])
    >>> totals.table()[["group", "n_items", "mean_class"]]
      group  n_items  mean_class
    0   ink        1         2.0
    1   pen        2         2.0
    """

    def __init__(self, quantifier: Any) -> None:
        check_is_fitted(quantifier, "p_train_")
        self.quantifier = quantifier
        self._values: npt.NDArray[Any] | None = None
        self._name: str | None = None
        self._categories: Any = None
        self._sizes = np.zeros(0, dtype=np.int64)
        self._sums = np.zeros((0, 0))
        self._scores: list[npt.NDArray[np.float32]] = []
        self._codes: list[npt.NDArray[np.int32]] = []

    def __len__(self) -> int:
        """Return the number of groups so far."""
        return len(self._sizes)

    @property
    def n_items(self) -> int:
        """Number of items so far."""
        return int(self._sizes.sum())

    def add(self, S: Any, groups: Any) -> None:
        """Add items with scores S (N, n), as `scores` of the quantifier gives them, and their groups (N,)."""
        S = self.quantifier._check_scores(S)
        samples = grouped(groups, len(S))
        assert samples.groups_ is not None
        rows, known = self._merge(samples.groups_, ordered_categories(groups))
        self._name = group_name(groups) if self._name is None else self._name
        sizes = np.zeros(len(self._values), dtype=np.int64)  # type: ignore[arg-type]
        sizes[known] = self._sizes
        sizes[rows] += samples.sizes
        self._sizes = sizes
        if self.quantifier._on_means:
            new = samples.average(self.quantifier._embed(S)) * samples.sizes[:, None]
            sums = np.zeros((len(sizes), new.shape[1]))
            if len(known):
                sums[known] = self._sums
            sums[rows] += new
            self._sums = sums
            return
        for codes in self._codes:
            np.take(known.astype(np.int32), codes, out=codes)
        code = np.empty(len(S), dtype=np.int32)
        code[samples.items] = np.repeat(rows, samples.sizes)
        self._scores.append(S.astype(np.float32))
        self._codes.append(code)

    def _merge(self, new: npt.NDArray[Any], categories: Any) -> tuple[npt.NDArray[np.intp], npt.NDArray[np.intp]]:
        """Take in groups; return the rows of the new portion's groups, and of those known before."""
        if self._values is None:
            self._values, self._categories = new, categories
            return np.arange(len(new)), np.arange(0)
        old = self._values
        if (categories is None) != (self._categories is None) or (
            categories is not None and not categories.equals(self._categories)
        ):
            raise TypeError("groups must have the same ordered categories in all portions, or none.")
        text = "UOST"
        if (old.dtype.kind in text) != (new.dtype.kind in text) and "O" not in (old.dtype.kind, new.dtype.kind):
            raise TypeError(f"groups must be of one kind in all portions, got {new.dtype} after {old.dtype}.")
        try:
            values, rows = np.unique(np.concatenate([old, new]), return_inverse=True)
        except TypeError as error:
            raise TypeError("groups must be of one kind in all portions; make them strings.") from error
        order = rank_order(values, categories)
        rank = np.empty(len(order), dtype=np.intp)
        rank[order] = np.arange(len(order))
        self._values, rows = values[order], rank[rows]
        return rows[len(old) :], rows[: len(old)]

    def table(self, level: Any = None, target: str = "sample", n_replicates: int = 200, random_state: Any = 0) -> Any:
        """Return one row per group, see `predict_groups`.

        Parameters
        ----------
        level : float, default=None
            Of intervals; None gives none.
        target : {"sample", "population"}, default="sample"
            See `predict_interval`.
        n_replicates : int, default=200
            Of the bootstrap.
        random_state : int or Generator, default=0
            Of the bootstrap.

        Returns
        -------
        pandas.DataFrame
        """
        if self._values is None:
            raise ValueError("table needs items: call add first.")
        chosen = plan(0.95 if level is None else level, target, n_replicates, random_state)
        name = self._name or "group"
        classes = self.quantifier.classes_
        check_columns(classes, name, level is not None)
        seen = self._seen()
        P = estimated(self.quantifier, seen)
        found = None if level is None else intervals(self.quantifier, seen, P, chosen, self._values, name)
        return table(P, self._sizes, classes, self._values, name, found)

    def _seen(self) -> Means | Scored:
        if self.quantifier._on_means:
            return Means(self._sums / self._sizes[:, None], self._sizes)
        S: Floats = np.concatenate(self._scores).astype(np.float64)
        S /= S.sum(axis=1, keepdims=True)
        codes = np.concatenate(self._codes)
        items = np.argsort(codes, kind="stable")
        return Scored(S, Samples(items, np.append(0, np.cumsum(self._sizes)), len(S)))
