"""Hostile problems for the solvers, each answer judged by a separate certificate.

    python benchmarks/hostile.py [--problems 24000] [--fast] [--jobs 2] [--seed 0] [--show 10]
    python benchmarks/hostile.py --method all --problems 1000      # whole methods, see hostile_methods.py

Problems q = M p with 3 to 50 classes: M singular, nearly singular, with duplicated, zero and huge columns; zeros in q,
samples of one item, tau from 0 to 1e12, backgrounds. Nothing of the solvers is used to judge them:

- convex smooth losses by a lower bound of the minimum. For f0 + tau/2 ||C p||^2, any point x and any r,
  min f >= f0(x) - g0.x + min_i (g0 + C'r)_i - ||r||^2 / (2 tau), g0 the gradient of f0 at x; x and r are improved from
  the answer by Newton steps on its support, in extended precision;
- sums of absolute residuals by the dual of the linear program, from HiGHS;
- the Hellinger distance, which is not convex, by the best of ten random starts of L-BFGS on soft-max coordinates.

An excess counts if it is above 1e-9 of the minimum and above 1e-12 (Hellinger distance: 1e-8 and 1e-8), and above the
bound of the rounding error of the objective in double precision, see `rounding_error`. It is
silent unless the solver said that it did not converge. Exits with 1 if there is a silent excess, an exception, NaN, or
more than 1% of the answers are flagged as not converged, or one whose condition number is below 1e8.
"""

import argparse
import sys
import time
import warnings
from collections import Counter
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, replace
from typing import NamedTuple

import hostile_methods
import numpy as np
from scipy.optimize import linprog, minimize
from scipy_loop import QUADRATIC_WAYS, solve_daqp

from ordinalq.losses import CumulativeSquares, Energy, Hellinger, LeastSquares, MatchDistance, Poisson
from ordinalq.regularizers import NoPenalty, Tikhonov
from ordinalq.simplex import Data, difference_matrix
from ordinalq.solvers.choose import choose
from ordinalq.solvers.objectives import LinearObjective

LOSSES = {
    "squares": LeastSquares(),
    "cumulated": CumulativeSquares(),
    "weighted": LeastSquares("poisson"),
    "energy": Energy(),
    "poisson": Poisson(),
    "absolute": MatchDistance(),
    "hellinger": Hellinger(),
}
# How many of a hundred problems each loss gets.
SHARES = {"squares": 27, "cumulated": 16, "weighted": 8, "energy": 6, "poisson": 22, "absolute": 6, "hellinger": 15}
QUADRATIC = ("squares", "cumulated", "weighted", "energy")
# Of a rival only what is visible counts.
RIVAL_FLOOR = 1e-10
TAUS = (0.0, 0.0, 1e-6, 1e-3, 1e-1, 1.0, 10.0, 1e3, 1e5, 1e8, 1e10, 1e11, 1e12)
KINDS = (
    "any",
    "sharp",
    "nearly equal",
    "deficient",
    "duplicated",
    "nearly duplicated",
    "zero column",
    "huge column",
    "tiny",
)
RELATIVE, FLOOR = 1e-9, 1e-12
RELATIVE_HELLINGER = 1e-8
# The Hellinger distance is the root of a sum with rounding errors of 1e-16: distances below 1e-8 cannot be compared.
FLOOR_HELLINGER = 1e-8
# Where the support of an answer ends, when it is guessed for the certificate.
SUPPORTS = (1e-13, 1e-9, 1e-6)
MOST_SUPPORTS = 12
# Where a curvature counts as zero; noise if it is the smaller one, but p may have to move along it all the same.
SINGULAR = (1e-15, 1e-19)
# Operations for the term of one bin in the Poisson likelihood.
OPERATIONS = 6
LIKELIHOOD_FLOOR = np.longdouble(1e-300)


@dataclass(frozen=True)
class Problem:
    """One problem, and how it was made."""

    loss: str
    kind: str
    tau: float
    order: int
    data: Data

    @property
    def objective(self):
        """The problem as the solvers take it."""
        penalty = Tikhonov(self.tau, order=self.order) if self.tau > 0 else NoPenalty()
        return LinearObjective(LOSSES[self.loss], penalty, self.data)


class Verdict(NamedTuple):
    """Result of one problem: its excess, and whether the solver flagged it."""

    index: int
    label: str
    excess: float
    minimum: float
    flagged: bool
    problem: str
    condition: float
    seconds: float
    rival_fails: bool = False


def response(rng, n, d, kind):
    """Return a response matrix (d, n) of a kind."""
    M = rng.dirichlet(np.full(d, rng.choice([0.3, 1.0])), n).T
    if kind == "sharp":
        return 0.95 * np.eye(d, n) + 0.05 * M if d >= n else M
    if kind == "nearly equal":
        small = 10.0 ** rng.uniform(-9, -1)
        return (1 - small) * M[:, :1] + small * M
    if kind == "deficient":
        return M[:, rng.integers(0, max(2, n - 2), n)]
    if kind == "duplicated":
        M[:, rng.integers(n)] = M[:, rng.integers(n)]
        return M
    if kind == "nearly duplicated":
        i, j = rng.choice(n, 2, replace=False)
        M[:, i] = M[:, j] + 10.0 ** rng.uniform(-15, -3) * (M[:, i] - M[:, j])
        return M
    if kind == "zero column":
        M[:, rng.integers(n)] = 0
    if kind == "huge column":
        M[:, rng.integers(n)] *= 10.0 ** rng.uniform(1, 6)
    if kind == "tiny":
        M = np.where(rng.random(M.shape) < 0.3, M * 10.0 ** rng.uniform(-100, -3), M)
    return M


def distances(rng, n, kind):
    """Return mean distances (n, n) between n clouds of points on a line, and of further points from them (n,)."""
    spread = {"nearly equal": 1e-4, "sharp": 5.0}.get(kind, 0.5)
    centres = spread * rng.normal(size=n)
    if kind in ("deficient", "duplicated"):
        centres = centres[rng.integers(0, n - 1, n)]
    points = centres[:, None] + rng.normal(size=(n, 12)) * (0 if kind == "deficient" else 1.0)
    M = np.abs(points[:, None, :, None] - points[None, :, None, :]).mean(axis=(2, 3))
    drawn = rng.choice(points.ravel(), int(rng.choice([1, 10, 300])))
    return M, np.abs(drawn[:, None, None] - points).mean(axis=(0, 2))


def draw(index, seed=0):
    """Return problem number `index`."""
    rng = np.random.default_rng([seed, index])
    loss = str(rng.choice(list(SHARES), p=np.array(list(SHARES.values())) / 100))
    n = int(np.exp(rng.uniform(np.log(3), np.log(50.99))))
    if loss == "hellinger":
        n = min(n, int(rng.integers(3, 13)))
    kind = str(rng.choice(KINDS))
    tau = float(rng.choice(TAUS)) if loss != "absolute" else 0.0
    order = int(rng.integers(0, min(3, n - 1)))
    size = float(rng.choice([1, 3, 30, 1000, 100_000]))
    if loss == "energy":
        M, q = distances(rng, n, kind)
        return Problem(loss, kind, tau, order, Data(q[None], M, np.array([size])))
    n_blocks = int(rng.choice([1, 1, 3, n])) if loss == "hellinger" else 1
    d = int(rng.integers(2, 6)) if n_blocks > 1 else int(rng.integers(max(2, n - 3), 2 * n))
    M = np.concatenate([response(rng, n, d, kind) for _ in range(n_blocks)])
    if n_blocks > 1 and kind in ("zero column", "huge column"):
        kind, M = "any", np.concatenate([response(rng, n, d, "any") for _ in range(n_blocks)])
    p = rng.dirichlet(np.full(n, rng.choice([0.1, 1.0])))
    blocks = (M @ p).reshape(n_blocks, d) + 1e-30
    how = rng.choice(["counts", "outside", "exact", "one bin"], p=[0.5, 0.2, 0.2, 0.1])
    if how == "counts":
        Q = np.array([rng.multinomial(size, b / b.sum()) / size for b in blocks])
    elif how == "outside":
        Q = rng.dirichlet(np.ones(d), n_blocks)
    elif how == "exact":
        Q = blocks / blocks.sum(axis=1, keepdims=True)
    else:
        Q = np.eye(d)[rng.integers(0, d, n_blocks)]
    if rng.random() < 0.2:  # a value that no training item has
        M = M.reshape(n_blocks, d, n).copy()
        M[:, rng.integers(d)] = 0
        M = M.reshape(-1, n)
    data = Data(Q.reshape(1, -1), M, np.array([size]), n_blocks)
    if loss != "energy" and n_blocks == 1 and rng.random() < 0.15:
        background = rng.dirichlet(np.ones(d))[None] * 10.0 ** rng.uniform(-3, 0.5)
        data = replace(data, Q=data.Q + background, background=background)
    return Problem(loss, kind, tau, order, data)


# The losses once more, written from their formulas in extended precision.


def weights(data):
    """Return the weights (d,) of least squares with the variances of Poisson counts."""
    q = data.Q[0].astype(np.longdouble)
    deviation = np.sqrt(1 + np.maximum(1, data.sizes[0] - len(q)) * q)
    return (deviation / deviation.mean()) ** -2


def long_loss(problem, data, p):
    """Return value, gradient (n,) and Hessian (n, n) of a convex smooth loss at p, in extended precision."""
    M, q = data.M.astype(np.longdouble), data.Q[0].astype(np.longdouble)
    v = M @ p + (0 if data.background is None else data.background[0])
    if problem.loss in ("squares", "cumulated"):
        return (v - q) @ (v - q), 2 * M.T @ (v - q), 2 * M.T @ M
    if problem.loss == "weighted":
        w = weights(data)
        return w @ (v - q) ** 2, 2 * M.T @ (w * (v - q)), 2 * (M.T * w) @ M
    if problem.loss == "energy":
        return 2 * p @ q - p @ M @ p, 2 * (q - M @ p), -2 * M
    N, seen = data.sizes[0], q > 0
    v = np.maximum(v, LIKELIHOOD_FLOOR)
    ratio = np.where(seen, q / v, 0)
    terms = v - q - np.where(seen, q * np.log(np.where(seen, v / np.where(seen, q, 1), 1)), 0)
    return N * terms.sum(), N * M.T @ (1 - ratio), N * (M.T * (ratio / v)) @ M


def rounding_error(problem, data, p):
    """Return a bound of the rounding error of a convex smooth objective at p (n,), evaluated in double precision.

    A sum of products of k terms has an error of at most k eps/2 times the sum of their absolute values. The error of
    each v = M p + o and r = C p is multiplied by the derivative of its term. Here k = n + d + 6 for d bins, as the term
    N (v - q - q log(v / q)) of one bin takes six operations.
    """
    M, q, n = np.abs(data.M), data.Q[0], len(p)
    o = np.zeros(len(M)) if data.background is None else data.background[0]
    v, size = data.M @ p + o, M @ p + np.abs(o)
    if problem.loss == "energy":
        terms = 2 * p @ np.abs(q) + p @ M @ p
    elif problem.loss == "poisson":
        v = np.maximum(v, float(LIKELIHOOD_FLOOR))
        ratio = np.where(q > 0, q / v, 0.0)
        logs = np.where(q > 0, q * np.abs(np.log(np.where(ratio > 0, ratio, 1.0))), 0.0)
        terms = data.sizes[0] * (v + q + logs + np.abs(1 - ratio) * size).sum()
    else:
        w = weights(data) if problem.loss == "weighted" else np.ones(len(q))
        terms = (w * ((v - q) ** 2 + 2 * np.abs(v - q) * (size + np.abs(q)))).sum()
    if problem.tau > 0:
        C = difference_matrix(n, problem.order)
        r = np.abs(C @ p)
        terms += problem.tau * (r * r / 2 + r * (np.abs(C) @ p)).sum()
    return (n + len(q) + OPERATIONS) * np.finfo(float).eps / 2 * float(terms)


def convex_minimum(problem, data, p):
    """Return the value at p and the best lower bound of the minimum that was found, in extended precision."""
    n, tau = len(p), problem.tau
    C = difference_matrix(n, problem.order).astype(np.longdouble) if tau > 0 else np.zeros((0, n), np.longdouble)
    p = p.astype(np.longdouble)
    p = p / p.sum()
    f0 = long_loss(problem, data, p)[0]
    value = f0 + (tau / 2 * np.square(C @ p).sum() if tau > 0 else 0)

    def bound(x, r):
        f, g, _ = long_loss(problem, data, x)
        dual = f - g @ x + (g + C.T @ r).min()
        return dual - (r @ r / (2 * tau) if tau > 0 else 0)

    best = bound(p, tau * (C @ p))
    supports = [p > support for support in SUPPORTS]
    for free in supports:
        if value - best <= tolerance(value, RELATIVE) / 2:
            break
        for least in SINGULAR:
            x, r = p, tau * (C @ p)
            for x, r in refined(problem, data, np.where(free, p, 0), free, C, least):
                best = max(best, bound(x, r))
            # A class that should have mass, and one that should have none, where two can hardly be distinguished.
            full = long_loss(problem, data, x)[1] + C.T @ r
            for other in (free | (full < full[free].mean()), free & (full < full[free].max())):
                if len(supports) < MOST_SUPPORTS and other.any() and not any((other == s).all() for s in supports):
                    supports.append(other)
    # All but the energy distance, which lacks a constant, are sums of what is not negative.
    return float(value), float(best if problem.loss == "energy" else max(best, 0))


def refined(problem, data, x, free, C, least):
    """Yield points x (n,) and multipliers r of the penalty after Newton steps on a support; residuals are extended.

    Directions whose curvature is below `least` of the largest are left alone.
    """
    tau, k, m = problem.tau, int(free.sum()), len(C)
    x = x / x.sum() if x.any() else free.astype(x.dtype) / k  # a support may have no mass yet
    r = tau * (C @ x)
    for step in range(6):
        _, g, H = long_loss(problem, data, x)
        full = g + C.T @ r
        lam = full[free].mean()
        size = float(np.abs(H).max()) or 1.0
        rest = np.concatenate([full[free] - lam, C @ x - r / tau if m else [], [size * (x.sum() - 1)]]).astype(
            np.float64
        )
        K = np.zeros((k + m + 1, k + m + 1))
        K[:k, :k] = H[np.ix_(free, free)]
        unit = min(size, np.sqrt(size * tau))  # of r, so that all entries are of one size
        K[:k, k : k + m] = C.T[free] * unit
        K[k : k + m, :k] = C[:, free] * unit
        if m:
            K[np.arange(k, k + m), np.arange(k, k + m)] = -unit * unit / tau
            rest[k : k + m] *= unit
        K[:k, -1] = K[-1, :k] = size
        if not (np.isfinite(K).all() and np.isfinite(rest).all()):
            return
        try:
            change = -np.linalg.lstsq(K, rest, rcond=least)[0]
        except np.linalg.LinAlgError:
            return
        new = x.copy()
        new[free] += change[:k]
        if problem.loss == "poisson" and (data.M @ new.astype(np.float64) < -1e-12).any():
            return
        x, r = new, r + unit * change[k : k + m]
        if step >= 1:
            yield x, r


def linear_minimum(data, p):
    """Return ||c - D p||_1 and the lower bound that the multipliers of the linear program give."""
    D, c = data.M, data.signal[0]
    long_D, long_c = D.astype(np.longdouble), c.astype(np.longdouble)
    value = float(np.abs(long_c - long_D @ p).sum())
    best = 0.0
    # HiGHS meets its conditions to 1e-10 in its units. Where the value is far below one, these are those of the
    # residuals at p: what is sought is the change of p, in units of the value. Where all columns are nearly equal, they
    # are those of their differences from one column, which changes neither the optima nor what multipliers prove.
    m = D[:, np.abs(D).sum(axis=0).argmin()]
    spread = float(np.median(np.abs(D - m[:, None]).max(axis=0))) or 1.0
    for start, unit, length in ((np.zeros_like(p), 1.0, 1.0), (p, value, 1.0), (np.zeros_like(p), 1.0, spread)):
        if value - best <= tolerance(best, RELATIVE):
            break
        middle = m if length != 1.0 else np.zeros_like(m)
        rest = ((long_c - middle - (long_D - middle[:, None]) @ start) / unit / length).astype(np.float64)
        columns = ((long_D - middle[:, None]) / length).astype(np.float64)
        change, first = linear_program(columns, rest, -start / unit, float((1 - start.sum()) / unit))
        # On the support of a vertex the conditions hold to all digits. Where all columns are nearly equal, the signs
        # of the residuals are better multipliers.
        points = (start + unit * change, p)
        multipliers = [first, np.sign(c - D @ p)]
        multipliers += [
            exact_multipliers(D, c, x, first, zero) for x in points for zero in (1e-7, 1e-9, 1e-12, 0.01 * value)
        ]
        best = max(best, *(float(y @ long_c - (y @ long_D).max()) for y in multipliers))
    return value, best


def linear_program(D, c, lower, total):
    """Return the x >= lower with sum `total` of least ||c - D x||_1, and the multipliers of the residuals."""
    d, n = D.shape
    A = np.vstack([np.hstack([D, np.eye(d), -np.eye(d)]), [1.0] * n + [0.0] * 2 * d])
    options = {"primal_feasibility_tolerance": 1e-10, "dual_feasibility_tolerance": 1e-10}
    bounds = np.column_stack([np.r_[lower, np.zeros(2 * d)], np.full(n + 2 * d, np.inf)])
    cost = np.r_[np.zeros(n), np.ones(2 * d)]
    run = linprog(cost, A_eq=A, b_eq=np.r_[c, total], bounds=bounds, method="highs", options=options)
    if run.x is None:
        return np.zeros(n), np.zeros(d)
    return run.x[:n], np.clip(run.eqlin.marginals[:d], -1, 1)


def exact_multipliers(D, c, p, y, least):
    """Return multipliers near y (d,) that are optimal for the support and the zero residuals of p, in [-1, 1]."""
    r, used = (c - D @ p).astype(np.longdouble), p * np.maximum(np.abs(D).max(axis=0), 1) > least
    zero = np.abs(r) < least
    y = np.where(zero, y, np.sign(r)).astype(np.longdouble)
    A = np.vstack([D[np.ix_(zero, used)], np.ones(int(used.sum()))]).T
    for _ in range(3):
        rest = (y @ D.astype(np.longdouble))[used]
        y[zero] -= np.linalg.lstsq(A, (rest - rest.mean()).astype(np.float64), rcond=1e-14)[0][:-1]
    return np.clip(y, -1, 1)


def hellinger_value(problem, data, P):
    """Return value and gradient of the Hellinger objective at p (n,), from the formula."""
    k = data.n_blocks
    unit = 1.0 if data.background is None else 1 + data.background.sum()
    mass = data.Q[0].sum() / k or 1.0
    q = data.Q[0] / mass
    v = np.maximum((data.M @ P + (0 if data.background is None else data.background[0])) / unit, 1e-300)
    h = np.sqrt(np.square(np.sqrt(q) - np.sqrt(v)).reshape(k, -1).sum(axis=1) + 1e-16)
    slope = (1 - np.sqrt(q / v)) / np.repeat(2 * h, len(q) // k)
    factor = np.sqrt(mass) / k
    value, gradient = factor * h.sum(), factor * slope @ data.M / unit
    if problem.tau > 0:
        C = difference_matrix(len(P), problem.order)
        value, gradient = value + problem.tau / 2 * np.square(C @ P).sum(), gradient + problem.tau * C.T @ (C @ P)
    return value, gradient


def hellinger_minimum(problem, data, p, rng):
    """Return the value at p and the smallest that ten starts find."""

    def function(latents):
        P = np.exp(latents - latents.max())
        P /= P.sum()
        value, gradient = hellinger_value(problem, data, P)
        return value, P * (gradient - P @ gradient)

    best, n = np.inf, len(p)
    for start in rng.uniform(-1, 1, (10, n)):
        run = minimize(
            function, start, jac=True, method="L-BFGS-B", options={"maxiter": 300, "ftol": 1e-14, "gtol": 1e-9}
        )
        best = min(best, float(run.fun))
    return hellinger_value(problem, data, p)[0], best


def tolerance(minimum, relative, floor=FLOOR):
    """Return the excess that is allowed."""
    return max(relative * abs(float(minimum)), floor)


def condition_number(objective, p):
    """Return the largest curvature along the simplex at p (n,) over the smallest; infinite if it is flat.

    Of a sum of absolute residuals, which has none, it is that of the sum of their squares.
    """
    T = np.eye(len(p)) - 1 / len(p)
    if objective.absolute() is not None:
        objective = LinearObjective(LeastSquares(), NoPenalty(), objective.data)
    with np.errstate(all="ignore"):
        H = T @ objective.derivatives(np.maximum(p, 1e-12)[None], np.zeros(1, dtype=int)).hessian[0] @ T
    if not np.isfinite(H).all():
        return np.inf
    size = np.sort(np.abs(np.linalg.eigvalsh(H)))
    return float(size[-1] / size[1]) if size[1] > 0 else np.inf


def judge(index, seed=0):
    """Solve one problem and judge the answer."""
    problem = draw(index, seed)
    objective = problem.objective
    label = f"{problem.loss}, {problem.kind}"
    about = f"n={problem.data.n_classes} tau={problem.tau:g} order={problem.order} N={problem.data.sizes[0]:g}"
    start = time.perf_counter()
    try:
        with warnings.catch_warnings(), np.errstate(all="ignore"):
            warnings.simplefilter("ignore")
            solution = choose(objective).minimize(objective)
    except Exception as error:  # any exception is what is looked for
        return Verdict(
            index, label, np.inf, 0.0, False, f"{type(error).__name__}: {error}"[:60] + " " + about, 0.0, 0.0
        )
    seconds = time.perf_counter() - start
    p, flagged = solution.p[0], not solution.converged[0]
    if not (np.isfinite(p).all() and (p >= 0).all() and abs(p.sum() - 1) < 1e-9):
        return Verdict(index, label, np.inf, 0.0, False, "NaN or off the simplex " + about, 0.0, seconds)
    data, relative, floor = objective.data, RELATIVE, FLOOR
    with np.errstate(all="ignore"):
        if problem.loss == "hellinger":
            relative, floor = RELATIVE_HELLINGER, FLOOR_HELLINGER
            value, best = hellinger_minimum(problem, data, p, np.random.default_rng([seed, index, 1]))
        elif problem.loss == "absolute":
            value, best = linear_minimum(data, p)
        else:
            value, best = convex_minimum(problem, data, p)
            floor = max(floor, rounding_error(problem, data, p))
    excess = value - best
    if not excess > tolerance(best, relative, floor):
        excess = 0.0
    condition = condition_number(objective, p) if flagged else 0.0
    rival = daqp_fails(problem, objective, best) if problem.loss in QUADRATIC else False
    return Verdict(index, label, excess, best, flagged, about, condition, seconds, rival)


def daqp_fails(problem, objective, best):
    """Return whether DAQP misses the minimum of a quadratic problem by more than is allowed; False without DAQP."""
    form = objective.quadratic()
    if form is None or not QUADRATIC_WAYS:
        return False
    A, b = form
    with np.errstate(all="ignore"):
        p = solve_daqp(np.ascontiguousarray(A), b[0])
    if not np.isfinite(p).all():
        return True
    value = objective.value(p[None], np.zeros(1, dtype=np.intp))[0]
    return bool(value - best > max(tolerance(best, RELATIVE), RIVAL_FLOOR))


def summary(verdicts, show):
    """Print the counts; return whether all is well."""
    broken = [v for v in verdicts if v.problem.startswith(("NaN", "LinAlg")) or v.excess == np.inf]
    silent = [v for v in verdicts if v.excess > 0 and not v.flagged and v not in broken]
    flagged = [v for v in verdicts if v.flagged]
    easy = [v for v in flagged if v.condition < 1e8]
    print(
        f"{len(verdicts)} problems: {len(silent)} silent excesses, {len(broken)} exceptions or NaN, "
        f"{len(flagged)} flagged as not converged ({len(flagged) / len(verdicts):.2%}), {len(easy)} of them with a "
        f"condition number below 1e8; slowest {max(v.seconds for v in verdicts):.2f} s"
    )
    if QUADRATIC_WAYS:
        n_quadratic = sum(v.label.split(",")[0] in QUADRATIC for v in verdicts)
        print(f"DAQP misses the minimum of {sum(v.rival_fails for v in verdicts)} of {n_quadratic} quadratic problems")
    for name, those in (("silent", silent), ("broken", broken), ("easy", easy), ("flagged", flagged)):
        print(name, dict(Counter(v.label for v in those).most_common(12)))
        for v in those[:show]:
            found = f"excess {v.excess:.2g} of {v.minimum:.3g}, condition {v.condition:.1e}"
            print(f"  {v.index} {v.label} {v.problem}: {found}")
    return not silent and not broken and not easy and len(flagged) <= 0.01 * len(verdicts)


def main():
    """Judge all problems."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--problems", type=int, default=24_000)
    parser.add_argument("--fast", action="store_true", help="600 problems")
    parser.add_argument("--tiny", action="store_true", help="20 problems")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--show", type=int, default=10)
    parser.add_argument(
        "--method",
        nargs="+",
        metavar="NAME",
        choices=[*hostile_methods.NAMES, "all"],
        help="whole methods in place of solvers: names of the catalogue, 'unfold', or 'all'",
    )
    args = parser.parse_args()
    if args.method:
        names = hostile_methods.NAMES if "all" in args.method else args.method
        n_problems = 2 if args.tiny else 50 if args.fast else args.problems
        if args.jobs == 1:
            return int(not hostile_methods.run(names, n_problems, args.seed, args.show, map))
        with ProcessPoolExecutor(args.jobs) as pool:
            return int(not hostile_methods.run(names, n_problems, args.seed, args.show, pool.map))
    indices = range(20 if args.tiny else 600 if args.fast else args.problems)
    start = time.perf_counter()
    if args.jobs == 1:
        verdicts = [judge(i, args.seed) for i in indices]
    else:
        with ProcessPoolExecutor(args.jobs) as pool:
            verdicts = list(pool.map(judge, indices, [args.seed] * len(indices), chunksize=20))
    good = summary(verdicts, args.show)
    print(f"{time.perf_counter() - start:.0f} s")
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
