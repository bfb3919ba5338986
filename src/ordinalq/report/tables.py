"""The tables of an experiment, beside the paper's.

What to use when: `all_tables` makes all that apply to an outcome; `results_table` is one measure; `rank_table` and
`collection_table` take several outcomes, one per data set.
"""

import json
from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from typing import Any

import numpy as np
import pandas as pd

from ordinalq import reference
from ordinalq.evaluation import not_worse_than_best, p_against_best
from ordinalq.experiments.outcome import Outcome
from ordinalq.measures import nmd
from ordinalq.methods.catalog import Entry, catalog
from ordinalq.ordinal import jaggedness
from ordinalq.protocols import protocol_table
from ordinalq.report.formats import MISSING, Cell, Column, Row, Table, plus_minus, settings_text, short, value_text
from ordinalq.report.significance import Ranking, rank
from ordinalq.validation import Floats

LEVEL = 0.01
# The reference's table of ordinal classifiers has its own rule: bold means p > .005.
CLASSIFIER_LEVEL = 0.005
BOLD = (
    "Bold: not significantly worse than the best mean of the column (Wilcoxon signed-rank test, "
    f"p >= {short(LEVEL, 2)}, no correction)."
)
QUICK = "Profile quick: fewer samples and a smaller classifier grid than the paper's; ratios to it say little."
CLASS_NUMBERS = (5, 10, 12)
# How the printed tables call a parameter of ours.
PRINTED_NAMES = {"held_out": "val_split", "n_bins": "n_bins_per_class", "distance": "ground_distance"}
KEYS = ["method", "protocol", "measure"]


def all_tables(outcome: Outcome) -> list[Table]:
    """Return every table that applies to an outcome."""
    if outcome.about["experiment"]["kind"] == "classifiers":
        tables = [ordinal_classifier_table(outcome)]
    else:
        tables = [results_table(outcome, measure) for measure in outcome.measures]
    tables += [rank_table([outcome]), selected_table(outcome), samples_table(outcome), classifier_grid_table(outcome)]
    if outcome.about["experiment"]["kind"] != "classifiers":
        tables.append(hyperparameter_table(outcome))
    return [*tables, protocols_table(outcome)]


def entries() -> dict[str, Entry]:
    """Return the methods of the catalog by their id."""
    return {entry.name: entry for entry in catalog()}


def display_name(method: str) -> str:
    """Return the paper's name of a method; other names stay.

    >>> display_name("OPACC"), display_name("LR-CC")
    ('o-PACC', 'LR-CC')
    """
    entry = entries().get(method)
    return method if entry is None else entry.paper_name


def group_of(method: str) -> str:
    """Return the group of a method: that of the catalog, or the classifier of "CLASSIFIER-QUANTIFIER".

    >>> group_of("OPACC"), group_of("OLR-AT-CC")
    ('new ordinal', 'OLR-AT')
    """
    entry = entries().get(method)
    return method.rpartition("-")[0] if entry is None else entry.group


def results(outcome: Outcome, protocol: str, measure: str) -> dict[str, Floats]:
    """Return the errors (B,) of the methods that have one for every test sample."""
    errors = outcome.errors(protocol, measure)
    longest = max((len(column) for column in errors.values()), default=0)
    return {name: column for name, column in errors.items() if len(column) == longest and np.isfinite(column).all()}


def result_rows(outcome: Outcome, measure: str) -> pd.DataFrame:
    """Return one row per protocol and method, with everything that is known about the cell."""
    table = reference.results()
    data = outcome.about["experiment"].get("paper")
    unconverged = _unconverged(outcome)
    rows = []
    for protocol in outcome.protocols:
        errors = results(outcome, protocol, measure)
        p_values = p_against_best(errors) if errors else {}
        bold = not_worse_than_best(errors, level=LEVEL) if errors else []
        for method in outcome.methods:
            column = errors.get(method)
            name = display_name(method)
            paper = table.get(name, {}).get(data, {}).get(protocol, {}).get(measure.upper(), {})
            chosen = _selected(outcome, method, protocol, measure)
            mean = np.nan if column is None else float(np.mean(column))
            rows.append(
                {
                    "method": method,
                    "name": name,
                    "group": group_of(method),
                    "protocol": protocol,
                    "measure": measure,
                    "mean": mean,
                    "std": np.nan if column is None else _std(column),
                    "n_samples": 0 if column is None else len(column),
                    "p_value": p_values.get(method, np.nan),
                    "bold": method in bold,
                    "paper_mean": paper.get("mean", np.nan),
                    "paper_std": paper.get("std", np.nan),
                    "paper_bold": paper.get("bold"),
                    "ratio": mean / paper["mean"] if paper else np.nan,
                    "classifier": one_line(chosen.get("classifier")),
                    "parameters": one_line(chosen.get("parameters")),
                    "unconverged": unconverged.get((method, protocol, measure), 0),
                }
            )
    return pd.DataFrame(rows)


def results_table(outcome: Outcome, measure: str) -> Table:
    """Return the errors of all methods under all protocols: mean ± std, boldface, the paper's figure and the ratio."""
    facts = result_rows(outcome, measure)
    columns = [Column("method", numeric=False)]
    cells: dict[str, list[Cell]] = {method: [Cell(display_name(method))] for method in outcome.methods}
    for protocol in outcome.protocols:
        part = facts[facts["protocol"] == protocol].set_index("method")
        compared = bool(part["paper_mean"].notna().any())
        names = ["mean ± std", "paper", "ratio"] if compared else ["mean ± std"]
        columns += [Column(name, protocol) for name in names]
        shades = _shades(part["mean"])
        for method, fact in part.iterrows():
            row = cells[str(method)]
            row.append(_mean_cell(fact["mean"], fact["std"], fact["bold"], shades.get(str(method))))
            if compared:
                row.append(_mean_cell(fact["paper_mean"], fact["paper_std"], bool(fact["paper_bold"])))
                row.append(_number(fact["ratio"], 2))
    notes = [
        f"Mean and standard deviation over test samples: {_sample_counts(outcome)}.",
        "Parameters were selected on validation samples of the same protocol by the same measure.",
        BOLD,
    ]
    if facts["paper_mean"].notna().any():
        data = outcome.about["experiment"]["paper"]
        notes.append(f"Paper: as printed for {data}, bold as printed. Ratio: our mean over the paper's.")
        notes += [] if outcome.about["experiment"]["profile"] == "full" else [QUICK]
    return Table(
        measure,
        f"{measure.upper()} on {outcome.about['data']['name']}",
        tuple(columns),
        tuple(Row(tuple(row), group_of(method)) for method, row in cells.items()),
        facts.drop(columns=["name", "group"]),
        (*notes, *_missing_notes(outcome, [measure])),
    )


def ordinal_classifier_table(outcome: Outcome) -> Table:
    """Return classifiers (rows) by quantifiers (columns): mean ± std, percent versus LR, and the paper's figure."""
    pairs = [method.rpartition("-")[::2] for method in outcome.methods]
    classifiers = list(dict.fromkeys(classifier for classifier, _ in pairs))
    quantifiers = list(dict.fromkeys(quantifier for _, quantifier in pairs))
    paper = reference.ordinal_classifiers()
    columns = [Column("classifier", numeric=False)]
    columns += [Column(name, q) for q in quantifiers for name in ("mean ± std", "vs LR, %", "paper")]
    unconverged = _unconverged(outcome)
    rows, facts = [], []
    for measure in outcome.measures:
        for protocol in outcome.protocols:
            errors = results(outcome, protocol, measure)
            comparable = protocol == "APP" and measure == "nmd"
            cells = {classifier: [Cell(classifier)] for classifier in classifiers}
            for quantifier in quantifiers:
                names = {c: f"{c}-{quantifier}" for c in classifiers if f"{c}-{quantifier}" in errors}
                column = {c: errors[name] for c, name in names.items()}
                p_values = p_against_best(column) if column else {}
                means = pd.Series({c: float(np.mean(values)) for c, values in column.items()}, dtype=float)
                shades = _shades(means)
                for classifier in classifiers:
                    values = column.get(classifier)
                    mean = np.nan if values is None else means[classifier]
                    std = np.nan if values is None else _std(values)
                    p_value = p_values.get(classifier, np.nan)
                    bold = bool(p_value > CLASSIFIER_LEVEL)
                    percent = 100 * (mean / means["LR"] - 1) if "LR" in means else np.nan
                    cell = paper.get(classifier, {}).get(quantifier, {}) if comparable else {}
                    cells[classifier] += [
                        _mean_cell(mean, std, bold, shades.get(classifier)),
                        _number(percent, 1, sign=classifier != "LR"),
                        Cell(short(cell["mean"]), cell["mean"], cell["bold"]) if cell else Cell(MISSING),
                    ]
                    method = f"{classifier}-{quantifier}"
                    chosen = _selected(outcome, method, protocol, measure)
                    facts.append(
                        {
                            "classifier": classifier,
                            "quantifier": quantifier,
                            "protocol": protocol,
                            "measure": measure,
                            "mean": mean,
                            "std": std,
                            "n_samples": 0 if values is None else len(values),
                            "p_value": p_value,
                            "bold": bold,
                            "percent_vs_lr": percent,
                            "paper_mean": cell.get("mean", np.nan),
                            "paper_bold": cell.get("bold"),
                            "classifier_parameters": one_line(chosen.get("classifier")),
                            "parameters": one_line(chosen.get("parameters")),
                            "unconverged": unconverged.get((method, protocol, measure), 0),
                        }
                    )
            rows += [Row(tuple(row), f"{measure.upper()}, {protocol}") for row in cells.values()]
    notes = (
        f"Mean and standard deviation over test samples: {_sample_counts(outcome)}. Percent: mean relative to LR.",
        f"Bold: p > {short(CLASSIFIER_LEVEL, 3)} against the best of the column (Wilcoxon), the rule of the reference.",
        "Paper: NMD on Amazon-OQ-BK under APP with other versions of data and quantifiers; for orientation only.",
        "A dash: ORidge and LAD have no posteriors, hence no PCC, PACC and SLD; or nothing is printed.",
        *_missing_notes(outcome, outcome.measures, absent=False),
    )
    title = f"Ordinal classifiers on {outcome.about['data']['name']}"
    return Table("ordinal_classifiers", title, tuple(columns), tuple(rows), pd.DataFrame(facts), notes)


def selected_table(outcome: Outcome) -> Table:
    """Return the selected configuration of each method, protocol and measure."""
    columns = (
        Column("method", numeric=False),
        Column("protocol", numeric=False),
        Column("measure", numeric=False),
        Column("classifier", numeric=False),
        Column("parameters", numeric=False),
        Column("validation error"),
        Column("smoothing"),
    )
    rows, facts = [], []
    for method in outcome.methods:
        for protocol in outcome.protocols:
            for measure in outcome.measures:
                chosen = _selected(outcome, method, protocol, measure)
                if not chosen:
                    continue
                rows.append(
                    Row(
                        (
                            Cell(display_name(method)),
                            Cell(protocol),
                            Cell(measure.upper()),
                            Cell(settings_text(parsed(chosen["classifier"]))),
                            Cell(settings_text(parsed(chosen["parameters"]))),
                            _number(chosen["error"], 4),
                            _number(chosen["smoothing"], 2),
                        ),
                        group_of(method),
                    )
                )
                facts.append(
                    {key: chosen[key] for key in (*KEYS, "error", "std", "smoothing", "n_samples", "unconverged")}
                    | {key: one_line(chosen[key]) for key in ("classifier", "parameters")}
                )
    notes = (
        "Validation error: mean over the validation samples, which differ from the test samples.",
        "Smoothing: mean jaggedness of the estimates over that of the truth; below 1 they are smoother than the truth.",
    )
    data = pd.DataFrame(facts, columns=[*KEYS, "classifier", "parameters", "error", "std", "smoothing", "n_samples",
                                        "unconverged"])  # fmt: skip
    return Table("selected", "Selected parameters", columns, tuple(rows), data, notes)


def samples_table(outcome: Outcome) -> Table:
    """Return what the test samples of each protocol are like: number, jaggedness and shift from the training set."""
    p_train = np.asarray(outcome.about["data"]["p_train"], dtype=np.float64)
    data = outcome.about["experiment"].get("paper")
    printed_rows = reference.protocols().get(str(data), {})
    columns = [Column("protocol", numeric=False), Column("test samples"), Column("jaggedness"), Column("shift")]
    if printed_rows:
        columns += [Column("jaggedness, paper"), Column("shift, paper")]
    rows, facts = [], []
    for protocol in outcome.protocols:
        P = truth(outcome, protocol)
        name = f"APP-OQ({reference.app_oq_percent(str(data))}%)" if protocol == "APP-OQ" else protocol
        paper = printed_rows.get(name, {})
        fact = {
            "protocol": protocol,
            "n_samples": len(P),
            "xi1": float(np.mean(jaggedness(P))),
            "nmd_to_training": float(np.mean(nmd(p_train, P))),
            "xi1_paper": paper.get("xi1", np.nan),
            "nmd_to_training_paper": paper.get("nmd_to_training", np.nan),
        }
        facts.append(fact)
        cells = [
            Cell(protocol),
            Cell(str(len(P)), len(P)),
            _number(fact["xi1"], 4),
            _number(fact["nmd_to_training"], 4),
        ]
        if printed_rows:
            cells += [_number(fact["xi1_paper"], 4), _number(fact["nmd_to_training_paper"], 4)]
        rows.append(Row(tuple(cells)))
    notes = (
        "Jaggedness: mean xi_1 of the true distributions. Shift: mean NMD between the training set and the sample.",
    )
    title = f"Test samples of {outcome.about['data']['name']}"
    return Table("samples", title, tuple(columns), tuple(rows), pd.DataFrame(facts), notes)


def protocols_table(outcome: Outcome) -> Table:
    """Return the paper's table of protocols, recomputed; the real distributions of Amazon are those of its samples."""
    vectors = None
    if outcome.about["experiment"].get("paper") == "Amazon-OQ-BK" and "real" in outcome.protocols:
        vectors = np.unique(truth(outcome, "real"), axis=0)
    facts = _protocols().copy() if vectors is None else protocol_table(amazon_vectors=vectors)
    columns = (
        Column("protocol", numeric=False),
        Column("ours", "jaggedness xi_1"),
        Column("paper", "jaggedness xi_1"),
        Column("ours", "shift NMD(p_L, p)"),
        Column("paper", "shift NMD(p_L, p)"),
    )
    rows = [
        Row(
            (
                Cell(str(fact["protocol"])),
                *(_number(float(fact[key]), 4) for key in ("xi1", "xi1_paper", "nmd", "nmd_paper")),
            ),
            str(fact["data"]),
        )
        for fact in facts.to_dict("records")
    ]
    notes = ["Means over 20,000 drawn samples of 1000 items; they do not depend on any classifier or method."]
    if vectors is None:
        notes.append("A dash in the row real of Amazon-OQ-BK: it needs the published samples of that data set.")
    notes.append("A dash at Fact-OQ: its training distribution p_L is not published.")
    notes.append("NPP: the printed row is a comment in the source of the paper; how it was made is not known.")
    return Table("protocols", "Protocols", columns, tuple(rows), facts, tuple(notes))


def hyperparameter_table(outcome: Outcome) -> Table:
    """Return the grids of the catalog for 5, 10 and 12 classes, beside the printed ones and those of the run."""
    columns = (
        Column("method", numeric=False),
        Column("parameter", numeric=False),
        Column("printed", numeric=False),
        Column("settings paper", numeric=False),
        Column("settings reference", numeric=False),
        Column("this run", numeric=False),
    )
    printed_grids = reference.grids()["quantifier_paper"]
    rows, facts = [], []
    for entry in catalog():
        paper = printed_grids[entry.paper_name]
        run = _values(outcome.validation[outcome.validation["method"] == entry.name]["parameters"])
        names = list(dict.fromkeys([*entry.grid(CLASS_NUMBERS[0]), *_own_names(paper), *run]))
        for name in names or [""]:
            grids = {s: {n: entry.grid(n, s).get(name, []) for n in CLASS_NUMBERS} for s in ("paper", "reference")}
            shown = paper.get(name) or paper.get(PRINTED_NAMES.get(name, ""), [])
            per_class = " per class" if name == "n_bins" and "n_bins_per_class" in paper else ""
            rows.append(
                Row(
                    (
                        Cell(entry.paper_name),
                        Cell(name or MISSING),
                        Cell(f"{_list(shown)}{per_class}"),
                        Cell(_by_classes(grids["paper"])),
                        Cell(_by_classes(grids["reference"])),
                        Cell(_list(run.get(name, []))),
                    ),
                    entry.group,
                )
            )
            facts += [
                {
                    "method": entry.name,
                    "parameter": name,
                    "settings": settings,
                    "n_classes": n,
                    "values": json.dumps(values),
                    "printed": json.dumps(shown),
                    "run": json.dumps(run.get(name, [])),
                }
                for settings, grid in grids.items()
                for n, values in grid.items()
            ]
    notes = (
        "Settings paper: as the text says. Settings reference: as the authors' program did.",
        "What depends on the number n of classes is given for 5, 10 and 12.",
        "n_bins of PDF and o-PDF is the total number of bins, n - 1 times the printed one.",
        "held_out is called val_split in the printed table.",
    )
    return Table("hyperparameters", "Hyperparameters of the methods", columns, tuple(rows), pd.DataFrame(facts), notes)


def classifier_grid_table(outcome: Outcome) -> Table:
    """Return the values of the classifier's parameters that were tried, beside the printed ones."""
    grids = reference.grids()
    if outcome.about["experiment"]["kind"] == "classifiers":
        printed_grids = grids["ordinal_classifier_experiment"]
        run = {
            name: _values(outcome.validation[outcome.validation["method"].map(group_of) == name]["classifier"])
            for name in dict.fromkeys(map(group_of, outcome.methods))
        }
        for values in run.values():
            values.pop("name", None)  # of the classifier itself
        pairs = [(name, _classifier_entry(printed_grids, name), values) for name, values in run.items()]
    else:
        values = _values(outcome.validation["classifier"])
        family = "Amazon-OQ-BK" if "C" in values else "Fact-OQ and UCI/OpenML"
        entry = dict(grids["classifier"][family])
        pairs = [(str(entry.pop("type")), entry, values)]
    columns = tuple(Column(name, numeric=False) for name in ("classifier", "parameter", "printed", "this run"))
    rows, facts = [], []
    for name, paper, values in pairs:
        for parameter in dict.fromkeys([*paper, *values]):
            shown = paper.get(parameter, [])
            shown = shown if isinstance(shown, list) else [shown]
            tried = values.get(parameter, [])
            rows.append(Row((Cell(name), Cell(parameter), Cell(_list(shown)), Cell(_list(tried)))))
            facts.append(
                {"classifier": name, "parameter": parameter, "printed": json.dumps(shown), "run": json.dumps(tried)}
            )
    data = pd.DataFrame(facts, columns=["classifier", "parameter", "printed", "run"])
    notes = (
        "A dash: not printed, or not varied in this run.",
        'For forests with out-of-bag scores, the printed "balanced" is "balanced_subsample" in recent scikit-learn.',
    )
    return Table("classifier_grid", "Hyperparameters of the classifier", columns, tuple(rows), data, notes)


def rankings(outcomes: Sequence[Outcome]) -> dict[tuple[str, str], Ranking]:
    """Rank the methods for each protocol and measure that all outcomes have.

    Of several outcomes, each is one block with its mean errors; of a single one, each test sample is a block. Methods
    without a result in some outcome are left out.
    """
    return {
        (protocol, measure): rank(errors)
        for (protocol, measure), errors in _blocks(outcomes).items()
        if errors
    }  # fmt: skip


def paper_rankings() -> dict[tuple[str, str], Ranking]:
    """Rank the methods by the paper's printed means, a data set being a block."""
    table = reference.results()
    found = {}
    for protocol in ("APP", "APP-OQ", "real"):
        for measure in ("nmd", "rnod"):
            blocks = [d for d, cells in table["CC"].items() if measure.upper() in cells.get(protocol, {})]
            found[protocol, measure] = rank(
                {
                    entry.name: [table[entry.paper_name][data][protocol][measure.upper()]["mean"] for data in blocks]
                    for entry in catalog()
                }
            )
    return found


def rank_table(outcomes: Sequence[Outcome]) -> Table:
    """Return average ranks over data sets, or over the test samples of a single one, beside those of the paper."""
    own, paper = rankings(outcomes), paper_rankings()
    methods = list(dict.fromkeys(method for outcome in outcomes for method in outcome.methods))
    compared = any(method in entries() for method in methods)
    columns = [Column("method", numeric=False)]
    cells: dict[str, list[Cell]] = {method: [Cell(display_name(method))] for method in methods}
    blocks = "data sets" if len(outcomes) > 1 else "test samples"
    facts, notes = [], []
    for (protocol, measure), ranking in own.items():
        printed_ranks = paper.get((protocol, measure)) if compared else None
        head = f"{measure.upper()}, {protocol}"
        columns += [Column("rank", head), Column("paper", head)] if printed_ranks else [Column("rank", head)]
        best = min(ranking.ranks.values())
        shades = _shades(pd.Series(ranking.ranks), logarithmic=False)
        for method in methods:
            value = ranking.ranks.get(method, np.nan)
            # The difference is not known where only one method was run, which then is the best one.
            bold = bool(value == best or value - best <= ranking.difference)
            cells[method].append(_number(value, 2, bold=bold, shade=shades.get(method)))
            other = printed_ranks.ranks.get(method, np.nan) if printed_ranks else np.nan
            if printed_ranks:
                cells[method].append(_number(other, 2))
            facts.append(
                {
                    "method": method,
                    "protocol": protocol,
                    "measure": measure,
                    "rank": value,
                    "n_blocks": ranking.n_blocks,
                    "critical_difference": ranking.difference,
                    "friedman": ranking.statistic,
                    "p_value": ranking.p_value,
                    "paper_rank": other,
                    "paper_n_blocks": printed_ranks.n_blocks if printed_ranks else 0,
                }
            )
        if np.isfinite(ranking.difference):
            p_value = f"p = {ranking.p_value:.2g}" if ranking.p_value else "p < 1e-300"
            notes.append(
                f"{head}: {ranking.n_blocks} {blocks}, Friedman's statistic {ranking.statistic:.1f} ({p_value}), "
                f"critical difference {ranking.difference:.2f} (Nemenyi, level .05)."
            )
    first = f"Rank: average over {blocks}, 1 is best; bold: within the critical difference of the best."
    if compared:
        first += " Paper: the same over the printed means of its data sets (six; two for RNOD and for real)."
    if len(outcomes) == 1:
        first += " Test samples share items and classifiers, hence the critical difference is optimistic."
    left_out = sorted({display_name(m) for m in methods for ranking in own.values() if m not in ranking.ranks})
    if left_out:
        notes.append(f"A dash: left out for want of results: {', '.join(left_out)}.")
    title = "Average ranks" + ("" if len(outcomes) > 1 else f" on {outcomes[0].about['data']['name']}")
    rows = tuple(Row(tuple(row), group_of(method)) for method, row in cells.items())
    return Table("ranking", title, tuple(columns), rows, pd.DataFrame(facts), (first, *notes))


def collection_table(outcomes: Sequence[Outcome], measure: str) -> Table:
    """Return the errors on several data sets side by side, with the paper's means."""
    methods = list(dict.fromkeys(method for outcome in outcomes for method in outcome.methods))
    columns = [Column("method", numeric=False)]
    cells: dict[str, list[Cell]] = {method: [Cell(display_name(method))] for method in methods}
    facts = []
    for outcome in outcomes:
        if measure not in outcome.measures:
            continue
        name = outcome.about["data"]["name"]
        part = result_rows(outcome, measure)
        facts.append(part.drop(columns=["name", "group"]).assign(data=name))
        for protocol in outcome.protocols:
            column = part[part["protocol"] == protocol].set_index("method")
            compared = bool(column["paper_mean"].notna().any())
            head = f"{name}, {protocol}"
            columns += [Column("mean ± std", head), Column("paper", head)] if compared else [Column("mean ± std", head)]
            shades = _shades(column["mean"])
            for method in methods:
                fact: Any = {"paper_mean": np.nan, "paper_bold": False}
                if method in column.index:
                    fact = column.loc[method]
                    cells[method].append(_mean_cell(fact["mean"], fact["std"], fact["bold"], shades.get(method)))
                else:
                    cells[method].append(Cell(MISSING))
                if compared:
                    cells[method].append(_number(fact["paper_mean"], 4, bold=bool(fact["paper_bold"])))
    notes = (
        "Mean and standard deviation over the test samples of each data set.",
        BOLD,
        "Paper: mean and boldface as printed.",
        *(f"{o.about['data']['name']}: {note}" for o in outcomes for note in _missing_notes(o, [measure])),
    )
    rows = tuple(Row(tuple(row), group_of(method)) for method, row in cells.items())
    data = pd.concat(facts, ignore_index=True)
    return Table(measure, f"{measure.upper()} on all data sets", tuple(columns), rows, data, notes)


def truth(outcome: Outcome, protocol: str) -> Floats:
    """Return the true distributions of the test samples of a protocol, (B, n)."""
    rows = outcome.truth[outcome.truth["protocol"] == protocol].sort_values("sample")
    return np.asarray(rows[[name for name in rows.columns if name.startswith("p_")]].to_numpy(), dtype=np.float64)


def parsed(text: Any) -> dict[str, Any]:
    """Read the parameters of a configuration from their JSON."""
    found = json.loads(text) if isinstance(text, str) and text else {}
    return found if isinstance(found, dict) else {}


def one_line(text: Any) -> str:
    """Return the JSON of a configuration on one line, for a cell of CSV; nothing where there is none."""
    return json.dumps(parsed(text)) if isinstance(text, str) and text else ""


def failures(outcome: Outcome) -> list[str]:
    """Say which methods failed, in how many configurations, and with what message."""
    lines = []
    for method in outcome.methods:
        rows = outcome.validation[outcome.validation["method"] == method]
        bad = rows[~np.isfinite(rows["error"].astype(float))]
        if len(bad):
            said = next((str(message) for message in bad["message"] if message and isinstance(message, str)), "")
            total = rows[["classifier", "parameters"]].drop_duplicates().shape[0]
            count = bad[["classifier", "parameters"]].drop_duplicates().shape[0]
            lines.append(
                f"{display_name(method)} failed in {count} of {total} configurations" + (f": {said}" if said else "")
            )
    return lines


def _blocks(outcomes: Sequence[Outcome]) -> dict[tuple[str, str], dict[str, Any]]:
    """Return (protocol, measure) -> method -> error of each block."""
    first = outcomes[0]
    blocks: dict[tuple[str, str], dict[str, Any]] = {}
    for measure in first.measures:
        for protocol in first.protocols:
            having = [o for o in outcomes if protocol in o.protocols and measure in o.measures]
            if len(having) < len(outcomes):
                continue
            errors = [results(outcome, protocol, measure) for outcome in outcomes]
            common = [method for method in errors[0] if all(method in found for found in errors)]
            if len(outcomes) == 1:
                blocks[protocol, measure] = errors[0]
            else:
                blocks[protocol, measure] = {m: [float(np.mean(found[m])) for found in errors] for m in common}
    return blocks


@cache
def _protocols() -> pd.DataFrame:
    """Return the table of protocols without the real distributions of Amazon; it takes seconds."""
    return protocol_table()


def _selected(outcome: Outcome, method: str, protocol: str, measure: str) -> dict[str, Any]:
    rows = outcome.selected
    for column, value in zip(KEYS, (method, protocol, measure), strict=True):
        rows = rows[rows[column] == value]
    return {str(key): value for key, value in rows.iloc[0].items()} if len(rows) else {}


def _unconverged(outcome: Outcome) -> dict[tuple[str, str, str], int]:
    """Count the test samples that did not converge: (method, protocol, measure) -> number, where there are any."""
    rows = outcome.estimates[~outcome.estimates["converged"].astype(bool)]
    return {key: int(count) for key, count in rows.groupby(KEYS).size().items()}  # type: ignore[misc]


def _missing_notes(outcome: Outcome, measures: Iterable[str], absent: bool = True) -> list[str]:
    """Say which cells are empty, and how many samples did not converge."""
    columns = [(protocol, measure) for measure in measures for protocol in outcome.protocols]
    found = [results(outcome, protocol, measure) for protocol, measure in columns]
    empty = [display_name(method) for method in outcome.methods if any(method not in column for column in found)]
    counts = _unconverged(outcome)
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


def _mean_cell(mean: float, std: float, bold: bool, shade: float | None = None) -> Cell:
    if not np.isfinite(mean):
        return Cell(MISSING)
    return Cell(plus_minus(mean, std) if np.isfinite(std) else short(mean), float(mean), bool(bold), shade)


def _number(value: float, decimals: int, *, bold: bool = False, shade: float | None = None, sign: bool = False) -> Cell:
    if not np.isfinite(value):
        return Cell(MISSING)
    text = f"{value:+.{decimals}f}" if sign else short(value, decimals) if decimals > 2 else f"{value:.{decimals}f}"
    return Cell(text, float(value), bold, shade)


def _shades(means: "pd.Series[float]", logarithmic: bool = True) -> dict[str, float]:
    """Return where each mean lies between the best (0) and the worst (1)."""
    finite = means[np.isfinite(means.astype(float)) & ((means > 0) if logarithmic else True)]
    if len(finite) < 2:
        return {}
    values = np.log(finite.to_numpy(dtype=float)) if logarithmic else finite.to_numpy(dtype=float)
    width = values.max() - values.min()
    scaled = (values - values.min()) / width if width > 0 else np.zeros(len(values))
    return {str(name): float(value) for name, value in zip(finite.index, scaled, strict=True)}


def _std(column: Floats) -> float:
    """Return the standard deviation over samples, divisor B - 1; NaN for one sample."""
    return float(np.std(column, ddof=1)) if len(column) > 1 else float("nan")


def _sample_counts(outcome: Outcome) -> str:
    return ", ".join(f"{len(truth(outcome, protocol))} ({protocol})" for protocol in outcome.protocols)


def _values(column: "pd.Series[str]") -> dict[str, list[Any]]:
    """Return which values each parameter takes in a column of JSON, in the order of appearance."""
    found: dict[str, list[Any]] = {}
    for text in column.drop_duplicates():
        for name, value in parsed(text).items():
            if value not in found.setdefault(name, []):
                found[name].append(value)
    return found


def _classifier_entry(grids: Mapping[str, Any], name: str) -> dict[str, Any]:
    """Return the printed grid of a classifier, whose key may name two of them."""
    return next((dict(grid) for key, grid in grids.items() if name in key.split("/")), {})


def _own_names(paper: Mapping[str, Any]) -> list[str]:
    own = {printed_name: name for name, printed_name in PRINTED_NAMES.items()}
    return [own.get(name, name) for name in paper]


def _list(values: Any) -> str:
    return ", ".join(value_text(value) for value in values) or MISSING


def _by_classes(grid: Mapping[int, list[Any]]) -> str:
    """Write a grid, once if it is the same for every number of classes."""
    texts: dict[int, str] = {n: _list(values) for n, values in grid.items()}
    if len(set(texts.values())) == 1:
        return texts[CLASS_NUMBERS[0]]
    return "; ".join(f"n={n}: {text}" for n, text in texts.items())
