"""The command that does the same: what was chosen on the page, as options."""

import shlex
from collections.abc import Sequence

from ordinalq.app.work import Asked, Choices, Table

# Name that the commands give the model.
MODEL = "model.oq"


def fit_command(table: Table, choices: Choices, model: str) -> str:
    """Return the command that fits the same model."""
    words = ["ordinalq", "fit", table.shown, "--target", choices.target]
    words += [] if choices.by is None else ["--by", choices.by]
    words += [] if choices.weight is None else ["--weight", choices.weight]
    for option in ("text", "features", "categories", "classes"):
        words += _listed(f"--{option}", getattr(choices, option))
    words += [] if choices.method is None else ["--method", choices.method]
    words += [] if choices.budget is None else ["--budget", choices.budget]
    words += ["--skip-unlabelled"] if choices.skip_unlabelled else []
    return shlex.join([*words, "--out", model, *_reading(table)])


def predict_command(table: Table, asked: Asked, model: str) -> str:
    """Return the command that estimates the same."""
    return shlex.join(
        ["ordinalq", "predict", model, table.shown, *_asked(asked), "--out", "estimates.csv", *_reading(table)]
    )


def compare_command(table: Table, asked: Asked, groups: Sequence[str], of: str, model: str) -> str:
    """Return the command that compares the same groups."""
    how = _asked(asked._replace(of=of))
    return shlex.join(["ordinalq", "compare", model, table.shown, *how, *_reading(table), "--", *groups])


def all_commands(table: Table | None, choices: Choices | None, sample: Table, asked: Asked) -> list[str]:
    """Return the commands that lead to the same estimates."""
    first = [] if table is None or choices is None else [fit_command(table, choices, MODEL)]
    return [*first, predict_command(sample, asked, MODEL)]


def _asked(asked: Asked) -> list[str]:
    words = ["--by", asked.by[0]] if len(asked.by) == 1 else _listed("--by", asked.by)
    words += [] if asked.labels is None else ["--labels", asked.labels]
    words += [] if asked.weight is None else ["--weight", asked.weight]
    return [*words, "--interval", f"{asked.level:g}", "--interval-of", asked.plan.of]


def _listed(option: str, names: Sequence[str]) -> list[str]:
    """Return an option that takes a list; a name with a comma it cannot take, and says so."""
    if any("," in name for name in names):
        return [option, f"({' | '.join(names)}: the command line takes no name with a comma)"]
    return [option, ",".join(names)] if names else []


def _reading(table: Table) -> list[str]:
    words = [] if table.encoding == "utf-8" else ["--encoding", table.encoding]
    return words + ([] if table.quoting == "auto" else ["--quoting", table.quoting])
