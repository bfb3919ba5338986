"""Random problems q = M p for the tests of losses and solvers."""

from functools import lru_cache

import numpy as np
import scipy
from scipy.optimize import minimize

from ordinalq.losses import Energy
from ordinalq.regularizers import NoPenalty, Tikhonov
from ordinalq.representations import MeanDistances
from ordinalq.simplex import Data, softmax, softmax_derivatives
from ordinalq.solvers.objectives import LinearObjective

TAUS = (0.0, 1e-5, 1e-3, 1e-1, 1.0, 10.0)


def response(rng, n, d, kind):
    """A response matrix (d, n): nearly diagonal, nearly the same for all classes, rank-deficient, or anything."""
    M = rng.dirichlet(np.full(d, 0.5), n).T
    if kind == "sharp":
        return 0.95 * np.eye(d, n) + 0.05 * M if d >= n else M
    if kind == "flat":
        return 0.98 * np.full((d, n), 1 / d) + 0.02 * M
    if kind == "deficient":
        return M[:, rng.integers(0, max(2, n - 2), n)]
    return M


def mean_distances(rng, n):
    """Mean match distances (n, n) within and between n classes of posteriors, and a function that makes q (n,)."""
    codes = np.repeat(np.arange(n), 8)
    S = rng.dirichlet(np.ones(n), len(codes)) * 0.5 + 0.5 * np.eye(n)[codes]
    f = MeanDistances().fit(S, codes, n)
    F = f.transform(S)
    return np.array([F[codes == i].mean(axis=0) for i in range(n)]).T, lambda p: F[rng.choice(len(F), 50)].mean(axis=0)


def random_objective(rng, loss, *, n=None, n_batch=1, tau=None, n_blocks=1):
    """An objective with random M, q (often outside the image of M) and tau."""
    n = int(rng.integers(3, 16)) if n is None else n
    tau = rng.choice(TAUS) if tau is None else tau
    penalty = NoPenalty() if tau == 0 else Tikhonov(tau, order=int(rng.integers(0, min(3, n - 1))))
    sizes = np.full(n_batch, rng.choice([50, 1000]))
    if isinstance(loss, Energy):
        M, draw = mean_distances(rng, n)
        Q = np.array([draw(None) for _ in range(n_batch)])
        return LinearObjective(loss, penalty, Data(Q, M, sizes))
    kind = rng.choice(["sharp", "flat", "deficient", "any"])
    d = int(rng.integers(2, 6)) if n_blocks > 1 else int(rng.integers(max(2, n - 3), 2 * n))
    M = np.concatenate([response(rng, n, d, kind) for _ in range(n_blocks)])
    P = rng.dirichlet(np.full(n, rng.choice([0.2, 1.0])), n_batch)
    Q = P @ M.T
    noise = rng.choice(["counts", "outside", "none"])
    if noise == "counts":
        blocks = Q.reshape(n_batch, n_blocks, -1)
        Q = np.array([[rng.multinomial(sizes[0], q / q.sum()) / sizes[0] for q in row] for row in blocks])
    elif noise == "outside":
        Q = rng.dirichlet(np.ones(d), (n_batch, n_blocks))
    return LinearObjective(loss, penalty, Data(Q.reshape(n_batch, -1), M, sizes, n_blocks))


# The subproblems of trust-exact may iterate without end before SciPy 1.17 (its issue 12513).
BOUNDED = tuple(map(int, scipy.__version__.split(".")[:2])) >= (1, 17)
TRUST_REGION = {
    "method": "trust-exact" if BOUNDED else "trust-ncg",
    "options": {"gtol": 1e-9, "maxiter": 50 if BOUNDED else 300},
}


def scipy_runs(objective, starts):
    """Values that scipy's trust region finds for the first sample from latent starts, with exact derivatives."""
    row = np.zeros(1, dtype=int)

    @lru_cache(maxsize=4)  # scipy asks for value, gradient and Hessian one after the other
    def at(latents):
        P = softmax(np.array(latents)[None])
        with np.errstate(all="ignore"):
            return softmax_derivatives(P, objective.derivatives(P, row))

    return [
        minimize(
            lambda x: at(tuple(x)).value[0],
            start,
            jac=lambda x: at(tuple(x)).gradient[0],
            hess=lambda x: at(tuple(x)).hessian[0],
            **TRUST_REGION,
        ).fun
        for start in starts
    ]
