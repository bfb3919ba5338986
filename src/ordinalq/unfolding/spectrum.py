"""Default of `unfold`: likelihood plus penalty on changes of the log slope.

The logarithms x = ln t of the true contents minimize

    -ln L(g | R exp(x) + b) + tau/2 ||r(x)||^2,

with the residuals r of :class:`ordinalq.unfolding.curvature.Curvature`, which are zero for every power law. The penalty
is the logarithm of a normal prior of r with variance 1 / tau. The marginal likelihood of tau (its evidence) shows
which strengths the counts support, and the same prior gives the size of the bias.
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
from scipy.special import xlogy
from sklearn.base import BaseEstimator

from ordinalq._utils.validation import Floats, check_choice, check_numbers, check_real
from ordinalq.quantifiers.run_ibu import degrees_of_freedom, tau_for
from ordinalq.unfolding.curvature import Curvature, chains_of
from ordinalq.unfolding.engine import Fit, QuantifierUnfolder, Shift, Unfolder
from ordinalq.unfolding.measurement import Measurement

# Strengths of a scan: standard deviations 1 / sqrt(tau) of the residuals, in units in which the axis has length one.
# They go from five times the relative error of the sum of the counts, not distinguishable from a power law, to that of
# neighbouring bins that differ by a factor of exp(3).
N_STRENGTHS, SMOOTHEST, ROUGHEST = 20, 5.0, 3.0
# Largest strength relative to the largest one of a scan: beyond, estimates do not change, but lose digits.
STRONGEST = 1e3
# Events per observed-event probability below which contents are not distinguished from zero.
FLOOR = 1e-6
# Variance of the residuals that the bias allows for, relative to the typical one, see `SpectrumUnfolder.typical`;
# chosen on the development problems of docs/validation/unfolding.md, as are the next two numbers.
CAUTION = 4.7
# The bias allows for the standard deviation of residuals at this quantile of its posterior distribution.
QUANTILE = 0.84
# Width, relative to the axis, over which typical residuals are averaged, and the weight of their mean over the axis.
WINDOW, SHRINKAGE = 0.05, 0.5
# Newton steps, longest step of a logarithm, decrement of convergence, and halvings of a step.
MOST_STEPS, LONGEST, CONVERGED, HALVINGS = 200, 3.0, 1e-10, 12
# Added to the diagonal of Hessians, for bins of which the counts carry no information.
RIDGE = 1e-9
# Smallest expected count: observed bins to which no true bin contributes do not count.
LOWEST = 1e-30
# Numbers of one batch of matrices (B, n, n).
BATCH = 4_000_000


class SmoothSpectrum(BaseEstimator):
    """Penalized likelihood of log spectra, the default of :func:`ordinalq.unfold`.

    The penalty is tau/2 times the sum of squared changes of the local slope of the log density, each divided by the
    distance over which it happens. It is zero for every power law integrated over its bins, of any widths.

    Parameters
    ----------
    tau : float, default=1.0
        Strength: the inverse variance of a change of slope over the whole axis. :func:`ordinalq.unfold` chooses it by a
        rule if it is given none.
    n_df : float, default=None
        Effective degrees of freedom. It takes precedence over `tau`.
    axis : {"log", "linear"}, default=None
        Scale on which slopes are taken: power laws are free of penalty, or exponentials. None means "log" if all edges
        are positive, else "linear".
    reference : array-like of the true shape, default=None
        Positive spectrum. With it the slopes are those of the ratio of the spectrum to the reference.

    Examples
    --------
    >>> import ordinalq as oq
    >>> M = [[0.8, 0.2, 0.0, 0.0], [0.2, 0.6, 0.2, 0.0], [0.0, 0.2, 0.6, 0.2], [0.0, 0.0, 0.2, 0.8]]
    >>> known = {"edges": [1, 2, 4, 8, 16]}
    >>> oq.unfold([520, 270, 130, 80], M, method=oq.unfolding.SmoothSpectrum(tau=0.1), **known).counts.round(0)
    array([587., 227., 117.,  69.])
    """

    def __init__(
        self, tau: Any = 1.0, *, n_df: float | None = None, axis: str | None = None, reference: Any = None
    ) -> None:
        self.tau = tau
        self.n_df = n_df
        self.axis = axis
        self.reference = reference

    def check(self, known: Measurement, curvature: Curvature) -> None:
        """Raise ValueError if a parameter is out of range.

        Parameters
        ----------
        known : Measurement
            Observed counts and their model.
        curvature : Curvature
            Residuals of spectra over the true bins.
        """
        check_real("tau", self.tau, low=0)
        if self.n_df is not None:
            most = min(known.M.shape)
            check_real("n_df", self.n_df, low=curvature.n_free, high=most, open_low=True)

    def curvature(self, known: Measurement) -> Curvature:
        """Return the residuals of the spectra of a measurement.

        Parameters
        ----------
        known : Measurement
            Observed counts and their model.

        Returns
        -------
        Curvature
            Residuals of spectra over the true bins.
        """
        if self.axis is not None:
            check_choice("axis", self.axis, ("log", "linear"))
        reference = None
        if self.reference is not None:
            reference = check_numbers("reference", self.reference)
            if reference.size != known.M.shape[1] or not (reference > 0).all():
                raise ValueError(f"reference must be {known.M.shape[1]} numbers > 0, got {self.reference!r:.80}.")
        chains = chains_of(known.shape, known.edges, blocks=known.blocks, axis=self.axis)
        return Curvature(known.M.shape[1], chains, None if reference is None else reference.ravel())


class State(NamedTuple):
    """Derivatives at logarithms X (B, n).

    ``T`` (B, n) contents, ``Z`` (B, d, n) with Z'Z the expected information of the likelihood on x, ``r`` (B, m) and
    ``D`` (B, m, n) residuals and their derivatives, ``gradient`` (B, n) of the objective.
    """

    T: Floats
    Z: Floats
    r: Floats
    D: Floats
    gradient: Floats

    def information(self) -> Floats:
        """Return the expected information of the likelihood, (B, n, n)."""
        return np.asarray(self.Z.transpose(0, 2, 1) @ self.Z)

    def hessian(self, tau: Floats) -> Floats:
        """Return the expected information plus the Hessian of the penalty, (B, n, n)."""
        H = self.information() + tau[:, None, None] * (self.D.transpose(0, 2, 1) @ self.D)
        return np.asarray(H + _ridge(H))


def _ridge(H: Floats) -> Floats:
    """Return diagonals above the rounding errors of Hessians H (B, n, n)."""
    least = H.shape[1] * np.finfo(float).eps * np.abs(H).max(axis=(1, 2))
    return np.asarray(np.maximum(RIDGE, least)[:, None, None] * np.eye(H.shape[1]))


class SpectrumUnfolder(Unfolder):
    """:class:`SmoothSpectrum` applied to a measurement."""

    method: SmoothSpectrum

    def __init__(self, method: SmoothSpectrum, measurement: Measurement, shifts: Sequence[Shift] = ()) -> None:
        super().__init__(method, measurement, shifts)
        self.curvature = method.curvature(measurement)
        method.check(measurement, self.curvature)
        R, b = measurement.response, measurement.background
        # With a covariance V the counts are multiplied by the inverse of its root: their variances become one.
        self.whitener = (
            None if measurement.covariance is None else np.linalg.inv(np.linalg.cholesky(measurement.covariance))
        )
        self.R, self.b = (R, b) if self.whitener is None else (self.whitener @ R, self.whitener @ b)
        self.weights = measurement.weights
        self.floor = np.log(FLOOR * measurement.weight / measurement.acceptance)
        self.n_penalized = measurement.M.shape[1] - self.curvature.n_free

    # The likelihood

    def _prepared(self, G: Floats) -> Floats:
        return G if self.whitener is None else G @ self.whitener.T

    def _loss(self, Y: Floats, L: Floats) -> Floats:
        """Return the negative log-likelihood (B,) of counts Y given L (B, d)."""
        if self.whitener is not None:
            return np.asarray(((Y - L) ** 2).sum(axis=1) / 2)
        L = np.maximum(L, LOWEST)
        return np.asarray(((L - Y + xlogy(Y, Y / L)) / self.weights).sum(axis=1))

    def _pull(self, Y: Floats, L: Floats) -> tuple[Floats, Floats]:
        """Return derivative and expected second derivative by the expectations."""
        if self.whitener is not None:
            return L - Y, np.ones_like(L)
        L = np.maximum(L, LOWEST)
        return (1 - Y / L) / self.weights, 1 / (L * self.weights)

    def state(self, Y: Floats, X: Floats, tau: Floats) -> State:
        """Return the derivatives at X (B, n) for prepared counts Y (B, d)."""
        T = np.exp(X)
        pull, curvature = self._pull(Y, T @ self.R.T + self.b)
        Z = np.sqrt(curvature)[:, :, None] * self.R * T[:, None, :]
        r, D = self.curvature.residuals(X)
        gradient = T * (pull @ self.R) + tau[:, None] * (r[:, None, :] @ D)[:, 0]
        return State(T, Z, r, D, gradient)

    def _value(self, Y: Floats, X: Floats, tau: Floats) -> Floats:
        r = self.curvature.residuals(X)[0]
        return np.asarray(self._loss(Y, np.exp(X) @ self.R.T + self.b) + tau / 2 * (r * r).sum(axis=1))

    # Minimization

    def _start(self, G: Floats) -> Floats:
        """Return spectra (B, n) of constant density with the observed events."""
        known = self.measurement
        S = np.maximum(known.signal(G), np.maximum(0.01 * np.abs(G).sum(axis=1), 1e-300))
        shape = np.ones(known.M.shape[1])
        return np.asarray(np.log(S[:, None] * shape / (known.acceptance * shape).sum()))

    def minimize(self, G: Floats, tau: Floats, start: Floats | None = None) -> tuple[Floats, Any, Any]:
        """Return log estimates X (B, n), numbers of steps and convergence (B,)."""
        n = self.measurement.M.shape[1]
        size = max(1, BATCH // (n * n))
        if len(G) > size:
            parts = [slice(k, k + size) for k in range(0, len(G), size)]
            found = [self.minimize(G[s], tau[s], None if start is None else start[s]) for s in parts]
            return tuple(np.concatenate(part) for part in zip(*found, strict=True))  # type: ignore[return-value]
        Y, X = self._prepared(G), np.array(self._start(G) if start is None else start)
        X = np.maximum(X, self.floor)
        value = self._value(Y, X, tau)
        n_iter, converged = np.zeros(len(X), dtype=np.int64), np.zeros(len(X), dtype=bool)
        rows = np.arange(len(X))
        for _ in range(MOST_STEPS):
            y, x, s = Y[rows], X[rows], tau[rows]
            at = self.state(y, x, s)
            step = -np.linalg.solve(at.hessian(s), at.gradient[:, :, None])[:, :, 0]
            step *= np.minimum(1.0, LONGEST / np.maximum(np.abs(step).max(axis=1), 1e-300))[:, None]
            n_iter[rows] += 1
            length, tried, new = np.ones(len(rows)), x, value[rows]
            bad = np.ones(len(rows), dtype=bool)
            for _ in range(HALVINGS):
                tried = np.maximum(x + length[:, None] * step, self.floor)
                new = self._value(y, tried, s)
                bad = ~(new <= value[rows] + 1e-12 * (1 + np.abs(value[rows])))
                if not bad.any():
                    break
                length = np.where(bad, length / 3, length)
            done = -(at.gradient * step).sum(axis=1) < CONVERGED
            X[rows] = np.where(bad[:, None], x, tried)
            value[rows] = np.where(bad, value[rows], new)
            converged[rows] = done
            rows = rows[~(done | bad)]
            if not len(rows):
                break
        return X, n_iter, converged

    def solve(self, G: Floats, strengths: Floats | None = None) -> Fit:
        """Return estimates for the histograms G (B, d)."""
        if strengths is None:
            strengths = (
                np.full(len(G), float(self.method.tau))
                if self.method.n_df is None
                else self._for_freedom(G, self.method.n_df)
            )
        strengths = np.minimum(strengths, STRONGEST * self.grid(G)[-1])
        X, n_iter, converged = self.minimize(G, strengths)
        return self._fit(G, X, strengths, n_iter, converged)

    def _fit(self, G: Floats, X: Floats, strengths: Floats, n_iter: Any, converged: Any) -> Fit:
        known = self.measurement
        T = np.exp(X)
        S = np.maximum((T * known.acceptance).sum(axis=1, keepdims=True), 1e-300)
        return Fit(G, T * known.acceptance / S, T, strengths, n_iter, converged)

    def _for_freedom(self, G: Floats, n_df: Any) -> Floats:
        """Return strengths (B,) that leave `n_df` degrees of freedom."""
        tau, X = self.grid(G)[-1], None
        strongest = STRONGEST * tau
        for _ in range(8):
            X, _, _ = self.minimize(G, tau, X)
            at = self.state(self._prepared(G), X, tau)
            tau = np.clip(tau_for(n_df, at.Z, at.D), 1e-12, strongest)
        return np.asarray(tau)

    # The strength

    def grid(self, G: Floats, size: int = N_STRENGTHS) -> Floats:
        """Return strengths from weak to strong, (size, B)."""
        known = self.measurement
        rough = ROUGHEST * max(known.blocks or known.shape) ** 1.5
        total = np.maximum(np.abs(G.sum(axis=1)), 1e-300)
        variance = total * known.weight if known.covariance is None else known.covariance.sum()
        smooth = np.minimum(SMOOTHEST * np.sqrt(variance) / total, rough / 10)
        sizes: Floats = np.geomspace(np.full(len(G), rough), smooth, size)
        return np.asarray(sizes**-2.0)

    def evidence(self, G: Floats) -> "Evidence":
        """Return marginal log-likelihoods of a grid of strengths (Laplace)."""
        taus = self.grid(G)
        K, B = taus.shape
        many, tau = np.tile(G, (K, 1)), taus.ravel()
        X, _, _ = self.minimize(many, tau)
        Y = self._prepared(many)
        value, n_df = np.empty(K * B), np.empty(K * B)
        size = max(1, BATCH // X.shape[1] ** 2)
        for rows in (np.arange(k, min(k + size, K * B)) for k in range(0, K * B, size)):
            at, s = self.state(Y[rows], X[rows], tau[rows]), tau[rows]
            H = at.hessian(s)
            loss = self._loss(Y[rows], at.T @ self.R.T + self.b) + s / 2 * (at.r**2).sum(axis=1)
            value[rows] = self.n_penalized / 2 * np.log(s) - loss - np.linalg.slogdet(H)[1] / 2
            n_df[rows] = np.trace(np.linalg.solve(H, at.information()), axis1=1, axis2=2)
        return Evidence(taus, value.reshape(K, B), n_df.reshape(K, B))

    def choose(self, G: Floats) -> tuple["Evidence", Floats]:
        """Return the evidence, and strengths (B,) at its weighted mean of ln tau.

        If response or background may be off, the covariance of the counts includes that while the strength is chosen.
        The estimate then has as many degrees of freedom as with that covariance.
        """
        found = self.evidence(G)
        strengths = found.mean()
        if not self.shifts:
            return found, strengths
        parts = [self._choose_with_shifts(g, tau) for g, tau in zip(G, strengths, strict=True)]
        evidence = Evidence(*(np.concatenate(part, axis=1) for part in zip(*(one for one, _ in parts), strict=True)))
        return evidence, np.array([tau for _, tau in parts])

    def _choose_with_shifts(self, g: Floats, tau: float) -> tuple["Evidence", float]:
        T = np.exp(self.minimize(g[None], np.array([tau]))[0])
        V = self.spread(T)[0]
        V += np.diag(np.maximum(RIDGE * np.diag(V).max() - np.diag(V), 0.0))
        other = SpectrumUnfolder(self.method, replace(self.measurement, counts=g, variances=None, covariance=V))
        found = other.evidence(g[None])
        at, strength = other.state(other._prepared(g[None]), np.log(T), np.array([tau])), found.mean()
        n_df = degrees_of_freedom(strength, at.Z, at.D)
        return found, float(self._for_freedom(g[None], n_df)[0])

    # Derivatives

    def jacobian(self, fit: Fit) -> Floats:
        """Return derivatives (B, n, d) of the estimates by the observed counts.

        The information is the expected one: the derivative is that at counts as the estimate predicts them.
        """
        at = self._at(fit)
        H, (_, curvature) = at.hessian(fit.strengths), self._pull(self._prepared(fit.G), fit.T @ self.R.T + self.b)
        inner = at.T[:, :, None] * self.R.T * curvature[:, None, :]
        J = at.T[:, :, None] * np.linalg.solve(H, inner)
        return np.asarray(J if self.whitener is None else J @ self.whitener)

    def moved(self, fit: Fit, shifts: Sequence[Shift]) -> Floats:
        """Return moves (K, B, n) of the estimates along K shifts.

        By the implicit function theorem.
        """
        at, Y = self._at(fit), self._prepared(fit.G)
        L = fit.T @ self.R.T + self.b
        pull, expected = self._pull(Y, L)
        # The observed information: moves are those of these counts.
        observed = expected if self.whitener is not None else Y / np.maximum(L, LOWEST) ** 2 / self.weights
        n = fit.T.shape[1]
        S = self.R * at.T[:, None, :]
        H = (S * observed[:, :, None]).transpose(0, 2, 1) @ S
        H += fit.strengths[:, None, None] * (at.D.transpose(0, 2, 1) @ at.D)
        ridge = _ridge(H)
        H += ridge + (at.T * (pull @ self.R))[:, :, None] * np.eye(n)
        safe = np.linalg.eigvalsh(H)[:, 0] > ridge[:, 0, 0] / 2
        H = np.where(safe[:, None, None], H, at.hessian(fit.strengths))
        changes = np.empty((len(fit), n, len(shifts)))
        for k, shift in enumerate(shifts):
            dR, dg = shift.of_response(self.R.shape), np.broadcast_to(shift.counts, fit.G.shape)
            db = np.broadcast_to(shift.background, self.b.shape)
            if self.whitener is not None:
                dR, db, dg = self.whitener @ dR, self.whitener @ db, dg @ self.whitener.T
            changes[:, :, k] = at.T * ((observed * (fit.T @ dR.T + db) - expected * dg) @ self.R + pull @ dR)
        return np.asarray((-at.T[:, :, None] * np.linalg.solve(H, changes)).transpose(2, 0, 1))

    def statistical(self, fit: Fit, J: Floats) -> Floats:
        """Return statistical covariances (B, n, n).

        If the logarithm of a content is known to less than one unit, its linear error vanishes with the content. The
        error is then at least the number of events by which the deviance rises by one: with slope s and curvature c
        of the deviance in the content, 1 / (s + sqrt(s^2 + c)).
        """
        C = super().statistical(fit, J)
        spread = np.einsum("bii->bi", np.linalg.inv(self._at(fit).hessian(fit.strengths)))
        vague = spread > 1
        if vague.any():
            pull, curvature = self._pull(self._prepared(fit.G), fit.T @ self.R.T + self.b)
            # A likelihood of counts has no curvature in bins without events.
            seen = np.ones_like(fit.G) if self.whitener is not None else fit.G > 0
            slope, bend = np.maximum(pull @ self.R, 0.0), (curvature * seen) @ self.R**2
            error = 1 / np.maximum(slope + np.sqrt(slope**2 + bend), LOWEST)
            least = np.where(vague, error**2, 0.0) - np.einsum("bii->bi", C)
            C = C + np.maximum(least, 0.0)[:, :, None] * np.eye(C.shape[1])
        return np.asarray(C)

    def _at(self, fit: Fit) -> State:
        return self.state(self._prepared(fit.G), np.log(np.maximum(fit.T, 1e-300)), fit.strengths)

    def roughness(self, fit: Fit) -> Floats:
        """Return half the squared residuals, (B,)."""
        r = self.curvature.residuals(np.log(np.maximum(fit.T, 1e-300)))[0]
        return np.asarray((r * r).sum(axis=1) / 2)

    # The bias

    def typical(self, fit: Fit) -> Floats:
        """Return variances (B, m) of true residuals for bias and Sigma.

        The variance of the residuals near each of them is their sum of squares over the number of residuals that the
        counts determine, the local form of MacKay's estimate, shrunk towards the variance at the strength that the
        evidence supports. It is multiplied by 4.7: true spectra with kinks and lines are rougher in places than
        anything a smooth estimate shows. It is at least the upper 84% limit of the variance by the evidence: few counts
        do not exclude structure.
        """
        at, tau = self._at(fit), fit.strengths[:, None]
        evidence, _ = self.choose(fit.G)
        spread = np.einsum("bmi,bim->bm", at.D, np.linalg.solve(at.hessian(fit.strengths), at.D.transpose(0, 2, 1)))
        known = np.clip(1 - tau * spread, 0.0, 1.0)
        c, chain = self.curvature.centres, self.curvature.chain_of
        W = np.exp(-0.5 * ((c[:, None] - c) / WINDOW) ** 2) * (chain[:, None] == chain)
        prior = 1 / evidence.mean()[:, None]
        local = ((at.r**2) @ W + SHRINKAGE * prior) / (known @ W + SHRINKAGE)
        return np.asarray(np.maximum(CAUTION * np.maximum(local, prior / 2), 1 / evidence.lower(QUANTILE)[:, None]))

    def sigma(self, fit: Fit) -> Floats:
        """Return Sigma (B, n, n): covariance of true spectra around estimates."""
        at = self._at(fit)
        inverse = np.linalg.pinv(at.D, rcond=1e-10) * at.T[:, :, None]
        return np.asarray((inverse * self.typical(fit)[:, None, :]) @ inverse.transpose(0, 2, 1))


class Evidence(NamedTuple):
    """Marginal likelihoods of strengths.

    ``strengths``, ``value`` (marginal log-likelihoods) and ``n_df`` (effective degrees of freedom) are (K, B).
    """

    strengths: Floats
    value: Floats
    n_df: Floats

    def weights(self) -> Floats:
        """Return posterior probabilities of the strengths, (K, B)."""
        weights = np.exp(self.value - self.value.max(axis=0))
        return np.asarray(weights / weights.sum(axis=0))

    def lower(self, quantile: float) -> Floats:
        """Return strengths (B,) exceeded with posterior probability `quantile`."""
        below = np.cumsum(self.weights()[::-1], axis=0)
        at = len(below) - 1 - (below >= quantile * (1 - 1e-12)).argmax(axis=0)
        return np.asarray(self.strengths[at, np.arange(below.shape[1])])

    def mean(self) -> Floats:
        """Return the strengths (B,) at the mean of their logarithms."""
        return np.asarray(np.exp((self.weights() * np.log(self.strengths)).sum(axis=0)))


def make_unfolder(method: Any, known: Measurement, shifts: Sequence[Shift] = ()) -> Unfolder:
    """Return the unfolder of :class:`SmoothSpectrum` or of a quantifier."""
    kind = SpectrumUnfolder if isinstance(method, SmoothSpectrum) else QuantifierUnfolder
    return kind(method, known, shifts)


def sigma_of(unfolder: Unfolder, fit: Fit) -> Floats:
    """Return Sigma (B, n, n), the covariance of true spectra around estimates.

    For other methods than the default, these are the spectra that the default supports: the difference of the two
    estimates, and the total covariance of the default.
    """
    if isinstance(unfolder, SpectrumUnfolder):
        return unfolder.sigma(fit)
    judge = SpectrumUnfolder(SmoothSpectrum(), unfolder.measurement, unfolder.shifts)
    other = judge.solve(fit.G, judge.choose(fit.G)[1])
    J = judge.jacobian(other)
    off = (other.T - fit.T)[:, :, None]
    return judge.statistical(other, J) + bias_covariance(judge, other, J) + off @ off.transpose(0, 2, 1)


def bias_covariance(unfolder: Unfolder, fit: Fit, J: Floats) -> Floats:
    """Return the bias covariance (1 - A_C) Sigma (1 - A_C)', (B, n, n).

    A_C = J R, and J (B, n, d) are the derivatives of the estimates.
    """
    rest = np.eye(fit.T.shape[1]) - J @ unfolder.measurement.response
    return np.asarray(rest @ sigma_of(unfolder, fit) @ rest.transpose(0, 2, 1))
