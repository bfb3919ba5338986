"""Estimates for people who come with a response matrix and an observed histogram, and have no classifier."""

import sys

import numpy as np

from ordinalq.methods._base import Quantifier, estimates
from ordinalq.methods.unfolding import RUN
from ordinalq.validation import check_real

# How far the sum of a column of M may be from what it should be.
COLUMN_TOLERANCE = 1e-4
# Entries of M below this are no probabilities that could be told from zero, and their squares underflow.
SMALLEST = 1e-140


def solve(q, M, method=None, N=None, *, acceptance=None, background=None, counts=False):
    """Solve q = M p for the class distribution p, with the loss and the regularizer of a method.

    Physicists call this unfolding. Of the S observed items that belong to a class, the share p_i is of class i. Bin j
    is expected to hold lambda_j = S sum_i M_ji p_i + b_j items, b a known background; S is the number of observed
    items less sum_j b_j. The method minimizes loss(counts / S, lambda / S) + regularizer(p): for RUN and IBU the
    Poisson likelihood of the counts, for least squares the distance of (counts - b) / S from M p. Where only a share
    a_i of the items of class i is observed at all, t_i = S p_i / a_i items have existed.

    Parameters
    ----------
    q : array-like (d,) or (B, d), or histogram
        Observed histograms: fractions where every row sums to one, else counts.
    M : array-like (d, n), or histogram with the axes (observed, true)
        Response matrix, n >= 2: column i is the distribution of class i over the observed bins. The columns of a
        histogram are divided by their sums.
    method : quantifier, default=None
        Not fitted; ACC or PACC (least squares), HDx or HDy (one histogram), PDF (ordered bins), RUN, IBU, one of their
        o-forms, or a ComposedQuantifier. None stands for ``RUN(tau=10.0)``.
    N : int or array-like (B,), default=None
        Number of observed items, background included; needed where q are fractions and the method is RUN, and for
        `background` and `counts`. None stands for the sum of counts; another number beside counts is an error.
    acceptance : array-like (n,), histogram or "columns", default=None
        Share a_i of the items of class i that are observed, in (0, 1]; the estimate is then the distribution t of all
        items, observed or not. Columns of M may sum to one or to a_i. "columns" takes a_i from the sums of the columns.
        The regularizer acts on p; that of ``RUN(acceptance=1 / a)`` acts on the logarithm of t, see :class:`RUN`.
    background : array-like (d,) or (B, d), or histogram, default=None
        Expected number b_j of items in each observed bin that belong to no class. None stands for zero.
    counts : bool, default=False
        Return the expected numbers t_i of items instead of fractions.

    Returns
    -------
    ndarray (n,) or (B, n), or histogram
        A histogram over the true axis, of the type of q, where q and M are histograms.

    Notes
    -----
    Histograms are those of `hist` and `boost_histogram`. Their underflow and overflow bins are left out.

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
    method = RUN() if method is None else method
    as_result = _result_type(q, M)
    _check_axes(q, M, acceptance, background)
    R, a = _response(M, acceptance)
    single = _is_histogram(q) or np.ndim(q) == 1
    Q, sizes = _observed(q, N, len(R), single=single)
    if not isinstance(method, Quantifier):
        raise TypeError(f"method must be a quantifier such as RUN(tau=10.0), got {method!r}.")
    if a is not None:
        _check_factors(method, a)
    if not isinstance(counts, bool | np.bool_):
        raise TypeError(f"counts must be True or False, got {counts!r}.")
    if sizes is None and (counts or background is not None):
        raise ValueError(
            "N must be given where q are fractions and numbers of items are asked for (counts, background)."
        )
    if background is None:
        known, signal = None, sizes
    else:
        known, signal = _background(background, sizes, Q.shape)
        Q = Q * (sizes / signal)[:, None]
    P = estimates(method._solve_response(Q, R, signal, known))
    if a is not None:
        P = P / a
    if counts:
        P = P * signal[:, None]
    elif a is not None:
        P = P / P.sum(axis=1, keepdims=True)
    return as_result(P[0] if single else P)


def _response(M, acceptance):
    """Return M (d, n) with columns that sum to one, and the acceptance (n,) or None."""
    if _is_histogram(M):
        R = _contents("M", M, n_axes=2, counted=False)
        sums = R.sum(axis=0)
        if (R < 0).any() or (sums == 0).any():
            raise ValueError(
                f"M must have entries >= 0, and some in every true bin, got sums {_short(sums)} over the observed bins."
            )
        R = R / sums
    else:
        R = _matrix("M", M)
    if R.shape[1] < 2:
        raise ValueError(f"M must have at least 2 columns, one per class, got shape {R.shape}.")
    sums = R.sum(axis=0)
    if acceptance is None:
        a = None
    elif isinstance(acceptance, str):
        if acceptance != "columns":
            raise ValueError(f"acceptance must be 'columns' or one number per class, got {acceptance!r}.")
        if _is_histogram(M):
            raise ValueError(
                "acceptance must be one number per class where M is a histogram: its entries are no shares."
            )
        a = sums
    else:
        a = _vector("acceptance", acceptance, R.shape[1], "class")
    if a is not None and not ((a > 0) & (a <= 1 + COLUMN_TOLERANCE)).all():
        raise ValueError(f"acceptance must be shares in (0, 1], one per class, got {_short(a)}.")
    whole = np.abs(sums - 1) <= COLUMN_TOLERANCE
    if (R < 0).any() or not (whole.all() or (a is not None and (np.abs(sums - a) <= COLUMN_TOLERANCE * a).all())):
        raise ValueError(
            "the columns of M must be distributions over the observed bins (>= 0, sum 1"
            f"{'' if a is None else ' or acceptance'}), got column sums {_short(sums)}"
            f"{'; are the other items lost? Then give acceptance' if a is None and (sums < 1).all() else ''}."
        )
    tiny = (R > 0) & (R < SMALLEST)
    if tiny.any():
        raise ValueError(f"the entries of M must be 0 or at least {SMALLEST:g}, got {R[tiny].min():g}.")
    return (R, a) if whole.all() else (R / sums, a)


def _observed(q, N, d, *, single):
    """Return fractions (B, d) and the number of items of each row, (B,), or None if that is unknown."""
    if _is_histogram(q):
        q = _contents("q", q, n_axes=1)
    Q = _matrix("q", [q] if single else q)
    if Q.shape[1] != d:
        raise ValueError(f"q must have one entry per row of M, {d}, got {Q.shape[1]}.")
    with np.errstate(over="ignore"):
        totals = Q.sum(axis=1)
    if (Q < 0).any() or (totals == 0).any():
        raise ValueError("q must be counts or fractions >= 0 with a positive sum in every row.")
    if not np.isfinite(totals).all():
        raise ValueError(f"q must have a finite sum in every row, got entries up to {Q.max():g}.")
    fractions = bool((np.abs(totals - 1) <= 1e-6).all())
    if N is None:
        sizes = None if fractions else totals
    else:
        sizes = np.array([check_real("N", n, low=0, open_low=True) for n in np.atleast_1d(N).tolist()])
        if len(sizes) not in (1, len(Q)):
            raise ValueError(f"N must be one number, or one per row of q, {len(Q)}, got {len(sizes)}.")
        sizes = np.broadcast_to(sizes, len(Q))
        if not fractions and not np.allclose(sizes, totals, rtol=1e-6, atol=0):
            row = int(np.argmax(np.abs(sizes / totals - 1)))
            raise ValueError(
                f"N must be the sum of q where q are counts, {totals[row]:g} in row {row}, got {sizes[row]:g}; "
                "leave N out, or divide q by its sum."
            )
    return Q / totals[:, None], sizes


def _background(background, sizes, shape):
    """Return the background in units of the signal, (B, d), and the number of items of the signal, (B,)."""
    if _is_histogram(background):
        background = _contents("background", background, n_axes=1, counted=False)
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


def _check_factors(method, a):
    """Refuse a method whose own factors contradict the acceptance (n,): they are its inverse, up to the unit."""
    parameters = method.get_params()
    factors = parameters.get("acceptance", parameters.get("regularizer__acceptance"))
    if factors is None or np.shape(factors) != a.shape:  # a wrong shape is the method's to refuse
        return
    product = np.asarray(factors, dtype=np.float64) * a
    if not np.allclose(product, product[0], rtol=1e-6, atol=0):
        raise ValueError(
            f"acceptance {_short(a)} contradicts that of {type(method).__name__}, whose factors must be proportional "
            f"to 1 / acceptance, got {_short(np.asarray(factors, dtype=np.float64))}."
        )


def _is_histogram(thing):
    # Whoever has a histogram has loaded its package; hist builds on boost_histogram.
    package = sys.modules.get("boost_histogram")
    return package is not None and isinstance(thing, package.Histogram)


def _contents(name, histogram, *, n_axes, counted=True):
    """Return the bin contents of a histogram, without underflow and overflow."""
    if histogram.ndim != n_axes:
        raise ValueError(
            f"{name} must be a histogram with {n_axes} {'axis' if n_axes == 1 else 'axes'}, got {histogram.ndim}."
        )
    if histogram.kind != "COUNT":
        raise ValueError(f"{name} must be a histogram of counts, got one of means.")
    contents = np.asarray(histogram.values(), dtype=np.float64)
    variances = histogram.variances()
    if counted and (variances is None or not np.allclose(variances, contents)):
        raise ValueError(
            f"{name} must be a histogram of unweighted counts, got one whose variances differ from its contents: "
            "a likelihood of counts does not hold for weights; give the contents divided by their sum, and N, if they "
            "will do."
        )
    return contents


def _result_type(q, M):
    """Return the function that turns the estimate into what the caller gets."""
    if not (_is_histogram(q) and _is_histogram(M)):
        return lambda estimate: estimate
    if q.ndim == 1 and M.ndim == 2 and not _same_bins(q.axes[0], M.axes[0]):
        raise ValueError(f"the first axis of M must be that of q, {q.axes[0]!r}, got {M.axes[0]!r}.")

    def histogram(estimate):
        storage = sys.modules["boost_histogram"].storage.Double()
        result = type(q)(M.axes[1], storage=storage)
        result.view(flow=False)[...] = estimate
        # Estimates are no counts: this makes the package forget that it could take the contents for variances.
        result *= 1.0
        return result

    return histogram


def _check_axes(q, M, acceptance, background):
    """Refuse histograms of the acceptance and the background whose bins are not those of M and q."""
    observed = q.axes[0] if _is_histogram(q) else M.axes[0] if _is_histogram(M) else None
    true = M.axes[1] if _is_histogram(M) and M.ndim == 2 else None
    for name, value, kind, axis in (
        ("background", background, "observed", observed),
        ("acceptance", acceptance, "true", true),
    ):
        if axis is None or not _is_histogram(value) or value.ndim != 1:  # more axes are refused later
            continue
        if not _same_bins(value.axes[0], axis):
            raise ValueError(f"the axis of {name} must be the {kind} one, {axis!r}, got {value.axes[0]!r}.")


def _same_bins(one, other):
    """Say whether two axes have the same bins; names, labels and overflow bins may differ."""
    if len(one) != len(other):
        return False
    if one.traits.discrete or other.traits.discrete:
        return list(one) == list(other)
    return np.allclose(one.edges, other.edges, rtol=1e-9, atol=0)


def _vector(name, value, n, what):
    if _is_histogram(value):
        value = _contents(name, value, n_axes=1, counted=False)
    vector = _matrix(name, [value])[0]
    if len(vector) != n:
        raise ValueError(f"{name} must be one number per {what}, {n}, got {len(vector)}.")
    return vector


def _matrix(name, value):
    try:
        if np.iscomplexobj(value):
            raise TypeError
        array = np.asarray(value, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise TypeError(f"{name} must be an array of numbers, got {value!r:.80}.") from error
    if array.ndim != 2 or array.size == 0 or not np.isfinite(array).all():
        raise ValueError(f"{name} must be a finite array of numbers with rows and columns, got shape {array.shape}.")
    return array


def _short(vector):
    return np.array2string(vector, precision=4, threshold=8)
