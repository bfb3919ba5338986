"""Trends of groups in time: tests of change, and the slope of the mean class."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from scipy.special import chdtrc, ndtr, ndtri

from ordinalq._utils.text import finite, percent
from ordinalq._utils.validation import Array, Codes, Counts, Floats, Index
from ordinalq.inference.comparison import join_sentences
from ordinalq.samples.keys import Keys, numbered
from ordinalq.samples.labels import Scale

# Directions of the change of a distribution: up or down, apart or together, to one side. More are hardly seen if there
# are many classes, and errors in their direction are far from normal.
WAYS = 3
# A change is stated below this p-value.
LEVEL = 0.05
# Smaller p-values are not printed: the tails are not known that far.
SMALLEST = 0.001
# Directions whose variance is below this part of the largest one have none but for rounding errors.
RANK_TOLERANCE = 1e-6
# Variance of the estimates of parts of a group in every direction at least, over its mean.
EVEN = 0.03
# Groups of a series from which on a slope, and an outlying period, are stated.
FEWEST_FOR_SLOPE, FEWEST_FOR_OUTLIER = 3, 4
NEARLY_ONE = 1 - 1e-12


@dataclass(frozen=True, eq=False, repr=False)
class Trend:
    """Change over time in K series of groups, such as products by month.

    One test per series decides whether its distribution changes. It combines three tests: of a steady rise or fall of
    the mean class, of a single outlying period, and of all other differences. A series changes if one of them is
    significant after adjustment for their number (Sidak), and the sentence names those that are.

    Parameters
    ----------
    time : str
        Name of the column that the groups are ordered by.
    level, estimand : float, {"sample", "population"}
        Level and estimand of the intervals.
    series : Keys (K,) or None
        Key of each series; None for a single one.
    rows : list of ndarray
        Positions of the groups of each series among all groups, in their order.
    names : list of str
        Names of the periods of all groups, (B,).
    means : ndarray (B,)
        Mean class of all groups.
    p_value : ndarray (K,)
        P-value of the one test; for several series times their number (Bonferroni).
    slope_p_value, outlier_p_value, other_p_value : ndarray (K,)
        P-values of the three tests, adjusted for their number and for the number of series. NaN if a series has too few
        groups for the test.
    outlier : ndarray (K,)
        Position among all groups of the period that is farthest from the line of the others, -1 if there are too few.
    outlier_shift : ndarray (K,)
        Mean class of that period minus that of the line.
    chi2, degrees_of_freedom : ndarray (K,)
        Sum of squares of all differences within the series, in mean, spread and skewness.
    mean_p_value : ndarray (K,)
        P-value of all differences of the mean class, without adjustment for the three tests.
    slope, slope_lower, slope_upper : ndarray (K,)
        Average rise of the mean class from one period to the next (weighted least squares) with an interval. Missing
        periods are counted, and groups that are not periods follow one another. A rise from the first to the second of
        two groups is limited to that from the lowest to the highest class.
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
    names: Sequence[str]
    means: Floats
    p_value: Floats
    slope_p_value: Floats
    outlier_p_value: Floats
    other_p_value: Floats
    outlier: Index
    outlier_shift: Floats
    chi2: Floats
    degrees_of_freedom: Counts
    mean_p_value: Floats
    slope: Floats
    slope_lower: Floats
    slope_upper: Floats
    period: str = ""
    mean_name: str = "mean class"

    def __len__(self) -> int:
        return len(self.rows)

    def frame(self) -> Any:
        """Return one row per series as a pandas frame."""
        import pandas as pd

        keys: dict[str, Any] = {} if self.series is None else dict(self.series.frame())
        outliers = [self.names[row] if row >= 0 else None for row in self.outlier.tolist()]
        return pd.DataFrame(
            keys | {"n_groups": [len(rows) for rows in self.rows]} | self._numbers() | {"outlier": outliers}
        )

    def _numbers(self) -> dict[str, Array]:
        return {name: getattr(self, name) for name in NUMBERS}

    def to_json(self) -> dict[str, Any]:
        """Return the tests as plain numbers, strings, lists and dicts; series as text."""
        lists: dict[str, list[Any]] = {name: values.tolist() for name, values in self._numbers().items()}
        lists["outlier"] = [self.names[row] if row >= 0 else None for row in self.outlier.tolist()]
        lists["sentence"] = self.sentences()
        rows = [dict(zip(lists, values, strict=True)) for values in zip(*lists.values(), strict=True)]
        head: dict[str, Any] = {"level": self.level, "estimand": self.estimand}
        rows = list(map(finite, rows))
        if self.series is None:
            return head | rows[0]
        named = [{"series": name, **row} for name, row in zip(self.series.labels(), rows, strict=True)]
        return head | {"by": self.series.name, "adjusted": "Bonferroni" if len(self) > 1 else None, "series": named}

    def sentences(self) -> list[str]:
        """Return one sentence per series with the result of its test."""
        names = [""] * len(self) if self.series is None else [f"{name}: " for name in self.series.labels()]
        texts = [self._sentence(k) for k in range(len(self))]
        # Names stay as they are written.
        return [name + text if name else text[0].upper() + text[1:] for name, text in zip(names, texts, strict=True)]

    def _sentence(self, k: int) -> str:
        p = self.p_value[k]
        if not np.isfinite(p):
            return f"there are too few items or groups by {self.time} to test for a change."
        shown = f"p < {SMALLEST}" if p < SMALLEST else f"p = {p:.3f}" if p < LEVEL else f"p = {p:.2f}"
        test = f"({len(self.rows[k])} groups by {self.time}, {shown})"
        if p >= LEVEL:
            return f"no change in the distribution can be seen {test}."
        found = [*self._rise(k), *self._outlier(k)]
        return f"the distribution changes {test}{': ' * bool(found)}{', and '.join(found)}."

    def _rise(self, k: int) -> list[str]:
        """Return a clause on the rise or fall of the mean class, if it is significant."""
        if not self.slope_p_value[k] < LEVEL:
            return []
        low, high = self.slope_lower[k], self.slope_upper[k]
        goes = "rises" if self.slope[k] > 0 else "falls"
        if len(self.rows[k]) < FEWEST_FOR_SLOPE:
            first, last = (f"{self.means[row]:.2f} in {self.names[row]}" for row in self.rows[k][[0, -1]])
            return [f"the {self.mean_name} {goes} from {first} to {last}"]
        ends = f"{percent(self.level)} interval {low:+.3f} to {high:+.3f}"
        return [f"the {self.mean_name} {goes} by {abs(self.slope[k]):.3f} {self._step} ({ends})"]

    def _outlier(self, k: int) -> list[str]:
        """Return a clause that names an outlying period, if it is significant."""
        if not self.outlier_p_value[k] < LEVEL:
            return []
        row, shift = self.outlier[k], self.outlier_shift[k]
        side = "above" if shift > 0 else "below"
        where = f"{abs(shift):.2f} {side} the line of the other periods"
        return [f"{self.names[row]} stands out with a {self.mean_name} of {self.means[row]:.2f}, {where}"]

    @property
    def _step(self) -> str:
        return f"per {self.period}" if self.period else "from one to the next"

    def __str__(self) -> str:
        adjusted = f"; p-values hold for all {len(self)} series together (Bonferroni)" if len(self) > 1 else ""
        return join_sentences(self.sentences(), "series", self.estimand, adjusted)

    def __repr__(self) -> str:
        return f"Trend({len(self)} series of {sum(map(len, self.rows))} groups)"


# The columns of a table with one number per series.
NUMBERS = (
    "p_value",
    "slope_p_value",
    "outlier_p_value",
    "other_p_value",
    "outlier_shift",
    "chi2",
    "degrees_of_freedom",
    "mean_p_value",
    "slope",
    "slope_lower",
    "slope_upper",
)


def of_series(
    keys: Keys | None, P: Floats, own: Floats, groups: Codes, linear: Floats, sampling: Floats
) -> tuple[Floats, Floats]:
    """Return the estimates (B, n) and covariances (B, n, n) for tests of series.

    These are `linear` and `sampling` for series of parts of one of the groups (B,), and P and `own` for others. A
    series with a part that rests on its labels alone, whose `linear` is NaN, is one of the others.
    """
    assert keys is not None
    codes = np.zeros(len(groups), dtype=np.intp)
    if len(keys.columns) > 1:
        codes = Keys.of(Keys(keys.columns[:-1]).frame())[1]
    first = np.zeros(codes.max() + 1, dtype=np.intp)
    first[codes] = groups
    mixed = np.zeros(len(first), dtype=bool)
    mixed[codes[groups != first[codes]]] = True
    other = (mixed[codes] | np.isnan(linear[:, 0]))[:, None]
    # Covariances are those of an average group: no direction is known to have a much smaller variance than the others.
    n = P.shape[1]
    mean = np.trace(sampling, axis1=1, axis2=2)[:, None, None] / (n - 1)
    sampling = sampling + EVEN * mean * (np.eye(n) - 1 / n)
    return np.where(other, P, linear), np.where(other[:, :, None], own, sampling)


def trend_of(
    keys: Keys,
    P: Floats,
    own: Floats,
    sizes: Floats,
    level: float,
    estimand: str,
    scale: Scale,
    tested: Floats | None = None,
) -> Trend:
    """Return the trend of groups (B,) whose last column is the time.

    Groups without a time are left out.

    P (B, n) are shares, `own` (B, n, n) covariances of what each error does not share with the others, sizes (B,)
    numbers of items; `level` and `estimand` are those of the intervals, and `scale` has the values of the classes. The
    tests use the estimates `tested` (B, n); None stands for P.
    """
    dated = np.flatnonzero([value is not None and value != "" for value in keys.columns[-1].tolist()])
    series, codes = None, np.zeros(len(dated), dtype=np.intp)
    if len(keys.columns) > 1:
        series, codes = Keys.of(Keys(keys[dated].columns[:-1]).frame())
    rows = [dated[codes == k] for k in range(1 if series is None else len(series))]
    named = numbered(keys.columns[-1].take(dated).labels())
    times = [np.arange(len(one)) if named is None else named[1][codes == k] for k, one in enumerate(rows)]
    X = P if tested is None else tested
    tests = [_test(X[one], own[one], sizes[one], time, scale.numbers) for one, time in zip(rows, times, strict=True)]
    K, z = len(rows), float(ndtri(0.5 + level / 2))
    found = _Tests(*(np.array(column) for column in zip(*tests, strict=True)))
    several = np.minimum(K * found.p_values, 1)
    # Two groups differ at most by the lowest and the highest class; the line through more may be steeper.
    steepest = np.array([np.ptp(scale.numbers) / max(np.ptp(time), 1) if len(time) == 2 else np.inf for time in times])
    ends = found.slope + np.array([[-z], [0.0], [z]]) * found.slope_error
    slope_lower, slope, slope_upper = np.clip(ends, -steepest, steepest)
    outlier = [one[at] if at >= 0 else -1 for one, at in zip(rows, found.outlier.tolist(), strict=True)]
    return Trend(
        keys.names[-1],
        level,
        estimand,
        series,
        rows,
        names=keys.columns[-1].labels(),
        means=P @ scale.numbers,
        p_value=several[:, 0],
        slope_p_value=several[:, 1],
        outlier_p_value=several[:, 2],
        other_p_value=several[:, 3],
        outlier=np.array(outlier, dtype=np.intp),
        outlier_shift=found.outlier_shift,
        chi2=found.chi2,
        degrees_of_freedom=found.degrees_of_freedom.astype(np.int64),
        mean_p_value=np.minimum(K * found.mean_p_value, 1),
        slope=slope,
        slope_lower=slope_lower,
        slope_upper=slope_upper,
        period="" if named is None else named[0],
        mean_name=scale.name,
    )


class _Tests(NamedTuple):
    """Tests of one series, or of all of them as arrays.

    p_values (4,) are those of the one test and of its three parts: slope, outlier, other differences.
    """

    p_values: Any
    chi2: Any
    degrees_of_freedom: Any
    mean_p_value: Any
    slope: Any
    slope_error: Any
    outlier: Any
    outlier_shift: Any


def _test(P: Floats, own: Floats, sizes: Floats, times: Counts, numbers: Floats) -> _Tests:
    """Test whether T groups have the same distribution, in three parts.

    If all are the same, the error that groups share is the same in all, and differences do not have it. The rest of the
    error of group t has covariance W_t, taken as s_t W: its size s_t = a + b / N_t for N_t items (a is the group
    effect), its shape W the same for all, since it depends on the distribution. So no group counts as certain because
    its own estimate lies on the edge of the simplex. With x_t the mean class and further moments of the distribution
    over the classes, `WAYS` in total, and x their mean with weights 1 / s_t,

        chi2 = sum_t (x_t - x)' W^-1 (x_t - x) / s_t

    has (T - 1) rank(W) degrees of freedom. One of them is the slope of the mean class over the times (T,), by weighted
    least squares, which is independent of the others. The outlier is the largest residual of the mean class from that
    line, in standard deviations. If it is significant, the slope is that of the other periods. The three p-values
    combine to 1 - (1 - smallest)^k, k the number of tests.
    """
    T, n = P.shape
    W, size = _common_shape(own, sizes)
    # The mean class, then polynomials of the class index.
    powers = np.vander(np.arange(n) - (n - 1) / 2, min(WAYS, n - 1) + 1, increasing=True)
    powers[:, 1] = numbers
    U = np.column_stack([np.linalg.qr(powers)[0][:, 1:], numbers])
    V, X = U.T @ W @ U, P @ U
    values, vectors = np.linalg.eigh(V[:-1, :-1])
    kept = values > RANK_TOLERANCE * max(float(values[-1]), 0)
    rank = int(kept.sum())
    if T < 2 or rank == 0 or V[-1, -1] <= 0:
        return _Tests(np.full(4, np.nan), np.nan, 0, np.nan, np.nan, np.nan, -1, np.nan)
    weight = 1 / size
    D = X - weight @ X / weight.sum()
    Z = D[:, :-1] @ vectors[:, kept] / np.sqrt(values[kept])
    chi2, freedom = float(weight @ (Z * Z).sum(axis=1)), (T - 1) * rank
    of_mean = float(weight @ D[:, -1] ** 2 / V[-1, -1])
    line = _Line.of(X[:, -1], times, size, V[-1, -1])
    rise = (line.slope / line.error) ** 2
    at, outlying, shift = _outlier(line, V[-1, -1], size)
    n_tests = 1 + (at >= 0) + (freedom > 1)
    if at >= 0 and _adjusted(outlying, n_tests) < LEVEL:
        # The others have a separate slope.
        others = np.arange(T) != at
        line = _Line.of(X[others, -1], times[others], size[others], V[-1, -1])
    other = chdtrc(freedom - 1, max(chi2 - rise, 0)) if freedom > 1 else np.nan
    parts = np.array([chdtrc(1, (line.slope / line.error) ** 2), outlying, other])
    adjusted = _adjusted(parts, n_tests)
    tests = np.append(np.nanmin(adjusted), adjusted)
    return _Tests(tests, chi2, freedom, float(chdtrc(T - 1, of_mean)), line.slope, line.error, at, shift)


def _adjusted(p: Any, n_tests: int) -> Any:
    """Return p-values adjusted for the number of tests: 1 - (1 - p)^n."""
    return -np.expm1(n_tests * np.log1p(-np.minimum(p, NEARLY_ONE)))


class _Line(NamedTuple):
    """Line through T points: slope, its error, residuals (T,) and their scale."""

    slope: float
    error: float
    residual: Floats
    fitted: Floats

    @classmethod
    def of(cls, x: Floats, times: Counts, size: Floats, variance: float) -> "_Line":
        """Fit points x (T,) by least squares with variances size times `variance`."""
        weight = 1 / size
        t, d = times - weight @ times / weight.sum(), x - weight @ x / weight.sum()
        spread = float(weight @ t**2)
        slope = float(weight * t @ d) / spread
        return cls(slope, float(np.sqrt(variance / spread)), d - slope * t, 1 / weight.sum() + t**2 / spread)


def _outlier(line: _Line, variance: float, size: Floats) -> tuple[int, float, float]:
    """Return the period farthest from the line, its p-value and distance.

    Residuals (T,) have the variances `variance` (size - fitted), (T,). If the other periods scatter more than that, the
    outlier is compared with their scatter. The distance is that from the line of the other periods. A period that
    determines the line is not tested.
    """
    residual = line.residual
    T, left = len(residual), np.maximum(size - line.fitted, 0)
    tested = left > RANK_TOLERANCE * size
    if T < FEWEST_FOR_OUTLIER or not tested.any():
        return -1, np.nan, np.nan
    left = np.where(tested, left, 1)
    squares = np.where(tested, residual**2 / (variance * left), 0)
    at = int(squares.argmax())
    # Without that period the line has a sum of squares that is smaller by its own.
    chi2 = float((residual**2 / (variance * size)).sum() - squares[at])
    score = np.sqrt(squares[at] / max(1, chi2 / (T - 3)))
    p_value = -np.expm1(T * np.log1p(-min(2 * ndtr(-score), NEARLY_ONE)))
    return at, float(p_value), float(residual[at] * size[at] / left[at])


def _common_shape(own: Floats, sizes: Floats) -> tuple[Floats, Floats]:
    """Return W (n, n) and s (T,) with s_t W nearest to covariances `own` (T, n, n)."""
    # Imported here because it takes long to load.
    from scipy.optimize import nnls

    total = np.maximum(np.trace(own, axis1=1, axis2=2), 0)
    # a + b / N without negative parts, by least squares of relative errors: large groups count as much as small ones.
    a, b = nnls(np.column_stack([sizes, np.ones(len(sizes))]), total * sizes)[0] if len(sizes) else (0.0, 0.0)
    size = a + b / sizes
    if len(sizes) == 0 or not size.all():
        return np.zeros(own.shape[1:]), np.ones(len(own))
    return own.sum(axis=0) / size.sum(), size
