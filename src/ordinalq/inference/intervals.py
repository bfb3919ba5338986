"""Intervals around estimates: percentiles of their replicates, extended to the estimate where it lies outside.

Models that were trained with groups know what their intervals missed on those, and correct the widths.
"""

import warnings
from dataclasses import replace

import numpy as np
import numpy.typing as npt

from ordinalq._utils.validation import Floats
from ordinalq.inference.bounds import Bounds
from ordinalq.inference.estimates import Estimates
from ordinalq.inference.model import FittedQuantifier
from ordinalq.inference.options import Plan
from ordinalq.inference.widths import corrected, percentiles, statistics
from ordinalq.samples.summary import Summary

# Columns of M are dependent where a singular value is below this part of its norm.
RANK_TOLERANCE = 1e-9


def with_intervals(
    quantifier: FittedQuantifier, summary: Summary, estimates: Estimates, level: float, plan: Plan, block: int = 0
) -> Estimates:
    """Return the estimates of a block of summarized samples with bounds and covariances."""
    closed = quantifier.closed_form(summary, level, plan.of)
    if closed is not None:
        E, factor = closed.covariance, closed.shared
        own = E if factor is None else E - _product(factor)
        P = estimates.prevalences if closed.shares is None else closed.shares
        return replace(estimates, prevalences=P, bounds=closed.bounds.holding(P), covariance=E, own=own, shared=factor)
    _warn_of_equal_columns(quantifier)
    P = estimates.prevalences
    B, n = P.shape
    estimate = statistics(P)
    lower, upper = np.empty_like(estimate), np.empty_like(estimate)
    covariance, own = np.empty((B, n, n)), np.empty((B, n, n))
    shared: list[npt.NDArray[np.float32]] = []
    for rows, R, n_models in quantifier.replicates(summary, P, plan.draws(block)):
        lower[rows], upper[rows] = percentiles(R, level)
        D = R - R.mean(axis=0)
        covariance[rows] = own[rows] = np.einsum("rbi,rbj->bij", D, D, optimize=True) / (len(R) - 1)
        if n_models > 1:
            # The mean over replicates with the same M: what is left of the samples' own noise differs between samples.
            common = D.reshape(n_models, -1, *D.shape[1:]).mean(axis=1) / np.sqrt(n_models - 1)
            shared.append(common.transpose(1, 2, 0).astype(np.float32))
            # Of r replicates with the same M the mean has the common part C and W / r of the own part W.
            r = len(R) // n_models
            own[rows] = (covariance[rows] - _product(shared[-1])) * (r / max(r - 1, 1))
    factor = np.concatenate(shared) if shared else None
    correction = quantifier.width_correction_
    if correction is not None:
        lower, upper = corrected(estimate, lower, upper, correction, level)
        scale, extra = np.sqrt((correction[:, :, :n] ** 2).mean(axis=1))
        # Shares sum to one, and their errors to zero.
        centred = np.eye(n) - 1 / n
        covariance, own = (
            centred @ (V * scale[:, None] * scale + np.diag(extra**2)) @ centred for V in (covariance, own)
        )
        factor = None if factor is None else (factor * scale[:, None]).astype(np.float32)
    # Whole distributions end at one.
    ends = (np.delete(end, 2 * n - 1, axis=1) for end in (lower, upper))
    bounds = Bounds.of_statistics(level, plan.of, *ends).holding(P)
    return replace(estimates, bounds=bounds, covariance=covariance, own=own, shared=factor)


def _product(factor: Floats | npt.NDArray[np.float32]) -> Floats:
    """Return L L' of factors (B, n, k), in double precision."""
    L = factor.astype(np.float64)
    return np.asarray(np.matmul(L, L.transpose(0, 2, 1)))


def _warn_of_equal_columns(quantifier: FittedQuantifier) -> None:
    """Warn where M (d, n) maps different distributions to the same q: no noise moves the estimate among these."""
    M = quantifier.response_matrix()
    if M is None:
        return
    rank = np.linalg.matrix_rank(M - M.mean(axis=1, keepdims=True), tol=RANK_TOLERANCE * np.linalg.norm(M))
    if rank < M.shape[1] - 1:
        what = "features do" if quantifier.on == "features" else "classifier does"
        warnings.warn(
            f"the {what} not tell all classes apart: the data leave some of their shares open, and the intervals, "
            "which do not show that, are too narrow; see diagnose.",
            stacklevel=5,
        )
