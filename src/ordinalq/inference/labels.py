"""Estimates of groups with some labelled items: by the method's model of groups, or by the labels alone."""

from dataclasses import fields, replace
from typing import Any

import numpy as np

from ordinalq._utils.validation import Floats, Index, Mask
from ordinalq.inference.bounds import Bounds
from ordinalq.inference.design import DesignBased, LabelMoments, design_based
from ordinalq.inference.estimates import Estimates
from ordinalq.inference.fit_test import GOOD, UNTESTED
from ordinalq.inference.model import FittedQuantifier
from ordinalq.inference.options import Plan
from ordinalq.samples.summary import Summary

# Labels from which on an estimate by them alone is worth having: the share of fewer scatters by .15 and more.
FEWEST = 10


def with_labels(quantifier: FittedQuantifier, summary: Summary, estimates: Estimates, plan: Plan) -> Estimates:
    """Return the estimates of summarized samples with the labels of some of their items, and what each rests on.

    A method with a model of groups has used the labels already. Else, or where the plan says so, or where it is left
    open and the sample is unlike the training groups, estimates and intervals of samples with at least ten labels are
    those of `design_based`; the others stay as they are.
    """
    m = summary.n_labelled
    if m is None:
        if plan.basis == "labels":
            raise ValueError("basis='labels' needs labels of some items: give labelled=[...], or leave basis out.")
        return estimates
    by_labels = enough(m, summary.n_items) & by_labels_alone(quantifier, estimates, plan)
    basis = np.where(by_labels, "labels", "model")
    estimates = replace(estimates, n_labelled=m, basis=basis)
    if not by_labels.any():
        return estimates
    rows = np.flatnonzero(by_labels)
    found = from_labels(summary, rows, 0.95 if estimates.level is None else estimates.level, plan.of)
    changed: dict[str, Any] = {"prevalences": _replaced(estimates.prevalences, rows, found.prevalences)}
    if estimates.bounds is None:
        return replace(estimates, **changed)
    changed["covariance"] = _replaced(estimates.covariance, rows, found.covariance)
    # What labels say of a group has nothing to do with M.
    changed["shared"] = _replaced(estimates.shared, rows, 0)
    changed["own"] = _replaced(estimates.own, rows, found.covariance)
    return replace(estimates, bounds=_merged(estimates.bounds, rows, found), **changed)


def enough(n_labelled: Any, n_items: Any) -> Mask:
    """Return which samples (B,) have labels enough for an estimate by these alone."""
    return np.asarray((n_labelled >= FEWEST) | (n_labelled >= n_items))


def by_labels_alone(quantifier: FittedQuantifier, estimates: Estimates, plan: Plan) -> Mask:
    """Return which samples are to rest on their labels alone, (B,), where these are enough."""
    if plan.basis == "model" and not quantifier.uses_labels:
        raise ValueError(
            f"basis='model' needs a method with a model of groups that labels can enter, such as BLP; with "
            f"{type(quantifier).__name__} estimates from labels rest on the labels alone: basis='labels', or none."
        )
    if plan.basis == "labels" or not quantifier.uses_labels:
        return np.ones(len(estimates), dtype=bool)
    if plan.basis == "model" or estimates.fit is None:
        return np.zeros(len(estimates), dtype=bool)
    # The choice is free: a model of groups does not judge what does not fit it.
    return ~np.isin(estimates.fit, (GOOD, UNTESTED))


def from_labels(summary: Summary, rows: Index, level: float, of: str) -> DesignBased:
    """Return estimates of some samples by their labels alone."""
    # In items, so that the labels count as part of all.
    unit = summary.item_unit[rows]
    counts, eg, gg = ((summary.totals[name][rows].T * unit).T for name in ("labels", "labels eg", "labels gg"))
    return design_based(LabelMoments(counts, eg, gg, summary.mean("g")[rows], summary.sizes[rows]), level, of)


def _replaced(array: Any, rows: Index, values: Floats | int) -> Any:
    """Return a copy with other values in some rows."""
    if array is None:
        return None
    changed = array.copy()
    changed[rows] = values
    return changed


def _merged(bounds: Bounds, rows: Index, found: DesignBased) -> Bounds:
    """Return bounds with those of other estimates in some rows."""
    names = [field.name for field in fields(Bounds) if field.name not in ("level", "of")]
    arrays: dict[str, Any] = {
        name: _replaced(getattr(bounds, name), rows, getattr(found.bounds, name)) for name in names
    }
    return replace(bounds, **arrays)
