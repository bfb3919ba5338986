"""`unfold_events`: from a fitted quantifier and events to a spectrum."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from ordinalq._utils.validation import Floats, check_choice, check_integer
from ordinalq.unfolding.result import Unfolding
from ordinalq.unfolding.systematics import SimulatedEvents, Source
from ordinalq.unfolding.unfold import unfold

# Observed bins per class, and held-out events per observed bin that are needed for more than one.
BINS_PER_CLASS, EVENTS_PER_BIN = 2, 20


def unfold_events(
    model: Any,
    events: Any,
    *,
    n_bins: int | None = None,
    acceptance: Any = None,
    background: Any = None,
    background_events: Any = None,
    edges: Any = None,
    estimand: str = "population",
    systematics: Mapping[str, Source] | None = None,
    **options: Any,
) -> Unfolding:
    """Unfold the spectrum of events with a fitted quantifier.

    Every event has an observed value: the mean class number under the scores of the quantifier. The events are counted
    in bins of that value. The response is that of the held-out training events, which have out-of-sample scores, and
    their statistics are the systematic error "simulation".

    Parameters
    ----------
    model : Quantifier or TableModel
        Fitted on simulated events whose classes are the true bins, in ascending order. It must have class scores.
    events : array-like, frame or sparse array (N, ...)
        Events, as the model takes them.
    n_bins : int, default=None
        Number of observed bins, each with as many held-out events. None means twice the number of classes if there are
        20 held-out events for each, else the number of classes.
    acceptance : array-like (n,), default=None
        Probability that an event of each class is observed, as in :func:`ordinalq.unfold`.
    background : array-like (n_bins,), default=None
        Expected background counts of the observed bins.
    background_events : tuple of events and a number, default=None
        Instead of `background`: events of background alone, and the number of them expected among `events`.
    edges : array-like (n + 1,), default=None
        Edges of the classes.
    estimand : {"population", "sample"}, default="population"
        Whether errors are those of the population that the events come from, or of the composition of these events.
    systematics : mapping of names to sources, default=None
        Further sources.
    **options
        Other arguments of :func:`ordinalq.unfold`, such as ``tau``, ``method`` or ``axis``.

    Returns
    -------
    Unfolding

    Examples
    --------
    >>> import numpy as np
    >>> import ordinalq as oq
    >>> rng = np.random.default_rng(0)
    >>> true = rng.integers(0, 4, 2000)
    >>> simulated = true[:, None] + rng.normal(0, 0.7, (2000, 2))
    >>> seen = rng.choice(4, 1000, p=[0.4, 0.3, 0.2, 0.1])[:, None] + rng.normal(0, 0.7, (1000, 2))
    >>> spectrum = oq.unfolding.unfold_events(oq.PACC().fit(simulated, true), seen)
    >>> bool((abs(spectrum.counts - [400, 300, 200, 100]) < 3 * spectrum.total_error).all())
    True
    """
    check_choice("estimand", estimand, ("population", "sample"))
    quantifier = model.fitted() if hasattr(model, "fitted") else model
    held_out = getattr(quantifier, "held_out_", None)
    if held_out is None or quantifier.traits.input_kind != "scores" or held_out.S.shape[1] != len(quantifier.classes_):
        raise TypeError(f"model must be a fitted quantifier on class scores, or a TableModel, got {model!r:.80}.")
    n = len(quantifier.classes_)
    if n_bins is None:
        n_bins = BINS_PER_CLASS * n if len(held_out.codes) >= EVENTS_PER_BIN * BINS_PER_CLASS * n else n
    n_bins = check_integer("n_bins", n_bins, minimum=n)
    value = _mean_class(held_out.S)
    weights = None if held_out.weights is None else held_out.weights.values
    cuts = np.quantile(value, np.arange(1, n_bins) / n_bins)
    cell = np.searchsorted(cuts, value, side="right") * n + held_out.codes
    simulated = np.bincount(cell, weights, minlength=n_bins * n).reshape(n_bins, n).astype(np.float64)
    squares = None if held_out.weights is None else held_out.weights.squares
    variances = np.bincount(cell, squares, minlength=n_bins * n).reshape(n_bins, n).astype(np.float64)
    if background_events is not None:
        if background is not None:
            raise ValueError("background must be None with background_events.")
        others, number = background_events
        share = _count(model, others, cuts)
        background = number * share / share.sum()
    sources = {"simulation": SimulatedEvents(simulated, variances=variances), **(systematics or {})}
    known = {"acceptance": acceptance, "background": background, "edges": edges, "systematics": sources, **options}
    found = unfold(_count(model, events, cuts), simulated / simulated.sum(axis=0), **known)
    return found if estimand == "population" else _of_sample(found)


def _mean_class(S: Floats) -> Floats:
    """Return the mean class number (N,) under scores S (N, n)."""
    return np.asarray(S @ np.arange(S.shape[1]) / np.maximum(S.sum(axis=1), 1e-300))


def _count(model: Any, events: Any, cuts: Floats) -> Floats:
    """Return the counts of events in the observed bins."""
    at = np.searchsorted(cuts, _mean_class(model.scores(events)), side="right")
    return np.bincount(at, minlength=len(cuts) + 1).astype(np.float64)


def _of_sample(found: Unfolding) -> Unfolding:
    """Return the result with errors for fixed numbers of observed events."""
    known = found.measurement
    fluctuations = known.fluctuations(found.refolded_flat[None])[0]
    between = (known.M * (known.acceptance * found.flat)) @ known.M.T
    V = fluctuations - between
    return replace(found, statistical=found.jacobian @ V @ found.jacobian.T)
