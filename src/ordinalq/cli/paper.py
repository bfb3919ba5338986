"""Subcommands of the paper: data sets, experiments and reports."""

from pathlib import Path
from typing import Annotated

import typer

from ordinalq.cli.options import DataOption, app, print_lines


@app.command()
def datasets(
    data: Annotated[Path | None, typer.Option(help="Folder with local copies. Default: ORDINALQ_DATA.")] = None,
) -> None:
    """List data sets with size, licence and local copies."""
    from ordinalq._utils.text import table
    from ordinalq.datasets import CATALOG
    from ordinalq.datasets.download import find_local

    if data is None:
        find_local(())  # raises if ORDINALQ_DATA is not a folder
    if data is not None and not data.is_dir():
        raise FileNotFoundError(f"{data}: folder not found.")
    headers = ("name", "items", "features", "classes", "details")
    rows: list[tuple[str, ...]] = []
    for entry in CATALOG:
        numbers = (entry.n_items, entry.n_features, entry.n_classes)
        cells = ("" if number is None else f"{number:,}" for number in numbers)
        rows.append((entry.name, *cells, f"{entry.what}; {entry.licence}; {entry.where(data)}"))
    # Lines are broken rather than cut: all of it matters.
    table(headers, rows, left=1, cut=4, wrap=True)


@app.command()
def extract(
    name: Annotated[str, typer.Argument(help="Name of a data set, see `ordinalq datasets`.")],
    out: Annotated[Path, typer.Option("--out", "-o", help="Output folder: new, empty, or written by an earlier call.")],
    data: DataOption = None,
    settings: Annotated[
        str, typer.Option(help="Variant: reference (the authors' code) or paper (the text).")
    ] = "reference",
    random_state: Annotated[int, typer.Option(help="Random seed of the split and of all samples.")] = 876,
) -> None:
    """Write a data set and its samples as Parquet files."""
    from ordinalq.datasets import load_dataset
    from ordinalq.datasets.dataset import check_folder

    check_folder(out)  # before the work, not after it
    dataset = load_dataset(name, data=data, settings=settings, random_state=random_state)
    files = dataset.save(out)
    for note in dataset.notes:
        print_lines(f"note: {note}")
    print_lines(f"{dataset.name}: {len(files)} files in {out}; split: {dataset.split}")


@app.command()
def reproduce(
    name: Annotated[
        str,
        typer.Argument(
            help="Experiment of the paper, such as fried, benchmark (castano, semeval), or path of a TOML file."
        ),
    ],
    profile: Annotated[
        str, typer.Option(help="'full', or 'quick': fewer samples and a small classifier grid.")
    ] = "full",
    settings: Annotated[
        str, typer.Option(help="Variant: reference (the authors' code) or paper (the text).")
    ] = "reference",
    data: DataOption = None,
    out: Annotated[
        Path | None,
        typer.Option("--out", "-o", help="Output folder. Default: results/NAME. An interrupted run is continued."),
    ] = None,
    n_jobs: Annotated[int, typer.Option("--n-jobs", help="Number of workers. -1: all processors.")] = -1,
    backend: Annotated[str, typer.Option(help="Backend of joblib: loky, dask, ray, spark, ...")] = "loky",
    quiet: Annotated[bool, typer.Option("--quiet", help="Do not print progress and tables.")] = False,
) -> None:
    """Run an experiment of the paper and write tables and a report.

    Exits with 1 if a method failed in all its configurations.
    """
    if name in ("castano", "semeval"):
        _reproduce_benchmark(name, profile, data, out, n_jobs, quiet)
        return
    from ordinalq.paper.report.reproduce import reproduce_experiment

    done = reproduce_experiment(
        name, profile=profile, settings=settings, data=data, folder=out, n_jobs=n_jobs, backend=backend, quiet=quiet
    )
    print_lines(str(done.path))
    for method, message in done.failures.items():
        print_lines(f"ordinalq: {method} failed in all configurations: {message}", err=True)
    if done.failures:
        raise typer.Exit(1)


# Scores of the benchmarks of other authors.
MEASURES = {
    "castano": "EMD score, from 0 to 1; higher is better",
    "semeval": "earth mover's distance in classes; lower is better",
}


def _reproduce_benchmark(
    name: str, profile: str, data: Path | None, out: Path | None, n_jobs: int, quiet: bool
) -> None:
    """Run a benchmark of other authors and print its scores with published ones."""
    from ordinalq._utils.text import table
    from ordinalq.paper.benchmarks.castano import run_castano
    from ordinalq.paper.benchmarks.semeval import run_semeval

    run = {"castano": run_castano, "semeval": run_semeval}[name]
    folder = out or Path("results") / (name if profile == "full" else f"{name}-{profile}")
    for line in run(folder, profile=profile, data=data, n_jobs=n_jobs):
        if not quiet:
            print_lines(line, err=True)
    import pandas as pd

    found = pd.read_csv(folder / "table.csv", index_col=0)
    scores = pd.read_csv(folder / "scores.csv")
    columns = list(found.columns[:3])
    if not quiet:
        cells = [
            [str(name), *("" if pd.isna(x) else f"{x:.4f}" for x in row)] for name, *row in found[columns].itertuples()
        ]
        table(("method", *columns), cells, left=1, title=MEASURES[name])
    print_lines(str(folder / "table.csv"))
    failed = scores.loc[scores["score"].isna(), "method"].unique()
    for method in failed:
        print_lines(f"ordinalq: {method} failed in a part of the benchmark, see {folder / 'scores.csv'}", err=True)
    if len(failed):
        raise typer.Exit(1)


@app.command()
def lequa(
    out: Annotated[Path, typer.Option("--out", "-o", help="File to write, in the format of LeQua submissions.")],
    methods: Annotated[str, typer.Option(help="Names of methods, comma-separated.")] = "OPACC,OEDy,SLD",
    data: DataOption = None,
    n_jobs: Annotated[int, typer.Option("--n-jobs", help="Number of workers; -1: all processors.")] = -1,
) -> None:
    """Estimate the test samples of LeQua 2024, task T3, and write a submission.

    The method and its parameters are chosen by the mean NMD on the development samples.
    """
    from ordinalq.datasets.lequa import load_lequa, write_submission
    from ordinalq.io.writing import check_output
    from ordinalq.paper.benchmarks.lequa import estimate_test_samples

    check_output(out)
    dataset = load_lequa(data)
    names = [name.strip() for name in methods.split(",")]
    found = estimate_test_samples(dataset, names, n_jobs=n_jobs)
    write_submission(out, found.P)
    parameters = ", ".join(f"{name}={value}" for name, value in found.best["parameters"].items())
    print_lines(f"{found.best['method']}{f' ({parameters})' if parameters else ''}")
    for pool, errors in (("development", found.best), ("test", found.errors)):
        if errors:
            print_lines(f"{pool} samples: mean NMD {errors['nmd']:.5f}, macro-NMD {errors['macro_nmd']:.5f}")
    print_lines(f"{len(found.P):,} estimates in {out}")


@app.command()
def report(
    folders: Annotated[list[Path], typer.Argument(help="Folders of finished experiments.")],
    out: Annotated[
        Path | None, typer.Option("--out", "-o", help="Output folder of the comparison of several experiments.")
    ] = None,
) -> None:
    """Write the report of an experiment, or compare several by ranks."""
    from ordinalq.paper.report.reproduce import report_experiments

    print_lines(str(report_experiments(folders, out)))
