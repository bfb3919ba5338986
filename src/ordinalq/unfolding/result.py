"""`Unfolding`: a spectrum with its errors."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from scipy.special import ndtri
from scipy.stats import chi2

from ordinalq._utils.validation import Floats, check_real
from ordinalq.plot import unfolding as draw
from ordinalq.plot.style import Axes
from ordinalq.quantifiers.run_ibu import IBU
from ordinalq.unfolding import export
from ordinalq.unfolding.engine import Fit, Shift, Unfolder
from ordinalq.unfolding.histograms import make_histogram
from ordinalq.unfolding.measurement import Measurement
from ordinalq.unfolding.spectrum import make_unfolder, sigma_of
from ordinalq.unfolding.strength import Scan

# The level of an interval of one standard error.
ONE_SIGMA = 0.6827
# Eigenvalues of a covariance below this part of the largest are rounding errors of zero.
ROUNDING = 1e-10


@dataclass(frozen=True)
class Unfolding:
    """An unfolded spectrum; arrays have the shape of the true bins.

    Parameters
    ----------
    measurement : Measurement
        Observed counts, response, acceptance and background.
    method : estimator
        The method, with all parameters filled in.
    flat : ndarray (n,)
        Estimated numbers of events in one row; ``counts`` has the shape of the bins.
    jacobian : ndarray (n, d)
        Derivatives of the estimate with respect to the observed counts.
    statistical : ndarray (n, n)
        Covariance by the fluctuations of the counts.
    systematic : dict of ndarray (n, n)
        Covariance by source.
    moves : dict of ndarray (K, n)
        Signed moves of the estimate along the K independent directions of each source, by one standard deviation.
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
        degrees of freedom d - n_df that are left; the probability of a worse fit, NaN if nothing is left.
    scan : Scan, default=None
        Strengths that the rule compared.
    shifts : sequence of Shift, default=()
        Directions in which response and background may be off.

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
    method: Any
    flat: Floats
    jacobian: Floats
    statistical: Floats
    systematic: dict[str, Floats]
    moves: dict[str, Floats]
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
        """The method applied to the measurement."""
        return make_unfolder(self.method, self.measurement, self.shifts)

    @property
    def counts(self) -> Floats:
        """Estimated numbers of all events, observed or not."""
        return self.flat.reshape(self.measurement.shape)

    @property
    def shares(self) -> Floats:
        """The estimate as a distribution."""
        return np.asarray(self.counts / self.flat.sum())

    # Comparison with models: E[estimate] = smearing @ truth + offset, to first order.

    @property
    def smearing(self) -> Floats:
        """Smearing matrix A_C (n, n): derivatives of the expected estimate by truth."""
        return np.asarray(self.jacobian @ self.measurement.response)

    @property
    def offset(self) -> Floats:
        """Offset (n,): the expected estimate for truth t is smearing @ t + offset."""
        return np.asarray(self.flat - self.jacobian @ (self.measurement.counts - self.measurement.background))

    @cached_property
    def sigma(self) -> Floats:
        """Prior covariance Sigma (n, n) of the true spectrum around the estimate.

        For the default method: normal changes of the local slope, with 4.7 times the variance that the estimate
        supports near each bin, and zero along the directions that are not penalized. For other methods: the squared
        difference from the default's estimate, plus the total covariance of the latter.
        """
        known = self.measurement
        P = (self.flat * known.acceptance / max(float((self.flat * known.acceptance).sum()), 1e-300))[None]
        at = np.array([self.strength])
        fit = Fit(known.counts[None], P, self.flat[None], at, np.zeros(1, dtype=np.int64), np.ones(1, dtype=bool))
        return np.asarray(sigma_of(self.unfolder, fit)[0])

    @cached_property
    def bias_covariance(self) -> Floats:
        """Covariance (n, n) of the bias: (1 - A_C) Sigma (1 - A_C)'."""
        rest = np.eye(len(self.flat)) - self.smearing
        # Without regularization A_C is one: what is left are rounding errors.
        if np.abs(rest * self.flat).max() <= 1e-6 * np.abs(self.flat).max():
            return np.zeros_like(rest)
        return np.asarray(rest @ self.sigma @ rest.T)

    # Errors

    @property
    def covariance(self) -> Floats:
        """Covariance (n, n) without the bias: statistical and systematic."""
        return np.asarray(sum(self.systematic.values(), self.statistical))

    @property
    def covariance_total(self) -> Floats:
        """Total covariance (n, n): statistical, systematic and bias."""
        return np.asarray(self.covariance + self.bias_covariance)

    @property
    def statistical_error(self) -> Floats:
        """Standard errors by the fluctuations of the counts."""
        return self._root(self.statistical)

    @property
    def systematic_error(self) -> Floats:
        """Standard errors by all systematic sources."""
        return self._root(self.covariance - self.statistical)

    @property
    def error(self) -> Floats:
        """Standard errors, statistical and systematic, without bias."""
        return self._root(self.covariance)

    @property
    def bias_error(self) -> Floats:
        """Standard deviations of the bias of the regularization."""
        return self._root(self.bias_covariance)

    @property
    def total_error(self) -> Floats:
        """Standard errors: statistical, systematic and bias."""
        return self._root(self.covariance_total)

    @property
    def correlation(self) -> Floats:
        """Correlations (n, n) of the total covariance; zero where an error is zero."""
        C = self.covariance_total
        root = np.sqrt(np.diag(C))
        root = np.where(root > 0, root, np.inf)
        return np.asarray(C / root / root[:, None])

    def interval(self, level: float = ONE_SIGMA, *, bias: bool = True) -> tuple[Floats, Floats]:
        """Return normal intervals, not below zero, with or without bias.

        Parameters
        ----------
        level : float, default=0.6827
            Probability that an interval contains the true value.
        bias : bool, default=True
            Whether intervals include the bias of the regularization.

        Returns
        -------
        tuple of ndarray
            Lower and upper ends, in the shape of the bins.
        """
        level = check_real("level", level, low=0, high=1, open_low=True)
        width = float(ndtri((1 + level) / 2)) * (self.total_error if bias else self.error)
        return np.maximum(self.counts - width, 0.0), self.counts + width

    # The fit

    @property
    def refolded(self) -> Floats:
        """Counts that the estimate predicts, background included."""
        return self.refolded_flat.reshape(self.measurement.observed_shape)

    @property
    def observed(self) -> Floats:
        """Observed counts."""
        return self.measurement.counts.reshape(self.measurement.observed_shape)

    @property
    def pulls(self) -> Floats:
        """(observed - refolded) / standard deviation of the counts, zero if that is zero."""
        known = self.measurement
        root = np.sqrt(np.diagonal(known.fluctuations(self.refolded_flat[None])[0]))
        off = known.counts - self.refolded_flat
        return np.asarray(np.divide(off, root, out=np.zeros_like(off), where=root > 0).reshape(known.observed_shape))

    @property
    def edges(self) -> Any:
        """Edges of the true bins: an array, one per axis or block, or None."""
        known = self.measurement.edges
        return known[0] if known is not None and len(known) == 1 else known

    def compare(self, models: Mapping[str, Any], *, smeared: bool = False) -> pd.DataFrame:
        """Compare models with the spectrum.

        Parameters
        ----------
        models : mapping of names to array-likes of the true shape
            Spectra.
        smeared : bool, default=False
            False compares the model itself, with the total covariance. True compares the model smeared by A_C, plus the
            offset, with the covariance without bias.

        Returns
        -------
        DataFrame
            One row per model: chi-square, degrees of freedom (rank of the covariance) and p-value.
        """
        if not isinstance(models, Mapping) or not models:
            raise TypeError(f"models must be a mapping of names to spectra, with at least one, got {models!r:.80}.")
        C = self.covariance if smeared else self.covariance_total
        rows = []
        for name, value in models.items():
            t = self.read_spectrum(value)
            expected = self.smearing @ t + self.offset if smeared else t
            rows.append((name, *chi_square(self.flat - expected, C)))
        return pd.DataFrame(rows, columns=["model", "chi_square", "dof", "p_value"])

    def read_spectrum(self, value: Any) -> Floats:
        """Return a spectrum of the true shape as (n,).

        Parameters
        ----------
        value : array-like or histogram
            Spectrum over the true bins.

        Returns
        -------
        ndarray
            Numbers of events in the shape of the bins.
        """
        t, shape = np.asarray(value, dtype=np.float64), self.measurement.shape
        if t.shape != shape or not np.isfinite(t).all() or (t < 0).any() or not t.any():
            raise ValueError(f"a spectrum must be numbers >= 0, not all zero, of shape {shape}, got {value!r:.80}.")
        return t.ravel()

    # Tables, files and plots

    def frame(self) -> pd.DataFrame:
        """Return a table with one row per true bin."""
        known = self.measurement
        columns: dict[str, Any] = {}
        if known.blocks is not None:
            columns["block"] = np.repeat(np.arange(len(known.blocks)) + 1, known.blocks)
            if known.edges is not None:
                columns["low"] = np.concatenate([part[:-1] for part in known.edges])
                columns["high"] = np.concatenate([part[1:] for part in known.edges])
        elif known.edges is not None:
            for k, part in enumerate(known.edges):
                name = "" if len(known.shape) == 1 else f"_{k + 1}"
                at = np.unravel_index(np.arange(len(self.flat)), known.shape)[k]
                columns[f"low{name}"], columns[f"high{name}"] = part[:-1][at], part[1:][at]
        else:
            for k, at in enumerate(np.unravel_index(np.arange(len(self.flat)), known.shape)):
                columns["bin" if len(known.shape) == 1 else f"bin_{k + 1}"] = at + 1
        columns |= {"events": self.flat, "share": self.flat / self.flat.sum()}
        columns["statistical"] = self.statistical_error.ravel()
        columns |= {name: np.sqrt(np.diag(part)) for name, part in self.systematic.items()}
        columns |= {"error": self.error.ravel(), "bias": self.bias_error.ravel(), "total": self.total_error.ravel()}
        return pd.DataFrame(columns)

    def histogram(self, *, bias: bool = True) -> Any:
        """Return a histogram over the true axes with variances.

        It has the type of the observed histogram. If counts and response were not histograms, it is one of `hist`, and
        needs `edges`.

        Parameters
        ----------
        bias : bool, default=True
            Whether variances include the bias of the regularization.

        Returns
        -------
        histogram
            Histogram of the type of the counts.
        """
        known = self.measurement
        axes: Sequence[Any] = known.response_axes or known.edges or ()
        if not axes or (known.blocks is not None and len(known.blocks) > 1):
            raise TypeError("histogram needs edges, or counts and response that are histograms.")
        variances = np.diag(self.covariance_total if bias else self.covariance).reshape(self.counts.shape)
        return make_histogram(known.histogram, list(axes), self.counts, variances)

    def to_json(self, path: Any = None) -> str:
        """Return the result as JSON, and write it if `path` is given.

        Parameters
        ----------
        path : path, default=None
            File to write; None for none.

        Returns
        -------
        str
            JSON text.
        """
        text = export.to_json(self)
        if path is not None:
            Path(path).write_text(text, encoding="utf-8")
        return text

    @classmethod
    def from_json(cls, text: Any) -> "Unfolding":
        """Read a result from JSON text, or from a file.

        Parameters
        ----------
        text : str or path
            JSON text, or the path of a file.

        Returns
        -------
        Unfolding
            The stored result.
        """
        is_file = isinstance(text, Path) or not str(text).lstrip().startswith("{")
        found: Unfolding = export.from_json(cls, Path(text).read_text(encoding="utf-8") if is_file else text)
        return found

    def to_hepdata(self, folder: Any, *, name: str = "spectrum", variable: str = "bin", units: str = "") -> list[Path]:
        """Write YAML files for HEPData: values, uncertainties and covariances.

        Parameters
        ----------
        folder : path
            Folder of the files, created if it does not exist.
        name : str, default="spectrum"
            Name of the table.
        variable, units : str
            Name and units of the variable of the bins.

        Returns
        -------
        list of Path
            The files: submission.yaml, the spectrum, and one table per covariance and for the smearing matrix.
        """
        return export.to_hepdata(self, Path(folder), name, variable, units)

    def to_root(self, path: Any) -> None:
        """Write a ROOT file with spectrum, covariances and smearing matrix.

        The spectrum is a TH1 or TH2 with total errors, matrices are TH2.

        It needs the extra `root`.

        Parameters
        ----------
        path : path
            ROOT file to write.
        """
        export.to_root(self, path)

    def plot(self, ax: "Axes | None" = None, **look: Any) -> Any:
        """Draw the spectrum, see :func:`ordinalq.plot.spectrum`.

        Parameters
        ----------
        ax : matplotlib Axes, default=None
            Axes to draw on; None creates new ones.
        **look
            Further arguments of the function.

        Returns
        -------
        matplotlib Axes
            Axes with the plot.
        """
        return draw.spectrum(self, ax=ax, **look)

    def plot_fit(self, **look: Any) -> Any:
        """Draw observed and refolded counts, see :func:`ordinalq.plot.refolded`.

        Parameters
        ----------
        **look
            Further arguments of the function.

        Returns
        -------
        matplotlib Axes
            Axes with the plot.
        """
        return draw.refolded(self, **look)

    def plot_correlation(self, ax: "Axes | None" = None, **look: Any) -> Any:
        """Draw total correlations, see :func:`ordinalq.plot.correlation`.

        Parameters
        ----------
        ax : matplotlib Axes, default=None
            Axes to draw on; None creates new ones.
        **look
            Further arguments of the function.

        Returns
        -------
        matplotlib Axes
            Axes with the plot.
        """
        return draw.correlation(self, ax=ax, **look)

    def plot_response(self, ax: "Axes | None" = None, **look: Any) -> Any:
        """Draw the response over its bins, see :func:`ordinalq.plot.response`.

        Parameters
        ----------
        ax : matplotlib Axes, default=None
            Axes to draw on; None creates new ones.
        **look
            Further arguments of the function.

        Returns
        -------
        matplotlib Axes
            Axes with the plot.
        """
        return draw.response(self, ax=ax, **look)

    def plot_scan(self, ax: "Axes | None" = None) -> "Axes":
        """Draw the criterion of the rule, see :func:`ordinalq.plot.strength_scan`.

        Parameters
        ----------
        ax : matplotlib Axes, default=None
            Axes to draw on; None creates new ones.

        Returns
        -------
        matplotlib Axes
            Axes with the plot.
        """
        if self.scan is None:
            raise ValueError("the result has no scan. Pass a rule to unfold, for example tau='information'.")
        return draw.strength_scan(self.scan, ax=ax)

    def __str__(self) -> str:
        how = "iterations" if isinstance(self.method, IBU) else "tau"
        rule = "" if self.scan is None else f" by {self.scan.rule}"
        fit = f"chi-square {self.chi_square:.3g} with {self.dof:.3g} degrees of freedom left"
        if np.isfinite(self.p_value):
            fit += f", p = {self.p_value:.2g}"
        head = (
            f"{type(self.method).__name__}, {how} {self.strength:.3g}{rule}, {self.n_df:.3g} degrees of freedom; {fit}"
            f"{'' if self.converged else '; not converged'}"
        )
        if self.measurement.has_losses:
            R = self.measurement.response
            columns, rows = R.sum(axis=0), R.sum(axis=1)
            head += (
                f"\nacceptance {columns.min():.3g} to {columns.max():.3g}: columns (true bins) of the response; "
                f"rows (observed bins) sum to {rows.min():.3g} to {rows.max():.3g}"
            )
        table = self.frame().to_string(index=False, float_format=lambda x: f"{x:.4g}")
        return f"{head}\n{table}"

    def _root(self, covariance: Floats) -> Floats:
        return np.sqrt(np.maximum(np.diag(covariance), 0.0)).reshape(self.measurement.shape)


def chi_square(off: Floats, covariance: Floats) -> tuple[float, int, float]:
    """Return off' C^-1 off, its degrees of freedom and its p-value.

    Directions without variance are left out.

    Bins are scaled to unit variance first, so that small bins are not mistaken for directions without variance.
    """
    root = np.sqrt(np.maximum(np.diag(covariance), 1e-300))
    size, axes = np.linalg.eigh(covariance / root / root[:, None])
    known = size > ROUNDING * size[-1]
    parts = (axes.T @ (off / root))[known]
    value = float((parts**2 / size[known]).sum())
    return value, int(known.sum()), float(chi2.sf(value, known.sum()))
