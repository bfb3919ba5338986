"""The verb that says which of some groups is higher."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ordinalq.cli.app import (
    BasisOption,
    EncodingOption,
    FormatOption,
    JsonOption,
    ModelArgument,
    QuotingOption,
    TrustOption,
    app,
)
from ordinalq.cli.everyday import say_of_smoothing
from ordinalq.cli.wording import listed, say, say_json

if TYPE_CHECKING:
    from ordinalq.contract.comparison import Comparison


@app.command()
# long: half of it are the options
def compare(
    model: ModelArgument,
    table: Annotated[
        Path, typer.Argument(help="Table of any size: a file, a folder, a 'pattern*.csv'; - is standard input.")
    ],
    groups: Annotated[list[str], typer.Argument(help="Two or more groups, as the table names them.")],
    by: Annotated[str, typer.Option(help="Column of groups.")],
    interval: Annotated[float, typer.Option(help="Level of the intervals of differences.")] = 0.95,
    interval_of: Annotated[
        str, typer.Option("--interval-of", help="Compare their 'population', or these very rows: 'sample'.")
    ] = "population",
    labels: Annotated[
        str | None, typer.Option(help="Column with labels of some rows, drawn at random within each group.")
    ] = None,
    basis: BasisOption = "auto",
    plot: Annotated[Path | None, typer.Option(help="Picture to write: .png, .svg or .pdf.")] = None,
    random_state: Annotated[int, typer.Option(min=0, help="Seed of the intervals.")] = 0,
    trust: TrustOption = "",
    format: FormatOption = None,  # noqa: A002
    encoding: EncodingOption = "utf-8",
    quoting: QuotingOption = "auto",
    json: JsonOption = False,
) -> None:
    """Say which of two groups of rows is higher and how surely; of more than two, for all pairs."""
    from ordinalq.cli import show
    from ordinalq.contract.plan import BASES, OF, Plan, check_level
    from ordinalq.files import writing
    from ordinalq.files.many import open_table
    from ordinalq.inference.groups import estimate
    from ordinalq.tables.inner import fitted_quantifier
    from ordinalq.tables.predicting import chosen, summarize_table
    from ordinalq.tables.saving import load_model_and_info
    from ordinalq.validation import check_choice

    check_choice("--interval-of", interval_of, OF)
    check_choice("--basis", basis, BASES)
    check_level(interval)
    if len(set(groups)) < max(2, len(groups)):
        raise ValueError(f"expected at least two different groups to compare, got {', '.join(groups)}.")
    file = open_table(table, format, encoding, quoting)
    if plot is not None:
        writing.check_output(plot, model, *(part.path for part in file.files))
    kind = writing.picture_format(plot) if plot else ""
    loaded, info = load_model_and_info(model, trusted=listed(trust))
    quantifier = fitted_quantifier(loaded)
    with show.progress(file.name, file.n_bytes) as progress:
        summary = chosen(summarize_table(loaded, file, by=by, labels=labels, progress=progress), groups)
    plan = Plan(of=interval_of, random_state=random_state, basis=basis)
    estimates = estimate(quantifier, summary, interval, plan)
    assert estimates.keys is not None
    found = estimates.compare(*estimates.keys.tolist())
    if plot is not None:
        with writing.replacing(plot) as path:
            writing.save_picture(_plotted(found, info.target), path, kind)
    say_of_smoothing(quantifier)
    if json:
        say_json(found.to_json())
        return
    show.prevalences(estimates)
    show.basis(estimates)
    say(f"\n{found}")
    if plot is not None:
        say(f"written: {plot}")
    show.fit(estimates, knows_groups=quantifier.knows_groups)


def _plotted(found: "Comparison", target: str | None) -> Any:
    """Return the axes of the picture."""
    import matplotlib as mpl

    from ordinalq import plot

    mpl.use("agg")  # no window
    return plot.comparison(found, xlabel=target or "")
