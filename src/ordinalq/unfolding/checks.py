"""Checks of an unfolding on toys: closure, bottom line and coverage."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from scipy.special import ndtri
from scipy.stats import chi2

from ordinalq._utils.validation import Floats, Mask, check_integer, check_random_state, check_real
from ordinalq.plot import check
from ordinalq.plot.style import Axes
from ordinalq.unfolding.result import ONE_SIGMA, Unfolding, chi_square
from ordinalq.unfolding.spectrum import bias_covariance
from ordinalq.unfolding.strength import strengths_by_rule

# A closure is good if it deviates by less than this part of the statistical error.
SMALL_BIAS = 0.5
# A test of models loses nothing where the p-value after unfolding is at least this part of the one before.
LITTLE = 0.5
# Models that the data exclude before unfolding say nothing of it.
EXCLUDED = 0.01


@dataclass(frozen=True)
class Check:
    """The outcome of a check.

    Attributes
    ----------
    name : str
        Which check it is.
    passed : bool
        Whether all is well.
    sentence : str
        What was found, in words.
    columns : dict of arrays
        What was found, per bin or per model.
    expected, allowed : float
        Expected value of the last column, and its tolerance.
    """

    name: str
    passed: bool
    sentence: str
    columns: dict[str, Any]
    expected: float = 0.0
    allowed: float = 0.0

    def frame(self) -> pd.DataFrame:
        """Return the table."""
        return pd.DataFrame(self.columns)

    def plot(self, ax: "Axes | None" = None) -> "Axes":
        """Draw the last column of the table with what it should be."""
        return check(self, ax=ax)

    def __str__(self) -> str:
        return f"{self.sentence}\n{self.frame().to_string(index=False, float_format=lambda x: f'{x:.4g}')}"


def closure_test(unfolding: Unfolding, truth: Any = None) -> Check:
    """Fold a spectrum, unfold it again without fluctuations, and compare.

    Parameters
    ----------
    unfolding : Unfolding
        What `ordinalq.unfold` returns; the strength is the one that it found.
    truth : array-like of the true shape, default=None
        Spectrum to begin with, for example that of the simulation; None stands for the estimate itself.

    Returns
    -------
    Check
        Columns: truth, unfolded, bias, and the bias in units of the statistical error.

    Examples
    --------
    >>> import ordinalq as oq
    >>> M = [[0.9, 0.1, 0.0], [0.1, 0.8, 0.1], [0.0, 0.1, 0.9]]
    >>> spectrum = oq.unfold([480, 320, 210], M, tau=0.0)
    >>> oq.unfolding.closure_test(spectrum, [600, 300, 150]).passed
    True
    """
    known = unfolding.measurement
    t = _spectrum(truth, unfolding)
    back = unfolding.unfolder.solve(known.fold(t[None]), np.array([unfolding.strength])).T[0]
    error = unfolding.statistical_error.ravel()
    part = (back - t) / np.where(error > 0, error, np.inf)
    worst = int(np.abs(part).argmax())
    passed = bool(np.abs(part).max() <= SMALL_BIAS)
    sentence = (
        f"Closure {'holds' if passed else 'fails'}: without fluctuations the spectrum comes back within "
        f"{np.abs(part).max():.2g} statistical errors (bin {worst + 1}); {SMALL_BIAS:g} are allowed."
    )
    if not passed:
        sentence += (
            " The total error includes an estimate of this bias. Weaker regularization, such as a smaller tau, reduces "
            "it."
        )
    columns = {"bin": np.arange(len(t)) + 1, "truth": t, "unfolded": back, "bias": back - t, "bias_in_errors": part}
    return Check("closure", passed, sentence, columns, allowed=SMALL_BIAS)


def bottom_line_test(unfolding: Unfolding, models: Mapping[str, Any], *, bias: bool = True) -> Check:
    """Compare models with the data before and after unfolding.

    Unfolding must not make a model look worse.

    Parameters
    ----------
    unfolding : Unfolding
        What `ordinalq.unfold` returns.
    models : mapping of names to array-likes of the true shape
        Spectra to compare with.
    bias : bool, default=True
        Whether the covariance after unfolding is the total one, or that without bias.

    Returns
    -------
    Check
        Columns: chi-square and p-value of the folded model and the counts, and of the model and the estimate, with all
        that is uncertain. Models with a p-value below 0.01 before unfolding do not count; if no other is left, the
        test is not passed.

    Examples
    --------
    >>> import ordinalq as oq
    >>> M = [[0.9, 0.1, 0.0], [0.1, 0.8, 0.1], [0.0, 0.1, 0.9]]
    >>> spectrum = oq.unfold([480, 320, 210], M, tau=0.0)
    >>> oq.unfolding.bottom_line_test(spectrum, {"falling": [500, 310, 200], "flat": [340, 340, 340]}).passed
    True
    """
    if not isinstance(models, Mapping) or not models:
        raise TypeError(f"models must be a mapping of names to spectra, with at least one, got {models!r:.80}.")
    known = unfolding.measurement
    d, C = len(known.counts), unfolding.covariance_total if bias else unfolding.covariance
    rows = []
    for value in models.values():
        t = _spectrum(value, unfolding)
        off, V = known.counts - known.fold(t[None])[0], unfolding.unfolder.spread(t[None], acceptance=True)[0]
        before = float(off @ np.linalg.solve(V + 1e-12 * np.eye(d), off))
        after, _, p_after = chi_square(unfolding.flat - t, C)
        rows.append((before, chi2.sf(before, d), after, p_after))
    table = np.array(rows)
    names = list(models)
    allowed, good = table[:, 1] >= EXCLUDED, table[:, 3] >= LITTLE * table[:, 1]
    bad = ", ".join(str(names[k]) for k in np.flatnonzero(allowed & ~good))
    if not allowed.any():
        sentence = "The bottom line cannot be tested: the counts exclude every model before unfolding."
    elif bad:
        sentence = f"The bottom line fails for {bad}: it looks worse after unfolding, by bias or too small errors."
    else:
        sentence = "The bottom line holds: no model that the counts allow is excluded more strongly after unfolding."
    parts = ("chi_square_folded", "p_folded", "chi_square_unfolded", "p_unfolded")
    columns = {"model": names, **{name: table[:, k] for k, name in enumerate(parts)}}
    return Check("bottom line", bool(allowed.any() and not bad), sentence, columns, allowed=EXCLUDED)


def coverage_test(
    unfolding: Unfolding, truth: Any = None, *, n_toys: int = 500, level: float = ONE_SIGMA, random_state: Any = 0
) -> Check:
    """Unfold toys of a known spectrum, and count how often their intervals hold it.

    Parameters
    ----------
    unfolding : Unfolding
        What `ordinalq.unfold` returns; toys are unfolded with the same method, and the same rule for the strength.
        With systematic errors, every toy has its own response, acceptance and background.
    truth : array-like of the true shape, default=None
        Spectrum of the toys; None stands for the estimate, which is smoother than the truth may be.
    n_toys : int, default=500
        Number of toys.
    level : float, default=0.6827
        Level of the intervals.
    random_state : int, Generator or None, default=0
        Seed of the toys.

    Returns
    -------
    Check
        Columns: the share of the toys whose intervals contain the true value, without and with the estimated bias.

    Examples
    --------
    >>> import ordinalq as oq
    >>> M = [[0.9, 0.1, 0.0], [0.1, 0.8, 0.1], [0.0, 0.1, 0.9]]
    >>> spectrum = oq.unfold([480, 320, 210], M, tau=0.0)
    >>> list(oq.unfolding.coverage_test(spectrum, n_toys=50).frame())
    ['bin', 'truth', 'without_bias', 'with_bias']
    """
    t = _spectrum(truth, unfolding)
    n_toys, level = check_integer("n_toys", n_toys, minimum=2), check_real("level", level, low=0, high=1, open_low=True)
    toys = unfold_toys(unfolding, unfolding.unfolder.draw(t, n_toys, check_random_state(random_state)))
    narrow, wide = (toys.contains(t, level, bias=bias).mean(axis=0) for bias in (False, True))
    slack = 3 * np.sqrt(level * (1 - level) / n_toys)
    passed = bool(wide.min() >= level - slack)
    sentence = (
        f"Intervals of {level:.1%} contain the true value in {wide.mean():.1%} of {n_toys} toys with the bias "
        f"(worst bin {int(wide.argmin()) + 1}: {wide.min():.1%}), in {narrow.mean():.1%} without it"
        f"{'.' if passed else '; the worst bin is below what chance allows.'}"
    )
    columns = {"bin": np.arange(len(t)) + 1, "truth": t, "without_bias": narrow, "with_bias": wide}
    return Check("coverage", passed, sentence, columns, level, float(slack))


@dataclass(frozen=True)
class Toys:
    """Unfolded toys: estimates, variances and variances of bias, (B, n) each."""

    T: Floats
    variance: Floats
    bias_variance: Floats

    def half_length(self, level: float, *, bias: bool) -> Floats:
        """Return half the lengths of intervals, (B, n), with the bias or without."""
        variance = self.variance + (self.bias_variance if bias else 0.0)
        return np.asarray(ndtri((1 + level) / 2) * np.sqrt(np.maximum(variance, 0.0)))

    def contains(self, t: Floats, level: float, *, bias: bool) -> Mask:
        """Return which intervals, (B, n), contain the spectrum t (n,)."""
        return np.asarray(np.abs(self.T - t) <= self.half_length(level, bias=bias))


def unfold_toys(unfolding: Unfolding, G: Floats) -> Toys:
    """Unfold histograms G (B, d) with systematic errors to first order."""
    unfolder = unfolding.unfolder
    strengths = None if unfolding.scan is None else strengths_by_rule(unfolder, G, unfolding.scan.rule)
    fit = unfolder.solve(G, strengths)
    J = unfolder.jacobian(fit)
    variance = np.einsum("bii->bi", unfolder.statistical(fit, J))
    variance = variance + (unfolder.moved(fit, unfolder.shifts) ** 2).sum(axis=0)
    return Toys(fit.T, variance, np.einsum("bii->bi", bias_covariance(unfolder, fit, J)))


def _spectrum(value: Any, unfolding: Unfolding) -> Floats:
    """Return a spectrum (n,): the estimate for None."""
    return unfolding.flat if value is None else unfolding.read_spectrum(value)
