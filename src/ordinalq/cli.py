"""The command line: one verb per step. Errors are one line; exit code 2 is the caller's mistake, 1 anything else."""

import io
import json as jsonlib
import logging
import math
import signal
import sys
import warnings
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Annotated, Any

import typer

app = typer.Typer(
    name="ordinalq",
    help="Ordinal quantification: class distributions of unlabelled samples over ordered classes.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)

# Wrong files, options and values: what the caller can put right.
CALLERS_MISTAKES = (ValueError, TypeError, FileNotFoundError, FileExistsError, NotADirectoryError, PermissionError)

# What typer makes of Ctrl-C.
INTERRUPTED = 130

DataOption = Annotated[
    Path | None, typer.Option("--data", help="File or folder with a local copy; default: the folder ORDINALQ_DATA.")
]
FormatOption = Annotated[
    str | None, typer.Option("--format", help="csv, tsv, jsonl or parquet; default: by the ending of the name.")
]
EncodingOption = Annotated[str, typer.Option("--encoding", help="Of text files, such as cp1252.")]
JsonOption = Annotated[bool, typer.Option("--json", help="Print the result as JSON.")]
SkipOption = Annotated[bool, typer.Option("--skip-unlabelled", help="Leave out rows without a label.")]
ModelArgument = Annotated[Path, typer.Argument(help="Model that `ordinalq fit` has written.")]
SeedOption = Annotated[int, typer.Option("--random-state", min=0, help="Of everything random.")]


@app.callback()
def options(debug: Annotated[bool, typer.Option("--debug", help="Show the traceback of an error.")] = False) -> None:
    """Ordinal quantification: class distributions of unlabelled samples over ordered classes."""


@app.command()
def datasets(
    data: Annotated[Path | None, typer.Option(help="Folder with local copies; default: ORDINALQ_DATA.")] = None,
) -> None:
    """List the data sets: what exists, how large, under which licence, and whether it is here."""
    from ordinalq.datasets import CATALOG
    from ordinalq.datasets.download import find_local

    if data is None:
        find_local(())  # finds nothing, but says if ORDINALQ_DATA is no folder
    if data is not None and not data.is_dir():
        raise FileNotFoundError(f"{data}: no such folder.")
    rows: list[tuple[str, ...]] = [("name", "items", "features", "classes", "licence", "where", "what")]
    for entry in CATALOG:
        numbers = (entry.n_items, entry.n_features, entry.n_classes)
        cells = ("" if number is None else f"{number:,}" for number in numbers)
        rows.append((entry.name, *cells, entry.licence, entry.where(data), entry.what))
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for name, *counts, licence, where, what in rows:
        right = "  ".join(cell.rjust(width) for cell, width in zip(counts, widths[1:4], strict=True))
        typer.echo(f"{name:<{widths[0]}}  {right}  {licence:<{widths[4]}}  {where:<{widths[5]}}  {what}")


@app.command()
def extract(
    name: Annotated[str, typer.Argument(help="Name of a data set, see `ordinalq datasets`.")],
    out: Annotated[Path, typer.Option("--out", help="Folder to write: absent, empty, or written by an earlier call.")],
    data: DataOption = None,
    settings: Annotated[
        str, typer.Option(help="'reference' as the authors' code, or 'paper' as the text.")
    ] = "reference",
    random_state: Annotated[int, typer.Option(help="Determines the split and all samples.")] = 876,
) -> None:
    """Write a data set as Parquet files, with the samples of each protocol, for use by other programs."""
    from ordinalq.datasets import load_dataset
    from ordinalq.datasets.dataset import check_folder

    check_folder(out)  # before the work, not after it
    dataset = load_dataset(name, data=data, settings=settings, random_state=random_state)
    files = dataset.save(out)
    for note in dataset.notes:
        typer.echo(f"note: {note}")
    typer.echo(f"{dataset.name}: {len(files)} files in {out}; split: {dataset.split}")


@app.command()
def reproduce(
    name: Annotated[str, typer.Argument(help="An experiment of the paper, such as fried, or the path of a TOML file.")],
    profile: Annotated[
        str, typer.Option(help="'full', or 'quick': fewer samples and a small classifier grid.")
    ] = "full",
    settings: Annotated[
        str, typer.Option(help="'reference' as the authors' code, or 'paper' as the text.")
    ] = "reference",
    data: DataOption = None,
    out: Annotated[
        Path | None, typer.Option("--out", help="Folder to write; default: results/NAME. An interrupted run goes on.")
    ] = None,
    n_jobs: Annotated[int, typer.Option("--n-jobs", help="Number of workers; -1: all processors.")] = -1,
    backend: Annotated[str, typer.Option(help="Backend of joblib: loky, dask, ray, spark, ...")] = "loky",
    quiet: Annotated[bool, typer.Option("--quiet", help="No progress, no table.")] = False,
) -> None:
    """Run an experiment of the paper and write its tables beside the printed figures, and a report."""
    from ordinalq.report.reproduce import reproduce_experiment

    page = reproduce_experiment(
        name, profile=profile, settings=settings, data=data, folder=out, n_jobs=n_jobs, backend=backend, quiet=quiet
    )
    typer.echo(str(page))


@app.command()
def report(
    folders: Annotated[list[Path], typer.Argument(help="Folders of finished experiments.")],
    out: Annotated[Path | None, typer.Option("--out", help="Folder for the comparison of several experiments.")] = None,
) -> None:
    """Write the report of a finished experiment again, or compare several of them by ranks."""
    from ordinalq.report.reproduce import report_experiments

    typer.echo(str(report_experiments(folders, out)))


@app.command()
def methods(json: JsonOption = False) -> None:
    """List the methods: name, name in the paper, group, and the parameters that --tau and --set can give."""
    from ordinalq.methods.catalog import catalog
    from ordinalq.tabular import show

    rows = [(e.name, e.paper_name, e.group, e.cls().get_params(deep=False)) for e in catalog()]
    if json:
        names = ("name", "paper_name", "group", "parameters")
        _print_json([dict(zip(names, row, strict=True)) for row in rows])
        return
    hidden = {"classifier", "solver", "n_jobs", "random_state"}
    cells = [
        (*names, ", ".join(f"{name}={_short(value)}" for name, value in parameters.items() if name not in hidden))
        for *names, parameters in rows
    ]
    show.table(("name", "in the paper", "group", "parameters"), cells, left=4, cut=3)


@app.command()
def fit(
    table: Annotated[Path, typer.Argument(help="Labelled table: .csv, .tsv, .jsonl or .parquet.")],
    target: Annotated[str, typer.Option(help="Column of the labels.")],
    out: Annotated[Path, typer.Option("--out", help="Model file to write, such as model.oq.")],
    method: Annotated[str, typer.Option(help="See `ordinalq methods`.")] = "OPACC",
    tau: Annotated[str | None, typer.Option(help="Strength of the regularization: a number, or auto.")] = None,
    text: Annotated[str, typer.Option(help="Columns of text, comma-separated.")] = "",
    features: Annotated[str, typer.Option(help="Other columns to use; default: all, if there is no --text.")] = "",
    categories: Annotated[str, typer.Option(help="Columns that are categories, whatever they look like.")] = "",
    classes: Annotated[str, typer.Option(help="Labels in ascending order, comma-separated.")] = "",
    classifier: Annotated[str | None, typer.Option(help="logistic (default) or forest.")] = None,
    set: Annotated[list[str] | None, typer.Option("--set", help="Another parameter, key=value.")] = None,  # noqa: A002
    skip_unlabelled: SkipOption = False,
    force: Annotated[bool, typer.Option("--force", help="Write over a file that is no model.")] = False,
    n_jobs: Annotated[int, typer.Option(help="Processes.")] = 1,
    random_state: SeedOption = 0,
    format: FormatOption = None,  # noqa: A002
    encoding: EncodingOption = "utf-8",
    json: JsonOption = False,
) -> None:
    """Fit a model on a labelled table and write it to a file."""
    from ordinalq.tabular import saving, show
    from ordinalq.files.table import open_table
    from ordinalq.tabular.workflow import build_quantifier, fit_table, smoothing
    from ordinalq.files.writing import check_output

    file = open_table(table, format, encoding)
    check_output(out, table)  # before the work, not after it
    if out.exists() and not force and not saving.is_model(out):
        raise FileExistsError(f"{out}: exists and is no model of ordinalq; name another file, or use --force.")
    parameters = _parameters(set or [], tau)
    quantifier = build_quantifier(method, parameters, classifier, n_jobs=n_jobs, random_state=random_state)
    fitted = fit_table(
        file,
        target,
        quantifier,
        text=_listed(text),
        features=_listed(features),
        categories=_listed(categories),
        classes=_listed(classes) or None,
        skip_unlabelled=skip_unlabelled,
    )
    info = saving.save_model(fitted.model, out, overwrite=force)
    result = {
        "model": str(out),
        "method": info.method,
        "n_items": fitted.n_items,
        "n_skipped": fitted.n_skipped,
        "accuracy": fitted.accuracy,
        "classes": info.classes,
        "p_train": info.p_train,
        "columns": info.columns,
    }
    chosen = smoothing(fitted.model[-1])
    result.update(chosen)
    if json:
        _print_json(result)
        return
    strengths = [f", {name} {'of each sample' if value is None else _short(value)}" for name, value in chosen.items()]
    typer.echo(f"{out}: {info.method} on {fitted.n_items:,} items{''.join(strengths)}")
    if fitted.n_skipped:
        typer.echo(f"left out:  {fitted.n_skipped:,} rows without {target!r}")
    typer.echo(f"columns:   {', '.join(f'{name} ({kind})' for name, kind in fitted.kinds.items())}")
    typer.echo(f"training:  {show.percentages(info.p_train, info.classes)}")
    if fitted.accuracy is not None:
        typer.echo(f"accuracy:  {100 * fitted.accuracy:.0f} % of the items, held out")


@app.command()
def predict(
    model: ModelArgument,
    table: Annotated[Path, typer.Argument(help="Table to estimate, of any size.")],
    by: Annotated[str | None, typer.Option(help="Column of groups: one estimate for each.")] = None,
    interval: Annotated[float | None, typer.Option(help="Level of intervals, such as 0.95.")] = None,
    target: Annotated[str, typer.Option(help="Intervals for this 'sample' or for its 'population'.")] = "sample",
    out: Annotated[Path | None, typer.Option("--out", help="Table to write: .csv, .tsv, .jsonl or .parquet.")] = None,
    plot: Annotated[Path | None, typer.Option(help="Picture to write: .png, .svg or .pdf.")] = None,
    diagnose: Annotated[bool, typer.Option("--diagnose", help="Say how far the estimate can be trusted.")] = False,
    random_state: SeedOption = 0,
    trust: Annotated[str, typer.Option(help="Types in the model file to trust, comma-separated.")] = "",
    format: FormatOption = None,  # noqa: A002
    encoding: EncodingOption = "utf-8",
    json: JsonOption = False,
) -> None:
    """Estimate the class distribution of a table, or of each group of its rows."""
    from ordinalq.files import writing as write
    from ordinalq.tabular import show, workflow
    from ordinalq.files.table import open_table
    from ordinalq.tabular.saving import final_quantifier, load_model_and_info
    from ordinalq.validation import check_choice

    file = open_table(table, format, encoding)
    check_choice("target", target, ("sample", "population"))
    if interval is not None and not 0 < interval < 1:
        raise ValueError(f"interval must be a level between 0 and 1, such as 0.95, got {interval}.")
    outputs = [write.check_output(path, model, table) for path in (out, plot) if path is not None]
    if len(outputs) == 2 and outputs[0].absolute() == outputs[1].absolute():
        raise ValueError(f"{out}: expected different files for the table and the picture.")
    kinds = (write.table_format(out) if out else "", write.picture_format(plot) if plot else "")
    loaded, info = load_model_and_info(model, trusted=_listed(trust))
    with show.progress(f"{table.name}", file.n_bytes) as progress:
        estimate = workflow.predict_table(
            loaded, file, by=by, level=interval, target=target, random_state=random_state, progress=progress
        )
    diagnosis, of_groups = workflow.diagnose_table(loaded, file, by) if diagnose else (None, {})
    judged = {name: one.shift_is_plausible for name, one in of_groups.items() if one.shift_is_plausible is not None}
    misfits = [name for name, plausible in judged.items() if not plausible]
    with ExitStack() as files:
        # Both files or none.
        if out is not None:
            write.write_table(estimate, files.enter_context(write.replacing(out)), kinds[0])
        if plot is not None:
            axes = _plotted(estimate, info.classes, interval, info.target)
            write.save_picture(axes, files.enter_context(write.replacing(plot)), kinds[1])
    if interval is not None and workflow.smoothing(final_quantifier(loaded)):
        typer.echo("note: intervals of smoothed methods cover the scatter, not the bias of smoothing", err=True)
    if json:
        more: dict[str, Any] = {} if diagnosis is None else {"diagnosis": diagnosis.to_dict()}
        if diagnosis is not None and by is not None:
            more["bad_fit"] = misfits
        _print_json({**workflow.as_json(estimate, info.classes, interval), **more})
        return
    show.prevalences(estimate, info.classes, interval)
    if not outputs:
        show.charts(estimate, info.classes, interval)
    if diagnosis is not None:
        typer.echo("" if by is None else f"\nof the whole table, not of each {show.plain(by)}:")
        typer.echo(f"{diagnosis}")
        if judged:
            listed = f": {show.plain(', '.join(misfits[:20]))}{', ...' if len(misfits) > 20 else ''}" if misfits else ""
            typer.echo(f"bad fit in {len(misfits)} of {len(judged)} groups with enough items{listed}")
    for path in outputs:
        typer.echo(f"written: {path}")


@app.command()
def evaluate(
    model: ModelArgument,
    table: Annotated[Path, typer.Argument(help="Labelled table that the model has not seen.")],
    protocol: Annotated[str, typer.Option(help="app, app-oq:0.2, npp or groups:COLUMN.")] = "app",
    target: Annotated[str | None, typer.Option(help="Column of the labels; default: as in training.")] = None,
    samples: Annotated[int, typer.Option(help="Number of samples to draw.")] = 1000,
    sample_size: Annotated[int, typer.Option(help="Items in each sample.")] = 100,
    skip_unlabelled: SkipOption = False,
    random_state: SeedOption = 0,
    trust: Annotated[str, typer.Option(help="Types in the model file to trust, comma-separated.")] = "",
    format: FormatOption = None,  # noqa: A002
    encoding: EncodingOption = "utf-8",
    json: JsonOption = False,
) -> None:
    """Measure the errors of a model on samples of a labelled table, beside simple estimates."""
    from ordinalq.tabular import show
    from ordinalq.files.table import open_table
    from ordinalq.tabular.saving import load_model
    from ordinalq.tabular.workflow import evaluate_table

    file = open_table(table, format, encoding)
    errors = evaluate_table(
        load_model(model, trusted=_listed(trust)),
        file,
        protocol,
        target=target,
        n_samples=samples,
        sample_size=sample_size,
        skip_unlabelled=skip_unlabelled,
        random_state=random_state,
    )
    if json:
        _print_json({"protocol": protocol, **errors.attrs, "errors": errors.to_dict("records")})
        return
    drawn = f"{errors.attrs['n_samples']:,} samples from {errors.attrs['n_items']:,} items, protocol {protocol}"
    typer.echo(f"errors (mean ± standard deviation) on {drawn}")
    rows = [
        (row["estimate"], f"{row['nmd']:.4f} ± {row['nmd_std']:.4f}", f"{row['rnod']:.4f} ± {row['rnod_std']:.4f}")
        for row in errors.to_dict("records")
    ]
    show.table(("estimate", "NMD", "RNOD"), rows)


def _listed(text: str) -> list[str]:
    """Return the names in a comma-separated list.

    >>> _listed("a, b,c")
    ['a', 'b', 'c']
    """
    return [name.strip() for name in text.split(",") if name.strip()]


def _parameters(pairs: Sequence[str], tau: str | None) -> dict[str, Any]:
    """Return the parameters of a method from key=value; values are JSON, or else words.

    >>> _parameters(["n_bins=8", "solver=newton"], "auto")
    {'n_bins': 8, 'solver': 'newton', 'tau': 'auto'}
    """
    parameters: dict[str, Any] = {}
    for pair in [*pairs, *([] if tau is None else [f"tau={tau}"])]:
        key, equals, value = pair.partition("=")
        if not equals or not key.strip():
            raise ValueError(f"--set must be key=value, such as n_bins=8, got {pair!r}.")
        try:
            parameters[key.strip()] = jsonlib.loads(value)
        except ValueError:
            parameters[key.strip()] = value.strip()
    return parameters


def _short(value: Any) -> str:
    return f"{value:.3g}" if isinstance(value, float) else str(value)


def _plotted(estimate: Any, classes: Sequence[Any], level: float | None, target: str | None) -> Any:
    """Return the axes of the picture of `predict`."""
    import matplotlib as mpl

    from ordinalq import plot
    from ordinalq.tabular import show

    mpl.use("agg")  # no window
    names = [str(label) for label in classes]
    bounds: dict[str, Any] = {}
    labels: dict[str, Any] = {"level": level, "xlabel": show.plain(target or "")}
    if level is not None:
        for side in ("lower", "upper"):
            bounds[side] = estimate[[f"{name}_{side}" for name in names]].to_numpy()
    P = estimate[names].to_numpy()
    if len(P) == 1:
        return plot.distribution(P[0], classes, **{side: bound[0] for side, bound in bounds.items()}, **labels)
    groups = [show.plain(name) for name in estimate.iloc[:, 0]]
    return plot.groups(P, classes, groups, n_items=estimate["n_items"].to_numpy(), **bounds, **labels)


def _print_json(value: Any) -> None:
    typer.echo(jsonlib.dumps(_finite(value), indent=2, ensure_ascii=False, default=str))


def _finite(value: Any) -> Any:
    """Replace the numbers that JSON lacks by null.

    >>> _finite({"a": [1.5, float("nan")]})
    {'a': [1.5, None]}
    """
    if isinstance(value, dict):
        return {str(name): _finite(part) for name, part in value.items()}
    if isinstance(value, list | tuple):
        return [_finite(part) for part in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line and return its exit code."""
    arguments = list(sys.argv[1:] if arguments is None else arguments)
    debug = "--debug" in arguments
    arguments = [argument for argument in arguments if argument != "--debug"]  # wherever it stands
    logging.basicConfig(level=logging.WARNING, format="%(message)s")
    try:
        with warnings.catch_warnings():
            warnings.showwarning = _one_line
            code = int(app(arguments, standalone_mode=False) or 0)
        if code == INTERRUPTED:
            typer.echo("ordinalq: interrupted.", err=True)
        return code
    except Exception as error:
        if debug:
            raise
        message = error.format_message() if hasattr(error, "format_message") else str(error) or type(error).__name__
        if isinstance(error, OSError) and error.strerror:  # without its number
            message = f"{error.filename}: {error.strerror}" if error.filename else error.strerror
        if message:  # a call without arguments has shown the help and says no more
            typer.echo(f"ordinalq: {' '.join(message.split())}", err=True)
        # The parser's own errors (unknown verb, missing option) carry their exit code.
        return int(getattr(error, "exit_code", 2 if isinstance(error, CALLERS_MISTAKES) else 1))


def _one_line(message: Warning | str, *details: Any, **more: Any) -> None:
    """Show a warning of a library as we show errors."""
    typer.echo(f"ordinalq: warning: {' '.join(str(message).split())}", err=True)


def script() -> None:
    """Run the command line as a program."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")  # a terminal without the characters of a bar shows question marks
    # Being ended is an exception like others, after which nothing half-written is left.
    signal.signal(signal.SIGTERM, lambda number, frame: sys.exit(128 + number))
    sys.exit(main())
