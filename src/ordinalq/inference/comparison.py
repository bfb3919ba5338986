"""Tests of pairwise differences between groups."""

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from scipy.special import ndtr, ndtri

from ordinalq._utils.text import finite, percent
from ordinalq._utils.validation import Array, Floats, Mask
from ordinalq.inference.bounds import Bounds
from ordinalq.inference.provenance import Provenance
from ordinalq.samples.keys import Keys
from ordinalq.samples.labels import Scale

# Pairs, or series, that are printed.
SHOWN = 20
# Probabilities nearer to 0 or 1 are reported as beyond this: normal tails are not more accurate.
SURE = 0.001
# Probability of the order of the means from which "at every cut" is stated.
LIKELY = 0.9
# Standard deviations and differences that are zero but for rounding errors.
ROUNDING = 1e-12


@dataclass(frozen=True, eq=False, repr=False)
class Comparison:
    """Differences A - B of K pairs of groups, with intervals.

    Parameters
    ----------
    classes : ndarray (n,)
        Classes in ascending order.
    a, b : Keys (K,)
        The two groups of each pair.
    level : float
        Level of each interval for a single pair, or of all intervals of one kind together for several pairs
        (Bonferroni: each is at level 1 - (1 - level) / K).
    estimand : {"sample", "population"}
        Whether the differences are between these items, or between their populations.
    mean, mean_lower, mean_upper : ndarray (K,)
        Difference of the mean class, and its interval.
    probability : ndarray (K,)
        Probability that A's mean class is higher than B's, for each pair by itself.
    p_value : ndarray (K,)
        Two-sided test that the mean classes are equal; for several pairs multiplied by their number (Bonferroni).
    cumulative, cumulative_lower, cumulative_upper : ndarray (K, n)
        Difference of the share of each class and all below, and its interval.
    mean_name : {"mean class", "mean position"}
        Whether the mean is taken over values of the classes or over their positions 1..n.
    fit : ndarray (K, 2), default=None
        Fit of A and B, see :class:`ordinalq.Estimates`.
    provenance : Provenance, default=None
        Model and options of the estimates.

    Examples
    --------
    >>> import ordinalq as oq
    >>> rng = np.random.default_rng(0)
    >>> y = rng.integers(1, 6, 1000)
    >>> X = y[:, None] + rng.normal(size=(1000, 3))
    >>> estimates = oq.PACC().fit(X, y).predict_groups(X, np.where(y > 2, "A", "B"), level=0.95)
    >>> found = estimates.compare("A", "B")
    >>> bool(found.clear[0])
    True
    """

    classes: Array
    a: Keys
    b: Keys
    level: float
    estimand: str
    mean: Floats
    mean_lower: Floats
    mean_upper: Floats
    probability: Floats
    p_value: Floats
    cumulative: Floats
    cumulative_lower: Floats
    cumulative_upper: Floats
    mean_name: str = "mean class"
    fit: Array | None = None
    provenance: Provenance | None = None

    def __len__(self) -> int:
        return len(self.mean)

    @property
    def side(self) -> npt.NDArray[np.str_]:
        """Stochastic order of A and B, (K,): "higher", "lower" or "crossing"."""
        low, high = self.cumulative.min(axis=1) < -ROUNDING, self.cumulative.max(axis=1) > ROUNDING
        return np.where(low & ~high, "higher", np.where(high & ~low, "lower", "crossing"))

    @property
    def clear(self) -> Mask:
        """Whether all cumulative differences have intervals on one side, (K,).

        The last one, which is zero, is left out.
        """
        below = (self.cumulative_upper[:, :-1] < 0).all(axis=1)
        return np.asarray(below | (self.cumulative_lower[:, :-1] > 0).all(axis=1))

    def frame(self) -> Any:
        """Return one row per pair as a pandas frame.

        The columns are a, b (where groups have several columns a_<column>, b_<column>), mean_class (the difference)
        with _lower and _upper, probability, p_value, side, clear, and up_to_<class> with _lower and _upper: the
        difference of the share of the class and all below, for all but the last.
        """
        import pandas as pd

        columns: dict[str, Any] = {}
        for side, keys in (("a", self.a), ("b", self.b)):
            columns |= {side: keys.columns[0].index} if len(keys.columns) == 1 else keys.frame(f"{side}_")
        columns |= {f"mean_class{end}": getattr(self, f"mean{end}") for end in ("", "_lower", "_upper")}
        columns |= {name: getattr(self, name) for name in ("probability", "p_value", "side", "clear")}
        for i, label in enumerate(self.classes[:-1]):
            for end in ("", "_lower", "_upper"):
                columns[f"up_to_{label}{end}"] = getattr(self, f"cumulative{end}")[:, i]
        return pd.DataFrame(columns)

    def to_json(self) -> dict[str, Any]:
        """Return differences and bounds as plain numbers, strings, lists and dicts."""
        names = ("probability", "p_value", "side", "clear", "cumulative", "cumulative_lower", "cumulative_upper")
        lists: dict[str, Any] = {"a": self.a.labels(), "b": self.b.labels()}
        lists |= {f"mean_class{end}": getattr(self, f"mean{end}").tolist() for end in ("", "_lower", "_upper")}
        lists |= {name: getattr(self, name).tolist() for name in names} | {"sentence": self.sentences()}
        head = {"by": self.a.name, "classes": [str(label) for label in self.classes], "level": self.level}
        adjusted = "Bonferroni" if len(self) > 1 else None
        pairs = [dict(zip(lists, values, strict=True)) for values in zip(*lists.values(), strict=True)]
        return head | {"estimand": self.estimand, "adjusted": adjusted, "pairs": finite(pairs)}

    def sentences(self) -> list[str]:
        """Return one sentence per pair of groups."""
        return [self._sentence(k, a, b) for k, (a, b) in enumerate(zip(self.a.labels(), self.b.labels(), strict=True))]

    def _sentence(self, k: int, a: str, b: str) -> str:
        d, side = self.mean[k], self.side[k]
        where = f"{d:.2f} above that of {b}" if d >= 0 else f"{-d:.2f} below that of {b}"
        interval = f"{percent(self.level)} interval {self.mean_lower[k]:+.2f} to {self.mean_upper[k]:+.2f}"
        # Of the order that the estimates have: at least one half.
        p = max(self.probability[k], 1 - self.probability[k])
        chance = f"above {percent(1 - SURE)}" if p > 1 - SURE else f"of {percent(p, 1)}"
        if side == "crossing" or (p < LIKELY and not self.clear[k]):
            cuts = self._where(k, a)
        else:
            sure = "" if self.clear[k] else ", but this is not significant"
            cuts = f"{a} has {'more' if side == 'higher' else 'less'} in the upper classes at every cut{sure}"
        order = f"{'higher' if d >= 0 else 'lower'} with a probability {chance}"
        return f"The {self.mean_name} of {a} is {where} ({interval}) and {order}; {cuts}."

    def _where(self, k: int, a: str) -> str:
        """Return the cuts above which A has more, for a pair without a clear order."""
        more, less = self.cumulative_upper[k, :-1] < 0, self.cumulative_lower[k, :-1] > 0
        if more.any() and less.any():
            return "which has more in the upper classes depends on the cut"
        if not (more | less).any():
            return "which has more in the upper classes is undecided"
        above = [f"of {label} and above" for label in self.classes[1:-1]] + [f"of {self.classes[-1]}"]
        cuts = ", ".join(above[i] for i in np.flatnonzero(more | less))
        return f"{a} has a {'larger' if more.any() else 'smaller'} share {cuts}; other cuts are undecided"

    def __str__(self) -> str:
        return join_sentences(self.sentences(), "pairs", self.estimand, self.adjustment())

    def adjustment(self) -> str:
        """Return how the number of pairs is taken into account, as the end of a sentence."""
        if len(self) == 1:
            return ""
        return f"; intervals hold for all {len(self)} pairs together (Bonferroni), probabilities for each by itself"

    def __repr__(self) -> str:
        return f"Comparison({len(self)} pair{'s' * (len(self) != 1)}, level={self.level}, of the {self.estimand})"


def join_sentences(sentences: list[str], what: str, estimand: str, adjusted: str) -> str:
    """Return the first sentences, the number of further ones, and the subject."""
    about = "the populations behind the items" if estimand == "population" else "exactly these items"
    more = [f"and {len(sentences) - SHOWN} more {what}"] if len(sentences) > SHOWN else []
    return "\n".join([*sentences[:SHOWN], *more, f"(This is about {about}{adjusted}.)"])


class Side(NamedTuple):
    """One side of K pairs: names, prevalences P (K, n), bounds, error covariances."""

    keys: Keys
    P: Floats
    bounds: Bounds
    E: Floats


class SameGroup(NamedTuple):
    """K pairs, some of parts of one group, see `ordinalq.inference.nested`.

    `pairs` (K,) marks these. `difference` (K, n) is that of their linear estimates, `E` (K, n, n) its covariance if
    they are equal, and `response` (K, n) the ratio of the estimated to the true difference.
    """

    pairs: Mask
    difference: Floats
    E: Floats
    response: Floats


def compared(
    classes: Array, A: Side, B: Side, S: Floats | None, scale: Scale, same: SameGroup | None = None
) -> Comparison:
    """Return what is known of the differences of K pairs of groups.

    A statistic a of A, such as its mean class, has the interval [a - l, a + h], b of B [b - l', b + h'], and r is the
    correlation of their errors. Then the interval of a - b is

        a - b - sqrt(l^2 + h'^2 - 2 r l h')  to  a - b + sqrt(h^2 + l'^2 - 2 r h l')

    (Zou and Donner, 2008). For normal errors this is the usual one; where shares cannot be negative, intervals of
    groups are longer to one side than to the other, and so must be that of their difference. That of several pairs is
    wider by the ratio of the normal quantiles, and the probability that a mean class is higher is that of the widest
    interval that does not hold zero. S (K, n, n) is what errors of both have in common, E[e_A e_B']; None for nothing.
    `scale` has the values of the classes.

    Parts of the same group share its effect. Their difference d is tested by its standard deviation s if they are
    equal; the interval is (d -+ z s) / response, as estimates are drawn to the group, and contains d.
    """
    K, n = A.P.shape
    level = A.bounds.level
    # Columns: the cumulated shares of all classes but the last, which is one, and the mean class.
    U = np.column_stack([np.tri(n).T[:, :-1], scale.numbers])

    def along(V: Floats) -> Floats:
        return np.asarray(np.einsum("is,kij,js->ks", U, V, U, optimize=True))

    common = np.zeros((K, n)) if S is None else along(S)
    variances = np.maximum(along(A.E), 0), np.maximum(along(B.E), 0)
    # The parts are estimated separately, so a correlation may exceed one.
    r = np.clip(common / np.maximum(np.sqrt(variances[0] * variances[1]), ROUNDING), -1, 1)
    difference = (A.P - B.P) @ U
    z, wide = ndtri((1 + level) / 2), ndtri(1 - (1 - level) / (2 * K))
    (below_a, above_a), (below_b, above_b) = _distances(A, U), _distances(B, U)
    down, up = _distance(below_a, above_b, r) / z, _distance(above_a, below_b, r) / z
    largest = np.append(np.ones(n - 1), np.ptp(scale.numbers))
    lower, upper = np.maximum(difference - wide * down, -largest), np.minimum(difference + wide * up, largest)
    d = difference[:, -1]
    # Without any error the sign is known.
    score = d / np.maximum(np.where(d > 0, down[:, -1], up[:, -1]), ROUNDING)
    if same is not None and same.pairs.any():
        k = same.pairs
        s, ratio = np.sqrt(np.maximum(along(same.E), 0))[k], np.maximum(same.response[k], ROUNDING)
        linear = (same.difference @ U)[k]
        ends = (linear - wide * s) / ratio, (linear + wide * s) / ratio
        lower[k] = np.maximum(np.minimum(ends[0], difference[k]), -largest)
        upper[k] = np.minimum(np.maximum(ends[1], difference[k]), largest)
        score[k] = linear[:, -1] / np.maximum(s[:, -1], ROUNDING)
    zero = np.zeros((K, 1))
    cumulative: dict[str, Any] = {
        f"cumulative{end}": np.hstack([values[:, :-1], zero])
        for end, values in (("", difference), ("_lower", lower), ("_upper", upper))
    }
    return Comparison(
        classes,
        A.keys,
        B.keys,
        level,
        A.bounds.estimand,
        mean=d,
        mean_lower=lower[:, -1],
        mean_upper=upper[:, -1],
        probability=ndtr(score),
        p_value=np.minimum(2 * K * ndtr(-abs(score)), 1),
        **cumulative,
        mean_name=scale.name,
    )


def _distances(side: Side, U: Floats) -> tuple[Floats, Floats]:
    """Return the distances of the interval ends from the statistics, (K, n) each."""
    bounds, value = side.bounds, side.P @ U
    ends = [
        np.column_stack([getattr(bounds, f"cumulative_{end}")[:, :-1], getattr(bounds, f"mean_{end}")])
        for end in ("lower", "upper")
    ]
    return np.maximum(value - ends[0], 0), np.maximum(ends[1] - value, 0)


def _distance(x: Floats, y: Floats, r: Floats) -> Floats:
    return np.asarray(np.sqrt(np.maximum(x * x + y * y - 2 * r * x * y, 0)))
