"""`Unfolding`: a spectrum with its errors."""

import sys
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from scipy.special import chndtrix, ndtri

from ordinalq._utils.validation import Floats, check_real
from ordinalq.plot import spectrum, strength_scan
from ordinalq.plot.style import Axes
from ordinalq.quantifiers.base import Quantifier
from ordinalq.unfolding.engine import Shift, Unfolder
from ordinalq.unfolding.measurement import Measurement
from ordinalq.unfolding.strength import Scan

# The level of an interval of one standard error.
ONE_SIGMA = 0.6827
# Where a bias is as many standard errors, one side of an interval is all that matters.
ONE_SIDE = 10.0


def half_length(level: float, variance: Floats, bias: Floats) -> Floats:
    """Return h with P(|x| <= h) = level for x ~ Normal(bias, variance), (...).

    For a bias of zero it is z sqrt(variance), far from it |bias| + z' sqrt(variance), z' the quantile of one side.
    """
    root, bias = np.sqrt(np.maximum(variance, 0.0)), np.abs(bias)
    far = bias >= ONE_SIDE * root
    parts = np.divide(bias, root, out=np.zeros_like(bias), where=~far)
    # x^2 / variance has the non-central chi-square distribution with one degree of freedom.
    return np.asarray(np.where(far, bias + ndtri(level) * root, root * np.sqrt(chndtrix(level, 1, parts**2))))


@dataclass(frozen=True)
class Unfolding:
    """An unfolded spectrum; arrays have the shape of the true bins.

    Parameters
    ----------
    measurement : Measurement
        What was observed and is known.
    method : Quantifier
        The method, with all parameters filled in.
    flat : ndarray (n,)
        Estimated numbers of events in one row; ``counts`` has the shape of the bins.
    statistical : ndarray (n, n)
        Covariance by the fluctuations of the counts.
    systematic : dict of ndarray (n, n)
        Covariance by source.
    bias_flat, bias_variance : ndarray (n,)
        Estimated bias of the regularization, and the variance of that estimate.
    strength : float
        tau, or the number of iterations of IBU.
    n_df : float
        Effective degrees of freedom, the trace of the derivative of the refolded counts by the observed ones.
    n_iter, converged : int, bool
        Iterations of the solver, and whether it converged.
    refolded_flat : ndarray (d,)
        Counts that the estimate predicts.
    chi_square, dof, p_value : float
        (g - lambda)' V^-1 (g - lambda), V the covariance of the counts by fluctuations, response and background; the
        degrees of freedom d - n_df that are left; the probability of a worse fit, NaN where nothing is left.
    scan : Scan, default=None
        What the rule for tau saw.
    shifts : sequence of Shift, default=()
        How response, acceptance and background may be off.

    Examples
    --------
    >>> import ordinalq as oq
    >>> M = [[0.9, 0.1, 0.0], [0.1, 0.8, 0.1], [0.0, 0.1, 0.9]]
    >>> spectrum = oq.unfold([480, 320, 210], M, tau=0.0)
    >>> spectrum.frame()[["bin", "events", "error"]].round(1)
       bin  events  error
    0    1   498.6   24.8
    1    2   312.9   23.3
    2    3   198.6   16.5
    """

    measurement: Measurement
    method: Quantifier
    flat: Floats
    statistical: Floats
    systematic: dict[str, Floats]
    bias_flat: Floats
    bias_variance: Floats
    strength: float
    n_df: float
    n_iter: int
    converged: bool
    refolded_flat: Floats
    chi_square: float
    dof: float
    p_value: float
    scan: Scan | None = None
    shifts: Sequence[Shift] = ()

    @property
    def unfolder(self) -> Unfolder:
        """The method at work on what is known."""
        return Unfolder(self.method, self.measurement, self.shifts)

    @property
    def counts(self) -> Floats:
        """Estimated numbers of all events, observed or not."""
        return self.flat.reshape(self.measurement.shape)

    @property
    def shares(self) -> Floats:
        """The estimate as a distribution."""
        return np.asarray(self.counts / self.flat.sum())

    @property
    def covariance(self) -> Floats:
        """Total covariance (n, n): statistical and systematic."""
        return np.asarray(sum(self.systematic.values(), self.statistical))

    @property
    def statistical_error(self) -> Floats:
        """Standard errors by the fluctuations of the counts."""
        return self._root(np.diag(self.statistical))

    @property
    def systematic_error(self) -> Floats:
        """Standard errors by all systematic sources."""
        return self._root(np.diag(self.covariance) - np.diag(self.statistical))

    @property
    def error(self) -> Floats:
        """Standard errors, statistical and systematic, without bias."""
        return self._root(np.diag(self.covariance))

    @property
    def error_with_bias(self) -> Floats:
        """Half the length of intervals of 68.27 % that hold the truth where the estimate is off by the bias."""
        return self._half_length(ONE_SIGMA)

    @property
    def bias(self) -> Floats:
        """Estimated bias: what the method does to a spectrum like this one, with a little more structure."""
        return self.bias_flat.reshape(self.measurement.shape)

    @property
    def correlation(self) -> Floats:
        """Correlations (n, n) of the total covariance; zero where an error is zero."""
        root = np.sqrt(np.diag(self.covariance))
        root = np.where(root > 0, root, np.inf)
        return np.asarray(self.covariance / root / root[:, None])

    @property
    def refolded(self) -> Floats:
        """Counts that the estimate predicts, background included."""
        return self.refolded_flat.reshape(self.measurement.observed_shape)

    @property
    def observed(self) -> Floats:
        """Observed counts."""
        return self.measurement.counts.reshape(self.measurement.observed_shape)

    @property
    def edges(self) -> Any:
        """Edges of the true bins: an array, one per axis where there are several, or None."""
        known = self.measurement.edges
        return known[0] if known is not None and len(known) == 1 else known

    def interval(self, level: float = ONE_SIGMA, *, bias: bool = True) -> tuple[Floats, Floats]:
        """Return lower and upper ends of normal intervals, not below zero, with the estimated bias or without."""
        level = check_real("level", level, low=0, high=1, open_low=True)
        width = self._half_length(level) if bias else float(ndtri((1 + level) / 2)) * self.error
        return np.maximum(self.counts - width, 0.0), self.counts + width

    def frame(self) -> pd.DataFrame:
        """Return a table with one row per true bin."""
        columns: dict[str, Any] = {}
        shape = self.measurement.shape
        if self.measurement.edges is not None:
            for k, part in enumerate(self.measurement.edges):
                name = "" if len(shape) == 1 else f"_{k + 1}"
                at = np.unravel_index(np.arange(len(self.flat)), shape)[k]
                columns[f"low{name}"], columns[f"high{name}"] = part[:-1][at], part[1:][at]
        else:
            for k, at in enumerate(np.unravel_index(np.arange(len(self.flat)), shape)):
                columns["bin" if len(shape) == 1 else f"bin_{k + 1}"] = at + 1
        columns |= {"events": self.flat, "share": self.flat / self.flat.sum()}
        columns["statistical"] = self.statistical_error.ravel()
        columns |= {name: np.sqrt(np.diag(part)) for name, part in self.systematic.items()}
        columns |= {"error": self.error.ravel(), "bias": self.bias_flat, "with_bias": self.error_with_bias.ravel()}
        return pd.DataFrame(columns)

    def histogram(self) -> Any:
        """Return a histogram over the true axis, of the type of the observed one, with the total variances.

        Both counts and response must have been histograms of `hist` or `boost_histogram`.
        """
        source, response = self.measurement.histogram, self.measurement.response_axes
        if source is None:
            raise TypeError("histogram needs counts and response that are histograms of hist or boost_histogram.")
        result = type(source)(*response, storage=sys.modules["boost_histogram"].storage.Weight())
        view = result.view(flow=False)
        view["value"], view["variance"] = self.counts, np.diag(self.covariance).reshape(self.counts.shape)
        return result

    def plot(self, ax: "Axes | None" = None, **look: Any) -> Any:
        """Draw the spectrum, see :func:`ordinalq.plot.spectrum`."""
        return spectrum(self, ax=ax, **look)

    def plot_scan(self, ax: "Axes | None" = None) -> "Axes":
        """Draw what the rule for the strength saw, see :func:`ordinalq.plot.strength_scan`."""
        if self.scan is None:
            raise ValueError("there was no scan: give unfold a rule, for example tau='information'.")
        return strength_scan(self.scan, ax=ax)

    def __str__(self) -> str:
        how = "tau" if "tau" in self.method.get_params() else "iterations"
        rule = "" if self.scan is None else f" by {self.scan.rule}"
        fit = f"chi-square {self.chi_square:.3g} with {self.dof:.3g} degrees of freedom left"
        if np.isfinite(self.p_value):
            fit += f", p = {self.p_value:.2g}"
        head = (
            f"{type(self.method).__name__}, {how} {self.strength:.3g}{rule}, {self.n_df:.3g} degrees of freedom; {fit}"
            f"{'' if self.converged else '; not converged'}"
        )
        table = self.frame().to_string(index=False, float_format=lambda x: f"{x:.4g}")
        return f"{head}\n{table}"

    def _half_length(self, level: float) -> Floats:
        width = half_length(level, np.diag(self.covariance) + self.bias_variance, self.bias_flat)
        return width.reshape(self.measurement.shape)

    def _root(self, variances: Floats) -> Floats:
        return np.sqrt(np.maximum(variances, 0.0)).reshape(self.measurement.shape)
