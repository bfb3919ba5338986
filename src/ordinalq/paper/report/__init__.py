"""Tables, significance, figures and one page per run, from what an experiment has found."""

from collections.abc import Iterable, Sequence
from pathlib import Path

from ordinalq.paper.experiments.outcome import Outcome
from ordinalq.paper.experiments.store import Store
from ordinalq.paper.report.figures import Picture, all_pictures, rank_pictures
from ordinalq.paper.report.formats import Table
from ordinalq.paper.report.html import run_page, summary_page
from ordinalq.paper.report.tables import all_tables, collection_table, rank_table, rankings

__all__ = ["write_report", "write_summary"]


def write_report(outcome: Outcome, folder: str | Path) -> Path:
    """Write the tables, figures and the page of an experiment; return the path of the page.

    The folder gets ``tables/*.md``, ``.tex`` and ``.csv``, ``figures/*.svg`` and ``.png``, and ``report.html``. Tables
    of equal outcomes are the same, byte by byte.
    """
    tables, pictures = all_tables(outcome), list(all_pictures(outcome))
    return _write(Path(folder), tables, pictures, run_page(outcome, tables, pictures))


def write_summary(outcomes: Iterable[Outcome], folder: str | Path) -> Path:
    """Write what several experiments say together, as :func:`write_report`: errors side by side, ranks over data sets.

    There is one outcome per data set, of kind "quantifiers".
    """
    found: Sequence[Outcome] = list(outcomes)
    if not found:
        raise ValueError("outcomes must hold at least one outcome, got none.")
    measures = dict.fromkeys(measure for outcome in found for measure in outcome.measures)
    tables = [*(collection_table(found, measure) for measure in measures), rank_table(found)]
    blocks = "data sets" if len(found) > 1 else "test samples"
    ranks = rankings(found)
    count = max((ranking.n_blocks for ranking in ranks.values()), default=0)
    pictures = list(rank_pictures(ranks, f"over {count} {blocks}"))
    return _write(Path(folder), tables, pictures, summary_page(found, tables, pictures))


def _write(folder: Path, tables: Sequence[Table], pictures: Sequence[Picture], page: str) -> Path:
    store = Store(folder)
    for table in tables:
        for suffix, text in table.files().items():
            store.write(folder / "tables" / f"{table.name}.{suffix}", text.encode())
    for picture in pictures:
        store.write(folder / "figures" / f"{picture.name}.svg", picture.file().encode())
        store.write(folder / "figures" / f"{picture.name}.png", picture.png)
    # Last: a page that is there has its files next to it.
    store.write(folder / "report.html", page.encode())
    return folder / "report.html"
