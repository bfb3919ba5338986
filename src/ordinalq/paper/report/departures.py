"""Where ordinalq differs from the printed text, and which of it concerns a run; docs/departures.md tells it in full."""

import json
from dataclasses import dataclass, replace
from importlib.resources import files
from typing import Any

from ordinalq.datasets import CATALOG as DATASETS
from ordinalq.paper.experiments.outcome import Outcome
from ordinalq.paper.experiments.pairs import split_pair
from ordinalq.paper.report.facts import parsed


@dataclass(frozen=True)
class Departure:
    """An entry of the ledger: its number there, title, what happens here, and to which runs it applies.

    ``applies`` holds conditions that must all be met; each lists what a run may have: methods, families of
    classifiers, kinds of data, names of data sets, kinds of experiments, protocols, numbers of classes. ``nowhere``
    means that no run is concerned. ``paper`` is what happens with settings "paper" where that differs; it is empty
    where these do what is printed, so that there is nothing to tell.
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
    """Return the family of the classifiers, as the experiment names it or as their parameters tell."""
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
