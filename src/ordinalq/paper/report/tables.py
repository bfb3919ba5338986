"""The tables of an experiment.

Claims about pairs of methods; errors; ranks; samples and protocols; parameters. A new table is a function in `MAKERS`.
"""

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache
from itertools import chain, product
from typing import Any

import numpy as np
import pandas as pd

from ordinalq._utils.validation import Floats, check_distributions
from ordinalq.datasets import published
from ordinalq.metrics import nmd, wilcoxon
from ordinalq.paper.experiments.config import split_pair
from ordinalq.paper.experiments.outcome import Outcome
from ordinalq.paper.report.facts import (
    BOLD,
    KEYS,
    LEVEL,
    QUICK,
    bold_notes,
    cell_facts,
    compares_classifiers,
    data_name,
    display_name,
    group_of,
    missing_notes,
    parsed,
    published_cells,
    results,
    sample_counts,
    selected,
)
from ordinalq.paper.report.formats import (
    MISSING,
    Show,
    Table,
    known,
    lay_out,
    mean_and_std,
    number,
    settings_text,
    short,
    value_text,
    words,
)
from ordinalq.paper.report.significance import Ranking, rank
from ordinalq.protocols import APP, RealPrevalences, streams
from ordinalq.quantifiers.catalog import BEYOND, known_methods
from ordinalq.simplex import jaggedness

# Claims about pairs of methods, tested on the errors of a run
#
# The paper claims that the regularized form of a method is better than the plain one, and that logistic regression is
# almost always the best classifier. Both are claims about pairs on the same test samples.

# Each plain method of the paper and its regularized form.
REGULARIZED = {plain: f"O{plain}" for plain in ("ACC", "PACC", "HDx", "HDy", "SLD", "EDy", "PDF")}
LOGISTIC = "LR"
HOLDS, FAILS, OPEN = "holds", "fails", "open"
CLAIM_COLUMNS = ["pair", "first", "second", "protocol", "measure", "first_mean", "second_mean", "change", "p_value",
                 "result", "first_smoothing", "second_smoothing", "paper_first", "paper_second",
                 "paper_change"]  # fmt: skip


def table_name(outcome: Outcome) -> str:
    """Return the name of the table of claims."""
    return "logistic_regression" if compares_classifiers(outcome) else "plain_and_regularized"


def claim_sides(outcome: Outcome) -> tuple[str, str]:
    """Return the names of the first and the second method of a pair."""
    return ("LR", "other") if compares_classifiers(outcome) else ("plain", "regularized")


def claims(outcome: Outcome) -> list[tuple[str, str]]:
    """Return the pairs of methods of the paper's claims that were run.

    A pair is a plain method and its regularized form, or LR and another classifier. The paper claims that the
    regularized form is better, and that LR is better.
    """
    if not compares_classifiers(outcome):
        return [pair for pair in REGULARIZED.items() if set(pair) <= set(outcome.methods)]
    pairs = [(f"{LOGISTIC}-{split_pair(method)[1]}", method) for method in outcome.methods]
    return [(first, second) for first, second in pairs if first != second and first in outcome.methods]


def claim_facts(outcome: Outcome) -> pd.DataFrame:
    """Return one row per measure, protocol and claim.

    It has means, change in percent, p-value, published change and result.
    """
    rows = []
    for measure, protocol in product(outcome.measures, outcome.protocols):
        errors, cells = results(outcome, protocol, measure), published_cells(outcome, protocol, measure)
        rows += [_test_claim(pair, outcome, protocol, measure, errors, cells) for pair in claims(outcome)]
    return pd.DataFrame(rows, columns=CLAIM_COLUMNS)


def claim_table(outcome: Outcome) -> Table:
    """Return the pairs with their errors, the change, and the result of the claim."""
    facts = claim_facts(outcome)
    first, second = claim_sides(outcome)
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
        notes.append("Paper: the change of the published means; they cannot be tested.")
    if not compares_classifiers(outcome) and {"EDy", "PDF"} & set(outcome.methods):
        notes.append(
            "The published EDy and PDF had in-sample predictions, o-EDy and o-PDF held-out ones, so that their "
            "published change is not that of regularization alone (departure 12)."
        )
    what = "Logistic regression and the other classifiers" if first == LOGISTIC else "Plain and regularized methods"
    return Table(table_name(outcome), f"{what} on {data_name(outcome)}", columns, rows, facts, tuple(notes))


def claim_sentences(outcome: Outcome) -> Iterator[str]:
    """Yield sentences on the number of pairs in which the paper's claim holds.

    They state how often it holds, fails and is open, and in which pairs it fails.
    """
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
    """Return the change from the first to the second number in percent.

    It is NaN if it is undefined.
    """
    return float(100 * (second / first - 1)) if first > 0 else np.nan


def _failure(fact: Any) -> str:
    where = f"{fact['measure'].upper()}, {fact['protocol']}"
    return f"{fact['pair']} under {where}: {fact['change']:+.1f}%, p = {p_text(fact['p_value'])}"


def _test_claim(
    pair: tuple[str, str],
    outcome: Outcome,
    protocol: str,
    measure: str,
    errors: dict[str, Any],
    published_values: dict[str, dict[str, Any]],
) -> dict[str, Any]:
    """Return the row of one claim.

    Missing numbers are NaN, and the result is empty without a test.
    """
    first, second = pair
    row: dict[str, Any] = dict.fromkeys(CLAIM_COLUMNS, np.nan) | {
        "pair": f"{display_name(first)} → {display_name(second)}",
        "first": first,
        "second": second,
        "protocol": protocol,
        "measure": measure,
        "paper_first": float(published_values.get(first, {}).get("mean", np.nan)),
        "paper_second": float(published_values.get(second, {}).get("mean", np.nan)),
        "result": "",
    }
    row["paper_change"] = percent_change(row["paper_first"], row["paper_second"])
    if first in errors and second in errors:
        a, b = errors[first], errors[second]
        p = wilcoxon(a, b)
        # The test is one of ranks: where it and the means point to different sides, nothing is decided.
        falls = np.sign(b.mean() - a.mean()) + np.sign(np.median(b - a))
        is_as_claimed = (falls > 0) == compares_classifiers(outcome)
        decided = p < LEVEL and falls != 0
        row |= {
            "first_mean": float(a.mean()),
            "second_mean": float(b.mean()),
            "change": percent_change(a.mean(), b.mean()),
            "p_value": p,
            "result": OPEN if not decided else HOLDS if is_as_claimed else FAILS,
            "first_smoothing": _smoothing(outcome, first, protocol, measure),
            "second_smoothing": _smoothing(outcome, second, protocol, measure),
        }
    return row


def _smoothing(outcome: Outcome, method: str, protocol: str, measure: str) -> float:
    """Return the mean jaggedness of the estimates over that of the truth."""
    P_hat, P = outcome.distributions(method, protocol, measure)
    return float(jaggedness(P_hat).mean() / jaggedness(P).mean())


# Errors of the methods, on one data set or on several, and of classifiers in quantifiers

# Which versions of the quantifiers the table of classifiers has, by the settings.
QUANTIFIERS_OF = {
    "reference": "CC to SLD as in the program behind the published table: without cross-fitting, M from 40% of the "
    "training items and inverted, SLD until it is stable. Settings paper have those of the paper's own sections.",
    "paper": "CC to SLD as in the paper's own sections, with a classifier in ten folds. Settings reference have those "
    "of the program behind the published table.",
}
PUBLISHED_CLASSIFIERS = (
    "Paper: NMD on Amazon-OQ-BK under APP with other versions of data and quantifiers; for orientation only."
)
# Ratios to the published mean outside of this range are unlikely to result from the split alone.
FAR = (0.8, 1.25)
PRINTED = mean_and_std("paper", "paper_", needs="paper_mean")
OURS = mean_and_std(shade="log")
METHOD = words("method", "method", display_name)
PROTOCOL = words("protocol", "protocol")
CLASSIFIER_COLUMNS = ["classifier", "quantifier", "protocol", "measure", "mean", "std", "n_samples", "p_value", "bold",
                      "percent_vs_lr", "paper_mean", "paper_bold", "classifier_parameters", "parameters",
                      "unconverged"]  # fmt: skip


def method_group(fact: Any) -> str:
    """Return the group of the method of a fact."""
    return group_of(fact["method"])


def result_facts(outcome: Outcome, measure: str) -> pd.DataFrame:
    """Return one row per protocol and method, with all values of the cell."""
    rows = (cell_facts(outcome, protocol, measure, outcome.methods) for protocol in outcome.protocols)
    return pd.DataFrame(chain.from_iterable(rows))


def results_table(outcome: Outcome, measure: str) -> Table:
    """Return the errors of all methods under all protocols.

    Columns are mean ± std, boldface, the paper's figure and the ratio.
    """
    facts = result_facts(outcome, measure)
    notes = [
        f"Mean and standard deviation over test samples: {sample_counts(outcome)}.",
        "Parameters were selected on validation samples of the same protocol by the same measure.",
        *bold_notes([outcome]),
    ]
    if facts["paper_mean"].notna().any():
        data = outcome.about["experiment"]["paper"]
        notes.append(f"Paper: as published for {data}, bold as published. Ratio: our mean over the paper's.")
        notes += _far_from_one(facts) if outcome.about["experiment"]["profile"] == "full" else [QUICK]
    columns, rows = lay_out(
        facts,
        rows=["method"],
        heads=[METHOD],
        cells=[OURS, PRINTED, Show("ratio", "ratio", number(2), needs="paper_mean")],
        across=["protocol"],
        above=lambda fact: str(fact["protocol"]),
        group=method_group,
    )
    title = f"{measure.upper()} on {data_name(outcome)}"
    return Table(measure, title, columns, rows, facts, (*notes, *missing_notes(outcome, [measure])))


def _far_from_one(facts: pd.DataFrame) -> list[str]:
    """Return a note about ratios that need an explanation, with a reference to it."""
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
        group=method_group,
    )
    notes = (
        "Mean and standard deviation over the test samples of each data set.",
        *bold_notes(having),
        "Paper: mean and boldface as published.",
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
    """Return a table of classifiers (rows) by quantifiers (columns).

    Cells have mean ± std, percent versus LR, and the paper's figure.
    """
    facts = classifier_facts(outcome)
    columns, rows = lay_out(
        facts,
        rows=["measure", "protocol", "classifier"],
        heads=[words("classifier", "classifier")],
        cells=[
            OURS,
            Show("vs LR, %", "percent_vs_lr", number(1, signed=True)),
            Show("paper", "paper_mean", short, bold="paper_bold", needs="paper_mean"),
        ],
        across=["quantifier"],
        above=lambda fact: str(fact["quantifier"]),
        group=lambda fact: f"{fact['measure'].upper()}, {fact['protocol']}",
        shaded_within=["measure", "protocol"],
    )
    is_published = facts["paper_mean"].map(known).any()
    notes = (
        f"Mean and standard deviation over test samples: {sample_counts(outcome)}. Percent: mean relative to LR.",
        BOLD,
        QUANTIFIERS_OF[outcome.about["experiment"]["settings"]],
        *([PUBLISHED_CLASSIFIERS] if is_published else []),
        "A dash: ORidge and LAD have no posteriors, hence no PCC, PACC and SLD"
        + ("; or nothing is published." if is_published else "."),
        *missing_notes(outcome, outcome.measures, absent=False),
    )
    title = f"Ordinal classifiers on {data_name(outcome)}"
    return Table("ordinal_classifiers", title, columns, rows, facts, notes)


# Average ranks of methods, over data sets or over test samples, and those of the paper

RANK_COLUMNS = ["method", "protocol", "measure", "rank", "n_blocks", "critical_difference", "friedman", "p_value",
           "paper_rank", "paper_n_blocks", "bold"]  # fmt: skip


def rankings(outcomes: Sequence[Outcome]) -> dict[tuple[str, str], Ranking]:
    """Rank the methods for each protocol and measure that all outcomes have.

    With several outcomes, each is one block with its mean errors; with a single one, each test sample is a block.
    Methods without a result in some outcome are left out.
    """
    found: dict[tuple[str, str], Ranking] = {}
    for measure, protocol in product(outcomes[0].measures, outcomes[0].protocols):
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
    """Rank the methods by the paper's published means, a data set being a block."""
    table = published.results()
    methods = {name: table[entry.paper_name] for name, entry in known_methods().items() if entry.paper_name in table}
    found = {}
    for protocol in ("APP", "APP-OQ", "real"):
        for measure in ("nmd", "rnod"):
            blocks = [d for d, cells in table["CC"].items() if measure.upper() in cells.get(protocol, {})]
            found[protocol, measure] = rank(
                {name: [row[d][protocol][measure.upper()]["mean"] for d in blocks] for name, row in methods.items()}
            )
    return found


def rank_facts(outcomes: Sequence[Outcome], found: dict[tuple[str, str], Ranking]) -> pd.DataFrame:
    """Return one row per protocol, measure and method."""
    methods = list(dict.fromkeys(method for outcome in outcomes for method in outcome.methods))
    published_rankings = paper_rankings()
    rows = []
    for (protocol, measure), ranking in found.items():
        best = min(ranking.ranks.values())
        paper = published_rankings.get((protocol, measure))
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
    """Return average ranks over data sets or samples, with those of the paper.

    For a single data set, ranks are over its test samples.
    """
    found = rankings(outcomes)
    facts = rank_facts(outcomes, found)
    columns, rows = lay_out(
        facts,
        rows=["method"],
        heads=[METHOD],
        cells=[
            Show("rank", "rank", number(2), bold="bold", shade="linear"),
            Show("paper", "paper_rank", number(2), needs="paper_rank"),
        ],
        across=["protocol", "measure"],
        above=lambda fact: f"{fact['measure'].upper()}, {fact['protocol']}",
        group=method_group,
    )
    blocks = "data sets" if len(outcomes) > 1 else "test samples"
    notes = [f"Rank: average over {blocks}, 1 is best; bold: within the critical difference of the best."]
    if facts["paper_rank"].notna().any():
        notes[0] += " Paper: the same over the published means of its data sets (six; two for RNOD and for real)."
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


# Samples of a run, and the protocols of the paper

N_FACT = 12  # classes of Fact-OQ


def sample_facts(outcome: Outcome) -> pd.DataFrame:
    """Return one row per protocol that describes the test samples.

    It has the number of test samples, their mean jaggedness, and their mean shift from the training set.
    """
    p_train = np.asarray(outcome.about["data"]["p_train"], dtype=np.float64)
    data = str(outcome.about["experiment"].get("paper"))
    protocols = published.protocols().get(data, {})
    rows = []
    for protocol in outcome.protocols:
        P = outcome.true_distributions(protocol)
        name = f"APP-OQ({published.app_oq_percent(data)}%)" if protocol == "APP-OQ" else protocol
        paper = protocols.get(name, {})
        rows.append(
            {
                "protocol": protocol,
                "n_samples": len(P),
                "xi1": float(np.mean(jaggedness(P))),
                "nmd_to_training": float(np.mean(nmd(p_train, P))),
                "xi1_paper": paper.get("xi1", np.nan),
                "nmd_to_training_paper": paper.get("nmd_to_training", np.nan),
            }
        )
    return pd.DataFrame(rows)


def samples_table(outcome: Outcome) -> Table:
    """Return a table that describes the test samples of each protocol.

    Columns are number, jaggedness and shift from the training set.
    """
    facts = sample_facts(outcome)
    columns, rows = lay_out(
        facts,
        rows=["protocol"],
        heads=[PROTOCOL],
        cells=[
            Show("test samples", "n_samples"),
            Show("jaggedness", "xi1", number(4)),
            Show("shift", "nmd_to_training", number(4)),
            Show("jaggedness, paper", "xi1_paper", number(4), needs="xi1_paper"),
            Show("shift, paper", "nmd_to_training_paper", number(4), needs="xi1_paper"),
        ],
    )
    note = "Jaggedness: mean xi_1 of the true distributions. Shift: mean NMD between the training set and the sample."
    return Table("samples", f"Test samples of {data_name(outcome)}", columns, rows, facts, (note,), section="run")


def protocols_table(outcome: Outcome) -> Table:
    """Return the paper's table of protocols, recomputed.

    The real distributions of Amazon and the training distribution of Fact are those of the run.
    """
    own: dict[str, Any] = {}
    data = outcome.about["experiment"].get("paper")
    if data == "Amazon-OQ-BK" and "real" in outcome.protocols:
        own["amazon_vectors"] = np.unique(outcome.true_distributions("real"), axis=0)
    if data == "Fact-OQ" and len(outcome.about["data"]["p_train"]) == N_FACT:
        own["fact_training"] = np.asarray(outcome.about["data"]["p_train"], dtype=np.float64)
    facts = protocol_table(**own) if own else _protocols().copy()
    columns, rows = lay_out(
        facts,
        rows=["data", "protocol"],
        heads=[PROTOCOL],
        cells=[
            Show("ours", "xi1", number(4), above="jaggedness xi_1"),
            Show("paper", "xi1_paper", number(4), above="jaggedness xi_1"),
            Show("ours", "nmd", number(4), above="shift NMD(p_L, p)"),
            Show("paper", "nmd_paper", number(4), above="shift NMD(p_L, p)"),
        ],
        group=lambda fact: str(fact["data"]),
    )
    notes = ["Means over 20,000 drawn samples of 1000 items; they do not depend on any classifier or method."]
    if "amazon_vectors" not in own:
        notes.append("A dash in the row real of Amazon-OQ-BK: it needs the published samples of that data set.")
    if "fact_training" not in own:
        notes.append("A dash at Fact-OQ: its training distribution p_L is not published, and needs the loaded file.")
    notes.append("NPP: the published row is a comment in the source of the paper; how it was made is not known.")
    fold = "The paper's table of protocols, recomputed"
    return Table("protocols", "Protocols", columns, rows, facts, tuple(notes), section="background", fold=fold)


@cache
def _protocols() -> pd.DataFrame:
    """Return the table of protocols without the real distributions of Amazon.

    This takes seconds.
    """
    return protocol_table()


def protocol_table(
    *,
    amazon_vectors: Any = None,
    fact_training: Any = None,
    n_draws: int = 20_000,
    sample_size: int = 1000,
    random_state: Any = 0,
) -> pd.DataFrame:
    """Recompute the paper's table of protocols.

    Columns are mean jaggedness, and mean shift from the training distribution. The rows of APP-OQ are the given
    percentages of the APP samples. With 20,000 draws the standard error of xi_1 is .0006 for APP and smaller for the
    others.

    Parameters
    ----------
    amazon_vectors : array-like (k, 5), default=None
        The real star distributions of books; without them the row "real" of Amazon holds the paper's figures only.
    fact_training : array-like (12,), default=None
        Training distribution p_L of Fact-OQ, which is not published: that of the loaded file. Without it the shift of
        Fact-OQ is not known.
    n_draws, sample_size : int
        Number and size of the samples of each protocol.
    random_state : int, Generator or None, default=0

    Returns
    -------
    pandas.DataFrame
        Columns data, protocol, xi1, xi1_paper, nmd, nmd_paper: xi1 is the mean of xi_1 over the samples, nmd the mean
        NMD(p_L, p). What cannot be recomputed is NaN.

    Examples
    --------
    >>> table = protocol_table(n_draws=500, sample_size=100)
    >>> list(table.columns)
    ['data', 'protocol', 'xi1', 'xi1_paper', 'nmd', 'nmd_paper']
    """
    size: dict[str, Any] = {"n_samples": n_draws, "sample_size": sample_size, "random_state": random_state}
    p_L = {"Amazon-OQ-BK": published.amazon_training()}
    if fact_training is not None:
        p_L["Fact-OQ"] = check_distributions("fact_training", fact_training)
        if p_L["Fact-OQ"].shape != (12,):
            raise ValueError(f"fact_training must have one entry per class, 12, got shape {p_L['Fact-OQ'].shape}.")
    real = {"Fact-OQ": RealPrevalences(published.fact_spectrum().p, **size, poisson=True).counts(12) / sample_size}
    if amazon_vectors is not None:
        real["Amazon-OQ-BK"] = RealPrevalences(amazon_vectors, **size).counts(5) / sample_size
    rows = []
    for data, protocols in published.protocols().items():
        app = APP(**size, min_per_class=1).counts(5 if data == "Amazon-OQ-BK" else 12) / sample_size
        # A mirrored distribution is as likely and as jagged, and shifted the other way: this halves the noise.
        app = np.concatenate([app, app[:, ::-1]])
        xi = jaggedness(app)
        for protocol, paper in protocols.items():
            P: Floats | None
            if protocol.startswith("APP"):
                percent = protocol.removeprefix("APP-OQ(").removesuffix("%)")
                P = app if protocol == "APP" else app[xi <= np.quantile(xi, int(percent) / 100)]
            elif protocol == "real":
                P = real.get(data)
            else:  # NPP: samples of an infinite pool
                rng = streams(random_state)[2]
                P = rng.multinomial(sample_size, p_L[data], n_draws) / sample_size if data in p_L else None
            rows.append(
                {
                    "data": data,
                    "protocol": protocol,
                    "xi1": np.nan if P is None else np.mean(jaggedness(P)),
                    "xi1_paper": paper["xi1"],
                    "nmd": np.nan if P is None or data not in p_L else np.mean(nmd(p_L[data], P)),
                    "nmd_paper": paper["nmd_to_training"],
                }
            )
    return pd.DataFrame(rows)


# Parameters: the selected ones, and the values that were tried, with those of the paper

CLASS_NUMBERS = (5, 10, 12)
SETTINGS = ("paper", "reference")
# Names of our parameters in the published tables.
PUBLISHED_NAMES = {"held_out": "val_split", "n_bins": "n_bins_per_class", "distance": "ground_distance"}
OWN_NAMES = {paper_name: name for name, paper_name in PUBLISHED_NAMES.items()}
CLASSIFIERS = {"forest": "RandomForest", "logistic": "LogisticRegression"}
SELECTED = [*KEYS, "classifier", "parameters", "error", "std", "smoothing", "n_samples", "unconverged"]


def selected_table(outcome: Outcome) -> Table:
    """Return the selected configuration of each method, protocol and measure."""
    cases = [(method, p, m) for method in outcome.methods for p in outcome.protocols for m in outcome.measures]
    chosen = [row for row in (selected(outcome, *case) for case in cases) if "error" in row]
    facts = pd.DataFrame(chosen, columns=SELECTED)
    columns, rows = lay_out(
        facts,
        rows=KEYS,
        heads=[
            METHOD,
            PROTOCOL,
            words("measure", "measure", str.upper),
            words("classifier", "classifier", _settings),
            words("parameters", "parameters", _settings),
        ],
        cells=[Show("validation error", "error", number(4)), Show("smoothing", "smoothing", number(2))],
        group=method_group,
    )
    notes = (
        "Validation error: mean over the validation samples, which differ from the test samples.",
        "Smoothing: mean jaggedness of the estimates over that of the truth; below 1 they are smoother than the truth.",
    )
    title = "Selected parameters"
    return Table("selected", title, columns, rows, facts, notes, section="parameters", fold=title)


def hyperparameter_facts(outcome: Outcome) -> pd.DataFrame:
    """Return one row per method, parameter, settings and number of classes.

    Values are JSON. Methods that are not in the paper are included if they were run, with the values that were tried.
    """
    grids = published.grids()["quantifier_paper"]
    known = known_methods()
    names = [name for name, entry in known.items() if entry.group != BEYOND or name in outcome.methods]
    rows = []
    for method in [*names, *(name for name in outcome.methods if name not in known)]:
        paper = grids.get(display_name(method), {})
        run = _values(outcome.validation[outcome.validation["method"] == method]["parameters"])
        grid: Callable[[int, str], dict[str, list[Any]]]
        grid = known[method].grid if method in known else lambda n, settings: {}
        own = (OWN_NAMES.get(name, name) for name in paper)
        tried = [name for settings in SETTINGS for name in grid(CLASS_NUMBERS[0], settings)]
        for name in list(dict.fromkeys([*tried, *own, *run])) or [""]:
            shown = paper.get(name) or paper.get(PUBLISHED_NAMES.get(name, ""), [])
            rows += [
                {
                    "method": method,
                    "parameter": name,
                    "settings": settings,
                    "n_classes": n,
                    "values": json.dumps(grid(n, settings).get(name, [])),
                    "published": json.dumps(shown),
                    "run": json.dumps(run.get(name, [])),
                }
                for settings in SETTINGS
                for n in CLASS_NUMBERS
            ]
    return pd.DataFrame(rows)


def hyperparameter_table(outcome: Outcome) -> Table:
    """Return the grids of the catalog with the published ones and those of the run.

    They are for 5, 10 and 12 classes.
    """
    facts = hyperparameter_facts(outcome)
    columns, rows = lay_out(
        _one_row_each(facts),
        rows=["method", "parameter"],
        heads=[METHOD, words("parameter", "parameter")],
        cells=[
            words("published", "published"),
            words("settings paper", "paper"),
            words("settings reference", "reference"),
            words("this run", "run", _list),
        ],
        group=method_group,
    )
    notes = (
        "Settings paper: as the text says. Settings reference: as the authors' program did.",
        "What depends on the number n of classes is given for 5, 10 and 12.",
        "n_bins of PDF and o-PDF is the total number of bins, n - 1 times the published one.",
    )
    title = "Hyperparameters of the methods"
    return Table("hyperparameters", title, columns, rows, facts, notes, section="parameters", fold=title)


def classifier_grid_table(outcome: Outcome) -> Table:
    """Return the tried and published values of the classifier's parameters."""
    rows = []
    for name, paper, values in _classifier_grids(outcome):
        for parameter in dict.fromkeys([*paper, *values]):
            shown = json.dumps(paper.get(parameter, []))
            run = json.dumps(values.get(parameter, []))
            rows.append({"classifier": name, "parameter": parameter, "published": shown, "run": run})
    facts = pd.DataFrame(rows, columns=["classifier", "parameter", "published", "run"])
    columns, laid = lay_out(
        facts,
        rows=["classifier", "parameter"],
        heads=[words("classifier", "classifier"), words("parameter", "parameter")],
        cells=[words("published", "published", _list), words("this run", "run", _list)],
    )
    notes = (
        "A dash: not published, or not varied in this run.",
        'For forests with out-of-bag scores, the published "balanced" is "balanced_subsample" in recent scikit-learn.',
    )
    title = "Hyperparameters of the classifier"
    return Table("classifier_grid", title, columns, laid, facts, notes, section="parameters", fold=title)


def _classifier_grids(outcome: Outcome) -> Iterator[tuple[str, dict[str, list[Any]], dict[str, list[Any]]]]:
    """Yield the name, the published grid and the tried values of each classifier.

    No grid is published for the comparison of ordinal classifiers.
    """
    tried = outcome.validation
    if compares_classifiers(outcome):
        for name in dict.fromkeys(map(group_of, outcome.methods)):
            values = _values(tried[tried["method"].map(group_of) == name]["classifier"])
            yield name, {}, {key: found for key, found in values.items() if key != "name"}
        return
    values = _values(tried["classifier"])
    trees = outcome.about["experiment"].get("n_estimators")
    family = "logistic" if "C" in values else "forest"
    own = {} if trees is None else {"n_estimators": [trees]}
    yield CLASSIFIERS[family], published.classifier_grid(family), own | values


def _values(column: "pd.Series[str]") -> dict[str, list[Any]]:
    """Return the values of each parameter in a column of JSON.

    Values are in the order of appearance.
    """
    found: dict[str, list[Any]] = {}
    for text in column.drop_duplicates():
        for name, value in parsed(text).items():
            if value not in found.setdefault(name, []):
                found[name].append(value)
    return found


def _one_row_each(facts: pd.DataFrame) -> pd.DataFrame:
    """Return one row per method and parameter, the grids as text."""
    paper = published.grids()["quantifier_paper"]
    rows = []
    for (method, parameter), part in facts.groupby(["method", "parameter"], sort=False):
        first = part.iloc[0]
        per_class = parameter == "n_bins" and "n_bins_per_class" in paper.get(display_name(str(method)), {})
        row = {"method": method, "parameter": parameter, "run": first["run"]}
        for settings in SETTINGS:
            grid = part[part["settings"] == settings]
            row[settings] = _by_classes(dict(zip(grid["n_classes"], grid["values"], strict=True)))
        rows.append(row | {"published": _list(first["published"]) + (" per class" if per_class else "")})
    return pd.DataFrame(rows)


def _by_classes(grid: Mapping[int, str]) -> str:
    """Write a grid, once if it is the same for every number of classes."""
    texts = {n: _list(values) for n, values in grid.items()}
    if len(set(texts.values())) == 1:
        return texts[CLASS_NUMBERS[0]]
    return "; ".join(f"n={n}: {text}" for n, text in texts.items())


def _settings(text: str) -> str:
    return settings_text(parsed(text))


def _list(text: str) -> str:
    """Write a JSON list."""
    return ", ".join(value_text(value) for value in json.loads(text)) or MISSING


def result_tables(outcome: Outcome) -> list[Table]:
    """Return the tables of errors."""
    if compares_classifiers(outcome):
        return [ordinal_classifier_table(outcome)]
    return [results_table(outcome, measure) for measure in outcome.measures]


# In the order of the report; each gives the tables that apply to the outcome.
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
