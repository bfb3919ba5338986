"""Comparison of several methods on the same scores."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from sklearn.base import clone
from sklearn.utils import _safe_indexing
from sklearn.utils.validation import check_consistent_length

from ordinalq._utils.text import join_names
from ordinalq._utils.validation import Floats
from ordinalq.classifiers.cross_fitting import CrossFitted, held_out, make_folds, unscored
from ordinalq.metrics import errors, find_measure, mean_and_std, p_against_best
from ordinalq.protocols import APP
from ordinalq.quantifiers.base import Quantifier
from ordinalq.quantifiers.catalog import find_method
from ordinalq.samples.keys import Keys
from ordinalq.samples.labels import encode_labels
from ordinalq.samples.samples import Samples

# Methods that a paired test cannot tell from the best at this level are as good, as in the paper's tables.
LEVEL = 0.01
# Samples of each half, and their items.
N_SAMPLES, SAMPLE_SIZE = 250, 100


@dataclass(frozen=True, eq=False, repr=False)
class MethodComparison:
    """Errors of K methods on the same B samples.

    Parameters
    ----------
    measure : str
        Name of the measure.
    errors : dict of str to ndarray (B,)
        Errors of each method, by its name.
    n_classes : int
        Number of classes n: n - 1 times NMD is the mean distance of an item from where it belongs, in classes.
    samples : str
        Description of the samples.

    Examples
    --------
    >>> errors = {"CC": np.linspace(0.1, 0.2, 50), "PACC": np.linspace(0, 0.1, 50)}
    >>> found = MethodComparison("nmd", errors, 5, "50 samples")
    >>> found.frame()[["method", "as_good"]]
      method  as_good
    0   PACC     True
    1     CC    False
    """

    measure: str
    errors: Mapping[str, Floats]
    n_classes: int
    samples: str

    @property
    def best(self) -> str:
        """Name of the method with the smallest mean error."""
        return min(self.errors, key=lambda name: float(self.errors[name].mean()))

    def frame(self) -> pd.DataFrame:
        """Return one row per method, the best first, as a pandas frame.

        The columns are method, mean and std of the error, ratio to the mean of the best, p_value (Wilcoxon's
        signed-rank test against the best, two-sided, not adjusted for the number of methods) and as_good: whether
        p_value >= 0.01.
        """
        return pd.DataFrame(self.rows())

    def rows(self) -> list[dict[str, Any]]:
        """Return the rows of :meth:`frame`."""
        p, least = p_against_best(self.errors), float(self.errors[self.best].mean())
        found = []
        for name, each in self.errors.items():
            mean, std = mean_and_std(each)
            ratio = mean / least if least > 0 else np.nan
            test = {"p_value": p[name], "as_good": bool(p[name] >= LEVEL)}
            found.append({"method": name, "mean": mean, "std": std, "ratio": ratio} | test)
        return sorted(found, key=lambda row: row["mean"])

    def sentence(self) -> str:
        """Return the conclusion of the table as a sentence."""
        rows = self.rows()
        first, *others = [row["method"] for row in rows if row["as_good"]]
        worse = len(rows) - 1 - len(others)
        tied = f", but not significantly smaller than {join_names(others)}" if others else ""
        rest = f"; the other{' is' if worse == 1 else f' {worse} are'} worse" if worse and others else ""
        alone = ", and the others are worse" if worse and not others else ""
        test = f"(Wilcoxon's signed-rank test on {self.samples}, level {LEVEL}, not adjusted)"
        return f"{first} has the smallest error{tied}{rest}{alone} {test}."

    def __str__(self) -> str:
        rows = self.rows()
        width = max(len("method"), *(len(row["method"]) for row in rows))
        lines = [f"{'method':<{width}}  {self.measure.upper():>7}     std  ratio        p"]
        for row in rows:
            p = "" if row["method"] == self.best else f"{row['p_value']:.2g}"
            lines.append(f"{row['method']:<{width}}  {row['mean']:.5f} {row['std']:.5f} {row['ratio']:6.2f} {p:>8}")
        return "\n".join([*lines, self.sentence()])

    def __repr__(self) -> str:
        return f"MethodComparison({len(self.errors)} methods, {self.samples}, best: {self.best})"


def compare_methods(
    methods: Mapping[str, Quantifier] | Sequence[str],
    X: Any,
    y: Any,
    *,
    classifier: Any = None,
    classes: Any = None,
    groups: Any = None,
    protocol: Any = None,
    measure: Any = "nmd",
    random_state: int = 0,
) -> MethodComparison:
    """Compare methods on labelled items.

    The classifier is fitted once, and all methods use its held-out scores. The items are split into halves, with groups
    kept together. Each method is fitted on the scores of one half and estimates samples of the other half, and vice
    versa. All errors are larger than those of models fitted on all items.

    Parameters
    ----------
    methods : dict of str to Quantifier, or list of str
        Unfitted methods without a classifier, under any names, or a list of names from the catalog. Methods that cannot
        be fitted on scores (OQT, ARC, AutoQuantifier) are fitted on the items of each half.
    X : array-like, frame or sparse array (N, ...)
        Labelled items, of any kind that the classifier accepts.
    y : array-like (N,)
        Labels of the items.
    classifier : classifier, default=None
        Classifier that computes the scores. None means ``CrossFitted()``.
    classes : array-like (n,), default=None
        All labels in ascending order. Required for strings.
    groups : array-like (N,), default=None
        Group of each item. With groups, the samples are the groups, and methods learn the differences between them.
    protocol : Protocol, default=None
        Protocol that draws the samples of each half. None means ``APP(250, 100, small_pool="repeat")``.
    measure : str or callable, default="nmd"
        Error of an estimate, see :func:`ordinalq.metrics.errors`.
    random_state : int, default=0
        Random seed of the halves and of the default protocol.

    Returns
    -------
    MethodComparison
        Errors with paired tests. ``print`` shows them as a table, and ``frame()`` returns a frame.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> y = rng.integers(1, 4, 300)
    >>> found = compare_methods(["CC", "PACC"], rng.normal(y[:, None], 1, (300, 2)), y)
    >>> found.best
    'PACC'
    """
    found = check_methods(methods)
    name, _ = find_measure(measure)
    ordered, codes = encode_labels(y, classes, every_class=True)
    check_consistent_length(X, codes)
    numbers = None if groups is None else Keys.of(groups)[1]
    S = None
    if any(method.traits.learns_from == "scores" for method in found.values()):
        scorer = held_out(CrossFitted(random_state=random_state) if classifier is None else classifier)
        S = clone(scorer).fit(X, codes, ordered, numbers).held_out_scores_
        kept = np.flatnonzero(~unscored(S))
        S, X, codes = S[kept], _safe_indexing(X, kept), codes[kept]
        numbers = None if numbers is None else numbers[kept]
    protocol = (
        APP(N_SAMPLES, SAMPLE_SIZE, small_pool="repeat", random_state=random_state) if protocol is None else protocol
    )
    parts: dict[str, list[Floats]] = {name: [] for name in found}
    labels = np.arange(len(ordered))
    for taught, judged in make_folds(2, codes, numbers, random_state=random_state):
        if numbers is None:
            samples: Samples = protocol.draw(codes[judged], classes=labels)
        else:
            samples = Samples.from_groups(numbers[judged], codes[judged], classes=labels)
        given: dict[str, Any] = {"classes": labels, "groups": None if numbers is None else numbers[taught]}
        for key, method in found.items():
            twin: Quantifier = clone(method)
            if method.traits.learns_from == "items":
                twin.fit(_safe_indexing(X, taught), codes[taught], **given)
                P = twin.predict_samples(_safe_indexing(X, judged), samples)
            else:
                V: Any = S if method.traits.learns_from == "scores" else np.asarray(X, dtype=np.float64)
                P = twin.fit_scores(V[taught], codes[taught], **given).predict_scores(V[judged], samples)
            parts[key].append(errors(samples.prevalences, P, measure))
    joined = {key: np.concatenate(values) for key, values in parts.items()}
    kind = "groups" if groups is not None else "samples"
    return MethodComparison(name, joined, len(ordered), f"{len(joined[min(joined)]):,} {kind}")


def check_methods(methods: Any) -> dict[str, Quantifier]:
    """Return unfitted methods without a classifier, by their names."""
    if isinstance(methods, str) or not isinstance(methods, Mapping | Sequence):
        raise TypeError(f"methods must be a dict of methods, or a list of names, got {methods!r:.60}.")
    if not isinstance(methods, Mapping):
        methods = {name: find_method(name).cls() for name in methods}
    if not methods:
        raise ValueError("methods must hold at least one method, got none.")
    for name, method in methods.items():
        if not isinstance(method, Quantifier):
            raise TypeError(f"methods[{name!r}] must be a quantifier, such as PACC(), got {type(method).__name__}.")
        if method.traits.learns_from == "scores" and getattr(method, "classifier", None) is not None:
            raise ValueError(
                f"methods[{name!r}] must not have a classifier, because all methods share one. Pass classifier=..."
            )
    return dict(methods)
