"""The tables of parameters: what was selected, and which values were tried, beside those of the paper."""

import json
from collections.abc import Callable, Mapping
from typing import Any

import pandas as pd

from ordinalq.datasets import published as reference
from ordinalq.paper.experiments.outcome import Outcome
from ordinalq.paper.report.facts import KEYS, compares_classifiers, display_name, group_of, parsed, selected
from ordinalq.paper.report.formats import MISSING, Table, settings_text, value_text
from ordinalq.paper.report.tables import Show, lay_out, number, words
from ordinalq.quantifiers.catalog import BEYOND, known_methods

CLASS_NUMBERS = (5, 10, 12)
SETTINGS = ("paper", "reference")
# How the printed tables call a parameter of ours.
PRINTED_NAMES = {"held_out": "val_split", "n_bins": "n_bins_per_class", "distance": "ground_distance"}
OWN_NAMES = {printed: name for name, printed in PRINTED_NAMES.items()}
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
            words("method", "method", display_name),
            words("protocol", "protocol"),
            words("measure", "measure", str.upper),
            words("classifier", "classifier", _settings),
            words("parameters", "parameters", _settings),
        ],
        cells=[Show("validation error", "error", number(4)), Show("smoothing", "smoothing", number(2))],
        group=lambda fact: group_of(fact["method"]),
    )
    notes = (
        "Validation error: mean over the validation samples, which differ from the test samples.",
        "Smoothing: mean jaggedness of the estimates over that of the truth; below 1 they are smoother than the truth.",
    )
    title = "Selected parameters"
    return Table("selected", title, columns, rows, facts, notes, section="parameters", fold=title)


def hyperparameter_facts(outcome: Outcome) -> pd.DataFrame:
    """Return one row per method, parameter, settings and number of classes; values are JSON.

    Methods that are not in the paper are there if they were run, with what was tried.
    """
    printed = reference.grids()["quantifier_paper"]
    known = known_methods()
    names = [name for name, entry in known.items() if entry.group != BEYOND or name in outcome.methods]
    rows = []
    for method in [*names, *(name for name in outcome.methods if name not in known)]:
        paper = printed.get(display_name(method), {})
        run = _values(outcome.validation[outcome.validation["method"] == method]["parameters"])
        grid: Callable[[int, str], dict[str, list[Any]]]
        grid = known[method].grid if method in known else lambda n, settings: {}
        own = (OWN_NAMES.get(name, name) for name in paper)
        tried = [name for settings in SETTINGS for name in grid(CLASS_NUMBERS[0], settings)]
        for name in list(dict.fromkeys([*tried, *own, *run])) or [""]:
            shown = paper.get(name) or paper.get(PRINTED_NAMES.get(name, ""), [])
            rows += [
                {
                    "method": method,
                    "parameter": name,
                    "settings": settings,
                    "n_classes": n,
                    "values": json.dumps(grid(n, settings).get(name, [])),
                    "printed": json.dumps(shown),
                    "run": json.dumps(run.get(name, [])),
                }
                for settings in SETTINGS
                for n in CLASS_NUMBERS
            ]
    return pd.DataFrame(rows)


def hyperparameter_table(outcome: Outcome) -> Table:
    """Return the grids of the catalog for 5, 10 and 12 classes, beside the printed ones and those of the run."""
    facts = hyperparameter_facts(outcome)
    columns, rows = lay_out(
        _one_row_each(facts),
        rows=["method", "parameter"],
        heads=[words("method", "method", display_name), words("parameter", "parameter")],
        cells=[
            words("printed", "printed"),
            words("settings paper", "paper"),
            words("settings reference", "reference"),
            words("this run", "run", _list),
        ],
        group=lambda fact: group_of(fact["method"]),
    )
    notes = (
        "Settings paper: as the text says. Settings reference: as the authors' program did.",
        "What depends on the number n of classes is given for 5, 10 and 12.",
        "n_bins of PDF and o-PDF is the total number of bins, n - 1 times the printed one.",
    )
    title = "Hyperparameters of the methods"
    return Table("hyperparameters", title, columns, rows, facts, notes, section="parameters", fold=title)


def classifier_grid_table(outcome: Outcome) -> Table:
    """Return the values of the classifier's parameters that were tried, beside the printed ones."""
    rows = []
    for name, paper, values in _classifier_grids(outcome):
        for parameter in dict.fromkeys([*paper, *values]):
            shown = json.dumps(paper.get(parameter, []))
            run = json.dumps(values.get(parameter, []))
            rows.append({"classifier": name, "parameter": parameter, "printed": shown, "run": run})
    facts = pd.DataFrame(rows, columns=["classifier", "parameter", "printed", "run"])
    columns, laid = lay_out(
        facts,
        rows=["classifier", "parameter"],
        heads=[words("classifier", "classifier"), words("parameter", "parameter")],
        cells=[words("printed", "printed", _list), words("this run", "run", _list)],
    )
    notes = (
        "A dash: not printed, or not varied in this run.",
        'For forests with out-of-bag scores, the printed "balanced" is "balanced_subsample" in recent scikit-learn.',
    )
    title = "Hyperparameters of the classifier"
    return Table("classifier_grid", title, columns, laid, facts, notes, section="parameters", fold=title)


def _classifier_grids(outcome: Outcome) -> list[tuple[str, dict[str, list[Any]], dict[str, list[Any]]]]:
    """Return the name of each classifier, its printed grid, and the values that were tried.

    No grid is printed for the comparison of ordinal classifiers.
    """
    tried = outcome.validation
    if not compares_classifiers(outcome):
        values = _values(tried["classifier"])
        trees = outcome.about["experiment"].get("n_estimators")
        if trees is not None:
            values = {"n_estimators": [trees]} | values
        family = "logistic" if "C" in values else "forest"
        return [(CLASSIFIERS[family], reference.classifier_grid(family), values)]
    found: list[tuple[str, dict[str, list[Any]], dict[str, list[Any]]]] = []
    for name in dict.fromkeys(map(group_of, outcome.methods)):
        values = _values(tried[tried["method"].map(group_of) == name]["classifier"])
        values.pop("name", None)  # of the classifier itself
        found.append((name, {}, values))
    return found


def _values(column: "pd.Series[str]") -> dict[str, list[Any]]:
    """Return which values each parameter takes in a column of JSON, in the order of appearance."""
    found: dict[str, list[Any]] = {}
    for text in column.drop_duplicates():
        for name, value in parsed(text).items():
            if value not in found.setdefault(name, []):
                found[name].append(value)
    return found


def _one_row_each(facts: pd.DataFrame) -> pd.DataFrame:
    """Return one row per method and parameter, the grids as text."""
    paper = reference.grids()["quantifier_paper"]
    rows = []
    for (method, parameter), part in facts.groupby(["method", "parameter"], sort=False):
        first = part.iloc[0]
        per_class = parameter == "n_bins" and "n_bins_per_class" in paper.get(display_name(str(method)), {})
        row = {"method": method, "parameter": parameter, "run": first["run"]}
        for settings in SETTINGS:
            grid = part[part["settings"] == settings]
            row[settings] = _by_classes(dict(zip(grid["n_classes"], grid["values"], strict=True)))
        rows.append(row | {"printed": _list(first["printed"]) + (" per class" if per_class else "")})
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
