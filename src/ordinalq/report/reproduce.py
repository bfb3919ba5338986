"""From the name of an experiment to its report: run, tables, figures, page."""

import logging
import sys
from collections.abc import Sequence
from pathlib import Path

from ordinalq.experiments.config import Config, load_config
from ordinalq.experiments.outcome import Outcome, read_outcome
from ordinalq.experiments.progress import LogFile, Progress, Several, Terminal
from ordinalq.experiments.runner import run
from ordinalq.experiments.store import open_store
from ordinalq.report import write_report, write_summary

logger = logging.getLogger("ordinalq")


def reproduce_experiment(
    name: str,
    *,
    profile: str = "full",
    settings: str = "reference",
    data: Path | None = None,
    folder: Path | None = None,
    n_jobs: int = -1,
    backend: str = "loky",
    quiet: bool = False,
) -> Path:
    """Run an experiment, or all of a collection, write the report, and return the path of its page.

    Parameters
    ----------
    name, profile, settings
        See :func:`ordinalq.experiments.config.load_config`.
    data : path, default=None
        Local copy of the data; for a collection, a folder with all of them.
    folder : path, default=None
        Where to write; None stands for ``results/NAME``, with profile and settings where they are not the default.
    n_jobs, backend
        See :func:`ordinalq.experiments.runner.run`.
    quiet : bool, default=False
        Show no progress and no table.
    """
    config = load_config(name, profile, settings)
    folder = _default_folder(config) if folder is None else folder
    if config.kind != "collection":
        outcome = _run(config, folder, data, n_jobs, backend, quiet)
        if not quiet:
            _show(outcome)
        return write_report(outcome, folder)
    identity = {"name": config.name, "profile": profile, "settings": settings, "seed": config.seed}
    with open_store(folder, identity):
        outcomes = []
        for member in config.members:
            logger.warning("%s: %s", config.name, member)
            outcomes.append(_run(load_config(member, profile, settings), folder / member, data, n_jobs, backend, quiet))
            write_report(outcomes[-1], folder / member)
        return write_summary(outcomes, folder)


def report_experiments(folders: Sequence[Path], out: Path | None = None) -> Path:
    """Write the report of one finished experiment again, or compare several in the folder `out`."""
    outcomes = [read_outcome(folder) for folder in folders]
    if len(outcomes) == 1 and out is None:
        return write_report(outcomes[0], folders[0])
    if out is None:
        raise ValueError("several experiments need a folder for their comparison: give --out.")
    with open_store(out, {"name": "comparison"}):
        return write_summary(outcomes, out)


def _run(config: Config, folder: Path, data: Path | None, n_jobs: int, backend: str, quiet: bool) -> Outcome:
    parts: list[Progress] = [LogFile(folder / "log.txt")]
    progress = Several(parts if quiet else [*parts, Terminal()])
    try:
        return run(config, folder, data=data, n_jobs=n_jobs, backend=backend, progress=progress)
    finally:
        progress.close()


def _default_folder(config: Config) -> Path:
    parts = [config.name]
    parts += [config.profile] if config.profile != "full" else []
    parts += [config.settings] if config.settings != "reference" else []
    return Path("results") / "-".join(parts)


def _show(outcome: Outcome) -> None:
    """Show the main table in the terminal."""
    from rich.console import Console
    from rich.markdown import Markdown

    from ordinalq.report.tables import results_table

    Console(file=sys.stdout).print(Markdown(results_table(outcome, outcome.measures[0]).markdown()))
