"""Errors of a model on samples or groups of a labelled table."""

import logging
import warnings
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd
from scipy.special import stdtr

from ordinalq._utils.progress import iterate_steps, report_step
from ordinalq._utils.text import join_names
from ordinalq._utils.validation import Array, Codes, Floats, Index, check_choice, check_integer
from ordinalq.inference.bounds import mean_class
from ordinalq.inference.estimates import Estimates
from ordinalq.inference.model import has_held_out, values_of
from ordinalq.inference.options import IntervalOptions
from ordinalq.inference.predict import estimate
from ordinalq.inference.provenance import fitted_model
from ordinalq.io import columns as cells
from ordinalq.io.table import Table
from ordinalq.metrics import errors, mean_and_std
from ordinalq.model_selection.compare import MethodComparison, check_methods
from ordinalq.protocols import APP, APPOQ, NPP
from ordinalq.quantifiers.base import Quantifier
from ordinalq.samples.labels import encode_labels
from ordinalq.samples.samples import Samples
from ordinalq.samples.weights import Weights, in_usual_unit
from ordinalq.tables.grouping import (
    By,
    Grouping,
    check_by,
    labelled_rows,
    merge_samples_by_spelling,
    names_of,
    parsed_classes,
)
from ordinalq.tables.inner import fitted_quantifier, model_for
from ordinalq.tables.model import TableModel, needed_columns, scores_of, warn_of_unread, warn_of_weights

# Errors of estimates next to the truth of samples, and what they say of a model.


MEASURES = ("nmd", "rnod", "mean_class")
NOTHING_CHANGED = "training prevalences"
# What the verdict calls them.
WORDS = {
    "CC": "counting predictions",
    "PCC": "averaging scores",
    NOTHING_CHANGED: "assuming that nothing changed",
}
# A difference counts where it would be seen by chance in fewer cases.
SIGNIFICANT = 0.05
# A difference of this part of the other's error is large; if it is not significant there are too few groups.
LARGE = 0.1
UNCERTAIN = "not shown to be better"
ROUNDING = 1e-9


def error_table(estimates: Mapping[str, Floats], samples: Samples, values: Floats) -> pd.DataFrame:
    """Return means and standard deviations of the errors of several estimates.

    Estimates have shape (B, n). There is one row for each. The mean class is computed over `values` (n,), the values of
    the classes.
    """
    rows = []
    for name, P in estimates.items():
        row: dict[str, Any] = {"estimate": name}
        for measure in MEASURES:
            row[measure], row[f"{measure}_std"] = mean_and_std(sample_errors(P, samples, measure, values))
        rows.append(row)
    return pd.DataFrame(rows)


def group_error_table(estimates: Mapping[str, Floats], samples: Samples, found: Estimates) -> pd.DataFrame:
    """Return the errors of several estimates of groups, and a verdict.

    The first estimate is that of the model, with intervals.
    """
    values = found.scale.numbers
    table = error_table(estimates, samples, values)
    for measure in ("nmd", "mean_class"):
        by_estimate = [sample_errors(P, samples, measure, values) for P in estimates.values()]
        table[f"{measure}_by_items"] = [np.average(e, weights=found.n_items) for e in by_estimate]
    table.loc[0, ["covered", "mean_class_covered", "width"]] = _covered(found, samples)
    model, *others = estimates
    e = {name: sample_errors(P, samples, "nmd", values) for name, P in estimates.items()}
    compared = [compared_with(name, e[model] - e[name], float(e[name].mean())) for name in others]
    table.attrs |= {
        "level": found.level,
        "mean_name": found.scale.name,
        "steps_of_one": bool((np.abs(np.diff(values)) == 1).all()),
        "n_single": int((found.n_items == 1).sum()),
        "n_items": int(found.n_items.sum()),
        "comparisons": compared,
        "verdict": verdict(compared, len(samples)),
    }
    return table


def sample_errors(P: Floats, samples: Samples, measure: str, values: Floats) -> Floats:
    """Return the error of each estimate (B, n), shape (B,).

    The measure "mean_class" is the error of the mean over `values` (n,).
    """
    assert samples.prevalences is not None
    if measure != "mean_class":
        return errors(samples.prevalences, P, measure)
    return np.abs(mean_class(P - samples.prevalences, values))


def _covered(found: Estimates, samples: Samples) -> tuple[float, float, float]:
    """Return the coverage of classes and mean classes, and the mean width.

    The width is that of the intervals of the classes.
    """
    truth, bounds = samples.prevalences, found.bounds
    assert truth is not None
    assert bounds is not None
    mean = mean_class(truth, bounds.values)
    classes = (bounds.lower <= truth + ROUNDING) & (truth <= bounds.upper + ROUNDING)
    means = (bounds.mean_lower <= mean + ROUNDING) & (mean <= bounds.mean_upper + ROUNDING)
    return float(classes.mean()), float(means.mean()), float((bounds.upper - bounds.lower).mean())


def compared_with(name: str, difference: Floats, other: float = np.inf) -> dict[str, Any]:
    """Return a paired t-test of the differences (B,) of errors.

    The differences are the model's errors minus the other's. `other` is the mean error of the other. A difference of a
    tenth of it that is not significant is called uncertain.
    """
    B, mean = len(difference), float(difference.mean())
    error = float(difference.std(ddof=1) / np.sqrt(B)) if B > 1 else np.nan
    p_value = np.nan
    if B > 1:
        p_value = float(2 * stdtr(B - 1, -abs(mean) / error)) if error > 0 else float(mean == 0)
    said = "no better" if not p_value < SIGNIFICANT else "better" if mean < 0 else "worse"
    if said == "no better" and mean < -LARGE * other:
        said = UNCERTAIN
    return {"other": name, "difference": mean, "standard_error": error, "p_value": p_value, "said": said}


def verdict(compared: Sequence[Mapping[str, Any]], n_groups: int) -> str:
    """Return what comparisons say of the model, in one sentence.

    >>> verdict([{"other": "CC", "said": "better"}, {"other": "training prevalences", "said": "no better"}], 9)
    'On your 9 groups this model is better than counting predictions, but no better than assuming that nothing changed.'
    """
    if n_groups < 2:
        return "A single group does not tell whether this model is better than assuming that nothing changed."
    by_word = {
        word: [WORDS.get(one["other"], one["other"]) for one in compared if one["said"] == word]
        for word in ("better", UNCERTAIN, "no better", "worse")
    }
    parts = [f"{word} than {join_names(names)}" for word, names in by_word.items() if names]
    word = ", but " if by_word["better"] else ", and "
    joined = parts[0] if len(parts) == 1 else f"{', '.join(parts[:-1])}{word}{parts[-1]}"
    few = f" Its error is smaller, but {n_groups:,} groups are too few." if by_word[UNCERTAIN] else ""
    return f"On your {n_groups:,} groups this model is {joined}.{few}"


logger = logging.getLogger("ordinalq")


def evaluate_table(
    model: Any,
    file: Table,
    protocol: str = "app",
    *,
    by: By | None = None,
    level: float = 0.95,
    random_state: int = 0,
    **how: Any,
) -> pd.DataFrame:
    """Measure the errors of a model and simple estimates on a labelled table.

    The samples are those of :func:`scored_samples`. There is one row per estimate: name, mean and standard deviation of
    NMD, of RNOD and of the error of the mean class over the samples. With groups, the means over items are included
    (``nmd_by_items``, ``mean_class_by_items``). For the model, coverage and width of its intervals at the level are
    included (``covered``, ``mean_class_covered``, ``width``). ``attrs`` contains n_samples and n_items. With groups it
    contains n_single, the number of groups of one item, paired ``comparisons`` with the others, and the ``verdict`` in
    one sentence.
    """
    model = model_for(model, by)
    quantifier = fitted_quantifier(model)
    S, samples = scored_samples(model, file, protocol, by=by, random_state=random_state, **how)
    if by is None:
        table = error_table(_estimates(quantifier, S, samples), samples, values_of(quantifier))
        table.attrs["n_items"] = len(S)
    else:
        summary = quantifier.summarize(S, samples)
        found = estimate(quantifier, summary, level, IntervalOptions(random_state=random_state))
        table = group_error_table(_estimates(quantifier, S, samples, found.prevalences), samples, found)
    table.attrs["n_samples"] = len(samples)
    return table


def compare_table(
    model: Any, file: Table, methods: Sequence[str], protocol: str = "app", *, measure: str = "nmd", **how: Any
) -> MethodComparison:
    """Compare the model's method with others on the scores of the model.

    The classifier is not fitted again. The methods have names in the catalog, and learn from the scores that the model
    stores of its training items. Everything else is as in :func:`evaluate_table`.
    """
    model = model_for(model, how.get("by"))
    quantifier = fitted_quantifier(model)
    if quantifier.traits.input_kind != "scores" or not has_held_out(quantifier):
        raise ValueError(f"methods need the scores of a classifier, which {type(quantifier).__name__} does not have.")
    others = check_methods(methods)
    for name, method in others.items():
        if method.traits.input_kind == "features" or not method.traits.accepts_scores:
            why = "needs the columns themselves" if method.traits.input_kind == "features" else "fits its own models"
            raise ValueError(f"methods must share the scores of the model, but {name} {why}: fit a model with it.")
    V = quantifier.held_out_
    S, samples = scored_samples(model, file, protocol, **how)
    found = {type(fitted_model(quantifier)).__name__: quantifier.predict_scores(S, samples)}
    for name, method in iterate_steps("method", list(others.items())):
        if name not in found:
            method.fit_scores(V.S, V.codes, classes=np.arange(len(quantifier.classes_)))
            found[name] = method.predict_scores(S, samples)
    kind = "samples" if how.get("by") is None else "groups"
    by_name = {name: errors(samples.prevalences, P, measure) for name, P in found.items()}
    return MethodComparison(measure, by_name, len(quantifier.classes_), f"{len(samples):,} {kind}")


def scored_samples(
    model: Any,
    file: Table,
    protocol: str = "app",
    *,
    by: By | None = None,
    target: str | None = None,
    n_samples: int = 1000,
    sample_size: int = 100,
    skip_unlabelled: bool = False,
    weight: str | None = None,
    weight_type: str = "survey",
    tidy_groups: bool = False,
    random_state: int = 0,
) -> tuple[Floats, Samples]:
    """Return scores (N, n) of the labelled rows of a table, and samples of them.

    The samples have prevalences. The table must not contain items that the model was fitted on. `target` is the column
    of the labels. None is the column of the training table. Without `by`, samples are drawn: "app": distributions drawn
    uniformly; "app-oq:0.2": the smoothest fifth of them; "npp": rows drawn at random. If a class has fewer items than a
    sample needs, they are repeated, which is logged. With `by`, the groups of these columns, or periods such as
    "date:month", are the samples, and the column `weight` has weights of the rows of the type `weight_type`. With
    `tidy_groups`, groups whose names differ only in case and blanks are merged. Rows without a label are an error, or
    skipped.
    """
    target = target or (model.target_ if isinstance(model, TableModel) else None)
    if by is None and (weight is not None or tidy_groups):
        given = "tidy_groups" if weight is None else "weight"
        raise ValueError(f"{given} needs groups. Pass by=COLUMNS.")
    if by is not None:
        warn_of_weights(model, weight)
    elif (known := getattr(model, "weight_", None)) is not None:
        warnings.warn(
            f"the model was fitted with the weights {known!r}, but samples are drawn and estimated without weights.",
            UserWarning,
            stacklevel=4,
        )
    if target is None:
        raise ValueError("target must name the column of the labels: the model does not know it.")
    check_by(names_of(by), target)
    kind, _, argument = protocol.partition(":")
    check_choice("protocol", kind, ("app", "app-oq", "npp"))
    report_step("", 0, 10, 3)
    others = [*names_of(by), *([] if weight is None else [weight])]
    frame, classes, codes = _labelled(model, file, target, others, skip_unlabelled)
    if by is None:
        samples = _drawn(kind, argument, codes, classes, n_samples, sample_size, random_state)
    else:
        groups = merge_samples_by_spelling(Grouping(by, file.format).samples(frame), tidy_groups)
        w = None if weight is None else cells.weights(frame, weight)
        samples = groups.weighted(in_usual_unit(Weights.of(w, weight_type, len(frame)))[0])
        samples.prevalences = samples.average(np.eye(len(classes))[codes])
    _warn_of_training_items(fitted_quantifier(model), codes, file.name)
    report_step("scores of the rows", 3, 10, 4)
    S, n_unread = scores_of(model, frame)
    warn_of_unread(model, n_unread, len(S))
    report_step("estimates", 7, 10, 3)
    return S, samples


def _labelled(
    model: Any, file: Table, target: str, others: Sequence[str], skip_unlabelled: bool
) -> tuple[pd.DataFrame, Array, Index]:
    """Return the labelled rows of a table, the ordered classes, and the codes."""
    quantifier, needed = fitted_quantifier(model), list(needed_columns(model))
    columns = list(dict.fromkeys([*needed, target, *others]))
    file.require(needed, columns)
    names = [str(label) for label in quantifier.classes_.tolist()]
    frame, y, *_ = labelled_rows(file.read(columns), target, names, skip_unlabelled)
    classes, codes = encode_labels(y, parsed_classes(quantifier.classes_, y), name=target)
    return frame, classes, codes


def _warn_of_training_items(quantifier: Quantifier, codes: Codes, table: str) -> None:
    """Warn of labels that are those of the training items, in their order."""
    if has_held_out(quantifier) and np.array_equal(quantifier.held_out_.codes, codes):
        warnings.warn(
            f"{table} seems to be the table that the model was fitted on: errors on new items will be larger.",
            UserWarning,
            stacklevel=4,
        )


def _estimates(quantifier: Quantifier, S: Floats, samples: Samples, found: Floats | None = None) -> dict[str, Floats]:
    """Return the estimates of the model (B, n) and simple ones for comparison.

    The model's estimates are computed unless they are given.
    """
    name = type(fitted_model(quantifier)).__name__
    estimates = {name: quantifier.predict_scores(S, samples) if found is None else found}
    if quantifier.traits.input_kind == "scores":
        estimates.setdefault("CC", samples.average(np.eye(S.shape[1])[S.argmax(axis=1)]))
        estimates.setdefault("PCC", samples.average(S))
    return estimates | {NOTHING_CHANGED: np.tile(quantifier.p_train_, (len(samples), 1))}


def _drawn(
    kind: str,
    argument: str,
    codes: Codes,
    classes: Array,
    n_samples: int,
    sample_size: int,
    random_state: int,
) -> Samples:
    """Draw samples of items with codes (N,) by a protocol."""
    check_integer("n_samples", n_samples, minimum=1)
    check_integer("sample_size", sample_size, minimum=1)
    counts = np.bincount(codes, minlength=len(classes))
    if kind != "npp" and (counts == 0).any():
        raise ValueError(
            f"the labelled table must have items of every class for samples of all distributions, but has none of "
            f"{classes[counts.argmin()]}; use protocol='npp', or groups with by=COLUMNS."
        )
    if kind != "npp" and counts.min() < sample_size:
        logger.info("class %s has only %d items, which repeat in samples", classes[counts.argmin()], counts.min())
    options: dict[str, Any] = {"small_pool": "repeat", "random_state": random_state}
    if kind != "app-oq":
        chosen: Any = (APP if kind == "app" else NPP)(n_samples, sample_size, **options)
    else:
        try:
            fraction = float(argument)
        except ValueError as error:
            raise ValueError(f"protocol must be app-oq:FRACTION, such as app-oq:0.2, got {argument!r}.") from error
        chosen = APPOQ(fraction, n_samples, sample_size, **options)
    drawn: Samples = chosen.draw(codes, classes=np.arange(len(classes)))
    return drawn
