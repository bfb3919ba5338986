"""Subcommands that fit and evaluate a model, and list the methods."""

import json as jsonlib
import shlex
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ordinalq.cli.options import (
    EncodingOption,
    FormatOption,
    JsonOption,
    MaxSpoolOption,
    ModelArgument,
    QuotingOption,
    SheetOption,
    SkipOption,
    TidyOption,
    TrustOption,
    WeightOption,
    WeightTypeOption,
    app,
    check_roles,
    check_tables,
    print_json,
    print_lines,
    split_names,
)
from ordinalq.cli.predict import columns_of

if TYPE_CHECKING:
    from ordinalq.io.table import Table
    from ordinalq.tables.model import TableModel
    from ordinalq.tables.model_file import ModelInfo


@app.command()
def methods(json: JsonOption = False) -> None:
    """List methods with their name in the paper, group and parameters."""
    from ordinalq._utils.text import table
    from ordinalq.quantifiers.catalog import catalog

    rows = [(e.name, e.paper_name, e.group, e.cls().get_params(deep=False)) for e in catalog()]
    if json:
        names = ("name", "paper_name", "group", "parameters")
        print_json([dict(zip(names, row, strict=True)) for row in rows])
        return
    hidden = {"classifier", "solver", "n_jobs", "random_state"}
    cells = [
        (*names, ", ".join(f"{name}={_short(value)}" for name, value in parameters.items() if name not in hidden))
        for *names, parameters in rows
    ]
    table(("name", "in the paper", "group", "parameters"), cells, left=4, cut=3, wrap=True)


@app.command()
def fit(
    table: Annotated[
        list[str],
        typer.Argument(
            help="Labelled table: .csv, .tsv, .xlsx, .ods, .jsonl, .parquet, a folder, a pattern or an "
            "address. - is standard input."
        ),
    ],
    target: Annotated[str, typer.Option(help="Label column.")],
    out: Annotated[Path, typer.Option("--out", "-o", help="Model file to write, such as model.oq.")],
    by: Annotated[
        str | None,
        typer.Option(help="Columns of groups, as in predict. The model learns the differences between groups."),
    ] = None,
    tidy_groups: TidyOption = False,
    method: Annotated[
        str | None, typer.Option(help="Method, see `ordinalq methods`. Default: chosen by the columns.")
    ] = None,
    budget: Annotated[
        str | None,
        typer.Option(help="Time budget of the default method: fast (seconds), balanced (default) or best (minutes)."),
    ] = None,
    tau: Annotated[str | None, typer.Option(help="Strength of smoothing: a number, auto, or auto:items.")] = None,
    text: Annotated[str, typer.Option(help="Columns of text, comma-separated.")] = "",
    features: Annotated[str, typer.Option(help="Other columns to use. Default: all, unless --text is given.")] = "",
    categories: Annotated[str, typer.Option(help="Columns to treat as categories.")] = "",
    date_format: Annotated[
        list[str] | None, typer.Option("--date-format", help="Format of a date column, for example day=%m/%d/%Y.")
    ] = None,
    classes: Annotated[str, typer.Option(help="Labels in ascending order, comma-separated.")] = "",
    class_values: Annotated[
        str, typer.Option(help="Numeric values of the classes in order, used for means. Comma-separated.")
    ] = "",
    classifier: Annotated[
        str | None, typer.Option(help="Classifier: logistic or forest. Default: chosen by the columns.")
    ] = None,
    set: Annotated[list[str] | None, typer.Option("--set", help="Parameter of the method, key=value.")] = None,  # noqa: A002
    skip_unlabelled: SkipOption = False,
    max_items: Annotated[
        int | None,
        typer.Option(help="Maximum number of rows to fit on, in the same proportion from each group or class."),
    ] = None,
    weight: WeightOption = None,
    weight_type: WeightTypeOption = "survey",
    force: Annotated[bool, typer.Option("--force", help="Overwrite --out even if it is not a model.")] = False,
    n_jobs: Annotated[int, typer.Option(help="Number of processes.")] = 1,
    random_state: Annotated[int, typer.Option(min=0, help="Random seed of folds and forests.")] = 0,
    format: FormatOption = None,  # noqa: A002
    sheet: SheetOption = None,
    encoding: EncodingOption = "utf-8",
    quoting: QuotingOption = "auto",
    max_spool: MaxSpoolOption = 8.0,
    verbose: Annotated[bool, typer.Option("--verbose", help="Show method, parameters and weights of models.")] = False,
    json: JsonOption = False,
) -> None:
    """Fit a model on a labelled table and write it to a file."""
    from ordinalq.cli import display
    from ordinalq.io.table import format_of, open_table
    from ordinalq.io.writing import check_output
    from ordinalq.tables import model_file
    from ordinalq.tables.fit import build_quantifier, fit_table

    check_tables(table)
    file = open_table(table, format, encoding, quoting, max_spool, sheet)
    check_output(out, *(part.path for part in file.files))  # before the work, not after it
    if format_of(out.name) is not None:
        raise ValueError(f"{out}: expected the name of a model file, such as model.oq, got that of a table.")
    if out.exists() and not force and not model_file.is_model(out):
        raise FileExistsError(f"{out}: exists and is not an ordinalq model. Use another file or --force.")
    quantifier = build_quantifier(
        method,
        _parameters(set or [], tau) | ({} if budget is None else {"budget": budget}),
        classifier,
        groups=by is not None,
        n_jobs=n_jobs,
        random_state=random_state,
    )
    with display.working(f"fitting on {file.name}"):
        model = fit_table(
            file,
            target,
            quantifier,
            by=columns_of(by, file),
            text=split_names(text),
            features=split_names(features),
            categories=split_names(categories),
            dates=_pairs("--date-format", "day=%m/%d/%Y", date_format or []),
            classes=split_names(classes) or None,
            class_values=split_names(class_values) or None,
            skip_unlabelled=skip_unlabelled,
            max_items=max_items,
            random_state=random_state,
            weight=weight,
            weight_type=weight_type,
            tidy_groups=tidy_groups,
        )
    info = model_file.save_model(model, out, overwrite=force)
    if json:
        print_json({"model": str(out), **_fitted(model, info)})
        return
    _print_fitted(model, info, out, verbose=verbose)
    if by is None and (group := _likely_group(file, target, split_names(text))):
        display.labelled(
            "groups", f"{group!r} may be a group of rows; fit --by {shlex.quote(group)} learns how groups differ"
        )
    _print_predict(out, by, weight, weight_type, tidy_groups=tidy_groups)


def _likely_group(file: "Table", target: str, text: Sequence[str]) -> str:
    """Return a column that looks like groups, "" if there is none."""
    from ordinalq.tables.preview import likely_group, preview_table

    found = likely_group(preview_table(file), target)
    return "" if found in text else found


def _fitted(model: "TableModel", info: "ModelInfo") -> dict[str, Any]:
    """Return what `fit --json` prints."""
    from ordinalq.cli.display import smoothing_of
    from ordinalq.tables.model import missing_labels

    smoothing = smoothing_of(model.fitted())
    return {
        "method": info.method,
        "n_items": model.n_items_,
        "n_skipped": model.n_skipped_,
        "n_empty": model.n_empty_,
        "n_duplicates": model.n_duplicates_,
        **({} if model.n_groups_ is None else {"n_groups": model.n_groups_}),
        **(model.quality_ or {"accuracy": None}),
        "absent": missing_labels(info.classes),
        "classes": info.classes,
        "p_train": info.p_train,
        "columns": info.columns,
        "unused": model.unused_,
        **({} if smoothing is None else {smoothing.parameter: smoothing.value}),
        # Report of the default method.
        **({"training": asdict(model.fitted().training_)} if hasattr(model.fitted(), "training_") else {}),
    }


def _print_fitted(model: "TableModel", info: "ModelInfo", out: Path, *, verbose: bool) -> None:
    """Print the columns, the quality and the expected error.

    With `verbose` also methods and parameters.
    """
    from ordinalq._utils.text import counted
    from ordinalq.cli import display
    from ordinalq.cli.display import percentages, smoothing_of
    from ordinalq.tables.model import row_counts, sentences, unit

    groups = "" if model.n_groups_ is None else f" in {counted(model.n_groups_, 'group')}"
    print_lines(f"{out}: model of {model.target_!r}, fitted on {counted(model.n_items_, 'item')}{groups}")
    if counts := row_counts(model):
        display.labelled("rows", counts)
    display.columns(info.columns, model.unused_)
    display.labelled("training", percentages(info.p_train, info.classes))
    what, training = unit(model.target_, info.classes), getattr(model.fitted(), "training_", None)
    for word, text in sentences(model.quality_, info.classes, what):
        display.labelled(word, text)
    if training is not None:
        display.expected(training.expected, len(info.classes), what)
    smoothing, strength = smoothing_of(model.fitted()), ""
    if smoothing is not None:
        value = "of each sample" if smoothing.value is None else _short(smoothing.value)
        strength = f", {smoothing.parameter} {value}"
    if verbose or training is None:
        display.labelled("method", f"{info.method}{strength}")
    if verbose and training is not None:
        display.sentences(f"chosen:    {training}")


@app.command()
def evaluate(
    model: ModelArgument,
    table: Annotated[
        list[str], typer.Argument(help="Labelled table that was not used for fitting. - is standard input.")
    ],
    protocol: Annotated[
        str | None,
        typer.Option(help="Protocol that draws samples: app, app-oq:0.2 or npp. Default: app, unless --by is given."),
    ] = None,
    by: Annotated[str | None, typer.Option(help="Columns of groups, as in predict. Each group is a sample.")] = None,
    tidy_groups: TidyOption = False,
    weight: WeightOption = None,
    weight_type: WeightTypeOption = "survey",
    target: Annotated[str | None, typer.Option(help="Label column. Default: as in fit.")] = None,
    samples: Annotated[int, typer.Option(help="Number of samples to draw.")] = 1000,
    sample_size: Annotated[int, typer.Option(help="Items in each sample.")] = 100,
    interval: Annotated[float, typer.Option(help="Level of the intervals of groups.")] = 0.95,
    methods: Annotated[str, typer.Option(help="Other methods to compare on the same scores, comma-separated.")] = "",
    skip_unlabelled: SkipOption = False,
    random_state: Annotated[int, typer.Option(min=0, help="Random seed of the samples.")] = 0,
    trust: TrustOption = "",
    format: FormatOption = None,  # noqa: A002
    sheet: SheetOption = None,
    encoding: EncodingOption = "utf-8",
    quoting: QuotingOption = "auto",
    max_spool: MaxSpoolOption = 8.0,
    verbose: Annotated[
        bool, typer.Option("--verbose", help="Show the error measures NMD and RNOD, and the names of methods.")
    ] = False,
    json: JsonOption = False,
) -> None:
    """Measure the errors of a model on groups or samples of a labelled table."""
    from ordinalq.cli import display
    from ordinalq.io.table import open_table
    from ordinalq.tables.evaluate import compare_table, evaluate_table
    from ordinalq.tables.model import unit
    from ordinalq.tables.model_file import load_model_and_info

    check_roles(model, table)
    file = open_table(table, format, encoding, quoting, max_spool, sheet)
    loaded, info = load_model_and_info(model, trusted=split_names(trust))
    options: dict[str, Any] = {"target": target, "skip_unlabelled": skip_unlabelled, "random_state": random_state}
    of_groups: dict[str, Any] = {"weight": weight, "weight_type": weight_type, "tidy_groups": tidy_groups}
    what = unit(target or info.target, info.classes)
    if methods:
        how = {"by": columns_of(by, file), "n_samples": samples, "sample_size": sample_size, **options, **of_groups}
        with display.working(f"comparing methods on {file.name}"):
            compared = compare_table(loaded, file, split_names(methods), protocol or "app", **how)
        if json:
            print_json({"samples": compared.samples, "methods": compared.rows()})
        else:
            display.methods(compared, what)
        return
    groups = drawn = None
    with display.working(f"evaluating on {file.name}"):
        if by is not None:
            groups = evaluate_table(loaded, file, by=columns_of(by, file), level=interval, **options, **of_groups)
        if by is None or protocol is not None:
            protocol = protocol or "app"
            how = {"n_samples": samples, "sample_size": sample_size, **options, **(of_groups if by is None else {})}
            drawn = evaluate_table(loaded, file, protocol, **how)
    if json:
        found = [({"by": by}, groups), ({"protocol": protocol}, drawn)]
        results = [
            {**how, **errors.attrs, "errors": errors.to_dict("records")} for how, errors in found if errors is not None
        ]
        print_json(results[0] if len(results) == 1 else {"groups": results[0], "samples": results[1]})
        return
    if groups is not None:
        display.evaluation_of_groups(groups, str(by), len(info.classes), what, verbose=verbose)
    if drawn is not None:
        if groups is not None:
            print_lines("\nThe same on drawn samples, with the same feature distribution within each class:\n")
        display.evaluation(drawn, str(protocol), len(info.classes), what, verbose=verbose)
    _print_predict(model, by, weight, weight_type, tidy_groups=tidy_groups)


def _print_predict(model: Path, by: str | None, weight: str | None, weight_type: str, *, tidy_groups: bool) -> None:
    """Print the command that estimates groups as the model has learned them."""
    from ordinalq.cli import display

    given = {
        "--by": by,
        "--weight": weight,
        "--weight-type": weight_type if weight and weight_type != "survey" else None,
    }
    how = [word for option, value in given.items() if value is not None for word in (option, value)]
    how += ["--tidy-groups"] if tidy_groups else []
    display.next_step(shlex.join(["ordinalq", "predict", str(model), "NEW_TABLE", *how, "--interval", "0.95"]))


def _parameters(pairs: Sequence[str], tau: str | None) -> dict[str, Any]:
    """Return the parameters of a method from key=value; values are JSON or text.

    >>> _parameters(["n_bins=8", "solver=newton"], "auto")
    {'n_bins': 8, 'solver': 'newton', 'tau': 'auto'}
    """
    parameters: dict[str, Any] = {}
    for key, value in _pairs("--set", "n_bins=8", [*pairs, *([] if tau is None else [f"tau={tau}"])]).items():
        try:
            parameters[key] = jsonlib.loads(value)
        except (ValueError, RecursionError):
            parameters[key] = _word(value.strip())
    return parameters


def _word(value: str) -> Any:
    """Return a word as it is, or the choice of a strength that auto:items stands for."""
    from ordinalq.regularizers import AutoStrength

    head, colon, weight = value.partition(":")
    return AutoStrength(weight=weight) if (head, colon) == ("auto", ":") else value


def _pairs(option: str, example: str, given: Sequence[str]) -> dict[str, str]:
    """Return what is given as key=value."""
    found = {}
    for pair in given:
        key, equals, value = pair.partition("=")
        if not equals or not key.strip():
            raise ValueError(f"{option} must be key=value, such as {example}, got {pair!r}.")
        found[key.strip()] = value
    return found


def _short(value: Any) -> str:
    return f"{value:.3g}" if isinstance(value, float) else str(value)
