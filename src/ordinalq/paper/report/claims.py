"""The paper's claims about pairs of methods, tested on the errors of a run and set beside the printed figures.

The message of the paper is that the regularized form of a method is better than the plain one; of its comparison of
classifiers, that logistic regression is almost always best. Both are claims about pairs on the same test samples.
"""

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from ordinalq.metrics import wilcoxon
from ordinalq.paper.experiments.outcome import Outcome
from ordinalq.paper.experiments.pairs import split_pair
from ordinalq.paper.report.facts import LEVEL, compares_classifiers, data_name, display_name, printed_cells, results
from ordinalq.paper.report.formats import Table, short
from ordinalq.paper.report.tables import Show, known, lay_out, number, words
from ordinalq.simplex import jaggedness

# Each plain method of the paper and its regularized form.
REGULARIZED = {plain: f"O{plain}" for plain in ("ACC", "PACC", "HDx", "HDy", "SLD", "EDy", "PDF")}
LOGISTIC = "LR"
HOLDS, FAILS, OPEN = "holds", "fails", "open"
CLAIM_COLUMNS = ["pair", "first", "second", "protocol", "measure", "first_mean", "second_mean", "change", "p_value", "result",
           "first_smoothing", "second_smoothing", "paper_first", "paper_second", "paper_change"]  # fmt: skip


def table_name(outcome: Outcome) -> str:
    """Return the name of the table of claims."""
    return "logistic_regression" if compares_classifiers(outcome) else "plain_and_regularized"


class Claim(NamedTuple):
    """What the paper says of a pair: the error of ``better`` is smaller than that of ``worse``.

    ``first`` and ``second`` are the same two in the order in which they are compared: the change is from the first to
    the second.
    """

    first: str
    second: str
    better: str


def claims(outcome: Outcome) -> list[Claim]:
    """Return the claims about methods that were run."""
    if not compares_classifiers(outcome):
        pairs = [(plain, smooth) for plain, smooth in REGULARIZED.items() if {plain, smooth} <= set(outcome.methods)]
        return [Claim(plain, smooth, smooth) for plain, smooth in pairs]
    split = [(method, *split_pair(method)) for method in outcome.methods]
    return [
        Claim(f"{LOGISTIC}-{quantifier}", method, f"{LOGISTIC}-{quantifier}")
        for method, classifier, quantifier in split
        if classifier != LOGISTIC and f"{LOGISTIC}-{quantifier}" in outcome.methods
    ]


def claim_facts(outcome: Outcome) -> pd.DataFrame:
    """Return one row per measure, protocol and claim: means, change in per cent, p-value, printed change, result."""
    rows = [
        _tested(claim, outcome, protocol, measure, errors, printed)
        for measure in outcome.measures
        for protocol in outcome.protocols
        for errors, printed in [(results(outcome, protocol, measure), printed_cells(outcome, protocol, measure))]
        for claim in claims(outcome)
    ]
    return pd.DataFrame(rows, columns=CLAIM_COLUMNS)


def claim_table(outcome: Outcome) -> Table:
    """Return the pairs with their errors, the change from one to the other, and whether the claim holds."""
    facts = claim_facts(outcome)
    first, second = ("LR", "other") if compares_classifiers(outcome) else ("plain", "regularized")
    columns, rows = lay_out(
        facts,
        rows=["measure", "pair"],
        heads=[words("pair", "pair")],
        cells=[
            Show(first, "first_mean", number(4)),
            Show(second, "second_mean", number(4)),
            Show("change, %", "change", number(1, signed=True)),
            Show("p", "p_value", p_text),
            Show("paper, %", "paper_change", number(1, signed=True), needs="paper_change"),
            words("claim", "result"),
        ],
        across=["protocol"],
        above=lambda fact: str(fact["protocol"]),
        group=lambda fact: str(fact["measure"]).upper(),
    )
    notes = [
        "Change: mean error of the second over that of the first, less one. p: Wilcoxon signed-rank test, two-sided.",
        f"The claim holds or fails where p < {short(LEVEL, 2)} and means and medians agree; else it is open.",
    ]
    if facts["paper_change"].map(known).any():
        notes.append("Paper: the change of the printed means; no test can be made of it.")
    if not compares_classifiers(outcome) and {"EDy", "PDF"} & set(outcome.methods):
        notes.append(
            "The printed EDy and PDF had in-sample predictions, o-EDy and o-PDF held-out ones, so that their printed "
            "change is not that of regularization alone (departure 12)."
        )
    title = (
        f"Logistic regression and the other classifiers on {data_name(outcome)}"
        if compares_classifiers(outcome)
        else f"Plain and regularized methods on {data_name(outcome)}"
    )
    return Table(table_name(outcome), title, columns, rows, facts, tuple(notes))


def claim_sentences(outcome: Outcome) -> Iterator[str]:
    """State in how many pairs the paper's claim holds, fails and is open, and where it fails."""
    facts = claim_facts(outcome)
    facts = facts[facts["result"] != ""]
    if facts.empty:
        return
    counts = {result: int((facts["result"] == result).sum()) for result in (HOLDS, FAILS, OPEN)}
    what = (
        'The paper\'s claim that "logistic regression is almost always best"'
        if compares_classifiers(outcome)
        else "The paper's main claim, that a regularized method is better than its plain form,"
    )
    text = f"{what} holds in {counts[HOLDS]} of {len(facts)} comparisons, fails in {counts[FAILS]}"
    failed = facts[facts["result"] == FAILS].to_dict("records")
    if failed:
        text += f" ({'; '.join(map(_failure, failed))})"
    yield f"{text}, and is open in {counts[OPEN]}, where the test decides nothing."
    if not compares_classifiers(outcome):
        smoother = facts["second_smoothing"] < facts["first_smoothing"]
        yield (
            "The paper's reason, that regularization prevents implausibly jagged estimates, holds in "
            f"{int(smoother.sum())} of {len(facts)} comparisons: there the regularized estimates are smoother than the "
            "plain ones."
        )


def p_text(p: float) -> str:
    """Write a p-value.

    >>> p_text(0.25), p_text(2.3e-22), p_text(0.0)
    ('.25', '2e-22', '< 1e-300')
    """
    return short(p, 2) if p >= LEVEL else f"{p:.0e}" if p > 0 else "< 1e-300"


def percent_change(first: float, second: float) -> float:
    """Return by how many per cent the second number is larger than the first; NaN where that makes no sense."""
    return float(100 * (second / first - 1)) if first > 0 else np.nan


def _failure(fact: Any) -> str:
    where = f"{fact['measure'].upper()}, {fact['protocol']}"
    return f"{fact['pair']} under {where}: {fact['change']:+.1f} %, p = {p_text(fact['p_value'])}"


def _tested(
    claim: Claim,
    outcome: Outcome,
    protocol: str,
    measure: str,
    errors: dict[str, Any],
    printed: dict[str, dict[str, Any]],
) -> dict[str, Any]:
    """Return the row of one claim; what cannot be known is NaN, and its result is empty."""
    row: dict[str, Any] = dict.fromkeys(CLAIM_COLUMNS, np.nan) | {
        "pair": f"{display_name(claim.first)} → {display_name(claim.second)}",
        "first": claim.first,
        "second": claim.second,
        "protocol": protocol,
        "measure": measure,
        "paper_first": float(printed.get(claim.first, {}).get("mean", np.nan)),
        "paper_second": float(printed.get(claim.second, {}).get("mean", np.nan)),
        "result": "",
    }
    row["paper_change"] = percent_change(row["paper_first"], row["paper_second"])
    if claim.first in errors and claim.second in errors:
        a, b = errors[claim.first], errors[claim.second]
        p = wilcoxon(a, b)
        # The test is one of ranks: where it and the means point to different sides, nothing is decided.
        falls = np.sign(b.mean() - a.mean()) + np.sign(np.median(b - a))
        better = claim.second if falls < 0 else claim.first
        decided = p < LEVEL and falls != 0
        row |= {
            "first_mean": float(a.mean()),
            "second_mean": float(b.mean()),
            "change": percent_change(a.mean(), b.mean()),
            "p_value": p,
            "result": OPEN if not decided else HOLDS if better == claim.better else FAILS,
            "first_smoothing": _smoothing(outcome, claim.first, protocol, measure),
            "second_smoothing": _smoothing(outcome, claim.second, protocol, measure),
        }
    return row


def _smoothing(outcome: Outcome, method: str, protocol: str, measure: str) -> float:
    """Return the mean jaggedness of the estimates over that of the truth."""
    P_hat, P = outcome.distributions(method, protocol, measure)
    return float(jaggedness(P_hat).mean() / jaggedness(P).mean())
