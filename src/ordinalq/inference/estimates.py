"""`Estimates`: distributions of B samples with their bounds and groups."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from ordinalq._utils.text import counted, finite, percent
from ordinalq._utils.validation import Array, Codes, Counts, Floats, Index, check_integer
from ordinalq.inference.bounds import Bounds, mean_class
from ordinalq.inference.comparison import Comparison, SameGroup, Side, compared
from ordinalq.inference.drift import Drift
from ordinalq.inference.model import Ellipsoids
from ordinalq.inference.nested import groups_of_parts
from ordinalq.inference.options import check_level
from ordinalq.inference.provenance import Provenance, assumed_drift
from ordinalq.inference.region import Region, joint_region
from ordinalq.inference.trend import Trend, of_series, trend_of
from ordinalq.samples.keys import Keys
from ordinalq.samples.labels import Scale, class_scale

# Samples that are printed.
SHOWN = 10
# Samples of which the shared error is kept, some hundred bytes for each.
MAX_SHARED = 100_000


@dataclass(frozen=True, eq=False, repr=False)
class Estimates:
    """Estimated class distributions of B samples.

    Parameters
    ----------
    classes : ndarray (n,)
        Classes in ascending order.
    prevalences : ndarray (B, n)
        Estimated class prevalences of each sample.
    n_items : ndarray (B,)
        Number of items of each sample.
    keys : Keys, default=None
        Groups of the samples.
    bounds : Bounds, default=None
        Bounds of the intervals, if a level was given.
    covariance : ndarray (B, n, n), default=None
        Covariance of the error of each estimate.
    shared : ndarray (B, n, k), default=None
        Low-rank factor of the error that samples have in common, because they share M or an offset from the training
        groups. The covariance between the errors of two different samples a and b is ``shared[a] @ shared[b].T``.
    own : ndarray (B, n, n), default=None
        Covariance of the remaining part of each error, which samples do not have in common.
    fit : ndarray (B,) of str, default=None
        Result of the fit test of each sample.
    n_labelled : ndarray (B,), default=None
        Number of labelled items of each sample, if labels were given.
    basis : ndarray (B,) of str, default=None
        Basis of the estimate and its interval, if labels were given: "labels" (the labels alone, valid even if the
        model is wrong) or "model" (the method, which also uses the labels).
    n_effective : ndarray (B,), default=None
        Effective sample size of each sample, if items have weights.
    polars : bool, default=False
        Whether :meth:`frame` returns a polars frame.
    class_values : ndarray (n,), default=None
        Value of each class, if given to `fit`; see :attr:`scale`.
    origin : Provenance, default=None
        Source of the estimates without the labels, see :attr:`provenance`.
    region_centre, region_covariance : ndarray (B, n), (B, n, n), default=None
        Joint regions that do not follow from covariance and bounds, else NaN. See :meth:`region`.
    linear, sampling, response : ndarray (B, n), (B, n, n), (B, n), default=None
        Values for comparing parts of the same group, such as the months of a product. See
        :class:`ordinalq.inference.nested.Parts`. NaN if a part is estimated separately because of labels.
    group_columns : tuple of str, default=()
        Columns of the groups that the model was trained with.
    drift : Drift, default=None
        Common offset of all groups from the training groups. Estimates then depend on the other groups of the table.
        Pass it to later calls to use the same offset.
    has_earlier_drift : bool, default=False
        Whether `drift` was estimated from an earlier table and passed to the call.
    moved : ndarray (B, n), default=None
        Difference between each estimate and that without the offset.
    """

    classes: Array
    prevalences: Floats
    n_items: Counts
    keys: Keys | None = None
    bounds: Bounds | None = None
    covariance: Floats | None = None
    shared: npt.NDArray[np.float32] | None = None
    own: Floats | None = None
    fit: npt.NDArray[np.str_] | None = None
    n_labelled: Counts | None = None
    basis: npt.NDArray[np.str_] | None = None
    n_effective: Floats | None = None
    polars: bool = False
    class_values: Floats | None = None
    origin: Provenance | None = None
    region_centre: Floats | None = None
    region_covariance: Floats | None = None
    linear: Floats | None = None
    sampling: Floats | None = None
    response: Floats | None = None
    group_columns: tuple[str, ...] = ()
    drift: Drift | None = None
    has_earlier_drift: bool = False
    moved: Floats | None = None

    def __len__(self) -> int:
        return len(self.prevalences)

    @property
    def groups(self) -> Array | None:
        """Value of each sample, (B,), a tuple for several columns; or None."""
        return None if self.keys is None else self.keys.to_numpy()

    @property
    def cumulative(self) -> Floats:
        """Prevalence of each class and all lower classes, (B, n)."""
        return np.cumsum(self.prevalences, axis=1)

    @property
    def scale(self) -> Scale:
        """Values of the classes over which means are taken, and the name of the mean."""
        return class_scale(self.classes, self.class_values)

    @property
    def mean(self) -> Floats:
        """Mean class over class values, or mean position 1..n, (B,)."""
        return mean_class(self.prevalences, self.scale.numbers)

    @property
    def level(self) -> float | None:
        """Level of the intervals, None if there are none."""
        return None if self.bounds is None else self.bounds.level

    @property
    def lower(self) -> Floats:
        """Lower bound of each prevalence, (B, n)."""
        return self._known_bounds().lower

    @property
    def upper(self) -> Floats:
        """Upper bound of each prevalence, (B, n)."""
        return self._known_bounds().upper

    @property
    def provenance(self) -> Provenance | None:
        """Model, version, estimand, level and assumptions; None if made by hand."""
        if self.origin is None:
            return None
        origin = self.origin
        if self.drift is not None:
            origin = replace(origin, drift=assumed_drift(self.drift, is_earlier=self.has_earlier_drift))
        if self.response is not None and (alone := int(np.isnan(self.response[:, 0]).sum())):
            one_by_one = f"{alone:,} of {len(self):,} parts are estimated one by one, since their group has labels"
            origin = replace(origin, groups=f"{origin.groups}; {one_by_one}")
        if self.n_labelled is None or self.basis is None:
            return origin
        alone, m = int((self.basis == "labels").sum()), int(self.n_labelled.sum())
        drawn = "drawn at random" if origin.labels == "none" else origin.labels
        rests = f"{alone} of {counted(len(self), 'estimate')} {'rests' if alone == 1 else 'rest'}"
        used = f"{counted(m, 'item')}, {drawn}; {rests} on {'it' if m == 1 else 'them'} alone"
        return replace(origin, labels=used if m else "none")

    @property
    def verdict(self) -> str:
        """Text on the difference of all groups from the training groups, or ""."""
        if self.drift is None or self.moved is None or (self.drift.n_groups < 2 and not self.has_earlier_drift):
            return ""
        moves = f"moves the {self.scale.name} by {float((self.moved @ self.scale.numbers).mean()):+.3f} on average"
        n, m = counted(self.drift.n_groups, "group"), counted(self.drift.n_labelled, "label")
        if self.has_earlier_drift:
            return f"The offset of an earlier table ({n}, {m}) was used. It {moves}."
        text = f"{self.drift} The common offset {moves}"
        used = "was" if self.drift.n_labelled == 1 else "were"
        return f"{text}; {m} of any groups {used} used." if self.drift.n_labelled else f"{text}."

    def _known_bounds(self) -> Bounds:
        if self.bounds is None:
            raise ValueError("the estimates have no intervals. Pass a level, for example level=0.95.")
        return self.bounds

    def __getitem__(self, group: Any) -> "Estimates":
        """Return the estimate of one group, by its value or tuple of values."""
        if self.keys is None:
            raise TypeError("the estimates have no groups. Use take(rows) to select by position.")
        return self.take([self.keys.position(group)])

    def __contains__(self, group: Any) -> bool:
        return self.keys is not None and group in self.keys

    def __iter__(self) -> Iterator["Estimates"]:
        """Yield the estimate of each sample."""
        return (self.take([b]) for b in range(len(self)))

    def take(self, rows: Any) -> "Estimates":
        """Return the estimates of samples by positions, a slice or a mask (B,).

        Parameters
        ----------
        rows : int, slice or array-like
            Positions or mask of samples.

        Returns
        -------
        Estimates
            Estimates of these samples.
        """
        chosen = np.atleast_1d(np.arange(len(self))[rows])
        arrays = {name: value[chosen] for name, value in vars(self).items() if name in PER_SAMPLE and value is not None}
        bounds = None if self.bounds is None else self.bounds.take(chosen)
        return replace(self, bounds=bounds, **arrays)

    def sorted(self, by: Any = "items") -> "Estimates":
        """Return the samples sorted by items, mean class or a prevalence.

        Parameters
        ----------
        by : str or class, default='items'
            'items', 'mean' or a class; '-mean' for the lowest mean first.

        Returns
        -------
        Estimates
            The same samples in another order.
        """
        return self.take(largest_first(by, self.classes, self.n_items, self.prevalences, self.scale.numbers))

    def top(self, k: int, by: Any = "items") -> "Estimates":
        """Return the first k samples in the order of :meth:`sorted`.

        Parameters
        ----------
        k : int
            Number of samples.
        by : str or class, default='items'
            Order, as in :meth:`sorted`.

        Returns
        -------
        Estimates
            The first k samples in this order.
        """
        return self.sorted(by).take(slice(check_integer("k", k, minimum=1)))

    def compare(self, *groups: Any) -> Comparison:
        """Test pairwise differences between groups.

        Parameters
        ----------
        *groups : values of groups
            At least two, in the order in which they are compared.

        Returns
        -------
        Comparison
            ``print`` gives a sentence per pair, ``frame()`` a table, `ordinalq.plot.comparison` a plot.
            Intervals are at the level, and of the sample or the population, of the estimates.
        """
        if self.keys is None:
            raise TypeError("compare needs estimates of groups. Use predict_groups.")
        bounds, keys, E = self._known_bounds(), self.keys, self.covariance
        assert E is not None
        first, second = _pairs(keys, groups)
        a, b = (Side(keys[rows], self.prevalences[rows], bounds.take(rows), E[rows]) for rows in (first, second))
        parts, same = self._parts(), None
        if parts is not None:
            of, linear, sampling, response = parts
            ratio = np.minimum(response[first], response[second])
            apart, E = linear[first] - linear[second], sampling[first] + sampling[second]
            same = SameGroup(of[first] == of[second], apart, E, ratio)
        found = compared(self.classes, a, b, _common(self, first, second), self.scale, same)
        fit = None if self.fit is None else np.column_stack([self.fit[first], self.fit[second]])
        return replace(found, fit=fit, provenance=self.provenance)

    def _parts(self) -> tuple[Codes, Floats, Floats, Floats] | None:
        """Return group of each part (B,), `linear`, `sampling`, `response`, or None.

        A part whose estimate does not rest on the model of groups is a group by itself.
        """
        found = groups_of_parts(self.keys, self.group_columns)
        if self.linear is None or self.sampling is None or self.response is None or found is None:
            return None
        alone = np.isnan(self.response[:, 0])
        groups = np.where(alone, len(found[0]) + np.arange(len(self)), found[1])
        return groups, self.linear, self.sampling, self.response

    def trend(self) -> Trend:
        """Test whether ordered groups, such as months, differ, and estimate their trend.

        Groups by several columns have the time in the last, and each group of the others is a separate series.
        ``print`` gives a sentence per series, ``frame()`` a table; `ordinalq.plot.trend` draws the estimates. The
        question is about the samples or the populations, as the intervals of the estimates are.
        """
        if self.keys is None:
            raise TypeError("trend needs estimates of groups. Use predict_groups.")
        bounds = self._known_bounds()
        assert self.own is not None
        tested, own, found = self.prevalences, self.own, self._parts()
        if found is not None:
            tested, own = of_series(self.keys, tested, own, *found[:3])
        sizes = self.n_items.astype(np.float64) if self.n_effective is None else self.n_effective
        return trend_of(self.keys, self.prevalences, own, sizes, bounds.level, bounds.estimand, self.scale, tested)

    def region(self, level: float | None = None) -> Region:
        """Return a joint confidence region for the whole distribution of each sample.

        Intervals hold for each class by itself. A region contains the distribution of all classes with the probability
        `level`, None for the level of the intervals: an ellipsoid, cut to the simplex.

        Parameters
        ----------
        level : float, default=None
            Level of the regions.

        Returns
        -------
        Region
            ``contains(p)`` tests distributions, ``volume_ratio()`` compares with the Bonferroni box of intervals,
            `ordinalq.plot.region` draws regions of three classes.

        Examples
        --------
        >>> import ordinalq as oq
        >>> rng = np.random.default_rng(0)
        >>> y = rng.integers(1, 4, 500)
        >>> q = oq.PACC().fit(y[:, None] + rng.normal(size=(500, 2)), y)
        >>> X = np.repeat([1, 2, 2, 3], 100)[:, None] + rng.normal(size=(400, 2))
        >>> region = q.predict_interval(X, 0.95).region()
        >>> region.contains([0.25, 0.5, 0.25]).tolist(), region.contains([0.6, 0.2, 0.2]).tolist()
        ([True], [False])
        """
        bounds, E = self._known_bounds(), self.covariance
        assert E is not None
        sizes = self.n_items.astype(np.float64) if self.n_effective is None else self.n_effective
        given = None
        if self.region_centre is not None and self.region_covariance is not None:
            given = Ellipsoids(self.region_centre, self.region_covariance)
        level = bounds.level if level is None else check_level(level)
        return joint_region(self.classes, self.prevalences, E, bounds, sizes, level, given)

    @property
    def prevalence_columns(self) -> list[str]:
        """Names of the columns of :meth:`frame` that hold prevalences and their bounds."""
        return [f"{label}{end}" for label in self.classes for end in ("", "_lower", "_upper")]

    def frame(self) -> Any:
        """Return one row per sample as a frame of pandas or polars.

        The columns are the group (named as the user's columns, or "group"), n_items, the share of each class,
        mean_class (the mean position for classes without values), with intervals <class>_lower, <class>_upper,
        mean_class_lower, mean_class_upper, with weights n_effective, fit if known, with labels n_labelled and basis.
        """
        import pandas as pd

        columns: dict[str, Any] = {"n_items": self.n_items}
        labels = [str(label) for label in self.classes]
        columns |= dict(zip(labels, self.prevalences.T, strict=True))
        columns["mean_class"] = self.mean
        if self.bounds is not None:
            for i, label in enumerate(labels):
                columns |= {f"{label}_lower": self.lower[:, i], f"{label}_upper": self.upper[:, i]}
            columns |= {"mean_class_lower": self.bounds.mean_lower, "mean_class_upper": self.bounds.mean_upper}
        columns |= self._text_of_estimates()
        if self.keys is not None:
            check_names(self.classes, self.keys.names)
        if not self.polars:
            return pd.DataFrame(columns if self.keys is None else self.keys.frame() | columns)
        import polars as pl

        groups = [] if self.keys is None else [column.polars() for column in self.keys.columns]
        return pl.DataFrame([*groups, *pl.DataFrame(columns)])

    def _text_of_estimates(self) -> dict[str, Array]:
        """Return what else is known of each sample, by the name of its column."""
        known = {name: getattr(self, name) for name in SAID}
        return {name: values for name, values in known.items() if values is not None}

    def to_json(self) -> dict[str, Any]:
        """Return groups, prevalences, means and bounds as plain values."""
        found: dict[str, Any] = finite(_json(self))
        return found

    def plot(self, **options: Any) -> Any:
        """Draw the distributions of one or several groups.

        See :func:`ordinalq.plot.distribution` (one) and :func:`ordinalq.plot.groups`.

        Parameters
        ----------
        **options
            Further arguments of the function.

        Returns
        -------
        matplotlib Axes or Figure
            The plot.
        """
        from ordinalq import plot

        return plot.distribution(self, **options) if len(self) == 1 else plot.groups(self, **options)

    def __repr__(self) -> str:
        what = "sample" if self.keys is None else "group"
        with_level = "" if self.bounds is None else f", level={self.bounds.level}, of the {self.bounds.estimand}"
        return f"Estimates({len(self)} {what}{'s' * (len(self) != 1)}, {len(self.classes)} classes{with_level})"

    def __str__(self) -> str:
        return "\n".join(_lines(self))


# The fields with one entry per sample; bounds have their own.
WHOLE = ("classes", "bounds", "polars", "class_values", "origin", "drift", "has_earlier_drift", "group_columns")
PER_SAMPLE = [field.name for field in fields(Estimates) if field.name not in WHOLE]
REGIONS = ("region_centre", "region_covariance")
# The columns of a table that are there only if known.
SAID = ("n_effective", "fit", "n_labelled", "basis")


def _pairs(keys: Keys, groups: Sequence[Any]) -> Index:
    """Return the rows of the first and of the second group of all pairs, (2, K)."""
    rows = [keys.position(group) for group in groups]
    if len(rows) < 2 or len(set(rows)) < len(rows):
        given = ", ".join(map(repr, groups)) or "none"
        raise ValueError(f"compare needs at least two different groups, got {given}.")
    return np.asarray(np.array(rows)[np.array(np.triu_indices(len(rows), 1))])


def concatenate(parts: Sequence[Estimates], keys: Keys | None) -> Estimates:
    """Return the estimates of all parts, one after the other, with all keys.

    The error that samples share is not kept of more than 100,000 of them: it would take most of the memory.
    """
    if len(parts) == 1:
        return replace(parts[0], keys=keys)
    dropped = {"keys", *(["shared"] if sum(map(len, parts)) > MAX_SHARED else [])}
    if any(part.n_effective is not None for part in parts):
        # Where weights happen to be ones, an item is worth an item.
        parts = [
            part if part.n_effective is not None else replace(part, n_effective=part.n_items.astype(np.float64))
            for part in parts
        ]
    lists = {name: [getattr(part, name) for part in parts] for name in PER_SAMPLE if name not in dropped}
    found = {name: None if values[0] is None else np.concatenate(values) for name, values in lists.items()}
    bounds = [part.bounds for part in parts if part.bounds is not None]
    together = {"keys": keys, "bounds": Bounds.concatenate(bounds) if bounds else None}
    return replace(parts[0], **(dict.fromkeys(dropped) | found | together))


def _common(estimates: Estimates, first: Index, second: Index) -> Floats | None:
    """Return the shared error covariance S_AB (K, n, n) of K pairs, or None."""
    shared = estimates.shared
    if shared is None:
        return None
    return np.asarray(shared[first].astype(np.float64) @ shared[second].transpose(0, 2, 1))


def _json(estimates: Estimates) -> dict[str, Any]:
    """Return what :meth:`Estimates.to_json` does."""
    extra = estimates._text_of_estimates()
    if estimates.bounds is not None:
        names = ("lower", "upper", "mean_lower", "mean_upper")
        extra |= {name.replace("mean", "mean_class"): getattr(estimates.bounds, name) for name in names}
    columns = {"n_items": estimates.n_items, "prevalences": estimates.prevalences, "mean_class": estimates.mean} | extra
    lists = {name: column.tolist() for name, column in columns.items()}
    rows = [dict(zip(lists, values, strict=True)) for values in zip(*lists.values(), strict=True)]
    head: dict[str, Any] = {
        "classes": _plain(estimates.classes.tolist()),
        "class_values": estimates.scale.numbers.tolist(),
        "level": estimates.level,
    }
    if estimates.bounds is not None:
        head["estimand"] = estimates.bounds.estimand
    if estimates.provenance is not None:
        head["provenance"] = estimates.provenance.to_json()
    if estimates.drift is not None and estimates.moved is not None:
        moved = estimates.moved.mean(axis=0).tolist()
        head["drift"] = estimates.drift.to_json() | {"verdict": estimates.verdict, "moved": moved}
    if estimates.keys is None:
        return head | {"samples": rows}
    by, values = estimates.keys.names, [_plain(column.tolist()) for column in estimates.keys.columns]
    # Of several columns, a group is an object of their values.
    named = values[0] if len(by) == 1 else [dict(zip(by, v, strict=True)) for v in zip(*values, strict=True)]
    groups = [{"group": key, **row} for key, row in zip(named, rows, strict=True)]
    return head | {"by": by[0] if len(by) == 1 else by, "groups": groups}


def largest_first(by: Any, classes: Array, n_items: Counts, P: Floats, values: Floats) -> Index:
    """Return positions (B,) by decreasing items, mean class or prevalence.

    Ties keep their order.

    A minus before the name, as in "-mean", sorts by rising values.
    """
    names = ["items", "mean", *(str(label) for label in classes)]
    rising = str(by) not in names and str(by)[:1] == "-"
    name = str(by)[1:] if rising else str(by)
    if name not in names:
        listed = ", ".join(names[2:])
        raise ValueError(f"sort must be 'items', 'mean' or a class ({listed}), or '-mean' and so on, got {by!r}.")
    which = names.index(name)
    amounts = n_items if which == 0 else mean_class(P, values) if which == 1 else P[:, which - 2]
    return np.argsort(amounts if rising else -amounts, kind="stable")


def check_names(classes: Array, groups: Sequence[str]) -> None:
    """Raise ValueError if a class or group column has a name of another column."""
    shares = ["mean_class", *(str(label) for label in classes)]
    columns = ["n_items", *SAID, *shares, *(f"{name}_{end}" for name in shares for end in ("lower", "upper"))]
    if len(set(columns)) < len(columns):
        twice = next(column for column in columns if columns.count(column) > 1)
        raise ValueError(f"the names of the classes must not be those of other columns, but {twice!r} occurs twice.")
    clash = next((name for name in groups if name in columns), None)
    if clash is not None:
        raise ValueError(f"a group column must not have the name {clash!r} of another column. Rename it.")


def _plain(values: list[Any]) -> list[Any]:
    """Return values as JSON has them; dates as text."""
    return [v if v is None or isinstance(v, str | int | float | bool) else _text(v) for v in values]


def _text(value: Any) -> str:
    return str(value.isoformat()) if hasattr(value, "isoformat") else str(value)


def _lines(estimates: Estimates) -> list[str]:
    """Return what is printed of the first samples."""
    bounds, keys, means = estimates.bounds, estimates.keys, estimates.mean
    lines = [] if bounds is None else [f"{percent(bounds.level)} intervals of the {bounds.estimand}"]
    width = max(10, len(estimates.scale.name), *(len(str(label)) for label in estimates.classes))
    names = [""] * len(estimates) if keys is None else [f"{keys.name} {key}, " for key in keys.labels()]
    for b in range(min(len(estimates), SHOWN)):
        lines.append(f"{names[b]}{estimates.n_items[b]} items{_label_text(estimates, b)}")
        rows = [*zip(estimates.classes, estimates.prevalences[b], strict=True), (estimates.scale.name, means[b])]
        ends = [""] * len(rows)
        if bounds is not None:
            low, high = (
                np.append(bounds.lower[b], bounds.mean_lower[b]),
                np.append(bounds.upper[b], bounds.mean_upper[b]),
            )
            ends = [f"  [{a:.3f}, {c:.3f}]" for a, c in zip(low, high, strict=True)]
        lines += [f"  {label!s:<{width}} {p:.3f}{end}" for (label, p), end in zip(rows, ends, strict=True)]
    if len(estimates) > SHOWN:
        lines.append(f"and {len(estimates) - SHOWN} more")
    return lines


def _label_text(estimates: Estimates, b: int) -> str:
    if estimates.n_labelled is None or estimates.basis is None:
        return ""
    basis = estimates.basis[b]
    return f", {estimates.n_labelled[b]} labelled: by the {basis}{' alone' * (basis == 'labels')}"
