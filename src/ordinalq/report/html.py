"""The page of a run: one file with everything in it, which opens without a network."""

from collections.abc import Sequence
from importlib.metadata import version
from importlib.resources import files
from typing import Any

import numpy as np

from ordinalq.evaluation import not_worse_than_best
from ordinalq.experiments.outcome import Outcome
from ordinalq.report.departures import Departure, applicable
from ordinalq.report.figures import Picture
from ordinalq.report.formats import Table, short
from ordinalq.report.tables import LEVEL, QUICK, display_name, failures, result_rows, results

PAPER = {
    "authors": "Mirko Bunse, Alejandro Moreo, Fabrizio Sebastiani and Martin Senz",
    "title": "Regularization-Based Methods for Ordinal Quantification",
    "journal": "Data Mining and Knowledge Discovery",
    "year": "2024",
    "doi": "10.1007/s10618-024-01067-2",
}
SOFTWARE = "ordinalq: ordinal quantification and unfolding"
# Which section of the page shows a figure, by the beginning of its name.
BACKGROUND = ("examples_", "amazon_", "fact_")


def run_page(outcome: Outcome, tables: Sequence[Table], pictures: Sequence[Picture]) -> str:
    """Return the page of one experiment."""
    experiment, data = outcome.about["experiment"], outcome.about["data"]
    by_name = {table.name: table for table in tables}
    shown = [picture for picture in pictures if not picture.name.startswith(("error_", "ranks_", *BACKGROUND))]
    errors = [picture for picture in pictures if picture.name.startswith("error_")]
    further = outcome.measures[1:]
    main = [by_name[name] for name in (*outcome.measures, "ordinal_classifiers") if name in by_name]
    return _render(
        title=str(experiment["title"]),
        subtitle=f"{data['name']}, settings {experiment['settings']}, profile {experiment['profile']}",
        tiles=_tiles(outcome),
        summary=summary(outcome),
        main=main,
        main_pictures={m: [p for p in errors if p.name == f"error_{m}"] for m in outcome.measures}
        | {"ordinal_classifiers": errors},
        pictures=[p for p in shown if not p.name.endswith(tuple(f"_{m}" for m in further))],
        further_pictures={m.upper(): [p for p in shown if p.name.endswith(f"_{m}")] for m in further},
        ranking=by_name["ranking"],
        rank_pictures=[p for p in pictures if p.name.startswith("ranks_")],
        selected=by_name["selected"],
        setting_tables=[by_name[n] for n in ("samples", "classifier_grid", "hyperparameters") if n in by_name],
        background_tables=[by_name["protocols"]],
        background_pictures=[p for p in pictures if p.name.startswith(BACKGROUND)],
        facts=_facts(outcome),
        departures=applicable(outcome),
        warnings=_warnings(outcome),
        runs=[outcome.about],
        bibtex=_bibtex(),
        paper=PAPER,
    )


def summary_page(outcomes: Sequence[Outcome], tables: Sequence[Table], pictures: Sequence[Picture]) -> str:
    """Return the page of several experiments together."""
    by_name = {table.name: table for table in tables}
    found: dict[str, Departure] = {d.number: d for outcome in outcomes for d in applicable(outcome)}
    names = [str(outcome.about["data"]["name"]) for outcome in outcomes]
    return _render(
        title=f"Experiments on {len(outcomes)} data sets",
        subtitle=", ".join(names),
        tiles=[
            ("data sets", str(len(outcomes))),
            ("methods", str(len({method for outcome in outcomes for method in outcome.methods}))),
            ("computing time", duration(sum(_seconds(outcome) for outcome in outcomes))),
        ],
        summary=[
            f"{name}: {sentence}"
            for name, outcome in zip(names, outcomes, strict=True)
            for sentence in summary(outcome)[:1]
        ],
        main=[table for name, table in by_name.items() if name != "ranking"],
        main_pictures={},
        pictures=[],
        further_pictures={},
        ranking=by_name["ranking"],
        rank_pictures=list(pictures),
        selected=None,
        setting_tables=[],
        background_tables=[],
        background_pictures=[],
        facts=[(name, str(outcome.about["data"]["source"])) for name, outcome in zip(names, outcomes, strict=True)],
        departures=sorted(found.values(), key=lambda one: int(one.number.split()[0])),
        warnings=[f"{n}: {w}" for n, outcome in zip(names, outcomes, strict=True) for w in _warnings(outcome)],
        runs=[outcome.about for outcome in outcomes],
        bibtex=_bibtex(),
        paper=PAPER,
    )


def summary(outcome: Outcome) -> list[str]:
    """Say which methods are best, and how the errors compare with the paper's."""
    sentences = []
    for measure in outcome.measures:
        for protocol in outcome.protocols:
            errors = results(outcome, protocol, measure)
            if not errors:
                sentences.append(f"No method has a result for {measure.upper()} under {protocol}.")
                continue
            best = min(errors, key=lambda method: float(np.mean(errors[method])))
            others = [_unbroken(m) for m in not_worse_than_best(errors, level=LEVEL) if m != best]
            text = f"{measure.upper()} under {protocol}: {_unbroken(best)} has the smallest mean error, "
            text += short(float(np.mean(errors[best])))
            text += (
                f"; not significantly worse: {', '.join(others)}."
                if others
                else ("." if len(errors) == 1 else ", and all others are worse.")
            )
            sentences.append(text)
        if outcome.about["experiment"]["kind"] != "classifiers":
            ratios = result_rows(outcome, measure)["ratio"].dropna()
            if len(ratios):
                sentences.append(
                    f"Our {measure.upper()} over the paper's: median {ratios.median():.2f} "
                    f"(from {ratios.min():.2f} to {ratios.max():.2f}, {len(ratios)} cells)."
                )
    if outcome.about["experiment"]["profile"] != "full":
        sentences.append(QUICK)
    return sentences


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

    text = (files("ordinalq") / "report" / "template.html").read_text(encoding="utf-8")
    environment = Environment(autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True)
    # The drawings are our own, and matplotlib escapes the text in them.
    environment.filters["drawing"] = lambda picture: Markup(picture.inline())  # noqa: S704
    environment.filters["duration"] = duration
    return environment.from_string(text).render(**content)


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
        ("APP-OQ keeps", _percent(experiment.get("app_oq"))),
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


def _unbroken(method: str) -> str:
    """Return the name of a method with hyphens at which no line ends."""
    return display_name(method).replace("-", "\N{NON-BREAKING HYPHEN}")


def _percent(fraction: Any) -> str:
    return "unknown" if fraction is None else f"the smoothest {100 * float(fraction):g} % of the APP samples"


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
