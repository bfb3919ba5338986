"""Systematic uncertainties of response, acceptance and background.

Every source is a list of independent directions in which they may be off by one standard deviation. To first order the
covariance of the estimate is the sum of squares of its moves along them; toys draw from all of them at once.
"""

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Any

import numpy as np

from ordinalq._utils.validation import Floats, check_choice, check_numbers
from ordinalq.unfolding.engine import Fit, Shift, Unfolder, shifted
from ordinalq.unfolding.measurement import Measurement
from ordinalq.unfolding.response import is_histogram

PARTS = ("response", "acceptance", "background")
# Columns of the table of an unfolding that are no sources.
COLUMNS = ("events", "share", "statistical", "error", "bias", "with_bias")


class Source(ABC):
    """A source of systematic errors."""

    @abstractmethod
    def shifts(self, known: Measurement) -> list[Shift]:
        """Return independent shifts of one standard deviation each."""

    def covariance(self, unfolder: Unfolder, fit: Fit) -> Floats:
        """Return the covariance (n, n) of the first estimate, to first order: sum_k dt_k dt_k'."""
        moved = unfolder.moved(fit, self.shifts(unfolder.measurement))[:, 0]
        return np.asarray(moved.T @ moved)

    def toy_covariance(self, unfolder: Unfolder, fit: Fit, n_toys: int, rng: np.random.Generator) -> Floats:
        """Return the covariance (n, n) of the first estimate, from unfoldings with other response, acceptance, ..."""
        known = unfolder.measurement
        shifts, strengths = self.shifts(known), fit.strengths[:1]
        moved = [shifted(known, shifts, rng.normal(size=len(shifts))) for _ in range(n_toys)]
        T = [Unfolder(unfolder.method, other).solve(fit.G[:1], strengths).T[0] for other in moved]
        return np.atleast_2d(np.cov(np.array(T), rowvar=False))


class SimulatedEvents(Source):
    """Statistics of the simulation behind the response.

    Each entry N_ji of simulated events fluctuates by itself; M_ji = N_ji / sum_j N_ji.

    Parameters
    ----------
    events : array-like of the shape of the response
        Numbers of simulated events, or sums of their weights.
    variances : array-like of the same shape, default=None
        Sums of squared weights; None stands for the numbers themselves.
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
        """Return one shift per entry of the response that can fluctuate, and one per acceptance."""
        events, default = self.events, None
        if is_histogram(events):
            events, default = self.events.values(), self.events.variances()
        N = _like("events", events, known.M.shape)
        V = N if self.variances is None and default is None else self.variances if default is None else default
        V = _like("variances", V, known.M.shape)
        if (N < 0).any() or (N.sum(axis=0) <= 0).any() or (V < 0).any():
            raise ValueError("events and variances must be >= 0, with some events in every true bin.")
        shifts = _each("response", np.sqrt(V) / N.sum(axis=0), known)
        if self.generated is not None:
            made = _like("generated", self.generated, known.acceptance.shape)
            if (made <= 0).any():
                raise ValueError("generated must be > 0.")
            a = known.acceptance
            shifts += _each("acceptance", np.sqrt(np.maximum(a * (1 - a), 0.0) / made), known)
        return shifts


class Uncertainty(Source):
    """Standard errors of the response, the acceptance or the background.

    Parameters
    ----------
    of : {"response", "acceptance", "background"}
        What is uncertain.
    error : float or array-like of its shape
        Standard errors. Columns of the response remain distributions: the share of events that are observed at all
        belongs in the acceptance.
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
        value = {"response": known.M, "acceptance": known.acceptance, "background": known.background}[self.of]
        shape = () if np.ndim(self.error) == 0 and not is_histogram(self.error) else value.shape
        error = np.broadcast_to(_like("error", self.error, shape), value.shape)
        if not self.correlated and (error < 0).any():
            raise ValueError("error must be >= 0, got a negative one.")
        error = error * value if self.relative else error
        return [_shift(self.of, error, known)] if self.correlated else _each(self.of, error, known)


class ShiftedModel(Source):
    """A nuisance parameter, given by the response, acceptance and background when it is off by one standard deviation.

    Parameters
    ----------
    response : array-like of the shape of the response, default=None
        The response then, for example with another energy scale; its columns are divided by their sums.
    acceptance, background : array-like, default=None
        The acceptance and background then; None means no change.

    Examples
    --------
    >>> import ordinalq as oq
    >>> M = [[0.9, 0.1, 0.0], [0.1, 0.8, 0.1], [0.0, 0.1, 0.9]]
    >>> off = [[0.88, 0.1, 0.0], [0.12, 0.8, 0.1], [0.0, 0.1, 0.9]]
    >>> known = {"scale": oq.unfolding.ShiftedModel(off)}
    >>> oq.unfold([480, 320, 210], M, tau=0.0, systematics=known).systematic_error.round(1)
    array([12.7, 14.2,  1.6])
    """

    def __init__(self, response: Any = None, *, acceptance: Any = None, background: Any = None) -> None:
        self.response = response
        self.acceptance = acceptance
        self.background = background

    def shifts(self, known: Measurement) -> list[Shift]:
        """Return the one shift from what is known to the alternative."""
        parts: dict[str, Floats] = {}
        if self.response is not None:
            R = self.response.values() if is_histogram(self.response) else self.response
            M = _like("response", R, known.M.shape)
            if (M < 0).any() or (M.sum(axis=0) <= 0).any():
                raise ValueError("the response of an ShiftedModel must be >= 0, with entries in every true bin.")
            parts["response"] = M / M.sum(axis=0) - known.M
        if self.acceptance is not None:
            parts["acceptance"] = _like("acceptance", self.acceptance, known.acceptance.shape) - known.acceptance
        if self.background is not None:
            parts["background"] = _like("background", self.background, known.background.shape) - known.background
        if not parts:
            raise ValueError("an ShiftedModel needs a response, an acceptance or a background.")
        return [Shift(**parts)]


def read_sources(systematics: Mapping[str, Source] | None, known: Measurement) -> dict[str, Source]:
    """Return the sources, checked, with the statistics of a response histogram."""
    if systematics is not None and not isinstance(systematics, Mapping):
        raise TypeError(f"systematics must be a mapping of names to sources, got {systematics!r:.80}.")
    sources = dict(systematics or {})
    if known.simulated is not None and "simulation" not in sources:
        sources["simulation"] = SimulatedEvents(known.simulated[0], variances=known.simulated[1])
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
    shifts = []
    for index in zip(*np.nonzero(error), strict=True):
        entry = np.zeros(error.shape)
        entry[index] = error[index]
        shifts.append(_shift(of, entry, known))
    return shifts


def _shift(of: str, move: Floats, known: Measurement) -> Shift:
    """Return a shift; of a move (d, n) of M, what is left after its columns are made distributions again."""
    parts: dict[str, Floats] = {of: move - known.M * move.sum(axis=0) if of == "response" else move}
    return Shift(**parts)


def _like(name: str, value: Any, shape: tuple[int, ...]) -> Floats:
    """Return numbers in a flat shape; they may come in the shape of their bins."""
    array = check_numbers(name, value.values() if is_histogram(value) else value)
    if array.size != int(np.prod(shape)):
        raise ValueError(f"{name} must be {int(np.prod(shape))} finite numbers, got shape {array.shape}.")
    return array.reshape(shape)
