"""The equivalent commands of the choices made in the web app."""

import shlex
from collections.abc import Sequence

from ordinalq.app.work import Choices, PredictOptions, Table

# Name that the commands give the model.
MODEL = "model.oq"


def fit_command(table: Table, choices: Choices, model: str) -> str:
    """Return the command that fits the same model."""
    how = _given(target=choices.target, by=choices.by, weight=choices.weight)
    for option in ("text", "features", "categories", "classes"):
        how += _listed(f"--{option}", getattr(choices, option))
    how += _given(method=choices.method, budget=choices.budget)
    how += _listed("--class-values", [f"{value:g}" for value in choices.class_values])
    how += ["--skip-unlabelled"] if choices.skip_unlabelled else []
    how += ["--tidy-groups"] if choices.tidy_groups else []
    return shlex.join(["ordinalq", "fit", table.shown, *how, "--out", model, *_reading(table)])


def predict_command(table: Table, options: PredictOptions, model: str) -> str:
    """Return the command that estimates the same."""
    return shlex.join(
        ["ordinalq", "predict", model, table.shown, *_options(options), "--out", "estimates.csv", *_reading(table)]
    )


def compare_command(table: Table, options: PredictOptions, groups: Sequence[str], estimand: str, model: str) -> str:
    """Return the command that compares the same groups."""
    how = _options(options._replace(estimand=estimand))
    return shlex.join(["ordinalq", "compare", model, table.shown, *how, *_reading(table), "--", *groups])


def all_commands(table: Table | None, choices: Choices | None, sample: Table, options: PredictOptions) -> list[str]:
    """Return the commands that lead to the same estimates."""
    first = [] if table is None or choices is None else [fit_command(table, choices, MODEL)]
    return [*first, predict_command(sample, options, MODEL)]


def _options(options: PredictOptions) -> list[str]:
    words = ["--by", options.by[0]] if len(options.by) == 1 else _listed("--by", options.by)
    words += _given(labels=options.labels, weight=options.weight, interval=f"{options.level:g}")
    words += ["--tidy-groups"] if options.tidy_groups else []
    return [*words, "--estimand", options.interval_options.estimand]


def _given(**options: str | None) -> list[str]:
    """Return the options that have a value."""
    return [word for name, value in options.items() if value is not None for word in (f"--{name}", value)]


def _listed(option: str, names: Sequence[str]) -> list[str]:
    """Return an option with a list of names; names must not contain a comma."""
    if any("," in name for name in names):
        return [option, f"({' | '.join(names)}: names with a comma are not supported on the command line)"]
    return [option, ",".join(names)] if names else []


def _reading(table: Table) -> list[str]:
    encoding, quoting = table.encoding, table.quoting
    words = _given(encoding=None if encoding == "utf-8" else encoding, quoting=None if quoting == "auto" else quoting)
    return [*words, *_given(sheet=table.sheet)]
