"""Values of an outcome for tables, figures and the report.

These are names, errors, selected configurations and failures.
"""

import json
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import numpy as np

from ordinalq._utils.validation import Floats
from ordinalq.datasets import published
from ordinalq.metrics import mean_and_std, p_against_best
from ordinalq.paper.experiments.config import split_pair
from ordinalq.paper.experiments.outcome import Outcome, rows_of
from ordinalq.paper.report.formats import short
from ordinalq.quantifiers.catalog import BEYOND, known_methods

LEVEL = 0.01
BOLD = (
    "Bold: not significantly worse than the best mean of the column (Wilcoxon signed-rank test, "
    f"p >= {short(LEVEL, 2)}, no correction)."
)
BEYOND_NOTE = "Methods beyond the paper are compared with the best mean of the others."
QUICK = "Profile quick: fewer samples and a smaller classifier grid than the paper's; ratios to it say little."
KEYS = ["method", "protocol", "measure"]


def display_name(method: str) -> str:
    """Return the paper's name of a method; other names stay.

    >>> display_name("OPACC"), display_name("LR-CC")
    ('o-PACC', 'LR-CC')
    """
    entry = known_methods().get(method)
    return (entry.paper_name if entry else "") or method


def group_of(method: str) -> str:
    """Return the group of a method.

    It is the group in the catalog, or the classifier of "CLASSIFIER-QUANTIFIER".

    >>> group_of("OPACC"), group_of("OLR-AT-CC"), group_of("MyMethod")
    ('new ordinal', 'OLR-AT', 'beyond the paper')
    """
    entry = known_methods().get(method)
    return entry.group if entry else split_pair(method)[0] or BEYOND


def data_name(outcome: Outcome) -> str:
    """Return the name of the data set."""
    return str(outcome.about["data"]["name"])


# Data set of the published comparison of classifiers.
CLASSIFIER_DATA = "Amazon-OQ-BK"


def compares_classifiers(outcome: Outcome) -> bool:
    """Whether methods are pairs of a classifier and a quantifier."""
    return bool(outcome.about["experiment"]["kind"] == "classifiers")


def results(outcome: Outcome, protocol: str, measure: str) -> dict[str, Floats]:
    """Return the errors (B,) of the methods that have one for every test sample."""
    errors = outcome.errors(protocol, measure)
    longest = max((len(column) for column in errors.values()), default=0)
    return {name: column for name, column in errors.items() if len(column) == longest and np.isfinite(column).all()}


def published_cells(outcome: Outcome, protocol: str, measure: str) -> dict[str, dict[str, Any]]:
    """Return the published mean, std and boldface of each method.

    They are for the data set of the run. Methods without published values are left out.
    """
    cells: dict[str, Any] = {}
    data = outcome.about["experiment"].get("paper")
    if not compares_classifiers(outcome):
        table = published.results()
        for method in outcome.methods:
            cells[method] = table.get(display_name(method), {}).get(data, {}).get(protocol, {}).get(measure.upper())
    elif (data, protocol, measure) == (CLASSIFIER_DATA, "APP", "nmd"):
        table = published.ordinal_classifiers()
        for method in outcome.methods:
            classifier, quantifier = split_pair(method)
            cells[method] = table.get(classifier, {}).get(quantifier)
    return {method: cell for method, cell in cells.items() if cell}


def best_of(errors: Mapping[str, Floats], methods: Iterable[str] | None = None) -> str:
    """Return the method of the smallest mean error.

    Only `methods` are considered if they are given.
    """
    return min(errors if methods is None else methods, key=lambda method: float(np.mean(errors[method])))


def competing(methods: Iterable[str]) -> list[str]:
    """Return the methods that compete for the best.

    These are the methods of the paper, or all methods if none is from the paper.
    """
    methods = list(methods)
    return [method for method in methods if group_of(method) != BEYOND] or methods


def p_values(errors: Mapping[str, Floats]) -> dict[str, float]:
    """Return the p-value of each method against the best competing method.

    The p-value is 1 for the best method, and for methods with a smaller error.
    """
    if not errors:
        return {}
    inside = competing(errors)
    found = p_against_best({method: errors[method] for method in inside})
    best = best_of(errors, inside)
    for method in errors.keys() - found.keys():
        found[method] = p_against_best({best: errors[best], method: errors[method]})[method]
    return {method: found[method] for method in errors}


def bold_notes(outcomes: Iterable[Outcome]) -> list[str]:
    """State what bold means."""
    methods = {method for outcome in outcomes for method in outcome.methods}
    return [BOLD] if set(competing(methods)) == methods else [BOLD, BEYOND_NOTE]


def cell_facts(outcome: Outcome, protocol: str, measure: str, methods: Iterable[str]) -> Iterator[dict[str, Any]]:
    """Yield all values for the cell of each method in a column.

    The methods of a column are compared with each other. The standard deviation has the divisor B - 1. Values that are
    not available, such as that of a single error, are NaN or empty.
    """
    methods = list(methods)
    errors = {method: found for method, found in results(outcome, protocol, measure).items() if method in methods}
    against_best, cells, counts = p_values(errors), published_cells(outcome, protocol, measure), unconverged(outcome)
    for method in methods:
        column, paper = errors.get(method), cells.get(method, {})
        mean, std = (np.nan, np.nan) if column is None else mean_and_std(column)
        chosen = selected(outcome, method, protocol, measure)
        yield {
            "method": method,
            "protocol": protocol,
            "measure": measure,
            "mean": mean,
            "std": std,
            "n_samples": 0 if column is None else len(column),
            "p_value": against_best.get(method, np.nan),
            "bold": against_best.get(method, 0.0) >= LEVEL,
            "paper_mean": paper.get("mean", np.nan),
            "paper_std": paper.get("std", np.nan),
            "paper_bold": paper.get("bold"),
            "ratio": mean / paper["mean"] if paper else np.nan,
            "classifier": chosen["classifier"],
            "parameters": chosen["parameters"],
            "unconverged": counts.get((method, protocol, measure), 0),
        }


def selected(outcome: Outcome, method: str, protocol: str, measure: str) -> dict[str, Any]:
    """Return the row of the selected configuration, with its JSON on one line.

    The result is empty if all configurations failed.
    """
    rows = rows_of(outcome.selected, method, protocol, measure)
    if rows.empty:
        return {"classifier": "", "parameters": ""}
    row = {str(key): value for key, value in rows.iloc[0].items()}
    return row | {key: json.dumps(parsed(row[key])) if row[key] else "" for key in ("classifier", "parameters")}


def unconverged(outcome: Outcome) -> dict[tuple[str, str, str], int]:
    """Return the number of test samples that did not converge.

    The keys are (method, protocol, measure). Numbers of zero are left out.
    """
    rows = outcome.estimates[~outcome.estimates["converged"].astype(bool)]
    return {key: int(count) for key, count in rows.groupby(KEYS).size().items()}  # type: ignore[misc]


def parsed(text: Any) -> dict[str, Any]:
    """Read the parameters of a configuration from their JSON."""
    found = json.loads(text) if isinstance(text, str) and text else {}
    return found if isinstance(found, dict) else {}


# Sentences


def sample_counts(outcome: Outcome) -> str:
    """State how many test samples each protocol has."""
    return ", ".join(f"{len(outcome.true_distributions(protocol))} ({protocol})" for protocol in outcome.protocols)


def failures(outcome: Outcome) -> list[str]:
    """State which methods failed, in how many configurations, and with what message."""
    lines = []
    for method in outcome.methods:
        rows = outcome.validation[outcome.validation["method"] == method]
        bad = rows[~np.isfinite(rows["error"].astype(float))]
        if len(bad):
            said = next((str(message) for message in bad["message"] if message and isinstance(message, str)), "")
            total, count = (len(part[["classifier", "parameters"]].drop_duplicates()) for part in (rows, bad))
            told = f": {said}" if said else ""
            lines.append(f"{display_name(method)} failed in {count} of {total} configurations{told}")
    return lines


def missing_notes(outcome: Outcome, measures: Iterable[str], *, absent: bool = True) -> list[str]:
    """State which cells are empty, and how many samples did not converge."""
    columns = [(protocol, measure) for measure in measures for protocol in outcome.protocols]
    found = [results(outcome, protocol, measure) for protocol, measure in columns]
    empty = [display_name(method) for method in outcome.methods if any(method not in column for column in found)]
    counts = unconverged(outcome)
    unfinished = [
        f"{display_name(method)} {counts[method, protocol, measure]} ({measure.upper()}, {protocol})"
        for method in outcome.methods
        for protocol, measure in columns
        if (method, protocol, measure) in counts
    ]
    notes = []
    if empty and absent:
        notes.append(f"A dash: the method failed, or has no result for every test sample: {', '.join(empty)}.")
    if unfinished:
        notes.append(
            "Test samples whose minimization did not converge; their estimates count all the same: "
            f"{', '.join(unfinished)}."
        )
    return notes
