"""Estimates per group as a table, with or without intervals."""

from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from ordinalq.methods.intervals import Intervals, estimated, intervals, plan, see
from ordinalq.samples import Samples
from ordinalq.validation import Floats

if TYPE_CHECKING:
    import pandas as pd


def group_table(
    quantifier: Any,
    S: Any,
    groups: Any,
    *,
    level: Any,
    target: Any,
    n_replicates: Any,
    random_state: Any,
    polars: bool,
) -> Any:
    """Return one row per group of the items with scores S (N, n), see `Quantifier.predict_groups_scores`."""
    chosen = plan(0.95 if level is None else level, target, n_replicates, random_state)
    name = group_name(groups)
    S = quantifier._check_scores(S)
    samples = grouped(groups, len(S))
    check_columns(quantifier.classes_, name, level is not None)
    seen = see(quantifier, S, samples)
    P = estimated(quantifier, seen)
    found = None if level is None else intervals(quantifier, seen, P, chosen, samples.groups_, name)
    frame = table(P, samples.sizes, quantifier.classes_, samples.groups_, name, found)
    return as_polars(frame, {name: samples.groups_}) if polars or is_polars(groups) else frame


def interval_batch(
    quantifier: Any, S: Any, level: Any, groups: Any, *, target: Any, n_replicates: Any, random_state: Any
) -> Intervals:
    """Return the intervals of the whole of S (N, n), of its groups or of samples of it."""
    chosen = plan(level, target, n_replicates, random_state)
    S = quantifier._check_scores(S)
    if isinstance(groups, Samples):
        samples = groups
        if samples.n_items != len(S):
            raise ValueError(f"groups must be samples of the {len(S)} given items, got a pool of {samples.n_items}.")
    else:
        samples = Samples.whole(len(S)) if groups is None else grouped(groups, len(S))
    seen = see(quantifier, S, samples)
    P = estimated(quantifier, seen)
    return intervals(quantifier, seen, P, chosen, samples.groups_, group_name(groups))


def grouped(groups: Any, n_items: int) -> Samples:
    """Return one sample per distinct value of `groups`, one value for each of the items.

    They are sorted; ordered categories of pandas are in their own order.
    """
    if groups is None or isinstance(groups, str | Samples):
        raise TypeError(f"groups must be one value per item, got {groups!r:.60}; give the column itself, not its name.")
    array = np.asarray(groups)
    if array.ndim == 1 and len(array) != n_items:
        raise ValueError(f"groups must have one value per item, {n_items}, got {len(array)}.")
    categories = ordered_categories(groups)
    if array.ndim != 1 or (array.dtype.kind not in "iuUO" and categories is None):
        return Samples.from_groups(array)
    return _by_hash(array, categories) or Samples.from_groups(array)


def ordered_categories(groups: Any) -> "pd.Index[Any] | None":
    """Return the categories of a categorical column of pandas whose order means something, else None."""
    dtype: Any = getattr(groups, "dtype", None)
    return dtype.categories if getattr(dtype, "name", None) == "category" and getattr(dtype, "ordered", False) else None


def rank_order(values: Any, categories: "pd.Index[Any] | None") -> npt.NDArray[np.intp]:
    """Return the positions that sort distinct values, by themselves or in the order of their categories."""
    keys = values if categories is None else categories.get_indexer(values)
    return np.asarray(np.argsort(keys, kind="stable"))


def _by_hash(array: npt.NDArray[Any], categories: "pd.Index[Any] | None") -> Samples | None:
    """Return what `Samples.from_groups` returns, sorting only distinct values; None where that would be an error."""
    import pandas as pd

    codes, values = pd.factorize(array)
    try:
        order = rank_order(values, categories)
    except TypeError:  # values that cannot be sorted
        return None
    if (codes < 0).any():  # missing values
        return None
    rank = np.empty(len(order), dtype=np.intp)
    rank[order] = np.arange(len(order))
    codes = rank[codes]
    offsets = np.append(0, np.cumsum(np.bincount(codes)))
    items: npt.NDArray[Any] = np.argsort(codes, kind="stable").astype(np.int32 if len(array) < 2**31 else np.int64)
    return Samples(items, offsets, len(array), groups=np.asarray(values, dtype=array.dtype)[order])


def group_name(groups: Any) -> str:
    """Return the name of a named series, else "group"."""
    name = getattr(groups, "name", None)
    return str(name) if name is not None and str(name) else "group"


def check_columns(classes: npt.NDArray[Any], name: str, bounds: bool) -> None:
    """Raise a clear error where two columns of the table would have the same name."""
    columns = ["n_items", "mean_class", *(str(label) for label in classes)]
    if bounds:
        columns += [f"{column}_{end}" for column in columns[1:] for end in ("lower", "upper")]
    if len(set(columns)) < len(columns):
        twice = next(column for column in columns if columns.count(column) > 1)
        raise ValueError(f"the names of the classes must not be those of other columns, but {twice!r} occurs twice.")
    if name in columns:
        raise ValueError(f"groups must not be named {name!r}, as another column of the table is: rename it.")


def table(
    P: Floats,
    n_items: npt.NDArray[np.int64],
    classes: npt.NDArray[Any],
    groups: npt.NDArray[Any] | None,
    name: str,
    bounds: Intervals | None,
) -> "pd.DataFrame":
    """Return group, n_items, the prevalence of each class by its name, mean_class and, if given, the bounds."""
    import pandas as pd

    columns: dict[str, Any] = {} if groups is None else {name: groups}
    columns["n_items"] = n_items
    labels = [str(label) for label in classes]
    columns |= dict(zip(labels, P.T, strict=True))
    columns["mean_class"] = P @ np.arange(1.0, len(labels) + 1)
    if bounds is not None:
        for i, label in enumerate(labels):
            columns |= {f"{label}_lower": bounds.lower[:, i], f"{label}_upper": bounds.upper[:, i]}
        columns |= {"mean_class_lower": bounds.mean_lower, "mean_class_upper": bounds.mean_upper}
    return pd.DataFrame(columns)


def is_polars(value: Any) -> bool:
    """Say whether a frame or a series is one of polars."""
    return type(value).__module__.partition(".")[0] == "polars"


def as_polars(frame: "pd.DataFrame", instead: dict[str, Any]) -> Any:
    """Return the table as a frame of polars, some columns from the arrays that pandas has converted."""
    import polars as pl

    columns = {name: frame[name].to_numpy() for name in frame.columns} | instead
    return pl.DataFrame({name: _known_to_polars(column) for name, column in columns.items()})


def _known_to_polars(column: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Return times in a unit that polars has: days, or from milliseconds on."""
    known = column.dtype.kind not in "mM" or np.datetime_data(column.dtype)[0] in ("D", "ms", "us", "ns")
    return column if known else column.astype(f"{column.dtype.kind}8[us]")
