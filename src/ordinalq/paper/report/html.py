"""Report of a run as one HTML file that needs no network.

It has sentences, departures from the paper, and sections.
"""

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from importlib.metadata import version
from importlib.resources import files
from itertools import product
from typing import Any, NamedTuple

import numpy as np

from ordinalq._utils.extras import require_extra
from ordinalq.datasets import CATALOG as DATASETS
from ordinalq.paper.experiments.config import split_pair
from ordinalq.paper.experiments.outcome import Outcome
from ordinalq.paper.report import facts
from ordinalq.paper.report.facts import data_name, display_name, failures, parsed
from ordinalq.paper.report.figures import Plot
from ordinalq.paper.report.formats import Table, short
from ordinalq.paper.report.tables import claim_sentences, result_facts

with require_extra("paper", "writing a report"):
    from jinja2 import Environment, StrictUndefined
    from markupsafe import Markup

# Sentences: what was done, which methods are best, which conclusions of the paper hold

NEW = "new ordinal"  # the paper's own group of methods
# What the names of measures and protocols stand for, where they first occur.
MEANING = {
    "nmd": "NMD, the normalized match distance, is the distance by which an estimate must be moved to become the "
    "truth, as a part of the way from all mass in the lowest class to all in the highest: 0 is "
    "perfect, .01 a hundredth of that way.",
    "md": "MD, the match distance, is how much mass times how many classes an estimate must be moved to become the "
    "truth.",
    "rnod": "RNOD, the root normalized order-aware divergence, is between 0 and 1 too; it squares the error of each "
    "class and weights it by the distance between classes, so that a few large errors count more than many small ones.",
    "rsnod": "RSNOD is RNOD made symmetric in truth and estimate.",
    "rnadw": "RNADW is RNOD averaged over all classes, those without items included.",
    "APP": "APP, the artificial prevalence protocol, draws the class distribution of each sample at random, every one "
    "with the same probability.",
    "APP-OQ": "APP-OQ keeps of these samples {part}, since distributions over ordered classes tend to be smooth.",
    "real": "The protocol real has class distributions that were seen in nature.",
}


def summary(outcome: Outcome) -> list[str]:
    """Return sentences on the run, the best methods, and the published results.

    The terms are explained, too.
    """
    words = [MEANING[word] for word in (*outcome.measures, *outcome.protocols) if word in MEANING]
    sentences = [_task(outcome), *(word.format(part=percent_kept(outcome)) for word in words)]
    sentences += [*best_sentences(outcome), *_new_methods(outcome), *claim_sentences(outcome), *_ratios(outcome)]
    return sentences + ([] if outcome.about["experiment"]["profile"] == "full" else [facts.QUICK])


def short_summary(outcome: Outcome) -> list[str]:
    """Return the best method under the first protocol, and the paper's claim.

    The second sentence states whether the claim holds.
    """
    return [*list(best_sentences(outcome))[:1], *list(claim_sentences(outcome))[:1]]


def best_sentences(outcome: Outcome) -> Iterator[str]:
    """State for each measure and protocol which methods are best."""
    for measure, protocol in product(outcome.measures, outcome.protocols):
        errors = facts.results(outcome, protocol, measure)
        if not errors:
            yield f"No method has a result for {measure.upper()} under {protocol}."
            continue
        means = {method: short(float(np.mean(column))) for method, column in errors.items()}
        competing = facts.competing(errors)
        best = facts.best_of(errors, competing)
        beyond = [method for method in errors if method not in competing]
        as_good = [method for method, p in facts.p_values(errors).items() if p >= facts.LEVEL]
        others = [_unbroken(method) for method in as_good if method not in (best, *beyond)]
        text = f"{measure.upper()} under {protocol}: {_unbroken(best)} has the smallest mean error, {means[best]}"
        among = " of the paper's" if beyond else ""
        if others:
            text += f"; not significantly worse{among}: {', '.join(others)}"
        elif len(errors) > len(beyond) + 1:
            text += f", and all others{among} are worse"
        more = ", ".join(f"{_unbroken(method)} {means[method]}" for method in beyond)
        yield f"{text}. Beyond the paper: {more}." if beyond else f"{text}."


def percent_kept(outcome: Outcome) -> str:
    """State which of the APP samples APP-OQ keeps."""
    fraction = outcome.about["experiment"].get("app_oq")
    return "the smoothest ones" if fraction is None else f"the smoothest {100 * float(fraction):g}%"


def _task(outcome: Outcome) -> str:
    """State what was done."""
    data = outcome.about["data"]
    what = "classifiers in quantifiers" if facts.compares_classifiers(outcome) else "methods"
    samples = sum(len(outcome.true_distributions(one)) for one in outcome.protocols if one != "APP-OQ")
    items = f" of {data['sample_size']:,} items each" if "sample_size" in data else ""
    return (
        f"{len(outcome.methods)} {what} learned from {data['n_train']:,} labelled items, and estimated how the items "
        f"of {samples:,} unlabelled samples{items} are distributed over {len(data['classes'])} ordered classes."
    )


def _new_methods(outcome: Outcome) -> Iterator[str]:
    """Yield a sentence on how often a method proposed by the paper is best.

    There is none unless both such methods and others were run.
    """
    columns = {(m, p): facts.results(outcome, p, m) for m, p in product(outcome.measures, outcome.protocols)}
    best = {column: facts.best_of(errors, facts.competing(errors)) for column, errors in columns.items() if errors}
    groups = {facts.group_of(method) for method in outcome.methods}
    if not best or NEW not in groups or groups == {NEW}:
        return
    others = {column: method for column, method in best.items() if facts.group_of(method) != NEW}
    lost = [f"; {_unbroken(method)} is best under {m.upper()}, {p}" for (m, p), method in others.items()]
    yield (
        "The paper's conclusion that its regularized methods outperform the existing ones holds for the best mean "
        f"error in {len(best) - len(lost)} of {len(best)} columns{''.join(lost)}."
    )


def _ratios(outcome: Outcome) -> Iterator[str]:
    """Compare the mean errors with the published ones."""
    for measure in [] if facts.compares_classifiers(outcome) else outcome.measures:
        ratios = result_facts(outcome, measure)["ratio"].dropna()
        if len(ratios):
            yield (
                f"Our {measure.upper()} over the paper's: median {ratios.median():.2f} "
                f"(from {ratios.min():.2f} to {ratios.max():.2f}, {len(ratios)} cells)."
            )


def _unbroken(method: str) -> str:
    """Return the name of a method with hyphens at which no line ends."""
    return facts.display_name(method).replace("-", "\N{NON-BREAKING HYPHEN}")


# Departures from the published text that apply to a run; docs/departures.md lists them in full


@dataclass(frozen=True)
class Departure:
    """Entry of the ledger: number, title, description, and affected runs.

    ``applies`` contains conditions that must all be met. Each lists properties of a run: methods, families of
    classifiers, kinds of data, names of data sets, kinds of experiments, protocols, numbers of classes. ``nowhere``
    means that no run is affected. ``paper`` describes the behaviour with settings "paper" if it differs. It is empty if
    these follow the published text.
    """

    number: str
    title: str
    here: str
    applies: dict[str, Any]
    paper: str | None = None


def departures() -> list[Departure]:
    """Return the whole ledger, in the order of the numbers."""
    text = (files("ordinalq") / "paper" / "report" / "departures.json").read_text(encoding="utf-8")
    return [Departure(**entry) for entry in json.loads(text)]


def applicable(outcome: Outcome) -> list[Departure]:
    """Return the departures that concern a run."""
    experiment, data = outcome.about["experiment"], outcome.about["data"]
    own: dict[str, set[Any]] = {
        "methods": {part for name in outcome.methods for part in (name, split_pair(name)[1])},
        "families": _families(outcome),
        "data": {_kind_of_data(str(data["name"]))},
        "names": {data["name"]},
        "kinds": {experiment["kind"]},
        "protocols": set(outcome.protocols),
        "n_classes": {len(data["classes"])},
    }
    found = [
        entry
        for entry in departures()
        if not entry.applies.get("nowhere") and all(own[key] & set(values) for key, values in entry.applies.items())
    ]
    if experiment["settings"] == "paper":
        found = [entry if entry.paper is None else replace(entry, here=entry.paper) for entry in found]
    return [entry for entry in found if entry.here]


def _families(outcome: Outcome) -> set[str]:
    """Return the family of the classifiers.

    It is named by the experiment or by their parameters.
    """
    named = outcome.about["experiment"].get("family")
    if named:
        return {str(named)}
    names = {key for text in outcome.validation["classifier"].unique() for key in parsed(text)}
    forest = {"max_depth", "criterion", "n_estimators", "max_features"} & names
    return {"forest"} if forest else {"logistic"} if "C" in names else set()


def _kind_of_data(name: str) -> str:
    """Return which data of the paper a data set belongs to, or "own"."""
    if name not in {entry.name for entry in DATASETS}:
        return "own"
    return next((kind for kind in ("amazon", "fact") if name.startswith(kind)), "uci")


# The HTML file

PAPER = {
    "authors": "Mirko Bunse, Alejandro Moreo, Fabrizio Sebastiani and Martin Senz",
    "title": "Regularization-Based Methods for Ordinal Quantification",
    "journal": "Data Mining and Knowledge Discovery",
    "year": "2024",
    "doi": "10.1007/s10618-024-01067-2",
}
SOFTWARE = "ordinalq: ordinal quantification and unfolding"
# The sections of a report in their order: name in the navigation, and title. Those of tables and plots
# are there if some are; others come before "cite".
SECTIONS = {
    "summary": ("Summary", "Summary"),
    "results": ("Results", "Results"),
    "figures": ("Figures", "Figures"),
    "ranking": ("Ranking", "Ranking"),
    "parameters": ("Parameters", "Parameters"),
    "run": ("What was run", "What was run"),
    "departures": ("Departures", "Departures from the paper"),
    "background": ("Background", "Background: smooth and jagged distributions"),
    "cite": ("Cite", "How to cite"),
    "again": ("Run again", "How to run it again"),
}
ALWAYS = ("summary", "run", "departures", "cite", "again")


class Section(NamedTuple):
    """Section of a report.

    ``folds`` are titles with tables and plots. Folds without a title are always open.
    """

    name: str
    label: str
    title: str
    folds: list[tuple[str, list[Table | Plot]]]


def run_page(outcome: Outcome, tables: Sequence[Table], plots: Sequence[Plot]) -> str:
    """Return the report of one experiment."""
    experiment = outcome.about["experiment"]
    return _render(
        title=str(experiment["title"]),
        subtitle=f"{data_name(outcome)}, settings {experiment['settings']}, profile {experiment['profile']}",
        tiles=_tiles(outcome),
        summary=summary(outcome),
        sections=page_sections(tables, plots),
        facts=_facts(outcome),
        departures=applicable(outcome),
        warnings=_warnings(outcome),
        runs=[outcome.about],
    )


def summary_page(outcomes: Sequence[Outcome], tables: Sequence[Table], plots: Sequence[Plot]) -> str:
    """Return the report of several experiments together."""
    found: dict[str, Departure] = {d.number: d for outcome in outcomes for d in applicable(outcome)}
    named = [(data_name(outcome), outcome) for outcome in outcomes]
    return _render(
        title=f"Experiments on {len(outcomes)} data sets",
        subtitle=", ".join(map(data_name, outcomes)),
        tiles=[
            ("data sets", str(len(outcomes))),
            ("methods", str(len({method for outcome in outcomes for method in outcome.methods}))),
            ("computing time", duration(sum(_seconds(outcome) for outcome in outcomes))),
        ],
        summary=[f"{name}: {sentence}" for name, one in named for sentence in short_summary(one)],
        sections=page_sections(tables, plots),
        facts=[(name, str(outcome.about["data"]["source"])) for name, outcome in named],
        departures=sorted(found.values(), key=lambda one: int(one.number.split()[0])),
        warnings=[f"{name}: {warning}" for name, outcome in named for warning in _warnings(outcome)],
        runs=[outcome.about for outcome in outcomes],
    )


def page_sections(tables: Sequence[Table], plots: Sequence[Plot]) -> list[Section]:
    """Return the sections of a report.

    Every table and every plot is in one section. A plot is after its table.
    """
    items: dict[str, list[Table | Plot]] = {}
    for table in tables:
        after_table = [plot for plot in plots if plot.after_table == table.name]
        items.setdefault(table.section, []).extend([table, *after_table])
    names = {table.name for table in tables}
    for plot in plots:
        if plot.after_table not in names:
            items.setdefault(plot.section, []).append(plot)
    known = list(SECTIONS)
    order = [*known[:-2], *(name for name in items if name not in known), *known[-2:]]
    found = []
    for name in order:
        if name in items or name in ALWAYS:
            folds: dict[str, list[Table | Plot]] = {"": []}
            for item in items.get(name, []):
                folds.setdefault(item.fold, []).append(item)
            label, title = SECTIONS.get(name, (name.capitalize(), name.capitalize()))
            found.append(Section(name, label, title, list(folds.items())))
    return found


def duration(seconds: float) -> str:
    """Write a duration.

    >>> duration(3725), duration(61.5), duration(0.25)
    ('1 h 2 min', '1 min 2 s', '0.25 s')
    """
    if seconds < 10:
        return f"{seconds:.2g} s"
    whole = round(seconds)
    hours, minutes = whole // 3600, whole % 3600 // 60
    return f"{hours} h {minutes} min" if hours else f"{minutes} min {whole % 60} s" if minutes else f"{whole} s"


def _render(**content: Any) -> str:
    text = (files("ordinalq") / "paper" / "report" / "template.html").read_text(encoding="utf-8")
    environment = Environment(autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True)
    # The drawings are our own, and matplotlib escapes the text in them.
    environment.filters["drawing"] = lambda plot: Markup(plot.inline())  # noqa: S704
    environment.filters["duration"] = duration
    environment.tests["table"] = lambda item: isinstance(item, Table)
    return str(environment.from_string(text).render(bibtex=_bibtex(), paper=PAPER, **content))


def _tiles(outcome: Outcome) -> list[tuple[str, str]]:
    data = outcome.about["data"]
    return [
        ("training items", f"{data['n_train']:,}"),
        ("classes", str(len(data["classes"]))),
        ("methods", str(len(outcome.methods))),
        ("configurations", f"{outcome.about['configurations']:,}"),
        ("test samples", f"{data['n_test_samples']:,}"),
        ("computing time", duration(_seconds(outcome))),
    ]


def _facts(outcome: Outcome) -> list[tuple[str, str]]:
    experiment, data = outcome.about["experiment"], outcome.about["data"]
    facts = [
        ("Experiment", f"{experiment['name']} ({experiment['kind']})"),
        ("Data set", str(data["name"])),
        ("Source", str(data["source"])),
        ("Split", str(data["split"])),
        ("Items for training", f"{data['n_train']:,}"),
        ("Items for validation and test", f"{data['n_validation']:,} and {data['n_test']:,}"),
        ("Samples", _sample_text(data)),
        ("Features", f"{data['n_features']:,}"),
        ("Classes", ", ".join(map(str, data["classes"]))),
        ("Class frequencies of the training set", ", ".join(short(float(p)) for p in data["p_train"])),
        ("Settings", str(experiment["settings"])),
        ("Profile", str(experiment["profile"])),
        ("Seed", str(experiment["seed"])),
        ("Protocols", ", ".join(outcome.protocols)),
        ("APP-OQ keeps", f"{percent_kept(outcome)} of the APP samples"),
        ("Measures", ", ".join(measure.upper() for measure in outcome.measures)),
        ("Methods", ", ".join(map(display_name, outcome.methods))),
        ("In-sample scores", ", ".join(map(display_name, experiment["in_sample"])) or "none"),
        ("In the paper", str(experiment.get("paper") or "not there")),
    ]  # fmt: skip
    return facts + [("Note", str(note)) for note in data["notes"]]


def _sample_text(data: dict[str, Any]) -> str:
    numbers = "; ".join(
        f"{pool}: {', '.join(f'{count:,} {protocol}' for protocol, count in counts.items())}"
        for pool, counts in data.get("n_samples", {}).items()
    )
    return f"{numbers}; each of {data['sample_size']:,} items" if numbers else "see the table below"


def _warnings(outcome: Outcome) -> list[str]:
    damaged = [f"A stored part was damaged and was computed again: {name}." for name in outcome.about["damaged"]]
    return [*failures(outcome), *damaged]


def _seconds(outcome: Outcome) -> float:
    """Return the time of all processes, or of the stages if that is not known."""
    seconds = outcome.about["seconds"]
    return float(seconds.get("computing", sum(seconds.values())))


def _bibtex() -> str:
    article = {
        "author": "Bunse, Mirko and Moreo, Alejandro and Sebastiani, Fabrizio and Senz, Martin",
        **{key: PAPER[key] for key in ("title", "journal", "year", "doi")},
    }
    software = {"author": "{The ordinalq developers}", "title": SOFTWARE, "version": version("ordinalq")}
    return "\n\n".join(
        f"@{kind}{{{key},\n" + ",\n".join(f"  {name} = {{{value}}}" for name, value in entry.items()) + "\n}"
        for kind, key, entry in (("article", "bunse2024regularization", article), ("software", "ordinalq", software))
    )
