"""The report of an experiment: tables, ranks, figures and HTML."""

import csv
import io
import json
import re
import shutil
import subprocess
from html.parser import HTMLParser
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose
from outcomes import make_outcome
from outside_methods import Steady
from scipy.stats import friedmanchisquare, rankdata

import ordinalq as oq
from ordinalq.datasets import published
from ordinalq.metrics import p_against_best, wilcoxon
from ordinalq.paper.experiments.outcome import Outcome
from ordinalq.paper.report import figures, tables, write_report, write_summary
from ordinalq.paper.report.facts import display_name
from ordinalq.paper.report.figures import jaggedness_ranges, paper_plots, rank_plots
from ordinalq.paper.report.formats import (
    Cell,
    Column,
    Row,
    Show,
    Table,
    latex_text,
    lay_out,
    markdown_text,
    mean_and_std,
    number,
    short,
    words,
)
from ordinalq.paper.report.html import PAPER, applicable, departures, duration, summary
from ordinalq.paper.report.significance import rank
from ordinalq.paper.report.tables import claim_table, collection_table, paper_rankings, rankings
from ordinalq.quantifiers.catalog import BEYOND, Entry

ROOT = Path(__file__).parents[1]
CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
SHORT = {"n_classes": 5, "n_samples": 40}


@pytest.fixture(scope="module")
def outcome():
    """Twenty methods, of which one failed and one did not converge everywhere, under two protocols."""
    return make_outcome(failed=["OHDx"], unconverged=["RUN"])


@pytest.fixture(scope="module")
def report(tmp_path_factory):
    """The folder of a report on all methods, one protocol and one measure."""
    small = make_outcome(**SHORT, protocols=("APP",), measures=("nmd",), failed=["OHDx"])
    return write_report(small, tmp_path_factory.mktemp("report")).parent


def cells(table, method):
    """The cells of a method by the title of their column."""
    row = next(row for row in table.rows if row.cells[0].text == display_name(method))
    return {column.title: cell for column, cell in zip(table.columns, row.cells, strict=True)}


# Tables


def test_means_and_deviations_are_those_of_the_test_errors(outcome):
    table = tables.results_table(outcome, "nmd")
    for protocol in outcome.protocols:
        for method, errors in outcome.errors(protocol, "nmd").items():
            mean, std = short(errors.mean()), short(errors.std(ddof=1))
            assert cells(table, method)[f"{protocol} mean ± std"].text == f"{mean} ± {std}"


def test_bold_cells_agree_with_the_evaluation(outcome):
    for measure in outcome.measures:
        table = tables.results_table(outcome, measure)
        for protocol in outcome.protocols:
            found = p_against_best(outcome.errors(protocol, measure))
            expected = [method for method, p in found.items() if p >= 0.01]
            bold = [m for m in outcome.methods if cells(table, m)[f"{protocol} mean ± std"].bold]
            assert bold == expected
            assert 0 < len(bold) < 20


def test_paper_and_ratio_are_printed_next_to_our_mean(outcome):
    table = tables.results_table(outcome, "nmd")
    printed = published.results()["o-PACC"]["OpenMl-fried-OQ"]["APP-OQ"]["NMD"]
    mean = outcome.errors("APP-OQ", "nmd")["OPACC"].mean()
    row = cells(table, "OPACC")
    assert row["APP-OQ paper"].text == f"{short(printed['mean'])} ± {short(printed['std'])}"
    assert row["APP-OQ paper"].bold == printed["bold"]
    assert row["APP-OQ ratio"].text == f"{mean / printed['mean']:.2f}"
    assert_allclose(row["APP-OQ ratio"].value, mean / printed["mean"])


def test_large_ratios_are_listed_with_the_place_of_their_explanation():
    outcome = make_outcome(n_samples=20, measures=("nmd",))
    outcome.about["experiment"]["profile"] = "full"
    table = tables.results_table(outcome, "nmd")
    (note,) = [note for note in table.notes if "see the departures" in note]
    for fact in table.data.to_dict("records"):
        named = f"{display_name(fact['method'])} {fact['ratio']:.2f} ({fact['protocol']})" in note
        assert named == bool(np.isfinite(fact["ratio"]) and not 0.8 <= fact["ratio"] <= 1.25), fact["method"]
    told = {entry.number: entry.here for entry in applicable(make_outcome(n_classes=10, n_samples=5))}
    assert "RUN is better than ACC" in told["39"]


def test_columns_of_the_paper_appear_only_with_published_figures(outcome):
    def has_paper(outcome, measure):
        return any(column.name == "paper" for column in tables.results_table(outcome, measure).columns)

    assert has_paper(outcome, "nmd")
    assert not has_paper(outcome, "rnod")  # of the UCI and OpenML data, only NMD is printed
    assert has_paper(make_outcome("fact-oq", paper="Fact-OQ", n_classes=12, n_samples=20), "rnod")
    assert not has_paper(make_outcome("mine", paper=None, **SHORT), "nmd")


def test_rows_follow_the_catalog_in_its_groups(outcome):
    rows = tables.results_table(outcome, "nmd").rows
    assert [row.cells[0].text for row in rows] == [entry.paper_name for entry in oq.catalog(beyond=False)]
    assert [row.group for row in rows] == [entry.group for entry in oq.catalog(beyond=False)]


def test_a_failed_method_is_a_dash_with_a_footnote(outcome):
    table = tables.results_table(outcome, "nmd")
    assert cells(table, "OHDx")["APP mean ± std"].text == "-"
    assert cells(table, "OHDx")["APP paper"].text != "-"
    assert any("A dash" in note and "o-HDx" in note and "o-HDy" not in note for note in table.notes)
    assert np.isnan(table.data.set_index(["method", "protocol"]).loc[("OHDx", "APP"), "mean"])


def test_samples_that_did_not_converge_are_counted_in_a_footnote(outcome):
    table = tables.results_table(outcome, "nmd")
    assert any("did not converge" in note and "RUN 3 (NMD, APP)" in note for note in table.notes)
    assert not any("did not converge" in note for note in tables.results_table(make_outcome(**SHORT), "nmd").notes)
    assert table.data.groupby("method")["unconverged"].sum()["RUN"] == 6


def test_csv_gives_back_the_numbers_exactly(outcome):
    for table in tables.all_tables(outcome):
        rows = list(csv.DictReader(io.StringIO(table.csv())))
        assert len(rows) == len(table.data)
        for name in table.data.columns:
            column = [row[name] for row in rows]
            if table.data[name].dtype == "float64":
                again = [float(text or "nan") for text in column]
                np.testing.assert_array_equal(again, table.data[name], err_msg=f"{table.name} {name}")
            else:
                assert column == ["" if value is None else str(value) for value in table.data[name]]


def test_csv_of_results_contains_everything_about_a_cell(outcome):
    data = tables.results_table(outcome, "nmd").data
    assert list(data.columns) == [
        *("method", "protocol", "measure", "mean", "std", "n_samples", "p_value", "bold", "paper_mean", "paper_std"),
        *("paper_bold", "ratio", "classifier", "parameters", "unconverged"),
    ]
    row = data[(data["method"] == "OPACC") & (data["protocol"] == "APP")].iloc[0]
    assert row["p_value"] == p_against_best(outcome.errors("APP", "nmd"))["OPACC"]
    assert json.loads(row["parameters"]) == {"tau": 1e-3}
    assert json.loads(row["classifier"]) == {"max_depth": 4, "class_weight": "balanced"}


def test_tables_are_identical_for_identical_results_on_any_machine_in_any_order():
    def text(outcome):
        return {(t.name, suffix): content for t in tables.all_tables(outcome) for suffix, content in t.files().items()}

    first, second = make_outcome(**SHORT, failed=["SLD"]), make_outcome(**SHORT, failed=["SLD"])
    second.about.update(machine={"python": "other"}, seconds={"test": 1e9}, versions={"code": "x"}, command="x")
    second = Outcome(
        second.about,
        second.validation,
        second.selected.sample(frac=1, random_state=1),
        second.estimates.sample(frac=1, random_state=1),
        second.truth.sample(frac=1, random_state=1),
    )
    assert text(first) == text(second)


def test_selected_table_has_the_row_of_the_smallest_validation_error(outcome):
    data = tables.selected_table(outcome).data
    rows = outcome.validation[(outcome.validation["method"] == "OHDy") & (outcome.validation["protocol"] == "APP")]
    best = rows[rows["measure"] == "nmd"].sort_values("error").iloc[0]
    row = data[(data["method"] == "OHDy") & (data["protocol"] == "APP") & (data["measure"] == "nmd")].iloc[0]
    assert json.loads(row["parameters"]) == json.loads(best["parameters"])
    assert row["error"] == best["error"]
    assert "\n" not in row["parameters"]
    assert "OHDx" not in set(data["method"])


def test_hyperparameters_are_those_of_the_catalog_next_to_the_printed_ones(outcome):
    table = tables.hyperparameter_table(outcome)
    data = table.data.set_index(["method", "parameter", "settings", "n_classes"])
    for entry in oq.catalog(beyond=False):
        for settings in ("reference", "paper"):
            for n in (5, 10, 12):
                for name, values in entry.grid(n, settings).items():
                    assert json.loads(data.loc[(entry.name, name, settings, n), "values"]) == values
    row = data.loc[("OPDF", "n_bins", "reference", 10)]
    assert (json.loads(row["published"]), json.loads(row["run"])) == ([5, 10], [55, 110])
    texts = [cell.text for row in table.rows for cell in row.cells]
    assert "n=5: 20, 40; n=10: 55, 110; n=12: 55, 110" in texts
    assert "5, 10 per class" in texts


def test_classifier_grid_shows_the_tried_values(outcome):
    data = tables.classifier_grid_table(outcome).data.set_index("parameter")
    assert json.loads(data.loc["max_depth", "run"]) == [4, 12]
    assert json.loads(data.loc["max_depth", "published"]) == [4, 8, 12]
    assert json.loads(data.loc["class_weight", "run"]) == ["balanced", None]
    assert set(data.index) == {"class_weight", "criterion", "max_depth", "n_estimators"}
    assert (data.loc["n_estimators", "published"], data.loc["n_estimators", "run"]) == ("[]", "[100]")
    assert not any("val_split" in note for note in tables.hyperparameter_table(outcome).notes)
    compared = tables.classifier_grid_table(make_outcome(kind="classifiers", **SHORT, protocols=("APP",))).data
    assert set(compared["published"]) == {"[]"}  # the paper prints no grid of these classifiers
    row = compared[(compared["classifier"] == "OLR-AT") & (compared["parameter"] == "C")].iloc[0]
    assert json.loads(row["run"]) == [0.1, 1.0]
    assert "name" not in set(compared["parameter"])


def test_samples_table_describes_the_drawn_samples(outcome):
    data = tables.samples_table(outcome).data.set_index("protocol")
    P = outcome.true_distributions("APP-OQ")
    assert_allclose(data.loc["APP-OQ", "xi1"], oq.simplex.jaggedness(P).mean())
    assert_allclose(
        data.loc["APP-OQ", "nmd_to_training"], oq.metrics.nmd(np.array(outcome.about["data"]["p_train"]), P).mean()
    )
    amazon = make_outcome("amazon-oq-bk", paper="Amazon-OQ-BK", **SHORT, protocols=("APP", "APP-OQ", "real"))
    printed = tables.samples_table(amazon).data.set_index("protocol")
    assert_allclose(printed.loc["APP-OQ", ["xi1_paper", "nmd_to_training_paper"]].to_list(), [0.033, 0.2775])


def test_protocol_table_takes_the_real_distributions_of_amazon_from_its_samples(outcome):
    missing = tables.protocols_table(outcome)
    assert cells(missing, "real")["jaggedness xi_1 ours"].text == "-"
    amazon = make_outcome("amazon-oq-bk", paper="Amazon-OQ-BK", **SHORT, protocols=("APP", "real"))
    found = cells(tables.protocols_table(amazon), "real")["jaggedness xi_1 ours"].value
    assert_allclose(found, oq.simplex.jaggedness(amazon.true_distributions("real")).mean(), rtol=0.1)


def test_protocol_table_takes_the_training_distribution_of_fact_from_its_file():
    def shift(outcome):
        table = tables.protocols_table(outcome)
        row = next(row for row in table.rows if row.group == "Fact-OQ" and row.cells[0].text == "APP")
        return dict(zip((column.title for column in table.columns), row.cells, strict=True))["shift NMD(p_L, p) ours"]

    fact = make_outcome("fact-oq", paper="Fact-OQ", n_classes=12, n_samples=5, measures=("nmd",), methods=["CC"])
    assert shift(fact).value > 0
    assert shift(make_outcome(**SHORT, methods=["CC"], measures=("nmd",))).text == "-"


def test_table_of_ordinal_classifiers_compares_with_logistic_regression():
    outcome = make_outcome(kind="classifiers", paper="Amazon-OQ-BK", **SHORT, protocols=("APP",), measures=("nmd",))
    table = tables.ordinal_classifier_table(outcome)
    assert [row.cells[0].text for row in table.rows] == ["LR", "OLR-AT", "OLR-IT", "ORidge", "LAD"]
    errors = outcome.errors("APP", "nmd")
    percent = 100 * (errors["OLR-AT-PACC"].mean() / errors["LR-PACC"].mean() - 1)
    row = cells(table, "OLR-AT")
    assert row["PACC vs LR, %"].text == f"{percent:+.1f}"
    assert row["PACC paper"].text == ".0203"
    assert cells(table, "ORidge")["PACC mean ± std"].text == "-"
    p_values = p_against_best({name: errors[f"{name}-CC"] for name in ("LR", "OLR-AT", "OLR-IT", "ORidge", "LAD")})
    for name, p in p_values.items():
        assert cells(table, name)["CC mean ± std"].bold == (p >= 0.01)
    assert any("p >= .01" in note for note in table.notes)
    assert any("M from 40%" in note for note in table.notes)
    outcome.about["experiment"]["settings"] = "paper"
    assert any("with a classifier in ten folds" in note for note in tables.ordinal_classifier_table(outcome).notes)


def test_classifiers_on_own_data_have_no_published_figures():
    outcome = make_outcome("mine", paper=None, kind="classifiers", **SHORT, protocols=("APP",), measures=("nmd",))
    for table in (tables.ordinal_classifier_table(outcome), claim_table(outcome)):
        assert "Amazon" not in table.markdown()
        assert not any("paper" in column.title for column in table.columns), table.name
    assert tables.ordinal_classifier_table(outcome).data["paper_mean"].isna().all()


def test_tables_of_a_single_method_and_sample_are_whole():
    outcome = make_outcome("mine", paper=None, n_classes=3, n_samples=1, methods=["CC"], measures=("nmd",))
    for table in tables.all_tables(outcome):
        assert table.markdown()
        assert table.latex()
    assert cells(tables.results_table(outcome, "nmd"), "CC")["APP mean ± std"].bold
    assert cells(tables.rank_table([outcome]), "CC")["NMD, APP rank"].text == "1.00"


# The paper's claims


@pytest.fixture(scope="module")
def claimed():
    """An outcome in which o-EDy is worse than EDy, and o-SLD has the errors of SLD."""
    outcome = make_outcome(n_classes=5, n_samples=300, measures=("nmd",), failed=["OHDx"])
    estimates = outcome.estimates
    by = dict(iter(estimates.groupby("method")))
    swapped = [by["EDy"].assign(method="OEDy"), by["OEDy"].assign(method="EDy"), by["SLD"].assign(method="OSLD")]
    rest = estimates[~estimates["method"].isin(["EDy", "OEDy", "OSLD"])]
    return Outcome(outcome.about, outcome.validation, outcome.selected, pd.concat([rest, *swapped]), outcome.truth)


def test_plain_and_regularized_are_compared_on_the_run_itself(claimed):
    data = claim_table(claimed).data.set_index(["second", "protocol"])
    assert set(data.index.get_level_values(0)) == {"OACC", "OPACC", "OHDx", "OHDy", "OSLD", "OEDy", "OPDF"}
    errors = claimed.errors("APP", "nmd")
    row = data.loc["OPACC", "APP"]
    assert_allclose(row["change"], 100 * (errors["OPACC"].mean() / errors["PACC"].mean() - 1))
    assert row["p_value"] == wilcoxon(errors["PACC"], errors["OPACC"])
    assert_allclose(row["paper_change"], 100 * (0.0149 / 0.0150 - 1))
    assert row["result"] == "holds"
    assert data.loc["OEDy", "APP"]["result"] == "fails"
    assert data.loc["OEDy", "APP"]["change"] > 0
    assert data.loc["OSLD", "APP"]["result"] == "open"
    assert data.loc["OHDx", "APP"]["result"] == ""  # it failed
    shown = cells(claim_table(claimed), "EDy → o-EDy")
    assert (shown["APP claim"].text, shown["APP paper, %"].text) == ("fails", "-30.1")
    assert cells(claim_table(claimed), "HDx → o-HDx")["APP claim"].text == "-"


def test_summary_counts_the_pairs_in_which_the_claim_holds_fails_and_is_open(claimed):
    results = claim_table(claimed).data["result"].value_counts()
    (sentence,) = [text for text in summary(claimed) if "main claim" in text]
    assert f"holds in {results['holds']} of 12 comparisons, fails in {results['fails']} (" in sentence
    assert f"is open in {results['open']}" in sentence
    assert "EDy → o-EDy under NMD, APP: +" in sentence
    assert not any("main claim" in text for text in summary(make_outcome(**SHORT, methods=["CC", "PACC"])))


def test_ranks_and_means_that_disagree_decide_nothing(claimed):
    # Better in most samples, far worse in a few: the mean rises while the ranks say "better".
    errors = claimed.errors("APP", "nmd")["ACC"] * 0.5
    errors[:20] += 10
    estimates = claimed.estimates.copy()
    estimates.loc[(estimates["method"] == "OACC") & (estimates["protocol"] == "APP"), "error"] = errors
    changed = Outcome(claimed.about, claimed.validation, claimed.selected, estimates, claimed.truth)
    row = claim_table(changed).data.set_index(["second", "protocol"]).loc["OACC", "APP"]
    assert row["p_value"] < 0.01
    assert row["result"] == "open"


def test_logistic_regression_is_compared_with_every_other_classifier():
    outcome = make_outcome(kind="classifiers", paper="Amazon-OQ-BK", **SHORT, protocols=("APP",), measures=("nmd",))
    data = claim_table(outcome).data.set_index("second")
    assert len(data) == 2 * 5 + 2 * 2
    errors = outcome.errors("APP", "nmd")
    for other, row in data.iterrows():
        lr = f"LR-{other.rpartition('-')[2]}"
        p = wilcoxon(errors[lr], errors[other])
        better = errors[lr].mean() < errors[other].mean()
        assert row["result"] in ("open", "holds" if better else "fails"), other
        assert (row["result"] == "open") >= (p >= 0.01)
    assert_allclose(data.loc["OLR-AT-SLD", "paper_change"], 100 * (0.0216 / 0.0163 - 1))
    (sentence,) = [text for text in summary(outcome) if "logistic regression" in text]
    assert f"of {len(data)} comparisons" in sentence


def test_summary_explains_its_words_before_it_uses_them(claimed):
    text = summary(claimed)
    for word, meaning in (("NMD", "normalized match distance"), ("APP", "artificial prevalence"), ("APP-OQ", "20%")):
        first = next(sentence for sentence in text if re.search(rf"\b{word}\b", sentence))
        assert meaning in first
    assert any("outperform the existing ones holds" in sentence for sentence in text)
    assert any("jagged estimates, holds in" in sentence for sentence in text)


def test_page_has_the_claim_as_table_figure_and_sentence(report):
    page = Page((report / "report.html").read_text(encoding="utf-8"))
    assert {"table-plain_and_regularized", "figure-pairs_nmd"} <= set(page.ids)
    assert "The paper's main claim" in page.text


# Methods that the paper does not have


@pytest.mark.parametrize("in_catalog", [False, True])
def test_a_method_outside_the_paper_has_its_group_and_no_printed_figures(tmp_path, monkeypatch, in_catalog):
    methods = ["CC", "OPACC", "Steady"]
    outcome = make_outcome(**SHORT, methods=methods, protocols=("APP",), measures=("nmd",))
    if in_catalog:
        known = [*oq.catalog(beyond=False), Entry(Steady, BEYOND)]
        monkeypatch.setattr("ordinalq.quantifiers.catalog.catalog", lambda: known)
    text = Page(write_report(outcome, tmp_path).read_text(encoding="utf-8")).text
    assert "beyond the paper" in text
    table = tables.results_table(outcome, "nmd")
    assert [row.group for row in table.rows] == ["non-ordinal", "new ordinal", "beyond the paper"]
    assert cells(table, "Steady")["APP mean ± std"].text != "-"
    assert cells(table, "Steady")["APP paper"].text == cells(table, "Steady")["APP ratio"].text == "-"
    assert cells(tables.rank_table([outcome]), "Steady")["NMD, APP paper"].text == "-"
    grids = tables.hyperparameter_table(outcome)
    assert cells(grids, "Steady")["published"].text == "-"
    assert [row.cells[0].text for row in grids.rows][-1] == "Steady"
    assert {plot.name for plot in figures.all_plots(outcome)} >= {"error_nmd", "ranks_nmd_app"}


def test_a_report_without_any_method_of_the_paper_compares_with_nothing():
    outcome = make_outcome(**SHORT, methods=["A", "B"], protocols=("APP",), measures=("nmd",))
    for table in (tables.results_table(outcome, "nmd"), tables.rank_table([outcome])):
        assert not any(column.name == "paper" for column in table.columns)
        assert not any(note.startswith("Paper") or " Paper: " in note for note in table.notes)


# One layout


def test_layout_puts_facts_into_rows_and_blocks_of_columns():
    facts = pd.DataFrame(
        {
            "method": ["a", "b", "a"],
            "protocol": ["x", "x", "y"],
            "mean": [0.1, 0.4, 0.2],
            "std": [0.01, np.nan, 0.02],
            "bold": [True, False, True],
            "paper": [np.nan, np.nan, 0.3],
        }
    )
    columns, rows = lay_out(
        facts,
        ["method"],
        [words("method", "method", str.upper)],
        [mean_and_std(shade="log"), Show("paper", "paper", number(2), needs="paper")],
        across=["protocol"],
        above=lambda fact: fact["protocol"],
        group=lambda fact: f"group of {fact['method']}",
    )
    assert [column.title for column in columns] == ["method", "x mean ± std", "y mean ± std", "y paper"]
    assert [[cell.text for cell in row.cells] for row in rows] == [
        ["A", ".1000 ± .0100", ".2000 ± .0200", "0.30"],
        ["B", ".4000", "-", "-"],
    ]
    assert [cell.bold for cell in rows[0].cells] == [False, True, True, False]
    assert [row.cells[1].shade for row in rows] == [0.0, 1.0]
    assert [row.group for row in rows] == ["group of a", "group of b"]


# Forms of a table


def test_markdown_has_as_many_cells_in_every_line(outcome):
    for table in tables.all_tables(outcome):
        lines = [line for line in table.markdown().splitlines() if line.startswith("|")]
        assert {len(re.findall(r"(?<!\\)\|", line)) for line in lines} == {len(table.columns) + 1}


def test_latex_is_balanced_with_as_many_cells_in_every_line(outcome):
    for table in tables.all_tables(outcome):
        text = table.latex()
        bare = re.sub(r"\\[{}\\&%$#_]", "", text)
        assert bare.count("{") == bare.count("}")
        for name in ("table", "tabular", "minipage"):
            assert text.count(f"\\begin{{{name}}}") == text.count(f"\\end{{{name}}}") == 1
        body = text[text.index("\\toprule") : text.index("\\bottomrule")]
        for line in body.splitlines():
            if line.endswith("\\\\"):
                spans = [int(n) for n in re.findall(r"\\multicolumn\{(\d+)\}", line)]
                n_cells = len(re.findall(r"(?<!\\)&", line)) + 1 - len(spans) + sum(spans)
                assert n_cells == len(table.columns)


def test_special_characters_are_escaped_in_every_form():
    name = r"5% of n_bins & ^2 ~ {x} #1 $ \a <b> | *"
    table = Table(
        "x", name, (Column("a_b", numeric=False), Column("c")), (Row((Cell(name), Cell("1"))),), pd.DataFrame()
    )
    text = table.latex()
    body = text[text.index("\\midrule") :].splitlines()[1]
    assert (
        re.sub(r"\\(textbackslash|textasciicircum|textasciitilde|textless|textgreater|textbar)\{\}", "", body).count(
            "\\"
        )
        == len(re.findall(r"\\[%_&{}#$]", body)) + len(re.findall(r"\\\\$", body)) * 2
    )
    assert latex_text("o-PACC ± 5%") == r"o-PACC $\pm$ 5\%"
    assert markdown_text("a|b_c*<script>\nd & e") == r"a\|b\_c\*&lt;script&gt; d &amp; e"


def test_groups_of_columns_and_rows_have_headings():
    columns = (Column("method", numeric=False), Column("mean", "APP"), Column("paper", "APP"), Column("mean", "real"))
    rows = tuple(
        Row(tuple(Cell(text) for text in name * 4), group) for name, group in (("a", "x"), ("b", "x"), ("c", "y"))
    )
    table = Table("t", "T", columns, rows, pd.DataFrame())
    assert table.spans() == [("", 1), ("APP", 2), ("real", 1)]
    assert "\\cmidrule(lr){2-3}\\cmidrule(lr){4-4}" in table.latex()
    assert re.findall(r"^\| \*(.)\*", table.markdown(), re.MULTILINE) == ["x", "y"]


# Ranks


def test_friedman_statistic_is_that_of_scipy_with_and_without_ties(rng):
    for E in (rng.random((5, 30)), np.round(rng.random((6, 20)), 1)):
        ranking = rank({str(i): column for i, column in enumerate(E)})
        expected = friedmanchisquare(*E)
        assert_allclose([ranking.statistic, ranking.p_value], [expected.statistic, expected.pvalue])
        assert_allclose(list(ranking.ranks.values()), rankdata(E, axis=0).mean(axis=1))


@pytest.mark.parametrize(("k", "quantile"), [(2, 1.960), (3, 2.343), (5, 2.728), (10, 3.164)])
def test_critical_difference_has_the_quantiles_of_demsar(rng, k, quantile):
    # Demsar, JMLR 7 (2006), table 5 (a).
    ranking = rank({str(i): column for i, column in enumerate(rng.random((k, 14)))})
    assert_allclose(ranking.difference / np.sqrt(k * (k + 1) / (6 * 14)), quantile, atol=1e-3)


def test_errors_that_differ_by_rounding_share_a_rank():
    ranking = rank({"a": [0.1, 0.2], "b": [0.1 + 1e-16, 0.2 - 1e-16], "c": [0.3, 0.3]})
    assert ranking.ranks == {"a": 1.5, "b": 1.5, "c": 3.0}
    assert rank({"a": [1.0, 1.0], "b": [1.0, 1.0]}).p_value == 1


def test_bars_join_exactly_the_pairs_within_the_critical_difference(rng):
    for _ in range(20):
        ranking = rank({str(i): column for i, column in enumerate(rng.random((8, 12)) + 0.1 * np.arange(8)[:, None])})
        close = {
            frozenset((a, b))
            for a in ranking.ranks
            for b in ranking.ranks
            if a != b and abs(ranking.ranks[a] - ranking.ranks[b]) <= ranking.difference
        }
        groups = ranking.groups()
        assert {frozenset((a, b)) for bar in groups for a in bar for b in bar if a != b} == close
        assert not any(set(a) < set(b) for a in groups for b in groups)


def test_ranks_reject_invalid_tables_of_errors():
    with pytest.raises(ValueError, match="at least one method"):
        rank({})
    with pytest.raises(ValueError, match="one finite number per method and block"):
        rank({"a": [0.1, np.nan], "b": [0.1, 0.2]})


def test_ranks_over_data_sets_use_mean_errors_and_leave_failed_methods_out():
    outcomes = [make_outcome(f"data {i}", **SHORT, seed=i, failed=["SLD"] if i == 1 else []) for i in range(3)]
    ranking = rankings(outcomes)["APP", "nmd"]
    methods = [method for method in outcomes[0].methods if method != "SLD"]
    means = np.array([[outcome.errors("APP", "nmd")[m].mean() for m in methods] for outcome in outcomes])
    assert list(ranking.ranks) == methods
    assert_allclose(list(ranking.ranks.values()), rankdata(means, axis=1).mean(axis=0))
    table = tables.rank_table(outcomes)
    assert cells(table, "SLD")["NMD, APP rank"].text == "-"
    assert any("left out" in note and "SLD" in note for note in table.notes)


def test_ranks_of_the_paper_come_from_its_printed_means():
    ranking = paper_rankings()["APP", "nmd"]
    table = published.results()
    naive = {
        method: np.mean(
            [
                sum(other[d]["APP"]["NMD"]["mean"] < cell[d]["APP"]["NMD"]["mean"] for other in table.values())
                + (1 + sum(other[d]["APP"]["NMD"]["mean"] == cell[d]["APP"]["NMD"]["mean"] for other in table.values()))
                / 2
                for d in cell
            ]
        )
        for method, cell in table.items()
    }
    assert ranking.n_blocks == 6
    assert_allclose(
        [ranking.ranks[entry.name] for entry in oq.catalog(beyond=False)],
        [naive[e.paper_name] for e in oq.catalog(beyond=False)],
    )


# Departures


def test_departures_are_those_of_the_ledger():
    text = (ROOT / "docs" / "departures.md").read_text(encoding="utf-8")
    printed = dict(re.findall(r"^\| (\d+(?: \(continued\))?) \| (.+?) \|", text, re.MULTILINE))
    assert {entry.number: entry.title for entry in departures()} == printed


def test_conditions_of_departures_name_things_that_exist():
    methods = {entry.name for entry in oq.catalog(beyond=False)}
    for entry in departures():
        assert set(entry.applies.get("methods", [])) <= methods, entry.number
        assert set(entry.applies.get("data", [])) <= {"amazon", "fact", "uci"}, entry.number


def test_departures_that_apply_depend_on_data_methods_and_classifier():
    def numbers(*arguments, **settings):
        return {entry.number for entry in applicable(make_outcome(*arguments, **SHORT, **settings))}

    fried = numbers("fried")
    assert {"12", "17", "26", "30", "31", "33"} <= fried
    assert not {"2", "8", "20", "22", "23"} & fried
    assert not {"1", "12", "26"} & numbers("fried", methods=["CC", "PACC"])
    assert {"20", "21"} <= numbers("fact-oq", paper="Fact-OQ")
    assert "22" in numbers("amazon-oq-bk", paper="Amazon-OQ-BK")
    assert not {"16 (continued)", "17", "31"} & numbers("mine", paper=None)
    assert "23" in numbers("amazon-oq-bk", kind="classifiers", paper=None)
    assert "34" not in numbers("amazon-oq-bk", kind="classifiers", paper=None)  # which inverts the matrix


def test_settings_of_the_paper_list_only_remaining_departures():
    outcome = make_outcome(**SHORT)
    published = {entry.number: entry.here for entry in applicable(outcome)}
    outcome.about["experiment"]["settings"] = "paper"
    paper = {entry.number: entry.here for entry in applicable(outcome)}
    assert {"9", "10", "15", "16"} <= set(published) - set(paper)
    assert "ratios to them say little" in paper["17"]  # the printed figures are of other bins
    assert "cannot be followed" in paper["18"]
    assert "bins of PDF, as published" in paper["13"]
    assert paper["26"] == published["26"]
    assert all(paper.values())


def test_departures_of_trees_are_those_of_each():
    only_arc = {entry.number for entry in applicable(make_outcome(**SHORT, methods=["ARC"]))}
    assert "11" not in only_arc  # its classifiers are trained on the items of their node
    assert "10" in only_arc


# Figures


def drawn_texts(figure):
    """The texts of a figure that are inside it, with their boxes: titles, labels, ticks in view, legend."""
    figure.canvas.draw()
    texts = [text for legend in figure.legends for text in legend.get_texts()]
    for axes in figure.axes:
        if not axes.axison and not axes.texts:
            continue
        texts += [axes.title, *axes.texts]
        for axis in (axes.xaxis, axes.yaxis) if axes.axison else ():
            low, high = sorted(axis.get_view_interval())
            ticks = [tick for tick in axis.get_major_ticks() if low <= tick.get_loc() <= high]
            texts += [axis.label, *(tick.label1 for tick in ticks)]
    texts = [text for text in texts if text.get_visible() and text.get_text().strip()]
    return [(text.get_text(), text.get_window_extent().padded(-1)) for text in texts]


@pytest.mark.parametrize("draw", ["error", "claim", "shift", "smoothing", "prevalence", "ranks"])
def test_no_labels_overlap_or_leave_the_figure_with_twenty_methods(monkeypatch, draw):
    from matplotlib.figure import Figure

    seen = []

    def check(figure, target, **options):
        if isinstance(target, io.BytesIO):
            return
        seen.extend(drawn_texts(figure))
        for i, (name, box) in enumerate(seen):
            assert figure.bbox.x0 <= box.x0 <= box.x1 <= figure.bbox.x1, f"{name!r} leaves the figure"
            for other, second in seen[i + 1 :]:
                assert not box.overlaps(second), f"{name!r} and {other!r} overlap"

    monkeypatch.setattr(Figure, "savefig", check)
    outcome = make_outcome(**SHORT, protocols=("APP", "APP-OQ", "real"), measures=("nmd",))
    if draw == "ranks":
        list(rank_plots({("APP", "nmd"): rankings([outcome])["APP", "nmd"]}, "over test samples"))
    elif draw == "prevalence":
        figures.prevalence_plot(outcome, "APP")
    else:
        getattr(figures, f"{draw}_plot")(outcome, "nmd")
    assert len(seen) > 20


def test_drawings_are_the_same_every_time_and_use_unique_ids():
    outcome = make_outcome(**SHORT, protocols=("APP",), measures=("nmd",), methods=["CC", "PACC", "OPACC"])
    one, two = figures.error_plot(outcome, "nmd"), figures.error_plot(outcome, "nmd")
    assert (one.svg, one.png) == (two.svg, two.png)
    ids = re.findall(r'\bid="([^"]+)"', one.inline())
    assert len(ids) == len(set(ids))
    used = set(re.findall(r'href="#([^"]+)"', one.inline())) | set(re.findall(r"url\(#([^)]+)\)", one.inline()))
    assert used <= set(ids)


def test_smoothing_path_holds_all_but_tau_at_the_selected_values():
    outcome = make_outcome(**SHORT, methods=["CC", "OHDy", "OPACC"], measures=("nmd",))
    taus, _, errors = figures.tau_paths(outcome, "OHDy", "nmd")["APP"]
    assert taus == [1e-5, 1e-3, 1e-1]
    rows = outcome.validation[(outcome.validation["method"] == "OHDy") & (outcome.validation["protocol"] == "APP")]
    best = outcome.selected[(outcome.selected["method"] == "OHDy") & (outcome.selected["protocol"] == "APP")].iloc[0]
    n_bins = json.loads(best["parameters"])["n_bins"]
    for tau, error in zip(taus, errors, strict=True):
        row = rows[(rows["parameters"] == json.dumps({"n_bins": n_bins, "tau": tau}, indent=1))]
        assert error == row[row["classifier"] == best["classifier"]]["error"].item()
    assert figures.tau_paths(outcome, "CC", "nmd") == {}


def test_bins_have_equal_numbers_and_true_means(rng):
    x, y = rng.random(95), rng.random(95)
    centres, means = figures.binned(x, y)
    assert len(centres) == 10
    assert (np.diff(centres) > 0).all()
    first = np.argsort(x)[:10]
    assert_allclose([centres[0], means[0]], [x[first].mean(), y[first].mean()])


def test_figures_of_the_paper_are_drawn_with_their_jaggedness():
    names = [plot.name for plot in paper_plots()]
    assert names == [
        *("examples_smooth_and_jagged", "examples_orders", "amazon_categories", "fact_spectrum", "jaggedness_ranges")
    ]
    by_name = {plot.name: plot for plot in paper_plots()}
    assert "parabola that fit" in by_name["examples_orders"].caption
    assert "YouGov" in by_name["jaggedness_ranges"].caption


def test_ranges_of_the_surveys_are_the_printed_ones():
    ranges = jaggedness_ranges()
    assert ranges["YouGov, Royals: 9, n = 4"] == (0.015, 0.047, 0.106)
    assert ranges["YouGov, Sunak: 5, n = 5"] == (0.001, 0.009, 0.024)
    assert_allclose(ranges["Amazon reviews: 28, n = 5"], [0.00707, 0.0175, 0.03705], atol=2e-4)
    assert_allclose(ranges["FACT, Crab nebula: 1, n = 12"], 0.01147, atol=1e-5)


# The page


class Page(HTMLParser):
    """Collects tags, ids, addresses and text; complains about tags that are not closed."""

    VOID = frozenset({"meta", "br", "link", "img", "input", "hr"})

    def __init__(self, text):
        super().__init__()
        self.open, self.tags, self.ids, self.loaded, self.text = [], [], [], [], ""
        self.feed(text)
        self.close()

    def handle_starttag(self, tag, attrs):
        attributes = dict(attrs)
        self.tags.append(tag)
        self.ids += [attributes["id"]] if "id" in attributes else []
        self.loaded += [value for name, value in attrs if name in ("src", "srcset", "data") and tag != "svg"]
        self.loaded += [attributes["href"]] if "href" in attributes and tag not in ("a", "use") else []
        if tag not in self.VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.handle_starttag(tag, attrs)
        if tag not in self.VOID:
            self.open.pop()

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.text += data


def test_report_has_tables_figures_and_one_page(report):
    names = {path.relative_to(report).as_posix() for path in report.rglob("*.*")}
    assert {"report.html", "tables/nmd.md", "tables/nmd.tex", "tables/nmd.csv", "tables/ranking.csv"} <= names
    assert {"tables/protocols.md", "tables/hyperparameters.tex", "tables/selected.csv"} <= names
    assert {
        "figures/error_nmd.svg",
        "figures/error_nmd.png",
        "figures/shift_nmd.svg",
        "figures/jaggedness_nmd.svg",
    } <= names
    assert {"figures/smoothing_nmd.svg", "figures/prevalence_app.svg", "figures/ranks_nmd_app.png"} <= names
    assert not any(".partial" in name for name in names)
    assert (report / "report.html").stat().st_size < 5e6


def test_page_is_whole_and_loads_nothing(report):
    text = (report / "report.html").read_text(encoding="utf-8")
    page = Page(text)
    assert page.open == []
    assert len(page.ids) == len(set(page.ids))
    assert page.loaded == []
    style = text[text.index("<style>") : text.index("</style>")]
    assert "url(" not in style
    assert "@import" not in style
    assert text.count("<script") == 1
    for section in ("summary", "results", "figures", "ranking", "run", "departures", "cite", "again"):
        assert section in page.ids


def test_a_new_table_is_in_the_files_and_on_the_page(tmp_path, monkeypatch):
    def made(outcome):
        rows = (Row((Cell("first"), Cell("1.25", 1.25))),)
        columns = (Column("what", numeric=False), Column("number"))
        facts = pd.DataFrame({"what": ["first"], "number": [1.25]})
        places = {"new_beside_results": {}, "new_folded": {"section": "parameters", "fold": "Open me"}}
        places |= {"new_section": {"section": "quality"}}
        return [Table(name, f"Title of {name}", columns, rows, facts, **place) for name, place in places.items()]

    monkeypatch.setattr(tables, "MAKERS", [*tables.MAKERS, made])
    outcome = make_outcome(**SHORT, methods=["CC", "PACC"], protocols=("APP",), measures=("nmd",))
    text = write_report(outcome, tmp_path).read_text(encoding="utf-8")
    ids = Page(text).ids
    order = ["results", "table-new_beside_results", "parameters", "table-new_folded", "quality", "table-new_section"]
    places = [ids.index(name) for name in [*order, "cite"]]
    assert places == sorted(places)
    assert "<summary>Open me</summary>" in text
    assert '<a href="#quality">Quality</a>' in text
    assert (tmp_path / "tables" / "new_section.csv").read_text() == "what,number\nfirst,1.25\n"


def test_every_table_and_figure_is_on_the_page_once(report):
    ids = Page((report / "report.html").read_text(encoding="utf-8")).ids
    assert {name for name in ids if name.startswith("table-")} == {
        f"table-{path.stem}" for path in (report / "tables").glob("*.csv")
    }
    assert {name for name in ids if name.startswith("figure-")} == {
        f"figure-{path.stem}" for path in (report / "figures").glob("*.png")
    }


def test_links_of_the_page_lead_to_its_files(report):
    text = (report / "report.html").read_text(encoding="utf-8")
    links = [link for link in re.findall(r'<a href="([^"#]+)"', text) if not link.startswith("https://doi.org/")]
    assert len(links) > 20
    for link in links:
        assert (report / link).is_file(), link


def test_page_lists_runs_failures_and_the_command_to_repeat_them(report):
    text = Page((report / "report.html").read_text(encoding="utf-8")).text
    for part in (
        "ordinalq reproduce fried --profile quick",
        "876",
        "scikit-learn",
        "1 min 2 s",
        "synthetic, for a test",
    ):
        assert part in text
    assert "o-HDx failed in 36 of 36 configurations: no <b>minimum</b> found" in text
    assert "class 10 has 29 items & is repeated" in text


def test_everything_from_outside_is_escaped(tmp_path):
    evil = '<script>alert("x")</script>'
    outcome = make_outcome(evil, paper=None, **SHORT, protocols=("APP",), measures=("nmd",), methods=["CC", "OPACC"])
    outcome.about["data"]["notes"] = [evil]
    outcome.about["data"]["classes"] = [evil, "a & b", "$x_1$", "\\", "5"]
    outcome.about["damaged"] = [evil]
    path = write_report(outcome, tmp_path)
    text = path.read_text(encoding="utf-8")
    assert text.count("alert(") == text.count("&lt;script&gt;alert(&#34;x&#34;)") > 3
    assert Page(text).tags.count("script") == 1
    assert "<script" not in (tmp_path / "tables" / "nmd.md").read_text(encoding="utf-8")


def test_citation_is_that_of_the_citation_file():
    text = (ROOT / "CITATION.cff").read_text(encoding="utf-8")
    for value in (PAPER["doi"], PAPER["title"], PAPER["journal"]):
        assert value in text
    for name in re.findall(r"family-names: (\w+)", text):
        assert name in PAPER["authors"]


def test_durations_are_readable():
    assert [duration(s) for s in (0.031, 42.4, 3600, 90061)] == ["0.031 s", "42 s", "1 h 0 min", "25 h 1 min"]


def test_summary_of_several_data_sets_has_errors_ranks_and_page(tmp_path):
    few = ["CC", "PACC", "OPACC"]
    outcomes = [
        make_outcome(name, paper=paper, **SHORT, methods=few, measures=("nmd",), seed=i)
        for i, (name, paper) in enumerate([("fried", "OpenMl-fried-OQ"), ("yolanda", "OpenMl-Yolanda-OQ")])
    ]
    path = write_summary(outcomes, tmp_path)
    page = Page(path.read_text(encoding="utf-8"))
    assert page.open == []
    assert "Experiments on 2 data sets" in page.text
    data = pd.read_csv(tmp_path / "tables" / "nmd.csv")
    assert set(data["data"]) == {"fried", "yolanda"}
    table = collection_table(outcomes, "nmd")
    mean = outcomes[1].errors("APP", "nmd")["PACC"].mean()
    assert cells(table, "PACC")["yolanda, APP mean ± std"].text.startswith(short(mean))
    assert (
        cells(table, "PACC")["yolanda, APP paper"].value
        == (published.results()["PACC"]["OpenMl-Yolanda-OQ"]["APP"]["NMD"]["mean"])
    )
    assert (tmp_path / "figures" / "ranks_nmd_app.svg").is_file()
    with pytest.raises(ValueError, match="at least one outcome"):
        write_summary([], tmp_path)


@pytest.mark.skipif(CHROMIUM is None, reason="needs chromium")
def test_page_sorts_in_a_browser_without_any_error(report, tmp_path):
    text = (report / "report.html").read_text(encoding="utf-8")
    probe = """<script>
    const table = document.getElementById("table-nmd");
    const head = Array.from(table.tHead.rows[1].cells).find(cell => cell.textContent === "mean ± std");
    const names = () => Array.from(table.tBodies[0].rows).filter(row => !row.classList.contains("group"))
      .map(row => row.cells[0].textContent).join(" ");
    const states = [];
    for (let i = 0; i < 3; i++) {
      head.querySelector("button").click();
      states.push(head.getAttribute("aria-sort") + ": " + names());
    }
    document.body.dataset.states = states.join("; ");
    document.body.dataset.wide = String(document.documentElement.scrollWidth > window.innerWidth);
    </script>"""
    copy = tmp_path / "probe.html"
    copy.write_text(text.replace("</body>", probe + "</body>"), encoding="utf-8")
    command = [CHROMIUM, "--headless", "--no-sandbox", "--disable-gpu", "--disable-background-networking",
               "--enable-logging=stderr", f"--user-data-dir={tmp_path / 'profile'}", "--window-size=420,900",
               "--dump-dom", copy.as_uri()]  # fmt: skip
    run = subprocess.run(command, capture_output=True, text=True, timeout=60, check=True)
    assert "CONSOLE" not in run.stderr
    body = re.search(r"<body([^>]*)>", run.stdout).group(1)
    ascending, descending, restored = re.search(r'data-states="([^"]*)"', body).group(1).split("; ")
    data = pd.read_csv(report / "tables" / "nmd.csv").dropna(subset=["mean"]).sort_values("mean", kind="stable")
    order = [display_name(method) for method in data["method"]]
    assert ascending == f"ascending: {' '.join([*order, 'o-HDx'])}"
    assert descending == f"descending: {' '.join([*order[::-1], 'o-HDx'])}"
    assert restored == f"none: {' '.join(entry.paper_name for entry in oq.catalog(beyond=False))}"
    assert 'data-wide="false"' in body  # tables scroll, the report does not
