"""What scripts ask of a fitted quantifier besides `predict`, for the versions of the library that they may meet.

`side_by_side.py` compares versions with different interfaces; the other scripts take the present one the same way.
"""

import inspect
from typing import Any

import numpy as np

BOUNDS = ("lower", "upper", "cumulative_lower", "cumulative_upper", "mean_lower", "mean_upper")


class Before:
    """Services with `_scores` twins: `predict_interval_scores` gives Intervals, `predict_groups_scores` a frame."""

    def intervals(
        self, q: Any, S: Any, samples: Any, level: float, of: str, *, fit: bool = True, **options: Any
    ) -> dict[str, Any]:
        """Return estimates and bounds of samples of items with scores S (N, n): name -> array; there is no `fit`."""
        found = q.predict_interval_scores(S, level, samples, target=of, **options)
        parts = {name: getattr(found, name) for name in (*BOUNDS, "covariance", "n_items")}
        return parts | {"prevalences": found.estimate}

    def groups(
        self, q: Any, S: Any, groups: Any, level: float | None = None, *, fit: bool = True, **options: Any
    ) -> dict[str, Any]:
        """Return the table of groups of items with scores S (N, n): name of a column -> array; there is no `fit`."""
        return columns(q.predict_groups_scores(S, groups, level=level, **options))

    def portions(self, q: Any, S: Any, groups: Any, parts: Any, level: float | None = None, **options: Any) -> Any:
        """Return the table of groups whose items were added in portions, index arrays `parts`."""
        from ordinalq.quantifiers.streaming import GroupTotals

        totals = GroupTotals(q)
        for part in parts:
            totals.add(S[part], groups[part])
        return columns(totals.table(level=level, **options))

    def diagnosis(self, q: Any, S: Any) -> dict[str, Any]:
        """Return the numbers of a diagnosis by name."""
        record: dict[str, Any] = q.diagnose_scores(S).to_dict()
        return record


class Now:
    """Services of a Summary: functions in `ordinalq.inference` that give Estimates."""

    def intervals(
        self, q: Any, S: Any, samples: Any, level: float, of: str, *, fit: bool = True, **options: Any
    ) -> dict[str, Any]:
        """Return estimates and bounds of samples of items with scores S (N, n): name -> array."""
        from ordinalq.inference.estimate import estimate
        from ordinalq.inference.options import IntervalOptions

        found = estimate(q, q.summarize(S, samples, checks=fit), level, IntervalOptions(of=of, **options))
        parts = {name: getattr(found.bounds, name) for name in BOUNDS}
        return parts | {"covariance": found.covariance, "n_items": found.n_items, "prevalences": found.prevalences}

    def groups(
        self, q: Any, S: Any, groups: Any, level: float | None = None, *, fit: bool = True, **options: Any
    ) -> dict[str, Any]:
        """Return the table of groups of items with scores S (N, n): name of a column -> array."""
        return self._table(q, self._summary(q, S, groups, checks=fit), level, **options)

    def portions(self, q: Any, S: Any, groups: Any, parts: Any, level: float | None = None, **options: Any) -> Any:
        """Return the table of groups whose items were summarized in portions, index arrays `parts`, and merged."""
        merged = None
        for part in parts:
            summary = self._summary(q, S[part], groups[part])
            merged = summary if merged is None else merged.merge(summary)
        return self._table(q, merged, level, **options)

    def diagnosis(self, q: Any, S: Any) -> dict[str, Any]:
        """Return the numbers of a diagnosis by name."""
        from ordinalq.inference.diagnosis import diagnose

        record: dict[str, Any] = diagnose(q, q.summarize(S, checks=True)).to_dict()
        return record

    def _summary(self, q: Any, S: Any, groups: Any, *, checks: bool = True) -> Any:
        from ordinalq.samples.samples import Samples

        return q.summarize(S, Samples.from_groups(groups), checks=checks)

    def _table(self, q: Any, summary: Any, level: float | None, **options: Any) -> dict[str, Any]:
        from ordinalq.inference.estimate import estimate
        from ordinalq.inference.options import IntervalOptions

        return columns(estimate(q, summary, level, IntervalOptions(**options)).frame())


def adapter() -> Before | Now:
    """Return the adapter for the version of the library that is imported."""
    try:
        import ordinalq.inference  # noqa: F401
    except ImportError:
        return Before()
    return Now()


def paper_methods() -> list[Any]:
    """Return the methods of the paper in the catalog, which had no others once."""
    import ordinalq as oq

    takes = inspect.signature(oq.catalog).parameters
    return list(oq.catalog(**({"beyond": False} if "beyond" in takes else {})))


def columns(frame: Any) -> dict[str, Any]:
    """Return the columns of a frame as arrays."""
    return {str(name): np.asarray(frame[name]) for name in frame.columns}


def centred(cls: Any, centre: Any, **parameters: Any) -> Any:
    """Return a method whose penalty pulls towards a centre, which was once called target."""
    name = "centre" if "centre" in inspect.signature(cls).parameters else "target"
    return alike(cls, **parameters, **{name: centre})


def alike(cls: Any, **parameters: Any) -> Any:
    """Return a method with parameters that mean the same in all versions.

    o-PDF had bins over the span of the data, which is a choice now; RUN took the reciprocal of the acceptance.
    """
    if "span" in inspect.signature(cls).parameters:
        parameters = {"span": "data"} | parameters
    if "acceptance" in parameters and isinstance(adapter(), Before):
        parameters["acceptance"] = 1 / parameters["acceptance"]
    return cls(**parameters)


def linear_objective(q: Any, Q: Any, sizes: Any) -> Any:
    """Objective of the fitted linear quantifier q for means Q (B, d) of samples of the given sizes (B,).

    None where q minimizes none: it counts, or it iterates.
    """
    from ordinalq.regularizers import Regularizer
    from ordinalq.solvers.objectives import LinearObjective

    regularizer = getattr(q, "smoother_", None) or getattr(q, "regularizer_", None)
    if not hasattr(q, "loss_") or not isinstance(regularizer, Regularizer):
        return None
    blocks = q.representation_.n_blocks_
    try:
        from ordinalq.simplex import Data
    except ImportError:
        return LinearObjective(q.loss_, regularizer, Q, q.M_, sizes, blocks)
    return LinearObjective(q.loss_, regularizer, Data(Q, q.M_, sizes, n_blocks=blocks))
