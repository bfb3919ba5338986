"""All tables of an experiment. A new one is a function in `MAKERS`; files and page take whatever these make."""

from collections.abc import Callable

from ordinalq.paper.experiments.outcome import Outcome
from ordinalq.paper.report.claims import claim_table, claims
from ordinalq.paper.report.facts import compares_classifiers
from ordinalq.paper.report.formats import Table
from ordinalq.paper.report.grids import classifier_grid_table, hyperparameter_table, selected_table
from ordinalq.paper.report.rankings import rank_table
from ordinalq.paper.report.results import ordinal_classifier_table, results_table
from ordinalq.paper.report.samples import protocols_table, samples_table


def result_tables(outcome: Outcome) -> list[Table]:
    """Return the tables of errors."""
    if compares_classifiers(outcome):
        return [ordinal_classifier_table(outcome)]
    return [results_table(outcome, measure) for measure in outcome.measures]


# In the order of the page; each gives the tables that apply to the outcome.
MAKERS: list[Callable[[Outcome], list[Table]]] = [
    result_tables,
    lambda outcome: [claim_table(outcome)] if claims(outcome) else [],
    lambda outcome: [rank_table([outcome])],
    lambda outcome: [selected_table(outcome)],
    lambda outcome: [samples_table(outcome)],
    lambda outcome: [classifier_grid_table(outcome)],
    lambda outcome: [] if compares_classifiers(outcome) else [hyperparameter_table(outcome)],
    lambda outcome: [protocols_table(outcome)],
]


def all_tables(outcome: Outcome) -> list[Table]:
    """Return every table that applies to an outcome."""
    return [table for make in MAKERS for table in make(outcome)]
