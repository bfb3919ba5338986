"""Labels in a column of a table: as numbers or words, in the order of their classes."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd

from ordinalq._utils.validation import Array
from ordinalq.io.columns import MISSING_WORDS, as_words, place, short, where
from ordinalq.samples.labels import MAX_LABELS, check_label_count

# More numbers among the labels than this, and the words are mistakes.
MOSTLY = 0.5


def check_by(by: Sequence[str], target: str) -> None:
    """Refuse columns of groups that are the labels: each would have a single class."""
    if target in by:
        raise ValueError(f"by must name the column of the groups, got that of the labels, {target!r}.")


def labelled_rows(
    frame: pd.DataFrame, target: str, classes: Sequence[Any] | None, skip_unlabelled: bool
) -> tuple[pd.DataFrame, Array, int]:
    """Return the rows that have a label in the column `target`, their labels as numbers or words, how many have none.

    Rows without a label are an error, or skipped. The classes are in ascending order; numbers need none.
    """
    words = as_words(frame[target])
    gaps = {None, "", *MISSING_WORDS} - set(as_words(classes or ()))
    missing = np.array([word in gaps for word in words])
    if missing.all():
        raise ValueError(f"{where(frame)}: column {target!r} has no labels at all.")
    if missing.any() and not skip_unlabelled:
        at = int(missing.argmax())
        got = repr(words[at]) if words[at] else "nothing"
        raise ValueError(
            f"{place(frame, frame.index[at])}: expected a label in column {target!r}, got {got} "
            f"({missing.sum():,} of {len(frame):,} rows); fill it, or use "
            f"skip_unlabelled=True{', or name it in classes=[...]' if words[at] else ''}."
        )
    rows = frame[~missing]
    rows.attrs |= frame.attrs
    kept = np.array([word for word in words if word not in gaps], dtype=object)
    y = _label_values(rows, target, classes, kept)
    if classes is not None:
        known = set(parsed_classes(classes, y).tolist())
        strange = np.array([label not in known for label in y.tolist()])
        if strange.any():
            at = int(strange.argmax())
            raise ValueError(
                f"{place(rows, rows.index[at])}: column {target!r} has a label that is not among the "
                f"classes {', '.join(map(str, classes))}: {short(kept[at])}."
            )
    return rows, y, int(missing.sum())


def known_labels(frame: pd.DataFrame, column: str, classes: Array) -> Array:
    """Return the labels in a column of a portion as classes of the model (N,), None where there is none."""
    known = dict(zip(as_words(classes), classes.tolist(), strict=True))
    words = as_words(frame[column])
    gaps = {None, "", *MISSING_WORDS} - set(known)
    strange = next((i for i, word in enumerate(words) if word not in gaps and word not in known), None)
    if strange is not None:
        raise ValueError(
            f"{place(frame, frame.index[strange])}: column {column!r} has a label that is not among the classes "
            f"{', '.join(map(str, classes))}: {short(words[strange])}."
        )
    return np.array([known.get(word) for word in words], dtype=object)


def _label_values(rows: pd.DataFrame, target: str, classes: Sequence[Any] | None, words: Array) -> Array:
    """Return labels as numbers where all of them are such, else as words."""
    numbers = pd.to_numeric(pd.Series(words), errors="coerce").to_numpy(dtype=np.float64)
    unreadable = ~np.isfinite(numbers)
    if not unreadable.any():
        y: Array = numbers.astype(np.int64) if (numbers == np.round(numbers)).all() else numbers
        if classes is None:
            advice = f"make at most {MAX_LABELS} classes of it first"
            check_label_count(f"{where(rows)}: column {target!r}", len(np.unique(y)), advice)
        return y
    if classes is None and (~unreadable).mean() > MOSTLY:
        at = int(unreadable.argmax())
        raise ValueError(
            f"{place(rows, rows.index[at])}: expected a number in column {target!r}, as in most "
            f"rows, got {short(words[at])}; correct it, or give all classes in order, classes=[...]."
        )
    if classes is None:
        some = ", ".join(word[:40] for word in sorted(set(words.tolist()))[:5])
        raise ValueError(
            f"{where(rows)}: column {target!r} has labels without an order ({some}): "
            "give all of them in ascending order, classes=[...]."
        )
    return words.astype(str)


def parsed_classes(classes: Any, y: Array) -> Any:
    """Return the given classes as labels of the kind of `y`, None where none are given."""
    if classes is None:
        return None
    words = as_words(classes)
    if y.dtype.kind == "U":
        return np.array(words, dtype=str)
    try:
        numbers = np.array([float(word or "nan") for word in words])
    except ValueError:
        return np.array(words, dtype=str)  # then no label is among them, which the caller says
    return numbers.astype(np.int64) if y.dtype.kind == "i" and (numbers == np.round(numbers)).all() else numbers
