"""`solve`: estimates from a response matrix and an observed histogram."""

import warnings
from typing import Any

import numpy as np

from ordinalq._utils.validation import Floats, check_real, real_numbers
from ordinalq.quantifiers.base import Quantifier
from ordinalq.quantifiers.run_ibu import RUN
from ordinalq.samples.weights import effective_counts
from ordinalq.simplex import Data
from ordinalq.solvers.solution import distributions
from ordinalq.unfolding.histograms import bin_contents, bin_variances, check_axes, is_histogram, result_type
from ordinalq.unfolding.response_model import response_model

# How far the sum of a column of M may be from what it should be.
COLUMN_TOLERANCE = 1e-4
# How far the sum of fractions may be from one, and counts from whole numbers, as parts of the largest.
FRACTION_TOLERANCE = WHOLE = 1e-6
# Entries of M below this cannot be distinguished from zero, and their squares underflow.
SMALLEST = 1e-140
# Likelihoods count per item: beyond this their curvatures would overflow.
MOST_ITEMS = 1e150


def solve(
    q: Any,
    M: Any,
    method: Quantifier | None = None,
    N: Any = None,
    *,
    acceptance: Any = None,
    background: Any = None,
    counts: bool = False,
    variances: Any = None,
) -> Any:
    """Solve q = M p for the class distribution p with the parts of a method.

    Physicists call this unfolding. S is the number of observed items minus the background sum_j b_j, and p_i is the
    prevalence of class i among these S items. The expected number of items in bin j is
    lambda_j = S sum_i M_ji p_i + b_j. The method minimizes loss(counts / S, lambda / S) + regularizer(p). The loss is
    the Poisson likelihood of the counts for RUN and IBU, and the distance of (counts - b) / S from M p for least
    squares. If only a fraction a_i of the items of class i is observed, there were t_i = S p_i / a_i items.

    Parameters
    ----------
    q : array-like (d,) or (B, d), or histogram
        Observed histograms: fractions if every row sums to one, else counts.
    M : array-like (d, n), or histogram with the axes (observed, true)
        Response matrix, n >= 2. Column i is the distribution of class i over the observed bins. The columns of a
        histogram are divided by their sums.
    method : quantifier, default=None
        Unfitted method: ACC or PACC (least squares), HDx or HDy (one histogram), PDF (ordered bins), RUN, IBU, one of
        their o-forms, or a ComposedQuantifier. None means ``RUN(tau=10.0)``.
    N : int or array-like (B,), default=None
        Number of observed items, background included. If q are fractions, it is needed for RUN, `background` and
        `counts`. None means the sum of the counts. If q are counts, any other number raises an error.
    acceptance : array-like (n,), histogram or "columns", default=None
        Probability a_i in (0, 1] that an item of class i is observed. The estimate is then the distribution t of all
        items, observed or not. Columns of M may sum to one or to a_i. "columns" uses the column sums as a_i. The
        regularizer acts on p, except for ``RUN(acceptance=a)``, where it acts on the logarithm of t. See :class:`RUN`.
    background : array-like (d,) or (B, d), or histogram, default=None
        Expected number b_j of items in each observed bin that belong to no class. None means zero.
    counts : bool, default=False
        Return the expected numbers t_i of items instead of fractions.
    variances : array-like like q, default=None
        Variances of weighted counts: the sum of w^2 in each bin. Likelihoods then use the effective sample size, see
        `ordinalq.samples.weights.effective_counts`. `N`, `background` and the returned counts are in units of q.
        The variances of histograms are used if there are any.

    Returns
    -------
    ndarray (n,) or (B, n), or histogram
        A histogram over the true axis, of the type of q, if q and M are histograms.

    Notes
    -----
    Histograms are objects of the UHI protocol (hist, boost-histogram, uproot). Their underflow and overflow bins are
    left out.

    Examples
    --------
    >>> import ordinalq as oq
    >>> M = [[0.9, 0.1], [0.1, 0.9]]
    >>> oq.solve([100, 150], M, method=oq.ACC()).round(4)
    array([0.375, 0.625])

    20 items of background in each bin, and half of the items of the second class are lost:

    >>> oq.solve([110, 130], M, method=oq.ACC(), background=[20, 20], acceptance=[1.0, 0.5], counts=True).round(4)
    array([ 87.5, 225. ])
    """
    chosen = RUN() if method is None else method
    as_result = result_type(q, M)
    check_axes(q, M, acceptance, background)
    R, a = read_response(M, acceptance)
    single = is_histogram(q) or np.ndim(q) == 1
    Q, sizes = _observed(q, N, len(R), single=single)
    unit = _unit(q, variances, Q, single=single)
    if not isinstance(chosen, Quantifier):
        raise TypeError(f"method must be a quantifier such as RUN(tau=10.0), got {method!r}.")
    if a is not None:
        check_proportional(chosen, a)
    if not isinstance(counts, bool | np.bool_):
        raise TypeError(f"counts must be True or False, got {counts!r}.")
    if sizes is None and (counts or background is not None):
        raise ValueError("N must be given if q are fractions and counts or background are used.")
    total = np.ones(len(Q)) if sizes is None else sizes
    known, signal = (None, total) if background is None else read_background(background, total, Q.shape)
    worth = signal if unit is None else signal * unit
    data = Data(Q * (total / signal)[:, None], R, worth, background=known)
    P = distributions(response_model(chosen).solve(data, sizes_known=sizes is not None))
    if unit is None and N is None and sizes is not None and chosen.traits.counts_items:
        _note_of_weights(q)
    if a is not None:
        P = P / a
    if counts:
        P = P * signal[:, None]
    elif a is not None:
        P = P / P.sum(axis=1, keepdims=True)
    return as_result(P[0] if single else P)


def read_response(M: Any, acceptance: Any, name: str = "M") -> tuple[Floats, Floats | None]:
    """Return M (d, n) with columns that sum to one, and the acceptance (n,) or None."""
    if is_histogram(M):
        R = bin_contents(name, M, n_axes=2)
        sums = R.sum(axis=0)
        if (R < 0).any() or (sums == 0).any():
            raise ValueError(
                f"{name} must have entries >= 0, and some in every true bin, got sums {_short(sums)} over the bins."
            )
        R = R / sums
    else:
        R = _matrix(name, M)
    if R.shape[1] < 2:
        raise ValueError(f"{name} must have at least 2 columns, one per class, got shape {R.shape}.")
    with np.errstate(over="ignore"):
        sums = R.sum(axis=0)
    if acceptance is None:
        a = None
    elif isinstance(acceptance, str):
        if acceptance != "columns":
            raise ValueError(f"acceptance must be 'columns' or one number per class, got {acceptance!r}.")
        if is_histogram(M):
            raise ValueError(
                f"acceptance must be one number per class if {name} is a histogram, whose entries are counts."
            )
        a = sums
    else:
        a = _vector("acceptance", acceptance, R.shape[1], "class")
    if a is not None and not ((a > 0) & (a <= 1 + COLUMN_TOLERANCE)).all():
        raise ValueError(f"acceptance must be shares in (0, 1], one per class, got {_short(a)}.")
    whole = np.abs(sums - 1) <= COLUMN_TOLERANCE
    if (R < 0).any() or not (whole.all() or (a is not None and (np.abs(sums - a) <= COLUMN_TOLERANCE * a).all())):
        raise ValueError(
            f"the columns of {name} must be distributions over the observed bins (>= 0, sum 1"
            f"{'' if a is None else ' or acceptance'}), got column sums {_short(sums)}"
            f"{'; are the other items lost? Then give acceptance' if a is None and (sums < 1).all() else ''}."
        )
    tiny = (R > 0) & (R < SMALLEST)
    if tiny.any():
        raise ValueError(f"the entries of {name} must be 0 or at least {SMALLEST:g}, got {R[tiny].min():g}.")
    return (R, a) if whole.all() else (R / sums, a)


def _observed(q: Any, N: Any, d: int, *, single: bool) -> tuple[Floats, Floats | None]:
    """Return fractions (B, d), and numbers of items (B,) or None."""
    if is_histogram(q):
        q = bin_contents("q", q, n_axes=1)
    Q = _matrix("q", [q] if single else q)
    if Q.shape[1] != d:
        raise ValueError(f"q must have one entry per row of M, {d}, got {Q.shape[1]}.")
    with np.errstate(over="ignore"):
        totals = Q.sum(axis=1)
    if (Q < 0).any() or (totals == 0).any():
        advice = (
            "; if a background was subtracted, give what was observed, and background=[...]" if (Q < 0).any() else ""
        )
        raise ValueError(f"q must be counts or fractions >= 0 with a positive sum in every row{advice}.")
    if (totals > MOST_ITEMS).any():
        raise ValueError(f"q must have at most {MOST_ITEMS:g} items in every row, got entries up to {Q.max():g}.")
    fractions = bool((np.abs(totals - 1) <= FRACTION_TOLERANCE).all())
    if N is None:
        sizes = None if fractions else totals
    else:
        sizes = np.array([check_real("N", n, low=0, high=MOST_ITEMS, open_low=True) for n in np.atleast_1d(N).tolist()])
        if len(sizes) not in (1, len(Q)):
            raise ValueError(f"N must be one number, or one per row of q, {len(Q)}, got {len(sizes)}.")
        sizes = np.broadcast_to(sizes, len(Q))
        if not fractions and not np.allclose(sizes, totals, rtol=1e-6, atol=0):
            row = int(np.argmax(np.abs(sizes / totals - 1)))
            raise ValueError(
                f"N must be the sum of q if q are counts, {totals[row]:g} in row {row}, got {sizes[row]:g}; "
                "leave N out, or divide q by its sum."
            )
    return Q / totals[:, None], sizes


def _unit(q: Any, variances: Any, Q: Floats, *, single: bool) -> Floats | None:
    """Return the items per unit of weight, (B,), or None."""
    if is_histogram(q):
        if variances is not None:
            raise ValueError("variances must be None if q is a histogram, which has variances.")
        contents, known = bin_contents("q", q, n_axes=1), bin_variances("q", q)
    elif variances is None:
        return None
    else:
        contents = np.asarray(q, dtype=np.float64)
        known = _matrix("variances", [variances] if single else variances).reshape(np.shape(variances))
        if known.shape != contents.shape:
            raise ValueError(f"variances must have the shape of q, {contents.shape}, got {known.shape}.")
        if np.abs(contents.sum(axis=-1) - 1).max() <= FRACTION_TOLERANCE:
            raise ValueError("variances must be None if q are fractions. Pass counts, the sums of the weights.")
    effective = effective_counts(contents, known).reshape(Q.shape)
    return np.asarray(effective.sum(axis=1) / contents.reshape(Q.shape).sum(axis=1))


def _note_of_weights(q: Any) -> None:
    """Warn if counts are not whole numbers."""
    counts = np.asarray(q, dtype=np.float64)
    if counts.sum() > 1 + FRACTION_TOLERANCE and (np.abs(counts - np.rint(counts)) > WHOLE * counts.max()).any():
        warnings.warn(
            "q has counts that are not whole numbers, as those of weighted items; their likelihood takes their sum for "
            "the number of items: give variances=[...], the sums of squared weights, or N, that sum, if it is right.",
            stacklevel=3,
        )


def read_background(background: Any, sizes: Floats, shape: tuple[int, ...]) -> tuple[Floats, Floats]:
    """Return the background (B, d) and items (B,), in units of the signal."""
    if is_histogram(background):
        background = bin_contents("background", background, n_axes=1)
    known = _matrix("background", [background] if np.ndim(background) == 1 else background)
    if known.shape[1] != shape[1] or len(known) not in (1, shape[0]):
        raise ValueError(f"background must have shape {(shape[1],)} or {shape}, as q, got {np.shape(background)}.")
    if (known < 0).any():
        raise ValueError(f"background must be >= 0, got {known.min():g}.")
    known = np.broadcast_to(known, shape)
    signal = sizes - known.sum(axis=1)
    if (signal <= 0).any():
        row = int(np.argmax(signal <= 0))
        raise ValueError(
            f"background must be less than what was observed, got {known[row].sum():g} of {sizes[row]:g} in row {row}; "
            "nothing is left for the classes."
        )
    return known / signal[:, None], signal


def check_proportional(method: Quantifier, a: Floats) -> None:
    """Raise ValueError if a method's acceptance is not proportional to this (n,)."""
    parameters = method.get_params()
    own = parameters.get("acceptance", parameters.get("regularizer__acceptance"))
    if own is None or np.shape(own) != a.shape:  # the method raises for a wrong shape
        return
    ratio = np.asarray(own, dtype=np.float64) / a
    if not np.allclose(ratio, ratio[0], rtol=1e-6, atol=0):
        raise ValueError(
            f"acceptance {_short(a)} contradicts that of {type(method).__name__}, which must be proportional to it, "
            f"got {_short(np.asarray(own, dtype=np.float64))}."
        )


def _vector(name: str, value: Any, n: int, what: str) -> Floats:
    if is_histogram(value):
        value = bin_contents(name, value, n_axes=1)
    vector: Floats = _matrix(name, [value])[0]
    if len(vector) != n:
        raise ValueError(f"{name} must be one number per {what}, {n}, got {len(vector)}.")
    return vector


def _matrix(name: str, value: Any) -> Floats:
    try:
        array = real_numbers(value)
    except (TypeError, ValueError) as error:
        raise TypeError(f"{name} must be an array of numbers, got {value!r:.80}.") from error
    if array.ndim != 2 or array.size == 0 or not np.isfinite(array).all():
        raise ValueError(f"{name} must be a finite array of numbers with rows and columns, got shape {array.shape}.")
    return array


def _short(vector: Floats) -> str:
    return np.array2string(vector, precision=4, threshold=8)
