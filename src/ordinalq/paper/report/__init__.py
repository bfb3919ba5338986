"""Tables, significance tests, figures and reports of experiments.

There is one HTML report per run.
"""

from collections.abc import Iterable, Sequence
from pathlib import Path

from ordinalq.paper.experiments.outcome import Outcome
from ordinalq.paper.experiments.store import Store
from ordinalq.paper.report.figures import Plot, all_plots, rank_plots
from ordinalq.paper.report.formats import Table
from ordinalq.paper.report.html import run_page, summary_page
from ordinalq.paper.report.tables import all_tables, collection_table, rank_table, rankings

__all__ = ["write_report", "write_summary"]


def write_report(outcome: Outcome, folder: str | Path) -> Path:
    """Write the tables, the figures and the report of an experiment.

    Tables of equal outcomes are equal, byte by byte.

    Parameters
    ----------
    outcome : Outcome
        Outcome of the experiment.
    folder : path
        Folder of ``tables/*.md``, ``.tex`` and ``.csv``, ``figures/*.svg`` and ``.png``, and ``report.html``.

    Returns
    -------
    Path
        Path of the report.
    """
    tables, plots = all_tables(outcome), list(all_plots(outcome))
    return _write(Path(folder), tables, plots, run_page(outcome, tables, plots))


def write_summary(outcomes: Iterable[Outcome], folder: str | Path) -> Path:
    """Write a report that compares several experiments.

    It has the errors side by side, and ranks over data sets.

    Parameters
    ----------
    outcomes : iterable of Outcome
        One outcome of kind "quantifiers" per data set.
    folder : path
        Folder of the files, see :func:`write_report`.

    Returns
    -------
    Path
        Path of the report.
    """
    found: Sequence[Outcome] = list(outcomes)
    if not found:
        raise ValueError("outcomes must hold at least one outcome, got none.")
    measures = dict.fromkeys(measure for outcome in found for measure in outcome.measures)
    tables = [*(collection_table(found, measure) for measure in measures), rank_table(found)]
    blocks = "data sets" if len(found) > 1 else "test samples"
    ranks = rankings(found)
    count = max((ranking.n_blocks for ranking in ranks.values()), default=0)
    plots = list(rank_plots(ranks, f"over {count} {blocks}"))
    return _write(Path(folder), tables, plots, summary_page(found, tables, plots))


def _write(folder: Path, tables: Sequence[Table], plots: Sequence[Plot], page: str) -> Path:
    store = Store(folder)
    for table in tables:
        for suffix, text in table.files().items():
            store.write(folder / "tables" / f"{table.name}.{suffix}", text.encode())
    for plot in plots:
        store.write(folder / "figures" / f"{plot.name}.svg", plot.file().encode())
        store.write(folder / "figures" / f"{plot.name}.png", plot.png)
    # Last: if the report exists, its files are complete.
    store.write(folder / "report.html", page.encode())
    return folder / "report.html"
