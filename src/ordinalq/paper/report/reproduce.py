"""From the name of an experiment to its report: run, tables, figures, page."""

import sys
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

from ordinalq._utils.text import Bold, screen, table
from ordinalq.paper.experiments.config import Config, load_config
from ordinalq.paper.experiments.outcome import Outcome, read_outcome
from ordinalq.paper.experiments.runner import IDENTITY, Progress, identity, run
from ordinalq.paper.experiments.store import open_store
from ordinalq.paper.report import write_report, write_summary
from ordinalq.paper.report.tables import result_tables

PAGE = "report.html"
MIN_WIDTH = 92  # of the table in the terminal; in a narrower one, lines are broken, not cut


class ReportedRun(NamedTuple):
    """Path of a report, and the methods that failed in all configurations.

    Each failed method has its first message.
    """

    path: Path
    failures: dict[str, str]


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
) -> ReportedRun:
    """Run an experiment, or all of a collection, and write the report.

    Parameters
    ----------
    name, profile, settings
        See :func:`ordinalq.paper.experiments.config.load_config`.
    data, n_jobs, backend
        See :func:`ordinalq.paper.experiments.runner.run`.
    folder : path, default=None
        Folder of the results; None stands for ``results/NAME``, with profile and settings if they are not the default.
    quiet : bool, default=False
        Print neither progress nor table.

    Returns
    -------
    ReportedRun
        Path of the report, and messages of methods that failed in all configurations.
    """
    config = load_config(name, profile, settings)
    folder = _default_folder(config) if folder is None else folder
    if config.kind != "collection":
        outcome = _run(config, folder, data, n_jobs, backend, quiet)
        return ReportedRun(folder / PAGE, outcome.failures)
    with open_store(folder, identity(config)):
        members = [load_config(member, profile, settings) for member in config.members]
        outcomes = [_run(member, folder / member.name, data, n_jobs, backend, quiet) for member in members]
        failures = {
            f"{member.name}: {method}": message
            for member, outcome in zip(members, outcomes, strict=True)
            for method, message in outcome.failures.items()
        }
        return ReportedRun(write_summary(outcomes, folder), failures)


def report_experiments(folders: Sequence[Path], out: Path | None = None) -> Path:
    """Write the report of one finished experiment again, or compare several.

    Parameters
    ----------
    folders : list of paths
        Folders of finished experiments.
    out : path, default=None
        Folder of the comparison of several experiments.

    Returns
    -------
    Path
        Path of the report.
    """
    outcomes = [read_outcome(folder) for folder in folders]
    about = [outcome.about["experiment"] for outcome in outcomes]
    if len(outcomes) == 1 and out is None:
        with open_store(folders[0], {name: about[0][name] for name in IDENTITY}):
            return write_report(outcomes[0], folders[0])
    if out is None:
        raise ValueError("out must be a folder for the comparison of several experiments, got None.")
    for what in ("kind", "profile", "settings"):
        if len({one[what] for one in about}) > 1:
            raise ValueError(
                f"only experiments of the same {what} can be compared, got {[one[what] for one in about]}."
            )
    if about[0]["kind"] == "classifiers":
        raise ValueError("comparisons of classifiers cannot be ranked over data sets; report them one by one.")
    if len({one["data"] for one in about}) < len(about):
        raise ValueError("experiments on the same data cannot be compared as different data sets; name each once.")
    with open_store(out, {"name": "comparison"}):
        return write_summary(outcomes, out)


def _run(config: Config, folder: Path, data: Path | None, n_jobs: int, backend: str, quiet: bool) -> Outcome:
    """Run an experiment and write its report, all while the folder is locked."""
    progress = Progress(folder / "log.txt", None if quiet else sys.stderr)

    def finish(outcome: Outcome) -> None:
        for method, message in outcome.failures.items():
            progress.write_log(f"failed: {method}: {message}")
        write_report(outcome, folder)
        if not quiet:
            _show(outcome)

    try:
        return run(config, folder, data=data, n_jobs=n_jobs, backend=backend, progress=progress, finish=finish)
    finally:
        progress.close()


def _default_folder(config: Config) -> Path:
    parts = [config.name]
    parts += [config.profile] if config.profile != "full" else []
    parts += [config.settings] if config.settings != "reference" else []
    return Path("results") / "-".join(parts)


def _show(outcome: Outcome) -> None:
    """Show the means of the main table in the terminal; the files have the rest."""
    full = result_tables(outcome)[0]
    # What is published for other data would not fit next to five quantifiers.
    shown = [i for i, column in enumerate(full.columns) if column.name != "paper" or len(full.columns) < 12]
    columns = [full.columns[i] for i in shown]
    headers = [f"{column.group}\n{column.name.removesuffix(' ± std').removesuffix(', %')}" for column in columns]
    cells = [[row.cells[i] for i in shown] for row in full.rows]
    rows = [[(Bold if cell.bold else str)(cell.text.partition(" ±")[0]) for cell in row] for row in cells]
    ends = [i for i, (row, after) in enumerate(pairwise(full.rows)) if row.group != after.group]
    table(headers, rows, title=full.title, ends=ends, console=screen(MIN_WIDTH))
