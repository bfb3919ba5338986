"""Folds of the training items: every item is held out once, groups together."""

import warnings
from typing import Any

import numpy as np

from ordinalq._utils.validation import Codes, check_integer


def make_folds(
    cv: Any, codes: Codes, groups: Codes | None = None, *, random_state: Any = 0, seen: bool = True
) -> list[tuple[Codes, Codes]]:
    """Return the training and the held-out items of each fold of items with codes and groups (N,).

    `cv` is a scikit-learn splitter or the number of stratified, shuffled folds (fewer if no class has that many items;
    folds of whole groups where there are groups). With groups, `seen` refuses folds in which a class is held out that
    is not among their training items.
    """
    with warnings.catch_warnings():
        # A class with fewer items than folds is small, not wrong.
        warnings.filterwarnings("ignore", message="The least populated class")
        folds = list(_splitter(cv, codes, groups, random_state).split(np.zeros(len(codes)), codes, groups))
    held = np.bincount(np.concatenate([test for _, test in folds]), minlength=len(codes))
    if (held != 1).any():
        raise ValueError(
            f"cv must hold out every item exactly once, but holds out item {(held != 1).argmax()} "
            f"{held[(held != 1).argmax()]} times; use for example StratifiedKFold."
        )
    if seen and groups is not None:
        _check_groups(codes, groups, folds)
    return folds


def _splitter(cv: Any, codes: Codes, groups: Codes | None, random_state: Any) -> Any:
    from sklearn.model_selection import GroupKFold, KFold, StratifiedKFold, check_cv

    if not isinstance(cv, int | np.integer):
        return check_cv(cv, codes, classifier=True)
    k = check_integer("cv", cv, minimum=2)
    if len(codes) < 2:
        raise ValueError(f"y must have at least two items, so that one can be held out, got {len(codes)}.")
    if groups is not None:
        if (number := len(np.unique(groups))) < 2:
            raise ValueError("there must be at least two groups, so that one can be held out, got a single one.")
        return GroupKFold(min(k, number))
    largest = int(np.bincount(codes).max())
    if largest < 2:  # nothing to stratify
        return KFold(min(k, len(codes)), shuffle=True, random_state=random_state)
    return StratifiedKFold(min(k, largest), shuffle=True, random_state=random_state)


def _check_groups(codes: Codes, groups: Codes, folds: list[tuple[Codes, Codes]]) -> None:
    """Refuse folds by group in which a model would have to score a class that it has not seen."""
    for train, test in folds:
        unseen = np.setdiff1d(codes[test], codes[train])
        if len(unseen):
            holders, total = len(np.unique(groups[codes == unseen[0]])), len(np.unique(groups))
            raise ValueError(
                f"groups must leave items of every class to learn from, but class number {unseen[0] + 1} is in "
                f"{holders} of the {total} groups only, which are held out together: use more folds (cv), or more "
                "groups with that class."
            )
