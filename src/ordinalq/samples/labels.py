"""Ordered class labels and their codes 0..n-1."""

from numbers import Real
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from ordinalq._utils.validation import Array, Codes, Floats

MIN_CLASSES = 2
MAX_LABELS = 30  # more distinct numbers than this are a quantity, not classes


def encode_labels(y: Any, classes: Any = None, *, every_class: bool = False, name: str = "y") -> tuple[Array, Codes]:
    """Order the labels `y` (N,) and return classes (n,) and codes (N,).

    The result satisfies ``classes[codes] == y``. Errors call the labels `name`. Numbers are ordered by value. An
    ordered pandas Categorical and a polars Enum keep their order. Other labels (strings) need `classes`, all of them in
    ascending order, because alphabetical order would silently be wrong. With `every_class` each class must occur.

    >>> encode_labels([5, 1, 3, 1])
    (array([1, 3, 5]), array([2, 0, 1, 0]))
    """
    if not hasattr(y, "dtype") and hasattr(y, "__array__"):
        y = np.asarray(y)
    if y is None or isinstance(y, str | bytes) or np.ndim(y) != 1:
        raise ValueError(f"{name} must be a one-dimensional array of labels, got {_describe(y)}.")
    if len(y) == 0:
        raise ValueError(f"{name} must hold at least one label, got an empty array.")
    ordered = _check_classes(classes) if classes is not None else _own_order(y, name)
    values = _values(y, name)
    if len(ordered) < MIN_CLASSES:
        count = f"{len(ordered)} class{'' if len(ordered) == 1 else 'es'}"
        raise ValueError(f"{name} must have at least {MIN_CLASSES} ordered classes, got {count}: {_listing(ordered)}.")
    codes = _positions(values, ordered, name)
    if every_class:
        empty = np.bincount(codes, minlength=len(ordered)) == 0
        if empty.any():
            raise ValueError(
                f"{name} must have at least one item of every class, but has none of {_listing(ordered[empty])}."
            )
    return ordered, codes


def encode_known_labels(y: Any, classes: Array) -> Codes:
    """Return the codes 0..n-1 of labels, -1 for missing labels.

    Missing labels are None, NaN and similar values.

    Parameters
    ----------
    y : array-like (N,)
        Labels, and missing values.
    classes : ndarray (n,)
        Ordered classes.

    Returns
    -------
    codes : ndarray (N,)
        Codes, -1 for missing labels.

    Examples
    --------
    >>> encode_known_labels([5, None, 1], np.array([1, 3, 5])).tolist()
    [2, -1, 0]
    """
    if y is None or isinstance(y, str | bytes) or np.ndim(y) != 1:
        raise ValueError(f"labelled must be a one-dimensional array of labels, got {_describe(y)}.")
    # As objects: NumPy would turn missing values among words into words.
    values = np.asarray(y, dtype=object)
    known = ~pd.isna(values)
    codes = np.full(len(values), -1, dtype=np.intp)
    if known.any():
        codes[known] = encode_labels(values[known], classes, name="labels")[1]
    return codes


class Scale(NamedTuple):
    """Value of each class, (n,), and the name of their mean.

    The name is "mean class", or "mean position" if classes are words.
    """

    numbers: Floats
    name: str


def class_scale(classes: Any, class_values: Any = None) -> Scale:
    """Return the values over which the mean class is taken.

    `class_values` are used if given. Otherwise numbers, also those written as text, are their own values, and other
    classes have their positions 1..n.

    Parameters
    ----------
    classes : array-like (n,)
        Ordered classes.
    class_values : array-like (n,) or dict, default=None
        Values of the classes.

    Returns
    -------
    scale : Scale
        Values, and the name of their mean.

    Examples
    --------
    >>> class_scale([0, 5, 10]).numbers.tolist(), class_scale(["low", "high"]).name
    ([0.0, 5.0, 10.0], 'mean position')
    """
    labels = np.asarray(classes).tolist()
    if class_values is not None:
        return Scale(_check_values(class_values, labels), "mean class")
    try:
        numbers = np.array([float(v) if isinstance(v, Real | str) else np.nan for v in labels])
    except ValueError:
        numbers = np.array([np.nan])
    if np.isfinite(numbers).all() and not isinstance(labels[0], bool):
        return Scale(numbers, "mean class")
    return Scale(np.arange(1.0, len(labels) + 1), "mean position")


def _check_values(class_values: Any, labels: list[Any]) -> Floats:
    """Return given values of classes, (n,), which rise or fall with the classes.

    Neighbouring classes may have the same value, but not all classes.
    """
    if isinstance(class_values, dict):
        names = {str(name): value for name, value in class_values.items()}
        if names.keys() != {str(label) for label in labels}:
            raise ValueError(
                f"class_values must have one value for each class of {_listing(labels)}, got {class_values}."
            )
        class_values = [names[str(label)] for label in labels]
    try:
        values = np.array(class_values, dtype=np.float64)
    except (TypeError, ValueError):
        raise TypeError(f"class_values must be numbers, got {class_values!r:.80}.") from None
    steps = np.diff(values) if values.shape == (len(labels),) else np.array([np.nan])
    if not ((steps >= 0).all() or (steps <= 0).all()) or not steps.any() or not np.isfinite(values).all():
        raise ValueError(
            f"class_values must be {len(labels)} numbers, one per class, that rise or fall with the classes, got "
            f"{class_values!r:.80}."
        )
    return values


def check_label_count(what: str, n_distinct: int, advice: str) -> None:
    """Raise ValueError if a numeric column has too many values for classes.

    Distinct values are counted.
    """
    if n_distinct > MAX_LABELS:
        raise ValueError(f"{what} has {n_distinct} different numbers, too many for classes: {advice}.")


def _values(y: Any, name: str) -> Array:
    """Return the labels as a plain array without missing ones."""
    values = np.asarray(y)
    if values.dtype.kind == "c":
        raise ValueError(f"Complex data not supported: {name} must be labels that have an order.")
    missing = pd.isna(values)
    if missing.any():
        raise ValueError(
            f"{name} must have no missing labels, got {missing.sum()}, the first at item {np.argmax(missing)}."
        )
    if values.dtype.kind == "O" and all(isinstance(v, int | float | np.number) for v in values):
        values = values.astype(np.float64)
    if values.dtype.kind == "f" and not np.isfinite(values).all():
        raise ValueError(f"{name} must have finite labels, got {values[~np.isfinite(values)][0]!r}.")
    return values


def _own_order(y: Any, name: str) -> Array:
    """Return the classes in the order that `y` itself implies."""
    dtype = getattr(y, "dtype", None)
    if getattr(dtype, "ordered", False) or type(dtype).__name__ == "Enum":  # pandas; polars
        return np.asarray(getattr(dtype, "categories"))  # noqa: B009 - not every dtype has it
    values = _values(y, name)
    if values.dtype.kind in "biuf":
        distinct = np.unique(values)
        if len(distinct) > max(20, len(values) / 2) and (distinct != np.round(distinct)).any():
            raise ValueError(
                f"{name} has {len(distinct)} different values in {len(values)} items, like a measurement: make "
                "classes of it first, for example with ordinalq.datasets.bin_target."
            )
        return distinct
    example = ", ".join(repr(str(v)) for v in sorted({str(v) for v in values})[:3])
    raise ValueError(
        f"{name} has labels without an order ({example}, ...): "
        "give classes=[...] with all labels in ascending order (for example to fit), or an ordered Categorical."
    )


def _check_classes(classes: Any) -> Array:
    ordered = np.asarray(classes)
    if ordered.ndim != 1 or isinstance(classes, str | bytes):
        raise ValueError(f"classes must be a list of labels in ascending order, got {_describe(classes)}.")
    if len(ordered) < MIN_CLASSES:
        raise ValueError(f"classes must name at least {MIN_CLASSES} classes, got {_listing(ordered)}.")
    if len(set(ordered.tolist())) < len(ordered):
        raise ValueError(f"classes must be distinct, got {_listing(ordered)}.")
    return ordered


def _positions(values: Array, ordered: Array, name: str) -> Codes:
    """Return the position of each value in `ordered`."""
    position = {label: i for i, label in enumerate(ordered.tolist())}
    # The distinct values are few, so the slow part (a dictionary) sees only those. pandas knows only native bytes.
    codes, found = pd.factorize(values.astype(values.dtype.newbyteorder("="), copy=False))
    distinct = found.tolist()
    unknown = [v for v in distinct if v not in position]
    if unknown:
        raise ValueError(f"{name} has labels that are not in classes {_listing(ordered)}: {_listing(unknown)}.")
    return np.array([position[v] for v in distinct], dtype=np.intp)[codes]


def is_missing(value: Any) -> bool:
    """Return whether a value is missing: None, NaN, NaT or pandas.NA.

    The value pandas.NA cannot be compared.

    Parameters
    ----------
    value : object
        Any value.

    Returns
    -------
    found : bool
        True for a missing value.
    """
    return value is None or type(value).__name__ == "NAType" or bool(value != value)


def _listing(labels: Any) -> str:
    items = [repr(v) for v in np.asarray(labels).tolist()]
    return "[" + ", ".join(items if len(items) <= 12 else [*items[:10], "..."]) + "]"


def _describe(value: Any) -> str:
    shape = getattr(value, "shape", None)
    return f"shape {shape}" if shape is not None else repr(value)[:80]
