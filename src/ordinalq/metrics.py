"""Errors of estimates, and tests of their differences.

What to use when: NMD, the normalized match distance (earth mover's distance over the class index), is the usual
choice; RNOD weighs squared errors by the distance between classes and looks only at classes that do occur; RSNOD is
its symmetric form; RNADW looks at all classes. All are 0 for a perfect estimate and at most 1.
Paper: the section on evaluation measures.
"""

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from scipy.special import erfc

from ordinalq._utils.validation import Floats, check_distributions


def md(p: Any, p_hat: Any, *, distances: Any = None) -> Any:
    """Match distance, sum_{i<n} d_i |P_hat(y_i) - P(y_i)| with cumulative P [eq:EMD].

    Parameters
    ----------
    p, p_hat : array-like (n,) or (B, n)
        True and estimated distributions; a vector is paired with every row of a matrix.
    distances : array-like (n - 1,), default=None
        d_i > 0, the distance between class i and class i + 1; None stands for all 1.

    Returns
    -------
    float or ndarray (B,)

    Examples
    --------
    >>> md([0.2, 0.1, 0.05, 0.2, 0.45], [0.2, 0.2, 0.2, 0.2, 0.2])
    0.6
    """
    difference, _, _, d = _checked(p, p_hat, distances)
    return _result(_match_distance(difference, d))


def nmd(p: Any, p_hat: Any, *, distances: Any = None) -> Any:
    """Normalized match distance, MD / sum_i d_i, in [0, 1] [eq:NMD].

    With unit distances the divisor is n - 1.

    Parameters
    ----------
    p : array-like (n,) or (B, n)
        True distributions.
    p_hat : array-like (n,) or (B, n)
        Estimated distributions.
    distances : array-like (n - 1,), default=None
        Distances between neighbouring classes; None for ones.

    Returns
    -------
    float or ndarray (B,)
        Error of each estimate.

    Examples
    --------
    >>> nmd([1, 0, 0, 0, 0], [0, 1, 0, 0, 0])
    0.25
    """
    difference, _, _, d = _checked(p, p_hat, distances)
    return _result(_match_distance(difference, d) / d.sum())


def rnod(p: Any, p_hat: Any, *, distances: Any = None) -> Any:
    """Root normalized order-aware divergence [eq:RNOD].

    sqrt(OD(p || p_hat) / (n - 1)).

    OD(p || p_hat) is the mean of DW_i = sum_j |i - j| (p_j - p_hat_j)^2 over the classes i with p_i > 0. It is not
    symmetric. With `distances`, |i - j| is the distance between the classes and n - 1 the sum of all.

    Parameters
    ----------
    p : array-like (n,) or (B, n)
        True distributions.
    p_hat : array-like (n,) or (B, n)
        Estimated distributions.
    distances : array-like (n - 1,), default=None
        Distances between neighbouring classes; None for ones.

    Returns
    -------
    float or ndarray (B,)
        Error of each estimate.

    Examples
    --------
    >>> rnod([1, 0, 0, 0, 0], [0, 1, 0, 0, 0])
    0.5
    """
    difference, P, _, d = _checked(p, p_hat, distances)
    return _result(np.sqrt(_order_aware(difference, P, d) / d.sum()))


def rsnod(p: Any, p_hat: Any, *, distances: Any = None) -> Any:
    """Root symmetric normalized order-aware divergence.

    sqrt((OD(p || p_hat) + OD(p_hat || p)) / 2 / (n - 1)).

    OD as in :func:`rnod`; parameters as for :func:`md`.

    Parameters
    ----------
    p : array-like (n,) or (B, n)
        True distributions.
    p_hat : array-like (n,) or (B, n)
        Estimated distributions.
    distances : array-like (n - 1,), default=None
        Distances between neighbouring classes; None for ones.

    Returns
    -------
    float or ndarray (B,)
        Error of each estimate.

    Examples
    --------
    >>> rsnod([1, 0, 0, 0, 0], [0, 1, 0, 0, 0])
    0.5
    """
    difference, P, P_hat, d = _checked(p, p_hat, distances)
    both = (_order_aware(difference, P, d) + _order_aware(difference, P_hat, d)) / 2
    return _result(np.sqrt(both / d.sum()))


def rnadw(p: Any, p_hat: Any, *, distances: Any = None) -> Any:
    """Root normalized average distance-weighted sum of squares.

    sqrt(mean_i DW_i / (n - 1)) over all classes i.

    DW as in :func:`rnod`; parameters as for :func:`md`.

    Parameters
    ----------
    p : array-like (n,) or (B, n)
        True distributions.
    p_hat : array-like (n,) or (B, n)
        Estimated distributions.
    distances : array-like (n - 1,), default=None
        Distances between neighbouring classes; None for ones.

    Returns
    -------
    float or ndarray (B,)
        Error of each estimate.

    Examples
    --------
    >>> round(rnadw([1, 0, 0], [0, 1, 0]), 6)
    0.912871
    """
    difference, P, _, d = _checked(p, p_hat, distances)
    return _result(np.sqrt(_order_aware(difference, np.ones_like(P), d) / d.sum()))


def _match_distance(difference: Floats, d: Floats) -> Floats:
    return np.asarray(np.abs(np.cumsum(difference, axis=-1)[..., :-1]) @ d)


def _order_aware(difference: Floats, P: Floats, d: Floats) -> Floats:
    """Return OD of P over class positions t.

    The mean over {i : P_i > 0} of sum_j |t_i - t_j| difference_j^2.
    """
    t = np.concatenate([[0.0], np.cumsum(d)])
    DW = np.square(difference) @ np.abs(t[:, None] - t)
    present = P > 0
    return np.asarray((DW * present).sum(axis=-1) / present.sum(axis=-1))


def _checked(p: Any, p_hat: Any, distances: Any) -> tuple[Floats, Floats, Floats, Floats]:
    """Return p - p_hat, p, p_hat and the distances, all valid and of matching shapes."""
    P = check_distributions("p", p)
    P_hat = check_distributions("p_hat", p_hat)
    if P.shape[-1] != P_hat.shape[-1] or (P.ndim == P_hat.ndim == 2 and len(P) != len(P_hat)):
        raise ValueError(f"p and p_hat must have the same shape, got {P.shape} and {P_hat.shape}.")
    n = P.shape[-1]
    d = np.ones(n - 1) if distances is None else np.asarray(distances, dtype=np.float64)
    if d.shape != (n - 1,) or not (np.isfinite(d).all() and (d > 0).all()):
        raise ValueError(f"distances must be {n - 1} positive numbers for {n} classes, got {distances!r}.")
    return P - P_hat, P, P_hat, d


def _result(value: Floats) -> Any:
    return float(value) if value.ndim == 0 else value


# Errors of estimates, and whether the errors of two methods differ.
#
# What to use when: `errors` gives one error per sample; `wilcoxon` compares two methods on the same samples;
# `p_against_best` compares a column of a table with its best method: bold in the paper's tables is p >= 0.01.


Measure = Callable[[Any, Any], Any]

MEASURES: dict[str, Measure] = {"nmd": nmd, "rnod": rnod, "md": md, "rsnod": rsnod, "rnadw": rnadw}

# Errors that differ by less are equal: the same estimate, computed in another order.
RELATIVE_ROUNDING = 1e-12
ABSOLUTE_ROUNDING = 1e-15


def find_measure(measure: Any) -> tuple[str, Measure]:
    """Return name and function of a measure, given by name or as a function.

    >>> find_measure("nmd")[0], find_measure(rnod)[0]
    ('nmd', 'rnod')
    """
    if isinstance(measure, str) and measure in MEASURES:
        return measure, MEASURES[measure]
    if callable(measure):
        return getattr(measure, "__name__", type(measure).__name__), measure
    names = ", ".join(map(repr, MEASURES))
    raise ValueError(f"measure must be one of {names}, or a function of p and p_hat, got {measure!r}.")


def errors(P_true: Any, P_hat: Any, measure: Any = "nmd") -> Floats:
    """Return the error of each estimate.

    Parameters
    ----------
    P_true : array-like (B, n) or (n,)
        True distributions; a vector is paired with every estimate.
    P_hat : array-like (B, n)
        Estimated distributions.
    measure : {"nmd", "rnod", "md", "rsnod", "rnadw"} or callable, default="nmd"
        A function takes the true distributions first, as :func:`ordinalq.metrics.nmd` does, and returns (B,).

    Returns
    -------
    ndarray (B,)

    Examples
    --------
    >>> errors([1, 0, 0], [[0, 1, 0], [0, 0, 1]])
    array([0.5, 1. ])
    """
    name, function = find_measure(measure)
    P_hat = np.asarray(P_hat, dtype=np.float64)
    if P_hat.ndim != 2:
        raise ValueError(f"P_hat must have shape (B, n), one row per sample, got {P_hat.shape}.")
    result = np.asarray(function(np.asarray(P_true, dtype=np.float64), P_hat), dtype=np.float64)
    if result.shape != (len(P_hat),):
        raise ValueError(f"measure {name} must return one error per sample, ({len(P_hat)},), got shape {result.shape}.")
    if np.isnan(result).any():
        raise ValueError(f"measure {name} must return numbers, got NaN for sample {np.isnan(result).argmax()}.")
    return result


def wilcoxon(a: Any, b: Any) -> float:
    """Return the two-sided p-value of Wilcoxon's signed-rank test of errors.

    With the ranks r_i of |a_i - b_i| != 0 (ties share their mean rank) and the signs s_i of a_i - b_i,
    z = sum_i s_i r_i / sqrt(sum_i r_i^2) is nearly normal if neither is better; p = P(|Z| >= |z|). Pairs that are
    equal, up to rounding, are left out; p = 1 if none is left.

    Parameters
    ----------
    a, b : array-like (B,)
        Errors of two methods on the same samples.

    Returns
    -------
    float
        The p-value.

    Examples
    --------
    Five samples, the first method better on all but one, by 1 to 5 units; z = (-1 - 2 - 3 - 5 + 4) / sqrt(55).

    >>> round(wilcoxon([0.1, 0.1, 0.1, 0.5, 0.1], [0.2, 0.3, 0.4, 0.1, 0.6]), 4)
    0.3452
    """
    # Imported here because it takes longer to load than all of ordinalq.
    from scipy.stats import rankdata

    a, b = _check_errors("a", a), _check_errors("b", b)
    if len(a) != len(b):
        raise ValueError(f"a and b must be errors on the same samples, got {len(a)} and {len(b)}.")
    different = ~np.isclose(a, b, rtol=RELATIVE_ROUNDING, atol=ABSOLUTE_ROUNDING)
    if not different.any():
        return 1.0
    difference = a[different] - b[different]
    ranks = rankdata(np.abs(difference))
    z = (np.sign(difference) * ranks).sum() / np.sqrt(np.square(ranks).sum())
    return float(erfc(np.abs(z) / np.sqrt(2)))


def mean_and_std(each: Floats) -> tuple[float, float]:
    """Return mean and standard deviation (divisor B - 1) of errors (B,).

    The standard deviation of a single error is NaN.

    >>> mean_and_std(np.array([1.0, 3.0])), mean_and_std(np.array([1.0]))
    ((2.0, 1.4142135623730951), (1.0, nan))
    """
    return float(each.mean()), float(each.std(ddof=1)) if len(each) > 1 else np.nan


def p_against_best(columns: Mapping[str, Any]) -> dict[str, float]:
    """Return p-values of each method against the one of smallest mean error.

    The best one, the first of ties, has 1.

    The columns are errors (B,) on the same samples, by the names of the methods. It does not correct for their
    number.

    >>> good, bad = np.linspace(0.1, 0.2, 20), np.linspace(0.2, 0.4, 20)
    >>> [p >= 0.01 for p in p_against_best({"PACC": good, "CC": bad, "SLD": good[::-1]}).values()]
    [True, False, True]
    """
    if not columns:
        raise ValueError("columns must hold the errors of at least one method, got none.")
    values = {name: _check_errors(name, column) for name, column in columns.items()}
    best = min(values, key=lambda name: values[name].mean())
    return {name: wilcoxon(column, values[best]) for name, column in values.items()}


def _check_errors(name: str, value: Any) -> Floats:
    array = np.asarray(value, dtype=np.float64)
    if array.ndim != 1 or len(array) == 0:
        raise ValueError(f"{name} must hold one error per sample, (B,), got shape {array.shape}.")
    if np.isnan(array).any():
        raise ValueError(f"{name} must not have NaN, got one at sample {np.isnan(array).argmax()}.")
    return array
