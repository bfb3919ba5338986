r"""Weights of items and their effective number.

A survey weight is the number of items of a population that an item represents, a Monte-Carlo weight is its
probability up to a factor. A mean with weights w is as precise as one of (sum w)^2 / sum w^2 items without weights;
this effective size is the N of variances. The unit of the weights has no effect. A frequency weight is the number of
equal rows: a row is w items, and N is the sum.
"""

import inspect
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from ordinalq._utils.validation import Codes, Floats, check_choice, real_numbers

KINDS = ("survey", "frequency")


@dataclass(frozen=True, eq=False)
class Weights:
    """Weights w >= 0 of N items, and their type.

    See `ordinalq.samples.weights`.
    """

    values: Floats
    kind: str = "survey"

    @classmethod
    def of(cls, sample_weight: Any, kind: str, n_items: int) -> "Weights | None":
        """Return the weights that a caller gives for `n_items` items, or None for none.

        Parameters
        ----------
        sample_weight : array-like (N,) or None
            Weights as the caller has passed them.
        kind : {"survey", "frequency"}
            Type of the weights.
        n_items : int
            N.

        Returns
        -------
        weights : Weights or None
            None without weights.
        """
        check_choice("weight_type", kind, KINDS)
        return None if sample_weight is None else cls(check_weights(sample_weight, n_items), kind)

    @property
    def counts_items(self) -> bool:
        """Whether a weight is a number of items."""
        return self.kind == "frequency"

    @property
    def squares(self) -> Floats:
        """Contribution of each item to sum w^2, shape (N,).

        It is w^2, or w if a row represents w items of weight one.
        """
        return self.values if self.counts_items else self.values**2

    def take(self, rows: Any) -> "Weights":
        """Return the weights of some items.

        Parameters
        ----------
        rows : ndarray
            Positions or mask.

        Returns
        -------
        weights : Weights
            Weights of these items.
        """
        return Weights(self.values[rows], self.kind)

    def scaled(self) -> "Weights":
        """Return survey weights scaled to mean one.

        Estimates do not depend on their unit then. Frequencies are unchanged.

        Returns
        -------
        weights : Weights
            Scaled weights.
        """
        if self.counts_items:
            return self
        # First by a power of two, which rounds nothing: sums of very large weights would overflow.
        values = np.ldexp(self.values, -_exponent(self.values))
        return Weights(values / values.mean(), self.kind)

    @property
    def size(self) -> float:
        """Effective number of all items."""
        return float(self.values.sum() ** 2 / self.squares.sum())

    def sizes(self, codes: Codes, n: int) -> Floats:
        """Return the effective number of items with each code 0..n-1, (n,).

        Parameters
        ----------
        codes : ndarray (N,)
            Codes 0..n-1 of the items.
        n : int
            Number of codes.

        Returns
        -------
        sizes : ndarray (n,)
            Effective numbers of items.
        """
        total, squares = (np.bincount(codes, weights=x, minlength=n) for x in (self.values, self.squares))
        return np.divide(total**2, squares, out=np.zeros(n), where=squares > 0)


def item_counts(codes: Codes, n: int, weights: Weights | None = None) -> Floats:
    """Return the (weighted) number of items with each code 0..n-1, (n,).

    Parameters
    ----------
    codes : ndarray (N,)
        Codes 0..n-1 of the items.
    n : int
        Number of codes.
    weights : Weights, default=None
        Weights of the items; None counts each item once.

    Returns
    -------
    counts : ndarray (n,)
        Numbers of items, or sums of weights.
    """
    return np.bincount(codes, weights=None if weights is None else weights.values, minlength=n).astype(np.float64)


def effective_items(codes: Codes, n: int, weights: Weights | None = None) -> Floats:
    """Return the effective number of items with each code 0..n-1, shape (n,).

    Without weights it is the number of items.

    Parameters
    ----------
    codes : ndarray (N,)
        Codes 0..n-1 of the items.
    n : int
        Number of codes.
    weights : Weights, default=None
        Weights of the items; None counts each item once.

    Returns
    -------
    sizes : ndarray (n,)
        Effective numbers of items.
    """
    return item_counts(codes, n) if weights is None else weights.sizes(codes, n)


def class_shares(codes: Codes, n: int, weights: Weights | None = None) -> Floats:
    """Return the share of each item in the (weighted) mean of its class, (N,).

    Parameters
    ----------
    codes : ndarray (N,)
        Codes 0..n-1 of the items.
    n : int
        Number of codes.
    weights : Weights, default=None
        Weights of the items; None counts each item once.

    Returns
    -------
    shares : ndarray (N,)
        They sum to one in each class.
    """
    own = 1.0 if weights is None else weights.values
    return np.asarray(own / item_counts(codes, n, weights)[codes])


def weights_argument(function: Callable[..., Any], weights: Weights | None) -> dict[str, Weights]:
    """Return weights as an argument of a method's function.

    The result is empty if `weights` is None. TypeError is raised for a custom function without the parameter.
    """
    if weights is None:
        return {}
    if "weights" not in inspect.signature(function).parameters:
        owner = type(getattr(function, "__self__", function)).__name__
        raise TypeError(
            f"sample_weight must be None with {owner}, whose {getattr(function, '__name__', 'function')} has no "
            "parameter weights."
        )
    return {"weights": weights}


def check_weights(sample_weight: Any, n_items: int) -> Floats:
    """Return weights (N,) as floats >= 0, some of them positive.

    Parameters
    ----------
    sample_weight : array-like (N,)
        Weights.
    n_items : int
        N.

    Returns
    -------
    weights : ndarray (N,)
        Weights as floats.
    """
    try:
        values = real_numbers(sample_weight)
    except (TypeError, ValueError) as error:
        raise TypeError(f"sample_weight must be one number per item, got {sample_weight!r:.80}.") from error
    if values.ndim != 1:
        raise ValueError(f"sample_weight must be 1D, one number per item, got shape {values.shape}.")
    if len(values) != n_items:
        raise ValueError(f"sample_weight must have one number per item, {n_items}, got {len(values)}.")
    bad = ~np.isfinite(values) | (values < 0)
    if bad.any():
        row = int(np.argmax(bad))
        raise ValueError(f"sample_weight must be finite numbers >= 0, got {values[row]:g} for item {row}.")
    if not values.any():
        raise ValueError("sample_weight must be positive for some item, but all are zero.")
    return values


# Weights whose largest is beyond 2^(+-MOST_EXPONENT) have squares, or sums of these, that numbers cannot hold.
MOST_EXPONENT = 400


def in_usual_unit(weights: Weights | None) -> tuple[Weights | None, int]:
    """Return survey weights of an extreme unit in units of 2^k, and k.

    Other weights are unchanged, and k is 0.

    Parameters
    ----------
    weights : Weights or None
        Weights.

    Returns
    -------
    weights, k : Weights or None, int
        Weights in the new unit, and its exponent.

    Examples
    --------
    >>> found, k = in_usual_unit(Weights(np.array([1e-170, 2e-170])))
    >>> found.values.round(2).tolist(), k
    ([0.3, 0.6], -563)
    """
    k = 0 if weights is None or weights.counts_items else _exponent(weights.values)
    if weights is None or abs(k) < MOST_EXPONENT:
        return weights, 0
    return Weights(np.ldexp(weights.values, -k), weights.kind), k


def check_squares(weight: Floats, weight2: Floats) -> None:
    """Raise ValueError if sums of weights or of their squares overflow."""
    if not (np.isfinite(weight).all() and np.isfinite(weight2).all() and (weight2 > 0).all()):
        raise ValueError("sample_weight must not be extremely small or large. Pass weights with a mean of about 1.")


def _exponent(values: Floats) -> int:
    """Return the exponent of two of the largest value."""
    return int(np.frexp(values.max())[1])


def effective_counts(contents: Any, variances: Any) -> Floats:
    """Return effective counts of weighted bin contents, shape (..., d).

    They are proportional to the contents, and their sum is the effective number of items. The formula is contents_j
    (sum contents) / (sum variances). The content of a bin is sum w, its variance is sum w^2, and the effective sample
    size of the histogram is (sum w)^2 / sum w^2. Unweighted counts equal their variances and are unchanged.

    Parameters
    ----------
    contents : array-like (..., d)
        Sums of weights in each bin.
    variances : array-like (..., d)
        Sums of squared weights.

    Returns
    -------
    counts : ndarray (..., d)
        Counts.

    Examples
    --------
    >>> effective_counts([20.0, 60.0], [40.0, 120.0])
    array([10., 30.])
    """
    c, v = np.asarray(contents, dtype=np.float64), np.asarray(variances, dtype=np.float64)
    if c.shape != v.shape:
        raise ValueError(f"variances must have the shape of the contents, {c.shape}, got {v.shape}.")
    if not (np.isfinite(v).all() and (v >= 0).all() and (v.sum(axis=-1) > 0).all()):
        raise ValueError("variances must be finite numbers >= 0, and not all zero.")
    return np.asarray(c * (c.sum(axis=-1) / v.sum(axis=-1))[..., None])
