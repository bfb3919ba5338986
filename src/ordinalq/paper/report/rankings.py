"""Average ranks of methods, over data sets or over test samples, beside those of the paper."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd

from ordinalq.datasets import published as reference
from ordinalq.paper.experiments.outcome import Outcome
from ordinalq.paper.report.facts import data_name, display_name, group_of, results
from ordinalq.paper.report.formats import Table
from ordinalq.paper.report.significance import Ranking, rank
from ordinalq.paper.report.tables import Show, lay_out, number, words
from ordinalq.quantifiers.catalog import known_methods

RANK_COLUMNS = ["method", "protocol", "measure", "rank", "n_blocks", "critical_difference", "friedman", "p_value",
           "paper_rank", "paper_n_blocks", "bold"]  # fmt: skip


def rankings(outcomes: Sequence[Outcome]) -> dict[tuple[str, str], Ranking]:
    """Rank the methods for each protocol and measure that all outcomes have.

    With several outcomes, each is one block with its mean errors; with a single one, each test sample is a block.
    Methods without a result in some outcome are left out.
    """
    found: dict[tuple[str, str], Ranking] = {}
    for measure in outcomes[0].measures:
        for protocol in outcomes[0].protocols:
            if not all(protocol in one.protocols and measure in one.measures for one in outcomes):
                continue
            errors = [results(outcome, protocol, measure) for outcome in outcomes]
            blocks: dict[str, Any] = dict(errors[0])
            if len(outcomes) > 1:
                common = [method for method in errors[0] if all(method in one for one in errors)]
                blocks = {method: [float(np.mean(one[method])) for one in errors] for method in common}
            if blocks:
                found[protocol, measure] = rank(blocks)
    return found


def paper_rankings() -> dict[tuple[str, str], Ranking]:
    """Rank the methods by the paper's printed means, a data set being a block."""
    table = reference.results()
    printed = {name: table[entry.paper_name] for name, entry in known_methods().items() if entry.paper_name in table}
    found = {}
    for protocol in ("APP", "APP-OQ", "real"):
        for measure in ("nmd", "rnod"):
            blocks = [d for d, cells in table["CC"].items() if measure.upper() in cells.get(protocol, {})]
            found[protocol, measure] = rank(
                {name: [row[d][protocol][measure.upper()]["mean"] for d in blocks] for name, row in printed.items()}
            )
    return found


def rank_facts(outcomes: Sequence[Outcome], found: dict[tuple[str, str], Ranking]) -> pd.DataFrame:
    """Return one row per protocol, measure and method."""
    methods = list(dict.fromkeys(method for outcome in outcomes for method in outcome.methods))
    printed = paper_rankings()
    rows = []
    for (protocol, measure), ranking in found.items():
        best = min(ranking.ranks.values())
        paper = printed.get((protocol, measure))
        # What is compared has a method of the paper; comparisons of classifiers have none.
        paper = paper if paper and not paper.ranks.keys().isdisjoint(methods) else None
        for method in methods:
            value = ranking.ranks.get(method, np.nan)
            rows.append(
                {
                    "method": method,
                    "protocol": protocol,
                    "measure": measure,
                    "rank": value,
                    "n_blocks": ranking.n_blocks,
                    "critical_difference": ranking.difference,
                    "friedman": ranking.statistic,
                    "p_value": ranking.p_value,
                    "paper_rank": paper.ranks.get(method, np.nan) if paper else np.nan,
                    "paper_n_blocks": paper.n_blocks if paper else 0,
                    # The difference is not known where only one method was run, which then is the best one.
                    "bold": bool(value == best or value - best <= ranking.difference),
                }
            )
    return pd.DataFrame(rows, columns=RANK_COLUMNS)


def rank_table(outcomes: Sequence[Outcome]) -> Table:
    """Return average ranks over data sets, or over the test samples of a single one, beside those of the paper."""
    found = rankings(outcomes)
    facts = rank_facts(outcomes, found)
    columns, rows = lay_out(
        facts,
        rows=["method"],
        heads=[words("method", "method", display_name)],
        cells=[
            Show("rank", "rank", number(2), bold="bold", shade="linear"),
            Show("paper", "paper_rank", number(2), needs="paper_rank"),
        ],
        across=["protocol", "measure"],
        above=lambda fact: f"{fact['measure'].upper()}, {fact['protocol']}",
        group=lambda fact: group_of(fact["method"]),
    )
    blocks = "data sets" if len(outcomes) > 1 else "test samples"
    notes = [f"Rank: average over {blocks}, 1 is best; bold: within the critical difference of the best."]
    if facts["paper_rank"].notna().any():
        notes[0] += " Paper: the same over the printed means of its data sets (six; two for RNOD and for real)."
    if len(outcomes) == 1:
        notes[0] += " Test samples share items and classifiers, hence the critical difference is optimistic."
    for (protocol, measure), ranking in found.items():
        if np.isfinite(ranking.difference):
            p_value = f"p = {ranking.p_value:.2g}" if ranking.p_value else "p < 1e-300"
            notes.append(
                f"{measure.upper()}, {protocol}: {ranking.n_blocks} {blocks}, "
                f"Friedman's statistic {ranking.statistic:.1f} ({p_value}), "
                f"critical difference {ranking.difference:.2f} (Nemenyi, level .05)."
            )
    left_out = sorted(set(facts[facts["rank"].isna()]["method"].map(display_name)))
    if left_out:
        notes.append(f"A dash: left out for want of results: {', '.join(left_out)}.")
    title = "Average ranks" + ("" if len(outcomes) > 1 else f" on {data_name(outcomes[0])}")
    return Table("ranking", title, columns, rows, facts.drop(columns="bold"), tuple(notes), section="ranking")
