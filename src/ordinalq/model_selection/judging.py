"""The errors of many configurations on the samples of several protocols, by units that share a classifier."""

import time
from collections.abc import Iterable, Mapping
from itertools import product
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from sklearn.base import clone
from sklearn.utils.validation import _num_samples

from ordinalq._utils.validation import Array, same_parameters
from ordinalq.classifiers.cross_fitting import held_out
from ordinalq.metrics import find_measure
from ordinalq.model_selection.attempts import Attempt, attempt, describe, estimate_all
from ordinalq.quantifiers.base import Quantifier, group_codes
from ordinalq.samples.labels import encode_labels
from ordinalq.samples.samples import Samples

# Name of the protocol where samples come without one.
UNNAMED = "samples"


class Task(NamedTuple):
    """What all configurations have in common, and the configurations."""

    configurations: list[dict[str, Any]]
    quantifiers: list[Quantifier]
    y: Any
    classes: Array
    protocols: dict[str, Samples]
    measures: dict[str, Any]
    keep: bool
    groups: Any = None

    @property
    def columns(self) -> list[tuple[str, str]]:
        """Pairs of protocol and measure."""
        return list(product(self.protocols, self.measures))

    def part(self, chosen: list[int]) -> "Task":
        """Return the task of some configurations alone."""
        return self._replace(
            configurations=[self.configurations[i] for i in chosen], quantifiers=[self.quantifiers[i] for i in chosen]
        )


class Material(NamedTuple):
    """The scores of one unit and where they come from.

    S (N, n) and S_pool (N', n) are scores or features, S is None with trees; X are the training items, None where only
    scores are given; `model` is the fitted classifier, or `fitted` the quantifier that has fitted its own.
    """

    X: Any
    S: Any
    S_pool: Any
    model: Any = None
    fitted: Quantifier | None = None
    seconds: float = 0.0


class Judgement(NamedTuple):
    """What :meth:`Attempt.judged` says by (protocol, measure), and what else the table tells."""

    cells: dict[tuple[str, str], dict[str, Any]]
    seconds: float
    scoring_seconds: float
    message: str


class Outcome(NamedTuple):
    """One judgement per configuration of a unit, and the fitted quantifiers that are best in some column."""

    judgements: list[Judgement]
    fitted: dict[int, Quantifier]


def units(task: Task) -> list[tuple[str, list[int]]]:
    """Return the configurations that are treated together: how they see items ("scores", ...), and their positions."""
    found: list[tuple[str, dict[str, Any], list[int]]] = []
    for i, quantifier in enumerate(task.quantifiers):
        kind = quantifier.on if quantifier.fits_scores else "items"
        part = classifier_part(task.configurations[i]) if kind == "scores" else {}
        for other_kind, other_part, chosen in found:
            if kind != "items" and kind == other_kind and same_parameters(part, other_part):
                chosen.append(i)
                break
        else:
            found.append((kind, part, [i]))
    return [(kind, chosen) for kind, _, chosen in found]


def run(kind: str, task: Task, X: Any, X_pool: Any) -> Outcome:
    """Make the scores of one unit, and judge its configurations."""
    start = time.perf_counter()
    first = clone(task.quantifiers[0])
    try:
        if kind == "items":
            fitted = first.fit(X, task.y, classes=task.classes, groups=task.groups)
            material = Material(X, None, fitted.scores(X_pool), fitted=fitted)
        else:
            items, pool = first.check_items(X, reset=True), first.check_items(X_pool, reset=False)
            if kind == "features":
                material = Material(X, items, pool)
            else:
                labels, codes = encode_labels(task.y, task.classes)
                model = held_out(first.classifier).fit(items, codes, labels, group_codes(task.groups, len(codes)))
                material = Material(X, model.held_out_scores_, model.predict_proba(pool), model)
    except Exception as error:  # as in `estimate_all`
        seconds, failed = time.perf_counter() - start, Attempt.failed(describe(error))
        return Outcome([_judgement(task, failed, seconds) for _ in task.quantifiers], {})
    return judge(task, material._replace(seconds=time.perf_counter() - start))


def judge(task: Task, material: Material) -> Outcome:
    """Estimate and measure; fit what is best in some column once more, on the same scores, to be kept."""
    samples = Samples.stacked(list(task.protocols.values()))
    found: Iterable[Attempt]
    if (fitted := material.fitted) is not None:
        found = [attempt(lambda: fitted.solve_scores(material.S_pool, samples))]
    else:
        votes = material.model is not None and not material.model.gives_posteriors_
        known = {"classes": task.classes, "groups": task.groups, "votes": votes}
        found = estimate_all(task.quantifiers, material.S, task.y, material.S_pool, samples, **known)
    judgements = [_judgement(task, one, material.seconds) for one in found]
    best = {min(range(len(judgements)), key=lambda i: judgements[i].cells[column]["error"]) for column in task.columns}
    kept = [i for i in sorted(best) if task.keep and not judgements[i].message]
    return Outcome(judgements, {i: _fitted(task.quantifiers[i], material, task) for i in kept})


def _judgement(task: Task, found: Attempt, scoring_seconds: float) -> Judgement:
    """Judge an attempt at the samples of all protocols."""
    cells, start = {}, 0
    for name, samples in task.protocols.items():
        rows = slice(start, start + len(samples))
        start = rows.stop
        for label, measure in task.measures.items():
            cells[name, label] = found.judged(rows, samples.prevalences, measure)
    return Judgement(cells, found.seconds, scoring_seconds, found.message)


def _fitted(quantifier: Quantifier, material: Material, task: Task) -> Quantifier:
    """Return the quantifier of a unit, fitted and able to predict, without fitting its classifier again."""
    if material.fitted is not None:
        return material.fitted
    result: Quantifier = clone(quantifier)
    if material.X is not None and quantifier.on == "features":
        return result.fit(material.X, task.y, classes=task.classes, groups=task.groups)
    result.fit_scores(material.S, task.y, task.classes, task.groups)
    if material.model is not None:
        result.attach(material.model, material.X)
    return result


def classifier_part(configuration: Mapping[str, Any]) -> dict[str, Any]:
    """Return the parameters of the classifier."""
    return {name: value for name, value in configuration.items() if name.partition("__")[0] == "classifier"}


def results(task: Task, table: Mapping[int, Judgement]) -> pd.DataFrame:
    """Return the table, one row per configuration, protocol and measure."""
    names = list(dict.fromkeys(name for configuration in task.configurations for name in configuration))
    columns = {}
    for name in names:
        # Where a dict of the grid does not name the parameter, the quantifier has its own value.
        values = [
            configuration[name] if name in configuration else quantifier.get_params().get(name)
            for configuration, quantifier in zip(task.configurations, task.quantifiers, strict=True)
        ]
        plain = len({type(value) for value in values}) == 1 and isinstance(values[0], bool | int | float)
        # As objects, None stays None beside numbers, and lists stay lists.
        columns[name] = pd.Series(values, dtype=None if plain else object)
    rows = []
    for i in range(len(table)):
        how = {name: getattr(table[i], name) for name in ("seconds", "scoring_seconds", "message")}
        cells = table[i].cells.items()
        rows += [{"configuration": i, "protocol": p, "measure": m} | cell | how for (p, m), cell in cells]
    found = pd.DataFrame(rows)
    for position, (name, column) in enumerate(columns.items(), start=1):
        found.insert(position, name, column.loc[found["configuration"]].to_numpy())
    return found


def check_samples(samples: Any, pool: Any, classes: Array) -> dict[str, Samples]:
    """Return the samples by the name of the protocol; they must fit the pool and the classes (n,)."""
    protocols = dict(samples) if isinstance(samples, Mapping) else {UNNAMED: samples}
    if not protocols:
        raise ValueError("samples must hold at least one protocol, got an empty dict.")
    n_items = _num_samples(pool)
    for name, part in protocols.items():
        if not isinstance(name, str):
            raise TypeError(f"samples must have names of protocols as keys, got {name!r}.")
        which = f"samples[{name!r}]" if isinstance(samples, Mapping) else "samples"
        if not isinstance(part, Samples):
            raise TypeError(
                f"{which} must be Samples, for example APP(1000, 500).draw(y_pool) or "
                f"Samples.from_index(index, n_items, y_pool), got {type(part).__name__}."
            )
        if part.n_items != n_items:
            raise ValueError(f"{which} must be drawn from the {n_items} items of the pool, got one of {part.n_items}.")
        if part.prevalences is None:
            raise ValueError(f"{which} must have prevalences: give y when you make them.")
        n = part.prevalences.shape[1]
        if n != len(classes) or (part.classes is not None and not np.array_equal(part.classes, classes)):
            got = f"{n} classes" if part.classes is None else f"{part.classes.tolist()}"
            raise ValueError(
                f"{which} must have the classes of y, {classes.tolist()}, got {got}; "
                "give classes=[...] when you draw them and when you fit."
            )
    return protocols


def check_measures(measure: Any) -> dict[str, Any]:
    """Return the measures by name."""
    given = list(measure) if isinstance(measure, list | tuple) else [measure]
    if not given:
        raise ValueError("measure must name at least one measure, got an empty list.")
    measures: dict[str, Any] = {}
    for one in given:
        name, function = find_measure(one)
        if name in measures:
            raise ValueError(f"measure must have distinct names, got {name!r} twice.")
        measures[name] = function
    return measures
