"""`unfold`: from an observed histogram and a response to a spectrum."""

import warnings
from collections.abc import Mapping
from typing import Any

import numpy as np
from scipy.stats import chi2
from sklearn.base import clone

from ordinalq._utils.validation import Floats, check_choice, check_integer, check_random_state
from ordinalq.quantifiers.base import Quantifier
from ordinalq.quantifiers.run_ibu import RUN
from ordinalq.unfolding.engine import Fit, Unfolder
from ordinalq.unfolding.measurement import Measurement, read_measurement
from ordinalq.unfolding.response import check_proportional
from ordinalq.unfolding.result import Unfolding
from ordinalq.unfolding.spectrum import SmoothSpectrum, SpectrumUnfolder, make_unfolder
from ordinalq.unfolding.strength import N_TOYS, RULES, Scan, choose_strength
from ordinalq.unfolding.systematics import Source, read_sources

DEFAULT_RULE = "evidence"
# A fit with fewer degrees of freedom left has no chi-square that could be judged.
LEFT = 0.5
# The choice of the strength is degenerate if the weight of the weakest one is above this, or if the estimate has next
# to no freedom and a p-value below the second number.
AT_THE_END, BAD_FIT = 0.5, 1e-3


def unfold(
    counts: Any,
    response: Any,
    *,
    method: Any = None,
    acceptance: Any = None,
    background: Any = None,
    fakes: Any = None,
    tau: float | str | None = None,
    n_df: float | None = None,
    variances: Any = None,
    covariance: Any = None,
    edges: Any = None,
    axis: str | None = None,
    reference: Any = None,
    blocks: Any = None,
    flow: bool = False,
    systematics: Mapping[str, Source] | None = None,
    propagation: str = "linear",
    n_toys: int = N_TOYS,
    random_state: Any = 0,
) -> Unfolding:
    """Unfold an observed histogram: events of each true bin, with errors.

    The expected number of events in bin j is lambda_j = sum_i M_ji a_i t_i / (1 - f_j) + b_j. The errors of the
    estimate of t are propagated from the counts and from the uncertainties of M, a and b.

    Parameters
    ----------
    counts : array-like (d,) or (d1, d2), or histogram
        Observed counts, background included. Histograms are objects of the UHI protocol: hist, boost-histogram, uproot.
    response : array-like (observed shape, true shape), or histogram with the axes (observed, true)
        Response M: the distribution of each true bin over the observed bins. The columns of a histogram of simulated
        events are divided by their sums, and its statistical errors become the systematic error "simulation".
    method : SmoothSpectrum or quantifier, default=None
        None means :class:`~ordinalq.unfolding.SmoothSpectrum`, or ``RUN(tau=0.0)`` with ``tau=0.0``. The methods
        of :func:`ordinalq.solve` are accepted too, such as ``RUN(order=2)`` or ``IBU(interpolation=0.0, max_iter=4)``.
        If the parameter `acceptance` of such a method is None, it is set.
    acceptance : float, array-like of the true shape, histogram or "columns", default=None
        Probability a_i in (0, 1] that an event of true bin i is observed (one minus the misses). None means one.
        "columns" uses the column sums of `response`.
    background : array-like of the observed shape, or histogram, default=None
        Expected events b_j that belong to no true bin, as counts.
    fakes : array-like of the observed shape, or histogram, default=None
        Fraction f_j in [0, 1) of the observed signal events of bin j that have no true partner.
    tau : float or {"evidence", "information", "gcv", "lcurve", "global-correlation", "toys"}, default=None
        Strength of the regularizer, or a rule that chooses it. For IBU, a rule chooses the number of iterations. None
        means "evidence" if `method` is None, else the strength of the method.
    n_df : float, default=None
        Effective degrees of freedom instead of `tau`.
    variances : array-like of the observed shape, default=None
        Variances of weighted counts: sums of squared weights. None means counts without weights.
    covariance : array-like (d, d), default=None
        Covariance of the counts. The counts are then treated as normally distributed, and may be negative.
    edges : array-like (n + 1,) or sequence of them, default=None
        Edges of the true bins: one array, one per axis, or one per block of spectra that are stacked along one axis.
        None means those of a response histogram, or bins of equal width.
    axis : {"log", "linear"}, default=None
        Scale on which the log density is smooth. None means "log" if all edges are positive.
    reference : array-like of the true shape, default=None
        Spectrum relative to which the estimate is smooth.
    blocks : sequence of int, default=None
        Numbers of bins of stacked spectra (regions, charge states), which are not smoothed across their borders.
    flow : bool, default=False
        Whether underflow and overflow bins of histograms are kept as bins. They are not regularized.
    systematics : mapping of names to sources, default=None
        Sources of systematic errors: :class:`SimulatedEvents`, :class:`Uncertainty`, :class:`ShiftedModel`,
        :class:`Luminosity`, :class:`Correlated`.
    propagation : {"linear", "toys"}, default="linear"
        Propagation of `systematics`: to first order, or by `n_toys` unfoldings, each with another response and
        background.
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
        counts,
        response,
        acceptance=acceptance,
        background=background,
        fakes=fakes,
        variances=variances,
        covariance=covariance,
        edges=edges,
        blocks=blocks,
        flow=flow,
    )
    sources = read_sources(systematics, known)
    check_choice("propagation", propagation, ("linear", "toys"))
    n_toys, rng = check_integer("n_toys", n_toys, minimum=2), check_random_state(random_state)
    if tau is None and n_df is None and method is None:
        tau = DEFAULT_RULE
    by_source = {name: source.shifts(known) for name, source in sources.items()}
    shifts = [shift for part in by_source.values() for shift in part]
    unfolder = make_unfolder(_method(method, known, tau, n_df, axis, reference), known, shifts)
    g = known.counts
    found = choose_strength(unfolder, g, tau, n_toys, rng) if isinstance(tau, str) else None
    fit = unfolder.solve(g[None], None if found is None else np.array([found.strength]))
    moves = {name: unfolder.moved(fit, part)[:, 0] for name, part in by_source.items()}
    if propagation == "linear":
        systematic = {name: part.T @ part for name, part in moves.items()}
    else:
        systematic = {name: source.toy_covariance(unfolder, fit, n_toys, rng) for name, source in sources.items()}
    result = _result(unfolder, fit, systematic, moves, found)
    _warn_if_degenerate(unfolder, result)
    return result


def _method(method: Any, known: Measurement, tau: Any, n_df: Any, axis: Any, reference: Any) -> Any:
    """Return the method with acceptance, shape and strength filled in."""
    if method is not None and not isinstance(method, Quantifier | SmoothSpectrum):
        raise TypeError(
            f"method must be SmoothSpectrum, or a quantifier such as RUN(tau=0.0) or IBU(), got {method!r:.80}."
        )
    if method is not None and (axis is not None or reference is not None):
        raise ValueError("axis and reference must be None with method. Pass them to SmoothSpectrum.")
    if method is None:
        is_free = not isinstance(tau, str) and tau is not None and tau == 0 and known.covariance is None
        found: Any = RUN() if is_free else SmoothSpectrum(axis=axis, reference=reference)
    else:
        found = clone(method)
    parameters = found.get_params(deep=False)
    filled: dict[str, Any] = {}
    if len(known.shape) > 1:
        if "shape" in parameters:
            filled["shape"] = known.shape
            if max(known.shape) < 3:
                filled["order"] = 0
        elif parameters.get("order", 0) > 0 and parameters.get("interpolation", 1.0) != 0:
            raise ValueError(f"method must not smooth along one axis if the true bins are a grid, got {found}.")
    elif method is None and "order" in parameters and known.shape[0] < 3:
        filled["order"] = 0
    if isinstance(found, Quantifier):
        a = known.relative_acceptance
        check_proportional(found, a)
        if "acceptance" in parameters and parameters["acceptance"] is None and (a != 1).any():
            filled["acceptance"] = a
    if isinstance(tau, str):
        check_choice("tau", tau, (DEFAULT_RULE, *RULES, "toys"))
        filled |= {name: value for name, value in (("tau", 1.0), ("n_df", None)) if name in parameters}
    elif tau is not None:
        filled["tau"] = tau
    if n_df is not None:
        if tau is not None:
            raise ValueError(f"n_df must be None with tau, got {n_df}. Pass one of them.")
        filled["n_df"] = n_df
    missing = [name for name in filled if name not in parameters]
    if missing:
        raise ValueError(f"{missing[0]} must be None: {type(found).__name__} has no such parameter.")
    found.set_params(**filled)
    return found


def _result(
    unfolder: Unfolder, fit: Fit, systematic: dict[str, Floats], moves: dict[str, Floats], found: Scan | None
) -> Unfolding:
    """Return the record of one estimate."""
    known = unfolder.measurement
    J = unfolder.jacobian(fit)
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
        jacobian=J[0],
        statistical=unfolder.statistical(fit, J)[0],
        systematic=systematic,
        moves=moves,
        strength=float(fit.strengths[0]),
        n_df=n_df,
        n_iter=int(fit.n_iter[0]),
        converged=bool(fit.converged[0]),
        refolded_flat=refolded,
        chi_square=chi_square,
        dof=left,
        p_value=float(chi2.sf(chi_square, left)) if left > LEFT else float("nan"),
        scan=found,
        shifts=unfolder.shifts,
    )


def _best_p_value(unfolder: SpectrumUnfolder, result: Unfolding) -> float:
    """Return the p-value of the counts with the weakest regularization of a scan."""
    known = unfolder.measurement
    rough = unfolder.solve(known.counts[None], unfolder.grid(known.counts[None])[0])
    off = known.counts - known.fold(rough.T)[0]
    value = float(off @ np.linalg.pinv(unfolder.spread(rough.T)[0], hermitian=True) @ off)
    return float(chi2.sf(value, max(len(off) - unfolder.freedom(unfolder.jacobian(rough))[0], LEFT)))


def _warn_if_degenerate(unfolder: Unfolder, result: Unfolding) -> None:
    """Warn if the rule chose one end of the scan against the data."""
    scan = result.scan
    if scan is None or not isinstance(unfolder, SpectrumUnfolder):
        return
    if scan.rule == DEFAULT_RULE:
        weights = np.exp(-(scan.criterion - scan.criterion.min()) / 2)
        if weights[0] > AT_THE_END * weights.sum():
            warnings.warn(
                "the counts support the weakest regularization that was tried: the estimate is hardly regularized. "
                "Check response and background, or pass fewer bins, n_df= or tau=.",
                UserWarning,
                stacklevel=3,
            )
    if result.n_df < unfolder.curvature.n_free + LEFT and result.p_value < BAD_FIT < _best_p_value(unfolder, result):
        warnings.warn(
            f"the estimate has {result.n_df:.2g} degrees of freedom, but does not describe the counts (p-value "
            f"{result.p_value:.1g}). Check response and background, or pass n_df= or systematics=.",
            UserWarning,
            stacklevel=3,
        )
