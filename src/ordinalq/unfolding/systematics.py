"""Systematic uncertainties of response, acceptance and background.

Every source is a list of independent directions in which they may be off by one standard deviation. To first order the
covariance of the estimate is the sum of squares of its moves along them; toys draw from all of them at once.
"""

import warnings
from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Any

import numpy as np
from sklearn.base import clone

from ordinalq._utils.validation import Floats, check_choice, check_numbers, check_real
from ordinalq.unfolding.engine import Column, Fit, Shift, Unfolder, shifted
from ordinalq.unfolding.histograms import is_histogram
from ordinalq.unfolding.measurement import Measurement
from ordinalq.unfolding.spectrum import make_unfolder

PARTS = ("response", "acceptance", "background")
# Columns of the table of an unfolding that are not sources.
COLUMNS = ("events", "share", "statistical", "bias", "error", "total")


class Source(ABC):
    """A source of systematic errors."""

    @abstractmethod
    def shifts(self, known: Measurement) -> list[Shift]:
        """Return independent shifts of one standard deviation each.

        Parameters
        ----------
        known : Measurement
            Observed counts and their model.

        Returns
        -------
        list of Shift
            Independent shifts by one standard deviation.
        """

    def toy_covariance(self, unfolder: Unfolder, fit: Fit, n_toys: int, rng: np.random.Generator) -> Floats:
        """Return the covariance (n, n) of the estimate over varied models.

        Parameters
        ----------
        unfolder : Unfolder
            Unfolder of the method.
        fit : Fit
            Estimate with its strength.
        n_toys : int
            Number of toys.
        rng : Generator
            Random generator.

        Returns
        -------
        ndarray (n, n)
            Covariance of the estimate.
        """
        known = unfolder.measurement
        shifts = self.shifts(known)
        T = []
        for _ in range(n_toys):
            other = shifted(known, shifts, rng.normal(size=len(shifts)))
            method = clone(unfolder.method)
            if method.get_params(deep=False).get("acceptance") is not None:
                method.set_params(acceptance=other.relative_acceptance)
            T.append(make_unfolder(method, other).solve(fit.G[:1], fit.strengths[:1]).T[0])
        return np.atleast_2d(np.cov(np.array(T), rowvar=False))


class SimulatedEvents(Source):
    """Statistics of the simulation behind the response.

    Each entry N_ji of simulated events fluctuates by itself; M_ji = N_ji / sum_j N_ji.

    Parameters
    ----------
    events : array-like of the shape of the response, or histogram
        Numbers of simulated events, or sums of their weights.
    variances : array-like of the same shape, default=None
        Sums of squared weights. None means those of a histogram, or the numbers themselves.
    generated : array-like of the true shape, default=None
        Numbers of all simulated events, observed or not. With them the acceptance fluctuates as well.

    Examples
    --------
    >>> import numpy as np
    >>> import ordinalq as oq
    >>> events = np.array([[90, 10, 0], [10, 80, 10], [0, 10, 90]])
    >>> known = {"simulation": oq.unfolding.SimulatedEvents(events)}
    >>> oq.unfold([480, 320, 210], events / 100, tau=0.0, systematics=known).systematic_error.round(1)
    array([22.4, 29.1, 14.3])
    """

    def __init__(self, events: Any, *, variances: Any = None, generated: Any = None) -> None:
        self.events = events
        self.variances = variances
        self.generated = generated

    def shifts(self, known: Measurement) -> list[Shift]:
        """Return one shift per fluctuating entry of the response and acceptance."""
        N, V = _flat_numbers("events", self.events, known.M.shape), self.variances
        if V is None and is_histogram(self.events):
            V = self.events.variances()
        V = N if V is None else _flat_numbers("variances", V, known.M.shape)
        if (N < 0).any() or (N.sum(axis=0) <= 0).any() or (V < 0).any():
            raise ValueError("events and variances must be >= 0, with some events in every true bin.")
        shifts = _each("response", np.sqrt(V) / N.sum(axis=0), known)
        if self.generated is not None:
            a = known.without_fakes()[1]
            made = _flat_numbers("generated", self.generated, a.shape)
            if (made <= 0).any():
                raise ValueError("generated must be > 0.")
            shifts += _each("acceptance", np.sqrt(np.maximum(a * (1 - a), 0.0) / made), known)
        return shifts


class Uncertainty(Source):
    """Standard errors of the response, the acceptance or the background.

    Parameters
    ----------
    of : {"response", "acceptance", "background"}
        Uncertain quantity.
    error : float or array-like of its shape
        Standard errors. Columns of the response remain distributions: the probability to be observed at all belongs in
        the acceptance.
    relative : bool, default=False
        Whether they are relative to the value itself.
    correlated : bool, default=False
        Whether all entries are off together, in the pattern of `error`, which may then have signs; else each by itself.

    Examples
    --------
    >>> import ordinalq as oq
    >>> known = {"background": oq.unfolding.Uncertainty("background", 0.1, relative=True, correlated=True)}
    >>> M = [[0.9, 0.1, 0.0], [0.1, 0.8, 0.1], [0.0, 0.1, 0.9]]
    >>> oq.unfold([480, 320, 210], M, tau=0.0, background=[40, 40, 40], systematics=known).systematic_error.round(1)
    array([4., 4., 4.])
    """

    def __init__(self, of: str, error: Any, *, relative: bool = False, correlated: bool = False) -> None:
        self.of = of
        self.error = error
        self.relative = relative
        self.correlated = correlated

    def shifts(self, known: Measurement) -> list[Shift]:
        """Return one shift, or one per entry."""
        check_choice("of", self.of, PARTS)
        M, a = known.without_fakes()
        value = {"response": M, "acceptance": a, "background": known.background}[self.of]
        shape = () if np.ndim(self.error) == 0 and not is_histogram(self.error) else value.shape
        error = np.broadcast_to(_flat_numbers("error", self.error, shape), value.shape)
        if not self.correlated and (error < 0).any():
            raise ValueError("error must be >= 0 unless correlated=True, got a negative one.")
        error = error * value if self.relative else error
        return [_shift(self.of, error, known)] if self.correlated else _each(self.of, error, known)


class Luminosity(Source):
    """Relative error of exposure or luminosity, which scales all bins.

    Parameters
    ----------
    error : float
        Relative standard error.
    scales_background : bool, default=False
        Whether the background is scaled too, as one from simulation is.

    Examples
    --------
    >>> import ordinalq as oq
    >>> M = [[0.9, 0.1, 0.0], [0.1, 0.8, 0.1], [0.0, 0.1, 0.9]]
    >>> known = {"luminosity": oq.unfolding.Luminosity(0.02)}
    >>> oq.unfold([480, 320, 210], M, systematics=known).systematic_error.round(1)
    array([10. ,  6.3,  4. ])
    """

    def __init__(self, error: float, *, scales_background: bool = False) -> None:
        self.error = error
        self.scales_background = scales_background

    def shifts(self, known: Measurement) -> list[Shift]:
        """Return the one shift of response and background."""
        error = check_real("error", self.error, low=0)
        return [Shift(response=error * known.response, background=error * known.background * self.scales_background)]


class ShiftedModel(Source):
    """Another simulation or calibration, one standard deviation away.

    Parameters
    ----------
    response : array-like of its shape, or histogram, default=None
        Response of the alternative, without fakes: those of the measurement are added. If the acceptance of the
        measurement is "columns", so is that of the alternative.
    acceptance : array-like of the true shape, or "columns", default=None
        Acceptance of the alternative; "columns" takes it from the sums of the columns of its response.
    background : array-like of the observed shape, default=None
        Background of the alternative.
    down : ShiftedModel, default=None
        The alternative one standard deviation away in the other direction. The shift is half the difference of the two.

    Examples
    --------
    >>> import ordinalq as oq
    >>> M = [[0.9, 0.1, 0.0], [0.1, 0.8, 0.1], [0.0, 0.1, 0.9]]
    >>> off = [[0.88, 0.1, 0.0], [0.12, 0.8, 0.1], [0.0, 0.1, 0.9]]
    >>> known = {"scale": oq.unfolding.ShiftedModel(off)}
    >>> oq.unfold([480, 320, 210], M, tau=0.0, systematics=known).systematic_error.round(1)
    array([12.7, 14.2,  1.6])
    """

    def __init__(
        self,
        response: Any = None,
        *,
        acceptance: Any = None,
        background: Any = None,
        down: "ShiftedModel | None" = None,
    ) -> None:
        self.response = response
        self.acceptance = acceptance
        self.background = background
        self.down = down

    def shifts(self, known: Measurement) -> list[Shift]:
        """Return the shift to the alternative model, or half of that of a pair."""
        if self.down is None:
            return [self._shift(known)]
        if not isinstance(self.down, ShiftedModel) or self.down.down is not None:
            raise TypeError(f"down must be a ShiftedModel without down, got {self.down!r:.80}.")
        return [_combine([self._shift(known), self.down._shift(known)], (0.5, -0.5), known)]

    def _shift(self, known: Measurement) -> Shift:
        if self.response is None and self.acceptance is None and self.background is None:
            raise ValueError("a ShiftedModel needs a response, an acceptance or a background.")
        M, a = known.without_fakes()
        if self.response is not None:
            R = self.response.values() if is_histogram(self.response) else self.response
            M = _flat_numbers("response", R, known.M.shape)
            sums = M.sum(axis=0)
            if (M < 0).any() or (sums <= 0).any():
                raise ValueError("the response of a ShiftedModel must be >= 0, with entries in every true bin.")
            has_losses = known.has_losses if self.acceptance is None else isinstance(self.acceptance, str)
            M, a = M / sums, sums if has_losses else a
        if isinstance(self.acceptance, str):
            check_choice("acceptance", self.acceptance, ("columns",))
            if self.response is None:
                raise ValueError("acceptance must be numbers without a response, got 'columns'.")
        elif self.acceptance is not None:
            a = _flat_numbers("acceptance", self.acceptance, a.shape)
        b = known.background
        if self.background is not None:
            b = _flat_numbers("background", self.background, b.shape)
        return Shift(response=known.add_fakes(M * a) - known.response, background=b - known.background)


class Correlated(Source):
    """Sources of one direction each whose errors are correlated.

    Parameters
    ----------
    sources : sequence of Source
        K sources with one shift each, such as :class:`ShiftedModel`, :class:`Luminosity` or an :class:`Uncertainty`
        with ``correlated=True``.
    correlation : array-like (K, K)
        Correlation matrix of their errors.

    Examples
    --------
    >>> import ordinalq as oq
    >>> M = [[0.9, 0.1, 0.0], [0.1, 0.8, 0.1], [0.0, 0.1, 0.9]]
    >>> pair = [oq.unfolding.Luminosity(0.03), oq.unfolding.Luminosity(0.04)]
    >>> known = {"both": oq.unfolding.Correlated(pair, [[1.0, 0.5], [0.5, 1.0]])}
    >>> spectrum = oq.unfold([480, 320, 210], M, systematics=known)
    >>> (spectrum.systematic_error / spectrum.counts).round(4)  # sqrt(0.03^2 + 0.04^2 + 0.03 * 0.04)
    array([0.0608, 0.0608, 0.0608])
    """

    def __init__(self, sources: Any, correlation: Any) -> None:
        self.sources = sources
        self.correlation = correlation

    def shifts(self, known: Measurement) -> list[Shift]:
        """Return independent combinations of the shifts."""
        each = [source.shifts(known) for source in self.sources]
        if any(len(part) != 1 for part in each):
            raise ValueError("sources must have one shift each. Use correlated=True for an Uncertainty.")
        C = check_numbers("correlation", self.correlation)
        k = len(each)
        is_matrix = C.shape == (k, k) and np.allclose(C, C.T) and np.allclose(np.diag(C), 1)
        if not is_matrix or np.linalg.eigvalsh(C)[0] < -1e-9:
            raise ValueError(
                f"correlation must be a correlation matrix of shape {(k, k)}, got {self.correlation!r:.80}."
            )
        size, axes = np.linalg.eigh(C)
        root = axes * np.sqrt(np.maximum(size, 0.0))
        return [_combine([part[0] for part in each], column, known) for column in root.T]


def read_sources(systematics: Mapping[str, Source] | None, known: Measurement) -> dict[str, Source]:
    """Return the sources, checked, with the statistics of a response histogram."""
    if systematics is not None and not isinstance(systematics, Mapping):
        raise TypeError(f"systematics must be a mapping of names to sources, got {systematics!r:.80}.")
    sources = dict(systematics or {})
    if known.simulated is not None and "simulation" not in sources:
        sources["simulation"] = SimulatedEvents(known.simulated[0], variances=known.simulated[1])
    has_simulation = any(isinstance(source, SimulatedEvents) for source in sources.values())
    if known.response_axes and known.simulated is None and not has_simulation:
        warnings.warn(
            "response is a histogram without variances: the statistics of the simulation are not included. Pass "
            "systematics={'simulation': SimulatedEvents(response, variances=...)}.",
            UserWarning,
            stacklevel=3,
        )
    for name, source in sources.items():
        if not isinstance(source, Source):
            raise TypeError(
                f"systematics[{name!r}] must be SimulatedEvents, Uncertainty or ShiftedModel, got {source!r:.80}."
            )
        if name in COLUMNS:
            raise ValueError(f"systematics must have names other than {', '.join(COLUMNS)}, columns of the table.")
    return sources


def _each(of: str, error: Floats, known: Measurement) -> list[Shift]:
    """Return one shift per entry that can be off."""
    M, a = known.without_fakes()
    shifts = []
    for index in zip(*np.nonzero(error), strict=True):
        entry = np.zeros(len(error))
        entry[index[0]] = error[index]
        if of == "background":
            shifts.append(Shift(background=entry))
        elif of == "acceptance":
            i = int(index[0])
            shifts.append(Shift(response=Column(i, known.add_fakes(M[:, i] * error[i]))))
        else:
            i = int(index[1])
            column = (entry - M[:, i] * entry.sum()) * a[i]
            shifts.append(Shift(response=Column(i, known.add_fakes(column))))
    return shifts


def _shift(of: str, move: Floats, known: Measurement) -> Shift:
    """Return a shift of all entries; columns of M remain distributions."""
    if of == "background":
        return Shift(background=move)
    M, a = known.without_fakes()
    R = M * move if of == "acceptance" else (move - M * move.sum(axis=0)) * a
    return Shift(response=known.add_fakes(R))


def _combine(shifts: list[Shift], factors: Any, known: Measurement) -> Shift:
    """Return a linear combination of shifts of response and background."""
    pairs = list(zip(shifts, factors, strict=True))
    response = sum((f * shift.of_response(known.M.shape) for shift, f in pairs), np.zeros(known.M.shape))
    background = sum((f * np.asarray(shift.background) for shift, f in pairs), np.zeros(known.background.shape))
    return Shift(response=response, background=background)


def _flat_numbers(name: str, value: Any, shape: tuple[int, ...]) -> Floats:
    """Return numbers in a flat shape; they may come in the shape of their bins."""
    array = check_numbers(name, value.values() if is_histogram(value) else value)
    if array.size != int(np.prod(shape)):
        raise ValueError(f"{name} must be {int(np.prod(shape))} finite numbers, got shape {array.shape}.")
    return array.reshape(shape)
