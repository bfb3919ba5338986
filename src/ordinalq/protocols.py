"""Protocols that draw samples of chosen class distributions from labelled items.

APP draws distributions uniformly, APP-OQ keeps the smoothest of them, Dirichlet draws them with a concentration, NPP
draws items at random, RealPrevalences takes distributions that were seen in nature. Paper: sec:protocol,
sec:partitioning.
"""

from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from ordinalq._utils.validation import (
    Array,
    Codes,
    Counts,
    Floats,
    check_choice,
    check_distributions,
    check_integer,
    check_random_state,
    check_real,
)
from ordinalq.samples.labels import encode_labels
from ordinalq.samples.samples import Samples, smoothest_mask
from ordinalq.simplex import jaggedness, uniform_simplex

# From prevalences to counts, and from counts to items: what all protocols share.


def streams(random_state: Any) -> list[np.random.Generator]:
    """Return independent generators for prevalences, rounding and items."""
    return check_random_state(random_state).spawn(3)


def round_counts(P: Floats, size: int, rounding: str, minimum: int, rng: np.random.Generator) -> Counts:
    """Return counts (B, n) with sum `size` in each row, from prevalences P (B, n)."""
    n = P.shape[1]
    if rounding == "truncate":
        # The small number keeps an exact 0.29 * 100 from being rounded down to 28.
        m = np.floor(size * P + 1e-9).astype(np.int64)
        m[:, -1] = size - m[:, :-1].sum(axis=1)
        return m
    if n * minimum > size:
        raise ValueError(
            f"min_per_class must be at most sample_size / n_classes, got {minimum} for {n} classes and {size} items."
        )
    m = np.maximum(np.rint(size * P), minimum).astype(np.int64)
    W = np.maximum(P, 1 / size)
    for b in np.flatnonzero(m.sum(axis=1) != size):
        while excess := int(size - m[b].sum()):
            weights = W[b] if excess > 0 else W[b] * (m[b] > minimum)
            cumulated = np.cumsum(weights)
            drawn = np.searchsorted(cumulated, rng.random(abs(excess)) * cumulated[-1], side="right")
            # Each distinct class once: a class that was drawn twice moves by one.
            m[b, np.unique(drawn)] += np.sign(excess)
    return m


def draw_items(
    codes: Codes,
    counts: Counts,
    small_pool: str,
    rng: np.random.Generator,
    names: Array,
) -> npt.NDArray[np.int32]:
    """Return the items of all samples, without replacement if possible."""
    n = counts.shape[1]
    by_class = np.argsort(codes, kind="stable").astype(np.int32)
    available = np.bincount(codes, minlength=n)
    starts = np.cumsum(available) - available
    wanted = counts.max(axis=0)
    lacking = (wanted > available) if small_pool == "error" else (wanted > 0) & (available == 0)
    if lacking.any():
        c = int(np.argmax(lacking))
        advice = "" if available[c] == 0 else "; use smaller samples, or small_pool='repeat' or 'replace'"
        raise ValueError(
            f"y_pool must have at least {wanted[c]} items of class {names[c]}, got {available[c]}{advice}."
        )
    items = np.empty(counts.sum(), dtype=np.int32)
    end = 0
    for row in counts.tolist():
        for i, m in enumerate(row):
            if m == 0:
                continue
            pool = int(available[i])
            if m <= pool:
                picked = rng.choice(pool, m, replace=False, shuffle=False)
            elif small_pool == "repeat":
                picked = np.resize(rng.permutation(pool), m)
            else:
                picked = rng.integers(pool, size=m)
            items[end : end + m] = by_class[starts[i] + picked]
            end += m
    return items


@dataclass(frozen=True, eq=False, kw_only=True)
class Protocol(ABC):
    """A way to draw samples from a pool of labelled items.

    The true prevalence of a sample is always the realized one, counts / size. Sample i does not depend on how many
    samples follow.

    Parameters
    ----------
    rounding : {"balanced", "truncate"}, default="balanced"
        From prevalences to counts. "balanced": round half to even, at least `min_per_class`, then add or
        subtract single items of classes drawn with weights max(p_i, 1/size) until the size is met. "truncate": round
        down, and give what is left to the last class.
    min_per_class : int, default=0
        Smallest count of each class; only with "balanced". The paper has 3 on Fact, UCI and OpenML data.
    small_pool : {"error", "repeat", "replace"}, default="error"
        Rule for a class with fewer items than needed: raise an error, use its items repeatedly, or draw with
        replacement.
    random_state : int, Generator or None, default=None
        An integer makes every draw the same.
    """

    rounding: str = "balanced"
    min_per_class: int = 0
    small_pool: str = "error"
    random_state: Any = None

    def __post_init__(self) -> None:
        check_choice("rounding", self.rounding, ("balanced", "truncate"))
        check_integer("min_per_class", self.min_per_class, minimum=0)
        check_choice("small_pool", self.small_pool, ("error", "repeat", "replace"))
        if self.rounding == "truncate" and self.min_per_class:
            raise ValueError(f"min_per_class must be 0 with rounding='truncate', got {self.min_per_class}.")
        check_random_state(self.random_state)

    @abstractmethod
    def counts(self, n_classes: int) -> Counts:
        """Return the number of items of each class in each sample, (B, n).

        Parameters
        ----------
        n_classes : int
            Number of classes n.

        Returns
        -------
        ndarray of int (B, n)
            Numbers of items of each class in each sample.
        """

    def draw(self, y_pool: Any, *, classes: Any = None) -> Samples:
        """Draw samples from a pool.

        Parameters
        ----------
        y_pool : array-like (N,)
            Labels of the pool.
        classes : array-like (n,), default=None
            Order of the labels, see :func:`ordinalq.samples.labels.encode_labels`.

        Returns
        -------
        Samples
            With prevalences.
        """
        ordered, codes = encode_labels(y_pool, classes, name="y_pool")
        counts = self.counts(len(ordered))
        items = draw_items(codes, counts, self.small_pool, streams(self.random_state)[2], ordered)
        offsets = np.concatenate([[0], np.cumsum(counts.sum(axis=1))])
        P = counts / counts.sum(axis=1, keepdims=True)
        return Samples(items, offsets, len(codes), classes=ordered, prevalences=P)


@dataclass(frozen=True, eq=False)
class APP(Protocol):
    """Artificial prevalence protocol: distributions drawn uniformly from the simplex.

    Parameters
    ----------
    n_samples, sample_size : int
        B and the number of items of each sample.
    rounding, min_per_class, small_pool, random_state
        See :class:`Protocol`.

    Examples
    --------
    >>> y_pool = np.repeat([1, 2, 3, 4, 5], 200)
    >>> samples = APP(100, 50, random_state=7).draw(y_pool)
    >>> samples
    Samples(100 samples of 50 items, pool of 1000)
    """

    n_samples: int
    sample_size: int

    def __post_init__(self) -> None:
        super().__post_init__()
        _check_sizes(self)

    def counts(self, n_classes: int) -> Counts:
        """Return the number of items of each class in each sample, (B, n)."""
        return _uniform_counts(self, n_classes)


@dataclass(frozen=True, eq=False)
class APPOQ(Protocol):
    """APP for ordinal quantification: the smoothest part of APP samples.

    Of `n_samples` APP samples, the `fraction` with the smallest jaggedness xi_1.

    Kept are the samples with xi_1 of the realized prevalences at most the `fraction`-quantile of its distinct values.

    Parameters
    ----------
    fraction : float
        In (0, 1]; the paper has 0.5 on Amazon, 0.05 on Fact and 0.2 on UCI and OpenML data.
    n_samples, sample_size : int
        Number of APP samples before the selection, and their size.
    rounding, min_per_class, small_pool, random_state
        See :class:`Protocol`.

    Examples
    --------
    >>> y_pool = np.repeat([1, 2, 3, 4, 5], 200)
    >>> APPOQ(0.2, 100, 50, random_state=7).draw(y_pool)  # the smoothest fifth of a hundred
    Samples(21 samples of 50 items, pool of 1000)
    """

    fraction: float
    n_samples: int
    sample_size: int

    def __post_init__(self) -> None:
        super().__post_init__()
        check_real("fraction", self.fraction, low=0, high=1, open_low=True)
        _check_sizes(self)

    def counts(self, n_classes: int) -> Counts:
        """Return the number of items of each class in each kept sample, (B', n)."""
        counts = _uniform_counts(self, n_classes)
        return counts[smoothest_mask(counts / self.sample_size, self.fraction)]


@dataclass(frozen=True, eq=False)
class Dirichlet(Protocol):
    """Distributions drawn from a Dirichlet distribution; alpha = 1 is APP.

    Parameters
    ----------
    alpha : float or array-like (n,)
        Concentration, one for all classes or one per class. Below 1 few classes dominate a sample; above 1 samples
        resemble each other.
    n_samples, sample_size : int
        B and the number of items of each sample.
    rounding, min_per_class, small_pool, random_state
        See :class:`Protocol`.

    Examples
    --------
    >>> y_pool = np.repeat([1, 2, 3], 500)
    >>> Dirichlet([1, 2, 7], 1000, 100, random_state=7).draw(y_pool).prevalences.mean(axis=0).round(1)
    array([0.1, 0.2, 0.7])
    """

    alpha: Any
    n_samples: int
    sample_size: int

    def __post_init__(self) -> None:
        super().__post_init__()
        alpha = np.asarray(self.alpha, dtype=np.float64)
        if alpha.ndim > 1 or not (np.isfinite(alpha) & (alpha > 0)).all():
            raise ValueError(f"alpha must be a positive number, or one per class, got {self.alpha!r}.")
        _check_sizes(self)

    def counts(self, n_classes: int) -> Counts:
        """Return the number of items of each class in each sample, (B, n)."""
        prevalences, rounding, _ = streams(self.random_state)
        alpha = np.asarray(self.alpha, dtype=np.float64)
        if alpha.ndim == 1 and len(alpha) != n_classes:
            raise ValueError(f"alpha must have one entry per class, {n_classes}, got {len(alpha)}.")
        P = prevalences.dirichlet(np.broadcast_to(alpha, n_classes), size=self.n_samples)
        return round_counts(P, self.sample_size, self.rounding, self.min_per_class, rounding)


@dataclass(frozen=True, eq=False)
class RealPrevalences(Protocol):
    """Real distributions: each sample takes a row of `vectors` at random.

    Parameters
    ----------
    vectors : array-like (k, n) or (n,)
        Distributions.
    n_samples, sample_size : int
        B and the number of items of each sample.
    poisson : bool, default=False
        Draw c_i ~ Poisson(sample_size * p_i) and take c / sum(c), rounded to the size with at least one item per class,
        as prevalences: the counts that a telescope sees.
    rounding, min_per_class, small_pool, random_state
        See :class:`Protocol`.

    Examples
    --------
    >>> y_pool = np.repeat([1, 2, 3], 500)
    >>> samples = RealPrevalences([[0.1, 0.3, 0.6], [0.5, 0.3, 0.2]], 4, 100, random_state=7).draw(y_pool)
    >>> samples.prevalences
    array([[0.5, 0.3, 0.2],
           [0.1, 0.3, 0.6],
           [0.5, 0.3, 0.2],
           [0.1, 0.3, 0.6]])
    """

    vectors: Any
    n_samples: int
    sample_size: int
    poisson: bool = field(default=False, kw_only=True)

    def __post_init__(self) -> None:
        super().__post_init__()
        check_distributions("vectors", self.vectors)
        _check_sizes(self)

    def counts(self, n_classes: int) -> Counts:
        """Return the number of items of each class in each sample, (B, n)."""
        prevalences, rounding, _ = streams(self.random_state)
        V = np.atleast_2d(check_distributions("vectors", self.vectors))
        if V.shape[1] != n_classes:
            raise ValueError(f"vectors must have one entry per class, {n_classes}, got {V.shape[1]}.")
        # A stream for each step: how much one consumes for later samples must not move another.
        rows, noise, rounding_noise = prevalences.spawn(3)
        P = V[rows.integers(len(V), size=self.n_samples)]
        if self.poisson:
            # At least one event, so that the prevalences exist.
            C = noise.poisson(self.sample_size * P)
            C[C.sum(axis=1) == 0] = 1
            C = round_counts(C / C.sum(axis=1, keepdims=True), self.sample_size, "balanced", 1, rounding_noise)
            P = C / self.sample_size
        return round_counts(P, self.sample_size, self.rounding, self.min_per_class, rounding)


@dataclass(frozen=True, eq=False)
class NPP:
    """Natural prevalence protocol: items drawn from the pool at random.

    Parameters
    ----------
    n_samples, sample_size : int
        B and the number of items of each sample.
    small_pool : {"error", "repeat", "replace"}, default="error"
        What to do where the pool has fewer items than a sample, see :class:`Protocol`.
    random_state : int, Generator or None, default=None
        An integer makes every draw the same.

    Examples
    --------
    >>> y_pool = np.repeat([1, 2, 3], [100, 200, 700])
    >>> NPP(1000, 50, random_state=7).draw(y_pool).prevalences.mean(axis=0).round(2)
    array([0.1, 0.2, 0.7])
    """

    n_samples: int
    sample_size: int
    small_pool: str = field(default="error", kw_only=True)
    random_state: Any = field(default=None, kw_only=True)

    def __post_init__(self) -> None:
        check_choice("small_pool", self.small_pool, ("error", "repeat", "replace"))
        check_random_state(self.random_state)
        _check_sizes(self)

    def draw(self, y_pool: Any, *, classes: Any = None) -> Samples:
        """Draw samples from a pool with labels `y_pool` (N,); see :meth:`Protocol.draw`.

        Parameters
        ----------
        y_pool : array-like (N,)
            Labels of the pool.
        classes : array-like (n,), default=None
            Classes in ascending order; None for sorted labels.

        Returns
        -------
        Samples
            The samples.
        """
        encode_labels(y_pool, classes, name="y_pool")
        n_items = len(y_pool)
        # All items as one class: the same drawing, the same policies.
        counts = np.full((self.n_samples, 1), self.sample_size)
        everything = np.array(["the pool"])
        rng = streams(self.random_state)[2]
        items = draw_items(np.zeros(n_items, dtype=np.intp), counts, self.small_pool, rng, everything)
        return Samples.from_index(items.reshape(self.n_samples, -1), n_items, y_pool, classes=classes)


def matching_fraction(
    vectors: Any, *, sample_size: int = 1000, n_draws: int = 20_000, random_state: Any = None
) -> float:
    """Return the fraction of APP samples that are as smooth as real ones.

    That is the x for which the smoothest x of `n_draws` APP samples have the mean jaggedness xi_1 of `vectors`. This is
    how the paper arrived at 50% for Amazon and 5% for Fact.

    Parameters
    ----------
    vectors : array-like (k, n) or (n,)
        Real distributions.
    sample_size, n_draws : int
        Size and number of the APP samples.
    random_state : int, Generator or None, default=None

    Returns
    -------
    float
        In (0, 1]; 1 if the real distributions are as jagged as APP, or more.

    Examples
    --------
    >>> smooth = [[0.1, 0.15, 0.2, 0.25, 0.3], [0.3, 0.25, 0.2, 0.15, 0.1]]
    >>> matching_fraction(smooth, sample_size=100, n_draws=1000, random_state=7) < 0.2
    True
    """
    V = np.atleast_2d(check_distributions("vectors", vectors))
    target = float(np.mean(jaggedness(V)))
    app = APP(n_draws, sample_size, min_per_class=1, random_state=random_state)
    xi = np.sort(jaggedness(app.counts(V.shape[1]) / sample_size))
    means = np.cumsum(xi) / np.arange(1, n_draws + 1)
    kept = int(np.searchsorted(means, target, side="right"))
    return max(kept, 1) / n_draws


def _uniform_counts(protocol: APP | APPOQ, n_classes: int) -> Counts:
    """Return counts (B, n) of distributions that are drawn uniformly."""
    prevalences, rounding, _ = streams(protocol.random_state)
    P = uniform_simplex(protocol.n_samples, n_classes, prevalences)
    return round_counts(P, protocol.sample_size, protocol.rounding, protocol.min_per_class, rounding)


def _check_sizes(protocol: Any) -> None:
    check_integer("n_samples", protocol.n_samples, minimum=1)
    check_integer("sample_size", protocol.sample_size, minimum=1)
