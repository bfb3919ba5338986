"""From summaries to estimates: of groups, samples, or all items as one."""

import warnings
from dataclasses import replace
from typing import Any, TypeVar

import numpy as np

from ordinalq._utils.validation import Index, check_integer, check_real
from ordinalq.inference.drift import Drift, check_selection
from ordinalq.inference.estimates import Estimates, check_names, concatenate, largest_first
from ordinalq.inference.labels import check_inclusion_sums, with_labels
from ordinalq.inference.model import FittedQuantifier, NoTrainingGroupsWarning, learned_groups, values_of
from ordinalq.inference.nested import groups_of_parts
from ordinalq.inference.options import IntervalOptions, check_level
from ordinalq.inference.provenance import provenance_of
from ordinalq.samples.keys import Column, Keys
from ordinalq.samples.samples import Samples, as_samples
from ordinalq.samples.summary import Summary, blocks
from ordinalq.solvers.solution import warn_of_failed

Q = TypeVar("Q", bound=FittedQuantifier)


def estimate(
    quantifier: FittedQuantifier,
    summary: Summary,
    level: float | None = None,
    options: IntervalOptions | None = None,
    drift: Any = "auto",
) -> Estimates:
    """Estimate class distributions of summarized samples, with intervals.

    `options` None stands for ``IntervalOptions()``. `drift` is the common offset of groups, see :func:`drift_of`.

    >>> import numpy as np, ordinalq as oq
    >>> S = np.array([[0.7, 0.2, 0.1], [0.2, 0.6, 0.2], [0.1, 0.2, 0.7]])
    >>> q = oq.PACC().fit_scores(S, [1, 2, 3])
    >>> summary = q.summarize(S, oq.Samples.from_groups(["pen", "ink", "pen"]))
    >>> estimate(q, summary).frame()[["group", "n_items", "mean_class"]]
      group  n_items  mean_class
    0   ink        1         2.0
    1   pen        2         2.0
    """
    level = None if level is None else check_level(level)
    if not (options is None or isinstance(options, IntervalOptions)):
        raise TypeError(
            f"options must be IntervalOptions, got {options!r}. Pass IntervalOptions(estimand='population')."
        )
    _check_summary(quantifier, summary)
    check_names(quantifier.classes_, [] if summary.keys is None else summary.keys.names)
    check_inclusion_sums(summary, stacklevel=3)
    options = IntervalOptions() if options is None else options
    context = drift_of(quantifier, summary, drift)
    nested = groups_of_parts(summary.keys, getattr(quantifier, "group_columns_", ()))
    groups = None if nested is None else nested[1]
    parts = blocks(summary.n_items, of_items=not quantifier.traits.uses_sample_means, groups=groups)
    if len(parts) == 1:
        found = [estimate_block(quantifier, summary, level, options, 0, context)]
    else:
        options = options.repeatable()
        found = [estimate_block(quantifier, summary[rows], level, options, b, context) for b, rows in enumerate(parts)]
    warn_of_failed(sum(failed for _, failed in found), len(summary))
    return concatenate([estimates for estimates, _ in found], summary.keys)


def estimate_some(
    quantifier: FittedQuantifier,
    summary: Summary,
    some: Summary,
    rows: Index,
    level: float | None = None,
    options: IntervalOptions | None = None,
    drift: Any = "auto",
) -> Estimates:
    """Estimate some of the summarized samples.

    If the samples are parts of groups, all parts determine the effect of a group, also those that are left out.

    Parameters
    ----------
    quantifier : FittedQuantifier
        The quantifier that made the summary.
    summary : Summary
        All samples.
    some : Summary
        The samples to estimate.
    rows : ndarray (k,)
        Position of each of them among all samples; -1, at the end, if it consists of several.
    level, options, drift
        See :func:`estimate`.

    Returns
    -------
    Estimates
    """
    if groups_of_parts(summary.keys, getattr(quantifier, "group_columns_", ())) is None:
        return estimate(quantifier, some, level, options, drift)
    found = [estimate(quantifier, summary, level, options, drift).take(rows[rows >= 0])]
    if (rows < 0).any():
        found.append(estimate(quantifier, some, level, options, drift).take(rows < 0))
    return concatenate([part for part in found if len(part)], some.keys)


def estimate_block(
    quantifier: FittedQuantifier,
    summary: Summary,
    level: float | None,
    options: IntervalOptions,
    block: int,
    context: Any = None,
) -> tuple[Estimates, int]:
    """Return the estimates of a block of samples, and the number not converged.

    Whoever estimates the numbered blocks of a summary one by one, here or elsewhere, gets what :func:`estimate` gives;
    see :func:`ordinalq.samples.summary.blocks`. `context` is the common offset of all of them, see :func:`drift_of`.
    """
    # Methods that collect nothing do not need a context.
    more = {} if context is None else {"context": context}
    found = quantifier.infer(summary, options, level, block, **more)
    estimates = Estimates(
        quantifier.classes_,
        found.prevalences,
        summary.n_items,
        summary.keys,
        fit=found.verdict,
        n_effective=summary.sizes if summary.has_weights else None,
        bounds=found.bounds,
        covariance=found.covariance,
        own=found.own,
        shared=found.shared,
        class_values=getattr(quantifier, "class_values_", None),
        origin=provenance_of(quantifier, options.estimand, level, keys=summary.keys),
        region_centre=None if found.ellipsoids is None else found.ellipsoids.centre,
        region_covariance=None if found.ellipsoids is None else found.ellipsoids.covariance,
        # Users pass it to calls with other tables.
        drift=None if context is None else replace(context, is_earlier=True),
        has_earlier_drift=context is not None and context.is_earlier,
        linear=found.linear,
        sampling=found.sampling,
        response=found.response,
        group_columns=getattr(quantifier, "group_columns_", ()),
        moved=found.moved,
    )
    return with_labels(quantifier, summary, estimates, options), int((~found.converged).sum())


def drift_of(quantifier: FittedQuantifier, summary: Summary, drift: Any = "auto") -> Drift | None:
    """Return the common offset of all samples from the training groups, or None.

    Parameters
    ----------
    quantifier : FittedQuantifier
        The quantifier that made the summary.
    summary : Summary
        All samples.
    drift : "auto", None, float or Drift, default="auto"
        "auto" estimates the offset of groups if there are at least ten of them or any labels, a number states its
        strength, a Drift is returned as it is.
    """
    if not is_wanted(quantifier, drift):
        return None
    if isinstance(drift, Drift):
        return drift
    if summary.keys is None and summary.n_labelled is None:
        # Samples of a pool are not groups.
        return None
    return resolve_drift(quantifier, quantifier.collect(summary), drift)


def is_wanted(quantifier: FittedQuantifier, drift: Any) -> bool:
    """Return whether a common offset is found or given; raise if impossible."""
    if drift is None or (isinstance(drift, str) and drift == "auto"):
        return drift is not None and quantifier.traits.has_group_model
    if not isinstance(drift, Drift):
        if isinstance(drift, bool) or not isinstance(drift, int | float | np.number):
            raise TypeError(f"drift must be 'auto', None, a number or a Drift, got {drift!r}.")
        check_real("drift", drift, low=0)
    if not quantifier.traits.has_group_model:
        raise ValueError(
            f"drift must be 'auto' or None for {type(quantifier).__name__}, which has no model of groups. Use GroupBLP."
        )
    if not learned_groups(quantifier):
        raise ValueError("drift must be 'auto' or None for a model without training groups. Pass groups to fit.")
    return True


def resolve_drift(quantifier: FittedQuantifier, sums: Any, drift: Any) -> Drift | None:
    """Return the common offset from sums over all samples; warn about labels."""
    if sums is None:
        return None
    found: Drift | None = quantifier.find_drift(sums, None if isinstance(drift, str) else float(drift))
    if found is not None:
        check_selection(found, stacklevel=4)
    return found


def _check_summary(quantifier: FittedQuantifier, summary: Summary) -> None:
    """Raise an error for a summary that was made by a quantifier of another kind."""
    if not isinstance(summary, Summary):
        raise TypeError(f"summary must be a Summary, as the quantifier's summarize makes it, got {summary!r:.60}.")
    if quantifier.traits.uses_sample_means == bool(summary.items) or quantifier.traits.uses_sample_means != (
        "f" in summary.totals
    ):
        raise ValueError(
            f"the summary was not made by this {type(quantifier).__name__}, which needs "
            f"{'sums' if quantifier.traits.uses_sample_means else 'the scores of all items'}: use its own summarize."
        )


def group_quantifier(quantifier: Q, stacklevel: int = 3) -> Q:
    """Return the quantifier for groups, and warn if it was fitted without groups."""
    found: Q = quantifier.for_groups()
    if not learned_groups(found):
        effect = getattr(found, "group_effect", None)
        assumed = (
            "items of a class are assumed to have the same features in every group, and intervals can be too narrow"
            if effect is None
            else f"a group effect of {effect:g} is assumed"
        )
        warnings.warn(
            f"The model was fitted without groups, so {assumed}. Pass groups to fit to learn how groups differ.",
            NoTrainingGroupsWarning,
            stacklevel=stacklevel,
        )
    return found


def group_samples(groups: Any, n_items: int) -> Samples:
    """Return the samples of `groups`: one value per item, Samples, or None."""
    if groups is None:
        return Samples.whole(n_items)
    if isinstance(groups, Samples):
        return as_samples(groups, n_items)
    samples = Samples.from_groups(groups)
    if samples.n_items != n_items:
        raise ValueError(f"groups must have one value per item, {n_items}, got {samples.n_items}.")
    return samples


# Selection of groups; all others are one group.


# The key of all groups that are not shown by themselves.
OTHER = "(other)"
# Items of a group from which it is ranked by its mean.
MIN_RANKED = 10


def select(
    quantifier: FittedQuantifier,
    summary: Summary,
    sort: Any = None,
    top: int | None = None,
    min_items: int | None = None,
    drift: Drift | None = None,
) -> tuple[Summary, Index]:
    """Return the largest groups in order, and all others as one last group.

    The positions (k,) of these groups among all groups are returned, too; -1 for the others.

    The row of the others is a separate estimate from all their items. If there is such a group, the keys are
    text, since its own, "(other)", is.

    Groups with most "items", the highest "mean" class or the largest share of a class come first, depending on `sort`;
    None keeps the order, but stands for "items" where only the `top` are wanted. Groups with fewer than `min_items` are
    among the others. `drift` is the common offset of all groups.
    """
    if summary.keys is None:
        raise ValueError("sort, top and min_items need a summary of groups.")
    sort = "items" if sort is None and top is not None else sort
    order = np.arange(len(summary))
    if sort is not None:
        P = estimate(quantifier, summary, drift=drift).prevalences
        order = largest_first(sort, quantifier.classes_, summary.n_items, P, values_of(quantifier))
    if min_items is not None:
        order = order[summary.n_items[order] >= check_integer("min_items", min_items, minimum=1)]
    if top is not None:
        order = order[: check_integer("top", top, minimum=1)]
    keys = summary.keys[order]
    rows = np.full(len(summary), -1 if len(order) == len(summary) else len(order), dtype=np.intp)
    rows[order] = np.arange(len(order))
    if len(order) == len(summary):
        return summary.regrouped(rows, keys), order
    return summary.regrouped(rows, _with_others(keys)), np.append(order, -1)


def _with_others(keys: Keys) -> Keys:
    """Return the keys as text, and one more for the others."""
    import pandas as pd

    if OTHER in keys.labels():
        raise ValueError(
            f"{OTHER!r} must not be the name of a group: it is used for all others together. Rename the group."
        )
    columns: list[Column] = []
    for column in keys.columns:
        pairs = zip(column.tolist(), column.labels(), strict=True)
        words = [None if value is None else label for value, label in pairs]
        # The first column has the name.
        last = "" if columns else OTHER
        columns.append(Column(pd.Index([*words, last], dtype=object), column.name))
    return Keys(columns)
