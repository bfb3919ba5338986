"""The obvious alternative to a batch: one scipy minimization per sample, with analytic derivatives.

For methods that no other package has. Three ways are tried for every method: the soft-max chart with L-BFGS-B
(gradient) and with trust-ncg (gradient and Hessian), and SLSQP on the simplex itself (gradient). Where the objective is
quadratic, SLSQP gets p'Ap - 2 b'p directly, which is the leanest loop that can be written. The mean over the sample's
items is within the clock. DAQP, if it is installed, is the fastest library for quadratic programs.
"""

import time
import warnings

import numpy as np
from interface import linear_objective
from scipy.optimize import minimize

from ordinalq.simplex import softmax, softmax_derivatives

try:
    import daqp
except ImportError:  # see requirements.txt
    daqp = None

__all__ = ["QUADRATIC_WAYS", "WAYS", "loop", "solve_daqp"]

ROW = np.zeros(1, dtype=np.intp)
# How DAQP marks an equality among the constraints.
EQUALITY = 5


def _in_chart(objective, method, **options):
    """Minimise over the latents of the soft-max chart, from the uniform p."""
    # Likelihoods are sums over the items: without the scale their gradients never get below the tolerances.
    scale = objective.scale[0]

    def derivatives(latents):
        P = softmax(latents[None])
        return softmax_derivatives(P, objective.derivatives(P, ROW))

    def value_and_gradient(latents):
        at = derivatives(latents)
        return at.value[0] / scale, at.gradient[0] / scale

    hessian = {"hess": lambda latents: derivatives(latents).hessian[0] / scale} if method == "trust-ncg" else {}
    start = np.zeros(objective.n_classes - 1)
    result = minimize(value_and_gradient, start, jac=True, method=method, options=options, **hessian)
    return softmax(result.x[None])[0]


def _l_bfgs_b(objective):
    return _in_chart(objective, "L-BFGS-B", maxiter=1000, ftol=1e-12, gtol=1e-7)


def _trust_ncg(objective):
    return _in_chart(objective, "trust-ncg", maxiter=1000, gtol=1e-7)


def _slsqp(objective):
    """Minimise over the simplex itself, from the uniform p."""
    n = objective.n_classes
    scale = objective.scale[0]
    form = objective.quadratic()
    if form is None:

        def value_and_gradient(p):
            at = objective.derivatives(np.maximum(p, 1e-12)[None], ROW)
            return at.value[0] / scale, at.gradient[0] / scale

    else:
        A, b = form[0], form[1][0]

        def value_and_gradient(p):
            Ap = A @ p
            return p @ (Ap - 2 * b), 2 * (Ap - b)

    ones = np.ones(n)
    total = {"type": "eq", "fun": lambda p: p.sum() - 1, "jac": lambda p: ones}
    result = minimize(
        value_and_gradient,
        np.full(n, 1 / n),
        jac=True,
        method="SLSQP",
        bounds=[(0, 1)] * n,
        constraints=[total],
        options={"maxiter": 1000, "ftol": 1e-12},
    )
    p = np.maximum(result.x, 0)
    return p / p.sum()


def solve_daqp(A, b):
    """Minimise p'Ap - 2 b'p over the simplex with DAQP, an active-set solver in C; A (n, n), b (n,)."""
    n = len(b)
    lower, upper, sense = np.zeros(n + 1), np.ones(n + 1), np.zeros(n + 1, dtype=np.int32)
    lower[n], sense[n] = 1, EQUALITY
    found = daqp.solve(2 * A, -2 * b, np.ones((1, n)), upper, lower, sense)
    p = np.maximum(found[0], 0)
    return p / p.sum()


def _daqp(objective):
    A, b = objective.quadratic()
    return solve_daqp(np.ascontiguousarray(A), b[0])


WAYS = {"L-BFGS-B, chart": _l_bfgs_b, "trust-ncg, chart": _trust_ncg, "SLSQP, simplex": _slsqp}
QUADRATIC_WAYS = {} if daqp is None else {"DAQP": _daqp}


def loop(q, F, samples, way):
    """Solve sample by sample.

    Parameters
    ----------
    q : fitted LinearQuantifier
    F : ndarray (N, d)
        Representation of the pool.
    samples : Samples
    way : str
        A key of `WAYS`, or of `QUADRATIC_WAYS` if the objective is quadratic.

    Returns
    -------
    P_hat : ndarray (B, n)
    seconds : ndarray (B,)
    """
    P_hat, seconds = np.empty((len(samples), q.M_.shape[1])), np.empty(len(samples))
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        for b in range(len(samples)):
            items = samples.index(b)
            start = time.process_time()
            objective = linear_objective(q, F[items].mean(axis=0)[None], np.array([len(items)]))
            P_hat[b] = (WAYS | QUADRATIC_WAYS)[way](objective)
            seconds[b] = time.process_time() - start
    return P_hat, seconds
