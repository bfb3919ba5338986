"""How strong the regularizer should be, judged by the observed histogram alone.

Every rule looks at the same scan: estimates with K strengths, from next to none to all that the data allow, and gives
each strength a number that is small where it is good.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
from scipy.special import xlogy

from ordinalq._utils.validation import Floats
from ordinalq.quantifiers.base import Quantifier
from ordinalq.unfolding.engine import Unfolder

# Strengths of a scan.
N_STRENGTHS = 25
# What a degree of freedom must gain in deviance. 2 is Akaike's criterion, which takes noise for structure so often that
# the few bad cases dominate the mean squared error; 6 was chosen between 2 and 10 on nine spectra, 100 histograms each.
PRICE = 6.0
# Degrees of freedom by which the spectrum that judges a bias exceeds the estimate. With fewer it has much of the same
# bias: of 2 to 4, on the fifteen spectra for development of benchmarks/unfolding.py, 4 covers the worst bins.
MORE = 4.0
# Degrees of freedom that must be left for residuals to say something.
LEFT = 0.3
# Histograms that the rule "toys" draws.
N_TOYS = 100


@dataclass(frozen=True)
class Strengths:
    """What K strengths do to B histograms G (B, d).

    ``strengths``, ``n_df`` (effective degrees of freedom) and ``deviance`` (a chi-square where response or background
    may be off) are (K, B), ``T`` is (K, B, n), ``J`` (K, B, n, d).
    """

    unfolder: Unfolder
    G: Floats
    strengths: Floats
    n_df: Floats
    deviance: Floats
    T: Floats
    J: Floats


def scan(unfolder: Unfolder, G: Floats) -> Strengths:
    """Return estimates for the histograms G (B, d) with strengths from weak to strong."""
    known = unfolder.measurement
    grid = unfolder.model.grid(known.data(G), N_STRENGTHS)
    K, B = grid.shape
    fit = unfolder.solve(np.tile(G, (K, 1)), grid.ravel())
    J = unfolder.jacobian(fit)
    n_df = unfolder.freedom(J)
    residual = deviance(fit.G, known.fold(fit.T)) / known.weight
    T = fit.T.reshape(K, B, -1)
    of = Strengths(unfolder, G, grid, n_df.reshape(K, B), residual.reshape(K, B), T, J.reshape(K, B, *J.shape[1:]))
    return replace(of, deviance=chi_square(of)) if unfolder.shifts else of


def deviance(G: Floats, expected: Floats) -> Floats:
    """2 sum_j [lambda_j - g_j + g_j ln(g_j / lambda_j)], (B,), for counts and expected counts (B, d)."""
    expected = np.maximum(expected, 1e-300)
    return np.asarray(2 * (expected - G + xlogy(G, G / expected)).sum(axis=1))


def chi_square(of: Strengths) -> Floats:
    """Squared residuals (K, B), in units of the covariance of fluctuations and of what may be off."""
    K, B, n = of.T.shape
    # One covariance for all strengths, or a rough estimate would be forgiven more.
    V = of.unfolder.spread(chosen(of, information(of)))
    off = of.G - of.unfolder.measurement.fold(of.T.reshape(K * B, n)).reshape(K, *of.G.shape)
    return np.asarray(np.einsum("kbi,bij,kbj->kb", off, np.linalg.pinv(V, hermitian=True), off))


def information(of: Strengths, price: float = PRICE) -> Floats:
    """Deviance + 6 n_df: structure must pay for itself. The degrees of freedom of a linear fit do not depend on V."""
    return np.asarray(of.deviance + price * of.n_df)


def gcv(of: Strengths) -> Floats:
    """Generalized cross-validation: (deviance / d) / (1 - n_df / d)^2."""
    d = of.G.shape[1]
    return np.asarray(of.deviance / d / (1 - np.minimum(of.n_df, d - LEFT) / d) ** 2)


def lcurve(of: Strengths) -> Floats:
    """Negative curvature of ln(roughness) over ln(deviance), along ln(tau)."""
    known = of.unfolder.measurement
    K, B, n = of.T.shape
    S = np.tile(known.signal(of.G), K)
    P = (of.T * known.acceptance).reshape(K * B, n) / S[:, None]
    rough = of.unfolder.model.roughness(P, S / known.weight).reshape(K, B)
    s = np.log(np.maximum(of.strengths, 1e-300))
    curvature = np.empty((K, B))
    for b in range(B):
        x, y = np.log(np.maximum(of.deviance[:, b], 1e-12)), np.log(np.maximum(rough[:, b], 1e-300))
        dx, dy = np.gradient(x, s[:, b]), np.gradient(y, s[:, b])
        ddx, ddy = np.gradient(dx, s[:, b]), np.gradient(dy, s[:, b])
        curvature[:, b] = (dx * ddy - dy * ddx) / np.maximum(dx**2 + dy**2, 1e-12) ** 1.5
    # Second derivatives at the ends are no derivatives.
    curvature[[0, 1, -2, -1]] = -np.inf
    return -curvature


def global_correlation(of: Strengths) -> Floats:
    """Mean global correlation: mean_i sqrt(1 - 1 / (C_ii C^-1_ii)), C the statistical covariance."""
    v = of.unfolder.measurement.fluctuation(np.maximum(of.G, 1.0))
    C = np.einsum("kbij,bj,kblj->kbil", of.J, v, of.J)
    inverse = np.linalg.pinv(C, rcond=1e-12)
    both = np.einsum("kbii->kbi", C) * np.einsum("kbii->kbi", inverse)
    return np.asarray(np.sqrt(1 - 1 / np.maximum(both, 1.0)).mean(axis=-1))


RULES: dict[str, Callable[[Strengths], Floats]] = {
    "information": information,
    "gcv": gcv,
    "lcurve": lcurve,
    "global-correlation": global_correlation,
}


def toys(of: Strengths, n_toys: int, rng: np.random.Generator) -> Floats:
    """Mean squared error sum_i (t^_i - t_i)^2 / t_i on toys around the estimate that `information` chooses."""
    unfolder = of.unfolder
    first = chosen(of, information(of))
    error = np.empty(of.strengths.shape)
    for b, t in enumerate(first):
        G = unfolder.draw(t, n_toys, rng)
        strengths = np.repeat(of.strengths[:, b], n_toys)
        T = unfolder.solve(np.tile(G, (len(of.strengths), 1)), strengths).T
        squares = ((T - t) ** 2 / np.maximum(t, 1.0)).sum(axis=1)
        error[:, b] = squares.reshape(-1, n_toys).mean(axis=1)
    return error


def pilot(of: Strengths, n_df: Floats) -> tuple[Floats, Floats]:
    """Return the spectra (B, n) with about n_df (B,) degrees of freedom, and their derivatives (B, n, d)."""
    which, rows = np.abs(of.n_df - n_df).argmin(axis=0), np.arange(len(of.G))
    return of.T[which, rows], of.J[which, rows]


def chosen(of: Strengths, criterion: Floats) -> Floats:
    """Return the estimates (B, n) where the criterion (K, B) is least."""
    return np.asarray(of.T[criterion.argmin(axis=0), np.arange(len(of.G))])


@dataclass(frozen=True)
class Scan:
    """What a rule saw, and chose.

    Attributes
    ----------
    rule : str
        Its name.
    strengths, n_df, criterion : ndarray (K,)
        Strengths, the effective degrees of freedom that they leave, and what the rule makes small.
    deviance : ndarray (K,)
        How far the refolded counts are from the observed ones.
    chosen : int
        Position of the chosen strength.
    tried : tuple of Quantifier
        The methods among which the rule chose; the rest is of the best.
    """

    rule: str
    strengths: Floats
    n_df: Floats
    criterion: Floats
    deviance: Floats
    chosen: int
    tried: tuple[Quantifier, ...]
