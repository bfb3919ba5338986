"""The tables of errors: of the methods, on one data set or on several, and of classifiers in quantifiers."""

from collections.abc import Sequence
from itertools import chain, product

import numpy as np
import pandas as pd

from ordinalq.paper.experiments.outcome import Outcome
from ordinalq.paper.experiments.pairs import split_pair
from ordinalq.paper.report.claims import percent_change
from ordinalq.paper.report.facts import (
    BOLD,
    QUICK,
    bold_notes,
    cell_facts,
    data_name,
    display_name,
    group_of,
    missing_notes,
    sample_counts,
)
from ordinalq.paper.report.formats import Table, short
from ordinalq.paper.report.tables import Show, known, lay_out, mean_and_std, number, words

# Which versions of the quantifiers the table of classifiers has, by the settings.
QUANTIFIERS_OF = {
    "reference": "CC to SLD as in the program behind the printed table: without cross-fitting, M from 40 % of the "
    "training items and inverted, SLD until it is stable. Settings paper have those of the paper's own sections.",
    "paper": "CC to SLD as in the paper's own sections, with a classifier in ten folds. Settings reference have those "
    "of the program behind the printed table.",
}
# Ratios to the printed mean outside of this range are more than the luck of a split is likely to make.
FAR = (0.8, 1.25)
PRINTED = mean_and_std("paper", "paper_", needs="paper_mean")
OURS = mean_and_std(shade="log")
METHOD = words("method", "method", display_name)
CLASSIFIER_COLUMNS = ["classifier", "quantifier", "protocol", "measure", "mean", "std", "n_samples", "p_value", "bold",
                      "percent_vs_lr", "paper_mean", "paper_bold", "classifier_parameters", "parameters",
                      "unconverged"]  # fmt: skip


def result_facts(outcome: Outcome, measure: str) -> pd.DataFrame:
    """Return one row per protocol and method, with everything that is known about the cell."""
    rows = (cell_facts(outcome, protocol, measure, outcome.methods) for protocol in outcome.protocols)
    return pd.DataFrame(chain.from_iterable(rows))


def results_table(outcome: Outcome, measure: str) -> Table:
    """Return the errors of all methods under all protocols: mean ± std, boldface, the paper's figure and the ratio."""
    facts = result_facts(outcome, measure)
    notes = [
        f"Mean and standard deviation over test samples: {sample_counts(outcome)}.",
        "Parameters were selected on validation samples of the same protocol by the same measure.",
        *bold_notes([outcome]),
    ]
    if facts["paper_mean"].notna().any():
        data = outcome.about["experiment"]["paper"]
        notes.append(f"Paper: as printed for {data}, bold as printed. Ratio: our mean over the paper's.")
        notes += _far_from_one(facts) if outcome.about["experiment"]["profile"] == "full" else [QUICK]
    columns, rows = lay_out(
        facts,
        rows=["method"],
        heads=[METHOD],
        cells=[OURS, PRINTED, Show("ratio", "ratio", number(2), needs="paper_mean")],
        across=["protocol"],
        above=lambda fact: str(fact["protocol"]),
        group=lambda fact: group_of(fact["method"]),
    )
    title = f"{measure.upper()} on {data_name(outcome)}"
    return Table(measure, title, columns, rows, facts, (*notes, *missing_notes(outcome, [measure])))


def _far_from_one(facts: pd.DataFrame) -> list[str]:
    """Name the ratios that ask for an explanation, and say where it is."""
    low, high = FAR
    far = [fact for fact in facts.to_dict("records") if known(fact["ratio"]) and not low <= fact["ratio"] <= high]
    if not far:
        return []
    named = (f"{display_name(fact['method'])} {fact['ratio']:.2f} ({fact['protocol']})" for fact in far)
    return [f"Ratios below {low:.2f} or above {high:.2f}, see the departures: {', '.join(named)}."]


def collection_table(outcomes: Sequence[Outcome], measure: str) -> Table:
    """Return the errors on several data sets side by side, with the paper's means."""
    having = [outcome for outcome in outcomes if measure in outcome.measures]
    parts = [result_facts(one, measure).assign(data=data_name(one), position=i) for i, one in enumerate(having)]
    facts = pd.concat(parts, ignore_index=True)
    columns, rows = lay_out(
        facts,
        rows=["method"],
        heads=[METHOD],
        cells=[OURS, Show("paper", "paper_mean", number(4), bold="paper_bold", needs="paper_mean")],
        across=["position", "protocol"],  # two data sets may have the same name
        above=lambda fact: f"{fact['data']}, {fact['protocol']}",
        group=lambda fact: group_of(fact["method"]),
    )
    notes = (
        "Mean and standard deviation over the test samples of each data set.",
        *bold_notes(having),
        "Paper: mean and boldface as printed.",
        *(f"{data_name(one)}: {note}" for one in outcomes for note in missing_notes(one, [measure])),
    )
    facts = facts.drop(columns="position")
    return Table(measure, f"{measure.upper()} on all data sets", columns, rows, facts, notes)


def classifier_facts(outcome: Outcome) -> pd.DataFrame:
    """Return one row per measure, protocol, quantifier and classifier."""
    pairs = [split_pair(method) for method in outcome.methods]
    classifiers, quantifiers = (list(dict.fromkeys(names)) for names in zip(*pairs, strict=True))
    rows = []
    for measure, protocol, quantifier in product(outcome.measures, outcome.protocols, quantifiers):
        column = list(cell_facts(outcome, protocol, measure, (f"{one}-{quantifier}" for one in classifiers)))
        logistic = column[classifiers.index("LR")]["mean"] if "LR" in classifiers else np.nan
        for classifier, cell in zip(classifiers, column, strict=True):
            own = {"classifier": classifier, "quantifier": quantifier, "classifier_parameters": cell["classifier"]}
            rows.append(cell | own | {"percent_vs_lr": percent_change(logistic, cell["mean"])})
    return pd.DataFrame(rows)[CLASSIFIER_COLUMNS]


def ordinal_classifier_table(outcome: Outcome) -> Table:
    """Return classifiers (rows) by quantifiers (columns): mean ± std, percent versus LR, and the paper's figure."""
    facts = classifier_facts(outcome)
    columns, rows = lay_out(
        facts,
        rows=["measure", "protocol", "classifier"],
        heads=[words("classifier", "classifier")],
        cells=[
            OURS,
            Show("vs LR, %", "percent_vs_lr", number(1, signed=True)),
            Show("paper", "paper_mean", short, bold="paper_bold"),
        ],
        across=["quantifier"],
        above=lambda fact: str(fact["quantifier"]),
        group=lambda fact: f"{fact['measure'].upper()}, {fact['protocol']}",
        shaded_within=["measure", "protocol"],
    )
    notes = (
        f"Mean and standard deviation over test samples: {sample_counts(outcome)}. Percent: mean relative to LR.",
        BOLD,
        QUANTIFIERS_OF[outcome.about["experiment"]["settings"]],
        "Paper: NMD on Amazon-OQ-BK under APP with other versions of data and quantifiers; for orientation only.",
        "A dash: ORidge and LAD have no posteriors, hence no PCC, PACC and SLD; or nothing is printed.",
        *missing_notes(outcome, outcome.measures, absent=False),
    )
    title = f"Ordinal classifiers on {data_name(outcome)}"
    return Table("ordinal_classifiers", title, columns, rows, facts, notes)
