"""`unfold`: from an observed histogram and a response to a spectrum with its errors."""

from collections.abc import Mapping
from numbers import Real
from typing import Any

import numpy as np
from scipy.stats import chi2
from sklearn.base import clone

from ordinalq._utils.validation import Floats, check_choice, check_integer, check_random_state
from ordinalq.quantifiers.base import Quantifier
from ordinalq.quantifiers.run_ibu import RUN
from ordinalq.regularizers import differences
from ordinalq.unfolding.engine import Fit, Unfolder
from ordinalq.unfolding.measurement import Measurement, read_measurement
from ordinalq.unfolding.response import check_proportional
from ordinalq.unfolding.result import Unfolding
from ordinalq.unfolding.strength import MORE, N_TOYS, RULES, Scan, Strengths, pilot, scan, toys
from ordinalq.unfolding.systematics import Source, read_sources

DEFAULT_RULE = "information"
# From this number of bins on the default may smooth third differences of the logarithm, which lets log-parabolas pass,
# and not second ones only, which lets power laws pass; below, third ones leave more than half of all directions free.
MANY_BINS = 6
# A fit with fewer degrees of freedom left has no chi-square that could be judged.
LEFT = 0.5


def unfold(
    counts: Any,
    response: Any,
    *,
    method: Quantifier | None = None,
    acceptance: Any = None,
    background: Any = None,
    tau: float | str | None = None,
    n_df: float | None = None,
    variances: Any = None,
    edges: Any = None,
    systematics: Mapping[str, Source] | None = None,
    propagation: str = "linear",
    n_toys: int = N_TOYS,
    random_state: Any = 0,
) -> Unfolding:
    """Unfold an observed histogram: numbers of events of each true bin, with their errors.

    Bin j is expected to hold lambda_j = sum_i M_ji a_i t_i + b_j events. The estimate of t is that of
    :func:`ordinalq.solve`; its errors are propagated from the counts and from what is uncertain about M, a and b.

    Parameters
    ----------
    counts : array-like (d,) or (d1, d2), or histogram
        What was observed, background included.
    response : array-like (observed shape, true shape), or histogram with the axes (observed, true)
        Response M: the distribution of each true bin over the observed ones. Columns of a histogram of simulated events
        are divided by their sums, and its statistics become the systematic error "simulation".
    method : quantifier, default=None
        A method that :func:`ordinalq.solve` takes, such as ``RUN(tau=0.0)`` (no regularization), ``RUN(order=2)`` or
        ``IBU(interpolation=0.0, stop="ks", tol=0.01)``. None stands for :class:`RUN` on the logarithm of the spectrum,
        from six bins on with the better of orders 1 and 2. An acceptance that it lacks is filled in.
    acceptance : array-like of the true shape, histogram or "columns", default=None
        Probability a_i in (0, 1] that an event of true bin i is observed; None means one, "columns" the sums of the
        columns of `response`.
    background : array-like of the observed shape, or histogram, default=None
        Expected events b_j that belong to no true bin.
    tau : float or {"information", "gcv", "lcurve", "global-correlation", "toys"}, default=None
        Strength of the regularizer (for IBU a rule chooses the number of iterations). None means "information"
        if `method` is None, else what the method says.
    n_df : float, default=None
        Effective degrees of freedom instead of `tau`, see :class:`RUN`.
    variances : array-like of the observed shape, default=None
        Variances of weighted counts, sums of squared weights; None stands for plain counts.
    edges : array-like (n + 1,) or sequence of them, default=None
        Edges of the true bins, for tables and pictures; None stands for those of a response histogram.
    systematics : mapping of names to sources, default=None
        What is uncertain: :class:`SimulatedEvents`, :class:`Uncertainty`, :class:`ShiftedModel`.
    propagation : {"linear", "toys"}, default="linear"
        How `systematics` are propagated: to first order, or by `n_toys` unfoldings, each with other M, a and b.
    n_toys : int, default=100
        Number of toys for ``tau="toys"`` and ``propagation="toys"``.
    random_state : int, Generator or None, default=0
        Seed of the toys.

    Returns
    -------
    Unfolding

    Examples
    --------
    >>> import ordinalq as oq
    >>> M = [[0.9, 0.1, 0.0], [0.1, 0.8, 0.1], [0.0, 0.1, 0.9]]
    >>> spectrum = oq.unfold([480, 320, 210], M, tau=0.0, acceptance=[0.5, 0.8, 0.8])
    >>> spectrum.counts.round(1)
    array([997.1, 391.1, 248.2])
    >>> spectrum.error.round(1)
    array([49.6, 29.1, 20.7])
    """
    known = read_measurement(
        counts, response, acceptance=acceptance, background=background, variances=variances, edges=edges
    )
    sources = read_sources(systematics, known)
    check_choice("propagation", propagation, ("linear", "toys"))
    n_toys, rng = check_integer("n_toys", n_toys, minimum=2), check_random_state(random_state)
    if tau is None and n_df is None and method is None:
        tau = DEFAULT_RULE
    shifts = [shift for source in sources.values() for shift in source.shifts(known)]
    unfolder = Unfolder(_method(method, known, tau, n_df), known, shifts)
    G, seen, found = known.counts[None], None, None
    if isinstance(tau, str):
        scans = [scan(one, G) for one in _candidates(unfolder, tau if method is None else None)]
        unfolder, found = _choose(scans, tau, n_toys, rng)
        seen = scans[0] if method is None else None
    fit = unfolder.solve(G, None if found is None else found.strengths[[found.chosen]])
    J = unfolder.jacobian(fit)
    bias = judged_bias(unfolder, fit, J, seen)
    if propagation == "linear":
        systematic = {name: source.covariance(unfolder, fit) for name, source in sources.items()}
    else:
        systematic = {name: source.toy_covariance(unfolder, fit, n_toys, rng) for name, source in sources.items()}
    return _result(unfolder, fit, J, bias, systematic, found)


def _method(method: Quantifier | None, known: Measurement, tau: Any, n_df: Any) -> Quantifier:
    """Return the method with acceptance, shape and strength filled in."""
    if method is not None and not isinstance(method, Quantifier):
        raise TypeError(f"method must be a quantifier such as RUN(tau=0.0) or IBU(), got {method!r:.80}.")
    found: Quantifier = clone(method) if method is not None else _default(known, n_df)
    parameters = found.get_params(deep=False)
    filled: dict[str, Any] = {}
    if len(known.shape) > 1:
        if "shape" in parameters:
            filled["shape"] = known.shape
        elif parameters.get("order", 0) > 0 and parameters.get("interpolation", 1.0) != 0:
            raise ValueError(f"method must not smooth along one axis where the true bins are a grid, got {found}.")
    if method is not None:
        check_proportional(found, known.acceptance)
        if "acceptance" in parameters and parameters["acceptance"] is None and (known.acceptance != 1).any():
            filled["acceptance"] = known.acceptance
    if isinstance(tau, str):
        check_choice("tau", tau, (*RULES, "toys"))
        filled |= {name: value for name, value in (("tau", 1.0), ("n_df", None)) if name in parameters}
    elif tau is not None:
        filled["tau"] = tau
    if n_df is not None:
        if tau is not None:
            raise ValueError("n_df must be None beside tau: both say how much to smooth.")
        filled["n_df"] = n_df
    missing = [name for name in filled if name not in parameters]
    if missing:
        raise ValueError(f"{missing[0]} must be None: {type(found).__name__} has no such parameter.")
    found.set_params(**filled)
    return found


def _default(known: Measurement, n_df: Any) -> RUN:
    """Return the method that stands for None; few bins, and few degrees of freedom, need a lower order."""
    n, shape = len(known.acceptance), known.shape
    order = min(2 if max(shape) >= MANY_BINS else 1, max(shape) - 2)
    while isinstance(n_df, Real) and order > 0 and n_df <= n - np.linalg.matrix_rank(differences(n, order, shape)):
        order -= 1
    return RUN(order=order, acceptance=known.acceptance)


def _candidates(unfolder: Unfolder, rule: str | None) -> list[Unfolder]:
    """Return what the rule may choose from: third and second differences by default, else what was asked for."""
    if rule != DEFAULT_RULE or unfolder.method.get_params()["order"] < 2:
        return [unfolder]
    lower = clone(unfolder.method).set_params(order=1)
    return [unfolder, Unfolder(lower, unfolder.measurement, unfolder.shifts)]


def _choose(scans: list[Strengths], rule: str, n_toys: int, rng: np.random.Generator) -> tuple[Unfolder, Scan]:
    """Return the best unfolder of one histogram, and its scan with the strength that a rule chooses."""
    criteria = [toys(of, n_toys, rng) if rule == "toys" else RULES[rule](of) for of in scans]
    k = min(range(len(scans)), key=lambda k: float(criteria[k].min()))
    of, criterion, tried = scans[k], criteria[k], tuple(of.unfolder.method for of in scans)
    parts = of.strengths[:, 0], of.n_df[:, 0], criterion[:, 0], of.deviance[:, 0]
    return of.unfolder, Scan(rule, *parts, chosen=int(criterion.argmin()), tried=tried)


def pilot_scan(unfolder: Unfolder, G: Floats) -> Strengths:
    """Return the scan of histograms G (B, d) by which biases are judged, that of the default."""
    known = unfolder.measurement
    return scan(Unfolder(_method(None, known, DEFAULT_RULE, None), known, unfolder.shifts), G)


def judged_bias(unfolder: Unfolder, fit: Fit, J: Floats, of: Strengths | None = None) -> tuple[Floats, Floats]:
    """Return the bias (B, n) of estimates with derivatives J (B, n, d), and its variance, judged by rougher spectra.

    These are chosen from a scan of RUN on the logarithm of the spectrum, which may be at hand.
    """
    of = pilot_scan(unfolder, fit.G) if of is None else of
    return unfolder.bias(fit, J, *pilot(of, unfolder.freedom(J) + MORE))


def _result(
    unfolder: Unfolder,
    fit: Fit,
    J: Floats,
    bias: tuple[Floats, Floats],
    systematic: dict[str, Floats],
    found: Scan | None,
) -> Unfolding:
    """Return the record of one estimate."""
    known = unfolder.measurement
    refolded = known.fold(fit.T)[0]
    n_df = float(unfolder.freedom(J)[0])
    left = len(refolded) - n_df
    # Bins that do not fluctuate, empty or with a stated variance of zero, are left out by the pseudo-inverse.
    off = known.counts - refolded
    chi_square = float(off @ np.linalg.pinv(unfolder.spread(fit.T)[0], hermitian=True) @ off)
    return Unfolding(
        measurement=known,
        method=unfolder.method,
        flat=fit.T[0],
        shifts=unfolder.shifts,
        statistical=unfolder.statistical(fit, J)[0],
        systematic=systematic,
        bias_flat=bias[0][0],
        bias_variance=bias[1][0],
        strength=float(fit.strengths[0]),
        n_df=n_df,
        n_iter=int(fit.n_iter[0]),
        converged=bool(fit.converged[0]),
        refolded_flat=refolded,
        chi_square=chi_square,
        dof=left,
        p_value=float(chi2.sf(chi_square, left)) if left > LEFT else float("nan"),
        scan=found,
    )
