"""The strength of the regularizer, chosen on the observed histogram.

The rule of the default, "evidence", is in `ordinalq.unfolding.spectrum`. Every other rule looks at the same scan:
estimates with K strengths, from next to none to all that the data allow, and gives each strength a number that is small
if it is good.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
from scipy.special import xlogy

from ordinalq._utils.validation import Floats
from ordinalq.unfolding.engine import Fit, Unfolder
from ordinalq.unfolding.spectrum import SpectrumUnfolder

# Strengths of a scan.
N_STRENGTHS = 25
# Price of a degree of freedom in deviance. 2 is Akaike's criterion, which takes noise for structure now and then.
PRICE = 6.0
# Degrees of freedom that must be left for residuals to be meaningful.
LEFT = 0.3
# Histograms that the rule "toys" draws.
N_TOYS = 100


@dataclass(frozen=True)
class Strengths:
    """Estimates for B histograms G (B, d) with K strengths.

    ``strengths``, ``n_df`` (effective degrees of freedom) and ``deviance`` (a chi-square if response or background may
    be off) are (K, B), ``T`` is (K, B, n), ``J`` (K, B, n, d).
    """

    unfolder: Unfolder
    G: Floats
    strengths: Floats
    n_df: Floats
    deviance: Floats
    T: Floats
    J: Floats


def scan(unfolder: Unfolder, G: Floats) -> Strengths:
    """Return estimates for G (B, d) with strengths from weak to strong."""
    known = unfolder.measurement
    grid = unfolder.grid(G, N_STRENGTHS)
    K, B = grid.shape
    fit = unfolder.solve(np.tile(G, (K, 1)), grid.ravel())
    J = unfolder.jacobian(fit)
    n_df = unfolder.freedom(J)
    T = fit.T.reshape(K, B, -1)
    blank = np.zeros((K, B))
    of = Strengths(unfolder, G, grid, n_df.reshape(K, B), blank, T, J.reshape(K, B, *J.shape[1:]))
    if unfolder.shifts or known.covariance is not None:
        return replace(of, deviance=chi_square(of))
    return replace(of, deviance=(deviance(fit.G, known.fold(fit.T)) / known.weight).reshape(K, B))


def deviance(G: Floats, expected: Floats) -> Floats:
    """Return the Poisson deviance (B,) of counts and expected counts (B, d).

    2 sum_j [lambda_j - g_j + g_j ln(g_j / lambda_j)].
    """
    expected = np.maximum(expected, 1e-300)
    return np.asarray(2 * (expected - G + xlogy(G, G / expected)).sum(axis=1))


def chi_square(of: Strengths) -> Floats:
    """Return squared residuals (K, B) in units of their covariance."""
    K, B, n = of.T.shape
    # One covariance for all strengths, or a rough estimate would be forgiven more.
    V = of.unfolder.spread(of.T[K // 2])
    off = of.G - of.unfolder.measurement.fold(of.T.reshape(K * B, n)).reshape(K, *of.G.shape)
    return np.asarray(np.einsum("kbi,bij,kbj->kb", off, np.linalg.pinv(V, hermitian=True), off))


def information(of: Strengths, price: float = PRICE) -> Floats:
    """Return deviance + 6 n_df.

    The degrees of freedom of a linear fit do not depend on V.
    """
    return np.asarray(of.deviance + price * of.n_df)


def gcv(of: Strengths) -> Floats:
    """Generalized cross-validation: (deviance / d) / (1 - n_df / d)^2."""
    d = of.G.shape[1]
    return np.asarray(of.deviance / d / (1 - np.minimum(of.n_df, d - LEFT) / d) ** 2)


def lcurve(of: Strengths) -> Floats:
    """Negative curvature of ln(roughness) over ln(deviance), along ln(tau)."""
    known = of.unfolder.measurement
    K, B, n = of.T.shape
    T, G = of.T.reshape(K * B, n), np.tile(of.G, (K, 1))
    P = T * known.acceptance / known.signal(G)[:, None]
    done = np.ones(K * B, dtype=bool)
    fit = Fit(G, P, T, of.strengths.ravel(), np.zeros(K * B, dtype=np.int64), done)
    rough = of.unfolder.roughness(fit).reshape(K, B)
    s = np.log(np.maximum(of.strengths, 1e-300))
    curvature = np.empty((K, B))
    for b in range(B):
        x, y = np.log(np.maximum(of.deviance[:, b], 1e-12)), np.log(np.maximum(rough[:, b], 1e-300))
        dx, dy = np.gradient(x, s[:, b]), np.gradient(y, s[:, b])
        ddx, ddy = np.gradient(dx, s[:, b]), np.gradient(dy, s[:, b])
        curvature[:, b] = (dx * ddy - dy * ddx) / np.maximum(dx**2 + dy**2, 1e-12) ** 1.5
    # Second derivatives at the ends are not defined.
    curvature[[0, 1, -2, -1]] = -np.inf
    return -curvature


def global_correlation(of: Strengths) -> Floats:
    """Return the mean global correlation mean_i sqrt(1 - 1 / (C_ii C^-1_ii)).

    C is the statistical covariance.
    """
    V = of.unfolder.measurement.fluctuations(np.maximum(of.G, 1.0))
    C = np.einsum("kbij,bjm,kblm->kbil", of.J, V, of.J)
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
    """Return mean squared errors on toys around the `information` choice.

    sum_i (t^_i - t_i)^2 / t_i.
    """
    unfolder = of.unfolder
    first = of.T[information(of).argmin(axis=0), np.arange(len(of.G))]
    error = np.empty(of.strengths.shape)
    for b, t in enumerate(first):
        G = unfolder.draw(t, n_toys, rng)
        strengths = np.repeat(of.strengths[:, b], n_toys)
        T = unfolder.solve(np.tile(G, (len(of.strengths), 1)), strengths).T
        squares = ((T - t) ** 2 / np.maximum(t, 1.0)).sum(axis=1)
        error[:, b] = squares.reshape(-1, n_toys).mean(axis=1)
    return error


@dataclass(frozen=True)
class Scan:
    """Strengths that a rule compared, and its choice.

    Attributes
    ----------
    rule : str
        Name of the rule.
    strengths, n_df, criterion : ndarray (K,)
        Strengths, the effective degrees of freedom that they leave, and the criterion, small if it is good. That of
        "evidence" is minus twice the logarithm of the marginal likelihood.
    chosen : int
        Position of the chosen strength, or of the nearest one.
    strength : float
        The chosen strength. "evidence" averages the logarithm over all strengths.
    """

    rule: str
    strengths: Floats
    n_df: Floats
    criterion: Floats
    chosen: int
    strength: float


def choose_strength(unfolder: Unfolder, g: Floats, rule: str, n_toys: int, rng: np.random.Generator) -> Scan:
    """Return the scan of one histogram g (d,) with the strength that a rule chooses."""
    if rule == "evidence":
        if not isinstance(unfolder, SpectrumUnfolder):
            raise ValueError(
                f"tau must be another rule with {type(unfolder.method).__name__}, got 'evidence'. Use 'information'."
            )
        found, strength = unfolder.choose(g[None])
        nearest = int(np.abs(np.log(found.strengths[:, 0] / strength[0])).argmin())
        return Scan(rule, found.strengths[:, 0], found.n_df[:, 0], -2 * found.value[:, 0], nearest, float(strength[0]))
    of = scan(unfolder, g[None])
    criterion = (toys(of, n_toys, rng) if rule == "toys" else RULES[rule](of))[:, 0]
    k = int(criterion.argmin())
    return Scan(rule, of.strengths[:, 0], of.n_df[:, 0], criterion, k, float(of.strengths[k, 0]))


def strengths_by_rule(unfolder: Unfolder, G: Floats, rule: str) -> Floats:
    """Return the strengths (B,) that a rule chooses for histograms G (B, d)."""
    if rule == "evidence" and isinstance(unfolder, SpectrumUnfolder):
        return unfolder.choose(G)[1]
    if rule not in RULES:
        raise ValueError("the rule 'toys' cannot be repeated for every toy. Pass tau or n_df to unfold.")
    of = scan(unfolder, G)
    return np.asarray(of.strengths[RULES[rule](of).argmin(axis=0), np.arange(len(G))])
