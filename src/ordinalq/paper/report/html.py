"""The page of a run: one file with everything in it, which opens without a network."""

from collections.abc import Sequence
from importlib.metadata import version
from importlib.resources import files
from typing import Any, NamedTuple

from ordinalq.paper.experiments.outcome import Outcome
from ordinalq.paper.report.departures import Departure, applicable
from ordinalq.paper.report.facts import data_name, display_name, failures
from ordinalq.paper.report.formats import Table, short
from ordinalq.paper.report.picture import Picture
from ordinalq.paper.report.summary import percent_kept, short_summary, summary

PAPER = {
    "authors": "Mirko Bunse, Alejandro Moreo, Fabrizio Sebastiani and Martin Senz",
    "title": "Regularization-Based Methods for Ordinal Quantification",
    "journal": "Data Mining and Knowledge Discovery",
    "year": "2024",
    "doi": "10.1007/s10618-024-01067-2",
}
SOFTWARE = "ordinalq: ordinal quantification and unfolding"
# The sections of a page in their order: what the navigation calls them, and their title. Those of tables and pictures
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
    """A section of a page; ``folds`` are titles with tables and pictures, those without a title always open."""

    name: str
    label: str
    title: str
    folds: list[tuple[str, list[Table | Picture]]]


def run_page(outcome: Outcome, tables: Sequence[Table], pictures: Sequence[Picture]) -> str:
    """Return the page of one experiment."""
    experiment = outcome.about["experiment"]
    return _render(
        title=str(experiment["title"]),
        subtitle=f"{data_name(outcome)}, settings {experiment['settings']}, profile {experiment['profile']}",
        tiles=_tiles(outcome),
        summary=summary(outcome),
        sections=page_sections(tables, pictures),
        facts=_facts(outcome),
        departures=applicable(outcome),
        warnings=_warnings(outcome),
        runs=[outcome.about],
    )


def summary_page(outcomes: Sequence[Outcome], tables: Sequence[Table], pictures: Sequence[Picture]) -> str:
    """Return the page of several experiments together."""
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
        sections=page_sections(tables, pictures),
        facts=[(name, str(outcome.about["data"]["source"])) for name, outcome in named],
        departures=sorted(found.values(), key=lambda one: int(one.number.split()[0])),
        warnings=[f"{name}: {warning}" for name, outcome in named for warning in _warnings(outcome)],
        runs=[outcome.about for outcome in outcomes],
    )


def page_sections(tables: Sequence[Table], pictures: Sequence[Picture]) -> list[Section]:
    """Return the sections of a page; every table and every picture is in one, a picture after its table."""
    items: dict[str, list[Table | Picture]] = {}
    for table in tables:
        beside = [picture for picture in pictures if picture.beside == table.name]
        items.setdefault(table.section, []).extend([table, *beside])
    names = {table.name for table in tables}
    for picture in pictures:
        if picture.beside not in names:
            items.setdefault(picture.section, []).append(picture)
    known = list(SECTIONS)
    order = [*known[:-2], *(name for name in items if name not in known), *known[-2:]]
    found = []
    for name in order:
        if name in items or name in ALWAYS:
            folds: dict[str, list[Table | Picture]] = {"": []}
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
    from jinja2 import Environment, StrictUndefined
    from markupsafe import Markup

    text = (files("ordinalq") / "paper" / "report" / "template.html").read_text(encoding="utf-8")
    environment = Environment(autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True)
    # The drawings are our own, and matplotlib escapes the text in them.
    environment.filters["drawing"] = lambda picture: Markup(picture.inline())  # noqa: S704
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
    """Return the work of all processes, or what the stages took where that is not known."""
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
