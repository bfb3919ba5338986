"""Trends of groups in time: tests of change, and the slope of the mean class."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from scipy.special import chdtrc, ndtri

from ordinalq._utils.text import finite, percent
from ordinalq._utils.validation import Array, Counts, Floats, Index
from ordinalq.inference.comparison import listed
from ordinalq.samples.keys import Keys, numbered
from ordinalq.samples.labels import Scale

# Ways in which shares over ordered classes may change: up or down, apart or together, to one side. More are hardly seen
# where there are many classes, and errors in their direction are far from normal.
WAYS = 3
# A test below this level speaks of a change.
LEVEL = 0.05
# P-values below this are said to be so: the tails are no better known.
SMALLEST = 0.001
# Directions whose variance is below this part of the largest one have none but for rounding errors.
RANK_TOLERANCE = 1e-6


@dataclass(frozen=True, eq=False, repr=False)
class Trend:
    """How K series of groups go, such as those of several products month by month.

    Parameters
    ----------
    time : str
        Name of the column that the groups are ordered by.
    level, of : float, {"sample", "population"}
        Level of the intervals, and what the estimates are of.
    series : Keys (K,) or None
        What each series stands for; None for a single one.
    rows : list of ndarray
        Positions of the groups of each series among all that were given, in their order.
    chi2, degrees_of_freedom : ndarray (K,)
        The test whether the shares of the classes differ within the series at all: in their mean, spread or skewness.
    p_value : ndarray (K,)
        P-value of the test; of several series times their number (Bonferroni).
    mean_p_value : ndarray (K,)
        The same of the mean class alone.
    slope, slope_lower, slope_upper : ndarray (K,)
        By how much the mean class rises from one period to the next on average (weighted least squares), gaps counted,
        with an interval at the level of the estimates; groups that are no periods follow one another.
    period : str, default=""
        "year", "quarter", "month", "week" or "day"; "" for other groups.
    mean_name : {"mean class", "mean position"}
        Whether the mean is taken over values of the classes or over their positions 1..n.

    Examples
    --------
    >>> import ordinalq as oq
    >>> rng = np.random.default_rng(0)
    >>> y = rng.integers(1, 4, 600)
    >>> X, month = rng.normal(y[:, None], 1, (600, 2)), np.where(y == 1, 1, rng.integers(1, 4, 600))
    >>> found = oq.PACC().fit(X, y).predict_groups(X, month, level=0.95).trend()
    >>> bool(found.p_value[0] < 0.001), bool(found.slope_lower[0] > 0)
    (True, True)
    """

    time: str
    level: float
    estimand: str
    series: Keys | None
    rows: Sequence[Index]
    chi2: Floats
    degrees_of_freedom: Counts
    p_value: Floats
    mean_p_value: Floats
    slope: Floats
    slope_lower: Floats
    slope_upper: Floats
    period: str = ""
    mean_name: str = "mean class"

    def __len__(self) -> int:
        return len(self.rows)

    def frame(self) -> Any:
        """Return one row per series as a pandas frame: its keys, n_groups, and the fields above."""
        import pandas as pd

        keys: dict[str, Any] = {} if self.series is None else dict(self.series.frame())
        return pd.DataFrame(keys | {"n_groups": [len(rows) for rows in self.rows]} | self._numbers())

    def _numbers(self) -> dict[str, Array]:
        names = ("chi2", "degrees_of_freedom", "p_value", "mean_p_value", "slope", "slope_lower", "slope_upper")
        return {name: getattr(self, name) for name in names}

    def to_json(self) -> dict[str, Any]:
        """Return the tests as plain numbers, strings, lists and dicts; series as text."""
        lists = {name: values.tolist() for name, values in self._numbers().items()} | {"sentence": self.sentences()}
        rows = [dict(zip(lists, values, strict=True)) for values in zip(*lists.values(), strict=True)]
        head: dict[str, Any] = {"level": self.level, "estimand": self.estimand}
        rows = list(map(finite, rows))
        if self.series is None:
            return head | rows[0]
        named = [{"series": name, **row} for name, row in zip(self.series.labels(), rows, strict=True)]
        return head | {"by": self.series.name, "adjusted": "Bonferroni" if len(self) > 1 else None, "series": named}

    def sentences(self) -> list[str]:
        """Return one sentence per series that says what is known."""
        names = [""] * len(self) if self.series is None else [f"{name}: " for name in self.series.labels()]
        told = [self._sentence(k) for k in range(len(self))]
        # Names stay as they are written.
        return [name + text if name else text[0].upper() + text[1:] for name, text in zip(names, told, strict=True)]

    def _sentence(self, k: int) -> str:
        rows, time = self.rows[k], self.time
        if not np.isfinite(self.p_value[k]):
            return f"there are too few items or groups by {time} to tell whether there is a change."
        p = self.p_value[k]
        shown = f"p < {SMALLEST}" if p < SMALLEST else f"p = {p:.3f}" if p < LEVEL else f"p = {p:.2f}"
        change = "the distribution changes" if p < LEVEL else "no change in the distribution can be seen"
        test = f"{len(rows)} groups by {time}, chi-square {self.chi2[k]:.1f}, {self.degrees_of_freedom[k]} degrees of "
        low, high = self.slope_lower[k], self.slope_upper[k]
        if low > 0 or high < 0:
            goes = f"{'rises' if low > 0 else 'falls'} by {abs(self.slope[k]):.3f} {self._step}"
        else:
            goes = "shows no clear rise or fall"
        ends = f"{percent(self.level)} interval {low:+.3f} to {high:+.3f}"
        but = "but " if p >= LEVEL and "by" in goes else ""
        return f"{change} ({test}freedom, {shown}); {but}the {self.mean_name} {goes} ({ends})."

    @property
    def _step(self) -> str:
        return f"per {self.period}" if self.period else "from one to the next"

    def __str__(self) -> str:
        adjusted = f"; p-values hold for all {len(self)} series together (Bonferroni)" if len(self) > 1 else ""
        return listed(self.sentences(), "series", self.estimand, adjusted)

    def __repr__(self) -> str:
        return f"Trend({len(self)} series of {sum(map(len, self.rows))} groups)"


def trend_of(keys: Keys, P: Floats, own: Floats, sizes: Floats, level: float, estimand: str, scale: Scale) -> Trend:
    """Return the trend of groups (B,) whose last column is the time; those without a time are left out.

    P (B, n) are shares, `own` (B, n, n) covariances of what each error does not share with the others, sizes (B,)
    numbers of items; `level` and `estimand` are those of the intervals, and `scale` has the values of the classes.
    """
    dated = np.flatnonzero([value is not None and value != "" for value in keys.columns[-1].tolist()])
    series, codes = None, np.zeros(len(dated), dtype=np.intp)
    if len(keys.columns) > 1:
        series, codes = Keys.of(Keys(keys[dated].columns[:-1]).frame())
    rows = [dated[codes == k] for k in range(1 if series is None else len(series))]
    named = numbered(keys.columns[-1].take(dated).labels())
    times = [np.arange(len(one)) if named is None else named[1][codes == k] for k, one in enumerate(rows)]
    tests = [_test(P[one], own[one], sizes[one], time, scale.numbers) for one, time in zip(rows, times, strict=True)]
    K, z = len(rows), float(ndtri(0.5 + level / 2))
    chi2, freedom, p, mean_p, slope, error = (np.array(column) for column in zip(*tests, strict=True))
    return Trend(
        keys.names[-1],
        level,
        estimand,
        series,
        rows,
        chi2,
        freedom.astype(np.int64),
        np.minimum(K * p, 1),
        np.minimum(K * mean_p, 1),
        slope,
        slope - z * error,
        slope + z * error,
        "" if named is None else named[0],
        scale.name,
    )


class _Tests(NamedTuple):
    """Chi-square, degrees of freedom and p-value of the shares, p-value of the mean class, its slope and error."""

    chi2: float
    degrees_of_freedom: int
    p_value: float
    mean_p_value: float
    slope: float
    slope_error: float


def _test(P: Floats, own: Floats, sizes: Floats, times: Counts, values: Floats) -> _Tests:
    """Test whether T groups have the same distribution, and find how their mean class goes with the times (T,).

    If all are the same, the error that groups share because they share M is the same in all, and differences do not
    have it. The rest of the error of group t has covariance W_t, taken as s_t W: its size s_t = a + b / N_t for N_t
    items (a is the group effect), its shape W the same for all, since it depends on the distribution. So no group
    counts as certain because its own estimate lies on the edge of the simplex. With x_t the first moments of the shares
    over the classes, `WAYS` of them, and x their mean with weights 1 / s_t,

        chi2 = sum_t (x_t - x)' W^-1 (x_t - x) / s_t

    has (T - 1) rank(W) degrees of freedom.
    """
    T, n = P.shape
    W, size = _common_shape(own, sizes)
    # Orthogonal polynomials of the class index but the constant one, and the mean class.
    powers = np.vander(np.arange(n) - (n - 1) / 2, min(WAYS, n - 1) + 1, increasing=True)
    U = np.column_stack([np.linalg.qr(powers)[0][:, 1:], values])
    V, X = U.T @ W @ U, P @ U
    values, vectors = np.linalg.eigh(V[:-1, :-1])
    kept = values > RANK_TOLERANCE * max(float(values[-1]), 0)
    rank = int(kept.sum())
    if T < 2 or rank == 0 or V[-1, -1] <= 0:
        return _Tests(np.nan, 0, np.nan, np.nan, np.nan, np.nan)
    weight = 1 / size
    D = X - weight @ X / weight.sum()
    Z = D[:, :-1] @ vectors[:, kept] / np.sqrt(values[kept])
    chi2 = float(weight @ (Z * Z).sum(axis=1))
    of_mean = float(weight @ D[:, -1] ** 2 / V[-1, -1])
    t = times - weight @ times / weight.sum()
    spread = float(weight @ t**2)
    slope, error = float(weight * t @ D[:, -1]) / spread, float(np.sqrt(V[-1, -1] / spread))
    freedom = (T - 1) * rank
    return _Tests(chi2, freedom, float(chdtrc(freedom, chi2)), float(chdtrc(T - 1, of_mean)), slope, error)


def _common_shape(own: Floats, sizes: Floats) -> tuple[Floats, Floats]:
    """Return W (n, n) and s (T,) whose s_t W are nearest to covariances `own` (T, n, n) of groups of N items (T,)."""
    # Imported here because it takes long to load.
    from scipy.optimize import nnls

    total = np.maximum(np.trace(own, axis1=1, axis2=2), 0)
    # a + b / N without negative parts, by least squares of relative errors: large groups count as much as small ones.
    a, b = nnls(np.column_stack([sizes, np.ones(len(sizes))]), total * sizes)[0] if len(sizes) else (0.0, 0.0)
    size = a + b / sizes
    if len(sizes) == 0 or not size.all():
        return np.zeros(own.shape[1:]), np.ones(len(own))
    return own.sum(axis=0) / size.sum(), size
