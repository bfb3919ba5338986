"""The figure of the paper's main claim: each method with and without regularization, joined by a line."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd

from ordinalq.paper.experiments.outcome import Outcome
from ordinalq.paper.report.claims import FAILS, HOLDS, OPEN, claim_facts, table_name
from ordinalq.paper.report.facts import compares_classifiers
from ordinalq.paper.report.picture import Picture, sheet
from ordinalq.plot.style import BLUE, INK, SOFT, VERMILION, Axes, handle, legend_below, number_axis, tidy

# By the result of the test: colour and marker.
LOOK = {HOLDS: (BLUE, "o"), FAILS: (VERMILION, "s"), OPEN: (SOFT, "D")}


def claim_picture(outcome: Outcome, measure: str) -> Picture | None:
    """Draw the two errors of each pair as dots on a line, a panel per protocol, coloured by what the test says."""
    facts = claim_facts(outcome)
    facts = facts[(facts["measure"] == measure) & (facts["result"] != "")]
    if facts.empty:
        return None
    pairs, protocols = list(dict.fromkeys(facts["pair"])), list(dict.fromkeys(facts["protocol"]))
    with sheet(2.2 + 3.2 * len(protocols), 1.5 + 0.3 * len(pairs)) as (figure, save):
        panels = figure.subplots(1, len(protocols), sharey=True, squeeze=False)[0]
        for axes, protocol in zip(panels, protocols, strict=True):
            _draw_pairs(axes, facts[facts["protocol"] == protocol], pairs)
            axes.set_title(protocol)
            axes.set_xlabel(measure.upper())
        panels[0].set_yticks(range(len(pairs)), pairs)
        panels[0].set_ylim(len(pairs) - 0.4, -0.6)
        first, second = ("LR", "other") if compares_classifiers(outcome) else ("plain", "regularized")
        hollow: Any = handle(first, INK, "o")
        hollow.set(markerfacecolor="white", markeredgewidth=1.2)
        handles = [hollow, *(handle(f"{second}, claim {result}", *look) for result, look in LOOK.items())]
        note = ""
        if np.isfinite(facts["paper_change"]).any():
            handles.append(handle("paper", INK, "|"))
            note = " Small lines: the printed means, thin for the first of a pair."
        legend_below(figure, handles)
        return save(
            f"pairs_{measure}",
            f"{first.capitalize() if first != 'LR' else first} and {second}: {measure.upper()}",
            f"Each row is a pair: the open dot is the mean error of the {first} method, the filled mark that of the "
            f"{second} one; a mark to the left of its dot is an improvement. The colour says whether the paper's claim "
            "holds on these test samples (Wilcoxon)." + note,
            section="results",
            beside=table_name(outcome),
        )


def _draw_pairs(axes: "Axes", facts: pd.DataFrame, pairs: Sequence[str]) -> None:
    """Draw the rows of one panel."""
    drawn: list[float] = []
    for fact in facts.to_dict("records"):
        row, (color, marker) = pairs.index(fact["pair"]), LOOK[fact["result"]]
        ends: list[Any] = [fact["first_mean"], fact["second_mean"]]
        axes.plot(ends, [row, row], color=color, lw=1.6, zorder=2)
        axes.plot(ends[0], row, "o", ms=6, mfc="white", mec=INK, mew=1.2, zorder=3)
        axes.plot(ends[1], row, marker, ms=6, color=color, zorder=4)
        for name, width in (("paper_first", 0.8), ("paper_second", 1.8)):
            if np.isfinite(fact[name]):
                axes.plot([fact[name]] * 2, [row + 0.18, row + 0.42], color=INK, lw=width, zorder=3)
                ends.append(fact[name])
        drawn += ends
    tidy(axes)
    number_axis(axes.xaxis, drawn)
    axes.tick_params(length=0)
