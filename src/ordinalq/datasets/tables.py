"""Data sets from user tables, and the paper's recipe for regression data."""

import logging
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from ordinalq._utils.validation import Floats, Index, check_choice, check_integer
from ordinalq.datasets.binning import Binning, bin_target
from ordinalq.datasets.dataset import Dataset, Sampling, repetition_note, split_dataset
from ordinalq.datasets.files import read_table
from ordinalq.io.columns import UNNAMED, as_pandas, require_columns
from ordinalq.samples.labels import check_label_count, encode_labels

logger = logging.getLogger("ordinalq")


def make_dataset(
    frame: Any,
    target: str,
    *,
    n_bins: int | None = None,
    classes: Any = None,
    features: Sequence[str] | str | None = None,
    min_count: int = 100,
    outside: str = "clip",
    span: Any = None,
    encoder: Any = "auto",
    sampling: Sampling | None = None,
    name: str | None = None,
    source: str = "your own table",
    random_state: int = 876,
) -> Dataset:
    """Make a data set from a table: classes, encoded features, split, protocols.

    The classes are ordered.

    Parameters
    ----------
    frame : pandas or polars DataFrame, or path of a CSV, TSV, JSON lines, Parquet or ARFF file
        One row per item.
    target : str
        Column to predict. Rows without a target are left out, which is logged and noted.
    n_bins : int, default=None
        Cut a real target into this many classes, see :func:`bin_target`.
    classes : list, default=None
        Labels of the target in ascending order. With neither `n_bins` nor `classes`, numbers are classes by value and
        an ordered Categorical keeps its order.
    features : list of str or str, default=None
        Columns to use; None uses all others. A single name gives your own encoder one column of text, in which missing
        values are empty text.
    min_count, outside, span
        See :func:`bin_target`.
    encoder : "auto", transformer or None, default="auto"
        Fitted on the training items only. "auto" is :func:`table_encoder`; None leaves X a data frame, for encoders in
        your own pipeline.
    sampling : Sampling, default=None
        None stands for 1000 validation and 2000 test samples of 1000 items, as on the paper's UCI and OpenML data.
        Where a class has fewer items in a pool than its samples need, they are repeated, which is logged and noted.
    name, source : str
        Kept in the data set.
    random_state : int, default=876
        Determines the split and all samples.

    Returns
    -------
    Dataset
        Training items, validation pool and test pool, with encoded features (N, d).

    Examples
    --------
    >>> import pandas as pd
    >>> rng = np.random.default_rng(0)
    >>> frame = pd.DataFrame({"size": rng.normal(size=3000)})
    >>> frame["price"] = frame["size"] + rng.normal(size=3000)
    >>> dataset = make_dataset(frame, target="price", n_bins=5)
    >>> len(dataset.classes), dataset.train.X.shape
    (5, (1500, 1))
    """
    random_state = check_integer("random_state", random_state, minimum=0)
    if not isinstance(target, str):
        raise TypeError(f"target must be the name of a column as text, got {target!r}; use target={str(target)!r}.")
    if n_bins is not None and classes is not None:
        raise ValueError("give n_bins for a number or classes for labels, not both.")
    where = str(frame) if isinstance(frame, str | Path) else "the table"
    name = name or (Path(frame).stem if isinstance(frame, str | Path) else "table")
    frame, notes = _with_target(frame, target, where)
    columns = _feature_columns(frame, target, features, where)
    if n_bins is None:
        names, y, edges = *_labels(frame[target], classes, target), None
    else:
        binning = bin_target(frame[target], n_bins, min_count, outside, span)
        names, y, edges = interval_names(binning.edges), binning.codes[binning.kept], binning.edges
        notes += _span_note(binning, frame[target], target)
        frame = frame[binning.kept]
    table = _items(frame, features, columns, encoder, notes)
    for note in notes:
        logger.log(logging.WARNING if note.endswith("left out") else logging.INFO, "%s: %s", where, note)
    if isinstance(encoder, str):
        check_choice("encoder", encoder, ("auto",))
        _check_features(table, where)
    dataset = split_dataset(
        table,
        y,
        names,
        random_state,
        name=name,
        feature_names=columns,
        encoder=encoder,
        source=source,
        sampling=sampling or Sampling(n_validation=1000, n_test=2000),
        notes=tuple(notes),
        edges=edges,
    )
    if repeated := repetition_note(dataset):
        logger.warning("%s: %s", where, repeated)
        dataset = replace(dataset, notes=(*notes, repeated))
    return dataset


def _with_target(frame: Any, target: str, where: str) -> tuple[pd.DataFrame, list[str]]:
    """Return the rows of a table that have a target, as a pandas frame.

    A note counts the rows without a target.
    """
    if isinstance(frame, str | Path):
        frame = read_table(frame)
    frame = as_pandas(frame, "a pandas or polars DataFrame or a path").rename(columns=str)
    if frame.columns.has_duplicates:
        twice = frame.columns[frame.columns.duplicated()][0]
        raise ValueError(f"{where} must have columns of different names, but {twice!r} occurs twice.")
    require_columns(frame.columns, [target], where)
    missing = frame[target].isna().to_numpy()
    if missing.all():
        raise ValueError(f"{where} must have rows with a {target!r}, but all {len(frame):,} rows lack it.")
    if not missing.any():
        return frame, []
    return frame[~missing], [f"{missing.sum():,} of {len(frame):,} rows have no {target!r} and were left out"]


def _items(frame: pd.DataFrame, features: Any, columns: list[str], encoder: Any, notes: list[str]) -> Any:
    """Return the columns to encode, noting missing values.

    A single column of text has the form that its encoder expects.
    """
    if not isinstance(features, str) or encoder is None or isinstance(encoder, str):
        return frame[columns]
    table = frame[features]
    if n_missing := int(table.isna().sum()):
        notes.append(f"{n_missing:,} of {len(table):,} items have no {features!r}, which counts as an empty text")
        table = table.fillna("")
    return table


@dataclass(frozen=True)
class Regression:
    """Regression data of the paper, whose target is cut into ten classes.

    ``span`` (lo, hi) is the published one. ``read`` takes what `load_dataset` takes as `data` and returns a table
    (N, d + 1), the target last, with the names of its features and with notes.
    """

    name: str
    source: str
    span: tuple[float, float]
    read: Callable[[Any], tuple[Floats, Sequence[str], Sequence[str]]]

    def load(self, data: str | Path | None, settings: str, random_state: int) -> Dataset:
        """Return the data set, its features in single precision.

        "reference": the published span, items outside in the outermost bins, 2000 test samples, at least 3 items of
        each class. "paper", as its text says: the widest span with at least 1000 items in each bin, items outside
        removed, 5000 test samples, and no item twice and no least number of items as far as the pools allow.
        """
        table, feature_names, notes = self.read(data)
        target, printed = table[:, -1], settings == "paper"
        if not printed:
            binning = bin_target(target, span=self.span)
        else:
            try:
                binning = bin_target(target, min_count=1000, outside="drop")
            except ValueError as error:
                raise ValueError(
                    f"{self.name} has no span with 10 bins of at least 1000 items, as the paper's text asks for; "
                    "use settings='reference'."
                ) from error
        notes = [*notes, *_span_note(binning, target, "target")]
        dataset = split_dataset(
            table[binning.kept, :-1].astype(np.float32),
            binning.codes[binning.kept],
            interval_names(binning.edges),
            random_state,
            name=self.name,
            feature_names=feature_names,
            source=self.source,
            sampling=Sampling(n_validation=1000, n_test=5000 if printed else 2000, min_per_class=0 if printed else 3),
            notes=tuple(notes),
            edges=binning.edges,
        )
        repeated = repetition_note(dataset) if printed else ""
        return replace(dataset, notes=(*notes, repeated)) if repeated else dataset


def interval_names(edges: Floats) -> tuple[str, ...]:
    """Name the bins.

    >>> interval_names(np.array([0, 0.5, 1, 2.25]))
    ('[0, 0.5)', '[0.5, 1)', '[1, 2.25]')
    """
    last = len(edges) - 2
    return tuple(f"[{edges[k]:.6g}, {edges[k + 1]:.6g}{']' if k == last else ')'}" for k in range(last + 1))


def _span_note(binning: Binning, target: Any, name: str) -> list[str]:
    values = np.asarray(target, dtype=np.float64)
    outside = int(np.sum((values < binning.edges[0]) | (values > binning.edges[-1])))
    if outside == 0:
        return []
    fate = "count in the outermost classes" if binning.kept.all() else "were left out"
    span = f"[{binning.edges[0]:g}, {binning.edges[-1]:g}]"
    return [f"{outside:,} of {len(values):,} items have {name!r} outside of {span} and {fate}"]


def _check_features(table: pd.DataFrame, where: str) -> None:
    """Raise an error if a cell of a feature table is infinite or a container."""
    for name in table:
        column = table[name]
        if pd.api.types.is_float_dtype(column):
            infinite = int(np.isinf(column.to_numpy(dtype=np.float64, na_value=np.nan)).sum())
            if infinite:
                raise ValueError(
                    f"{where}: column {name!r} must have finite numbers or missing values, but has {infinite:,} "
                    "infinite values; replace them, or leave the column out with features=[...]."
                )
        elif column.dtype == object:
            container = next((v for v in column if isinstance(v, list | tuple | dict | set | np.ndarray)), None)
            if container is not None:
                raise TypeError(
                    f"{where}: column {name!r} must hold one value per cell, but has a {type(container).__name__}; "
                    "Pass features=[...] without it, separate columns, or an encoder."
                )


def _labels(column: "pd.Series[Any]", classes: Any, target: str) -> tuple[tuple[str, ...], Index]:
    if classes is None and column.dtype.kind in "iuf":
        check_label_count(repr(target), column.nunique(), "give n_bins, such as n_bins=10")
    ordered, codes = encode_labels(column, classes, name=target)
    # Stars that a table holds as 1.0..5.0, because some are missing, are still called 1..5.
    return tuple(f"{label:g}" if isinstance(label, float) else str(label) for label in ordered.tolist()), codes


def _feature_columns(frame: pd.DataFrame, target: str, features: Any, where: str) -> list[str]:
    if features is None:
        columns = [name for name in frame.columns if name not in (target, *UNNAMED)]
    else:
        columns = [features] if isinstance(features, str) else list(features)
        if twice := [name for name, n in Counter(columns).items() if n > 1]:
            raise ValueError(f"features must be distinct, but {twice[0]!r} occurs {columns.count(twice[0])} times.")
        require_columns(frame.columns, columns, where)
        ignored = [str(name) for name in frame.columns if name not in {target, *columns}]
        if ignored:
            logger.info("%s: %d columns are not used: %s", where, len(ignored), ", ".join(ignored[:20]))
    if target in columns:
        raise ValueError(f"features must not hold the target {target!r}.")
    if not columns:
        raise ValueError(f"{where} must have at least one column besides the target {target!r}.")
    return columns
