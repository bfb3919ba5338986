"""Items of a data set, and how they are split into training, validation and test."""

from typing import Any, NamedTuple

import numpy as np

from ordinalq._utils.validation import Index

N_TRAIN = 20_000
SMALL = 30_000  # below this number of items the split is 1/2, 1/4, 1/4


class Items(NamedTuple):
    """Features X (N, d) and classes y (N,), integers in 0..n-1."""

    X: Any
    y: Index


class Split(NamedTuple):
    """Items of each part, ascending and disjoint, and how they were chosen."""

    train: Index
    validation: Index
    test: Index
    rule: str

    def items(self, X: Any, y: Index) -> dict[str, Any]:
        """Return the items of each part, by the names that a data set gives the parts."""
        return {part: Items(take(X, rows), y[rows]) for part, rows in zip(self._fields, self[:3], strict=False)}


def split_items(y: Index, classes: tuple[str, ...], random_state: int) -> Split:
    """Split items with classes y (N,) in 0..n-1 at random, each class in proportion.

    20,000 items are for training and the rest is halved; below 30,000 items the parts are 1/2, 1/4 and 1/4. Each class
    has at least one item in each part; an error calls it by its name among `classes`.
    """
    available = np.bincount(y, minlength=len(classes))
    if available.min() < 3:
        rare = int(np.argmin(available))
        raise ValueError(
            f"every class must have at least 3 items, one for each of training, validation and test, but class "
            f"{classes[rare]!r} has {available[rare]}; use fewer or wider classes."
        )
    if len(y) < SMALL:
        wanted, rule = len(y) // 2, f"1/2, 1/4, 1/4, stratified (fewer than {SMALL:,} items)"
    else:
        wanted, rule = N_TRAIN, f"{N_TRAIN:,} training items, the rest halved, stratified"
    n_train = _proportional(available, wanted)
    rest = available - n_train
    # Classes with an odd rest give their last item to the two pools in turn.
    odd = rest % 2
    n_validation = rest // 2 + odd * (np.cumsum(odd) % 2)
    rng = np.random.default_rng(derived_seed(random_state, "split"))
    parts: tuple[list[Index], list[Index], list[Index]] = ([], [], [])
    for i in range(len(classes)):
        items = rng.permutation(np.flatnonzero(y == i))
        for part, chosen in zip(parts, np.split(items, [n_train[i], n_train[i] + n_validation[i]]), strict=True):
            part.append(chosen)
    train, validation, test = (np.sort(np.concatenate(part)) for part in parts)
    return Split(train, validation, test, rule)


def _proportional(available: Index, wanted: int) -> Index:
    """Share `wanted` items among the classes by largest remainders, at least one and all but two of each class.

    Where that allows no more, the sum is smaller than `wanted`.

    >>> _proportional(np.array([3, 3, 4]), 5)
    array([1, 1, 2])
    """
    exact = available * wanted / available.sum()
    shares = np.clip(np.floor(exact).astype(np.intp), 1, available - 2)
    while rest := wanted - int(shares.sum()):
        step = 1 if rest > 0 else -1
        free = shares < available - 2 if step > 0 else shares > 1
        if not free.any():
            break
        shares[np.argmax(np.where(free, step * (exact - shares), -np.inf))] += step
    return np.asarray(shares)


def derived_seed(random_state: int, *purpose: str) -> int:
    """Return a seed for one purpose, so that no draw depends on what was drawn before.

    >>> derived_seed(876, "APP", "test") == derived_seed(876, "APP", "test")
    True
    """
    words = [int.from_bytes(word.encode(), "little") for word in purpose]
    return int(np.random.SeedSequence([random_state, *words]).generate_state(1)[0])


def take(X: Any, index: Index) -> Any:
    """Return rows of an array, a sparse matrix or a data frame."""
    return X.iloc[index] if hasattr(X, "iloc") else X[index]
